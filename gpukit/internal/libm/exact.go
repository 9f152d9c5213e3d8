package libm

import "math"

const (
	signBit  = 1 << 63
	fracMask = 1<<52 - 1
)

// normal splits a finite x != 0 into m * 2**(exp+1) with m in [0.5, 1), which
// may be subnormal.
func normal(x float64) (m float64, exp int) {
	b := math.Float64bits(x)
	exp = int(b >> 52 & 0x7ff)
	if exp == 0 {
		b = math.Float64bits(x * 0x1p54)
		exp = int(b>>52&0x7ff) - 54
	}
	return math.Float64frombits(b&(signBit|fracMask) | 0x3fe<<52), exp - 1023
}

// Frexp splits x into frac * 2**exp with |frac| in [0.5, 1). Exact.
//
//	Frexp(±0) = ±0, 0
//	Frexp(±Inf) = ±Inf, 0
//	Frexp(NaN) = NaN, 0
func Frexp(x float64) (frac float64, exp int) {
	if x == 0 || !(math.Abs(x) <= math.MaxFloat64) {
		return x, 0
	}
	frac, exp = normal(x)
	return frac, exp + 1
}

// Ldexp is frac * 2**exp for any exp, rounded once.
//
//	Ldexp(±0, exp) = ±0
//	Ldexp(±Inf, exp) = ±Inf
//	Ldexp(NaN, exp) = NaN
func Ldexp(frac float64, exp int) float64 {
	if frac == 0 || !(math.Abs(frac) <= math.MaxFloat64) {
		return frac
	}
	b := math.Float64bits(frac)
	e := int(b >> 52 & 0x7ff)
	if e != 0 && exp > -e && exp < 2047-e {
		return math.Float64frombits(b + uint64(exp)<<52)
	}
	return ldexpRare(frac, exp)
}

// ldexpRare is Ldexp where frac or the result is subnormal or the result overflows.
func ldexpRare(frac float64, exp int) float64 {
	if exp > 2200 {
		exp = 2200
	}
	if exp < -2200 {
		exp = -2200
	}
	m, e := normal(frac)
	e += exp + 1
	switch {
	case e > 1024:
		return math.Copysign(math.Inf(1), frac)
	case e > -1022:
		return math.Float64frombits(math.Float64bits(m) + uint64(e)<<52)
	case e < -1076:
		return math.Copysign(0, frac)
	}
	// The one rounding is that of the product.
	return math.Float64frombits(math.Float64bits(m)+uint64(e+64)<<52) * 0x1p-64
}

// Logb is the binary exponent of x as a float64: floor(log2(|x|)), exact.
//
//	Logb(±Inf) = +Inf
//	Logb(0) = -Inf
//	Logb(NaN) = NaN
func Logb(x float64) float64 {
	switch {
	case x == 0:
		return math.Inf(-1)
	case !(math.Abs(x) <= math.MaxFloat64):
		return math.Abs(x)
	}
	_, e := normal(x)
	return float64(e)
}

// Ilogb is the binary exponent of x: floor(log2(|x|)), exact.
//
//	Ilogb(±Inf) = MaxInt32
//	Ilogb(0) = MinInt32
//	Ilogb(NaN) = MaxInt32
func Ilogb(x float64) int {
	switch {
	case x == 0:
		return math.MinInt32
	case !(math.Abs(x) <= math.MaxFloat64):
		return math.MaxInt32
	}
	_, e := normal(x)
	return e
}

// Nextafter is the float64 next to x in the direction of y. Exact.
//
//	Nextafter(x, x) = x
//	Nextafter(NaN, y) = Nextafter(x, NaN) = NaN
func Nextafter(x, y float64) float64 {
	b := math.Float64bits(x)
	switch {
	case x != x || y != y:
		return math.NaN()
	case x == y:
		return x
	case x == 0:
		return math.Copysign(0x1p-1074, y)
	case (x < y) == (x > 0):
		return math.Float64frombits(b + 1)
	}
	return math.Float64frombits(b - 1)
}

// Nextafter32 is the float32 next to x in the direction of y. Exact.
//
//	Nextafter32(x, x) = x
//	Nextafter32(NaN, y) = Nextafter32(x, NaN) = NaN
func Nextafter32(x, y float32) float32 {
	b := math.Float32bits(x)
	switch {
	case x != x || y != y:
		return float32(math.NaN())
	case x == y:
		return x
	case x == 0:
		return float32(math.Copysign(0x1p-149, float64(y)))
	case (x < y) == (x > 0):
		return math.Float32frombits(b + 1)
	}
	return math.Float32frombits(b - 1)
}

// remStep is r mod y for r >= y > 0 with r/y < 2**53, exact: the rounded
// quotient is the integer part of the true one or one more, and the remainder,
// a multiple of y's last place below y, is a float64.
func remStep(r, y float64) float64 {
	r = math.FMA(-math.Trunc(r/y), y, r)
	if r < 0 {
		r += y
	}
	return r
}

// rem is r mod y for finite r >= 0, y > 0.
func rem(r, y float64) float64 {
	if r < y {
		return r
	}
	if r/y < 0x1p52 {
		return remStep(r, y)
	}
	return remRare(r, y)
}

// remRare is rem for large quotients: some 50 bits of them a step.
func remRare(r, y float64) float64 {
	_, ey := normal(y)
	for r >= y {
		_, er := normal(r)
		k := er - ey - 50
		if k < 0 {
			k = 0
		}
		if k > 2046 {
			k = 2046 // two exponents' worth; the quotient stays below 2**52
		}
		h := k / 2
		s := math.Float64frombits(uint64(h+1023) << 52)
		t := math.Float64frombits(uint64(k-h+1023) << 52)
		r = remStep(r, float64(y*s*t))
	}
	return r
}

// Mod is the remainder of x/y truncated, with the sign of x. Exact.
//
//	Mod(±Inf, y) = NaN
//	Mod(NaN, y) = NaN
//	Mod(x, 0) = NaN
//	Mod(x, ±Inf) = x
//	Mod(x, NaN) = NaN
func Mod(x, y float64) float64 {
	a, b := math.Abs(x), math.Abs(y)
	if !(a <= math.MaxFloat64) || !(b > 0) {
		return math.NaN()
	}
	return math.Copysign(rem(a, b), x)
}

// Remainder is x - n*y for the integer n nearest to x/y, the even one of two,
// as IEEE 754 defines it; a zero has the sign of x. Exact.
//
//	Remainder(±Inf, y) = NaN
//	Remainder(NaN, y) = NaN
//	Remainder(x, 0) = NaN
//	Remainder(x, ±Inf) = x
//	Remainder(x, NaN) = NaN
func Remainder(x, y float64) float64 {
	a, b := math.Abs(x), math.Abs(y)
	if !(a <= math.MaxFloat64) || !(b > 0) {
		return math.NaN()
	}
	// Modulo 2y first: that keeps whether the quotient is odd.
	r := a
	if b <= math.MaxFloat64/2 {
		r = rem(a, b+b)
	}
	odd := r >= b
	if odd {
		r -= b
	}
	// b - r is rounded only where r is less than half of b.
	if d := b - r; r > d || r == d && odd {
		r -= b
	}
	if math.Signbit(x) {
		r = -r
	}
	return r
}
