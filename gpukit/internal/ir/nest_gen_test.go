package ir_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"gpunotes/gpukit/internal/ir"
)

// A nest is a random function of loops over arrays, in a syntax of its own: it can be printed as Go, interpreted with a
// trace of what every iteration touches (nest_trace_test.go), and shrunk. Expressions and statements are never changed
// once they are made, so that a smaller nest shares them.
type nest struct {
	seed   uint64
	arrays []*nArray // parameters
	ints   []*nVar   // parameters n, m, p, k, all int
	real   *nVar     // parameter x, float64
	body   []*nStmt
	ids    int // numbers of variables and arrays are below

	class    []int  // by array
	distinct []bool // by array
	uniform  []bool // by scalar parameter
}

// nVar is a scalar variable.
type nVar struct {
	name string
	id   int
	typ  ir.Type
	def  *nExpr // of one that is never assigned again
	loop bool   // the index of a loop
}

// nArray is an array parameter, a view of one, or a local array.
type nArray struct {
	name string
	id   int
	elem ir.Type
	rank int
	len  int     // of a local array
	base *nArray // of a view
	row  *nExpr  // of a view that is a row
	from *nExpr  // of a view that is a part; to may be nil
	to   *nExpr
}

// root is the array whose memory a lies in.
func (a *nArray) root() *nArray {
	for a.base != nil {
		a = a.base
	}
	return a
}

type eKind uint8

const (
	eConst eKind = iota
	eVar
	eBin
	eConv
	eLoad // a[args...]
	eLen  // len(a[args...])
)

type nExpr struct {
	kind eKind
	op   ir.Op
	typ  ir.Type
	val  int64 // of a constant; floats are quarters
	v    *nVar
	a    *nArray
	args []*nExpr
}

type sKind uint8

const (
	sDecl  sKind = iota // v := e
	sSet                // v = e
	sStore              // a[subs...] = e
	sIf                 // if e { then } else { els }
	sLoop
	sBreak // target
	sContinue
	sReturn
	sView   // a := base[row] or base[from:to]
	sMove   // a = a[1:]
	sLocal  // var a [len]elem
	sAtomic // atomic.AddInt32(&a[subs...], e)
	sPrint  // println(e)
)

type nStmt struct {
	kind      sKind
	v         *nVar
	a         *nArray
	subs      []*nExpr
	e         *nExpr
	then, els []*nStmt // then is the body of a loop
	loop      *nLoop
	target    int
}

type lForm uint8

const (
	lFor      lForm = iota // for v := from; v cmp to; v += step
	lRange                 // for v := range to
	lElements              // for v, val := range over
	lWhile                 // v := from; for v cmp to { ...; v += step }
)

type nLoop struct {
	id   int
	form lForm
	v    *nVar
	val  *nVar // of lElements, or nil
	over *nArray
	from *nExpr
	to   *nExpr
	cmp  ir.Op
	step int64
}

func goType(t ir.Type) string {
	if t == ir.I64 {
		return "int"
	}
	return t.String()
}

func num(x int64) *nExpr { return &nExpr{kind: eConst, typ: ir.I64, val: x} }
func use(v *nVar) *nExpr { return &nExpr{kind: eVar, typ: v.typ, v: v} }
func bin(op ir.Op, x, y *nExpr) *nExpr {
	return &nExpr{kind: eBin, op: op, typ: x.typ, args: []*nExpr{x, y}}
}
func cmp(op ir.Op, x, y *nExpr) *nExpr {
	return &nExpr{kind: eBin, op: op, typ: ir.Bool, args: []*nExpr{x, y}}
}
func conv(t ir.Type, x *nExpr) *nExpr {
	if x.typ == t {
		return x
	}
	if x.kind == eConst {
		return &nExpr{kind: eConst, typ: t, val: x.val}
	}
	return &nExpr{kind: eConv, typ: t, args: []*nExpr{x}}
}

// plus is x + c.
func plus(x *nExpr, c int64) *nExpr {
	switch {
	case c == 0:
		return x
	case x.kind == eConst:
		return num(x.val + c)
	case c < 0:
		return bin(ir.OpSub, x, num(-c))
	}
	return bin(ir.OpAdd, x, num(c))
}

var binSymbol = map[ir.Op]string{ir.OpAdd: "+", ir.OpSub: "-", ir.OpMul: "*", ir.OpDiv: "/", ir.OpRem: "%", ir.OpAnd: "&",
	ir.OpLt: "<", ir.OpLe: "<=", ir.OpGt: ">", ir.OpGe: ">=", ir.OpEq: "==", ir.OpNe: "!="}

func (e *nExpr) String() string {
	switch e.kind {
	case eConst:
		switch {
		case e.typ.IsFloat():
			return fmt.Sprintf("%s(%g)", goType(e.typ), float64(e.val)/4)
		case e.typ == ir.I64:
			return fmt.Sprint(e.val)
		}
		return fmt.Sprintf("%s(%d)", goType(e.typ), e.val)
	case eVar:
		return e.v.name
	case eConv:
		return fmt.Sprintf("%s(%v)", goType(e.typ), e.args[0])
	case eLoad:
		return e.a.name + indices(e.args)
	case eLen:
		return "len(" + e.a.name + indices(e.args) + ")"
	}
	if e.op == ir.OpMin || e.op == ir.OpMax {
		return fmt.Sprintf("%v(%v, %v)", e.op, e.args[0], e.args[1])
	}
	return fmt.Sprintf("(%v %s %v)", e.args[0], binSymbol[e.op], e.args[1])
}

