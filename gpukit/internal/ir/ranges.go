package ir

import (
	"fmt"
	"math"
	"slices"
)

// ProveBounds returns f, a function without calls, without the checks of indices
// and slice bounds that cannot fail: an index that runs from 0 to the length, one
// that was checked before, one whose values lie below a constant length. It
// relies on shapes not being negative and on the places of threads.
func ProveBounds(f *Func) *Func {
	g, _ := proveBounds(f, false)
	return g
}

// AssumeBounds is ProveBounds that also leaves out checks that cannot fail if
// conditions on the parameters hold, and returns these conditions, which a
// caller tests before it runs the function; where one does not hold, the
// function of ProveBounds is for it. A parameter in a condition must have the
// same value for every worker.
func AssumeBounds(f *Func) (*Func, []Condition) {
	return proveBounds(f, true)
}

// Condition is A <= B + Plus, in which A and B are values of parameters, by
// number, or 0 for None.
type Condition struct {
	A, B int
	Plus int64
}

// None is what stands in a Condition for 0 instead of a parameter.
const None = -1

// Holds tests the condition on the arguments of a worker.
func (c Condition) Holds(args []Bits) bool {
	get := func(i int) int64 {
		if i == None {
			return 0
		}
		return int64(args[i])
	}
	return get(c.A) <= addSat(get(c.B), c.Plus)
}

// String writes the condition in the words of f.
func (c Condition) String(f *Func) string {
	name := func(i int) string {
		if i == None {
			return "0"
		}
		return f.Params[i].Name
	}
	switch {
	case c.B == None:
		return fmt.Sprintf("%s <= %d", name(c.A), c.Plus)
	case c.A == None:
		return fmt.Sprintf("%s >= %d", name(c.B), -c.Plus)
	case c.Plus == 0:
		return fmt.Sprintf("%s <= %s", name(c.A), name(c.B))
	}
	return fmt.Sprintf("%s <= %s%+d", name(c.A), name(c.B), c.Plus)
}

// zero stands for the number 0 where a value is asked for.
const zero Value = -1

// relation is x <= y + k, in whole numbers without wrap-around.
type relation struct {
	x, y Value
	k    int64
}

// interval is what a value may be, both ends included.
type interval struct{ lo, hi int64 }

var everything = interval{math.MinInt64, math.MaxInt64}

func (a interval) join(b interval) interval { return interval{min(a.lo, b.lo), max(a.hi, b.hi)} }

// hypothesis is what is believed of a carried value until an iteration shows
// that it need not be so.
type hypothesis struct {
	interval
	notAbove, notBelow bool // its first value
}

// prover walks a function, knowing what holds where it stands.
type prover struct {
	f       *Func
	def     []*Instr      // by value: the operation that computes it, if one does
	known   []interval    // by value
	param   []int         // by value: its number, or None
	believe []*hypothesis // by value
	facts   []relation
	about   [][]int32    // of facts, by x + 1
	below   [][]int32    // of facts, by y + 1
	nest    [][]interval // results of the enclosing constructs so far
	removed map[*Instr]bool
	changed bool
	steps   int

	assume     bool
	conditions []Condition
}

func proveBounds(f *Func, assume bool) (*Func, []Condition) {
	if !hasChecks(f.Body) {
		return f, nil
	}
	n := len(f.Types)
	p := &prover{f: f, def: make([]*Instr, n), known: make([]interval, n), param: make([]int, n), believe: make([]*hypothesis, n),
		about: make([][]int32, n+1), below: make([][]int32, n+1), removed: map[*Instr]bool{}, assume: assume}
	for i := range p.known {
		p.known[i], p.param[i] = rangeOf(f.Types[i]), None
	}
	Walk(f.Body, func(in *Instr) {
		if len(in.Regions) == 0 && len(in.Results) == 1 {
			p.def[in.Results[0]] = in
		}
	})
	for i, q := range f.Params {
		p.param[q.Value] = i
		switch q.Kind {
		case Shape:
			p.known[q.Value] = interval{0, 1 << 62}
		case ThreadIdx, BlockIdx:
			p.known[q.Value] = interval{0, 1 << 31}
		case BlockDim, GridDim:
			p.known[q.Value] = interval{1, 1 << 31}
		case Iteration:
			p.known[q.Value] = interval{0, smallCount}
		}
	}
	for rounds := 0; ; rounds++ {
		p.changed, p.conditions = false, nil
		clear(p.removed)
		p.forget(0)
		p.nest = [][]interval{make([]interval, len(f.Results))}
		p.region(f.Body)
		if !p.changed {
			break
		}
		if rounds > 60 { // believe nothing any more
			for v, h := range p.believe {
				if h != nil {
					*h = hypothesis{interval: rangeOf(f.Types[v])}
				}
			}
		}
	}
	if len(p.removed) == 0 {
		return f, p.conditions
	}
	g := *f
	g.settled = false
	g.Types = slices.Clip(f.Types)
	g.Body = f.Body.without(p.removed)
	return eliminate(&g), p.conditions
}

