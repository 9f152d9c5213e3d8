package gpukit

import (
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"
)

func same(t *testing.T, name string, got, want any) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%s = %v, want %v", name, got, want)
	}
}

// shapeError runs f, which must panic with a *ShapeError whose text contains
// every one of words.
func shapeError(t *testing.T, name string, f func(), words ...string) {
	t.Helper()
	defer func() {
		t.Helper()
		r := recover()
		err, ok := r.(error)
		var se *ShapeError
		if !ok || !errors.As(err, &se) {
			t.Errorf("%s: panic %v, want a *ShapeError", name, r)
			return
		}
		for _, w := range words {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("%s: %q does not say %q", name, err, w)
			}
		}
	}()
	f()
}

func TestAmount(t *testing.T) {
	for n, want := range map[float64]string{0: "0 bytes", 1023: "1023 bytes", 1024: "1 KiB", 1 << 31: "2 GiB", 8e12: "7.276 TiB", 1 << 63: "8 EiB", 1 << 73: "8192 EiB"} {
		same(t, want, amount(n), want)
	}
}

type hugeMatrix struct{}

func (hugeMatrix) Dims() (r, c int)    { return 1 << 20, 1 << 20 }
func (hugeMatrix) At(i, j int) float64 { return 0 }
func (m hugeMatrix) T() mat.Matrix     { return m }

func TestLinspaceLikeNumpy(t *testing.T) {
	// numpy.linspace(29, 31, 1000)[k] computed as k*step + start.
	a := Linspace(29, 31, 1000)
	step := 2.0 / 999
	for k := range 999 {
		if got, want := a.At(k), float64(float64(k)*step)+29; got != want {
			t.Fatalf("element %d is %v, want %v", k, got, want)
		}
	}
	same(t, "last", a.At(999), 31.0)
	same(t, "0.1 to 0.7", Linspace(0.1, 0.7, 3).At(2), 0.7)
	same(t, "one", Linspace(5, 9, 1).Float64s(), []float64{5})
	same(t, "none", Linspace(5, 9, 0).Float64s(), []float64{})
	same(t, "constant", Linspace(3, 3, 3).Float64s(), []float64{3, 3, 3})
	same(t, "down", Linspace(2, -2, 5).Float64s(), []float64{2, 1, 0, -1, -2})
	tiny := math.SmallestNonzeroFloat64 // step underflows to 0
	same(t, "tiny", Linspace(0, tiny, 5).Float64s(), []float64{0, 0, 0, tiny, tiny})
}

func TestGeneratorFillMatchesAt(t *testing.T) {
	for _, g := range []*generator{
		newLinspace(29, 31, 17), newLinspace(1, 1, 17), newLinspace(0, math.SmallestNonzeroFloat64, 17),
		{kind: arange, n: 17}, {kind: constant, n: 17, start: 2.5},
	} {
		for first := range 17 {
			for stride := -4; stride <= 4; stride++ {
				n := 1
				for k := first + stride; k >= 0 && k < 17 && n < 17; k += stride {
					n++
				}
				got := make([]float64, n)
				g.Fill(got, first, stride)
				for i := range got {
					if want := g.at(first + i*stride); got[i] != want {
						t.Fatalf("%v: Fill(first %d, stride %d)[%d] = %v, want %v", g, first, stride, i, got[i], want)
					}
				}
			}
		}
	}
}

func TestMeshGrid(t *testing.T) {
	x, y := MeshGrid(Linspace(0, 2, 3), FromSlice([]float64{10, 20}))
	same(t, "shape", x.Shape(), []int{2, 3})
	same(t, "x", x.Float64s(), []float64{0, 1, 2, 0, 1, 2})
	same(t, "y", y.Float64s(), []float64{10, 10, 10, 20, 20, 20})
	same(t, "y transposed", y.T().Float64s(), []float64{10, 20, 10, 20, 10, 20})
	shapeError(t, "2-d axis", func() { MeshGrid(Zeros(2, 2), Arange(3)) }, "argument 1", "(2, 2)", "1-d")
	shapeError(t, "nil axis", func() { MeshGrid(Arange(3), nil) }, "nil")
	e, _ := MeshGrid(Arange(0), Arange(4))
	same(t, "empty", e.Shape(), []int{4, 0})
}

