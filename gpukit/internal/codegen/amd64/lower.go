package amd64

import (
	"encoding/binary"
	"fmt"
	"math"

	"gpunotes/gpukit/internal/ir"
)

// vreg is a virtual register; 0 is none. It may be written more than once, and
// it has one place, a register or a spill slot, from its first occurrence in
// the list of instructions to its last.
type vreg int32

// source is the operand of an instruction that may be in memory.
type source struct {
	v     vreg
	isMem bool
	mem   memory
	gpr   uint8 // if the row wants a general register
}

// inst is a machine instruction on virtual registers, or something that the
// emitter knows: a place, a jump, a fused multiply-add, fixed code.
type inst struct {
	row          *row
	reg, v, c, k vreg
	gpr          uint8 // in the place of reg
	rm           source
	zero         bool
	imm          int32

	special special
	label   label
	cond    condition
	fixed   func(a *assembler)
}

type special uint8

const (
	ordinary  special = iota
	undefined         // reg begins here, with any value
	place             // label
	jump              // to label if cond
	fused             // reg = v*rm + c
	fixed             // instructions on general registers alone
)

// value is what an IR value is: a register or a constant.
type value struct {
	v     vreg
	bits  ir.Bits
	known bool
}

// construct is an if, a loop or the function: what a break can leave.
type construct struct {
	loop    bool
	results []vreg
	types   []ir.Type
	written bool // some exit wrote results already, and comes first in the list
	depth   int  // loops around it
}

// region is a region that is being lowered. mask has the lanes that are in it
// and have not left it; whoever breaks out of it takes his lanes away, so that
// what follows an inner construct runs for those that stayed.
type region struct {
	of   *construct
	mask vreg
	end  label // where to go when mask is empty
	// of a loop's body
	head    label
	carried []vreg
}

type lowerer struct {
	f       *ir.Func
	t       target
	o       Options
	a       *assembler
	insts   []inst
	kinds   []kind // by vreg: vec or mask
	vals    []value
	into    []vreg // by ir.Value: the register that it must be computed in
	stack   []*region
	loops   [][2]int // first and last instruction, inner loops first
	pauses  []pauseStub
	depth   int
	err     *Unsupported
	restore label // code that continues after a pause
	save    label // code that pauses
	fault   label // code that gives up because a worker fails
}

// pauseStub leaves the code when the budget is used up.
type pauseStub struct{ at, resume label }

func newLowerer(f *ir.Func, t Target, o Options) *lowerer {
	l := &lowerer{f: f, o: o, kinds: []kind{none}, vals: make([]value, len(f.Types)), into: make([]vreg, len(f.Types))}
	switch t {
	case AVX512:
		l.t, l.a = avx512{}, newAssembler(l512, true)
	default:
		l.t, l.a = avx2{}, newAssembler(l256, false)
	}
	return l
}

func (l *lowerer) refuse(pos ir.Pos, format string, args ...any) {
	if l.err == nil {
		l.err = &Unsupported{Func: l.f.Name, Pos: pos, Reason: fmt.Sprintf(format, args...)}
	}
}

func (l *lowerer) new(k kind) vreg {
	l.kinds = append(l.kinds, k)
	return vreg(len(l.kinds) - 1)
}

func (l *lowerer) vector() vreg  { return l.new(vec) }
func (l *lowerer) newMask() vreg { return l.new(l.t.maskKind()) }

// newFor makes a register for a value of type t.
func (l *lowerer) newFor(t ir.Type) vreg {
	if t == ir.Bool {
		return l.newMask()
	}
	return l.vector()
}

func (l *lowerer) add(i inst) { l.insts = append(l.insts, i) }

func (l *lowerer) fixed(f func(a *assembler)) { l.add(inst{special: fixed, fixed: f}) }

func (l *lowerer) place(at label) { l.add(inst{special: place, label: at}) }

func (l *lowerer) jump(c condition, to label) { l.add(inst{special: jump, cond: c, label: to}) }

// jumpIfEmpty and jumpIfAny look for lanes in a mask.
func (l *lowerer) jumpIfEmpty(m vreg, to label) {
	l.t.test(l, m)
	l.jump(ifEqual, to)
}

func (l *lowerer) jumpIfAny(m vreg, to label) {
	l.t.test(l, m)
	l.jump(ifNotEqual, to)
}

