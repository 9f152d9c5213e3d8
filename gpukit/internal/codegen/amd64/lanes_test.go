package amd64

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"gpunotes/gpukit/internal/ir"
	"gpunotes/gpukit/internal/ir/irtest"
)

// laneTracer runs a function for one lane and notes what it sees: every value, by the iterations of
// the loops around it, and how often each loop went round.
type laneTracer struct {
	f    *ir.Func
	lane int
	mems []ir.Storage
	vals []ir.Bits
	path []int // iterations of the loops around
	seen map[string][]seenValue
	iter map[string][]seenValue
	stop bool // the lane failed
}

type seenValue struct {
	lane int
	bits ir.Bits
}

type localCells []ir.Bits

func (c localCells) Load(i int) ir.Bits     { return c[i] }
func (c localCells) Store(i int, b ir.Bits) { c[i] = b }

func (t *laneTracer) set(vs []ir.Value, bits []ir.Bits) {
	for i, v := range vs {
		t.vals[v] = bits[i]
		key := fmt.Sprint(v, t.path)
		t.seen[key] = append(t.seen[key], seenValue{t.lane, bits[i]})
	}
}

func (t *laneTracer) get(vs []ir.Value) []ir.Bits {
	var out []ir.Bits
	for _, v := range vs {
		out = append(out, t.vals[v])
	}
	return out
}

// region returns the level of the break that ended it, -1 for a yield.
func (t *laneTracer) region(r *ir.Region) (int, []ir.Bits) {
	for i := range r.Instrs {
		in := &r.Instrs[i]
		a := t.get(in.Args)
		switch in.Op {
		case ir.OpYield:
			return -1, a
		case ir.OpBreak:
			return in.Level(), a
		case ir.OpIf:
			arm := in.Regions[1]
			if a[0] != 0 {
				arm = in.Regions[0]
			}
			level, vals := t.region(arm)
			if t.stop || level > 0 {
				return level - 1, vals
			}
			t.set(in.Results, vals)
		case ir.OpLoop:
			at := fmt.Sprint(in.Pos, fmt.Sprintf("%p", in), t.path)
			t.path = append(t.path, 0)
			level, vals, next := -1, []ir.Bits(nil), a
			for level < 0 && !t.stop {
				t.set(in.Carried, next)
				level, vals = t.region(in.Regions[0])
				next = vals
				t.path[len(t.path)-1]++
			}
			rounds := t.path[len(t.path)-1]
			t.path = t.path[:len(t.path)-1]
			if t.stop {
				return 0, nil
			}
			t.iter[at] = append(t.iter[at], seenValue{t.lane, ir.Bits(rounds<<8 | level)})
			if level > 0 {
				return level - 1, vals
			}
			t.set(in.Results, vals)
		case ir.OpLoad:
			t.set(in.Results, []ir.Bits{t.mems[in.Mem].Load(int(a[0]))})
		case ir.OpStore:
			t.mems[in.Mem].Store(int(a[0]), a[1])
		case ir.OpClear:
			clear(t.mems[in.Mem].(localCells))
		case ir.OpAtomic:
			old := t.mems[in.Mem].Load(int(a[0]))
			t.mems[in.Mem].Store(int(a[0]), ir.AtomicResult(in.Kind, t.f.Mems[in.Mem].Elem, old, a[1:]))
			t.set(in.Results, []ir.Bits{old})
		case ir.OpBounds, ir.OpSliceBounds:
			if ir.CheckBounds(in.Op, a) != ir.NoFault {
				t.stop = true
				return 0, nil
			}
		case ir.OpPrint:
		default:
			v, fault := ir.Compute(t.f, in, a)
			if fault != ir.NoFault {
				t.stop = true
				return 0, nil
			}
			t.set(in.Results, []ir.Bits{v})
		}
	}
	panic("a region without terminator")
}

