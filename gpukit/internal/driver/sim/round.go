package sim

import (
	"math"
	"math/big"
	"math/bits"
)

// Arithmetic in the rounding modes of PTX. The machine rounds to nearest; the directed modes take that result and ask
// on which side of it the exact one lies, so that overflow and denormals need no case of their own.

type rounding uint8

const (
	nearest rounding = iota
	towardZero
	downward
	upward
)

func roundingOf(mod string) rounding {
	switch mod {
	case "rz", "rzi":
		return towardZero
	case "rm", "rmi":
		return downward
	case "rp", "rpi":
		return upward
	}
	return nearest
}

// Every NaN that f32 arithmetic makes.
const nan32 = 0x7FFFFFFF

// directed moves r, the nearest of an exact result, to its neighbour where the mode asks for it. cmp is the sign of
// exact - r.
func directed(mode rounding, r float64, cmp int, next func(x, to float64) float64) float64 {
	switch {
	case mode == nearest || cmp == 0 || r != r:
		return r
	case mode == downward && cmp < 0, mode == towardZero && cmp < 0 && r > 0:
		return next(r, math.Inf(-1))
	case mode == upward && cmp > 0, mode == towardZero && cmp > 0 && r < 0:
		return next(r, math.Inf(1))
	case r == 0 && mode == towardZero:
		return r
	}
	return r
}

func next32(x, to float64) float64 { return float64(math.Nextafter32(float32(x), float32(to))) }

// exact is a big.Float without rounding; x is finite.
func exact(x float64) *big.Float { return new(big.Float).SetPrec(5000).SetFloat64(x) }

// narrow rounds a float64 to a float32's value, or leaves it.
func narrow(single bool, x float64) float64 {
	if single {
		return float64(float32(x))
	}
	return x
}

func nextOf(single bool) func(x, to float64) float64 {
	if single {
		return next32
	}
	return math.Nextafter
}

func finite(xs ...float64) bool {
	for _, x := range xs {
		if math.IsNaN(x) || math.IsInf(x, 0) {
			return false
		}
	}
	return true
}

// side is the sign of exact - r; r may be infinite.
func side(e *big.Float, r float64) int {
	if math.IsInf(r, 0) {
		if r > 0 {
			return -1
		}
		return 1
	}
	return e.Cmp(exact(r))
}

// fma rounds x*y+z once; for single ones x, y, z and the result are float32 values.
func fma(single bool, mode rounding, x, y, z float64) float64 {
	var r float64
	if single {
		r = float64(fma32(float32(x), float32(y), float32(z)))
	} else {
		r = math.FMA(x, y, z)
	}
	if mode == nearest || !finite(x, y, z) {
		return r
	}
	e := new(big.Float).SetPrec(5000).Mul(exact(x), exact(y))
	e.Add(e, exact(z))
	if e.Sign() == 0 {
		return exactZero(mode, r, math.Signbit(x) != math.Signbit(y), math.Signbit(z))
	}
	return directed(mode, r, side(e, r), nextOf(single))
}

// exactZero is the sign of a sum that is exactly zero: minus where both terms are, or where the mode is down and they
// differ.
func exactZero(mode rounding, r float64, minus1, minus2 bool) float64 {
	if minus1 == minus2 {
		return r
	}
	if mode == downward {
		return math.Copysign(0, -1)
	}
	return 0
}

func addRounded(single bool, mode rounding, x, y float64) float64 {
	r := narrow(single, x+y) // twice rounded is right: 53 >= 2*24+2
	if mode == nearest || !finite(x, y) {
		return r
	}
	e := new(big.Float).SetPrec(5000).Add(exact(x), exact(y))
	if e.Sign() == 0 {
		return exactZero(mode, r, math.Signbit(x), math.Signbit(y))
	}
	return directed(mode, r, side(e, r), nextOf(single))
}

func mulRounded(single bool, mode rounding, x, y float64) float64 {
	r := narrow(single, x*y)
	if mode == nearest || !finite(x, y) || x == 0 || y == 0 {
		return r
	}
	return away(mode, r, side(new(big.Float).SetPrec(5000).Mul(exact(x), exact(y)), r), math.Signbit(x) != math.Signbit(y), single)
}

