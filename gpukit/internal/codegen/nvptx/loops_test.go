package nvptx

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"gpunotes/gpukit/internal/ir"
	"gpunotes/gpukit/internal/ir/irtest"
)

// TestPassesRandom compares random functions with what the passes on control
// make of them.
func TestPassesRandom(t *testing.T) {
	unrolled := 0
	for k, o := range []irtest.Options{{Faults: true}, {Memory: true, Faults: true}, {Memory: true, Threads: true, Faults: true}} {
		for seed := range uint64(150) {
			r := rand.New(rand.NewPCG(seed, uint64(k)+40))
			f := irtest.Random(r, fmt.Sprint("f", seed), o)
			if seed%3 > 0 {
				f = ir.Optimize(f)
			}
			flat := flatten(f)
			whole := unroll(flat, false)
			blocks := unroll(flat, true)
			in := irtest.NewInputs(r, f, 2, 1+r.IntN(9))
			want := in.Evaluate(f)
			for i, g := range []*ir.Func{flat, whole, blocks, flatten(ir.Optimize(whole)), flatten(ir.Optimize(blocks))} {
				err := ir.Verify(g)
				if err == nil {
					err = want.Compare(f, in.Evaluate(g))
				}
				if err != nil {
					t.Fatalf("seed %d, %+v, pass %d: %v\n%v\n%v", seed, o, i, err, f, g)
				}
			}
			if len(flat.Types) != len(whole.Types) || len(flat.Types) != len(blocks.Types) {
				unrolled++
			}
		}
	}
	if t.Logf("%d functions with unrolled loops", unrolled); unrolled < 50 {
		t.Error("too few")
	}
}

// TestCounters runs loops that count in every way, with and without an early
// exit, as they are, unrolled, and on the device.
func TestCounters(t *testing.T) {
	kept := 0
	for _, op := range []ir.Op{ir.OpLt, ir.OpLe, ir.OpGt, ir.OpGe, ir.OpNe, ir.OpEq} {
		for _, step := range []int64{1, 2, -1, -3, 0} {
			for _, first := range []int64{0, 1, -2, 7, math.MaxInt64 - 2} {
				for _, shape := range []int{0, 1, 2, 3} { // limit constant or not, compared from which side
					for _, limit := range []int64{0, 5, 20, -4, math.MaxInt64} {
						f := ir.NewFunc("count", ir.I64, ir.I64)
						n, leave := f.AddParam("n", ir.I64), f.AddParam("leave", ir.I64)
						b := ir.NewBuilder(f)
						if shape&1 == 0 {
							n = b.Const(ir.I64, ir.Bits(limit))
						}
						zero := b.Const(ir.I64, 0)
						r := b.Loop([]ir.Value{b.Const(ir.I64, ir.Bits(first)), zero}, []ir.Type{ir.I64, ir.I64}, func(c []ir.Value) {
							x, y, o := c[0], n, op
							if shape&2 != 0 {
								x, y, o = n, c[0], mirrored[op]
							}
							b.If(b.Op(o, x, y), nil, func() { b.Yield() }, func() { b.Break(1, c[0], c[1]) })
							sum := b.Op(ir.OpAdd, b.Op(ir.OpMul, c[1], b.Const(ir.I64, 3)), c[0])
							b.If(b.Op(ir.OpEq, c[0], leave), nil, func() { b.Break(1, zero, sum) }, func() { b.Yield() })
							b.Yield(b.Op(ir.OpAdd, c[0], b.Const(ir.I64, ir.Bits(step))), sum)
						})
						b.Yield(r...)
						if err := ir.Verify(f); err != nil {
							t.Fatal(err)
						}
						var workers [][]ir.Bits
						for _, l := range []int64{-100, 3, 9} {
							workers = append(workers, []ir.Bits{ir.Bits(limit), ir.Bits(l)})
						}
						e := &ir.Evaluator{Steps: 1500}
						flat := flatten(f)
						whole, blocks := unroll(flat, false), unroll(flat, true)
						var endless bool
						want := outcome{worker: -1}
						for _, w := range workers {
							res, err := e.Run(f, w...)
							endless = endless || err != nil
							want.results = append(want.results, res)
						}
						def := definitions(flat)
						ends := true
						ir.Walk(flat.Body, func(in *ir.Instr) {
							if in.Op == ir.OpLoop {
								c, ok := counted(flat, def, in)
								ends = ok && c.ends(flat, def)
							}
						})
						if ends {
							kept++
						}
						if endless {
							if ends && limit < 1000 && first < 1000 {
								t.Errorf("%v %d step %d from %d is said to end", op, limit, step, first)
							}
							continue
						}
						for _, g := range []*ir.Func{whole, blocks, ir.Optimize(blocks)} {
							if err := ir.Verify(g); err != nil {
								t.Fatalf("%v\n%v\n%v", err, f, g)
							}
							for i, w := range workers {
								res, err := (&ir.Evaluator{Steps: 1e5}).Run(g, w...)
								if err != nil || res[0] != want.results[i][0] || res[1] != want.results[i][1] {
									t.Fatalf("%v %d step %d from %d, %v: %d, %v, want %d\n%v\n%v", op, limit, step, first, w, res, err, want.results[i], f, g)
								}
							}
						}
						if limit != 5 && limit != 20 {
							continue
						}
						k := &Kernel{Name: "count", Func: f, In: []Access{ByValue, Contiguous}, Out: []Access{Contiguous, Contiguous}, Poll: true}
						m, entries := emit(t, Target{SM: 61}, k)
						got, err := execute(newMachine(t, m), k, entries[0], workers, 1, 2)
						if err == nil {
							err = compare(f, got, want, workers)
						}
						if err != nil {
							t.Fatalf("%v\n%v\n%v", err, f, m)
						}
					}
				}
			}
		}
	}
	t.Logf("%d loops are known to end", kept)
}

