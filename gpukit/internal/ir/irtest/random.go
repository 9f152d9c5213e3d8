package irtest

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"gpunotes/gpukit/internal/ir"
)

// Options says what a random function may contain.
type Options struct {
	// Faults lets divisions, shifts and indices fail.
	Faults bool
	// Memory adds arrays that are read, arrays of which each worker writes its
	// own elements, integer arrays to which all add atomically, tables, arrays
	// of a worker's own, and printing. The outcome does not depend on the order
	// of workers.
	Memory bool
	// Threads, with Memory, adds what threads of a block do together: shared
	// memory, barriers, shuffles, votes. There is no divergence.
	Threads bool
	// Types are those of values besides Bool, I64 and F64; nil are all. One that
	// is there several times, or is one of those three, is the more frequent.
	Types []ir.Type
	// Math picks among library functions; nil takes all. The Bessel functions
	// Jn and Yn, which may take for ever, are never taken.
	Math func(ir.MathFn) bool
	// Statements is the size: a function is 10 and less than Statements more,
	// itself at least 10; 0 means 60. The larger, the more values live at once.
	Statements int
	// Without has those of Bounds, SliceBounds and Print that are left out.
	Without []ir.Op
}

// Slots is the number of elements of a written array that belong to one worker.
const Slots = 4

// Random writes a function whose loops end. It has no calls.
//
// With Memory it has parameters of the kinds ThreadIdx, BlockIdx and BlockDim,
// in one dimension, and arrays of rank 1. One whose name begins with "read" is
// only read and needs an element; others need Slots for each worker.
func Random(r *rand.Rand, name string, o Options) *ir.Func {
	a := &author{Rand: r, Options: o}
	if a.Types == nil {
		a.Types = ir.Types[:]
	}
	a.Types = append([]ir.Type{ir.Bool, ir.I64, ir.F64}, a.Types...)
	for i := range ir.NumMath() {
		if fn := ir.MathFn(i); a.takes(fn) {
			a.math = append(a.math, fn)
		}
	}
	a.f = ir.NewFunc(name, a.typs(1+a.IntN(3))...)
	for i, t := range append(a.typs(a.IntN(4)), ir.F64, ir.I64, ir.Bool) {
		a.see(a.f.AddParam(fmt.Sprint("p", i), t))
	}
	a.b = ir.NewBuilder(a.f)
	if a.Statements == 0 {
		a.Statements = 60
	}
	a.budget = 10 + a.IntN(a.Statements)
	if o.Memory {
		a.memories()
	}
	a.inside(a.f.Results, func() {
		if o.Memory {
			a.worker = a.b.Op(ir.OpAdd, a.b.Op(ir.OpMul, a.block, a.dim), a.thread)
			a.see(a.worker)
		}
		for range 2 {
			a.statements(0)
			if o.Threads && a.IntN(4) > 0 {
				a.together()
			}
		}
		a.end(a.f.Results, 1)
	})
	return a.f
}

// author writes a random function.
type author struct {
	*rand.Rand
	Options
	math   []ir.MathFn
	f      *ir.Func
	b      *ir.Builder
	scope  []ir.Value
	stack  [][]ir.Type // results of the enclosing constructs
	budget int
	line   int32

	thread, block, dim, worker ir.Value
	read, written, sums        []ir.ArrayParam
	own, tables                []ir.Mem
	shared, counters           ir.Mem
}

func (a *author) typ() ir.Type {
	if len(a.Types) == 3 || a.IntN(2) == 0 {
		return a.Types[a.IntN(3)]
	}
	return a.Types[3:][a.IntN(len(a.Types)-3)]
}

func (a *author) has(op ir.Op) bool { return !slices.Contains(a.Without, op) }

// takes reports whether a library function is allowed.
func (a *author) takes(fn ir.MathFn) bool {
	row := fn.Row()
	ok := row.Name != "math.Jn" && row.Name != "math.Yn" && row.Loose == "" && slices.Contains(a.Types, row.Out)
	for _, t := range row.In {
		ok = ok && slices.Contains(a.Types, t)
	}
	return ok && (a.Math == nil || a.Math(fn))
}

func (a *author) typs(n int) []ir.Type {
	var ts []ir.Type
	for range n {
		ts = append(ts, a.typ())
	}
	return ts
}

// pick finds a visible value of type t, rather a recent one.
func (a *author) pick(t ir.Type) ir.Value {
	if a.IntN(8) > 0 {
		for range 12 {
			k := len(a.scope) - 1 - min(a.IntN(len(a.scope)+1), a.IntN(len(a.scope)+1))
			if k >= 0 && a.f.Types[a.scope[k]] == t {
				return a.scope[k]
			}
		}
		for k := len(a.scope) - 1; k >= 0; k-- {
			if a.f.Types[a.scope[k]] == t {
				return a.scope[k]
			}
		}
	}
	return a.b.Const(t, Value(a.Rand, t))
}

func (a *author) picks(ts []ir.Type) []ir.Value {
	var vs []ir.Value
	for _, t := range ts {
		vs = append(vs, a.pick(t))
	}
	return vs
}

func (a *author) see(vs ...ir.Value) { a.scope = append(a.scope, vs...) }

func (a *author) int(x int) ir.Value { return a.b.Const(ir.I64, ir.Bits(int64(x))) }

