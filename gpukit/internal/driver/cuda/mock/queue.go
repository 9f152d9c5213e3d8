//go:build cuda

package main

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"gpunotes/gpukit/internal/driver"
)

const notReady driver.Code = 600

// operation is a piece of work in a stream.
type operation struct {
	stream *stream
	after  []*operation
	run    func() error // nil: nothing to do
	done   bool
	at     time.Duration // when it ended, on the card's clock
}

// stream is an order of operations.
type stream struct {
	c           *context
	flags       int
	priority    int
	nonblocking bool // does not wait for the default stream, nor that for it
	last        *operation
}

// event is a place in a stream.
type event struct {
	c      *context
	flags  int
	record *operation // nil before it was recorded
}

const eventWithoutTiming = 2

// survivable tells errors of kernels after which the context is good from those that stay with it.
func survivable(code driver.Code) bool {
	switch code {
	case driver.IllegalAddress, driver.LaunchTimeout, driver.Assert, 714, driver.IllegalInstruction, driver.MisalignedAddress,
		driver.InvalidAddressSpace, 718, driver.LaunchFailed, driver.Unknown:
		return false
	}
	return true
}

// enqueue appends work to a stream. The caller has the lock, here and below.
func (c *context) enqueue(s *stream, run func() error) *operation {
	o := &operation{stream: s, run: run}
	o.wait(s.last)
	switch {
	case s == c.legacy:
		for _, p := range c.pending {
			if !p.stream.nonblocking {
				o.wait(p)
			}
		}
	case !s.nonblocking:
		o.wait(c.legacy.last)
	}
	s.last = o
	c.pending = append(c.pending, o)
	return o
}

// wait makes o wait for p.
func (o *operation) wait(p *operation) {
	if p != nil && !p.done && !slices.Contains(o.after, p) {
		o.after = append(o.after, p)
	}
}

func (o *operation) ready() bool {
	o.after = slices.DeleteFunc(o.after, func(p *operation) bool { return p.done })
	return len(o.after) == 0
}

// work executes operations for as long as the context lives, one at a time, and only what somebody wants or what must
// come before it, with something else now and then.
func (c *context) work(life int) {
	c.m.mu.Lock()
	defer c.m.mu.Unlock()
	for !c.dead && c.life == life {
		o := c.choose()
		if o == nil {
			c.changed.Wait()
			continue
		}
		var err error
		if o.run != nil {
			c.running = true
			c.m.unlocked(func() { err = c.onCard(o.run) })
			c.running = false
		}
		c.finish(o, err)
	}
}

// choose returns what is executed next, nil for nothing.
func (c *context) choose() *operation {
	need := map[*operation]bool{}
	var add func(o *operation)
	add = func(o *operation) {
		if !o.done && !need[o] {
			need[o] = true
			for _, p := range o.after {
				add(p)
			}
		}
	}
	for o := range c.wanted {
		add(o)
	}
	if c.nudged != nil {
		add(c.nudged)
	}
	if len(need) == 0 {
		return nil
	}
	var needed, others []*operation
	for _, o := range c.pending {
		if o.ready() {
			if need[o] {
				needed = append(needed, o)
			} else {
				others = append(others, o)
			}
		}
	}
	if len(others) > 0 && c.random.IntN(4) == 0 {
		return others[c.random.IntN(len(others))]
	}
	if len(needed) == 0 {
		return nil
	}
	return needed[c.random.IntN(len(needed))]
}

// finish notes the end of an operation.
func (c *context) finish(o *operation, err error) {
	c.nudged = nil
	o.at = c.clock
	o.end()
	c.pending = slices.DeleteFunc(c.pending, func(p *operation) bool { return p == o })
	if err != nil {
		c.fail(err)
	}
	c.changed.Broadcast()
}

func (o *operation) end() { o.done, o.run, o.after = true, nil, nil }

