package cpu

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"gpunotes/gpukit/internal/ir"
	"gpunotes/gpukit/internal/ir/irtest"
)

// kernel is a function on blocks of threads that a test fills.
type kernel struct {
	*ir.Builder
	f                    *ir.Func
	read, written        ir.ArrayParam
	thread, worker, dim  ir.Value
	x                    ir.Value // a scalar, any int64
	some                 ir.Value // a scalar bool
	value, other         ir.Value // scalars of the element type
	local, table, shared ir.Mem
}

func (k *kernel) int(x int) ir.Value { return k.Const(ir.I64, ir.Bits(int64(x))) }

// own is slot i of the worker in the written array.
func (k *kernel) own(i ir.Value) ir.Value {
	at := k.Op(ir.OpAdd, k.Op(ir.OpMul, k.worker, k.int(irtest.Slots)), i)
	return k.Op(ir.OpAdd, k.written.Offset, k.Op(ir.OpMul, at, k.written.Stride[0]))
}

func (k *kernel) readAt(i ir.Value) ir.Value {
	return k.Op(ir.OpAdd, k.read.Offset, k.Op(ir.OpMul, k.Op(ir.OpRem, k.Op(ir.OpAnd, i, k.int(1<<40-1)), k.read.Shape[0]), k.read.Stride[0]))
}

// newKernel makes a function on arrays of type t; meets gives it shared memory.
func newKernel(name string, t ir.Type, meets bool, results []ir.Type, fill func(k *kernel)) *ir.Func {
	f := ir.NewFunc(name, results...)
	k := &kernel{Builder: ir.NewBuilder(f), f: f}
	k.x, k.some, k.value, k.other = f.AddParam("x", ir.I64), f.AddParam("some", ir.Bool), f.AddParam("value", t), f.AddParam("other", t)
	k.read, k.written = f.AddArray("read", t, 1), f.AddArray("written", t, 1)
	k.thread = f.AddParamOf(ir.Param{Name: "threadIdx.x", Kind: ir.ThreadIdx}, ir.I64)
	block := f.AddParamOf(ir.Param{Name: "blockIdx.x", Kind: ir.BlockIdx}, ir.I64)
	k.dim = f.AddParamOf(ir.Param{Name: "blockDim.x", Kind: ir.BlockDim}, ir.I64)
	k.local = f.AddMem(ir.Memory{Name: "local", Space: ir.Local, Elem: t, Len: 4})
	k.table = f.AddMem(ir.Memory{Name: "table", Space: ir.Constant, Elem: t, Len: 4, Data: []ir.Bits{0, 1, 0, 1}})
	if meets {
		k.shared = f.AddMem(ir.Memory{Name: "shared", Space: ir.Shared, Elem: t})
	}
	k.Pos = ir.Pos{File: name, Line: 1, Col: 1}
	k.worker = k.Op(ir.OpAdd, k.Op(ir.OpMul, block, k.dim), k.thread)
	fill(k)
	return f
}

// checkKernel runs f in blocks of many sizes.
func checkKernel(t *testing.T, f *ir.Func, groups ...int) {
	t.Helper()
	if len(groups) == 0 {
		groups = []int{1, 31, 32, 33, 256, 1024}
	}
	p, d := compile(t, f), newDice(uint64(len(f.Name)))
	for _, group := range groups {
		in := irtest.NewInputs(d.Rand, f, 1+100/group, group)
		want := in.Evaluate(f)
		for j := range 2 {
			l, run := d.blocks(f, in, j == 1)
			if err := want.Compare(f, run(p)); err != nil {
				t.Fatalf("%s, %d blocks of %d, shape %v, %d goroutines: %v\n%v\n%s", f.Name, in.Groups, group, l.Shape, l.Goroutines, err, f, p.Describe(&l))
			}
		}
	}
}

