package amd64

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"gpunotes/gpukit/internal/ir"
)

// author writes random functions of the supported operations whose loops end.
type author struct {
	*rand.Rand
	b      *ir.Builder
	scope  []ir.Value
	stack  [][]ir.Type // results of the enclosing constructs
	budget int
	faults bool // operations may fail
}

// RandomFunc writes the function of a seed.
func RandomFunc(seed uint64) *ir.Func {
	a := &author{Rand: rand.New(rand.NewPCG(seed, 7)), faults: seed%3 == 0}
	f := ir.NewFunc(fmt.Sprint("random", seed), a.types(1+a.IntN(3))...)
	a.b = ir.NewBuilder(f)
	for i, t := range append(a.types(a.IntN(4)), ir.F64, ir.I64, ir.Bool) {
		a.see(f.AddParam(fmt.Sprint("p", i), t))
	}
	a.budget = 10 + a.IntN(90)
	a.inside(f.Results, func() {
		a.statements(0)
		a.statements(0)
		a.end(f.Results, 1)
	})
	return f
}

func (a *author) types(n int) []ir.Type {
	var ts []ir.Type
	for range n {
		ts = append(ts, []ir.Type{ir.F64, ir.F64, ir.I64, ir.U64, ir.Bool}[a.IntN(5)])
	}
	return ts
}

func (a *author) see(vs ...ir.Value) { a.scope = append(a.scope, vs...) }

// pick finds a visible value of type t, or makes a constant.
func (a *author) pick(t ir.Type) ir.Value {
	var fit []ir.Value
	for _, v := range a.scope {
		if a.b.F.Types[v] == t {
			fit = append(fit, v)
		}
	}
	if len(fit) == 0 || a.IntN(8) == 0 {
		switch t {
		case ir.Bool:
			return a.b.Const(t, ir.Bits(a.IntN(2)))
		case ir.F64:
			return a.b.Const(t, ir.FromF64([]float64{0, math.Copysign(0, -1), 1, -2.5, math.Inf(1), math.NaN(), 1e300}[a.IntN(7)]))
		}
		return a.b.Const(t, ir.Bits([]int64{0, 1, -1, 5, math.MinInt64, math.MaxInt64, 1 << 40}[a.IntN(7)]))
	}
	return fit[max(a.IntN(len(fit)), a.IntN(len(fit)))]
}

func (a *author) picks(ts []ir.Type) (vs []ir.Value) {
	for _, t := range ts {
		vs = append(vs, a.pick(t))
	}
	return vs
}

func (a *author) operation() {
	t := a.types(1)[0]
	switch a.IntN(12) {
	case 0:
		from, to := a.types(1)[0], a.types(1)[0]
		if from != ir.Bool && to != ir.Bool {
			a.see(a.b.Convert(to, a.pick(from)))
		}
		return
	case 1:
		var names []string
		for n := range mathTable {
			names = append(names, n)
		}
		slices.Sort(names)
		fn, _ := ir.LookupMath(names[a.IntN(len(names))])
		a.see(a.b.Math(fn, a.picks(fn.Row().In)...))
		return
	}
	for range 50 {
		op := ir.Op(a.IntN(int(ir.NumOps)))
		row := op.Row()
		if opTable[op] == nil || row.Result == nil {
			continue
		}
		ts := []ir.Type{t, t, t}[:row.Args]
		switch op {
		case ir.OpSelect:
			ts[0] = ir.Bool
		case ir.OpShl, ir.OpShr:
			ts[1] = ir.U64
		}
		if (op == ir.OpShl || op == ir.OpShr) && a.IntN(3) == 0 {
			ts[1] = ir.I64
		}
		if _, err := op.ResultType(ts); err != nil {
			continue
		}
		args := a.picks(ts)
		if row.Fault != nil && row.Fault(ts) != ir.NoFault && !(a.faults && a.IntN(2) == 0) {
			if op == ir.OpDiv || op == ir.OpRem {
				args[1] = a.b.Op(ir.OpOr, args[1], a.b.Const(ts[1], 1))
				if a.IntN(4) == 0 {
					args[1] = a.b.Const(ts[1], []ir.Bits{1, 2, 64, 1 << 63, 7}[a.IntN(5)])
				}
			} else {
				args[1] = a.b.Op(ir.OpAnd, args[1], a.b.Const(ts[1], 1<<63-1))
			}
		}
		if (op == ir.OpShl || op == ir.OpShr) && a.IntN(2) == 0 {
			args[1] = a.b.Const(ir.I32, ir.Bits(a.IntN(70)))
		}
		a.see(a.b.Op(op, args...))
		return
	}
}

