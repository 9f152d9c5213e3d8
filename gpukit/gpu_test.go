package gpukit

import (
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"gpunotes/gpukit/internal/driver"
	"gpunotes/gpukit/internal/driver/sim"
	"gpunotes/gpukit/simt"
	"gpunotes/gpukit/trace"
)

func quadro(t *testing.T) *Device {
	t.Helper()
	d := MustOpen("sim:quadro-k2000")
	t.Cleanup(func() { d.Close() })
	return d
}

// work lists what f made the device do, as "HtoD 80" or "launch add1".
func work(d *Device, f func()) (list []string) {
	d.StartTrace()
	f()
	for _, r := range d.StopTrace().Records {
		if r.Kind == trace.Launch {
			list = append(list, "launch "+r.Name)
		} else {
			list = append(list, fmt.Sprintf("%s %d", r.Kind, r.Size))
		}
	}
	return list
}

func fill(x, out []float64) {
	for i := range out {
		out[i] = x[0]
	}
}

func halve(x []float64) {
	for i := range x {
		x[i] /= 2
	}
}

func onlyLength(x, y []float64) {
	y[0] = float64(len(x))
}

func setFirst(y []float64) { y[0] = 7 }

// What numba copies for the first calls is in the names. Numbers and what is
// computed cost nothing here, what repeats is copied once, at its own size.
func TestTransfers(t *testing.T) {
	d := quadro(t)
	stored := Zeros
	put := Must(d.Put(Arange(100)))
	row := make([]float64, 100)
	for _, c := range []struct {
		name string
		f    func()
		want []string
	}{
		{"numba: both, 16000", func() { Must(d.Vectorize(product, stored(10, 40, 5), stored(10, 40, 5))) },
			[]string{"HtoD 16000", "HtoD 16000", "launch product", "DtoH 16000"}},
		{"numba: all four", func() {
			Must(d.Vectorize(dist, stored(1000), stored(1000), stored(1000), stored(1000), 1.0))
		}, []string{"HtoD 8000", "HtoD 8000", "HtoD 8000", "HtoD 8000", "launch dist", "DtoH 8000"}},
		{"numba: 8 bytes for each number, 4 copies back", func() {
			Must(d.Vectorize(dist, stored(1000), stored(1000), 30.0, 101.0, 1.0))
		}, []string{"HtoD 8000", "HtoD 8000", "launch dist", "DtoH 8000"}},
		{"numba: five arrays of 80000", func() {
			Must(d.Vectorize(dist, stored(100, 100), stored(100, 100), 30.0, 101.0, 1.0))
		}, []string{"HtoD 80000", "HtoD 80000", "launch dist", "DtoH 80000"}},
		{"numba: twice 16000", func() { Must(d.Vectorize(product, stored(40, 5), stored(10, 40, 5))) },
			[]string{"HtoD 1600", "HtoD 16000", "launch product", "DtoH 16000"}},
		{"numba: twice 80000", func() { Must(d.Vectorize(product, stored(1, 100), stored(100, 1))) },
			[]string{"HtoD 800", "HtoD 800", "launch product", "DtoH 80000"}},
		{"numba: 8 + 8", func() { Must(d.Vectorize(product, 2.0, 3.0)) },
			[]string{"launch product", "DtoH 8"}},
		{"empty", func() { Must(d.Vectorize(product, stored(0), stored(0))) }, nil},
		{"mesh", func() {
			lon, lat := MeshGrid(Linspace(99, 101, 30), Linspace(29, 31, 20))
			Must(d.Vectorize(dist, lat, lon, 30.0, 101.0, 1.0))
		}, []string{"launch dist", "DtoH 4800"}},
		{"gufunc", func() {
			Must(d.GUVectorize(cVestDiscount16, "(m,o),(m,o),(),() -> (m,o)", stored(40, 5), stored(10, 40, 5), 5, 40))
		}, []string{"HtoD 1600", "HtoD 16000", "memset 16000", "launch cVestDiscount16", "DtoH 16000"}},
		{"gufunc, a number for a slice", func() {
			Must(d.GUVectorize(fill, "()->(n)", 3.0, Out(stored(4))))
		}, []string{"HtoD 32", "launch fill", "DtoH 32"}},
		{"gufunc of a generated array", func() { Must(d.GUVectorize(scaleRow, "(n),()->(n)", Arange(20).Reshape(4, 5), 2.0)) },
			[]string{"memset 160", "launch scaleRow", "DtoH 160"}},
		{"resident", func() { Must(d.Vectorize(product, put, put)).Free() }, []string{"launch product"}},
		{"resident and not", func() { Must(d.Vectorize(product, put, stored(100))).Free() }, []string{"HtoD 800", "launch product"}},
		{"resident, then back", func() { Must(d.Vectorize(add1, put)).Host() }, []string{"launch add1", "DtoH 800"}},
		{"Out is not copied in", func() { Must(d.Vectorize(add1, stored(10), Out(stored(10)))) },
			[]string{"HtoD 80", "launch add1", "DtoH 80"}},
		{"Out on the device", func() { Must(d.Vectorize(add1, stored(100), Out(put))) }, []string{"HtoD 800", "launch add1"}},
		{"Out of a gufunc is", func() { Must(d.GUVectorize(addAll, "(n)->(n)", stored(10), Out(stored(10)))) },
			[]string{"HtoD 80", "HtoD 80", "launch addAll", "DtoH 80"}},
		{"one slice twice", func() { Must(d.Vectorize(product, row, row)) }, []string{"HtoD 800", "launch product", "DtoH 800"}},
		{"slices that overlap", func() { Must(d.Vectorize(product, row[:60], row[40:])) }, []string{"HtoD 800", "launch product", "DtoH 480"}},
		{"slices side by side", func() { Must(d.Vectorize(product, row[:50], row[50:])) },
			[]string{"HtoD 400", "HtoD 400", "launch product", "DtoH 400"}},
		{"every other", func() { Must(d.Vectorize(add1, FromSlice(row).Slice(0, 0, 100, 2))) },
			[]string{"HtoD 792", "launch add1", "DtoH 400"}},
		{"reversed, transposed", func() { Must(d.Vectorize(add1, stored(10, 4).T().Slice(0, 3, -5, -1))) },
			[]string{"HtoD 320", "launch add1", "DtoH 320"}},
		{"a column", func() { Must(d.Vectorize(add1, stored(100, 10).Slice(1, 3, 4, 1))) },
			[]string{"HtoD 800", "launch add1", "DtoH 800"}},
		{"a column, repeated", func() {
			Must(d.Vectorize(product, stored(100, 10).Slice(1, 3, 4, 1).BroadcastTo(2, 100, 50), 3.0))
		}, []string{"HtoD 800", "launch product", "DtoH 80000"}},
		{"in and out", func() { d.Launch(halve, Blocks(1), Threads(1), row) }, []string{"HtoD 800", "launch halve", "DtoH 800"}},
		{"written in part", func() { d.Launch(setFirst, Blocks(1), Threads(1), row) }, []string{"HtoD 800", "launch setFirst", "DtoH 800"}},
		{"only its length", func() { d.Launch(onlyLength, Blocks(1), Threads(1), stored(1000), row[:1]) },
			[]string{"HtoD 8", "launch onlyLength", "DtoH 8"}},
		{"Put and Empty", func() {
			Must(d.Put(row)).Free()
			Must(d.Empty(Int32, 5)).Free()
			Must(d.Put(put)).Free()
			put.At(3)
		}, []string{"HtoD 800", "memset 20", "DtoD 800", "DtoH 8"}},
	} {
		if got := work(d, c.f); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
	if row[0] != 1000 || row[1] != 0 {
		t.Errorf("after the launches: %v", row[:2])
	}
}

// Every method gives for an array on the device what it gives for one on the
// host, and the views are on the device too.
func TestArraysOnTheDevice(t *testing.T) {
	d := quadro(t)
	base := FromSlice([]float64{3, math.Copysign(0, -1), 0, 5, math.Inf(-1), 7, 8, math.MaxFloat64, 1e-300, 9, 10, 11}).Reshape(3, 4)
	for _, dt := range []DType{Float64, Float32, Int64, Int8, Uint16, Bool} {
		host := base.As(dt)
		on := Must(d.Put(host))
		for name, view := range map[string]func(a *Array) *Array{
			"whole":      func(a *Array) *Array { return a },
			"transposed": func(a *Array) *Array { return a.T() },
			"reversed":   func(a *Array) *Array { return a.Slice(1, 3, -5, -1) },
			"part":       func(a *Array) *Array { return a.Slice(0, 1, 3, 1).Slice(1, 1, 4, 2) },
			"broadcast":  func(a *Array) *Array { return a.Slice(0, 1, 2, 1).BroadcastTo(2, 3, 4) },
			"0-d":        func(a *Array) *Array { return a.Slice(0, 2, 3, 1).Slice(1, 2, 3, 1).Reshape() },
			"reshaped":   func(a *Array) *Array { return a.T().Reshape(2, 6) },
			"converted":  func(a *Array) *Array { return a.As(Float32).As(Int32) },
			"reduced":    func(a *Array) *Array { return a.Reduce(1) },
			"put again":  func(a *Array) *Array { return Must(d.Put(a.T())) },
		} {
			h, g := view(host), view(on)
			if g.home() != d.core {
				t.Errorf("%v %s: left the device", dt, name)
			}
			same := func(what string, got, want any) { // NaN is NaN
				if t.Helper(); fmt.Sprint(got) != fmt.Sprint(want) {
					t.Errorf("%v %s %s: %v, want %v", dt, name, what, got, want)
				}
			}
			same("elements", g.Float64s(), h.Float64s())
			same("text", g.String()+g.HTML(), h.String()+h.HTML())
			same("reductions", []any{g.Sum(), g.Min(), g.Max(), g.ArgMin(), g.Host().Sum()}, []any{h.Sum(), h.Min(), h.Max(), h.ArgMin(), h.Sum()})
			i := make([]int, h.NDim())
			same("At", g.At(i...), h.At(i...))
			if g.Host().home() != nil {
				t.Errorf("%v %s: Host is on the device", dt, name)
			}
		}
	}
	none := Must(d.Empty(Float64, 0, 3))
	same(t, "empty", []any{none.Sum(), none.T().Shape(), none.Host().Float64s(), Must(d.Vectorize(add1, none)).Shape()},
		[]any{0.0, []int{3, 0}, []float64{}, []int{0, 3}})
	shapeError(t, "Min of nothing", func() { none.Min() }, "no elements")
	same(t, "0-d", Must(d.Vectorize(add1, Must(d.Put(FromSlice([]float64{4}).Reshape())))).Item(), 5.0)

	// Results that overlap arguments, on the device.
	a := Must(d.Put([]float64{1, 2, 3, 4, 5}))
	Must(d.Vectorize(add2, a.Slice(0, 0, 4, 1), a.Slice(0, 1, 5, 1), Out(a.Slice(0, 1, 5, 1))))
	same(t, "shifted", a.Float64s(), []float64{1, 3, 5, 7, 9})
	Must(d.Vectorize(add1, a, Out(a)))
	same(t, "in place", a.Float64s(), []float64{2, 4, 6, 8, 10})
	Must(d.GUVectorize(addAll, "(n)->(n)", a.Slice(0, 4, -6, -1), Out(a)))
	same(t, "gufunc on itself, reversed", a.Float64s(), []float64{12, 12, 12, 12, 12})
	if err := d.Launch(halve, Blocks(1), Threads(1), a.Slice(0, 0, 5, 2)); err != nil {
		t.Error(err)
	}
	same(t, "a view, written", a.Float64s(), []float64{6, 12, 6, 12, 6})
}

func held(d *Device) int {
	d.gpu.pool.mu.Lock()
	defer d.gpu.pool.mu.Unlock()
	n := 0
	for b := range d.gpu.pool.live {
		n += b.size
	}
	return n
}

func available64(t *testing.T, d *Device) uint64 {
	t.Helper()
	free, _, err := d.gpu.dev.MemInfo()
	if err != nil {
		t.Fatal(err)
	}
	return free
}

func outside4(x []float64, out []float64) { out[0] = x[4] }

// Nothing that a call needed or made is left when it is over, however it ends.
func TestDeviceMemoryComesBack(t *testing.T) {
	d := quadro(t)
	whole := available64(t, d)
	x := Must(d.Put(Arange(1000)))
	before := held(d)
	Must(d.Vectorize(add1, x)).Free()
	Must(d.Vectorize(add1, make([]float64, 1000)))
	Must(d.Vectorize(add2, x.Slice(0, 0, 999, 1), x.Slice(0, 1, 1000, 1), Out(x.Slice(0, 1, 1000, 1))))
	if _, err := d.Vectorize(idiv, Must(d.Put([]int{1, 2})), []int{1, 0}); err == nil {
		t.Error("no error")
	}
	if _, err := d.GUVectorize(outside4, "(n)->()", x.Slice(0, 0, 3, 1)); err == nil {
		t.Error("no error")
	}
	runtime.GC() // of the array that only the failing call knew
	d.gpu.pool.reclaim()
	if now := held(d); now != before {
		t.Errorf("%d bytes are held, before it were %d", now, before)
	}
	x.Free()
	x.Free()
	d.gpu.pool.reclaim()
	if now := available64(t, d); now != whole || held(d) != 0 {
		t.Errorf("%d bytes are free, at first it were %d", now, whole)
	}

	// What is cached serves the next of its size.
	y := Must(d.Empty(Float64, 1000))
	at := deviceMemoryOf(y.store).block.ptr
	y.Free()
	if z := Must(d.Empty(Int64, 1000)); deviceMemoryOf(z.store).block.ptr != at {
		t.Error("memory of the same size was asked for anew")
	}
}

// Memory is asked for in sizes that meet again, of which an eighth is wasted at
// most, and no more is kept than the limit.
func TestPool(t *testing.T) {
	for n := 1; n < 1<<40; n += 1 + n/7 {
		c := classOf(n)
		if c < n || classOf(c) != c || c > max(512, n+n/8+1) && c-n >= 2<<20 || c%32 != 0 {
			t.Fatalf("%d bytes are asked for as %d", n, c)
		}
	}
	d := quadro(t)
	p := &pool{dev: d.gpu.dev, limit: 10000}
	whole := available64(t, d)
	var list []*block
	for range 5 {
		b, err := p.get(3000)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, b)
	}
	for _, b := range list {
		p.put(b)
		p.put(b)
	}
	same(t, "kept", []int{p.kept, len(p.free[3072])}, []int{9216, 3})
	if got := whole - available64(t, d); got != 9216 {
		t.Errorf("%d bytes are not given back", got)
	}
	p.close()
	if available64(t, d) != whole {
		t.Error("close keeps memory")
	}
	if _, err := p.get(1); !errors.Is(err, ErrClosed) {
		t.Error(err)
	}
}

