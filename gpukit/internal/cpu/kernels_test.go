package cpu

import (
	"math"
	"testing"

	"gpunotes/gpukit/internal/ir"
)

// Kernels as they are written for blocks of threads, against plain Go.

// count makes a loop of i from 0 up to n with one carried value.
func count(b *ir.Builder, n, first ir.Value, body func(i, v ir.Value) ir.Value) ir.Value {
	r := b.Loop([]ir.Value{i64(b, 0), first}, []ir.Type{b.F.Types[first]}, func(c []ir.Value) {
		b.If(b.Op(ir.OpGe, c[0], n), nil, func() { b.Break(1, c[1]) }, func() { b.Yield() })
		v := body(c[0], c[1])
		b.Yield(b.Op(ir.OpAdd, c[0], i64(b, 1)), v)
	})
	return r[0]
}

func when(b *ir.Builder, cond ir.Value, body func()) {
	b.If(cond, nil, func() { body(); b.Yield() }, func() { b.Yield() })
}

// elementOf is the checked place of a[i] or a[i][j].
func elementOf(b *ir.Builder, a ir.ArrayParam, idx ...ir.Value) ir.Value {
	at := a.Offset
	for d, i := range idx {
		b.Bounds(i, a.Shape[d])
		at = b.Op(ir.OpAdd, at, b.Op(ir.OpMul, i, a.Stride[d]))
	}
	return at
}

func coordinate(f *ir.Func, k ir.ParamKind, name string, dim int) ir.Value {
	return f.AddParamOf(ir.Param{Name: name, Kind: k, Dim: dim}, ir.I64)
}

// grid2 gives what a kernel's parameters are on blocks of threads in two
// dimensions, given the shapes of its arrays, which are contiguous, and its
// scalars, both in order.
func grid2(f *ir.Func, blocks, threads [2]int, shapes [][]int, scalars ...ir.Bits) Launch {
	l := Launch{Shape: []int{blocks[1], blocks[0], threads[1], threads[0]}, Group: threads[0] * threads[1]}
	for _, p := range f.Params {
		o := Operand{Type: f.Types[p.Value]}
		steps := func(d int) { o.Index, o.Strides = true, make([]int, 4); o.Strides[d] = 1 }
		switch p.Kind {
		case ir.ThreadIdx:
			steps(3 - p.Dim)
		case ir.BlockIdx:
			steps(1 - p.Dim)
		case ir.BlockDim:
			o.Scalar = ir.Bits(threads[p.Dim])
		case ir.GridDim:
			o.Scalar = ir.Bits(blocks[p.Dim])
		case ir.Shape:
			o.Scalar = ir.Bits(shapes[p.Mem][p.Dim])
		case ir.Stride:
			o.Scalar = ir.Bits(workersOf(shapes[p.Mem][p.Dim+1:]))
		case ir.Scalar:
			o.Scalar, scalars = scalars[0], scalars[1:]
		}
		l.In = append(l.In, o)
	}
	return l
}

