package plots

import (
	"image"
	"image/color"
	stdraw "image/draw"
	"math"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
)

// A shape is the form of the marks of a series: a series is known without its
// colour too.
type shape int

const (
	disc shape = iota
	square
	triangle
	cross
	diamond
	plus
	wedge // a triangle on its tip
	shapes
)

// shapeOfSeries goes through other pairs of colour and shape when the colours
// begin again.
func shapeOfSeries(k int) shape { return shape((k + k/len(distinct)) % int(shapes)) }

const markSize = vg.Length(3)

// marks draws all marks of a series as one path, which keeps SVG small.
func marks(c draw.Canvas, s shape, col color.Color, r vg.Length, at []vg.Point) {
	if len(at) == 0 {
		return
	}
	var path vg.Path
	for _, p := range at {
		s.add(&path, p, r)
	}
	if s == cross || s == plus {
		c.SetLineStyle(draw.LineStyle{Color: col, Width: max(0.5, r/2)})
		c.Stroke(path)
		return
	}
	c.SetColor(col)
	c.Fill(path)
}

// stamp draws very many marks on a picture, all at the nearest whole pixel: the one
// shape, drawn once.
func stamp(to *vgimg.Canvas, s shape, col color.Color, r vg.Length, at []vg.Point) {
	dpi, high := to.DPI(), to.Image().Bounds().Dy()
	half := int(math.Ceil((r * 1.5).Dots(dpi))) + 1
	side := vg.Inch * vg.Length(2*half+1) / vg.Length(dpi)
	one := vgimg.NewWith(vgimg.UseWH(side, side), vgimg.UseDPI(int(dpi)), vgimg.UseBackgroundColor(color.Transparent))
	marks(draw.New(one), s, col, r, []vg.Point{{X: side / 2, Y: side / 2}})
	for _, p := range at {
		x, y := int(p.X.Dots(dpi)), high-1-int(p.Y.Dots(dpi))
		stdraw.Draw(to.Image(), image.Rect(x-half, y-half, x+half+1, y+half+1), one.Image(), image.Point{}, stdraw.Over)
	}
}

// add adds a mark to a path. Shapes cover about as much as a disc of radius r.
func (s shape) add(path *vg.Path, p vg.Point, r vg.Length) {
	var corners [][2]float64
	switch s {
	case disc:
		path.Move(vg.Point{X: p.X + r, Y: p.Y})
		path.Arc(p, r, 0, 2*math.Pi)
		path.Close()
		return
	case cross, plus:
		d := float64(r) * 1.1
		ends := [][2]float64{{-d, 0}, {d, 0}, {0, -d}, {0, d}}
		if s == cross {
			d = float64(r) * 0.9
			ends = [][2]float64{{-d, -d}, {d, d}, {-d, d}, {d, -d}}
		}
		for i, e := range ends {
			q := vg.Point{X: p.X + vg.Length(e[0]), Y: p.Y + vg.Length(e[1])}
			if i%2 == 0 {
				path.Move(q)
			} else {
				path.Line(q)
			}
		}
		return
	case square:
		corners = [][2]float64{{-0.9, -0.9}, {0.9, -0.9}, {0.9, 0.9}, {-0.9, 0.9}}
	case diamond:
		corners = [][2]float64{{0, -1.3}, {1.1, 0}, {0, 1.3}, {-1.1, 0}}
	case triangle:
		corners = [][2]float64{{-1.15, -0.8}, {1.15, -0.8}, {0, 1.2}}
	case wedge:
		corners = [][2]float64{{-1.15, 0.8}, {1.15, 0.8}, {0, -1.2}}
	}
	for i, e := range corners {
		q := vg.Point{X: p.X + r*vg.Length(e[0]), Y: p.Y + r*vg.Length(e[1])}
		if i == 0 {
			path.Move(q)
		} else {
			path.Line(q)
		}
	}
	path.Close()
}
