package amd64

import (
	"slices"

	"gpunotes/gpukit/internal/ir"
)

// construct is an if, a loop or the function: what a break can leave.
type construct struct {
	in      *ir.Instr // nil is the function
	results []value
	types   []ir.Type
	written bool // some exit wrote results already, and comes first in the list
	depth   int  // loops around it
}

// region is a region that is being lowered. mask has the lanes that are in it and
// have not left it; whoever breaks out of it takes his lanes away, so that what
// follows an inner construct runs for those that stayed. A region that all lanes of
// the region around it enter and leave together has the mask of that region; if
// not, mask is its own.
type region struct {
	of   *construct
	mask []vreg
	own  bool
	end  label // where to go when mask is empty
	// of a loop's body
	head    label
	carried []ir.Value
	first   int // instruction
}

// reserve makes the registers for a value that is written more than once. exact is
// the shape of the value.
func (l *lowerer) reserve(t ir.Type, shape laneShape) value {
	v := value{defined: true, shape: shape}
	switch {
	case shape == shapeVarying:
		v.parts = l.newParts(t)
	case t.IsFloat():
		v.parts = []vreg{l.vector()}
	default:
		v.gpr = l.newGPR()
	}
	return v
}

// registers of a value.
func (v *value) registers() []vreg {
	if v.gpr != 0 {
		return []vreg{v.gpr}
	}
	return v.parts
}

// sources are the registers of x as a value of a shape has them.
func (l *lowerer) sources(x ir.Value, shape laneShape) []vreg {
	t := l.f.Types[x]
	switch {
	case shape == shapeVarying && t == ir.Bool:
		return l.masks(x)
	case shape == shapeVarying:
		return l.vecs(x)
	case t.IsFloat():
		return l.vecs(x)[:1]
	}
	return []vreg{l.gpr(x)}
}

// assign is dst = x.
func (l *lowerer) assign(dst *value, x ir.Value) {
	if v := &l.vals[x]; dst.gpr != 0 && v.known {
		l.loadInt(dst.gpr, v.bits)
		return
	}
	to := dst.registers()
	for i, s := range l.sources(x, dst.shape) {
		l.copy(to[i], s)
	}
}

// choose is dst = x for the lanes in m.
func (l *lowerer) choose(dst *value, t ir.Type, m []vreg, x ir.Value) {
	switch {
	case dst.shape != shapeVarying:
		l.assign(dst, x)
	case t == ir.Bool:
		for p, s := range l.masks(x) {
			l.t.blendMask(l, dst.parts[p], m[p], s, dst.parts[p])
		}
	default:
		m = l.maskFor(m, t)
		for p, s := range l.srcs(x) {
			l.blend(t, dst.parts[p], m[p], s, dst.parts[p])
		}
	}
}

// undefine says that registers begin here.
func (l *lowerer) undefine(vs []vreg) {
	for _, v := range vs {
		l.add(inst{special: undefined, reg: v})
	}
}

// exit hands values to the results of c for the lanes in m, or without m for all.
func (l *lowerer) exit(c *construct, m []vreg, vals []ir.Value) {
	plain := m == nil || !c.written && (c.in == nil || c.in.Op != ir.OpLoop) && c.depth == l.depth()
	for i, x := range vals {
		if plain {
			l.assign(&c.results[i], x)
		} else {
			l.choose(&c.results[i], c.types[i], m, x)
		}
	}
	c.written = true
}

func (l *lowerer) depth() int {
	n := 0
	for _, r := range l.stack {
		if r.head != 0 {
			n++
		}
	}
	return n
}

// instructions lowers a region, or a part of it, in the top of the stack.
func (l *lowerer) instructions(ins []ir.Instr) {
	for i := range ins {
		in := &ins[i]
		if l.err != nil {
			return
		}
		l.at(in.Pos)
		switch in.Op {
		case ir.OpYield:
			if r := l.top(); r.head != 0 {
				l.backEdge(r, in.Args)
			} else {
				l.exit(r.of, l.exitMask(r), in.Args)
			}
		case ir.OpBreak:
			l.leave(in)
		case ir.OpUnreachable:
		case ir.OpIf:
			l.ifElse(in)
		case ir.OpLoop:
			l.loop(in)
		case ir.OpConst:
			v := l.set(in.Results[0])
			v.bits, v.known = in.Imm, true
		default:
			if i+1 < len(ins) && l.postponed(in, &ins[i+1]) {
				l.compared = in
				continue
			}
			l.compute(in)
		}
	}
}

