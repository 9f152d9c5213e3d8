package libm

import (
	"math"
	"math/rand/v2"
	"testing"
)

// special1 compares a function with package math's on its special values and,
// within ulps, on edges.
func special1(t *testing.T, name string, own, ref func(float64) float64, ulps float64, at ...float64) {
	t.Helper()
	for _, x := range append(at, edges...) {
		if got, want := own(x), ref(x); !near(got, want, ulps) {
			t.Errorf("%s(%v) = %v, want %v", name, x, got, want)
		}
	}
}

func TestCbrt(t *testing.T) {
	special1(t, "Cbrt", Cbrt, math.Cbrt, 1)
	r := rand.New(rand.NewPCG(1, 1))
	for range 20000 {
		x := math.Trunc(math.Ldexp(r.Float64(), r.IntN(18)))
		if got := Cbrt(float64(x * x * x)); got != x {
			t.Fatalf("Cbrt(%v**3) = %v", x, got)
		}
		x = math.Float64frombits(r.Uint64())
		if got, want := Cbrt(x), math.Cbrt(x); !near(got, want, 1) {
			t.Fatalf("Cbrt(%x) = %x, want %x", x, got, want)
		}
		if Cbrt(-x) != -Cbrt(x) && x == x {
			t.Fatalf("Cbrt(%x) is not odd", x)
		}
	}
}

func TestHypot(t *testing.T) {
	for _, x := range edges {
		for _, y := range edges {
			// Go's is up to 2 ulp off.
			if got, want := Hypot(x, y), math.Hypot(x, y); !near(got, want, 2) {
				t.Errorf("Hypot(%v, %v) = %v, want %v", x, y, got, want)
			}
		}
	}
	// Pythagorean triples at all scales that keep them exact.
	r := rand.New(rand.NewPCG(2, 1))
	for range 20000 {
		m, n := float64(r.IntN(1<<20)+2), float64(r.IntN(1<<20)+1)
		x, y, z := math.Abs(float64(m*m)-float64(n*n)), float64(2*m*n), float64(m*m)+float64(n*n)
		s := math.Ldexp(1, r.IntN(2000)-1074)
		if math.IsInf(z*s, 0) {
			continue
		}
		if got := Hypot(x*s, -y*s); got != z*s || Hypot(y*s, x*s) != z*s {
			t.Fatalf("Hypot(%v, %v) = %v, want %v", x*s, y*s, got, z*s)
		}
	}
}

func BenchmarkCbrt(b *testing.B)  { benchmark1(b, Cbrt, math.Cbrt, -1000, 1000) }
func BenchmarkHypot(b *testing.B) { benchmark2(b, Hypot, math.Hypot, -1000, 1000) }
