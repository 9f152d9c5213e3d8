package nvptx

import (
	"slices"
	"strings"
	"testing"

	"gpunotes/gpukit/internal/ir"
	"gpunotes/gpukit/internal/ptx"
)

// mandelbrot counts the iterations until |z| > 2.
func mandelbrot() *ir.Func {
	f := ir.NewFunc("mandelbrot", ir.I64)
	cx, cy, limit := f.AddParam("cx", ir.F64), f.AddParam("cy", ir.F64), f.AddParam("limit", ir.I64)
	b := ir.NewBuilder(f)
	zero, four := b.Const(ir.F64, 0), b.Const(ir.F64, ir.FromF64(4))
	i0, one := b.Const(ir.I64, 0), b.Const(ir.I64, 1)
	res := b.Loop([]ir.Value{zero, zero, i0}, []ir.Type{ir.I64}, func(c []ir.Value) {
		x, y, i := c[0], c[1], c[2]
		b.If(b.Op(ir.OpLt, i, limit), nil, func() { b.Yield() }, func() { b.Break(1, limit) })
		xx, yy := b.Op(ir.OpMul, x, x), b.Op(ir.OpMul, y, y)
		b.If(b.Op(ir.OpGt, b.Op(ir.OpAdd, xx, yy), four), nil, func() { b.Break(1, i) }, func() { b.Yield() })
		xy := b.Op(ir.OpMul, x, y)
		b.Yield(b.Op(ir.OpAdd, b.Op(ir.OpSub, xx, yy), cx), b.Op(ir.OpAdd, b.Op(ir.OpAdd, xy, xy), cy), b.Op(ir.OpAdd, i, one))
	})
	b.Yield(res[0])
	return f
}

// primes counts the primes below n: its inner loop leaves by a continue of the
// outer one.
func primes() *ir.Func {
	f := ir.NewFunc("primes", ir.I32)
	n := f.AddParam("n", ir.I32)
	b := ir.NewBuilder(f)
	zero, one, two := b.Const(ir.I32, 0), b.Const(ir.I32, 1), b.Const(ir.I32, 2)
	res := b.Loop([]ir.Value{two, zero}, []ir.Type{ir.I32}, func(c []ir.Value) {
		p, count := c[0], c[1]
		b.If(b.Op(ir.OpLt, p, n), nil, func() { b.Yield() }, func() { b.Break(1, count) })
		next := b.If(b.Const(ir.Bool, 1), []ir.Type{ir.I32}, func() {
			b.Loop([]ir.Value{two}, nil, func(c []ir.Value) {
				d := c[0]
				b.If(b.Op(ir.OpLe, b.Op(ir.OpMul, d, d), p), nil, func() { b.Yield() }, func() { b.Break(1) })
				b.If(b.Op(ir.OpEq, b.Op(ir.OpRem, p, d), zero), nil, func() { b.Break(2, count) }, func() { b.Yield() })
				b.Yield(b.Op(ir.OpAdd, d, one))
			})
			b.Yield(b.Op(ir.OpAdd, count, one))
		}, func() { b.Unreachable() })
		b.Yield(b.Op(ir.OpAdd, p, one), next[0])
	})
	b.Yield(res[0])
	return f
}

// collatz counts the steps from n to 1, -1 for n < 1.
func collatz() *ir.Func {
	f := ir.NewFunc("collatz", ir.I64)
	n := f.AddParam("n", ir.I64)
	b := ir.NewBuilder(f)
	one, zero, two := b.Const(ir.I64, 1), b.Const(ir.I64, 0), b.Const(ir.I64, 2)
	b.If(b.Op(ir.OpLt, n, one), nil, func() { b.Break(1, b.Const(ir.I64, ^ir.Bits(0))) }, func() { b.Yield() })
	steps := b.Loop([]ir.Value{n, zero}, []ir.Type{ir.I64}, func(c []ir.Value) {
		b.If(b.Op(ir.OpEq, c[0], one), nil, func() { b.Break(1, c[1]) }, func() { b.Yield() })
		next := b.If(b.Op(ir.OpEq, b.Op(ir.OpRem, c[0], two), zero), []ir.Type{ir.I64},
			func() { b.Yield(b.Op(ir.OpDiv, c[0], two)) },
			func() { b.Yield(b.Op(ir.OpAdd, b.Op(ir.OpMul, c[0], b.Const(ir.I64, 3)), one)) })
		b.Yield(next[0], b.Op(ir.OpAdd, c[1], one))
	})
	b.Yield(steps[0])
	return f
}

