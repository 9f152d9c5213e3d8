//go:build cuda

package cuda

import (
	"runtime"
	"sync"

	"gorgonia.org/cu"

	"gpunotes/gpukit/internal/driver"
)

// Locks, in the order in which they are taken: lane.order, device.advancing, device.use, context.use, device.mu. What may
// take long in the driver is done under the first, which another goroutine that waits does not need, or under none.

// lane is a stream, and what is known of its work.
type lane struct {
	order  sync.Mutex // held while work is put into the stream
	stream cu.Stream

	// Of device.mu.
	marks   []*mark         // not known to be reached, in the order of the stream
	reached uint64          // number of the newest mark known to be reached
	begun   uint64          // operations in all
	ended   uint64          // of them known to be done
	since   int             // operations behind the last mark
	after   []wait          // marks of other lanes that it may have to wait for
	pins    *runtime.Pinner // Go's memory that these use
}

type wait struct {
	l      *lane
	number uint64
}

// mark is an event in a stream. The driver's events are used again when it is reached.
type mark struct {
	number uint64
	event  cu.Event
	timed  bool
	begun  uint64 // operations before it
	launch *launch
	report *report
	pins   *runtime.Pinner
}

// longestUnmarked is how many operations of a lane there are behind its last mark.
const longestUnmarked = 64

// lane finds a stream.
func (d *device) lane(call string, s driver.Stream) (*lane, error) {
	if s < 0 || int(s) >= len(d.lanes) {
		return nil, invalid(call, "stream %d; there are 0 to %d", int(s), len(d.lanes)-1)
	}
	return d.lanes[s], nil
}

// event gives an event of the pool, or makes one. Called in do.
func (d *device) event(timed bool) (cu.Event, error) {
	pool, flags := &d.untimed, cu.DisableTiming
	if timed {
		pool, flags = &d.timed, cu.DefaultEvent
	}
	d.mu.Lock()
	if n := len(*pool); n > 0 {
		e := (*pool)[n-1]
		*pool = (*pool)[:n-1]
		d.mu.Unlock()
		return e, nil
	}
	d.mu.Unlock()
	e, err := cu.MakeEvent(flags)
	if err != nil {
		return e, d.c.failed("cuEventCreate", err, "")
	}
	return e, nil
}

func (d *device) pool(e cu.Event, timed bool) {
	if timed {
		d.timed = append(d.timed, e)
	} else {
		d.untimed = append(d.untimed, e)
	}
}

// mark puts a mark into a lane whose order is held. Called in do.
func (d *device) mark(l *lane, x *launch, r *report) (*mark, error) {
	e, err := d.event(r != nil)
	if err != nil {
		return nil, err
	}
	err = e.Record(l.stream)
	d.mu.Lock()
	defer d.mu.Unlock()
	if err != nil {
		d.pool(e, r != nil)
		return nil, d.c.failed("cuEventRecord", err, "")
	}
	d.numbers++
	m := &mark{number: d.numbers, event: e, timed: r != nil, begun: l.begun, launch: x, report: r, pins: l.pins}
	l.marks, l.since, l.pins = append(l.marks, m), 0, nil
	return m, nil
}

// tail is the number of a mark behind all work that was begun in a lane before. It makes one only where there is none.
func (d *device) tail(call string, l *lane) (n uint64, err error) {
	last := func() bool {
		d.mu.Lock()
		defer d.mu.Unlock()
		n = l.reached
		if len(l.marks) > 0 {
			n = l.marks[len(l.marks)-1].number
		}
		return l.since == 0
	}
	if last() {
		return n, nil
	}
	l.order.Lock()
	defer l.order.Unlock()
	if last() {
		return n, nil
	}
	err = d.do(call, func() error {
		m, err := d.mark(l, nil, nil)
		if err == nil {
			n = m.number
		}
		return err
	})
	return n, err
}

// operation is what enqueue needs to know of the work that it begins.
type operation struct {
	record driver.Record
	launch *launch
	host   []byte // memory that it uses until it is done
	waits  bool   // the driver may wait for the stream in the call
}

