package ir

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
)

// TestSingles: every form for float32 is what its row says, on operands of all
// kinds.
func TestSingles(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	special := []float32{0, float32(math.Copysign(0, -1)), 1, -1, 0.5, 2, 1e-45, -1e-45, 1e-38, math.MaxFloat32, float32(math.Inf(1)), float32(math.Inf(-1)), float32(math.NaN()), 2.5, 1e7, 3e9}
	found := 0
	for i := range NumMath() {
		row := MathFn(i).Row()
		if row.Single == "" {
			continue
		}
		found++
		fn, ok := LookupMath(row.Single)
		if !ok {
			t.Fatalf("%s is a form of %s, which is not there", row.Name, row.Single)
		}
		if row.Identical && len(row.In) > 1 {
			t.Errorf("%s: two operands cannot all be tried", row.Name)
		}
		for k := range 20000 {
			var a, b []Bits
			for range row.In {
				x := math.Float32frombits(r.Uint32())
				if k < 2000 {
					x = special[r.IntN(len(special))]
				}
				a, b = append(a, FromF32(x)), append(b, FromF64(float64(x)))
			}
			got, want := row.Eval(a), FromF32(float32(ToF64(fn.Row().Eval(b))))
			if Canonical(F32, got) != Canonical(F32, want) {
				t.Fatalf("%s(%v) = %v, not %v", row.Name, ToF32(a[0]), ToF32(got), ToF32(want))
			}
		}
	}
	if found < 18 {
		t.Errorf("%d forms for float32", found)
	}
}

func TestNarrow(t *testing.T) {
	of := func(name string) MathFn {
		fn, ok := LookupMath(name)
		if !ok {
			t.Fatal(name)
		}
		return fn
	}
	single := func(b *Builder, name string, x Value) Value {
		return b.Convert(F32, b.Math(of(name), b.Convert(F64, x)))
	}
	for _, c := range []struct {
		name string
		body func(b *Builder, x Value) Value // of a float32
		// which functions are called, as the user wrote it, for the same bits, and fast
		plain, narrow, fast string
	}{
		{"sin", func(b *Builder, x Value) Value { return single(b, "math.Sin", x) }, "math.Sin", "math.Sin.f32", "math.Sin.f32"},
		{"a chain", func(b *Builder, x Value) Value { return single(b, "math.Exp", single(b, "math.Sqrt", x)) },
			"math.Sqrt math.Exp", "math.Sqrt.f32 math.Exp.f32", "math.Sqrt.f32 math.Exp.f32"},
		{"no conversion in between", func(b *Builder, x Value) Value {
			return b.Convert(F32, b.Math(of("math.Exp"), b.Math(of("math.Sqrt"), b.Convert(F64, x))))
		}, "math.Sqrt math.Exp", "math.Sqrt math.Exp", "math.Sqrt math.Exp"},
		{"used twice", func(b *Builder, x Value) Value {
			y := b.Math(of("math.Sin"), b.Convert(F64, x))
			return b.Op(OpMul, b.Convert(F32, y), b.Convert(F32, b.Op(OpAdd, y, y)))
		}, "math.Sin", "math.Sin", "math.Sin"},
		{"a sum is no form", func(b *Builder, x Value) Value {
			return b.Convert(F32, b.Math(of("math.Sin"), b.Op(OpAdd, b.Convert(F64, x), b.Convert(F64, x))))
		}, "math.Sin", "math.Sin", "math.Sin"},
		{"to an integer", func(b *Builder, x Value) Value {
			return b.Convert(F32, b.Convert(I64, b.Math(of("math.Floor"), b.Convert(F64, x))))
		}, "math.Floor", "math.Floor", "math.Floor"},
		{"two operands", func(b *Builder, x Value) Value {
			return b.Convert(F32, b.Math(of("math.Pow"), b.Convert(F64, x), b.Convert(F64, x)))
		}, "math.Pow", "math.Pow", "math.Pow.f32"},
		{"a constant", func(b *Builder, x Value) Value {
			return b.Convert(F32, b.Math(of("math.Pow"), b.Convert(F64, x), b.Const(F64, FromF64(1.5))))
		}, "math.Pow", "math.Pow", "math.Pow.f32"},
		{"a constant that is no float32", func(b *Builder, x Value) Value {
			return b.Convert(F32, b.Math(of("math.Pow"), b.Convert(F64, x), b.Const(F64, FromF64(0.1))))
		}, "math.Pow", "math.Pow", "math.Pow"},
		{"no form", func(b *Builder, x Value) Value { return single(b, "math.Gamma", x) }, "math.Gamma", "math.Gamma", "math.Gamma"},
		{"in a region", func(b *Builder, x Value) Value {
			v := b.Convert(F64, x)
			return b.If(b.Op(OpLt, x, b.Const(F32, 0)), []Type{F32}, func() { b.Yield(x) }, func() { b.Yield(b.Convert(F32, b.Math(of("math.Log"), v))) })[0]
		}, "math.Log", "math.Log.f32", "math.Log.f32"},
		{"in a callee", func(b *Builder, x Value) Value {
			g := NewFunc("g", F32)
			p := g.AddParam("p", F32)
			gb := NewBuilder(g)
			gb.Yield(single(gb, "math.Cos", p))
			return single(b, "math.Abs", b.Call(g, b.Call(g, x)[0])[0])
		}, "math.Cos math.Cos math.Abs", "math.Cos.f32 math.Cos.f32 math.Abs.f32", "math.Cos.f32 math.Cos.f32 math.Abs.f32"},
	} {
		f := NewFunc(c.name, F32)
		x := f.AddParam("x", F32)
		b := NewBuilder(f)
		b.Yield(c.body(b, x))
		before := f.String()
		calls := func(g *Func) string {
			var names []string
			Walk(Inline(g).Body, func(in *Instr) {
				if in.Op == OpMath {
					names = append(names, in.Fn.String())
				}
			})
			return strings.Join(names, " ")
		}
		narrow, fast := Narrow(f, false), Narrow(f, true)
		for _, g := range []struct {
			f    *Func
			want string
		}{{f, c.plain}, {narrow, c.narrow}, {fast, c.fast}, {Optimize(narrow), c.narrow}} {
			if err := Verify(g.f); err != nil {
				t.Errorf("%s: %v", c.name, err)
			}
			if got := calls(g.f); got != g.want {
				t.Errorf("%s: calls %s, not %s\n%v", c.name, got, g.want, g.f)
			}
		}
		if f.String() != before {
			t.Errorf("%s: the function itself was changed", c.name)
		}
		for _, x := range []float32{0, -1.5, 0.7, 3, 1e10, 1e-40, float32(math.Inf(1)), float32(math.NaN())} {
			want, _ := new(Evaluator).Run(f, FromF32(x))
			got, err := new(Evaluator).Run(narrow, FromF32(x))
			if err != nil || Canonical(F32, got[0]) != Canonical(F32, want[0]) {
				t.Errorf("%s of %v: %v, not %v (%v)", c.name, x, ToF32(got[0]), ToF32(want[0]), err)
			}
		}
	}
}
