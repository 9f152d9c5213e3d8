package amd64_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"

	"gpunotes/gpukit/internal/codegen/amd64"
	"gpunotes/gpukit/internal/cpu"
	"gpunotes/gpukit/internal/ir"
	"gpunotes/gpukit/internal/ir/irtest"
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
			check(t, f, nil)
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
	check(t, f, nil)
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
			r := b.Math(mustMath("math.FMA"), p[a[0]], p[a[1]], p[a[2]])
			out := []ir.Value{r, r, r, r}
			for i := range 3 {
				if keep>>i&1 != 0 {
					out[i+1] = b.Op(ir.OpSub, p[i], b.Const(ir.F64, f64(1)))
				}
			}
			b.Yield(out...)
			check(t, f, nil)
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
			v = b.Op(ir.OpSelect, bs[i], b.Math(mustMath("math.FMA"), fs[i], fs[len(fs)-1-i], v), b.Op(ir.OpMul, v, b.Const(ir.F64, f64(0.5))))
			k = b.Op(ir.OpAdd, k, b.Op(ir.OpSelect, q, is[i], k))
			q = b.Op(ir.OpXor, q, bs[i])
		}
		b.Yield(v, k, q, b.Op(ir.OpAdd, c[3], b.Const(ir.I64, 1)))
	})
	b.Yield(r...)
	for _, target := range targets(t) {
		v := variant{target: target, parts: 1, in: []amd64.Access{amd64.Unit, amd64.Unit, amd64.Unit}, out: []amd64.Access{amd64.Unit, amd64.Unit, amd64.Unit}}
		if s := load(t, f, v).Code().Spills; s < 20 {
			t.Errorf("%v: only %d spills", target, s)
		}
	}
	check(t, f, nil)
}

// oneIf has both arms and a result of each type.
func oneIf() *ir.Func {
	f := ir.NewFunc("oneIf", ir.F64, ir.I64, ir.Bool)
	x, n, p := f.AddParam("x", ir.F64), f.AddParam("n", ir.I64), f.AddParam("p", ir.Bool)
	b := ir.NewBuilder(f)
	cond := b.Op(ir.OpOr, b.Op(ir.OpLt, x, b.Const(ir.F64, f64(1))), p)
	res := b.If(cond, []ir.Type{ir.F64, ir.I64, ir.Bool},
		func() {
			y := b.Op(ir.OpDiv, b.Const(ir.F64, f64(1)), x)
			for range 9 {
				y = b.Op(ir.OpAdd, b.Op(ir.OpMul, y, x), b.Const(ir.F64, f64(0.25)))
			}
			b.Yield(y, b.Op(ir.OpNeg, n), b.Op(ir.OpNot, p))
		},
		func() {
			m := b.Op(ir.OpMul, n, n)
			for range 9 {
				m = b.Op(ir.OpXor, b.Op(ir.OpMul, m, n), b.Op(ir.OpShr, m, b.Const(ir.U8, 7)))
			}
			b.Yield(x, m, b.Op(ir.OpEq, m, n))
		})
	b.Yield(res...)
	return f
}

func TestOneIf(t *testing.T) { check(t, oneIf(), nil) }

// search looks for the first row whose numbers (a hash of row and column and
// seed) all have property p, with a labelled continue, and leaves both loops
// from the inner one when it meets a zero.
func search() *ir.Func {
	f := ir.NewFunc("search", ir.I64, ir.I64)
	seed := f.AddParam("seed", ir.U64)
	b := ir.NewBuilder(f)
	u := func(x uint64) ir.Value { return b.Const(ir.U64, x) }
	i := func(x int64) ir.Value { return b.Const(ir.I64, ir.Bits(x)) }
	res := b.Loop([]ir.Value{i(0)}, []ir.Type{ir.I64, ir.I64}, func(outer []ir.Value) {
		row := outer[0]
		b.If(b.Op(ir.OpGe, row, i(40)), nil, func() { b.Break(1, i(-1), i(-1)) }, func() { b.Yield() })
		// continue is a break out of this if.
		b.If(b.Const(ir.Bool, 1), nil, func() {
			b.Loop([]ir.Value{i(0)}, nil, func(inner []ir.Value) {
				col := inner[0]
				b.If(b.Op(ir.OpGe, col, i(4)), nil, func() { b.Break(3, row, col) }, func() { b.Yield() }) // found
				h := b.Op(ir.OpMul, b.Op(ir.OpAdd, seed, b.Convert(ir.U64, b.Op(ir.OpAdd, b.Op(ir.OpMul, row, i(31)), col))), u(0x9E3779B97F4A7C15))
				h = b.Op(ir.OpShr, b.Op(ir.OpXor, h, b.Op(ir.OpShr, h, u(29))), u(57))
				b.If(b.Op(ir.OpEq, h, u(0)), nil, func() { b.Break(3, i(-2), col) }, func() { b.Yield() })
				b.If(b.Op(ir.OpLt, h, u(60)), nil, func() { b.Break(2) }, func() { b.Yield() }) // continue outer
				b.Yield(b.Op(ir.OpAdd, col, i(1)))
			})
			b.Unreachable()
		}, func() { b.Unreachable() })
		b.Yield(b.Op(ir.OpAdd, row, i(1)))
	})
	b.Yield(res...)
	return f
}

