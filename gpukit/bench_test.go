package gpukit

import (
	"fmt"
	"testing"
	"time"
)

// The benchmarks come in pairs: the same work through gpukit and as compiled Go
// in a plain loop, in one run, so that their ratio means something on a noisy
// machine. Run them as
//
//	go test -run '^$' -bench . -count 10 ./gpukit

var sink float64

func meshArrays() (lat, lon []float64) {
	x, y := MeshGrid(Linspace(99, 101, 1000), Linspace(29, 31, 1000))
	return y.Float64s(), x.Float64s()
}

func BenchmarkDistance(b *testing.B) {
	lat, lon := meshArrays()
	d := MustOpen("cpu")
	b.Run("gpukit", func(b *testing.B) {
		for b.Loop() {
			sink = Must(d.Vectorize(dist, lat, lon, 30.0, 101.0, 1.0)).At(5)
		}
	})
	b.Run("go", func(b *testing.B) {
		for b.Loop() {
			out := make([]float64, len(lat))
			for i := range out {
				out[i] = dist(lat[i], lon[i], 30, 101, 1)
			}
			sink = out[5]
		}
	})
	b.Run("parallel", func(b *testing.B) {
		d := MustOpen("parallel")
		for b.Loop() {
			sink = Must(d.Vectorize(dist, lat, lon, 30.0, 101.0, 1.0)).At(5)
		}
	})
}

func BenchmarkTenElements(b *testing.B) {
	d := MustOpen("parallel")
	x := Linspace(0, 1, 10)
	b.ReportAllocs()
	for b.Loop() {
		sink = Must(d.Vectorize(dist, x, x, 30.0, 101.0, 1.0)).At(5)
	}
}

// The first call of a function on a new device: source, type check, compile, run, and
// without the first two. Compare cpubench's BenchmarkCompile.
func BenchmarkFirstCall(b *testing.B) {
	x := Linspace(0, 1, 10)
	read, err := MustOpen("parallel").function(dist)
	if err != nil {
		b.Fatal(err)
	}
	for _, c := range []struct {
		name string
		fn   any
	}{{"whole", dist}, {"compile", read}} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			least := time.Hour
			for b.Loop() {
				d := MustOpen("parallel").With(FastMath()) // without the self-check
				start := time.Now()
				sink = Must(d.Vectorize(c.fn, x, x, 30.0, 101.0, 1.0)).At(5)
				least = min(least, time.Since(start))
			}
			b.ReportMetric(float64(least.Microseconds()), "best-us")
		})
	}
}

// What one byte costs when it is not next to the other: MB/s counts the bytes of
// memory that a call reads and writes.
func BenchmarkOperands(b *testing.B) {
	d := MustOpen("cpu")
	const n = 1000
	full := func() *Array { return Arange(n*n).Reshape(n, n).copy() }
	x, y, out := full(), full(), full()
	wide := Zeros(n, 2*n)
	for _, c := range []struct {
		name  string
		x, y  *Array
		bytes int64
	}{
		{"contiguous", x, y, 24 * n * n},
		{"row", x, y.Slice(0, 0, 1, 1), 16 * n * n},
		{"column", x, y.Slice(1, 0, 1, 1), 16 * n * n},
		{"strided", x, wide.Slice(1, 0, 2*n, 2), 24 * n * n},
		{"reversed", x, y.Slice(1, n-1, -n-1, -1), 24 * n * n},
		{"transposed", x, y.T(), 24 * n * n},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.SetBytes(c.bytes)
			for b.Loop() {
				Must(d.Vectorize(add2, c.x, c.y, Out(out)))
			}
		})
	}
}

