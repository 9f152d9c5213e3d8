//go:build cuda

package cuda

import (
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"gpunotes/gpukit/internal/driver"
)

const (
	deepest       = 256 // operations of a lane that are not known to be done. The driver's queues hold about 1,024; a call then waits inside the driver, where nobody asks Cancel
	spin          = 100 * time.Microsecond
	shortestPause = 10 * time.Microsecond
	longestPause  = time.Millisecond
	patience      = 2 * time.Second // with a kernel that was told to end; then
	slowPause     = 20 * time.Millisecond
)

// launch is a kernel that may run.
type launch struct {
	name    string
	cancel  func() bool
	ended   bool
	stopped bool // the cancel word was set while it may have run
	told    bool // its own Cancel was true
}

// rest is the pause before somebody who has waited so long looks again.
func rest(waited time.Duration, slow bool) {
	switch {
	case slow:
		time.Sleep(slowPause)
	case waited > spin:
		time.Sleep(min(max(waited/8, shortestPause), longestPause))
	}
}

// kernels says whether a lane may have to wait for a kernel.
func (d *device) kernels(l *lane) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return l.waits()
}

// waits is kernels, and forgets what is not waited for any more. mu is held.
func (l *lane) waits() bool {
	l.after = slices.DeleteFunc(l.after, func(w wait) bool { return w.number <= w.l.reached })
	return len(l.after) > 0 || slices.ContainsFunc(l.marks, func(m *mark) bool { return m.launch != nil })
}

// room waits until a lane is not too deep.
func (d *device) room(call string, l *lane) error {
	d.mu.Lock()
	full := l.begun-l.ended >= deepest
	d.mu.Unlock()
	if !full {
		return nil
	}
	return d.await(call, func() bool { return l.begun-l.ended < deepest*3/4 })
}

// advance takes note of the marks that are reached. Called in do.
func (d *device) advance() error {
	for _, l := range d.lanes {
		for {
			d.mu.Lock()
			var m *mark
			if len(l.marks) > 0 {
				m = l.marks[0]
			}
			d.mu.Unlock()
			if m == nil {
				break
			}
			if err := m.event.Query(); err != nil {
				if codeOf(err) == driver.NotReady {
					break
				}
				return d.c.failed("cuEventQuery", err, d.blame(codeOf(err)))
			}
			if err := d.measure(m); err != nil {
				return err
			}
			d.retire(l, m)
		}
	}
	return nil
}

// retire takes note that a mark is reached.
func (d *device) retire(l *lane, m *mark) {
	if m.pins != nil {
		m.pins.Unpin()
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	l.marks = l.marks[1:]
	l.reached, l.ended = m.number, m.begun
	d.pool(m.event, m.timed)
	if r := m.report; r != nil {
		d.pool(r.begin, true)
		r.done = true
	}
	if m.launch != nil {
		d.end(m.launch)
	}
}

// end takes note that a launch has ended. mu is held.
func (d *device) end(x *launch) {
	x.ended = true
	delete(d.running, x)
	if x.told && d.failure == nil {
		d.failure = &driver.Error{Call: "cuLaunchKernel", Code: driver.LaunchTimeout, Detail: fmt.Sprintf("kernel %s: stopped", x.name)}
	}
	if x.stopped && !x.told {
		d.bystanders++
	}
	if !d.stopping {
		return
	}
	for y := range d.running {
		if y.stopped {
			return
		}
	}
	d.stopping = false
	if d.word != nil {
		atomic.StoreUint32(d.word, 0)
	}
	if d.failure != nil && d.bystanders > 0 {
		d.failure.Detail += fmt.Sprintf("; %d other launch(es) that were under way ended with it and are incomplete", d.bystanders)
	}
	d.bystanders = 0
}

// await waits until enough is known to be done; reached is called with mu held. While it waits, Cancel is asked.
func (d *device) await(call string, reached func() bool) error {
	return d.awaitMore(call, func() error { return nil }, reached)
}

// awaitMore is await that also looks, in do, at something else.
func (d *device) awaitMore(call string, look func() error, reached func() bool) error {
	defer d.deliver()
	start := time.Now()
	for {
		d.advancing.Lock()
		err := d.do(call, func() error {
			if err := d.advance(); err != nil {
				return err
			}
			return look()
		})
		d.advancing.Unlock()
		if err != nil {
			return err
		}
		d.mu.Lock()
		ok, since := reached(), d.stopTime
		if !d.stopping {
			since = time.Time{}
		}
		d.mu.Unlock()
		if ok {
			return nil
		}
		d.ask()
		rest(time.Since(start), !since.IsZero() && time.Since(since) > patience)
	}
}

// ask asks the Cancel functions of the launches that may run, one goroutine at a time.
func (d *device) ask() {
	if !d.asking.TryLock() {
		return
	}
	defer d.asking.Unlock()
	d.mu.Lock()
	d.asked = d.asked[:0]
	for x := range d.running {
		if x.cancel != nil && !x.told {
			d.asked = append(d.asked, x)
		}
	}
	d.mu.Unlock()
	for _, x := range d.asked {
		if x.cancel() {
			d.mu.Lock()
			if !x.ended {
				x.told = true
				d.stop()
			}
			d.mu.Unlock()
		}
	}
}

// stop sets the cancel word. All launches that may look at it end by it. mu is held.
func (d *device) stop() {
	if len(d.running) == 0 {
		return
	}
	if !d.stopping {
		d.stopping, d.stopTime = true, time.Now()
	}
	if d.word != nil && d.wordAt != 0 {
		for x := range d.running {
			x.stopped = true
		}
		atomic.StoreUint32(d.word, 1)
		return
	}
	for x := range d.running { // nothing ends it but itself
		if x.told {
			x.stopped = true
		}
	}
}

// enter makes a launch one that may run, but not while others are being stopped: it would end too.
func (d *device) enter(call string, x *launch) error {
	for {
		d.mu.Lock()
		stopping := d.stopping
		if !stopping {
			d.running[x] = struct{}{}
		}
		d.mu.Unlock()
		if !stopping {
			return nil
		}
		if err := d.await(call, func() bool { return !d.stopping }); err != nil {
			return err
		}
	}
}

// leave takes back enter, for a launch that did not come about.
func (d *device) leave(x *launch) {
	d.mu.Lock()
	defer d.mu.Unlock()
	x.told = false
	x.stopped = false
	d.end(x)
}

// settle waits until no kernel runs: some calls wait for that inside the driver, where nobody asks Cancel.
func (d *device) settle(call string) error {
	d.mu.Lock()
	quiet := len(d.running) == 0
	d.mu.Unlock()
	if quiet {
		return nil
	}
	return d.await(call, func() bool { return len(d.running) == 0 })
}

// blame names the kernels that may have made an error that stays.
func (d *device) blame(c driver.Code) string {
	if !fatal(c) {
		return ""
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, l := range d.lanes {
		for _, m := range l.marks {
			if m.launch != nil {
				return words(c) + "; under way: kernel " + m.launch.name
			}
		}
	}
	return words(c)
}

// failures is what failed since it was asked last: a launch that was stopped. It waits for launches that are being stopped,
// which a caller may have waited for too.
func (d *device) failures(call string) error {
	d.mu.Lock()
	stopping := d.stopping
	d.mu.Unlock()
	if stopping {
		if err := d.await(call, func() bool { return !d.stopping }); err != nil {
			return err
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.failure == nil {
		return nil
	}
	e := d.failure
	d.failure = nil
	return e
}
