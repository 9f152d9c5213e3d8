package ir

import (
	"fmt"
	"strings"
)

// String prints f, stable and complete, with the functions that it calls after
// it.
func (f *Func) String() string {
	p := &printer{printed: map[*Func]bool{f: true}, queue: []*Func{f}}
	for len(p.queue) > 0 {
		g := p.queue[0]
		p.queue = p.queue[1:]
		if g != f {
			p.b.WriteByte('\n')
		}
		p.function(g)
	}
	return p.b.String()
}

type printer struct {
	b       strings.Builder
	f       *Func
	printed map[*Func]bool
	queue   []*Func
}

func (p *printer) function(f *Func) {
	p.f = f
	fmt.Fprintf(&p.b, "func %s(", f.Name)
	for i, q := range f.Params {
		if i > 0 {
			p.b.WriteString(", ")
		}
		fmt.Fprintf(&p.b, "v%d %s %v", q.Value, q.Name, f.Types[q.Value])
	}
	p.b.WriteString(") (")
	for i, t := range f.Results {
		if i > 0 {
			p.b.WriteString(", ")
		}
		p.b.WriteString(t.String())
	}
	p.b.WriteString(") {\n")
	for i, m := range f.Mems {
		fmt.Fprintf(&p.b, "\tmem m%d %s %v %v", i, m.Name, m.Space, m.Elem)
		if m.Space != Global {
			fmt.Fprintf(&p.b, "[%d]", m.Len)
		}
		if m.Space == Constant {
			for _, b := range m.Data {
				p.b.WriteString(" " + FormatBits(m.Elem, b))
			}
		}
		p.b.WriteByte('\n')
	}
	p.region(f.Body, 1)
	p.b.WriteString("}\n")
}

func (p *printer) region(r *Region, depth int) {
	for i := range r.Instrs {
		p.instr(&r.Instrs[i], depth)
	}
}

func (p *printer) typed(vs []Value) string {
	s := make([]string, len(vs))
	for i, v := range vs {
		s[i] = fmt.Sprintf("v%d %v", v, p.f.Types[v])
	}
	return strings.Join(s, ", ")
}

func values(vs []Value) string {
	s := make([]string, len(vs))
	for i, v := range vs {
		s[i] = fmt.Sprintf("v%d", v)
	}
	return strings.Join(s, ", ")
}

func (p *printer) instr(in *Instr, depth int) {
	indent := strings.Repeat("\t", depth)
	p.b.WriteString(indent)
	if len(in.Results) > 0 {
		p.b.WriteString(p.typed(in.Results) + " = ")
	}
	switch in.Op {
	case OpIf:
		fmt.Fprintf(&p.b, "if v%d {\n", in.Args[0])
		p.region(in.Regions[0], depth+1)
		p.b.WriteString(indent + "} else {\n")
		p.region(in.Regions[1], depth+1)
		p.b.WriteString(indent + "}")
	case OpLoop:
		fmt.Fprintf(&p.b, "loop (%s) from (%s) {\n", p.typed(in.Carried), values(in.Args))
		p.region(in.Regions[0], depth+1)
		p.b.WriteString(indent + "}")
	case OpConst:
		p.b.WriteString("const " + FormatBits(p.f.Types[in.Results[0]], in.Imm))
	case OpMath:
		fmt.Fprintf(&p.b, "%v(%s)", in.Fn, values(in.Args))
	case OpCall:
		fmt.Fprintf(&p.b, "call %s(%s)", in.Callee.Name, values(in.Args))
		for _, m := range in.Mems {
			fmt.Fprintf(&p.b, " m%d", m)
		}
		if !p.printed[in.Callee] {
			p.printed[in.Callee] = true
			p.queue = append(p.queue, in.Callee)
		}
	case OpBreak:
		fmt.Fprintf(&p.b, "break %d", in.Level())
		if len(in.Args) > 0 {
			p.b.WriteString(" " + values(in.Args))
		}
	case OpPrint:
		fmt.Fprintf(&p.b, "print %q %s", in.Text, values(in.Args))
	default:
		p.b.WriteString(in.Op.String())
		if k := in.kindName(); k != "" {
			p.b.WriteString("." + k)
		}
		if in.Op.accessesMem() {
			fmt.Fprintf(&p.b, " m%d", in.Mem)
		}
		if len(in.Args) > 0 {
			p.b.WriteString(" " + values(in.Args))
		}
	}
	p.b.WriteByte('\n')
}

func (in *Instr) kindName() string {
	switch in.Op {
	case OpAtomic:
		return [...]string{"add", "min", "max", "and", "or", "xor", "exchange", "compareswap"}[in.Kind]
	case OpShuffle:
		return [...]string{"idx", "up", "down", "xor"}[in.Kind]
	case OpVote:
		return [...]string{"any", "all", "ballot"}[in.Kind]
	}
	return ""
}
