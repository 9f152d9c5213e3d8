package gpukit

import (
	"fmt"
	"math"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	"gpunotes/gpukit/internal/ir"
)

// withPays runs f where what pays is decided so; nil decides as for a user.
func withPays(pays func(on ir.Axes, saved int) bool, f func()) {
	before := tablePays
	tablePays = pays
	defer func() { tablePays = before }()
	f()
}

func always(ir.Axes, int) bool { return true }
func never(ir.Axes, int) bool  { return false }

func axWave(x, y, z float64) float64 {
	return float64(math.Sin(x)*math.Cos(y)) + float64(math.Exp(z)*math.Atan(float64(z*y)))
}

func axNarrow(x, y float32, k int32) float32 {
	s := float32(math.Sin(float64(x)))
	if y > 0.5 {
		return float32(s*y) + float32(math.Log1p(float64(y)))
	}
	return s - float32(k*k*k%7)
}

// axHash works on integers of one axis, long enough for a table of them.
func axHash(a, b uint32, c int64) uint64 {
	for range 3 {
		a ^= a << 13
		a ^= a >> 17
		a ^= a << 5
	}
	return uint64(a)*uint64(b) + uint64(c)
}

func axFlag(x, y float64) bool {
	inside := math.Hypot(x, 0.3) < 1 && math.Exp(x) > 0.5
	return inside && y > x || math.Cos(y) < 0.1
}

// axDivides fails where b is 0, beside a sine that only depends on x.
func axDivides(x float64, a, b int64) float64 {
	return math.Sin(x) * float64(a/b)
}

// axSteps iterates on x alone, as often as n says.
func axSteps(x, y float64, n int) float64 {
	for range n {
		x = float64(0.5*x) + math.Cos(x)
	}
	return x * y
}

// axRows is a gufunc whose workers each have a number of their own.
func axRows(x []float64, s float64, out []float64) {
	for i := range x {
		out[i] = x[i] * math.Sin(s)
	}
}

// axCounts computes with the number of an iteration.
func axCounts(x [][]float64, out [][]float64) {
	for i := range x {
		for j := range x[i] {
			out[i][j] = x[i][j] * math.Sin(float64(0.1*float64(i)))
		}
	}
}

// axCases are calls in which something depends on part of the index space.
var axCases = []struct {
	name   string
	layout string
	fn     any
	args   func() []any
	tables []string // what is computed once for what, where all tables pay
}{
	{"mesh of generators", "", dist, func() []any {
		lon, lat := MeshGrid(Linspace(99, 101, 9), Linspace(29, 31, 7))
		return []any{lat, lon, 30.0, 101.0, 1.0}
	}, []string{"per row", "per row", "per column"}},
	{"rows and columns in memory", "", dist, func() []any {
		return []any{axes(7, 1), axes(9), 30.0, 101.0, 1.0}
	}, []string{"per row", "per row", "per column"}},
	{"backwards, every other", "", dist, func() []any {
		return []any{axes(14, 1).Slice(0, 13, -15, -2), axes(9).Slice(0, 8, -10, -1), 30.0, 101.0, 1.0}
	}, []string{"per row", "per row", "per column"}},
	{"a mesh in memory", "", dist, func() []any {
		return []any{axes(7, 9), axes(7, 9), 30.0, 101.0, 1.0}
	}, []string{"per call"}},
	{"numbers for the rows, an axis of counts", "", axWave, func() []any {
		return []any{Arange(6).Reshape(6, 1), Full(0.25, 6, 5), axes(5)}
	}, nil},
	{"three axes", "", axWave, func() []any {
		return []any{axes(3, 1, 1), axes(4, 1), axes(5)}
	}, []string{"per index of dimensions 0, 1", "per index of dimensions 1, 2"}},
	{"an outer axis alone", "", axWave, func() []any {
		return []any{axes(3, 1, 1), axes(3, 4, 5), axes(3, 4, 5)}
	}, []string{"per index of dimension 0"}},
	{"an axis in the middle", "", axWave, func() []any {
		return []any{axes(3, 4, 5), axes(4, 1), axes(3, 4, 5)}
	}, []string{"per index of dimension 1"}},
	{"dimensions of size 1", "", dist, func() []any {
		return []any{axes(1, 7, 1, 1), axes(1, 1, 1, 9), axes(1, 1), 101.0, 1.0}
	}, []string{"per row", "per row", "per column"}},
	{"float32", "", axNarrow, func() []any {
		return []any{axes(7, 1).As(Float32), axes(9).As(Float32), Arange(9).As(Int32)}
	}, nil},
	{"integers", "", axHash, func() []any {
		return []any{Arange(7).Reshape(7, 1).As(Uint32), Arange(9).As(Uint32), 5}
	}, []string{"per row"}},
	{"a bool", "", axFlag, func() []any { return []any{axes(7, 1), axes(7, 9)} }, []string{"per row"}},
	{"nothing in the way of a sine", "", axDivides, func() []any {
		return []any{axes(7, 1), Arange(9).As(Int64), Full(3, 7, 9).As(Int64)}
	}, []string{"per row"}},
	{"no workers", "", dist, func() []any { return []any{axes(7, 1), Zeros(0), 30.0, 101.0, 1.0} }, nil},
	{"one worker", "", dist, func() []any { return []any{axes(1), axes(1, 1), 30.0, 101.0, 1.0} }, nil},
	{"a loop", "", axSteps, func() []any { return []any{axes(7, 1), axes(9), 5} }, []string{"per row"}},
	{"a gufunc", "(n),()->(n)", axRows, func() []any { return []any{axes(2, 70), axes(2)} }, []string{"per row"}},
	{"iterations", "(m,n)->(m,n)", axCounts, func() []any { return []any{axes(9, 11)} }, []string{"per row"}},
}

