package cpu

import (
	"testing"

	"gpunotes/gpukit/internal/ir"
)

// counted counts, in all plans of p, the operations that machines execute from now
// on: one for each lane of each instruction.
func counted(p *Program, n *int) {
	var body func(code []inst)
	body = func(code []inst) {
		for i := range code {
			x := &code[i]
			run := x.run
			x.run = func(m *machine, x *inst) {
				*n += m.n[x.frame]
				run(m, x)
			}
			if x.branch != nil {
				body(x.branch.arms[0].code)
				body(x.branch.arms[1].code)
			}
			if x.loop != nil {
				body(x.loop.body.code)
			}
		}
	}
	for _, pl := range p.plans {
		body(pl.run)
		body(pl.row)
		body(pl.column)
		body(pl.body.code)
	}
}

// TestMeshOperations: on a mesh, whose operands repeat along one dimension each, a
// function executes less than half of the operations that it does on arrays: what
// depends on the row is computed once a row, what depends on the column once for
// all rows.
func TestMeshOperations(t *testing.T) {
	const rows, cols = 200, 300
	lat, lon := make([]float64, rows), make([]float64, cols)
	for i := range lat {
		lat[i] = 29 + float64(0.01*float64(i))
	}
	for j := range lon {
		lon[j] = 99 + float64(0.01*float64(j))
	}
	all := [2][]float64{make([]float64, rows*cols), make([]float64, rows*cols)}
	for k := range all[0] {
		all[0][k], all[1][k] = lat[k/cols], lon[k%cols]
	}
	run := func(x, y Operand) (out []float64, n int) {
		p, err := Compile(ir.Optimize(distance()), Options{})
		if err != nil {
			t.Fatal(err)
		}
		out = make([]float64, rows*cols)
		number := func(v float64) Operand { return Operand{Type: ir.F64, Scalar: ir.FromF64(v)} }
		l := Launch{Shape: []int{rows, cols}, In: []Operand{x, y, number(30), number(101), number(1)},
			Out: []Operand{{Type: ir.F64, Data: out, Strides: []int{cols, 1}}}, Goroutines: 1}
		for range 2 {
			if err := p.Run(l); err != nil {
				t.Fatal(err)
			}
			if n == 0 {
				counted(p, &n)
			}
		}
		return out, n
	}
	strides := []int{cols, 1}
	want, arrays := run(Operand{Type: ir.F64, Data: all[0], Strides: strides}, Operand{Type: ir.F64, Data: all[1], Strides: strides})
	got, mesh := run(Operand{Type: ir.F64, Data: lat, Strides: []int{1, 0}}, Operand{Type: ir.F64, Data: lon, Strides: []int{0, 1}})
	for k := range want {
		if got[k] != want[k] {
			t.Fatalf("worker %d: %v, want %v", k, got[k], want[k])
		}
	}
	t.Logf("%.1f operations a worker on a mesh, %.1f on arrays", float64(mesh)/rows/cols, float64(arrays)/rows/cols)
	if arrays < 2*mesh {
		t.Errorf("%d operations on a mesh, %d on arrays", mesh, arrays)
	}
}
