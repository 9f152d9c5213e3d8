package libm

import "math"

// erfSmall is the polynomial of degree 8 in z = x*x with
// erf(x) = x * (2/sqrt(pi) + z*erfSmall(z)) for |x| <= 0.57: interpolation in
// Chebyshev points with 60 digits, within 6e-18.
func erfSmall(z float64) float64 {
	p := -1.4346262239255387e-07
	p = math.FMA(p, z, 1.6341902317939854e-06)
	p = math.FMA(p, z, -1.4921745231879284e-05)
	p = math.FMA(p, z, 0.00012055258685754207)
	p = math.FMA(p, z, -0.0008548326191067906)
	p = math.FMA(p, z, 0.005223977620195869)
	p = math.FMA(p, z, -0.026866170644965447)
	p = math.FMA(p, z, 0.11283791670954924)
	p = math.FMA(p, z, -0.37612638903183754)
	return p
}

// 2/sqrt(pi) in two floats.
const (
	twoSqrtPiHi = 1.1283791670955126
	twoSqrtPiLo = 1.533545961316588e-17
)

// erfcPair is erfc(x) as (h + l) * 2**k, within 2**-54.5 of it, for x in [0.56, 27.5].
//
// exp(x*x)*erfc(x)*(1+2x) varies only from 1.29 to 1.15, and is close to a
// polynomial in t = (x-K)/(x+K) for all x (Shepherd and Laframboise, Chebyshev
// approximation of (1+2x)exp(x**2)erfc x in 0<=x<inf, 1981). Here it has degree
// 21 and K = 3.5625, the geometric mean of the ends: interpolation in Chebyshev
// points with 60 digits, within 5e-18.
func erfcPair(x float64) (h, l float64, k int) {
	n := x - 3.5625
	d := x + 3.5625
	t := n / d
	// What the roundings of n, d and t took from t, by 1/d = (1-t)/7.125, and the
	// slope of the polynomial, within 3%.
	nl := x - (n + 3.5625)
	dl := x - (d - 3.5625)
	tl := math.FMA(-t, dl, math.FMA(-t, d, n)+nl) * ((1 - t) * (1 / 7.125))
	slope := math.FMA(t, math.FMA(t, math.FMA(t, -0.5928089388539537, 0.5637314799095045), -0.01295948759822862), -0.15986284601150152)
	z := float64(t * t)
	p := 8.632432760000032e-09
	p1 := 1.1680015388565572e-08
	p = math.FMA(p, z, -8.111560453276374e-08)
	p1 = math.FMA(p1, z, -1.0333912722716602e-07)
	p = math.FMA(p, z, 5.530211848305979e-07)
	p1 = math.FMA(p1, z, 5.526494966474126e-07)
	p = math.FMA(p, z, -3.8506406775816915e-06)
	p1 = math.FMA(p1, z, -1.2117851773046175e-06)
	p = math.FMA(p, z, 2.799900873542952e-05)
	p1 = math.FMA(p1, z, -2.529609282729094e-05)
	p = math.FMA(p, z, -0.00017515317817281732)
	p1 = math.FMA(p1, z, 0.000558962080862321)
	p = math.FMA(p, z, 9.019910166341645e-05)
	p1 = math.FMA(p1, z, -0.005478859292723325)
	p = math.FMA(p, z, 0.021420541169432362)
	p1 = math.FMA(p1, z, -0.051493059403202736)
	p = math.FMA(p, z, 0.08936946105999441)
	p1 = math.FMA(p1, z, -0.11370244262917285)
	p = math.FMA(p, z, 0.0936223385510552)
	p1 = math.FMA(p1, z, -0.006778436097160708)
	p = math.FMA(p, z, -0.1401624320598021)
	v := math.FMA(tl, slope, float64(t*math.FMA(p1, t, p)))
	// f = fh + fl is the polynomial, d = dh + dl is 1+2x.
	fh := 1.241109465804386 + v
	fl := (1.241109465804386 - fh) + v + -5.651484744051572e-17
	dh := 1 + float64(2*x)
	dl = 1 - (dh - float64(2*x))
	inv := 1 / dh
	u := fh * inv
	ul := (math.FMA(-u, dh, fh) + math.FMA(-u, dl, fl)) * inv
	x2 := float64(x * x)
	eh, el, k := expPair(-x2, -math.FMA(x, x, -x2))
	h = float64(u * eh)
	l = math.FMA(u, eh, -h) + math.FMA(u, el, float64(ul*eh))
	return h, l, k
}

