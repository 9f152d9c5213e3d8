package libm

import (
	"math"
	"math/bits"
)

// pi/2 in three parts, the rest is below 2^-163, and 2/pi.
const (
	halfPi1   = 0x1.921fb54442d18p+0
	halfPi2   = 0x1.1a62633145c07p-54
	halfPi3   = -0x1.f1976b7ed8fbcp-110
	twoOverPi = 0x1.45f306dc9c883p-1
)

// Coefficients of (sin(r)-r)/r^3 and of (cos(r)-1+r^2/2)/r^4 in r^2, minimax on
// |r| <= pi/4*1.0001: Remez' exchange in 220 bits, the error taken relative to
// sin(r) and cos(r), coefficients rounded one after the other from the lowest
// and the rest fitted anew after each. Errors 2^-57.9 and 2^-63.9.
const (
	sin0 = -0x1.5555555555548p-3
	sin1 = 0x1.111111110f730p-7
	sin2 = -0x1.a01a019be9213p-13
	sin3 = 0x1.71de35552acb6p-19
	sin4 = -0x1.ae5e4b8339d89p-26
	sin5 = 0x1.5d8b5551e0e43p-33

	cos0 = 0x1.555555555554bp-5
	cos1 = -0x1.6c16c16c15013p-10
	cos2 = 0x1.a01a019c8ed07p-16
	cos3 = -0x1.27e4f7f14107fp-22
	cos4 = 0x1.1ee9db8e24523p-29
	cos5 = -0x1.8fa65e877c7dep-37
)

// From trigHuge on quarterTurns would lose bits.
const trigHuge = 0x1p40

// quarterTurns is x = q*pi/2 + r + e with |r| <= pi/4 and a little, |e| <= 2^-50,
// of which the last two bits of q are good, for |x| < trigHuge. The first
// product cancels exactly, since x and n*halfPi1 are multiples of one power of two
// and their difference is below 2; the second is kept with its error (Cody and Waite).
func quarterTurns(x float64) (q uint64, r, e float64) {
	const round = 0x1.8p52
	t := float64(x*twoOverPi) + round
	n := t - round
	d := math.FMA(n, -halfPi1, x)
	w := float64(n * halfPi2)
	r = d - w
	return math.Float64bits(t), r, math.FMA(n, -halfPi3, ((d-r)-w)-math.FMA(n, halfPi2, -w))
}

// twoOverPiBits is 64 zeros, then 2/pi in binary from the first digit behind the point.
var twoOverPiBits = [...]uint64{
	0,
	0xa2f9836e4e441529, 0xfc2757d1f534ddc0, 0xdb6295993c439041, 0xfe5163abdebbc561,
	0xb7246e3a424dd2e0, 0x06492eea09d1921c, 0xfe1deb1cb129a73e, 0xe88235f52ebb4484,
	0xe99c7026b45f7e41, 0x3991d639835339f4, 0x9c845f8bbdf9283b, 0x1ff897ffde05980f,
	0xef2f118b5a0a6d1f, 0x6d367ecf27cb09b7, 0x4f463f669e5fea2d, 0x7527bac7ebe5f17b,
	0x3d0739f78a5292ea, 0x6bfb5fb11f8d5d08, 0x56033046fc7b6bab,
}

