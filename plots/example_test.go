package plots_test

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"time"

	"gpunotes/gpukit"
	"gpunotes/gpukit/simt"
	"gpunotes/gpukit/trace"
	"gpunotes/plots"
)

// The distance of each point of a grid from one place, in degrees of arc, by the
// haversine formula.
func ExampleHeatmap() {
	rad := math.Pi / 180
	lons, lats := gpukit.Linspace(99, 101, 120), gpukit.Linspace(29, 31, 80)
	lon, lat := gpukit.MeshGrid(lons, lats)
	z := gpukit.Zeros(80, 120).Float64s()
	for k := range z {
		λ, φ := lon.At(k/120, k%120)*rad, lat.At(k/120, k%120)*rad
		sφ, sλ := math.Sin((φ-30*rad)/2), math.Sin((λ-101*rad)/2)
		z[k] = 2 * math.Asin(math.Sqrt(float64(sφ*sφ)+math.Cos(φ)*math.Cos(30*rad)*sλ*sλ)) / rad
	}

	f := plots.Heatmap(lon, lat, gpukit.FromFlat(z, 80, 120)).
		Title("Distance from 30° N, 101° E").
		Labels("longitude / deg", "latitude / deg").
		ColorLabel("distance / deg")
	fmt.Println(f.Alt())
	fmt.Println(f.Save(filepath.Join(os.TempDir(), "heatmap.png")))
	// Output:
	// Distance from 30° N, 101° E. Heat map of distance / deg: 80 rows by 120 columns. Across, longitude / deg from 99 to 101; upwards, latitude / deg from 29 to 31. Least 0.0126582 at (101, 29.9873); greatest 2.00745 at (99, 29).
	// <nil>
}

// Cells of uneven widths, an axis that falls, and values that are no numbers.
func ExampleHeatmap_cells() {
	x := gpukit.FromSlice([]int{1, 2, 4, 8})
	y := gpukit.FromSlice([]float64{30, 20, 10})
	z := gpukit.FromSlice([][]float64{
		{1, 2, 3, 4}, // at y = 30
		{5, math.NaN(), 7, math.Inf(1)},
		{9, 10, 11, 12},
	})

	f := plots.Heatmap(x, y, z).Labels("threads", "size / kB").ColorLabel("time / ms").Palette("cividis")
	fmt.Println(f.Alt())
	fmt.Println(f.Save(filepath.Join(os.TempDir(), "cells.png")))
	// Output:
	// Heat map of time / ms: 3 rows by 4 columns. Across, threads from 1 to 8; upwards, size / kB from 10 to 30. Least 1 at (1, 30); greatest 12 at (8, 10). NaN: 1. +Inf: 1.
	// <nil>
}

// Two hills and a hollow.
func ExampleContour() {
	x, y := gpukit.Linspace(-3, 3, 121), gpukit.Linspace(-2, 2, 81)
	z := gpukit.Zeros(81, 121).Float64s()
	for k := range z {
		a, b := x.At(k%121), y.At(k/121)
		hill := func(h, x0, y0, w float64) float64 {
			return h * math.Exp(-(math.Pow(a-x0, 2)+math.Pow(b-y0, 2))/(w*w))
		}
		z[k] = hill(80, -1, 0.5, 1.2) + hill(50, 1.5, -0.5, 0.8) + hill(-40, 0.5, 1, 0.9)
	}

	f := plots.Contour(x, y, gpukit.FromFlat(z, 81, 121)).
		Title("Two hills and a hollow").
		Labels("x / km", "y / km").
		ColorLabel("height / m")
	fmt.Println(f.Alt())
	fmt.Println(f.Save(filepath.Join(os.TempDir(), "contour.svg")))
	fmt.Println(f.Save(filepath.Join(os.TempDir(), "contour.png")))
	// Output:
	// Two hills and a hollow. Contour lines of height / m at levels -20, 0, 20, 40, 60: 81 rows by 121 columns. Across, x / km from -3 to 3; upwards, y / km from -2 to 2. Least -28.895 at (0.7, 1.1); greatest 78.3485 at (-1.05, 0.5).
	// <nil>
	// <nil>
}

