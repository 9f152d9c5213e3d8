package nvptx

import (
	"slices"

	"gpunotes/gpukit/internal/ir"
)

// counter is a loop in the manner of for i := first; i < limit; i += step: a
// carried value goes on by a constant and is compared, each time the body begins
// its work, with what does not change.
type counter struct {
	carried int // which of the carried values
	step    int64
	test    int       // which of the body's instructions is the if
	exit    int       // which of its arms leaves
	cmp     *ir.Instr // the comparison
	limit   ir.Value
	op      ir.Op // of i to limit, for the loop to go on
}

var (
	mirrored = map[ir.Op]ir.Op{ir.OpLt: ir.OpGt, ir.OpLe: ir.OpGe, ir.OpGt: ir.OpLt, ir.OpGe: ir.OpLe, ir.OpEq: ir.OpEq, ir.OpNe: ir.OpNe}
	negated  = map[ir.Op]ir.Op{ir.OpLt: ir.OpGe, ir.OpLe: ir.OpGt, ir.OpGt: ir.OpLe, ir.OpGe: ir.OpLt, ir.OpEq: ir.OpNe, ir.OpNe: ir.OpEq}
)

// changing are the values that an iteration of a loop may find or make anew: those
// defined in it, and those that it carries.
func changing(loop *ir.Instr) map[ir.Value]bool {
	in := map[ir.Value]bool{}
	for _, v := range loop.Carried {
		in[v] = true
	}
	ir.Walk(loop.Regions[0], func(x *ir.Instr) {
		for _, v := range x.Results {
			in[v] = true
		}
		for _, v := range x.Carried {
			in[v] = true
		}
	})
	return in
}

// counted finds out how a flattened loop counts.
func counted(f *ir.Func, def []*ir.Instr, loop *ir.Instr) (c counter, ok bool) {
	body := loop.Regions[0]
	last := body.Terminator()
	if last.Op != ir.OpYield {
		return c, false
	}
	inside := changing(loop)
	constant := func(v ir.Value) bool { return def[v] != nil && def[v].Op == ir.OpConst }
	for i := range body.Instrs {
		in := &body.Instrs[i]
		if in.Op != ir.OpIf {
			continue
		}
		c.exit = exitArm(in)
		if c.exit < 0 || !quiet(in.Regions[1-c.exit]) {
			continue
		}
		if t := in.Regions[c.exit].Terminator(); t.Op != ir.OpBreak || t.Level() < 1 {
			continue
		}
		c.test, c.cmp = i, def[in.Args[0]]
		if c.cmp == nil || len(c.cmp.Args) != 2 || negated[c.cmp.Op] == ir.OpInvalid {
			continue
		}
		for side := range 2 {
			v, w := c.cmp.Args[side], c.cmp.Args[1-side]
			t := f.Types[v]
			if !t.IsInt() || inside[w] && !constant(w) {
				continue
			}
			for j, carried := range loop.Carried {
				if carried != v {
					continue
				}
				next := def[last.Args[j]]
				if next == nil || next.Op != ir.OpAdd && next.Op != ir.OpSub {
					continue
				}
				a, b := next.Args[0], next.Args[1]
				if next.Op == ir.OpAdd && constant(a) {
					a, b = b, a
				}
				if a != carried || !constant(b) {
					continue
				}
				c.carried, c.limit, c.step, c.op = j, w, int64(def[b].Imm), c.cmp.Op
				if next.Op == ir.OpSub {
					c.step = -c.step
				}
				if side == 1 {
					c.op = mirrored[c.op]
				}
				if c.exit == 0 {
					c.op = negated[c.op]
				}
				return c, true
			}
		}
	}
	return c, false
}

