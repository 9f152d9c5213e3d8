package amd64_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"gpunotes/gpukit/internal/codegen/amd64"
	"gpunotes/gpukit/internal/cpu"
	"gpunotes/gpukit/internal/ir"
	"gpunotes/gpukit/internal/ir/irtest"
)

// world is a function, what its workers are given, and memories.
type world struct {
	f    *ir.Func
	in   []amd64.Access
	args [][]ir.Bits // by worker and parameter
	mems [][]ir.Bits // by Global memory
	code map[string]*cpu.Native
}

// native compiles f, which is w.f or does the same, if that was not done before.
func (w *world) native(t *testing.T, f *ir.Func, target amd64.Target, parts int) *cpu.Native {
	key := fmt.Sprint(f == w.f, target, parts)
	if n := w.code[key]; n != nil {
		return n
	}
	if w.code == nil {
		w.code = map[string]*cpu.Native{}
	}
	v := variant{target: target, parts: parts, in: w.in}
	for range f.Results {
		v.out = append(v.out, amd64.Unit)
	}
	w.code[key] = load(t, f, v)
	return w.code[key]
}

type storage []ir.Bits

func (s storage) Load(i int) ir.Bits     { return s[i] }
func (s storage) Store(i int, b ir.Bits) { s[i] = b }

// outcome is what the evaluator makes of a world, worker after worker.
func (w *world) outcome(t *testing.T) (out irtest.Outcome) {
	t.Helper()
	out.Worker = -1
	var mems []ir.Storage
	for _, m := range w.mems {
		s := storage(slices.Clone(m))
		out.Mems = append(out.Mems, s)
		mems = append(mems, s)
	}
	e := &ir.Evaluator{Steps: 1 << 20, Print: func(line string) { out.Lines = append(out.Lines, line) }}
	for i, a := range w.args {
		res, err := e.RunWorker(w.f, mems, a)
		if err != nil {
			var fault *ir.FaultError
			if !errors.As(err, &fault) || fault.Fault == ir.StepBudget {
				t.Fatalf("the evaluator: %v\n%v", err, w.f)
			}
			out.Err, out.Worker = err, i
			break
		}
		out.Results = append(out.Results, res)
	}
	slices.Sort(out.Lines)
	return out
}

// run runs machine code, with memories that end, or begin, where memory does.
func (w *world) run(t *testing.T, f *ir.Func, target amd64.Target, parts, budget int, behind bool) (out irtest.Outcome) {
	t.Helper()
	out.Worker = -1
	n := w.native(t, f, target, parts)
	n.SetBudget(budget)
	rows := cpu.Rows{Count: len(w.args), Print: func(line string) { out.Lines = append(out.Lines, line) }}
	for p, q := range f.Params {
		s := cpu.Stream{Value: w.args[0][p]}
		switch w.in[p] {
		case amd64.Unit:
			e := newElements(f.Types[q.Value], len(w.args))
			for i, a := range w.args {
				e.put(i, a[p])
			}
			s.Data = e.s.Interface()
		case amd64.CountStep:
			if len(w.args) > 1 {
				s.Step = int(w.args[1][p] - w.args[0][p])
			}
		}
		rows.In = append(rows.In, s)
	}
	var results, mems []elements
	for _, typ := range f.Results {
		e := newElements(typ, len(w.args))
		results = append(results, e)
		rows.Out = append(rows.Out, cpu.Stream{Data: e.s.Interface()})
	}
	k := 0
	for _, m := range f.Mems {
		if m.Space != ir.Global {
			continue
		}
		e := guarded(t, m.Elem, len(w.mems[k]), behind)
		for i, b := range w.mems[k] {
			e.put(i, b)
		}
		mems = append(mems, e)
		rows.Mems = append(rows.Mems, e.s.Interface())
		k++
	}
	if err := n.Run(rows); err != nil {
		var worker *cpu.WorkerError
		if !errors.As(err, &worker) {
			t.Fatal(err)
		}
		out.Worker, out.Err = worker.Worker, worker.Err
		return out
	}
	for i := range w.args {
		var res []ir.Bits
		for _, e := range results {
			res = append(res, e.get(i))
		}
		out.Results = append(out.Results, res)
	}
	for j, e := range mems {
		m := make([]ir.Bits, len(w.mems[j]))
		for i := range m {
			m[i] = e.get(i)
		}
		out.Mems = append(out.Mems, m)
	}
	slices.Sort(out.Lines)
	return out
}