// at says what position the next instructions are of.
func (l *lowerer) at(p ir.Pos) {
	if p != l.positions[l.pos] && p.Line != 0 {
		l.positions = append(l.positions, p)
		l.pos = int32(len(l.positions) - 1)
	}
}

// exitMask is the mask for the end of a region: nil if all lanes of the region
// around are there.
func (l *lowerer) exitMask(r *region) []vreg {
	if r.own {
		return r.mask
	}
	return nil
}

// owner is the innermost region of the stack that has the mask of the top.
func (l *lowerer) owner() *region {
	i := len(l.stack) - 1
	for !l.stack[i].own {
		i--
	}
	return l.stack[i]
}

// leave lowers a break: results, then the lanes leave every region up to the one
// whose construct they leave.
func (l *lowerer) leave(in *ir.Instr) {
	n := len(l.stack) - 1
	first := n - in.Level()
	to := l.stack[first]
	together := true
	for i := first + 1; i <= n; i++ {
		together = together && !l.stack[i].own
	}
	m := l.top().mask
	if !to.own { // it has a mask of its own if parts leave it
		l.exit(to.of, nil, in.Args)
		to.of.written = false
		l.jump(always, to.end)
		l.dead = true
		return
	}
	l.exit(to.of, m, in.Args)
	if together { // nobody is left in that region
		l.jump(always, to.end)
		l.dead = true
		return
	}
	var last *region
	for i := n; i >= first; i-- {
		switch r := l.stack[i]; {
		case !r.own:
		case r.mask[0] == m[0]:
			last = r
		default:
			for p := range m {
				l.t.maskAndNot(l, r.mask[p], r.mask[p], m[p])
			}
		}
	}
	if last != nil && in.Level() > 0 && !l.top().own { // nobody looks at a mask behind its region
		for p := range m {
			l.t.maskAndNot(l, m[p], m[p], m[p])
		}
	}
	if !l.top().own { // and what is behind the inner constructs looks no more
		l.jump(always, l.owner().end)
		l.dead = true
	}
}

func onlyYields(r *ir.Region) bool { return len(r.Instrs) == 1 && r.Instrs[0].Op == ir.OpYield }

func isUnreachable(r *ir.Region) bool { return r.Instrs[0].Op == ir.OpUnreachable }

// weight is roughly the number of machine instructions of a region, and whether
// there are loops in it.
func weight(r *ir.Region) (n int, loops bool) {
	ir.Walk(r, func(in *ir.Instr) {
		n++
		switch in.Op {
		case ir.OpConst:
			n--
		case ir.OpLoop:
			loops = true
		case ir.OpBreak:
			n += 8
		case ir.OpYield:
			n += len(in.Args) - 1
		case ir.OpDiv, ir.OpMath, ir.OpConvert:
			n += 3
		case ir.OpLoad, ir.OpStore, ir.OpClear, ir.OpBounds, ir.OpSliceBounds, ir.OpAtomic, ir.OpPrint, ir.OpCall:
			// Some must not run when no lane is there.
			n += worthSkipping
		}
	})
	return n, loops
}

// worthSkipping is the weight from which an arm without lanes is jumped over.
const worthSkipping = 8

// simple reports whether a region computes and yields, and may do so for any lanes.
func (l *lowerer) simple(r *ir.Region) bool {
	for i := range r.Instrs {
		if in := &r.Instrs[i]; in.Op != ir.OpYield && (!in.Pure(l.f) || !l.lowered(in)) {
			return false
		}
	}
	return true
}

// lowered reports whether compute has a way to lower an instruction without a
// callout, as far as a table can tell.
func (l *lowerer) lowered(in *ir.Instr) bool { return in.Op == ir.OpConst || opTable[in.Op] != nil }

func (l *lowerer) results(in *ir.Instr) *construct {
	c := &construct{in: in, depth: l.depth()}
	for _, x := range in.Results {
		t := l.f.Types[x]
		v := l.reserve(t, l.an.shape(x))
		if r := l.into[x]; r != nil && v.gpr != 0 {
			v.gpr = r[0]
		} else if r != nil {
			v.parts = r
		}
		l.vals[x] = v
		c.results = append(c.results, v)
		c.types = append(c.types, t)
	}
	return c
}

// resultsDone lets the results of c be spread behind it.
func (l *lowerer) resultsDone(in *ir.Instr) {
	for _, x := range in.Results {
		if v := &l.vals[x]; v.gpr != 0 {
			v.behind = l.insert()
		}
	}
}

