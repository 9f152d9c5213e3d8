package ir

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// known is what holds at a place: sums that are not negative because of the loops and conditions around it, and because
// of the checks of indices before it; sure are these checks themselves: x is an index of y elements.
type known struct {
	around, checked []poly
	sure            []relation
}

// access is a load or store of a Global memory.
type access struct {
	in     *Instr
	write  bool
	subs   []poly // nil: not understood
	inside bool   // each subscript is known to lie within the shape
	known  known
	order  int
}

// accessOf understands a load or store.
func (n *nest) accessOf(in *Instr) *access {
	if a := n.access[in]; a != nil {
		return a
	}
	a := &access{in: in, write: in.Op != OpLoad, order: n.place[in].order}
	n.access[in] = a
	a.known = n.knownAt(in)
	x := n.arrays[in.Mem]
	if x == nil || x.offset == noValue || len(x.shape) != len(x.stride) {
		return a
	}
	subs := make([]poly, len(x.shape))
	seen := false
terms:
	for _, t := range n.poly(in.Args[0]) {
		if t.m == alone(x.offset) && t.c == 1 && !seen {
			seen = true
			continue
		}
		for d, s := range x.stride {
			if t.m.has(s) {
				subs[d] = subs[d].plus(poly{{t.m.without(s), t.c}}, 1)
				continue terms
			}
		}
		return a
	}
	if !seen {
		return a
	}
	a.subs, a.inside = subs, true
	for d, s := range subs {
		a.inside = a.inside && n.isInside(a.known, s, x.shape[d])
	}
	return a
}

// isInside reports whether 0 <= s < length holds.
func (n *nest) isInside(k known, s poly, length Value) bool {
	for _, r := range k.sure {
		if r.y == length && n.poly(r.x).equal(s) {
			return true
		}
	}
	if n.size(s) >= 1<<62 {
		return false
	}
	return n.refutes(k, s.scaled(-1).plus(number64(1), -1)) && n.refutes(k, s.plus(atom(length), -1))
}

// exact is v as a whole number, or v itself if its polynomial might wrap around.
func (n *nest) exact(v Value) poly {
	p := n.poly(v)
	if len(p) == 1 && p[0].c == 1 && !p[0].m.product() { // one value, or 1
		return p
	}
	if n.size(p) >= 1<<62 {
		return atom(v)
	}
	return p
}

// certain finds the checks of indices that the loops and conditions around them keep from failing.
func (n *nest) certain() map[*Instr]bool {
	found := map[*Instr]bool{}
	Walk(n.f.Body, func(in *Instr) {
		if in.Op != OpBounds || !n.ready {
			return
		}
		x, length := n.exact(in.Args[0]), n.exact(in.Args[1])
		k := known{around: n.knownAt(in).around}
		if n.refutes(k, length.scaled(-1).plus(number64(1), -1)) && n.refutes(k, x.scaled(-1).plus(number64(1), -1)) && n.refutes(k, x.plus(length, -1)) {
			found[in] = true
		}
	})
	return found
}

// without is the nest of the function without some instructions that have no results; what was believed for leaving them
// out is still believed.
func (n *nest) without(in map[*Instr]bool) *nest {
	drop(n.f.Body, func(x *Instr) bool { return in[x] })
	m := newNest(n.f, n.aliases)
	m.limited, m.products, m.asked = n.limited, n.products, n.asked
	return m
}

// knownAt collects what holds where in stands.
func (n *nest) knownAt(in *Instr) (k known) {
	at := n.place[in]
	arm := 0 // of the instruction before on the way out
	for {
		for i := range at.region.Instrs[:at.index] {
			switch x := &at.region.Instrs[i]; x.Op {
			case OpBounds:
				k.sure = append(k.sure, relation{x.Args[0], x.Args[1], -1})
				// A negative length would be a very large one.
				if n.isSize(x) {
					v := n.exact(x.Args[0])
					k.checked = append(k.checked, v, n.exact(x.Args[1]).plus(v, -1).plus(number64(1), -1))
				}
			case OpSliceBounds:
				from, to, length := n.exact(x.Args[0]), n.exact(x.Args[1]), n.exact(x.Args[2])
				k.checked = append(k.checked, from, to.plus(from, -1), length.plus(to, -1))
			}
		}
		h := at.holder
		if h == nil {
			break
		}
		switch h.Op {
		case OpLoop:
			l := n.loopOf(h)
			k.around = append(k.around, atom(l.iter))
			if l.notCounted == "" && (at.index > l.guard || at.index == l.guard && arm == l.stays) {
				k.around = append(k.around, n.runs(l))
			}
		case OpIf:
			k.around = n.suppose(k.around, h.Args[0], at.arm == 0)
		}
		arm = at.arm
		at = n.place[h]
	}
	k.around = different(k.around, nil)
	k.checked = different(k.checked, k.around)
	return k
}

