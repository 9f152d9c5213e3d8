package libm

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
)

// bigExp is e^x to x's precision: the exponential series below 2^-12, squared.
func bigExp(x *big.Float) *big.Float {
	halvings := max(0, x.MantExp(nil)+12)
	small := new(big.Float).SetMantExp(x, -halvings)
	sum := newBig(x).SetInt64(1)
	term := newBig(x).SetInt64(1)
	for n := int64(1); term.Sign() != 0 && term.MantExp(nil) > -int(x.Prec()); n++ {
		term.Mul(term, small)
		term.Quo(term, newBig(x).SetInt64(n))
		sum.Add(sum, term)
	}
	for range halvings {
		sum.Mul(sum, sum)
	}
	return sum
}

// bigLog is log x: d = x e^-y - 1 is tiny where y is package math's logarithm, and
// log x = y + log(1+d).
func bigLog(x *big.Float) *big.Float {
	m := new(big.Float)
	e := x.MantExp(m)
	f, _ := m.Float64()
	if e == 1 {
		f, e = 2*f, 0
	}
	y := newBig(x).SetFloat64(math.Log(f) + float64(float64(e)*math.Ln2))
	d := bigExp(newBig(x).Neg(y))
	d.Mul(d, x)
	d.Sub(d, newBig(x).SetInt64(1))
	power := newBig(x).Set(d)
	for n := int64(1); n < 8; n++ {
		y.Add(y, newBig(x).Quo(power, newBig(x).SetInt64(n)))
		power.Mul(power, d)
		power.Neg(power)
	}
	return y
}

func newBig(x *big.Float) *big.Float { return new(big.Float).SetPrec(x.Prec()) }

func plus(x *big.Float, b int64) *big.Float { return newBig(x).Add(x, newBig(x).SetInt64(b)) }

func over(x, y *big.Float) *big.Float { return newBig(x).Quo(x, y) }

func half(x *big.Float) *big.Float { return newBig(x).SetMantExp(x, -1) }

// exact turns a float64 into a big float of which even the functions that are
// near x where x is near 0 keep 250 bits.
func exact(x float64) *big.Float {
	_, e := math.Frexp(x)
	return new(big.Float).SetPrec(uint(300 + max(0, -e))).SetFloat64(x)
}

// ulps is how far got is from want in last places of want rounded to float64.
func ulps(got float64, want *big.Float) float64 {
	w, _ := want.Float64()
	if math.IsInf(w, 0) || math.IsInf(got, 0) || got != got {
		if got == w {
			return 0
		}
		return math.Inf(1)
	}
	_, e := math.Frexp(w)
	if w == 0 {
		e = -1073
	}
	d := newBig(want).Sub(want, newBig(want).SetFloat64(got))
	f, _ := d.SetMantExp(d, 53-max(e, -1021)).Float64()
	return math.Abs(f)
}

// function is one to test: own against the exact one for numbers from lo to hi,
// against package math's elsewhere and at 0, where nothing is rounded.
type function struct {
	name     string
	own, ref func(float64) float64
	exact    func(x *big.Float) *big.Float
	lo, hi   float64
	at       []float64 // points to test with their neighbours and their negatives
}

// maxULP is what the functions tested here stay below.
const maxULP = 0.75

func (f function) test(t *testing.T) {
	t.Helper()
	check := func(x float64) {
		got := f.own(x)
		if x == 0 || math.IsInf(x, 0) || !(x >= f.lo && x <= f.hi) {
			if want := f.ref(x); !same(got, want) {
				t.Errorf("%s(%v) = %v, want %v", f.name, x, got, want)
			}
			return
		}
		want := f.exact(exact(x))
		if d := ulps(got, want); !(d <= maxULP) {
			w, _ := want.Float64()
			t.Errorf("%s(%x) = %x, want %x: %v ulp", f.name, x, got, w, d)
		}
	}
	for _, x := range edges {
		check(x)
	}
	for _, x := range f.at {
		for range 3 {
			check(x)
			check(-x)
			x = math.Nextafter(x, 0)
		}
	}
	r := rand.New(rand.NewPCG(9, 10))
	lo, hi := max(f.lo, -750), min(f.hi, 1100)
	for range 300 {
		check(lo + float64((hi-lo)*r.Float64()))
		check(float64(2*r.Float64()) - 1)
		check(1 + float64(0.5*r.Float64()))
		check(math.Ldexp(r.Float64()-0.5, r.IntN(140)-70))
		check(math.Ldexp(r.Float64()-0.5, r.IntN(2098)-1074))
	}
}

var bigLn2 = bigLog(exact(2).SetPrec(400))

func TestExp(t *testing.T) {
	function{"Exp", Exp, math.Exp, bigExp, -800, 800, []float64{708, 709, 709.782712893384, 710, 745.1332191019412, 744.4400719213812,
		746, 0.5 * math.Ln2, math.Ln2, 1.5 * math.Ln2}}.test(t)
}

func TestExp2(t *testing.T) {
	function{"Exp2", Exp2, math.Exp2, func(x *big.Float) *big.Float { return bigExp(newBig(x).Mul(x, bigLn2)) }, -1100, 1100,
		[]float64{1021, 1022, 1023.5, 1024, 1074, 1074.5, 1075, 1076, 0.5, 1.5}}.test(t)
	for n := -1080; n <= 1023; n++ {
		if got, want := Exp2(float64(n)), math.Ldexp(1, n); got != want {
			t.Errorf("Exp2(%d) = %x, want %x", n, got, want)
		}
	}
}

func TestExpm1(t *testing.T) {
	function{"Expm1", Expm1, math.Expm1, func(x *big.Float) *big.Float { return plus(bigExp(x), -1) }, -800, 800,
		[]float64{0x1p-54, 37, 38, 60, 700, 709, 709.782712893384, 710, 0.5 * math.Ln2, math.Ln2, 1.5 * math.Ln2}}.test(t)
}

func BenchmarkExp(b *testing.B)   { benchmark1(b, Exp, math.Exp, -10, 10) }
func BenchmarkExp2(b *testing.B)  { benchmark1(b, Exp2, math.Exp2, -10, 10) }
func BenchmarkExpm1(b *testing.B) { benchmark1(b, Expm1, math.Expm1, -3, 3) }
