package gpukit

import (
	"cmp"
	"encoding/binary"
	"errors"
	"iter"
	"runtime"
	"slices"

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

// find finds out where the arrays of a call are and what has to be copied.
func (l *places) find(c *call) {
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
func (l *places) order(c *call, g *group) int {
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
func (l *places) touched(c *call, b *bound) bool {
	return c.grid.X == 0 || b.captured || b.read || b.written
}

// seen reports whether what is in an array before the launch matters: a worker may
// read it, or it may not be written as a whole. An elementwise result is.
func (c *call) seen(b *bound) bool { return b.indexed || !b.written }

// address is that of element 0 of the storage of an array on the device.
func (l *places) address(b *bound) uint64 {
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
func (l *places) traffic(c *call) (in, out int) {
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

// run runs a call on the GPU: copies in what is on the host, launches its stages,
// copies out.
func (e gpuEngine) run(d *Device, c *call) error {
	ls, err := e.launches(d, c)
	if err != nil {
		return err
	}
	if ls[0].workers == 0 {
		return nil
	}
	for _, l := range ls {
		if l.variant, err = l.code().variant(l); err != nil && d.closed.Load() {
			return cpu.ErrCancelled
		}
		if err != nil {
			return e.gpu.fault(c.op, err)
		}
	}
	at, failed, err := e.execute(d, c, ls)
	runtime.KeepAlive(c) // its arrays on the device
	for k, l := range ls {
		if failed == nil || k < at {
			l.show(d, c, l.variant, -1)
		}
	}
	if failed != nil {
		l := ls[at]
		l.show(d, c, l.variant, failed.worker)
		x := l.variant.entry.Checks[failed.check]
		why := &ir.FaultError{Fault: x.Fault, Func: c.fn.name, Pos: x.Pos}
		return c.failed(d, failed.worker/max(l.stage.per, 1), why.Operands(l.code().f, l.stage.numbers(failed.worker)))
	}
	var de *driver.Error
	if err != nil && errors.As(err, &de) && (de.Code == driver.InvalidValue || de.Code == driver.LaunchOutOfResources) && de.Call == "cuLaunchKernel" {
		return c.refuse("", "%s", de.Detail)
	}
	if err != nil && err != cpu.ErrCancelled {
		err = e.gpu.fault(c.op, err)
	}
	return err
}

func (p *gpuCode) dynamicShared(d *Device) int {
	if slices.ContainsFunc(p.f.Mems, func(m ir.Memory) bool { return m.Space == ir.Shared && m.Len == 0 }) {
		return d.options.sharedBytes
	}
	return 0
}

// failure is the lowest worker that failed, and the number of the check.
type failure struct{ worker, check int }

// uses reports whether the code has a parameter of a kind.
func (v *variant) uses(k nvptx.ParamKind) bool {
	return slices.ContainsFunc(v.entry.Params, func(q nvptx.Param) bool { return q.Kind == k })
}

// execute does the work with the card to itself, all stages with one set-up. Where
// nothing of it is to be known or copied, it returns before the work is done. at is
// the stage that failed, or how many did not.
func (e gpuEngine) execute(d *Device, c *call, ls []*gpuLaunch) (at int, failed *failure, err error) {
	g, l := e.gpu, ls[0]
	defer g.lock()()
	if d.closed.Load() {
		return 0, nil, cpu.ErrCancelled
	}
	g.stop = d.cancelled
	if g.dirty {
		if err := g.fill(g.failure, 0xff, failureBytes, true); err != nil {
			return 0, nil, err
		}
		g.dirty = false
	}
	defer func() { g.dirty = g.dirty || failed != nil || err != nil }()
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
	if err := l.home(g, c, get); err != nil {
		return 0, nil, err
	}
	waits := len(l.groups) > 0
	for _, l := range ls {
		v := l.variant
		if err := l.printing(g, v, get); err != nil {
			return 0, nil, err
		}
		waits = waits || v.uses(nvptx.Record) || l.printed != nil || v.uses(nvptx.Cancel)
	}
	w := cut(g, c, ls)
	if w != nil && len(ls) == 1 {
		return e.inParts(d, c, ls, w)
	}
	for _, group := range l.groups {
		if !group.in {
			continue
		}
		if _, err := g.moveIn(0, group.block.ptr, group.size(), func(b []byte, off int) { l.packed(group, b, off) }); err != nil {
			return 0, nil, err
		}
	}
	if w != nil {
		return e.inParts(d, c, ls, w)
	}
	if err := l.clear(g, c); err != nil {
		return 0, nil, err
	}
	records := make([][]byte, len(ls))
	for k, l := range ls {
		v := l.variant
		launch := l.start(d, c)
		launch.Progress = d.progress(k, len(ls))
		if !waits && g.cancel != 0 {
			launch.Cancel = nil // it ends by itself, and nobody is there to ask
		}
		l.word = k % failureWords
		launch.Params = l.parameters(g, v.entry)
		if err = l.code().begin(l.stage.name, v, launch); err != nil && !v.uses(nvptx.Record) {
			break
		}
		if v.uses(nvptx.Record) {
			if records[k], err = l.code().startRecord(0, l.word, err); err != nil {
				break
			}
		}
	}
	if !waits {
		if err == nil && len(g.busy) >= maxBusy {
			err = g.wait()
		}
		return len(ls), nil, d.endedBy(err)
	}

	// One wait for all that the host is to know, if it does not depend on what was
	// found out.
	var outs []*outcome
	early := err == nil && g.streams > 1
	if early {
		_, n := l.traffic(c)
		early = n <= stagingPiece
	}
	for b := range l.written(c) {
		o := l.outcome(b)
		outs = append(outs, o)
		if early {
			o.slab = g.staging.take(o.size)
			if err = g.startOut(0, o.slab.b[:o.size], o.from, false); err != nil {
				return 0, nil, err
			}
		}
	}
	if e := g.wait(); e != nil && !errors.Is(e, driver.LaunchTimeout) {
		return 0, nil, cmp.Or(err, e) // nothing that is there can be trusted
	} else if err == nil {
		err = e
	}
	for k, l := range ls {
		if e := l.takeLines(g, l.variant); err == nil {
			err = e
		}
		if failed := g.failed(l.variant, records[k]); failed != nil {
			return k, failed, err
		}
	}
	if err != nil {
		return 0, nil, d.endedBy(err)
	}
	for _, o := range outs {
		if err := o.fetch(g); err != nil {
			return len(ls), nil, err
		}
	}
	return len(ls), nil, nil
}

// start is what is known of the launch of a stage before its memory is there.
func (l *gpuLaunch) start(d *Device, c *call) driver.Launch {
	grid, block := l.geometry(d, c, l.variant)
	return driver.Launch{Grid: grid, Block: block, Shared: l.code().dynamicShared(d), Name: l.name, SharedName: l.sharedName, Cancel: d.gpu.stop, Steps: d.gpu.steps}
}

// maxBusy is how many launches may be under way that nobody waits for.
const maxBusy = 1024

// begin launches.
func (p *gpuCode) begin(name string, v *variant, launch driver.Launch) error {
	g := p.gpu
	n := g.expect(note{record: trace.Record{Name: name}})
	g.busy = append(g.busy, v)
	return g.unless(n, v.fn.Launch(launch))
}

// startRecord begins to copy a word in which a failing worker leaves its number,
// also after a launch that ended with err, which is returned: a worker may be why.
func (p *gpuCode) startRecord(s driver.Stream, word int, err error) ([]byte, error) {
	g := p.gpu
	record := g.staging.take(8).b[:8]
	for i := range record {
		record[i] = 0xff
	}
	e := g.startOut(s, record, g.failure+driver.Ptr(8*word), true)
	switch {
	case err != nil && e != nil:
		return nil, err
	case e != nil:
		return nil, e
	}
	return record, err
}

// failed reads a word of startRecord, when all is done.
func (g *gpu) failed(v *variant, record []byte) *failure {
	if record == nil || g.dev.Lost() != nil {
		return nil
	}
	worker, check, yes := nvptx.Failure(binary.LittleEndian.Uint64(record))
	if !yes || check >= len(v.entry.Checks) {
		return nil
	}
	return &failure{int(worker), check}
}

// home finds a place on the device for what the launch works on.
func (l *places) home(g *gpu, c *call, get func(n int) (*block, error)) (err error) {
	for b, h := range l.homes {
		if r, ok := b.array.store.(*resident); ok && r.gone() != "" {
			return c.refuse("", "%s: %s", b.name, r.gone())
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
			return err
		}
	}
	for _, b := range l.made {
		copy, err := get(b.array.Size() * b.array.DType().Size())
		if err != nil {
			return err
		}
		l.homes[b] = home{copy: copy}
	}
	for _, group := range l.groups {
		if group.block, err = get(group.size()); err != nil {
			return err
		}
	}
	return nil
}

// clear makes zeros of what a gufunc writes.
func (l *places) clear(g *gpu, c *call) error {
	for i := range c.outs {
		if b := &c.outs[i]; b.fresh && b.indexed {
			if err := g.fill(driver.Ptr(l.address(b)), 0, b.array.Size()*b.array.DType().Size(), false); err != nil {
				return err
			}
		}
	}
	return nil
}

// packed writes the bytes of a group from off on as the device has them.
func (l *places) packed(group *group, buf []byte, off int) {
	for _, b := range group.members {
		size := b.array.DType().Size()
		lo, n := spanOf(b.array)
		at := l.homes[b].shift + lo*size
		if from, to := max(at, off), min(at+n*size, off+len(buf)); from < to {
			pack(buf[from-off:to-off], sliceBehind(b.array.store), lo+(from-at)/size)
		}
	}
}

// written are the arrays on the host that a launch writes, in order.
func (l *places) written(c *call) iter.Seq[*bound] {
	return func(yield func(*bound) bool) {
		for _, list := range [][]bound{c.args, c.outs} {
			for i := range list {
				if b := &list[i]; b.written && l.homes[b].group != nil && !yield(b) {
					return
				}
			}
		}
	}
}

// outcome is an array on the host, or a part of one, that a launch writes.
type outcome struct {
	view  *Array // what was written
	lo    int    // the first element of its storage that is in the copy
	size  int    // of the copy, in bytes
	whole bool   // every element that the copy spans was written
	from  driver.Ptr
	slab  *slab // of a copy that was begun
}

// outcome is what a launch writes to an array.
func (l *places) outcome(b *bound) *outcome {
	a := b.array
	size := a.DType().Size()
	lo, n := spanOf(a)
	whole := a.Size() == n && !slices.ContainsFunc(a.strides, func(s int) bool { return s < 0 })
	return &outcome{view: a, lo: lo, size: n * size, whole: whole, from: driver.Ptr(l.address(b) + uint64(lo*size))}
}

// fetch brings it to the host, after all that was begun in stream 0.
func (o *outcome) fetch(g *gpu) error {
	switch {
	case o.slab != nil:
		o.put(o.slab.b[:o.size], 0)
		return nil
	case o.whole:
		return g.moveOut(o.size, o.from, o.put)
	}
	o.slab = g.staging.take(o.size)
	if err := g.startOut(0, o.slab.b[:o.size], o.from, false); err != nil {
		return err
	}
	if err := g.wait(); err != nil {
		return err
	}
	o.put(o.slab.b[:o.size], 0)
	return nil
}

// put writes what was copied, from byte off on, which is 0 if not all is written.
func (o *outcome) put(buf []byte, off int) {
	a := o.view
	size := a.DType().Size()
	data := sliceBehind(a.store)
	if o.whole {
		unpack(data, o.lo+off/size, buf)
		return
	}
	if dst, ok := bytesOf(data); ok && a.DType() != Bool {
		shape.Each(a.shape, a.strides, a.offset, func(k int) { copy(dst[k*size:][:size], buf[(k-o.lo)*size:]) })
		return
	}
	shape.Each(a.shape, a.strides, a.offset, func(k int) {
		a.store.setBits(k, decode(a.DType(), buf[(k-o.lo)*size:(k-o.lo+1)*size]))
	})
}

// endedBy is the error of a launch that was ended: by the user, by Close, or by
// the device.
func (d *Device) endedBy(err error) error {
	if errors.Is(err, driver.LaunchTimeout) && d.cancelled() {
		return cpu.ErrCancelled
	}
	return err
}
