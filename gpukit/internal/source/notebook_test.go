package source_test

import (
	"fmt"
	"go/ast"
	"go/build"
	"reflect"
	"strings"
	"testing"

	"github.com/cosmos72/gomacro/fast"
	"github.com/cosmos72/gomacro/xreflect"

	"gpunotes/gpukit/internal/source"
)

// session is a notebook on the real interpreter.
type session struct {
	t    *testing.T
	ir   *fast.Interp
	nb   *source.Notebook
	cell int
	got  []any // what the cells passed to the compiled function take
}

func newSession(t *testing.T) *session {
	t.Helper()
	// The interpreter asks the go command for export data, which it cannot read.
	build.Default.IsDir = func(string) bool { return false }
	defer func() { build.Default.IsDir = nil }()
	s := &session{t: t, ir: fast.New()}
	s.ir.Comp.Universe.Importer = &xreflect.Importer{}
	s.nb = source.NewNotebook(func(name string) (reflect.Value, bool) {
		v := s.ir.ValueOf(name)
		return v.ReflectValue(), v.IsValid()
	})
	s.ir.DeclFunc("take", func(x interface{}) { s.got = append(s.got, x) })
	return s
}

// run executes the text as the next cell.
func (s *session) run(text string) {
	s.t.Helper()
	s.cell++
	s.exec(1, text)
}

func (s *session) exec(line int, text string) {
	s.t.Helper()
	var kept []string
	for _, l := range strings.Split(text, "\n") {
		if !strings.HasPrefix(l, "%") && !strings.HasPrefix(l, "$") {
			kept = append(kept, l)
		}
	}
	s.ir.Eval(strings.Join(kept, "\n"))
	if err := s.nb.Record(s.cell, line, text); err != nil {
		s.t.Fatal(err)
	}
}

// value returns the value of the expression as compiled code receives it.
func (s *session) value(expr string) any {
	s.t.Helper()
	s.got = nil
	s.ir.Eval("take(" + expr + ")")
	return s.got[0]
}

func (s *session) resolve(expr string) *source.Func {
	s.t.Helper()
	f, err := source.Resolve(s.value(expr), s.nb)
	if err != nil {
		s.t.Fatalf("%s: %v", expr, err)
	}
	return f
}

func where(f *source.Func) string { return f.Where.String() }

func TestIdentityOfInterpretedFunctions(t *testing.T) {
	s := newSession(t)
	lits := map[string]string{
		"a0": "func() { x := 1; x++ }", "a1": "func() int { return 1 }", "a2": "func(x int) { x++ }",
		"b0": "func(x float64) float64 { return x }", "b1": "func(x float64) float64 { return x }",
		"c0": "func(x int8, y uint16) float32 { return 1 }", "c1": "func(x int8, y uint16) float32 { return 1 }",
		"d0": "func(x []float64, y [][]float32, z bool) { x[0]++ }", "d1": "func(x []float64, y [][]float32, z bool) { x[0]++ }",
		"e0": "func(a, b, c, d, e, f, g, h float64) (float64, int) { return a, 1 }",
		"f0": "func(x [3]float64, y struct{ A, B int }) float64 { return x[0] }",
		"g0": "func(x ...int) int { return 0 }", "h0": "func(x bool) bool { return x }", "h1": "func(x, y int) { x++ }",
	}
	seen := map[source.ID]string{}
	check := func(name string) {
		t.Helper()
		id := source.Identity(s.value(name))
		if id == 0 || id != source.Identity(s.ir.ValueOf(name).ReflectValue().Interface()) {
			t.Errorf("%s: the identity passed to compiled code is not that of the variable", name)
		}
		if other := seen[id]; other != "" {
			t.Errorf("%s and %s have the same identity", name, other)
		}
		seen[id] = name
		f := s.resolve(name)
		if f.Name != name || f.Decl.Name.Name != name {
			t.Errorf("%s resolves to %s", name, f.Name)
		}
	}
	for name, lit := range lits {
		s.run(name + " := " + lit)
		s.run("var v" + name + " = " + lit)
		s.run("func d" + name + strings.TrimPrefix(lit, "func"))
	}
	for name := range lits {
		check(name)
		check("v" + name)
		check("d" + name)
	}
	if len(seen) != 3*len(lits) {
		t.Errorf("%d identities of %d functions", len(seen), 3*len(lits))
	}
	for _, x := range []any{nil, 3, "f", (func())(nil), &seen} {
		if id := source.Identity(x); id != 0 {
			t.Errorf("Identity(%T) = %v, want 0", x, id)
		}
	}
}