// TestEveryAccess loads and stores every type in every space, with every form
// of index, in all lanes and in some.
func TestEveryAccess(t *testing.T) {
	forms := map[string]bool{}
	for _, ty := range ir.Types {
		for _, some := range []bool{false, true} {
			f := newKernel(fmt.Sprint("access", ty, some), ty, true, []ir.Type{ty, ty, ty, ty, ty, ty}, func(k *kernel) {
				body := func() []ir.Value {
					i := k.Op(ir.OpAnd, k.x, k.int(3))
					k.Store(k.local, k.int(2), k.value)
					k.Store(k.local, i, k.other)
					k.Store(k.written.Mem, k.own(k.int(1)), k.value)
					k.Store(k.written.Mem, k.own(i), k.other)
					k.Store(k.shared, k.thread, k.value)
					k.Barrier()
					k.Barrier() // lanes that left before are gone
					out := []ir.Value{
						k.Load(k.read.Mem, k.readAt(k.int(5))), k.Load(k.read.Mem, k.readAt(k.x)), k.Load(k.written.Mem, k.own(k.int(1))),
						k.Load(k.table, i), k.Load(k.local, i), k.Load(k.shared, k.thread),
					}
					k.Store(k.written.Mem, k.own(k.int(2)), k.Load(k.local, k.int(2)))
					k.Store(k.written.Mem, k.own(k.int(3)), k.Load(k.table, k.int(1)))
					k.Clear(k.local)
					k.Store(k.written.Mem, k.own(k.int(0)), k.Load(k.local, i))
					return out
				}
				if some {
					k.If(k.some, nil, func() { k.Yield() }, func() {
						k.Break(1, k.value, k.value, k.value, k.value, k.value, k.value)
					})
				}
				k.Yield(body()...)
			})
			checkKernel(t, f)
			forms[machineOf(t, f, Portable).Describe(nil)] = true
			// Consecutive elements.
			g := newKernel(fmt.Sprint("consecutive", ty, some), ty, false, []ir.Type{ty}, func(k *kernel) {
				at := k.Op(ir.OpAdd, k.written.Offset, k.worker)
				if some {
					k.If(k.some, nil, func() { k.Yield() }, func() { k.Break(1, k.value) })
				}
				old := k.Load(k.written.Mem, at)
				k.Store(k.written.Mem, at, k.value)
				k.Yield(old)
			})
			d := newDice(5)
			for _, group := range []int{1, 3, 64, 700} {
				in := irtest.NewInputs(d.Rand, g, 3, group)
				in.Mems[1] = in.Mems[1][:3*group]
				for w := range in.Args {
					in.Args[w][7] = 0
				}
				want := in.Evaluate(g)
				p := compile(t, g)
				for j := range 2 {
					_, run := d.blocks(g, in, j == 1)
					if err := want.Compare(g, run(p)); err != nil {
						t.Fatalf("%s, blocks of %d: %v\n%v", g.Name, group, err, g)
					}
				}
			}
			forms[machineOf(t, g, Portable).Describe(&Launch{Shape: []int{2, 256}, In: affineInputs(g)})] = true
		}
	}
	h := histogram()
	hl := grid2(h, [2]int{3, 1}, [2]int{64, 1}, [][]int{{100}, {256}})
	forms[machineOf(t, h, Portable).Describe(&hl)] = true
	s := newKernel("stride of the grid", ir.U8, false, nil, func(k *kernel) {
		k.Loop([]ir.Value{k.worker}, nil, func(c []ir.Value) {
			k.If(k.Op(ir.OpGe, c[0], k.written.Shape[0]), nil, func() { k.Break(1) }, func() { k.Yield() })
			k.Store(k.written.Mem, k.Op(ir.OpAdd, k.written.Offset, c[0]), k.value)
			k.Yield(k.Op(ir.OpAdd, c[0], k.dim))
		})
		k.Yield()
	})
	forms[machineOf(t, s, Portable).Describe(&Launch{Shape: []int{2, 256}, In: affineInputs(s)})] = true
	all := strings.Builder{}
	for d := range forms {
		all.WriteString(d)
	}
	for _, form := range []string{"one", "ramp", "affine", "any", "local, one", "local"} {
		for _, op := range []string{"load", "store"} {
			if op+" "+form+" " == "store one " {
				continue // TestAllStoreInOnePlace
			}
			if !strings.Contains(all.String(), op+" ["+form+"]") {
				t.Errorf("no %s with form %q", op, form)
			}
		}
	}
}

// affineInputs gives coordinates as indices and everything else as scalars.
func affineInputs(f *ir.Func) []Operand {
	var in []Operand
	for _, p := range f.Params {
		o := Operand{Type: f.Types[p.Value]}
		switch p.Kind {
		case ir.ThreadIdx:
			o.Index, o.Strides = true, []int{0, 1}
		case ir.BlockIdx:
			o.Index, o.Strides = true, []int{1, 0}
		}
		in = append(in, o)
	}
	return in
}

// TestAllStoreInOnePlace: some worker's value stays.
func TestAllStoreInOnePlace(t *testing.T) {
	f := ir.NewFunc("one place")
	x, m := f.AddParam("x", ir.I64), f.AddArray("a", ir.I64, 1)
	b := ir.NewBuilder(f)
	b.Store(m.Mem, m.Offset, x)
	b.Yield()
	for _, n := range []int{1, 5, 5000} {
		data := []int64{-1, -1, -1}
		l := Launch{Shape: []int{n}, In: []Operand{{Type: ir.I64, Index: true, Offset: 10, Strides: []int{1}}, {Type: ir.I64, Scalar: 1}, {Type: ir.I64}, {Type: ir.I64}}, Mems: []any{data}, Goroutines: 2}
		if err := compile(t, f).Run(l); err != nil || data[1] < 10 || data[1] >= int64(10+n) || data[0] != -1 || data[2] != -1 {
			t.Error(n, err, data)
		}
	}
}

