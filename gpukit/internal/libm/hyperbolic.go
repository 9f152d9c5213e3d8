package libm

import "math"

// Sinh returns the hyperbolic sine of x.
//
// The largest error measured is 0.71 ulp. Below 1 it is x + x^3 P(x^2), above
// (e^|x| - e^-|x|) / 2 with the exponentials as sums. Sinh(±0) = ±0, Sinh(±Inf) =
// ±Inf, Sinh(NaN) = NaN; large results are ±Inf.
func Sinh(x float64) float64 {
	a := math.Abs(x)
	if a < 1 {
		// (sinh x - x) / x^3 to 2^-61.7 of x, as the coefficients of expPolynomial.
		u := x * x
		p := math.FMA(u, 0x1.b5be34f6c85fcp-41, 0x1.6117162252f4fp-33)
		p = math.FMA(u, p, 0x1.ae646fa3c978ep-26)
		p = math.FMA(u, p, 0x1.71de3a3b61beep-19)
		p = math.FMA(u, p, 0x1.a01a01a036cadp-13)
		p = math.FMA(u, p, 0x1.1111111111020p-7)
		p = math.FMA(u, p, 0x1.5555555555556p-3)
		return math.FMA(float64(x*u), p, x)
	}
	if !(a < 708) {
		return math.Copysign(hyperbolicRare(a), x)
	}
	e, eLow, d, dLow := halfExps(a)
	y := e - d
	return math.Copysign(y+(((e-y)-d)+(eLow-dLow)), x)
}

// Cosh returns the hyperbolic cosine of x.
//
// The largest error measured is 0.60 ulp. It is (e^|x| + e^-|x|) / 2 with the
// exponentials as sums. Cosh(±0) = 1, Cosh(±Inf) = +Inf, Cosh(NaN) = NaN; large
// results are +Inf.
func Cosh(x float64) float64 {
	a := math.Abs(x)
	if !(a < 708) {
		return hyperbolicRare(a)
	}
	e, eLow, d, dLow := halfExps(a)
	y := e + d
	return y + (((e - y) + d) + (eLow + dLow))
}

// halfExps returns e^a / 2 and e^-a / 2 as sums, a from 0 to 708.
func halfExps(a float64) (e, eLow, d, dLow float64) {
	m, low, k := expPair(a, 0)
	s := math.Float64frombits(uint64(1022+k) << 52)
	e = float64(m * s)
	eLow = float64(low * s)
	d = 0.25 / e
	// The quotient's remainder, and what eLow takes off.
	dLow = float64(4 * d * math.FMA(-d, eLow, math.FMA(-d, e, 0.25)))
	return e, eLow, d, dLow
}

// hyperbolicRare returns e^a / 2 for a from 708, and NaN for NaN.
func hyperbolicRare(a float64) float64 {
	if math.IsNaN(a) {
		return a
	}
	if a > 711 {
		return math.Inf(1)
	}
	m, low, k := expPair(a, 0)
	return scaled(m, low, k-1)
}

// Tanh returns the hyperbolic tangent of x.
//
// The largest error measured is 0.54 ulp. With w = e^(-2|x|) - 1 as a sum it is
// -w / (2+w), the quotient corrected by its remainder. Tanh(±0) = ±0, Tanh(±Inf) =
// ±1, Tanh(NaN) = NaN.
func Tanh(x float64) float64 {
	a := math.Abs(x)
	if !(a < 20) {
		if math.IsNaN(x) {
			return x
		}
		return math.Copysign(1, x)
	}
	m, low, k := expm1Pair(-2 * a)
	s := math.Float64frombits(uint64(1023+k) << 52)
	e := s - 1
	sm := float64(s * m)
	y := e + sm
	rest := ((e - y) + sm) + math.FMA(s, low, s-(e+1))
	w := y + rest
	wLow := (y - w) + rest
	d := 2 + w
	dLow := ((2 - d) + w) + wLow
	inverse := 1 / d
	q := -w * inverse
	rest = math.FMA(-q, d, -w) - math.FMA(q, dLow, wLow)
	return math.Copysign(math.FMA(rest, inverse, q), x)
}

// Asinh returns the inverse hyperbolic sine of x.
//
// The largest error measured is 0.51 ulp. It is log(|x| + sqrt(x^2+1)) with the
// sign of x; root and sum have tails, which are carried through Log. Asinh(±0) = ±0,
// Asinh(±Inf) = ±Inf, Asinh(NaN) = NaN.
func Asinh(x float64) float64 {
	a := math.Abs(x)
	if !(a >= 0x1p-27 && a < 0x1p500) {
		return asinhRare(x)
	}
	u := float64(a * a)
	uLow := math.FMA(a, a, -u)
	h := u + 1
	b := h - 1
	root := math.Sqrt(h)
	rest := math.FMA(-root, root, h) + (((u - b) + (1 - (h - b))) + uLow)
	s := root + a
	return math.Copysign(logOfSum(s, ((root-s)+a)+float64(rest*(0.5/root))), x)
}

func asinhRare(x float64) float64 {
	a := math.Abs(x)
	if a < 0x1p-27 || !(a <= math.MaxFloat64) {
		return x
	}
	y, low := logPair(math.Float64bits(a), 1)
	return math.Copysign(y+low, x)
}

// Acosh returns the inverse hyperbolic cosine of x.
//
// The largest error measured is 0.51 ulp. It is log(x + sqrt(x^2-1)); root and
// sum have tails, which are carried through Log. Acosh(1) = 0, Acosh(+Inf) = +Inf,
// Acosh(x) = NaN for x < 1 and NaN.
func Acosh(x float64) float64 {
	if !(x > 1 && x < 0x1p500) {
		return acoshRare(x)
	}
	u := float64(x * x)
	uLow := math.FMA(x, x, -u)
	h := u - 1
	v := h + uLow
	rest := ((h - v) + uLow) + ((u - h) - 1)
	root := math.Sqrt(v)
	rest += math.FMA(-root, root, v)
	s := x + root
	return logOfSum(s, ((x-s)+root)+float64(rest*(0.5/root)))
}

func acoshRare(x float64) float64 {
	if !(x >= 1) {
		return math.NaN()
	}
	if x == 1 {
		return 0
	}
	if math.IsInf(x, 1) {
		return x
	}
	y, low := logPair(math.Float64bits(x), 1)
	return y + low
}

// Atanh returns the inverse hyperbolic tangent of x.
//
// The largest error measured is 0.51 ulp. It is log((1+|x|) / (1-|x|)) / 2 with
// the sign of x; the quotient has a tail, which is carried through Log. Atanh(±0) =
// ±0, Atanh(±1) = ±Inf, Atanh(x) = NaN for |x| > 1 and NaN.
func Atanh(x float64) float64 {
	a := math.Abs(x)
	if !(a >= 0x1p-27 && a < 1) {
		return atanhRare(x)
	}
	n := 1 + a
	nLow := (1 - n) + a
	d := 1 - a
	dLow := (1 - d) - a
	inverse := 1 / d
	q := n * inverse
	rest := math.FMA(-q, d, n) + math.FMA(-q, dLow, nLow)
	return math.Copysign(0.5*logOfSum(q, rest*inverse), x)
}

func atanhRare(x float64) float64 {
	if math.Abs(x) < 0x1p-27 {
		return x
	}
	if math.Abs(x) == 1 {
		return math.Copysign(math.Inf(1), x)
	}
	return math.NaN()
}