// The asker's loops as they are, as slices, element by element, and as the one worker
// that they were, against the same loops as compiled Go.
func BenchmarkDiscount(b *testing.B) {
	d := MustOpen("cpu")
	multBy := Arange(20000).Reshape(4000, 5).copy()
	discount := Arange(2000000).Reshape(100, 4000, 5).copy()
	out := Zeros(100, 4000, 5)
	b.Run("t14", func(b *testing.B) {
		Must(d.GUVectorize(cVestDiscount14, "(),(m,o),(n,m,o),(),() -> (n,m,o)", 100, multBy, discount, 5, 4000, Out(out)))
		for b.Loop() {
			Must(d.GUVectorize(cVestDiscount14, "(),(m,o),(n,m,o),(),() -> (n,m,o)", 100, multBy, discount, 5, 4000, Out(out)))
		}
	})
	b.Run("t16", func(b *testing.B) {
		Must(d.GUVectorize(cVestDiscount16, "(m,o),(m,o),(),() -> (m,o)", multBy, discount, 5, 4000, Out(out)))
		for b.Loop() {
			Must(d.GUVectorize(cVestDiscount16, "(m,o),(m,o),(),() -> (m,o)", multBy, discount, 5, 4000, Out(out)))
		}
	})
	t17, rows := discount.Reshape(4000, 100, 5), Zeros(4000, 100, 5)
	b.Run("t17", func(b *testing.B) {
		Must(d.GUVectorize(cVestDiscount17, "(),(o),(m,o),() -> (m,o)", 100, multBy, t17, 5, Out(rows)))
		for b.Loop() {
			Must(d.GUVectorize(cVestDiscount17, "(),(o),(m,o),() -> (m,o)", 100, multBy, t17, 5, Out(rows)))
		}
	})
	b.Run("vectorize", func(b *testing.B) {
		Must(d.Vectorize(product, multBy, discount, Out(out)))
		for b.Loop() {
			Must(d.Vectorize(product, multBy, discount, Out(out)))
		}
	})
	b.Run("vectorize17", func(b *testing.B) {
		Must(d.Vectorize(product, multBy.Reshape(4000, 1, 5), t17, Out(rows)))
		for b.Loop() {
			Must(d.Vectorize(product, multBy.Reshape(4000, 1, 5), t17, Out(rows)))
		}
	})
	b.Run("one worker", func(b *testing.B) {
		d := d.With(OneWorkerPerSlice())
		Must(d.GUVectorize(cVestDiscount14, "(),(m,o),(n,m,o),(),() -> (n,m,o)", 100, multBy, discount, 5, 4000, Out(out)))
		for b.Loop() {
			Must(d.GUVectorize(cVestDiscount14, "(),(m,o),(n,m,o),(),() -> (n,m,o)", 100, multBy, discount, 5, 4000, Out(out)))
		}
	})
	b.Run("go", func(b *testing.B) {
		m, x, z := multBy.Float64s(), discount.Float64s(), make([]float64, 2000000)
		for b.Loop() {
			for i := range 100 {
				for j := range 20000 {
					z[i*20000+j] = m[j] * x[i*20000+j]
				}
			}
		}
		sink = z[7]
	})
}

// A call costs the same however many kernels there are.
func BenchmarkCallAmongKernels(b *testing.B) {
	for _, n := range []int{1, 100, 1000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			d := MustOpen("cpu")
			for i := range n - 1 {
				d.mustProgram(b, smallKernel(b, i))
			}
			for b.Loop() {
				sink = Must(d.Vectorize(add1, 1.0)).Item()
			}
		})
	}
}

func (d *Device) mustProgram(t testing.TB, f *function) {
	if _, err := d.program(f); err != nil {
		t.Fatal(err)
	}
}

// A new result of 16 MB for each call: most of the time is the memory's.
func BenchmarkFreshResult(b *testing.B) {
	d := MustOpen("cpu")
	x := Arange(2_000_000).copy()
	b.Run("gpukit", func(b *testing.B) {
		for b.Loop() {
			sink = Must(d.Vectorize(add2, x, 1.5)).At(5)
		}
	})
	b.Run("go", func(b *testing.B) {
		in := x.Float64s()
		for b.Loop() {
			out := make([]float64, len(in))
			for i, v := range in {
				out[i] = v + 1.5
			}
			sink = out[5]
		}
	})
}
