package gpukit

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"gpunotes/gpukit/simt"
)

func saxpy(a float64, x, y []float64) {
	i := simt.Grid1()
	if i < len(x) {
		y[i] = float64(a*x[i]) + y[i]
	}
}

// mesh is the third thread's kernel with its mesh, rows first.
func mesh(lat2, lon2, xb, xe, yb, ye, s float64, nx, ny int, out [][]float64) {
	x, y := simt.Grid2()
	if x < nx && y < ny {
		lat1 := float64((xe-xb)*float64(x))/float64(nx-1) + xb
		lon1 := float64((ye-yb)*float64(y))/float64(ny-1) + yb
		out[y][x] = dist(lat1, lon1, lat2, lon2, s)
	}
}

func blockSums(x, out []float64) {
	var part [256]float64
	simt.Shared(&part)
	t := simt.ThreadIdx().X
	i := simt.Grid1()
	v := 0.0
	if i < len(x) {
		v = x[i]
	}
	part[t] = v
	for h := simt.BlockDim().X / 2; h > 0; h /= 2 {
		simt.SyncThreads()
		if t < h {
			part[t] += part[t+h]
		}
	}
	if t == 0 {
		out[simt.BlockIdx().X] = part[0]
	}
}

func sharedOf(t int) float64 {
	s := simt.SharedFloat64()
	s[t] = float64(t)
	simt.SyncThreads()
	return s[len(s)-1-t]
}

func dynamicInCallee(x []float64) {
	t := simt.ThreadIdx().X
	x[t] = sharedOf(t)
}

func dynamicReverse(x []float64) {
	s := simt.SharedFloat64()
	t := simt.ThreadIdx().X
	n := simt.BlockDim().X
	s[t] = x[t]
	simt.SyncThreads()
	x[t] = s[n-1-t]
}

func histogram(x []int32, counts []int64, total []float64) {
	i := simt.Grid1()
	if i < len(x) {
		atomic.AddInt64(&counts[x[i]], 1)
		simt.AddFloat64(&total[0], 0.5)
	}
}

func warpSums(x []float64) {
	i := simt.Grid1()
	v := x[i]
	for d := 16; d > 0; d /= 2 {
		v += simt.ShuffleDownFloat64(v, d)
	}
	if simt.LaneID() == 0 {
		x[i] = v
	}
}

func divergent(x []float64) {
	if simt.ThreadIdx().X%2 == 0 {
		simt.SyncThreads()
	}
	x[simt.Grid1()] = 1
}

func guarded(x []float64, n int) {
	t := simt.ThreadIdx().X
	if t >= n {
		return
	}
	x[t] = -999
	simt.SyncThreads()
	if t == 0 {
		x[0] = x[1] + x[2]
	}
}

type affine struct {
	scale  float64
	offset [2]float64
}

func apply(p affine, x [][]float64) {
	i, j := simt.Grid2()
	if i < len(x) && j < len(x[0]) {
		x[i][j] = float64(p.scale*x[i][j]) + p.offset[j%2]
	}
}

func counts(out []int) { out[simt.Grid1()] = simt.Grid1() * 2 }

func spin(x []float64) {
	for x[0] == 0 {
	}
}