// tiled multiplies matrices by tiles in shared memory, as CUDA's guide does.
func tiled(tile int) *ir.Func {
	f := ir.NewFunc("matmul")
	a, c, out := f.AddArray("a", ir.F32, 2), f.AddArray("b", ir.F32, 2), f.AddArray("c", ir.F32, 2)
	tx, ty := coordinate(f, ir.ThreadIdx, "tx", 0), coordinate(f, ir.ThreadIdx, "ty", 1)
	bx, by := coordinate(f, ir.BlockIdx, "bx", 0), coordinate(f, ir.BlockIdx, "by", 1)
	sa := f.AddMem(ir.Memory{Name: "sa", Space: ir.Shared, Elem: ir.F32, Len: tile * tile})
	sb := f.AddMem(ir.Memory{Name: "sb", Space: ir.Shared, Elem: ir.F32, Len: tile * tile})
	b := ir.NewBuilder(f)
	n := i64(b, int64(tile))
	at := func(y, x ir.Value) ir.Value { return b.Op(ir.OpAdd, b.Op(ir.OpMul, y, n), x) }
	row, col := at(by, ty), at(bx, tx)
	zero := b.Const(ir.F32, 0)
	guarded := func(m ir.ArrayParam, y, x ir.Value) ir.Value {
		in := b.Op(ir.OpAnd, b.Op(ir.OpLt, y, m.Shape[0]), b.Op(ir.OpLt, x, m.Shape[1]))
		return b.If(in, []ir.Type{ir.F32}, func() { b.Yield(b.Load(m.Mem, elementOf(b, m, y, x))) }, func() { b.Yield(zero) })[0]
	}
	tiles := b.Op(ir.OpDiv, b.Op(ir.OpAdd, a.Shape[1], i64(b, int64(tile-1))), n)
	sum := count(b, tiles, zero, func(t, sum ir.Value) ir.Value {
		b.Store(sa, at(ty, tx), guarded(a, row, at(t, tx)))
		b.Store(sb, at(ty, tx), guarded(c, at(t, ty), col))
		b.Barrier()
		sum = count(b, n, sum, func(k, s ir.Value) ir.Value {
			return b.Op(ir.OpAdd, s, b.Op(ir.OpMul, b.Load(sa, at(ty, k)), b.Load(sb, at(k, tx))))
		})
		b.Barrier()
		return sum
	})
	when(b, b.Op(ir.OpAnd, b.Op(ir.OpLt, row, out.Shape[0]), b.Op(ir.OpLt, col, out.Shape[1])), func() {
		b.Store(out.Mem, elementOf(b, out, row, col), sum)
	})
	b.Yield()
	return f
}

func TestMatrixProduct(t *testing.T) {
	const n, k, m = 37, 50, 41
	for _, tile := range []int{1, 4, 16, 32} {
		for _, f := range []*ir.Func{tiled(tile), ir.Optimize(tiled(tile))} {
			a, b, c := make([]float32, n*k), make([]float32, k*m), make([]float32, n*m)
			for i := range a {
				a[i] = float32(i%13) / 7
			}
			for i := range b {
				b[i] = float32(i%11) / 3
			}
			l := grid2(f, [2]int{(m + tile - 1) / tile, (n + tile - 1) / tile}, [2]int{tile, tile}, [][]int{{n, k}, {k, m}, {n, m}})
			l.Mems, l.Goroutines = []any{a, b, c}, 2
			if err := compile(t, f).Run(l); err != nil {
				t.Fatal(err)
			}
			for i := range n {
				for j := range m {
					var want float32
					for x := range k {
						want += float32(a[i*k+x] * b[x*m+j])
					}
					if c[i*m+j] != want {
						t.Fatalf("tiles of %d: element %d, %d is %v, want %v", tile, i, j, c[i*m+j], want)
					}
				}
			}
		}
	}
}

// histogram counts in shared memory first, with strides of the whole grid.
func histogram() *ir.Func {
	f := ir.NewFunc("histogram")
	x, bins := f.AddArray("x", ir.U8, 1), f.AddArray("bins", ir.I32, 1)
	tx, bx, dim, blocks := coordinate(f, ir.ThreadIdx, "tx", 0), coordinate(f, ir.BlockIdx, "bx", 0), coordinate(f, ir.BlockDim, "dim", 0), coordinate(f, ir.GridDim, "blocks", 0)
	s := f.AddMem(ir.Memory{Name: "s", Space: ir.Shared, Elem: ir.I32, Len: 256})
	b := ir.NewBuilder(f)
	first, step := b.Op(ir.OpAdd, b.Op(ir.OpMul, bx, dim), tx), b.Op(ir.OpMul, dim, blocks)
	one := b.Const(ir.I32, 1)
	b.Loop([]ir.Value{first}, nil, func(c []ir.Value) {
		b.If(b.Op(ir.OpGe, c[0], x.Shape[0]), nil, func() { b.Break(1) }, func() { b.Yield() })
		b.Atomic(ir.AtomicAdd, s, b.Convert(ir.I64, b.Load(x.Mem, elementOf(b, x, c[0]))), one)
		b.Yield(b.Op(ir.OpAdd, c[0], step))
	})
	b.Barrier()
	b.Loop([]ir.Value{tx}, nil, func(c []ir.Value) {
		b.If(b.Op(ir.OpGe, c[0], i64(b, 256)), nil, func() { b.Break(1) }, func() { b.Yield() })
		b.Atomic(ir.AtomicAdd, bins.Mem, elementOf(b, bins, c[0]), b.Load(s, c[0]))
		b.Yield(b.Op(ir.OpAdd, c[0], dim))
	})
	b.Yield()
	return f
}

