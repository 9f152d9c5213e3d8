package amd64

import "gpunotes/gpukit/internal/ir"

// avx512 has masks in k registers, of 8 or 16 lanes. What computes with masks takes 16
// bits in any case, what looks at them l.maskLanes.
type avx512 struct{}

func (avx512) lanes() int     { return 8 }
func (avx512) maskKind() kind { return mask }

func (avx512) constMask(l *lowerer, dst vreg, set bool) {
	// Reading dst has no meaning here: any register gives the same.
	l.add(inst{special: undefined, reg: dst})
	if set {
		l.op3(kxnorw, dst, dst, fromReg(dst))
	} else {
		l.op3(kxorw, dst, dst, fromReg(dst))
	}
}

func (avx512) maskAnd(l *lowerer, dst, x, y vreg)    { l.op3(kandw, dst, x, fromReg(y)) }
func (avx512) maskAndNot(l *lowerer, dst, x, y vreg) { l.op3(kandnw, dst, y, fromReg(x)) }
func (avx512) maskOr(l *lowerer, dst, x, y vreg)     { l.op3(korw, dst, x, fromReg(y)) }
func (avx512) maskXor(l *lowerer, dst, x, y vreg)    { l.op3(kxorw, dst, x, fromReg(y)) }
func (avx512) maskNot(l *lowerer, dst, x vreg)       { l.op2(knotw, dst, fromReg(x)) }

func (avx512) test(l *lowerer, m vreg) {
	r := kortestb
	if l.maskLanes == 16 {
		r = kortestw
	}
	l.op2(r, m, fromReg(m))
}

func (avx512) keep(l *lowerer, t ir.Type, dst, m vreg, x source) {
	l.add(inst{row: loadFull.of(t), reg: dst, rm: x, k: m, zero: true})
}

func (avx512) blendMask(l *lowerer, dst, m, x, y vreg) {
	t, u := l.newMask(), l.newMask()
	l.op3(kandw, t, m, fromReg(x))
	l.op3(kandnw, u, m, fromReg(y))
	l.op3(korw, dst, t, fromReg(u))
}

var intConditions = [ir.NumOps]int32{ir.OpEq: 0, ir.OpLt: 1, ir.OpLe: 2, ir.OpNe: 4, ir.OpGe: 5, ir.OpGt: 6}

func (avx512) compare(l *lowerer, t ir.Type, op ir.Op, dst, x vreg, y source) {
	switch {
	case t.IsFloat():
		l.op3i(rowPair{vcmppdK, vcmppsK}.of(t), dst, x, y, predicates[op])
	case t.IsSigned():
		l.op3i(rowPair{vpcmpq, vpcmpd}.of(t), dst, x, y, intConditions[op])
	default:
		l.op3i(rowPair{vpcmpuq, vpcmpud}.of(t), dst, x, y, intConditions[op])
	}
}

func (avx512) unordered(l *lowerer, t ir.Type, dst, x, y vreg, not bool) {
	p := unordered
	if not {
		p = ordered
	}
	l.op3i(rowPair{vcmppdK, vcmppsK}.of(t), dst, x, fromReg(y), p)
}

func (avx512) testBits(l *lowerer, x vreg, bits uint64, m vreg) {
	k := l.newMask()
	l.add(inst{row: vptestmq, reg: k, v: x, rm: l.splat(bits), k: m})
	l.op2(kortestb, k, fromReg(k))
}

func (avx512) mulInt(l *lowerer, dst, x, y vreg) { l.op3(vpmullq, dst, x, fromReg(y)) }

func (avx512) mulConst(l *lowerer, dst, x vreg, c uint64) { l.op3(vpmullq, dst, x, l.splat(c)) }

// minMaxRows are by width, then largest or smallest, then signed or not.
var minMaxRows = [2][2][2]*row{{{vpminud, vpminsd}, {vpmaxud, vpmaxsd}}, {{vpminuq, vpminsq}, {vpmaxuq, vpmaxsq}}}

func minMaxRow(t ir.Type, max bool) *row {
	return minMaxRows[bit(isWide(t))][bit(max)][bit(t.IsSigned())]
}

func (avx512) minMaxInt(l *lowerer, t ir.Type, dst vreg, max bool, x vreg, y source) {
	l.op3(minMaxRow(t, max), dst, x, y)
}

func (avx512) shiftRightSigned(l *lowerer, t ir.Type, dst, x, n vreg, k int32) {
	if n == 0 {
		l.op2i(rowPair{vpsraq, vpsrad}.of(t), dst, fromReg(x), k)
		return
	}
	l.op3(rowPair{vpsravq, vpsravd}.of(t), dst, x, fromReg(n))
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
	u := l.vector()
	if !signed {
		// The maximum with 0 is 0 for a NaN, the second operand.
		l.op3(vmaxpd, u, x, l.splat(0))
		l.op2(vcvttpd2uqq, dst, fromReg(u))
		return
	}
	number, big := l.newMask(), l.newMask()
	t.unordered(l, ir.F64, number, x, x, true)
	t.compare(l, ir.F64, ir.OpGe, big, x, l.splatF(1<<63))
	l.add(inst{row: vcvttpd2qq, reg: u, rm: fromReg(x), k: number, zero: true})
	l.blend(ir.I64, dst, big, l.splat(signBit-1), u)
}

