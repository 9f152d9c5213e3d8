package libm

import "math"

const (
	minNormalBits = 0x0010000000000000
	infinityBits  = 0x7FF0000000000000
	exponentMask  = 0xFFF << 52

	// logOffset has the bits of 0.705..., where the first interval of the tables
	// starts; the 77th is around 1.
	logOffset = 0x3FE6900000000000

	log10E    = 0.43429448190325182765112891891660508229 // 1/ln 10
	log10ELow = 0x1.95355baaafad3p-57                    // 1/ln 10 - float64(log10E)
)

// logPolynomial is (log(1+r) - r + r^2/2) / r^3 for |r| <= 0.00586, r2 = r^2. Its
// coefficients minimise the largest error relative to r of log(1+r), 2^-69.2, in
// the way of those of expPolynomial.
func logPolynomial(r, r2 float64) float64 {
	p := math.FMA(r, -0x1.0003e5c739a9fp-3, 0x1.24961e5da6a61p-3)
	q := math.FMA(r, -0x1.5555554f4d097p-3, 0x1.999999949ec03p-3)
	s := math.FMA(r, -0x1.0000000000017p-2, 0x1.5555555555564p-2)
	return math.FMA(r2, math.FMA(r2, p, q), s)
}

// Log returns the natural logarithm of x.
//
// The largest error measured is 0.51 ulp. x = 2^k z with z from 0.705 to 1.41;
// a table has 1/c of few bits near 1/z, so that r = z/c - 1 is exact, and
// log x = k ln 2 + log c + log(1+r) (Tang, ACM TOMS 16, 1990). Log(+Inf) = +Inf,
// Log(±0) = -Inf, Log(x) = NaN for x < 0 and NaN.
func Log(x float64) float64 {
	b := math.Float64bits(x)
	if b-minNormalBits >= infinityBits-minNormalBits {
		return logRare(x)
	}
	t := b - logOffset
	i := t >> 45 & 127
	k := float64(int64(t) >> 52)
	r := math.FMA(math.Float64frombits(b-t&exponentMask), logInverse[i], -1)
	c := math.FMA(k, ln2Head, logHigh[i])
	y := c + r
	low := math.FMA(k, ln2Tail, logLow[i]) + ((c - y) + r)
	r2 := r * r
	// As logPolynomial, with an error of 2^-60.
	p := math.FMA(r, -0x1.5558af51d77fap-3, 0x1.99999993da87ap-3)
	q := math.FMA(r, -0x1.fffffffd63f5ep-3, 0x1.5555555555567p-2)
	p = math.FMA(r2, math.FMA(r2, 0x1.2496664ca12a0p-3, p), q)
	return y + math.FMA(r2, math.FMA(r, p, -0.5), low)
}

// logRare is Log of what is not positive, finite and normal.
func logRare(x float64) float64 {
	if x == 0 {
		return math.Inf(-1)
	}
	if x < 0 || math.IsNaN(x) {
		return math.NaN()
	}
	if math.IsInf(x, 1) {
		return x
	}
	y, low := logPair(math.Float64bits(x*0x1p52), -52)
	return y + low
}

// logPair returns log x + shift ln 2 as a sum that is good to 2^-68 of it: b has
// the bits of x, positive, finite and normal.
func logPair(b uint64, shift float64) (y, low float64) {
	t := b - logOffset
	i := t >> 45 & 127
	r := math.FMA(math.Float64frombits(b-t&exponentMask), logInverse[i], -1)
	s, rest := logTable(r, 0, float64(int64(t)>>52)+shift, i)
	y = s + rest
	return y, (s - y) + rest
}

// logOfSum returns log(x+tail) for x positive and normal, |tail| <= 2^-51 x.
func logOfSum(x, tail float64) float64 {
	b := math.Float64bits(x)
	t := b - logOffset
	i := t >> 45 & 127
	r := math.FMA(math.Float64frombits(b-t&exponentMask), logInverse[i], -1)
	// Where x is so large that 2^-k is no normal number, the tail does not count.
	tail *= math.Float64frombits(1023<<52-t&exponentMask) * logInverse[i]
	y, low := logTable(r, tail, float64(int64(t)>>52), i)
	return y + low
}