// faultIf gives up if a lane of m is in the current region.
func (l *lowerer) faultIf(m vreg) {
	here := l.newMask()
	l.t.maskAnd(l, here, m, l.top().mask)
	l.jumpIfAny(here, l.fault)
}

func fromReg(v vreg) source { return source{v: v} }

func fromMem(m memory) source { return source{isMem: true, mem: m} }

// op3 is reg = row(v, rm), op2 is reg = row(rm).
func (l *lowerer) op3(r *row, dst, v vreg, rm source) { l.add(inst{row: r, reg: dst, v: v, rm: rm}) }
func (l *lowerer) op3i(r *row, dst, v vreg, rm source, imm int32) {
	l.add(inst{row: r, reg: dst, v: v, rm: rm, imm: imm})
}
func (l *lowerer) op2(r *row, dst vreg, rm source) { l.add(inst{row: r, reg: dst, rm: rm}) }
func (l *lowerer) op2i(r *row, dst vreg, rm source, imm int32) {
	l.add(inst{row: r, reg: dst, rm: rm, imm: imm})
}

// words is a constant of the pool.
func (l *lowerer) words(w ...uint64) memory {
	var b []byte
	for _, x := range w {
		b = binary.LittleEndian.AppendUint64(b, x)
	}
	return memory{relative: true, constant: l.a.constant(b)}
}

// splat is a constant in every lane as an operand.
func (l *lowerer) splat(bits uint64) source { return fromMem(l.t.splat(l, bits)) }

func (l *lowerer) splatF(x float64) source { return l.splat(math.Float64bits(x)) }

// load puts a constant into a fresh register.
func (l *lowerer) load(bits uint64) vreg {
	v := l.vector()
	l.t.loadSplat(l, v, bits)
	return v
}

// src is x as an operand that may be in memory, reg is x in a register.
func (l *lowerer) src(x ir.Value) source {
	v := l.vals[x]
	if v.known && l.f.Types[x] != ir.Bool {
		l.check(x)
		return l.splat(v.bits)
	}
	return fromReg(l.reg(x))
}

func (l *lowerer) reg(x ir.Value) vreg {
	v := l.vals[x]
	if !v.known {
		return v.v
	}
	l.check(x)
	if l.f.Types[x] == ir.Bool {
		m := l.newMask()
		l.t.constMask(l, m, v.bits != 0)
		return m
	}
	return l.load(v.bits)
}

func (l *lowerer) check(x ir.Value) {
	if t := l.f.Types[x]; !lane(t) {
		l.refuse(ir.Pos{}, "a value of type %v", t)
	}
}

// lane says that a type fits a lane.
func lane(t ir.Type) bool { return t == ir.Bool || t.Bits() == 64 }

// move is dst = x.
func (l *lowerer) move(dst vreg, x ir.Value) {
	v := l.vals[x]
	switch {
	case !v.known:
		l.copy(dst, v.v)
	case l.f.Types[x] == ir.Bool:
		l.t.constMask(l, dst, v.bits != 0)
	default:
		l.check(x)
		l.t.loadSplat(l, dst, v.bits)
	}
}

func (l *lowerer) copy(dst, src vreg) {
	if dst == src {
		return
	}
	if l.kinds[dst] == mask {
		// kmovb is a move between registers, too, but not from memory to memory.
		l.op2(kmovb, dst, fromReg(src))
		return
	}
	l.op2(vmovapd, dst, fromReg(src))
}

// choose is dst = x where m, else y. dst may be any of them.
func (l *lowerer) choose(t ir.Type, dst, m vreg, x, y ir.Value) {
	if t == ir.Bool {
		l.t.blendMask(l, dst, m, l.reg(x), l.reg(y))
		return
	}
	l.t.blend(l, dst, m, l.src(x), l.reg(y))
}

func (l *lowerer) top() *region { return l.stack[len(l.stack)-1] }

