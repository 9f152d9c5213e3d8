package nvptx

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"gpunotes/gpukit/internal/ir"
	"gpunotes/gpukit/internal/ir/irtest"
	"gpunotes/gpukit/internal/ptx"
)

// walker writes random nests of loops that walk over arrays: indices are sums of
// counters times numbers and strides, of values of the iteration before, of what
// was loaded; values are carried on in every order.
type walker struct {
	*rand.Rand
	b      *ir.Builder
	typ    ir.Type
	arrays []ir.ArrayParam // the first is only read
	links  ir.ArrayParam   // of indices 0 to 7
	scope  []ir.Value      // small integers
	values []ir.Value      // of type typ
	budget int
}

// reach is how far from an array's offset an index may lie.
const reach = 1000

func newWalk(r *rand.Rand, name string) (*ir.Func, *irtest.Inputs) {
	w := &walker{Rand: r, typ: []ir.Type{ir.F64, ir.F32, ir.I64, ir.U8, ir.I16}[r.IntN(5)], budget: 4 + r.IntN(14)}
	f := ir.NewFunc(name, ir.I64)
	w.b = ir.NewBuilder(f)
	for i := range 3 {
		w.arrays = append(w.arrays, f.AddArray(fmt.Sprint("a", i), w.typ, 1))
	}
	w.links = f.AddArray("links", ir.I64, 1)
	for i := range 3 {
		w.scope = append(w.scope, f.AddParam(fmt.Sprint("p", i), ir.I64))
	}
	w.values = append(w.values, w.b.Const(w.typ, ir.Convert(w.typ, ir.I64, 3)))
	w.statements(0)
	w.b.Yield(w.scope[w.IntN(len(w.scope))])

	in := &irtest.Inputs{Groups: 1, Group: 1}
	var args []ir.Bits
	for _, p := range f.Params {
		x := 0
		switch p.Kind {
		case ir.Offset:
			x = 2 * reach / 8 * 8 // a multiple of every alignment
		case ir.Shape:
			x = reach
		case ir.Stride:
			if x = 1; r.IntN(3) == 0 {
				x = []int{-1, 2, 0}[r.IntN(3)]
			}
			if p.Mem == w.links.Mem {
				x = 1
			}
		default:
			x = r.IntN(8) - 2
		}
		args = append(args, ir.Bits(x))
	}
	in.Args = [][]ir.Bits{args}
	for i := range 4 {
		data := make([]ir.Bits, 4*reach)
		for j := range data {
			if data[j] = ir.Convert(w.typ, ir.I64, ir.Bits(j%50)); i == 3 {
				data[j] = ir.Bits(r.IntN(8))
			}
		}
		in.Mems = append(in.Mems, data)
	}
	return f, in
}

func (w *walker) int(x int) ir.Value { return w.b.Const(ir.I64, ir.Bits(int64(x))) }

// sum is a small integer.
func (w *walker) sum() ir.Value {
	v := w.int(w.IntN(9) - 4)
	for range 1 + w.IntN(3) {
		x := w.scope[len(w.scope)-1-min(w.IntN(len(w.scope)), w.IntN(len(w.scope)))]
		switch w.IntN(4) {
		case 0:
			x = w.b.Op(ir.OpMul, x, w.int(w.IntN(7)-3))
		case 1:
			x = w.b.Op(ir.OpShl, x, w.int(w.IntN(2)))
		}
		v = w.b.Op([]ir.Op{ir.OpAdd, ir.OpSub}[w.IntN(2)], v, x)
	}
	return v
}

// even is rather a multiple of 4.
func (w *walker) even() ir.Value {
	v := w.sum()
	switch w.IntN(4) {
	case 0:
		return w.int(4 * w.IntN(3))
	case 1, 2:
		return w.b.Op(ir.OpMul, w.b.Op(ir.OpAnd, v, w.int(63)), w.int(4))
	}
	return v
}

func (w *walker) element(a ir.ArrayParam, i ir.Value) ir.Value {
	return w.b.Op(ir.OpAdd, a.Offset, w.b.Op(ir.OpMul, i, a.Stride[0]))
}

