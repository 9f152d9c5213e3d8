// Package irtest makes random functions in IR, inputs for them, and a few
// examples, for tests of what transforms or runs functions. The reference
// evaluator says what they compute.
package irtest

import (
	"math"
	"math/rand/v2"

	"gpunotes/gpukit/internal/ir"
)

// Specials are the values of a type at which operations change their ways:
// zeros, ones, powers of two and their neighbours, the ends of ranges, and of
// floats denormals, infinities and NaN.
func Specials(t ir.Type) []ir.Bits {
	switch {
	case t == ir.Bool:
		return []ir.Bits{0, 1}
	case t.IsFloat():
		var out []ir.Bits
		for _, x := range []float64{0, math.Copysign(0, -1), 1, -1, 0.5, -0.5, 1.5, -2.5, 3, math.Pi, 127, 128, -128.5, -129, 255.5, 256, 32768, 65536.25, 1 << 31, -(1 << 31) - 1, 1 << 32, 1<<53 + 1,
			1 << 63, -(1 << 63), 1 << 64, 1.8e19, 9.3e18, 1e-310, 5e-324, 1e300, -1e300, 1e-40, 3.4e38, 1e39, math.MaxFloat64, math.Inf(1), math.Inf(-1), math.NaN()} {
			if t == ir.F32 {
				out = append(out, ir.FromF32(float32(x)))
			} else {
				out = append(out, ir.FromF64(x))
			}
		}
		return out
	}
	var out []ir.Bits
	for _, x := range []int64{0, 1, 2, 3, 7, 8, 15, 16, 31, 32, 33, 63, 64, 65, 100, 127, 128, 255, 256, 1000, 32767, 65535, 1<<31 - 1, 1 << 31, 1<<32 - 1, 1<<53 + 1, math.MaxInt64, math.MinInt64, -1, -2, -7, -128, -129, -32768} {
		out = append(out, ir.Wrap(t, ir.Bits(x)))
	}
	return out
}

// Value is a random value of type t: one of the special ones, or a small
// number.
func Value(r *rand.Rand, t ir.Type) ir.Bits {
	if r.IntN(3) == 0 {
		s := Specials(t)
		return s[r.IntN(len(s))]
	}
	switch {
	case t == ir.Bool:
		return ir.Bits(r.IntN(2))
	case t == ir.F64:
		return ir.FromF64(math.Round(r.NormFloat64()*40) / 4)
	case t == ir.F32:
		return ir.FromF32(float32(math.Round(r.NormFloat64()*40) / 4))
	}
	return ir.Wrap(t, ir.Bits(int64(r.IntN(21)-8)))
}
