package amd64

import "gpunotes/gpukit/internal/ir"

// target is what the instruction sets do differently. Every method appends
// instructions to l. What writes dst does so in its last instruction, so that
// dst may be one of the operands. A mask has all bits of a lane's element set,
// or one bit of a k register; lanes that are not in the current region may
// have anything.
type target interface {
	lanes() int
	maskKind() kind

	// splat is a constant of the pool for the place of an operand.
	splat(l *lowerer, bits uint64) memory
	loadSplat(l *lowerer, dst vreg, bits uint64)
	// broadcast puts a general register into all lanes.
	broadcast(l *lowerer, dst vreg, gpr uint8)

	constMask(l *lowerer, dst vreg, set bool)
	maskAnd(l *lowerer, dst, x, y vreg)
	maskAndNot(l *lowerer, dst, x, y vreg) // x &^ y
	maskOr(l *lowerer, dst, x, y vreg)
	maskXor(l *lowerer, dst, x, y vreg)
	maskNot(l *lowerer, dst, x vreg)
	// test sets the zero flag if m is empty.
	test(l *lowerer, m vreg)

	// blend is dst = x where m, else y.
	blend(l *lowerer, dst, m vreg, x source, y vreg)
	blendMask(l *lowerer, dst, m, x, y vreg)

	compareFloat(l *lowerer, dst vreg, predicate int32, x vreg, y source)
	compareInt(l *lowerer, dst vreg, op ir.Op, signed bool, x vreg, y source)

	mulInt(l *lowerer, dst, x vreg, y source)
	minMaxInt(l *lowerer, dst vreg, max, signed bool, x vreg, y source)
	// shiftRightSigned shifts by n lane by lane, or by the constant k if n is 0.
	shiftRightSigned(l *lowerer, dst, x, n vreg, k int32)
	fromInt(l *lowerer, dst, x vreg, signed bool)
	toInt(l *lowerer, dst, x vreg, signed bool)

	// tail has the lanes below the number of workers that are left, in R8.
	tail(l *lowerer, dst vreg)
	loadMasked(l *lowerer, dst, m vreg, from memory)
	storeMasked(l *lowerer, src, m vreg, to memory)
	// loadBools and storeBools have the stream in RCX.
	loadBools(l *lowerer, dst, m vreg)
	storeBools(l *lowerer, src, m vreg)
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

const signBit = 1 << 63
