package ir

import (
	"math"
	"slices"
)

// nest is what is known of a function's loops.
type nest struct {
	f       *Func
	aliases Aliasing
	loops   []*loop
	uses    []bool   // by value: something has it as an operand
	def     []*Instr // by value: what computes it, if not a parameter or a carried value
	carrier []*loop  // by value: the loop that carries it
	param   []int    // by value: its number, or None
	place   map[*Instr]*place
	raws    map[Value]poly // without closed forms
	polys   map[Value]poly
	varies  map[Value]uint64
	arrays  []*arrayParams // by memory; nil without
	written []bool         // by memory: it, or one that may share elements with it
	limited map[Value]bool // parameters that are believed to be small
	// products of parameters and numbers of iterations that are believed to be small as well
	products []monomial
	access   map[*Instr]*access
	wide     map[Value]poly  // see widened
	sizes    map[*Instr]bool // see isSize
	ready    bool            // loops are understood
	asked    int             // questions so far
}

// place is where an instruction stands.
type place struct {
	region *Region
	index  int
	holder *Instr // of the region; nil is the function
	arm    int
	loop   *loop // the innermost around it
	order  int   // in the text
}

type arrayParams struct {
	offset        Value
	shape, stride []Value
}

// loop is a loop and, if it counts, how: the value of its counter in iteration k is first + k*step.
type loop struct {
	in    *Instr
	id    int
	outer *loop
	depth int
	nest  uint64 // the loop and those around it, as bits
	iter  Value  // the number of the iteration, from 0: no value of the function

	notCounted string
	notAt      Pos
	guard      int // in the body: the if that ends the loop
	stays      int // its arm that does not
	counter    Value
	first      Value // what the counter begins with
	step       int64
	op         Op // counter op bound holds in every iteration
	bound      Value
	differs    bool           // the condition is counter != bound
	closed     map[Value]poly // of carried values
}

// smallest numbers that are not believed of parameters that a launch can look at, and of numbers of iterations: no
// launch has so many workers, and a loop within one would run for years.
const (
	smallParam = 1 << 48
	smallCount = 1 << 48
	// of products of these
	smallProduct = 1 << 54
)

// maxLoops is how many loops have a bit in a set of them.
const maxLoops = 60

// newNest reads f, a function without calls.
func newNest(f *Func, a Aliasing) *nest {
	n := &nest{f: f, aliases: a, uses: make([]bool, len(f.Types)), def: make([]*Instr, len(f.Types)), carrier: make([]*loop, len(f.Types)), param: make([]int, len(f.Types)),
		place: map[*Instr]*place{}, raws: map[Value]poly{}, polys: map[Value]poly{}, varies: map[Value]uint64{},
		arrays: make([]*arrayParams, len(f.Mems)), written: make([]bool, len(f.Mems)), limited: map[Value]bool{}, access: map[*Instr]*access{}, wide: map[Value]poly{}, sizes: map[*Instr]bool{}}
	for i := range n.param {
		n.param[i] = None
	}
	for i, p := range f.Params {
		n.param[p.Value] = i
		if p.Kind == Offset || p.Kind == Shape || p.Kind == Stride {
			if n.arrays[p.Mem] == nil {
				n.arrays[p.Mem] = &arrayParams{offset: noValue}
			}
			x := n.arrays[p.Mem]
			switch p.Kind {
			case Offset:
				x.offset = p.Value
			case Shape:
				x.shape = append(x.shape, p.Value)
			case Stride:
				x.stride = append(x.stride, p.Value)
			}
		}
	}
	n.read(f.Body, nil, 0, nil)
	if len(n.loops) > maxLoops {
		return n
	}
	for _, l := range n.loops {
		n.closedForms(l)
	}
	for _, l := range n.loops {
		n.counts(l)
	}
	clear(n.polys)
	clear(n.varies)
	n.ready = true
	return n
}

func (n *nest) read(r *Region, holder *Instr, arm int, inside *loop) {
	for i := range r.Instrs {
		in := &r.Instrs[i]
		n.place[in] = &place{r, i, holder, arm, inside, len(n.place)}
		for _, v := range in.Results {
			n.def[v] = in
		}
		for _, v := range in.Args {
			n.uses[v] = true
		}
		if in.Op == OpStore || in.Op == OpAtomic || in.Op == OpClear {
			for m := range n.written {
				n.written[m] = n.written[m] || n.mayShare(in.Mem, Mem(m))
			}
		}
		l := inside
		if in.Op == OpLoop {
			l = &loop{in: in, id: len(n.loops), outer: inside, iter: Value(len(n.f.Types) + len(n.loops)), closed: map[Value]poly{}}
			l.nest = 1 << (l.id & 63)
			if inside != nil {
				l.depth, l.nest = inside.depth+1, l.nest|inside.nest
			}
			n.loops = append(n.loops, l)
			for _, c := range in.Carried {
				n.carrier[c] = l
			}
		}
		for j, s := range in.Regions {
			n.read(s, in, j, l)
		}
	}
}

