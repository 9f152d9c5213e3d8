package frontend

import (
	"fmt"
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
	"slices"

	"gpunotes/gpukit/internal/ir"
)

// lowered is a function in IR with the globals it takes as extra parameters,
// sorted by name.
type lowered struct {
	f        *ir.Func
	captured []string
}

// slot is the number of a variable in a lowerer.
type slot int

// construct is an enclosing if or loop; the function itself is the outermost.
type construct struct {
	results   []slot // the variables that leave it with new values
	label     string
	breaks    bool // break leaves it
	continues bool // continue leaves it: it encloses a loop's body
	reached   bool // some path leaves it to what follows
}

// lowerer makes the IR of one function. Variables are in SSA form: cur has the
// present value of each, a construct returns those that are assigned inside,
// a loop carries them.
type lowerer struct {
	c     *compiler
	b     *ir.Builder
	funcs map[*item]*lowered

	slots   map[types.Object]slot
	types   []ir.Type  // of each slot
	cur     []ir.Value // of each slot
	globals map[types.Object]ir.Value
	results []slot // of named results
	live    bool   // control can arrive here
	stack   []*construct
}

func (c *compiler) lower(it *item, funcs map[*item]*lowered) *lowered {
	fd := it.node.(*ast.FuncDecl)
	sig := it.fn.Type().(*types.Signature)
	out := &lowered{captured: c.globalsOf(it, funcs)}
	l := &lowerer{c: c, funcs: funcs, live: true, stack: []*construct{{}},
		slots: map[types.Object]slot{}, globals: map[types.Object]ir.Value{}}
	f := ir.NewFunc(it.name)
	out.f = f
	f.Pos = l.pos(fd.Name.Pos())
	l.b = ir.NewBuilder(f)
	l.b.Pos = f.Pos
	for i := range sig.Results().Len() {
		f.Results = append(f.Results, l.irType(sig.Results().At(i).Type()))
	}
	for i := range sig.Params().Len() {
		p := sig.Params().At(i)
		name := p.Name()
		if name == "" {
			name = "_"
		}
		l.declare(p, f.AddParam(name, l.irType(p.Type())))
	}
	for _, name := range out.captured {
		g := c.names[name].global
		l.globals[g] = f.AddParam(name, l.irType(g.Type()))
	}
	for i := range sig.Results().Len() {
		if r := sig.Results().At(i); r.Name() != "" {
			l.results = append(l.results, l.declare(r, l.zero(l.irType(r.Type()))))
		}
	}
	l.stmts(fd.Body.List)
	l.b.Pos = l.pos(fd.Body.Rbrace)
	if l.live && len(f.Results) == 0 {
		l.b.Yield()
		l.live = false
	}
	l.close()
	return out
}

// globalsOf names the globals that it and its callees use.
func (c *compiler) globalsOf(it *item, funcs map[*item]*lowered) []string {
	var names []string
	ast.Inspect(it.node, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok {
			if g := c.byObj[c.info.Uses[id]]; g != nil && g.global != nil {
				names = append(names, g.name)
			}
		}
		return true
	})
	for _, k := range c.calls[it] {
		names = append(names, funcs[k.callee].captured...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func (l *lowerer) pos(p token.Pos) ir.Pos {
	q := l.c.in.Fset.Position(p)
	return ir.Pos{File: q.Filename, Line: int32(q.Line), Col: int32(q.Column)}
}

// at sets the position of the next instructions.
func (l *lowerer) at(p token.Pos) { l.b.Pos = l.pos(p) }

func (l *lowerer) irType(t types.Type) ir.Type {
	x, ok := irType(t)
	if !ok {
		panic(fmt.Sprintf("type %v passed the law", t))
	}
	return x
}

// declare makes a variable; obj is nil for one of the lowerer's own.
func (l *lowerer) declare(obj types.Object, v ir.Value) slot {
	s := slot(len(l.types))
	l.types = append(l.types, l.b.F.Type(v))
	l.set(s, v)
	if obj != nil {
		l.slots[obj] = s
	}
	return s
}

func (l *lowerer) set(s slot, v ir.Value) {
	for int(s) >= len(l.cur) {
		l.cur = append(l.cur, -1)
	}
	l.cur[s] = v
}

func (l *lowerer) values(ss []slot) []ir.Value {
	vs := make([]ir.Value, len(ss))
	for i, s := range ss {
		vs[i] = l.cur[s]
	}
	return vs
}

func (l *lowerer) typesOf(ss []slot) []ir.Type {
	ts := make([]ir.Type, len(ss))
	for i, s := range ss {
		ts[i] = l.types[s]
	}
	return ts
}

// assigned lists the variables declared so far that are assigned in nodes.
func (l *lowerer) assigned(nodes ...ast.Node) []slot {
	var ss []slot
	add := func(e ast.Expr) {
		if e == nil {
			return
		}
		if id, ok := ast.Unparen(e).(*ast.Ident); ok {
			if s, ok := l.slots[l.c.info.Uses[id]]; ok {
				ss = append(ss, s)
			}
		}
	}
	for _, n := range nodes {
		ast.Inspect(n, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.AssignStmt:
				for _, e := range n.Lhs {
					add(e)
				}
			case *ast.IncDecStmt:
				add(n.X)
			case *ast.RangeStmt:
				add(n.Key)
			case ast.Expr:
				return false
			}
			return true
		})
	}
	slices.Sort(ss)
	return slices.Compact(ss)
}

