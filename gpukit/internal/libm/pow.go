package libm

import "math"

// Pow returns x^y.
//
// The largest error measured is 0.60 ulp, over all results including those
// below the normal range, which are rounded once; results that are float64s are
// exact. The logarithm of |x| is a sum good to 68 bits, and its product with y goes
// with its tail into the exponential. In the order in which they apply:
//
//	Pow(x, ±0) = 1 and Pow(1, y) = 1 for any x, y
//	Pow(x, 1) = x
//	Pow(x, y) = NaN if either is
//	Pow(±0, y) = ±Inf, Pow(±Inf, y) = ±0 for an odd integer y < 0, else +Inf, +0 for y < 0
//	Pow(±0, y) = ±0, Pow(±Inf, y) = ±Inf for an odd integer y > 0, else +0, +Inf for y > 0
//	Pow(-1, ±Inf) = 1
//	Pow(x, +Inf) = +Inf, Pow(x, -Inf) = 0 for |x| > 1, and the reverse for |x| < 1
//	Pow(x, y) = NaN for finite x < 0 and finite y that is no integer
//
// Results that are too large are ±Inf, those that are too small ±0.
func Pow(x, y float64) float64 {
	b := math.Float64bits(x)
	h, l := logPair(b, 0)
	p := float64(y * h)
	if b-minNormalBits >= infinityBits-minNormalBits || !(math.Abs(p) < 708) {
		return powRare(x, y)
	}
	m, _, k := expPair(p, math.FMA(y, l, math.FMA(y, h, -p)))
	return math.Float64frombits(math.Float64bits(m) + uint64(k)<<52)
}

// powRare is Pow without bounds on x, y and the result.
func powRare(x, y float64) float64 {
	if y == 0 || x == 1 {
		return 1
	}
	if y == 1 {
		return x
	}
	if math.IsNaN(x) || math.IsNaN(y) {
		return math.NaN()
	}
	ax := math.Abs(x)
	if math.IsInf(y, 0) {
		if ax == 1 {
			return 1
		}
		if (ax > 1) == (y > 0) {
			return math.Inf(1)
		}
		return 0
	}
	// Above 2^53 all are even integers.
	integer := math.Trunc(y) == y
	odd := integer && math.Abs(y) < 0x1p53 && int64(y)&1 != 0
	sign := 1.0
	if odd {
		sign = math.Copysign(1, x)
	}
	if x == 0 || math.IsInf(x, 0) {
		if (x == 0) == (y > 0) {
			return 0 * sign
		}
		return math.Inf(1) * sign
	}
	if x < 0 && !integer {
		return math.NaN()
	}
	shift := 0.0
	if ax < 0x1p-1022 {
		ax *= 0x1p52
		shift = -52
	}
	h, l := logPair(math.Float64bits(ax), shift)
	p := float64(y * h)
	if p > 710 {
		return math.Inf(1) * sign
	}
	if p < -746 {
		return 0 * sign
	}
	m, low, k := expPair(p, math.FMA(y, l, math.FMA(y, h, -p)))
	return sign * scaled(m, low, k)
}

// Pow10 returns 10^n, correctly rounded: 0 for n < -323, +Inf for n > 308.
//
// It is 2^n times a power of 5, which is the product of a power of 5^16, from a
// table of sums, and an exact one.
func Pow10(n int) float64 {
	if n < -323 {
		return 0
	}
	if n > 308 {
		return math.Inf(1)
	}
	i := uint(n+336) / 16
	five := fiveSmall[n&15]
	p := float64(fiveHigh[i] * five)
	low := math.FMA(fiveHigh[i], five, -p) + float64(fiveLow[i]*five)
	power := math.Float64frombits(uint64(1023+n) << 52)
	if n > -308 {
		return float64((p + low) * power)
	}
	// unit has, in its last place, the last place of the result.
	unit := math.Float64frombits(uint64(1023-1022-n) << 52)
	s := unit + p
	s += ((unit - s) + p) + low
	return float64((s - unit) * power)
}

