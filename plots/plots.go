// Package plots draws figures on gonum.org/v1/plot: lines and points, heat maps and
// contour lines of gpukit arrays over a rectangular grid, bars side by side, what a
// trace recorded against time, and what limits kernels on a machine.
//
// A figure is the last expression of a notebook cell, or is saved to a file:
//
//	plots.Heatmap(lon, lat, z).Labels("longitude / deg", "latitude / deg")
//	err := plots.Heatmap(lon, lat, z).Save("distance.png")
//
// Nothing here panics on bad input: the first error stays in the figure, which
// shows it instead of a picture; Err and Save return it.
//
// Text is drawn in Liberation Sans, which has Latin, Greek, Cyrillic and Hebrew
// letters. A character that it lacks, such as a Chinese one, is drawn as ?, which is
// noted below the figure; Alt has it.
package plots

// Data is what a notebook shows, by MIME type; gophernotes knows it by
// structure.
type Data = struct {
	Data      map[string]interface{}
	Metadata  map[string]interface{}
	Transient map[string]interface{}
}
