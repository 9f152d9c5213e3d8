package gpukit

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

func fastSum(x, y, out []float64) {
	s := 0.0
	for i := 0; i < len(x); i++ {
		s += x[i]
	}
	out[0] = s
}

func fastFrom(x, y, out []float64) {
	s := math.Copysign(0, -1)
	for i := len(x) - 1; i >= 0; i-- {
		s -= x[i]
	}
	out[0] = s
}

func fastDot(x, y, out []float64) {
	s := 0.0
	for i := range x {
		s += float64(x[i] * y[i])
	}
	out[0] = s
}

func fastProduct(x, y, out []float64) {
	p := 1.0
	for i := 0; i <= len(y)-1; i++ {
		p *= y[i]
	}
	out[0] = p
}

func fastLeast(x, y, out []float64) {
	m := math.Inf(1)
	for _, v := range x {
		m = min(m, v)
	}
	out[0] = m
}

func fastMost(x, y, out []float64) {
	m := math.Inf(-1)
	for i := 0; i < len(x); i++ {
		if x[i] > m {
			m = x[i]
		}
	}
	out[0] = m
}

func fastMean(x, y, out []float64) {
	s, n := float32(0), 0
	for i := 0; i < len(x); i++ {
		if y[i] > 0 {
			s += float32(x[i])
			n++
		}
	}
	out[0] = float64(s) + float64(n)/1024
}

func fastNorms(x, y, out []float64) {
	a, b, m := 0.0, 0.0, 0.0
	for i := 0; i < len(x); i += 2 {
		a += x[i]
		b += float64(x[i] * x[i])
		m = max(m, x[i])
	}
	out[0] = a + float64(1024*b) + float64(1048576*m)
}

func fastRows(x [][]float64, out []float64) {
	s := 0.0
	for i := 0; i < len(x); i++ {
		for j := 0; j < len(x[i]); j++ {
			s += x[i][j]
		}
	}
	out[0] = s
}

func fastBeyond(x, y, out []float64) {
	s := 0.0
	for i := 0; i < len(x); i++ {
		s += float64(x[i] * y[int(x[i])])
	}
	out[0] = s
}

var fastReductions = []struct {
	name string
	fn   func(x, y, out []float64)
}{
	{"sum", fastSum}, {"minus", fastFrom}, {"dot", fastDot}, {"product", fastProduct}, {"least", fastLeast}, {"most", fastMost}, {"mean", fastMean}, {"norms", fastNorms},
}

// Reductions under FastMath, of values of which every order gives the same bits.
func TestFastMathReductions(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	zero := math.Copysign(0, -1)
	eachEngine(t, func(t *testing.T, d *Device) {
		d = d.With(FastMath())
		for _, n := range []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 31, 100} {
			const rows = 7
			xs, ys, want := make([]float64, rows*n), make([]float64, rows*n), make([]float64, rows)
			for k := range rows {
				for i := range n {
					v := float64(1 + r.IntN(7))
					if r.IntN(2) == 0 {
						v = -v
					}
					switch {
					case k == 1:
						v = zero
					case k == 2 && i == n/2:
						v = math.NaN()
					case k == 3 && i%5 == 2:
						v = math.Inf(1)
					case k == 4 && i%3 == 0:
						v = math.Inf(1 - i%2*2)
					}
					xs[k*n+i] = v
					ys[k*n+i] = []float64{1, -1, 2, 0.5}[r.IntN(4)]
				}
			}
			x, y := FromSlice(xs).Reshape(rows, n), FromSlice(ys).Reshape(rows, n)
			for _, c := range fastReductions {
				for k := range rows {
					c.fn(xs[k*n:k*n+n], ys[k*n:k*n+n], want[k:k+1])
				}
				got, err := d.GUVectorize(c.fn, "(n),(n)->()", x, y)
				if err != nil {
					t.Fatal(err)
				}
				same(t, fmt.Sprintf("%s of %d", c.name, n), fmt.Sprint(got.Float64s()), fmt.Sprint(want))
			}
			all := 0.0
			for _, v := range ys {
				all += v
			}
			same(t, fmt.Sprintf("rows of %d", n), Must(d.GUVectorize(fastRows, "(m,n)->()", y)).Float64s(), []float64{all})
		}
	})
}

