package nvptx

import (
	"fmt"
	"slices"

	"gpunotes/gpukit/internal/ir"
)

// Facts are what the caller of Emit knows of every launch of the kernel. The
// zero value claims nothing; what is claimed is not checked on the device.
type Facts struct {
	// Frozen are parameters of the function, by number, of one known value; they
	// are not passed.
	Frozen map[int]ir.Bits
	// Equal are parameters that have the value of an earlier one, as the sizes
	// that a layout gives one name.
	Equal map[int]int
	// Arrays are by memory of the function.
	Arrays map[ir.Mem]Array
	// InStrides and OutStrides are known strides of Strided accesses, in elements.
	InStrides, OutStrides map[Place]int64
	// Narrow says that there are fewer than 2^31 workers.
	Narrow bool
}

// Place is an access by number, of a parameter or a result, and a loop
// dimension.
type Place struct{ Index, Dim int }

// Array is what is known of an array that the function indexes.
type Array struct {
	// Contiguous: row-major without gaps, so that its strides follow from its
	// shape.
	Contiguous bool
	// Unit: the stride of the last dimension is 1.
	Unit bool
	// Zero are the dimensions of stride 0, in which the array was broadcast.
	Zero []int
	// Align is a power of two of which the address of the memory and, in bytes, the
	// offset of every worker in it are multiples; 0 claims nothing.
	Align int
	// NoAlias: nothing that the launch writes overlaps it.
	NoAlias bool
	// Generator computes the elements instead: element k of its memory is formula
	// k. The launch passes its numbers and no memory.
	Generator Generator
}

// Generator is a formula for the elements of a float64 array that has no memory.
type Generator uint8

// The formulas for element k, as numpy has them. The numbers that a launch
// passes are GenStart, GenStep, GenLast and GenStop of the parameter or memory.
const (
	NoGenerator Generator = iota
	// Arange: k.
	Arange
	// Linspace: k*step + start, but stop where k is last.
	Linspace
	// Flat is Linspace whose step underflows to 0: k/last*step + start, but stop
	// where k is last; step is here the whole span, stop - start.
	Flat
)

// origin is what a parameter of the rewritten function is to the launch.
type origin struct {
	kind  ParamKind
	index int
	steps bool // Strided: the worker's place times strides is added
}

// generator writes the formula for element k. new declares a parameter.
func generator(b *ir.Builder, g Generator, k ir.Value, param func(ParamKind, ir.Type) ir.Value) ir.Value {
	x := b.Convert(ir.F64, k)
	if g == Arange {
		return x
	}
	last := param(GenLast, ir.I64)
	if g == Flat {
		x = b.Op(ir.OpDiv, x, b.Convert(ir.F64, last))
	}
	x = b.Op(ir.OpAdd, b.Op(ir.OpMul, x, param(GenStep, ir.F64)), param(GenStart, ir.F64))
	return b.Op(ir.OpSelect, b.Op(ir.OpEq, k, last), param(GenStop, ir.F64), x)
}