// bare is e without the parentheses around it.
func bare(e *nExpr) string {
	s := e.String()
	if e.kind == eBin && s[0] == '(' {
		return s[1 : len(s)-1]
	}
	return s
}

func indices(es []*nExpr) string {
	var b strings.Builder
	for _, e := range es {
		b.WriteString("[" + bare(e) + "]")
	}
	return b.String()
}

// nPrinter writes a nest as Go.
type nPrinter struct {
	strings.Builder
	line  int
	depth int
	lines map[int]int // of loops, by number
	label map[int]bool
	value string // what return hands out
}

func (p *nPrinter) say(format string, args ...any) {
	p.WriteString(strings.Repeat("\t", p.depth))
	fmt.Fprintf(p, format, args...)
	p.WriteByte('\n')
	p.line++
}

// text is the function in Go, as a file, and the lines of its loops.
func (n *nest) text() (string, map[int]int) {
	p := &nPrinter{lines: map[int]int{}, label: map[int]bool{}}
	p.say("package p")
	p.say("")
	p.function("func f("+n.params()+")", n.body, "")
	return p.String(), p.lines
}

func (n *nest) params() string {
	var s []string
	for _, a := range n.arrays {
		s = append(s, a.name+" "+strings.Repeat("[]", a.rank)+goType(a.elem))
	}
	for _, v := range n.scalars() {
		s = append(s, v.name+" "+goType(v.typ))
	}
	return strings.Join(s, ", ")
}

// scalars are the scalar parameters.
func (n *nest) scalars() []*nVar { return append(slices.Clone(n.ints), n.real) }

// function writes a function, whose end hands out tail if that is not empty.
func (p *nPrinter) function(head string, body []*nStmt, tail string) {
	eachStmt(body, func(s *nStmt) {
		if s.kind == sBreak || s.kind == sContinue {
			p.label[s.target] = true
		}
	})
	p.say("%s {", head)
	p.depth++
	p.stmts(body)
	if tail != "" {
		p.say("return %s", tail)
	}
	p.depth--
	p.say("}")
}

func (p *nPrinter) stmts(ss []*nStmt) {
	for _, s := range ss {
		p.stmt(s)
	}
}

func (p *nPrinter) stmt(s *nStmt) {
	switch s.kind {
	case sDecl:
		p.say("%s := %s; _ = %s", s.v.name, bare(s.e), s.v.name)
	case sSet:
		p.say("%s = %s", s.v.name, bare(s.e))
	case sStore:
		p.say("%s%s = %s", s.a.name, indices(s.subs), bare(s.e))
	case sIf:
		p.say("if %s {", bare(s.e))
		p.block(s.then)
		if len(s.els) > 0 {
			p.say("} else {")
			p.block(s.els)
		}
		p.say("}")
	case sBreak:
		p.say("break L%d", s.target)
	case sContinue:
		p.say("continue L%d", s.target)
	case sReturn:
		p.say("%s", strings.TrimSpace("return "+p.value))
	case sView:
		if s.a.row != nil {
			p.say("%s := %s[%s]; _ = %s", s.a.name, s.a.base.name, bare(s.a.row), s.a.name)
			return
		}
		to := ""
		if s.a.to != nil {
			to = bare(s.a.to)
		}
		p.say("%s := %s[%s:%s]; _ = %s", s.a.name, s.a.base.name, bare(s.a.from), to, s.a.name)
	case sMove:
		p.say("%s = %s[1:]", s.a.name, s.a.name)
	case sLocal:
		p.say("var %s [%d]%s; _ = %s", s.a.name, s.a.len, goType(s.a.elem), s.a.name)
	case sAtomic:
		p.say("atomic.AddI%s(&%s%s, %s)", s.a.elem.String()[1:], s.a.name, indices(s.subs), bare(s.e))
	case sPrint:
		p.say("println(%s)", bare(s.e))
	case sLoop:
		p.loop(s)
	}
}

func (p *nPrinter) block(ss []*nStmt) {
	p.depth++
	p.stmts(ss)
	p.depth--
}

func (p *nPrinter) loop(s *nStmt) {
	l := s.loop
	i := l.v.name
	post := fmt.Sprintf("%s += %d", i, l.step)
	if l.step < 0 {
		post = fmt.Sprintf("%s -= %d", i, -l.step)
	}
	label := ""
	if l.form == lWhile {
		p.say("%s := %s", i, bare(l.from))
	}
	if p.label[l.id] {
		label = fmt.Sprintf("L%d: ", l.id)
	}
	p.lines[l.id] = p.line + 1
	switch l.form {
	case lFor:
		p.say("%sfor %s := %s; %s %s %s; %s {", label, i, bare(l.from), i, binSymbol[l.cmp], bare(l.to), post)
	case lRange:
		p.say("%sfor %s := range %s {", label, i, bare(l.to))
	case lElements:
		if l.val != nil {
			p.say("%sfor %s, %s := range %s {", label, i, l.val.name, l.over.name)
		} else {
			p.say("%sfor %s := range %s {", label, i, l.over.name)
		}
	case lWhile:
		p.say("%sfor %s %s %s {", label, i, binSymbol[l.cmp], bare(l.to))
	}
	p.depth++
	if l.val != nil {
		p.say("_ = %s", l.val.name)
	}
	if l.form != lFor {
		p.say("_ = %s", i)
	}
	p.stmts(s.then)
	if l.form == lWhile {
		p.say("%s", post)
	}
	p.depth--
	p.say("}")
}