// TestEveryAtomic runs every kind on every type and space; each worker has its
// own element, so that the order does not matter.
func TestEveryAtomic(t *testing.T) {
	tried := 0
	for _, ty := range ir.Types {
		for k := ir.AtomicAdd; k <= ir.CompareSwap; k++ {
			if ty == ir.Bool || ty.IsFloat() && k >= ir.AtomicAnd && k <= ir.AtomicXor {
				continue
			}
			tried++
			for _, some := range []bool{false, true} {
				f := newKernel(fmt.Sprint("atomic", k, ty, some), ty, true, []ir.Type{ty, ty, ty, ty}, func(b *kernel) {
					if some {
						b.If(b.some, nil, func() { b.Yield() }, func() { b.Break(1, b.value, b.value, b.value, b.value) })
					}
					args := []ir.Value{b.value}
					if k == ir.CompareSwap {
						args = []ir.Value{b.value, b.other}
					}
					i := b.Op(ir.OpAnd, b.x, b.int(3))
					b.Store(b.local, i, b.other)
					b.Store(b.shared, b.thread, b.other)
					out := []ir.Value{
						b.Atomic(k, b.written.Mem, b.own(i), args...), b.Atomic(k, b.written.Mem, b.own(i), args...),
						b.Atomic(k, b.local, i, args...), b.Atomic(k, b.shared, b.thread, args...),
					}
					b.Atomic(k, b.written.Mem, b.own(b.int(0)), args...) // its result is not looked at
					b.Store(b.written.Mem, b.own(b.int(1)), b.Load(b.local, i))
					b.Store(b.written.Mem, b.own(b.int(2)), b.Load(b.shared, b.thread))
					b.Yield(out...)
				})
				checkKernel(t, f, 1, 70)
			}
		}
	}
	if tried != 8*8+2*5 {
		t.Errorf("%d combinations", tried)
	}
}

// TestAtomicsAreAtomic lets many goroutines, of several runs, add to few
// elements, one of which is the same for all workers.
func TestAtomicsAreAtomic(t *testing.T) {
	defer func(ns float64) { pollEvery = ns }(pollEvery)
	pollEvery = 1
	const n, runs, bins = 3_000, 3, 3
	for _, ty := range ir.Types {
		if ty == ir.Bool {
			continue
		}
		f := ir.NewFunc("count")
		i, m := f.AddParam("i", ir.I64), f.AddArray("a", ty, 1)
		b := ir.NewBuilder(f)
		one := b.Const(ty, ir.Convert(ty, ir.I64, 1))
		b.Atomic(ir.AtomicAdd, m.Mem, b.Op(ir.OpRem, i, i64(b, bins-1)), one)
		old := b.Atomic(ir.AtomicAdd, m.Mem, i64(b, bins-1), one)
		// Take it back and add again, by comparing.
		b.Loop([]ir.Value{old}, nil, func(c []ir.Value) {
			seen := b.Atomic(ir.CompareSwap, m.Mem, i64(b, bins-1), c[0], b.Op(ir.OpAdd, c[0], one))
			b.If(b.Op(ir.OpEq, seen, c[0]), nil, func() { b.Break(1) }, func() { b.Yield() })
			b.Yield(seen)
		})
		b.Yield()
		p := compile(t, f)
		data := makeData(ty, bins)
		var wg sync.WaitGroup
		for range runs {
			wg.Add(1)
			go func() {
				defer wg.Done()
				l := Launch{Shape: []int{n}, In: []Operand{{Type: ir.I64, Index: true, Strides: []int{1}}, {Type: ir.I64}, {Type: ir.I64}, {Type: ir.I64}}, Mems: []any{data}, Goroutines: 4}
				if err := p.Run(l); err != nil {
					t.Error(err)
				}
			}()
		}
		wg.Wait()
		for j, want := range []int64{runs * n / 2, runs * n / 2, 2 * runs * n} {
			if got := get(data, ty, j); got != ir.Convert(ty, ir.I64, ir.Bits(want)) {
				t.Errorf("%v: bin %d is %s, want %d", ty, j, ir.FormatBits(ty, got), want)
			}
		}
	}
}