// enqueue begins an operation in a stream; f calls the driver.
func (d *device) enqueue(call string, s driver.Stream, o operation, f func(cu.Stream) error) error {
	l, err := d.lane(call, s)
	if err != nil {
		return err
	}
	if err := d.room(call, l); err != nil {
		return err
	}
	l.order.Lock()
	defer l.order.Unlock()
	for try := 0; o.waits && try < 100 && d.kernels(l); try++ { // not for ever: others may launch all the time
		l.order.Unlock()
		err := d.await(call, func() bool { return !l.waits() })
		l.order.Lock()
		if err != nil {
			return err
		}
	}
	return d.do(call, func() error {
		r := d.reporting(s, o.record)
		if r != nil {
			if r.begin, err = d.event(true); err != nil {
				d.drop(r)
				return err
			}
			if err := r.begin.Record(l.stream); err != nil {
				d.drop(r)
				return d.c.failed("cuEventRecord", err, "")
			}
		}
		if err := f(l.stream); err != nil {
			d.drop(r)
			if e, ok := err.(*driver.Error); ok {
				return e
			}
			return d.c.failed(call, err, d.blame(codeOf(err)))
		}
		d.mu.Lock()
		l.begun++
		l.since++
		if len(o.host) > 0 {
			if l.pins == nil {
				l.pins = new(runtime.Pinner)
			}
			l.pins.Pin(&o.host[0])
		}
		due := r != nil || o.launch != nil || l.since >= longestUnmarked
		d.mu.Unlock()
		if due {
			if _, err := d.mark(l, o.launch, r); err != nil {
				d.drop(r)
				return err
			}
		}
		return nil
	})
}

// Mark makes a mark in a stream: an event, unless there is one behind all work already.
func (d *device) Mark(s driver.Stream) (driver.Mark, error) {
	const call = "cuEventRecord"
	l, err := d.lane(call, s)
	if err != nil {
		return driver.Mark{}, err
	}
	if err := d.usable(call); err != nil {
		return driver.Mark{}, err
	}
	n, err := d.tail(call, l)
	return driver.Mark{Stream: s, Number: n}, err
}

// known checks a mark of the user's.
func (d *device) known(call string, m driver.Mark) (*lane, error) {
	l, err := d.lane(call, m.Stream)
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if m.Number > d.numbers {
		return nil, invalid(call, "no mark %d was made in stream %d of this device", m.Number, int(m.Stream))
	}
	return l, nil
}

// find returns the first mark of a lane that is not before number n, nil if that is reached. mu is held.
func (l *lane) find(n uint64) *mark {
	if n <= l.reached {
		return nil
	}
	for _, m := range l.marks {
		if m.number >= n {
			return m
		}
	}
	return nil
}

// After makes what is begun in s from now on wait until m is reached.
func (d *device) After(s driver.Stream, m driver.Mark) error {
	const call = "cuStreamWaitEvent"
	l, err := d.lane(call, s)
	if err != nil {
		return err
	}
	before, err := d.known(call, m)
	if err != nil {
		return err
	}
	l.order.Lock()
	defer l.order.Unlock()
	return d.do(call, func() error {
		d.mu.Lock()
		defer d.mu.Unlock() // the event is not used again meanwhile
		x := before.find(m.Number)
		if x == nil || before == l {
			return nil
		}
		if err := l.stream.Wait(x.event, 0); err != nil {
			return d.c.failed(call, err, "")
		}
		l.since++
		l.waits()
		l.after = append(l.after, wait{before, x.number})
		return nil
	})
}

// Wait waits until m is reached, and returns what failed so far.
func (d *device) Wait(m driver.Mark) error {
	const call = "cuEventQuery"
	l, err := d.known(call, m)
	if err != nil {
		return err
	}
	if err := d.await(call, func() bool { return l.find(m.Number) == nil }); err != nil {
		return err
	}
	return d.failures(call)
}

// Sync waits until all streams are done with what was begun before, and returns what failed.
func (d *device) Sync() error {
	const call = "cuCtxSynchronize"
	tails := make([]uint64, len(d.lanes))
	for i, l := range d.lanes {
		var err error
		if tails[i], err = d.tail(call, l); err != nil {
			d.deliver()
			return err
		}
	}
	err := d.await(call, func() bool {
		for i, l := range d.lanes {
			if l.reached < tails[i] {
				return false
			}
		}
		return true
	})
	if err != nil {
		return err
	}
	return d.failures(call)
}
