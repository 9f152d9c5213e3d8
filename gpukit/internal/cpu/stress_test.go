package cpu

import (
	"bytes"
	"compress/gzip"
	"errors"
	"flag"
	"fmt"
	"io"
	"reflect"
	"runtime"
	"runtime/debug"
	"runtime/pprof"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"gpunotes/gpukit/internal/codegen/amd64"
	"gpunotes/gpukit/internal/frontend"
	"gpunotes/gpukit/internal/ir"
	"gpunotes/gpukit/internal/ir/irtest"
)

var stressTime = flag.Duration("stress", time.Second, "how long TestStress takes")

// tree is what the garbage collector has to follow.
type tree struct {
	left, right *tree
	data        [4]int
}

func grow(depth int) *tree {
	if depth == 0 {
		return &tree{}
	}
	return &tree{left: grow(depth - 1), right: grow(depth - 1)}
}

// stack grows the stack of the goroutine, and uses it.
func stack(depth int) int {
	var pad [256]byte
	if depth == 0 {
		return int(pad[0])
	}
	pad[depth%256] = byte(depth)
	return stack(depth-1) + int(pad[(depth+1)%256])
}

// TestStress runs code from goroutines whose stacks grow, while others make garbage
// that is collected all the time, under a CPU profile, with more processors than there
// are. What comes out must have the same bits every time.
func TestStress(t *testing.T) {
	type job struct {
		p    *Program
		l    Launch
		want []any
	}
	var jobs []job
	d := newDice(5)
	add := func(f *ir.Func, l func() Launch) {
		for _, e := range machines(t) {
			p, err := Compile(f, Options{Engine: e, Body: frontend.OutlinedBody})
			if err != nil {
				t.Fatal(err)
			}
			j := job{p: p, l: l()}
			runs(t, p, &j.l)
			if err := p.Run(j.l); err != nil {
				t.Fatal(err)
			}
			for _, o := range j.l.Out {
				j.want = append(j.want, o.Data)
			}
			jobs = append(jobs, j)
		}
	}
	const n = 3000
	x, y := floats64(n, func(i int) float64 { return 29 + float64(i%100)/50 }), floats64(n, func(i int) float64 { return 99 + float64(i/100)/15 })
	add(ir.Optimize(distance()), func() Launch {
		return Launch{Shape: []int{n}, In: []Operand{flat(x, ir.F64), flat(y, ir.F64), scalarF64(30), scalarF64(101), scalarF64(1)}, Out: []Operand{flat(make([]float64, n), ir.F64)}}
	})
	add(ir.Optimize(irtest.Mandelbrot()), func() Launch {
		return Launch{Shape: []int{n}, In: []Operand{flat(floats64(n, func(i int) float64 { return -2 + float64(i%60)/25 }), ir.F64), flat(floats64(n, func(i int) float64 { return -1 + float64(i/60)/25 }), ir.F64), {Type: ir.I64, Scalar: 500}}, Out: []Operand{flat(make([]int64, n), ir.I64)}}
	})
	for i := range 4 {
		f := irtest.Random(d.Rand, fmt.Sprint("stress ", i), irtest.Options{})
		add(f, func() Launch {
			l := Launch{Shape: []int{300}}
			for _, p := range f.Params {
				l.In = append(l.In, array(f.Types[p.Value], 300, func(int) ir.Bits { return d.value(f.Types[p.Value]) }))
			}
			l.Out = results(f, 300)
			return l
		})
	}
	defer debug.SetGCPercent(debug.SetGCPercent(1))
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(8))
	// The package complains that it cannot set its own rate, and goes on at ours.
	runtime.SetCPUProfileRate(1000)
	if err := pprof.StartCPUProfile(io.Discard); err != nil {
		t.Log("another profile: ", err)
	} else {
		defer pprof.StopCPUProfile()
	}
	var stop atomic.Bool
	var wg sync.WaitGroup
	var ran atomic.Int64
	for g := range 64 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			keep := []*tree{}
			for k := g; !stop.Load(); k++ {
				switch g % 8 {
				case 6:
					keep = append(keep[:min(len(keep), 3)], grow(8))
					continue
				case 7:
					runtime.GC()
					continue
				}
				j := &jobs[k%len(jobs)]
				stack(k * 7 % 200)
				l := j.l
				l.Goroutines = 1 + k%3
				l.Out = nil
				for _, o := range j.l.Out {
					o.Data = makeData(o.Type, reflect.ValueOf(o.Data).Len())
					l.Out = append(l.Out, o)
				}
				if err := j.p.Run(l); err != nil {
					t.Error(err)
					return
				}
				for i, o := range l.Out {
					for w := range workers(l.Shape) {
						if a, b := get(o.Data, o.Type, w), get(j.want[i], o.Type, w); a != b && ir.Canonical(o.Type, a) != ir.Canonical(o.Type, b) {
							t.Errorf("%s: worker %d gave %x, now %x", j.p.f.Name, w, b, a)
							return
						}
					}
				}
				ran.Add(1)
			}
			runtime.KeepAlive(keep)
		}()
	}
	time.Sleep(*stressTime)
	stop.Store(true)
	wg.Wait()
	if ran.Load() < 10 {
		t.Errorf("only %d runs", ran.Load())
	}
	t.Logf("%d runs", ran.Load())
}

