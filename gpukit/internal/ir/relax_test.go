package ir_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"gpunotes/gpukit/internal/ir"
	"gpunotes/gpukit/internal/ir/irtest"
)

// mathFn is a function of the library.
func mathFn(t *testing.T, name string) ir.MathFn {
	t.Helper()
	fn, ok := ir.LookupMath(name)
	if !ok {
		t.Fatalf("no %s", name)
	}
	return fn
}

// TestRelax: which sums are fused, and what they then are.
func TestRelax(t *testing.T) {
	number := func(b *ir.Builder, x float64) ir.Value { return b.Const(ir.F64, ir.FromF64(x)) }
	for _, c := range []struct {
		name string
		fmas int
		body func(b *ir.Builder, x, y, z ir.Value) ir.Value
		want func(x, y, z float64) float64
	}{
		{"x*y+z", 1, func(b *ir.Builder, x, y, z ir.Value) ir.Value {
			return b.Op(ir.OpAdd, b.Op(ir.OpMul, x, y), z)
		}, func(x, y, z float64) float64 { return math.FMA(x, y, z) }},
		{"z+x*y", 1, func(b *ir.Builder, x, y, z ir.Value) ir.Value {
			return b.Op(ir.OpAdd, z, b.Op(ir.OpMul, x, y))
		}, func(x, y, z float64) float64 { return math.FMA(x, y, z) }},
		{"x*y-z", 1, func(b *ir.Builder, x, y, z ir.Value) ir.Value {
			return b.Op(ir.OpSub, b.Op(ir.OpMul, x, y), z)
		}, func(x, y, z float64) float64 { return math.FMA(x, y, -z) }},
		{"z-x*y", 1, func(b *ir.Builder, x, y, z ir.Value) ir.Value {
			return b.Op(ir.OpSub, z, b.Op(ir.OpMul, x, y))
		}, func(x, y, z float64) float64 { return math.FMA(-x, y, z) }},
		{"z-x*3", 1, func(b *ir.Builder, x, y, z ir.Value) ir.Value {
			return b.Op(ir.OpSub, z, b.Op(ir.OpMul, x, number(b, 3.1)))
		}, func(x, y, z float64) float64 { return math.FMA(x, -3.1, z) }},
		{"x*y-0.1", 1, func(b *ir.Builder, x, y, z ir.Value) ir.Value {
			return b.Op(ir.OpSub, b.Op(ir.OpMul, x, y), number(b, 0.1))
		}, func(x, y, z float64) float64 { return math.FMA(x, y, -0.1) }},
		{"x*y-z*z", 1, func(b *ir.Builder, x, y, z ir.Value) ir.Value {
			return b.Op(ir.OpSub, b.Op(ir.OpMul, x, y), b.Op(ir.OpMul, z, z))
		}, func(x, y, z float64) float64 { return math.FMA(-z, z, float64(x*y)) }},
		{"x*y+x*y", 0, func(b *ir.Builder, x, y, z ir.Value) ir.Value {
			p := b.Op(ir.OpMul, x, y)
			return b.Op(ir.OpAdd, p, p)
		}, func(x, y, z float64) float64 { return float64(x*y) + float64(x*y) }},
		{"a product used twice", 0, func(b *ir.Builder, x, y, z ir.Value) ir.Value {
			p := b.Op(ir.OpMul, x, y)
			return b.Op(ir.OpDiv, b.Op(ir.OpAdd, p, z), p)
		}, func(x, y, z float64) float64 { return (float64(x*y) + z) / float64(x*y) }},
		{"a quotient", 0, func(b *ir.Builder, x, y, z ir.Value) ir.Value {
			return b.Op(ir.OpAdd, b.Op(ir.OpDiv, x, y), z)
		}, func(x, y, z float64) float64 { return x/y + z }},
		{"a quotient by a constant", 0, func(b *ir.Builder, x, y, z ir.Value) ir.Value {
			return b.Op(ir.OpAdd, b.Op(ir.OpDiv, x, number(b, 180)), b.Op(ir.OpDiv, y, number(b, 0)))
		}, func(x, y, z float64) float64 { return float64(x*(1/180.)) + y/float64(z-z) }},
		{"in a loop", 1, func(b *ir.Builder, x, y, z ir.Value) ir.Value {
			return counted(b, 0, 5, 1, []ir.Value{z}, func(i ir.Value, c []ir.Value) []ir.Value {
				return []ir.Value{b.Op(ir.OpAdd, c[0], b.Op(ir.OpMul, x, c[0]))}
			})[0]
		}, func(x, y, z float64) float64 {
			for range 5 {
				z = math.FMA(x, z, z)
			}
			return z
		}},
		{"x^3", 0, func(b *ir.Builder, x, y, z ir.Value) ir.Value {
			return b.Math(mathFn(t, "math.Pow"), x, number(b, 3))
		}, func(x, y, z float64) float64 { return float64(x*x) * x }},
		{"x^4", 0, func(b *ir.Builder, x, y, z ir.Value) ir.Value {
			return b.Math(mathFn(t, "math.Pow"), x, number(b, 4))
		}, func(x, y, z float64) float64 { return float64(x*x) * float64(x*x) }},
		{"1/x + y", 0, func(b *ir.Builder, x, y, z ir.Value) ir.Value {
			return b.Op(ir.OpAdd, b.Math(mathFn(t, "math.Pow"), x, number(b, -1)), y)
		}, func(x, y, z float64) float64 { return 1/x + y }},
		{"sin", 0, func(b *ir.Builder, x, y, z ir.Value) ir.Value {
			return b.Math(mathFn(t, "math.Sin"), x)
		}, func(x, y, z float64) float64 {
			return ir.ToF64(mathFn(t, "math.Sin.fast").Row().Eval([]ir.Bits{ir.FromF64(x)}))
		}},
	} {
		f := ir.NewFunc(c.name, ir.F64)
		x, y, z := f.AddParam("x", ir.F64), f.AddParam("y", ir.F64), f.AddParam("z", ir.F64)
		b := ir.NewBuilder(f)
		b.Yield(c.body(b, x, y, z))
		text := f.String()
		g := ir.Relax(f)
		if err := ir.Verify(g); err != nil {
			t.Fatal(err)
		}
		if f.String() != text {
			t.Errorf("%s: the function itself was changed", c.name)
		}
		fmas := 0
		ir.Walk(g.Body, func(in *ir.Instr) {
			if in.Op == ir.OpMath && in.Fn.String() == "math.FMA" {
				fmas++
			}
			if in.Op == ir.OpMath && in.Fn.String() == "math.Pow" {
				t.Errorf("%s: a power is left", c.name)
			}
		})
		if fmas != c.fmas {
			t.Errorf("%s: %d fused operations, not %d\n%v", c.name, fmas, c.fmas, g)
		}
		r := rand.New(rand.NewPCG(3, 4))
		for range 200 {
			x, y, z := r.NormFloat64(), r.NormFloat64(), r.NormFloat64()
			want := c.want(x, y, z)
			got, err := new(ir.Evaluator).Run(g, ir.FromF64(x), ir.FromF64(y), ir.FromF64(z))
			if err != nil || ir.ToF64(got[0]) != want {
				t.Errorf("%s of %v, %v, %v: %v, not %v (%v)", c.name, x, y, z, ir.ToF64(got[0]), want, err)
			}
		}
	}
}

