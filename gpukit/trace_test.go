package gpukit

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"gpunotes/gpukit/host"
	"gpunotes/gpukit/internal/driver/sim"
	"gpunotes/gpukit/simt"
	"gpunotes/gpukit/trace"
)

// traced runs f under a trace of a new device.
func traced(t *testing.T, name string, f func(d *Device)) *trace.Trace {
	t.Helper()
	d := MustOpen(name)
	d.StartTrace()
	began := time.Now()
	f(d)
	took := time.Since(began)
	tr := d.StopTrace()
	at := time.Duration(0)
	for i, r := range tr.Records {
		if r.Kind != trace.Launch || r.Timing != trace.Measured || !r.OnCPU || r.Device != d.Name() || r.Duration <= 0 || r.Start < at || r.Start+r.Duration > took+time.Second {
			t.Errorf("record %d of %v: %+v", i, took, r)
		}
		if r.Registers != 0 || r.Size != 0 || r.Context != 0 || r.Stream != 0 || r.Counters != nil {
			t.Errorf("record %d knows more than it can: %+v", i, r)
		}
		at = r.Start
	}
	return tr
}

func sharedHalves(x []float64) {
	var half [32]float32
	simt.Shared(&half)
	dyn := simt.SharedFloat64()
	i := simt.ThreadIdx().X
	half[i], dyn[i] = float32(x[i]), x[i]
	simt.SyncThreads()
	x[i] = float64(half[31-i]) + dyn[i]
}

func scaleRow(x []float64, s float64, out []float64) {
	for i := range x {
		out[i] = x[i] * s
	}
}

func TestTraceOfLaunches(t *testing.T) {
	for _, name := range []string{"cpu", "parallel"} {
		tr := traced(t, name, func(d *Device) {
			x := Arange(1000).Reshape(10, 100)
			Must(d.Vectorize(add1, x))
			Must(d.GUVectorize(scaleRow, "(n),()->(n)", x, 2.0))
			y := make([]float64, 300)
			if err := d.Launch(saxpy, Blocks(3, 1, 1), Threads(128), 2.0, make([]float64, 300), y); err != nil {
				t.Fatal(err)
			}
			if err := d.With(SharedBytes(256)).Launch(sharedHalves, Blocks(1), Threads(32), make([]float64, 32)); err != nil {
				t.Fatal(err)
			}
		})
		want := []trace.Record{
			{Name: "add1"},
			{Name: "scaleRow"},
			{Name: "saxpy", Grid: [3]int{3, 1, 1}, Block: [3]int{128, 1, 1}},
			{Name: "sharedHalves", Grid: [3]int{1, 1, 1}, Block: [3]int{32, 1, 1}, StaticShared: 128, DynamicShared: 256},
		}
		if len(tr.Records) != len(want) {
			t.Fatalf("%d records:\n%v", len(tr.Records), tr)
		}
		for i, w := range want {
			r := tr.Records[i]
			got := trace.Record{Name: r.Name, Grid: r.Grid, Block: r.Block, StaticShared: r.StaticShared, DynamicShared: r.DynamicShared}
			if fmt.Sprint(got) != fmt.Sprint(w) || got.StaticShared != w.StaticShared || got.DynamicShared != w.DynamicShared {
				t.Errorf("record %d: %+v, want %+v", i, got, w)
			}
		}
		for _, s := range []string{"durations measured:", "CPU activities:", "(3 1 1)", "  256B ", "100.00%", "  sharedHalves\n"} {
			if s != "100.00%" && !strings.Contains(tr.String(), s) {
				t.Errorf("the tables do not say %q:\n%v", s, tr)
			}
		}
		if n := strings.Count(tr.HTML(), "<table"); n != 2 {
			t.Errorf("%d tables in a cell", n)
		}
	}
}

func TestTraceCountsWhatRan(t *testing.T) {
	tr := traced(t, "parallel", func(d *Device) {
		Must(d.Vectorize(add1, Zeros(0))) // no worker
		if _, err := d.Vectorize(idiv, []int{1, 2}, []int{1, 0}); err == nil {
			t.Error("no error")
		}
		if _, err := d.Vectorize(add1, "text"); err == nil {
			t.Error("no error")
		}
		if _, err := d.Explain(add1, 1.0); err != nil {
			t.Error(err)
		}
		Must(d.Vectorize(add1, 1.0))
	})
	if len(tr.Records) != 2 || tr.Records[0].Name != "idiv" || tr.Records[1].Name != "add1" {
		t.Errorf("%v", tr)
	}
	old := host.Current()
	defer host.Attach(old)
	tr = traced(t, "cpu", func(d *Device) {
		var asked atomic.Int64
		host.Attach(host.Host{Interrupted: func() bool { return asked.Add(1) > 3 }})
		if _, err := d.Vectorize(endless, 1.0); !errors.Is(err, ErrInterrupted) {
			t.Error(err)
		}
	})
	if len(tr.Records) != 1 {
		t.Errorf("of a stopped call: %v", tr)
	}
}