// The interpreter has one function value for all empty bodies of a kind.
func TestEmptyInterpretedFunctions(t *testing.T) {
	s := newSession(t)
	s.run("func a() {}; func b(x int) {}; c := func(x int) {}")
	s.run("func d() {}; func use() { a(); b(1); c(1); d() }")
	for name, text := range map[string]string{"a": "func a() {}", "b": "func b(x int) {}", "c": "func(x int) {}", "d": "func d() {}"} {
		if f := s.resolve(name); len(f.Decl.Body.List) != 0 {
			t.Errorf("%s resolves to %s", name, f.Text())
		}
		if d, ok := s.resolve("use").Scope.Lookup(name); !ok || d.Err != nil || d.Text() != text {
			t.Errorf("%s is %q, %v", name, d.Text(), d.Err)
		}
	}
}

func TestCellPositionsAndText(t *testing.T) {
	s := newSession(t)
	s.run("import \"math\"\n\n%timeit foo 'bar\n$ ls *\nfunc sq(x float64) float64 { return x * x }\n" +
		"k := 3.0; func dist(a, b float64) float64 {\n\ts := `\nraw`\n\t_ = s\n\treturn sq(a-b) * math.Sqrt(k)\n} // end\n" +
		"  lit := func(x float64) float64 {\n\t\treturn x + k\n\t}\nvar (\n\tw = 2\n\tg = (func(x int) int { return x * w })\n)")
	for _, c := range []struct{ name, where, body, text string }{
		{"sq", "cell 1:5:6", "cell 1:5:30", "func sq(x float64) float64 { return x * x }"},
		{"dist", "cell 1:6:16", "cell 1:7:2", "func dist(a, b float64) float64 {\n\ts := `\nraw`\n\t_ = s\n\treturn sq(a-b) * math.Sqrt(k)\n}"},
		{"lit", "cell 1:12:3", "cell 1:13:3", "func(x float64) float64 {\n\t\treturn x + k\n\t}"},
		{"g", "cell 1:17:2", "cell 1:17:25", "func(x int) int { return x * w }"},
	} {
		f := s.resolve(c.name)
		if where(f) != c.where || f.Text() != c.text {
			t.Errorf("%s: at %s, text %q", c.name, where(f), f.Text())
		}
		if p := f.Fset.Position(f.Decl.Body.List[0].Pos()).String(); p != c.body {
			t.Errorf("%s: body at %s, want %s", c.name, p, c.body)
		}
		if f.Imports["math"] != "math" {
			t.Errorf("%s: imports %v", c.name, f.Imports)
		}
	}
	// A part of a cell that begins further down.
	s.cell = 7
	s.exec(4, "func late(x float64) float64 {\n  return sq(x)\n}")
	f := s.resolve("late")
	if p := f.Fset.Position(f.Decl.Body.List[0].Pos()).String(); where(f) != "cell 7:4:6" || p != "cell 7:5:3" {
		t.Errorf("late at %s, body at %s", where(f), p)
	}
	if d, ok := f.Scope.Lookup("sq"); !ok || d.Err != nil || d.Where.String() != "cell 1:5:6" || d.Func == nil {
		t.Errorf("sq from cell 7: %+v, %v", d, ok)
	}
}