// hasChecks reports whether r has checks of indices or of slices' bounds.
func hasChecks(r *Region) bool {
	for i := range r.Instrs {
		in := &r.Instrs[i]
		if in.Op == OpBounds || in.Op == OpSliceBounds {
			return true
		}
		for _, s := range in.Regions {
			if hasChecks(s) {
				return true
			}
		}
	}
	return false
}

// without is a copy of r, without some instructions. Its instructions share operands with
// those of r.
func (r *Region) without(which map[*Instr]bool) *Region {
	out := &Region{Instrs: make([]Instr, 0, len(r.Instrs))}
	for i := range r.Instrs {
		in := &r.Instrs[i]
		if which[in] {
			continue
		}
		out.Instrs = append(out.Instrs, *in)
		if in.Regions == nil {
			continue
		}
		x := &out.Instrs[len(out.Instrs)-1]
		x.Regions = make([]*Region, len(in.Regions))
		for j, s := range in.Regions {
			x.Regions[j] = s.without(which)
		}
	}
	return out
}

// drop removes instructions from a region and those inside it.
func drop(r *Region, which func(*Instr) bool) {
	kept := r.Instrs[:0:0]
	for i := range r.Instrs {
		if in := &r.Instrs[i]; !which(in) {
			for _, s := range in.Regions {
				drop(s, which)
			}
			kept = append(kept, *in)
		}
	}
	r.Instrs = kept
}

// clone copies f, its regions included.
func (f *Func) clone() *Func {
	g := *f
	g.settled = false
	g.Types = slices.Clone(f.Types)
	g.Body = f.Body.clone()
	return &g
}

func (r *Region) clone() *Region {
	out := &Region{Instrs: slices.Clone(r.Instrs)}
	for i := range out.Instrs {
		in := &out.Instrs[i]
		in.Args, in.Results, in.Carried = slices.Clone(in.Args), slices.Clone(in.Results), slices.Clone(in.Carried)
		in.Regions = slices.Clone(in.Regions)
		for j, s := range in.Regions {
			in.Regions[j] = s.clone()
		}
	}
	return out
}

// rangeOf is what a value of type t may be. Of U64, whose upper half is no
// int64, nothing is said.
func rangeOf(t Type) interval {
	switch {
	case t == U64 || !t.IsInt():
		return everything
	case t.IsSigned():
		return interval{-1 << (t.Bits() - 1), 1<<(t.Bits()-1) - 1}
	}
	return interval{0, 1<<t.Bits() - 1}
}

// whole reports whether v is an integer whose Bits are the number itself.
func (p *prover) whole(v Value) bool { t := p.f.Types[v]; return t.IsInt() && t != U64 }

func (p *prover) learn(x, y Value, k int64) {
	if x == y {
		return
	}
	p.about[x+1] = append(p.about[x+1], int32(len(p.facts)))
	p.below[y+1] = append(p.below[y+1], int32(len(p.facts)))
	p.facts = append(p.facts, relation{x, y, k})
}

func (p *prover) forget(n int) {
	for i := len(p.facts) - 1; i >= n; i-- {
		x, y := p.facts[i].x, p.facts[i].y
		p.about[x+1] = p.about[x+1][:len(p.about[x+1])-1]
		p.below[y+1] = p.below[y+1][:len(p.below[y+1])-1]
	}
	p.facts = p.facts[:n]
}

func addSat(a, b int64) int64 {
	s := a + b
	switch {
	case a > 0 && b > 0 && s < 0:
		return math.MaxInt64
	case a < 0 && b < 0 && s >= 0:
		return math.MinInt64
	}
	return s
}

// within reports whether the sum of two ends is a number of type t.
func within(t Type, a, b int64) bool {
	s := a + b
	if (s > a) != (b > 0) && b != 0 {
		return false
	}
	r := rangeOf(t)
	return s >= r.lo && s <= r.hi
}