// TestLaneShapes runs random functions lane by lane: what the analysis calls the same in all lanes,
// or consecutive, must be, and lanes must go through a loop together that is not called divergent.
func TestLaneShapes(t *testing.T) {
	const lanes = 9
	counts := map[string]int{}
	for seed := range uint64(600) {
		r := rand.New(rand.NewPCG(seed, 21))
		f := irtest.Random(r, "lanes", irtest.Options{Memory: seed%2 == 0, Faults: seed%3 == 0, Types: []ir.Type{ir.Bool, ir.I64, ir.I32, ir.F64, ir.Bool}})
		if seed%5 > 2 {
			f = ir.Optimize(f)
		}
		in := irtest.NewInputs(r, f, 1, lanes)
		k := &Kernel{Func: f, In: make([]Access, len(f.Params)), Out: make([]Access, len(f.Results))}
		for i, p := range f.Params {
			typ := f.Types[p.Value]
			switch p.Kind {
			case ir.ThreadIdx:
				k.In[i] = CountUnit
			case ir.BlockIdx, ir.BlockDim, ir.GridDim, ir.Shape, ir.Stride:
				k.In[i] = Count
			case ir.Offset:
				k.In[i] = []Access{CountStep, Strided}[r.IntN(2)]
			default:
				k.In[i] = []Access{Same, PerRow, Unit, Strided}[r.IntN(4)]
				if typ == ir.I64 && r.IntN(4) == 0 {
					k.In[i] = CountUnit
				}
				for w := range lanes {
					switch k.In[i] {
					case Same, PerRow:
						in.Args[w][i] = in.Args[0][i]
					case CountUnit:
						in.Args[w][i] = in.Args[0][i] + ir.Bits(w)
					default:
						in.Args[w][i] = irtest.Value(r, typ)
					}
				}
			}
		}
		a := analyse(k)
		seen, iter := map[string][]seenValue{}, map[string][]seenValue{}
		var globals []ir.Storage
		n := 0
		for _, m := range f.Mems {
			switch m.Space {
			case ir.Global:
				globals = append(globals, localCells(in.Mems[n]))
				n++
			case ir.Constant:
				globals = append(globals, localCells(m.Data))
			default:
				globals = append(globals, nil)
			}
		}
		for w := range lanes {
			tr := &laneTracer{f: f, lane: w, vals: make([]ir.Bits, len(f.Types)), seen: seen, iter: iter, mems: append([]ir.Storage(nil), globals...)}
			for i, m := range f.Mems {
				if m.Space == ir.Local {
					tr.mems[i] = make(localCells, m.Len)
				}
			}
			for i, p := range f.Params {
				tr.vals[p.Value] = in.Args[w][i]
			}
			tr.region(f.Body)
		}
		fail := func(format string, args ...any) {
			t.Helper()
			t.Fatalf("seed %d: %s; accesses %v\n%v", seed, fmt.Sprintf(format, args...), k.In, f)
		}
		for key, vs := range seen {
			var v ir.Value
			fmt.Sscan(key, &v)
			for _, x := range vs[1:] {
				switch d := x.bits - vs[0].bits; a.shape(v) {
				case shapeUniform:
					if ir.Canonical(f.Types[v], x.bits) != ir.Canonical(f.Types[v], vs[0].bits) {
						fail("%%%s is called uniform: lane %d has %#x, lane %d %#x", key, vs[0].lane, vs[0].bits, x.lane, x.bits)
					}
				case shapeUnit:
					if d != ir.Bits(x.lane-vs[0].lane) {
						fail("%%%s is called unit: lane %d has %#x, lane %d %#x", key, vs[0].lane, vs[0].bits, x.lane, x.bits)
					}
				}
			}
			if len(vs) > 1 {
				counts[[]string{"varying", "uniform", "unit"}[a.shape(v)]]++
			}
		}
		ir.Walk(f.Body, func(in *ir.Instr) {
			if in.Op != ir.OpLoop {
				return
			}
			if a.constructs[in].varying { // lanes may leave it at different times, or by different exits
				counts["divergent loop"]++
				return
			}
			counts["uniform loop"]++
			at := fmt.Sprint(in.Pos, fmt.Sprintf("%p", in))
			for key, vs := range iter {
				if len(key) > len(at) && key[:len(at)] == at {
					for _, x := range vs[1:] {
						if x.bits != vs[0].bits {
							fail("loop %s is called uniform: lane %d goes round %d times, lane %d %d times", key, vs[0].lane, vs[0].bits>>8, x.lane, x.bits>>8)
						}
					}
				}
			}
		})
	}
	t.Log(counts)
	for _, what := range []string{"varying", "uniform", "unit", "divergent loop", "uniform loop"} {
		if counts[what] < 100 {
			t.Errorf("only %d of %s", counts[what], what)
		}
	}
}

