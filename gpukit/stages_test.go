package gpukit

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"gpunotes/gpukit/host"
	"gpunotes/gpukit/internal/cpu"
	"gpunotes/gpukit/internal/ir"
	"gpunotes/gpukit/internal/shape"
	"gpunotes/gpukit/trace"
)

// Functions with loops. TestStages compares each with itself under
// OneWorkerPerSlice.

func rowSums(x [][]float64, out []float64) {
	for i := range x {
		s := 0.0
		for j := range x[i] {
			s += x[i][j]
		}
		out[i] = s
	}
}

func prefix(x, out []float64) {
	out[0] = x[0]
	for i := 1; i < len(x); i++ {
		out[i] = out[i-1] + x[i]
	}
}

func addOnto(x []float64, y float64, out []float64) {
	for i := range x {
		out[i] += x[i] + y
	}
}

func twoLoops(x, lo, hi []float64) {
	for i := range x {
		lo[i] = x[i] - 1
	}
	for i := range x {
		hi[i] = lo[i] + float64(2*x[len(x)-1-i])
	}
}

func stencil5(x, out [][]float64) {
	for i := 1; i < len(x)-1; i++ {
		for j := 1; j < len(x[i])-1; j++ {
			out[i][j] = 0.25 * (x[i-1][j] + x[i+1][j] + x[i][j-1] + x[i][j+1])
		}
	}
}

func swapAxes(x, out [][]float64) {
	for i := range x {
		for j := range x[i] {
			out[j][i] = x[i][j] + float64(i) - float64(100*j)
		}
	}
}

func evenOnly(x, out []float64) {
	for i := 0; i < len(x); i += 2 {
		if x[i] > 0 {
			out[i] = math.Sqrt(x[i])
		}
	}
}

func reversing(x, out []float64) {
	for i := len(x) - 1; i >= 0; i-- {
		out[len(x)-1-i] = x[i] * float64(i)
	}
}

func boundedBy(x []float64, n int, out []float64) {
	for i := 0; i < n; i++ {
		out[i] = x[i] + 1
	}
}

func gathers(x []float64, at []int64, out []float64) {
	for i := range at {
		out[i] = x[int(at[i])]
	}
}

func quotients(a, b []int64, out []int64) {
	for i := range a {
		out[i] = a[i] / b[i]
	}
}

func scatters(x []float64, at []int64, out []float64) {
	for i := range at {
		out[int(at[i])] = x[i]
	}
}

func halves(x, out []float64) {
	n := len(x) / 2
	for i := 0; i < n; i++ {
		out[i] = x[i] + x[n+i]
		out[n+i] = x[i] - x[n+i]
	}
}

func remembers(x, out []float64) {
	var last [2]float64
	for i := range x {
		out[i] = x[i] - last[i&1]
		last[i&1] = x[i]
	}
}

func narrow(x []float32, s int8, out []float32) {
	for i := int32(0); i < int32(len(x)); i++ {
		out[i] = float32(x[i]*float32(s)) + float32(i)
	}
}

func cube(x [][][]float64, w []float64, out [][][]float64) {
	for i := range x {
		for j := range x[i] {
			for k := range x[i][j] {
				out[i][j][k] = float64(x[i][j][k]*w[k]) - w[j%len(w)]
			}
		}
	}
}

func writtenAndRead(x, lo, hi []float64) {
	for i := range x {
		lo[i] = x[i] - 1
		hi[i] = 2 * lo[i]
	}
}

// signed are axes of which every third is negative.
func signed(dims ...int) *Array {
	a := axes(dims...)
	for i := 0; i < a.Size(); i += 3 {
		a.store.setBits(i, ir.FromF64(-a.Float64s()[i]))
	}
	return a
}

