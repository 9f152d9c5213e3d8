package apidoc

import (
	"go/build"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestStandardLibrary(t *testing.T) {
	d := Docs{}
	for _, path := range []string{"strings", "builtin", "net/url", "io"} {
		p, err := build.Default.Import(path, "", 0)
		if err != nil {
			t.Skip("no source of the standard library here:", err)
		}
		if err := d.Add(Package{path, p.Dir, p.GoFiles}); err != nil {
			t.Fatal(err)
		}
	}
	packed, err := d.Pack()
	if err != nil {
		t.Fatal(err)
	}
	d = Open(packed)()
	for _, c := range []struct{ path, symbol, decl, doc string }{
		{"strings", "", "package strings", "manipulate UTF-8 encoded strings"},
		{"strings", "Cut", "func Cut(s, sep string) (before, after string, found bool)", "around the first instance of sep"},
		{"strings", "Builder", "type Builder struct", "efficiently build a string"},
		{"strings", "Builder.WriteString", "func (b *Builder) WriteString(s string) (int, error)", "appends the contents of s"},
		{"net/url", "URL.Host", "Host string", ""},
		{"io", "Reader.Read", "func Read(p []byte) (n int, err error)", ""},
		{"io", "EOF", `var EOF = errors.New("EOF")`, "no more input is available"},
		{"io", "SeekStart", "const SeekStart = 0", "relative to the origin"},
		{"builtin", "append", "func append(slice []Type, elems ...Type) []Type", "appends elements"},
	} {
		e, ok := d.Lookup(c.path, c.symbol)
		if !ok || !strings.HasPrefix(e.Decl, c.decl) || !strings.Contains(e.Text(), c.doc) || !strings.Contains(e.HTML(), c.doc) {
			t.Errorf("%s.%s: %v %q\n%s", c.path, c.symbol, ok, e.Decl, e.Text())
		}
	}
	if _, ok := d.Lookup("strings", "indexFunc"); ok {
		t.Error("unexported")
	}
}

func TestWhatCannotBeRead(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"a.go": "// Package a is.\npackage a\n\n// F is.\nfunc F() {}\n", "b.go": "package a\nfunc ("} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	d := Docs{}
	if err := d.Add(Package{"a", dir, []string{"a.go", "b.go"}}); err == nil || !strings.Contains(err.Error(), "b.go") {
		t.Error(err)
	}
	if e, ok := d.Lookup("a", "F"); !ok || e.Doc != "F is.\n" {
		t.Error("what can be read is missing")
	}
	if len(Open([]byte("nonsense"))()) != 0 {
		t.Error("nonsense was read")
	}
}
