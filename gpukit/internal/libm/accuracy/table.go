package main

import (
	"fmt"
	"math"

	"gpunotes/gpukit/internal/libm"
)

// A row says what is claimed of a function and where it is measured.
type row struct {
	name string
	// bound is the greatest error claimed, in ulp. Of an exact function it is 0:
	// its oracle is package math instead of MPFR.
	bound float64
	// floor, where there is one, is the least value whose ulp counts: near its
	// zeros a function is held to an absolute error.
	floor func(x, y float64) float64
	// widen, where there is one, is what the bound is multiplied by.
	widen  func(x, y float64) float64
	note   string // what floor and widen mean, for the table
	mpfr   string // name in mpfr.py
	binary bool
	start  bool // mpfr.py takes our result too, to start from
	ours   func(x, y float64) float64
	theirs func(x, y float64) float64
	// orders are integers that come first, of a size that MPFR is quick with.
	orders bool
	// slow functions are measured on a fifth of the points.
	slow    bool
	sources []source
	edges   []edge
}

func ofOne(name, mpfr string, bound float64, ours, theirs func(float64) float64, points []source, edges ...float64) *row {
	r := &row{name: name, mpfr: mpfr, bound: bound, sources: points,
		ours:   func(x, _ float64) float64 { return ours(x) },
		theirs: func(x, _ float64) float64 { return theirs(x) }}
	for _, e := range edges {
		r.edges = append(r.edges, edge{e, 0})
	}
	return r
}

func ofTwo(name, mpfr string, bound float64, ours, theirs func(x, y float64) float64, points []source, edges ...edge) *row {
	return &row{name: name, mpfr: mpfr, bound: bound, sources: points, edges: edges, binary: true, ours: ours, theirs: theirs}
}

// bessel is a Bessel function; of the forms with an order that comes first.
func (r *row) bessel(from float64) *row {
	r.note = fmt.Sprintf("from abs(x) = %g on, of the amplitude sqrt(2/(pi abs(x)))", from)
	if r.binary {
		r.note = "where abs(x) >= abs(n), of the amplitude sqrt(2/(pi abs(x)))"
	}
	r.floor = func(x, y float64) float64 {
		if r.binary {
			x, from = y, math.Abs(x)
		}
		if math.Abs(x) < from {
			return 0
		}
		return math.Sqrt(2 / (math.Pi * math.Abs(x)))
	}
	return r
}

func (r *row) ordered() *row {
	r.orders, r.slow = true, true
	r.widen = func(n, _ float64) float64 { return 1 + math.Abs(n)/8 }
	r.note = "times 1 + abs(n)/8; " + r.note
	return r
}

// powered is a power whose error grows with the exponent of e.
func (r *row) powered() *row {
	r.widen = func(x, y float64) float64 { return 1 + math.Abs(float64(y*math.Log(math.Abs(x))))/64 }
	r.note = "times 1 + abs(y log(x))/64"
	return r
}

func (r *row) below(x, floor float64, note string) *row {
	r.note = note
	r.floor = func(a, _ float64) float64 {
		if a < x {
			return floor
		}
		return 0
	}
	return r
}

func (r *row) inverse() *row {
	r.start, r.slow = true, true
	return r
}