// chord is the haversine formula without its trigonometry: what is left when
// sines and cosines are arguments.
func chord() *ir.Func {
	f := ir.NewFunc("chord", ir.F64)
	var p []ir.Value
	for _, n := range []string{"sinLat", "cosLat1", "cosLat2", "sinLon", "s"} {
		p = append(p, f.AddParam(n, ir.F64))
	}
	b := ir.NewBuilder(f)
	sq := func(x ir.Value) ir.Value { return b.Op(ir.OpMul, x, x) }
	a := b.Op(ir.OpAdd, sq(p[0]), b.Op(ir.OpMul, b.Op(ir.OpMul, p[1], p[2]), sq(p[3])))
	fn, _ := ir.LookupMath("math.Sqrt")
	b.Yield(b.Op(ir.OpMul, b.Math(fn, a), p[4]))
	return f
}

type controlCase struct {
	f       *ir.Func
	in      []Access
	workers [][]ir.Bits
}

func controls() (out []controlCase) {
	m := controlCase{f: mandelbrot(), in: []Access{Contiguous, Strided, ByValue}}
	for i := range 40 {
		m.workers = append(m.workers, []ir.Bits{ir.FromF64(-2 + float64(0.07*float64(i))), ir.FromF64(0.03 * float64(i%7)), 60})
	}
	p := controlCase{f: primes(), in: []Access{Contiguous}}
	c := controlCase{f: collatz(), in: []Access{Strided}}
	for i := range 40 {
		p.workers = append(p.workers, []ir.Bits{ir.Bits(i * 3)})
		c.workers = append(c.workers, []ir.Bits{ir.Bits(i - 3)})
	}
	h := controlCase{f: chord(), in: []Access{Contiguous, ByValue, Contiguous, Strided, ByValue}}
	for i := range 40 {
		x := float64(i) / 17
		h.workers = append(h.workers, []ir.Bits{ir.FromF64(x), ir.FromF64(0.7), ir.FromF64(1 / (x + 1)), ir.FromF64(x * x), ir.FromF64(6371)})
	}
	return []controlCase{m, p, c, h}
}

func TestControl(t *testing.T) {
	for _, c := range controls() {
		for _, f := range []*ir.Func{c.f, ir.Optimize(c.f)} {
			for _, target := range targets {
				k := &Kernel{Name: f.Name, Func: f, In: c.in, Out: []Access{Strided}, NoAlias: true}
				m, entries := emit(t, target, k)
				for _, geometry := range [][2]int{{1, 1}, {3, 4}, {2, 64}} {
					want, _ := evaluate(c.f, c.workers)
					got, err := execute(newMachine(t, m), k, entries[0], c.workers, geometry[0], geometry[1])
					if err == nil {
						err = compare(f, got, want, c.workers)
					}
					if err != nil {
						t.Fatalf("sm_%d: %v\n%v\n%v", target.SM, err, f, m)
					}
				}
			}
		}
	}
}

// TestCancel: a cancel word that is set ends a loop that would not.
func TestCancel(t *testing.T) {
	f := ir.NewFunc("forever", ir.I64)
	b := ir.NewBuilder(f)
	b.Loop([]ir.Value{b.Const(ir.I64, 0)}, nil, func(c []ir.Value) { b.Yield(b.Op(ir.OpAdd, c[0], b.Const(ir.I64, 1))) })
	b.Unreachable()
	k := &Kernel{Name: "forever", Func: f, Out: []Access{Contiguous}, Poll: true}
	m, entries := emit(t, Target{SM: 35}, k)
	for _, word := range []byte{1, 0} {
		mc := newMachine(t, m)
		mc.limit = 10000
		var params []uint64
		for _, p := range entries[0].Params {
			switch p.Kind {
			case Workers:
				params = append(params, 5)
			case OutBase:
				params = append(params, mc.alloc(make([]byte, 40)))
			case Cancel:
				params = append(params, mc.alloc([]byte{0, 0, word, 0}))
			}
		}
		if err := mc.launch("forever", 1, 2, 0, params); (err == nil) != (word == 1) {
			t.Errorf("cancel word %d: %v", word, err)
		}
	}
}

