package irtest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"gpunotes/gpukit/internal/ir"
)

// Inputs is what a function runs on: Groups blocks of Group threads.
type Inputs struct {
	Groups, Group int
	Args          [][]ir.Bits // by worker, in the order of blocks and threads
	Mems          [][]ir.Bits // by Global memory
	DynamicShared int
}

// NewInputs makes random inputs for a function of Random. Scalars are the same
// for all workers or differ; arrays begin in different places for different
// workers, and have any strides. DynamicShared is Group.
func NewInputs(r *rand.Rand, f *ir.Func, groups, group int) *Inputs {
	in := &Inputs{Groups: groups, Group: group, DynamicShared: group}
	workers := groups * group
	type view struct{ offset, moving, shape, stride int }
	views := map[ir.Mem]view{}
	for i, m := range f.Mems {
		if m.Space != ir.Global {
			continue
		}
		v := view{shape: 1 + r.IntN(40), stride: 1}
		if !strings.HasPrefix(m.Name, "read") {
			v.shape = workers*Slots + r.IntN(3)
		} else if r.IntN(2) == 0 {
			v.moving = 1 + r.IntN(3)
		}
		if r.IntN(3) == 0 {
			v.stride = []int{-1, 2, -3}[r.IntN(3)]
		}
		far := (v.shape - 1) * v.stride
		v.offset = r.IntN(3) - min(far, 0)
		data := make([]ir.Bits, v.offset+max(far, 0)+(workers-1)*v.moving+1)
		for j := range data {
			data[j] = Value(r, m.Elem)
		}
		in.Mems = append(in.Mems, data)
		views[ir.Mem(i)] = v
	}
	in.Args = make([][]ir.Bits, workers)
	for _, p := range f.Params {
		same, alike := Value(r, f.Types[p.Value]), r.IntN(3) == 0
		for w := range workers {
			var x int
			switch v := views[p.Mem]; p.Kind {
			case ir.Offset:
				x = v.offset + w*v.moving
			case ir.Shape:
				x = v.shape
			case ir.Stride:
				x = v.stride
			case ir.ThreadIdx:
				x = w % group
			case ir.BlockIdx:
				x = w / group
			case ir.BlockDim:
				x = group
			case ir.GridDim:
				x = groups
			default:
				b := same
				if !alike {
					b = Value(r, f.Types[p.Value])
				}
				in.Args[w] = append(in.Args[w], b)
				continue
			}
			in.Args[w] = append(in.Args[w], ir.Bits(int64(x)))
		}
	}
	return in
}

// Outcome is what became of inputs.
type Outcome struct {
	Results [][]ir.Bits // by worker
	Mems    [][]ir.Bits
	Lines   []string // sorted
	Worker  int      // the lowest that failed, or -1; then the rest is open
	Err     error
}

// cells is memory.
type cells []ir.Bits

func (c cells) Load(i int) ir.Bits     { return c[i] }
func (c cells) Store(i int, b ir.Bits) { c[i] = b }

// Evaluate says what the reference evaluator makes of f, which leaves in
// unchanged.
func (in *Inputs) Evaluate(f *ir.Func) Outcome {
	o := Outcome{Worker: -1}
	e := &ir.Evaluator{Steps: 1e6, DynamicShared: in.DynamicShared, Print: func(s string) { o.Lines = append(o.Lines, s) }}
	var mems []ir.Storage
	for _, m := range in.Mems {
		o.Mems = append(o.Mems, slices.Clone(m))
		mems = append(mems, cells(o.Mems[len(o.Mems)-1]))
	}
	for g := range in.Groups {
		res, err := e.RunBlock(f, mems, in.Args[g*in.Group:(g+1)*in.Group])
		if err != nil {
			o.Err = err
			var fault *ir.FaultError
			if errors.As(err, &fault) {
				o.Worker = g*in.Group + fault.Worker
			}
			return o
		}
		o.Results = append(o.Results, res...)
	}
	slices.Sort(o.Lines)
	return o
}

// Compare reports how got differs from o, the outcome of f that is right. Any
// NaN is equal to any NaN.
func (o Outcome) Compare(f *ir.Func, got Outcome) error {
	if o.Err != nil || got.Err != nil {
		if o.Err == nil || got.Err == nil || o.Err.Error() != got.Err.Error() || o.Worker != got.Worker {
			return fmt.Errorf("worker %d: %v; want worker %d: %v", got.Worker, got.Err, o.Worker, o.Err)
		}
		return nil
	}
	differ := func(t ir.Type, a, b ir.Bits) bool { return ir.Canonical(t, a) != ir.Canonical(t, b) }
	for w, res := range o.Results {
		for j, b := range res {
			if t := f.Results[j]; differ(t, got.Results[w][j], b) {
				return fmt.Errorf("result %d of worker %d is %s, want %s", j, w, ir.FormatBits(t, got.Results[w][j]), ir.FormatBits(t, b))
			}
		}
	}
	k := 0
	for _, m := range f.Mems {
		if m.Space != ir.Global {
			continue
		}
		for i, b := range o.Mems[k] {
			if differ(m.Elem, got.Mems[k][i], b) {
				return fmt.Errorf("element %d of %s is %s, want %s", i, m.Name, ir.FormatBits(m.Elem, got.Mems[k][i]), ir.FormatBits(m.Elem, b))
			}
		}
		k++
	}
	if !slices.Equal(o.Lines, got.Lines) {
		return fmt.Errorf("printed %q, want %q", got.Lines, o.Lines)
	}
	return nil
}