func TestTraceStates(t *testing.T) {
	d := MustOpen("cpu")
	run := func(d *Device) { Must(d.Vectorize(add1, 1.0)) }
	empty := func(when string, tr *trace.Trace, words ...string) {
		t.Helper()
		if tr == nil || len(tr.Records) != 0 {
			t.Fatalf("%s: %v", when, tr)
		}
		for _, w := range words {
			if !strings.Contains(tr.String(), w) || !strings.Contains(tr.HTML(), w) {
				t.Errorf("%s: %q does not say %q", when, tr, w)
			}
		}
	}
	run(d)
	empty("before StartTrace", d.StopTrace(), "No trace of", "cpu", "StartTrace")
	d.StartTrace()
	empty("nothing ran", d.StopTrace(), "nothing ran")
	d.StartTrace()
	run(d)
	d.StartTrace()
	run(d)
	run(d.With(FastMath()))
	tr := d.With(Unchecked()).StopTrace()
	if len(tr.Records) != 2 {
		t.Errorf("a second StartTrace begins anew, variants share the trace: %v", tr)
	}
	empty("a second StopTrace", d.StopTrace(), "No trace of")
	run(d)
	if len(tr.Records) != 2 {
		t.Error("a trace that was returned still grows")
	}
	d.StartTrace()
	run(d)
	d.Close()
	if tr := d.StopTrace(); len(tr.Records) != 1 {
		t.Errorf("of a device that was closed: %v", tr)
	}
	var none *Device
	none.StartTrace()
	empty("nil device", none.StopTrace(), "the device is nil")
	(&Device{}).StartTrace()
	empty("zero device", (&Device{}).StopTrace(), "the device is nil")
}

// What began under one trace does not end up in the next.
func TestTraceRestartedDuringACall(t *testing.T) {
	d := MustOpen("cpu")
	d.StartTrace()
	old := d.recording()
	start := old.elapsed()
	d.StartTrace()
	old.add(trace.Record{Kind: trace.Launch, Name: "old", Start: start})
	d.recording().add(trace.Record{Kind: trace.HtoD, Start: 2})
	d.recording().add(trace.Record{Kind: trace.DtoH, Start: 1})
	last := d.recording()
	tr := d.StopTrace()
	last.add(trace.Record{Kind: trace.Launch, Name: "late"})
	d.recording().add(trace.Record{Kind: trace.Launch, Name: "later"})
	if len(tr.Records) != 2 || tr.Records[0].Kind != trace.DtoH {
		t.Errorf("%+v", tr.Records)
	}
	if last.records != nil {
		t.Error("a stopped recording still grows")
	}
}

func TestTraceIsBounded(t *testing.T) {
	d := MustOpen("cpu")
	d.StartTrace()
	for range maxRecords + 3 {
		d.recording().add(trace.Record{Kind: trace.Launch, Name: "f"})
	}
	tr := d.StopTrace()
	if len(tr.Records) != maxRecords || !strings.Contains(tr.Note, "3 records after these 262144") {
		t.Errorf("%d records, %q", len(tr.Records), tr.Note)
	}
}

// Counter knows what the simulator counts, all of it and nothing else.
func TestCounterNames(t *testing.T) {
	s := &sim.Stats{TakenBranches: 1, Divergences: 1, Resident: 1, Memory: &sim.MemoryCounts{AtomicConflicts: 1, L2Writes: 1, Bursts: 1, Activations: 1}}
	s.Warps, s.Lanes = 1, 1
	for k := range s.Classes {
		s.Classes[k].Warps = 1
	}
	m := s.Memory
	m.L1, m.L2 = sim.Hits{Hits: 1, Misses: 1}, sim.Hits{Hits: 1, Misses: 1}
	m.Global[0].Lines, m.Shared[0].Conflicts = 1, 1
	all := simCounters(s)
	var empty trace.Trace
	for name := range all {
		if n := empty.Counter(name); n != 0 {
			t.Errorf("trace.Counter does not know %q: %d", name, n)
		}
	}
	text, err := os.ReadFile("trace/trace.go")
	if err != nil {
		t.Fatal(err)
	}
	_, list, _ := strings.Cut(string(text), "counters = []string{")
	list, _, _ = strings.Cut(list, ")\n")
	if n := strings.Count(list, `"`) / 2; n != len(all) {
		t.Errorf("trace.Counter knows %d names, the simulator %d", n, len(all))
	}
	doc := strings.Join(strings.Fields(strings.ReplaceAll(string(text), "\n//", " ")), " ")
	_, doc, _ = strings.Cut(doc, "Its name is one of")
	for name := range all {
		name = strings.TrimPrefix(name, "warp instructions, ")
		if !strings.Contains(doc, " "+name+",") && !strings.Contains(doc, " "+name+" or ") && !strings.Contains(doc, "("+name+",") && !strings.Contains(doc, " "+name+" (") &&
			!strings.Contains(doc, " "+name+")") && !strings.Contains(doc, " "+name+".") {
			t.Errorf("the doc of trace.Counter does not name %q", name)
		}
	}
}

func TestTraceConcurrently(t *testing.T) {
	d := MustOpen("parallel")
	const each, goroutines = 50, 4
	var wg sync.WaitGroup
	work := func() {
		for range goroutines {
			wg.Go(func() {
				for range each {
					Must(d.Vectorize(add1, 1.0))
				}
			})
		}
	}
	d.StartTrace()
	work()
	wg.Wait()
	if tr := d.StopTrace(); len(tr.Records) != each*goroutines {
		t.Errorf("%d records of %d", len(tr.Records), each*goroutines)
	}
	work()
	seen := 0
	for range 200 {
		d.StartTrace()
		seen += len(d.StopTrace().Records)
	}
	wg.Wait()
	if seen > each*goroutines {
		t.Errorf("%d records of %d", seen, each*goroutines)
	}
}
