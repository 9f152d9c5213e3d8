package cpu

import (
	"fmt"
	"math"
	"slices"
	"sync"
	"sync/atomic"

	"gpunotes/gpukit/internal/ir"
)

// pollEvery is the work between polls, in about ns. Tests make it smaller.
var pollEvery = 10e3

const (
	chunkWork  = 100e3 // ns of work in a chunk
	worthHelp  = 40e3  // ns of work from which on smaller blocks for more goroutines pay
	rowsFrom   = 64    // the row length from which on blocks do not span rows
	columnRows = 4     // the number of rows from which on columns are computed once
)

// run is one launch of a program.
type run struct {
	launch   Launch
	prog     *Program
	plan     *plan
	planning bool // nothing will run: results need no data
	plain    bool // blocks of threads do not matter

	dims    []int // after merging dimensions; at least one
	strides []int // backing of the operands' ones
	in, out []operand
	classes []class
	aliased bool // some result is the memory of an argument

	inRow   int  // dimensions of a row
	spans   bool // blocks go over ends of rows
	uneven  bool // blocks go over ends of the last dimension
	columns bool // chunks are columns of blocks
	inner   int  // length of a row
	rows    int
	length  int // of a block
	perRow  int // blocks in a row
	blocks  int
	group   int // blocks, or rows of a column, in a chunk
	chunks  int

	next   atomic.Int64 // the next chunk
	failed atomic.Int64 // the lowest failing block
	stop   atomic.Bool  // cancelled, or panicked
	done   atomic.Int64 // blocks, if Progress is to know
	poll   sync.Mutex
	help   int // goroutines that may still be started
	wg     sync.WaitGroup
	mu     sync.Mutex
	err    error // a panic

	worst    failure      // of the lowest worker that failed in place
	lines    []line       // printed
	dropped  int          // lines that are not kept
	lastLine atomic.Int64 // lines of higher workers are dropped
}

// failure is a flaw with the worker that has it.
type failure struct {
	flaw
	worker int
	inputs []ir.Bits
}

// operand is an operand after merging dimensions.
type operand struct {
	gen     Generator
	data    bool
	index   bool
	offset  int
	strides []int
	dense   bool // element of worker w at offset + w
}

// Run executes the program. The error is nil, ErrCancelled, or a *WorkerError
// for the lowest worker that fails, whatever the number of goroutines; anything
// else is a wrong launch. After an error the results are unspecified, and the
// program is as good as before.
func (p *Program) Run(l Launch) error {
	if p.native != nil {
		if err := p.runMachine(&l); err != errPortable {
			return err
		}
	}
	r, _ := p.runs.Get().(*run)
	if r == nil {
		r = &run{}
	}
	r.prog, r.launch = p, l
	err, good := r.safely(r.execute)
	if good {
		r.forget()
		p.runs.Put(r)
	}
	return err
}

// forget lets go of what a launch gave.
func (r *run) forget() {
	r.launch, r.plan, r.worst = Launch{}, nil, failure{}
	for i := range r.in {
		r.in[i].gen = nil
	}
}

// safely turns a panic of a generator, or our own, into an error; then r and its
// machines are not used again.
func (r *run) safely(execute func() error) (err error, good bool) {
	defer func() {
		if e := recover(); e != nil {
			err, good = wrongly(e), false
		}
	}()
	err = execute()
	return err, r.err == nil
}

// wrongly is the error of a panic.
func wrongly(e any) error { return fmt.Errorf("cpu: internal error: %v", e) }

