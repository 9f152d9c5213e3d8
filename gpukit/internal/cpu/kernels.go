package cpu

import (
	"math"
	"slices"
)

// The dense loops. Each value of the IR lives in a slice of its own Go type, so
// wrap-around, truncation and signs are Go's own. No loop holds both a product
// and a sum: the compiler of some targets would fuse them, and results would differ.

type signed interface {
	int8 | int16 | int32 | int64
}

type unsigned interface {
	uint8 | uint16 | uint32 | uint64
}

type integer interface{ signed | unsigned }

type float interface{ float32 | float64 }

type number interface{ integer | float }

type element interface{ number | bool }

func addVV[T number](d, x, y []T) {
	x, y = x[:len(d)], y[:len(d)]
	for i := range d {
		d[i] = x[i] + y[i]
	}
}

func addVS[T number](d, x []T, y T) {
	x = x[:len(d)]
	for i := range d {
		d[i] = x[i] + y
	}
}

func subVV[T number](d, x, y []T) {
	x, y = x[:len(d)], y[:len(d)]
	for i := range d {
		d[i] = x[i] - y[i]
	}
}

func subVS[T number](d, x []T, y T) {
	x = x[:len(d)]
	for i := range d {
		d[i] = x[i] - y
	}
}

func subSV[T number](d, x []T, y T) {
	x = x[:len(d)]
	for i := range d {
		d[i] = y - x[i]
	}
}

func mulVV[T number](d, x, y []T) {
	x, y = x[:len(d)], y[:len(d)]
	for i := range d {
		d[i] = x[i] * y[i]
	}
}

func mulVS[T number](d, x []T, y T) {
	x = x[:len(d)]
	for i := range d {
		d[i] = x[i] * y
	}
}

func divVV[T float](d, x, y []T) {
	x, y = x[:len(d)], y[:len(d)]
	for i := range d {
		d[i] = x[i] / y[i]
	}
}

func divVS[T float](d, x []T, y T) {
	x = x[:len(d)]
	for i := range d {
		d[i] = x[i] / y
	}
}

func divSV[T float](d, x []T, y T) {
	x = x[:len(d)]
	for i := range d {
		d[i] = y / x[i]
	}
}

// The integer divisions report whether all lanes could be divided.

func quoVV[T integer](d, x, y []T) bool {
	x, y = x[:len(d)], y[:len(d)]
	for i := range d {
		if y[i] == 0 {
			return false
		}
		d[i] = x[i] / y[i]
	}
	return true
}

func quoVS[T integer](d, x []T, y T) bool {
	if y == 0 {
		return false
	}
	x = x[:len(d)]
	for i := range d {
		d[i] = x[i] / y
	}
	return true
}

func remVV[T integer](d, x, y []T) bool {
	x, y = x[:len(d)], y[:len(d)]
	for i := range d {
		if y[i] == 0 {
			return false
		}
		d[i] = x[i] % y[i]
	}
	return true
}

func remVS[T integer](d, x []T, y T) bool {
	if y == 0 {
		return false
	}
	x = x[:len(d)]
	for i := range d {
		d[i] = x[i] % y
	}
	return true
}

// The shifts report whether no count was negative. A count past the width
// gives 0 or the sign, as Go has it.

func shlVV[T, N integer](d, x []T, y []N) bool {
	x, y = x[:len(d)], y[:len(d)]
	for i := range d {
		if y[i] < 0 {
			return false
		}
		d[i] = x[i] << uint64(y[i])
	}
	return true
}

func shlVS[T, N integer](d, x []T, y N) bool {
	if y < 0 {
		return false
	}
	x = x[:len(d)]
	for n, i := uint64(y), 0; i < len(d); i++ {
		d[i] = x[i] << n
	}
	return true
}

func shrVV[T, N integer](d, x []T, y []N) bool {
	x, y = x[:len(d)], y[:len(d)]
	for i := range d {
		if y[i] < 0 {
			return false
		}
		d[i] = x[i] >> uint64(y[i])
	}
	return true
}

func shrVS[T, N integer](d, x []T, y N) bool {
	if y < 0 {
		return false
	}
	x = x[:len(d)]
	for n, i := uint64(y), 0; i < len(d); i++ {
		d[i] = x[i] >> n
	}
	return true
}

func negV[T number](d, x []T) {
	x = x[:len(d)]
	for i := range d {
		d[i] = -x[i]
	}
}

func minVV[T number](d, x, y []T) {
	x, y = x[:len(d)], y[:len(d)]
	for i := range d {
		d[i] = min(x[i], y[i])
	}
}

