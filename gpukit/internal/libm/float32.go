package libm

import "math"

// What float32(math.F(float64(x))) means is float32(F(float64(x))). The functions
// here give the same bits with less work: a shorter approximation in float64
// arithmetic, whose relative error is below 2^-46, decides except where it is
// closer to the middle of two float32 numbers than that, once in half a million;
// there, and outside its range, F itself does.
//
// The coefficients minimise the largest relative error of the function (exchange
// algorithm of Remez in 200 bits, then rounded to float64).

// undecided reports that y is a little less or a little more than a number that
// float32(y) may round either way, or that float32(y) is 0 or subnormal. The error
// that it allows for is 2^-43.
func undecided(y float64) bool {
	const middle, margin = 1 << 28, 1 << 9
	return (math.Float64bits(y)-(middle-margin))&(1<<29-1) < 2*margin || math.Abs(y) < 0x1p-126
}

const (
	shortPi2     = 1.57079632679489661923132169163975144209858469968755291
	shortPi2Low  = 0x1.1a62633145c07p-54 // pi/2 - float64(pi/2)
	shortPi4     = shortPi2 / 2
	shortLn2     = 0.69314718055994530941723212145817656807550013436025525
	shortLog2E   = 1 / shortLn2
	shortLog10E  = 0.43429448190325182765112891891660508229439700580366656
	shortLog10of = shortLn2 * shortLog10E
)

// shortSin is sin r for |r| <= pi/4, off by 2^-47.5.
func shortSin(r float64) float64 {
	u := r * r
	p := math.FMA(math.FMA(math.FMA(math.FMA(-0x1.a9615fdd23abfp-26, u, 0x1.71d76c63e1121p-19), u, -0x1.a019f9381d7d0p-13), u, 0x1.1111110c86446p-7), u, -0x1.555555555222cp-3)
	return math.FMA(float64(u*r), p, r)
}

// shortCos is cos r for |r| <= pi/4, off by 2^-53.2.
func shortCos(r float64) float64 {
	u := r * r
	p := math.FMA(math.FMA(math.FMA(math.FMA(0x1.1bbe6435410c4p-29, u, -0x1.27e00b0e984b9p-22), u, 0x1.a019fa5edc792p-16), u, -0x1.6c16c167200b5p-10), u, 0x1.5555555552dd1p-5)
	return math.FMA(float64(u*u), p, math.FMA(u, -0.5, 1))
}

// shortTurn is x less a multiple q of pi/2, for |x| < 2^28; of q the lower bits count. The
// first difference is exact: both sides are multiples of 2^-52, for x has only 24 bits.
func shortTurn(x float64) (r float64, q uint64) {
	t := float64(x*(1/shortPi2)) + nearest
	n := t - nearest
	return math.FMA(-n, shortPi2Low, math.FMA(-n, shortPi2, x)), math.Float64bits(t)
}

// shortExpm1 is (e^r - 1) / r for |r| <= ln(2)/2, off by 2^-49.4 of it.
func shortExpm1(r float64) float64 {
	u := r * r
	even := math.FMA(math.FMA(math.FMA(math.FMA(0x1.72e0b2da798c8p-19, u, 0x1.a019951b76958p-13), u, 0x1.11111123a5a46p-7), u, 0x1.5555555550e27p-3), u, 0x1.0000000000005p+0)
	odd := math.FMA(math.FMA(math.FMA(math.FMA(0x1.27e4f02b5ce30p-22, u, 0x1.a01a738188a43p-16), u, 0x1.6c16c1356ac4bp-10), u, 0x1.5555555565bb5p-5), u, 0x1.fffffffffffafp-2)
	return math.FMA(odd, r, even)
}

// shortPower is 2^k for k + nearest, k an integer from -1022 to 1023.
func shortPower(t float64) float64 { return math.Float64frombits(math.Float64bits(t)<<52 + 1023<<52) }

