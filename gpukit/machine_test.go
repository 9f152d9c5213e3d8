package gpukit

import (
	"math"
	"math/bits"
	"strings"
	"testing"
)

func mixHypot(x, y float64) float64    { return math.Hypot(x, y) }
func mixHypotPow(x, y float64) float64 { return math.Hypot(x, y) + math.Pow(x, y) }
func mixYnPow(x, y float64) float64    { return math.Yn(2, x) + math.Pow(x, y) }
func mixYnHypot(x, y float64) float64  { return math.Yn(3, y) + math.Hypot(y, x) }
func mixModPow(x, y float64) float64   { return math.Mod(x, y) + math.Pow(y, x) }
func mixRemainder(x, y float64) float64 {
	return math.Remainder(x, y) - math.Pow(x, float64(bits.OnesCount64(uint64(y))))
}
func mixJn(x, y float64) float64 { return math.Jn(int(y), x) + math.Sin(float64(1e300*x)) }
func mixAll(x, y float64) float64 {
	if x < y {
		return math.Gamma(x) + math.Log(math.Abs(y))
	}
	return math.Exp(math.Sin(x)) - math.Erf(y) + math.Hypot(math.Tan(y), x)
}

// written is an array of each worker that is only written, under a condition, with
// numbers that are the same for all.
func written(p int32) int32 {
	var v [8]int64
	if p < 5 {
		for i := range v {
			v[i] = int64(i)
		}
	}
	return p
}

func writtenEarly(p int32) int32 {
	v := [4]float64{1, 2, 3}
	if p >= 5 {
		return 3
	}
	for i := 0; i < 3; i++ {
		v[i] = 1e10
	}
	return 127
}

// Library functions call rare parts of others, and small lanes stand beside wide
// arrays: every engine compiles them, with the bits of the reference evaluator.
func TestMixtures(t *testing.T) {
	const n = 203
	x, y, p := make([]float64, n), make([]float64, n), make([]int32, n)
	for i := range x {
		x[i], y[i], p[i] = float64(float64(i)*0.37)-20, 11-float64(float64(i%29)*0.8), int32(i%11)
	}
	x[3], y[4], x[5], y[6] = math.Inf(1), math.NaN(), 0, 1e308
	for _, c := range []struct {
		name string
		f    any
		args []any
	}{
		{"hypot", mixHypot, []any{x, y}}, {"hypot and pow", mixHypotPow, []any{x, y}}, {"Yn and pow", mixYnPow, []any{x, y}},
		{"Yn and hypot", mixYnHypot, []any{x, y}}, {"mod and pow", mixModPow, []any{x, y}}, {"remainder and pow", mixRemainder, []any{x, y}},
		{"Jn", mixJn, []any{x, y}}, {"many", mixAll, []any{x, y}},
		{"an array that is only written", written, []any{p}}, {"and left early", writtenEarly, []any{p}},
	} {
		want := Must(openReference().Vectorize(c.f, c.args...))
		eachEngine(t, func(t *testing.T, d *Device) {
			got, err := d.Vectorize(c.f, c.args...)
			if err != nil {
				t.Fatalf("%s: %v", c.name, err)
			}
			for i := range n {
				if g, w := got.At(i), want.At(i); g != w && !(g != g && w != w) {
					t.Errorf("%s(%v, %v) is %v, want %v", c.name, x[i], y[i], g, w)
				}
			}
		})
	}
}

type pairOf struct{ a, b float64 }
type turned struct{ b, a float64 }
type longer struct{ a, b, c float64 }
type pairs [2]pairOf

func takesPair(x float64, s pairOf) float64 { return x + float64(s.a*10) + s.b }
func takesThree(x float64, w [3]float64) float64 {
	return x + w[0] + float64(10*w[1]) + float64(100*w[2])
}
func takesPairs(x float64, p pairs) float64 { return x + p[1].b }

// A struct or a fixed array is taken if it is made like the parameter: nothing of it is
// dropped, and no field stands for another.
func TestPartsOfAnotherType(t *testing.T) {
	type alike struct{ a, b float64 }
	eachKind(t, func(t *testing.T, d *Device) {
		for _, c := range []struct {
			f    any
			arg  any
			want float64 // or NaN for an error
		}{
			{takesPair, pairOf{1, 2}, 12}, {takesPair, alike{1, 2}, 12}, {takesPair, turned{1, 2}, math.NaN()},
			{takesPair, longer{1, 2, 3}, math.NaN()}, {takesPair, [2]float64{1, 2}, math.NaN()}, {takesPair, 1.0, math.NaN()}, {takesPair, nil, math.NaN()},
			{takesThree, [3]float64{1, 2, 3}, 321}, {takesThree, [4]float64{1, 2, 3, 4}, math.NaN()}, {takesThree, [2]float64{1, 2}, math.NaN()},
			{takesThree, [3]float32{1, 2, 3}, math.NaN()}, {takesThree, longer{1, 2, 3}, math.NaN()},
			{takesPairs, pairs{{1, 2}, {3, 4}}, 4}, {takesPairs, [2]pairOf{{1, 2}, {3, 4}}, 4}, {takesPairs, [2]turned{{1, 2}, {3, 4}}, math.NaN()},
		} {
			z, err := d.Vectorize(c.f, 0.0, c.arg)
			switch {
			case math.IsNaN(c.want) && (err == nil || !strings.Contains(err.Error(), "the function declares ")):
				t.Errorf("%T was taken: %v, %v", c.arg, z, err)
			case !math.IsNaN(c.want) && (err != nil || z.Item() != c.want):
				t.Errorf("of %T: %v, %v", c.arg, z, err)
			}
		}
	})
}
