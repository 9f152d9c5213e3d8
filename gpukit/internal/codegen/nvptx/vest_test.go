package nvptx

import (
	"testing"

	"gpunotes/gpukit/internal/ir"
	"gpunotes/gpukit/internal/ir/irtest"
)

// vest is the kernel of the first experiment: as one worker, it multiplies the
// rows of a (m,o) array into each plane of a (n,m,o) array.
//
//	for i := 0; i < countRow; i++ { for j := 0; j < countCol; j++ { for k := 0; k < n; k++ {
//		cv[i][j][k] = multBy[j][k] * discount[i][j][k]
//	}}}
func vest() *ir.Func {
	f := ir.NewFunc("vest")
	rows := f.AddParam("countRow", ir.I64)
	mult, disc := f.AddArray("multBy", ir.F64, 2), f.AddArray("discount", ir.F64, 3)
	n, cols := f.AddParam("n", ir.I64), f.AddParam("countCol", ir.I64)
	out := f.AddArray("cv", ir.F64, 3)
	b := ir.NewBuilder(f)
	line := int32(3)
	count := func(to ir.Value, body func(i ir.Value)) {
		line++
		b.Pos = ir.Pos{File: "cell 1", Line: line, Col: 2}
		b.Loop([]ir.Value{b.Const(ir.I64, 0)}, nil, func(c []ir.Value) {
			b.If(b.Op(ir.OpLt, c[0], to), nil, func() { body(c[0]); b.Yield() }, func() { b.Break(1) })
			b.Yield(b.Op(ir.OpAdd, c[0], b.Const(ir.I64, 1)))
		})
	}
	at := func(a ir.ArrayParam, idx ...ir.Value) ir.Value {
		p := a.Offset
		for d, i := range idx {
			b.Bounds(i, a.Shape[d])
			p = b.Op(ir.OpAdd, p, b.Op(ir.OpMul, i, a.Stride[d]))
		}
		return p
	}
	count(rows, func(i ir.Value) {
		count(cols, func(j ir.Value) {
			count(n, func(k ir.Value) {
				line++
				b.Pos = ir.Pos{File: "cell 1", Line: line, Col: 5}
				p := at(out, i, j, k)
				x := b.Load(mult.Mem, at(mult, j, k))
				b.Store(out.Mem, p, b.Op(ir.OpMul, x, b.Load(disc.Mem, at(disc, i, j, k))))
			})
		})
	})
	b.Yield()
	return f
}

// vestArgs are the arguments for given sizes and the parameters that the facts
// of the experiment freeze.
func vestArgs(f *ir.Func, rows, cols, n int) (args []ir.Bits) {
	shapes := map[string][]int{"multBy": {cols, n}, "discount": {rows, cols, n}, "cv": {rows, cols, n}}
	for _, p := range f.Params {
		x := 0
		switch s := shapes[f.Mems[p.Mem].Name]; {
		case p.Name == "countRow":
			x = rows
		case p.Name == "countCol":
			x = cols
		case p.Name == "n":
			x = n
		case p.Kind == ir.Shape:
			x = s[p.Dim]
		case p.Kind == ir.Stride:
			x = 1
			for _, m := range s[p.Dim+1:] {
				x *= m
			}
		}
		args = append(args, ir.Bits(x))
	}
	return args
}

// TestInstructionsPerElement counts what the one-worker experiment executes.
func TestInstructionsPerElement(t *testing.T) {
	f := ir.Optimize(vest())
	proven, conditions := ir.AssumeBounds(f)
	if len(conditions) == 0 || mayFault(proven) {
		t.Fatalf("conditions %v\n%v", conditions, proven)
	}
	frozen := func(rows, cols, n int) map[int]ir.Bits {
		m := map[int]ir.Bits{}
		for i, x := range vestArgs(f, rows, cols, n) {
			if k := f.Params[i].Kind; k == ir.Shape || k == ir.Scalar {
				m[i] = x
			}
		}
		return m
	}
	contiguous := map[ir.Mem]Array{0: {Contiguous: true}, 1: {Contiguous: true}, 2: {Contiguous: true}}
	for _, c := range []struct {
		name          string
		f             *ir.Func
		facts         func(rows, cols, n int) Facts
		rows, cols, n int
		most          float64
	}{
		{"nothing known, checked", f, func(int, int, int) Facts { return Facts{} }, 4, 400, 5, 100},
		{"nothing known, conditions hold", proven, func(int, int, int) Facts { return Facts{} }, 4, 400, 5, 100},
		{"contiguous, checked", f, func(int, int, int) Facts { return Facts{Arrays: contiguous} }, 4, 400, 5, 20},
		{"contiguous", proven, func(int, int, int) Facts { return Facts{Arrays: contiguous} }, 4, 400, 5, 8},
		{"contiguous, long rows", proven, func(int, int, int) Facts { return Facts{Arrays: contiguous} }, 4, 10, 400, 8},
		{"contiguous and frozen sizes", f, func(r, c, n int) Facts { return Facts{Arrays: contiguous, Frozen: frozen(r, c, n)} }, 4, 400, 5, 6},
	} {
		for _, sm := range []int{30, 61} {
			k := &Kernel{Name: "vest", Func: c.f, NoAlias: true, Poll: true, Facts: c.facts(c.rows, c.cols, c.n)}
			m, entries := emit(t, Target{SM: sm}, k)
			mc := newMachine(t, m)
			in := &irtest.Inputs{Groups: 1, Group: 1, Args: [][]ir.Bits{vestArgs(f, c.rows, c.cols, c.n)}}
			elements := c.rows * c.cols * c.n
			for _, n := range []int{c.cols * c.n, elements, elements} {
				data := make([]ir.Bits, n)
				for i := range data {
					data[i] = ir.FromF64(float64(i))
				}
				in.Mems = append(in.Mems, data)
			}
			got, err := executeOn(mc, k, entries[0], in, 1, 1)
			if err == nil {
				err = compare(f, got, expect(f, in), in.Args)
			}
			if err != nil {
				t.Fatalf("%s: %v\n%v", c.name, err, m)
			}
			each := float64(mc.steps) / float64(elements)
			t.Logf("sm_%d, %s: %.2f instructions for each element", sm, c.name, each)
			if each > c.most {
				t.Errorf("%s: %.2f instructions for each element, want at most %v\n%v", c.name, each, c.most, m)
			}
		}
	}
}

func mayFault(f *ir.Func) (yes bool) {
	ir.Walk(f.Body, func(in *ir.Instr) { yes = yes || in.MayFault(f) })
	return yes
}
