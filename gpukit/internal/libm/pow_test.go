package libm

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
)

func TestPow(t *testing.T) {
	check := func(x, y float64) {
		got := Pow(x, y)
		integer := y == math.Trunc(y)
		if finite := x*0 == 0 && y*0 == 0; !finite || x == 0 || y == 0 || x < 0 && !integer {
			if want := math.Pow(x, y); !same(got, want) {
				t.Errorf("Pow(%v, %v) = %v, want %v", x, y, got, want)
			}
			return
		}
		h := bigLog(exact(x).Abs(exact(x)))
		h.Mul(h, exact(y))
		// What is far too large or small is as good as what is a bit.
		if e := h.MantExp(nil); e > 11 {
			h.SetMantExp(h, 11-e)
		}
		want := bigExp(h)
		if x < 0 && math.Mod(y, 2) != 0 {
			want.Neg(want)
		}
		w, _ := want.Float64()
		if d := ulps(got, want); !(d <= maxULP) || math.Signbit(got) != math.Signbit(w) {
			t.Errorf("Pow(%x, %x) = %x, want %x: %v ulp", x, y, got, w, d)
		}
	}
	for i, x := range edges {
		for j, y := range edges {
			check(x, y)
			if (i+j)%8 == 0 {
				check(math.Nextafter(x, 1), y)
				check(x, math.Nextafter(y, 1))
			}
		}
	}
	r := rand.New(rand.NewPCG(4, 5))
	for range 500 {
		// Results between 2^-1080 and 2^1025.
		h := float64(2105*r.Float64()) - 1080
		x := math.Ldexp(1+r.Float64(), r.IntN(2096)-1074)
		check(x, h/math.Log2(x))
		x = 1 + math.Ldexp(r.Float64()-0.5, -r.IntN(53))
		if x != 1 {
			check(x, h*math.Ln2/math.Log1p(x-1))
		}
		n := float64(r.IntN(2000) + 1)
		check(math.Exp2(h/n), n)
		check(-math.Exp2(-h/n), -n)
		check(-math.Trunc(100*r.Float64()), math.Trunc(float64(300*r.Float64())-150))
	}
	for n := -1074; n <= 1023; n++ {
		if got, want := Pow(2, float64(n)), math.Ldexp(1, n); got != want {
			t.Errorf("Pow(2, %d) = %x, want %x", n, got, want)
		}
		if got, want := Pow(-0.5, float64(n)), math.Ldexp(1-float64(2*float64(n&1)), -n); got != want {
			t.Errorf("Pow(-0.5, %d) = %x, want %x", n, got, want)
		}
	}
	for range 5000 {
		x := math.Float64frombits(r.Uint64())
		if got := Pow(x, 1); !same(got, x) {
			t.Errorf("Pow(%x, 1) = %x", x, got)
		}
		// Squares and cubes without rounding.
		x = math.Trunc(math.Ldexp(r.Float64()-0.5, r.IntN(18)))
		if Pow(x, 2) != x*x || Pow(x, 3) != x*x*x {
			t.Errorf("Pow(%v, 2 and 3) = %v, %v", x, Pow(x, 2), Pow(x, 3))
		}
	}
}

func TestPow10(t *testing.T) {
	ten := big.NewInt(10)
	for n := -400; n <= 400; n++ {
		p := new(big.Rat).SetInt(new(big.Int).Exp(ten, big.NewInt(int64(max(n, -n))), nil))
		if n < 0 {
			p.Inv(p)
		}
		want, _ := p.Float64()
		if got := Pow10(n); got != want {
			t.Errorf("Pow10(%d) = %x, want %x", n, got, want)
		}
	}
	for _, n := range []int{math.MinInt, math.MaxInt, math.MinInt32, math.MaxInt32} {
		if got, want := Pow10(n), math.Pow10(n); got != want {
			t.Errorf("Pow10(%d) = %x, want %x", n, got, want)
		}
	}
}

func BenchmarkPow(b *testing.B) {
	benchmark2(b, func(x, y float64) float64 { return Pow(math.Abs(x), y) }, func(x, y float64) float64 { return math.Pow(math.Abs(x), y) }, -20, 20)
}
func BenchmarkPow10(b *testing.B) {
	benchmark1(b, func(x float64) float64 { return Pow10(int(x)) }, func(x float64) float64 { return math.Pow10(int(x)) }, -300, 300)
}
