package cpu

import (
	"bytes"
	"errors"
	"math"
	"runtime/debug"
	"runtime/pprof"
	"slices"
	"sync/atomic"
	"time"

	"gpunotes/gpukit/internal/codegen/amd64"
	"gpunotes/gpukit/internal/ir"
)

// How machine code runs over a launch. One dimension becomes the lanes, others the
// rows that the code walks itself, up to amd64.MaxLevels, and Go walks the rest. The
// workers are cut into boxes, in C order of the dimensions, each of bounded time;
// goroutines take one after the other.

// Times in ns. Tests make them smaller.
var (
	boxTime    = 50e3 // of a box, about
	leastBox   = 2e3  // of a box, at least: what starting one costs is far less
	worthCrew  = 60e3 // of a run from which on several goroutines pay
	worthTimer = 4e3  // of a run from which on it is measured, and polled
)

// worthStreaming is how many bytes results have that are written past the caches.
// Measured with a product of float64 (Xeon, 2 MB of second-level cache): 16 MB take
// 1.5 ms instead of 2.6, and 2.4 instead of 3.0 where they are read right afterwards; with
// 1.6 MB reading afterwards costs what writing gains.
const worthStreaming = 8 << 20

// mostCounted is the longest row whose length becomes part of the code. Boxes do not
// cut up shorter ones.
const (
	mostCounted = 64
	mostInOne   = 16 // those that may be one group
)

// filled is how many elements of a generator are computed at a time.
const filled = 4096

// errPortable says that the portable engine is to run the launch.
var errPortable = errors.New("cpu: not for machine code")

// crew is one launch of machine code.
type crew struct {
	run
	native *machineProgram
	v      *variant

	order     []int     // dimensions: of the lanes, then of rows, the fastest first
	levels    int       // how many of rows the code walks
	words     []uintptr // by operand: of worker 0
	sizes     []int     // by operand: bytes of an element; 1 of a number
	access    []amd64.Access
	lanes     int // the hint
	count     int // of the workers of each row if it becomes part of the code, else 0
	filler    bool
	streaming bool
	number    []int // by dimension: the step in the number of a worker
	key       []byte
	last      []byte // of v

	shape, steps []int // of the launch before
	kinds        []uint8
	threads      int

	mems []memory

	tickets []*ticket
	drained chan struct{} // some goroutine found no box any more

	cut     int // the dimension that is cut: those behind it are whole
	segment int
	pieces  int // of that dimension
	total   int
	cost    float64
	timed   bool
}

type memory struct {
	address uintptr
	n, size int
}

// runMachine is Run with machine code. The error is errPortable if there is none.
func (p *Program) runMachine(l *Launch) error {
	r, _ := p.crews.Get().(*crew)
	if r == nil {
		r = &crew{native: p.native, drained: make(chan struct{}, 1)}
		r.prog, r.plain = p, true
	}
	r.launch = *l
	err, good := r.safely(r.executeNative)
	if good {
		r.forget()
		p.crews.Put(r)
	}
	return err
}

func (r *crew) executeNative() error {
	if r.native.prepare() != nil {
		return errPortable
	}
	if !r.asBefore() {
		total, err := r.layout()
		if err != nil || total == 0 {
			r.kinds = r.kinds[:0]
			return err
		}
		r.total = total
		r.chooseLanes()
		r.remember()
	}
	total, l := r.total, &r.launch
	if l.Cancelled != nil && l.Cancelled() {
		return ErrCancelled
	}
	if err := r.bindOperands(); err != nil {
		return err
	}
	if r.variant(); r.v.err != nil {
		return errPortable
	}
	r.divideBoxes()
	r.next.Store(0)
	r.failed.Store(math.MaxInt64)
	r.stop.Store(false)
	r.lines, r.dropped = r.lines[:0], 0
	r.lastLine.Store(math.MaxInt64)
	if l.Progress != nil {
		r.done.Store(0)
		l.Progress(0, r.chunks)
	}
	est := float64(float64(total) * r.cost)
	if g := min(l.Goroutines, r.chunks, int(est/worthCrew)+1); g > 1 {
		// The caller only waits, so that its profiling labels stay its own.
		r.startCrew(g)
		<-r.drained
	} else {
		r.help = min(l.Goroutines, r.chunks) - 1
		r.hand(true)
	}
	if len(r.tickets) > 0 {
		r.endCrew()
	}
	if r.err != nil {
		return r.err
	}
	r.deliver()
	switch {
	case r.stop.Load():
		return ErrCancelled
	case r.worst.in != nil:
		return r.explain()
	}
	return nil
}

