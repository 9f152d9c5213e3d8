package ir

import (
	"fmt"
	"math"
	"slices"
	"sync"
)

// maker makes the function of a stage. It goes the way of a piece twice: first to see which values a worker does not
// have, because they come from what the stage does not do, then to build.
type maker struct {
	n *nest
	p *planner
	x *piece

	missing map[Value]verdict // values that are not there, and why
	lost    map[Mem]bool      // local arrays that were written by what the stage does not do
	ever    map[Mem]bool      // the same, anywhere on the way
	alias   map[Value]Value   // results of guards that are gone, and what they are
	exits   []*Region         // arms that end loops that are taken: control does not come there
	changed bool
	level   int             // loops taken so far
	faulted bool            // something may fail outside the innermost loop that is taken
	does    map[*Instr]bool // what it does that may fail
	skipped bool            // a loop is passed by whose last values are used
	stay    uint64          // the loops on the way, as bits
	bad     verdict
	start   int // of the core, in the text
	end     int

	b    *Builder // nil the first time
	vals map[Value]Value
}

func newMaker(n *nest, p *planner, x *piece) *maker {
	m := &maker{n: n, p: p, x: x, missing: map[Value]verdict{}, lost: map[Mem]bool{}, ever: map[Mem]bool{}, alias: map[Value]Value{}, vals: map[Value]Value{}, does: map[*Instr]bool{}}
	for _, s := range x.path {
		if s.in.Op == OpLoop {
			m.stay |= 1 << n.loopOf(s.in).id
		}
	}
	cover := x.core
	if x.cut != nil {
		cover = []*Instr{x.cut}
	}
	m.start = n.place[cover[0]].order
	for _, in := range cover {
		m.end = max(m.end, n.lastOrder(in))
	}
	return m
}

// lastOrder is the order of the last instruction in in.
func (n *nest) lastOrder(in *Instr) int {
	o := n.place[in].order
	for _, r := range in.Regions {
		for i := range r.Instrs {
			o = max(o, n.lastOrder(&r.Instrs[i]))
		}
	}
	return o
}

// check reports whether the stage can be made.
func (m *maker) check() (verdict, bool) {
	for m.changed = true; m.changed && m.bad.why == ""; {
		m.changed, m.level = false, 0
		clear(m.lost)
		m.list(instrs(m.n.f.Body), 0, false)
	}
	return m.bad, m.bad.why == ""
}

func (m *maker) fail(at Pos, v verdict) {
	if m.bad.why == "" {
		m.bad = v
		m.bad.sink = at
	}
}

func (m *maker) miss(vs []Value, why verdict) {
	for _, v := range vs {
		if _, ok := m.missing[v]; !ok {
			m.missing[v] = why
			m.changed = true
		}
	}
}

// computed says that a value comes from what a stage does not do.
func computed(in *Instr) verdict {
	why := "it needs a value that is computed before it, which workers cannot compute for themselves"
	if in.Op == OpLoop {
		why = "it needs a value that a loop before it computes"
	}
	return verdict{why: why, source: in.Pos, from: in}
}

// absent is why in, which is passed by, gives nothing.
func (m *maker) absent(in *Instr) verdict {
	switch {
	case !m.has(in.Args):
		return m.lacks(in.Args)
	case in.Op == OpLoad && m.n.f.Mems[in.Mem].Space == Global:
		return verdict{why: fmt.Sprintf("it needs element %s as it was before, and workers may have written it", m.n.element(in)), source: in.Pos, from: in}
	}
	return computed(in)
}

// has reports whether all of vs are there.
func (m *maker) has(vs []Value) bool {
	for _, v := range vs {
		if _, ok := m.missing[m.real(v)]; ok {
			return false
		}
	}
	return true
}

// lacks is why one of vs is not there.
func (m *maker) lacks(vs []Value) verdict {
	for _, v := range vs {
		if why, ok := m.missing[m.real(v)]; ok {
			return why
		}
	}
	return verdict{}
}

func (m *maker) real(v Value) Value {
	for {
		w, ok := m.alias[v]
		if !ok {
			return v
		}
		v = w
	}
}

