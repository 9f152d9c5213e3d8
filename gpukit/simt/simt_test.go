package simt

import (
	"strings"
	"testing"
)

func TestOutsideAKernel(t *testing.T) {
	for name, f := range map[string]func(){
		"ThreadIdx":          func() { ThreadIdx() },
		"BlockIdx":           func() { BlockIdx() },
		"BlockDim":           func() { BlockDim() },
		"GridDim":            func() { GridDim() },
		"Grid1":              func() { Grid1() },
		"Grid2":              func() { Grid2() },
		"Grid3":              func() { Grid3() },
		"LaneID":             func() { LaneID() },
		"SyncThreads":        func() { SyncThreads() },
		"SyncWarp":           func() { SyncWarp() },
		"Shared":             func() { Shared(nil) },
		"SharedFloat32":      func() { SharedFloat32() },
		"SharedFloat64":      func() { SharedFloat64() },
		"SharedInt32":        func() { SharedInt32() },
		"SharedInt64":        func() { SharedInt64() },
		"AddInt32":           func() { AddInt32(nil, 0) },
		"AddInt64":           func() { AddInt64(nil, 0) },
		"AddUint32":          func() { AddUint32(nil, 0) },
		"AddUint64":          func() { AddUint64(nil, 0) },
		"AddFloat32":         func() { AddFloat32(nil, 0) },
		"AddFloat64":         func() { AddFloat64(nil, 0) },
		"MinInt32":           func() { MinInt32(nil, 0) },
		"MinInt64":           func() { MinInt64(nil, 0) },
		"MinUint32":          func() { MinUint32(nil, 0) },
		"MinUint64":          func() { MinUint64(nil, 0) },
		"MaxInt32":           func() { MaxInt32(nil, 0) },
		"MaxInt64":           func() { MaxInt64(nil, 0) },
		"MaxUint32":          func() { MaxUint32(nil, 0) },
		"MaxUint64":          func() { MaxUint64(nil, 0) },
		"ExchInt32":          func() { ExchInt32(nil, 0) },
		"ExchInt64":          func() { ExchInt64(nil, 0) },
		"ExchUint32":         func() { ExchUint32(nil, 0) },
		"ExchUint64":         func() { ExchUint64(nil, 0) },
		"ExchFloat32":        func() { ExchFloat32(nil, 0) },
		"ExchFloat64":        func() { ExchFloat64(nil, 0) },
		"CasInt32":           func() { CasInt32(nil, 0, 0) },
		"CasInt64":           func() { CasInt64(nil, 0, 0) },
		"CasUint32":          func() { CasUint32(nil, 0, 0) },
		"CasUint64":          func() { CasUint64(nil, 0, 0) },
		"ShuffleFloat32":     func() { ShuffleFloat32(0, 0) },
		"ShuffleFloat64":     func() { ShuffleFloat64(0, 0) },
		"ShuffleInt32":       func() { ShuffleInt32(0, 0) },
		"ShuffleInt64":       func() { ShuffleInt64(0, 0) },
		"ShuffleUpFloat32":   func() { ShuffleUpFloat32(0, 0) },
		"ShuffleUpFloat64":   func() { ShuffleUpFloat64(0, 0) },
		"ShuffleUpInt32":     func() { ShuffleUpInt32(0, 0) },
		"ShuffleUpInt64":     func() { ShuffleUpInt64(0, 0) },
		"ShuffleDownFloat32": func() { ShuffleDownFloat32(0, 0) },
		"ShuffleDownFloat64": func() { ShuffleDownFloat64(0, 0) },
		"ShuffleDownInt32":   func() { ShuffleDownInt32(0, 0) },
		"ShuffleDownInt64":   func() { ShuffleDownInt64(0, 0) },
		"ShuffleXorFloat32":  func() { ShuffleXorFloat32(0, 0) },
		"ShuffleXorFloat64":  func() { ShuffleXorFloat64(0, 0) },
		"ShuffleXorInt32":    func() { ShuffleXorInt32(0, 0) },
		"ShuffleXorInt64":    func() { ShuffleXorInt64(0, 0) },
		"Any":                func() { Any(false) },
		"All":                func() { All(false) },
		"Ballot":             func() { Ballot(false) },
	} {
		func() {
			defer func() {
				if s, _ := recover().(string); !strings.HasPrefix(s, "simt."+name+" was called outside a kernel") {
					t.Errorf("%s: panic %q", name, s)
				}
			}()
			f()
		}()
	}
}

// TestPhilox: the random numbers need no device. The values are those of
// Random123's kat_vectors.
func TestPhilox(t *testing.T) {
	if got, want := Philox4x32([4]uint32{}, [2]uint32{}), [4]uint32{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}; got != want {
		t.Errorf("%x, want %x", got, want)
	}
	if got, want := UniformFloat64(0, 0), float64((0x6627e8d5<<32|0xe169c58d)>>11)/(1<<53); got != want {
		t.Errorf("%v, want %v", got, want)
	}
	if x := NormFloat64(0, 0); x != x || x > 40 || x < -40 {
		t.Errorf("NormFloat64 gives %v", x)
	}
}
