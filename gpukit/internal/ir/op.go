package ir

import (
	"fmt"
	"math"
)

// Op is an operation. What an operation is stands in one row of one table;
// an engine has its own table of the same index, and a test names its holes.
type Op uint8

// The operations.
const (
	OpInvalid Op = iota

	// Control.
	OpIf
	OpLoop
	OpYield
	OpBreak
	OpUnreachable
	OpCall

	// Values with an operand of their own: Imm, Fn or the result's type.
	OpConst
	OpConvert
	OpMath

	// Arithmetic on integers and floats.
	OpAdd
	OpSub
	OpMul
	OpDiv
	OpNeg
	OpMin // NaN if either is, -0 < +0
	OpMax
	// Arithmetic on integers.
	OpRem
	OpShl
	OpShr
	// Bits of integers; logic of bools.
	OpAnd
	OpOr
	OpXor
	OpAndNot
	OpNot

	// Comparisons.
	OpEq
	OpNe
	OpLt
	OpLe
	OpGt
	OpGe

	// Choice.
	OpSelect

	// Memory.
	OpLoad
	OpStore
	OpClear
	OpBounds
	OpSliceBounds
	OpAtomic

	// Among the workers of a block or warp.
	OpBarrier
	OpWarpBarrier
	OpShuffle
	OpVote

	OpPrint

	NumOps
)

// Kind tells the variants of an operation apart.
type Kind uint8

// The kinds of OpAtomic: what becomes of old value a and operand x.
const (
	AtomicAdd   Kind = iota // a + x
	AtomicMin               // the smaller; NaN if either is, -0 < +0
	AtomicMax               // the larger
	AtomicAnd               // a & x, integers
	AtomicOr                // a | x
	AtomicXor               // a ^ x
	Exchange                // x
	CompareSwap             // y if a == x bit for bit, else a; operands x, y
)

// The kinds of OpShuffle: whose value a lane is given. A lane that is not
// there, or has left the kernel, gives the asking lane its own.
const (
	ShuffleIdx  Kind = iota // of lane by
	ShuffleUp               // of lane - by
	ShuffleDown             // of lane + by
	ShuffleXor              // of lane ^ by
)

// The kinds of OpVote, over the lanes that have not left the kernel.
const (
	VoteAny Kind = iota
	VoteAll
	Ballot // bit i is lane i's vote
)

// WarpSize is the number of lanes of a warp: consecutive threads of a block, x
// fastest.
const WarpSize = 32

// Fault is what can go wrong in a worker.
type Fault uint8

// The faults.
const (
	NoFault Fault = iota
	DivideByZero
	NegativeShift
	IndexRange
	SliceRange
	// Divergent: workers wait for each other at different places.
	Divergent
	// StepBudget ends an evaluation that took too long; no engine but the
	// reference evaluator reports it.
	StepBudget
	// Cancelled ends an evaluation that the caller asked to stop.
	Cancelled
)

// String is Go's own wording where Go has one.
func (f Fault) String() string {
	switch f {
	case NoFault:
		return "no fault"
	case DivideByZero:
		return "integer divide by zero"
	case NegativeShift:
		return "negative shift amount"
	case IndexRange:
		return "index out of range"
	case SliceRange:
		return "slice bounds out of range"
	case Divergent:
		return "some threads of the block wait at a barrier that others do not reach"
	case StepBudget:
		return "step budget exhausted"
	case Cancelled:
		return "interrupted"
	}
	return fmt.Sprintf("Fault(%d)", uint8(f))
}

// OpRow says what an operation is.
type OpRow struct {
	Name        string
	Args        int    // number of operands of an ordinary operation
	Meaning     string // in terms of its operands
	Commutative bool
	Terminator  bool
	// Result gives the result type of an ordinary operation, or Invalid when
	// the operands do not fit; nil for operations that are not ordinary.
	Result func(t []Type) Type
	// Fault is what the operation may report on operands of types t.
	Fault func(t []Type) Fault
	// Eval computes an ordinary operation on operands a of types t.
	Eval func(t []Type, a []Bits) (Bits, Fault)
}

// Row returns the row of op.
func (op Op) Row() *OpRow { return &opTable[op] }

