package amd64_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"time"

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

func load(tb testing.TB, f *ir.Func, t amd64.Target, uniform []bool) *cpu.MachineCode {
	tb.Helper()
	if err := ir.Verify(f); err != nil {
		tb.Fatalf("%v\n%v", err, f)
	}
	m, err := cpu.LoadMachineCode(f, t, uniform)
	if err != nil {
		tb.Fatalf("%v: %v\n%v", t, err, f)
	}
	return m
}

// slice makes a slice of type t; get and put are its elements as bits.
func slice(t ir.Type, n int) any {
	switch t {
	case ir.Bool:
		return make([]bool, n)
	case ir.I64:
		return make([]int64, n)
	case ir.U64:
		return make([]uint64, n)
	}
	return make([]float64, n)
}

func get(s any, i int) ir.Bits {
	switch s := s.(type) {
	case []bool:
		return ir.FromBool(s[i])
	case []int64:
		return ir.Bits(s[i])
	case []uint64:
		return s[i]
	}
	return ir.FromF64(s.([]float64)[i])
}

func put(s any, i int, b ir.Bits) {
	switch s := s.(type) {
	case []bool:
		s[i] = b != 0
	case []int64:
		s[i] = int64(b)
	case []uint64:
		s[i] = b
	default:
		s.([]float64)[i] = ir.ToF64(b)
	}
}

var specialFloats = []float64{0, math.Copysign(0, -1), 1, -1, 0.5, -0.5, 1.5, 2.5, -2.5, math.Inf(1), math.Inf(-1), math.NaN(), -math.NaN(), math.Float64frombits(0xFFF8000000000123), math.Float64frombits(0x7FF0000000000001),
	math.MaxFloat64, -math.MaxFloat64, math.SmallestNonzeroFloat64, -math.SmallestNonzeroFloat64, 0x1p-1022, 1 << 51, 1<<52 + 1, 1 << 53, -(1 << 53), 1 << 63, -(1 << 63), 0x1p63 - 1024, -0x1p63 - 2048, 0x1p64, 0x1p64 - 2048, 0x1p65, 4294967295.5, 4294967296, -4294967296.5, 1e300, -1e300}

var specialInts = []ir.Bits{0, 1, 2, 3, 63, 64, 65, 1 << 31, 1<<32 - 1, 1 << 32, 1 << 52, 1<<53 + 1, 1<<53 + 3, 1<<63 - 1, 1 << 63, 1<<63 + 1, 1<<63 + 1024, 1<<63 + 1025, 1<<64 - 1, 1<<64 - 2, 1<<64 - 1<<31, 1<<64 - 1<<53 - 1, 0xFFFFFFFFFFFFFBFF, 0xFFFFFFFFFFFFFC00, 0x8000000000000400, 0x8000000000000401}

func value(r *rand.Rand, t ir.Type) ir.Bits {
	switch t {
	case ir.Bool:
		return ir.Bits(r.IntN(2))
	case ir.F64:
		switch r.IntN(4) {
		case 0:
			return ir.FromF64(specialFloats[r.IntN(len(specialFloats))])
		case 1:
			return ir.FromF64(float64(r.IntN(9) - 4))
		case 2:
			return ir.FromF64(r.NormFloat64() * math.Exp2(float64(r.IntN(140)-70)))
		}
		return ir.FromF64(r.NormFloat64() * 3)
	}
	switch r.IntN(4) {
	case 0:
		return specialInts[r.IntN(len(specialInts))]
	case 1:
		return r.Uint64()
	}
	return ir.Bits(int64(r.IntN(41) - 10))
}

// inputs fills slices for the parameters: fill, if not nil, chooses values.
func inputs(f *ir.Func, n int, uniform []bool, fill func(p, i int, t ir.Type) ir.Bits) []any {
	var in []any
	for p, q := range f.Params {
		t, m := f.Types[q.Value], n
		if uniform != nil && uniform[p] {
			m = 1
		}
		s := slice(t, m)
		for i := range m {
			put(s, i, fill(p, i, t))
		}
		in = append(in, s)
	}
	return in
}

func arguments(in []any, uniform []bool, i int) []ir.Bits {
	var args []ir.Bits
	for p, s := range in {
		if uniform != nil && uniform[p] {
			args = append(args, get(s, 0))
			continue
		}
		args = append(args, get(s, i))
	}
	return args
}

