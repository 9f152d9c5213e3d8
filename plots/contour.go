package plots

import (
	"fmt"
	"image/color"
	"math"
	"sort"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"gpunotes/gpukit"
)

// Contour draws lines of equal z, by marching squares, at about eight round
// numbers or at Levels. The arguments are those of Heatmap, but neither nx nor
// ny may be below 2: z is taken as known at the points (x[j], y[i]), linear
// along the edges between them. Where the four corners of a square leave two
// ways to join the lines, their mean decides.
//
// No line touches a NaN; infinities count as the extremes of the finite values;
// both are counted below the figure. Lines so crowded that the file would grow
// beyond 1 MB (noise, say) are drawn through the means of blocks of 2 x 2, 4 x
// 4, ... values instead, which is noted as well.
func Contour(x, y, z *gpukit.Array) *Figure {
	f, g := onGrid("Contour", x, y, z)
	if f.err != nil {
		return f
	}
	if len(g.x) < 2 || len(g.y) < 2 {
		return f.fail("z has shape %s: lines run between values, so want at least two rows and two columns; Heatmap draws any shape", shapeOf(z))
	}
	c := &contour{grid: g}
	f.content = c
	f.plot.Add(c)
	return f
}

const (
	lineWidth = vg.Length(1)
	// Points that keep the SVG well below 1 MB, at some 15 bytes each.
	maxPoints = 40000
	// Segments at which tracing gives up before it takes long.
	maxSegments = 400000
	// Largest distance, in points, of a drawn line from the traced one.
	tolerance = 0.1
)

// contour is the content of a contour figure, and its plotter.
type contour struct {
	*grid
	levels []float64
	names  []string
	colors []color.NRGBA
	lines  [][]polyline // of each level, in coordinates of the data
	bare   []string     // levels without a line
	of     traced       // what all this depends on
	block  int          // values per side of the blocks that are averaged
}

type point struct{ x, y float64 }

// A polyline that is closed ends where it starts.
type polyline []point

func (c *contour) line() bool { return true }

// DataRange returns the outermost coordinates.
func (c *contour) DataRange() (xmin, xmax, ymin, ymax float64) {
	return c.x[0], c.x[len(c.x)-1], c.y[0], c.y[len(c.y)-1]
}

// choose sets the levels and their names.
func (c *contour) choose(f *Figure) {
	c.levels, c.names = nil, nil
	if f.levels != nil {
		c.levels = f.levels
		for _, l := range c.levels {
			c.names = append(c.names, shortNumber(l))
		}
		return
	}
	if !(c.min < c.max) {
		return
	}
	values, step := niceValues(c.min, c.max, 8)
	for _, v := range values {
		if v > c.min && v < c.max {
			c.levels = append(c.levels, v)
			c.names = append(c.names, formatTick(v, step, math.Max(math.Abs(c.min), math.Abs(c.max))))
		}
	}
	if len(c.levels) == 0 {
		v := c.min/2 + c.max/2
		c.levels, c.names = []float64{v}, []string{shortNumber(v)}
	}
}

// traced is what the lines depend on, besides the values.
type traced struct {
	view
	levels *float64 // the first one of the user's
	colors *colors
}

// prepare traces the lines at the size that the figure has now, unless it has.
func (c *contour) prepare(f *Figure) {
	now := traced{view: f.view(), colors: f.colors}
	if f.levels != nil {
		now.levels = &f.levels[0]
	}
	if c.of == now {
		return
	}
	c.of = now
	c.choose(f)
	p := f.plot
	scale := func(q point) point {
		return point{p.X.Norm(q.x) * float64(f.w), p.Y.Norm(q.y) * float64(f.h)}
	}
	for c.block = 1; ; c.block *= 2 {
		x, y, z := c.blocks(c.block)
		last := len(x) < 16 || len(y) < 16
		segments, enough := squares(x, y, z, c.levels)
		if !enough && !last {
			continue
		}
		c.lines = make([][]polyline, len(c.levels))
		points := 0
		for k, s := range segments {
			for _, l := range chain(x, y, z, c.levels[k], s) {
				l = simplify(l, scale)
				points += len(l)
				c.lines[k] = append(c.lines[k], l)
			}
		}
		if points <= maxPoints || last {
			break
		}
	}
	c.bare, c.colors = nil, make([]color.NRGBA, len(c.levels))
	for k := range c.levels {
		t := 0.0
		if len(c.levels) > 1 {
			t = float64(k) / float64(len(c.levels)-1)
		}
		c.colors[k] = onWhite(f.colors.at(t, 0, 1))
		if len(c.lines[k]) == 0 {
			c.bare = append(c.bare, c.names[k])
		}
	}
}

