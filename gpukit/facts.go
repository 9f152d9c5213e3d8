package gpukit

import (
	"gpunotes/gpukit/internal/codegen/nvptx"
	"gpunotes/gpukit/internal/ir"
	"gpunotes/gpukit/internal/shape"
)

// What code may rely on are the facts of a launch, shape.Facts: they find the form
// of a program, the variant of a GPU's code, and the self-check that was done.

// smallSize is up to which core sizes become part of a GPU's code (freezable): loops
// that count to them are then written out.
const smallSize = 16

// What the facts of a launch say besides, as bits of shape.Space.More.
const (
	byThreads = 1 << iota // a Launch: a worker is a thread
	mayMeet               // what is read elementwise may be written
)

// facts finds what code for a launch of k can rely on.
func (c *call) facts(d *Device, l *launch, k *kernel) shape.Facts {
	var walks [16]shape.Walk
	var views [8]shape.View
	s := shape.Space{Dims: l.Shape, Walks: walks[:0], Views: views[:0], Small: smallSize}
	threads := c.block.X > 0
	if threads {
		s.More |= byThreads
	}
	onGPU := d.gpu != nil
	for i := range l.In {
		o := &l.In[i]
		w := shape.Walk{Place: l.in[i] == nil}
		if !threads {
			w.Strides = o.Strides
		}
		if g, ok := o.Gen.(*generator); ok {
			w.Kind = uint8(formula(g))
		}
		if onGPU && l.in[i] != nil && c.meets(l.in[i]) {
			s.More |= mayMeet
		}
		s.Walks = append(s.Walks, w)
	}
	for i := range l.Out {
		s.Walks = append(s.Walks, shape.Walk{Strides: l.Out[i].Strides})
	}
	code, _ := k.code.(*gpuCode)
	for m, b := range l.mems {
		if b == nil {
			continue
		}
		v := shape.View{Shape: b.core, Strides: b.strides}
		if onGPU {
			g, generated := b.array.store.(*generator)
			if generated {
				v.Kind = uint8(formula(g))
			} else {
				v.Align = c.alignment(l, k.f, ir.Mem(m), b)
			}
			if v.Alone = !c.meets(b); !v.Alone && (!b.written || b.read) {
				s.More |= mayMeet
			}
			if code != nil && !threads {
				v.Freeze = code.freeze[m]
			}
		}
		s.Views = append(s.Views, v)
	}
	return s.Facts()
}

// meets reports whether the call writes to what an argument or result reads: to
// itself, or to one that it overlaps.
func (c *call) meets(a *bound) bool {
	for _, list := range [][]bound{c.args, c.outs} {
		for i := range list {
			if w := &list[i]; w.array != nil && w.written && (w == a || !a.copied && !w.copied && overlap(a.array, w.array)) {
				return true
			}
		}
	}
	return false
}

// alignment is what the addresses of the arrays that workers see in memory m of f are
// multiples of, up to what a vector load takes.
func (c *call) alignment(l *launch, f *ir.Func, m ir.Mem, b *bound) int {
	size := b.array.DType().Size()
	all := 16 | c.places.homes[b].shift
	for i, q := range f.Params {
		if q.Kind != ir.Offset || q.Mem != m {
			continue
		}
		all |= l.In[i].Offset * size
		for d, s := range l.In[i].Strides {
			if l.Shape[d] > 1 {
				all |= s * size
			}
		}
	}
	return max(all&-all, size)
}

