package ir

// Optimize returns a function of the same meaning, bit for bit and fault for
// fault, without calls and with less to do: constants folded, common
// subexpressions shared, early exits turned into nesting, small arms turned
// into selects, what is not used left out.
func Optimize(f *Func) *Func {
	f = Inline(f)
	size := count(f.Body)
	for range 8 {
		f = eliminate(simplify(f))
		n := count(f.Body)
		if n == size {
			break
		}
		size = n
	}
	return f
}

func count(r *Region) (n int) {
	Walk(r, func(in *Instr) { n += 1 + len(in.Args) })
	return n
}

// simplify copies f, simplifying on the way.
func simplify(f *Func) *Func {
	out := NewFunc(f.Name, f.Results...)
	out.Pos, out.Outline = f.Pos, f.Outline
	out.Mems = f.Mems
	s := &simplifier{old: f, b: NewBuilder(out), vals: make([]Value, len(f.Types)), known: map[expr]Value{}, consts: map[Value]Bits{}}
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
	results  []Type
}

type simplifier struct {
	old    *Func
	b      *Builder
	vals   []Value // old to new
	consts map[Value]Bits
	known  map[expr]Value
	scope  []expr // of known, innermost last, to forget on leaving a region
	nest   []level
}

func (s *simplifier) args(vs []Value) []Value { return renamed(vs, s.vals) }

// newLevel translates a level of the old function at this place.
func (s *simplifier) newLevel(old int) int {
	n := 0
	for i := len(s.nest) - 1; ; i-- {
		if s.nest[i].old {
			if old == 0 {
				return n
			}
			old--
		}
		if s.nest[i].new {
			n++
		}
	}
}

// scoped runs f and forgets the expressions that became known inside.
func (s *simplifier) scoped(l level, f func()) {
	s.nest = append(s.nest, l)
	n := len(s.scope)
	f()
	for _, e := range s.scope[n:] {
		delete(s.known, e)
	}
	s.scope = s.scope[:n]
	s.nest = s.nest[:len(s.nest)-1]
}

// region copies r to where the builder stands, terminator included.
func (s *simplifier) region(r *Region) { s.rest(r.Instrs, s.b.Yield) }

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
			s.b.Break(s.newLevel(in.Level()), s.args(in.Args)...)
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
	x.Results = nil
	for _, r := range in.Results {
		s.vals[r] = s.b.F.NewValue(s.old.Types[r])
		x.Results = append(x.Results, s.vals[r])
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
			falls := arm.Terminator().Op == OpYield
			s.rest(arm.Instrs, func(vs ...Value) {
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
	l := level{old: true, new: true, results: ts}
	res := s.b.If(cond, ts,
		func() { s.scoped(l, func() { s.region(in.Regions[0]) }) },
		func() { s.scoped(l, func() { s.region(in.Regions[1]) }) })
	for i, r := range in.Results {
		s.vals[r] = res[i]
		// Both arms hand out the same value from outside.
		if v, ok := s.sameYield(res, i); ok {
			s.vals[r] = v
		}
	}
	if !leaves(in) {
		s.b.Unreachable()
		return true
	}
	return false
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
	inside := map[Value]bool{}
	for i, c := range in.Carried {
		if y := in.Regions[0].Terminator(); y.Op == OpYield && y.Args[i] != c {
			inside[c] = true
		}
	}
	s.invariant(in.Regions[0], inside)
}

// invariant computes what r computes from values that are not inside.
func (s *simplifier) invariant(r *Region, inside map[Value]bool) {
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
	b, ok := s.consts[v]
	return b, ok
}

// constants returns the values of vs if all of them are constants.
func (s *simplifier) constants(vs []Value) (a []Bits, ok bool) {
	a = make([]Bits, len(vs))
	for i, v := range vs {
		if a[i], ok = s.constant(v); !ok {
			return nil, false
		}
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
	if v, ok := s.known[e]; ok {
		return v
	}
	v := f.NewValue(t)
	s.b.add(Instr{Op: op, Fn: e.fn, Imm: imm, Args: args, Results: []Value{v}})
	s.known[e] = v
	s.scope = append(s.scope, e)
	if op == OpConst {
		s.consts[v] = imm
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
