package ir

import (
	"encoding/binary"
	"math"
	"slices"
)

// Optimize returns a function of the same meaning, bit for bit and fault for
// fault, without calls and with less to do: constants folded, common
// subexpressions shared, early exits turned into nesting, small arms turned
// into selects, what is not used left out.
//
// A function that it made it returns as it is.
func Optimize(f *Func) *Func {
	if f.settled {
		return f
	}
	return optimized(f)
}

// optimized is Optimize of which the caller may change the result.
func optimized(f *Func) *Func {
	if hasCalls(f.Body) {
		f = Inline(f)
	}
	if straight(f.Body) {
		f = eliminate(simplify(f)) // another round would find nothing new
		f.settled = true
		return f
	}
	before := fingerprint(f)
	for range 8 {
		f = eliminate(simplify(f))
		now := fingerprint(f)
		if now == before {
			f.settled = true
			break
		}
		before = now
	}
	return f
}

// straight reports whether there is no control in r.
func straight(r *Region) bool {
	for i := range r.Instrs {
		if r.Instrs[i].Regions != nil {
			return false
		}
	}
	return true
}

// hasCalls reports whether r has calls that Inline replaces.
func hasCalls(r *Region) bool {
	for i := range r.Instrs {
		in := &r.Instrs[i]
		if in.Op == OpCall && !in.Callee.Outline {
			return true
		}
		for _, s := range in.Regions {
			if hasCalls(s) {
				return true
			}
		}
	}
	return false
}

// fingerprint is the same for functions that differ in the numbers of their values
// alone, and practically for no others that are made of one and the same.
func fingerprint(f *Func) uint64 {
	p := fingerprinter{number: make([]int32, len(f.Types))}
	for _, q := range f.Params {
		p.define(q.Value)
	}
	p.region(f.Body)
	return p.sum
}

type fingerprinter struct {
	number []int32 // by value: its place among the definitions
	next   int32
	sum    uint64
}

func (p *fingerprinter) add(x uint64) {
	x = (p.sum ^ x) * 0x9e3779b97f4a7c15
	p.sum = x ^ x>>32
}

func (p *fingerprinter) define(v Value) {
	p.number[v] = p.next
	p.next++
}

func (p *fingerprinter) region(r *Region) {
	p.add(uint64(len(r.Instrs)))
	for i := range r.Instrs {
		in := &r.Instrs[i]
		p.add(uint64(in.Op) | uint64(in.Fn)<<8 | uint64(in.Mem)<<16 | uint64(len(in.Results))<<40 | uint64(len(in.Carried))<<52)
		p.add(in.Imm)
		for _, a := range in.Args {
			p.add(uint64(p.number[a]))
		}
		for _, v := range in.Carried {
			p.define(v)
		}
		for _, s := range in.Regions {
			p.region(s)
		}
		for _, v := range in.Results {
			p.define(v)
		}
	}
}

// simplify copies f, simplifying on the way.
func simplify(f *Func) *Func {
	out := NewFunc(f.Name, f.Results...)
	out.Pos, out.Outline = f.Pos, f.Outline
	out.Mems = slices.Clip(f.Mems)
	out.Types = make([]Type, 0, len(f.Types))
	out.Params = make([]Param, 0, len(f.Params))
	s := &simplifier{old: f, b: NewBuilder(out), vals: make([]Value, len(f.Types)), consts: make([]Bits, len(f.Types)), isConst: make([]bool, len(f.Types))}
	s.known.init(len(f.Types))
	for _, p := range f.Params {
		s.vals[p.Value] = out.AddParamOf(p, f.Types[p.Value])
	}
	s.nest = []level{{old: true, new: true, results: f.Results}}
	s.region(f.Body)
	return out
}

// expr is a pure computation in terms of the new function's values.
type expr struct {
	op      Op
	fn      MathFn
	t       Type
	imm     Bits
	a, b, c Value
}

