package amd64_test

import (
	"errors"
	"flag"
	"math/rand/v2"
	"testing"

	"gpunotes/gpukit/internal/codegen/amd64"
	"gpunotes/gpukit/internal/cpu"
	"gpunotes/gpukit/internal/ir"
)

var randomPrograms = flag.Int("random", 250, "how many random functions TestRandom runs")

// TestRandom compares random functions with the evaluator, as written and
// optimised, with uniform parameters or without, whole and in pieces.
func TestRandom(t *testing.T) {
	ts := targets(t)
	faulted := 0
	for seed := range uint64(*randomPrograms) {
		r := rand.New(rand.NewPCG(seed, 8))
		f := amd64.RandomFunc(seed)
		n := 1 + r.IntN(40)
		uniform := make([]bool, len(f.Params))
		for i := range uniform {
			uniform[i] = r.IntN(4) == 0
		}
		in := inputs(f, n, uniform, func(_, _ int, t ir.Type) ir.Bits { return value(r, t) })
		want, fails := outcome(f, in, uniform, n)
		if fails {
			faulted++
		}
		for _, target := range ts {
			for _, g := range []*ir.Func{f, ir.Optimize(f)} {
				m := load(t, g, target, uniform)
				for _, budget := range []uint64{1 << 40, 1 + seed%3} {
					m.SetBudget(budget)
					err := run(m, f, in, uniform, n, want)
					if fails && errors.Is(err, cpu.ErrMachineFault) {
						continue
					}
					if err != nil || fails {
						t.Fatalf("seed %d, %v, budget %d, uniform %v: %v\n%v", seed, target, budget, uniform, err, g)
					}
				}
			}
		}
	}
	if faulted < *randomPrograms/100 {
		t.Errorf("only %d functions failed for a worker", faulted)
	}
}

// outcome is what the evaluator gives, or that some worker fails.
func outcome(f *ir.Func, in []any, uniform []bool, n int) (want [][]ir.Bits, fails bool) {
	for i := range n {
		out, err := new(ir.Evaluator).Run(f, arguments(in, uniform, i)...)
		if err != nil {
			return nil, true
		}
		want = append(want, out)
	}
	return want, false
}
