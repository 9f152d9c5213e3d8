package gpukit

import (
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"gpunotes/gpukit/simt"
)

// Faults that users of other array libraries reported, as small cases with the
// value that is right in Go. The number is that of the collection they come from;
// the address is the report.

func sumDiff(x, y []float64) float64 {
	s := 0.0
	for i := range x {
		s += x[i] - y[i]
	}
	return s
}

func addEach(x []int32, y int32, out []int32) {
	for i := range x {
		out[i] = x[i] + y
	}
}

func ones(n int64, x []float64, out []float64) { out[0] = 1 }

func twentyfold(x int64) int64 { return 20 * x }

func fillGuarded(x []float64, n int) {
	if i := simt.Grid1(); i < n {
		x[i] = 7
	}
}

func div32(a, b int32) int32 { return a / b }
func rem32(a, b int32) int32 { return a % b }
func div8(a, b int8) int8    { return a / b }
func divU8(a, b uint8) uint8 { return a / b }
func divF(a, b float64) float64 {
	return a / b
}
func shiftU8(a, b uint8) uint8      { return a << b }
func powInt(x, y float64) int       { return int(math.Pow(x, y)) }
func cancel3(x, y float64) float64  { return x*y + -(x * y) } // must not be fused
func minB(x, y float64) float64     { return min(x, y) }
func maxB(x, y float64) float64     { return max(x, y) }
func halfC(x complex128) complex128 { return x / 2 }

func threePrint(out []float64) {
	var s [3]float64
	simt.Shared(&s)
	t := simt.ThreadIdx().Y
	if out[0] > 100 {
		return
	}
	s[t] = -999
	simt.SyncThreads()
	if t == 0 {
		for i := 0; i < 3; i++ {
			out[i] = s[i]
		}
	}
}

// copied lets the second thread of each group of three write what the others
// wrote before the barrier.
func copied(x, out []int32) {
	var s [6]int32
	simt.Shared(&s)
	t := simt.ThreadIdx().X
	if t%3 != 1 {
		s[t] = x[t]
	}
	simt.SyncThreads()
	if t%3 == 1 {
		s[t] = s[t-1]
	}
	simt.SyncThreads()
	out[t] = s[t]
}

func reuse(x float64) int {
	i := 0
	for i = 0; i < 3; i++ {
	}
	i = 0
	for i < 5 {
		i++
	}
	return i
}

func countAll(a []int64, b []uint32, c []uint64, d []float32, e []float64) {
	simt.AddInt64(&a[0], 1)
	simt.AddUint32(&b[0], 1)
	simt.AddUint64(&c[0], 1)
	simt.AddFloat32(&d[0], 1)
	simt.AddFloat64(&e[0], 1)
}

func oldValues(count, out []int64) { out[simt.ThreadIdx().X] = simt.AddInt64(&count[0], 1) }

func identity(x float64, out []float64) { out[0] = x }

func prints(x []float64) { println("thread", simt.Grid1(), "has", x[simt.Grid1()]) }

func readsFive(x []float64) { x[0] = x[simt.ThreadIdx().X] }

func addStrided(x, y, out []float64) {
	for i := range x {
		out[i] = x[i] + y[i]
	}
}

func TestReports(t *testing.T) { eachKind(t, reports) }