func TestLaunch(t *testing.T) {
	for _, name := range []string{"cpu", "parallel", "sim:quadro-k2000", "sim:h200"} {
		d := MustOpen(name)
		defer d.Close()
		launch := func(kernel any, g Grid, b Block, args ...any) {
			t.Helper()
			if err := d.Launch(kernel, g, b, args...); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		y := []float64{1, 1, 1, 1, 1}
		launch(saxpy, Blocks(2), Threads(4), 2.0, Arange(5), y)
		same(t, "saxpy into a host slice", y, []float64{1, 3, 5, 7, 9})

		z := Must(d.Empty(Float64, 50, 100)) // ny, nx
		launch(mesh, Blocks(4, 4), Threads(32, 32), 30.0, 101.0, 29.0, 31.0, 99.0, 101.0, 1.0, 100, 50, z)
		want := distNative(float64(2.0*3)/99+29, float64(2.0*7)/49+99, 30, 101, 1)
		same(t, "mesh", z.At(7, 3), want)

		x := Arange(1000)
		out := Zeros(4)
		launch(blockSums, Blocks(4), Threads(256), x, out)
		same(t, "reduction", out.Float64s(), []float64{32640, 98176, 163712, 204972})

		r := Arange(64).As(Float32).As(Float64)
		if err := d.With(SharedBytes(64*8)).Launch(dynamicReverse, Blocks(1), Threads(64), r); err != nil {
			t.Error(err)
		}
		same(t, "dynamic shared memory", r.Float64s()[:3], []float64{63, 62, 61})

		q := Zeros(8)
		if err := d.With(SharedBytes(64)).Launch(dynamicInCallee, Blocks(1), Threads(8), q); err != nil {
			t.Error(err)
		}
		same(t, "dynamic shared memory of a callee", q.Float64s(), []float64{7, 6, 5, 4, 3, 2, 1, 0})

		bins, total := make([]int64, 3), Zeros(1)
		launch(histogram, Blocks(8), Threads(128), Full(2, 1000).As(Int32), bins, total)
		same(t, "atomics", []any{bins, total.Item()}, []any{[]int64{0, 0, 1000}, 500.0})

		w := Full(1, 64).As(Float32).As(Float64)
		launch(warpSums, Blocks(1), Threads(64), w)
		same(t, "shuffles", []float64{w.At(0), w.At(1), w.At(32)}, []float64{32, 1, 32})

		g := Zeros(8)
		launch(guarded, Blocks(1), Threads(8), g, 3)
		same(t, "a guard before a barrier", g.Float64s()[:4], []float64{-1998, -999, -999, 0})

		nested := [][]float64{{1, 2}, {3, 4}}
		launch(apply, Blocks(1), Threads(2, 2), affine{10, [2]float64{0.5, 0.25}}, nested)
		same(t, "struct, nested slice", nested, [][]float64{{10.5, 20.25}, {30.5, 40.25}})

		ints := make([]int, 6)
		launch(counts, Blocks(3), Threads(2), ints)
		same(t, "int slice", ints, []int{0, 2, 4, 6, 8, 10})
		launch(saxpy, Blocks(1), Threads(32), 2.0, Zeros(0), Zeros(0))
	}
}

func TestLaunchRefusals(t *testing.T) {
	l := func(kernel any, g Grid, b Block, args ...any) func(*Device) error {
		return func(d *Device) error { return d.Launch(kernel, g, b, args...) }
	}
	x := Zeros(64)
	for name, c := range map[string]struct {
		f     func(*Device) error
		words []string
	}{
		"no grid":       {l(counts, Grid{}, Threads(1), x), []string{"grid is (0, 0, 0)", "gpukit.Blocks"}},
		"four":          {l(counts, Blocks(1, 1, 1, 1), Threads(1), x), []string{"one to three dimensions"}},
		"no threads":    {l(counts, Blocks(1), Threads(0), x), []string{"block is (0, 1, 1)"}},
		"no block":      {l(counts, Blocks(1), Block{}, x), []string{"block is (0, 0, 0)", "gpukit.Threads"}},
		"1025 threads":  {l(counts, Blocks(1), Threads(1025), x), []string{"(1025, 1, 1)", "limits are (1024"}},
		"2048 threads":  {l(counts, Blocks(1), Threads(64, 32), x), []string{"2048 threads", "1024"}},
		"grid y":        {l(counts, Blocks(1, 65536), Threads(1), x), []string{"65535"}},
		"result":        {l(add1, Blocks(1), Threads(1), x), []string{"add1 returns a value"}},
		"arguments":     {l(saxpy, Blocks(1), Threads(1), x), []string{"3 arguments (a, x, y), got 1"}},
		"rank":          {l(apply, Blocks(1), Threads(1), affine{}, x), []string{"argument 2 (x)", "(64,)", "rank 2"}},
		"array for one": {l(saxpy, Blocks(1), Threads(1), x, x, x), []string{"argument 1 (a)", "[]float64"}},
		"generated":     {l(guarded, Blocks(1), Threads(1), Arange(3), 1), []string{"argument 1 (x)", "computed"}},
		"dtype":         {l(counts, Blocks(1), Threads(1), x), []string{"argument 1 (out)", "float64", "int64"}},
		"struct":        {l(apply, Blocks(1), Threads(1), 3, Zeros(2, 2)), []string{"argument 1 (p)", "int"}},
		"divergent":     {l(divergent, Blocks(1), Threads(2), x), []string{place(t, "func divergent(", 2), "barrier", "condition at " + place(t, "func divergent(", 1), "threads"}},
		"index":         {l(saxpyUnguarded, Blocks(2), Threads(48), 1.0, x, x), []string{"index out of range (index 64, length 64)", "block (1, 0, 0)", "thread (16, 0, 0)", "launch_test.go"}},
		"shared memory": {func(d *Device) error {
			return d.With(SharedBytes(1<<40)).Launch(dynamicReverse, Blocks(1), Threads(1), x)
		}, []string{"1 TiB", "227 KiB"}},
		"static shared":             {l(tooMuchShared, Blocks(1), Threads(1), x), []string{"tooMuchShared", "781.2 KiB", "227 KiB"}},
		"no shared memory":          {l(dynamicReverse, Blocks(1), Threads(1), x), []string{"dynamicReverse", "none", "gpu.With(gpukit.SharedBytes(n)).Launch(...)"}},
		"an option":                 {l(dynamicReverse, Blocks(1), Threads(1), x, SharedBytes(512)), []string{"argument 2", "gpu.With(gpukit.SharedBytes(512)).Launch(...)"}},
		"an option as it is anyhow": {l(dynamicReverse, Blocks(1), Threads(1), x, SharedBytes(0)), []string{"argument 2", "gpu.With(the option).Launch(...)"}},
		"an option of Vectorize":    {func(d *Device) error { _, err := d.Vectorize(add1, 1.0, FastMath()); return err }, []string{"argument 2", "gpu.With(gpukit.FastMath()).Vectorize(...)"}},
		"two types":                 {l(twoShared, Blocks(1), Threads(1), x), []string{"several types"}},
		"local arrays":              {l(bigLocal, Blocks(4096), Threads(1024), x), []string{"local arrays of bigLocal", "8 MiB", "512 KiB"}},
		"nil":                       {l(counts, Blocks(1), Threads(1), nil), []string{"argument 1 (out)", "nil"}},
		"outside kernel":            {func(d *Device) error { _, err := d.Vectorize(usesThreads, 1.0); return err }, []string{"ThreadIdx", "Launch"}},
	} {
		fails(t, name, c.f, c.words...)
	}
	// A GPU computes the element.
	failsOn(t, "parallel", "huge generator", l(readsGenerated, Blocks(1), Threads(1), Arange(1<<42), x), "Launch", "32 TiB", "available")
	var none *Device
	if err := none.Launch(counts, Blocks(1), Threads(1), x); err == nil || !strings.Contains(err.Error(), "device is nil") {
		t.Error(err)
	}
}

func tooMuchShared(x []float64) {
	var s [100000]float64
	simt.Shared(&s)
	s[simt.ThreadIdx().X] = 1
	x[0] = s[0]
}

func twoShared(x []float64) {
	a, b := simt.SharedFloat64(), simt.SharedInt64()
	a[0], b[0] = 1, 2
	x[0] = a[0]
}

func bigLocal(x []float64) {
	var s [1 << 20]float64
	i := simt.ThreadIdx().X
	s[i] = 1
	simt.SyncThreads()
	x[i%len(x)] = s[i]
}

func readsGenerated(x, y []float64) { y[0] = x[len(x)-1] }

// flag leaves a loop by what another thread may have written.
func flag(x []float64) {
	for i := 0; i < 10; i++ {
		simt.SyncThreads()
		if x[0] > 0 {
			break
		}
		x[0] = 1
	}
}

func TestDivergenceNamesTheBranch(t *testing.T) {
	err := MustOpen("cpu").Launch(flag, Blocks(1), Threads(2), Zeros(1))
	if err == nil || !strings.Contains(err.Error(), place(t, "func flag(", 3)+":3 may differ") {
		t.Error(err)
	}
}

// place is where this file has the n-th line after the one with text.
func place(t *testing.T, text string, n int) string {
	t.Helper()
	source, err := os.ReadFile("launch_test.go")
	if err != nil {
		t.Fatal(err)
	}
	before, _, ok := strings.Cut(string(source), "\n"+text)
	if !ok {
		t.Fatalf("no %q", text)
	}
	return fmt.Sprintf("launch_test.go:%d", strings.Count(before, "\n")+2+n)
}

// Closing the device ends what runs on it.
func TestCloseEndsACall(t *testing.T) {
	eachKind(t, func(t *testing.T, d *Device) {
		done := make(chan error)
		go func() { done <- d.Launch(spin, Blocks(1), Threads(32), Zeros(1)) }()
		time.Sleep(20 * time.Millisecond)
		d.Close()
		select {
		case err := <-done:
			if !errors.Is(err, ErrClosed) {
				t.Error(err)
			}
		case <-time.After(10 * time.Second):
			t.Fatal("the call goes on")
		}
	})
}

func saxpyUnguarded(a float64, x, y []float64) {
	i := simt.Grid1()
	y[i] = float64(a*x[i]) + y[i]
}

func usesThreads(x float64) float64 { return x + float64(simt.ThreadIdx().X) }

func TestStopLaunch(t *testing.T) {
	restore := attachInterrupted(true)
	defer restore()
	eachKind(t, func(t *testing.T, d *Device) {
		if err := d.Launch(spin, Blocks(2), Threads(64), Zeros(1)); !errors.Is(err, ErrInterrupted) {
			t.Error(err)
		}
	})
}

func TestExplainLaunch(t *testing.T) {
	p, err := MustOpen("cpu").ExplainLaunch(blockSums, Blocks(4), Threads(256), Arange(1000), Zeros(4))
	if err != nil {
		t.Fatal(err)
	}
	same(t, "threads", p.Workers, 1024)
	for _, w := range []string{"(4, 1, 1) blocks of (256, 1, 1) threads", "barrier", "shared", "each worker sees (1000,), the same for every worker, written to memory"} {
		if !strings.Contains(p.String(), w) {
			t.Errorf("the plan does not say %q:\n%v", w, p)
		}
	}
}

func meetsAndFails(x []float64) {
	i := simt.Grid1()
	simt.SyncThreads()
	x[i] = 1
}
