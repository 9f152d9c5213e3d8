package gpukit

import (
	"fmt"
	"reflect"

	"gpunotes/gpukit/internal/cpu"
	"gpunotes/gpukit/internal/ir"
)

// A storage is where the elements of one or more arrays are: a typed slice, or
// a generator that computes them.
type storage interface {
	dtype() DType
	len() int
	bits(k int) ir.Bits
	setBits(k int, b ir.Bits)
}

// sliceOf is storage in host memory; load and store convert an element from
// and to the form of package ir.
type sliceOf[T any] struct {
	t     DType
	data  []T
	boxed any // data
	load  func(T) ir.Bits
	store func(ir.Bits) T
}

func (s *sliceOf[T]) dtype() DType             { return s.t }
func (s *sliceOf[T]) len() int                 { return len(s.data) }
func (s *sliceOf[T]) bits(k int) ir.Bits       { return s.load(s.data[k]) }
func (s *sliceOf[T]) setBits(k int, b ir.Bits) { s.data[k] = s.store(b) }
func (s *sliceOf[T]) slice() any               { return s.boxed }

func ints[T int8 | int16 | int32 | int64 | uint8 | uint16 | uint32 | uint64](t DType, data []T, boxed any) storage {
	return &sliceOf[T]{t, data, boxed, func(x T) ir.Bits { return ir.Bits(x) }, func(b ir.Bits) T { return T(b) }}
}

// storageOf wraps a flat Go slice without copying it; int and uint slices are
// copied, since their width is not fixed. It returns nil for other values.
func storageOf(x any) storage {
	switch d := x.(type) {
	case storage: // of an operand that is not in host memory
		return d
	case []float64:
		return &sliceOf[float64]{Float64, d, x, ir.FromF64, ir.ToF64}
	case []float32:
		return &sliceOf[float32]{Float32, d, x, ir.FromF32, ir.ToF32}
	case []bool:
		return &sliceOf[bool]{Bool, d, x, ir.FromBool, func(b ir.Bits) bool { return b != 0 }}
	case []int8:
		return ints(Int8, d, x)
	case []int16:
		return ints(Int16, d, x)
	case []int32:
		return ints(Int32, d, x)
	case []int64:
		return ints(Int64, d, x)
	case []uint8:
		return ints(Uint8, d, x)
	case []uint16:
		return ints(Uint16, d, x)
	case []uint32:
		return ints(Uint32, d, x)
	case []uint64:
		return ints(Uint64, d, x)
	}
	// int, uint and named element types: by kind.
	v := reflect.ValueOf(x)
	if v.Kind() != reflect.Slice {
		return nil
	}
	t := dtypeOfKind(v.Type().Elem().Kind())
	if t == 0 {
		return nil
	}
	out := makeStorage(t, v.Len())
	for i := range v.Len() {
		out.setBits(i, bitsOf(v.Index(i)))
	}
	return out
}

// makeStorage makes n zeros. It panics with a *ShapeError if they do not fit into
// memory.
func makeStorage(t DType, n int) storage {
	s, dirty := makeDirty(t, n)
	if dirty {
		wipe(s)
	}
	return s
}

// makeDirty is makeStorage for what will be written whole: dirty says that the
// elements are not zeros, but whatever.
func makeDirty(t DType, n int) (s storage, dirty bool) {
	needRoom("", t, n)
	switch t {
	case Float64:
		return fresh[float64](n)
	case Float32:
		return fresh[float32](n)
	case Bool:
		return fresh[bool](n)
	case Int8:
		return fresh[int8](n)
	case Int16:
		return fresh[int16](n)
	case Int32:
		return fresh[int32](n)
	case Int64:
		return fresh[int64](n)
	case Uint8:
		return fresh[uint8](n)
	case Uint16:
		return fresh[uint16](n)
	case Uint32:
		return fresh[uint32](n)
	case Uint64:
		return fresh[uint64](n)
	}
	panic(fmt.Sprintf("gpukit: internal error: no storage of %v", t))
}

func fresh[T bool | int8 | int16 | int32 | int64 | uint8 | uint16 | uint32 | uint64 | float32 | float64](n int) (storage, bool) {
	data, dirty := cpu.MakeArray[T](n)
	return storageOf(data), dirty
}

// wipe makes all elements of a storage in host memory zeros.
func wipe(s storage) { reflect.ValueOf(sliceBehind(s)).Clear() }