// fail notes that work failed: for good, or for the next who waits.
func (c *context) fail(err error) {
	code := codeOf(err)
	if c.m.set.verbose {
		fmt.Fprintf(os.Stderr, "mock libcuda: %v\n", err)
	}
	if survivable(code) {
		c.deferred = code
		return
	}
	c.sticky = code
	for _, o := range c.pending {
		o.end()
	}
	c.pending = nil
	c.changed.Broadcast()
}

func codeOf(err error) driver.Code {
	var code driver.Code
	if errors.As(err, &code) {
		return code
	}
	return driver.Unknown
}

// await waits until an operation is done, and returns what failed so far.
func (c *context) await(o *operation) driver.Code {
	if o != nil && !o.done {
		c.wanted[o]++
		c.changed.Broadcast()
		for !o.done && !c.dead {
			c.changed.Wait()
		}
		if c.wanted[o]--; c.wanted[o] == 0 {
			delete(c.wanted, o)
		}
	}
	return c.failure()
}

// awaitAll waits until the context has nothing to do.
func (c *context) awaitAll() driver.Code {
	for len(c.pending) > 0 && !c.dead {
		c.await(c.pending[c.random.IntN(len(c.pending))])
		if c.sticky != 0 {
			break
		}
	}
	return c.failure()
}

func (c *context) failure() driver.Code {
	if c.dead {
		return driver.ContextIsDestroyed
	}
	if c.sticky != 0 {
		return c.sticky
	}
	code := c.deferred
	c.deferred = 0
	return code
}

// query says whether an operation is done. If not, a piece of work is begun, so that asking again and again comes to an end.
func (c *context) query(o *operation) driver.Code {
	if o != nil && !o.done {
		if c.nudged == nil {
			c.nudged = o
			c.changed.Broadcast()
		}
		return notReady
	}
	return c.failure()
}

func init() {
	entries["cuStreamCreate"] = entry{run: func(t *thread, k *call) driver.Code { return t.newStream(k, k.int(1), 0) }, out: []int{0}}
	entries["cuStreamCreateWithPriority"] = entry{run: func(t *thread, k *call) driver.Code { return t.newStream(k, k.int(1), k.int(2)) }, out: []int{0}}
	entries["cuStreamDestroy_v2"] = entry{run: streamDestroy}
	entries["cuStreamGetFlags"] = entry{run: func(t *thread, k *call) driver.Code {
		return t.ofStream(k, 0, func(s *stream) { t.put32(k.x[1], s.flags) })
	}, out: []int{1}}
	entries["cuStreamGetPriority"] = entry{run: func(t *thread, k *call) driver.Code {
		return t.ofStream(k, 0, func(s *stream) { t.put32(k.x[1], s.priority) })
	}, out: []int{1}}
	entries["cuStreamSynchronize"] = entry{run: streamSynchronize}
	entries["cuStreamQuery"] = entry{run: streamQuery}
	entries["cuStreamWaitEvent"] = entry{run: streamWaitEvent}
	entries["cuCtxSynchronize"] = entry{run: func(t *thread, k *call) driver.Code { return t.c.awaitAll() }}
	entries["cuEventCreate"] = entry{run: eventCreate, out: []int{0}}
	entries["cuEventDestroy_v2"] = entry{run: eventDestroy}
	entries["cuEventRecord"] = entry{run: eventRecord}
	entries["cuEventQuery"] = entry{run: eventQuery}
	entries["cuEventSynchronize"] = entry{run: eventSynchronize}
	entries["cuEventElapsedTime"] = entry{run: eventElapsed, out: []int{0}}
	entries["cuEventElapsedTime_v2"] = entries["cuEventElapsedTime"]
}

// stream returns the stream of a handle: 0 and 1 are the default stream.
func (t *thread) stream(handle uint64) (*stream, driver.Code) {
	if handle <= 1 {
		return t.c.legacy, 0
	}
	if handle == 2 {
		return nil, driver.NotSupported // one default stream for each thread
	}
	s, ok := t.m.handles[handle].(*stream)
	if !ok || s.c.dead {
		return nil, driver.InvalidHandle
	}
	return s, 0
}