// TestRelaxRandom: with every fused operation taken apart again a function does what it
// did.
func TestRelaxRandom(t *testing.T) {
	fast := map[string]bool{"math.FMA": true, "math.Pow": true}
	for i := range ir.NumMath() {
		fast[ir.MathFn(i).Row().Fast] = true
	}
	fused := 0
	for k, o := range []irtest.Options{{Faults: true}, {Memory: true, Faults: true}, {Memory: true, Threads: true}} {
		o.Math = func(fn ir.MathFn) bool { return !fast[fn.String()] && fn.Row().Fast == "" }
		for seed := range uint64(60) {
			r := rand.New(rand.NewPCG(seed, uint64(k)+31))
			f := irtest.Random(r, fmt.Sprint("f", seed), o)
			g := ir.Relax(ir.Optimize(f))
			if err := ir.Verify(g); err != nil {
				t.Fatalf("seed %d: %v\n%v\n%v", seed, err, f, g)
			}
			takeApart(g, g.Body, &fused)
			if err := ir.Verify(g); err != nil {
				t.Fatal(err)
			}
			in := irtest.NewInputs(r, f, 2, 3)
			if err := in.Evaluate(f).Compare(f, in.Evaluate(g)); err != nil {
				t.Fatalf("seed %d: %v\n%v\n%v", seed, err, f, g)
			}
		}
	}
	// Sums and products alone, in ifs and loops.
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 99))
		f := ir.NewFunc(fmt.Sprint("f", seed), ir.F64, ir.F64)
		scope := []ir.Value{f.AddParam("x", ir.F64), f.AddParam("y", ir.F64), f.AddParam("z", ir.F64)}
		b := ir.NewBuilder(f)
		pick := func() ir.Value { return scope[len(scope)-1-min(r.IntN(len(scope)), r.IntN(len(scope)))] }
		var statements func(depth int)
		statements = func(depth int) {
			for range 2 + r.IntN(5) {
				switch k := r.IntN(14); {
				case k < 6:
					scope = append(scope, b.Op(ir.OpMul, pick(), pick()))
				case k < 9:
					scope = append(scope, b.Op(ir.OpAdd, pick(), pick()))
				case k < 12:
					scope = append(scope, b.Op(ir.OpSub, pick(), pick()))
				case k == 12 && depth < 3:
					n := len(scope)
					arm := func() {
						statements(depth + 1)
						b.Yield(pick())
						scope = scope[:n]
					}
					scope = append(scope, b.If(b.Op(ir.OpLt, pick(), pick()), []ir.Type{ir.F64}, arm, arm)...)
				case depth < 2:
					n := len(scope)
					scope = append(scope, counted(b, 0, 3, 1, []ir.Value{pick(), pick()}, func(i ir.Value, c []ir.Value) []ir.Value {
						scope = append(scope, c...)
						statements(depth + 1)
						next := []ir.Value{pick(), pick()}
						scope = scope[:n]
						return next
					})...)
				default:
					scope = append(scope, b.Const(ir.F64, ir.FromF64(r.NormFloat64())))
				}
			}
		}
		statements(0)
		all := scope[0]
		for _, v := range scope {
			all = b.Op([]ir.Op{ir.OpAdd, ir.OpSub}[r.IntN(2)], all, b.Op(ir.OpMul, v, pick()))
		}
		b.Yield(pick(), all)
		g := ir.Relax(f)
		takeApart(g, g.Body, &fused)
		if err := ir.Verify(g); err != nil {
			t.Fatal(err)
		}
		in := irtest.NewInputs(r, f, 5, 1)
		if err := in.Evaluate(f).Compare(f, in.Evaluate(g)); err != nil {
			t.Fatalf("seed %d: %v\n%v\n%v", seed, err, f, g)
		}
	}
	if fused < 500 {
		t.Errorf("only %d fused operations", fused)
	}
}

