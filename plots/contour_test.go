package plots

import (
	"math"
	"math/rand"
	"strings"
	"testing"

	"gpunotes/gpukit"
)

// field samples f on a grid.
func field(x, y *gpukit.Array, f func(x, y float64) float64) *gpukit.Array {
	var z []float64
	for _, b := range y.Float64s() {
		for _, a := range x.Float64s() {
			z = append(z, f(a, b))
		}
	}
	return gpukit.FromFlat(z, y.Size(), x.Size())
}

func linesOf(t *testing.T, f *Figure) *contour {
	t.Helper()
	if f.Err() != nil {
		t.Fatal(f.Err())
	}
	c := f.content.(*contour)
	c.prepare(f)
	return c
}

// The lines of fields whose level sets are known.
func TestContourPlaces(t *testing.T) {
	tests := []struct {
		name   string
		x, y   *gpukit.Array
		f      func(x, y float64) float64
		level  float64
		lines  int
		closed bool
		off    float64 // largest deviation of f from the level on the lines
	}{
		{"x", gpukit.Linspace(0, 5, 6), gpukit.Linspace(0, 3, 4), func(x, y float64) float64 { return x }, 2.25, 1, false, 1e-12},
		{"y, uneven and falling", gpukit.FromSlice([]float64{9, 4, 1, 0}), gpukit.FromSlice([]float64{5, 3, 0}), func(x, y float64) float64 { return y }, 1, 1, false, 1e-12},
		{"plane", gpukit.FromSlice([]float64{0, 1, 3, 7}), gpukit.FromSlice([]int{10, 8, 0}), func(x, y float64) float64 { return 2*x - y }, 3, 1, false, 1e-12},
		{"circle", gpukit.Linspace(-2, 2, 81), gpukit.Linspace(-3, 3, 101), func(x, y float64) float64 { return x*x + y*y }, 1, 1, true, 0.01},
		{"two circles", gpukit.Linspace(-4, 4, 161), gpukit.Linspace(-2, 2, 81), func(x, y float64) float64 { return (math.Abs(x)-2)*(math.Abs(x)-2) + y*y }, 1, 2, true, 0.01},
		{"hyperbola", gpukit.Linspace(-2, 2, 80), gpukit.Linspace(-1, 1, 40), func(x, y float64) float64 { return x * y }, 0.25, 2, false, 0.02},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := linesOf(t, Contour(tt.x, tt.y, field(tt.x, tt.y, tt.f)).Levels(tt.level))
			if len(c.lines[0]) != tt.lines {
				t.Fatalf("%d lines, want %d", len(c.lines[0]), tt.lines)
			}
			for _, l := range c.lines[0] {
				if closed := l[0] == l[len(l)-1]; closed != tt.closed {
					t.Errorf("a line is closed: %v", closed)
				}
				for _, p := range l {
					if d := math.Abs(tt.f(p.x, p.y) - tt.level); d > tt.off {
						t.Errorf("off by %g at %v", d, p)
					}
				}
			}
		})
	}
}