// TestEveryExchange runs every shuffle of every type, and every vote, on lanes
// some of which have left.
func TestEveryExchange(t *testing.T) {
	for _, ty := range ir.Types {
		for kind := ir.ShuffleIdx; kind <= ir.ShuffleXor; kind++ {
			f := newKernel(fmt.Sprint("shuffle", kind, ty), ty, true, []ir.Type{ty, ty, ty}, func(k *kernel) {
				a := k.Shuffle(kind, k.value, k.int(3))
				k.If(k.some, nil, func() { k.Yield() }, func() { k.Break(1, a, a, a) })
				k.WarpBarrier()
				k.Yield(a, k.Shuffle(kind, k.value, k.int(1)), k.Shuffle(kind, k.other, k.Op(ir.OpSub, k.Op(ir.OpAnd, k.x, k.int(63)), k.int(4))))
			})
			checkKernel(t, f)
		}
	}
	for kind, res := range map[ir.Kind]ir.Type{ir.VoteAny: ir.Bool, ir.VoteAll: ir.Bool, ir.Ballot: ir.U32} {
		f := newKernel(fmt.Sprint("vote", kind), ir.I64, true, []ir.Type{res, res, res}, func(k *kernel) {
			a := k.Vote(kind, k.some)
			k.If(k.Op(ir.OpLt, k.x, k.int(4)), nil, func() { k.Yield() }, func() { k.Break(1, a, a, a) })
			k.Yield(a, k.Vote(kind, k.some), k.Vote(kind, k.Op(ir.OpGt, k.x, k.int(-7))))
		})
		checkKernel(t, f)
	}
}

// TestEveryFaultInPlace: whatever can fail does, in some lanes, in a loop and
// out of it, in functions with memory.
func TestEveryFaultInPlace(t *testing.T) {
	ops := map[string]func(k *kernel, x ir.Value){
		"bounds":       func(k *kernel, x ir.Value) { k.Bounds(x, k.int(7)) },
		"affine":       func(k *kernel, x ir.Value) { k.Bounds(k.Op(ir.OpSub, k.worker, k.int(2)), k.dim) },
		"both vary":    func(k *kernel, x ir.Value) { k.Bounds(k.thread, k.Op(ir.OpAdd, x, k.int(20))) },
		"one for all":  func(k *kernel, x ir.Value) { k.Bounds(k.int(9), k.dim) },
		"slicebounds":  func(k *kernel, x ir.Value) { k.SliceBounds(k.int(2), x, k.int(8)) },
		"slice, equal": func(k *kernel, x ir.Value) { k.SliceBounds(k.int(0), k.dim, k.int(40)) },
		"quotient": func(k *kernel, x ir.Value) {
			k.Store(k.written.Mem, k.own(k.int(0)), k.Convert(ir.I64, k.Op(ir.OpDiv, k.int(7), x)))
		},
		"remainder": func(k *kernel, x ir.Value) {
			k.Store(k.written.Mem, k.own(k.int(0)), k.Op(ir.OpRem, k.value, k.Op(ir.OpAnd, x, k.int(3))))
		},
		"shift": func(k *kernel, x ir.Value) {
			k.Store(k.written.Mem, k.own(k.int(0)), k.Op(ir.OpShl, k.value, k.Convert(ir.I8, x)))
		},
	}
	failed := map[string]int{}
	for name, op := range ops {
		for _, meets := range []bool{false, true} {
			for _, loop := range []bool{false, true} {
				f := newKernel(fmt.Sprint(name, meets, loop), ir.I64, meets, []ir.Type{ir.I64, ir.I64}, func(k *kernel) {
					y := k.Op(ir.OpMul, k.x, k.int(3)) // lives on behind the fault
					if loop {
						k.Loop([]ir.Value{k.int(0), k.x}, nil, func(c []ir.Value) {
							k.If(k.Op(ir.OpGt, c[0], k.Op(ir.OpAnd, k.x, k.int(3))), nil, func() { k.Break(1) }, func() { k.Yield() })
							k.If(k.some, nil, func() { op(k, c[1]); k.Yield() }, func() { k.Yield() })
							k.Yield(k.Op(ir.OpAdd, c[0], k.int(1)), k.Op(ir.OpSub, c[1], k.int(1)))
						})
					} else {
						op(k, k.x)
					}
					if meets {
						k.Barrier()
					}
					k.Bounds(k.Op(ir.OpAnd, k.x, k.int(63)), k.int(60))
					k.Yield(y, k.Op(ir.OpAdd, y, k.worker))
				})
				checkKernel(t, f, 1, 33, 256)
				d := newDice(3)
				in := irtest.NewInputs(d.Rand, f, 3, 40)
				if in.Evaluate(f).Err != nil {
					failed[name]++
				}
			}
		}
	}
	for name := range ops {
		if failed[name] == 0 {
			t.Errorf("%s never fails", name)
		}
	}
}

