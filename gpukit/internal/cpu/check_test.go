package cpu

import (
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"reflect"
	"sort"
	"testing"

	"gpunotes/gpukit/internal/ir"
	"gpunotes/gpukit/internal/ir/irtest"
)

var specials = irtest.Specials

// The oracle of these tests is ir.Evaluator, worker by worker.

var goType = map[ir.Type]reflect.Type{
	ir.Bool: reflect.TypeFor[bool](), ir.I8: reflect.TypeFor[int8](), ir.I16: reflect.TypeFor[int16](), ir.I32: reflect.TypeFor[int32](), ir.I64: reflect.TypeFor[int64](),
	ir.U8: reflect.TypeFor[uint8](), ir.U16: reflect.TypeFor[uint16](), ir.U32: reflect.TypeFor[uint32](), ir.U64: reflect.TypeFor[uint64](),
	ir.F32: reflect.TypeFor[float32](), ir.F64: reflect.TypeFor[float64](),
}

func makeData(t ir.Type, n int) any {
	return reflect.MakeSlice(reflect.SliceOf(goType[t]), n, n).Interface()
}

func put(data any, t ir.Type, i int, b ir.Bits) {
	v := reflect.ValueOf(data).Index(i)
	switch {
	case t == ir.Bool:
		v.SetBool(b != 0)
	case t == ir.F64:
		v.SetFloat(ir.ToF64(b))
	case t == ir.F32:
		v.Set(reflect.ValueOf(ir.ToF32(b)))
	case t.IsSigned():
		v.SetInt(int64(b))
	default:
		v.SetUint(b)
	}
}

func get(data any, t ir.Type, i int) ir.Bits {
	v := reflect.ValueOf(data).Index(i)
	switch {
	case t == ir.Bool:
		return ir.FromBool(v.Bool())
	case t == ir.F64:
		return ir.FromF64(v.Float())
	case t == ir.F32:
		return ir.FromF32(v.Interface().(float32))
	case t.IsSigned():
		return ir.Bits(v.Int())
	}
	return v.Uint()
}

// steps is a generator: element k is a quadratic in k.
type steps struct{ a, b float64 }

func (s steps) at(k int) float64 { return s.a + float64(s.b*float64(k%1000)) }

func (s steps) Fill(dst []float64, first, stride int) {
	for i := range dst {
		dst[i] = s.at(first + i*stride)
	}
}

func workers(shape []int) int {
	n := 1
	for _, d := range shape {
		n *= d
	}
	return n
}

func index(shape []int, w int) []int {
	idx := make([]int, len(shape))
	for d := len(shape) - 1; d >= 0; d-- {
		idx[d] = w % shape[d]
		w /= shape[d]
	}
	return idx
}

func place(o *Operand, idx []int) int {
	k := o.Offset
	for d, i := range idx {
		k += i * o.Strides[d]
	}
	return k
}

func argument(o *Operand, idx []int) ir.Bits {
	switch {
	case o.Data != nil:
		return get(o.Data, o.Type, place(o, idx))
	case o.Gen != nil:
		return ir.FromF64(o.Gen.(steps).at(place(o, idx)))
	case o.Index:
		return ir.Bits(place(o, idx))
	}
	return o.Scalar
}

// outcome is what the evaluator says about a launch.
type outcome struct {
	results [][]ir.Bits // by worker
	worker  int         // that fails, or -1
	err     error
}

func evaluate(f *ir.Func, l *Launch) outcome {
	o := outcome{worker: -1}
	e := &ir.Evaluator{Steps: 1e6}
	args := make([]ir.Bits, len(l.In))
	for w := range workers(l.Shape) {
		idx := index(l.Shape, w)
		for i := range l.In {
			args[i] = argument(&l.In[i], idx)
		}
		res, err := e.Run(f, args...)
		if err != nil {
			o.worker, o.err = w, err
			return o
		}
		o.results = append(o.results, res)
	}
	return o
}