// String returns the name of op as printed in IR text.
func (op Op) String() string {
	if op < NumOps && opTable[op].Name != "" {
		return opTable[op].Name
	}
	return fmt.Sprintf("Op(%d)", uint8(op))
}

// accessesMem reports whether Instr.Mem has a meaning.
func (op Op) accessesMem() bool {
	return op == OpLoad || op == OpStore || op == OpAtomic || op == OpClear
}

// ResultType applies the row's type rule.
func (op Op) ResultType(t []Type) (Type, error) {
	row := op.Row()
	if row.Result == nil {
		return Invalid, fmt.Errorf("%v is not an ordinary operation", op)
	}
	if len(t) != row.Args {
		return Invalid, fmt.Errorf("%v takes %d operands, not %d", op, row.Args, len(t))
	}
	if rt := row.Result(t); rt != Invalid {
		return rt, nil
	}
	return Invalid, fmt.Errorf("%v does not take %v", op, t)
}

// MayFault reports whether the instruction can report a fault, so that it must
// not run for a worker that would not have reached it.
func (in *Instr) MayFault(f *Func) bool {
	return in.faultOf(f) != NoFault
}

// types appends the types of vs to t.
func (f *Func) types(t []Type, vs []Value) []Type {
	for _, v := range vs {
		t = append(t, f.Types[v])
	}
	return t
}

// Pure reports whether the instruction only computes its results from its
// operands: it may be removed, shared or moved.
func (in *Instr) Pure(f *Func) bool {
	switch in.Op {
	case OpIf, OpLoop, OpYield, OpBreak, OpUnreachable, OpCall, OpPrint,
		OpLoad, OpStore, OpClear, OpAtomic, OpBarrier, OpWarpBarrier, OpShuffle, OpVote:
		return false
	}
	return !in.MayFault(f)
}

// Removable reports whether the instruction can go when nobody uses its
// results. A shuffle or vote cannot: it is a place where workers meet.
func (in *Instr) Removable(f *Func) bool {
	return in.Pure(f) || in.Op == OpLoad
}

func same(ok func(Type) bool) func([]Type) Type {
	return func(t []Type) Type {
		for _, x := range t {
			if x != t[0] || !ok(x) {
				return Invalid
			}
		}
		return t[0]
	}
}

func number(t Type) bool    { return t.IsInt() || t.IsFloat() }
func integer(t Type) bool   { return t.IsInt() }
func intOrBool(t Type) bool { return t.IsInt() || t == Bool }
func anyType(t Type) bool   { return t != Invalid && t < numTypes }

func compare(ok func(Type) bool) func([]Type) Type {
	s := same(ok)
	return func(t []Type) Type {
		if s(t) == Invalid {
			return Invalid
		}
		return Bool
	}
}

func shift(t []Type) Type {
	if t[0].IsInt() && t[1].IsInt() {
		return t[0]
	}
	return Invalid
}

func choice(t []Type) Type {
	if t[0] == Bool && t[1] == t[2] && anyType(t[1]) {
		return t[1]
	}
	return Invalid
}

func divFault(t []Type) Fault {
	if t[0].IsInt() {
		return DivideByZero
	}
	return NoFault
}

func shiftFault(t []Type) Fault {
	if t[1].IsSigned() {
		return NegativeShift
	}
	return NoFault
}

// arith builds an Eval from the operation on each kind of number.
func arith(f64 func(x, y float64) float64, f32 func(x, y float32) float32, i func(x, y Bits) Bits) func([]Type, []Bits) (Bits, Fault) {
	return func(ts []Type, a []Bits) (Bits, Fault) {
		t := ts[0]
		switch t {
		case F64:
			return FromF64(f64(ToF64(a[0]), ToF64(a[1]))), NoFault
		case F32:
			return FromF32(f32(ToF32(a[0]), ToF32(a[1]))), NoFault
		}
		return Wrap(t, i(a[0], a[1])), NoFault
	}
}

// order builds an Eval from the sign of a comparison, where unordered is the
// answer when an operand is NaN.
func order(holds func(c int) bool, unordered bool) func([]Type, []Bits) (Bits, Fault) {
	return func(ts []Type, a []Bits) (Bits, Fault) {
		t := ts[0]
		c, nan := Compare(t, a[0], a[1])
		if nan {
			return FromBool(unordered), NoFault
		}
		return FromBool(holds(c)), NoFault
	}
}

