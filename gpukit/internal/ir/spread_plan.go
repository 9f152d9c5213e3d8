package ir

import (
	"fmt"
	"slices"
)

// verdict says why a loop is not taken.
type verdict struct {
	why          string
	source, sink Pos
	reduction    string
	from         *Instr // what computes a value that a stage does not have
}

// step is an if or a loop on the way from the function to what a stage does.
type step struct {
	in  *Instr
	arm int
}

// piece is a stage to be: what stands before its core on the way there is computed by every worker anew.
type piece struct {
	path  []step
	taken []*loop  // of the loops on the path, outermost first
	core  []*Instr // one after the other
	part  bool     // the core is not all that the innermost taken loop does
	// A piece without core is for what may fail on the way to a loop, cut, that has no iterations and so no workers.
	cut   *Instr
	empty []*loop
}

type planner struct {
	n        *nest
	pieces   []*piece
	why      map[*loop]verdict
	rejected map[*loop]verdict
	done     map[*Instr]bool // what may fail and is done by the stages so far
}

func (p *planner) took(l *loop) bool {
	for _, x := range p.pieces {
		if slices.Contains(x.taken, l) {
			return true
		}
	}
	return false
}

func (p *planner) stages() []Stage {
	n := p.n
	if v, ok := p.forbidden(); ok {
		for _, l := range n.loops {
			p.why[l] = v
		}
		return nil
	}
	var stages []Stage
	for {
		clear(p.why)
		clear(p.done)
		for l, v := range p.rejected {
			p.why[l] = v
		}
		p.pieces = p.list(instrs(n.f.Body), nil, nil)
		if !slices.ContainsFunc(p.pieces, func(x *piece) bool { return len(x.taken) > 0 }) {
			p.pieces = nil
			return nil
		}
		var bad bool
		if stages, bad = p.build(); !bad {
			return stages
		}
	}
}

// build makes the stages; if a piece cannot be made, it rejects loops, and bad asks for another plan.
func (p *planner) build() (stages []Stage, bad bool) {
	var makers []*maker
	for k, x := range p.pieces {
		m := newMaker(p.n, p, x)
		if v, ok := m.check(); !ok {
			p.reject(x, p.pieces[:k], v)
			return nil, true
		}
		for y, faults := x, m.faulted; faults; {
			y = y.without()
			m := newMaker(p.n, p, y)
			if v, ok := m.check(); !ok {
				p.rejected[x.taken[len(x.taken)-1]] = v
				return nil, true
			}
			makers = append(makers, m)
			faults = m.faulted
		}
		makers = append(makers, m)
		for in := range m.does {
			p.done[in] = true
		}
	}
	for _, m := range makers {
		stages = append(stages, m.stage())
	}
	idle := func(s Stage) bool { return len(s.Func.Body.Instrs) == 1 && len(s.Checked().Body.Instrs) == 1 }
	if k := slices.IndexFunc(stages, func(s Stage) bool { return !idle(s) }); k >= 0 {
		stages = slices.DeleteFunc(stages, idle)
	}
	return stages, false
}

func last[T any](s []T) T { return s[len(s)-1] }

// reject rejects a loop because x cannot be a stage of its own.
func (p *planner) reject(x *piece, before []*piece, v verdict) {
	level := len(x.taken)
	if x.part {
		// It needs something of loops before it: they are not taken.
		for _, all := range []bool{false, true} {
			found := false
			for _, y := range before {
				if len(y.taken) > level && slices.Equal(y.taken[:level], x.taken) && (all || p.gives(y, v.from)) {
					p.rejected[y.taken[level]] = v
					found = true
				}
			}
			if found {
				return
			}
		}
	}
	if level > 0 {
		p.rejected[x.taken[level-1]] = v
		return
	}
	for _, l := range p.n.loops {
		p.rejected[l] = v
	}
}

// gives reports whether x is what in stands for: a loop or branch on its way, or stores to what a load read.
func (p *planner) gives(x *piece, in *Instr) (yes bool) {
	if in == nil {
		return false
	}
	for _, s := range x.path {
		yes = yes || s.in == in
	}
	for _, c := range x.core {
		Walk(&Region{Instrs: []Instr{*c}}, func(s *Instr) {
			yes = yes || in.Op == OpLoad && s.Op == OpStore && p.n.mayShare(s.Mem, in.Mem)
		})
	}
	return yes
}