func TestCellScope(t *testing.T) {
	s := newSession(t)
	s.run(`import ("math"; m "math/bits"; . "sort"; _ "strings"; r "math/rand")
type Real float64
type pair struct{ a, b float64 }
const ( red = iota; green; blue )
const scale = 2.5
var grid [3]float64
var lo, hi = 1, 2.0
p, q := math.Modf(1.5)
func f(x float64) float64 { return x * scale * grid[green] * hi * p + float64(m.Len(3)) }`)
	f := s.resolve("f")
	if f.Imports["math"] != "math" || f.Imports["m"] != "math/bits" || len(f.DotImports) != 1 || f.DotImports[0] != "sort" || f.Imports["_"] != "" || f.Imports["bits"] != "" {
		t.Errorf("imports %v, dots %v", f.Imports, f.DotImports)
	}
	for _, c := range []struct {
		name, text string
		value      any
	}{
		{"green", "const ( red = iota; green; blue )", nil},
		{"scale", "const scale = 2.5", nil},
		{"Real", "type Real float64", nil},
		{"pair", "type pair struct{ a, b float64 }", nil},
		{"grid", "var grid [3]float64", [3]float64{}},
		{"hi", "var lo, hi = 1, 2.0", 2.0},
		{"lo", "var lo, hi = 1, 2.0", 1},
		{"p", "", 1.0},
		{"q", "", 0.5},
	} {
		d, ok := f.Scope.Lookup(c.name)
		if !ok || d.Err != nil || d.Text() != c.text || (c.text != "") != (d.Gen != nil) || d.Func != nil {
			t.Errorf("%s: %+v, %v", c.name, d, ok)
			continue
		}
		if (c.value != nil) != d.Value.IsValid() || c.value != nil && d.Value.Interface() != c.value {
			t.Errorf("%s: value %v, want %v", c.name, d.Value, c.value)
		}
	}
	for _, name := range []string{"math", "m", "len", "float64", "nosuch", "true"} {
		if d, ok := f.Scope.Lookup(name); ok {
			t.Errorf("Lookup(%s) = %+v, want nothing", name, d)
		}
	}
	// The current value counts, and a changed type shows.
	s.run("grid[1] = 5; hi = 7")
	if d, _ := f.Scope.Lookup("grid"); d.Value.Interface() != [3]float64{0, 5, 0} {
		t.Errorf("grid is %v", d.Value)
	}
	s.run("hi := 4")
	d, _ := f.Scope.Lookup("hi")
	if d.Value.Type() != reflect.TypeOf(1) || d.Where.String() != "cell 3:1:1" {
		t.Errorf("hi after a change of type: %+v", d)
	}
	s.run("hi := 7.0")
	// A name of Go's own that a cell declares is the cell's.
	s.run("func min(x, y float64) float64 { if x < y { return x }; return y }")
	s.run("func usemin(x float64) float64 { return min(x, 2) }")
	if d, ok := s.resolve("usemin").Scope.Lookup("min"); !ok || d.Func == nil || d.Err != nil {
		t.Errorf("min of cell 5: %+v, %v", d, ok)
	}
	// A later import wins over a variable and a later declaration over an import.
	s.run(`import r "math"`)
	if f = s.resolve("f"); f.Imports["r"] != "math" {
		t.Errorf("imports %v", f.Imports)
	}
	s.run("r := 1.0")
	if f = s.resolve("f"); f.Imports["r"] != "" {
		t.Errorf("imports %v", f.Imports)
	}
	if d, ok := f.Scope.Lookup("r"); !ok || d.Value.Interface() != 1.0 {
		t.Errorf("r is %+v", d)
	}
}