// ends reports whether the loop is sure to end: the counter comes to the limit
// before it could wrap around.
func (c counter) ends(f *ir.Func, def []*ir.Instr) bool {
	t := f.Types[c.limit]
	if c.op == ir.OpGt || c.op == ir.OpLt {
		if c.step == 1 && c.op == ir.OpLt || c.step == -1 && c.op == ir.OpGt {
			return true
		}
	}
	if d := def[c.limit]; d != nil && d.Op == ir.OpConst && t.IsSigned() {
		n := int64(d.Imm)
		room := int64(1)<<(t.Bits()-2) - 1
		switch {
		case c.step > 0 && c.step < room && (c.op == ir.OpLt || c.op == ir.OpLe):
			return n < room
		case c.step < 0 && c.step > -room && (c.op == ir.OpGt || c.op == ir.OpGe):
			return n > -room
		}
	}
	for _, p := range f.Params {
		if p.Value == c.limit && p.Kind == ir.Shape {
			return c.op == ir.OpLt && c.step > 0 && c.step < 1<<62
		}
	}
	return false
}

// The sizes of loops that are unrolled.
const (
	fullUnroll = 16  // iterations at most
	fullSize   = 160 // instructions of all of them
	// Of loops of any number of iterations: work in one iteration, and how many
	// iterations are written out before the loop and in it.
	smallWork, peeled   = 8, 8
	mediumWork, blocked = 12, 4
	// One iteration is written out where it makes checks that the others need not
	// make again.
	largeWork = 24
)

// unroll writes out loops: those of few iterations, known by number, whole; with
// blocks also small inner ones in blocks of iterations, each with its test.
func unroll(f *ir.Func, blocks bool) *ir.Func {
	c := newCopier(f)
	c.instr = func(in *ir.Instr, _ []ir.Instr) bool {
		if in.Op != ir.OpLoop {
			return false
		}
		k, ok := counted(f, c.def, in)
		if !ok {
			return false
		}
		size, inner := 0, true
		ir.Walk(in.Regions[0], func(x *ir.Instr) {
			inner = inner && x.Op != ir.OpLoop && x.Op != ir.OpCall && x.Op != ir.OpBarrier
			if x.Op != ir.OpConst && x.Op != ir.OpYield {
				size++
			}
		})
		if !inner {
			return false
		}
		if n, ok := k.trips(f, c.def, in); ok && n <= fullUnroll && n*size <= fullSize {
			c.whole(in, k, n)
			return true
		}
		if !blocks {
			return false
		}
		switch work := c.work(in); {
		case work <= mediumWork && c.counts(in, k) && c.regular(in, k):
			n := 0
			if work <= smallWork {
				n = peeled
			}
			c.block(in, k, n, blocked, true)
		case work <= largeWork && c.checksSame(in):
			c.block(in, k, 1, 1, false)
		default:
			return false
		}
		return true
	}
	return c.run()
}

// work is the number of instructions of an iteration, without what counts and
// computes indices, or checks those that stay the same.
func (c *copier) work(loop *ir.Instr) (n int) {
	inside := changing(loop)
	ir.Walk(loop.Regions[0], func(x *ir.Instr) {
		switch {
		case x.Op == ir.OpBounds && !inside[x.Args[0]]:
		case x.Op == ir.OpConst || x.Op == ir.OpYield || x.Op == ir.OpBreak || x.Op == ir.OpIf:
		case len(x.Args) == 2 && c.old.Types[x.Args[0]] == ir.I64 && (x.Op == ir.OpAdd || x.Op == ir.OpSub || x.Op == ir.OpMul || negated[x.Op] != ir.OpInvalid):
		default:
			n++
		}
	})
	return n
}

// checksSame reports whether every iteration makes some check of the same values.
func (c *copier) checksSame(loop *ir.Instr) bool {
	inside := changing(loop)
	return slices.ContainsFunc(loop.Regions[0].Instrs, func(x ir.Instr) bool {
		return (x.Op == ir.OpBounds || x.Op == ir.OpSliceBounds) && !slices.ContainsFunc(x.Args, func(v ir.Value) bool { return inside[v] && (c.def[v] == nil || c.def[v].Op != ir.OpConst) })
	})
}

