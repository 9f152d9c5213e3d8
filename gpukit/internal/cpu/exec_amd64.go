//go:build linux || darwin || freebsd

package cpu

import (
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"sync"
	"syscall"
	"unsafe"

	"gpunotes/gpukit/internal/codegen/amd64"
	"gpunotes/gpukit/internal/ir"
)

// This file is the only one of the package that uses unsafe, maps memory and
// runs code that Go did not compile. What makes that safe: the code is a leaf
// that neither touches the stack nor lasts long (it returns when its budget is
// used up), its arguments are reachable from Go during the call, and no page
// is ever both writable and executable.

//go:noescape
func callMachineCode(entry uintptr, args *machineArgs)

func cpuid(leaf, sub uint32) (a, b, c, d uint32)

func xgetbv() (low uint32)

// machineArgs has the layout that package amd64 fixes.
type machineArgs struct {
	n       uint64
	budget  uint64
	resume  uint64 // of the code's own, not a Go pointer
	state   unsafe.Pointer
	streams *unsafe.Pointer
	fault   uint64
}

// The layout, checked by the compiler: each line is an index out of range if
// an offset is wrong.
var _ = [1]struct{}{}[unsafe.Offsetof(machineArgs{}.n)-amd64.ArgN]
var _ = [1]struct{}{}[unsafe.Offsetof(machineArgs{}.budget)-amd64.ArgBudget]
var _ = [1]struct{}{}[unsafe.Offsetof(machineArgs{}.resume)-amd64.ArgResume]
var _ = [1]struct{}{}[unsafe.Offsetof(machineArgs{}.state)-amd64.ArgState]
var _ = [1]struct{}{}[unsafe.Offsetof(machineArgs{}.streams)-amd64.ArgStreams]
var _ = [1]struct{}{}[unsafe.Offsetof(machineArgs{}.fault)-amd64.ArgFault]
var _ = [1]struct{}{}[unsafe.Sizeof(machineArgs{})-amd64.ArgSize]

// MachineTargets lists the instruction sets that this machine runs, best
// first. It is empty where code cannot be made executable.
func MachineTargets() []amd64.Target { return machineTargets() }

var machineTargets = sync.OnceValue(func() []amd64.Target {
	const (
		fma, osxsave, avx = 1 << 12, 1 << 27, 1 << 28 // leaf 1, ECX
		avx2              = 1 << 5                    // leaf 7, EBX
		avx512            = 1<<16 | 1<<17 | 1<<30 | 1<<31
		ymmState          = 6 // XCR0: the system saves xmm and ymm,
		zmmState          = 0xE6
	)
	if most, _, _, _ := cpuid(0, 0); most < 7 {
		return nil
	}
	_, _, c, _ := cpuid(1, 0)
	if c&osxsave == 0 || c&avx == 0 || c&fma == 0 {
		return nil
	}
	_, b, _, _ := cpuid(7, 0)
	state := xgetbv()
	if b&avx2 == 0 || state&ymmState != ymmState {
		return nil
	}
	m, err := mapCode([]byte{0xC3}) // ret
	if err != nil {
		return nil
	}
	callMachineCode(m.entry(), &machineArgs{})
	m.free()
	// Darwin turns zmm state on at its first use; XCR0 does not tell.
	if uint32(b)&avx512 == avx512 && state&zmmState == zmmState {
		return []amd64.Target{amd64.AVX512, amd64.AVX2}
	}
	return []amd64.Target{amd64.AVX2}
})

// ErrMachineFault says that a worker failed: divided by zero, shifted by a
// negative count. The portable engine finds which worker and why.
var ErrMachineFault = errors.New("a worker failed in machine code")

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

// MachineCode is machine code of a function, ready to run. It is safe for
// concurrent use; its pages are given back when nobody has it any more.
type MachineCode struct {
	f       *ir.Func
	uniform []bool
	code    *amd64.Code
	pages   codePages
	budget  uint64
	calls   sync.Pool // of *machineCall
}

// machineCall is what one run at a time needs. It is on the heap, where
// nothing moves.
type machineCall struct {
	args    machineArgs
	streams []unsafe.Pointer
	state   []byte
}

// callInstructions is about how many instructions a call executes before it
// comes back to Go, which stops the world or hears of Stop only then: some ten
// microseconds.
const callInstructions = 100_000