// ticket is a goroutine that takes boxes, or has not begun. On a busy machine that may
// take longer than all of the work; nobody waits for it then.
type ticket struct{ state atomic.Int32 }

const (
	ticketBegun = 1 + iota
	ticketVoid
)

// startCrew starts goroutines that take boxes.
func (r *crew) startCrew(g int) {
	for range g {
		t := new(ticket)
		r.tickets = append(r.tickets, t)
		r.wg.Add(1)
		go func() {
			if !t.state.CompareAndSwap(0, ticketBegun) {
				return // r may be another run by now
			}
			pprof.SetGoroutineLabels(r.native.labels)
			r.hand(false)
			select {
			case r.drained <- struct{}{}:
			default:
			}
			r.wg.Done()
		}()
	}
	r.help = 0
}

// endCrew waits for those that have begun, once there are no boxes any more.
func (r *crew) endCrew() {
	for _, t := range r.tickets {
		if t.state.CompareAndSwap(0, ticketVoid) {
			r.wg.Done()
		}
	}
	clear(r.tickets)
	r.tickets = r.tickets[:0]
	r.wg.Wait()
	select {
	case <-r.drained:
	default:
	}
}

// chooseLanes picks the dimension of the lanes: the last one, unless its rows are
// so short that most lanes would be idle and the order of workers does not matter.
func (r *crew) chooseLanes() {
	last := len(r.dims) - 1
	lanes := last
	if m := r.native; r.dims[last] < 32 && last > 0 && !m.ordered && !m.prints {
		best := math.Inf(1)
		for d := last; d >= 0; d-- {
			if c := r.laneCost(d); c < 0.8*best {
				best, lanes = c, d
			}
		}
	}
	r.order = append(r.order[:0], lanes)
	for d := last; d >= 0; d-- {
		if d != lanes {
			r.order = append(r.order, d)
		}
	}
	r.number = slices.Grow(r.number[:0], len(r.dims))[:len(r.dims)]
	for d, n := last, 1; d >= 0; d-- {
		r.number[d] = n
		n *= r.dims[d]
	}
	r.lanes, r.count = 0, 0
	n := r.dims[lanes]
	if n < 32 {
		for r.lanes = 1; r.lanes < n; r.lanes *= 2 {
		}
	}
	if lanes == last && (n <= mostInOne || n <= mostCounted && n&(n-1) == 0) { // no box has a part of a row
		r.count = n
	}
}

// laneCost is about what a worker costs if d is the dimension of the lanes.
func (r *crew) laneCost(d int) float64 {
	const width = 8
	n := r.dims[d]
	groups := (n + width - 1) / width
	cost := r.native.weight + 4
	for i := range len(r.in) + len(r.out) {
		o := r.operand(i)
		switch s := o.strides[d]; {
		case !o.data && o.gen == nil:
		case s == 0:
			cost += 0.5
		case s == 1:
			cost++
		default:
			cost += 1.5 * width
		}
	}
	return cost * float64(groups) / float64(n)
}

// kind is what layout and chooseLanes look at of an operand, besides its strides.
func (o *Operand) kind() uint8 {
	k := uint8(o.Type) << 2
	switch {
	case o.Data != nil:
		return k | 1
	case o.Gen != nil:
		return k | 2
	case o.Index:
		return k | 3
	}
	return k
}

