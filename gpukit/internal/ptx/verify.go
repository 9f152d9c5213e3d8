package ptx

import (
	"fmt"
	"slices"
	"strings"
)

// Verify checks a module: known instructions with operands of their shapes and
// types, declared names, a version and target that allow what is used. The
// error is an *Error; its Pos is that of the instruction, if parsed.
func Verify(m *Module) error {
	v := &verifier{m: m, vars: map[string]*Var{}}
	v.module()
	if v.err != nil {
		return v.err
	}
	return nil
}

// Requires returns the lowest .version and .target with which the module's
// instructions may be used. The target may be one that needs a newer version
// itself (TargetVersion).
func Requires(m *Module) (Version, int) {
	ver, sm := Version{2, 3}, 20 // .address_size; what every tool still takes
	for _, f := range m.Funcs {
		for i := range f.Instrs {
			d, err := Decode(f.Instrs[i].Opcode)
			if err != nil {
				continue
			}
			if ver.Less(d.Form.Version) {
				ver = d.Form.Version
			}
			sm = max(sm, d.Form.SM)
			for _, a := range f.Instrs[i].Args {
				if s, ok := specials[a.Sym]; ok && a.Kind == KindSpecial && ver.Less(s.Version) {
					ver = s.Version
				}
			}
		}
	}
	for _, t := range targets {
		if t.sm >= sm {
			return ver, t.sm
		}
	}
	return ver, sm
}

type verifier struct {
	m    *Module
	f    *Func
	vars map[string]*Var // of the module, and of the function
	err  *Error
}

func (v *verifier) fail(pos Pos, format string, args ...any) {
	if v.err == nil {
		v.err = &Error{pos, fmt.Sprintf(format, args...)}
	}
}

func identifier(s string) bool {
	if s == "" || digit(s[0]) || s[0] == '%' && len(s) == 1 || s == "_" {
		return false
	}
	for i := range len(s) {
		if !letter(s[i]) && !digit(s[i]) || i > 0 && s[i] == '%' {
			return false
		}
	}
	return true
}

func (v *verifier) module() {
	m := v.m
	tv, ok := TargetVersion(m.Target)
	if !ok {
		v.fail(Pos{}, ".target sm_%d is not known", m.Target)
	} else if m.Version.Less(tv) {
		v.fail(Pos{}, ".target sm_%d needs .version %v, not %v", m.Target, tv, m.Version)
	}
	if m.AddressSize != 32 && m.AddressSize != 64 {
		v.fail(Pos{}, ".address_size %d: want 32 or 64", m.AddressSize)
	}
	names := map[string]bool{}
	for i := range m.Vars {
		x := &m.Vars[i]
		if names[x.Name] && x.Linkage != Extern {
			v.fail(Pos{}, "%s is declared twice", x.Name)
		}
		names[x.Name] = true
		v.variable(x)
		if x.Space == ParamSpace || x.Space == Local {
			v.fail(Pos{}, "%s: a .%v variable outside a function", x.Name, x.Space)
		}
		v.vars[x.Name] = x
	}
	bodies := map[string]bool{}
	for _, f := range m.Funcs {
		if names[f.Name] || !f.Proto && bodies[f.Name] {
			v.fail(Pos{}, "%s is declared twice", f.Name)
		}
		bodies[f.Name] = bodies[f.Name] || !f.Proto
		v.function(f)
	}
}

func (v *verifier) variable(x *Var) {
	switch {
	case !identifier(x.Name):
		v.fail(Pos{}, "%q is not a name", x.Name)
	case x.Type == NoType || x.Type == Pred || x.Type >= numTypes:
		v.fail(Pos{}, "%s: a variable of type %v", x.Name, x.Type)
	case x.Space == Generic || x.Space >= numSpaces || x.Linkage >= numLinkages:
		v.fail(Pos{}, "%s: a variable without state space", x.Name)
	case x.Align < 0 || x.Align&(x.Align-1) != 0 || x.PtrAlign&(x.PtrAlign-1) != 0:
		v.fail(Pos{}, "%s: alignment %d is not a power of two", x.Name, x.Align)
	case x.Vec != 0 && x.Vec != 2 && x.Vec != 4:
		v.fail(Pos{}, "%s: a vector of %d", x.Name, x.Vec)
	case x.Len < 0 || !x.Array && x.Len != 0:
		v.fail(Pos{}, "%s: %d elements", x.Name, x.Len)
	case x.Array && x.Len == 0 && x.Linkage != Extern:
		v.fail(Pos{}, "%s: an array without size", x.Name)
	case len(x.Init) > 0 && x.Space != Global && x.Space != Const:
		v.fail(Pos{}, "%s: a .%v variable has no initial value", x.Name, x.Space)
	case len(x.Init) > max(x.Len, 1)*max(x.Vec, 1):
		v.fail(Pos{}, "%s: %d initial values for %d elements", x.Name, len(x.Init), x.Len)
	}
}

