package gpukit

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"gpunotes/gpukit/internal/ir"
	"gpunotes/gpukit/internal/shape"
	"gpunotes/gpukit/trace"
)

// StartTrace begins to record what the device does, on this Device and on all
// variants made by With, until StopTrace: every launch and every copy between
// host and device, with its time. On "cpu" and "parallel" that is the launches,
// and their measured times, without compiling; a launch that fails is recorded
// too, one without workers is not. On a GPU it is launches, copies and fills that
// were carried out, on the clock of the device, which begins with the first of
// them; what the self-check reads and the word that tells of a failing worker are
// left out. If a trace is running already, its records are
// dropped and a new one begins. Of a nil device it does nothing.
func (d *Device) StartTrace() {
	if d == nil || d.core == nil {
		return
	}
	d.recorder.Store(&recording{began: time.Now()})
}

// StopTrace ends the recording and returns it; as the last line of a cell it
// shows two tables as nvprof does. Calls that are still running are not in it.
// Without StartTrace, and of a nil device, it returns a trace without records
// that says so; it is never nil. A trace holds the first 262144 records, and says
// so if there were more.
func (d *Device) StopTrace() *trace.Trace {
	if d == nil || d.core == nil {
		return &trace.Trace{Note: "Nothing was traced: " + d.usable("StopTrace").Error() + "."}
	}
	if d.gpu != nil && !d.closed.Load() {
		d.gpu.sync() // what fails is the error of the call that it belongs to
	}
	r := d.recorder.Swap(nil)
	if r == nil {
		return &trace.Trace{Note: fmt.Sprintf("No trace of %q was running: call StartTrace before what is to be recorded, and StopTrace after it.", d.name)}
	}
	return r.stop()
}

// maxRecords bounds the memory of a trace that nobody stops: some 60 MB.
const maxRecords = 1 << 18

// recording is a trace that is running. Whoever records takes it before the work
// and adds to it afterwards, so that what was begun under one trace never ends up
// in the next. Methods of a nil recording do nothing.
type recording struct {
	began   time.Time
	mu      sync.Mutex
	stopped bool
	records []trace.Record
	lost    int // records after the first maxRecords
}

// recording returns the trace that is running, nil if there is none.
func (d *Device) recording() *recording { return d.recorder.Load() }

// elapsed is the time since the trace began.
func (r *recording) elapsed() time.Duration {
	if r == nil {
		return 0
	}
	return time.Since(r.began)
}

// add adds x, whose Start is the time since elapsed was 0.
func (r *recording) add(x trace.Record) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.stopped:
	case len(r.records) == maxRecords:
		r.lost++
	default:
		r.records = append(r.records, x)
	}
}

// stop hands over the records by start.
func (r *recording) stop() *trace.Trace {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stopped = true
	t := &trace.Trace{Records: r.records}
	r.records = nil
	slices.SortStableFunc(t.Records, func(a, b trace.Record) int { return int(max(-1, min(1, a.Start-b.Start))) })
	if r.lost > 0 {
		t.Note = fmt.Sprintf("The trace is full: %d records after these %d were left out. Trace a shorter part.", r.lost, maxRecords)
	}
	return t
}

// timed runs a stage of a call on cores and records it as one launch.
func (d *Device) timed(c *call, s *stage, run func() error) error {
	rec := d.recording()
	if n, ok := shape.Size(c.loop); rec == nil || ok && n == 0 {
		return run()
	}
	start := rec.elapsed()
	err := run()
	r := c.launchRecord(d)
	r.Name = s.name
	r.Start, r.Duration, r.Timing = start, rec.elapsed()-start, trace.Measured
	r.Device, r.OnCPU = d.name, true
	rec.add(r)
	return err
}

// launchRecord is what is known of a launch before it runs: the name and, of
// Launch, grid, block and shared memory.
func (c *call) launchRecord(d *Device) trace.Record {
	r := trace.Record{Kind: trace.Launch, Name: c.fn.name}
	if c.block.X == 0 {
		return r
	}
	r.Grid, r.Block = [3]int{c.grid.X, c.grid.Y, c.grid.Z}, [3]int{c.block.X, c.block.Y, c.block.Z}
	for _, m := range c.prog.ir.Mems {
		switch {
		case m.Space != ir.Shared:
		case m.Len == 0:
			r.DynamicShared = d.options.sharedBytes
		default:
			r.StaticShared += m.Len * m.Elem.Size()
		}
	}
	return r
}
