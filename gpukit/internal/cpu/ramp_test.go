package cpu

import (
	"fmt"
	"testing"

	"gpunotes/gpukit/internal/ir"
)

// TestRamps writes out, checks and uses as index every linear operation on
// places of workers, with uniform values at which they wrap around.
func TestRamps(t *testing.T) {
	exprs := map[string]func(b *ir.Builder, i, j, u ir.Value) ir.Value{
		"i+u": func(b *ir.Builder, i, j, u ir.Value) ir.Value { return b.Op(ir.OpAdd, i, u) },
		"u+i": func(b *ir.Builder, i, j, u ir.Value) ir.Value { return b.Op(ir.OpAdd, u, i) },
		"i-u": func(b *ir.Builder, i, j, u ir.Value) ir.Value { return b.Op(ir.OpSub, i, u) },
		"u-i": func(b *ir.Builder, i, j, u ir.Value) ir.Value { return b.Op(ir.OpSub, u, i) },
		"i*u": func(b *ir.Builder, i, j, u ir.Value) ir.Value { return b.Op(ir.OpMul, i, u) },
		"u*i": func(b *ir.Builder, i, j, u ir.Value) ir.Value { return b.Op(ir.OpMul, u, i) },
		"-i":  func(b *ir.Builder, i, j, u ir.Value) ir.Value { return b.Op(ir.OpNeg, i) },
		"i+j": func(b *ir.Builder, i, j, u ir.Value) ir.Value { return b.Op(ir.OpAdd, i, j) },
		"i-j": func(b *ir.Builder, i, j, u ir.Value) ir.Value { return b.Op(ir.OpSub, i, j) },
		"i*j": func(b *ir.Builder, i, j, u ir.Value) ir.Value { return b.Op(ir.OpMul, i, j) },
		"u*(j-u*i)": func(b *ir.Builder, i, j, u ir.Value) ir.Value {
			return b.Op(ir.OpMul, u, b.Op(ir.OpSub, j, b.Op(ir.OpMul, u, i)))
		},
	}
	shapes := map[string]struct {
		shape []int
		i, j  []int
	}{
		"one row": {[]int{3000}, []int{1}, []int{-3}},
		"rows":    {[]int{6, 100}, []int{100, 1}, []int{-1, 2}},
		"columns": {[]int{6, 100}, []int{0, 1}, []int{7, 3}},
		"short":   {[]int{40, 3}, []int{50, 1}, []int{1, 1}},
	}
	for name, expr := range exprs {
		for _, inIf := range []bool{false, true} {
			f := ir.NewFunc(fmt.Sprint(name, inIf), ir.I64, ir.I64)
			i, j, u, n := f.AddParam("i", ir.I64), f.AddParam("j", ir.I64), f.AddParam("u", ir.I64), f.AddParam("n", ir.I64)
			b := ir.NewBuilder(f)
			if inIf { // lanes change places
				b.If(b.Op(ir.OpEq, b.Op(ir.OpRem, i, i64(b, 7)), i64(b, 3)), nil, func() { b.Break(1, i, n) }, func() { b.Yield() })
			}
			e := expr(b, i, j, u)
			b.Bounds(e, n)
			b.Yield(e, b.Op(ir.OpXor, e, u))
			p := compile(t, f)
			for where, s := range shapes {
				for k, x := range append(specials(ir.I64), 1<<62, 1<<61, 1<<63+1) {
					workers := workersOf(s.shape)
					l := Launch{Shape: s.shape, Goroutines: 1 + k%2, Out: results(f, workers)}
					strides := make([]int, len(s.shape))
					for d := range strides {
						strides[d] = workersOf(s.shape[d+1:])
					}
					for r := range l.Out {
						l.Out[r].Strides = strides
					}
					index := func(offset int, st []int) Operand {
						return Operand{Type: ir.I64, Index: true, Offset: offset, Strides: st}
					}
					l.In = []Operand{index(5, s.i), index(-2, s.j), {Type: ir.I64, Scalar: x}, {Type: ir.I64, Scalar: ir.Bits([]int64{1 << 62, 3000, 5}[k%3])}}
					if err := compare(p, l, evaluate(f, &l)); err != nil {
						t.Fatalf("%s, %s, u = %d: %v\n%s", f.Name, where, int64(x), err, p.Describe(&l))
					}
				}
			}
		}
	}
}

// TestStridedPieces loads and stores along ramps of several steps.
func TestStridedPieces(t *testing.T) {
	const n = 3000
	for _, step := range []int{1, 2, -1, -3} {
		f := newKernel("pieces", ir.I32, false, nil, func(k *kernel) {
			at := func(a ir.ArrayParam) ir.Value { return k.Op(ir.OpAdd, a.Offset, k.Op(ir.OpMul, k.x, k.thread)) }
			k.Store(k.written.Mem, at(k.written), k.Op(ir.OpMul, k.Load(k.read.Mem, at(k.read)), k.value))
			k.Yield()
		})
		in, out := make([]int32, 3*n), make([]int32, 3*n)
		for i := range in {
			in[i] = int32(i)
		}
		first := max(0, -step*(n-1))
		l := Launch{Shape: []int{1, n}, In: affineInputs(f), Mems: []any{in, out}}
		l.In[0].Scalar, l.In[2].Scalar, l.In[4].Scalar, l.In[7].Scalar = ir.Bits(int64(step)), 2, ir.Bits(first), ir.Bits(first)
		if err := compile(t, f).Run(l); err != nil {
			t.Fatal(err)
		}
		want := make([]int32, 3*n)
		for i := range n {
			want[first+step*i] = 2 * int32(first+step*i)
		}
		for i := range out {
			if out[i] != want[i] {
				t.Fatalf("step %d: element %d is %d, want %d", step, i, out[i], want[i])
			}
		}
	}
}

// TestLocalIndexRamp: an index into a Local memory is an element for each lane.
func TestLocalIndexRamp(t *testing.T) {
	f := ir.NewFunc("local", ir.I64)
	i := f.AddParam("i", ir.I64)
	m := f.AddMem(ir.Memory{Name: "m", Space: ir.Local, Elem: ir.I64, Len: 8})
	b := ir.NewBuilder(f)
	b.Store(m, i, b.Op(ir.OpMul, i, i))
	b.Yield(b.Op(ir.OpAdd, b.Load(m, b.Op(ir.OpSub, i64(b, 7), i)), b.Load(m, i)))
	l := Launch{Shape: []int{8}, In: []Operand{{Type: ir.I64, Index: true, Strides: []int{1}}}, Out: results(f, 8)}
	if err := compare(compile(t, f), l, evaluate(f, &l)); err != nil {
		t.Error(err)
	}
}