func TestOutOfDeviceMemory(t *testing.T) {
	d := quadro(t)
	const n = 16 << 20 // 128 MB
	hold := func() (list []*Array, err error) {
		for range 100 {
			m, err := d.gpu.memory(Float64, n)
			if err != nil {
				return list, err
			}
			list = append(list, d.keep(newArray(m, []int{n})))
		}
		return list, nil
	}
	list, err := hold()
	if len(list) < 8 || !errors.Is(err, driver.OutOfMemory) {
		t.Fatalf("%d arrays, %v", len(list), err)
	}
	_, err = d.Empty(Float64, n)
	var de *DeviceError
	if !errors.Is(err, ErrOutOfMemory) || !errors.As(err, &de) || !strings.Contains(err.Error(), "Empty on sim:quadro-k2000: out of device memory") || !strings.Contains(err.Error(), "134217728 bytes") {
		t.Errorf("%v", err)
	}
	for _, f := range []func() error{
		func() error { return second(d.Vectorize(add1, list[0])) },
		func() error { return second(d.Vectorize(add1, Zeros(n))) },
		func() error { return second(d.Put(Full(1, 1<<40))) },
	} {
		if err := f(); err == nil {
			t.Error("no error")
		}
	}
	same(t, "the next call", Must(d.Vectorize(add1, 1.0)).Item(), 2.0)

	// Arrays that nobody has any more make room, and so do cached ones.
	number := len(list)
	list = nil
	again, _ := hold()
	if len(again) != number {
		t.Errorf("%d arrays, at first %d", len(again), number)
	}
	for _, a := range again {
		a.Free()
	}
	if m, err := d.gpu.memory(Float64, 5*n); err != nil {
		t.Errorf("the cache was not emptied: %v", err)
	} else {
		runtime.KeepAlive(m)
	}
}

