package gpukit

import (
	"fmt"
	"math"
	"math/big"
	"reflect"

	"gonum.org/v1/gonum/mat"

	"gpunotes/gpukit/internal/ir"
)

// toArgument takes x, the argument at position pos, for a parameter whose
// elements are of type t: an array, or else a scalar.
func toArgument(op string, pos int, name string, t ir.Type, x any) (a *Array, scalar ir.Bits, err error) {
	refuse := func(detail, remedy string) (*Array, ir.Bits, error) {
		return nil, 0, &ArgumentError{Op: op, Arg: pos, Name: name, Detail: detail, Remedy: remedy}
	}
	switch v := x.(type) {
	case nil:
		return refuse("nil", "pass an array, a slice or a number")
	case *Array:
		if v == nil {
			return refuse("the array is nil", "check the error of the call that was to make it")
		}
		a = v
	case Array:
		a = &v
	case float64: // the usual scalar, without reflection
		if t == ir.F64 {
			return nil, ir.FromF64(v), nil
		}
	case mat.Matrix:
		return refuse(fmt.Sprintf("a matrix of type %T is not an array", x), "wrap it as gpukit.FromMatrix(m)")
	}
	if a == nil {
		v := reflect.ValueOf(x)
		if from := dtypeOfKind(v.Kind()); from != 0 {
			b, ok := exact(t, from.ir(), bitsOf(v))
			if !ok {
				detail := fmt.Sprintf("%v (%v) is not exactly representable as %v", x, v.Type(), t)
				if from == Bool || t == ir.Bool {
					detail = fmt.Sprintf("%v is of type %v, not %v", x, v.Type(), t)
				}
				return refuse(detail, fmt.Sprintf("convert it yourself, e.g. %v(x), or change the parameter's type", t))
			}
			return nil, b, nil
		}
		if v.Kind() != reflect.Slice {
			return refuse(fmt.Sprintf("a value of type %T is neither an array nor a slice nor a number", x), "pass a *gpukit.Array, a slice of numbers, or a number")
		}
		if why := caught(func() { a = FromSlice(x) }); why != "" {
			return refuse(why, "pass a rectangular slice of numbers")
		}
	}
	if why := a.unusable(); why != "" {
		return refuse(why, "make one with gpukit.FromSlice, Zeros, Linspace, ...")
	}
	if a.DType().ir() != t {
		return refuse(fmt.Sprintf("the array's dtype is %v, the parameter's type is %v", a.DType(), t), fmt.Sprintf("pass it as .As(%s)", DType(t).constant()))
	}
	return a, 0, nil
}

// exact converts a scalar if its value is exactly representable in t. NaN goes
// to any float type, and -0 to integer 0.
func exact(t, from ir.Type, b ir.Bits) (ir.Bits, bool) {
	if t == from {
		return b, true
	}
	if t == ir.Bool || from == ir.Bool {
		return 0, false
	}
	c := ir.Convert(t, from, b)
	if from.IsInt() && b < 1<<24 && (t.IsFloat() || c == b) { // at a glance
		return c, true
	}
	x, okx := value(from, b)
	y, oky := value(t, c)
	if !okx || !oky { // a NaN on either side
		return c, okx == oky
	}
	return c, x.Cmp(y) == 0
}

// value is b as an exact number; ok is false for NaN.
func value(t ir.Type, b ir.Bits) (x *big.Float, ok bool) {
	switch {
	case t == ir.F32 && math.IsNaN(float64(ir.ToF32(b))), t == ir.F64 && math.IsNaN(ir.ToF64(b)):
		return nil, false
	case t == ir.F32:
		return new(big.Float).SetFloat64(float64(ir.ToF32(b))), true
	case t == ir.F64:
		return new(big.Float).SetFloat64(ir.ToF64(b)), true
	case t.IsSigned():
		return new(big.Float).SetInt64(int64(b)), true
	}
	return new(big.Float).SetUint64(b), true
}
