package amd64_test

import (
	"reflect"
	"syscall"
	"testing"
	"unsafe"

	"gpunotes/gpukit/internal/ir"
)

// guarded is n elements next to a page that must not be touched: behind them, or before them.
// They must not be used after the end of the test.
func guarded(t *testing.T, typ ir.Type, n int, behind bool) elements {
	page := syscall.Getpagesize()
	bytes := (n*typ.Size() + page - 1) / page * page
	mem, err := syscall.Mmap(-1, 0, bytes+2*page, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { syscall.Munmap(mem) })
	for _, at := range []int{0, page + bytes} {
		if err := syscall.Mprotect(mem[at:at+page], syscall.PROT_NONE); err != nil {
			t.Fatal(err)
		}
	}
	first := page
	if behind {
		first = page + bytes - n*typ.Size()
	}
	return elements{typ, reflect.SliceAt(goTypes[typ], unsafe.Add(unsafe.Pointer(&mem[0]), first), n)}
}
