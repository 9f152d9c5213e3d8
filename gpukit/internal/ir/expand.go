package ir

// Expand returns f with every library function for which body gives one replaced
// by a call of that function, of which it takes the result that body names. The
// bodies may use library functions in turn, which are replaced as well. Rows of
// one function of two results that are applied to the same operands share a call.
func Expand(f *Func, body func(MathFn) (g *Func, result int)) *Func {
	x := &expander{body: body, done: map[*Func]*Func{}}
	return x.copied(f)
}

type expander struct {
	body func(MathFn) (*Func, int)
	done map[*Func]*Func
}

func (x *expander) function(f *Func) *Func {
	if g := x.done[f]; g != nil {
		return g
	}
	if !x.expands(f.Body) {
		x.done[f] = f
		return f
	}
	return x.copied(f)
}

// expands reports whether something in r, or in what it calls, is to be replaced.
func (x *expander) expands(r *Region) bool {
	for i := range r.Instrs {
		in := &r.Instrs[i]
		switch in.Op {
		case OpCall:
			if x.function(in.Callee) != in.Callee {
				return true
			}
		case OpMath:
			if g, _ := x.body(in.Fn); g != nil {
				return true
			}
		}
		for _, s := range in.Regions {
			if x.expands(s) {
				return true
			}
		}
	}
	return false
}

func (x *expander) copied(f *Func) *Func {
	g := *f
	g.settled = false
	g.Types = append([]Type(nil), f.Types...)
	x.done[f] = &g
	g.Body = x.region(&g, f.Body)
	return &g
}

func (x *expander) region(f *Func, r *Region) *Region {
	out := &Region{Instrs: make([]Instr, 0, len(r.Instrs))}
	for _, in := range r.Instrs {
		in.Regions = append([]*Region(nil), in.Regions...)
		for i, s := range in.Regions {
			in.Regions[i] = x.region(f, s)
		}
		switch in.Op {
		case OpCall:
			in.Callee = x.function(in.Callee)
		case OpMath:
			g, k := x.body(in.Fn)
			if g == nil {
				break
			}
			g = x.function(g)
			if n := len(out.Instrs); n > 0 && out.Instrs[n-1].Callee == g && sameValues(out.Instrs[n-1].Args, in.Args) {
				// The row before, of the same call: its result takes this row's name.
				out.Instrs[n-1].Results[k] = in.Results[0]
				continue
			}
			call := Instr{Op: OpCall, Callee: g, Args: in.Args, Pos: in.Pos}
			for i, t := range g.Results {
				v := in.Results[0]
				if i != k {
					v = f.NewValue(t)
				}
				call.Results = append(call.Results, v)
			}
			in = call
		}
		out.Instrs = append(out.Instrs, in)
	}
	return out
}

func sameValues(a, b []Value) bool {
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return len(a) == len(b)
}