func reports(t *testing.T, d *Device) {
	gu := func(t *testing.T, fn any, layout string, args ...any) *Array {
		t.Helper()
		a, err := d.GUVectorize(fn, layout, args...)
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	v := func(t *testing.T, fn any, args ...any) *Array {
		t.Helper()
		a, err := d.Vectorize(fn, args...)
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	refused := func(t *testing.T, err error, words ...string) {
		t.Helper()
		if err == nil {
			t.Error("no error")
			return
		}
		for _, w := range words {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("the error does not say %q: %v", w, err)
			}
		}
	}
	vErr := func(fn any, args ...any) error { _, err := d.Vectorize(fn, args...); return err }

	for _, c := range []struct {
		name string
		test func(t *testing.T)
	}{
		{"1 numba#5640", func(t *testing.T) {
			dot := func(a, b []int64) int64 {
				s := int64(0)
				for i := range a {
					s += a[i] * b[i]
				}
				return s
			}
			z := gu(t, dot, "(n),(n)->()", Arange(6).As(Int64).Reshape(3, 1, 2), Arange(8).As(Int64).Reshape(1, 4, 2))
			same(t, "dot", z.Float64s(), []float64{1, 3, 5, 7, 3, 13, 23, 33, 5, 23, 41, 59})
		}},
		{"2 numba#6421", func(t *testing.T) {
			x, y := Arange(20).Reshape(2, 1, 10), Linspace(-3, 3, 20).Reshape(1, 2, 10)
			z := gu(t, sumDiff, "(n),(n)->()", Must(d.Put(x)), Must(d.Put(y)))
			w := gu(t, sumDiff, "(n),(n)->()", x.BroadcastTo(2, 2, 10).Reshape(4, 10), y.BroadcastTo(2, 2, 10).Reshape(4, 10))
			same(t, "sum", z.Float64s(), w.Float64s())
		}},
		{"4 numba#2579", func(t *testing.T) {
			same(t, "one", gu(t, addEach, "(n),()->(n)", []int32{1, 2, 3, 4}, []int32{2}).Float64s(), []float64{3, 4, 5, 6})
			z := gu(t, addEach, "(n),()->(n)", [][]int32{{1, 2, 3, 4}, {5, 6, 7, 8}}, []int32{2, 10})
			same(t, "rows", z.Float64s(), []float64{3, 4, 5, 6, 15, 16, 17, 18})
		}},
		{"5 numba#2812", func(t *testing.T) {
			z := gu(t, ones, "(),(N)->()", 3, Arange(4))
			same(t, "dtype", []any{z.DType(), z.Item()}, []any{Float64, 1.0})
			same(t, "twentyfold", v(t, twentyfold, 10).Item(), 200.0)
		}},
		{"7 cupy#532", func(t *testing.T) {
			same(t, "(1,) with (0,)", v(t, math.Hypot, Zeros(1), Zeros(0)).Shape(), []int{0})
			same(t, "(3,1) with (3,0)", v(t, math.Hypot, Zeros(3, 1), Zeros(3, 0)).Shape(), []int{3, 0})
		}},
		{"9 numba#4140", func(t *testing.T) {
			if err := d.Launch(fillGuarded, Blocks(1), Threads(128), Zeros(0), 0); err != nil {
				t.Error(err)
			}
		}},
		{"12 numba#6967", func(t *testing.T) {
			z := v(t, math.Cos, 1.2)
			same(t, "0-d", z.Shape(), []int{})
			same(t, "cos", z.Item(), math.Cos(1.2))
		}},
		{"19 numba#6824", func(t *testing.T) {
			a := Arange(100*100).Reshape(100, 100).copy().Slice(0, 7, 8, 1).Slice(1, 20, 30, 1)
			same(t, "sum", gu(t, sumDiff, "(n),(n)->()", a, Zeros(10)).Item(), 7245.0)
		}},
		{"24 numba#4069", func(t *testing.T) {
			z := Zeros(10, 10)
			v(t, twoFold, Full(3, 10, 10), Out(z))
			same(t, "sum", z.Sum(), 600.0)
		}},
		{"25 numba#6256", func(t *testing.T) {
			out := Full(2, 10).copy()
			gu(t, addScalar, "()->()", Full(1, 10), Out(out))
			same(t, "sum", out.Sum(), 30.0)
		}},
		{"29 cupy#1552", func(t *testing.T) {
			x := Zeros(4)
			refused(t, vErr(add2, x, Zeros(3, 4), Out(x)), "non-broadcastable output operand", "(4,)", "(3,4)")
		}},
		{"30 cupy#2932", func(t *testing.T) { refused(t, vErr(add2, 1.0, 2.0, 3.0, 4.0), "add2 takes 2 arguments", "got 4") }},
		{"37 numba-cuda#789", func(t *testing.T) { refused(t, vErr(halfC, 1i), "complex") }},
		{"39 numba-cuda-mlir#184", func(t *testing.T) {
			a, b := []int32{-6, 6, -7}, []int32{5, -5, 3}
			same(t, "%", v(t, rem32, a, b).Float64s(), []float64{-1, 1, -1})
			same(t, "/", v(t, div32, a, b).Float64s(), []float64{-1, -1, -2})
		}},
		{"43 cumo#218", func(t *testing.T) {
			refused(t, vErr(div32, []int32{1}, []int32{0}), "integer divide by zero", "1 / 0")
			refused(t, vErr(div8, []int8{1}, []int8{0}), "integer divide by zero")
			refused(t, vErr(divU8, []uint8{1}, []uint8{0}), "integer divide by zero")
			refused(t, vErr(rem32, []int32{1, 2, 3}, []int32{1, 0, 3}), "integer divide by zero", "2 % 0", "(1,)")
			same(t, "minint / -1", v(t, div32, int32(math.MinInt32), -1).Item(), math.MinInt32*1.0)
			same(t, "minint % -1", v(t, rem32, int32(math.MinInt32), -1).Item(), 0.0)
		}},
		{"44 numba#471", func(t *testing.T) {
			z := v(t, divF, Arange(10), 0.0).Float64s()
			if !math.IsNaN(z[0]) || slices.ContainsFunc(z[1:], func(x float64) bool { return x != math.Inf(1) }) {
				t.Error(z)
			}
		}},
		{"48 numba#4786", func(t *testing.T) { same(t, "<<", v(t, shiftU8, 255, 1).Item(), 254.0) }},
		{"50 numba#8218", func(t *testing.T) { same(t, "pow", v(t, powInt, 3.0, 1.0).Item(), 3.0) }},
		{"51 warp#46", func(t *testing.T) {
			same(t, "pow", v(t, math.Pow, -1.0, []float64{2, 3}).Float64s(), []float64{1, -1})
			if !math.IsNaN(v(t, math.Pow, -1.0, 0.5).Item()) {
				t.Error("pow(-1, 0.5)")
			}
		}},
		{"53 CUDA.jl#2111", func(t *testing.T) {
			for _, z := range []*Array{v(t, minB, math.NaN(), math.Inf(1)), v(t, maxB, math.NaN(), math.Inf(-1)), v(t, maxB, 1.0, math.NaN())} {
				if !math.IsNaN(z.Item()) {
					t.Error(z)
				}
			}
			if !math.Signbit(v(t, minB, 0.0, math.Copysign(0, -1)).Item()) || math.Signbit(v(t, maxB, math.Copysign(0, -1), 0.0).Item()) {
				t.Error("signed zeros")
			}
		}},
		{"55 numba#2834", func(t *testing.T) { same(t, "x*y - x*y", v(t, cancel3, 0.1, 0.1).Item(), 0.0) }},
		{"61 numba#1626", func(t *testing.T) {
			out := Zeros(3)
			if err := d.Launch(threePrint, Blocks(1), Threads(1, 3), out); err != nil {
				t.Fatal(err)
			}
			same(t, "out", out.Float64s(), []float64{-999, -999, -999})
		}},
		{"62 numba#2655", func(t *testing.T) {
			out := make([]int32, 6)
			if err := d.Launch(copied, Blocks(1), Threads(6), []int32{1, 0, 2, 1, 0, 2}, out); err != nil {
				t.Fatal(err)
			}
			same(t, "out", out, []int32{1, 1, 2, 1, 1, 2})
		}},
		{"63 tilelang#1026", func(t *testing.T) {
			refused(t, d.Launch(divergent, Blocks(1), Threads(4), Zeros(4)), "barrier", "some threads only")
		}},
		{"65 warp#1534", func(t *testing.T) { same(t, "i", v(t, reuse, 0.0).Item(), 5.0) }},
		{"68 warp#977", func(t *testing.T) {
			a, b, c, f, g := make([]int64, 1), make([]uint32, 1), make([]uint64, 1), make([]float32, 1), make([]float64, 1)
			if err := d.Launch(countAll, Blocks(4), Threads(256), a, b, c, f, g); err != nil {
				t.Fatal(err)
			}
			same(t, "counts", fmt.Sprint(a, b, c, f, g), "[1024] [1024] [1024] [1024] [1024]")
		}},
		{"69 numba#3619", func(t *testing.T) {
			out := make([]int64, 8)
			if err := d.Launch(oldValues, Blocks(1), Threads(8), make([]int64, 1), out); err != nil {
				t.Fatal(err)
			}
			slices.Sort(out)
			same(t, "old values", out, []int64{0, 1, 2, 3, 4, 5, 6, 7})
		}},
		{"79 numba#6159", func(t *testing.T) {
			x := Full(2, 1<<20)
			for _, c := range []struct {
				fn     any
				layout string
				args   []any
				note   string
			}{
				{addStrided, "(n),(n)->(n)", []any{x, x}, "1 worker for 1048576 elements: use Vectorize"},
				{addStrided, "(n),(n)->(n)", []any{x.Reshape(1, 1<<20), x}, "1 worker for 1048576 elements"},
				{addStrided, "(n),(n)->(n)", []any{x.Reshape(1024, 1024), Zeros(1024)}, ""},
				{addStrided, "(n),(n)->(n)", []any{Zeros(10), Zeros(10)}, ""},
				{addStrided, "(n),(n)->(n)", []any{Zeros(0), Zeros(0)}, ""},
				{identity, "()->()", []any{1.0}, ""},
			} {
				p, err := d.With(OneWorkerPerSlice()).ExplainGU(c.fn, c.layout, c.args...)
				if err != nil || !strings.HasPrefix(p.Note, c.note) || (p.Note == "") != (c.note == "") || !strings.Contains(p.String(), p.Note) || strings.Contains(p.String(), "note ") != (c.note != "") {
					t.Errorf("%q, want %q, %v\n%v", p.Note, c.note, err, p)
				}
			}
			if p, err := d.ExplainGU(addStrided, "(n),(n)->(n)", x, x); err != nil || p.Workers != 1<<20 || p.Note != "" {
				t.Errorf("%v\n%v", err, p)
			}
			n := 1 << 12
			same(t, "sum", gu(t, addStrided, "(n),(n)->(n)", Full(2, n), Arange(n)).Sum(), float64(2*n+n*(n-1)/2))
		}},
		{"82 numba#7505", func(t *testing.T) { same(t, "identity", gu(t, identity, "()->()", Arange(10)).Sum(), 45.0) }},
		{"87 numba-cuda-mlir#281", func(t *testing.T) {
			d := MustOpen(d.Name())
			defer d.Close()
			var wg sync.WaitGroup
			for _, fn := range []any{math.Sin, math.Cos, add1, twoFold, sq, newton} {
				for range 4 {
					wg.Go(func() {
						if _, err := d.Vectorize(fn, Arange(100)); err != nil {
							t.Error(err)
						}
					})
				}
			}
			wg.Wait()
		}},
		{"88 llama.cpp#7376", func(t *testing.T) {
			available := "available"
			if d.gpu != nil {
				available = "the device has " + amount(float64(d.gpu.info.Memory)) + " in all"
			}
			refused(t, second(d.Empty(Float64, 1e15)), "7.105 PiB", available)
			refused(t, vErr(add1, Full(1, 1e15)), "available")
			same(t, "the next call", v(t, add1, 1.0).Item(), 2.0)
		}},
		{"92 numba#5421, 93 notebook#4855", func(t *testing.T) {
			text := stdout(t, func() {
				if err := d.Launch(prints, Blocks(2), Threads(2), []float64{1, 2, 3, 4.5}); err != nil {
					t.Error(err)
				}
			})
			same(t, "text", text, "thread 0 has 1\nthread 1 has 2\nthread 2 has 3\nthread 3 has 4.5\n")
		}},
		{"95 CUDAnative#292", func(t *testing.T) { refused(t, vErr(odd, 3), "odd → even → odd") }},
		{"100 numba#4432", func(t *testing.T) {
			refused(t, d.Launch(readsFive, Blocks(1), Threads(8), Zeros(4)), "index 4, length 4", "block (0, 0, 0)", "thread (4, 0, 0)", "reports_test.go")
		}},
		{"101 strided operand of a gufunc", func(t *testing.T) {
			z := gu(t, addStrided, "(n),(n)->(n)", Arange(20).Slice(0, 0, 20, 2), Full(1, 10))
			same(t, "sum", z.Float64s(), []float64{1, 3, 5, 7, 9, 11, 13, 15, 17, 19})
		}},
	} {
		t.Run(c.name, c.test)
	}
}

func twoFold(x float64) float64 { return 2 * x }

// stdout returns what f prints.
func stdout(t *testing.T, f func()) string {
	t.Helper()
	old := os.Stdout
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	os.Stdout = w
	text := make(chan string)
	go func() { // a pipe holds only so much
		b, err := io.ReadAll(r)
		if err != nil {
			t.Error(err)
		}
		text <- string(b)
	}()
	func() {
		defer func() { os.Stdout = old; w.Close() }()
		f()
	}()
	return <-text
}

// Where numba, numpy and Go differ, a kernel has Go's answer.
func TestScalarSemantics(t *testing.T) {
	d := MustOpen("cpu")
	nan, inf, negZero := math.NaN(), math.Inf(1), math.Copysign(0, -1)
	f0 := func(a, b int64) int64 { return a / b }
	f1 := func(a, b int64) int64 { return a % b }
	f2 := func(a int64, n uint) int64 { return a << n }
	f3 := func(a int64, n uint) int64 { return a >> n }
	f4 := func(a int32) int32 { return a + 1 }
	f5 := func(a uint8) uint8 { return a + 10 }
	f6 := func(a float32) float32 { return a * 0.5 }
	f7 := func(a float64) int64 { return int64(a) }
	f8 := func(a float32) uint32 { return uint32(a) }
	f9 := func(a float64) int8 { return int8(a) }
	for i, c := range []struct {
		fn   any
		args []any
		want float64
	}{
		{f0, []any{-7, 2}, -3},
		{f1, []any{-7, 2}, -1},
		{f0, []any{7, -2}, -3},
		{f1, []any{7, -2}, 1},
		{f0, []any{int64(math.MinInt64), -1}, math.MinInt64},
		{f2, []any{1, 64}, 0},
		{f2, []any{1, 65}, 0},
		{f3, []any{-8, 64}, -1},
		{f4, []any{math.MaxInt32}, math.MinInt32},
		{f5, []any{250}, 4},
		{divF, []any{1.0, negZero}, -inf},
		{math.Mod, []any{-7.0, 2.0}, -1},
		{math.Mod, []any{5.0, 0.0}, nan},
		{math.Mod, []any{1.0, inf}, 1},
		{math.Pow, []any{0.0, 0.0}, 1},
		{math.Pow, []any{-1.0, inf}, 1},
		{math.Pow, []any{2.0, -1074.0}, 5e-324},
		{math.Pow, []any{nan, 0.0}, 1},
		{math.Pow, []any{1.0, nan}, 1},
		{math.Pow, []any{-8.0, 1.0 / 3}, nan},
		{math.Pow, []any{negZero, -1.0}, -inf},
		{math.Atan2, []any{0.0, negZero}, math.Pi},
		{math.Atan2, []any{negZero, negZero}, -math.Pi},
		{math.Atan2, []any{inf, -inf}, 3 * math.Pi / 4},
		{f6, []any{float32(1.5e-38)}, float64(float32(1.5e-38) * 0.5)},
		{f7, []any{nan}, 0},
		{f7, []any{inf}, math.MaxInt64},
		{f7, []any{-1e19}, math.MinInt64},
		{f8, []any{-1}, 0},
		{f9, []any{300.0}, 127},
		{math.Round, []any{2.5}, 3},
		{math.RoundToEven, []any{2.5}, 2},
		{math.Round, []any{-0.5}, -1},
		{math.Round, []any{-0.25}, negZero},
	} {
		name := fmt.Sprintf("case %d", i)
		z, err := d.Vectorize(c.fn, c.args...)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got := z.Item(); math.Float64bits(got) != math.Float64bits(c.want) && !(math.IsNaN(got) && math.IsNaN(c.want)) {
			t.Errorf("%s%v = %v, want %v", name, c.args, got, c.want)
		}
	}
}
