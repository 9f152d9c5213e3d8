//go:build cuda

package cuda

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"gorgonia.org/cu"

	"gpunotes/gpukit/internal/driver"
)

// Streams: everything of which no other is asked for, copies in, copies out.
const lanes = 3

// device is one opening of a device.
type device struct {
	info     driver.Info
	c        *context
	coherent bool // the device may read pageable memory of the host by itself, after the call has returned
	pools    bool // memory is allocated in order of a stream

	lanes      []*lane
	allocated  cu.Stream // in which memory is allocated: never has to wait
	freed      cu.Stream // in which it is freed, behind the work of all lanes
	word       *uint32   // in host memory; nil after Close
	wordLocked bool
	wordAt     driver.Ptr // where kernels see it; 0 if they cannot

	use     sync.RWMutex // shared in a call, alone in Close
	closing sync.Mutex
	closed  atomic.Bool

	advancing sync.Mutex // held while marks are looked at
	base      cu.Event   // times of reports are measured from it. Of advancing
	offset    time.Duration

	asking     sync.Mutex // held while Cancel functions are asked
	asked      []*launch
	delivering sync.Mutex // held while reports are given

	mu             sync.Mutex
	numbers        uint64 // of marks
	timed, untimed []cu.Event
	running        map[*launch]struct{} // launches that may run
	stopping       bool                 // the cancel word is set, or would be
	stopTime       time.Time
	bystanders     int
	failure        *driver.Error
	recorder       func(driver.Record)
	reports        []*report // in the order of the calls
	memory         regions   // of the device: allocations, and variables of modules that were asked for
	pinned         regions   // of the host
	modules        map[*module]struct{}
}

// regions are ranges of memory, by address.
type regions []region

type region struct {
	base, size uint64
	module     *module        // whose variable it is
	host       unsafe.Pointer // where it is, in host memory
	locked     bool           // page-locked
}

func (r regions) search(a uint64) (int, bool) {
	return slices.BinarySearchFunc(r, a, func(x region, a uint64) int {
		switch {
		case x.base < a:
			return -1
		case x.base > a:
			return 1
		}
		return 0
	})
}

func (r *regions) add(x region) {
	i, found := r.search(x.base)
	if found {
		(*r)[i] = x
		return
	}
	*r = slices.Insert(*r, i, x)
}

// remove takes out the region that begins at a, if there is one that is no variable.
func (r *regions) remove(a uint64) (region, bool) {
	i, found := r.search(a)
	if !found || (*r)[i].module != nil {
		return region{}, false
	}
	x := (*r)[i]
	*r = slices.Delete(*r, i, i+1)
	return x, true
}

// find returns the region in which n bytes at a are, or nil.
func (r regions) find(a, n uint64) *region {
	i, found := r.search(a)
	if !found {
		i--
	}
	if i < 0 || a-r[i].base >= r[i].size || n > r[i].size-(a-r[i].base) {
		return nil
	}
	return &r[i]
}

// open makes a device ready.
func open(ordinal int) (driver.Device, error) {
	c, err := hold(ordinal)
	if err != nil {
		return nil, err
	}
	d := &device{c: c, running: map[*launch]struct{}{}, modules: map[*module]struct{}{}}
	if err := c.do("cuStreamCreate", d.prepare); err != nil {
		d.destroy()
		if e, ok := err.(*driver.Error); ok && fatal(e.Code) {
			e.Detail += "; " + spoiled
		}
		return nil, err
	}
	return d, nil
}

// prepare makes what every device has.
func (d *device) prepare() (err error) {
	if d.info, err = describeDevice(d.c.dev); err != nil {
		return err
	}
	flag := func(a cu.DeviceAttribute) bool {
		n, err := d.c.dev.Attribute(a)
		return err == nil && n != 0 // INVALID_VALUE: an older driver, which has no such attribute
	}
	d.coherent, d.pools = flag(cu.PageableMemoryAccess), flag(attributePools)
	stream := func() (cu.Stream, error) {
		s, err := cu.MakeStream(cu.NonBlocking)
		if err != nil {
			return s, d.c.failed("cuStreamCreate", err, "")
		}
		return s, nil
	}
	for range lanes {
		s, err := stream()
		if err != nil {
			return err
		}
		d.lanes = append(d.lanes, &lane{stream: s})
	}
	if d.pools {
		if d.allocated, err = stream(); err != nil {
			return err
		}
		if d.freed, err = stream(); err != nil {
			return err
		}
	}
	if p := hostAlloc(4); p != nil {
		d.word = (*uint32)(p)
		atomic.StoreUint32(d.word, 0)
		if err := lock(p, 4); err == nil {
			d.wordLocked = true
			if d.wordAt, err = hostAddress(p); err != nil {
				d.wordAt = 0
			}
		}
	}
	if d.base, err = cu.MakeEvent(cu.DefaultEvent); err != nil {
		return d.c.failed("cuEventCreate", err, "")
	}
	if err := d.base.Record(d.lanes[0].stream); err != nil {
		return d.c.failed("cuEventRecord", err, "")
	}
	if err := d.base.Synchronize(); err != nil {
		return d.c.failed("cuEventSynchronize", err, "")
	}
	return nil
}

