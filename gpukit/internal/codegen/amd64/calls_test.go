package amd64_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"gpunotes/gpukit/internal/codegen/amd64"
	"gpunotes/gpukit/internal/ir"
	"gpunotes/gpukit/internal/ir/irtest"
)

// callsOf is a function that calls g for some lanes, in a loop that lanes leave at different times,
// and hands out the results of the last call. Its parameters are those of g, then how often, then
// whether.
func callsOf(g *ir.Func) *ir.Func {
	f := ir.NewFunc("calls "+g.Name, append(append([]ir.Type{}, g.Results...), ir.I64)...)
	f.Mems = append(f.Mems, g.Mems...)
	var bound []ir.Mem
	for i, m := range g.Mems {
		if m.Space == ir.Global {
			bound = append(bound, ir.Mem(i))
		}
	}
	var args []ir.Value
	for i, p := range g.Params {
		args = append(args, f.AddParam(fmt.Sprint("a", i), g.Types[p.Value]))
	}
	often, some := f.AddParam("often", ir.I64), f.AddParam("some", ir.Bool)
	b := ir.NewBuilder(f)
	limit := b.Op(ir.OpAnd, often, b.Const(ir.I64, 3))
	init := []ir.Value{b.Const(ir.I64, 0)}
	for _, t := range g.Results {
		init = append(init, b.Const(t, 0))
	}
	out := b.Loop(init, f.Results, func(c []ir.Value) {
		b.If(b.Op(ir.OpGe, c[0], limit), nil, func() { b.Break(1, append(append([]ir.Value{}, c[1:]...), c[0])...) }, func() { b.Yield() })
		odd := b.Op(ir.OpEq, b.Op(ir.OpAnd, c[0], b.Const(ir.I64, 1)), b.Const(ir.I64, 1))
		res := b.If(b.Op(ir.OpOr, some, odd), g.Results, func() {
			b.Yield(b.CallMems(g, bound, args...)...)
		}, func() { b.Yield(c[1:]...) })
		b.Yield(append([]ir.Value{b.Op(ir.OpAdd, c[0], b.Const(ir.I64, 1))}, res...)...)
	})
	b.Yield(out...)
	return f
}

// checkCalls runs f with random arguments.
func checkCalls(t *testing.T, f *ir.Func, seed uint64, mems func(r *rand.Rand) [][]ir.Bits) {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 41))
	w := &world{f: f}
	same := make([]ir.Bits, len(f.Params))
	for i, p := range f.Params {
		w.in = append(w.in, []amd64.Access{amd64.Unit, amd64.Unit, amd64.Same}[r.IntN(3)])
		same[i] = irtest.Value(r, f.Types[p.Value])
	}
	for range 1 + r.IntN(50) {
		var args []ir.Bits
		for i, p := range f.Params {
			x := irtest.Value(r, f.Types[p.Value])
			if w.in[i] == amd64.Same {
				x = same[i]
			}
			args = append(args, x)
		}
		w.args = append(w.args, args)
	}
	if mems != nil {
		w.mems = mems(r)
	}
	w.check(t, seed)
}

// TestCallsRandom calls random functions, which have loops and may fail.
func TestCallsRandom(t *testing.T) {
	seeds := uint64(40)
	if testing.Short() {
		seeds = 20
	}
	for seed := range seeds {
		r := rand.New(rand.NewPCG(seed, 42))
		o := irtest.Options{Faults: seed%3 == 0, Math: func(ir.MathFn) bool { return false }, Statements: 30}
		switch seed % 3 {
		case 0:
			o.Types = []ir.Type{ir.F64, ir.I64, ir.U64}
		case 1:
			o.Types = []ir.Type{ir.F32, ir.I32, ir.F32, ir.I32}
		}
		g := irtest.Random(r, fmt.Sprint("outlined", seed), o)
		g.Outline = true
		checkCalls(t, callsOf(g), seed, nil)
	}
}

