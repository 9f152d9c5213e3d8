package libm

import "math"

// The functions of this file are what the others are named after under FastMath:
// within 4 ulp instead of 1, with fewer terms and without the low parts of sums. Every
// special value is kept, and where the main way does not reach, the accurate function
// is called.
//
// Coefficients minimise the largest relative error of the function (exchange algorithm
// of Remez in 45 digits), rounded to float64 one after the other from the lowest, the
// rest being fitted anew; those of powers and of the tail of erf together.

// pi in three parts, the first two rounded down, so that differences from multiples of
// all three keep the sign of a zero; the rest is below 2^-159.
const (
	fastPi1 = 0x1.921fb54442d18p+1
	fastPi2 = 0x1.1a62633145c06p-53
	fastPi3 = 0x1.c1cd129024e09p-106
)

// fastSin is sin r for |r| <= pi/2, its polynomial off by 2^-61.
func fastSin(r float64) float64 {
	z := float64(r * r)
	p := math.FMA(z, 0x1.8832900822eddp-49, -0x1.ae4383d5c24ccp-41)
	p = math.FMA(z, p, 0x1.6123cd05d70ffp-33)
	p = math.FMA(z, p, -0x1.ae6454d4718eep-26)
	p = math.FMA(z, p, 0x1.71de3a52a0af6p-19)
	p = math.FMA(z, p, -0x1.a01a01a014d6fp-13)
	p = math.FMA(z, p, 0x1.11111111110c8p-7)
	p = math.FMA(z, p, -0x1.5555555555555p-3)
	return r * math.FMA(z, p, 1)
}

// SinFast is the sine of x radians, within 4 ulp for every x, with the special values
// of Sin. The angle is reduced to half a turn in one part, then a polynomial.
func SinFast(x float64) float64 {
	t := math.FMA(x, 1/math.Pi, nearest)
	n := t - nearest
	r := math.FMA(n, -fastPi3, math.FMA(n, -fastPi2, math.FMA(n, -fastPi1, x)))
	y := math.Float64frombits(math.Float64bits(fastSin(r)) ^ math.Float64bits(t)<<63)
	if !(math.Abs(x) < trigHuge) {
		return sinHuge(x)
	}
	return y
}

// CosFast is the cosine of x radians, within 4 ulp for every x, with the special values
// of Cos, as the sine of what is left of x after an odd number of quarter turns.
func CosFast(x float64) float64 {
	t := math.FMA(x, 1/math.Pi, -0.5) + nearest
	n := (t - nearest) + 0.5
	r := math.FMA(n, fastPi3, math.FMA(n, fastPi2, math.FMA(n, fastPi1, -x)))
	y := math.Float64frombits(math.Float64bits(fastSin(r)) ^ math.Float64bits(t)<<63)
	if !(math.Abs(x) < trigHuge) {
		return cosHuge(x)
	}
	return y
}

// SincosFast is SinFast(x) and CosFast(x), bit for bit.
func SincosFast(x float64) (sin, cos float64) { return SinFast(x), CosFast(x) }

// sinHuge, cosHuge and tanHuge are Sin, Cos and Tan for |x| >= trigHuge.
func sinHuge(x float64) float64 {
	q, r, e := hugeQuarterTurns(x)
	return turnedSin(q, r, e)
}

func cosHuge(x float64) float64 {
	q, r, e := hugeQuarterTurns(x)
	return turnedCos(q, r, e)
}

func tanHuge(x float64) float64 {
	q, r, e := hugeQuarterTurns(x)
	return turnedSin(q, r, e) / turnedCos(q, r, e)
}

// TanFast is the tangent of x radians, within 4 ulp for every x, with the special
// values of Tan: the quotient of sine and cosine.
func TanFast(x float64) float64 {
	t := math.FMA(x, 2/math.Pi, nearest)
	m := t - nearest
	r := math.FMA(m, -0.5*fastPi3, math.FMA(m, -0.5*fastPi2, math.FMA(m, -0.5*fastPi1, x)))
	z := float64(r * r)
	z2 := float64(z * z)
	n := r * math.FMA(z, sinPoly(z, z2), 1)
	d := math.FMA(z2, cosPoly(z, z2), math.FMA(z, -0.5, 1))
	q := math.Float64bits(t)
	if q&1 != 0 {
		n, d = d, n
	}
	y := math.Float64frombits(math.Float64bits(n/d) ^ q<<63)
	if !(math.Abs(x) < trigHuge) {
		return tanHuge(x)
	}
	return y
}