// do runs f with the device's context current, if the device is open. f must not come here again.
func (d *device) do(call string, f func() error) error {
	if d.closed.Load() { // Close holds use for long
		return gone(call)
	}
	d.use.RLock()
	defer d.use.RUnlock()
	if d.closed.Load() {
		return gone(call)
	}
	return d.c.do(call, f)
}

func gone(call string) error {
	return &driver.Error{Call: call, Code: driver.Deinitialized, Detail: "the device is closed"}
}

// usable is nil if it makes sense to look at the arguments of a call. do asks again.
func (d *device) usable(call string) error {
	if d.closed.Load() {
		return gone(call)
	}
	return d.c.usable(call)
}

// Info describes the device.
func (d *device) Info() driver.Info { return d.info }

// Lost is nil, or the error after which the device must be opened anew.
func (d *device) Lost() error {
	if e := d.c.lost.Load(); e != nil {
		return e
	}
	return nil
}

// Streams is 3: 0 for launches, 1 and 2 for copies that overlap with them.
func (d *device) Streams() int { return lanes }

// CancelWord is the word that kernels read, in host memory. A kernel that does not read it runs on when its Cancel is true,
// and whoever waits for it waits.
func (d *device) CancelWord() driver.Ptr { return d.wordAt }

// MemInfo says how many bytes are free, and how many there are.
func (d *device) MemInfo() (free, total uint64, err error) {
	const call = "cuMemGetInfo"
	if d.pools && d.idle() { // what was freed goes to the pool and stays there
		if err := d.awaitStream(call, d.freed); err != nil {
			return 0, 0, err
		}
	}
	err = d.do(call, func() error {
		if d.pools {
			trim(d.c.dev)
		}
		f, t, err := cu.MemInfo()
		if err != nil {
			return d.c.failed(call, err, "")
		}
		free, total = uint64(f), uint64(t)
		return nil
	})
	return free, total, err
}

// idle says whether all work is known to be done.
func (d *device) idle() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, l := range d.lanes {
		if len(l.marks) > 0 || l.since > 0 {
			return false
		}
	}
	return true
}

// Alloc gives n bytes, contents undefined.
func (d *device) Alloc(n uint64) (driver.Ptr, error) {
	const call = "cuMemAlloc"
	if err := d.usable(call); err != nil {
		return 0, err
	}
	if n == 0 {
		return 0, invalid(call, "0 bytes asked for")
	}
	p, err := d.alloc(call, n)
	if errors.Is(err, driver.OutOfMemory) && d.pools {
		// What was freed may still wait for work, or be kept by the pool.
		if err := d.awaitStream(call, d.freed); err != nil {
			return 0, err
		}
		if d.do(call, func() error { return trim(d.c.dev) }) == nil {
			p, err = d.alloc(call, n)
		}
	}
	if errors.Is(err, driver.OutOfMemory) {
		err = d.exhausted(call, n)
	}
	return p, err
}

// alloc asks the driver once.
func (d *device) alloc(call string, n uint64) (p driver.Ptr, err error) {
	if n > 1<<62 {
		return 0, driver.OutOfMemory
	}
	err = d.do(call, func() error {
		var err error
		if d.pools {
			p, err = allocAsync(n, d.allocated)
		} else {
			var q cu.DevicePtr
			q, err = cu.MemAlloc(int64(n))
			p = driver.Ptr(q)
		}
		if err != nil {
			return d.c.failed(call, err, "")
		}
		d.mu.Lock()
		d.memory.add(region{base: uint64(p), size: n})
		d.mu.Unlock()
		return nil
	})
	if err == nil && d.pools {
		// In order of the other streams it may be used when this one is done.
		err = d.awaitStream(call, d.allocated)
	}
	return p, err
}

