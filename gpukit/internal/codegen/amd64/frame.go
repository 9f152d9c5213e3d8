package amd64

import (
	"math/bits"

	"gpunotes/gpukit/internal/ir"
)

// Registers with a meaning all along: the state, and what is left of the budget.
// RAX, RCX and RDX are for fixed code; all others but RSP and RBP are allocated.
const budget uint8 = 15

// The state begins with words of the frame.
const (
	stateBlock = 0  // the block of arguments
	stateLeft  = 8  // the lanes of this group that there are, for loops over lanes
	stateLanes = 16 // a word of lanes, for loops over lanes
	stateFixed = 192
)

// frame is what surrounds the function: rows, groups in them, parameters and
// results.
type frame struct {
	tail    []vreg // the lanes of the group that there are and have not failed
	full    bool   // all groups are
	single  bool   // a row is one group: there is no index
	partial bool   // and it is not full
	index   vreg   // minus the workers of the row from the first of the group on
	count   vreg   // the workers of a row
	row     vreg   // which one it is of its dimension, the fastest
	rows    int    // in the state: how many there are of these
	once    *block // before the rows
	still   *block // before the rows of the fastest dimension
	stills  int    // the vectors that it loads
	above   label  // the head of the other dimensions
	streams []stream
	sweeps  bool // there are loops over lanes that need stateLeft
	body    *region
	group   label
	next    label
	rowHead label
}

// stream is what the code keeps of a parameter or result.
type stream struct {
	access Access
	t      ir.Type
	used   bool
	word   vreg // of this row
	goes   int  // in the state: what is added to word, by dimension
	base   vreg // Unit: the end of the row, or if that is a single group its beginning; Strided: the element of lane 0; CountUnit: the value there
	buffer int  // in the state: lanes one by one
	step   int  // in the state: the step of Strided
	parts  []vreg
	// Of a parameter that is gathered: the offsets of the lanes, and in the state what the
	// base goes on by.
	gathers bool
	offsets []vreg
	onward  int
	steps   vreg // CountStep: what is added from group to group
}

func streamAt(i int, off int32) int32 { return int32(i)*StreamSize + off }

// scaleOf is the log2 of the size of an element of type t.
func scaleOf(t ir.Type) uint8 { return uint8(bits.TrailingZeros(uint(t.Size()))) }

// function lowers everything.
func (l *lowerer) function() {
	f, k := l.f, l.k
	if len(k.In) != len(f.Params) || len(k.Out) != len(f.Results) {
		panic("amd64: internal error: accesses and operands do not match")
	}
	l.bindMemories(f, nil)
	used := make([]bool, len(f.Types))
	ir.Walk(f.Body, func(in *ir.Instr) {
		for _, a := range in.Args {
			used[a] = true
		}
	})
	for i, p := range f.Params {
		l.fr.streams = append(l.fr.streams, stream{access: k.In[i], t: f.Types[p.Value], used: used[p.Value]})
	}
	for i, t := range f.Results {
		l.fr.streams = append(l.fr.streams, stream{access: k.Out[i], t: t, used: true})
	}
	l.restore, l.save = l.a.newLabel(), l.a.newLabel()
	l.fr.rowHead, l.fr.group, l.fr.next, l.fr.above = l.a.newLabel(), l.a.newLabel(), l.a.newLabel(), l.a.newLabel()
	l.fr.full = k.Count > 0 && k.Count%l.lanes == 0
	l.fr.single = k.Count > 0 && k.Count <= l.lanes
	l.fr.partial = l.fr.single && !l.fr.full
	l.entry()
	l.add(inst{special: insertion, block: l.prologue})
	// Streams of the whole call.
	streams := l.newGPR()
	l.add(inst{row: movLoad, reg: streams, rm: inState(stateBlock)})
	l.op2(movLoad, streams, address(streams, 0, 0, BlockStreams))
	for i, p := range f.Params {
		if s := &l.fr.streams[i]; s.used && s.access == Same {
			l.broadcastParam(p.Value, s.t, address(streams, 0, 0, streamAt(i, StreamWord)), true)
		}
	}
	l.beginRows(streams)
	l.fr.once = l.insert()
	if k.Levels > 1 {
		l.add(inst{special: loopBegin})
		l.place(l.fr.above)
	}
	l.fr.still = l.insert()
	l.add(inst{special: loopBegin})
	l.place(l.fr.rowHead)
	begin := l.here()
	l.rowStart()
	l.add(inst{special: insertion, block: l.row})
	if l.fr.single {
		l.place(l.fr.group)
		l.group()
		l.place(l.fr.next)
		l.nextRow(begin)
	} else {
		l.add(inst{special: loopBegin})
		l.place(l.fr.group)
		first := len(l.insts)
		l.group()
		l.nextGroup(first)
		l.add(inst{special: loopEnd})
		l.nextRow(nil)
	}
	l.fixed(func(a *assembler) {
		a.op(movLoad, operands{reg: rax, rm: inMemory(at(rsi, stateBlock))})
		a.op(movImm, operands{rm: inMemory(at(rax, BlockExit)), imm: int32(ExitDone)})
		a.op(vzeroupper, operands{})
		a.op(ret, operands{})
	})
	l.lowerSubroutines()
}

// entry is where the code is called, from the start or to go on.
func (l *lowerer) entry() {
	l.fixed(func(a *assembler) {
		load := func(r uint8, from int32) { a.op(movLoad, operands{reg: r, rm: inMemory(at(rax, from))}) }
		load(rsi, BlockState)
		load(budget, BlockBudget)
		load(rcx, BlockResume)
		a.op(testReg, operands{reg: rcx, rm: register(rcx)})
		a.jump(ifNotEqual, l.restore)
		a.op(movStore, operands{reg: rax, rm: inMemory(at(rsi, stateBlock))})
		for d := range l.k.Levels {
			a.op(movImm, operands{rm: inMemory(at(rax, int32(BlockRow+8*d)))})
		}
	})
}