// hugeQuarterTurns is quarterTurns for |x| >= trigHuge (Payne and Hanek): of
// 2/pi it multiplies only the 192 bits that matter, the bits before them
// make multiples of 4. No double is nearer to a multiple of pi/2 than
// 2^-61 (Muller, Elementary Functions, ch. 11): at least 60 bits are good.
func hugeQuarterTurns(x float64) (q uint64, r, e float64) {
	b := math.Float64bits(x)
	exponent := int(b>>52&0x7ff) - (1023 + 63)
	if exponent > 1023-63 {
		return 0, math.NaN(), 0
	}
	m := b<<11 | 1<<63
	i, s := uint(exponent+62)>>6, uint(exponent+62)&63
	w0 := twoOverPiBits[i]<<s | twoOverPiBits[i+1]>>(64-s)
	w1 := twoOverPiBits[i+1]<<s | twoOverPiBits[i+2]>>(64-s)
	w2 := twoOverPiBits[i+2]<<s | twoOverPiBits[i+3]>>(64-s)
	p1, p0 := bits.Mul64(m, w1)
	c, _ := bits.Mul64(m, w2)
	lo, carry := bits.Add64(p0, c, 0)
	hi := m*w0 + p1 + carry // 2 bits of quarter turns, 62 of fraction, 64 more in lo

	q = (hi + 1<<61) >> 62
	hi, lo = hi<<2|lo>>62, lo<<2
	negative := hi>>63 != 0
	if negative {
		var borrow uint64
		lo, borrow = bits.Sub64(0, lo, 0)
		hi, _ = bits.Sub64(0, hi, borrow)
	}
	z := uint(bits.LeadingZeros64(hi))
	hi, lo = hi<<z|lo>>(64-z), lo<<z
	scale := math.Float64frombits(uint64(1023-z) << 52)
	f := float64(int64(hi>>11)) * 0x1p-53 * scale
	g := float64(int64(hi<<53>>1|lo>>12)) * 0x1p-116 * scale
	if b>>63 != 0 {
		q = -q
		negative = !negative
	}
	if negative {
		f, g = -f, -g
	}
	r = f * halfPi1
	return q, r, math.FMA(f, halfPi1, -r) + math.FMA(f, halfPi2, float64(g*halfPi1))
}

// sinPoly and cosPoly are these polynomials, sinOf and cosOf the sine and cosine
// of r+e for |r| <= pi/4. Polynomials fuse only where rounding shows: without
// GOAMD64=v3 Go tests at each fused operation whether the machine has it.
func sinPoly(z, z2 float64) float64 {
	return math.FMA(z, math.FMA(z2, float64(z2*sin5)+sin3, sin1), math.FMA(z2, float64(z2*sin4)+sin2, sin0))
}

func cosPoly(z, z2 float64) float64 {
	return math.FMA(z, math.FMA(z2, float64(z2*cos5)+cos3, cos1), math.FMA(z2, float64(z2*cos4)+cos2, cos0))
}

func sinOf(r, e float64) float64 {
	z := float64(r * r)
	return r + math.FMA(float64(r*z), sinPoly(z, float64(z*z)), float64(e*math.FMA(z, -0.5, 1)))
}

func cosOf(r, e float64) float64 {
	z := float64(r * r)
	z2 := float64(z * z)
	h := -0.5 * r
	c := math.FMA(h, r, 1)
	return c + math.FMA(z2, cosPoly(z, z2), math.FMA(h, r, 1-c)-float64(r*e))
}

// Sin is the sine of x radians, within 0.8 ulp for every x. Sin(±0) = ±0,
// Sin(±Inf) = Sin(NaN) = NaN. The angle is reduced to a quarter turn in two parts,
// then a polynomial.
func Sin(x float64) float64 {
	a := math.Abs(x)
	var q uint64
	var r, e float64
	if a < trigHuge {
		q, r, e = quarterTurns(a)
	} else {
		q, r, e = hugeQuarterTurns(a)
	}
	sign := (math.Float64bits(x) ^ q<<62) & (1 << 63)
	var y float64
	if q&1 == 0 {
		y = sinOf(r, e)
	} else {
		y = cosOf(r, e)
	}
	return math.Float64frombits(math.Float64bits(y) ^ sign)
}

// Cos is the cosine of x radians, within 0.8 ulp for every x. Cos(±Inf) = Cos(NaN) =
// NaN. The method is that of Sin.
func Cos(x float64) float64 {
	a := math.Abs(x)
	var q uint64
	var r, e float64
	if a < trigHuge {
		q, r, e = quarterTurns(a)
	} else {
		q, r, e = hugeQuarterTurns(a)
	}
	var y float64
	if q&1 == 0 {
		y = cosOf(r, e)
	} else {
		y = sinOf(r, e)
	}
	return math.Float64frombits(math.Float64bits(y) ^ (q+1)<<62&(1<<63))
}

