package ir_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"gpunotes/gpukit/internal/ir"
	"gpunotes/gpukit/internal/ir/irtest"
)

// TestOptimizeRandom compares random functions with what Optimize makes of
// them: results, memories, printed lines, faults.
func TestOptimizeRandom(t *testing.T) {
	for k, o := range []irtest.Options{{Faults: true}, {Memory: true, Faults: true}, {Memory: true, Threads: true, Faults: true}, {Memory: true, Threads: true}} {
		for seed := range uint64(100) {
			r := rand.New(rand.NewPCG(seed, uint64(k)))
			f := irtest.Random(r, fmt.Sprint("f", seed), o)
			g := ir.Optimize(f)
			if err := ir.Verify(g); err != nil {
				t.Errorf("seed %d, %+v: %v\n%v\n%v", seed, o, err, f, g)
				return
			}
			for _, group := range []int{1, 5, 33} {
				in := irtest.NewInputs(r, f, 3, group)
				if err := in.Evaluate(f).Compare(f, in.Evaluate(g)); err != nil {
					t.Errorf("seed %d, %+v, blocks of %d: %v\n%v\n%v", seed, o, group, err, f, g)
					return
				}
			}
		}
	}
}