// given is an operand of the launch.
func (r *crew) given(i int) *Operand {
	if i < len(r.launch.In) {
		return &r.launch.In[i]
	}
	return &r.launch.Out[i-len(r.launch.In)]
}

// remember notes what the layout is one of: most calls are like the one before.
func (r *crew) remember() {
	l := &r.launch
	r.shape, r.steps, r.kinds, r.threads = append(r.shape[:0], l.Shape...), r.steps[:0], r.kinds[:0], l.Group
	for i := range len(l.In) + len(l.Out) {
		o := r.given(i)
		r.kinds = append(r.kinds, o.kind())
		r.steps = append(r.steps, o.Strides...)
	}
}

// asBefore reports whether the layout that r has is the launch's.
func (r *crew) asBefore() bool {
	l := &r.launch
	n := len(l.In) + len(l.Out)
	if n == 0 || len(r.kinds) != n || len(l.In) != len(r.in) || len(l.Mems) != len(r.prog.globals) || l.Group != r.threads || l.DynamicShared < 0 || !slices.Equal(l.Shape, r.shape) {
		return false
	}
	at := 0
	for i := range n {
		o := r.given(i)
		if o.kind() != r.kinds[i] || at+len(o.Strides) > len(r.steps) || !slices.Equal(o.Strides, r.steps[at:at+len(o.Strides)]) {
			return false
		}
		at += len(o.Strides)
	}
	if at != len(r.steps) {
		return false
	}
	for i := range n {
		o, src := r.operand(i), r.given(i)
		o.offset = src.Offset
		if o.gen = nil; src.Data == nil {
			o.gen = src.Gen
		}
	}
	return true
}

// bindOperands finds where operands are and how lanes walk over them.
func (r *crew) bindOperands() error {
	l, f := &r.launch, r.prog.f
	ops := len(r.in) + len(r.out)
	r.words = slices.Grow(r.words[:0], ops)[:ops]
	r.sizes = slices.Grow(r.sizes[:0], ops)[:ops]
	r.access = slices.Grow(r.access[:0], ops)[:ops]
	r.filler = false
	for i := range ops {
		o := r.operand(i)
		step := o.strides[r.order[0]]
		if i >= len(r.in) || o.data {
			src := r.given(i)
			address, n, ok := dataOf(src.Data, src.Type)
			if err := o.within(r.dims, i, n, ok); err != nil && !r.planning {
				return err
			}
			size := src.Type.Size()
			r.words[i], r.sizes[i] = address+uintptr(o.offset*size), size
			switch {
			case i < len(r.in) && !r.native.used[i]:
				r.access[i], r.words[i] = amd64.Same, 0
			case i < len(r.in) && constant0(o.strides):
				if r.access[i] = amd64.Same; !r.planning {
					r.words[i] = uintptr(elements[src.Type].get(src.Data, int64(o.offset)))
				}
			case i < len(r.in) && step == 0:
				r.access[i] = amd64.PerRow
			case step == 1:
				r.access[i] = amd64.Unit
			default:
				r.access[i] = amd64.Strided
			}
			continue
		}
		r.sizes[i], r.words[i], r.access[i] = 1, 0, amd64.Same
		switch {
		case !r.native.used[i]:
		case o.gen != nil && constant0(o.strides):
			var x [1]float64
			o.gen.Fill(x[:], o.offset, 0)
			r.words[i] = uintptr(ir.FromF64(x[0]))
		case o.gen != nil:
			r.filler = true
			if r.access[i] = amd64.Unit; step == 0 {
				r.access[i] = amd64.PerRow
			}
		case !o.index:
			r.words[i] = uintptr(l.In[i].Scalar)
		default:
			r.words[i] = uintptr(o.offset)
			switch {
			case constant0(o.strides):
			case step == 0:
				r.access[i] = amd64.Count
			case step == 1:
				r.access[i] = amd64.CountUnit
			default:
				r.access[i] = amd64.CountStep
			}
		}
	}
	r.mems = r.mems[:0]
	for i, m := range r.prog.globals {
		t := f.Mems[m].Elem
		x := memory{size: t.Size()}
		if r.planning {
			break
		}
		if data := l.Mems[i]; data != nil {
			var ok bool
			if x.address, x.n, ok = dataOf(data, t); !ok {
				return wrong("memory %d does not have elements of %v", i, t)
			}
		}
		r.mems = append(r.mems, x)
	}
	r.levels = min(len(r.dims)-1, amd64.MaxLevels)
	if r.filler {
		r.levels = min(r.levels, 1)
	}
	return nil
}

