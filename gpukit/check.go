package gpukit

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"gpunotes/gpukit/internal/cpu"
	"gpunotes/gpukit/internal/ir"
	"gpunotes/gpukit/internal/shape"
)

// The first call of a program, for each kind of arguments, is checked: what a few
// workers should compute is found out beforehand by the reference evaluator, from
// the function as it was written, and compared afterwards.

const (
	sampledWorkers = 4
	// raceTime is how long a launch that does not agree may be looked at for
	// threads that write to each other's elements.
	raceTime = 2 * time.Second
)

// sampleTime is how long a user may have to wait for it.
var sampleTime = time.Millisecond

// MiscompileError says that the device computed something else than the function
// means: a fault of gpukit, found by comparing a few workers of the first call
// with the reference evaluator. Outputs of the call are unspecified, and the
// function is refused on this device from then on.
type MiscompileError struct {
	Func   string
	Index  []int    // the worker's place in the loop dimensions; nil of a Launch
	Block  *Grid    // of a Launch: the position of the block
	Thread *Block   // of a Launch: the position of the thread in it
	Args   []string // its arguments, as "name = value"
	What   string   // the result or the element of an array
	Got    string
	Want   string
}

// Error says what to do: nothing can be wrong with the function.
func (e *MiscompileError) Error() string {
	return fmt.Sprintf("gpukit: internal error: %s computed %s = %s, but the function means %s, %s; this is a fault of gpukit, please report it with the function and this text",
		e.Func, e.What, e.Got, e.Want, workerPlace(e.Index, e.Block, e.Thread, e.Args))
}

// workerPlace names a worker.
func workerPlace(index []int, block *Grid, thread *Block, args []string) string {
	at := "at element " + shape.Format(index)
	if thread != nil {
		at = fmt.Sprintf("at block %v, thread %v", *block, *thread)
	}
	if len(args) > 0 {
		at += " with " + strings.Join(args, ", ")
	}
	return at
}

// Calls that run, on all devices, and those that have begun: while there are others
// they may write to the same arrays, and nothing can be said of the code.
var running, begun atomic.Int64

// checks are the self-checks of a program, by the kind of arguments.
type checks struct {
	mu   sync.Mutex
	done map[shape.Facts]int // how many workers agreed
	err  error
}

// unchecked says why a program's calls are not checked, or "".
func (c *call) unchecked(d *Device) string {
	switch {
	case c.fn.source.Atomics:
		return "the function has atomic operations"
	case c.fn.source.Meets:
		return "the threads of a block wait for each other"
	case d.options.fastMath:
		return "FastMath allows other bits"
	case d.options.unchecked:
		return "Unchecked leaves open what an index out of range does"
	}
	return ""
}

// sample is what a few workers of a call should do.
type sample struct {
	call    *call
	launch  cpu.Launch
	workers []sampled
	begun   int64 // calls, this one included
	kind    shape.Facts
}

type sampled struct {
	worker int
	args   []ir.Bits
	out    []ir.Bits
	mems   []*overlay
	err    error // it fails
}

// sampleFirst evaluates some workers if the call is the first of its kind.
func (c *call) sampleFirst(d *Device) (*sample, error) {
	checked := c.unchecked(d) == ""
	var kind shape.Facts
	if checked {
		var err error
		if kind, err = c.kind(d); err != nil {
			return nil, err
		}
	}
	k := &c.prog.checks
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.err != nil || !checked {
		return nil, k.err
	}
	if _, ok := k.done[kind]; ok || running.Load() != 1 {
		return nil, nil
	}
	if k.done == nil || len(k.done) > maxPrograms {
		k.done = map[shape.Facts]int{}
	}
	k.done[kind] = 0
	n, _ := shape.Size(c.loop)
	if n == 0 {
		return nil, nil
	}
	l, err := c.bind(d)
	if err != nil {
		return nil, err
	}
	s := &sample{call: c, launch: l.Launch, begun: begun.Load(), kind: kind}
	deadline := time.Now().Add(sampleTime)
	for i := range min(n, sampledWorkers) {
		w := n - 1 // tails are where blocks and grids end
		if i > 0 {
			w = rand.IntN(n)
		}
		x, ok := s.evaluate(w, deadline)
		if !ok {
			break
		}
		s.workers = append(s.workers, x)
	}
	return s, nil
}

