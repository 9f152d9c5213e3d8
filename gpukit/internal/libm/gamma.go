package libm

import "math"

// log(2*pi)/2 and pi in two floats.
const (
	halfLog2PiHi = 0.9189385332046728
	halfLog2PiLo = -3.8782941580672414e-17
	piHi         = 2 * halfPi1
	piLo         = 2 * halfPi2
)

// stirling is log(Gamma(x)) = h + l for 8 <= x <= 1e305, within some 2**-60 of
// x*log(x): (x-1/2)*log(x) - x + log(2*pi)/2 + s(1/x**2)/x. The polynomial s, of
// degree 6, interpolates in Chebyshev points with 60 digits, within 6e-19.
func stirling(x float64) (h, l float64) {
	lh, ll := logPair(math.Float64bits(x), 0)
	a := x - 0.5
	p := float64(a * lh)
	v := 1 / x
	z := float64(v * v)
	s := 0.005065905360156132
	s = math.FMA(s, z, -0.001890382993887715)
	s = math.FMA(s, z, 0.0008414700852503147)
	s = math.FMA(s, z, -0.0005952365845057049)
	s = math.FMA(s, z, 0.0007936507897524059)
	s = math.FMA(s, z, -0.002777777777773988)
	s = math.FMA(s, z, 0.08333333333333333)
	low := math.FMA(a, lh, -p) + math.FMA(a, ll, math.FMA(v, s, halfLog2PiLo))
	b := p - x
	c := b + halfLog2PiHi
	low += ((p - b) - x) + ((b - c) + halfLog2PiHi)
	h = c + low
	return h, (c - h) + low
}

// gammaNear is Gamma(2.5+u) = h + l for |u| <= 0.5: the polynomial of degree 17
// that interpolates in Chebyshev points, with 60 digits, within 3e-18.
func gammaNear(u float64) (h, l float64) {
	z := float64(u * u)
	p := -8.145090189168093e-08
	q := 2.038631996005556e-07
	p = math.FMA(p, z, -4.194966651325622e-07)
	q = math.FMA(q, z, 1.0675361551610872e-06)
	p = math.FMA(p, z, -2.5616230813219703e-06)
	q = math.FMA(q, z, 7.257335209971111e-06)
	p = math.FMA(p, z, -1.2801469976800749e-05)
	q = math.FMA(q, z, 6.132951527532448e-05)
	p = math.FMA(p, z, 3.941771682340493e-06)
	q = math.FMA(q, z, 0.0007544741634534283)
	p = math.FMA(p, z, 0.0016074004854324574)
	q = math.FMA(q, z, 0.010392403424525895)
	p = math.FMA(p, z, 0.028360780594830326)
	q = math.FMA(q, z, 0.10967323400218487)
	p = math.FMA(p, z, 0.25387124684114293)
	q = math.FMA(q, z, 0.6545585779813367)
	p = math.FMA(p, z, 0.9347345216260855)
	v := float64(u * math.FMA(q, u, p))
	h = 1.329340388179137 + v
	return h, (1.329340388179137 - h) + v + -1.9882475174356644e-18
}

// gammaPair is Gamma(x) = (h + l) * 2**k, within 2**-53 of it, for x in [2**-60, 185]:
// Stirling's series from 8 on, below it gammaNear times or over the factors between.
func gammaPair(x float64) (h, l float64, k int) {
	if x >= 8 {
		return expPair(stirling(x))
	}
	switch {
	case x < 1:
		h, l = gammaNear(x - 0.5)
		p := math.FMA(x, x, x)
		return quotient(h, l, p, math.FMA(x, x, x-p), 0)
	case x < 2:
		h, l = gammaNear(x - 1.5)
		return quotient(h, l, x, 0, 0)
	}
	n := math.Floor(x) - 2
	h, l = gammaNear((x - n) - 2.5)
	for i := 1.0; i <= n; i++ {
		d := x - i
		p := float64(h * d)
		l = math.FMA(h, d, -p) + float64(l*d)
		h = p
	}
	return h, l, 0
}

// quotient is (a+al)/(b+bl) * 2**k as a sum.
func quotient(a, al, b, bl float64, k int) (h, l float64, exp int) {
	h = a / b
	return h, (math.FMA(-h, b, a) + math.FMA(-h, bl, al)) / b, k
}

// sinPi is |sin(pi*a)| for a >= 0.
func sinPi(a float64) float64 {
	r := math.Abs(a - math.RoundToEven(a))
	s := r
	if r > 0.25 {
		s = 0.5 - r
	}
	h := float64(s * piHi)
	l := math.FMA(s, piHi, -h) + float64(s*piLo)
	if r > 0.25 {
		return cosOf(h, l)
	}
	return sinOf(h, l)
}

// gammaReflected is |Gamma(-a)| = (h + l) * 2**k for a in [2**-60, 185], no integer:
// pi / (a * sin(pi*a) * Gamma(a)).
func gammaReflected(a float64) (h, l float64, k int) {
	g, gl, k := gammaPair(a)
	s := sinPi(a)
	d := float64(a * s)
	dl := math.FMA(a, s, -d)
	b := float64(d * g)
	return quotient(piHi, piLo, b, math.FMA(d, g, -b)+math.FMA(d, gl, float64(dl*g)), -k)
}

