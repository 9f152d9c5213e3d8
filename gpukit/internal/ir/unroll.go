package ir

import "slices"

// Assume returns f for calls in which parameters, by number, have these values:
// shapes and strides of a launch, say. They stay parameters; nobody looks at them.
func Assume(f *Func, values map[int]Bits) *Func {
	if len(values) == 0 {
		return f
	}
	g := f.clone()
	vals := make([]Value, len(g.Types))
	for i := range vals {
		vals[i] = Value(i)
	}
	var consts []Instr
	for i, p := range g.Params {
		if b, ok := values[i]; ok {
			v := g.NewValue(g.Types[p.Value])
			vals[p.Value] = v
			consts = append(consts, Instr{Op: OpConst, Imm: b, Results: []Value{v}, Pos: g.Pos})
		}
	}
	Walk(g.Body, func(in *Instr) {
		for i, a := range in.Args {
			in.Args[i] = vals[a]
		}
	})
	g.Body.Instrs = append(consts, g.Body.Instrs...)
	return g
}

// Unroll returns f with loops written out whose number of iterations constants
// decide, if all iterations of a loop together have at most limit instructions,
// and then optimised. Loops that may also be left for another reason stay.
func Unroll(f *Func, limit int) *Func {
	f = Optimize(f)
	// What is written out makes other loops' bounds constants, or a loop around it free
	// of loops. Each round may double a function, so their number is limited.
	for range 4 {
		u := &unroller{f: f.clone(), limit: limit, consts: map[Value]Bits{}}
		body, changed := u.region(u.f.Body)
		if !changed {
			break
		}
		u.f.Body = body
		f = Optimize(u.f)
	}
	return f
}

// mostTrips bounds the iterations that are counted.
const mostTrips = 1 << 10

type unroller struct {
	f      *Func
	limit  int
	consts map[Value]Bits // visible here
}

// region writes a region anew and reports whether a loop in it was written out.
func (u *unroller) region(r *Region) (out *Region, changed bool) {
	out = &Region{Instrs: make([]Instr, 0, len(r.Instrs))}
	for i := range r.Instrs {
		in := r.Instrs[i]
		if in.Op == OpConst {
			u.consts[in.Results[0]] = in.Imm
		}
		inside := false
		for j, s := range in.Regions {
			body, yes := u.region(s)
			in.Regions[j] = body
			inside = inside || yes
		}
		if in.Op == OpLoop && !inside {
			if n, ok := u.trips(&in); ok {
				cond := u.f.NewValue(Bool)
				out.Instrs = append(out.Instrs, Instr{Op: OpConst, Imm: 1, Results: []Value{cond}, Pos: in.Pos},
					Instr{Op: OpIf, Args: []Value{cond}, Results: in.Results, Pos: in.Pos,
						Regions: []*Region{u.written(&in, n), {Instrs: []Instr{{Op: OpUnreachable, Pos: in.Pos}}}}})
				changed = true
				continue
			}
		}
		changed = changed || inside
		out.Instrs = append(out.Instrs, in)
	}
	return out, changed
}

// written is the body of a loop, n times and as far as the loop is left. It belongs to
// an if in the loop's place, so that breaks go where they went.
func (u *unroller) written(in *Instr, n int) *Region {
	out := &Region{}
	carried := in.Args
	for range n + 1 {
		vals := map[Value]Value{}
		for j, c := range in.Carried {
			vals[c] = carried[j]
		}
		body := u.copy(in.Regions[0], vals)
		end := body.Terminator()
		out.Instrs = append(out.Instrs, body.Instrs[:len(body.Instrs)-1]...)
		if end.Op != OpYield {
			out.Instrs = append(out.Instrs, *end)
			return out
		}
		carried = end.Args
	}
	// The last copy is left before its end.
	out.Instrs = append(out.Instrs, Instr{Op: OpUnreachable, Pos: in.Pos})
	return out
}

// copy copies a region; vals has the names of its values in the copy.
func (u *unroller) copy(r *Region, vals map[Value]Value) *Region {
	out := &Region{Instrs: slices.Clone(r.Instrs)}
	fresh := func(vs []Value) []Value {
		n := make([]Value, len(vs))
		for i, v := range vs {
			n[i] = u.f.NewValue(u.f.Types[v])
			vals[v] = n[i]
		}
		return n
	}
	for i := range out.Instrs {
		in := &out.Instrs[i]
		in.Args = slices.Clone(in.Args)
		for j, a := range in.Args {
			if v, ok := vals[a]; ok {
				in.Args[j] = v
			}
		}
		in.Carried = fresh(in.Carried)
		in.Regions = slices.Clone(in.Regions)
		for j, s := range in.Regions {
			in.Regions[j] = u.copy(s, vals)
		}
		in.Results = fresh(in.Results)
	}
	return out
}

