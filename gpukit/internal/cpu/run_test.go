package cpu

import (
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"math"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"gpunotes/gpukit/internal/ir"
	"gpunotes/gpukit/internal/ir/irtest"
)

func i64(b *ir.Builder, x int64) ir.Value { return b.Const(ir.I64, ir.Bits(x)) }

// oneArg is a function of an int64.
func oneArg(name string, body func(b *ir.Builder, x ir.Value)) *ir.Func {
	f := ir.NewFunc(name, ir.I64)
	x := f.AddParam("x", ir.I64)
	body(ir.NewBuilder(f), x)
	return f
}

// controls are the shapes of control, on an int64 that differs between lanes.
var controls = []*ir.Func{
	oneArg("if without else", func(b *ir.Builder, x ir.Value) {
		r := b.If(b.Op(ir.OpLt, x, i64(b, 3)), []ir.Type{ir.I64}, func() { b.Yield(b.Op(ir.OpNeg, x)) }, func() { b.Yield(x) })
		b.Yield(b.Op(ir.OpAdd, r[0], x))
	}),
	oneArg("early return", func(b *ir.Builder, x ir.Value) {
		y := b.Op(ir.OpMul, x, x)
		b.If(b.Op(ir.OpEq, b.Op(ir.OpAnd, x, i64(b, 3)), i64(b, 1)), nil, func() { b.Break(1, i64(b, -7)) }, func() { b.Yield() })
		b.If(b.Op(ir.OpGt, x, i64(b, 90)), nil, func() { b.Break(1, y) }, func() { b.Yield() })
		b.Yield(b.Op(ir.OpAdd, b.Op(ir.OpMul, y, i64(b, 2)), x))
	}),
	oneArg("all return early", func(b *ir.Builder, x ir.Value) {
		b.If(b.Op(ir.OpGt, x, i64(b, 5)), nil, func() { b.Break(1, i64(b, 1)) }, func() { b.Break(1, x) })
		b.Unreachable()
	}),
	oneArg("lanes leave a loop at different times", func(b *ir.Builder, x ir.Value) {
		bound := b.Op(ir.OpRem, b.Op(ir.OpMul, x, i64(b, 7)), i64(b, 23))
		r := b.Loop([]ir.Value{i64(b, 0), x}, []ir.Type{ir.I64}, func(c []ir.Value) {
			b.If(b.Op(ir.OpGe, c[0], bound), nil, func() { b.Break(1, b.Op(ir.OpAdd, c[1], bound)) }, func() { b.Yield() })
			b.Yield(b.Op(ir.OpAdd, c[0], i64(b, 1)), b.Op(ir.OpAdd, c[1], x))
		})
		b.Yield(b.Op(ir.OpXor, r[0], bound))
	}),
	oneArg("carried values change places", func(b *ir.Builder, x ir.Value) {
		r := b.Loop([]ir.Value{x, b.Op(ir.OpNeg, x), i64(b, 0)}, []ir.Type{ir.I64}, func(c []ir.Value) {
			b.If(b.Op(ir.OpGt, c[2], b.Op(ir.OpAnd, x, i64(b, 7))), nil, func() { b.Break(1, c[0]) }, func() { b.Yield() })
			b.Yield(c[1], c[0], b.Op(ir.OpAdd, c[2], i64(b, 1)))
		})
		b.Yield(r[0])
	}),
	oneArg("carried values and a local change places", func(b *ir.Builder, x ir.Value) {
		r := b.Loop([]ir.Value{x, b.Op(ir.OpNeg, x), b.Op(ir.OpAdd, x, x)}, []ir.Type{ir.I64}, func(c []ir.Value) {
			b.If(b.Op(ir.OpGt, b.Op(ir.OpXor, c[0], c[2]), i64(b, 200)), nil, func() { b.Break(1, b.Op(ir.OpSub, c[0], c[1])) }, func() { b.Yield() })
			b.Yield(c[1], c[0], b.Op(ir.OpAdd, b.Op(ir.OpMul, c[2], i64(b, 3)), b.Op(ir.OpOr, x, i64(b, 1))))
		})
		b.Yield(r[0])
	}),
	oneArg("results that nobody uses", func(b *ir.Builder, x ir.Value) {
		y := b.Op(ir.OpMul, x, i64(b, 5))
		r := b.Loop([]ir.Value{y, i64(b, 0)}, []ir.Type{ir.I64, ir.I64, ir.I64}, func(c []ir.Value) {
			b.If(b.Op(ir.OpGt, c[1], b.Op(ir.OpAnd, x, i64(b, 15))), nil, func() { b.Break(1, x, c[0], c[1]) }, func() { b.Yield() })
			b.Yield(b.Op(ir.OpAdd, c[0], b.Op(ir.OpXor, y, c[1])), b.Op(ir.OpAdd, c[1], i64(b, 1)))
		})
		b.Yield(b.Op(ir.OpAdd, r[1], y))
	}),
	oneArg("nested loops, broken to outer levels", func(b *ir.Builder, x ir.Value) {
		r := b.Loop([]ir.Value{i64(b, 0), i64(b, 0)}, []ir.Type{ir.I64}, func(o []ir.Value) {
			b.If(b.Op(ir.OpGt, o[0], i64(b, 6)), nil, func() { b.Break(1, o[1]) }, func() { b.Yield() })
			sum := b.Loop([]ir.Value{i64(b, 0), o[1]}, []ir.Type{ir.I64}, func(c []ir.Value) {
				b.If(b.Op(ir.OpGe, c[0], b.Op(ir.OpAnd, b.Op(ir.OpAdd, x, o[0]), i64(b, 3))), nil, func() { b.Break(1, c[1]) }, func() { b.Yield() })
				b.If(b.Op(ir.OpEq, c[1], i64(b, 40)), nil, func() { b.Break(3, i64(b, -40)) }, func() { b.Yield() }) // return
				b.If(b.Op(ir.OpGt, c[1], i64(b, 60)), nil, func() { b.Break(2, b.Op(ir.OpMul, c[1], o[0])) }, func() { b.Yield() })
				b.Yield(b.Op(ir.OpAdd, c[0], i64(b, 1)), b.Op(ir.OpAdd, c[1], b.Op(ir.OpAnd, x, i64(b, 15))))
			})
			b.Yield(b.Op(ir.OpAdd, o[0], i64(b, 1)), b.Op(ir.OpAdd, sum[0], i64(b, 1)))
		})
		b.Yield(b.Op(ir.OpAdd, r[0], x))
	}),
	oneArg("continue: a break out of an if around the rest", func(b *ir.Builder, x ir.Value) {
		r := b.Loop([]ir.Value{i64(b, 0), i64(b, 0)}, []ir.Type{ir.I64}, func(c []ir.Value) {
			b.If(b.Op(ir.OpGe, c[0], i64(b, 9)), nil, func() { b.Break(1, c[1]) }, func() { b.Yield() })
			s := b.If(b.Const(ir.Bool, 1), []ir.Type{ir.I64}, func() {
				b.If(b.Op(ir.OpEq, b.Op(ir.OpRem, b.Op(ir.OpAdd, c[0], x), i64(b, 3)), i64(b, 0)), nil, func() { b.Break(1, c[1]) }, func() { b.Yield() })
				b.Yield(b.Op(ir.OpAdd, c[1], b.Op(ir.OpMul, c[0], x)))
			}, func() { b.Unreachable() })
			b.Yield(b.Op(ir.OpAdd, c[0], i64(b, 1)), s[0])
		})
		b.Yield(r[0])
	}),
	oneArg("division guarded by a branch", func(b *ir.Builder, x ir.Value) {
		m := b.Op(ir.OpAnd, x, i64(b, 3))
		r := b.If(b.Op(ir.OpEq, m, i64(b, 0)), []ir.Type{ir.I64}, func() { b.Yield(i64(b, -1)) }, func() { b.Yield(b.Op(ir.OpDiv, i64(b, 1000), m)) })
		b.Yield(r[0])
	}),
	oneArg("a loop that runs once", func(b *ir.Builder, x ir.Value) {
		r := b.Loop(nil, []ir.Type{ir.I64, ir.I64}, func([]ir.Value) { b.Break(0, x, i64(b, 2)) })
		b.Yield(b.Op(ir.OpMul, r[0], r[1]))
	}),
	oneArg("nobody goes on behind a loop", func(b *ir.Builder, x ir.Value) {
		b.Loop([]ir.Value{x}, nil, func(c []ir.Value) {
			b.If(b.Op(ir.OpGt, c[0], i64(b, 100)), nil, func() { b.Break(2, c[0]) }, func() { b.Yield() })
			b.Yield(b.Op(ir.OpAdd, c[0], b.Op(ir.OpAdd, b.Op(ir.OpAnd, x, i64(b, 31)), i64(b, 1))))
		})
		b.Unreachable()
	}),
	irtest.Collatz(),
}

