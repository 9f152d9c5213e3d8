package plots

import (
	"image/color"
	"math"
	"strconv"

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

// legend lists names with their colours, from the top down.
type legend struct {
	names  []string
	colors []color.NRGBA
}

var faint = color.Gray{0xdd} // of lines behind the data

const swatch = vg.Length(9)

func (k *legend) width(vg.Length) vg.Length {
	if len(k.names) == 0 {
		return 0
	}
	sty := sans(tickSize)
	w := vg.Length(0)
	for _, s := range k.names {
		w = max(w, sty.Width(printable(sty, s)))
	}
	return w + swatch + 2*barGap
}

func (k *legend) draw(c draw.Canvas, left vg.Length, area vg.Rectangle) {
	sty := sans(tickSize)
	sty.YAlign = draw.YCenter
	y := area.Max.Y - keyRow/2
	for i, s := range k.names {
		box(c, vg.Rectangle{Min: vg.Point{X: left, Y: y - swatch/2}, Max: vg.Point{X: left + swatch, Y: y + swatch/2}}, k.colors[i])
		c.FillText(sty, vg.Point{X: left + swatch + 2*barGap, Y: y + sty.FontExtents().Descent/2}, printable(sty, s))
		y -= keyRow
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
