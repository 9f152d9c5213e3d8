package frontend

import (
	"go/constant"
	"go/importer"
	"go/token"
	"go/types"
	"math"
	"reflect"
	"strings"
	"sync"
	"testing"

	"gpunotes/gpukit/internal/ir"
	"gpunotes/gpukit/internal/libm"
)

// TestMathPackage compares the hand-built package with the real one.
func TestMathPackage(t *testing.T) {
	std, err := importerFor(t).Import("math")
	if err != nil {
		t.Fatal(err)
	}
	have := mathPackage().Scope()
	for _, name := range std.Scope().Names() {
		want := std.Scope().Lookup(name)
		if !want.Exported() {
			continue
		}
		got := have.Lookup(name)
		if got == nil {
			t.Errorf("no math.%s", name)
			continue
		}
		if k, ok := want.(*types.Const); ok {
			if g, ok := got.(*types.Const); !ok || !constant.Compare(g.Val(), token.EQL, k.Val()) || g.Type() != k.Type() {
				t.Errorf("math.%s is %v, want %v", name, got, want)
			}
			continue
		}
		if !types.Identical(got.Type(), want.Type()) {
			t.Errorf("math.%s is %v, want %v", name, got.Type(), want.Type())
		}
	}
	for _, name := range have.Names() {
		if std.Scope().Lookup(name) == nil {
			t.Errorf("math.%s does not exist", name)
		}
	}
}

func importerFor(t *testing.T) types.Importer {
	t.Helper()
	return importer.ForCompiler(token.NewFileSet(), "source", nil)
}

func TestCompileMath(t *testing.T) {
	for name, native := range map[string]any{"math.Sin": libm.Sin, "math.Frexp": libm.Frexp, "math.FMA": math.FMA, "math.Ldexp": libm.Ldexp,
		"math.Modf": math.Modf, "math.Sincos": libm.Sincos, "math.Lgamma": libm.Lgamma, "math.IsNaN": math.IsNaN, "math.Float32bits": math.Float32bits} {
		p, err := CompileMath(name)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if p.Key != name {
			t.Errorf("%s: parameters %v, key %q", name, p.Params, p.Key)
		}
		if name != "math.Float32bits" { // a NaN's bits are canonical in a kernel
			compareNative(t, p, native, 200)
		}
	}
	for _, name := range []string{"math.Sine", "strings.ToUpper", "math", "", "math.Pi"} {
		_, err := CompileMath(name)
		if ds, ok := err.(Diagnostics); !ok || ds[0].Code != CodePackage || ds[0].Help == "" {
			t.Errorf("%q: %v", name, err)
		}
	}
}

// notebook is a package whose names can be globals or declared again.
func notebook(p *pkg, globals map[string]any) Input {
	in := p.input("f")
	in.Notebook = true
	in.Lookup = func(name string) (Decl, bool) {
		if v, ok := globals[name]; ok {
			return Decl{Name: name, GlobalType: reflect.TypeOf(v)}, true
		}
		d, ok := p.decls[name]
		return d, ok
	}
	return in
}

func run(t *testing.T, p *Program, args ...float64) float64 {
	t.Helper()
	bits := make([]ir.Bits, len(args))
	for i, a := range args {
		if pt := p.Func.Type(p.Func.Params[i].Value); pt.IsFloat() {
			bits[i] = ir.FromF64(a)
		} else {
			bits[i] = ir.Bits(int64(a))
		}
	}
	out, err := new(ir.Evaluator).Run(p.Func, bits...)
	if err != nil {
		t.Fatal(err)
	}
	return ir.ToF64(out[0])
}