// level is an enclosing construct: one of the old function, of the new one, or
// (the usual case) both. An if that is spliced into its region has no new
// level; one that now holds the rest of a region has no old one.
type level struct {
	old, new bool
	loop     bool
	last     bool // the results of this if are all that the construct around it yields
	results  []Type
}

type simplifier struct {
	old     *Func
	b       *Builder
	vals    []Value // old to new
	consts  []Bits  // by new value
	isConst []bool
	known   exprTable
	nest    []level
	// ifs are the results of whole ifs by what they compute, ifScope its scope.
	ifs     map[string][]Value
	ifScope []string
	key     keyer
	inside  []bool // of hoist
}

func (s *simplifier) args(vs []Value) []Value {
	if len(vs) == 0 {
		return nil
	}
	n := s.b.space(len(vs))
	for i, v := range vs {
		n[i] = s.vals[v]
	}
	return n
}

// exprTable finds expressions. Those that were added last are forgotten first.
type exprTable struct {
	heads   []int32 // by hash: the entry added last, plus 1
	entries []exprEntry
}

type exprEntry struct {
	e    expr
	v    Value
	head uint32
	next int32
}

func (t *exprTable) init(n int) {
	size := 16
	for size < n {
		size *= 2
	}
	t.heads = make([]int32, size)
	t.entries = make([]exprEntry, 0, n)
}

func (e *expr) hash() uint64 {
	const k = 0x9e3779b97f4a7c15
	h := (uint64(e.op)<<16 | uint64(e.fn)<<8 | uint64(e.t)) * k
	h = (h ^ h>>29 ^ uint64(e.imm)) * k
	h = (h ^ h>>29 ^ uint64(uint32(e.a)) ^ uint64(uint32(e.b))<<32) * k
	h = (h ^ h>>29 ^ uint64(uint32(e.c))) * k
	return h >> 32
}

func (t *exprTable) find(e *expr) (v Value, head uint32, ok bool) {
	head = uint32(e.hash()) & uint32(len(t.heads)-1)
	for i := t.heads[head]; i != 0; {
		x := &t.entries[i-1]
		if x.e == *e {
			return x.v, head, true
		}
		i = x.next
	}
	return 0, head, false
}

// add adds an expression that is not there; head is what find gave.
func (t *exprTable) add(e *expr, head uint32, v Value) {
	t.entries = append(t.entries, exprEntry{*e, v, head, t.heads[head]})
	t.heads[head] = int32(len(t.entries))
}

// forget leaves the first n.
func (t *exprTable) forget(n int) {
	for i := len(t.entries) - 1; i >= n; i-- {
		t.heads[t.entries[i].head] = t.entries[i].next
	}
	t.entries = t.entries[:n]
}

// newLevel translates a level of the old function at this place: a break to it is one
// to the construct that gives what it takes on to it, as that is nearer.
func (s *simplifier) newLevel(old int) int {
	at := len(s.nest) - 1
	for ; old > 0 || !s.nest[at].old; at-- {
		if s.nest[at].old {
			old--
		}
	}
	for at+1 < len(s.nest) && s.nest[at+1].last {
		at++
	}
	n := 0
	for _, l := range s.nest[at+1:] {
		if l.new {
			n++
		}
	}
	return n
}

// isLast reports whether the construct around an if, itself no loop, is done when the if
// is, with its results.
func (s *simplifier) isLast(in *Instr, after []Instr) bool {
	holder := s.nest[len(s.nest)-1]
	return holder.old && holder.new && !holder.loop && after[0].Op == OpYield && slices.Equal(after[0].Args, in.Results)
}

// inLoop reports whether the region that is being built is the body of a loop.
func (s *simplifier) inLoop() bool {
	for i := len(s.nest) - 1; ; i-- {
		if s.nest[i].new {
			return s.nest[i].loop
		}
	}
}

// scoped runs f and forgets the expressions that became known inside.
func (s *simplifier) scoped(l level, f func()) {
	s.nest = append(s.nest, l)
	n, m := len(s.known.entries), len(s.ifScope)
	f()
	for _, k := range s.ifScope[m:] {
		delete(s.ifs, k)
	}
	s.ifScope = s.ifScope[:m]
	s.known.forget(n)
	s.nest = s.nest[:len(s.nest)-1]
}