// TestControl runs every shape of control with lanes that agree and lanes that
// do not, for sizes around a block, and as a scalar.
func TestControl(t *testing.T) {
	for _, f := range controls {
		p := compile(t, f)
		block := p.Stats(nil).Block
		for _, n := range []int{1, 2, block - 1, block, block + 1, 3*block + 5} {
			for name, x := range map[string]func(i int) int64{"mixed": func(i int) int64 { return int64(i*i%101) - 5 }, "equal": func(int) int64 { return 27 }} {
				l := Launch{Shape: []int{n}, In: []Operand{array(ir.I64, n, func(i int) ir.Bits { return ir.Bits(x(i)) })}, Out: results(f, n), Goroutines: 1}
				want := evaluate(f, &l)
				if err := compare(p, l, want); err != nil {
					t.Errorf("%s, %d %s lanes: %v", f.Name, n, name, err)
				}
				if name == "equal" {
					l.In[0] = Operand{Type: ir.I64, Scalar: 27}
					if err := compare(p, l, want); err != nil {
						t.Errorf("%s, %d workers with a scalar: %v", f.Name, n, err)
					}
				}
			}
		}
	}
}

// mixed is a function of several types that cannot fail.
func mixed() *ir.Func {
	f := ir.NewFunc("mixed", ir.F64, ir.I32)
	x, y, k, w := f.AddParam("x", ir.F64), f.AddParam("y", ir.F64), f.AddParam("k", ir.I32), f.AddParam("w", ir.F32)
	b := ir.NewBuilder(f)
	sum := b.Op(ir.OpAdd, b.Op(ir.OpMul, x, x), b.Op(ir.OpMul, y, b.Convert(ir.F64, w)))
	r := b.If(b.Op(ir.OpLt, x, y), []ir.Type{ir.I32}, func() { b.Yield(b.Op(ir.OpNeg, k)) }, func() { b.Yield(b.Op(ir.OpAdd, k, b.Convert(ir.I32, sum))) })
	b.Yield(sum, r[0])
	return f
}