// TestLoopDimensions broadcasts a column against a row, with the column
// reversed.
func TestLoopDimensions(t *testing.T) {
	f := ir.NewFunc("outer", ir.F64)
	x, y := f.AddParam("x", ir.F64), f.AddParam("y", ir.F64)
	b := ir.NewBuilder(f)
	b.Yield(b.Op(ir.OpSub, x, y))
	k := &Kernel{Name: "outer", Func: f, Rank: 3, In: []Access{Strided, Strided}, Out: []Access{Contiguous}}
	m, entries := emit(t, Target{SM: 61}, k)
	mc := newMachine(t, m)
	data := func(n int) uint64 {
		b := make([]byte, 8*n)
		for i := range n {
			put(b[8*i:][:8], ir.FromF64(float64(i)))
		}
		return mc.alloc(b)
	}
	shape, strides := []int{2, 3, 5}, [2][]int{{0, -1, 0}, {0, 0, 1}}
	bases := [2]uint64{data(3) + 16, data(5)}
	out := mc.alloc(make([]byte, 8*30))
	var params []uint64
	for _, p := range entries[0].Params {
		switch p.Kind {
		case Workers:
			params = append(params, 30)
		case LoopShape:
			params = append(params, uint64(shape[p.Dim]))
		case ArgBase:
			params = append(params, bases[p.Index])
		case ArgStride:
			params = append(params, uint64(strides[p.Index][p.Dim]))
		case OutBase:
			params = append(params, out)
		}
	}
	if err := mc.launch("outer", 2, 7, 0, params); err != nil {
		t.Fatal(err)
	}
	for i := range 30 {
		if got, want := ir.ToF64(mc.word(out+uint64(8*i), 8)), float64(2-i/5%3)-float64(i%5); got != want {
			t.Errorf("element %d is %v, want %v", i, got, want)
		}
	}
}

// blocks runs a Threads kernel of one array parameter per slice; its scalar
// parameters follow. It returns the record.
func blocks(t *testing.T, target Target, f *ir.Func, grid, block, dynamic int, arrays [][]ir.Bits, scalars ...uint64) uint64 {
	t.Helper()
	m, entries := emit(t, target, &Kernel{Name: f.Name, Func: f, Threads: true, NoAlias: true})
	return runBlocks(t, m, entries[0], f, grid, block, dynamic, arrays, scalars...)
}

func runBlocks(t *testing.T, m *ptx.Module, entry *Entry, f *ir.Func, grid, block, dynamic int, arrays [][]ir.Bits, scalars ...uint64) uint64 {
	t.Helper()
	mc := newMachine(t, m)
	var bases []uint64
	for i, a := range arrays {
		size := f.Mems[i].Elem.Size()
		b := make([]byte, size*len(a))
		for j, x := range a {
			put(b[size*j:][:size], x)
		}
		bases = append(bases, mc.alloc(b))
	}
	record := mc.alloc([]byte{255, 255, 255, 255, 255, 255, 255, 255})
	var params []uint64
	for _, p := range entry.Params {
		switch p.Kind {
		case MemBase:
			params = append(params, bases[p.Index])
		case Record:
			params = append(params, record)
		case ArgValue:
			switch q := f.Params[p.Index]; q.Kind {
			case ir.Offset:
				params = append(params, 0)
			case ir.Stride:
				params = append(params, 1)
			case ir.Shape:
				params = append(params, uint64(len(arrays[q.Mem])))
			default:
				params = append(params, scalars[0])
				scalars = scalars[1:]
			}
		}
	}
	if err := mc.launch(f.Name, grid, block, dynamic, params); err != nil {
		t.Fatalf("%v\n%v", err, m)
	}
	for i, a := range arrays {
		for j := range a {
			size := f.Mems[i].Elem.Size()
			if a[j] = mc.word(bases[i]+uint64(size*j), size); f.Mems[i].Elem.IsInt() {
				a[j] = ir.Wrap(f.Mems[i].Elem, a[j])
			}
		}
	}
	return mc.word(record, 8)
}

