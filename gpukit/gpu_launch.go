package gpukit

import (
	"cmp"
	"encoding/binary"
	"errors"
	"runtime"
	"slices"
	"time"

	"gpunotes/gpukit/internal/codegen/nvptx"
	"gpunotes/gpukit/internal/cpu"
	"gpunotes/gpukit/internal/driver"
	"gpunotes/gpukit/internal/ir"
	"gpunotes/gpukit/internal/shape"
	"gpunotes/gpukit/trace"
)

// group is host memory that a launch works on in a copy: what one array spans, or
// several that overlap, which then do so on the device too.
type group struct {
	lo, hi  uint64 // host addresses
	members []*bound
	in      bool // some worker may see what is there before the launch
	block   *block
}

func (g *group) size() int { return int(g.hi - g.lo) }

// home is where an array is during a launch.
type home struct {
	memory *deviceMemory // it lives on the device,
	copy   *block        // or the workers get a copy of what lives there,
	group  *group        // or of what is on the host
	shift  int           // bytes from there to element 0 of its storage; the span begins later
}

// spanOf is the range of storage indices of a, n of them.
func spanOf(a *Array) (lo, n int) {
	lo, hi, ok := shape.Span{Offset: a.offset, Shape: a.shape, Strides: a.strides}.Bounds()
	if !ok {
		return 0, 0
	}
	return lo, hi - lo + 1
}

// gathered is a, or of an array on the host whose elements are far apart, such as
// a column, a copy without the gaps: they would all go to the device.
func (a *Array) gathered() *Array {
	if sliceBehind(a.store) == nil {
		return a
	}
	once := &Array{a.store, a.offset, append([]int{}, a.shape...), a.strides} // what repeats, once
	for d, s := range a.strides {
		if s == 0 {
			once.shape[d] = min(a.shape[d], 1)
		}
	}
	if _, n := spanOf(a); n <= 2*once.Size() {
		return a
	}
	out, i := makeStorage(a.DType(), once.Size()), 0
	shape.Each(once.shape, once.strides, once.offset, func(k int) {
		out.setBits(i, a.store.bits(k))
		i++
	})
	return newArray(out, once.shape).BroadcastTo(a.shape...)
}

// place finds out where the arrays of a call are and what has to be copied.
func (l *gpuLaunch) place(c *call) {
	l.homes = map[*bound]home{}
	type hosted struct {
		b      *bound
		space  any
		lo, hi uint64
	}
	var host []hosted
	for _, list := range [][]bound{c.args, c.outs} {
		for i := range list {
			b := &list[i]
			if b.array == nil || !l.touched(c, b) {
				continue
			}
			size := b.array.DType().Size()
			lo, n := spanOf(b.array)
			switch m := deviceMemoryOf(b.array.store); {
			case n == 0:
			case m != nil && b.copied:
				l.homes[b] = home{memory: m, shift: -lo * size}
			case m != nil:
				l.homes[b] = home{memory: m}
			case b.fresh || !inMemory(b.array.store):
				// A result, unless it will be on the device; generators have no memory.
				if _, ok := b.array.store.(*generator); !ok && !c.resident {
					l.homes[b] = home{group: &group{hi: uint64(n * size), members: []*bound{b}}}
					l.groups = append(l.groups, l.homes[b].group)
				}
			default:
				e, _ := extentOf(b.array.store)
				first := e.first + uint64(lo*size)
				host = append(host, hosted{b, e.space, first, first + uint64(n*size)})
			}
		}
	}
	slices.SortStableFunc(host, func(x, y hosted) int { return cmp.Compare(x.lo, y.lo) })
	var open *group
	var space any
	for _, h := range host {
		if open == nil || space != h.space || h.lo >= open.hi {
			open, space = &group{lo: h.lo}, h.space
			l.groups = append(l.groups, open)
		}
		open.hi = max(open.hi, h.hi)
		open.members = append(open.members, h.b)
		open.in = open.in || c.seen(h.b)
		e, _ := extentOf(h.b.array.store)
		l.homes[h.b] = home{group: open, shift: int(int64(e.first - open.lo))}
	}
	slices.SortStableFunc(l.groups, func(x, y *group) int { return cmp.Compare(l.order(c, x), l.order(c, y)) })
}