// check compares all targets with the evaluator.
func (w *world) check(t *testing.T, seed uint64) {
	t.Helper()
	if err := ir.Verify(w.f); err != nil {
		t.Fatalf("%v\n%v", err, w.f)
	}
	want := w.outcome(t)
	for _, target := range targets(t) {
		for i, g := range []*ir.Func{w.f, ir.Optimize(w.f)} {
			if i > 0 && seed%4 > 0 {
				continue
			}
			parts, budget := 1+int(seed+uint64(i))%2, []int{100_000, 1, 60}[int(seed)%3]
			got := w.run(t, g, target, parts, budget, seed%2 == 0)
			if err := want.Compare(w.f, got); err != nil {
				t.Fatalf("%v x%d, seed %d, %d workers, accesses %v, arguments of worker 0 %#x: %v\n%v", target, parts, seed, len(w.args), w.in, w.args[0], err, g)
			}
		}
	}
}

// accessesOf chooses accesses that fit the arguments.
func accessesOf(r *rand.Rand, w *world) (in []amd64.Access) {
	for p, q := range w.f.Params {
		access := amd64.Unit
		even, same := true, true
		for i, a := range w.args {
			step := w.args[min(1, len(w.args)-1)][p] - w.args[0][p]
			even = even && a[p] == w.args[0][p]+ir.Bits(i)*step
			same = same && a[p] == w.args[0][p]
		}
		switch {
		case w.f.Types[q.Value] == ir.I64 && q.Kind == ir.ThreadIdx:
			access = amd64.CountUnit
		case w.f.Types[q.Value] == ir.I64 && same && r.IntN(4) > 0:
			access = amd64.Count
		case w.f.Types[q.Value] == ir.I64 && even && r.IntN(4) > 0:
			access = amd64.CountStep
		case same && r.IntN(4) > 0:
			access = amd64.Same
		}
		in = append(in, access)
	}
	return in
}

// TestMemoryRandom runs random functions with memories of all kinds.
func TestMemoryRandom(t *testing.T) {
	seeds := uint64(120)
	if testing.Short() {
		seeds = 60
	}
	for seed := range seeds {
		r := rand.New(rand.NewPCG(seed, 31))
		o := irtest.Options{Memory: true, Faults: seed%3 == 0, Math: func(ir.MathFn) bool { return false }}
		switch seed % 5 {
		case 0:
			o.Types = []ir.Type{ir.F64, ir.I64, ir.U64}
		case 1:
			o.Types = []ir.Type{ir.F32, ir.I32, ir.F32, ir.I32}
		case 2:
			o.Types = []ir.Type{ir.U8, ir.I16, ir.Bool}
		}
		f := irtest.Random(r, fmt.Sprint("memory", seed), o)
		in := irtest.NewInputs(r, f, 1, 1+r.IntN(70))
		w := &world{f: f, args: in.Args, mems: in.Mems}
		w.in = accessesOf(r, w)
		w.check(t, seed)
	}
}

