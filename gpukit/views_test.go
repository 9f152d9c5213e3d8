package gpukit

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"gpunotes/gpukit/simt"
)

// The same copy in every dtype and through every call: a function of one element,
// of a slice, and of a thread.

func oneBool(x bool) bool          { return x }
func oneInt8(x int8) int8          { return x }
func oneInt16(x int16) int16       { return x }
func oneInt32(x int32) int32       { return x }
func oneInt64(x int64) int64       { return x }
func oneUint8(x uint8) uint8       { return x }
func oneUint16(x uint16) uint16    { return x }
func oneUint32(x uint32) uint32    { return x }
func oneUint64(x uint64) uint64    { return x }
func oneFloat32(x float32) float32 { return x }
func oneFloat64(x float64) float64 { return x }

func sliceBool(x, out []bool) {
	for i := range x {
		out[i] = x[i]
	}
}

func sliceInt8(x, out []int8) {
	for i := range x {
		out[i] = x[i]
	}
}

func sliceInt16(x, out []int16) {
	for i := range x {
		out[i] = x[i]
	}
}

func sliceInt32(x, out []int32) {
	for i := range x {
		out[i] = x[i]
	}
}

func sliceInt64(x, out []int64) {
	for i := range x {
		out[i] = x[i]
	}
}

func sliceUint8(x, out []uint8) {
	for i := range x {
		out[i] = x[i]
	}
}

func sliceUint16(x, out []uint16) {
	for i := range x {
		out[i] = x[i]
	}
}

func sliceUint32(x, out []uint32) {
	for i := range x {
		out[i] = x[i]
	}
}

func sliceUint64(x, out []uint64) {
	for i := range x {
		out[i] = x[i]
	}
}

func sliceFloat32(x, out []float32) {
	for i := range x {
		out[i] = x[i]
	}
}

func sliceFloat64(x, out []float64) {
	for i := range x {
		out[i] = x[i]
	}
}

func threadBool(x, out [][]bool) {
	if i, j := simt.Grid2(); j < len(x) && i < len(x[j]) {
		out[j][i] = x[j][i]
	}
}

func threadInt8(x, out [][]int8) {
	if i, j := simt.Grid2(); j < len(x) && i < len(x[j]) {
		out[j][i] = x[j][i]
	}
}

func threadInt16(x, out [][]int16) {
	if i, j := simt.Grid2(); j < len(x) && i < len(x[j]) {
		out[j][i] = x[j][i]
	}
}

func threadInt32(x, out [][]int32) {
	if i, j := simt.Grid2(); j < len(x) && i < len(x[j]) {
		out[j][i] = x[j][i]
	}
}

func threadInt64(x, out [][]int64) {
	if i, j := simt.Grid2(); j < len(x) && i < len(x[j]) {
		out[j][i] = x[j][i]
	}
}

func threadUint8(x, out [][]uint8) {
	if i, j := simt.Grid2(); j < len(x) && i < len(x[j]) {
		out[j][i] = x[j][i]
	}
}

func threadUint16(x, out [][]uint16) {
	if i, j := simt.Grid2(); j < len(x) && i < len(x[j]) {
		out[j][i] = x[j][i]
	}
}

func threadUint32(x, out [][]uint32) {
	if i, j := simt.Grid2(); j < len(x) && i < len(x[j]) {
		out[j][i] = x[j][i]
	}
}

func threadUint64(x, out [][]uint64) {
	if i, j := simt.Grid2(); j < len(x) && i < len(x[j]) {
		out[j][i] = x[j][i]
	}
}

func threadFloat32(x, out [][]float32) {
	if i, j := simt.Grid2(); j < len(x) && i < len(x[j]) {
		out[j][i] = x[j][i]
	}
}

func threadFloat64(x, out [][]float64) {
	if i, j := simt.Grid2(); j < len(x) && i < len(x[j]) {
		out[j][i] = x[j][i]
	}
}

var copiers = map[DType][3]any{
	Bool:    {oneBool, sliceBool, threadBool},
	Int8:    {oneInt8, sliceInt8, threadInt8},
	Int16:   {oneInt16, sliceInt16, threadInt16},
	Int32:   {oneInt32, sliceInt32, threadInt32},
	Int64:   {oneInt64, sliceInt64, threadInt64},
	Uint8:   {oneUint8, sliceUint8, threadUint8},
	Uint16:  {oneUint16, sliceUint16, threadUint16},
	Uint32:  {oneUint32, sliceUint32, threadUint32},
	Uint64:  {oneUint64, sliceUint64, threadUint64},
	Float32: {oneFloat32, sliceFloat32, threadFloat32},
	Float64: {oneFloat64, sliceFloat64, threadFloat64},
}

