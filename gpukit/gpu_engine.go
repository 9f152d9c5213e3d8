package gpukit

import (
	"cmp"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"

	"gpunotes/gpukit/internal/codegen/nvptx"
	"gpunotes/gpukit/internal/cpu"
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
	variants map[shape.Facts]*variant
	freeze   []uint64 // by memory: the dimensions whose small sizes are worth code of their own
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

func (e gpuEngine) compile(optimised *ir.Func, o options) (executable, error) {
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
	if len(f.Params) != len(optimised.Params) {
		return nil, fmt.Errorf("%s has %d parameters, and %d when optimised", f.Name, len(optimised.Params), len(f.Params))
	}
	return &gpuCode{gpu: e.gpu, f: f, variants: map[shape.Facts]*variant{}, freeze: freezable(f)}, nil
}

// maxVariants bounds the code of one function; facts of unusual calls would else
// add up.
const maxVariants = 256

// variant returns the code for the facts of a launch.
func (p *gpuCode) variant(l *gpuLaunch) (*variant, error) {
	p.mu.Lock()
	v := p.variants[l.stage.known]
	if v == nil {
		if len(p.variants) >= maxVariants {
			p.variants = map[shape.Facts]*variant{}
		}
		v = &variant{}
		p.variants[l.stage.known] = v
	}
	p.mu.Unlock()
	v.once.Do(func() { v.err = v.build(p, kernelOf(p.f, l.stage.known)) })
	if v.err != nil { // the device may have had a bad moment
		p.mu.Lock()
		if p.variants[l.stage.known] == v {
			delete(p.variants, l.stage.known)
		}
		p.mu.Unlock()
	}
	return v, v.err
}

func (v *variant) build(p *gpuCode, k nvptx.Kernel) (err error) {
	defer func() { // a fault of ours must not end a notebook
		if r := recover(); r != nil {
			err = fmt.Errorf("internal error: %v", r)
		}
	}()
	k.Func, k.Name = p.f, identifier(p.f.Name)
	k.Poll = p.gpu.cancel != 0
	info := &p.gpu.info
	m, entries, err := nvptx.Emit(nvptx.Target{SM: info.SM(), PTX: ptx.Version(info.PTX)}, &k)
	if err != nil {
		return err
	}
	v.entry, v.text, v.sm = entries[0], m.String(), m.Target
	module, err := p.gpu.load([]byte(v.text))
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

// places are where the arrays of a call are on the device, for all its stages.
type places struct {
	groups []*group        // host memory that the call works on
	homes  map[*bound]home // where arrays are on the device
	made   []*bound        // what one stage leaves for another
}

// gpuLaunch is a stage of a call in the terms of a kernel.
type gpuLaunch struct {
	*places
	stage   *stage
	workers int
	shape   []int // loop dimensions, those together that every operand walks as one

	in, out []gpuOperand   // by parameter and result of the function
	mems    map[int]*bound // by memory
	variant *variant       // its code
	word    int            // that a failing worker writes to, of those of the device
	printed *block         // where threads print to, if they do
	lines   []nvptx.Line   // what they printed
	lost    int            // lines that there was no room for
}

// gpuOperand is a parameter or a result of the function.
type gpuOperand struct {
	value   ir.Bits    // without array: what the first worker gets
	array   *bound     // of which each worker has an element
	gen     *generator // that computes the worker's element
	offset  int
	strides []int // over the shape of the launch
}

// launches puts the stages of a call into the terms of kernels and finds the facts
// that their code may use. It neither copies nor allocates.
func (e gpuEngine) launches(d *Device, c *call) ([]*gpuLaunch, error) {
	stages, err := c.stages(d)
	if err != nil {
		return nil, err
	}
	at := c.places
	var ls []*gpuLaunch
	for i := range stages {
		at.made = append(at.made, stages[i].made...)
		ls = append(ls, at.launch(c, &stages[i]))
	}
	return ls, nil
}

// code is what executes the stage.
func (l *gpuLaunch) code() *gpuCode { return l.stage.code.(*gpuCode) }

// launch puts a stage into the terms of a kernel.
func (at *places) launch(c *call, s *stage) *gpuLaunch {
	l := &gpuLaunch{places: at, stage: s, mems: map[int]*bound{}}
	l.workers, _ = shape.Size(s.Shape)
	for m, b := range s.mems {
		if b != nil {
			l.mems[m] = b
		}
	}
	threads := c.block.X > 0
	keep := []int{0}
	if threads {
		l.shape = []int{l.workers}
	} else {
		l.shape, keep = s.joined()
	}
	operand := func(o *cpu.Operand, b *bound) gpuOperand {
		x := gpuOperand{value: o.Scalar, array: b}
		if g, ok := o.Gen.(*generator); ok {
			x.array, x.gen = nil, g
		}
		if x.array == nil && x.gen == nil && !o.Index {
			return x
		}
		if x.offset = o.Offset; !threads {
			x.strides = pick(o.Strides, keep)
		}
		switch {
		case x.gen != nil && uniformOperand(o, s.Shape):
			x.value = x.gen.bits(o.Offset)
		case x.array == nil:
			x.value = ir.Bits(o.Offset)
		}
		return x
	}
	for i := range s.In {
		l.in = append(l.in, operand(&s.In[i], s.in[i]))
	}
	for i := range s.Out {
		l.out = append(l.out, operand(&s.Out[i], s.out[i]))
	}
	return l
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
			x = uint64(g.failure) + 8*uint64(l.word)
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

// refusal says why the card would not take the launch; "" if it would.
func (l *gpuLaunch) refusal(d *Device, c *call) string {
	launch := l.start(d, c)
	launch.Params = make([]uint64, len(l.variant.entry.Params))
	var de *driver.Error
	if err := l.variant.fn.Check(launch); errors.As(err, &de) {
		return "the card refuses this launch: " + de.Detail
	}
	return ""
}

// describe says how a call would run.
func (e gpuEngine) describe(d *Device, c *call, plan *Plan) error {
	ls, err := e.launches(d, c)
	if err != nil {
		return err
	}
	for _, l := range ls {
		if l.variant, err = l.code().variant(l); err != nil {
			return e.gpu.fault(c.op, err)
		}
	}
	plan.Goroutines = 0
	plan.Engine = fmt.Sprintf("PTX for sm_%d, executed by %s", ls[0].variant.sm, e.gpu.source)
	stages := make([]stage, len(ls))
	for i, l := range ls {
		stages[i] = *l.stage
	}
	plan.stages(stages, func(s *stage) string {
		return ls[slices.IndexFunc(ls, func(l *gpuLaunch) bool { return l.stage.kernel == s.kernel })].variant.text
	})
	most := slices.MaxFunc(ls, func(x, y *gpuLaunch) int { return cmp.Compare(x.workers, y.workers) })
	grid, block := most.geometry(d, c, most.variant)
	plan.Grid, plan.Block = Grid(grid), Block(block)
	plan.Registers = most.variant.needs.Registers
	shared := most.variant.needs.Shared + most.code().dynamicShared(d)
	plan.held = occupancyOf(&e.gpu.info, block.Count(), most.variant.needs.Registers, shared)
	for _, l := range ls {
		if no := l.refusal(d, c); no != "" {
			plan.Note = no
			plan.held.blocks, plan.held.warps = 0, 0
			break
		}
	}
	plan.Shared, plan.BlocksHeld, plan.Occupancy = shared, plan.held.blocks, plan.held.share()
	plan.HtoD, plan.DtoH = ls[0].traffic(c)
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
