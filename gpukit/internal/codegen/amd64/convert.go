package amd64

import "gpunotes/gpukit/internal/ir"

// limits are the lowest and the highest value of an integer type of 32 bits or less.
func limits(t ir.Type) (least, most float64) {
	n := t.Bits()
	if t.IsUnsigned() {
		return 0, float64(uint64(1)<<n - 1)
	}
	return -float64(uint64(1) << (n - 1)), float64(uint64(1)<<(n-1) - 1)
}

// holds says that every value of one integer type is one of another, in lanes of
// 32 bits.
func holds(to, from ir.Type) bool {
	switch {
	case to.Bits() >= 32: // the same bits, read differently
		return true
	case from.IsSigned() == to.IsSigned():
		return from.Bits() <= to.Bits()
	}
	return from.IsUnsigned() && from.Bits() < to.Bits()
}

// convert follows ir.Convert: integers wrap, float to integer saturates and makes 0
// of a NaN, everything else rounds once.
func convert(l *lowerer, in *ir.Instr, from ir.Type, dst []vreg) {
	x, to := in.Args[0], l.f.Types[in.Results[0]]
	xs := l.vecs(x)
	switch {
	case from == to || from.IsInt() && to.IsInt() && isWide(from) && isWide(to):
		for p, d := range dst {
			l.copy(d, of(xs, p))
		}
	case from.IsInt() && to.IsInt():
		convertInt(l, from, to, xs, dst)
	case from.IsFloat() && to.IsInt():
		truncate(l, from, to, xs, dst)
	case from.IsInt() && isWide(from) && to == ir.F64 && l.isa == AVX2 && l.magnitude(x) <= smallBits:
		for p, d := range dst {
			l.fromSmall(d, of(xs, p))
		}
	case from.IsInt():
		fromInt(l, from, to, xs, dst)
	case to == ir.F64:
		l.eachHalf(xs, len(dst), func(p int, h vreg) { l.op2(vcvtps2pd, dst[p], fromReg(h)) })
	default:
		l.fromHalves(xs, dst, func(d, x vreg) { l.op2(vcvtpd2ps, d, fromReg(x)) })
	}
}

// fromHalves computes each part of dst from two parts of 64-bit lanes: f gives a half.
func (l *lowerer) fromHalves(xs, dst []vreg, f func(d, x vreg)) {
	for p, d := range dst {
		l.eachToHalf(d, of(xs, 2*p), of(xs, 2*p+1), f)
	}
}

func (l *lowerer) eachToHalf(dst, lo, hi vreg, f func(d, x vreg)) {
	a := l.vector()
	f(a, lo)
	b := a
	if hi != lo {
		b = l.vector()
		f(b, hi)
	}
	l.t.join(l, dst, a, b)
}

func convertInt(l *lowerer, from, to ir.Type, xs, dst []vreg) {
	switch {
	case isWide(to):
		l.eachHalf(xs, len(dst), func(p int, h vreg) { l.widen(dst[p], h, from.IsSigned()) })
	case isWide(from):
		for p, d := range dst {
			l.wrapping(to, d, func(d vreg) { l.t.narrow(l, d, of(xs, 2*p), of(xs, 2*p+1)) })
		}
	case holds(to, from):
		for p, d := range dst {
			l.copy(d, of(xs, p))
		}
	default:
		for p, d := range dst {
			l.normalise(to, d, of(xs, p))
		}
	}
}

// fromInt is integer to float. Lanes of 32 bits that hold less are of a signed
// integer.
func fromInt(l *lowerer, from, to ir.Type, xs, dst []vreg) {
	signed := from.IsSigned()
	switch {
	case isWide(from) && to == ir.F64:
		for p, d := range dst {
			l.t.fromInt(l, d, of(xs, p), signed)
		}
	case isWide(from):
		for p, d := range dst {
			l.t.floatFromInts(l, d, of(xs, 2*p), of(xs, 2*p+1), signed)
		}
	case to == ir.F64:
		l.doubles(from, xs, dst)
	case from == ir.U32:
		for p, d := range dst {
			l.t.floatFromUint32(l, d, of(xs, p))
		}
	default:
		for p, d := range dst {
			l.op2(vcvtdq2ps, d, fromReg(of(xs, p)))
		}
	}
}

// fromSmall is a small integer of 64 bits to F64.
func (l *lowerer) fromSmall(dst, x vreg) {
	u := l.vector()
	l.op3(vpaddq, u, x, l.splat(magicBits))
	l.op3(vsubpd, dst, u, l.splatF(smallMagic))
}

// doubles is an integer of 32 bits or less to F64.
func (l *lowerer) doubles(from ir.Type, xs, dst []vreg) {
	if from != ir.U32 {
		l.eachHalf(xs, len(dst), func(p int, h vreg) { l.op2(vcvtdq2pd, dst[p], fromReg(h)) })
		return
	}
	for p := 0; p < len(dst); p += 2 {
		l.t.floatsFromUint32(l, dst[p:min(p+2, len(dst))], of(xs, p/2))
	}
}

func truncate(l *lowerer, from, to ir.Type, xs, dst []vreg) {
	switch {
	case from == ir.F64 && isWide(to):
		for p, d := range dst {
			l.toInt(to, p, d, of(xs, p))
		}
	case from == ir.F64:
		for p, d := range dst {
			l.t.truncate(l, to, d, of(xs, 2*p), of(xs, 2*p+1))
		}
	case isWide(to):
		l.eachHalf(xs, len(dst), func(p int, h vreg) {
			u := l.vector()
			l.op2(vcvtps2pd, u, fromReg(h))
			l.toInt(to, p, dst[p], u)
		})
	default:
		for p, d := range dst {
			l.t.truncate32(l, to, d, of(xs, p))
		}
	}
}

// toInt is part p of F64 to integers of 64 bits. Without an instruction for it, small numbers
// go first, and the others, if an active lane has one, out of line.
func (l *lowerer) toInt(to ir.Type, p int, dst, x vreg) {
	if l.isa == AVX512 {
		l.t.toInt(l, dst, x, to.IsSigned())
		return
	}
	active := l.watched(ir.F64)
	whole, size, fits, r := l.vector(), l.vector(), l.newMask(), l.vector()
	from := x
	if to.IsUnsigned() {
		from = l.vector()
		l.op3(vmaxpd, from, x, l.splat(0)) // 0 for a NaN
	}
	l.op2i(vroundpd, whole, fromReg(from), 3|8)
	l.op3(vandpd, size, whole, l.splat(signBit-1))
	l.t.compare(l, ir.F64, ir.OpLt, fits, size, l.splatF(small))
	// The carry flag: no active lane outside.
	l.op2(vtestps, fits, fromReg(of(active, p)))
	end := l.a.newLabel()
	l.outOfLine(ifNotBelow, func() {
		l.t.toInt(l, r, x, to.IsSigned())
		l.jump(always, end)
	})
	l.op3(vaddpd, whole, whole, l.splatF(smallMagic))
	l.op3(vpsubq, r, whole, l.splat(magicBits))
	l.place(end)
	l.copy(dst, r)
}