func (l *lowerer) push(c *construct) { l.stack = append(l.stack, c) }

// leave ends the region by a break out of c.
func (l *lowerer) leave(c *construct) {
	level := 0
	for l.stack[len(l.stack)-1-level] != c {
		level++
	}
	c.reached = true
	l.b.Break(level, l.values(c.results)...)
	l.live = false
}

// close ends a region that control does not leave by its end.
func (l *lowerer) close() {
	if l.live {
		panic("control arrives at the end of a function with results")
	}
	if n := len(l.b.R.Instrs); n == 0 || !l.b.R.Instrs[n-1].Op.Row().Terminator {
		l.b.Unreachable()
	}
}

// done takes c off the stack; before and vs are the variables when it began
// and the results it gave.
func (l *lowerer) done(c *construct, before []ir.Value, vs []ir.Value) {
	l.stack = l.stack[:len(l.stack)-1]
	l.cur = before
	for i, s := range c.results {
		l.set(s, vs[i])
	}
	l.live = c.reached
}

// branch makes an if of kind c whose regions are filled by then and els; what
// is live at their end yields.
func (l *lowerer) branch(c *construct, cond ir.Value, then, els func()) {
	before := l.cur
	arm := func(fill func()) func() {
		return func() {
			l.cur, l.live = slices.Clone(before), true
			fill()
			if l.live {
				c.reached = true
				l.b.Yield(l.values(c.results)...)
				return
			}
			l.close()
		}
	}
	l.push(c)
	vs := l.b.If(cond, l.typesOf(c.results), arm(then), arm(els))
	l.done(c, before, vs)
}

// never fills a region that control does not enter.
func (l *lowerer) never() { l.live = false }

func (l *lowerer) yes() ir.Value { return l.b.Const(ir.Bool, 1) }

func (l *lowerer) zero(t ir.Type) ir.Value { return l.b.Const(t, 0) }

func (l *lowerer) stmts(list []ast.Stmt) {
	for _, s := range list {
		if !l.live {
			// Without goto, nothing can jump here.
			return
		}
		l.stmt(s, "")
	}
}

// stmt lowers s, which carries a label if one is given.
func (l *lowerer) stmt(s ast.Stmt, label string) {
	switch s := s.(type) {
	case nil, *ast.EmptyStmt:
	case *ast.BlockStmt:
		l.stmts(s.List)
	case *ast.LabeledStmt:
		l.stmt(s.Stmt, s.Label.Name)
	case *ast.DeclStmt:
		l.declStmt(s.Decl.(*ast.GenDecl))
	case *ast.ExprStmt:
		if call, ok := ast.Unparen(s.X).(*ast.CallExpr); ok {
			l.callResults(call)
		}
	case *ast.IncDecStmt:
		x := l.expr(s.X)
		l.at(s.TokPos)
		op := ir.OpAdd
		if s.Tok == token.DEC {
			op = ir.OpSub
		}
		l.assign(s.X, l.b.Op(op, x, l.one(l.b.F.Type(x))))
	case *ast.AssignStmt:
		l.assignStmt(s)
	case *ast.ReturnStmt:
		l.returnStmt(s)
	case *ast.BranchStmt:
		l.branchStmt(s)
	case *ast.IfStmt:
		l.stmt(s.Init, "")
		cond := l.expr(s.Cond)
		c := &construct{results: l.assignedIn(s.Body, s.Else)}
		l.at(s.If)
		l.branch(c, cond, func() { l.stmts(s.Body.List) }, func() { l.stmt(s.Else, "") })
	case *ast.ForStmt:
		l.forStmt(s, label)
	case *ast.RangeStmt:
		l.rangeStmt(s, label)
	case *ast.SwitchStmt:
		l.switchStmt(s, label)
	default:
		panic(fmt.Sprintf("%T passed the law", s))
	}
}