// twoD makes an array of shape (m, n) in one of many layouts.
func twoD(r *rand.Rand, t DType, m, n int) *Array {
	fill := func(m, n int) *Array {
		a := newArray(makeStorage(t, m*n), []int{m, n})
		for k := range m * n {
			a.store.setBits(k, Arange(m*n).As(t).store.bits(k))
		}
		return a
	}
	switch r.IntN(6) {
	case 0:
		return fill(n, m).T()
	case 1:
		return fill(m, 2*n+1).Slice(1, 1, 2*n+1, 2)
	case 2:
		return fill(m, n).Slice(0, m-1, -m-1, -1)
	case 3:
		return fill(m, n).T().Slice(0, n-1, -n-1, -1).T()
	case 4:
		return fill(m+2, n+3).Slice(0, 1, m+1, 1).Slice(1, 2, n+2, 1)
	}
	return fill(m, n)
}

func TestViewsAndDTypes(t *testing.T) {
	eachKind(t, viewsAndDTypes)
}

func viewsAndDTypes(t *testing.T, d *Device) {
	r := rand.New(rand.NewPCG(9, 10))
	rounds := 12
	if d.gpu != nil {
		rounds = 2 // many kernels
	}
	for dt, fns := range copiers {
		for range rounds {
			m, n := []int{0, 1, 3, 33}[r.IntN(4)], []int{0, 1, 2, 40}[r.IntN(4)]
			x := twoD(r, dt, m, n)
			want := x.Float64s()
			check := func(call string, got *Array, err error) {
				t.Helper()
				if err != nil {
					t.Fatalf("%s of %v %v: %v", call, dt, x.strides, err)
				}
				if got.DType() != dt || fmt.Sprint(got.Shape()) != fmt.Sprint(x.Shape()) || !slices.Equal(got.Float64s(), want) {
					t.Fatalf("%s of %v, shape %v, strides %v: %v", call, dt, x.shape, x.strides, got)
				}
			}
			got, err := d.Vectorize(fns[0], x)
			check("Vectorize", got, err)
			got, err = d.Vectorize(fns[0], x, Out(twoD(r, dt, m, n)))
			check("Vectorize with Out", got, err)
			got, err = d.GUVectorize(fns[1], "(n)->(n)", x)
			check("GUVectorize", got, err)
			got, err = d.GUVectorize(fns[1], "(n)->(n)", x, Out(twoD(r, dt, m, n)))
			check("GUVectorize with Out", got, err)
			out := twoD(r, dt, m, n)
			check("Launch", out, d.Launch(fns[2], Blocks(5, 5), Threads(8, 8), x, out))
			put, err := d.Put(x)
			check("Put", put, err)
			if dt == Float64 {
				g := Linspace(-1, 1, m*n).Reshape(m, n).T()
				got, err := d.GUVectorize(fns[1], "(n)->(n)", g)
				if err != nil || !slices.Equal(got.Float64s(), g.Float64s()) {
					t.Fatalf("GUVectorize of a generated array: %v, %v", got, err)
				}
			}
		}
	}
}

func sameNumber(x float64) float64 { return x }

// TestLinspaceEnds has meshes whose last element is not start + (n-1)*step.
func TestLinspaceEnds(t *testing.T) {
	tried := 0
	eachEngine(t, func(t *testing.T, d *Device) {
		for n := 2; n < 300; n++ {
			start, stop := 0.1, 0.7
			step := (stop - start) / float64(n-1)
			if float64(float64(n-1)*step)+start == stop {
				continue
			}
			tried++
			z, err := d.Vectorize(sameNumber, Linspace(start, stop, n))
			if err != nil || z.At(n-1) != stop || z.At(0) != start {
				t.Fatalf("Linspace(%v, %v, %d): %v, %v, want to end with %v", start, stop, n, z, err, stop)
			}
		}
	})
	if tried < 10*len(engines) {
		t.Errorf("only %d meshes", tried)
	}
}

// T with axes is numpy's transpose: element (i0, i1, ...) of the view is the one of
// the array at which each index stands in the dimension that axes names.
func TestTransposeAxes(t *testing.T) {
	a := Arange(2*3*4).Reshape(2, 3, 4)
	for _, axes := range [][]int{{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}, nil} {
		b := a.T(axes...)
		if axes == nil {
			axes = []int{2, 1, 0}
		}
		for i := range 2 {
			for j := range 3 {
				for k := range 4 {
					at := [3]int{i, j, k}
					if got := b.At(at[axes[0]], at[axes[1]], at[axes[2]]); got != a.At(i, j, k) {
						t.Fatalf("axes %v: element (%d, %d, %d) is %v", axes, i, j, k, got)
					}
				}
			}
		}
	}
	if s := Zeros().T(); len(s.Shape()) != 0 {
		t.Error(s.Shape())
	}
	for _, axes := range [][]int{{0}, {0, 0, 1}, {0, 1, 3}, {-1, 0, 1}, {0, 1, 2, 3}} {
		if why := caught(func() { a.T(axes...) }); !strings.Contains(why, "do not name each of the 3 dimensions") {
			t.Errorf("axes %v: %q", axes, why)
		}
	}
}