func (w *walker) value() ir.Value {
	v := w.values[w.IntN(len(w.values))]
	if w.IntN(2) == 0 {
		a := w.arrays[w.IntN(3)]
		v = w.b.Op(ir.OpAdd, v, w.b.Load(a.Mem, w.element(a, w.sum())))
	}
	return v
}

func (w *walker) statements(depth int) {
	for range 1 + w.IntN(4) {
		if w.budget--; w.budget < 0 {
			return
		}
		switch k := w.IntN(8); {
		case k < 3 && depth < 3:
			w.loop(depth)
		case k == 3: // adjacent elements
			a, i := w.arrays[1+w.IntN(2)], w.even()
			for j := range 2 + w.IntN(3) {
				w.b.Store(a.Mem, w.element(a, w.b.Op(ir.OpAdd, i, w.int(j))), w.value())
			}
		case k == 4:
			a, i := w.arrays[w.IntN(3)], w.even()
			for j := range 2 + w.IntN(3) {
				w.values = append(w.values, w.b.Load(a.Mem, w.element(a, w.b.Op(ir.OpAdd, i, w.int(j)))))
			}
		case k == 5:
			n, m := len(w.scope), len(w.values)
			w.b.If(w.b.Op(ir.OpLt, w.sum(), w.sum()), nil, func() { w.statements(depth + 1); w.b.Yield() }, func() { w.b.Yield() })
			w.scope, w.values = w.scope[:n], w.values[:m]
		default:
			a := w.arrays[1+w.IntN(2)]
			w.b.Store(a.Mem, w.element(a, w.sum()), w.value())
		}
	}
}

// loop has a counter, a value one iteration old, one that follows links, one
// that goes down, and one that adds up.
func (w *walker) loop(depth int) {
	n, m := len(w.scope), len(w.values)
	limit := w.int(w.IntN(13))
	if w.IntN(2) == 0 {
		limit = w.b.Op(ir.OpAnd, w.scope[w.IntN(n)], w.int(15))
	}
	step := 1 + w.IntN(2)*w.IntN(3)
	init := []ir.Value{w.int(w.IntN(3)), w.int(0), w.int(w.IntN(8)), w.b.Op(ir.OpAnd, w.scope[w.IntN(n)], w.int(7)), w.values[w.IntN(m)]}
	down := w.int(w.IntN(3))
	if w.IntN(2) == 0 {
		down = w.b.Op(ir.OpAnd, w.scope[w.IntN(n)], w.int(1))
	}
	r := w.b.Loop(init, []ir.Type{ir.I64, w.typ}, func(c []ir.Value) {
		w.b.If(w.b.Op(ir.OpLt, c[0], limit), nil, func() { w.b.Yield() }, func() { w.b.Break(1, c[1], c[4]) })
		w.scope, w.values = append(w.scope, c[:4]...), append(w.values, c[4])
		early := w.IntN(2) == 0
		var next ir.Value
		if early { // others look at the counter after it went on
			next = w.b.Op(ir.OpAdd, c[0], w.int(step))
		}
		wide := w.b.Convert(ir.U64, c[0])
		w.statements(depth + 1)
		if !early {
			next = w.b.Op(ir.OpAdd, c[0], w.int(step))
		}
		link := w.b.Load(w.links.Mem, w.b.Op(ir.OpAdd, w.links.Offset, c[2]))
		less := w.b.Op(ir.OpSub, c[3], down)
		total := w.b.Op(ir.OpAdd, c[4], w.value())
		old := []ir.Value{c[0], w.b.Convert(ir.I64, wide), c[3]}[w.IntN(3)]
		w.scope, w.values = w.scope[:n], w.values[:m]
		w.b.Yield(next, old, link, less, total)
	})
	w.scope, w.values = append(w.scope, r[0]), append(w.values, r[1])
}