// ofSome are arrays of other layouts with the same elements.
func ofSome(a *Array) map[string]*Array {
	n := a.NDim()
	views := map[string]*Array{"contiguous": a}
	if n == 0 {
		return views
	}
	wide := Zeros(append(append([]int{}, a.shape[:n-1]...), 2*a.shape[n-1]+1)...).As(a.DType())
	strided := wide.Slice(n-1, 1, 2*a.shape[n-1]+1, 2)
	back := make([]int, n)
	for i := range back {
		back[i] = a.shape[n-1-i]
	}
	transposed := Zeros(back...).As(a.DType()).T()
	reversed := Zeros(a.shape...).As(a.DType())
	if a.shape[0] > 0 {
		reversed = reversed.Slice(0, a.shape[0]-1, -a.shape[0]-1, -1)
	}
	for name, v := range map[string]*Array{"strided": strided, "transposed": transposed, "reversed": reversed} {
		k := 0
		shape.Each(v.shape, v.strides, v.offset, func(at int) {
			v.store.setBits(at, a.At1(k))
			k++
		})
		views[name] = v
	}
	return views
}

// At1 is element k in C order.
func (a *Array) At1(k int) ir.Bits {
	at := a.offset
	for d := len(a.shape) - 1; d >= 0; d-- {
		at += k % a.shape[d] * a.strides[d]
		k /= a.shape[d]
	}
	return a.store.bits(at)
}

var stageCases = []struct {
	name   string
	fn     any
	layout string
	args   func(n int) []any
	given  bool // also with Out
	// serial are the loops that no form takes.
	serial int
	fails  bool
}{
	{"t14", cVestDiscount14, "(),(m,o),(n,m,o),(),()->(n,m,o)", func(n int) []any {
		return []any{n, axes(n, 3), axes(n, n, 3), 3, n}
	}, true, 0, false},
	{"t14, a slice left out", cVestDiscount14, "(),(m,o),(n,m,o),(),()->(n,m,o)", func(n int) []any {
		return []any{n / 2, axes(n, 3), axes(n, n, 3), 2, n}
	}, true, 0, false},
	{"t14, out of range", cVestDiscount14, "(),(m,o),(n,m,o),(),()->(n,m,o)", func(n int) []any {
		return []any{n + 1, axes(n, 3), axes(2, n, n, 3), 3, n}
	}, false, 0, true},
	{"t14, other numbers for other workers", cVestDiscount14, "(),(m,o),(n,m,o),(),()->(n,m,o)", func(n int) []any {
		return []any{[]int64{int64(n), 1, 0}, axes(n, 3), axes(n, n, 3), 3, n}
	}, true, 1, false},
	{"t16", cVestDiscount16, "(m,o),(m,o),(),()->(m,o)", func(n int) []any {
		return []any{axes(n, 4), axes(5, n, 4), 4, n}
	}, true, 0, false},
	{"t17", cVestDiscount17, "(),(o),(m,o),()->(m,o)", func(n int) []any {
		return []any{n, axes(6), axes(7, n, 6), 6}
	}, true, 0, false},
	{"row sums", rowSums, "(m,n)->(m)", func(n int) []any { return []any{axes(3, n, 5)} }, true, 1, false},
	{"matmul", matmul, "(m,n),(n,p)->(m,p)", func(n int) []any { return []any{axes(2, n, 4), axes(4, 6)} }, true, 1, false},
	{"prefix", prefix, "(n)->(n)", func(n int) []any { return []any{axes(3, n+1)} }, true, 1, false},
	{"in and out", addOnto, "(n),()->(n)", func(n int) []any { return []any{axes(n), axes(3)} }, true, 0, false},
	{"two loops", twoLoops, "(n)->(n),(n)", func(n int) []any { return []any{axes(2, n)} }, false, 0, false},
	{"stencil", stencil5, "(m,n)->(m,n)", func(n int) []any { return []any{axes(n, n+2)} }, true, 0, false},
	{"swapped", swapAxes, "(m,n)->(n,m)", func(n int) []any { return []any{axes(2, n, 5)} }, true, 0, false},
	{"even", evenOnly, "(n)->(n)", func(n int) []any { return []any{signed(3, n)} }, true, 0, false},
	{"written and read", writtenAndRead, "(n)->(n),(n)", func(n int) []any { return []any{axes(2, n)} }, false, 0, false},
	{"reversed", reversing, "(n)->(n)", func(n int) []any { return []any{axes(n)} }, true, 0, false},
	{"bound", boundedBy, "(n),()->(n)", func(n int) []any { return []any{axes(3, n), n} }, true, 0, false},
	{"a bound for each worker", boundedBy, "(n),()->(n)", func(n int) []any { return []any{axes(n), []int64{int64(n), 0, int64(n) / 2}} }, true, 1, false},
	{"bound too large", boundedBy, "(n),()->(n)", func(n int) []any { return []any{axes(3, n), n + 1} }, false, 0, true},
	{"gather", gathers, "(n),(k)->(k)", func(n int) []any { return []any{axes(3, n+1), Arange(n).As(Int64)} }, true, 0, false},
	{"gather out of range", gathers, "(n),(k)->(k)", func(n int) []any {
		return []any{axes(3, n+1), FromSlice([][]int64{{0, 0}, {0, int64(n) + 7}, {-1, 0}})}
	}, false, 0, true},
	{"division", quotients, "(n),(n)->(n)", func(n int) []any {
		b := Arange(3*n).Reshape(3, n).As(Int64).copy()
		if n > 0 {
			b.store.setBits(0, 5)
		}
		return []any{Arange(n).As(Int64), b}
	}, true, 0, false},
	{"division by zero", quotients, "(n),(n)->(n)", func(n int) []any {
		b := Full(1, 3, n+2).As(Int64).copy()
		b.store.setBits(2*(n+2), 0)
		b.store.setBits(2*(n+2)-1, 0)
		return []any{Arange(n + 2).As(Int64).copy(), b}
	}, true, 0, true},
	{"scatter", scatters, "(n),(n)->(n)", func(n int) []any { return []any{axes(2, n), Zeros(n).As(Int64)} }, true, 1, false},
	{"halves", halves, "(n)->(n)", func(n int) []any { return []any{axes(3, 2*n)} }, true, 0, false},
	{"a local array that keeps its values", remembers, "(n)->(n)", func(n int) []any { return []any{axes(3, n)} }, true, 1, false},
	{"float32", narrow, "(n),()->(n)", func(n int) []any { return []any{axes(3, n).As(Float32), 3} }, true, 0, false},
	{"cube", cube, "(i,j,k),(k)->(i,j,k)", func(n int) []any { return []any{axes(n, 3, 4), axes(4)} }, true, 0, false},
	{"generated", cVestDiscount16, "(m,o),(m,o),(),()->(m,o)", func(n int) []any {
		return []any{Arange(n*4).Reshape(n, 4), Linspace(0, 1, 5*n*4).Reshape(5, n, 4), 4, n}
	}, true, 0, false},
}