// high and low are the ends of what v may be here.
func (p *prover) high(v Value, depth int) int64 {
	if v == zero {
		return 0
	}
	h := p.known[v].hi
	if depth > 0 {
		for _, i := range p.about[v+1] {
			f := p.facts[i]
			if y := p.high(f.y, depth-1); y != math.MaxInt64 || f.k < 0 {
				h = min(h, addSat(y, f.k))
			}
		}
	}
	return h
}

func (p *prover) low(v Value) int64 {
	if v == zero {
		return 0
	}
	l := p.known[v].lo
	for _, i := range p.below[v+1] { // x <= v + k
		if f := p.facts[i]; f.k != math.MinInt64 {
			x := int64(0)
			if f.x != zero {
				x = p.known[f.x].lo
			}
			if x > math.MinInt64 {
				l = max(l, addSat(x, -f.k))
			}
		}
	}
	return l
}

// sum takes v apart as w + k, where that does not wrap around.
func (p *prover) sum(v Value) (w Value, k int64, ok bool) {
	in := p.def[v]
	if in == nil || !p.whole(v) {
		return 0, 0, false
	}
	switch in.Op {
	case OpConst:
		return zero, int64(in.Imm), true
	case OpConvert:
		if w = in.Args[0]; p.whole(w) {
			r := rangeOf(p.f.Types[v])
			return w, 0, p.low(w) >= r.lo && p.high(w, 2) <= r.hi
		}
		return 0, 0, false
	case OpAdd, OpSub:
		w, c := in.Args[0], in.Args[1]
		if in.Op == OpAdd && p.isConst(w) {
			w, c = c, w
		}
		if !p.isConst(c) {
			return 0, 0, false
		}
		k := p.known[c].lo
		if in.Op == OpSub {
			if k == math.MinInt64 {
				return 0, 0, false
			}
			k = -k
		}
		t := p.f.Types[v]
		return w, k, within(t, p.high(w, 3), k) && within(t, p.low(w), k)
	}
	return 0, 0, false
}

func (p *prover) isConst(v Value) bool { return p.def[v] != nil && p.def[v].Op == OpConst }

// proves reports whether x <= y + k holds here.
func (p *prover) proves(x, y Value, k int64) bool {
	p.steps = 0
	return p.prove(x, y, k, 8, false)
}

func (p *prover) prove(x, y Value, k int64, depth int, assume bool) bool {
	if p.steps++; p.steps > 2000 {
		return false
	}
	if x == y {
		return k >= 0
	}
	if h, l := p.high(x, 2), p.low(y); h != math.MaxInt64 && l != math.MinInt64 && h <= addSat(l, k) && addSat(l, k) != math.MinInt64 {
		return true
	}
	if depth == 0 {
		return false
	}
	next := func(x, y Value, k int64) bool { return p.prove(x, y, k, depth-1, assume) }
	less := func(k, c int64) (int64, bool) { d := k - c; return d, (d < k) == (c > 0) || c == 0 }
	more := func(k, c int64) (int64, bool) { d := k + c; return d, (d > k) == (c > 0) || c == 0 }
	if x != zero {
		if w, c, ok := p.sum(x); ok {
			if d, ok := less(k, c); ok && next(w, y, d) {
				return true
			}
		}
		if in := p.def[x]; in != nil && p.whole(x) {
			switch in.Op {
			case OpMin:
				if next(in.Args[0], y, k) || next(in.Args[1], y, k) {
					return true
				}
			case OpMax:
				if next(in.Args[0], y, k) && next(in.Args[1], y, k) {
					return true
				}
			case OpSelect:
				if next(in.Args[1], y, k) && next(in.Args[2], y, k) {
					return true
				}
			case OpRem: // of a positive number: below it
				if p.low(in.Args[1]) > 0 && k < math.MaxInt64 && next(in.Args[1], y, k+1) {
					return true
				}
				if p.low(in.Args[0]) >= 0 && next(in.Args[0], y, k) {
					return true
				}
			case OpDiv, OpShr:
				positive := in.Op == OpShr || p.low(in.Args[1]) > 0
				if positive && p.low(in.Args[0]) >= 0 && next(in.Args[0], y, k) {
					return true
				}
			case OpAnd:
				for i, a := range in.Args {
					if p.low(a) >= 0 && p.whole(in.Args[1-i]) && next(a, y, k) {
						return true
					}
				}
			}
		}
	}
	for _, i := range p.about[x+1] {
		f := p.facts[i]
		if d, ok := less(k, f.k); ok && next(f.y, y, d) {
			return true
		}
	}
	for _, i := range p.below[y+1] { // z <= y + c
		f := p.facts[i]
		if d, ok := less(k, f.k); ok && next(x, f.x, d) {
			return true
		}
	}
	if y != zero {
		if w, c, ok := p.sum(y); ok {
			if d, ok := more(k, c); ok && next(x, w, d) {
				return true
			}
		}
		if in := p.def[y]; in != nil && p.whole(y) {
			switch in.Op {
			case OpMax:
				if next(x, in.Args[0], k) || next(x, in.Args[1], k) {
					return true
				}
			case OpMin:
				if next(x, in.Args[0], k) && next(x, in.Args[1], k) {
					return true
				}
			case OpSelect:
				if next(x, in.Args[1], k) && next(x, in.Args[2], k) {
					return true
				}
			case OpRem, OpDiv, OpShr: // not negative if the first operand is not
				if x == zero && k >= 0 && (in.Op != OpDiv || p.low(in.Args[1]) > 0) && next(zero, in.Args[0], 0) {
					return true
				}
			}
		}
	}
	if assume && p.uniform(x) && p.uniform(y) {
		if l, h := p.low(x), p.high(y, 2); l != math.MinInt64 && h != math.MaxInt64 && l > addSat(h, k) { // it cannot hold here
			return false
		}
		c := Condition{A: None, B: None, Plus: k}
		if x != zero {
			c.A = p.param[x]
		}
		if y != zero {
			c.B = p.param[y]
		}
		if c.B == None && (c.A == None || c.Plus < 0 || p.f.Params[c.A].Kind == Shape) { // nobody means it so small
			return false
		}
		if !slices.Contains(p.conditions, c) {
			p.conditions = append(p.conditions, c)
		}
		return true
	}
	return false
}

