package gpukit

import "gpunotes/gpukit/internal/ir"

// DType is the type of an array's elements.
type DType uint8

// The element types. Go's int and uint are Int64 and Uint64. Complex numbers
// are not supported.
const (
	Bool    = DType(ir.Bool)
	Int8    = DType(ir.I8)
	Int16   = DType(ir.I16)
	Int32   = DType(ir.I32)
	Int64   = DType(ir.I64)
	Uint8   = DType(ir.U8)
	Uint16  = DType(ir.U16)
	Uint32  = DType(ir.U32)
	Uint64  = DType(ir.U64)
	Float32 = DType(ir.F32)
	Float64 = DType(ir.F64)
)

// String returns the Go name of t, e.g. "float64".
func (t DType) String() string { return t.ir().String() }

// Size is the number of bytes of one element.
func (t DType) Size() int { return t.ir().Size() }

// constant is t as it is written in a program.
func (t DType) constant() string {
	s := t.String()
	return "gpukit." + string(s[0]-'a'+'A') + s[1:]
}

func (t DType) ir() ir.Type { return ir.Type(t) }

func (t DType) valid() bool { return t >= Bool && t <= Float64 }