// variant finds the code for the launch.
func (r *crew) variant() {
	p := r.native
	r.streaming = r.streams()
	k := append(r.key[:0], byte(r.levels), byte(r.lanes), byte(r.count))
	if r.streaming {
		k[0] |= 0x80
	}
	for i, a := range r.access {
		if r.isStill(i) {
			a |= 0x80
		}
		k = append(k, byte(a))
	}
	frozen := len(p.freeze) > 0 && !p.many()
	if frozen {
		for _, i := range p.freeze {
			x := int64(smallSize + 1)
			if r.access[i] == amd64.Same && worthFreezing(p.f.Params[i].Kind, int64(r.words[i])) {
				x = int64(r.words[i])
			}
			k = append(k, byte(x))
		}
	}
	r.key = k
	if r.v != nil && bytes.Equal(k, r.last) {
		return
	}
	r.last = append(r.last[:0], k...)
	r.v = p.find(k, func() *variant {
		v := &variant{kernel: amd64.Kernel{Levels: r.levels, Lanes: r.lanes, Count: r.count, Streaming: r.streaming}}
		v.kernel.In = slices.Clone(r.access[:len(r.in)])
		for i := range r.in {
			v.kernel.Still = append(v.kernel.Still, r.isStill(i))
		}
		v.kernel.Out = slices.Clone(r.access[len(r.in):])
		if frozen {
			for _, i := range p.freeze {
				if r.access[i] == amd64.Same && worthFreezing(p.f.Params[i].Kind, int64(r.words[i])) {
					if v.frozen == nil {
						v.frozen = map[int]ir.Bits{}
					}
					v.frozen[i] = ir.Bits(r.words[i])
				}
			}
		}
		return v
	})
}

// isStill reports whether an operand of short rows is a place that is the same in all rows
// of the fastest dimension.
func (r *crew) isStill(i int) bool {
	return r.count > 0 && r.levels > 0 && (r.access[i] == amd64.Count || r.access[i] == amd64.CountUnit) && r.operand(i).strides[r.order[1]] == 0
}

// streams reports whether results are written past the caches.
func (r *crew) streams() bool {
	total := 0
	for j := range r.out {
		o, i := &r.out[j], len(r.in)+j
		if r.access[i] != amd64.Unit || r.sizes[i] < 4 {
			continue
		}
		all := r.words[i]
		for d, s := range o.strides {
			if d != r.order[0] {
				all |= uintptr(s * r.sizes[i])
			}
		}
		if all%64 != 0 {
			return false
		}
		total += r.total * r.sizes[i]
	}
	return total >= worthStreaming
}

