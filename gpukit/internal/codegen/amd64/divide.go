package amd64

import (
	"math/big"
	"math/bits"

	"gpunotes/gpukit/internal/ir"
)

// divide is the quotient or the remainder of integers. There is no vector instruction
// for it. By a power of two it is shifts, by another constant a multiplication.
// Up to 16 bits the quotient of float32 is exact when truncated, up to 32 bits that of
// float64. Of 64 bits it is, too, where both numbers are small, which is looked for; other
// lanes are divided one by one.
func divide(l *lowerer, in *ir.Instr, t ir.Type, dst []vreg) {
	y := in.Args[1]
	c, known := l.known(y)
	switch {
	case known && c == 0:
		l.faultIf(l.active(), in)
		l.clearAll(dst)
		return
	case known:
		xs := l.vecs(in.Args[0])
		for p, d := range dst {
			l.divideConst(in.Op, t, d, of(xs, p), c)
		}
		return
	case l.uniform(y):
		l.compareConst(l.gpr(y), 0)
		l.faultIfScalar(ifEqual, in)
	default:
		ys := l.vecs(y)
		l.faultWhere(in, t, func(p int, m vreg) {
			l.t.compare(l, t, ir.OpEq, m, of(ys, p), l.splatOf(t, 0))
		})
	}
	xs, ys := l.vecs(in.Args[0]), l.vecs(y)
	if isWide(t) {
		checked := max(l.magnitude(in.Args[0]), l.magnitude(y)) >= smallBits
		l.divide64(in.Op, t, dst, xs, ys, checked)
		return
	}
	for p, d := range dst {
		x, y := of(xs, p), of(ys, p)
		l.quotientOr(in.Op, t, d, x, func(q vreg) {
			if isSmall(t) {
				a, b := l.vector(), l.vector()
				l.op2(vcvtdq2ps, a, fromReg(x))
				l.op2(vcvtdq2ps, b, fromReg(y))
				l.op3(vdivps, a, a, fromReg(b))
				l.op2(vcvttps2dq, q, fromReg(a))
				return
			}
			l.quotient32(t, q, x, y, l.uniform(in.Args[1]))
		}, func(d, q vreg) { l.op3(vpmulld, d, q, fromReg(y)) })
	}
}

// quotientOr is a quotient, or what the product of it and the divisor leaves of x.
func (l *lowerer) quotientOr(op ir.Op, t ir.Type, dst, x vreg, quotient func(q vreg), product func(d, q vreg)) {
	l.wrapping(t, dst, func(d vreg) {
		if op == ir.OpDiv {
			quotient(d)
			return
		}
		q, u := l.vector(), l.vector()
		quotient(q)
		product(u, q)
		l.op3(subInt.of(t), d, x, fromReg(u))
	})
}

// quotient32 goes over F64. The lowest number by -1 is what the instruction gives out of
// range.
func (l *lowerer) quotient32(t ir.Type, dst, x, y vreg, sameDivisor bool) {
	xs, ys := l.newVectors(2), l.newVectors(2)
	if sameDivisor {
		ys = ys[:1]
	}
	if l.narrow {
		xs, ys = xs[:1], ys[:1]
	}
	l.doubles(t, []vreg{x}, xs)
	l.doubles(t, []vreg{y}, ys)
	for p, v := range xs {
		l.op3(vdivpd, v, v, fromReg(of(ys, p)))
	}
	l.t.fromQuotients(l, t, dst, xs[0], of(xs, 1))
}

// small is what numbers of 64 bits are converted by in two instructions: up to 2^51, of either
// sign.
const (
	smallBits  = 51
	small      = 1 << smallBits
	smallMagic = 3 << 51 // as a float, whose last bit is worth 1
	magicBits  = 0x4338000000000000
)

// divide64 divides as floats if all numbers are small, which it finds out if checked.
func (l *lowerer) divide64(op ir.Op, t ir.Type, dst, xs, ys []vreg, checked bool) {
	if !checked {
		l.divideSmall(op, dst, xs, ys)
		return
	}
	lanes, end := l.a.newLabel(), l.a.newLabel()
	qs := l.newVectors(len(dst))
	active := l.watched(t)
	for p := range dst {
		u, v := l.vector(), l.vector()
		above := ^uint64(small - 1)
		if t.IsSigned() {
			above = ^uint64(2*small - 1)
			l.op3(vpaddq, u, of(xs, p), l.splat(small))
			l.op3(vpaddq, v, of(ys, p), l.splat(small))
			l.op3(vorpd, u, u, fromReg(v))
		} else {
			l.op3(vorpd, u, of(xs, p), fromReg(of(ys, p)))
		}
		l.t.testBits(l, u, above, of(active, p))
		l.jump(ifNotEqual, lanes)
	}
	l.divideSmall(op, qs, xs, ys)
	l.place(end)
	l.cold(func() {
		l.place(lanes)
		l.coldDepth++
		l.divideLanes(op, t, qs, xs, ys)
		l.coldDepth--
		l.jump(always, end)
	})
	for p, d := range dst {
		l.copy(d, qs[p])
	}
}

