package ir

import (
	"strings"
	"testing"
)

// collatz counts the steps from n to 1, or gives -1 for n < 1: a loop with
// carried values, a break out of it and an early return.
func collatz() *Func {
	f := NewFunc("collatz", I64)
	n := f.AddParam("n", I64)
	b := NewBuilder(f)
	one := b.Const(I64, 1)
	zero := b.Const(I64, 0)
	b.If(b.Op(OpLt, n, one), nil,
		func() { b.Break(1, b.Const(I64, ^Bits(0))) },
		func() { b.Yield() })
	steps := b.Loop([]Value{n, zero}, []Type{I64}, func(c []Value) {
		b.If(b.Op(OpEq, c[0], one), nil,
			func() { b.Break(1, c[1]) },
			func() { b.Yield() })
		two := b.Const(I64, 2)
		next := b.If(b.Op(OpEq, b.Op(OpRem, c[0], two), zero), []Type{I64},
			func() { b.Yield(b.Op(OpDiv, c[0], two)) },
			func() { b.Yield(b.Op(OpAdd, b.Op(OpMul, c[0], b.Const(I64, 3)), one)) })
		b.Yield(next[0], b.Op(OpAdd, c[1], one))
	})
	b.Yield(steps[0])
	return f
}

func TestEvalControl(t *testing.T) {
	f := collatz()
	if err := Verify(f); err != nil {
		t.Fatal(err)
	}
	for n, want := range map[int64]int64{-3: -1, 0: -1, 1: 0, 6: 8, 27: 111} {
		out, err := new(Evaluator).Run(f, Bits(n))
		if err != nil || int64(out[0]) != want {
			t.Errorf("collatz(%d) = %d, %v; want %d", n, int64(out[0]), err, want)
		}
	}
	if _, err := (&Evaluator{Steps: 50}).Run(f, 27); err == nil || err.(*FaultError).Fault != StepBudget {
		t.Errorf("with 50 steps: %v", err)
	}
}

func TestVerifyRefuses(t *testing.T) {
	for name, breakIt := range map[string]func(f *Func){
		"operand not visible": func(f *Func) { f.Body.Instrs[2].Args[1] = f.Body.Instrs[len(f.Body.Instrs)-2].Results[0] },
		"no terminator":       func(f *Func) { f.Body.Instrs = f.Body.Instrs[:len(f.Body.Instrs)-1] },
		"break too far":       func(f *Func) { f.Body.Instrs[3].Regions[0].Terminator().Imm = 2 },
		"wrong type":          func(f *Func) { f.Types[f.Params[0].Value] = F64 },
		"defined twice":       func(f *Func) { f.Body.Instrs[1].Results[0] = f.Body.Instrs[0].Results[0] },
		"wrong count":         func(f *Func) { f.Results = append(f.Results, F64) },
	} {
		f := collatz()
		breakIt(f)
		if err := Verify(f); err == nil {
			t.Errorf("%s: accepted\n%v", name, f)
		}
	}
}

func TestEveryOpHasARow(t *testing.T) {
	names := map[string]Op{}
	for op := OpInvalid + 1; op < NumOps; op++ {
		row := op.Row()
		if row.Name == "" || row.Meaning == "" {
			t.Errorf("Op(%d) has no row", op)
		}
		if other, ok := names[row.Name]; ok {
			t.Errorf("ops %d and %d are both called %s", other, op, row.Name)
		}
		names[row.Name] = op
		if (row.Result == nil) != (row.Eval == nil) {
			t.Errorf("%v has a type rule without an Eval, or the other way round", op)
		}
	}
}

func TestPrint(t *testing.T) {
	s := collatz().String()
	for _, want := range []string{"func collatz(v0 n int64) (int64) {", "loop (", "break 1 v", "const -1"} {
		if !strings.Contains(s, want) {
			t.Errorf("no %q in\n%s", want, s)
		}
	}
}
