package amd64

import (
	"math/bits"

	"gpunotes/gpukit/internal/ir"
)

// scalarTable has the operations on integers and bools that all lanes have the same
// of. They are in general registers, in Bits form.
var scalarTable = [ir.NumOps]scalarOp{
	ir.OpAdd: scalarArith(add64, addImm, addImm4),
	ir.OpSub: scalarArith(sub64, subImm, subImm4),
	ir.OpMul: scalarMul,
	ir.OpDiv: scalarDivide,
	ir.OpRem: scalarDivide,
	ir.OpNeg: scalarUnary(neg),
	ir.OpMin: scalarMinMax,
	ir.OpMax: scalarMinMax,
	ir.OpShl: scalarShift,
	ir.OpShr: scalarShift,

	ir.OpAnd:    scalarArith(and64, andImm, andImm4),
	ir.OpOr:     scalarArith(or64, orImm, orImm4),
	ir.OpXor:    scalarArith(xor64, xorImm, xorImm4),
	ir.OpAndNot: scalarAndNot,
	ir.OpNot:    scalarNot,

	ir.OpEq: scalarCompare,
	ir.OpNe: scalarCompare,
	ir.OpLt: scalarCompare,
	ir.OpLe: scalarCompare,
	ir.OpGt: scalarCompare,
	ir.OpGe: scalarCompare,

	ir.OpSelect:  scalarSelect,
	ir.OpConvert: scalarConvert,
	ir.OpMath:    scalarLibrary,
}

// isShort says that a number is the sign extension of its low 32 bits.
func isShort(x uint64) bool { return uint64(int64(int32(x))) == x }

// wrapInto is dst = src, which has any bits above those of type t, in Bits form.
func (l *lowerer) wrapInto(t ir.Type, dst, src vreg) {
	switch t {
	case ir.I8:
		l.op2(movsxByte, dst, fromReg(src))
	case ir.I16:
		l.op2(movsxWord, dst, fromReg(src))
	case ir.I32:
		l.op2(movsxd, dst, fromReg(src))
	case ir.U8:
		l.op2(movzxByte, dst, fromReg(src))
	case ir.U16:
		l.op2(movzxWord, dst, fromReg(src))
	case ir.U32:
		l.op2(movLoad32, dst, fromReg(src))
	default:
		l.copy(dst, src)
	}
}

// inBits computes with f, and brings what it gives into Bits form of type t.
func (l *lowerer) inBits(t ir.Type, dst vreg, f func(dst vreg)) {
	if t == ir.Bool || isWide(t) {
		f(dst)
		return
	}
	u := l.newGPR()
	f(u)
	l.wrapInto(t, dst, u)
}

// withImm is dst = x op c, by the rows for one byte or four bytes of immediate.
func (l *lowerer) withImm(short, long *row, dst, x vreg, c uint64) {
	r := long
	if uint64(int64(int8(c))) == c {
		r = short
	}
	l.add(inst{row: r, reg: dst, v: x, imm: int32(c)})
}

func scalarArith(r, short, long *row) scalarOp {
	return func(l *lowerer, in *ir.Instr, t ir.Type, dst vreg) bool {
		x, y := in.Args[0], in.Args[1]
		if _, known := l.known(x); known && in.Op.Row().Commutative {
			x, y = y, x
		}
		a := l.gpr(x)
		l.inBits(t, dst, func(d vreg) {
			c, known := l.known(y)
			switch {
			case r != add64:
			case known && isShort(c):
				l.op2(lea, d, address(a, 0, 0, int32(c)))
				return
			case !known:
				l.op2(lea, d, address(a, l.gpr(y), 0, 0))
				return
			}
			if known && isShort(c) {
				l.withImm(short, long, d, a, c)
				return
			}
			l.op3(r, d, a, fromReg(l.gpr(y)))
		})
		return true
	}
}

func scalarUnary(r *row) scalarOp {
	return func(l *lowerer, in *ir.Instr, t ir.Type, dst vreg) bool {
		x := l.gpr(in.Args[0])
		l.inBits(t, dst, func(d vreg) { l.add(inst{row: r, reg: d, v: x}) })
		return true
	}
}