// TestCallsNested has a function that calls one twice and another one, which is called from outside
// as well, with bools and several results.
func TestCallsNested(t *testing.T) {
	inner := ir.NewFunc("inner", ir.F64, ir.Bool)
	x, p := inner.AddParam("x", ir.F64), inner.AddParam("p", ir.Bool)
	inner.Outline = true
	b := ir.NewBuilder(inner)
	// Halves until it is below 1, at most ten times.
	out := b.Loop([]ir.Value{x, b.Const(ir.I64, 0)}, []ir.Type{ir.F64, ir.Bool}, func(c []ir.Value) {
		b.If(b.Op(ir.OpOr, b.Op(ir.OpLt, c[0], b.Const(ir.F64, f64(1))), b.Op(ir.OpGe, c[1], b.Const(ir.I64, 10))), nil,
			func() { b.Break(1, c[0], b.Op(ir.OpXor, p, b.Op(ir.OpLt, c[1], b.Const(ir.I64, 3)))) }, func() { b.Yield() })
		b.Yield(b.Op(ir.OpMul, c[0], b.Const(ir.F64, f64(0.5))), b.Op(ir.OpAdd, c[1], b.Const(ir.I64, 1)))
	})
	b.Yield(out...)

	middle := ir.NewFunc("middle", ir.Bool, ir.F64)
	y, n := middle.AddParam("y", ir.F64), middle.AddParam("n", ir.I32)
	middle.Outline = true
	b = ir.NewBuilder(middle)
	first := b.Call(inner, y, b.Op(ir.OpLt, n, b.Const(ir.I32, 5)))
	res := b.If(first[1], []ir.Type{ir.F64, ir.Bool}, func() {
		b.Yield(b.Call(inner, b.Op(ir.OpMul, y, b.Const(ir.F64, f64(3))), first[1])...)
	}, func() { b.Yield(b.Convert(ir.F64, n), b.Const(ir.Bool, 1)) })
	b.Yield(b.Op(ir.OpAnd, res[1], first[1]), b.Op(ir.OpAdd, res[0], first[0]))

	outer := ir.NewFunc("outer", ir.F64, ir.Bool)
	z, k := outer.AddParam("z", ir.F64), outer.AddParam("k", ir.I32)
	b = ir.NewBuilder(outer)
	one := b.Call(middle, z, k)
	two := b.Call(inner, one[1], one[0])
	three := b.Call(middle, two[0], b.Op(ir.OpXor, k, b.Const(ir.I32, 3)))
	b.Yield(b.Op(ir.OpSub, three[1], one[1]), b.Op(ir.OpXor, two[1], three[0]))
	for seed := range uint64(30) {
		checkCalls(t, outer, seed, nil)
		checkCalls(t, callsOf(middle), seed, nil)
	}
}

// TestCallsWithMemories has memories of the caller, of the function's own, and a table.
func TestCallsWithMemories(t *testing.T) {
	g := ir.NewFunc("reads", ir.F64, ir.I32)
	g.Outline = true
	i, x := g.AddParam("i", ir.I64), g.AddParam("x", ir.F64)
	m := g.AddMem(ir.Memory{Name: "m", Space: ir.Global, Elem: ir.F64})
	own := g.AddMem(ir.Memory{Name: "own", Space: ir.Local, Elem: ir.I32, Len: 4})
	table := g.AddMem(ir.Memory{Name: "table", Space: ir.Constant, Elem: ir.I32, Len: 8, Data: []ir.Bits{3, 1, 4, 1, 5, 9, 2, 6}})
	b := ir.NewBuilder(g)
	b.Pos = ir.Pos{File: "cell 1", Line: 4, Col: 5}
	at := b.Op(ir.OpAnd, i, b.Const(ir.I64, 15))
	b.Bounds(at, b.Const(ir.I64, 15)) // now and then it fails
	b.Store(own, b.Op(ir.OpAnd, i, b.Const(ir.I64, 3)), b.Load(table, b.Op(ir.OpAnd, i, b.Const(ir.I64, 7))))
	sum := b.Op(ir.OpAdd, b.Load(own, b.Const(ir.I64, 0)), b.Load(own, b.Op(ir.OpAnd, i, b.Const(ir.I64, 3))))
	b.Yield(b.Op(ir.OpAdd, b.Load(m, at), x), sum)
	f := callsOf(g)
	f.Mems = f.Mems[:1] // the others are the callee's
	for seed := range uint64(40) {
		checkCalls(t, f, seed, func(r *rand.Rand) [][]ir.Bits {
			var data []ir.Bits
			for range 16 {
				data = append(data, irtest.Value(r, ir.F64))
			}
			return [][]ir.Bits{data}
		})
	}
}
