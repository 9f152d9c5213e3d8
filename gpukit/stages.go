package gpukit

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"gpunotes/gpukit/internal/cpu"
	"gpunotes/gpukit/internal/ir"
	"gpunotes/gpukit/internal/shape"
)

// A call is carried out in stages, each a kernel over an index space: mostly one,
// the function itself over the loop dimensions. Where loops of the function became
// workers there may be several, and the iterations are further dimensions.

// kernel is a function that an engine has compiled.
type kernel struct {
	f *ir.Func
	// What its parameters, results and memories are; nil if they are those of the
	// call's function.
	lifted *ir.Accesses
	given  *ir.Func // that lifted is about
	// fails and prints say that a worker may fail, or print: then workers keep
	// their order.
	fails, prints bool

	once sync.Once
	code executable
	err  error
	// inParts are the loops whose sums the code computes in parts.
	inParts []ir.Pos

	hoistings hoistings
}

func newKernel(f *ir.Func) *kernel {
	k := &kernel{f: f, given: f}
	ir.Walk(f.Body, func(in *ir.Instr) {
		k.fails = k.fails || in.MayFault(f) && !safe(f, in)
		k.prints = k.prints || in.Op == ir.OpPrint
	})
	return k
}

// safe reports whether a division or a shift cannot fail as its second operand is
// a constant.
func safe(f *ir.Func, in *ir.Instr) (yes bool) {
	switch in.Op {
	case ir.OpDiv, ir.OpRem, ir.OpShl, ir.OpShr:
	default:
		return false
	}
	ir.Walk(f.Body, func(x *ir.Instr) {
		if x.Op == ir.OpConst && x.Results[0] == in.Args[1] {
			yes = int64(x.Imm) > 0 || x.Imm == 0 && (in.Op == ir.OpShl || in.Op == ir.OpShr)
		}
	})
	return yes
}

// compiled returns k, whose code is made when it is first asked for.
func (k *kernel) compiled(d *Device) (*kernel, error) {
	k.once.Do(func() { k.err = internal(k.compile(d)) })
	return k, k.err
}

func (k *kernel) compile(d *Device) (err error) {
	f := k.f
	if d.options.fastMath {
		defer recovered(&err)
		f, k.inParts = ir.Reassociate(ir.Relax(f))
	}
	if err = ir.Verify(f); err == nil {
		k.code, err = d.engine.compile(f, d.options)
	}
	return err
}

// internal marks an error of compiling that the user's function did not cause.
func internal(err error) error {
	if err == nil || errors.As(err, new(*CompileError)) {
		return err
	}
	return fmt.Errorf("gpukit: internal error: %w", err)
}

// form is a program for calls of which some facts are known.
type form struct {
	once    sync.Once
	err     error
	uniform []bool // by parameter: every worker has the same
	// proven is the function without the checks that cannot fail where the
	// conditions hold; nil if there are none. Both are made by prove.
	proving    sync.Once
	proven     *kernel
	conditions []ir.Condition
	// stages are the function with loops as workers; none if no loop is.
	stages []formStage
	loops  []ir.SpreadLoop
}

// formStage is a stage for all calls of a form.
type formStage struct {
	kernel     *kernel
	checked    func() (*kernel, error) // where a condition does not hold
	conditions []ir.Condition
	counts     []*ir.Func // of the iterations of each loop
	loops      []ir.Pos   // where these are
	steps      [][]ir.Step
}

// observed reports whether some worker may fail or print.
func (k *kernel) observed() bool { return k.fails || k.prints }