// mayShare reports whether two memories may have an element in common.
func (n *nest) mayShare(a, b Mem) bool {
	if a == b {
		return true
	}
	global := func(m Mem) bool { return n.f.Mems[m].Space == Global }
	if !global(a) || !global(b) {
		return false
	}
	class := n.aliases.Class
	return int(a) >= len(class) || int(b) >= len(class) || class[a] == class[b]
}

// distinct reports whether different subscripts are different elements.
func (n *nest) distinct(m Mem) bool {
	return n.f.Mems[m].Space != Global || int(m) < len(n.aliases.Distinct) && n.aliases.Distinct[m]
}

// isConst gives the number that v is, if it is a constant integer.
func (n *nest) isConst(v Value) (int64, bool) {
	if int(v) < len(n.def) && n.def[v] != nil && n.def[v].Op == OpConst && n.f.Types[v].IsInt() {
		return int64(n.def[v].Imm), true
	}
	return 0, false
}

// harmless reports whether the instruction only computes and cannot fail, its constant operands considered.
func (n *nest) harmless(in *Instr) bool {
	if in.Pure(n.f) {
		return true
	}
	switch in.Op {
	case OpDiv, OpRem:
		c, ok := n.isConst(in.Args[1])
		return ok && c != 0
	case OpShl, OpShr:
		c, ok := n.isConst(in.Args[1])
		return ok && c >= 0
	}
	return false
}

// uniform reports whether v is the same for every worker of a launch and can be computed from parameters.
func (n *nest) uniform(v Value) bool {
	if i := n.param[v]; i != None {
		return n.f.Params[i].Kind.Uniform() && n.f.Params[i].Kind != BlockIdx || n.f.Params[i].Kind == Scalar && i < len(n.aliases.Uniform) && n.aliases.Uniform[i]
	}
	in := n.def[v]
	if in == nil {
		return false
	}
	args := in.Args
	if in.Op == OpLoop { // a counter, when the loop has ended
		e, ok := n.atEnd(n.loopOf(in), slices.Index(in.Results, v))
		if !ok {
			return false
		}
		args = e.operands()
	} else if !n.harmless(in) {
		return false
	}
	for _, a := range args {
		if !n.uniform(a) {
			return false
		}
	}
	return true
}

// handed gives the value that an if or loop hands out as v, if it is one and the same at every exit.
func (n *nest) handed(v Value) (Value, bool) {
	in := n.def[v]
	if in == nil || in.Op != OpIf {
		return v, false
	}
	j := 0
	for in.Results[j] != v {
		j++
	}
	same, ok := noValue, true
	exits(in, func(args []Value) {
		if same == noValue {
			same = args[j]
		} else if !n.raw(same).equal(n.raw(args[j])) {
			ok = false
		}
	})
	return same, ok && same != noValue
}

// raw is v as a polynomial of parameters, carried values and what else is no sum or product. Of integers of less than
// 64 bits it is the value itself.
func (n *nest) raw(v Value) poly {
	if p, ok := n.raws[v]; ok {
		return p
	}
	p := atom(v)
	n.raws[v] = p
	t := n.f.Types[v]
	in := n.def[v]
	if in == nil || !t.IsInt() {
		return p
	}
	wide := t == I64 || t == U64
	switch in.Op {
	case OpConst:
		p = number64(int64(in.Imm))
	case OpConvert:
		if x := in.Args[0]; wide && n.f.Types[x].IsInt() {
			p = n.raw(x)
		}
	case OpAdd, OpSub:
		if wide {
			c := int64(1)
			if in.Op == OpSub {
				c = -1
			}
			p = n.raw(in.Args[0]).plus(n.raw(in.Args[1]), c)
		}
	case OpNeg:
		if wide {
			p = poly(nil).plus(n.raw(in.Args[0]), -1)
		}
	case OpMul:
		if q, ok := n.raw(in.Args[0]).times(n.raw(in.Args[1])); wide && ok {
			p = q
		}
	case OpShl:
		if c, ok := n.isConst(in.Args[1]); wide && ok && c >= 0 && c < 64 {
			p = poly(nil).plus(n.raw(in.Args[0]), 1<<c)
		}
	case OpIf:
		if x, ok := n.handed(v); ok {
			p = n.raw(x)
		}
	}
	if len(p) > maxTerms {
		p = atom(v)
	}
	n.raws[v] = p
	return p
}