// axes are numbers of the given shape in memory.
func axes(dims ...int) *Array {
	a := Zeros(dims...)
	for i := range a.Size() {
		a.store.setBits(i, ir.FromF64(0.1+float64(0.37*float64(i))))
	}
	return a
}

func (d *Device) axCall(layout string, fn any, args []any) (*Array, error) {
	if layout != "" {
		return d.GUVectorize(fn, layout, args...)
	}
	return d.Vectorize(fn, args...)
}

// TestTablesSameBits: whatever is computed in tables, the bits are those without any.
func TestTablesSameBits(t *testing.T) {
	eachKind(t, func(t *testing.T, d *Device) {
		for _, c := range axCases {
			args := c.args()
			var want, got, there *Array
			withPays(never, func() { want = Must(d.axCall(c.layout, c.fn, args)) })
			withPays(always, func() {
				got = Must(d.axCall(c.layout, c.fn, args))
				for i, x := range args {
					if a, ok := x.(*Array); ok {
						args[i] = Must(d.Put(a))
					}
				}
				there = Must(d.axCall(c.layout, c.fn, args))
			})
			for _, a := range []*Array{got, there.Host()} {
				if !slices.Equal(a.shape, want.shape) || digest(a) != digest(want) {
					t.Errorf("%s: %v\nwithout tables %v", c.name, a, want)
				}
			}
		}
	})
}

// tablesAgree compares the results of functions of rows and columns with Go's
// where all tables pay.
func (b *batch) tablesAgree(t *testing.T, d *Device, r *rand.Rand) {
	withPays(always, func() {
		for i, f := range b.funcs {
			if f.height > 0 && (d.gpu == nil || i%4 == 0) { // code for a GPU takes its time
				f.tableAgrees(t, d, r)
			}
		}
	})
}

// TestExplainTables: the plan says what is computed how often.
func TestExplainTables(t *testing.T) {
	eachKind(t, func(t *testing.T, d *Device) {
		for _, c := range axCases {
			if c.tables == nil {
				continue
			}
			var p *Plan
			var err error
			withPays(func(on ir.Axes, _ int) bool { return on != 0 || c.tables[0] == "per call" }, func() {
				if c.layout != "" {
					p, err = d.ExplainGU(c.fn, c.layout, c.args()...)
				} else {
					p, err = d.Explain(c.fn, c.args()...)
				}
			})
			if err != nil {
				t.Fatal(c.name, err)
			}
			var along []string
			for _, x := range p.Tables {
				along = append(along, x.Along)
				if x.Of != p.Workers || x.Times >= x.Of || x.Times < 1 || !strings.HasSuffix(strings.Split(x.Pos, ":")[0], ".go") {
					t.Errorf("%s: %v of %d workers", c.name, x, p.Workers)
				}
			}
			if !slices.Equal(along, c.tables) {
				t.Errorf("%s: %v, want %q\n%v", c.name, p.Tables, c.tables, p.IR)
			}
		}
	})
	lon, lat := MeshGrid(Linspace(99, 101, 300), Linspace(29, 31, 200))
	p, err := quadro(t).Explain(dist, lat, lon, 30.0, 101.0, 1.0)
	if err != nil {
		t.Fatal(err)
	}
	text := regexp.MustCompile(`:\d+:\d+,`).ReplaceAllString(p.String(), ":line:col,")
	for _, want := range []string{
		"computed once    conformance_test.go:line:col, per row: 200 times instead of 60000\n",
		"computed once    conformance_test.go:line:col, per column: 300 times instead of 60000\n",
		"\ndist (per column)\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the plan does not say %q:\n%s", want, text)
		}
	}
	if !strings.Contains(p.HTML(), "per column: 300 times") {
		t.Error(p.HTML())
	}
}

