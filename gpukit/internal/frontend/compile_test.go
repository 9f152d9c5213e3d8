package frontend

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"math"
	"math/rand"
	"os"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"gpunotes/gpukit/internal/ir"
)

// pkg is a parsed file and its declarations by name.
type pkg struct {
	fset    *token.FileSet
	decls   map[string]Decl
	imports map[string]string
}

func parse(t testing.TB, name, src string) *pkg {
	t.Helper()
	return parseMore(t, &pkg{fset: token.NewFileSet()}, name, src)
}

// parseMore adds a file to before, whose declarations it may replace.
func parseMore(t testing.TB, before *pkg, name, src string) *pkg {
	t.Helper()
	p := &pkg{fset: before.fset, decls: map[string]Decl{}, imports: map[string]string{}}
	for name, d := range before.decls {
		p.decls[name] = d
	}
	f, err := parser.ParseFile(p.fset, name, src, parser.SkipObjectResolution)
	if err != nil && !strings.Contains(src, "not Go") {
		t.Fatal(err)
	}
	for _, im := range f.Imports {
		path, _ := strconv.Unquote(im.Path.Value)
		local := path[strings.LastIndex(path, "/")+1:]
		if im.Name != nil {
			local = im.Name.Name
		}
		if local == "." {
			local += path
		}
		p.imports[local] = path
	}
	assigned := Assigned(f)
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Recv == nil {
				p.decls[d.Name.Name] = Decl{Name: d.Name.Name, Func: d, Imports: p.imports, Where: p.fset.Position(d.Pos())}
			}
		case *ast.GenDecl:
			for _, s := range d.Specs {
				for _, id := range specNames(s) {
					p.decls[id.Name] = Decl{Name: id.Name, Gen: d, Imports: p.imports, Where: p.fset.Position(d.Pos()), Constant: !assigned[id.Name]}
				}
			}
		}
	}
	return p
}

func (p *pkg) input(name string) Input {
	return Input{Decl: p.decls[name].Func, Fset: p.fset, Imports: p.imports,
		Lookup: func(name string) (Decl, bool) { d, ok := p.decls[name]; return d, ok }}
}

var natives = map[string]any{
	"tDist": tDist, "tMandelbrot": tMandelbrot, "tCollatz": tCollatz, "tGcd": tGcd, "tNewton": tNewton, "tBisect": tBisect,
	"tIsPrime": tIsPrime, "tPopcount": tPopcount, "tLabels": tLabels, "tSwitch": tSwitch, "tFallthrough": tFallthrough,
	"tSwitchLoop": tSwitchLoop, "tOnlyDefault": tOnlyDefault, "tInnerBreak": tInnerBreak, "tRange": tRange, "tShadow": tShadow,
	"tNamed": tNamed, "tEarly": tEarly, "tMulti": tMulti, "tWrap8": tWrap8, "tWrapU16": tWrapU16, "tWrap64": tWrap64, "tDiv": tDiv,
	"tDiv8": tDiv8, "tDivU": tDivU, "tBits": tBits, "tShift": tShift, "tShiftSigned": tShiftSigned, "tShiftConst": tShiftConst,
	"tConvertInt": tConvertInt, "tConvertFloat": tConvertFloat, "tTruncate": tTruncate, "tFloat32": tFloat32, "tFloat": tFloat,
	"tCompare": tCompare, "tCompareInt": tCompareInt, "tMinMax": tMinMax, "tShortCircuit": tShortCircuit, "tMath": tMath,
	"tMathBits": tMathBits, "tNamedTypes": tNamedTypes, "tZero": tZero, "tRune": tRune, "tParens": tParens, "tNoPosts": tNoPosts,
	"tCallStatement": tCallStatement, "tUnnamed": tUnnamed, "tIfElseChain": tIfElseChain,
	"tSwitchReturns": tSwitchReturns, "tNestedSwitch": tNestedSwitch, "tLabelledSwitch": tLabelledSwitch,
}

// nativeText is native_test.go as a kernel would say it.
func nativeText(t testing.TB) string {
	t.Helper()
	src, err := os.ReadFile("native_test.go")
	if err != nil {
		t.Fatal(err)
	}
	return strings.ReplaceAll(string(src), "libm.", "math.")
}

func nativeFile(t testing.TB) *pkg {
	t.Helper()
	return parse(t, "native_test.go", nativeText(t))
}

// TestNative compares every function of native_test.go with itself, compiled
// by the Go compiler.
func TestNative(t *testing.T) {
	p := nativeFile(t)
	for name := range p.decls {
		if _, ok := natives[name]; strings.HasPrefix(name, "t") && len(name) > 1 && strings.ToUpper(name[1:2]) == name[1:2] && !ok {
			t.Errorf("%s is not in the table natives", name)
		}
	}
	for name, native := range natives {
		t.Run(name, func(t *testing.T) {
			prog, err := Compile(p.input(name))
			if err != nil {
				t.Fatal(err)
			}
			compareNative(t, prog, native, 300)
		})
	}
}

