// Package shape is the arithmetic of shapes and strides: broadcasting, views
// and element counts, layout signatures and the walks they plan, and which
// views share elements, on plain ints. It knows no array, no dtype and no
// device.
//
// Strides count elements, not bytes; a stride may be zero (a broadcast
// dimension) or negative (a reversed one).
package shape

import (
	"fmt"
	"math/bits"
	"strings"
)

// Size is the number of elements of shape s; the size of a 0-d shape is 1. ok
// is false if a dimension is negative or the product does not fit an int.
func Size(s []int) (n int, ok bool) {
	n = 1
	zero := false
	for _, d := range s {
		if d < 0 {
			return 0, false
		}
		zero = zero || d == 0
	}
	if zero {
		return 0, true
	}
	for _, d := range s {
		hi, lo := bits.Mul64(uint64(n), uint64(d))
		if hi != 0 || lo > 1<<62 {
			return 0, false
		}
		n = int(lo)
	}
	return n, true
}

// Contiguous returns the strides of shape s in C order: the last dimension
// varies fastest.
func Contiguous(s []int) []int {
	st := make([]int, len(s))
	n := 1
	for i := len(s) - 1; i >= 0; i-- {
		st[i] = n
		n *= max(s[i], 1)
	}
	return st
}

// IsContiguous reports whether strides st walk shape s in C order without
// gaps. The strides of dimensions of size 1 do not matter, nor do any of an
// empty shape.
func IsContiguous(s, st []int) bool {
	n := 1
	for i := len(s) - 1; i >= 0; i-- {
		switch {
		case s[i] == 0:
			return true
		case s[i] != 1 && st[i] != n:
			n = -1
		}
		if n > 0 {
			n *= s[i]
		}
	}
	return n > 0
}

// Broadcast returns the common shape of the given ones by numpy's rule: align
// at the last dimension, 1 stretches to any size. conflict names the first two
// arguments that do not fit (and the dimension, counted from the end, 1 =
// last); it is nil on success.
func Broadcast(shapes ...[]int) (out []int, conflict *Conflict) {
	rank := 0
	for _, s := range shapes {
		rank = max(rank, len(s))
	}
	out = make([]int, rank)
	who := make([]int, rank)
	for i := range out {
		out[i], who[i] = 1, -1
	}
	for k, s := range shapes {
		for i, d := range s {
			j := rank - len(s) + i
			switch {
			case d == 1 || d == out[j]:
				if who[j] < 0 && d != 1 {
					who[j] = k
				}
			case out[j] == 1:
				out[j], who[j] = d, k
			default:
				return nil, &Conflict{First: who[j], Second: k, FromEnd: rank - j, FirstSize: out[j], SecondSize: d}
			}
		}
	}
	return out, nil
}

// Conflict says which two arguments of a broadcast differ and where.
type Conflict struct {
	First, Second         int // positions of the arguments
	FromEnd               int // dimension counted from the end, 1 = last
	FirstSize, SecondSize int
}

// BroadcastStrides returns the strides with which an array of shape s and
// strides st is walked over the larger shape to; ok is false if it cannot be.
func BroadcastStrides(s, st, to []int) (out []int, ok bool) {
	if len(s) > len(to) {
		return nil, false
	}
	out = make([]int, len(to))
	lead := len(to) - len(s)
	for i, d := range s {
		switch {
		case d == to[lead+i] && d != 1:
			out[lead+i] = st[i]
		case d == 1:
			out[lead+i] = 0
		default:
			return nil, false
		}
	}
	return out, true
}

// Reshape returns strides that walk the same elements in the same C order
// under shape to; ok is false if no strides can and a copy is needed. Both
// shapes must have the same size.
func Reshape(s, st, to []int) (out []int, ok bool) {
	if IsContiguous(s, st) {
		return Contiguous(to), true
	}
	// Match runs of old and new dimensions of equal product; each old run must
	// itself be walkable as one dimension.
	out = make([]int, len(to))
	i, j := 0, 0
	for i < len(s) && j < len(to) {
		i0, j0 := i, j
		a, b := s[i], to[j]
		i++
		j++
		for a != b {
			if a < b {
				if i == len(s) {
					return nil, false
				}
				a *= s[i]
				i++
			} else {
				if j == len(to) {
					return nil, false
				}
				b *= to[j]
				j++
			}
		}
		// The old run s[i0:i] as one dimension of stride last.
		last := 0
		first := true
		for k := i - 1; k >= i0; k-- {
			if s[k] == 1 {
				continue
			}
			if !first && st[k] != last {
				return nil, false
			}
			if first {
				last, first = st[k], false
				out[j-1] = st[k]
			}
			last *= s[k]
		}
		base := out[j-1]
		for k := j - 1; k >= j0; k-- {
			out[k] = base
			base *= to[k]
		}
	}
	return out, true
}

// Format writes a shape as numpy does: (3, 4), (5,), ().
func Format(s []int) string {
	if len(s) == 1 {
		return fmt.Sprintf("(%d,)", s[0])
	}
	var b strings.Builder
	b.WriteByte('(')
	for i, d := range s {
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprint(&b, d)
	}
	b.WriteByte(')')
	return b.String()
}

// Each calls f with offset + the strided index of every element of shape s, in
// C order.
func Each(s, st []int, offset int, f func(k int)) {
	if n, _ := Size(s); n == 0 {
		return
	}
	if len(s) == 0 {
		f(offset)
		return
	}
	last := len(s) - 1
	idx := make([]int, last)
	for {
		for j, k := 0, offset; j < s[last]; j, k = j+1, k+st[last] {
			f(k)
		}
		i := last - 1
		for ; i >= 0; i-- {
			idx[i]++
			offset += st[i]
			if idx[i] < s[i] {
				break
			}
			offset -= s[i] * st[i]
			idx[i] = 0
		}
		if i < 0 {
			return
		}
	}
}

// Slice resolves from:to:step over a dimension of size n as Python does and
// returns the first index and the number of elements. step is not zero.
func Slice(n, from, to, step int) (first, count int) {
	lo, hi := 0, n // where from and to may lie
	if step < 0 {
		lo, hi = -1, n-1
	}
	cut := func(x int) int {
		if x < 0 {
			x += n
		}
		return max(lo, min(hi, x))
	}
	from, to = cut(from), cut(to)
	if step > 0 {
		return from, max(0, (to-from+step-1)/step)
	}
	return from, max(0, (from-to-step-1)/-step)
}
