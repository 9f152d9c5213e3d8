// Package apidoc keeps the declarations and doc comments of packages in one
// small file, for a program that shows them where their source is not at hand.
package apidoc

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/doc"
	"go/doc/comment"
	"go/parser"
	"go/printer"
	"go/token"
	"path/filepath"
	"strings"
	"sync"
)

// An Entry is what is known of one symbol.
type Entry struct {
	Decl string `json:"d,omitempty"` // its declaration, without the body of a function
	Doc  string `json:"t,omitempty"` // its doc comment, as it stands in the source
}

// Docs are the symbols of packages, by import path and name: "Println",
// "Array.At" for a method or a field, "" for the package itself.
type Docs map[string]map[string]Entry

// A Package says where the source of a package is.
type Package struct {
	Path, Dir string
	Files     []string
}

// maxDecl bounds the lines of a declaration that are kept.
const maxDecl = 40

// Add reads the source of a package. What cannot be read is left out, and an
// error for it returned.
func (d Docs) Add(p Package) error {
	fset := token.NewFileSet()
	var files []*ast.File
	var bad error
	for _, name := range p.Files {
		f, err := parser.ParseFile(fset, filepath.Join(p.Dir, name), nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			bad = fmt.Errorf("package %s: %w", p.Path, err)
			continue
		}
		files = append(files, f)
	}
	mode := doc.Mode(0)
	if p.Path == "builtin" {
		mode = doc.AllDecls // its names are not exported
	}
	pkg, err := doc.NewFromFiles(fset, files, p.Path, mode)
	if err != nil {
		return fmt.Errorf("package %s: %w", p.Path, err)
	}
	entries := map[string]Entry{"": {Decl: fmt.Sprintf("package %s // import %q", pkg.Name, p.Path), Doc: pkg.Doc}}
	d[p.Path] = entries
	values := func(list []*doc.Value) {
		for _, v := range list {
			for _, spec := range v.Decl.Specs {
				s, ok := spec.(*ast.ValueSpec)
				if !ok {
					continue
				}
				text := comments(s.Doc, s.Comment)
				if text == "" {
					text = v.Doc
				}
				decl := print(fset, &ast.GenDecl{Tok: v.Decl.Tok, Specs: []ast.Spec{&ast.ValueSpec{Names: s.Names, Type: s.Type, Values: s.Values}}})
				for _, id := range s.Names {
					entries[id.Name] = Entry{decl, text}
				}
			}
		}
	}
	funcs := func(list []*doc.Func, prefix string) {
		for _, f := range list {
			decl := *f.Decl
			decl.Body, decl.Doc = nil, nil
			entries[prefix+f.Name] = Entry{print(fset, &decl), f.Doc}
		}
	}
	values(pkg.Consts)
	values(pkg.Vars)
	funcs(pkg.Funcs, "")
	for _, t := range pkg.Types {
		decl := *t.Decl
		decl.Doc = nil
		entries[t.Name] = Entry{print(fset, &decl), t.Doc}
		values(t.Consts)
		values(t.Vars)
		funcs(t.Funcs, "")
		funcs(t.Methods, t.Name+".")
		for _, spec := range t.Decl.Specs {
			if spec, ok := spec.(*ast.TypeSpec); ok {
				fields(fset, entries, t.Name, spec.Type)
			}
		}
	}
	return bad
}

// fields adds the fields of a struct, and the methods of an interface.
func fields(fset *token.FileSet, entries map[string]Entry, name string, t ast.Expr) {
	var list *ast.FieldList
	switch t := t.(type) {
	case *ast.StructType:
		list = t.Fields
	case *ast.InterfaceType:
		list = t.Methods
	default:
		return
	}
	for _, f := range list.List {
		for _, id := range f.Names {
			decl := id.Name + " " + print(fset, f.Type)
			if _, ok := f.Type.(*ast.FuncType); ok && strings.HasPrefix(decl, id.Name+" func(") && isInterface(t) {
				decl = "func " + id.Name + strings.TrimPrefix(decl, id.Name+" func")
			}
			entries[name+"."+id.Name] = Entry{decl, comments(f.Doc, f.Comment)}
		}
	}
}

func isInterface(t ast.Expr) bool {
	_, ok := t.(*ast.InterfaceType)
	return ok
}

func comments(groups ...*ast.CommentGroup) string {
	var parts []string
	for _, g := range groups {
		if text := g.Text(); text != "" {
			parts = append(parts, text)
		}
	}
	return strings.Join(parts, "")
}

func print(fset *token.FileSet, node any) string {
	var b bytes.Buffer
	cfg := printer.Config{Mode: printer.UseSpaces | printer.TabIndent, Tabwidth: 8}
	if err := cfg.Fprint(&b, fset, node); err != nil {
		return ""
	}
	lines := strings.Split(b.String(), "\n")
	if len(lines) > maxDecl {
		lines = append(lines[:maxDecl], fmt.Sprintf("... (%d more lines)", len(lines)-maxDecl))
	}
	return strings.Join(lines, "\n")
}

// Pack returns the docs in the form that Open reads.
func (d Docs) Pack() ([]byte, error) {
	var b bytes.Buffer
	z, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if err := json.NewEncoder(z).Encode(d); err != nil {
		return nil, err
	}
	if err := z.Close(); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// Open returns a function that gives the docs of packed data. They are unpacked
// when it is called first; of data that is not of Pack's making it gives none.
func Open(packed []byte) func() Docs {
	return sync.OnceValue(func() Docs {
		d := Docs{}
		z, err := gzip.NewReader(bytes.NewReader(packed))
		if err != nil {
			return d
		}
		if err := json.NewDecoder(z).Decode(&d); err != nil {
			return Docs{}
		}
		return d
	})
}

// Lookup returns what is known of a symbol of a package.
func (d Docs) Lookup(path, symbol string) (Entry, bool) {
	entries, ok := d[path]
	if !ok {
		return Entry{}, false
	}
	e, ok := entries[symbol]
	return e, ok
}

// Text is the doc comment for a terminal.
func (e Entry) Text() string {
	var p comment.Parser
	pr := comment.Printer{TextWidth: 100}
	return string(pr.Text(p.Parse(e.Doc)))
}

// HTML is the doc comment for a browser.
func (e Entry) HTML() string {
	var p comment.Parser
	pr := comment.Printer{HeadingLevel: 4, HeadingID: func(*comment.Heading) string { return "" }, DocLinkBaseURL: "https://pkg.go.dev"}
	return string(pr.HTML(p.Parse(e.Doc)))
}