// function lowers everything.
func (l *lowerer) function() {
	f, lanes := l.f, int32(l.t.lanes())
	for i, p := range f.Params {
		if !lane(f.Types[p.Value]) {
			l.refuse(f.Pos, "parameter %s of type %v", p.Name, f.Types[p.Value])
			return
		}
		if l.o.Uniform != nil && len(l.o.Uniform) != len(f.Params) {
			panic(fmt.Sprintf("amd64: internal error: %d uniform marks for %d parameters", len(l.o.Uniform), i))
		}
	}
	for _, t := range f.Results {
		if !lane(t) {
			l.refuse(f.Pos, "a result of type %v", t)
			return
		}
	}
	done, head, above := l.a.newLabel(), l.a.newLabel(), l.a.newLabel()
	l.restore, l.save, l.fault = l.a.newLabel(), l.a.newLabel(), l.a.newLabel()
	l.fixed(func(a *assembler) {
		load := func(r uint8, from int32) { a.op(movLoad, operands{reg: r, rm: inMemory(at(rax, from))}) }
		load(rsi, ArgState)
		load(rdi, ArgStreams)
		load(r10, ArgBudget)
		load(rcx, ArgResume)
		a.op(testReg, operands{reg: rcx, rm: register(rcx)})
		a.jump(ifNotEqual, l.restore)
		a.op(xor32, operands{reg: rdx, rm: register(rdx)})
		load(r8q, ArgN)
		a.op(testReg, operands{reg: r8q, rm: register(r8q)})
		a.jump(ifEqual, done)
	})
	first := len(l.insts)
	l.place(head)
	tail := l.newMask()
	l.t.tail(l, tail)
	used := make([]bool, len(f.Types))
	breaks := false
	ir.Walk(f.Body, func(in *ir.Instr) {
		for _, a := range in.Args {
			used[a] = true
		}
		breaks = breaks || in.Op == ir.OpBreak
	})
	for i, p := range f.Params {
		if used[p.Value] {
			l.vals[p.Value].v = l.newFor(f.Types[p.Value])
			l.loadParam(i, f.Types[p.Value], l.vals[p.Value].v, tail)
		}
	}
	body := &region{of: &construct{types: f.Results}, mask: tail, end: l.a.newLabel()}
	if breaks {
		body.mask = l.newMask()
		l.copy(body.mask, tail)
	}
	end := f.Body.Terminator()
	if !breaks && end.Op == ir.OpYield {
		l.stack = []*region{body}
		l.instructions(f.Body.Instrs[:len(f.Body.Instrs)-1])
		for _, x := range end.Args {
			body.of.results = append(body.of.results, l.reg(x))
		}
	} else {
		for _, t := range f.Results {
			body.of.results = append(body.of.results, l.newFor(t))
		}
		l.begin(body.of, true)
		l.stack = []*region{body}
		l.instructions(f.Body.Instrs)
	}
	if l.err != nil {
		return
	}
	l.place(body.end)
	for i, t := range f.Results {
		l.storeResult(len(f.Params)+i, t, body.of.results[i], tail)
	}
	stub := pauseStub{l.a.newLabel(), head}
	l.fixed(func(a *assembler) {
		a.op(cmpImm, operands{rm: register(r8q), imm: lanes})
		a.jump(ifAbove, above)
		a.place(done)
		a.op(movImm, operands{rm: inMemory(at(rax, ArgResume))})
		a.op(vzeroupper, operands{})
		a.op(ret, operands{})
		a.place(above)
		a.op(subImm, operands{rm: register(r8q), imm: lanes})
		a.op(addImm, operands{rm: register(rdx), imm: lanes})
		a.op(dec, operands{rm: register(r10)})
		a.jump(ifNotEqual, head)
	})
	l.jump(always, stub.at)
	l.pauses = append(l.pauses, stub)
	l.loops = append(l.loops, [2]int{first, len(l.insts) - 1})
}

func (l *lowerer) stream(i int) func(a *assembler) {
	return func(a *assembler) {
		a.op(movLoad, operands{reg: rcx, rm: inMemory(at(rdi, int32(8*i)))})
	}
}

// element is where the elements of this vector begin, once the stream's
// pointer is in RCX.
func element(t ir.Type) memory {
	m := memory{base: rcx, indexed: true, index: rdx}
	if t != ir.Bool {
		m.scale = 3
	}
	return m
}

func (l *lowerer) loadParam(i int, t ir.Type, dst, tail vreg) {
	l.fixed(l.stream(i))
	uniform := l.o.Uniform != nil && l.o.Uniform[i]
	switch {
	case t == ir.Bool && uniform:
		// 0 or 1 in a general register, then in all lanes.
		l.fixed(func(a *assembler) { a.op(movzxByte, operands{reg: rcx, rm: inMemory(at(rcx, 0))}) })
		x := l.vector()
		l.t.broadcast(l, x, rcx)
		l.t.compareInt(l, dst, ir.OpNe, true, x, l.splat(0))
	case t == ir.Bool:
		l.t.loadBools(l, dst, tail)
	case uniform:
		l.op2(vbroadcastsd, dst, fromMem(at(rcx, 0)))
	default:
		l.t.loadMasked(l, dst, tail, element(t))
	}
}

