package amd64

import "gpunotes/gpukit/internal/ir"

// Kernel is what code is made of: a function, and how its workers find what they
// are given. The workers of one call are rows of lanes: row after row of Count
// workers each, with up to MaxLevels dimensions of rows.
type Kernel struct {
	// Func is a verified function without barriers, shared memory, shuffles or
	// votes, whose only calls are of functions marked Outline.
	Func *ir.Func
	// In and Out say, by parameter and by result, where its values are.
	In, Out []Access
	// Levels is how many dimensions of rows the code walks: 0 (a single row) to MaxLevels.
	Levels int
	// Lanes, if positive, says that rows are so short, so that a group of more lanes would be
	// idle in part.
	Lanes int
	// Count, if positive, is BlockCount of every call: rows that are whole groups need no
	// masks, and a row that is one group no loop.
	Count int
	// Still says by parameter, if not nil, that a Count or CountUnit is the same in all rows of
	// the fastest dimension: what is loaded there is loaded once for these rows.
	Still []bool
	// Streaming says that Unit results are large and begin, in every row, at multiples of
	// 64 bytes: whole registers of them are best written past the caches (measured: a
	// product of 2e6 float64 takes 1.5 ms instead of 2.6). Who runs the code fences.
	Streaming bool
}

// MaxLevels is the most dimensions of rows of one call.
const MaxLevels = 3

// Access says how the workers of a row find the values of a parameter or result
// in its stream.
type Access uint8

// The accesses. Count, CountUnit and CountStep are of I64 parameters.
const (
	// Same: the word is the value in Bits form, for the whole call. It does not advance.
	Same Access = iota
	// PerRow: the word is the address of the one value of the row.
	PerRow
	// Unit: worker i of the row has element i from the word on.
	Unit
	// Strided: worker i has the element at word + i*step bytes; any step.
	Strided
	// Count: the word is itself the value, the same in all of a row.
	Count
	// CountUnit: word + i.
	CountUnit
	// CountStep: word + i*step.
	CountStep
)

// The block of arguments, which the code gets a pointer to: offsets in bytes of
// 8-byte words.
const (
	// BlockCount is the number of workers of a row, at least 1.
	BlockCount = 0
	// BlockRows are the sizes of the dimensions of rows, the fastest first, each at
	// least 1; those from Levels on are not read.
	BlockRows = 8
	// BlockBudget bounds the work of a call, in about instructions: from 0 down the
	// code stops at the next back edge with ExitPaused. On any exit but ExitDone it holds
	// what is left.
	BlockBudget = 32
	// BlockExit is why the code returned: an Exit.
	BlockExit = 40
	// BlockSite is the index in Code.Sites of what is asked for, on ExitCallout.
	BlockSite = 48
	// BlockResume is 0 for a call from the start. After any exit but ExitDone and ExitFault
	// calling again with the block as it was left goes on (a new budget may be set).
	BlockResume = 56
	// BlockState points to Code.State bytes, aligned to 64, of this call alone.
	BlockState = 64
	// BlockStreams points to one stream per parameter and then one per result. The code
	// reads them at the start.
	BlockStreams = 72
	// BlockMems points to two words per Global memory of the function, in order:
	// its address and its length in elements.
	BlockMems = 80
	// BlockLane and BlockRow say on any exit but ExitDone where the group of workers
	// stands: the worker of its first lane in the row, and the row by dimension, fastest first.
	BlockLane = 88
	BlockRow  = 96
	BlockSize = 120
)

// A stream: its word, its step, and what is added to the word when a dimension
// of rows advances: when rows of dimension d go on, those of the dimensions below
// have gone back to their beginning, so Advance[d] is stride[d] minus what they went.
const (
	StreamWord    = 0
	StreamStep    = 8
	StreamAdvance = 16 // MaxLevels words
	StreamSize    = 40
)

// Exit is why code returns.
type Exit uint64

// The exits.
const (
	// ExitDone: all workers are done.
	ExitDone Exit = iota
	// ExitPaused: the budget is used up.
	ExitPaused
	// ExitCallout: the code wants Go to carry out an instruction for some lanes: see Site.
	ExitCallout
	// ExitFault: workers of the group failed, as Code.Fault tells. All workers before
	// the group are done, and those of the group that did not fail.
	ExitFault
)

// Site is an instruction that the code has Go carry out: it stores the operands,
// returns, and loads the results when it is called again.
type Site struct {
	Instr *ir.Instr
	// Active is where in the state a word is whose bit i says that lane i takes part.
	Active int
	// In and Out are where operands and results are.
	In, Out []Place
}

// Place is where the values of a group are in the state.
type Place struct {
	Type   ir.Type
	Offset int
	// One: one value in Bits form for all lanes. Otherwise an array of Code.Lanes elements:
	// of Bool a word with one bit per lane; of 64-bit types 8 bytes each; of all
	// others 4 bytes each, small integers extended to 32 bits.
	One bool
}

// FaultPlace is where in the state faults are described.
type FaultPlace struct {
	Lanes  int // a word: bit i says that lane i failed
	Sites  int // Code.Lanes words of 4 bytes: the index in Code.Faults of what failed
	Values int // MaxFaultValues arrays of Code.Lanes words of 8 bytes: operands of the instruction, in Bits form
}

// MaxFaultValues is how many operands of an instruction that fails are kept.
const MaxFaultValues = 3
