package ir

// Inline returns f with every call replaced by the callee's body. The body
// stands in the first region of an if whose condition is true, so that the
// callee's returns, which are breaks to its outermost level, leave that if.
// Calls must not be recursive; those of functions marked Outline stay. Memories
// that a callee declares are one each, however often it is called.
func Inline(f *Func) *Func {
	out := NewFunc(f.Name, f.Results...)
	out.Pos, out.Outline = f.Pos, f.Outline
	out.Mems = append(out.Mems, f.Mems...)
	c := &inliner{out: out, own: map[*Func][]Mem{}}
	in := inlined{f: f, vals: make([]Value, len(f.Types))}
	for i := range f.Mems {
		in.mems = append(in.mems, Mem(i))
	}
	for _, p := range f.Params {
		in.vals[p.Value] = out.AddParamOf(p, f.Types[p.Value])
	}
	out.Body = c.region(in, f.Body)
	return out
}

type inliner struct {
	out *Func
	own map[*Func][]Mem // the memories that a callee declares, in the new function
}

// inlined is one copy of a function: its values and memories in the new one.
type inlined struct {
	f    *Func
	vals []Value
	mems []Mem
}

// enter makes a copy of the callee of in, whose operands are renamed already.
func (c *inliner) enter(in *Instr) inlined {
	g := in.Callee
	copied := inlined{f: g, vals: make([]Value, len(g.Types))}
	for j, p := range g.Params {
		copied.vals[p.Value] = in.Args[j]
	}
	own, known := c.own[g]
	bound := in.Mems
	for i, m := range g.Mems {
		switch {
		case m.Space == Global:
			copied.mems = append(copied.mems, bound[0])
			bound = bound[1:]
		case known:
			copied.mems = append(copied.mems, own[i])
		default:
			copied.mems = append(copied.mems, c.out.AddMem(m))
		}
	}
	c.own[g] = copied.mems
	return copied
}

func (c *inliner) fresh(x inlined, vs []Value) []Value {
	if len(vs) == 0 {
		return nil
	}
	n := make([]Value, len(vs))
	for i, v := range vs {
		n[i] = c.out.NewValue(x.f.Types[v])
		x.vals[v] = n[i]
	}
	return n
}

func renamed(vs []Value, vals []Value) []Value {
	if len(vs) == 0 {
		return nil
	}
	n := make([]Value, len(vs))
	for i, v := range vs {
		n[i] = vals[v]
	}
	return n
}

func (c *inliner) region(x inlined, r *Region) *Region {
	out := &Region{Instrs: make([]Instr, 0, len(r.Instrs))}
	for i := range r.Instrs {
		in := r.Instrs[i]
		in.Args = renamed(in.Args, x.vals)
		if in.Op.accessesMem() {
			in.Mem = x.mems[in.Mem]
		}
		if in.Op == OpCall {
			mems := make([]Mem, len(in.Mems))
			for j, m := range in.Mems {
				mems[j] = x.mems[m]
			}
			in.Mems = mems
		}
		if in.Op == OpCall && !in.Callee.Outline {
			body := c.enter(&in)
			cond := c.out.NewValue(Bool)
			out.Instrs = append(out.Instrs,
				Instr{Op: OpConst, Imm: 1, Results: []Value{cond}, Pos: in.Pos},
				Instr{Op: OpIf, Args: []Value{cond}, Results: c.fresh(x, in.Results), Pos: in.Pos,
					Regions: []*Region{c.region(body, in.Callee.Body), {Instrs: []Instr{{Op: OpUnreachable}}}}})
			continue
		}
		in.Carried = c.fresh(x, in.Carried)
		in.Regions = append([]*Region(nil), in.Regions...)
		for j, s := range in.Regions {
			in.Regions[j] = c.region(x, s)
		}
		in.Results = c.fresh(x, in.Results)
		out.Instrs = append(out.Instrs, in)
	}
	return out
}

// Redirect returns f with calls going to the functions that to gives for them: the
// callee itself, or another of the same parameters, results and Global memories.
func Redirect(f *Func, to func(callee *Func) *Func) *Func {
	g := f.clone()
	Walk(g.Body, func(in *Instr) {
		if in.Op == OpCall {
			in.Callee = to(in.Callee)
		}
	})
	return g
}