// sum adds up what the threads of a block read, through shared memory of length
// n (0: dynamic), and leaves it in out[block].
func sum(n, block int) *ir.Func {
	f := ir.NewFunc("sum")
	x, out := f.AddArray("x", ir.F64, 1), f.AddArray("out", ir.F64, 1)
	tid := f.AddParamOf(ir.Param{Name: "threadIdx.x", Kind: ir.ThreadIdx}, ir.I64)
	bid := f.AddParamOf(ir.Param{Name: "blockIdx.x", Kind: ir.BlockIdx}, ir.I64)
	dim := f.AddParamOf(ir.Param{Name: "blockDim.x", Kind: ir.BlockDim}, ir.I64)
	s := f.AddMem(ir.Memory{Name: "s", Space: ir.Shared, Elem: ir.F64, Len: n})
	b := ir.NewBuilder(f)
	b.Pos = ir.Pos{File: "cell 4", Line: 3, Col: 9}
	i := b.Op(ir.OpAdd, b.Op(ir.OpMul, bid, dim), tid)
	b.Bounds(i, x.Shape[0])
	b.Store(s, tid, b.Load(x.Mem, b.Op(ir.OpAdd, x.Offset, b.Op(ir.OpMul, i, x.Stride[0]))))
	zero, two := b.Const(ir.I64, 0), b.Const(ir.I64, 2)
	b.Loop([]ir.Value{b.Const(ir.I64, ir.Bits(block/2))}, nil, func(c []ir.Value) {
		b.If(b.Op(ir.OpGt, c[0], zero), nil, func() { b.Yield() }, func() { b.Break(1) })
		b.Barrier()
		b.If(b.Op(ir.OpLt, tid, c[0]), nil, func() {
			b.Store(s, tid, b.Op(ir.OpAdd, b.Load(s, tid), b.Load(s, b.Op(ir.OpAdd, tid, c[0]))))
			b.Yield()
		}, func() { b.Yield() })
		b.Yield(b.Op(ir.OpDiv, c[0], two))
	})
	b.If(b.Op(ir.OpEq, tid, zero), nil, func() {
		b.Store(out.Mem, b.Op(ir.OpAdd, out.Offset, bid), b.Load(s, zero))
		b.Yield()
	}, func() { b.Yield() })
	b.Yield()
	return f
}

func TestSharedMemory(t *testing.T) {
	for _, target := range targets {
		for _, n := range []int{64, 0} {
			x, out := make([]ir.Bits, 192), make([]ir.Bits, 3)
			for i := range x {
				x[i] = ir.FromF64(float64(i))
			}
			if r := blocks(t, target, ir.Optimize(sum(n, 64)), 3, 64, 512, [][]ir.Bits{x, out}); r != ^uint64(0) {
				t.Errorf("record %#x", r)
			}
			for b, v := range out {
				if want := float64(64*(2*64*b+63)) / 2; ir.ToF64(v) != want {
					t.Errorf("block %d: %v, want %v", b, ir.ToF64(v), want)
				}
			}
		}
		// Too short an array: thread 100 is the first beyond it.
		r := blocks(t, target, sum(64, 64), 3, 64, 0, [][]ir.Bits{make([]ir.Bits, 100), make([]ir.Bits, 3)})
		if w, check, failed := Failure(r); !failed || w != 100 || check != 0 {
			t.Errorf("record %#x: worker %d, check %d", r, w, check)
		}
	}
}