// assignedIn is assigned for statements that may be nil.
func (l *lowerer) assignedIn(list ...ast.Stmt) []slot {
	var nodes []ast.Node
	for _, s := range list {
		if s != nil {
			nodes = append(nodes, s)
		}
	}
	return l.assigned(nodes...)
}

func (l *lowerer) declStmt(d *ast.GenDecl) {
	if d.Tok != token.VAR {
		return
	}
	for _, s := range d.Specs {
		s := s.(*ast.ValueSpec)
		if len(s.Values) > 0 {
			l.define(s.Names, l.list(s.Values))
			continue
		}
		for _, id := range s.Names {
			l.at(id.Pos())
			if obj := l.c.info.Defs[id]; obj != nil {
				l.declare(obj, l.zero(l.irType(obj.Type())))
			}
		}
	}
}

// define gives names their first values; a name that := only assigns to is
// one too.
func (l *lowerer) define(ids []*ast.Ident, vs []ir.Value) {
	for i, id := range ids {
		if obj := l.c.info.Defs[id]; obj != nil {
			l.declare(obj, vs[i])
		} else {
			l.assign(id, vs[i])
		}
	}
}

func (l *lowerer) assign(e ast.Expr, v ir.Value) {
	id := ast.Unparen(e).(*ast.Ident)
	if id.Name == "_" {
		return
	}
	s, ok := l.slots[l.c.info.Uses[id]]
	if !ok {
		panic("assignment to " + id.Name + ", which is not a variable of the function")
	}
	l.set(s, v)
}

func (l *lowerer) assignStmt(s *ast.AssignStmt) {
	switch s.Tok {
	case token.DEFINE:
		vs := l.list(s.Rhs)
		ids := make([]*ast.Ident, len(s.Lhs))
		for i, e := range s.Lhs {
			ids[i] = e.(*ast.Ident)
		}
		l.define(ids, vs)
	case token.ASSIGN:
		vs := l.list(s.Rhs)
		for i, e := range s.Lhs {
			l.assign(e, vs[i])
		}
	default:
		x := l.expr(s.Lhs[0])
		l.assign(s.Lhs[0], l.binary(assignOps[s.Tok], s.TokPos, x, s.Rhs[0]))
	}
}

func (l *lowerer) returnStmt(s *ast.ReturnStmt) {
	var vs []ir.Value
	if len(s.Results) > 0 {
		vs = l.list(s.Results)
	} else {
		vs = l.values(l.results)
	}
	l.at(s.Return)
	if level := len(l.stack) - 1; level > 0 {
		l.b.Break(level, vs...)
	} else {
		l.b.Yield(vs...)
	}
	l.live = false
}

func (l *lowerer) branchStmt(s *ast.BranchStmt) {
	if s.Tok == token.FALLTHROUGH {
		// The clause that it ends sees to it.
		return
	}
	l.at(s.TokPos)
	for i := len(l.stack) - 1; i > 0; i-- {
		c := l.stack[i]
		if s.Label != nil && s.Label.Name != c.label {
			continue
		}
		if s.Tok == token.BREAK && c.breaks || s.Tok == token.CONTINUE && c.continues {
			l.leave(c)
			return
		}
	}
	panic(s.Tok.String() + " out of nothing")
}

func (l *lowerer) forStmt(s *ast.ForStmt, label string) {
	outside := len(l.types)
	l.stmt(s.Init, "")
	nodes := []ast.Node{s.Body}
	if s.Post != nil {
		nodes = append(nodes, s.Post)
	}
	lp := loop{pos: s.For, label: label, outside: outside, carried: l.assigned(nodes...), inBody: l.assigned(s.Body), body: s.Body,
		post: func() { l.stmt(s.Post, "") }}
	if s.Cond != nil {
		lp.cond = func() ir.Value { return l.expr(s.Cond) }
	}
	l.loop(lp)
}