// list goes through a list of instructions on the way; closed if it is the body of a loop that stays, all of which is
// needed.
func (m *maker) list(items []*Instr, k int, closed bool) {
	for _, in := range items {
		switch {
		case k < len(m.x.path) && in == m.x.path[k].in:
			m.step(in, k, closed)
			if !closed {
				return
			}
		case in == m.x.cut:
			l := m.n.loopOf(in)
			for i, c := range in.Carried {
				m.alias[c] = in.Args[i]
			}
			for _, x := range instrs(in.Regions[0])[:l.guard] {
				m.pass(x)
			}
			if !closed {
				return
			}
			m.behind(in)
		case k == len(m.x.path) && len(m.x.core) > 0 && in == m.x.core[0]:
			for _, c := range m.x.core {
				m.do(c)
			}
			return
		default:
			m.pass(in)
		}
	}
}

// pass goes by an instruction that does not belong to the core: what only computes is computed anew.
func (m *maker) pass(in *Instr) {
	if !m.repeatable(in) {
		m.behind(in)
		Walk(&Region{Instrs: []Instr{*in}}, func(x *Instr) {
			if (x.Op == OpStore || x.Op == OpClear) && m.n.f.Mems[x.Mem].Space == Local {
				m.lost[x.Mem] = true
				m.changed = m.changed || !m.ever[x.Mem]
				m.ever[x.Mem] = true
			}
		})
		if d := m.n.deeds(in); d.faults && !d.stores && !d.loops && !m.isDone(in) {
			m.fail(in.Pos, m.absent(in))
		}
		if jumpsOut(in) {
			m.fail(in.Pos, verdict{why: "the loop around it may end early, by what other workers compute", source: in.Pos})
		}
		return
	}
	if m.level < len(m.x.taken) && !m.isDone(in) {
		m.faulted = true
	}
	m.do(in)
}

// isDone reports whether all that may fail in in is done by stages before.
func (m *maker) isDone(in *Instr) bool {
	done := true
	for _, x := range faulting(m.n, in) {
		done = done && m.p.done[x]
	}
	return done
}

// faulting are the instructions of in that may fail.
func faulting(n *nest, in *Instr) (all []*Instr) {
	if len(in.Regions) == 0 && in.MayFault(n.f) && !n.harmless(in) {
		all = append(all, in)
	}
	for _, r := range in.Regions {
		for i := range r.Instrs {
			all = append(all, faulting(n, &r.Instrs[i])...)
		}
	}
	return all
}

// behind gives the results of an instruction that is passed by, as far as they can be computed without it: counters of
// a loop when it has ended.
func (m *maker) behind(in *Instr) {
	n := m.n
	for i, v := range in.Results {
		e, ok := ending{}, false
		if in.Op == OpLoop {
			e, ok = n.atEnd(n.loopOf(in), i)
		}
		if !ok || !m.has(e.operands()) {
			m.miss(in.Results[i:i+1], m.absent(in))
			continue
		}
		if n.uses[v] && !m.skipped {
			m.skipped, m.changed = true, true
		}
		if m.b != nil {
			m.vals[v] = e.compute(m.b, func(v Value) Value { return m.args([]Value{v})[0] })
		}
	}
}

// ending is what a result of a counted loop is when it has ended: a value from outside, grown by so much in every
// iteration of a loop, if by one.
type ending struct {
	v  Value
	by growth
	l  *loop
}

func (n *nest) atEnd(l *loop, i int) (e ending, ok bool) {
	if l.notCounted != "" {
		return ending{}, false
	}
	out := l.leaving().Args[i]
	if n.outside(l, out) {
		return ending{v: out}, true
	}
	j := slices.Index(l.in.Carried, out)
	if j < 0 {
		return ending{}, false
	}
	by, ok := n.stepOf(l, out)
	return ending{l.in.Args[j], by, l}, ok
}

func (e ending) operands() []Value {
	switch {
	case e.l == nil:
		return []Value{e.v}
	case e.by.v != noValue:
		return []Value{e.v, e.l.first, e.l.bound, e.by.v}
	}
	return []Value{e.v, e.l.first, e.l.bound}
}

// compute computes it from its operands, which of gives.
func (e ending) compute(b *Builder, of func(Value) Value) Value {
	if e.l == nil {
		return of(e.v)
	}
	return e.by.grown(b, of, of(e.v), e.l.iterations(b, of(e.l.first), of(e.l.bound)))
}

