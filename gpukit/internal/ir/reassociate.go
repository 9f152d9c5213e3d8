package ir

import (
	"math"
	"slices"
)

const (
	// parts is how many partial results a reduction is computed in.
	parts = 4
	// Loops of a known number of iterations up to fewIterations stay as they are, and
	// so do those whose body weighs more than largestBody instructions.
	fewIterations = 16
	largestBody   = 200
	// callWeight is what a library function that is no instruction weighs.
	callWeight = 100
	// mostTogether is how many instructions of an iteration are written next to those
	// of the other iterations of a group: each holds a register.
	mostTogether = 40
	// mostSums is how many reductions of one loop are computed in parts.
	mostSums = 4
)

// Reassociate returns f, a function without calls, with reductions of floats computed
// in four parts, so that four operations are under way where else each waits for the
// one before: a counted loop in which carried values only accumulate sums, products,
// minima or maxima becomes a loop over groups of four iterations, iteration k
// accumulating into part k modulo 4, whose results are combined before the loop as it
// was does the rest of the iterations. Every iteration is computed once, its checks
// fail as they did and in their order, and the parts begin with what changes no
// operand, by no bit. But sums and products are rounded otherwise: with an eps of 2^-52
// for float64 and 2^-23 for float32, a sum of n operands x differs by less than
// n*eps*sum|x| and a product by less than n*eps of itself, and intermediate results may
// overflow where they did not, or not where they did. A minimum or maximum is the same,
// but an if that keeps the smaller or larger of +0 and -0, which it takes for equal, may
// keep the other one. The positions are those of the loops.
func Reassociate(f *Func) (*Func, []Pos) {
	if !hasLoops(f.Body) {
		return f, nil
	}
	g := f.clone()
	n := newNest(g, Aliasing{})
	if !n.ready {
		return f, nil
	}
	p := &parter{n: n, f: g, loops: map[*Instr]*parted{}}
	var at []Pos
	for _, l := range n.loops {
		if x := p.look(l); x != nil {
			p.loops[l.in] = x
			at = append(at, l.in.Pos)
		}
	}
	if len(at) == 0 {
		return f, nil
	}
	g.Body = p.region(g.Body)
	return Optimize(g), at
}

// hasLoops reports whether there is a loop in r.
func hasLoops(r *Region) bool {
	for i := range r.Instrs {
		in := &r.Instrs[i]
		if in.Op == OpLoop {
			return true
		}
		for _, s := range in.Regions {
			if hasLoops(s) {
				return true
			}
		}
	}
	return false
}

// parted is a loop that is computed in parts.
type parted struct {
	l    *loop
	sums map[int]*accumulator // by number of the carried value
	// counter op bound, less or more away, holds only if parts more iterations follow.
	op    Op
	away  int64
	items []*Instr
	early map[*Instr]bool   // of items: what an iteration does before the next begins
	kept  map[*Instr]*Instr // of items: ifs that keep an extreme, as selects
	same  map[Value]Value   // the results of the if that ends the loop, by what they are if it does not
}

// accumulator is how a carried value becomes the next.
type accumulator struct {
	op Op // OpAdd, OpMul, OpMin, OpMax, or OpLt, ...: the operand is kept if operand op value
	t  Type
}

// neutral is what changes no operand, by no bit.
func (a *accumulator) neutral() Bits {
	x := math.Copysign(0, -1)
	switch a.op {
	case OpMul:
		x = 1
	case OpMin, OpLt, OpLe:
		x = math.Inf(1)
	case OpMax, OpGt, OpGe:
		x = math.Inf(-1)
	}
	if a.t == F32 {
		return FromF32(float32(x))
	}
	return FromF64(x)
}

// combine accumulates y into x.
func (a *accumulator) combine(b *Builder, x, y Value) Value {
	switch a.op {
	case OpLt, OpLe, OpGt, OpGe:
		return b.Op(OpSelect, b.Op(a.op, y, x), y, x)
	}
	return b.Op(a.op, x, y)
}

type parter struct {
	n     *nest
	f     *Func
	loops map[*Instr]*parted
}

