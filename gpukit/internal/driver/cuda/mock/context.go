//go:build cuda

package main

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"gpunotes/gpukit/internal/driver"
	"gpunotes/gpukit/internal/driver/sim"
)

// mock is the driver of one program.
type mock struct {
	host hostMemory
	set  *settings
	bad  error // of the settings

	mu          sync.Mutex // of all below; not held while work is done
	initialized bool
	primary     map[*card]*context
	handles     map[uint64]any
	next        uint64 // handle
	calls       map[string]int
	pinned      []*pinned
	texts       map[driver.Code][2]uint64 // C strings in the program, once they were asked for
}

// context is a context on a card, with memory of its own.
type context struct {
	m      *mock
	card   *card
	handle uint64
	flags  int
	refs   int // of a primary context
	limits map[int]uint64
	cache  int

	dead   bool // or, of a primary context, not active
	life   int  // how often it was activated
	killed atomic.Bool
	dev    *sim.Device

	legacy   *stream
	pending  []*operation // in the order of the calls
	wanted   map[*operation]int
	nudged   *operation
	running  bool
	changed  *sync.Cond
	random   *rand.Rand
	sticky   driver.Code // stays
	deferred driver.Code // of work, for the next who waits

	clock  time.Duration // of the card, used by who executes
	silent atomic.Int32  // what the mock does for itself takes no time
	memory []*allocation // by address
	maps   []*mapping
}

// thread is a thread of the program.
type thread struct {
	*wire
	m     *mock
	stack []*context // the last is current
	c     *context   // during a call
}

// entry is what an entry point does. It is called with the lock.
type entry struct {
	run   func(*thread, *call) driver.Code
	out   []int // arguments that must not be NULL
	early bool  // may be called before cuInit
	free  bool  // needs no context
}

// entries has all that the mock knows.
var entries = map[string]entry{}

// symbols lists all entry points of the library.
func symbols() []string {
	all := map[string]bool{}
	for n := range entries {
		all[n] = true
	}
	for _, n := range strings.Fields(unsupported) {
		all[n] = true
	}
	return slices.Sorted(maps.Keys(all))
}

func newMock(lookup func(string) (string, bool)) *mock {
	m := &mock{primary: map[*card]*context{}, handles: map[uint64]any{}, next: 0x10000, calls: map[string]int{}, texts: map[driver.Code][2]uint64{}}
	m.set, m.bad = readSettings(lookup)
	if m.bad != nil {
		fmt.Fprintln(os.Stderr, "mock libcuda:", m.bad)
		m.set = &settings{init: driver.Unknown}
	}
	return m
}

// answer executes a call.
func (t *thread) answer(k *call) driver.Code {
	m := t.m
	m.mu.Lock()
	defer m.mu.Unlock()
	m.calls[k.name]++
	if t.c = nil; len(t.stack) > 0 {
		t.c = t.stack[len(t.stack)-1]
	}
	e, ok := entries[k.name]
	if !ok || m.set.missing[k.name] {
		return driver.NotSupported
	}
	switch {
	case !m.initialized && !e.early:
		return driver.NotInitialized
	case e.early || e.free:
	case t.c == nil:
		return driver.InvalidContext
	case t.c.dead:
		return driver.ContextIsDestroyed
	case t.c.sticky != 0:
		return t.c.sticky
	}
	if code := m.set.fail[k.name][m.calls[k.name]]; code != 0 {
		if t.c != nil && !survivable(code) {
			t.c.fail(code)
		}
		return code
	}
	for _, i := range e.out {
		if k.x[i] == 0 {
			return driver.InvalidValue
		}
	}
	return e.run(t, k)
}

// unlocked runs f without the lock: it may have to wait for a kernel.
func (m *mock) unlocked(f func()) {
	m.mu.Unlock()
	defer m.mu.Lock()
	f()
}

// handle gives a new handle of x.
func (m *mock) handle(x any) uint64 {
	m.next += 16
	m.handles[m.next] = x
	return m.next
}

func (t *thread) putFloat(address uint64, v float32) { t.put32(address, int(math.Float32bits(v))) }

// activate gives a context a card with nothing in its memory.
func (c *context) activate() {
	c.dead, c.sticky, c.deferred = false, 0, 0
	c.killed.Store(false)
	c.dev = sim.New(c.card.Card, c.m.set.options)
	c.dev.Record(func(r driver.Record) {
		if c.silent.Load() == 0 {
			c.clock += r.Duration
		}
	})
	c.pending, c.nudged, c.memory, c.maps = nil, nil, nil, nil
	c.wanted = map[*operation]int{}
	c.limits = map[int]uint64{}
	c.legacy = &stream{c: c}
	c.random = rand.New(rand.NewPCG(c.m.set.seed, c.handle))
	c.changed = sync.NewCond(&c.m.mu)
	c.life++
	go c.work(c.life)
}