// TestMemoryAccess has every type, space and form of index, loads and stores, of all lanes or of
// some, for groups that are full or not.
func TestMemoryAccess(t *testing.T) {
	type index struct {
		name   string
		access amd64.Access
		at     func(worker, n int) int // the parameter
		more   int                     // what is added to it
	}
	indices := []index{
		{"constant", amd64.Count, func(int, int) int { return 0 }, 3},
		{"one for all", amd64.Count, func(_, n int) int { return n / 2 }, 0},
		{"consecutive", amd64.CountUnit, func(i, _ int) int { return i }, 0},
		{"consecutive, shifted", amd64.CountUnit, func(i, _ int) int { return i - 3 }, 3},
		{"every second", amd64.CountStep, func(i, _ int) int { return 2 * i }, 0},
		{"downwards", amd64.CountStep, func(i, n int) int { return n - 1 - i }, 0},
		{"any", amd64.Unit, func(i, n int) int { return i * 23 % n }, 0},
	}
	const most = 70 // workers
	for ti, typ := range ir.Types {
		for _, space := range []ir.Space{ir.Global, ir.Constant, ir.Local} {
			for _, ix := range indices {
				for form := range 4 { // bit 0: also a store, bit 1: for some lanes
					store, some := form&1 != 0, form&2 != 0
					if store && space == ir.Constant {
						continue
					}
					r := rand.New(rand.NewPCG(uint64(ti), uint64(form)))
					f := ir.NewFunc(fmt.Sprintf("%v in %v memory at %s, %d", typ, space, ix.name, form), typ, typ)
					at, x, p := f.AddParam("at", ir.I64), f.AddParam("x", typ), f.AddParam("p", ir.Bool)
					w := &world{f: f, in: []amd64.Access{ix.access, amd64.Unit, amd64.Unit}}
					mem := ir.Memory{Name: "m", Space: space, Elem: typ}
					data := func(n int) (d []ir.Bits) {
						for range n {
							d = append(d, irtest.Value(r, typ))
						}
						return d
					}
					if space != ir.Global {
						mem.Len = 2*most + 3
					}
					if space == ir.Constant {
						mem.Data = data(mem.Len)
					}
					m := f.AddMem(mem)
					b := ir.NewBuilder(f)
					i := at
					if ix.more != 0 {
						i = b.Op(ir.OpAdd, at, b.Const(ir.I64, ir.Bits(ix.more)))
					}
					if ix.name == "constant" {
						i = b.Const(ir.I64, ir.Bits(ix.more))
					}
					if space == ir.Local {
						b.Store(m, b.Op(ir.OpXor, i, b.Op(ir.OpAnd, i, b.Const(ir.I64, 1))), x)
					}
					do := func() []ir.Value {
						first := b.Load(m, i)
						if !store {
							return []ir.Value{first, x}
						}
						b.Store(m, i, x)
						if ix.access == amd64.Count { // others write there too
							return []ir.Value{x, x}
						}
						return []ir.Value{first, b.Load(m, i)}
					}
					if some {
						res := b.If(p, []ir.Type{typ, typ}, func() { b.Yield(do()...) }, func() { b.Yield(x, x) })
						b.Yield(res...)
					} else {
						b.Yield(do()...)
					}
					for k, n := range []int{1, 8, 9, 33, most} {
						if (k+form+ti)%2 != 0 || testing.Short() && k != (form+ti)%5 {
							continue
						}
						w.args, w.mems = nil, nil
						if space == ir.Global {
							w.mems = append(w.mems, data(2*n+3))
						}
						for worker := range n {
							w.args = append(w.args, []ir.Bits{ir.Bits(int64(ix.at(worker, n))), irtest.Value(r, typ), ir.Bits(r.IntN(2))})
						}
						w.check(t, uint64(k+form))
					}
				}
			}
		}
	}
}