// Explain says which loops are in parts, in stages as well, and only under FastMath.
func TestFastMathExplained(t *testing.T) {
	x := Zeros(3, 20)
	eachKind(t, func(t *testing.T, d *Device) {
		said := func(p *Plan, err error) string {
			if err != nil {
				t.Fatal(err)
			}
			return positions.ReplaceAllString(fmt.Sprint(p.Loops), "here")
		}
		for _, c := range fastReductions {
			p, err := d.With(FastMath()).ExplainGU(c.fn, "(n),(n)->()", x, x)
			if s := said(p, err); !strings.Contains(s, ", in four parts (FastMath)") {
				t.Errorf("%s: %s", c.name, s)
			}
			if p, err = d.ExplainGU(c.fn, "(n),(n)->()", x, x); strings.Contains(said(p, err), "parts") {
				t.Errorf("%s: %s without FastMath", c.name, said(p, err))
			}
		}
		want := "[at here: taken: dimension 0 of the index space, 3 iterations at here: taken: dimension 1 of the index space, 5 iterations at here: serial: a sum, in four parts (FastMath)]"
		if s := said(d.With(FastMath()).ExplainGU(matmul, "(m,n),(n,p)->(m,p)", x, Zeros(20, 5))); s != want {
			t.Errorf("matmul: %s", s)
		}
	})
}

// Sums of any values differ by as much as another order makes.
func TestFastMathRounding(t *testing.T) {
	r := rand.New(rand.NewPCG(8, 9))
	const n = 1001
	xs := make([]float64, 20*n)
	for i := range xs {
		xs[i] = r.NormFloat64() * math.Exp(4*r.NormFloat64())
	}
	x := FromSlice(xs).Reshape(20, n)
	eachKind(t, func(t *testing.T, d *Device) {
		ordered := Must(d.GUVectorize(fastSum, "(n),(n)->()", x, x)).Float64s()
		got := Must(d.With(FastMath()).GUVectorize(fastSum, "(n),(n)->()", x, x)).Float64s()
		differ := 0
		for k, v := range got {
			s, all := 0.0, 0.0
			for _, e := range xs[k*n : k*n+n] {
				s += e
				all += math.Abs(e)
			}
			if ordered[k] != s {
				t.Errorf("without FastMath %v, not %v", ordered[k], s)
			}
			if math.Abs(v-s) > n*0x1p-52*all {
				t.Errorf("%v is too far from %v", v, s)
			}
			if v != s {
				differ++
			}
		}
		if differ == 0 {
			t.Error("all sums are as in order: FastMath did nothing")
		}
	})
}

// What fails still does, in the same worker, at the same place, with the same index.
func TestFastMathFaults(t *testing.T) {
	eachKind(t, func(t *testing.T, d *Device) {
		for _, n := range []int{3, 4, 9, 50} {
			for bad := 0; bad < n; bad += 1 + n/9 {
				xs := make([]float64, 5*n)
				for k := range 2 {
					xs[3*n+min(bad+k, n-1)] = float64(n + 10 + k)
				}
				x := FromSlice(xs).Reshape(5, n)
				_, want := d.GUVectorize(fastBeyond, "(n),(n)->()", x, x)
				_, got := d.With(FastMath()).GUVectorize(fastBeyond, "(n),(n)->()", x, x)
				if want == nil || got == nil || got.Error() != want.Error() {
					t.Errorf("%d of %d: %v, not %v", bad, n, got, want)
				}
			}
		}
	})
}