// erfcLarge is erfc(x) = h + l for x in [0.56, 27.5], where h + l >= 2**-100.
func erfcLarge(x float64) (h, l float64) {
	h, l, k := erfcPair(x)
	s := math.Float64frombits(uint64(k+1023) << 52)
	return float64(h * s), float64(l * s)
}

// Erf is the error function of x, within 0.75 ulp.
//
//	Erf(+Inf) = 1
//	Erf(-Inf) = -1
//	Erf(NaN) = NaN
//
// A polynomial for |x| < 0.5625, beyond it 1 - erfc(|x|) in two floats.
func Erf(x float64) float64 {
	a := math.Abs(x)
	if a < 0.5625 {
		z := float64(x * x)
		return math.FMA(x, twoSqrtPiHi, x*math.FMA(z, erfSmall(z), twoSqrtPiLo))
	}
	if !(a < 6) {
		if x != x {
			return x
		}
		return math.Copysign(1, x)
	}
	h, l := erfcLarge(a)
	s := 1 - h
	return math.Copysign(s+(((1-s)-h)-l), x)
}

// Erfc is 1 - erf(x), within 0.9 ulp, subnormal results included.
//
//	Erfc(+Inf) = 0
//	Erfc(-Inf) = 2
//	Erfc(NaN) = NaN
//
// One minus a polynomial for |x| < 0.5625, beyond it exp(-x*x), in two floats, times
// a polynomial of (x-3.5625)/(x+3.5625), over 1+2x.
func Erfc(x float64) float64 {
	a := math.Abs(x)
	if a < 0.5625 {
		z := float64(x * x)
		h := float64(x * twoSqrtPiHi)
		l := math.FMA(x, twoSqrtPiHi, -h) + float64(x*math.FMA(z, erfSmall(z), twoSqrtPiLo))
		s := 1 - h
		return s + (((1 - s) - h) - l)
	}
	if !(a < 26.5) {
		return erfcRare(x)
	}
	h, l, k := erfcPair(a)
	scale := math.Float64frombits(uint64(k+1023) << 52)
	if x > 0 {
		return float64((h + l) * scale)
	}
	h, l = float64(h*scale), float64(l*scale)
	s := 2 - h
	return s + (((2 - s) - h) - l)
}

// erfcRare is Erfc for |x| >= 26.5 and NaN.
func erfcRare(x float64) float64 {
	switch {
	case x != x:
		return x
	case x >= 27.5:
		return 0
	case x < 0:
		return 2
	}
	h, l, k := erfcPair(x)
	return scaled(h, l, k)
}

// erfcinvTail holds three rational functions of degree 7 over 7: the numerators,
// then the denominators from the coefficient of the first power on (the constant
// is 1), of s-1.17 on [1.17, 3.5], s-3.5 on [3.5, 9.5] and s-9.5 on [9.5, 27.3]. Each is
// erfcinv(exp(-s*s)) - s, by the Remez exchange with 40 digits, within 1e-17.
var erfcinvTail = [45]float64{
	-0.36406853239870507, -0.9074807060068202, -0.9005552822336956, -0.44390307967296116,
	-0.10556974541805864, -0.010353246821220847, -0.00030483225715653304, -5.059141783463027e-07,
	2.520198686766923, 2.7411401288199975, 1.5917440547375379, 0.5077835807083569, 0.08202210364091937,
	0.005652156670822807, 0.00011334498774760192,
	-0.2656972659267818, -0.21476827555303393, -0.06342706486044908, -0.008301100508563565,
	-0.0004652742771079709, -8.932554183348781e-06, -2.3447387056048854e-08, 2.4015781290854044e-11,
	0.9456643549303233, 0.34982410668642805, 0.0631882426954998, 0.0056869615300087755,
	0.00023167959548316036, 3.2249516552817377e-06, 4.2758208384607706e-09,
	-0.1492492534151912, -0.04597539418276548, -0.005305849822687151, -0.0002852119734701214,
	-7.234170201256093e-06, -7.741197659061086e-08, -2.5102572283238447e-10, -3.679909843728223e-14,
	0.37671089289896026, 0.05608920570634702, 0.004184252348049557, 0.0001637063777061026,
	3.2084154484364598e-06, 2.7134277280090197e-08, 6.718778446633004e-11,
}