// grown is v after so many iterations.
func (by growth) grown(b *Builder, of func(Value) Value, v, iterations Value) Value {
	t := b.F.Types[v]
	k := b.Convert(t, iterations)
	move, op := Value(0), OpAdd
	if by.v != noValue {
		move = b.Op(OpMul, k, of(by.v))
	} else {
		move = b.Op(OpMul, k, b.Const(t, Wrap(t, Bits(by.k))))
	}
	if by.down {
		op = OpSub
	}
	return b.Op(op, v, move)
}

// repeatable reports whether every worker may do in for itself.
func (m *maker) repeatable(in *Instr) bool {
	n := m.n
	if in.Op != OpIf && !m.has(in.Args) {
		return false
	}
	switch in.Op {
	case OpIf:
		d := n.deeds(in)
		if d.stores || d.loops {
			return false
		}
		ok := m.has(in.Args)
		for _, r := range in.Regions {
			for i := range r.Instrs {
				ok = ok && m.repeatable(&r.Instrs[i])
			}
		}
		return ok
	case OpLoop:
		if d := n.deeds(in); d.stores || d.loops {
			return false
		}
		ok := true
		r := in.Regions[0]
		for i := range r.Instrs {
			ok = ok && m.repeatable(&r.Instrs[i])
		}
		return ok
	case OpAtomic, OpPrint, OpBarrier, OpWarpBarrier, OpShuffle, OpVote, OpCall:
		return false
	case OpStore, OpClear:
		return n.f.Mems[in.Mem].Space == Local
	case OpLoad:
		if n.f.Mems[in.Mem].Space == Local {
			return !m.lost[in.Mem]
		}
		return m.fresh(in)
	}
	return true
}

// fresh reports whether a load on the way gives what it gave where it stood: nothing is written to the memory after it
// and before the core, nor by other workers of the stage.
func (m *maker) fresh(in *Instr) bool {
	n := m.n
	if !n.written[in.Mem] {
		return true
	}
	at := n.place[in]
	within := len(m.x.taken) == 0 // the innermost loop that is taken
	staying := (*loop)(nil)
	for l := at.loop; l != nil; l = l.outer {
		within = within || len(m.x.taken) > 0 && l == last(m.x.taken)
		if !slices.Contains(m.x.taken, l) {
			staying = l
		}
	}
	ok := true
	Walk(n.f.Body, func(x *Instr) {
		if x.Op != OpStore || !n.mayShare(x.Mem, in.Mem) {
			return
		}
		o := n.place[x].order
		if o > at.order && (o < m.start || o <= m.end && !within) {
			ok = false
		}
		for l := n.place[x].loop; l != nil; l = l.outer {
			ok = ok && l != staying
		}
	})
	return ok
}

// do copies an instruction as it is.
func (m *maker) do(in *Instr) {
	n := m.n
	if !m.has(in.Args) {
		m.fail(in.Pos, m.lacks(in.Args))
		return
	}
	for _, x := range faulting(n, in) {
		m.does[x] = true
	}
	if (in.Op == OpLoad || in.Op == OpStore) && m.relies(in) {
		m.fail(in.Pos, verdict{why: fmt.Sprintf("only iterations before tell whether this element of %s is in range", n.f.Mems[in.Mem].Name), source: in.Pos})
		return
	}
	if in.Op.accessesMem() && n.f.Mems[in.Mem].Space == Local {
		switch {
		case in.Op == OpClear:
			m.lost[in.Mem] = false
		case m.lost[in.Mem]:
			m.fail(in.Pos, verdict{why: fmt.Sprintf("it needs array %s as it is filled before", n.f.Mems[in.Mem].Name), source: in.Pos})
			return
		}
	}
	if m.b == nil {
		for _, r := range in.Regions {
			lost := map[Mem]bool{}
			for k, v := range m.lost {
				lost[k] = v
			}
			if slices.Contains(m.exits, r) {
				continue
			}
			for i := range r.Instrs {
				m.do(&r.Instrs[i])
			}
			m.lost = lost
		}
		return
	}
	x := *in
	x.Args = m.args(in.Args)
	x.Results, x.Carried = m.fresher(in.Results), m.fresher(in.Carried)
	x.Regions = make([]*Region, len(in.Regions))
	for i, r := range in.Regions {
		x.Regions[i] = &Region{}
		if slices.Contains(m.exits, r) {
			x.Regions[i].Instrs = []Instr{{Op: OpUnreachable}}
			continue
		}
		m.b.inside(x.Regions[i], func() {
			for j := range r.Instrs {
				m.do(&r.Instrs[j])
			}
		})
	}
	m.b.R.Instrs = append(m.b.R.Instrs, x)
}

