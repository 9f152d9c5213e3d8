package ir

import (
	"cmp"
	"fmt"
	"math/bits"
	"slices"
	"strings"
)

// Axes is a set of loop dimensions: bit d stands for dimension d.
type Axes uint64

// Len is the number of dimensions in the set.
func (a Axes) Len() int { return bits.OnesCount64(uint64(a)) }

// Has reports whether dimension d is in the set.
func (a Axes) Has(d int) bool { return a>>d&1 != 0 }

// Table is a part of a function that depends on some axes only.
type Table struct {
	Axes Axes // never all that the function depends on; none if every worker computes the same
	// Func has the parameters of the function, and its Global memories, which it does not access; its results are what
	// was taken out. It cannot fail.
	Func *Func
	// Pos is where each result stood.
	Pos []Pos
	// Cost is about what one evaluation of Func takes, in operations of simple arithmetic.
	Cost int
	// Saved is about what a worker of the function saves, in the same unit, less what it takes to fetch the results.
	Saved int
}

// HoistAxes takes out of f, a function without calls, what depends on some axes only, so that it can be computed once
// for each place on them instead of by every worker: operations that cannot fail and touch no memory, and ifs and loops
// of nothing else. varies says of each parameter on which axes its value depends. worth decides whether to take out
// expressions that together save a worker so many operations of simple arithmetic (Table.Saved, always positive). The
// function that remains has, behind the parameters of f, one of kind Scalar for each result of the tables, in order. If
// nothing is worth it, it is f itself.
//
// What not every worker reaches is taken out only if it is cheap, and a loop, which may have no end, only if every
// worker enters it whatever else happens. A launch without workers must not run the tables.
func HoistAxes(f *Func, varies []Axes, worth func(on Axes, cost int) bool) (*Func, []Table) {
	h := newAxisHoister(f, varies)
	if h.all == 0 {
		return f, nil
	}
	for {
		h.choose()
		groups := h.groups()
		refused := slices.IndexFunc(groups, func(g axisGroup) bool {
			return g.saved <= 0 || !worth(g.axes, g.saved)
		})
		if refused < 0 {
			return h.build(groups)
		}
		// Smaller sets may then hold parts of it.
		h.banned[groups[refused].axes] = true
	}
}

// What operations cost, in operations of simple arithmetic: estimates that only decide what is worth a table, never
// what is computed. Functions cost what they take on the simulated GPU, in instructions for operands between 0 and 1.
const (
	costSimple   = 1
	costDivide   = 15 // also square roots and remainders
	costCheap    = 3  // library functions of a few instructions
	costFunction = 65 // other library functions
	costBranch   = 2
	// From here on it is not done on the chance that some worker needs it.
	costSpeculative = 256
	// A loop is assumed to turn so often, and an arm of an if to be taken by every second worker.
	loopTurns = 8
)

var costOf = map[string]int{"math.Atan2": 90, "math.Erf": 150, "math.Erfc": 150, "math.Erfinv": 150, "math.Erfcinv": 150, "math.Exp": 37,
	"math.Exp2": 37, "math.Hypot": 30, "math.Log": 45, "math.Logb": 15, "math.Mod": 35, "math.Nextafter": 15, "math.Pow": 110, "math.Remainder": 40}

// To read one element of a table costs its address and the wait; to be passed
// one more number costs little. Tests make them less, so that more is taken out.
var costFetch, costScalar = 10, 2

// Costs are weighted by how often a worker gets there, in this fixed point.
const oneTime = 16

func opCost(in *Instr) int {
	switch in.Op {
	case OpConst:
		return 0
	case OpDiv, OpRem:
		return costDivide
	case OpIf, OpLoop:
		return costBranch
	case OpYield, OpBreak, OpUnreachable:
		return 0
	case OpMath:
		row := in.Fn.Row()
		if c, ok := costOf[row.Name]; ok {
			return c
		}
		switch {
		case strings.HasPrefix(row.Name, "math.Sqrt"):
			return costDivide
		case row.Cheap:
			return costCheap
		}
		return costFunction
	}
	return costSimple
}

// axisNode is an instruction that only computes: an operation, or an if or loop of nothing else.
type axisNode struct {
	in      *Instr
	args    []Value // used from outside
	axes    Axes
	free    bool // can be taken out: so can all that it uses
	cost    int  // of itself, in sixteenths of operations of a worker
	once    int  // of one evaluation, in operations
	unsure  int  // of what some worker may not reach, with its operands
	endless bool // it may never end
	risky   bool // so may it or what it uses, and not every worker runs that
}