// order is the place of a group among the arguments, so that copies are in order.
func (l *gpuLaunch) order(c *call, g *group) int {
	n := 0
	for _, list := range [][]bound{c.args, c.outs} {
		for i := range list {
			if slices.Contains(g.members, &list[i]) {
				return n
			}
			n++
		}
	}
	return n
}

// touched reports whether workers use the elements of an argument or result.
func (l *gpuLaunch) touched(c *call, b *bound) bool {
	return c.grid.X == 0 || b.captured || b.read || b.written
}

// seen reports whether what is in an array before the launch matters: a worker may
// read it, or it may not be written as a whole. An elementwise result is.
func (c *call) seen(b *bound) bool { return b.indexed || !b.written }

// address is that of element 0 of the storage of an array on the device.
func (l *gpuLaunch) address(b *bound) uint64 {
	h := l.homes[b]
	switch {
	case h.copy != nil:
		return uint64(h.copy.ptr) + uint64(h.shift)
	case h.group != nil:
		return uint64(h.group.block.ptr) + uint64(h.shift)
	case h.memory != nil:
		return uint64(h.memory.block.ptr)
	}
	return 0
}

// traffic is what a launch copies to the device and back, in bytes.
func (l *gpuLaunch) traffic(c *call) (in, out int) {
	for _, g := range l.groups {
		if g.in {
			in += g.size()
		}
		for _, b := range g.members {
			if b.written {
				_, n := spanOf(b.array)
				out += n * b.array.DType().Size()
			}
		}
	}
	return in, out
}

// run runs a call on the GPU: copies in what is on the host, launches, copies out.
func (p *gpuCode) run(d *Device, c *call) error {
	l := p.launch(d, c)
	if l.workers == 0 {
		return nil
	}
	v, err := p.variant(l)
	if err != nil && d.closed.Load() {
		return cpu.ErrCancelled
	}
	if err != nil {
		return p.gpu.fault(c.op, err)
	}
	grid, block := l.geometry(d, c, v)
	record, err := p.execute(d, c, l, v, driver.Launch{Grid: grid, Block: block, Shared: p.dynamicShared(d), Name: l.name})
	runtime.KeepAlive(c) // its arrays on the device
	worker, check, failed := nvptx.Failure(record)
	if !failed {
		l.show(d, c, v, -1)
	} else {
		l.show(d, c, v, int(worker))
		return c.failed(d, int(worker), v.entry.Checks[check])
	}
	var de *driver.Error
	if err != nil && errors.As(err, &de) && (de.Code == driver.InvalidValue || de.Code == driver.LaunchOutOfResources) && de.Call == "cuLaunchKernel" {
		return c.refuse("", "%s", de.Detail)
	}
	if err != nil && err != cpu.ErrCancelled {
		err = p.gpu.fault(c.op, err)
	}
	return err
}

func (p *gpuCode) dynamicShared(d *Device) int {
	if slices.ContainsFunc(p.f.Mems, func(m ir.Memory) bool { return m.Space == ir.Shared && m.Len == 0 }) {
		return d.options.sharedBytes
	}
	return 0
}

const noFailure = ^uint64(0)

