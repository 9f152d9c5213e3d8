package ptx

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Parse reads PTX text and verifies it. Blocks nested in a function are
// flattened: what they declare is renamed where it would clash. The error is
// an *Error with line and column.
func Parse(src string) (*Module, error) {
	toks, err := lex(src)
	if err != nil {
		return nil, err
	}
	p := &parser{toks: toks, m: &Module{AddressSize: 32}, globals: map[string]Kind{}}
	if err := p.run(); err != nil {
		return nil, err
	}
	if err := Verify(p.m); err != nil {
		return nil, err
	}
	return p.m, nil
}

type parser struct {
	toks    []token
	i       int
	m       *Module
	f       *Func
	globals map[string]Kind
	scopes  []map[string]name
	taken   map[string]bool // names in the function
	loc     Loc
}

// name is what an identifier stands for inside a function.
type name struct {
	kind Kind // KindReg, KindSym or KindLabel
	reg  RegID
	text string
}

type failure struct{ err *Error }

func (p *parser) run() (err error) {
	defer func() {
		if r := recover(); r != nil {
			f, ok := r.(failure)
			if !ok {
				panic(r)
			}
			err = f.err
		}
	}()
	p.module()
	return nil
}

func (p *parser) fail(pos Pos, format string, args ...any) {
	panic(failure{&Error{pos, fmt.Sprintf(format, args...)}})
}

func (p *parser) peek() token { return p.toks[p.i] }

func (p *parser) next() token {
	t := p.toks[p.i]
	if t.kind != tokEOF {
		p.i++
	}
	return t
}

func (p *parser) is(punct string) bool {
	t := p.peek()
	return t.kind == tokPunct && t.text == punct
}

func (p *parser) accept(punct string) bool {
	if p.is(punct) {
		p.i++
		return true
	}
	return false
}

func (p *parser) want(punct string) {
	if t := p.peek(); !p.accept(punct) {
		p.fail(t.pos, "found %v, want %s", t, punct)
	}
}

func (p *parser) acceptDot(word string) bool {
	if t := p.peek(); t.kind == tokDot && t.text == word {
		p.i++
		return true
	}
	return false
}

func (p *parser) ident(what string) token {
	t := p.next()
	if t.kind != tokIdent || strings.Contains(t.text, ".") {
		p.fail(t.pos, "found %v, want %s", t, what)
	}
	return t
}

func (p *parser) number(what string) int {
	t := p.next()
	if t.kind != tokInt || t.bits > math.MaxInt32 {
		p.fail(t.pos, "found %v, want %s", t, what)
	}
	return int(t.bits)
}

func (p *parser) module() {
	t := p.next()
	if t.kind != tokDot || t.text != "version" {
		p.fail(t.pos, "found %v; PTX begins with .version", t)
	}
	v := p.next()
	major, minor, ok := strings.Cut(v.text, ".")
	a, err1 := strconv.Atoi(major)
	b, err2 := strconv.Atoi(minor)
	if !ok || err1 != nil || err2 != nil {
		p.fail(v.pos, "found %v, want a version such as 6.0", v)
	}
	p.m.Version = Version{a, b}
	for {
		t := p.next()
		if t.kind == tokEOF {
			return
		}
		if t.kind != tokDot {
			p.fail(t.pos, "found %v, want a directive", t)
		}
		switch t.text {
		case "target":
			p.target()
		case "address_size":
			p.m.AddressSize = p.number("32 or 64")
		case "file":
			f := File{Index: p.number("the index of a file")}
			s := p.next()
			if s.kind != tokString {
				p.fail(s.pos, "found %v, want the name of a file", s)
			}
			f.Name = s.text
			for p.accept(",") { // time stamp and size
				p.number("a number")
			}
			p.m.Files = append(p.m.Files, f)
		case "visible", "extern", "weak", "entry", "func", "global", "const", "shared":
			p.i--
			p.declaration()
		default:
			p.fail(t.pos, ".%s is not a directive that we know", t.text)
		}
	}
}

func (p *parser) target() {
	t := p.ident("a target such as sm_35")
	sm, ok := strings.CutPrefix(t.text, "sm_")
	n, err := strconv.Atoi(sm)
	if !ok || err != nil {
		p.fail(t.pos, "found %v, want a target such as sm_35", t)
	}
	p.m.Target = n
	for p.accept(",") {
		p.m.TargetFlags = append(p.m.TargetFlags, p.ident("a target option").text)
	}
}

func (p *parser) linkage() Linkage {
	for l := Visible; l < numLinkages; l++ {
		if p.acceptDot(linkageNames[l]) {
			return l
		}
	}
	return Internal
}

