package plots

import (
	"fmt"
	"image/color"
	"math"
	"strconv"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Colours for things that have no order, told apart by colour-blind eyes too
// (Okabe and Ito, Color Universal Design, 2008; without yellow, which is weak on
// white).
var distinct = []color.NRGBA{
	{0x00, 0x72, 0xb2, 255}, {0xe6, 0x9f, 0x00, 255}, {0x00, 0x9e, 0x73, 255}, {0xcc, 0x79, 0xa7, 255},
	{0xd5, 0x5e, 0x00, 255}, {0x56, 0xb4, 0xe9, 255}, {0x60, 0x60, 0x60, 255},
}

func distinctColor(k int) color.NRGBA { return distinct[k%len(distinct)] }

// legend lists names with their colours, from the top down: boxes, or the marks of
// series.
type legend struct {
	names  []string
	colors []color.NRGBA
	shapes []shape       // of the marks; nil for boxes, or for lines
	dashes [][]vg.Length // of the lines; nil for unbroken ones
	joined bool          // by a line
	most   vg.Length     // that it may take of the width; longer names are wrapped
}

var faint = color.Gray{0xdd} // of lines behind the data

const swatch = vg.Length(9)

// sample is the width of what stands before a name.
func (k *legend) sample() vg.Length {
	switch {
	case k.dashes != nil:
		return 2 * keyLine
	case k.joined:
		return keyLine
	}
	return swatch
}

// wrapped returns the names as they are drawn.
func (k *legend) wrapped() []string {
	sty := sans(tickSize)
	out := make([]string, len(k.names))
	for i, s := range k.names {
		out[i] = wrap(sty, printable(sty, s), k.most-k.sample()-2*barGap)
	}
	return out
}

func (k *legend) width(vg.Length) vg.Length {
	if len(k.names) == 0 {
		return 0
	}
	sty := sans(tickSize)
	w := vg.Length(0)
	for _, s := range k.wrapped() {
		w = max(w, sty.Width(s))
	}
	return max(w+k.sample()+2*barGap, sty.Width(andMore(len(k.names))))
}

func andMore(n int) string { return fmt.Sprintf("and %d more", n) }

func (k *legend) draw(c draw.Canvas, left vg.Length, area vg.Rectangle) {
	sty := sans(tickSize)
	sty.YAlign = draw.YTop
	line := sty.Height("x\nx") - sty.Height("x")
	down := (keyRow-line)/2 - sty.FontExtents().Descent/2
	y := area.Max.Y // top of the row
	names := k.wrapped()
	for i, s := range names {
		high := keyRow + line*vg.Length(strings.Count(s, "\n"))
		if rest := len(names) - i; y-high < c.Min.Y+keyRow && rest > 1 || y-high < c.Min.Y-1 {
			c.FillText(sty, vg.Point{X: left, Y: y - down}, andMore(rest))
			return
		}
		middle := y - keyRow/2
		switch {
		case k.dashes != nil:
			c.StrokeLine2(draw.LineStyle{Color: k.colors[i], Width: roofWidth, Dashes: k.dashes[i]}, left, middle, left+k.sample(), middle)
		case k.shapes == nil:
			box(c, vg.Rectangle{Min: vg.Point{X: left, Y: middle - swatch/2}, Max: vg.Point{X: left + swatch, Y: middle + swatch/2}}, k.colors[i])
		default:
			if k.joined {
				c.StrokeLine2(draw.LineStyle{Color: k.colors[i], Width: seriesWidth}, left, middle, left+keyLine, middle)
			}
			marks(c, k.shapes[i], k.colors[i], markSize, []vg.Point{{X: left + k.sample()/2, Y: middle}})
		}
		c.FillText(sty, vg.Point{X: left + k.sample() + 2*barGap, Y: y - down}, s)
		y -= high
	}
}

// gridLines draws faint lines at the labelled ticks of y, and of x if wanted.
func gridLines(c draw.Canvas, p *plot.Plot, x bool) {
	trX, trY := p.Transforms(&c)
	sty := draw.LineStyle{Color: faint, Width: 0.5}
	for _, t := range p.X.Tick.Marker.Ticks(p.X.Min, p.X.Max) {
		if x && t.Label != "" {
			c.StrokeLine2(sty, trX(t.Value), c.Min.Y, trX(t.Value), c.Max.Y)
		}
	}
	for _, t := range p.Y.Tick.Marker.Ticks(p.Y.Min, p.Y.Max) {
		if t.Label != "" {
			c.StrokeLine2(sty, c.Min.X, trY(t.Value), c.Max.X, trY(t.Value))
		}
	}
}

// box fills a rectangle.
func box(c draw.Canvas, r vg.Rectangle, col color.Color) {
	c.SetColor(col)
	c.Fill(r.Path())
}

// named marks places on an axis with names.
type named []string

// Ticks returns a tick for each name, at 0, 1, 2, ...
func (n named) Ticks(lo, hi float64) []plot.Tick {
	var ticks []plot.Tick
	for i, s := range n {
		ticks = append(ticks, plot.Tick{Value: float64(i), Label: s})
	}
	return ticks
}

// decades marks powers of ten, and without labels their multiples.
type decades struct{ every int } // label every so many decades

// Ticks returns the ticks within [lo, hi], which are positive.
func (d decades) Ticks(lo, hi float64) []plot.Tick {
	var ticks []plot.Tick
	for e := int(math.Floor(math.Log10(lo))); e <= int(math.Ceil(math.Log10(hi))); e++ {
		for m := 1.0; m < 10; m++ {
			v := decimal(m, e)
			if v < lo*(1-1e-9) || v > hi*(1+1e-9) {
				continue
			}
			t := plot.Tick{Value: v}
			if m == 1 && e%max(d.every, 1) == 0 {
				if t.Label = "1e" + strconv.Itoa(e); e >= -3 && e <= 4 {
					t.Label = strconv.FormatFloat(v, 'f', max(-e, 0), 64)
				}
			}
			if m == 1 || d.every <= 1 {
				ticks = append(ticks, t)
			}
		}
	}
	return ticks
}

// decadesOf are the powers of ten around values, and how often to label them.
func decadesOf(least, greatest float64) (lo, hi float64, ticks decades) {
	a, b := math.Floor(math.Log10(least)+1e-9), math.Ceil(math.Log10(greatest)-1e-9)
	if a == b {
		b++
	}
	return decimal(1, int(a)), decimal(1, int(b)), decades{1 + int(b-a)/9}
}
