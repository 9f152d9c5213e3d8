package source

import (
	"io/fs"
	"math"
	"math/bits"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/cosmos72/gomacro/imports"
)

func TestResolveCompiled(t *testing.T) {
	named, other := fixtureMake()
	outer := fixtureNested()
	_, _, h := fixtureOneLine()
	two, kinds := fixtureTwoKinds()
	for _, c := range []struct {
		fn    any
		name  string
		text  string // how the source begins
		lines int
		catch string
	}{
		{fixtureLeaf, "fixtureLeaf", "func fixtureLeaf(x float64) float64 { return x * x }", 1, ""},
		{fixtureInlines, "fixtureInlines", "func fixtureInlines(", 3, ""},
		{fixtureCalls, "fixtureCalls", "func fixtureCalls(x []float64, n int)", 7, ""},
		{fixtureEmpty, "fixtureEmpty", "func fixtureEmpty(x int) {\n}", 2, ""},
		{fixtureVar, "fixtureVar", "func(x float64) float64 {\n\treturn x + 1", 3, ""},
		{named, "named", "func(x float64) float64 {\n\t\tvar twice", 9, "scale"},
		{other, "other", "func(x float64) float64 {\n\t\treturn x * k", 3, ""},
		{outer, "outer", "func(x float64) func(float64)", 6, ""},
		{outer(1), "inner", "func(y float64) float64", 3, ""},
		{h, "h", "func(x int) int { return x }", 1, ""},
		{two, "f", "func(x float64) float64 { return x }", 1, ""},
		{kinds, "g", "func(x int) int { return x }", 1, ""},
	} {
		f, err := Resolve(c.fn, nil)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if f.Name != c.name || f.Decl.Name.Name != c.name || !strings.HasPrefix(f.Text(), c.text) || strings.Count(f.Text(), "\n")+1 != c.lines {
			t.Errorf("%s: found %s with the text\n%s", c.name, f.Name, f.Text())
		}
		if f.Where.Filename != "compiled_fixture_test.go" || f.Package != "gpunotes/gpukit/internal/source" || f.Imports["math"] != "math" || f.Imports["fmt"] != "" ||
			len(f.DotImports) != 1 || f.Fset.Position(f.Decl.Body.Pos()).Filename != f.Where.Filename {
			t.Errorf("%s: %+v", c.name, f)
		}
		caught := ""
		for _, x := range f.Captured {
			caught += x.Name
			if d, ok := f.Scope.Lookup(x.Name); !ok || !d.Local || d.Gen != nil || x.Used.Line <= x.Declared.Line || d.Where != x.Declared {
				t.Errorf("%s: captured %+v is %+v", c.name, x, d)
			}
		}
		if caught != c.catch {
			t.Errorf("%s captures %q, want %q", c.name, caught, c.catch)
		}
	}
}