// compareNative runs prog and native on special and random arguments.
func compareNative(t *testing.T, prog *Program, native any, n int) {
	t.Helper()
	f := reflect.ValueOf(native)
	if len(prog.Params) != f.Type().NumIn() || len(prog.Results) != f.Type().NumOut() {
		t.Fatalf("%d parameters and %d results", len(prog.Params), len(prog.Results))
	}
	rnd := rand.New(rand.NewSource(1))
	faults := 0
	for range n {
		args := make([]ir.Bits, len(prog.Params))
		in := make([]reflect.Value, len(args))
		for i, p := range prog.Params {
			args[i] = argument(rnd, p.Type)
			in[i] = toGo(f.Type().In(i), p.Type, args[i])
		}
		want, fault := callNative(f, in)
		got, err := (&ir.Evaluator{Steps: 1e6}).Run(prog.Func, args...)
		if fault != "" || err != nil {
			faults++
			if fault == "" || err == nil || !strings.Contains(fault, err.(*ir.FaultError).Fault.String()) {
				t.Fatalf("%v: fault %v, native %q\n%v", in, err, fault, prog.Func)
			}
			if pos := err.(*ir.FaultError).Pos; pos.Line == 0 || pos.Col == 0 {
				t.Errorf("%v has no position", err)
			}
			continue
		}
		for i, w := range want {
			rt := prog.Results[i]
			if g, w := ir.Canonical(rt, got[i]), ir.Canonical(rt, fromGo(w)); g != w {
				t.Fatalf("%v: result %d is %s, native %s\n%v", in, i, ir.FormatBits(rt, g), ir.FormatBits(rt, w), prog.Func)
			}
		}
	}
	if faults > n*3/4 {
		t.Errorf("%d of %d calls fault", faults, n)
	}
}

func callNative(f reflect.Value, in []reflect.Value) (out []reflect.Value, fault string) {
	defer func() {
		if r := recover(); r != nil {
			fault = fmt.Sprint(r)
		}
	}()
	return f.Call(in), ""
}

// TestHandComputed is for what go vet does not want in a Go file.
func TestHandComputed(t *testing.T) {
	p := parse(t, "hand.go", `package hand
func Shift(a int8, b uint16) (int8, int8, uint16, uint16) { return a >> 9, a << 8, b << 200, b >> 16 }
func Dead(x int) int {
	for {
		return x
		x++
	}
	x = 5
	return x
}
func Self(x int) int { x = x; { return x }; ; }
func Unused(x int) int { y := 3; L: for { break }; return x }
`)
	for _, c := range []struct {
		name       string
		args, want []int64
	}{
		{"Shift", []int64{-3, 65535}, []int64{-1, 0, 0, 0}},
		{"Dead", []int64{4}, []int64{4}},
		{"Self", []int64{4}, []int64{4}},
		{"Unused", []int64{4}, []int64{4}},
	} {
		prog, err := Compile(p.input(c.name))
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		args := make([]ir.Bits, len(c.args))
		for i, a := range c.args {
			args[i] = ir.Bits(a)
		}
		out, err := new(ir.Evaluator).Run(prog.Func, args...)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		for i, w := range c.want {
			if int64(out[i]) != w {
				t.Errorf("%s: result %d is %d, want %d", c.name, i, int64(out[i]), w)
			}
		}
	}
}

var specialFloats = []float64{0, math.Copysign(0, -1), 1, -1, 0.5, 2, 1e-310, -1e-310, math.Inf(1), math.Inf(-1), math.NaN(),
	math.MaxFloat64, 5e-324, 1e9, 30, 101, -7.25, math.MaxFloat32, 1e-40}

var specialInts = []int64{0, 1, -1, 2, 3, -2, -3, 5, 7, 12, 63, 64, 65, 127, 128, -128, 255, 32767, -32768, math.MaxInt32, math.MinInt32,
	math.MaxUint32, math.MaxInt64, math.MinInt64}

func argument(rnd *rand.Rand, t ir.Type) ir.Bits {
	switch {
	case t == ir.Bool:
		return ir.Bits(rnd.Intn(2))
	case t.IsFloat():
		x := specialFloats[rnd.Intn(len(specialFloats))]
		if rnd.Intn(2) == 0 {
			x = rnd.NormFloat64() * math.Pow(10, float64(rnd.Intn(5)-2))
		}
		if t == ir.F32 {
			return ir.FromF32(float32(x))
		}
		return ir.FromF64(x)
	}
	x := specialInts[rnd.Intn(len(specialInts))]
	switch rnd.Intn(3) {
	case 0:
		x = int64(rnd.Intn(41) - 20)
	case 1:
		x = int64(rnd.Uint64()) >> rnd.Intn(64)
	}
	return ir.Wrap(t, ir.Bits(x))
}

func toGo(gt reflect.Type, t ir.Type, b ir.Bits) reflect.Value {
	var v reflect.Value
	switch {
	case t == ir.Bool:
		v = reflect.ValueOf(b != 0)
	case t == ir.F64:
		v = reflect.ValueOf(ir.ToF64(b))
	case t == ir.F32:
		v = reflect.ValueOf(ir.ToF32(b))
	case t.IsSigned():
		v = reflect.ValueOf(int64(b))
	default:
		v = reflect.ValueOf(b)
	}
	return v.Convert(gt)
}

func fromGo(v reflect.Value) ir.Bits {
	switch {
	case v.Kind() == reflect.Bool:
		return ir.FromBool(v.Bool())
	case v.Kind() == reflect.Float32:
		return ir.FromF32(float32(v.Float()))
	case v.CanFloat():
		return ir.FromF64(v.Float())
	case v.CanInt():
		return ir.Bits(v.Int())
	}
	return v.Uint()
}

func BenchmarkDist(b *testing.B) {
	p := nativeFile(b)
	in := p.input("tDist")
	for b.Loop() {
		if _, err := Compile(in); err != nil {
			b.Fatal(err)
		}
	}
}

// A constant of the group that nobody uses depends on what is refused.
func TestUnusedConstantOfARefusedVariable(t *testing.T) {
	p := parse(t, "f.go", "package p\nvar x = 2\nconst ( mask = 1 << x - 1; freezing = 273.15 )\nfunc f(c float64) float64 { return c + freezing }")
	if _, err := Compile(p.input("f")); err != nil && strings.Contains(err.Error(), "internal error") {
		t.Errorf("want the constant's fault, got %v", err)
	}
}