// relies reports whether an access may be out of range because other workers, which do what comes before it, did not
// stop this one: its checks are against a length that is a length only if theirs went well.
func (m *maker) relies(in *Instr) bool {
	n := m.n
	if n.arrays[in.Mem] == nil || n.accessOf(in).inside {
		return false
	}
	for _, r := range n.accessOf(in).known.sure {
		if i := n.param[r.y]; i != None && n.f.Params[i].Kind == Shape {
			continue
		}
		if _, ok := n.isConst(r.y); !ok && (m.skipped || n.dependsOn(r.y)&m.stay != 0) {
			return true
		}
	}
	return false
}

func (m *maker) args(vs []Value) []Value {
	if len(vs) == 0 {
		return nil
	}
	out := make([]Value, len(vs))
	for i, v := range vs {
		y, ok := m.vals[m.real(v)]
		if !ok {
			panic(fmt.Sprintf("ir: internal error: v%d of %s is not there", v, m.n.f.Name))
		}
		out[i] = y
	}
	return out
}

// fresher makes values for vs.
func (m *maker) fresher(vs []Value) []Value {
	if len(vs) == 0 {
		return nil
	}
	out := make([]Value, len(vs))
	for i, v := range vs {
		out[i] = m.b.F.NewValue(m.n.f.Types[v])
		m.vals[v] = out[i]
	}
	return out
}

// step goes into an if or a loop on the way.
func (m *maker) step(in *Instr, k int, closed bool) {
	if in.Op == OpLoop {
		l := m.n.loopOf(in)
		if slices.Contains(m.x.taken, l) {
			m.spread(l, k)
			m.behind(in)
		} else {
			m.stays(in, k)
		}
		return
	}
	arm := m.x.path[k].arm
	if !m.has(in.Args) {
		m.fail(in.Pos, m.lacks(in.Args))
		return
	}
	if !closed {
		m.branch(in.Args[0], arm == 0, func() { m.list(instrs(in.Regions[arm]), k+1, false) }, false)
		m.miss(in.Results, computed(in))
		return
	}
	fill := func(i int) {
		if i == arm {
			m.list(instrs(in.Regions[i]), k+1, true)
		} else {
			for _, x := range instrs(in.Regions[i]) {
				m.pass(x)
			}
		}
		m.ends(in.Regions[i], in)
	}
	if m.b == nil {
		fill(0)
		fill(1)
		return
	}
	x := Instr{Op: OpIf, Args: m.args(in.Args), Results: m.fresher(in.Results), Regions: []*Region{{}, {}}, Pos: in.Pos}
	for i := range 2 {
		m.b.inside(x.Regions[i], func() { fill(i) })
	}
	m.b.R.Instrs = append(m.b.R.Instrs, x)
}

// ends copies the terminator of a region of holder on the way; a value that is not there is handed out as zero, and is
// not there outside.
func (m *maker) ends(r *Region, holder *Instr) {
	t := r.Terminator()
	if t.Op == OpUnreachable {
		if m.b != nil {
			m.b.Unreachable()
		}
		return
	}
	// Where the values go.
	target, yields := holder, t.Op == OpYield
	if t.Op == OpBreak {
		for range t.Level() {
			target = m.n.place[target].holder
		}
	}
	into := target.Results
	if yields && target.Op == OpLoop {
		into = target.Carried
	}
	args := make([]Value, len(t.Args))
	for i, v := range t.Args {
		if !m.has(t.Args[i : i+1]) {
			m.miss(into[i:i+1], m.lacks(t.Args[i:i+1]))
			if m.b != nil {
				args[i] = m.b.Const(m.n.f.Types[v], 0)
			}
		} else if m.b != nil {
			args[i] = m.args(t.Args[i : i+1])[0]
		}
	}
	if m.b != nil {
		m.b.R.Instrs = append(m.b.R.Instrs, Instr{Op: t.Op, Imm: t.Imm, Args: args, Pos: t.Pos})
	}
}

// begins says which carried values of a loop are not there because what they begin with is not.
func (m *maker) begins(in *Instr) {
	for i, v := range in.Args {
		if !m.has([]Value{v}) {
			m.miss(in.Carried[i:i+1], m.lacks([]Value{v}))
		}
	}
}

