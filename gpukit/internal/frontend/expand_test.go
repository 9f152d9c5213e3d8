package frontend

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"gpunotes/gpukit/internal/ir"
	"gpunotes/gpukit/internal/ir/irtest"
	"gpunotes/gpukit/internal/libm"
)

// TestLibmText compiles every function of the library from its text and compares
// it, in the reference evaluator, with the function that the Go compiler made: with
// MathBody and with OutlinedBody.
func TestLibmText(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 12))
	for i := range ir.NumMath() {
		fn := ir.MathFn(i)
		row := fn.Row()
		if row.Libm == "" {
			continue
		}
		if body, _ := MathBody(fn); body == nil {
			t.Errorf("%s: libm has no text of %s", row.Name, row.Libm)
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
		optimised, apart := ir.Optimize(g), ir.Optimize(ir.Expand(f, OutlinedBody))
		if err := ir.Verify(apart); err != nil {
			t.Fatal(err)
		}
		ev := &ir.Evaluator{}
		for k := range 300 {
			a := make([]ir.Bits, len(args))
			for j, in := range row.In {
				a[j] = irtest.Value(r, in)
				if k%2 == 0 {
					a[j] = ir.Wrap(in, r.Uint64())
				}
			}
			want := ir.Canonical(row.Out, row.Eval(a))
			for _, h := range []*ir.Func{g, optimised, apart} {
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

// TestLooseText puts NaNs of all kinds where functions of the library look at the bits
// of one.
func TestLooseText(t *testing.T) {
	r := rand.New(rand.NewPCG(15, 16))
	nan := ir.FromF64(math.NaN())
	found := 0
	for i := range ir.NumMath() {
		fn := ir.MathFn(i)
		row := fn.Row()
		for _, body := range []func(ir.MathFn) (*ir.Func, int){MathBody, OutlinedBody} {
			if g, _ := body(fn); g == nil {
				continue
			}
			f := ir.NewFunc(row.Name, row.Out)
			var args []ir.Value
			for _, in := range row.In {
				args = append(args, f.AddParam("x", in))
			}
			b := ir.NewBuilder(f)
			b.Yield(b.Math(fn, args...))
			g := ir.Optimize(ir.Expand(f, body))
			any := g.AddParam("nan", ir.F64)
			kinds := []ir.Bits{0x7ff8000000000000, 0xfff8000000000000, 0x7ff0000000000001, 0xfff0000000000001, 0x7fffffffffffffff, 0xffffffffffffffff}
			disturb(g, any, kinds[i%len(kinds)], &found)
			if err := ir.Verify(g); err != nil {
				t.Fatal(err)
			}
			for k := range 150 {
				a := make([]ir.Bits, len(args), len(args)+1)
				for j, in := range row.In {
					switch a[j] = irtest.Value(r, in); {
					case in == ir.F64 && k%3 == 0:
						a[j] = nan ^ r.Uint64()>>13 ^ r.Uint64()<<63 | 1<<51
					case in == ir.F32 && k%3 == 0:
						a[j] = ir.Wrap(ir.U32, 0x7fc00000^r.Uint64()>>42^r.Uint64()<<31)
					case k%2 == 0:
						a[j] = ir.Wrap(in, r.Uint64())
					}
				}
				bits := kinds[k%len(kinds)]
				out, err := (&ir.Evaluator{Steps: 1e5}).Run(g, append(a, bits)...)
				if want := ir.Canonical(row.Out, row.Eval(a)); err == nil && ir.Canonical(row.Out, out[0]) != want {
					t.Fatalf("%s(%#x) with %#x: %s, not %s", row.Name, a, bits, ir.FormatBits(row.Out, out[0]), ir.FormatBits(row.Out, want))
				}
			}
		}
	}
	if found < 100 {
		t.Errorf("%d loose forms", found)
	}
}

// disturb makes every NaN that loose forms in f look at be any, a value of f, and
// those in what it calls of these bits.
func disturb(f *ir.Func, any ir.Value, bits ir.Bits, found *int) {
	isNaN, _ := ir.LookupMath("math.IsNaN")
	var region func(r *ir.Region)
	region = func(r *ir.Region) {
		b := &ir.Builder{F: f, R: &ir.Region{}}
		for _, in := range r.Instrs {
			for _, s := range in.Regions {
				region(s)
			}
			if in.Op == ir.OpCall && in.Callee.Outline {
				h := ir.Expand(ir.Optimize(in.Callee), func(ir.MathFn) (*ir.Func, int) { return nil, 0 }) // a copy
				disturb(h, -1, bits, found)
				in.Callee = h
			}
			if in.Op == ir.OpMath && in.Fn.Row().Loose != "" {
				*found++
				in.Args = slices.Clone(in.Args)
				x, y := &in.Args[len(in.Args)-1], any
				if y < 0 {
					y = b.Const(ir.F64, bits)
				}
				*x = b.Op(ir.OpSelect, b.Math(isNaN, *x), y, *x)
			}
			b.R.Instrs = append(b.R.Instrs, in)
		}
		r.Instrs = b.R.Instrs
	}
	region(f.Body)
}

// TestOutlinedBody: the functions that are rarely reached are there, and functions that
// reach the same one for the same operands share the call.
func TestOutlinedBody(t *testing.T) {
	for _, name := range libm.Rare {
		if libmText().decls[name].Func == nil {
			t.Errorf("libm has no %s", name)
		}
	}
	of := func(name string) ir.MathFn {
		fn, ok := ir.LookupMath(name)
		if !ok {
			t.Fatal(name)
		}
		return fn
	}
	f := ir.NewFunc("f", ir.F64)
	x := f.AddParam("x", ir.F64)
	b := ir.NewBuilder(f)
	sum := b.Const(ir.F64, 0)
	for _, name := range []string{"math.Sin", "math.Cos", "math.Tan", "math.Sin"} {
		sum = b.Op(ir.OpAdd, sum, b.Math(of(name), x))
	}
	for _, name := range []string{"math.Exp", "math.Log", "math.Pow"} {
		args := []ir.Value{x, sum}[:len(of(name).Row().In)]
		sum = b.Op(ir.OpAdd, sum, b.Math(of(name), args...))
	}
	b.Yield(sum)
	count := func(f *ir.Func) (ifs int, calls []string) {
		ir.Walk(f.Body, func(in *ir.Instr) {
			switch in.Op {
			case ir.OpIf:
				ifs++
			case ir.OpCall:
				calls = append(calls, in.Callee.Name)
			}
		})
		slices.Sort(calls)
		return ifs, calls
	}
	ifs, calls := count(ir.Flatten(ir.Expand(f, OutlinedBody), 24, 24, 0))
	if want := []string{"expRare", "hugeQuarterTurns", "logRare", "powRare"}; ifs != 4 || !slices.Equal(calls, want) {
		t.Errorf("%d ifs, calls of %v, not 4 and %v", ifs, calls, want)
	}
	if _, calls := count(ir.Optimize(ir.Expand(f, MathBody))); calls != nil {
		t.Errorf("MathBody leaves calls of %v", calls)
	}
}