// endless is a function whose workers with an odd argument never end.
func endless() *ir.Func {
	return oneArg("endless", func(b *ir.Builder, x ir.Value) {
		r := b.Loop([]ir.Value{x}, []ir.Type{ir.I64}, func(c []ir.Value) {
			b.If(b.Op(ir.OpEq, b.Op(ir.OpAnd, c[0], i64(b, 1)), i64(b, 0)), nil, func() { b.Break(1, c[0]) }, func() { b.Yield() })
			b.Yield(b.Op(ir.OpAdd, c[0], i64(b, 2)))
		})
		b.Yield(r[0])
	})
}

// TestStop cancels loops without end, on one goroutine and on several.
func TestStop(t *testing.T) {
	for _, e := range Engines() {
		p := machineOf(t, endless(), e)
		for _, g := range []int{1, 4} {
			var stop atomic.Bool
			l := Launch{Shape: []int{1000}, In: []Operand{array(ir.I64, 1000, func(i int) ir.Bits { return ir.Bits(i % 3) })}, Out: results(p.f, 1000), Goroutines: g, Cancelled: stop.Load}
			if e != Portable {
				runs(t, p, &l)
			}
			done := make(chan error)
			go func() { done <- p.Run(l) }()
			time.Sleep(20 * time.Millisecond)
			runtime.GC() // must not wait for the loop
			begin := time.Now()
			stop.Store(true)
			select {
			case err := <-done:
				if !errors.Is(err, ErrCancelled) {
					t.Errorf("%v: %v", e, err)
				}
			case <-time.After(10 * time.Second):
				t.Fatalf("%v, %d goroutines: still running", e, g)
			}
			if took := time.Since(begin); took > 2*time.Second {
				t.Errorf("%v: it took %v", e, took)
			}
			l.In[0] = array(ir.I64, 1000, func(i int) ir.Bits { return ir.Bits(2 * i) })
			if err := compare(p, Launch{Shape: l.Shape, In: l.In, Out: l.Out}, evaluate(p.f, &l)); err != nil {
				t.Errorf("%v, afterwards: %v", e, err)
			}
		}
	}
}

// TestCompiledOnce lets many goroutines ask for the same code.
func TestCompiledOnce(t *testing.T) {
	p := emptyCode(t, mixed())
	var loads atomic.Int64
	load := p.native.load
	p.native.load = func(k *amd64.Kernel, target amd64.Target, o amd64.Options) (*Native, error) {
		loads.Add(1)
		return load(k, target, o)
	}
	var wg sync.WaitGroup
	for range 20 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for _, n := range []int{3, 100, 5000} {
				l := Launch{Shape: []int{n}}
				for _, q := range p.f.Params {
					l.In = append(l.In, array(p.f.Types[q.Value], n, nil))
				}
				l.Out = results(p.f, n)
				if err := p.Run(l); err != nil {
					t.Error(err)
				}
			}
		}()
	}
	wg.Wait()
	if loads.Load() != 2 { // rows of 3, and long ones
		t.Errorf("compiled %d times", loads.Load())
	}
}

// TestWildIndex: an index out of range, where checks were left out, ends the run and
// not the process, and the next run works.
func TestWildIndex(t *testing.T) {
	f := ir.NewFunc("wild", ir.F64)
	a := f.AddArray("a", ir.F64, 1)
	i := f.AddParam("i", ir.I64)
	b := ir.NewBuilder(f)
	b.Yield(b.Load(a.Mem, b.Op(ir.OpAdd, a.Offset, i)))
	for _, e := range Engines() {
		p := machineOf(t, f, e)
		number := func(x int64) Operand { return Operand{Type: ir.I64, Scalar: ir.Bits(x)} }
		l := Launch{Shape: []int{20}, In: []Operand{number(0), number(3), number(1), array(ir.I64, 20, func(i int) ir.Bits {
			if i == 13 {
				return 1 << 44
			}
			return 1
		})}, Out: results(f, 20), Mems: []any{[]float64{5, 6, 7}}, Goroutines: 1}
		if e != Portable {
			runs(t, p, &l)
		}
		if err := p.Run(l); err == nil || errors.As(err, new(*WorkerError)) {
			t.Errorf("%v: %v", e, err)
		}
		l.In[3] = number(2)
		if err := p.Run(l); err != nil || l.Out[0].Data.([]float64)[19] != 7 {
			t.Errorf("%v: %v, %v", e, err, l.Out[0].Data)
		}
	}
}

// TestProfileLabels finds the name of a kernel in a CPU profile.
func TestProfileLabels(t *testing.T) {
	f := irtest.Mandelbrot()
	f.Name = "seahorse"
	p := machineOf(t, f, machines(t)[0])
	const n = 200_000
	same := func(v float64) Operand { return flat(floats64(n, func(int) float64 { return v }), ir.F64) }
	l := Launch{Shape: []int{n}, In: []Operand{same(-0.1), same(0.1), {Type: ir.I64, Scalar: 1000}}, Out: results(f, n), Goroutines: 2}
	var prof bytes.Buffer
	if err := pprof.StartCPUProfile(&prof); err != nil {
		t.Skip(err)
	}
	for begin := time.Now(); time.Since(begin) < 300*time.Millisecond; {
		if err := p.Run(l); err != nil {
			t.Fatal(err)
		}
	}
	pprof.StopCPUProfile()
	z, err := gzip.NewReader(&prof)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(text, []byte("seahorse")) {
		t.Error("the name of the kernel is not in the profile")
	}
}
