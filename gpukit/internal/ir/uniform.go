package ir

// Divergence is a place where the workers of a block meet that some of them
// may not reach while others wait.
type Divergence struct {
	Op     Op
	Pos    Pos // of the barrier, shuffle or vote
	Branch Pos // of the branch that not all workers take alike
}

// Divergences finds, without running f, every barrier, shuffle and vote that
// workers of one block may reach in different company: under a condition, or
// after leaving a loop, that may differ between them. Workers that have left
// the kernel do not count. f is taken with its calls inlined and before other
// passes; varying says which scalar parameters differ between workers, nil
// none.
func Divergences(f *Func, varying func(Param) bool) []Divergence {
	u := uniformity{f: f, varying: make([]bool, len(f.Types)), written: make([]bool, len(f.Mems)), mixed: map[*Instr]*Pos{}}
	for _, p := range f.Params {
		u.varying[p.Value] = p.Kind == ThreadIdx || p.Kind == Offset || p.Kind == Scalar && varying != nil && varying(p)
	}
	Walk(f.Body, func(in *Instr) {
		if in.Op == OpStore || in.Op == OpAtomic || in.Op == OpClear {
			u.written[in.Mem] = true
		}
	})
	for u.changed = true; u.changed; {
		u.changed, u.found = false, nil
		u.nest = []*Instr{nil}
		u.region(f.Body, nil)
	}
	return u.found
}

type uniformity struct {
	f       *Func
	varying []bool          // by Value
	written []bool          // by Mem
	mixed   map[*Instr]*Pos // loops whose iterations not all workers take part in, and why
	nest    []*Instr        // enclosing constructs, nil is the function
	found   []Divergence
	changed bool
}

func (u *uniformity) vary(v Value, yes bool) {
	if yes && !u.varying[v] {
		u.varying[v] = true
		u.changed = true
	}
}

func (u *uniformity) any(vs []Value) bool {
	for _, v := range vs {
		if u.varying[v] {
			return true
		}
	}
	return false
}

// region goes through r; branch is where the workers parted if not all of them
// are here, else nil. It returns the outermost depth, function excluded, to
// which some leave while others stay, or len(nest) if none do, and the branch that
// parted them.
func (u *uniformity) region(r *Region, branch *Pos) (leaves int, why *Pos) {
	leaves = len(u.nest)
	for i := range r.Instrs {
		in := &r.Instrs[i]
		switch in.Op {
		case OpYield, OpBreak:
			depth := len(u.nest) - 1
			if in.Op == OpBreak {
				depth -= in.Level()
			}
			if target := u.nest[depth]; target != nil {
				into := target.Results
				if in.Op == OpYield && target.Op == OpLoop {
					into = target.Carried
				}
				for j, v := range into {
					// Parted workers bring what they have at different times.
					u.vary(v, u.varying[in.Args[j]] || branch != nil && in.Op == OpBreak)
				}
			}
			if in.Op == OpBreak && branch != nil && depth > 0 && depth < leaves {
				leaves, why = depth, branch
			}
		case OpIf:
			inside := branch
			if u.varying[in.Args[0]] {
				inside = &in.Pos
				for _, v := range in.Results {
					u.vary(v, true)
				}
			}
			u.nest = append(u.nest, in)
			out, by := u.region(in.Regions[0], inside)
			if o, b := u.region(in.Regions[1], inside); o < out {
				out, by = o, b
			}
			u.nest = u.nest[:len(u.nest)-1]
			if out < len(u.nest) { // past the if
				if out < leaves {
					leaves, why = out, by
				}
				branch = by
			}
		case OpLoop:
			for j, c := range in.Carried {
				u.vary(c, u.varying[in.Args[j]])
			}
			inside := branch
			if inside == nil {
				inside = u.mixed[in]
			}
			u.nest = append(u.nest, in)
			out, by := u.region(in.Regions[0], inside)
			u.nest = u.nest[:len(u.nest)-1]
			if out <= len(u.nest) && u.mixed[in] == nil {
				u.mixed[in] = by
				u.changed = true
			}
			if out < len(u.nest) {
				if out < leaves {
					leaves, why = out, by
				}
				branch = by
			}
		case OpBarrier, OpWarpBarrier, OpShuffle, OpVote:
			if branch != nil {
				u.found = append(u.found, Divergence{in.Op, in.Pos, *branch})
			}
			for _, v := range in.Results {
				u.vary(v, true)
			}
		case OpLoad:
			m := u.f.Mems[in.Mem]
			private := m.Space == Local || m.Space == Shared
			u.vary(in.Results[0], u.varying[in.Args[0]] || u.written[in.Mem] || private)
		case OpAtomic:
			u.vary(in.Results[0], true)
		default:
			for _, v := range in.Results {
				u.vary(v, u.any(in.Args))
			}
		}
	}
	return leaves, why
}