func scalarNot(l *lowerer, in *ir.Instr, t ir.Type, dst vreg) bool {
	if t != ir.Bool {
		return scalarUnary(not64)(l, in, t, dst)
	}
	l.add(inst{row: xorImm, reg: dst, v: l.gpr(in.Args[0]), imm: 1})
	return true
}

func scalarAndNot(l *lowerer, in *ir.Instr, t ir.Type, dst vreg) bool {
	x := l.gpr(in.Args[0])
	if c, known := l.known(in.Args[1]); known && isShort(^c) {
		l.withImm(andImm, andImm4, dst, x, ^c)
		return true
	}
	l.op3(andn, dst, l.gpr(in.Args[1]), fromReg(x))
	return true
}

func scalarMul(l *lowerer, in *ir.Instr, t ir.Type, dst vreg) bool {
	x, y := in.Args[0], in.Args[1]
	if _, known := l.known(x); known {
		x, y = y, x
	}
	a := l.gpr(x)
	l.inBits(t, dst, func(d vreg) {
		switch c, known := l.known(y); {
		case known && c != 0 && c&(c-1) == 0:
			l.add(inst{row: shl64, reg: d, v: a, imm: int32(bits.TrailingZeros64(c))})
		case known && isShort(c):
			l.op2i(imulImm, d, fromReg(a), int32(c))
		default:
			l.op3(imul64, d, a, fromReg(l.gpr(y)))
		}
	})
	return true
}

// The conditions of comparisons, signed and unsigned.
var (
	signedConditions   = [ir.NumOps]condition{ir.OpEq: ifEqual, ir.OpNe: ifNotEqual, ir.OpLt: ifLess, ir.OpLe: ifLessE, ir.OpGt: ifGreater, ir.OpGe: ifGreaterE}
	unsignedConditions = [ir.NumOps]condition{ir.OpEq: ifEqual, ir.OpNe: ifNotEqual, ir.OpLt: ifBelow, ir.OpLe: ifBelowE, ir.OpGt: ifAbove, ir.OpGe: ifNotBelow}
)

func conditionOf(op ir.Op, t ir.Type) condition {
	if t.IsSigned() {
		return signedConditions[op]
	}
	return unsignedConditions[op]
}

// compareFlags sets the flags for a comparison of uniform integers or bools, and
// returns when it holds. ok is false for other types.
func (l *lowerer) compareFlags(in *ir.Instr) (c condition, ok bool) {
	x, y, op := in.Args[0], in.Args[1], in.Op
	t := l.f.Types[x]
	if t.IsFloat() {
		return 0, false
	}
	if _, known := l.known(x); known {
		x, y, op = y, x, mirrored[op]
	}
	a := l.gpr(x)
	l.compareWith(a, y)
	return conditionOf(op, t), true
}

// compareWith sets the flags for a comparison with a uniform value.
func (l *lowerer) compareWith(a vreg, y ir.Value) {
	switch c, known := l.known(y); {
	case known && isShort(c):
		l.compareConst(a, c)
	default:
		l.op2(cmp64, a, fromReg(l.gpr(y)))
	}
}

func (l *lowerer) compareConst(a vreg, c uint64) {
	switch {
	case c == 0:
		l.add(inst{row: testReg, reg: a, rm: fromReg(a)})
	case uint64(int64(int8(c))) == c:
		l.add(inst{row: cmpImm, rm: fromReg(a), imm: int32(c)})
	default:
		l.add(inst{row: cmpImm4, rm: fromReg(a), imm: int32(c)})
	}
}

func scalarCompare(l *lowerer, in *ir.Instr, t ir.Type, dst vreg) bool {
	c, ok := l.compareFlags(in)
	if ok {
		l.setIf(c, dst)
	}
	return ok
}