// poly is v with the closed forms of carried values put in.
func (n *nest) poly(v Value) poly {
	if p, ok := n.polys[v]; ok {
		return p
	}
	p := n.close(n.raw(v))
	n.polys[v] = p
	return p
}

func (n *nest) close(p poly) poly {
	for range 8 {
		open := false
		q, ok := p.replace(func(v Value) (poly, bool) {
			if int(v) < len(n.carrier) && n.carrier[v] != nil {
				if c, ok := n.carrier[v].closed[v]; ok {
					open = true
					return c, true
				}
			}
			if c, ok := n.widened(v); ok {
				open = true
				return c, true
			}
			return nil, false
		})
		if !open || !ok {
			return p
		}
		p = q
	}
	return p
}

// widened is an integer of less than 64 bits as the sum or product that it is, if that does not wrap around where it is
// computed.
func (n *nest) widened(v Value) (p poly, ok bool) {
	if !n.ready || int(v) >= len(n.def) || n.def[v] == nil {
		return nil, false
	}
	in, t := n.def[v], n.f.Types[v]
	if !t.IsInt() || t.Bits() == 64 {
		return nil, false
	}
	if w, done := n.wide[v]; done {
		return w, w != nil
	}
	n.wide[v] = nil
	arg := func(i int) poly { return n.exact(in.Args[i]) }
	switch in.Op {
	case OpAdd:
		p = arg(0).plus(arg(1), 1)
	case OpSub:
		p = arg(0).plus(arg(1), -1)
	case OpMul:
		if p, ok = arg(0).times(arg(1)); !ok {
			return nil, false
		}
	case OpConvert:
		if x := n.f.Types[in.Args[0]]; !x.IsInt() || x == U64 {
			return nil, false
		}
		p = arg(0)
	default:
		return nil, false
	}
	if _, isConst := p.constant(); isConst || n.size(p) >= 1<<62 {
		return nil, false
	}
	k := n.knownAt(in)
	r := rangeOf(t)
	if n.refutes(k, number64(r.lo-1).plus(p, -1)) && n.refutes(k, p.plus(number64(r.hi+1), -1)) {
		n.wide[v] = p
	}
	return n.wide[v], n.wide[v] != nil
}

// refutes reports whether p cannot be 0 or more, as k says.
func (n *nest) refutes(k known, p poly) bool {
	for _, checks := range []bool{false, true} {
		q := newQuestion(n, 0)
		q.facts(k, 1, checks)
		q.positive(p, 1)
		if q.impossible() {
			return true
		}
		if len(k.checked) == 0 {
			break
		}
	}
	return false
}

// dependsOn gives the loops in whose iterations v may differ.
func (n *nest) dependsOn(v Value) (bits uint64) {
	if int(v) >= len(n.f.Types) {
		return 1 << (int(v) - len(n.f.Types))
	}
	if b, ok := n.varies[v]; ok {
		return b
	}
	n.varies[v] = ^uint64(0)
	p := n.poly(v)
	if len(p) == 1 && p[0] == (polyTerm{alone(v), 1}) {
		bits = n.atomDependsOn(v)
	} else {
		bits = n.polyDependsOn(p)
	}
	n.varies[v] = bits
	return bits
}

func (n *nest) polyDependsOn(p poly) (bits uint64) {
	for _, t := range p {
		for _, v := range t.m {
			if v != noValue {
				bits |= n.dependsOn(v)
			}
		}
	}
	return bits
}

func (n *nest) atomDependsOn(v Value) (bits uint64) {
	if l := n.carrier[v]; l != nil {
		return l.nest
	}
	in := n.def[v]
	if in == nil {
		return 0
	}
	if n.harmless(in) || in.Op == OpDiv || in.Op == OpRem || in.Op == OpLoad && !n.written[in.Mem] {
		for _, a := range in.Args {
			bits |= n.dependsOn(a)
		}
		return bits
	}
	if l := n.place[in].loop; l != nil {
		return l.nest
	}
	return 0
}

