package libm

import (
	"math"
	"math/rand/v2"
	"testing"
)

// envelope is what the errors of Bessel functions are measured by.
func envelope(x, y float64) float64 {
	return max(math.Abs(y), math.Sqrt(2/(math.Pi*math.Abs(x))))
}

func TestBessel(t *testing.T) {
	for _, c := range []struct {
		name     string
		own, ref func(float64) float64
		negative bool
	}{{"J0", J0, math.J0, true}, {"J1", J1, math.J1, true}, {"Y0", Y0, math.Y0, false}, {"Y1", Y1, math.Y1, false}} {
		check := func(x float64) {
			t.Helper()
			got, want := c.own(x), c.ref(x)
			if same(got, want) || math.Abs(got-want) <= 12*0x1p-53*envelope(x, want) {
				return
			}
			t.Errorf("%s(%v) = %v, want %v", c.name, x, got, want)
		}
		for _, x := range edges {
			if math.Abs(x) < 1e15 || x != x || math.IsInf(x, 0) {
				check(x)
			}
		}
		for _, x := range []float64{2, 3.5, 5, 6.5, 8, 3e-309, 4e-309} {
			check(math.Nextafter(x, 0))
			check(x)
		}
		r := rand.New(rand.NewPCG(1, 5))
		for range 5000 {
			x := 20 * r.Float64()
			if r.IntN(2) == 0 {
				x = math.Ldexp(x, r.IntN(40)-20)
			}
			if c.negative && r.IntN(2) == 0 {
				x = -x
			}
			check(x)
		}
	}
}

// TestBesselWronskian is J1*Y0 - J0*Y1 = 2/(pi*x), at any x.
func TestBesselWronskian(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 5))
	for range 20000 {
		x := math.Ldexp(1+r.Float64(), r.IntN(1000)-20)
		got := float64(J1(x)*Y0(x)) - float64(J0(x)*Y1(x))
		want := 2 / math.Pi / x
		if math.Abs(got-want) > 8*0x1p-52*want {
			t.Fatalf("at %v: %v, want %v", x, got, want)
		}
	}
}

func TestBesselZeros(t *testing.T) {
	// The value at a rounded zero z is the derivative times what z lacks
	// (zeros: Abramowitz and Stegun, table 9.5, continued with mpmath).
	for _, c := range []struct {
		name string
		f    func(float64) float64
		z    float64
		want float64
	}{
		{"J0", J0, 2.404825557695773, -6.10876525973673e-17},
		{"J0", J0, 5.520078110286311, -2.7522649432621832e-17},
		{"J1", J1, 3.8317059702075125, -6.149807356994906e-17},
		{"J1", J1, 7.015586669815619, 2.825339409478929e-17},
		{"Y0", Y0, 3.957678419314858, -4.3331064642935194e-17},
		{"Y0", Y0, 7.086051060301773, 2.651448172550504e-17},
		{"Y1", Y1, 2.197141326031017, 2.513306678922122e-17},
		{"Y1", Y1, 5.429681040794135, 1.4165786380203692e-16},
	} {
		if got := c.f(c.z); !near(got, c.want, 3) {
			t.Errorf("%s(%v) = %v, want %v", c.name, c.z, got, c.want)
		}
	}
}

func TestBesselOrders(t *testing.T) {
	for _, n := range []int{math.MinInt, math.MinInt + 1, -1000, -101, -7, -3, -2, -1, 0, 1, 2, 3, 8, 50, 171, 2000, math.MaxInt} {
		for _, x := range edges {
			if math.Abs(float64(n)) > 3000 && math.Abs(x) > 1000 || math.Abs(x) > 0x1p53 && !math.IsInf(x, 0) {
				continue
			}
			// Go's J1 of tiny negative numbers is positive, its Y0 of subnormals
			// off on some machines.
			if (n == 1 || n == -1) && math.Abs(x) < 1e-8 && x != 0 || n == 0 && math.Abs(x) < 0x1p-1022 {
				continue
			}
			if math.Abs(float64(n)) < 3000 {
				if got, want := Jn(n, x), math.Jn(n, x); !besselNear(n, x, got, want) && (got != 0 || x == 0 || math.Abs(want) > 1e-300) {
					t.Errorf("Jn(%d, %v) = %v, want %v", n, x, got, want)
				}
			} else if got := Jn(n, x); got != 0 && got == got {
				t.Errorf("Jn(%d, %v) = %v, want 0", n, x, got)
			}
			if math.Abs(float64(n)) > 3000 {
				if got := Yn(n, x); x > 0 && x < 1e3 && !math.IsInf(got, 0) {
					t.Errorf("Yn(%d, %v) = %v, want an infinity", n, x, got)
				}
				continue
			}
			if got, want := Yn(n, x), math.Yn(n, x); !besselNear(n, x, got, want) {
				t.Errorf("Yn(%d, %v) = %v, want %v", n, x, got, want)
			}
		}
	}
	r := rand.New(rand.NewPCG(3, 5))
	for range 3000 {
		n, x := r.IntN(60)-10, float64(100*r.Float64())
		if got, want := Jn(n, x), math.Jn(n, x); !besselNear(n, x, got, want) {
			t.Errorf("Jn(%d, %v) = %v, want %v", n, x, got, want)
		}
		if got, want := Yn(n, x), math.Yn(n, x); !besselNear(n, x, got, want) {
			t.Errorf("Yn(%d, %v) = %v, want %v", n, x, got, want)
		}
		if got, x := Yn(n, x/0x1p200), math.Ldexp(x, -r.IntN(1000)); n > 7 && !math.IsInf(got, -1) || n > 1 && !(Yn(n, x) <= Yn(n-1, x)) && x < 1 {
			t.Errorf("Yn(%d, tiny) = %v; Yn(%d, %v) = %v, Yn(%d, %v) = %v", n, got, n, x, Yn(n, x), n-1, x, Yn(n-1, x))
		}
		// Where recurrence would take too long, the order counts modulo 4.
		x = math.Ldexp(1+r.Float64(), 100+r.IntN(900))
		n = 4 * r.IntN(1000)
		if Jn(n, x) != J0(x) || Jn(n+1, x) != J1(x) || Jn(n+2, x) != -J0(x) || Jn(n+3, -x) != J1(x) || Yn(n+2, x) != -Y0(x) || Yn(n+3, x) != -Y1(x) {
			t.Errorf("orders from %d at %v: %v %v %v %v", n, x, Jn(n, x), Jn(n+1, x), Jn(n+2, x), Jn(n+3, -x))
		}
	}
}

// besselNear is lax: Go's results are some 1e-12 off where J0 is nearly 0.
func besselNear(n int, x, got, want float64) bool {
	return same(got, want) || (got != 0 || want != 0) && math.Abs(got-want) <= 1e-12*max(math.Abs(want), min(1, math.Abs(x/float64(n))))*max(1, math.Abs(float64(n))/50)
}

func BenchmarkJ0(b *testing.B) { benchmark1(b, J0, math.J0, 0, 20) }
func BenchmarkJ1(b *testing.B) { benchmark1(b, J1, math.J1, 0, 20) }
func BenchmarkY0(b *testing.B) { benchmark1(b, Y0, math.Y0, 0, 20) }
func BenchmarkY1(b *testing.B) { benchmark1(b, Y1, math.Y1, 0, 20) }
func BenchmarkJn(b *testing.B) {
	benchmark1(b, func(x float64) float64 { return Jn(7, x) }, func(x float64) float64 { return math.Jn(7, x) }, 0, 20)
}