// setIf is dst = 1 if c holds, else 0.
func (l *lowerer) setIf(c condition, dst vreg) {
	b := l.newGPR()
	l.add(inst{row: setcc[c], reg: b})
	l.op2(movzxByte, dst, fromReg(b))
}

// moveIf is dst = x if c holds, else y. It does not change the flags.
func (l *lowerer) moveIf(c condition, dst, x, y vreg) {
	l.add(inst{row: cmovcc[c], reg: dst, v: y, rm: fromReg(x)})
}

// atMost is the lower of x and c, unsigned.
func (l *lowerer) atMost(x vreg, c uint64) vreg {
	r, most := l.newGPR(), l.newGPR()
	l.loadInt(most, c)
	l.compareConst(x, c)
	l.moveIf(ifAbove, r, most, x)
	return r
}

func scalarMinMax(l *lowerer, in *ir.Instr, t ir.Type, dst vreg) bool {
	x, y := l.gpr(in.Args[0]), l.gpr(in.Args[1])
	l.op2(cmp64, x, fromReg(y))
	op := ir.OpLt
	if in.Op == ir.OpMax {
		op = ir.OpGt
	}
	l.moveIf(conditionOf(op, t), dst, x, y)
	return true
}

func scalarSelect(l *lowerer, in *ir.Instr, _ ir.Type, dst vreg) bool {
	c, x, y := l.gpr(in.Args[0]), l.gpr(in.Args[1]), l.gpr(in.Args[2])
	l.add(inst{row: testReg, reg: c, rm: fromReg(c)})
	l.moveIf(ifNotEqual, dst, x, y)
	return true
}

func scalarConvert(l *lowerer, in *ir.Instr, from ir.Type, dst vreg) bool {
	to := l.f.Types[in.Results[0]]
	if !from.IsInt() {
		return false
	}
	x := l.gpr(in.Args[0])
	if from.IsSigned() == to.IsSigned() && from.Bits() <= to.Bits() || from.IsUnsigned() && from.Bits() < to.Bits() {
		l.copy(dst, x)
		return true
	}
	l.wrapInto(to, dst, x)
	return true
}

// scalarShift: the instructions take the count modulo 64.
func scalarShift(l *lowerer, in *ir.Instr, t ir.Type, dst vreg) bool {
	n := in.Args[1]
	nt := l.f.Types[n]
	left, signed := in.Op == ir.OpShl, t.IsSigned()
	if c, known := l.known(n); known {
		if nt.IsSigned() && int64(c) < 0 {
			return false
		}
		x := l.gpr(in.Args[0])
		switch {
		case !left && signed:
			l.add(inst{row: sar64, reg: dst, v: x, imm: int32(min(c, 63))})
		case c >= 64:
			l.loadInt(dst, 0)
		case left:
			l.inBits(t, dst, func(d vreg) { l.add(inst{row: shl64, reg: d, v: x, imm: int32(c)}) })
		default:
			l.add(inst{row: shr64, reg: dst, v: x, imm: int32(c)})
		}
		return true
	}
	if nt.IsSigned() {
		l.faultIfNegative(in, n)
	}
	x, count := l.gpr(in.Args[0]), l.gpr(n)
	if !left && signed {
		l.add(inst{row: sarx, reg: dst, rm: fromReg(x), v: l.atMost(count, 63)})
		return true
	}
	r := shrx
	if left {
		r = shlx
	}
	l.inBits(t, dst, func(d vreg) {
		u, zero := l.newGPR(), l.newGPR()
		l.add(inst{row: r, reg: u, rm: fromReg(x), v: count})
		l.loadInt(zero, 0)
		l.compareConst(count, 63)
		l.moveIf(ifAbove, d, zero, u)
	})
	return true
}

