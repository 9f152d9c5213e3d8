package ir_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"gpunotes/gpukit/internal/ir"
	"gpunotes/gpukit/internal/ir/irtest"
)

// rangeCase is a function with arrays a and b of one dimension and scalars p, q.
type rangeCase struct {
	*ir.Builder
	a, b ir.ArrayParam
	p, q ir.Value
}

func (c *rangeCase) int(x int64) ir.Value             { return c.Const(ir.I64, ir.Bits(x)) }
func (c *rangeCase) add(x ir.Value, k int64) ir.Value { return c.Op(ir.OpAdd, x, c.int(k)) }
func (c *rangeCase) is(op ir.Op, x, y ir.Value) ir.Value {
	return c.Op(op, x, y)
}

// count is for i := from; i < to; i += step.
func (c *rangeCase) count(from, to ir.Value, step int64, body func(i ir.Value)) {
	c.while(from, func(i ir.Value) ir.Value { return c.is(ir.OpLt, i, to) }, step, body)
}

func (c *rangeCase) while(from ir.Value, cond func(i ir.Value) ir.Value, step int64, body func(i ir.Value)) {
	c.Loop([]ir.Value{from}, nil, func(v []ir.Value) {
		c.If(cond(v[0]), nil, func() { body(v[0]); c.Yield() }, func() { c.Break(1) })
		c.Yield(c.add(v[0], step))
	})
}

func (c *rangeCase) when(cond ir.Value, then func()) {
	c.If(cond, nil, func() { then(); c.Yield() }, func() { c.Yield() })
}

func checks(f *ir.Func) (n int) {
	ir.Walk(f.Body, func(in *ir.Instr) {
		if in.Op == ir.OpBounds || in.Op == ir.OpSliceBounds {
			n++
		}
	})
	return n
}