// guard is behind every result and must stay.
const guard = 9

// run runs m and compares with the evaluator's want[worker][result], if
// there is any.
func run(m *cpu.MachineCode, f *ir.Func, in []any, uniform []bool, n int, want [][]ir.Bits) error {
	var out []any
	for _, t := range f.Results {
		s := slice(t, n+guard)
		for i := range n + guard {
			put(s, i, ir.Bits(1))
		}
		out = append(out, s)
	}
	if err := m.Run(n, in, out, nil); err != nil || want == nil {
		return err
	}
	for k, t := range f.Results {
		for i := range n {
			if got := ir.Canonical(t, get(out[k], i)); got != ir.Canonical(t, want[i][k]) {
				return fmt.Errorf("worker %d of %d, result %d = %s (%#x), want %s (%#x); arguments %#x", i, n, k, ir.FormatBits(t, got), got, ir.FormatBits(t, want[i][k]), want[i][k], arguments(in, uniform, i))
			}
		}
		for i := n; i < n+guard; i++ {
			if get(out[k], i) != 1 {
				return fmt.Errorf("element %d of result %d, behind the last of %d, was written", i, k, n)
			}
		}
	}
	return nil
}

func evaluate(tb testing.TB, f *ir.Func, in []any, uniform []bool, n int) [][]ir.Bits {
	tb.Helper()
	e := &ir.Evaluator{Steps: 1 << 22}
	want := make([][]ir.Bits, n)
	for i := range n {
		var err error
		if want[i], err = e.Run(f, arguments(in, uniform, i)...); err != nil {
			tb.Fatalf("the evaluator: %v\n%v", err, f)
		}
	}
	return want
}

var sizes = []int{0, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 255, 256, 257, 1000, 1024}

// check compares all targets, the function as it is and optimised, with the
// evaluator, for all sizes and with small budgets.
func check(t *testing.T, f *ir.Func, uniform []bool, fill func(p, i int, t ir.Type) ir.Bits) {
	t.Helper()
	const most = 1024
	if fill == nil {
		r := rand.New(rand.NewPCG(1, 2))
		fill = func(_, _ int, t ir.Type) ir.Bits { return value(r, t) }
	}
	in := inputs(f, most, uniform, fill)
	want := evaluate(t, f, in, uniform, most)
	for _, target := range targets(t) {
		for name, g := range map[string]*ir.Func{"as built": f, "optimised": ir.Optimize(f)} {
			m := load(t, g, target, uniform)
			for _, n := range sizes {
				if err := run(m, f, in, uniform, n, want); err != nil {
					t.Fatalf("%v, %s: %v\n%v", target, name, err, g)
				}
			}
			for _, budget := range []uint64{1, 2, 3, 7} {
				m.SetBudget(budget)
				if err := run(m, f, in, uniform, 77, want); err != nil {
					t.Fatalf("%v, %s, budget %d: %v\n%v", target, name, budget, err, g)
				}
			}
		}
	}
}

func f64(x float64) ir.Bits { return ir.FromF64(x) }

func TestMandelbrot(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	check(t, irtest.Mandelbrot(), []bool{false, false, true}, func(p, i int, _ ir.Type) ir.Bits {
		if p == 2 {
			return 60
		}
		return f64(float64(r.Float64()*3) - 2)
	})
}

// oneIf has both arms and a result of each type.
func oneIf() *ir.Func {
	f := ir.NewFunc("oneIf", ir.F64, ir.I64, ir.Bool)
	x, n, p := f.AddParam("x", ir.F64), f.AddParam("n", ir.I64), f.AddParam("p", ir.Bool)
	b := ir.NewBuilder(f)
	cond := b.Op(ir.OpOr, b.Op(ir.OpLt, x, b.Const(ir.F64, f64(1))), p)
	res := b.If(cond, []ir.Type{ir.F64, ir.I64, ir.Bool},
		func() {
			y := b.Op(ir.OpDiv, b.Const(ir.F64, f64(1)), x)
			for range 9 {
				y = b.Op(ir.OpAdd, b.Op(ir.OpMul, y, x), b.Const(ir.F64, f64(0.25)))
			}
			b.Yield(y, b.Op(ir.OpNeg, n), b.Op(ir.OpNot, p))
		},
		func() {
			m := b.Op(ir.OpMul, n, n)
			for range 9 {
				m = b.Op(ir.OpXor, b.Op(ir.OpMul, m, n), b.Op(ir.OpShr, m, b.Const(ir.U8, 7)))
			}
			b.Yield(x, m, b.Op(ir.OpEq, m, n))
		})
	b.Yield(res...)
	return f
}

