package frontend

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"gpunotes/gpukit/internal/ir"
	"gpunotes/gpukit/internal/ir/irtest"
)

// TestLibmText compiles every function of the library from its text and compares
// it, in the reference evaluator, with the function that the Go compiler made.
func TestLibmText(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 12))
	for i := range ir.NumMath() {
		fn := ir.MathFn(i)
		row := fn.Row()
		if row.Libm == "" {
			continue
		}
		if body, _ := MathBody(fn); body == nil {
			t.Logf("%s: no text yet", row.Name)
			continue
		}
		f := ir.NewFunc(row.Name, row.Out)
		var args []ir.Value
		for _, in := range row.In {
			args = append(args, f.AddParam("x", in))
		}
		b := ir.NewBuilder(f)
		b.Yield(b.Math(fn, args...))
		g := ir.Expand(f, MathBody)
		if err := ir.Verify(g); err != nil {
			t.Errorf("%s: %v", row.Name, err)
			continue
		}
		ir.Walk(ir.Inline(g).Body, func(in *ir.Instr) {
			if in.Op == ir.OpMath && in.Fn.Row().Libm != "" {
				t.Errorf("%s: %v is left", row.Name, in.Fn)
			}
		})
		optimised := ir.Optimize(g)
		ev := &ir.Evaluator{}
		for k := range 600 {
			a := make([]ir.Bits, len(args))
			for j, in := range row.In {
				a[j] = irtest.Value(r, in)
				if k%2 == 0 {
					a[j] = ir.Wrap(in, r.Uint64())
				}
			}
			want := ir.Canonical(row.Out, row.Eval(a))
			for _, h := range []*ir.Func{g, optimised} {
				out, err := ev.Run(h, a...)
				if err != nil || ir.Canonical(row.Out, out[0]) != want {
					t.Fatalf("%s%v: %v, %v, want %s", row.Name, a, out, err, ir.FormatBits(row.Out, want))
				}
			}
		}
	}
}

// TestNarrowText narrows what a user writes, and compares the forms for float32,
// from their text, with it.
func TestNarrowText(t *testing.T) {
	p, err := Compile(parse(t, "narrow.go", `package p
import "math"
func half(x float32) float32 { return float32(math.Exp(float64(-x / 2))) }
func f(x float32) (float32, float32, float64) {
	wave := float32(math.Sin(float64(3*x)))
	return half(wave) * float32(math.Sqrt(float64(x*x))), float32(math.Pow(float64(x), 2.5)), math.Log(float64(x))
}`).input("f"))
	if err != nil {
		t.Fatal(err)
	}
	names := func(f *ir.Func) string {
		var s []string
		ir.Walk(ir.Inline(f).Body, func(in *ir.Instr) {
			if in.Op == ir.OpMath {
				s = append(s, in.Fn.String())
			}
		})
		slices.Sort(s)
		return strings.Join(s, " ")
	}
	r := rand.New(rand.NewPCG(13, 14))
	for _, c := range []struct {
		f     *ir.Func
		calls string
	}{
		{ir.Narrow(p.Func, false), "math.Exp.f32 math.Log math.Pow math.Sin.f32 math.Sqrt.f32"},
		{ir.Narrow(p.Func, true), "math.Exp.f32 math.Log math.Pow.f32 math.Sin.f32 math.Sqrt.f32"},
	} {
		if got := names(c.f); got != c.calls {
			t.Errorf("calls %s, not %s", got, c.calls)
		}
		g := ir.Optimize(ir.Expand(c.f, MathBody))
		if err := ir.Verify(g); err != nil {
			t.Fatal(err)
		}
		for range 2000 {
			x := ir.FromF32(math.Float32frombits(r.Uint32()))
			want, _ := new(ir.Evaluator).Run(p.Func, x)
			got, err := new(ir.Evaluator).Run(g, x)
			for i, res := range p.Func.Results {
				if err != nil || ir.Canonical(res, got[i]) != ir.Canonical(res, want[i]) {
					t.Fatalf("result %d of %v: %#x, not %#x (%v)", i, ir.ToF32(x), got[i], want[i], err)
				}
			}
		}
	}
}