// region copies r to where the builder stands, terminator included.
func (s *simplifier) region(r *Region) {
	if s.b.R.Instrs == nil {
		s.b.R.Instrs = make([]Instr, 0, len(r.Instrs))
	}
	s.rest(r.Instrs, s.b.Yield)
}

// rest copies instructions up to the terminator of their region; yield ends
// the new region where the old one yields.
func (s *simplifier) rest(ins []Instr, yield func(...Value)) {
	for i := range ins {
		in := &ins[i]
		s.b.Pos = in.Pos
		switch in.Op {
		case OpYield:
			yield(s.args(in.Args)...)
			return
		case OpBreak:
			if n := s.newLevel(in.Level()); n > 0 || s.inLoop() {
				s.b.Break(n, s.args(in.Args)...)
			} else {
				s.b.Yield(s.args(in.Args)...)
			}
			return
		case OpUnreachable:
			s.b.Unreachable()
			return
		case OpIf:
			if s.ifInstr(in, ins[i+1:], yield) {
				return
			}
		case OpLoop:
			s.loop(in)
			if !leaves(in) {
				s.b.Unreachable()
				return
			}
		default:
			if len(in.Results) == 1 && (in.Pure(s.old) || in.Op.Row().Eval != nil) {
				s.vals[in.Results[0]] = s.compute(in)
				continue
			}
			s.keep(in)
		}
	}
}

// keep copies an instruction that has effects or depends on those of others.
func (s *simplifier) keep(in *Instr) {
	x := *in
	x.Args = s.args(in.Args)
	x.Results = s.b.space(len(in.Results))
	for i, r := range in.Results {
		s.vals[r] = s.b.F.NewValue(s.old.Types[r])
		x.Results[i] = s.vals[r]
	}
	if x.Op == OpBounds {
		if a, ok := s.constants(x.Args); ok && CheckBounds(x.Op, a) == NoFault {
			return
		}
	}
	s.b.add(x)
}

// ifInstr copies an if and reports whether it dealt with the instructions
// after it as well.
func (s *simplifier) ifInstr(in *Instr, after []Instr, yield func(...Value)) bool {
	cond := s.vals[in.Args[0]]
	if c, ok := s.constant(cond); ok {
		arm := in.Regions[0]
		if c == 0 {
			arm = in.Regions[1]
		}
		if !breaksTo(arm, 0) {
			// Splice: the arm runs in the region that holds the if.
			s.nest = append(s.nest, level{old: true})
			falls := false // not if an instruction before its end leaves, for sure
			s.rest(arm.Instrs, func(vs ...Value) {
				falls = true
				for i, v := range vs {
					s.vals[in.Results[i]] = v
				}
			})
			s.nest = s.nest[:len(s.nest)-1]
			return !falls
		}
	}
	if s.toSelects(in, cond) {
		return false
	}
	if s.absorb(in, cond, after, yield) {
		return true
	}
	ts := s.old.types(nil, in.Results)
	l := level{old: true, new: true, results: ts, last: s.isLast(in, after)}
	res := s.b.If(cond, ts,
		func() { s.scoped(l, func() { s.region(in.Regions[0]) }) },
		func() { s.scoped(l, func() { s.region(in.Regions[1]) }) })
	arrives := leaves(&s.b.R.Instrs[len(s.b.R.Instrs)-1]) // breaks may have got nearer targets
	key, repeats := s.ifKey()
	if before, ok := s.ifs[string(key)]; ok && repeats && arrives {
		s.b.R.Instrs = s.b.R.Instrs[:len(s.b.R.Instrs)-1]
		for i, r := range in.Results {
			s.vals[r] = before[i]
		}
		return false
	}
	for i, r := range in.Results {
		s.vals[r] = res[i]
		// Both arms hand out the same value from outside.
		if v, ok := s.sameYield(res, i); ok {
			s.vals[r] = v
		}
	}
	if repeats && arrives {
		if s.ifs == nil {
			s.ifs = map[string][]Value{}
		}
		k := string(key)
		s.ifs[k] = s.args(in.Results)
		s.ifScope = append(s.ifScope, k)
	}
	if !arrives {
		s.b.Unreachable()
		return true
	}
	return false
}

