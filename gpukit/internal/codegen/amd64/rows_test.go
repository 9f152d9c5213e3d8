package amd64_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"gpunotes/gpukit/internal/codegen/amd64"
	"gpunotes/gpukit/internal/cpu"
	"gpunotes/gpukit/internal/ir"
	"gpunotes/gpukit/internal/ir/irtest"
)

// sumOfProducts makes sums of products of elements at a and at b, both and constants apart, once in
// straight code, once under a condition and once in a loop.
func sumOfProducts(t ir.Type, form, terms int) *ir.Func {
	f := ir.NewFunc(fmt.Sprint("products", form), t)
	a, b, x := f.AddParam("a", ir.I64), f.AddParam("b", ir.I64), f.AddParam("x", t)
	p, q := f.AddMem(ir.Memory{Name: "p", Elem: t, Space: ir.Global}), f.AddMem(ir.Memory{Name: "q", Elem: t, Space: ir.Global})
	c := ir.NewBuilder(f)
	num := func(n int) ir.Value { return c.Const(ir.I64, ir.Bits(int64(n))) }
	product := func(s, y, z ir.Value) ir.Value {
		if t == ir.F64 && form%2 == 0 {
			return c.Math(mustMath("math.FMA"), y, z, s)
		}
		return c.Op(ir.OpAdd, s, c.Op(ir.OpMul, y, z))
	}
	straight := func(s ir.Value) ir.Value {
		at := c.Op(ir.OpSub, a, num(-1))
		for k := range terms {
			y := c.Load(p, c.Op(ir.OpAdd, num(k-1), at))
			z := c.Load(q, c.Op(ir.OpAdd, b, num(3*k)))
			s = product(s, y, z)
			if k == 1 { // used twice
				s = product(s, z, y)
			}
		}
		return s
	}
	s := straight(x)
	if form >= 2 {
		some := c.Op(ir.OpLt, x, s)
		s = c.If(some, []ir.Type{t}, func() { c.Yield(straight(s)) }, func() { c.Yield(s) })[0]
	}
	if form >= 4 {
		// The next index goes where the index was.
		s = c.Loop([]ir.Value{s, a}, []ir.Type{t}, func(v []ir.Value) {
			first := c.Load(p, v[1])
			next := c.Op(ir.OpAdd, v[1], num(1))
			y := c.Load(p, next)
			z := c.Load(q, c.Op(ir.OpAdd, c.Op(ir.OpSub, c.Op(ir.OpAdd, b, next), a), num(1)))
			sum := c.Op(ir.OpAdd, product(v[0], y, z), first)
			c.If(c.Op(ir.OpLt, next, c.Op(ir.OpAdd, a, num(terms))), nil, func() { c.Yield() }, func() { c.Break(1, sum) })
			c.Yield(sum, next)
		})[0]
	}
	c.Yield(s)
	return f
}

// TestRows walks rows of workers that read memories: rows that are whole groups and others,
// what is the same in all rows of a dimension, resumed at every back edge.
func TestRows(t *testing.T) {
	const terms = 3
	r := rand.New(rand.NewPCG(3, 4))
	for _, typ := range []ir.Type{ir.F64, ir.F32, ir.I64, ir.U8} {
		for form := range 6 {
			built := sumOfProducts(typ, form, terms)
			for _, f := range []*ir.Func{built, ir.Optimize(built)} {
				if err := ir.Verify(f); err != nil {
					t.Fatalf("%v\n%v", err, f)
				}
				for _, target := range targets(t) {
					for _, count := range []int{1, 3, 4, 8, 9, 16, 32} {
						checkRows(t, r, f, target, count, terms)
					}
				}
			}
		}
	}
}

