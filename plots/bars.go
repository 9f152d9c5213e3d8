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
// bars where there is room.
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
	f               *Figure
}

// scale sets the value axis.
func (b *bars) scale() {
	y := &b.f.plot.Y
	if b.log {
		var ticks decades
		y.Min, y.Max, ticks = decadesOf(b.least, b.greatest)
		y.Scale, y.Tick.Marker = plot.LogScale{}, ticks
		return
	}
	y.Min, y.Max = math.Min(b.least*1.05, 0), math.Max(b.greatest*1.05, 0)
	if y.Min == y.Max {
		y.Max = 1
	}
}

func (b *bars) prepare(f *Figure) {
	// Labels that are wider than their group are broken at spaces; if that does not
	// do, they stand aslant.
	sty := &f.plot.X.Tick.Label
	plain := sans(tickSize)
	sty.Rotation, sty.XAlign, sty.YAlign = 0, draw.XCenter, draw.YTop
	group := (f.w-90-b.key(f).width(f.h))/vg.Length(len(b.labels)) - 4
	names := make(named, len(b.labels))
	fits := true
	for i, s := range b.labels {
		s = printable(plain, s)
		for _, w := range strings.Fields(s) {
			fits = fits && plain.Width(w) <= group
		}
		names[i] = wrap(plain, s, group)
		fits = fits && strings.Count(names[i], "\n") < 3
	}
	if !fits {
		sty.Rotation, sty.XAlign, sty.YAlign = math.Pi/4, draw.XRight, draw.YTop
		for i, s := range b.labels {
			names[i] = wrap(plain, printable(plain, s), min(f.w, f.h)*0.45)
		}
	}
	f.plot.X.Tick.Marker = names
}

func (b *bars) line() bool { return true }

func (b *bars) notes() []string {
	switch b.missing {
	case 0:
		return nil
	case 1:
		return []string{"1 value is missing"}
	}
	return []string{fmt.Sprintf("%d values are missing", b.missing)}
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
			if text := figure(v); sty.Width(text) <= r.Size().X+2 && r.Max.Y+sty.Height(text)+2 < c.Max.Y {
				at := sty
				at.XAlign = draw.XCenter
				c.FillText(at, vg.Point{X: (r.Min.X + r.Max.X) / 2, Y: r.Max.Y + 2 + sty.FontExtents().Descent/2}, text)
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