// TestCaptured: globals become extra parameters, through the whole call tree;
// a local of the same name, or one in a function that is not called, does not
// count.
func TestCaptured(t *testing.T) {
	p := parse(t, "cell 1", `package p
func unused() float64 { return other }
func h(x float64) float64 { return x*zeta }
func g(x float64) float64 { return h(x) + float64(n) }
func f(x float64) float64 { other := x; lat := other; _ = lat; return g(x) + alpha }
`)
	globals := map[string]any{"zeta": 3.0, "n": 7, "alpha": 0.5, "other": 1.0, "lat": []float64{1}, "x": "text"}
	prog, err := Compile(notebook(p, globals))
	if err != nil {
		t.Fatal(err)
	}
	if want := []Capture{{Name: "alpha", Type: ir.F64, First: 1}, {Name: "n", Type: ir.I64, First: 2}, {Name: "zeta", Type: ir.F64, First: 3}}; !reflect.DeepEqual(prog.Captured, want) {
		t.Fatalf("captured %v, want %v", prog.Captured, want)
	}
	if len(prog.Params) != 1 || len(prog.Func.Params) != 4 || prog.Params[0].Name != "x" {
		t.Errorf("parameters %v, %v", prog.Params, prog.Func.Params)
	}
	if got := run(t, prog, 2, 0.5, 7, 3); got != 13.5 {
		t.Errorf("f(2) = %v", got)
	}
	// The type of a captured global is part of the key, its value is not.
	globals["zeta"] = 4.0
	same, err := Compile(notebook(p, globals))
	if err != nil || same.Key != prog.Key {
		t.Errorf("another value: %v\n%s\n%s", err, same.Key, prog.Key)
	}
	globals["n"] = int32(7)
	other, err := Compile(notebook(p, globals))
	if err != nil || other.Key == prog.Key || other.Func.Type(other.Func.Params[2].Value) != ir.I32 {
		t.Errorf("another type: %v", err)
	}
	if strings.Contains(prog.Key, "unused") || strings.Contains(prog.Key, "lat ") && strings.Contains(prog.Key, "[]float64") {
		t.Errorf("the key holds what is not used: %s", prog.Key)
	}
}

// TestRedefined: the current declaration of a callee and of a constant wins, a
// changed signature names the place of the new one, and the key changes.
func TestRedefined(t *testing.T) {
	p := parse(t, "cell 1", `package p
const ( A = 1; B = 2; C = 3 )
func g(x float64) float64 { return x + 1 }
func f(x float64) float64 { return g(x)*10 + A + B*100 }
`)
	first, err := Compile(notebook(p, nil))
	if err != nil {
		t.Fatal(err)
	}
	if got := run(t, first, 2); got != 231 {
		t.Errorf("f(2) = %v", got)
	}
	p2 := parseMore(t, p, "cell 2", "package p\nconst A = 5\nfunc g(x float64) float64 { return x + 2 }\n")
	second, err := Compile(notebook(p2, nil))
	if err != nil {
		t.Fatal(err)
	}
	if got := run(t, second, 2); got != 245 || second.Key == first.Key {
		t.Errorf("after redefinition f(2) = %v", got)
	}
	p3 := parseMore(t, p, "cell 9", "package p\nfunc g(x float64) int { return 1 }\n")
	_, err = Compile(notebook(p3, nil))
	if err == nil || !strings.Contains(err.Error(), "cell 1:4:36") || !strings.Contains(err.Error(), "g is declared at cell 9:2:1") {
		t.Errorf("changed signature: %v", err)
	}
}