// Memory of a simulated card is this machine's.
func TestOutOfTheMachinesMemory(t *testing.T) {
	g, err := simulatedWith("sim:h200", sim.Options{HostBytes: func() uint64 { return 1 << 30 }})
	if err != nil {
		t.Fatal(err)
	}
	d := g.device()
	defer d.Close()
	if _, err := d.Empty(Float64, 1<<28); !errors.Is(err, ErrOutOfMemory) || !strings.Contains(err.Error(), "this machine has only") {
		t.Error(err)
	}
	same(t, "the next call", Must(d.Vectorize(add1, 1.0)).Item(), 2.0)
}

// A failing worker is the lowest one, and the error has its values.
func TestFaultsOnAGPU(t *testing.T) {
	d := quadro(t)
	a, b := make([]int, 1000), make([]int, 1000)
	for i := range a {
		a[i], b[i] = i, 1
	}
	b[700], b[333], b[334] = 0, 0, 0
	for name, err := range map[string]error{
		"host":     second(d.Vectorize(idiv, a, b)),
		"resident": second(d.Vectorize(idiv, Must(d.Put(a)), Must(d.Put(b)))),
	} {
		var w *WorkerError
		if !errors.As(err, &w) || !slices.Equal(w.Index, []int{333}) || !strings.Contains(err.Error(), "integer divide by zero (333 / 0)") || !strings.Contains(err.Error(), "a = 333, b = 0") || !strings.Contains(err.Error(), "vectorize_test.go:17:") {
			t.Errorf("%s: %v", name, err)
		}
	}
	// In place: what failed at first may be gone. The place is known.
	x := Must(d.Put(b))
	_, err := d.Vectorize(idiv, 5, x, Out(x))
	var w *WorkerError
	if !errors.As(err, &w) || !slices.Equal(w.Index, []int{333}) || !strings.Contains(err.Error(), "integer divide by zero") {
		t.Errorf("in place: %v", err)
	}
	same(t, "the next call", Must(d.Vectorize(add1, 1.0)).Item(), 2.0)
}

