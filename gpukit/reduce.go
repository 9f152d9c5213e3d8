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
// are summed in the same way.
func (a *Array) Sum() float64 {
	if a.Size() == 0 {
		return 0
	}
	t := a.DType()
	if !t.ir().IsFloat() {
		var sum ir.Bits
		a.each(func(k int) { sum += a.store.bits(k) })
		if t.ir().IsUnsigned() || t == Bool {
			return float64(sum)
		}
		return float64(int64(sum))
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