// divideSmall divides numbers of up to smallBits as floats.
func (l *lowerer) divideSmall(op ir.Op, dst, xs, ys []vreg) {
	for p, d := range dst {
		x, y, q := l.vector(), l.vector(), l.vector()
		if l.isa == AVX512 {
			l.t.fromInt(l, x, of(xs, p), true)
			l.t.fromInt(l, y, of(ys, p), true)
		} else {
			l.fromSmall(x, of(xs, p))
			l.fromSmall(y, of(ys, p))
		}
		l.op3(vdivpd, q, x, fromReg(y))
		if op == ir.OpRem || l.isa == AVX2 {
			l.op2i(vroundpd, q, fromReg(q), 3|8)
		}
		if op == ir.OpRem { // exact: all these are integers
			l.op3(vmulpd, q, q, fromReg(y))
			l.op3(vsubpd, q, x, fromReg(q))
		}
		if l.isa == AVX512 {
			l.op2(vcvttpd2qq, d, fromReg(q))
			continue
		}
		l.op3(vaddpd, q, q, l.splatF(smallMagic))
		l.op3(vpsubq, d, q, l.splat(magicBits))
	}
}

// divideLanes divides lane by lane in the state.
func (l *lowerer) divideLanes(op ir.Op, t ir.Type, dst, xs, ys []vreg) {
	n := int32(len(dst) * l.regBytes)
	x, y := int32(l.allocateState(int(n), 64)), int32(l.allocateState(int(n), 64))
	for p := range dst {
		at := p * l.regBytes
		l.store(vmovupdStore, of(xs, p), inState(int(x)+at))
		l.store(vmovupdStore, of(ys, p), inState(int(y)+at))
	}
	out := rax
	if op == ir.OpRem {
		out = rdx
	}
	again := l.a.newLabel()
	area := func(at int32) operand {
		return inMemory(memory{base: rsi, indexed: true, index: rcx, scale: 3, disp: at - 8})
	}
	divider := l.divider(t.IsSigned(), area(y))
	l.fixed(func(a *assembler) {
		a.op(movImm32, operands{rm: register(rcx), imm: n / 8})
		a.place(again)
		a.op(movLoad, operands{reg: rax, rm: area(x)})
		divider(a)
		a.op(movStore, operands{reg: out, rm: area(x)})
		a.op(dec, operands{rm: register(rcx)})
		a.jump(ifNotEqual, again)
	})
	for p, d := range dst {
		l.op2(vmovupd, d, inState(int(x)+p*l.regBytes))
	}
}

// divideConst divides by a constant other than 0.
func (l *lowerer) divideConst(op ir.Op, t ir.Type, dst, x vreg, c uint64) {
	size := c
	minus := t.IsSigned() && int64(c) < 0
	if minus {
		size = -c
	}
	width := 64
	if !isWide(t) {
		width = 32
	}
	if size&(size-1) == 0 {
		k := bits.TrailingZeros64(size)
		switch {
		case minus && op == ir.OpDiv:
			q := l.vector()
			l.dividePower(op, t, q, x, k, width)
			l.wrapping(t, dst, func(d vreg) { l.op3(subInt.of(t), d, l.load(0), fromReg(q)) })
		default:
			l.dividePower(op, t, dst, x, k, width)
		}
		return
	}
	l.quotientOr(op, t, dst, x, func(q vreg) {
		if t.IsUnsigned() {
			l.divideUnsigned(q, x, size, width)
			return
		}
		// Of the absolute values; then the sign.
		abs, sign, u := l.vector(), l.vector(), l.vector()
		l.t.shiftRightSigned(l, t, sign, x, 0, int32(width-1))
		if l.isa == AVX2 && isWide(t) {
			l.op3(vxorps, abs, x, fromReg(sign))
			l.op3(vpsubq, abs, abs, fromReg(sign))
		} else {
			l.op2(rowPair{vpabsq, vpabsd}.of(t), abs, fromReg(x))
		}
		l.divideUnsigned(u, abs, size, width-1)
		l.op3(vxorps, u, u, fromReg(sign))
		if minus {
			l.op3(subInt.of(t), q, sign, fromReg(u))
		} else {
			l.op3(subInt.of(t), q, u, fromReg(sign))
		}
	}, func(d, q vreg) { l.timesConst(t, d, q, c) })
}

