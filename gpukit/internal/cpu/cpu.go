package cpu

import (
	"errors"
	"fmt"
	"sync"

	"gpunotes/gpukit/internal/ir"
)

// Generator computes the elements of an operand that has no data. Fill sets
// dst[i] to element first + i*stride of its virtual storage. It may be called
// from several goroutines at once.
type Generator interface {
	Fill(dst []float64, first, stride int)
}

// Operand is an argument or a result of a launch: one element per worker, in a
// Go slice with strides. The element of worker (i0, i1, ...) is at
// Offset + i0*Strides[0] + i1*Strides[1] + ...; a stride may be 0 or negative.
type Operand struct {
	Type ir.Type
	// Data is a slice of the Go type of Type: []bool, []int8 ... []float64.
	Data any
	// Gen computes the elements if Data is nil; Type is then F64.
	Gen Generator
	// Index says that the element of a worker is its place itself, if Data and
	// Gen are nil; Type is then I64.
	Index bool
	// Scalar is the value for all workers if there is nothing of these.
	Scalar  ir.Bits
	Offset  int
	Strides []int // in elements, one per loop dimension
}

// Launch says what to run a program on.
type Launch struct {
	// Shape has the loop dimensions. Workers are numbered in C order. With a 0
	// in it nothing runs; without dimensions there is one worker.
	Shape []int
	// In has one operand per parameter, Out one per result, with Data. Elements
	// of results must not overlap each other. A result may be the memory of an
	// argument if every worker reads the element that it writes.
	In, Out []Operand
	// Mems has a slice of the Go type of its elements for each Global memory of
	// the function; nil is an empty one. They may overlap each other and the operands; what workers
	// then see of each other's writes is open.
	Mems []any
	// Group is the number of consecutive workers that are a block of threads; 0
	// makes each worker one of its own. A function whose workers meet can have
	// up to MaxGroup.
	Group int
	// DynamicShared is the length of Shared memories of length 0.
	DynamicShared int
	// Print, if not nil, takes the lines that workers print, at the end of Run
	// and from its goroutine: those of the lowest workers first, at most
	// MaxLines, and then one that says how many there were besides.
	Print func(line string)
	// Goroutines is the most that may work, with the caller's; below 1 means 1.
	Goroutines int
	// Cancelled, if not nil, is polled every few microseconds, by one goroutine
	// at a time. Once it is true Run ends soon with ErrCancelled, even from a
	// loop without end.
	Cancelled func() bool
	// Progress, if not nil, takes at the same places how many of the equal parts of
	// the work are done, and at the begin, with 0.
	Progress func(done, total int)
}

// MaxGroup is the largest block of threads that can meet.
const MaxGroup = 1024

// MaxLines is how many printed lines of a run are kept.
const MaxLines = 10_000

// ErrCancelled is the result of a Run that Launch.Cancelled ended.
var ErrCancelled = errors.New("interrupted")

// WorkerError says which worker failed, the lowest that does, and why.
type WorkerError struct {
	Worker int   // its number in C order
	Index  []int // its place in Shape
	Args   []ir.Bits
	Err    error // an *ir.FaultError
}

// Error names the fault and the worker.
func (e *WorkerError) Error() string {
	if len(e.Index) == 0 {
		return e.Err.Error()
	}
	return fmt.Sprintf("%v, for worker %v", e.Err, e.Index)
}

// Unwrap returns the fault.
func (e *WorkerError) Unwrap() error { return e.Err }

// Program is a compiled function. It is safe for concurrent use.
type Program struct {
	f       *ir.Func
	used    []bool // by parameter
	meets   bool   // workers of a block wait for each other or share memory
	inPlace bool   // running a worker again would not give the same: faults are reported on the spot
	globals []int  // the memories that a launch gives

	mu    sync.RWMutex
	plans map[string]*plan // by classes of the parameters
	runs  sync.Pool

	native *machineProgram // nil if there is none
	crews  sync.Pool
}

// Compile makes a program of a verified function without calls. The function
// must not change afterwards. With machine code, whatever that does not have runs in
// the portable engine: Program.Refused tells.
func Compile(f *ir.Func, o Options) (*Program, error) {
	if err := ir.Verify(f); err != nil {
		return nil, err
	}
	var err error
	used := make([]bool, len(f.Types))
	ir.Walk(f.Body, func(in *ir.Instr) {
		if in.Op == ir.OpCall {
			err = fmt.Errorf("cpu: internal error: %s calls %s, which was not inlined", f.Name, in.Callee.Name)
		}
		for _, a := range in.Args {
			used[a] = true
		}
	})
	if err != nil {
		return nil, err
	}
	p := &Program{f: f, plans: map[string]*plan{}}
	for i, m := range f.Mems {
		p.meets = p.meets || m.Space == ir.Shared
		p.inPlace = true
		if m.Space == ir.Global {
			p.globals = append(p.globals, i)
		}
	}
	ir.Walk(f.Body, func(in *ir.Instr) {
		switch in.Op {
		case ir.OpBarrier, ir.OpWarpBarrier, ir.OpShuffle, ir.OpVote:
			p.meets, p.inPlace = true, true
		case ir.OpPrint:
			p.inPlace = true
		}
	})
	for _, q := range f.Params {
		p.used = append(p.used, used[q.Value])
	}
	for _, t := range MachineTargets() {
		if engineOf(t) == o.Engine && !p.meets {
			p.native = &machineProgram{given: f, target: t, body: o.Body, load: LoadNative, variants: map[string]*variant{}}
		}
	}
	return p, nil
}

// planFor returns the plan for parameters of the given classes.
func (p *Program) planFor(classes []class) *plan {
	var buf [32]byte
	key := buf[:0]
	for _, c := range classes {
		key = append(key, byte(c))
	}
	p.mu.RLock()
	pl := p.plans[string(key)]
	p.mu.RUnlock()
	if pl != nil {
		return pl
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if pl := p.plans[string(key)]; pl != nil {
		return pl
	}
	pl = newPlan(p, append([]class(nil), classes...))
	p.plans[string(key)] = pl
	return pl
}