// TestLowestFaultInPlace is TestLowestFault for a function that writes.
func TestLowestFaultInPlace(t *testing.T) {
	f := ir.NewFunc("fault")
	i, x := f.AddParam("i", ir.I64), f.AddArray("x", ir.I64, 1)
	b := ir.NewBuilder(f)
	v := b.Load(x.Mem, i)
	b.If(b.Op(ir.OpEq, v, i64(b, 7)), nil, func() { b.Loop(nil, nil, func([]ir.Value) { b.Yield() }); b.Yield() }, func() { b.Yield() })
	b.Store(x.Mem, i, b.Op(ir.OpAdd, v, i64(b, 100)))
	b.Store(x.Mem, i, b.Op(ir.OpDiv, i64(b, 100), v))
	b.Yield()
	p := compile(t, f)
	defer func(ns float64) { pollEvery = ns }(pollEvery)
	pollEvery = 1
	const n = 200_000
	for _, bad := range []int{0, 1, 4999, 77_777, n - 1} {
		for _, g := range []int{1, 2, 8} {
			xs := make([]int64, n)
			for i := range xs {
				xs[i] = 1
				if i >= bad && (i-bad)%613 == 0 {
					xs[i] = 0
				}
				if i > bad+1100 && i%500 == 17 {
					xs[i] = 7 // without end
				}
			}
			l := Launch{Shape: []int{n}, In: []Operand{{Type: ir.I64, Index: true, Strides: []int{1}}, {Type: ir.I64}, {Type: ir.I64}, {Type: ir.I64}}, Mems: []any{xs}, Goroutines: g}
			var we *WorkerError
			if err := p.Run(l); !errors.As(err, &we) || we.Worker != bad || !strings.Contains(err.Error(), "100 / 0") {
				t.Fatalf("%d goroutines: %v, want worker %d", g, err, bad)
			}
			l.Mems = []any{[]int64{1, 2, 5}}
			l.Shape = []int{3}
			if err := p.Run(l); err != nil || l.Mems[0].([]int64)[2] != 20 {
				t.Error(err, l.Mems)
			}
		}
	}
}

// TestWrongIndex: an index that no check has seen and that is out of range is an
// error, and the next run works.
func TestWrongIndex(t *testing.T) {
	f := ir.NewFunc("wrong", ir.F64)
	i, x := f.AddParam("i", ir.I64), f.AddArray("x", ir.F64, 1)
	b := ir.NewBuilder(f)
	b.Yield(b.Load(x.Mem, i))
	p := machineOf(t, f, Portable) // machine code reads what is there
	for _, g := range []int{1, 4} {
		for _, strides := range [][]int{{1}, {2}} {
			l := Launch{Shape: []int{50_000}, In: []Operand{{Type: ir.I64, Index: true, Strides: strides}, {Type: ir.I64}, {Type: ir.I64}, {Type: ir.I64}}, Out: results(f, 50_000), Mems: []any{make([]float64, 49_000)}, Goroutines: g}
			if err := p.Run(l); err == nil || !strings.Contains(err.Error(), "internal error") {
				t.Error(err)
			}
			l.Mems = []any{make([]float64, 100_000)}
			if err := p.Run(l); err != nil {
				t.Error(err)
			}
		}
	}
}

// TestWrongMemories: an error, and the next run works.
func TestWrongMemories(t *testing.T) {
	f := newKernel("wrong", ir.F64, true, nil, func(k *kernel) {
		k.Store(k.shared, k.thread, k.value)
		k.Barrier()
		k.Yield()
	})
	p := compile(t, f)
	good := Launch{Shape: []int{4, 100}, In: affineInputs(f), Mems: []any{make([]float64, 10), make([]float64, 10)}, Group: 100, DynamicShared: 100}
	for name, change := range map[string]func(l *Launch){
		"no memory":     func(l *Launch) { l.Mems = nil },
		"type":          func(l *Launch) { l.Mems = []any{make([]float32, 10), make([]float64, 10)} },
		"group":         func(l *Launch) { l.Group = 70 },
		"large group":   func(l *Launch) { l.Shape = []int{1, 2000}; l.Group = 2000 },
		"negative":      func(l *Launch) { l.Group = -1 },
		"shared":        func(l *Launch) { l.DynamicShared = -1 },
		"shared, short": func(l *Launch) { l.DynamicShared = 99 },
		"index type": func(l *Launch) {
			l.In = append([]Operand{}, l.In...)
			l.In[2].Index = true
			l.In[2].Strides = []int{0, 0}
		},
		"index strides": func(l *Launch) { l.In = append([]Operand{}, l.In...); l.In[0].Index = true },
	} {
		l := good
		change(&l)
		if err := p.Run(l); err == nil {
			t.Errorf("%s: no error", name)
		}
		if err := p.Run(good); err != nil {
			t.Errorf("after %s: %v", name, err)
		}
	}
}

