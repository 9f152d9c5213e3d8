package ir

import (
	"math"
	"slices"
)

// Narrow returns f with library functions of float64 that are applied to float32
// operands and whose results become float32, float32(math.F(float64(x))) in Go,
// replaced by their forms for float32 (MathRow.Single): those that give the same
// bits, or, if fast, all. It comes before Expand, because the forms themselves
// fall back on such conversions.
func Narrow(f *Func, fast bool) *Func {
	n := &narrower{fast: fast, done: map[*Func]*Func{}}
	return n.function(f)
}

// singles has the form for float32 of a function.
var singles = func() map[MathFn]MathFn {
	m := map[MathFn]MathFn{}
	for i := range mathTable {
		if of := mathTable[i].Single; of != "" {
			m[mathByName[of]] = MathFn(i)
		}
	}
	return m
}()

type narrower struct {
	fast bool
	done map[*Func]*Func

	f      *Func
	define []*Instr
	uses   []int32
	// dropped are the results of calls that were replaced.
	dropped map[Value]bool // nil if none
}

func (n *narrower) function(f *Func) *Func {
	if g := n.done[f]; g != nil {
		return g
	}
	g := *f
	g.settled = false
	g.Types = append([]Type(nil), f.Types...)
	n.done[f] = &g
	define, uses := make([]*Instr, len(f.Types)), make([]int32, len(f.Types))
	var callees []*Func
	Walk(f.Body, func(in *Instr) {
		switch in.Op {
		case OpConst, OpConvert, OpMath:
			define[in.Results[0]] = in
		case OpCall:
			callees = append(callees, in.Callee)
		}
		for _, a := range in.Args {
			uses[a]++
		}
	})
	for _, c := range callees {
		n.function(c)
	}
	n.f, n.define, n.uses, n.dropped = &g, define, uses, nil
	g.Body = n.region(f.Body)
	if n.dropped != nil {
		n.drop(g.Body)
	}
	g.settled = f.settled && n.dropped == nil && len(callees) == 0
	return &g
}

func (n *narrower) region(r *Region) *Region {
	out := &Region{Instrs: make([]Instr, 0, len(r.Instrs))}
	for _, in := range r.Instrs {
		switch in.Op {
		case OpCall:
			in.Callee = n.done[in.Callee]
		case OpConvert:
			if fn, args, ok := n.narrow(&in, out); ok {
				if n.dropped == nil {
					n.dropped = map[Value]bool{}
				}
				n.dropped[in.Args[0]] = true
				in = Instr{Op: OpMath, Fn: fn, Args: args, Results: in.Results, Pos: in.Pos}
			}
		}
		if in.Regions != nil {
			regions := make([]*Region, len(in.Regions))
			for i, s := range in.Regions {
				regions[i] = n.region(s)
			}
			in.Regions = regions
		}
		out.Instrs = append(out.Instrs, in)
	}
	return out
}

// drop removes, in place, the calls that were replaced.
func (n *narrower) drop(r *Region) {
	r.Instrs = slices.DeleteFunc(r.Instrs, func(in Instr) bool { return in.Op == OpMath && n.dropped[in.Results[0]] })
	for _, in := range r.Instrs {
		for _, s := range in.Regions {
			n.drop(s)
		}
	}
}

// narrow gives the function and the operands that a conversion can be replaced
// by, constants among them being appended to out. What the function of float64 is
// needed for anyway is left alone, or it would be computed twice.
func (n *narrower) narrow(in *Instr, out *Region) (fn MathFn, args []Value, ok bool) {
	call := n.define[in.Args[0]]
	if call == nil || call.Op != OpMath || n.f.Types[in.Results[0]] != F32 || n.uses[in.Args[0]] != 1 {
		return 0, nil, false
	}
	fn, ok = singles[call.Fn]
	if !ok || !fn.Row().Identical && !n.fast {
		return 0, nil, false
	}
	constants := make([]*Instr, len(call.Args))
	for i, a := range call.Args {
		d := n.define[a]
		switch {
		case d != nil && d.Op == OpConvert && n.f.Types[d.Args[0]] == F32:
			args = append(args, d.Args[0])
		case d != nil && d.Op == OpConst && isSingle(ToF64(d.Imm)):
			args = append(args, 0)
			constants[i] = d
		default:
			return 0, nil, false
		}
	}
	for i, c := range constants {
		if c != nil {
			args[i] = n.f.NewValue(F32)
			out.Instrs = append(out.Instrs, Instr{Op: OpConst, Imm: FromF32(float32(ToF64(c.Imm))), Results: []Value{args[i]}, Pos: in.Pos})
		}
	}
	return fn, args, true
}

func isSingle(x float64) bool { return float64(float32(x)) == x || math.IsNaN(x) }
