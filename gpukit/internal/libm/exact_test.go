package libm

import (
	"math"
	"math/rand/v2"
	"testing"
)

// edges are the values where functions of floats change their ways.
var edges = func() (v []float64) {
	for _, x := range []float64{0, 0x1p-1074, 0x1p-1073, 0x1.8p-1073, 0x1p-1022, math.Nextafter(0x1p-1022, 0), 0x1p-1021,
		0x1.8p-1021, 1e-300, 0x1p-54, 0x1p-53, 0.1, 0.25, 0.5, math.Nextafter(0.5, 0), math.Nextafter(1, 0), 1,
		math.Nextafter(1, 2), 1.5, 2, 2.5, 3, math.E, math.Pi, 10, 100.5, 0x1p31, 0x1p52, 0x1p53 - 1, 0x1p53, 1e22, 1e300,
		0x1p1022, 0x1p1023, math.MaxFloat64 / 2, math.MaxFloat64, math.Inf(1)} {
		v = append(v, x, -x)
	}
	return append(v, math.Copysign(0, -1), math.NaN())
}()

// same says whether two results are the same value: bit for bit, but all NaNs
// are one.
func same(x, y float64) bool {
	return math.Float64bits(x) == math.Float64bits(y) || x != x && y != y
}

// anyFloat is a float of random bits, or, every other time, of few bits and an
// exponent near another's, where quotients and ties are interesting.
func anyFloat(r *rand.Rand) float64 {
	switch r.IntN(4) {
	case 0:
		return math.Ldexp(float64(r.IntN(64)-32), r.IntN(40)-20)
	case 1:
		return math.Ldexp(r.Float64()-0.5, r.IntN(120)-60)
	}
	return math.Float64frombits(r.Uint64())
}

// near says whether two results differ by at most ulps last places; infinities,
// NaNs and zeros with their signs must be the same.
func near(x, y, ulps float64) bool {
	if same(x, y) {
		return true
	}
	m := math.Abs(y)
	return math.Signbit(x) == math.Signbit(y) && math.Abs(x-y) <= ulps*(math.Nextafter(m, math.Inf(1))-m)
}

func TestExact2(t *testing.T) {
	for _, c := range []struct {
		name     string
		own, ref func(x, y float64) float64
	}{
		{"Mod", Mod, math.Mod},
		{"Remainder", Remainder, math.Remainder},
		{"Nextafter", Nextafter, math.Nextafter},
		{"Nextafter32", func(x, y float64) float64 { return float64(Nextafter32(float32(x), float32(y))) },
			func(x, y float64) float64 { return float64(math.Nextafter32(float32(x), float32(y))) }},
	} {
		check := func(x, y float64) {
			if got, want := c.own(x, y), c.ref(x, y); !same(got, want) {
				t.Fatalf("%s(%x, %x) = %x, want %x", c.name, x, y, got, want)
			}
		}
		for _, x := range edges {
			for _, y := range edges {
				check(x, y)
			}
		}
		r := rand.New(rand.NewPCG(1, 2))
		for range exactPoints {
			check(anyFloat(r), anyFloat(r))
		}
	}
}

const exactPoints = 100000

func TestExact1(t *testing.T) {
	check := func(x float64) {
		f, e := Frexp(x)
		if wf, we := math.Frexp(x); !same(f, wf) || e != we {
			t.Fatalf("Frexp(%x) = %x, %d, want %x, %d", x, f, e, wf, we)
		}
		if got, want := Logb(x), math.Logb(x); !same(got, want) {
			t.Fatalf("Logb(%x) = %v, want %v", x, got, want)
		}
		if got, want := Ilogb(x), math.Ilogb(x); got != want {
			t.Fatalf("Ilogb(%x) = %v, want %v", x, got, want)
		}
	}
	r := rand.New(rand.NewPCG(3, 4))
	for _, x := range edges {
		check(x)
		check(x / 0x1.23p40)
	}
	for range exactPoints {
		check(math.Float64frombits(r.Uint64()))
		check(math.Float64frombits(r.Uint64() >> (12 + r.IntN(52)))) // subnormal
	}
}

func TestLdexp(t *testing.T) {
	check := func(x float64, e int) {
		if got, want := Ldexp(x, e), math.Ldexp(x, e); !same(got, want) {
			t.Fatalf("Ldexp(%x, %d) = %x, want %x", x, e, got, want)
		}
	}
	for _, x := range edges {
		for e := -2300; e <= 2300; e++ {
			check(x, e)
		}
		// math.Ldexp itself wraps around at the two ends of int.
		for _, e := range []int{math.MinInt, math.MinInt + 1, math.MinInt + 1000, math.MinInt32} {
			if got, want := Ldexp(x, e), math.Ldexp(x, -3000); !same(got, want) {
				t.Fatalf("Ldexp(%x, %d) = %x, want %x", x, e, got, want)
			}
			if got, want := Ldexp(x, -(e+1)), math.Ldexp(x, 3000); !same(got, want) {
				t.Fatalf("Ldexp(%x, %d) = %x, want %x", x, -(e + 1), got, want)
			}
		}
	}
	r := rand.New(rand.NewPCG(5, 6))
	for range exactPoints {
		x := math.Float64frombits(r.Uint64())
		check(x, r.IntN(4400)-2200)
		_, e := math.Frexp(x)
		check(x, -1073-e+r.IntN(60)-30) // ties of subnormal results
		check(math.Float64frombits(r.Uint64()>>(12+r.IntN(52))), r.IntN(2200)-60)
	}
}

func benchmark2(b *testing.B, own, ref func(x, y float64) float64, lo, hi float64) {
	r := rand.New(rand.NewPCG(7, 8))
	var x, y [1024]float64
	for i := range x {
		x[i], y[i] = lo+float64((hi-lo)*r.Float64()), lo+float64((hi-lo)*r.Float64())
	}
	for _, c := range []struct {
		name string
		f    func(x, y float64) float64
	}{{"libm", own}, {"go", ref}} {
		b.Run(c.name, func(b *testing.B) {
			s := 0.0
			for i := 0; b.Loop(); i++ {
				s += c.f(x[i&1023], y[i&1023])
			}
			sink = s
		})
	}
}

var sink float64

func benchmark1(b *testing.B, own, ref func(x float64) float64, lo, hi float64) {
	benchmark2(b, func(x, _ float64) float64 { return own(x) }, func(x, _ float64) float64 { return ref(x) }, lo, hi)
}

func BenchmarkMod(b *testing.B)       { benchmark2(b, Mod, math.Mod, -100, 100) }
func BenchmarkRemainder(b *testing.B) { benchmark2(b, Remainder, math.Remainder, -100, 100) }
func BenchmarkFrexp(b *testing.B) {
	benchmark1(b, func(x float64) float64 { f, _ := Frexp(x); return f }, func(x float64) float64 { f, _ := math.Frexp(x); return f }, -100, 100)
}
func BenchmarkLdexp(b *testing.B) {
	benchmark1(b, func(x float64) float64 { return Ldexp(x, int(x)) }, func(x float64) float64 { return math.Ldexp(x, int(x)) }, -100, 100)
}
