package gpukit

import (
	"fmt"
	"reflect"
	"testing"

	"gpunotes/gpukit/simt"
)

func scaledSum(x, y float64, n int64) float64 {
	s := 0.0
	for range n {
		s = s + float64(x*y)
	}
	return s
}

func pickRow(x []float64, at int64, out []float64) {
	for i := range out {
		out[i] = x[i] + x[at]
	}
}

func stretched(x []float64, n int64, out []float64) {
	for i := int64(0); i < n; i++ {
		out[i] = x[i] * 2
	}
}

func scaleRowAt(x []float64, s float64, out []float64) {
	if i := simt.Grid1(); i < len(out) {
		out[i] = x[i] * s
	}
}

func addRows(a, b, out []float64) {
	for i := range out {
		out[i] = a[i] + b[i]
	}
}

// TestRepeatedCalls runs rows of calls on one device and each of them on a new one:
// whatever a call leaves for the next must not show.
func TestRepeatedCalls(t *testing.T) {
	again := 0
	repeating = func() { again++ }
	defer func() { repeating = nil }()
	ramp := func(n int, by float64) *Array {
		x := make([]float64, n)
		for i := range x {
			x[i] = by * float64(i)
		}
		return FromSlice(x)
	}
	wide := ramp(40, 3)
	type made func(d *Device) (*Array, error)
	vec := func(fn any, args ...any) made {
		return func(d *Device) (*Array, error) { return d.Vectorize(fn, args...) }
	}
	gu := func(fn any, layout string, args ...any) made {
		return func(d *Device) (*Array, error) { return d.GUVectorize(fn, layout, args...) }
	}
	inPlace := func(fn any, arrays func() (in, out *Array)) made {
		return func(d *Device) (*Array, error) {
			in, out := arrays()
			return d.Vectorize(fn, in, 1.5, Out(out))
		}
	}
	launch := func(n int, x *Array, s float64) made {
		return func(d *Device) (*Array, error) {
			out := Zeros(x.Size())
			return out, d.Launch(scaleRowAt, Blocks((n+31)/32), Threads(32), x, s, out)
		}
	}
	// Of each row, how many calls may use the one before is known too: that the short
	// way is taken is part of what is tested.
	for _, row := range []struct {
		name  string
		again int
		calls []made
	}{
		{"other arrays of the same shape", 3, []made{vec(add2, ramp(10, 1), ramp(10, 2)), vec(add2, ramp(10, 5), ramp(10, 7)),
			vec(add2, wide.Slice(0, 3, 13, 1), ramp(10, 7)), vec(add2, []float64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, ramp(10, 7))}},
		{"other shapes", 1, []made{vec(add2, ramp(10, 1), ramp(10, 2)), vec(add2, ramp(10, 1), 2.0), vec(add2, ramp(10, 1), ramp(1, 2)),
			vec(add2, ramp(12, 1), ramp(12, 2)), vec(add2, ramp(12, 1).Reshape(3, 4), ramp(12, 2).Reshape(3, 4)), vec(add2, ramp(10, 1), 5)}},
		{"other strides", 0, []made{vec(add2, wide.Slice(0, 0, 20, 2), ramp(10, 1)), vec(add2, wide.Slice(0, 9, -41, -1), ramp(10, 1)),
			vec(add2, wide.Slice(0, 0, 10, 1), ramp(10, 1))}},
		{"generators", 2, []made{vec(add2, Linspace(0, 1, 10), Arange(10)), vec(add2, Linspace(5, 9, 10), Arange(10)), vec(add2, Arange(10), Arange(10)),
			vec(add2, Full(3, 10), Arange(10)), vec(add2, Linspace(0, 5e-324, 10), Arange(10)), vec(add2, Linspace(0, 3, 10), Arange(10)), vec(add2, ramp(10, 1), Arange(10))}},
		{"numbers", 2, []made{vec(scaledSum, ramp(10, 1), 2.0, 3), vec(scaledSum, ramp(10, 1), 7.5, 3), vec(scaledSum, ramp(10, 1), 2.0, 0)}},
		{"a number that is an index", 2, []made{gu(pickRow, "(n),()->(n)", ramp(10, 1), 3), gu(pickRow, "(n),()->(n)", ramp(10, 1), 9),
			gu(pickRow, "(n),()->(n)", ramp(10, 1), 10), gu(pickRow, "(n),()->(n)", ramp(10, 1), -1), gu(pickRow, "(n),()->(n)", ramp(10, 3), 0)}},
		{"a number that is a size", 4, []made{gu(stretched, "(n),()->(n)", ramp(10, 1), 10), gu(stretched, "(n),()->(n)", ramp(10, 2), 4),
			gu(stretched, "(n),()->(n)", ramp(10, 3), 10), gu(stretched, "(n),()->(n)", ramp(10, 4), 0), gu(stretched, "(n),()->(n)", ramp(10, 4), 11)}},
		{"generated slices", 2, []made{gu(addRows, "(n),(n)->(n)", Arange(30).Reshape(3, 10), Linspace(0, 1, 10)),
			gu(addRows, "(n),(n)->(n)", Arange(30).Reshape(3, 10), Linspace(4, 7, 10)), gu(pickRow, "(n),()->(n)", Arange(30).Reshape(3, 10), 2),
			gu(pickRow, "(n),()->(n)", Arange(30).Reshape(3, 10), 7)}},
		{"rows at other places", 0, []made{gu(addRows, "(n),(n)->(n)", wide.Slice(0, 0, 10, 1), ramp(10, 1)), gu(addRows, "(n),(n)->(n)", wide.Slice(0, 10, 20, 1), ramp(10, 1))}},
		{"results given", 2, []made{
			inPlace(add2, func() (in, out *Array) { return ramp(10, 1), Zeros(10) }),
			inPlace(add2, func() (in, out *Array) { a := ramp(10, 1); return a, a }),
			inPlace(add2, func() (in, out *Array) { a := ramp(11, 1); return a.Slice(0, 0, 10, 1), a.Slice(0, 1, 11, 1) }),
			inPlace(add2, func() (in, out *Array) { a := ramp(11, 1); return a.Slice(0, 1, 11, 1), a.Slice(0, 0, 10, 1) }),
			inPlace(add2, func() (in, out *Array) { return ramp(10, 1), Zeros(10).As(Float32) }),
			inPlace(add2, func() (in, out *Array) { return ramp(10, 1), nil }),
			inPlace(add2, func() (in, out *Array) { return ramp(10, 4), Zeros(10) })}},
		{"wrong arguments between", 1, []made{vec(add2, ramp(10, 1), 1.0), vec(add2, ramp(10, 1), nil), vec(add2, ramp(10, 1), "x"), vec(add2, ramp(10, 1).As(Float32), 1.0),
			vec(add2, ramp(10, 1)), vec(add2, (*Array)(nil), 1.0), vec(add2, ramp(10, 1), 1.0, Out()), vec(add2, Out(), 1.0), vec(add2, ramp(10, 2), 1.0)}},
		{"launches", 2, []made{launch(40, ramp(40, 1), 2), launch(40, ramp(40, 3), 0.5), launch(64, ramp(40, 3), 0.5), launch(20, ramp(40, 3), 0.5)}},
		{"tables", 1, []made{vec(dist, Linspace(29, 31, 80).Reshape(80, 1), Linspace(99, 101, 80), 30.0, 101.0, 1.0), vec(dist, Linspace(9, 31, 80).Reshape(80, 1), Linspace(9, 11, 80), 30.0, 51.0, 2.0)}},
	} {
		t.Run(row.name, func(t *testing.T) {
			for _, o := range [][]Option{nil, {OneWorkerPerSlice()}, {FastMath()}} {
				for _, name := range []string{"cpu", "parallel"} {
					one := MustOpen(name).With(o...)
					again = 0
					for i, call := range row.calls {
						got, err := call(one)
						want, wantErr := call(MustOpen(name).With(o...))
						if fmt.Sprint(err) != fmt.Sprint(wantErr) {
							t.Fatalf("call %d on %v: error %v, want %v", i, one, err, wantErr)
						}
						if err == nil && (!reflect.DeepEqual(got.Shape(), want.Shape()) || !reflect.DeepEqual(got.Float64s(), want.Float64s())) {
							t.Fatalf("call %d on %v: %v, want %v", i, one, got, want)
						}
					}
					if again != row.again {
						t.Errorf("%v: %d calls were made of ones before, want %d", one, again, row.again)
					}
				}
			}
		})
	}
}