// uniform reports whether v may stand in a condition.
func (p *prover) uniform(v Value) bool {
	if v == zero {
		return true
	}
	i := p.param[v]
	if i == None || p.f.Types[v] != I64 {
		return false
	}
	k := p.f.Params[i].Kind
	return k == Scalar || k.Uniform() && k != BlockIdx
}

// assumes is proves with conditions allowed; those of an attempt that fails are
// dropped.
func (p *prover) assumes(x, y Value, k int64) bool {
	n := len(p.conditions)
	p.steps = 0
	if p.prove(x, y, k, 8, true) {
		return true
	}
	p.conditions = p.conditions[:n]
	return false
}

// suppose learns that cond is as told.
func (p *prover) suppose(cond Value, truth bool) {
	in := p.def[cond]
	if in == nil {
		return
	}
	op := in.Op
	switch {
	case op == OpNot:
		p.suppose(in.Args[0], !truth)
		return
	case op == OpAnd && truth || op == OpOr && !truth:
		p.suppose(in.Args[0], truth)
		p.suppose(in.Args[1], truth)
		return
	case len(in.Args) != 2 || !p.whole(in.Args[0]):
		return
	}
	if !truth {
		op = negated[op]
	}
	x, y := in.Args[0], in.Args[1]
	switch op {
	case OpLt:
		p.learn(x, y, -1)
	case OpLe:
		p.learn(x, y, 0)
	case OpGt:
		p.learn(y, x, -1)
	case OpGe:
		p.learn(y, x, 0)
	case OpEq:
		p.learn(x, y, 0)
		p.learn(y, x, 0)
	}
}

func (p *prover) region(r *Region) {
	for i := range r.Instrs {
		in := &r.Instrs[i]
		switch in.Op {
		case OpIf:
			p.branch(in)
		case OpLoop:
			p.loop(in)
		case OpBreak:
			p.hand(len(p.nest)-1-in.Level(), in.Args)
		case OpBounds:
			p.bounds(in)
		case OpSliceBounds:
			from, to, n := in.Args[0], in.Args[1], in.Args[2]
			if p.sure(relation{zero, from, 0}, relation{from, to, 0}, relation{to, n, 0}) {
				p.removed[in] = true
			}
			p.learn(zero, from, 0)
			p.learn(from, to, 0)
			p.learn(to, n, 0)
		default:
			for _, v := range in.Results {
				p.known[v] = p.value(in, v)
			}
		}
	}
}

// sure reports whether all of rs hold, under conditions if these are allowed.
func (p *prover) sure(rs ...relation) bool {
	n := len(p.conditions)
	for _, r := range rs {
		if !p.proves(r.x, r.y, r.k) && !(p.assume && p.assumes(r.x, r.y, r.k)) {
			p.conditions = p.conditions[:n]
			return false
		}
	}
	return true
}