func TestRedefinition(t *testing.T) {
	s := newSession(t)
	s.run("func sq(x float64) float64 { return x * x }")
	s.run("func f(x float64) float64 { return sq(x) }")
	s.run("old := f; oldsq := sq")
	v := s.nb.Version()
	before, _ := s.resolve("f").Scope.Lookup("sq")
	again, _ := s.resolve("f").Scope.Lookup("sq")
	if before.Func != again.Func || s.nb.Version() != v {
		t.Error("the same declaration is not the same pointer")
	}
	s.run("func sq(x float64) float64 { return x * x * x }")
	s.run("func f(x float64) float64 { return 1 + sq(x) }")
	if s.nb.Version() == v {
		t.Error("Version is unchanged after a redefinition")
	}
	if f := s.resolve("old"); where(f) != "cell 2:1:6" || f.Name != "f" {
		t.Errorf("the old f is %s at %s", f.Name, where(f))
	}
	if f := s.resolve("f"); where(f) != "cell 5:1:6" {
		t.Errorf("f is at %s", where(f))
	}
	// The callee of the old text is the current one.
	d, _ := s.resolve("old").Scope.Lookup("sq")
	if d.Where.String() != "cell 4:1:6" || d.Func == before.Func {
		t.Errorf("sq is at %s", d.Where)
	}
	if d, _ := s.resolve("old").Scope.Lookup("oldsq"); d.Where.String() != "cell 1:1:6" || d.Func != before.Func {
		t.Errorf("oldsq is at %s", d.Where)
	}
	// A changed signature shows, with the types then and now.
	s.run("func sq(x float32) float32 { return x * x }")
	if _, err := source.Resolve(s.value("f"), s.nb); err == nil {
		t.Error("f is not refused")
	} else if !strings.Contains(err.Error(), "func(float64) float64") || !strings.Contains(err.Error(), "func(float32) float32 (cell 6:1:6)") {
		t.Errorf("sq with another signature: %v", err)
	}
	// The same cell run again.
	s.run("g := func(x float64) float64 { return x }")
	g := s.value("g")
	s.run("g := func(x float64) float64 { return x }")
	if f, err := source.Resolve(g, s.nb); err != nil || where(f) != "cell 7:1:1" {
		t.Errorf("the earlier g: %v, %v", f, err)
	}
	if f := s.resolve("g"); where(f) != "cell 8:1:1" {
		t.Errorf("g is at %s", where(f))
	}
	// A variable assigned another literal, an alias, and a function of the interpreter's host.
	s.run("var h func(float64) float64")
	s.run("func useh(x float64) float64 { return h(x) }")
	if d, _ := s.resolve("useh").Scope.Lookup("h"); d.Err == nil || !strings.Contains(d.Err.Error(), "nil") {
		t.Errorf("a nil function variable: %+v", d)
	}
	s.run("h = func(y float64) float64 { return y + 1 }")
	if f := s.resolve("h"); where(f) != "cell 11:1:1" || f.Name != "h" {
		t.Errorf("h is at %s", where(f))
	}
	s.run("h = g")
	if d, _ := s.resolve("useh").Scope.Lookup("h"); d.Where.String() != "cell 8:1:1" || d.Err != nil {
		t.Errorf("h = g: %+v", d)
	}
	s.run("import \"math\"")
	s.run("h = math.Sin")
	if d, _ := s.resolve("useh").Scope.Lookup("h"); d.Err == nil || d.Err.Error() != "h is a variable that holds math.Sin" || d.Help != "write math.Sin(...) in place of h(...)" {
		t.Errorf("h = math.Sin: %+v", d)
	}
	s.run("import \"strings\"; u := strings.ToUpper")
	s.run("func useu(x float64) float64 { u(\"a\"); return x }")
	if d, _ := s.resolve("useu").Scope.Lookup("u"); d.Err == nil || !strings.Contains(d.Err.Error(), "strings.ToUpper") || !strings.Contains(d.Help, "in a cell") {
		t.Errorf("u := strings.ToUpper: %+v", d)
	}
	if f := s.resolve("h"); f.Builtin != "math.Sin" {
		t.Errorf("h resolves to %+v", f)
	}
}

