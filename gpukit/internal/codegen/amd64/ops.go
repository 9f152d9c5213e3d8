package amd64

import (
	"math"
	"math/bits"

	"gpunotes/gpukit/internal/ir"
)

// opTable has the operations that only compute; memory and control are lowered
// elsewhere.
var opTable = [ir.NumOps]vectorOp{
	ir.OpAdd: byType(direct(vaddpd, vaddps), direct(vpaddq, vpaddd), nil),
	ir.OpSub: byType(direct(vsubpd, vsubps), direct(vpsubq, vpsubd), nil),
	ir.OpMul: byType(direct(vmulpd, vmulps), mulInt, nil),
	ir.OpDiv: byType(direct(vdivpd, vdivps), divide, nil),
	ir.OpRem: byType(nil, divide, nil),
	ir.OpNeg: byType(negFloat, negInt, nil),
	ir.OpMin: byType(minFloat, minMaxInt, nil),
	ir.OpMax: byType(maxFloat, minMaxInt, nil),
	ir.OpShl: byType(nil, shift, nil),
	ir.OpShr: byType(nil, shift, nil),

	ir.OpAnd:    byType(nil, bitwise(bitAnd), maskOp(target.maskAnd)),
	ir.OpOr:     byType(nil, bitwise(bitOr), maskOp(target.maskOr)),
	ir.OpXor:    byType(nil, bitwise(bitXor), maskOp(target.maskXor)),
	ir.OpAndNot: byType(nil, andNot, maskOp(target.maskAndNot)),
	ir.OpNot:    byType(nil, notInt, notBool),

	ir.OpEq: byType(compare, compare, sameMask),
	ir.OpNe: byType(compare, compare, maskOp(target.maskXor)),
	ir.OpLt: byType(compare, compare, nil),
	ir.OpLe: byType(compare, compare, nil),
	ir.OpGt: byType(compare, compare, nil),
	ir.OpGe: byType(compare, compare, nil),

	ir.OpSelect:  choose,
	ir.OpConvert: convert,
	ir.OpMath:    library,
}

// byType chooses by the type of the first operand; the verifier has seen to it that
// there is a choice.
func byType(float, integer, boolean vectorOp) vectorOp {
	return func(l *lowerer, in *ir.Instr, t ir.Type, dst []vreg) {
		switch {
		case t.IsFloat():
			float(l, in, t, dst)
		case t == ir.Bool:
			boolean(l, in, t, dst)
		default:
			integer(l, in, t, dst)
		}
	}
}

// of is part p of a value; one part stands for all where the value is uniform.
func of[T any](parts []T, p int) T { return parts[min(p, len(parts)-1)] }

// loadOf is a constant of type t in every lane, splatOf the same as an operand.
func (l *lowerer) loadOf(t ir.Type, bits uint64) vreg { return l.constant(bits, laneSize(t)) }

func (l *lowerer) splatOf(t ir.Type, bits uint64) source { return fromReg(l.loadOf(t, bits)) }

func (l *lowerer) splatF32(x float64) source {
	return l.splatOf(ir.F32, uint64(math.Float32bits(float32(x))))
}

// clear is dst = 0.
func (l *lowerer) clear(dst vreg) { l.copy(dst, l.load(0)) }

// The keys of constants of different lanes.
var (
	evenLanes    = constantKey{1, -20}
	bitCounts    = constantKey{2, -20}
	lowReversed  = constantKey{3, -20}
	highReversed = constantKey{4, -20}
	byteOrder    = constantKey{0, -21} // bits: the width
)

// table16 is a constant of 16 bytes, again and again.
func (l *lowerer) table16(key constantKey, lo, hi uint64) vreg {
	var w []uint64
	for range l.t.lanes() / 2 {
		w = append(w, lo, hi)
	}
	return l.poolVector(key, l.words(w...))
}

func signOf(t ir.Type) uint64 {
	if isWide(t) {
		return signBit
	}
	return signBit32
}

// isSmall says that a type is shorter than its lane.
func isSmall(t ir.Type) bool { return t.IsInt() && t.Bits() < 32 }