// compare runs p on l and reports how the result differs from want.
func compare(p *Program, l Launch, want outcome) error {
	err := p.Run(l)
	if want.worker >= 0 {
		var we *WorkerError
		if !errors.As(err, &we) {
			return fmt.Errorf("error %v, want %v of worker %d", err, want.err, want.worker)
		}
		if we.Worker != want.worker || we.Err.Error() != want.err.Error() || !reflect.DeepEqual(we.Index, index(l.Shape, we.Worker)) {
			return fmt.Errorf("worker %d at %v: %v; want worker %d: %v", we.Worker, we.Index, we.Err, want.worker, want.err)
		}
		return nil
	}
	if err != nil {
		return err
	}
	for w, res := range want.results {
		idx := index(l.Shape, w)
		for j, b := range res {
			o := &l.Out[j]
			got := ir.Canonical(o.Type, get(o.Data, o.Type, place(o, idx)))
			if got != ir.Canonical(o.Type, b) {
				return fmt.Errorf("result %d of worker %d (%v) is %s, want %s", j, w, idx, ir.FormatBits(o.Type, got), ir.FormatBits(o.Type, b))
			}
		}
	}
	return nil
}

// testEngine is what tests of no engine in particular run on.
var testEngine = flag.Int("engine", int(Portable), "the engine, by number, of tests that are of none in particular")

func compile(t testing.TB, f *ir.Func) *Program {
	t.Helper()
	p, err := Compile(f, Options{Engine: Engine(*testEngine)})
	if err != nil {
		t.Fatalf("%v\n%v", err, f)
	}
	return p
}

// array is a contiguous operand over n workers with values from vals.
func array(t ir.Type, n int, vals func(i int) ir.Bits) Operand {
	o := Operand{Type: t, Data: makeData(t, n), Strides: []int{1}}
	if vals != nil {
		for i := range n {
			put(o.Data, t, i, vals(i))
		}
	}
	return o
}

func results(f *ir.Func, n int) []Operand {
	var out []Operand
	for _, t := range f.Results {
		out = append(out, array(t, n, nil))
	}
	return out
}

// random operands and launches

type dice struct{ *rand.Rand }

func newDice(seed uint64) dice { return dice{rand.New(rand.NewPCG(seed, 7))} }

func (d dice) value(t ir.Type) ir.Bits { return irtest.Value(d.Rand, t) }

func (d dice) shape() []int {
	switch d.IntN(8) {
	case 0:
		return []int{}
	case 1:
		return []int{1 + d.IntN(5), 1, 1 + d.IntN(6), 1 + d.IntN(9)}
	case 2:
		return []int{4 + d.IntN(4), 64 + d.IntN(100)}
	case 3:
		return []int{2 + d.IntN(2), 3, 64 + d.IntN(40)}
	case 4:
		return []int{1 + d.IntN(30), 1 + d.IntN(30)}
	case 5:
		return []int{1, 1 + d.IntN(400), 1}
	}
	return []int{1 + d.IntN(700)}
}

// operand is a random view of fresh memory; a result's elements are distinct.
func (d dice) operand(t ir.Type, shape []int, result bool) Operand {
	o := Operand{Type: t, Strides: make([]int, len(shape))}
	if !result && d.IntN(6) == 0 {
		o.Scalar, o.Strides = d.value(t), nil
		return o
	}
	size, order := 1, d.Perm(len(shape))
	if d.IntN(2) == 0 { // C order
		for i := range order {
			order[i] = len(shape) - 1 - i
		}
	}
	low := 0
	plain := d.IntN(3) > 0
	for _, k := range order {
		if !result && d.IntN(4) == 0 {
			continue // stride 0
		}
		if !plain {
			size *= 1 + d.IntN(2)
		}
		o.Strides[k] = size
		size *= shape[k]
		if !plain && d.IntN(3) == 0 {
			o.Strides[k] = -o.Strides[k]
			low += (shape[k] - 1) * o.Strides[k]
		}
	}
	pad := d.IntN(3)
	o.Offset = pad - low
	if !result && t == ir.F64 && d.IntN(4) == 0 {
		o.Gen = steps{float64(d.IntN(5)), 0.25}
		return o
	}
	o.Data = makeData(t, size+pad+1)
	for i := range size + pad + 1 {
		put(o.Data, t, i, d.value(t))
	}
	return o
}