func (p *parser) declaration() {
	l := p.linkage()
	switch {
	case p.acceptDot("entry"):
		p.function(l, true)
	case p.acceptDot("func"):
		p.function(l, false)
	default:
		v := p.variable()
		v.Linkage = l
		p.m.Vars = append(p.m.Vars, v)
		p.globals[v.Name] = KindSym
		for p.accept(",") {
			v = p.declarator(v)
			p.m.Vars = append(p.m.Vars, v)
			p.globals[v.Name] = KindSym
		}
		p.want(";")
	}
}

// variable reads .space .align .vec .type name[n] = init.
func (p *parser) variable() Var {
	t := p.next()
	s, ok := spaceByName[t.text]
	if t.kind != tokDot || !ok {
		p.fail(t.pos, "found %v, want a state space", t)
	}
	v := Var{Space: s}
	for v.Type == NoType {
		t := p.next()
		if t.kind != tokDot {
			p.fail(t.pos, "found %v, want a type", t)
		}
		switch t.text {
		case "align":
			v.Align = p.number("an alignment")
		case "v2":
			v.Vec = 2
		case "v4":
			v.Vec = 4
		default:
			if v.Type = ParseType(t.text); v.Type == NoType || v.Type == Pred {
				p.fail(t.pos, "a variable cannot be .%s", t.text)
			}
		}
	}
	if p.acceptDot("ptr") {
		v.Ptr = true
		for p.peek().kind == tokDot {
			t := p.next()
			if t.text == "align" {
				v.PtrAlign = p.number("an alignment")
			} else if v.PtrSpace, ok = spaceByName[t.text]; !ok {
				p.fail(t.pos, "found %v, want a state space", t)
			}
		}
	}
	return p.declarator(v)
}

func (p *parser) declarator(v Var) Var {
	v.Name = p.ident("a name").text
	v.Array, v.Len, v.Init = false, 0, nil
	if p.accept("[") {
		v.Array, v.Len = true, 1
		if p.is("]") {
			v.Len = 0
		} else {
			v.Len = p.number("a size")
		}
		p.want("]")
		for p.accept("[") { // more dimensions: row by row
			v.Len *= p.number("a size")
			p.want("]")
		}
	}
	if p.accept("=") {
		p.initial(&v)
		if v.Array && v.Len == 0 {
			v.Len = len(v.Init)
		}
	}
	return v
}

func (p *parser) initial(v *Var) {
	pos := p.peek().pos
	if p.accept("{") {
		for !p.accept("}") {
			p.initial(v)
			if !p.is("}") {
				p.want(",")
			}
		}
		return
	}
	o := p.constant(v.Type)
	if v.Type.IsFloat() != (o.Kind != KindInt) {
		p.fail(pos, "an initial value of another type than .%v", v.Type)
	}
	if n := v.Type.Bits(); n < 64 && !v.Type.IsFloat() {
		if o.Bits &= 1<<n - 1; v.Type.IsSigned() {
			o.Bits = uint64(int64(o.Bits<<(64-n)) >> (64 - n))
		}
	}
	v.Init = append(v.Init, o.Bits)
}

// constant reads a number as t takes it.
func (p *parser) constant(t Type) Operand {
	minus, invert := false, false
	for {
		if p.accept("-") {
			minus = !minus
		} else if p.accept("~") {
			invert = true
		} else if !p.accept("+") {
			break
		}
	}
	x := p.next()
	o := Operand{Bits: x.bits}
	switch x.kind {
	case tokInt:
		o.Kind = KindInt
		if minus {
			o.Bits = -o.Bits
		}
		if invert {
			o.Bits = ^o.Bits
		}
		return o
	case tokF32:
		o.Kind = KindF32
		if minus {
			o.Bits ^= 1 << 31
		}
	case tokF64:
		o.Kind = KindF64
		if minus {
			o.Bits ^= 1 << 63
		}
		if t == F32 { // a double constant in a place for a float
			o.Kind, o.Bits = KindF32, uint64(math.Float32bits(float32(math.Float64frombits(o.Bits))))
		}
	default:
		if x.kind == tokIdent && x.text == "WARP_SZ" {
			return Int(32)
		}
		p.fail(x.pos, "found %v, want a constant", x)
	}
	if invert {
		p.fail(x.pos, "~ of a float")
	}
	return o
}

func (p *parser) paramList() []Var {
	var vs []Var
	p.want("(")
	for !p.accept(")") {
		if t := p.peek(); t.kind == tokDot && t.text == "reg" {
			p.fail(t.pos, "parameters in registers are not supported: declare them .param")
		}
		vs = append(vs, p.variable())
		if !p.is(")") {
			p.want(",")
		}
	}
	return vs
}