func beyondTheTile(x []float64) {
	var tile [128]float64
	simt.Shared(&tile)
	t := simt.ThreadIdx().X
	tile[t] = x[t]
	simt.SyncThreads()
	x[t] = tile[127-t%128]
}

func withoutGuard(x []float64, n int) {
	i := n*simt.BlockIdx().X + simt.ThreadIdx().X
	if i%2 == 0 {
		simt.AddFloat64(&x[i], 1)
	}
}

func indexFromMemory(x []float64, at []int) {
	i := simt.Grid1()
	simt.SyncThreads()
	at[i] += 5
	x[at[i]] = 1
}

// Threads that meet, or add to the same memory, are not run again. Where their places
// and the numbers that they are given decide what failed, the error has it all the same.
func TestFaultsOfThreadsThatMeet(t *testing.T) {
	for _, name := range []string{"cpu", "parallel", "sim:quadro-k2000", "sim:h200"} {
		d := MustOpen(name)
		defer d.Close()
		for what, c := range map[string]struct {
			err    error
			block  Grid
			thread Block
			want   string
			unsaid bool // on a GPU
		}{
			"no guard":        {d.Launch(meetsAndFails, Blocks(3), Threads(32), Zeros(90)), Grid{2, 0, 0}, Block{26, 0, 0}, "index out of range (index 90, length 90)", false},
			"a small tile":    {d.Launch(beyondTheTile, Blocks(1), Threads(256), Zeros(256)), Grid{}, Block{128, 0, 0}, "index out of range (index 128, length 128)", false},
			"a small array":   {d.Launch(beyondTheTile, Blocks(1), Threads(64), Zeros(3)), Grid{}, Block{3, 0, 0}, "index out of range (index 3, length 3)", false},
			"atomic":          {d.Launch(withoutGuard, Blocks(2), Threads(32), Zeros(40), 30), Grid{1, 0, 0}, Block{10, 0, 0}, "index out of range (index 40, length 40)", false},
			"index in memory": {d.Launch(indexFromMemory, Blocks(1), Threads(32), Zeros(36), Arange(32).As(Int64)), Grid{}, Block{31, 0, 0}, "index out of range (index 36, length 36)", true},
		} {
			var w *WorkerError
			want := c.want
			if c.unsaid && d.gpu != nil {
				want = "index out of range in "
			}
			if !errors.As(c.err, &w) || *w.Block != c.block || *w.Thread != c.thread || !strings.Contains(c.err.Error(), want) {
				t.Errorf("%s, %s: %v, want %s at %v, %v", name, what, c.err, want, c.block, c.thread)
			}
		}
		same(t, "the next call", Must(d.Vectorize(add1, 1.0)).Item(), 2.0)
	}
}