// What is compiled into a function when its cell runs is what Go calls of it
// see; if it has changed, the function has no text that is right for both.
func TestChangedMeaning(t *testing.T) {
	for _, c := range []struct{ cells, want string }{
		// Each ends with a function f. want is "" if it is as it was.
		{"const C = 2.5|func f(x float64) float64 { return C * x }|const C = 3.5",
			"cell 2:1:36: C was the constant of cell 1:1:7 when f was declared (cell 2:1:6), and is the constant of cell 3:1:7 since|run the cell of f again"},
		{"const C = 2.5|f := func(x float64) float64 { return C * x }|const C = 3.5", "cell 1:1:7|cell 3:1:7|run the cell of f again"},
		{"const C = 2.5|func f(x float64) float64 { return C * x }|const C = 2.5", ""},
		{"const C = 2.5|func f(x float64) float64 { return C * x }|const C = 3.5|func f(x float64) float64 { return C * x }", ""},
		{"const C = 2.5|func f(x float64) float64 { return C * x }|const C = 3.5|const C = 2.5", ""},
		{"const C = 2.5|func f(x float64) float64 { C := x; return C }|const C = 3.5", ""},
		{"const a = 1|type P struct{ a float64 }|func f(x float64) float64 { var p P; p.a = x; return p.a }|const a = 2", ""},
		{"const N = 2|type V [N]float64|func f(x float64) float64 { var v V; return v[0] }|const N = 3", "cell 2:1:9: N was|cells of V and then of f"},
		{"type R float64|func f(x float64) float64 { return float64(R(x)) }|type R float32", "the type of cell 1:1:6|the type of cell 3:1:6"},
		{"type R float64|func f(x float64) float64 { return float64(R(x)) }|type R float64", ""},
		{"const A = 2|const B = A * 2|func f(x float64) float64 { return B * x }|const A = 3", "cell 2:1:11: A was|cell 4:1:7|run the cells of B and then of f again"},
		{"const A = 2|const B = A * 2|const A = 3|func f(x float64) float64 { return B * x }", "cell 2:1:11: A was|cell 3:1:7"},
		{"const A = 2|const B = A * 2|const A = 3|const B = A * 2|func f(x float64) float64 { return B * x }", ""},
		{"const A = 2|const B = A * 2|func f(x float64) float64 { return B * x }|const A = 3|const B = A * 2", "B was the constant of cell 2:1:7"},
		{"const ( A = 2; B = A * 2; Z = 1 )|func f(x float64) float64 { return B * x }|const Z = 3", ""},
		{"const ( A = 2; B = A * 2; Z = 1 )|func f(x float64) float64 { return B * x }|const A = 3", "A was the constant of cell 1:1:9"},
		{"const K = 2|const ( A = iota * K; B )|func f(x float64) float64 { return B * x }|const K = 3", "K was the constant of cell 1:1:7"},
		{"const ( A = iota; B )|func f(x float64) float64 { return B * x }|const ( B = iota; A )", "B was the constant"},
		{"C := 2.5|func f(x float64) float64 { return C * x }|const C = 3.5", "C was the variable of cell 1:1:1|the constant of cell 3:1:7"},
		{"const C = 2.5|func f(x float64) float64 { return C * x }|C := 2.5", "C was the constant of cell 1:1:7|the variable of cell 3:1:1"},
		{"C := 2.5|func f(x float64) float64 { return C * x }|C = 3.5", ""},
		{"C := 2.5|func f(x float64) float64 { return C * x }|C := 3.5", ""},
		{"C := 2.5|func f(x float64) float64 { return C * x }|C := 3", "C was a float64|an int (cell 3:1:1)|compiled for the new type, or give the new C another name"},
		{"func g(x float64) float64 { return x }|func f(x float64) float64 { return g(x) }|func g(x float64) float64 { return -x }", ""},
		{"func g(x float64) float64 { return x }|func f(x float64) float64 { return g(x) }|func g(x, y float64) float64 { return -x }",
			"g was a func(float64) float64|func(float64, float64) float64 (cell 3:1:6)|run the cell of f again, with its call of g changed"},
		{"func f(x float64) float64 { return float64(len(\"ab\")) + x }|func len(x string) int { return 7 }", "len was Go's own len"},
		{"import m \"math\"|func f(x float64) float64 { return x * m.Pi }|import m \"math/rand\"", "m was package math|is package math/rand since"},
		{"import m \"math\"|func f(x float64) float64 { return x * m.Pi }|m := 3", "m was package math|the variable of cell 3:1:1"},
	} {
		s := newSession(t)
		for _, cell := range strings.Split(c.cells, "|") {
			s.run(cell)
		}
		f := s.value("f")
		check := func(err error) {
			t.Helper()
			switch {
			case c.want == "" && err != nil:
				t.Errorf("%s: %v", c.cells, err)
			case c.want != "" && err == nil:
				t.Errorf("%s: not refused", c.cells)
			case c.want != "":
				for _, w := range strings.Split(c.want, "|") {
					if !strings.Contains(err.Error(), w) {
						t.Errorf("%s: error %q lacks %q", c.cells, err, w)
					}
				}
			}
		}
		_, err := source.Resolve(f, s.nb)
		check(err)
		// The same as a callee of a function that is as it was.
		s.run("func caller(x float64) float64 { return f(x) }")
		d, ok := s.resolve("caller").Scope.Lookup("f")
		if !ok || d.Func == nil || (d.Err == nil) != (d.Help == "") {
			t.Errorf("%s: as a callee %+v", c.cells, d)
		}
		if err = d.Err; err != nil {
			err = fmt.Errorf("%v: %v", d.Err, d.Help)
		}
		check(err)
	}
}