// eachStmt calls f for all statements, outer ones first.
func eachStmt(ss []*nStmt, f func(*nStmt)) {
	for _, s := range ss {
		f(s)
		eachStmt(s.then, f)
		eachStmt(s.els, f)
	}
}

// exprs are the expressions of s itself.
func (s *nStmt) exprs() (es []*nExpr) {
	es = append(es, s.subs...)
	if s.e != nil {
		es = append(es, s.e)
	}
	if l := s.loop; l != nil {
		es = append(es, l.bounds()...)
	}
	if s.kind == sView {
		for _, e := range []*nExpr{s.a.row, s.a.from, s.a.to} {
			if e != nil {
				es = append(es, e)
			}
		}
	}
	return es
}

func (l *nLoop) bounds() (es []*nExpr) {
	for _, e := range []*nExpr{l.from, l.to} {
		if e != nil {
			es = append(es, e)
		}
	}
	return es
}

func eachExpr(e *nExpr, f func(*nExpr)) {
	f(e)
	for _, x := range e.args {
		eachExpr(x, f)
	}
}

// eachAccess calls f for every access to an element, and for every row that is taken.
func eachAccess(ss []*nStmt, f func(a *nArray, subs []*nExpr, write bool)) {
	eachStmt(ss, func(s *nStmt) {
		for _, e := range s.exprs() {
			eachExpr(e, func(x *nExpr) {
				if x.kind == eLoad {
					f(x.a, x.args, false)
				}
			})
		}
		switch {
		case s.kind == sAtomic:
			f(s.a, s.subs, false)
			f(s.a, s.subs, true)
		case s.kind == sStore:
			f(s.a, s.subs, true)
		case s.kind == sLoop && s.loop.val != nil:
			f(s.loop.over, []*nExpr{use(s.loop.v)}, false)
		}
	})
}

// nAuthor writes nests.
type nAuthor struct {
	*rand.Rand
	n      *nest
	wild   float64 // how often a choice is free, instead of one that keeps iterations apart
	depth  int     // of loops, at most
	ids    int
	loops  []*nLoop  // enclosing ones
	vars   []*nVar   // that can be read
	sums   []*nVar   // that can be assigned
	arrays []*nArray // that can be used
	rows   []*nArray // rows that stand for array and index
	locals []*nArray
	// target says which arrays the present nest writes; subs is how, by array and for as long as its indices live.
	target map[*nArray]bool
	subs   map[*nArray][]*nExpr
	budget int
}

// newNest writes the nest of a seed.
func newNest(seed uint64) *nest {
	g := &nAuthor{Rand: rand.New(rand.NewPCG(seed, 7)), n: &nest{seed: seed}, budget: 14}
	g.wild = []float64{0, 0, 0.08, 0.5}[g.IntN(4)]
	g.depth = []int{1, 1, 2, 2, 2, 3, 3}[g.IntN(7)]
	elems := []ir.Type{ir.F64, ir.F64, ir.F64, ir.F64, ir.F32, ir.I64, ir.I64, ir.I32, ir.U8, ir.I16}
	for i := range 1 + g.IntN(4) {
		a := &nArray{name: string(rune('a' + i)), id: i, rank: g.depth, elem: elems[g.IntN(len(elems))]}
		if g.IntN(3) == 0 {
			a.rank = 1 + g.IntN(3)
		}
		if i > 0 && g.IntN(2) == 0 {
			a.elem = g.n.arrays[0].elem
		}
		g.n.arrays = append(g.n.arrays, a)
	}
	if g.IntN(4) == 0 {
		g.n.arrays = append(g.n.arrays, &nArray{name: "idx", id: len(g.n.arrays), rank: 1, elem: ir.I64})
	}
	g.ids = len(g.n.arrays)
	for _, name := range []string{"n", "m", "p", "k"} {
		g.n.ints = append(g.n.ints, &nVar{name: name, id: g.id(), typ: ir.I64})
	}
	g.n.real = &nVar{name: "x", id: g.id(), typ: ir.F64}
	g.vars = g.n.scalars()
	g.arrays = slices.Clone(g.n.arrays)
	g.facts()
	g.n.body = g.function()
	g.n.ids = g.ids
	return g.n
}

func (g *nAuthor) id() int { g.ids++; return g.ids - 1 }

func (g *nAuthor) chance(p float64) bool { return g.Float64() < p }

func (g *nAuthor) facts() {
	n := g.n
	for i := range n.arrays {
		n.class = append(n.class, i)
		n.distinct = append(n.distinct, !g.chance(0.03))
	}
	if g.chance(0.3) {
		for i, a := range n.arrays {
			for j, b := range n.arrays[:i] {
				if a.elem == b.elem && g.IntN(2) == 0 {
					n.class[i] = n.class[j]
					break
				}
			}
		}
	}
	some := g.chance(0.08)
	for range n.scalars() {
		n.uniform = append(n.uniform, !(some && g.IntN(2) == 0))
	}
}

