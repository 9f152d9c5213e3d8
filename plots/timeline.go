package plots

import (
	"cmp"
	"fmt"
	"image/color"
	"math"
	"slices"
	"strings"
	"time"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"gpunotes/gpukit/trace"
)

// Timeline draws what a trace recorded against time: a lane for copies to the
// device, one for kernels, one for copies back, and others that the trace has.
// What is too short to be seen is drawn as a line. Whether times are simulated or
// measured is said below the figure. A nil trace, and one without records, are
// errors.
func Timeline(t *trace.Trace) *Figure {
	f := newFigure("Timeline")
	if t == nil {
		return f.fail("the trace is nil: pass what StopTrace returns")
	}
	if len(t.Records) == 0 {
		why := t.Note
		if why == "" {
			why = "nothing ran between StartTrace and StopTrace"
		}
		return f.fail("the trace has no records: %s", why)
	}
	l := &timeline{records: slices.Clone(t.Records), f: f}
	slices.SortStableFunc(l.records, func(a, b trace.Record) int { return cmp.Compare(a.Start, b.Start) }) // for Plot
	for _, r := range t.Records {
		l.until = max(l.until, r.Start+r.Duration)
		switch r.Timing {
		case trace.Simulated:
			l.simulated++
		case trace.Measured:
			l.measured++
		}
	}
	l.unit, l.unitName = time.Second, "s"
	switch {
	case l.until < 2*time.Millisecond:
		l.unit, l.unitName = time.Microsecond, "us"
	case l.until < 2*time.Second:
		l.unit, l.unitName = time.Millisecond, "ms"
	}
	for _, lane := range lanes {
		for _, r := range t.Records {
			if r.Kind == lane.kind {
				l.lanes = append(l.lanes, lane)
				break
			}
		}
	}
	f.content = l
	f.plot.Add(l)
	f.plot.X.Label.Text = "time / " + l.unitName
	var names named
	for i := len(l.lanes) - 1; i >= 0; i-- { // the first lane on top
		names = append(names, l.lanes[i].name)
	}
	f.plot.Y.Tick.Marker, f.plot.Y.Tick.Length = names, 0
	f.h = vg.Length(1.5+0.4*float64(len(l.lanes))) * vg.Inch
	return f
}

type lane struct {
	kind  trace.Kind
	name  string
	one   string // in a sentence
	words string // of several
	color color.NRGBA
}

var lanes = []lane{
	{trace.HtoD, "copies in", "copy to the device", "copies to the device", distinct[5]},
	{trace.Launch, "kernels", "launch", "launches", distinct[4]},
	{trace.DtoH, "copies out", "copy back", "copies back", distinct[0]},
	{trace.DtoD, "copies within", "copy within the device", "copies within the device", distinct[2]},
	{trace.Memset, "fills", "fill", "fills", distinct[6]},
}

type timeline struct {
	records             []trace.Record // ordered by Start
	lanes               []lane
	until               time.Duration
	unit                time.Duration
	unitName            string
	simulated, measured int
	f                   *Figure
}

func (l *timeline) prepare(*Figure) {}
func (l *timeline) line() bool      { return true }
func (l *timeline) key(*Figure) key { return noKey{} }

func (l *timeline) texts() []string {
	var names []string
	for _, r := range l.records {
		if r.Kind == trace.Launch && !slices.Contains(names, r.Name) {
			names = append(names, r.Name)
		}
	}
	return names
}

func (l *timeline) notes() []string {
	switch {
	case l.simulated == len(l.records):
		return []string{"simulated times"}
	case l.measured == len(l.records):
		return []string{"measured times"}
	case l.simulated > 0:
		return []string{"times partly simulated"}
	}
	return nil
}

// DataRange begins at 0 and ends with the last record.
func (l *timeline) DataRange() (xmin, xmax, ymin, ymax float64) {
	return 0, max(float64(l.until)/float64(l.unit), 1e-9), -0.5, float64(len(l.lanes)) - 0.5
}

// Plot draws the records, those that begin later on top.
func (l *timeline) Plot(c draw.Canvas, p *plot.Plot) {
	trX, trY := p.Transforms(&c)
	for _, t := range p.X.Tick.Marker.Ticks(p.X.Min, p.X.Max) {
		c.StrokeLine2(draw.LineStyle{Color: faint, Width: 0.5}, trX(t.Value), c.Min.Y, trX(t.Value), c.Max.Y)
	}
	const half, least = 0.35, vg.Length(0.75)
	sty := sans(noteSize)
	sty.Color = color.White
	sty.XAlign, sty.YAlign = draw.XCenter, draw.YCenter
	for i, lane := range l.lanes {
		y := float64(len(l.lanes) - 1 - i)
		drawn := vg.Length(math.Inf(-1)) // up to there
		for _, r := range l.records {
			if r.Kind != lane.kind {
				continue
			}
			from, to := float64(r.Start)/float64(l.unit), float64(r.Start+r.Duration)/float64(l.unit)
			b := vg.Rectangle{Min: vg.Point{X: trX(from), Y: trY(y - half)}, Max: vg.Point{X: trX(to), Y: trY(y + half)}}
			if b.Max.X <= drawn { // of thousands, most would hide behind others
				continue
			}
			b.Max.X = max(b.Max.X, b.Min.X+least)
			drawn = b.Max.X
			box(c, b, lane.color)
			if b.Size().X > 3 { // neighbours stay apart
				c.StrokeLine2(draw.LineStyle{Color: color.White, Width: 0.5}, b.Max.X, b.Min.Y, b.Max.X, b.Max.Y)
			}
			text := printable(sty, r.Name)
			if r.Kind != trace.Launch {
				text = fmt.Sprintf("%.4gMB", float64(r.Size)/(1<<20))
			}
			if sty.Width(text) <= b.Size().X-4 {
				c.FillText(sty, vg.Point{X: (b.Min.X + b.Max.X) / 2, Y: (b.Min.Y+b.Max.Y)/2 + sty.FontExtents().Descent/2}, text)
			}
		}
	}
	frame(c, c.Rectangle)
}

func (l *timeline) alt(*Figure) string {
	var parts []string
	for _, lane := range l.lanes {
		var n int
		var sum time.Duration
		for _, r := range l.records {
			if r.Kind == lane.kind {
				n++
				sum += r.Duration
			}
		}
		words := lane.words
		if n == 1 {
			words = lane.one
		}
		parts = append(parts, fmt.Sprintf("%d %s, %s", n, words, spell(sum)))
	}
	s := fmt.Sprintf("Timeline over %s: %s.", spell(l.until), strings.Join(parts, "; "))
	for _, n := range l.notes() {
		s += " " + strings.ToUpper(n[:1]) + n[1:] + "."
	}
	return s
}

// spell writes a duration with four digits.
func spell(d time.Duration) string {
	switch s := d.Seconds(); {
	case s >= 1:
		return fmt.Sprintf("%.4g s", s)
	case s >= 1e-3:
		return fmt.Sprintf("%.4g ms", s*1e3)
	}
	return fmt.Sprintf("%.4g us", d.Seconds()*1e6)
}
