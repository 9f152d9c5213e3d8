package cpu

import (
	"fmt"
	"runtime"
	"slices"
	"sync"
	"time"

	"gpunotes/gpukit/internal/codegen/amd64"
	"gpunotes/gpukit/internal/ir"
)

// Native is machine code of a kernel, ready to run. It is safe for concurrent use;
// its pages are given back when nobody has it any more.
type Native struct {
	kernel *amd64.Kernel
	code   *amd64.Code
	pages  codePages
	enter  func(block *[amd64.BlockSize / 8]uint64) // in the place of pages, for tests
	budget uint64                                   // of one call
	sites  []site
	calls  sync.Pool
}

// callInstructions is about how many instructions a call executes before it comes
// back to Go, which stops the world or hears of Stop only then: some ten microseconds.
const callInstructions = 100_000

// LoadNative compiles a kernel for a target of MachineTargets. The error is an
// *amd64.Unsupported, or says why code cannot run here.
func LoadNative(k *amd64.Kernel, t amd64.Target, o amd64.Options) (*Native, error) {
	code, err := amd64.Compile(k, t, o)
	if err != nil {
		return nil, err
	}
	pages, err := mapCode(code.Bytes)
	if err != nil {
		return nil, err
	}
	n := newNative(k, code)
	n.pages = pages
	runtime.AddCleanup(n, codePages.free, pages)
	return n, nil
}

func newNative(k *amd64.Kernel, code *amd64.Code) *Native {
	n := &Native{kernel: k, code: code, budget: callInstructions}
	for i := range code.Sites {
		n.sites = append(n.sites, newSite(k.Func, &code.Sites[i]))
	}
	return n
}

// Code is what was compiled.
func (n *Native) Code() *amd64.Code { return n.code }

// SetBudget changes after about how many instructions a call comes back to Go, for
// tests. It must not be called while n runs.
func (n *Native) SetBudget(instructions int) { n.budget = uint64(instructions) }

// nativeCall is what one run at a time needs. It is on the heap, where nothing
// moves. The words that are addresses are numbers for Go, as the code moves them
// beyond what they are addresses of; who calls holds the slices.
type nativeCall struct {
	block   [amd64.BlockSize / 8]uint64
	streams []uint64 // amd64.StreamSize bytes for each operand
	mems    []uint64
	slices  []any     // the memories
	bases   []uintptr // of the memories, in elements
	backing []uint64
	state   []uint64  // a part of it, aligned to 64 bytes
	args    []ir.Bits // scratch

	// Of a crew.
	crew         *crew
	first        bool // the caller's
	id           int  // the box
	lo, hi       []int
	at, size     []int // the piece
	fills        []generated
	lines        lineBuffer
	kept         []line
	dropped      int
	started      time.Time
	paused       bool    // in the piece
	spent, total float64 // ns of the piece before pauses; of the run
}

const streamWords = amd64.StreamSize / 8

// call returns a call without operands. It must be given back.
func (n *Native) call() *nativeCall {
	if c, _ := n.calls.Get().(*nativeCall); c != nil {
		return c
	}
	k := n.kernel
	c := &nativeCall{
		streams: make([]uint64, streamWords*max(1, len(k.In)+len(k.Out))),
		backing: make([]uint64, n.code.State/8+8),
		args:    make([]ir.Bits, 0, 8),
	}
	for _, m := range k.Func.Mems {
		if m.Space == ir.Global {
			c.mems = append(c.mems, 0, 0)
			c.slices = append(c.slices, nil)
			c.bases = append(c.bases, 0)
		}
	}
	c.state = c.backing[(-addressOf(c.backing)&63)/8:]
	c.block[amd64.BlockState/8] = uint64(addressOf(c.state))
	c.block[amd64.BlockStreams/8] = uint64(addressOf(c.streams))
	if len(c.mems) > 0 {
		c.block[amd64.BlockMems/8] = uint64(addressOf(c.mems))
	}
	return c
}

// release gives a call back; it forgets what belongs to the caller.
func (n *Native) release(c *nativeCall) {
	clear(c.slices)
	n.calls.Put(c)
}