func (g *nAuthor) function() (out []*nStmt) {
	if g.chance(0.15) { // parts of arrays
		k := g.IntN(len(g.arrays))
		a := g.arrays[k]
		s := &nArray{name: "part", id: g.id(), elem: a.elem, rank: a.rank, base: a, from: num(int64(g.IntN(3)))}
		switch g.IntN(4) {
		case 0:
			s.to = plus(&nExpr{kind: eLen, typ: ir.I64, a: a}, -int64(g.IntN(2)))
		case 1:
			s.to = plus(use(g.n.ints[0]), int64(3))
		case 2:
			s.from = use(g.n.ints[3])
		}
		out = append(out, &nStmt{kind: sView, a: s})
		if g.chance(g.wild) || g.IntN(4) == 0 {
			g.arrays = append(g.arrays, s)
		} else {
			g.arrays[k] = s
		}
	}
	if g.chance(0.12) { // a uniform value
		v := &nVar{name: "h", id: g.id(), typ: ir.I64}
		v.def = []*nExpr{bin(ir.OpDiv, use(g.n.ints[0]), num(2)), plus(use(g.n.ints[1]), 1), bin(ir.OpMin, use(g.n.ints[0]), use(g.n.ints[1]))}[g.IntN(3)]
		out = append(out, &nStmt{kind: sDecl, v: v, e: v.def})
		g.vars = append(g.vars, v)
	}
	if g.chance(0.05) {
		out = append(out, &nStmt{kind: sIf, e: g.cond(), then: []*nStmt{{kind: sReturn}}})
	}
	if g.chance(0.08 + float64(g.wild*0.8)) {
		v := &nVar{name: "s", id: g.id(), typ: g.arrays[0].elem}
		out = append(out, &nStmt{kind: sDecl, v: v, e: g.constant(v.typ)})
		g.vars, g.sums = append(g.vars, v), append(g.sums, v)
	}
	if g.chance(g.wild / 3) {
		a := g.local()
		out = append(out, &nStmt{kind: sLocal, a: a})
	}
	for i := range 1 + g.IntN(5)/3 + g.IntN(6)/5 {
		g.target, g.subs = map[*nArray]bool{}, map[*nArray][]*nExpr{}
		for _, a := range g.arrays {
			g.target[a] = a.name != "idx" && g.IntN(2) == 0
		}
		if best := g.arrays[g.IntN(len(g.arrays))]; best.name != "idx" || len(g.arrays) == 1 {
			g.target[best] = true
		}
		loop := g.loop()
		switch {
		case g.IntN(14) == 0:
			out = append(out, &nStmt{kind: sIf, e: g.cond(), then: loop})
		case g.IntN(12) == 0 && i > 0:
			out = append(out, append(g.stores(1), loop...)...)
		default:
			out = append(out, loop...)
		}
	}
	if len(g.sums) > 0 && g.IntN(3) == 0 { // what a loop left is used
		a := g.arrays[g.IntN(len(g.arrays))]
		out = append(out, &nStmt{kind: sStore, a: a, subs: g.constSubs(a), e: conv(a.elem, use(g.sums[0]))})
	}
	return out
}

func (g *nAuthor) constSubs(a *nArray) (subs []*nExpr) {
	for range a.rank {
		subs = append(subs, num(int64(g.IntN(2))))
	}
	return subs
}

func (g *nAuthor) local() *nArray {
	a := &nArray{name: fmt.Sprint("t", g.id()), elem: g.arrays[g.IntN(len(g.arrays))].elem, rank: 1, len: 4 << g.IntN(2)}
	a.id = g.id()
	g.locals = append(g.locals, a)
	return a
}

// size is the symbol for the length of loops of this depth.
func (g *nAuthor) size() *nExpr {
	d := len(g.loops)
	if g.IntN(10) == 0 {
		d = g.IntN(3)
	}
	if g.IntN(12) == 0 {
		for _, v := range g.vars {
			if v.name == "h" {
				return use(v)
			}
		}
	}
	return use(g.n.ints[min(d, 2)])
}

var indexNames = []string{"i", "j", "l", "q"}