func (v *verifier) function(f *Func) {
	v.f = f
	if !identifier(f.Name) {
		v.fail(Pos{}, "%q is not a name", f.Name)
	}
	if f.Entry && len(f.Results) > 0 {
		v.fail(Pos{}, "%s: an .entry has no results", f.Name)
	}
	outer := v.vars
	v.vars = make(map[string]*Var, len(outer)+len(f.Params)+len(f.Vars))
	for n, x := range outer {
		v.vars[n] = x
	}
	taken := map[string]bool{}
	name := func(n string) {
		if !identifier(n) {
			v.fail(Pos{}, "%s: %q is not a name", f.Name, n)
		} else if taken[n] {
			v.fail(Pos{}, "%s: %s is declared twice", f.Name, n)
		}
		taken[n] = true
	}
	for _, vs := range [][]Var{f.Results, f.Params, f.Vars} {
		for i := range vs {
			name(vs[i].Name)
			v.variable(&vs[i])
			v.vars[vs[i].Name] = &vs[i]
		}
	}
	for _, r := range f.Regs {
		name(r.Name)
		if r.Type == NoType || r.Type >= numTypes || r.Type.Bits() == 8 {
			v.fail(Pos{}, "%s: a register of type %v", f.Name, r.Type)
		}
	}
	at := 0
	for _, l := range f.Labels {
		name(l.Name)
		if l.At < at || l.At > len(f.Instrs) {
			v.fail(Pos{}, "%s: label %s is out of place", f.Name, l.Name)
		}
		at = l.At
	}
	for _, b := range f.Bounds {
		if n, ok := bounds[b.Name]; !ok || len(b.Values) > n || n > 0 && len(b.Values) == 0 {
			v.fail(Pos{}, "%s: .%s with %d numbers", f.Name, b.Name, len(b.Values))
		}
	}
	known := false
	for i := range f.Instrs {
		in := &f.Instrs[i]
		if in.Loc == (Loc{}) && known {
			v.fail(in.Pos, "%s: an instruction without source position after one with", f.Name)
		}
		known = known || in.Loc != Loc{}
		v.instr(in)
	}
	v.vars = outer
}

func (v *verifier) instr(in *Instr) {
	if v.err != nil {
		return
	}
	bad := func(format string, args ...any) {
		v.fail(in.Pos, "%s: %s: %s", v.f.Name, v.f.Format(in), fmt.Sprintf(format, args...))
	}
	d, err := Decode(in.Opcode)
	if err != nil {
		bad("%v", err)
		return
	}
	if v.m.Version.Less(d.Form.Version) {
		bad("needs .version %v", d.Form.Version)
	}
	if v.m.Target < d.Form.SM {
		bad("needs .target sm_%d", d.Form.SM)
	}
	if in.Guard.On && v.reg(in.Guard.Reg) != Pred {
		bad("the guard is not a predicate")
	}
	if d.Type.Bits()*d.Vec > 128 {
		bad("a vector of more than 128 bits")
	}
	if d.Op == "cvt" && d.Has("sat") && !d.Types[0].IsFloat() && holds(d.Types[0], d.Type) {
		bad("there is nothing to saturate")
	}
	if d.Op == "cvta" && d.Type.Bits() != v.m.AddressSize {
		bad("addresses have %d bits", v.m.AddressSize)
	}
	args := in.Args
	for i, shape := range d.Form.Args {
		shape, optional := strings.CutSuffix(shape, "?")
		if shape == "C" {
			if msg := v.call(args); msg != "" {
				bad("%s", msg)
			}
			return
		}
		if len(args) == 0 {
			if !optional {
				bad("an operand is missing: %v", d.Form)
			}
			continue
		}
		if msg := v.operand(d, shape, &args[0]); msg != "" {
			bad("operand %d %s", i+1, msg)
		}
		args = args[1:]
	}
	if len(args) > 0 {
		bad("too many operands: %v", d.Form)
	}
}