// without is the way to the innermost loop of x, for when it has no iterations.
func (x *piece) without() *piece {
	l := last(x.taken)
	y := &piece{taken: x.taken[:len(x.taken)-1], cut: l.in, empty: append(slices.Clone(x.empty), l)}
	for i, s := range x.path {
		if s.in == l.in {
			y.path = x.path[:i]
		}
	}
	return y
}

// forbidden looks for what keeps every loop of the function as it is.
func (p *planner) forbidden() (v verdict, yes bool) {
	n := p.n
	if len(n.f.Results) > 0 {
		return verdict{why: "the function returns a value"}, true
	}
	if len(n.loops) > maxLoops {
		return verdict{why: fmt.Sprintf("the function has more than %d loops", maxLoops)}, true
	}
	Walk(n.f.Body, func(in *Instr) {
		why := ""
		switch in.Op {
		case OpPrint:
			why = "the function prints, and lines keep their order"
		case OpAtomic:
			why = "the function has atomic operations, which keep their order"
		case OpBarrier, OpWarpBarrier, OpShuffle, OpVote:
			why = "workers wait for each other"
		case OpCall:
			why = "a function is called"
		case OpLoad, OpStore:
			if n.f.Mems[in.Mem].Space == Shared {
				why = "workers share memory"
			}
		}
		if why != "" && !yes {
			v, yes = verdict{why: why, sink: in.Pos}, true
		}
	})
	return v, yes
}

// instrs are the instructions of a region but its terminator.
func instrs(r *Region) []*Instr {
	out := make([]*Instr, len(r.Instrs)-1)
	for i := range out {
		out[i] = &r.Instrs[i]
	}
	return out
}

// body is what a counted loop does in an iteration.
func (l *loop) body() []*Instr {
	r := l.in.Regions[0]
	guard := &r.Instrs[l.guard]
	arm := guard.Regions[l.stays]
	if breaksTo(arm, 0) { // the if stays
		return instrs(r)[l.guard:]
	}
	return append(instrs(arm), instrs(r)[l.guard+1:]...)
}

// deeds is what instructions do besides computing.
type deeds struct {
	stores, faults, locals, loops bool
}

func (n *nest) deeds(in *Instr) (d deeds) {
	Walk(&Region{Instrs: []Instr{*in}}, func(x *Instr) {
		switch {
		case x.Op == OpLoop:
			d.loops = d.loops || !n.short(x)
		case x.Op == OpStore && n.f.Mems[x.Mem].Space == Local, x.Op == OpClear:
			d.locals = true
		case x.Op == OpStore:
			d.stores = true
		case x.MayFault(n.f) && !n.harmless(x):
			d.faults = true
		}
	})
	return d
}

// shortest is the number of iterations up to which a loop that fills a local array or computes a number is done anew by
// every worker.
const shortest = 16

// short reports whether a loop is so short that every worker may do it for itself, if it stores nothing.
func (n *nest) short(in *Instr) bool {
	l := n.loopOf(in)
	if l.notCounted != "" || l.differs {
		return false
	}
	lo, ok := n.isConst(l.first)
	hi, also := n.isConst(l.bound)
	if !ok || !also || lo < -1<<40 || lo > 1<<40 || hi < -1<<40 || hi > 1<<40 || (hi-lo)/l.step >= shortest {
		return false
	}
	serves := false // something that others use
	for _, v := range in.Results {
		serves = serves || n.uses[v]
	}
	Walk(in.Regions[0], func(x *Instr) {
		serves = serves || x.Op == OpStore && n.f.Mems[x.Mem].Space == Local
	})
	return serves
}

// jumpsOut reports whether control may leave in other than at its end.
func jumpsOut(in *Instr) (yes bool) {
	var find func(r *Region, level int)
	find = func(r *Region, level int) {
		for i := range r.Instrs {
			x := &r.Instrs[i]
			yes = yes || x.Op == OpBreak && x.Level() > level
			for _, s := range x.Regions {
				find(s, level+1)
			}
		}
	}
	for _, r := range in.Regions {
		find(r, 0)
	}
	return yes
}