// Times of four programs, published ones beside simulated ones, which differ by
// three orders of magnitude.
func ExampleBars() {
	f := plots.Bars([]string{"one worker", "100 workers", "4000 workers", "one per element"},
		plots.Series{Name: "published", Values: []float64{1225.38, 47.398, 8.9961, 0.84249}},
		plots.Series{Name: "simulated", Values: []float64{1289, 46.01, 6.829, math.NaN()}}).
		Log().
		Title("The same product, four ways").
		Labels("", "kernel / ms")
	fmt.Println(f.Alt())
	fmt.Println(f.Save(filepath.Join(os.TempDir(), "bars.png")))
	fmt.Println(f.Save(filepath.Join(os.TempDir(), "bars.svg")))
	// Output:
	// The same product, four ways. Bars of kernel / ms on a logarithmic axis. one worker: published 1225.38, simulated 1289. 100 workers: published 47.398, simulated 46.01. 4000 workers: published 8.9961, simulated 6.829. one per element: published 0.84249, simulated missing.
	// <nil>
	// <nil>
}

// A call that copies two arrays to a card, computes, and copies one back.
func ExampleTimeline() {
	ms := func(x float64) time.Duration { return time.Duration(x * 1e6) }
	record := func(k trace.Kind, name string, from, took float64) trace.Record {
		return trace.Record{Kind: k, Name: name, Start: ms(from), Duration: ms(took), Timing: trace.Simulated, Size: 16_000_000}
	}
	f := plots.Timeline(&trace.Trace{Records: []trace.Record{
		record(trace.HtoD, "", 0, 6.27),
		record(trace.HtoD, "", 6.4, 5.71),
		record(trace.Launch, "product", 12.2, 0.842),
		record(trace.DtoH, "", 13.1, 7.15),
	}}).Title("Copies take longer than the kernel")
	fmt.Println(f.Alt())
	fmt.Println(f.Save(filepath.Join(os.TempDir(), "timeline.png")))
	// Output:
	// Copies take longer than the kernel. Timeline over 20.25 ms: 2 copies to the device, 11.98 ms; 1 launch, 842 us; 1 copy back, 7.15 ms. Simulated times.
	// <nil>
}

// Two cards, and two kernels at their best there: a product of arrays is limited by
// memory on both, a function of many operations by arithmetic on the one that has
// few units for float64.
func ExampleRoofline() {
	f := plots.Roofline([]plots.Roof{
		{Name: "Quadro K2000", FLOPS: 8 * 2 * 2 * 954e6, Bandwidth: 64e9},
		{Name: "A100", FLOPS: 32 * 2 * 108 * 1410e6, Bandwidth: 1555e9},
	},
		plots.Work{Name: "product", Intensity: 1.0 / 24, Roof: "Quadro K2000"},
		plots.Work{Name: "product", Intensity: 1.0 / 24, Roof: "A100"},
		plots.Work{Name: "distance", Intensity: 105.0 / 24, Roof: "Quadro K2000"},
		plots.Work{Name: "distance", Intensity: 105.0 / 24, Roof: "A100"}).
		Title("What limits a kernel in float64")
	fmt.Println(f.Alt())
	fmt.Println(f.Save(filepath.Join(os.TempDir(), "roofline.png")))
	// Output:
	// What limits a kernel in float64. Roofline. Quadro K2000: 3.05e10 operations and 6.4e10 bytes a second, equal at 0.477 operations per byte. A100: 9.75e12 operations and 1.56e12 bytes a second, equal at 6.27 operations per byte. product (Quadro K2000): 0.0417 operations per byte, 2.67e9 a second. product (A100): 0.0417 operations per byte, 6.48e10 a second. distance (Quadro K2000): 4.38 operations per byte, 3.05e10 a second. distance (A100): 4.38 operations per byte, 6.8e12 a second.
	// <nil>
}