// reg returns the type of a register, NoType if there is none.
func (v *verifier) reg(r RegID) Type {
	if r < 0 || int(r) >= len(v.f.Regs) {
		return NoType
	}
	return v.f.Regs[r].Type
}

// agree reports whether a register of type r may stand for an operand of type
// t: same width, and integers and floats do not mix ("Operand Type Checking").
func agree(t, r Type) bool {
	return t == r || t.Bits() == r.Bits() && (t.IsBits() || r.IsBits() || !t.IsFloat() && !r.IsFloat()) && r != NoType && t != Pred
}

// relaxed is agree for a register that may be wider ("Operand Size Exceeding
// Instruction-Type Size").
func relaxed(t, r Type) bool {
	if agree(t, r) {
		return true
	}
	return r.Bits() > t.Bits() && t != Pred && (r.IsBits() || !t.IsFloat() && !r.IsFloat())
}

// holds reports whether integer type t has every value of type u.
func holds(t, u Type) bool {
	return !u.IsFloat() && (t.IsSigned() == u.IsSigned() && t.Bits() >= u.Bits() || t.IsSigned() && t.Bits() > u.Bits())
}

func wider(t Type) Type {
	switch t {
	case U16:
		return U32
	case S16:
		return S32
	case U32:
		return U64
	case S32:
		return S64
	}
	return NoType
}

func (v *verifier) operand(d *Decoded, shape string, o *Operand) string {
	shape, dest := strings.CutPrefix(shape, "=")
	if o.Not && shape != "p" {
		return "is negated"
	}
	loose := false
	switch shape {
	case "[]":
		return v.address(d, o)
	case "L":
		if _, ok := v.f.LabelAt(o.Sym); o.Kind != KindLabel || !ok {
			return "is not a label"
		}
		return ""
	case "P", "p":
		if o.Kind == KindPair && shape == "P" && len(o.Elems) == 2 {
			for i := range o.Elems {
				if o.Elems[i].Kind != KindSink && (o.Elems[i].Kind != KindReg || v.reg(o.Elems[i].Reg) != Pred) {
					return "is not a pair of predicates"
				}
			}
			return ""
		}
		if o.Kind != KindReg || v.reg(o.Reg) != Pred {
			return "is not a predicate"
		}
		return ""
	case "Q", "Q32":
		t := d.Type
		if shape == "Q32" {
			t = U32
		}
		if o.Kind == KindPair && len(o.Elems) == 2 {
			a, b := &o.Elems[0], &o.Elems[1]
			if (a.Kind == KindSink || a.Kind == KindReg && agree(t, v.reg(a.Reg))) && (b.Kind == KindSink || b.Kind == KindReg && v.reg(b.Reg) == Pred) {
				return ""
			}
			return "is not a pair of a register and a predicate"
		}
		return v.value(t, o, true, false)
	case "V":
		if d.Vec == 0 {
			return v.value(d.Type, o, dest, true)
		}
		return v.vector(d.Type, d.Vec, o, dest, true)
	case "A":
		if o.Kind == KindSym {
			return v.symbol(o)
		}
		t := d.Type
		if t == NoType { // isspacep
			t = map[int]Type{32: U32, 64: U64}[v.m.AddressSize]
		}
		return v.value(t, o, false, false)
	case "M":
		switch {
		case o.Kind == KindVec:
			n := len(o.Elems)
			if !d.Type.IsBits() || n != 2 && n != 4 {
				return "is a vector"
			}
			part := map[int]Type{8: B8, 16: B16, 32: B32}[d.Type.Bits()/n]
			return v.vector(part, n, o, dest, false)
		case o.Kind == KindSpecial && !dest:
			s, ok := specials[o.Sym]
			if !ok || !agree(d.Type, s.Type) {
				return fmt.Sprintf("is not a special register of type .%v", d.Type)
			}
			if v.m.Version.Less(s.Version) {
				return fmt.Sprintf("needs .version %v", s.Version)
			}
			return ""
		case o.Kind == KindSym && !dest:
			if d.Type.Bits() != v.m.AddressSize || d.Type.IsFloat() {
				return fmt.Sprintf("is an address of %d bits", v.m.AddressSize)
			}
			return v.symbol(o)
		case o.Kind == KindInt && d.Type == Pred && !dest:
			return ""
		}
		return v.value(d.Type, o, dest, false)
	case "n", "n2":
		return v.value(U32, o, false, false)
	case "i":
		if o.Kind != KindInt {
			return "is not a number"
		}
		return ""
	}
	if s, ok := strings.CutPrefix(shape, "~"); ok {
		shape, loose = s, true
	}
	t := NoType
	switch shape {
	case "T":
		t = d.Type
	case "T0":
		t = d.Types[0]
	case "W":
		t = wider(d.Type)
	default:
		t = ParseType(shape)
	}
	if o.Kind == KindSpecial && d.Op == "cvt" && !dest {
		if s, ok := specials[o.Sym]; ok && agree(t, s.Type) {
			return ""
		}
	}
	return v.value(t, o, dest, loose)
}