// gpukit asks from inside a cell that is still running, and from goroutines.
func TestResolveInsideRunningCell(t *testing.T) {
	s := newSession(t)
	var ks []any
	s.ir.DeclFunc("probe", func(fn interface{}) {
		f, err := source.Resolve(fn, s.nb)
		if err != nil {
			t.Error(err)
			return
		}
		k, _ := f.Scope.Lookup("k")
		c, _ := f.Scope.Lookup("c")
		ks = append(ks, k.Value.Interface(), c.Value.Interface())
	})
	s.run("k := 0; c := 1.5; type V [2]float64; var v V; func f(x float64) float64 { return x * float64(k) * c * v[0] }")
	s.run("for i := 0; i < 3; i++ { k = i; c += 1; probe(f); k = 9 }; after := k + 1")
	if fmt.Sprint(ks) != "[0 2.5 1 3.5 2 4.5]" {
		t.Errorf("the globals were %v", ks)
	}
	if v := s.value("after"); v != 10 {
		t.Errorf("the cell went wrong: after = %v", v)
	}
}

func TestPanickingValueFunction(t *testing.T) {
	nb := source.NewNotebook(func(name string) (reflect.Value, bool) { panic("no " + name) })
	if err := nb.Record(1, 1, "func f(x float64) float64 { return x + k }"); err != nil {
		t.Fatal(err)
	}
	if f, err := source.Resolve(3, nb); err == nil {
		t.Errorf("3 resolves to %+v", f)
	}
}

func TestConcurrentUse(t *testing.T) {
	f := func(x float64) float64 { return x }
	nb := source.NewNotebook(func(name string) (reflect.Value, bool) { return reflect.ValueOf(f), name == "f" })
	done := make(chan bool)
	for g := range 4 {
		go func() {
			defer func() { done <- true }()
			for i := range 100 {
				if g == 0 {
					if err := nb.Record(i, 1, "import \"math\"; func f(x float64) float64 { return x }; k := 1"); err != nil {
						t.Error(err)
					}
				} else if fn, err := source.Resolve(f, nb); err == nil {
					fn.Scope.Lookup("f")
					_ = fn.Imports["math"]
				}
			}
		}()
	}
	for range 4 {
		<-done
	}
}

