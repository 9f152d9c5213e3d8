package nvptx

import "gpunotes/gpukit/internal/ir"

// A copier writes a function anew. Passes differ in what they do with an
// instruction instead of copying it.
type copier struct {
	old  *ir.Func
	b    *ir.Builder
	vals []ir.Value // old to new
	nest []level
	def  []*ir.Instr // by old value: the operation that computes it
	// instr deals with an instruction and reports whether it did; after is what
	// follows it in its region.
	instr func(in *ir.Instr, after []ir.Instr) bool
}

// level is an enclosing construct: of the old function, of the new one, or both.
type level struct{ old, new bool }

func newCopier(f *ir.Func) *copier {
	out := ir.NewFunc(f.Name, f.Results...)
	out.Pos, out.Mems, out.Outline = f.Pos, f.Mems, f.Outline
	c := &copier{old: f, b: ir.NewBuilder(out), vals: make([]ir.Value, len(f.Types)), nest: []level{{true, true}}, def: definitions(f)}
	for _, p := range f.Params {
		c.vals[p.Value] = out.AddParamOf(p, f.Types[p.Value])
	}
	return c
}

// definitions lists by value the operations that compute them.
func definitions(f *ir.Func) []*ir.Instr {
	def := make([]*ir.Instr, len(f.Types))
	ir.Walk(f.Body, func(in *ir.Instr) {
		if len(in.Regions) == 0 && len(in.Results) == 1 {
			def[in.Results[0]] = in
		}
	})
	return def
}

// run copies the body and returns the new function.
func (c *copier) run() *ir.Func {
	c.instrs(c.old.Body.Instrs)
	return c.b.F
}

func (c *copier) args(vs []ir.Value) []ir.Value {
	if len(vs) == 0 {
		return nil
	}
	out := make([]ir.Value, len(vs))
	for i, v := range vs {
		out[i] = c.vals[v]
	}
	return out
}

func (c *copier) fresh(vs []ir.Value) []ir.Value {
	if len(vs) == 0 {
		return nil
	}
	out := make([]ir.Value, len(vs))
	for i, v := range vs {
		out[i] = c.b.F.NewValue(c.old.Types[v])
		c.vals[v] = out[i]
	}
	return out
}

// level translates a level of the old function at this place.
func (c *copier) level(old int) int {
	n := 0
	for i := len(c.nest) - 1; ; i-- {
		if c.nest[i].old {
			if old == 0 {
				return n
			}
			old--
		}
		if c.nest[i].new {
			n++
		}
	}
}

// inside fills a new region.
func (c *copier) inside(l level, fill func()) *ir.Region {
	outer, pos := c.b.R, c.b.Pos
	r := &ir.Region{}
	c.b.R = r
	c.nest = append(c.nest, l)
	fill()
	c.nest = c.nest[:len(c.nest)-1]
	c.b.R, c.b.Pos = outer, pos
	return r
}

func (c *copier) instrs(ins []ir.Instr) {
	for i := range ins {
		in := &ins[i]
		c.b.Pos = in.Pos
		if c.instr == nil || !c.instr(in, ins[i+1:]) {
			c.copy(in)
		}
	}
}

func (c *copier) add(in ir.Instr) { c.b.R.Instrs = append(c.b.R.Instrs, in) }

func (c *copier) copy(in *ir.Instr) {
	x := *in
	x.Args = c.args(in.Args)
	if in.Op == ir.OpBreak {
		x.Imm = ir.Bits(c.level(in.Level()))
	}
	x.Carried = c.fresh(in.Carried)
	x.Regions = nil
	for _, r := range in.Regions {
		x.Regions = append(x.Regions, c.inside(level{true, true}, func() { c.instrs(r.Instrs) }))
	}
	x.Results = c.fresh(in.Results)
	c.add(x)
}

// flatten puts the rest of a region behind an if of which one arm leaves, not
// into the other arm: what is nested is a branch around it.
func flatten(f *ir.Func) *ir.Func {
	c := newCopier(f)
	c.instr = func(in *ir.Instr, _ []ir.Instr) bool {
		if in.Op != ir.OpIf {
			return false
		}
		k := exitArm(in)
		if k < 0 || leaves(in.Regions[1-k], 0) || in.Regions[1-k].Terminator().Op != ir.OpYield {
			return false
		}
		x := ir.Instr{Op: ir.OpIf, Args: c.args(in.Args), Pos: in.Pos, Regions: make([]*ir.Region, 2)}
		x.Regions[k] = c.inside(level{true, true}, func() { c.instrs(in.Regions[k].Instrs) })
		x.Regions[1-k] = &ir.Region{Instrs: []ir.Instr{{Op: ir.OpYield, Pos: in.Pos}}}
		c.add(x)
		c.nest = append(c.nest, level{old: true})
		body := in.Regions[1-k].Instrs
		c.instrs(body[:len(body)-1])
		for j, v := range body[len(body)-1].Args {
			c.vals[in.Results[j]] = c.vals[v]
		}
		c.nest = c.nest[:len(c.nest)-1]
		return true
	}
	return c.run()
}

// exitArm is the arm of an if behind whose end control does not go on, or -1.
func exitArm(in *ir.Instr) int {
	for k, r := range in.Regions {
		if r.Terminator().Op != ir.OpYield && !leaves(r, 0) {
			return k
		}
	}
	return -1
}