// stays copies a loop on the way that is not taken.
func (m *maker) stays(in *Instr, k int) {
	for mem := range m.ever {
		m.lost[mem] = true
	}
	m.begins(in)
	r := in.Regions[0]
	fill := func() {
		m.list(instrs(r), k+1, true)
		m.ends(r, in)
	}
	if m.b == nil {
		fill()
		return
	}
	x := Instr{Op: OpLoop, Pos: in.Pos, Regions: []*Region{{}}}
	for _, v := range in.Args {
		if m.has([]Value{v}) {
			x.Args = append(x.Args, m.args([]Value{v})[0])
		} else {
			x.Args = append(x.Args, m.b.Const(m.n.f.Types[v], 0))
		}
	}
	x.Carried, x.Results = m.fresher(in.Carried), m.fresher(in.Results)
	m.b.inside(x.Regions[0], fill)
	m.b.R.Instrs = append(m.b.R.Instrs, x)
}

// branch does something under a condition; otherwise nothing, or what cannot be.
func (m *maker) branch(cond Value, truth bool, then func(), sure bool) {
	if m.b == nil {
		then()
		return
	}
	yes := func() { then(); m.b.Yield() }
	no := func() {
		if sure {
			m.b.Unreachable()
		} else {
			m.b.Yield()
		}
	}
	if !truth {
		yes, no = no, yes
	}
	m.b.If(m.args([]Value{cond})[0], nil, yes, no)
}

// spread does one iteration of a loop: the one whose number is a parameter.
func (m *maker) spread(l *loop, k int) {
	m.begins(l.in)
	for i, c := range l.in.Carried {
		by, _ := m.n.stepOf(l, c)
		if by.v != noValue && !m.has([]Value{by.v}) {
			m.miss([]Value{c}, m.lacks([]Value{by.v}))
		}
		if m.b == nil || !m.has([]Value{c}) {
			continue
		}
		of := func(v Value) Value { return m.args([]Value{v})[0] }
		m.vals[c] = by.grown(m.b, of, of(l.in.Args[i]), m.vals[l.iter])
	}
	r := l.in.Regions[0]
	guard := &r.Instrs[l.guard]
	for _, in := range instrs(r)[:l.guard] {
		m.pass(in)
	}
	if !m.has(guard.Args) {
		m.fail(guard.Pos, m.lacks(guard.Args))
		return
	}
	m.level++
	m.exits = append(m.exits, guard.Regions[1-l.stays])
	arm := guard.Regions[l.stays]
	if t := arm.Terminator(); t.Op == OpYield && !breaksTo(arm, 0) {
		for i, v := range t.Args {
			m.alias[guard.Results[i]] = v
		}
	}
	m.branch(guard.Args[0], l.stays == 0, func() { m.list(l.body(), k+1, false) }, true)
	m.level--
}

// growth is what a carried value grows by in every iteration: a value, or a number.
type growth struct {
	v    Value
	k    int64
	down bool
}

// stepOf finds out what c, a carried value of l, grows by in every iteration.
func (n *nest) stepOf(l *loop, c Value) (growth, bool) {
	t := l.in.Regions[0].Terminator()
	typ := n.f.Types[c]
	if t.Op != OpYield || !typ.IsInt() {
		return growth{}, false
	}
	next := t.Args[slices.Index(l.in.Carried, c)]
	if typ == I64 || typ == U64 {
		if k, ok := n.raw(next).plus(atom(c), -1).constant(); ok {
			return growth{v: noValue, k: k}, true
		}
	}
	if k, ok := n.narrowStep(next, c); ok {
		return growth{v: noValue, k: k}, true
	}
	for {
		x, ok := n.handed(next)
		if !ok {
			break
		}
		next = x
	}
	in := n.def[next]
	if in == nil || in.Op != OpAdd && in.Op != OpSub {
		return growth{}, false
	}
	a, b := in.Args[0], in.Args[1]
	if in.Op == OpAdd && b == c {
		a, b = b, a
	}
	if a != c || !n.outside(l, b) {
		return growth{}, false
	}
	return growth{v: b, down: in.Op == OpSub}, true
}