func TestConstructors(t *testing.T) {
	same(t, "flat int", FromSlice([]int{1, 2}).DType(), Int64)
	same(t, "nested", FromSlice([][]float32{{1, 2, 3}, {4, 5, 6}}).Shape(), []int{2, 3})
	same(t, "empty nested", FromSlice([][]float32{}).Shape(), []int{0, 0})
	same(t, "3-d", FromSlice([][][]bool{{{true}}, {{false}}}).Float64s(), []float64{1, 0})
	data := []float64{1, 2, 3, 4}
	a := FromFlat(data, 2, 2)
	data[3] = 9
	same(t, "shared", a.At(1, 1), 9.0)
	same(t, "0-d", FromFlat([]int16{7}).Item(), 7.0)
	same(t, "full", Full(2, 3, 0).Size(), 0)
	same(t, "full item", Full(2.5).Item(), 2.5)
	same(t, "like", Like(FromSlice([]int8{1, 2})).DType(), Int8)
	same(t, "matrix", FromMatrix(mat.NewDense(2, 3, []float64{1, 2, 3, 4, 5, 6}).T()).Float64s(), []float64{1, 4, 2, 5, 3, 6})
	m := FromSlice([][]float64{{1, 2, 3}, {4, 5, 6}}).T().Matrix()
	r, c := m.Dims()
	same(t, "Matrix of a view", []any{r, c, m.At(2, 1)}, []any{3, 2, 6.0})
	shapeError(t, "too large", func() { Zeros(1000000, 1000000) }, "gpukit.Zeros: 1000000000000 elements of float64 need 7.276 TiB", "available")
	shapeError(t, "too large, like another", func() { Like(Arange(1e12)) }, "gpukit.Like: 1000000000000 elements", "available")
	shapeError(t, "too large in another shape", func() { x, _ := MeshGrid(Arange(1e6), Arange(1e6)); x.Reshape(1e12) }, "gpukit.Reshape: 1000000000000 elements", "available")
	shapeError(t, "too large a matrix", func() { FromMatrix(hugeMatrix{}) }, "gpukit.FromMatrix: 1099511627776 elements", "available")
	shapeError(t, "too large to copy", func() { Full(1, 1<<30, 1<<20).Reshape(1<<20, 1<<30).As(Float32) }, "gpukit.As: 1125899906842624 elements of float32", "available")
	shapeError(t, "too large for Go", func() { Linspace(0, 1, 1e12).Float64s() }, "available")
	shapeError(t, "ragged", func() { FromSlice([][]float64{{1}, {1, 2}}) }, "ragged", "length 2")
	shapeError(t, "strings", func() { FromSlice([]string{"a"}) }, "[]string")
	shapeError(t, "nil", func() { FromSlice(nil) }, "nil")
	shapeError(t, "complex", func() { FromSlice([]complex128{1}) }, "complex128")
	shapeError(t, "flat size", func() { FromFlat([]float64{1, 2}, 3) }, "2 elements", "(3,)")
	shapeError(t, "negative", func() { Zeros(2, -1) }, "(2, -1)")
	shapeError(t, "huge", func() { Zeros(1<<40, 1<<40) }, "fit")
	shapeError(t, "nil matrix", func() { FromMatrix((*mat.Dense)(nil)) }, "nil")
	shapeError(t, "Matrix of 1-d", func() { Arange(3).Matrix() }, "(3,)")
}

func TestViews(t *testing.T) {
	a := Arange(24).Reshape(2, 3, 4)
	same(t, "At", a.At(1, 2, 3), 23.0)
	same(t, "T", a.T().At(3, 2, 1), 23.0)
	same(t, "Reshape of T", a.T().Reshape(-1).Float64s()[:4], []float64{0, 12, 4, 16})
	same(t, "Slice", a.Slice(2, 3, -5, -2).Float64s()[:2], []float64{3, 1})
	same(t, "empty Slice", a.Slice(0, 1, 1, 1).Shape(), []int{0, 3, 4})
	same(t, "BroadcastTo", Arange(2).Reshape(2, 1).BroadcastTo(3, 2, 2).Float64s(), []float64{0, 0, 1, 1, 0, 0, 1, 1, 0, 0, 1, 1})
	same(t, "infer", Zeros(0, 3).Reshape(3, -1).Shape(), []int{3, 0})
	shapeError(t, "Reshape", func() { a.Reshape(5, 5) }, "(5, 5)", "24", "25")
	shapeError(t, "Reshape -1", func() { a.Reshape(5, -1) }, "-1")
	shapeError(t, "At", func() { a.At(0, 3, 0) }, "index 3", "dimension 1", "size 3")
	shapeError(t, "At rank", func() { a.At(0) }, "1 index for", "(2, 3, 4)", "3 dimensions")
	shapeError(t, "Slice step", func() { a.Slice(0, 0, 1, 0) }, "step is 0")
	shapeError(t, "Slice axis", func() { a.Slice(3, 0, 1, 1) }, "dimension 3")
	shapeError(t, "BroadcastTo", func() { Arange(2).BroadcastTo(3) }, "(2,)", "(3,)")
	shapeError(t, "Item", func() { a.Item() }, "24 elements")
}

func TestAs(t *testing.T) {
	f := FromSlice([]float64{-1.5, 2.9, 300, math.NaN(), math.Inf(1)})
	same(t, "int8", f.As(Int8).Float64s(), []float64{-1, 2, 127, 0, 127})
	same(t, "uint8", f.As(Uint8).Float64s(), []float64{0, 2, 255, 0, 255})
	same(t, "bool", f.As(Bool).Float64s(), []float64{1, 1, 1, 1, 1})
	same(t, "from bool", FromSlice([]bool{true, false}).As(Float32).Float64s(), []float64{1, 0})
	same(t, "bool to int", FromSlice([]bool{true, false}).As(Int32).Float64s(), []float64{1, 0})
	same(t, "wrap", FromSlice([]int{257}).As(Uint8).Item(), 1.0)
	if f.As(Float64) != f {
		t.Error("As of the same dtype copies")
	}
	shapeError(t, "no dtype", func() { f.As(0) }, "not a dtype")
}

