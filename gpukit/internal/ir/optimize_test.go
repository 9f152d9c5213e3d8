package ir

import "testing"

// abs1 has an early return, so that it inlines into an if with a break.
func abs1() *Func {
	f := NewFunc("abs1", F64)
	x := f.AddParam("x", F64)
	b := NewBuilder(f)
	b.If(b.Op(OpLt, x, b.Const(F64, 0)), nil,
		func() { b.Break(1, b.Op(OpNeg, x)) },
		func() { b.Yield() })
	b.Yield(b.Op(OpMul, x, b.Const(F64, FromF64(1))))
	return f
}

func TestOptimizeMakesStraightCode(t *testing.T) {
	callee := abs1()
	f := NewFunc("f", F64)
	x := f.AddParam("x", F64)
	b := NewBuilder(f)
	y := b.Call(callee, x)[0]
	z := b.Call(callee, b.Op(OpNeg, b.Op(OpNeg, x)))[0]
	b.Yield(b.Op(OpAdd, y, z))
	if err := Verify(f); err != nil {
		t.Fatal(err)
	}
	g := Optimize(f)
	if err := Verify(g); err != nil {
		t.Fatal(err, "\n", g)
	}
	Walk(g.Body, func(in *Instr) {
		if in.Op == OpIf || in.Op == OpCall || in.Op == OpBreak {
			t.Errorf("%v is left in\n%v", in.Op, g)
		}
	})
	for _, v := range []float64{-2, 3, 0} {
		checkSame(t, f, g, FromF64(v))
	}
}

func TestOptimizeLoop(t *testing.T) {
	f := collatz()
	g := Optimize(f)
	if err := Verify(g); err != nil {
		t.Fatal(err, "\n", g)
	}
	for n := range 100 {
		checkSame(t, f, g, Bits(int64(n-3)))
	}
}

func checkSame(t *testing.T, f, g *Func, args ...Bits) {
	t.Helper()
	want, err1 := new(Evaluator).Run(f, args...)
	got, err2 := new(Evaluator).Run(g, args...)
	if (err1 == nil) != (err2 == nil) {
		t.Errorf("%s(%v): %v before, %v after Optimize\n%v", f.Name, args, err1, err2, g)
		return
	}
	for i := range want {
		if Canonical(f.Results[i], want[i]) != Canonical(f.Results[i], got[i]) {
			t.Errorf("%s(%v) = %v before, %v after Optimize\n%v", f.Name, args, want, got, g)
		}
	}
}

// TestInverse: quotients by powers of two become products, others stay.
func TestInverse(t *testing.T) {
	for _, c := range []struct {
		t    Type
		by   float64
		divs int
	}{
		{F64, 2, 0}, {F64, -0.125, 0}, {F64, 0x1p900, 0}, {F64, 0x1p-900, 0}, {F64, 0x1p1001, 1}, {F64, 0x1p-1022, 1}, {F64, 3, 1}, {F64, 0, 1}, {F64, 1.5, 1},
		{F32, 4, 0}, {F32, 0x1p-100, 0}, {F32, 0x1p127, 1}, {F32, 0x1p-149, 1}, {I64, 4, 1},
	} {
		f := NewFunc("f", c.t)
		x := f.AddParam("x", c.t)
		b := NewBuilder(f)
		b.Yield(b.Op(OpDiv, x, b.Const(c.t, Convert(c.t, F64, FromF64(c.by)))))
		g := Optimize(f)
		divs := 0
		Walk(g.Body, func(in *Instr) {
			if in.Op == OpDiv {
				divs++
			}
		})
		if divs != c.divs {
			t.Errorf("%v / %v: %d divisions\n%v", c.t, c.by, divs, g)
		}
		for _, x := range []float64{0, -5e-324, 1, -3, 1e300, 5e-324, 1e-310, -7e-310, 0x1.fffffffffffffp-1000, 1e38, 1e-45, 1.7e-40} {
			checkSame(t, f, g, Convert(c.t, F64, FromF64(x)))
		}
	}
}

// What Optimize made it returns as it is; what was made from it is optimised anew, and
// it is not touched by that.
func TestOptimizeSettles(t *testing.T) {
	f := NewFunc("f", I64)
	x, n := f.AddParam("x", I64), f.AddParam("n", I64)
	b := NewBuilder(f)
	b.Bounds(x, b.Const(I64, 100))
	b.If(b.Op(OpLt, x, n), nil,
		func() { b.Break(1, b.Op(OpMul, x, n)) },
		func() { b.Yield() })
	b.Yield(b.Op(OpAdd, x, n))
	g := Optimize(f)
	if Optimize(g) != g {
		t.Errorf("optimised again:\n%v", g)
	}
	text := g.String()
	for name, h := range map[string]*Func{
		"Assume":   Optimize(Assume(g, map[int]Bits{1: 0})),
		"Redirect": Optimize(Redirect(g, func(c *Func) *Func { return c })),
		"Expand":   Optimize(Expand(g, func(MathFn) (*Func, int) { return nil, 0 })),
		"Flatten":  Flatten(g, 32, 32, 0),
		"Relax":    Relax(g),
		"Narrow":   Narrow(g, true),
	} {
		if err := Verify(h); err != nil {
			t.Errorf("%s: %v\n%v", name, err, h)
		}
		if g.String() != text {
			t.Fatalf("%s changed the function it was given:\n%v\nbefore:\n%s", name, g, text)
		}
		if name != "Assume" {
			checkSame(t, f, h, 7, 3)
			checkSame(t, f, h, 3, 7)
		}
	}
	one := NewFunc("one", I64)
	x, n = one.AddParam("x", I64), one.AddParam("n", I64)
	b = NewBuilder(one)
	b.Yield(b.Op(OpMul, x, n))
	if h := Optimize(Assume(Optimize(one), map[int]Bits{1: 1})); len(h.Body.Instrs) != 1 {
		t.Errorf("x*1 is not x in\n%v", h)
	}
}
