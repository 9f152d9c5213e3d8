package amd64_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"gpunotes/gpukit/internal/codegen/amd64"
	"gpunotes/gpukit/internal/cpu"
	"gpunotes/gpukit/internal/ir"
	"gpunotes/gpukit/internal/ir/irtest"
)

// targets are those of this machine. Without any the test proves nothing, and
// says so.
func targets(tb testing.TB) []amd64.Target {
	ts := cpu.MachineTargets()
	if len(ts) == 0 {
		tb.Skip("this machine does not run AVX2 code made at run time")
	}
	return ts
}

var goTypes = map[ir.Type]reflect.Type{
	ir.Bool: reflect.TypeFor[bool](), ir.I8: reflect.TypeFor[int8](), ir.I16: reflect.TypeFor[int16](), ir.I32: reflect.TypeFor[int32](), ir.I64: reflect.TypeFor[int64](),
	ir.U8: reflect.TypeFor[uint8](), ir.U16: reflect.TypeFor[uint16](), ir.U32: reflect.TypeFor[uint32](), ir.U64: reflect.TypeFor[uint64](),
	ir.F32: reflect.TypeFor[float32](), ir.F64: reflect.TypeFor[float64](),
}

// elements is a slice of the Go type of t; get and put are its elements as bits.
type elements struct {
	t ir.Type
	s reflect.Value
}

func newElements(t ir.Type, n int) elements {
	return elements{t, reflect.MakeSlice(reflect.SliceOf(goTypes[t]), n, n)}
}

func (e elements) get(i int) ir.Bits {
	x := e.s.Index(i)
	switch {
	case e.t == ir.Bool:
		return ir.FromBool(x.Bool())
	case e.t == ir.F32:
		return ir.FromF32(float32(x.Float()))
	case e.t == ir.F64:
		return ir.FromF64(x.Float())
	case e.t.IsSigned():
		return ir.Bits(x.Int())
	}
	return x.Uint()
}

func (e elements) put(i int, b ir.Bits) {
	x := e.s.Index(i)
	switch {
	case e.t == ir.Bool:
		x.SetBool(b != 0)
	case e.t == ir.F32:
		x.Set(reflect.ValueOf(ir.ToF32(b)))
	case e.t == ir.F64:
		x.SetFloat(ir.ToF64(b))
	case e.t.IsSigned():
		x.SetInt(int64(b))
	default:
		x.SetUint(b)
	}
}

// layout is rows of workers and where each operand is.
type layout struct {
	count int
	dims  []int
}

func (l layout) rows() int {
	n := 1
	for _, d := range l.dims {
		n *= d
	}
	return n
}

// row is the place of row number i by dimension.
func (l layout) row(i int) (at []int) {
	for _, d := range l.dims {
		at = append(at, i%d)
		i /= d
	}
	return at
}

// operand is a stream with what it is expected to give.
type operand struct {
	access amd64.Access
	t      ir.Type
	s      cpu.Stream
	data   elements
}

// newOperand makes a random one; rows go in odd directions.
func newOperand(r *rand.Rand, l layout, access amd64.Access, t ir.Type, value func(ir.Type) ir.Bits) operand {
	o := operand{access: access, t: t}
	o.s.Value = value(t)
	for range l.dims {
		o.s.Rows = append(o.s.Rows, 0)
	}
	switch access {
	case amd64.Same:
		o.s.Rows = nil
		return o
	case amd64.Count, amd64.CountUnit, amd64.CountStep:
		for d := range o.s.Rows {
			o.s.Rows[d] = r.IntN(200) - 100
		}
		o.s.Step = r.IntN(20) - 10
		return o
	}
	o.s.Step = map[amd64.Access]int{amd64.Unit: 1, amd64.PerRow: 0, amd64.Strided: []int{2, -1, 3, -4}[r.IntN(4)]}[access]
	span := max(1, l.count*max(o.s.Step, -o.s.Step)) + r.IntN(3)
	for d := range o.s.Rows {
		o.s.Rows[d] = span
		span *= l.dims[d]
		if r.IntN(3) == 0 {
			o.s.Rows[d] = -o.s.Rows[d]
		}
	}
	low, high := 0, 0
	reach := func(step, n int) {
		low += min(0, step*(n-1))
		high += max(0, step*(n-1))
	}
	reach(o.s.Step, l.count)
	for d, n := range l.dims {
		reach(o.s.Rows[d], n)
	}
	o.s.Offset = -low
	o.data = newElements(t, high-low+1)
	for i := range high - low + 1 {
		o.data.put(i, value(t))
	}
	o.s.Data = o.data.s.Interface()
	return o
}