// rangeStmt lowers a range over an integer: the counter is hidden, so that an
// assignment to the iteration variable does not change it.
func (l *lowerer) rangeStmt(s *ast.RangeStmt, label string) {
	outside := len(l.types)
	var key types.Object
	if id, ok := s.Key.(*ast.Ident); ok && s.Tok == token.DEFINE {
		key = l.c.info.Defs[id]
	}
	t := l.irType(l.c.info.TypeOf(s.X))
	if s.Key != nil && l.c.info.Types[s.X].Value != nil {
		// A constant takes the type of the variable.
		if kt := l.c.info.TypeOf(s.Key); kt != nil && kt != types.Typ[types.Invalid] {
			t = l.irType(kt)
		}
	}
	var n ir.Value
	l.at(s.X.Pos())
	if tv := l.c.info.Types[s.X]; tv.Value != nil {
		if !t.IsInt() {
			t = ir.I64
		}
		n = l.b.Const(t, constBits(t, tv.Value))
	} else {
		n = l.expr(s.X)
	}
	l.at(s.For)
	h := l.declare(nil, l.zero(t))
	l.loop(loop{pos: s.For, label: label, outside: outside, body: s.Body,
		carried: append(l.assigned(s), h), inBody: l.assigned(s),
		cond: func() ir.Value { return l.b.Op(ir.OpLt, l.cur[h], n) },
		enter: func() {
			if key != nil {
				l.declare(key, l.cur[h])
			} else if s.Key != nil && s.Tok == token.ASSIGN {
				l.assign(s.Key, l.cur[h])
			}
		},
		post: func() { l.set(h, l.b.Op(ir.OpAdd, l.cur[h], l.one(t))) },
	})
}

// loop is a loop of any form.
type loop struct {
	pos     token.Pos
	label   string
	outside int    // slots from here on are the loop's own
	carried []slot // assigned in the loop
	inBody  []slot // assigned in enter and body
	cond    func() ir.Value
	enter   func() // what the iteration begins with
	body    *ast.BlockStmt
	post    func()
}

// loop makes, for a loop with a condition,
//
//	loop (carried) {
//		if cond { enter; body } else { break out }
//		post
//	}
//
// A continue leaves the if.
func (l *lowerer) loop(lp loop) {
	c := &construct{label: lp.label, breaks: true}
	for _, s := range lp.carried {
		if int(s) < lp.outside {
			c.results = append(c.results, s)
		}
	}
	before := l.cur
	first := l.values(lp.carried)
	l.push(c)
	l.at(lp.pos)
	vs := l.b.Loop(first, l.typesOf(c.results), func(carried []ir.Value) {
		l.cur = slices.Clone(before)
		for i, s := range lp.carried {
			l.set(s, carried[i])
		}
		body := func() {
			if lp.enter != nil {
				lp.enter()
			}
			l.stmts(lp.body.List)
		}
		inner := &construct{results: lp.inBody, label: lp.label, continues: true}
		switch {
		case lp.cond != nil:
			v := lp.cond()
			l.at(lp.pos)
			l.branch(inner, v, body, func() {
				l.at(lp.pos)
				l.leave(c)
			})
		case continues(lp.body, lp.label):
			l.branch(inner, l.yes(), body, l.never)
		default:
			body()
		}
		if l.live {
			l.at(lp.pos)
			lp.post()
			l.at(lp.pos)
			l.b.Yield(l.values(lp.carried)...)
			return
		}
		l.close()
	})
	l.done(c, before, vs)
}

// continues reports whether body has a continue of its loop.
func continues(body ast.Node, label string) bool {
	found := false
	var visit func(n ast.Node, inner bool)
	visit = func(root ast.Node, inner bool) {
		ast.Inspect(root, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.BranchStmt:
				if n.Tok == token.CONTINUE && (n.Label == nil && !inner || n.Label != nil && n.Label.Name == label) {
					found = true
				}
			case *ast.ForStmt:
				if n != root {
					visit(n, true)
					return false
				}
			case *ast.RangeStmt:
				if n != root {
					visit(n, true)
					return false
				}
			}
			return true
		})
	}
	visit(body, false)
	return found
}

func (l *lowerer) switchStmt(s *ast.SwitchStmt, label string) {
	l.stmt(s.Init, "")
	sw := &switcher{l: l, s: s, tag: -1}
	if s.Tag != nil {
		sw.tag = l.expr(s.Tag)
	}
	fallsThrough := false
	for _, st := range s.Body.List {
		cc := st.(*ast.CaseClause)
		if cc.List == nil {
			sw.otherwise = cc
		} else {
			sw.cases = append(sw.cases, cc)
		}
		fallsThrough = fallsThrough || falls(cc)
	}
	c := &construct{results: l.assigned(s.Body), label: label, breaks: true}
	if fallsThrough {
		sw.byNumber(c)
		return
	}
	if len(sw.cases) == 0 {
		l.at(s.Switch)
		l.branch(c, l.yes(), func() { sw.body(sw.otherwise) }, l.never)
		return
	}
	sw.chain(0, c)
}