// evaluate runs worker w on what memory holds now; ok is false if that takes too
// long.
func (s *sample) evaluate(w int, deadline time.Time) (x sampled, ok bool) {
	x = sampled{worker: w, args: workerArgs(&s.launch, w)}
	var mems []ir.Storage
	for i, m := range s.launch.Mems {
		o := &overlay{base: storageOf(m), zero: s.fresh(i), wrote: map[int]ir.Bits{}}
		x.mems = append(x.mems, o)
		mems = append(mems, o)
	}
	e := ir.Evaluator{Steps: 1 << 16, Cancelled: func() bool { return time.Now().After(deadline) }, DynamicShared: s.launch.DynamicShared}
	x.out, x.err = e.RunWorker(s.call.fn.source.Func, mems, x.args)
	var fault *ir.FaultError
	if errors.As(x.err, &fault) && (fault.Fault == ir.StepBudget || fault.Fault == ir.Cancelled) {
		return x, false
	}
	return x, time.Now().Before(deadline)
}

// compare says how the call, which has run without a fault, differs from the
// sample.
func (s *sample) compare() error {
	c := s.call
	k := &c.prog.checks
	if s.begun != begun.Load() {
		k.mu.Lock()
		defer k.mu.Unlock()
		delete(k.done, s.kind) // the next call may be alone
		return nil
	}
	for _, x := range s.workers {
		if x.err != nil {
			return s.fault(x, "no fault", "a fault", x.err.Error())
		}
		idx := unravel(x.worker, c.loop)
		for j := range x.out {
			o := &s.launch.Out[j]
			got := ir.Canonical(o.Type, storageOf(o.Data).bits(element(o, idx)))
			if want := ir.Canonical(o.Type, x.out[j]); got != want {
				return s.fault(x, c.outs[j].name, ir.FormatBits(o.Type, got), ir.FormatBits(o.Type, want))
			}
		}
		for m, o := range x.mems {
			for k, want := range o.wrote {
				t := o.base.dtype().ir()
				got := ir.Canonical(t, o.base.bits(k))
				if want = ir.Canonical(t, want); got != want && !s.raced(x) {
					return s.fault(x, fmt.Sprintf("element %d of %s", k, s.call.fn.source.Func.Mems[s.mem(m)].Name), ir.FormatBits(t, got), ir.FormatBits(t, want))
				}
			}
		}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.done[s.kind] = len(s.workers)
	return nil
}

// mem is Global memory number i of the function.
func (s *sample) mem(i int) ir.Mem {
	for m, mem := range s.call.fn.source.Func.Mems {
		if mem.Space != ir.Global {
			continue
		}
		if i == 0 {
			return ir.Mem(m)
		}
		i--
	}
	panic("gpukit: internal error: a launch has more memories than its function")
}

// fresh reports whether Global memory number i is a result that begins as zeros,
// whatever its memory holds before the call.
func (s *sample) fresh(i int) bool {
	for j := range s.call.outs {
		if o := &s.call.outs[j]; o.indexed && o.mem == s.mem(i) {
			return o.fresh
		}
	}
	return false
}

// raced reports whether in a launch some other thread writes what x reads or
// writes, or that cannot be excluded: then what is there says nothing about the
// code. A gufunc's workers have slices of their own.
func (s *sample) raced(x sampled) bool {
	c := s.call
	if c.grid.X == 0 {
		return false
	}
	for i := range c.args {
		for j := range c.args[:i] {
			if a, b := &c.args[i], &c.args[j]; (a.written || b.written) && a.array != nil && b.array != nil && overlap(a.array, b.array) {
				return true
			}
		}
	}
	deadline := time.Now().Add(raceTime)
	n, _ := shape.Size(c.loop)
	for w := range n {
		if w == x.worker {
			continue
		}
		y, ok := s.evaluate(w, deadline)
		if !ok {
			return true
		}
		for i, o := range y.mems {
			for at := range o.wrote {
				if _, both := x.mems[i].wrote[at]; both || slices.Contains(x.mems[i].read, at) {
					return true
				}
			}
		}
	}
	return false
}

// fault makes the error, which the program keeps.
func (s *sample) fault(x sampled, what, got, want string) error {
	e := &MiscompileError{Func: s.call.fn.name, What: what, Got: got, Want: want, Args: s.call.arguments(x.args)}
	e.Index, e.Block, e.Thread = s.call.worker(unravel(x.worker, s.call.loop))
	k := &s.call.prog.checks
	k.mu.Lock()
	defer k.mu.Unlock()
	k.err = e
	return e
}

// selfCheck says for Explain what checks the calls of this kind.
func (c *call) selfCheck(d *Device) string {
	if why := c.unchecked(d); why != "" {
		return "none: " + why
	}
	k := &c.prog.checks
	k.mu.Lock()
	defer k.mu.Unlock()
	if kind, err := c.kind(d); err == nil && k.done[kind] > 0 { // how many depends on the machine, and plans do not
		return "workers of the first call agreed with the reference evaluator"
	}
	return fmt.Sprintf("up to %d workers of the first call, within %v, against the reference evaluator", sampledWorkers, sampleTime)
}

// overlay is a memory whose writes are kept apart.
type overlay struct {
	base  storage
	zero  bool // its elements count as zeros
	wrote map[int]ir.Bits
	read  []int
}

func (o *overlay) Load(i int) ir.Bits {
	if b, ok := o.wrote[i]; ok {
		return b
	}
	o.read = append(o.read, i)
	if o.zero {
		return 0
	}
	return o.base.bits(i)
}

func (o *overlay) Store(i int, b ir.Bits) { o.wrote[i] = b }

// workerArgs are the parameters of worker w.
func workerArgs(l *cpu.Launch, w int) []ir.Bits {
	idx := unravel(w, l.Shape)
	args := make([]ir.Bits, len(l.In))
	for i := range l.In {
		args[i] = argument(&l.In[i], idx)
	}
	return args
}

// numbers tells the arguments of worker w that are no elements of arrays.
func (l *launch) numbers(w int) func(i int) (ir.Bits, bool) {
	idx := unravel(w, l.Shape)
	return func(i int) (ir.Bits, bool) {
		o := &l.In[i]
		if o.Data != nil || l.in[i] != nil && o.Gen == nil { // an array, here or on a device
			return 0, false
		}
		return argument(&l.In[i], idx), true
	}
}

// argument is what the worker at idx is given of an operand.
func argument(o *cpu.Operand, idx []int) ir.Bits {
	switch {
	case o.Data != nil:
		return storageOf(o.Data).bits(element(o, idx))
	case o.Gen != nil:
		var x [1]float64
		o.Gen.Fill(x[:], element(o, idx), 1)
		return ir.FromF64(x[0])
	case o.Index:
		return ir.Bits(element(o, idx))
	}
	return o.Scalar
}

// element is the place of the worker at idx in an operand.
func element(o *cpu.Operand, idx []int) int {
	k := o.Offset
	for d, i := range idx {
		k += i * o.Strides[d]
	}
	return k
}

// unravel is the place of worker w in C order.
func unravel(w int, dims []int) []int {
	idx := make([]int, len(dims))
	for d := len(dims) - 1; d >= 0; d-- {
		idx[d] = w % dims[d]
		w /= dims[d]
	}
	return idx
}