// TestLaunches runs one program over shapes, strides, generators, and numbers
// of goroutines, with blocks within rows and across.
func TestLaunches(t *testing.T) {
	f := mixed()
	p := compile(t, f)
	d := newDice(1)
	for _, shape := range [][]int{{}, {1}, {2}, {0}, {3, 0, 2}, {127}, {128}, {129}, {5000}, {1, 1}, {7, 9}, {3, 700}, {40, 70}, {300, 3}, {2, 3, 5}, {5, 4, 66}, {4, 1, 130}, {2, 3, 4, 5}, {3, 2, 2, 80}} {
		for range 6 {
			l := d.launch(f, shape)
			want := evaluate(f, &l)
			for _, g := range []int{1, 2, 8} {
				l.Goroutines = g
				if err := compare(p, l, want); err != nil {
					t.Fatalf("shape %v, %d goroutines: %v\n%s", shape, g, err, p.Describe(&l))
				}
			}
		}
	}
}

// TestNothingEndlessIsHoisted: an operation that would take for ever on the
// scalar argument stands where no lane gets.
func TestNothingEndlessIsHoisted(t *testing.T) {
	f := ir.NewFunc("bessel", ir.F64)
	n, x := f.AddParam("n", ir.I64), f.AddParam("x", ir.F64)
	b := ir.NewBuilder(f)
	jn, _ := ir.LookupMath("math.Jn")
	r := b.If(b.Op(ir.OpLt, n, i64(b, 100)), []ir.Type{ir.F64}, func() { b.Yield(b.Math(jn, n, b.Const(ir.F64, ir.FromF64(2)))) }, func() { b.Yield(x) })
	b.Yield(r[0])
	l := Launch{Shape: []int{300}, In: []Operand{{Type: ir.I64, Scalar: math.MaxInt64}, array(ir.F64, 300, nil)}, Out: results(f, 300)}
	if err := compare(compile(t, f), l, evaluate(f, &l)); err != nil {
		t.Error(err)
	}
}