// erfinvTail is erfcinv(y) for 0 < y <= 0.25.
func erfinvTail(y float64) float64 {
	shift := 0.0
	if y < 0x1p-1022 {
		y *= 0x1p52
		shift = -52
	}
	h, l := logPair(math.Float64bits(y), shift)
	s := math.Sqrt(-h)
	sl := (math.FMA(-s, s, -h) - l) / (s + s)
	k, c := 0, 1.17
	if s > 3.5 {
		k, c = 15, 3.5
	}
	if s > 9.5 {
		k, c = 30, 9.5
	}
	u := s - c
	p, q := erfcinvTail[k+7], erfcinvTail[k+14]
	for i := 6; i >= 0; i-- {
		p = math.FMA(p, u, erfcinvTail[k+i])
	}
	for i := 13; i >= 8; i-- {
		q = math.FMA(q, u, erfcinvTail[k+i])
	}
	return s + (p/math.FMA(q, u, 1) + sl)
}

// erfinvSmall is erfinv(x) for |x| <= 0.75: x times sqrt(pi)/2, in two floats, plus
// a rational function of 0.5625-x*x of degree 6 over 6, by the Remez exchange with 40
// digits, within 2e-17.
func erfinvSmall(x float64) float64 {
	z := float64(x * x)
	u := 0.5625 - z
	p := 0.0005465622021547037
	q := 0.2025711926683914
	p = math.FMA(p, u, 0.13110696497418012)
	q = math.FMA(q, u, 2.709482232127223)
	p = math.FMA(p, u, 1.1948511199523237)
	q = math.FMA(q, u, 11.064229252724742)
	p = math.FMA(p, u, 3.3457636728998903)
	q = math.FMA(q, u, 19.45503383130717)
	p = math.FMA(p, u, 3.8726772351474037)
	q = math.FMA(q, u, 16.45263510317266)
	p = math.FMA(p, u, 1.948592115411556)
	q = math.FMA(q, u, 6.585416697399081)
	p = math.FMA(p, u, 0.3525917712783408)
	q = math.FMA(q, u, 1.0)
	return math.FMA(x, 0.886226925452758, x*math.FMA(z, p/q, -3.8332932499128993e-17))
}

// Erfinv is the inverse of Erf, within 1.8 ulp.
//
//	Erfinv(1) = +Inf
//	Erfinv(-1) = -Inf
//	Erfinv(x) = NaN if x < -1 or x > 1
//	Erfinv(NaN) = NaN
//
// Rational functions of x*x for |x| <= 0.75, beyond it of sqrt(-log(1-|x|)).
func Erfinv(x float64) float64 {
	a := math.Abs(x)
	if a <= 0.75 {
		return math.Copysign(erfinvSmall(x), x)
	}
	if !(a < 1) {
		if a == 1 {
			return math.Copysign(math.Inf(1), x)
		}
		return math.NaN()
	}
	return math.Copysign(erfinvTail(1-a), x)
}

// Erfcinv is the inverse of Erfc, within 1.8 ulp.
//
//	Erfcinv(0) = +Inf
//	Erfcinv(2) = -Inf
//	Erfcinv(x) = NaN if x < 0 or x > 2
//	Erfcinv(NaN) = NaN
//
// As Erfinv of 1-x, whose rounding is made good; small x keep their precision.
func Erfcinv(x float64) float64 {
	if x >= 0.25 && x <= 1.75 {
		h := 1 - x
		l := (1 - h) - x
		y := erfinvSmall(h)
		// The derivative is sqrt(pi)/2 * exp(y*y).
		y2 := float64(y * y)
		return math.FMA(l, math.FMA(math.FMA(y2, 0.5, 1), y2, 1)*0.886226925452758, y)
	}
	if !(x > 0 && x < 2) {
		switch x {
		case 0:
			return math.Inf(1)
		case 2:
			return math.Inf(-1)
		}
		return math.NaN()
	}
	if x > 1 {
		return -erfinvTail(2 - x)
	}
	return erfinvTail(x)
}
