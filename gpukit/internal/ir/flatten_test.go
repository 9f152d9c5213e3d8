package ir_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"gpunotes/gpukit/internal/ir"
	"gpunotes/gpukit/internal/ir/irtest"
)

// TestFlattenRandom compares random functions with what Flatten makes of them.
func TestFlattenRandom(t *testing.T) {
	ifs := func(f *ir.Func) (n int) {
		ir.Walk(f.Body, func(in *ir.Instr) {
			if in.Op == ir.OpIf {
				n++
			}
		})
		return n
	}
	before, after := 0, 0
	for k, o := range []irtest.Options{{Faults: true}, {Memory: true, Faults: true}, {Statements: 200}} {
		for seed := range uint64(100) {
			r := rand.New(rand.NewPCG(seed, uint64(k)+5))
			f := irtest.Random(r, fmt.Sprint("f", seed), o)
			limit := []int{0, 24, 1000}[seed%3]
			g := ir.Flatten(f, limit, limit, 2*limit)
			if err := ir.Verify(g); err != nil {
				t.Fatalf("seed %d, %+v: %v\n%v\n%v", seed, o, err, f, g)
			}
			if seed%3 == 2 {
				before += ifs(ir.Optimize(f))
				after += ifs(g)
			}
			for _, group := range []int{1, 5} {
				in := irtest.NewInputs(r, f, 3, group)
				if err := in.Evaluate(f).Compare(f, in.Evaluate(g)); err != nil {
					t.Fatalf("seed %d, %+v, blocks of %d: %v\n%v\n%v", seed, o, group, err, f, g)
				}
			}
		}
	}
	if after >= before {
		t.Errorf("%d ifs of %d", after, before)
	}
	t.Logf("%d ifs of %d are left", after, before)
}

// TestFlattenRare: what is called, stored and checked is what was, in the same order.
func TestFlattenRare(t *testing.T) {
	callee := ir.NewFunc("rare", ir.I64)
	p := callee.AddParam("p", ir.I64)
	cb := ir.NewBuilder(callee)
	cb.Yield(cb.Op(ir.OpDiv, cb.Const(ir.I64, 1000), cb.Op(ir.OpAnd, p, cb.Const(ir.I64, 15)))) // fails for one in 16
	callee.Outline = true
	kept, called := 0, 0
	for seed := range uint64(3000) {
		r := rand.New(rand.NewPCG(seed, 3))
		f := ir.NewFunc(fmt.Sprint("f", seed), ir.I64, ir.I64)
		out := f.AddArray("written", ir.I64, 1)
		b := ir.NewBuilder(f)
		scope := []ir.Value{f.AddParam("x", ir.I64), f.AddParam("y", ir.I64), b.Const(ir.I64, 3)}
		pick := func() ir.Value { return scope[len(scope)-1-min(r.IntN(len(scope)), r.IntN(len(scope)))] }
		var line int32
		var statements func(depth int)
		statements = func(depth int) {
			for range r.IntN(4) {
				line++
				b.Pos = ir.Pos{File: "f", Line: line}
				switch k := r.IntN(12); {
				case k < 5:
					scope = append(scope, b.Op([]ir.Op{ir.OpAdd, ir.OpSub, ir.OpMul, ir.OpXor}[r.IntN(4)], pick(), pick()))
				case k == 5:
					scope = append(scope, b.Call(callee, pick())[0])
				case k == 6 && r.IntN(3) == 0:
					b.Store(out.Mem, out.Offset, b.Op(ir.OpAdd, pick(), b.Load(out.Mem, out.Offset)))
				case depth < 4:
					cond := b.Op([]ir.Op{ir.OpLt, ir.OpEq, ir.OpGe}[r.IntN(3)], b.Op(ir.OpAnd, pick(), b.Const(ir.I64, 7)), b.Const(ir.I64, ir.Bits(r.IntN(8))))
					arm := func() {
						n := len(scope)
						if r.IntN(3) > 0 {
							statements(depth + 1)
						}
						b.Yield(pick(), pick())
						scope = scope[:n]
					}
					scope = append(scope, b.If(cond, []ir.Type{ir.I64, ir.I64}, arm, arm)...)
				}
			}
		}
		for range 3 {
			statements(0)
		}
		b.Yield(pick(), pick())
		limit := []int{0, 5, 1000}[seed%3]
		g := ir.Flatten(f, limit, 1000, 4*limit)
		if err := ir.Verify(g); err != nil {
			t.Fatalf("seed %d: %v\n%v\n%v", seed, err, f, g)
		}
		ir.Walk(f.Body, func(in *ir.Instr) {
			if in.Op == ir.OpIf {
				called++
			}
		})
		ir.Walk(g.Body, func(in *ir.Instr) {
			if in.Op == ir.OpIf {
				kept++
			}
		})
		for range 10 {
			in := irtest.NewInputs(r, f, 3, 1)
			if err := in.Evaluate(f).Compare(f, in.Evaluate(g)); err != nil {
				t.Fatalf("seed %d: %v\n%v\n%v", seed, err, f, g)
			}
		}
	}
	t.Logf("%d ifs of %d are left", kept, called)
	if kept*2 > called {
		t.Errorf("%d ifs of %d are left", kept, called)
	}
}

