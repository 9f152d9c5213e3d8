package shape

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Operand is an array as Plan sees it: one stride per dimension.
type Operand struct{ Shape, Strides []int }

// PlannedOperand says how the workers of a plan walk an operand: worker w sees
// an array of shape CoreShape and strides CoreStrides that begins
// sum(w[i]*LoopStrides[i]) elements after the operand's first.
type PlannedOperand struct {
	LoopStrides []int // one per dimension of the plan's Loop; 0 where the operand is stretched
	CoreShape   []int // one per core dimension in the layout; 1 for an optional one that is missing
	CoreStrides []int // likewise; 0 for one that is missing
}

// Plan is the walk of a function with a layout over its operands: one worker
// per index of Loop.
type Plan struct {
	Loop      []int            // the loop shape
	Sizes     []int            // per entry of the layout's Dims its size, 1 if missing
	Missing   []bool           // per entry of Dims: optional, and absent in this call
	In, Out   []PlannedOperand // in the layout's order
	OutShapes [][]int          // per output Loop and the core dimensions that are not missing, or the shape supplied
}

// Plan fits operands to the layout by numpy's rules for generalised ufuncs;
// name is the function's, for messages. out is empty or has one entry per
// output, nil where the caller allocates the output: its strides in the plan
// are then those of a new array in C order.
//
// The last dimensions of an operand are its core dimensions. They never
// broadcast: each size is the fixed one of the layout or that of the first
// operand, inputs before supplied outputs. An operand of too small a rank
// loses its optional dimensions, first come first, until the rank fits; every
// other operand loses them too. The dimensions before the core ones broadcast
// over all operands, supplied outputs included: 1 stretches to any size, also
// to 0. A supplied output may so enlarge the loop, but is never itself
// stretched; as in numpy it may lack leading loop dimensions of size 1 unless
// the layout is elementwise. A loop or core dimension of size 0 is no error.
//
// The errors have numpy's texts: operands are counted from 0, inputs and
// outputs apart. A supplied output that is too small has the text that numpy
// uses for ufuncs, also where numpy speaks of a reduction or prints an
// internal axis order. A missing dimension of fixed size other than 1 is a
// mismatch, as in numpy.
//
// A nil layout is elementwise for any number of operands.
func (l *Layout) Plan(name string, in []Operand, out []*Operand) (*Plan, error) {
	if l == nil {
		l = Elementwise(len(in), max(len(out), 1))
	}
	if len(in) != len(l.In) {
		return nil, fmt.Errorf("%s: %d inputs given, layout %s has %d", name, len(in), l.signature(), len(l.In))
	}
	if len(out) == 0 {
		out = make([]*Operand, len(l.Out))
	}
	if len(out) != len(l.Out) {
		return nil, fmt.Errorf("%s: %d outputs given, layout %s has %d", name, len(out), l.signature(), len(l.Out))
	}
	f := &fit{l: l, name: name}
	for i := range in {
		f.ops = append(f.ops, fitted{Operand: &in[i], core: l.In[i], kind: "Input", at: i})
	}
	for i, o := range out {
		f.ops = append(f.ops, fitted{Operand: o, core: l.Out[i], kind: "Output", at: i})
	}
	if err := f.check(); err != nil {
		return nil, err
	}
	if err := f.dropOptional(); err != nil {
		return nil, err
	}
	if err := f.sizeCores(); err != nil {
		return nil, err
	}
	if err := f.broadcast(); err != nil {
		return nil, err
	}
	return f.plan()
}

func (l *Layout) signature() string {
	if l.text == "" {
		return l.String()
	}
	return l.text
}

// fit is a plan in the making.
type fit struct {
	l       *Layout
	name    string
	ops     []fitted // inputs, then outputs
	missing []bool
	sizes   []int // -1 while unknown
	loop    []int
}

type fitted struct {
	*Operand        // nil: an output to be allocated
	core     []int  // its core dimensions, positions in Dims
	kind     string // "Input" or "Output"
	at       int    // position among its kind
}

// OperandError says which operand does not fit, in numpy's words.
type OperandError struct {
	Output bool
	At     int // among the inputs, or among the outputs
	text   string
}

// Error is numpy's message.
func (e *OperandError) Error() string { return e.text }