// look finds out whether a loop can be computed in parts, and how.
func (p *parter) look(l *loop) *parted {
	n := p.n
	if l.notCounted != "" {
		return nil
	}
	guard := &l.in.Regions[0].Instrs[l.guard]
	arm := guard.Regions[l.stays]
	if arm.Terminator().Op != OpYield || breaksTo(arm, 0) {
		return nil
	}
	x := &parted{l: l, sums: map[int]*accumulator{}, kept: map[*Instr]*Instr{}, same: map[Value]Value{}}
	for i, r := range guard.Results {
		x.same[r] = arm.Terminator().Args[i]
	}
	body := l.in.Regions[0].Instrs
	for i := range body[:len(body)-1] {
		if i != l.guard {
			x.items = append(x.items, &body[i])
			continue
		}
		for j := range arm.Instrs[:len(arm.Instrs)-1] {
			x.items = append(x.items, &arm.Instrs[j])
		}
	}
	weight := 0
	for _, in := range x.items {
		w, ok := p.weigh(in)
		if weight += w; !ok || weight > largestBody {
			return nil
		}
	}
	if !p.limits(x) {
		return nil
	}
	for j, c := range l.in.Carried {
		switch t := n.f.Types[c]; {
		case c == l.counter:
		case t.IsFloat():
			if x.sums[j] = p.accumulates(x, j); x.sums[j] == nil {
				return nil
			}
		}
	}
	if len(x.sums) == 0 || len(x.sums) > mostSums {
		return nil
	}
	for i, in := range x.items {
		if y := x.kept[in]; y != nil {
			x.items[i] = y
		}
	}
	p.order(x)
	return x
}

// weigh counts the instructions of in and reports whether there is none that acts on
// what others see, or is a loop.
func (p *parter) weigh(in *Instr) (w int, ok bool) {
	ok = true
	Walk(&Region{Instrs: []Instr{*in}}, func(x *Instr) {
		switch x.Op {
		case OpConst, OpYield, OpBreak, OpUnreachable:
		case OpIf, OpLoad, OpBounds, OpSliceBounds:
			w++
		case OpMath:
			if w++; !x.Fn.Row().Cheap {
				w += callWeight
			}
		default:
			w++
			ok = ok && (x.Pure(p.f) || x.Op.Row().Eval != nil)
		}
	})
	return w, ok
}

// named are values by their names within an iteration.
func (x *parted) named(vs []Value) []Value {
	out := make([]Value, len(vs))
	for i, v := range vs {
		if w, ok := x.same[v]; ok {
			v = w
		}
		out[i] = v
	}
	return out
}

// limits finds the condition under which a whole group of iterations follows.
func (p *parter) limits(x *parted) bool {
	n, l := p.n, x.l
	bound, isConst := n.isConst(l.bound)
	if !isConst && n.inside(l, l.bound) {
		return false
	}
	t := n.f.Types[l.counter]
	r := rangeOf(t)
	step := l.step
	x.op = OpLt
	if step < 0 {
		x.op, step = OpGt, -step
	}
	if t == U64 || step > r.hi/16 {
		return false
	}
	x.away = (parts - 1) * step
	if l.op == OpLe || l.op == OpGe {
		x.away--
	}
	if !isConst {
		return true
	}
	first, ok := n.isConst(l.first)
	const far = 1 << 60
	if ok && first > -far && first < far && bound > -far && bound < far {
		way := bound - first
		if l.step < 0 {
			way = -way
		}
		if l.op == OpLe || l.op == OpGe {
			way++
		}
		return way > fewIterations*step
	}
	return true
}

// inside reports whether v is computed in l.
func (n *nest) inside(l *loop, v Value) bool {
	at := n.carrier[v]
	if in := n.def[v]; in != nil {
		at = n.place[in].loop
	}
	for ; at != nil; at = at.outer {
		if at == l {
			return true
		}
	}
	return false
}

// follower follows a carried value through an iteration.
type follower struct {
	p      *parter
	x      *parted
	of     map[Value]bool  // it and what it becomes
	tests  map[Value]Value // by comparison: what of these is compared
	tested map[Value]Value // and with which operand
	checks []*Instr        // that every iteration makes
	acc    *accumulator
	ok     bool
}