// shortLog is log x = k ln 2 + l for positive numbers x of float32, with l from
// -ln(2)/2 to ln(2)/2, off by 2^-52.
func shortLog(x float64) (k, l float64) {
	e := int64(math.Float64bits(x)-0x3fe6a09e667f3bcd) >> 52 // sqrt(1/2)
	m := math.Float64frombits(math.Float64bits(x) - uint64(e)<<52)
	s := (m - 1) / (m + 1)
	u := s * s
	p := math.FMA(math.FMA(math.FMA(math.FMA(math.FMA(0x1.58857c0dcd879p-3, u, 0x1.732b0db33dd97p-3), u, 0x1.c722801fd8f45p-3), u, 0x1.2492416a7ea24p-2), u, 0x1.999999a2a60a6p-2), u, 0x1.5555555553923p-1)
	return float64(e), math.FMA(float64(u*s), p, float64(2*s))
}

// shortAtan is the arc tangent of y/x for x > 0, y >= 0, off by 2^-49.
func shortAtan(y, x float64) float64 {
	num, den, base := y, x, 0.0
	if y > 2.4142*x {
		num, den, base = -x, y, shortPi2
	} else if y > 0.4142*x {
		num, den, base = y-x, y+x, shortPi4
	}
	q := num / den
	u := q * q
	p := math.FMA(math.FMA(math.FMA(math.FMA(-0x1.a1508d966bf46p-6, u, 0x1.9ca52e851733bp-5), u, -0x1.0aa81d7a8ca67p-4), u, 0x1.3a56eff60ee5ap-4), u, -0x1.744f82a144bc2p-4)
	p = math.FMA(math.FMA(math.FMA(math.FMA(p, u, 0x1.c71bd9688d7c4p-4), u, -0x1.2492473e848f2p-3), u, 0x1.99999993a430cp-3), u, -0x1.55555555521b4p-2)
	return base + math.FMA(float64(u*q), p, q)
}

// SinF32 is float32(Sin(float64(x))).
func SinF32(x float32) float32 {
	a := float64(x)
	r, q := shortTurn(a)
	y := shortSin(r)
	if q&1 != 0 {
		y = shortCos(r)
	}
	if q&2 != 0 {
		y = -y
	}
	if !(math.Abs(a) < 0x1p28) || undecided(y) {
		return float32(Sin(a))
	}
	return float32(y)
}

// CosF32 is float32(Cos(float64(x))).
func CosF32(x float32) float32 {
	a := float64(x)
	r, q := shortTurn(a)
	y := shortCos(r)
	if q&1 != 0 {
		y = shortSin(r)
	}
	if (q+1)&2 != 0 {
		y = -y
	}
	if !(math.Abs(a) < 0x1p28) || undecided(y) {
		return float32(Cos(a))
	}
	return float32(y)
}

// TanF32 is float32(Tan(float64(x))).
func TanF32(x float32) float32 {
	a := float64(x)
	r, q := shortTurn(a)
	num, den := shortSin(r), shortCos(r)
	if q&1 != 0 {
		num, den = -den, num
	}
	y := num / den
	if !(math.Abs(a) < 0x1p28) || undecided(y) {
		return float32(Tan(a))
	}
	return float32(y)
}

// AtanF32 is float32(Atan(float64(x))).
func AtanF32(x float32) float32 {
	a := float64(x)
	y := shortAtan(math.Abs(a), 1)
	if undecided(y) {
		return float32(Atan(a))
	}
	return float32(math.Copysign(y, a))
}

// ExpF32 is float32(Exp(float64(x))).
func ExpF32(x float32) float32 {
	a := float64(x)
	t := float64(a*shortLog2E) + nearest
	r := math.FMA(nearest-t, shortLn2, a)
	y := math.FMA(r, shortExpm1(r), 1) * shortPower(t)
	if !(a > -87.5 && a < 89) || undecided(y) {
		return float32(Exp(a))
	}
	return float32(y)
}

// Exp2F32 is float32(Exp2(float64(x))).
func Exp2F32(x float32) float32 {
	a := float64(x)
	t := a + nearest
	r := (a - (t - nearest)) * shortLn2
	y := math.FMA(r, shortExpm1(r), 1) * shortPower(t)
	if !(a > -126.5 && a < 129) || undecided(y) {
		return float32(Exp2(a))
	}
	return float32(y)
}

