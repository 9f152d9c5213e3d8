package ir

import "fmt"

// Evaluator is the reference evaluator: one worker at a time, obviously right
// rather than fast. It is not safe for concurrent use.
type Evaluator struct {
	// Steps bounds the instructions of one Run; 0 means no bound.
	Steps int64
	// Cancelled, if not nil, is polled now and then; true ends the run.
	Cancelled func() bool
}

// FaultError says where a worker failed.
type FaultError struct {
	Fault Fault
	Func  string
	Pos   Pos
	Expr  string // operands of the failing operation, e.g. "7 / 0"
}

// Error names the fault, the place and the operands.
func (e *FaultError) Error() string {
	s := e.Fault.String()
	if e.Expr != "" {
		s += " (" + e.Expr + ")"
	}
	if e.Pos.Line != 0 {
		s = e.Pos.String() + ": " + s
	}
	return s + " in " + e.Func
}

// Run evaluates f on one worker's arguments. The error is a *FaultError.
func (e *Evaluator) Run(f *Func, args ...Bits) ([]Bits, error) {
	if len(args) != len(f.Params) {
		return nil, fmt.Errorf("ir: %s takes %d arguments, not %d", f.Name, len(f.Params), len(args))
	}
	m := &machine{e: e}
	out := m.call(f, args)
	if m.err != nil {
		return nil, m.err
	}
	return out, nil
}

type machine struct {
	e     *Evaluator
	steps int64
	err   *FaultError
}

type frame struct {
	m    *machine
	f    *Func
	vals []Bits
}

func (m *machine) call(f *Func, args []Bits) []Bits {
	fr := &frame{m: m, f: f, vals: make([]Bits, len(f.Types))}
	for i, p := range f.Params {
		fr.vals[p.Value] = args[i]
	}
	_, out := fr.region(f.Body)
	return out
}

// fallsThrough is the level of a region that ends in yield.
const fallsThrough = -1

// region runs r and returns how it ended: fallsThrough with the yielded
// values, or the level of a break (as the region sees it) with its values.
func (fr *frame) region(r *Region) (int, []Bits) {
	for i := range r.Instrs {
		in := &r.Instrs[i]
		if !fr.step(in) {
			return fallsThrough, nil
		}
		switch in.Op {
		case OpYield:
			return fallsThrough, fr.get(in.Args)
		case OpBreak:
			return in.Level(), fr.get(in.Args)
		case OpUnreachable:
			panic("ir: internal error: unreachable reached in " + fr.f.Name)
		case OpIf:
			arm := in.Regions[1]
			if fr.vals[in.Args[0]] != 0 {
				arm = in.Regions[0]
			}
			level, vals := fr.region(arm)
			if level > 0 {
				return level - 1, vals
			}
			fr.set(in.Results, vals)
		case OpLoop:
			fr.set(in.Carried, fr.get(in.Args))
			for {
				level, vals := fr.region(in.Regions[0])
				if level > 0 {
					return level - 1, vals
				}
				if level == 0 || fr.m.err != nil {
					fr.set(in.Results, vals)
					break
				}
				fr.set(in.Carried, vals)
			}
		case OpCall:
			fr.set(in.Results, fr.m.call(in.Callee, fr.get(in.Args)))
		default:
			fr.vals[in.Results[0]] = fr.compute(in)
		}
		if fr.m.err != nil {
			return fallsThrough, nil
		}
	}
	panic("ir: internal error: a region without terminator in " + fr.f.Name)
}

func (fr *frame) compute(in *Instr) Bits {
	a := fr.get(in.Args)
	v, fault := Compute(fr.f, in, a)
	if fault != NoFault {
		fr.fail(in, fault, faultExpr(fr.f, in, a))
	}
	return v
}

// Compute evaluates one instruction without control on operands a.
func Compute(f *Func, in *Instr, a []Bits) (Bits, Fault) {
	switch in.Op {
	case OpConst:
		return in.Imm, NoFault
	case OpConvert:
		return Convert(f.Types[in.Results[0]], f.Types[in.Args[0]], a[0]), NoFault
	case OpMath:
		return in.Fn.Row().Eval(a), NoFault
	}
	var t [3]Type
	return in.Op.Row().Eval(f.argTypes(in, t[:0]), a)
}

var faultSymbol = map[Op]string{OpDiv: "/", OpRem: "%", OpShl: "<<", OpShr: ">>"}

func faultExpr(f *Func, in *Instr, a []Bits) string {
	return FormatBits(f.Types[in.Args[0]], a[0]) + " " + faultSymbol[in.Op] + " " + FormatBits(f.Types[in.Args[1]], a[1])
}

func (fr *frame) fail(in *Instr, fault Fault, expr string) {
	if fr.m.err == nil {
		fr.m.err = &FaultError{Fault: fault, Func: fr.f.Name, Pos: in.Pos, Expr: expr}
	}
}

func (fr *frame) step(in *Instr) bool {
	m := fr.m
	m.steps++
	if m.e.Steps > 0 && m.steps > m.e.Steps {
		fr.fail(in, StepBudget, "")
	} else if m.steps%1024 == 0 && m.e.Cancelled != nil && m.e.Cancelled() {
		fr.fail(in, Cancelled, "")
	}
	return m.err == nil
}

func (fr *frame) get(vs []Value) []Bits {
	out := make([]Bits, len(vs))
	for i, v := range vs {
		out[i] = fr.vals[v]
	}
	return out
}

func (fr *frame) set(vs []Value, bits []Bits) {
	for i, b := range bits {
		fr.vals[vs[i]] = b
	}
}
