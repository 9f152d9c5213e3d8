package gpukit

import (
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"slices"
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

// An example by Go's naming rules, ExampleF or ExampleT_M, with what it prints, shows
// every exported function and method. Methods that formats and errors call (String,
// Error, ...) and those that show a value in a notebook need none. Functions that
// differ in the type alone, as AddInt32 and AddFloat64 do, share one.
func TestEveryFunctionHasAnExample(t *testing.T) {
	called := []string{"String", "Error", "Unwrap", "Is", "HTML", "Render"}
	typed := regexp.MustCompile(`(Int|Uint|Float)(32|64)$`)
	total := 0
	for _, dir := range []string{".", "simt", "host", "trace", "../plots"} {
		files, err := filepath.Glob(filepath.Join(dir, "*.go"))
		if err != nil || len(files) == 0 {
			t.Fatal(dir, err)
		}
		var names []string
		shown := map[string]bool{}
		fset := token.NewFileSet()
		for _, file := range files {
			f, err := parser.ParseFile(fset, file, nil, parser.ParseComments)
			if err != nil {
				t.Fatal(err)
			}
			if strings.HasSuffix(file, "_test.go") {
				for _, e := range doc.Examples(f) {
					if e.Output == "" && !e.EmptyOutput {
						t.Errorf("%s: Example%s has no output, so that it is not run", file, e.Name)
					}
					total++
					name := e.Name
					if i := strings.LastIndexByte(name, '_'); i >= 0 && !token.IsExported(name[i+1:]) {
						name = name[:i] // a second example of it
					}
					shown[name] = true
					shown[typed.ReplaceAllString(name, "")] = true
				}
				continue
			}
			for _, d := range f.Decls {
				fn, ok := d.(*ast.FuncDecl)
				if !ok || !fn.Name.IsExported() {
					continue
				}
				name := fn.Name.Name
				if fn.Recv != nil {
					receiver := exportedReceiverName(fn.Recv)
					if receiver == "" || slices.Contains(called, name) {
						continue
					}
					name = receiver + "_" + name
				}
				names = append(names, name)
			}
		}
		if len(names) == 0 {
			t.Errorf("%s exports nothing", dir)
		}
		for _, name := range names {
			family := typed.ReplaceAllString(name, "")
			if !shown[name] && (family == name || strings.Contains(name, "_") || !shown[family]) {
				t.Errorf("%s: there is no Example%s", dir, name)
			}
		}
	}
	if total < 100 {
		t.Errorf("only %d examples", total)
	}
}

func exportedReceiverName(l *ast.FieldList) string {
	if !exportedReceiver(l) {
		return ""
	}
	t := l.List[0].Type
	if p, ok := t.(*ast.StarExpr); ok {
		t = p.X
	}
	return t.(*ast.Ident).Name
}