func (f *fit) errorf(o *fitted, format string, args ...any) error {
	return &OperandError{o.kind == "Output", o.at, fmt.Sprintf("%s: %s operand %d %s", f.name, o.kind, o.at, fmt.Sprintf(format, args...))}
}

// check refuses operands that are no arrays; that is the caller's fault, not
// the user's.
func (f *fit) check() error {
	for i := range f.ops {
		o := &f.ops[i]
		if o.Operand == nil {
			continue
		}
		if len(o.Strides) != len(o.Shape) {
			return f.errorf(o, "has %d strides for %d dimensions", len(o.Strides), len(o.Shape))
		}
		if _, ok := Size(o.Shape); !ok {
			return f.errorf(o, "has the impossible shape %s", Format(o.Shape))
		}
	}
	return nil
}

// rank is the number of core dimensions that o has in this call.
func (f *fit) rank(o *fitted) int {
	n := 0
	for _, k := range o.core {
		if !f.missing[k] {
			n++
		}
	}
	return n
}

func (f *fit) dropOptional() error {
	f.missing = make([]bool, len(f.l.Dims))
	for i := range f.ops {
		o := &f.ops[i]
		if o.Operand == nil || len(o.Shape) >= f.rank(o) {
			continue
		}
		for _, k := range o.core {
			if f.l.Dims[k].Optional {
				f.missing[k] = true
			}
			if len(o.Shape) == f.rank(o) {
				break
			}
		}
		if need := f.rank(o); len(o.Shape) < need {
			return f.errorf(o, "does not have enough dimensions (has %d, gufunc core with signature %s requires %d)",
				len(o.Shape), f.l.signature(), need)
		}
	}
	return nil
}

func (f *fit) sizeCores() error {
	f.sizes = make([]int, len(f.l.Dims))
	for k, d := range f.l.Dims {
		f.sizes[k] = -1
		if d.Size > 0 {
			f.sizes[k] = d.Size
		}
	}
	for i := range f.ops {
		o := &f.ops[i]
		if o.Operand == nil {
			continue
		}
		core := o.Shape[len(o.Shape)-f.rank(o):]
		j := 0 // dimension of core
		for where, k := range o.core {
			size := 1
			if !f.missing[k] {
				size, where = core[j], j
				j++
			}
			if f.sizes[k] < 0 {
				f.sizes[k] = size
			}
			if f.sizes[k] != size {
				return f.errorf(o, "has a mismatch in its core dimension %d, with gufunc signature %s (size %d is different from %d)",
					where, f.l.signature(), size, f.sizes[k])
			}
		}
	}
	for i := range f.ops {
		o := &f.ops[i]
		for where, k := range o.core {
			if f.sizes[k] < 0 {
				return f.errorf(o, "has core dimension %d unspecified, with gufunc signature %s", where, f.l.signature())
			}
		}
	}
	return nil
}

// loopShape is what is left of o's shape before the core dimensions.
func (f *fit) loopShape(o *fitted) []int { return o.Shape[:len(o.Shape)-f.rank(o)] }

func (f *fit) broadcast() error {
	var shapes [][]int
	for i := range f.ops {
		if o := &f.ops[i]; o.Operand != nil {
			shapes = append(shapes, f.loopShape(o))
		}
	}
	loop, conflict := Broadcast(shapes...)
	if conflict != nil {
		return f.conflict()
	}
	f.loop = loop
	for i := range f.ops {
		o := &f.ops[i]
		if o.kind == "Output" && o.Operand != nil && !f.holds(f.loopShape(o)) {
			return fmt.Errorf("non-broadcastable output operand with shape %s doesn't match the broadcast shape %s",
				tight(o.Shape), tight(f.outShape(o)))
		}
	}
	return nil
}

// holds reports whether a supplied output of loop shape s has a place for every
// worker.
func (f *fit) holds(s []int) bool {
	lead := len(f.loop) - len(s)
	for _, d := range f.loop[:lead] {
		if d != 1 || f.l.IsElementwise() {
			return false
		}
	}
	return slices.Equal(s, f.loop[lead:])
}

