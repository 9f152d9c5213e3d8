package gpukit

import (
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"gpunotes/gpukit/internal/driver"
	"gpunotes/gpukit/internal/driver/sim"
)

// lagging is a simulated card that works like a real one: what is begun in a stream
// is done later, and what went wrong is the error of a later call. Host memory that is
// given to a copy too early, or looked at too early, holds something else. Tests can
// also make any call fail.
type lagging struct {
	*sim.Device
	streams []*lane
	word    driver.Ptr // for kernels that look at a word; 0: they are asked about

	// fail, if not nil, says what the n-th call of a method (from 1) fails with.
	fail func(method string, n int) error

	mu      sync.Mutex
	calls   map[string]int
	err     error // of what was begun
	lost    error
	closed  bool
	marks   map[driver.Mark]chan struct{}
	number  uint64
	pinned  map[*byte]int
	blocks  map[driver.Ptr]bool
	record  func(driver.Record)
	reports []*driver.Record // by the calls that began them; nil until done
	done    []bool
	told    int
	now     int // the report that is being made

	doing sync.Mutex // the card does one thing at a time
}

// lane is a stream.
type lane struct {
	todo chan func()
	wait sync.WaitGroup
}

// lag opens a quadro-k2000 that lags, with n streams.
func lag(n int) *lagging {
	card, err := sim.LookupCard("quadro-k2000")
	if err != nil {
		panic(err)
	}
	x := &lagging{Device: sim.New(card, sim.Options{Streams: n, Uncounted: true}), calls: map[string]int{}, marks: map[driver.Mark]chan struct{}{}, pinned: map[*byte]int{}, blocks: map[driver.Ptr]bool{}}
	for range n {
		s := &lane{todo: make(chan func(), 1<<14)}
		x.streams = append(x.streams, s)
		go func() {
			r := rand.New(rand.NewPCG(1, 2))
			for f := range s.todo {
				if r.IntN(20) == 0 {
					time.Sleep(time.Duration(r.IntN(60)) * time.Microsecond)
				}
				f()
				s.wait.Done()
			}
		}()
	}
	return x
}

// opened is the card as gpukit has it.
func (x *lagging) opened() *Device {
	g, err := x.openedGPU()
	if err != nil {
		panic(err)
	}
	return g.device()
}

func (x *lagging) openedGPU() (*gpu, error) {
	g, err := openGPU("sim:lagging", "a simulator that lags", lagDriver{x}, 0)
	if err == nil {
		g.steps, g.pool.exact = simSteps, true
	}
	return g, err
}

// openLagging opens a lagging card for a test.
func openLagging(t *testing.T) (*lagging, *Device) {
	t.Helper()
	x := lag(3)
	d := x.opened()
	t.Cleanup(func() { d.Close() })
	return x, d
}

type lagDriver struct{ x *lagging }

func (d lagDriver) Devices() ([]driver.Info, error)   { return []driver.Info{d.x.Info()}, nil }
func (d lagDriver) Open(i int) (driver.Device, error) { return d.x, nil }

// call is the begin of every call.
func (x *lagging) call(method string) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.calls[method]++
	if x.closed {
		return &driver.Error{Call: method, Code: driver.Deinitialized, Detail: "the device is closed"}
	}
	if x.lost != nil {
		return x.lost
	}
	if x.fail != nil {
		if err := x.fail(method, x.calls[method]); err != nil {
			x.broke(err)
			return err
		}
	}
	return nil
}

// sticky are the errors after which a context is of no use.
var sticky = []driver.Code{driver.IllegalAddress, driver.LaunchFailed, driver.MisalignedAddress, driver.IllegalInstruction, driver.ContextIsDestroyed}

// broke notes an error; the caller has locked.
func (x *lagging) broke(err error) {
	if e, ok := err.(*driver.Error); ok && slices.Contains(sticky, e.Code) && x.lost == nil {
		x.lost = err
	}
}