// outside reports whether v is defined outside l.
func (n *nest) outside(l *loop, v Value) bool {
	at := (*loop)(nil)
	switch {
	case n.carrier[v] != nil:
		at = n.carrier[v]
	case n.def[v] != nil:
		at = n.place[n.def[v]].loop
	}
	for ; at != nil; at = at.outer {
		if at == l {
			return false
		}
	}
	return true
}

// stage builds the stage.
func (m *maker) stage() Stage {
	n, x := m.n, m.x
	g := NewFunc(n.f.Name)
	g.Pos = n.f.Pos
	g.Mems = n.f.Mems
	for _, q := range n.f.Params {
		m.vals[q.Value] = g.AddParamOf(q, n.f.Types[q.Value])
	}
	var s Stage
	for i, l := range x.taken {
		m.vals[l.iter] = g.AddParamOf(Param{Name: fmt.Sprintf("iteration%d", i), Kind: Iteration, Dim: i}, I64)
		s.Counts = append(s.Counts, n.count(l, nil, i == 0))
		s.Steps = append(s.Steps, n.steps(x, l))
		s.Pos = append(s.Pos, l.in.Pos)
	}
	if x.cut != nil {
		g.AddParamOf(Param{Name: fmt.Sprintf("iteration%d", len(x.taken)), Kind: Iteration, Dim: len(x.taken)}, I64)
		s.Counts = append(s.Counts, n.count(nil, x.empty[len(x.empty)-1:], len(x.taken) == 0))
		s.Steps = append(s.Steps, nil)
		s.Pos = append(s.Pos, Pos{})
	}
	m.b = NewBuilder(g)
	clear(m.lost)
	clear(m.ever)
	m.exits, m.level = nil, 0
	m.list(instrs(n.f.Body), 0, false)
	m.b.Yield()
	g = Optimize(g)
	s.Func, s.Conditions = AssumeBounds(n.uniformly(g))
	s.Func.Params = g.Params
	s.Func = Optimize(unguarded(s.Func))
	if len(s.Conditions) > 0 {
		s.checked = sync.OnceValue(func() *Func { return Optimize(unguarded(ProveBounds(g))) })
	}
	return s
}

// uniformly is g, of whose parameters only those are Scalar that are the same for every worker: conditions are about them.
func (n *nest) uniformly(g *Func) *Func {
	h := *g
	h.Params = slices.Clone(g.Params)
	for i, q := range h.Params {
		if q.Kind == Scalar && !(i < len(n.aliases.Uniform) && n.aliases.Uniform[i]) {
			h.Params[i].Kind = Offset // of nothing, and different for every worker
		}
	}
	return &h
}

// steps are the strides by which the elements that a stage uses move with l.
func (n *nest) steps(x *piece, l *loop) (steps []Step) {
	for _, in := range x.core {
		Walk(&Region{Instrs: []Instr{*in}}, func(in *Instr) {
			if in.Op != OpLoad && in.Op != OpStore || n.arrays[in.Mem] == nil {
				return
			}
			for d, f := range n.moves(in, l) {
				if s := (Step{in.Mem, d, f, in.Op == OpStore}); f != 0 && !slices.Contains(steps, s) {
					steps = append(steps, s)
				}
			}
		})
	}
	return steps
}

// moves gives, for each dimension, the number of elements by which an access moves with an iteration of l.
func (n *nest) moves(in *Instr, l *loop) []int64 {
	x := n.arrays[in.Mem]
	out := make([]int64, len(x.stride))
	for _, t := range n.poly(in.Args[0]) {
		if t.m.has(l.iter) {
			for d, s := range x.stride {
				if t.m.has(s) && t.m.without(s).without(l.iter) == unit {
					out[d] = t.c
				}
			}
		}
	}
	return out
}

// unguarded makes the conditions true whose other side cannot be.
func unguarded(f *Func) *Func {
	f = f.clone()
	var open func(r *Region)
	open = func(r *Region) {
		var out []Instr
		for _, in := range r.Instrs {
			if in.Op == OpIf {
				for i, arm := range in.Regions {
					if arm.Instrs[0].Op == OpUnreachable {
						c := f.NewValue(Bool)
						out = append(out, Instr{Op: OpConst, Imm: Bits(i), Results: []Value{c}, Pos: in.Pos})
						in.Args = []Value{c}
					}
				}
			}
			for _, s := range in.Regions {
				open(s)
			}
			out = append(out, in)
		}
		r.Instrs = out
	}
	open(f.Body)
	return f
}