func (l *lowerer) storeResult(i int, t ir.Type, src, tail vreg) {
	l.fixed(l.stream(i))
	if t == ir.Bool {
		l.t.storeBools(l, src, tail)
		return
	}
	l.t.storeMasked(l, src, tail, element(t))
}

// begin opens the results of a construct. Those that are not first written at
// the loop depth of the construct itself must live around the loops inside.
func (l *lowerer) begin(c *construct, loops bool) {
	c.depth = l.depth
	if loops {
		for _, v := range c.results {
			l.add(inst{special: undefined, reg: v})
		}
	}
}

// exit hands values to the results of c for the lanes in m.
func (l *lowerer) exit(c *construct, m vreg, vals []ir.Value) {
	plain := !c.written && !c.loop && c.depth == l.depth
	for i, x := range vals {
		dst := c.results[i]
		switch {
		case plain:
			l.move(dst, x)
		case c.types[i] == ir.Bool:
			l.t.blendMask(l, dst, m, l.reg(x), dst)
		default:
			l.t.blend(l, dst, m, l.src(x), dst)
		}
	}
	c.written = true
}

// instructions lowers a region, or a part of it, in the top of the stack.
func (l *lowerer) instructions(ins []ir.Instr) {
	for i := range ins {
		in := &ins[i]
		if l.err != nil {
			return
		}
		switch in.Op {
		case ir.OpYield:
			if r := l.top(); r.of.loop {
				l.backEdge(r, in.Args)
			} else {
				l.exit(r.of, r.mask, in.Args)
			}
		case ir.OpBreak:
			l.leave(in)
		case ir.OpUnreachable:
		case ir.OpIf:
			l.ifElse(in)
		case ir.OpLoop:
			l.loop(in)
		case ir.OpConst:
			l.vals[in.Results[0]] = value{bits: in.Imm, known: true}
		default:
			l.compute(in)
		}
	}
}

// leave lowers a break: results, then the lanes leave every region up to the
// one whose construct they leave.
func (l *lowerer) leave(in *ir.Instr) {
	n := len(l.stack) - 1
	level := in.Level()
	to := l.stack[n-level]
	m := l.top().mask
	l.exit(to.of, m, in.Args)
	for i := n - 1; i >= n-level; i-- {
		l.t.maskAndNot(l, l.stack[i].mask, l.stack[i].mask, m)
	}
	if level > 0 {
		l.jumpIfEmpty(to.mask, to.end)
	}
}

func onlyYields(r *ir.Region) bool { return len(r.Instrs) == 1 && r.Instrs[0].Op == ir.OpYield }

func isUnreachable(r *ir.Region) bool { return r.Instrs[0].Op == ir.OpUnreachable }

// weight is roughly the number of machine instructions of a region, and
// whether there are loops in it.
func weight(r *ir.Region) (n int, loops bool) {
	ir.Walk(r, func(in *ir.Instr) {
		n++
		switch in.Op {
		case ir.OpLoop:
			loops = true
		case ir.OpBreak:
			n += 8
		case ir.OpYield:
			n += len(in.Args) - 1
		case ir.OpDiv, ir.OpMath, ir.OpConvert:
			n += 3
		}
	})
	return n, loops
}

// worthSkipping is the weight from which an arm without lanes is jumped over.
const worthSkipping = 6

func (l *lowerer) results(in *ir.Instr) *construct {
	c := &construct{loop: in.Op == ir.OpLoop}
	for _, x := range in.Results {
		t := l.f.Types[x]
		if !lane(t) {
			l.refuse(in.Pos, "a value of type %v", t)
		}
		v := l.newFor(t)
		l.vals[x].v = v
		c.results = append(c.results, v)
		c.types = append(c.types, t)
	}
	return c
}

