package libm

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
)

// bigPi has the bits that reducing the greatest float64 takes (Machin's formula).
var bigPi = func() *big.Float {
	const bits = 2600
	inverse := func(n int64) *big.Int { // atan(1/n) * 2^bits
		power := new(big.Int).Lsh(big.NewInt(1), bits)
		power.Quo(power, big.NewInt(n))
		sum := new(big.Int)
		for k := int64(1); power.Sign() != 0; k += 2 {
			term := new(big.Int).Quo(power, big.NewInt(k))
			if k&2 != 0 {
				term.Neg(term)
			}
			sum.Add(sum, term)
			power.Quo(power, big.NewInt(n*n))
		}
		return sum
	}
	pi := new(big.Int).Mul(inverse(5), big.NewInt(16))
	pi.Sub(pi, new(big.Int).Mul(inverse(239), big.NewInt(4)))
	f := new(big.Float).SetPrec(bits - 20).SetInt(pi)
	return f.SetMantExp(f, -bits)
}()

// bigTurns is x = q*pi/2 + r with |r| <= pi/4.
func bigTurns(x *big.Float) (q int, r *big.Float) {
	x = new(big.Float).SetPrec(uint(400 + max(0, x.MantExp(nil)))).Set(x)
	quarter := half(newBig(x).Set(bigPi))
	n := over(x, quarter)
	n.Add(n, newBig(n).SetFloat64(math.Copysign(0.5, float64(x.Sign()))))
	whole, _ := n.Int(nil)
	r = newBig(x).SetInt(whole)
	r.Mul(r, quarter)
	r.Sub(x, r)
	return int(new(big.Int).And(whole, big.NewInt(3)).Int64()), r.SetPrec(300)
}

// bigSincos sums the series of both for |x| < 1.
func bigSincos(x *big.Float) (sin, cos *big.Float) {
	sin, cos = newBig(x), newBig(x).SetInt64(1)
	term := newBig(x).Set(x)
	for n := int64(1); term.Sign() != 0 && term.MantExp(nil) > x.MantExp(nil)-300; n++ {
		sum := sin
		if n&1 == 0 {
			sum = cos
		}
		if n&2 == 0 {
			sum.Add(sum, term)
		} else {
			sum.Sub(sum, term)
		}
		term.Mul(term, x)
		term.Quo(term, newBig(x).SetInt64(n+1))
	}
	return sin, cos
}

// bigSin is the sine of x + turns*pi/2.
func bigSin(x *big.Float, turns int) *big.Float {
	q, r := bigTurns(x)
	y, cos := bigSincos(r)
	if (q+turns)&1 != 0 {
		y = cos
	}
	if (q+turns)&2 != 0 {
		y.Neg(y)
	}
	return y
}

// bigAtan is atan(x) = y + atan(d) where y is package math's arctangent, and
// d = tan(atan(x) - y) is tiny.
func bigAtan(x *big.Float) *big.Float {
	f, _ := x.Float64()
	y := newBig(x).SetFloat64(math.Atan(f))
	sin, cos := bigSin(y, 0).SetPrec(x.Prec()), bigSin(y, 1).SetPrec(x.Prec())
	d := newBig(x).Mul(x, cos)
	d.Sub(d, sin)
	d.Quo(d, cos.Add(cos, sin.Mul(sin, x)))
	square := newBig(x).Mul(d, d)
	for n := int64(1); n < 16; n += 4 {
		y.Add(y, newBig(x).Quo(d, newBig(x).SetInt64(n)))
		d.Mul(d, square)
		y.Sub(y, newBig(x).Quo(d, newBig(x).SetInt64(n+2)))
		d.Mul(d, square)
	}
	return y
}

// bigAtan2 is the angle of (x, y) for x >= 0, y > 0.
func bigAtan2(y, x *big.Float) *big.Float {
	if x.Sign() == 0 {
		return half(bigPi)
	}
	if f, _ := over(y, x).Float64(); f > 1 {
		return newBig(bigPi).Sub(half(bigPi), bigAtan(over(x, y)))
	}
	return bigAtan(over(y, x))
}

