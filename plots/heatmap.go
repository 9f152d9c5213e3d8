package plots

import (
	"image"
	"image/color"
	stdraw "image/draw"
	"math"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"

	"gpunotes/gpukit"
)

// Heatmap draws z as coloured cells: element (i, j) of z, of shape (ny, nx),
// lies at x[j] and y[i], with y upwards. x and y are 1-d, of length nx and ny,
// or the two meshes of shape (ny, nx) that gpukit.MeshGrid makes; they rise or
// fall strictly and need not be evenly spaced. Any dtype will do.
//
// A cell reaches to the midpoints between its coordinate and the neighbours';
// an outermost one as far outwards as inwards, a single one half a unit (or a
// thousandth of a large coordinate) to both sides. Where cells are smaller than
// the pixels, a pixel shows the mean of the cells whose centres lie in it, so
// that each cell counts once; where they are larger, the cell under its centre.
//
// The colours span the finite values. NaN is grey, and so is a pixel with any
// NaN in it; infinities get the end's colour; both are counted below the
// figure. A z of size 0 is an error.
func Heatmap(x, y, z *gpukit.Array) *Figure {
	f, g := onGrid("Heatmap", x, y, z)
	if f.err != nil {
		return f
	}
	h := &heat{grid: g, xEdges: edges(g.x), yEdges: edges(g.y), f: f}
	f.content = h
	f.plot.Add(h)
	if t := cellTicks(g.x, h.xEdges); t != nil {
		f.plot.X.Tick.Marker = t
	}
	if t := cellTicks(g.y, h.yEdges); t != nil {
		f.plot.Y.Tick.Marker = t
	}
	return f
}

// cellTicks marks the coordinates themselves where cells are few, wide and
// have short numbers; else it returns nil. The width of a single cell means
// nothing, so that is always marked.
func cellTicks(v, bounds []float64) plot.ConstantTicks {
	var ticks plot.ConstantTicks
	for k, c := range v {
		ticks = append(ticks, plot.Tick{Value: c, Label: shortNumber(c)})
		if len(v) == 1 {
			break
		}
		if k > 0 && !(c-v[k-1] >= (bounds[len(v)]-bounds[0])/11) || len(ticks[k].Label) > 5 || c != 0 && math.Abs(c) < 1e-3 {
			return nil
		}
	}
	return ticks
}

// heat is the content of a heat map, and its plotter.
type heat struct {
	*grid
	xEdges, yEdges []float64
	f              *Figure
}

func (h *heat) prepare(*Figure) {}
func (h *heat) line() bool      { return false }

func (h *heat) notes() []string {
	notes := h.grid.notes("grey", "colour of the %s")
	if h.finite > 0 && h.min == h.max {
		notes = append(notes, "all finite values are "+shortNumber(h.min))
	}
	return notes
}

func (h *heat) key(f *Figure) key {
	if h.finite == 0 {
		return noKey{}
	}
	lo, hi := h.scale()
	return &colorBar{colors: f.colors, lo: lo, hi: hi, label: printable(sans(textSize), f.colorLabel)}
}

// DataRange returns the outer bounds of the cells.
func (h *heat) DataRange() (xmin, xmax, ymin, ymax float64) {
	return h.xEdges[0], h.xEdges[len(h.xEdges)-1], h.yEdges[0], h.yEdges[len(h.yEdges)-1]
}

// Plot draws the cells and a frame around the plot area.
func (h *heat) Plot(c draw.Canvas, p *plot.Plot) {
	trX, trY := p.Transforms(&c)
	xs, ys := mapped(h.xEdges, trX), mapped(h.yEdges, trY)
	r := clip(vg.Rectangle{
		Min: vg.Point{X: min(xs[0], xs[len(xs)-1]), Y: min(ys[0], ys[len(ys)-1])},
		Max: vg.Point{X: max(xs[0], xs[len(xs)-1]), Y: max(ys[0], ys[len(ys)-1])},
	}, c.Rectangle)
	lo, hi := h.scale()
	paint(c, r, func(img *image.NRGBA, px, py []vg.Length) {
		cols, rows := cellsOf(xs, px), cellsOf(ys, py)
		n := len(py)
		for j, row := range rows {
			for i, col := range cols {
				img.SetNRGBA(i, n-1-j, h.f.colors.at(h.mean(row, col), lo, hi))
			}
		}
	})
	frame(c, c.Rectangle)
}

// mean returns the mean of a block of cells; NaN if any is.
func (h *heat) mean(rows, cols span) float64 {
	nx := len(h.x)
	if n := (rows.to - rows.from) * (cols.to - cols.from); n > 1 {
		sum := 0.0
		for i := rows.from; i < rows.to; i++ {
			for _, v := range h.z[i*nx+cols.from : i*nx+cols.to] {
				sum += v / float64(n) // divided first: the sum may overflow
			}
		}
		return sum
	}
	return h.z[rows.from*nx+cols.from]
}