// onWhite darkens colours that are hard to see as a thin line on white. The
// weights of the luma are those of ITU-R BT.601.
func onWhite(c color.NRGBA) color.NRGBA {
	luma := 0.299*float64(c.R) + 0.587*float64(c.G) + 0.114*float64(c.B)
	if luma <= 150 {
		return c
	}
	f := 150 / luma
	return color.NRGBA{uint8(float64(c.R) * f), uint8(float64(c.G) * f), uint8(float64(c.B) * f), c.A}
}

// blocks returns the grid with infinities replaced, and b x b values averaged
// to one at the mean of their coordinates.
func (c *contour) blocks(b int) (x, y, z []float64) {
	z = c.z
	if c.posInf+c.negInf > 0 {
		z = make([]float64, len(c.z))
		for k, v := range c.z {
			if math.IsInf(v, 0) {
				v = math.Max(c.min, math.Min(c.max, v))
			}
			z[k] = v
		}
	}
	if b == 1 {
		return c.x, c.y, z
	}
	means := func(v []float64) []float64 {
		var out []float64
		for from := 0; from < len(v); from += b {
			part := v[from:min(from+b, len(v))]
			m := 0.0
			for _, x := range part {
				m += x / float64(len(part))
			}
			out = append(out, m)
		}
		return out
	}
	x, y = means(c.x), means(c.y)
	nx := len(c.x)
	out := make([]float64, len(x)*len(y))
	for i := range y {
		for j := range x {
			i1, j1 := min((i+1)*b, len(c.y)), min((j+1)*b, nx)
			n := float64((i1 - i*b) * (j1 - j*b))
			m := 0.0
			for k := i * b; k < i1; k++ {
				for _, v := range z[k*nx+j*b : k*nx+j1] {
					m += v / n
				}
			}
			out[i*len(x)+j] = m
		}
	}
	return x, y, out
}

// A segment joins two edges of the grid. The edge from value k = i*nx+j to the
// next of its row has the number 2k, that to the one in the next row 2k+1.
type segment struct{ a, b int }

// squares finds, for each level, the segments in the squares between four
// values. A value equal to the level counts as above it. It stops and returns
// false when there are too many.
func squares(x, y, z, levels []float64) (out [][]segment, enough bool) {
	nx, ny := len(x), len(y)
	out = make([][]segment, len(levels))
	total := 0
	for i := 0; i+1 < ny; i++ {
		for j := 0; j+1 < nx; j++ {
			k := i*nx + j
			z0, z1, z2, z3 := z[k], z[k+1], z[k+nx+1], z[k+nx] // counter-clockwise
			lo, hi := min(z0, z1, z2, z3), max(z0, z1, z2, z3)
			if !(lo < hi) { // or NaN
				continue
			}
			bottom, right, top, left := 2*k, 2*(k+1)+1, 2*(k+nx), 2*k+1
			for l := sort.SearchFloat64s(levels, lo); l < len(levels) && levels[l] <= hi; l++ {
				v := levels[l]
				mask := 0
				for bit, z := range [...]float64{z0, z1, z2, z3} {
					if z >= v {
						mask |= 1 << bit
					}
				}
				var s []segment
				switch mask {
				case 1, 14:
					s = []segment{{left, bottom}}
				case 2, 13:
					s = []segment{{bottom, right}}
				case 4, 11:
					s = []segment{{right, top}}
				case 8, 7:
					s = []segment{{top, left}}
				case 3, 12:
					s = []segment{{left, right}}
				case 6, 9:
					s = []segment{{bottom, top}}
				case 5, 10:
					if above := z0/4+z1/4+z2/4+z3/4 >= v; above == (mask == 5) {
						s = []segment{{bottom, right}, {top, left}}
					} else {
						s = []segment{{left, bottom}, {right, top}}
					}
				}
				out[l] = append(out[l], s...)
				total += len(s)
			}
		}
		if total > maxSegments {
			return out, false
		}
	}
	return out, true
}