// loop writes a loop, with what belongs before it.
func (g *nAuthor) loop() []*nStmt {
	l := &nLoop{id: g.id(), cmp: ir.OpLt, step: 1}
	l.v = &nVar{name: indexNames[len(g.loops)], id: g.id(), typ: ir.I64, loop: true}
	n := g.size()
	l.from, l.to = num(0), n
	switch k := g.IntN(40); {
	case k < 5:
		l.form, l.from = lRange, nil
	case k < 9: // over an array
		for _, a := range g.arrays {
			if a.rank == 1 && g.IntN(2) == 0 {
				l.form, l.over, l.from, l.to = lElements, a, nil, nil
				if !g.target[a] && g.IntN(2) == 0 {
					l.val = &nVar{name: "v" + l.v.name, id: g.id(), typ: a.elem}
				}
				break
			}
		}
	case k < 11:
		a := g.arrays[g.IntN(len(g.arrays))]
		l.to = &nExpr{kind: eLen, typ: ir.I64, a: a}
	case k < 15: // inside
		l.from = num(1)
		l.to = plus(n, -int64(g.IntN(2)))
	case k < 18:
		l.step = int64(2 + g.IntN(2))
	case k < 20: // down
		l.from, l.to, l.cmp, l.step = plus(n, -1), num(0), ir.OpGe, -int64(1+g.IntN(3)/2)
	case k < 23: // a known number
		l.to = num(int64(1 + g.IntN(8)))
	case k < 25 && len(g.loops) > 0 || k < 28 && g.chance(g.wild):
		l.cmp, l.to = ir.OpLe, plus(n, -1)
	case k < 32 && len(g.loops) > 0: // a triangle
		o := g.index(g.loops[g.IntN(len(g.loops))])
		if g.IntN(2) == 0 {
			l.to = plus(o, int64(g.IntN(3)))
		} else {
			l.from = plus(o, int64(g.IntN(2)))
		}
	case k == 32:
		l.form, l.v.name = lWhile, fmt.Sprint("w", l.id)
	case k == 33: // never
		l.from = n
	case k == 34 && g.chance(2*g.wild): // as many as the data say
		for _, a := range g.arrays {
			if a.elem == ir.I64 && !g.target[a] {
				l.to = bin(ir.OpAnd, g.load(a), num(7))
			}
		}
	case k == 35 && g.IntN(2) == 0: // a narrow index
		l.v.typ = ir.I32
		l.from, l.to = conv(ir.I32, num(0)), conv(ir.I32, n)
	}
	body := g.inside(l, g.body)
	return []*nStmt{{kind: sLoop, loop: l, then: body}}
}

// inside writes the body of l.
func (g *nAuthor) inside(l *nLoop, write func() []*nStmt) []*nStmt {
	vars, sums, arrays, rows, locals := len(g.vars), len(g.sums), len(g.arrays), len(g.rows), len(g.locals)
	subs := map[*nArray][]*nExpr{}
	for a, s := range g.subs {
		subs[a] = s
	}
	g.loops = append(g.loops, l)
	g.vars = append(g.vars, l.v)
	if l.val != nil {
		g.vars = append(g.vars, l.val)
	}
	body := write()
	g.loops = g.loops[:len(g.loops)-1]
	g.vars, g.sums, g.arrays, g.rows, g.locals = g.vars[:vars], g.sums[:sums], g.arrays[:arrays], g.rows[:rows], g.locals[:locals]
	for a := range g.subs {
		if g.subs[a] = subs[a]; subs[a] == nil {
			g.subs[a] = []*nExpr{} // used somewhere inside: nowhere else
		}
	}
	return body
}

// index is the number of the iteration as an int.
func (g *nAuthor) index(l *nLoop) *nExpr { return conv(ir.I64, use(l.v)) }

func effects(ss []*nStmt) (yes bool) {
	eachStmt(ss, func(s *nStmt) { yes = yes || s.kind == sStore || s.kind == sAtomic || s.kind == sSet && !s.v.loop })
	return yes
}

func (g *nAuthor) body() (out []*nStmt) {
	if g.IntN(5) == 0 { // a row
		inner := g.loops[len(g.loops)-1]
		for _, a := range g.arrays {
			if a.rank > 1 && a.row == nil && g.IntN(2) == 0 {
				r := &nArray{name: fmt.Sprint("r", g.id()), elem: a.elem, rank: a.rank - 1, base: a, row: g.index(inner)}
				r.id = g.id()
				g.rows = append(g.rows, r)
				out = append(out, &nStmt{kind: sView, a: r})
				break
			}
		}
	}
	if len(g.loops) < g.depth && g.IntN(5) < 3 {
		if g.IntN(5) == 0 {
			out = append(out, g.temp())
		}
		return append(out, g.loop()...)
	}
	for range 1 + g.IntN(3) {
		if g.budget--; g.budget < 0 {
			break
		}
		out = append(out, g.statement()...)
	}
	if !effects(out) {
		out = append(out, g.stores(1)...)
	}
	return out
}

func (g *nAuthor) statement() []*nStmt {
	if len(g.sums) > 0 && g.chance(0.1+g.wild/2) {
		return g.update(g.sums[g.IntN(len(g.sums))])
	}
	free := g.chance(g.wild)
	if free {
		switch g.IntN(7) {
		case 4: // all iterations write to one element
			a := g.arrays[g.IntN(len(g.arrays))]
			return []*nStmt{{kind: sStore, a: a, subs: g.constSubs(a), e: conv(a.elem, g.index(g.loops[0]))}}
		case 0, 1:
			return []*nStmt{g.exit()}
		case 2:
			for _, a := range g.arrays {
				if a.from != nil && g.IntN(2) == 0 {
					return []*nStmt{{kind: sMove, a: a}}
				}
			}
		case 3:
			if l := g.loops[len(g.loops)-1]; l.form == lFor && l.step > 0 && l.v.typ == ir.I64 && g.IntN(3) == 0 {
				return []*nStmt{{kind: sIf, e: g.cond(), then: []*nStmt{{kind: sSet, v: l.v, e: plus(use(l.v), 1)}}}}
			}
		}
	}
	switch g.IntN(200) {
	case 0:
		return []*nStmt{{kind: sPrint, e: g.index(g.loops[g.IntN(len(g.loops))])}}
	case 1, 2, 3, 4, 5, 6, 7, 8, 9, 10:
		for _, a := range g.arrays { // of type int they need int64
			if a.elem == ir.I32 && g.target[a] && (len(g.subs[a]) > 0 || g.subs[a] == nil) {
				b, s := g.viaRow(a, g.ownSubs(a))
				return []*nStmt{{kind: sAtomic, a: b, subs: s, e: g.value(a.elem, 1)}}
			}
		}
	}
	switch k := g.IntN(20); {
	case k < 3 && len(g.loops) < g.depth:
		return g.loop()
	case k < 5 && len(g.loops) < len(indexNames):
		return g.reduce()
	case k < 8:
		return []*nStmt{g.temp()}
	case k < 11:
		s := &nStmt{kind: sIf, e: g.cond(), then: g.stores(1)}
		if g.IntN(3) == 0 {
			s.els = g.stores(1)
		}
		return []*nStmt{s}
	case k == 11 && g.loops[len(g.loops)-1].form != lWhile:
		return []*nStmt{{kind: sIf, e: g.cond(), then: []*nStmt{{kind: sContinue, target: g.loops[len(g.loops)-1].id}}}}
	case k == 12:
		return g.scratch()
	}
	return g.stores(1 + g.IntN(3)/2)
}