func racyParts(x []float64) {
	var first [3]int32
	var part [64]float64
	simt.Shared(&first)
	simt.Shared(&part)
	t := simt.ThreadIdx().X
	if t < 3 {
		first[t] = 1
	}
	part[t] = x[t]
	x[t] = part[t^1] + float64(first[0])
}

func unwrittenTile(x []float64) {
	var tile [4][8]float32
	simt.Shared(&tile)
	t := simt.ThreadIdx().X
	simt.SyncThreads()
	x[t] = float64(tile[t/8][t%8])
}

func racyDynamic(x []float64) {
	s := simt.SharedFloat64()
	t := simt.ThreadIdx().X
	s[t] = x[t]
	x[t] = s[t^1]
}

// The checker names what lies in shared memory as Go does.
func TestCheckerNamesSharedMemory(t *testing.T) {
	d := quadro(t).With(SharedBytes(512))
	for want, err := range map[string]error{
		"reads element 1 of part (shared memory at 0x18); block":                                     d.Launch(racyParts, Blocks(1), Threads(64), Zeros(64)),
		"reads 4 bytes of element 0 of tile (shared memory at 0x0) that no thread of the block has":  d.Launch(unwrittenTile, Blocks(1), Threads(32), Zeros(32)),
		"reads element 1 of the dynamic memory (shared memory at 0x8); block (0,0,0) thread (1,0,0)": d.Launch(racyDynamic, Blocks(1), Threads(64), Zeros(64)),
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// The block sizes that numba 0.38.1 chose, by compute capability and registers.
func TestBestBlock(t *testing.T) {
	for card, want := range map[string]map[int]int{
		"quadro-k2000": {10: 128, 13: 128, 16: 128, 24: 128, 32: 128, 33: 96, 40: 96, 48: 128, 63: 64},
		"gtx-970":      {10: 64, 24: 64, 33: 64, 40: 64, 48: 64, 63: 32, 64: 32, 100: 32, 255: 32},
		"gtx-1080-ti":  {10: 64, 48: 64, 63: 32},
	} {
		d := MustOpen("sim:" + card)
		for registers, threads := range want {
			if got := bestBlock(&d.gpu.info, registers, 0); got != threads {
				t.Errorf("%s, %d registers: %d threads, want %d", card, registers, got, threads)
			}
		}
		d.Close()
	}
}

// The geometries of the threads' traces.
func TestGeometryOfTheThreads(t *testing.T) {
	d := quadro(t)
	for _, c := range []struct {
		registers, n, grid, block int
	}{{63, 1, 1, 64}, {63, 100, 2, 64}, {63, 4000, 63, 64}, {13, 2000000, 15625, 128}} {
		w := d.With(NumbaGeometry(c.registers))
		p, err := w.Explain(add1, Arange(c.n))
		if err != nil || p.Grid != Blocks(c.grid) || p.Block != Threads(c.block) || !strings.Contains(p.String(), fmt.Sprintf("numba's rule for %d registers", c.registers)) {
			t.Errorf("%d workers, %d registers: %v, %v", c.n, c.registers, p, err)
		}
	}
	p, err := d.With(ThreadsPerBlock(192)).Explain(add1, Arange(1000))
	if err != nil || p.Block != Threads(192) || p.Grid != Blocks(6) {
		t.Error(p, err)
	}
	if s := d.With(ThreadsPerBlock(192), NumbaGeometry(63)).label(); s != "sim:quadro-k2000 with ThreadsPerBlock(192), NumbaGeometry(63)" {
		t.Error(s)
	}
	_, err = d.With(ThreadsPerBlock(2048)).Vectorize(add1, Arange(10))
	var ae *ArgumentError
	if !errors.As(err, &ae) || !strings.Contains(err.Error(), "2048 threads") || !strings.Contains(err.Error(), "1024") {
		t.Error(err)
	}
	same(t, "a thread for several workers", Must(d.With(ThreadsPerBlock(1)).Vectorize(add1, Arange(5))).Float64s(), []float64{1, 2, 3, 4, 5})
}

// More workers than the grid has threads: each goes on with the next ones.
func TestGridLimit(t *testing.T) {
	d := quadro(t)
	d.gpu.info.MaxGrid.X = 3
	x := Arange(1000)
	z := Must(d.Vectorize(add1, x))
	same(t, "last", z.At(999), 1000.0)
	same(t, "sum", z.Sum(), 500500.0)
	p, _ := d.Explain(add1, x)
	same(t, "grid", p.Grid, Blocks(3))
}

func TestExplainOnAGPU(t *testing.T) {
	d := quadro(t)
	x := make([]float64, 1000)
	p, err := d.Explain(add1, x)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []string{"PTX for sm_30, executed by the simulator (quadro-k2000)", "7.8125KB to the device, 7.8125KB back", "(8, 1, 1) blocks of (128, 1, 1) threads, the smallest", ".visible .entry add1(", ".target sm_30"} {
		if !strings.Contains(p.String(), s) {
			t.Errorf("the plan does not say %q:\n%v", s, p)
		}
	}
	if again, _ := d.Explain(add1, x); again.Code != p.Code {
		t.Error("the code is another one the next time")
	}
	if got := work(d, func() { d.Explain(add1, x); d.Explain(add1, Must(d.Put(x))) }); !slices.Equal(got, []string{"HtoD 8000"}) {
		t.Errorf("Explain did %q", got)
	}
	r, err := d.Explain(add1, Must(d.Put(x)))
	if err != nil || !strings.Contains(r.String(), "copies           0B to the device, 0B back") {
		t.Error(r, err)
	}
	r, err = d.ExplainGU(scaleRow, "(n),()->(n)", Arange(20).Reshape(4, 5), 2.0)
	if err != nil || strings.Contains(r.String(), "written to memory") || r.HtoD != 0 || r.BytesIn != 0 || r.DtoH != 160 {
		t.Error(r, err)
	}
	l, err := d.ExplainLaunch(blockSums, Blocks(4), Threads(256), Arange(1000), Zeros(4))
	if err != nil || l.Registers == 0 || !strings.Contains(l.Code, "bar.sync") {
		t.Error(l, err)
	}
	rec := work1(d, func() { Must(d.Vectorize(add1, x)) })
	if rec.Grid != [3]int{8, 1, 1} || rec.Block != [3]int{128, 1, 1} || rec.Registers != p.Registers || rec.Timing != trace.Simulated || rec.Device != "Quadro K2000" || rec.Counters["thread instructions"] < 1000 || rec.Duration <= 0 || rec.OnCPU {
		t.Errorf("%+v", rec)
	}
	// What facts tell apart is different code.
	y, _ := d.Explain(add1, FromSlice(x).Slice(0, 0, 1000, 2))
	if z, _ := d.Explain(add1, Arange(1000)); y.Code == p.Code || z.Code == p.Code || y.Code == z.Code {
		t.Error("one code for contiguous, strided and generated arguments")
	}
}

// The clock of a simulated device shows no time for what is not in the trace.
func TestTraceHasNoGaps(t *testing.T) {
	d := quadro(t)
	d.StartTrace()
	Must(d.Vectorize(idiv, []int{6, 5}, []int{3, 2}))
	d.Vectorize(idiv, []int{6, 5}, []int{0, 2})
	Must(d.Vectorize(add1, Arange(10)))
	var at time.Duration
	rs := d.StopTrace().Records
	for i, r := range rs {
		if r.Start != at || r.Timing != trace.Simulated {
			t.Errorf("record %d: %v, want it at %v", i, r, at)
		}
		at += r.Duration
	}
	if len(rs) != 9 {
		t.Errorf("%d records: %v", len(rs), rs)
	}
}

// work1 is the launch in what f does.
func work1(d *Device, f func()) (launch trace.Record) {
	d.StartTrace()
	f()
	for _, r := range d.StopTrace().Records {
		if r.Kind == trace.Launch {
			launch = r
		}
	}
	return launch
}

// One device for many goroutines, with arrays that come and go.
func TestOneGPUForAll(t *testing.T) {
	d := quadro(t)
	x := Must(d.Put(Arange(300)))
	var wg sync.WaitGroup
	for k := range 4 {
		wg.Go(func() {
			for i := range 10 {
				a, err := d.Put(Full(float64(k), 300))
				if err != nil {
					t.Error(err)
					return
				}
				z, err := d.Vectorize(add2, a, x)
				if err != nil || z.At(i) != float64(k+i) {
					t.Errorf("%v, %v", z, err)
				}
				a.Free()
				z.Free()
			}
		})
	}
	wg.Wait()
	for n := range 20 { // closed at any point of a call, the first of its kind or a later one
		d := MustOpen("sim:quadro-k2000")
		x := Must(d.Put(Arange(300)))
		for _, fn := range []any{add1, checkedHalf, twoFold} {
			wg.Go(func() {
				for {
					if _, err := d.Vectorize(fn, x); err != nil {
						if !errors.Is(err, ErrClosed) && !strings.Contains(err.Error(), "closed") {
							t.Error(err)
						}
						return
					}
				}
			})
		}
		time.Sleep(time.Duration(n) * 200 * time.Microsecond)
		d.Close()
		wg.Wait()
	}
	d.Close()
	if err := d.Sync(); !errors.Is(err, ErrClosed) {
		t.Error(err)
	}
}

// Large arrays are reduced where they are, with the bits of the host.
func TestReductionsOnTheDevice(t *testing.T) {
	d := quadro(t)
	wild := Must(MustOpen("cpu").Vectorize(math.Sin, Arange(40000))).Reshape(20, 2000)
	wild.store.setBits(31234, math.Float64bits(math.Copysign(0, -1)))
	for _, dt := range []DType{Float64, Float32, Int64, Uint64, Int32, Uint32, Int16, Uint16, Int8, Uint8, Bool} {
		host := wild
		if dt != Float64 {
			host = Must(MustOpen("cpu").Vectorize(product, wild, 1e30)).As(dt)
		}
		host = host.BroadcastTo(2, 20, 2000)
		on := Must(d.Put(host))
		for name, view := range map[string]func(a *Array) *Array{
			"whole":    func(a *Array) *Array { return a },
			"reversed": func(a *Array) *Array { return a.Slice(2, 1999, -2001, -1) },
			"part":     func(a *Array) *Array { return a.T().Slice(0, 0, 1800, 1) },
		} {
			if name != "part" && dt != Float64 {
				continue
			}
			h, g := view(host), view(on)
			var got []float64
			did := work(d, func() {
				got = []float64{g.Sum(), g.Min(), g.Max()}
			})
			if want := []float64{h.Sum(), h.Min(), h.Max()}; fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("%v %s: sum, min, max are %v, want %v", dt, name, got, want)
			}
			back := 0
			for _, x := range did {
				switch {
				case x == "DtoH 8":
					back++
				case !strings.HasPrefix(x, "launch"):
					t.Errorf("%v %s: %s", dt, name, x)
				}
			}
			if back != 3 {
				t.Errorf("%v %s: %q", dt, name, did)
			}
			for axis := range 3 {
				if name == "reversed" || dt != Float64 && (dt != Uint64 || axis != 0) {
					continue
				}
				a, b := g.Reduce(axis), h.Reduce(axis)
				if a.home() != d.core || a.DType() != b.DType() || !slices.Equal(a.Float64s(), b.Float64s()) {
					t.Errorf("%v %s: Reduce(%d) differs", dt, name, axis)
				}
				a.Free()
			}
		}
		on.Free()
	}
	if held(d) != 0 {
		t.Errorf("%d bytes are held", held(d))
	}
	x := Must(d.Put(Full(math.NaN(), 20000)))
	if !math.IsNaN(x.Min()) || !math.IsNaN(x.Max()) || !math.IsNaN(x.Sum()) {
		t.Error("NaN")
	}
}

func oneAfterTheOther(x []float64) {
	if i := simt.Grid1(); i > 0 {
		x[i] = x[i-1] + 1
	}
}

// What the simulator's checker finds is an error of the call, and so is a kernel
// without end.
func TestSimulatorErrors(t *testing.T) {
	d := quadro(t)
	want := func(name string, err error, words ...string) {
		t.Helper()
		var de *DeviceError
		if !errors.As(err, &de) {
			t.Errorf("%s: %v", name, err)
			return
		}
		for _, w := range words {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("%s: the error does not say %q:\n%v", name, w, err)
			}
		}
		same(t, name+", the next call", Must(d.Vectorize(add1, 1.0)).Item(), 2.0)
	}
	want("race", d.Launch(oneAfterTheOther, Blocks(1), Threads(64), Zeros(64)), "Launch on sim:quadro-k2000", "race", "gpu_test.go:", "thread (")
	want("no check", d.With(Unchecked()).Launch(saxpyUnguarded, Blocks(100), Threads(1024), 1.0, Zeros(64), Zeros(64)), "memory that is not its own", "launch_test.go:")
	d.gpu.steps = 10000
	want("no end", d.Launch(spin, Blocks(1), Threads(32), Zeros(1)), "ran too long")
	d.gpu.steps = 0
	err := d.With(SharedBytes(40<<10)).Launch(sharedHalves, Blocks(1), Threads(32), Zeros(32))
	if err != nil {
		t.Error(err)
	}
	var ae *ArgumentError
	err = d.With(SharedBytes(100<<10)).Launch(sharedHalves, Blocks(1), Threads(32), Zeros(32))
	if !errors.As(err, &ae) || !strings.Contains(err.Error(), "Quadro K2000") || !strings.Contains(err.Error(), "49152") {
		t.Error(err)
	}
}