func (r *run) execute() error {
	total, err := r.layout()
	if err != nil || total == 0 {
		return err
	}
	l := &r.launch
	if l.Cancelled != nil && l.Cancelled() {
		return ErrCancelled
	}
	r.classify(total)
	r.plan = r.prog.planFor(r.classes)
	r.divide(total)
	r.next.Store(0)
	r.failed.Store(math.MaxInt64)
	r.stop.Store(false)
	r.worst = failure{}
	r.lines, r.dropped = r.lines[:0], 0
	r.lastLine.Store(math.MaxInt64)
	if l.Progress != nil {
		r.done.Store(0)
		l.Progress(0, r.blocks)
	}

	m := r.machine()
	if err := r.bind(m); err != nil {
		return err
	}
	m.first = true
	r.aliased = r.findAlias(m)
	r.help = min(l.Goroutines, r.chunks) - 1
	ok := r.work(m)
	r.wg.Wait()
	if r.err == nil {
		r.deliver()
	}
	switch {
	case r.err != nil:
		return r.err
	case r.stop.Load():
		err = ErrCancelled
	case r.worst.in != nil:
		err = r.describe()
	case r.failed.Load() != math.MaxInt64:
		err = r.locate(m, int(r.failed.Load()))
	}
	if ok {
		r.release(m)
	}
	return err
}

// layout checks the launch, and merges dimensions that all operands walk as if
// they were one. It returns the number of workers.
func (r *run) layout() (int, error) {
	l, f := &r.launch, r.prog.f
	if len(l.In) != len(f.Params) || len(l.Out) != len(f.Results) {
		return 0, wrong("%s has %d parameters and %d results, the launch %d and %d", f.Name, len(f.Params), len(f.Results), len(l.In), len(l.Out))
	}
	total := 1
	for _, n := range l.Shape {
		if n < 0 || n > 0 && total > math.MaxInt/n {
			return 0, wrong("shape %v", l.Shape)
		}
		total *= n
	}
	switch group := max(l.Group, 1); {
	case l.Group < 0 || total%group != 0 || r.prog.meets && group > MaxGroup:
		return 0, wrong("blocks of %d of %d threads", l.Group, total)
	case len(l.Mems) != len(r.prog.globals) && !r.planning:
		return 0, wrong("%s has %d memories, the launch %d", f.Name, len(r.prog.globals), len(l.Mems))
	case l.DynamicShared < 0:
		return 0, wrong("%d elements of shared memory", l.DynamicShared)
	}
	ops := len(l.In) + len(l.Out)
	rank := len(l.Shape)
	r.dims = append(r.dims[:0], l.Shape...)
	r.strides = slices.Grow(r.strides[:0], ops*max(rank, 1))[:ops*max(rank, 1)]
	r.in, r.out = slices.Grow(r.in[:0], len(l.In))[:len(l.In)], slices.Grow(r.out[:0], len(l.Out))[:len(l.Out)]
	for i := range ops {
		s := r.strides[i*max(rank, 1):][:rank]
		o, src, want := r.operand(i), (*Operand)(nil), ir.Invalid
		if i < len(l.In) {
			src, want = &l.In[i], f.Types[f.Params[i].Value]
		} else {
			src, want = &l.Out[i-len(l.In)], f.Results[i-len(l.In)]
			if src.Data == nil && !r.planning {
				return 0, wrong("result %d has no data", i-len(l.In))
			}
		}
		*o = operand{data: src.Data != nil, offset: src.Offset, strides: s}
		if src.Data == nil {
			o.gen, o.index = src.Gen, src.Index && src.Gen == nil
		}
		switch {
		case src.Type != want || o.gen != nil && want != ir.F64 || o.index && want != ir.I64:
			return 0, wrong("operand %d is %v, not %v", i, src.Type, want)
		case o.data || o.gen != nil || o.index:
			if len(src.Strides) != rank {
				return 0, wrong("operand %d has %d strides for %d dimensions", i, len(src.Strides), rank)
			}
			copy(s, src.Strides)
		default:
			clear(s)
		}
	}
	if total == 0 {
		return 0, nil
	}
	// Merge from the right; w is where the last dimension that was kept is.
	w := rank
	for d := rank - 1; d >= 0; d-- {
		n := r.dims[d]
		if n == 1 {
			continue
		}
		if w < rank && r.walksOn(d, w) {
			r.dims[w] *= n
			continue
		}
		w--
		r.dims[w] = n
		for i := range ops {
			s := r.operand(i).strides
			s[w] = s[d]
		}
	}
	if w == rank { // one worker
		r.dims = append(r.dims[:0], 1)
		for i := range ops {
			o := r.operand(i)
			o.strides = r.strides[i*max(rank, 1):][:1]
			o.strides[0] = 1
		}
	} else {
		r.dims = r.dims[:copy(r.dims, r.dims[w:])]
		for i := range ops {
			o := r.operand(i)
			o.strides = o.strides[w:]
		}
	}
	for i := range ops {
		o := r.operand(i)
		o.dense = true
		step := 1
		for d := len(r.dims) - 1; d >= 0; d-- {
			o.dense = o.dense && o.strides[d] == step
			step *= r.dims[d]
		}
	}
	r.inRow, r.spans = 1, false
	switch {
	case r.plain:
	case r.prog.meets:
		r.spans = !r.rowsOf(max(l.Group, 1))
	case len(r.dims) > 1 && l.Group >= rowsFrom && l.Group <= MaxGroup:
		// The place of a thread depends on the lane alone, that of its block on
		// the row.
		r.rowsOf(l.Group)
	}
	return total, nil
}