// Sincos is Sin(x) and Cos(x), bit for bit.
func Sincos(x float64) (sin, cos float64) {
	a := math.Abs(x)
	var q uint64
	var r, e float64
	if a < trigHuge {
		q, r, e = quarterTurns(a)
	} else {
		q, r, e = hugeQuarterTurns(a)
	}
	sin, cos = sinOf(r, e), cosOf(r, e)
	if q&1 != 0 {
		sin, cos = cos, sin
	}
	sin = math.Float64frombits(math.Float64bits(sin) ^ (math.Float64bits(x)^q<<62)&(1<<63))
	cos = math.Float64frombits(math.Float64bits(cos) ^ (q+1)<<62&(1<<63))
	return sin, cos
}

// Tan is the tangent of x radians, within 0.9 ulp for every x. Tan(±0) = ±0,
// Tan(±Inf) = Tan(NaN) = NaN. It is the quotient of sine and cosine, each in two
// parts.
func Tan(x float64) float64 {
	a := math.Abs(x)
	var q uint64
	var r, e float64
	if a < trigHuge {
		q, r, e = quarterTurns(a)
	} else {
		q, r, e = hugeQuarterTurns(a)
	}
	// Sine and cosine again, with their rounding errors.
	z := float64(r * r)
	z2 := float64(z * z)
	h := -0.5 * r
	c := math.FMA(h, r, 1)
	t := math.FMA(float64(r*z), sinPoly(z, z2), float64(e*c))
	n := r + t
	nl := (r - n) + t
	t = math.FMA(z2, cosPoly(z, z2), math.FMA(h, r, 1-c)-float64(r*e))
	d := c + t
	dl := (c - d) + t
	if q&1 != 0 {
		n, nl, d, dl = d, dl, -n, -nl
	}
	i := 1 / d
	t = float64(n * i)
	t += float64((math.FMA(-t, d, n) + (nl - float64(t*dl))) * i)
	return math.Float64frombits(math.Float64bits(t) ^ math.Float64bits(x)&(1<<63))
}

// Coefficients of (asin(s)-s)/s^3 in s^2, minimax on |s| <= 1/2, found like those
// of sine, the error relative to asin(s): 2^-59.8.
const (
	asin0  = 0x1.5555555555577p-3
	asin1  = 0x1.333333332e12cp-4
	asin2  = 0x1.6db6db7212c44p-5
	asin3  = 0x1.f1c71a94c820ep-6
	asin4  = 0x1.6e8bdee5a322dp-6
	asin5  = 0x1.1c49eff23b61ap-6
	asin6  = 0x1.ca1f983569d11p-7
	asin7  = 0x1.75852beab8399p-7
	asin8  = 0x1.613eb5f8880a4p-7
	asin9  = 0x1.e5d35b776b11cp-9
	asin10 = 0x1.63a742e5f6e44p-6
	asin11 = -0x1.580d5894be7c0p-6
	asin12 = 0x1.0b4bdd114d488p-5
)

func asinPoly(z float64) float64 {
	z2 := float64(z * z)
	z4 := float64(z2 * z2)
	high := float64(z4*(float64(z4*asin12)+(float64(z2*(float64(z*asin11)+asin10))+(float64(z*asin9)+asin8)))) +
		(float64(z2*(float64(z*asin7)+asin6)) + (float64(z*asin5) + asin4))
	return math.FMA(z4, high, math.FMA(z2, math.FMA(z, asin3, asin2), math.FMA(z, asin1, asin0)))
}