// logTable returns k ln 2 + log c + log(1+r+rLow) for interval i, low up to r^3/3.
func logTable(r, rLow, k float64, i uint64) (y, low float64) {
	c := math.FMA(k, ln2Head, logHigh[i])
	s := c + r
	low = math.FMA(-r, rLow, rLow) + (math.FMA(k, ln2Tail, logLow[i]) + ((c - s) + r))
	r2 := r * r
	half := float64(-0.5 * r2)
	halfLow := float64(-0.5 * math.FMA(r, r, -r2))
	y = s + half
	low += halfLow + ((s - y) + half)
	return y, math.FMA(float64(r2*r), logPolynomial(r, r2), low)
}

// Log2 returns the binary logarithm of x.
//
// The largest error measured is 0.51 ulp; it is exact for powers of two. The
// logarithm of the mantissa is taken as in Log, to 68 bits, and divided by ln 2
// before the exponent is added. Special values are those of Log.
func Log2(x float64) float64 {
	b := math.Float64bits(x)
	shift := 0.0
	if b-minNormalBits >= infinityBits-minNormalBits {
		if !(x > 0 && x < 0x1p-1022) {
			return logRare(x)
		}
		b = math.Float64bits(x * 0x1p52)
		shift = -52
	}
	t := b - logOffset
	i := t >> 45 & 127
	r := math.FMA(math.Float64frombits(b-t&exponentMask), logInverse[i], -1)
	y, low := logTable(r, 0, 0, i)
	k := float64(int64(t)>>52) + shift
	p := float64(y * log2E)
	low = math.FMA(y, log2E, -p) + math.FMA(y, log2ELow, float64(low*log2E))
	s := k + p
	return s + (((k - s) + p) + low)
}

// Log10 returns the decimal logarithm of x.
//
// The largest error measured is 0.51 ulp; it is exact for powers of ten that
// are float64s. The natural logarithm, to 68 bits, is divided by ln 10. Special
// values are those of Log.
func Log10(x float64) float64 {
	b := math.Float64bits(x)
	shift := 0.0
	if b-minNormalBits >= infinityBits-minNormalBits {
		if !(x > 0 && x < 0x1p-1022) {
			return logRare(x)
		}
		b = math.Float64bits(x * 0x1p52)
		shift = -52
	}
	t := b - logOffset
	i := t >> 45 & 127
	r := math.FMA(math.Float64frombits(b-t&exponentMask), logInverse[i], -1)
	y, low := logTable(r, 0, float64(int64(t)>>52)+shift, i)
	p := float64(y * log10E)
	return p + (math.FMA(y, log10E, -p) + math.FMA(y, log10ELow, float64(low*log10E)))
}

// Log1p returns log(1+x), accurate where x is near 0.
//
// The largest error measured is 0.67 ulp. 1 + x is a sum without loss, the tail
// of which is carried through Log. Log1p(±0) = ±0, Log1p(-1) = -Inf, Log1p(+Inf) =
// +Inf, Log1p(x) = NaN for x < -1 and NaN.
func Log1p(x float64) float64 {
	if !(x > -1 && x < 0x1p1022 && math.Abs(x) >= 0x1p-54) {
		return log1pRare(x)
	}
	s := 1 + x
	b := s - 1
	return logOfSum(s, (1-(s-b))+(x-b)) // Knuth's two-sum
}

func log1pRare(x float64) float64 {
	if math.Abs(x) < 0x1p-54 {
		return x
	}
	if x == -1 {
		return math.Inf(-1)
	}
	return Log(x) // NaN if below -1, else so large that 1 does not count
}