// TestPrint: lines in the order of workers, those of a worker in its own, and
// no more than MaxLines.
func TestPrint(t *testing.T) {
	f := ir.NewFunc("print")
	i, times, stop := f.AddParam("i", ir.I64), f.AddParam("times", ir.I64), f.AddParam("stop", ir.I64)
	b := ir.NewBuilder(f)
	b.Loop([]ir.Value{i64(b, 0)}, nil, func(c []ir.Value) {
		b.If(b.Op(ir.OpGe, c[0], times), nil, func() { b.Break(1) }, func() { b.Yield() })
		b.Print([]string{"", " ", ""}, i, c[0])
		b.If(b.Op(ir.OpEq, i, stop), nil, func() { b.Bounds(i, i64(b, 0)); b.Yield() }, func() { b.Yield() })
		b.Yield(b.Op(ir.OpAdd, c[0], i64(b, 1)))
	})
	b.Yield()
	p := compile(t, f)
	defer func(ns float64) { pollEvery = ns }(pollEvery)
	pollEvery = 1
	run := func(n, times, stop, g int) ([]string, error) {
		var lines []string
		err := p.Run(Launch{Shape: []int{n}, In: []Operand{{Type: ir.I64, Index: true, Strides: []int{1}}, {Type: ir.I64, Scalar: ir.Bits(times)}, {Type: ir.I64, Scalar: ir.Bits(int64(stop))}}, Goroutines: g,
			Print: func(s string) { lines = append(lines, s) }})
		return lines, err
	}
	for _, g := range []int{1, 4} {
		for _, c := range []struct{ n, times, stop, want int }{{10, 3, -1, 30}, {3000, 2, -1, 6000}, {100_000, 1, -1, MaxLines}, {40_000, 7, -1, MaxLines}, {2, 50_000, -1, MaxLines}, {3000, 2, 1234, 2*1234 + 1}} {
			lines, err := run(c.n, c.times, c.stop, g)
			if (err != nil) != (c.stop >= 0) {
				t.Fatal(err)
			}
			if more := c.n*c.times - MaxLines; c.stop < 0 && more > 0 {
				if last, want := lines[len(lines)-1], fmt.Sprintf("... and %d more lines", more); last != want {
					t.Errorf("%+v: %q, want %q", c, last, want)
				}
				lines = lines[:len(lines)-1]
			}
			if len(lines) != c.want {
				t.Errorf("%+v: %d lines", c, len(lines))
			}
			for j, s := range lines {
				if want := fmt.Sprint(j/c.times, " ", j%c.times); s != want {
					t.Fatalf("%+v: line %d is %q, want %q", c, j, s, want)
				}
			}
		}
	}
	if err := p.Run(Launch{Shape: []int{5}, In: []Operand{{Type: ir.I64}, {Type: ir.I64, Scalar: 3}, {Type: ir.I64, Scalar: 9}}}); err != nil {
		t.Error("nobody listens:", err)
	}
}

// TestCancelThreads stops blocks of threads that meet without end, and reports
// what was printed.
func TestCancelThreads(t *testing.T) {
	f := newKernel("endless", ir.I64, true, nil, func(k *kernel) {
		k.Print([]string{"begin"})
		k.Loop(nil, nil, func([]ir.Value) { k.Barrier(); k.Yield() })
		k.Unreachable()
	})
	for _, g := range []int{1, 8} {
		start, lines := time.Now(), 0
		l := Launch{Shape: []int{50, 64}, In: affineInputs(f), Mems: []any{[]int64{}, []int64{}}, Group: 64, Goroutines: g, DynamicShared: 1,
			Cancelled: func() bool { return time.Since(start) > 20*time.Millisecond }, Print: func(string) { lines++ }}
		if err := compile(t, f).Run(l); err != ErrCancelled || time.Since(start) > time.Second || lines == 0 {
			t.Error(err, time.Since(start), lines)
		}
	}
}

// TestBoundsWithoutMemory: the check ends the block, and the worker runs again.
func TestBoundsWithoutMemory(t *testing.T) {
	f := ir.NewFunc("checked", ir.I64)
	i, n := f.AddParam("i", ir.I64), f.AddParam("n", ir.I64)
	b := ir.NewBuilder(f)
	b.Bounds(i, n)
	b.SliceBounds(i, n, i64(b, 50))
	b.Yield(b.Op(ir.OpSub, n, i))
	p := compile(t, f)
	for _, bad := range []int{-1, 0, 333, 999} {
		l := Launch{Shape: []int{1000}, Out: results(f, 1000), Goroutines: 2}
		l.In = []Operand{array(ir.I64, 1000, func(w int) ir.Bits {
			if w == bad || bad > 0 && w == 999 {
				return 100
			}
			return ir.Bits(w % 20)
		}), {Type: ir.I64, Scalar: 20}}
		if err := compare(p, l, evaluate(f, &l)); err != nil {
			t.Error(err)
		}
		l.In[1].Scalar = 51 // the slice is too long, for all
		if err := compare(p, l, evaluate(f, &l)); err != nil {
			t.Error(err)
		}
	}
}

