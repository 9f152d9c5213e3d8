package amd64

import "gpunotes/gpukit/internal/ir"

// avx512 has masks in k registers.
type avx512 struct{}

func (avx512) lanes() int     { return 8 }
func (avx512) maskKind() kind { return mask }

func (avx512) splat(l *lowerer, bits uint64) memory {
	m := l.words(bits)
	m.broadcast = true
	return m
}

func (avx512) loadSplat(l *lowerer, dst vreg, bits uint64) {
	l.op2(vbroadcastsd, dst, fromMem(l.words(bits)))
}

func (avx512) broadcast(l *lowerer, dst vreg, gpr uint8) {
	l.op2(vpbroadcastqR, dst, source{gpr: gpr})
}

func (avx512) constMask(l *lowerer, dst vreg, set bool) {
	// Reading dst has no meaning here: any register gives the same.
	l.add(inst{special: undefined, reg: dst})
	if set {
		l.op3(kxnorb, dst, dst, fromReg(dst))
	} else {
		l.op3(kxorb, dst, dst, fromReg(dst))
	}
}

func (avx512) maskAnd(l *lowerer, dst, x, y vreg)    { l.op3(kandb, dst, x, fromReg(y)) }
func (avx512) maskAndNot(l *lowerer, dst, x, y vreg) { l.op3(kandnb, dst, y, fromReg(x)) }
func (avx512) maskOr(l *lowerer, dst, x, y vreg)     { l.op3(korb, dst, x, fromReg(y)) }
func (avx512) maskXor(l *lowerer, dst, x, y vreg)    { l.op3(kxorb, dst, x, fromReg(y)) }
func (avx512) maskNot(l *lowerer, dst, x vreg)       { l.op2(knotb, dst, fromReg(x)) }

func (avx512) test(l *lowerer, m vreg) { l.op2(kortestb, m, fromReg(m)) }

func (avx512) blend(l *lowerer, dst, m vreg, x source, y vreg) {
	l.add(inst{row: vblendmpd, reg: dst, v: y, rm: x, k: m})
}

func (avx512) blendMask(l *lowerer, dst, m, x, y vreg) {
	t, u := l.new(mask), l.new(mask)
	l.op3(kandb, t, m, fromReg(x))
	l.op3(kandnb, u, m, fromReg(y))
	l.op3(korb, dst, t, fromReg(u))
}

func (avx512) compareFloat(l *lowerer, dst vreg, predicate int32, x vreg, y source) {
	l.op3i(vcmppdK, dst, x, y, predicate)
}

func (avx512) compareInt(l *lowerer, dst vreg, op ir.Op, signed bool, x vreg, y source) {
	r := vpcmpuq
	if signed {
		r = vpcmpq
	}
	l.op3i(r, dst, x, y, map[ir.Op]int32{ir.OpEq: 0, ir.OpLt: 1, ir.OpLe: 2, ir.OpNe: 4, ir.OpGe: 5, ir.OpGt: 6}[op])
}

func (avx512) mulInt(l *lowerer, dst, x vreg, y source) { l.op3(vpmullq, dst, x, y) }

func (avx512) minMaxInt(l *lowerer, dst vreg, max, signed bool, x vreg, y source) {
	r := vpminuq
	switch {
	case max && signed:
		r = vpmaxsq
	case max:
		r = vpmaxuq
	case signed:
		r = vpminsq
	}
	l.op3(r, dst, x, y)
}

func (avx512) shiftRightSigned(l *lowerer, dst, x, n vreg, k int32) {
	if n == 0 {
		l.op2i(vpsraq, dst, fromReg(x), k)
		return
	}
	l.op3(vpsravq, dst, x, fromReg(n))
}

func (avx512) fromInt(l *lowerer, dst, x vreg, signed bool) {
	if signed {
		l.op2(vcvtqq2pd, dst, fromReg(x))
	} else {
		l.op2(vcvtuqq2pd, dst, fromReg(x))
	}
}

// toInt: the instruction gives the lowest integer for what it cannot convert,
// the largest one if unsigned.
func (t avx512) toInt(l *lowerer, dst, x vreg, signed bool) {
	u, v := l.vector(), l.vector()
	if !signed {
		// The maximum with 0 is 0 for a NaN, the second operand.
		l.op3(vmaxpd, u, x, fromReg(l.load(0)))
		l.op2(vcvttpd2uqq, dst, fromReg(u))
		return
	}
	nan, big := l.newMask(), l.newMask()
	t.compareFloat(l, nan, unordered, x, fromReg(x))
	t.compareFloat(l, big, greaterEqual, x, l.splatF(1<<63))
	l.op2(vcvttpd2qq, u, fromReg(x))
	t.blend(l, v, big, l.splat(signBit-1), u)
	t.blend(l, dst, nan, l.splat(0), v)
}

func (t avx512) tail(l *lowerer, dst vreg) {
	left := l.vector()
	t.broadcast(l, left, r8q)
	t.compareInt(l, dst, ir.OpGt, false, left, fromMem(l.words(0, 1, 2, 3, 4, 5, 6, 7)))
}

func (avx512) loadMasked(l *lowerer, dst, m vreg, from memory) {
	l.add(inst{row: vmovupd, reg: dst, rm: fromMem(from), k: m, zero: true})
}

func (avx512) storeMasked(l *lowerer, src, m vreg, to memory) {
	l.add(inst{row: vmovupdStore, reg: src, rm: fromMem(to), k: m})
}

func (avx512) loadBools(l *lowerer, dst, m vreg) {
	b := l.vector()
	l.add(inst{row: vmovdqu8, reg: b, rm: fromMem(element(ir.Bool)), k: m, zero: true})
	l.op3(vptestmb, dst, b, fromReg(b))
}

func (avx512) storeBools(l *lowerer, src, m vreg) {
	b, one := l.vector(), l.words(0x0101010101010101)
	one.broadcast = true
	l.op2(vpmovm2b, b, fromReg(src))
	l.op3(vandpdX, b, b, fromMem(one))
	l.add(inst{row: vmovdqu8Store, reg: b, rm: fromMem(element(ir.Bool)), k: m})
}
