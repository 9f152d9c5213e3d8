package frontend

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"sync"

	"gpunotes/gpukit/internal/ir"
)

// mathConsts are the constants of package math, exact. The digits are those
// of the sequences A001113, A000796, A001622, A002193, A019774, A002161,
// A139339, A002162 and A002392 of oeis.org, to the length that package math
// has; a test compares every value with it.
const mathConsts = `package math
const (
	E = 2.71828182845904523536028747135266249775724709369995957496696763
	Pi = 3.14159265358979323846264338327950288419716939937510582097494459
	Phi = 1.61803398874989484820458683436563811772030917980576286213544862
	Sqrt2 = 1.41421356237309504880168872420969807856967187537694807317667974
	SqrtE = 1.64872127070012814684865078781416357165377610071014801157507931
	SqrtPi = 1.77245385090551602729816748334114518279754945612238712821380779
	SqrtPhi = 1.27201964951406896425242246173749149171560804184009624861664038
	Ln2 = 0.693147180559945309417232121458176568075500134360255254120680009
	Ln10 = 2.30258509299404568401799145468436420760110148862877297603332790
	Log2E, Log10E = 1 / Ln2, 1 / Ln10
	MaxFloat32, SmallestNonzeroFloat32 = 0x1p128 - 0x1p104, 0x1p-149
	MaxFloat64, SmallestNonzeroFloat64 = 0x1p1024 - 0x1p971, 0x1p-1074
	MaxInt8, MinInt8, MaxUint8 = 1<<7 - 1, -1 << 7, 1<<8 - 1
	MaxInt16, MinInt16, MaxUint16 = 1<<15 - 1, -1 << 15, 1<<16 - 1
	MaxInt32, MinInt32, MaxUint32 = 1<<31 - 1, -1 << 31, 1<<32 - 1
	MaxInt64, MinInt64, MaxUint64 = 1<<63 - 1, -1 << 63, 1<<64 - 1
	MaxInt, MinInt, MaxUint = MaxInt64, MinInt64, MaxUint64
)`

// goType is the Go type of a library function's operand: it is int, not
// int64, in every signature of packages math and math/bits.
var goType = map[ir.Type]types.Type{
	ir.Bool: types.Typ[types.Bool],
	ir.I64:  types.Typ[types.Int],
	ir.U32:  types.Typ[types.Uint32],
	ir.U64:  types.Typ[types.Uint64],
	ir.F32:  types.Typ[types.Float32],
	ir.F64:  types.Typ[types.Float64],
}

// mathPackage is package math for go/types, made from the table of library
// functions; it is read-only once made.
var mathPackage = sync.OnceValue(func() *types.Package {
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, "math", mathConsts, parser.SkipObjectResolution)
	if err != nil {
		panic(err)
	}
	pkg, err := new(types.Config).Check("math", fset, []*ast.File{file}, nil)
	if err != nil {
		panic(err)
	}
	for name, fns := range libFuncs("math") {
		insertFunc(pkg, name, fns, func(t ir.Type) types.Type { return goType[t] })
	}
	return pkg
})

// irType gives the representation of a Go type, if it has one.
func irType(t types.Type) (ir.Type, bool) {
	b, ok := t.Underlying().(*types.Basic)
	if !ok {
		return ir.Invalid, false
	}
	x, ok := basicTypes[b.Kind()]
	return x, ok
}

// Untyped constants that no context gave a type have their default one.
var basicTypes = map[types.BasicKind]ir.Type{
	types.Bool: ir.Bool, types.UntypedBool: ir.Bool,
	types.Int: ir.I64, types.UntypedInt: ir.I64, types.UntypedRune: ir.I32,
	types.Int8: ir.I8, types.Int16: ir.I16, types.Int32: ir.I32, types.Int64: ir.I64,
	types.Uint: ir.U64, types.Uintptr: ir.U64,
	types.Uint8: ir.U8, types.Uint16: ir.U16, types.Uint32: ir.U32, types.Uint64: ir.U64,
	types.Float32: ir.F32, types.Float64: ir.F64, types.UntypedFloat: ir.F64,
}
