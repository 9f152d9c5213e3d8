package amd64

import (
	"math/bits"

	"gpunotes/gpukit/internal/ir"
)

// opLowering lowers one operation into dst. t is the type of its first operand.
type opLowering func(l *lowerer, in *ir.Instr, t ir.Type, dst vreg)

// byType chooses between the types of a lane; nil is not supported.
func byType(f64, i64, b opLowering) opLowering {
	return func(l *lowerer, in *ir.Instr, t ir.Type, dst vreg) {
		f := i64
		switch t {
		case ir.F64:
			f = f64
		case ir.Bool:
			f = b
		}
		if f == nil {
			l.refuse(in.Pos, "%v of %v", in.Op, t)
			return
		}
		f(l, in, t, dst)
	}
}

// direct is one instruction; a constant goes second where order is free.
func direct(r *row) opLowering {
	return func(l *lowerer, in *ir.Instr, _ ir.Type, dst vreg) {
		x, y := in.Args[0], in.Args[1]
		if in.Op.Row().Commutative && l.vals[x].known {
			x, y = y, x
		}
		l.op3(r, dst, l.reg(x), l.src(y))
	}
}

func maskOp(f func(t target, l *lowerer, dst, x, y vreg)) opLowering {
	return func(l *lowerer, in *ir.Instr, _ ir.Type, dst vreg) {
		f(l.t, l, dst, l.reg(in.Args[0]), l.reg(in.Args[1]))
	}
}

// xorConst is reg ^ constant.
func xorConst(bits uint64) opLowering {
	return func(l *lowerer, in *ir.Instr, _ ir.Type, dst vreg) {
		l.op3(vxorpd, dst, l.reg(in.Args[0]), l.splat(bits))
	}
}

func andNot(l *lowerer, in *ir.Instr, _ ir.Type, dst vreg) {
	l.op3(vandnpd, dst, l.reg(in.Args[1]), l.src(in.Args[0]))
}

func negInt(l *lowerer, in *ir.Instr, _ ir.Type, dst vreg) {
	l.op3(vpsubq, dst, l.load(0), l.src(in.Args[0]))
}

// minFloat asks twice, because the instruction gives its second operand for
// two zeros and for a NaN: or-ing the answers gives -0 and a NaN.
func minFloat(l *lowerer, in *ir.Instr, _ ir.Type, dst vreg) {
	x, y, a, b := l.reg(in.Args[0]), l.reg(in.Args[1]), l.vector(), l.vector()
	l.op3(vminpd, a, x, fromReg(y))
	l.op3(vminpd, b, y, fromReg(x))
	l.op3(vorpd, dst, a, fromReg(b))
}

// maxFloat takes the bits in which the answers differ away from their or: a
// number minus +0 is itself, -0 minus -0 is +0, a NaN remains one.
func maxFloat(l *lowerer, in *ir.Instr, _ ir.Type, dst vreg) {
	x, y, a, b, c := l.reg(in.Args[0]), l.reg(in.Args[1]), l.vector(), l.vector(), l.vector()
	l.op3(vmaxpd, a, x, fromReg(y))
	l.op3(vmaxpd, b, y, fromReg(x))
	l.op3(vorpd, c, a, fromReg(b))
	l.op3(vxorpd, a, a, fromReg(b))
	l.op3(vsubpd, dst, c, fromReg(a))
}

func minMaxInt(max bool) opLowering {
	return func(l *lowerer, in *ir.Instr, t ir.Type, dst vreg) {
		l.t.minMaxInt(l, dst, max, t.IsSigned(), l.reg(in.Args[0]), l.src(in.Args[1]))
	}
}

func mulInt(l *lowerer, in *ir.Instr, _ ir.Type, dst vreg) {
	x, y := in.Args[0], in.Args[1]
	if l.vals[x].known {
		x, y = y, x
	}
	l.t.mulInt(l, dst, l.reg(x), l.src(y))
}