func (d dice) launch(f *ir.Func, shape []int) Launch {
	l := Launch{Shape: shape, Goroutines: []int{1, 1, 2, 8}[d.IntN(4)]}
	for _, p := range f.Params {
		l.In = append(l.In, d.operand(f.Types[p.Value], shape, false))
	}
	for _, t := range f.Results {
		l.Out = append(l.Out, d.operand(t, shape, true))
	}
	return l
}

// blocks is a launch on in, and out says afterwards what became of it. Arguments
// that are the same for all workers, or go in equal steps, are given as such
// half the time.
func (d dice) blocks(f *ir.Func, in *irtest.Inputs, oneRow bool) (l Launch, out func(p *Program) irtest.Outcome) {
	n := in.Groups * in.Group
	l = Launch{Shape: []int{in.Groups, in.Group}, Group: in.Group, DynamicShared: in.DynamicShared, Goroutines: []int{1, 2, 8}[d.IntN(3)]}
	strides := []int{in.Group, 1}
	if oneRow {
		l.Shape, strides = []int{n}, []int{1}
	}
	for i, p := range f.Params {
		t := f.Types[p.Value]
		at := func(w int) int64 { return int64(in.Args[w][i]) }
		first, slow, fast := at(0), int64(0), int64(0)
		if in.Group > 1 {
			fast = at(1) - first
		}
		if in.Groups > 1 {
			slow = at(in.Group) - first
		}
		same, even := true, !oneRow || slow == fast*int64(in.Group) || in.Groups == 1
		for w := range n {
			same = same && at(w) == first
			even = even && at(w) == first+int64(w/in.Group)*slow+int64(w%in.Group)*fast
		}
		index := Operand{Type: t, Index: true, Offset: int(first), Strides: []int{int(slow), int(fast)}}
		if oneRow {
			index.Strides = []int{int(fast)}
		}
		switch {
		case same && d.IntN(2) == 0:
			l.In = append(l.In, Operand{Type: t, Scalar: in.Args[0][i]})
		case even && t == ir.I64 && d.IntN(8) > 0:
			l.In = append(l.In, index)
		default:
			o := array(t, n, func(w int) ir.Bits { return in.Args[w][i] })
			o.Strides = strides
			l.In = append(l.In, o)
		}
	}
	for _, o := range results(f, n) {
		o.Strides = strides
		l.Out = append(l.Out, o)
	}
	return l, func(p *Program) irtest.Outcome {
		o := irtest.Outcome{Worker: -1}
		l := l
		l.Print = func(s string) { o.Lines = append(o.Lines, s) }
		k := 0
		for _, m := range f.Mems {
			if m.Space == ir.Global {
				l.Mems = append(l.Mems, array(m.Elem, len(in.Mems[k]), func(i int) ir.Bits { return in.Mems[k][i] }).Data)
				k++
			}
		}
		err := p.Run(l)
		var we *WorkerError
		if errors.As(err, &we) {
			o.Worker, o.Err = we.Worker, we.Err
			if !reflect.DeepEqual(we.Index, index(l.Shape, we.Worker)) || !reflect.DeepEqual(we.Args, in.Args[we.Worker]) {
				o.Err = fmt.Errorf("index %v, arguments %v", we.Index, we.Args)
			}
			return o
		}
		o.Err = err
		for w := range n {
			var res []ir.Bits
			for j, t := range f.Results {
				res = append(res, get(l.Out[j].Data, t, w))
			}
			o.Results = append(o.Results, res)
		}
		k = 0
		for _, m := range f.Mems {
			if m.Space == ir.Global {
				data := make([]ir.Bits, len(in.Mems[k]))
				for i := range data {
					data[i] = get(l.Mems[k], m.Elem, i)
				}
				o.Mems = append(o.Mems, data)
				k++
			}
		}
		sort.Strings(o.Lines)
		return o
	}
}