// different are those of ps that are not among them before, or in but.
func different(ps, but []poly) (out []poly) {
	for _, p := range ps {
		if !slices.ContainsFunc(out, p.equal) && !slices.ContainsFunc(but, p.equal) {
			out = append(out, p)
		}
	}
	return out
}

func (n *nest) loopOf(in *Instr) *loop {
	for _, l := range n.loops {
		if l.in.Regions[0] == in.Regions[0] { // in may be a copy
			return l
		}
	}
	return nil
}

// runs says what holds in an iteration of a loop that counts.
func (n *nest) runs(l *loop) poly {
	first, bound := n.exact(l.first), n.exact(l.bound)
	now := first.plus(atom(l.iter), l.step)
	switch l.op {
	case OpLt:
		return bound.plus(now, -1).plus(number64(1), -1)
	case OpLe:
		return bound.plus(now, -1)
	case OpGt:
		return now.plus(bound, -1).plus(number64(1), -1)
	}
	return now.plus(bound, -1)
}

// isSize reports whether the length that an index is checked against is certainly not negative.
func (n *nest) isSize(check *Instr) bool {
	v := check.Args[1]
	if i := n.param[v]; i != None && n.f.Params[i].Kind == Shape {
		return true
	}
	if c, ok := n.isConst(v); ok {
		return c >= 0
	}
	if known, ok := n.sizes[check]; ok {
		return known
	}
	n.sizes[check] = false
	n.sizes[check] = n.refutes(n.knownAt(check), n.exact(v).scaled(-1).plus(number64(1), -1))
	return n.sizes[check]
}

// suppose adds what follows from a condition's being as told.
func (n *nest) suppose(facts []poly, cond Value, truth bool) []poly {
	in := n.def[cond]
	if in == nil {
		return facts
	}
	op := in.Op
	switch {
	case op == OpNot:
		return n.suppose(facts, in.Args[0], !truth)
	case op == OpAnd && truth || op == OpOr && !truth:
		return n.suppose(n.suppose(facts, in.Args[0], truth), in.Args[1], truth)
	case negated[op] == 0:
		return facts
	}
	t := n.f.Types[in.Args[0]]
	if !t.IsInt() || t == U64 {
		return facts
	}
	if !truth {
		op = negated[op]
	}
	x, y := n.exact(in.Args[0]), n.exact(in.Args[1])
	below, one := y.plus(x, -1), number64(1)
	above := x.plus(y, -1)
	switch op {
	case OpLt:
		facts = append(facts, below.plus(one, -1))
	case OpLe:
		facts = append(facts, below)
	case OpGt:
		facts = append(facts, above.plus(one, -1))
	case OpGe:
		facts = append(facts, above)
	case OpEq:
		facts = append(facts, below, above)
	}
	return facts
}

// question is a system in whose rows monomials are variables. Those that differ between two iterations have a variable
// for each: tag 1 or 2, and 0 for what is the same in both.
type question struct {
	n      *nest
	same   uint64 // loops whose iteration is the same in both
	vars   map[taggedMonomial]int
	names  []taggedMonomial
	eq, ge []map[int]int64 // -1 is the number
}

type taggedMonomial struct {
	m   monomial
	tag int
}

func newQuestion(n *nest, same uint64) *question {
	return &question{n: n, same: same, vars: map[taggedMonomial]int{}}
}

func (q *question) variable(m monomial, tag int) int {
	if m == unit {
		return -1
	}
	if q.n.polyDependsOn(poly{{m, 1}})&^q.same == 0 {
		tag = 0
	}
	k := taggedMonomial{m, tag}
	i, ok := q.vars[k]
	if !ok {
		i = len(q.names)
		q.vars[k] = i
		q.names = append(q.names, k)
	}
	return i
}

func (q *question) sum(p poly, tag int, into map[int]int64, c int64) {
	for _, t := range p {
		into[q.variable(t.m, tag)] += c * t.c
	}
}

func (q *question) positive(p poly, tag int) {
	r := map[int]int64{}
	q.sum(p, tag, r, 1)
	q.ge = append(q.ge, r)
}

func (q *question) facts(k known, tag int, checks bool) {
	for _, p := range k.around {
		q.positive(p, tag)
	}
	if checks {
		for _, p := range k.checked {
			q.positive(p, tag)
		}
	}
}