// ifKey says what the if that was just built computes, and whether it does the same
// if it is done again: without effects, from its operands alone.
func (s *simplifier) ifKey() (key []byte, ok bool) {
	in := &s.b.R.Instrs[len(s.b.R.Instrs)-1]
	if len(in.Results) == 0 || !s.key.repeats(s.b.F, in) || leavesOut(in) {
		return nil, false
	}
	k := &s.key
	k.f, k.key, k.first, k.defined = s.b.F, k.key[:0], in.Results[0], 0
	if n := len(k.f.Types) - int(k.first); n <= cap(k.local) {
		k.local = k.local[:n]
		clear(k.local)
	} else {
		k.local = make([]int32, n, 2*n)
	}
	k.instr(in)
	return k.key, true
}

// keyer writes instructions in a form that is the same for those that do the same.
type keyer struct {
	f       *Func
	key     []byte
	first   Value   // of those that are defined inside
	local   []int32 // by value less first: its number, counted from 1, if it is defined inside
	defined int32
	calls   []*Func // by number
}

// repeats reports whether in does the same if it is done again.
func (k *keyer) repeats(f *Func, in *Instr) bool {
	switch in.Op {
	case OpLoad:
		return f.Mems[in.Mem].Space == Constant
	case OpCall:
		return in.Callee.Outline && repeatable(in.Callee)
	case OpIf, OpLoop, OpYield, OpBreak, OpUnreachable, OpBounds, OpSliceBounds:
	default:
		if !in.Pure(f) && in.Op.Row().Eval == nil {
			return false
		}
	}
	for _, r := range in.Regions {
		for i := range r.Instrs {
			if !k.repeats(f, &r.Instrs[i]) {
				return false
			}
		}
	}
	return true
}

func (k *keyer) number(n int64) { k.key = binary.AppendVarint(k.key, n) }

func (k *keyer) defines(vs []Value) {
	k.number(int64(len(vs)))
	for _, v := range vs {
		k.defined++
		k.local[v-k.first] = k.defined
		k.number(int64(k.f.Types[v]))
	}
}

func (k *keyer) instr(in *Instr) {
	k.key = append(k.key, byte(in.Op), byte(in.Fn))
	k.number(int64(in.Imm))
	switch in.Op {
	case OpLoad:
		k.number(int64(in.Mem))
	case OpCall:
		n := slices.Index(k.calls, in.Callee)
		if n < 0 {
			n = len(k.calls)
			k.calls = append(k.calls, in.Callee)
		}
		k.number(int64(n))
	}
	k.number(int64(len(in.Args)))
	for _, a := range in.Args {
		n := int32(0)
		if a >= k.first {
			n = k.local[a-k.first]
		}
		if n == 0 {
			n = -1 - int32(a)
		}
		k.number(int64(n))
	}
	k.defines(in.Carried)
	for _, r := range in.Regions {
		k.number(int64(len(r.Instrs)))
		for i := range r.Instrs {
			k.instr(&r.Instrs[i])
		}
	}
	k.defines(in.Results)
}

// repeatable reports whether a function without calls does the same each time: it has
// no effects and no memory but Constant ones.
func repeatable(f *Func) bool {
	for _, m := range f.Mems {
		if m.Space != Constant {
			return false
		}
	}
	ok := true
	Walk(f.Body, func(in *Instr) {
		switch in.Op {
		case OpCall, OpPrint, OpBarrier, OpWarpBarrier, OpShuffle, OpVote:
			ok = false
		}
	})
	return ok
}