// exit leaves a loop early, or the function.
func (g *nAuthor) exit() *nStmt {
	out := &nStmt{kind: sReturn}
	if g.IntN(4) > 0 {
		out = &nStmt{kind: sBreak, target: g.loops[g.IntN(len(g.loops))].id}
		if g.IntN(4) == 0 {
			if l := g.loops[g.IntN(len(g.loops))]; l.form != lWhile {
				out.kind, out.target = sContinue, l.id
			}
		}
	}
	return &nStmt{kind: sIf, e: g.cond(), then: []*nStmt{out}}
}

// update assigns to a variable that lives outside the loop.
func (g *nAuthor) update(v *nVar) []*nStmt {
	s := &nStmt{kind: sSet, v: v}
	switch g.IntN(5) {
	case 0, 1:
		s.e = bin(ir.OpAdd, use(v), g.value(v.typ, 1))
	case 2:
		s.e = bin(ir.OpSub, g.value(v.typ, 1), use(v))
	case 3:
		s.e = g.value(v.typ, 1)
	case 4:
		s.e = g.value(v.typ, 1)
		return []*nStmt{{kind: sIf, e: g.cond(), then: []*nStmt{s}}}
	}
	if g.IntN(4) > 0 { // it is used at once
		out := g.stores(1)
		x := out[0]
		x.e = bin(ir.OpAdd, conv(x.e.typ, use(v)), x.e)
		if g.IntN(2) == 0 {
			return []*nStmt{x, s}
		}
		return []*nStmt{s, x}
	}
	return []*nStmt{s}
}

// reduce sums in a loop inside and stores the sum.
func (g *nAuthor) reduce() []*nStmt {
	a := g.arrays[g.IntN(len(g.arrays))]
	v := &nVar{name: fmt.Sprint("s", g.id()), id: g.id(), typ: a.elem}
	out := []*nStmt{{kind: sDecl, v: v, e: g.constant(v.typ)}}
	l := &nLoop{id: g.id(), cmp: ir.OpLt, step: 1, from: num(0), to: g.size()}
	l.v = &nVar{name: indexNames[len(g.loops)], id: g.id(), typ: ir.I64, loop: true}
	body := g.inside(l, func() []*nStmt { return []*nStmt{{kind: sSet, v: v, e: bin(ir.OpAdd, use(v), g.value(v.typ, 1))}} })
	out = append(out, &nStmt{kind: sLoop, loop: l, then: body})
	g.vars = append(g.vars, v)
	return append(out, g.stores(1)...)
}

// scratch works in an array of the iteration's own.
func (g *nAuthor) scratch() []*nStmt {
	if len(g.loops) == len(indexNames) {
		return g.stores(1)
	}
	a := g.local()
	out := []*nStmt{{kind: sLocal, a: a}}
	l := &nLoop{id: g.id(), cmp: ir.OpLt, step: 1, from: num(0), to: num(int64(min(3, a.len)))}
	l.v = &nVar{name: indexNames[len(g.loops)], id: g.id(), typ: ir.I64, loop: true}
	body := g.inside(l, func() []*nStmt {
		return []*nStmt{{kind: sStore, a: a, subs: []*nExpr{use(l.v)}, e: g.value(a.elem, 1)}}
	})
	out = append(out, &nStmt{kind: sLoop, loop: l, then: body})
	return append(out, g.stores(1)...)
}

// temp declares a variable of the iteration's own.
func (g *nAuthor) temp() *nStmt {
	t := g.arrays[g.IntN(len(g.arrays))].elem
	v := &nVar{name: fmt.Sprint("t", g.id()), id: g.id(), typ: t}
	if len(g.loops) > 0 && g.IntN(4) == 0 {
		v.typ = ir.I64
		v.def = g.affine()
		if v.def.kind == eConst {
			v.def = g.index(g.loops[0])
		}
		defer func() { g.vars = append(g.vars, v) }()
		return &nStmt{kind: sDecl, v: v, e: v.def}
	}
	e := g.value(t, 2)
	g.vars = append(g.vars, v)
	if g.chance(g.wild / 2) {
		g.sums = append(g.sums, v)
	} else {
		v.def = e
	}
	return &nStmt{kind: sDecl, v: v, e: e}
}