// TestWalks compares random walks over arrays with the evaluator.
func TestWalks(t *testing.T) {
	vectors, steps := 0, 0
	for seed := range uint64(*randomPrograms) / 2 {
		r := rand.New(rand.NewPCG(seed, 99))
		f, in := newWalk(r, "walk")
		if err := ir.Verify(f); err != nil {
			t.Fatal(err)
		}
		k := &Kernel{Name: "walk", Func: f, Out: []Access{Contiguous}, NoAlias: r.IntN(2) == 0, Poll: r.IntN(2) == 0}
		for range f.Params {
			k.In = append(k.In, ByValue)
		}
		if seed%4 > 0 {
			k.Facts = randomFacts(r, f, in, k)
			for m := range f.Mems {
				a := k.Facts.Arrays[ir.Mem(m)]
				a.Align = []int{0, 8, 16, 16}[r.IntN(4)]
				if s := in.Args[0][3*m+2]; s == 1 && r.IntN(4) > 0 {
					a.Unit = true
				}
				k.Facts.Arrays[ir.Mem(m)] = a
			}
		}
		m, entries := emit(t, Target{SM: []int{30, 61, 75}[seed%3]}, k)
		for i := range m.Func("walk").Instrs {
			if d, _ := ptx.Decode(m.Func("walk").Instrs[i].Opcode); d.Vec > 0 {
				vectors++
			}
		}
		want := expect(f, in)
		mc := newMachine(t, m)
		got, err := executeOn(mc, k, entries[0], in, 1, 1)
		if err == nil {
			err = compare(f, got, want, in.Args)
		}
		if err != nil {
			t.Fatalf("seed %d: %v\n%v\n%v", seed, err, f, m)
		}
		steps += mc.steps
	}
	if t.Logf("%d vector instructions, %d steps", vectors, steps); vectors < *randomPrograms/20 || steps < 100**randomPrograms {
		t.Error("too few")
	}
}

// TestVectorOrder runs random loads and stores of few elements, of two memories
// that may be the same one, in a loop whose carried values go on among them: what
// is put together must not change their order.
func TestVectorOrder(t *testing.T) {
	vectors := 0
	for seed := range uint64(*randomPrograms) {
		r := rand.New(rand.NewPCG(seed, 17))
		f := ir.NewFunc("order")
		x, y := f.AddMem(ir.Memory{Name: "x", Elem: ir.I32}), f.AddMem(ir.Memory{Name: "y", Elem: ir.I32})
		n := f.AddParam("n", ir.I32)
		b := ir.NewBuilder(f)
		num := func(k int) ir.Value { return b.Const(ir.I32, ir.Bits(k)) }
		b.Loop([]ir.Value{num(0), num(5), num(7)}, nil, func(c []ir.Value) {
			b.If(b.Op(ir.OpLt, c[0], n), nil, func() { b.Yield() }, func() { b.Break(1) })
			values := append([]ir.Value{}, c...)
			next := make([]ir.Value, 3)
			statements := 4 + r.IntN(8)
			for s := range statements {
				for j := range next { // each goes on somewhere
					if next[j] == 0 && (s == statements-1 || r.IntN(4) == 0) {
						next[j] = b.Op(ir.OpAdd, c[j], num(1+j))
					}
				}
				m, at := []ir.Mem{x, x, y}[r.IntN(3)], b.Const(ir.I64, ir.Bits(r.IntN(4)))
				if r.IntN(3) == 0 {
					values = append(values, b.Load(m, at))
				} else {
					b.Store(m, at, values[r.IntN(len(values))])
				}
			}
			b.Yield(next...)
		})
		b.Yield()
		same := seed%2 == 0
		k := &Kernel{Name: "order", Func: f, NoAlias: !same, Facts: Facts{Arrays: map[ir.Mem]Array{x: {Align: 16}, y: {Align: 16}}}}
		m, entries := emit(t, Target{SM: 61}, k)
		mems := []ir.Storage{storage{1, 2, 3, 4}, storage{5, 6, 7, 8}}
		mc := newMachine(t, m)
		var bases []uint64
		for i := range mems {
			data := make([]byte, 16)
			for j := range 4 {
				put(data[4*j:][:4], mems[i].Load(j))
			}
			bases = append(bases, mc.alloc(data))
		}
		if same {
			bases[1], mems[1] = bases[0], mems[0]
		}
		var params []uint64
		for _, p := range entries[0].Params {
			switch p.Kind {
			case Workers:
				params = append(params, 1)
			case ArgValue:
				params = append(params, 3)
			case MemBase:
				params = append(params, bases[p.Index])
			}
		}
		if err := mc.launch("order", 1, 1, 0, params); err != nil {
			t.Fatalf("seed %d: %v\n%v", seed, err, m)
		}
		if _, err := new(ir.Evaluator).RunWorker(f, mems, []ir.Bits{3}); err != nil {
			t.Fatal(err)
		}
		for i := range mems {
			for j := range 4 {
				if got, want := ir.Wrap(ir.I32, mc.word(bases[i]+uint64(4*j), 4)), mems[i].Load(j); got != want {
					t.Fatalf("seed %d: element %d of memory %d is %d, want %d\n%v\n%v", seed, j, i, got, want, f, m)
				}
			}
		}
		for i := range m.Funcs[0].Instrs {
			if d, _ := ptx.Decode(m.Funcs[0].Instrs[i].Opcode); d.Vec > 0 {
				vectors++
			}
		}
	}
	if t.Logf("%d vector instructions", vectors); vectors < *randomPrograms/3 {
		t.Error("too few")
	}
}