func manyRegisters(x, out []float64) {
	i := simt.Grid1()
	a0 := x[i+0]
	a1 := x[i+1]
	a2 := x[i+2]
	a3 := x[i+3]
	a4 := x[i+4]
	a5 := x[i+5]
	a6 := x[i+6]
	a7 := x[i+7]
	a8 := x[i+8]
	a9 := x[i+9]
	a10 := x[i+10]
	a11 := x[i+11]
	a12 := x[i+12]
	a13 := x[i+13]
	a14 := x[i+14]
	a15 := x[i+15]
	a16 := x[i+16]
	a17 := x[i+17]
	a18 := x[i+18]
	a19 := x[i+19]
	a20 := x[i+20]
	a21 := x[i+21]
	a22 := x[i+22]
	a23 := x[i+23]
	a24 := x[i+24]
	a25 := x[i+25]
	a26 := x[i+26]
	a27 := x[i+27]
	a28 := x[i+28]
	a29 := x[i+29]
	a30 := x[i+30]
	a31 := x[i+31]
	a32 := x[i+32]
	a33 := x[i+33]
	a34 := x[i+34]
	a35 := x[i+35]
	a36 := x[i+36]
	a37 := x[i+37]
	a38 := x[i+38]
	a39 := x[i+39]
	s := 0.0
	s = s/a39 + a39
	s = s/a38 + a38
	s = s/a37 + a37
	s = s/a36 + a36
	s = s/a35 + a35
	s = s/a34 + a34
	s = s/a33 + a33
	s = s/a32 + a32
	s = s/a31 + a31
	s = s/a30 + a30
	s = s/a29 + a29
	s = s/a28 + a28
	s = s/a27 + a27
	s = s/a26 + a26
	s = s/a25 + a25
	s = s/a24 + a24
	s = s/a23 + a23
	s = s/a22 + a22
	s = s/a21 + a21
	s = s/a20 + a20
	s = s/a19 + a19
	s = s/a18 + a18
	s = s/a17 + a17
	s = s/a16 + a16
	s = s/a15 + a15
	s = s/a14 + a14
	s = s/a13 + a13
	s = s/a12 + a12
	s = s/a11 + a11
	s = s/a10 + a10
	s = s/a9 + a9
	s = s/a8 + a8
	s = s/a7 + a7
	s = s/a6 + a6
	s = s/a5 + a5
	s = s/a4 + a4
	s = s/a3 + a3
	s = s/a2 + a2
	s = s/a1 + a1
	s = s/a0 + a0
	out[i] = s
}

