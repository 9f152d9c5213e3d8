package plots

import (
	"fmt"
	"image/color"
	"math"
	"strconv"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Series is a row of values with a name, for Bars, Line and Scatter.
type Series struct {
	Name   string
	Values []float64
	X      []float64 // where the values lie, for Line and Scatter; nil for the x of the call
}

// Bars draws a group of bars for each label, one bar for each series: values
// side by side, such as a published time and one's own. Each series has a value
// for each label; NaN leaves its bar out, which is noted below the figure. An
// infinite value, no label and no series are errors. Values stand above their
// bars, or below those that go down, where the bars are wide enough. Of many labels
// only some are written, which is noted as well.
//
// The axis is linear and begins at 0; Log makes it logarithmic.
func Bars(labels []string, series ...Series) *Figure {
	f := newFigure("Bars")
	b := &bars{labels: append([]string{}, labels...), f: f, least: math.Inf(1), greatest: math.Inf(-1)}
	if len(labels) == 0 {
		return f.fail("no labels are given: Bars([]string{\"t14\", \"t15\"}, plots.Series{Name: \"measured\", Values: []float64{1.2, 0.8}})")
	}
	if len(series) == 0 {
		return f.fail("no series is given: add a plots.Series with a name and %d values", len(labels))
	}
	for _, s := range series {
		if s.X != nil {
			return f.fail("series %q has an X: bars stand at labels; Line and Scatter draw values against x", s.Name)
		}
		if len(s.Values) != len(labels) {
			return f.fail("series %q has %d values for %d labels", s.Name, len(s.Values), len(labels))
		}
		for i, v := range s.Values {
			switch {
			case math.IsNaN(v):
				b.missing++
				continue
			case math.IsInf(v, 0):
				return f.fail("series %q: the value for %q is %g; leave a bar out with math.NaN()", s.Name, labels[i], v)
			}
			b.least, b.greatest = math.Min(b.least, v), math.Max(b.greatest, v)
		}
		b.series = append(b.series, Series{Name: s.Name, Values: append([]float64{}, s.Values...)})
	}
	if b.least > b.greatest {
		return f.fail("no value is a number")
	}
	f.content = b
	f.plot.Add(b)
	f.plot.X.Tick.Marker = named(b.labels)
	f.plot.X.Tick.Length = 0
	b.scale()
	return f
}

// Log makes the axis of values logarithmic: y of Bars, Line and Scatter. All values
// have to be positive, 1e-300 or more.
func (f *Figure) Log() *Figure {
	f = f.ok("Log")
	if f.err != nil {
		return f
	}
	switch c := f.content.(type) {
	case *bars:
		for _, s := range c.series {
			for i, v := range s.Values {
				if v < least {
					return f.fail("Log: series %q: the value for %q is %g, %s", s.Name, c.labels[i], v, noLog)
				}
			}
		}
		c.log = true
		c.scale()
	case *xy:
		if err := c.logarithmic("y"); err != nil {
			return f.fail("Log: %w", err)
		}
		c.logY = true
		c.scale()
	default:
		return f.fail("Log: only Bars, Line and Scatter have an axis to change")
	}
	return f
}

// LogX makes the axis of x of Line and Scatter logarithmic. Every x has to be
// positive, 1e-300 or more.
func (f *Figure) LogX() *Figure {
	f = f.ok("LogX")
	if f.err != nil {
		return f
	}
	c, ok := f.content.(*xy)
	if !ok {
		return f.fail("LogX: only Line and Scatter have an axis to change")
	}
	if err := c.logarithmic("x"); err != nil {
		return f.fail("LogX: %w", err)
	}
	c.logX = true
	c.scale()
	return f
}

type bars struct {
	labels          []string
	series          []Series
	least, greatest float64
	missing         int
	log             bool
	every           int        // so many labels one is written
	tallest         string     // of those
	ends            [2]float64 // of the axis, as scale last set them
	f               *Figure
}

// scale sets the value axis, with room for the values at the ends of the bars.
func (b *bars) scale() {
	y := &b.f.plot.Y
	value := float64(sans(noteSize).Height("0")) + 4
	room := value / math.Max(float64(b.high())-2*value, value)
	if b.log {
		var ticks decades
		y.Min, y.Max, ticks = decadesOf(b.least, b.greatest)
		y.Scale, y.Tick.Marker = plot.LogScale{}, ticks
		span := math.Log10(b.greatest) - math.Log10(y.Min)
		y.Max = math.Max(y.Max, math.Min(b.greatest*math.Pow(10, span*room), math.MaxFloat64))
	} else {
		up, down := math.Max(b.greatest, 0), math.Min(b.least, 0)
		if up == down {
			up = 1
		}
		y.Min, y.Max = down, up
		if b.greatest >= 0 {
			y.Max = math.Min(up+(up*room-down*room), math.MaxFloat64)
		}
		if b.least < 0 {
			y.Min = math.Max(down-(up*room-down*room), -math.MaxFloat64)
		}
	}
	b.ends = [2]float64{y.Min, y.Max}
}

// high is about the height of the plot: its parts are not wrapped yet.
func (b *bars) high() vg.Length {
	p := b.f.plot
	h := b.f.h - 2*margin - p.X.Tick.Label.Rectangle(b.tallest).Size().Y
	for _, part := range []struct {
		sty  text.Style
		text string
	}{{p.Title.TextStyle, p.Title.Text}, {p.X.Label.TextStyle, p.X.Label.Text}, {noteStyle(), strings.Join(append(b.notes(), b.f.lacking()...), " ")}} {
		if part.text != "" {
			h -= part.sty.Height("0") + 6
		}
	}
	return h
}

func (b *bars) prepare(f *Figure) {
	b.label()
	if y := &f.plot.Y; b.ends == [2]float64{y.Min, y.Max} { // not the user's
		b.scale()
	}
}

// label writes the labels below the bars.
func (b *bars) label() {
	f := b.f
	// Labels that are wider than their place are broken at spaces; if that does not
	// do, they stand aslant; if they then overlap, only some are written.
	sty := &f.plot.X.Tick.Label
	plain := sans(tickSize)
	place := (f.w - 90 - b.key(f).width(f.h)) / vg.Length(len(b.labels))
	b.every = 1
	for {
		width := place*vg.Length(b.every) - 4
		if b.every > 1 { // the first one must not reach below the other axis
			width = min(width, place+10)
		}
		names, fits := b.upright(plain, width)
		sty.Rotation, sty.XAlign, sty.YAlign = 0, draw.XCenter, draw.YTop
		if !fits {
			sty.Rotation, sty.XAlign, sty.YAlign = math.Pi/4, draw.XRight, draw.YTop
			names, fits = b.aslant(plain, place*vg.Length(b.every), min(f.w, f.h)*0.45)
		}
		f.plot.X.Tick.Marker, b.tallest = names, ""
		for _, s := range names {
			if sty.Rectangle(s).Size().Y > sty.Rectangle(b.tallest).Size().Y {
				b.tallest = s
			}
		}
		if fits || b.every >= len(b.labels) {
			return
		}
		b.every = nextStep(b.every)
	}
}

// nextStep follows n in 1, 2, 5, 10, 20, ...
func nextStep(n int) int {
	if strconv.Itoa(n)[0] == '2' {
		return n / 2 * 5
	}
	return 2 * n
}

// upright breaks the labels to a width, and says whether they fit.
func (b *bars) upright(sty text.Style, width vg.Length) (names named, fits bool) {
	names, fits = make(named, len(b.labels)), true
	for i := 0; i < len(names); i += b.every {
		s := printable(sty, b.labels[i])
		for _, w := range strings.Fields(s) {
			if sty.Width(w) > width {
				return nil, false
			}
		}
		names[i] = wrap(sty, s, width)
		fits = fits && strings.Count(names[i], "\n") < 3
	}
	return names, fits
}

// aslant breaks the labels to a length, and says whether their lines keep apart.
func (b *bars) aslant(sty text.Style, place, length vg.Length) (names named, fits bool) {
	names, fits = make(named, len(b.labels)), true
	for i := 0; i < len(names); i += b.every {
		names[i] = wrap(sty, printable(sty, b.labels[i]), length)
		fits = fits && sty.Height(names[i])*math.Sqrt2 <= place
	}
	return names, fits || len(names) <= b.every
}

// More bars than this become a picture, so that the SVG stays below 1 MB.
const maxBars = 8000

func (b *bars) line() bool { return len(b.labels)*len(b.series) <= maxBars }

func (b *bars) texts() []string {
	var names []string
	for i := 0; i < len(b.labels); i += max(b.every, 1) { // every is 0 before the first prepare
		names = append(names, b.labels[i])
	}
	for _, s := range b.series {
		names = append(names, s.Name)
	}
	return names
}

func (b *bars) notes() []string {
	var notes []string
	switch {
	case b.missing == 1:
		notes = append(notes, "1 value is missing")
	case b.missing > 1:
		notes = append(notes, fmt.Sprintf("%d values are missing", b.missing))
	}
	if b.every > 1 {
		notes = append(notes, fmt.Sprintf("of each %d labels the first is written", b.every))
	}
	return notes
}

func (b *bars) key(f *Figure) key {
	if len(b.series) == 1 && b.series[0].Name == "" {
		return noKey{}
	}
	l := &legend{most: f.w / 3}
	for k, s := range b.series {
		l.names = append(l.names, s.Name)
		l.colors = append(l.colors, distinctColor(k))
	}
	return l
}

// DataRange leaves half a place beside the outer groups.
func (b *bars) DataRange() (xmin, xmax, ymin, ymax float64) {
	y := &b.f.plot.Y
	return -0.5, float64(len(b.labels)) - 0.5, y.Min, y.Max
}

// Plot draws the bars.
func (b *bars) Plot(c draw.Canvas, p *plot.Plot) {
	trX, trY := p.Transforms(&c)
	base := trY(math.Max(p.Y.Min, 0))
	if b.log {
		base = trY(p.Y.Min)
	}
	gridLines(c, p, false)
	const group = 0.8 // of the place of a label
	each := group / float64(len(b.series))
	sty := sans(noteSize)
	sty.XAlign = draw.XCenter
	widest := trX(each) - trX(0) - 1.5 // of a value: 1 and 1 side by side must not read 11
	if len(b.series) == 1 {
		widest = trX(each*0.94) - trX(0) + 2
	}
	for k, s := range b.series {
		for i, v := range s.Values {
			if math.IsNaN(v) {
				continue
			}
			left := float64(i) - group/2 + float64(k)*each
			r := vg.Rectangle{Min: vg.Point{X: trX(left), Y: base}, Max: vg.Point{X: trX(left + each*0.94), Y: trY(v)}}
			if v < 0 && !b.log {
				r.Min.Y, r.Max.Y = r.Max.Y, r.Min.Y
			}
			box(c, r, distinctColor(k))
			text, middle := figure(v), (r.Min.X+r.Max.X)/2
			high := sty.Height(text) + 2
			switch {
			case sty.Width(text) > widest:
			case v < 0 && r.Min.Y-high > c.Min.Y:
				c.FillText(sty, vg.Point{X: middle, Y: r.Min.Y - high + sty.FontExtents().Descent/2}, text)
			case v >= 0 && r.Max.Y+high < c.Max.Y:
				c.FillText(sty, vg.Point{X: middle, Y: r.Max.Y + 2 + sty.FontExtents().Descent/2}, text)
			}
		}
	}
	if !b.log && p.Y.Min < 0 {
		c.StrokeLine2(draw.LineStyle{Color: color.Black, Width: 0.5}, c.Min.X, base, c.Max.X, base)
	}
	frame(c, c.Rectangle)
}

// figure writes a value with three digits.
func figure(v float64) string {
	if a := math.Abs(v); a >= 1000 && a < 1e5 {
		return fmt.Sprintf("%.0f", v)
	}
	return trimExponent(fmt.Sprintf("%.3g", v))
}

func (b *bars) alt(f *Figure) string {
	var s strings.Builder
	s.WriteString("Bars")
	if y := f.plot.Y.Label.Text; y != "" {
		s.WriteString(" of " + y)
	}
	if b.log {
		s.WriteString(" on a logarithmic axis")
	}
	s.WriteString(". ")
	if len(b.labels) > 30 {
		b.summary(&s)
		return s.String()
	}
	for i, l := range b.labels {
		s.WriteString(l + ":")
		for k, x := range b.series {
			if k > 0 {
				s.WriteByte(',')
			}
			v := "missing"
			if !math.IsNaN(x.Values[i]) {
				v = shortNumber(x.Values[i])
			}
			s.WriteString(strings.TrimRight(" "+x.Name, " ") + " " + v)
		}
		s.WriteString(". ")
	}
	return s.String()
}

// summary tells the extremes of each series, where there are many labels.
func (b *bars) summary(s *strings.Builder) {
	n := len(b.labels)
	fmt.Fprintf(s, "%d labels from %s to %s. ", n, b.labels[0], b.labels[n-1])
	for _, x := range b.series {
		lo, hi, missing := -1, -1, 0
		for i, v := range x.Values {
			if math.IsNaN(v) {
				missing++
				continue
			}
			if lo < 0 || v < x.Values[lo] {
				lo = i
			}
			if hi < 0 || v > x.Values[hi] {
				hi = i
			}
		}
		if x.Name != "" {
			s.WriteString(x.Name + ": ")
		}
		if lo < 0 {
			s.WriteString("all missing. ")
			continue
		}
		fmt.Fprintf(s, "least %s at %s, greatest %s at %s", shortNumber(x.Values[lo]), b.labels[lo], shortNumber(x.Values[hi]), b.labels[hi])
		if missing > 0 {
			fmt.Fprintf(s, "; %d missing", missing)
		}
		s.WriteString(". ")
	}
}
