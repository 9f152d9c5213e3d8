package cpu

import (
	"fmt"
	"strings"
	"testing"

	"gpunotes/gpukit/internal/ir"
	"gpunotes/gpukit/internal/ir/irtest"
)

func init() { Loud = true }

// machines are the engines with machine code of this machine. Without any the tests
// prove nothing, and say so.
func machines(tb testing.TB) []Engine {
	es := Engines()
	if len(es) == 1 {
		tb.Skip("this machine does not run AVX2 code made at run time")
	}
	return es[:len(es)-1]
}

// machineOf compiles for an engine.
func machineOf(tb testing.TB, f *ir.Func, e Engine) *Program {
	tb.Helper()
	p, err := Compile(f, Options{Engine: e})
	if err != nil {
		tb.Fatalf("%v\n%v", err, f)
	}
	return p
}

// runs fails where machine code does not run l.
func runs(tb testing.TB, p *Program, l *Launch) {
	tb.Helper()
	if err := p.Refused(l); err != nil && workers(l.Shape) > 0 {
		tb.Fatalf("%v\n%v", err, p.f)
	}
}

// TestMachineLaunches runs one program over shapes, strides, generators and numbers of
// goroutines.
func TestMachineLaunches(t *testing.T) {
	smallBoxes(t)
	f := mixed()
	for _, e := range machines(t) {
		p, d := machineOf(t, f, e), newDice(21)
		for _, shape := range [][]int{{}, {1}, {2}, {0}, {3, 0, 2}, {127}, {129}, {5000}, {1, 1}, {7, 9}, {3, 700}, {700, 3}, {40, 70}, {2, 3, 5}, {5, 4, 66}, {2, 3, 4, 5}, {3, 2, 2, 2, 80}, {80, 2, 2, 3, 2}} {
			for range 6 {
				l := d.launch(f, shape)
				want := evaluate(f, &l)
				runs(t, p, &l)
				for _, g := range []int{1, 2, 8} {
					l.Goroutines = g
					if err := compare(p, l, want); err != nil {
						t.Fatalf("%v, shape %v, %d goroutines: %v\n%s", e, shape, g, err, p.Describe(&l))
					}
				}
			}
		}
	}
}

// TestMachineControl runs every shape of control.
func TestMachineControl(t *testing.T) {
	for _, e := range machines(t) {
		for _, f := range controls {
			p := machineOf(t, f, e)
			for _, n := range []int{1, 7, 8, 9, 64, 1000} {
				l := Launch{Shape: []int{n}, In: []Operand{array(ir.I64, n, func(i int) ir.Bits { return ir.Bits(int64(i*i%101) - 5) })}, Out: results(f, n), Goroutines: 1}
				want := evaluate(f, &l)
				runs(t, p, &l)
				if err := compare(p, l, want); err != nil {
					t.Errorf("%v, %s, %d workers: %v", e, f.Name, n, err)
				}
			}
		}
	}
}

// TestMachineRandom runs random functions.
func TestMachineRandom(t *testing.T) {
	smallBoxes(t)
	for _, e := range machines(t) {
		d := newDice(77)
		for i := range 30 {
			f := irtest.Random(d.Rand, fmt.Sprint("random ", i), irtest.Options{Faults: i%3 == 0})
			p := machineOf(t, f, e)
			for range 4 {
				l := d.launch(f, d.shape())
				want := evaluate(f, &l)
				runs(t, p, &l)
				if err := compare(p, l, want); err != nil {
					t.Fatalf("%v, %d: shape %v, %d goroutines: %v\n%v", e, i, l.Shape, l.Goroutines, err, f)
				}
			}
		}
	}
}

// TestMachineMemory does so with memories, printing, atomic operations and faults.
func TestMachineMemory(t *testing.T) {
	smallBoxes(t)
	for _, e := range machines(t) {
		d := newDice(88)
		for i := range 30 {
			f := ir.Optimize(irtest.Random(d.Rand, fmt.Sprint("memory ", i), irtest.Options{Memory: true, Faults: i%2 == 0}))
			p := machineOf(t, f, e)
			for range 2 {
				in := irtest.NewInputs(d.Rand, f, 1+d.IntN(50), []int{1, 3, 32}[d.IntN(3)])
				want := in.Evaluate(f)
				for j := range 2 {
					l, run := d.blocks(f, in, j == 1)
					runs(t, p, &l)
					if err := want.Compare(f, run(p)); err != nil {
						t.Fatalf("%v, %d: shape %v, %d goroutines: %v\n%v", e, i, l.Shape, l.Goroutines, err, f)
					}
				}
			}
		}
	}
}