// nearTurns are numbers next to multiples of pi/2, and the one among all float64 that is next
// (Muller, Elementary Functions, ch. 11).
func nearTurns() (v []float64) {
	v = append(v, math.Ldexp(6381956970095103, 797))
	r := rand.New(rand.NewPCG(3, 14))
	for range 100 {
		n := math.Floor(math.Ldexp(1+r.Float64(), r.IntN(1020)))
		x, _ := newBig(bigPi).Mul(half(bigPi), newBig(bigPi).SetFloat64(n)).Float64()
		v = append(v, x)
	}
	for n := range 50 {
		v = append(v, float64(n+1)*math.Pi/4)
	}
	return append(v, 0x1p-28, trigHuge, math.Nextafter(trigHuge, 0), math.Nextafter(trigHuge, math.Inf(1)))
}

func TestTrig(t *testing.T) {
	big1 := func(f func(sin, cos *big.Float) *big.Float) func(x *big.Float) *big.Float {
		return func(x *big.Float) *big.Float { return f(bigSin(x, 0), bigSin(x, 1)) }
	}
	at := nearTurns()
	function{"Sin", Sin, math.Sin, big1(func(sin, _ *big.Float) *big.Float { return sin }), -math.MaxFloat64, math.MaxFloat64, at}.test(t)
	function{"Cos", Cos, math.Cos, big1(func(_, cos *big.Float) *big.Float { return cos }), -math.MaxFloat64, math.MaxFloat64, at}.test(t)
	function{"Tan", Tan, math.Tan, big1(over), -math.MaxFloat64, math.MaxFloat64, at}.test(t)
}

func TestSincos(t *testing.T) {
	check := func(x float64) {
		sin, cos := Sincos(x)
		if !same(sin, Sin(x)) || !same(cos, Cos(x)) {
			t.Errorf("Sincos(%x) = %x, %x, want %x, %x", x, sin, cos, Sin(x), Cos(x))
		}
	}
	for _, x := range append(nearTurns(), edges...) {
		check(x)
		check(-x)
	}
	r := rand.New(rand.NewPCG(5, 6))
	for range 20000 {
		check(math.Float64frombits(r.Uint64()))
		check(r.NormFloat64() * 100)
	}
}

// TestQuarterTurns: both reductions give r+e to 60 bits and more, and the table holds the bits of 2/pi.
func TestQuarterTurns(t *testing.T) {
	words := new(big.Float).SetMantExp(over(newBig(bigPi).SetInt64(2), bigPi), 64*(len(twoOverPiBits)-1))
	n, _ := words.Int(nil)
	for i := len(twoOverPiBits) - 1; i >= 0; i-- {
		if low := new(big.Int).And(n, new(big.Int).SetUint64(math.MaxUint64)).Uint64(); low != twoOverPiBits[i] {
			t.Errorf("twoOverPiBits[%d] = %#x, want %#x", i, twoOverPiBits[i], low)
		}
		n.Rsh(n, 64)
	}
	check := func(name string, reduce func(float64) (uint64, float64, float64), x, rel float64) {
		q, r, e := reduce(x)
		wq, wr := bigTurns(exact(x))
		got := newBig(wr).Add(newBig(wr).SetFloat64(r), newBig(wr).SetFloat64(e))
		if int(q&3) != wq {
			// Rounded the other way near an odd multiple of pi/4.
			if math.Abs(r) < 0.785398 {
				t.Errorf("%s(%x): quarter %d, want %d", name, x, q&3, wq)
			}
			return
		}
		d, _ := over(newBig(wr).Sub(got, wr), wr).Float64()
		if !(math.Abs(d) <= rel) || math.Abs(r) > 0.7855 || math.Abs(e) > 0x1p-50 {
			t.Errorf("%s(%x) = %x + %x, relative error %v", name, x, r, e, d)
		}
	}
	rnd := rand.New(rand.NewPCG(7, 7))
	for range 1000 {
		check("quarterTurns", quarterTurns, math.Ldexp(rnd.Float64()-0.5, 1+rnd.IntN(40)), 0x1p-60)
		check("hugeQuarterTurns", hugeQuarterTurns, math.Ldexp(rnd.Float64()-1, 41+rnd.IntN(983)), 0x1p-60)
	}
	for _, x := range nearTurns() {
		if x < trigHuge {
			check("quarterTurns", quarterTurns, x, 0x1p-60)
		} else {
			check("hugeQuarterTurns", hugeQuarterTurns, -x, 0x1p-60)
		}
	}
}

