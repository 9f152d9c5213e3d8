package gpukit

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"

	"gpunotes/gpukit/internal/codegen/nvptx"
	"gpunotes/gpukit/internal/driver"
	"gpunotes/gpukit/internal/frontend"
	"gpunotes/gpukit/internal/ir"
	"gpunotes/gpukit/internal/ptx"
	"gpunotes/gpukit/internal/shape"
)

// gpuEngine compiles functions to PTX: once for each set of facts of a launch
// that the code makes use of.
type gpuEngine struct{ gpu *gpu }

// gpuCode is a function on a GPU.
type gpuCode struct {
	gpu      *gpu
	f        *ir.Func // library functions put in, optimised
	mu       sync.Mutex
	variants map[string]*variant // by facts
}

// variant is the code for one set of facts.
type variant struct {
	once  sync.Once
	err   error
	entry *nvptx.Entry
	text  string // PTX
	sm    int    // its target
	fn    driver.Function
	needs driver.Attributes
}

func (e gpuEngine) compile(source, optimised *ir.Func, o options) (executable, error) {
	f := ir.Optimize(ir.Expand(optimised, func(fn ir.MathFn) (*ir.Func, int) {
		if nvptx.Native(fn) {
			return nil, 0
		}
		return frontend.MathBody(fn)
	}))
	if o.unchecked {
		ir.DropBounds(f)
	}
	if err := ir.Verify(f); err != nil {
		return nil, err
	}
	if len(f.Params) != len(source.Params) {
		return nil, fmt.Errorf("%s has %d parameters, and %d when optimised", f.Name, len(source.Params), len(f.Params))
	}
	return &gpuCode{gpu: e.gpu, f: f, variants: map[string]*variant{}}, nil
}

// maxVariants bounds the code of one function; facts of unusual calls would else
// add up.
const maxVariants = 256

// variant returns the code for the facts of a launch.
func (p *gpuCode) variant(l *gpuLaunch) (*variant, error) {
	p.mu.Lock()
	v := p.variants[l.key]
	if v == nil {
		if len(p.variants) >= maxVariants {
			p.variants = map[string]*variant{}
		}
		v = &variant{}
		p.variants[l.key] = v
	}
	p.mu.Unlock()
	v.once.Do(func() { v.err = v.build(p, l.kernel) })
	return v, v.err
}

func (v *variant) build(p *gpuCode, k nvptx.Kernel) (err error) {
	defer func() { // a fault of ours must not end a notebook
		if r := recover(); r != nil {
			err = fmt.Errorf("internal error: %v", r)
		}
	}()
	k.Func, k.Name = p.f, identifier(p.f.Name)
	info := &p.gpu.info
	m, entries, err := nvptx.Emit(nvptx.Target{SM: info.SM(), PTX: ptx.Version(info.PTX)}, &k)
	if err != nil {
		return err
	}
	v.entry, v.text, v.sm = entries[0], m.String(), m.Target
	module, err := p.gpu.dev.Load([]byte(v.text))
	if err != nil {
		return err
	}
	runtime.AddCleanup(v, func(m driver.Module) { m.Unload() }, module)
	if v.fn, err = module.Function(v.entry.Name); err != nil {
		return err
	}
	v.needs = v.fn.Attributes()
	return nil
}

// identifier makes a name of PTX out of that of a function.
func identifier(name string) string {
	s := strings.Map(func(r rune) rune {
		if r == '_' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
			return r
		}
		return '_'
	}, name)
	if s == "" || s[0] == '_' || s[0] >= '0' && s[0] <= '9' {
		s = "k" + s
	}
	return s
}

// gpuLaunch is a call in the terms of a kernel.
type gpuLaunch struct {
	workers int
	shape   []int // loop dimensions, those together that every operand walks as one
	key     string
	kernel  nvptx.Kernel // but for its function

	in, out []gpuOperand    // by parameter and result of the function
	mems    map[int]*bound  // by memory
	groups  []*group        // host memory that the launch works on
	homes   map[*bound]home // where arrays are on the device
	printed *block          // where threads print to, if they do
	lines   []nvptx.Line    // what they printed
	lost    int             // lines that there was no room for
}