// TestProveBounds: which checks stay, and the conditions under which fewer do.
func TestProveBounds(t *testing.T) {
	na := func(c *rangeCase) ir.Value { return c.a.Shape[0] }
	nb := func(c *rangeCase) ir.Value { return c.b.Shape[0] }
	for _, k := range []struct {
		name  string
		build func(c *rangeCase)
		left  int    // checks that stay
		under string // the conditions for no check to stay, "-" if some stay anyway
	}{
		{"for i := 0; i < len(a); i++ { a[i] }", func(c *rangeCase) { c.count(c.int(0), na(c), 1, func(i ir.Value) { c.Bounds(i, na(c)) }) }, 0, ""},
		{"a[i] twice", func(c *rangeCase) { c.Bounds(c.p, na(c)); c.Bounds(c.p, na(c)) }, 1, "p >= 0, p <= a.shape0-1"},
		{"a[i-1] and a[i+1] inside", func(c *rangeCase) {
			c.count(c.int(1), c.add(na(c), -1), 1, func(i ir.Value) { c.Bounds(c.add(i, -1), na(c)); c.Bounds(c.add(i, 1), na(c)) })
		}, 0, ""},
		{"a[i+1] to the end", func(c *rangeCase) { c.count(c.int(0), na(c), 1, func(i ir.Value) { c.Bounds(c.add(i, 1), na(c)) }) }, 1, "-"},
		{"a[i-1] from 0", func(c *rangeCase) { c.count(c.int(0), na(c), 1, func(i ir.Value) { c.Bounds(c.add(i, -1), na(c)) }) }, 1, "-"},
		{"i <= len(a)", func(c *rangeCase) {
			c.while(c.int(0), func(i ir.Value) ir.Value { return c.is(ir.OpLe, i, na(c)) }, 1, func(i ir.Value) { c.Bounds(i, na(c)) })
		}, 1, "-"},
		{"i != len(a)", func(c *rangeCase) {
			c.while(c.int(0), func(i ir.Value) ir.Value { return c.is(ir.OpNe, i, na(c)) }, 1, func(i ir.Value) { c.Bounds(i, na(c)) })
		}, 1, "-"},
		{"from -1", func(c *rangeCase) { c.count(c.int(-1), na(c), 1, func(i ir.Value) { c.Bounds(i, na(c)) }) }, 1, "-"},
		{"the length of another array", func(c *rangeCase) { c.count(c.int(0), na(c), 1, func(i ir.Value) { c.Bounds(i, nb(c)) }) }, 1, "a.shape0 <= b.shape0"},
		{"up to p", func(c *rangeCase) { c.count(c.int(0), c.p, 1, func(i ir.Value) { c.Bounds(i, na(c)) }) }, 1, "p <= a.shape0"},
		{"from p to q", func(c *rangeCase) { c.count(c.p, c.q, 1, func(i ir.Value) { c.Bounds(i, na(c)) }) }, 1, "p >= 0, q <= a.shape0"},
		{"a[i+1] up to p", func(c *rangeCase) { c.count(c.int(0), c.p, 1, func(i ir.Value) { c.Bounds(c.add(i, 1), na(c)) }) }, 1, "p <= a.shape0-1"},
		{"up to 10", func(c *rangeCase) { c.count(c.int(0), c.int(10), 1, func(i ir.Value) { c.Bounds(i, na(c)) }) }, 1, "a.shape0 >= 10"},
		{"up to 10 of 10", func(c *rangeCase) { c.count(c.int(0), c.int(10), 1, func(i ir.Value) { c.Bounds(i, c.int(10)) }) }, 0, ""},
		{"up to 11 of 10", func(c *rangeCase) { c.count(c.int(0), c.int(11), 1, func(i ir.Value) { c.Bounds(i, c.int(10)) }) }, 1, "-"},
		{"i += 2", func(c *rangeCase) { c.count(c.int(0), na(c), 2, func(i ir.Value) { c.Bounds(i, na(c)) }) }, 0, ""},
		{"i += 2 below a number that may be the largest", func(c *rangeCase) { c.count(c.int(0), c.p, 2, func(i ir.Value) { c.Bounds(i, c.p) }) }, 1, "-"},
		{"for i := len(a)-1; i >= 0; i-- { a[i] }", func(c *rangeCase) {
			c.while(c.add(na(c), -1), func(i ir.Value) ir.Value { return c.is(ir.OpGe, i, c.int(0)) }, -1, func(i ir.Value) { c.Bounds(i, na(c)) })
		}, 0, ""},
		{"from len(a) down", func(c *rangeCase) {
			c.while(na(c), func(i ir.Value) ir.Value { return c.is(ir.OpGe, i, c.int(0)) }, -1, func(i ir.Value) { c.Bounds(i, na(c)) })
		}, 1, "-"},
		{"guarded by if", func(c *rangeCase) {
			c.when(c.Op(ir.OpAnd, c.is(ir.OpGe, c.p, c.int(0)), c.is(ir.OpLt, c.p, na(c))), func() { c.Bounds(c.p, na(c)) })
		}, 0, ""},
		{"guarded by half", func(c *rangeCase) { c.when(c.is(ir.OpLt, c.p, na(c)), func() { c.Bounds(c.p, na(c)) }) }, 1, "p >= 0"},
		{"behind the guard", func(c *rangeCase) { c.when(c.is(ir.OpLt, c.p, na(c)), func() {}); c.Bounds(c.p, na(c)) }, 1, "p >= 0, p <= a.shape0-1"},
		{"or is no guard", func(c *rangeCase) {
			c.when(c.Op(ir.OpOr, c.is(ir.OpGe, c.p, c.int(0)), c.is(ir.OpLt, c.p, na(c))), func() { c.Bounds(c.p, na(c)) })
		}, 1, "p >= 0, p <= a.shape0-1"},
		{"return unless", func(c *rangeCase) {
			c.If(c.Op(ir.OpOr, c.is(ir.OpLt, c.p, c.int(0)), c.is(ir.OpGe, c.p, na(c))), nil, func() { c.Break(1) }, func() { c.Yield() })
			c.Bounds(c.p, na(c))
		}, 0, ""},
		{"p & 7 of 8", func(c *rangeCase) { c.Bounds(c.Op(ir.OpAnd, c.p, c.int(7)), c.int(8)) }, 0, ""},
		{"p & 7 of 7", func(c *rangeCase) { c.Bounds(c.Op(ir.OpAnd, c.p, c.int(7)), c.int(7)) }, 1, "-"},
		{"p % len(a) of p >= 0", func(c *rangeCase) {
			c.when(c.Op(ir.OpAnd, c.is(ir.OpGe, c.p, c.int(0)), c.is(ir.OpGt, na(c), c.int(0))), func() { c.Bounds(c.Op(ir.OpRem, c.p, na(c)), na(c)) })
		}, 0, ""},
		{"p % len(a)", func(c *rangeCase) {
			c.when(c.is(ir.OpGt, na(c), c.int(0)), func() { c.Bounds(c.Op(ir.OpRem, c.p, na(c)), na(c)) })
		}, 1, "p >= 0"},
		{"p % len(a) of len(a)-1", func(c *rangeCase) {
			c.when(c.Op(ir.OpAnd, c.is(ir.OpGe, c.p, c.int(0)), c.is(ir.OpGt, na(c), c.int(0))), func() { c.Bounds(c.Op(ir.OpRem, c.p, na(c)), c.add(na(c), -1)) })
		}, 1, "p <= a.shape0-2"},
		{"p & 15 % 8 of 8", func(c *rangeCase) { c.Bounds(c.Op(ir.OpRem, c.Op(ir.OpAnd, c.p, c.int(15)), c.int(8)), c.int(8)) }, 0, ""},
		{"p & 15 % 8 of 7", func(c *rangeCase) { c.Bounds(c.Op(ir.OpRem, c.Op(ir.OpAnd, c.p, c.int(15)), c.int(8)), c.int(7)) }, 1, "-"},
		{"checked in a loop before", func(c *rangeCase) {
			c.count(c.int(0), c.q, 1, func(ir.Value) { c.Bounds(c.p, na(c)) })
			c.Bounds(c.p, na(c))
		}, 2, "p >= 0, p <= a.shape0-1"},
		{"checked on one of two ways", func(c *rangeCase) {
			c.If(c.is(ir.OpLt, c.q, c.int(9)), nil, func() {
				c.If(c.is(ir.OpLt, c.q, c.int(0)), nil, func() { c.Break(1) }, func() { c.Yield() })
				c.Bounds(c.p, na(c))
				c.Yield()
			}, func() { c.Break(1) })
			c.Bounds(c.p, na(c))
		}, 2, "p >= 0, p <= a.shape0-1"},
		{"min(p, len(a)-1)", func(c *rangeCase) {
			c.when(c.is(ir.OpGe, c.p, c.int(0)), func() { c.Bounds(c.Op(ir.OpMin, c.p, c.add(na(c), -1)), na(c)) })
		}, 1, "a.shape0 >= 1"},
		{"p + 1 may wrap around", func(c *rangeCase) { c.when(c.is(ir.OpLt, c.p, c.q), func() { c.Bounds(c.add(c.p, 1), c.add(c.q, 1)) }) }, 1, "-"},
		{"a carried value that is no counter", func(c *rangeCase) {
			c.Loop([]ir.Value{c.int(0), c.p}, nil, func(v []ir.Value) {
				c.If(c.is(ir.OpLt, v[0], na(c)), nil, func() { c.Bounds(v[0], na(c)); c.Yield() }, func() { c.Break(1) })
				c.Yield(v[1], c.add(v[0], 1))
			})
		}, 1, "-"},
		{"a length that may be negative", func(c *rangeCase) { c.Bounds(c.p, c.q); c.Bounds(c.p, c.q) }, 2, "p >= 0, p <= q-1"},
		{"a[:p], twice", func(c *rangeCase) { c.SliceBounds(c.int(0), c.p, na(c)); c.SliceBounds(c.int(0), c.p, na(c)) }, 1, "p >= 0, p <= a.shape0"},
		{"a[i:i+2] below len(a)-1", func(c *rangeCase) {
			c.count(c.int(0), c.add(na(c), -1), 1, func(i ir.Value) { c.SliceBounds(i, c.add(i, 2), na(c)) })
		}, 0, ""},
		{"a[i:i+2]", func(c *rangeCase) {
			c.count(c.int(0), na(c), 1, func(i ir.Value) { c.SliceBounds(i, c.add(i, 2), na(c)) })
		}, 1, "-"},
		{"two loops", func(c *rangeCase) {
			c.count(c.int(0), na(c), 1, func(i ir.Value) {
				c.count(i, na(c), 1, func(j ir.Value) { c.Bounds(i, na(c)); c.Bounds(j, na(c)); c.Bounds(c.Op(ir.OpSub, j, i), na(c)) })
			})
		}, 1, "-"},
	} {
		f := ir.NewFunc("f")
		c := &rangeCase{Builder: ir.NewBuilder(f)}
		c.a, c.b = f.AddArray("a", ir.F64, 1), f.AddArray("b", ir.F64, 1)
		c.p, c.q = f.AddParam("p", ir.I64), f.AddParam("q", ir.I64)
		k.build(c)
		c.Yield()
		if err := ir.Verify(f); err != nil {
			t.Fatal(k.name, err)
		}
		g := ir.ProveBounds(f)
		if err := ir.Verify(g); err != nil || checks(g) != k.left {
			t.Errorf("%s: %d checks are left, want %d; %v\n%v", k.name, checks(g), k.left, err, g)
		}
		h, conditions := ir.AssumeBounds(f)
		var under []string
		for _, x := range conditions {
			under = append(under, x.String(f))
		}
		got := strings.Join(under, ", ")
		if checks(h) > 0 {
			got = "-"
		}
		if got != k.under {
			t.Errorf("%s: %d checks are left under %q, want %q", k.name, checks(h), under, k.under)
		}
		// What is proven is true: no counterexample among ends of ranges.
		ends := []int64{math.MinInt64, -1, 0, 1, 3, 10, math.MaxInt64}
		run := func(f *ir.Func, args []ir.Bits) ir.FaultError {
			_, err := (&ir.Evaluator{Steps: 400}).RunWorker(f, []ir.Storage{nil, nil}, args)
			if fe, ok := err.(*ir.FaultError); ok {
				return *fe
			}
			return ir.FaultError{}
		}
		for _, la := range []int64{0, 1, 3, 10} {
			for _, lb := range []int64{0, 3} {
				for _, p := range ends {
					for _, q := range ends {
						args := []ir.Bits{0, ir.Bits(la), 1, 0, ir.Bits(lb), 1, ir.Bits(p), ir.Bits(q)}
						want := run(f, args)
						if want.Fault == ir.StepBudget {
							continue
						}
						if got := run(g, args); got != want {
							t.Errorf("%s, %d: %v, want %v", k.name, args, &got, &want)
						}
						holds := !slices.ContainsFunc(conditions, func(x ir.Condition) bool { return !x.Holds(args) })
						if got := run(h, args); holds && got != want {
							t.Errorf("%s, %d, conditions %q: %v, want %v", k.name, args, under, &got, &want)
						}
					}
				}
			}
		}
	}
}