// TestTablesAnew: tables are of the numbers of the call and of how its arguments
// are walked, not of an earlier one.
func TestTablesAnew(t *testing.T) {
	eachKind(t, func(t *testing.T, d *Device) {
		for _, pays := range []func(ir.Axes, int) bool{always, nil} {
			for k := range 4 {
				x, y := axes(70, 1), axes(80)
				for i := range 70 {
					x.store.setBits(i, ir.FromF64(float64(i*(k+1))/100))
				}
				args := []any{x, y, float64(k) / 3, 101.0, 1.0}
				if k == 3 {
					args[0], args[1] = y, x
				}
				var got, want *Array
				withPays(pays, func() { got = Must(d.Vectorize(dist, args...)) })
				withPays(never, func() { want = Must(d.Vectorize(dist, args...)) })
				if digest(got) != digest(want) {
					t.Errorf("call %d differs", k)
				}
			}
		}
	})
}

// TestTablesWhereTheyFail: the worker that fails, and why, do not depend on tables;
// tables cannot fail themselves.
func TestTablesWhereTheyFail(t *testing.T) {
	eachKind(t, func(t *testing.T, d *Device) {
		b := Full(3, 7, 9).As(Int64).copy()
		b.store.setBits(40, 0)
		b.store.setBits(31, 0)
		zero := Zeros(7, 1).As(Int64)
		for _, args := range [][]any{
			{axes(7, 1), Arange(9).As(Int64), b},
			{axes(9), zero, zero},
		} {
			var got, want error
			withPays(never, func() { _, want = d.Vectorize(axDivides, args...) })
			withPays(always, func() { _, got = d.Vectorize(axDivides, args...) })
			if want == nil || got == nil || got.Error() != want.Error() {
				t.Errorf("%v\nwithout tables %v", got, want)
			}
			withPays(always, func() {
				if _, err := d.Vectorize(axDivides, axes(7, 1), 4, 2); err != nil {
					t.Error(err)
				}
			})
		}
	})
}

// TestTablesPay: a user's calls have tables where they save much, and none where
// they would cost more than they save.
func TestTablesPay(t *testing.T) {
	mesh := func(n, m int) []any {
		lon, lat := MeshGrid(Linspace(99, 101, m), Linspace(29, 31, n))
		return []any{lat, lon, 30.0, 101.0, 1.0}
	}
	many := []any{Linspace(0, 1, 60).Reshape(60, 1, 1), Linspace(0, 1, 50).Reshape(50, 1), Linspace(0, 1, 40)}
	for _, c := range []struct {
		device string
		fn     any
		args   []any
		want   string
	}{
		{"sim:quadro-k2000", dist, mesh(3, 4), "[]"},
		{"sim:quadro-k2000", dist, mesh(200, 200), "[per row per row per column]"},
		{"sim:quadro-k2000", dist, mesh(2, 20000), "[per row per row]"},
		{"sim:quadro-k2000", product, mesh(300, 300)[:2], "[]"},
		{"sim:h200", dist, mesh(200, 200), "[]"},
		{"sim:h200", dist, mesh(2000, 2000), "[per row per row per column]"},
		{"cpu", dist, mesh(3, 4), "[]"},
		{"portable", dist, mesh(1000, 1000), "[]"}, // the engine does it
		{"avx2", dist, mesh(1000, 1000), "[per row per row per column]"},
		{"avx512", dist, mesh(1000, 1000), "[per row per row per column]"},
		{"portable", dist, mesh(1000, 20), "[per row per row per column]"},
		{"cpu", dist, mesh(1000, 20), "[per row per row per column]"},
		{"cpu", axWave, many, "[per index of dimensions 0, 1 per index of dimensions 1, 2]"},
		{"cpu", product, mesh(1000, 20)[:2], "[]"},
	} {
		var d *Device
		switch i := slices.IndexFunc(engines, func(e testedEngine) bool { return e.name == c.device }); {
		case i >= 0:
			d = engines[i].open()
		case slices.Contains([]string{"portable", "avx2", "avx512"}, c.device):
			continue // TestEnginesOfThisMachine says so
		default:
			d = MustOpen(c.device)
		}
		p, err := d.Explain(c.fn, c.args...)
		if err != nil {
			t.Fatal(err)
		}
		var along []string
		for _, x := range p.Tables {
			along = append(along, x.Along)
		}
		if got := fmt.Sprint(along); got != c.want {
			t.Errorf("%s on %s, %v workers: %v, want %v", p.Func, c.device, p.LoopDims, p.Tables, c.want)
		}
		d.Close()
	}
}

