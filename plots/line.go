package plots

import (
	"fmt"
	"image/color"
	"math"
	"reflect"
	"slices"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"

	"gpunotes/gpukit"
)

// Line draws y against x, joined in their order by a line. x, and each y, is a
// 1-d *gpukit.Array of any dtype or a slice of numbers, all of one length; a y
// may also be a Series, whose name stands in the legend and which may have an X
// of its own, or a []Series. x may be nil where every series has one. Series
// differ in colour and in the shape of their marks: a short series has a mark at
// each point, a long one at some.
//
// A NaN or an infinity leaves a gap; gaps are counted below the figure. Numbers
// beyond 1e300, no points and no finite point are errors. Of points that follow
// each other within one column of pixels the first, the last, the least and the
// greatest are drawn, which gives the same picture (Jugel and others: M4, PVLDB 7,
// 2014), and is noted. Both axes are linear; Log and LogX change that.
func Line(x any, y ...any) *Figure { return newXY("Line", true, x, y) }

// Scatter draws a mark at each point (x, y). The arguments are those of Line;
// points that have a NaN or an infinity are left out and counted below the figure.
// Marks are the smaller the more there are. From some thousands on, one that would
// hide another of its series within half a pixel is drawn once.
func Scatter(x any, y ...any) *Figure { return newXY("Scatter", false, x, y) }

// xy is the content of Line and Scatter, and their plotter.
type xy struct {
	f            *Figure
	joined       bool
	series       []points
	logX, logY   bool
	x, y         bounds
	left         int     // points without two finite coordinates
	words        string  // that describe the series; "" if not known
	of           view    // what follows depends on
	drawn        []drawn // nil if not known
	reduced, big bool
}

type points struct {
	name string
	x, y []float64
}

type bounds struct{ lo, hi float64 }

// add widens b to a finite v.
func (b *bounds) add(v float64) { b.lo, b.hi = min(b.lo, v), max(b.hi, v) }

// drawn is what of a series is drawn at a size.
type drawn struct {
	lines []polyline
	marks []point
	n     int // points of the series
}

const (
	column   = vg.Inch / vectorDPI // of pixels, at the finest resolution
	maxMarks = 6000                // that are shapes; more become a picture, so that the SVG stays below 1 MB
	markAll  = 30                  // points of a line of which each gets a mark
	markSome = 8                   // marks of longer ones
)

func newXY(name string, joined bool, x any, y []any) *Figure {
	f := newFigure(name)
	c := &xy{f: f, joined: joined, x: bounds{math.Inf(1), math.Inf(-1)}, y: bounds{math.Inf(1), math.Inf(-1)}}
	if err := guard(func() error { return c.read(x, y) }); err != nil {
		return f.fail("%w", err)
	}
	f.content = c
	c.scale()
	f.plot.Add(c)
	return f
}

// read takes the arguments.
func (c *xy) read(x any, y []any) error {
	var common []float64
	var list []Series
	if !isNil(x) {
		var err error
		if common, err = numbers("x", x); err != nil {
			return err
		}
		common = slices.Clone(common)
	}
	for i, arg := range y {
		switch v := arg.(type) {
		case Series:
			list = append(list, v)
		case []Series:
			list = append(list, v...)
		default:
			what := "y"
			if len(y) > 1 {
				what = fmt.Sprintf("y number %d", i+1)
			}
			values, err := numbers(what, arg)
			if err != nil {
				return err
			}
			list = append(list, Series{Values: values})
		}
	}
	if len(list) == 0 {
		return fmt.Errorf("no y is given: plots.%s(x, y), or against the index plots.%s(gpukit.Arange(100), y)", c.f.name, c.f.name)
	}
	n := 0
	for i, s := range list {
		p := points{name: s.Name, x: slices.Clone(s.X), y: slices.Clone(s.Values)}
		what := "y"
		switch {
		case s.Name != "":
			what = fmt.Sprintf("series %q", s.Name)
		case len(list) > 1:
			what = fmt.Sprintf("y number %d", i+1)
		}
		if s.X == nil {
			if isNil(x) {
				return fmt.Errorf("x is nil, and %s has no X of its own: pass the x of the points, such as gpukit.Arange(%d)", what, len(p.y))
			}
			p.x = common
		}
		if len(p.x) != len(p.y) {
			return fmt.Errorf("%s has %d values for %d of x: want as many", what, len(p.y), len(p.x))
		}
		for k := range p.x {
			a, b := p.x[k], p.y[k]
			if bad(a) || bad(b) {
				c.left++
				continue
			}
			if math.Abs(a) > 1e300 || math.Abs(b) > 1e300 {
				return fmt.Errorf("%s: point %d is (%g, %g): numbers beyond 1e300 cannot be drawn; choose a larger unit", what, k, a, b)
			}
			c.x.add(a)
			c.y.add(b)
		}
		n += len(p.x)
		c.series = append(c.series, p)
	}
	switch {
	case n == 0:
		return fmt.Errorf("x and y have no elements: there is no point to draw")
	case c.left == n:
		return fmt.Errorf("none of the %d points has two finite coordinates: there is none to draw", n)
	}
	return nil
}

