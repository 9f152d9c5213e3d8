package ir_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"gpunotes/gpukit/internal/ir"
	"gpunotes/gpukit/internal/ir/irtest"
)

func loops(f *ir.Func) (n int) {
	ir.Walk(f.Body, func(in *ir.Instr) {
		if in.Op == ir.OpLoop {
			n++
		}
	})
	return n
}

// TestUnrollRandom compares random functions with what Unroll makes of them.
func TestUnrollRandom(t *testing.T) {
	before, after := 0, 0
	for k, o := range []irtest.Options{{Faults: true}, {Memory: true, Faults: true}, {Memory: true, Threads: true}} {
		for seed := range uint64(80) {
			r := rand.New(rand.NewPCG(seed, uint64(k)))
			f := irtest.Random(r, fmt.Sprint("f", seed), o)
			g := ir.Unroll(f, []int{0, 60, 2000}[seed%3])
			if err := ir.Verify(g); err != nil {
				t.Fatalf("seed %d, %+v: %v\n%v\n%v", seed, o, err, f, g)
			}
			if seed%3 == 2 {
				before += loops(ir.Optimize(f))
				after += loops(g)
			}
			for _, group := range []int{1, 5} {
				in := irtest.NewInputs(r, f, 3, group)
				if err := in.Evaluate(f).Compare(f, in.Evaluate(g)); err != nil {
					t.Fatalf("seed %d, %+v, blocks of %d: %v\n%v\n%v", seed, o, group, err, f, g)
				}
			}
		}
	}
	if after*3 > before*2 {
		t.Errorf("%d of %d loops are left", after, before)
	}
}

// TestAssumeRandom: a function whose parameters are assumed to be what they are.
func TestAssumeRandom(t *testing.T) {
	for seed := range uint64(100) {
		r := rand.New(rand.NewPCG(seed, 77))
		f := irtest.Random(r, fmt.Sprint("f", seed), irtest.Options{Memory: true, Faults: true})
		in := irtest.NewInputs(r, f, 1, 1)
		values := map[int]ir.Bits{}
		for i := range f.Params {
			if r.IntN(2) == 0 {
				values[i] = in.Args[0][i]
			}
		}
		text := f.String()
		g := ir.Assume(f, values)
		if f.String() != text {
			t.Fatal("the function itself was changed")
		}
		for _, g := range []*ir.Func{g, ir.Optimize(g), ir.Unroll(g, 500)} {
			if err := ir.Verify(g); err != nil {
				t.Fatalf("seed %d: %v\n%v\n%v", seed, err, f, g)
			}
			if err := in.Evaluate(f).Compare(f, in.Evaluate(g)); err != nil {
				t.Fatalf("seed %d: %v\n%v\n%v", seed, err, f, g)
			}
			ir.Walk(g.Body, func(in *ir.Instr) {
				for _, a := range in.Args {
					for i, p := range g.Params {
						if _, ok := values[i]; ok && p.Value == a {
							t.Errorf("parameter %d is still looked at", i)
						}
					}
				}
			})
		}
	}
}

// counted writes a loop of i from first below bound by step around body, which gives
// the next values of what is carried besides.
func counted(b *ir.Builder, first, bound, step int64, init []ir.Value, body func(i ir.Value, carried []ir.Value) []ir.Value) []ir.Value {
	number := func(x int64) ir.Value { return b.Const(ir.I64, ir.Bits(x)) }
	var ts []ir.Type
	for _, v := range init {
		ts = append(ts, b.F.Type(v))
	}
	return b.Loop(append([]ir.Value{number(first)}, init...), ts, func(c []ir.Value) {
		b.If(b.Op(ir.OpLt, c[0], number(bound)), nil, func() { b.Yield() }, func() { b.Break(1, c[1:]...) })
		next := body(c[0], c[1:])
		b.Yield(append([]ir.Value{b.Op(ir.OpAdd, c[0], number(step))}, next...)...)
	})
}