// divideBoxes cuts the workers into boxes.
func (r *crew) divideBoxes() {
	total := r.total
	var measured bool
	r.cost, measured = r.v.estimate(r.native)
	est := float64(float64(total) * r.cost)
	g := max(r.launch.Goroutines, 1)
	runs := r.v.runs.Add(1)
	r.timed = !measured || est > worthTimer || runs%64 == 0
	want := total
	switch {
	case r.native.loops && !measured && g > 1:
		want = max(total/(16*g), 1)
	case est > boxTime:
		t := boxTime
		if g > 1 && est > worthCrew {
			t = max(min(t, est/float64(4*g)), leastBox)
		}
		want = max(int(t/r.cost), 1)
	}
	inner := 1 // workers of the dimensions behind the cut one
	r.cut = len(r.dims) - 1
	for r.cut > 0 && inner*r.dims[r.cut] <= want {
		inner *= r.dims[r.cut]
		r.cut--
	}
	n := r.dims[r.cut]
	s := min(max(want/inner, 1), n)
	if r.cut == r.order[0] {
		if s < n {
			s = min((s+63)&^63, n)
		}
		if len(r.dims) > 1 && r.cut != len(r.dims)-1 { // neighbours in memory belong to other rows
			s = min(s, 1024)
		}
	}
	r.segment, r.pieces = s, (n+s-1)/s
	r.chunks = r.pieces
	for _, m := range r.dims[:r.cut] {
		r.chunks *= m
	}
}

// hand takes boxes until there are none.
func (r *crew) hand(first bool) {
	n := r.v.code
	c := n.call()
	defer func() {
		if e := recover(); e != nil {
			r.mu.Lock()
			r.err = wrongly(e)
			r.mu.Unlock()
			r.stop.Store(true)
		}
	}()
	if len(r.mems) > 0 {
		// Where checks were left out a wrong index must not end the process.
		defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	}
	c.crew, c.first = r, first
	c.lines.print = nil
	if r.native.prints && r.launch.Print != nil {
		c.lines = lineBuffer{c.printed, c.workerAt}
	}
	c.prepare()
	if r.timed {
		c.started = time.Now()
	}
	for !r.stop.Load() {
		id := int(r.next.Add(1) - 1)
		if id >= r.chunks {
			break
		}
		if int64(id) > r.failed.Load() {
			continue
		}
		c.box(id)
		if r.launch.Progress != nil {
			r.done.Add(1)
		}
	}
	c.crew, c.paused, c.spent, c.total = nil, false, 0, 0
	n.release(c)
}

// prepare sets what all boxes have in common.
func (c *nativeCall) prepare() {
	r := c.crew
	for i := range r.words {
		o := r.operand(i)
		s := c.streams[i*streamWords:][:streamWords]
		s[amd64.StreamWord/8] = uint64(r.words[i])
		if r.access[i] == amd64.Same || i < len(r.in) && o.gen != nil {
			continue
		}
		size := r.sizes[i]
		s[amd64.StreamStep/8] = uint64(o.strides[r.order[0]] * size)
		back := 0
		for d, k := range r.order[1:][:r.levels] {
			s[amd64.StreamAdvance/8+d] = uint64((o.strides[k] - back) * size)
			back += (r.dims[k] - 1) * o.strides[k]
		}
	}
	for i, m := range r.mems {
		c.bindMem(i, r.launch.Mems[i], m.address, m.n, m.size)
	}
	c.lo = slices.Grow(c.lo[:0], len(r.dims))[:len(r.dims)]
	c.hi = slices.Grow(c.hi[:0], len(r.dims))[:len(r.dims)]
	c.at = slices.Grow(c.at[:0], len(r.dims))[:len(r.dims)]
	c.size = slices.Grow(c.size[:0], len(r.dims))[:len(r.dims)]
	for i := range c.fills {
		c.fills[i].key = [3]int{}
	}
}

