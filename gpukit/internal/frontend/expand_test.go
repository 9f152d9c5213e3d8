package frontend

import (
	"math/rand/v2"
	"testing"

	"gpunotes/gpukit/internal/ir"
	"gpunotes/gpukit/internal/ir/irtest"
)

// TestLibmText compiles every function of the library from its text and compares
// it, in the reference evaluator, with the function that the Go compiler made.
func TestLibmText(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 12))
	for i := range ir.NumMath() {
		fn := ir.MathFn(i)
		row := fn.Row()
		if row.Libm == "" {
			continue
		}
		if body, _ := MathBody(fn); body == nil {
			t.Logf("%s: no text yet", row.Name)
			continue
		}
		f := ir.NewFunc(row.Name, row.Out)
		var args []ir.Value
		for _, in := range row.In {
			args = append(args, f.AddParam("x", in))
		}
		b := ir.NewBuilder(f)
		b.Yield(b.Math(fn, args...))
		g := ir.Expand(f, MathBody)
		if err := ir.Verify(g); err != nil {
			t.Errorf("%s: %v", row.Name, err)
			continue
		}
		ir.Walk(ir.Inline(g).Body, func(in *ir.Instr) {
			if in.Op == ir.OpMath && in.Fn.Row().Libm != "" {
				t.Errorf("%s: %v is left", row.Name, in.Fn)
			}
		})
		optimised := ir.Optimize(g)
		ev := &ir.Evaluator{}
		for k := range 600 {
			a := make([]ir.Bits, len(args))
			for j, in := range row.In {
				a[j] = irtest.Value(r, in)
				if k%2 == 0 {
					a[j] = ir.Wrap(in, r.Uint64())
				}
			}
			want := ir.Canonical(row.Out, row.Eval(a))
			for _, h := range []*ir.Func{g, optimised} {
				out, err := ev.Run(h, a...)
				if err != nil || ir.Canonical(row.Out, out[0]) != want {
					t.Fatalf("%s%v: %v, %v, want %s", row.Name, a, out, err, ir.FormatBits(row.Out, want))
				}
			}
		}
	}
}