func TestCompiledScope(t *testing.T) {
	f, err := Resolve(fixtureCalls, nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"fixtureGreen": "const (\n\tfixtureRed = iota\n\tfixtureGreen\n)",
		"fixtureTable": "var fixtureTable = [2]float64{1, 2}",
		"fixtureReal":  "type fixtureReal float64",
		"fixtureLeaf":  "func fixtureLeaf(x float64) float64 { return x * x }",
		"basicKinds":   "", // in a file that is not a test's
		"funcLit":      "",
	} {
		d, ok := f.Scope.Lookup(name)
		if !ok || d.Err != nil || d.Value.IsValid() || d.Local || (d.Func == nil) == (d.Gen == nil) || d.Scope == nil || d.Text() == "" || text != "" && d.Text() != text {
			t.Errorf("%s: %+v, %v", name, d, ok)
		}
	}
	d, _ := f.Scope.Lookup("funcLit")
	if d.Where.Filename != "source.go" || d.Imports["reflect"] != "reflect" || d.Imports["math"] != "" {
		t.Errorf("funcLit: %+v", d)
	}
	// What tests declare is not in the scope of the package's own files.
	if _, ok := d.Scope.Lookup("newSession"); ok {
		t.Error("a name of the external test package is found")
	}
	own, err := Resolve(Identity, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := own.Scope.Lookup("fixtureLeaf"); ok {
		t.Error("a name of a test is found from a file that is not a test's")
	}
	for _, name := range []string{"method", "len", "math", "x", "_", ""} {
		if d, ok := f.Scope.Lookup(name); ok {
			t.Errorf("Lookup(%q) = %+v", name, d)
		}
	}
	named, _ := fixtureMake()
	f, err = Resolve(named, nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"k": `const k, unused = 2.5, "x"`, "local": "type local struct{ k float64 }"} {
		if d, ok := f.Scope.Lookup(name); !ok || !d.Local || d.Gen == nil || d.Text() != text {
			t.Errorf("%s: %+v", name, d)
		}
	}
	if d, ok := f.Scope.Lookup("fixtureGreen"); !ok || d.Local {
		t.Errorf("fixtureGreen from a literal: %+v", d)
	}
}

func TestBuiltins(t *testing.T) {
	for name, fn := range map[string]any{"math.Sin": math.Sin, "math.Sqrt": math.Sqrt, "math.FMA": math.FMA, "math.Abs": math.Abs, "math.Floor": math.Floor,
		"math.Float64bits": math.Float64bits, "math.Max": math.Max, "math/bits.Len": bits.Len, "math/bits.OnesCount64": bits.OnesCount64,
		"math.Inf": math.Inf, "math.Modf": math.Modf, "math.Pow": math.Pow, "math.Hypot": math.Hypot, "math.IsNaN": math.IsNaN} {
		f, err := Resolve(fn, nil)
		if err != nil || f.Builtin != name || f.Name != name || f.Decl != nil || f.Text() != "" {
			t.Errorf("%s: %+v, %v", name, f, err)
		}
	}
}

func TestResolveErrors(t *testing.T) {
	one, _, _ := fixtureOneLine()
	made := reflect.MakeFunc(reflect.TypeOf(math.Sin), func(a []reflect.Value) []reflect.Value { return a }).Interface()
	var nilFunc func(float64) float64
	for _, c := range []struct {
		name string
		fn   any
		want []string
	}{
		{"nil", nil, []string{"nil is not a function"}},
		{"a number", 3.5, []string{"float64", "not a function"}},
		{"a pointer to a function", &nilFunc, []string{"*func(float64) float64"}},
		{"a nil function", nilFunc, []string{"is nil"}},
		{"a method value", fixtureReal(1).method, []string{"method", "receiver"}},
		{"a method expression", fixtureReal.method, []string{"method", "receiver"}},
		{"a pointer method expression", (*fixtureReal).method, []string{"fixtureReal"}},
		{"a reflect method", reflect.ValueOf(time.Duration(1)).Method(0).Interface(), []string{"method"}},
		{"an instance", fixtureGeneric[float64], []string{"generic", "concrete"}},
		{"a function of the library", strings.ToUpper, []string{"strings.ToUpper", "standard library"}},
		{"a literal of the library", runtime.GC, []string{"standard library"}},
		{"a made function", made, []string{"not declared at the top level of a cell"}},
		{"an unnamed literal", fixtureUnnamed[0], []string{"compiled_fixture_test.go:", "no name", "name := func"}},
		{"an unnamed literal here", func(x int) int {
			return x
		}, []string{"compiled_test.go:", "no name"}},
		{"two literals on a line", one, []string{"compiled_fixture_test.go:", "several function literals"}},
	} {
		for _, nb := range []*Notebook{nil, NewNotebook(nil)} {
			f, err := Resolve(c.fn, nb)
			if err == nil {
				t.Errorf("%s resolves to %+v", c.name, f)
				continue
			}
			for _, w := range c.want {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("%s: error %q lacks %q", c.name, err, w)
				}
			}
		}
	}
}