// Whatever is in a variable, its text is the right one or none.
func TestUncertainText(t *testing.T) {
	for _, c := range []struct{ cells, value, want string }{
		{"mk := func(k float64) func(float64) float64 { return func(x float64) float64 { return k * x } }|f := mk(2)", "f", "made inside another function"},
		{"f := func(x float64) float64 { return 1 }; if f != nil { f = func(x float64) float64 { return 2 } }", "f", "also assigned at cell 1:1:58"},
		{"swap := func() {}|var f func(x float64) float64|swap = func() { f = func(x float64) float64 { return 2 } }|" +
			"f = func(x float64) float64 { return 1 }; swap()", "f", "also assigned at cell 3:1:17"},
		{"f := func(x float64) float64 { return 1 }; p := &f; *p = func(x float64) float64 { return 2 }", "f", "also assigned at cell 1:1:50"},
		{"f := func(x float64) float64 { return 1 }|if f != nil { f = func(x float64) float64 { return 2 } }", "f", "declare it there"},
		{"f := func(x float64) float64 { return 1 }; mk := func() func(float64) float64 { return func(x float64) float64 { return 2 } }; f = mk()", "f", "declare it there"},
		{"f := 1", "func(x float64) float64 { return x }", "one without a name"},
		{"type V [2]float64|func (v V) Sum(x float64) float64 { return v[0] }|v := V{1, 2}|f := v.Sum", "f", "it may be the method Sum of cell 2:1:12"},
		{"type V [2]float64|func (v V) Sum(x float64) float64 { return v[0] }|v := V{1, 2}", "v.Sum", "it may be the method Sum of cell 2:1:12"},
		{"type V [2]float64|func (v V) Sum(x float64) float64 { return v[0] }", "V.Sum", "takes the receiver (v V) as its first"},
		{"type V [2]float64|func (v V) Sum(x float64) float64 { return v[0] }|mk := func() func(int8, int) int8 { return func(a int8, b int) int8 { return a } }", "mk()", "so its source is not known: declare it there"},
	} {
		s := newSession(t)
		for _, cell := range strings.Split(c.cells, "|") {
			s.run(cell)
		}
		f, err := source.Resolve(s.value(c.value), s.nb)
		if err == nil {
			t.Errorf("%s: resolves to %s", c.cells, f.Text())
		} else if !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %q lacks %q", c.cells, err, c.want)
		}
		if c.value == "f" {
			s.run("func use(x float64) float64 { return f(x) }")
			if d, ok := s.resolve("use").Scope.Lookup("f"); !ok || d.Err == nil {
				t.Errorf("%s: as a callee it is %q", c.cells, d.Text())
			}
		}
	}
	// A literal stays certain where the assignments are to locals of the same name.
	s := newSession(t)
	s.run("func other() int { var f int; f = 2; q := &f; return *q }")
	s.run("f := func(x float64) float64 { return 1 }; other()")
	if f := s.resolve("f"); where(f) != "cell 2:1:1" {
		t.Errorf("f is at %s", where(f))
	}
}

func TestRecordPassesOverWhatIsNotGo(t *testing.T) {
	nb := source.NewNotebook(nil)
	for i, text := range []string{"", "\n\n", "%%", "$ 'unbalanced", "macro foo(a) { ~quote{x} }", "func bad(x { }", "}}})))", "`open", "'", "x :=", "func f", "/* open",
		"func (v V) m() {}\nfunc ok() {}", "const c = 1\nfunc 3", "~func g(x) y", "import 3", "var", "f(1)\n\n\"str\n", "a, b = 1", "_ := 3; for {}"} {
		if err := nb.Record(i+1, 1, text); err != nil {
			t.Errorf("%q: %v", text, err)
		}
	}
	if err := nb.Record(1, 0, "x := 1"); err == nil {
		t.Error("line 0 is taken")
	}
	if err := (*source.Notebook)(nil).Record(1, 1, "x := 1"); err != nil {
		t.Error(err)
	}
}