// at is the number of the element, or the value, of a worker.
func (o *operand) at(lane int, row []int) int {
	i := o.s.Offset
	switch o.access {
	case amd64.Unit, amd64.CountUnit:
		i += lane
	case amd64.Strided, amd64.CountStep:
		i += lane * o.s.Step
	}
	for d, n := range o.s.Rows {
		i += row[d] * n
	}
	return i
}

func (o *operand) value(lane int, row []int) ir.Bits {
	switch o.access {
	case amd64.Same:
		return o.s.Value
	case amd64.Count, amd64.CountUnit, amd64.CountStep:
		return o.s.Value + ir.Bits(o.at(lane, row))
	}
	return o.data.get(o.at(lane, row))
}

// variant is one way to compile and run a function.
type variant struct {
	target  amd64.Target
	parts   int
	budget  int
	in, out []amd64.Access
	layout  layout
	counted bool // the code is for rows of this length
}

func (v variant) String() string {
	return fmt.Sprintf("%v x%d, budget %d, %v -> %v, %d workers (%v) in rows of %v", v.target, v.parts, v.budget, v.in, v.out, v.layout.count, v.counted, v.layout.dims)
}

func load(tb testing.TB, f *ir.Func, v variant) *cpu.Native {
	tb.Helper()
	k := &amd64.Kernel{Func: f, In: v.in, Out: v.out, Levels: len(v.layout.dims)}
	if v.counted {
		k.Count = v.layout.count
	}
	n, err := cpu.LoadNative(k, v.target, amd64.Options{Parts: v.parts})
	if err != nil {
		tb.Fatalf("%v: %v\n%v", v, err, f)
	}
	return n
}

// differ runs a variant on random operands and says how it differs from the
// evaluator.
func differ(tb testing.TB, f *ir.Func, v variant, r *rand.Rand, value func(ir.Type) ir.Bits) error {
	tb.Helper()
	n := load(tb, f, v)
	if v.budget > 0 {
		n.SetBudget(v.budget)
	}
	run := cpu.Rows{Count: v.layout.count, Dims: v.layout.dims}
	var in, out []operand
	for i, p := range f.Params {
		o := newOperand(r, v.layout, v.in[i], f.Types[p.Value], value)
		in = append(in, o)
		run.In = append(run.In, o.s)
	}
	for i, t := range f.Results {
		o := newOperand(r, v.layout, v.out[i], t, value)
		out = append(out, o)
		run.Out = append(run.Out, o.s)
	}
	polls := 0
	run.Cancelled = func() bool { polls++; return polls > 1<<18 }
	var printed, wantPrinted []string
	run.Print = func(line string) { printed = append(printed, line) }
	e := &ir.Evaluator{Steps: 1 << 20, Print: func(line string) { wantPrinted = append(wantPrinted, line) }}
	type cell struct {
		result, index int
	}
	want := map[cell]ir.Bits{}
	var fault *ir.FaultError
	worker := -1
	var argsOf = map[cell][]ir.Bits{}
scan:
	for i := range v.layout.rows() {
		row := v.layout.row(i)
		for lane := range v.layout.count {
			var args []ir.Bits
			for k := range in {
				args = append(args, in[k].value(lane, row))
			}
			res, err := e.Run(f, args...)
			if err != nil {
				if !errors.As(err, &fault) || fault.Fault == ir.StepBudget {
					tb.Fatalf("the evaluator: %v", err)
				}
				worker = i*v.layout.count + lane
				break scan
			}
			for k := range out {
				c := cell{k, out[k].at(lane, row)}
				want[c], argsOf[c] = res[k], args
			}
		}
	}
	before := make([][]ir.Bits, len(out))
	for k := range out {
		for i := range out[k].data.s.Len() {
			before[k] = append(before[k], out[k].data.get(i))
		}
	}
	err := n.Run(run)
	if worker >= 0 {
		var w *cpu.WorkerError
		var got *ir.FaultError
		if !errors.As(err, &w) || !errors.As(err, &got) || w.Worker != worker || got.Fault != fault.Fault || got.Expr != fault.Expr || got.Pos != fault.Pos {
			return fmt.Errorf("error %v (worker %d), want one of worker %d: %v", err, workerOf(w), worker, fault)
		}
		return nil
	}
	if err != nil {
		return err
	}
	for k := range out {
		t := f.Results[k]
		for i := range before[k] {
			got := out[k].data.get(i)
			w, written := want[cell{k, i}]
			if !written {
				w = before[k][i]
			}
			if ir.Canonical(t, got) != ir.Canonical(t, w) {
				return fmt.Errorf("element %d of result %d is %s (%#x), want %s (%#x), written: %v; arguments %#x", i, k, ir.FormatBits(t, got), got, ir.FormatBits(t, w), w, written, argsOf[cell{k, i}])
			}
		}
	}
	slices.Sort(printed)
	slices.Sort(wantPrinted)
	if !slices.Equal(printed, wantPrinted) {
		return fmt.Errorf("printed %q, want %q", printed, wantPrinted)
	}
	return nil
}

