package gpukit

import (
	"slices"

	"gpunotes/gpukit/internal/cpu"
	"gpunotes/gpukit/internal/frontend"
	"gpunotes/gpukit/internal/shape"
)

// Most calls are like one before: the same function, arguments of the same shapes.
// Then what was found out for that one holds again, and the call that is over is
// given the new arguments: repeat takes it, rebind puts them into its launches,
// retain keeps it for the next one. On a device with memory of its own the call
// depends on more, and is made anew.

// maxRetained is how many calls a function keeps.
const maxRetained = 8

// repeating, if not nil, is told of each call that is run again, for tests.
var repeating func()

// repeats is what calls have in common that can do with one another's plan.
type repeats struct {
	core       *core
	op         string
	layout     string // of GUVectorize
	laid       bool   // there is one
	options    options
	workers    int // goroutines
	grid       Grid
	block      Block
	args, outs []likeness
	given      bool // Out
	solid      bool // elements of a generator were put into memory
}

// likeness is what a call depends on of an argument, but for where its elements
// are, or its value.
type likeness struct {
	dtype          DType // 0 of a number
	formula        int   // of a generator, -1 of memory
	indexed        bool
	offset         int // if workers index it
	shape, strides []int
}

func likenessOf(b *bound) likeness {
	a := b.array
	if a == nil {
		return likeness{}
	}
	l := likeness{dtype: a.DType(), formula: formulaOf(a.store), shape: a.shape, strides: a.strides, indexed: b.indexed}
	if b.indexed {
		l.offset = a.offset
	}
	return l
}

func formulaOf(s storage) int {
	if g, ok := s.(*generator); ok {
		return int(formula(g))
	}
	return -1
}

// fits reports whether an array is as one before.
func (l *likeness) fits(a *Array) bool {
	return a != nil && a.unusable() == "" && a.DType() == l.dtype && (!l.indexed || a.offset == l.offset) &&
		slices.Equal(a.shape, l.shape) && slices.Equal(a.strides, l.strides) && formulaOf(a.store) == l.formula
}

// repeat finds a call that has run and can run again with these arguments, and gives
// it them. nil says that there is none, or that the arguments have to be looked at.
func (d *Device) repeat(op string, fn any, layout *string, grid Grid, block Block, args []any) *call {
	if d.usable(op) != nil || d.gpu != nil || tablePays != nil {
		return nil
	}
	f, _ := d.known(fn)
	if f == nil {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for i := len(f.retained) - 1; i >= 0; i-- {
		c := f.retained[i]
		r := c.repeats
		if r.core != d.core || r.op != op || r.laid != (layout != nil) || r.laid && r.layout != *layout || r.options != d.options ||
			r.workers != d.workers() || r.grid != grid || r.block != block {
			continue
		}
		if c.renew(d, args) {
			f.retained = slices.Delete(f.retained, i, i+1)
			if repeating != nil {
				repeating()
			}
			return c
		}
		c.release()
	}
	return nil
}

// renew gives the call other arguments, if they are like those that it had.
func (c *call) renew(d *Device, args []any) bool {
	r := c.repeats
	in := len(r.args)
	if r.given {
		if len(args) != in+1 {
			return false
		}
		out, ok := args[in].(Arg)
		if !ok || len(out.out) != len(r.outs) {
			return false
		}
		for i, a := range out.out {
			if !r.outs[i].fits(a) {
				return false
			}
			c.outs[i].array = a
		}
	} else if len(args) != in {
		return false
	}
	c.again, c.resident = true, false
	for i, x := range args[:in] {
		switch x.(type) { // others take longer, or are copied
		case *Array, float64, int, []float64, []float32, []bool, []int8, []int16, []int32, []int64, []uint8, []uint16, []uint32, []uint64:
		default:
			return false
		}
		b, l := &c.args[i], &r.args[i]
		a, number, err := toArgument(r.op, i+1, b.name, c.fn.source.Params[i].Type, x)
		switch {
		case err != nil, (a == nil) != (l.dtype == 0):
			return false
		case a == nil:
			b.leaves[0] = number
			continue
		case !l.fits(a) || c.place(d, i+1, b.name, a) != nil:
			return false
		}
		b.array = a
	}
	return c.renewOuts(d) && c.recapture() && c.checkLocal(d) == nil
}

// renewOuts begins the results, or reports that the arrays given for them do not do.
func (c *call) renewOuts(d *Device) bool {
	r := c.repeats
	for i := range c.outs {
		o := &c.outs[i]
		if !r.given {
			o.array = &Array{store: unmade(r.outs[i].dtype), shape: r.outs[i].shape, strides: r.outs[i].strides}
			continue
		}
		if c.place(d, 0, "", o.array) != nil {
			return false
		}
		for j := range c.args {
			if a := &c.args[j]; a.array != nil && inMemory(a.array.store) && c.entangled(a, o, !r.laid) {
				return false
			}
		}
		for j := range i {
			if overlap(o.array, c.outs[j].array) {
				return false
			}
		}
	}
	return true
}

// recapture reads the captured numbers again.
func (c *call) recapture() bool {
	for i, p := range c.fn.source.Captured {
		b := &c.args[len(c.repeats.args)+i]
		v, ok := c.fn.scope.Lookup(p.Name)
		b.leaves, b.types = b.leaves[:0], b.types[:0]
		if !ok || !v.Value.IsValid() || !b.take(p, v.Value) {
			return false
		}
	}
	return true
}

// retain keeps a call that has succeeded for ones like it. It must not be used
// afterwards.
func (c *call) retain(d *Device, layout *string) {
	if c.repeats == nil {
		if !c.repeatable(d) {
			return
		}
		r := &repeats{core: d.core, op: c.op, laid: layout != nil, options: d.options, workers: d.workers(), grid: c.grid, block: c.block, given: c.given}
		if r.laid {
			r.layout = *layout
		}
		for i := range c.args[:len(c.args)-len(c.fn.source.Captured)] {
			r.args = append(r.args, likenessOf(&c.args[i]))
			r.solid = r.solid || c.args[i].solid != nil
		}
		for i := range c.outs {
			r.outs = append(r.outs, likenessOf(&c.outs[i]))
		}
		c.repeats = r
	}
	c.release()
	f := c.fn
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.retained) == maxRetained {
		f.retained = slices.Delete(f.retained, 0, 1)
	}
	f.retained = append(f.retained, c)
}

