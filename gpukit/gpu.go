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

	mu      sync.Mutex    // one call, one copy at a time
	cancel  driver.Ptr    // the word that ends kernels, 0 if the device asks by itself
	failure driver.Ptr    // the word in which a failing worker leaves its number
	staging []byte        // the last copy's host memory
	traced  *recording    // that the driver reports to
	pending []note        // what it has still to report
	offset  time.Duration // of the driver's clock when the trace began
	hasBase bool
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
	g := &gpu{name: name, dev: dev, info: dev.Info(), source: source}
	g.pool.dev = dev
	if g.failure, err = dev.Alloc(failureBytes); err == nil {
		err = dev.Fill(g.failure, 0xff, failureBytes)
	}
	if err != nil {
		dev.Close()
		return nil, err
	}
	return g, nil
}

// device is the card as a Device.
func (g *gpu) device() *Device {
	d := &Device{core: &core{name: g.name, gpu: g, engine: gpuEngine{g}}}
	g.recorder = &d.recorder
	return d
}

const failureBytes = 8

// close ends the use of the card; a running kernel has been told to end.
func (g *gpu) close() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.pool.close()
	return g.dev.Close()
}

// DeviceError says that a GPU or its driver could not do what a call needs. The
// device and the next call are not affected, but where Err says so.
type DeviceError struct {
	Op     string // the call, e.g. "Vectorize"
	Device string // as opened, e.g. "sim:quadro-k2000"
	Err    error  // the driver's
}

// Error names call and device, what is wrong in words, and CUDA's name of it.
func (e *DeviceError) Error() string {
	return fmt.Sprintf("gpukit.%s on %s: %s", e.Op, e.Device, e.words())
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
	if d.Place != nil {
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
	if lost := g.dev.Lost(); lost != nil {
		err = fmt.Errorf("%w; the device is lost: close it and open it again", err)
	}
	return &DeviceError{Op: op, Device: g.name, Err: err}
}

// The driver reports copies and launches in the order in which they ran, which is
// that of the calls: each call leaves a note of what the report is about.

// lock makes the card the caller's, until the function that it returns is called.
func (g *gpu) lock() (unlock func()) {
	g.mu.Lock()
	g.observe(g.recorder.Load())
	return g.mu.Unlock
}

// sync waits until all is done.
func (g *gpu) sync() error {
	defer g.lock()()
	return g.dev.Sync()
}

// observe makes the driver report to the trace that is running, if any.
func (g *gpu) observe(r *recording) {
	if r == g.traced {
		return
	}
	g.traced, g.pending, g.hasBase = r, nil, false
	if r == nil {
		g.dev.Record(nil)
	} else {
		g.dev.Record(g.report)
	}
}

// noting runs what the driver will report as n.
func (g *gpu) noting(n note, f func() error) error {
	if g.traced == nil {
		return f()
	}
	g.pending = append(g.pending, n)
	left := len(g.pending)
	err := f()
	if err != nil && len(g.pending) == left { // nothing was done, nothing is reported
		g.pending = g.pending[:left-1]
	}
	return err
}

// report takes a record of the driver.
func (g *gpu) report(x driver.Record) {
	if len(g.pending) == 0 {
		return
	}
	n := g.pending[0]
	g.pending = g.pending[1:]
	if n.hidden {
		if x.Simulated {
			g.offset += x.Duration // as if it had not been
		}
		return
	}
	if !g.hasBase { // the clock of the trace begins with what it sees first
		g.hasBase, g.offset = true, x.Start
	}
	r := n.record
	r.Start, r.Duration, r.Timing = x.Start-g.offset, x.Duration, trace.Measured
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
	g.traced.add(r)
}

// copyIn, copyOut, copyWithin and fill are the driver's, noted.
func (g *gpu) copyIn(dst driver.Ptr, src []byte) error {
	if len(src) == 0 {
		return nil
	}
	return g.noting(note{}, func() error { return g.dev.CopyIn(dst, src) })
}

func (g *gpu) copyOut(dst []byte, src driver.Ptr, hidden bool) error {
	if len(dst) == 0 {
		return nil
	}
	return g.noting(note{hidden: hidden}, func() error { return g.dev.CopyOut(dst, src) })
}

func (g *gpu) copyWithin(dst, src driver.Ptr, n int) error {
	if n == 0 {
		return nil
	}
	return g.noting(note{}, func() error { return g.dev.Copy(dst, src, uint64(n)) })
}

func (g *gpu) zero(dst driver.Ptr, n int) error {
	if n == 0 {
		return nil
	}
	return g.noting(note{}, func() error { return g.dev.Fill(dst, 0, uint64(n)) })
}

// stage is host memory for a copy, until the next one. It panics with a
// *ShapeError if there is not enough.
func (g *gpu) stage(n int) []byte {
	if cap(g.staging) < n {
		needRoom("", Uint8, n)
		g.staging = make([]byte, n)
	}
	b := g.staging[:n]
	if n > keepStaging {
		g.staging = nil
	}
	return b
}

const keepStaging = 64 << 20

// alloc gives n bytes. Where memory runs out, what is cached and what nobody
// holds any more is given back first, and then it is tried once more.
func (g *gpu) alloc(n int) (*block, error) {
	b, err := g.pool.get(n)
	if errors.Is(err, driver.OutOfMemory) {
		runtime.GC()
		g.pool.reclaim()
		b, err = g.pool.get(n)
	}
	return b, err
}
