package ir

// Axes is a set of loop dimensions: bit d stands for dimension d.
type Axes uint64

// Table is a part of a function that depends on some axes only.
type Table struct {
	Axes Axes // never all that the function depends on; none if every worker computes the same
	// Func has the parameters of the function; its results are what was taken out.
	Func *Func
	// Pos is where each result stood.
	Pos []Pos
}

// HoistAxes takes out of f, a function without calls, what depends on some axes only, so that it can be computed once
// for each place on them instead of by every worker: operations that cannot fail and touch no memory. varies says of
// each parameter on which axes its value depends. worth decides whether to take out expressions that together cost a
// worker so many operations of simple arithmetic. The function that remains has, behind the parameters of f, one of
// kind Scalar for each result of the tables, in order. If nothing is worth it, it is f itself.
func HoistAxes(f *Func, varies []Axes, worth func(on Axes, cost int) bool) (*Func, []Table) {
	return f, nil
}