func TestReductions(t *testing.T) {
	same(t, "sum", Arange(100001).Sum(), 5000050000.0)
	same(t, "empty", Zeros(0).Sum(), 0.0)
	same(t, "int", FromSlice([]int8{100, 100}).Sum(), 200.0)
	same(t, "bool", FromSlice([]bool{true, true, false}).Sum(), 2.0)
	same(t, "min", FromSlice([]int{3, -2, 5}).Min(), -2.0)
	same(t, "max", FromSlice([]float32{3, -2, 5}).Max(), 5.0)
	if m := FromSlice([]float64{1, math.NaN(), 2}).Max(); !math.IsNaN(m) {
		t.Errorf("Max with a NaN is %v", m)
	}
	if m := FromSlice([]float64{0, math.Copysign(0, -1)}).Min(); !math.Signbit(m) {
		t.Error("Min(0, -0) is +0")
	}
	same(t, "ArgMin", FromSlice([][]int{{3, 1}, {1, 2}}).ArgMin(), []int{0, 1})
	same(t, "ArgMin NaN", FromSlice([]float64{-1, math.NaN(), -2, math.NaN()}).ArgMin(), []int{1})
	same(t, "ArgMin zeros", FromSlice([]float64{0, math.Copysign(0, -1)}).ArgMin(), []int{1})
	same(t, "ArgMin 0-d", Full(3).ArgMin(), []int{})
	r := Arange(24).Reshape(2, 3, 4)
	same(t, "Reduce 1", r.Reduce(1).Float64s(), []float64{12, 15, 18, 21, 48, 51, 54, 57})
	same(t, "Reduce 0", r.Reduce(0).Shape(), []int{3, 4})
	same(t, "Reduce of T", r.T().Reduce(2).At(3, 2), 34.0)
	same(t, "Reduce int", FromSlice([][]uint8{{200, 100}}).Reduce(1).DType(), Uint64)
	same(t, "Reduce int value", FromSlice([][]uint8{{200, 100}}).Reduce(1).Item(), 300.0)
	same(t, "Reduce empty", Zeros(2, 0).Reduce(1).Float64s(), []float64{0, 0})
	shapeError(t, "Reduce axis", func() { r.Reduce(3) }, "dimension 3", "(2, 3, 4)")
	shapeError(t, "ArgMin of none", func() { Zeros(0).ArgMin() }, "(0,)")
	shapeError(t, "Max of none", func() { Zeros(2, 0).Max() }, "(2, 0)")
	// The tree is a function of the length alone: any view sums to the same bits.
	x := make([]float64, 3000)
	for i := range x {
		x[i] = math.Sin(float64(i)) * math.Exp(float64(i%40))
	}
	a := FromFlat(x, 3000)
	same(t, "view", FromFlat(a.Reshape(30, 100).T().Float64s(), 100, 30).T().Sum(), a.Sum())
}

func TestNilArray(t *testing.T) {
	var a *Array
	same(t, "Shape", a.Shape(), []int(nil))
	same(t, "Size", a.Size(), 0)
	same(t, "String", a.String(), "<nil *gpukit.Array>")
	if !strings.Contains(a.HTML(), "nil") {
		t.Error(a.HTML())
	}
	shapeError(t, "Float64s", func() { a.Float64s() }, "nil")
	shapeError(t, "Sum", func() { a.Sum() }, "nil")
	shapeError(t, "T", func() { a.T() }, "nil")
	shapeError(t, "At", func() { a.At(0) }, "nil")
	shapeError(t, "As", func() { a.As(Float64) }, "nil")
	shapeError(t, "Max", func() { a.Max() }, "nil")
}

func TestArrayPrints(t *testing.T) {
	same(t, "1-d", FromSlice([]int{1, 2}).String(), "(2,) int64 array\n[1 2]")
	same(t, "not cut", Arange(10).String(), "(10,) float64 array\n[0 1 2 3 4 5 6 7 8 9]")
	same(t, "cut", Arange(101).String(), "(101,) float64 array\n[0 1 2 ... 98 99 100]")
	same(t, "2-d", Arange(4).Reshape(2, 2).String(), "(2, 2) float64 array\n[[0 1]\n [2 3]]")
	same(t, "0-d", Full(1.5).String(), "() float64 array\n1.5")
	same(t, "empty", Zeros(0, 2).String(), "(0, 2) float64 array")
	big := Zeros(1000, 1000)
	if n := len(big.String()); n > 1000 {
		t.Errorf("a big array prints %d bytes", n)
	}
	if n := len(Zeros(3, 1000, 1000).HTML()); n > 10000 {
		t.Errorf("a big array renders %d bytes", n)
	}
}
