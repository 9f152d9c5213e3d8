package irtest_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"gpunotes/gpukit/internal/ir"
	"gpunotes/gpukit/internal/ir/irtest"
)

// TestRandom checks that the random functions are what they should be: well
// formed, without divergence, with all operations among them, and that failing
// is neither rule nor rare where it is wanted and absent where it is not.
func TestRandom(t *testing.T) {
	seen := map[ir.Op]bool{}
	for _, o := range []irtest.Options{{}, {Faults: true}, {Memory: true}, {Memory: true, Faults: true}, {Memory: true, Threads: true}, {Memory: true, Threads: true, Faults: true}} {
		failed := 0
		for seed := range uint64(150) {
			r := rand.New(rand.NewPCG(seed, 1))
			f := irtest.Random(r, "f", o)
			if err := ir.Verify(f); err != nil {
				t.Fatalf("seed %d, %+v: %v\n%v", seed, o, err, f)
			}
			if d := ir.Divergences(f, func(ir.Param) bool { return true }); len(d) > 0 {
				t.Fatalf("seed %d, %+v: %v\n%v", seed, o, d, f)
			}
			ir.Walk(f.Body, func(in *ir.Instr) { seen[in.Op] = true })
			in := irtest.NewInputs(r, f, 2, 1+r.IntN(40))
			if out := in.Evaluate(f); out.Err != nil {
				failed++
				if !o.Faults {
					t.Fatalf("seed %d, %+v: %v\n%v", seed, o, out.Err, f)
				}
			}
		}
		if o.Faults && (failed < 8 || failed > 135) {
			t.Errorf("%+v: %d of 150 failed", o, failed)
		}
	}
	for op := ir.OpInvalid + 1; op < ir.NumOps; op++ {
		if !seen[op] && op != ir.OpCall {
			t.Errorf("no %v", op)
		}
	}
}

// TestRandomOfSome: no other types, functions and operations than those that
// are wanted.
func TestRandomOfSome(t *testing.T) {
	types := []ir.Type{ir.Bool, ir.I64, ir.U64, ir.F64}
	sqrt, _ := ir.LookupMath("math.Sqrt")
	for seed := range uint64(100) {
		o := irtest.Options{Memory: true, Threads: true, Types: types, Math: func(fn ir.MathFn) bool { return fn == sqrt },
			Faults: seed%4 > 1, Without: [][]ir.Op{nil, {ir.OpPrint}, {ir.OpBounds, ir.OpSliceBounds}}[seed%3]}
		if seed%2 == 1 {
			o.Types = []ir.Type{}
		}
		f := irtest.Random(rand.New(rand.NewPCG(seed, 2)), "f", o)
		for _, typ := range f.Types {
			if !slices.Contains(types, typ) || seed%2 == 1 && typ == ir.U64 {
				t.Fatalf("a %v\n%v", typ, f)
			}
		}
		ir.Walk(f.Body, func(in *ir.Instr) {
			if in.Op == ir.OpMath && in.Fn != sqrt {
				t.Fatalf("%v", in.Fn)
			}
			if slices.Contains(o.Without, in.Op) {
				t.Fatalf("%v", in.Op)
			}
		})
	}
}

// TestExamples compares the example functions with Go.
func TestExamples(t *testing.T) {
	same := func(f *ir.Func, want int64, args ...ir.Bits) {
		t.Helper()
		if err := ir.Verify(f); err != nil {
			t.Fatal(err)
		}
		if out, err := new(ir.Evaluator).Run(f, args...); err != nil || int64(out[0]) != want {
			t.Errorf("%s of %#x: %d, %v; want %d", f.Name, args, out, err, want)
		}
	}
	m, c := irtest.Mandelbrot(), irtest.Collatz()
	for i := range 400 {
		x, y, limit := -2+float64(0.15*float64(i%20)), -1.25+float64(0.125*float64(i/20)), int64(i%60)
		same(m, irtest.MandelbrotGo(x, y, limit), ir.FromF64(x), ir.FromF64(y), ir.Bits(limit))
	}
	for n, want := range map[int64]int64{-3: -1, 0: -1, 1: 0, 6: 8, 27: 111, 1 << 40: 40, 35655: 999} {
		same(c, want, ir.Bits(n))
	}
}
