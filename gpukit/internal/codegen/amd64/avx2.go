package amd64

import "gpunotes/gpukit/internal/ir"

// avx2 has masks in vectors: all bits of a lane, or none.
type avx2 struct{}

func (avx2) lanes() int     { return 4 }
func (avx2) maskKind() kind { return vec }

func (avx2) splat(l *lowerer, bits uint64) memory { return l.words(bits, bits, bits, bits) }

func (t avx2) loadSplat(l *lowerer, dst vreg, bits uint64) {
	l.op2(vmovupd, dst, fromMem(t.splat(l, bits)))
}

func (avx2) broadcast(l *lowerer, dst vreg, gpr uint8) {
	x := l.vector()
	l.op2(vmovq, x, source{gpr: gpr})
	l.op2(vpbroadcastq, dst, fromReg(x))
}

func (t avx2) constMask(l *lowerer, dst vreg, set bool) {
	bits := uint64(0)
	if set {
		bits = ^bits
	}
	t.loadSplat(l, dst, bits)
}

func (avx2) maskAnd(l *lowerer, dst, x, y vreg)    { l.op3(vandpd, dst, x, fromReg(y)) }
func (avx2) maskAndNot(l *lowerer, dst, x, y vreg) { l.op3(vandnpd, dst, y, fromReg(x)) }
func (avx2) maskOr(l *lowerer, dst, x, y vreg)     { l.op3(vorpd, dst, x, fromReg(y)) }
func (avx2) maskXor(l *lowerer, dst, x, y vreg)    { l.op3(vxorpd, dst, x, fromReg(y)) }
func (avx2) maskNot(l *lowerer, dst, x vreg)       { l.op3(vxorpd, dst, x, l.splat(^uint64(0))) }

func (avx2) test(l *lowerer, m vreg) { l.op2(vtestpd, m, fromReg(m)) }

func (avx2) blend(l *lowerer, dst, m vreg, x source, y vreg) {
	l.add(inst{row: vblendvpd, reg: dst, v: y, rm: x, c: m})
}

func (t avx2) blendMask(l *lowerer, dst, m, x, y vreg) { t.blend(l, dst, m, fromReg(x), y) }

func (avx2) compareFloat(l *lowerer, dst vreg, predicate int32, x vreg, y source) {
	l.op3i(vcmppd, dst, x, y, predicate)
}

// inReg is s in a register.
func (l *lowerer) inReg(s source) vreg {
	if !s.isMem {
		return s.v
	}
	v := l.vector()
	l.op2(vmovupd, v, s)
	return v
}

// flipped moves the unsigned order to the signed one.
func (l *lowerer) flipped(s source) vreg {
	v := l.vector()
	if s.isMem {
		l.op3(vxorpd, v, l.load(signBit), s)
	} else {
		l.op3(vxorpd, v, s.v, l.splat(signBit))
	}
	return v
}

// compareInt has > and = of signed numbers to begin with.
func (t avx2) compareInt(l *lowerer, dst vreg, op ir.Op, signed bool, x vreg, y source) {
	if op == ir.OpEq {
		l.op3(vpcmpeqq, dst, x, y)
		return
	}
	m := l.vector()
	switch {
	case op == ir.OpNe:
		l.op3(vpcmpeqq, m, x, y)
		t.maskNot(l, dst, m)
		return
	case !signed:
		x, y = l.flipped(fromReg(x)), fromReg(l.flipped(y))
	}
	switch op {
	case ir.OpGt:
		l.op3(vpcmpgtq, dst, x, y)
	case ir.OpLt:
		l.op3(vpcmpgtq, dst, l.inReg(y), fromReg(x))
	case ir.OpLe:
		l.op3(vpcmpgtq, m, x, y)
		t.maskNot(l, dst, m)
	case ir.OpGe:
		l.op3(vpcmpgtq, m, l.inReg(y), fromReg(x))
		t.maskNot(l, dst, m)
	}
}