// Compare orders two values of one type: -1, 0 or +1, or nan.
func Compare(t Type, x, y Bits) (c int, nan bool) {
	switch {
	case t == F64:
		return compareFloat(ToF64(x), ToF64(y))
	case t == F32:
		return compareFloat(float64(ToF32(x)), float64(ToF32(y)))
	case t.IsSigned():
		switch a, b := int64(x), int64(y); {
		case a < b:
			return -1, false
		case a > b:
			return 1, false
		}
		return 0, false
	}
	switch {
	case x < y:
		return -1, false
	case x > y:
		return 1, false
	}
	return 0, false
}

func compareFloat(a, b float64) (int, bool) {
	switch {
	case a < b:
		return -1, false
	case a > b:
		return 1, false
	case a == b:
		return 0, false
	}
	return 0, true
}

func evalDiv(ts []Type, a []Bits) (Bits, Fault) {
	t := ts[0]
	switch {
	case t == F64:
		return FromF64(ToF64(a[0]) / ToF64(a[1])), NoFault
	case t == F32:
		return FromF32(ToF32(a[0]) / ToF32(a[1])), NoFault
	case a[1] == 0:
		return 0, DivideByZero
	case t.IsSigned():
		// Go defines the overflowing quotient: minint / -1 = minint.
		return Wrap(t, Bits(int64(a[0])/int64(a[1]))), NoFault
	}
	return a[0] / a[1], NoFault
}

func evalRem(ts []Type, a []Bits) (Bits, Fault) {
	t := ts[0]
	switch {
	case a[1] == 0:
		return 0, DivideByZero
	case t.IsSigned():
		return Bits(int64(a[0]) % int64(a[1])), NoFault
	}
	return a[0] % a[1], NoFault
}

func evalShl(t []Type, a []Bits) (Bits, Fault) {
	switch {
	case t[1].IsSigned() && int64(a[1]) < 0:
		return 0, NegativeShift
	case a[1] >= 64:
		return 0, NoFault
	}
	return Wrap(t[0], a[0]<<a[1]), NoFault
}

func evalShr(t []Type, a []Bits) (Bits, Fault) {
	if t[1].IsSigned() && int64(a[1]) < 0 {
		return 0, NegativeShift
	}
	n := min(a[1], 64)
	if t[0].IsSigned() {
		return Bits(int64(a[0]) >> n), NoFault
	}
	return a[0] >> n, NoFault
}

func evalMinMax(max bool) func([]Type, []Bits) (Bits, Fault) {
	return func(ts []Type, a []Bits) (Bits, Fault) {
		t := ts[0]
		switch t {
		case F64:
			x, y := ToF64(a[0]), ToF64(a[1])
			if max {
				return FromF64(maxFloat(x, y)), NoFault
			}
			return FromF64(minFloat(x, y)), NoFault
		case F32:
			x, y := ToF32(a[0]), ToF32(a[1])
			if max {
				return FromF32(maxFloat(x, y)), NoFault
			}
			return FromF32(minFloat(x, y)), NoFault
		}
		if c, _ := Compare(t, a[0], a[1]); (c > 0) == max {
			return a[0], NoFault
		}
		return a[1], NoFault
	}
}

func minFloat[T float32 | float64](x, y T) T { return min(x, y) }
func maxFloat[T float32 | float64](x, y T) T { return max(x, y) }

func evalNeg(ts []Type, a []Bits) (Bits, Fault) {
	t := ts[0]
	switch t {
	case F64:
		return FromF64(-ToF64(a[0])), NoFault
	case F32:
		return FromF32(-ToF32(a[0])), NoFault
	}
	return Wrap(t, -a[0]), NoFault
}

func evalNot(ts []Type, a []Bits) (Bits, Fault) {
	t := ts[0]
	if t == Bool {
		return a[0] ^ 1, NoFault
	}
	return Wrap(t, ^a[0]), NoFault
}

func evalSelect(_ []Type, a []Bits) (Bits, Fault) {
	if a[0] != 0 {
		return a[1], NoFault
	}
	return a[2], NoFault
}