func sinc(x float64) float64 { return math.Sin(x) / x }

func taylor(x float64) float64 { return 1 - x*x/6 + x*x*x*x/120 }

// A function and the first terms of its series, computed on a device. At 0 the
// function is 0/0, which leaves a gap.
func ExampleLine() {
	cpu := gpukit.MustOpen("cpu")
	x := gpukit.Linspace(-4, 4, 401)
	exact := gpukit.Must(cpu.Vectorize(sinc, x))
	near := gpukit.Must(cpu.Vectorize(taylor, x))

	f := plots.Line(x,
		plots.Series{Name: "sin x / x", Values: exact.Float64s()},
		plots.Series{Name: "1 - x^2/6 + x^4/120", Values: near.Float64s()}).
		Title("A function and its Taylor polynomial").
		Labels("x", "f(x)")
	fmt.Println(f.Alt())
	fmt.Println(f.Save(filepath.Join(os.TempDir(), "line.png")))
	fmt.Println(f.Save(filepath.Join(os.TempDir(), "line.svg")))
	// Output:
	// A function and its Taylor polynomial. Line of f(x) against x. sin x / x: 401 points, x from -4 to 4, least at (-4, -0.189201), greatest at (-0.02, 0.999933); 1 missing. 1 - x^2/6 + x^4/120: 401 points, x from -4 to 4, least at (-3.16, 0.166668), greatest at (0, 1).
	// <nil>
	// <nil>
}

// Points in the unit square, told apart by whether they lie in the quarter circle:
// four times the share of those that do is near pi.
func ExampleScatter() {
	in, out := plots.Series{Name: "in the circle"}, plots.Series{Name: "outside"}
	for i := uint64(0); i < 500; i++ {
		x, y := simt.UniformFloat64(2026, 2*i), simt.UniformFloat64(2026, 2*i+1)
		to := &out
		if math.Hypot(x, y) < 1 {
			to = &in
		}
		to.X, to.Values = append(to.X, x), append(to.Values, y)
	}

	f := plots.Scatter(nil, in, out).
		Title(fmt.Sprintf("pi is about %.2f", 4*float64(len(in.X))/500)).
		Labels("x", "y").Size(5.6, 4)
	fmt.Println(f.Alt())
	fmt.Println(f.Save(filepath.Join(os.TempDir(), "scatter.png")))
	// Output:
	// pi is about 3.27. Points of y against x. in the circle: 409 points, x from 0.00302261 to 0.990503, least at (0.164653, 0.00438442), greatest at (0.0136146, 0.99765). outside: 91 points, x from 0.273801 to 0.998786, least at (0.990281, 0.167753), greatest at (0.472512, 0.99311).
	// <nil>
}

// Both axes logarithmic: a call costs a constant and something for each element, so
// there is a size from which a card wins.
func ExampleFigure_LogX() {
	n := []float64{1e2, 1e3, 1e4, 1e5, 1e6, 1e7}
	card := plots.Series{Name: "card"}
	cores := plots.Series{Name: "two cores"}
	for _, n := range n {
		card.Values = append(card.Values, 20+n*1e-3)  // us
		cores.Values = append(cores.Values, 2+n*5e-3) // us
	}

	f := plots.Line(n, card, cores).LogX().Log().Labels("elements", "time / us").Title("A card pays from some thousands on")
	fmt.Println(f.Alt())
	fmt.Println(f.Save(filepath.Join(os.TempDir(), "loglog.png")))
	// Output:
	// A card pays from some thousands on. Line of time / us against elements, both axes logarithmic. card: (100, 20.1), (1000, 21), (10000, 30), (100000, 120), (1e6, 1020), (1e7, 10020). two cores: (100, 2.5), (1000, 7), (10000, 52), (100000, 502), (1e6, 5002), (1e7, 50002).
	// <nil>
}