// mulInt: the product of the low halves, and the sum of the mixed ones 32 bits
// higher.
func (avx2) mulInt(l *lowerer, dst, x vreg, y source) {
	b := l.inReg(y)
	xh, yh, p, q, low := l.vector(), l.vector(), l.vector(), l.vector(), l.vector()
	l.op2i(vpsrlq, xh, fromReg(x), 32)
	l.op2i(vpsrlq, yh, fromReg(b), 32)
	l.op3(vpmuludq, p, xh, fromReg(b))
	l.op3(vpmuludq, q, x, fromReg(yh))
	l.op3(vpmuludq, low, x, fromReg(b))
	l.op3(vpaddq, p, p, fromReg(q))
	l.op2i(vpsllq, p, fromReg(p), 32)
	l.op3(vpaddq, dst, p, fromReg(low))
}

func (t avx2) minMaxInt(l *lowerer, dst vreg, max, signed bool, x vreg, y source) {
	m := l.vector()
	t.compareInt(l, m, ir.OpGt, signed, x, y)
	if max {
		t.blend(l, dst, m, fromReg(x), l.inReg(y))
	} else {
		t.blend(l, dst, m, y, x)
	}
}

// shiftRightSigned flips the bits of negative numbers, shifts zeros in and
// flips back.
func (avx2) shiftRightSigned(l *lowerer, dst, x, n vreg, k int32) {
	sign, u := l.vector(), l.vector()
	l.op3(vpcmpgtq, sign, l.load(0), fromReg(x))
	l.op3(vxorpd, u, x, fromReg(sign))
	if n == 0 {
		l.op2i(vpsrlq, u, fromReg(u), k)
	} else {
		l.op3(vpsrlvq, u, u, fromReg(n))
	}
	l.op3(vxorpd, dst, u, fromReg(sign))
}

// fromInt puts the halves into the mantissas of 2^52 and 2^84; taking the two
// powers away from the upper one is exact, so that only the last sum rounds.
// The sign bit is made an unsigned one and taken away too.
func (avx2) fromInt(l *lowerer, dst, x vreg, signed bool) {
	const low, high = 0x4330000000000000, 0x4530000000000000 // 2^52, 2^84
	upper, both := uint64(high), uint64(high|0x100000)
	if signed {
		upper |= 1 << 31
		both |= 1 << 31
	}
	a, b := l.vector(), l.vector()
	l.op3i(vpblendd, a, x, l.splat(low), 0xAA)
	l.op2i(vpsrlq, b, fromReg(x), 32)
	l.op3(vxorpd, b, b, l.splat(upper))
	l.op3(vsubpd, b, b, l.splat(both))
	l.op3(vaddpd, dst, b, fromReg(a))
}

// toInt splits the truncated number into halves, which the mantissa of a large
// sum shows as integers, and puts the limits where it is out of range.
func (t avx2) toInt(l *lowerer, dst, x vreg, signed bool) {
	const half, magic = 1 << 32, 3 << 51
	whole, hi, lo, r := l.vector(), l.vector(), l.vector(), l.vector()
	l.op2i(vroundpd, whole, fromReg(x), 3)
	l.op3(vmulpd, hi, whole, l.splatF(1.0/half))
	l.op2i(vroundpd, hi, fromReg(hi), 1)
	l.op3(vmulpd, lo, hi, l.splatF(half))
	l.op3(vsubpd, lo, whole, fromReg(lo))
	l.op3(vaddpd, lo, lo, l.splatF(1<<52))
	l.op3(vaddpd, hi, hi, l.splatF(magic))
	l.op2i(vpsllq, hi, fromReg(hi), 32)
	l.op3i(vpblendd, r, lo, fromReg(hi), 0xAA)
	min, max, least, top := uint64(0), ^uint64(0), 0.0, 1.0*(1<<63)*2
	if signed {
		min, max, least, top = signBit, signBit-1, -(1 << 63), 1<<63
	}
	out := l.vector()
	t.compareFloat(l, out, less, x, l.splatF(least))
	t.blend(l, r, out, l.splat(min), r)
	t.compareFloat(l, out, greaterEqual, x, l.splatF(top))
	t.blend(l, r, out, l.splat(max), r)
	t.compareFloat(l, out, ordered, x, fromReg(x))
	l.op3(vandpd, dst, r, fromReg(out))
}

