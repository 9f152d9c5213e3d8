package amd64

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"gpunotes/gpukit/internal/ir"
	"gpunotes/gpukit/internal/ir/irtest"
)

// TestListing lets objdump read the code of random functions: every instruction is
// the one that was meant.
func TestListing(t *testing.T) {
	for seed := range uint64(12) {
		f := irtest.Random(rand.New(rand.NewPCG(seed, 7)), fmt.Sprint("random", seed), irtest.Options{Faults: seed%3 == 0})
		k := &Kernel{Func: f, Levels: int(seed % 4)}
		for i, p := range f.Params {
			a := [...]Access{Unit, Same, PerRow, Strided}[(i+int(seed))%4]
			if f.Types[p.Value] == ir.I64 && seed%2 == 0 {
				a = [...]Access{Count, CountUnit, CountStep}[i%3]
			}
			k.In = append(k.In, a)
		}
		for range f.Results {
			k.Out = append(k.Out, Unit)
		}
		for _, target := range []Target{AVX2, AVX512} {
			c, err := Compile(k, target, Options{Listing: true})
			if err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			compareListing(t, objdump(t, c.Bytes), c.Listing)
			if t.Failed() {
				t.Fatalf("seed %d for %v", seed, target)
			}
		}
	}
}