func bitwise(f func(x, y Bits) Bits) func([]Type, []Bits) (Bits, Fault) {
	return func(_ []Type, a []Bits) (Bits, Fault) { return f(a[0], a[1]), NoFault }
}

var opTable = [NumOps]OpRow{
	OpIf:          {Name: "if", Meaning: "runs the first region if arg0, else the second"},
	OpLoop:        {Name: "loop", Meaning: "runs its region again and again with carried values, first args"},
	OpYield:       {Name: "yield", Terminator: true, Meaning: "ends the region with values args"},
	OpBreak:       {Name: "break", Terminator: true, Meaning: "leaves the level-th enclosing construct with results args"},
	OpUnreachable: {Name: "unreachable", Terminator: true, Meaning: "is never arrived at"},
	OpCall:        {Name: "call", Meaning: "the callee's results on args"},
	OpConst:       {Name: "const", Meaning: "the constant Imm"},
	OpConvert:     {Name: "convert", Args: 1, Meaning: "arg0 in the result's type: wraps, rounds to nearest even, truncates and saturates, NaN to 0"},
	OpMath:        {Name: "math", Meaning: "the library function Fn of args"},

	OpAdd: {Name: "add", Args: 2, Meaning: "arg0 + arg1", Commutative: true, Result: same(number),
		Eval: arith(func(x, y float64) float64 { return x + y }, func(x, y float32) float32 { return x + y }, func(x, y Bits) Bits { return x + y })},
	OpSub: {Name: "sub", Args: 2, Meaning: "arg0 - arg1", Result: same(number),
		Eval: arith(func(x, y float64) float64 { return x - y }, func(x, y float32) float32 { return x - y }, func(x, y Bits) Bits { return x - y })},
	OpMul: {Name: "mul", Args: 2, Meaning: "arg0 * arg1", Commutative: true, Result: same(number),
		Eval: arith(func(x, y float64) float64 { return x * y }, func(x, y float32) float32 { return x * y }, func(x, y Bits) Bits { return x * y })},
	OpDiv: {Name: "div", Args: 2, Meaning: "arg0 / arg1, integers truncated", Result: same(number), Fault: divFault, Eval: evalDiv},
	OpNeg: {Name: "neg", Args: 1, Meaning: "-arg0", Result: same(number), Eval: evalNeg},
	OpMin: {Name: "min", Args: 2, Meaning: "the smaller; NaN if either is, -0 < +0", Commutative: true, Result: same(number), Eval: evalMinMax(false)},
	OpMax: {Name: "max", Args: 2, Meaning: "the larger; NaN if either is, -0 < +0", Commutative: true, Result: same(number), Eval: evalMinMax(true)},
	OpRem: {Name: "rem", Args: 2, Meaning: "arg0 % arg1, sign of arg0", Result: same(integer), Fault: divFault, Eval: evalRem},
	OpShl: {Name: "shl", Args: 2, Meaning: "arg0 << arg1, 0 from the width on", Result: shift, Fault: shiftFault, Eval: evalShl},
	OpShr: {Name: "shr", Args: 2, Meaning: "arg0 >> arg1, sign or 0 from the width on", Result: shift, Fault: shiftFault, Eval: evalShr},

	OpAnd:    {Name: "and", Args: 2, Meaning: "arg0 & arg1", Commutative: true, Result: same(intOrBool), Eval: bitwise(func(x, y Bits) Bits { return x & y })},
	OpOr:     {Name: "or", Args: 2, Meaning: "arg0 | arg1", Commutative: true, Result: same(intOrBool), Eval: bitwise(func(x, y Bits) Bits { return x | y })},
	OpXor:    {Name: "xor", Args: 2, Meaning: "arg0 ^ arg1", Commutative: true, Result: same(intOrBool), Eval: bitwise(func(x, y Bits) Bits { return x ^ y })},
	OpAndNot: {Name: "andnot", Args: 2, Meaning: "arg0 &^ arg1", Result: same(intOrBool), Eval: bitwise(func(x, y Bits) Bits { return x &^ y })},
	OpNot:    {Name: "not", Args: 1, Meaning: "^arg0, or !arg0", Result: same(intOrBool), Eval: evalNot},

	OpEq: {Name: "eq", Args: 2, Meaning: "arg0 == arg1", Commutative: true, Result: compare(anyType), Eval: order(func(c int) bool { return c == 0 }, false)},
	OpNe: {Name: "ne", Args: 2, Meaning: "arg0 != arg1", Commutative: true, Result: compare(anyType), Eval: order(func(c int) bool { return c != 0 }, true)},
	OpLt: {Name: "lt", Args: 2, Meaning: "arg0 < arg1", Result: compare(number), Eval: order(func(c int) bool { return c < 0 }, false)},
	OpLe: {Name: "le", Args: 2, Meaning: "arg0 <= arg1", Result: compare(number), Eval: order(func(c int) bool { return c <= 0 }, false)},
	OpGt: {Name: "gt", Args: 2, Meaning: "arg0 > arg1", Result: compare(number), Eval: order(func(c int) bool { return c > 0 }, false)},
	OpGe: {Name: "ge", Args: 2, Meaning: "arg0 >= arg1", Result: compare(number), Eval: order(func(c int) bool { return c >= 0 }, false)},

	OpLoad:        {Name: "load", Meaning: "element arg0 of memory Mem"},
	OpStore:       {Name: "store", Meaning: "element arg0 of Mem becomes arg1"},
	OpClear:       {Name: "clear", Meaning: "all elements of Mem become zero"},
	OpBounds:      {Name: "bounds", Meaning: "fault unless 0 <= arg0 < arg1", Fault: func([]Type) Fault { return IndexRange }},
	OpSliceBounds: {Name: "slicebounds", Meaning: "fault unless 0 <= arg0 <= arg1 <= arg2", Fault: func([]Type) Fault { return SliceRange }},
	OpAtomic:      {Name: "atomic", Meaning: "element arg0 of Mem before it becomes Kind of itself and arg1, in one step"},
	OpBarrier:     {Name: "barrier", Meaning: "waits for every worker of the block that has not left the kernel"},
	OpWarpBarrier: {Name: "warpbarrier", Meaning: "waits for every worker of the warp that has not left the kernel"},
	OpShuffle:     {Name: "shuffle", Meaning: "arg0 of the lane that Kind and arg1 say"},
	OpVote:        {Name: "vote", Meaning: "Kind over arg0 of the lanes of the warp"},
	OpPrint:       {Name: "print", Meaning: "prints a line of Text and args"},

	OpSelect: {Name: "select", Args: 3, Meaning: "arg1 if arg0, else arg2", Result: choice, Eval: evalSelect},
}