// TestUnroll: which loops are written out.
func TestUnroll(t *testing.T) {
	dot := func(f *ir.Func, b *ir.Builder, n ir.Value, x, y ir.ArrayParam) ir.Value {
		zero, one := b.Const(ir.I64, 0), b.Const(ir.I64, 1)
		return b.Loop([]ir.Value{zero, b.Const(ir.F64, 0)}, []ir.Type{ir.F64}, func(c []ir.Value) {
			b.If(b.Op(ir.OpLt, c[0], n), nil, func() { b.Yield() }, func() { b.Break(1, c[1]) })
			at := func(a ir.ArrayParam) ir.Value {
				b.Bounds(c[0], a.Shape[0])
				return b.Load(a.Mem, b.Op(ir.OpAdd, a.Offset, b.Op(ir.OpMul, c[0], a.Stride[0])))
			}
			b.Yield(b.Op(ir.OpAdd, c[0], one), b.Op(ir.OpAdd, c[1], b.Op(ir.OpMul, at(x), at(y))))
		})[0]
	}
	inner := func(f *ir.Func) (g *ir.Func, n, other int) {
		g = f
		x, y := f.AddArray("x", ir.F64, 1), f.AddArray("y", ir.F64, 1)
		b := ir.NewBuilder(f)
		b.Yield(dot(f, b, x.Shape[0], x, y))
		number := func(v ir.Value) int {
			for i, p := range f.Params {
				if p.Value == v {
					return i
				}
			}
			return -1
		}
		return f, number(x.Shape[0]), number(y.Shape[0])
	}
	f, n, other := inner(ir.NewFunc("dot", ir.F64))
	for _, c := range []struct {
		size, limit, loops, checks int
		both                       bool
	}{{8, 100, 0, 0, true}, {8, 100, 0, 8, false}, {8, 20, 1, 2, false}, {0, 0, 0, 0, false}, {1, 40, 0, 1, false}} {
		values := map[int]ir.Bits{n: ir.Bits(c.size)}
		if c.both {
			values[other] = ir.Bits(c.size)
		}
		g := ir.Unroll(ir.Assume(f, values), c.limit)
		checks := strings.Count(g.String(), "bounds")
		if loops(g) != c.loops || checks != c.checks {
			t.Errorf("%+v: %d loops, %d checks\n%v", c, loops(g), checks, g)
		}
		if c.loops == 0 && strings.Contains(g.String(), "if ") {
			t.Errorf("%+v: not straight\n%v", c, g)
		}
	}

	for _, c := range []struct {
		name  string
		limit int
		loops int // left
		body  func(f *ir.Func, b *ir.Builder, x ir.Value) ir.Value
	}{
		{"nested", 1000, 0, func(f *ir.Func, b *ir.Builder, x ir.Value) ir.Value {
			return counted(b, 0, 4, 1, []ir.Value{x}, func(i ir.Value, c []ir.Value) []ir.Value {
				return counted(b, 3, -1, 1, c, func(j ir.Value, c []ir.Value) []ir.Value {
					return []ir.Value{b.Op(ir.OpAdd, b.Op(ir.OpMul, c[0], x), b.Op(ir.OpMul, i, j))}
				})
			})[0]
		}},
		{"only the inner one is small enough", 60, 1, func(f *ir.Func, b *ir.Builder, x ir.Value) ir.Value {
			return counted(b, 0, 40, 1, []ir.Value{x}, func(i ir.Value, c []ir.Value) []ir.Value {
				return counted(b, 0, 4, 1, c, func(j ir.Value, c []ir.Value) []ir.Value {
					return []ir.Value{b.Op(ir.OpAdd, b.Op(ir.OpMul, c[0], x), b.Op(ir.OpXor, i, j))}
				})
			})[0]
		}},
		{"a triangle", 1000, 0, func(f *ir.Func, b *ir.Builder, x ir.Value) ir.Value {
			one := b.Const(ir.I64, 1)
			return counted(b, 0, 5, 1, []ir.Value{x}, func(i ir.Value, c []ir.Value) []ir.Value {
				return b.Loop([]ir.Value{i, c[0]}, []ir.Type{ir.I64}, func(c []ir.Value) {
					b.If(b.Op(ir.OpEq, c[0], b.Const(ir.I64, 0)), nil, func() { b.Break(1, c[1]) }, func() { b.Yield() })
					b.Yield(b.Op(ir.OpSub, c[0], one), b.Op(ir.OpAdd, b.Op(ir.OpMul, c[1], c[1]), c[0]))
				})
			})[0]
		}},
		{"a search", 1000, 1, func(f *ir.Func, b *ir.Builder, x ir.Value) ir.Value {
			return counted(b, 0, 5, 1, []ir.Value{x}, func(i ir.Value, c []ir.Value) []ir.Value {
				b.If(b.Op(ir.OpEq, b.Op(ir.OpMul, i, i), x), nil, func() { b.Break(1, i) }, func() { b.Yield() })
				return c
			})[0]
		}},
		{"a bound that differs", 1000, 1, func(f *ir.Func, b *ir.Builder, x ir.Value) ir.Value {
			one := b.Const(ir.I64, 1)
			return b.Loop([]ir.Value{b.Const(ir.I64, 0), x}, []ir.Type{ir.I64}, func(c []ir.Value) {
				b.If(b.Op(ir.OpGe, c[0], b.Op(ir.OpAnd, x, b.Const(ir.I64, 3))), nil, func() { b.Break(1, c[1]) }, func() { b.Yield() })
				b.Yield(b.Op(ir.OpAdd, c[0], one), b.Op(ir.OpMul, c[1], x))
			})[0]
		}},
		{"continue and an early return", 1000, 0, func(f *ir.Func, b *ir.Builder, x ir.Value) ir.Value {
			return counted(b, 0, 6, 1, []ir.Value{x}, func(i ir.Value, c []ir.Value) []ir.Value {
				return b.If(b.Const(ir.Bool, 1), []ir.Type{ir.I64}, func() {
					b.If(b.Op(ir.OpLt, c[0], i), nil, func() { b.Break(1, b.Op(ir.OpAdd, c[0], x)) }, func() { b.Yield() })
					b.Yield(b.Op(ir.OpSub, c[0], i))
				}, func() { b.Unreachable() })
			})[0]
		}},
		{"no end", 1000, 1, func(f *ir.Func, b *ir.Builder, x ir.Value) ir.Value {
			return counted(b, 0, 5, 0, []ir.Value{x}, func(i ir.Value, c []ir.Value) []ir.Value {
				return []ir.Value{b.Op(ir.OpAdd, c[0], x)}
			})[0]
		}},
	} {
		f := ir.NewFunc(c.name, ir.I64)
		x := f.AddParam("x", ir.I64)
		b := ir.NewBuilder(f)
		b.Yield(c.body(f, b, x))
		g := ir.Unroll(f, c.limit)
		if err := ir.Verify(g); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		if n := loops(g); n != c.loops {
			t.Errorf("%s: %d loops are left, not %d\n%v", c.name, n, c.loops, g)
		}
		if c.name == "no end" {
			continue
		}
		for x := range ir.Bits(20) {
			want, _ := new(ir.Evaluator).Run(f, x-4)
			got, err := new(ir.Evaluator).Run(g, x-4)
			if err != nil || got[0] != want[0] {
				t.Errorf("%s of %d: %v, not %v (%v)", c.name, int64(x-4), got, want, err)
			}
		}
	}
}