// A block of more threads than there are registers for.
func TestTooManyRegisters(t *testing.T) {
	d := MustOpen("sim:h200")
	defer d.Close()
	x, out := make([]float64, 2048), make([]float64, 2048)
	p, err := d.ExplainLaunch(manyRegisters, Blocks(1), Threads(1024), x, out)
	if err != nil || p.Registers <= 64 {
		t.Fatal(p.Registers, err)
	}
	largest := 65536 / p.Registers / 32 * 32
	err = d.Launch(manyRegisters, Blocks(1), Threads(1024), x, out)
	var ae *ArgumentError
	if !errors.As(err, &ae) {
		t.Fatal(err)
	}
	for _, w := range []string{fmt.Sprintf("%d registers", p.Registers), "1024 threads", "65536"} {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("the error does not say %q: %v", w, err)
		}
	}
	var fits int
	if _, after, ok := strings.Cut(err.Error(), "largest block that fits has "); !ok {
		t.Fatal(err)
	} else if _, err := fmt.Sscan(after, &fits); err != nil || fits > largest || fits < largest-128 {
		t.Errorf("%d threads are said to fit, %d might: %v", fits, largest, err)
	}
	if err := d.Launch(manyRegisters, Blocks(1), Threads(fits), x, out); err != nil {
		t.Error(err)
	}
}