// closedForms finds the carried values of l that grow by the same number in every iteration.
func (n *nest) closedForms(l *loop) {
	t := l.in.Regions[0].Terminator()
	if t.Op != OpYield {
		return
	}
	for j, c := range l.in.Carried {
		if typ := n.f.Types[c]; typ != I64 && typ != U64 {
			continue
		}
		clear(n.polys)
		clear(n.varies)
		by := n.close(n.raw(t.Args[j]).plus(atom(c), -1))
		if n.polyDependsOn(by)&(1<<l.id) != 0 {
			continue
		}
		if p, ok := by.times(atom(l.iter)); ok {
			l.closed[c] = n.close(n.raw(l.in.Args[j])).plus(p, 1)
		}
	}
}

// negated is the comparison that holds when op does not, of integers; mirrored is op with its operands exchanged.
var (
	negated  = map[Op]Op{OpLt: OpGe, OpLe: OpGt, OpGt: OpLe, OpGe: OpLt, OpEq: OpNe, OpNe: OpEq}
	mirrored = map[Op]Op{OpLt: OpGt, OpLe: OpGe, OpGt: OpLt, OpGe: OpLe, OpEq: OpEq, OpNe: OpNe}
)

// counts finds out whether l is a counted loop.
func (n *nest) counts(l *loop) {
	no := func(at Pos, why string) { l.notCounted, l.notAt = why, at }
	body := l.in.Regions[0]
	var guard *Instr
	for i := range body.Instrs {
		in := &body.Instrs[i]
		if in.Op == OpIf {
			guard, l.guard = in, i
			break
		}
		// A check that is the same in every iteration may stand there: len(a[0]).
		if !n.harmless(in) && !(in.MayFault(n.f) && n.invariant(l, in.Args)) {
			no(in.Pos, "its condition is not what an iteration begins with")
			return
		}
	}
	l.stays = -1
	if guard != nil {
		for i, arm := range guard.Regions {
			if t := arm.Terminator(); t.Op == OpBreak && t.Level() == 1 {
				quiet := true
				for j := range arm.Instrs[:len(arm.Instrs)-1] {
					quiet = quiet && n.harmless(&arm.Instrs[j])
				}
				if quiet {
					l.stays = 1 - i
				}
			}
		}
	}
	if l.stays < 0 {
		no(l.in.Pos, "its condition is not what an iteration begins with")
		return
	}
	// No other way out.
	left := (*Instr)(nil)
	var find func(r *Region, level int)
	find = func(r *Region, level int) {
		for i := range r.Instrs {
			in := &r.Instrs[i]
			if in.Op == OpBreak && in.Level() >= level && left == nil {
				left = in
			}
			for j, s := range in.Regions {
				if in != guard || j == l.stays {
					find(s, level+1)
				}
			}
		}
	}
	find(body, 0)
	if left != nil {
		no(left.Pos, "an iteration may leave it early")
		return
	}
	if t := body.Terminator(); t.Op != OpYield {
		no(l.in.Pos, "it does not go on")
		return
	}
	cond, truth := n.def[guard.Args[0]], l.stays == 0
	for cond != nil && cond.Op == OpNot {
		cond, truth = n.def[cond.Args[0]], !truth
	}
	if cond == nil || negated[cond.Op] == 0 || !n.f.Types[cond.Args[0]].IsInt() {
		no(guard.Pos, "its condition does not compare a counter with a bound")
		return
	}
	op := cond.Op
	if !truth {
		op = negated[op]
	}
	for k, c := range cond.Args {
		if k == 1 {
			op = mirrored[op]
		}
		if n.carrier[c] == l {
			n.counter(l, c, cond.Args[1-k], op, guard.Pos)
			if l.notCounted == "" {
				return
			}
		}
	}
	if l.notCounted == "" {
		no(guard.Pos, "its condition does not compare a counter with a bound")
	}
}

// leaving is the break that ends a counted loop.
func (l *loop) leaving() *Instr {
	return l.in.Regions[0].Instrs[l.guard].Regions[1-l.stays].Terminator()
}

// invariant reports whether vs are the same in all iterations of l.
func (n *nest) invariant(l *loop, vs []Value) bool {
	for _, v := range vs {
		if n.dependsOn(v)&(1<<l.id) != 0 {
			return false
		}
	}
	return true
}

