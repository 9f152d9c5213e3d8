package plots_test

import (
	"fmt"
	"math"
	"os"
	"path/filepath"

	"gonum.org/v1/plot/plotter"

	"gpunotes/gpukit"
	"gpunotes/plots"
)

func saddle(x, y float64) float64 { return x*x - y*y }

// saddleGrid are the values of saddle over a square.
func saddleGrid() (x, y, z *gpukit.Array) {
	x, y = gpukit.MeshGrid(gpukit.Linspace(-1, 1, 41), gpukit.Linspace(-1, 1, 41))
	return x, y, gpukit.Must(gpukit.MustOpen("cpu").Vectorize(saddle, x, y))
}

// Values that differ by orders of magnitude.
func ExampleFigure_Log() {
	f := plots.Bars([]string{"in order", "in parallel"}, plots.Series{Name: "time / ms", Values: []float64{1225, 0.84}}).Log()
	fmt.Println(f.Err())
	f = plots.Line([]float64{1, 2}, []float64{10, 0}).Log()
	fmt.Println(f.Err())
	// Output:
	// <nil>
	// plots.Line: Log: y of point 1 is 0, and a logarithmic axis shows numbers from 1e-300 on; put math.NaN() there to leave it out
}

// The first thing that is wrong stays with the figure, which shows it.
func ExampleFigure_Err() {
	x, y, z := saddleGrid()
	f := plots.Heatmap(x, y, z.Slice(0, 0, 10, 1)).Title("too few rows").Palette("rainbow")
	fmt.Println(f.Err())
	// Output:
	// plots.Heatmap: x has shape (41, 41), but z has shape (10, 41), 41 columns: want shape (41,), or the mesh (10, 41) that gpukit.MeshGrid makes
}

func ExampleFigure_Title() {
	f := plots.Line([]float64{0, 1, 2}, []float64{0, 1, 4}).Title("Squares")
	fmt.Println(f.Alt())
	// Output:
	// Squares. Line of y against x. (0, 0), (1, 1), (2, 4).
}

// Name what an axis shows, and its unit.
func ExampleFigure_Labels() {
	f := plots.Line([]float64{0, 1, 2}, []float64{0, 4.9, 19.6}).Labels("time / s", "height / m")
	fmt.Println(f.Alt())
	// Output:
	// Line of height / m against time / s. (0, 0), (1, 4.9), (2, 19.6).
}

func ExampleFigure_ColorLabel() {
	x, y, z := saddleGrid()
	f := plots.Heatmap(x, y, z).ColorLabel("height / m")
	fmt.Println(f.Alt())
	// Output:
	// Heat map of height / m: 41 rows by 41 columns. Across, x from -1 to 1; upwards, y from -1 to 1. Least -1 at (0, -1); greatest 1 at (-1, 0).
}

// A small figure, with the proportions of its data.
func ExampleFigure_Size() {
	x, y, z := saddleGrid()
	f := plots.Heatmap(x, y, z).Size(4, 3.4)
	fmt.Println(f.Err(), f.Size(400, 340).Err())
	// Output:
	// <nil> plots.Heatmap: Size(400, 340): width and height are in inches, each between 1.5 and 30
}

// coolwarm is for values around a middle, such as differences.
func ExampleFigure_Palette() {
	x, y, z := saddleGrid()
	f := plots.Heatmap(x, y, z).Palette("coolwarm")
	fmt.Println(f.Err())
	// Output:
	// <nil>
}

func ExampleFigure_Levels() {
	x, y, z := saddleGrid()
	f := plots.Contour(x, y, z).Levels(-0.5, 0, 0.5)
	fmt.Println(f.Alt())
	// Output:
	// Contour lines of z at levels -0.5, 0, 0.5: 41 rows by 41 columns. Across, x from -1 to 1; upwards, y from -1 to 1. Least -1 at (0, -1); greatest 1 at (-1, 0).
}

// What gonum's plotters draw can be laid on top: here the diagonals, where the saddle
// is 0.
func ExampleFigure_Plot() {
	x, y, z := saddleGrid()
	f := plots.Heatmap(x, y, z)
	for _, slope := range []float64{-1, 1} {
		line, err := plotter.NewLine(plotter.XYs{{X: -1, Y: -slope}, {X: 1, Y: slope}})
		if err != nil {
			fmt.Println(err)
			return
		}
		f.Plot().Add(line)
	}
	fmt.Println(f.Save(filepath.Join(os.TempDir(), "diagonals.png")))
	// Output:
	// <nil>
}

// The extension says the format.
func ExampleFigure_Save() {
	f := plots.Scatter([]float64{1, 2, 3}, []float64{1, math.NaN(), 9})
	for _, name := range []string{"points.svg", "points.pdf", "points.doc"} {
		fmt.Println(f.Save(filepath.Join(os.TempDir(), name)) == nil)
	}
	// Output:
	// true
	// true
	// false
}

// What a screen reader says is part of the figure, in every form of it.
func ExampleFigure_Alt() {
	x, y, z := saddleGrid()
	fmt.Println(plots.Contour(x, y, z).Title("A saddle").Alt())
	// Output:
	// A saddle. Contour lines of z at levels -0.5, 0, 0.5: 41 rows by 41 columns. Across, x from -1 to 1; upwards, y from -1 to 1. Least -1 at (0, -1); greatest 1 at (-1, 0).
}