// asinHalf is for 1/2 < a <= 1, where asin(a) = pi/2 - 2*asin(s+sl) with the root
// s+sl of z = (1-a)/2, s and z exact but for sl, which is 0/2^-600 for a = 1.
func asinHalf(a float64) (z, s, sl float64) {
	z = 0.5 - float64(0.5*a)
	s = math.Sqrt(z)
	return z, s, math.FMA(-s, s, z) / (float64(2*s) + 0x1p-600)
}

// Asin is the arcsine of x in radians, within 0.7 ulp. Asin(±0) = ±0, Asin(x) = NaN
// for x < -1, x > 1 and NaN. A polynomial up to 1/2, beyond that at half the
// angle of the complement.
func Asin(x float64) float64 {
	a := math.Abs(x)
	z, s, sl := float64(x*x), a, 0.0
	if !(a <= 0.5) {
		z, s, sl = asinHalf(a)
	}
	t := math.FMA(float64(s*z), asinPoly(z), sl)
	y := s + t
	if !(a <= 0.5) {
		s += s
		h := halfPi1 - s
		y = h + (((halfPi1 - h) - s) + (halfPi2 - (t + t)))
	}
	return math.Copysign(y, x)
}

// Acos is the arccosine of x in radians, within 0.7 ulp. Acos(1) = 0, Acos(x) = NaN
// for x < -1, x > 1 and NaN. The method is that of Asin.
func Acos(x float64) float64 {
	a := math.Abs(x)
	z, s, sl := float64(x*x), -x, 0.0
	c := 1.0
	if !(a <= 0.5) {
		z, s, sl = asinHalf(a)
		s, sl = float64(2*s), float64(2*sl)
		c = 0
		if x < 0 {
			c, s, sl = 2, -s, -sl
		}
	}
	t := math.FMA(float64(s*z), asinPoly(z), sl)
	h := float64(c * halfPi1)
	y := h + s
	return y + (((h - y) + s) + math.FMA(c, halfPi2, t))
}

// Coefficients of (atan(q)-q)/q^3 in q^2, minimax on |q| <= tan(pi/8)*1.0001,
// found like those of sine, the error relative to atan(q): 2^-59.4.
const (
	atan0  = -0x1.555555555553dp-2
	atan1  = 0x1.999999999585fp-3
	atan2  = -0x1.24924922aced1p-3
	atan3  = 0x1.c71c70e5d72aap-4
	atan4  = -0x1.745cf8d539eb3p-4
	atan5  = 0x1.3b111891e4f65p-4
	atan6  = -0x1.10ebb1d0c95e5p-4
	atan7  = 0x1.df0ee9f634457p-5
	atan8  = -0x1.9cd0fc1560e6cp-5
	atan9  = 0x1.37d11b6b01183p-5
	atan10 = -0x1.2560459ed2252p-6

	tanPi8 = 0x1.a827999fcef32p-2 // tan(pi/8)
)

func atanPoly(z float64) float64 {
	z2 := float64(z * z)
	z4 := float64(z2 * z2)
	high := float64(z4*(float64(z2*atan10)+(float64(z*atan9)+atan8))) +
		(float64(z2*(float64(z*atan7)+atan6)) + (float64(z*atan5) + atan4))
	return math.FMA(z4, high, math.FMA(z2, math.FMA(z, atan3, atan2), math.FMA(z, atan1, atan0)))
}

// Atan is the arctangent of x in radians, within 0.7 ulp. Atan(±0) = ±0,
// Atan(±Inf) = ±Pi/2, Atan(NaN) = NaN. It is 0, pi/4 or pi/2 plus the arctangent of x,
// (x-1)/(x+1) or -1/x: the quotient is kept with its error.
func Atan(x float64) float64 {
	b := math.Abs(x)
	c, q, f := 0.0, b, 0.0
	if !(b <= tanPi8) {
		n, nl, d, dl := -1.0, 0.0, b, 0.0
		c = 2
		if b < 1/tanPi8 {
			c = 1
			n = b - 1
			nl = b - (n + 1)
			d = b + 1
			dl = b - (d - 1)
		}
		if b > 0x1p70 {
			d = 0x1p70
		}
		i := 1 / d
		q = float64(n * i)
		f = float64((math.FMA(-q, d, n) + (nl - float64(q*dl))) * i)
		f -= float64(f * float64(q*q)) // the derivative of atan
	}
	h := float64(c * (halfPi1 / 2))
	w := h + q
	z := float64(q * q)
	r := w + (((h - w) + q) + math.FMA(float64(q*z), atanPoly(z), f+float64(c*(halfPi2/2))))
	return math.Copysign(r, x)
}

