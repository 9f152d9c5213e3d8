package nvptx

import (
	"fmt"
	"slices"
	"testing"

	"gpunotes/gpukit/internal/ir"
	"gpunotes/gpukit/internal/ir/irtest"
	"gpunotes/gpukit/internal/ptx"
)

var specials = irtest.Specials

func emit(t testing.TB, target Target, ks ...*Kernel) (*ptx.Module, []*Entry) {
	t.Helper()
	m, entries, err := Emit(target, ks...)
	if err != nil {
		t.Fatal(err)
	}
	text := m.String()
	got, err := ptx.Parse(text)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	if again := got.String(); again != text {
		t.Fatalf("what is parsed prints otherwise:\n%s\n%s", text, again)
	}
	return got, entries
}

// elementwise makes a kernel that reads and writes contiguous arrays.
func elementwise(name string, f *ir.Func) *Kernel {
	k := &Kernel{Name: name, Func: f}
	for range f.Params {
		k.In = append(k.In, Contiguous)
	}
	for range f.Results {
		k.Out = append(k.Out, Contiguous)
	}
	return k
}

// outcome is what the evaluator or the interpreter says: results by worker, or
// the lowest worker that failed and its fault.
type outcome struct {
	results [][]ir.Bits
	mems    [][]ir.Bits // Global ones
	worker  int
	fault   ir.Fault
	pos     ir.Pos
	lines   []string // sorted
}

func evaluate(f *ir.Func, workers [][]ir.Bits) (o outcome, ended bool) {
	e := &ir.Evaluator{Steps: 1e5}
	o.worker = -1
	for w, args := range workers {
		res, err := e.Run(f, args...)
		if err != nil {
			fe := err.(*ir.FaultError)
			return outcome{worker: w, fault: fe.Fault, pos: fe.Pos}, fe.Fault != ir.StepBudget
		}
		o.results = append(o.results, res)
	}
	return o, true
}

// expect is evaluate for any function of package irtest.
func expect(f *ir.Func, in *irtest.Inputs) outcome {
	o := in.Evaluate(f)
	if o.Err != nil {
		fe := o.Err.(*ir.FaultError)
		return outcome{worker: o.Worker, fault: fe.Fault, pos: fe.Pos}
	}
	return outcome{results: o.Results, mems: o.Mems, worker: -1, lines: o.Lines}
}

// pad spreads elements so that a stride is not 1.
const pad = 3

// execute runs k on the given arguments of each worker. Parameters passed by
// value must be the same for all. Strided ones are laid out pad elements apart
// and in reverse.
func execute(mc *machine, k *Kernel, entry *Entry, workers [][]ir.Bits, grid, block int) (outcome, error) {
	return executeOn(mc, k, entry, &irtest.Inputs{Args: workers}, grid, block)
}

// executeOn is execute with memories.
func executeOn(mc *machine, k *Kernel, entry *Entry, in *irtest.Inputs, grid, block int) (outcome, error) {
	workers, dynamic := in.Args, 0
	mems := map[int]uint64{} // addresses
	n := 0
	for i, m := range k.Func.Mems {
		switch {
		case m.Space == ir.Global:
			data := make([]byte, len(in.Mems[n])*m.Elem.Size())
			for j, b := range in.Mems[n] {
				put(data[j*m.Elem.Size():][:m.Elem.Size()], b)
			}
			mems[i] = mc.alloc(data)
			n++
		case m.Space == ir.Shared && m.Len == 0:
			dynamic = in.DynamicShared * m.Elem.Size()
		}
	}
	n = len(workers)
	layout := func(t ir.Type, a Access, val func(w int) ir.Bits) (base uint64) {
		data := make([]byte, n*pad*t.Size()+8)
		place := func(w int) int { return w * t.Size() }
		if a == Strided {
			place = func(w int) int { return (n - 1 - w) * pad * t.Size() }
		}
		for w := range workers {
			put(data[place(w):][:t.Size()], val(w))
		}
		return mc.alloc(data) + uint64(place(0))
	}
	zero := func(int) ir.Bits { return 0 }
	var params []uint64
	outs := make([]uint64, len(k.Out))
	record := mc.alloc([]byte{255, 255, 255, 255, 255, 255, 255, 255})
	printed := newPrinted(mc, entry, 4096)
	for _, p := range entry.Params {
		switch p.Kind {
		case Workers:
			params = append(params, uint64(n))
		case ArgValue:
			params = append(params, workers[0][p.Index])
		case ArgBase:
			t := k.Func.Types[k.Func.Params[p.Index].Value]
			params = append(params, layout(t, k.In[p.Index], func(w int) ir.Bits { return workers[w][p.Index] }))
		case OutBase:
			outs[p.Index] = layout(k.Func.Results[p.Index], k.Out[p.Index], zero)
			params = append(params, outs[p.Index])
		case MemBase:
			params = append(params, mems[p.Index])
		case ArgStride, OutStride:
			params = append(params, ^uint64(pad)+1)
		case Record:
			params = append(params, record)
		case Printed:
			params = append(params, printed.at)
		case Cancel:
			params = append(params, mc.alloc(make([]byte, 4)))
		default:
			return outcome{}, fmt.Errorf("parameter %v", p)
		}
	}
	if err := mc.launch(k.Name, grid, block, dynamic, params); err != nil {
		return outcome{}, err
	}
	if w, check, failed := Failure(mc.word(record, 8)); failed {
		c := entry.Checks[check]
		return outcome{worker: int(w), fault: c.Fault, pos: c.Pos}, nil
	}
	o := outcome{worker: -1}
	lines, lost := printed.lines()
	if lost > 0 {
		return outcome{}, fmt.Errorf("no room for %d lines", lost)
	}
	for _, l := range lines {
		o.lines = append(o.lines, entry.Prints[l.Site].Format(l.Args))
	}
	slices.Sort(o.lines)
	read := func(t ir.Type, at uint64) ir.Bits {
		b := mc.word(at, t.Size())
		if t.IsInt() {
			b = ir.Wrap(t, b)
		}
		return b
	}
	for i, m := range k.Func.Mems {
		if m.Space == ir.Global {
			data := make([]ir.Bits, len(in.Mems[len(o.mems)]))
			for j := range data {
				data[j] = read(m.Elem, mems[i]+uint64(j*m.Elem.Size()))
			}
			o.mems = append(o.mems, data)
		}
	}
	for w := range workers {
		var res []ir.Bits
		for i, t := range k.Func.Results {
			at := outs[i] + uint64(w*t.Size())
			if k.Out[i] == Strided {
				at = outs[i] - uint64(w*pad*t.Size())
			}
			res = append(res, read(t, at))
		}
		o.results = append(o.results, res)
	}
	return o, nil
}