// TestAtomics has every kind on every type: on one element for all, on elements that some share, on
// those of a worker's own; with the old value and without. Workers come in order.
func TestAtomics(t *testing.T) {
	for ti, typ := range ir.Types {
		for kind := ir.AtomicAdd; kind <= ir.CompareSwap; kind++ {
			if typ == ir.Bool || typ.IsFloat() && kind >= ir.AtomicAnd && kind <= ir.AtomicXor {
				continue
			}
			for form := range 12 { // bit 0: the old value counts, bit 1: for some lanes, then where
				r := rand.New(rand.NewPCG(uint64(ti), uint64(form)))
				f := ir.NewFunc(fmt.Sprintf("atomic %d of %v, %d", kind, typ, form), typ)
				at, x, y, p := f.AddParam("at", ir.I64), f.AddParam("x", typ), f.AddParam("y", typ), f.AddParam("p", ir.Bool)
				w := &world{f: f, in: []amd64.Access{[]amd64.Access{amd64.Count, amd64.Unit, amd64.Unit}[form>>2], amd64.Unit, amd64.Unit, amd64.Unit}}
				mem := ir.Memory{Name: "m", Space: ir.Global, Elem: typ}
				if form>>2 == 2 {
					mem.Space, mem.Len = ir.Local, 8
				}
				m := f.AddMem(mem)
				b := ir.NewBuilder(f)
				if mem.Space == ir.Local {
					b.Store(m, b.Op(ir.OpAnd, b.Op(ir.OpAdd, at, b.Const(ir.I64, 1)), b.Const(ir.I64, 6)), x)
				}
				do := func() ir.Value {
					args := []ir.Value{x, y}
					if kind != ir.CompareSwap {
						args = args[:1]
					}
					old := b.Atomic(kind, m, at, args...)
					switch {
					case form&1 == 0:
						return x
					case mem.Space == ir.Local:
						if typ.IsFloat() {
							return b.Load(m, at)
						}
						return b.Op(ir.OpXor, old, b.Load(m, at))
					}
					return old
				}
				if form&2 != 0 {
					b.Yield(b.If(p, []ir.Type{typ}, func() { b.Yield(do()) }, func() { b.Yield(y) })...)
				} else {
					b.Yield(do())
				}
				for k, n := range []int{7, 33} {
					w.args, w.mems = nil, nil
					if mem.Space == ir.Global {
						var data []ir.Bits
						for range 8 {
							data = append(data, irtest.Value(r, typ))
						}
						w.mems = append(w.mems, data)
					}
					one := ir.Bits(r.IntN(8))
					for range n {
						i := one
						if form>>2 > 0 {
							i = ir.Bits(r.IntN(8))
						}
						w.args = append(w.args, []ir.Bits{i, irtest.Value(r, typ), irtest.Value(r, typ), ir.Bits(r.IntN(2))})
					}
					w.check(t, uint64(k+form))
				}
			}
		}
	}
}