func (h *heat) alt(f *Figure) string {
	return "Heat map of " + describeValues(f) + ": " + h.describe(f)
}

// frame draws the outline of r.
func frame(c draw.Canvas, r vg.Rectangle) {
	c.SetLineStyle(draw.LineStyle{Color: color.Black, Width: 0.5})
	c.Stroke(r.Path())
}

func clip(r, to vg.Rectangle) vg.Rectangle {
	r.Min.X, r.Min.Y = max(r.Min.X, to.Min.X), max(r.Min.Y, to.Min.Y)
	r.Max.X, r.Max.Y = min(r.Max.X, to.Max.X), min(r.Max.Y, to.Max.Y)
	return r
}

func mapped(v []float64, tr func(float64) vg.Length) []vg.Length {
	out := make([]vg.Length, len(v))
	for k, x := range v {
		out[k] = tr(x)
	}
	return out
}

// A span is a range of cells.
type span struct{ from, to int }

// cellsOf returns the cells that each pixel shows: those whose middles lie in
// it, else the one under its centre. bounds are the cells' bounds on the
// canvas, rising or falling; centres those of the pixels, rising and evenly
// spaced.
func cellsOf(bounds, centres []vg.Length) []span {
	n := len(bounds) - 1
	falling := bounds[0] > bounds[n]
	if falling {
		bounds = slices.Clone(bounds)
		slices.Reverse(bounds)
	}
	spans := make([]span, len(centres))
	middle := func(k int) vg.Length { return (bounds[k] + bounds[k+1]) / 2 }
	half := vg.Length(math.Inf(1))
	if len(centres) > 1 {
		half = (centres[len(centres)-1] - centres[0]) / vg.Length(len(centres)-1) / 2
	}
	next, under := 0, 0
	for i, c := range centres {
		for next < n && middle(next) < c-half {
			next++
		}
		s := span{next, next}
		for s.to < n && middle(s.to) < c+half {
			s.to++
		}
		next = s.to
		if s.from == s.to {
			for under < n-1 && bounds[under+1] <= c {
				under++
			}
			s = span{under, under + 1}
		}
		if falling {
			s = span{n - s.to, n - s.from}
		}
		spans[i] = s
	}
	return spans
}

// vectorDPI is the resolution of pictures within SVG and PDF.
const vectorDPI = 2 * cssDPI

// paint lets fill draw the pixels of r, given the centres of their columns
// (from the left) and rows (from the bottom); the image's rows go from the top.
// On a raster canvas they are the canvas's own pixels: its DrawImage would blur
// them.
func paint(c draw.Canvas, r vg.Rectangle, fill func(img *image.NRGBA, px, py []vg.Length)) {
	if !(r.Max.X > r.Min.X && r.Max.Y > r.Min.Y) {
		return
	}
	centres := func(from, step vg.Length, n int) []vg.Length {
		out := make([]vg.Length, n)
		for i := range out {
			out[i] = from + step*(vg.Length(i)+0.5)
		}
		return out
	}
	if raster := rasterOf(c.Canvas); raster != nil {
		dpi := raster.DPI()
		high := raster.Image().Bounds().Dy()
		round := func(l vg.Length) int { return int(math.Round(l.Dots(dpi))) }
		x0, x1, y0, y1 := round(r.Min.X), round(r.Max.X), round(r.Min.Y), round(r.Max.Y)
		if x1 <= x0 || y1 <= y0 {
			return
		}
		dot := vg.Inch / vg.Length(dpi)
		img := image.NewNRGBA(image.Rect(0, 0, x1-x0, y1-y0))
		fill(img, centres(vg.Length(x0)*dot, dot, x1-x0), centres(vg.Length(y0)*dot, dot, y1-y0))
		stdraw.Draw(raster.Image(), image.Rect(x0, high-y1, x1, high-y0), img, image.Point{}, stdraw.Over)
		return
	}
	size := r.Size()
	nx, ny := int(math.Ceil(size.X.Dots(vectorDPI))), int(math.Ceil(size.Y.Dots(vectorDPI)))
	img := image.NewNRGBA(image.Rect(0, 0, nx, ny))
	fill(img, centres(r.Min.X, size.X/vg.Length(nx), nx), centres(r.Min.Y, size.Y/vg.Length(ny), ny))
	c.DrawImage(r, img)
}

// rasterOf returns the raster canvas beneath c, or nil.
func rasterOf(c vg.Canvas) *vgimg.Canvas {
	switch c := c.(type) {
	case draw.Canvas:
		return rasterOf(c.Canvas)
	case *draw.Canvas:
		return rasterOf(c.Canvas)
	case *vgimg.Canvas:
		return c
	case vgimg.PngCanvas:
		return c.Canvas
	case vgimg.JpegCanvas:
		return c.Canvas
	case vgimg.TiffCanvas:
		return c.Canvas
	}
	return nil
}