// rowsOf makes rows of n workers, of as many dimensions as they need, if
// dimensions can be cut so.
func (r *run) rowsOf(n int) bool {
	d := len(r.dims)
	size := 1
	for size < n && d > 0 && n%(size*r.dims[d-1]) == 0 {
		d--
		size *= r.dims[d]
	}
	rest := n / size
	switch {
	case rest == 1 && d < len(r.dims):
		if d == 0 { // a single row
			r.insert(0, 1, 0)
			d = 1
		}
		r.inRow = len(r.dims) - d
		return true
	case d == 0 || r.dims[d-1]%rest != 0:
		return false
	}
	outer := r.dims[d-1] / rest
	r.dims[d-1] = rest
	r.insert(d-1, outer, rest)
	if rest == 1 {
		for i := range len(r.in) + len(r.out) {
			r.operand(i).strides[d] = 0
		}
	}
	r.inRow = len(r.dims) - d
	return true
}

// insert adds a dimension of size n before dimension d; its strides are scale
// times those of d.
func (r *run) insert(d, n, scale int) {
	r.dims = slices.Insert(r.dims, d, n)
	for i := range len(r.in) + len(r.out) {
		o := r.operand(i)
		step := 0
		if d < len(o.strides) {
			step = scale * o.strides[d]
		}
		o.strides = slices.Insert(slices.Clone(o.strides), d, step)
	}
}

func wrong(format string, args ...any) error {
	return fmt.Errorf("cpu: internal error: wrong launch: "+format, args...)
}

func (r *run) operand(i int) *operand {
	if i < len(r.in) {
		return &r.in[i]
	}
	return &r.out[i-len(r.in)]
}

// walksOn reports whether every operand walks from the end of dimension w on
// into the next index of dimension d.
func (r *run) walksOn(d, w int) bool {
	for i := range len(r.in) + len(r.out) {
		s := r.operand(i).strides
		if s[d] != s[w]*r.dims[w] {
			return false
		}
	}
	return true
}

// classify finds what each argument depends on.
func (r *run) classify(total int) {
	last := len(r.dims) - 1
	row := last + 1 - r.inRow // the first dimension of a row
	r.inner = workersOf(r.dims[row:])
	if r.prog.meets && r.spans {
		r.inner = r.dims[last]
	}
	r.rows = total / r.inner
	if !r.prog.meets {
		r.spans = last > 0 && r.inner < rowsFrom
	}
	r.uneven = r.spans || r.inRow > 1
	r.columns = false
	r.classes = r.classes[:0]
	for i := range r.in {
		o := &r.in[i]
		c := perRow | perLane
		switch {
		case !o.data && o.gen == nil && !o.index:
			c = 0
		case total == 1 && o.index:
			c = 0
		case total == 1:
		case constant0(o.strides):
			c = 0
		case row == 0 || r.spans:
		case constant0(o.strides[row:]):
			c = perRow
		case r.rows >= columnRows && constant0(o.strides[:row]):
			c = perLane
			r.columns = true
		}
		if c.varies() && (!o.index || r.uneven) {
			c |= ragged
		}
		r.classes = append(r.classes, c)
	}
}

func workersOf(dims []int) int {
	n := 1
	for _, d := range dims {
		n *= d
	}
	return n
}