// destroy ends what runs and frees everything; t is who calls.
func (c *context) destroy(t *thread) {
	if c.dead {
		return
	}
	c.dead = true
	c.killed.Store(true)
	c.changed.Broadcast()
	for c.running {
		c.changed.Wait()
	}
	for _, o := range c.pending {
		o.end()
	}
	c.pending = nil
	for h, x := range c.m.handles {
		switch x := x.(type) {
		case *stream:
			if x.c == c {
				delete(c.m.handles, h)
			}
		case *event:
			if x.c == c {
				delete(c.m.handles, h)
			}
		case *module:
			if x.c == c {
				delete(c.m.handles, h)
			}
		case *function:
			if x.m.c == c {
				delete(c.m.handles, h)
			}
		}
	}
	c.m.pinned = slices.DeleteFunc(c.m.pinned, func(p *pinned) bool {
		if p.c == c && p.ours {
			t.unmap(p.address, p.size)
		}
		return p.c == c
	})
	c.memory, c.maps = nil, nil
	c.dev.Close()
}

func newContext(m *mock, d *card, flags int) *context {
	c := &context{m: m, card: d, flags: flags, dead: true}
	c.handle = m.handle(c)
	return c
}

func init() {
	for name, e := range map[string]entry{
		"cuInit":             {run: initialize, early: true},
		"cuDriverGetVersion": {run: func(t *thread, k *call) driver.Code { t.put32(k.x[0], t.m.set.version); return 0 }, out: []int{0}, early: true},
		"gpunotesMockLive":   {run: live, out: []int{0}, early: true},

		"cuDevicePrimaryCtxRetain":      {run: primaryRetain, out: []int{0}, free: true},
		"cuDevicePrimaryCtxRelease_v2":  {run: primaryRelease, free: true},
		"cuDevicePrimaryCtxReset_v2":    {run: primaryReset, free: true},
		"cuDevicePrimaryCtxGetState":    {run: primaryState, out: []int{1, 2}, free: true},
		"cuDevicePrimaryCtxSetFlags_v2": {run: primaryFlags, free: true},

		"cuCtxCreate_v2":      {run: ctxCreate, out: []int{0}, free: true},
		"cuCtxDestroy_v2":     {run: ctxDestroy, free: true},
		"cuCtxSetCurrent":     {run: ctxSetCurrent, free: true},
		"cuCtxPushCurrent_v2": {run: ctxPush, free: true},
		"cuCtxPopCurrent_v2":  {run: ctxPop, free: true},
		"cuCtxGetCurrent": {run: func(t *thread, k *call) driver.Code {
			var h uint64
			if t.c != nil {
				h = t.c.handle
			}
			t.put64(k.x[0], h)
			return 0
		}, out: []int{0}, free: true},
		"cuCtxGetDevice": {run: func(t *thread, k *call) driver.Code {
			t.put32(k.x[0], slices.Index(t.m.set.cards, t.c.card))
			return 0
		}, out: []int{0}},
		"cuCtxGetFlags":      {run: func(t *thread, k *call) driver.Code { t.put32(k.x[0], t.c.flags); return 0 }, out: []int{0}},
		"cuCtxGetApiVersion": {run: func(t *thread, k *call) driver.Code { t.put32(k.x[1], t.m.set.version); return 0 }, out: []int{1}},
		"cuCtxGetStreamPriorityRange": {run: func(t *thread, k *call) driver.Code {
			for _, p := range k.x[:2] {
				if p != 0 {
					t.put32(p, 0)
				}
			}
			return 0
		}},
		"cuCtxGetLimit":           {run: func(t *thread, k *call) driver.Code { t.put64(k.x[0], t.c.limits[k.int(1)]); return 0 }, out: []int{0}},
		"cuCtxSetLimit":           {run: func(t *thread, k *call) driver.Code { t.c.limits[k.int(0)] = k.x[1]; return 0 }},
		"cuCtxGetCacheConfig":     {run: func(t *thread, k *call) driver.Code { t.put32(k.x[0], t.c.cache); return 0 }, out: []int{0}},
		"cuCtxSetCacheConfig":     {run: func(t *thread, k *call) driver.Code { t.c.cache = k.int(0); return 0 }},
		"cuCtxGetSharedMemConfig": {run: func(t *thread, k *call) driver.Code { t.put32(k.x[0], 1); return 0 }, out: []int{0}},
		"cuCtxSetSharedMemConfig": {run: func(t *thread, k *call) driver.Code { return 0 }},
	} {
		entries[name] = e
	}
}