// TestProveBoundsRandom compares random functions with what is left of them.
func TestProveBoundsRandom(t *testing.T) {
	before, proven, assumed, held := 0, 0, 0, 0
	for k, o := range []irtest.Options{{Faults: true}, {Memory: true, Faults: true}, {Memory: true, Threads: true, Faults: true}} {
		for seed := range uint64(200) {
			r := rand.New(rand.NewPCG(seed, uint64(k)))
			f := irtest.Random(r, fmt.Sprint("f", seed), o)
			if seed%2 == 0 {
				f = ir.Optimize(f)
			}
			g := ir.ProveBounds(f)
			h, conditions := ir.AssumeBounds(f)
			if err := ir.Verify(g); err != nil {
				t.Fatalf("seed %d: %v\n%v\n%v", seed, err, f, g)
			}
			if err := ir.Verify(h); err != nil {
				t.Fatalf("seed %d: %v\n%v\n%v", seed, err, f, h)
			}
			before, proven, assumed = before+checks(f), proven+checks(f)-checks(g), assumed+checks(f)-checks(h)
			for _, group := range []int{1, 5} {
				in := irtest.NewInputs(r, f, 2, group)
				want := in.Evaluate(f)
				if err := want.Compare(f, in.Evaluate(g)); err != nil {
					t.Fatalf("seed %d, %+v: %v\n%v\n%v", seed, o, err, f, g)
				}
				holds := true
				for _, args := range in.Args {
					holds = holds && !slices.ContainsFunc(conditions, func(x ir.Condition) bool { return !x.Holds(args) })
				}
				if !holds {
					continue
				}
				held++
				if err := want.Compare(f, in.Evaluate(h)); err != nil {
					t.Fatalf("seed %d, %+v, %v: %v\n%v\n%v", seed, o, conditions, err, f, h)
				}
			}
		}
	}
	t.Logf("%d checks, %d proven, %d under conditions; %d launches under conditions that held", before, proven, assumed, held)
	if proven < 5 || assumed <= proven || held < 100 {
		t.Errorf("too few")
	}
}