// TestNothingElseIsWritten checks that elements between those of a result stay.
func TestNothingElseIsWritten(t *testing.T) {
	f := ir.NewFunc("one", ir.F64)
	bd := ir.NewBuilder(f)
	bd.Yield(bd.Const(ir.F64, ir.FromF64(1)))
	p := compile(t, f)
	out := make([]float64, 100)
	l := Launch{Shape: []int{3, 4}, Out: []Operand{{Type: ir.F64, Data: out, Offset: 60, Strides: []int{-20, 3}}}}
	if err := p.Run(l); err != nil {
		t.Fatal(err)
	}
	want := make([]float64, 100)
	for i := range 3 {
		for j := range 4 {
			want[60-20*i+3*j] = 1
		}
	}
	for i := range out {
		if out[i] != want[i] {
			t.Errorf("element %d is %v", i, out[i])
		}
	}
}

// TestInPlace gives results the memory of arguments, the other way round too.
func TestInPlace(t *testing.T) {
	f := ir.NewFunc("swap", ir.F64, ir.F64, ir.F64)
	x, y := f.AddParam("x", ir.F64), f.AddParam("y", ir.F64)
	b := ir.NewBuilder(f)
	s := b.Op(ir.OpAdd, x, y)
	b.Yield(y, x, b.Op(ir.OpMul, s, b.Op(ir.OpSub, x, y)))
	p := compile(t, f)
	for _, n := range []int{1, 10, 3000} {
		l := Launch{Shape: []int{n}, Goroutines: 2}
		l.In = []Operand{array(ir.F64, n, func(i int) ir.Bits { return ir.FromF64(float64(i)) }), array(ir.F64, n, func(i int) ir.Bits { return ir.FromF64(float64(7 * i)) })}
		l.Out = append(append([]Operand{}, l.In...), array(ir.F64, n, nil))
		want := evaluate(f, &l)
		if err := compare(p, l, want); err != nil {
			t.Errorf("%d workers: %v", n, err)
		}
	}
	// A worker that fails is evaluated on what it read, not on what was written.
	g := ir.NewFunc("quotient", ir.I64)
	a, c := g.AddParam("a", ir.I64), g.AddParam("c", ir.I64)
	b = ir.NewBuilder(g)
	b.Yield(b.Op(ir.OpDiv, a, c))
	l := Launch{Shape: []int{500}, In: []Operand{array(ir.I64, 500, func(i int) ir.Bits { return ir.Bits(i) }), array(ir.I64, 500, func(i int) ir.Bits { return ir.Bits(321 - i) })}}
	l.Out = l.In[1:]
	if err := compare(compile(t, g), l, evaluate(g, &l)); err != nil {
		t.Error(err)
	}
}