// Four sums at a time keep a thread from waiting for each.
func TestFastMathIsFaster(t *testing.T) {
	d := MustOpen("sim:quadro-k2000")
	defer d.Close()
	x := Must(d.Put(Zeros(64, 4096)))
	took := func(d *Device) (all time.Duration) {
		d.StartTrace()
		Must(d.GUVectorize(fastSum, "(n),(n)->()", x, x))
		for _, r := range d.StopTrace().Records {
			if r.Name == "fastSum" {
				all += r.Duration
			}
		}
		return all
	}
	ordered, fast := took(d), took(d.With(FastMath()))
	if fast == 0 || float64(fast) > 0.6*float64(ordered) {
		t.Errorf("%v with FastMath, %v without", fast, ordered)
	}
	t.Logf("%v with FastMath, %v without", fast, ordered)
	plan, err := d.With(FastMath()).ExplainGU(fastSum, "(n),(n)->()", x, x)
	if err != nil || strings.Count(plan.Code, "0d8000000000000000") < 3 {
		t.Errorf("no four sums (%v):\n%v", err, plan.Code)
	}
}

func BenchmarkFastMathSum(b *testing.B) {
	for _, workers := range []int{1, 16, 1000} {
		x := Zeros(workers, 100000/workers)
		for _, d := range []*Device{MustOpen("cpu"), MustOpen("cpu").With(FastMath())} {
			b.Run(fmt.Sprintf("%d/%v", workers, d.options), func(b *testing.B) {
				for range b.N {
					Must(d.GUVectorize(fastSum, "(n),(n)->()", x, x))
				}
			})
		}
	}
}

func fastOption(s, k, t float64) (call, put float64) {
	const r, v = 0.02, 0.3
	d1 := (math.Log(s/k) + float64((r+0.5*v*v)*t)) / (v * math.Sqrt(t))
	d2 := d1 - float64(v*math.Sqrt(t))
	e := float64(k * math.Exp(-r*t))
	call = float64(s*0.5*math.Erfc(-d1*math.Sqrt2/2)) - float64(e*0.5*math.Erfc(-d2*math.Sqrt2/2))
	return call, call - s + e
}

func fastWave(x, y, z float64) float64 {
	return float64(math.Sin(x)*math.Exp(-0.1*y)) + float64(math.Tanh(z)*math.Cos(y)) + float64(math.Atan(x)*math.Log1p(float64(z*z))) + math.Atan2(y, 1+float64(z*z))
}

func fastPowers(x, y float64) float64 {
	return math.Pow(x, 2) + math.Pow(x, y) + math.Pow(y, 3) - float64(math.Log2(x)*math.Exp2(y)) + math.Tan(y)
}

func fastSearch(x float64, n int) float64 {
	s := 0.0
	for i := range n {
		if s > 20 {
			return s
		}
		s += float64(x*float64(i)) + 1
	}
	return -s
}

// FastMath gives nearly what is given without it, and on every engine that runs what
// it makes of the function the same bits.
func TestFastMathConforms(t *testing.T) {
	r := rand.New(rand.NewPCG(51, 3))
	some := func(lo, hi float64) *Array {
		x := make([]float64, 515)
		for i := range x {
			x[i] = lo + float64((hi-lo)*r.Float64())
		}
		return FromSlice(x)
	}
	rows := []struct {
		name  string
		fn    any
		args  []any
		outs  int
		scale float64 // of the largest term, whose last bits may differ
	}{
		{"dist", dist, []any{some(29, 31), some(99, 101), 30.0, 101.0, 1.0}, 1, 1},
		{"fastOption", fastOption, []any{some(5, 30), some(1, 100), some(0.25, 10)}, 2, 100},
		{"fastWave", fastWave, []any{some(-9, 9), some(-9, 9), some(-3, 3)}, 1, 30},
		{"fastPowers", fastPowers, []any{some(0.1, 9), some(-1.5, 1.5)}, 1, 1000},
		{"fastSearch", fastSearch, []any{some(-2, 2), 30}, 1, 1000},
	}
	first := map[string][][]float64{}
	eachEngine(t, func(t *testing.T, d *Device) {
		for _, c := range rows {
			run := func(d *Device) (all [][]float64) {
				out := make([]*Array, c.outs)
				for i := range out {
					out[i] = Zeros(515)
				}
				if _, err := d.Vectorize(c.fn, append(slices.Clone(c.args), Out(out...))...); err != nil {
					t.Fatalf("%s: %v", c.name, err)
				}
				for _, a := range out {
					all = append(all, a.Float64s())
				}
				return all
			}
			exact, fast := run(d), run(d.With(FastMath()))
			for j := range exact {
				for i, x := range exact[j] {
					if y := fast[j][i]; math.Abs(x-y) > 0x1p-46*c.scale {
						t.Errorf("%s, result %d of element %d: %v with FastMath, %v without", c.name, j, i, y, x)
						break
					}
				}
			}
			if _, ok := d.engine.(reference); ok {
				continue // it runs what was written
			}
			if first[c.name] == nil {
				first[c.name] = fast
			}
			same(t, c.name+" with FastMath", fmt.Sprint(fast), fmt.Sprint(first[c.name]))
		}
	})
}