func TestHistogram(t *testing.T) {
	x := make([]uint8, 10_007)
	var want [256]int32
	for i := range x {
		x[i] = uint8(i * i / 7)
		want[x[i]]++
	}
	for _, f := range []*ir.Func{histogram(), ir.Optimize(histogram())} {
		for _, threads := range []int{1, 32, 100, 256, 1024} {
			bins := make([]int32, 256)
			l := grid2(f, [2]int{7, 1}, [2]int{threads, 1}, [][]int{{len(x)}, {256}})
			l.Mems, l.Goroutines = []any{x, bins}, 2
			if err := compile(t, f).Run(l); err != nil {
				t.Fatal(err)
			}
			if [256]int32(bins) != want {
				t.Errorf("%d threads: %v", threads, bins)
			}
		}
	}
}

// reduction sums an array: each thread with the stride of the grid, each block
// in shared memory down to a warp, the warp by shuffles, blocks by an atomic.
func reduction() *ir.Func {
	f := ir.NewFunc("reduce")
	x, out := f.AddArray("x", ir.F64, 1), f.AddArray("out", ir.F64, 1)
	tx, bx, dim, blocks := coordinate(f, ir.ThreadIdx, "tx", 0), coordinate(f, ir.BlockIdx, "bx", 0), coordinate(f, ir.BlockDim, "dim", 0), coordinate(f, ir.GridDim, "blocks", 0)
	s := f.AddMem(ir.Memory{Name: "s", Space: ir.Shared, Elem: ir.F64})
	b := ir.NewBuilder(f)
	first, step := b.Op(ir.OpAdd, b.Op(ir.OpMul, bx, dim), tx), b.Op(ir.OpMul, dim, blocks)
	r := b.Loop([]ir.Value{first, b.Const(ir.F64, 0)}, []ir.Type{ir.F64}, func(c []ir.Value) {
		b.If(b.Op(ir.OpGe, c[0], x.Shape[0]), nil, func() { b.Break(1, c[1]) }, func() { b.Yield() })
		b.Yield(b.Op(ir.OpAdd, c[0], step), b.Op(ir.OpAdd, c[1], b.Load(x.Mem, elementOf(b, x, c[0]))))
	})
	b.Store(s, tx, r[0])
	b.Loop([]ir.Value{b.Op(ir.OpDiv, dim, i64(b, 2))}, nil, func(c []ir.Value) {
		b.If(b.Op(ir.OpLt, c[0], i64(b, 32)), nil, func() { b.Break(1) }, func() { b.Yield() })
		b.Barrier()
		when(b, b.Op(ir.OpLt, tx, c[0]), func() {
			b.Store(s, tx, b.Op(ir.OpAdd, b.Load(s, tx), b.Load(s, b.Op(ir.OpAdd, tx, c[0]))))
		})
		b.Yield(b.Op(ir.OpDiv, c[0], i64(b, 2)))
	})
	b.Barrier()
	b.If(b.Op(ir.OpLt, tx, i64(b, 32)), nil, func() { b.Yield() }, func() { b.Break(1) })
	v := b.Load(s, tx)
	for h := int64(16); h > 0; h /= 2 {
		v = b.Op(ir.OpAdd, v, b.Shuffle(ir.ShuffleDown, v, i64(b, h)))
	}
	when(b, b.Op(ir.OpEq, tx, i64(b, 0)), func() {
		b.Atomic(ir.AtomicAdd, out.Mem, elementOf(b, out, i64(b, 0)), v)
	})
	b.Yield()
	return f
}

