package source

import (
	"math"
	. "math/bits"
)

// Functions to be found in a file other than the test's.

const (
	fixtureRed = iota
	fixtureGreen
)

var fixtureTable = [2]float64{1, 2}

type fixtureReal float64

func fixtureLeaf(x float64) float64 { return x * x }

func fixtureInlines(x float64) float64 {
	return fixtureLeaf(x) // the first instruction belongs to the callee
}

//go:noinline
func fixtureCalls(x []float64, n int) (float64, int) {
	s := 0.0
	for _, v := range x[:n] {
		s += float64(math.Sqrt(v) * fixtureTable[fixtureGreen])
	}
	return s, Len(uint(n))
}

func fixtureEmpty(x int) {
}

func fixtureGeneric[T any](x T) T { return x }

func (x fixtureReal) method(y float64) float64 { return float64(x) * y }

var fixtureVar = func(x float64) float64 {
	return x + 1
}

var fixtureUnnamed = []func(float64) float64{func(x float64) float64 {
	return x + 2
}}

func fixtureMake() (named, other func(float64) float64) {
	const k, unused = 2.5, "x"
	type local struct{ k float64 }
	scale := 2.0
	named = func(x float64) float64 {
		var twice = func(y float64) float64 {
			return 2 * y
		}
		if x > 1000 {
			return twice(x)
		}
		return x * k * scale * local{k: 1}.k
	}
	other = func(x float64) float64 {
		return x * k
	}
	return named, other
}

func fixtureNested() func(float64) func(float64) float64 {
	outer := func(x float64) func(float64) float64 {
		inner := func(y float64) float64 {
			return y * 3
		}
		return inner
	}
	return outer
}

func fixtureOneLine() (a, b, c any) {
	f, g := func(x float64) float64 { return x }, func(x float64) float64 { return x + 1 }
	h := func(x int) int { return x }
	return f, g, h
}

func fixtureTwoKinds() (a, b any) {
	f, g := func(x float64) float64 { return x }, func(x int) int { return x }
	return f, g
}