// sameYield looks at the if that was just built: if all its exits hand out one
// outer value as result i, that is the result.
func (s *simplifier) sameYield(res []Value, i int) (Value, bool) {
	in := &s.b.R.Instrs[len(s.b.R.Instrs)-1]
	same := Value(-1)
	ok := true
	exits(in, func(args []Value) {
		if same == -1 {
			same = args[i]
		}
		ok = ok && args[i] == same
	})
	return same, ok && same >= 0 && same < res[0]
}

// absorb moves the instructions after an if into the arm that reaches them,
// when the other arm leaves the construct that holds both: what was an early
// exit becomes nesting, which masks, selects and branches all like better.
func (s *simplifier) absorb(in *Instr, cond Value, after []Instr, yield func(...Value)) bool {
	holder := s.nest[len(s.nest)-1]
	if holder.loop || !holder.old || !holder.new {
		return false
	}
	exit := -1
	for i, arm := range in.Regions {
		if breaksTo(arm, 0) {
			return false
		}
		if t := arm.Terminator(); t.Op == OpBreak && t.Level() == 1 {
			exit = i
		}
	}
	if exit < 0 {
		return false
	}
	arm := func(i int) func() {
		return func() {
			s.scoped(level{old: true, new: true, results: holder.results}, func() {
				ins := in.Regions[i].Instrs
				if t := &ins[len(ins)-1]; t.Op == OpBreak && t.Level() == 1 {
					ins = append(append([]Instr{}, ins[:len(ins)-1]...), Instr{Op: OpYield, Args: t.Args, Pos: t.Pos})
					s.rest(ins, s.b.Yield)
					return
				}
				s.rest(ins, func(vs ...Value) {
					for j, v := range vs {
						s.vals[in.Results[j]] = v
					}
					s.nest[len(s.nest)-1].old = false
					s.rest(after, s.b.Yield)
				})
			})
		}
	}
	res := s.b.If(cond, holder.results, arm(0), arm(1))
	yield(res...)
	return true
}

// cheap is how many instructions an arm may have to be computed for nothing.
const cheap = 8

// toSelects computes both arms of a small if and chooses.
func (s *simplifier) toSelects(in *Instr, cond Value) bool {
	for _, arm := range in.Regions {
		if len(arm.Instrs) > cheap || arm.Terminator().Op != OpYield {
			return false
		}
		for i := range arm.Instrs[:len(arm.Instrs)-1] {
			x := &arm.Instrs[i]
			if !x.Pure(s.old) || x.Op == OpMath && !x.Fn.Row().Cheap || x.Op == OpDiv {
				return false
			}
		}
	}
	s.nest = append(s.nest, level{old: true})
	var yields [2][]Value
	for i, arm := range in.Regions {
		s.rest(arm.Instrs, func(vs ...Value) { yields[i] = vs })
	}
	s.nest = s.nest[:len(s.nest)-1]
	s.b.Pos = in.Pos
	for i, r := range in.Results {
		s.vals[r] = s.op(OpSelect, cond, yields[0][i], yields[1][i])
	}
	return true
}

func (s *simplifier) loop(in *Instr) {
	args := s.args(in.Args)
	// Carried values that every iteration hands on unchanged are not carried.
	yielded := in.Regions[0].Terminator()
	var kept []int
	var init []Value
	for i, c := range in.Carried {
		if yielded.Op != OpYield || yielded.Args[i] == c {
			s.vals[c] = args[i]
			continue
		}
		kept = append(kept, i)
		init = append(init, args[i])
	}
	ts := s.old.types(nil, in.Results)
	s.hoist(in)
	res := s.b.Loop(init, ts, func(carried []Value) {
		for j, i := range kept {
			s.vals[in.Carried[i]] = carried[j]
		}
		s.scoped(level{old: true, new: true, loop: true, results: ts}, func() {
			s.rest(in.Regions[0].Instrs, func(vs ...Value) {
				next := make([]Value, len(kept))
				for j, i := range kept {
					next[j] = vs[i]
				}
				s.b.Yield(next...)
			})
		})
	})
	for i, r := range in.Results {
		s.vals[r] = res[i]
	}
}