func TestOneIf(t *testing.T) { check(t, oneIf(), nil, nil) }

func TestCollatz(t *testing.T) {
	check(t, irtest.Collatz(), nil, func(_, i int, _ ir.Type) ir.Bits { return ir.Bits(int64(i*37 - 40)) })
}

// search looks for the first row whose numbers (a hash of row and column and
// seed) all have property p, with a labelled continue, and leaves both loops
// from the inner one when it meets a zero.
func search() *ir.Func {
	f := ir.NewFunc("search", ir.I64, ir.I64)
	seed := f.AddParam("seed", ir.U64)
	b := ir.NewBuilder(f)
	u := func(x uint64) ir.Value { return b.Const(ir.U64, x) }
	i := func(x int64) ir.Value { return b.Const(ir.I64, ir.Bits(x)) }
	res := b.Loop([]ir.Value{i(0)}, []ir.Type{ir.I64, ir.I64}, func(outer []ir.Value) {
		row := outer[0]
		b.If(b.Op(ir.OpGe, row, i(40)), nil, func() { b.Break(1, i(-1), i(-1)) }, func() { b.Yield() })
		// continue is a break out of this if.
		b.If(b.Const(ir.Bool, 1), nil, func() {
			b.Loop([]ir.Value{i(0)}, nil, func(inner []ir.Value) {
				col := inner[0]
				b.If(b.Op(ir.OpGe, col, i(4)), nil, func() { b.Break(3, row, col) }, func() { b.Yield() }) // found
				h := b.Op(ir.OpMul, b.Op(ir.OpAdd, seed, b.Convert(ir.U64, b.Op(ir.OpAdd, b.Op(ir.OpMul, row, i(31)), col))), u(0x9E3779B97F4A7C15))
				h = b.Op(ir.OpShr, b.Op(ir.OpXor, h, b.Op(ir.OpShr, h, u(29))), u(57))
				b.If(b.Op(ir.OpEq, h, u(0)), nil, func() { b.Break(3, i(-2), col) }, func() { b.Yield() })
				b.If(b.Op(ir.OpLt, h, u(60)), nil, func() { b.Break(2) }, func() { b.Yield() }) // continue outer
				b.Yield(b.Op(ir.OpAdd, col, i(1)))
			})
			b.Unreachable()
		}, func() { b.Unreachable() })
		b.Yield(b.Op(ir.OpAdd, row, i(1)))
	})
	b.Yield(res...)
	return f
}

func TestSearch(t *testing.T) {
	check(t, search(), nil, func(_, i int, _ ir.Type) ir.Bits { return ir.Bits(i * 7919) })
}

// returnsEarly returns values from three places.
func returnsEarly() *ir.Func {
	f := ir.NewFunc("returnsEarly", ir.F64, ir.Bool)
	x, n := f.AddParam("x", ir.F64), f.AddParam("n", ir.I64)
	b := ir.NewBuilder(f)
	b.If(b.Op(ir.OpNe, x, x), nil, func() { b.Break(1, b.Const(ir.F64, f64(-1)), b.Const(ir.Bool, 0)) }, func() { b.Yield() })
	r := b.Math(must("math.Sqrt"), b.Math(must("math.Abs"), x))
	b.If(b.Op(ir.OpGt, r, b.Const(ir.F64, f64(2))), nil, func() {
		b.If(b.Op(ir.OpLt, n, b.Const(ir.I64, 0)), nil, func() { b.Break(2, r, b.Op(ir.OpLt, x, r)) }, func() { b.Yield() })
		b.Yield()
	}, func() { b.Yield() })
	b.Yield(b.Math(must("math.FMA"), r, r, b.Convert(ir.F64, n)), b.Const(ir.Bool, 1))
	return f
}

func must(name string) ir.MathFn {
	fn, ok := ir.LookupMath(name)
	if !ok {
		panic(name)
	}
	return fn
}

