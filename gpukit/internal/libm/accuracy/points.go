package main

import (
	"hash/fnv"
	"math"
	"math/big"
	"math/rand/v2"
	"sync"
)

// A source draws arguments. Sources of functions of one argument leave y 0.
type source struct {
	weight int
	draw   func(r *rand.Rand) (x, y float64)
}

// An edge is a place where an error is likely: a threshold, a zero, an extremum.
type edge struct{ x, y float64 }

// specials are tried in all pairs, and compared with package math.
var specials = []float64{
	0, math.Copysign(0, -1), math.Inf(1), math.Inf(-1), math.NaN(),
	1, -1, 2, -2, 3, -3, 4, -4, 0.5, -0.5, 1.5, -1.5, 2.5, -2.5, 7, -7, 10, -10, 33, -33, 100, -100, 170, -170, 171.5, -171.5, 1000, -1000, 1001, -1001,
	math.MaxFloat64, -math.MaxFloat64, 5e-324, -5e-324, 0x1p-1022, -0x1p-1022, 0x1p-1021, 1e-300, -1e-300, 1e300, -1e300,
	0x1p52, -0x1p52, 0x1p53, -0x1p53, 0x1p53 - 1, 1 - 0x1p53, 0x1p54, -0x1p54, 0x1p63, -0x1p63, 0x1p64, 0x1p1023, -0x1p1023,
	math.Nextafter(1, 0), math.Nextafter(1, 2), -math.Nextafter(1, 0), -math.Nextafter(1, 2),
	math.MaxFloat32, math.SmallestNonzeroFloat32, math.Pi, math.Pi / 2, math.Pi / 4, math.E, math.Ln2, 0.1, -0.1, 1. / 3, -1. / 3,
}

// points are the first n arguments at which a row is measured, the same in
// every run: specials, a neighbourhood of every edge, then what the sources draw.
func (r *row) points(n int) (xs, ys []float64) {
	add := func(x, y float64) {
		if r.orders {
			x = float64(max(-150, min(150, whole(x))))
		}
		xs, ys = append(xs, x), append(ys, y)
	}
	for _, x := range specials {
		if !r.binary {
			add(x, 0)
			continue
		}
		for _, y := range specials {
			add(x, y)
		}
	}
	h := fnv.New64a()
	h.Write([]byte(r.name))
	random := rand.New(rand.NewPCG(h.Sum64(), 1))
	each := 400
	if r.binary {
		each = 1000
	}
	for _, e := range r.edges {
		for i := range each {
			x, y := e.x, e.y
			switch {
			case !r.binary && i < each/2:
				x = step(x, i-each/4)
			case i < each/2:
				x, y = step(x, random.IntN(41)-20), step(y, random.IntN(41)-20)
			default:
				x = nearby(random, x)
				if r.binary {
					y = nearby(random, y)
				}
			}
			add(x, y)
		}
	}
	if r.angles() {
		for _, x := range nearMultiples() {
			add(x, 0)
		}
	}
	total := 0
	for _, s := range r.sources {
		total += s.weight
	}
	for len(xs) < n {
		k := random.IntN(total)
		for _, s := range r.sources {
			if k -= s.weight; k < 0 {
				add(s.draw(random))
				break
			}
		}
	}
	return xs, ys
}

// step is the float64 that is k numbers away from x.
func step(x float64, k int) float64 {
	to := math.Inf(1)
	if k < 0 {
		k, to = -k, math.Inf(-1)
	}
	for range k {
		x = math.Nextafter(x, to)
	}
	return x
}

// nearby is c with a relative (or, at 0, absolute) change of any size below 1.
func nearby(r *rand.Rand, c float64) float64 {
	d := math.Exp2(-55 * r.Float64())
	if r.IntN(2) == 0 {
		d = -d
	}
	if c == 0 {
		return d
	}
	return c * (1 + d)
}

func one(weight int, draw func(r *rand.Rand) float64) source {
	return source{weight, func(r *rand.Rand) (float64, float64) { return draw(r), 0 }}
}

func two(weight int, x, y func(r *rand.Rand) float64) source {
	return source{weight, func(r *rand.Rand) (float64, float64) { return x(r), y(r) }}
}

// anything is any float64 but NaN, each exponent as likely as any other.
func anything(r *rand.Rand) float64 {
	for {
		if x := math.Float64frombits(r.Uint64()); x == x {
			return x
		}
	}
}

// size is a number of magnitude 2**lo to 2**hi, each exponent as likely.
func size(lo, hi float64) func(r *rand.Rand) float64 {
	return func(r *rand.Rand) float64 {
		x := magnitude(lo, hi)(r)
		if r.IntN(2) == 0 {
			return -x
		}
		return x
	}
}

// magnitude is size without a sign.
func magnitude(lo, hi float64) func(r *rand.Rand) float64 {
	return func(r *rand.Rand) float64 {
		e := lo + float64((hi-lo)*r.Float64())
		return math.Ldexp(1+r.Float64(), int(math.Floor(e)))
	}
}

