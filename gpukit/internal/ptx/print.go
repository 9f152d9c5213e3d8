package ptx

import (
	"fmt"
	"strconv"
	"strings"
)

// String prints the module; Parse reads it back to an equal one.
func (m *Module) String() string {
	p := &printer{}
	p.printf(".version %v\n.target sm_%d", m.Version, m.Target)
	for _, f := range m.TargetFlags {
		p.printf(", %s", f)
	}
	p.printf("\n.address_size %d\n", m.AddressSize)
	if len(m.Files) > 0 {
		p.printf("\n")
	}
	for _, f := range m.Files {
		p.printf(".file %d %s\n", f.Index, quote(f.Name))
	}
	if len(m.Vars) > 0 {
		p.printf("\n")
	}
	for i := range m.Vars {
		p.printf("%s;\n", variable(&m.Vars[i]))
	}
	for _, f := range m.Funcs {
		p.function(f)
	}
	return p.b.String()
}

type printer struct {
	b strings.Builder
	f *Func
}

func (p *printer) printf(format string, args ...any) { fmt.Fprintf(&p.b, format, args...) }

// quote writes a PTX string; it knows no escapes, so what would need one is
// replaced.
func quote(s string) string {
	return `"` + strings.Map(func(r rune) rune {
		if r == '"' || r == '\n' || r == '\r' {
			return '_'
		}
		return r
	}, s) + `"`
}

func variable(v *Var) string {
	var b strings.Builder
	if v.Linkage != Internal {
		b.WriteString("." + linkageNames[v.Linkage] + " ")
	}
	b.WriteString("." + v.Space.String())
	if v.Align > 0 {
		fmt.Fprintf(&b, " .align %d", v.Align)
	}
	if v.Vec > 0 {
		fmt.Fprintf(&b, " .v%d", v.Vec)
	}
	b.WriteString(" ." + v.Type.String())
	if v.Ptr {
		b.WriteString(" .ptr")
		if v.PtrSpace != Generic {
			b.WriteString(" ." + v.PtrSpace.String())
		}
		if v.PtrAlign > 0 {
			fmt.Fprintf(&b, " .align %d", v.PtrAlign)
		}
	}
	b.WriteString(" " + v.Name)
	if v.Array {
		b.WriteByte('[')
		if v.Len > 0 {
			b.WriteString(strconv.Itoa(v.Len))
		}
		b.WriteByte(']')
	}
	if len(v.Init) > 0 {
		b.WriteString(" = ")
		if v.Array {
			b.WriteByte('{')
		}
		for i, x := range v.Init {
			if i > 0 {
				b.WriteString(", ")
			}
			b.WriteString(initial(v.Type, x))
		}
		if v.Array {
			b.WriteByte('}')
		}
	}
	return b.String()
}

func initial(t Type, x uint64) string {
	switch t {
	case F32:
		return fmt.Sprintf("0f%08X", uint32(x))
	case F64:
		return fmt.Sprintf("0d%016X", x)
	case S8, S16, S32, S64:
		return integer(x)
	}
	return strconv.FormatUint(x, 10)
}

func integer(x uint64) string {
	if x == 1<<63 { // its absolute value is no int64
		return "0x8000000000000000"
	}
	return strconv.FormatInt(int64(x), 10)
}

func (p *printer) params(vs []Var) {
	p.printf("(")
	for i := range vs {
		if i > 0 {
			p.printf(",")
		}
		p.printf("\n\t%s", variable(&vs[i]))
	}
	p.printf("\n)")
}