// rowSum is a sum over the rows of a matrix, a function of loops that sizes decide.
func rowSum() *ir.Func {
	f := ir.NewFunc("row sum", ir.F64)
	a := f.AddArray("a", ir.F64, 1)
	b := ir.NewBuilder(f)
	r := b.Loop([]ir.Value{i64(b, 0), b.Const(ir.F64, 0)}, []ir.Type{ir.F64}, func(c []ir.Value) {
		b.If(b.Op(ir.OpGe, c[0], a.Shape[0]), nil, func() { b.Break(1, c[1]) }, func() { b.Yield() })
		b.Bounds(c[0], a.Shape[0])
		x := b.Load(a.Mem, b.Op(ir.OpAdd, a.Offset, b.Op(ir.OpMul, c[0], a.Stride[0])))
		b.Yield(b.Op(ir.OpAdd, c[0], i64(b, 1)), b.Op(ir.OpAdd, c[1], x))
	})
	b.Yield(r[0])
	return f
}

// TestVariants gives a function sizes that become part of its code, and many others:
// the number of variants stays bounded, and the sums right.
func TestVariants(t *testing.T) {
	for _, e := range machines(t) {
		p := machineOf(t, ir.Optimize(rowSum()), e)
		frozen := 0
		for n := range 60 {
			for stride := 1; stride <= 3; stride++ {
				const rows = 9
				data := floats64(rows*n*stride+1, func(i int) float64 { return float64(i % 17) })
				number := func(x int) Operand { return Operand{Type: ir.I64, Scalar: ir.Bits(x)} }
				l := Launch{Shape: []int{rows}, In: []Operand{{Type: ir.I64, Index: true, Strides: []int{n * stride}}, number(n), number(stride)}, Out: results(p.f, rows), Mems: []any{data}, Goroutines: 1}
				runs(t, p, &l)
				if err := p.Run(l); err != nil {
					t.Fatal(err)
				}
				for r := range rows {
					want := 0.0
					for i := range n {
						want += data[r*n*stride+i*stride]
					}
					if got := l.Out[0].Data.([]float64)[r]; got != want {
						t.Fatalf("%v: %d elements, stride %d: row %d gives %v, want %v", e, n, stride, r, got, want)
					}
				}
				if v, err := p.variantOf(&l); err == nil && len(v.frozen) > 0 {
					frozen++
				}
			}
		}
		if n := len(p.native.variants); n > 2*manyVariants {
			t.Errorf("%v: %d variants", e, n)
		}
		if frozen == 0 {
			t.Errorf("%v: no size became part of the code", e)
		}
	}
}

// TestStreaming writes results that are large enough to go past the caches, from the
// beginning of a page and from other places.
func TestStreaming(t *testing.T) {
	for _, e := range machines(t) {
		p := machineOf(t, product2(), e)
		n := worthStreaming/8 + 1003
		x, y, out := floats64(n+8, func(i int) float64 { return float64(i) }), floats64(n+8, func(i int) float64 { return 1 / float64(i+1) }), make([]float64, n+8)
		for _, off := range []int{0, 3, 8} {
			clear(out)
			in := func(d []float64) Operand { return Operand{Type: ir.F64, Data: d, Offset: off, Strides: []int{1}} }
			l := Launch{Shape: []int{n}, In: []Operand{in(x), in(y)}, Out: []Operand{in(out)}, Goroutines: 2}
			if v, err := p.variantOf(&l); err != nil || v.kernel.Streaming != (off%8 == 0) {
				t.Errorf("%v, offset %d: streaming is %v, %v", e, off, v.kernel.Streaming, err)
			}
			if err := p.Run(l); err != nil {
				t.Fatal(err)
			}
			for i := off; i < off+n; i++ {
				if out[i] != x[i]*y[i] {
					t.Fatalf("%v, offset %d: element %d is %v", e, off, i, out[i])
				}
			}
		}
	}
}

// TestMachineDescribe looks for what a user wants to know.
func TestMachineDescribe(t *testing.T) {
	f := rowSum()
	f.Pos = ir.Pos{File: "sum.go", Line: 3, Col: 1}
	line := int32(10)
	ir.Walk(f.Body, func(in *ir.Instr) { line++; in.Pos = ir.Pos{File: "sum.go", Line: line, Col: 2} })
	for _, e := range machines(t) {
		p := machineOf(t, ir.Optimize(f), e)
		number := func(x int) Operand { return Operand{Type: ir.I64, Scalar: ir.Bits(x)} }
		l := Launch{Shape: []int{100}, In: []Operand{{Type: ir.I64, Index: true, Strides: []int{7}}, number(7), number(1)}, Mems: []any{[]float64{}}}
		text := p.Describe(&l)
		for _, part := range []string{"row sum: " + e.String(), "workers at a time", "a.shape0: 7", "a.stride0: 1", "a.offset: a place in equal steps", "result 0: consecutive elements", "; sum.go:"} {
			if !strings.Contains(text, part) {
				t.Errorf("%v: no %q in\n%s", e, part, text)
			}
		}
		if text != p.Describe(&l) {
			t.Errorf("%v: another text the second time", e)
		}
	}
	meets := newKernel("meets", ir.I64, true, nil, func(k *kernel) { k.Barrier(); k.Yield() })
	p := machineOf(t, meets, machines(t)[0])
	if err := p.Refused(&Launch{Shape: []int{32}}); err == nil {
		t.Error("machine code runs threads that meet")
	}
}
