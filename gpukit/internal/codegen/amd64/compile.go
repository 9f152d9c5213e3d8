package amd64

import (
	"fmt"

	"gpunotes/gpukit/internal/ir"
)

// Target is an instruction set.
type Target uint8

// The targets. AVX2 needs AVX, AVX2, FMA, BMI1, BMI2, LZCNT and POPCNT; AVX512 needs the
// subsets F, DQ, BW, VL and CD besides.
const (
	AVX2 Target = iota
	AVX512
)

// String names the target.
func (t Target) String() string { return [...]string{"AVX2", "AVX-512"}[t] }

// Options change what Compile makes.
type Options struct {
	// Listing asks for Code.Listing.
	Listing bool
	// Parts, if positive, is how many times the smallest group a group is; for tests.
	Parts int
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
	// Lanes is how many workers run at a time: a group.
	Lanes int
	// Parts is how many registers a value of the narrowest lanes takes.
	Parts int
	// Hot counts the instructions between the beginning of a group and the jump to the
	// next one, what is rare not counted, and loops inside once.
	Hot int
	// Constants are the constants that stay in registers, PerCall and PerRow the
	// instructions besides that run once per call and once per row of workers.
	Constants, PerCall, PerRow int
	// Sites are the instructions that Go carries out, by number.
	Sites []Site
	// Faults are the instructions at which workers may fail, by number, and FaultFuncs
	// the functions that they are of: the kernel's or one that it calls.
	Faults     []*ir.Instr
	FaultFuncs []*ir.Func
	Fault      FaultPlace
	// Listing has one line per instruction in Intel syntax, if asked for.
	Listing string
	// Starts are where the instructions of the listing begin in Bytes, and Marks
	// from which of its lines on, counted from 0, they are of another position.
	Starts []int
	Marks  []Mark
}

// Mark is a line of a listing from which on instructions are of a position.
type Mark struct {
	Line int
	Pos  ir.Pos
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

// Compile compiles a kernel. The error is *Unsupported. The same kernel and options
// give the same bytes.
func Compile(k *Kernel, t Target, o Options) (*Code, error) {
	l := newLowerer(k, t, o)
	l.take()
	defer l.giveBack()
	l.an = analyse(k)
	l.chooseLanes()
	l.function()
	if l.err != nil {
		return nil, l.err
	}
	e := newEmitter(l)
	bytes, listing := l.a.assemble(e.code, o.Listing)
	constants := 0
	for i := range l.prologue.insts {
		if in := &l.prologue.insts[i]; in.special == constant && e.inRegister(in.reg) {
			constants++
		}
	}
	return &Code{Constants: constants, PerCall: len(l.prologue.insts) - constants, PerRow: len(l.row.insts), Target: t, Bytes: bytes, State: e.stateSize, Instructions: l.a.count, Spills: e.alloc.spills, Lanes: l.lanes, Parts: l.groups, Hot: e.hot,
		Sites: l.sites, Faults: l.faults, FaultFuncs: l.faultFuncs, Fault: l.fault, Listing: listing, Starts: l.a.starts, Marks: l.marks}, nil
}