// broadcastParam loads a parameter with one value for all lanes of a row. bits says
// that memory has its Bits form.
func (l *lowerer) broadcastParam(x ir.Value, t ir.Type, from source, bits bool) {
	v := l.set(x)
	switch t {
	case ir.F64:
		v.parts = []vreg{l.vector()}
		l.op2(vbroadcastsd, v.parts[0], from)
		return
	case ir.F32:
		v.parts = []vreg{l.vector()}
		l.op2(vbroadcastss, v.parts[0], from)
		return
	}
	r := l.newGPR()
	row := movLoad
	if !bits {
		row = loadRowOf(t)
	}
	l.op2(row, r, from)
	l.defineGPR(x, r)
}

// loadRowOf loads an integer or bool into a general register in Bits form.
func loadRowOf(t ir.Type) *row {
	switch t {
	case ir.I8:
		return movsxByte
	case ir.I16:
		return movsxWord
	case ir.I32:
		return movsxd
	case ir.U8, ir.Bool:
		return movzxByte
	case ir.U16:
		return movzxWord
	case ir.U32, ir.F32:
		return movLoad32
	}
	return movLoad
}

func storeRowOf(t ir.Type) *row {
	switch t.Size() {
	case 1:
		return movStore8
	case 2:
		return movStore16
	case 4:
		return movStore32
	}
	return movStore
}

// beginRows loads what goes on from row to row.
func (l *lowerer) beginRows(streams vreg) {
	f := &l.fr
	block := l.newGPR()
	l.add(inst{row: movLoad, reg: block, rm: inState(stateBlock)})
	keep := func(to int, from source) vreg {
		x := l.newGPR()
		l.op2(movLoad, x, from)
		l.store(movStore, x, inState(to))
		return x
	}
	if l.k.Levels > 0 {
		f.rows, f.row = l.allocateState(8, 8), l.newGPR()
		keep(f.rows, address(block, 0, 0, BlockRows))
		l.loadInt(f.row, 0)
	}
	if !f.single {
		f.count = l.newGPR()
		l.op2(movLoad, f.count, address(block, 0, 0, BlockCount))
	}
	for i := range f.streams {
		s := &f.streams[i]
		if !s.used || s.access == Same {
			continue
		}
		s.word, s.goes = l.newGPR(), l.allocateState(8*l.k.Levels, 8)
		l.op2(movLoad, s.word, address(streams, 0, 0, streamAt(i, StreamWord)))
		for d := range l.k.Levels {
			keep(s.goes+8*d, address(streams, 0, 0, streamAt(i, StreamAdvance)+int32(8*d)))
		}
		if s.access == Strided || s.access == CountStep {
			s.step = l.allocateState(8, 8)
			step := keep(s.step, address(streams, 0, 0, streamAt(i, StreamStep)))
			if s.gathers = s.access == Strided && i < len(l.f.Params) && s.t.Size() >= 4 && l.maskLanes == l.regBytes/8; s.gathers {
				l.gatherOffsets(s, step)
			}
		}
	}
}

// rowStart makes what a row needs: where its elements are, what is the same in all
// of it.
func (l *lowerer) rowStart() {
	f := &l.fr
	if !f.single {
		f.index = l.newGPR()
		l.add(inst{row: neg, reg: f.index, v: f.count})
	}
	for i := range f.streams {
		s := &f.streams[i]
		if !s.used {
			continue
		}
		switch s.access {
		case PerRow:
			if i >= len(l.f.Params) {
				l.refuse(l.f.Pos, "a result per row")
				return
			}
			l.broadcastParam(l.f.Params[i].Value, s.t, address(s.word, 0, 0, 0), false)
		case Count:
			l.defineGPR(l.f.Params[i].Value, s.word)
		case Unit, CountUnit:
			if s.base = s.word; f.single {
				continue
			}
			scale := uint8(0)
			if s.access == Unit {
				scale = scaleOf(s.t)
			}
			s.base = l.newGPR()
			l.op2(lea, s.base, address(s.word, f.count, scale, 0))
		case Strided:
			s.base = l.newGPR()
			l.copy(s.base, s.word)
		case CountStep:
			l.countStep(s)
		}
	}
}

// gatherOffsets makes the offsets in bytes of the lanes of a stream, and what its base
// goes on by from group to group.
func (l *lowerer) gatherOffsets(s *stream, step vreg) {
	buffer := l.allocateState(8*l.lanes, 64)
	w := l.newGPR()
	l.loadInt(w, 0)
	for i := range l.lanes {
		l.store(movStore, w, inState(buffer+8*i))
		l.op3(add64, w, w, fromReg(step))
	}
	s.onward = l.allocateState(8, 8)
	l.store(movStore, w, inState(s.onward))
	s.offsets = l.newVectors(l.parts(ir.I64))
	for p, v := range s.offsets {
		l.op2(vmovupd, v, inState(buffer+p*l.regBytes))
	}
}

// countStep makes the first vectors of word + lane*step, by additions lane by lane.
func (l *lowerer) countStep(s *stream) {
	buffer := l.allocateState(8*l.lanes, 64)
	w, d := l.newGPR(), l.newGPR()
	l.copy(w, s.word)
	l.op2(movLoad, d, inState(s.step))
	for i := range l.lanes {
		l.store(movStore, w, inState(buffer+8*i))
		l.op3(add64, w, w, fromReg(d))
	}
	by := l.newGPR()
	l.add(inst{row: imulImm, reg: by, rm: fromReg(d), imm: int32(l.lanes)})
	s.steps = l.vector()
	l.broadcast(s.steps, by, ir.I64)
	s.parts = l.newVectors(l.parts(ir.I64))
	for p, v := range s.parts {
		l.op2(vmovupd, v, inState(buffer+p*l.regBytes))
	}
}

