package gpukit

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"gpunotes/gpukit/internal/cpu"
)

func inner1d(a, b []float64) float64 {
	s := 0.0
	for i := range a {
		s += float64(a[i] * b[i])
	}
	return s
}

func matmul(a, b, out [][]float64) {
	for i := range out {
		for j := range out[i] {
			s := 0.0
			for k := range b {
				s += float64(a[i][k] * b[k][j])
			}
			out[i][j] = s
		}
	}
}

// The asker's program and its slices.

func cVestDiscount14(countRow int64, multBy [][]float64, discount [][][]float64, n, countCol int64, cv [][][]float64) {
	for d := 0; d < int(countRow); d++ {
		for id := 0; id < int(countCol); id++ {
			for num := 0; num < int(n); num++ {
				cv[d][id][num] = multBy[id][num] * discount[d][id][num]
			}
		}
	}
}

func cVestDiscount16(multBy, discount [][]float64, n, countCol int64, cv [][]float64) {
	for id := 0; id < int(countCol); id++ {
		for num := 0; num < int(n); num++ {
			cv[id][num] = multBy[id][num] * discount[id][num]
		}
	}
}

func cVestDiscount17(countRow int64, multBy []float64, discount [][]float64, n int64, cv [][]float64) {
	for d := 0; d < int(countRow); d++ {
		for num := 0; num < int(n); num++ {
			cv[d][num] = multBy[num] * discount[d][num]
		}
	}
}

func product(a, b float64) float64 { return a * b }

// digest is the start of the sha256 of the elements as little-endian float64.
func digest(a *Array) string {
	h := sha256.New()
	for _, x := range a.Float64s() {
		binary.Write(h, binary.LittleEndian, x)
	}
	return fmt.Sprintf("%x", h.Sum(nil)[:8])
}

// The thread's programs; the digests and sums are numpy's.
func TestThreadPrograms(t *testing.T) {
	multBy := Arange(20000).Reshape(4000, 5)
	discount := Arange(2000000).Reshape(100, 4000, 5)
	for _, name := range []string{"cpu", "parallel", "sim:quadro-k2000"} {
		d := MustOpen(name)
		defer d.Close()
		t14 := Must(d.GUVectorize(cVestDiscount14, "(),(m,o),(n,m,o),(),() -> (n,m,o)", 100, multBy, discount, 5, 4000))
		same(t, "t14", digest(t14), "b1f8a3a022963e39")
		same(t, "t14 last", t14.At(99, 3999, 4), 39997980001.0)
		t16 := Must(d.GUVectorize(cVestDiscount16, "(m,o),(m,o),(),() -> (m,o)", multBy, discount, 5, 4000))
		same(t, "t16", digest(t16), "b1f8a3a022963e39")
		same(t, "t16 shape", t16.Shape(), []int{100, 4000, 5})
		t15 := Must(d.Vectorize(product, Full(1, 100, 4000, 5), discount))
		same(t, "t15", digest(t15), "0786e50f2e2d20f8")
		t17 := Must(d.GUVectorize(cVestDiscount17, "(),(o),(m,o),() -> (m,o)", 100, multBy, discount.Reshape(4000, 100, 5), 5))
		same(t, "t17", digest(t17), "dc84579c26216530")
	}
	for _, d := range []*Device{MustOpen("cpu"), MustOpen("cpu").With(OneWorkerPerSlice())} {
		p, err := d.ExplainGU(cVestDiscount16, "(m,o),(m,o),(),() -> (m,o)", multBy, discount, 5, 4000)
		if want := map[bool]int{false: 2000000, true: 100}[d.options.oneWorkerPerSlice]; err != nil || p.Workers != want || !slices.Equal(p.LoopDims, []int{100}) {
			t.Error(p, err)
		}
	}
}

func TestGUVectorize(t *testing.T) { eachKind(t, gufuncs) }