// box runs the workers of a box.
func (c *nativeCall) box(id int) {
	r := c.crew
	c.id = id
	k, rest := id%r.pieces, id/r.pieces
	for d := len(r.dims) - 1; d >= 0; d-- {
		switch {
		case d > r.cut:
			c.lo[d], c.hi[d] = 0, r.dims[d]
		case d == r.cut:
			c.lo[d] = k * r.segment
			c.hi[d] = min(c.lo[d]+r.segment, r.dims[d])
		default:
			c.lo[d] = rest % r.dims[d]
			c.hi[d] = c.lo[d] + 1
			rest /= r.dims[d]
		}
	}
	// Pieces of the box, which the code walks in one go.
	copy(c.at, c.lo)
	for {
		workers := 1
		for k, d := range r.order {
			step := c.hi[d] - c.at[d]
			switch {
			case k > r.levels:
				step = 1
			case r.filler && k == 0:
				step = min(step, filled)
			case r.filler:
				step = min(step, max(filled/workers, 1))
			}
			c.size[d] = step
			workers *= step
		}
		if !c.piece(workers) {
			return
		}
		done := true
		for _, d := range r.order {
			if c.at[d] += c.size[d]; c.at[d] < c.hi[d] {
				done = false
				break
			}
			c.at[d] = c.lo[d]
		}
		if done {
			return
		}
	}
}

// piece runs c.size workers from c.at on; it reports whether the box goes on.
func (c *nativeCall) piece(workers int) bool {
	r := c.crew
	n := r.v.code
	for i := range r.words {
		if r.access[i] == amd64.Same {
			continue
		}
		o := r.operand(i)
		if i < len(r.in) && o.gen != nil {
			c.fill(i, o)
			continue
		}
		at := 0
		for d, x := range c.at {
			at += x * o.strides[d]
		}
		c.streams[i*streamWords+amd64.StreamWord/8] = uint64(r.words[i] + uintptr(at*r.sizes[i]))
	}
	c.block[amd64.BlockCount/8] = uint64(c.size[r.order[0]])
	for k, d := range r.order[1:][:r.levels] {
		c.block[amd64.BlockRows/8+k] = uint64(c.size[d])
	}
	c.block[amd64.BlockResume/8] = 0
	for {
		switch n.exit(c, n.budget, &c.lines) {
		case amd64.ExitDone:
			c.finishLines()
			if r.streaming {
				storeFence()
			}
			if !r.timed {
				return true
			}
			now := time.Now()
			ns := float64(now.Sub(c.started))
			c.started = now
			if !c.paused {
				r.v.measure(workers, ns)
			} else {
				r.v.measure(workers, float64(c.spent+ns))
				c.paused, c.spent = false, 0
			}
			c.total += ns
			return c.look()
		case amd64.ExitPaused:
			if !r.timed {
				r.timed = true // by the only goroutine
				c.started = time.Now()
			}
			now := time.Now()
			ns := float64(now.Sub(c.started))
			c.started, c.paused = now, true
			c.spent += ns
			c.total += ns
			if !c.look() {
				c.finishLines()
				return false
			}
		case amd64.ExitFault:
			at, w := n.fault(c)
			lane, row := c.where()
			worker := c.workerAt(lane+at.lane, row)
			c.finishLines()
			r.noteFault(c.id, worker, w)
			return false
		}
	}
}

// look sees whether to go on, and asks for help once the caller has worked for a while.
func (c *nativeCall) look() bool {
	r := c.crew
	if r.stop.Load() || int64(c.id) > r.failed.Load() {
		return false
	}
	if f := r.launch.Cancelled; f != nil && r.poll.TryLock() {
		if f() {
			r.stop.Store(true)
		}
		if tell := r.launch.Progress; tell != nil {
			tell(int(r.done.Load()), r.chunks)
		}
		r.poll.Unlock()
		if r.stop.Load() {
			return false
		}
	}
	if c.first && r.help > 0 && c.total > worthCrew {
		if g := min(r.help, r.chunks-int(r.next.Load())); g > 0 {
			r.startCrew(g)
		}
	}
	return true
}