// counter takes c op bound for the condition of l.
func (n *nest) counter(l *loop, c, bound Value, op Op, at Pos) {
	no := func(why string) { l.notCounted, l.notAt = why, at }
	l.notCounted = ""
	j := 0
	for l.in.Carried[j] != c {
		j++
	}
	next := l.in.Regions[0].Terminator().Args[j]
	t := n.f.Types[c]
	step, ok := int64(0), false
	if t == I64 {
		step, ok = n.raw(next).plus(atom(c), -1).constant()
	} else if t != U64 {
		step, ok = n.narrowStep(next, c)
	} else {
		no("its counter is a uint, which is not looked at")
		return
	}
	if !ok || step == 0 || step > 1<<31 || step < -1<<31 {
		no("its counter does not move by the same number in every iteration")
		return
	}
	if !n.invariant(l, []Value{bound}) {
		no("its bound changes while it runs")
		return
	}
	// The last value and one step more must be a number of the type.
	size := n.size(n.poly(bound))
	r := rangeOf(t)
	var room bool
	switch op {
	case OpLt, OpGt:
		room = (op == OpLt) == (step > 0) && (step == 1 || step == -1 || t == I64 && size <= 1<<61)
	case OpNe:
		// A launch sees to it that the counter begins on the right side.
		if t == I64 && (step == 1 || step == -1) && n.uniform(l.in.Args[j]) && n.uniform(bound) {
			l.differs, room = true, true
			if op = OpLt; step < 0 {
				op = OpGt
			}
		}
	case OpLe, OpGe:
		k, isConst := n.isConst(bound)
		switch {
		case (op == OpLe) != (step > 0):
		case isConst && step > 0:
			room = k <= r.hi-step
		case isConst:
			room = k >= r.lo-step
		default:
			room = t == I64 && size <= 1<<61
		}
	}
	if !room {
		no("its counter may wrap around before it ends")
		return
	}
	l.counter, l.first, l.step, l.op, l.bound = c, l.in.Args[j], step, op, bound
	if t != I64 {
		l.closed[c] = n.poly(l.first).plus(atom(l.iter), step)
	}
}

// narrowStep is the number that is added to c to give next.
func (n *nest) narrowStep(next, c Value) (int64, bool) {
	for {
		x, ok := n.handed(next)
		if !ok {
			break
		}
		next = x
	}
	in := n.def[next]
	if in == nil || in.Op != OpAdd && in.Op != OpSub {
		return 0, false
	}
	a, b := in.Args[0], in.Args[1]
	if in.Op == OpAdd && b == c {
		a, b = b, a
	}
	k, ok := n.isConst(b)
	if in.Op == OpSub {
		k = -k
	}
	return k, ok && a == c
}

// size bounds the absolute value of a polynomial.
func (n *nest) size(p poly) (s float64) {
	for _, t := range p {
		s += float64(math.Abs(float64(t.c)) * n.sizeOf(t.m))
	}
	return s
}

func (n *nest) sizeOf(m monomial) float64 {
	s := 1.0
	if n.ready && m.product() {
		known := true
		for _, v := range m {
			switch {
			case v == noValue:
			case int(v) >= len(n.f.Types):
				l := n.loops[int(v)-len(n.f.Types)]
				known = known && l.notCounted == "" && n.uniform(l.first) && n.uniform(l.bound)
			default:
				known = known && n.f.Types[v] == I64 && n.uniform(v)
			}
		}
		if known {
			if !slices.Contains(n.products, m) {
				n.products = append(n.products, m)
			}
			return smallProduct
		}
	}
	for _, v := range m {
		if v != noValue {
			s *= n.atomSize(v, 6)
		}
	}
	return s
}

func (n *nest) atomSize(v Value, depth int) float64 {
	if int(v) >= len(n.f.Types) {
		return smallCount
	}
	t := n.f.Types[v]
	all := math.Ldexp(1, t.Bits()) // of an unsigned one
	if t.IsSigned() {
		all /= 2
	}
	if i := n.param[v]; i != None {
		switch {
		case t != I64:
			return all
		case n.uniform(v):
			n.limited[v] = true
			return smallParam
		}
		return all
	}
	in := n.def[v]
	if in == nil || depth == 0 {
		return all
	}
	of := func(i int) float64 {
		if x := in.Args[i]; n.f.Types[x].IsInt() && n.f.Types[x] != U64 {
			if _, ok := n.isConst(x); !ok && n.def[x] != nil && n.raw(x).equal(atom(x)) {
				return n.atomSize(x, depth-1)
			}
			return n.size(n.poly(x))
		}
		return math.Inf(1)
	}
	switch in.Op {
	case OpDiv, OpShr:
		return min(all, of(0))
	case OpRem:
		return min(all, of(0), of(1))
	case OpMin, OpMax:
		return min(all, max(of(0), of(1)))
	case OpSelect:
		return min(all, max(of(1), of(2)))
	}
	return all
}
