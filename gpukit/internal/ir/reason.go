package ir

import "slices"

// Operands is the fault with the operands at which it happened, where the worker's
// arguments alone decide them: values from memory, of other workers, or of the way
// through the function are not looked at. arg is the value of a parameter of f, which is
// the function that ran; false if it is not known. It is e if that is not enough, or if
// operations that stand at the same place would have failed at different operands.
func (e *FaultError) Operands(f *Func, arg func(i int) (Bits, bool)) *FaultError {
	if e.Expr != "" || e.Pos.Line == 0 {
		return e
	}
	known := map[Value]Bits{}
	for i, p := range f.Params {
		if b, ok := arg(i); ok {
			known[p.Value] = b
		}
	}
	expr, open := "", false
	Walk(f.Body, func(in *Instr) {
		suspect := in.Pos == e.Pos && in.faultOf(f) == e.Fault
		if !suspect && (len(in.Results) != 1 || in.Op.Row().Eval == nil && in.Op != OpConst && in.Op != OpConvert && in.Op != OpMath) {
			return
		}
		if slices.ContainsFunc(in.Args, func(v Value) bool { _, ok := known[v]; return !ok }) {
			open = open || suspect
			return
		}
		a := make([]Bits, len(in.Args))
		for i, v := range in.Args {
			a[i] = known[v]
		}
		fault := NoFault
		if in.Op == OpBounds || in.Op == OpSliceBounds {
			fault = CheckBounds(in.Op, a)
		} else {
			var b Bits
			if b, fault = Compute(f, in, a); fault == NoFault {
				known[in.Results[0]] = b
			}
		}
		if suspect && fault == e.Fault {
			if s := faultExpr(f, in, a); expr == "" || expr == s {
				expr = s
			} else {
				open = true
			}
		}
	})
	if open || expr == "" {
		return e
	}
	out := *e
	out.Expr = expr
	return &out
}

// faultOf is the fault that the instruction may report.
func (in *Instr) faultOf(f *Func) Fault {
	row := in.Op.Row()
	if row.Fault == nil {
		return NoFault
	}
	var t [3]Type
	return row.Fault(f.types(t[:0], in.Args))
}