// TestAtomics applies every kind on every type with code, from many threads,
// and looks at each old value through single threads.
func TestAtomics(t *testing.T) {
	for _, target := range targets {
		for _, space := range []ir.Space{ir.Global, ir.Shared, ir.Local} {
			for _, typ := range ir.Types[1:] {
				for kind := ir.AtomicAdd; kind <= ir.CompareSwap; kind++ {
					if typ.IsFloat() && kind >= ir.AtomicAnd && kind <= ir.AtomicXor {
						continue
					}
					f := ir.NewFunc("atomic")
					mem, old := f.AddArray("mem", typ, 1), f.AddArray("old", typ, 1)
					x, y := f.AddParam("x", typ), f.AddParam("y", typ)
					at := mem.Mem
					if space != ir.Global {
						at = f.AddMem(ir.Memory{Name: "own", Space: space, Elem: typ, Len: 3})
					}
					b := ir.NewBuilder(f)
					two := b.Const(ir.I64, 2)
					if space != ir.Global {
						b.Store(at, two, b.Load(mem.Mem, two))
					}
					args := []ir.Value{x}
					if kind == ir.CompareSwap {
						args = append(args, y)
					}
					b.Store(old.Mem, two, b.Atomic(kind, at, two, args...))
					b.Store(mem.Mem, two, b.Load(at, two))
					b.Yield()
					if err := ir.Verify(f); err != nil {
						t.Fatal(err)
					}
					m, entries := emit(t, target, &Kernel{Name: f.Name, Func: f, Threads: true, NoAlias: true})
					vals := specials(typ)
					for i := range 40 {
						was, v, w := vals[i%len(vals)], vals[i*7%len(vals)], vals[i*3%len(vals)]
						if i%3 == 0 {
							v = was
						}
						arrays := [][]ir.Bits{{0, 0, was}, {0, 0, 0}}
						runBlocks(t, m, entries[0], f, 1, 1, 0, arrays, v, w)
						want := ir.AtomicResult(kind, typ, was, []ir.Bits{v, w})
						if ir.Canonical(typ, arrays[0][2]) != ir.Canonical(typ, want) || arrays[1][2] != was {
							t.Fatalf("sm_%d: kind %d of %v in %v memory: %#x with %#x, %#x becomes %#x, was %#x; want %#x", target.SM, kind, typ, space, was, v, w, arrays[0][2], arrays[1][2], want)
						}
					}
				}
			}
		}
	}
}

// TestContention lets threads meet at one word: compare-and-swap loops must try
// again.
func TestContention(t *testing.T) {
	for _, target := range targets {
		for _, typ := range []ir.Type{ir.F32, ir.F64, ir.U64, ir.U16} {
			f := ir.NewFunc("count")
			a := f.AddArray("a", typ, 1)
			tid := f.AddParamOf(ir.Param{Name: "threadIdx.x", Kind: ir.ThreadIdx}, ir.I64)
			b := ir.NewBuilder(f)
			zero, one := b.Const(ir.I64, 0), b.Const(ir.I64, 1)
			b.Atomic(ir.AtomicAdd, a.Mem, zero, b.Convert(typ, tid))
			b.Atomic(ir.AtomicMax, a.Mem, one, b.Convert(typ, tid))
			b.Yield()
			arrays := [][]ir.Bits{{0, 0}}
			blocks(t, target, f, 2, 50, 0, arrays)
			sum, top := ir.Convert(ir.I64, typ, arrays[0][0]), ir.Convert(ir.I64, typ, arrays[0][1])
			if sum != 2*49*50/2 || top != 49 {
				t.Errorf("sm_%d, %v: sum %d, largest %d", target.SM, typ, sum, top)
			}
		}
	}
}

