package amd64

import "gpunotes/gpukit/internal/ir"

// avx2 has masks in vectors: all bits of a lane, or none.
type avx2 struct{}

func (avx2) lanes() int     { return 4 }
func (avx2) maskKind() kind { return vec }

func (t avx2) constMask(l *lowerer, dst vreg, set bool) {
	bits := uint64(0)
	if set {
		bits = ^bits
	}
	l.copy(dst, l.constant(bits, 8))
}

func (avx2) maskAnd(l *lowerer, dst, x, y vreg)    { l.op3(vandpd, dst, x, fromReg(y)) }
func (avx2) maskAndNot(l *lowerer, dst, x, y vreg) { l.op3(vandnpd, dst, y, fromReg(x)) }
func (avx2) maskOr(l *lowerer, dst, x, y vreg)     { l.op3(vorpd, dst, x, fromReg(y)) }
func (avx2) maskXor(l *lowerer, dst, x, y vreg)    { l.op3(vxorpd, dst, x, fromReg(y)) }
func (avx2) maskNot(l *lowerer, dst, x vreg)       { l.op3(vxorpd, dst, x, l.splat(^uint64(0))) }

func (avx2) test(l *lowerer, m vreg) { l.op2(vtestps, m, fromReg(m)) }

func (avx2) testBits(l *lowerer, x vreg, bits uint64, m vreg) {
	u := l.vector()
	l.op3(vandpd, u, x, fromReg(m))
	l.op2(vptest, u, l.splat(bits))
}

func (avx2) blendMask(l *lowerer, dst, m, x, y vreg) {
	l.blend(ir.Bool, dst, m, fromReg(x), y)
}

func (avx2) keep(l *lowerer, _ ir.Type, dst, m vreg, x source) { l.op3(vandps, dst, m, x) }

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
func (l *lowerer) flipped(t ir.Type, s source) vreg {
	v := l.vector()
	if s.isMem {
		l.op3(vxorps, v, l.loadOf(t, signOf(t)), s)
	} else {
		l.op3(vxorps, v, s.v, l.splatOf(t, signOf(t)))
	}
	return v
}

// compare has > and = of signed integers to begin with.
func (t avx2) compare(l *lowerer, lane ir.Type, op ir.Op, dst, x vreg, y source) {
	if lane.IsFloat() {
		l.op3i(rowPair{vcmppd, vcmpps}.of(lane), dst, x, y, predicates[op])
		return
	}
	eq, gt := rowPair{vpcmpeqq, vpcmpeqd}.of(lane), rowPair{vpcmpgtq, vpcmpgtd}.of(lane)
	m := l.vector()
	switch {
	case op == ir.OpEq:
		l.op3(eq, dst, x, y)
		return
	case op == ir.OpNe:
		l.op3(eq, m, x, y)
		t.maskNot(l, dst, m)
		return
	case lane == ir.U32 && (op == ir.OpGe || op == ir.OpLe):
		l.op3(minMaxRow(lane, op == ir.OpGe), m, x, y)
		l.op3(eq, dst, m, fromReg(x))
		return
	case lane == ir.U64 || lane == ir.U32: // the shorter unsigned ones are positive as they are
		x, y = l.flipped(lane, fromReg(x)), fromReg(l.flipped(lane, y))
	}
	switch op {
	case ir.OpGt:
		l.op3(gt, dst, x, y)
	case ir.OpLt:
		l.op3(gt, dst, l.inReg(y), fromReg(x))
	case ir.OpLe:
		l.op3(gt, m, x, y)
		t.maskNot(l, dst, m)
	case ir.OpGe:
		l.op3(gt, m, l.inReg(y), fromReg(x))
		t.maskNot(l, dst, m)
	}
}

func (avx2) unordered(l *lowerer, t ir.Type, dst, x, y vreg, not bool) {
	p := unordered
	if not {
		p = ordered
	}
	l.op3i(rowPair{vcmppd, vcmpps}.of(t), dst, x, fromReg(y), p)
}

// mulInt: the product of the low halves, and the sum of the mixed ones 32 bits
// higher.
func (avx2) mulInt(l *lowerer, dst, x, y vreg) {
	xh, yh, p, q, low := l.vector(), l.vector(), l.vector(), l.vector(), l.vector()
	l.op2i(vpsrlq, xh, fromReg(x), 32)
	l.op2i(vpsrlq, yh, fromReg(y), 32)
	l.op3(vpmuludq, p, xh, fromReg(y))
	l.op3(vpmuludq, q, x, fromReg(yh))
	l.op3(vpmuludq, low, x, fromReg(y))
	l.op3(vpaddq, p, p, fromReg(q))
	l.op2i(vpsllq, p, fromReg(p), 32)
	l.op3(vpaddq, dst, p, fromReg(low))
}