// gpuOperand is a parameter or a result of the function.
type gpuOperand struct {
	value   ir.Bits    // without array: what the first worker gets
	array   *bound     // of which each worker has an element
	gen     *generator // that computes the worker's element
	offset  int
	strides []int // over the shape of the launch
}

// smallSize is up to which core sizes become part of the code, so that their
// loops can be unrolled.
const smallSize = 16

// launch puts a call into the terms of a kernel and finds the facts that its code
// may use. It neither copies nor allocates.
func (p *gpuCode) launch(d *Device, c *call) *gpuLaunch {
	f := c.fn.source.Func
	b := c.bind(d)
	l := &gpuLaunch{mems: map[int]*bound{}}
	l.workers, _ = shape.Size(c.loop)
	var owners []*bound // of scalar parameters, in order
	for _, list := range [][]bound{c.args, c.outs} {
		for i := range list {
			switch a := &list[i]; {
			case a.indexed:
				l.mems[int(a.mem)] = a
			case a.array == nil:
				for range a.leaves {
					owners = append(owners, a)
				}
			case i < len(c.args):
				owners = append(owners, a)
			}
		}
	}
	threads := c.block.X > 0
	k := &l.kernel
	k.Threads = threads
	k.NoAlias = true

	// The operands, and the loop dimensions that are one to all of them.
	var walks [][]int
	owners = owners[:len(owners):len(owners)]
	for i, q := range f.Params {
		o := gpuOperand{value: b.In[i].Scalar}
		if q.Kind == ir.Scalar || q.Kind == ir.Captured {
			if a := owners[0]; a.array != nil {
				o.array = a
				if g, ok := a.array.store.(*generator); ok {
					o.array, o.gen = nil, g
				}
			}
			owners = owners[1:]
		}
		if q.Kind == ir.Offset || o.array != nil || o.gen != nil {
			o.offset, o.strides = b.In[i].Offset, b.In[i].Strides
			if threads {
				o.strides = nil
			} else {
				walks = append(walks, o.strides)
			}
		}
		l.in = append(l.in, o)
	}
	for i := range b.Out {
		a := &c.outs[i]
		l.out = append(l.out, gpuOperand{array: a, offset: b.Out[i].Offset, strides: b.Out[i].Strides})
		walks = append(walks, b.Out[i].Strides)
	}
	if threads {
		l.shape = []int{l.workers}
	} else {
		var keep []int
		l.shape, keep = collapse(c.loop, walks)
		for _, list := range [][]gpuOperand{l.in, l.out} {
			for i := range list {
				if st := list[i].strides; st != nil {
					list[i].strides = pick(st, keep)
				}
			}
		}
	}
	k.Rank = max(len(l.shape), 1)
	l.place(c)
	l.facts(c, f)
	return l
}

// collapse joins loop dimensions that every walk goes through as if they were
// one, and leaves out those of size 1. keep are the dimensions whose strides
// remain.
func collapse(dims []int, walks [][]int) (out, keep []int) {
	for d, n := range dims {
		if n == 1 {
			continue
		}
		if last := len(keep) - 1; last >= 0 && !slices.ContainsFunc(walks, func(st []int) bool { return st[keep[last]] != st[d]*n }) {
			keep[last] = d
			out[last] *= n
			continue
		}
		keep, out = append(keep, d), append(out, n)
	}
	return out, keep
}

func pick(s, which []int) []int {
	out := make([]int, len(which))
	for i, k := range which {
		out[i] = s[k]
	}
	return out
}

func still(strides []int) bool {
	return !slices.ContainsFunc(strides, func(s int) bool { return s != 0 })
}

