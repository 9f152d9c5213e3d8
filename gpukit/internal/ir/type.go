package ir

import (
	"fmt"
	"math"
)

// Type is the type of a value.
type Type uint8

// The types. Go's int and uint are I64 and U64.
const (
	Invalid Type = iota
	Bool
	I8
	I16
	I32
	I64
	U8
	U16
	U32
	U64
	F32
	F64
	numTypes
)

// Types lists every type, for tables and tests.
var Types = [...]Type{Bool, I8, I16, I32, I64, U8, U16, U32, U64, F32, F64}

var typeNames = [numTypes]string{"invalid", "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float32", "float64"}

// String returns the Go name of t, e.g. "float64".
func (t Type) String() string {
	if t < numTypes {
		return typeNames[t]
	}
	return fmt.Sprintf("Type(%d)", uint8(t))
}

// Bits is the width of t in bits; 8 for Bool.
func (t Type) Bits() int {
	switch t {
	case Bool, I8, U8:
		return 8
	case I16, U16:
		return 16
	case I32, U32, F32:
		return 32
	case I64, U64, F64:
		return 64
	}
	return 0
}

// Size is the width of t in bytes.
func (t Type) Size() int { return t.Bits() / 8 }

// IsFloat reports whether t is F32 or F64.
func (t Type) IsFloat() bool { return t == F32 || t == F64 }

// IsInt reports whether t is an integer type.
func (t Type) IsInt() bool { return t >= I8 && t <= U64 }

// IsSigned reports whether t is a signed integer type.
func (t Type) IsSigned() bool { return t >= I8 && t <= I64 }

// IsUnsigned reports whether t is an unsigned integer type.
func (t Type) IsUnsigned() bool { return t >= U8 && t <= U64 }

// Bits is one scalar of any type in 64 bits: integers sign- or zero-extended
// from their width, Bool as 0 or 1, F32 as its IEEE bits in the low half, F64
// as its IEEE bits.
type Bits = uint64

// CanonicalNaN is the one NaN that the bits of a NaN are observed as; it is
// what math.NaN returns.
const CanonicalNaN = 0x7FF8000000000001

const canonicalNaN32 = 0x7FC00000

// FromF64, FromF32 and FromBool pack a Go value; ToF64, ToF32 unpack.
func FromF64(x float64) Bits { return math.Float64bits(x) }

// FromF32 packs a float32.
func FromF32(x float32) Bits { return Bits(math.Float32bits(x)) }

// FromBool packs a bool.
func FromBool(x bool) Bits {
	if x {
		return 1
	}
	return 0
}

// ToF64 unpacks a float64.
func ToF64(b Bits) float64 { return math.Float64frombits(b) }

// ToF32 unpacks a float32.
func ToF32(b Bits) float32 { return math.Float32frombits(uint32(b)) }

// Wrap brings the low bits of b into the normal form of integer type t, which
// is what Go's wrap-around arithmetic keeps of a wider result.
func Wrap(t Type, b Bits) Bits {
	switch t {
	case I8:
		return Bits(int64(int8(b)))
	case I16:
		return Bits(int64(int16(b)))
	case I32:
		return Bits(int64(int32(b)))
	case U8:
		return Bits(uint8(b))
	case U16:
		return Bits(uint16(b))
	case U32:
		return Bits(uint32(b))
	}
	return b
}

// Canonical maps every NaN of a float type to one, so that results of two
// engines can be compared bit for bit.
func Canonical(t Type, b Bits) Bits {
	switch {
	case t == F64 && ToF64(b) != ToF64(b):
		return CanonicalNaN
	case t == F32 && ToF32(b) != ToF32(b):
		return canonicalNaN32
	}
	return b
}

// FormatBits writes b as a Go constant of type t.
func FormatBits(t Type, b Bits) string {
	switch {
	case t == Bool:
		return fmt.Sprint(b != 0)
	case t == F64:
		return fmt.Sprint(ToF64(b))
	case t == F32:
		return fmt.Sprint(ToF32(b))
	case t.IsUnsigned():
		return fmt.Sprint(b)
	}
	return fmt.Sprint(int64(b))
}