// normalise is dst = src with the extension of type t again.
func (l *lowerer) normalise(t ir.Type, dst, src vreg) {
	n := t.Bits()
	switch {
	case n >= 32:
		l.copy(dst, src)
	case t.IsUnsigned():
		l.op3(vandps, dst, src, l.splatOf(t, 1<<n-1))
	default:
		u := l.vector()
		l.op2i(vpslld, u, fromReg(src), int32(32-n))
		l.op2i(vpsrad, dst, fromReg(u), int32(32-n))
	}
}

// wrapping computes with f, and brings what it gives into the range of t.
func (l *lowerer) wrapping(t ir.Type, dst vreg, f func(dst vreg)) {
	if !isSmall(t) {
		f(dst)
		return
	}
	u := l.vector()
	f(u)
	l.normalise(t, dst, u)
}

// two are the operands; a constant goes second where order is free.
func (l *lowerer) two(in *ir.Instr) ([]vreg, []source) {
	x, y := in.Args[0], in.Args[1]
	if _, known := l.known(x); known && in.Op.Row().Commutative {
		x, y = y, x
	}
	return l.vecs(x), l.srcs(y)
}

// direct is one instruction.
func direct(wide, narrow *row) vectorOp {
	r := rowPair{wide, narrow}
	return func(l *lowerer, in *ir.Instr, t ir.Type, dst []vreg) {
		xs, ys := l.two(in)
		for p, d := range dst {
			l.wrapping(t, d, func(d vreg) { l.op3(r.of(t), d, of(xs, p), of(ys, p)) })
		}
	}
}

// bitwise is one that keeps the extension.
func bitwise(r rowPair) vectorOp {
	return func(l *lowerer, in *ir.Instr, t ir.Type, dst []vreg) {
		xs, ys := l.two(in)
		for p, d := range dst {
			l.op3(r.of(t), d, of(xs, p), of(ys, p))
		}
	}
}

func andNot(l *lowerer, in *ir.Instr, t ir.Type, dst []vreg) {
	if c, known := l.known(in.Args[1]); known {
		xs := l.vecs(in.Args[0])
		for p, d := range dst {
			l.op3(bitAnd.of(t), d, of(xs, p), l.splatOf(t, ^c))
		}
		return
	}
	xs, ys := l.srcs(in.Args[0]), l.vecs(in.Args[1])
	for p, d := range dst {
		l.op3(bitAndNot.of(t), d, of(ys, p), of(xs, p))
	}
}

func notInt(l *lowerer, in *ir.Instr, t ir.Type, dst []vreg) {
	all := ^uint64(0)
	if isSmall(t) && t.IsUnsigned() {
		all = 1<<t.Bits() - 1
	}
	xs := l.vecs(in.Args[0])
	for p, d := range dst {
		l.op3(bitXor.of(t), d, of(xs, p), l.splatOf(t, all))
	}
}

func negFloat(l *lowerer, in *ir.Instr, t ir.Type, dst []vreg) {
	xs := l.vecs(in.Args[0])
	for p, d := range dst {
		l.op3(bitXor.of(t), d, of(xs, p), l.splatOf(t, signOf(t)))
	}
}

func negInt(l *lowerer, in *ir.Instr, t ir.Type, dst []vreg) {
	xs, zero := l.srcs(in.Args[0]), l.load(0)
	for p, d := range dst {
		l.wrapping(t, d, func(d vreg) { l.op3(subInt.of(t), d, zero, of(xs, p)) })
	}
}

func maskOp(f func(t target, l *lowerer, dst, x, y vreg)) vectorOp {
	return func(l *lowerer, in *ir.Instr, _ ir.Type, dst []vreg) {
		xs, ys := l.masks(in.Args[0]), l.masks(in.Args[1])
		for p, d := range dst {
			f(l.t, l, d, of(xs, p), of(ys, p))
		}
	}
}

func notBool(l *lowerer, in *ir.Instr, _ ir.Type, dst []vreg) {
	xs := l.masks(in.Args[0])
	for p, d := range dst {
		l.t.maskNot(l, d, of(xs, p))
	}
}

