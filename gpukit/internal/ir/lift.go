package ir

import (
	"fmt"
	"slices"
)

// Product is a number times the values of parameters, by number.
type Product struct {
	Times  int64
	Params []int
}

// Lifted says what a parameter or a result that LiftAccesses added stands for.
type Lifted struct {
	// Param is the parameter of the given function that a parameter is; None if it
	// was added.
	Param int
	// Mem is the memory of the given function in which an added one lies.
	Mem Mem
	// Element: it is the element itself, else an index to which more is added.
	Element bool
	// At is the index, a sum in which each product has at most one factor that is
	// an Offset or an Iteration; it wraps around as I64 does.
	At []Product
}

// Accesses is a function whose loads and stores say as far as possible by
// parameters where they are.
type Accesses struct {
	Func    *Func
	Params  []Lifted // by parameter of Func
	Results []Lifted // by result of Func; those of the given function have Param None and no At
	Mems    []Mem    // by memory of Func: the one of the given function
}

// LiftAccesses takes out of f, a function without calls, what the index of a load
// or store owes to Offset and Iteration parameters: it becomes a parameter, which
// a launch gives strides. What every worker loads, and stores once, becomes a
// parameter and a result. Scalar parameters for which uniform is true have one
// value for all workers. No memory of f may share an element with another that is
// written, and different workers must not store to the same element. Parameters
// and memories that are not needed any more are left out.
func LiftAccesses(f *Func, uniform []bool) *Accesses {
	l := &lifter{f: f.clone(), uniform: uniform}
	l.study()
	l.group()
	l.f.Body = l.rewrite(l.f.Body)
	l.results()
	g := Optimize(l.f)
	return l.strip(g)
}

// product is a term of an index: a number times values, in order.
type product struct {
	times  int64
	values []Value
}

// sum is an index as a sum of products, ordered by their values.
type sum []product

const maxProducts = 32

func (s sum) add(t sum, times int64) sum {
	out := slices.Clone(s)
	for _, p := range t {
		i, found := slices.BinarySearchFunc(out, p, func(a, b product) int { return slices.Compare(a.values, b.values) })
		if found {
			out[i].times += p.times * times
			if out[i].times == 0 {
				out = slices.Delete(out, i, i+1)
			}
		} else if p.times*times != 0 {
			out = slices.Insert(out, i, product{p.times * times, p.values})
		}
	}
	return out
}

func (s sum) mul(t sum) sum {
	var out sum
	for _, p := range s {
		var q sum
		for _, r := range t {
			vs := append(slices.Clone(p.values), r.values...)
			slices.Sort(vs)
			q = q.add(sum{{r.times, vs}}, 1)
		}
		out = out.add(q, p.times)
	}
	return out
}

func (s sum) equal(t sum) bool {
	return slices.EqualFunc(s, t, func(a, b product) bool { return a.times == b.times && slices.Equal(a.values, b.values) })
}

// spot is a load or store of Global memory.
type spot struct {
	mem    Mem
	store  bool
	lifted sum // what launches know
	rest   sum
	always bool // every worker does it, in the body itself
	late   bool // a load after a store to the same memory
}

// liftGroup is what several spots of a memory have in common.
type liftGroup struct {
	mem     Mem
	moves   sum // the part that differs from worker to worker
	at      sum // all of it, of an element
	element bool
	param   Value // -1 before it is needed
	stored  Value // of an element: what the store has, -1
}

type lifter struct {
	f       *Func
	uniform []bool
	def     []*Instr
	param   []int // by value
	sums    map[Value]sum
	spots   map[*Instr]*spot
	order   []*spot
	groups  []*liftGroup
	of      map[*spot]*liftGroup
	checks  bool // some index is checked by workers
	leaves  bool // some worker may leave the body early
}

func (l *lifter) study() {
	f := l.f
	l.def, l.param = make([]*Instr, len(f.Types)), make([]int, len(f.Types))
	l.sums, l.spots, l.of = map[Value]sum{}, map[*Instr]*spot{}, map[*spot]*liftGroup{}
	for i := range l.param {
		l.param[i] = None
	}
	for i, q := range f.Params {
		l.param[q.Value] = i
	}
	Walk(f.Body, func(in *Instr) {
		if len(in.Regions) == 0 && len(in.Results) == 1 {
			l.def[in.Results[0]] = in
		}
		l.checks = l.checks || in.Op == OpBounds || in.Op == OpSliceBounds
	})
	stored := map[Mem]bool{}
	for i := range f.Body.Instrs {
		top := &f.Body.Instrs[i]
		Walk(&Region{Instrs: f.Body.Instrs[i : i+1]}, func(in *Instr) {
			switch in.Op {
			case OpLoad, OpStore:
				if f.Mems[in.Mem].Space == Global {
					s := &spot{mem: in.Mem, store: in.Op == OpStore, always: in == top && !l.leaves, late: stored[in.Mem]}
					s.lifted, s.rest = l.split(in.Args[0])
					l.spots[in], l.order = s, append(l.order, s)
				}
				stored[in.Mem] = stored[in.Mem] || in.Op == OpStore
			case OpAtomic: // neither an element nor one that others have alone
				s := &spot{mem: in.Mem, store: true}
				l.order = append(l.order, s)
				stored[in.Mem] = true
			}
		})
		for _, r := range top.Regions {
			l.leaves = l.leaves || breaksTo(r, 1)
		}
		l.leaves = l.leaves || top.Op == OpBreak || top.Op == OpUnreachable
	}
}

