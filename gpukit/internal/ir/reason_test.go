package ir_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"gpunotes/gpukit/internal/ir"
	"gpunotes/gpukit/internal/ir/irtest"
)

// TestOperands takes the operands out of the errors of random functions. What Operands
// puts in is what was there, or nothing, also where many operations share a place.
func TestOperands(t *testing.T) {
	found, open := 0, 0
	for k, o := range []irtest.Options{{Faults: true}, {Memory: true, Faults: true}, {Memory: true, Threads: true, Faults: true}} {
		for seed := range uint64(300) {
			r := rand.New(rand.NewPCG(seed, uint64(k)))
			f := ir.Optimize(irtest.Random(r, fmt.Sprint("f", seed), o))
			places := []int{1, 1, 3, 1000}[seed%4] // instructions of a place
			n := 0
			ir.Walk(f.Body, func(in *ir.Instr) {
				n++
				in.Pos = ir.Pos{File: "f.go", Line: int32(1 + n/places)}
			})
			in := irtest.NewInputs(r, f, 3, 1+int(seed%7))
			out := in.Evaluate(f)
			var e *ir.FaultError
			if !errors.As(out.Err, &e) || e.Expr == "" || e.Func != f.Name {
				continue
			}
			bare := *e
			bare.Expr = ""
			args := in.Args[out.Worker]
			switch got := bare.Operands(f, func(i int) (ir.Bits, bool) { return args[i], true }); got.Expr {
			case e.Expr:
				found++
			case "":
				open++
			default:
				t.Fatalf("seed %d, %+v: %v, and Operands says %q\n%v", seed, o, e, got.Expr, f)
			}
			if got := bare.Operands(f, func(int) (ir.Bits, bool) { return 0, false }); got.Expr != "" && got.Expr != e.Expr {
				t.Fatalf("seed %d, %+v: without arguments %q, want %q", seed, o, got.Expr, e.Expr)
			}
		}
	}
	if found < 50 || open == 0 {
		t.Errorf("%d operands were found and %d left open", found, open)
	}
	t.Log(found, open)
}