// LoadMachineCode compiles f for a target of MachineTargets. The error is an
// *amd64.Unsupported, or says why code cannot run here. uniform marks the
// parameters with one value for all workers; nil means none.
func LoadMachineCode(f *ir.Func, t amd64.Target, uniform []bool) (*MachineCode, error) {
	if len(MachineTargets()) == 0 {
		return nil, errors.New("this machine does not run machine code made at run time")
	}
	code, err := amd64.Compile(f, t, amd64.Options{Uniform: uniform})
	if err != nil {
		return nil, err
	}
	pages, err := mapCode(code.Bytes)
	if err != nil {
		return nil, err
	}
	m := &MachineCode{f: f, uniform: append([]bool(nil), uniform...), code: code, pages: pages}
	m.budget = max(1, callInstructions/uint64(code.Instructions))
	runtime.AddCleanup(m, codePages.free, pages)
	return m, nil
}

// Code is what Compile made.
func (m *MachineCode) Code() *amd64.Code { return m.code }

// SetBudget changes the number of back edges of one call, for tests.
func (m *MachineCode) SetBudget(n uint64) { m.budget = n }

// Run runs n workers. in and out have one slice per parameter and result, of
// the Go type of its type, with n elements, or one where the parameter is
// uniform. cancelled, if not nil, is polled every few ten microseconds; Run
// then ends with ErrCancelled. When a worker fails it ends with
// ErrMachineFault, the results unspecified. A result may be the slice of a parameter; no
// other overlap is allowed. The error also tells of slices that do not fit.
func (m *MachineCode) Run(n int, in, out []any, cancelled func() bool) error {
	if len(in) != len(m.f.Params) || len(out) != len(m.f.Results) {
		return fmt.Errorf("cpu: %s takes %d slices and gives %d, not %d and %d", m.f.Name, len(m.f.Params), len(m.f.Results), len(in), len(out))
	}
	c, _ := m.calls.Get().(*machineCall)
	if c == nil {
		// The pool of calls belongs to m, so the size of the state fits.
		c = &machineCall{streams: make([]unsafe.Pointer, len(in)+len(out)+1), state: make([]byte, m.code.State+63)}
	}
	defer func() {
		clear(c.streams)
		m.calls.Put(c)
	}()
	for i, s := range in {
		want := n
		if m.uniform != nil && m.uniform[i] {
			want = 1
		}
		p, err := streamOf(s, m.f.Types[m.f.Params[i].Value], want)
		if err != nil {
			return fmt.Errorf("cpu: argument %d of %s: %w", i+1, m.f.Name, err)
		}
		c.streams[i] = p
	}
	for i, s := range out {
		p, err := streamOf(s, m.f.Results[i], n)
		if err != nil {
			return fmt.Errorf("cpu: result %d of %s: %w", i+1, m.f.Name, err)
		}
		c.streams[len(in)+i] = p
	}
	if n <= 0 {
		return nil
	}
	state := unsafe.Pointer(&c.state[-uintptr(unsafe.Pointer(&c.state[0]))&63])
	c.args = machineArgs{n: uint64(n), state: state, streams: &c.streams[0]}
	for {
		c.args.budget = m.budget
		callMachineCode(m.pages.entry(), &c.args)
		if c.args.fault != 0 {
			return ErrMachineFault
		}
		if c.args.resume == 0 {
			break
		}
		if cancelled != nil && cancelled() {
			return ErrCancelled
		}
	}
	runtime.KeepAlive(m)
	return nil
}

// streamOf returns the elements of a slice of at least n elements of type t.
func streamOf(s any, t ir.Type, n int) (unsafe.Pointer, error) {
	v := reflect.ValueOf(s)
	if v.Kind() != reflect.Slice || v.Type().Elem().Kind() != machineKinds[t] {
		return nil, fmt.Errorf("a %T, want a slice of %v", s, t)
	}
	if v.Len() < n {
		return nil, fmt.Errorf("%d elements, want %d", v.Len(), n)
	}
	return v.UnsafePointer(), nil
}

var machineKinds = map[ir.Type]reflect.Kind{ir.Bool: reflect.Bool, ir.I64: reflect.Int64, ir.U64: reflect.Uint64, ir.F64: reflect.Float64}
