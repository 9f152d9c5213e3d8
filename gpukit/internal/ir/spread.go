package ir

// A loop whose iterations do not depend on each other can be spread over workers: what was one worker that counts
// becomes a worker for each count.

// Aliasing is what a launch knows of the Global memories of a function, by number.
type Aliasing struct {
	// Class: memories of different classes share no element; those of one class may.
	Class []int
	// Distinct: different subscripts within the shape of the array that one worker sees are different elements.
	Distinct []bool
}

// Spread is a function as stages in which loops became workers.
type Spread struct {
	// Stages run one after the other, each when the one before has ended; together they do what the function does. None
	// if no loop is taken.
	Stages []Stage
	// Loops are the function's loops in order of position.
	Loops []SpreadLoop
}

// Stage is a part of a function that any number of workers may do in any order: one for each worker of the launch and
// each iteration of the loops that were taken.
type Stage struct {
	// Func has the parameters of the function and then, for each loop that was taken, outermost first, an I64 of kind
	// Iteration: the number of the iteration, from 0. It has no results.
	Func *Func
	// Counts give the number of iterations of each of these loops, at least 0: functions of the same parameters with
	// one I64 result that read only parameters which are the same for every worker.
	Counts []*Func
	// Conditions are what Func relies on, besides Counts: where one does not hold, Checked is for it.
	Conditions []Condition
	Checked    *Func
	// Steps say, for each loop, how the elements that a worker uses move with its iteration: by Times strides of
	// dimension Dim of Mem for each access that was understood.
	Steps [][]Step
}

// Step is a distance in an array.
type Step struct {
	Mem   Mem
	Dim   int
	Times int64
	Write bool
}

// SpreadLoop says what became of a loop.
type SpreadLoop struct {
	Pos   Pos
	Depth int // 0 for a loop that is in no other
	Taken bool
	// Why says what forbids it, in the user's words; empty if it was taken.
	Why string
	// Source and Sink are the two ends of the dependence that forbids it, if it is one.
	Source, Sink Pos
	// Reduction is what a loop that was not taken accumulates ("sum", "product", "minimum", "maximum"), if that is all
	// that forbids it.
	Reduction string
}

// SpreadLoops finds the loops of f whose iterations do not depend on each other for any arguments that fit a, and whose
// number of iterations is the same for all workers and known before they run. f is a function without calls, as
// Optimize leaves it. What it does must not change by a bit, whatever order the workers of a stage run in; a function
// that fails must fail.
func SpreadLoops(f *Func, a Aliasing) *Spread { return &Spread{} }
