package amd64

import "gpunotes/gpukit/internal/ir"

// What vectors cannot do is done in a loop over the active lanes, in general
// registers, the first lane first. Operands and results go through areas of the state.

// laneAreas is how many registers of all lanes there is room for: indices, two
// operands and a result.
const laneAreas = 4

func (l *lowerer) area(n int) int {
	size := max(l.regBytes, 8*l.lanes)
	if l.mem.areas == 0 {
		l.mem.areas = l.allocateState(laneAreas*size, 64)
	}
	return l.mem.areas + n*size
}

// keep puts the registers of a value into an area.
func (l *lowerer) keep(area int, vs []vreg) {
	for p, v := range vs {
		l.store(vmovupsStore, v, inState(l.area(area)+p*l.regBytes))
	}
}

// kept is what an area has of a lane, of a value of type t.
func (l *lowerer) kept(area int, t ir.Type, lane vreg) source {
	return source{isMem: true, index: lane, mem: memory{base: rsi, indexed: true, scale: log2(laneSize(t)), disp: int32(l.area(area))}}
}

// fetch are the registers of a value in an area.
func (l *lowerer) fetch(area int, t ir.Type) []vreg {
	vs := l.newVectors(l.parts(t))
	for p, v := range vs {
		l.op2(vmovups, v, inState(l.area(area)+p*l.regBytes))
	}
	return vs
}

// laneLoad and laneStore move lanes of type t between an area and a general register.
func (l *lowerer) laneLoad(t ir.Type) *row {
	if laneSize(t) == 8 {
		return movLoad
	}
	return movLoad32
}

func (l *lowerer) laneStore(t ir.Type) *row {
	if laneSize(t) == 8 {
		return movStore
	}
	return movStore32
}

// bitsOf has one bit per lane of mask parts, from bit 0 on.
func (l *lowerer) bitsOf(ms []vreg) vreg {
	r := kmovbTo
	switch {
	case l.isa == AVX2 && l.maskLanes == 4:
		r = vmovmskpd
	case l.isa == AVX2:
		r = vmovmskps
	case l.maskLanes == 16:
		r = kmovwTo
	}
	all := l.newGPR()
	for p, m := range ms {
		if p == 0 {
			l.op2(r, all, fromReg(m))
			continue
		}
		b := l.newGPR()
		l.op2(r, b, fromReg(m))
		l.add(inst{row: shl64, reg: b, v: b, imm: int32(p * l.maskLanes)})
		l.op3(or64, all, all, fromReg(b))
	}
	return all
}

// eachLane runs code for every active lane, in order. It neither fails nor leaves.
func (l *lowerer) eachLane(f func(lane vreg)) {
	left, lane, rest := l.bitsOf(l.active()), l.newGPR(), l.newGPR()
	again, end := l.a.newLabel(), l.a.newLabel()
	l.coldDepth++ // what is made here is not there for others
	l.add(inst{special: loopBegin})
	l.place(again)
	l.op2(tzcnt, lane, fromReg(left)) // carry if there is none
	l.jump(ifBelow, end)
	l.op2(lea, rest, address(left, 0, 0, -1))
	l.op3(and64, left, left, fromReg(rest))
	f(lane)
	l.jump(always, again)
	l.add(inst{special: loopEnd})
	l.coldDepth--
	l.place(end)
}

// indices keeps indices; the result gives that of a lane.
func (l *lowerer) indices(idx []vreg) func(lane vreg) vreg {
	l.keep(0, idx)
	return func(lane vreg) vreg {
		i := l.newGPR()
		l.op2(movLoad, i, l.kept(0, ir.I64, lane))
		return i
	}
}

// consecutive gives indices from first on.
func (l *lowerer) consecutive(first vreg) func(lane vreg) vreg {
	return func(lane vreg) vreg {
		i := l.newGPR()
		l.op2(lea, i, address(first, lane, 0, 0))
		return i
	}
}

// loadEach reads elements one by one.
func (l *lowerer) loadEach(t ir.Type, base vreg, index func(lane vreg) vreg) []vreg {
	h := held(t)
	l.eachLane(func(lane vreg) {
		v := l.newGPR()
		l.op2(loadRowOf(t), v, address(base, index(lane), scaleOf(t), 0))
		l.store(l.laneStore(h), v, l.kept(3, h, lane))
	})
	return l.fetch(3, h)
}

// storeEach writes elements one by one.
func (l *lowerer) storeEach(t ir.Type, base vreg, index func(lane vreg) vreg, vs []vreg) {
	h := held(t)
	l.keep(1, vs)
	l.eachLane(func(lane vreg) {
		v := l.newGPR()
		l.op2(l.laneLoad(h), v, l.kept(1, h, lane))
		l.store(storeRowOf(t), v, address(base, index(lane), scaleOf(t), 0))
	})
}

// atomicOps are the instructions of the kinds that combine two integers.
var atomicOps = [...]*row{ir.AtomicAdd: add64, ir.AtomicAnd: and64, ir.AtomicOr: or64, ir.AtomicXor: xor64}