// TestLaneShapesOfExits has exits of constructs by all lanes or by some.
func TestLaneShapesOfExits(t *testing.T) {
	one, two := ir.Bits(1), ir.Bits(2)
	type world struct {
		b          *ir.Builder
		u, v, i, n ir.Value // uniform and varying bools, a unit, a uniform number
	}
	add := func(w *world, x ir.Value) ir.Value { return w.b.Op(ir.OpAdd, x, w.b.Const(ir.I64, one)) }
	for name, c := range map[string]struct {
		build func(w *world) ir.Value
		want  laneShape
	}{
		"arms by a uniform condition": {func(w *world) ir.Value {
			return w.b.If(w.u, []ir.Type{ir.I64}, func() { w.b.Yield(w.n) }, func() { w.b.Yield(w.b.Const(ir.I64, one)) })[0]
		}, shapeUniform},
		"units by a uniform condition": {func(w *world) ir.Value {
			return w.b.If(w.u, []ir.Type{ir.I64}, func() { w.b.Yield(w.i) }, func() { w.b.Yield(add(w, w.i)) })[0]
		}, shapeUnit},
		"arms by a varying condition": {func(w *world) ir.Value {
			return w.b.If(w.v, []ir.Type{ir.I64}, func() { w.b.Yield(w.n) }, func() { w.b.Yield(w.b.Const(ir.I64, one)) })[0]
		}, shapeVarying},
		"the same by both arms": {func(w *world) ir.Value {
			return w.b.If(w.v, []ir.Type{ir.I64}, func() { w.b.Yield(w.n) }, func() { w.b.Yield(w.n) })[0]
		}, shapeUniform},
		"the same constant by both arms": {func(w *world) ir.Value {
			return w.b.If(w.v, []ir.Type{ir.I64}, func() { w.b.Yield(w.b.Const(ir.I64, two)) }, func() { w.b.Yield(w.b.Const(ir.I64, two)) })[0]
		}, shapeUniform},
		"one arm alone arrives": {func(w *world) ir.Value {
			return w.b.If(w.v, []ir.Type{ir.I64}, func() { w.b.Yield(add(w, w.n)) }, func() { w.b.Break(1, w.n) })[0]
		}, shapeUniform},
		"the number of rounds of a uniform loop": {func(w *world) ir.Value {
			return w.b.Loop([]ir.Value{w.n}, []ir.Type{ir.I64}, func(c []ir.Value) {
				w.b.If(w.u, nil, func() { w.b.Break(1, c[0]) }, func() { w.b.Yield() })
				w.b.Yield(add(w, c[0]))
			})[0]
		}, shapeUniform},
		"the number of rounds of a divergent loop": {func(w *world) ir.Value {
			return w.b.Loop([]ir.Value{w.n}, []ir.Type{ir.I64}, func(c []ir.Value) {
				w.b.If(w.v, nil, func() { w.b.Break(1, c[0]) }, func() { w.b.Yield() })
				w.b.Yield(add(w, c[0]))
			})[0]
		}, shapeVarying},
		"a value from before by a divergent loop": {func(w *world) ir.Value {
			return w.b.Loop([]ir.Value{w.n}, []ir.Type{ir.I64}, func(c []ir.Value) {
				w.b.If(w.v, nil, func() { w.b.Break(1, w.i) }, func() { w.b.Yield() })
				w.b.Yield(add(w, c[0]))
			})[0]
		}, shapeUnit},
		"an if that is left from a divergent loop": {func(w *world) ir.Value {
			return w.b.If(w.u, []ir.Type{ir.I64}, func() {
				w.b.Loop([]ir.Value{w.n}, nil, func(c []ir.Value) {
					w.b.If(w.v, nil, func() { w.b.Break(2, c[0]) }, func() { w.b.Yield() })
					w.b.Yield(add(w, c[0]))
				})
				w.b.Unreachable()
			}, func() { w.b.Yield(w.n) })[0]
		}, shapeVarying},
		"after some have left": {func(w *world) ir.Value {
			return w.b.If(w.u, []ir.Type{ir.I64}, func() {
				w.b.If(w.v, nil, func() { w.b.Break(1, w.n) }, func() { w.b.Yield() })
				w.b.Yield(add(w, w.n))
			}, func() { w.b.Yield(w.n) })[0]
		}, shapeVarying},
	} {
		f := ir.NewFunc("exits", ir.I64)
		w := &world{u: f.AddParam("u", ir.Bool), v: f.AddParam("v", ir.Bool), i: f.AddParam("i", ir.I64), n: f.AddParam("n", ir.I64)}
		w.b = ir.NewBuilder(f)
		x := c.build(w)
		w.b.Yield(x)
		if err := ir.Verify(f); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		a := analyse(&Kernel{Func: f, In: []Access{Same, Unit, CountUnit, PerRow}, Out: []Access{Unit}})
		if got := a.shape(x); got != c.want {
			t.Errorf("%s: shape %d, want %d\n%v", name, got, c.want, f)
		}
	}
}

// TestLaneAnalysisIsQuick bounds the time for a large function.
func TestLaneAnalysisIsQuick(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	f := irtest.Random(r, "large", irtest.Options{Memory: true, Statements: 3000})
	n := 0
	ir.Walk(f.Body, func(*ir.Instr) { n++ })
	k := &Kernel{Func: f, In: make([]Access, len(f.Params))}
	for i := range k.In {
		k.In[i] = []Access{Same, Unit}[i%2]
	}
	best := time.Hour
	for range 20 {
		start := time.Now()
		analyse(k)
		best = min(best, time.Since(start))
	}
	t.Log(n, best)
	if per := best / time.Duration(n); per > 2*time.Microsecond {
		t.Errorf("%v for %d instructions", best, n)
	}
}