// conflict is the error of operands that do not broadcast. numpy iterates over
// the loop dimensions followed by the core dimensions of all outputs, and says
// so: a dimension that an operand lacks is newaxis.
func (f *fit) conflict() error {
	var b strings.Builder
	if f.l.IsElementwise() {
		b.WriteString("operands could not be broadcast together with shapes ")
		for _, o := range f.ops {
			if o.Operand != nil {
				b.WriteString(tight(o.Shape) + " ")
			}
		}
		return errors.New(b.String())
	}
	b.WriteString("operands could not be broadcast together with remapped shapes [original->remapped]: ")
	rank := 0 // of the loop
	var cores []int
	for i := range f.ops {
		o := &f.ops[i]
		if o.Operand != nil {
			rank = max(rank, len(f.loopShape(o)))
		}
		if o.kind == "Output" {
			cores = append(cores, f.coreShape(o)...)
		}
	}
	at := rank // where the next output's core dimensions go
	for i := range f.ops {
		o := &f.ops[i]
		size := 0
		if o.kind == "Output" {
			size = f.rank(o)
		}
		if o.Operand != nil {
			remapped := newAxes(rank + len(cores))
			loop := f.loopShape(o)
			copy(remapped[rank-len(loop):], loop)
			if size > 0 {
				copy(remapped[at:], o.Shape[len(loop):])
			}
			b.WriteString(tight(o.Shape) + "->" + tight(remapped) + " ")
		}
		at += size
	}
	b.WriteString(" and requested shape " + tight(append(newAxes(rank), cores...)))
	return errors.New(b.String())
}

func newAxes(n int) []int {
	s := make([]int, n)
	for i := range s {
		s[i] = -1
	}
	return s
}

// tight writes a shape as numpy's messages do: (3,4), (5,), (). A dimension of
// -1 is newaxis; leading ones are left out.
func tight(s []int) string {
	lead := 0
	for lead < len(s) && s[lead] < 0 {
		lead++
	}
	var b strings.Builder
	b.WriteByte('(')
	for i, d := range s[lead:] {
		if i > 0 {
			b.WriteByte(',')
		}
		if d < 0 {
			b.WriteString("newaxis")
		} else {
			fmt.Fprint(&b, d)
		}
	}
	if len(s) == 1 && lead == 0 {
		b.WriteByte(',')
	}
	b.WriteByte(')')
	return b.String()
}

// coreShape lists the core sizes of o without the missing dimensions.
func (f *fit) coreShape(o *fitted) []int {
	var s []int
	for _, k := range o.core {
		if !f.missing[k] {
			s = append(s, f.sizes[k])
		}
	}
	return s
}

func (f *fit) outShape(o *fitted) []int { return append(slices.Clone(f.loop), f.coreShape(o)...) }

func (f *fit) plan() (*Plan, error) {
	if _, ok := Size(f.loop); !ok {
		return nil, fmt.Errorf("%s: the loop %s has more elements than an int can count", f.name, Format(f.loop))
	}
	p := &Plan{Loop: f.loop, Sizes: f.sizes, Missing: f.missing}
	for i := range f.ops {
		o := &f.ops[i]
		at := o.Operand
		if o.kind == "Output" {
			s := f.outShape(o)
			if at != nil {
				s = slices.Clone(at.Shape)
			}
			p.OutShapes = append(p.OutShapes, s)
			if _, ok := Size(s); !ok {
				return nil, f.errorf(o, "of shape %s has more elements than an int can count", Format(s))
			}
			if at == nil {
				at = &Operand{s, Contiguous(s)}
			}
		}
		n := len(at.Shape) - f.rank(o)
		walk, ok := BroadcastStrides(at.Shape[:n], at.Strides[:n], f.loop)
		if !ok {
			panic("shape: a broadcast operand does not fit the loop")
		}
		planned := PlannedOperand{LoopStrides: walk}
		for _, k := range o.core {
			stride := 0
			if !f.missing[k] {
				stride = at.Strides[n]
				n++
			}
			planned.CoreShape = append(planned.CoreShape, f.sizes[k])
			planned.CoreStrides = append(planned.CoreStrides, stride)
		}
		if o.kind == "Output" {
			p.Out = append(p.Out, planned)
		} else {
			p.In = append(p.In, planned)
		}
	}
	return p, nil
}
