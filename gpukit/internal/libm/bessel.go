package libm

import "math"

// The functions f of order 0 and 1 are polynomials on four intervals of one length, of
// degree 15 from 1 to 8 (J) and 21 from 2 to 8 (Y), in powers of the distance from c, a
// zero of f, or the middle where there is none. The constant is f(c), c rounded, and the rest
// interpolates (f(x)-f(c))/(x-c) in Chebyshev points with 50 digits, within 3e-19, so
// that near the zero the result keeps all its digits. A row is an interval.

var j0Piece = [64]float64{
	-6.10876525973673e-17, -0.5191474972894667, 0.10793870175492011, 0.05660177443794623,
	-0.008657669593304954, -0.002194200359016158, 0.000264377036753558, 4.3729192730556416e-05,
	-4.338826294518428e-06, -5.304914596435758e-07, 4.470054922078347e-08, 4.3266278548202e-09,
	-3.1651403654282684e-10, -2.517948577961725e-11, 1.7374981165847028e-12, 1.469547679045961e-13,
	-0.39402498634684147, -0.08501803521481985, 0.20873911872029244, -0.006103039580717533,
	-0.014177791124592642, 0.0005548835552178169, 0.00040115350369499073, -1.4943762864489629e-05,
	-6.2897567719444395e-06, 2.1288149575525037e-07, 6.283747012375384e-08, -1.9202185751697207e-09,
	-4.353341033971791e-10, 1.2051490110980267e-11, 2.1907267822464467e-12, -5.5312222042526163e-14,
	-2.7522649432621832e-17, 0.34026480655836816, -0.030820651425593638, -0.052988552867604635,
	0.004631042145907669, 0.0022574402290329947, -0.00017518572899449556, -4.652109074073969e-05,
	3.199786908657374e-06, 5.716490759542873e-07, -3.511536411836659e-08, -4.683410216952637e-09,
	2.5922333411764973e-10, 2.7471376691332197e-11, -1.3757589092173563e-12, -1.3064783392964636e-13,
	0.29833037924024475, -0.032519566391901095, -0.146883114785603, 0.012184888665367545,
	0.011337985511707723, -0.000851522702754139, -0.00033534487891126566, 2.272858608600509e-05,
	5.331213646760307e-06, -3.2708376320466373e-07, -5.3364038425537666e-08, 2.9801121738467996e-09,
	3.686195803156864e-10, -1.8850861467706986e-11, -1.8461055923776603e-12, 8.70265510381671e-14,
}

var j0Centre = [4]float64{2.404825557695773, 3.625, 5.520078110286311, 7.125}

var j1Piece = [64]float64{
	0.5816309249973307, -0.013849219171002722, -0.20440149472011093, 0.007921280379700824,
	0.013732056302235595, -0.00045221867901788906, -0.0003925803674797069, 1.0892925646451334e-05,
	6.225455344044378e-06, -1.481018044936797e-07, -6.280358446661042e-08, 1.3038272249196433e-09,
	4.3861162655932634e-10, -8.066463278837686e-12, -2.221764687635552e-12, 3.6686061731739596e-14,
	-6.149807356994906e-17, -0.402759395702553, 0.05255614585697726, 0.053410444132724805,
	-0.005179719245638597, -0.0022331253391474426, 0.00017466429072051065, 4.620870129730304e-05,
	-3.0368633829560203e-06, -5.727805741191213e-07, 3.248287171879354e-08, 4.7353866260987766e-09,
	-2.362324488074734e-10, -2.800370275359441e-11, 1.2502904236729104e-12, 1.3602001142543904e-13,
	-0.3458102556641231, 0.014486822431671528, 0.1655726986057233, -0.01177309615120397,
	-0.011944284261066961, 0.0007572323617962514, 0.00034852668054717546, -1.9380303053739144e-05,
	-5.553062096224622e-06, 2.730578650563715e-07, 5.596968407947735e-08, -2.4596763061706888e-09,
	-3.897186920658366e-10, 1.545889578241607e-11, 1.9669441441852483e-12, -7.110207364991028e-14,
	2.825339409478929e-17, 0.30011575252613254, -0.021389212809341595, -0.04697047894974148,
	0.003130291726048103, 0.0021055871432481255, -0.0001255079095515849, -4.4991475301510034e-05,
	2.401580796834756e-06, 5.665269946841354e-07, -2.72734279531162e-08, -4.720467597418073e-09,
	2.0653180265031593e-10, 2.798711894703147e-11, -1.1145889001232454e-12, -1.1516905230616126e-13,
}