// lowerAtomic goes through the active lanes. Of small integers that others see, Go
// carries it out, as there are locks to it.
func lowerAtomic(l *lowerer, in *ir.Instr, _ ir.Type, _ []vreg) {
	m := &l.f.Mems[in.Mem]
	t, index := m.Elem, in.Args[0]
	used := l.an.used[in.Results[0]]
	if m.Space != ir.Local && t.Size() < 4 {
		if l.f != l.k.Func {
			l.refuse(in.Pos, "an atomic operation on %v in a function that is called", t)
			return
		}
		l.callout(in)
		return
	}
	l.calledOut = true
	vs := l.vecs(in.Args[1])
	if m.Space != ir.Local && l.uniform(index) && !used && t.IsInt() && in.Kind <= ir.AtomicXor {
		l.atomicTogether(in.Kind, t, l.element(in.Mem, index), vs)
		return
	}
	l.keep(1, vs)
	if in.Kind == ir.CompareSwap {
		l.keep(2, l.vecs(in.Args[2]))
	}
	var place func(lane vreg) source
	if m.Space == ir.Local {
		at, to := l.indices(l.localIndices(t, index)), l.inLocal(in.Mem)
		place = func(lane vreg) source {
			to.index = at(lane)
			to.mem.indexed, to.mem.scale = true, log2(laneSize(t))
			return to
		}
	} else {
		base := l.memoryBase(in.Mem)
		at := l.indices(l.vecs(index))
		place = func(lane vreg) source { return address(base, at(lane), scaleOf(t), 0) }
	}
	l.eachLane(func(lane vreg) {
		to := place(lane)
		if m.Space == ir.Local {
			l.ownChange(in.Kind, t, to, lane)
		} else {
			l.sharedChange(in.Kind, t, to, lane)
		}
		if used { // RAX has the old value
			l.add(inst{row: l.laneStore(t), gpr: rax, rm: l.kept(3, t, lane)})
		}
	})
	if used {
		l.define(in.Results[0], l.fetch(3, t))
	}
}

// keptRow loads a lane of type t from an area so that comparisons of 64 bits are right.
func (l *lowerer) keptRow(t ir.Type) *row {
	if laneSize(t) == 4 && t.IsSigned() {
		return movsxd
	}
	return l.laneLoad(t)
}

func fixedReg(r uint8) source { return source{gpr: r} }

// combine is RDX = RAX kind x, of integers, x in a general register.
func (l *lowerer) combine(k ir.Kind, t ir.Type, x vreg) {
	l.add(inst{row: movLoad, gpr: rdx, rm: fixedReg(rax)})
	switch k {
	case ir.AtomicMin, ir.AtomicMax:
		l.add(inst{row: cmp64, gpr: rdx, rm: fromReg(x)})
		c := map[bool][2]condition{true: {ifGreater, ifLess}, false: {ifAbove, ifBelow}}[t.IsSigned()][k-ir.AtomicMin]
		l.add(inst{row: cmovcc[c], gpr: rdx, rm: fromReg(x)})
	case ir.Exchange:
		l.add(inst{row: movLoad, gpr: rdx, rm: fromReg(x)})
	default:
		l.add(inst{row: atomicOps[k], gpr: rdx, rm: fromReg(x)})
	}
}

// combineFloat is RDX = RAX kind x, of floats.
func (l *lowerer) combineFloat(k ir.Kind, t ir.Type, x vreg) {
	in, out := vmovq, vmovqOut
	add, lo, hi, or, xor, sub := vaddpd, vminpd, vmaxpd, vorpd, vxorpd, vsubpd
	if t == ir.F32 {
		in, out = vmovd, vmovdOut
		add, lo, hi, sub = vaddps, vminps, vmaxps, vsubps
	}
	old, v, r := l.vector(), l.vector(), l.vector()
	l.op2(in, old, fixedReg(rax))
	l.op2(in, v, fromReg(x))
	switch k {
	case ir.AtomicAdd:
		l.op3(add, r, old, fromReg(v))
	case ir.AtomicMin: // of two zeros and of a NaN the instruction gives the second operand
		a, b := l.vector(), l.vector()
		l.op3(lo, a, old, fromReg(v))
		l.op3(lo, b, v, fromReg(old))
		l.op3(or, r, a, fromReg(b))
	case ir.AtomicMax: // in the or of both answers only the sign of a zero may be wrong
		a, b, c, d := l.vector(), l.vector(), l.vector(), l.vector()
		l.op3(hi, a, old, fromReg(v))
		l.op3(hi, b, v, fromReg(old))
		l.op3(or, c, a, fromReg(b))
		l.op3(xor, d, a, fromReg(b))
		l.op3(sub, r, c, fromReg(d))
	}
	l.store(out, r, fixedReg(rdx))
}