func sameMask(l *lowerer, in *ir.Instr, _ ir.Type, dst []vreg) {
	xs, ys := l.masks(in.Args[0]), l.masks(in.Args[1])
	for p, d := range dst {
		m := l.newMask()
		l.t.maskXor(l, m, of(xs, p), of(ys, p))
		l.t.maskNot(l, d, m)
	}
}

// finite says that a value is a float constant, and no zero or NaN, for which minpd and maxpd are min
// and max if it is their first operand.
func (l *lowerer) finite(x ir.Value, t ir.Type) bool {
	c, known := l.known(x)
	if !known {
		return false
	}
	f := ir.ToF64(c)
	if t == ir.F32 {
		f = float64(ir.ToF32(c))
	}
	return f != 0 && f == f
}

// extreme computes min or max in part p from its operands.
func extreme(f func(l *lowerer, t ir.Type, dst, x, y vreg), r rowPair) vectorOp {
	return func(l *lowerer, in *ir.Instr, t ir.Type, dst []vreg) {
		x, y := in.Args[0], in.Args[1]
		if l.finite(y, t) {
			x, y = y, x
		}
		xs := l.vecs(x)
		if l.finite(x, t) {
			ys := l.srcs(y)
			for p, d := range dst {
				l.op3(r.of(t), d, of(xs, p), of(ys, p))
			}
			return
		}
		ys := l.vecs(y)
		for p, d := range dst {
			f(l, t, d, of(xs, p), of(ys, p))
		}
	}
}

var (
	minRows = rowPair{vminpd, vminps}
	maxRows = rowPair{vmaxpd, vmaxps}

	minFloat = extreme((*lowerer).minOf, minRows)
	maxFloat = extreme((*lowerer).maxOf, maxRows)
)

// minOf asks twice, because the instruction gives its second operand for two zeros
// and for a NaN: or-ing the answers gives -0 and a NaN.
func (l *lowerer) minOf(t ir.Type, dst, x, y vreg) {
	a, b := l.vector(), l.vector()
	l.op3(minRows.of(t), a, x, fromReg(y))
	l.op3(minRows.of(t), b, y, fromReg(x))
	l.op3(vorps, dst, a, fromReg(b))
}

// maxOf takes the bits in which the answers differ away from their or: a number
// minus +0 is itself, -0 minus -0 is +0, a NaN remains one.
func (l *lowerer) maxOf(t ir.Type, dst, x, y vreg) {
	a, b, c := l.vector(), l.vector(), l.vector()
	l.op3(maxRows.of(t), a, x, fromReg(y))
	l.op3(maxRows.of(t), b, y, fromReg(x))
	l.op3(vorps, c, a, fromReg(b))
	l.op3(vxorps, a, a, fromReg(b))
	l.op3(rowPair{vsubpd, vsubps}.of(t), dst, c, fromReg(a))
}

func minMaxInt(l *lowerer, in *ir.Instr, t ir.Type, dst []vreg) {
	xs, ys := l.two(in)
	for p, d := range dst {
		l.t.minMaxInt(l, t, d, in.Op == ir.OpMax, of(xs, p), of(ys, p))
	}
}

func mulInt(l *lowerer, in *ir.Instr, t ir.Type, dst []vreg) {
	x, y := in.Args[0], in.Args[1]
	if _, known := l.known(x); known {
		x, y = y, x
	}
	if c, known := l.known(y); known {
		xs := l.vecs(x)
		for p, d := range dst {
			l.wrapping(t, d, func(d vreg) { l.timesConst(t, d, of(xs, p), c) })
		}
		return
	}
	xs, ys := l.vecs(x), l.vecs(y)
	if isWide(t) {
		// Of short numbers the lower halves are enough.
		var short *row
		switch w := max(l.magnitude(x), l.magnitude(y)); {
		case t.IsSigned() && w <= 31:
			short = vpmuldq
		case t.IsUnsigned() && w <= 32:
			short = vpmuludq
		}
		if short != nil {
			for p, d := range dst {
				l.op3(short, d, of(xs, p), fromReg(of(ys, p)))
			}
			return
		}
	}
	for p, d := range dst {
		l.wrapping(t, d, func(d vreg) { l.times(t, d, of(xs, p), of(ys, p)) })
	}
}