// TestWarp compares shuffles of every type and votes with the evaluator, some
// lanes having left.
func TestWarp(t *testing.T) {
	for _, target := range []Target{{SM: 30}, {SM: 75}} {
		for _, typ := range ir.Types {
			for kind := ir.ShuffleIdx; kind <= ir.ShuffleXor; kind++ {
				f := ir.NewFunc("warp")
				x, by, out, ballot := f.AddArray("x", typ, 1), f.AddArray("by", ir.I64, 1), f.AddArray("out", typ, 1), f.AddArray("ballot", ir.U32, 1)
				tid := f.AddParamOf(ir.Param{Name: "threadIdx.x", Kind: ir.ThreadIdx}, ir.I64)
				b := ir.NewBuilder(f)
				p := b.Op(ir.OpLt, b.Load(by.Mem, tid), b.Const(ir.I64, 3))
				b.If(b.Op(ir.OpNe, tid, b.Const(ir.I64, 5)), nil, func() { b.Yield() }, func() { b.Break(1) })
				b.WarpBarrier()
				b.Store(out.Mem, tid, b.Shuffle(kind, b.Load(x.Mem, tid), b.Load(by.Mem, tid)))
				votes := b.Vote(ir.Ballot, p)
				any, all := b.Vote(ir.VoteAny, p), b.Vote(ir.VoteAll, p)
				votes = b.Op(ir.OpAdd, votes, b.Op(ir.OpSelect, b.Op(ir.OpXor, any, all), b.Const(ir.U32, 1<<20), b.Const(ir.U32, 0)))
				b.Store(ballot.Mem, tid, votes)
				b.Yield()
				const n = 50
				arrays := [][]ir.Bits{make([]ir.Bits, n), make([]ir.Bits, n), make([]ir.Bits, n), make([]ir.Bits, n)}
				var mems []ir.Storage
				vals := specials(typ)
				var args [][]ir.Bits
				for i := range n {
					arrays[0][i] = vals[i%len(vals)]
					arrays[1][i] = ir.Bits(int64([]int{0, 1, 2, 5, 16, 31, 32, -1, 1 << 40, 3}[i*7%10]))
					args = append(args, []ir.Bits{0, n, 1, 0, n, 1, 0, n, 1, 0, n, 1, ir.Bits(i)})
				}
				for _, a := range arrays {
					mems = append(mems, storage(slices.Clone(a)))
				}
				if _, err := new(ir.Evaluator).RunBlock(f, mems, args); err != nil {
					t.Fatal(err)
				}
				blocks(t, target, f, 1, n, 0, arrays)
				for i, a := range arrays {
					if !slices.Equal([]ir.Bits(a), []ir.Bits(mems[i].(storage))) {
						t.Errorf("sm_%d, kind %d of %v: array %d is %x, want %x", target.SM, kind, typ, i, a, mems[i])
					}
				}
			}
		}
	}
}

type storage []ir.Bits

func (s storage) Load(i int) ir.Bits     { return s[i] }
func (s storage) Store(i int, b ir.Bits) { s[i] = b }

// TestMemories copies arrays of every type through Local memory, cleared before,
// adding elements of a constant table.
func TestMemories(t *testing.T) {
	for _, typ := range ir.Types {
		for _, n := range []int{4, 40} {
			f := ir.NewFunc("memories")
			x, out := f.AddArray("x", typ, 1), f.AddArray("out", typ, 1)
			table := f.AddMem(ir.Memory{Name: "table", Space: ir.Constant, Elem: typ, Len: len(specials(typ)), Data: specials(typ)})
			local := f.AddMem(ir.Memory{Name: "buf", Space: ir.Local, Elem: typ, Len: n})
			tid := f.AddParamOf(ir.Param{Name: "threadIdx.x", Kind: ir.ThreadIdx}, ir.I64)
			b := ir.NewBuilder(f)
			k := func(i int) ir.Value { return b.Const(ir.I64, ir.Bits(i)) }
			b.Store(local, k(1), b.Load(x.Mem, tid))
			b.Clear(local)
			b.Store(local, k(2), b.Load(x.Mem, tid))
			half := b.Op(ir.OpRem, tid, b.Const(ir.I64, ir.Bits(len(specials(typ)))))
			b.Store(local, k(3), b.Load(table, half))
			for i := range 4 {
				b.Store(out.Mem, b.Op(ir.OpAdd, b.Op(ir.OpMul, tid, k(4)), k(i)), b.Load(local, k(i)))
			}
			b.Yield()
			in := specials(typ)
			arrays := [][]ir.Bits{slices.Clone(in), make([]ir.Bits, 4*len(in))}
			blocks(t, Target{SM: 52}, f, 1, len(in), 0, arrays)
			for i, v := range in {
				if want := []ir.Bits{0, 0, v, v}; !slices.Equal(arrays[1][4*i:][:4], want) {
					t.Errorf("%v, thread %d: %x, want %x", typ, i, arrays[1][4*i:][:4], want)
				}
			}
		}
	}
}