// TestLowestFault lets several workers fail, in blocks that run in any order,
// and others run without end.
func TestLowestFault(t *testing.T) {
	f := ir.NewFunc("fault", ir.I64)
	x, spin := f.AddParam("x", ir.I64), f.AddParam("spin", ir.Bool)
	b := ir.NewBuilder(f)
	b.If(spin, nil, func() { b.Loop(nil, nil, func([]ir.Value) { b.Yield() }); b.Yield() }, func() { b.Yield() })
	b.Yield(b.Op(ir.OpDiv, i64(b, 100), x))
	p := compile(t, f)
	defer func(ns float64) { pollEvery = ns }(pollEvery)
	pollEvery = 1
	const n = 200_000
	for _, bad := range []int{0, 1, 4999, 77_777, n - 1} {
		xs, spins := make([]int64, n), make([]bool, n)
		for i := range xs {
			xs[i] = 1
			if i >= bad && (i-bad)%613 == 0 {
				xs[i] = 0
			}
			spins[i] = i > bad+1100 && i%500 == 17
		}
		for _, g := range []int{1, 2, 8} {
			for _, shape := range [][]int{{n}, {400, 500}} {
				l := Launch{Shape: shape, In: []Operand{flat(xs, ir.I64), flat(spins, ir.Bool)}, Out: []Operand{flat(make([]int64, n), ir.I64)}, Goroutines: g}
				if len(shape) == 2 {
					for _, o := range []*Operand{&l.In[0], &l.In[1], &l.Out[0]} {
						o.Strides = []int{500, 1}
					}
				}
				var we *WorkerError
				if err := p.Run(l); !errors.As(err, &we) || we.Worker != bad || we.Args[0] != 0 || !strings.Contains(err.Error(), "100 / 0") {
					t.Fatalf("%d goroutines: %v, want worker %d", g, err, bad)
				}
			}
		}
		xs = xs[:bad] // the next run is good
		if err := p.Run(Launch{Shape: []int{bad}, In: []Operand{flat(xs, ir.I64), {Type: ir.Bool}}, Out: []Operand{flat(make([]int64, n), ir.I64)}, Goroutines: 2}); err != nil {
			t.Error(err)
		}
	}
}

// TestColumnFault: with columns the blocks run in another order than C order.
func TestColumnFault(t *testing.T) {
	f := ir.NewFunc("column", ir.I64)
	x, y := f.AddParam("x", ir.I64), f.AddParam("y", ir.I64)
	b := ir.NewBuilder(f)
	b.Yield(b.Op(ir.OpDiv, i64(b, 9), b.Op(ir.OpSub, b.Op(ir.OpMul, x, i64(b, 3)), y)))
	p := compile(t, f)
	for _, g := range []int{1, 2, 8} {
		for _, first := range []int{1, 500, 2999} {
			l := Launch{Shape: []int{50, 3000}, Goroutines: g, Out: []Operand{{Type: ir.I64, Data: make([]int64, 150_000), Strides: []int{3000, 1}}},
				In: []Operand{array(ir.I64, 3000, func(i int) ir.Bits { return ir.Bits(i) }), array(ir.I64, 50, func(i int) ir.Bits { return ir.Bits(int64(3*first - 60 + 3*i)) })}}
			l.In[0].Strides, l.In[1].Strides = []int{0, 1}, []int{1, 0}
			want := evaluate(f, &l)
			if want.worker < 0 {
				t.Fatal("no fault")
			}
			if err := compare(p, l, want); err != nil {
				t.Errorf("%d goroutines: %v", g, err)
			}
		}
	}
}