func (p *printer) function(f *Func) {
	p.f = f
	p.printf("\n")
	if f.Linkage != Internal {
		p.printf(".%s ", linkageNames[f.Linkage])
	}
	if f.Entry {
		p.printf(".entry %s", f.Name)
	} else {
		p.printf(".func ")
		if len(f.Results) > 0 {
			p.params(f.Results)
			p.printf(" ")
		}
		p.printf("%s", f.Name)
	}
	if len(f.Params) > 0 {
		p.params(f.Params)
	} else {
		p.printf("()")
	}
	p.printf("\n")
	for _, b := range f.Bounds {
		p.printf(".%s ", b.Name)
		for i, v := range b.Values {
			if i > 0 {
				p.printf(", ")
			}
			p.printf("%d", v)
		}
		p.printf("\n")
	}
	if f.Proto {
		p.printf(";\n")
		return
	}
	p.printf("{\n")
	p.regs(f.Regs)
	for i := range f.Vars {
		p.printf("\t%s;\n", variable(&f.Vars[i]))
	}
	if len(f.Regs)+len(f.Vars) > 0 && len(f.Instrs) > 0 {
		p.printf("\n")
	}
	labels, pragmas, loc := f.Labels, f.Pragmas, Loc{}
	for i := 0; i <= len(f.Instrs); i++ {
		for len(labels) > 0 && labels[0].At <= i {
			p.printf("%s:\n", labels[0].Name)
			labels = labels[1:]
		}
		for len(pragmas) > 0 && pragmas[0].At <= i {
			p.printf("\t.pragma %s;\n", quote(pragmas[0].Text))
			pragmas = pragmas[1:]
		}
		if i == len(f.Instrs) {
			break
		}
		in := &f.Instrs[i]
		if in.Loc != loc {
			loc = in.Loc
			p.printf("\t.loc %d %d %d\n", loc.File, loc.Line, loc.Col)
		}
		p.printf("\t%s;\n", f.Format(in))
	}
	p.printf("}\n")
}

// regs prints declarations: runs of numbered names as %r<n>.
func (p *printer) regs(regs []Reg) {
	for i := 0; i < len(regs); {
		prefix, numbered := strings.CutSuffix(regs[i].Name, "0")
		n := 1
		for numbered && i+n < len(regs) && regs[i+n].Type == regs[i].Type && regs[i+n].Name == prefix+strconv.Itoa(n) {
			n++
		}
		if numbered && prefix != "" && !(prefix[len(prefix)-1] >= '0' && prefix[len(prefix)-1] <= '9') {
			p.printf("\t.reg .%v %s<%d>;\n", regs[i].Type, prefix, n)
		} else {
			n = 1
			p.printf("\t.reg .%v %s;\n", regs[i].Type, regs[i].Name)
		}
		i += n
	}
}

// Format prints one instruction of f, without label, indent and semicolon.
func (f *Func) Format(in *Instr) string {
	var b strings.Builder
	if in.Guard.On {
		b.WriteByte('@')
		if in.Guard.Not {
			b.WriteByte('!')
		}
		b.WriteString(f.regName(in.Guard.Reg) + " ")
	}
	b.WriteString(in.Opcode)
	for i := range in.Args {
		if i == 0 {
			b.WriteByte(' ')
		} else {
			b.WriteString(", ")
		}
		f.operand(&b, &in.Args[i])
	}
	return b.String()
}

func (f *Func) regName(r RegID) string {
	if r < 0 || int(r) >= len(f.Regs) {
		return fmt.Sprintf("%%bad%d", r)
	}
	return f.Regs[r].Name
}

func (f *Func) operand(b *strings.Builder, o *Operand) {
	if o.Not {
		b.WriteByte('!')
	}
	list := func(sep string) {
		for i := range o.Elems {
			if i > 0 {
				b.WriteString(sep)
			}
			f.operand(b, &o.Elems[i])
		}
	}
	switch o.Kind {
	case KindReg:
		b.WriteString(f.regName(o.Reg))
	case KindInt:
		b.WriteString(integer(o.Bits))
	case KindF32:
		b.WriteString(initial(F32, o.Bits))
	case KindF64:
		b.WriteString(initial(F64, o.Bits))
	case KindSpecial, KindLabel, KindFunc:
		b.WriteString(o.Sym)
	case KindSym:
		b.WriteString(o.Sym + offset(o.Off))
	case KindAddr:
		b.WriteByte('[')
		switch {
		case o.Reg != NoReg:
			b.WriteString(f.regName(o.Reg) + offset(o.Off))
		case o.Sym != "":
			b.WriteString(o.Sym + offset(o.Off))
		default:
			b.WriteString(strconv.FormatInt(o.Off, 10))
		}
		b.WriteByte(']')
	case KindVec:
		b.WriteByte('{')
		list(", ")
		b.WriteByte('}')
	case KindPair:
		list("|")
	case KindList:
		b.WriteByte('(')
		list(", ")
		b.WriteByte(')')
	case KindSink:
		b.WriteByte('_')
	default:
		b.WriteString("<bad operand>")
	}
}

func offset(off int64) string {
	switch {
	case off > 0:
		return "+" + strconv.FormatInt(off, 10)
	case off < 0:
		return "+" + strconv.FormatInt(off, 10) // ptxas takes a+-8, not a-8
	}
	return ""
}
