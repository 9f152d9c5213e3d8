package plots

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"gpunotes/gpukit"
)

// A grid holds values over a rectangular grid, both axes ascending.
type grid struct {
	x, y []float64
	z    []float64 // row by row: (i, j) is at i*len(x)+j, over x[j] and y[i]

	min, max     float64 // of the finite values
	minAt, maxAt int     // where they are first met
	finite       int
	nan          int
	posInf       int
	negInf       int
}

func shapeOf(a *gpukit.Array) string {
	if a == nil {
		return "nil"
	}
	var b strings.Builder
	b.WriteByte('(')
	for i, n := range a.Shape() {
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprint(&b, n)
	}
	if a.NDim() == 1 {
		b.WriteByte(',')
	}
	b.WriteByte(')')
	return b.String()
}

func newGrid(x, y, z *gpukit.Array) (*grid, error) {
	for _, a := range []struct {
		name string
		*gpukit.Array
	}{{"x", x}, {"y", y}, {"z", z}} {
		if a.Array == nil {
			return nil, fmt.Errorf("%s is a nil array; pass the result of gpukit.FromSlice, Linspace, MeshGrid or a call", a.name)
		}
	}
	if z.NDim() != 2 {
		return nil, fmt.Errorf("z has shape %s, want two dimensions (ny, nx): row i lies at y[i], column j at x[j]", shapeOf(z))
	}
	if z.Size() == 0 {
		return nil, fmt.Errorf("z has shape %s: there is no value to draw", shapeOf(z))
	}
	ny, nx := z.Shape()[0], z.Shape()[1]
	g := &grid{}
	var err error
	if g.x, err = axis("x", x, z, nx, 1); err != nil {
		return nil, err
	}
	if g.y, err = axis("y", y, z, ny, 0); err != nil {
		return nil, err
	}
	g.z = z.Float64s()
	if nx > 1 && g.x[0] > g.x[1] {
		slices.Reverse(g.x)
		for i := range ny {
			slices.Reverse(g.z[i*nx : (i+1)*nx])
		}
	}
	if ny > 1 && g.y[0] > g.y[1] {
		slices.Reverse(g.y)
		for i, j := 0, ny-1; i < j; i, j = i+1, j-1 {
			for k := range nx {
				g.z[i*nx+k], g.z[j*nx+k] = g.z[j*nx+k], g.z[i*nx+k]
			}
		}
	}
	g.count()
	return g, nil
}

// axis reads the coordinates along dimension dim of z, of length n, from a 1-d
// array or from a mesh of the shape of z, and checks them.
func axis(name string, a, z *gpukit.Array, n, dim int) ([]float64, error) {
	other := "rows"
	if dim == 1 {
		other = "columns"
	}
	mesh := slices.Equal(a.Shape(), z.Shape())
	if !mesh && !slices.Equal(a.Shape(), []int{n}) {
		hint := ""
		if zs := z.Shape(); slices.Equal(a.Shape(), []int{zs[1], zs[0]}) || slices.Equal(a.Shape(), []int{zs[1-dim]}) {
			hint = "; if z is stored the other way round, pass z.T()"
		}
		return nil, fmt.Errorf("%s has shape %s, but z has shape %s, %d %s: want shape (%d,), or the mesh %s that gpukit.MeshGrid makes%s",
			name, shapeOf(a), shapeOf(z), n, other, n, shapeOf(z), hint)
	}
	all := a.Float64s()
	v := all
	if mesh {
		ny, nx := z.Shape()[0], z.Shape()[1]
		v = make([]float64, n)
		for k, c := range all {
			i, j := k/nx, k%nx
			at, first := j, i == 0
			if dim == 0 {
				at, first = i, j == 0
			}
			if first {
				v[at] = c
			}
			if c != v[at] && !(math.IsNaN(c) && math.IsNaN(v[at])) {
				hint := "; a curved or rotated mesh cannot be drawn"
				if first, last := all[0], all[len(all)-1]; first != last && (dim == 1 && all[nx-1] == first || dim == 0 && all[(ny-1)*nx] == first) {
					hint = "; is it the other mesh of gpukit.MeshGrid, which gives x first?"
				}
				return nil, fmt.Errorf("%s, a mesh of shape %s, is not constant along %s: element (%d, %d) is %g, but %g was met before%s",
					name, shapeOf(a), map[int]string{0: "each row", 1: "each column"}[dim], i, j, c, v[at], hint)
			}
		}
	}
	for k, c := range v {
		switch {
		case math.IsNaN(c) || math.IsInf(c, 0):
			return nil, fmt.Errorf("%s[%d] is %g: coordinates must be finite", name, k, c)
		case math.Abs(c) > 1e300:
			return nil, fmt.Errorf("%s[%d] is %g: coordinates beyond 1e300 cannot be drawn; choose a larger unit", name, k, c)
		case k > 0 && (c == v[k-1] || (c > v[k-1]) != (v[1] > v[0])):
			return nil, fmt.Errorf("%s[%d] = %g follows %g: coordinates must rise or fall from one to the next all along the axis; sort them, and z with them", name, k, c, v[k-1])
		}
	}
	return v, nil
}