// What one worker executes for each product of the thread's program: numba's kernel
// executes 15.4 instructions.
func TestOneWorkerInstructions(t *testing.T) {
	d := MustOpen("sim:quadro-k2000")
	defer d.Close()
	stored := func(a *Array) *Array { return FromFlat(a.Float64s(), a.Shape()...) }
	multBy, discount := stored(Arange(5000).Reshape(1000, 5)), stored(Arange(100000).Reshape(20, 1000, 5))
	d.StartTrace()
	Must(d.With(OneWorkerPerSlice()).GUVectorize(cVestDiscount14, "(),(m,o),(n,m,o),(),() -> (n,m,o)", 20, multBy, discount, 5, 1000))
	if n := float64(d.StopTrace().Counter("warp instructions")) / 100000; n > 7.5 {
		t.Errorf("%.2f warp instructions per product", n)
	}
}

func signAnd(x float64) (bool, float64) { return x < 0, x + 1 }

// Results of two types on a card lie apart, and so do arguments of other types.
func TestResultsOfTwoTypes(t *testing.T) {
	eachKind(t, func(t *testing.T, d *Device) {
		b, f := Must(d.Empty(Bool, 1000)), Must(d.Empty(Float64, 1000))
		if _, _, err := d.Vectorize2(signAnd, Arange(1000), Out(b, f)); err != nil {
			t.Fatal(err)
		}
		same(t, "element 999", f.At(999), 1000.0)
		if _, _, err := d.Vectorize2(func2, Arange(1000), Out(f, f)); err == nil {
			t.Error("one array for two results")
		}
	})
}

func func2(x float64) (float64, float64) { return x, x }