// TestNoVectors: what may not be put together.
func TestNoVectors(t *testing.T) {
	for name, between := range map[string]func(b *ir.Builder, n ir.Value){
		"a check": func(b *ir.Builder, n ir.Value) { b.Bounds(n, b.Const(ir.I64, 2)) },
		"an if": func(b *ir.Builder, n ir.Value) {
			b.If(b.Op(ir.OpLt, n, b.Const(ir.I64, 2)), nil, func() { b.Yield() }, func() { b.Break(1) })
		},
		"a barrier":  func(b *ir.Builder, n ir.Value) { b.Barrier() },
		"an atomic":  func(b *ir.Builder, n ir.Value) { b.Atomic(ir.AtomicAdd, 0, b.Const(ir.I64, 0), n) },
		"a division": func(b *ir.Builder, n ir.Value) { b.Store(0, b.Const(ir.I64, 8), b.Op(ir.OpDiv, n, n)) },
		"nothing":    func(*ir.Builder, ir.Value) {},
		"a value":    func(b *ir.Builder, n ir.Value) { b.Store(0, b.Const(ir.I64, 8), b.Op(ir.OpXor, n, b.Const(ir.I64, 3))) },
	} {
		for _, store := range []bool{false, true} {
			f := ir.NewFunc("pair")
			x, y := f.AddMem(ir.Memory{Name: "x", Elem: ir.I64}), f.AddMem(ir.Memory{Name: "y", Elem: ir.I64})
			n := f.AddParam("n", ir.I64)
			b := ir.NewBuilder(f)
			zero, one := b.Const(ir.I64, 0), b.Const(ir.I64, 1)
			var p, q ir.Value
			if store {
				b.Store(x, zero, n)
				between(b, n)
				b.Store(x, one, n)
			} else {
				p = b.Load(y, zero)
				between(b, n)
				q = b.Load(y, one)
				b.Store(x, b.Const(ir.I64, 5), p)
				b.Store(x, b.Const(ir.I64, 7), q)
			}
			b.Yield()
			m, _ := emit(t, Target{SM: 61}, &Kernel{Name: "pair", Func: f, Threads: true, NoAlias: true, Facts: Facts{Arrays: map[ir.Mem]Array{x: {Align: 16}, y: {Align: 16}}}})
			vectors := opcodes(m.Funcs[0], "ld.global.nc.v2") + opcodes(m.Funcs[0], "st.global.v2")
			if want := name == "nothing" || name == "a value"; (vectors > 0) != want {
				t.Errorf("%s, store %v: %d vectors\n%v", name, store, vectors, m)
			}
		}
	}
}