func between(lo, hi float64) func(r *rand.Rand) float64 {
	return func(r *rand.Rand) float64 { return lo + float64((hi-lo)*r.Float64()) }
}

// nearTanPi8 are pairs whose quotient is a little above the tangent of pi/8, up to
// which package libm divides them as they are.
func nearTanPi8(r *rand.Rand) (y, x float64) {
	x = math.Ldexp(1+r.Float64(), r.IntN(21)-10)
	return float64(x*(math.Sqrt2-1)) * (1 + math.Ldexp(r.Float64(), -r.IntN(30))), x
}

func integers(lo, hi int) func(r *rand.Rand) float64 {
	return func(r *rand.Rand) float64 { return float64(lo + r.IntN(hi-lo+1)) }
}

// off is c plus or minus a distance of 2**lo to 2**hi.
func off(c, lo, hi float64) func(r *rand.Rand) float64 {
	d := size(lo, hi)
	return func(r *rand.Rand) float64 { return c + d(r) }
}

// quarterTurn is the float64 next to a multiple of pi/2, or one close to that.
func quarterTurn(r *rand.Rand) float64 {
	const mid = 6.123233995736766e-17 // pi/2 - float64(pi/2)
	k := float64(1 + r.IntN([]int{100, 10000, 1000000}[r.IntN(3)]))
	p := float64(k * (math.Pi / 2))
	x := p + (math.FMA(k, math.Pi/2, -p) + float64(k*mid))
	if r.IntN(3) == 0 {
		x = step(x, r.IntN(9)-4)
	}
	if r.IntN(2) == 0 {
		return -x
	}
	return x
}

func (r *row) angles() bool { return len(r.sources) > 0 && &r.sources[0] == &angles[0] }

// nearMultiples are, for every exponent, the float64 numbers that come closest
// to a multiple of pi/2: the denominators of the continued fraction of
// 2**e / (pi/2) up to 2**53, times 2**e.
var nearMultiples = sync.OnceValue(func() (xs []float64) {
	const bits = 1400
	one := new(big.Int).Lsh(big.NewInt(1), bits)
	atanInverse := func(n int64) *big.Int { // atan(1/n) = sum of (-1)**k / ((2k+1) n**(2k+1))
		sum, power := new(big.Int), new(big.Int).Quo(one, big.NewInt(n))
		for k := int64(0); power.Sign() != 0; k++ {
			t := new(big.Int).Quo(power, big.NewInt(2*k+1))
			if k%2 == 1 {
				t.Neg(t)
			}
			sum.Add(sum, t)
			power.Quo(power, big.NewInt(n*n))
		}
		return sum
	}
	// Machin: pi/2 = 8 atan(1/5) - 2 atan(1/239)
	halfPi := new(big.Int).Mul(atanInverse(5), big.NewInt(8))
	halfPi.Sub(halfPi, new(big.Int).Mul(atanInverse(239), big.NewInt(2)))
	limit := new(big.Int).Lsh(big.NewInt(1), 53)
	for e := -52; e <= 971; e++ {
		num, den := new(big.Int).Lsh(one, uint(max(e, 0))), new(big.Int).Lsh(halfPi, uint(max(-e, 0)))
		q0, q1 := big.NewInt(1), big.NewInt(0) // denominators of the convergents, the last one first
		var last []*big.Int
		for den.Sign() != 0 {
			a, rest := new(big.Int).QuoRem(num, den, new(big.Int))
			num, den = den, rest
			q0, q1 = q1, a.Add(a.Mul(a, q1), q0)
			if q1.Cmp(limit) >= 0 {
				break
			}
			last = append(last, q1)
		}
		for _, q := range last[max(0, len(last)-3):] {
			f, _ := new(big.Float).SetInt(q).Float64()
			xs = append(xs, math.Ldexp(f, e))
		}
	}
	return xs
})