// Every edit that moves or changes a function must be noticed.
func TestStaleSource(t *testing.T) {
	src, err := os.ReadFile("compiled_fixture_test.go")
	if err != nil {
		t.Fatal(err)
	}
	tested := programPath
	programPath = func() string { return "" }
	defer func() { programPath = tested }()
	named, _ := fixtureMake()
	fns := map[string]any{"func fixtureLeaf(": fixtureLeaf, "func fixtureCalls(": fixtureCalls, "var fixtureVar = func(": fixtureVar, "\tnamed = func(": named}
	try := func(text string, fn any, strict bool) (*Func, error) {
		v := reflect.ValueOf(fn)
		s := symbolOf(v)
		p, err := load(fstest.MapFS{"a/compiled_fixture_test.go": {Data: []byte(text)}}, "", "a/compiled_fixture_test.go", s.pkg)
		if err != nil {
			return nil, err
		}
		p.strict = strict
		return p.find(s, v.Type(), strings.Contains(s.full, ".func"))
	}
	for head, fn := range fns {
		if _, err := try(string(src), fn, true); err != nil {
			t.Errorf("%s: the right source is refused: %v", head, err)
		}
		at := strings.Index(string(src), head)
		for name, text := range map[string]string{
			"ten lines inserted": string(src[:at]) + strings.Repeat("\n", 10) + string(src[at:]),
			"a line inserted":    string(src[:at]) + "\n" + string(src[at:]),
			"a line removed":     strings.Replace(string(src), "// Functions to be found in a file other than the test's.\n", "", 1),
			"removed":            string(src[:at]) + strings.ReplaceAll(strings.ReplaceAll(string(src[at:]), "fixtureLeaf(", "gone("), "fixtureCalls(", "gone("),
			"another signature":  strings.ReplaceAll(strings.ReplaceAll(string(src), "(x float64)", "(x float32)"), "[]float64, n int", "[]float64, n int8"),
			"broken":             string(src) + "\nfunc {",
			"another package":    strings.Replace(string(src), "package source", "package main", 1),
		} {
			if name == "removed" && strings.Contains(head, "= func") {
				continue
			}
			if f, err := try(text, fn, true); err == nil {
				t.Errorf("%s: with %s it resolves to\n%s", head, name, f.Text())
			} else if name != "broken" && !strings.Contains(err.Error(), "compiled_fixture_test.go:") || !strings.Contains(err.Error(), "compiled") {
				t.Errorf("%s, %s: error %q", head, name, err)
			}
		}
	}
}

// The line checks must accept the right source, whatever the compiler made of
// it: inlined callees, folded branches, loops without a prologue.
func TestRightSourceIsAccepted(t *testing.T) {
	fns := []any{Embed, Resolve, Identity, NewNotebook, splitItems, blankCommands, parseItem, symbolOf, splitSymbol, resolvesCompiled, stdPackage, load, parseGo,
		lineOf, literals, captures, importName, namedLit, funcLit, fits, fieldTypes, typeFits, isFixed, TestStaleSource}
	for _, path := range []string{"math", "sort", "strings", "path", "unicode/utf8", "container/heap"} {
		lib := imports.Packages[path]
		if len(lib.Binds) == 0 {
			t.Fatalf("no table of %s", path)
		}
		for _, v := range lib.Binds {
			if v.Kind() == reflect.Func {
				fns = append(fns, v.Interface())
			}
		}
	}
	checked := 0
	for _, fn := range fns {
		v := reflect.ValueOf(fn)
		s := symbolOf(v)
		if !strings.HasSuffix(s.file, ".go") || !filepath.IsAbs(s.file) {
			continue // assembly
		}
		dir, base := filepath.Split(s.file)
		p, err := load(os.DirFS(dir), dir, base, s.pkg)
		if err != nil {
			t.Fatal(err)
		}
		own := *p
		own.strict = true
		if _, err := own.find(s, v.Type(), false); err != nil {
			t.Errorf("%v %v", err, s.lines)
		}
		checked++
	}
	if checked < 150 {
		t.Errorf("only %d functions checked", checked)
	}
}

func TestSourceEditedWhileRunning(t *testing.T) {
	old := started
	defer func() { started = old }()
	started = time.Time{}
	if _, err := Resolve(fixtureLeaf, nil); err == nil || !strings.Contains(err.Error(), "changed since this program started") {
		t.Errorf("error %v", err)
	}
}