func TestInverseTrig(t *testing.T) {
	one := func(x *big.Float, sign int64) *big.Float { // 1 ± x
		x = newBig(x).Mul(x, newBig(x).SetInt64(sign))
		return x.Add(x, newBig(x).SetInt64(1))
	}
	sign := func(x *big.Float, f func(*big.Float) *big.Float) *big.Float {
		y := f(newBig(x).Abs(x))
		if x.Sign() < 0 {
			y.Neg(y)
		}
		return y
	}
	function{"Atan", Atan, math.Atan, func(x *big.Float) *big.Float {
		return sign(x, func(x *big.Float) *big.Float { return bigAtan2(x, newBig(x).SetInt64(1)) })
	}, -math.MaxFloat64, math.MaxFloat64, []float64{tanPi8, 0.5, 1, 2, 1 / tanPi8, 0x1p70}}.test(t)
	root := func(x *big.Float) *big.Float { return newBig(x).Sqrt(newBig(x).Mul(one(x, 1), one(x, -1))) }
	function{"Asin", Asin, math.Asin, func(x *big.Float) *big.Float {
		return sign(x, func(x *big.Float) *big.Float { return bigAtan2(x, root(x)) })
	}, -1, 1, []float64{0.5, 1, math.Sqrt2 / 2}}.test(t)
	function{"Acos", Acos, math.Acos, func(x *big.Float) *big.Float {
		if x.Sign() < 0 {
			return newBig(bigPi).Sub(bigPi, bigAtan2(root(x), newBig(x).Neg(x)))
		}
		if one(x, -1).Sign() == 0 {
			return newBig(x)
		}
		return bigAtan2(root(x), x)
	}, -1, 1, []float64{0.5, 1, math.Sqrt2 / 2}}.test(t)
}

func TestAtan2(t *testing.T) {
	check := func(y, x float64) {
		got := Atan2(y, x)
		if y == 0 || math.IsInf(y, 0) || math.IsInf(x, 0) || x != x || y != y {
			if want := math.Atan2(y, x); !same(got, want) {
				t.Errorf("Atan2(%v, %v) = %v, want %v", y, x, got, want)
			}
			return
		}
		const prec = 400
		want := bigAtan2(new(big.Float).SetPrec(prec).SetFloat64(math.Abs(y)), new(big.Float).SetPrec(prec).SetFloat64(math.Abs(x)))
		if x < 0 {
			want = newBig(bigPi).Sub(bigPi, want)
		}
		if y < 0 {
			want.Neg(want)
		}
		if d := ulps(got, want); !(d <= maxULP) {
			t.Errorf("Atan2(%x, %x) = %x, want %v: %v ulp", y, x, got, want, d)
		}
	}
	for i, y := range edges {
		for k, x := range edges {
			if p := x * y; (i+k)%4 == 0 || p == 0 || math.IsInf(p, 0) || p != p {
				check(y, x)
			}
		}
	}
	r := rand.New(rand.NewPCG(15, 16))
	for range 400 {
		x, y := r.Float64()-0.5, r.Float64()-0.5
		check(y, x)
		check(math.Ldexp(y, -r.IntN(60)), x)
		check(y, math.Ldexp(x, -r.IntN(80)))
		shift := r.IntN(2000) - 1000
		check(math.Ldexp(y, shift), math.Ldexp(x, shift+r.IntN(20)))
		check(anyFloat(r), anyFloat(r))
	}
}

func BenchmarkSin(b *testing.B)   { benchmark1(b, Sin, math.Sin, -4, 4) }
func BenchmarkCos(b *testing.B)   { benchmark1(b, Cos, math.Cos, -4, 4) }
func BenchmarkTan(b *testing.B)   { benchmark1(b, Tan, math.Tan, -4, 4) }
func BenchmarkAsin(b *testing.B)  { benchmark1(b, Asin, math.Asin, -1, 1) }
func BenchmarkAcos(b *testing.B)  { benchmark1(b, Acos, math.Acos, -1, 1) }
func BenchmarkAtan(b *testing.B)  { benchmark1(b, Atan, math.Atan, -4, 4) }
func BenchmarkAtan2(b *testing.B) { benchmark2(b, Atan2, math.Atan2, -4, 4) }
func BenchmarkSincos(b *testing.B) {
	sum := func(f func(float64) (sin, cos float64)) func(float64) float64 {
		return func(x float64) float64 { sin, cos := f(x); return sin + cos }
	}
	benchmark1(b, sum(Sincos), sum(math.Sincos), -4, 4)
}