// bindMem gives a call Global memory number i, a slice or nil, of which the
// address and length are known.
func (c *nativeCall) bindMem(i int, data any, address uintptr, length, size int) {
	c.slices[i] = data
	c.mems[2*i], c.mems[2*i+1] = uint64(address), uint64(length)
	c.bases[i] = address / uintptr(size)
}

// begin makes the call one from the start, of rows of count workers.
func (c *nativeCall) begin(count int, dims []int) {
	c.block[amd64.BlockCount/8] = uint64(count)
	for d, n := range dims {
		c.block[amd64.BlockRows/8+d] = uint64(n)
	}
	c.block[amd64.BlockResume/8] = 0
}

// exit runs the code until it is done or stops for a reason that is not a callout. What
// is left of the budget goes on after a callout, or a loop of callouts would never pause.
func (n *Native) exit(c *nativeCall, budget uint64, l *lineBuffer) amd64.Exit {
	c.block[amd64.BlockBudget/8] = budget
	for {
		if n.enter != nil {
			n.enter(&c.block)
		} else {
			callMachineCode(n.pages.entry(), &c.block)
		}
		e := amd64.Exit(c.block[amd64.BlockExit/8])
		if e != amd64.ExitCallout {
			return e
		}
		n.carryOut(c, &n.sites[c.block[amd64.BlockSite/8]], l)
	}
}

// where is the worker of the first lane of the group at which the code stands, in
// its row, and the row.
func (c *nativeCall) where() (lane int, row [amd64.MaxLevels]int) {
	for d := range row {
		row[d] = int(c.block[amd64.BlockRow/8+d])
	}
	return int(c.block[amd64.BlockLane/8]), row
}

// half is the i-th 4-byte word at an offset in the state.
func (c *nativeCall) half(offset, i int) uint32 {
	offset += 4 * i
	return uint32(c.state[offset/8] >> (8 * (offset & 4)))
}

func (c *nativeCall) setHalf(offset, i int, x uint32) {
	offset += 4 * i
	w, shift := &c.state[offset/8], 8*(offset&4)
	*w = *w&^(0xFFFFFFFF<<shift) | uint64(x)<<shift
}

// get is the value of a lane at a place.
func (c *nativeCall) get(p *amd64.Place, lane int) ir.Bits {
	switch {
	case p.One:
		return c.state[p.Offset/8]
	case p.Type == ir.Bool:
		return c.state[p.Offset/8] >> lane & 1
	case p.Type.Bits() == 64:
		return c.state[p.Offset/8+lane]
	}
	x := c.half(p.Offset, lane)
	if p.Type.IsSigned() {
		return ir.Bits(int64(int32(x)))
	}
	return ir.Bits(x)
}

func (c *nativeCall) put(p *amd64.Place, lane int, b ir.Bits) {
	switch {
	case p.One:
		c.state[p.Offset/8] = b
	case p.Type == ir.Bool:
		w := &c.state[p.Offset/8]
		*w = *w&^(1<<lane) | b&1<<lane
	case p.Type.Bits() == 64:
		c.state[p.Offset/8+lane] = b
	default:
		c.setHalf(p.Offset, lane, uint32(b))
	}
}

// Stream says where the workers find a parameter or result of a run.
type Stream struct {
	// Data is a slice of the Go type of the parameter, of Unit, Strided and PerRow.
	Data any
	// Value is the value, in Bits form, of Same, and of a Count the first one.
	Value ir.Bits
	// Offset is where worker 0 of row 0 has its element.
	Offset int
	// Step is from worker to worker, in elements, of Strided and CountStep.
	Step int
	// Rows are the steps from row to row by dimension, the fastest first, in elements.
	Rows []int
}

// Rows is what a Native runs on: Count workers in each row, and the sizes of the
// dimensions of rows, the fastest first. Workers are numbered row by row.
type Rows struct {
	Count   int
	Dims    []int
	In, Out []Stream
	Mems    []any // a slice for each Global memory
	// Print takes the lines that workers print, in the order in which they do.
	Print func(line string)
	// Cancelled, if not nil, is polled at each pause.
	Cancelled func() bool
}