func (l *lowerer) ifElse(in *ir.Instr) {
	cond, outer := l.reg(in.Args[0]), l.top()
	then, els := in.Regions[0], in.Regions[1]
	c := l.results(in)
	_, loops0 := weight(then)
	_, loops1 := weight(els)
	l.begin(c, loops0 || loops1)
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
		return
	}
	if then != nil && !isUnreachable(then) {
		m := l.newMask()
		l.t.maskAnd(l, m, outer.mask, cond)
		l.arm(c, then, m)
	}
	if els != nil && !isUnreachable(els) {
		m := l.newMask()
		l.t.maskAndNot(l, m, outer.mask, cond)
		l.arm(c, els, m)
	}
}

func (l *lowerer) arm(c *construct, r *ir.Region, m vreg) {
	end := l.a.newLabel()
	if n, loops := weight(r); loops || n >= worthSkipping {
		l.jumpIfEmpty(m, end)
	}
	l.stack = append(l.stack, &region{of: c, mask: m, end: end})
	l.instructions(r.Instrs)
	l.stack = l.stack[:len(l.stack)-1]
	l.place(end)
}

func (l *lowerer) loop(in *ir.Instr) {
	c := l.results(in)
	r := &region{of: c, mask: l.newMask(), head: l.a.newLabel(), end: l.a.newLabel()}
	for i, x := range in.Carried {
		t := l.f.Types[x]
		if !lane(t) {
			l.refuse(in.Pos, "a value of type %v", t)
			return
		}
		v := l.newFor(t)
		l.vals[x].v = v
		r.carried = append(r.carried, v)
		l.move(v, in.Args[i])
	}
	l.begin(c, true)
	l.copy(r.mask, l.top().mask)
	l.shareCarried(in, r.carried)
	l.depth++
	l.stack = append(l.stack, r)
	first := len(l.insts)
	l.place(r.head)
	l.instructions(in.Regions[0].Instrs)
	l.loops = append(l.loops, [2]int{first, len(l.insts)})
	l.stack = l.stack[:len(l.stack)-1]
	l.depth--
	l.place(r.end)
}

// shareCarried lets the next value of a carried one be computed in its
// register where the carried value is not read any more from there on.
func (l *lowerer) shareCarried(in *ir.Instr, carried []vreg) {
	body := in.Regions[0].Instrs
	end := &body[len(body)-1]
	if end.Op != ir.OpYield {
		return
	}
	lastUse, def := map[ir.Value]int{}, map[ir.Value]int{}
	for i := range body {
		ir.Walk(&ir.Region{Instrs: body[i : i+1]}, func(x *ir.Instr) {
			for _, a := range x.Args {
				lastUse[a] = i
			}
		})
		if x := &body[i]; len(x.Results) == 1 && x.Op != ir.OpIf && x.Op != ir.OpLoop && x.Op != ir.OpConst {
			def[x.Results[0]] = i
		}
	}
	for i, x := range end.Args {
		d, ok := def[x]
		if u, used := lastUse[in.Carried[i]]; ok && (!used || u <= d) && l.into[x] == 0 {
			l.into[x] = carried[i]
		}
	}
}

// backEdge hands the carried values on and begins the next iteration if any
// lane wants it.
func (l *lowerer) backEdge(r *region, next []ir.Value) {
	l.parallel(r.carried, next)
	l.jumpIfEmpty(r.mask, r.end)
	stub := pauseStub{l.a.newLabel(), r.head}
	l.fixed(func(a *assembler) {
		a.op(dec, operands{rm: register(r10)})
		a.jump(ifNotEqual, r.head)
	})
	l.jump(always, stub.at)
	l.pauses = append(l.pauses, stub)
}

// parallel is dst[i] = next[i] for all i at once.
func (l *lowerer) parallel(dst []vreg, next []ir.Value) {
	type move struct{ dst, src vreg }
	var moves []move
	for i, x := range next {
		if v := l.vals[x]; !v.known && v.v != dst[i] {
			moves = append(moves, move{dst[i], v.v})
		}
	}
	for len(moves) > 0 {
		done := false
		for i, m := range moves {
			read := false
			for j, o := range moves {
				read = read || j != i && o.src == m.dst
			}
			if !read {
				l.copy(m.dst, m.src)
				moves = append(moves[:i], moves[i+1:]...)
				done = true
				break
			}
		}
		if !done { // every destination is still read: a cycle
			t := l.new(l.kinds[moves[0].dst])
			l.copy(t, moves[0].dst)
			for i := range moves {
				if moves[i].src == moves[0].dst {
					moves[i].src = t
				}
			}
		}
	}
	for i, x := range next {
		if l.vals[x].known {
			l.move(dst[i], x)
		}
	}
}