// Convert changes x from type `from` to type `to`: integers wrap, integer to
// float rounds to nearest even, float to integer truncates, saturates out of
// range and gives 0 for NaN.
func Convert(to, from Type, x Bits) Bits {
	switch {
	case from == to:
		return x
	case to == F64 && from == F32:
		return FromF64(float64(ToF32(x)))
	case to == F32 && from == F64:
		return FromF32(float32(ToF64(x)))
	case to == F64 && from.IsSigned():
		return FromF64(float64(int64(x)))
	case to == F64:
		return FromF64(float64(x))
	case to == F32 && from.IsSigned():
		return FromF32(float32(int64(x)))
	case to == F32:
		return FromF32(float32(x))
	case from == F64:
		return Saturate(to, ToF64(x))
	case from == F32:
		return Saturate(to, float64(ToF32(x)))
	}
	return Wrap(to, x)
}

// Saturate converts x to integer type t: truncated, the nearest value of t
// when out of range, 0 for NaN.
func Saturate(t Type, x float64) Bits {
	lo, hi := 0.0, math.Ldexp(1, t.Bits())
	if t.IsSigned() {
		hi = math.Ldexp(1, t.Bits()-1)
		lo = -hi
	}
	switch {
	case x != x:
		return 0
	case x <= lo:
		return Wrap(t, Bits(int64(lo)))
	case x >= hi:
		if t.IsSigned() {
			return Bits(int64(1)<<(t.Bits()-1) - 1)
		}
		return Wrap(t, ^Bits(0))
	case t.IsSigned() || x < 1<<63:
		return Bits(int64(x))
	}
	// 2^63 <= x < 2^64: shift the range of int64 up.
	return Bits(int64(x-(1<<63))) + 1<<63
}