// equal says that p in the first iteration is r in the second, if that can be said in whole numbers that do not wrap.
func (q *question) equal(p, r poly) {
	e := map[int]int64{}
	q.sum(p, 1, e, 1)
	q.sum(r, 2, e, -1)
	size := 0.0
	for i, c := range e {
		s := 1.0
		if i >= 0 {
			s = q.n.sizeOf(q.names[i].m)
		}
		if c != 0 {
			size += float64(math.Abs(float64(c)) * s)
		}
	}
	if size < 1<<63 {
		q.eq = append(q.eq, e)
	}
}

// known adds what holds of variables anywhere.
func (q *question) known() {
	n := q.n
	for i := 0; i < len(q.names); i++ {
		k := q.names[i]
		v := last(k.m[:])
		if k.m.product() {
			lengths := true
			for _, v := range k.m {
				lengths = lengths && (v == noValue || n.isLength(v))
			}
			if lengths {
				q.ge = append(q.ge, map[int]int64{i: 1})
			}
			continue
		}
		if int(v) >= len(n.f.Types) {
			q.ge = append(q.ge, map[int]int64{i: 1})
			continue
		}
		t := n.f.Types[v]
		if n.isLength(v) {
			q.ge = append(q.ge, map[int]int64{i: 1})
		}
		if t.IsInt() && t.Bits() < 64 {
			r := rangeOf(t)
			q.ge = append(q.ge, map[int]int64{i: 1, -1: -r.lo}, map[int]int64{i: -1, -1: r.hi})
		}
		in := n.def[v]
		if in == nil || !t.IsInt() || t == U64 || i > 40 {
			continue
		}
		arg := func(j int) poly { return n.exact(in.Args[j]) }
		below := func(p poly) { q.positive(p.plus(atom(v), -1), k.tag) } // v <= p
		above := func(p poly) { q.positive(atom(v).plus(p, -1), k.tag) }
		switch in.Op {
		case OpMin:
			below(arg(0))
			below(arg(1))
		case OpMax:
			above(arg(0))
			above(arg(1))
		case OpRem:
			if c, ok := n.isConst(in.Args[1]); ok && c > 0 && c < 1<<40 {
				below(number64(c - 1))
				above(number64(1 - c))
			}
		case OpAnd:
			for j := range 2 {
				if c, ok := n.isConst(in.Args[j]); ok && c >= 0 {
					below(number64(c))
					above(nil)
				}
			}
		case OpDiv:
			if c, ok := n.isConst(in.Args[1]); ok && c > 0 && c < 1<<40 {
				// Truncated: the remainder is less than c on either side of 0.
				x := arg(0)
				q.positive(x.plus(atom(v), -c).plus(number64(c-1), 1), k.tag)
				q.positive(atom(v).plus(nil, 1).scaled(c).plus(x, -1).plus(number64(c-1), 1), k.tag)
			}
		}
	}
}

func (n *nest) isLength(v Value) bool {
	return int(v) >= len(n.f.Types) || n.param[v] != None && n.f.Params[n.param[v]].Kind == Shape
}

func (p poly) scaled(c int64) poly { return poly(nil).plus(p, c) }

func (q *question) impossible() bool {
	if q.n.asked++; q.n.asked > maxQuestions {
		return false
	}
	q.known()
	s := &system{}
	fill := func(rs []map[int]int64) (out []row) {
		for _, r := range rs {
			x := make(row, len(q.names)+1)
			for i, c := range r {
				if i < 0 {
					i = len(q.names)
				}
				if c > 1<<52 || c < -1<<52 {
					s.failed = true
				}
				x[i] = c
			}
			out = append(out, x)
		}
		return out
	}
	s.zero, s.positive = fill(q.eq), fill(q.ge)
	if s.failed {
		return false
	}
	return s.impossible()
}

// maxQuestions bounds the time that is spent on a function: what is asked after them has no answer.
const maxQuestions = 20000

// dependence is why iterations must not change places.
type dependence struct {
	source, sink *Instr // in the order in which they happen
	why          string
	stays        bool // both are one element in all iterations
}