// Run runs rows of workers on the calling goroutine, as the accesses of the kernel
// say. The error is a *WorkerError for the lowest worker that fails, after which
// no group behind that of this worker has run; ErrCancelled; or tells of operands
// that do not fit the kernel. It is for tests of the code: a Program checks its
// operands, and is quicker.
func (n *Native) Run(r Rows) error {
	k, f := n.kernel, n.kernel.Func
	if len(r.In) != len(k.In) || len(r.Out) != len(k.Out) || len(r.Dims) != k.Levels || r.Count < 0 {
		return wrong("%d and %d streams, %d levels, %d workers", len(r.In), len(r.Out), len(r.Dims), r.Count)
	}
	total := r.Count
	for _, d := range r.Dims {
		total *= d
	}
	if total == 0 {
		return nil
	}
	c := n.call()
	defer n.release(c)
	dims := append([]int{r.Count}, r.Dims...)
	for i := range len(r.In) + len(r.Out) {
		s, access, t := &Stream{}, amd64.Same, ir.Invalid
		if i < len(r.In) {
			s, access, t = &r.In[i], k.In[i], f.Types[f.Params[i].Value]
		} else {
			s, access, t = &r.Out[i-len(r.In)], k.Out[i-len(r.In)], f.Results[i-len(r.In)]
		}
		step := s.Step
		switch access {
		case amd64.Unit, amd64.CountUnit:
			step = 1
		case amd64.PerRow, amd64.Count, amd64.Same:
			step = 0
		}
		strides := append([]int{step}, s.Rows...)
		if access == amd64.Same {
			strides = make([]int, len(dims))
		}
		if len(strides) != len(dims) {
			return wrong("%d steps of operand %d for %d dimensions", len(s.Rows), i, len(r.Dims))
		}
		word, size := uintptr(s.Value), 1
		switch access {
		case amd64.PerRow, amd64.Unit, amd64.Strided:
			address, length, ok := dataOf(s.Data, t)
			size = t.Size()
			o := operand{offset: s.Offset, strides: strides}
			if err := o.within(dims, i, length, ok); err != nil {
				return err
			}
			word = address + uintptr(s.Offset*size)
		}
		c.stream(i, word, size, strides, dims[1:])
	}
	mem := 0
	for _, m := range f.Mems {
		if m.Space != ir.Global {
			continue
		}
		address, length, ok := dataOf(r.Mems[mem], m.Elem)
		if !ok && r.Mems[mem] != nil {
			return wrong("memory %d is a %T", mem, r.Mems[mem])
		}
		c.bindMem(mem, r.Mems[mem], address, length, m.Elem.Size())
		mem++
	}
	c.begin(r.Count, r.Dims)
	number := func(lane int, row [amd64.MaxLevels]int) int {
		step := r.Count
		for d, size := range r.Dims {
			lane += row[d] * step
			step *= size
		}
		return lane
	}
	l := &lineBuffer{number: number}
	if r.Print != nil {
		l.print = func(_ int, line string) { r.Print(line) }
	}
	defer runtime.KeepAlive(r)
	for {
		switch n.exit(c, n.budget, l) {
		case amd64.ExitDone:
			runtime.KeepAlive(n)
			return nil
		case amd64.ExitFault:
			lane, row := c.where()
			at, w := n.fault(c)
			e := &WorkerError{Worker: number(lane+at.lane, row)}
			e.Err = &ir.FaultError{Fault: w.fault, Func: w.of.Name, Pos: w.in.Pos, Expr: w.expr()}
			return e
		case amd64.ExitPaused:
			if r.Cancelled != nil && r.Cancelled() {
				return ErrCancelled
			}
		}
	}
}

// stream sets the words of an operand.
func (c *nativeCall) stream(i int, word uintptr, size int, strides, rows []int) {
	s := c.streams[i*streamWords:][:streamWords]
	s[amd64.StreamWord/8] = uint64(word)
	s[amd64.StreamStep/8] = uint64(strides[0] * size)
	back := 0
	for d, n := range rows {
		s[amd64.StreamAdvance/8+d] = uint64((strides[d+1] - back) * size)
		back += (n - 1) * strides[d+1]
	}
}