// awaitStream waits until all work of a stream is done.
func (d *device) awaitStream(call string, s cu.Stream) error {
	done := false
	return d.awaitMore(call, func() error {
		switch err := s.Query(); {
		case err == nil:
			done = true
		case codeOf(err) != driver.NotReady:
			return d.c.failed(call, err, d.blame(codeOf(err)))
		}
		return nil
	}, func() bool { return done })
}

// exhausted is the error of an allocation that is too large.
func (d *device) exhausted(call string, n uint64) error {
	e := &driver.Error{Call: call, Code: driver.OutOfMemory}
	free, total, err := d.MemInfo()
	if err != nil {
		e.Detail = fmt.Sprintf("%s asked for; free arrays that are no longer needed, or work in parts", size(n))
		return e
	}
	e.Detail = fmt.Sprintf("%s asked for, %s of %s free on %s; free arrays that are no longer needed, or work in parts", size(n), size(free), size(total), d.info.Name)
	if free > n {
		e.Detail += " (the free memory is in pieces)"
	}
	return e
}

// Free gives memory back, when all that was begun before is done.
func (d *device) Free(p driver.Ptr) error {
	const call = "cuMemFree"
	if err := d.usable(call); err != nil || p == 0 {
		return err
	}
	d.mu.Lock()
	_, ok := d.memory.remove(uint64(p))
	d.mu.Unlock()
	if !ok {
		return invalid(call, "%#x is no allocation, or was freed before", uint64(p))
	}
	if !d.pools {
		if err := d.settle(call); err != nil {
			return err
		}
		return d.do(call, func() error {
			if err := cu.MemFree(cu.DevicePtr(p)); err != nil {
				return d.c.failed(call, err, d.blame(codeOf(err)))
			}
			return nil
		})
	}
	var tails [lanes]uint64
	for i, l := range d.lanes {
		var err error
		if tails[i], err = d.tail(call, l); err != nil {
			return err
		}
	}
	return d.do(call, func() error {
		if err := d.behind(tails); err != nil {
			return err
		}
		if err := freeAsync(p, d.freed); err != nil {
			return d.c.failed("cuMemFreeAsync", err, d.blame(codeOf(err)))
		}
		return nil
	})
}

// behind makes what is freed from now on wait for the work of the lanes. Called in do.
func (d *device) behind(tails [lanes]uint64) error {
	d.mu.Lock()
	defer d.mu.Unlock() // events are not used again meanwhile
	for i, l := range d.lanes {
		if m := l.find(tails[i]); m != nil {
			if err := d.freed.Wait(m.event, 0); err != nil {
				return d.c.failed("cuStreamWaitEvent", err, "")
			}
		}
	}
	return nil
}

// Pinned gives n bytes of page-locked memory.
func (d *device) Pinned(n int) (b []byte, err error) {
	const call = "cuMemHostAlloc"
	if err := d.usable(call); err != nil {
		return nil, err
	}
	if n < 0 {
		return nil, invalid(call, "%d bytes asked for", n)
	}
	if n == 0 {
		return []byte{}, nil
	}
	p := hostAlloc(n)
	if p == nil {
		return nil, &driver.Error{Call: call, Code: driver.OutOfMemory, Detail: fmt.Sprintf("%s of host memory asked for; this machine does not have so much", size(n))}
	}
	err = d.do(call, func() error {
		err := lock(p, n)
		if err != nil && fatal(codeOf(err)) {
			return d.c.failed(call, err, "")
		}
		b = unsafe.Slice((*byte)(p), n)
		d.mu.Lock()
		d.pinned.add(region{base: uint64(uintptr(p)), size: uint64(n), host: p, locked: err == nil})
		d.mu.Unlock()
		return nil
	})
	if err != nil {
		hostFree(p)
	}
	return b, err
}

// FreePinned gives back what Pinned gave, all of it.
func (d *device) FreePinned(b []byte) error {
	const call = "cuMemHostUnregister"
	if err := d.usable(call); err != nil || len(b) == 0 {
		return err
	}
	at := uint64(uintptr(unsafe.Pointer(&b[0])))
	return d.do(call, func() error {
		d.mu.Lock()
		r, ok := d.pinned.remove(at)
		d.mu.Unlock()
		if !ok {
			return invalid(call, "%#x is no memory of Pinned, or was freed before", at)
		}
		if r.locked {
			if err := unlock(r.host); err != nil {
				d.mu.Lock()
				d.pinned.add(r) // the driver may still use it
				d.mu.Unlock()
				return d.c.failed(call, err, "")
			}
		}
		hostFree(r.host)
		return nil
	})
}