// begin opens the results of a construct. Those that are not first written at the
// loop depth of the construct itself must live around the loops inside.
func (l *lowerer) begin(c *construct) {
	for i := range c.results {
		l.undefine(c.results[i].registers())
	}
}

func (l *lowerer) ifElse(in *ir.Instr) {
	c := l.results(in)
	if l.an.varyingIf(in) {
		l.varyingIf(in, c)
	} else {
		l.uniformIf(in, c)
	}
	l.resultsDone(in)
}

// findParted finds the constructs that only a part of the lanes in them may leave by a
// break to it, so that others go on inside: those need a mask of their own. nil is
// the function.
func (l *lowerer) findParted() {
	l.parted, l.crossed, l.uses, l.prepared = map[*ir.Instr]bool{}, map[*ir.Instr]bool{}, make([]int32, len(l.f.Types)), l.f
	ir.Walk(l.f.Body, func(in *ir.Instr) {
		for _, x := range in.Args {
			l.uses[x]++
		}
	})
	var nest []*ir.Instr
	changed := true
	var walk func(r *ir.Region)
	walk = func(r *ir.Region) {
		for i := range r.Instrs {
			in := &r.Instrs[i]
			if in.Op == ir.OpBreak {
				n := len(nest) - 1
				to := nest[n-in.Level()]
				for _, x := range nest[n-in.Level()+1:] {
					l.crossed[x] = true
					if (l.parted[x] || x.Op == ir.OpIf && l.an.varyingIf(x)) && !l.parted[to] {
						l.parted[to], changed = true, true
					}
				}
			}
			for _, s := range in.Regions {
				nest = append(nest, in)
				walk(s)
				nest = nest[:len(nest)-1]
			}
		}
	}
	for changed {
		changed = false
		nest = append(nest[:0], nil)
		walk(l.f.Body)
	}
}

func (l *lowerer) isParted(in *ir.Instr) bool {
	if l.prepared != l.f {
		l.findParted()
	}
	return l.parted[in]
}

// usesOf counts the uses of a value of the function that is being lowered, which may be
// a subroutine.
func (l *lowerer) usesOf(x ir.Value) int32 {
	l.isParted(nil)
	return l.uses[x]
}

// postponed reports whether an instruction is a comparison that the branch behind it
// does itself.
func (l *lowerer) postponed(in, next *ir.Instr) bool {
	if next.Op != ir.OpIf || in.Op < ir.OpEq || in.Op > ir.OpGe || next.Args[0] != in.Results[0] || l.an.varyingIf(next) {
		return false
	}
	return l.usesOf(in.Results[0]) == 1 && !l.f.Types[in.Args[0]].IsFloat() && l.an.shape(in.Results[0]) == shapeUniform &&
		l.uniform(in.Args[0]) && l.uniform(in.Args[1]) && l.f.Types[in.Args[0]] != ir.Bool
}

// partsLeave reports whether a construct directly in r takes some of its lanes away.
func (l *lowerer) partsLeave(r *ir.Region) bool {
	for i := range r.Instrs {
		if in := &r.Instrs[i]; (in.Op == ir.OpIf || in.Op == ir.OpLoop) && l.an.partsLeave(in) {
			return true
		}
	}
	return false
}

func (l *lowerer) uniformIf(in *ir.Instr, c *construct) {
	then, els := in.Regions[0], in.Regions[1]
	end := l.a.newLabel()
	x := in.Args[0]
	if b, ok := l.known(x); ok {
		r := els
		if b != 0 {
			r = then
		}
		l.uniformArm(c, r, end)
		l.place(end)
		if l.isParted(in) {
			l.lookAround(in)
		}
		return
	}
	cond := l.condition(x)
	leaving := func(r *ir.Region) func() {
		return func() {
			left := l.a.newLabel()
			l.uniformArm(c, r, left)
			dead := l.dead
			l.place(left)
			if !dead || l.partsLeave(r) {
				l.lookAround(in)
			}
			l.jump(always, end)
		}
	}
	switch {
	case ends(then) && !ends(els):
		l.outOfLine(cond, leaving(then))
		l.uniformArm(c, els, end)
	case ends(els) && !ends(then):
		l.outOfLine(cond.not(), leaving(els))
		l.uniformArm(c, then, end)
	default:
		other := l.a.newLabel()
		l.jump(cond.not(), other)
		l.uniformArm(c, then, end)
		l.jump(always, end)
		l.place(other)
		l.uniformArm(c, els, end)
	}
	l.place(end)
	if l.isParted(in) {
		l.lookAround(in)
	}
}