func TestEarlyReturn(t *testing.T) { check(t, returnsEarly(), nil, nil) }

// forever never ends for n != 0.
func forever() *ir.Func {
	f := ir.NewFunc("forever", ir.I64)
	n := f.AddParam("n", ir.I64)
	b := ir.NewBuilder(f)
	r := b.Loop([]ir.Value{n}, []ir.Type{ir.I64}, func(c []ir.Value) {
		b.If(b.Op(ir.OpEq, c[0], b.Const(ir.I64, 0)), nil, func() { b.Break(1, c[0]) }, func() { b.Yield() })
		b.Yield(b.Op(ir.OpOr, c[0], b.Const(ir.I64, 1)))
	})
	b.Yield(r...)
	return f
}

// TestStop stops a loop without end while the world is stopped again and
// again, which waits for the code to come back.
func TestStop(t *testing.T) {
	for _, target := range targets(t) {
		m := load(t, forever(), target, nil)
		polls := 0
		start := time.Now()
		err := m.Run(2, []any{[]int64{0, 5}}, []any{make([]int64, 2)}, func() bool { polls++; runtime.GC(); return polls == 100 })
		if !errors.Is(err, cpu.ErrCancelled) || polls != 100 {
			t.Errorf("%v: %v after %d polls", target, err, polls)
		}
		if d := time.Since(start); d > 20*time.Second {
			t.Errorf("%v: %v for 100 calls", target, d)
		}
		if err := m.Run(1, []any{[]int64{0}}, []any{make([]int64, 1)}, nil); err != nil {
			t.Errorf("%v: the run after it: %v", target, err)
		}
	}
}

