package gpukit

import (
	"fmt"
	"math"

	"gpunotes/gpukit/internal/ir"
	"gpunotes/gpukit/internal/shape"
)

// fan is the number of neighbours that one step of a reduction brings together.
const fan = 1024

// Sum returns the sum of the elements, 0 for an empty array: of integers with
// wrap-around in 64 bits, of bools their number, of floats in float64 along one
// fixed tree, so that the bits are the same on every device. The tree: the
// elements in C order are cut into groups of 1024; within a group element i and
// element i+512 are added, then i and i+256, and so on; the sums of the groups
// are summed in the same way. A NaN makes the sum NaN.
func (a *Array) Sum() float64 {
	a.must("Sum")
	t := a.DType()
	if t.ir().IsFloat() {
		if b, ok := a.total("sumLines"); ok {
			return ir.ToF64(b)
		}
	} else if b, ok := a.total("sumIntegerLines"); ok {
		if t.ir().IsUnsigned() {
			return float64(b)
		}
		return float64(int64(b))
	}
	a = a.local()
	if a.Size() == 0 {
		return 0
	}
	if !t.ir().IsFloat() {
		if t.ir().IsUnsigned() {
			return float64(a.wrapSum())
		}
		return float64(int64(a.wrapSum()))
	}
	var sums, group []float64
	flush := func() {
		if len(group) > 0 {
			sums = append(sums, treeSum(group))
			group = group[:0]
		}
	}
	a.each(func(k int) {
		group = append(group, toFloat(t, a.store.bits(k)))
		if len(group) == fan {
			flush()
		}
	})
	flush()
	for len(sums) > 1 {
		var next []float64
		for i := 0; i < len(sums); i += fan {
			next = append(next, treeSum(sums[i:min(i+fan, len(sums))]))
		}
		sums = next
	}
	return sums[0]
}

// treeSum adds up to fan values, in place, as one thread block would.
func treeSum(x []float64) float64 {
	for h := fan / 2; h > 0; h /= 2 {
		for i := 0; i < h && i+h < len(x); i++ {
			x[i] += x[i+h]
		}
		x = x[:min(h, len(x))]
	}
	return x[0]
}

// Min returns the smallest element: NaN if any is, -0 below +0. It panics with
// a *ShapeError on an empty array.
func (a *Array) Min() float64 { return a.extreme("Min", ir.OpMin) }

// Max returns the largest element: NaN if any is, +0 above -0. It panics with
// a *ShapeError on an empty array.
func (a *Array) Max() float64 { return a.extreme("Max", ir.OpMax) }

func (a *Array) extreme(op string, o ir.Op) float64 {
	a.must(op)
	kernel := "minLines"
	if o == ir.OpMax {
		kernel = "maxLines"
	}
	if b, ok := a.total(kernel); ok {
		return ir.ToF64(b)
	}
	a = a.local()
	if a.Size() == 0 {
		panic(&ShapeError{Op: op, Detail: fmt.Sprintf("an array of shape %s has no elements", shape.Format(a.shape))})
	}
	t := a.DType()
	if t == Float64 {
		best := math.Inf(1)
		if o == ir.OpMax {
			best = math.Inf(-1)
			a.each(func(k int) { best = max(best, ir.ToF64(a.store.bits(k))) })
		} else {
			a.each(func(k int) { best = min(best, ir.ToF64(a.store.bits(k))) })
		}
		return best
	}
	types := []ir.Type{t.ir(), t.ir()}
	if t == Bool {
		types[0], types[1] = ir.U8, ir.U8
	}
	var best ir.Bits
	first := true
	a.each(func(k int) {
		b := a.store.bits(k)
		if !first {
			b, _ = o.Row().Eval(types, []ir.Bits{best, b})
		}
		best, first = b, false
	})
	return toFloat(t, best)
}

// ArgMin returns the index of the smallest element as Min finds it, the first
// in C order if there are several; the first NaN if there is one. It panics with
// a *ShapeError on an empty array.
func (a *Array) ArgMin() []int {
	a.must("ArgMin")
	a = a.local()
	if a.Size() == 0 {
		panic(&ShapeError{Op: "ArgMin", Detail: fmt.Sprintf("an array of shape %s has no elements", shape.Format(a.shape))})
	}
	t := a.DType().ir()
	if t == ir.Bool {
		t = ir.U8
	}
	var best ir.Bits
	at, n := -1, 0
	a.each(func(k int) {
		b := a.store.bits(k)
		if at < 0 || before(t, b, best) {
			best, at = b, n
		}
		n++
	})
	idx := make([]int, len(a.shape))
	for i := len(idx) - 1; i >= 0; i-- {
		idx[i] = at % a.shape[i]
		at /= a.shape[i]
	}
	return idx
}

// before reports whether x comes before y where NaN is least and -0 is below
// +0.
func before(t ir.Type, x, y ir.Bits) bool {
	c, nan := ir.Compare(t, x, y)
	switch {
	case !nan && c != 0:
		return c < 0
	case !t.IsFloat():
		return false
	case !nan: // equal: only the sign of a zero can tell them apart
		return math.Signbit(toFloat(DType(t), x)) && !math.Signbit(toFloat(DType(t), y))
	}
	return math.IsNaN(toFloat(DType(t), x)) && !math.IsNaN(toFloat(DType(t), y))
}

// Reduce returns the sums along one dimension, which is left out of the shape,
// each as Sum gives it: float64 for float arrays, Int64 or Uint64 for integers,
// Int64 for bools. Along a dimension of size 0 they are 0. It panics with a *ShapeError
// if there is no such dimension.
func (a *Array) Reduce(axis int) *Array {
	a.must("Reduce")
	if axis < 0 || axis >= len(a.shape) {
		panic(&ShapeError{Op: "Reduce", Detail: fmt.Sprintf("dimension %d is out of range for shape %s", axis, shape.Format(a.shape))})
	}
	t := Float64
	switch from := a.DType().ir(); {
	case from.IsUnsigned():
		t = Uint64
	case !from.IsFloat():
		t = Int64
	}
	kernel := "sumLines"
	if t != Float64 {
		kernel = "sumIntegerLines"
	}
	last := &Array{a.store, a.offset, append(without(a.shape, axis), a.shape[axis]), append(without(a.strides, axis), a.strides[axis])}
	if r, ok := last.reduced(kernel, without(a.shape, axis)); ok {
		deviceMemoryOf(r.store).t = t // int64 and uint64 are the same bits
		return r
	}
	from := a
	a = a.local()
	rest := &Array{a.store, a.offset, without(a.shape, axis), without(a.strides, axis)}
	out := makeStorage(t, rest.Size())
	i := 0
	rest.each(func(k int) {
		line := &Array{a.store, k, []int{a.shape[axis]}, []int{a.strides[axis]}}
		if t == Float64 {
			out.setBits(i, ir.FromF64(line.Sum()))
		} else {
			out.setBits(i, line.wrapSum())
		}
		i++
	})
	return from.beside("Reduce", newArray(out, rest.shape))
}

func without(s []int, i int) []int {
	return append(append([]int{}, s[:i]...), s[i+1:]...)
}

// wrapSum is the sum of integers or bools, modulo 2^64.
func (a *Array) wrapSum() (sum ir.Bits) {
	a.each(func(k int) { sum += a.store.bits(k) })
	return sum
}