// times is a product in lanes, without regard to small types.
func (l *lowerer) times(t ir.Type, dst, x, y vreg) {
	if isWide(t) {
		l.t.mulInt(l, dst, x, y)
	} else {
		l.op3(vpmulld, dst, x, fromReg(y))
	}
}

func (l *lowerer) timesConst(t ir.Type, dst, x vreg, c uint64) {
	if !isWide(t) {
		c &= 1<<32 - 1
	}
	switch {
	case c == 0:
		l.clear(dst)
	case c&(c-1) == 0:
		l.op2i(shiftLeft.of(t), dst, fromReg(x), int32(bits.TrailingZeros64(c)))
	case isWide(t):
		l.t.mulConst(l, dst, x, c)
	default:
		l.op3(vpmulld, dst, x, l.splatOf(t, c))
	}
}

// shift takes counts of any integer type; a negative count is a fault.
func shift(l *lowerer, in *ir.Instr, t ir.Type, dst []vreg) {
	xs, n := l.vecs(in.Args[0]), in.Args[1]
	nt := l.f.Types[n]
	signed := in.Op == ir.OpShr && t.IsSigned()
	width := 64
	if !isWide(t) {
		width = 32
	}
	if c, known := l.known(n); known {
		if nt.IsSigned() && int64(c) < 0 {
			l.faultIf(l.active(), in)
			l.clearAll(dst)
			return
		}
		byConst := shiftRight
		if in.Op == ir.OpShl {
			byConst = shiftLeft
		}
		for p, d := range dst {
			x := of(xs, p)
			switch {
			case signed:
				l.t.shiftRightSigned(l, t, d, x, 0, int32(min(c, uint64(width-1))))
			case in.Op == ir.OpShr || !isSmall(t): // a count from the width on gives 0 here too
				l.op2i(byConst.of(t), d, fromReg(x), int32(min(c, uint64(width))))
			default:
				l.wrapping(t, d, func(d vreg) { l.op2i(vpslld, d, fromReg(x), int32(min(c, 32))) })
			}
		}
		return
	}
	if nt.IsSigned() {
		l.faultIfNegative(in, n)
	}
	ns := l.counts(n, t, len(dst))
	byLane := rowPair{vpsrlvq, vpsrlvd}
	if in.Op == ir.OpShl {
		byLane = rowPair{vpsllvq, vpsllvd}
	}
	for p, d := range dst {
		x := of(xs, p)
		switch {
		case signed:
			l.t.shiftRightSigned(l, t, d, x, of(ns, p), 0)
		case in.Op == ir.OpShr:
			l.op3(byLane.of(t), d, x, fromReg(of(ns, p)))
		default:
			l.wrapping(t, d, func(d vreg) { l.op3(byLane.of(t), d, x, fromReg(of(ns, p))) })
		}
	}
}

func (l *lowerer) clearAll(dst []vreg) {
	for _, d := range dst {
		l.clear(d)
	}
}

func (l *lowerer) faultIfNegative(in *ir.Instr, n ir.Value) {
	if l.uniform(n) {
		r := l.gpr(n)
		l.add(inst{row: testReg, reg: r, rm: fromReg(r)})
		l.faultIfScalar(ifSign, in)
		return
	}
	nt := l.f.Types[n]
	ns := l.vecs(n)
	l.faultWhere(in, nt, func(p int, m vreg) {
		l.t.compare(l, nt, ir.OpLt, m, of(ns, p), l.splatOf(nt, 0))
	})
}

// faultWhere fails the active lanes in the masks that f gives by part of type t.
func (l *lowerer) faultWhere(in *ir.Instr, t ir.Type, f func(p int, m vreg)) {
	ms := make([]vreg, l.parts(t))
	for p := range ms {
		ms[p] = l.newMask()
		f(p, ms[p])
	}
	l.faultIf(l.maskFrom(ms, t), in)
}