func fastAngles(x, y float64) (float64, float64) {
	s, c := math.Sincos(3 * x)
	return float64(math.Sin(x)*math.Cos(y)) + float64(math.Tan(x)*y) - math.Pow(x, 3) - x/180,
		math.Atan2(y, x) + float64(math.Atan(x)*s) - float64(c*y)
}

func fastGrowth(x, y float64) (float64, float64) {
	return float64(math.Exp(-float64(x*x))*math.Exp2(y)) - float64(math.Tanh(x)*math.Erf(y)),
		math.Log(1+float64(y*y)) + float64(math.Log2(2+float64(x*x))*math.Log10(5+float64(y*y))) + math.Pow(1+float64(x*x), y)
}

// FastMath gives the same bits on every engine, others than without it, and near those.
func TestFastMathForms(t *testing.T) {
	r := rand.New(rand.NewPCG(10, 11))
	const n = 3000
	xs, ys := make([]float64, n), make([]float64, n)
	for i := range n {
		xs[i], ys[i] = 3*r.NormFloat64(), 3*r.NormFloat64()
		switch i % 50 {
		case 7:
			xs[i] = math.Copysign(0, -1)
		case 8:
			ys[i] = math.Inf(1)
		case 9:
			xs[i] = 1e15 * r.Float64()
		case 10:
			ys[i] = math.NaN()
		}
	}
	var first [][]float64
	eachEngine(t, func(t *testing.T, d *Device) {
		call := func(d *Device) (out [][]float64) {
			for _, f := range []func(x, y float64) (float64, float64){fastAngles, fastGrowth} {
				a, b, err := d.Vectorize2(f, FromSlice(xs), FromSlice(ys))
				if err != nil {
					t.Fatal(err)
				}
				out = append(out, a.Float64s(), b.Float64s())
			}
			return out
		}
		if _, ok := d.engine.(reference); ok {
			return // it runs what was written
		}
		fast, plain := call(d.With(FastMath())), call(d)
		if first == nil {
			first = fast
		}
		for k := range fast {
			differ := 0
			for i, v := range fast[k] {
				if w := first[k][i]; v != w && (v == v || w == w) {
					t.Fatalf("result %d of (%v, %v) is %v, on another engine %v", k, xs[i], ys[i], v, w)
				}
				p := plain[k][i]
				if v != p && (v == v || p == p) {
					differ++
				}
				tame := math.Abs(xs[i]) < 5 && math.Abs(ys[i]) < 5
				if tame && !(math.Abs(v-p) <= 1e-13*(1+math.Abs(p)+math.Abs(float64(math.Tan(xs[i])*ys[i]))+math.Pow(math.Abs(xs[i]), 3))) {
					t.Errorf("result %d of (%v, %v) is %v, without FastMath %v", k, xs[i], ys[i], v, p)
				}
				if math.IsNaN(v) != math.IsNaN(p) {
					t.Errorf("result %d of (%v, %v) is %v, without FastMath %v", k, xs[i], ys[i], v, p)
				}
			}
			if differ == 0 {
				t.Errorf("result %d is the same with FastMath", k)
			}
		}
	})
}
