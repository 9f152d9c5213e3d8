package libm

import "math"

// Cbrt is the cube root of x, within 0.501 ulp.
//
//	Cbrt(±0) = ±0
//	Cbrt(±Inf) = ±Inf
//	Cbrt(NaN) = NaN
//
// A third of the exponent and a line in it start an iteration for 1/cbrt(x)
// that needs no division; one Newton step with an exact residual ends it.
func Cbrt(x float64) float64 {
	a := math.Abs(x)
	if x == 0 || !(a <= math.MaxFloat64) {
		return x
	}
	back := 1.0
	if a < 0x1p-600 { // where residuals would be subnormal
		a *= 0x1p300
		back = 0x1p-100
	}
	// Bits are about linear in the logarithm: -1/3 of it, times a factor that
	// spreads the error of the two lines to both sides of 0.
	t := math.Float64frombits(0x553ee978d4fdf3b7 - math.Float64bits(a)/3)
	// t*(1-h)**(-1/3) is the exact root for the h that t has.
	h := math.FMA(-(a * t), t*t, 1)
	t = math.FMA(t, h*math.FMA(h, math.FMA(h, 14.0/81, 2.0/9), 1.0/3), t)
	h = math.FMA(-(a * t), t*t, 1)
	t = math.FMA(t, h*math.FMA(h, math.FMA(h, 14.0/81, 2.0/9), 1.0/3), t)
	// c = a*t**2 and c**3 - a = c*(c**2) - a with both roundings made good.
	t2 := t * t
	c := a * t2
	c2 := c * c
	r := math.FMA(c2, c, -a)
	r = math.FMA(math.FMA(c, c, -c2), c, r)
	c = math.FMA(-r*t2, 1.0/3, c)
	return math.Copysign(c*back, x)
}

// Hypot is the length sqrt(x*x + y*y), within 0.501 ulp (0.75 where the result is subnormal), that overflows only if
// the result does.
//
//	Hypot(±Inf, y) = +Inf
//	Hypot(x, ±Inf) = +Inf
//	Hypot(NaN, y) = NaN
//	Hypot(x, NaN) = NaN
//
// The square root of the fused sum, corrected by the residual of its square,
// which is exact but for its last addition (Borges, An improved algorithm for
// hypot(a,b), 2019).
func Hypot(x, y float64) float64 {
	a, b := math.Abs(x), math.Abs(y)
	if a < b {
		a, b = b, a
	}
	if !(a < 0x1p510 && b > 0x1p-450) {
		return hypotRare(a, b)
	}
	return hypot(a, b)
}

// hypot is Hypot for a >= b > 0 whose squares are far from both ends.
func hypot(a, b float64) float64 {
	b2 := b * b
	h := math.Sqrt(math.FMA(a, a, b2))
	a2, h2 := float64(a*a), float64(h*h)
	d := math.FMA(h, h, -h2) - math.FMA(a, a, -a2)
	r := math.FMA(-b, b, h2-a2) + d
	return h - r/(h+h)
}

// hypotRare is Hypot of absolute values, for all of them.
func hypotRare(a, b float64) float64 {
	switch {
	case math.IsInf(a, 0) || math.IsInf(b, 0):
		return math.Inf(1)
	case a != a || b != b:
		return math.NaN()
	case b <= a*0x1p-60:
		return a
	case a > 0x1p500:
		return float64(hypot(a*0x1p-600, b*0x1p-600) * 0x1p600)
	case a < 0x1p-390:
		return float64(hypot(a*0x1p600, b*0x1p600) * 0x1p-600)
	}
	return hypot(a, b)
}