// chain joins segments that share an edge to lines: first those with open
// ends, then the closed ones, both in the order of the segments.
func chain(x, y, z []float64, level float64, segments []segment) []polyline {
	nx := len(x)
	at := func(edge int) point {
		k := edge / 2
		i, j := k/nx, k%nx
		if edge%2 == 0 {
			return point{between(x[j], x[j+1], z[k], z[k+1], level), y[i]}
		}
		return point{x[j], between(y[i], y[i+1], z[k], z[k+nx], level)}
	}
	// An edge has one segment in each of the two squares beside it.
	touching := make(map[int][2]int, len(segments)+1)
	for n, s := range segments {
		for _, e := range [...]int{s.a, s.b} {
			t := touching[e]
			if t[0] == 0 {
				t[0] = n + 1
			} else {
				t[1] = n + 1
			}
			touching[e] = t
		}
	}
	used := make([]bool, len(segments))
	var lines []polyline
	walk := func(n, from int) {
		l := polyline{at(from)}
		for {
			used[n] = true
			to := segments[n].a + segments[n].b - from
			l = append(l, at(to))
			t := touching[to]
			next := t[0] + t[1] - (n + 1) - 1
			if t[1] == 0 || used[next] {
				break
			}
			n, from = next, to
		}
		lines = append(lines, l)
	}
	for n, s := range segments {
		for _, e := range [...]int{s.a, s.b} {
			if !used[n] && touching[e][1] == 0 {
				walk(n, e)
			}
		}
	}
	for n, s := range segments {
		if !used[n] {
			walk(n, s.a)
		}
	}
	return lines
}

// between returns the coordinate from a to b where a value that goes linearly
// from za to zb is v.
func between(a, b, za, zb, v float64) float64 {
	if math.IsInf(zb-za, 0) {
		za, zb, v = za/2, zb/2, v/2
	}
	t := (v - za) / (zb - za)
	return a + float64(t*(b-a))
}

// simplify drops points that lie within the tolerance of the line without
// them (Douglas and Peucker 1973), as scaled.
func simplify(l polyline, scale func(point) point) polyline {
	p := make([]point, len(l))
	for i, q := range l {
		p[i] = scale(q)
	}
	keep := make([]bool, len(l))
	keep[0], keep[len(l)-1] = true, true
	stack := [][2]int{{0, len(l) - 1}}
	for len(stack) > 0 {
		from, to := stack[len(stack)-1][0], stack[len(stack)-1][1]
		stack = stack[:len(stack)-1]
		far, at := tolerance, -1
		for i := from + 1; i < to; i++ {
			if d := distance(p[i], p[from], p[to]); d > far {
				far, at = d, i
			}
		}
		if at >= 0 {
			keep[at] = true
			stack = append(stack, [2]int{from, at}, [2]int{at, to})
		}
	}
	var out polyline
	for i, k := range keep {
		if k {
			out = append(out, l[i])
		}
	}
	return out
}

// distance is that of p from the segment from a to b.
func distance(p, a, b point) float64 {
	dx, dy := b.x-a.x, b.y-a.y
	px, py := p.x-a.x, p.y-a.y
	if n := float64(dx*dx) + float64(dy*dy); n > 0 {
		t := math.Max(0, math.Min(1, (float64(px*dx)+float64(py*dy))/n))
		px, py = px-float64(t*dx), py-float64(t*dy)
	}
	return math.Hypot(px, py)
}

func (c *contour) notes() []string {
	notes := c.grid.notes("no lines there", "taken as the %s")
	switch {
	case c.finite == 0:
	case c.min == c.max:
		notes = append(notes, "all finite values are "+shortNumber(c.min)+": no lines")
	case len(c.bare) > 0:
		notes = append(notes, fmt.Sprintf("no line at %s; the values run from %s to %s", strings.Join(c.bare, ", "), shortNumber(c.min), shortNumber(c.max)))
	}
	if c.block > 1 {
		notes = append(notes, fmt.Sprintf("lines through the means of blocks of %d x %d values", c.block, c.block))
	}
	return notes
}

func (c *contour) key(f *Figure) key {
	k := &lineKey{label: printable(sans(textSize), f.colorLabel)}
	for i := range c.levels {
		if len(c.lines[i]) > 0 {
			k.levels = append(k.levels, c.levels[i])
			k.names = append(k.names, c.names[i])
			k.colors = append(k.colors, c.colors[i])
		}
	}
	return k
}

func (c *contour) alt(f *Figure) string {
	c.choose(f)
	s := "no levels"
	if len(c.names) > 0 {
		s = "levels " + strings.Join(c.names, ", ")
	}
	return "Contour lines of " + describeValues(f) + " at " + s + ": " + c.describe(f)
}

