package amd64_test

import (
	"syscall"
	"testing"
	"unsafe"

	"gpunotes/gpukit/internal/ir"
)

// TestPageEnds gives elements that end where memory ends: the code must not
// touch a byte behind them.
func TestPageEnds(t *testing.T) {
	page := syscall.Getpagesize()
	atEnd := func(bytes int) unsafe.Pointer {
		m, err := syscall.Mmap(-1, 0, 2*page, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
		if err != nil {
			t.Fatal(err)
		}
		if err := syscall.Mprotect(m[page:], syscall.PROT_NONE); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { syscall.Munmap(m) })
		return unsafe.Pointer(&m[page-bytes])
	}
	f := ir.NewFunc("edges", ir.F64, ir.Bool)
	x, p := f.AddParam("x", ir.F64), f.AddParam("p", ir.Bool)
	b := ir.NewBuilder(f)
	b.Yield(b.Op(ir.OpSelect, p, b.Op(ir.OpNeg, x), x), b.Op(ir.OpNot, p))
	for _, target := range targets(t) {
		m := load(t, f, target, nil)
		for n := 1; n <= 17; n++ {
			xs, ys := unsafe.Slice((*float64)(atEnd(8*n)), n), unsafe.Slice((*float64)(atEnd(8*n)), n)
			ps, qs := unsafe.Slice((*bool)(atEnd(n)), n), unsafe.Slice((*bool)(atEnd(n)), n)
			for i := range n {
				xs[i], ps[i] = float64(i+1), i%3 == 0
			}
			if err := m.Run(n, []any{xs, ps}, []any{ys, qs}, nil); err != nil {
				t.Fatal(err)
			}
			for i := range n {
				want := xs[i]
				if ps[i] {
					want = -want
				}
				if ys[i] != want || qs[i] == ps[i] {
					t.Errorf("%v, n = %d: worker %d gives %v, %v", target, n, i, ys[i], qs[i])
				}
			}
		}
	}
}
