package plots

import (
	"fmt"
	"image"
	"image/color"
	"math"
	"strconv"
	"strings"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// noKey is the key of a figure without values.
type noKey struct{}

func (noKey) width(vg.Length) vg.Length                 { return 0 }
func (noKey) draw(draw.Canvas, vg.Length, vg.Rectangle) {}

// colorBar is a scale of colours with ticks on its right side, which gonum's
// has not.
type colorBar struct {
	colors *colors
	lo, hi float64
	label  string
}

const (
	barWidth = vg.Length(14)
	barTick  = vg.Length(4)
	barGap   = vg.Length(3) // between tick and number
)

func (b *colorBar) ticks(h vg.Length) *niceTicks {
	return &niceTicks{max(1, min(8, int(h/30)))}
}

// width for the height of the whole figure, which shows no fewer ticks than
// the plot area does.
func (b *colorBar) width(h vg.Length) vg.Length {
	sty := sans(tickSize)
	w := vg.Length(0)
	for n := b.ticks(h).n; n > 0; n-- {
		for _, t := range (&niceTicks{n}).Ticks(b.lo, b.hi) {
			w = max(w, sty.Width(t.Label))
		}
	}
	w += barWidth + barTick + barGap
	if b.label != "" {
		sty := sans(textSize)
		w += 4 + sty.Height(wrap(sty, b.label, h*3/4))
	}
	return w
}

func (b *colorBar) draw(c draw.Canvas, left vg.Length, area vg.Rectangle) {
	h := area.Size().Y
	bar := vg.Rectangle{Min: vg.Point{X: left, Y: area.Min.Y}, Max: vg.Point{X: left + barWidth, Y: area.Max.Y}}
	if rasterOf(c.Canvas) != nil {
		paint(c, bar, func(img *image.NRGBA, px, py []vg.Length) {
			for j, y := range py {
				col := b.colors.at(float64((y-bar.Min.Y)/h), 0, 1)
				for i := range px {
					img.SetNRGBA(i, len(py)-1-j, col)
				}
			}
		})
	} else {
		// Rectangles, each up to the top so that no gap shows between them. Not
		// a picture: the PDF writer puts several of them in random order.
		strip := bar
		for i, col := range b.colors.entry {
			strip.Min.Y = bar.Min.Y + h*vg.Length(i)/vg.Length(len(b.colors.entry))
			c.SetColor(col)
			c.Fill(strip.Path())
		}
	}
	frame(c, bar)
	sty := sans(tickSize)
	sty.YAlign = draw.YCenter
	for _, t := range b.ticks(h).Ticks(b.lo, b.hi) {
		y := bar.Min.Y + h*vg.Length((t.Value/2-b.lo/2)/(b.hi/2-b.lo/2))
		y = min(max(y, bar.Min.Y), bar.Max.Y)
		c.StrokeLine2(draw.LineStyle{Color: color.Black, Width: 0.5}, bar.Max.X, y, bar.Max.X+barTick, y)
		c.FillText(sty, vg.Point{X: bar.Max.X + barTick + barGap, Y: y + sty.FontExtents().Descent/2}, t.Label)
	}
	sideLabel(c, b.label, area)
}

// sideLabel writes s upwards along the right edge of c, beside area.
func sideLabel(c draw.Canvas, s string, area vg.Rectangle) {
	if s == "" {
		return
	}
	sty := sans(textSize)
	s = wrap(sty, s, area.Size().Y)
	sty.Rotation = math.Pi / 2
	sty.XAlign, sty.YAlign = draw.XCenter, draw.YBottom
	c.FillText(sty, vg.Point{X: c.Max.X - sty.FontExtents().Descent, Y: (area.Min.Y + area.Max.Y) / 2}, s)
}

// lineKey lists the levels of contour lines, the greatest on top.
type lineKey struct {
	levels []float64 // rising
	names  []string
	colors []color.NRGBA
	label  string
}

const (
	keyLine = vg.Length(16)
	keyRow  = vg.Length(14)
)

func (k *lineKey) width(h vg.Length) vg.Length {
	if len(k.levels) == 0 {
		return 0
	}
	sty := sans(tickSize)
	w := vg.Length(0)
	for _, s := range k.names {
		w = max(w, sty.Width(s))
	}
	w += keyLine + barGap + barGap
	if k.label != "" {
		sty := sans(textSize)
		w += 8 + sty.Height(wrap(sty, k.label, h*3/4))
	}
	return w
}

func (k *lineKey) draw(c draw.Canvas, left vg.Length, area vg.Rectangle) {
	n := len(k.levels)
	every := 1 // of many levels, those that find room
	for vg.Length((n+every-1)/every)*keyRow > area.Size().Y {
		every++
	}
	rows := (n + every - 1) / every
	sty := sans(tickSize)
	sty.YAlign = draw.YCenter
	y := (area.Min.Y+area.Max.Y)/2 - keyRow*vg.Length(rows-1)/2
	for i := 0; i < n; i += every {
		c.StrokeLine2(draw.LineStyle{Color: k.colors[i], Width: lineWidth}, left, y, left+keyLine, y)
		c.FillText(sty, vg.Point{X: left + keyLine + barGap + barGap/2, Y: y + sty.FontExtents().Descent/2}, k.names[i])
		y += keyRow
	}
	sideLabel(c, k.label, area)
}

// describeValues names z in a sentence.
func describeValues(f *Figure) string {
	if f.colorLabel != "" {
		return f.colorLabel
	}
	return "z"
}

// describe says what lies on the axes and how large the values are.
func (g *grid) describe(f *Figure) string {
	var b strings.Builder
	count := func(n int, what string) string {
		if n == 1 {
			return "1 " + what
		}
		return fmt.Sprintf("%d %ss", n, what)
	}
	axis := func(name, label string, v []float64) string {
		if label == "" {
			label = name
		}
		if len(v) == 1 {
			return label + " is " + coordinate(v, 0)
		}
		return label + " from " + coordinate(v, 0) + " to " + coordinate(v, len(v)-1)
	}
	fmt.Fprintf(&b, "%s by %s. Across, %s; upwards, %s. ", count(len(g.y), "row"), count(len(g.x), "column"),
		axis("x", f.plot.X.Label.Text, g.x), axis("y", f.plot.Y.Label.Text, g.y))
	place := func(k int) string {
		return "(" + coordinate(g.x, k%len(g.x)) + ", " + coordinate(g.y, k/len(g.x)) + ")"
	}
	switch {
	case g.finite == 0:
		b.WriteString("No value is finite.")
	case g.min == g.max:
		fmt.Fprintf(&b, "All finite values are %s.", shortNumber(g.min))
	default:
		fmt.Fprintf(&b, "Least %s at %s; greatest %s at %s.", shortNumber(g.min), place(g.minAt), shortNumber(g.max), place(g.maxAt))
	}
	for _, n := range []struct {
		n    int
		what string
	}{{g.nan, "NaN"}, {g.posInf, "+Inf"}, {g.negInf, "-Inf"}} {
		if n.n > 0 {
			fmt.Fprintf(&b, " %s: %d.", n.what, n.n)
		}
	}
	return b.String()
}

// coordinate writes v[k] with the digits that tell it from its neighbours.
func coordinate(v []float64, k int) string {
	digits := 6
	if n := len(v); n > 1 {
		step := math.Abs(v[n-1]-v[0]) / float64(n-1)
		if r := math.Max(math.Abs(v[0]), math.Abs(v[n-1])) / step; r > 1 && !math.IsInf(r, 0) {
			digits = max(digits, min(17, int(math.Ceil(math.Log10(r)))+1))
		}
	}
	return trimExponent(strconv.FormatFloat(v[k], 'g', digits, 64))
}