func TestMissing(t *testing.T) {
	f := ir.NewFunc("f", ir.F64)
	x := f.AddParam("x", ir.F64)
	b := ir.NewBuilder(f)
	for _, n := range []string{"math.Sin", "math.Abs", "math.Exp", "math.Sin"} {
		fn, _ := ir.LookupMath(n)
		x = b.Math(fn, x)
	}
	b.Yield(x)
	_, _, err := Emit(Target{SM: 61}, elementwise("f", f))
	if want := "no device code for math.Exp, math.Sin yet (in f)"; err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	if _, _, err := Emit(Target{SM: 61, PTX: ptx.Version{Major: 2, Minor: 3}}, elementwise("collatz", collatz())); err == nil || !strings.Contains(err.Error(), "use a newer driver") {
		t.Error(err)
	}
	if _, _, err := Emit(Target{SM: 61}, &Kernel{Name: "sum", Func: sum(64, 64)}); err == nil || !strings.Contains(err.Error(), "threads meet") {
		t.Error(err)
	}
	if _, _, err := Emit(Target{SM: 20}, elementwise("collatz", collatz())); err == nil || !strings.Contains(err.Error(), "2.0 is too old") {
		t.Error(err)
	}
}

// TestTarget: the lowest target and version that give what is used.
func TestTarget(t *testing.T) {
	count := ir.NewFunc("count")
	a := count.AddArray("a", ir.F64, 1)
	b := ir.NewBuilder(count)
	b.Atomic(ir.AtomicAdd, a.Mem, a.Offset, b.Const(ir.F64, ir.FromF64(1)))
	b.Yield()
	for _, c := range []struct {
		k      *Kernel
		sm     int
		target int
		ver    string
		want   string
	}{
		{elementwise("k", chord()), 30, 30, "3.0", "ld.global.f64"},
		{elementwise("k", chord()), 61, 30, "3.0", "ld.global.f64"},
		{elementwise("k", chord()), 75, 70, "6.0", "ld.global.f64"},
		{&Kernel{Name: "k", Func: chord(), In: []Access{Contiguous}, Out: []Access{Contiguous}, NoAlias: true}, 30, 30, "3.0", "ld.global.f64"},
		{&Kernel{Name: "k", Func: chord(), In: []Access{Contiguous}, Out: []Access{Contiguous}, NoAlias: true}, 52, 35, "3.1", "ld.global.nc.f64"},
		{elementwise("k", primes()), 30, 30, "3.0", "atom.global.cas.b64"},
		{elementwise("k", primes()), 52, 35, "3.1", "atom.global.min.u64"},
		{&Kernel{Name: "k", Func: count, Threads: true}, 52, 30, "3.0", "atom.global.cas.b64"},
		{&Kernel{Name: "k", Func: count, Threads: true}, 61, 60, "5.0", "atom.global.add.f64"},
		{&Kernel{Name: "k", Func: count, Threads: true}, 90, 70, "6.0", "atom.global.add.f64"},
	} {
		m, _ := emit(t, Target{SM: c.sm}, c.k)
		if m.Target != c.target || m.Version.String() != c.ver || !strings.Contains(m.String(), c.want) {
			t.Errorf("%s for sm_%d: .target sm_%d, .version %v; want sm_%d, %s with %s\n%v", c.k.Func.Name, c.sm, m.Target, m.Version, c.target, c.ver, c.want, m)
		}
	}
}