// mulConst is shorter where a half of the constant is zero.
func (avx2) mulConst(l *lowerer, dst, x vreg, c uint64) {
	var high, low vreg
	add := func(sum vreg, v, x vreg, c uint64) vreg {
		if c == 0 {
			return sum
		}
		l.op3(vpmuludq, v, x, l.splat(c))
		if sum != 0 {
			l.op3(vpaddq, v, v, fromReg(sum))
		}
		return v
	}
	if c<<32 != 0 {
		xh := l.vector()
		l.op2i(vpsrlq, xh, fromReg(x), 32)
		high = add(high, l.vector(), xh, c&0xFFFFFFFF)
		low = add(low, l.vector(), x, c&0xFFFFFFFF)
	}
	high = add(high, l.vector(), x, c>>32)
	u := l.vector()
	if low == 0 {
		l.op2i(vpsllq, dst, fromReg(high), 32)
		return
	}
	l.op2i(vpsllq, u, fromReg(high), 32)
	l.op3(vpaddq, dst, u, fromReg(low))
}

func (t avx2) minMaxInt(l *lowerer, lane ir.Type, dst vreg, max bool, x vreg, y source) {
	if !isWide(lane) {
		l.op3(minMaxRow(lane, max), dst, x, y)
		return
	}
	m := l.vector()
	t.compare(l, lane, ir.OpGt, m, x, y)
	if max {
		l.blend(lane, dst, m, fromReg(x), l.inReg(y))
	} else {
		l.blend(lane, dst, m, y, x)
	}
}

// shiftRightSigned of 64 bits flips the bits of negative numbers, shifts zeros
// in and flips back.
func (avx2) shiftRightSigned(l *lowerer, lane ir.Type, dst, x, n vreg, k int32) {
	switch {
	case !isWide(lane) && n == 0:
		l.op2i(vpsrad, dst, fromReg(x), k)
		return
	case !isWide(lane):
		l.op3(vpsravd, dst, x, fromReg(n))
		return
	}
	sign, u := l.vector(), l.vector()
	if n != 0 || k >= 63 {
		l.op3(vpcmpgtq, sign, l.load(0), fromReg(x))
	}
	switch {
	case n != 0:
		l.op3(vxorpd, u, x, fromReg(sign))
		l.op3(vpsrlvq, u, u, fromReg(n))
		l.op3(vxorpd, dst, u, fromReg(sign))
	case k >= 63:
		l.copy(dst, sign)
	case k >= 32: // the upper half alone decides
		l.op2i(vpshufd, u, fromReg(x), 0xF5)
		l.op3(vpsravd, dst, u, l.splat(31<<32|uint64(k-32)))
	default: // the halves one by one
		l.op2i(vpsrad, sign, fromReg(x), k)
		l.op2i(vpsrlq, u, fromReg(x), k)
		l.op3i(vpblendd, dst, u, fromReg(sign), 0xAA)
	}
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
	to := ir.U64
	min, max, least, top := uint64(0), ^uint64(0), 0.0, 1.0*(1<<63)*2
	if signed {
		to, min, max, least, top = ir.I64, signBit, signBit-1, -(1 << 63), 1<<63
	}
	out := l.vector()
	t.compare(l, ir.F64, ir.OpLt, out, x, l.splatF(least))
	l.blend(to, r, out, l.splat(min), r)
	t.compare(l, ir.F64, ir.OpGe, out, x, l.splatF(top))
	l.blend(to, r, out, l.splat(max), r)
	t.unordered(l, ir.F64, out, x, x, true)
	l.op3(vandpd, dst, r, fromReg(out))
}

// floatFromUint32 puts the halves into the mantissas of 2^23 and 2^39; only the
// last sum rounds.
func (avx2) floatFromUint32(l *lowerer, dst, x vreg) {
	a, b := l.vector(), l.vector()
	l.op3(vandps, a, x, l.splatOf(ir.U32, 0xFFFF))
	l.op3(vorps, a, a, l.splatF32(1<<23))
	l.op2i(vpsrld, b, fromReg(x), 16)
	l.op3(vorps, b, b, l.splatF32(1<<39))
	l.op3(vsubps, b, b, l.splatF32(1<<39+1<<23))
	l.op3(vaddps, dst, b, fromReg(a))
}