// logInverse has 1/c for the 128 intervals of the mantissa, a multiple of 1/128
// for those below 1 and of 1/256 above, so that the r of Log is exact and below
// 2^-7; logHigh has log c rounded to a multiple of 2^-42, logLow the rest.
var logInverse = [...]float64{
	0x1.6ap0, 0x1.68p0, 0x1.66p0, 0x1.64p0, 0x1.62p0, 0x1.6p0, 0x1.5ep0, 0x1.5cp0,
	0x1.5ap0, 0x1.58p0, 0x1.58p0, 0x1.56p0, 0x1.54p0, 0x1.52p0, 0x1.5p0, 0x1.4ep0,
	0x1.4cp0, 0x1.4ap0, 0x1.4ap0, 0x1.48p0, 0x1.46p0, 0x1.44p0, 0x1.42p0, 0x1.42p0,
	0x1.4p0, 0x1.3ep0, 0x1.3cp0, 0x1.3cp0, 0x1.3ap0, 0x1.38p0, 0x1.36p0, 0x1.36p0,
	0x1.34p0, 0x1.32p0, 0x1.3p0, 0x1.3p0, 0x1.2ep0, 0x1.2cp0, 0x1.2cp0, 0x1.2ap0,
	0x1.28p0, 0x1.28p0, 0x1.26p0, 0x1.24p0, 0x1.24p0, 0x1.22p0, 0x1.2p0, 0x1.2p0,
	0x1.1ep0, 0x1.1cp0, 0x1.1cp0, 0x1.1ap0, 0x1.1ap0, 0x1.18p0, 0x1.16p0, 0x1.16p0,
	0x1.14p0, 0x1.14p0, 0x1.12p0, 0x1.12p0, 0x1.1p0, 0x1.0ep0, 0x1.0ep0, 0x1.0cp0,
	0x1.0cp0, 0x1.0ap0, 0x1.0ap0, 0x1.08p0, 0x1.08p0, 0x1.06p0, 0x1.06p0, 0x1.04p0,
	0x1.04p0, 0x1.02p0, 0x1.02p0, 1, 0x1.fcp-1, 0x1.f8p-1, 0x1.f4p-1, 0x1.fp-1,
	0x1.ecp-1, 0x1.eap-1, 0x1.e6p-1, 0x1.e2p-1, 0x1.dep-1, 0x1.dap-1, 0x1.d8p-1, 0x1.d4p-1,
	0x1.dp-1, 0x1.cep-1, 0x1.cap-1, 0x1.c8p-1, 0x1.c4p-1, 0x1.cp-1, 0x1.bep-1, 0x1.bap-1,
	0x1.b8p-1, 0x1.b4p-1, 0x1.b2p-1, 0x1.bp-1, 0x1.acp-1, 0x1.aap-1, 0x1.a6p-1, 0x1.a4p-1,
	0x1.a2p-1, 0x1.9ep-1, 0x1.9cp-1, 0x1.9ap-1, 0x1.98p-1, 0x1.94p-1, 0x1.92p-1, 0x1.9p-1,
	0x1.8ep-1, 0x1.8ap-1, 0x1.88p-1, 0x1.86p-1, 0x1.84p-1, 0x1.82p-1, 0x1.8p-1, 0x1.7ep-1,
	0x1.7ap-1, 0x1.78p-1, 0x1.76p-1, 0x1.74p-1, 0x1.72p-1, 0x1.7p-1, 0x1.6ep-1, 0x1.6cp-1,
}