// execute does the work with the card to itself. record says what failed.
func (p *gpuCode) execute(d *Device, c *call, l *gpuLaunch, v *variant, launch driver.Launch) (record uint64, err error) {
	g := p.gpu
	defer g.lock()()
	if d.closed.Load() {
		return noFailure, cpu.ErrCancelled
	}
	var temporary []*block
	defer func() {
		for _, b := range temporary {
			g.pool.put(b)
		}
	}()
	get := func(n int) (*block, error) {
		b, err := g.alloc(n)
		if err == nil {
			temporary = append(temporary, b)
		}
		return b, err
	}
	for b, h := range l.homes {
		if r, ok := b.array.store.(*resident); ok && r.gone() != "" {
			return noFailure, c.refuse("", "%s: %s", b.name, r.gone())
		}
		if h.memory != nil && b.copied {
			lo, n := spanOf(b.array)
			size := b.array.DType().Size()
			if h.copy, err = get(n * size); err == nil {
				err = g.copyWithin(h.copy.ptr, h.memory.at(lo), n*size)
			}
			l.homes[b] = h
		}
		if err != nil {
			return noFailure, err
		}
	}
	for _, group := range l.groups {
		if group.block, err = get(group.size()); err != nil {
			return noFailure, err
		}
		if group.in {
			err = g.copyIn(group.block.ptr, l.packed(g, group))
		}
		if err != nil {
			return noFailure, err
		}
	}
	for i := range c.outs { // what a gufunc writes begins as zeros
		if b := &c.outs[i]; b.fresh && b.indexed {
			if err := g.zero(driver.Ptr(l.address(b)), b.array.Size()*b.array.DType().Size()); err != nil {
				return noFailure, err
			}
		}
	}

	if err := l.printing(g, v, get); err != nil {
		return noFailure, err
	}
	launch.Params, launch.Cancel, launch.Steps = l.parameters(g, v.entry), d.cancelled(), g.steps
	err = g.noting(note{record: trace.Record{Name: c.fn.name}}, func() error { return v.fn.Launch(launch) })
	if err == nil {
		err = g.dev.Sync()
	}
	if e := l.takeLines(g, v); err == nil {
		err = e
	}
	if slices.ContainsFunc(v.entry.Params, func(q nvptx.Param) bool { return q.Kind == nvptx.Record }) {
		var b [failureBytes]byte
		if e := g.copyOut(b[:], g.failure, true); e == nil {
			if record = binary.LittleEndian.Uint64(b[:]); record != noFailure {
				g.noting(note{hidden: true}, func() error { return g.dev.Fill(g.failure, 0xff, failureBytes) })
				return record, err
			}
		}
	}
	if err != nil {
		return noFailure, d.endedBy(err)
	}
	for i := range c.args {
		if err := l.fetch(g, &c.args[i]); err != nil {
			return noFailure, err
		}
	}
	for i := range c.outs {
		if err := l.fetch(g, &c.outs[i]); err != nil {
			return noFailure, err
		}
	}
	return noFailure, nil
}

// packed is the host memory of a group as the device has it.
func (l *gpuLaunch) packed(g *gpu, group *group) []byte {
	buf := g.stage(group.size())
	for _, b := range group.members {
		size := b.array.DType().Size()
		lo, n := spanOf(b.array)
		at := l.homes[b].shift + lo*size
		pack(buf[at:at+n*size], part(sliceBehind(b.array.store), lo, lo+n))
	}
	return buf
}

// fetch copies what was written to an array on the host.
func (l *gpuLaunch) fetch(g *gpu, b *bound) error {
	h := l.homes[b]
	if !b.written || h.group == nil {
		return nil
	}
	a := b.array
	size := a.DType().Size()
	lo, n := spanOf(a)
	buf := g.stage(n * size)
	if err := g.copyOut(buf, driver.Ptr(l.address(b)+uint64(lo*size)), false); err != nil {
		return err
	}
	data := sliceBehind(a.store)
	if a.Size() == n && !slices.ContainsFunc(a.strides, func(s int) bool { return s < 0 }) {
		unpack(part(data, lo, lo+n), buf) // no gaps
		return nil
	}
	shape.Each(a.shape, a.strides, a.offset, func(k int) {
		a.store.setBits(k, decode(a.DType(), buf[(k-lo)*size:(k-lo+1)*size]))
	})
	return nil
}

// endedBy is the error of a launch that was ended: by the user, by Close, or by
// the device.
func (d *Device) endedBy(err error) error {
	if errors.Is(err, driver.LaunchTimeout) && d.cancelled()() {
		return cpu.ErrCancelled
	}
	return err
}

// rerunTime bounds how long the reference evaluator may look for what a worker
// failed at.
const rerunTime = 2 * time.Second

// failed explains the failure of a worker: the evaluator runs it again, on what
// is still there, and knows the values. Where threads depend on each other, or the
// arguments were overwritten, the place is all there is.
func (c *call) failed(d *Device, worker int, check nvptx.Check) error {
	l := c.bind(d)
	s := &sample{call: c, launch: l}
	e := &cpu.WorkerError{Worker: worker, Index: unravel(worker, l.Shape), Args: workerArgs(&l, worker)}
	e.Err = &ir.FaultError{Fault: check.Fault, Func: c.fn.name, Pos: check.Pos}
	if c.fn.source.Meets || c.fn.source.Atomics {
		return e
	}
	x, _ := s.evaluate(worker, time.Now().Add(rerunTime))
	var fault *ir.FaultError
	if errors.As(x.err, &fault) && fault.Fault == check.Fault {
		e.Err, e.Args = fault, x.args
	}
	return e
}