// TestBounds checks indices and slice bounds of every form, good ones and bad ones, and reads what
// was checked: the lowest worker that fails is the one that is told of.
func TestBounds(t *testing.T) {
	pos := ir.Pos{File: "cell 1", Line: 2, Col: 3}
	accesses := []amd64.Access{amd64.Count, amd64.CountUnit, amd64.CountStep, amd64.Unit}
	failed := 0
	for form := range 4 * 4 * 4 * 2 {
		ai, an, slice, some := accesses[form%4], accesses[form/4%4], form/16%4, form/64 != 0
		f := ir.NewFunc(fmt.Sprintf("bounds of %v by %v, %d, %v", ai, an, slice, some), ir.F64)
		i, n, to, p := f.AddParam("i", ir.I64), f.AddParam("n", ir.I64), f.AddParam("to", ir.I64), f.AddParam("p", ir.Bool)
		w := &world{f: f, in: []amd64.Access{ai, an, accesses[slice], amd64.Unit}}
		m := f.AddMem(ir.Memory{Name: "m", Space: ir.Global, Elem: ir.F64})
		b := ir.NewBuilder(f)
		b.Pos = pos
		check := func() ir.Value {
			if slice > 0 {
				b.SliceBounds(i, to, n)
				b.Bounds(i, n)
			} else {
				b.Bounds(i, n)
			}
			return b.Load(m, i)
		}
		if some {
			x := b.If(p, []ir.Type{ir.F64}, func() { b.Yield(check()) }, func() { b.Yield(b.Const(ir.F64, 0)) })
			b.Yield(b.Op(ir.OpAdd, x[0], b.Load(m, b.Const(ir.I64, 0))))
		} else {
			b.Yield(check())
		}
		const length = 40
		for seed := range uint64(14) {
			r := rand.New(rand.NewPCG(seed, uint64(form)))
			workers := 1 + r.IntN(length-3)
			data := make([]ir.Bits, length)
			for j := range data {
				data[j] = f64(float64(j))
			}
			w.args, w.mems = nil, [][]ir.Bits{data}
			param := func(access amd64.Access, low, high int) func(worker int) int {
				first, step := low+r.IntN(high-low+1), r.IntN(3)-1
				if access == amd64.CountUnit {
					first = max(low, first-workers)
				}
				return func(worker int) int {
					switch access {
					case amd64.Count:
						return first
					case amd64.CountUnit:
						return first + worker
					case amd64.CountStep:
						return first + step*worker
					}
					return low + r.IntN(high-low+1)
				}
			}
			// No length is beyond the memory, unless it is negative, when a check of an index
			// alone does not fail for it.
			var at, size, end func(int) int
			switch seed % 3 {
			case 0: // good ones, mostly
				at, size, end = param(ai, 0, 3), param(amd64.Count, length, length), param(accesses[slice], 20, 30)
			case 1:
				at, size, end = param(ai, -3, length+3), param(amd64.Count, 5, length), param(accesses[slice], 0, length)
			default:
				at, size, end = param(ai, 0, length-1), param(an, 1, length), param(accesses[slice], 0, length+2)
			}
			for worker := range workers {
				w.args = append(w.args, []ir.Bits{ir.Bits(int64(at(worker))), ir.Bits(int64(min(length, size(worker)))), ir.Bits(int64(end(worker))), ir.Bits(r.IntN(4) & 1)})
			}
			if seed%3 == 2 && an != amd64.Unit { // cut off, it is not even any more
				for worker := range w.args {
					w.args[worker][1] = ir.Bits(int64(size(0)))
				}
				if an == amd64.CountUnit {
					for worker := range w.args {
						w.args[worker][1] = ir.Bits(int64(1 + worker))
					}
				}
			}
			if seed%3 != 2 && an == amd64.CountUnit {
				for worker := range w.args {
					w.args[worker][1] = ir.Bits(int64(length - workers + 1 + worker))
				}
			}
			if w.outcome(t).Err != nil {
				failed++
			}
			w.check(t, seed)
		}
	}
	t.Log(failed, "failed")
	if failed < 300 || failed > 4*4*4*2*14-300 {
		t.Errorf("%d failed", failed)
	}
}

// TestShortTables reads tables that may fit a register.
func TestShortTables(t *testing.T) {
	for ti, typ := range ir.Types {
		for _, length := range []int{1, 7, 8, 9, 16, 17} {
			r := rand.New(rand.NewPCG(uint64(ti), uint64(length)))
			f := ir.NewFunc(fmt.Sprint("table of ", length, " ", typ), typ)
			i, p := f.AddParam("i", ir.I64), f.AddParam("p", ir.Bool)
			mem := ir.Memory{Name: "m", Space: ir.Constant, Elem: typ, Len: length}
			for range length {
				mem.Data = append(mem.Data, irtest.Value(r, typ))
			}
			m := f.AddMem(mem)
			b := ir.NewBuilder(f)
			b.Yield(b.If(p, []ir.Type{typ}, func() { b.Yield(b.Load(m, i)) }, func() { b.Yield(b.Load(m, b.Const(ir.I64, ir.Bits(length-1)))) })...)
			w := &world{f: f, in: []amd64.Access{amd64.Unit, amd64.Unit}}
			for range 21 {
				p := r.IntN(4)
				i := r.IntN(length)
				if p == 0 {
					i = -1 << 40
				}
				w.args = append(w.args, []ir.Bits{ir.Bits(int64(i)), ir.FromBool(p > 0)})
			}
			w.check(t, uint64(4*ti+length))
		}
	}
}