// facts fills in what the code may rely on, and the key that says so.
func (l *gpuLaunch) facts(c *call, f *ir.Func) {
	k := &l.kernel
	fs := &k.Facts
	fs.Narrow = l.workers < 1<<31
	fs.Frozen, fs.Equal, fs.Arrays = map[int]ir.Bits{}, map[int]int{}, map[ir.Mem]nvptx.Array{}
	fs.InStrides, fs.OutStrides = map[nvptx.Place]int64{}, map[nvptx.Place]int64{}
	var key strings.Builder
	fmt.Fprintf(&key, "%v %d %v", k.Threads, k.Rank, fs.Narrow)

	access := func(o *gpuOperand, known map[nvptx.Place]int64, i int) nvptx.Access {
		a := nvptx.Strided
		switch {
		case o.array != nil && shape.IsContiguous(l.shape, o.strides) && !k.Threads:
			return nvptx.Contiguous
		case still(o.strides) && o.array == nil:
			return nvptx.ByValue
		case o.gen != nil:
			a = nvptx.Generated(formula(o.gen))
		}
		for d, s := range o.strides {
			if s == 0 || s == 1 {
				known[nvptx.Place{Index: i, Dim: d}] = int64(s)
			}
		}
		return a
	}
	sizes := map[ir.Bits]int{} // the first parameter with this size
	for i := range l.in {
		o := &l.in[i]
		a := nvptx.ByValue
		switch q := f.Params[i]; {
		case o.gen != nil && still(o.strides):
			o.value = o.gen.bits(o.offset)
		case o.gen != nil:
			a, o.value = access(o, fs.InStrides, i), ir.Bits(o.offset)
		case q.Kind == ir.Offset:
			a, o.value = access(o, fs.InStrides, i), ir.Bits(o.offset)
		case o.array != nil:
			a = access(o, fs.InStrides, i)
		case q.Kind == ir.Shape && l.mems[int(q.Mem)] != nil:
			if first, ok := sizes[o.value]; ok {
				fs.Equal[i] = first
				fmt.Fprintf(&key, " %d=%d", i, first)
			} else {
				sizes[o.value] = i
			}
			if !k.Threads && o.value <= smallSize {
				fs.Frozen[i] = o.value
				delete(fs.Equal, i)
				fmt.Fprintf(&key, " %d:%d", i, o.value)
			}
		}
		k.In = append(k.In, a)
		fmt.Fprintf(&key, ",%d", a)
		for d, s := range o.strides {
			if x, ok := fs.InStrides[nvptx.Place{Index: i, Dim: d}]; ok && s == int(x) {
				fmt.Fprintf(&key, "s%d=%d", d, x)
			}
		}
	}
	for i := range l.out {
		a := access(&l.out[i], fs.OutStrides, i)
		k.Out = append(k.Out, a)
		fmt.Fprintf(&key, ";%d", a)
		for d := range l.out[i].strides {
			if x, ok := fs.OutStrides[nvptx.Place{Index: i, Dim: d}]; ok {
				fmt.Fprintf(&key, "s%d=%d", d, x)
			}
		}
	}

	var written []*bound
	for _, list := range [][]bound{c.args, c.outs} {
		for i := range list {
			if list[i].array != nil && list[i].written {
				written = append(written, &list[i])
			}
		}
	}
	meets := func(a *bound) bool {
		return !a.copied && slices.ContainsFunc(written, func(w *bound) bool { return w == a || !w.copied && overlap(a.array, w.array) })
	}
	for i := range c.args {
		if a := &c.args[i]; a.array != nil && meets(a) && (!a.written || a.read) {
			k.NoAlias = false
		}
	}
	fmt.Fprint(&key, " ", k.NoAlias)
	for m := range f.Mems {
		b := l.mems[m]
		if b == nil {
			continue
		}
		x := nvptx.Array{
			Contiguous: shape.IsContiguous(b.core, b.strides),
			Unit:       len(b.strides) > 0 && b.strides[len(b.strides)-1] == 1,
			NoAlias:    !meets(b),
		}
		for d, s := range b.strides {
			if s == 0 && b.core[d] > 1 {
				x.Zero = append(x.Zero, d)
			}
		}
		if g, ok := b.array.store.(*generator); ok {
			x.Generator = formula(g)
		} else {
			x.Align = l.alignment(b, c.loop)
		}
		fs.Arrays[ir.Mem(m)] = x
		fmt.Fprintf(&key, " m%d%v", m, x)
	}
	l.key = key.String()
}