// later begins f in a stream. Records of what it does are reported in order.
func (x *lagging) later(s driver.Stream, reports bool, f func() error) {
	at := -1
	if reports {
		x.mu.Lock()
		at = len(x.reports)
		x.reports, x.done = append(x.reports, nil), append(x.done, false)
		x.mu.Unlock()
	}
	l := x.streams[s]
	l.wait.Add(1)
	l.todo <- func() {
		x.mu.Lock()
		lost := x.lost
		x.calls["doing"]++
		var err error
		if x.fail != nil && lost == nil {
			err = x.fail("doing", x.calls["doing"])
		}
		x.mu.Unlock()
		if lost == nil && err == nil {
			if at >= 0 {
				x.doing.Lock()
				x.now = at
			}
			err = f()
			if at >= 0 {
				x.doing.Unlock()
			}
		}
		x.mu.Lock()
		if err != nil && x.err == nil {
			x.err = err
			x.broke(err)
		}
		if at >= 0 {
			x.done[at] = true
		}
		var ready []*driver.Record
		for x.told < len(x.done) && x.done[x.told] {
			ready = append(ready, x.reports[x.told])
			x.told++
		}
		tell := x.record
		x.mu.Unlock()
		for _, r := range ready {
			if tell != nil && r != nil {
				tell(*r)
			}
		}
	}
}

// outcome is what went wrong since it was asked last.
func (x *lagging) outcome() error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.lost != nil {
		return x.lost
	}
	err := x.err
	x.err = nil
	return err
}

func (x *lagging) Record(f func(driver.Record)) {
	x.mu.Lock()
	x.record = f
	x.mu.Unlock()
	x.Device.Record(func(r driver.Record) {
		x.mu.Lock()
		defer x.mu.Unlock()
		r.Stats = nil
		x.reports[x.now] = &r
	})
}

func (x *lagging) Alloc(n uint64) (driver.Ptr, error) {
	if err := x.call("Alloc"); err != nil {
		return 0, err
	}
	p, err := x.Device.Alloc(n)
	x.mu.Lock()
	defer x.mu.Unlock()
	if err == nil {
		x.blocks[p] = true
	}
	return p, err
}

func (x *lagging) Free(p driver.Ptr) error {
	if err := x.call("Free"); err != nil {
		return err
	}
	x.mu.Lock()
	delete(x.blocks, p)
	x.mu.Unlock()
	return x.Device.Free(p) // at once: who uses it still will see
}

func (x *lagging) Pinned(n int) ([]byte, error) {
	if err := x.call("Pinned"); err != nil {
		return nil, err
	}
	b := make([]byte, n)
	x.mu.Lock()
	defer x.mu.Unlock()
	x.pinned[&b[0]] = n
	return b, nil
}