// TestDescribeMemory reads the text of a program with memory and loops.
func TestDescribeMemory(t *testing.T) {
	f := product()
	l := slicesOf(f, 100, 100, []float64{}, []float64{}, []float64{})
	d := machineOf(t, f, Portable).Describe(&l)
	for _, part := range []string{"load [ramp] a", "store [ramp] out", "guard bounds", "loop with", "next "} {
		if !strings.Contains(d, part) {
			t.Errorf("no %q in\n%s", part, d)
		}
	}
	f = histogram()
	l = grid2(f, [2]int{3, 1}, [2]int{64, 1}, [][]int{{100}, {256}})
	for _, part := range []string{"atomic add s", "barrier\n", "one value per row"} {
		if d := compile(t, f).Describe(&l); !strings.Contains(d, part) {
			t.Errorf("no %q in\n%s", part, d)
		}
	}
}

// TestBoundsAfterLeaving: lanes change their order when others leave, so that
// the first and the last one do not speak for those between.
func TestBoundsAfterLeaving(t *testing.T) {
	for _, meets := range []bool{false, true} {
		f := newKernel(fmt.Sprint("left", meets), ir.I64, meets, nil, func(k *kernel) {
			k.If(k.Op(ir.OpEq, k.thread, k.int(1)), nil, func() { k.Break(1) }, func() { k.Yield() })
			k.Bounds(k.thread, k.Op(ir.OpSub, k.dim, k.int(1)))
			k.Yield()
		})
		checkKernel(t, f, 3, 10, 100, 1000)
	}
}

// TestNothing runs on empty memories, on no workers, and with shared memory of
// no length.
func TestNothing(t *testing.T) {
	f := newKernel("nothing", ir.U16, true, []ir.Type{ir.I64}, func(k *kernel) {
		k.Barrier()
		n := count(k.Builder, k.read.Shape[0], k.int(7), func(i, v ir.Value) ir.Value {
			return k.Op(ir.OpAdd, v, k.Convert(ir.I64, k.Load(k.read.Mem, i)))
		})
		k.Yield(n)
	})
	p := compile(t, f)
	for _, mems := range [][]any{{[]uint16{}, []uint16{}}, {nil, nil}, {[]uint16(nil), []uint16(nil)}} {
		l := Launch{Shape: []int{3, 5}, Group: 5, In: affineInputs(f), Mems: mems, Out: results(f, 15)}
		l.Out[0].Strides = []int{5, 1}
		if err := p.Run(l); err != nil || get(l.Out[0].Data, ir.I64, 14) != 7 {
			t.Error(err, l.Out[0].Data)
		}
		l.Shape = []int{0, 5}
		if err := p.Run(l); err != nil {
			t.Error(err)
		}
	}
}

// TestLargeLocalMemory: blocks get shorter, and hold no more than they need.
func TestLargeLocalMemory(t *testing.T) {
	const n = 100_000
	f := ir.NewFunc("large", ir.F64)
	x := f.AddParam("x", ir.I64)
	m := f.AddMem(ir.Memory{Name: "m", Space: ir.Local, Elem: ir.F64, Len: n})
	b := ir.NewBuilder(f)
	i := b.Op(ir.OpRem, x, i64(b, n))
	b.Store(m, i, b.Convert(ir.F64, x))
	b.Yield(b.Op(ir.OpAdd, b.Load(m, i), b.Load(m, i64(b, 1))))
	p := compile(t, f)
	if s := p.Stats(nil); s.Block > 16 {
		t.Errorf("blocks of %d", s.Block)
	}
	for _, workers := range []int{1, 50} {
		l := Launch{Shape: []int{workers}, In: []Operand{{Type: ir.I64, Index: true, Offset: 1, Strides: []int{1}}}, Out: results(f, workers)}
		if err := p.Run(l); err != nil {
			t.Fatal(err)
		}
		for w, got := range l.Out[0].Data.([]float64) {
			want := float64(w + 1)
			if w == 0 {
				want = 2
			}
			if got != want {
				t.Errorf("worker %d of %d: %v, want %v", w, workers, got, want)
			}
		}
	}
}

