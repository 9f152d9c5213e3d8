package shape

import (
	"cmp"
	"slices"
)

// Span is a strided view of a storage: element index i of the view lies at
// Offset + sum(i[k]*Strides[k]).
type Span struct {
	Offset         int
	Shape, Strides []int
}

// Bounds returns the lowest and the highest storage index that s touches; ok
// is false if s is empty.
func (s Span) Bounds() (lo, hi int, ok bool) {
	lo, hi = s.Offset, s.Offset
	for k, d := range s.Shape {
		switch {
		case d == 0:
			return 0, 0, false
		case s.Strides[k] < 0:
			lo += (d - 1) * s.Strides[k]
		default:
			hi += (d - 1) * s.Strides[k]
		}
	}
	return lo, hi, true
}

// Overlaps reports whether two views of one storage may share an element.
// false is certain: one is empty, their index ranges are apart, or their
// indices never agree modulo the strides, as two columns of a matrix. true is
// certain only for views without gaps.
func Overlaps(a, b Span) bool {
	alo, ahi, aok := a.Bounds()
	blo, bhi, bok := b.Bounds()
	if !aok || !bok || ahi < blo || bhi < alo {
		return false
	}
	g := 0
	for _, s := range []Span{a, b} {
		for k, d := range s.Shape {
			if d > 1 {
				g = gcd(g, s.Strides[k])
			}
		}
	}
	if g == 0 {
		return a.Offset == b.Offset // one element each
	}
	return (a.Offset-b.Offset)%g == 0
}

// SameElements reports whether two views of one storage have the same shape
// and the same element at every index: reading and writing in one walk then
// never meets another index's element.
func SameElements(a, b Span) bool {
	if !slices.Equal(a.Shape, b.Shape) {
		return false
	}
	if slices.Contains(a.Shape, 0) {
		return true
	}
	if a.Offset != b.Offset {
		return false
	}
	for k, d := range a.Shape {
		if d > 1 && a.Strides[k] != b.Strides[k] {
			return false
		}
	}
	return true
}

// walkLimit bounds the elements that SelfOverlaps visits one by one.
const walkLimit = 1 << 16

// SelfOverlaps reports whether two indices of shape s with strides st are one
// element, as in every broadcast dimension. false is certain. true is certain
// up to two dimensions, and above unless three or more dimensions of together
// more than walkLimit elements are interleaved (no stride steps over all that
// the smaller strides reach); such views are called overlapping unseen.
func SelfOverlaps(s, st []int) bool {
	type dim struct{ size, stride int }
	var dims []dim
	for k, d := range s {
		if d == 0 {
			return false
		}
		if d > 1 {
			dims = append(dims, dim{d, max(st[k], -st[k])})
		}
	}
	slices.SortFunc(dims, func(a, b dim) int { return cmp.Compare(a.stride, b.stride) })
	if len(dims) > 0 && dims[0].stride == 0 {
		return true
	}
	reach := 0 // highest index below which dims[:n] stay
	for _, d := range dims {
		reach += (d.size - 1) * d.stride
	}
	// A stride that steps over everything below it takes no part in a clash.
	for n := len(dims); n > 0; n = len(dims) {
		d := dims[n-1]
		below := reach - (d.size-1)*d.stride
		if d.stride <= below {
			break
		}
		dims, reach = dims[:n-1], below
	}
	switch len(dims) {
	case 0:
		return false
	case 2:
		a, b := dims[0], dims[1]
		g := gcd(a.stride, b.stride)
		return b.stride/g < a.size && a.stride/g < b.size
	}
	n := 1
	for _, d := range dims {
		if d.size > walkLimit/n {
			return true
		}
		n *= d.size
	}
	at := make([]int, 0, n)
	at = append(at, 0)
	for _, d := range dims {
		for have, i := len(at), 1; i < d.size; i++ {
			for _, k := range at[:have] {
				at = append(at, k+i*d.stride)
			}
		}
	}
	slices.Sort(at)
	return len(slices.Compact(at)) < n
}

// gcd of two numbers, never negative; gcd(0, x) is |x|.
func gcd(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return max(a, -a)
}