// TestClears clears memories of workers, for some of them, in a loop that they leave at different
// times.
func TestClears(t *testing.T) {
	for ti, typ := range ir.Types {
		for _, length := range []int{1, 8, 9, 40} {
			r := rand.New(rand.NewPCG(uint64(ti), uint64(length)))
			f := ir.NewFunc(fmt.Sprint("clears ", length, " ", typ), typ, typ, typ)
			n, x := f.AddParam("n", ir.I64), f.AddParam("x", typ)
			m := f.AddMem(ir.Memory{Name: "m", Space: ir.Local, Elem: typ, Len: length})
			b := ir.NewBuilder(f)
			last, middle := b.Const(ir.I64, ir.Bits(length-1)), b.Const(ir.I64, ir.Bits(length/2))
			res := b.Loop([]ir.Value{b.Const(ir.I64, 0), x, x}, []ir.Type{typ, typ}, func(c []ir.Value) {
				b.If(b.Op(ir.OpGe, c[0], n), nil, func() { b.Break(1, c[1:]...) }, func() { b.Yield() })
				was := b.Load(m, last)
				b.Store(m, last, x)
				b.Store(m, middle, x)
				b.If(b.Op(ir.OpEq, b.Op(ir.OpAnd, n, b.Const(ir.I64, 1)), b.Op(ir.OpAnd, c[0], b.Const(ir.I64, 1))), nil, func() {
					b.Clear(m)
					b.Yield()
				}, func() { b.Yield() })
				b.Yield(b.Op(ir.OpAdd, c[0], b.Const(ir.I64, 1)), was, b.Load(m, last))
			})
			b.Yield(res[0], res[1], b.Load(m, middle))
			w := &world{f: f, in: []amd64.Access{amd64.Unit, amd64.Unit}}
			for range 37 {
				w.args = append(w.args, []ir.Bits{ir.Bits(r.IntN(5)), irtest.Value(r, typ)})
			}
			w.check(t, uint64(4*ti+length))
		}
	}
}

// TestRefusals: what workers do together, and very large memories, are for another engine.
func TestRefusals(t *testing.T) {
	pos := ir.Pos{File: "cell 1", Line: 2, Col: 3}
	for name, do := range map[string]func(b *ir.Builder){
		"barrier":     func(b *ir.Builder) { b.Barrier() },
		"warpbarrier": func(b *ir.Builder) { b.WarpBarrier() },
		"shuffle":     func(b *ir.Builder) { b.Shuffle(ir.ShuffleXor, b.Const(ir.I64, 1), b.Const(ir.I64, 1)) },
		"vote":        func(b *ir.Builder) { b.Vote(ir.VoteAny, b.Const(ir.Bool, 1)) },
		"shared memory": func(b *ir.Builder) {
			b.Store(b.F.AddMem(ir.Memory{Name: "s", Space: ir.Shared, Elem: ir.F64, Len: 3}), b.Const(ir.I64, 0), b.Const(ir.F64, 0))
		},
		"shared atomics": func(b *ir.Builder) {
			b.Atomic(ir.AtomicAdd, b.F.AddMem(ir.Memory{Name: "s", Space: ir.Shared, Elem: ir.I64, Len: 3}), b.Const(ir.I64, 0), b.Const(ir.I64, 0))
		},
		"large memory": func(b *ir.Builder) {
			b.Clear(b.F.AddMem(ir.Memory{Name: "own", Space: ir.Local, Elem: ir.F64, Len: 1 << 24}))
		},
	} {
		f := ir.NewFunc(name)
		f.Pos = pos
		b := ir.NewBuilder(f)
		b.Pos = pos
		do(b)
		b.Yield()
		// And where a call arrives at it.
		g := ir.NewFunc("calls " + name)
		f.Outline = true
		b = ir.NewBuilder(g)
		b.Call(f)
		b.Yield()
		for _, target := range []amd64.Target{amd64.AVX2, amd64.AVX512} {
			for _, h := range []*ir.Func{f, g} {
				_, err := amd64.Compile(&amd64.Kernel{Func: h}, target, amd64.Options{})
				var u *amd64.Unsupported
				if !errors.As(err, &u) || u.Pos != pos || u.Func != f.Name {
					t.Errorf("%s, %s for %v: %v, want Unsupported at %v", name, h.Name, target, err, pos)
				}
			}
		}
	}
}