func (t avx2) tail(l *lowerer, dst vreg) {
	left := l.vector()
	t.broadcast(l, left, r8q)
	l.op3(vpcmpgtq, dst, left, fromMem(l.words(0, 1, 2, 3)))
}

func (avx2) loadMasked(l *lowerer, dst, m vreg, from memory) {
	l.add(inst{row: vmaskmovpd, reg: dst, v: m, rm: fromMem(from)})
}

// storeMasked stores without a mask where it can: masked stores are slow on
// some processors.
func (t avx2) storeMasked(l *lowerer, src, m vreg, to memory) {
	part, end := l.a.newLabel(), l.a.newLabel()
	l.jumpIfTail(part)
	l.add(inst{row: vmovupdStore, reg: src, rm: fromMem(to)})
	l.jump(always, end)
	l.place(part)
	l.add(inst{row: vmaskmovpdStore, reg: src, v: m, rm: fromMem(to)})
	l.place(end)
}

func (l *lowerer) jumpIfTail(to label) {
	l.fixed(func(a *assembler) { a.op(cmpImm, operands{rm: register(r8q), imm: 4}) })
	l.jump(ifBelow, to)
}

// loadBools reads no byte behind the last element.
func (t avx2) loadBools(l *lowerer, dst, _ vreg) {
	part, end := l.a.newLabel(), l.a.newLabel()
	l.jumpIfTail(part)
	l.fixed(func(a *assembler) { a.op(movLoad32, operands{reg: rbx, rm: inMemory(element(ir.Bool))}) })
	l.jump(always, end)
	l.place(part)
	l.fixed(func(a *assembler) {
		e := element(ir.Bool)
		a.op(movzxByte, operands{reg: rbx, rm: inMemory(e)})
		for e.disp = 1; e.disp < 3; e.disp++ {
			a.op(cmpImm, operands{rm: register(r8q), imm: e.disp + 1})
			a.jump(ifBelow, end)
			a.op(movzxByte, operands{reg: r11, rm: inMemory(e)})
			a.op(shl32, operands{rm: register(r11), imm: 8 * e.disp})
			a.op(or32, operands{reg: r11, rm: register(rbx)})
		}
	})
	l.place(end)
	x := l.vector()
	l.op2(vmovd, x, source{gpr: rbx})
	l.op2(vpmovsxbq, x, fromReg(x))
	l.op3(vpcmpgtq, dst, x, l.splat(0))
}

// storeBools spreads the four bits of the mask over four bytes.
func (t avx2) storeBools(l *lowerer, src, _ vreg) {
	part, end := l.a.newLabel(), l.a.newLabel()
	l.add(inst{row: vmovmskpd, gpr: rbx, rm: fromReg(src)})
	l.fixed(func(a *assembler) {
		a.op(imul32Imm, operands{reg: rbx, rm: register(rbx), imm: 1 | 1<<7 | 1<<14 | 1<<21})
		a.op(and32Imm, operands{rm: register(rbx), imm: 0x01010101})
	})
	l.jumpIfTail(part)
	l.fixed(func(a *assembler) { a.op(movStore32, operands{reg: rbx, rm: inMemory(element(ir.Bool))}) })
	l.jump(always, end)
	l.place(part)
	l.fixed(func(a *assembler) {
		e := element(ir.Bool)
		a.op(movStore8, operands{reg: rbx, rm: inMemory(e)})
		for e.disp = 1; e.disp < 3; e.disp++ {
			a.op(cmpImm, operands{rm: register(r8q), imm: e.disp + 1})
			a.jump(ifBelow, end)
			a.op(shr32, operands{rm: register(rbx), imm: 8})
			a.op(movStore8, operands{reg: rbx, rm: inMemory(e)})
		}
	})
	l.place(end)
}