var logHigh = [...]float64{
	-0x1.62c82f2b9cp-2, -0x1.5d1bdbf581p-2, -0x1.5767717456p-2, -0x1.51aad872ep-2,
	-0x1.4be5f95778p-2, -0x1.4618bc21c6p-2, -0x1.404308686ap-2, -0x1.3a64c55694p-2,
	-0x1.347dd9a988p-2, -0x1.2e8e2bae12p-2, -0x1.2e8e2bae12p-2, -0x1.2895a13de8p-2,
	-0x1.22941fbcf8p-2, -0x1.1c898c169ap-2, -0x1.1675cababap-2, -0x1.1058bf9ae5p-2,
	-0x1.0a324e2739p-2, -0x1.0402594b4dp-2, -0x1.0402594b4dp-2, -0x1.fb9186d5e4p-3,
	-0x1.ef0adcbdc6p-3, -0x1.e27076e2bp-3, -0x1.d5c216b4fcp-3, -0x1.d5c216b4fcp-3,
	-0x1.c8ff7c79aap-3, -0x1.bc286742d8p-3, -0x1.af3c94e80cp-3, -0x1.af3c94e80cp-3,
	-0x1.a23bc1fe2cp-3, -0x1.9525a9cf46p-3, -0x1.87fa06520cp-3, -0x1.87fa06520cp-3,
	-0x1.7ab890210ep-3, -0x1.6d60fe719ep-3, -0x1.5ff3070a7ap-3, -0x1.5ff3070a7ap-3,
	-0x1.526e5e3a1cp-3, -0x1.44d2b6ccb8p-3, -0x1.44d2b6ccb8p-3, -0x1.371fc201e8p-3,
	-0x1.29552f82p-3, -0x1.29552f82p-3, -0x1.1b72ad52f6p-3, -0x1.0d77e7cd08p-3,
	-0x1.0d77e7cd08p-3, -0x1.fec9131dcp-4, -0x1.e27076e2bp-4, -0x1.e27076e2bp-4,
	-0x1.c5e548f5bcp-4, -0x1.a926d3a4acp-4, -0x1.a926d3a4acp-4, -0x1.8c345d6318p-4,
	-0x1.8c345d6318p-4, -0x1.6f0d28ae58p-4, -0x1.51b073f06p-4, -0x1.51b073f06p-4,
	-0x1.341d7961bcp-4, -0x1.341d7961bcp-4, -0x1.16536eea38p-4, -0x1.16536eea38p-4,
	-0x1.f0a30c0118p-5, -0x1.b42dd71198p-5, -0x1.b42dd71198p-5, -0x1.77458f633p-5,
	-0x1.77458f633p-5, -0x1.39e87b9fe8p-5, -0x1.39e87b9fe8p-5, -0x1.f829b0e78p-6,
	-0x1.f829b0e78p-6, -0x1.7b91b07d6p-6, -0x1.7b91b07d6p-6, -0x1.fc0a8b0fcp-7,
	-0x1.fc0a8b0fcp-7, -0x1.fe02a6b1p-8, -0x1.fe02a6b1p-8, 0,
	0x1.010157588p-7, 0x1.020565893p-6, 0x1.8492528c9p-6, 0x1.0415d89e78p-5,
	0x1.466aed42ep-5, 0x1.67c94f2d48p-5, 0x1.aaef2d0fbp-5, 0x1.eea31c0068p-5,
	0x1.1973bd1464p-4, 0x1.3bdf5a7d2p-4, 0x1.4d3115d208p-4, 0x1.700d30aeacp-4,
	0x1.9335e5d594p-4, 0x1.a4e7640b1cp-4, 0x1.c885801bc4p-4, 0x1.da72763844p-4,
	0x1.fe89139dbcp-4, 0x1.1178e8227ep-3, 0x1.1aa2b7e24p-3, 0x1.2d1610c868p-3,
	0x1.365fcb015ap-3, 0x1.4913d8333cp-3, 0x1.527e5e4a1cp-3, 0x1.5bf406b544p-3,
	0x1.6f0128b756p-3, 0x1.7898d85444p-3, 0x1.8beafeb39p-3, 0x1.95a5adcf7p-3,
	0x1.9f6c40708ap-3, 0x1.b31d8575bcp-3, 0x1.bd087383bep-3, 0x1.c6ffbc6fp-3,
	0x1.d1037f2656p-3, 0x1.e530effe72p-3, 0x1.ef5ade4ddp-3, 0x1.f991c6cb3cp-3,
	0x1.01eae5626cp-2, 0x1.0c42d67616p-2, 0x1.1178e8227ep-2, 0x1.16b5ccbadp-2,
	0x1.1bf99635a7p-2, 0x1.214456d0ecp-2, 0x1.269621134ep-2, 0x1.2bef07cdc9p-2,
	0x1.36b6776be1p-2, 0x1.3c25277333p-2, 0x1.419b423d5fp-2, 0x1.4718dc271cp-2,
	0x1.4c9e09e173p-2, 0x1.522ae0738ap-2, 0x1.57bf753c8dp-2, 0x1.5d5bddf596p-2,
}

