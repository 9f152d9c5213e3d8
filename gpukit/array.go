package gpukit

import (
	"fmt"
	"reflect"

	"gonum.org/v1/gonum/mat"

	"gpunotes/gpukit/host"
	"gpunotes/gpukit/internal/cpu"
	"gpunotes/gpukit/internal/ir"
	"gpunotes/gpukit/internal/shape"
)

// Array is an n-dimensional array of one dtype. It is a view: shape and
// strides over storage that several arrays may share. Arange, Linspace, Full
// and MeshGrid give arrays without storage, whose elements are computed where
// they are used.
//
// Methods that walk the elements panic with ErrInterrupted when the user presses
// Stop, and with a *ShapeError when a copy would not fit into memory.
//
// Arrays of rank 0 hold one element; arrays with a dimension of size 0 hold
// none. Every method works on transposed, reversed, broadcast, empty and 0-d
// arrays. Constructors and views panic with a *ShapeError on arguments that do
// not fit, so that calls chain.
type Array struct {
	store   storage
	offset  int
	shape   []int
	strides []int // in elements
}

func newArray(s storage, dims []int) *Array {
	return &Array{store: s, shape: append([]int{}, dims...), strides: shape.Contiguous(dims)}
}

// sizeOf checks dims and returns their product.
func sizeOf(op string, dims []int) int {
	n, ok := shape.Size(dims)
	if !ok {
		panic(&ShapeError{Op: op, Detail: fmt.Sprintf("shape %s: dimensions must be >= 0 and their product must fit in an int", shape.Format(dims))})
	}
	return n
}

// zeros returns an array of zeros in memory. If it does not fit, the *ShapeError names op.
func zeros(op string, t DType, dims []int) *Array {
	n := sizeOf(op, dims)
	needRoom(op, t, n)
	return newArray(makeStorage(t, n), dims)
}

// FromSlice returns an array of the shape of a nested Go slice, such as
// []float64 (1-d), [][]int32 (2-d), and so on; int and uint elements become
// Int64 and Uint64. A flat slice of a fixed-width type is shared, not copied;
// any other is copied. Nested slices must be rectangular.
func FromSlice(x any) *Array {
	if s := storageOf(x); s != nil {
		return newArray(s, []int{s.len()})
	}
	v := reflect.ValueOf(x)
	var dims []int
	t := reflect.TypeOf(x)
	for w := v; t != nil && t.Kind() == reflect.Slice; t = t.Elem() {
		n := 0
		if w.IsValid() {
			n = w.Len()
		}
		dims = append(dims, n)
		if n > 0 {
			w = w.Index(0)
		} else {
			w = reflect.Value{}
		}
	}
	if t == nil || len(dims) == 0 || dtypeOfKind(t.Kind()) == 0 {
		panic(&ShapeError{Op: "FromSlice", Detail: fmt.Sprintf("a value of type %T is not a slice (of slices) of bool, integers or floats", x)})
	}
	a := zeros("FromSlice", dtypeOfKind(t.Kind()), dims)
	out, k := a.store, 0
	var fill func(v reflect.Value, axis int)
	fill = func(v reflect.Value, axis int) {
		if v.Len() != dims[axis] {
			panic(&ShapeError{Op: "FromSlice", Detail: fmt.Sprintf("ragged slice: a row of dimension %d has length %d, the first has %d", axis, v.Len(), dims[axis])})
		}
		for i := range v.Len() {
			if axis == len(dims)-1 {
				out.setBits(k, bitsOf(v.Index(i)))
				k++
			} else {
				fill(v.Index(i), axis+1)
			}
		}
	}
	fill(v, 0)
	return a
}

// FromFlat returns an array of the given shape over a flat Go slice in C order
// (the last dimension varies fastest), sharing it if its element type has a
// fixed width. The shape's size must be the slice's length.
func FromFlat(data any, dims ...int) *Array {
	s := storageOf(data)
	if s == nil {
		panic(&ShapeError{Op: "FromFlat", Detail: fmt.Sprintf("a value of type %T is not a flat slice of bool, integers or floats; FromSlice takes nested ones", data)})
	}
	if n := sizeOf("FromFlat", dims); n != s.len() {
		remedy := fmt.Sprintf("give dimensions whose product is %d, or shorten the slice", s.len())
		if len(dims) == 0 {
			remedy = fmt.Sprintf("name the size of each dimension, FromFlat(data, %d) for one", s.len())
		}
		panic(&ShapeError{Op: "FromFlat", Detail: fmt.Sprintf("%d elements do not fill shape %s, which has %d: %s", s.len(), shape.Format(dims), n, remedy)})
	}
	return newArray(s, dims)
}