// group lowers the code of a group of workers.
func (l *lowerer) group() {
	f := &l.fr
	f.tail = l.newMasks(l.parts(ir.Bool))
	partly, ready := l.a.newLabel(), l.a.newLabel()
	switch {
	case f.partial:
		l.in(f.once, l.tailMask)
	case !f.full:
		l.cmpImm(f.index, -l.lanes)
		l.jump(ifGreater, partly)
	}
	loads, lastLoads := l.insert(), l.insert()
	if !f.single && !f.full {
		l.place(ready)
	}
	left, locals := l.insert(), l.insert()
	l.mem.group = l.insert()
	l.params()
	body := &region{of: &construct{types: l.f.Results}, mask: f.tail, end: l.a.newLabel()}
	all := &region{of: &construct{}, mask: f.tail, own: true, end: l.a.newLabel()}
	f.body = body
	if l.isParted(nil) {
		body.own, body.mask = true, l.newMasks(len(f.tail))
		for p, m := range f.tail {
			l.copy(body.mask[p], m)
		}
	}
	for _, t := range l.f.Results {
		body.of.results = append(body.of.results, l.reserve(t, shapeVarying))
	}
	all.end = body.end
	l.stack = []*region{all, body}
	end := l.f.Body.Terminator()
	if !body.own && end.Op == ir.OpYield {
		l.instructions(l.f.Body.Instrs[:len(l.f.Body.Instrs)-1])
		if l.err != nil {
			return
		}
		for i, x := range end.Args {
			if leavesEarly(l.f.Body) {
				l.assign(&body.of.results[i], x)
			} else {
				body.of.results[i].parts = l.sources(x, shapeVarying)
			}
		}
	} else {
		l.begin(body.of)
		l.instructions(l.f.Body.Instrs)
	}
	if l.err != nil {
		return
	}
	l.place(body.end)
	masked := mentions(l.insts, f.tail[0])
	l.stores(body)
	// Now it is known what was needed.
	if masked && !f.partial {
		before := l.row // the last group of a row changes them
		if f.full {
			before = f.once
		}
		l.in(before, func() {
			for _, m := range f.tail {
				l.setMask(m)
			}
		})
	}
	l.in(loads, func() { l.loads(f.partial) })
	l.in(locals, l.beginLocals)
	l.in(left, func() {
		if f.sweeps {
			l.setLeft()
		}
	})
	if f.single || f.full {
		return
	}
	l.in(lastLoads, func() {
		l.cold(func() {
			l.place(partly)
			l.tailMask()
			l.loads(true)
			l.jump(always, ready)
		})
	})
}

// mentions reports whether instructions have a register as an operand.
func mentions(insts []inst, v vreg) (yes bool) {
	for i := range insts {
		if in := &insts[i]; in.special == insertion {
			yes = yes || mentions(in.block.insts, v)
		} else {
			in.operandsAt(func(o vreg, _, _ bool) { yes = yes || o == v })
		}
	}
	return yes
}

// leavesEarly reports whether there are breaks to the function.
func leavesEarly(r *ir.Region) bool {
	found := false
	ir.Walk(r, func(in *ir.Instr) { found = found || in.Op == ir.OpBreak })
	return found
}

// setLeft stores how many lanes of the group there are.
func (l *lowerer) setLeft() {
	if l.fr.single || l.fr.full {
		l.add(inst{row: movImm, rm: inState(stateLeft), imm: int32(min(l.k.Count, l.lanes))})
		return
	}
	n, most := l.newGPR(), l.newGPR()
	l.loadInt(most, uint64(l.lanes))
	l.add(inst{row: neg, reg: n, v: l.fr.index})
	l.op2(cmp64, n, fromReg(most))
	l.add(inst{row: cmovcc[ifGreater], reg: n, v: n, rm: fromReg(most)})
	l.store(movStore, n, inState(stateLeft))
}

func (l *lowerer) cmpImm(r vreg, x int) {
	row := cmpImm4
	if x == int(int8(x)) {
		row = cmpImm
	}
	l.add(inst{row: row, rm: fromReg(r), imm: int32(x)})
}

// setMask is a mask with all lanes.
func (l *lowerer) setMask(m vreg) {
	if l.isa == AVX2 {
		l.copy(m, l.constant(^uint64(0), 8))
		return
	}
	l.t.constMask(l, m, true)
}

// tailMask makes the masks of the last group of a row, which is not full.
func (l *lowerer) tailMask() {
	f := &l.fr
	left := l.newGPR()
	if f.single {
		l.loadInt(left, uint64(l.k.Count))
	} else {
		l.add(inst{row: neg, reg: left, v: f.index})
	}
	if l.isa == AVX512 {
		one, b := l.newGPR(), l.newGPR()
		l.loadInt(one, 1)
		l.add(inst{row: shlx, reg: b, rm: fromReg(one), v: left})
		l.add(inst{row: dec, reg: b, v: b})
		for p, m := range f.tail {
			if p > 0 {
				l.add(inst{row: shr64, reg: b, v: b, imm: int32(l.maskLanes)})
			}
			if l.maskLanes == 8 {
				l.op2(kmovbFrom, m, fromReg(b))
			} else {
				l.op2(kmovwFrom, m, fromReg(b))
			}
		}
		return
	}
	n := l.vector()
	for p, m := range f.tail {
		if l.maskLanes == 4 {
			if p == 0 {
				l.broadcast(n, left, ir.I64)
			}
			l.op3(vpcmpgtq, m, n, fromReg(l.iota(p)))
			continue
		}
		if p == 0 {
			l.broadcast(n, left, ir.I32)
		}
		l.op3(vpcmpgtd, m, n, fromReg(l.iota32(p)))
	}
}

// iota32 is the numbers of the lanes of a part of 32-bit lanes.
func (l *lowerer) iota32(part int) vreg {
	n := l.regBytes / 8
	w := make([]uint64, n)
	for i := range w {
		a := uint64(part*2*n + 2*i)
		w[i] = a | (a+1)<<32
	}
	return l.poolVector(constantKey{uint64(part), -2}, l.words(w...))
}

// params defines the parameters that differ from lane to lane. Their registers are
// loaded by loads.
func (l *lowerer) params() {
	f := &l.fr
	for i, p := range l.f.Params {
		s := &f.streams[i]
		if !s.used {
			continue
		}
		switch s.access {
		case Unit, Strided:
			if s.gathers {
				l.stack = []*region{{of: &construct{}, mask: f.tail, own: true}}
				s.parts = l.gatherAt(s.t, source{base: s.base}, s.offsets, 0)
				l.define(p.Value, s.parts)
				l.op3(add64, s.base, s.base, inState(s.onward))
				continue
			}
			s.parts = l.newParts(s.t)
			l.define(p.Value, s.parts)
			if l.sweeping(s) {
				f.sweeps = f.sweeps || s.access == Strided
				s.buffer = l.allocateState(l.lanes*laneSize(s.t), 64)
			}
			if s.access == Strided {
				l.sweepIn(s)
			}
		case CountStep:
			l.define(p.Value, s.parts)
		case CountUnit:
			r := s.base
			if !f.single {
				r = l.newGPR()
				l.op2(lea, r, address(s.base, f.index, 0, 0))
			}
			l.defineGPR(p.Value, r)
		}
	}
}