// TestCancel stops loops without end, soon, and leaves no goroutine behind.
func TestCancel(t *testing.T) {
	endless := oneArg("endless", func(b *ir.Builder, x ir.Value) {
		b.Loop(nil, nil, func([]ir.Value) { b.Yield() })
		b.Unreachable()
	})
	nested := oneArg("nested", func(b *ir.Builder, x ir.Value) {
		b.Loop([]ir.Value{x}, nil, func(c []ir.Value) {
			r := b.Loop([]ir.Value{i64(b, 0)}, []ir.Type{ir.I64}, func(d []ir.Value) {
				b.If(b.Op(ir.OpGt, d[0], b.Op(ir.OpAnd, x, i64(b, 3))), nil, func() { b.Break(1, d[0]) }, func() { b.Yield() })
				b.Yield(b.Op(ir.OpAdd, d[0], i64(b, 1)))
			})
			b.Yield(b.Op(ir.OpAdd, c[0], r[0]))
		})
		b.Unreachable()
	})
	before := runtime.NumGoroutine()
	for _, f := range []*ir.Func{endless, nested} {
		p := compile(t, f)
		for _, n := range []int{1, 10_000} {
			for _, g := range []int{1, 8} {
				var cancelled atomic.Bool
				var at time.Time
				time.AfterFunc(20*time.Millisecond, func() { at = time.Now(); cancelled.Store(true) })
				err := p.Run(Launch{Shape: []int{n}, In: []Operand{array(ir.I64, n, func(i int) ir.Bits { return ir.Bits(i) })}, Out: results(f, n), Goroutines: g, Cancelled: cancelled.Load})
				if late := time.Since(at); err != ErrCancelled || late > 500*time.Millisecond {
					t.Errorf("%s, %d workers: %v after %v", f.Name, n, err, late)
				}
			}
		}
	}
	for range 100 {
		if runtime.NumGoroutine() <= before {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Errorf("%d goroutines, %d before", runtime.NumGoroutine(), before)
}

// TestConcurrentRuns shares one program.
func TestConcurrentRuns(t *testing.T) {
	f := irtest.Collatz()
	p := compile(t, f)
	var wg sync.WaitGroup
	for k := range 6 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			n := 500 + 100*k
			l := Launch{Shape: []int{n}, In: []Operand{array(ir.I64, n, func(i int) ir.Bits { return ir.Bits(i + k) })}, Out: results(f, n), Goroutines: 1 + k%3}
			want := evaluate(f, &l)
			for range 5 {
				if err := compare(p, l, want); err != nil {
					t.Error(err)
				}
			}
		}()
	}
	wg.Wait()
}

type broken struct{}

func (broken) Fill([]float64, int, int) { panic("no such element") }

// TestWrongLaunches: an error, no panic, and the program still works.
func TestWrongLaunches(t *testing.T) {
	f := single("abs", []ir.Type{ir.F64}, ir.F64, func(b *ir.Builder, a []ir.Value) ir.Value { m, _ := ir.LookupMath("math.Abs"); return b.Math(m, a[0]) })
	p := compile(t, f)
	const n = 100_000
	good := Launch{Shape: []int{n}, In: []Operand{array(ir.F64, n, nil)}, Out: results(f, n), Goroutines: 2}
	for name, change := range map[string]func(l *Launch){
		"no argument":           func(l *Launch) { l.In = nil },
		"no result":             func(l *Launch) { l.Out = nil },
		"result without data":   func(l *Launch) { l.Out = []Operand{{Type: ir.F64, Strides: []int{1}}} },
		"type":                  func(l *Launch) { l.In = []Operand{array(ir.F32, n, nil)} },
		"data of another type":  func(l *Launch) { l.In = []Operand{{Type: ir.F64, Data: make([]float32, n), Strides: []int{1}}} },
		"strides":               func(l *Launch) { l.In = []Operand{{Type: ir.F64, Data: make([]float64, n)}} },
		"too short":             func(l *Launch) { l.Out = []Operand{array(ir.F64, n-1, nil)} },
		"before the beginning":  func(l *Launch) { l.In = []Operand{{Type: ir.F64, Data: make([]float64, n), Strides: []int{-1}}} },
		"negative shape":        func(l *Launch) { l.Shape = []int{-1} },
		"overflowing shape":     func(l *Launch) { l.Shape = []int{math.MaxInt} },
		"generator that panics": func(l *Launch) { l.In = []Operand{{Type: ir.F64, Gen: broken{}, Strides: []int{1}}} },
	} {
		l := good
		change(&l)
		if err := p.Run(l); err == nil || errors.Is(err, ErrCancelled) {
			t.Errorf("%s: %v", name, err)
		}
		if err := p.Run(good); err != nil {
			t.Errorf("after %s: %v", name, err)
		}
	}
}