// shift takes constant counts of any type and 64-bit ones; a negative count is
// a fault.
func shift(l *lowerer, in *ir.Instr, t ir.Type, dst vreg) {
	x, n := l.reg(in.Args[0]), in.Args[1]
	byConst, byLane := vpsrlq, vpsrlvq
	if in.Op == ir.OpShl {
		byConst, byLane = vpsllq, vpsllvq
	}
	signed := in.Op == ir.OpShr && t.IsSigned()
	nt := l.f.Types[n]
	switch c := l.vals[n]; {
	case c.known && nt.IsSigned() && int64(c.bits) < 0:
		l.alwaysFaults(dst)
	case c.known && signed:
		l.t.shiftRightSigned(l, dst, x, 0, int32(min(c.bits, 63)))
	case c.known: // a count from 64 on gives 0 here too
		l.op2i(byConst, dst, fromReg(x), int32(min(c.bits, 64)))
	case !lane(nt):
		l.refuse(in.Pos, "%v by a variable count of type %v", in.Op, nt)
	default:
		if nt.IsSigned() {
			negative := l.newMask()
			l.t.compareInt(l, negative, ir.OpLt, true, l.reg(n), l.splat(0))
			l.faultIf(negative)
		}
		if !signed {
			l.op3(byLane, dst, x, l.src(n))
			return
		}
		l.t.shiftRightSigned(l, dst, x, l.reg(n), 0)
	}
}

// alwaysFaults gives up if any lane is in the region.
func (l *lowerer) alwaysFaults(dst vreg) {
	l.jumpIfAny(l.top().mask, l.fault)
	l.t.loadSplat(l, dst, 0)
}

// divide is the quotient or the remainder of integers. There is no vector
// instruction for it: a power of two is done by shifts, anything else lane by
// lane in the state area.
func divide(l *lowerer, in *ir.Instr, t ir.Type, dst vreg) {
	x, y := l.reg(in.Args[0]), in.Args[1]
	c := l.vals[y]
	switch {
	case c.known && c.bits == 0:
		l.alwaysFaults(dst)
		return
	case c.known && c.bits&(c.bits-1) == 0 && !(t.IsSigned() && int64(c.bits) < 0):
		l.dividePower(in.Op, dst, x, bits.TrailingZeros64(c.bits), t.IsSigned())
		return
	case !c.known:
		zero := l.newMask()
		l.t.compareInt(l, zero, ir.OpEq, true, c.v, l.splat(0))
		l.faultIf(zero)
	}
	l.add(inst{row: vmovupdStore, reg: x, rm: fromMem(at(rsi, stateX))})
	l.add(inst{row: vmovupdStore, reg: l.reg(y), rm: fromMem(at(rsi, stateY))})
	again, store, odd := l.a.newLabel(), l.a.newLabel(), l.a.newLabel()
	last, signed, out := int32(l.t.lanes()-1), t.IsSigned(), rax
	if in.Op == ir.OpRem {
		out = rdx
	}
	l.fixed(func(a *assembler) {
		move := func(to, from uint8) { a.op(movReg, operands{reg: from, rm: register(to)}) }
		area := func(at int32) operand {
			return inMemory(memory{base: rsi, indexed: true, index: rbx, scale: 3, disp: at})
		}
		move(r11, rax)
		move(r9, rdx)
		a.op(movImm, operands{rm: register(rbx), imm: last})
		a.place(again)
		a.op(movLoad, operands{reg: rax, rm: area(stateX)})
		a.op(movLoad, operands{reg: rcx, rm: area(stateY)})
		// Lanes outside the region may have 0; minint by -1 would trap.
		if signed {
			a.op(lea, operands{reg: rdx, rm: inMemory(at(rcx, 1))})
			a.op(cmpImm, operands{rm: register(rdx), imm: 1})
			a.jump(ifBelowE, odd)
			a.op(cqo, operands{})
			a.op(idiv, operands{rm: register(rcx)})
		} else {
			a.op(testReg, operands{reg: rcx, rm: register(rcx)})
			a.jump(ifEqual, odd)
			a.op(xor32, operands{reg: rdx, rm: register(rdx)})
			a.op(div, operands{rm: register(rcx)})
		}
		a.jump(always, store)
		a.place(odd)
		a.op(neg, operands{rm: register(rax)})
		a.op(xor32, operands{reg: rdx, rm: register(rdx)})
		a.place(store)
		a.op(movStore, operands{reg: out, rm: area(stateX)})
		a.op(dec, operands{rm: register(rbx)})
		a.jump(ifNotSign, again)
		move(rax, r11)
		move(rdx, r9)
	})
	l.op2(vmovupd, dst, fromMem(at(rsi, stateX)))
}