func (a *author) operation() {
	a.line++
	a.b.Pos = ir.Pos{File: "random", Line: a.line, Col: 1}
	if a.Memory && a.IntN(3) == 0 {
		a.access()
		return
	}
	if a.Faults && a.has(ir.OpBounds) && a.IntN(30) == 0 {
		a.b.Bounds(a.b.Op(ir.OpAnd, a.pick(ir.I64), a.int(63)), a.b.Op(ir.OpOr, a.pick(ir.I64), a.int(32)))
		return
	}
	switch a.IntN(12) {
	case 0:
		from, to := a.typ(), a.typ()
		if from != ir.Bool && to != ir.Bool {
			a.see(a.b.Convert(to, a.pick(from)))
		}
		return
	case 1:
		if len(a.math) > 0 {
			fn := a.math[a.IntN(len(a.math))]
			a.see(a.b.Math(fn, a.picks(fn.Row().In)...))
		}
		return
	}
	for range 50 {
		op := ir.OpConst + ir.Op(a.IntN(int(ir.NumOps-ir.OpConst)))
		row := op.Row()
		if row.Result == nil {
			continue
		}
		t := a.typ()
		ts := []ir.Type{t, t}
		switch {
		case row.Args == 1:
			ts = ts[:1]
		case row.Args == 3:
			ts = []ir.Type{ir.Bool, t, t}
		case op == ir.OpShl || op == ir.OpShr:
			ts[1] = a.typ()
		}
		if _, err := op.ResultType(ts); err != nil {
			continue
		}
		args := a.picks(ts)
		divides, shifts := (op == ir.OpDiv || op == ir.OpRem) && t.IsInt(), op == ir.OpShl || op == ir.OpShr
		in := ir.Instr{Op: op, Args: args}
		switch {
		// Engines have other code for constants.
		case divides && a.IntN(4) == 0:
			lowest := ir.Wrap(t, 1<<(t.Bits()-1))
			x := []ir.Bits{1, 2, 7, 64, lowest, ir.Wrap(t, ^ir.Bits(0))}[a.IntN(6)]
			if a.Faults && a.IntN(8) == 0 {
				x = 0
			}
			args[1] = a.b.Const(t, x)
		case shifts && a.IntN(4) == 0:
			n := a.IntN(70)
			if a.Faults && ts[1].IsSigned() && a.IntN(8) == 0 {
				n = -1 - n
			}
			args[1] = a.b.Const(ts[1], ir.Bits(int64(n)))
		case !in.MayFault(a.f) || a.Faults && a.IntN(2) == 0:
		case divides:
			args[1] = a.b.Op(ir.OpOr, args[1], a.b.Const(t, 1))
		default:
			most := ir.Bits(1)<<(ts[1].Bits()-1) - 1
			args[1] = a.b.Op(ir.OpAnd, args[1], a.b.Const(ts[1], []ir.Bits{63, most}[a.IntN(2)]))
		}
		a.see(a.b.Op(op, args...))
		return
	}
}

// inside fills a region of a construct with the given results.
func (a *author) inside(results []ir.Type, fill func()) {
	seen := len(a.scope)
	a.stack = append(a.stack, results)
	fill()
	a.stack = a.stack[:len(a.stack)-1]
	a.scope = a.scope[:seen]
}

// end writes a terminator: a yield of the given types, or a break somewhere.
func (a *author) end(yields []ir.Type, breaks int) {
	if a.IntN(10) < breaks {
		level := a.IntN(len(a.stack))
		a.b.Break(level, a.picks(a.stack[len(a.stack)-1-level])...)
		return
	}
	a.b.Yield(a.picks(yields)...)
}

func (a *author) statements(depth int) {
	for range 1 + a.IntN(a.Statements/10) {
		if a.budget--; a.budget < 0 {
			return
		}
		switch k := a.IntN(10); {
		case depth < 4 && k < 2:
			a.branch(depth)
		case depth < 4 && k == 2:
			a.loop(depth)
		default:
			a.operation()
		}
	}
}

func (a *author) branch(depth int) {
	ts := a.typs(a.IntN(3))
	cond := a.pick(ir.Bool)
	arm := func() {
		a.inside(ts, func() {
			if a.IntN(3) > 0 {
				a.statements(depth + 1)
			}
			a.end(ts, 3)
		})
	}
	els := arm
	if a.IntN(12) == 0 {
		cond = a.b.Const(ir.Bool, 1)
		els = func() { a.b.Unreachable() }
	}
	a.see(a.b.If(cond, ts, arm, els)...)
}

// loop counts up to a bound that may differ between workers, unless it is left
// earlier.
func (a *author) loop(depth int) {
	ts, carried := a.typs(a.IntN(3)), a.typs(a.IntN(3))
	limit := a.int(a.IntN(5))
	if a.IntN(2) == 0 {
		limit = a.b.Op(ir.OpAnd, a.pick(ir.I64), a.int(3))
	}
	one := a.int(1)
	init := append(a.picks(carried), a.int(0))
	a.see(a.b.Loop(init, ts, func(c []ir.Value) {
		a.inside(ts, func() {
			a.see(c...)
			count := c[len(c)-1]
			done := a.b.Op(ir.OpGe, count, limit)
			a.b.If(done, nil,
				func() { a.inside(nil, func() { a.b.Break(1, a.picks(ts)...) }) },
				func() { a.b.Yield() })
			a.statements(depth + 1)
			next := a.b.Op(ir.OpAdd, count, one)
			if a.IntN(10) == 0 {
				a.end(nil, 10)
				return
			}
			vs := a.picks(carried)
			if len(carried) == 2 && carried[0] == carried[1] && a.IntN(2) == 0 {
				vs = []ir.Value{c[1], c[0]}
			}
			a.b.Yield(append(vs, next)...)
		})
	})...)
}