func TestReduction(t *testing.T) {
	for _, f := range []*ir.Func{reduction(), ir.Optimize(reduction())} {
		p := compile(t, f)
		for _, n := range []int{0, 1, 31, 1000, 100_003} {
			x := floats64(n, func(i int) float64 { return float64(i % 97) })
			want := 0.0
			for _, v := range x {
				want += v
			}
			for _, threads := range []int{32, 64, 256, 1024} {
				out := []float64{0}
				l := grid2(f, [2]int{9, 1}, [2]int{threads, 1}, [][]int{{n}, {1}})
				l.Mems, l.Goroutines, l.DynamicShared = []any{x, out}, 2, threads
				if err := p.Run(l); err != nil || out[0] != want {
					t.Errorf("%d elements, %d threads: %v, %v, want %v\n%s", n, threads, out[0], err, want, p.Describe(&l))
				}
			}
		}
	}
}

// product is a gufunc's function: out[i] = a[i]*b[i], over the slices that the
// worker is given.
func product() *ir.Func {
	f := ir.NewFunc("multiply")
	a, c, out := f.AddArray("a", ir.F64, 1), f.AddArray("b", ir.F64, 1), f.AddArray("out", ir.F64, 1)
	b := ir.NewBuilder(f)
	b.Loop([]ir.Value{i64(b, 0)}, nil, func(k []ir.Value) {
		i := k[0]
		b.If(b.Op(ir.OpGe, i, a.Shape[0]), nil, func() { b.Break(1) }, func() { b.Yield() })
		v := b.Op(ir.OpMul, b.Load(a.Mem, elementOf(b, a, i)), b.Load(c.Mem, elementOf(b, c, i)))
		b.Store(out.Mem, elementOf(b, out, i), v)
		b.Yield(b.Op(ir.OpAdd, i, i64(b, 1)))
	})
	b.Yield()
	return f
}

// slicesOf gives every worker n/workers elements of contiguous arrays.
func slicesOf(f *ir.Func, n, workers int, mems ...any) Launch {
	l := Launch{Shape: []int{workers}, Mems: mems, Goroutines: 1}
	for _, p := range f.Params {
		o := Operand{Type: ir.I64, Scalar: 1}
		switch p.Kind {
		case ir.Offset:
			o.Index, o.Strides = true, []int{n / workers}
		case ir.Shape:
			o.Scalar = ir.Bits(n / workers)
		}
		l.In = append(l.In, o)
	}
	return l
}

func TestSlices(t *testing.T) {
	const n = 12_000
	a, b := floats64(n, func(i int) float64 { return float64(i) }), floats64(n, func(i int) float64 { return 1 / float64(i+1) })
	for _, f := range []*ir.Func{product(), ir.Optimize(product())} {
		p := compile(t, f)
		for _, workers := range []int{1, 3, 100, 4000, n} {
			out := make([]float64, n)
			l := slicesOf(f, n, workers, a, b, out)
			if err := p.Run(l); err != nil {
				t.Fatal(err)
			}
			for i := range out {
				if out[i] != a[i]*b[i] || math.IsNaN(out[i]) {
					t.Fatalf("%d workers: element %d is %v\n%s", workers, i, out[i], p.Describe(&l))
				}
			}
		}
	}
}

