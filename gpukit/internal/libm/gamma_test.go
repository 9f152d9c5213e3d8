package libm

import (
	"math"
	"math/rand/v2"
	"testing"
)

func TestGamma(t *testing.T) {
	special1(t, "Gamma", Gamma, math.Gamma, 1000, -1.5, -2.5, -0.5, -170.5, -171.5, -180.5, -181.5, -184.5, -185.5, -186.5, -1e10-0.5, 171.5, 171.7, 172.5)
	f := 1.0
	for n := 1.0; n <= 22; n++ {
		if got := Gamma(n); got != f {
			t.Errorf("Gamma(%v) = %v, want %v", n, got, f)
		}
		f *= n
	}
	r := rand.New(rand.NewPCG(1, 4))
	for range 20000 {
		x := float64(170*r.Float64()) + 0.1
		if r.IntN(2) == 0 {
			x = -x
		}
		// Go's is up to some 200 ulp off.
		if got, want := Gamma(x), math.Gamma(x); !near(got, want, 1000) {
			t.Fatalf("Gamma(%v) = %v, want %v", x, got, want)
		}
		// The recurrence, with x+1 exact.
		x = math.Ldexp(math.Round(math.Ldexp(x, 20)), -20)
		if got, want := Gamma(x+1), float64(x*Gamma(x)); x != -1 && !near(got, want, 5) && got == got {
			t.Fatalf("Gamma(%v+1) = %v, want %v", x, got, want)
		}
	}
}

func TestLgamma(t *testing.T) {
	own := func(x float64) float64 { l, s := Lgamma(x); return l + float64(1000*float64(s)) }
	// Go's logarithm of subnormals is off on some machines.
	ref := func(x float64) float64 {
		if a := math.Abs(x); a < 0x1p-1022 && a > 0 {
			return 52*math.Ln2 - math.Log(a*0x1p52) + math.Copysign(1000, x)
		}
		l, s := math.Lgamma(x)
		return l + float64(1000*float64(s))
	}
	special1(t, "Lgamma + 1000*sign", own, ref, 2, -1.5, -2.5, -0.5, -3.5, -99.5, -100.5, -101.5, -1e9-0.5, 1e305, 1.1e305, 2.5e305, 2.56e305)
	for _, x := range []float64{1, 2} {
		if l, s := Lgamma(x); l != 0 || s != 1 {
			t.Errorf("Lgamma(%v) = %v, %d", x, l, s)
		}
	}
	r := rand.New(rand.NewPCG(2, 4))
	for range 2000 {
		// The Taylor series at the zeros (Abramowitz and Stegun, 6.1.33), relative to
		// the result however small it is.
		const euler, zeta2, zeta3 = 0.57721566490153286061, 1.64493406684822643647, 1.20205690315959428540
		u := math.Ldexp(r.Float64()-0.5, -14-r.IntN(30))
		for z, c := range map[float64][3]float64{1: {-euler, zeta2 / 2, -zeta3 / 3}, 2: {1 - euler, (zeta2 - 1) / 2, -(zeta3 - 1) / 3}} {
			v := (z + u) - z
			want := float64(v * (c[0] + float64(v*(c[1]+float64(v*c[2])))))
			if got, _ := Lgamma(z + v); math.Abs(got-want) > 1e-12*math.Abs(want) {
				t.Fatalf("Lgamma(%v + %v) = %v, want %v", z, v, got, want)
			}
		}
	}
	for range 20000 {
		x := math.Ldexp(1+r.Float64(), r.IntN(1000)-60)
		if r.IntN(2) == 0 {
			x = float64(4 * r.Float64())
		}
		got, s := Lgamma(x)
		if want, _ := math.Lgamma(x); math.Abs(got-want) > 1e-14*max(1, math.Abs(want)) || s != 1 {
			t.Fatalf("Lgamma(%v) = %v, %d, want %v, 1", x, got, s, want)
		}
		x = float64(-200 * r.Float64())
		got, s = Lgamma(x)
		want, ws := math.Lgamma(x)
		if math.Abs(got-want) > 1e-14*max(1, math.Abs(want)) || s != ws {
			t.Fatalf("Lgamma(%v) = %v, %d, want %v, %d", x, got, s, want, ws)
		}
	}
}

func BenchmarkGamma(b *testing.B) { benchmark1(b, Gamma, math.Gamma, 0.1, 30) }
func BenchmarkLgamma(b *testing.B) {
	benchmark1(b, func(x float64) float64 { l, _ := Lgamma(x); return l }, func(x float64) float64 { l, _ := math.Lgamma(x); return l }, 0.1, 30)
}