// fill computes what a piece needs of a generator.
func (c *nativeCall) fill(i int, o *operand) {
	r := c.crew
	for len(c.fills) < len(r.in) {
		c.fills = append(c.fills, generated{})
	}
	g := &c.fills[i]
	first := o.offset
	for d, x := range c.at {
		first += x * o.strides[d]
	}
	count, rows := c.size[r.order[0]], 1
	step, rowStep := o.strides[r.order[0]], 0
	if r.levels > 0 {
		rows, rowStep = c.size[r.order[1]], o.strides[r.order[1]]
	}
	across := count // elements of a row in the buffer
	if step == 0 {
		across = 1
	}
	s := c.streams[i*streamWords:][:streamWords]
	s[amd64.StreamStep/8] = 8
	s[amd64.StreamAdvance/8] = uint64(8 * across)
	if rowStep == 0 {
		rows, s[amd64.StreamAdvance/8] = 1, 0
	}
	if g.data == nil {
		g.data = make([]float64, filled)
	}
	s[amd64.StreamWord/8] = uint64(addressOf(g.data))
	if key := [3]int{first, across, rows}; g.key != key {
		g.key = key
		switch {
		case step == 0:
			o.gen.Fill(g.data[:rows], first, rowStep)
		default:
			for k := range rows {
				o.gen.Fill(g.data[k*across:][:across], first+k*rowStep, step)
			}
		}
	}
}

// generated is what of a generator was computed last.
type generated struct {
	data []float64
	key  [3]int // rows is at least 1
}

// workerAt is the number of a worker of the current piece.
func (c *nativeCall) workerAt(lane int, row [amd64.MaxLevels]int) int {
	r := c.crew
	w := lane * r.number[r.order[0]]
	for d, x := range c.at {
		w += x * r.number[d]
	}
	for k, d := range r.order[1:][:r.levels] {
		w += row[k] * r.number[d]
	}
	return w
}

// printed takes a line.
func (c *nativeCall) printed(worker int, text string) {
	r := c.crew
	if int64(worker) > r.lastLine.Load() {
		c.dropped++
		return
	}
	c.kept = append(c.kept, line{worker, text})
	if len(c.kept) > 2*MaxLines {
		var n int
		c.kept, n = firstLines(c.kept)
		c.dropped += n
	}
}

func (c *nativeCall) finishLines() {
	if len(c.kept) > 0 || c.dropped > 0 {
		c.crew.collect(&c.kept, &c.dropped)
	}
}

// noteFault records a worker that failed, if it is the lowest.
func (r *crew) noteFault(id, worker int, w flaw) {
	r.mu.Lock()
	if r.worst.in == nil || worker < r.worst.worker {
		inputs := make([]ir.Bits, len(r.in))
		for i := range r.in {
			inputs[i] = r.argument(i, worker)
		}
		r.worst = failure{flaw: w, worker: worker, inputs: inputs}
	}
	r.mu.Unlock()
	for {
		low := r.failed.Load()
		if low <= int64(id) || r.failed.CompareAndSwap(low, int64(id)) {
			return
		}
	}
}

// argument is what a worker is given.
func (r *crew) argument(i, worker int) ir.Bits {
	o, src := &r.in[i], &r.launch.In[i]
	at := o.offset
	for d, n := range r.number {
		at += worker / n % r.dims[d] * o.strides[d]
	}
	switch {
	case o.data:
		return elements[src.Type].get(src.Data, int64(at))
	case o.gen != nil:
		var x [1]float64
		o.gen.Fill(x[:], at, 0)
		return ir.FromF64(x[0])
	case o.index:
		return ir.Bits(at)
	}
	return src.Scalar
}

// explain is the error of the lowest worker that failed. Where the worker can run
// once more the evaluator says why.
func (r *crew) explain() error {
	if r.prog.inPlace {
		return r.describe()
	}
	w := &r.worst
	e := r.workerError(w.worker, w.inputs)
	_, err := (&ir.Evaluator{Cancelled: r.launch.Cancelled}).Run(r.prog.f, e.Args...)
	f, isFault := err.(*ir.FaultError)
	switch {
	case !isFault:
		return wrongly("worker " + ir.FormatBits(ir.I64, ir.Bits(w.worker)) + " of " + r.prog.f.Name + " failed, but not in the evaluator")
	case f.Fault == ir.Cancelled:
		return ErrCancelled
	}
	e.Err = err
	return e
}