// floatsFromUint32 moves the range down by 2^31 and back.
func (avx2) floatsFromUint32(l *lowerer, dst []vreg, x vreg) {
	u := l.vector()
	l.op3(vxorps, u, x, l.splatOf(ir.U32, signBit32))
	for p, s := range l.halves(u, len(dst)) {
		v := l.vector()
		l.op2(vcvtdq2pd, v, fromReg(s))
		l.op3(vaddpd, dst[p], v, l.splatF(1<<31))
	}
}

// floatFromInts goes over F64, which would round a second time: where 53 bits are
// not enough, the last of them says first whether any after it is set, which
// rounds as the whole number does.
func (t avx2) floatFromInts(l *lowerer, dst, lo, hi vreg, signed bool) {
	l.eachToHalf(dst, lo, hi, func(d, x vreg) {
		const rest = 1<<11 - 1
		u, v, odd, big := l.vector(), l.vector(), l.vector(), l.vector()
		l.op3(vandpd, u, x, l.splat(rest))
		l.op3(vpaddq, u, u, l.splat(rest))
		l.op3(vorpd, u, u, fromReg(x))
		l.op3(vandpd, odd, u, l.splat(^uint64(rest)))
		if signed {
			// x + 2^53 as unsigned is above 2^54.
			l.op3(vpaddq, v, x, l.splat(1<<53+signBit))
			l.op3(vpcmpgtq, big, v, l.splat(1<<54+signBit))
		} else {
			l.op2i(vpsrlq, v, fromReg(x), 53)
			l.op3(vpcmpgtq, big, v, fromReg(l.load(0)))
		}
		y, f := l.vector(), l.vector()
		l.blend(ir.I64, y, big, fromReg(odd), x)
		t.fromInt(l, f, y, signed)
		l.op2(vcvtpd2ps, d, fromReg(f))
	})
}

func (t avx2) truncate(l *lowerer, to ir.Type, dst, lo, hi vreg) {
	least, most := limits(to)
	if to == ir.U32 {
		clamped := func(x vreg) vreg {
			u := l.vector()
			l.op3(vmaxpd, u, x, l.splat(0)) // 0 for a NaN
			l.op3(vminpd, u, u, l.splatF(most))
			return u
		}
		a := clamped(lo)
		b := a
		if hi != lo {
			b = clamped(hi)
		}
		t.fromQuotients(l, to, dst, a, b)
		return
	}
	l.eachToHalf(dst, lo, hi, func(d, x vreg) {
		u := l.vector()
		if to.IsUnsigned() {
			l.op3(vmaxpd, u, x, l.splat(0))
			l.op3(vminpd, u, u, l.splatF(most))
		} else {
			t.unordered(l, ir.F64, u, x, x, true)
			l.op3(vandpd, u, u, fromReg(x))
			l.op3(vminpd, u, u, l.splatF(most))
			if to != ir.I32 { // what is too low gives the lowest
				l.op3(vmaxpd, u, u, l.splatF(least))
			}
		}
		l.op2(vcvttpd2dq, d, fromReg(u))
	})
}

func (t avx2) truncate32(l *lowerer, to ir.Type, dst, x vreg) {
	least, most := limits(to)
	u, v, big := l.vector(), l.vector(), l.vector()
	switch to {
	case ir.I32:
		// What is too high gives the lowest, too; with all bits flipped, the highest.
		t.unordered(l, ir.F32, v, x, x, true)
		l.op3(vandps, u, v, fromReg(x))
		t.compare(l, ir.F32, ir.OpGe, big, x, l.splatF32(1<<31))
		l.op2(vcvttps2dq, u, fromReg(u))
		l.op3(vxorps, dst, u, fromReg(big))
	case ir.U32:
		// From 2^31 on that much is taken away, and the sign bit given back.
		l.op3(vmaxps, u, x, l.splatOf(ir.F32, 0))
		t.compare(l, ir.F32, ir.OpGe, big, u, l.splatF32(1<<31))
		l.op3(vandps, v, big, l.splatF32(1<<31))
		over := l.vector()
		t.compare(l, ir.F32, ir.OpGe, over, u, l.splatF32(1<<32))
		l.op3(vsubps, u, u, fromReg(v))
		l.op2(vcvttps2dq, u, fromReg(u))
		l.op2i(vpslld, big, fromReg(big), 31)
		l.op3(vxorps, u, u, fromReg(big))
		l.op3(vorps, dst, u, fromReg(over))
	case ir.I8, ir.I16:
		t.unordered(l, ir.F32, v, x, x, true)
		l.op3(vandps, u, v, fromReg(x))
		l.op3(vminps, u, u, l.splatF32(most))
		l.op3(vmaxps, u, u, l.splatF32(least))
		l.op2(vcvttps2dq, dst, fromReg(u))
	default:
		l.op3(vmaxps, u, x, l.splatOf(ir.F32, 0))
		l.op3(vminps, u, u, l.splatF32(most))
		l.op2(vcvttps2dq, dst, fromReg(u))
	}
}

