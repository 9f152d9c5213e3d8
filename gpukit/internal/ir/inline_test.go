package ir

import "testing"

// TestOutline: calls of a function marked so stay, through Inline and Optimize,
// also those inside a body that is put in place, with the memories they are
// given.
func TestOutline(t *testing.T) {
	g := NewFunc("g", F64)
	a, x := g.AddArray("a", F64, 1), g.AddParam("x", F64)
	b := NewBuilder(g)
	b.If(b.Op(OpLt, x, b.Const(F64, 0)), nil, func() { b.Break(1, b.Op(OpNeg, x)) }, func() { b.Yield() })
	b.Yield(b.Op(OpAdd, x, b.Load(a.Mem, a.Offset)))
	g.Outline = true
	h := NewFunc("h", F64)
	ha, hx := h.AddArray("a", F64, 1), h.AddParam("x", F64)
	b = NewBuilder(h)
	args := []Value{ha.Offset, ha.Shape[0], ha.Stride[0]}
	b.Yield(b.Op(OpMul, b.CallMems(g, []Mem{ha.Mem}, append(args, hx)...)[0], b.Const(F64, FromF64(2))))
	f := NewFunc("f", F64)
	f.AddMem(Memory{Name: "other", Elem: F64})
	fa, fx := f.AddArray("a", F64, 1), f.AddParam("x", F64)
	b = NewBuilder(f)
	args = []Value{fa.Offset, fa.Shape[0], fa.Stride[0]}
	b.Yield(b.Op(OpSub, b.CallMems(h, []Mem{fa.Mem}, append(args, fx)...)[0], b.CallMems(g, []Mem{fa.Mem}, append(args, fx)...)[0]))
	for _, k := range []*Func{f, Inline(f), Optimize(f), Optimize(Optimize(f))} {
		if err := Verify(k); err != nil {
			t.Fatal(err)
		}
		calls := 0
		Walk(k.Body, func(in *Instr) {
			if in.Op == OpCall && in.Callee == g {
				calls++
			}
		})
		if k != f && calls != 2 {
			t.Errorf("%d calls of g\n%v", calls, k)
		}
		for x, want := range map[float64]float64{3: 10, -4: 4} {
			out, err := new(Evaluator).RunWorker(k, []Storage{cells{0}, cells{0, FromF64(7)}}, []Bits{1, 1, 1, FromF64(x)})
			if err != nil || ToF64(out[0]) != want {
				t.Errorf("f(%v) = %v, %v, want %v\n%v", x, ToF64(out[0]), err, want, k)
			}
		}
	}
	if !Optimize(g).Outline {
		t.Error("the mark is lost")
	}
}