// TestStages: with loops as workers a call has the bits, and the errors, that it has
// with one worker for each slice, on arrays of every layout.
func TestStages(t *testing.T) {
	eachEngine(t, func(t *testing.T, d *Device) {
		plain := d.With(OneWorkerPerSlice())
		for _, c := range stageCases {
			for _, n := range []int{0, 1, 40, 7} {
				views := []string{"contiguous"}
				switch {
				case n == 7:
					views = []string{"contiguous", "strided", "transposed", "reversed"}
				case n == 40 && (d.gpu != nil || d.name == "reference"):
					continue // blocks of workers end elsewhere
				}
				for _, view := range views {
					for _, given := range []bool{false, true} {
						if given && !c.given {
							continue
						}
						name := fmt.Sprintf("%s, %d, %s, Out %v", c.name, n, view, given)
						run := func(d *Device) ([]string, string) {
							args := c.args(n)
							for i, x := range args {
								if a, ok := x.(*Array); ok && inMemory(a.store) {
									args[i] = cmpOr(ofSome(a)[view], a)
								}
							}
							return outcomes(d, c.fn, c.layout, args, given, view)
						}
						want, wantErr := run(plain)
						got, gotErr := run(d)
						if !slices.Equal(got, want) || gotErr != wantErr {
							t.Errorf("%s: %s %s\none worker per slice %s %s", name, got, gotErr, want, wantErr)
						}
						if n > 2 && (wantErr != "") != c.fails {
							t.Errorf("%s: error %q", name, wantErr)
						}
					}
				}
			}
		}
	})
}