// On noise: the lines cross just those edges of the grid whose ends lie on both
// sides of the level, each once, and end only at the border or a NaN.
func TestContourTopology(t *testing.T) {
	rnd := rand.New(rand.NewSource(3))
	for range 60 {
		nx, ny := 2+rnd.Intn(12), 2+rnd.Intn(12)
		x, y, z := make([]float64, nx), make([]float64, ny), make([]float64, nx*ny)
		for j := range x {
			x[j] = float64(j)
		}
		for i := range y {
			y[i] = float64(i)
		}
		for k := range z {
			z[k] = float64(rnd.Intn(9)) // often equal to a level
			if rnd.Intn(25) == 0 {
				z[k] = math.NaN()
			}
		}
		levels := []float64{2, 3.5, 7}
		segments, _ := squares(x, y, z, levels)
		for k, level := range levels {
			whole := func(i, j int) bool { // a square without NaN
				return i >= 0 && j >= 0 && i+1 < ny && j+1 < nx && !math.IsNaN(z[i*nx+j]+z[i*nx+j+1]+z[(i+1)*nx+j]+z[(i+1)*nx+j+1])
			}
			crossed, open := 0, 0
			edge := func(a, b float64, squares int) {
				if squares > 0 && (a >= level) != (b >= level) {
					crossed++
					if squares == 1 {
						open++
					}
				}
			}
			n := func(a, b bool) (n int) {
				for _, v := range []bool{a, b} {
					if v {
						n++
					}
				}
				return n
			}
			for i := range ny {
				for j := range nx {
					if j+1 < nx {
						edge(z[i*nx+j], z[i*nx+j+1], n(whole(i, j), whole(i-1, j)))
					}
					if i+1 < ny {
						edge(z[i*nx+j], z[(i+1)*nx+j], n(whole(i, j), whole(i, j-1)))
					}
				}
			}
			// Ends and crossed edges by the segments; points cannot tell, since where
			// values equal the level several edges are crossed at one point.
			degree := map[int]int{}
			for _, s := range segments[k] {
				degree[s.a]++
				degree[s.b]++
			}
			points, ends, total := len(degree), 0, 0
			for e, d := range degree {
				if d == 1 {
					ends++
				} else if d != 2 {
					t.Fatalf("edge %d has %d segments", e, d)
				}
			}
			lines := chain(x, y, z, level, segments[k])
			for _, l := range lines {
				total += len(l) - 1
			}
			if total != len(segments[k]) || points != crossed || ends != open {
				t.Fatalf("level %g of %d x %d: %d of %d segments drawn, %d of %d edges crossed, %d of %d ends", level, ny, nx, total, len(segments[k]), points, crossed, ends, open)
			}
			if n := openFirst(lines, ends/2); n < 0 {
				t.Fatalf("level %g: a line after the %d open ones is not closed", level, ends/2)
			}
		}
	}
}

// openFirst checks that the lines after the first n end where they start.
func openFirst(lines []polyline, n int) int {
	if len(lines) < n {
		return -1
	}
	for _, l := range lines[n:] {
		if l[0] != l[len(l)-1] {
			return -1
		}
	}
	return n
}

func TestContourSpecialValues(t *testing.T) {
	x, y := gpukit.Arange(5), gpukit.Arange(4)
	nan, inf := math.NaN(), math.Inf(1)
	z := field(x, y, func(x, y float64) float64 { return x })
	v := z.Float64s()
	v[1*5+2] = nan
	c := linesOf(t, Contour(x, y, gpukit.FromFlat(v, 4, 5)).Levels(1.5))
	for _, l := range c.lines[0] {
		for _, p := range l {
			if p.y > 0 && p.y < 2 {
				t.Errorf("a line at %v, beside the NaN at (2, 1)", p)
			}
		}
	}
	v = z.Float64s()
	v[0], v[19] = -inf, inf
	c = linesOf(t, Contour(x, y, gpukit.FromFlat(v, 4, 5)).Levels(0.5, 3.5))
	for _, lines := range c.lines {
		for _, l := range lines {
			for _, p := range l {
				if math.IsNaN(p.x) || p.x != 0.5 && p.x != 3.5 && p.y != math.Trunc(p.y) {
					t.Errorf("infinities bend a line to %v", p)
				}
			}
		}
	}
	for name, v := range map[string]float64{"equal": 3, "all NaN": nan, "all Inf": inf, "equal huge": math.MaxFloat64} {
		f := Contour(x, y, gpukit.Full(v, 4, 5))
		d := f.Render()
		if d.Data["image/svg+xml"] == nil {
			t.Errorf("%s: %v", name, d.Data["text/plain"])
		}
		if notes := strings.Join(f.content.notes(), ";"); notes == "" {
			t.Errorf("%s: no note says why there are no lines", name)
		}
	}
	big := math.MaxFloat64
	c = linesOf(t, Contour(gpukit.Arange(2), gpukit.Arange(2), gpukit.FromSlice([][]float64{{-big, big}, {-big, big}})).Levels(0))
	if len(c.lines[0]) != 1 || math.Abs(c.lines[0][0][0].x-0.5) > 1e-12 {
		t.Errorf("from -MaxFloat64 to MaxFloat64: %v", c.lines[0])
	}
}

