package libm

import "math"

const (
	log2E    = 1.4426950408889634073599246810018921374 // 1/ln 2
	log2ELow = 0x1.777d0ffda0d24p-56                   // 1/ln 2 - float64(log2E)
	ln2      = 0.69314718055994530941723212145817656808
	ln2Low   = 0x1.abc9e3b39803fp-56 // ln 2 - float64(ln2)

	// ln2Head is ln 2 rounded to a multiple of 2^-42, so that its products with
	// exponents are exact; ln2Tail is the rest.
	ln2Head = 0x1.62e42fefa38p-1
	ln2Tail = 0x1.ef35793c7673p-45

	// A float64 below 2^51 plus nearest is that number rounded to an integer, plus
	// nearest, and the bits of the sum count with the integer.
	nearest     = 0x1.8p52
	nearestBits = 0x4338000000000000
)

// expPolynomial is (e^r - 1 - r - r^2/2) / r^3 for |r| <= 0.3466, r2 = r^2. Its
// coefficients minimise the largest error relative to r of e^r - 1, 2^-61.6, by
// weighted least squares (Lawson's iteration) on Chebyshev nodes in 400 bits, and
// were rounded to float64 from the lowest on, refitting the rest each time.
func expPolynomial(r, r2 float64) float64 {
	even := math.FMA(r2, 0x1.af5f379c45c45p-26, 0x1.71ddf807f9d4dp-19)
	odd := math.FMA(r2, 0x1.1f8584ed2d236p-29, 0x1.27e4d0579ae40p-22)
	even = math.FMA(r2, even, 0x1.a01a01b0067bdp-13)
	odd = math.FMA(r2, odd, 0x1.a01a01ab69217p-16)
	even = math.FMA(r2, even, 0x1.111111110f64fp-7)
	odd = math.FMA(r2, odd, 0x1.6c16c16c156dfp-10)
	even = math.FMA(r2, even, 0x1.5555555555559p-3)
	odd = math.FMA(r2, odd, 0x1.5555555555557p-5)
	return math.FMA(r, odd, even)
}

// Exp returns e^x.
//
// The largest error measured is 0.60 ulp. x = k ln 2 + r is reduced in two
// steps with a remainder, and e^r = 1 + r + r^2 P(r) with 1 + r kept exactly.
// Results below the normal range are rounded once. Exp(+Inf) = +Inf,
// Exp(-Inf) = 0, Exp(NaN) = NaN; large results are +Inf, small ones 0.
func Exp(x float64) float64 {
	if !(math.Abs(x) < 708) {
		return expRare(x)
	}
	t := math.FMA(x, log2E, nearest)
	k := t - nearest
	a := math.FMA(k, -ln2Head, x)
	r := math.FMA(k, -ln2Tail, a)
	low := math.FMA(k, -ln2Tail, a-r)
	head := 1 + r
	low = math.FMA(low, head, (1-head)+r)
	r2 := r * r
	p := math.FMA(r, expPolynomial(r, r2), 0.5)
	y := head + math.FMA(r2, p, low)
	return math.Float64frombits(math.Float64bits(y) + math.Float64bits(t)<<52)
}

// expReduced returns e^(r+low) as a sum, for |r| <= 0.3466, in the same steps.
func expReduced(r, low float64) (head, tail float64) {
	head = 1 + r
	low = math.FMA(low, head, (1-head)+r)
	r2 := r * r
	p := math.FMA(r, expPolynomial(r, r2), 0.5)
	return head, math.FMA(r2, p, low)
}

// expRare is Exp where the result is not a normal number well inside the range.
func expRare(x float64) float64 {
	if math.IsNaN(x) {
		return x
	}
	if x > 710 {
		return math.Inf(1)
	}
	if x < -746 {
		return 0
	}
	m, low, k := expPair(x, 0)
	return scaled(m, low, k)
}

// expm1Pair returns e^x = 2^k (1 + m + low), |x| < 2^40, m in -0.3 to 0.42,
// with m + low good to some 2^-61 of m and low up to r^3/6.
func expm1Pair(x float64) (m, low float64, k int) {
	t := math.FMA(x, log2E, nearest)
	n := t - nearest
	a := math.FMA(n, -ln2Head, x)
	r := math.FMA(n, -ln2Tail, a)
	low = math.FMA(n, -ln2Tail, a-r)
	r2 := r * r
	r2Low := math.FMA(r, r, -r2)
	half := float64(0.5 * r2)
	m = r + half
	low = math.FMA(low, 1+r, math.FMA(0.5, r2Low, (r-m)+half))
	low = math.FMA(float64(r2*r), expPolynomial(r, r2), low)
	return m, low, int(int64(math.Float64bits(t)) - nearestBits)
}