func (g *grid) count() {
	for k, v := range g.z {
		switch {
		case math.IsNaN(v):
			g.nan++
		case math.IsInf(v, 1):
			g.posInf++
		case math.IsInf(v, -1):
			g.negInf++
		default:
			if g.finite == 0 || v < g.min {
				g.min, g.minAt = v, k
			}
			if g.finite == 0 || v > g.max {
				g.max, g.maxAt = v, k
			}
			g.finite++
		}
	}
}

// scale is the range that the colours span: that of the finite values, widened
// if they are all equal.
func (g *grid) scale() (lo, hi float64) {
	lo, hi = g.min, g.max
	if lo == hi {
		d := math.Max(0.5, math.Abs(lo)*1e-3)
		if lo != 0 && math.Abs(lo) < 0.5 {
			d = math.Abs(lo) / 2
		}
		lo, hi = math.Max(lo-d, -math.MaxFloat64), math.Min(hi+d, math.MaxFloat64)
	}
	return lo, hi
}

// edges returns the len(c)+1 bounds of cells around the coordinates c: the
// midpoints, and at both ends as much beyond as the next bound is before. A
// single cell is 1 wide, or what the size of its coordinate lets be seen.
func edges(c []float64) []float64 {
	n := len(c)
	e := make([]float64, n+1)
	if n == 1 {
		d := math.Max(0.5, math.Abs(c[0])*1e-3)
		e[0], e[1] = c[0]-d, c[0]+d
		return e
	}
	for k := 1; k < n; k++ {
		e[k] = c[k-1] + (c[k]-c[k-1])/2
	}
	e[0] = c[0] - (e[1] - c[0])
	e[n] = c[n-1] + (c[n-1] - e[n-1])
	return e
}

// onGrid begins a figure of z over x and y.
func onGrid(name string, x, y, z *gpukit.Array) (f *Figure, g *grid) {
	f = newFigure(name)
	err := guard(func() (err error) {
		g, err = newGrid(x, y, z)
		return err
	})
	if err != nil {
		f.fail("%w", err)
	}
	return f, g
}

// texts are none but those of every figure.
func (g *grid) texts() []string { return nil }

// notes says what of z cannot be read off the colours.
func (g *grid) notes(nan, inf string) []string {
	var s []string
	add := func(n int, what, how string) {
		switch {
		case n == 1:
			s = append(s, fmt.Sprintf("1 value is %s (%s)", what, how))
		case n > 1:
			s = append(s, fmt.Sprintf("%d values are %s (%s)", n, what, how))
		}
	}
	add(g.nan, "NaN", nan)
	add(g.posInf, "+Inf", fmt.Sprintf(inf, "maximum"))
	add(g.negInf, "-Inf", fmt.Sprintf(inf, "minimum"))
	return s
}
