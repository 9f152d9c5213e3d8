package amd64_test

import (
	"fmt"
	"testing"

	"gpunotes/gpukit/internal/ir"
)

// TestCarried hands carried values on in every order, with computations that
// read an old value after the next one is known.
func TestCarried(t *testing.T) {
	type next func(b *ir.Builder, c []ir.Value) []ir.Value
	add := func(b *ir.Builder, x, y ir.Value) ir.Value { return b.Op(ir.OpAdd, x, y) }
	for name, hand := range map[string]next{
		"rotation":      func(b *ir.Builder, c []ir.Value) []ir.Value { return []ir.Value{c[1], c[2], c[0]} },
		"swap":          func(b *ir.Builder, c []ir.Value) []ir.Value { return []ir.Value{c[1], c[0], c[2]} },
		"swap and more": func(b *ir.Builder, c []ir.Value) []ir.Value { return []ir.Value{c[2], c[2], c[0]} },
		"fibonacci":     func(b *ir.Builder, c []ir.Value) []ir.Value { return []ir.Value{c[1], add(b, c[0], c[1]), c[0]} },
		"chain":         func(b *ir.Builder, c []ir.Value) []ir.Value { return []ir.Value{c[0], c[0], c[1]} },
		"constant":      func(b *ir.Builder, c []ir.Value) []ir.Value { return []ir.Value{c[1], b.Const(ir.F64, f64(7)), c[0]} },
		"read after next": func(b *ir.Builder, c []ir.Value) []ir.Value {
			x := add(b, c[0], c[1])
			y := b.Op(ir.OpMul, c[0], c[2])
			z := b.Op(ir.OpSub, c[0], x)
			return []ir.Value{x, y, z}
		},
		"read once after next": func(b *ir.Builder, c []ir.Value) []ir.Value {
			x := add(b, c[0], c[1])
			return []ir.Value{x, b.Op(ir.OpMul, c[0], c[2]), c[1]}
		},
		"read in an arm": func(b *ir.Builder, c []ir.Value) []ir.Value {
			x := add(b, c[0], c[1])
			r := b.If(b.Op(ir.OpLt, x, c[2]), []ir.Type{ir.F64}, func() {
				y := c[0]
				for range 9 {
					y = b.Op(ir.OpMul, y, c[0])
				}
				b.Yield(y)
			}, func() { b.Yield(c[1]) })
			return []ir.Value{x, r[0], c[1]}
		},
		"one for two": func(b *ir.Builder, c []ir.Value) []ir.Value { x := add(b, c[0], c[1]); return []ir.Value{x, x, c[0]} },
		"min of its own": func(b *ir.Builder, c []ir.Value) []ir.Value {
			return []ir.Value{b.Op(ir.OpMin, c[1], c[0]), b.Op(ir.OpMax, c[2], c[1]), b.Op(ir.OpMin, c[2], c[0])}
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := ir.NewFunc("carried", ir.F64, ir.F64, ir.F64)
			x, y, n := f.AddParam("x", ir.F64), f.AddParam("y", ir.F64), f.AddParam("n", ir.I64)
			b := ir.NewBuilder(f)
			limit := b.Op(ir.OpAnd, n, b.Const(ir.I64, 7))
			r := b.Loop([]ir.Value{x, y, b.Const(ir.F64, f64(0.5)), b.Const(ir.I64, 0)}, []ir.Type{ir.F64, ir.F64, ir.F64}, func(c []ir.Value) {
				b.If(b.Op(ir.OpGe, c[3], limit), nil, func() { b.Break(1, c[:3]...) }, func() { b.Yield() })
				b.Yield(append(hand(b, c[:3]), b.Op(ir.OpAdd, c[3], b.Const(ir.I64, 1)))...)
			})
			b.Yield(r...)
			check(t, f, nil, nil)
		})
	}
}

