package amd64_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"

	"gpunotes/gpukit/internal/codegen/amd64"
	"gpunotes/gpukit/internal/ir"
	"gpunotes/gpukit/internal/ir/irtest"
)

// randomFunc writes the function of a seed: of all types, of those of 64 bits, or
// with most of 32.
func randomFunc(seed uint64) *ir.Func {
	o := irtest.Options{Faults: seed%3 == 0, Math: func(ir.MathFn) bool { return true }}
	switch seed % 4 {
	case 0:
		o.Types = []ir.Type{ir.I64, ir.U64, ir.F64}
	case 1:
		o.Types = []ir.Type{ir.F32, ir.I32, ir.U32}
	case 2:
		o.Statements = 90
	}
	return irtest.Random(rand.New(rand.NewPCG(seed, 7)), fmt.Sprint("random", seed), o)
}

// TestRandom compares random functions with the evaluator: in any access, at any
// width, with pauses at every back edge. AMD64_SEEDS asks for more of them.
func TestRandom(t *testing.T) {
	seeds := uint64(150)
	if testing.Short() {
		seeds = 40
	}
	if n, err := strconv.ParseUint(os.Getenv("AMD64_SEEDS"), 10, 64); err == nil {
		seeds = n
	}
	for seed := range seeds {
		f := randomFunc(seed)
		for _, target := range targets(t) {
			for i, g := range []*ir.Func{f, ir.Optimize(f)} {
				r := rand.New(rand.NewPCG(seed, uint64(i)))
				v := randomVariant(r, g, target)
				if err := differ(t, g, v, r, func(t ir.Type) ir.Bits { return irtest.Value(r, t) }); err != nil {
					t.Fatalf("seed %d, optimised: %v, %v: %v\n%v", seed, i == 1, v, err, g)
				}
			}
		}
	}
}

// TestSame compiles twice: the bytes are the same.
func TestSame(t *testing.T) {
	for seed := range uint64(40) {
		f := randomFunc(seed)
		for _, target := range []amd64.Target{amd64.AVX2, amd64.AVX512} {
			v := randomVariant(rand.New(rand.NewPCG(seed, 9)), f, target)
			k := &amd64.Kernel{Func: f, In: v.in, Out: v.out, Levels: len(v.layout.dims)}
			a, err := amd64.Compile(k, target, amd64.Options{})
			if err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			b, err := amd64.Compile(k, target, amd64.Options{Listing: true})
			if err != nil || string(a.Bytes) != string(b.Bytes) {
				t.Fatalf("seed %d for %v: two compilations differ (%v)", seed, target, err)
			}
		}
	}
}