func cmpOr(a, b *Array) *Array {
	if a != nil {
		return a
	}
	return b
}

// outcomes are digests of the results of a call, and its error. Results that are
// given hold numbers before.
func outcomes(d *Device, fn any, layout string, args []any, given bool, view string) (digests []string, err string) {
	l, e := shape.ParseLayout(layout, -1, -1)
	if e != nil {
		return nil, e.Error()
	}
	var outs []*Array
	if len(l.Out) > 1 || given {
		p, e := d.spread("GUVectorize", fn, &layout, len(l.Out), args)
		if e != nil {
			return nil, e.Error()
		}
		for i := range p.outs {
			o := Zeros(p.outs[i].array.shape...).As(p.outs[i].array.DType())
			for k := range o.Size() {
				o.store.setBits(k, ir.Convert(o.DType().ir(), ir.F64, ir.FromF64(float64(k%5))))
			}
			outs = append(outs, cmpOr(ofSome(o)[view], o))
		}
		args = append(args, Out(outs...))
	}
	z, e := d.GUVectorize(fn, layout, args...)
	if e != nil {
		return nil, e.Error()
	}
	if outs == nil {
		outs = []*Array{z}
	}
	for _, o := range outs {
		digests = append(digests, fmt.Sprint(o.shape, digest(o)))
	}
	return digests, ""
}

// TestStagesTaken: the loops that are workers are those that can be, and none are
// with OneWorkerPerSlice.
func TestStagesTaken(t *testing.T) {
	eachKind(t, func(t *testing.T, d *Device) {
		for _, c := range stageCases {
			args := c.args(7)
			p, err := d.ExplainGU(c.fn, c.layout, args...)
			if l, _ := shape.ParseLayout(c.layout, -1, -1); len(l.Out) > 1 {
				o := Out(Zeros(2, 7), Zeros(2, 7))
				args = append(args, o)
				p, err = d.ExplainGU(c.fn, c.layout, args...)
			}
			if err != nil {
				t.Fatal(c.name, err)
			}
			serial, calls := 0, 1
			for _, l := range p.Loops {
				if !l.Taken {
					serial++
				}
			}
			for _, n := range p.LoopDims {
				calls *= n
			}
			if serial != c.serial && !c.fails || len(p.Loops) == 0 || serial < len(p.Loops) && p.Workers < calls {
				t.Errorf("%s: %d loops are serial, want %d\n%v", c.name, serial, c.serial, p)
			}
			q, err := d.With(OneWorkerPerSlice()).ExplainGU(c.fn, c.layout, args...)
			if err != nil || q.Workers != calls || slices.ContainsFunc(q.Loops, func(l PlanLoop) bool { return l.Taken }) {
				t.Errorf("%s with OneWorkerPerSlice: %v\n%v", c.name, err, q)
			}
		}
	})
}

// TestStagesOnce: the stages of a call are launches of their own, but copies are made
// once.
func TestStagesOnce(t *testing.T) {
	eachKind(t, func(t *testing.T, d *Device) {
		d.StartTrace()
		_, _, err := d.GUVectorize2(twoLoops, "(n)->(n),(n)", axes(50))
		var names []string
		copies := map[trace.Kind]int{}
		for _, r := range d.StopTrace().Records {
			if copies[r.Kind]++; r.Kind == trace.Launch {
				names = append(names, r.Name)
			}
		}
		if err != nil || !slices.Equal(names, []string{"twoLoops", "twoLoops (stage 2)"}) {
			t.Errorf("%q, %v", names, err)
		}
		if d.gpu != nil && (copies[trace.HtoD] != 1 || copies[trace.DtoH] != 2) {
			t.Errorf("copies: %v", copies)
		}
	})
}

