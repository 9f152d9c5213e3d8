package gpukit

import (
	"testing"
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

// The first call of a function on a new device: source, type check, compile, run.
func BenchmarkFirstCall(b *testing.B) {
	x := Linspace(0, 1, 10)
	for b.Loop() {
		sink = Must(MustOpen("parallel").Vectorize(dist, x, x, 30.0, 101.0, 1.0)).At(5)
	}
}