// falls reports whether a clause ends in fallthrough.
func falls(cc *ast.CaseClause) bool {
	for i := len(cc.Body) - 1; i >= 0; i-- {
		s := cc.Body[i]
		for {
			labeled, ok := s.(*ast.LabeledStmt)
			if !ok {
				break
			}
			s = labeled.Stmt
		}
		if _, ok := s.(*ast.EmptyStmt); ok {
			continue
		}
		b, ok := s.(*ast.BranchStmt)
		return ok && b.Tok == token.FALLTHROUGH
	}
	return false
}

// switcher lowers one switch statement.
type switcher struct {
	l         *lowerer
	s         *ast.SwitchStmt
	tag       ir.Value // -1 without a tag
	cases     []*ast.CaseClause
	otherwise *ast.CaseClause // default, or nil
}

func (sw *switcher) body(cc *ast.CaseClause) {
	if cc != nil {
		sw.l.stmts(cc.Body)
	}
}

// matches is the condition of a clause.
func (sw *switcher) matches(list []ast.Expr) ir.Value {
	l := sw.l
	test := func(e ast.Expr) func() ir.Value {
		return func() ir.Value {
			if sw.tag < 0 {
				return l.expr(e)
			}
			v := l.expr(e)
			l.at(e.Pos())
			return l.b.Op(ir.OpEq, sw.tag, v)
		}
	}
	v := test(list[0])()
	for _, e := range list[1:] {
		l.at(e.Pos())
		v = l.shortCircuit(v, true, l.harmless(e), test(e))
	}
	return v
}

// chain lowers the clauses from the i-th on to nested ifs; c is the i-th if.
func (sw *switcher) chain(i int, c *construct) {
	l := sw.l
	v := sw.matches(sw.cases[i].List)
	l.at(sw.cases[i].Case)
	l.branch(c, v, func() { sw.body(sw.cases[i]) }, func() {
		if i+1 < len(sw.cases) {
			sw.chain(i+1, &construct{results: c.results})
		} else {
			sw.body(sw.otherwise)
		}
	})
}

// byNumber lowers a switch with fallthrough: the number of the clause is found
// first, then each clause in turn runs if it is that one or if the one before
// fell through.
func (sw *switcher) byNumber(c *construct) {
	l := sw.l
	clauses := sw.s.Body.List
	number := map[*ast.CaseClause]int{}
	for i, s := range clauses {
		number[s.(*ast.CaseClause)] = i
	}
	none := len(clauses)
	if sw.otherwise != nil {
		none = number[sw.otherwise]
	}
	var find func(i int) ir.Value
	find = func(i int) ir.Value {
		if i == len(sw.cases) {
			return l.b.Const(ir.I64, ir.Bits(none))
		}
		v := sw.matches(sw.cases[i].List)
		return l.choose(v, ir.I64,
			func() ir.Value { return l.b.Const(ir.I64, ir.Bits(number[sw.cases[i]])) },
			func() ir.Value { return find(i + 1) })
	}
	k := find(0)
	l.at(sw.s.Switch)
	l.branch(c, l.yes(), func() {
		fell := l.declare(nil, l.zero(ir.Bool))
		for i, s := range clauses {
			cc := s.(*ast.CaseClause)
			l.at(cc.Case)
			v := l.b.Op(ir.OpEq, k, l.b.Const(ir.I64, ir.Bits(i)))
			if i > 0 && falls(clauses[i-1].(*ast.CaseClause)) {
				v = l.b.Op(ir.OpOr, v, l.cur[fell])
			}
			one := &construct{results: append(slices.Clone(c.results), fell)}
			l.branch(one, v, func() {
				l.stmts(cc.Body)
				switch {
				case !l.live:
				case falls(cc):
					l.set(fell, l.yes())
				default:
					l.leave(c)
				}
			}, func() {})
		}
	}, l.never)
}

// constBits packs a constant, which go/types has found representable.
func constBits(t ir.Type, v constant.Value) ir.Bits {
	switch {
	case t == ir.Bool:
		return ir.FromBool(constant.BoolVal(v))
	case t == ir.F64:
		x, _ := constant.Float64Val(constant.ToFloat(v))
		return ir.FromF64(x)
	case t == ir.F32:
		x, _ := constant.Float32Val(constant.ToFloat(v))
		return ir.FromF32(x)
	}
	v = constant.ToInt(v)
	if x, ok := constant.Int64Val(v); ok {
		return ir.Wrap(t, ir.Bits(x))
	}
	x, ok := constant.Uint64Val(v)
	if !ok {
		panic("constant " + v.String() + " does not fit " + t.String())
	}
	return ir.Wrap(t, x)
}