// TestOps runs every operation on every pair of special values.
func TestOps(t *testing.T) {
	lanes := []ir.Type{ir.Bool, ir.I64, ir.U64, ir.F64}
	special := func(t ir.Type) []ir.Bits {
		switch t {
		case ir.Bool:
			return []ir.Bits{0, 1}
		case ir.F64:
			var b []ir.Bits
			for _, x := range specialFloats {
				b = append(b, f64(x))
			}
			return b
		}
		return specialInts
	}
	one := func(name string, ts []ir.Type, build func(b *ir.Builder, args []ir.Value) ir.Value) {
		f := ir.NewFunc(name)
		var args []ir.Value
		for i, t := range ts {
			args = append(args, f.AddParam(fmt.Sprint("p", i), t))
		}
		b := ir.NewBuilder(f)
		r := build(b, args)
		f.Results = []ir.Type{f.Types[r]}
		b.Yield(r)
		n := 1
		for _, t := range ts {
			n *= len(special(t))
		}
		in := inputs(f, n, nil, func(p, i int, t ir.Type) ir.Bits {
			for q := range p {
				i /= len(special(ts[q]))
			}
			return special(t)[i%len(special(t))]
		})
		want := evaluate(t, f, in, nil, n)
		for _, target := range targets(t) {
			m, err := cpu.LoadMachineCode(f, target, nil)
			if err != nil {
				t.Errorf("%v: %s: %v", target, name, err)
				continue
			}
			if err := run(m, f, in, nil, n, want); err != nil {
				t.Errorf("%v: %s: %v", target, name, err)
			}
		}
	}
	for op := ir.OpInvalid + 1; op < ir.NumOps; op++ {
		row := op.Row()
		if row.Result == nil {
			continue
		}
		for _, x := range lanes {
			ts := []ir.Type{x, x, x}[:row.Args]
			switch op {
			case ir.OpSelect:
				ts = []ir.Type{ir.Bool, x, x}
			case ir.OpShl, ir.OpShr:
				ts = []ir.Type{x, ir.U64}
			}
			if _, err := op.ResultType(ts); err != nil {
				continue
			}
			if row.Fault != nil && row.Fault(ts) != ir.NoFault { // TestFaults has the faults
				one(fmt.Sprintf("%v of %v", op, x), ts, func(b *ir.Builder, args []ir.Value) ir.Value {
					zero := b.Op(ir.OpEq, args[1], b.Const(x, 0))
					return b.Op(op, args[0], b.Op(ir.OpSelect, zero, b.Const(x, 1), args[1]))
				})
				for _, c := range []ir.Bits{1, 2, 3, 4, 10, 1 << 32, 1 << 62, 1 << 63, 1<<64 - 1, 1<<64 - 2, 1<<64 - 7} {
					one(fmt.Sprintf("%v of %v by %d", op, x, c), ts[:1], func(b *ir.Builder, args []ir.Value) ir.Value { return b.Op(op, args[0], b.Const(x, c)) })
				}
				continue
			}
			one(fmt.Sprintf("%v of %v", op, x), ts, func(b *ir.Builder, args []ir.Value) ir.Value { return b.Op(op, args...) })
			if op == ir.OpShl || op == ir.OpShr {
				one(fmt.Sprintf("%v of %v by int64", op, x), []ir.Type{x, ir.I64}, func(b *ir.Builder, args []ir.Value) ir.Value {
					return b.Op(op, args[0], b.Op(ir.OpAnd, args[1], b.Const(ir.I64, 1<<63-1)))
				})
			} else if row.Args == 2 { // a constant in each place
				for _, c := range special(x)[:2] {
					one(fmt.Sprintf("%v of %v", op, x), ts[:1], func(b *ir.Builder, args []ir.Value) ir.Value { return b.Op(op, b.Const(x, c), args[0]) })
					one(fmt.Sprintf("%v of %v", op, x), ts[:1], func(b *ir.Builder, args []ir.Value) ir.Value { return b.Op(op, args[0], b.Const(x, c)) })
				}
			}
		}
	}
	for _, op := range []ir.Op{ir.OpShl, ir.OpShr} {
		for _, x := range []ir.Type{ir.I64, ir.U64} {
			for _, n := range []ir.Bits{0, 1, 31, 32, 63, 64, 65, 255} {
				one(fmt.Sprintf("%v of %v by %d", op, x, n), []ir.Type{x}, func(b *ir.Builder, args []ir.Value) ir.Value { return b.Op(op, args[0], b.Const(ir.U8, n)) })
			}
		}
	}
	for _, from := range lanes[1:] {
		for _, to := range lanes[1:] {
			if from != to {
				one(fmt.Sprintf("%v to %v", from, to), []ir.Type{from}, func(b *ir.Builder, args []ir.Value) ir.Value { return b.Convert(to, args[0]) })
			}
		}
	}
	for i := range ir.NumMath() {
		fn := ir.MathFn(i)
		fits := true
		for _, t := range append([]ir.Type{fn.Row().Out}, fn.Row().In...) {
			fits = fits && (t.Bits() == 64 || t == ir.Bool)
		}
		if fits && mathSupported[fn.Row().Name] {
			ts := fn.Row().In
			one(fn.Row().Name, ts, func(b *ir.Builder, args []ir.Value) ir.Value { return b.Math(fn, args...) })
		}
	}
}

// TestFaults has one worker that fails, or one that would if it got there.
func TestFaults(t *testing.T) {
	for _, op := range []ir.Op{ir.OpDiv, ir.OpRem, ir.OpShl, ir.OpShr} {
		bad := ir.Bits(0)
		if op == ir.OpShl || op == ir.OpShr {
			bad = ^bad
		}
		f := ir.NewFunc("faults", ir.I64)
		x, y, p := f.AddParam("x", ir.I64), f.AddParam("y", ir.I64), f.AddParam("p", ir.Bool)
		b := ir.NewBuilder(f)
		r := b.If(p, []ir.Type{ir.I64}, func() {
			z := b.Op(op, x, y)
			w := b.If(b.Op(ir.OpEq, y, b.Const(ir.I64, bad)), []ir.Type{ir.I64}, func() { b.Yield(b.Op(op, x, b.Const(ir.I64, bad))) }, func() { b.Yield(z) })
			b.Yield(w...)
		}, func() { b.Yield(x) })
		b.Yield(r...)
		for _, target := range targets(t) {
			m := load(t, f, target, nil)
			for _, n := range []int{1, 4, 5, 9, 40} {
				for worker := range n {
					for _, reached := range []bool{true, false} {
						in := inputs(f, n, nil, func(_, i int, t ir.Type) ir.Bits {
							if t == ir.Bool {
								return ir.FromBool(i != worker || reached)
							}
							return ir.Bits(i + 1)
						})
						put(in[1], worker, bad)
						out := make([]int64, n)
						err := m.Run(n, in, []any{out}, nil)
						if reached != errors.Is(err, cpu.ErrMachineFault) {
							t.Fatalf("%v, %v, worker %d of %d fails, reached %v: %v", target, op, worker, n, reached, err)
						}
						if !reached {
							if err := run(m, f, in, nil, n, evaluate(t, f, in, nil, n)); err != nil {
								t.Fatalf("%v, %v: %v", target, op, err)
							}
						}
					}
				}
			}
		}
	}
}