func checkRows(t *testing.T, r *rand.Rand, f *ir.Func, target amd64.Target, count, terms int) {
	t.Helper()
	typ := f.Results[0]
	access := [][2]amd64.Access{{amd64.Count, amd64.CountUnit}, {amd64.CountUnit, amd64.Count}, {amd64.CountUnit, amd64.CountUnit}, {amd64.Count, amd64.Count}}[r.IntN(4)]
	k := &amd64.Kernel{Func: f, In: []amd64.Access{access[0], access[1], amd64.Unit}, Out: []amd64.Access{amd64.Unit}, Levels: 1 + r.IntN(3), Lanes: r.IntN(2) * count}
	if r.IntN(4) > 0 {
		k.Count = count
	}
	rows := cpu.Rows{Count: count}
	total := count
	for range k.Levels {
		rows.Dims = append(rows.Dims, 1+r.IntN(4))
		total *= rows.Dims[len(rows.Dims)-1]
	}
	k.Still = []bool{r.IntN(2) == 0, r.IntN(2) == 0, false}
	need := [2]int{5 + terms + 1, 5 + 3*(terms-1) + 1} // elements: nothing is behind them
	var streams [3]cpu.Stream
	for i := range streams {
		s := &streams[i]
		if i < 2 {
			s.Value = 5
			for d, n := range rows.Dims {
				step := r.IntN(9)
				if d == 0 && k.Still[i] {
					step = 0
				}
				s.Rows = append(s.Rows, step)
				need[i] += step * (n - 1)
			}
			if access[i] == amd64.CountUnit {
				need[i] += count - 1
			}
			continue
		}
		step := count
		for _, n := range rows.Dims {
			s.Rows, step = append(s.Rows, step), step*n
		}
	}
	data := func(n int) elements {
		e := newElements(typ, n)
		for i := range n {
			e.put(i, irtest.Value(r, typ))
		}
		return e
	}
	x, y := data(total), newElements(typ, total)
	streams[2].Data = x.s.Interface()
	rows.In, rows.Out = streams[:], []cpu.Stream{{Data: y.s.Interface(), Rows: streams[2].Rows}}
	var mems []ir.Storage
	for _, n := range need {
		e := guarded(t, typ, n, true)
		s := make(storage, n)
		for i := range s {
			s[i] = irtest.Value(r, typ)
			e.put(i, s[i])
		}
		rows.Mems = append(rows.Mems, e.s.Interface())
		mems = append(mems, s)
	}
	budget := []uint64{1, 40, 1 << 20}[r.IntN(3)]
	what := fmt.Sprintf("%v, %v, rows of %d (%d) in %v, still %v, budget %d", target, access, count, k.Count, rows.Dims, k.Still, budget)
	n, err := cpu.LoadNative(k, target, amd64.Options{Parts: r.IntN(3)})
	if err != nil {
		t.Fatal(err)
	}
	n.SetBudget(int(budget))
	if err := n.Run(rows); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	e := &ir.Evaluator{Steps: 1 << 20}
	for w := range total {
		args := []ir.Bits{5, 5, x.get(w)}
		rest := w / count
		for d, m := range rows.Dims {
			for i := range 2 {
				args[i] += ir.Bits(rest % m * streams[i].Rows[d])
			}
			rest /= m
		}
		for i := range 2 {
			if access[i] == amd64.CountUnit {
				args[i] += ir.Bits(w % count)
			}
		}
		res, err := e.RunWorker(f, mems, args)
		if err != nil {
			t.Fatal(err)
		}
		if got := y.get(w); ir.Canonical(typ, got) != ir.Canonical(typ, res[0]) {
			t.Fatalf("%s: worker %d has %#x, want %#x\n%v", what, w, got, res[0], f)
		}
	}
}

// TestRowOfProducts counts what a row of a matrix product of a known size has.
func TestRowOfProducts(t *testing.T) {
	const terms = 8
	f := ir.NewFunc("row", ir.F64)
	a, b := f.AddParam("a", ir.I64), f.AddParam("b", ir.I64)
	p, q := f.AddMem(ir.Memory{Name: "p", Elem: ir.F64, Space: ir.Global}), f.AddMem(ir.Memory{Name: "q", Elem: ir.F64, Space: ir.Global})
	c := ir.NewBuilder(f)
	s := c.Const(ir.F64, 0)
	for k := range terms {
		y := c.Load(p, c.Op(ir.OpAdd, a, c.Const(ir.I64, ir.Bits(k))))
		z := c.Load(q, c.Op(ir.OpAdd, b, c.Const(ir.I64, ir.Bits(terms*k))))
		s = c.Op(ir.OpAdd, s, c.Op(ir.OpMul, y, z))
	}
	c.Yield(s)
	for _, x := range []struct {
		target         amd64.Target
		still          bool
		most, products int
	}{
		// A product from memory, a sum; a store.
		{amd64.AVX512, true, 2*terms + 1, terms},
		{amd64.AVX512, false, 3*terms + 1, terms},
		{amd64.AVX2, false, 5*terms + 2, 2 * terms},
	} {
		k := &amd64.Kernel{Func: f, In: []amd64.Access{amd64.Count, amd64.CountUnit}, Out: []amd64.Access{amd64.Unit}, Levels: 2, Lanes: 8, Count: 8, Still: []bool{false, x.still}}
		code, err := amd64.Compile(k, x.target, amd64.Options{Listing: true})
		if err != nil {
			t.Fatal(err)
		}
		if code.Hot > x.most {
			t.Errorf("%v, still %v: %d instructions in a row, want %d at most\n%s", x.target, x.still, code.Hot, x.most, code.Listing)
		}
		n := 0
		for line := range strings.Lines(code.Listing) {
			if strings.HasPrefix(line, "vmulpd") && strings.Contains(line, "[") {
				n++
			}
		}
		if n != x.products {
			t.Errorf("%v, still %v: %d products with a factor in memory, want %d\n%s", x.target, x.still, n, x.products, code.Listing)
		}
	}
}