// counts reports whether a loop goes from a constant up by ones.
func (c *copier) counts(loop *ir.Instr, k counter) bool {
	first := c.def[loop.Args[k.carried]]
	return k.op == ir.OpLt && k.step == 1 && c.old.Types[k.limit] == ir.I64 && first != nil && first.Op == ir.OpConst && int64(first.Imm) >= 0
}

// regular reports whether the indices of successive iterations lie a known number
// of elements apart, so that an address does for several of them.
func (c *copier) regular(loop *ir.Instr, k counter) bool {
	counter := loop.Carried[k.carried]
	memo := map[ir.Value]bool{} // whether it goes with the counter
	ok := true
	var goes func(v ir.Value) bool
	goes = func(v ir.Value) bool {
		if v == counter {
			return true
		}
		if g, known := memo[v]; known {
			return g
		}
		memo[v] = false
		in := c.def[v]
		if in == nil || c.old.Types[v] != ir.I64 {
			return false
		}
		var g bool
		switch in.Op {
		case ir.OpAdd, ir.OpSub:
			a, b := goes(in.Args[0]), goes(in.Args[1])
			g = a || b
		case ir.OpMul:
			for i, a := range in.Args {
				if goes(a) {
					d := c.def[in.Args[1-i]]
					ok = ok && d != nil && d.Op == ir.OpConst
					g = true
				}
			}
		}
		memo[v] = g
		return g
	}
	ir.Walk(loop.Regions[0], func(x *ir.Instr) {
		if x.Op == ir.OpLoad || x.Op == ir.OpStore || x.Op == ir.OpAtomic {
			goes(x.Args[0])
		}
	})
	return ok
}

// trips is the number of iterations, if it is known and small.
func (c counter) trips(f *ir.Func, def []*ir.Instr, loop *ir.Instr) (int, bool) {
	first, limit := def[loop.Args[c.carried]], def[c.limit]
	if first == nil || limit == nil || first.Op != ir.OpConst || limit.Op != ir.OpConst {
		return 0, false
	}
	t := f.Types[c.limit]
	x := first.Imm
	for n := range fullUnroll + 1 {
		if b, _ := c.op.Row().Eval([]ir.Type{t, t}, []ir.Bits{x, limit.Imm}); b == 0 {
			return n, true
		}
		x = ir.Wrap(t, x+ir.Bits(c.step))
	}
	return 0, false
}

// iteration copies the body once, up to its yield; test says what becomes of the
// if that counts. It returns the next carried values.
func (c *copier) iteration(loop *ir.Instr, k counter, carried []ir.Value, test func(in *ir.Instr)) []ir.Value {
	for j, v := range carried {
		c.vals[loop.Carried[j]] = v
	}
	ins := loop.Regions[0].Instrs
	c.instrs(ins[:k.test])
	test(&ins[k.test])
	c.instrs(ins[k.test+1 : len(ins)-1])
	return c.args(ins[len(ins)-1].Args)
}

// whole writes n iterations and the way out.
func (c *copier) whole(loop *ir.Instr, k counter, n int) {
	yes := c.b.Const(ir.Bool, 1)
	x := ir.Instr{Op: ir.OpIf, Args: []ir.Value{yes}, Pos: loop.Pos, Regions: []*ir.Region{nil, {Instrs: []ir.Instr{{Op: ir.OpUnreachable}}}}}
	x.Regions[0] = c.inside(level{true, true}, func() {
		carried := c.args(loop.Args)
		for range n {
			carried = c.iteration(loop, k, carried, func(*ir.Instr) {})
		}
		for j, v := range carried {
			c.vals[loop.Carried[j]] = v
		}
		ins := loop.Regions[0].Instrs
		c.instrs(ins[:k.test])
		c.nest = append(c.nest, level{old: true})
		arm := ins[k.test].Regions[k.exit].Instrs
		c.instrs(arm[:len(arm)-1])
		c.nest = c.nest[:len(c.nest)-1]
		if t := &arm[len(arm)-1]; t.Level() == 1 {
			c.b.Yield(c.args(t.Args)...)
		} else {
			c.nest = append(c.nest, level{old: true})
			c.copy(t)
			c.nest = c.nest[:len(c.nest)-1]
		}
	})
	x.Results = c.fresh(loop.Results)
	c.add(x)
}