func bad(v float64) bool { return math.IsNaN(v) || math.IsInf(v, 0) }

func isNil(x any) bool {
	if x == nil {
		return true
	}
	switch v := reflect.ValueOf(x); v.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map, reflect.Func, reflect.Chan:
		return v.IsNil()
	}
	return false
}

// numbers reads an argument: an array or a slice. What it returns may be the user's.
func numbers(what string, x any) ([]float64, error) {
	if s, ok := x.([]float64); ok {
		return s, nil
	}
	if isNil(x) {
		return nil, fmt.Errorf("%s is nil: pass an array, such as gpukit.Linspace(0, 1, 100), or a []float64", what)
	}
	a, ok := x.(*gpukit.Array)
	if !ok {
		if reflect.TypeOf(x).Kind() != reflect.Slice {
			return nil, fmt.Errorf("%s is of type %T: want a *gpukit.Array, a slice of numbers such as []float64, or for y a plots.Series", what, x)
		}
		if err := guard(func() error { a = gpukit.FromSlice(x); return nil }); err != nil {
			return nil, fmt.Errorf("%s: %w", what, err)
		}
	}
	if a.NDim() != 1 {
		return nil, fmt.Errorf("%s has shape %s, want one dimension: .Reshape(-1) strings all elements together, .Slice(0, i, i+1, 1).Reshape(-1) is row i", what, shapeOf(a))
	}
	return a.Float64s(), nil
}

// scale sets the axes.
func (c *xy) scale() {
	set := func(a *plot.Axis, b bounds, log bool) {
		if log {
			var ticks decades
			a.Min, a.Max, ticks = decadesOf(b.lo, b.hi)
			a.Scale, a.Tick.Marker = plot.LogScale{}, ticks
			return
		}
		d := (b.hi - b.lo) * 0.03
		if b.lo == b.hi {
			d = math.Max(0.5, math.Abs(b.lo)*1e-3)
			if b.lo != 0 && math.Abs(b.lo) < 0.5 {
				d = math.Abs(b.lo) / 2
			}
		}
		a.Min, a.Max = b.lo-d, b.hi+d
	}
	set(&c.f.plot.X, c.x, c.logX)
	set(&c.f.plot.Y, c.y, c.logY)
}

// logarithmic looks for a point that a logarithmic axis cannot show.
func (c *xy) logarithmic(axis string) error {
	for i, s := range c.series {
		for k := range s.x {
			v := s.y[k]
			if axis == "x" {
				v = s.x[k]
			}
			if bad(s.x[k]) || bad(s.y[k]) || v >= least {
				continue
			}
			what := ""
			switch {
			case s.name != "":
				what = fmt.Sprintf("series %q: ", s.name)
			case len(c.series) > 1:
				what = fmt.Sprintf("y number %d: ", i+1)
			}
			return fmt.Errorf("%s%s of point %d is %g, %s", what, axis, k, v, noLog)
		}
	}
	return nil
}

// A logarithmic axis ends here: the decade below is not a normal number.
const (
	least = 1e-300
	noLog = "and a logarithmic axis shows numbers from 1e-300 on; put math.NaN() there to leave it out"
)