func (p *parser) function(l Linkage, entry bool) {
	f := &Func{Linkage: l, Entry: entry}
	if !entry && p.is("(") {
		f.Results = p.paramList()
	}
	f.Name = p.ident("the name of a function").text
	if p.is("(") {
		f.Params = p.paramList()
	}
	for p.peek().kind == tokDot {
		t := p.next()
		if _, ok := bounds[t.text]; !ok {
			p.fail(t.pos, ".%s is not a directive that we know", t.text)
		}
		b := Bound{Name: t.text}
		for p.peek().kind == tokInt {
			b.Values = append(b.Values, p.number("a number"))
			p.accept(",")
		}
		f.Bounds = append(f.Bounds, b)
	}
	p.globals[f.Name] = KindFunc
	p.m.Funcs = append(p.m.Funcs, f)
	if p.accept(";") {
		f.Proto = true
		return
	}
	p.f, p.loc = f, Loc{}
	p.taken = map[string]bool{}
	p.scopes = []map[string]name{{}}
	for _, vs := range [][]Var{f.Results, f.Params} {
		for _, v := range vs {
			p.declare(v.Name, name{kind: KindSym}, Pos{})
		}
	}
	p.want("{")
	p.block()
	p.f = nil
}

// bounds are the performance directives and how many numbers each may have.
var bounds = map[string]int{"maxntid": 3, "reqntid": 3, "maxnreg": 1, "minnctapersm": 1, "maxnctapersm": 1, "noreturn": 0}

// declare enters an identifier in the innermost scope and returns the name
// that it has in the flattened function.
func (p *parser) declare(id string, n name, pos Pos) string {
	scope := p.scopes[len(p.scopes)-1]
	if _, ok := scope[id]; ok && n.kind != KindLabel {
		p.fail(pos, "%s is declared twice", id)
	}
	text := id
	for k := 1; p.taken[text]; k++ {
		text = fmt.Sprintf("%s_%d", id, k)
	}
	p.taken[text] = true
	n.text = text
	scope[id] = n
	return text
}

func (p *parser) lookup(id string) (name, bool) {
	for i := len(p.scopes) - 1; i >= 0; i-- {
		if n, ok := p.scopes[i][id]; ok {
			return n, true
		}
	}
	return name{}, false
}

// block reads statements up to the closing brace. Labels are visible in the
// whole block, so they are declared first.
func (p *parser) block() {
	depth := 0
scan:
	for i := p.i; ; i++ {
		t := p.toks[i]
		switch {
		case t.kind == tokEOF:
			break scan
		case t.kind != tokPunct:
		case t.text == "{":
			depth++
		case t.text == "}":
			if depth == 0 {
				break scan
			}
			depth--
		case t.text == ":" && depth == 0 && p.toks[i-1].kind == tokIdent:
			l := p.toks[i-1]
			if _, ok := p.scopes[len(p.scopes)-1][l.text]; ok {
				p.fail(l.pos, "%s is declared twice", l.text)
			}
			p.declare(l.text, name{kind: KindLabel}, l.pos)
		}
	}
	for !p.accept("}") {
		p.statement()
	}
}

func (p *parser) statement() {
	t := p.peek()
	switch {
	case t.kind == tokEOF:
		p.fail(t.pos, "%s does not end: } is missing", p.f.Name)
	case p.accept("{"):
		p.scopes = append(p.scopes, map[string]name{})
		p.block()
		p.scopes = p.scopes[:len(p.scopes)-1]
	case t.kind == tokDot:
		p.next()
		switch t.text {
		case "reg":
			p.registers()
		case "loc":
			p.loc = Loc{p.number("the index of a file"), p.number("a line"), p.number("a column")}
			for !p.atStatement() { // inlining information
				p.next()
			}
		case "pragma":
			s := p.next()
			if s.kind != tokString {
				p.fail(s.pos, "found %v, want a string", s)
			}
			p.f.Pragmas = append(p.f.Pragmas, Pragma{s.text, len(p.f.Instrs)})
			p.want(";")
		default:
			p.i--
			v := p.variable()
			for {
				v.Name = p.declare(v.Name, name{kind: KindSym}, t.pos)
				p.f.Vars = append(p.f.Vars, v)
				if !p.accept(",") {
					break
				}
				v = p.declarator(v)
			}
			p.want(";")
		}
	case t.kind == tokIdent && p.toks[p.i+1].kind == tokPunct && p.toks[p.i+1].text == ":":
		p.i += 2
		n, _ := p.lookup(t.text)
		p.f.AddLabel(n.text)
	default:
		p.instr()
	}
}

// atStatement reports whether a .loc has ended: it has no semicolon.
func (p *parser) atStatement() bool {
	t := p.peek()
	if t.kind == tokEOF || t.kind == tokDot || t.kind == tokPunct && (t.text == "}" || t.text == "{" || t.text == "@") {
		return true
	}
	return t.kind == tokIdent && t.text != "function_name" && t.text != "inlined_at" && !(p.toks[p.i-1].kind == tokIdent)
}

