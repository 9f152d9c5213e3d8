package gpukit

import (
	"fmt"
	"strings"
)

// name is the element of an argument or result at an address of the device, as
// written in Go, "" if there is none.
func (l *gpuLaunch) name(address uint64) string {
	for b := range l.homes {
		size := uint64(b.array.DType().Size())
		lo, n := spanOf(b.array)
		first := l.address(b) + uint64(lo)*size
		if n == 0 || address < first || address >= first+uint64(n)*size {
			continue
		}
		if idx := b.find(int((address - l.address(b)) / size)); idx != nil {
			return b.name + "[" + strings.Trim(strings.ReplaceAll(fmt.Sprint(idx), " ", "]["), "[]") + "]"
		}
		return "an element of " + b.name
	}
	return ""
}

// sharedName is the element of an array in shared memory, off bytes behind the start of a
// variable of the PTX, "" if there is none.
func (l *gpuLaunch) sharedName(variable string, off int) string {
	for _, v := range l.variant.entry.Shared {
		if v.Name == variable {
			name := v.Memory.Name
			if v.Memory.Len == 0 {
				name = "the dynamic memory"
			}
			return fmt.Sprintf("element %d of %s", off/v.Memory.Elem.Size(), name)
		}
	}
	return ""
}

// find is the index of the element of the array that is element k of its storage,
// nil if there is none or more than one.
func (b *bound) find(k int) []int {
	a := b.array
	idx := make([]int, len(a.shape))
	rest := k - a.offset
	// The strides from the largest on; reversed ones begin at their end.
	order := make([]int, 0, len(a.shape))
	for d := range a.shape {
		at := len(order)
		for at > 0 && max(a.strides[order[at-1]], -a.strides[order[at-1]]) < max(a.strides[d], -a.strides[d]) {
			at--
		}
		order = append(order[:at], append([]int{d}, order[at:]...)...)
	}
	for _, d := range order {
		if s := a.strides[d]; s < 0 {
			rest -= s * (a.shape[d] - 1)
		}
	}
	for _, d := range order {
		s := a.strides[d]
		switch {
		case a.shape[d] == 1:
			continue
		case s == 0:
			return nil
		}
		step := max(s, -s)
		i := rest / step
		if i < 0 || i >= a.shape[d] {
			return nil
		}
		rest -= i * step
		if idx[d] = i; s < 0 {
			idx[d] = a.shape[d] - 1 - i
		}
	}
	if rest != 0 || len(idx) == 0 {
		return nil
	}
	return idx
}