// sweeping reports whether lanes of a stream are (sometimes) moved one by one.
func (l *lowerer) sweeping(s *stream) bool {
	return s.access == Strided || s.access == Unit && l.isa == AVX2 && s.t.Size() < 4
}

// unitAt is the memory of the elements of a part of a stream of contiguous elements.
func (l *lowerer) unitAt(s *stream, part, lanes int) source {
	return address(s.base, l.fr.index, scaleOf(s.t), int32(part*lanes*s.t.Size())) // without an index if there is none
}

// perPart is the lanes of a part of type t.
func (l *lowerer) perPart(t ir.Type) int {
	if t == ir.Bool {
		return l.maskLanes
	}
	return min(l.lanes, l.regBytes/laneSize(t))
}

// tailFor has the lanes of the last group, in parts of type t if there is one at work.
func (l *lowerer) tailFor(t ir.Type, partly bool) []vreg {
	if partly && t != ir.Bool {
		return l.maskFor(l.fr.tail, t)
	}
	return l.fr.tail
}

// loads loads the parameters of contiguous elements of a full group, or of the
// last one, of which partly is true.
func (l *lowerer) loads(partly bool) {
	for i := range l.f.Params {
		s := &l.fr.streams[i]
		if !s.used || s.access != Unit {
			continue
		}
		if partly && l.sweeping(s) {
			l.sweepUnit(s)
			continue
		}
		per := l.perPart(s.t)
		ms := l.tailFor(s.t, partly)
		for p, dst := range s.parts {
			from := l.unitAt(s, p, per)
			switch {
			case s.t == ir.Bool:
				l.loadBools(dst, from, ms[p], partly)
			case s.t.Size() < 4:
				l.add(inst{row: wideningOf(s.t), reg: dst, rm: from, k: maskIf(partly, ms, p), zero: partly})
			case partly && l.isa == AVX2 && s.t.Size() == 8:
				l.add(inst{row: vmaskmovpd, reg: dst, v: ms[p], rm: from})
			case partly && l.isa == AVX2:
				l.add(inst{row: vmaskmovps, reg: dst, v: ms[p], rm: from})
			case s.t.Size() == 8:
				l.add(inst{row: vmovupd, reg: dst, rm: from, k: maskIf(partly, ms, p), zero: partly})
			default:
				l.add(inst{row: vmovups, reg: dst, rm: from, k: maskIf(partly, ms, p), zero: partly})
			}
		}
	}
}

func maskIf(yes bool, ms []vreg, p int) vreg {
	if yes {
		return ms[p]
	}
	return 0
}

// wideningOf loads small integers into 32-bit lanes.
func wideningOf(t ir.Type) *row {
	switch t {
	case ir.I8:
		return vpmovsxbd
	case ir.U8:
		return vpmovzxbd
	case ir.I16:
		return vpmovsxwd
	}
	return vpmovzxwd
}

// loadBools loads a mask part from bytes.
func (l *lowerer) loadBools(dst vreg, from source, m vreg, partly bool) {
	b := l.vector()
	if l.isa == AVX512 {
		switch {
		case partly:
			l.add(inst{row: vmovdqu8, reg: b, rm: from, k: m, zero: true})
		case l.maskLanes == 8:
			l.op2(vmovq, b, from)
		default:
			l.op2(vmovdqu8, b, from)
		}
		l.op3(vptestmb, dst, b, fromReg(b))
		return
	}
	if l.maskLanes == 4 {
		l.op2(vpmovsxbq, b, from)
		l.op3(vpcmpgtq, dst, b, fromReg(l.constant(0, 8)))
		return
	}
	l.op2(vpmovsxbd, b, from)
	l.op3(vpcmpgtd, dst, b, fromReg(l.constant(0, 8)))
}

// sweepUnit loads the lanes that there are of contiguous elements, one by one.
func (l *lowerer) sweepUnit(s *stream) {
	size, lane, buffer := int32(s.t.Size()), int32(laneSize(s.t)), int32(s.buffer)
	l.add(inst{row: lea, gpr: rax, rm: l.unitAt(s, 0, 0)})
	count := int32(l.k.Count)
	if !l.fr.single {
		l.add(inst{row: movLoad, gpr: rcx, rm: fromReg(l.fr.index)})
	}
	load, store := loadRowOf(s.t), movStore32
	if lane == 8 {
		store = movStore
	}
	again, single := l.a.newLabel(), l.fr.single
	l.fixed(func(a *assembler) {
		if single {
			a.op(movImm32, operands{rm: register(rcx), imm: count})
		} else {
			a.op(neg, operands{rm: register(rcx)})
		}
		a.place(again)
		a.op(load, operands{reg: rdx, rm: inMemory(memory{base: rax, indexed: true, index: rcx, scale: scaleOf(s.t), disp: -size})})
		a.op(store, operands{reg: rdx, rm: inMemory(memory{base: rsi, indexed: true, index: rcx, scale: scaleOf(ir.U8) + uint8(bits.TrailingZeros(uint(lane))), disp: buffer - lane})})
		a.op(dec, operands{rm: register(rcx)})
		a.jump(ifNotEqual, again)
	})
	l.fromBuffer(s)
}