// list cuts a list of instructions into pieces, in order; nil if it does nothing.
func (p *planner) list(items []*Instr, path []step, taken []*loop) (pieces []*piece) {
	n := p.n
	all := func() []*piece {
		for _, in := range items {
			p.refuse(in, "an iteration, or the function, may be left before it")
		}
		return p.core(items, path, taken)
	}
	for i, in := range items {
		if jumpsOut(in) && len(path) > 0 {
			return all()
		}
		if jumpsOut(in) { // what comes after it is done under a condition that only it knows
			for _, in := range items[i:] {
				p.refuse(in, "the function may return before it")
			}
			return append(p.list(items[:i], path, taken), p.core(items[i:], path, taken)...)
		}
	}
	first, end, fault := -1, 0, -1 // the run of what is done in one piece
	flush := func() {
		if first >= 0 {
			pieces = append(pieces, p.core(items[first:end], path, taken)...)
			first = -1
		}
		fault = -1
	}
	for i, in := range items {
		d := n.deeds(in)
		run := d.stores || d.loops
		if in.Op == OpLoop && !run {
			p.refuse(in, "it is short, and every worker does it for itself")
		}
		if in.Op == OpLoop && run || in.Op == OpIf && d.loops {
			var inner []*piece
			if in.Op == OpLoop {
				inner = p.loop(n.loopOf(in), path, taken, false)
			} else if !p.used(in.Results) {
				for arm, r := range in.Regions {
					inner = append(inner, p.list(instrs(r), append(slices.Clone(path), step{in, arm}), taken)...)
				}
			} else {
				p.refuse(in, "a value that is used later comes from the branch in which it stands")
			}
			if slices.ContainsFunc(inner, func(x *piece) bool { return len(x.taken) > len(taken) }) {
				flush()
				pieces = append(pieces, inner...)
				continue
			}
		}
		switch {
		case run || d.faults && first >= 0:
			if first < 0 {
				first = i
			}
			end = i + 1
		case d.faults:
			fault = i
		}
	}
	if first < 0 && fault >= 0 { // nothing comes after it that would do it on the way
		first, end = fault, fault+1
	}
	flush()
	return pieces
}

// refuse notes a reason for the loops in in that have none.
func (p *planner) refuse(in *Instr, why string) {
	Walk(&Region{Instrs: []Instr{*in}}, func(x *Instr) {
		if x.Op != OpLoop {
			return
		}
		l := p.n.loopOf(x)
		if _, ok := p.why[l]; !ok {
			p.why[l] = verdict{why: why}
			if l.notCounted != "" {
				p.why[l] = verdict{why: l.notCounted, sink: l.notAt}
			}
		}
	})
}

func (p *planner) core(items []*Instr, path []step, taken []*loop) []*piece {
	return []*piece{{path: path, taken: taken, core: items, part: true}}
}

func (p *planner) used(vs []Value) (yes bool) {
	for _, v := range vs {
		yes = yes || p.n.uses[v]
	}
	return yes
}

// loop plans a loop: taken, its body in one piece or, unless it must be one, several; or, as it is, around the one loop
// in it that is taken.
func (p *planner) loop(l *loop, path []step, taken []*loop, one bool) []*piece {
	v, ok := p.rejected[l], true
	if v.why != "" {
		ok = false
	} else if v, ok = p.takes(l, taken); ok {
		path := append(slices.Clone(path), step{in: l.in})
		taken := append(slices.Clone(taken), l)
		body := l.body()
		pieces := p.list(body, path, taken)
		if len(pieces) == 0 || one && len(pieces) > 1 || !slices.ContainsFunc(pieces, func(x *piece) bool { return len(x.taken) > len(taken) }) {
			pieces = p.core(body, path, taken)
			pieces[0].part = false
		}
		return pieces
	}
	p.why[l] = v
	if jumpsOut(l.in) {
		return nil
	}
	// The loop itself stays, within each worker.
	pieces, ok := p.around(instrs(l.in.Regions[0]), append(slices.Clone(path), step{in: l.in}), taken)
	if !ok || len(pieces) != 1 {
		p.inside(l, fmt.Sprintf("it stands in the loop at %v, whose iterations depend on each other", l.in.Pos))
		return nil
	}
	return pieces
}

// inside notes a reason for the loops in l that have none.
func (p *planner) inside(l *loop, why string) {
	for _, m := range p.n.loops {
		if m != l && m.nest&(1<<l.id) != 0 {
			if _, ok := p.why[m]; !ok {
				p.why[m] = verdict{why: why}
			}
		}
	}
}

// around plans the body of a loop that stays: only if all that it does is one loop that is taken, in one piece.
func (p *planner) around(items []*Instr, path []step, taken []*loop) (pieces []*piece, ok bool) {
	n := p.n
	for _, in := range items {
		d := n.deeds(in)
		if !d.stores && !d.loops {
			continue
		}
		ok := false
		var inner []*piece
		switch in.Op {
		case OpLoop:
			inner = p.loop(n.loopOf(in), path, taken, true)
			ok = len(inner) == 1 && len(inner[0].taken) > len(taken)
		case OpIf:
			ok = true
			for arm, r := range in.Regions {
				some, fine := p.around(instrs(r), append(slices.Clone(path), step{in, arm}), taken)
				inner, ok = append(inner, some...), ok && fine
			}
		}
		if !ok {
			return nil, false
		}
		pieces = append(pieces, inner...)
	}
	return pieces, true
}