// TestPolls: loops that are sure to end do not look at the cancel word.
func TestPolls(t *testing.T) {
	// steps goes from 0 in steps to a constant, a length, or an argument.
	steps := func(op ir.Op, step, limit int64, kind ir.ParamKind) *ir.Func {
		f := ir.NewFunc("steps")
		a := f.AddArray("a", ir.F64, 1)
		n := f.AddParam("n", ir.I64)
		b := ir.NewBuilder(f)
		switch kind {
		case ir.Shape:
			n = a.Shape[0]
		case ir.Captured:
			n = b.Const(ir.I64, ir.Bits(limit))
		}
		b.Loop([]ir.Value{b.Const(ir.I64, 0)}, nil, func(c []ir.Value) {
			b.If(b.Op(op, c[0], n), nil, func() { b.Store(a.Mem, c[0], b.Const(ir.F64, 0)); b.Yield() }, func() { b.Break(1) })
			b.Yield(b.Op(ir.OpAdd, c[0], b.Const(ir.I64, ir.Bits(step))))
		})
		b.Yield()
		return f
	}
	for _, c := range []struct {
		name  string
		f     *ir.Func
		polls int
	}{
		{"by ones to an argument", steps(ir.OpLt, 1, 0, ir.Scalar), 0},
		{"by twos to an argument", steps(ir.OpLt, 2, 0, ir.Scalar), 1},
		{"by ones up to an argument and it", steps(ir.OpLe, 1, 0, ir.Scalar), 1},
		{"by ones until it is an argument", steps(ir.OpNe, 1, 0, ir.Scalar), 1},
		{"by twos to a length", steps(ir.OpLt, 2, 0, ir.Shape), 0},
		{"by ones up to a length and it", steps(ir.OpLe, 1, 0, ir.Shape), 1},
		{"by sevens to a number", steps(ir.OpLt, 7, 1000000, ir.Captured), 0},
		{"by sevens up to a number and it", steps(ir.OpLe, 7, 1000000, ir.Captured), 0},
		{"by sevens to the largest number", steps(ir.OpLt, 7, math.MaxInt64, ir.Captured), 1},
		{"down", steps(ir.OpGt, -3, -1000000, ir.Captured), 0},
		{"away", steps(ir.OpLt, -3, 1000000, ir.Captured), 1},

		{"vest", vest(), 0},
		{"sum, by halves", sum(64, 64), 1},
		{"collatz", collatz(), 1},
		{"mandelbrot", mandelbrot(), 0},
		{"primes, the inner one by squares", primes(), 1},
	} {
		k := &Kernel{Name: "k", Func: ir.Optimize(c.f), Poll: true, Threads: meets(c.f)}
		for range c.f.Results {
			k.Out = append(k.Out, Contiguous)
		}
		m, entries := emit(t, Target{SM: 61}, k)
		cancel := 0
		for _, p := range entries[0].Params {
			if p.Kind == Cancel {
				cancel++
			}
		}
		if n := opcodes(m.Func("k"), "ld.volatile"); n != c.polls || cancel != min(c.polls, 1) {
			t.Errorf("%s looks in %d places at %d cancel words, want %d\n%v", c.name, n, cancel, c.polls, m)
		}
	}
}