// kernelOf is what the facts say of a kernel of f, but for its function.
func kernelOf(f *ir.Func, facts shape.Facts) nvptx.Kernel {
	known := facts.Known()
	k := nvptx.Kernel{Threads: known.More&byThreads != 0, NoAlias: known.More&mayMeet == 0, Rank: max(known.Rank, 1)}
	if k.Threads {
		k.Rank = 1
	}
	fs := &k.Facts
	fs.Narrow = known.Narrow
	fs.Frozen, fs.Equal, fs.Arrays = map[int]ir.Bits{}, map[int]int{}, map[ir.Mem]nvptx.Array{}
	fs.InStrides, fs.OutStrides = map[nvptx.Place]int64{}, map[nvptx.Place]int64{}
	access := func(w *shape.KnownWalk, steps map[nvptx.Place]int64, i int) nvptx.Access {
		a := nvptx.Strided
		switch {
		case w.Same && (w.Place || w.Kind != 0):
			return nvptx.ByValue
		case w.Kind != 0:
			a = nvptx.Generated(nvptx.Generator(w.Kind))
		case w.Contiguous && !w.Place && !k.Threads:
			return nvptx.Contiguous
		}
		for d := range known.Rank {
			x := 0
			if !w.Same {
				x = w.Steps[d]
			}
			if x != shape.Unknown {
				steps[nvptx.Place{Index: i, Dim: d}] = int64(x)
			}
		}
		return a
	}
	for i := range known.Walks {
		if w := &known.Walks[i]; i < len(f.Params) {
			k.In = append(k.In, access(w, fs.InStrides, i))
		} else {
			k.Out = append(k.Out, access(w, fs.OutStrides, i-len(f.Params)))
		}
	}
	shapes := map[[2]int]int{} // parameters by memory and dimension
	for i, q := range f.Params {
		if q.Kind == ir.Shape {
			shapes[[2]int{int(q.Mem), q.Dim}] = i
		}
	}
	var sizes []int // by size of the facts: the parameter, or -1
	views := known.Views
	for m, mem := range f.Mems {
		if mem.Space != ir.Global {
			continue
		}
		v := views[0]
		views = views[1:]
		fs.Arrays[ir.Mem(m)] = nvptx.Array{Contiguous: v.Contiguous, Unit: v.Unit, Zero: v.Zero, NoAlias: v.Alone,
			Align: v.Align, Generator: nvptx.Generator(v.Kind)}
		for d := range v.Sizes {
			p, ok := shapes[[2]int{m, d}]
			if !ok {
				sizes = append(sizes, -1)
				continue
			}
			sizes = append(sizes, p)
			if x := v.Sizes[d]; x != shape.Unknown {
				fs.Frozen[p] = ir.Bits(x)
			} else if e := v.Equal[d]; e != shape.Unknown && sizes[e] >= 0 {
				fs.Equal[p] = sizes[e]
			}
		}
	}
	return k
}

// freezable are the dimensions, by memory, whose sizes make better code if they are
// known: those to which loops of f count, and all but the first, which strides of
// arrays without gaps are products of.
func freezable(f *ir.Func) []uint64 {
	out := make([]uint64, len(f.Mems))
	for _, q := range f.Params {
		if q.Kind == ir.Shape && q.Dim > 0 && q.Dim < 64 {
			out[q.Mem] |= 1 << q.Dim
		}
	}
	for _, i := range nvptx.Limits(f) {
		if q := f.Params[i]; q.Kind == ir.Shape && q.Dim < 64 {
			out[q.Mem] |= 1 << q.Dim
		}
	}
	return out
}

// formula is the generator's in the code.
func formula(g *generator) nvptx.Generator {
	switch {
	case g.kind == arange:
		return nvptx.Arange
	case g.kind == linspace && g.step == 0 && g.n > 1:
		return nvptx.Flat
	}
	return nvptx.Linspace
}

// pick are the elements of s at these places.
func pick(s, which []int) []int {
	out := make([]int, len(which))
	for i, k := range which {
		out[i] = s[k]
	}
	return out
}

// kind is what the first call is checked for: the facts of the call and of its
// stages.
func (c *call) kind(d *Device) (shape.Facts, error) {
	if c.facing != (shape.Facts{}) {
		return c.facing, nil
	}
	l, err := c.bind(d)
	if err != nil {
		return shape.Facts{}, err
	}
	stages, err := c.stages(d)
	k := l.known
	for i := range stages {
		if s := &stages[i]; s.launch != l {
			k = k.With(s.known)
		}
	}
	if err == nil {
		c.facing = k
	}
	return k, err
}
