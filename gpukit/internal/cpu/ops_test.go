package cpu

import (
	"fmt"
	"testing"

	"gpunotes/gpukit/internal/ir"
)

// single is a function of one operation.
func single(name string, in []ir.Type, out ir.Type, op func(b *ir.Builder, args []ir.Value) ir.Value) *ir.Func {
	f := ir.NewFunc(name, out)
	var args []ir.Value
	for i, t := range in {
		args = append(args, f.AddParam(fmt.Sprint("a", i), t))
	}
	b := ir.NewBuilder(f)
	b.Pos = ir.Pos{File: name, Line: 1, Col: 1}
	b.Yield(op(b, args))
	return f
}

// grid lists operand tuples: all pairs of special values, and triples thinned.
// An order of a Bessel function is kept small: Go's take time in proportion.
func grid(name string, in []ir.Type) [][]ir.Bits {
	bessel := name == "math.Jn" || name == "math.Yn"
	tuples := [][]ir.Bits{{}}
	for k, t := range in {
		var next [][]ir.Bits
		for i, tu := range tuples {
			for j, s := range specials(t) {
				if k == 2 && (i+j)%7 != 0 || bessel && t == ir.I64 && s+100 > 200 {
					continue
				}
				next = append(next, append(append([]ir.Bits{}, tu...), s))
			}
		}
		tuples = next
	}
	return tuples
}

// checkSingle runs f, whose only operation is under test, on every tuple that
// does not fault, with arrays and with each operand as a scalar; and on every
// tuple that does, alone and in the middle of good ones.
func checkSingle(t *testing.T, f *ir.Func, in []ir.Type) {
	t.Helper()
	p := compile(t, f)
	var good, bad [][]ir.Bits
	for _, tu := range grid(f.Name, in) {
		if _, err := new(ir.Evaluator).Run(f, tu...); err != nil {
			bad = append(bad, tu)
		} else {
			good = append(good, tu)
		}
	}
	launch := func(tuples [][]ir.Bits, scalar int) Launch {
		n := len(tuples)
		l := Launch{Shape: []int{n}, Out: results(f, n)}
		for i, ty := range in {
			if i == scalar {
				l.In = append(l.In, Operand{Type: ty, Scalar: tuples[0][i]})
				continue
			}
			l.In = append(l.In, array(ty, n, func(w int) ir.Bits { return tuples[w][i] }))
		}
		return l
	}
	check := func(what string, l Launch) {
		t.Helper()
		if err := compare(p, l, evaluate(f, &l)); err != nil {
			t.Errorf("%s, %s: %v", f.Name, what, err)
		}
	}
	check("arrays", launch(good, -1))
	for i, ty := range in {
		for k, s := range specials(ty) {
			if k%3 != 0 && len(in) > 1 {
				continue
			}
			var tuples [][]ir.Bits
			for _, tu := range good {
				if tu[i] == s {
					tuples = append(tuples, tu)
				}
			}
			if len(tuples) > 0 {
				check(fmt.Sprintf("operand %d the scalar %s", i, ir.FormatBits(ty, s)), launch(tuples, i))
			}
		}
	}
	for k, tu := range bad {
		if k%5 != 0 {
			continue
		}
		tuples := append([][]ir.Bits{}, good[:min(len(good), 40)]...)
		tuples = append(append(tuples, tu), good[:min(len(good), 20)]...)
		check("a fault", launch(tuples, -1))
		check("a fault, scalar", launch([][]ir.Bits{tu}, len(in)-1))
	}
	if len(in) > 0 { // all scalars
		l := launch(good[:1], -1)
		for i := range in {
			l.In[i] = Operand{Type: in[i], Scalar: good[0][i]}
		}
		check("scalars", l)
	}
}

func TestEveryOperation(t *testing.T) {
	for op := ir.OpInvalid + 1; op < ir.NumOps; op++ {
		row := op.Row()
		if row.Result == nil {
			switch op {
			case ir.OpIf, ir.OpLoop, ir.OpYield, ir.OpBreak, ir.OpUnreachable: // TestControl, TestRandom
			case ir.OpConst, ir.OpConvert, ir.OpMath: // below, TestEveryConversion, TestEveryMathFunction
			case ir.OpCall: // refused
			case ir.OpLoad, ir.OpStore, ir.OpClear: // TestEveryAccess
			case ir.OpAtomic: // TestEveryAtomic
			case ir.OpBarrier, ir.OpWarpBarrier, ir.OpShuffle, ir.OpVote: // TestEveryExchange
			case ir.OpBounds, ir.OpSliceBounds: // TestEveryFaultInPlace
			case ir.OpPrint: // TestPrint
			default:
				t.Errorf("no test knows %v", op)
			}
			continue
		}
		found := 0
		try := func(in ...ir.Type) {
			out, err := op.ResultType(in)
			if err != nil {
				return
			}
			found++
			f := single(fmt.Sprint(op, in), in, out, func(b *ir.Builder, a []ir.Value) ir.Value { return b.Op(op, a...) })
			checkSingle(t, f, in)
		}
		for _, t0 := range ir.Types {
			switch {
			case row.Args == 1:
				try(t0)
			case row.Args == 3:
				try(ir.Bool, t0, t0)
			default:
				for _, t1 := range ir.Types {
					try(t0, t1)
				}
			}
		}
		if found == 0 {
			t.Errorf("%v fits no types that the test tries", op)
		}
	}
}

func TestEveryConversion(t *testing.T) {
	for _, from := range ir.Types {
		for _, to := range ir.Types {
			if from == to || from == ir.Bool || to == ir.Bool {
				continue
			}
			f := single(fmt.Sprint(to, "(", from, ")"), []ir.Type{from}, to, func(b *ir.Builder, a []ir.Value) ir.Value { return b.Convert(to, a[0]) })
			checkSingle(t, f, []ir.Type{from})
		}
	}
}

func TestEveryMathFunction(t *testing.T) {
	for i := range ir.NumMath() {
		fn := ir.MathFn(i)
		row := fn.Row()
		f := single(row.Name, row.In, row.Out, func(b *ir.Builder, a []ir.Value) ir.Value { return b.Math(fn, a...) })
		checkSingle(t, f, row.In)
	}
}

func TestConstants(t *testing.T) {
	for _, ty := range ir.Types {
		for _, s := range specials(ty) {
			f := ir.NewFunc("constant", ty)
			b := ir.NewBuilder(f)
			b.Yield(b.Const(ty, s))
			l := Launch{Shape: []int{3}, Out: results(f, 3)}
			if err := compare(compile(t, f), l, evaluate(f, &l)); err != nil {
				t.Errorf("%v: %v", ty, err)
			}
		}
	}
}

func TestCallsAreRefused(t *testing.T) {
	g := single("g", []ir.Type{ir.F64}, ir.F64, func(b *ir.Builder, a []ir.Value) ir.Value { return a[0] })
	f := single("f", []ir.Type{ir.F64}, ir.F64, func(b *ir.Builder, a []ir.Value) ir.Value { return b.Call(g, a[0])[0] })
	if _, err := Compile(f, Options{}); err == nil {
		t.Error("a call was accepted")
	}
}