// counts are the counts of a shift of type t, in lanes of its size. What does not
// fit is as large as can be.
func (l *lowerer) counts(n ir.Value, t ir.Type, parts int) []vreg {
	nt := l.f.Types[n]
	switch {
	case isWide(nt) && !isWide(t) && l.uniform(n):
		v := l.vector()
		l.broadcast(v, l.atMost(l.gpr(n), 64), t)
		return []vreg{v}
	case isWide(nt) && !isWide(t):
		var out []vreg
		ns := l.vecs(n)
		for p := range parts {
			var c [2]vreg
			for i := range c {
				c[i] = l.vector()
				l.t.minMaxInt(l, nt, c[i], false, of(ns, 2*p+i), l.splat(64))
			}
			v := l.vector()
			l.t.narrow(l, v, c[0], c[1])
			out = append(out, v)
		}
		return out
	case isWide(t) && !isWide(nt):
		return l.widened(n, false, parts)
	}
	return l.vecs(n)
}

// halves are the lower half and then, if n is 2, the upper half of x, both at the
// lower end of a register.
func (l *lowerer) halves(x vreg, n int) []vreg {
	if n == 1 {
		return []vreg{x}
	}
	u := l.vector()
	l.t.upper(l, u, x)
	return []vreg{x, u}
}

// widened is an integer in lanes of 64 bits.
func (l *lowerer) widened(x ir.Value, signed bool, parts int) []vreg {
	var out []vreg
	l.eachHalf(l.vecs(x), parts, func(_ int, h vreg) {
		v := l.vector()
		l.widen(v, h, signed)
		out = append(out, v)
	})
	return out
}

func (l *lowerer) widen(dst, half vreg, signed bool) {
	r := vpmovzxdq
	if signed {
		r = vpmovsxdq
	}
	l.op2(r, dst, fromReg(half))
}

// eachHalf goes over the halves of lanes of 32 bits, for n parts of 64.
func (l *lowerer) eachHalf(xs []vreg, n int, f func(p int, half vreg)) {
	for p := 0; p < n; p += 2 {
		for i, h := range l.halves(of(xs, p/2), min(2, n-p)) {
			f(p+i, h)
		}
	}
}

// toMasks computes a Bool from parts of type t.
func (l *lowerer) toMasks(t ir.Type, dst []vreg, f func(p int, m vreg)) {
	n := l.parts(t)
	if l.narrow || n == len(dst) {
		for p, d := range dst {
			f(p, d)
		}
		return
	}
	ms := make([]vreg, n)
	for p := range ms {
		ms[p] = l.newMask()
		f(p, ms[p])
	}
	for p, m := range l.maskFrom(ms, t) {
		l.copy(dst[p], m)
	}
}

// mirrored are the comparisons with operands exchanged.
var mirrored = [ir.NumOps]ir.Op{ir.OpEq: ir.OpEq, ir.OpNe: ir.OpNe, ir.OpLt: ir.OpGt, ir.OpLe: ir.OpGe, ir.OpGt: ir.OpLt, ir.OpGe: ir.OpLe}

func compare(l *lowerer, in *ir.Instr, t ir.Type, dst []vreg) {
	x, y, op := in.Args[0], in.Args[1], in.Op
	if _, known := l.known(x); known {
		x, y, op = y, x, mirrored[op]
	}
	xs, ys := l.vecs(x), l.srcs(y)
	l.toMasks(t, dst, func(p int, m vreg) { l.t.compare(l, t, op, m, of(xs, p), of(ys, p)) })
}

func choose(l *lowerer, in *ir.Instr, _ ir.Type, dst []vreg) {
	cond, x, y := in.Args[0], in.Args[1], in.Args[2]
	t := l.f.Types[in.Results[0]]
	if t == ir.Bool {
		ms, xs, ys := l.masks(cond), l.masks(x), l.masks(y)
		for p, d := range dst {
			l.t.blendMask(l, d, of(ms, p), of(xs, p), of(ys, p))
		}
		return
	}
	ms := l.masks(cond)
	if !l.uniform(cond) { // a uniform one is the same for lanes of any size
		ms = l.maskFor(ms, t)
	}
	xs := l.srcs(x)
	if c, known := l.known(y); known && c == 0 {
		for p, d := range dst {
			l.t.keep(l, t, d, of(ms, p), of(xs, p))
		}
		return
	}
	ys := l.vecs(y)
	for p, d := range dst {
		l.blend(t, d, of(ms, p), of(xs, p), of(ys, p))
	}
}
