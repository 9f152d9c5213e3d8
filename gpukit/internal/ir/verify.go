package ir

import "fmt"

// Verify checks that f is well formed: every operand is defined where it is
// used and has the right type, every region ends in its only terminator, every
// break finds its construct. It checks the callees too.
func Verify(f *Func) error {
	return verify(f, map[*Func]bool{})
}

type verifier struct {
	f       *Func
	seen    map[*Func]bool
	defined []bool // by Value: ever defined
	visible []bool // by Value: visible here
	results [][]Type
	err     error
}

func verify(f *Func, seen map[*Func]bool) error {
	if seen[f] {
		return nil
	}
	seen[f] = true
	v := &verifier{f: f, seen: seen, defined: make([]bool, len(f.Types)), visible: make([]bool, len(f.Types))}
	for _, t := range f.Types {
		if t == Invalid || t >= numTypes {
			v.fail(nil, "a value of type %v", t)
		}
	}
	for _, p := range f.Params {
		v.define(nil, p.Value)
	}
	for i, m := range f.Mems {
		if m.Elem == Invalid || m.Elem >= numTypes || m.Space > Constant || m.Space == Constant && len(m.Data) != m.Len || m.Len < 0 {
			v.fail(nil, "memory m%d %s is not well formed", i, m.Name)
		}
	}
	v.region(nil, f.Body, f.Results, f.Results)
	if v.err != nil {
		return fmt.Errorf("ir: %s: %w", f.Name, v.err)
	}
	return nil
}

func (v *verifier) fail(in *Instr, format string, args ...any) {
	if v.err != nil {
		return
	}
	if in != nil {
		format = "%v: " + format
		args = append([]any{in.Op}, args...)
	}
	v.err = fmt.Errorf(format, args...)
}

func (v *verifier) define(in *Instr, x Value) {
	switch {
	case x < 0 || int(x) >= len(v.defined):
		v.fail(in, "no such value v%d", x)
	case v.defined[x]:
		v.fail(in, "v%d is defined twice", x)
	default:
		v.defined[x], v.visible[x] = true, true
	}
}

// region verifies r as a region of a construct whose breaks carry results and
// whose yield carries yields.
func (v *verifier) region(in *Instr, r *Region, results, yields []Type) {
	if len(r.Instrs) == 0 {
		v.fail(in, "an empty region")
		return
	}
	v.results = append(v.results, results)
	var here []Value
	for i := range r.Instrs {
		x := &r.Instrs[i]
		if x.Op == OpInvalid || x.Op >= NumOps {
			v.fail(x, "an unknown operation")
			return
		}
		if x.Op.Row().Terminator != (i == len(r.Instrs)-1) {
			v.fail(x, "a region ends in its only terminator")
		}
		for _, a := range x.Args {
			if a < 0 || int(a) >= len(v.visible) || !v.visible[a] {
				v.fail(x, "v%d is used where it is not visible", a)
				return
			}
		}
		v.instr(x, yields)
		for _, y := range x.Results {
			v.define(x, y)
			here = append(here, y)
		}
		if v.err != nil {
			return
		}
	}
	for _, y := range here {
		v.visible[y] = false
	}
	v.results = v.results[:len(v.results)-1]
}