// lookAround goes to the end of the region if a construct in it may have taken all
// lanes away.
func (l *lowerer) lookAround(in *ir.Instr) {
	if l.an.partsLeave(in) || l.isParted(in) && l.crossed[in] {
		o := l.owner()
		l.jumpIfEmpty(o.mask, o.end)
	}
}

// ends reports whether control does not go on behind a region's construct.
func ends(r *ir.Region) bool { return r.Terminator().Op == ir.OpBreak }

// outOfLine jumps to cold code if c. The code does not come back.
func (l *lowerer) outOfLine(c condition, f func()) {
	at := l.a.newLabel()
	l.jump(c, at)
	l.cold(func() {
		l.place(at)
		l.coldDepth++
		f()
		l.coldDepth--
	})
}

// condition sets the flags for a uniform bool.
func (l *lowerer) condition(x ir.Value) condition {
	if in := l.compared; in != nil && in.Results[0] == x {
		l.compared = nil
		if c, ok := l.compareFlags(in); ok {
			return c
		}
	}
	r := l.gpr(x)
	l.add(inst{row: testReg, reg: r, rm: fromReg(r)})
	return ifNotEqual
}

// uniformArm lowers an arm that all active lanes take. Its code may go on to end.
func (l *lowerer) uniformArm(c *construct, r *ir.Region, end label) {
	if isUnreachable(r) {
		return
	}
	c.written = false
	reg := &region{of: c, mask: l.top().mask, end: end}
	if l.isParted(c.in) {
		reg.own, reg.mask = true, l.newMasks(len(reg.mask))
		for p, m := range l.top().mask {
			l.copy(reg.mask[p], m)
		}
		l.begin(c)
	}
	l.stack = append(l.stack, reg)
	l.instructions(r.Instrs)
	l.stack = l.stack[:len(l.stack)-1]
}

func (l *lowerer) varyingIf(in *ir.Instr, c *construct) {
	cond, outer := l.masks(in.Args[0]), l.top()
	then, els := in.Regions[0], in.Regions[1]
	w0, loops0 := weight(then)
	w1, loops1 := weight(els)
	if loops0 || loops1 || ends(then) || ends(els) {
		l.begin(c)
	}
	if l.simple(then) && l.simple(els) && w0 < worthSkipping && w1 < worthSkipping {
		// Both arms for all lanes.
		vals := [2][]ir.Value{}
		for i, r := range []*ir.Region{then, els} {
			l.instructions(r.Instrs[:len(r.Instrs)-1])
			vals[i] = r.Terminator().Args
		}
		for i := range c.results {
			d := &c.results[i]
			if d.shape != shapeVarying {
				l.assign(d, vals[0][i])
				continue
			}
			l.select3(c.types[i], d.parts, cond, vals[0][i], vals[1][i])
		}
		return
	}
	// An arm that only yields is computed first, for all lanes.
	switch {
	case onlyYields(els):
		l.exit(c, outer.mask, els.Instrs[0].Args)
		els = nil
	case onlyYields(then):
		l.exit(c, outer.mask, then.Instrs[0].Args)
		then = nil
	}
	if then != nil && onlyYields(then) {
		l.exit(c, cond, then.Instrs[0].Args)
		then = nil
	}
	if then != nil && !isUnreachable(then) {
		m := cond
		l.compareAgain = nil
		if els != nil && !isUnreachable(els) || !l.underMask(in.Args[0], cond, outer.mask) {
			m = l.newMasks(len(cond))
			for p := range m {
				l.t.maskAnd(l, m[p], cond[p], outer.mask[p])
			}
		}
		l.arm(c, then, m)
	}
	if els != nil && !isUnreachable(els) {
		m := l.newMasks(len(cond))
		for p := range m {
			l.t.maskAndNot(l, m[p], outer.mask[p], cond[p])
		}
		l.arm(c, els, m)
	}
	if !l.cutOff(in) {
		l.lookAround(in)
	}
}