func TestParsedAgainAfterChange(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	get := func() *pkg {
		t.Helper()
		p, err := load(os.DirFS(dir), dir, "a.go", "a")
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	write("a.go", "package a\nfunc f() {}\n")
	write("b.go", "package a\nconst b = 1\n")
	write("b_test.go", "package a\nconst test = 1\n")
	write("c.go", "package other\nconst c = 1\n")
	write("d_plan9.go", "package a\nconst d = 1\n")
	write("e.go", "//go:build ignore\n\npackage a\nconst e = 1\n")
	write("broken.go", "package a\nfunc {\n")
	p := get()
	if len(p.byName) != 2 || p != get() {
		t.Errorf("names %v", p.byName)
	}
	write("b.go", "package a\nconst bb, f = 1, 2\n")
	q := get()
	if q == p || len(q.byName["bb"]) != 1 || len(q.byName["b"]) != 0 {
		t.Errorf("names after a change %v", q.byName)
	}
	// Declared twice: the file's own counts, and from a third file none.
	if d, ok := (fileScope{q, q.file}).Lookup("f"); !ok || d.Func == nil {
		t.Errorf("f: %+v", d)
	}
	if d, ok := (fileScope{q, nil}).Lookup("f"); !ok || d.Err == nil || !strings.Contains(d.Err.Error(), "b.go:2") {
		t.Errorf("f from another file: %+v", d)
	}
}

func TestEmbedRefuses(t *testing.T) {
	for _, fsys := range []fs.FS{nil, fstest.MapFS{}, fstest.MapFS{"a.txt": {Data: []byte("x")}}, os.DirFS(filepath.Join(t.TempDir(), "none"))} {
		if err := Embed(fsys); err == nil {
			t.Errorf("Embed(%v) takes it", fsys)
		}
	}
	if len(embedded.roots) != 0 {
		t.Error("a refused file system was registered")
	}
}

func TestEmbeddedSourceIsPreferred(t *testing.T) {
	defer func() { embedded.roots = nil }()
	src, err := os.ReadFile("compiled_fixture_test.go")
	if err != nil {
		t.Fatal(err)
	}
	changed := strings.Replace(string(src), "return x * x }", "return x + x }", 1)
	for _, fsys := range []fs.FS{
		fstest.MapFS{"compiled_fixture_test.go": {Data: []byte("package source\n")}}, // another package's file of that name
		fstest.MapFS{"source/compiled_fixture_test.go": {Data: []byte(changed)}},
	} {
		if err := Embed(fsys); err != nil {
			t.Fatal(err)
		}
		f, err := Resolve(fixtureLeaf, nil)
		if err != nil {
			t.Fatal(err)
		}
		if plus := strings.Contains(f.Text(), "x + x"); plus != (len(embedded.roots) == 2) {
			t.Errorf("with %d embedded sources the text is %s", len(embedded.roots), f.Text())
		}
	}
	if err := Embed(fstest.MapFS{"source/compiled_fixture_test.go": {Data: src}}); err != nil {
		t.Fatal(err)
	}
	if f, err := Resolve(fixtureLeaf, nil); err == nil || !strings.Contains(err.Error(), "two embedded sources") {
		t.Errorf("%+v, %v", f, err)
	}
}

// A program built with -trimpath knows no directory; its embedded sources do.
func TestTrimmedProgram(t *testing.T) {
	if testing.Short() {
		t.Skip("builds a program, and with it the standard library once")
	}
	exe := filepath.Join(t.TempDir(), "trimmed")
	if out, err := exec.Command("go", "build", "-trimpath", "-o", exe, "./testdata/trimmed").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	cmd := exec.Command(exe)
	cmd.Dir = t.TempDir()
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, want := range []string{"before: the source of main.add is needed, but ", "main.go is not on this machine", "gpukit.EmbedSource",
		"found: add main.go:17:6 func add(x float64) float64 { return x + 1 }\n", "found: lit main.go:20:2 func(x float64) float64 {\n\t\treturn add(x) * 2\n\t}\n",
		"found: math.Sin", "error: strings.ToUpper belongs to Go's standard library"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("the output lacks %q:\n%s", want, out)
		}
	}
}

func TestSplitSymbol(t *testing.T) {
	for _, c := range []struct{ full, pkg, parts string }{
		{"main.f", "main", "f"},
		{"math/bits.Len", "math/bits", "Len"},
		{"a.b/c%2ed.F.func1.2", "a.b/c.d", "F func1 2"},
		{"a/b.(*T).m-fm", "a/b", "(*T) m-fm"},
		{"a/b.F[go.shape.float64]", "a/b", "F"},
		{"gopkg.in/x%2ev2/y.Z", "gopkg.in/x.v2/y", "Z"},
	} {
		pkg, parts := splitSymbol(c.full)
		if pkg != c.pkg || strings.Join(parts, " ") != c.parts {
			t.Errorf("%s: %s %v", c.full, pkg, parts)
		}
	}
	for p, want := range map[string]string{"math": "math", "math/rand/v2": "rand", "gopkg.in/yaml.v3": "yaml", "a/vector": "vector", "v2": "v2"} {
		if got := importName(p); got != want {
			t.Errorf("importName(%s) = %s, want %s", p, got, want)
		}
	}
}