func (x *lagging) FreePinned(b []byte) error {
	if err := x.call("FreePinned"); err != nil {
		return err
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.pinned[&b[0]] != len(b) {
		return &driver.Error{Call: "cuMemFreeHost", Code: driver.InvalidValue}
	}
	delete(x.pinned, &b[0])
	for i := range b {
		b[i] = 0xdd
	}
	return nil
}

func (x *lagging) StartIn(s driver.Stream, dst driver.Ptr, src []byte) error {
	if err := x.call("StartIn"); err != nil {
		return err
	}
	x.later(s, true, func() error { return x.Device.CopyIn(dst, src) })
	return nil
}

func (x *lagging) StartOut(s driver.Stream, dst []byte, src driver.Ptr) error {
	if err := x.call("StartOut"); err != nil {
		return err
	}
	for i := range dst {
		dst[i] = 0xa5
	}
	x.later(s, true, func() error { return x.Device.CopyOut(dst, src) })
	return nil
}

func (x *lagging) CopyIn(dst driver.Ptr, src []byte) error {
	if err := x.call("CopyIn"); err != nil {
		return err
	}
	src = slices.Clone(src)
	x.later(0, true, func() error { return x.Device.CopyIn(dst, src) })
	return nil
}

func (x *lagging) CopyOut(dst []byte, src driver.Ptr) error {
	if err := x.call("CopyOut"); err != nil {
		return err
	}
	x.later(0, true, func() error { return x.Device.CopyOut(dst, src) })
	x.streams[0].wait.Wait()
	return x.outcome()
}

func (x *lagging) Copy(dst, src driver.Ptr, n uint64) error {
	if err := x.call("Copy"); err != nil {
		return err
	}
	x.later(0, true, func() error { return x.Device.Copy(dst, src, n) })
	return nil
}

func (x *lagging) Fill(dst driver.Ptr, value byte, n uint64) error {
	if err := x.call("Fill"); err != nil {
		return err
	}
	x.later(0, true, func() error { return x.Device.Fill(dst, value, n) })
	return nil
}

func (x *lagging) Mark(s driver.Stream) (driver.Mark, error) {
	if err := x.call("Mark"); err != nil {
		return driver.Mark{}, err
	}
	x.mu.Lock()
	x.number++
	m, reached := driver.Mark{Stream: s, Number: x.number}, make(chan struct{})
	x.marks[m] = reached
	x.mu.Unlock()
	l := x.streams[s]
	l.wait.Add(1)
	l.todo <- func() { close(reached) }
	return m, nil
}

func (x *lagging) reached(m driver.Mark) chan struct{} {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.marks[m]
}

func (x *lagging) After(s driver.Stream, m driver.Mark) error {
	if err := x.call("After"); err != nil {
		return err
	}
	l, reached := x.streams[s], x.reached(m)
	l.wait.Add(1)
	l.todo <- func() { <-reached }
	return nil
}

func (x *lagging) Wait(m driver.Mark) error {
	if err := x.call("Wait"); err != nil {
		return err
	}
	<-x.reached(m)
	return x.outcome()
}

func (x *lagging) Sync() error {
	failed := x.call("Sync")
	for _, s := range x.streams {
		s.wait.Wait()
	}
	if err := x.outcome(); failed == nil {
		failed = err
	}
	return failed
}

func (x *lagging) CancelWord() driver.Ptr { return x.word }

func (x *lagging) Lost() error {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.lost
}

func (x *lagging) Close() error {
	err := x.call("Close")
	x.mu.Lock()
	again := x.closed
	x.closed = true
	x.mu.Unlock()
	if again {
		return nil
	}
	for _, s := range x.streams {
		s.wait.Wait()
		close(s.todo)
	}
	x.Device.Close()
	return err
}

func (x *lagging) Load(image []byte) (driver.Module, error) {
	if err := x.call("Load"); err != nil {
		return nil, err
	}
	m, err := x.Device.Load(image)
	if err != nil {
		return nil, err
	}
	return &lagModule{m, x}, nil
}

type lagModule struct {
	driver.Module
	x *lagging
}

func (m *lagModule) Function(name string) (driver.Function, error) {
	if err := m.x.call("Function"); err != nil {
		return nil, err
	}
	f, err := m.Module.Function(name)
	if err != nil {
		return nil, err
	}
	return &lagFunction{f, m.x}, nil
}

type lagFunction struct {
	driver.Function
	x *lagging
}

func (f *lagFunction) Launch(l driver.Launch) error {
	x := f.x
	if err := x.call("Launch"); err != nil {
		return err
	}
	if err := x.Card().CheckLaunch(f.Attributes(), l); err != nil {
		return err
	}
	x.later(l.Stream, true, func() error {
		if x.word == 0 || l.Cancel == nil {
			return f.Function.Launch(l)
		}
		// The simulator cannot write a word while it runs, so this waits for the user
		// to press Stop before a kernel that has no end begins. It must find the word.
		stopped := false
		for i := 0; i < 20 && !stopped; i++ {
			if stopped = l.Cancel(); !stopped {
				time.Sleep(time.Millisecond)
			}
		}
		cancel := l.Cancel
		l.Cancel, l.Steps = nil, 1<<20
		if !stopped {
			return f.Function.Launch(l)
		}
		x.Device.CopyIn(x.word, []byte{1, 0, 0, 0})
		err := f.Function.Launch(l)
		x.Device.CopyIn(x.word, make([]byte, 4))
		if err == nil && cancel() {
			err = &driver.Error{Call: "cuLaunchKernel", Code: driver.LaunchTimeout, Detail: "ended by the word"}
		}
		return err
	})
	return nil
}

// left are the blocks of memory that the card has given and not got back.
func (x *lagging) left() int {
	x.mu.Lock()
	defer x.mu.Unlock()
	return len(x.blocks)
}

func (x *lagging) count(method string) int {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.calls[method]
}

var errInjected = func(code driver.Code, call string) error {
	return &driver.Error{Call: call, Code: code, Detail: "as the test wants"}
}

var _ driver.Device = (*lagging)(nil)