// accumulates tells how the carried value of number j becomes the next if all that
// is done with it is to accumulate operands that do not depend on it.
func (p *parter) accumulates(x *parted, j int) *accumulator {
	c := x.l.in.Carried[j]
	w := &follower{p: p, x: x, of: map[Value]bool{c: true}, tests: map[Value]Value{}, tested: map[Value]Value{}, acc: &accumulator{t: p.f.Types[c]}, ok: true}
	for _, in := range x.items {
		w.instr(in, nil)
		if in.Op == OpBounds {
			w.checks = append(w.checks, in)
		}
	}
	for k, v := range x.named(x.l.in.Regions[0].Terminator().Args) {
		w.refuse(w.of[v] != (k == j) || w.isTest(v))
	}
	if !w.ok || w.acc.op == OpInvalid {
		return nil
	}
	return w.acc
}

func (w *follower) refuse(yes bool) { w.ok = w.ok && !yes }

// isTest reports whether v says how an operand compares with the value.
func (w *follower) isTest(v Value) bool { _, yes := w.tests[v]; return yes }

// becomes notes that v is the carried value after op.
func (w *follower) becomes(v Value, op Op) {
	w.refuse(w.acc.op != OpInvalid && w.acc.op != op)
	w.acc.op = op
	w.of[v] = true
}

// outcome says which results of an if are the value, and which are not.
type outcome struct {
	is, not map[int]bool
}

func (w *follower) instr(in *Instr, nest []*outcome) {
	f := w.p.f
	args := w.x.named(in.Args)
	n := 0 // operands that are the value
	for _, a := range args {
		if w.of[a] {
			n++
		}
	}
	switch in.Op {
	case OpIf:
		h := &outcome{map[int]bool{}, map[int]bool{}}
		w.refuse(n > 0)
		if w.isTest(args[0]) {
			w.keeps(in)
			return
		}
		for _, r := range in.Regions {
			for i := range r.Instrs {
				w.instr(&r.Instrs[i], append(nest, h))
			}
		}
		for k, v := range in.Results {
			w.refuse(h.is[k] && h.not[k])
			if h.is[k] {
				w.of[v] = true
			}
		}
		return
	case OpYield, OpBreak:
		h := nest[len(nest)-1]
		if in.Op == OpBreak {
			h = nest[len(nest)-1-in.Level()]
		}
		for k, v := range args {
			w.refuse(w.isTest(v))
			if w.of[v] {
				h.is[k] = true
			} else {
				h.not[k] = true
			}
		}
		return
	case OpSelect:
		if v := args[0]; w.isTest(v) {
			// The operand if it is the smaller or larger one, else the value.
			w.refuse(args[1] != w.tested[v] || args[2] != w.tests[v])
			w.becomes(in.Results[0], w.kept(v))
			return
		}
		if n > 0 {
			w.refuse(n != 2 || w.of[args[0]])
			w.of[in.Results[0]] = true
		}
		return
	}
	for _, a := range args {
		w.refuse(w.isTest(a))
	}
	if n == 0 {
		return
	}
	w.refuse(n > 1)
	switch in.Op {
	case OpAdd, OpMul, OpMin, OpMax:
		w.becomes(in.Results[0], in.Op)
	case OpSub:
		w.refuse(!w.of[args[0]])
		w.becomes(in.Results[0], OpAdd)
	case OpMath:
		w.refuse(in.Fn.Row().Name != "math.FMA" || !w.of[args[2]])
		w.becomes(in.Results[0], OpAdd)
	case OpLt, OpLe, OpGt, OpGe:
		x, v := args[0], args[1]
		if w.of[x] {
			x, v = v, x
		}
		w.refuse(!f.Types[v].IsFloat())
		w.tests[in.Results[0]], w.tested[in.Results[0]] = v, x
	default:
		w.ok = false
	}
}

// kept is the comparison of an operand with the value that a test makes.
func (w *follower) kept(test Value) Op {
	in := w.p.n.def[test]
	if w.x.named(in.Args)[0] == w.tested[test] {
		return in.Op
	}
	return mirrored[in.Op]
}