// dividePower divides by 1<<k. A negative number is brought up to the next
// multiple first, because the quotient is truncated.
func (l *lowerer) dividePower(op ir.Op, dst, x vreg, k int, signed bool) {
	if !signed {
		if op == ir.OpDiv {
			l.op2i(vpsrlq, dst, fromReg(x), int32(k))
		} else {
			l.op3(vandpd, dst, x, l.splat(1<<k-1))
		}
		return
	}
	sign, up, sum := l.vector(), l.vector(), l.vector()
	l.t.shiftRightSigned(l, sign, x, 0, 63)
	l.op2i(vpsrlq, up, fromReg(sign), int32(64-k))
	l.op3(vpaddq, sum, x, fromReg(up))
	if op == ir.OpDiv {
		l.t.shiftRightSigned(l, dst, sum, 0, int32(k))
		return
	}
	multiple := l.vector()
	l.op3(vandpd, multiple, sum, l.splat(^uint64(0)<<k))
	l.op3(vpsubq, dst, x, fromReg(multiple))
}

func compareFloat(predicate int32) opLowering {
	return func(l *lowerer, in *ir.Instr, _ ir.Type, dst vreg) {
		l.t.compareFloat(l, dst, predicate, l.reg(in.Args[0]), l.src(in.Args[1]))
	}
}

func compareInt(l *lowerer, in *ir.Instr, t ir.Type, dst vreg) {
	l.t.compareInt(l, dst, in.Op, t.IsSigned(), l.reg(in.Args[0]), l.src(in.Args[1]))
}

func compare(predicate int32) opLowering { return byType(compareFloat(predicate), compareInt, nil) }

func sameMask(l *lowerer, in *ir.Instr, _ ir.Type, dst vreg) {
	m := l.newMask()
	l.t.maskXor(l, m, l.reg(in.Args[0]), l.reg(in.Args[1]))
	l.t.maskNot(l, dst, m)
}

// opTable has a row for every operation that is supported; control is lowered
// elsewhere.
var opTable = [ir.NumOps]opLowering{
	ir.OpAdd: byType(direct(vaddpd), direct(vpaddq), nil),
	ir.OpSub: byType(direct(vsubpd), direct(vpsubq), nil),
	ir.OpMul: byType(direct(vmulpd), mulInt, nil),
	ir.OpDiv: byType(direct(vdivpd), divide, nil),
	ir.OpRem: byType(nil, divide, nil),
	ir.OpNeg: byType(xorConst(signBit), negInt, nil),
	ir.OpMin: byType(minFloat, minMaxInt(false), nil),
	ir.OpMax: byType(maxFloat, minMaxInt(true), nil),
	ir.OpShl: byType(nil, shift, nil),
	ir.OpShr: byType(nil, shift, nil),

	ir.OpAnd:    byType(nil, direct(vandpd), maskOp(target.maskAnd)),
	ir.OpOr:     byType(nil, direct(vorpd), maskOp(target.maskOr)),
	ir.OpXor:    byType(nil, direct(vxorpd), maskOp(target.maskXor)),
	ir.OpAndNot: byType(nil, andNot, maskOp(target.maskAndNot)),
	ir.OpNot: byType(nil, xorConst(1<<64-1), func(l *lowerer, in *ir.Instr, _ ir.Type, dst vreg) {
		l.t.maskNot(l, dst, l.reg(in.Args[0]))
	}),

	ir.OpEq: byType(compareFloat(equal), compareInt, sameMask),
	ir.OpNe: byType(compareFloat(notEqual), compareInt, maskOp(target.maskXor)),
	ir.OpLt: compare(less),
	ir.OpLe: compare(lessEqual),
	ir.OpGt: compare(greater),
	ir.OpGe: compare(greaterEqual),

	ir.OpSelect: func(l *lowerer, in *ir.Instr, _ ir.Type, dst vreg) {
		l.choose(l.f.Types[in.Results[0]], dst, l.reg(in.Args[0]), in.Args[1], in.Args[2])
	},
	ir.OpConvert: convert,
	ir.OpMath: func(l *lowerer, in *ir.Instr, t ir.Type, dst vreg) {
		f, ok := mathTable[in.Fn.Row().Name]
		if !ok {
			l.refuse(in.Pos, "%v", in.Fn)
			return
		}
		f(l, in, t, dst)
	},
}