// expPair returns e^(x+tail) = 2^k (m + low), |x| < 2^40, m from 0.7 to 1.42, as
// good as Exp is before it rounds.
func expPair(x, tail float64) (m, low float64, k int) {
	t := math.FMA(x, log2E, nearest)
	n := t - nearest
	a := math.FMA(n, -ln2Head, x)
	b := math.FMA(n, -ln2Tail, a)
	tail += math.FMA(n, -ln2Tail, a-b)
	r := b + tail
	head, low := expReduced(r, (b-r)+tail)
	m = head + low
	return m, (head - m) + low, int(int64(math.Float64bits(t)) - nearestBits)
}

// scaled is 2^k (m + low), m from 0.65 to 1.42, |low| < 0.1 and k from -1100 to
// 2000, rounded once, whether it is normal or not.
func scaled(m, low float64, k int) float64 {
	y := m + low
	if k > 1022 {
		return float64(y * 0x1p1022 * math.Float64frombits(uint64(k-1022+1023)<<52))
	}
	if int(math.Float64bits(y)>>52)+k > 0 {
		return math.Float64frombits(math.Float64bits(y) + uint64(k)<<52)
	}
	// unit has, in its last place, the last place of the result.
	unit := math.Float64frombits(uint64(1023-1022-k) << 52)
	s := unit + m
	rest := (unit - s) + m
	s += rest + low
	return float64((s - unit) * 0x1p-1000 * math.Float64frombits(uint64(1023+1000+k)<<52))
}

// Exp2 returns 2^x.
//
// The largest error measured is 0.61 ulp; powers of two are exact. x = k + f
// with k an integer, and 2^f is e^(f ln 2) as in Exp. Results below the normal
// range are rounded once. Exp2(+Inf) = +Inf, Exp2(-Inf) = 0, Exp2(NaN) = NaN;
// large results are +Inf, small ones 0.
func Exp2(x float64) float64 {
	if !(math.Abs(x) < 1021) {
		return exp2Rare(x)
	}
	t := x + nearest
	f := x - (t - nearest)
	r := float64(f * ln2)
	head, tail := expReduced(r, math.FMA(f, ln2Low, math.FMA(f, ln2, -r)))
	return math.Float64frombits(math.Float64bits(head+tail) + math.Float64bits(t)<<52)
}

func exp2Rare(x float64) float64 {
	if math.IsNaN(x) {
		return x
	}
	if x >= 1024 {
		return math.Inf(1)
	}
	if x < -1076 {
		return 0
	}
	k := math.RoundToEven(x)
	f := x - k
	r := float64(f * ln2)
	head, tail := expReduced(r, math.FMA(f, ln2Low, math.FMA(f, ln2, -r)))
	return scaled(head, tail, int(k))
}

// Expm1 returns e^x - 1, accurate where x is near 0.
//
// The largest error measured is 0.61 ulp. The parts of e^x = 2^k (1 + m) are
// added to -1 without loss. Expm1(±0) = ±0, Expm1(+Inf) = +Inf, Expm1(-Inf) = -1,
// Expm1(NaN) = NaN; large results are +Inf.
func Expm1(x float64) float64 {
	if !(math.Abs(x) >= 0x1p-54 && x < 700 && x > -38) {
		return expm1Rare(x)
	}
	m, low, k := expm1Pair(x)
	s := math.Float64frombits(uint64(1023+k) << 52)
	// e = s - 1 and eLow its rounding error, by Knuth's two-sum.
	e := s - 1
	part := e - s
	eLow := (s - (e - part)) + (-1 - part)
	w := float64(s * m)
	y := e + w
	return y + (((e - y) + w) + math.FMA(s, low, eLow))
}

func expm1Rare(x float64) float64 {
	if math.IsNaN(x) || math.Abs(x) < 0x1p-54 {
		return x
	}
	if x < 0 {
		return -1
	}
	return expRare(x)
}