// keeps looks at an if that makes the operand that was compared the value: what it
// does on the way may be done or not.
func (w *follower) keeps(in *Instr) {
	test := w.x.named(in.Args)[0]
	for i, r := range in.Regions {
		if w.refuse(r.Terminator().Op != OpYield); !w.ok {
			return
		}
		for k := range r.Instrs[:len(r.Instrs)-1] {
			x := &r.Instrs[k]
			for _, a := range w.x.named(x.Args) {
				w.refuse(w.of[a] || w.isTest(a))
			}
			switch {
			case x.Op == OpBounds:
				w.refuse(!w.checked(x))
			default:
				w.refuse(!x.Removable(w.p.f))
			}
		}
		for k, a := range w.x.named(r.Terminator().Args) {
			switch {
			case i == 0:
				w.refuse(k > 0 || w.of[a] || !w.p.n.alike(a, w.tested[test]))
			default:
				w.refuse(a != w.tests[test])
			}
		}
	}
	if w.refuse(len(in.Results) != 1); w.ok {
		w.becomes(in.Results[0], w.kept(test))
		w.x.kept[in] = &Instr{Op: OpSelect, Args: []Value{test, w.tested[test], w.tests[test]}, Results: in.Results, Pos: in.Pos}
	}
}

// checked reports whether every iteration makes the same check before.
func (w *follower) checked(x *Instr) bool {
	n := w.p.n
	return slices.ContainsFunc(w.checks, func(in *Instr) bool {
		return n.raw(in.Args[0]).equal(n.raw(x.Args[0])) && n.raw(in.Args[1]).equal(n.raw(x.Args[1]))
	})
}

// order finds what of an iteration comes before the next one: what may fail, and what
// the next one begins with, and what these need.
func (p *parter) order(x *parted) {
	x.early = map[*Instr]bool{}
	need := map[Value]bool{}
	wants := func(vs []Value) {
		for _, v := range x.named(vs) {
			need[v] = true
		}
	}
	for j, c := range x.l.in.Carried {
		if c != x.l.counter && x.sums[j] == nil {
			wants(x.l.in.Regions[0].Terminator().Args[j : j+1])
		}
	}
	for i := len(x.items) - 1; i >= 0; i-- {
		in := x.items[i]
		early := false
		Walk(&Region{Instrs: []Instr{*in}}, func(y *Instr) {
			early = early || !y.Op.Row().Terminator && y.Op != OpLoad && y.Op != OpIf && !p.n.harmless(y)
		})
		for _, v := range in.Results {
			early = early || need[v]
		}
		if !early {
			continue
		}
		x.early[in] = true
		Walk(&Region{Instrs: []Instr{*in}}, func(y *Instr) { wants(y.Args) })
	}
}

// region writes a region anew.
func (p *parter) region(r *Region) *Region {
	out := &Region{}
	for i := range r.Instrs {
		in := r.Instrs[i]
		if x := p.loops[&r.Instrs[i]]; x != nil {
			in.Args = p.groups(&Builder{F: p.f, R: out, Pos: in.Pos}, x)
		}
		for j, s := range in.Regions {
			in.Regions[j] = p.region(s)
		}
		out.Instrs = append(out.Instrs, in)
	}
	return out
}