// axisHoister finds what depends on which axes.
type axisHoister struct {
	f      *Func
	all    Axes
	nodes  []*axisNode
	byIn   map[*Instr]*axisNode
	def    []*axisNode // by Value; nil for parameters and what is not free
	free   []bool      // by Value
	axes   []Axes      // by Value
	uses   []int       // by Value
	banned map[Axes]bool

	// What choose decides.
	need     []int  // by Value: about what it costs the function to have it
	demanded []bool // by Value: the function that remains uses it
	loaded   []bool // by Value: it comes from a table
	kept     map[*axisNode]bool
}

func newAxisHoister(f *Func, varies []Axes) *axisHoister {
	n := len(f.Types)
	h := &axisHoister{f: f, byIn: map[*Instr]*axisNode{}, def: make([]*axisNode, n), free: make([]bool, n), axes: make([]Axes, n), uses: make([]int, n), banned: map[Axes]bool{}}
	Walk(f.Body, func(in *Instr) {
		for _, a := range in.Args {
			h.uses[a]++
		}
	})
	for i, p := range f.Params {
		h.free[p.Value], h.axes[p.Value] = true, varies[i]
		if h.uses[p.Value] > 0 {
			h.all |= varies[i]
		}
	}
	if h.all != 0 {
		h.analyse(f.Body, reach{weight: oneTime, sure: true, certain: true})
	}
	return h
}

// reach says which workers get to a place.
type reach struct {
	weight  int  // how often
	sure    bool // all of them, unless one fails
	certain bool // all of them: nothing before does more than compute
}

func (r reach) inside(in *Instr) reach {
	r.sure, r.certain = false, false
	if in.Op == OpLoop {
		r.weight = min(r.weight*loopTurns, oneTime<<16)
	} else {
		r.weight = max(r.weight/2, 1)
	}
	return r
}

// analyse visits a region in order.
func (h *axisHoister) analyse(r *Region, at reach) {
	for i := range r.Instrs {
		in := &r.Instrs[i]
		for _, s := range in.Regions {
			h.analyse(s, at.inside(in))
		}
		only := computes(h.f, in)
		if only {
			h.add(in, at)
		} else {
			at.certain = false
		}
		if in.Regions != nil && escapes(in, 0) {
			at.weight, at.sure = max(at.weight/2, 1), false
		}
	}
}

// computes reports whether in does nothing but compute its results from values.
func computes(f *Func, in *Instr) bool {
	return in.Regions == nil && in.Pure(f) || in.Regions != nil && !escapes(in, 0) && leaves(in) && pureInside(f, in)
}

func pureInside(f *Func, in *Instr) bool {
	for _, r := range in.Regions {
		for i := range r.Instrs {
			x := &r.Instrs[i]
			if !x.Op.Row().Terminator && !(x.Regions != nil && pureInside(f, x) || x.Pure(f)) {
				return false
			}
		}
	}
	return true
}

// escapes reports whether a break inside in goes further than depth constructs
// out of it.
func escapes(in *Instr, depth int) bool {
	for _, r := range in.Regions {
		for i := range r.Instrs {
			x := &r.Instrs[i]
			if x.Op == OpBreak && x.Level() > depth || x.Regions != nil && escapes(x, depth+1) {
				return true
			}
		}
	}
	return false
}

// endless reports whether an instruction takes time in proportion to an operand, or for ever.
func endless(in *Instr) bool {
	return in.Op == OpLoop || in.Op == OpMath && (in.Fn.String() == "math.Jn" || in.Fn.String() == "math.Yn")
}

func anyEndless(in *Instr) (yes bool) {
	Walk(&Region{Instrs: []Instr{*in}}, func(x *Instr) { yes = yes || endless(x) })
	return yes
}

