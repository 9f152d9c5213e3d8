package amd64

import "gpunotes/gpukit/internal/ir"

// target is what the instruction sets do differently. Every method appends
// instructions to l that work on one part of a value: a full register. t is the type of
// the lanes that are computed with: of 64 bits, or of 32 for all others.
// What writes dst does so in its last instruction, so that dst may be one of the
// operands. A mask has all bits of a lane set or none, or one bit of a k register;
// lanes that are not in the current region may have anything.
type target interface {
	lanes() int // of 64 bits
	maskKind() kind

	constMask(l *lowerer, dst vreg, set bool)
	maskAnd(l *lowerer, dst, x, y vreg)
	maskAndNot(l *lowerer, dst, x, y vreg) // x &^ y
	maskOr(l *lowerer, dst, x, y vreg)
	maskXor(l *lowerer, dst, x, y vreg)
	maskNot(l *lowerer, dst, x vreg)
	// test sets the zero flag if m is empty.
	test(l *lowerer, m vreg)

	blendMask(l *lowerer, dst, m, x, y vreg) // x where m, else y
	// keep is dst = x where m, else 0.
	keep(l *lowerer, t ir.Type, dst, m vreg, x source)

	// compare compares numbers of type t; unordered says where any of two floats is a
	// NaN, or the contrary.
	compare(l *lowerer, t ir.Type, op ir.Op, dst, x vreg, y source)
	unordered(l *lowerer, t ir.Type, dst, x, y vreg, not bool)
	// testBits clears the zero flag if a lane of m, of 64 bits, has any of the bits.
	testBits(l *lowerer, x vreg, bits uint64, m vreg)

	mulInt(l *lowerer, dst, x, y vreg) // of 64 bits
	mulConst(l *lowerer, dst, x vreg, c uint64)
	minMaxInt(l *lowerer, t ir.Type, dst vreg, max bool, x vreg, y source)
	// shiftRightSigned shifts by n lane by lane, or by the constant k if n is 0.
	shiftRightSigned(l *lowerer, t ir.Type, dst, x, n vreg, k int32)
	fromInt(l *lowerer, dst, x vreg, signed bool) // 64 bits to F64
	toInt(l *lowerer, dst, x vreg, signed bool)   // F64 to 64 bits, saturating
	// floatFromUint32 is U32 to F32, floatsFromUint32 U32 to two parts of F64.
	floatFromUint32(l *lowerer, dst, x vreg)
	floatsFromUint32(l *lowerer, dst []vreg, x vreg)
	// floatFromInts is two parts of 64 bits to F32, rounded once.
	floatFromInts(l *lowerer, dst, lo, hi vreg, signed bool)
	// truncate is F64 to integers of 32 bits or less, and truncate32 F32 to those.
	truncate(l *lowerer, to ir.Type, dst, lo, hi vreg)
	truncate32(l *lowerer, to ir.Type, dst, x vreg)
	// fromQuotients is two parts of F64 that are in range to I32 or U32; 2^31 becomes the
	// lowest I32.
	fromQuotients(l *lowerer, to ir.Type, dst, lo, hi vreg)

	// upper is the upper half of x in the lower half, join the lower halves of two.
	upper(l *lowerer, dst, x vreg)
	join(l *lowerer, dst, lo, hi vreg)
	// narrow is the lower halves of the lanes of 64 bits of two parts.
	narrow(l *lowerer, dst, lo, hi vreg)
	// upperHalves is the upper halves of the even lanes of 32 bits of even, and those of
	// odd in the odd lanes.
	upperHalves(l *lowerer, dst, even, odd vreg)
	// rotateLeft rotates lanes of 32 or 64 bits by n, taken modulo the width, or by the
	// constant k if n is 0.
	rotateLeft(l *lowerer, t ir.Type, dst, x, n vreg, k int32)
	// leadingZeros counts them in lanes of 32 or 64 bits.
	leadingZeros(l *lowerer, t ir.Type, dst, x vreg)
}

// Predicates of float comparisons; all but notEqual are false for a NaN.
const (
	equal        int32 = 0
	unordered    int32 = 3
	notEqual     int32 = 4
	ordered      int32 = 7
	less         int32 = 17
	lessEqual    int32 = 18
	greaterEqual int32 = 29
	greater      int32 = 30
)

var predicates = [ir.NumOps]int32{ir.OpEq: equal, ir.OpNe: notEqual, ir.OpLt: less, ir.OpLe: lessEqual, ir.OpGt: greater, ir.OpGe: greaterEqual}

const (
	signBit   = 1 << 63
	signBit32 = 1 << 31
)

// isWide says that lanes of type t have 64 bits. Bool has none of its own.
func isWide(t ir.Type) bool { return t.Bits() == 64 }

// rowPair is the row for lanes of 64 bits, and that for lanes of 32 bits.
type rowPair struct{ wide, narrow *row }

func (p rowPair) of(t ir.Type) *row {
	if isWide(t) {
		return p.wide
	}
	return p.narrow
}

// Logic of bits, and moves, by lane: they differ where an operand is a constant of one lane, or
// where there is a mask.
var (
	bitAnd     = rowPair{vandpd, vandps}
	bitAndNot  = rowPair{vandnpd, vandnps} // ^vvvv & rm
	bitOr      = rowPair{vorpd, vorps}
	bitXor     = rowPair{vxorpd, vxorps}
	addInt     = rowPair{vpaddq, vpaddd}
	subInt     = rowPair{vpsubq, vpsubd}
	shiftLeft  = rowPair{vpsllq, vpslld}
	shiftRight = rowPair{vpsrlq, vpsrld}
	loadFull   = rowPair{vmovupd, vmovups}
)
