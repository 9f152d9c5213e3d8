package gpukit

import (
	"errors"
	"math"
	"slices"

	"gpunotes/gpukit/internal/codegen/nvptx"
	"gpunotes/gpukit/internal/cpu"
	"gpunotes/gpukit/internal/driver"
	"gpunotes/gpukit/internal/ir"
	"gpunotes/gpukit/internal/shape"
)

// A call of Vectorize or GUVectorize that moves much between host and device is done
// in parts, each a row of workers: while one part is computed, what the next needs is
// copied in and what the last gave is copied out. Results are those of one launch.

var ( // for tests
	// pipelineFrom is how many bytes must move for that to be worth it.
	pipelineFrom = 16 << 20
	// pipelineLeast and pipelineMost bound what a part moves.
	pipelineLeast, pipelineMost = 4 << 20, 16 << 20
)

const (
	streamKernels driver.Stream = iota
	streamIn
	streamOut
	pipelineStreams = 3
	// pipelineAhead is how many parts may be under way.
	pipelineAhead = 3
)

// share is a part of the workers that follow each other: a box of the loop
// dimensions, in which no dimension is cut that lies inside one that goes on.
type share struct {
	first, workers int
	at, dims       []int // where it begins, and its sizes
}

// pipeline is how the last stage of a call is cut.
type pipeline struct {
	shares []share
	in     []inflow
	out    []outflow
	late   []*bound // results that only the end of all shares brings
}

// inflow is host memory that is copied in.
type inflow struct {
	group *group
	need  []int // by share: how many bytes of it that and the earlier ones use
}

// outflow is a result that is copied out share by share.
type outflow struct {
	b    *bound
	uses []access
}

// access is how the workers of a stage walk an array: an element each, or the part from
// there on that one worker indexes.
type access struct {
	offset  int
	strides []int // over the index space of the stage
	indexed bool
}

// uses is how a stage uses an array. known is false if it may be anywhere in it.
func (l *gpuLaunch) uses(b *bound) (list []access, known bool) {
	for _, operands := range [][]gpuOperand{l.in, l.out} {
		for i := range operands {
			if o := &operands[i]; o.array == b {
				list = append(list, access{o.offset, o.strides, false})
			}
		}
	}
	for m, x := range l.mems {
		if x != b {
			continue
		}
		i := slices.IndexFunc(l.stage.f.Params, func(q ir.Param) bool { return q.Kind == ir.Offset && int(q.Mem) == m })
		if i < 0 || l.stage.lifted != nil {
			return nil, false
		}
		list = append(list, access{l.in[i].offset, l.in[i].strides, true})
	}
	return list, true
}

// reach is the range of elements of its storage that a share uses of an array.
func (s *share) reach(b *bound, uses []access) (lo, hi int) {
	lo, hi = math.MaxInt, 0
	for _, u := range uses {
		v := s.view(b, u)
		if from, to, ok := (shape.Span{Offset: v.offset, Shape: v.shape, Strides: v.strides}).Bounds(); ok {
			lo, hi = min(lo, from), max(hi, to+1)
		}
	}
	return min(lo, hi), hi
}

// view is what a share uses of an array.
func (s *share) view(b *bound, u access) *Array {
	a := &Array{store: b.array.store, offset: u.offset, shape: s.dims, strides: u.strides}
	for d, i := range s.at {
		a.offset += i * u.strides[d]
	}
	if u.indexed {
		a.shape, a.strides = slices.Concat(s.dims, b.core), slices.Concat(u.strides, b.strides)
	}
	return a
}

// shares cuts the workers of a shape into rows of about n.
func shares(dims []int, n int) (list []share) {
	// The outermost dimension one step of which is no more than that.
	cut, inner := len(dims)-1, 1
	for cut > 0 && inner*dims[cut] <= n {
		inner *= dims[cut]
		cut--
	}
	rows := min(max(n/inner, 1), dims[cut])
	if inner == 1 && rows >= 2048 {
		rows &^= 1023 // whole blocks, and addresses as good as the first
	}
	at := make([]int, len(dims))
	first := 0
	for {
		for at[cut] = 0; at[cut] < dims[cut]; at[cut] += rows {
			s := share{first: first, at: append([]int{}, at...), dims: append([]int{}, dims...)}
			for d := range cut {
				s.dims[d] = 1
			}
			s.dims[cut] = min(rows, dims[cut]-at[cut])
			s.workers = s.dims[cut] * inner
			first += s.workers
			list = append(list, s)
		}
		at[cut] = 0
		d := cut - 1
		for ; d >= 0; d-- {
			if at[d]++; at[d] < dims[d] {
				break
			}
			at[d] = 0
		}
		if d < 0 {
			return list
		}
	}
}

