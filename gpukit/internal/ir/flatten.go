package ir

// Flatten returns f for an engine that runs lanes together, so that both ways of a
// branch are often gone: small arms of ifs are computed by all lanes, and the
// results selected; what an if computes where a function marked Outline is not
// called is computed before it. Arms of at most both instructions (about) are
// merged, and an arm of at most main whose other arm computes next to nothing. Where arms
// are longer, the first one is computed before the if, if it has at most apart: the other
// one is then left out where no lane takes it. Nothing is
// called, stored or checked that was not before.
func Flatten(f *Func, both, main, apart int) *Func {
	g := &flattener{f: Optimize(f).clone(), both: both, main: main, apart: apart}
	before := fingerprint(g.f)
	g.def = make([]*Instr, len(g.f.Types))
	Walk(g.f.Body, func(in *Instr) {
		if len(in.Results) == 1 {
			g.def[in.Results[0]] = in
		}
	})
	g.f.Body = g.region(g.f.Body)
	g.f.settled = fingerprint(g.f) == before
	return Optimize(g.f)
}

// few is what an arm for a special case has at most.
const few = 4

type flattener struct {
	f                 *Func
	both, main, apart int
	def               []*Instr // by value, of what the function had with one result
}

func (g *flattener) region(r *Region) *Region {
	out := &Region{Instrs: make([]Instr, 0, len(r.Instrs))}
	for _, in := range r.Instrs {
		for j, s := range in.Regions {
			in.Regions[j] = g.region(s)
		}
		if in.Op == OpSelect {
			if d := g.defOf(in.Args[0]); d != nil && d.Op == OpNot {
				in.Args = []Value{d.Args[0], in.Args[2], in.Args[1]}
			}
		}
		if in.Op == OpIf {
			g.branch(&Builder{F: g.f, R: out, Pos: in.Pos}, &in)
		} else {
			out.Instrs = append(out.Instrs, in)
		}
	}
	return out
}

// branch writes an if, or what it became.
func (g *flattener) branch(b *Builder, in *Instr) {
	if d := g.defOf(in.Args[0]); d != nil && d.Op == OpNot {
		in.Args = d.Args
		in.Regions[0], in.Regions[1] = in.Regions[1], in.Regions[0]
	}
	then, els := in.Regions[0], in.Regions[1]
	x, okX := g.weigh(then)
	y, okY := g.weigh(els)
	cond := in.Args[0]
	switch {
	case okX && okY && (max(x, y) <= g.both || min(x, y) <= few && max(x, y) <= g.main):
		g.hoist(b, then, cond, true)
		g.hoist(b, els, cond, false)
		a, c := then.Terminator().Args, els.Terminator().Args
		for i, r := range in.Results {
			b.add(Instr{Op: OpSelect, Args: []Value{cond, a[i], c[i]}, Results: []Value{r}})
		}
		return
	case okX && rare(els):
		in.Regions[0] = g.hoist(b, then, cond, true)
	case okY && rare(then):
		in.Regions[1] = g.hoist(b, els, cond, false)
	case okX && okY && x <= g.apart && !empty(els):
		in.Regions[0] = g.hoist(b, then, cond, true)
	}
	b.R.Instrs = append(b.R.Instrs, *in)
}

// rare reports whether an arm calls a function of its own.
func rare(r *Region) bool {
	for i := range r.Instrs {
		if in := &r.Instrs[i]; in.Op == OpCall && in.Callee.Outline {
			return true
		}
	}
	return false
}

// empty reports whether an arm computes nothing.
func empty(r *Region) bool {
	for i := range r.Instrs[:len(r.Instrs)-1] {
		if r.Instrs[i].Op != OpConst {
			return false
		}
	}
	return r.Terminator().Op == OpYield
}

// weigh says how much there is to compute in an arm, and whether all lanes may do it.
func (g *flattener) weigh(r *Region) (n int, ok bool) {
	if r.Terminator().Op != OpYield {
		return 0, false
	}
	for i := range r.Instrs[:len(r.Instrs)-1] {
		switch in := &r.Instrs[i]; {
		case in.Op == OpConst:
		case in.Op == OpIf:
			// Its condition will say besides whether the arm is the one.
			if n += 2; !empty(in.Regions[0]) && !empty(in.Regions[1]) || leavesOut(in) {
				return 0, false
			}
		case in.Op == OpLoad:
			if n += 8; !g.readable(in) {
				return 0, false
			}
		case in.Op == OpDiv || in.Op == OpRem || in.Op == OpShl || in.Op == OpShr:
			if n++; in.Op == OpDiv || in.Op == OpRem {
				n += 7
			}
			if in.MayFault(g.f) && !g.constantOperand(in) {
				return 0, false
			}
		case in.Pure(g.f):
			if n++; in.Op == OpMath && (!in.Fn.Row().Cheap || in.Fn.Row().Name == "math.Sqrt") {
				n += 7
			}
		default:
			return 0, false
		}
	}
	return n, true
}

// leavesOut reports whether a break in an if goes further than behind it.
func leavesOut(in *Instr) bool { return breaksOut(in.Regions[0], 0) || breaksOut(in.Regions[1], 0) }

// constantOperand reports whether a division or shift has a constant second operand
// with which it cannot fail.
func (g *flattener) constantOperand(in *Instr) bool {
	d := g.defOf(in.Args[1])
	if d == nil || d.Op != OpConst {
		return false
	}
	return int64(d.Imm) > 0 || d.Imm == 0 && (in.Op == OpShl || in.Op == OpShr)
}

// readable reports whether an element of a Constant memory is there whatever the
// lane: its number is what a mask leaves.
func (g *flattener) readable(in *Instr) bool {
	m := g.f.Mems[in.Mem]
	if m.Space != Constant {
		return false
	}
	d := g.defOf(in.Args[0])
	for d != nil && d.Op == OpConvert && g.f.Types[d.Results[0]].Bits() >= 32 && g.f.Types[d.Args[0]].IsInt() {
		d = g.defOf(d.Args[0])
	}
	if d == nil || d.Op != OpAnd {
		return false
	}
	for _, a := range d.Args {
		if c := g.defOf(a); c != nil && c.Op == OpConst && c.Imm < Bits(m.Len) {
			return true
		}
	}
	return false
}

// hoist writes what an arm computes, the one for which cond is as way says, and
// returns what is left of it. Ifs in it take the arm that is not empty for the same
// lanes as before.
func (g *flattener) hoist(b *Builder, r *Region, cond Value, way bool) *Region {
	last := len(r.Instrs) - 1
	for _, in := range r.Instrs[:last] {
		if in.Op == OpIf {
			d := in.Args[0]
			switch {
			case empty(in.Regions[1]) && way:
				d = b.Op(OpAnd, d, cond)
			case empty(in.Regions[1]):
				d = b.Op(OpAndNot, d, cond)
			case way:
				d = b.Op(OpOr, d, b.Op(OpNot, cond))
			default:
				d = b.Op(OpOr, d, cond)
			}
			in.Args = []Value{d}
		}
		b.R.Instrs = append(b.R.Instrs, in)
	}
	return &Region{Instrs: r.Instrs[last:]}
}

// defOf is the instruction that v comes from, if that has one result and was there
// before.
func (g *flattener) defOf(v Value) *Instr {
	if int(v) >= len(g.def) {
		return nil
	}
	return g.def[v]
}