func (avx512) floatFromUint32(l *lowerer, dst, x vreg) { l.op2(vcvtudq2ps, dst, fromReg(x)) }

func (t avx512) floatsFromUint32(l *lowerer, dst []vreg, x vreg) {
	for p, s := range l.halves(x, len(dst)) {
		l.op2(vcvtudq2pd, dst[p], fromReg(s))
	}
}

func (t avx512) floatFromInts(l *lowerer, dst, lo, hi vreg, signed bool) {
	r := vcvtuqq2ps
	if signed {
		r = vcvtqq2ps
	}
	l.eachToHalf(dst, lo, hi, func(d, x vreg) { l.op2(r, d, fromReg(x)) })
}

func (t avx512) truncate(l *lowerer, to ir.Type, dst, lo, hi vreg) {
	least, most := limits(to)
	l.eachToHalf(dst, lo, hi, func(d, x vreg) {
		u := l.vector()
		if to.IsUnsigned() {
			l.op3(vmaxpd, u, x, l.splat(0)) // 0 for a NaN
			if to != ir.U32 {
				l.op3(vminpd, u, u, l.splatF(most))
			}
			l.op2(vcvttpd2udq, d, fromReg(u))
			return
		}
		number := l.newMask()
		t.unordered(l, ir.F64, number, x, x, true)
		l.op3(vminpd, u, x, l.splatF(most))
		if to != ir.I32 { // what is too low gives the lowest
			l.op3(vmaxpd, u, u, l.splatF(least))
		}
		l.add(inst{row: vcvttpd2dq, reg: d, rm: fromReg(u), k: number, zero: true})
	})
}

func (t avx512) truncate32(l *lowerer, to ir.Type, dst, x vreg) {
	least, most := limits(to)
	u := l.vector()
	if to.IsUnsigned() {
		l.op3(vmaxps, u, x, l.splatOf(ir.F32, 0))
		if to != ir.U32 {
			l.op3(vminps, u, u, l.splatF32(most))
		}
		l.op2(vcvttps2udq, dst, fromReg(u))
		return
	}
	number := l.newMask()
	t.unordered(l, ir.F32, number, x, x, true)
	if to == ir.I32 {
		big := l.newMask()
		t.compare(l, ir.F32, ir.OpGe, big, x, l.splatF32(1<<31))
		l.add(inst{row: vcvttps2dq, reg: u, rm: fromReg(x), k: number, zero: true})
		l.blend(to, dst, big, l.splatOf(to, signBit32-1), u)
		return
	}
	l.op3(vminps, u, x, l.splatF32(most))
	l.op3(vmaxps, u, u, l.splatF32(least))
	l.add(inst{row: vcvttps2dq, reg: dst, rm: fromReg(u), k: number, zero: true})
}

func (t avx512) fromQuotients(l *lowerer, to ir.Type, dst, lo, hi vreg) {
	r := vcvttpd2dq
	if to == ir.U32 {
		r = vcvttpd2udq
	}
	l.eachToHalf(dst, lo, hi, func(d, x vreg) { l.op2(r, d, fromReg(x)) })
}

func (avx512) upper(l *lowerer, dst, x vreg) { l.op3i(valignq, dst, x, fromReg(x), 4) }

func (avx512) join(l *lowerer, dst, lo, hi vreg) { l.op3i(vinsertf64x4, dst, lo, fromReg(hi), 1) }

func (avx512) narrow(l *lowerer, dst, lo, hi vreg) {
	u := l.vector()
	l.copy(u, l.poolVector(evenLanes, l.words(0|2<<32, 4|6<<32, 8|10<<32, 12|14<<32, 16|18<<32, 20|22<<32, 24|26<<32, 28|30<<32)))
	l.op3(vpermi2d, u, lo, fromReg(hi))
	l.copy(dst, u)
}

func (avx512) upperHalves(l *lowerer, dst, even, odd vreg) {
	a, b := l.vector(), l.vector()
	l.op2i(vpsrlq, a, fromReg(even), 32)
	l.op3(vandpd, b, odd, l.splat(0xFFFFFFFF<<32))
	l.op3(vorpd, dst, a, fromReg(b))
}

func (avx512) rotateLeft(l *lowerer, t ir.Type, dst, x, n vreg, k int32) {
	if n == 0 {
		l.op2i(rowPair{vprolq, vprold}.of(t), dst, fromReg(x), k)
		return
	}
	l.op3(rowPair{vprolvq, vprolvd}.of(t), dst, x, fromReg(n))
}

func (avx512) leadingZeros(l *lowerer, t ir.Type, dst, x vreg) {
	l.op2(rowPair{vplzcntq, vplzcntd}.of(t), dst, fromReg(x))
}