var fiveSmall = [...]float64{1, 5, 25, 125, 625, 3125, 15625, 78125, 390625, 1953125, 9765625, 48828125, 244140625, 1220703125,
	6103515625, 30517578125}

// fiveHigh and fiveLow are the powers 5^-336, 5^-320, ..., 5^304 as sums.
var fiveHigh = [...]float64{
	0x1.c7c4f4889b1b3p-781, 0x1.fa01712e8f047p-744, 0x1.18e3b9b374169p-706, 0x1.37d99cc506d59p-669,
	0x1.5a391d56bdc87p-632, 0x1.8062864ac6f43p-595, 0x1.aac0bf9b9e65cp-558, 0x1.d9ca79d89462ap-521,
	0x1.0701bd527b498p-483, 0x1.23ff06eea847ap-446, 0x1.442e4fb67196p-409, 0x1.67e9c127b6e74p-372,
	0x1.8f9574dcf8a7p-335, 0x1.bba08cf8c979dp-298, 0x1.ec866b79e0cbap-261, 0x1.116805effaeaap-223,
	0x1.2f8ac174d6123p-186, 0x1.50ffd44f4a73dp-149, 0x1.7624f8a762fd8p-112, 0x1.9f623d5a8a733p-75,
	0x1.cd2b297d889bcp-38, 1, 0x1.1c37937e08p37, 0x1.3b8b5b5056e17p74,
	0x1.5e531a0a1c873p111, 0x1.84f03e93ff9f5p148, 0x1.afcef51f0fb5fp185, 0x1.df67562d8b363p222,
	0x1.0a1f5b8132466p260, 0x1.27748f9301d32p297, 0x1.4805738b51a75p334, 0x1.6c2d4256ffcc3p371,
	0x1.945145230b378p408, 0x1.c0e1ef1a724ebp445, 0x1.f25c186a6f04cp482, 0x1.14a52dffc6799p520,
	0x1.33234de7ad7e3p557, 0x1.54fdd7f73bf3cp594, 0x1.7a93a2954f3b8p631, 0x1.a44df832b8d46p668,
	0x1.d2a1be4048f9p705,
}

var fiveLow = [...]float64{
	0x1.6ffa363646103p-837, 0x1.a1124161312abp-800, 0x1.259ff0c08b7f2p-761, -0x1.44588e4c035e8p-723,
	0x1.b36d1921b28p-686, 0x1.39fa911155ffp-650, 0x1.d6fb1e4a9a909p-613, -0x1.425b0740a9caep-576,
	-0x1.cfdedc1a30d3p-537, -0x1.fcc24e7cae5cfp-500, 0x1.7dc56d0072d28p-467, 0x1.26b3da42cecadp-428,
	0x1.647f32529774bp-389, -0x1.afa9c1a60497dp-352, 0x1.bea6a30bdaffap-315, 0x1.cd88ede5810c7p-277,
	0x1.a5dccd879fc96p-241, 0x1.a53f2398d747bp-204, 0x1.595560c018581p-167, -0x1.a2cc10f3892d4p-129,
	0x1.5b4c2ebe68799p-93, 0, 0, -0x1.3107fp20,
	-0x1.14b4c7a76a406p57, -0x1.2ac340948e389p93, -0x1.08f322e84da1p124, -0x1.ae9d180b58861p168,
	0x1.4f01f167b5e3p206, -0x1.901cc86649e4ap243, -0x1.18a0e9df9363ap279, -0x1.56a2119e533adp314,
	-0x1.b20a11c22bf0cp351, -0x1.4abd220ed605cp391, 0x1.45a7709a56ccep427, 0x1.2f82bd6b70d9ap465,
	-0x1.34a66b24bc3ebp501, -0x1.7222446fe467p539, -0x1.beda693cdd93bp577, -0x1.ce31f3444e4p611,
	0x1.fea3e35c17799p651,
}