func takeApart(f *ir.Func, r *ir.Region, n *int) {
	b := &ir.Builder{F: f, R: &ir.Region{}}
	for _, in := range r.Instrs {
		for _, s := range in.Regions {
			takeApart(f, s, n)
		}
		if in.Op == ir.OpMath && in.Fn.String() == "math.FMA" {
			*n++
			in = ir.Instr{Op: ir.OpAdd, Args: []ir.Value{b.Op(ir.OpMul, in.Args[0], in.Args[1]), in.Args[2]}, Results: in.Results, Pos: in.Pos}
		}
		b.R.Instrs = append(b.R.Instrs, in)
	}
	r.Instrs = b.R.Instrs
}

// TestFastForms: every fast form is near the function it stands for, and gives the
// same for what is special.
func TestFastForms(t *testing.T) {
	special := []float64{0, math.Copysign(0, -1), math.Inf(1), math.Inf(-1), math.NaN(), 1, -1, 2, -2, 0.5, 5e-324, -5e-324, math.MaxFloat64, 1e300, -1e300, 0x1p-1022, 710, -746, 0x1p40, 3}
	r := rand.New(rand.NewPCG(7, 8))
	found := 0
	for i := range ir.NumMath() {
		row := ir.MathFn(i).Row()
		if row.Fast == "" {
			continue
		}
		found++
		of := mathFn(t, row.Fast).Row()
		if row.Libm == "" || row.Out != of.Out || len(row.In) != len(of.In) || row.Result != of.Result {
			t.Errorf("%s is no form of %s", row.Name, of.Name)
		}
		for k := range 20000 {
			a := make([]ir.Bits, len(row.In))
			tame := true
			for j := range a {
				x := r.NormFloat64() * math.Exp(float64(3*r.NormFloat64()))
				if k < 2000 {
					x = special[r.IntN(len(special))]
					tame = tame && math.Abs(x) < 100 && math.Abs(x) > 1e-3
				}
				a[j] = ir.FromF64(x)
			}
			got, want := ir.ToF64(row.Eval(a)), ir.ToF64(of.Eval(a))
			bound := 5.0
			if len(a) == 2 && row.Fast == "math.Pow" && tame && want != 0 {
				bound += math.Abs(math.Log(math.Abs(want))) / 16
			}
			off := math.Abs(got-want) / (math.Nextafter(math.Abs(want), math.Inf(1)) - math.Abs(want))
			if want == 0 || want != want || math.IsInf(want, 0) {
				off = 0
				if ir.Canonical(ir.F64, ir.FromF64(got)) != ir.Canonical(ir.F64, ir.FromF64(want)) {
					off = math.Inf(1)
				}
			}
			if !(off <= bound) && !(row.Fast == "math.Pow" && off <= 60) {
				t.Fatalf("%s(%v, %v) = %v, not %v", row.Name, ir.ToF64(a[0]), ir.ToF64(a[len(a)-1]), got, want)
			}
		}
	}
	if found != 15 {
		t.Errorf("%d fast forms", found)
	}
}