func constant0(strides []int) bool {
	for _, s := range strides {
		if s != 0 {
			return false
		}
	}
	return true
}

// divide cuts the workers into blocks and the blocks into chunks.
func (r *run) divide(total int) {
	g := max(r.launch.Goroutines, 1)
	work := float64(total) * r.plan.cost
	r.length = r.plan.length
	if r.prog.meets {
		r.length = max(r.launch.Group, 1)
	} else if g > 1 && (work > worthHelp || r.plan.loops) {
		least := 64
		if r.plan.loops {
			least = 8
		}
		r.length = min(r.length, max(least, (total+2*g-1)/(2*g)))
	}
	if r.spans {
		r.blocks = (total + r.length - 1) / r.length
	} else {
		r.perRow = (r.inner + r.length - 1) / r.length
		r.length = (r.inner + r.perRow - 1) / r.perRow
		r.blocks = r.rows * r.perRow
	}
	blockWork := float64(float64(r.length)*r.plan.cost) + 100
	group := int(min(chunkWork/blockWork, 1e6))
	if g == 1 {
		group = r.blocks
	}
	if r.columns {
		group = min(group, (r.blocks+4*g-1)/(4*g))
		r.group = min(r.rows, max(group, columnRows))
		if g == 1 {
			r.group = r.rows
		}
		r.chunks = (r.rows + r.group - 1) / r.group * r.perRow
		return
	}
	r.group = max(1, min(group, (r.blocks+4*g-1)/(4*g)))
	r.chunks = (r.blocks + r.group - 1) / r.group
}

func (r *run) machine() *machine {
	m, _ := r.plan.machines.Get().(*machine)
	if m == nil {
		m = r.plan.newMachine()
	}
	m.run, m.first, m.stop, m.fault, m.spent = r, false, false, false, 0
	m.worst, m.dropped = flaw{}, 0
	m.lines = m.lines[:0]
	return m
}

func (r *run) release(m *machine) {
	for _, b := range m.banks {
		if b != nil {
			b.release()
		}
	}
	for _, mem := range r.prog.globals {
		m.banks[r.prog.f.Mems[mem].Elem].bindMem(mem, nil)
	}
	m.run, m.inputs = nil, nil
	r.plan.machines.Put(m)
}

// bind hands the operands to a machine, and computes what the run shares.
func (r *run) bind(m *machine) error {
	l := &r.launch
	for i := range r.in {
		if r.in[i].data {
			n, ok := m.banks[l.In[i].Type].bind(l.In[i].Data, i, -1)
			if err := r.in[i].within(r.dims, i, n, ok); err != nil {
				return err
			}
		}
	}
	for i, mem := range r.prog.globals {
		if t := r.prog.f.Mems[mem].Elem; !m.banks[t].bindMem(mem, l.Mems[i]) {
			return wrong("memory %d does not have elements of %v", i, t)
		}
	}
	for i, mem := range r.prog.f.Mems {
		if mem.Space == ir.Shared {
			n := mem.Len
			if n == 0 {
				n = l.DynamicShared
			}
			m.banks[mem.Elem].makeMem(i, n)
		}
	}
	for j := range r.out {
		b := m.banks[l.Out[j].Type]
		n, ok := b.bind(l.Out[j].Data, -1, j)
		if err := r.out[j].within(r.dims, len(r.in)+j, n, ok); err != nil {
			return err
		}
	}
	return nil
}

// findAlias reports whether a result is the memory of an argument. Then blocks
// read their arguments before they write.
func (r *run) findAlias(m *machine) bool {
	for i := range r.in {
		for j := range r.out {
			t := r.launch.In[i].Type
			if r.in[i].data && t == r.launch.Out[j].Type && m.banks[t].same(i, r.in[i].offset, j, r.out[j].offset) {
				return true
			}
		}
	}
	return false
}

func (o *operand) within(dims []int, i, n int, ok bool) error {
	lo, hi := o.offset, o.offset
	for d, s := range o.strides {
		if s < 0 {
			lo += (dims[d] - 1) * s
		} else {
			hi += (dims[d] - 1) * s
		}
	}
	if !ok {
		return wrong("the data of operand %d is not of its type", i)
	}
	if lo < 0 || hi >= n {
		return wrong("operand %d needs elements %d to %d of %d", i, lo, hi, n)
	}
	return nil
}