// takes decides whether the iterations of l, inside those of taken, may be workers.
func (p *planner) takes(l *loop, taken []*loop) (verdict, bool) {
	n := p.n
	no := func(why string, at ...Pos) (verdict, bool) {
		v := verdict{why: why}
		if len(at) > 0 {
			v.sink = at[0]
		}
		return v, false
	}
	if l.notCounted != "" {
		if v, ok := p.carries(l); !ok && v.reduction != "" {
			return v, false
		}
		return no(l.notCounted, l.notAt)
	}
	for i := range l.in.Results {
		if _, ok := n.atEnd(l, i); !ok && p.used(l.in.Results[i:i+1]) {
			if v, ok := p.carries(l); !ok {
				return v, false
			}
			return no("a value that it computes is used after it")
		}
	}
	if len(l.body()) == 0 {
		return no("it does nothing")
	}
	if v, ok := p.carries(l); !ok {
		return v, false
	}
	if !n.uniform(l.first) || !n.uniform(l.bound) {
		return no("how often it runs is not known before, or not the same for all workers")
	}
	var same uint64
	for _, t := range taken {
		same |= 1 << t.id
	}
	var all []*access
	locals := map[Mem]bool{}
	Walk(l.in.Regions[0], func(in *Instr) {
		switch {
		case in.Op == OpStore && n.f.Mems[in.Mem].Space == Local, in.Op == OpClear:
			locals[in.Mem] = true
		case in.Op == OpLoad && n.written[in.Mem] && n.f.Mems[in.Mem].Space == Global, in.Op == OpStore:
			all = append(all, n.accessOf(in))
		}
	})
	for m := range n.f.Mems {
		if locals[Mem(m)] && !p.private(l, Mem(m)) {
			return no(fmt.Sprintf("array %s keeps its values from iteration to iteration", n.f.Mems[m].Name))
		}
	}
	if len(all) > 100 {
		return no("it has too many reads and writes to look at")
	}
	if d := n.depends(l, same, all); d != nil {
		return verdict{why: d.why, source: d.source.Pos, sink: d.sink.Pos, reduction: n.accumulates(d)}, false
	}
	return verdict{}, true
}

// carries looks at the values that l hands from iteration to iteration.
func (p *planner) carries(l *loop) (verdict, bool) {
	n := p.n
	for _, c := range l.in.Carried {
		if _, ok := n.stepOf(l, c); ok {
			continue
		}
		v := verdict{why: "a value of one iteration is used in the next", reduction: n.reduces(l, c)}
		if v.reduction != "" {
			v.why = "it accumulates a " + v.reduction + ", in order"
		}
		Walk(l.in.Regions[0], func(in *Instr) {
			if v.sink.Line == 0 && slices.Contains(in.Args, c) {
				v.sink = in.Pos
			}
		})
		return v, false
	}
	return verdict{}, true
}

// private reports whether a local array holds nothing from one iteration of l to another, or to what comes after.
func (p *planner) private(l *loop, m Mem) bool {
	n := p.n
	if n.exposed(instrs(l.in.Regions[0]), m, false) {
		return false
	}
	ok := true
	Walk(n.f.Body, func(in *Instr) {
		if in.Op != OpLoad || in.Mem != m {
			return
		}
		at := n.place[in]
		for x := at.loop; x != nil; x = x.outer {
			if x == l {
				return
			}
		}
		// Outside: the last clearing before it on its way, in whose rest of the region l must not stand.
		for {
			for i := at.index - 1; i >= 0; i-- {
				if c := &at.region.Instrs[i]; c.Op == OpClear && c.Mem == m {
					for x := n.place[l.in]; ; x = n.place[x.holder] {
						if x.region == at.region && x.index > i {
							ok = false
						}
						if x.holder == nil {
							break
						}
					}
					return
				}
			}
			if at.holder == nil {
				break
			}
			at = n.place[at.holder]
		}
		ok = false
	})
	return ok
}

// exposed reports whether m may be read before it was cleared.
func (n *nest) exposed(items []*Instr, m Mem, cleared bool) bool {
	for _, in := range items {
		switch {
		case in.Op == OpClear && in.Mem == m:
			cleared = true
		case in.Op == OpLoad && in.Mem == m && !cleared:
			return true
		}
		for _, r := range in.Regions {
			if n.exposed(instrs(r), m, cleared) {
				return true
			}
		}
	}
	return false
}