func gufuncs(t *testing.T, d *Device) {
	g := func(fn any, layout string, args ...any) *Array {
		t.Helper()
		a, err := d.GUVectorize(fn, layout, args...)
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	// Loop dimensions broadcast, on views of every kind.
	a := Arange(6).Reshape(3, 1, 2)
	b := Arange(8).Reshape(1, 4, 2)
	want := []float64{1, 3, 5, 7, 3, 13, 23, 33, 5, 23, 41, 59}
	same(t, "inner1d", g(inner1d, "(n),(n)->()", a, b).Float64s(), want)
	same(t, "inner1d shape", g(inner1d, "(n),(n)->()", a, b).Shape(), []int{3, 4})
	same(t, "transposed", g(inner1d, "(n),(n)->()", a, Arange(8).Reshape(4, 2).T().T().Reshape(1, 4, 2)).Float64s(), want)
	x := Arange(24).Reshape(2, 3, 4)
	y := Arange(40).Reshape(4, 5, 2).T() // (2, 5, 4)
	z := g(matmul, "(m,n),(n,p)->(m,p)", x, y.Reshape(2, 5, 4).T().Reshape(4, 5, 2).T().Slice(1, 0, 4, 1))
	same(t, "matmul shape", z.Shape(), []int{2, 3, 4})
	for i := range 2 {
		for j := range 3 {
			for k := range 4 {
				s := 0.0
				for l := range 4 {
					s += float64(x.At(i, j, l) * y.At(i, l, k))
				}
				same(t, fmt.Sprint("matmul ", i, j, k), z.At(i, j, k), s)
			}
		}
	}
	same(t, "empty core", g(inner1d, "(n),(n)->()", Zeros(3, 0), Zeros(0)).Float64s(), []float64{0, 0, 0})
	same(t, "empty loop", g(inner1d, "(n),(n)->()", Zeros(0, 3), Zeros(3)).Shape(), []int{0})
	same(t, "frozen", g(inner1d, "(3),(3)->()", Arange(3), Arange(3)).Item(), 5.0)

	for name, c := range map[string]struct {
		layout string
		args   []any
		words  []string
	}{
		"core mismatch":       {"(n),(n)->()", []any{Zeros(3, 1), Zeros(3, 4)}, []string{"mismatch in its core dimension 0", "(size 4 is different from 1); input operand 1 is argument 2 (b), of shape (3, 4)"}},
		"too few dims":        {"(n),(n)->()", []any{1.0, Zeros(3)}, []string{"does not have enough dimensions (has 0", "; input operand 0 is argument 1 (a), a number"}},
		"too few in an array": {"(n),(n)->()", []any{Zeros(2, 3), Zeros(3).Slice(0, 0, 1, 1).Reshape()}, []string{"does not have enough dimensions (has 0", "; input operand 1 is argument 2 (b), a number"}},
		"loop":                {"(n),(n)->()", []any{Zeros(5, 3), Zeros(4, 3)}, []string{"could not be broadcast", "(5,3)->(5,)", "arguments 1 (a) and 2 (b)", "5 and 4"}},
		"layout":              {"(n),n)->()", []any{Zeros(3), Zeros(3)}, []string{"layout", "expect '(' at position 4"}},
		"few inputs":          {"(n)->()", []any{Zeros(3)}, []string{"1 input and 1 result", "2 arguments (a, b)"}},
		"rank":                {"(n,m),(n)->()", []any{Zeros(3, 2), Zeros(3)}, []string{"parameter 1 (a)", "rank 1", "2 core dimensions"}},
		"dtype":               {"(n),(n)->()", []any{Zeros(3), FromSlice([]int{1, 2, 3})}, []string{"argument 2 (b)", ".As(gpukit.Float64)"}},
		"args":                {"(n),(n)->()", []any{Zeros(3)}, []string{"2 arguments (a, b), got 1"}},
	} {
		failsOn(t, d.Name(), name, func(d *Device) error { _, err := d.GUVectorize(inner1d, c.layout, c.args...); return err }, c.words...)
	}
	failsOn(t, d.Name(), "index", func(d *Device) error {
		_, err := d.GUVectorize(cVestDiscount17, "(),(o),(m,o),() -> (m,o)", 7, Arange(5), Arange(30).Reshape(3, 2, 5), 5)
		return err
	}, "gufunc_test.go", "index out of range (index 2, length 2)", "at element (0,)", "countRow = 7")
}

func addAll(x []float64, out []float64) {
	for i := range x {
		out[i] += x[i]
	}
}

func addScalar(x float64, out []float64) { out[0] += x }

func minmax(x []float64) (lo, hi float64) {
	lo, hi = math.Inf(1), math.Inf(-1)
	for _, v := range x {
		lo, hi = min(lo, v), max(hi, v)
	}
	return
}

func three(x float64) (a, b, c float64) { return x, 2 * x, 3 * x }

func TestOut(t *testing.T) { eachKind(t, outs) }

func outs(t *testing.T, d *Device) {
	// Without Out results begin as zeros, with Out as what is there.
	same(t, "zeros", Must(d.GUVectorize(addAll, "(n)->(n)", Arange(3))).Float64s(), []float64{0, 1, 2})
	z := Full(2, 3).BroadcastTo(3).As(Float32).As(Float64)
	same(t, "given", Must(d.GUVectorize(addAll, "(n)->(n)", Arange(3), Out(z))).Float64s(), []float64{2, 3, 4})
	ones := FromSlice([]float64{1, 1, 1, 1})
	twos := FromSlice([]float64{2, 2, 2, 2})
	same(t, "scalar result as slice", Must(d.GUVectorize(addScalar, "()->()", ones, Out(twos))) == twos, true)
	same(t, "twos", twos.Float64s(), []float64{3, 3, 3, 3})

	// Overlap: arguments are read as they were.
	a := FromSlice([]float64{1, 2, 3, 4, 5})
	same(t, "shifted", Must(d.Vectorize(add2, a.Slice(0, 0, 4, 1), a.Slice(0, 1, 5, 1), Out(a.Slice(0, 1, 5, 1)))).Float64s(), []float64{3, 5, 7, 9})
	data := []float64{1, 2, 3, 4, 5}
	Must(d.Vectorize(add2, FromFlat(data[:4], 4), FromFlat(data[1:], 4), Out(FromFlat(data[1:], 4))))
	same(t, "shifted, separate arrays over one slice", data, []float64{1, 3, 5, 7, 9})
	b := Arange(5).As(Float32).As(Float64)
	Must(d.Vectorize(add1, b.Slice(0, 4, -6, -1), Out(b)))
	same(t, "reversed", b.Float64s(), []float64{5, 4, 3, 2, 1})
	Must(d.Vectorize(add1, b, Out(b)))
	same(t, "in place", b.Float64s(), []float64{6, 5, 4, 3, 2})
	Must(d.GUVectorize(addAll, "(n)->(n)", b.Slice(0, 4, -6, -1), Out(b)))
	same(t, "gufunc on itself, reversed", b.Float64s(), []float64{8, 8, 8, 8, 8})

	// Broadcast results, strided results, several results.
	big := Zeros(2, 3)
	Must(d.Vectorize(add1, Arange(3), Out(big)))
	same(t, "larger Out", big.Float64s(), []float64{1, 2, 3, 1, 2, 3})
	wide := Zeros(6)
	Must(d.Vectorize(add1, Arange(3), Out(wide.Slice(0, 5, -7, -2))))
	same(t, "strided Out", wide.Float64s(), []float64{0, 3, 0, 2, 0, 1})
	lo, hi, err := d.GUVectorize2(minmax, "(n)->(),()", FromSlice([][]float64{{3, 1}, {-1, 2}}))
	if err != nil {
		t.Fatal(err)
	}
	same(t, "lo, hi", []any{lo.Float64s(), hi.Float64s()}, []any{[]float64{1, -1}, []float64{3, 2}})
	p, q, err := d.Vectorize2(math.Frexp, []float64{8, 3})
	if err != nil {
		t.Fatal(err)
	}
	same(t, "Frexp", []any{p.Float64s(), q.Float64s(), q.DType()}, []any{[]float64{0.5, 0.75}, []float64{4, 2}, Int64})
	r := []*Array{Zeros(2), Zeros(2), Zeros(2)}
	same(t, "three results", Must(d.Vectorize(three, []float64{1, 2}, Out(r...))) == r[0], true)
	same(t, "third", r[2].Float64s(), []float64{3, 6})

	one := func(fn any, args ...any) func(*Device) error {
		return func(d *Device) error { _, err := d.Vectorize(fn, args...); return err }
	}
	for name, c := range map[string]struct {
		f     func(*Device) error
		words []string
	}{
		"small":       {one(add1, Zeros(2, 2), Out(Zeros(2))), []string{"non-broadcastable output operand with shape (2,) doesn't match the broadcast shape (2,2)"}},
		"zero stride": {one(add1, Arange(3), Out(Zeros(1).BroadcastTo(3))), []string{"Out array 1", "more than once"}},
		"generated":   {one(add1, Arange(3), Out(Arange(3))), []string{"Out array 1", "computed"}},
		"dtype":       {one(add1, Arange(3), Out(FromSlice([]int{1, 2, 3}))), []string{"Out array 1", "int64", "float64"}},
		"nil":         {one(add1, Arange(3), Out(nil)), []string{"Out array 1", "nil"}},
		"none":        {one(add1, Arange(3), Out()), []string{"Out has no arrays"}},
		"overlapping": {func(d *Device) error {
			z := Zeros(3)
			_, _, err := d.Vectorize2(twice, Arange(3), Out(z, z))
			return err
		}, []string{"Out arrays 1 and 2 overlap"}},
		"one of two": {func(d *Device) error {
			_, _, err := d.GUVectorize2(minmax, "(n)->(),()", Arange(3), Out(Zeros(1).Reshape()))
			return err
		}, []string{"Out has 1 array,", "2 results"}},
		"two of one":    {func(d *Device) error { _, err := d.GUVectorize(minmax, "(n)->(),()", Arange(3)); return err }, []string{"GUVectorize2", "2 arrays"}},
		"not last":      {one(add1, Out(Zeros(3)), Arange(3)), []string{"not the last argument"}},
		"two":           {one(add1, Arange(3), Out(Zeros(3), Zeros(3))), []string{"returns 1 values", "wants 2"}},
		"two results":   {one(twice, 1.0), []string{"returns 2 values", "Vectorize2"}},
		"slice":         {one(inner1d, Arange(3), Arange(3)), []string{"argument 1 (a)", "GUVectorize"}},
		"other device":  {one(add1, Arange(3), Out(MustOpen("cpu").keep(Zeros(3)))), []string{"another device", "cpu"}},
		"three results": {one(three, 1.0), []string{"returns 3 values", "gpukit.Out with 3 arrays"}},
	} {
		failsOn(t, d.Name(), name, c.f, c.words...)
	}
	// A GPU computes the elements.
	failsOn(t, "parallel", "huge generated", func(d *Device) error {
		_, err := d.GUVectorize(inner1d, "(n),(n)->()", Arange(1<<42), Arange(1<<42))
		return err
	}, "32 TiB", "available")
}

func add2(x, y float64) float64 { return x + y }

func TestOptionsOfTheCPU(t *testing.T) {
	d := openCores(cpu.Portable, 1).With(Unchecked(), OneWorkerPerSlice(), FastMath(), SharedBytes(64))
	same(t, "inner1d", Must(d.GUVectorize(inner1d, "(n),(n)->()", Arange(3), Arange(3))).Item(), 5.0)
	p, err := d.ExplainGU(inner1d, "(n),(n)->()", Arange(3), Arange(3))
	if err != nil || strings.Contains(p.IR, "bounds") {
		t.Errorf("%v: checks are left in\n%v", err, p)
	}
	for _, w := range []string{"Unchecked()", "OneWorkerPerSlice()", "FastMath()", "SharedBytes(64)"} {
		if !strings.Contains(p.Device, w) {
			t.Errorf("the device of the plan is %q, without %s", p.Device, w)
		}
	}
	if _, err := d.GUVectorize(cVestDiscount17, "(),(o),(m,o),() -> (m,o)", 7, Arange(5), Arange(10).Reshape(2, 5), 5); err == nil || !strings.Contains(err.Error(), "without Unchecked()") {
		t.Error(err, "an index out of range is not noticed at all")
	}
	same(t, "the next call", Must(d.Vectorize(add1, 1.0)).Item(), 2.0)
	for _, e := range engines { // machine code looks in any case
		d := e.open()
		if _, ok := d.engine.(cores); !ok || e.name == "portable" {
			continue
		}
		var failed *WorkerError
		if _, err := d.With(Unchecked()).GUVectorize(cVestDiscount17, "(),(o),(m,o),() -> (m,o)", 7, Arange(5), Arange(10).Reshape(2, 5), 5); !errors.As(err, &failed) && (err == nil || !strings.Contains(err.Error(), "without Unchecked()")) {
			t.Errorf("%s: %v, an index out of range is not noticed", e.name, err)
		}
	}
}