// shared computes what the whole run shares.
func (r *run) shared(m *machine) {
	for i, p := range r.plan.params {
		if q := r.plan.inputs[i]; q != nil {
			s := r.in[i].strides
			m.banks[ir.I64].set(q.step.slot, ir.Bits(s[len(s)-1]))
		}
		if r.classes[i] == 0 && r.prog.used[i] {
			if o := &r.in[i]; o.data || o.gen != nil || o.index {
				r.one(m, i, o.offset)
			} else {
				m.banks[p.t].set(p.slot, r.launch.In[i].Scalar)
			}
		}
	}
	m.exec(r.plan.run)
}

// one loads a single element of argument i.
func (r *run) one(m *machine, i, off int) {
	p := r.plan.params[i]
	b := m.banks[p.t]
	if r.in[i].index {
		b.set(p.slot, ir.Bits(off))
		return
	}
	if g := r.in[i].gen; g != nil {
		f := b.(*bank[float64])
		f.view[p.slot] = f.own[p.slot][:1]
		g.Fill(f.view[p.slot], off, 0)
		return
	}
	b.set(p.slot, b.at(i, off))
}

// work runs chunks until there are none; it reports whether the machine is
// still good.
func (r *run) work(m *machine) (ok bool) {
	defer func() {
		if e := recover(); e != nil {
			r.mu.Lock()
			r.err = wrongly(e)
			r.mu.Unlock()
			r.stop.Store(true)
		}
	}()
	r.shared(m)
	for !r.stop.Load() {
		c := int(r.next.Add(1) - 1)
		if c >= r.chunks {
			break
		}
		if !r.columns {
			for id := c * r.group; id < min((c+1)*r.group, r.blocks); id++ {
				if !r.step(m, id) {
					return true
				}
			}
			continue
		}
		first, col := c/r.perRow*r.group, c%r.perRow
		if int64(first*r.perRow+col) > r.failed.Load() {
			continue
		}
		r.column(m, col)
		for row := first; row < min(first+r.group, r.rows); row++ {
			if !r.step(m, row*r.perRow+col) {
				return true
			}
		}
	}
	return true
}

// step runs a block unless a lower one has failed. It reports whether to go on.
func (r *run) step(m *machine, id int) bool {
	if int64(id) > r.failed.Load() {
		return true
	}
	m.block = int64(id)
	n := r.execBlock(m, id, math.MaxInt, false)
	r.collect(&m.lines, &m.dropped)
	if m.worst.in != nil {
		r.note(m)
	}
	if m.fault {
		for {
			low := r.failed.Load()
			if low <= int64(id) || r.failed.CompareAndSwap(low, int64(id)) {
				break
			}
		}
	}
	m.stop, m.fault = false, false
	if r.launch.Progress != nil {
		r.done.Add(1)
	}
	m.poll(float64(float64(n)*r.plan.cost) + 100)
	m.stop = false
	return !r.stop.Load()
}

// note records the worker of a block that failed in place, if it is the lowest.
func (r *run) note(m *machine) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if w := m.base + m.worst.place; r.worst.in == nil || w < r.worst.worker {
		r.worst = failure{flaw: m.worst, worker: w, inputs: m.inputs}
	}
	m.worst, m.fault = flaw{}, true
}

// poll counts work done and now and then looks whether to stop.
func (m *machine) poll(work float64) {
	m.spent += work
	if m.spent < pollEvery {
		return
	}
	m.spent = 0
	r := m.run
	c := r.launch.Cancelled
	switch {
	case r.stop.Load():
		m.stop = true
	case m.block > r.failed.Load():
		m.stop = true
	case c != nil && r.poll.TryLock():
		if c() {
			r.stop.Store(true)
			m.stop = true
		}
		if tell := r.launch.Progress; tell != nil {
			tell(int(r.done.Load()), r.blocks)
		}
		r.poll.Unlock()
	}
	if m.first && r.help > 0 && !m.stop {
		r.startHelpers()
	}
}

