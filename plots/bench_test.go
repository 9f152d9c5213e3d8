package plots

import (
	"math"
	"math/rand"
	"testing"

	"gpunotes/gpukit"
)

// megapixel is a grid of 1000 x 1000 values, smooth or noise.
func megapixel(noise bool) (x, y, z *gpukit.Array) {
	x, y = gpukit.Linspace(-3, 3, 1000), gpukit.Linspace(-2, 2, 1000)
	rnd := rand.New(rand.NewSource(5))
	z = field(x, y, func(x, y float64) float64 {
		if noise {
			return rnd.Float64()
		}
		return math.Sin(3*x) * math.Cos(2*y*x)
	})
	x, y = gpukit.MeshGrid(x, y)
	return x, y, z
}

// What a notebook is sent stays below 1 MB.
func TestMegapixelSize(t *testing.T) {
	for _, noise := range []bool{false, true} {
		x, y, z := megapixel(noise)
		if n := len(Heatmap(x, y, z).Render().Data["image/png"].([]byte)); n > 1e6 {
			t.Errorf("heat map, noise %v: %d bytes", noise, n)
		}
		if n := len(Contour(x, y, z).Render().Data["image/svg+xml"].(string)); n > 1e6 {
			t.Errorf("contour, noise %v: %d bytes", noise, n)
		}
	}
}

// From arrays to the bytes that a notebook is sent: below a second each.
func benchmark(b *testing.B, noise bool, figure func(x, y, z *gpukit.Array) *Figure, mime string) {
	x, y, z := megapixel(noise)
	for b.Loop() {
		d := figure(x, y, z).Render()
		switch v := d.Data[mime].(type) {
		case []byte:
			b.ReportMetric(float64(len(v)), "bytes")
		case string:
			b.ReportMetric(float64(len(v)), "bytes")
		default:
			b.Fatal(d.Data["text/plain"])
		}
	}
}

func BenchmarkHeatmap(b *testing.B)      { benchmark(b, false, Heatmap, "image/png") }
func BenchmarkHeatmapNoise(b *testing.B) { benchmark(b, true, Heatmap, "image/png") }
func BenchmarkContour(b *testing.B)      { benchmark(b, false, Contour, "image/svg+xml") }
func BenchmarkContourNoise(b *testing.B) { benchmark(b, true, Contour, "image/svg+xml") }
