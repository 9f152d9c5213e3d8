package gpukit

import (
	"encoding/binary"
	"reflect"
	"runtime"
	"sync"
	"unsafe"
)

// A card has the elements of an array one after the other, little-endian, a bool as
// a byte. Most hosts have a Go slice in the same form: then to pack it is to copy
// its bytes. This is the only file of gpukit that may look at them.

// littleEndian reports whether this host has numbers as a card has them.
var littleEndian = func() bool {
	x := uint16(1)
	return *(*byte)(unsafe.Pointer(&x)) == 1
}()

// bytesOf is the memory of a slice of numbers or bools, which it shares; ok is false
// where that is not what a card has.
func bytesOf(slice any) (b []byte, ok bool) {
	if !littleEndian {
		return nil, false
	}
	switch x := slice.(type) {
	case []float64:
		return memoryOfSlice(x), true
	case []float32:
		return memoryOfSlice(x), true
	case []bool:
		return memoryOfSlice(x), true
	case []int8:
		return memoryOfSlice(x), true
	case []int16:
		return memoryOfSlice(x), true
	case []int32:
		return memoryOfSlice(x), true
	case []int64:
		return memoryOfSlice(x), true
	case []uint8:
		return x, true
	case []uint16:
		return memoryOfSlice(x), true
	case []uint32:
		return memoryOfSlice(x), true
	case []uint64:
		return memoryOfSlice(x), true
	}
	return nil, false
}

func memoryOfSlice[T bool | int8 | int16 | int32 | int64 | uint16 | uint32 | uint64 | float32 | float64](x []T) []byte {
	if len(x) == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(x))), len(x)*int(unsafe.Sizeof(x[0])))
}

// pack writes element lo of a slice and those after it as a card has them, as many
// as dst has room for.
func pack(dst []byte, slice any, lo int) {
	if b, ok := bytesOf(slice); ok {
		move(dst, b[lo*elementSize(slice):])
		return
	}
	if _, err := binary.Encode(dst, binary.LittleEndian, part(slice, lo, lo+len(dst)/elementSize(slice))); err != nil {
		panic("gpukit: internal error: " + err.Error())
	}
}

// unpack is the way back: it fills element lo of a slice and those after it with
// all of src.
func unpack(slice any, lo int, src []byte) {
	if flags, ok := slice.([]bool); ok { // a byte that is neither 0 nor 1 would be no bool
		for i, x := range src {
			flags[lo+i] = x != 0
		}
		return
	}
	if b, ok := bytesOf(slice); ok {
		move(b[lo*elementSize(slice):], src)
		return
	}
	if _, err := binary.Decode(src, binary.LittleEndian, part(slice, lo, lo+len(src)/elementSize(slice))); err != nil {
		panic("gpukit: internal error: " + err.Error())
	}
}

// elementSize is the size in bytes of an element of a slice that bytesOf takes.
func elementSize(slice any) int {
	switch slice.(type) {
	case []bool, []int8, []uint8:
		return 1
	case []int16, []uint16:
		return 2
	case []int32, []uint32, []float32:
		return 4
	}
	return 8
}

// part is elements lo to hi of a slice.
func part(slice any, lo, hi int) any { return reflect.ValueOf(slice).Slice(lo, hi).Interface() }

const (
	movePiece  = 1 << 20 // bytes that are worth a goroutine
	moveAtOnce = 8       // more of them than that no memory keeps busy
)

// move is copy, by several goroutines if there is much to do.
func move(dst, src []byte) {
	n := min(len(dst), len(src))
	k := min(n/movePiece, runtime.GOMAXPROCS(0), moveAtOnce)
	if k < 2 {
		copy(dst, src)
		return
	}
	each := (n/k + 63) &^ 63
	var wg sync.WaitGroup
	for lo := each; lo < n; lo += each {
		hi := min(lo+each, n)
		wg.Go(func() { copy(dst[lo:hi], src[lo:hi]) })
	}
	copy(dst[:each], src[:each])
	wg.Wait()
}
