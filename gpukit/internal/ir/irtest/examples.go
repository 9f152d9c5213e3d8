package irtest

import "gpunotes/gpukit/internal/ir"

// Mandelbrot is a function of cx, cy (F64) and limit (I64): the number of
// iterations until the point escapes, at most limit.
func Mandelbrot() *ir.Func {
	f := ir.NewFunc("mandelbrot", ir.I64)
	cx, cy, limit := f.AddParam("cx", ir.F64), f.AddParam("cy", ir.F64), f.AddParam("limit", ir.I64)
	b := ir.NewBuilder(f)
	zero, four, n0, one := b.Const(ir.F64, 0), b.Const(ir.F64, ir.FromF64(4)), b.Const(ir.I64, 0), b.Const(ir.I64, 1)
	r := b.Loop([]ir.Value{zero, zero, n0}, []ir.Type{ir.I64}, func(c []ir.Value) {
		zx, zy, n := c[0], c[1], c[2]
		leave := func(cond ir.Value) {
			b.If(cond, nil, func() { b.Break(1, n) }, func() { b.Yield() })
		}
		leave(b.Op(ir.OpGe, n, limit))
		xx, yy := b.Op(ir.OpMul, zx, zx), b.Op(ir.OpMul, zy, zy)
		leave(b.Op(ir.OpGt, b.Op(ir.OpAdd, xx, yy), four))
		xy := b.Op(ir.OpMul, zx, zy)
		b.Yield(b.Op(ir.OpAdd, b.Op(ir.OpSub, xx, yy), cx), b.Op(ir.OpAdd, b.Op(ir.OpAdd, xy, xy), cy), b.Op(ir.OpAdd, n, one))
	})
	b.Yield(r[0])
	return f
}

// MandelbrotGo is Mandelbrot in Go.
func MandelbrotGo(cx, cy float64, limit int64) int64 {
	zx, zy := 0.0, 0.0
	for n := int64(0); ; n++ {
		if n >= limit {
			return n
		}
		xx, yy := float64(zx*zx), float64(zy*zy)
		if xx+yy > 4 {
			return n
		}
		xy := float64(zx * zy)
		zx, zy = xx-yy+cx, xy+xy+cy
	}
}

// Collatz is a function of n (I64): the number of steps from n to 1, or -1 for
// n < 1 by an early return, or 999 for more than 200 steps by a return from
// inside the loop.
func Collatz() *ir.Func {
	f := ir.NewFunc("collatz", ir.I64)
	n := f.AddParam("n", ir.I64)
	b := ir.NewBuilder(f)
	i := func(x int64) ir.Value { return b.Const(ir.I64, ir.Bits(x)) }
	zero, one, two := i(0), i(1), i(2)
	b.If(b.Op(ir.OpLt, n, one), nil, func() { b.Break(1, i(-1)) }, func() { b.Yield() })
	steps := b.Loop([]ir.Value{n, zero}, []ir.Type{ir.I64}, func(c []ir.Value) {
		b.If(b.Op(ir.OpEq, c[0], one), nil, func() { b.Break(1, c[1]) }, func() { b.Yield() })
		b.If(b.Op(ir.OpGt, c[1], i(200)), nil, func() { b.Break(2, i(999)) }, func() { b.Yield() })
		next := b.If(b.Op(ir.OpEq, b.Op(ir.OpRem, c[0], two), zero), []ir.Type{ir.I64},
			func() { b.Yield(b.Op(ir.OpDiv, c[0], two)) },
			func() { b.Yield(b.Op(ir.OpAdd, b.Op(ir.OpMul, c[0], i(3)), one)) })
		b.Yield(next[0], b.Op(ir.OpAdd, c[1], one))
	})
	b.Yield(steps[0])
	return f
}