func (p *prover) bounds(in *Instr) {
	i, n := in.Args[0], in.Args[1]
	if p.sure(relation{zero, i, 0}, relation{i, n, -1}) {
		p.removed[in] = true
	}
	// A negative length would be a very large one.
	if p.low(n) >= 0 {
		p.learn(zero, i, 0)
		p.learn(i, n, -1)
	}
}

// hand notes what a construct is given as results.
func (p *prover) hand(depth int, args []Value) {
	into := p.nest[depth]
	for j, v := range args {
		if depth > 0 {
			into[j] = into[j].join(interval{p.low(v), p.high(v, 3)})
		}
	}
}

var nothing = interval{math.MaxInt64, math.MinInt64}

func (p *prover) enter(results []Value) []interval {
	rs := make([]interval, len(results))
	for j := range rs {
		rs[j] = nothing
	}
	p.nest = append(p.nest, rs)
	return rs
}

func (p *prover) leave(results []Value) {
	rs := p.nest[len(p.nest)-1]
	p.nest = p.nest[:len(p.nest)-1]
	for j, v := range results {
		if p.known[v] = rs[j]; !p.whole(v) || rs[j] == nothing {
			p.known[v] = rangeOf(p.f.Types[v])
		}
	}
}

func (p *prover) branch(in *Instr) {
	p.enter(in.Results)
	n := len(p.facts)
	arrives := func(r *Region) (yields, breaks bool) { return r.Terminator().Op == OpYield, breaksTo(r, 0) }
	var only *Region // the one arm whose end leads behind the if, if there is one
	var kept []relation
	taken := -1 // the one arm that leads there at all
	for i, arm := range in.Regions {
		p.suppose(in.Args[0], i == 0)
		p.region(arm)
		y, b := arrives(arm)
		if y {
			p.hand(len(p.nest)-1, arm.Terminator().Args)
		}
		oy, ob := arrives(in.Regions[1-i])
		if !oy && !ob {
			taken = i
			if y && !b {
				only, kept = arm, slices.Clone(p.facts[n:])
			}
		}
		p.forget(n)
	}
	p.leave(in.Results)
	switch {
	case only != nil:
		// What the arm made sure of still holds.
		for _, f := range kept {
			p.learn(f.x, f.y, f.k)
		}
		for j, v := range in.Results {
			if a := only.Terminator().Args[j]; p.whole(v) {
				p.learn(v, a, 0)
				p.learn(a, v, 0)
			}
		}
	case taken >= 0:
		p.suppose(in.Args[0], taken == 0)
	}
}

func (p *prover) loop(in *Instr) {
	p.enter(in.Results)
	n := len(p.facts)
	for j, c := range in.Carried {
		if !p.whole(c) {
			continue
		}
		first := in.Args[j]
		start := interval{p.low(first), p.high(first, 3)}
		h := p.believe[c]
		if h == nil {
			h = &hypothesis{start, true, true}
			p.believe[c] = h
		}
		// The first value may be less known than in an earlier round.
		if h.lo > start.lo {
			h.lo, p.changed = start.lo, true
		}
		if h.hi < start.hi {
			h.hi, p.changed = start.hi, true
		}
		p.known[c] = h.interval
		if h.notAbove {
			p.learn(c, first, 0)
		}
		if h.notBelow {
			p.learn(first, c, 0)
		}
	}
	body := in.Regions[0]
	p.region(body)
	if t := body.Terminator(); t.Op == OpYield {
		for j, c := range in.Carried {
			if !p.whole(c) {
				continue
			}
			h, v, all := p.believe[c], t.Args[j], rangeOf(p.f.Types[c])
			if h.lo > all.lo && p.low(v) < h.lo {
				// Numbers that grow downwards end at 0 more often than elsewhere.
				if h.lo > 0 && p.low(v) >= 0 {
					h.lo = 0
				} else {
					h.lo = all.lo
				}
				p.changed = true
			}
			if h.hi < all.hi && p.high(v, 3) > h.hi {
				h.hi, p.changed = all.hi, true
			}
			if h.notAbove && !p.proves(v, in.Args[j], 0) {
				h.notAbove, p.changed = false, true
			}
			if h.notBelow && !p.proves(in.Args[j], v, 0) {
				h.notBelow, p.changed = false, true
			}
		}
	}
	p.forget(n)
	p.leave(in.Results)
}