// DataRange is that of the axes.
func (c *xy) DataRange() (xmin, xmax, ymin, ymax float64) {
	x, y := &c.f.plot.X, &c.f.plot.Y
	return x.Min, x.Max, y.Min, y.Max
}

// line says whether the figure is line art at its present size.
func (c *xy) line() bool {
	c.reduce()
	return !c.big
}

func (c *xy) prepare(*Figure) { c.reduce() }

// reduce finds what is drawn at the size of the figure, unless it is known.
func (c *xy) reduce() {
	now := c.f.view()
	if c.drawn != nil && c.of == now {
		return
	}
	c.of, c.drawn, c.reduced, c.big = now, nil, false, false
	marks, ends := 0, 0
	for k, s := range c.series {
		d := drawn{n: len(s.x)}
		if c.joined {
			c.join(&d, s, k)
		} else {
			d.marks = c.visible(s)
		}
		for _, l := range d.lines {
			ends += len(l)
		}
		marks += len(d.marks)
		c.drawn = append(c.drawn, d)
	}
	c.big = marks > maxMarks || ends > maxPoints
}

// view is what decides where a point is drawn: the size, the axes, and one place of
// each scale.
type view struct {
	w, h                                     vg.Length
	xMin, xMax, yMin, yMax, xMiddle, yMiddle float64
}

func (f *Figure) view() view {
	x, y := &f.plot.X, &f.plot.Y
	return view{f.w, f.h, x.Min, x.Max, y.Min, y.Max, x.Norm((x.Min + x.Max) / 2), y.Norm((y.Min + y.Max) / 2)}
}

// pixelX is the number of the column of pixels of x, which are at least as narrow as in
// any format; pixelY that of the row of y.
func (c *xy) pixelX(x float64) int {
	return int(math.Floor(c.f.plot.X.Norm(x) * float64(c.f.w/column)))
}

func (c *xy) pixelY(y float64) int {
	return int(math.Floor(c.f.plot.Y.Norm(y) * float64(c.f.h/column)))
}

// visible returns the points of s, of many only one in each half of a pixel.
func (c *xy) visible(s points) []point {
	var taken map[[2]int]bool
	if len(s.x) > maxMarks/3 {
		taken = map[[2]int]bool{}
	}
	var out []point
	for i := range s.x {
		if bad(s.x[i]) || bad(s.y[i]) {
			continue
		}
		if taken != nil {
			here := [2]int{c.pixelX(s.x[i]), c.pixelY(s.y[i])}
			if taken[here] {
				continue
			}
			taken[here] = true
		}
		out = append(out, point{s.x[i], s.y[i]})
	}
	return out
}

// join cuts a series at its gaps and drops points that no pixel shows.
func (c *xy) join(d *drawn, s points, k int) {
	var alone points // between two gaps
	many := len(s.x) > 4*int(c.f.w/column)
	for i := 0; i < len(s.x); {
		if bad(s.x[i]) || bad(s.y[i]) {
			i++
			continue
		}
		from := i
		for i < len(s.x) && !bad(s.x[i]) && !bad(s.y[i]) {
			i++
		}
		if i-from == 1 {
			alone.x, alone.y = append(alone.x, s.x[from]), append(alone.y, s.y[from])
			continue
		}
		if !many {
			l := make(polyline, 0, i-from)
			for j := from; j < i; j++ {
				l = append(l, point{s.x[j], s.y[j]})
			}
			d.lines = append(d.lines, l)
			continue
		}
		var l polyline
		next := c.pixelX(s.x[from])
		for a := from; a < i; {
			b, here := a+1, next
			for b < i {
				if next = c.pixelX(s.x[b]); next != here {
					break
				}
				b++
			}
			for _, j := range extremes(s.y, a, b) {
				l = append(l, point{s.x[j], s.y[j]})
			}
			c.reduced = c.reduced || b-a > 4
			a = b
		}
		d.lines = append(d.lines, l)
	}
	switch {
	case len(s.x) <= markAll:
		d.marks = c.visible(s)
		return
	case len(c.series) > 1:
		d.marks = c.some(s, k)
	}
	d.marks = append(d.marks, c.visible(alone)...)
}