func (t avx2) fromQuotients(l *lowerer, to ir.Type, dst, lo, hi vreg) {
	if to == ir.I32 {
		l.eachToHalf(dst, lo, hi, func(d, x vreg) { l.op2(vcvttpd2dq, d, fromReg(x)) })
		return
	}
	// Added to 2^52 the integer is in the lower half.
	whole := func(x vreg) vreg {
		u := l.vector()
		l.op2i(vroundpd, u, fromReg(x), 3|8)
		l.op3(vaddpd, u, u, l.splatF(1<<52))
		return u
	}
	a := whole(lo)
	b := a
	if hi != lo {
		b = whole(hi)
	}
	t.narrow(l, dst, a, b)
}

func (avx2) upper(l *lowerer, dst, x vreg) { l.op2i(vpermqI, dst, fromReg(x), 0xEE) }

func (avx2) join(l *lowerer, dst, lo, hi vreg) { l.op3i(vinsertf128, dst, lo, fromReg(hi), 1) }

func (avx2) narrow(l *lowerer, dst, lo, hi vreg) {
	u := l.vector()
	l.op3i(vshufps, u, lo, fromReg(hi), 0x88)
	l.op2i(vpermqI, dst, fromReg(u), 0xD8)
}

func (avx2) upperHalves(l *lowerer, dst, even, odd vreg) {
	u := l.vector()
	l.op2i(vpsrlq, u, fromReg(even), 32)
	l.op3i(vpblendd, dst, u, fromReg(odd), 0xAA)
}

func (avx2) rotateLeft(l *lowerer, t ir.Type, dst, x, n vreg, k int32) {
	u, v := l.vector(), l.vector()
	w := int32(t.Bits())
	if n == 0 {
		l.op2i(shiftLeft.of(t), u, fromReg(x), k)
		l.op2i(shiftRight.of(t), v, fromReg(x), w-k)
	} else {
		l.op3(vandps, u, n, l.splatOf(t, uint64(w-1)))
		l.op3(subInt.of(t), v, l.loadOf(t, uint64(w)), fromReg(u))
		l.op3(rowPair{vpsllvq, vpsllvd}.of(t), u, x, fromReg(u))
		l.op3(rowPair{vpsrlvq, vpsrlvd}.of(t), v, x, fromReg(v))
	}
	l.op3(vorps, dst, u, fromReg(v))
}

// leadingZeros reads them off the exponent of a float, made from the topmost bit
// and those from the third on, so that rounding does not reach the next power.
func (avx2) leadingZeros(l *lowerer, t ir.Type, dst, x vreg) {
	u, v := l.vector(), l.vector()
	l.op2i(vpsrld, u, fromReg(x), 1)
	l.op3(vandnps, u, u, fromReg(x))
	l.op2(vcvtdq2ps, u, fromReg(u))
	l.op2i(vpsrld, u, fromReg(u), 23)
	l.op3(vpsubd, u, l.loadOf(ir.U32, 127+31), fromReg(u))
	l.op3(vpmaxsd, u, u, fromReg(l.load(0))) // with the sign bit the exponent is above all
	if !isWide(t) {
		l.op3(vpminsd, dst, u, l.splatOf(ir.U32, 32))
		return
	}
	l.op3(vpminsd, u, u, l.splatOf(ir.U32, 32))
	// Those of the lower half count where the upper one has none but zeros.
	l.op2i(vpsrlq, v, fromReg(u), 32)
	m := l.vector()
	l.op3(vpcmpeqq, m, v, l.splat(32))
	l.op3(vandpd, u, u, fromReg(m))
	l.op3(vandpd, u, u, l.splat(0xFFFFFFFF))
	l.op3(vpaddq, dst, u, fromReg(v))
}