// reciprocal gives m and s with x/d = x*m >> (lane+s) for all x up to 2^width, where lane
// is 32 or 64. wide says that m has one bit more than the lane, which is left out.
func reciprocal(d uint64, width, lane int) (m uint64, s int, wide bool) {
	most := new(big.Int).Lsh(big.NewInt(1), uint(width))
	div := new(big.Int).SetUint64(d)
	for s = 0; ; s++ {
		power := new(big.Int).Lsh(big.NewInt(1), uint(lane+s))
		q, r := new(big.Int).QuoRem(power, div, new(big.Int))
		// m = q+1 is too large by e/d of 2^-(lane+s), which must not show.
		e := new(big.Int).Sub(div, r)
		if e.Mul(e, most).Cmp(power) < 0 {
			q.Add(q, big.NewInt(1))
			if q.BitLen() > lane {
				q.SetBit(q, lane, 0)
				wide = true
			}
			return q.Uint64(), s, wide
		}
	}
}

// divideUnsigned divides numbers up to 2^width by a constant that is no power of two.
func (l *lowerer) divideUnsigned(dst, x vreg, d uint64, width int) {
	lane, t := 64, ir.U64
	if width <= 32 {
		lane, t = 32, ir.U32
	}
	m, s, wide := reciprocal(d, width, lane)
	h := l.vector()
	if lane == 64 {
		l.highConst64(h, x, m)
	} else {
		l.highConst32(h, x, m)
	}
	right := func(dst, x vreg, k int) {
		if k == 0 {
			l.copy(dst, x)
			return
		}
		l.op2i(shiftRight.of(t), dst, fromReg(x), int32(k))
	}
	if !wide {
		right(dst, h, s)
		return
	}
	// (x + h) >> s, which has a bit too many, in two steps.
	u := l.vector()
	l.op3(subInt.of(t), u, x, fromReg(h))
	right(u, u, 1)
	l.op3(addInt.of(t), u, u, fromReg(h))
	right(dst, u, s-1)
}

// highConst32 is the upper half of the product of lanes of 32 bits.
func (l *lowerer) highConst32(dst, x vreg, m uint64) {
	even, odd, b := l.vector(), l.vector(), l.loadOf(ir.U32, m)
	l.op3(vpmuludq, even, x, fromReg(b))
	l.op2i(vpsrlq, odd, fromReg(x), 32)
	l.op3(vpmuludq, odd, odd, fromReg(b))
	l.t.upperHalves(l, dst, even, odd)
}

func (l *lowerer) highConst64(dst, x vreg, m uint64) {
	l.high64(dst, x, l.splat(m&0xFFFFFFFF), l.splat(m>>32))
}

// high64 is the upper half of the product of lanes of 64 bits, of which the second is given in
// halves.
func (l *lowerer) high64(dst, x vreg, low, high source) {
	xh, a, b, c, u := l.vector(), l.vector(), l.vector(), l.vector(), l.vector()
	l.op2i(vpsrlq, xh, fromReg(x), 32)
	l.op3(vpmuludq, a, x, low)
	l.op3(vpmuludq, b, xh, low)
	l.op3(vpmuludq, c, x, high)
	l.op3(vpmuludq, xh, xh, high)
	l.op2i(vpsrlq, a, fromReg(a), 32)
	l.op3(vpaddq, b, b, fromReg(a))
	l.op3(vandpd, u, b, l.splat(0xFFFFFFFF))
	l.op3(vpaddq, c, c, fromReg(u))
	l.op2i(vpsrlq, b, fromReg(b), 32)
	l.op2i(vpsrlq, c, fromReg(c), 32)
	l.op3(vpaddq, xh, xh, fromReg(b))
	l.op3(vpaddq, dst, xh, fromReg(c))
}

// dividePower divides by 1<<k. A negative number is brought up to the next multiple
// first, because the quotient is truncated.
func (l *lowerer) dividePower(op ir.Op, t ir.Type, dst, x vreg, k, width int) {
	switch {
	case k == 0 && op == ir.OpDiv:
		l.copy(dst, x)
	case k == 0:
		l.clear(dst)
	case t.IsUnsigned() && op == ir.OpDiv:
		l.op2i(shiftRight.of(t), dst, fromReg(x), int32(k))
	case t.IsUnsigned():
		l.op3(bitAnd.of(t), dst, x, l.splatOf(t, 1<<k-1))
	default:
		sign, up, sum := l.vector(), l.vector(), l.vector()
		l.t.shiftRightSigned(l, t, sign, x, 0, int32(width-1))
		l.op2i(shiftRight.of(t), up, fromReg(sign), int32(width-k))
		l.op3(addInt.of(t), sum, x, fromReg(up))
		if op == ir.OpDiv {
			l.t.shiftRightSigned(l, t, dst, sum, 0, int32(k))
			return
		}
		low := l.vector()
		l.op3(bitAnd.of(t), low, sum, l.splatOf(t, 1<<k-1))
		l.op3(subInt.of(t), dst, low, fromReg(up))
	}
}
