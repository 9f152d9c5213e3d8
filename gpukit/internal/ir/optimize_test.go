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