// hoist computes before the loop what its body, with the ifs and loops in it,
// computes anew each time from values that do not change, as far as that cannot
// fault and ends soon; the body then finds it known.
func (s *simplifier) hoist(in *Instr) {
	if s.inside == nil {
		s.inside = make([]bool, len(s.old.Types))
	} else {
		clear(s.inside)
	}
	for i, c := range in.Carried {
		if y := in.Regions[0].Terminator(); y.Op == OpYield && y.Args[i] != c {
			s.inside[c] = true
		}
	}
	s.invariant(in.Regions[0], s.inside)
}

// invariant computes what r computes from values that are not inside.
func (s *simplifier) invariant(r *Region, inside []bool) {
	for i := range r.Instrs {
		x := &r.Instrs[i]
		fixed := x.Pure(s.old) && !endless(x)
		for _, a := range x.Args {
			fixed = fixed && !inside[a]
		}
		if fixed {
			s.b.Pos = x.Pos
			s.vals[x.Results[0]] = s.compute(x)
			continue
		}
		for _, v := range x.Carried {
			inside[v] = true
		}
		for _, sub := range x.Regions {
			s.invariant(sub, inside)
		}
		for _, v := range x.Results {
			inside[v] = true
		}
	}
}

func (s *simplifier) constant(v Value) (Bits, bool) {
	if int(v) >= len(s.isConst) || !s.isConst[v] {
		return 0, false
	}
	return s.consts[v], true
}

func (s *simplifier) noteConstant(v Value, b Bits) {
	for int(v) >= len(s.consts) {
		s.consts, s.isConst = append(s.consts, 0), append(s.isConst, false)
	}
	s.consts[v], s.isConst[v] = b, true
}

// constants returns the values of vs if all of them are constants.
func (s *simplifier) constants(vs []Value) ([]Bits, bool) {
	for _, v := range vs {
		if _, ok := s.constant(v); !ok {
			return nil, false
		}
	}
	a := make([]Bits, len(vs))
	for i, v := range vs {
		a[i] = s.consts[v]
	}
	return a, true
}

func (s *simplifier) op(op Op, args ...Value) Value {
	return s.emit(&Instr{Op: op}, Invalid, args)
}

// compute copies an instruction without control.
func (s *simplifier) compute(in *Instr) Value {
	return s.emit(in, s.old.Types[in.Results[0]], s.args(in.Args))
}

func (s *simplifier) emit(in *Instr, t Type, args []Value) Value {
	f := s.b.F
	if t == Invalid {
		t, _ = in.Op.ResultType(f.types(nil, args))
	}
	if v, ok := s.shortcut(in.Op, args); ok {
		return v
	}
	op, imm := in.Op, Bits(0)
	if op == OpConst {
		imm = in.Imm
	} else if b, ok := s.inverse(op, t, args); ok {
		// The quotient by a power of two is the product with its inverse, bit for bit.
		return s.op(OpMul, args[0], s.emit(&Instr{Op: OpConst, Imm: b}, t, nil))
	} else if b, ok := s.fold(in, t, args); ok {
		op, imm, args = OpConst, b, nil
	}
	e := expr{op: op, fn: in.Fn, t: t, imm: imm, a: -1, b: -1, c: -1}
	if op == OpConst {
		e.fn = 0
	}
	for i, a := range args {
		switch i {
		case 0:
			e.a = a
		case 1:
			e.b = a
		case 2:
			e.c = a
		}
	}
	if op.Row().Commutative && e.a > e.b && t != F64 && t != F32 {
		e.a, e.b = e.b, e.a
	}
	v, head, ok := s.known.find(&e)
	if ok {
		return v
	}
	v = f.NewValue(t)
	res := s.b.space(1)
	res[0] = v
	s.b.add(Instr{Op: op, Fn: e.fn, Imm: imm, Args: args, Results: res})
	s.known.add(&e, head, v)
	if op == OpConst {
		s.noteConstant(v, imm)
	}
	return v
}