func compare(f *ir.Func, got, want outcome, workers [][]ir.Bits) error {
	if want.worker >= 0 || got.worker >= 0 {
		if got.worker != want.worker || got.fault != want.fault || got.pos != want.pos {
			return fmt.Errorf("worker %d fails with %v at %v, want worker %d, %v at %v", got.worker, got.fault, got.pos, want.worker, want.fault, want.pos)
		}
		return nil
	}
	if !slices.Equal(got.lines, want.lines) {
		return fmt.Errorf("prints %q, want %q", got.lines, want.lines)
	}
	n := 0
	for i, m := range f.Mems {
		if m.Space != ir.Global {
			continue
		}
		for j, x := range want.mems[n] {
			if g := got.mems[n][j]; ir.Canonical(m.Elem, g) != ir.Canonical(m.Elem, x) {
				return fmt.Errorf("element %d of m%d is %s (%#x), want %s (%#x)", j, i, ir.FormatBits(m.Elem, g), g, ir.FormatBits(m.Elem, x), x)
			}
		}
		n++
	}
	for w := range want.results {
		for i, t := range f.Results {
			if g, x := ir.Canonical(t, got.results[w][i]), ir.Canonical(t, want.results[w][i]); g != x {
				return fmt.Errorf("worker %d, arguments %v: result %d is %s (%#x), want %s (%#x)", w, workers[w], i, ir.FormatBits(t, g), g, ir.FormatBits(t, x), x)
			}
		}
	}
	return nil
}

// oneOp is a function of one instruction.
type oneOp struct {
	name string
	f    *ir.Func
	in   []ir.Type
}

// singles lists every operation on every type that it takes, every conversion,
// and every library function with code.
func singles() (out []oneOp) {
	make := func(name string, ts []ir.Type, rt ir.Type, build func(b *ir.Builder, a []ir.Value) ir.Value) {
		f := ir.NewFunc(name, rt)
		if rt.IsInt() { // shows what is in the register beside the value
			f.Results = append(f.Results, ir.I64)
		}
		var a []ir.Value
		for i, t := range ts {
			a = append(a, f.AddParam(fmt.Sprint("x", i), t))
		}
		b := ir.NewBuilder(f)
		b.Pos = ir.Pos{File: "cell 1", Line: int32(len(out) + 1), Col: 1}
		r := []ir.Value{build(b, a)}
		if rt.IsInt() {
			r = append(r, b.Convert(ir.I64, r[0]))
		}
		b.Yield(r...)
		out = append(out, oneOp{name, f, ts})
	}
	for op := ir.OpConst; op < ir.NumOps; op++ {
		row := op.Row()
		if row.Result == nil {
			continue
		}
		for _, t := range ir.Types {
			seconds := []ir.Type{t}
			if op == ir.OpShl || op == ir.OpShr {
				seconds = ir.Types[:]
			}
			for _, t2 := range seconds {
				ts := [][]ir.Type{1: {t}, 2: {t, t2}, 3: {ir.Bool, t, t}}[row.Args]
				if rt, err := op.ResultType(ts); err == nil {
					name := fmt.Sprintf("%v_%v", op, t)
					if len(seconds) > 1 {
						name += "_" + t2.String()
					}
					make(name, ts, rt, func(b *ir.Builder, a []ir.Value) ir.Value { return b.Op(op, a...) })
				}
			}
		}
	}
	for _, from := range ir.Types[1:] {
		for _, to := range ir.Types[1:] {
			make(fmt.Sprintf("convert_%v_%v", from, to), []ir.Type{from}, to, func(b *ir.Builder, a []ir.Value) ir.Value { return b.Convert(to, a[0]) })
		}
	}
	for i := range ir.NumMath() {
		if fn := ir.MathFn(i); Native(fn) {
			row := fn.Row()
			make(identifier(fn.String()), row.In, row.Out, func(b *ir.Builder, a []ir.Value) ir.Value { return b.Math(fn, a...) })
		}
	}
	return out
}