// underMask lets a comparison just before, whose result is only for this if, be done
// under a mask, and reports whether it could.
func (l *lowerer) underMask(x ir.Value, cond, m []vreg) bool {
	n := len(l.insts)
	if l.isa != AVX512 || l.usesOf(x) != 1 || n < len(cond) {
		return false
	}
	last := l.insts[n-len(cond):]
	for p := range cond {
		if in := &last[p]; in.special != ordinary || in.row.reg != mask || in.row.rm != vec || in.row.noMask || in.row.vw != no || in.reg != cond[p] || in.k != 0 {
			return false
		}
	}
	for p := range cond {
		last[p].k = m[p]
	}
	l.compareAgain = last
	return true
}

// testAgain looks for lanes in m, the last thing that was computed, by comparisons; it
// computes the masks one by one, and returns the comparisons, which make m. So m takes no registers
// as long as there are no lanes in it.
func (l *lowerer) testAgain(m []vreg) []inst {
	n := len(l.insts) - len(m)
	if len(l.compareAgain) != len(m) || len(m) < 2 || n < 0 || &l.compareAgain[0] != &l.insts[n] {
		l.test(m)
		return nil
	}
	comparisons := slices.Clone(l.compareAgain)
	l.insts = l.insts[:n]
	var any func(ins []inst) vreg
	any = func(ins []inst) vreg {
		k := l.newMask()
		if len(ins) == 1 {
			in := ins[0]
			in.reg = k
			l.insts = append(l.insts, in)
			return k
		}
		a := any(ins[:len(ins)/2])
		b := any(ins[len(ins)/2:])
		l.t.maskOr(l, k, a, b)
		return k
	}
	a := any(comparisons[:len(m)/2])
	b := any(comparisons[len(m)/2:])
	row := kortestb
	if l.maskLanes == 16 {
		row = kortestw
	}
	l.op2(row, a, fromReg(b))
	return comparisons
}

// cutOff reports whether the arms of an if from which lanes leave look themselves
// whether any are left.
func (l *lowerer) cutOff(in *ir.Instr) bool {
	for _, r := range in.Regions {
		if !(ends(r) && r.Terminator().Level() > 0) && l.partsLeave(r) {
			return false
		}
	}
	return true
}

// select3 is dst = x where m, else y.
func (l *lowerer) select3(t ir.Type, dst []vreg, m []vreg, x, y ir.Value) {
	if t == ir.Bool {
		xs, ys := l.masks(x), l.masks(y)
		for p := range dst {
			l.t.blendMask(l, dst[p], m[p], xs[p], ys[p])
		}
		return
	}
	m = l.maskFor(m, t)
	xs, ys := l.srcs(x), l.vecs(y)
	for p := range dst {
		l.blend(t, dst[p], m[p], xs[p], ys[p])
	}
}

// arm lowers an arm for the lanes of m. One that only leaves is out of line.
func (l *lowerer) arm(c *construct, r *ir.Region, m []vreg) {
	lower := func(end label) {
		l.stack = append(l.stack, &region{of: c, mask: m, own: true, end: end})
		l.instructions(r.Instrs)
		l.stack = l.stack[:len(l.stack)-1]
	}
	end := l.a.newLabel()
	if ends(r) && r.Terminator().Level() > 0 {
		comparisons := l.testAgain(m)
		l.outOfLine(ifNotEqual, func() {
			l.insts = append(l.insts, comparisons...)
			left := l.a.newLabel()
			lower(left)
			l.place(left)
			o := l.owner()
			l.jumpIfEmpty(o.mask, o.end)
			l.jump(always, end)
		})
		l.place(end)
		return
	}
	if rare(r) {
		l.test(m)
		l.outOfLine(ifNotEqual, func() {
			lower(end)
			l.jump(always, end)
		})
		l.place(end)
		return
	}
	if n, loops := weight(r); loops || n >= worthSkipping {
		l.jumpIfEmpty(m, end)
	}
	lower(end)
	l.place(end)
}

// rare reports whether a region calls: functions that are not put in their callers
// are for what hardly happens.
func rare(r *ir.Region) bool {
	for i := range r.Instrs {
		if r.Instrs[i].Op == ir.OpCall {
			return true
		}
	}
	return false
}

