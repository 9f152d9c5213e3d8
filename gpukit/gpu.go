package gpukit

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"gpunotes/gpukit/internal/driver"
	"gpunotes/gpukit/trace"
)

// gpu is an opened card, real or simulated. Whatever it is comes through package
// driver, so that nothing here tells the two apart.
type gpu struct {
	name   string // as opened
	dev    driver.Device
	info   driver.Info
	source string // what executes the code: "the simulator (quadro-k2000)"
	steps  uint64 // instructions of a warp that a launch may take, if not 0
	// counters gives the numbers of a driver's Stats their names; nil if there
	// are none.
	counters func(stats any) map[string]int64
	pool     pool

	recorder *atomic.Pointer[recording] // the device's

	mu      sync.Mutex // one call, one copy at a time
	streams int
	cancel  driver.Ptr // the word that ends kernels, 0 if the device asks by itself
	failure driver.Ptr // the words in which failing workers leave their numbers
	dirty   bool       // there may be some in them
	staging staging
	idle    bool        // all that was begun is done
	busy    []*variant  // code that may still run
	stop    func() bool // whether the call that has locked the device is to end, if it can be

	notes struct {
		sync.Mutex               // the driver reports when it likes
		traced     *recording    // that it reports to
		pending    []*note       // what it has still to report
		offset     time.Duration // of its clock when the trace began
		hasBase    bool
	}
}

// note says what a report of the driver is about.
type note struct {
	hidden bool // the work of gpukit itself
	record trace.Record
}

// openGPU makes a device of a driver's device i.
func openGPU(name, source string, d driver.Driver, i int) (*gpu, error) {
	dev, err := d.Open(i)
	if err != nil {
		return nil, err
	}
	g := &gpu{name: name, dev: dev, info: dev.Info(), source: source, streams: dev.Streams(), cancel: dev.CancelWord()}
	g.pool.dev, g.staging.dev = dev, dev
	if g.failure, err = dev.Alloc(failureBytes); err == nil {
		err = dev.Fill(g.failure, 0xff, failureBytes)
	}
	if err != nil {
		dev.Close()
		return nil, err
	}
	if !g.info.Simulated {
		g.pool.share(g.info.UUID + g.info.PCI)
	}
	whenOpened(g)
	return g, nil
}

// whenOpened is told of every card that is opened: tests count what is left.
var whenOpened = func(*gpu) {}

// device is the card as a Device.
func (g *gpu) device() *Device {
	d := &Device{core: &core{name: g.name, gpu: g, engine: gpuEngine{g}}}
	g.recorder = &d.recorder
	return d
}

// A call that is done in parts has a word for each part that may be under way.
const (
	failureWords = 64
	failureBytes = 8 * failureWords
)

// close ends the use of the card; a running kernel has been told to end.
func (g *gpu) close() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	lost := g.dev.Lost() != nil
	if !lost {
		g.wait()
	}
	g.pool.close()
	g.staging.done()
	g.staging.empty()
	if err := g.dev.Close(); err != nil && !lost { // of a lost device everything is gone anyway
		return err
	}
	return nil
}

// DeviceError says that a GPU or its driver could not do what a call needs. The
// device and the next call are not affected, but where Err says so.
type DeviceError struct {
	Op     string // the call, e.g. "Vectorize"
	Device string // as opened, e.g. "sim:quadro-k2000"
	Err    error  // the driver's
	lost   bool
}

// Error names call and device, what is wrong in words, and CUDA's name of it.
func (e *DeviceError) Error() string {
	s := fmt.Sprintf("gpukit.%s on %s: %s", e.Op, e.Device, e.words())
	if e.lost {
		s += "; the device is lost: close it and open it again"
	}
	return s
}

// Unwrap returns Err.
func (e *DeviceError) Unwrap() error { return e.Err }

// Is reports whether target is ErrOutOfMemory and the device had too little.
func (e *DeviceError) Is(target error) bool {
	return target == ErrOutOfMemory && errors.Is(e.Err, driver.OutOfMemory)
}

// ErrOutOfMemory is, for errors.Is, what a call fails with that needs more memory
// than a GPU has. The device can be used as before.
var ErrOutOfMemory = errors.New("gpukit: out of device memory")