func identifier(s string) string {
	b := []byte(s)
	for i := range b {
		if b[i] == '.' {
			b[i] = '_'
		}
	}
	return string(b)
}

// arguments lists combinations of special values, all of them for up to two
// operands.
func arguments(s oneOp) (out [][]ir.Bits) {
	out = [][]ir.Bits{nil}
	for i, t := range s.in {
		vals := specials(t)
		if i == 2 && t != ir.F64 { // selects; carries, of which Go defines 0 and 1
			vals = []ir.Bits{0, 1}
		} else if i == 2 {
			vals = vals[:8]
		}
		var next [][]ir.Bits
		for _, a := range out {
			for _, v := range vals {
				next = append(next, append(append([]ir.Bits(nil), a...), v))
			}
		}
		out = next
	}
	return out
}

var targets = []Target{{SM: 30}, {SM: 61}, {SM: 90}}

// TestEveryOperation compares each operation on each type with the evaluator on
// special values, operands in registers and as constants.
func TestEveryOperation(t *testing.T) {
	all := singles()
	var ks []*Kernel
	for _, s := range all {
		ks = append(ks, elementwise(s.name, s.f))
	}
	for _, target := range []Target{{SM: 30}, {SM: 90}} {
		m, entries := emit(t, target, ks...)
		for i, s := range all {
			var fine, bad [][]ir.Bits
			all := outcome{worker: -1}
			for _, a := range arguments(s) {
				if o, _ := evaluate(s.f, [][]ir.Bits{a}); o.worker < 0 {
					fine = append(fine, a)
					all.results = append(all.results, o.results[0])
				} else if len(bad) < 20 {
					bad = append(bad, a)
				}
			}
			mc := newMachine(t, m)
			try := func(workers [][]ir.Bits, want outcome) {
				got, err := execute(mc, ks[i], entries[i], workers, 1, 1)
				if err == nil {
					err = compare(s.f, got, want, workers)
				}
				if err != nil {
					t.Fatalf("sm_%d %s: %v\n%v\n%v", target.SM, s.name, err, s.f, m.Func(s.name))
				}
			}
			if len(fine) > 0 {
				try(fine, all)
			}
			for _, a := range bad {
				want, _ := evaluate(s.f, [][]ir.Bits{a})
				try([][]ir.Bits{a}, want)
			}
		}
	}
	t.Logf("%d operations on types", len(all))
}

// TestConstantOperands folds special values in one by one.
func TestConstantOperands(t *testing.T) {
	for _, s := range singles() {
		if len(s.in) != 2 || s.in[0] != s.in[1] && s.in[0].Bits() < 32 && s.in[1].Bits() < 64 {
			continue
		}
		var ks []*Kernel
		constants := specials(s.in[1])
		if op := s.f.Body.Instrs[0].Op; (op == ir.OpDiv || op == ir.OpRem) && s.in[1].IsInt() {
			top := s.in[1].Bits()
			if s.in[1].IsSigned() {
				top--
			}
			for k := 1; k < top; k++ { // powers of two are shifts
				if constants = append(constants, ir.Bits(1)<<k); s.in[1].IsSigned() {
					constants = append(constants, ^ir.Bits(0)<<k)
				}
			}
		}
		for j, v := range constants {
			if s.in[0] != s.in[1] && j%3 > 0 {
				continue
			}
			f := ir.NewFunc(s.name, s.f.Results[0])
			x := f.AddParam("x", s.in[0])
			b := ir.NewBuilder(f)
			c := b.Const(s.in[1], v)
			in := s.f.Body.Instrs[0]
			in.Args = []ir.Value{x, c}
			in.Results = []ir.Value{f.NewValue(s.f.Results[0])}
			f.Body.Instrs = append(f.Body.Instrs, in)
			b.Yield(in.Results[0])
			ks = append(ks, elementwise(fmt.Sprint(s.name, "_", len(ks)), f))
		}
		m, entries := emit(t, Target{SM: 35}, ks...)
		mc := newMachine(t, m)
		for j, k := range ks {
			var workers [][]ir.Bits
			for _, v := range specials(s.in[0]) {
				workers = append(workers, []ir.Bits{v})
			}
			want, _ := evaluate(k.Func, workers)
			got, err := execute(mc, k, entries[j], workers, 1, 1)
			if err == nil {
				err = compare(k.Func, got, want, workers)
			}
			if err != nil {
				t.Fatalf("%s: %v\n%v", k.Name, err, k.Func)
			}
		}
	}
}