// shortcut knows the operations that give an operand back, bit for bit.
func (s *simplifier) shortcut(op Op, args []Value) (Value, bool) {
	f := s.b.F
	is := func(i int, want func(Type) Bits) bool {
		b, ok := s.constant(args[i])
		return ok && b == want(f.Types[args[i]])
	}
	one := func(t Type) Bits { return Convert(t, I64, 1) }
	zero := func(Type) Bits { return 0 }
	switch op {
	case OpSelect:
		if c, ok := s.constant(args[0]); ok {
			if c != 0 {
				return args[1], true
			}
			return args[2], true
		}
		if args[1] == args[2] {
			return args[1], true
		}
	case OpMul:
		if is(1, one) {
			return args[0], true
		}
		if is(0, one) {
			return args[1], true
		}
	case OpDiv:
		if is(1, one) {
			return args[0], true
		}
	case OpSub: // not OpAdd: -0 + 0 is +0
		if is(1, zero) {
			return args[0], true
		}
	case OpAdd, OpOr, OpXor:
		if t := f.Types[args[0]]; !t.IsFloat() {
			if is(1, zero) {
				return args[0], true
			}
			if is(0, zero) {
				return args[1], true
			}
		}
	case OpShl, OpShr:
		if is(1, zero) {
			return args[0], true
		}
	}
	return 0, false
}

// inverse is 1/c for a division of type t by a constant c, if that is a power of two
// and has a normal one.
func (s *simplifier) inverse(op Op, t Type, args []Value) (Bits, bool) {
	if op != OpDiv || !t.IsFloat() {
		return 0, false
	}
	c, ok := s.constant(args[1])
	if !ok {
		return 0, false
	}
	x := ToF64(Convert(F64, t, c))
	far := 0x1p1000
	if t == F32 {
		far = 0x1p120
	}
	if fraction, _ := math.Frexp(x); math.Abs(fraction) != 0.5 || math.Abs(x) > far || math.Abs(x) < 1/far {
		return 0, false
	}
	return Convert(t, F64, FromF64(1/x)), true
}

// fold computes an instruction whose operands are constants, unless it faults.
func (s *simplifier) fold(in *Instr, t Type, args []Value) (Bits, bool) {
	a, ok := s.constants(args)
	if !ok {
		return 0, false
	}
	// Compute looks only at the types of operands and result.
	f := &Func{Types: []Type{t}}
	x := Instr{Op: in.Op, Fn: in.Fn, Results: []Value{0}}
	for i, v := range args {
		f.Types = append(f.Types, s.b.F.Types[v])
		x.Args = append(x.Args, Value(i+1))
	}
	b, fault := Compute(f, &x, a)
	return b, fault == NoFault
}

// breaksTo reports whether a break inside r leaves the construct that is n
// levels out of r (0: the one r belongs to).
func breaksTo(r *Region, n int) bool {
	for i := range r.Instrs {
		in := &r.Instrs[i]
		if in.Op == OpBreak && in.Level() == n {
			return true
		}
		for _, x := range in.Regions {
			if breaksTo(x, n+1) {
				return true
			}
		}
	}
	return false
}

// leaves reports whether control can arrive behind in, an if or a loop.
func leaves(in *Instr) bool {
	for _, r := range in.Regions {
		if in.Op == OpIf && r.Terminator().Op == OpYield || breaksTo(r, 0) {
			return true
		}
	}
	return false
}

// exits calls f with the values of every exit of in, an if or a loop.
func exits(in *Instr, f func(args []Value)) {
	var walk func(r *Region, n int)
	walk = func(r *Region, n int) {
		for i := range r.Instrs {
			x := &r.Instrs[i]
			if x.Op == OpBreak && x.Level() == n || x.Op == OpYield && n == 0 && in.Op == OpIf {
				f(x.Args)
			}
			for _, s := range x.Regions {
				walk(s, n+1)
			}
		}
	}
	for _, r := range in.Regions {
		walk(r, 0)
	}
}