// form finds the form of a program for the facts of a call.
func (p *program) form(c *call, l *launch) (*form, error) {
	p.mu.Lock()
	f := p.forms[l.known]
	if f == nil {
		if p.forms == nil || len(p.forms) >= maxPrograms {
			p.forms = map[shape.Facts]*form{}
		}
		// All that matters up to now is which parameters are the same for every worker.
		uniform := c.uniform(l)
		for _, g := range p.forms {
			if slices.Equal(g.uniform, uniform) {
				f = g
			}
		}
		if f == nil {
			f = &form{uniform: uniform}
		}
		p.forms[l.known] = f
	}
	p.mu.Unlock()
	f.once.Do(func() { f.err = internal(f.make(p.ir, c)) })
	return f, f.err
}

// recovered makes an error of a panic: a fault of ours must not end a notebook.
func recovered(err *error) {
	if r := recover(); r != nil {
		*err = fmt.Errorf("%v", r)
	}
}

// prove finds the checks that sizes decide. Without it the function is as good.
func (f *form) prove(fn *ir.Func) (*kernel, []ir.Condition) {
	f.proving.Do(func() {
		var err error
		defer recovered(&err)
		if g, conditions := ir.AssumeBounds(fn); len(conditions) > 0 {
			f.proven, f.conditions = newKernel(ir.Optimize(g)), conditions
		}
	})
	return f.proven, f.conditions
}

// make finds the loops that become workers.
func (f *form) make(fn *ir.Func, c *call) (err error) {
	defer recovered(&err)
	uniform := f.uniform
	if c.block.X > 0 || c.fn.source.Meets || !slices.ContainsFunc(fn.Mems, func(m ir.Memory) bool { return m.Space == ir.Global }) {
		return nil
	}
	// Results are apart from arguments and from each other (separate and Out see to
	// it), and no result has two places for one element.
	a := ir.Aliasing{Uniform: uniform, Class: make([]int, len(fn.Mems)), Distinct: make([]bool, len(fn.Mems))}
	for i := range c.outs {
		if o := &c.outs[i]; o.indexed {
			a.Class[o.mem], a.Distinct[o.mem] = i+1, true
		}
	}
	s := ir.SpreadLoops(fn, a)
	f.loops = s.Loops
	for i := range s.Stages {
		st := &s.Stages[i]
		fs := formStage{kernel: liftedKernel(st.Func, uniform), conditions: st.Conditions, counts: st.Counts, loops: st.Pos, steps: st.Steps}
		if len(st.Conditions) > 0 {
			fs.checked = sync.OnceValues(func() (k *kernel, err error) {
				defer recovered(&err)
				return liftedKernel(st.Checked(), uniform), nil
			})
		}
		f.stages = append(f.stages, fs)
	}
	return nil
}

// liftedKernel makes a kernel of a stage in which launches know where elements are.
func liftedKernel(given *ir.Func, uniform []bool) *kernel {
	a := ir.LiftAccesses(given, uniform)
	k := newKernel(a.Func)
	k.lifted, k.given = a, given
	return k
}

// stage is a kernel and what it runs on.
type stage struct {
	*kernel
	*launch
	name string
	// per is how many workers a worker of the call became, if those are numbered
	// in order; 0 if the stage is the call itself.
	per   int
	of    *formStage // if it is one of a form
	space []int      // its index space: the loop dimensions of the call and then the iterations of each loop

	made     []*bound  // results that last for the call
	hoisting *hoisting // what was taken out of it into stages before it
}

// stages are the stages in which the call runs.
func (c *call) stages(d *Device) ([]stage, error) {
	if c.staged != nil {
		return c.staged, nil
	}
	stages, err := c.loopStages(d)
	if err != nil {
		return nil, err
	}
	if stages, err = c.withTables(d, stages); err != nil {
		return nil, err
	}
	for i := range stages {
		if s := &stages[i]; s.launch != c.plain {
			s.known = c.facts(d, s.launch, s.kernel)
		}
	}
	c.staged = stages
	return stages, nil
}