// TanhF32 is float32(Tanh(float64(x))).
func TanhF32(x float32) float32 {
	a := float64(x)
	h := 2 * math.Abs(a)
	// tanh = (e^h - 1) / (e^h + 1)
	t := float64(h*shortLog2E) + nearest
	r := math.FMA(nearest-t, shortLn2, h)
	s := shortPower(t)
	e := math.FMA(s, float64(r*shortExpm1(r)), s-1)
	y := e / (e + 2)
	if !(h < 20) || undecided(y) {
		return float32(Tanh(a))
	}
	return float32(math.Copysign(y, a))
}

// LogF32 is float32(Log(float64(x))).
func LogF32(x float32) float32 {
	a := float64(x)
	k, l := shortLog(a)
	y := math.FMA(k, shortLn2, l)
	if !(a > 0 && a <= math.MaxFloat32) || undecided(y) {
		return float32(Log(a))
	}
	return float32(y)
}

// Log2F32 is float32(Log2(float64(x))).
func Log2F32(x float32) float32 {
	a := float64(x)
	k, l := shortLog(a)
	y := math.FMA(l, shortLog2E, k)
	if !(a > 0 && a <= math.MaxFloat32) || undecided(y) {
		return float32(Log2(a))
	}
	return float32(y)
}

// Log10F32 is float32(Log10(float64(x))).
func Log10F32(x float32) float32 {
	a := float64(x)
	k, l := shortLog(a)
	y := math.FMA(k, shortLog10of, float64(l*shortLog10E))
	if !(a > 0 && a <= math.MaxFloat32) || undecided(y) {
		return float32(Log10(a))
	}
	return float32(y)
}

// CbrtF32 is float32(Cbrt(float64(x))).
func CbrtF32(x float32) float32 {
	a := float64(x)
	v := math.Abs(a)
	// A third of the exponent, linear in between, is off by 3.2%; each step of
	// Halley's method leaves 2/3 of the cube of the error.
	t := math.Float64frombits(uint64(uint32(math.Float64bits(v)>>32)/3+0x2a9f7600) << 32)
	c := t * t * t
	t *= math.FMA(2, v, c) / math.FMA(2, c, v)
	c = t * t * t
	t *= math.FMA(2, v, c) / math.FMA(2, c, v)
	if !(v > 0 && v <= math.MaxFloat32) || undecided(t) {
		return float32(Cbrt(a))
	}
	return float32(math.Copysign(t, a))
}

// PowF32 is float32(Pow(float64(x), float64(y))), but for results that are
// within 2^-43 of themselves of the middle of two float32 numbers it is not
// proven.
func PowF32(x, y float32) float32 {
	a, b := float64(x), float64(y)
	k, l := shortLog(a)
	p := float64(b * math.FMA(l, shortLog2E, k))
	t := p + nearest
	r := (p - (t - nearest)) * shortLn2
	z := math.FMA(r, shortExpm1(r), 1) * shortPower(t)
	if !(a > 0 && a <= math.MaxFloat32 && p > -126 && p < 128) || undecided(z) {
		return float32(Pow(a, b))
	}
	return float32(z)
}

// Atan2F32 is float32(Atan2(float64(y), float64(x))), with PowF32's reservation.
func Atan2F32(y, x float32) float32 {
	a, b := math.Abs(float64(y)), math.Abs(float64(x))
	z := shortAtan(a, b)
	if x < 0 {
		z = 2*shortPi2 - z
	}
	if !(a > 0 && b > 0 && a <= math.MaxFloat32 && b <= math.MaxFloat32) || undecided(z) {
		return float32(Atan2(float64(y), float64(x)))
	}
	return float32(math.Copysign(z, float64(y)))
}

// HypotF32 is float32(Hypot(float64(x), float64(y))), with PowF32's reservation.
func HypotF32(x, y float32) float32 {
	a, b := float64(x), float64(y)
	z := math.Sqrt(math.FMA(a, a, float64(b*b)))
	if !(z <= 2*math.MaxFloat32) || undecided(z) {
		return float32(Hypot(a, b))
	}
	return float32(z)
}