// TestChoices pins what operations become.
func TestChoices(t *testing.T) {
	m, _ := emit(t, Target{SM: 61}, func() (ks []*Kernel) {
		for _, s := range singles() {
			ks = append(ks, elementwise(s.name, s.f))
		}
		return ks
	}()...)
	for name, want := range map[string][]string{
		"add_float64": {"add.rn.f64"}, "mul_float32": {"mul.rn.f32"}, "div_float32": {"div.rn.f32"}, "add_int8": {"add.s32", "cvt.s32.s8"}, "mul_uint16": {"mul.lo.u32", "and.b32"},
		"div_int64": {"setp.eq.s64", "bra FAULT0", "selp.b64", "div.s64", "neg.s64"}, "rem_uint32": {"setp.eq.u32", "rem.u32"}, "shr_int16_uint64": {"min.u64", "cvt.u32.u64", "shr.s32"},
		"shl_uint8_int8": {"setp.lt.s32", "shl.b32", "and.b32"}, "ne_float64": {"setp.neu.f64"}, "eq_float64": {"setp.eq.f64"}, "eq_bool": {"xor.pred", "not.pred"}, "select_bool": {"or.pred"},
		"min_float64": {"setp.lt.f64", "or.b64", "setp.nan.f64"}, "max_int32": {"max.s32"}, "convert_float64_int8": {"cvt.rzi.s32.f64", "min.s32", "max.s32", "setp.nan.f64"},
		"convert_uint64_float32": {"cvt.rn.f32.u64"}, "convert_float64_float32": {"cvt.rn.f32.f64"}, "math_FMA": {"fma.rn.f64"}, "math_Sqrt": {"sqrt.rn.f64"}, "math_Floor": {"cvt.rmi.f64.f64"},
		"bits_Mul64_hi": {"mul.hi.u64"}, "bits_OnesCount8": {"popc.b32"},
	} {
		f := m.Func(name)
		if f == nil {
			t.Errorf("no kernel %s", name)
			continue
		}
		var lines []string
		for i := range f.Instrs {
			lines = append(lines, f.Format(&f.Instrs[i]))
		}
		text := strings.Join(lines, "\n")
		for _, w := range want {
			if !strings.Contains(text, w) {
				t.Errorf("%s: no %s in\n%s", name, w, text)
			}
		}
	}
	// Only math.FMA fuses, and no rounding is left open.
	for _, f := range m.Funcs {
		for i := range f.Instrs {
			d, _ := ptx.Decode(f.Instrs[i].Opcode)
			if d.Op == "fma" != (f.Name == "math_FMA" && d.Op == "fma") || slices.Contains([]string{"add", "sub", "mul"}, d.Op) && d.Type.IsFloat() && !d.Has("rn") {
				t.Errorf("%s: %s", f.Name, f.Format(&f.Instrs[i]))
			}
		}
	}
}

// TestLargeStride: in a grid of 2^32 threads the step to a thread's next worker
// does not fit 32 bits. The registers that say so are put into the text as
// numbers: one thread stands for the grid.
func TestLargeStride(t *testing.T) {
	f := ir.NewFunc("f")
	sum := f.AddArray("sum", ir.U64, 1)
	b := ir.NewBuilder(f)
	b.Atomic(ir.AtomicAdd, sum.Mem, b.Const(ir.I64, 0), b.Convert(ir.U64, sum.Offset))
	b.Atomic(ir.AtomicAdd, sum.Mem, b.Const(ir.I64, 1), b.Const(ir.U64, 1))
	b.Yield()
	k := &Kernel{Name: "f", Func: f}
	for _, p := range f.Params { // the offset is the worker's number
		k.In = append(k.In, map[bool]Access{true: Strided, false: ByValue}[p.Kind == ir.Offset])
	}
	for _, sm := range []int{30, 61, 90} {
		m, entries := emit(t, Target{SM: sm}, k)
		text := strings.NewReplacer("%nctaid.x", "16777216", "%ntid.x", "256").Replace(m.String())
		m, err := ptx.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		mc := newMachine(t, m)
		mc.limit = 1e4 // a step of 0 has no end
		memory := mc.alloc(make([]byte, 16))
		var params []uint64
		for _, q := range entries[0].Params {
			switch q.Kind {
			case Workers:
				params = append(params, 3<<32+1)
			case MemBase:
				params = append(params, memory)
			case ArgValue:
				params = append(params, 0)
			case ArgStride:
				params = append(params, 1)
			default:
				t.Fatalf("parameter %v", q)
			}
		}
		if err := mc.launch("f", 1, 1, 0, params); err != nil {
			t.Fatalf("sm_%d: %v\n%v", sm, err, m)
		}
		if s, n := mc.word(memory, 8), mc.word(memory+8, 8); s != 6<<32 || n != 4 {
			t.Errorf("sm_%d: %d workers, whose numbers add up to %d, want 4, %d", sm, n, s, uint64(6<<32))
		}
	}
}