// ownChange changes an element that no other worker sees: RAX is what was there.
func (l *lowerer) ownChange(k ir.Kind, t ir.Type, at source, lane vreg) {
	x := l.newGPR()
	l.op2(l.keptRow(t), x, l.kept(1, t, lane))
	l.add(inst{row: l.keptRow(t), gpr: rax, rm: at})
	switch {
	case k == ir.CompareSwap:
		y := l.newGPR()
		l.op2(l.keptRow(t), y, l.kept(2, t, lane))
		l.add(inst{row: movLoad, gpr: rdx, rm: fixedReg(rax)})
		l.add(inst{row: cmp64, gpr: rdx, rm: fromReg(x)})
		l.add(inst{row: cmovcc[ifEqual], gpr: rdx, rm: fromReg(y)})
	case t.IsFloat() && k != ir.Exchange:
		l.combineFloat(k, t, x)
	default:
		l.combine(k, t, x)
		if t.Size() < 4 { // wraps around
			ext := map[ir.Type]*row{ir.I8: movsxByte, ir.U8: movzxByte, ir.I16: movsxWord, ir.U16: movzxWord}[t]
			l.add(inst{row: ext, gpr: rdx, rm: fixedReg(rdx)})
		}
	}
	l.add(inst{row: l.laneStore(t), gpr: rdx, rm: at})
}

// sharedChange changes an element in one step: RAX is what was there.
func (l *lowerer) sharedChange(k ir.Kind, t ir.Type, at source, lane vreg) {
	xadd, cmpxchg, swap := lockXadd, lockCmpxchg, xchg
	if t.Size() == 4 {
		xadd, cmpxchg, swap = lockXadd32, lockCmpxchg32, xchg32
	}
	switch {
	case k == ir.AtomicAdd && t.IsInt():
		l.add(inst{row: l.laneLoad(t), gpr: rax, rm: l.kept(1, t, lane)})
		l.add(inst{row: xadd, gpr: rax, rm: at})
		return
	case k == ir.Exchange:
		l.add(inst{row: l.laneLoad(t), gpr: rax, rm: l.kept(1, t, lane)})
		l.add(inst{row: swap, gpr: rax, rm: at})
		return
	case k == ir.CompareSwap:
		l.add(inst{row: l.laneLoad(t), gpr: rax, rm: l.kept(1, t, lane)})
		l.add(inst{row: l.laneLoad(t), gpr: rdx, rm: l.kept(2, t, lane)})
		l.add(inst{row: cmpxchg, gpr: rdx, rm: at})
		return
	}
	x, again := l.newGPR(), l.a.newLabel()
	l.op2(l.keptRow(t), x, l.kept(1, t, lane))
	l.untilChanged(again, func() {
		l.add(inst{row: l.keptRow(t), gpr: rax, rm: at})
		if t.IsFloat() {
			l.combineFloat(k, t, x)
		} else {
			l.combine(k, t, x)
		}
		l.add(inst{row: cmpxchg, gpr: rdx, rm: at})
	})
}

// untilChanged repeats code that ends with a cmpxchg until nobody came in between.
func (l *lowerer) untilChanged(again label, f func()) {
	l.add(inst{special: loopBegin})
	l.place(again)
	f()
	l.jump(ifNotEqual, again)
	l.add(inst{special: loopEnd})
}

// atomicTogether combines the integers of all lanes first.
func (l *lowerer) atomicTogether(k ir.Kind, t ir.Type, at source, vs []vreg) {
	l.keep(1, vs)
	sum := l.newGPR()
	neutral := ir.Bits(0)
	switch low := ir.Bits(1) << (t.Bits() - 1); {
	case k == ir.AtomicAnd || k == ir.AtomicMin && !t.IsSigned():
		neutral = ir.Wrap(t, ^ir.Bits(0))
	case k == ir.AtomicMin:
		neutral = low - 1
	case k == ir.AtomicMax && t.IsSigned():
		neutral = ir.Wrap(t, low)
	}
	l.loadInt(sum, neutral)
	l.eachLane(func(lane vreg) {
		x := l.newGPR()
		l.op2(l.keptRow(t), x, l.kept(1, t, lane))
		l.add(inst{row: movLoad, gpr: rax, rm: fromReg(sum)})
		l.combine(k, t, x)
		l.op2(movLoad, sum, fixedReg(rdx))
	})
	xadd, cmpxchg := lockXadd, lockCmpxchg
	if t.Size() == 4 {
		xadd, cmpxchg = lockXadd32, lockCmpxchg32
	}
	if k == ir.AtomicAdd {
		l.add(inst{row: movLoad, gpr: rax, rm: fromReg(sum)})
		l.add(inst{row: xadd, gpr: rax, rm: at})
		return
	}
	l.untilChanged(l.a.newLabel(), func() {
		l.add(inst{row: l.keptRow(t), gpr: rax, rm: at})
		l.combine(k, t, sum)
		l.add(inst{row: cmpxchg, gpr: rdx, rm: at})
	})
}