func minVS[T number](d, x []T, y T) {
	x = x[:len(d)]
	for i := range d {
		d[i] = min(x[i], y)
	}
}

func maxVV[T number](d, x, y []T) {
	x, y = x[:len(d)], y[:len(d)]
	for i := range d {
		d[i] = max(x[i], y[i])
	}
}

func maxVS[T number](d, x []T, y T) {
	x = x[:len(d)]
	for i := range d {
		d[i] = max(x[i], y)
	}
}

func andVV[T integer](d, x, y []T) {
	x, y = x[:len(d)], y[:len(d)]
	for i := range d {
		d[i] = x[i] & y[i]
	}
}

func andVS[T integer](d, x []T, y T) {
	x = x[:len(d)]
	for i := range d {
		d[i] = x[i] & y
	}
}

func orVV[T integer](d, x, y []T) {
	x, y = x[:len(d)], y[:len(d)]
	for i := range d {
		d[i] = x[i] | y[i]
	}
}

func xorVV[T integer](d, x, y []T) {
	x, y = x[:len(d)], y[:len(d)]
	for i := range d {
		d[i] = x[i] ^ y[i]
	}
}

func andNotVV[T integer](d, x, y []T) {
	x, y = x[:len(d)], y[:len(d)]
	for i := range d {
		d[i] = x[i] &^ y[i]
	}
}

func notV[T integer](d, x []T) {
	x = x[:len(d)]
	for i := range d {
		d[i] = ^x[i]
	}
}

// Bools are combined through their bytes, without branches.

func bit(b bool) uint8 {
	var n uint8
	if b {
		n = 1
	}
	return n
}

func boolAnd(d, x, y []bool) {
	x, y = x[:len(d)], y[:len(d)]
	for i := range d {
		d[i] = bit(x[i])&bit(y[i]) != 0
	}
}

func boolOr(d, x, y []bool) {
	x, y = x[:len(d)], y[:len(d)]
	for i := range d {
		d[i] = bit(x[i])|bit(y[i]) != 0
	}
}

func boolXor(d, x, y []bool) {
	x, y = x[:len(d)], y[:len(d)]
	for i := range d {
		d[i] = x[i] != y[i]
	}
}

func boolAndNot(d, x, y []bool) {
	x, y = x[:len(d)], y[:len(d)]
	for i := range d {
		d[i] = bit(x[i])&^bit(y[i]) != 0
	}
}

func boolEq(d, x, y []bool) {
	x, y = x[:len(d)], y[:len(d)]
	for i := range d {
		d[i] = x[i] == y[i]
	}
}

func boolNot(d, x []bool) {
	x = x[:len(d)]
	for i := range d {
		d[i] = !x[i]
	}
}

func eqVV[T number](d []bool, x, y []T) {
	x, y = x[:len(d)], y[:len(d)]
	for i := range d {
		d[i] = x[i] == y[i]
	}
}

func eqVS[T number](d []bool, x []T, y T) {
	x = x[:len(d)]
	for i := range d {
		d[i] = x[i] == y
	}
}

func neVV[T number](d []bool, x, y []T) {
	x, y = x[:len(d)], y[:len(d)]
	for i := range d {
		d[i] = x[i] != y[i]
	}
}

func neVS[T number](d []bool, x []T, y T) {
	x = x[:len(d)]
	for i := range d {
		d[i] = x[i] != y
	}
}

func ltVV[T number](d []bool, x, y []T) {
	x, y = x[:len(d)], y[:len(d)]
	for i := range d {
		d[i] = x[i] < y[i]
	}
}

func ltVS[T number](d []bool, x []T, y T) {
	x = x[:len(d)]
	for i := range d {
		d[i] = x[i] < y
	}
}

func leVV[T number](d []bool, x, y []T) {
	x, y = x[:len(d)], y[:len(d)]
	for i := range d {
		d[i] = x[i] <= y[i]
	}
}

func leVS[T number](d []bool, x []T, y T) {
	x = x[:len(d)]
	for i := range d {
		d[i] = x[i] <= y
	}
}

func gtVS[T number](d []bool, x []T, y T) {
	x = x[:len(d)]
	for i := range d {
		d[i] = x[i] > y
	}
}

func geVS[T number](d []bool, x []T, y T) {
	x = x[:len(d)]
	for i := range d {
		d[i] = x[i] >= y
	}
}

func choose[T element](d []T, c []bool, x, y []T) {
	c, x, y = c[:len(d)], x[:len(d)], y[:len(d)]
	for i := range d {
		v := y[i]
		if c[i] {
			v = x[i]
		}
		d[i] = v
	}
}

