package plots_test

import (
	"fmt"
	"math"
	"os"
	"path/filepath"

	"gpunotes/gpukit"
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
