package sim

import (
	"math"
	"math/bits"
)

//go:generate go run gen.go

// lanes is a register of a warp: a value for each lane.
type lanes = [32]uint64

const allLanes = 1<<32 - 1

// vector computes d from a, b and c in the lanes of m.
type vector func(d, a, b, c *lanes, m uint32)

// test compares in the lanes of m.
type test func(a, b *lanes, m uint32) uint32

func one(b bool) uint32 {
	if b {
		return 1
	}
	return 0
}

// nan is x as a register holds it: there is one NaN.
func nan(x float32) uint64 {
	if x != x {
		return nan32
	}
	return bits32(x)
}

func mulHi(a, b uint64) uint64 {
	hi, _ := bits.Mul64(a, b)
	return hi
}

func s64FromF64(x float64) uint64 {
	switch {
	case x < 1<<63 && x >= -1<<63:
		return uint64(int64(x))
	case x > 0:
		return math.MaxInt64
	}
	return 1 << 63 // NaN too
}

func s32FromF64(x float64) uint64 {
	switch {
	case x < 1<<31 && x > -1<<31-1:
		return uint64(uint32(int32(x)))
	case x > 0:
		return math.MaxInt32
	}
	return 1 << 31 // NaN too
}

// lanewise makes a loop of a function of one lane.
func lanewise(f function) vector {
	return func(d, a, b, c *lanes, m uint32) {
		for ; m != 0; m &= m - 1 {
			i := bits.TrailingZeros32(m) & 31
			d[i] = f(a[i], b[i], c[i])
		}
	}
}

// lanewiseTest is lanewise for a function that gives 0 or 1.
func lanewiseTest(f function) test {
	return func(a, b *lanes, m uint32) (r uint32) {
		for ; m != 0; m &= m - 1 {
			i := bits.TrailingZeros32(m) & 31
			r |= uint32(f(a[i], b[i], 0)) << i
		}
		return r
	}
}