// fromBuffer loads the registers of a stream from its buffer.
func (l *lowerer) fromBuffer(s *stream) {
	if s.t != ir.Bool {
		for p, dst := range s.parts {
			l.op2(vmovupd, dst, inState(s.buffer+p*l.regBytes))
		}
		return
	}
	// 4 bytes for a bool.
	for p, dst := range s.parts {
		from := inState(s.buffer + 4*p*l.maskLanes)
		x := l.vector()
		switch {
		case l.isa == AVX512 && l.maskLanes == 8:
			l.op2(vpmovsxdq, x, from)
			l.op3(vptestmq, dst, x, fromReg(x))
		case l.isa == AVX512:
			l.op2(vmovups, x, from)
			l.op3(vptestmd, dst, x, fromReg(x))
		case l.maskLanes == 4:
			l.op2(vpmovsxdq, x, from)
			l.op3(vpcmpgtq, dst, x, fromReg(l.constant(0, 8)))
		default:
			l.op2(vmovups, x, from)
			l.op3(vpcmpgtd, dst, x, fromReg(l.constant(0, 8)))
		}
	}
}

// sweepIn loads strided elements one by one.
func (l *lowerer) sweepIn(s *stream) {
	lane, buffer, step := int32(laneSize(s.t)), int32(s.buffer), int32(s.step)
	l.add(inst{row: movLoad, gpr: rax, rm: fromReg(s.base)})
	load, store := loadRowOf(s.t), movStore32
	if lane == 8 {
		store = movStore
	}
	again := l.a.newLabel()
	l.fixed(func(a *assembler) {
		a.op(xor32, operands{reg: rcx, rm: register(rcx)})
		a.place(again)
		a.op(load, operands{reg: rdx, rm: inMemory(at(rax, 0))})
		a.op(store, operands{reg: rdx, rm: inMemory(memory{base: rsi, indexed: true, index: rcx, scale: uint8(bits.TrailingZeros(uint(lane))), disp: buffer})})
		a.op(add64, operands{reg: rax, rm: inMemory(at(rsi, step))})
		a.op(addImm, operands{rm: register(rcx), imm: 1})
		a.op(cmp64, operands{reg: rcx, rm: inMemory(at(rsi, stateLeft))})
		a.jump(ifBelow, again)
	})
	l.fromBuffer(s)
	// RAX has gone on to the next group.
	l.add(inst{row: movStore, gpr: rax, rm: fromReg(s.base)})
}

// stores stores the results of the group.
func (l *lowerer) stores(body *region) {
	f := &l.fr
	partly, ready := l.a.newLabel(), l.a.newLabel()
	outs := f.streams[len(l.f.Params):]
	fails := l.fault.Lanes != 0
	unit := false
	for i := range outs {
		s := &outs[i]
		s.parts = body.of.results[i].parts
		unit = unit || s.access == Unit
		if l.sweeping(s) {
			s.buffer = l.allocateState(max(64, l.lanes*laneSize(s.t)), 64)
		}
	}
	if unit {
		if !f.full && !f.partial {
			l.cmpImm(f.index, -l.lanes)
			l.jump(ifGreater, partly)
		}
		if fails && !f.partial {
			l.add(inst{row: cmpImm, rm: inState(l.fault.Lanes), imm: 0})
			l.jump(ifNotEqual, partly)
		}
		for i := range outs {
			if outs[i].access == Unit {
				l.storeUnit(&outs[i], f.partial)
			}
		}
		if !f.partial && (!f.full || fails) {
			l.place(ready)
			l.cold(func() {
				l.place(partly)
				for i := range outs {
					if outs[i].access == Unit {
						l.storeUnit(&outs[i], true)
					}
				}
				l.jump(always, ready)
			})
		}
	}
	for i := range outs {
		switch s := &outs[i]; s.access {
		case Unit:
		case Strided:
			f.sweeps = true
			l.sweepOut(s)
		default:
			l.refuse(l.f.Pos, "a result with one value for several workers")
		}
	}
	if fails {
		failed := l.a.newLabel()
		l.add(inst{row: cmpImm, rm: inState(l.fault.Lanes), imm: 0})
		l.jump(ifNotEqual, failed)
		l.add(inst{special: coldBegin})
		l.place(failed)
		l.add(inst{special: exitCode, imm: int32(ExitFault), label: failed})
		l.add(inst{special: coldEnd})
		l.in(l.prologue, func() { l.add(inst{row: movImm, rm: inState(l.fault.Lanes)}) })
	}
}

func (l *lowerer) storeUnit(s *stream, partly bool) {
	if l.sweeping(s) {
		if !partly && l.packed(s) {
			return
		}
		l.sweepOut(s)
		return
	}
	per := l.perPart(s.t)
	ms := l.tailFor(s.t, partly)
	for p, src := range s.parts {
		to := l.unitAt(s, p, per)
		var m vreg
		if partly {
			m = ms[p]
		}
		switch {
		case s.t == ir.Bool:
			l.storeBools(src, to, m, partly)
		case s.t.Size() == 1:
			l.add(inst{row: vpmovdb, reg: src, rm: to, k: m})
		case s.t.Size() == 2:
			l.add(inst{row: vpmovdw, reg: src, rm: to, k: m})
		case partly && l.isa == AVX2 && s.t.Size() == 8:
			l.add(inst{row: vmaskmovpdStore, reg: src, v: m, rm: to})
		case partly && l.isa == AVX2:
			l.add(inst{row: vmaskmovpsStore, reg: src, v: m, rm: to})
		case !partly && l.k.Streaming:
			l.add(inst{row: vmovntpdStore, reg: src, rm: to})
		case s.t.Size() == 8:
			l.add(inst{row: vmovupdStore, reg: src, rm: to, k: m})
		default:
			l.add(inst{row: vmovupsStore, reg: src, rm: to, k: m})
		}
	}
}

// storeBools stores a mask part as bytes, for AVX-512.
func (l *lowerer) storeBools(src vreg, to source, m vreg, partly bool) {
	b, one := l.vector(), l.vector()
	l.op2(vpmovm2b, b, fromReg(src))
	x := l.constant(0x0101010101010101, 8)
	l.op3(vandpdX, one, b, fromReg(x))
	switch {
	case partly:
		l.add(inst{row: vmovdqu8Store, reg: one, rm: to, k: m})
	case l.maskLanes == 8:
		l.add(inst{row: vmovqOut, reg: one, rm: to})
	default:
		l.add(inst{row: vmovdqu8Store, reg: one, rm: to})
	}
}

