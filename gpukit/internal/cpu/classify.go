package cpu

import "gpunotes/gpukit/internal/ir"

// class says what a value depends on, as a set; the empty one is a value that
// the whole run shares.
type class uint8

const (
	perRow   class = 1 << iota // differs between rows (all loop dimensions but the last)
	perLane                    // differs along the last loop dimension, so between lanes
	anchored                   // must be computed where it stands: in a loop, after a store, or may fault
	ragged                     // not known to be first + k*step in the lanes k of a block
)

// varies reports whether the value needs one element per lane.
func (c class) varies() bool { return c&perLane != 0 }

// hoisted reports whether the value is computed outside the body of the block
// program: once per run, per row or per column.
func (c class) hoisted() bool { return c&anchored == 0 && c&(perRow|perLane) != perRow|perLane }

// affine reports whether an integer value differs between lanes in equal steps,
// if the block lies in one row of all operands that are indices.
func (c class) affine() bool { return c.varies() && c&ragged == 0 }

// kind drops what does not depend on the operand.
func (c class) kind() class { return c &^ ragged }

// classify finds the class of every value, given those of the parameters.
//
// Lanes of one frame are always at the same iteration of every loop around
// them, so a carried value that starts and goes on equal for all lanes is one
// value, even where lanes leave at different times.
func classify(f *ir.Func, params []class) *classifier {
	c := &classifier{f: f, of: make([]class, len(f.Types)), consts: map[ir.Value]ir.Bits{}}
	for i, p := range f.Params {
		c.of[p.Value] = params[i]
	}
	ir.Walk(f.Body, func(in *ir.Instr) {
		if in.Op == ir.OpConst {
			c.consts[in.Results[0]] = in.Imm
		}
	})
	for c.changed = true; c.changed; {
		c.changed = false
		c.region(f.Body)
	}
	return c
}

type classifier struct {
	f       *ir.Func
	of      []class
	consts  map[ir.Value]ir.Bits
	changed bool
}

func (c *classifier) join(v ir.Value, k class) {
	if c.of[v]|k != c.of[v] {
		c.of[v] |= k
		c.changed = true
	}
}

func (c *classifier) args(in *ir.Instr) class {
	var k class
	for _, a := range in.Args {
		k |= c.of[a]
	}
	return k
}

func (c *classifier) region(r *ir.Region) {
	for i := range r.Instrs {
		in := &r.Instrs[i]
		switch in.Op {
		case ir.OpYield, ir.OpBreak, ir.OpUnreachable:
		case ir.OpIf:
			for _, arm := range in.Regions {
				c.region(arm)
			}
			all := c.args(in) | anchored
			for _, arm := range in.Regions {
				if escapesTo(arm, 0) {
					all |= perLane
				}
			}
			if all.varies() {
				all |= ragged
			}
			for j, v := range in.Results {
				k := all
				for _, arm := range in.Regions {
					if t := arm.Terminator(); t.Op == ir.OpYield || t.Op == ir.OpBreak && t.Level() == 0 {
						k |= c.of[t.Args[j]]
					}
				}
				c.join(v, k)
			}
		case ir.OpLoop:
			yield := in.Regions[0].Terminator()
			for j, v := range in.Carried {
				k := c.of[in.Args[j]] | anchored
				if yield.Op == ir.OpYield {
					k |= c.of[yield.Args[j]]
				}
				c.join(v, k)
			}
			c.region(in.Regions[0])
			for _, v := range in.Results {
				c.join(v, perLane|anchored|ragged)
			}
		case ir.OpLoad:
			k := c.args(in) | anchored
			if c.f.Mems[in.Mem].Space == ir.Local {
				k |= perLane
			}
			if k.varies() {
				k |= ragged
			}
			c.join(in.Results[0], k)
		case ir.OpAtomic, ir.OpShuffle, ir.OpVote:
			c.join(in.Results[0], perLane|anchored|ragged)
		default:
			if len(in.Results) == 0 {
				continue
			}
			k := c.args(in)
			if !c.safe(in) || slow(in) {
				k |= anchored
			}
			if k.varies() && !c.linear(in) {
				k |= ragged
			}
			c.join(in.Results[0], k)
		}
	}
}

// linear reports whether the result is affine if the operands are.
func (c *classifier) linear(in *ir.Instr) bool {
	switch in.Op {
	case ir.OpAdd, ir.OpSub, ir.OpNeg:
	case ir.OpMul:
		if c.of[in.Args[0]].varies() && c.of[in.Args[1]].varies() {
			return false
		}
	default:
		return false
	}
	return c.f.Types[in.Results[0]] == ir.I64
}

// safe reports whether the instruction cannot fault.
func (c *classifier) safe(in *ir.Instr) bool {
	if !in.MayFault(c.f) {
		return true
	}
	if in.Op == ir.OpBounds || in.Op == ir.OpSliceBounds {
		return false
	}
	b, ok := c.consts[in.Args[1]]
	switch in.Op {
	case ir.OpDiv, ir.OpRem:
		return ok && b != 0
	case ir.OpShl, ir.OpShr:
		return ok && int64(b) >= 0
	}
	return false
}

// slow reports whether the instruction takes time in proportion to an operand,
// as Go's Bessel functions do: it must not run where control would not get.
func slow(in *ir.Instr) bool {
	return in.Op == ir.OpMath && (in.Fn.String() == "math.Jn" || in.Fn.String() == "math.Yn")
}

// escapesTo reports whether a region nested in r leaves the construct that r,
// at the given depth inside it, belongs to.
func escapesTo(r *ir.Region, depth int) bool {
	for i := range r.Instrs {
		in := &r.Instrs[i]
		for _, s := range in.Regions {
			if t := s.Terminator(); t.Op == ir.OpBreak && t.Level() == depth+1 || escapesTo(s, depth+1) {
				return true
			}
		}
	}
	return false
}