var j1Centre = [4]float64{1.875, 3.8317059702075125, 5.375, 7.015586669815619}

var y0Piece = [88]float64{
	0.44865872156913184, -0.24601900149738395, -0.17959863323958702, 0.05735079184891043,
	0.0067805489777591505, -0.0015746332361647787, -0.00044401782585931984, 0.00011718038227374384,
	-1.9130886245770725e-05, 6.798729770634319e-06, -2.485929036660801e-06, 8.232306791289702e-07,
	-2.7430953255188413e-07, 9.25935492712323e-08, -3.139269978244586e-08, 1.068847422188195e-08,
	-3.676939714826862e-09, 1.2612318728139601e-09, -4.0046689391348476e-10, 1.3805913655464247e-10,
	-7.41812969178074e-11, 2.5756221738750617e-11, -4.3331064642935194e-17, -0.40254267177502423,
	0.05085590959215825, 0.05852382210517024, -0.006852566677111004, -0.0021835188740493565,
	0.00019526940245097546, 5.0922913806512404e-05, -4.8933693280957504e-06, -2.9348814583659476e-07,
	-2.185341723853408e-08, 1.8928091288801454e-08, -3.656724136724081e-09, 7.669447333450639e-10,
	-1.8612907721147323e-10, 4.464232154180839e-11, -1.0611888004007639e-11, 2.5377775125877816e-12,
	-6.053956700631352e-13, 1.3582295011997548e-13, -2.4183667224922113e-14, 2.3490938799494227e-15,
	-0.32333323801254144, 0.10417130815472234, 0.15260824438412093, -0.025683616272857847,
	-0.010877045897213002, 0.0014704807264366933, 0.0002983455769328422, -3.444579316513583e-05,
	-4.65255878481019e-06, 4.770084444312584e-07, 4.3594825466432696e-08, -3.8730787625501865e-09,
	-3.412861142751773e-10, 3.1015136984299224e-11, 5.675264920945308e-13, 4.28272301597876e-14,
	-3.182368125408265e-14, 4.688674672181045e-15, -6.882750278889948e-16, 1.1586861576043263e-16,
	-2.1204280511202566e-17, 3.523430179817451e-18, 2.651448172550504e-17, 0.3000976149104752,
	-0.021175236556769544, -0.048024070076259875, 0.0033183482688956324, 0.002175984016443104,
	-0.00014060259774082253, -4.5951406706884365e-05, 2.7013637927390613e-06, 5.749349569687992e-07,
	-3.098470252366855e-08, -4.717221546843727e-09, 2.302945652493132e-10, 2.8268572829645613e-11,
	-1.3120082964306197e-12, -1.165626689459049e-13, 4.266015598794466e-15, 5.426339294453521e-16,
	-3.252793421780988e-17, 1.0139878016286815e-18, -2.420337549542796e-19, 2.85235722563963e-20,
}

var y0Centre = [4]float64{2.75, 3.957678419314858, 5.75, 7.086051060301773}