// reduces names what a carried value accumulates, if it does and nothing else uses it.
func (n *nest) reduces(l *loop, c Value) string {
	j := slices.Index(l.in.Carried, c)
	t := l.in.Regions[0].Terminator()
	if t.Op != OpYield {
		return ""
	}
	next := t.Args[j]
	uses := 0
	Walk(l.in.Regions[0], func(x *Instr) {
		if x.Op != OpYield && x.Op != OpBreak && slices.Contains(x.Args, c) {
			uses++
		}
	})
	for {
		in := n.def[next]
		if in == nil || in.Op != OpIf {
			break
		}
		k := slices.Index(in.Results, next)
		x, arm := noValue, 0
		for i, r := range in.Regions {
			exits(&Instr{Op: OpIf, Regions: []*Region{r}}, func(args []Value) {
				if args[k] != c {
					x, arm = args[k], i
				}
			})
		}
		if x == noValue {
			break
		}
		if s := n.extreme(in.Args[0], arm == 0, x, c); s != "" && uses == 1 {
			return s
		}
		next = x
	}
	in := n.def[next]
	if in == nil {
		return ""
	}
	if in.Op == OpLoop && uses == 1 { // an inner loop goes on with it
		inner := n.loopOf(in)
		if inner.notCounted != "" {
			return ""
		}
		out := inner.leaving().Args[slices.Index(in.Results, next)]
		if k := slices.Index(in.Carried, out); k >= 0 && in.Args[k] == c {
			return n.reduces(inner, out)
		}
		return ""
	}
	return n.accumulation(in, c, uses)
}

// extreme names what is kept if c becomes x where cond is as told.
func (n *nest) extreme(cond Value, truth bool, x, c Value) string {
	cmp := n.def[cond]
	if cmp == nil || len(cmp.Args) != 2 || negated[cmp.Op] == 0 {
		return ""
	}
	op := cmp.Op
	switch {
	case n.alike(cmp.Args[0], x) && cmp.Args[1] == c:
	case cmp.Args[0] == c && n.alike(cmp.Args[1], x):
		op = mirrored[op]
	default:
		return ""
	}
	greater := op == OpGt || op == OpGe
	if !greater && op != OpLt && op != OpLe {
		return ""
	}
	if greater == truth {
		return "maximum"
	}
	return "minimum"
}

// alike reports whether two values are one, or come from the same element.
func (n *nest) alike(v, w Value) bool {
	if v == w {
		return true
	}
	x, y := n.def[v], n.def[w]
	return x != nil && y != nil && x.Op == OpLoad && y.Op == OpLoad && x.Mem == y.Mem && n.raw(x.Args[0]).equal(n.raw(y.Args[0]))
}

// accumulation names what in does to c, which so many instructions use.
func (n *nest) accumulation(in *Instr, c Value, uses int) string {
	if uses == 1 && slices.Contains(in.Args, c) {
		switch in.Op {
		case OpAdd:
			return "sum"
		case OpSub:
			if in.Args[0] == c {
				return "sum"
			}
		case OpMul:
			return "product"
		case OpMin:
			return "minimum"
		case OpMax:
			return "maximum"
		}
	}
	if in.Op == OpSelect && uses == 2 && (in.Args[1] == c) != (in.Args[2] == c) {
		x := in.Args[1]
		if x == c {
			x = in.Args[2]
		}
		return n.extreme(in.Args[0], in.Args[1] == x, x, c)
	}
	return ""
}

// accumulates is reduces for an element of an array.
func (n *nest) accumulates(d *dependence) string {
	if !d.stays {
		return ""
	}
	store, load := d.source, d.sink
	if store.Op != OpStore || load.Op != OpLoad || !n.poly(store.Args[0]).equal(n.poly(load.Args[0])) {
		if store.Op != OpStore || load.Op != OpStore {
			return ""
		}
		// Written by every iteration: look for what it is made of.
		in := n.def[store.Args[1]]
		if in == nil {
			return ""
		}
		for _, a := range in.Args {
			if x := n.def[a]; x != nil && x.Op == OpLoad && x.Mem == store.Mem && n.poly(store.Args[0]).equal(n.poly(x.Args[0])) {
				return n.accumulation(in, a, 1)
			}
		}
		return ""
	}
	in := n.def[store.Args[1]]
	if in == nil {
		return ""
	}
	return n.accumulation(in, load.Results[0], 1)
}