// packed stores a full group of small elements with AVX2, and reports whether it
// can.
func (l *lowerer) packed(s *stream) bool {
	per := l.perPart(s.t)
	for p, src := range s.parts {
		to := l.unitAt(s, p, per)
		switch {
		case s.t == ir.Bool && l.maskLanes == 4:
			r := l.newGPR()
			l.op2(vmovmskpd, r, fromReg(src))
			x := l.newGPR()
			l.add(inst{row: imul32Imm, reg: x, rm: fromReg(r), imm: 1 | 1<<7 | 1<<14 | 1<<21})
			l.add(inst{row: and32Imm, reg: x, v: x, imm: 0x01010101})
			l.store(movStore32, x, to)
		default:
			from := src
			if s.t == ir.Bool {
				from = l.vector()
				l.op3(vandpd, from, src, fromReg(l.constant(0x0000_0001_0000_0001, 8)))
			}
			l.storePacked(s.t.Size(), from, to)
		}
	}
	return true
}

// sweepOut stores elements one by one, of the lanes that there are and have not
// failed.
func (l *lowerer) sweepOut(s *stream) {
	l.fr.sweeps = true
	lane, buffer := laneSize(s.t), s.buffer
	if s.t == ir.Bool {
		// 4 bytes each.
		per := l.maskLanes
		for p, m := range s.parts {
			x := l.vector()
			to := inState(buffer + 4*p*per)
			switch {
			case l.isa == AVX512 && per == 8:
				l.op2(vpmovm2q, x, fromReg(m))
				l.store(vpmovqd, x, to)
			case l.isa == AVX512:
				l.op2(vpmovm2d, x, fromReg(m))
				l.store(vmovupsStore, x, to)
			case per == 4:
				z, y := l.vector(), l.vector()
				l.op3i(vshufps, z, m, fromReg(m), 0x88)
				l.op2i(vpermqI, y, fromReg(z), 0x08)
				l.add(inst{row: vextractf128, reg: y, rm: to, imm: 0})
			default:
				l.store(vmovupsStore, m, to)
			}
		}
	} else {
		for p, src := range s.parts {
			l.store(vmovupdStore, src, inState(buffer+p*l.regBytes))
		}
	}
	fails := l.fault.Lanes != 0
	if fails {
		l.storeLanes(l.fr.tail, stateLanes)
	}
	load, store := movLoad32, storeRowOf(s.t)
	if lane == 8 {
		load = movLoad
	}
	strided, step, scale := s.access == Strided, int32(s.step), scaleOf(s.t)
	if strided {
		l.add(inst{row: movLoad, gpr: rax, rm: fromReg(s.base)})
	} else {
		l.add(inst{row: lea, gpr: rax, rm: l.unitAt(s, 0, 0)})
	}
	again, skip := l.a.newLabel(), l.a.newLabel()
	isBool := s.t == ir.Bool
	l.fixed(func(a *assembler) {
		a.op(xor32, operands{reg: rcx, rm: register(rcx)})
		a.place(again)
		if fails {
			a.op(movLoad, operands{reg: rdx, rm: inMemory(at(rsi, stateLanes))})
			a.op(shrx, operands{reg: rdx, rm: register(rdx), v: rcx})
			a.op(andImm, operands{rm: register(rdx), imm: 1})
			a.jump(ifEqual, skip)
		}
		a.op(load, operands{reg: rdx, rm: inMemory(memory{base: rsi, indexed: true, index: rcx, scale: uint8(bits.TrailingZeros(uint(lane))), disp: int32(buffer)})})
		if isBool {
			a.op(andImm, operands{rm: register(rdx), imm: 1})
		}
		to := at(rax, 0)
		if !strided {
			to = memory{base: rax, indexed: true, index: rcx, scale: scale}
		}
		a.op(store, operands{reg: rdx, rm: inMemory(to)})
		a.place(skip)
		if strided {
			a.op(add64, operands{reg: rax, rm: inMemory(at(rsi, step))})
		}
		a.op(addImm, operands{rm: register(rcx), imm: 1})
		a.op(cmp64, operands{reg: rcx, rm: inMemory(at(rsi, stateLeft))})
		a.jump(ifBelow, again)
	})
	if strided {
		l.add(inst{row: movStore, gpr: rax, rm: fromReg(s.base)})
	}
}

// storeLanes stores masks as a word with one bit per lane.
func (l *lowerer) storeLanes(ms []vreg, off int) {
	if l.isa == AVX512 {
		if l.lanes < 64 {
			l.add(inst{row: movImm, rm: inState(off)})
		}
		for p, m := range ms {
			if l.maskLanes == 8 {
				l.store(kmovbStore, m, inState(off+p))
			} else {
				l.store(kmovwStore, m, inState(off+2*p))
			}
		}
		return
	}
	l.store(movStore, l.bitsOf(ms), inState(off))
}

// loadLanes is the opposite of storeLanes.
func (l *lowerer) loadLanes(dst []vreg, off int) {
	if l.isa == AVX512 {
		for p, m := range dst {
			if l.maskLanes == 8 {
				l.op2(kmovb, m, inState(off+p))
			} else {
				l.op2(kmovw, m, inState(off+2*p))
			}
		}
		return
	}
	all := l.vector()
	l.op2(vpbroadcastq, all, inState(off))
	for p, m := range dst {
		x := l.vector()
		var w [4]uint64
		if l.maskLanes == 4 {
			for i := range w {
				w[i] = 1 << (4*p + i)
			}
		} else {
			for i := range w {
				w[i] = 1<<(8*p+2*i) | 1<<(8*p+2*i+1)<<32
			}
		}
		b := l.poolVector(constantKey{uint64(p), -5}, l.words(w[:]...))
		l.op3(vandpd, x, all, fromReg(b))
		if l.maskLanes == 4 {
			l.op3(vpcmpeqq, m, x, fromReg(b))
		} else {
			l.op3(vpcmpeqd, m, x, fromReg(b))
		}
	}
}

