package ir

import (
	"cmp"
	"slices"
)

// A loop whose iterations do not depend on each other can be spread over workers: what was one worker that counts
// becomes a worker for each count.

// Aliasing is what a launch knows of the parameters of a function, by number, and of its Global memories, by number.
type Aliasing struct {
	// Uniform: parameters of kind Scalar that have the same value for every worker of the launch, as a number passed for
	// countRow in the call f(countRow, ...); loop bounds may depend on them. Other kinds say so themselves
	// (ParamKind.Uniform). nil: none.
	Uniform []bool
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
	// Iteration: the number of the iteration, from 0. It has no results. A stage that does what can fail on the way to a
	// loop without iterations, which no worker of that loop would do, has one parameter more, whose count is 1 if the
	// loop has no iterations and else 0.
	Func *Func
	// Counts give the number of iterations of each of these loops, at least 0: functions of the same parameters, without
	// memories, with one I64 result that read only parameters which are the same for every worker. A count of
	// math.MaxInt64 says that the loop practically does not end, or that a parameter is larger than was believed; then,
	// whatever the other counts and stages, the function itself is to be run.
	Counts []*Func
	// Pos says where these loops are; a Pos of its own, zero, stands for the parameter more.
	Pos []Pos
	// Conditions are what Func relies on, besides Counts: where one does not hold, Checked is for it. They are about
	// parameters of the function that are the same for every worker.
	Conditions []Condition
	// Steps say, for each loop, how the elements that a worker uses move with its iteration: by Times strides of
	// dimension Dim of Mem for each access that was understood.
	Steps [][]Step

	checked func() *Func
}

// Checked is Func without relying on the conditions, with the checks of indices that these make needless. It is made
// when it is first asked for.
func (s Stage) Checked() *Func {
	if s.checked == nil {
		return s.Func
	}
	return s.checked()
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
func SpreadLoops(f *Func, a Aliasing) *Spread {
	out := &Spread{}
	f = f.clone()
	n := newNest(f, a)
	if drop := n.certain(); len(drop) > 0 {
		n = n.without(drop)
	}
	p := &planner{n: n, why: map[*loop]verdict{}, rejected: map[*loop]verdict{}, done: map[*Instr]bool{}}
	stages := p.stages()
	for _, l := range n.loops {
		s := SpreadLoop{Pos: l.in.Pos, Depth: l.depth, Taken: p.took(l)}
		if !s.Taken {
			v := p.why[l]
			if v.why == "" {
				v.why = "it runs within each worker of the loop around it"
			}
			s.Why, s.Source, s.Sink, s.Reduction = v.why, v.source, v.sink, v.reduction
		}
		out.Loops = append(out.Loops, s)
	}
	slices.SortStableFunc(out.Loops, func(a, b SpreadLoop) int {
		return cmp.Or(cmp.Compare(a.Pos.File, b.Pos.File), cmp.Compare(a.Pos.Line, b.Pos.Line), cmp.Compare(a.Pos.Col, b.Pos.Col))
	})
	out.Stages = stages
	return out
}