// specialise writes the function with what is known of its launches put in. The
// parameters stay and are followed by those that generators need.
func specialise(k *Kernel) (*ir.Func, []origin, error) {
	c := newCopier(k.Func)
	f := c.b.F
	var origins []origin
	for i := range f.Params {
		o := origin{kind: ArgValue, index: i}
		if i < len(k.In) && k.In[i] != ByValue {
			o.steps = k.In[i] == Strided
			if q := f.Params[i].Kind; q != ir.Offset && q != ir.Iteration || !o.steps {
				o.kind = ArgBase
			}
		}
		origins = append(origins, o)
	}
	hidden := func(index int) func(kind ParamKind, t ir.Type) ir.Value {
		return func(kind ParamKind, t ir.Type) ir.Value {
			for i, o := range origins {
				if o.kind == kind && o.index == index {
					return f.Params[i].Value
				}
			}
			origins = append(origins, origin{kind: kind, index: index})
			return f.AddParam(fmt.Sprintf("%v%d", kind, index), t)
		}
	}
	b := c.b
	for i, p := range k.Func.Params {
		v := p.Value
		t := k.Func.Types[v]
		if i < len(k.In) && k.In[i] >= generated {
			if t != ir.F64 || k.In[i] == generated || k.In[i] > Generated(Flat) {
				return nil, nil, fmt.Errorf("nvptx: internal error: parameter %d is generated and not a float64, or by no formula", i)
			}
			origins = append(origins, origin{kind: ArgValue, index: i, steps: true})
			at := f.AddParamOf(ir.Param{Name: p.Name + ".element", Kind: ir.Offset}, ir.I64)
			c.vals[v] = generator(b, Generator(k.In[i]-generated), at, hidden(i))
		}
		if j, ok := k.Facts.Equal[i]; ok {
			c.vals[v] = c.vals[k.Func.Params[j].Value]
		}
		if x, ok := k.Facts.Frozen[i]; ok {
			c.vals[v] = b.Const(t, x)
		}
	}
	for m, a := range k.Facts.Arrays {
		if g := a.Generator; g != NoGenerator && (k.Func.Mems[m].Elem != ir.F64 || written(k.Func, m)) {
			return nil, nil, fmt.Errorf("nvptx: internal error: m%d is generated, but written or not of float64", m)
		}
	}
	// Strides, from the last dimension on.
	for m := range k.Func.Mems {
		a, ok := k.Facts.Arrays[ir.Mem(m)]
		if !ok {
			continue
		}
		var shape, stride []int // parameters by dimension
		for i, p := range k.Func.Params {
			if p.Mem != ir.Mem(m) {
				continue
			}
			switch p.Kind {
			case ir.Shape:
				shape = append(shape, i)
			case ir.Stride:
				stride = append(stride, i)
			}
		}
		size := ir.Value(-1)
		for d := len(stride) - 1; d >= 0; d-- {
			i := stride[d]
			v := k.Func.Params[i].Value
			if _, frozen := k.Facts.Frozen[i]; !frozen {
				switch {
				case slices.Contains(a.Zero, d):
					c.vals[v] = b.Const(ir.I64, 0)
				case d == len(stride)-1 && (a.Unit || a.Contiguous):
					c.vals[v] = b.Const(ir.I64, 1)
				case a.Contiguous:
					c.vals[v] = size
				}
			}
			if a.Contiguous {
				n := c.vals[k.Func.Params[shape[d]].Value]
				if d == len(stride)-1 {
					size = n
				} else {
					size = b.Op(ir.OpMul, size, n)
				}
			}
		}
	}
	c.instr = func(in *ir.Instr, _ []ir.Instr) bool {
		if in.Op != ir.OpLoad {
			return false
		}
		g := k.Facts.Arrays[in.Mem].Generator
		if g == NoGenerator {
			return false
		}
		c.vals[in.Results[0]] = generator(b, g, c.vals[in.Args[0]], hidden(memIndex(in.Mem)))
		return true
	}
	return c.run(), origins, nil
}

// memIndex is the Index of generator parameters of a memory: below those of
// parameters, which are from 0 on.
func memIndex(m ir.Mem) int { return -1 - int(m) }

// written reports whether f writes a memory.
func written(f *ir.Func, m ir.Mem) (yes bool) {
	ir.Walk(f.Body, func(in *ir.Instr) {
		yes = yes || in.Mem == m && (in.Op == ir.OpStore || in.Op == ir.OpAtomic)
		if in.Op == ir.OpCall {
			yes = yes || slices.Contains(in.Mems, m) // it might
		}
	})
	return yes
}

// Limits are the parameters, by number, up to which loops of f count. Where such
// a one is small, at most 16 or so, it is worth a place in Frozen: the loop is
// then written out.
func Limits(f *ir.Func) []int {
	f = flatten(ir.Inline(f))
	def := definitions(f)
	var out []int
	ir.Walk(f.Body, func(in *ir.Instr) {
		if in.Op != ir.OpLoop {
			return
		}
		c, ok := counted(f, def, in)
		k := slices.IndexFunc(f.Params, func(p ir.Param) bool { return ok && p.Value == c.limit })
		if k >= 0 && !slices.Contains(out, k) {
			out = append(out, k)
		}
	})
	slices.Sort(out)
	return out
}