// rows is the one place where bounds are claimed.
var rows = []*row{
	ofOne("Sin", "sin", 1, libm.Sin, math.Sin, angles, quarters...),
	ofOne("Cos", "cos", 1, libm.Cos, math.Cos, angles, quarters...),
	ofOne("Sincos.sin", "sin", 1, first(libm.Sincos), first(math.Sincos), angles, quarters...),
	ofOne("Sincos.cos", "cos", 1, second(libm.Sincos), second(math.Sincos), angles, quarters...),
	ofOne("Tan", "tan", 1, libm.Tan, math.Tan, angles, quarters...),
	ofOne("Asin", "asin", 1, libm.Asin, math.Asin, unit, 0.5, 1, -0.5, -1, 0x1p-26, 0x1p-28, math.Sqrt2/2),
	ofOne("Acos", "acos", 1, libm.Acos, math.Acos, unit, 0.5, 1, -0.5, -1, 0x1p-26, 0x1p-54, math.Sqrt2/2),
	ofOne("Atan", "atan", 1, libm.Atan, math.Atan, flat, 0.4375, 0.6875, 1.1875, 2.4375, 1, math.Sqrt2-1, math.Sqrt2+1, 0x1p54, 0x1p-27),
	ofTwo("Atan2", "atan2", 1, libm.Atan2, math.Atan2, append(pairs, source{20, nearTanPi8}), edge{1, 1}, edge{-1, -1}, edge{5e-324, 1}, edge{1, 1e308}, edge{5e-324, -1e308},
		edge{math.Sqrt2 - 1, 1}, edge{1, math.Sqrt2 - 1}, edge{math.Sqrt2 - 1, -1}, edge{0x1p-70, 1}, edge{0x1p400, 1}, edge{0x1p-400, 0x1p-401}, edge{0.7260499427758368, 1.7527725095470537}, edge{0.7583085019090837, 1.8307132805723172}),

	ofOne("Sinh", "sinh", 1, libm.Sinh, math.Sinh, hyperbolic, 710.4758600739439, -710.4758600739439, 709.782712893384, 22, 21, 0.3465735902799726, 1, 0x1p-28),
	ofOne("Cosh", "cosh", 1, libm.Cosh, math.Cosh, hyperbolic, 710.4758600739439, -710.4758600739439, 709.782712893384, 22, 21, 0.3465735902799726, 1, 0x1p-28),
	ofOne("Tanh", "tanh", 1, libm.Tanh, math.Tanh, hyperbolic, 0.625, 22, 19.061547465398498, 1, 0x1p-28, 0.5493061443340549),
	ofOne("Asinh", "asinh", 1, libm.Asinh, math.Asinh, flat, 2, 1, 0x1p28, 0x1p-28, 0x1p511, 0.75),
	ofOne("Acosh", "acosh", 1, libm.Acosh, math.Acosh, aboveOne, 1, 2, 0x1p28, 0x1p511, 1.5),
	ofOne("Atanh", "atanh", 1, libm.Atanh, math.Atanh, unit, 0.5, 1, -1, 0x1p-28, 1./3),

	ofOne("Exp", "exp", 1, libm.Exp, math.Exp, exponents(math.Ln2), expEdges...),
	ofOne("Exp2", "exp2", 1, libm.Exp2, math.Exp2, exponents(1), 1024, -1074, -1075, -1022, 0.5, -0.5, 0, 1),
	ofOne("Expm1", "expm1", 1, libm.Expm1, math.Expm1, exponents(math.Ln2), append(expEdges, -36.7368005696771, -37.42994775023705, 56*math.Ln2, 0.3465735902799726)...),
	ofOne("Log", "log", 1, libm.Log, math.Log, positive, logEdges...),
	ofOne("Log2", "log2", 1, libm.Log2, math.Log2, positive, logEdges...),
	ofOne("Log10", "log10", 1, libm.Log10, math.Log10, positive, append(logEdges, 10, 100, 1000, 0.1, 0.01, 1e22, 1e300)...),
	ofOne("Log1p", "log1p", 1, libm.Log1p, math.Log1p, aboveMinusOne, -1, -0.5, 1, 0.4142135623730951, -0.2928932188134525, 0x1p-29, 0x1p53, 0x1p54, 1e308),
	ofTwo("Pow", "pow", 1, libm.Pow, math.Pow, powers, edge{1, 1e300}, edge{2, 1024}, edge{2, -1074}, edge{2, -1075}, edge{-2, -1075}, edge{-1.5, 3}, edge{10, 308}, edge{10, -323}, edge{0.5, 1074}),
	ofOne("Pow10", "exp10", 1, integer(libm.Pow10), integer(math.Pow10), tens, 0, 22, 23, 308, 309, -307, -308, -322, -323, -324),
	ofOne("Cbrt", "cbrt", 1, libm.Cbrt, math.Cbrt, everywhere, 1, 8, 27, 0x1p-1022, math.MaxFloat64),
	ofTwo("Hypot", "hypot", 1, libm.Hypot, math.Hypot, lengths, edge{3, 4}, edge{1, 0x1p-27}, edge{1, 0x1p-26}, edge{math.MaxFloat64, 0x1p997}, edge{1.2711610061536464e308, 1.2711610061536464e308}, edge{0x1p-1022, 0x1p-1022}, edge{5e-324, 5e-324}, edge{0x1p511, 0x1p511}),

	ofOne("Erf", "erf", 1, libm.Erf, math.Erf, erfRange, 0.5625, 0.84375, 1.25, 1/0.35, 6, 5.921587195794508, 0x1p-28, 0.5, 1, 2, 3, 4),
	ofOne("Erfc", "erfc", 1, libm.Erfc, math.Erfc, erfcRange, 0.5625, 26.5, 27.5, 0.84375, 1.25, 1/0.35, 6, 26.543258454250983, 27.226017111108366, -5.863584748755168, 0x1p-56, 0.5, 0.476936276204470, 1, 2, 3, 4),
	ofOne("Erfinv", "erfinv", 1.8, libm.Erfinv, math.Erfinv, unit, 0.85, -0.85, 1, -1, 0.5).inverse(),
	ofOne("Erfcinv", "erfcinv", 1.8, libm.Erfcinv, math.Erfcinv, erfcinvRange, 0.15, 1.85, 1, 2, 0, 0.5, 1.5).inverse(),

	ofOne("Gamma", "gamma", 2.1, libm.Gamma, math.Gamma, gammaRange, 171.61447887182297, 171.6243769563027, -170.5, -177.5, -184.5, 1, 2, 3, 33, -33, 143, 1e-308, 5.6e-309, -5.6e-309, 1.4616321449683623, -0.5, -4.662686964107465e-12, -3.7106013255421386e-11),
	ofOne("Lgamma.lgamma", "lgamma", 5, lgamma(libm.Lgamma), lgamma(math.Lgamma), lgammaRange, 1, 2, 1.4616321449683623, -2.4570247382208006, -2.7476826467274127, -3.1435808883499798, 7, 8, 0x1p-70, 0x1p58, 2.556348159195167e305).below(0, 0.5, "below 0, of the greater of abs(f) and 1/2"),
	ofOne("J0", "j0", 3, libm.J0, math.J0, besselRange, 2.404825557695773, 5.520078110286311, 2, 4, 8, 25, 45, 0x1p-13, 0x1p129).bessel(1),
	ofOne("J1", "j1", 3, libm.J1, math.J1, besselRange, 3.8317059702075125, 7.015586669815619, 2, 4, 8, 25, 45, 0x1p-27, 0x1p129).bessel(3),
	ofOne("Y0", "y0", 3, libm.Y0, math.Y0, besselPositive, 0.8935769662791675, 3.957678419314858, 2, 4, 8, 25, 45, 0x1p-27, 0x1p129).bessel(0.5),
	ofOne("Y1", "y1", 3, libm.Y1, math.Y1, besselPositive, 2.197141326031017, 5.429681040794135, 2, 4, 8, 25, 45, 0x1p-54, 0x1p129).bessel(1),
	ofTwo("Jn", "jn", 4, order(libm.Jn), order(math.Jn), orders, edge{2, 5.135622301840683}, edge{3, 2}, edge{50, 50}).bessel(0).ordered(),
	ofTwo("Yn", "yn", 4, order(libm.Yn), order(math.Yn), orders, edge{2, 3.3842417671495934}, edge{3, 2}, edge{50, 50}).bessel(0).ordered(),

	ofOne("SinFast", "sin", 4, libm.SinFast, math.Sin, angles, quarters...),
	ofOne("CosFast", "cos", 4, libm.CosFast, math.Cos, angles, quarters...),
	ofOne("SincosFast.sin", "sin", 4, first(libm.SincosFast), first(math.Sincos), angles, quarters...),
	ofOne("SincosFast.cos", "cos", 4, second(libm.SincosFast), second(math.Sincos), angles, quarters...),
	ofOne("TanFast", "tan", 4, libm.TanFast, math.Tan, angles, quarters...),
	ofOne("AtanFast", "atan", 4, libm.AtanFast, math.Atan, flat, 0.4375, 0.6875, 1.1875, 2.4375, 1, math.Sqrt2-1, math.Sqrt2+1, 0x1p54, 0x1p-27),
	ofTwo("Atan2Fast", "atan2", 4, libm.Atan2Fast, math.Atan2, append(pairs, source{20, nearTanPi8}), edge{1, 1}, edge{-1, -1}, edge{5e-324, 1}, edge{1, 1e308}, edge{5e-324, -1e308},
		edge{math.Sqrt2 - 1, 1}, edge{1, math.Sqrt2 - 1}, edge{math.Sqrt2 - 1, -1}, edge{0x1p-70, 1}, edge{0x1p1000, 1}, edge{0x1p-1000, 0x1p-1001}, edge{0x1p1001, -0x1p1000}),
	ofOne("TanhFast", "tanh", 4, libm.TanhFast, math.Tanh, hyperbolic, 0.625, 22, 19.061547465398498, 20, 1, 0x1p-28, 0.5493061443340549),
	ofOne("ExpFast", "exp", 4, libm.ExpFast, math.Exp, exponents(math.Ln2), expEdges...),
	ofOne("Exp2Fast", "exp2", 4, libm.Exp2Fast, math.Exp2, exponents(1), 1024, -1074, -1075, -1022, 0.5, -0.5, 0, 1),
	ofOne("LogFast", "log", 4, libm.LogFast, math.Log, positive, logEdges...),
	ofOne("Log2Fast", "log2", 4, libm.Log2Fast, math.Log2, positive, logEdges...),
	ofOne("Log10Fast", "log10", 4, libm.Log10Fast, math.Log10, positive, append(logEdges, 10, 100, 1000, 0.1, 0.01, 1e22, 1e300)...),
	ofTwo("PowFast", "pow", 4, libm.PowFast, math.Pow, powers, edge{1, 1e300}, edge{2, 1024}, edge{2, -1074}, edge{2, -1075}, edge{-2, -1075}, edge{-1.5, 3}, edge{10, 308}, edge{10, -323}, edge{0.5, 1074}).powered(),
	ofOne("ErfFast", "erf", 4, libm.ErfFast, math.Erf, erfRange, 0.875, 0.84375, 1.25, 1.5, 1/0.35, 5.95, 6, 0x1p-28, 0.5, 1, 2, 3, 4),

	ofOne("Frexp.frac", "", 0, firstOf(libm.Frexp), firstOf(math.Frexp), everywhere, 0x1p-1022, 1, 5e-324),
	ofOne("Frexp.exp", "", 0, secondOf(libm.Frexp), secondOf(math.Frexp), everywhere, 0x1p-1022, 1, 5e-324),
	ofOne("Logb", "", 0, libm.Logb, math.Logb, everywhere, 0x1p-1022, 1, 5e-324),
	ofOne("Ilogb", "", 0, asFloat(libm.Ilogb), asFloat(math.Ilogb), everywhere, 0x1p-1022, 1, 5e-324),
	ofOne("Lgamma.sign", "", 0, secondOf(libm.Lgamma), secondOf(math.Lgamma), lgammaRange, -1, -2, -3, 0, 1),
	ofTwo("Ldexp", "", 0, exponent(libm.Ldexp), exponent(math.Ldexp), scalings, edge{1, -1074}, edge{1, -1075}, edge{1.5, -1075}, edge{1, 1023}, edge{1, 1024}, edge{5e-324, 2097}, edge{math.MaxFloat64, -2098}, edge{math.MaxFloat64, -2099}),
	ofTwo("Mod", "", 0, libm.Mod, math.Mod, pairs, edge{1, 0.1}, edge{5, 3}, edge{-5, 3}, edge{5e-324, 1}, edge{1, 5e-324}),
	ofTwo("Remainder", "", 0, libm.Remainder, math.Remainder, pairs, edge{1, 0.1}, edge{5, 3}, edge{-5, 3}, edge{5e-324, 1}, edge{1, 5e-324}, edge{1.5, 1}, edge{2.5, 1}),
	ofTwo("Nextafter", "", 0, libm.Nextafter, math.Nextafter, pairs, edge{0, 1}, edge{0, -1}, edge{1, 1}, edge{math.MaxFloat64, math.Inf(1)}),
	ofTwo("Nextafter32", "", 0, single(libm.Nextafter32), single(math.Nextafter32), pairs, edge{0, 1}, edge{0, -1}, edge{1, 1}, edge{math.MaxFloat32, math.Inf(1)}),
}