// Plot draws the lines, each level's longest one with its number, and a frame.
func (c *contour) Plot(canvas draw.Canvas, p *plot.Plot) {
	trX, trY := p.Transforms(&canvas)
	sty := sans(noteSize)
	sty.XAlign, sty.YAlign = draw.XCenter, draw.YCenter
	var taken []vg.Point
	for k, lines := range c.lines {
		mapped := make([][]vg.Point, len(lines))
		longest, length := -1, vg.Length(0)
		for i, l := range lines {
			for _, q := range l {
				mapped[i] = append(mapped[i], vg.Point{X: trX(q.x), Y: trY(q.y)})
			}
			if n := along(mapped[i]); n > length {
				longest, length = i, n
			}
		}
		if longest >= 0 {
			if at, ok := place(mapped[longest], canvas.Rectangle, sty.Width(c.names[k])+4, taken); ok {
				taken = append(taken, at.middle)
				mapped = append(mapped, at.before, at.after)
				mapped[longest] = nil
				label(canvas, sty, c.colors[k], at, c.names[k])
			}
		}
		var path vg.Path
		for _, l := range mapped {
			for _, part := range canvas.ClipLinesXY(l) {
				closed := len(part) > 2 && part[0] == part[len(part)-1]
				for i, q := range part {
					switch {
					case i == 0:
						path.Move(q)
					case closed && i == len(part)-1:
						path.Close()
					default:
						path.Line(q)
					}
				}
			}
		}
		if len(path) > 0 {
			canvas.SetLineStyle(draw.LineStyle{Color: c.colors[k], Width: lineWidth})
			canvas.Stroke(path)
		}
	}
	frame(canvas, canvas.Rectangle)
}

func along(l []vg.Point) vg.Length {
	n := vg.Length(0)
	for i := 1; i < len(l); i++ {
		n += gap(l[i-1], l[i])
	}
	return n
}

func gap(a, b vg.Point) vg.Length {
	return vg.Length(math.Hypot(float64(b.X-a.X), float64(b.Y-a.Y)))
}

// A spot is where the number interrupts a line.
type spot struct {
	before, after []vg.Point
	middle        vg.Point
	angle         float64
}

// place looks along the line for a piece of the given width that is straight,
// preferably level and half way, inside area and not near the numbers already
// taken.
func place(l []vg.Point, area vg.Rectangle, width vg.Length, taken []vg.Point) (spot, bool) {
	total := along(l)
	if total < 3*width {
		return spot{}, false
	}
	best, found, at := 0.8, false, vg.Length(0)
	step := max(width/3, total/400)
	inner := vg.Rectangle{Min: area.Min.Add(vg.Point{X: 6, Y: 6}), Max: area.Max.Sub(vg.Point{X: 6, Y: 6})}
	inside := func(p vg.Point) bool {
		return p.X >= inner.Min.X && p.X <= inner.Max.X && p.Y >= inner.Min.Y && p.Y <= inner.Max.Y
	}
	for from := step; from+width < total-step; from += step {
		a, _ := walkTo(l, from)
		b, _ := walkTo(l, from+width)
		m, _ := walkTo(l, from+width/2)
		if !inside(a) || !inside(b) {
			continue
		}
		score := float64(gap(a, b)/width) - 0.1*math.Abs(float64((b.Y-a.Y)/width)) - 0.1*math.Abs(float64(from/total)-0.5)
		near := false
		for _, t := range taken {
			near = near || gap(t, m) < 1.3*width
		}
		if !near && score > best+1e-9 {
			best, found, at = score, true, from
		}
	}
	if !found {
		return spot{}, false
	}
	a, i := walkTo(l, at)
	b, j := walkTo(l, at+width)
	angle := math.Atan2(float64(b.Y-a.Y), float64(b.X-a.X))
	if angle > math.Pi/2 {
		angle -= math.Pi
	} else if angle <= -math.Pi/2 {
		angle += math.Pi
	}
	return spot{
		before: append(append([]vg.Point{}, l[:i]...), a),
		after:  append([]vg.Point{b}, l[j:]...),
		middle: vg.Point{X: (a.X + b.X) / 2, Y: (a.Y + b.Y) / 2},
		angle:  angle,
	}, true
}

// walkTo returns the point at a distance along l, and the index of the next
// point of l.
func walkTo(l []vg.Point, d vg.Length) (vg.Point, int) {
	for i := 1; i < len(l); i++ {
		n := gap(l[i-1], l[i])
		if d <= n && n > 0 {
			t := d / n
			return vg.Point{X: l[i-1].X + t*(l[i].X-l[i-1].X), Y: l[i-1].Y + t*(l[i].Y-l[i-1].Y)}, i
		}
		d -= n
	}
	return l[len(l)-1], len(l) - 1
}

func label(c draw.Canvas, sty text.Style, col color.Color, at spot, s string) {
	sty.Color = col
	sty.Rotation = at.angle
	// Digits sit on the baseline: half the descent up centres them on the line.
	up := float64(sty.FontExtents().Descent) / 2
	sin, cos := math.Sincos(at.angle)
	c.FillText(sty, at.middle.Add(vg.Point{X: vg.Length(-sin * up), Y: vg.Length(cos * up)}), s)
}