// returnsEarly returns values from three places.
func returnsEarly() *ir.Func {
	f := ir.NewFunc("returnsEarly", ir.F64, ir.Bool)
	x, n := f.AddParam("x", ir.F64), f.AddParam("n", ir.I64)
	b := ir.NewBuilder(f)
	b.If(b.Op(ir.OpNe, x, x), nil, func() { b.Break(1, b.Const(ir.F64, f64(-1)), b.Const(ir.Bool, 0)) }, func() { b.Yield() })
	r := b.Math(mustMath("math.Sqrt"), b.Math(mustMath("math.Abs"), x))
	b.If(b.Op(ir.OpGt, r, b.Const(ir.F64, f64(2))), nil, func() {
		b.If(b.Op(ir.OpLt, n, b.Const(ir.I64, 0)), nil, func() { b.Break(2, r, b.Op(ir.OpLt, x, r)) }, func() { b.Yield() })
		b.Yield()
	}, func() { b.Yield() })
	b.Yield(b.Math(mustMath("math.FMA"), r, r, b.Convert(ir.F64, n)), b.Const(ir.Bool, 1))
	return f
}

// forever never ends for n != 0.
func forever() *ir.Func {
	f := ir.NewFunc("forever", ir.I64)
	n := f.AddParam("n", ir.I64)
	b := ir.NewBuilder(f)
	r := b.Loop([]ir.Value{n}, []ir.Type{ir.I64}, func(c []ir.Value) {
		b.If(b.Op(ir.OpEq, c[0], b.Const(ir.I64, 0)), nil, func() { b.Break(1, c[0]) }, func() { b.Yield() })
		b.Yield(b.Op(ir.OpOr, c[0], b.Const(ir.I64, 1)))
	})
	b.Yield(r...)
	return f
}

func TestSearch(t *testing.T) {
	check(t, search(), func(r *rand.Rand, _ ir.Type) ir.Bits { return ir.Bits(r.IntN(100) * 7919) })
}

func TestEarlyReturn(t *testing.T) { check(t, returnsEarly(), nil) }

func TestMandelbrot(t *testing.T) {
	check(t, irtest.Mandelbrot(), func(r *rand.Rand, t ir.Type) ir.Bits {
		if t == ir.I64 {
			return ir.Bits(r.IntN(60))
		}
		return f64(float64(r.Float64()*3) - 2)
	})
}

func TestCollatz(t *testing.T) {
	check(t, irtest.Collatz(), func(r *rand.Rand, _ ir.Type) ir.Bits { return ir.Bits(int64(r.IntN(2000) - 40)) })
}

// TestStop stops a loop without end while the world is stopped again and again,
// which waits for the code to come back.
func TestStop(t *testing.T) {
	f := forever()
	for _, target := range targets(t) {
		n := load(t, f, variant{target: target, in: []amd64.Access{amd64.Unit}, out: []amd64.Access{amd64.Unit}})
		polls := 0
		r := cpu.Rows{Count: 2, In: []cpu.Stream{{Data: []int64{0, 5}}}, Out: []cpu.Stream{{Data: make([]int64, 2)}},
			Cancelled: func() bool { polls++; runtime.GC(); return polls == 100 }}
		if err := n.Run(r); !errors.Is(err, cpu.ErrCancelled) || polls != 100 {
			t.Errorf("%v: %v after %d polls", target, err, polls)
		}
		if err := n.Run(cpu.Rows{Count: 1, In: []cpu.Stream{{Data: []int64{0}}}, Out: r.Out}); err != nil {
			t.Errorf("%v: the run after it: %v", target, err)
		}
	}
}