// count builds the function that gives the number of iterations of l, or, if that is nil, 1 if one of the loops empty
// has none, else 0. math.MaxInt64 says that the loop practically does not end, or, if it is to look, that a parameter is
// larger than was believed.
func (n *nest) count(l *loop, empty []*loop, looks bool) *Func {
	g := NewFunc(n.f.Name, I64)
	vals := map[Value]Value{}
	for _, q := range n.f.Params {
		vals[q.Value] = g.AddParamOf(q, n.f.Types[q.Value])
	}
	b := NewBuilder(g)
	number := func(k int64) Value { return b.Const(I64, Bits(k)) }
	var copied func(v Value) Value
	copied = func(v Value) Value {
		if w, ok := vals[v]; ok {
			return w
		}
		if d := n.def[v]; d.Op == OpLoop {
			e, _ := n.atEnd(n.loopOf(d), slices.Index(d.Results, v))
			vals[v] = e.compute(b, copied)
			return vals[v]
		}
		x := *n.def[v]
		x.Args = slices.Clone(x.Args)
		for i, a := range x.Args {
			x.Args[i] = copied(a)
		}
		w := g.NewValue(n.f.Types[v])
		x.Results = []Value{w}
		b.R.Instrs = append(b.R.Instrs, x)
		vals[v] = w
		return w
	}
	iterations := func(l *loop) Value { return l.iterations(b, copied(l.first), copied(l.bound)) }
	var out Value
	if l != nil {
		out = iterations(l)
	} else {
		out = number(0)
		for _, e := range empty {
			out = b.Op(OpSelect, b.Op(OpEq, iterations(e), number(0)), number(1), out)
		}
	}
	for _, q := range n.f.Params {
		if looks && n.limited[q.Value] {
			far := b.Op(OpAdd, b.Convert(U64, vals[q.Value]), b.Const(U64, smallParam))
			out = b.Op(OpSelect, b.Op(OpLe, far, b.Const(U64, 2*smallParam)), out, number(math.MaxInt64))
		}
	}
	for _, e := range n.loops {
		if looks && e.differs {
			out = b.Op(OpSelect, b.Op(OpEq, iterations(e), number(math.MaxInt64)), number(math.MaxInt64), out)
		}
	}
	for _, m := range n.products {
		if !looks {
			break
		}
		size := b.Const(F64, FromF64(1))
		for _, v := range m {
			if int(v) >= len(n.f.Types) {
				size = b.Op(OpMul, size, b.Convert(F64, iterations(n.loops[int(v)-len(n.f.Types)])))
			} else if v != noValue {
				size = b.Op(OpMul, size, b.Convert(F64, copied(v)))
			}
		}
		limit := func(x float64) Value { return b.Const(F64, FromF64(x)) }
		small := b.Op(OpAnd, b.Op(OpLe, size, limit(smallProduct)), b.Op(OpGe, size, limit(-smallProduct)))
		out = b.Op(OpSelect, small, out, number(math.MaxInt64))
	}
	b.Yield(out)
	return Optimize(g)
}

// iterations computes how many iterations l has, whose counter goes from first to bound; math.MaxInt64 if there are too
// many.
func (l *loop) iterations(b *Builder, first, bound Value) Value {
	lo, hi := b.Convert(I64, first), b.Convert(I64, bound)
	number := func(k int64) Value { return b.Const(I64, Bits(k)) }
	runs, none := b.Op(l.op, lo, hi), number(0)
	if l.differs {
		none = b.Op(OpSelect, b.Op(OpEq, lo, hi), none, number(math.MaxInt64))
	}
	step := l.step
	if step < 0 {
		lo, hi, step = hi, lo, -step
	}
	d := b.Op(OpSub, b.Convert(U64, hi), b.Convert(U64, lo))
	one := b.Const(U64, 1)
	if l.op == OpLt || l.op == OpGt {
		d = b.Op(OpSub, d, one)
	}
	if step != 1 {
		d = b.Op(OpDiv, d, b.Const(U64, Bits(step)))
	}
	c := b.Op(OpSelect, b.Op(OpLt, d, b.Const(U64, smallCount-1)), b.Convert(I64, b.Op(OpAdd, d, one)), number(math.MaxInt64))
	return b.Op(OpSelect, runs, c, none)
}