// cut says how to do the last stage of a call in parts, nil if the call is to be done
// as one.
func cut(g *gpu, c *call, ls []*gpuLaunch) *pipeline {
	l := ls[len(ls)-1]
	if g.streams < pipelineStreams || c.block.X > 0 || l.printed != nil || len(l.shape) == 0 || l.workers == 0 {
		return nil
	}
	in, out := l.traffic(c)
	moved := in + out
	if len(ls) > 1 {
		moved = out // what is copied in, the earlier stages may need
	}
	if moved < pipelineFrom {
		return nil
	}
	target := min(max(moved/8, pipelineLeast), pipelineMost)
	p := &pipeline{shares: shares(l.shape, int(float64(l.workers)*float64(target)/float64(moved)))}
	if len(p.shares) < 2 {
		return nil
	}
	gain := 0
	for _, group := range l.groups {
		if !group.in || len(ls) > 1 {
			continue
		}
		flow := inflow{group: group, need: make([]int, len(p.shares))}
		for _, b := range group.members {
			uses, known := l.uses(b)
			size := b.array.DType().Size()
			for k := range p.shares {
				_, hi := p.shares[k].reach(b, uses)
				if !known || len(uses) == 0 {
					lo, n := spanOf(b.array)
					hi = lo + n
				}
				flow.need[k] = max(flow.need[k], l.homes[b].shift+hi*size)
			}
		}
		for k := range flow.need[1:] {
			flow.need[k+1] = max(flow.need[k+1], flow.need[k])
		}
		for _, b := range group.members { // what is copied back as a whole must be there as a whole
			if b.written {
				lo, n := spanOf(b.array)
				last := &flow.need[len(flow.need)-1]
				*last = max(*last, l.homes[b].shift+(lo+n)*b.array.DType().Size())
			}
		}
		gain += flow.need[len(flow.need)-1] - flow.need[0]
		p.in = append(p.in, flow)
	}
	for b := range l.written(c) {
		uses, apart := l.uses(b)
		apart = apart && len(uses) > 0
		for _, x := range ls[:len(ls)-1] {
			if some, known := x.uses(b); len(some) > 0 || !known {
				apart = false
			}
		}
		last := 0
		for k := 0; k < len(p.shares) && apart; k++ {
			lo, hi := p.shares[k].reach(b, uses)
			apart, last = k == 0 || lo >= last, hi
		}
		if !apart {
			p.late = append(p.late, b)
			continue
		}
		_, n := spanOf(b.array)
		gain += n * b.array.DType().Size()
		p.out = append(p.out, outflow{b, uses})
	}
	if gain < pipelineFrom/2 {
		return nil
	}
	return p
}

// share is the launch of a share alone, by the same code.
func (l *gpuLaunch) share(s *share) *gpuLaunch {
	q := *l
	q.workers, q.shape = s.workers, s.dims
	from := func(list []gpuOperand) []gpuOperand {
		list = append([]gpuOperand{}, list...)
		for i := range list {
			o := &list[i]
			step := 0
			for d := range o.strides {
				step += s.at[d] * o.strides[d]
			}
			if o.array != nil {
				o.offset += step
			} else { // an offset, or the number of an element that a formula gives
				o.value += ir.Bits(step)
			}
		}
		return list
	}
	q.in, q.out = from(l.in), from(l.out)
	return &q
}

// flight is a share that is under way, or an earlier stage.
type flight struct {
	stage  int
	first  int // number of its first worker
	slabs  []*slab
	outs   []*outcome
	record []byte
	done   driver.Mark
}

// failed is the worker of a share that failed, if one did.
func (x *flight) failed(g *gpu, v *variant) *failure {
	f := g.failed(v, x.record)
	if f != nil {
		f.worker += x.first
	}
	return f
}

// inParts does the work of execute, the last stage share by share.
func (e gpuEngine) inParts(d *Device, c *call, ls []*gpuLaunch, w *pipeline) (at int, failed *failure, err error) {
	g, l := e.gpu, ls[len(ls)-1]
	if err := l.clear(g, c); err != nil {
		return 0, nil, err
	}
	var open []*flight // whose results have not been taken
	at, failed, err = e.flow(d, c, ls, w, &open)
	if failed == nil && err == nil {
		for _, b := range w.late {
			if err = l.outcome(b).fetch(g); err != nil {
				break
			}
		}
	}
	if failed == nil && err == nil {
		return len(ls), nil, nil
	}
	if e := g.wait(); err == nil {
		err = e
	}
	if failed != nil || !errors.Is(err, driver.LaunchTimeout) { // else nothing that is there can be trusted
		return at, failed, err
	}
	for _, x := range open { // the lowest worker may be in one that was begun earlier
		if failed := x.failed(g, ls[x.stage].variant); failed != nil {
			return x.stage, failed, err
		}
	}
	return 0, nil, d.endedBy(err)
}