var inAccesses = []amd64.Access{amd64.Unit, amd64.Unit, amd64.Unit, amd64.Same, amd64.PerRow, amd64.Strided}

// randomVariant chooses accesses, sizes and the rest.
func randomVariant(r *rand.Rand, f *ir.Func, target amd64.Target) variant {
	v := variant{target: target, parts: []int{1, 1, 2, 4}[r.IntN(4)], budget: []int{0, 1, 1, 60}[r.IntN(4)]}
	for _, p := range f.Params {
		a := inAccesses[r.IntN(len(inAccesses))]
		if f.Types[p.Value] == ir.I64 && r.IntN(3) == 0 {
			a = []amd64.Access{amd64.Count, amd64.CountUnit, amd64.CountStep}[r.IntN(3)]
		}
		v.in = append(v.in, a)
	}
	for range f.Results {
		v.out = append(v.out, []amd64.Access{amd64.Unit, amd64.Unit, amd64.Strided}[r.IntN(3)])
	}
	v.layout = layout{count: 1 + r.IntN(70)}
	switch r.IntN(4) {
	case 0:
		v.counted = true
	case 1: // whole groups
		v.layout.count, v.counted = 4<<r.IntN(5), true
	}
	for range r.IntN(4) {
		v.layout.dims = append(v.layout.dims, 1+r.IntN(3))
	}
	return v
}

// check compares many variants of f with the evaluator.
func check(t *testing.T, f *ir.Func, value func(r *rand.Rand, t ir.Type) ir.Bits) {
	t.Helper()
	if err := ir.Verify(f); err != nil {
		t.Fatalf("%v\n%v", err, f)
	}
	if value == nil {
		value = irtest.Value
	}
	for _, target := range targets(t) {
		for name, g := range map[string]*ir.Func{"as built": f, "optimised": ir.Optimize(f)} {
			for seed := range uint64(4) {
				r := rand.New(rand.NewPCG(seed, 5))
				v := randomVariant(r, g, target)
				if err := differ(t, g, v, r, func(t ir.Type) ir.Bits { return value(r, t) }); err != nil {
					t.Fatalf("%s, seed %d, %v: %v\n%v", name, seed, v, err, g)
				}
			}
		}
	}
}

func f64(x float64) ir.Bits { return ir.FromF64(x) }

// TestCopies moves every type, in every way.
func TestCopies(t *testing.T) {
	for _, typ := range ir.Types {
		f := ir.NewFunc("copy", typ)
		x := f.AddParam("x", typ)
		ir.NewBuilder(f).Yield(x)
		for _, target := range targets(t) {
			for _, in := range []amd64.Access{amd64.Same, amd64.PerRow, amd64.Unit, amd64.Strided, amd64.Count, amd64.CountUnit, amd64.CountStep} {
				if in >= amd64.Count && typ != ir.I64 {
					continue
				}
				for _, out := range []amd64.Access{amd64.Unit, amd64.Strided} {
					for n := 1; n < 70; n += 1 + n/20 {
						r := rand.New(rand.NewPCG(uint64(n), 5))
						v := variant{target: target, parts: 1 + n%2, budget: n % 3, in: []amd64.Access{in}, out: []amd64.Access{out}, layout: layout{count: n, dims: []int{3, 2, 1}[:n%4]}, counted: n%4 == 0}
						if err := differ(t, f, v, r, func(t ir.Type) ir.Bits { return irtest.Value(r, t) }); err != nil {
							t.Fatalf("%v, %v: %v", typ, v, err)
						}
					}
				}
			}
		}
	}
}

func workerOf(w *cpu.WorkerError) int {
	if w == nil {
		return -1
	}
	return w.Worker
}
