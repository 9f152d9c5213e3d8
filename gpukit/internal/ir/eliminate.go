package ir

// eliminate removes, in place, computations, results and carried values that
// nothing depends on. Loops stay: an endless one is the user's to stop. What
// may fault stays too.
func eliminate(f *Func) *Func {
	e := &eliminator{f: f, live: make([]bool, len(f.Types)), nest: make([]*Instr, 1, 8)}
	e.mark(f.Body)
	e.sweep(f.Body)
	return f
}

type eliminator struct {
	f    *Func
	live []bool
	nest []*Instr // the enclosing constructs, innermost last; nil for the function itself
}

// receivers are the values that the operands of a terminator become; all is true if
// these are the results of the function.
func (e *eliminator) receivers(in *Instr) (vs []Value, all bool) {
	target := e.nest[len(e.nest)-1]
	if in.Op == OpBreak {
		target = e.nest[len(e.nest)-1-in.Level()]
	} else if target != nil && target.Op == OpLoop {
		return target.Carried, false
	}
	if target == nil {
		return nil, true
	}
	return target.Results, false
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

// mark goes from users to what they use. Only what a loop hands to its next iteration
// is used before the place where it is computed.
func (e *eliminator) mark(r *Region) {
	for i := len(r.Instrs) - 1; i >= 0; i-- {
		in := &r.Instrs[i]
		switch in.Op {
		case OpUnreachable:
			continue
		case OpYield, OpBreak:
			vs, all := e.receivers(in)
			for j, a := range in.Args {
				if all || e.live[vs[j]] {
					e.live[a] = true
				}
			}
			continue
		}
		if !e.used(in) {
			continue
		}
		if in.Op != OpLoop {
			for _, a := range in.Args {
				e.live[a] = true
			}
		}
		if in.Regions == nil {
			continue
		}
		e.nest = append(e.nest, in)
		for again := true; again; {
			before := e.carried(in)
			for _, s := range in.Regions {
				e.mark(s)
			}
			again = e.carried(in) != before
		}
		e.nest = e.nest[:len(e.nest)-1]
		if in.Op == OpLoop {
			for j, c := range in.Carried {
				if e.live[c] {
					e.live[in.Args[j]] = true
				}
			}
		}
	}
}

// carried is how many of the carried values of in are live.
func (e *eliminator) carried(in *Instr) (n int) {
	for _, c := range in.Carried {
		if e.live[c] {
			n++
		}
	}
	return n
}

func (e *eliminator) sweep(r *Region) {
	kept := r.Instrs[:0]
	for i := range r.Instrs {
		in := &r.Instrs[i]
		switch in.Op {
		case OpUnreachable:
		case OpYield, OpBreak:
			if vs, all := e.receivers(in); !all {
				in.Args = e.filter(in.Args, vs)
			}
		case OpIf, OpLoop:
			if !e.used(in) {
				continue
			}
			e.nest = append(e.nest, in)
			for _, s := range in.Regions {
				e.sweep(s)
			}
			e.nest = e.nest[:len(e.nest)-1]
			if in.Op == OpLoop {
				in.Args = e.filter(in.Args, in.Carried)
				in.Carried = e.filter(in.Carried, in.Carried)
			}
			in.Results = e.filter(in.Results, in.Results)
		default:
			if !e.used(in) {
				continue
			}
		}
		if n := len(kept); n < i {
			kept = append(kept, *in)
		} else {
			kept = kept[:n+1]
		}
	}
	clear(r.Instrs[len(kept):])
	r.Instrs = kept
}

// filter returns those of vs whose receivers are live, in a slice of its own if these
// are not all.
func (e *eliminator) filter(vs, receivers []Value) []Value {
	for i, v := range receivers {
		if e.live[v] {
			continue
		}
		out := append(make([]Value, 0, len(vs)-1), vs[:i]...)
		for j := i + 1; j < len(vs); j++ {
			if e.live[receivers[j]] {
				out = append(out, vs[j])
			}
		}
		if len(out) == 0 {
			return nil
		}
		return out
	}
	return vs
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
	f.settled = false
	eliminate(f)
}