// trips counts the whole iterations of a loop before the one in which it is left.
func (u *unroller) trips(in *Instr) (n int, ok bool) {
	body := in.Regions[0]
	t := &tripCounter{f: u.f, loop: in, vals: map[Value]Bits{}, outer: u.consts}
	for j, c := range in.Carried {
		if b, ok := u.consts[in.Args[j]]; ok {
			t.vals[c] = b
		}
	}
	for n = range mostTrips {
		next, end := t.region(body, 0)
		if t.size > u.limit && n > 0 {
			return 0, false
		}
		switch end {
		case endsLoop:
			return n, true
		case endsUnknown:
			return 0, false
		}
		known := map[Value]Bits{}
		for j, c := range in.Carried {
			if b, ok := t.value(next.Args[j]); ok {
				known[c] = b
			}
		}
		t.vals = known
	}
	return 0, false
}

// tripCounter follows an iteration as far as constants tell.
type tripCounter struct {
	f     *Func
	loop  *Instr
	vals  map[Value]Bits // known, of those that the loop computes
	outer map[Value]Bits
	size  int // instructions that are not known
}

// grow counts what stays of an instruction.
func (t *tripCounter) grow(in *Instr) {
	Walk(&Region{Instrs: []Instr{*in}}, func(x *Instr) {
		if x.Op != OpConst && !x.Op.Row().Terminator {
			t.size++
		}
	})
}

// How control leaves a region.
const (
	endsYield   = iota
	endsLoop    // out of the loop
	endsUnknown // out of the loop or not, or to a construct in the loop
)

func (t *tripCounter) value(v Value) (Bits, bool) {
	if b, ok := t.vals[v]; ok {
		return b, true
	}
	b, ok := t.outer[v]
	return b, ok
}

// region follows a region, depth constructs inside the loop, up to its terminator.
func (t *tripCounter) region(r *Region, depth int) (last *Instr, end int) {
	for i := range r.Instrs {
		in := &r.Instrs[i]
		switch in.Op {
		case OpYield:
			return in, endsYield
		case OpUnreachable:
			return in, endsUnknown
		case OpBreak:
			if in.Level() >= depth {
				return in, endsLoop
			}
			return in, endsUnknown
		case OpIf:
			c, known := t.value(in.Args[0])
			if !known {
				if t.mayLeave(in, depth) {
					return nil, endsUnknown
				}
				t.grow(in)
				continue
			}
			arm := in.Regions[1-min(c, 1)]
			if breaksTo(arm, 0) {
				// Where it goes on is known, but not with what.
				if t.mayLeave(in, depth) {
					return nil, endsUnknown
				}
				t.grow(in)
				continue
			}
			y, end := t.region(arm, depth+1)
			if end != endsYield {
				return y, end
			}
			for k, v := range in.Results {
				if b, ok := t.value(y.Args[k]); ok {
					t.vals[v] = b
				}
			}
		case OpLoop:
			if t.mayLeave(in, depth) {
				return nil, endsUnknown
			}
			t.grow(in)
		default:
			a := make([]Bits, len(in.Args))
			all := true
			for k, v := range in.Args {
				b, ok := t.value(v)
				a[k], all = b, all && ok
			}
			if t.known(in, a, all) {
				continue
			}
			t.grow(in)
		}
	}
	return nil, endsUnknown
}

// known reports whether an instruction without control will go, as its operands a are
// constants, if all are.
func (t *tripCounter) known(in *Instr, a []Bits, all bool) bool {
	switch {
	case !all:
		return false
	case in.Op == OpBounds:
		return CheckBounds(in.Op, a) == NoFault
	case len(in.Results) != 1 || in.Op.Row().Eval == nil && !in.Pure(t.f):
		return false
	}
	b, fault := Compute(t.f, in, a)
	if fault == NoFault {
		t.vals[in.Results[0]] = b
	}
	return fault == NoFault
}

// mayLeave reports whether a construct that stands depth constructs inside the loop has
// a break to the loop or further out, or to one between that control would go on
// behind.
func (t *tripCounter) mayLeave(in *Instr, depth int) bool {
	for _, r := range in.Regions {
		for k := range depth + 1 {
			if breaksTo(r, k+1) {
				return true
			}
		}
		if breaksOut(r, depth+1) {
			return true
		}
	}
	return false
}

// breaksOut reports whether a break inside r goes further out than n levels.
func breaksOut(r *Region, n int) bool {
	for i := range r.Instrs {
		in := &r.Instrs[i]
		if in.Op == OpBreak && in.Level() > n {
			return true
		}
		for _, x := range in.Regions {
			if breaksOut(x, n+1) {
				return true
			}
		}
	}
	return false
}
