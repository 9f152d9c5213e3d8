package gpukit

import (
	"fmt"
	"math"
	"math/rand/v2"
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