// fastAtan is atan q for |q| <= tan(pi/8), its polynomial off by 2^-54.6.
func fastAtan(q float64) float64 {
	z := float64(q * q)
	p := math.FMA(z, 0x1.5c454551bb022p-6, -0x1.651399c3f3fdap-5)
	p = math.FMA(z, p, 0x1.d25365714e225p-5)
	p = math.FMA(z, p, -0x1.1005088484e08p-4)
	p = math.FMA(z, p, 0x1.3afc30fdaf4fp-4)
	p = math.FMA(z, p, -0x1.745bc2e199a65p-4)
	p = math.FMA(z, p, 0x1.c71c65cc45fc9p-4)
	p = math.FMA(z, p, -0x1.2492490572fc6p-3)
	p = math.FMA(z, p, 0x1.9999999949569p-3)
	p = math.FMA(z, p, -0x1.5555555555317p-2)
	return math.FMA(float64(q*z), p, q)
}

// AtanFast is the arctangent of x in radians, within 4 ulp, with the special values of
// Atan, by which it goes too.
func AtanFast(x float64) float64 {
	b := math.Abs(x)
	n, d, base := b, 1.0, 0.0
	if b > tanPi8 {
		n, d, base = b-1, b+1, math.Pi/4
	}
	if b > 1/tanPi8 {
		n, d, base = -1, b, math.Pi/2
	}
	return math.Copysign(base+fastAtan(n/d), x)
}

// Atan2Fast is the angle of the point (x, y) in radians, within 4 ulp, with the special
// values of Atan2, by which it goes too.
func Atan2Fast(y, x float64) float64 {
	b := math.Abs(y)
	n, d, base := b, x, 0.0
	near := x >= 0x1p-1000 && x <= 0x1p1000 && b <= float64(x*tanPi8)
	if !near {
		n, d, base = atan2Sides(b, x)
	}
	r := fastAtan(n / d)
	if !near {
		r = atan2Turned(r, base, b, x)
	}
	return math.Copysign(r, y)
}

// atan2Sides are the sides of which Atan2Fast takes the arctangent, and what comes to it.
func atan2Sides(b, x float64) (n, d, base float64) {
	a := math.Abs(x)
	if b > a {
		a, b = b, a
	}
	n, d = b, a
	if b > float64(a*tanPi8) {
		n, d, base = b-a, b+a, math.Pi/4
	}
	return n, d, base
}

// atan2Turned is the angle of (x, b) if r and base are of atan2Sides.
func atan2Turned(r, base, b, x float64) float64 {
	a := math.Abs(x)
	r += base
	if b > a {
		a = b
		r = math.Pi/2 - r
	}
	if x < 0 {
		r = math.Pi - r
	}
	if !(a >= 0x1p-1000 && a <= 0x1p1000) {
		r = Atan2(b, x)
	}
	return r
}

// fastExpm1 is (e^r - 1) / r for |r| <= ln(2)/2, off by 2^-55 of e^r.
func fastExpm1(r float64) float64 {
	p := math.FMA(r, 0x1.ae64c94d8b7a4p-26, 0x1.28a287cfba2c5p-22)
	p = math.FMA(r, p, 0x1.71de8e1aba0abp-19)
	p = math.FMA(r, p, 0x1.a019a6a91e1f5p-16)
	p = math.FMA(r, p, 0x1.a01a0171247fcp-13)
	p = math.FMA(r, p, 0x1.6c16c17f2ca02p-10)
	p = math.FMA(r, p, 0x1.111111111a1fdp-7)
	p = math.FMA(r, p, 0x1.5555555552113p-5)
	p = math.FMA(r, p, 0x1.555555555553p-3)
	p = math.FMA(r, p, 0x1.0000000000005p-1)
	p = math.FMA(r, p, 0x1p+0)
	return p
}

// ExpFast is e^x, within 4 ulp, with the special values of Exp.
func ExpFast(x float64) float64 {
	t := math.FMA(x, log2E, nearest)
	k := t - nearest
	r := math.FMA(k, -ln2Low, math.FMA(k, -ln2, x))
	y := math.FMA(r, fastExpm1(r), 1)
	y = math.Float64frombits(math.Float64bits(y) + math.Float64bits(t)<<52)
	if !(math.Abs(x) < 708) {
		return expRare(x)
	}
	return y
}