var (
	angles = []source{one(30, size(-30, 12)), one(20, between(-10, 10)), one(10, between(-1e4, 1e4)), one(20, quarterTurn),
		one(10, size(12, 1024)), one(10, anything)}
	unit = []source{one(40, between(-1, 1)), one(20, size(-60, 0)), one(15, off(1, -53, -1)), one(15, off(-1, -53, -1)),
		one(5, off(0.5, -50, -2)), one(5, size(-1074, 0))}
	flat       = []source{one(30, size(-60, 60)), one(30, between(-10, 10)), one(20, between(-1, 1)), one(20, anything)}
	hyperbolic = []source{one(20, between(-1, 1)), one(30, between(-25, 25)), one(20, between(-711, 711)), one(25, size(-60, 10)), one(5, anything)}
	everywhere = []source{one(60, anything), one(20, between(-100, 100)), one(20, size(-1074, -1022))}
	aboveOne   = []source{one(30, off(1, -52, 0)), one(20, magnitude(0, 1024)), one(30, between(1, 10)), one(20, between(1, 1000))}
	positive   = []source{one(30, magnitude(-1074, 1024)), one(20, off(1, -53, -1)), one(20, between(0.5, 2)), one(20, between(0, 1000)),
		one(5, magnitude(-1074, -1022)), one(5, func(r *rand.Rand) float64 { return step(math.Ldexp(1, r.IntN(2000)-1000), r.IntN(9)-4) })}
	aboveMinusOne = []source{one(25, between(-1, 1)), one(25, size(-60, -1)), one(10, off(-1, -53, -1)), one(20, magnitude(-1, 1024)),
		one(10, between(0, 100)), one(10, size(-1074, -1))}
	tens       = []source{one(1, integers(-340, 320))}
	erfRange   = []source{one(40, between(-6.1, 6.1)), one(30, size(-60, 3)), one(20, between(-1.5, 1.5)), one(10, size(-1074, 3))}
	erfcRange  = []source{one(30, between(-6.1, 28)), one(10, between(26, 27.3)), one(25, between(-1.5, 3)), one(20, size(-60, 5)), one(15, between(0, 10))}
	gammaRange = []source{one(25, between(0, 172)), one(15, between(-185, 0)), one(30, between(-5, 10)), one(15, size(-60, 8)),
		one(10, nearWhole(-184, 172)), one(3, size(-1074, 8)), one(2, size(8, 1024))}
	lgammaRange = []source{one(25, between(-10, 10)), one(15, between(0, 4)), one(20, between(-200, 1000)), one(20, magnitude(-1074, 1024)),
		one(10, nearWhole(-50, 50)), one(5, size(-60, 60)), one(5, off(1.5, -50, 0))}
	erfcinvRange   = []source{one(40, between(0, 2)), one(20, magnitude(-1074, 0)), one(20, off(1, -53, 0)), one(10, off(2, -52, 0)), one(10, magnitude(-60, 0))}
	besselRange    = []source{one(50, between(-60, 60)), one(20, between(-1000, 1000)), one(15, size(-60, 10)), one(10, size(10, 1024)), one(5, size(-1074, 0))}
	besselPositive = []source{one(50, between(0, 60)), one(20, between(0, 1000)), one(15, magnitude(-60, 10)), one(10, magnitude(10, 1024)), one(5, magnitude(-1074, 0))}
	orders         = []source{two(40, integers(-10, 20), between(0, 60)), two(20, integers(-5, 100), between(0, 200)), two(20, integers(0, 10), magnitude(-20, 10)),
		two(10, integers(0, 20), magnitude(10, 1024)), two(10, integers(0, 50), magnitude(-60, 10))}
	pairs = []source{two(30, size(-30, 30), size(-30, 30)), two(30, between(-10, 10), between(-10, 10)), two(20, anything, anything), {20, ratio}}
	// Lengths whose squares overflow or underflow too.
	lengths  = []source{two(30, between(-10, 10), between(-10, 10)), {40, ratio}, two(15, size(-1074, -1000), size(-1074, -1000)), two(10, size(1000, 1024), size(1000, 1024)), two(5, anything, anything)}
	scalings = []source{two(40, anything, integers(-2200, 2200)), two(40, anything, integers(-60, 60)), two(20, size(-1074, -1000), integers(-100, 2200))}
	powers   = []source{
		{25, power(magnitude(-1074, 1024), 1.02)}, {20, power(off(1, -40, -1), 1.02)}, {10, power(magnitude(-3, 10), 1.02)},
		two(15, between(0, 10), between(-10, 10)), two(10, between(-20, 20), integers(-60, 60)), two(5, magnitude(-10, 10), integers(-3, 3)),
		{10, brink}, two(5, anything, anything),
	}
)

// ratio is two numbers of any but about the same size.
func ratio(r *rand.Rand) (x, y float64) {
	x = anything(r)
	return x, x * size(-30, 30)(r)
}

// power is a base and an exponent such that the result is in range, mostly.
func power(base func(r *rand.Rand) float64, beyond float64) func(r *rand.Rand) (x, y float64) {
	return func(r *rand.Rand) (x, y float64) {
		x = math.Abs(base(r))
		return x, between(-1075, 1024)(r) * beyond / math.Log2(x)
	}
}

// brink is a power that is next to overflow, underflow, the subnormals or 1.
func brink(r *rand.Rand) (x, y float64) {
	x = magnitude(-20, 20)(r)
	target := []float64{1024, -1022, -1074, -1075, 0}[r.IntN(5)] + size(-50, 0)(r)
	return x, target / math.Log2(x)
}

// nearWhole is next to an integer.
func nearWhole(lo, hi int) func(r *rand.Rand) float64 {
	n, d := integers(lo, hi), size(-50, -1)
	return func(r *rand.Rand) float64 { return n(r) + d(r) }
}

// exponents are arguments of an exponential function, unit to a doubling.
func exponents(unit float64) []source {
	times := func(n float64) float64 { return float64(n * unit) }
	return []source{one(30, between(times(-1076), times(1025))), one(20, between(-1, 1)), one(20, size(-60, 10)), one(10, between(times(-1076), times(-1020))),
		one(10, between(-50, 5)), one(5, func(r *rand.Rand) float64 {
			return times(float64(r.IntN(4200)-2152)/2) * (1 + size(-53, -40)(r))
		}),
		one(5, anything)}
}