// apart reports whether x in one iteration of l and y in a later one never meet in an element; same are the loops whose
// iteration is the same in both.
func (n *nest) apart(l *loop, same uint64, x, y *access) bool {
	for d, s := range x.subs {
		// The usual case: one subscript that is l's counter, or a multiple, plus what is the same in both.
		if f := s.factor(l.iter); f != 0 && f < 1<<14 && f > -1<<14 && s.equal(y.subs[d]) && n.polyDependsOn(s.plus(atom(l.iter), -f))&^same == 0 {
			return true
		}
	}
	// What the loops say is often enough, and quicker.
	for _, checks := range []bool{false, true} {
		if checks && len(x.known.checked)+len(y.known.checked) == 0 {
			break
		}
		q := newQuestion(n, same)
		for d := range x.subs {
			q.equal(x.subs[d], y.subs[d])
		}
		q.facts(x.known, 1, checks)
		q.facts(y.known, 2, checks)
		later := map[int]int64{-1: -1}
		q.sum(atom(l.iter), 2, later, 1)
		q.sum(atom(l.iter), 1, later, -1)
		q.ge = append(q.ge, later)
		q.multiplied(l, x, y)
		if q.impossible() {
			return true
		}
	}
	return false
}

// multiplied adds the products of what is known of iterations with what stands before them in an index, as n in i*n+j,
// where that is not negative.
func (q *question) multiplied(l *loop, x, y *access) {
	n := q.n
	type product struct {
		iter Value
		by   monomial
	}
	var done []product
	for _, e := range q.eq {
		for i := range e {
			if i < 0 {
				continue
			}
			for _, v := range q.names[i].m {
				if int(v) < len(n.f.Types) || !q.names[i].m.product() {
					continue
				}
				if p := (product{v, q.names[i].m.without(v)}); !slices.Contains(done, p) {
					done = append(done, p)
				}
			}
		}
	}
	slices.SortFunc(done, func(a, b product) int {
		if c := cmp.Compare(a.iter, b.iter); c != 0 {
			return c
		}
		return compareMonomials(a.by, b.by)
	})
	for _, p := range done {
		by := poly{{p.by, 1}}
		fits := n.polyDependsOn(by)&^q.same == 0
		for _, v := range p.by {
			fits = fits && (v == noValue || n.refutes(x.known, atom(v).scaled(-1).plus(number64(1), -1)))
		}
		if !fits {
			continue
		}
		if p.iter == l.iter {
			later := map[int]int64{}
			if m, ok := by.times(atom(l.iter)); ok {
				q.sum(m, 2, later, 1)
				q.sum(m, 1, later, -1)
				q.sum(by, 0, later, -1)
				q.ge = append(q.ge, later)
			}
		}
		for tag, facts := range [][]poly{1: x.known.around, 2: y.known.around} {
			for _, f := range facts {
				if f.factor(p.iter) == 0 {
					continue
				}
				if m, ok := f.times(by); ok {
					q.positive(m, tag)
				}
			}
		}
	}
}

// fewer leaves out accesses that are like one before them of which no more is known.
func (n *nest) fewer(all []*access) (kept []*access) {
	for _, y := range all {
		if !slices.ContainsFunc(kept, func(x *access) bool {
			if x.in.Mem != y.in.Mem || x.write != y.write || x.inside != y.inside || len(x.subs) != len(y.subs) {
				return false
			}
			for d := range x.subs {
				if !x.subs[d].equal(y.subs[d]) {
					return false
				}
			}
			return len(different(x.known.around, y.known.around)) == 0 && len(different(x.known.checked, slices.Concat(y.known.around, y.known.checked))) == 0
		}) {
			kept = append(kept, y)
		}
	}
	return kept
}

// depends looks for a dependence between different iterations of l among these accesses; same are the loops whose
// iterations are workers already.
func (n *nest) depends(l *loop, same uint64, all []*access) *dependence {
	all = n.fewer(all)
	name := func(m Mem) string { return n.f.Mems[m].Name }
	for i, x := range all {
		for _, y := range all[i:] {
			if !x.write && !y.write || !n.mayShare(x.in.Mem, y.in.Mem) {
				continue
			}
			w, o := x, y
			if !x.write {
				w, o = y, x
			}
			switch {
			case x.in.Mem != y.in.Mem:
				return &dependence{source: w.in, sink: o.in, why: fmt.Sprintf("%s and %s may share memory", name(w.in.Mem), name(o.in.Mem))}
			case !n.distinct(w.in.Mem):
				return &dependence{source: w.in, sink: o.in, why: fmt.Sprintf("elements of %s may share memory with each other", name(w.in.Mem))}
			case !x.inside || !y.inside:
				if x.inside {
					x, y = y, x
				}
				return &dependence{source: w.in, sink: o.in, why: fmt.Sprintf("it is not known which elements of %s are used here", name(x.in.Mem))}
			}
			if !n.apart(l, same, x, y) {
				return n.explain(l, x, y)
			}
			if x != y && !n.apart(l, same, y, x) {
				return n.explain(l, y, x)
			}
		}
	}
	return nil
}
