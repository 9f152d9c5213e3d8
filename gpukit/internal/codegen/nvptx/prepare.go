package nvptx

import (
	"fmt"

	"gpunotes/gpukit/internal/ir"
)

// prepare writes the function of a kernel as Emit wants it: with the facts put
// in, checks that cannot fail left out, control flat, small loops unrolled, and
// addresses for indices. The parameters of the result are those of the function,
// those of generators, and the bases of the memories.
func prepare(k *Kernel) (*ir.Func, []origin, error) {
	if len(k.In) > len(k.Func.Params) || len(k.Out) != len(k.Func.Results) {
		return nil, nil, fmt.Errorf("nvptx: internal error: %s: %d accesses for %d parameters, %d for %d results", k.Name, len(k.In), len(k.Func.Params), len(k.Out), len(k.Func.Results))
	}
	f, origins, err := specialise(k)
	if err != nil {
		return nil, nil, err
	}
	f, bases := optimized(f)
	return f, append(origins, bases...), nil
}

// optimized is prepare of a function that has the facts in it. It returns what
// the further parameters are.
func optimized(f *ir.Func) (*ir.Func, []origin) {
	f = flatten(ir.ProveBounds(ir.Optimize(f)))
	if n := loops(f); n > 0 {
		for range 3 {
			g := flatten(ir.Optimize(unroll(f, false)))
			was := n
			if n = loops(g); n == was {
				break
			}
			f = g
		}
		// Of the checks in what was written out many are of what was checked before.
		f = flatten(ir.Optimize(ir.ProveBounds(unroll(f, true))))
	}
	if len(f.Mems) == 0 {
		return f, nil
	}
	f = flatten(ir.Optimize(addressed(f)))
	var bases []origin
	for i := range f.Mems {
		bases = append(bases, origin{kind: MemBase, index: i})
	}
	return f, bases
}

func loops(f *ir.Func) (n int) {
	ir.Walk(f.Body, func(in *ir.Instr) {
		if in.Op == ir.OpLoop {
			n++
		}
	})
	return n
}