func (t *thread) ofStream(k *call, i int, f func(*stream)) driver.Code {
	s, code := t.stream(k.x[i])
	if code == 0 {
		f(s)
	}
	return code
}

func (t *thread) newStream(k *call, flags, priority int) driver.Code {
	if flags&^1 != 0 {
		return driver.InvalidValue
	}
	s := &stream{c: t.c, flags: flags, priority: priority, nonblocking: flags == 1}
	t.put64(k.x[0], t.m.handle(s))
	return 0
}

// streamDestroy does not wait: what is in the stream is still done.
func streamDestroy(t *thread, k *call) driver.Code {
	s, code := t.stream(k.x[0])
	if code != 0 {
		return code
	}
	if s == t.c.legacy {
		return driver.InvalidHandle
	}
	delete(t.m.handles, k.x[0])
	return 0
}

func streamSynchronize(t *thread, k *call) driver.Code {
	s, code := t.stream(k.x[0])
	if code != 0 {
		return code
	}
	if s == s.c.legacy { // the end of the default stream is behind all that it waits for
		return s.c.await(s.c.enqueue(s, nil))
	}
	return s.c.await(s.last)
}

func streamQuery(t *thread, k *call) driver.Code {
	s, code := t.stream(k.x[0])
	if code != 0 {
		return code
	}
	if s == s.c.legacy {
		for _, o := range s.c.pending {
			if !o.stream.nonblocking {
				return s.c.query(o)
			}
		}
	}
	return s.c.query(s.last)
}

func streamWaitEvent(t *thread, k *call) driver.Code {
	s, code := t.stream(k.x[0])
	if code != 0 {
		return code
	}
	e, ok := t.m.handles[k.x[1]].(*event)
	if !ok {
		return driver.InvalidHandle
	}
	if k.int(2)&^1 != 0 {
		return driver.InvalidValue
	}
	if e.record != nil && !e.record.done {
		if e.c != s.c {
			return driver.NotSupported // the work of two cards is in two queues
		}
		s.c.enqueue(s, nil).wait(e.record)
	}
	return 0
}

func eventCreate(t *thread, k *call) driver.Code {
	if k.int(1)&^7 != 0 {
		return driver.InvalidValue
	}
	t.put64(k.x[0], t.m.handle(&event{c: t.c, flags: k.int(1)}))
	return 0
}

func (t *thread) event(handle uint64) (*event, driver.Code) {
	e, ok := t.m.handles[handle].(*event)
	if !ok || e.c.dead {
		return nil, driver.InvalidHandle
	}
	return e, 0
}

func eventDestroy(t *thread, k *call) driver.Code {
	_, code := t.event(k.x[0])
	if code == 0 {
		delete(t.m.handles, k.x[0])
	}
	return code
}

func eventRecord(t *thread, k *call) driver.Code {
	e, code := t.event(k.x[0])
	if code != 0 {
		return code
	}
	s, code := t.stream(k.x[1])
	if code != 0 {
		return code
	}
	if e.c != s.c {
		return driver.InvalidHandle
	}
	e.record = s.c.enqueue(s, nil)
	return 0
}

func eventQuery(t *thread, k *call) driver.Code {
	e, code := t.event(k.x[0])
	if code != 0 {
		return code
	}
	return e.c.query(e.record)
}

func eventSynchronize(t *thread, k *call) driver.Code {
	e, code := t.event(k.x[0])
	if code != 0 {
		return code
	}
	return e.c.await(e.record)
}

// eventElapsed gives milliseconds between two events, as predicted.
func eventElapsed(t *thread, k *call) driver.Code {
	from, code := t.event(k.x[1])
	if code != 0 {
		return code
	}
	to, code := t.event(k.x[2])
	if code != 0 {
		return code
	}
	if from.record == nil || to.record == nil || (from.flags|to.flags)&eventWithoutTiming != 0 || from.c != to.c {
		return driver.InvalidHandle
	}
	if !from.record.done || !to.record.done {
		return notReady
	}
	t.putFloat(k.x[0], float32((to.record.at-from.record.at).Seconds()*1e3))
	return 0
}