// cond is a condition on data, indices or parameters.
func (g *nAuthor) cond() *nExpr {
	op := []ir.Op{ir.OpLt, ir.OpLe, ir.OpGt, ir.OpGe, ir.OpEq, ir.OpNe}[g.IntN(6)]
	if len(g.loops) > 0 && g.IntN(3) == 0 {
		return cmp(op, g.index(g.loops[g.IntN(len(g.loops))]), g.uniform())
	}
	if g.IntN(4) == 0 {
		return cmp(op, g.uniform(), num(int64(g.IntN(4))))
	}
	a := g.arrays[g.IntN(len(g.arrays))]
	x := g.leaf(a.elem)
	if x.kind == eConst {
		x = conv(a.elem, use(g.n.ints[3]))
	}
	return cmp(op, x, g.constant(a.elem))
}

// uniform is an int that is the same for all iterations.
func (g *nAuthor) uniform() *nExpr {
	switch g.IntN(4) {
	case 0:
		return &nExpr{kind: eLen, typ: ir.I64, a: g.arrays[g.IntN(len(g.arrays))]}
	case 1:
		return plus(use(g.n.ints[g.IntN(3)]), -1)
	}
	return use(g.n.ints[g.IntN(4)])
}

// stores writes to some elements.
func (g *nAuthor) stores(count int) (out []*nStmt) {
	for range count {
		if len(g.locals) > 0 && g.IntN(4) == 0 {
			t := g.locals[g.IntN(len(g.locals))]
			out = append(out, &nStmt{kind: sStore, a: t, subs: g.localSub(t), e: g.value(t.elem, 1)})
			continue
		}
		free := g.chance(g.wild)
		var a *nArray
		for range 6 {
			a = g.arrays[g.IntN(len(g.arrays))]
			if subs := g.subs[a]; free || g.target[a] && (subs == nil || len(subs) > 0) && (a.rank >= len(g.loops) || g.IntN(3) == 0) {
				break
			}
		}
		var subs []*nExpr
		if free {
			subs = g.anySubs(a)
		} else {
			subs = g.ownSubs(a)
		}
		e := g.value(a.elem, 2)
		if g.IntN(3) == 0 {
			op := []ir.Op{ir.OpAdd, ir.OpSub, ir.OpMul}[g.IntN(3)]
			e = bin(op, &nExpr{kind: eLoad, typ: a.elem, a: a, args: subs}, e)
		}
		b, s := g.viaRow(a, subs)
		out = append(out, &nStmt{kind: sStore, a: b, subs: s, e: e})
	}
	return out
}

// viaRow uses a row that stands for a[i] if there is one.
func (g *nAuthor) viaRow(a *nArray, subs []*nExpr) (*nArray, []*nExpr) {
	for _, r := range g.rows {
		if r.base == a && subs[0].String() == r.row.String() && g.IntN(4) > 0 {
			return r, subs[1:]
		}
	}
	return a, subs
}

// ownSubs are the subscripts with which the present nest uses a: different ones for different iterations, if a has
// the dimensions for it.
func (g *nAuthor) ownSubs(a *nArray) []*nExpr {
	if s := g.subs[a]; len(s) > 0 {
		return s
	}
	subs := make([]*nExpr, a.rank)
	dims := g.Perm(a.rank)
	if g.IntN(2) == 0 {
		slices.Sort(dims)
	}
	for i, d := range dims {
		switch {
		case i < len(g.loops):
			l := g.loops[i]
			if a.rank < len(g.loops) && g.IntN(3) == 0 {
				l = g.loops[len(g.loops)-1-i]
			}
			subs[d] = g.moved(l)
			if len(g.loops) > a.rank && i == a.rank-1 && g.IntN(3) == 0 { // two indices in one dimension
				subs[d] = bin(ir.OpAdd, g.index(g.loops[i]), g.index(g.loops[i+1]))
			}
		case g.IntN(3) == 0 && len(g.loops) > 0: // a diagonal
			subs[d] = g.index(g.loops[g.IntN(len(g.loops))])
		case g.IntN(2) == 0:
			subs[d] = use(g.n.ints[3])
		default:
			subs[d] = num(int64(g.IntN(2)))
		}
	}
	g.subs[a] = subs
	return subs
}

// moved is the index of l, or an expression that is different for every one.
func (g *nAuthor) moved(l *nLoop) *nExpr {
	i := g.index(l)
	switch g.IntN(14) {
	case 0, 1:
		return plus(i, int64(1+g.IntN(2)))
	case 2:
		if lo := l.from; lo != nil && lo.kind == eConst && lo.val > 0 {
			return plus(i, -1)
		}
	case 3:
		return plus(bin(ir.OpMul, num(int64(2+g.IntN(2))), i), int64(g.IntN(2)))
	case 4:
		if l.form == lFor && l.step > 0 && l.to.typ == ir.I64 {
			return bin(ir.OpSub, plus(l.to, -1), i)
		}
	case 5:
		return bin(ir.OpAdd, i, use(g.n.ints[g.IntN(4)]))
	}
	return i
}