// isPinned says whether b is page-locked memory of Pinned.
func (d *device) isPinned(b []byte) bool {
	if len(b) == 0 {
		return false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	r := d.pinned.find(uint64(uintptr(unsafe.Pointer(&b[0]))), uint64(len(b)))
	return r != nil && r.locked
}

// within checks a range of device memory.
func (d *device) within(call string, p driver.Ptr, n uint64) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if n == 0 || d.memory.find(uint64(p), n) != nil {
		return nil
	}
	return invalid(call, "%d bytes at %#x are not within one allocation", n, uint64(p))
}

// The driver copies up to this many bytes of pageable memory into its queue and does not wait.
// CUDA Driver API, "API synchronization behavior".
const queued = 64 << 10

func (d *device) in(call string, s driver.Stream, dst driver.Ptr, src []byte, pinned bool) error {
	if err := d.usable(call); err != nil {
		return err
	}
	if err := d.within(call, dst, uint64(len(src))); err != nil {
		return err
	}
	o := operation{record: driver.Record{Op: driver.HostToDevice, Bytes: uint64(len(src)), Pinned: pinned}, waits: !pinned && len(src) > queued}
	if !pinned {
		o.host = src
	}
	return d.enqueue(call, s, o, func(s cu.Stream) error {
		if len(src) == 0 {
			return nil
		}
		return cu.MemcpyHtoDAsync(cu.DevicePtr(dst), unsafe.Pointer(&src[0]), int64(len(src)), s)
	})
}

func (d *device) out(call string, s driver.Stream, dst []byte, src driver.Ptr, pinned bool) error {
	if err := d.usable(call); err != nil {
		return err
	}
	if err := d.within(call, src, uint64(len(dst))); err != nil {
		return err
	}
	o := operation{record: driver.Record{Op: driver.DeviceToHost, Bytes: uint64(len(dst)), Pinned: pinned}, waits: !pinned}
	if !pinned {
		o.host = dst
	}
	return d.enqueue(call, s, o, func(s cu.Stream) error {
		if len(dst) == 0 {
			return nil
		}
		return cu.MemcpyDtoHAsync(unsafe.Pointer(&dst[0]), cu.DevicePtr(src), int64(len(dst)), s)
	})
}

// StartIn begins a copy to the device. From memory that is not of Pinned, and larger than 64 KiB, it waits for kernels.
func (d *device) StartIn(s driver.Stream, dst driver.Ptr, src []byte) error {
	return d.in("cuMemcpyHtoDAsync", s, dst, src, d.isPinned(src))
}

// StartOut begins a copy from the device. To memory that is not of Pinned it waits for kernels.
func (d *device) StartOut(s driver.Stream, dst []byte, src driver.Ptr) error {
	return d.out("cuMemcpyDtoHAsync", s, dst, src, d.isPinned(dst))
}

// CopyIn copies to the device in stream 0. src may be changed when it returns.
func (d *device) CopyIn(dst driver.Ptr, src []byte) error {
	const call = "cuMemcpyHtoD"
	pinned := d.isPinned(src)
	if err := d.in(call, 0, dst, src, pinned); err != nil {
		return err
	}
	if !pinned && !d.coherent { // the driver has a copy of it
		return nil
	}
	return d.finish(call, 0)
}

// CopyOut copies from the device in stream 0, and waits.
func (d *device) CopyOut(dst []byte, src driver.Ptr) error {
	const call = "cuMemcpyDtoH"
	if err := d.out(call, 0, dst, src, d.isPinned(dst)); err != nil {
		return err
	}
	if err := d.finish(call, 0); err != nil {
		return err
	}
	return d.failures(call)
}

// finish waits for all that was begun in a stream.
func (d *device) finish(call string, s driver.Stream) error {
	m, err := d.Mark(s)
	if err != nil {
		return err
	}
	l := d.lanes[s]
	return d.await(call, func() bool { return l.reached >= m.Number })
}