var logLow = [...]float64{
	-0x1.e54bdbd7c8a98p-44, 0x1.8d6bdc9c7c238p-44, 0x1.64ead9524d7cap-44, 0x1.f4bd8db0a7cc1p-44,
	0x1.d7c92cd9ad824p-44, 0x1.3d82f484c84ccp-46, -0x1.f8ef43049f7d3p-44, -0x1.7a71cbcd735dp-44,
	0x1.5594dd4c58092p-45, 0x1.67b1e99b72bd8p-45, 0x1.67b1e99b72bd8p-45, -0x1.a8d7ad24c13fp-44,
	0x1.a6976f5eb0963p-44, 0x1.81410e5c62affp-44, -0x1.8380e731f55c4p-44, 0x1.4ab9d817d52cdp-44,
	-0x1.c6bee7ef4030ep-47, -0x1.036b89ef42d7fp-48, -0x1.036b89ef42d7fp-48, 0x1.d572aab993c87p-47,
	0x1.b26b79c86af24p-45, 0x1.a342c2af0003cp-44, 0x1.1ba91bbca681bp-45, 0x1.1ba91bbca681bp-45,
	0x1.7794f689f8434p-45, -0x1.9ac53f39d121cp-44, 0x1.a4e633fcd9066p-52, 0x1.a4e633fcd9066p-52,
	0x1.539cd91dc9f0bp-44, 0x1.297137d9f158fp-44, -0x1.22120401202fcp-44, -0x1.22120401202fcp-44,
	0x1.bdb9072534a58p-45, 0x1.bc6e557134767p-44, 0x1.8586f183bebf2p-44, 0x1.8586f183bebf2p-44,
	0x1.790ba37fc5238p-44, 0x1.70cc16135783cp-46, 0x1.70cc16135783cp-46, -0x1.ee8779b2d8abcp-44,
	0x1.5b967f4471dfcp-44, 0x1.5b967f4471dfcp-44, -0x1.e80a41811a396p-45, -0x1.cb2cd2ee2f482p-44,
	-0x1.cb2cd2ee2f482p-44, 0x1.54555d1ae6607p-44, 0x1.a342c2af0003cp-45, 0x1.a342c2af0003cp-45,
	-0x1.d0c57585fbe06p-46, -0x1.563650bd22a9cp-44, -0x1.563650bd22a9cp-44, -0x1.b20f5acb42a66p-44,
	-0x1.b20f5acb42a66p-44, 0x1.4b4641b664613p-44, -0x1.83f69278e686ap-44, -0x1.83f69278e686ap-44,
	-0x1.1d0929983761p-44, -0x1.1d0929983761p-44, 0x1.47c5e768fa309p-46, 0x1.47c5e768fa309p-46,
	0x1.d599e83368e91p-45, 0x1.c827ae5d6704cp-46, 0x1.c827ae5d6704cp-46, 0x1.181dce586af09p-44,
	0x1.181dce586af09p-44, -0x1.eafd480ad9015p-44, -0x1.eafd480ad9015p-44, -0x1.980267c7e09e4p-45,
	-0x1.980267c7e09e4p-45, 0x1.3b955b602ace4p-44, 0x1.3b955b602ace4p-44, -0x1.f1e7cf6d3a69cp-50,
	-0x1.f1e7cf6d3a69cp-50, -0x1.9e23f0dda40e4p-46, -0x1.9e23f0dda40e4p-46, 0,
	0x1.bce251998b506p-44, 0x1.611d27c8e8417p-44, -0x1.aa0ba325a0c34p-45, -0x1.dddc7f461c516p-44,
	-0x1.c167375bdfd28p-45, 0x1.dac20827cca0cp-44, 0x1.0fc1a353bb42ep-45, 0x1.c3dd83606d891p-44,
	0x1.566d154f930b3p-44, -0x1.19bd0ad125895p-44, -0x1.53a2582f4e1efp-48, 0x1.c1e8da99ded32p-49,
	0x1.3115c3abd47dap-45, -0x1.e42b6b94407c8p-47, 0x1.646d1c65aacd3p-45, 0x1.a89401fa71733p-46,
	0x1.56594d82f7a82p-44, 0x1.1ef78ce2d07f2p-45, -0x1.1ac38dde3b366p-44, 0x1.39d6ccb81b4a1p-47,
	-0x1.fd3a0afb9691bp-44, -0x1.53e43558124c4p-44, -0x1.4e60b8d4b411dp-44, -0x1.27023eb68981cp-46,
	0x1.577390d31ef0fp-44, 0x1.8e67be3dbaf3fp-44, -0x1.73d54aae92cd1p-47, 0x1.7f22858a0ff6fp-47,
	-0x1.337d94bcd3f43p-44, 0x1.c794e562a63cbp-44, -0x1.d4bc4595412b6p-45, 0x1.ee138d3a69d43p-44,
	-0x1.84a7e75b6f6e4p-47, -0x1.fdbdbb13f7c18p-44, -0x1.a211565bb8e11p-51, -0x1.90d04cd7cc834p-44,
	0x1.a43dcfade85aep-44, 0x1.7188b163ceae9p-45, 0x1.1ef78ce2d07f2p-44, -0x1.23299042d74bfp-44,
	-0x1.1ac89575c2125p-44, -0x1.caf0428b728a3p-44, -0x1.1b61f10522625p-44, 0x1.a9cfa4a5004f4p-45,
	0x1.16ecdb0f177c8p-46, 0x1.83b54b606bd5cp-46, -0x1.ce379226de3ecp-44, 0x1.06c18fb4c14c5p-44,
	-0x1.e20891b0ad8a4p-45, 0x1.ebe708164c759p-45, 0x1.fadedee5d40efp-46, -0x1.a0b2a08a465dcp-47,
}
