package gpukit

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"
)

// Everything that users can name says what it is.
func TestEveryExportedThingIsDocumented(t *testing.T) {
	for _, dir := range []string{".", "simt", "host", "trace", "../plots"} {
		files, err := filepath.Glob(filepath.Join(dir, "*.go"))
		if err != nil || len(files) == 0 {
			t.Fatal(dir, err)
		}
		for _, name := range files {
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			fset := token.NewFileSet()
			file, err := parser.ParseFile(fset, name, nil, parser.ParseComments)
			if err != nil {
				t.Fatal(err)
			}
			undocumented := func(id *ast.Ident, docs ...*ast.CommentGroup) {
				for _, d := range docs {
					if d.Text() != "" {
						return
					}
				}
				if id.IsExported() {
					t.Errorf("%v: %s has no doc comment", fset.Position(id.Pos()), id.Name)
				}
			}
			for _, d := range file.Decls {
				switch d := d.(type) {
				case *ast.FuncDecl:
					if d.Recv == nil || exportedReceiver(d.Recv) {
						undocumented(d.Name, d.Doc)
					}
				case *ast.GenDecl:
					for _, s := range d.Specs {
						switch s := s.(type) {
						case *ast.TypeSpec:
							undocumented(s.Name, s.Doc, d.Doc)
						case *ast.ValueSpec:
							undocumented(s.Names[0], s.Doc, s.Comment, d.Doc)
						}
					}
				}
			}
		}
	}
}

func exportedReceiver(l *ast.FieldList) bool {
	t := l.List[0].Type
	if p, ok := t.(*ast.StarExpr); ok {
		t = p.X
	}
	id, ok := t.(*ast.Ident)
	return ok && id.IsExported()
}