func dtypeOfKind(k reflect.Kind) DType {
	switch k {
	case reflect.Bool:
		return Bool
	case reflect.Int8:
		return Int8
	case reflect.Int16:
		return Int16
	case reflect.Int32:
		return Int32
	case reflect.Int64, reflect.Int:
		return Int64
	case reflect.Uint8:
		return Uint8
	case reflect.Uint16:
		return Uint16
	case reflect.Uint32:
		return Uint32
	case reflect.Uint64, reflect.Uint, reflect.Uintptr:
		return Uint64
	case reflect.Float32:
		return Float32
	case reflect.Float64:
		return Float64
	}
	return 0
}

// bitsOf packs a scalar of one of the kinds that dtypeOfKind knows.
func bitsOf(v reflect.Value) ir.Bits {
	switch {
	case v.Kind() == reflect.Bool:
		return ir.FromBool(v.Bool())
	case v.Kind() == reflect.Float32:
		return ir.FromF32(float32(v.Float()))
	case v.CanInt():
		return ir.Bits(v.Int())
	case v.CanUint():
		return v.Uint()
	}
	return ir.FromF64(v.Float())
}

// sliceBehind returns the Go slice behind s, or nil for what is not in host
// memory.
func sliceBehind(s storage) any {
	if s, ok := s.(interface{ slice() any }); ok {
		return s.slice()
	}
	return nil
}

// inMemory reports whether the elements of s are stored, here or on a GPU, so
// that they can be written.
func inMemory(s storage) bool { return sliceBehind(s) != nil || deviceMemoryOf(s) != nil }

// extent is where the elements of a storage are, for comparisons: element 0 at
// address first of a space. Memory of another space is other memory.
type extent struct {
	space any
	first uint64
	n     int
}

// extentOf gives the extent of a storage in memory; ok is false of any other.
func extentOf(s storage) (e extent, ok bool) {
	if m := deviceMemoryOf(s); m != nil {
		return extent{m.gpu, uint64(m.block.ptr), m.n}, true
	}
	v := reflect.ValueOf(sliceBehind(s))
	if !v.IsValid() {
		return extent{}, false
	}
	return extent{v.Type(), uint64(v.Pointer()), v.Len()}, true
}

// generator is a float64 storage without memory: element k is computed.
type generator struct {
	kind                    generatorKind
	n                       int
	start, step, stop, span float64
}

type generatorKind uint8

const (
	constant generatorKind = iota // start
	arange                        // k
	linspace                      // start + k*step, the last one exactly stop
)

// newLinspace follows numpy.linspace: element k is k*step + start with
// step = (stop-start)/(n-1), the last element is stop itself; where step
// underflows to 0, k/(n-1)*(stop-start) + start.
func newLinspace(start, stop float64, n int) *generator {
	g := &generator{kind: linspace, n: n, start: start, stop: stop, span: stop - start}
	if n > 1 {
		g.step = g.span / float64(n-1)
	}
	return g
}

func (g *generator) dtype() DType       { return Float64 }
func (g *generator) len() int           { return g.n }
func (g *generator) bits(k int) ir.Bits { return ir.FromF64(g.at(k)) }
func (g *generator) setBits(k int, b ir.Bits) {
	panic("gpukit: internal error: writing to a generator")
}

func (g *generator) at(k int) float64 {
	switch g.kind {
	case arange:
		return float64(k)
	case linspace:
		switch {
		case k == g.n-1 && g.n > 1:
			return g.stop
		case g.step == 0 && g.n > 1:
			return float64(float64(k)/float64(g.n-1)*g.span) + g.start
		}
		return float64(float64(k)*g.step) + g.start
	}
	return g.start
}

// Fill sets dst[i] to element first + i*stride.
func (g *generator) Fill(dst []float64, first, stride int) {
	switch g.kind {
	case constant:
		for i := range dst {
			dst[i] = g.start
		}
	case arange:
		for i := range dst {
			dst[i] = float64(first + i*stride)
		}
	default:
		if stride == 0 {
			v := g.at(first)
			for i := range dst {
				dst[i] = v
			}
			return
		}
		if g.step == 0 {
			for i := range dst {
				dst[i] = g.at(first + i*stride)
			}
			return
		}
		for i := range dst {
			dst[i] = float64(float64(first+i*stride)*g.step) + g.start
		}
		// The last element of the storage, if it is among these.
		if last := g.n - 1 - first; g.n > 1 && last%stride == 0 && last/stride >= 0 && last/stride < len(dst) {
			dst[last/stride] = g.stop
		}
	}
}

func (g *generator) String() string {
	switch g.kind {
	case arange:
		return fmt.Sprintf("Arange(%d)", g.n)
	case linspace:
		return fmt.Sprintf("Linspace(%v, %v, %d)", g.start, g.stop, g.n)
	}
	return fmt.Sprintf("Full(%v)", g.start)
}