// TestStagesStopped: Stop ends a call between its stages and within them.
func TestStagesStopped(t *testing.T) {
	for _, name := range []string{"cpu", "parallel", "sim:quadro-k2000"} {
		d := MustOpen(name)
		x := axes(1 << 16)
		for after := range 3 {
			var polls atomic.Int64
			restore := attach(func() bool { return polls.Add(1) > int64(after) })
			_, _, err := d.GUVectorize2(twoLoops, "(n)->(n),(n)", x)
			restore()
			if !errors.Is(err, ErrInterrupted) {
				t.Errorf("%s, after %d polls: %v", name, after, err)
			}
			if lo, _, err := d.GUVectorize2(twoLoops, "(n)->(n),(n)", []float64{1, 2}); err != nil || lo.At(1) != 1 {
				t.Errorf("%s, the next call: %v, %v", name, lo, err)
			}
		}
		d.Close()
	}
}

// TestStagesTogether: calls with and without the option at the same time.
func TestStagesTogether(t *testing.T) {
	eachKind(t, func(t *testing.T, d *Device) {
		var wg sync.WaitGroup
		x, y := axes(30, 20), axes(5, 30, 20)
		want := digest(Must(MustOpen("cpu").With(OneWorkerPerSlice()).GUVectorize(cVestDiscount16, "(m,o),(m,o),(),()->(m,o)", x, y, 20, 30)))
		for k := range 8 {
			e := d
			if k%2 == 0 {
				e = d.With(OneWorkerPerSlice())
			}
			wg.Go(func() {
				for range 5 {
					z, err := e.GUVectorize(cVestDiscount16, "(m,o),(m,o),(),()->(m,o)", x, y, 20, 30)
					if err != nil || digest(z) != want {
						t.Error(z, err)
					}
				}
			})
		}
		wg.Wait()
	})
}

// TestAsker: the thread's programs as they are do the work of the best that can be
// written.
func TestAsker(t *testing.T) {
	d := quadro(t)
	const rows, cols = 20, 200
	multBy, discount := axes(cols, 5), axes(rows, cols, 5)
	count := func(run func() (*Array, error)) (instructions, bursts int64) {
		d.StartTrace()
		if _, err := run(); err != nil {
			t.Fatal(err)
		}
		for _, r := range d.StopTrace().Records {
			instructions += r.Counters["warp instructions"]
			bursts += r.Counters["DRAM bursts"]
		}
		return instructions, bursts
	}
	for name, pair := range map[string][2]func() (*Array, error){
		"t14": {func() (*Array, error) {
			return d.GUVectorize(cVestDiscount14, "(),(m,o),(n,m,o),(),()->(n,m,o)", rows, multBy, discount, 5, cols)
		}, func() (*Array, error) { return d.Vectorize(product, multBy, discount) }},
		"t16": {func() (*Array, error) {
			return d.GUVectorize(cVestDiscount16, "(m,o),(m,o),(),()->(m,o)", multBy, discount, 5, cols)
		}, func() (*Array, error) { return d.Vectorize(product, multBy, discount) }},
		"t17": {func() (*Array, error) {
			return d.GUVectorize(cVestDiscount17, "(),(o),(m,o),()->(m,o)", rows, multBy, discount.Reshape(cols, rows, 5), 5)
		}, func() (*Array, error) {
			return d.Vectorize(product, multBy.Reshape(cols, 1, 5), discount.Reshape(cols, rows, 5))
		}},
	} {
		i, b := count(pair[0])
		wi, wb := count(pair[1])
		t.Logf("%s: %d warp instructions, %d DRAM bursts; Vectorize %d, %d", name, i, b, wi, wb)
		if i == 0 || b == 0 || 10*i > 11*wi || 10*b > 11*wb {
			t.Errorf("%s: %d warp instructions, %d DRAM bursts; Vectorize %d, %d", name, i, b, wi, wb)
		}
	}
	p, err := d.ExplainGU(cVestDiscount14, "(),(m,o),(n,m,o),(),()->(n,m,o)", 100, Arange(20000).Reshape(4000, 5), Arange(2000000).Reshape(100, 4000, 5), 5, 4000)
	if err != nil || p.Workers != 2000000 || p.Grid.X*p.Block.X < 2000000 {
		t.Errorf("%v\n%v", err, p)
	}
}