// Exp2Fast is 2^x, within 4 ulp, with the special values of Exp2; powers of two are
// exact.
func Exp2Fast(x float64) float64 {
	t := x + nearest
	r := x - (t - nearest)
	// (2^r - 1) / r for |r| <= 1/2, off by 2^-55 of 2^r.
	p := math.FMA(r, 0x1.ea040f9a80248p-32, 0x1.e60643ed8eceep-28)
	p = math.FMA(r, p, 0x1.b524dcdebae1dp-24)
	p = math.FMA(r, p, 0x1.62bfd4752ac4ap-20)
	p = math.FMA(r, p, 0x1.ffcbfc742efe6p-17)
	p = math.FMA(r, p, 0x1.43091309709bbp-13)
	p = math.FMA(r, p, 0x1.5d87fe78a2cfcp-10)
	p = math.FMA(r, p, 0x1.3b2ab6fba1dd7p-7)
	p = math.FMA(r, p, 0x1.c6b08d704a0cbp-5)
	p = math.FMA(r, p, 0x1.ebfbdff82c598p-3)
	p = math.FMA(r, p, 0x1.62e42fefa39efp-1)
	y := math.FMA(r, p, 1)
	y = math.Float64frombits(math.Float64bits(y) + math.Float64bits(t)<<52)
	if !(math.Abs(x) < 1021) {
		return exp2Rare(x)
	}
	return y
}

// fastLog is log x = k ln 2 + l for x of bits b, positive, finite and normal, l from
// -ln(2)/2 to ln(2)/2.
func fastLog(b uint64) (k, l float64) {
	// The exponent goes up by 1024, so that it is positive.
	t := b + (1024<<52 - rootHalfBits)
	k = math.Float64frombits(t>>52+nearestBits) - (nearest + 1024)
	m := math.Float64frombits(t&fracMask + rootHalfBits)
	s := (m - 1) / (m + 1)
	u := float64(s * s)
	return k, math.FMA(float64(u*s), fastLogPoly(u), s+s)
}

// fastLogPoly is (log((1+s)/(1-s)) - 2s) / s^3 in u = s^2 for |s| <= 3-2*sqrt(2), off by
// 2^-59 of the logarithm.
func fastLogPoly(u float64) float64 {
	p := math.FMA(u, 0x1.2f038dd019246p-3, 0x1.39a1ef6e8dc6cp-3)
	p = math.FMA(u, p, 0x1.74663c9874964p-3)
	p = math.FMA(u, p, 0x1.c71c52162eaefp-3)
	p = math.FMA(u, p, 0x1.24924941df001p-2)
	p = math.FMA(u, p, 0x1.999999997ff3ap-2)
	p = math.FMA(u, p, 0x1.5555555555592p-1)
	return p
}

const rootHalfBits = 0x3fe6a09e667f3bcd // of sqrt(1/2)

// LogFast is the natural logarithm of x, within 4 ulp, with the special values of Log.
func LogFast(x float64) float64 {
	b := math.Float64bits(x)
	k, l := fastLog(b)
	y := math.FMA(k, ln2, l)
	if b-minNormalBits >= infinityBits-minNormalBits {
		return logRare(x)
	}
	return y
}

// Log2Fast is the binary logarithm of x, within 4 ulp, with the special values of Log2;
// it is exact for powers of two.
func Log2Fast(x float64) float64 {
	b := math.Float64bits(x)
	k, l := fastLog(b)
	y := math.FMA(l, log2E, k)
	if b-minNormalBits >= infinityBits-minNormalBits {
		return Log2(x)
	}
	return y
}

// Log10Fast is the decimal logarithm of x, within 4 ulp, with the special values of Log10.
func Log10Fast(x float64) float64 {
	b := math.Float64bits(x)
	k, l := fastLog(b)
	y := math.FMA(k, log10Of2, float64(l*log10E))
	if b-minNormalBits >= infinityBits-minNormalBits {
		return Log10(x)
	}
	return y
}

const log10Of2 = 0.30102999566398119521373889472449302677

// PowFast is x^y, within 4 + |y log x|/16 ulp, with the special values of Pow. The
// logarithm is a sum of two floats, the quotient in it being kept with its error.
func PowFast(x, y float64) float64 {
	b := math.Float64bits(x)
	t := b + (1024<<52 - rootHalfBits)
	k := math.Float64frombits(t>>52+nearestBits) - (nearest + 1024)
	m := math.Float64frombits(t&fracMask + rootHalfBits)
	n, d := m-1, m+1
	i := 1 / d
	s := float64(n * i)
	low := float64((math.FMA(-s, d, n) - float64(s*(m-(d-1)))) * i)
	u := float64(s * s)
	low = math.FMA(float64(u*s), fastLogPoly(u), low+low)
	c := float64(k * ln2Head)
	h := c + (s + s)
	low += ((c - h) + (s + s)) + float64(k*ln2Tail)
	c = h
	h += low
	low += c - h
	p := float64(y * h)
	low = math.FMA(y, low, math.FMA(y, h, -p))
	t2 := math.FMA(p, log2E, nearest)
	k = t2 - nearest
	r := math.FMA(k, -ln2Low, math.FMA(k, -ln2, p)) + low
	z := math.FMA(r, fastExpm1(r), 1)
	z = math.Float64frombits(math.Float64bits(z) + math.Float64bits(t2)<<52)
	if b-minNormalBits >= infinityBits-minNormalBits || !(math.Abs(p) < 708) {
		return powRare(x, y)
	}
	return z
}