// sum takes an index apart.
func (l *lifter) sum(v Value) sum {
	if s, ok := l.sums[v]; ok {
		return s
	}
	s := sum{{1, []Value{v}}}
	if in := l.def[v]; in != nil && l.f.Types[v] == I64 {
		switch in.Op {
		case OpConst:
			s = sum{}.add(sum{{int64(in.Imm), nil}}, 1)
		case OpAdd:
			s = l.sum(in.Args[0]).add(l.sum(in.Args[1]), 1)
		case OpSub:
			s = l.sum(in.Args[0]).add(l.sum(in.Args[1]), -1)
		case OpNeg:
			s = sum{}.add(l.sum(in.Args[0]), -1)
		case OpMul:
			a, b := l.sum(in.Args[0]), l.sum(in.Args[1])
			if len(a)*len(b) <= maxProducts {
				s = a.mul(b)
			}
		}
		if len(s) > maxProducts {
			s = sum{{1, []Value{v}}}
		}
	}
	l.sums[v] = s
	return s
}

// moves reports whether v differs from worker to worker in equal steps; known,
// whether a launch knows it.
func (l *lifter) moves(v Value) (moves, known bool) {
	i := l.param[v]
	if i == None || l.f.Types[v] != I64 {
		return false, false
	}
	switch k := l.f.Params[i].Kind; k {
	case Offset, Iteration:
		return true, true
	case Shape, Stride, Captured:
		return false, true
	case Scalar:
		return false, i < len(l.uniform) && l.uniform[i]
	}
	return false, false
}

// split divides an index into what launches know and the rest.
func (l *lifter) split(v Value) (lifted, rest sum) {
	for _, p := range l.sum(v) {
		n, all := 0, true
		for _, x := range p.values {
			moves, known := l.moves(x)
			if moves {
				n++
			}
			all = all && known
		}
		if all && n <= 1 {
			lifted = append(lifted, p)
		} else {
			rest = append(rest, p)
		}
	}
	return lifted, rest
}

// moving is the part of a lifted sum that differs from worker to worker.
func (l *lifter) moving(s sum) (out sum) {
	for _, p := range s {
		if slices.ContainsFunc(p.values, func(v Value) bool { m, _ := l.moves(v); return m }) {
			out = append(out, p)
		}
	}
	return out
}

func (l *lifter) group() {
	byMem := map[Mem][]*spot{}
	for _, s := range l.order {
		byMem[s.mem] = append(byMem[s.mem], s)
	}
	for m := range l.f.Mems {
		spots := byMem[Mem(m)]
		if len(spots) == 0 {
			continue
		}
		// One place that every worker has to itself, or shares with others that read it.
		stores, element := 0, !l.checks
		for _, s := range spots {
			if s.store {
				stores++
			}
			element = element && s.always && !s.late && len(s.rest) == 0 && s.lifted.equal(spots[0].lifted)
		}
		if element && (stores == 0 || stores == 1 && !l.leaves) {
			g := &liftGroup{mem: Mem(m), at: spots[0].lifted, element: true, param: -1, stored: -1}
			l.groups = append(l.groups, g)
			for _, s := range spots {
				l.of[s] = g
			}
			continue
		}
		for _, s := range spots {
			moves := l.moving(s.lifted)
			if len(moves) == 0 || len(moves) == 1 && moves[0].times == 1 && len(moves[0].values) == 1 { // a parameter as it is
				continue
			}
			i := slices.IndexFunc(l.groups, func(g *liftGroup) bool { return g.mem == s.mem && !g.element && g.moves.equal(moves) })
			if i < 0 {
				i, l.groups = len(l.groups), append(l.groups, &liftGroup{mem: s.mem, moves: moves, param: -1})
			}
			l.of[s] = l.groups[i]
		}
	}
}

// rewrite puts the parameters into the accesses.
func (l *lifter) rewrite(r *Region) *Region {
	out := &Region{}
	b := &Builder{F: l.f, R: out}
	for i := range r.Instrs {
		in := &r.Instrs[i]
		s := l.spots[in]
		g := l.of[s]
		switch {
		case s == nil || g == nil:
			for j, x := range in.Regions {
				in.Regions[j] = l.rewrite(x)
			}
			out.Instrs = append(out.Instrs, *in)
		case g.element && s.store:
			g.stored = in.Args[1]
		case g.element:
			b.Pos = in.Pos
			if g.param < 0 {
				g.param = l.f.AddParamOf(Param{Name: l.f.Mems[g.mem].Name, Kind: Scalar}, l.f.Mems[g.mem].Elem)
			}
			// The name of the load stays: a choice between the same.
			b.add(Instr{Op: OpSelect, Args: []Value{b.Const(Bool, 1), g.param, g.param}, Results: in.Results})
		default:
			b.Pos = in.Pos
			if g.param < 0 {
				g.param = l.f.AddParamOf(Param{Name: l.f.Mems[g.mem].Name + ".at", Kind: Offset, Mem: g.mem}, I64)
			}
			in.Args[0] = l.build(b, g.param, l.sum(in.Args[0]).add(g.moves, -1))
			out.Instrs = append(out.Instrs, *in)
		}
	}
	return out
}