// convert is for all pairs but float to integer.
func convert[D, S number](d []D, x []S) {
	x = x[:len(d)]
	for i := range d {
		d[i] = D(x[i])
	}
}

// truncate converts a float to an integer type of range [low, high], of which
// lo and hi are the bounds as floats, hi exclusive: truncated, saturated, NaN
// to 0.
func truncate[D integer, S float](d []D, x []S, lo, hi float64, low, high D) {
	x = x[:len(d)]
	for i := range d {
		switch v := float64(x[i]); {
		case v > lo && v < hi:
			if v < 1<<63 {
				d[i] = D(int64(v))
			} else {
				d[i] = D(uint64(int64(v-(1<<63))) + 1<<63)
			}
		case v >= hi:
			d[i] = high
		case v <= lo:
			d[i] = low
		default:
			d[i] = 0
		}
	}
}

// math1 and math2 run a library function. The frequent ones are called
// directly: some are one instruction, and the others save the indirect call.

func math1[T float32 | float64](d, x []T, f func(T) T) {
	x = x[:len(d)]
	for i := range d {
		d[i] = f(x[i])
	}
}

func math2[T float32 | float64](d, x, y []T, f func(x, y T) T) {
	x, y = x[:len(d)], y[:len(d)]
	for i := range d {
		d[i] = f(x[i], y[i])
	}
}

// direct1, direct2 and single1 are functions that the Go compiler makes an instruction or
// two of, so that a call for each element would cost more than they do.
var direct1 = map[string]func(d, x []float64){
	"math.Abs": func(d, x []float64) {
		x = x[:len(d)]
		for i := range d {
			d[i] = math.Abs(x[i])
		}
	},
	"math.Sqrt": func(d, x []float64) {
		x = x[:len(d)]
		for i := range d {
			d[i] = math.Sqrt(x[i])
		}
	},
	"math.Floor": func(d, x []float64) {
		x = x[:len(d)]
		for i := range d {
			d[i] = math.Floor(x[i])
		}
	},
	"math.Ceil": func(d, x []float64) {
		x = x[:len(d)]
		for i := range d {
			d[i] = math.Ceil(x[i])
		}
	},
	"math.Trunc": func(d, x []float64) {
		x = x[:len(d)]
		for i := range d {
			d[i] = math.Trunc(x[i])
		}
	},
	"math.RoundToEven": func(d, x []float64) {
		x = x[:len(d)]
		for i := range d {
			d[i] = math.RoundToEven(x[i])
		}
	},
}

var single1 = map[string]func(d, x []float32){
	"math.Abs.f32": func(d, x []float32) {
		x = x[:len(d)]
		for i := range d {
			d[i] = float32(math.Abs(float64(x[i])))
		}
	},
	"math.Sqrt.f32": func(d, x []float32) {
		x = x[:len(d)]
		for i := range d {
			d[i] = float32(math.Sqrt(float64(x[i])))
		}
	},
	"math.Floor.f32": func(d, x []float32) {
		x = x[:len(d)]
		for i := range d {
			d[i] = float32(math.Floor(float64(x[i])))
		}
	},
	"math.Ceil.f32": func(d, x []float32) {
		x = x[:len(d)]
		for i := range d {
			d[i] = float32(math.Ceil(float64(x[i])))
		}
	},
	"math.Trunc.f32": func(d, x []float32) {
		x = x[:len(d)]
		for i := range d {
			d[i] = float32(math.Trunc(float64(x[i])))
		}
	},
	"math.RoundToEven.f32": func(d, x []float32) {
		x = x[:len(d)]
		for i := range d {
			d[i] = float32(math.RoundToEven(float64(x[i])))
		}
	},
}

var direct2 = map[string]func(d, x, y []float64){
	"math.Max": func(d, x, y []float64) {
		x, y = x[:len(d)], y[:len(d)]
		for i := range d {
			d[i] = math.Max(x[i], y[i])
		}
	},
	"math.Min": func(d, x, y []float64) {
		x, y = x[:len(d)], y[:len(d)]
		for i := range d {
			d[i] = math.Min(x[i], y[i])
		}
	},
}

// anyTrue looks whether a lane holds true.
func anyTrue(x []bool) bool {
	for len(x) >= 8 {
		y := x[:8]
		if y[0] || y[1] || y[2] || y[3] || y[4] || y[5] || y[6] || y[7] {
			return true
		}
		x = x[8:]
	}
	return slices.Contains(x, true)
}

// countTrue counts the lanes that hold true.
func countTrue(x []bool) int {
	n := 0
	for _, b := range x {
		n += int(bit(b))
	}
	return n
}