// TestFewAllocations: a warm small run makes no garbage, whatever the operands.
func TestFewAllocations(t *testing.T) {
	p := compile(t, distance())
	l := Launch{Shape: []int{2, 5}, In: []Operand{{Type: ir.F64, Gen: steps{}, Strides: []int{1, 0}}, {Type: ir.F64, Data: make([]float64, 5), Strides: []int{0, 1}}, scalarF64(30), scalarF64(101), scalarF64(1)},
		Out: []Operand{{Type: ir.F64, Data: make([]float64, 10), Strides: []int{5, 1}}}, Goroutines: 2, Cancelled: func() bool { return false }}
	if n := testing.AllocsPerRun(100, func() {
		if err := p.Run(l); err != nil {
			t.Fatal(err)
		}
	}); n > 2 {
		t.Errorf("%v allocations", n)
	}
}

// TestProductsAreRounded reads the loops: no sum has a bare product as operand,
// which the compiler of some targets would fuse.
func TestProductsAreRounded(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil || len(files) == 0 {
		t.Fatal("no source", err)
	}
	sums := 0
	for _, name := range files {
		if name != "kernels.go" && name != "fuse.go" && name != "steps.go" {
			continue
		}
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			sum, ok := n.(*ast.BinaryExpr)
			if !ok || sum.Op != token.ADD && sum.Op != token.SUB {
				return true
			}
			sums++
			for _, x := range []ast.Expr{sum.X, sum.Y} {
				if m, ok := ast.Unparen(x).(*ast.BinaryExpr); ok && m.Op == token.MUL {
					t.Errorf("%v: a product that is not rounded", set.Position(m.Pos()))
				}
			}
			return true
		})
	}
	if sums < 10 {
		t.Errorf("only %d sums seen", sums)
	}
}

// TestSharedWork checks what the portable engine computes how often.
func TestSharedWork(t *testing.T) {
	p, err := Compile(distance(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	mesh := Launch{Shape: []int{100, 1000}, In: []Operand{{Type: ir.F64, Gen: steps{}, Strides: []int{1, 0}}, {Type: ir.F64, Gen: steps{}, Strides: []int{0, 1}}, scalarF64(30), scalarF64(101), scalarF64(1)},
		Out: []Operand{{Type: ir.F64, Data: make([]float64, 100_000), Strides: []int{1000, 1}}}}
	for name, c := range map[string]struct {
		l    *Launch
		want Stats
	}{
		"arrays": {nil, Stats{PerLane: 15}},
		"mesh":   {&mesh, Stats{Once: 2, PerRow: 7, PerColumn: 4, PerLane: 4}},
	} {
		got := p.Stats(c.l)
		got.Buffers, got.Block = 0, 0
		if got != c.want {
			t.Errorf("%s: %+v, want %+v\n%s", name, got, c.want, p.Describe(c.l))
		}
	}
	for _, part := range []string{"once per run:", "once per column:", "once per row:", "per block:", "math.Atan2", "lat1, one value per row", "lon1, one value per column"} {
		if !strings.Contains(p.Describe(&mesh), part) {
			t.Errorf("no %q in\n%s", part, p.Describe(&mesh))
		}
	}
	// The counter of a loop is one value even where lanes leave early.
	if s := compile(t, irtest.Mandelbrot()).Stats(&Launch{Shape: []int{9}, In: []Operand{array(ir.F64, 9, nil), array(ir.F64, 9, nil), {Type: ir.I64, Scalar: 5}}, Out: results(irtest.Mandelbrot(), 9)}); s.Shared != 2 {
		t.Errorf("mandelbrot: %+v", s)
	}
}