func (l *lowerer) loop(in *ir.Instr) {
	c := l.results(in)
	divergent := l.isParted(in)
	r := &region{of: c, mask: l.top().mask, own: divergent, head: l.a.newLabel(), end: l.a.newLabel(), carried: in.Carried}
	for i, x := range in.Carried {
		l.vals[x] = l.reserve(l.f.Types[x], l.an.shape(x))
		l.assign(&l.vals[x], in.Args[i])
	}
	if divergent {
		l.begin(c)
		r.mask = l.newMasks(len(r.mask))
		for p, m := range l.top().mask {
			l.copy(r.mask[p], m)
		}
	}
	l.shareCarried(in)
	l.add(inst{special: loopBegin})
	l.place(r.head)
	for _, x := range in.Carried {
		if v := &l.vals[x]; v.gpr != 0 {
			v.behind = l.insert()
		}
	}
	r.first = len(l.insts)
	l.stack = append(l.stack, r)
	l.instructions(in.Regions[0].Instrs)
	l.stack = l.stack[:len(l.stack)-1]
	l.add(inst{special: loopEnd})
	l.place(r.end)
	if divergent {
		l.lookAround(in)
	}
	l.resultsDone(in)
}

// shareCarried lets the next value of a carried one be computed in its registers
// where the carried value is not read any more from there on.
func (l *lowerer) shareCarried(in *ir.Instr) {
	end := in.Regions[0].Terminator()
	if end.Op != ir.OpYield {
		return
	}
	for i, x := range end.Args {
		l.share(in.Carried[i], x, in.Regions[0])
	}
}

// share lets x, if r defines it, be computed in the registers of c, and reports whether
// it may: nobody reads c behind.
func (l *lowerer) share(c, x ir.Value, r *ir.Region) bool {
	if l.into[x] != nil || l.an.shape(x) != l.an.shape(c) {
		return false
	}
	for i := len(r.Instrs) - 1; i >= 0; i-- {
		in := &r.Instrs[i]
		j := slices.Index(in.Results, x)
		if j < 0 {
			if reads(r.Instrs[i:i+1], c) {
				return false
			}
			continue
		}
		switch in.Op {
		case ir.OpLoop, ir.OpConst, ir.OpLoad, ir.OpCall, ir.OpAtomic:
			return false
		case ir.OpIf: // one arm alone gives it
			from, other := in.Regions[0], in.Regions[1]
			if from.Terminator().Op != ir.OpYield {
				from, other = other, from
			}
			if from.Terminator().Op != ir.OpYield || other.Terminator().Op == ir.OpYield ||
				l.an.varyingIf(in) && reads(other.Instrs, c) || !l.share(c, from.Terminator().Args[j], from) {
				return false
			}
		default:
			if len(in.Results) != 1 {
				return false
			}
		}
		l.into[x] = l.vals[c].registers()
		return true
	}
	return false
}

// reads reports whether instructions read a value.
func reads(ins []ir.Instr, x ir.Value) (yes bool) {
	ir.Walk(&ir.Region{Instrs: ins}, func(in *ir.Instr) { yes = yes || slices.Contains(in.Args, x) })
	return yes
}

// backEdge hands the carried values on and begins the next iteration. Some lane is
// in it.
func (l *lowerer) backEdge(r *region, next []ir.Value) {
	l.parallel(r.carried, next)
	l.poll(r.head, len(l.insts)-r.first)
}

// poll goes on at head if the budget is not used up, else there after a pause.
func (l *lowerer) poll(head label, instructions int) {
	l.fixed(func(a *assembler) {
		a.op(subImm4, operands{rm: register(budget), imm: int32(max(1, instructions))})
	})
	l.jump(ifGreater, head)
	l.add(inst{special: exitCode, imm: int32(ExitPaused), label: head})
}

// parallel is carried[i] = next[i] for all i at once.
func (l *lowerer) parallel(carried, next []ir.Value) {
	type move struct{ dst, src vreg }
	var moves []move
	var later []int
	for i, x := range next {
		d := &l.vals[carried[i]]
		if l.vals[x].known && d.gpr != 0 {
			later = append(later, i)
			continue
		}
		to := d.registers()
		for p, s := range l.sources(x, d.shape) {
			if s != to[p] {
				moves = append(moves, move{to[p], s})
			}
		}
	}
	for len(moves) > 0 {
		done := false
		for i, m := range moves {
			read := slices.ContainsFunc(moves, func(o move) bool { return o != m && o.src == m.dst })
			if !read {
				l.copy(m.dst, m.src)
				moves = slices.Delete(moves, i, i+1)
				done = true
				break
			}
		}
		if !done { // every destination is still read: a cycle
			d := moves[0].dst
			t := l.new(l.kinds[d])
			l.copy(t, d)
			for i := range moves {
				if moves[i].src == d {
					moves[i].src = t
				}
			}
		}
	}
	for _, i := range later {
		l.assign(&l.vals[carried[i]], next[i])
	}
}