func initialize(t *thread, k *call) driver.Code {
	switch {
	case k.int(0) != 0:
		return driver.InvalidValue
	case t.m.set.init != 0:
		return t.m.set.init
	case len(t.m.set.cards) == 0:
		return driver.NoDevice
	}
	t.m.initialized = true
	return 0
}

// device is the card of an argument, nil if there is none.
func (t *thread) device(i int) *card {
	if i < 0 || i >= len(t.m.set.cards) {
		return nil
	}
	return t.m.set.cards[i]
}

func primaryRetain(t *thread, k *call) driver.Code {
	d := t.device(k.int(1))
	if d == nil {
		return driver.InvalidDevice
	}
	c := t.m.primaryOf(d)
	if c.dead {
		c.activate()
	}
	c.refs++
	t.put64(k.x[0], c.handle)
	return 0
}

// primaryOf is the primary context of a card; its handle is always the same.
func (m *mock) primaryOf(d *card) *context {
	c := m.primary[d]
	if c == nil {
		c = newContext(m, d, 0)
		m.primary[d] = c
	}
	return c
}

func primaryRelease(t *thread, k *call) driver.Code {
	d := t.device(k.int(0))
	if d == nil {
		return driver.InvalidDevice
	}
	c := t.m.primaryOf(d)
	if c.refs == 0 {
		return driver.InvalidContext
	}
	if c.refs--; c.refs == 0 {
		c.destroy(t)
	}
	return 0
}

func primaryReset(t *thread, k *call) driver.Code {
	d := t.device(k.int(0))
	if d == nil {
		return driver.InvalidDevice
	}
	t.m.primaryOf(d).destroy(t)
	return 0
}

func primaryState(t *thread, k *call) driver.Code {
	d := t.device(k.int(0))
	if d == nil {
		return driver.InvalidDevice
	}
	c, active := t.m.primaryOf(d), 0
	if !c.dead {
		active = 1
	}
	t.put32(k.x[1], c.flags)
	t.put32(k.x[2], active)
	return 0
}

func primaryFlags(t *thread, k *call) driver.Code {
	d := t.device(k.int(0))
	if d == nil {
		return driver.InvalidDevice
	}
	t.m.primaryOf(d).flags = k.int(1)
	return 0
}

func ctxCreate(t *thread, k *call) driver.Code {
	d := t.device(k.int(2))
	if d == nil {
		return driver.InvalidDevice
	}
	c := newContext(t.m, d, k.int(1))
	c.activate()
	t.stack = append(t.stack, c)
	t.put64(k.x[0], c.handle)
	return 0
}

func ctxDestroy(t *thread, k *call) driver.Code {
	c, ok := t.m.handles[k.x[0]].(*context)
	if !ok || c == t.m.primary[c.card] {
		return driver.InvalidContext
	}
	c.destroy(t)
	delete(t.m.handles, k.x[0])
	if t.c == c {
		t.stack = t.stack[:len(t.stack)-1]
	}
	return 0
}

func ctxSetCurrent(t *thread, k *call) driver.Code {
	if k.x[0] == 0 {
		if len(t.stack) > 0 {
			t.stack = t.stack[:len(t.stack)-1]
		}
		return 0
	}
	c, ok := t.m.handles[k.x[0]].(*context)
	if !ok {
		return driver.InvalidContext
	}
	if len(t.stack) == 0 {
		t.stack = append(t.stack, c)
	}
	t.stack[len(t.stack)-1] = c
	return 0
}

func ctxPush(t *thread, k *call) driver.Code {
	c, ok := t.m.handles[k.x[0]].(*context)
	if !ok {
		return driver.InvalidContext
	}
	t.stack = append(t.stack, c)
	return 0
}

func ctxPop(t *thread, k *call) driver.Code {
	if t.c == nil {
		return driver.InvalidContext
	}
	t.stack = t.stack[:len(t.stack)-1]
	if k.x[0] != 0 {
		t.put64(k.x[0], t.c.handle)
	}
	return 0
}

// live writes what was not freed.
func live(t *thread, k *call) driver.Code {
	var allocations, modules, streams, events, contexts int
	var bytes uint64
	for _, x := range t.m.handles {
		switch x := x.(type) {
		case *stream:
			streams++
		case *event:
			events++
		case *module:
			modules++
		case *context:
			if !x.dead {
				contexts++
			}
			for _, a := range x.memory {
				if !a.fixed {
					allocations++
					bytes += a.size
				}
			}
		}
	}
	t.putText(k.x[0], k.int(1), fmt.Sprintf("allocations %d (%d bytes), pinned %d, modules %d, streams %d, events %d, contexts %d",
		allocations, bytes, len(t.m.pinned), modules, streams, events, contexts))
	return 0
}