// startHelpers starts the other goroutines, once the first has worked for a
// while: a small launch is over by then.
func (r *run) startHelpers() {
	left := r.chunks - int(r.next.Load())
	for range min(r.help, left) {
		r.wg.Add(1)
		go func() {
			defer r.wg.Done()
			m := r.machine()
			if r.bind(m) == nil && r.work(m) {
				r.release(m)
			}
		}()
	}
	r.help = 0
}

// size returns the first worker and the number of workers of a block.
func (r *run) size(id int) (first, n int) {
	if r.spans {
		first = id * r.length
		return first, min(r.length, r.rows*r.inner-first)
	}
	j := id % r.perRow * r.length
	return id/r.perRow*r.inner + j, min(r.length, r.inner-j)
}

// column computes what the blocks of a column share.
func (r *run) column(m *machine, col int) {
	_, n := r.size(col)
	m.n[frameBlock] = n
	for i := range r.in {
		if r.classes[i].kind() == perLane && r.prog.used[i] {
			r.vector(m, i, col*r.length, n)
		}
	}
	m.exec(r.plan.column)
}

// execBlock runs a block, or its first limit workers; if dry it leaves the
// results alone. It returns how many workers ran.
func (r *run) execBlock(m *machine, id, limit int, dry bool) int {
	p := r.plan
	first, n := r.size(id)
	n = min(n, limit)
	m.n[frameBlock], m.base = n, first
	for i := range r.in {
		if !r.prog.used[i] {
			continue
		}
		switch r.classes[i].kind() {
		case perRow:
			r.one(m, i, r.offset(&r.in[i], first))
		case perRow | perLane:
			r.vector(m, i, first, n)
		}
	}
	m.exec(p.row)
	for j := range r.out {
		o, res, early := &r.out[j], p.fn.results[j], p.early[j]
		b := m.banks[res.t]
		if r.direct(o) && !dry {
			off := r.offset(o, first)
			b.direct(res.slot, j, off, n)
			if early.t != ir.Invalid {
				b.direct(early.slot, j, off, n)
			}
			continue
		}
		b.restore(res.slot)
		b.room(res.slot, p.length)
		if early.t != ir.Invalid {
			b.share(early.slot, res.slot)
		}
	}
	if len(p.f.Mems) > 0 {
		m.beginMems(n)
	}
	m.begin(&p.fn)
	m.enterAll(&p.body, n)
	m.exec(p.body.code)
	if m.worst.in != nil { // the arguments, before results overwrite them
		m.inputs = make([]ir.Bits, len(r.in))
		for i := range r.in {
			m.inputs[i] = r.arg(m, i, m.base+m.worst.place)
		}
	}
	if m.stop || dry {
		return n
	}
	for j := range r.out {
		if o := &r.out[j]; !r.direct(o) {
			r.store(m, j, first, n)
		}
	}
	return n
}

// direct reports whether a block can write to the result itself.
func (r *run) direct(o *operand) bool {
	if r.aliased {
		return false
	}
	return o.dense || !r.uneven && o.strides[len(o.strides)-1] == 1
}

// offset is where the element of a worker is.
func (r *run) offset(o *operand, worker int) int {
	if o.dense {
		return o.offset + worker
	}
	off := o.offset
	for d := len(r.dims) - 1; d > 0; d-- {
		off += worker % r.dims[d] * o.strides[d]
		worker /= r.dims[d]
	}
	return off + worker*o.strides[0]
}

// segments calls f for each piece of n workers from first on that lies in one
// row: at worker first+at, its elements begin at off.
func (r *run) segments(o *operand, first, n int, f func(at, off, n, stride int)) {
	stride := o.strides[len(o.strides)-1]
	if o.dense || !r.uneven {
		f(0, r.offset(o, first), n, stride)
		return
	}
	last := r.dims[len(r.dims)-1]
	for at := 0; at < n; {
		w := first + at
		k := min(n-at, last-w%last)
		f(at, r.offset(o, w), k, stride)
		at += k
	}
}