// TestOddGroups: blocks of threads that no dimension ends with.
func TestOddGroups(t *testing.T) {
	f := newKernel("odd groups", ir.I32, true, []ir.Type{ir.I32}, func(k *kernel) {
		k.Store(k.shared, k.thread, k.value)
		k.Barrier()
		next := k.Op(ir.OpRem, k.Op(ir.OpAdd, k.thread, k.int(1)), k.dim)
		k.Yield(k.Load(k.shared, next))
	})
	p := compile(t, f)
	for _, c := range []struct {
		shape []int
		group int
	}{{[]int{3, 64}, 96}, {[]int{2, 3, 4, 5}, 30}, {[]int{2, 3, 4, 5}, 20}, {[]int{2, 3, 4, 5}, 12}, {[]int{2, 3, 4, 5}, 8}, {[]int{2, 3, 4, 5}, 120}, {[]int{7}, 7}, {[]int{7}, 1}, {[]int{1, 9, 1}, 3}, {[]int{}, 1}} {
		n := workersOf(c.shape)
		l := Launch{Shape: c.shape, Group: c.group, DynamicShared: c.group, Mems: []any{nil, nil}, Goroutines: 2}
		strides := make([]int, len(c.shape))
		for d := range strides {
			strides[d] = workersOf(c.shape[d+1:])
		}
		for _, q := range f.Params {
			o := array(f.Types[q.Value], n, func(w int) ir.Bits {
				switch q.Kind {
				case ir.ThreadIdx:
					return ir.Bits(w % c.group)
				case ir.BlockIdx:
					return ir.Bits(w / c.group)
				case ir.BlockDim:
					return ir.Bits(c.group)
				}
				return ir.Wrap(f.Types[q.Value], ir.Bits(w))
			})
			o.Strides = strides
			l.In = append(l.In, o)
		}
		l.Out = []Operand{{Type: ir.I32, Data: make([]int32, n), Strides: strides}}
		if err := p.Run(l); err != nil {
			t.Fatal(err)
		}
		for w, got := range l.Out[0].Data.([]int32) {
			if want := w/c.group*c.group + (w%c.group+1)%c.group; int(got) != want {
				t.Fatalf("%v in blocks of %d: worker %d has %d, want %d", c.shape, c.group, w, got, want)
			}
		}
	}
}

// TestLocalMemoryBegins with zeros, also where it is cleared for some.
func TestLocalMemoryBegins(t *testing.T) {
	f := newKernel("local", ir.I32, false, []ir.Type{ir.I32}, func(k *kernel) {
		k.If(k.some, nil, func() { k.Clear(k.local); k.Yield() }, func() { k.Yield() })
		i := k.Op(ir.OpAnd, k.x, k.int(3))
		v := k.Load(k.local, i)
		for j := range 4 {
			k.Store(k.local, k.int(j), k.Op(ir.OpOr, k.value, k.Const(ir.I32, 1)))
		}
		k.Yield(v)
	})
	checkKernel(t, f, 1, 100, 2000)
}

// TestIndexFromControl: what comes out of a loop or an if that lanes take
// differently goes in no equal steps, though its ends may look so.
func TestIndexFromControl(t *testing.T) {
	for _, how := range []string{"if", "escape", "loop", "product"} {
		f := newKernel("index from "+how, ir.I64, false, nil, func(k *kernel) {
			odd := k.Op(ir.OpEq, k.thread, k.int(5))
			far := k.Op(ir.OpAdd, k.thread, k.int(1000))
			var i ir.Value
			switch how {
			case "product": // small at both ends
				i = k.Op(ir.OpMul, k.thread, k.Op(ir.OpSub, k.Op(ir.OpSub, k.dim, k.int(1)), k.thread))
			case "loop":
				i = k.Loop([]ir.Value{k.int(0)}, []ir.Type{ir.I64}, func(c []ir.Value) {
					k.If(odd, nil, func() { k.Yield() }, func() { k.Break(1, k.thread) })
					k.If(k.Op(ir.OpGt, c[0], k.int(2)), nil, func() { k.Break(1, far) }, func() { k.Yield() })
					k.Yield(k.Op(ir.OpAdd, c[0], k.int(1)))
				})[0]
			case "escape":
				i = k.If(k.Op(ir.OpGt, k.dim, k.int(0)), []ir.Type{ir.I64}, func() {
					k.If(odd, nil, func() { k.Break(1, far) }, func() { k.Yield() })
					k.Yield(k.thread)
				}, func() { k.Yield(k.thread) })[0]
			case "if":
				i = k.If(odd, []ir.Type{ir.I64}, func() { k.Yield(far) }, func() { k.Yield(k.thread) })[0]
			}
			k.Bounds(i, k.dim)
			k.Yield()
		})
		checkKernel(t, f, 4, 10, 100, 1000)
	}
}