// scalarDivide leaves the fixed registers to the instruction.
func scalarDivide(l *lowerer, in *ir.Instr, t ir.Type, dst vreg) bool {
	rem, signed := in.Op == ir.OpRem, t.IsSigned()
	c, known := l.known(in.Args[1])
	switch {
	case !t.IsInt() || known && c == 0:
		return false
	case known && c&(c-1) == 0 && !(signed && int64(c) < 0):
		l.scalarPower(rem, signed, dst, l.gpr(in.Args[0]), bits.TrailingZeros64(c))
		return true
	}
	x, y := l.gpr(in.Args[0]), l.gpr(in.Args[1])
	if !known {
		l.compareConst(y, 0)
		l.faultIfScalar(ifEqual, in)
	}
	l.add(inst{row: movLoad, gpr: rax, rm: fromReg(x)})
	l.add(inst{row: movLoad, gpr: rcx, rm: fromReg(y)})
	l.fixed(l.divider(signed, register(rcx)))
	out := rax
	if rem {
		out = rdx
	}
	l.inBits(t, dst, func(d vreg) { l.add(inst{row: movLoad, reg: d, rm: source{gpr: out}}) })
	return true
}

// divider is RAX and RDX = quotient and remainder of RAX by a place. By 0, of which a fault
// made nothing, and by -1, where the lowest number would trap, they are -RAX and 0. Numbers
// of 32 bits are divided as such: it takes less than half the time.
func (l *lowerer) divider(signed bool, by operand) func(a *assembler) {
	done, odd, wide := l.a.newLabel(), l.a.newLabel(), l.a.newLabel()
	return func(a *assembler) {
		a.op(movLoad, operands{reg: rdx, rm: by})
		if signed {
			a.op(addImm, operands{rm: register(rdx), imm: 1})
			a.op(cmpImm, operands{rm: register(rdx), imm: 1})
			a.jump(ifBelowE, odd)
			a.op(movLoad, operands{reg: rdx, rm: by})
		} else {
			a.op(testReg, operands{reg: rdx, rm: register(rdx)})
			a.jump(ifEqual, odd)
		}
		a.op(or64, operands{reg: rdx, rm: register(rax)})
		a.op(shr64, operands{rm: register(rdx), imm: 32})
		a.jump(ifNotEqual, wide)
		a.op(xor32, operands{reg: rdx, rm: register(rdx)})
		a.op(div32, operands{rm: by})
		a.jump(always, done)
		a.place(wide)
		if signed {
			a.op(cqo, operands{})
			a.op(idiv, operands{rm: by})
		} else {
			a.op(xor32, operands{reg: rdx, rm: register(rdx)})
			a.op(div, operands{rm: by})
		}
		a.jump(always, done)
		a.place(odd)
		a.op(neg, operands{rm: register(rax)})
		a.op(xor32, operands{reg: rdx, rm: register(rdx)})
		a.place(done)
	}
}

// scalarPower divides by 1<<k.
func (l *lowerer) scalarPower(rem, signed bool, dst, x vreg, k int) {
	switch {
	case k == 0 && rem:
		l.loadInt(dst, 0)
	case k == 0:
		l.copy(dst, x)
	case !signed && !rem:
		l.add(inst{row: shr64, reg: dst, v: x, imm: int32(k)})
	case !signed:
		l.lowBits(dst, x, k)
	default:
		// A negative number is brought up to the next multiple first.
		up, sum := l.newGPR(), l.newGPR()
		l.add(inst{row: sar64, reg: up, v: x, imm: 63})
		l.add(inst{row: shr64, reg: up, v: up, imm: int32(64 - k)})
		l.op3(add64, sum, x, fromReg(up))
		if !rem {
			l.add(inst{row: sar64, reg: dst, v: sum, imm: int32(k)})
			return
		}
		low := l.newGPR()
		l.lowBits(low, sum, k)
		l.op3(sub64, dst, low, fromReg(up))
	}
}

// lowBits is the lowest k bits of x.
func (l *lowerer) lowBits(dst, x vreg, k int) {
	if c := uint64(1)<<k - 1; isShort(c) {
		l.withImm(andImm, andImm4, dst, x, c)
		return
	}
	u := l.newGPR()
	l.add(inst{row: shl64, reg: u, v: x, imm: int32(64 - k)})
	l.add(inst{row: shr64, reg: dst, v: u, imm: int32(64 - k)})
}