// vector loads n elements of argument i from worker first on.
func (r *run) vector(m *machine, i, first, n int) {
	o, p := &r.in[i], r.plan.params[i]
	b := m.banks[p.t]
	if q := r.plan.inputs[i]; q != nil {
		b.set(q.first.slot, ir.Bits(r.offset(o, first)))
	}
	if p.slot == noSlot {
		return
	}
	if o.data && !r.aliased && (o.dense || !r.uneven && o.strides[len(o.strides)-1] == 1 || n == 1) {
		b.show(p.slot, i, r.offset(o, first), n)
		return
	}
	b.room(p.slot, r.plan.length)
	if o.index {
		f := b.(*bank[int64])
		r.segments(o, first, n, func(at, off, k, stride int) {
			d, x := f.own[p.slot][at:at+k], int64(off)
			for i := range d {
				d[i] = x
				x += int64(stride)
			}
		})
		f.begin(p.slot, n)
		return
	}
	if o.gen != nil {
		f := b.(*bank[float64])
		r.segments(o, first, n, func(at, off, k, stride int) { o.gen.Fill(f.own[p.slot][at:at+k], off, stride) })
		f.begin(p.slot, n)
		return
	}
	r.segments(o, first, n, func(at, off, k, stride int) { b.load(p.slot, i, off, stride, at, k) })
}

func (r *run) store(m *machine, j, first, n int) {
	res := r.plan.fn.results[j]
	b := m.banks[res.t]
	r.segments(&r.out[j], first, n, func(at, off, k, stride int) { b.store(res.slot, j, off, stride, at, k) })
}

// locate finds the lowest failing worker of a failing block, by running ever
// shorter beginnings of the block, and evaluates it.
func (r *run) locate(m *machine, id int) error {
	first, n := r.size(id)
	m.block, m.first = int64(id), false
	if r.columns {
		r.column(m, id%r.perRow)
	}
	ok, bad := 0, n // the first ok workers are good, among the first bad one fails
	for bad-ok > 1 {
		k := (ok + bad) / 2
		m.stop, m.fault = false, false
		r.execBlock(m, id, k, true)
		if r.stop.Load() {
			return ErrCancelled
		}
		if m.fault {
			bad = k
		} else {
			ok = k
		}
	}
	w := first + bad - 1
	e := r.workerError(w, make([]ir.Bits, len(r.in)))
	for i := range r.in {
		e.Args[i] = r.arg(m, i, w)
	}
	_, err := (&ir.Evaluator{Cancelled: r.launch.Cancelled}).Run(r.prog.f, e.Args...)
	f, isFault := err.(*ir.FaultError)
	switch {
	case !isFault:
		return fmt.Errorf("cpu: internal error: worker %d of %s failed, but not in the evaluator", w, r.prog.f.Name)
	case f.Fault == ir.Cancelled:
		return ErrCancelled
	}
	e.Err = err
	return e
}

// workerError names a worker.
func (r *run) workerError(w int, args []ir.Bits) *WorkerError {
	e := &WorkerError{Worker: w, Index: make([]int, len(r.launch.Shape)), Args: args}
	for d, k := len(e.Index)-1, w; d >= 0; d-- {
		e.Index[d] = k % r.launch.Shape[d]
		k /= r.launch.Shape[d]
	}
	return e
}

// describe is the error of a worker that failed in place.
func (r *run) describe() error {
	w := &r.worst
	e := r.workerError(w.worker, w.inputs)
	e.Err = &ir.FaultError{Fault: w.fault, Func: r.prog.f.Name, Pos: w.in.Pos, Expr: w.expr(), Worker: w.worker % max(r.launch.Group, 1)}
	return e
}

// arg is the value of argument i for a worker.
func (r *run) arg(m *machine, i, worker int) ir.Bits {
	o := &r.in[i]
	switch {
	case o.data:
		return m.banks[r.plan.params[i].t].at(i, r.offset(o, worker))
	case o.gen != nil:
		var x [1]float64
		o.gen.Fill(x[:], r.offset(o, worker), 0)
		return ir.FromF64(x[0])
	case o.index:
		return ir.Bits(r.offset(o, worker))
	}
	return r.launch.In[i].Scalar
}