// TestTablesOfSmallCalls: a call that is too small for tables allocates nothing to
// find that out.
func TestTablesOfSmallCalls(t *testing.T) {
	eachKind(t, func(t *testing.T, d *Device) {
		x := Linspace(0, 1, 10)
		c, err := d.spread("Vectorize", dist, nil, 1, []any{x, x.Reshape(10, 1), 30.0, 101.0, 1.0})
		if err != nil {
			t.Fatal(err)
		}
		stages, err := c.stages(d)
		if err != nil || len(stages) != 1 {
			t.Fatal(stages, err)
		}
		if n := testing.AllocsPerRun(100, func() { c.withTables(d, stages) }); n != 0 {
			t.Errorf("%v allocations", n)
		}
	})
}

// TestTablesOnTheCard: the launches of tables are in the trace, a mesh takes half of
// the instructions that arrays do, and nothing stays in the memory of the card.
func TestTablesOnTheCard(t *testing.T) {
	d := quadro(t)
	count := func(lat, lon *Array) (names []string, instructions int64) {
		d.StartTrace()
		Must(d.Vectorize(dist, lat, lon, 30.0, 101.0, 1.0))
		for _, r := range d.StopTrace().Records {
			if n := r.Counters["warp instructions"]; n > 0 {
				names = append(names, r.Name)
				instructions += n
			}
		}
		return names, instructions
	}
	lon, lat := MeshGrid(Linspace(99, 101, 200), Linspace(29, 31, 200))
	names, mesh := count(lat, lon)
	same(t, "launches", names, []string{"dist (per row)", "dist (per column)", "dist"})
	_, arrays := count(lat.copy(), lon.copy())
	if arrays < 2*mesh {
		t.Errorf("%d warp instructions from generators, %d from arrays", mesh, arrays)
	}
	t.Logf("%d warp instructions from generators, %d from arrays: %.2f times", mesh, arrays, float64(arrays)/float64(mesh))
	if live := len(d.gpu.pool.live); live != 0 {
		t.Errorf("%d blocks of memory are held after the calls", live)
	}
}

func BenchmarkMesh(b *testing.B) {
	d := MustOpen("cpu")
	lon, lat := MeshGrid(Linspace(99, 101, 1000), Linspace(29, 31, 1000))
	x, y, z := Linspace(0, 1, 200).Reshape(200, 1, 1), Linspace(0, 1, 100).Reshape(100, 1), Linspace(0, 1, 40)
	for _, c := range []struct {
		name string
		fn   any
		args []any
	}{
		{"distance/generators", dist, []any{lat, lon, 30.0, 101.0, 1.0}},
		{"distance/arrays", dist, []any{lat.copy(), lon.copy(), 30.0, 101.0, 1.0}},
		{"threeAxes", axWave, []any{x, y, z}},
	} {
		for name, pays := range map[string]func(ir.Axes, int) bool{"": nil, "/noTables": never} {
			b.Run(c.name+name, func(b *testing.B) {
				withPays(pays, func() {
					for b.Loop() {
						Must(d.Vectorize(c.fn, c.args...))
					}
				})
			})
		}
	}
}

func sevenOver(x int, y float64) int { return (7 + int(math.Sin(y))) / x }

// The numbers of an error are right where one is of a table and the result overwrites
// an argument.
func TestFaultOfATableInPlace(t *testing.T) {
	for _, name := range []string{"cpu", "sim:quadro-k2000"} {
		d := MustOpen(name)
		defer d.Close()
		values := make([]int, 1025*1024)
		for i := range values {
			values[i] = 1
		}
		values[10*1024+5] = 0
		a := FromFlat(values, 1025, 1024)
		y := FromSlice(Linspace(0, 1, 1024).Float64s())
		_, err := d.Vectorize(sevenOver, a.Slice(0, 0, 1024, 1), y, Out(a.Slice(0, 1, 1025, 1)))
		if err == nil || !strings.Contains(err.Error(), "7 / 0") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