// TestAtomicsTogether lets goroutines change the same elements at once: nothing is lost.
func TestAtomicsTogether(t *testing.T) {
	const goroutines, workers, rounds = 4, 5000, 60
	for _, typ := range []ir.Type{ir.I32, ir.U32, ir.I64, ir.U64, ir.F32, ir.F64} {
		one := ir.Bits(1)
		switch typ {
		case ir.F32:
			one = ir.FromF32(1)
		case ir.F64:
			one = ir.FromF64(1)
		}
		for _, shared := range []bool{true, false} { // one element for all, or four
			f := ir.NewFunc(fmt.Sprint("together ", typ))
			at, x := f.AddParam("at", ir.I64), f.AddParam("x", typ)
			sum := f.AddMem(ir.Memory{Name: "sum", Space: ir.Global, Elem: typ})
			most := f.AddMem(ir.Memory{Name: "most", Space: ir.Global, Elem: typ})
			b := ir.NewBuilder(f)
			b.Atomic(ir.AtomicAdd, sum, at, b.Const(typ, one))
			b.Atomic(ir.AtomicMax, most, at, x)
			b.Yield()
			access := amd64.Unit
			if shared {
				access = amd64.Count
			}
			for _, target := range targets(t) {
				n, err := cpu.LoadNative(&amd64.Kernel{Func: f, In: []amd64.Access{access, amd64.Unit}}, target, amd64.Options{})
				if err != nil {
					t.Fatal(err)
				}
				sums, mosts := newElements(typ, 4), newElements(typ, 4)
				errs, start := make(chan error, goroutines), make(chan bool)
				for g := range goroutines {
					ats, xs := newElements(ir.I64, workers), newElements(typ, workers)
					for i := range workers {
						ats.put(i, ir.Bits(i&3))
						xs.put(i, ir.Convert(typ, ir.I64, ir.Bits(i*goroutines+g)))
					}
					rows := cpu.Rows{Count: workers, In: []cpu.Stream{{Data: ats.s.Interface()}, {Data: xs.s.Interface()}}, Mems: []any{sums.s.Interface(), mosts.s.Interface()}}
					go func() {
						<-start
						var err error
						for range rounds {
							err = errors.Join(err, n.Run(rows))
						}
						errs <- err
					}()
				}
				close(start)
				for range goroutines {
					if err := <-errs; err != nil {
						t.Fatal(err)
					}
				}
				elements, each := 4, rounds*goroutines*workers/4
				if shared {
					elements, each = 1, rounds*goroutines*workers
				}
				for i := range elements {
					largest := (workers-elements+i)*goroutines + goroutines - 1
					if got, most := ir.Convert(ir.I64, typ, sums.get(i)), ir.Convert(ir.I64, typ, mosts.get(i)); int(got) != each || int(most) != largest {
						t.Errorf("%v, %v, one for all: %v: element %d is %d and %d, want %d and %d", target, typ, shared, i, got, most, each, largest)
					}
				}
			}
		}
	}
}