// block writes the first peel iterations out and then a loop of n in one. If the
// loop counts, what is tested is how many are left, against constants.
func (c *copier) block(loop *ir.Instr, k counter, peel, n int, counts bool) {
	args := c.args(loop.Args)
	var left ir.Value
	if counts {
		if left = c.vals[k.limit]; c.def[k.limit] != nil && c.def[k.limit].Op == ir.OpConst {
			left = c.b.Const(ir.I64, c.def[k.limit].Imm) // it may stand in the body
		}
		if first := c.def[loop.Args[k.carried]].Imm; first != 0 {
			// No less than the first, so that nothing wraps around.
			from := c.b.Const(ir.I64, first)
			left = c.b.Op(ir.OpSub, c.b.Op(ir.OpMax, left, from), from)
		}
	}
	// test leaves as the old one does unless more iterations follow.
	test := func(more func() ir.Value) func(in *ir.Instr) {
		if !counts {
			return c.copy
		}
		return func(in *ir.Instr) {
			y := ir.Instr{Op: ir.OpIf, Args: []ir.Value{more()}, Pos: in.Pos, Regions: make([]*ir.Region, 2)}
			y.Regions[0] = &ir.Region{Instrs: []ir.Instr{{Op: ir.OpYield, Pos: in.Pos}}}
			y.Regions[1] = c.inside(level{true, true}, func() { c.instrs(in.Regions[k.exit].Instrs) })
			c.add(y)
		}
	}
	number := func(i int) ir.Value { return c.b.Const(ir.I64, ir.Bits(i)) }
	rest := func(args []ir.Value, left ir.Value) {
		x := ir.Instr{Op: ir.OpLoop, Args: slices.Clip(args), Carried: c.fresh(loop.Carried), Pos: loop.Pos}
		if counts {
			x.Args = append(x.Args, left)
			left = c.b.F.NewValue(ir.I64)
			x.Carried = append(x.Carried, left)
		}
		x.Regions = []*ir.Region{c.inside(level{true, true}, func() {
			carried := x.Carried[:len(args)]
			for i := range n {
				carried = c.iteration(loop, k, carried, test(func() ir.Value { return c.b.Op(ir.OpGt, left, number(i)) }))
			}
			if carried = slices.Clip(carried); counts {
				carried = append(carried, c.b.Op(ir.OpSub, left, number(n)))
			}
			c.b.Yield(carried...)
		})}
		x.Results = c.fresh(loop.Results)
		c.add(x)
	}
	if peel == 0 {
		rest(args, left)
		return
	}
	var more []ir.Value // computed here, where loops around can do without
	for i := 0; i < peel && counts; i++ {
		more = append(more, c.b.Op(ir.OpGt, left, number(i)))
	}
	yes := c.b.Const(ir.Bool, 1)
	x := ir.Instr{Op: ir.OpIf, Args: []ir.Value{yes}, Pos: loop.Pos, Regions: []*ir.Region{nil, {Instrs: []ir.Instr{{Op: ir.OpUnreachable}}}}}
	x.Regions[0] = c.inside(level{true, true}, func() {
		for i := range peel {
			args = c.iteration(loop, k, args, test(func() ir.Value { return more[i] }))
		}
		after := left
		if counts {
			after = c.b.Op(ir.OpSub, left, number(peel))
		}
		c.nest[len(c.nest)-1].old = false
		rest(args, after)
		c.nest[len(c.nest)-1].old = true
		c.b.Yield(c.args(loop.Results)...)
	})
	x.Results = c.fresh(loop.Results)
	c.add(x)
}
