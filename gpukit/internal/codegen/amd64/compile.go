package amd64

import (
	"fmt"

	"gpunotes/gpukit/internal/ir"
)

// Target is an instruction set.
type Target uint8

// The targets. AVX2 needs AVX, AVX2 and FMA; AVX512 needs the subsets F, DQ,
// BW and VL.
const (
	AVX2 Target = iota
	AVX512
)

// String names the target.
func (t Target) String() string { return [...]string{"AVX2", "AVX-512"}[t] }

// Lanes is the number of 64-bit lanes of a vector: 4 or 8.
func (t Target) Lanes() int { return 4 << t }

// The layout of the block of arguments that the code gets a pointer to, as
// offsets in bytes; every word has 8 bytes.
const (
	// ArgN is the number of workers. Any number: the last vector is masked.
	ArgN = 0
	// ArgBudget, at least 1, bounds the back edges that one call may take.
	ArgBudget = 8
	// ArgResume is 0 at first. If it is not 0 when the code returns, the budget
	// is used up: call again with the same block (but for the budget), the same
	// streams and the same state.
	ArgResume = 16
	// ArgState points to Code.State bytes, aligned to 64.
	ArgState = 24
	// ArgStreams points to one pointer per parameter and then one per result,
	// each to contiguous elements (of 8 bytes, Bool of 1 byte), or to a single
	// element where the parameter is Uniform. A result may be the stream of a
	// parameter; no other overlap is allowed.
	ArgStreams = 32
	// ArgFault is set to 1 when a worker fails: a division by zero, a shift by a
	// negative count. The results are unspecified then, and which worker it was
	// is for another engine to find out.
	ArgFault = 40
	// ArgSize is the size of the block.
	ArgSize = 48
)

// Options change what Compile makes.
type Options struct {
	// Uniform marks the parameters whose stream is one element for all workers.
	// Nil means none.
	Uniform []bool
	// Listing asks for Code.Listing.
	Listing bool
}

// Code is machine code.
type Code struct {
	Target Target
	// Bytes is code and then constants. It runs at any address that is a
	// multiple of 64, from its first byte, with the argument block in RAX.
	Bytes []byte
	// State is the size of the state area.
	State int
	// Instructions counts them. Between two back edges none runs twice.
	Instructions int
	// Spills is how many values live in memory.
	Spills int
	// Listing has one line per instruction in Intel syntax, if asked for.
	Listing string
}

// Unsupported says that a function has something that this package does not
// compile; another engine has to run it.
type Unsupported struct {
	Func   string
	Pos    ir.Pos
	Reason string
}

// Error names the place and the operation.
func (e *Unsupported) Error() string {
	s := fmt.Sprintf("amd64: %s: %s", e.Func, e.Reason)
	if e.Pos.Line != 0 {
		s = e.Pos.String() + ": " + s
	}
	return s
}

// Compile compiles a verified function without calls. The error is
// *Unsupported. The same function and options give the same bytes.
func Compile(f *ir.Func, t Target, o Options) (*Code, error) {
	l := newLowerer(f, t, o)
	l.function()
	if l.err != nil {
		return nil, l.err
	}
	e := newEmitter(l)
	bytes, listing := l.a.assemble(e.code, o.Listing)
	return &Code{Target: t, Bytes: bytes, State: e.stateSize, Instructions: l.a.count, Spills: e.alloc.spills, Listing: listing}, nil
}