var (
	expEdges = []float64{709.782712893384, -745.1332191019412, -744.4400719213812, -708.3964185322641, -708.39641853226410622, 0, 1, -1,
		math.Ln2 / 2, -math.Ln2 / 2, math.Ln2, 0x1p-28, -0x1p-28, 0x1p-54}
	logEdges = []float64{1, math.Sqrt2, math.Sqrt2 / 2, 2, 0.5, math.E, 4, 0.25, 8, 0x1p-1022, math.MaxFloat64, 5e-324}
	quarters = []float64{math.Pi / 4, math.Pi / 2, 3 * math.Pi / 4, math.Pi, 5 * math.Pi / 4, 3 * math.Pi / 2, 2 * math.Pi,
		-math.Pi / 4, -math.Pi, 0x1p-26, 0x1p-27, 1e5, 0x1p20, 0x1p25, 0x1p27, 0x1p28, 0x1p29, 0x1p30, 0x1p32, 0x1p52, 0x1p53}
)

func first(f func(float64) (float64, float64)) func(float64) float64 {
	return func(x float64) float64 { a, _ := f(x); return a }
}

func second(f func(float64) (float64, float64)) func(float64) float64 {
	return func(x float64) float64 { _, b := f(x); return b }
}

func firstOf(f func(float64) (float64, int)) func(float64) float64 {
	return func(x float64) float64 { a, _ := f(x); return a }
}

func secondOf(f func(float64) (float64, int)) func(float64) float64 {
	return func(x float64) float64 { _, b := f(x); return float64(b) }
}

var lgamma = firstOf

func integer(f func(int) float64) func(float64) float64 {
	return func(x float64) float64 { return f(whole(x)) }
}

func asFloat(f func(float64) int) func(float64) float64 {
	return func(x float64) float64 { return float64(f(x)) }
}

func order(f func(int, float64) float64) func(x, y float64) float64 {
	return func(n, x float64) float64 { return f(whole(n), x) }
}

func exponent(f func(float64, int) float64) func(x, y float64) float64 {
	return func(x, n float64) float64 { return f(x, whole(n)) }
}

func single(f func(x, y float32) float32) func(x, y float64) float64 {
	return func(x, y float64) float64 { return float64(f(float32(x), float32(y))) }
}

// whole makes an argument of type int of any number.
func whole(x float64) int {
	if x != x {
		return 0
	}
	return int(max(-1e6, min(1e6, math.Trunc(x))))
}