func TestContourLevels(t *testing.T) {
	x, y := gpukit.Linspace(0, 10, 11), gpukit.Arange(3)
	z := field(x, y, func(x, y float64) float64 { return x })
	given := []float64{7, 2.5, 7, 99}
	f := Contour(x, y, z).Levels(given...)
	c := linesOf(t, f)
	if got := strings.Join(c.names, " "); got != "2.5 7 99" || given[0] != 7 {
		t.Errorf("levels %s, the user's slice now %v", got, given)
	}
	if notes := strings.Join(c.notes(), ";"); !strings.Contains(notes, "no line at 99") {
		t.Errorf("notes %q", notes)
	}
	if k := c.key(f).(*lineKey); strings.Join(k.names, " ") != "2.5 7" {
		t.Errorf("the key shows %v", k.names)
	}
	c = linesOf(t, Contour(x, y, z))
	if got := strings.Join(c.names, " "); got != "2 4 6 8" {
		t.Errorf("own levels %s", got)
	}
	if !strings.Contains(f.Alt(), "at levels 2.5, 7, 99") {
		t.Errorf("Alt %q", f.Alt())
	}
}

// Noise is thinned out to a bounded file, and that is said.
func TestContourBounded(t *testing.T) {
	rnd := rand.New(rand.NewSource(4))
	x, y := gpukit.Arange(700), gpukit.Arange(500)
	f := Contour(x, y, field(x, y, func(_, _ float64) float64 { return rnd.Float64() }))
	svg := f.Render().Data["image/svg+xml"].(string)
	if len(svg) >= 1<<20 {
		t.Errorf("the SVG has %d bytes", len(svg))
	}
	if notes := strings.Join(f.content.notes(), ";"); !strings.Contains(notes, "means of blocks") {
		t.Errorf("notes %q", notes)
	}
	c := f.content.(*contour)
	bx, by, bz := (&contour{grid: &grid{x: []float64{0, 1, 2}, y: []float64{0, 2}, z: []float64{1, 2, 3, 3, 4, 5}}}).blocks(2)
	if len(bx) != 2 || bx[0] != 0.5 || bx[1] != 2 || len(by) != 1 || by[0] != 1 || bz[0] != 2.5 || bz[1] != 4 {
		t.Errorf("blocks: %v %v %v", bx, by, bz)
	}
	if c.block < 2 {
		t.Errorf("block %d", c.block)
	}
}

func TestSimplify(t *testing.T) {
	same := func(p point) point { return p }
	l := polyline{{0, 0}, {1, 0.01}, {2, 0}, {3, 0.5}, {4, 0}}
	got := simplify(l, same)
	want := polyline{{0, 0}, {2, 0}, {3, 0.5}, {4, 0}}
	if len(got) != len(want) {
		t.Fatalf("%v, want %v", got, want)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Fatalf("%v, want %v", got, want)
		}
	}
	var circle polyline
	for i := range 1001 {
		s, c := math.Sincos(2 * math.Pi * float64(i%1000) / 1000)
		circle = append(circle, point{100 * c, 100 * s})
	}
	got = simplify(circle, same)
	if len(got) < 20 || len(got) > 200 || got[0] != got[len(got)-1] {
		t.Errorf("a circle of 1001 points becomes %d", len(got))
	}
	for _, p := range circle {
		near := math.Inf(1)
		for i := 1; i < len(got); i++ {
			near = math.Min(near, distance(p, got[i-1], got[i]))
		}
		if near > tolerance {
			t.Fatalf("%v lies %g beside the simplified line", p, near)
		}
	}
}