// flow keeps a few shares under way.
func (e gpuEngine) flow(d *Device, c *call, ls []*gpuLaunch, w *pipeline, open *[]*flight) (at int, failed *failure, err error) {
	g, last := e.gpu, len(ls)-1
	l := ls[last]
	taken, tell := 0, d.progress(0, 1)
	if tell != nil {
		tell(0, last+len(w.shares))
	}
	first := func() (at int, failed *failure, err error) {
		x := (*open)[0]
		if err := g.dev.Wait(x.done); err != nil {
			return 0, nil, err
		}
		if failed := x.failed(g, ls[x.stage].variant); failed != nil {
			return x.stage, failed, nil
		}
		for _, o := range x.outs {
			o.put(o.slab.b[:o.size], 0)
		}
		for _, s := range x.slabs {
			g.staging.give(s)
		}
		*open = (*open)[1:]
		if taken++; tell != nil {
			tell(taken, last+len(w.shares))
		}
		return 0, nil, nil
	}
	// launch begins a stage or a share of it.
	launch := func(x *flight, l *gpuLaunch, word int) error {
		v := l.variant
		l.word = word
		launch := l.start(d, c)
		launch.Params, launch.Stream = l.parameters(g, v.entry), streamKernels
		err := l.code().begin(l.stage.name, v, launch)
		if v.uses(nvptx.Record) { // also of a launch that failed
			var e error
			if x.record, e = l.code().startRecord(streamKernels, word, err); err == nil {
				err = e
			}
		}
		*open = append(*open, x)
		return err
	}

	for k, l := range ls[:last] {
		x := &flight{stage: k}
		if err := launch(x, l, k); err != nil {
			return 0, nil, err
		}
		if x.done, err = g.dev.Mark(streamKernels); err != nil {
			return 0, nil, err
		}
	}
	// What was begun before may still use memory that is this call's now.
	if err := g.order(streamKernels, streamIn); err != nil {
		return 0, nil, err
	}
	copied := make([]int, len(w.in))
	for k := range w.shares {
		for len(*open) >= pipelineAhead {
			if at, failed, err := first(); failed != nil || err != nil {
				return at, failed, err
			}
		}
		if g.stopped() {
			return 0, nil, cpu.ErrCancelled
		}
		s := &w.shares[k]
		x := &flight{stage: last, first: s.first}
		fresh := false
		for i, f := range w.in {
			at := copied[i]
			if f.need[k] <= at {
				continue
			}
			slabs, err := g.moveIn(streamIn, f.group.block.ptr+driver.Ptr(at), f.need[k]-at, func(b []byte, off int) { l.packed(f.group, b, at+off) })
			if err != nil {
				return 0, nil, err
			}
			x.slabs = append(x.slabs, slabs...)
			copied[i], fresh = f.need[k], true
		}
		if fresh {
			if err := g.order(streamIn, streamKernels); err != nil {
				return 0, nil, err
			}
		}
		if err := launch(x, l.share(s), (last+k)%failureWords); err != nil {
			return 0, nil, err
		}
		stream := streamKernels
		if len(w.out) > 0 {
			if err := g.order(streamKernels, streamOut); err != nil {
				return 0, nil, err
			}
			stream = streamOut
		}
		for _, f := range w.out {
			for _, o := range s.outcomes(l, f) {
				o.slab = g.staging.take(o.size)
				x.slabs, x.outs = append(x.slabs, o.slab), append(x.outs, o)
				if err := g.startOut(streamOut, o.slab.b[:o.size], o.from, false); err != nil {
					return 0, nil, err
				}
			}
		}
		if x.done, err = g.dev.Mark(stream); err != nil {
			return 0, nil, err
		}
	}
	for len(*open) > 0 {
		if at, failed, err := first(); failed != nil || err != nil {
			return at, failed, err
		}
	}
	return 0, nil, nil
}

// outcomes are what a share writes to an array.
func (s *share) outcomes(l *gpuLaunch, f outflow) (list []*outcome) {
	size := f.b.array.DType().Size()
	if whole := l.outcome(f.b).whole; whole {
		lo, hi := s.reach(f.b, f.uses)
		return append(list, &outcome{view: f.b.array, lo: lo, size: (hi - lo) * size, whole: true, from: driver.Ptr(l.address(f.b) + uint64(lo*size))})
	}
	for _, u := range f.uses {
		lo, hi := s.reach(f.b, []access{u})
		list = append(list, &outcome{view: s.view(f.b, u), lo: lo, size: (hi - lo) * size, from: driver.Ptr(l.address(f.b) + uint64(lo*size))})
	}
	return list
}

// order makes what is begun in stream to wait for what was begun in stream from.
func (g *gpu) order(from, to driver.Stream) error {
	m, err := g.dev.Mark(from)
	if err == nil {
		err = g.dev.After(to, m)
	}
	return err
}