func (p *parser) registers() {
	t := p.next()
	typ := ParseType(t.text)
	if t.kind != tokDot || typ == NoType || typ == B8 || typ == U8 || typ == S8 {
		p.fail(t.pos, "%v is not the type of a register", t)
	}
	for {
		id := p.ident("a register")
		if p.accept("<") {
			n := p.number("a count")
			if n > 1<<20 {
				p.fail(id.pos, "%d registers", n)
			}
			p.want(">")
			for k := range n {
				p.register(fmt.Sprint(id.text, k), typ, id.pos)
			}
		} else {
			p.register(id.text, typ, id.pos)
		}
		if !p.accept(",") {
			break
		}
	}
	p.want(";")
}

func (p *parser) register(id string, t Type, pos Pos) {
	r := p.f.AddReg(t, "")
	p.f.Regs[r].Name = p.declare(id, name{kind: KindReg, reg: r}, pos)
}

func (p *parser) reg() RegID {
	t := p.next()
	n, ok := p.lookup(t.text)
	if t.kind != tokIdent || !ok || n.kind != KindReg {
		p.fail(t.pos, "%v is not a register", t)
	}
	return n.reg
}

func (p *parser) instr() {
	in := Instr{Loc: p.loc, Pos: p.peek().pos}
	if p.accept("@") {
		in.Guard.On = true
		in.Guard.Not = p.accept("!")
		in.Guard.Reg = p.reg()
	}
	t := p.next()
	if t.kind != tokIdent {
		p.fail(t.pos, "found %v, want an instruction", t)
	}
	in.Opcode = t.text
	for p.peek().kind == tokDot { // modifiers after a space
		in.Opcode += "." + p.next().text
	}
	d, err := Decode(in.Opcode)
	if err != nil {
		p.fail(t.pos, "%v", err)
	}
	for !p.accept(";") {
		if len(in.Args) > 0 {
			p.want(",")
		}
		in.Args = append(in.Args, p.operand(d))
	}
	p.f.Instrs = append(p.f.Instrs, in)
}

func (p *parser) operand(d *Decoded) Operand {
	o := p.single(d)
	if p.accept("|") {
		o = Pair(o, p.single(d))
	}
	return o
}

func (p *parser) elems(d *Decoded, kind Kind, end string) Operand {
	o := Operand{Kind: kind}
	for !p.accept(end) {
		if len(o.Elems) > 0 {
			p.want(",")
		}
		o.Elems = append(o.Elems, p.single(d))
	}
	return o
}

func (p *parser) offset() int64 {
	switch {
	case p.accept("+"):
	case p.is("-"):
	default:
		return 0
	}
	pos := p.peek().pos
	c := p.constant(S64)
	if c.Kind != KindInt {
		p.fail(pos, "an offset is an integer")
	}
	return int64(c.Bits)
}

func (p *parser) single(d *Decoded) Operand {
	t := p.peek()
	switch {
	case p.accept("!"):
		return Not(p.reg())
	case p.accept("{"):
		return p.elems(d, KindVec, "}")
	case p.accept("("):
		return p.elems(d, KindList, ")")
	case p.accept("["):
		o := Operand{Kind: KindAddr, Reg: NoReg}
		if p.peek().kind == tokIdent {
			x := p.single(d)
			switch x.Kind {
			case KindReg:
				o.Reg = x.Reg
			case KindSym:
				o.Sym = x.Sym
			default:
				p.fail(t.pos, "an address is a register or a variable, and an offset")
			}
			o.Off = x.Off + p.offset()
		} else if c := p.constant(S64); c.Kind == KindInt {
			o.Off = int64(c.Bits)
		} else {
			p.fail(t.pos, "an address is an integer")
		}
		p.want("]")
		return o
	case t.kind == tokIdent && t.text != "WARP_SZ":
		p.next()
		if t.text == "_" {
			return Operand{Kind: KindSink}
		}
		if _, ok := specials[t.text]; ok {
			return Special(t.text)
		}
		n, ok := p.lookup(t.text)
		if !ok {
			n, ok = name{kind: p.globals[t.text], text: t.text}, p.globals[t.text] != NoOperand
		}
		if !ok && d.Op == "call" { // a later one in the module, which Verify looks for
			n, ok = name{kind: KindFunc, text: t.text}, true
		}
		if !ok {
			p.fail(t.pos, "%s is not declared", t.text)
		}
		switch n.kind {
		case KindReg:
			return R(n.reg)
		case KindSym:
			return Sym(n.text, p.offset())
		}
		return Operand{Kind: n.kind, Sym: n.text}
	}
	want := d.Type
	if d.Op == "slct" { // its last type is that of the selector
		want = d.Types[0]
	}
	return p.constant(want)
}
