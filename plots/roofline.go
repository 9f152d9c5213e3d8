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
			return f.fail("roof %q: %g operations and %g bytes a second, both have to be positive and finite", x.Name, x.FLOPS, x.Bandwidth)
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
			return f.fail("work %q: %g operations per byte and %g operations a second, both have to be positive and finite; where FLOPS is left out, Roof names a roof (it is %q)", w.Name, w.Intensity, w.FLOPS, w.Roof)
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

func (r *roofline) texts() []string {
	var names []string
	for _, x := range r.roofs {
		names = append(names, x.Name)
	}
	for _, w := range r.works {
		names = append(names, w.Name)
	}
	return names
}

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
	names := &labels{within: c.Rectangle}
	for k, x := range r.roofs {
		var line []vg.Point
		for _, i := range []float64{p.X.Min, x.FLOPS / x.Bandwidth, p.X.Max} {
			i = math.Min(math.Max(i, p.X.Min), p.X.Max)
			line = append(line, vg.Point{X: trX(i), Y: trY(math.Max(x.at(i), p.Y.Min))})
		}
		parts := c.ClipLinesXY(line)
		c.StrokeLines(draw.LineStyle{Color: distinctColor(k), Width: roofWidth, Dashes: dashes[k%len(dashes)]}, parts...)
		for _, part := range parts {
			for i := range part[1:] {
				names.lines = append(names.lines, [2]vg.Point{part[i], part[i+1]})
			}
		}
	}
	place := func(w Work) vg.Point { return vg.Point{X: trX(w.Intensity), Y: trY(w.FLOPS)} }
	for k, w := range r.works {
		c.DrawGlyph(draw.GlyphStyle{Color: r.colorOf(k), Radius: workRadius, Shape: draw.CircleGlyph{}}, place(w))
		names.taken = append(names.taken, around(place(w), workRadius))
	}
	sty := sans(noteSize)
	sty.XAlign = draw.XCenter
	for _, w := range r.works {
		name := wrap(sty, printable(sty, w.Name), c.Size().X/2)
		at, free := names.place(place(w), sty.Width(name), sty.Height(name))
		if !free {
			box(c, at, color.NRGBA{255, 255, 255, 200})
		}
		c.FillText(sty, vg.Point{X: (at.Min.X + at.Max.X) / 2, Y: at.Min.Y}, name)
	}
	frame(c, c.Rectangle)
}

const workRadius = vg.Length(3.5)

// around is the square around p.
func around(p vg.Point, r vg.Length) vg.Rectangle {
	return vg.Rectangle{Min: vg.Point{X: p.X - r, Y: p.Y - r}, Max: vg.Point{X: p.X + r, Y: p.Y + r}}
}

// labels finds places for names beside points.
type labels struct {
	within vg.Rectangle
	lines  [][2]vg.Point
	taken  []vg.Rectangle // by points and names
}

// place takes the first place around p for a name that lies on nothing, or the one that
// lies on least, and says whether it is free.
func (l *labels) place(p vg.Point, w, h vg.Length) (best vg.Rectangle, free bool) {
	const gap = 5
	least := -1
	for _, d := range [][2]vg.Length{ // the lower left corner
		{-w / 2, gap},          // above
		{-w - 4, gap - 2},      // to the upper left
		{4, -gap - h + 2},      // to the lower right
		{gap + 1, -h / 2},      // right
		{-gap - 1 - w, -h / 2}, // left
		{-w / 2, -gap - h},     // below
		{4, gap - 2},           // to the upper right
		{-w - 4, -gap - h + 2}, // to the lower left
	} {
		at := vg.Point{X: p.X + d[0], Y: p.Y + d[1]}
		at.X = max(min(at.X, l.within.Max.X-w-2), l.within.Min.X+2) // names stay inside
		at.Y = max(min(at.Y, l.within.Max.Y-h-1), l.within.Min.Y+1)
		r := vg.Rectangle{Min: at, Max: vg.Point{X: at.X + w, Y: at.Y + h}}
		n := 0
		for _, x := range l.lines {
			if crosses(x, r) {
				n++
			}
		}
		for _, x := range l.taken {
			if r.Min.X < x.Max.X && x.Min.X < r.Max.X && r.Min.Y < x.Max.Y && x.Min.Y < r.Max.Y {
				n += 2
			}
		}
		if least < 0 || n < least {
			best, least = r, n
		}
	}
	l.taken = append(l.taken, best)
	return best, least == 0
}

// crosses reports whether a line has a part within r: Liang and Barsky's clipping.
func crosses(line [2]vg.Point, r vg.Rectangle) bool {
	a, b := line[0], line[1]
	from, to := 0.0, 1.0
	for _, side := range [][2]vg.Length{{a.X - b.X, a.X - r.Min.X}, {b.X - a.X, r.Max.X - a.X}, {a.Y - b.Y, a.Y - r.Min.Y}, {b.Y - a.Y, r.Max.Y - a.Y}} {
		d, q := float64(side[0]), float64(side[1])
		switch {
		case d == 0 && q < 0:
			return false
		case d < 0:
			from = math.Max(from, q/d)
		case d > 0:
			to = math.Min(to, q/d)
		}
	}
	return from < to
}

func (r *roofline) alt(*Figure) string {
	var b strings.Builder
	b.WriteString("Roofline. ")
	for _, x := range r.roofs {
		fmt.Fprintf(&b, "%s: %s operations and %s bytes a second, equal at %s operations per byte. ", x.Name, figure(x.FLOPS), figure(x.Bandwidth), figure(x.FLOPS/x.Bandwidth))
	}
	times := map[string]int{}
	for _, w := range r.works {
		times[w.Name]++
	}
	for _, w := range r.works {
		name := w.Name
		if times[name] > 1 && w.Roof != "" { // in the picture the colour tells them apart
			name += " (" + w.Roof + ")"
		}
		fmt.Fprintf(&b, "%s: %s operations per byte, %s a second. ", name, figure(w.Intensity), figure(w.FLOPS))
	}
	return b.String()
}