// Gamma is the gamma function of x, within 2.1 ulp; factorials that are float64s are
// exact.
//
//	Gamma(+Inf) = +Inf
//	Gamma(+0) = +Inf
//	Gamma(-0) = -Inf
//	Gamma(x) = NaN for integer x < 0
//	Gamma(-Inf) = NaN
//	Gamma(NaN) = NaN
//
// Stirling's series in two floats for x >= 8, a polynomial around 2.5 and the
// recurrence below, the reflection formula for x < 0.
func Gamma(x float64) float64 {
	a := math.Abs(x)
	switch {
	case a < 0x1p-60:
		return 1 / x
	case x > 172:
		return math.Inf(1)
	case x > 0:
		h, l, k := gammaPair(x)
		return scaled(h, l, k)
	case !(a <= math.MaxFloat64) || a == math.Floor(a):
		return math.NaN()
	}
	y := 0.0
	if a < 185 {
		h, l, k := gammaReflected(a)
		y = scaled(h, l, k)
	}
	if even(math.Floor(a)) {
		return -y
	}
	return y
}

// even says whether n, which is an integer, is even.
func even(n float64) bool { return math.Trunc(0.5*n) == 0.5*n }

// lgammaPositive is log(Gamma(x)) for x >= 2**-60.
func lgammaPositive(x float64) float64 {
	switch {
	case x >= 8:
		if x > 1e305 {
			return x * (Log(x) - 1)
		}
		h, _ := stirling(x)
		return h
	case x >= 3:
		h, l, _ := gammaPair(x)
		return logOfSum(h, l)
	case x < 0.5:
		return lgammaNear1(x) - Log(x)
	case x < 0.6875:
		return lgammaNear2(x-1) - Log(x)
	case x < 1.5:
		return lgammaNear1(x - 1)
	}
	return lgammaNear2(x - 2)
}

// lgammaNear1 is log(Gamma(1+u)) for u in [-0.3125, 0.5]: u*(u-1) times a rational
// function of degree 6 over 6, by the Remez exchange with 40 digits, within 2e-17.
func lgammaNear1(u float64) float64 {
	w := u + 0.3125
	p := 0.00017923164910542866
	q := 0.009864183045725665
	p = math.FMA(p, w, 0.030893282343979464)
	q = math.FMA(q, w, 0.23811650357091793)
	p = math.FMA(p, w, 0.41467218403859024)
	q = math.FMA(q, w, 1.6511572989874466)
	p = math.FMA(p, w, 1.7584460921387128)
	q = math.FMA(q, w, 4.7739092977601265)
	p = math.FMA(p, w, 3.111069712723003)
	q = math.FMA(q, w, 6.512768075608909)
	p = math.FMA(p, w, 2.4083745018136526)
	q = math.FMA(q, w, 4.157663966218823)
	p = math.FMA(p, w, 0.6737458528710984)
	q = math.FMA(q, w, 1.0)
	return u * (u - 1) * p / q
}

// lgammaNear2 is log(Gamma(2+u)) for u in [-0.5, 1]: u*(u+1) times a rational
// function of degree 6 over 6, by the Remez exchange with 40 digits, within 3e-18.
func lgammaNear2(u float64) float64 {
	w := u + 0.5
	p := 1.1428570634591114e-06
	q := 0.00012232672809419647
	p = math.FMA(p, w, 0.00046331494912973655)
	q = math.FMA(q, w, 0.0058982200026679475)
	p = math.FMA(p, w, 0.013465322463675374)
	q = math.FMA(q, w, 0.08351841252025081)
	p = math.FMA(p, w, 0.12356240913224201)
	q = math.FMA(q, w, 0.5016788994835653)
	p = math.FMA(p, w, 0.47395964989973116)
	q = math.FMA(q, w, 1.4397583669887437)
	p = math.FMA(p, w, 0.7958731256876006)
	q = math.FMA(q, w, 1.9494443885991384)
	p = math.FMA(p, w, 0.4831289505409809)
	q = math.FMA(q, w, 1.0)
	return u * (u + 1) * p / q
}

// Lgamma is log(|Gamma(x)|), and the sign of Gamma(x) (1 where that has none):
// within 5 ulp for x > 0; for x < 0 within 2 ulp of the larger of |lgamma| and 1/2, so
// that it has few good digits where it is nearly 0.
//
//	Lgamma(+Inf) = +Inf
//	Lgamma(±0) = +Inf
//	Lgamma(-integer) = +Inf
//	Lgamma(-Inf) = -Inf
//	Lgamma(NaN) = NaN
//
// Rational functions around its zeros 1 and 2, Stirling's series from 8 on, the
// logarithm of the gamma function between and for x < 0.
func Lgamma(x float64) (lgamma float64, sign int) {
	a := math.Abs(x)
	switch {
	case !(a <= math.MaxFloat64):
		return x, 1
	case x == 0:
		return math.Inf(1), 1
	case x == 1 || x == 2:
		return 0, 1
	case a < 0x1p-60:
		lgamma = -Log(a)
	case x > 0:
		return lgammaPositive(x), 1
	case a == math.Floor(a):
		return math.Inf(1), 1
	case a < 100:
		h, l, k := gammaReflected(a)
		lgamma = logOfScaled(h, l, k)
	default:
		h, l := stirling(a)
		lgamma = -h - (Log(float64(a*sinPi(a))/math.Pi) + l)
	}
	if x < 0 && even(math.Floor(a)) {
		return lgamma, -1
	}
	return lgamma, 1
}

// logOfScaled is log((h+l) * 2**k), the sum being normal.
func logOfScaled(h, l float64, k int) float64 {
	if k == 0 {
		return logOfSum(h, l)
	}
	y, low := logPair(math.Float64bits(h), float64(k))
	return y + (low + l/h)
}
