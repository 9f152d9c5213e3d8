package plots

import (
	"fmt"
	"image/color"
	"math"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Roof is what a machine can do at best: so many operations a second, and so many
// bytes a second to and from its memory.
type Roof struct {
	Name      string
	FLOPS     float64 // operations per second
	Bandwidth float64 // bytes per second
}

// Work is a kernel on a machine: operations for each byte that it moves, and how
// many operations a second it reached. FLOPS of 0 puts it on the roof of Roof, the
// name of one of the roofs: the best that is possible there.
type Work struct {
	Name      string
	Intensity float64 // operations per byte
	FLOPS     float64 // operations per second
	Roof      string
}

// Roofline draws what machines can do at most against the number of operations for
// each byte moved, both logarithmic: a rising part where memory is the limit, a
// flat one where arithmetic is (Williams, Waterman, Patterson: Roofline, CACM 52,
// 2009). Works are points in it. Numbers have to be positive and finite; no roof is
// an error.
func Roofline(roofs []Roof, works ...Work) *Figure {
	f := newFigure("Roofline")
	if len(roofs) == 0 {
		return f.fail("no roofs are given: plots.Roof{Name: \"card\", FLOPS: 1e12, Bandwidth: 500e9}")
	}
	r := &roofline{f: f}
	fine := func(v float64) bool { return v > 0 && !math.IsInf(v, 0) }
	loX, hiX, loY, hiY := math.Inf(1), 0.0, math.Inf(1), 0.0
	for _, x := range roofs {
		if !fine(x.FLOPS) || !fine(x.Bandwidth) {
			return f.fail("roof %q: %g operations and %g bytes a second, both have to be positive", x.Name, x.FLOPS, x.Bandwidth)
		}
		ridge := x.FLOPS / x.Bandwidth
		loX, hiX, hiY = math.Min(loX, ridge/16), math.Max(hiX, ridge*8), math.Max(hiY, x.FLOPS)
		r.roofs = append(r.roofs, x)
	}
	for _, w := range works {
		if w.FLOPS == 0 {
			for _, x := range roofs {
				if x.Name == w.Roof {
					w.FLOPS = x.at(w.Intensity)
				}
			}
		}
		if !fine(w.Intensity) || !fine(w.FLOPS) {
			return f.fail("work %q: %g operations per byte and %g operations a second, both have to be positive; where FLOPS is left out, Roof names a roof (it is %q)", w.Name, w.Intensity, w.FLOPS, w.Roof)
		}
		loX, hiX = math.Min(loX, w.Intensity), math.Max(hiX, w.Intensity)
		loY, hiY = math.Min(loY, w.FLOPS), math.Max(hiY, w.FLOPS)
		r.works = append(r.works, w)
	}
	p := f.plot
	var ticks decades
	p.X.Min, p.X.Max, ticks = decadesOf(loX, hiX)
	p.X.Scale, p.X.Tick.Marker = plot.LogScale{}, ticks
	for _, x := range roofs {
		loY = math.Min(loY, x.at(p.X.Min))
	}
	p.Y.Min, _, ticks = decadesOf(loY, hiY)
	p.Y.Max = hiY * 3 // room for names
	p.Y.Scale, p.Y.Tick.Marker = plot.LogScale{}, ticks
	p.X.Label.Text, p.Y.Label.Text = "operations / byte", "operations / s"
	f.content = r
	p.Add(r)
	return f
}

// at is the most that a machine can do at an intensity.
func (r Roof) at(intensity float64) float64 { return math.Min(r.FLOPS, r.Bandwidth*intensity) }

type roofline struct {
	roofs []Roof
	works []Work
	f     *Figure
}

func (r *roofline) prepare(*Figure) {}
func (r *roofline) line() bool      { return true }
func (r *roofline) notes() []string { return nil }

func (r *roofline) key(f *Figure) key {
	l := &legend{most: f.w / 3}
	for k, x := range r.roofs {
		l.names = append(l.names, x.Name)
		l.colors = append(l.colors, distinctColor(k))
		l.dashes = append(l.dashes, dashes[k%len(dashes)])
	}
	return l // works are named where they stand
}

const roofWidth = vg.Length(1.5)

// Roofs differ in their dashes too; the number of patterns has no factor in common
// with that of the colours.
var dashes = [][]vg.Length{{}, {6, 3}, {2, 2}, {8, 3, 2, 3}, {12, 3}}

// colorOf is a work's colour: its roof's, or one of its own.
func (r *roofline) colorOf(k int) color.NRGBA {
	at := len(r.roofs) + k
	for i, x := range r.roofs {
		if x.Name == r.works[k].Roof {
			at = i
		}
	}
	return distinctColor(at)
}

// DataRange is whole decades, but for the top.
func (r *roofline) DataRange() (xmin, xmax, ymin, ymax float64) {
	x, y := &r.f.plot.X, &r.f.plot.Y
	return x.Min, x.Max, y.Min, y.Max
}

// Plot draws the roofs, then the points.
func (r *roofline) Plot(c draw.Canvas, p *plot.Plot) {
	trX, trY := p.Transforms(&c)
	gridLines(c, p, true)
	for k, x := range r.roofs {
		var line []vg.Point
		for _, i := range []float64{p.X.Min, x.FLOPS / x.Bandwidth, p.X.Max} {
			i = math.Min(math.Max(i, p.X.Min), p.X.Max)
			line = append(line, vg.Point{X: trX(i), Y: trY(math.Max(x.at(i), p.Y.Min))})
		}
		c.StrokeLines(draw.LineStyle{Color: distinctColor(k), Width: roofWidth, Dashes: dashes[k%len(dashes)]}, c.ClipLinesXY(line)...)
	}
	sty := sans(noteSize)
	sty.XAlign = draw.XCenter
	for k, w := range r.works {
		at := vg.Point{X: trX(w.Intensity), Y: trY(w.FLOPS)}
		c.DrawGlyph(draw.GlyphStyle{Color: r.colorOf(k), Radius: 3.5, Shape: draw.CircleGlyph{}}, at)
		name := wrap(sty, printable(sty, w.Name), c.Size().X/2)
		half := sty.Width(name) / 2
		x := min(max(at.X, c.Min.X+half+2), c.Max.X-half-2) // names stay inside
		c.FillText(sty, vg.Point{X: x, Y: at.Y + 5}, name)
	}
	frame(c, c.Rectangle)
}

func (r *roofline) alt(*Figure) string {
	var b strings.Builder
	b.WriteString("Roofline. ")
	for _, x := range r.roofs {
		fmt.Fprintf(&b, "%s: %s operations and %s bytes a second, equal at %s operations per byte. ", x.Name, figure(x.FLOPS), figure(x.Bandwidth), figure(x.FLOPS/x.Bandwidth))
	}
	for _, w := range r.works {
		fmt.Fprintf(&b, "%s: %s operations per byte, %s a second. ", w.Name, figure(w.Intensity), figure(w.FLOPS))
	}
	return b.String()
}