// repeatable reports whether all that the call depends on can be seen from arguments
// at a glance.
func (c *call) repeatable(d *Device) bool {
	if d.gpu != nil || tablePays != nil || c.plain == nil || c.separated || len(c.after) > 0 {
		return false
	}
	in := len(c.args) - len(c.fn.source.Captured)
	for i := range c.args {
		b := &c.args[i]
		if i >= in && b.array != nil || i < in && c.fn.source.Params[i].Kind == frontend.Parts {
			return false
		}
	}
	return true
}

// release lets go of the arguments and results.
func (c *call) release() {
	for _, list := range [][]bound{c.args, c.outs} {
		for i := range list {
			list[i].array, list[i].solid, list[i].fresh, list[i].dirty = nil, nil, false, false
		}
	}
	c.plain.release()
	for i := range c.staged {
		s := &c.staged[i]
		for _, b := range s.made {
			b.array.store = unmade(b.array.DType())
		}
		s.launch.release()
	}
}

func (l *launch) release() {
	for _, list := range [][]cpu.Operand{l.In, l.Out} {
		for i := range list {
			list[i].Data, list[i].Gen = nil, nil
		}
	}
	clear(l.Mems)
}

// rebind puts the arguments of a call that runs again where those before were.
// It panics with a *ShapeError if something does not fit into memory.
func (c *call) rebind(d *Device) {
	c.plain.fill()
	if c.values != nil && !c.values.still() {
		// Other numbers can mean another index space, or other checks.
		c.staged, c.form, c.values, c.serial, c.facing = nil, nil, nil, "", shape.Facts{}
		return
	}
	if c.repeats.solid {
		c.stillSolid()
		c.plain.fill()
	}
	for i := range c.staged {
		s := &c.staged[i]
		for _, b := range s.made {
			b.array.store, _ = makeDirty(b.array.DType(), b.array.Size())
		}
		if s.launch != c.plain {
			s.launch.fill()
		}
	}
}

// stillSolid puts into memory what was put there for the call before: what its stages
// index.
func (c *call) stillSolid() {
	for i := range c.staged {
		for _, b := range c.staged[i].mems {
			if b == nil || b.solid != nil {
				continue
			}
			if _, ok := b.array.store.(*generator); ok {
				b.solid = b.array.packed()
			}
		}
	}
}

// fill puts numbers and elements into the operands of a launch that has been bound.
func (l *launch) fill() {
	for i := range l.In {
		o := &l.In[i]
		switch b := l.in[i]; {
		case b == nil && l.nums[i] != nil:
			o.Scalar = l.nums[i].leaves[0]
		case b != nil:
			b.refill(o)
		}
	}
	for i, b := range l.out {
		b.refill(&l.Out[i])
	}
	k := 0
	for _, b := range l.mems {
		if b != nil {
			l.Mems[k] = b.memory()
			k++
		}
	}
}

// refill is put; where an operand of what workers index begins, the call knows.
func (b *bound) refill(o *cpu.Operand) {
	b.put(o)
	if !b.indexed {
		o.Offset = b.array.offset
	}
}