// away is directed for a result that is not zero though r may be, of known sign.
func away(mode rounding, r float64, cmp int, minus, single bool) float64 {
	r = directed(mode, r, cmp, nextOf(single))
	if r == 0 && minus { // the neighbour of a denormal
		return math.Copysign(0, -1)
	}
	return r
}

func divRounded(single bool, mode rounding, x, y float64) float64 {
	r := narrow(single, x/y)
	if mode == nearest || !finite(x, y) || x == 0 || y == 0 {
		return r
	}
	// The sign of x/y - r is that of (x - r*y) * y.
	var cmp int
	if math.IsInf(r, 0) {
		cmp = side(nil, r)
	} else {
		p := new(big.Float).SetPrec(5000).Mul(exact(r), exact(y))
		if cmp = exact(x).Cmp(p); y < 0 {
			cmp = -cmp
		}
	}
	return away(mode, r, cmp, math.Signbit(x) != math.Signbit(y), single)
}

func sqrtRounded(single bool, mode rounding, x float64) float64 {
	r := narrow(single, math.Sqrt(x))
	if mode == nearest || !finite(x) || x <= 0 {
		return r
	}
	p := new(big.Float).SetPrec(5000).Mul(exact(r), exact(r))
	return directed(mode, r, exact(x).Cmp(p), nextOf(single))
}

// narrowed converts a double to a float32's value.
func narrowed(mode rounding, x float64) float64 {
	r := float64(float32(x))
	if mode == nearest || !finite(x) || x == 0 {
		return r
	}
	return away(mode, r, side(exact(x), r), x < 0, true)
}

// fromInt converts an integer, given as magnitude and sign.
func fromInt(single bool, mode rounding, u uint64, minus bool) float64 {
	var r float64
	switch {
	case minus && single:
		r = float64(float32(int64(-u)))
	case minus:
		r = float64(int64(-u))
	case single:
		r = float64(float32(u))
	default:
		r = float64(u)
	}
	if mode == nearest {
		return r
	}
	e := new(big.Float).SetPrec(5000).SetUint64(u)
	if minus {
		e.Neg(e)
	}
	return directed(mode, r, side(e, r), nextOf(single))
}

// fma32 rounds once: the sum in double is rounded to odd, which float32 then rounds as if it were exact.
func fma32(x, y, z float32) float32 {
	p, c := float64(float64(x)*float64(y)), float64(z) // the product is exact
	s := p + c
	if math.IsInf(s, 0) || s != s {
		return float32(s)
	}
	// The error of the sum (Knuth).
	t := s - p
	err := (p - (s - t)) + (c - t)
	if err != 0 && math.Float64bits(s)&1 == 0 {
		if (err > 0) == (s > 0) {
			s = math.Float64frombits(math.Float64bits(s) + 1)
		} else {
			s = math.Float64frombits(math.Float64bits(s) - 1)
		}
	}
	return float32(s)
}

// roundInt rounds to an integer in double.
func roundInt(mode rounding, x float64) float64 {
	switch mode {
	case towardZero:
		return math.Trunc(x)
	case downward:
		return math.Floor(x)
	case upward:
		return math.Ceil(x)
	}
	return math.RoundToEven(x)
}

// toInt converts a float to an integer of n bits: clamped; what NaN gives is nan.
func toInt(mode rounding, x float64, n int, signed bool, nan uint64) uint64 {
	x = roundInt(mode, x)
	if x != x {
		return nan
	}
	hi := math.Ldexp(1, n)
	if signed {
		hi /= 2
		switch {
		case x >= hi:
			return 1<<(n-1) - 1
		case x < -hi:
			return 1 << (n - 1)
		}
		return uint64(int64(x)) & (^uint64(0) >> (64 - n))
	}
	switch {
	case x >= hi:
		return ^uint64(0) >> (64 - n)
	case x <= 0:
		return 0
	case x >= 1<<63:
		return uint64(int64(x-1<<63)) ^ 1<<63
	}
	return uint64(int64(x))
}

func mulHiS64(a, b uint64) uint64 {
	hi, _ := bits.Mul64(a, b)
	return hi - uint64(int64(a)>>63)&b - uint64(int64(b)>>63)&a
}
