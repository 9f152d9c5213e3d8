package ir

// Inline returns f with every call replaced by the callee's body. The body
// stands in the first region of an if whose condition is true, so that the
// callee's returns, which are breaks to its outermost level, leave that if.
// Calls must not be recursive.
func Inline(f *Func) *Func {
	out := NewFunc(f.Name, f.Results...)
	out.Pos = f.Pos
	c := &inliner{out: out}
	vals := make([]Value, len(f.Types))
	for _, p := range f.Params {
		vals[p.Value] = out.AddParam(p.Name, f.Types[p.Value])
	}
	out.Body = c.region(f, f.Body, vals)
	return out
}

type inliner struct{ out *Func }

func (c *inliner) fresh(f *Func, vs []Value, vals []Value) []Value {
	if len(vs) == 0 {
		return nil
	}
	n := make([]Value, len(vs))
	for i, v := range vs {
		n[i] = c.out.NewValue(f.Types[v])
		vals[v] = n[i]
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

func (c *inliner) region(f *Func, r *Region, vals []Value) *Region {
	out := &Region{Instrs: make([]Instr, 0, len(r.Instrs))}
	for i := range r.Instrs {
		in := r.Instrs[i]
		in.Args = renamed(in.Args, vals)
		if in.Op == OpCall {
			g := in.Callee
			inner := make([]Value, len(g.Types))
			for j, p := range g.Params {
				inner[p.Value] = in.Args[j]
			}
			cond := c.out.NewValue(Bool)
			out.Instrs = append(out.Instrs,
				Instr{Op: OpConst, Imm: 1, Results: []Value{cond}, Pos: in.Pos},
				Instr{Op: OpIf, Args: []Value{cond}, Results: c.fresh(f, in.Results, vals), Pos: in.Pos,
					Regions: []*Region{c.region(g, g.Body, inner), {Instrs: []Instr{{Op: OpUnreachable}}}}})
			continue
		}
		in.Carried = c.fresh(f, in.Carried, vals)
		in.Regions = append([]*Region(nil), in.Regions...)
		for j, s := range in.Regions {
			in.Regions[j] = c.region(f, s, vals)
		}
		in.Results = c.fresh(f, in.Results, vals)
		out.Instrs = append(out.Instrs, in)
	}
	return out
}
