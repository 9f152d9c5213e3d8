package libm

import (
	"math"
	"testing"
)

// TestPhilox has the known answers that Random123 publishes (kat_vectors,
// philox4x32 10).
func TestPhilox(t *testing.T) {
	for _, c := range []struct {
		counter [4]uint32
		key     [2]uint32
		want    [4]uint32
	}{
		{[4]uint32{}, [2]uint32{}, [4]uint32{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
		{[4]uint32{math.MaxUint32, math.MaxUint32, math.MaxUint32, math.MaxUint32}, [2]uint32{math.MaxUint32, math.MaxUint32},
			[4]uint32{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
		{[4]uint32{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, [2]uint32{0xa4093822, 0x299f31d0},
			[4]uint32{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
	} {
		if got := Philox4x32(c.counter, c.key); got != c.want {
			t.Errorf("Philox4x32(%x, %x) = %x, want %x", c.counter, c.key, got, c.want)
		}
	}
}

func TestDistributions(t *testing.T) {
	const n = 200000
	var sum, normal, square float64
	for i := range uint64(n) {
		u := UniformFloat64(7, i)
		if !(u >= 0 && u < 1) {
			t.Fatalf("UniformFloat64(7, %d) = %v", i, u)
		}
		sum += u
		x := NormFloat64(8, i)
		normal += x
		square += float64(x * x)
	}
	// Five standard deviations of the means.
	if d := math.Abs(sum/n - 0.5); d > 5*math.Sqrt(1.0/12/n) {
		t.Errorf("uniform mean off by %v", d)
	}
	if d := math.Abs(normal / n); d > 5/math.Sqrt(n) {
		t.Errorf("normal mean off by %v", d)
	}
	if d := math.Abs(square/n - 1); d > 5*math.Sqrt(2.0/n) {
		t.Errorf("normal variance off by %v", d)
	}
	if UniformFloat64(7, 1) == UniformFloat64(7, 1<<32) || UniformFloat64(7, 1) == UniformFloat64(1<<32+7, 1) {
		t.Error("the high halves of seed and index do not count")
	}
}