// loopStages are the stages before parts of them become tables.
func (c *call) loopStages(d *Device) ([]stage, error) {
	l, err := c.bind(d)
	if err != nil {
		return nil, err
	}
	whole := func(k *kernel) ([]stage, error) {
		if why := caught(func() { c.solidify(d, nil) }); why != "" {
			return nil, &ShapeError{Op: c.op, Detail: why}
		}
		if k, err = k.compiled(d); err != nil {
			return nil, err
		}
		return []stage{{kernel: k, launch: l, name: c.fn.name}}, nil
	}
	if d.options.oneWorkerPerSlice || !c.prog.worthForms || slices.Contains(l.Shape, 0) {
		return whole(&c.prog.kernel)
	}
	if c.form, err = c.prog.form(c, l); err != nil {
		return nil, err
	}
	values := &parameterValues{l: l}
	c.values = values
	stages, why, err := c.spreadStages(d, c.form, values)
	if stages != nil || err != nil {
		return stages, err
	}
	c.serial = why
	if k, conditions := c.form.prove(c.prog.ir); k != nil && values.allHold(conditions) {
		return whole(k)
	}
	return whole(&c.prog.kernel)
}

// uniform says which parameters of the function are the same for every worker.
func (c *call) uniform(l *launch) []bool {
	out := make([]bool, len(l.In))
	for i := range l.In {
		out[i] = uniformOperand(&l.In[i], l.Shape)
	}
	return out
}

// uniformOperand reports whether an operand is the same for every worker of a shape.
func uniformOperand(o *cpu.Operand, dims []int) bool {
	if o.Data == nil && o.Gen == nil && !o.Index {
		return true
	}
	for d, s := range o.Strides {
		if s != 0 && dims[d] > 1 {
			return false
		}
	}
	return true
}

// parameterValues are the values of parameters that are the same for every worker,
// read when they are asked for: they may be on a device.
type parameterValues struct {
	l    *launch
	args []ir.Bits
	have []bool
}

func (v *parameterValues) get(i int) ir.Bits {
	if v.args == nil {
		v.args, v.have = make([]ir.Bits, len(v.l.In)), make([]bool, len(v.l.In))
	}
	if !v.have[i] {
		v.args[i], v.have[i] = argument(&v.l.In[i], make([]int, len(v.l.Shape))), true
	}
	return v.args[i]
}

// still reports whether all that was read is what it was.
func (v *parameterValues) still() bool {
	for i, have := range v.have {
		if have && argument(&v.l.In[i], make([]int, len(v.l.Shape))) != v.args[i] {
			return false
		}
	}
	return true
}

// allHold tests conditions, which do not hold of what differs between workers.
func (v *parameterValues) allHold(cs []ir.Condition) bool {
	for _, c := range cs {
		for _, i := range []int{c.A, c.B} {
			if i == ir.None {
				continue
			}
			if !uniformOperand(&v.l.In[i], v.l.Shape) {
				return false
			}
			v.get(i)
		}
		if !c.Holds(v.args) {
			return false
		}
	}
	return true
}

// eval computes a number from parameters that are the same for every worker.
func (v *parameterValues) eval(f *ir.Func) (int64, error) {
	for i := range v.l.In {
		if uses(f, f.Params[i].Value) {
			v.get(i)
		}
	}
	e := ir.Evaluator{Steps: 1 << 16}
	out, err := e.Run(f, v.args...)
	if err != nil {
		return 0, err
	}
	return int64(out[0]), nil
}

// uses reports whether f looks at v.
func uses(f *ir.Func, v ir.Value) (yes bool) {
	ir.Walk(f.Body, func(in *ir.Instr) { yes = yes || slices.Contains(in.Args, v) })
	return yes
}