var y1Piece = [88]float64{
	2.513306678922122e-17, 0.5207864124022675, -0.11851454574909662, -0.032857397405286634,
	-0.00479781167010524, 0.0074225533327391905, -0.0025952416883822603, 0.0010668529986884872,
	-0.0005096012949346596, 0.00023586998867301866, -0.000107760659937777, 4.9245040353538755e-05,
	-2.2491106631979127e-05, 1.0255880865957655e-05, -4.650294323690864e-06, 2.0655173908111947e-06,
	-8.678226570561065e-07, 3.2537786383677696e-07, -1.0074152291467479e-07, 2.3367426658975142e-08,
	-3.5242328113691053e-09, 2.5528761146175574e-10, 0.358568893083851, -0.1962880024754548,
	-0.14626595786083113, 0.03900713613795952, 0.008783856685611772, -0.0017227786488328062,
	-0.0002698584440887462, 4.546350636712963e-05, 2.5665985481207004e-06, -2.2746845469885995e-07,
	-1.0871196736167203e-07, 2.1547125513689634e-08, -3.800320615587236e-09, 9.349466158281797e-10,
	-2.2928162044950924e-10, 5.4082094252579945e-11, -1.275881197323633e-11, 3.0148080201922936e-12,
	-7.021668994333906e-13, 1.6569113921168236e-13, -4.6756137235728365e-14, 1.102394743619896e-14,
	1.4165786380203692e-16, -0.3403180455234406, 0.031338677444086624, 0.0509479397434201,
	-0.004160115934390686, -0.0021659987510881176, 0.00014662089289344327, 4.645867906118147e-05,
	-2.8638625372132564e-06, -5.464420657132288e-07, 2.5505144774061015e-08, 5.598034647930666e-09,
	-3.855618830346438e-10, 2.2765565584989195e-12, -4.437743769467013e-12, 1.1706374499792495e-12,
	-1.9901235887240193e-13, 3.55669944510272e-14, -6.61081795947722e-15, 1.1615041730893095e-15,
	-1.6724178696361756e-16, 1.3775599887549686e-17, -0.28934799419758706, 0.08833259803038725,
	0.13582967529220238, -0.020153871243180407, -0.010062271126389463, 0.0011465845194338668,
	0.0002930862948840602, -2.8071056812343878e-05, -4.656597033885938e-06, 3.904873232710681e-07,
	4.627802040638184e-08, -3.445289823322304e-09, -3.2421467802404256e-10, 2.2166868099243486e-11,
	1.552545468619157e-12, -9.037114844980261e-14, -7.653530051693689e-15, 5.481250403857368e-16,
	-7.272238622947392e-18, 2.668601040283241e-18, -5.893236882593359e-19, 7.749091996529734e-20,
}

var y1Centre = [4]float64{2.197141326031017, 4.25, 5.429681040794135, 7.25}

// besselInterval is the number of the interval of x, from 0 to 3.
func besselInterval(x, second, step float64) int {
	switch {
	case x < second:
		return 0
	case x < second+step:
		return 1
	case x < second+step+step:
		return 2
	}
	return 3
}

// besselPhase0 is J0(x) = M*cos(t), Y0(x) = M*sin(t) for x >= 8, where M is
// (sqrt(2/pi) + m) / sqrt(x) and t is q*pi/2 + r + e as in quarterTurns: modulus and phase of Hankel's expansion,
// (2/(pi*x))**(1/2) * (1 - 1/(16*x*x) + ...) and x - pi/4 - 1/(8*x) + ... (Watson, A
// Treatise on the Theory of Bessel Functions, 13.75), as polynomials of degree 13 in
// 1/(x*x) that interpolate the true ones in Chebyshev points with 50 digits, within
// 1e-17 of the modulus and of the phase.
func besselPhase0(x float64) (m float64, q uint64, r, e float64) {
	v := 1 / x
	z := float64(v * v)
	m = -33938600603242.914
	t := 237820276675437.06
	m = math.FMA(m, z, 3937032409762.0366)
	t = math.FMA(t, z, -29346433050910.797)
	m = math.FMA(m, z, -212929368651.76297)
	t = math.FMA(t, z, 1689380161809.8223)
	m = math.FMA(m, z, 7297147788.232921)
	t = math.FMA(t, z, -61341049905.611664)
	m = math.FMA(m, z, -185750247.05280495)
	t = math.FMA(t, z, 1628867238.5120785)
	m = math.FMA(m, z, 4051391.010055749)
	t = math.FMA(t, z, -35791913.76131761)
	m = math.FMA(m, z, -89252.43750308505)
	t = math.FMA(t, z, 749464.7236731474)
	m = math.FMA(m, z, 2356.5670623226315)
	t = math.FMA(t, z, -17583.436259274917)
	m = math.FMA(m, z, -85.25887913272942)
	t = math.FMA(t, z, 534.9568580609412)
	m = math.FMA(m, z, 4.6665556930111025)
	t = math.FMA(t, z, -23.4738936327731)
	m = math.FMA(m, z, -0.4331289631820641)
	t = math.FMA(t, z, 1.6380645154676996)
	m = math.FMA(m, z, 0.08259351898350806)
	t = math.FMA(t, z, -0.20957031169394386)
	m = math.FMA(m, z, -0.04986778505017882)
	t = math.FMA(t, z, 0.06510416666647652)
	t = math.FMA(t, z, -0.12499999999999999)
	q, r, e = besselTurns(x, float64(v*t))
	return math.FMA(z, m, rootTwoOverPiLo), q, r, e
}