// Copy copies within the device.
func (d *device) Copy(dst, src driver.Ptr, n uint64) error {
	const call = "cuMemcpyDtoD"
	if err := d.usable(call); err != nil {
		return err
	}
	if n > 0 && dst < src+driver.Ptr(n) && src < dst+driver.Ptr(n) {
		return invalid(call, "%d bytes at %#x and at %#x overlap", n, uint64(src), uint64(dst))
	}
	if err := d.within(call, dst, n); err != nil {
		return err
	}
	if err := d.within(call, src, n); err != nil {
		return err
	}
	return d.enqueue(call, 0, operation{record: driver.Record{Op: driver.DeviceToDevice, Bytes: n}}, func(s cu.Stream) error {
		if n == 0 {
			return nil
		}
		return cu.MemcpyDtoDAsync(cu.DevicePtr(dst), cu.DevicePtr(src), int64(n), s)
	})
}

// Fill sets n bytes.
func (d *device) Fill(dst driver.Ptr, value byte, n uint64) error {
	const call = "cuMemsetD8"
	if err := d.usable(call); err != nil {
		return err
	}
	if err := d.within(call, dst, n); err != nil {
		return err
	}
	return d.enqueue(call, 0, operation{record: driver.Record{Op: driver.Memset, Bytes: n}}, func(s cu.Stream) error {
		if n == 0 {
			return nil
		}
		return cu.MemsetD8Async(cu.DevicePtr(dst), value, int64(n), s)
	})
}

// Close ends what runs and reads the cancel word, waits for the rest, and gives back what this opening has; other openings
// of a device that is not lost keep theirs. The error is one of the driver's that nobody has seen yet.
func (d *device) Close() error {
	d.closing.Lock()
	defer d.closing.Unlock()
	if d.closed.Swap(true) {
		return nil
	}
	d.mu.Lock()
	d.stop()
	d.mu.Unlock()
	d.use.Lock() // calls under way have ended
	defer d.use.Unlock()
	seen := d.c.lost.Load()
	err := d.drain()
	d.deliver()
	if e := d.destroy(); err == nil {
		err = e
	}
	if seen != nil {
		return nil
	}
	return err
}

// drain waits for all work.
func (d *device) drain() error {
	const call = "cuStreamQuery"
	for start := time.Now(); ; {
		busy := false
		err := d.c.do(call, func() error { // use is held alone, so nobody else advances
			if err := d.advance(); err != nil {
				return err
			}
			streams := []cu.Stream{}
			for _, l := range d.lanes {
				streams = append(streams, l.stream)
			}
			if d.pools {
				streams = append(streams, d.allocated, d.freed)
			}
			for _, s := range streams {
				switch err := s.Query(); {
				case err == nil:
				case codeOf(err) == driver.NotReady:
					busy = true
				default:
					return d.c.failed(call, err, d.blame(codeOf(err)))
				}
			}
			return d.advance()
		})
		if err != nil || !busy {
			return err
		}
		rest(time.Since(start), time.Since(start) > patience)
	}
}

// destroy gives back what the device has. With a lost context that is only what is not the driver's: a reset, which comes
// with the release, gives back the rest.
func (d *device) destroy() error {
	d.c.do("cuStreamDestroy", func() error {
		for m := range d.modules {
			m.cu.Unload()
		}
		for _, r := range d.memory {
			if r.module == nil {
				cu.MemFree(cu.DevicePtr(r.base))
			}
		}
		for _, r := range d.pinned {
			if r.locked {
				unlock(r.host)
			}
		}
		if d.wordLocked {
			unlock(unsafe.Pointer(d.word))
		}
		for _, l := range d.lanes {
			for _, m := range l.marks {
				cu.DestroyEvent(&m.event)
			}
			l.stream.Destroy()
		}
		if d.base != (cu.Event{}) {
			cu.DestroyEvent(&d.base)
		}
		for _, pool := range [][]cu.Event{d.timed, d.untimed} {
			for i := range pool {
				cu.DestroyEvent(&pool[i])
			}
		}
		for _, s := range []*cu.Stream{&d.allocated, &d.freed} {
			if *s != (cu.Stream{}) {
				s.Destroy()
			}
		}
		if d.pools {
			trim(d.c.dev)
		}
		return nil
	})
	err := d.c.release()
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, l := range d.lanes {
		for _, m := range l.marks {
			if m.pins != nil {
				m.pins.Unpin()
			}
		}
		if l.pins != nil {
			l.pins.Unpin()
		}
		l.marks, l.pins = nil, nil
	}
	for _, r := range d.pinned {
		hostFree(r.host)
	}
	if d.word != nil {
		hostFree(unsafe.Pointer(d.word))
	}
	d.word, d.memory, d.pinned, d.modules, d.reports = nil, nil, nil, nil, nil
	return err
}