// spreadStages are the stages of a call whose loops are workers, or none if this
// cannot be; why says then what is against it.
func (c *call) spreadStages(d *Device, f *form, values *parameterValues) (stages []stage, why string, err error) {
	workers, _ := shape.Size(c.loop)
	observed := 0
	type choice struct {
		*formStage
		kernel *kernel
		counts []int
	}
	var chosen []choice
	for i := range f.stages {
		fs := &f.stages[i]
		counts := make([]int, len(fs.counts))
		total := workers
		for j, g := range fs.counts {
			n, err := values.eval(g)
			switch {
			case err != nil || n < 0 || n == math.MaxInt64 || total > 0 && n > int64(math.MaxInt/total):
				return nil, "it has too many iterations", nil
			case total > 0:
				total *= int(n)
			}
			counts[j] = int(n)
		}
		if total == 0 {
			continue
		}
		k := fs.kernel
		if !values.allHold(fs.conditions) {
			if k, err = fs.checked(); err != nil {
				return nil, "", internal(err)
			}
		}
		if k.observed() {
			// The lowest worker that fails might fail in a later stage than another.
			if observed++; observed > 1 {
				return nil, "its workers could fail in several stages, and which failed first would not be known", nil
			}
		}
		chosen = append(chosen, choice{fs, k, counts})
	}
	for _, x := range chosen {
		if why := caught(func() { c.solidify(d, x.kernel.lifted) }); why != "" {
			return nil, "", &ShapeError{Op: c.op, Detail: why}
		}
	}
	for _, x := range chosen {
		k, err := x.kernel.compiled(d)
		if err != nil {
			return nil, "", err
		}
		s := c.stage(k, x.counts, values)
		s.of = x.formStage
		if s.name = c.fn.name; len(stages) > 0 {
			s.name = fmt.Sprintf("%s (stage %d)", c.fn.name, len(stages)+1)
		}
		stages = append(stages, s)
	}
	if len(f.stages) > 0 && stages == nil {
		why = "it has no iterations"
	}
	return stages, why, nil
}

// stage binds the parameters of a kernel in which loops of so many iterations are
// workers.
func (c *call) stage(k *kernel, counts []int, values *parameterValues) stage {
	base := values.l
	loop := len(c.loop)
	dims := append(slices.Clone(c.loop), counts...)
	rank := len(dims)
	l := &launch{Launch: base.Launch, mems: make([]*bound, len(k.f.Mems)), nums: make([]*bound, len(k.lifted.Params))}
	l.In, l.Out, l.Mems = nil, nil, nil
	over := func(strides []int) []int {
		return append(append(make([]int, 0, rank), strides...), make([]int, rank-len(strides))...)
	}
	lifted := func(x *ir.Lifted, t ir.Type) (cpu.Operand, *bound) {
		b := base.mems[x.Mem]
		o := cpu.Operand{Type: t, Index: true}
		if x.Element {
			o = b.elements()
		} else {
			b = nil
		}
		o.Offset, o.Strides = c.at(k.given, x.At, values, rank)
		return o, b
	}
	for i, x := range k.lifted.Params {
		var o cpu.Operand
		var b *bound
		t := k.f.Types[k.f.Params[i].Value]
		switch {
		case x.Param == ir.None:
			o, b = lifted(&x, t)
		case k.given.Params[x.Param].Kind == ir.Iteration:
			o = cpu.Operand{Type: t, Index: true, Strides: make([]int, rank)}
			o.Strides[loop+k.given.Params[x.Param].Dim] = 1
		default:
			o, b, l.nums[i] = base.In[x.Param], base.in[x.Param], base.nums[x.Param]
			if o.Data != nil || o.Gen != nil || o.Index {
				o.Strides = over(o.Strides)
			}
		}
		l.In, l.in = append(l.In, o), append(l.in, b)
	}
	for i := range k.lifted.Results {
		o, b := lifted(&k.lifted.Results[i], k.f.Results[i])
		l.Out, l.out = append(l.Out, o), append(l.out, b)
	}
	global := 0
	for m, mem := range k.given.Mems {
		if mem.Space != ir.Global {
			continue
		}
		if i := slices.Index(k.lifted.Mems, ir.Mem(m)); i >= 0 {
			l.mems[i] = base.mems[m]
			l.Mems = append(l.Mems, base.Mems[global])
		}
		global++
	}
	s := stage{kernel: k, launch: l, space: dims, per: 1}
	for _, n := range counts {
		s.per *= n
	}
	order := make([]int, rank)
	for i := range order {
		order[i] = i
	}
	if !k.observed() {
		order = l.order(dims)
	}
	l.Shape = pick(dims, order)
	for _, list := range [][]cpu.Operand{l.In, l.Out} {
		for i := range list {
			if o := &list[i]; o.Strides != nil {
				o.Strides = pick(o.Strides, order)
			}
		}
	}
	return s
}