// affine is a subscript that is affine.
func (g *nAuthor) affine() *nExpr {
	if len(g.loops) == 0 || g.IntN(10) == 0 {
		if g.IntN(3) == 0 {
			return use(g.n.ints[3])
		}
		return num(int64(g.IntN(3)))
	}
	l := g.loops[g.IntN(len(g.loops))]
	if g.IntN(6) == 0 && len(g.loops) > 1 {
		op := ir.OpAdd
		if g.IntN(4) == 0 {
			op = ir.OpSub
		}
		return bin(op, g.moved(l), g.index(g.loops[g.IntN(len(g.loops))]))
	}
	if g.IntN(12) == 0 {
		for _, v := range g.vars {
			if v.def != nil && v.typ == ir.I64 && !v.loop {
				return use(v)
			}
		}
	}
	return g.moved(l)
}

// anySub is any subscript.
func (g *nAuthor) anySub() *nExpr {
	if len(g.loops) == 0 || g.IntN(3) > 0 {
		return g.affine()
	}
	i := g.index(g.loops[g.IntN(len(g.loops))])
	j := g.index(g.loops[g.IntN(len(g.loops))])
	switch g.IntN(7) {
	case 0:
		return bin(ir.OpMul, i, j)
	case 1:
		return bin(ir.OpRem, i, num(int64(2+g.IntN(2))))
	case 2:
		return bin(ir.OpDiv, i, num(2))
	case 3:
		return bin(ir.OpAdd, bin(ir.OpMul, i, use(g.n.ints[1])), j)
	}
	for _, a := range g.arrays {
		if a.elem == ir.I64 && a.rank == 1 && g.IntN(4) > 0 {
			return &nExpr{kind: eLoad, typ: ir.I64, a: a, args: []*nExpr{g.affine()}}
		}
	}
	return plus(i, int64(g.IntN(3)))
}

func (g *nAuthor) anySubs(a *nArray) (subs []*nExpr) {
	for d := range a.rank {
		if d < len(g.loops) && g.IntN(3) == 0 {
			subs = append(subs, g.moved(g.loops[d]))
			continue
		}
		subs = append(subs, g.anySub())
	}
	return subs
}

func (g *nAuthor) localSub(t *nArray) []*nExpr {
	if g.IntN(3) > 0 {
		for _, l := range g.loops {
			if l.to != nil && l.to.kind == eConst && l.to.val <= int64(t.len) && l.from != nil && l.from.kind == eConst && l.step > 0 {
				return []*nExpr{g.index(l)}
			}
		}
	}
	if len(g.loops) > 0 && g.IntN(4) == 0 {
		return []*nExpr{bin(ir.OpAnd, g.index(g.loops[g.IntN(len(g.loops))]), num(3))}
	}
	return []*nExpr{num(int64(g.IntN(3)))}
}

// load reads an element of a.
func (g *nAuthor) load(a *nArray) *nExpr {
	var subs []*nExpr
	switch {
	case g.chance(g.wild):
		subs = g.anySubs(a)
	case g.target[a]:
		if s := g.subs[a]; s != nil && len(s) == 0 {
			return g.constant(a.elem)
		}
		subs = g.ownSubs(a)
	default:
		for range a.rank {
			subs = append(subs, g.affine())
		}
		if g.IntN(12) == 0 && len(g.loops) > 0 { // gather
			for _, b := range g.arrays {
				if b.elem == ir.I64 && b.rank == 1 && !g.target[b] {
					subs[g.IntN(len(subs))] = &nExpr{kind: eLoad, typ: ir.I64, a: b, args: []*nExpr{g.affine()}}
					break
				}
			}
		}
	}
	b, s := g.viaRow(a, subs)
	return &nExpr{kind: eLoad, typ: a.elem, a: b, args: s}
}

func (g *nAuthor) constant(t ir.Type) *nExpr {
	return &nExpr{kind: eConst, typ: t, val: int64(1 + g.IntN(6))}
}

func (g *nAuthor) leaf(t ir.Type) *nExpr {
	switch g.IntN(10) {
	case 0:
		return g.constant(t)
	case 1, 2:
		v := g.vars[g.IntN(len(g.vars))]
		if v.typ == t || v.typ.IsInt() || t.IsFloat() {
			return conv(t, use(v))
		}
	case 3:
		if len(g.locals) > 0 {
			a := g.locals[g.IntN(len(g.locals))]
			return conv(t, &nExpr{kind: eLoad, typ: a.elem, a: a, args: g.localSub(a)})
		}
	}
	a := g.arrays[g.IntN(len(g.arrays))]
	return conv(t, g.load(a))
}

// value is an expression of type t.
func (g *nAuthor) value(t ir.Type, depth int) *nExpr {
	x := g.leaf(t)
	if depth == 0 || g.IntN(3) == 0 {
		return x
	}
	if x.kind == eConst {
		x = conv(t, use(g.n.ints[0]))
	}
	ops := []ir.Op{ir.OpAdd, ir.OpSub, ir.OpMul, ir.OpAdd}
	if t.IsInt() && g.IntN(6) == 0 {
		ops = []ir.Op{ir.OpDiv, ir.OpRem, ir.OpAnd}
	}
	return bin(ops[g.IntN(len(ops))], x, g.value(t, depth-1))
}