// groups writes the loop over groups of iterations and gives the carried values with
// which the rest begins.
func (p *parter) groups(b *Builder, x *parted) []Value {
	l, f := x.l, p.f
	t := f.Types[l.counter]
	limit := p.limit(b, x)
	at := 0 // of the counter
	for l.in.Carried[at] != l.counter {
		at++
	}
	// The carried values, then the further parts of those that are sums.
	first := append([]Value(nil), l.in.Args...)
	more := make(map[int]int) // where those of a carried value begin
	for j := range l.in.Carried {
		if a := x.sums[j]; a != nil {
			more[j] = len(first)
			for range parts - 1 {
				first = append(first, b.Const(a.t, a.neutral()))
			}
		}
	}
	types := f.types(nil, first)
	sums := b.Loop(first, types, func(carried []Value) {
		b.If(b.Op(x.op, carried[at], limit), nil, func() { b.Yield() }, func() { b.Break(1, carried...) })
		now := append([]Value(nil), carried[:len(l.in.Carried)]...)
		next := append([]Value(nil), carried...)
		yielded := l.in.Regions[0].Terminator().Args
		var its [parts]iteration
		write := func(k int, in *Instr) {
			b.Pos = in.Pos
			b.add(its[k].copy(in))
		}
		step := func(k int) Value {
			if k == 0 {
				return carried[at]
			}
			return b.Op(OpAdd, carried[at], b.Const(t, Wrap(t, Bits(int64(k)*l.step))))
		}
		for k := range parts {
			its[k] = iteration{x: x, f: f, vals: map[Value]Value{}}
			for j, c := range l.in.Carried {
				switch {
				case j == at:
					its[k].vals[c] = step(k)
				case x.sums[j] != nil && k > 0:
					its[k].vals[c] = carried[more[j]+k-1]
				default:
					its[k].vals[c] = now[j]
				}
			}
			for _, in := range x.items {
				if x.early[in] {
					write(k, in)
				}
			}
			for j := range l.in.Carried {
				if j != at && x.sums[j] == nil {
					now[j] = its[k].values(yielded)[j]
					next[j] = now[j]
				}
			}
		}
		var late []*Instr
		for _, in := range x.items {
			if !x.early[in] {
				late = append(late, in)
			}
		}
		if len(late) <= mostTogether {
			for _, in := range late {
				for k := range parts {
					write(k, in)
				}
			}
		} else {
			for k := range parts {
				for _, in := range late {
					write(k, in)
				}
			}
		}
		for j := range l.in.Carried {
			if x.sums[j] != nil {
				next[j] = its[0].values(yielded)[j]
				for k := range parts - 1 {
					next[more[j]+k] = its[k+1].values(yielded)[j]
				}
			}
		}
		next[at] = step(parts)
		b.Yield(next...)
	})
	out := append([]Value(nil), sums[:len(l.in.Carried)]...)
	for j := range l.in.Carried {
		if a := x.sums[j]; a != nil {
			p := sums[more[j]:]
			out[j] = a.combine(b, a.combine(b, sums[j], p[0]), a.combine(b, p[1], p[2]))
		}
	}
	return out
}

// limit writes what the counter is compared with before a group: away of the bound,
// where that is a number of the type, and else what no counter is below or above.
func (p *parter) limit(b *Builder, x *parted) Value {
	l := x.l
	t := p.f.Types[l.counter]
	r := rangeOf(t)
	end, keep, op := r.lo+x.away, OpMax, OpSub
	if x.op == OpGt {
		end, keep, op = r.hi-x.away, OpMin, OpAdd
	}
	number := func(k int64) Value { return b.Const(t, Wrap(t, Bits(k))) }
	bound := l.bound
	i := p.n.param[bound]
	if k, ok := p.n.isConst(bound); ok {
		bound = number(k) // it may stand in the body
	}
	if i == None || p.f.Params[i].Kind != Shape || x.op == OpGt {
		bound = b.Op(keep, bound, number(end))
	}
	return b.Op(op, bound, number(x.away))
}

// iteration is a copy of an iteration.
type iteration struct {
	x    *parted
	f    *Func
	vals map[Value]Value // by value of the loop
}

func (it *iteration) values(vs []Value) []Value {
	out := it.x.named(vs)
	for i, v := range out {
		if w, ok := it.vals[v]; ok {
			out[i] = w
		}
	}
	return out
}

func (it *iteration) copy(in *Instr) Instr {
	out := *in
	out.Args, out.Results, out.Regions = it.values(in.Args), nil, nil
	for _, r := range in.Regions {
		s := &Region{}
		for i := range r.Instrs {
			s.Instrs = append(s.Instrs, it.copy(&r.Instrs[i]))
		}
		out.Regions = append(out.Regions, s)
	}
	for _, v := range in.Results {
		it.vals[v] = it.f.NewValue(it.f.Types[v])
		out.Results = append(out.Results, it.vals[v])
	}
	return out
}
