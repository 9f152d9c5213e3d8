package libm

import (
	"math"
	"math/rand/v2"
	"testing"
)

func TestErf(t *testing.T) {
	special1(t, "Erf", Erf, math.Erf, 2)
	special1(t, "Erfc", Erfc, math.Erfc, 3, 0.5625, -0.5625, 6, -6, 26.5, 26.6, 27.2, 27.3, 27.5, 28)
	r := rand.New(rand.NewPCG(1, 3))
	for range 20000 {
		x := float64(12*r.Float64()) - 6
		if got, want := Erf(x), math.Erf(x); !near(got, want, 2) || Erf(-x) != -got {
			t.Fatalf("Erf(%v) = %v, Erf(%v) = %v, want %v", x, got, -x, Erf(-x), want)
		}
		// Their sum is 1, which a wrong branch would miss by more than a rounding.
		if got := Erf(x) + Erfc(x); math.Abs(got-1) > 0x1p-52 {
			t.Fatalf("Erf(%v) + Erfc(%v) = 1%+v", x, x, got-1)
		}
		x = float64(27.5 * r.Float64())
		if got, want := Erfc(x), math.Erfc(x); !near(got, want, 4) {
			t.Fatalf("Erfc(%v) = %v, want %v", x, got, want)
		}
	}
}

// TestErfMonotone goes over the seams between the pieces in steps of one last place.
func TestErfMonotone(t *testing.T) {
	for _, seam := range []float64{0.5625, 6, 26.5} {
		x := seam
		for range 200 {
			x = math.Nextafter(x, 0)
		}
		for range 400 {
			y := math.Nextafter(x, 100)
			if Erf(y) < Erf(x)-0x1p-53 || Erfc(y) > float64(Erfc(x)*(1+0x1p-52))+0x1p-1074 {
				t.Fatalf("around %v: Erf %v, %v, Erfc %v, %v", x, Erf(x), Erf(y), Erfc(x), Erfc(y))
			}
			x = y
		}
	}
}

func TestErfinv(t *testing.T) {
	special1(t, "Erfinv", Erfinv, math.Erfinv, 4, 0.75, -0.75)
	// Go's Erfcinv takes 1-x: it is no reference for small x.
	for _, c := range [][2]float64{{0, math.Inf(1)}, {2, math.Inf(-1)}, {1, 0}, {-1, math.NaN()}, {3, math.NaN()},
		{math.Inf(1), math.NaN()}, {math.Inf(-1), math.NaN()}, {math.NaN(), math.NaN()}, {math.Copysign(0, -1), math.Inf(1)}} {
		if got := Erfcinv(c[0]); !same(got, c[1]) {
			t.Errorf("Erfcinv(%v) = %v, want %v", c[0], got, c[1])
		}
	}
	r := rand.New(rand.NewPCG(2, 3))
	for range 20000 {
		x := float64(2*r.Float64()) - 1
		if got, want := Erfinv(x), math.Erfinv(x); !near(got, want, 5) || Erfinv(-x) != -got {
			t.Fatalf("Erfinv(%v) = %v, Erfinv(%v) = %v, want %v", x, got, -x, Erfinv(-x), want)
		}
		// Back and forth: erfc turns a relative error e of y into about 2*y*y*e.
		x = math.Ldexp(r.Float64(), -r.IntN(1070))
		y := Erfcinv(x)
		if got := Erfc(y); math.Abs(got-x) > float64((float64(4*y*y)+4)*0x1p-52*x)+0x1p-1074 {
			t.Fatalf("Erfc(Erfcinv(%v)) = %v", x, got)
		}
	}
}

func BenchmarkErf(b *testing.B)     { benchmark1(b, Erf, math.Erf, -3, 3) }
func BenchmarkErfc(b *testing.B)    { benchmark1(b, Erfc, math.Erfc, -3, 6) }
func BenchmarkErfinv(b *testing.B)  { benchmark1(b, Erfinv, math.Erfinv, -1, 1) }
func BenchmarkErfcinv(b *testing.B) { benchmark1(b, Erfcinv, math.Erfcinv, 0, 2) }