// extremes returns the indices from a to b, or of more than four those of the
// first, the least, the greatest and the last, in order.
func extremes(y []float64, a, b int) []int {
	if b-a <= 4 {
		all := make([]int, 0, 4)
		for i := a; i < b; i++ {
			all = append(all, i)
		}
		return all
	}
	lo, hi := a, a
	for i := a; i < b; i++ {
		if y[i] < y[lo] {
			lo = i
		}
		if y[i] > y[hi] {
			hi = i
		}
	}
	four := []int{a, lo, hi, b - 1}
	slices.Sort(four)
	return slices.Compact(four)
}

// some picks points of series k for its marks, evenly along x and between those
// of the other series.
func (c *xy) some(s points, k int) []point {
	way := make([]float64, len(s.x)) // up to a point
	sum, last := 0.0, math.NaN()
	for i := range s.x {
		if !bad(s.x[i]) && !bad(s.y[i]) {
			x := c.f.plot.X.Norm(s.x[i])
			if !math.IsNaN(last) {
				sum += math.Abs(x - last)
			}
			last = x
		}
		way[i] = sum
	}
	var out []point
	next := 0
	shift := (float64(k) + 0.5) / float64(len(c.series))
	for i := range s.x {
		if bad(s.x[i]) || bad(s.y[i]) || way[i] < (float64(next)+shift)/markSome*sum {
			continue
		}
		out = append(out, point{s.x[i], s.y[i]})
		for next < markSome && (float64(next)+shift)/markSome*sum <= way[i] {
			next++
		}
		if next == markSome {
			break
		}
	}
	return out
}

func (c *xy) texts() []string {
	var names []string
	for _, s := range c.series {
		names = append(names, s.name)
	}
	return names
}

func (c *xy) notes() []string {
	var notes []string
	if c.left > 0 {
		what := "has a NaN or an infinity and"
		if c.left > 1 {
			what = "have a NaN or an infinity and"
		}
		how := "left out"
		switch {
		case c.joined && c.left == 1:
			how = "leaves a gap"
		case c.joined:
			how = "leave gaps"
		case c.left == 1:
			how = "is left out"
		default:
			how = "are left out"
		}
		notes = append(notes, fmt.Sprintf("%s %s %s", counted(c.left, "point"), what, how))
	}
	if c.reduced {
		notes = append(notes, "in each column of pixels the line has its first, last, least and greatest point")
	}
	return notes
}

func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func (c *xy) key(f *Figure) key {
	if !slices.ContainsFunc(c.series, func(s points) bool { return s.name != "" }) {
		if len(c.series) == 1 {
			return noKey{}
		}
	}
	l := &legend{most: f.w / 3, joined: c.joined}
	for k, s := range c.series {
		name := s.name
		if name == "" {
			name = fmt.Sprintf("y%d", k+1)
		}
		l.names = append(l.names, name)
		l.colors = append(l.colors, distinctColor(k))
		l.shapes = append(l.shapes, shapeOfSeries(k))
	}
	return l
}

// Plot draws the series, the first one lowest.
func (c *xy) Plot(canvas draw.Canvas, p *plot.Plot) {
	gridLines(canvas, p, true)
	frame(canvas, canvas.Rectangle) // below marks on the edge
	if c.big && rasterOf(canvas.Canvas) == nil {
		size := canvas.Size()
		img := vgimg.NewWith(vgimg.UseWH(size.X, size.Y), vgimg.UseDPI(vectorDPI), vgimg.UseBackgroundColor(color.Transparent))
		c.paint(draw.New(img), p)
		canvas.DrawImage(canvas.Rectangle, img.Image())
		return
	}
	c.paint(canvas, p)
}