// besselPhase1 is besselPhase0 for J1 and Y1, a quarter turn behind; their
// phase goes on with 3/(8*x).
func besselPhase1(x float64) (m float64, q uint64, r, e float64) {
	v := 1 / x
	z := float64(v * v)
	m = 38086981139087.13
	t := -267432458028248.88
	m = math.FMA(m, z, -4423414114940.195)
	t = math.FMA(t, z, 33036080856845.133)
	m = math.FMA(m, z, 239669057623.78174)
	t = math.FMA(t, z, -1904888957093.5083)
	m = math.FMA(m, z, -8238155490.5077505)
	t = math.FMA(t, z, 69347297883.05344)
	m = math.FMA(m, z, 210799462.58584282)
	t = math.FMA(t, z, -1849646796.3582385)
	m = math.FMA(m, z, -4640645.408104486)
	t = math.FMA(t, z, 40961954.71083606)
	m = math.FMA(m, z, 103885.76290987813)
	t = math.FMA(t, z, -869584.0148249493)
	m = math.FMA(m, z, -2814.1793081179967)
	t = math.FMA(t, z, 20873.844529106555)
	m = math.FMA(m, z, 105.9014252843134)
	t = math.FMA(t, z, -658.4238029627008)
	m = math.FMA(m, z, -6.175554863147085)
	t = math.FMA(t, z, 30.622636703760193)
	m = math.FMA(m, z, 0.6425346987659069)
	t = math.FMA(t, z, -2.369396319917361)
	m = math.FMA(m, z, -0.15427845999247863)
	t = math.FMA(t, z, 0.3708984366011575)
	m = math.FMA(m, z, 0.14960335515053697)
	t = math.FMA(t, z, -0.16406249999978792)
	t = math.FMA(t, z, 0.375)
	q, r, e = besselTurns(x, float64(v*t))
	return math.FMA(z, m, rootTwoOverPiLo), q - 1, r, e
}

// sqrt(2/pi) in two floats.
const (
	rootTwoOverPiHi = 0.7978845608028654
	rootTwoOverPiLo = -4.98465440455546e-17
)

// besselLarge is (sqrt(2/pi) + m) / sqrt(x) * c, m with the low part of that root.
func besselLarge(x, m, c float64) float64 {
	w := c / math.Sqrt(x)
	return math.FMA(w, rootTwoOverPiHi, w*m)
}

// besselTurns is x - pi/4 + t, |t| < 0.1, as q*pi/2 + r + e with |r| <= pi/4 and a
// little.
func besselTurns(x, t float64) (q uint64, r, e float64) {
	if x < trigHuge {
		q, r, e = quarterTurns(x)
	} else {
		q, r, e = hugeQuarterTurns(x)
	}
	// Minus pi/4, or plus pi/4 and a quarter turn less.
	hi, lo := -0.5*halfPi1, -0.5*halfPi2
	if r+t < 0 {
		hi, lo = -hi, -lo
		q--
	}
	h := r + hi
	b := h - r
	l := ((r - (h - b)) + (hi - b)) + (e + lo)
	r = h + t
	b = r - h
	return q, r, ((h - (r - b)) + (t - b)) + l
}

// turnedCos and turnedSin are the cosine and the sine of q*pi/2 + r + e.
func turnedCos(q uint64, r, e float64) float64 {
	c := 0.0
	if q&1 == 0 {
		c = cosOf(r, e)
	} else {
		c = -sinOf(r, e)
	}
	if q&2 != 0 {
		return -c
	}
	return c
}

func turnedSin(q uint64, r, e float64) float64 { return turnedCos(q-1, r, e) }

// J0 is the Bessel function of the first kind of order 0, within 3 ulp of the larger
// of its value and its envelope sqrt(2/(pi*|x|)); near its
// zeros up to 8 it keeps its relative accuracy.
//
//	J0(±Inf) = 0
//	J0(0) = 1
//	J0(NaN) = NaN
//
// Polynomials below 8, modulus and phase beyond.
func J0(x float64) float64 {
	x = math.Abs(x)
	switch {
	case x < 1:
		return j0Small(x)
	case x < 8:
		k := besselInterval(x, 2.75, 1.75)
		u := x - j0Centre[k]
		p := j0Piece[16*k+15]
		for i := 14; i >= 0; i-- {
			p = math.FMA(p, u, j0Piece[16*k+i])
		}
		return p
	case x <= math.MaxFloat64:
		m, q, r, e := besselPhase0(x)
		return besselLarge(x, m, turnedCos(q, r, e))
	case x != x:
		return x
	}
	return 0
}