// faultAt is a lane that failed.
type faultAt struct{ lane, site int }

// fault finds the lowest lane of the group that failed, and why.
func (n *Native) fault(c *nativeCall) (faultAt, flaw) {
	p := &n.code.Fault
	lanes := c.state[p.Lanes/8]
	at := faultAt{lane: 0}
	for lanes>>at.lane&1 == 0 {
		at.lane++
	}
	at.site = int(c.half(p.Sites, at.lane))
	w := flaw{in: n.code.Faults[at.site], of: n.code.FaultFuncs[at.site]}
	for j := range w.in.Args {
		w.args[j] = c.state[p.Values/8+j*n.code.Lanes+at.lane]
	}
	w.fault = faultOf(w.of, w.in, w.args[:len(w.in.Args)])
	return at, w
}

// site is an instruction that Go carries out for code.
type site struct {
	*amd64.Site
	in *ir.Instr
	// one is a function of this instruction alone: it may be of a function that the
	// kernel's calls.
	one  *ir.Func
	mem  int // which of the Global memories, or -1
	elem ir.Type
}

func newSite(f *ir.Func, s *amd64.Site) site {
	x := site{Site: s, one: ir.NewFunc(f.Name), mem: -1}
	in := *s.Instr
	in.Args, in.Results = nil, nil
	for i, p := range s.In {
		in.Args = append(in.Args, x.one.AddParam(fmt.Sprint(i), p.Type))
	}
	for _, p := range s.Out {
		in.Results = append(in.Results, x.one.NewValue(p.Type))
	}
	x.in = &in
	switch in.Op {
	case ir.OpLoad, ir.OpStore, ir.OpAtomic:
		x.elem = f.Mems[in.Mem].Elem
		if f.Mems[in.Mem].Space == ir.Global {
			x.mem = 0
			for _, m := range f.Mems[:in.Mem] {
				if m.Space == ir.Global {
					x.mem++
				}
			}
		}
	}
	return x
}

// lineBuffer takes what workers print.
type lineBuffer struct {
	print func(worker int, line string) // nil if nobody looks
	// number is that of a worker, by its place in the row and the row.
	number func(lane int, row [amd64.MaxLevels]int) int
}

// carryOut does what a site asks for.
func (n *Native) carryOut(c *nativeCall, s *site, l *lineBuffer) {
	active := c.state[s.Active/8]
	for lane := 0; active != 0; lane, active = lane+1, active>>1 {
		if active&1 == 0 {
			continue
		}
		a := c.args[:0]
		for i := range s.In {
			a = append(a, c.get(&s.In[i], lane))
		}
		c.args = a[:0]
		switch s.in.Op {
		case ir.OpPrint:
			if l.print != nil {
				first, row := c.where()
				l.print(l.number(first+lane, row), ir.FormatPrint(s.one, s.in, a))
			}
			continue
		case ir.OpStore:
			elements[s.elem].set(c.slices[s.mem], int64(a[0]), a[1])
			continue
		}
		var out ir.Bits
		switch s.in.Op {
		case ir.OpLoad:
			if s.mem < 0 {
				out = n.kernel.Func.Mems[s.in.Mem].Data[int64(a[0])]
			} else {
				out = elements[s.elem].get(c.slices[s.mem], int64(a[0]))
			}
		case ir.OpAtomic:
			out = atomicOne[s.in.Kind][s.elem](c.slices[s.mem], c.bases[s.mem], int64(a[0]), a[1], a[len(a)-1])
		case ir.OpCall:
			res, err := new(ir.Evaluator).Run(s.in.Callee, slices.Clone(a)...)
			if err != nil {
				panic(err)
			}
			for i := range s.Out {
				c.put(&s.Out[i], lane, res[i])
			}
			continue
		default:
			var fault ir.Fault
			if out, fault = ir.Compute(s.one, s.in, a); fault != ir.NoFault {
				panic(fmt.Sprintf("%v in machine code that did not look", fault))
			}
		}
		if len(s.Out) > 0 {
			c.put(&s.Out[0], lane, out)
		}
	}
}