func (c *xy) paint(canvas draw.Canvas, p *plot.Plot) {
	trX, trY := p.Transforms(&canvas)
	n := 0
	for _, d := range c.drawn {
		n += d.n
	}
	r := markSize
	if !c.joined {
		r = vg.Length(math.Max(0.75, math.Min(float64(markSize), 12/math.Pow(float64(n), 0.28))))
	}
	for k, d := range c.drawn {
		col := distinctColor(k)
		canvas.SetLineStyle(draw.LineStyle{Color: col, Width: seriesWidth})
		// One path keeps SVG small; pieces of it keep pictures fast, whose painter
		// takes long for a path that crosses a row of pixels often.
		most := math.MaxInt
		if rasterOf(canvas.Canvas) != nil {
			most = 50
		}
		var path vg.Path
		for _, l := range d.lines {
			mapped := make([]vg.Point, len(l))
			for i, q := range l {
				mapped[i] = vg.Point{X: trX(q.x), Y: trY(q.y)}
			}
			for _, part := range canvas.ClipLinesXY(mapped) {
				for i, q := range part {
					if i == 0 {
						path.Move(q)
						continue
					}
					path.Line(q)
					if len(path) > most {
						canvas.Stroke(path)
						path = vg.Path{{Type: vg.MoveComp, Pos: q}}
					}
				}
			}
		}
		if len(path) > 0 {
			canvas.Stroke(path)
		}
		var at []vg.Point
		for _, q := range d.marks {
			if pt := (vg.Point{X: trX(q.x), Y: trY(q.y)}); canvas.Contains(pt) {
				at = append(at, pt)
			}
		}
		if img := rasterOf(canvas.Canvas); img != nil && c.big {
			stamp(img, shapeOfSeries(k), col, r, at)
		} else {
			marks(canvas, shapeOfSeries(k), col, r, at)
		}
	}
}

const seriesWidth = vg.Length(1.25)

func (c *xy) alt(f *Figure) string {
	var b strings.Builder
	b.WriteString(map[bool]string{true: "Line", false: "Points"}[c.joined])
	name := func(label, without string) string {
		if label == "" {
			return without
		}
		return label
	}
	x, y := name(f.plot.X.Label.Text, "x"), name(f.plot.Y.Label.Text, "y")
	fmt.Fprintf(&b, " of %s against %s", y, x)
	switch {
	case c.logX && c.logY:
		b.WriteString(", both axes logarithmic")
	case c.logX:
		b.WriteString(", on a logarithmic axis of x")
	case c.logY:
		b.WriteString(", on a logarithmic axis of y")
	}
	b.WriteString(". ")
	if c.words == "" {
		c.words = c.describe()
	}
	return b.String() + c.words
}

// describe tells the points of short series, and the ends and extremes of long ones.
func (c *xy) describe() string {
	var b strings.Builder
	for k, s := range c.series {
		switch {
		case s.name != "":
			b.WriteString(s.name + ": ")
		case len(c.series) > 1:
			fmt.Fprintf(&b, "y%d: ", k+1)
		}
		b.WriteString(s.describe())
	}
	return b.String()
}

func (s points) describe() string {
	at := func(i int) string { return "(" + shortNumber(s.x[i]) + ", " + shortNumber(s.y[i]) + ")" }
	n, lo, hi := 0, -1, -1 // finite points, and the extremes of them
	x := bounds{math.Inf(1), math.Inf(-1)}
	var all []string // of a short series
	for i := range s.x {
		if bad(s.x[i]) || bad(s.y[i]) {
			continue
		}
		if n++; len(s.x) <= 10 {
			all = append(all, at(i))
		}
		if lo < 0 || s.y[i] < s.y[lo] {
			lo = i
		}
		if hi < 0 || s.y[i] > s.y[hi] {
			hi = i
		}
		x.add(s.x[i])
	}
	missing := ""
	if left := len(s.x) - n; left > 0 {
		missing = fmt.Sprintf("; %d missing", left)
	}
	switch {
	case n == 0:
		return counted(len(s.x), "point") + " missing. "
	case all != nil:
		return strings.Join(all, ", ") + missing + ". "
	}
	return fmt.Sprintf("%s, x from %s to %s, least at %s, greatest at %s%s. ", counted(len(s.x), "point"), shortNumber(x.lo), shortNumber(x.hi), at(lo), at(hi), missing)
}