// TestExplainLoops: a plan names each loop, and what to write where an option keeps
// them serial.
func TestExplainLoops(t *testing.T) {
	place := func(s string) string { return positions.ReplaceAllString(s, "file.go:line:col") }
	for _, c := range []struct {
		fn      any
		layout  string
		args    []any
		loops   []string
		instead string
	}{
		{cVestDiscount14, "(),(m,o),(n,m,o),(),()->(n,m,o)", []any{4, axes(3, 5), axes(4, 3, 5), 5, 3}, []string{
			"at file.go:line:col: taken: dimension 0 of the index space, 4 iterations",
			"at file.go:line:col: taken: dimension 1 of the index space, 3 iterations",
			"at file.go:line:col: taken: dimension 2 of the index space, 5 iterations",
		}, "func eachCVestDiscount14(multBy, discount float64) float64 {\n\treturn multBy * discount\n}\ngpu.Vectorize(eachCVestDiscount14, multBy, discount)"},
		{rowSums, "(m,n)->(m)", []any{axes(2000, 3)}, []string{
			"at file.go:line:col: taken: dimension 0 of the index space, 2000 iterations",
			"at file.go:line:col: serial: a sum, kept in order",
		}, "// in rowSums leave out the loop at file.go:line:col, and give x one [] and one index less, out the index 0\ngpu.GUVectorize(rowSums, \"(n)->()\", x)"},
		{matmul, "(m,n),(n,p)->(m,p)", []any{axes(4, 3), axes(3, 6)}, []string{
			"at file.go:line:col: taken: dimension 0 of the index space, 4 iterations",
			"at file.go:line:col: taken: dimension 1 of the index space, 6 iterations",
			"at file.go:line:col: serial: a sum, kept in order",
		}, "// in matmul leave out the loop at file.go:line:col, and give a one [] and one index less, out one [] and one index less\ngpu.GUVectorize(matmul, \"(n),(n,p)->(p)\", a, b)"},
		{prefix, "(n)->(n)", []any{axes(2, 9)}, []string{
			"at file.go:line:col: serial: element out[i-1], written in the iteration before, is read here (file.go:line:col and file.go:line:col)",
		}, ""},
		{cVestDiscount14, "(),(m,o),(n,m,o),(),()->(n,m,o)", []any{0, axes(3, 5), axes(4, 3, 5), 5, 3}, []string{
			"at file.go:line:col: serial: it has no iterations",
			"at file.go:line:col: serial: it has no iterations",
			"at file.go:line:col: serial: it has no iterations",
		}, ""},
	} {
		d := MustOpen("cpu")
		p, err := d.ExplainGU(c.fn, c.layout, c.args...)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, l := range p.Loops {
			got = append(got, place(l.String()))
		}
		if !slices.Equal(got, c.loops) {
			t.Errorf("%s: %q\nwant %q", p.Func, got, c.loops)
		}
		if p.Instead != "" {
			t.Errorf("%s: %q though the loops are taken", p.Func, p.Instead)
		}
		q, err := d.With(OneWorkerPerSlice()).ExplainGU(c.fn, c.layout, c.args...)
		if err != nil || place(q.Instead) != c.instead {
			t.Errorf("%s: %v\n%s\nwant\n%s", p.Func, err, q.Instead, c.instead)
		}
		for _, l := range p.Loops {
			if !strings.Contains(p.String(), "loop             "+l.String()+"\n") || !strings.Contains(p.HTML(), strings.ReplaceAll(l.String(), "'", "&#39;")) {
				t.Errorf("%s: the plan does not show %s", p.Func, l)
			}
		}
	}
}

var positions = regexp.MustCompile(`[a-z_]+\.go:\d+:\d+`)

// attach has the notebook ask stop whether to stop.
func attach(stop func() bool) (restore func()) {
	old := host.Current()
	host.Attach(host.Host{Interrupted: stop})
	return func() { host.Attach(old) }
}

// into adds up in memory, so its loop stays serial.
func into(x []float64, n int, out []float64) {
	for i := 0; i < n; i++ {
		out[0] += x[i]
	}
}