// j0Small is J0 on [0, 1], 1 + z*p(z) with z = x*x: p, of degree 6, interpolates in
// Chebyshev points with 40 digits, within 1e-17.
func j0Small(x float64) float64 {
	z := float64(x * x)
	p := -2.3701712219435617e-12
	p = math.FMA(p, z, 4.709055007953936e-10)
	p = math.FMA(p, z, -6.781680977801047e-08)
	p = math.FMA(p, z, 6.7816840171089095e-06)
	p = math.FMA(p, z, -0.0004340277777760002)
	p = math.FMA(p, z, 0.015624999999999889)
	p = math.FMA(p, z, -0.25)
	return math.FMA(z, p, 1)
}

// J1 is the Bessel function of the first kind of order 1, within 3 ulp of the larger
// of its value and its envelope; near its zeros up to 8 it keeps its
// relative accuracy.
//
//	J1(±Inf) = 0
//	J1(±0) = 0
//	J1(NaN) = NaN
//
// As J0.
func J1(x float64) float64 {
	a := math.Abs(x)
	y := 0.0
	switch {
	case a < 1:
		y = j1Small(a)
	case a < 8:
		k := besselInterval(a, 2.75, 1.75)
		u := a - j1Centre[k]
		p := j1Piece[16*k+15]
		for i := 14; i >= 0; i-- {
			p = math.FMA(p, u, j1Piece[16*k+i])
		}
		y = p
	case a <= math.MaxFloat64:
		m, q, r, e := besselPhase1(a)
		y = besselLarge(a, m, turnedCos(q, r, e))
	case x != x:
		return x
	default:
		return 0
	}
	if x < 0 {
		return -y
	}
	return y
}

// j1Small is J1 on [0, 1]: x * (1/2 + z*p(z)) with z = x*x, found like j0Small.
func j1Small(x float64) float64 {
	z := float64(x * x)
	p := -1.4836115463456347e-13
	p = math.FMA(p, z, 3.363681581184727e-11)
	p = math.FMA(p, z, -5.651401660401492e-09)
	p = math.FMA(p, z, 6.781684021844525e-07)
	p = math.FMA(p, z, -5.425347222212336e-05)
	p = math.FMA(p, z, 0.0026041666666666605)
	p = math.FMA(p, z, -0.0625)
	return math.FMA(x, 0.5, x*(z*p))
}

// Y0 is the Bessel function of the second kind of order 0, within 3 ulp of the
// larger of its value and its envelope sqrt(2/(pi*x)); near its zeros from 2 to 8 it
// keeps its relative accuracy.
//
//	Y0(+Inf) = 0
//	Y0(0) = -Inf
//	Y0(x < 0) = NaN
//	Y0(NaN) = NaN
//
// As J0, with 2/pi*log(x)*J0(x) taken away below 2.
func Y0(x float64) float64 {
	switch {
	case !(x > 0):
		return yEdge(x)
	case x < 2:
		z := float64(x * x)
		p := 5.157051653418061e-17
		p = math.FMA(p, z, -1.6909612685479744e-14)
		p = math.FMA(p, z, 4.1434574517775e-12)
		p = math.FMA(p, z, -7.693076828699435e-10)
		p = math.FMA(p, z, 1.0358475979637041e-07)
		p = math.FMA(p, z, -9.495005204643636e-06)
		p = math.FMA(p, z, 0.0005386026668612996)
		p = math.FMA(p, z, -0.016073968025938315)
		p = math.FMA(p, z, 0.17760601686906713)
		p = math.FMA(p, z, -0.07380429510868723)
		return math.FMA(0.6366197723675814*Log(x), J0(x), p)
	case x < 8:
		k := besselInterval(x, 3.5, 1.5)
		u := x - y0Centre[k]
		p := y0Piece[22*k+21]
		for i := 20; i >= 0; i-- {
			p = math.FMA(p, u, y0Piece[22*k+i])
		}
		return p
	case x <= math.MaxFloat64:
		m, q, r, e := besselPhase0(x)
		return besselLarge(x, m, turnedSin(q, r, e))
	}
	return 0
}