// value checks a register or, for a source, an immediate of type t.
func (v *verifier) value(t Type, o *Operand, dest, loose bool) string {
	switch o.Kind {
	case KindReg:
		if r := v.reg(o.Reg); !(agree(t, r) || loose && relaxed(t, r)) {
			return fmt.Sprintf("has a register of type .%v, not .%v", r, t)
		}
		return ""
	case KindInt:
		if !dest && !t.IsFloat() && t != Pred {
			return ""
		}
	case KindF32:
		if !dest && (t == F32 || t == B32) {
			return ""
		}
	case KindF64:
		if !dest && (t == F64 || t == B64) {
			return ""
		}
	case KindSink:
		if dest && loose {
			return ""
		}
	}
	return fmt.Sprintf("does not fit .%v", t)
}

func (v *verifier) vector(t Type, n int, o *Operand, dest, loose bool) string {
	if o.Kind != KindVec || len(o.Elems) != n {
		return fmt.Sprintf("is not a vector of %d", n)
	}
	for i := range o.Elems {
		if o.Elems[i].Not {
			return "is negated"
		}
		if msg := v.value(t, &o.Elems[i], dest, loose); msg != "" {
			return msg
		}
		if e, first := &o.Elems[i], &o.Elems[0]; e.Kind == KindReg && first.Kind == KindReg && v.reg(e.Reg) != v.reg(first.Reg) {
			return "has registers of different types"
		}
	}
	return ""
}

func (v *verifier) symbol(o *Operand) string {
	if v.vars[o.Sym] == nil {
		return fmt.Sprintf("is %s, which is not declared", o.Sym)
	}
	return ""
}

func (v *verifier) address(d *Decoded, o *Operand) string {
	if o.Kind != KindAddr {
		return "is not an address"
	}
	switch {
	case o.Reg != NoReg:
		if t := v.reg(o.Reg); t.IsFloat() || t.Bits() != 32 && t.Bits() != 64 || t.Bits() > v.m.AddressSize {
			return fmt.Sprintf("has an address of type .%v", t)
		}
	case o.Sym != "":
		x := v.vars[o.Sym]
		if x == nil {
			return v.symbol(o)
		}
		if d.Space != Generic && d.Space != x.Space {
			return fmt.Sprintf("is in .%v, not .%v", x.Space, d.Space)
		}
		if d.Op == "st" && slices.ContainsFunc(v.f.Params, func(p Var) bool { return p.Name == o.Sym }) {
			return "is a parameter of the function itself, which cannot be written"
		}
	case d.Space != Local:
		return "is a number, which is an address in .local memory only"
	}
	return ""
}

// call checks (results), function, (parameters); each list may be left out.
func (v *verifier) call(args []Operand) string {
	var lists [2]Operand
	if len(args) > 0 && args[0].Kind == KindList {
		lists[0], args = args[0], args[1:]
	}
	if len(args) == 0 || args[0].Kind != KindFunc {
		return "calls no function"
	}
	callee := args[0]
	if args = args[1:]; len(args) > 0 && args[0].Kind == KindList {
		lists[1], args = args[0], args[1:]
	}
	f := v.m.Func(callee.Sym)
	if f == nil || f.Entry || len(args) > 0 {
		return callee.Sym + " is not a .func"
	}
	for k, params := range [][]Var{f.Results, f.Params} {
		if len(lists[k].Elems) != len(params) {
			return fmt.Sprintf("%s has %d parameters and %d results", f.Name, len(f.Params), len(f.Results))
		}
		for i := range params {
			o := &lists[k].Elems[i]
			switch {
			case o.Kind == KindSym && v.vars[o.Sym] != nil && v.vars[o.Sym].Size() == params[i].Size():
			case !params[i].Array && v.value(params[i].Type, o, k == 0, false) == "":
			default:
				return fmt.Sprintf("%s does not fit", params[i].Name)
			}
		}
	}
	return ""
}