// FromMatrix returns a float64 array (rows, columns) with a copy of m.
func FromMatrix(m mat.Matrix) *Array {
	if m == nil || reflect.ValueOf(m).Kind() == reflect.Pointer && reflect.ValueOf(m).IsNil() {
		panic(&ShapeError{Op: "FromMatrix", Detail: "a nil matrix"})
	}
	r, c := m.Dims()
	needRoom("FromMatrix", Float64, sizeOf("FromMatrix", []int{r, c}))
	data := make([]float64, 0, r*c)
	for i := range r {
		for j := range c {
			data = append(data, m.At(i, j))
		}
	}
	return FromFlat(data, r, c)
}

// Zeros returns a float64 array of zeros in memory; for another dtype use
// .As(gpukit.Float32).
func Zeros(dims ...int) *Array {
	return zeros("Zeros", Float64, dims)
}

// Full returns a float64 array whose elements all are v. It has no storage.
func Full(v float64, dims ...int) *Array {
	n := sizeOf("Full", dims)
	a := newArray(&generator{kind: constant, n: min(n, 1), start: v}, dims)
	clear(a.strides)
	return a
}

// Like returns an array of zeros in memory with the shape and dtype of a.
func Like(a *Array) *Array {
	a.must("Like")
	return zeros("Like", a.DType(), a.shape)
}

// Arange returns the float64 array 0, 1, ... n-1. It has no storage.
func Arange(n int) *Array {
	return newArray(&generator{kind: arange, n: sizeOf("Arange", []int{n})}, []int{n})
}

// Linspace returns n evenly spaced float64 values from start to stop, both
// included, by numpy's formula: element k is k*step + start with
// step = (stop-start)/(n-1), and the last is exactly stop. n = 1 gives start,
// n = 0 an empty array. It has no storage.
func Linspace(start, stop float64, n int) *Array {
	sizeOf("Linspace", []int{n})
	return newArray(newLinspace(start, stop, n), []int{n})
}

// MeshGrid returns the coordinates of the points of a grid, in xy order: for x
// of length nx and y of length ny both results have shape (ny, nx), and element
// (i, j) is x[j] of the first and y[i] of the second. The results are views of
// x and y: nothing is copied.
func MeshGrid(x, y *Array) (*Array, *Array) {
	x.must("MeshGrid")
	y.must("MeshGrid")
	for i, a := range []*Array{x, y} {
		if a.NDim() != 1 {
			panic(&ShapeError{Op: "MeshGrid", Detail: fmt.Sprintf("argument %d has shape %s, want a 1-d array", i+1, shape.Format(a.shape))})
		}
	}
	nx, ny := x.shape[0], y.shape[0]
	return x.Reshape(1, nx).BroadcastTo(ny, nx), y.Reshape(ny, 1).BroadcastTo(ny, nx)
}

// must panics with a ShapeError if a is nil or its elements are gone.
func (a *Array) must(op string) {
	why := "the array is nil"
	if a != nil {
		why = a.unusable()
	}
	if why != "" {
		panic(&ShapeError{Op: op, Detail: why})
	}
}

// Shape returns the size of each dimension; nil for a nil array.
func (a *Array) Shape() []int {
	if a == nil {
		return nil
	}
	return append([]int{}, a.shape...)
}

// NDim is the number of dimensions.
func (a *Array) NDim() int {
	if a == nil {
		return 0
	}
	return len(a.shape)
}

// Size is the number of elements: 1 for a 0-d array, 0 for a nil one.
func (a *Array) Size() int {
	if a == nil {
		return 0
	}
	n, _ := shape.Size(a.shape)
	return n
}

// DType is the element type; 0 for a nil array.
func (a *Array) DType() DType {
	if a == nil || a.store == nil {
		return 0
	}
	return a.store.dtype()
}

func (a *Array) contiguous() bool { return shape.IsContiguous(a.shape, a.strides) }

// index returns the place of an element in the storage.
func (a *Array) index(op string, idx []int) int {
	a.must(op)
	if len(idx) != len(a.shape) {
		panic(&ShapeError{Op: op, Detail: fmt.Sprintf("%s for shape %s, which has %s", counted(len(idx), "index", "indices"), shape.Format(a.shape), counted(len(a.shape), "dimension", "dimensions"))})
	}
	k := a.offset
	for i, x := range idx {
		if x < 0 || x >= a.shape[i] {
			panic(&ShapeError{Op: op, Detail: fmt.Sprintf("index %d is out of range for dimension %d of size %d", x, i, a.shape[i])})
		}
		k += x * a.strides[i]
	}
	return k
}

// At returns the element at the given index as a float64: bool as 0 or 1,
// 64-bit integers beyond 2^53 rounded. It panics with a *ShapeError if the
// index does not fit.
func (a *Array) At(idx ...int) float64 {
	k := a.index("At", idx)
	return toFloat(a.DType(), a.store.bits(k))
}