func TestNames(t *testing.T) {
	for _, c := range []struct {
		name, src string
		want      float64
	}{
		{"import alias", `import m "math"; func f(x float64) float64 { return m.Sqrt(x) * m.Pi }`, 3 * math.Pi},
		{"dot import", `import . "math"; func f(x float64) float64 { s, c := Sincos(0); return Sqrt(x) + s + c }`, 4},
		{"user's min", `func min(a, b float64) float64 { return a + b }; func f(x float64) float64 { return min(x, 1) }`, 10},
		{"unused package", `import "strings"; func g() string { return strings.ToUpper("a") }; func f(g float64) float64 { return g }`, 9},
		{"named math", `import "math"; func f(math float64) float64 { return math }`, 9},
		{"param called like a function", `func g(x float64) float64 { return f(x) }; func f(g float64) float64 { h := g; return h }`, 9},
		{"type and const of the package", `type t = float64; const (_ = iota; one t = iota); func f(x t) t { return x + one }`, 10},
		{"parentheses", `import "math"; func g(x float64) float64 { return x }; func f(x float64) float64 { return (float64)((min)((math.Sqrt)((g)(x)), (7))) }`, 3},
		{"what is not used of a group", `import "time"; type ( c float64; point struct { x, y float64 }; g[T any] []T ); const ( k = 2; second = time.Second ); func f(x c) c { return x * k }`, 18},
		{"conversion of a package's type name", `type c float64; type d = c; func g(x c) d { return x }; func f(x float64) float64 { type e d; return float64(e(g(c(x)))) }`, 9},
		{"labels of no use", `func f(x float64) float64 { a: { b: if x > 0 { c: return x } }; return 0 }`, 9},
		{"string constant in a group", `const ( name = "abc"; n = len(name) ); func f(x float64) float64 { return x + float64(n) }`, 12},
	} {
		p := parse(t, "names.go", "package p\n"+strings.ReplaceAll(c.src, "; ", "\n"))
		prog, err := Compile(p.input("f"))
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if got := run(t, prog, 9); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

// TestTypeHelp: the remedy is the text to write.
func TestTypeHelp(t *testing.T) {
	for src, want := range map[string]string{
		`import "math"; func f(x float32) float32 { return float32(math.Sin(x)) }`: "convert it: float64(x)",
		`import "math"; func f(x float64) float32 { return math.Sin(x) }`:          "convert it: float32(math.Sin(x))",
		`func g(x int) int { return x }; func f(x int) int { return g(x, 1) }`:     "too many arguments in call to g, have (int, number), want (int)\n\tgive one",
		`func f(x float64) float64 { return abs(x) }`:                              "if you mean math.Abs",
	} {
		p := parse(t, "cell 1", "package p\n"+strings.ReplaceAll(src, "; ", "\n"))
		if _, err := Compile(p.input("f")); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", src, err, want)
		}
	}
}

// TestAllFaultsAtOnce: one report for the whole call tree, by position.
func TestAllFaultsAtOnce(t *testing.T) {
	p := parse(t, "cell 4", `package p
func h(x int) int { defer h(x); return x }
func g(m map[int]int, x int) int { return h(x) + m[x] }
func f(x float64) float64 {
	y := undefinedName
	go h(1)
	return x + 1i + y + float64(g(nil, x))
}
`)
	in := p.input("f")
	in.Notebook = true
	_, err := Compile(in)
	ds, _ := err.(Diagnostics)
	var codes []Code
	for i, d := range ds {
		codes = append(codes, d.Code)
		if i > 0 && d.Pos.Line < ds[i-1].Pos.Line {
			t.Errorf("not sorted: %v", err)
		}
	}
	for _, want := range []Code{CodeDefer, CodeMap, CodeUndefined, CodeGo, CodeType} {
		found := false
		for _, c := range codes {
			found = found || c == want
		}
		if !found {
			t.Errorf("no %s in\n%v", want, err)
		}
	}
	if !strings.HasPrefix(err.Error(), "cell 4:2:21: defer h\n\t") {
		t.Errorf("report begins %q", err)
	}
}

func TestNeverPanics(t *testing.T) {
	p := parse(t, "cell 1", "package p\nfunc f(x float64) float64 { return x }")
	broken := p.input("f")
	broken.Decl = nil
	noSet := p.input("f")
	noSet.Fset = nil
	angry := p.input("f")
	angry.Lookup = func(string) (Decl, bool) { panic("lookup fails") }
	for name, in := range map[string]Input{"no declaration": broken, "no file set": noSet, "no lookup": angry, "nothing": {}} {
		_, err := Compile(in)
		if ds, ok := err.(Diagnostics); name == "no file set" && ok {
			continue
		} else if !ok || ds[0].Code != CodeInternal {
			t.Errorf("%s: %v", name, err)
		}
	}
	bare := p.input("f")
	bare.Lookup, bare.Imports = nil, nil
	if _, err := Compile(bare); err != nil {
		t.Errorf("without Lookup and Imports: %v", err)
	}
}

// TestConcurrent: compiling is pure and the result does not depend on who
// else compiles.
func TestConcurrent(t *testing.T) {
	p := nativeFile(t)
	want := map[string]string{}
	for name := range natives {
		prog, err := Compile(p.input(name))
		if err != nil {
			t.Fatal(err)
		}
		want[name] = prog.Func.String() + prog.Key
	}
	var wg sync.WaitGroup
	for range 4 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for name, w := range want {
				if prog, err := Compile(p.input(name)); err != nil || prog.Func.String()+prog.Key != w {
					t.Errorf("%s: another result, %v", name, err)
				}
			}
		}()
	}
	wg.Wait()
}