// inside fills a region of a construct with the given results.
func (a *author) inside(results []ir.Type, fill func()) {
	seen := len(a.scope)
	a.stack = append(a.stack, results)
	fill()
	a.stack = a.stack[:len(a.stack)-1]
	a.scope = a.scope[:seen]
}

// end writes a terminator: a yield of the given types, or a break somewhere.
func (a *author) end(yields []ir.Type, breaks int) {
	if a.IntN(10) < breaks {
		level := a.IntN(len(a.stack))
		a.b.Break(level, a.picks(a.stack[len(a.stack)-1-level])...)
		return
	}
	a.b.Yield(a.picks(yields)...)
}

func (a *author) statements(depth int) {
	for range 1 + a.IntN(9) {
		if a.budget--; a.budget < 0 {
			return
		}
		switch k := a.IntN(10); {
		case depth < 4 && k < 2:
			a.branch(depth)
		case depth < 3 && k == 2:
			a.loop(depth)
		default:
			a.operation()
		}
	}
}

func (a *author) branch(depth int) {
	ts := a.types(a.IntN(3))
	cond := a.pick(ir.Bool)
	arm := func() {
		a.inside(ts, func() {
			if a.IntN(3) > 0 {
				a.statements(depth + 1)
			}
			a.end(ts, 3)
		})
	}
	els := arm
	if a.IntN(12) == 0 {
		cond = a.b.Const(ir.Bool, 1)
		els = func() { a.b.Unreachable() }
	}
	a.see(a.b.If(cond, ts, arm, els)...)
}

// loop counts up to a bound that may differ between lanes, unless it is left
// earlier.
func (a *author) loop(depth int) {
	ts, carried := a.types(a.IntN(3)), a.types(a.IntN(3))
	limit := a.b.Const(ir.I64, ir.Bits(a.IntN(5)))
	if a.IntN(2) == 0 {
		limit = a.b.Op(ir.OpAnd, a.pick(ir.I64), a.b.Const(ir.I64, 3))
	}
	one := a.b.Const(ir.I64, 1)
	init := append(a.picks(carried), a.b.Const(ir.I64, 0))
	a.see(a.b.Loop(init, ts, func(c []ir.Value) {
		a.inside(ts, func() {
			a.see(c...)
			count := c[len(c)-1]
			a.b.If(a.b.Op(ir.OpGe, count, limit), nil,
				func() { a.inside(nil, func() { a.b.Break(1, a.picks(ts)...) }) },
				func() { a.b.Yield() })
			a.statements(depth + 1)
			next := a.b.Op(ir.OpAdd, count, one)
			if a.IntN(10) == 0 {
				a.end(nil, 10)
				return
			}
			vs := a.picks(carried)
			if len(carried) == 2 && carried[0] == carried[1] && a.IntN(2) == 0 {
				vs = []ir.Value{c[1], c[0]}
			}
			a.b.Yield(append(vs, next)...)
		})
	})...)
}

// TestListing lets objdump read the code of random functions: every
// instruction is the one that was meant. And together they use every row.
func TestListing(t *testing.T) {
	seen := map[string]bool{}
	spills := [2]int{}
	for seed := range uint64(120) {
		f := RandomFunc(seed)
		if err := ir.Verify(f); err != nil {
			t.Fatal(err)
		}
		for _, target := range []Target{AVX2, AVX512} {
			c, err := Compile(f, target, Options{Listing: true})
			if err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			spills[target] += c.Spills
			for line := range strings.Lines(c.Listing) {
				name, _, _ := strings.Cut(strings.TrimSpace(line), " ")
				seen[name] = true
			}
			again, _ := Compile(f, target, Options{})
			if string(again.Bytes) != string(c.Bytes) {
				t.Fatalf("seed %d: two compilations differ", seed)
			}
			if seed%12 == 0 {
				compareListing(t, objdump(t, c.Bytes), c.Listing)
			}
			if t.Failed() {
				t.Fatalf("seed %d for %v", seed, target)
			}
		}
	}
	for _, r := range allRows {
		name := r.name
		if r.evex != "" && seen[r.evex] && seen[name] {
			continue
		}
		if !seen[name] {
			t.Errorf("no random function uses %s", name)
		}
	}
	if spills[AVX2] == 0 || spills[AVX512] == 0 {
		t.Errorf("spills: %v, want some for each target", spills)
	}
	t.Log("spills:", spills)
}