func (e *DeviceError) words() string {
	var d *driver.Error
	if !errors.As(e.Err, &d) {
		return e.Err.Error()
	}
	what := map[driver.Code]string{
		driver.OutOfMemory:           "out of device memory",
		driver.InvalidPTX:            "the driver does not take the code",
		driver.UnsupportedPTXVersion: "the code is too new for the driver",
		driver.NoBinaryForGPU:        "the code is for a newer device",
		driver.IllegalAddress:        "the kernel used memory that is not its own",
		driver.MisalignedAddress:     "the kernel used a misaligned address",
		driver.LaunchOutOfResources:  "the launch needs more than a multiprocessor has",
		driver.LaunchTimeout:         "the kernel ran too long and was ended",
		driver.LaunchFailed:          "the kernel failed",
	}[d.Code]
	if what == "" {
		return d.Error()
	}
	s := what
	if d.Detail != "" {
		s += ": " + d.Detail
	}
	if d.Place != nil && d.Cause == nil { // what the checker says has its places in it
		s += ", at " + d.Place.String()
	}
	if d.Log != "" {
		s += "\n" + d.Log
	}
	return s + fmt.Sprintf(" (%v)", d.Code)
}

// fault is the error of a call that the driver could not do.
func (g *gpu) fault(op string, err error) error {
	var own *DeviceError
	if err == nil || errors.As(err, &own) {
		return err
	}
	return &DeviceError{Op: op, Device: g.name, Err: err, lost: g.dev.Lost() != nil}
}

// What is begun here may go on when the call that began it returns: the device does
// it in order, so that a later call sees what an earlier one left. Who needs a result
// waits.

// lock makes the card the caller's, until the function that it returns is called.
func (g *gpu) lock() (unlock func()) {
	g.mu.Lock()
	g.observe(g.recorder.Load())
	return g.unlock
}

func (g *gpu) unlock() {
	g.stop = nil
	g.settle()
	g.mu.Unlock()
}

// sync waits until all is done.
func (g *gpu) sync() error {
	defer g.lock()()
	return g.wait()
}

// wait waits until all is done, and returns what failed. It is for who has locked
// the device, as are all below.
func (g *gpu) wait() error {
	err := g.dev.Sync()
	g.idle = true
	clear(g.busy)
	g.busy = g.busy[:0]
	g.notes.Lock()
	g.notes.pending = nil // what was not reported never will be
	g.notes.Unlock()
	return err
}

// settle takes back the host memory that copies used: it is the end of all that
// copies. No copy may go on, whatever has failed.
func (g *gpu) settle() {
	if len(g.staging.used) > 0 {
		if !g.idle {
			g.wait()
		}
		g.staging.done()
	}
}

// stopped reports whether the user has pressed Stop, or Close was called.
func (g *gpu) stopped() bool { return g.stop != nil && g.stop() }

// observe makes the driver report to the trace that is running, if any.
func (g *gpu) observe(r *recording) {
	n := &g.notes
	n.Lock()
	old := n.traced
	n.Unlock()
	if r == old {
		return
	}
	if !g.idle {
		g.wait() // reports of what was begun belong to the other trace, or to none
	}
	n.Lock()
	n.traced, n.pending, n.hasBase = r, nil, false
	n.Unlock()
	if r == nil {
		g.dev.Record(nil)
	} else {
		g.dev.Record(g.report)
	}
}

// The driver reports copies and launches in the order of the calls that began them:
// each call leaves a note of what the report will be about.

// expect leaves a note.
func (g *gpu) expect(n note) *note {
	g.idle = false
	g.notes.Lock()
	defer g.notes.Unlock()
	if g.notes.traced == nil {
		return nil
	}
	m := &note{n.hidden, n.record}
	g.notes.pending = append(g.notes.pending, m)
	return m
}

// unless takes the note back if nothing was done: then nothing is reported.
func (g *gpu) unless(n *note, err error) error {
	if err != nil && n != nil {
		g.notes.Lock()
		defer g.notes.Unlock()
		if i := len(g.notes.pending) - 1; i >= 0 && g.notes.pending[i] == n {
			g.notes.pending = g.notes.pending[:i]
		}
	}
	return err
}