func toFloat(t DType, b ir.Bits) float64 {
	if t == Bool {
		return float64(b)
	}
	return ir.ToF64(ir.Convert(ir.F64, t.ir(), b))
}

// Item returns the only element of an array of size 1, converted as by At. It panics
// with a *ShapeError on an array of another size.
func (a *Array) Item() float64 {
	a.must("Item")
	if a.Size() != 1 {
		panic(&ShapeError{Op: "Item", Detail: fmt.Sprintf("shape %s has %d elements, want 1", shape.Format(a.shape), a.Size())})
	}
	return a.At(make([]int, a.NDim())...)
}

// pollEvery is how many elements a method walks between two looks at the Stop
// button: a millisecond or so.
const pollEvery = 1 << 17

// each calls f with the storage index of every element in C order. When the user
// presses Stop on the way it panics with ErrInterrupted, as every method that
// walks the elements does.
func (a *Array) each(f func(k int)) {
	stop := host.Current().Interrupted
	if stop == nil || a.Size() < pollEvery {
		shape.Each(a.shape, a.strides, a.offset, f)
		return
	}
	n := 0
	shape.Each(a.shape, a.strides, a.offset, func(k int) {
		if n++; n%pollEvery == 0 && stop() {
			panic(ErrInterrupted)
		}
		f(k)
	})
}

// As returns an array of dtype t with the elements of a converted: integers
// wrap, floats round to nearest even, float to integer truncates and saturates,
// NaN gives 0, bool counts as 0 or 1, and a number is true if it is not zero.
// It is a itself if the dtype is t already, else a copy in C order.
func (a *Array) As(t DType) *Array {
	a.must("As")
	if !t.valid() {
		panic(&ShapeError{Op: "As", Detail: fmt.Sprintf("%v is not a dtype; use gpukit.Float64 and its kin", t)})
	}
	from := a.DType()
	if t == from {
		return a
	}
	to := a
	a = a.local()
	as := zeros("As", t, a.shape)
	out, i := as.store, 0
	a.each(func(k int) {
		b := a.store.bits(k)
		switch {
		case from == Bool && t == Float64:
			b = ir.FromF64(float64(b))
		case from == Bool && t == Float32:
			b = ir.FromF32(float32(b))
		case t == Bool:
			b = ir.FromBool(toFloat(from, b) != 0)
		case from != Bool:
			b = ir.Convert(t.ir(), from.ir(), b)
		}
		out.setBits(i, b)
		i++
	})
	return to.beside("As", as)
}

// Float64s returns the elements in C order, converted as by At, in a new slice.
func (a *Array) Float64s() []float64 {
	a.must("Float64s")
	needRoom("Float64s", Float64, a.Size())
	a = a.local()
	out, _ := cpu.MakeArray[float64](a.Size())
	out = out[:0]
	if data, ok := sliceBehind(a.store).([]float64); ok && a.contiguous() && a.Size() > 0 {
		return append(out, data[a.offset:a.offset+a.Size()]...)
	}
	t := a.DType()
	a.each(func(k int) { out = append(out, toFloat(t, a.store.bits(k))) })
	return out
}

// Device is the name of the device on which the elements are, as Open takes it;
// "host" if they are in host memory, or computed where they are used, and "" for a
// nil array.
func (a *Array) Device() string {
	if a == nil {
		return ""
	}
	if home := a.home(); home != nil {
		return home.name
	}
	return "host"
}

// Host returns an array with the elements of a in host memory, independent of
// any device: a itself where they are there already, else a copy.
func (a *Array) Host() *Array {
	if a == nil || a.home() == nil {
		return a
	}
	a.must("Host")
	needRoom("Host", a.DType(), a.Size())
	return a.copy()
}

// Free gives back the memory that a and its views hold on a device; they cannot
// be used afterwards. Host memory is left to the garbage collector. Freeing
// twice, or a nil array, does nothing.
func (a *Array) Free() {
	if a == nil {
		return
	}
	if r, ok := a.store.(*resident); ok && !r.freed.Swap(true) {
		if m := deviceMemoryOf(r); m != nil {
			m.gpu.pool.put(m.block)
		}
	}
}