// build is v plus a sum.
func (l *lifter) build(b *Builder, v Value, s sum) Value {
	for _, p := range s {
		x := Value(-1)
		for _, y := range p.values {
			if x < 0 {
				x = y
			} else {
				x = b.Op(OpMul, x, y)
			}
		}
		switch {
		case x < 0:
			x = b.Const(I64, Bits(p.times))
		case p.times == -1:
			v = b.Op(OpSub, v, x)
			continue
		case p.times != 1:
			x = b.Op(OpMul, x, b.Const(I64, Bits(p.times)))
		}
		v = b.Op(OpAdd, v, x)
	}
	return v
}

// results makes results of the stores that became elements.
func (l *lifter) results() {
	t := l.f.Body.Terminator()
	for _, g := range l.groups {
		if g.element && g.stored >= 0 {
			t.Args = append(t.Args, g.stored)
			l.f.Results = append(slices.Clone(l.f.Results), l.f.Mems[g.mem].Elem)
		}
	}
}

// products puts a sum into the numbers of parameters.
func (l *lifter) products(s sum) []Product {
	out := []Product{}
	for _, p := range s {
		q := Product{Times: p.times}
		for _, v := range p.values {
			q.Params = append(q.Params, l.param[v])
		}
		out = append(out, q)
	}
	return out
}

// strip leaves out the parameters and memories that g, with the parameters of
// l.f, does not need, and says what the others are.
func (l *lifter) strip(g *Func) *Accesses {
	a := &Accesses{Func: g}
	usedMem, used := make([]bool, len(g.Mems)), make([]bool, len(g.Types))
	Walk(g.Body, func(in *Instr) {
		for _, v := range in.Args {
			used[v] = true
		}
		switch in.Op {
		case OpLoad, OpStore, OpAtomic, OpClear:
			usedMem[in.Mem] = true
		}
	})
	of := func(q Param) bool { return q.Kind == Offset || q.Kind == Shape || q.Kind == Stride }
	for _, q := range g.Params {
		if of(q) && used[q.Value] {
			usedMem[q.Mem] = true
		}
	}
	given := len(l.def) // values of the function that was given come first
	params := g.Params
	g.Params = nil
	for i, q := range params {
		if !used[q.Value] && (!of(q) || q.Kind == Offset || !usedMem[q.Mem]) { // shape and strides are there as a whole
			continue
		}
		x := Lifted{Param: i}
		if old := l.f.Params[i].Value; int(old) >= given {
			for _, h := range l.groups {
				if h.param == old {
					x = Lifted{Param: None, Mem: h.mem, Element: h.element, At: l.products(h.moves)}
					if h.element {
						x.At = l.products(h.at)
					}
				}
			}
		}
		g.Params, a.Params = append(g.Params, q), append(a.Params, x)
	}
	a.Results = make([]Lifted, len(g.Results))
	for i := range a.Results {
		a.Results[i].Param = None
	}
	n := len(g.Results)
	for i := len(l.groups) - 1; i >= 0; i-- {
		if h := l.groups[i]; h.element && h.stored >= 0 {
			n--
			a.Results[n] = Lifted{Param: None, Mem: h.mem, Element: true, At: l.products(h.at)}
		}
	}
	to := make([]Mem, len(g.Mems))
	mems := g.Mems
	g.Mems = nil
	for m := range mems {
		if usedMem[m] {
			to[m] = Mem(len(g.Mems))
			g.Mems, a.Mems = append(g.Mems, mems[m]), append(a.Mems, Mem(m))
		}
	}
	for i := range g.Params {
		if q := &g.Params[i]; of(*q) {
			q.Mem = to[q.Mem]
		}
	}
	Walk(g.Body, func(in *Instr) {
		switch in.Op {
		case OpLoad, OpStore, OpAtomic, OpClear:
			in.Mem = to[in.Mem]
		}
	})
	return a
}

// String writes where the parameter or result is, in the words of f, the function
// that was given to LiftAccesses.
func (x Lifted) String(f *Func) string {
	if x.Param != None {
		return f.Params[x.Param].Name
	}
	s := ""
	for _, p := range x.At {
		if s != "" {
			s += " + "
		}
		t := ""
		for _, i := range p.Params {
			if t != "" {
				t += "*"
			}
			t += f.Params[i].Name
		}
		switch {
		case t == "":
			s += fmt.Sprint(p.Times)
		case p.Times == 1:
			s += t
		default:
			s += fmt.Sprintf("%d*%s", p.Times, t)
		}
	}
	return fmt.Sprintf("%s[%s]", f.Mems[x.Mem].Name, s)
}