func convert(l *lowerer, in *ir.Instr, from ir.Type, dst vreg) {
	switch to := l.f.Types[in.Results[0]]; {
	case from == ir.F64 && to.IsInt():
		l.t.toInt(l, dst, l.reg(in.Args[0]), to.IsSigned())
	case from.IsInt() && to == ir.F64:
		l.t.fromInt(l, dst, l.reg(in.Args[0]), from.IsSigned())
	default:
		l.move(dst, in.Args[0])
	}
}

// mathTable has the library functions that are a few instructions.
var mathTable = map[string]opLowering{
	"math.Sqrt": func(l *lowerer, in *ir.Instr, _ ir.Type, dst vreg) { l.op2(vsqrtpd, dst, l.src(in.Args[0])) },
	"math.Abs": func(l *lowerer, in *ir.Instr, _ ir.Type, dst vreg) {
		l.op3(vandpd, dst, l.reg(in.Args[0]), l.splat(signBit-1))
	},
	"math.RoundToEven": round(0),
	"math.Floor":       round(1),
	"math.Ceil":        round(2),
	"math.Trunc":       round(3),
	"math.FMA": func(l *lowerer, in *ir.Instr, _ ir.Type, dst vreg) {
		l.add(inst{special: fused, reg: dst, v: l.reg(in.Args[0]), rm: fromReg(l.reg(in.Args[1])), c: l.reg(in.Args[2])})
	},
	"math.IsNaN": func(l *lowerer, in *ir.Instr, _ ir.Type, dst vreg) {
		x := l.reg(in.Args[0])
		l.t.compareFloat(l, dst, unordered, x, fromReg(x))
	},
	"math.Float64frombits": func(l *lowerer, in *ir.Instr, _ ir.Type, dst vreg) { l.move(dst, in.Args[0]) },
	"math.Float64bits": func(l *lowerer, in *ir.Instr, _ ir.Type, dst vreg) {
		l.t.blend(l, dst, isNaN(l, in.Args[0]), l.splat(ir.CanonicalNaN), l.reg(in.Args[0]))
	},
	"math.Signbit": func(l *lowerer, in *ir.Instr, _ ir.Type, dst vreg) {
		m := l.newMask()
		l.t.compareInt(l, m, ir.OpLt, true, l.reg(in.Args[0]), l.splat(0))
		l.t.maskAndNot(l, dst, m, isNaN(l, in.Args[0]))
	},
	// The sign of a NaN counts as positive.
	"math.Copysign": func(l *lowerer, in *ir.Instr, _ ir.Type, dst vreg) {
		x, s := l.vector(), l.vector()
		l.op3(vandpd, x, l.reg(in.Args[0]), l.splat(signBit-1))
		l.t.blend(l, s, isNaN(l, in.Args[1]), l.splat(0), l.reg(in.Args[1]))
		l.op3(vandpd, s, s, l.splat(signBit))
		l.op3(vorpd, dst, x, fromReg(s))
	},
}

func isNaN(l *lowerer, x ir.Value) vreg {
	m, v := l.newMask(), l.reg(x)
	l.t.compareFloat(l, m, unordered, v, fromReg(v))
	return m
}

// round rounds by an immediate, without the exception for inexact results.
func round(mode int32) opLowering {
	return func(l *lowerer, in *ir.Instr, _ ir.Type, dst vreg) {
		l.op2i(vroundpd, dst, l.src(in.Args[0]), mode|8)
	}
}

// compute lowers an ordinary operation.
func (l *lowerer) compute(in *ir.Instr) {
	f := opTable[in.Op]
	if f == nil || len(in.Results) != 1 {
		l.refuse(in.Pos, "%v", in.Op)
		return
	}
	out := in.Results[0]
	t := l.f.Types[out]
	if len(in.Args) > 0 {
		t = l.f.Types[in.Args[0]]
	}
	shifts := in.Op == ir.OpShl || in.Op == ir.OpShr
	for i, x := range append(in.Args[:len(in.Args):len(in.Args)], out) {
		if xt := l.f.Types[x]; !lane(xt) && !(shifts && i == 1) {
			l.refuse(in.Pos, "%v of %v", in.Op, xt)
			return
		}
	}
	dst := l.into[out]
	if dst == 0 {
		dst = l.newFor(l.f.Types[out])
	}
	f(l, in, t, dst)
	l.vals[out].v = dst
}
