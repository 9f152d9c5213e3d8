package ir

// eliminate removes, in place, computations, results and carried values that
// nothing depends on. Loops stay: an endless one is the user's to stop. What
// may fault stays too.
func eliminate(f *Func) *Func {
	e := &eliminator{f: f, live: make([]bool, len(f.Types))}
	for changed := true; changed; {
		e.changed = false
		e.mark(f.Body, []*Instr{nil})
		changed = e.changed
	}
	e.sweep(f.Body, []*Instr{nil})
	return f
}

type eliminator struct {
	f       *Func
	live    []bool
	changed bool
}

func (e *eliminator) need(v Value) {
	if !e.live[v] {
		e.live[v] = true
		e.changed = true
	}
}

// hands returns which of the operands of a terminator are looked at: nest are
// the enclosing constructs, innermost last, nil for the function itself.
func (e *eliminator) hands(in *Instr, nest []*Instr) []bool {
	target := nest[len(nest)-1]
	into := func(vs []Value) []bool {
		b := make([]bool, len(vs))
		for i, v := range vs {
			b[i] = e.live[v]
		}
		return b
	}
	if in.Op == OpBreak {
		target = nest[len(nest)-1-in.Level()]
	} else if target != nil && target.Op == OpLoop {
		return into(target.Carried)
	}
	if target == nil {
		all := make([]bool, len(in.Args))
		for i := range all {
			all[i] = true
		}
		return all
	}
	return into(target.Results)
}

// removable reports whether in, if none of its results is live, can go.
func (e *eliminator) removable(in *Instr) bool {
	if in.Op != OpIf {
		return in.Removable(e.f)
	}
	for _, r := range in.Regions {
		for i := range r.Instrs {
			x := &r.Instrs[i]
			if x.Op == OpYield {
				continue
			}
			if x.Op == OpBreak || x.Op == OpUnreachable || !e.removable(x) {
				return false
			}
		}
	}
	return true
}

func (e *eliminator) used(in *Instr) bool {
	for _, r := range in.Results {
		if e.live[r] {
			return true
		}
	}
	return !e.removable(in)
}

func (e *eliminator) mark(r *Region, nest []*Instr) {
	for i := len(r.Instrs) - 1; i >= 0; i-- {
		in := &r.Instrs[i]
		switch in.Op {
		case OpUnreachable:
			continue
		case OpYield, OpBreak:
			for j, h := range e.hands(in, nest) {
				if h {
					e.need(in.Args[j])
				}
			}
			continue
		}
		if !e.used(in) {
			continue
		}
		if in.Op != OpLoop {
			for _, a := range in.Args {
				e.need(a)
			}
		}
		for _, s := range in.Regions {
			e.mark(s, append(nest, in))
		}
		if in.Op == OpLoop {
			for j, c := range in.Carried {
				if e.live[c] {
					e.need(in.Args[j])
				}
			}
		}
	}
}

func (e *eliminator) sweep(r *Region, nest []*Instr) {
	kept := r.Instrs[:0]
	for i := range r.Instrs {
		in := r.Instrs[i]
		switch in.Op {
		case OpUnreachable:
		case OpYield, OpBreak:
			in.Args = filter(in.Args, e.hands(&in, nest))
		case OpIf, OpLoop:
			if !e.used(&in) {
				continue
			}
			for _, s := range in.Regions {
				e.sweep(s, append(nest, &in))
			}
			if in.Op == OpLoop {
				in.Args = filter(in.Args, e.liveness(in.Carried))
				in.Carried = filter(in.Carried, e.liveness(in.Carried))
			}
			in.Results = filter(in.Results, e.liveness(in.Results))
		default:
			if !e.used(&in) {
				continue
			}
		}
		kept = append(kept, in)
	}
	r.Instrs = kept
}

func (e *eliminator) liveness(vs []Value) []bool {
	b := make([]bool, len(vs))
	for i, v := range vs {
		b[i] = e.live[v]
	}
	return b
}

func filter(vs []Value, keep []bool) []Value {
	var out []Value
	for i, v := range vs {
		if keep[i] {
			out = append(out, v)
		}
	}
	return out
}

// DropBounds removes, in place, every check of an index or a slice's bounds from
// a function without calls.
func DropBounds(f *Func) {
	var drop func(r *Region)
	drop = func(r *Region) {
		kept := r.Instrs[:0]
		for _, in := range r.Instrs {
			for _, s := range in.Regions {
				drop(s)
			}
			if in.Op != OpBounds && in.Op != OpSliceBounds {
				kept = append(kept, in)
			}
		}
		r.Instrs = kept
	}
	drop(f.Body)
	eliminate(f)
}