// TestExitThroughLoop leaves an if from a loop inside it, the lanes in
// different iterations: what the first ones brought must stay.
func TestExitThroughLoop(t *testing.T) {
	f := ir.NewFunc("through", ir.F64, ir.Bool)
	x, n := f.AddParam("x", ir.F64), f.AddParam("n", ir.I64)
	b := ir.NewBuilder(f)
	limit := b.Op(ir.OpAnd, n, b.Const(ir.I64, 7))
	r := b.If(b.Op(ir.OpLt, x, b.Const(ir.F64, f64(5))), []ir.Type{ir.F64, ir.Bool}, func() {
		b.Loop([]ir.Value{x, b.Const(ir.I64, 0)}, nil, func(c []ir.Value) {
			y := c[0]
			for k := range 12 { // many temporaries, of both kinds
				z := b.Op(ir.OpMul, y, b.Const(ir.F64, f64(float64(k)+0.5)))
				y = b.Op(ir.OpSelect, b.Op(ir.OpLt, z, x), b.Op(ir.OpAdd, z, y), b.Op(ir.OpSub, y, x))
			}
			b.If(b.Op(ir.OpGe, c[1], limit), nil, func() { b.Break(2, y, b.Op(ir.OpGt, y, c[0])) }, func() { b.Yield() })
			b.Yield(y, b.Op(ir.OpAdd, c[1], b.Const(ir.I64, 1)))
		})
		b.Unreachable()
	}, func() { b.Yield(b.Op(ir.OpNeg, x), b.Const(ir.Bool, 1)) })
	b.Yield(r...)
	check(t, f, nil, nil)
}

// TestFused keeps each operand of a fused multiply-add alive or not, so that
// each of its forms is chosen.
func TestFused(t *testing.T) {
	for keep := range 8 {
		for order := range 6 {
			f := ir.NewFunc(fmt.Sprint("fused", keep, order), ir.F64, ir.F64, ir.F64, ir.F64)
			p := []ir.Value{f.AddParam("x", ir.F64), f.AddParam("y", ir.F64), f.AddParam("z", ir.F64)}
			b := ir.NewBuilder(f)
			a := [][3]int{{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}}[order]
			r := b.Math(must("math.FMA"), p[a[0]], p[a[1]], p[a[2]])
			out := []ir.Value{r, r, r, r}
			for i := range 3 {
				if keep>>i&1 != 0 {
					out[i+1] = b.Op(ir.OpSub, p[i], b.Const(ir.F64, f64(1)))
				}
			}
			b.Yield(out...)
			check(t, f, nil, nil)
		}
	}
}

// TestPressure has more values alive than there are registers, bools too, in a
// loop that pauses.
func TestPressure(t *testing.T) {
	f := ir.NewFunc("pressure", ir.F64, ir.I64, ir.Bool)
	x, n, p := f.AddParam("x", ir.F64), f.AddParam("n", ir.I64), f.AddParam("p", ir.Bool)
	b := ir.NewBuilder(f)
	var fs, is, bs []ir.Value
	for i := range 40 {
		fs = append(fs, b.Op(ir.OpAdd, x, b.Const(ir.F64, f64(float64(i)/8))))
		is = append(is, b.Op(ir.OpXor, n, b.Const(ir.I64, ir.Bits(i*i))))
		bs = append(bs, b.Op(ir.OpLt, fs[i], b.Const(ir.F64, f64(float64(i%5)))))
	}
	r := b.Loop([]ir.Value{x, n, p, b.Const(ir.I64, 0)}, []ir.Type{ir.F64, ir.I64, ir.Bool}, func(c []ir.Value) {
		b.If(b.Op(ir.OpGe, c[3], b.Op(ir.OpAnd, n, b.Const(ir.I64, 3))), nil, func() { b.Break(1, c[:3]...) }, func() { b.Yield() })
		v, k, q := c[0], c[1], c[2]
		for i := range fs {
			v = b.Op(ir.OpSelect, bs[i], b.Math(must("math.FMA"), fs[i], fs[len(fs)-1-i], v), b.Op(ir.OpMul, v, b.Const(ir.F64, f64(0.5))))
			k = b.Op(ir.OpAdd, k, b.Op(ir.OpSelect, q, is[i], k))
			q = b.Op(ir.OpXor, q, bs[i])
		}
		b.Yield(v, k, q, b.Op(ir.OpAdd, c[3], b.Const(ir.I64, 1)))
	})
	b.Yield(r...)
	for _, target := range targets(t) {
		if s := load(t, f, target, nil).Code().Spills; s < 20 {
			t.Errorf("%v: only %d spills", target, s)
		}
	}
	check(t, f, nil, nil)
}
