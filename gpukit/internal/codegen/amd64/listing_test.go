package amd64

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"gpunotes/gpukit/internal/ir"
	"gpunotes/gpukit/internal/ir/irtest"
)

// RandomFunc writes the function of a seed, of what Compile supports.
func RandomFunc(seed uint64) *ir.Func {
	return irtest.Random(rand.New(rand.NewPCG(seed, 7)), fmt.Sprint("random", seed), irtest.Options{
		Faults:     seed%3 == 0,
		Types:      []ir.Type{ir.U64, ir.F64},
		Math:       func(fn ir.MathFn) bool { return mathTable[fn.Row().Name] != nil },
		Statements: 90,
		Without:    []ir.Op{ir.OpBounds},
	})
}

// TestListing lets objdump read the code of random functions: every
// instruction is the one that was meant. And together they use every row.
func TestListing(t *testing.T) {
	seen := map[string]bool{}
	spills := [2]int{}
	for seed := range uint64(120) {
		f := RandomFunc(seed)
		if err := ir.Verify(f); err != nil {
			t.Fatal(err)
		}
		for _, target := range []Target{AVX2, AVX512} {
			c, err := Compile(f, target, Options{Listing: true})
			if err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			spills[target] += c.Spills
			for line := range strings.Lines(c.Listing) {
				name, _, _ := strings.Cut(strings.TrimSpace(line), " ")
				seen[name] = true
			}
			again, _ := Compile(f, target, Options{})
			if string(again.Bytes) != string(c.Bytes) {
				t.Fatalf("seed %d: two compilations differ", seed)
			}
			if seed%12 == 0 {
				compareListing(t, objdump(t, c.Bytes), c.Listing)
			}
			if t.Failed() {
				t.Fatalf("seed %d for %v", seed, target)
			}
		}
	}
	for _, r := range allRows {
		name := r.name
		if r.evex != "" && seen[r.evex] && seen[name] {
			continue
		}
		if !seen[name] {
			t.Errorf("no random function uses %s", name)
		}
	}
	if spills[AVX2] == 0 || spills[AVX512] == 0 {
		t.Errorf("spills: %v, want some for each target", spills)
	}
	t.Log("spills:", spills)
}