// add makes the node of an instruction that only computes. Its parts have theirs.
func (h *axisHoister) add(in *Instr, at reach) {
	n := &axisNode{in: in, args: outside(in), free: true, endless: anyEndless(in)}
	n.risky = n.endless && !at.certain
	for _, a := range n.args {
		n.free = n.free && h.free[a]
		n.axes |= h.axes[a]
		if d := h.def[a]; d != nil {
			n.risky = n.risky || d.risky
		}
	}
	n.cost, n.once = at.weight*opCost(in), opCost(in)
	for _, r := range in.Regions {
		inner := at.inside(in)
		Walk(r, func(x *Instr) {
			// Deeper than one level it is underestimated.
			n.cost += inner.weight * opCost(x)
			n.once += opCost(x)
		})
	}
	if !at.sure {
		n.unsure = n.once
	}
	for _, a := range n.args {
		if d := h.def[a]; d != nil && n.unsure > 0 {
			n.unsure = min(n.unsure+d.unsure, costSpeculative+1)
		}
	}
	h.nodes = append(h.nodes, n)
	h.byIn[in] = n
	for _, v := range in.Results {
		h.free[v], h.axes[v] = n.free, n.axes
		if n.free {
			h.def[v] = n
		}
	}
}

// outside lists the values that in uses and does not define, each once.
func outside(in *Instr) []Value {
	inside := map[Value]bool{}
	var list []Value
	Walk(&Region{Instrs: []Instr{*in}}, func(x *Instr) {
		for _, v := range x.Carried {
			inside[v] = true
		}
		for _, a := range x.Args {
			if !inside[a] {
				inside[a] = true
				list = append(list, a)
			}
		}
		for _, v := range x.Results {
			inside[v] = true
		}
	})
	return list
}

// candidate reports whether a table may give the results of n.
func (h *axisHoister) candidate(n *axisNode) bool {
	return n.free && n.axes != h.all && !h.banned[n.axes] && n.unsure <= costSpeculative && !n.risky
}

func fetch(on Axes) int {
	if on == 0 {
		return costScalar * oneTime
	}
	return costFetch * oneTime
}

// choose decides which values come from tables: of a value that several others
// share, each of them pays its part.
func (h *axisHoister) choose() {
	h.need, h.demanded, h.loaded = make([]int, len(h.f.Types)), make([]bool, len(h.f.Types)), make([]bool, len(h.f.Types))
	h.kept = map[*axisNode]bool{}
	for _, n := range h.nodes {
		c := h.compute(n)
		if h.candidate(n) {
			c = min(c, fetch(n.axes))
		}
		for _, v := range n.in.Results {
			h.need[v] = c
		}
	}
	h.demand(h.f.Body)
}

// compute is about what it costs to compute n where it stands.
func (h *axisHoister) compute(n *axisNode) int {
	c := n.cost
	for _, a := range n.args {
		if !h.demanded[a] {
			c += h.need[a] / max(h.uses[a], 1)
		}
	}
	return c
}

// demand visits a region from its end, users before what they use.
func (h *axisHoister) demand(r *Region) {
	for i := len(r.Instrs) - 1; i >= 0; i-- {
		in := &r.Instrs[i]
		if n := h.byIn[in]; n != nil {
			wanted, used := 0, 0
			for _, v := range in.Results {
				used += h.uses[v]
				if h.demanded[v] {
					wanted++
				}
			}
			switch {
			case wanted == 0 && (used > 0 || !n.endless): // Optimize has left a loop without results
				continue
			case wanted > 0 && h.candidate(n) && wanted*fetch(n.axes) < h.compute(n):
				for _, v := range in.Results {
					h.loaded[v] = h.demanded[v]
				}
				continue
			}
			h.kept[n] = true
		}
		for _, a := range in.Args {
			h.demanded[a] = true
		}
		for _, s := range in.Regions {
			h.demand(s)
		}
	}
}

// axisGroup are the values that come from one table.
type axisGroup struct {
	axes   Axes
	values []Value
	cone   []*axisNode // what computes them, in order
	saved  int
}

// groups sorts what was chosen by axes, those on more axes first.
func (h *axisHoister) groups() []axisGroup {
	var gs []axisGroup
	for _, n := range h.nodes {
		for _, v := range n.in.Results {
			if !h.loaded[v] {
				continue
			}
			i := slices.IndexFunc(gs, func(g axisGroup) bool { return g.axes == n.axes })
			if i < 0 {
				i = len(gs)
				gs = append(gs, axisGroup{axes: n.axes})
			}
			gs[i].values = append(gs[i].values, v)
		}
	}
	slices.SortFunc(gs, func(a, b axisGroup) int {
		return cmp.Or(cmp.Compare(b.axes.Len(), a.axes.Len()), cmp.Compare(a.axes, b.axes))
	})
	for i := range gs {
		g := &gs[i]
		in := map[*axisNode]bool{}
		var visit func(v Value)
		visit = func(v Value) {
			if n := h.def[v]; n != nil && !in[n] {
				in[n] = true
				for _, a := range n.args {
					visit(a)
				}
			}
		}
		for _, v := range g.values {
			visit(v)
		}
		sum := -len(g.values) * fetch(g.axes)
		for _, n := range h.nodes {
			if in[n] {
				g.cone = append(g.cone, n)
				if !h.kept[n] {
					sum += n.cost
				}
			}
		}
		g.saved = (sum + oneTime - 1) / oneTime
	}
	return gs
}