func (v *verifier) instr(in *Instr, yields []Type) {
	switch in.Op {
	case OpIf:
		if len(in.Args) != 1 || v.f.Types[in.Args[0]] != Bool || len(in.Regions) != 2 {
			v.fail(in, "needs one bool and two regions")
			return
		}
		t := v.f.types(nil, in.Results)
		v.region(in, in.Regions[0], t, t)
		v.region(in, in.Regions[1], t, t)
	case OpLoop:
		if len(in.Regions) != 1 {
			v.fail(in, "needs one region")
			return
		}
		carried := v.f.types(nil, in.Carried)
		v.match(in, "first value", in.Args, carried)
		for _, c := range in.Carried {
			v.define(in, c)
		}
		v.region(in, in.Regions[0], v.f.types(nil, in.Results), carried)
		for _, c := range in.Carried {
			if v.err == nil {
				v.visible[c] = false
			}
		}
	case OpYield:
		v.match(in, "yielded value", in.Args, yields)
	case OpBreak:
		if in.Level() >= len(v.results) {
			v.fail(in, "level %d of %d", in.Level(), len(v.results))
			return
		}
		v.match(in, "broken-out value", in.Args, v.results[len(v.results)-1-in.Level()])
	case OpUnreachable, OpBarrier, OpWarpBarrier:
		v.match(in, "operand", in.Args, nil)
		v.match(in, "result", in.Results, nil)
	case OpLoad, OpStore, OpClear, OpAtomic:
		v.access(in)
	case OpBounds:
		v.match(in, "operand", in.Args, []Type{I64, I64})
		v.match(in, "result", in.Results, nil)
	case OpSliceBounds:
		v.match(in, "operand", in.Args, []Type{I64, I64, I64})
		v.match(in, "result", in.Results, nil)
	case OpShuffle:
		if len(in.Args) != 2 || in.Kind > ShuffleXor {
			v.fail(in, "needs a value, a lane and a kind")
			return
		}
		v.match(in, "operand", in.Args[1:], []Type{I64})
		v.match(in, "result", in.Results, v.f.types(nil, in.Args[:1]))
	case OpVote:
		t := Bool
		if in.Kind == Ballot {
			t = U32
		}
		v.match(in, "operand", in.Args, []Type{Bool})
		v.match(in, "result", in.Results, []Type{t})
	case OpPrint:
		if len(in.Text) != len(in.Args)+1 || len(in.Results) > 0 {
			v.fail(in, "%d texts around %d operands", len(in.Text), len(in.Args))
		}
	case OpCall:
		if in.Callee == nil {
			v.fail(in, "no callee")
			return
		}
		want := make([]Type, len(in.Callee.Params))
		for i, p := range in.Callee.Params {
			want[i] = in.Callee.Types[p.Value]
		}
		v.match(in, "argument", in.Args, want)
		v.match(in, "result", in.Results, in.Callee.Results)
		v.mems(in)
		if err := verify(in.Callee, v.seen); err != nil && v.err == nil {
			v.err = err
		}
	case OpConst:
		if len(in.Results) == 1 {
			if t := v.f.Types[in.Results[0]]; t.IsInt() && Wrap(t, in.Imm) != in.Imm || t == Bool && in.Imm > 1 {
				v.fail(in, "%#x is not in %v's normal form", in.Imm, t)
			}
		}
	case OpConvert:
		if len(in.Args) != 1 || len(in.Results) != 1 || !number(v.f.Types[in.Args[0]]) || !number(v.f.Types[in.Results[0]]) {
			v.fail(in, "needs one number and gives one")
		}
	case OpMath:
		if int(in.Fn) >= NumMath() {
			v.fail(in, "an unknown function")
			return
		}
		v.match(in, "argument", in.Args, in.Fn.Row().In)
		v.match(in, "result", in.Results, []Type{in.Fn.Row().Out})
	default:
		t, err := in.Op.ResultType(v.f.types(nil, in.Args))
		if err != nil {
			v.fail(in, "%v", err)
			return
		}
		v.match(in, "result", in.Results, []Type{t})
	}
}

func (v *verifier) access(in *Instr) {
	if in.Mem < 0 || int(in.Mem) >= len(v.f.Mems) {
		v.fail(in, "no such memory m%d", in.Mem)
		return
	}
	m := v.f.Mems[in.Mem]
	if m.Space == Constant && in.Op != OpLoad {
		v.fail(in, "m%d is constant", in.Mem)
	}
	args, results := []Type{I64}, []Type{m.Elem}
	switch {
	case in.Op == OpStore:
		args, results = []Type{I64, m.Elem}, nil
	case in.Op == OpClear:
		args, results = nil, nil
		if m.Space != Local {
			v.fail(in, "m%d is %v", in.Mem, m.Space)
		}
	case in.Op == OpAtomic && in.Kind == CompareSwap:
		args = []Type{I64, m.Elem, m.Elem}
	case in.Op == OpAtomic:
		args = []Type{I64, m.Elem}
		if in.Kind > CompareSwap || m.Elem == Bool || m.Elem.IsFloat() && in.Kind >= AtomicAnd && in.Kind <= AtomicXor {
			v.fail(in, "kind %d on %v", in.Kind, m.Elem)
		}
	}
	v.match(in, "operand", in.Args, args)
	v.match(in, "result", in.Results, results)
}

// mems checks that a call binds the callee's Global memories.
func (v *verifier) mems(in *Instr) {
	bound := in.Mems
	for _, m := range in.Callee.Mems {
		if m.Space != Global {
			continue
		}
		switch {
		case len(bound) == 0:
			v.fail(in, "%s is not bound", m.Name)
			return
		case bound[0] < 0 || int(bound[0]) >= len(v.f.Mems) || v.f.Mems[bound[0]].Elem != m.Elem:
			v.fail(in, "m%d does not fit %s", bound[0], m.Name)
			return
		}
		bound = bound[1:]
	}
	if len(bound) > 0 {
		v.fail(in, "%d memories too many", len(bound))
	}
}

func (v *verifier) match(in *Instr, what string, vs []Value, want []Type) {
	if len(vs) != len(want) {
		v.fail(in, "%d %ss, want %d", len(vs), what, len(want))
		return
	}
	for i, x := range vs {
		if v.f.Types[x] != want[i] {
			v.fail(in, "%s %d is %v, want %v", what, i, v.f.Types[x], want[i])
		}
	}
}