// Reshape returns the elements of a, in C order, under another shape of the
// same size; one dimension may be -1 and is inferred. It is a view where the
// strides allow it, else a copy.
func (a *Array) Reshape(dims ...int) *Array {
	a.must("Reshape")
	dims = append([]int{}, dims...)
	known, free := 1, -1
	for i, d := range dims {
		switch {
		case d == -1 && free < 0:
			free = i
		case d == -1:
			panic(&ShapeError{Op: "Reshape", Detail: "more than one dimension is -1"})
		default:
			known *= d
		}
	}
	if free >= 0 {
		if known <= 0 || a.Size()%known != 0 {
			panic(&ShapeError{Op: "Reshape", Detail: fmt.Sprintf("%d elements (shape %s) do not divide by %d to infer the -1 of %s", a.Size(), shape.Format(a.shape), known, shape.Format(dims))})
		}
		dims[free] = a.Size() / known
	}
	if n := sizeOf("Reshape", dims); n != a.Size() {
		panic(&ShapeError{Op: "Reshape", Detail: fmt.Sprintf("shape %s has %s, shape %s has %d", shape.Format(a.shape), counted(a.Size(), "element", "elements"), shape.Format(dims), n)})
	}
	if st, ok := shape.Reshape(a.shape, a.strides, dims); ok {
		return &Array{a.store, a.offset, dims, st}
	}
	needRoom("Reshape", a.DType(), a.Size())
	return a.beside("Reshape", a.copy()).Reshape(dims...)
}

// copy returns the elements of a in new host memory, in C order.
func (a *Array) copy() *Array {
	if deviceMemoryOf(a.store) != nil {
		if a = a.local(); a.contiguous() && a.offset == 0 {
			return a
		}
	}
	if a.contiguous() && a.Size() > 0 {
		return newArray(stored(a.store, a.offset, a.Size()), a.shape)
	}
	out := makeStorage(a.DType(), a.Size())
	i := 0
	a.each(func(k int) {
		out.setBits(i, a.store.bits(k))
		i++
	})
	return newArray(out, a.shape)
}

// T returns, as a view, a with its dimensions in another order: dimension d of the
// view is dimension axes[d] of a, as in numpy's transpose. Without axes the order is
// reversed. T(1, 0, 2) exchanges the first two of three. It panics with a
// *ShapeError unless axes names each dimension once.
func (a *Array) T(axes ...int) *Array {
	a.must("T")
	n := len(a.shape)
	t := &Array{a.store, a.offset, make([]int, n), make([]int, n)}
	if len(axes) == 0 {
		for d := range n {
			axes = append(axes, n-1-d)
		}
	}
	seen := make([]bool, n)
	for d, from := range axes {
		if len(axes) != n || from < 0 || from >= n || seen[from] {
			panic(&ShapeError{Op: "T", Detail: fmt.Sprintf("axes %v do not name each of the %d dimensions, 0 to %d, once", axes, n, n-1)})
		}
		seen[from] = true
		t.shape[d], t.strides[d] = a.shape[from], a.strides[from]
	}
	return t
}

// Slice returns, as a view, the elements from, from+step, ... before to along
// one dimension, as Python's a[from:to:step] does: negative from and to count
// from the end, both are cut to the dimension, and step may be negative but not
// zero. To reverse a dimension of size n write Slice(axis, n-1, -n-1, -1).
func (a *Array) Slice(axis, from, to, step int) *Array {
	a.must("Slice")
	if axis < 0 || axis >= len(a.shape) {
		panic(&ShapeError{Op: "Slice", Detail: fmt.Sprintf("dimension %d is out of range for shape %s", axis, shape.Format(a.shape))})
	}
	if step == 0 {
		panic(&ShapeError{Op: "Slice", Detail: "step is 0; it must be positive, or negative to walk backwards"})
	}
	first, n := shape.Slice(a.shape[axis], from, to, step)
	v := &Array{a.store, a.offset, append([]int{}, a.shape...), append([]int{}, a.strides...)}
	if n > 0 {
		v.offset += first * a.strides[axis]
	}
	v.shape[axis] = n
	v.strides[axis] *= step
	return v
}

// BroadcastTo returns a stretched to a larger shape by numpy's rule, as a view:
// dimensions are aligned at the last one, and those of size 1 repeat.
func (a *Array) BroadcastTo(dims ...int) *Array {
	a.must("BroadcastTo")
	sizeOf("BroadcastTo", dims)
	st, ok := shape.BroadcastStrides(a.shape, a.strides, dims)
	if !ok {
		panic(&ShapeError{Op: "BroadcastTo", Detail: fmt.Sprintf("shape %s does not stretch to %s: only dimensions of size 1 repeat", shape.Format(a.shape), shape.Format(dims))})
	}
	return &Array{a.store, a.offset, append([]int{}, dims...), st}
}

// Matrix returns a copy of a 2-d array as a gonum matrix, rows first. gonum has
// no empty matrices, so neither dimension may be 0: it panics with a *ShapeError then,
// and on an array of another rank.
func (a *Array) Matrix() *mat.Dense {
	a.must("Matrix")
	if len(a.shape) != 2 || a.Size() == 0 {
		panic(&ShapeError{Op: "Matrix", Detail: fmt.Sprintf("shape %s, want two dimensions, neither of size 0", shape.Format(a.shape))})
	}
	return mat.NewDense(a.shape[0], a.shape[1], a.Float64s())
}
