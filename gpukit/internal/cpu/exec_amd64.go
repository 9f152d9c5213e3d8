//go:build linux || darwin

package cpu

import (
	"fmt"
	"sync"
	"syscall"
	"unsafe"

	"gpunotes/gpukit/internal/codegen/amd64"
	"gpunotes/gpukit/internal/ir"
)

// This file is the only one of the package that uses unsafe, maps memory and
// runs code that Go did not compile. What makes that safe: the code is a leaf
// that neither touches the stack nor lasts long (it returns when its budget is
// used up), what it is given is on the heap and reachable from Go during the call,
// and no page is ever both writable and executable.

//go:noescape
func callMachineCode(entry uintptr, block *[amd64.BlockSize / 8]uint64)

// storeFence orders what code wrote past the caches before what comes.
func storeFence()

func cpuid(leaf, sub uint32) (a, b, c, d uint32)

func xgetbv() (low uint32)

// MachineTargets lists the instruction sets that this machine runs, best
// first. It is empty where code cannot be made executable.
func MachineTargets() []amd64.Target { return machineTargets() }

var machineTargets = sync.OnceValue(func() []amd64.Target {
	const (
		fma, osxsave, avx = 1 << 12, 1 << 27, 1 << 28 // leaf 1, ECX
		popcnt            = 1 << 23
		lzcnt             = 1 << 5                 // leaf 0x80000001, ECX
		bmi1, avx2, bmi2  = 1 << 3, 1 << 5, 1 << 8 // leaf 7, EBX
		avx512            = 1<<16 | 1<<17 | 1<<28 | 1<<30 | 1<<31
		ymmState          = 6 // XCR0: the system saves xmm and ymm,
		zmmState          = 0xE6
	)
	if most, _, _, _ := cpuid(0, 0); most < 7 {
		return nil
	}
	_, _, c, _ := cpuid(1, 0)
	if c&osxsave == 0 || c&avx == 0 || c&fma == 0 || c&popcnt == 0 {
		return nil
	}
	if _, _, c, _ := cpuid(0x80000001, 0); c&lzcnt == 0 {
		return nil
	}
	_, b, _, _ := cpuid(7, 0)
	state := xgetbv()
	if b&avx2 == 0 || b&bmi1 == 0 || b&bmi2 == 0 || state&ymmState != ymmState {
		return nil
	}
	m, err := mapCode([]byte{0xC3}) // ret
	if err != nil {
		return nil
	}
	callMachineCode(m.entry(), new([amd64.BlockSize / 8]uint64))
	m.free()
	// Darwin turns zmm state on at its first use; XCR0 does not tell.
	if uint32(b)&avx512 == avx512 && state&zmmState == zmmState {
		return []amd64.Target{amd64.AVX512, amd64.AVX2}
	}
	return []amd64.Target{amd64.AVX2}
})

// codePages are pages with code, readable and executable.
type codePages struct{ mem []byte }

func mapCode(code []byte) (codePages, error) {
	page := syscall.Getpagesize()
	mem, err := syscall.Mmap(-1, 0, (len(code)+page-1)/page*page, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		return codePages{}, fmt.Errorf("no memory for machine code: %w", err)
	}
	copy(mem, code)
	if err := syscall.Mprotect(mem, syscall.PROT_READ|syscall.PROT_EXEC); err != nil {
		syscall.Munmap(mem)
		return codePages{}, fmt.Errorf("the system forbids to run code made at run time: %w", err)
	}
	return codePages{mem}, nil
}

func (p codePages) entry() uintptr { return uintptr(unsafe.Pointer(&p.mem[0])) }

func (p codePages) free() { syscall.Munmap(p.mem) }

// addressOf is where a slice that is not empty has its first element.
func addressOf[T element](s []T) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(s))) }

// dataOf is where a slice of the Go type of t has its first element, and how many
// there are.
func dataOf(data any, t ir.Type) (address uintptr, n int, ok bool) {
	switch s := data.(type) {
	case []float64:
		return addressOf(s), len(s), t == ir.F64
	case []float32:
		return addressOf(s), len(s), t == ir.F32
	case []int64:
		return addressOf(s), len(s), t == ir.I64
	case []int32:
		return addressOf(s), len(s), t == ir.I32
	case []int16:
		return addressOf(s), len(s), t == ir.I16
	case []int8:
		return addressOf(s), len(s), t == ir.I8
	case []uint64:
		return addressOf(s), len(s), t == ir.U64
	case []uint32:
		return addressOf(s), len(s), t == ir.U32
	case []uint16:
		return addressOf(s), len(s), t == ir.U16
	case []uint8:
		return addressOf(s), len(s), t == ir.U8
	case []bool:
		return addressOf(s), len(s), t == ir.Bool
	}
	return 0, 0, false
}