// Atan2 is the angle of the point (x, y) in radians, from -Pi to Pi with the sign
// of y, within 0.8 ulp. NaN gives NaN, and with the sign of y:
//
//	Atan2(y>0, +Inf) = Atan2(0, x>=0) = 0      Atan2(+Inf, +Inf) = Pi/4
//	Atan2(y>0, -Inf) = Atan2(0, x<=-0) = Pi    Atan2(+Inf, -Inf) = 3Pi/4
//	Atan2(y>0, 0) = Atan2(+Inf, x) = Pi/2
//
// The smaller coordinate over the greater, or the quotient that the tangent of the
// difference to pi/4 is, is kept with its error, and a multiple of pi/4 added in two
// parts. Up to pi/8 there is nothing to add, and engines for many workers jump over
// that where no worker has more.
func Atan2(y, x float64) float64 {
	b := math.Abs(y)
	n, d, nl, dl, c := b, x, 0.0, 0.0, 0.0
	near := b >= 0x1p-400 && x <= 0x1p400 && b <= float64(x*tanPi8)
	if !near {
		n, d, nl, dl, c = atan2Quotient(b, x)
	}
	i := 1 / d
	q := float64(n * i)
	rest := math.FMA(-q, d, n)
	z := float64(q * q)
	p := atanPoly(z)
	r := 0.0
	if near {
		f := float64(rest * i)
		f -= float64(f * z) // the derivative of atan
		r = q + math.FMA(float64(q*z), p, f)
	} else {
		f := float64((rest + (nl - float64(q*dl))) * i)
		f -= float64(f * z)
		h := float64(c * (halfPi1 / 2))
		w := h + q
		r = w + (((h - w) + q) + math.FMA(float64(q*z), p, f+float64(c*(halfPi2/2))))
	}
	return math.Float64frombits(math.Float64bits(r) | math.Float64bits(y)&(1<<63))
}

// atan2Quotient makes of 0 <= b and x the quotient (n+nl)/(d+dl), from -tan(pi/8) to
// tan(pi/8), and c so that the angle is its arctangent and c quarters of pi.
func atan2Quotient(b, x float64) (n, d, nl, dl, c float64) {
	a := math.Abs(x)
	s := 1.0
	if b > a {
		a, b = b, a
		c, s = 2, -1
	}
	if !(b >= 0x1p-400 && a <= 0x1p400) {
		a, b = atan2Scale(a, b)
	}
	n, d = b, a
	if b > float64(a*tanPi8) {
		n = b - a
		nl = b - (a + n)
		d = a + b
		dl = b - (d - a)
		c += s
	}
	if math.Signbit(x) {
		c = 4 - c
		s = -s
	}
	return float64(n * s), d, float64(s * nl), dl, c
}

// atan2Scale makes of 0 <= b <= a, or NaN, a pair of the same angle from which Atan2
// computes without underflow or overflow.
func atan2Scale(a, b float64) (float64, float64) {
	if math.IsNaN(a + b) {
		return math.NaN(), math.NaN()
	}
	if a == 0 {
		return 1, 0
	}
	if math.IsInf(b, 0) {
		return 1, 1
	}
	t := b / a
	if !(t >= 0x1p-70) {
		return 1, t
	}
	scale := 0x1p600
	if a > 1 {
		scale = 0x1p-600
	}
	return a * scale, b * scale
}