// build makes the tables, and what remains of the function.
func (h *axisHoister) build(groups []axisGroup) (*Func, []Table) {
	if len(groups) == 0 {
		return h.f, nil
	}
	main := *h.f
	main.settled = false
	main.Params, main.Types = slices.Clone(h.f.Params), slices.Clone(h.f.Types)
	vals := make([]Value, len(h.f.Types))
	for i := range vals {
		vals[i] = Value(i)
	}
	var tables []Table
	for _, g := range groups {
		t := Table{Axes: g.axes, Saved: g.saved, Func: h.table(g)}
		for _, n := range g.cone {
			t.Cost += n.once
		}
		// Equal results are one.
		end := t.Func.Body.Terminator()
		var results []Value
		param := map[Value]Value{}
		for i, v := range g.values {
			r := end.Args[i]
			if _, ok := param[r]; !ok {
				typ := h.f.Types[v]
				pos := h.def[v].in.Pos
				param[r] = main.AddParamOf(Param{Name: fmt.Sprint("hoisted", len(main.Params)-len(h.f.Params))}, typ)
				results = append(results, r)
				t.Func.Results = append(t.Func.Results, typ)
				t.Pos = append(t.Pos, pos)
			}
			vals[v] = param[r]
		}
		end.Args = results
		tables = append(tables, t)
	}
	main.Body = h.remaining(h.f.Body, vals)
	return eliminate(simplify(&main)), tables
}

// remaining copies a region without what came from tables.
func (h *axisHoister) remaining(r *Region, vals []Value) *Region {
	out := &Region{}
	for i := range r.Instrs {
		in := r.Instrs[i]
		if n := h.byIn[&r.Instrs[i]]; n != nil && !h.kept[n] {
			continue
		}
		in.Args = renamed(in.Args, vals)
		in.Regions = nil
		for _, s := range r.Instrs[i].Regions {
			in.Regions = append(in.Regions, h.remaining(s, vals))
		}
		out.Instrs = append(out.Instrs, in)
	}
	return out
}

// table makes the function that computes the values of g; its results are still
// to be named.
func (h *axisHoister) table(g axisGroup) *Func {
	f := NewFunc(h.f.Name)
	f.Pos = h.f.Pos
	for i, m := range h.f.Mems {
		if m.Space == Global {
			f.Mems = slices.Clone(h.f.Mems[:i+1])
		}
	}
	c := tableCopy{from: h.f, b: NewBuilder(f), vals: make([]Value, len(h.f.Types))}
	for _, p := range h.f.Params {
		c.vals[p.Value] = f.AddParamOf(p, h.f.Types[p.Value])
	}
	for _, n := range g.cone {
		c.instr(n.in)
	}
	for _, v := range g.values {
		f.Results = append(f.Results, h.f.Types[v])
	}
	c.b.Yield(renamed(g.values, c.vals)...)
	f = eliminate(simplify(f))
	f.Results = nil
	return f
}

// tableCopy copies instructions to the end of another function.
type tableCopy struct {
	from *Func
	b    *Builder
	vals []Value
}

func (c *tableCopy) instr(in *Instr) {
	x := *in
	x.Args = renamed(in.Args, c.vals)
	x.Carried, x.Results = c.fresh(in.Carried), c.fresh(in.Results)
	x.Regions = nil
	for _, r := range in.Regions {
		s := &Region{}
		c.b.inside(s, func() {
			for i := range r.Instrs {
				c.instr(&r.Instrs[i])
			}
		})
		x.Regions = append(x.Regions, s)
	}
	c.b.Pos = in.Pos
	c.b.add(x)
}

func (c *tableCopy) fresh(vs []Value) []Value {
	if len(vs) == 0 {
		return nil
	}
	out := make([]Value, len(vs))
	for i, v := range vs {
		out[i] = c.b.F.NewValue(c.from.Types[v])
		c.vals[v] = out[i]
	}
	return out
}