// report takes a record of the driver.
func (g *gpu) report(x driver.Record) {
	g.notes.Lock()
	defer g.notes.Unlock()
	t := &g.notes
	if len(t.pending) == 0 {
		return
	}
	n := t.pending[0]
	t.pending = t.pending[1:]
	if n.hidden {
		if x.Simulated {
			t.offset += x.Duration // as if it had not been
		}
		return
	}
	if !t.hasBase { // the clock of the trace begins with what it sees first
		t.hasBase, t.offset = true, x.Start
	}
	r := n.record
	r.Start, r.Duration, r.Timing = x.Start-t.offset, x.Duration, trace.Measured
	if x.Simulated {
		r.Timing = trace.Simulated
	}
	r.Device, r.Context, r.Stream = g.info.Name, 1, int(x.Stream)
	host := trace.Pageable
	if x.Pinned {
		host = trace.Pinned
	}
	switch x.Op {
	case driver.HostToDevice:
		r.Kind, r.Src, r.Dst = trace.HtoD, host, trace.Device
	case driver.DeviceToHost:
		r.Kind, r.Src, r.Dst = trace.DtoH, trace.Device, host
	case driver.DeviceToDevice:
		r.Kind, r.Src, r.Dst = trace.DtoD, trace.Device, trace.Device
	case driver.Memset:
		r.Kind, r.Dst = trace.Memset, trace.Device
	case driver.Kernel:
		r.Kind = trace.Launch
		dims := func(d driver.Dim) [3]int { return [3]int{d.X, d.Y, d.Z} }
		r.Grid, r.Block = dims(x.Launch.Grid), dims(x.Launch.Block)
		r.Registers, r.StaticShared, r.DynamicShared = x.Attributes.Registers, x.Attributes.Shared, x.Launch.Shared
		if g.counters != nil && x.Stats != nil {
			r.Counters = g.counters(x.Stats)
		}
	}
	r.Size = int64(x.Bytes)
	t.traced.add(r)
}

// startIn, startOut, copyWithin and fill are the driver's, noted.
func (g *gpu) startIn(s driver.Stream, dst driver.Ptr, src []byte) error {
	return g.unless(g.expect(note{}), g.dev.StartIn(s, dst, src))
}

func (g *gpu) startOut(s driver.Stream, dst []byte, src driver.Ptr, hidden bool) error {
	return g.unless(g.expect(note{hidden: hidden}), g.dev.StartOut(s, dst, src))
}

func (g *gpu) copyWithin(dst, src driver.Ptr, n int) error {
	if n == 0 {
		return nil
	}
	return g.unless(g.expect(note{}), g.dev.Copy(dst, src, uint64(n)))
}

func (g *gpu) fill(dst driver.Ptr, value byte, n int, hidden bool) error {
	if n == 0 {
		return nil
	}
	return g.unless(g.expect(note{hidden: hidden}), g.dev.Fill(dst, value, uint64(n)))
}

// copyIn and copyOut copy a few bytes at once.
func (g *gpu) copyIn(dst driver.Ptr, src []byte, hidden bool) error {
	return g.unless(g.expect(note{hidden: hidden}), g.dev.CopyIn(dst, src))
}

func (g *gpu) copyOut(dst []byte, src driver.Ptr, hidden bool) error {
	return g.unless(g.expect(note{hidden: hidden}), g.dev.CopyOut(dst, src))
}

// alloc gives n bytes.
func (g *gpu) alloc(n int) (b *block, err error) {
	err = g.roomFor(func() error {
		b, err = g.pool.get(n)
		return err
	})
	return b, err
}

// load loads a module.
func (g *gpu) load(image []byte) (m driver.Module, err error) {
	err = g.roomFor(func() error {
		m, err = g.dev.Load(image)
		return err
	})
	return m, err
}

// roomFor does what takes memory. Where it runs out, what is cached and what nobody
// holds any more is given back first, and then it is tried once more.
func (g *gpu) roomFor(f func() error) error {
	err := f()
	if errors.Is(err, driver.OutOfMemory) {
		runtime.GC()
		if e := g.pool.reclaim(); e != nil {
			return e
		}
		if err = f(); errors.Is(err, driver.OutOfMemory) {
			g.pool.reclaimOthers()
			err = f()
		}
	}
	return err
}