// alignment is what the addresses of all workers' arrays are multiples of, up to
// what a vector load takes.
func (l *gpuLaunch) alignment(b *bound, loop []int) int {
	size := b.array.DType().Size()
	all := 16 | l.homes[b].shift + b.array.offset*size
	for d, s := range b.loop {
		if loop[d] > 1 {
			all |= s * size
		}
	}
	return max(all&-all, size)
}

// formula is the generator's in the code, and its numbers.
func formula(g *generator) nvptx.Generator {
	switch {
	case g.kind == arange:
		return nvptx.Arange
	case g.kind == linspace && g.step == 0 && g.n > 1:
		return nvptx.Flat
	}
	return nvptx.Linspace
}

// number is a number of the formula.
func (g *generator) number(k nvptx.ParamKind) ir.Bits {
	last := g.n - 1
	if g.kind == linspace && g.n < 2 {
		last = -1
	}
	switch k {
	case nvptx.GenStart:
		return ir.FromF64(g.start)
	case nvptx.GenStep:
		if formula(g) == nvptx.Flat {
			return ir.FromF64(g.span)
		}
		return ir.FromF64(g.step)
	case nvptx.GenStop:
		if g.kind == constant {
			return ir.FromF64(g.start)
		}
		return ir.FromF64(g.stop)
	}
	if g.kind == constant {
		last = 0 // every element is the last one: the number itself, -0 included
	}
	return ir.Bits(int64(last))
}

// parameters are what the kernel is passed.
func (l *gpuLaunch) parameters(g *gpu, e *nvptx.Entry) []uint64 {
	params := make([]uint64, len(e.Params))
	base := func(o *gpuOperand) uint64 {
		return l.address(o.array) + uint64(o.offset*o.array.array.DType().Size())
	}
	for i, q := range e.Params {
		var x uint64
		switch q.Kind {
		case nvptx.Workers:
			x = uint64(l.workers)
		case nvptx.LoopShape:
			x = uint64(l.shape[q.Dim])
		case nvptx.MemBase:
			x = l.address(l.mems[q.Index])
		case nvptx.ArgValue:
			x = l.in[q.Index].value
		case nvptx.ArgBase:
			x = base(&l.in[q.Index])
		case nvptx.ArgStride:
			x = uint64(l.in[q.Index].strides[q.Dim])
		case nvptx.OutBase:
			x = base(&l.out[q.Index])
		case nvptx.OutStride:
			x = uint64(l.out[q.Index].strides[q.Dim])
		case nvptx.Record:
			x = uint64(g.failure)
		case nvptx.Cancel:
			x = uint64(g.cancel)
		case nvptx.Printed:
			x = uint64(l.printed.ptr)
		default:
			if q.Mem {
				x = l.mems[q.Index].array.store.(*generator).number(q.Kind)
			} else {
				x = l.in[q.Index].gen.number(q.Kind)
			}
		}
		params[i] = x
	}
	return params
}

// describe says how a call would run.
func (p *gpuCode) describe(d *Device, c *call, plan *Plan) error {
	l := p.launch(d, c)
	v, err := p.variant(l)
	if err != nil {
		return p.gpu.fault(c.op, err)
	}
	plan.Goroutines = 0
	plan.Engine = fmt.Sprintf("PTX for sm_%d, executed by %s", v.sm, p.gpu.source)
	plan.Code = v.text
	plan.Registers = v.needs.Registers
	grid, block := l.geometry(d, c, v)
	plan.Grid, plan.Block = Grid(grid), Block(block)
	plan.HtoD, plan.DtoH = l.traffic(c)
	plan.onGPU = true
	switch o := d.options; {
	case c.block.X > 0:
	case o.threadsPerBlock > 0:
		plan.geometry = ", as ThreadsPerBlock says"
	case o.numbaRegisters > 0:
		plan.geometry = fmt.Sprintf(", numba's rule for %d registers, a count from elsewhere", o.numbaRegisters)
	case o.numbaGeometry:
		plan.geometry = ", numba's rule"
	default:
		plan.geometry = ", the smallest with the most threads under way"
	}
	return nil
}