// yEdge is what the functions of the second kind are for x = 0, x < 0 and NaN.
func yEdge(x float64) float64 {
	if x == 0 {
		return math.Inf(-1)
	}
	return math.NaN()
}

// Y1 is the Bessel function of the second kind of order 1, within 3 ulp of the
// larger of its value and its envelope; near its zeros from 2 to 8 it
// keeps its relative accuracy.
//
//	Y1(+Inf) = 0
//	Y1(0) = -Inf
//	Y1(x < 0) = NaN
//	Y1(NaN) = NaN
//
// As Y0, with 2/pi*(log(x)*J1(x) - 1/x) taken away below 2.
func Y1(x float64) float64 {
	switch {
	case !(x > 0):
		return yEdge(x)
	case x < 2:
		z := float64(x * x)
		p := -9.106443355474225e-16
		p = math.FMA(p, z, 2.6458732000662907e-13)
		p = math.FMA(p, z, -5.6478791959294645e-11)
		p = math.FMA(p, z, 8.931876202840906e-09)
		p = math.FMA(p, z, -9.92674057216121e-07)
		p = math.FMA(p, z, 7.164268749606693e-05)
		p = math.FMA(p, z, -0.0029553053360784035)
		p = math.FMA(p, z, 0.05434868816051003)
		p = math.FMA(p, z, -0.19605709064623894)
		// 2/pi in two floats.
		h := 0.6366197723675814 / x
		l := (math.FMA(-h, x, 0.6366197723675814) + -3.935735335036497e-17) / x
		if h > math.MaxFloat64 {
			return -h
		}
		return math.FMA(0.6366197723675814*Log(x), J1(x), math.FMA(x, p, -l)) - h
	case x < 8:
		k := besselInterval(x, 3.5, 1.5)
		u := x - y1Centre[k]
		p := y1Piece[22*k+21]
		for i := 20; i >= 0; i-- {
			p = math.FMA(p, u, y1Piece[22*k+i])
		}
		return p
	case x <= math.MaxFloat64:
		m, q, r, e := besselPhase1(x)
		return besselLarge(x, m, turnedSin(q, r, e))
	}
	return 0
}

// besselFar says whether x is so large beside n that J and Y of order n are those
// of order n mod 2 but for a sign: the phase n*n/(2*x) that they lack is below
// 2**-61.
func besselFar(n int, x float64) bool {
	return float64(n)*float64(n) < x*0x1p-60
}

// maxBesselSteps bounds the recurrences: as many take some ten seconds.
const maxBesselSteps = 1 << 30

// Jn is the Bessel function of the first kind of order n: within 4 + |n|/2 ulp of the
// larger of its value and, where |x| >= |n|, its envelope sqrt(2/(pi*|x|)).
//
//	Jn(n, ±Inf) = 0
//	Jn(n, NaN) = NaN
//	Jn(n, x) = NaN for |n| > 2**30, but where x is so small that the result is 0 or
//	           so large that n counts modulo 4 only: the recurrence would take minutes
//
// By recurrence from J0 and J1 for n <= |x|, else backward (J. C. P. Miller), which
// takes a number of steps proportional to n; by the first terms of the power
// series for tiny x.
func Jn(n int, x float64) float64 {
	a := math.Abs(x)
	switch {
	case x != x:
		return x
	case a > math.MaxFloat64 || a == 0 && n != 0:
		return 0
	}
	// J of -n or of -x is J times (-1)**n.
	flip := n&1 != 0 && (n < 0) != (x < 0)
	if n < 0 {
		n = -n
		if n < 0 {
			n = math.MaxInt64 - 3 // of the same remainder by 4
		}
	}
	y := 0.0
	switch {
	case n == 0:
		return J0(a)
	case n == 1:
		y = J1(a)
	case besselFar(n, a):
		y = J0(a)
		if n&1 != 0 {
			y = J1(a)
		}
		if n&2 != 0 {
			y = -y
		}
	case float64(n) <= a:
		if n > maxBesselSteps {
			return math.NaN()
		}
		y = besselForward(n, a, J0(a), J1(a))
	default:
		y = jnBackward(n, a)
	}
	if flip {
		return -y
	}
	return y
}