// highest bounds a value of U64 by how it is made.
func (p *prover) highest(v Value, depth int) (h int64, ok bool) {
	in := p.def[v]
	if in == nil || p.f.Types[v] != U64 || depth == 0 {
		return 0, false
	}
	of := func(i int) (int64, bool) { return p.highest(in.Args[i], depth-1) }
	switch in.Op {
	case OpConst:
		return int64(in.Imm), in.Imm <= math.MaxInt64
	case OpConvert:
		if w := in.Args[0]; p.whole(w) && p.low(w) >= 0 {
			return p.high(w, 2), true
		}
	case OpAnd:
		a, okA := of(0)
		b, okB := of(1)
		if okA && okB {
			return min(a, b), true
		}
		return max(a, b), okA || okB
	case OpShr:
		d := p.def[in.Args[1]]
		if d == nil || d.Op != OpConst || d.Imm == 0 {
			return 0, false
		}
		k := min(d.Imm, 64)
		if h, ok := of(0); ok {
			return h >> k, true
		}
		return int64(^uint64(0) >> k), true
	}
	return 0, false
}

// value is what the result of an operation may be.
func (p *prover) value(in *Instr, v Value) interval {
	all := rangeOf(p.f.Types[v])
	if !p.whole(v) {
		return all
	}
	of := func(i int) interval {
		if r := (interval{p.low(in.Args[i]), p.high(in.Args[i], 3)}); r.lo <= r.hi {
			return r
		}
		return rangeOf(p.f.Types[in.Args[i]]) // control does not come here
	}
	whole := len(in.Args) > 0 && p.whole(in.Args[0])
	fits := func(r interval, ok bool) interval {
		if !ok || r.lo < all.lo || r.hi > all.hi {
			return all
		}
		return r
	}
	switch in.Op {
	case OpConst:
		return interval{int64(in.Imm), int64(in.Imm)}
	case OpConvert:
		if whole {
			return fits(of(0), true)
		}
		if h, ok := p.highest(in.Args[0], 4); ok {
			return fits(interval{0, h}, true)
		}
	case OpAdd:
		a, b := of(0), of(1)
		return fits(interval{a.lo + b.lo, a.hi + b.hi}, within(I64, a.lo, b.lo) && within(I64, a.hi, b.hi))
	case OpSub:
		a, b := of(0), of(1)
		if b.lo > math.MinInt64 {
			return fits(interval{a.lo - b.hi, a.hi - b.lo}, within(I64, a.lo, -b.hi) && within(I64, a.hi, -b.lo))
		}
	case OpMul:
		a, b := of(0), of(1)
		r, ok := nothing, true
		for _, x := range []int64{a.lo, a.hi} {
			for _, y := range []int64{b.lo, b.hi} {
				z := x * y
				ok = ok && (x == 0 || z/x == y && !(x == -1 && y == math.MinInt64))
				r = r.join(interval{z, z})
			}
		}
		return fits(r, ok)
	case OpMin:
		a, b := of(0), of(1)
		return interval{min(a.lo, b.lo), min(a.hi, b.hi)}
	case OpMax:
		a, b := of(0), of(1)
		return interval{max(a.lo, b.lo), max(a.hi, b.hi)}
	case OpSelect:
		return of(1).join(of(2))
	case OpRem:
		a, b := of(0), of(1)
		if b.lo > 0 {
			r := interval{max(a.lo, -(b.hi - 1)), min(max(a.hi, 0), b.hi-1)}
			r.lo = min(r.lo, 0)
			return r
		}
	case OpDiv:
		a, b := of(0), of(1)
		if b.lo > 0 {
			return interval{min(a.lo/b.lo, a.lo/b.hi), max(a.hi/b.lo, a.hi/b.hi)}
		}
	case OpShr:
		if a := of(0); p.whole(in.Args[1]) {
			if b := of(1); b.lo >= 0 && b.hi < 64 {
				return interval{min(a.lo>>b.lo, a.lo>>b.hi), max(a.hi>>b.lo, a.hi>>b.hi)}
			}
			return interval{min(a.lo, 0), max(a.hi, 0)}
		}
	case OpAnd:
		a, b := of(0), of(1)
		switch {
		case a.lo >= 0 && b.lo >= 0:
			return interval{0, min(a.hi, b.hi)}
		case a.lo >= 0:
			return interval{0, a.hi}
		case b.lo >= 0:
			return interval{0, b.hi}
		}
	}
	return all
}