var mathSupported = map[string]bool{"math.Sqrt": true, "math.Abs": true, "math.Floor": true, "math.Ceil": true, "math.Trunc": true, "math.RoundToEven": true, "math.FMA": true,
	"math.IsNaN": true, "math.Float64bits": true, "math.Float64frombits": true, "math.Signbit": true, "math.Copysign": true}

func TestRefusals(t *testing.T) {
	for name, build := range map[string]func(b *ir.Builder) (ir.Value, ir.Type){
		"int32": func(b *ir.Builder) (ir.Value, ir.Type) { x := b.F.AddParam("x", ir.I32); return x, ir.I32 },
		"float32": func(b *ir.Builder) (ir.Value, ir.Type) {
			x := b.F.AddParam("x", ir.F64)
			return b.Convert(ir.F64, b.Convert(ir.F32, x)), ir.F64
		},
		"sin": func(b *ir.Builder) (ir.Value, ir.Type) {
			x := b.F.AddParam("x", ir.F64)
			return b.Math(must("math.Sin"), x), ir.F64
		},
	} {
		f := ir.NewFunc(name)
		b := ir.NewBuilder(f)
		b.Pos = ir.Pos{File: "cell 1", Line: 2, Col: 3}
		v, rt := build(b)
		f.Results = []ir.Type{rt}
		b.Yield(v)
		for _, target := range []amd64.Target{amd64.AVX2, amd64.AVX512} {
			_, err := amd64.Compile(f, target, amd64.Options{})
			if u := (*amd64.Unsupported)(nil); !errors.As(err, &u) {
				t.Errorf("%s for %v: %v, want Unsupported", name, target, err)
			}
		}
	}
}

// TestStress runs kernels on many goroutines while the collector works, stacks
// grow and pages come and go.
func TestStress(t *testing.T) {
	duration := time.Second
	if testing.Short() {
		duration = 200 * time.Millisecond
	}
	type job struct {
		f    *ir.Func
		in   []any
		want [][]ir.Bits
		code []*cpu.MachineCode
	}
	const n = 203
	r := rand.New(rand.NewPCG(5, 6))
	var jobs []job
	for _, f := range []*ir.Func{oneIf(), irtest.Collatz(), search(), returnsEarly()} {
		in := inputs(f, n, nil, func(_, i int, t ir.Type) ir.Bits {
			if f.Name == "collatz" {
				return ir.Bits(i)
			}
			return value(r, t)
		})
		j := job{f: f, in: in, want: evaluate(t, f, in, nil, n)}
		for _, target := range targets(t) {
			m := load(t, f, target, nil)
			m.SetBudget(5)
			j.code = append(j.code, m)
		}
		jobs = append(jobs, j)
	}
	stop := time.Now().Add(duration)
	var wg sync.WaitGroup
	errs := make(chan error, 100)
	for g := range 16 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for k := 0; time.Now().Before(stop); k++ {
				j := jobs[(g+k)%len(jobs)]
				m := j.code[k%len(j.code)]
				if k%50 == 0 { // fresh pages, and the old ones are collected
					m, _ = cpu.LoadMachineCode(j.f, m.Code().Target, nil)
				}
				if err := deep(k%40, func() error { return run(m, j.f, j.in, nil, n, j.want) }); err != nil {
					errs <- err
					return
				}
			}
		}()
	}
	wg.Add(1)
	go func() {
		defer wg.Done()
		for time.Now().Before(stop) {
			runtime.GC()
		}
	}()
	wg.Wait()
	close(errs)
	for err := range errs {
		t.Error(err)
	}
}

// deep calls f on a stack that has to grow.
func deep(n int, f func() error) error {
	var pad [512]byte
	if n == 0 {
		return f()
	}
	err := deep(n-1, f)
	runtime.KeepAlive(pad)
	return err
}