// besselForward is order n >= 2 from orders 0 and 1. It ends where Y overflows,
// towards -Inf.
func besselForward(n int, x, y0, y1 float64) float64 {
	v, vl := besselInverse(x)
	for k := 1; k < n && math.Abs(y1) <= math.MaxFloat64; k++ {
		y0, y1 = y1, besselNext(float64(2*k), v, vl, y1, y0)
	}
	if !(math.Abs(y1) <= math.MaxFloat64) {
		return math.Inf(-1)
	}
	return y1
}

// besselInverse is 1/x in two floats.
func besselInverse(x float64) (v, vl float64) {
	v = 1 / x
	return v, math.FMA(-v, x, 1) / x
}

// besselNext is k*(v+vl)*y - z, the three-term recurrence; a rounded k/x would err
// alike for every second k.
func besselNext(k, v, vl, y, z float64) float64 {
	h := float64(k * v)
	l := math.FMA(k, vl, math.FMA(k, v, -h))
	return math.FMA(h, y, math.FMA(l, y, -z))
}

// jnBackward is Jn for n >= 2, 0 < x < n.
func jnBackward(n int, x float64) float64 {
	nf := float64(n)
	// J is at most (x/2)**n / n! < (e*x/(2*n))**n.
	if nf*(Log(0.5*x/nf)+1) < -760 {
		return 0
	}
	if n > maxBesselSteps {
		return math.NaN()
	}
	if x < 0x1p-26 {
		return Pow(0.5*x, nf) / Gamma(nf+1)
	}
	// From the order on which the solution that grows with the order is 2**70
	// times what it is at n, zeros do for the one that decays.
	v, vl := besselInverse(x)
	m := n
	for p0, p1 := 0.0, 1.0; p1 < 0x1p70; m++ {
		p0, p1 = p1, besselNext(float64(2*m), v, vl, p1, p0)
	}
	f0, f1, fn := 1.0, 0.0, 0.0
	for k := m; k > 0; k-- {
		f0, f1 = besselNext(float64(2*k), v, vl, f0, f1), f0
		if k-1 == n {
			fn = f0
		}
		if math.Abs(f0) > 0x1p500 {
			f0 *= 0x1p-500
			f1 *= 0x1p-500
			fn *= 0x1p-500
		}
	}
	j0, j1 := J0(x), J1(x)
	if math.Abs(j1) > math.Abs(j0) {
		return float64(fn / f1 * j1)
	}
	return float64(fn / f0 * j0)
}

// Yn is the Bessel function of the second kind of order n: within 4 + |n|/2 ulp of
// the larger of its value and the envelope sqrt(2/(pi*x)).
//
//	Yn(n, +Inf) = 0
//	Yn(n ≥ 0, 0) = -Inf
//	Yn(n < 0, 0) = +Inf if n is odd, -Inf if n is even
//	Yn(n, x < 0) = NaN
//	Yn(n, NaN) = NaN
//	Yn(n, x) = NaN for |n| > 2**30, but where the result is infinite or n counts
//	           modulo 4 only, as for Jn
//
// By recurrence from Y0 and Y1.
func Yn(n int, x float64) float64 {
	flip := n&1 != 0 && n < 0
	if n < 0 {
		n = -n
		if n < 0 {
			n = math.MaxInt64 - 3 // of the same remainder by 4
		}
	}
	y := 0.0
	switch {
	case n == 0:
		return Y0(x)
	case x > math.MaxFloat64:
		return 0
	case n == 1 || !(x > 0):
		y = Y1(x)
	case besselFar(n, x):
		y = Y0(x)
		if n&1 != 0 {
			y = Y1(x)
		}
		if n&2 != 0 {
			y = -y
		}
	case x < 0x1p-512:
		y = math.Inf(-1)
	case n > maxBesselSteps:
		// |Y| is more than (n-1)! * (2/x)**n / pi for x < n.
		nf := float64(n)
		if !(float64(nf*(Log(nf/x)+(math.Ln2-1)))-Log(nf) > 720) {
			return math.NaN()
		}
		y = math.Inf(-1)
	default:
		y = besselForward(n, x, Y0(x), Y1(x))
	}
	if flip {
		return -y
	}
	return y
}