// at is an index in the words of f, over the loop dimensions of the call and then
// the iterations, rank dimensions in all.
func (c *call) at(f *ir.Func, sum []ir.Product, values *parameterValues, rank int) (offset int, strides []int) {
	strides = make([]int, rank)
	for _, p := range sum {
		times, dim, moving := int(p.Times), -1, (*cpu.Operand)(nil)
		for _, i := range p.Params {
			switch q := &f.Params[i]; q.Kind {
			case ir.Iteration:
				dim = len(c.loop) + q.Dim
			case ir.Offset:
				moving = &values.l.In[i]
			default:
				times *= int(values.get(i))
			}
		}
		switch {
		case dim >= 0:
			strides[dim] += times
		case moving != nil:
			offset += times * moving.Offset
			for d, s := range moving.Strides {
				strides[d] += times * s
			}
		default:
			offset += times
		}
	}
	return offset, strides
}

// order arranges dimensions so that the steps through memory become smaller from
// one to the next: the last one is that along which most operands have unit stride.
func (l *launch) order(dims []int) []int {
	var walks [][]int
	for _, list := range [][]cpu.Operand{l.In, l.Out} {
		for i := range list {
			if o := &list[i]; o.Strides != nil {
				walks = append(walks, o.Strides)
			}
		}
	}
	units := func(d int) (n int) {
		for _, w := range walks {
			if w[d] == 1 || w[d] == -1 {
				n++
			}
		}
		return n
	}
	// inside reports whether dimension a should vary faster than b.
	inside := func(a, b int) bool {
		if x, y := units(a), units(b); x != y {
			return x > y
		}
		votes := 0
		for _, w := range walks {
			x, y := max(w[a], -w[a]), max(w[b], -w[b])
			switch {
			case x == 0 || y == 0 || x == y:
			case x < y:
				votes++
			default:
				votes--
			}
		}
		return votes > 0
	}
	var order []int
	for d := range dims {
		i := len(order)
		for i > 0 && inside(order[i-1], d) {
			i--
		}
		order = slices.Insert(order, i, d)
	}
	return order
}

// rerunTime bounds how long the reference evaluator may look for what a worker
// failed at.
const rerunTime = 2 * time.Second

// failed explains the failure of a worker of the call, of which why is known: the
// evaluator runs it again, on what is still there, and knows the values. Where
// threads depend on each other, or the arguments were overwritten, the place is
// all there is.
func (c *call) failed(d *Device, worker int, why error) error {
	l, err := c.bind(d)
	if err != nil {
		return err
	}
	e := &cpu.WorkerError{Worker: worker, Index: unravel(worker, l.Shape), Args: workerArgs(&l.Launch, worker), Err: why}
	if c.fn.source.Meets || c.fn.source.Atomics {
		return e
	}
	if slices.ContainsFunc(c.args, func(b bound) bool { return b.copied }) { // what the worker read may be overwritten
		e.Args = nil
		return e
	}
	s := &sample{call: c, launch: l.Launch}
	x, _ := s.evaluate(worker, time.Now().Add(rerunTime))
	var found, known *ir.FaultError
	if errors.As(x.err, &found) && errors.As(why, &known) && found.Fault == known.Fault {
		e.Err, e.Args = found, x.args
	}
	return e
}
