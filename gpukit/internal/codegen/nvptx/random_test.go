package nvptx

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"gpunotes/gpukit/internal/ir"
	"gpunotes/gpukit/internal/ir/irtest"
)

var randomPrograms = flag.Int("random", 400, "how many random programs TestRandom runs")

// random writes a function that Emit takes: library functions without code are
// left out.
func random(r *rand.Rand, name string, o irtest.Options) *ir.Func {
	o.Math = func(fn ir.MathFn) bool {
		// Carries other than 0 and 1 mean nothing.
		return Native(fn) && !strings.HasPrefix(fn.String(), "bits.Add") && !strings.HasPrefix(fn.String(), "bits.Sub")
	}
	if r.IntN(2) == 0 {
		o.Types = []ir.Type{ir.I32, ir.U32, ir.I64, ir.U64, ir.F32}
	}
	return irtest.Random(r, name, o)
}

// TestRandom compares random functions with the evaluator, as written and
// optimised, for several targets and launches: without and with memory, on
// blocks of threads that meet.
func TestRandom(t *testing.T) {
	for _, o := range []irtest.Options{{}, {Faults: true}, {Memory: true}, {Memory: true, Faults: true}, {Memory: true, Threads: true}, {Memory: true, Threads: true, Faults: true}} {
		ran, faulted := 0, 0
		for seed := range uint64(*randomPrograms) / 6 {
			r := rand.New(rand.NewPCG(seed, 3))
			f := random(r, fmt.Sprint("random", seed), o)
			if err := ir.Verify(f); err != nil {
				t.Fatal(err)
			}
			g := f
			if seed%3 > 0 {
				g = ir.Optimize(f)
			}
			in := irtest.NewInputs(r, f, 1+r.IntN(3), 1+r.IntN(40))
			k := &Kernel{Name: f.Name, Func: g, Threads: o.Memory, NoAlias: r.IntN(2) == 0, Poll: r.IntN(2) == 0}
			for i, p := range f.Params {
				same := !slices.ContainsFunc(in.Args, func(a []ir.Bits) bool { return a[i] != in.Args[0][i] })
				a := ByValue
				switch {
				case p.Kind >= ir.ThreadIdx:
				case !same || r.IntN(2) == 0:
					if a = Contiguous; p.Kind != ir.Offset && r.IntN(2) == 0 {
						a = Strided
					}
				}
				k.In = append(k.In, a)
			}
			for range f.Results {
				k.Out = append(k.Out, Contiguous+Access(r.IntN(2)))
			}
			if r.IntN(2) == 0 {
				k.Facts = randomFacts(r, f, in, k)
			}
			target := []Target{{SM: 30}, {SM: 52}, {SM: 61}, {SM: 75}}[seed%4]
			m, entries := emit(t, target, k)
			want := expect(f, in)
			ran++
			if want.worker >= 0 {
				faulted++
			}
			grid, block := in.Groups, in.Group
			if !o.Memory {
				grid, block = 1+r.IntN(3), 1+r.IntN(8)
			}
			got, err := executeOn(newMachine(t, m), k, entries[0], in, grid, block)
			switch {
			case err != nil:
			case o.Threads && want.worker >= 0 && got.worker >= 0 && got.worker < want.worker:
				// The evaluator stops where the first of a block fails; on the device
				// the others go on, and a lower one may fail later.
			default:
				err = compare(f, got, want, in.Args)
			}
			if err != nil {
				t.Fatalf("seed %d, %+v: %v\n%v\n%v", seed, o, err, g, m)
			}
		}
		t.Logf("%+v: %d launches, %d faulted", o, ran, faulted)
		if o.Faults && faulted < ran/20 {
			t.Errorf("%+v: only %d of %d launches faulted", o, faulted, ran)
		}
	}
}