// TestSizesDecide: checks of indices that only sizes and numbers decide are made
// before the call, and by the workers where that fails, or the numbers differ.
func TestSizesDecide(t *testing.T) {
	eachKind(t, func(t *testing.T, d *Device) {
		checks := func(p *Plan, err error) bool {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
			return strings.Contains(p.IR, "bounds")
		}
		x := axes(2, 9)
		gu := func(n any) (*Plan, error) { return d.ExplainGU(into, "(n),()->()", x, n) }
		if checks(gu(9)) || checks(gu([]int64{3})) || !checks(gu(10)) || !checks(gu([]int64{3, 4})) {
			t.Error("GUVectorize: checks where none are needed, or none where they are")
		}
		want := axes(2, 9).Float64s()
		z := Must(d.GUVectorize(into, "(n),()->()", x, []int64{3, 4}))
		if got := z.Float64s(); got[0] != want[0]+want[1]+want[2] || got[1] != want[9]+want[10]+want[11]+want[12] {
			t.Error(got)
		}
		if _, err := d.GUVectorize(into, "(n),()->()", x, 10); err == nil || !strings.Contains(err.Error(), "index 9, length 9") || !strings.Contains(err.Error(), "at element (0,)") {
			t.Error(err)
		}
		if _, err := d.GUVectorize(into, "(n),()->()", x, []int64{9, 11}); err == nil || !strings.Contains(err.Error(), "index 9, length 9") || !strings.Contains(err.Error(), "at element (1,)") {
			t.Error(err)
		}
		launch := func(n int) (*Plan, error) {
			return d.ExplainLaunch(fillGuarded, Blocks(1), Threads(128), Zeros(100), n)
		}
		if checks(launch(100)) || !checks(launch(101)) {
			t.Error("Launch: checks where none are needed, or none where they are")
		}
		a := Zeros(100)
		if err := d.Launch(fillGuarded, Blocks(1), Threads(128), a, 100); err != nil || a.Sum() != 700 {
			t.Error(a, err)
		}
		if err := d.Launch(fillGuarded, Blocks(1), Threads(128), a, 101); err == nil || !strings.Contains(err.Error(), "index 100, length 100") {
			t.Error(err)
		}
		e, onCores := d.engine.(cores)
		machineCode := onCores && e.Engine != cpu.Portable // which checks in any case
		if checks(d.With(Unchecked()).ExplainLaunch(fillGuarded, Blocks(1), Threads(128), a, 101)) != machineCode {
			t.Error("Unchecked checks, or machine code does not")
		}
		if !checks(d.With(OneWorkerPerSlice()).ExplainGU(into, "(n),()->()", x, 9)) {
			t.Error("OneWorkerPerSlice is not the code without all that")
		}
	})
}

// Loops whose bound moves, compared with native Go: the value at the head of an
// iteration counts.

func reversed(a, out []int) {
	for i := range a {
		out[i] = a[i]
	}
	for i, j := 0, len(out)-1; i < j; i, j = i+1, j-1 {
		out[i], out[j] = out[j], out[i]
	}
}

func shrinking(k int64) int64 {
	n, c := k, int64(0)
	for i := int64(0); i < n; i++ {
		if k%7 == 3 || i%5 == 4 {
			n--
		}
		c += n
	}
	return c
}

func untilSmall(a, out []int) {
	n := len(a)
	for i := 0; i < n; i++ {
		if a[i]%3 == 0 {
			n--
		}
		out[i] = a[i] + n
	}
}

func meeting(lo, hi int64) int64 {
	c := int64(0)
	for lo < hi {
		c += lo * hi % 11
		lo++
		if c%2 == 0 {
			hi--
		}
	}
	return c
}