// TestStatsOfMemory: what is known of a block is computed once for it.
func TestStatsOfMemory(t *testing.T) {
	f := ir.Optimize(tiled(16))
	l := grid2(f, [2]int{50, 60}, [2]int{16, 16}, [][]int{{900, 900}, {900, 900}, {900, 900}})
	p := compile(t, f)
	if s := p.Stats(&l); s.PerColumn == 0 || s.PerRow == 0 || s.Once == 0 {
		t.Errorf("%+v\n%s", s, p.Describe(&l))
	}
}

// blur averages an element with its neighbours, in blocks in two dimensions
// whose threads do not meet.
func blur() *ir.Func {
	f := ir.NewFunc("blur")
	x, out := f.AddArray("x", ir.F64, 2), f.AddArray("out", ir.F64, 2)
	at := [2]ir.Value{}
	tx, ty := coordinate(f, ir.ThreadIdx, "tx", 0), coordinate(f, ir.ThreadIdx, "ty", 1)
	bx, by := coordinate(f, ir.BlockIdx, "bx", 0), coordinate(f, ir.BlockIdx, "by", 1)
	dx, dy := coordinate(f, ir.BlockDim, "dx", 0), coordinate(f, ir.BlockDim, "dy", 1)
	b := ir.NewBuilder(f)
	at[1], at[0] = b.Op(ir.OpAdd, b.Op(ir.OpMul, bx, dx), tx), b.Op(ir.OpAdd, b.Op(ir.OpMul, by, dy), ty)
	one := i64(b, 1)
	inner := b.Const(ir.Bool, 1)
	for d, i := range at {
		inner = b.Op(ir.OpAnd, inner, b.Op(ir.OpAnd, b.Op(ir.OpGe, i, one), b.Op(ir.OpLt, i, b.Op(ir.OpSub, x.Shape[d], one))))
	}
	b.If(inner, nil, func() { b.Yield() }, func() { b.Break(1) })
	load := func(i, j ir.Value) ir.Value { return b.Load(x.Mem, elementOf(b, x, i, j)) }
	sum := b.Op(ir.OpAdd, load(b.Op(ir.OpSub, at[0], one), at[1]), load(b.Op(ir.OpAdd, at[0], one), at[1]))
	sum = b.Op(ir.OpAdd, sum, b.Op(ir.OpAdd, load(at[0], b.Op(ir.OpSub, at[1], one)), load(at[0], b.Op(ir.OpAdd, at[1], one))))
	b.Store(out.Mem, elementOf(b, out, at[0], at[1]), b.Op(ir.OpMul, sum, b.Const(ir.F64, ir.FromF64(0.25))))
	b.Yield()
	return f
}

func TestBlur(t *testing.T) {
	const h, w = 70, 131
	x := floats64(h*w, func(i int) float64 { return float64(i * i % 1013) })
	for _, f := range []*ir.Func{blur(), ir.Optimize(blur())} {
		p := compile(t, f)
		for _, threads := range [][2]int{{1, 1}, {5, 3}, {8, 8}, {16, 16}, {32, 4}, {4, 32}, {64, 2}, {1024, 1}, {1, 512}, {64, 64}} {
			out := make([]float64, h*w)
			l := grid2(f, [2]int{(w + threads[0] - 1) / threads[0], (h + threads[1] - 1) / threads[1]}, threads, [][]int{{h, w}, {h, w}})
			l.Mems, l.Goroutines = []any{x, out}, 2
			if err := p.Run(l); err != nil {
				t.Fatal(err)
			}
			for i := range h {
				for j := range w {
					want := 0.0
					if i > 0 && i < h-1 && j > 0 && j < w-1 {
						want = (x[(i-1)*w+j] + x[(i+1)*w+j] + (x[i*w+j-1] + x[i*w+j+1])) * 0.25
					}
					if out[i*w+j] != want {
						t.Fatalf("blocks of %v: element %d, %d is %v, want %v", threads, i, j, out[i*w+j], want)
					}
				}
			}
		}
	}
}