// nextGroup goes on to the next group of the row, if there is one.
func (l *lowerer) nextGroup(first int) {
	f := &l.fr
	for i := range f.streams {
		if s := &f.streams[i]; s.used && s.access == CountStep {
			for _, v := range s.parts {
				l.op3(vpaddq, v, v, fromReg(s.steps))
			}
		}
	}
	rowEnd := l.a.newLabel()
	l.addImm(f.index, l.lanes)
	l.jump(ifNotSign, rowEnd)
	l.poll(f.group, len(l.insts)-first)
	l.place(rowEnd)
}

func (l *lowerer) addImm(r vreg, x int) {
	row := addImm4
	if x == int(int8(x)) {
		row = addImm
	}
	l.add(inst{row: row, reg: r, v: r, imm: int32(x)})
}

// here is how many instructions come before this place, once they are encoded.
func (l *lowerer) here() *int {
	n := new(int)
	l.fixed(func(a *assembler) { *n = a.count })
	return n
}

// pollSince is poll of a row that begins at a place; nil is for one that polls inside.
func (l *lowerer) pollSince(head label, from *int) {
	l.fixed(func(a *assembler) {
		n := 16
		if from != nil {
			n = a.count - *from
		}
		a.op(subImm4, operands{rm: register(budget), imm: int32(n)})
	})
	l.jump(ifGreater, head)
	l.add(inst{special: exitCode, imm: int32(ExitPaused), label: head})
}

// nextRow goes on to the next row, if there is one.
func (l *lowerer) nextRow(from *int) {
	if l.k.Levels == 0 {
		l.add(inst{special: loopEnd})
		return
	}
	f := &l.fr
	goOn := func(d int, head label) {
		for i := range f.streams {
			if s := &f.streams[i]; s.word != 0 {
				l.op3(add64, s.word, s.word, inState(s.goes+8*d))
			}
		}
		l.pollSince(head, from)
	}
	above := l.a.newLabel()
	l.addImm(f.row, 1)
	l.op2(cmp64, f.row, inState(f.rows))
	l.jump(ifNotBelow, above)
	goOn(0, f.rowHead)
	l.add(inst{special: loopEnd})
	l.place(above)
	l.loadInt(f.row, 0)
	for d := 1; d < l.k.Levels; d++ {
		block, n := l.newGPR(), l.newGPR()
		l.add(inst{row: movLoad, reg: block, rm: inState(stateBlock)})
		counter := address(block, 0, 0, int32(BlockRow+8*d))
		l.op2(movLoad, n, counter)
		l.addImm(n, 1)
		l.op2(cmp64, n, address(block, 0, 0, int32(BlockRows+8*d)))
		above = l.a.newLabel()
		l.jump(ifNotBelow, above)
		l.store(movStore, n, counter)
		goOn(d, f.above)
		l.place(above)
		l.add(inst{row: movImm, rm: counter})
	}
	if l.k.Levels > 1 {
		l.add(inst{special: loopEnd})
	}
}

// storePlace keeps a value in the state and says where.
func (l *lowerer) storePlace(x ir.Value) Place {
	t := l.f.Types[x]
	v := &l.vals[x]
	switch {
	case v.known || v.gpr != 0 && v.shape == shapeUniform:
		p := Place{Type: t, Offset: l.allocateState(8, 8), One: true}
		l.store(movStore, l.gpr(x), inState(p.Offset))
		return p
	case v.shape == shapeUniform:
		p := Place{Type: t, Offset: l.allocateState(8, 8), One: true}
		r := l.newGPR()
		out := vmovqOut
		if t == ir.F32 {
			out = vmovdOut
		}
		l.add(inst{row: out, reg: v.parts[0], rm: fromReg(r)})
		l.store(movStore, r, inState(p.Offset))
		return p
	case t == ir.Bool:
		p := Place{Type: t, Offset: l.allocateState(8, 8)}
		l.storeLanes(l.masks(x), p.Offset)
		return p
	}
	p := l.newPlace(t)
	for i, r := range l.vecs(x) {
		l.store(vmovupdStore, r, inState(p.Offset+i*l.regBytes))
	}
	return p
}

func (l *lowerer) newPlace(t ir.Type) Place {
	return Place{Type: t, Offset: l.allocateState(max(l.regBytes, l.lanes*laneSize(t)), 64)}
}

// callout has Go carry an instruction out for the active lanes.
func (l *lowerer) callout(in *ir.Instr) {
	l.narrow, l.calledOut = false, true
	s := Site{Instr: in, Active: l.allocateState(8, 8)}
	for _, x := range in.Args {
		s.In = append(s.In, l.storePlace(x))
	}
	l.storeLanes(l.active(), s.Active)
	number := len(l.sites)
	l.sites = append(l.sites, s)
	back := l.a.newLabel()
	l.fixed(func(a *assembler) {
		a.op(movLoad, operands{reg: rax, rm: inMemory(at(rsi, stateBlock))})
		a.op(movImm, operands{rm: inMemory(at(rax, BlockSite)), imm: int32(number)})
	})
	l.add(inst{special: exitCode, imm: int32(ExitCallout), label: back})
	l.place(back)
	for _, x := range in.Results {
		t := l.f.Types[x]
		dst := l.into[x]
		if dst == nil || l.an.shape(x) != shapeVarying {
			dst = l.newParts(t)
		}
		p := Place{Type: t, Offset: 0}
		if t == ir.Bool {
			p.Offset = l.allocateState(8, 8)
			l.loadLanes(dst, p.Offset)
		} else {
			p = l.newPlace(t)
			for i, r := range dst {
				l.op2(vmovupd, r, inState(p.Offset+i*l.regBytes))
			}
		}
		l.sites[number].Out = append(l.sites[number].Out, p)
		l.defineFromGroup(x, dst)
	}
}