// TanhFast is the hyperbolic tangent of x, within 4 ulp, with the special values of
// Tanh: e/(e+2) for e = e^(2|x|) - 1.
func TanhFast(x float64) float64 {
	a := math.Abs(x)
	h := 2 * a
	t := math.FMA(h, log2E, nearest)
	k := t - nearest
	r := math.FMA(k, -ln2Low, math.FMA(k, -ln2, h))
	s := math.Float64frombits(math.Float64bits(t)<<52 + 1023<<52)
	e := math.FMA(s, float64(r*fastExpm1(r)), s-1)
	y := e / (e + 2)
	if a >= 20 {
		y = 1
	}
	return math.Copysign(y, x)
}

// ErfFast is the error function of x, within 4 ulp, with the special values of Erf: x
// times a polynomial of x^2 up to 0.875, beyond it 1 - e^p with a polynomial p of |x|.
func ErfFast(x float64) float64 {
	a := math.Abs(x)
	return math.Copysign(fastErf(a), x)
}

func fastErf(a float64) float64 {
	small := a * fastErfSmall(float64(a*a))
	// log(erfc(a)), off by 2^-53 where that counts.
	u := a - 1.5
	p := math.FMA(u, 0x1.0d74b31ba412cp-35, -0x1.972382e44ba76p-32)
	p = math.FMA(u, p, 0x1.c488f8d48ba74p-30)
	p = math.FMA(u, p, -0x1.3186d127742f6p-30)
	p = math.FMA(u, p, -0x1.cb53b714cdd19p-26)
	p = math.FMA(u, p, 0x1.9be7ed879be16p-23)
	p = math.FMA(u, p, -0x1.b7daf269a47eep-21)
	p = math.FMA(u, p, 0x1.3e4be377a19bp-19)
	p = math.FMA(u, p, -0x1.633cb038f2495p-19)
	p = math.FMA(u, p, -0x1.790cbe7495fa5p-16)
	p = math.FMA(u, p, 0x1.c4e86860b7feap-13)
	p = math.FMA(u, p, -0x1.4992618cec2ddp-10)
	p = math.FMA(u, p, 0x1.89a87b4bfb02cp-8)
	p = math.FMA(u, p, -0x1.a71a4bdebb86fp-6)
	p = math.FMA(u, p, -0x1.c90827462a906p-1)
	p = math.FMA(u, p, -0x1.c1206279e925ap+1)
	p = math.FMA(u, p, -0x1.b137096b18e91p+1)
	t := math.FMA(p, log2E, nearest)
	k := t - nearest
	r := math.FMA(k, -ln2Low, math.FMA(k, -ln2, p))
	s := math.Float64frombits(math.Float64bits(t)<<52 + (1<<63 | 1023<<52)) // -2^k
	y := math.FMA(s, float64(r*fastExpm1(r)), 1+s)
	if a >= 5.95 {
		y = 1
	}
	if a < 0.875 {
		y = small
	}
	return y
}

// fastErfSmall is erf(x)/x for z = x^2, |x| <= 0.875, off by 2^-55.
func fastErfSmall(z float64) float64 {
	p := math.FMA(z, 0x1.678505420d852p-27, -0x1.4f7a6df617c7bp-23)
	p = math.FMA(z, p, 0x1.b7e858c6453ddp-20)
	p = math.FMA(z, p, -0x1.f4aa4c80d3642p-17)
	p = math.FMA(z, p, 0x1.f9a11ebed79b7p-14)
	p = math.FMA(z, p, -0x1.c02da300cd0c8p-11)
	p = math.FMA(z, p, 0x1.565bccb5b5e24p-8)
	p = math.FMA(z, p, -0x1.b82ce3106dab6p-6)
	p = math.FMA(z, p, 0x1.ce2f21a03c3bbp-4)
	p = math.FMA(z, p, -0x1.812746b03796dp-2)
	p = math.FMA(z, p, 0x1.20dd750429b6dp+0)
	return p
}