// TestFlattenShapes: what becomes of typical ifs.
func TestFlattenShapes(t *testing.T) {
	callee := ir.NewFunc("rare", ir.F64)
	cb := ir.NewBuilder(callee)
	cb.Yield(cb.Op(ir.OpDiv, callee.AddParam("p", ir.F64), cb.Const(ir.F64, ir.FromF64(3))))
	callee.Outline = true
	// many writes n instructions.
	many := func(b *ir.Builder, x ir.Value, n int) ir.Value {
		for range n {
			x = b.Op(ir.OpMul, x, x)
		}
		return x
	}
	less := func(b *ir.Builder, x ir.Value, c float64) ir.Value {
		return b.Op(ir.OpLt, x, b.Const(ir.F64, ir.FromF64(c)))
	}
	one := []ir.Type{ir.F64}
	for _, c := range []struct {
		name        string
		both, main  int
		ifs, inside int // left, and the instructions in their arms but calls
		body        func(b *ir.Builder, x ir.Value) ir.Value
	}{
		{"both small", 30, 30, 0, 0, func(b *ir.Builder, x ir.Value) ir.Value {
			return b.If(less(b, x, 1), one, func() { b.Yield(many(b, x, 20)) }, func() { b.Yield(many(b, b.Op(ir.OpNeg, x), 25)) })[0]
		}},
		{"one large", 30, 100, 1, 70, func(b *ir.Builder, x ir.Value) ir.Value {
			return b.If(less(b, x, 1), one, func() { b.Yield(many(b, x, 20)) }, func() { b.Yield(many(b, x, 50)) })[0]
		}},
		{"a special case", 30, 100, 0, 0, func(b *ir.Builder, x ir.Value) ir.Value {
			return b.If(less(b, x, 1), one, func() { b.Yield(x) }, func() { b.Yield(many(b, x, 50)) })[0]
		}},
		{"a user's special case", 30, 30, 1, 50, func(b *ir.Builder, x ir.Value) ir.Value {
			return b.If(less(b, x, 1), one, func() { b.Yield(x) }, func() { b.Yield(many(b, x, 50)) })[0]
		}},
		{"a rare case", 30, 30, 1, 0, func(b *ir.Builder, x ir.Value) ir.Value {
			return b.If(less(b, x, 1), one, func() { b.Yield(many(b, x, 50)) }, func() { b.Yield(b.Call(callee, x)[0]) })[0]
		}},
		{"a rare case in a main case", 30, 200, 1, 0, func(b *ir.Builder, x ir.Value) ir.Value {
			return b.If(less(b, x, -1), one, func() { b.Yield(x) }, func() {
				y := b.If(less(b, x, 1), one, func() { b.Yield(many(b, x, 50)) }, func() { b.Yield(b.Call(callee, x)[0]) })[0]
				b.Yield(many(b, y, 40))
			})[0]
		}},
		{"the same rare case twice", 30, 30, 1, 0, func(b *ir.Builder, x ir.Value) ir.Value {
			var y [2]ir.Value
			for i := range y {
				y[i] = b.If(less(b, x, 1), one, func() { b.Yield(many(b, x, 50)) }, func() { b.Yield(b.Call(callee, x)[0]) })[0]
			}
			return b.Op(ir.OpAdd, y[0], y[1])
		}},
	} {
		f := ir.NewFunc(c.name, ir.F64)
		x := f.AddParam("x", ir.F64)
		b := ir.NewBuilder(f)
		b.Yield(c.body(b, x))
		g := ir.Flatten(f, c.both, c.main, 0)
		ifs, inside := 0, 0
		ir.Walk(g.Body, func(in *ir.Instr) {
			if in.Op == ir.OpIf {
				ifs++
				for _, r := range in.Regions {
					ir.Walk(r, func(in *ir.Instr) {
						if !in.Op.Row().Terminator && in.Op != ir.OpCall && in.Op != ir.OpConst {
							inside++
						}
					})
				}
			}
		})
		if ifs != c.ifs || inside != c.inside {
			t.Errorf("%s: %d ifs, %d instructions in them\n%v", c.name, ifs, inside, g)
		}
		for _, v := range []float64{-3, -1, 0, 0.5, 1, 2} {
			want, _ := new(ir.Evaluator).Run(f, ir.FromF64(v))
			got, err := new(ir.Evaluator).Run(g, ir.FromF64(v))
			if err != nil || ir.Canonical(ir.F64, got[0]) != ir.Canonical(ir.F64, want[0]) {
				t.Errorf("%s of %v: %v, not %v (%v)", c.name, v, got, want, err)
			}
		}
	}
}