// Without values the record goes by name alone.
func TestNotebookWithoutValues(t *testing.T) {
	f := func(x float64) float64 { return x }
	have := map[string]reflect.Value{"f": reflect.ValueOf(f)}
	nb := source.NewNotebook(func(name string) (reflect.Value, bool) { v, ok := have[name]; return v, ok })
	for i, text := range []string{"func f(x float64) float64 { return g(x) }", "func g(x float64) float64 { return x }; const a, b = iota, 1",
		"func g(x float64, y ~int) { }"} {
		if err := nb.Record(i+1, 1, text); err != nil {
			t.Fatal(err)
		}
		fn, err := source.Resolve(f, nb)
		if err != nil || where(fn) != "cell 1:1:6" || fn.Package != "" {
			t.Fatalf("f: %+v, %v", fn, err)
		}
		d, ok := fn.Scope.Lookup("g")
		if ok != (i > 0) || (d.Func != nil) != (i == 1) {
			t.Errorf("after cell %d g is %+v, %v", i+1, d, ok)
		}
		if ok && i == 1 {
			if inner, ok := d.Scope.Lookup("b"); !ok || inner.Gen == nil || inner.Value.IsValid() {
				t.Errorf("b is %+v", inner)
			}
		}
	}
	// A value whose signature is another one is not the declared function.
	have["h"] = reflect.ValueOf(func(x, y float64) {})
	if err := nb.Record(9, 1, "func h(x float64) float64 { return x }"); err != nil {
		t.Fatal(err)
	}
	if fn, err := source.Resolve(have["h"].Interface(), nb); err == nil && strings.HasPrefix(where(fn), "cell") {
		t.Errorf("h resolves to %s", fn.Text())
	}
}

func TestSignatures(t *testing.T) {
	type V [2]float64
	for _, c := range []struct {
		sig string
		fn  any
		fit bool
	}{
		{"func f(a, b float64)", func(a, b float64) {}, true},
		{"func f(a, b float64)", func(a float64) {}, false},
		{"func f(a, b float64)", func(a float64, b int) {}, false},
		{"func f(a []float64, b [][]byte) (x int, err error)", func(a []float64, b [][]uint8) (int, error) { return 0, nil }, true},
		{"func f(a []float64)", func(a []float32) {}, false},
		{"func f(a [3]float64)", func(a [3]float64) {}, true},
		{"func f(a [3]float64)", func(a [4]float64) {}, false},
		{"func f(a [N]float64)", func(a [4]float64) {}, true},
		{"func f(a V, b *V)", func(a [2]float64, b *[2]float64) {}, true},
		{"func f(a ...int)", func(a ...int) {}, true},
		{"func f(a ...int)", func(a []int) {}, false},
		{"func f(a []int)", func(a ...int) {}, false},
		{"func f(a int)", func(a V) {}, false},
		{"func f(float64, int8) bool", func(a float64, b int8) bool { return true }, true},
		{"func f(g func(int) int, m map[int]int, c chan int, s struct{}, e interface{})", func(func(int) int, map[int]int, chan int, struct{}, any) {}, true},
		{"func f(g func(int) int)", func(func(int) bool) {}, false},
	} {
		nb := source.NewNotebook(func(string) (reflect.Value, bool) { return reflect.ValueOf(c.fn), true })
		if err := nb.Record(1, 1, c.sig+" {}"); err != nil {
			t.Fatal(err)
		}
		f, err := source.Resolve(c.fn, nb)
		fit := err == nil && strings.HasPrefix(where(f), "cell")
		if fit != c.fit {
			t.Errorf("%s for %T: %v, %v", c.sig, c.fn, fit, err)
		}
	}
}

func ExampleResolve() {
	sq := func(x float64) float64 {
		return x * x
	}
	f, err := source.Resolve(sq, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	_, isReturn := f.Decl.Body.List[0].(*ast.ReturnStmt)
	fmt.Println(f.Name, f.Where.Filename, isReturn)
	// Output: sq notebook_test.go true
}