// defineFromGroup defines a value of which all lanes are computed, also where it is
// uniform. The lanes that are not active may have anything, so that one of those
// that are has to be found.
func (l *lowerer) defineFromGroup(x ir.Value, dst []vreg) {
	t := l.f.Types[x]
	if l.an.shape(x) != shapeUniform {
		l.define(x, dst)
		return
	}
	buffer := l.newPlace(t)
	word := l.allocateState(8, 8)
	l.storeLanes(l.active(), word)
	lane, bit := l.newGPR(), l.newGPR()
	if t == ir.Bool {
		set := l.allocateState(8, 8)
		l.storeLanes(dst, set)
		w := l.newGPR()
		l.op2(movLoad, w, inState(set))
		l.op2(tzcnt, lane, inState(word))
		l.add(inst{row: shrx, reg: bit, rm: fromReg(w), v: lane})
		r := l.newGPR()
		l.add(inst{row: andImm, reg: r, v: bit, imm: 1})
		l.defineGPR(x, r)
		return
	}
	for i, r := range dst {
		l.store(vmovupdStore, r, inState(buffer.Offset+i*l.regBytes))
	}
	l.op2(tzcnt, lane, inState(word))
	// No lane at all gives 64: the first will do.
	l.add(inst{row: andImm, reg: bit, v: lane, imm: int32(l.lanes - 1)})
	from := source{isMem: true, index: bit, mem: memory{base: rsi, indexed: true, scale: uint8(bits.TrailingZeros(uint(laneSize(t)))), disp: int32(buffer.Offset)}}
	switch t {
	case ir.F64, ir.F32:
		v := l.set(x)
		v.parts = []vreg{l.vector()}
		row := vbroadcastsd
		if t == ir.F32 {
			row = vbroadcastss
		}
		l.op2(row, v.parts[0], from)
		return
	}
	r := l.newGPR()
	row := movLoad
	if laneSize(t) == 4 {
		row = movLoad32
		if t.IsSigned() {
			row = movsxd
		}
	}
	l.op2(row, r, from)
	l.defineGPR(x, r)
}

// faultIf lets the active lanes of ms fail at in: what they failed at is noted, and
// they leave all regions.
func (l *lowerer) faultIf(ms []vreg, in *ir.Instr) {
	if l.narrow {
		// Of a uniform value: one lane speaks for all.
		l.narrow = false
		if ms[0] == l.top().mask[0] {
			l.faultIfScalar(always, in)
			l.narrow = true
			return
		}
		bit := l.firstBit(ms[0])
		l.add(inst{row: testReg, reg: bit, rm: fromReg(bit)})
		l.faultIfScalar(ifNotEqual, in)
		l.narrow = true
		return
	}
	here := l.newMasks(len(ms))
	for p, m := range l.active() {
		l.t.maskAnd(l, here[p], ms[p], m)
	}
	l.test(here)
	l.failing(ifNotEqual, in, here)
}

// reserveFaults gives the description of faults a place.
func (l *lowerer) reserveFaults() {
	l.fault = FaultPlace{Lanes: l.allocateState(8, 8), Sites: l.allocateState(4*l.lanes, 64), Values: l.allocateState(8*l.lanes*MaxFaultValues, 64)}
}

// faultIfScalar lets all active lanes fail at in under a condition.
func (l *lowerer) faultIfScalar(c condition, in *ir.Instr) { l.failing(c, in, nil) }

func (l *lowerer) failing(c condition, in *ir.Instr, here []vreg) {
	if l.fault.Lanes == 0 {
		l.reserveFaults()
	}
	number := int32(len(l.faults))
	l.faults, l.faultFuncs = append(l.faults, in), append(l.faultFuncs, l.f)
	back := l.a.newLabel()
	l.outOfLine(c, func() {
		if here == nil {
			here = l.newMasks(len(l.active()))
			for p, m := range l.active() {
				l.copy(here[p], m)
			}
		}
		// All such places share the memory in which operands wait.
		outer := l.state
		if l.faultArea == 0 {
			l.faultArea = l.allocateState(128+MaxFaultValues*(64+max(l.regBytes, 8*l.lanes)), 64)
			outer = l.state
		}
		l.state = l.faultArea
		word := l.allocateState(8, 8)
		var from []Place
		for _, x := range in.Args {
			from = append(from, l.storePlace(x))
		}
		l.storeLanes(here, word)
		l.state = outer
		again, none := l.a.newLabel(), l.a.newLabel()
		place, lanes := l.fault, l.lanes
		l.fixed(func(a *assembler) {
			a.op(movLoad, operands{reg: rax, rm: inMemory(at(rsi, int32(word)))})
			a.op(movLoad, operands{reg: rdx, rm: inMemory(at(rsi, int32(place.Lanes)))})
			a.op(or64, operands{reg: rdx, rm: register(rax)})
			a.op(movStore, operands{reg: rdx, rm: inMemory(at(rsi, int32(place.Lanes)))})
			a.op(testReg, operands{reg: rax, rm: register(rax)})
			a.jump(ifEqual, none)
			a.place(again)
			a.op(tzcnt, operands{reg: rcx, rm: register(rax)})
			a.op(movImm32, operands{rm: register(rdx), imm: number})
			a.op(movStore32, operands{reg: rdx, rm: inMemory(memory{base: rsi, indexed: true, index: rcx, scale: 2, disp: int32(place.Sites)})})
			for i, p := range from {
				m, load := at(rsi, int32(p.Offset)), movLoad
				if !p.One {
					m = memory{base: rsi, indexed: true, index: rcx, scale: uint8(bits.TrailingZeros(uint(laneSize(p.Type)))), disp: int32(p.Offset)}
					if laneSize(p.Type) == 4 {
						load = movLoad32
						if p.Type.IsSigned() {
							load = movsxd
						}
					}
				}
				a.op(load, operands{reg: rdx, rm: inMemory(m)})
				a.op(movStore, operands{reg: rdx, rm: inMemory(memory{base: rsi, indexed: true, index: rcx, scale: 3, disp: int32(place.Values + 8*lanes*i)})})
			}
			a.op(lea, operands{reg: rdx, rm: inMemory(at(rax, -1))})
			a.op(and64, operands{reg: rax, rm: register(rdx)})
			a.jump(ifNotEqual, again)
			a.place(none)
		})
		for _, r := range l.stack {
			if r.own {
				for p := range here {
					l.t.maskAndNot(l, r.mask[p], r.mask[p], here[p])
				}
			}
		}
		// Where nobody is left, not even around it, indices and conditions are not to be relied on.
		for _, r := range l.stack {
			if r.own {
				l.jumpIfEmpty(r.mask, r.end)
			}
		}
		l.jump(always, back)
	})
	l.place(back)
}