func TestMovingBounds(t *testing.T) {
	a := make([]int, 37)
	for i := range a {
		a[i] = i * i % 23
	}
	eachEngine(t, func(t *testing.T, d *Device) {
		for _, d := range []*Device{d, d.With(OneWorkerPerSlice())} {
			for name, f := range map[string]func(a, out []int){"reversed": reversed, "untilSmall": untilSmall} {
				want := make([]int, len(a))
				f(a, want)
				fn := any(reversed)
				if name == "untilSmall" {
					fn = untilSmall
				}
				got, err := d.GUVectorize(fn, "(n)->(n)", a)
				if err != nil {
					t.Fatal(name, err)
				}
				for i := range want {
					if got.At(i) != float64(want[i]) {
						t.Fatalf("%s: element %d is %v, want %d", name, i, got.At(i), want[i])
					}
				}
			}
			s := Must(d.Vectorize(shrinking, Arange(100).As(Int64)))
			m := Must(d.Vectorize(meeting, Arange(100).As(Int64), Arange(100).Slice(0, 99, -101, -1).As(Int64)))
			for i := range 100 {
				same(t, fmt.Sprint("shrinking ", i), s.At(i), float64(shrinking(int64(i))))
				same(t, fmt.Sprint("meeting ", i), m.At(i), float64(meeting(int64(i), int64(99-i))))
			}
		}
	})
}

func diagonalOf(a [][]float64, out []float64) {
	for s := range a {
		for i := s; i <= s; i++ {
			out[s] = a[i][s-i]
		}
	}
}

// The stride of a dimension of one element, which means nothing, is the same to all
// that compute with it.
func TestOneElementDimensions(t *testing.T) {
	x := Arange(900)
	column := func(a *Array) *Array { return a.Slice(1, 0, 1, 1) }
	args := []*Array{column(x.Slice(0, 0, 3, 1).Reshape(1, 3)), column(x.Reshape(300, 3)), x.Reshape(900, 1).Slice(1, 0, 1, 7), x.Reshape(900, 1).Slice(1, 0, -2, -1), x.Reshape(900, 1)}
	stored := func(a *Array) *Array { return FromFlat(append([]float64{}, a.Float64s()...), a.Shape()...) }
	for _, a := range args[:] {
		args = append(args, stored(a).Slice(1, 0, 1, 5))
	}
	eachEngine(t, func(t *testing.T, d *Device) {
		for k, a := range args {
			got, err := d.GUVectorize(diagonalOf, "(m,n)->(m)", a)
			if err != nil {
				t.Fatal(k, err)
			}
			for i := range a.Shape()[0] {
				if got.At(i) != a.At(i, 0) {
					t.Fatalf("argument %d: element %d is %v, want %v", k, i, got.At(i), a.At(i, 0))
				}
			}
		}
	})
}

func axpyEach(s float64, x, y, out []float64) {
	for i := range x {
		out[i] = float64(s*x[i]) + y[i]
	}
}

func lessFirst(a, out []float64) {
	for i := range a {
		out[i] = math.Floor(a[i]) - a[0]
	}
}

func rowsLessCorner(a, out [][]float64) {
	m := a[0][0]
	for i := range out {
		s := 0.0
		for j := range out[i] {
			s += a[i][j]
			out[i][j] = s - m
		}
	}
}

func rowsByLength(a [][]float64, out []float64) {
	for i := range out {
		s := float64(len(a))
		for j := range a[i] {
			s += a[i][j]
		}
		out[i] = s
	}
}

func plusPlace(x, out []float64) {
	for i := range x {
		out[i] = x[i] + float64(i)
	}
}

// What Explain says to write instead does the same, or it says nothing.
func TestInsteadIsTheSame(t *testing.T) {
	d := MustOpen("cpu").With(OneWorkerPerSlice())
	plan := func(fn any, layout string, args ...any) string {
		t.Helper()
		p, err := d.ExplainGU(fn, layout, args...)
		if err != nil {
			t.Fatal(err)
		}
		return p.Instead
	}
	for what, text := range map[string]string{
		"a number of each worker": plan(axpyEach, "(),(n),(n)->(n)", Arange(5), Arange(5), Arange(5)),
		"another element":         plan(lessFirst, "(n)->(n)", Arange(2000)),
		"a corner":                plan(rowsLessCorner, "(m,n)->(m,n)", Arange(6000).Reshape(2000, 3)),
		"a length":                plan(rowsByLength, "(m,n)->(m)", Arange(6000).Reshape(2000, 3)),
		"the place":               plan(plusPlace, "(n)->(n)", Arange(2000)),
	} {
		if text != "" {
			t.Errorf("%s: %s", what, text)
		}
	}
}
