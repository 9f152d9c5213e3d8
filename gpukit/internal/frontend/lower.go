package frontend

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
	"slices"

	"gpunotes/gpukit/internal/ir"
)

// lowered is a function in IR with what it takes beside its own parameters.
type lowered struct {
	f        *ir.Func
	params   []Param
	hidden   []hidden // in the order of their parameters
	captured map[hidden]ir.Mem
}

// hidden is what a function is given beside its parameters, through the whole
// call tree: a captured global, a coordinate of its thread, or the dynamic
// shared memory.
type hidden struct {
	global *types.Var
	name   string
	t      ir.Type // of the global or of its elements, or of the shared ones
	shared bool
	kind   ir.ParamKind // of a coordinate
	dim    int
}

func (h hidden) compare(o hidden) int {
	class := func(h hidden) int {
		switch {
		case h.global != nil:
			return 0
		case h.shared:
			return 2
		}
		return 1
	}
	return cmp.Or(cmp.Compare(class(h), class(o)), cmp.Compare(h.name, o.name), cmp.Compare(h.kind, o.kind), cmp.Compare(h.dim, o.dim), cmp.Compare(h.t, o.t))
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
	it    *item
	b     *ir.Builder
	funcs map[*item]*lowered

	layouts map[types.Type]*layout
	vars    map[types.Object]place
	mems    map[source]ir.Mem // of what slices are views of
	types   []ir.Type         // of each slot
	cur     []ir.Value        // of each slot
	globals map[types.Object]ir.Value
	hidden  map[hidden]ir.Value
	shared  map[ir.Type]ir.Mem // the dynamic shared memory
	filled  []ir.Value         // of the literal that is being lowered
	results []types.Object     // named results
	live    bool               // control can arrive here
	stack   []*construct
}

func (c *compiler) lower(it *item, funcs map[*item]*lowered) *lowered {
	fd := it.node.(*ast.FuncDecl)
	sig := it.fn.Type().(*types.Signature)
	out := &lowered{hidden: c.hiddenOf(it, funcs), captured: map[hidden]ir.Mem{}}
	l := &lowerer{c: c, it: it, funcs: funcs, live: true, stack: []*construct{{}}, layouts: map[types.Type]*layout{},
		vars: map[types.Object]place{}, mems: map[source]ir.Mem{}, globals: map[types.Object]ir.Value{},
		hidden: map[hidden]ir.Value{}, shared: map[ir.Type]ir.Mem{}}
	f := ir.NewFunc(it.name)
	out.f = f
	f.Pos = l.pos(fd.Name.Pos())
	l.b = ir.NewBuilder(f)
	l.b.Pos = f.Pos
	for i := range sig.Results().Len() {
		for _, g := range l.layout(sig.Results().At(i).Type()).groups {
			f.Results = append(f.Results, slices.Repeat([]ir.Type{g.t}, g.n)...)
		}
	}
	// All parameters come before the first instruction.
	first := make([][]ir.Value, sig.Params().Len())
	for i := range first {
		var p Param
		first[i], p = l.param(sig.Params().At(i))
		out.params = append(out.params, p)
	}
	l.hide(out, it == c.items[0])
	for i, vs := range first {
		l.declare(sig.Params().At(i), vs)
	}
	for i := range sig.Results().Len() {
		if r := sig.Results().At(i); r.Name() != "" {
			l.results = append(l.results, r)
			l.declare(r, slices.Repeat([]ir.Value{none}, l.layout(r.Type()).n))
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

// param adds the parameters that stand for p.
func (l *lowerer) param(p *types.Var) ([]ir.Value, Param) {
	f := l.b.F
	name := p.Name()
	if name == "" {
		name = "_"
	}
	y := l.layout(p.Type())
	out := Param{Name: name, Type: y.scalarType()}
	switch {
	case y.rank > 0:
		a := f.AddArray(name, y.of, y.rank)
		l.mems[source{p, 0}] = a.Mem
		out.Kind, out.Type, out.Rank, out.Mem = Array, y.of, y.rank, a.Mem
		return append(append([]ir.Value{a.Offset}, a.Shape...), a.Stride...), out
	case y.scalar():
		return []ir.Value{f.AddParam(name, out.Type)}, out
	}
	out.Kind, out.Type = Parts, ir.Invalid
	l.at(p.Pos())
	if y.n > maxValue {
		l.tooLarge(y.n)
		return slices.Repeat([]ir.Value{none}, y.n), out
	}
	var vs []ir.Value
	out.Leaves, out.Form = leaves(p.Type(), y), formOf(p.Type(), y)
	for _, leaf := range out.Leaves {
		vs = append(vs, f.AddParam(name+leafName(p.Type(), leaf.Path), leaf.Type))
	}
	return vs, out
}

// scalarType is the type of a scalar.
func (y *layout) scalarType() ir.Type {
	if !y.scalar() {
		return ir.Invalid
	}
	return y.groups[0].t
}

// leaves lists the scalars of a type in the order of its layout.
func leaves(t types.Type, y *layout) []Leaf {
	out := make([]Leaf, y.n)
	var visit func(t types.Type, y *layout, starts []int, path []int)
	visit = func(t types.Type, y *layout, starts []int, path []int) {
		switch u := t.Underlying().(type) {
		case *types.Array:
			for i := range y.len {
				at := make([]int, len(starts))
				for g := range at {
					at[g] = starts[g] + i*y.elem.groups[g].n
				}
				visit(u.Elem(), y.elem, at, append(slices.Clone(path), i))
			}
		case *types.Struct:
			for i, f := range y.fields {
				g := y.field(i)
				visit(u.Field(i).Type(), f, starts[g:g+len(f.groups)], append(slices.Clone(path), i))
			}
		default:
			out[starts[0]] = Leaf{Path: path, Type: y.groups[0].t}
		}
	}
	starts := make([]int, len(y.groups))
	for g := range starts {
		starts[g] = y.start(g)
	}
	visit(t, y, starts, nil)
	return out
}

func formOf(t types.Type, y *layout) *Form {
	f := &Form{Text: types.TypeString(t, func(*types.Package) string { return "" })}
	switch u := t.Underlying().(type) {
	case *types.Array:
		f.Elem, f.Len = formOf(u.Elem(), y.elem), y.len
	case *types.Struct:
		for i, field := range y.fields {
			f.Names = append(f.Names, u.Field(i).Name())
			f.Fields = append(f.Fields, formOf(u.Field(i).Type(), field))
		}
	default:
		f.Scalar = y.scalarType()
	}
	return f
}

// leafName writes a path as Go does.
func leafName(t types.Type, path []int) string {
	s := ""
	for _, i := range path {
		switch u := t.Underlying().(type) {
		case *types.Array:
			s, t = s+fmt.Sprintf("[%d]", i), u.Elem()
		case *types.Struct:
			s, t = s+"."+u.Field(i).Name(), u.Field(i).Type()
		}
	}
	return s
}

// hide adds the hidden parameters and memories. The dynamic shared memory is the
// kernel's own and its callees are given it.
func (l *lowerer) hide(out *lowered, kernel bool) {
	f := l.b.F
	for _, h := range out.hidden {
		switch {
		case h.global != nil:
			y := l.layout(h.global.Type())
			if y.scalar() {
				l.hidden[h] = f.AddParamOf(ir.Param{Name: h.name, Kind: ir.Captured}, h.t)
				l.globals[h.global] = l.hidden[h]
				continue
			}
			m := f.AddMem(ir.Memory{Name: h.name, Space: ir.Global, Elem: h.t})
			out.captured[h] = m
			l.vars[h.global] = place{lay: y, cells: []cell{{t: h.t, n: y.n, inMem: true, mem: m, at: none}}}
		case h.shared:
			space := ir.Global
			if kernel {
				space = ir.Shared
			}
			m := f.AddMem(ir.Memory{Name: "shared", Space: space, Elem: h.t})
			l.shared[h.t], out.captured[h] = m, m
			l.hidden[h] = f.AddParamOf(ir.Param{Name: "shared.shape0", Kind: ir.Shape, Mem: m}, ir.I64)
		default:
			l.hidden[h] = f.AddParamOf(ir.Param{Name: h.name, Kind: h.kind, Dim: h.dim}, ir.I64)
		}
	}
}

// hiddenOf lists what it and its callees are given beside their parameters.
func (c *compiler) hiddenOf(it *item, funcs map[*item]*lowered) []hidden {
	var hs []hidden
	coordinates := func(dims int, kinds ...ir.ParamKind) {
		for _, k := range kinds {
			for d := range dims {
				hs = append(hs, coordinate(k, d))
			}
		}
	}
	direct := map[*ast.CallExpr]bool{}
	ast.Inspect(it.node, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.Ident:
			if g := c.byObj[c.info.Uses[n]]; g != nil && g.global != nil {
				y, _ := layoutOf(g.global.Type())
				hs = append(hs, hidden{global: g.global, name: g.name, t: y.groups[0].t})
			}
		case *ast.SelectorExpr:
			if k, d, call := c.coordinateOf(n); call != nil {
				direct[call] = true
				hs = append(hs, coordinate(k, d))
			}
		case *ast.CallExpr:
			path, name := c.libFunc(n)
			if path != simtPath {
				break
			}
			if k, ok := placeKinds[name]; ok && !direct[n] {
				coordinates(3, k)
			}
			if t, ok := sharedType(name); ok {
				hs = append(hs, hidden{shared: true, t: t})
			}
			switch name {
			case "Grid1", "Grid2", "Grid3":
				coordinates(int(name[4]-'0'), ir.ThreadIdx, ir.BlockIdx, ir.BlockDim)
			case "LaneID":
				coordinates(3, ir.ThreadIdx)
				coordinates(2, ir.BlockDim)
			}
		}
		return true
	})
	for _, k := range c.calls[it] {
		hs = append(hs, funcs[k.callee].hidden...)
	}
	slices.SortFunc(hs, hidden.compare)
	return slices.Compact(hs)
}

func coordinate(k ir.ParamKind, dim int) hidden {
	name := map[ir.ParamKind]string{ir.ThreadIdx: "threadIdx", ir.BlockIdx: "blockIdx", ir.BlockDim: "blockDim", ir.GridDim: "gridDim"}[k]
	return hidden{name: name + "." + string("xyz"[dim]), t: ir.I64, kind: k, dim: dim}
}

// coordinateOf takes simt.ThreadIdx().X and the like apart.
func (c *compiler) coordinateOf(e *ast.SelectorExpr) (ir.ParamKind, int, *ast.CallExpr) {
	call, ok := ast.Unparen(e.X).(*ast.CallExpr)
	if !ok {
		return 0, 0, nil
	}
	path, name := c.libFunc(call)
	k, ok := placeKinds[name]
	if path != simtPath || !ok {
		return 0, 0, nil
	}
	return k, int(e.Sel.Name[0] - 'X'), call
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

// slot makes a slot without a value.
func (l *lowerer) slot(t ir.Type) slot {
	l.types = append(l.types, t)
	return slot(len(l.types) - 1)
}

// temporary makes a variable of the lowerer's own.
func (l *lowerer) temporary(v ir.Value) slot {
	s := l.slot(l.b.F.Type(v))
	l.set(s, v)
	return s
}

func (l *lowerer) set(s slot, v ir.Value) {
	for int(s) >= len(l.cur) {
		l.cur = append(l.cur, -1)
	}
	l.cur[s] = v
}

func (l *lowerer) present(ss []slot) []ir.Value {
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
		for _, c := range l.staticPart(e).cells {
			ss = append(ss, c.slots...)
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
				if n.Tok == token.ASSIGN {
					add(n.Key)
					add(n.Value)
				}
			case ast.Expr:
				return false
			}
			return true
		})
	}
	slices.Sort(ss)
	return slices.Compact(ss)
}

// staticPart gives the part of a variable that e is, without its place in a memory;
// nothing if e is no part of a variable declared so far.
func (l *lowerer) staticPart(e ast.Expr) place {
	switch e := ast.Unparen(e).(type) {
	case *ast.Ident:
		return l.vars[l.c.info.Uses[e]]
	case *ast.SelectorExpr:
		p := l.staticPart(e.X)
		if sel := l.c.info.Selections[e]; sel != nil && p.lay != nil {
			for _, i := range sel.Index() {
				p = p.field(i)
			}
			return p
		}
	case *ast.IndexExpr:
		p := l.staticPart(e.X)
		k := l.c.info.Types[e.Index].Value
		if p.lay == nil || p.lay.elem == nil {
			return place{}
		}
		for _, c := range p.cells {
			if c.inMem {
				return place{}
			}
		}
		if k == nil {
			return p
		}
		i, _ := constant.Int64Val(constant.ToInt(k))
		return l.elem(p, none, int(i))
	}
	return place{}
}

func (l *lowerer) push(c *construct) { l.stack = append(l.stack, c) }

// leave ends the region by a break out of c.
func (l *lowerer) leave(c *construct) {
	level := 0
	for l.stack[len(l.stack)-1-level] != c {
		level++
	}
	c.reached = true
	l.b.Break(level, l.present(c.results)...)
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
				l.b.Yield(l.present(c.results)...)
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
		op := ir.OpAdd
		if s.Tok == token.DEC {
			op = ir.OpSub
		}
		l.update(s.X, s.TokPos, func(x ir.Value) ir.Value { return l.b.Op(op, x, l.one(l.b.F.Type(x))) })
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
			l.define(s.Names, s.Values)
			continue
		}
		for _, id := range s.Names {
			l.at(id.Pos())
			obj := l.c.info.Defs[id]
			if obj == nil {
				continue
			}
			if l.it.facts.shared[obj] {
				l.variable(obj)
				continue
			}
			l.declare(obj, slices.Repeat([]ir.Value{none}, l.layout(obj.Type()).n))
		}
	}
}

// define gives names their first values; a name that := only assigns to is
// one too.
func (l *lowerer) define(ids []*ast.Ident, es []ast.Expr) {
	if len(ids) == 1 && len(es) == 1 {
		if obj := l.c.info.Defs[ids[0]]; obj != nil && l.inPlace(es[0], func(y *layout, e ast.Expr) bool { return l.defineWhole(obj, y, e) }) {
			return
		}
	}
	vs := l.list(es)
	for _, id := range ids {
		obj := l.c.objOf(id)
		n := 1 // of _
		if obj != nil {
			n = l.layout(obj.Type()).n
		} else if len(es) == len(ids) {
			n = l.layout(l.c.info.TypeOf(es[slices.Index(ids, id)])).n
		} else {
			n = l.resultSize(es[0], slices.Index(ids, id))
		}
		switch {
		case l.c.info.Defs[id] != nil:
			l.at(id.Pos())
			l.declare(obj, vs[:n])
		case id.Name != "_":
			l.store(l.vars[obj], vs[:n])
		}
		vs = vs[n:]
	}
}

// resultSize is the number of scalars of result i of a call.
func (l *lowerer) resultSize(call ast.Expr, i int) int {
	return l.layout(l.c.info.TypeOf(call).(*types.Tuple).At(i).Type()).n
}

// inPlace calls do for a value that is better moved in place: an array literal,
// or a large variable.
func (l *lowerer) inPlace(e ast.Expr, do func(y *layout, e ast.Expr) bool) bool {
	t := l.c.info.TypeOf(e)
	if t == nil {
		return false
	}
	y, ok := layoutOf(t)
	if !ok || y.elem == nil && y.n <= maxSSA || y.rank > 0 {
		return false
	}
	return do(y, ast.Unparen(e))
}

func (l *lowerer) defineWhole(obj types.Object, y *layout, e ast.Expr) bool {
	if lit, ok := e.(*ast.CompositeLit); ok {
		if l.it.facts.memory[obj] && !l.it.facts.assigned[obj] && l.isConstant(lit) && y.elem != nil {
			l.vars[obj] = l.constants(y, obj.Name(), lit)
			return true
		}
		vs := l.literal(lit)
		l.at(obj.Pos())
		l.declare(obj, vs)
		return true
	}
	if y.n <= maxSSA || l.rootOf(e) == nil {
		return false
	}
	from := l.place(e)
	l.at(obj.Pos())
	return l.copyWhole(l.variable(obj), from)
}

// rootOf is the variable that e is a part of.
func (l *lowerer) rootOf(e ast.Expr) types.Object { return l.it.facts.root(e) }

func (l *lowerer) assignWhole(lhs ast.Expr, y *layout, e ast.Expr) bool {
	if id, ok := ast.Unparen(lhs).(*ast.Ident); ok && id.Name == "_" {
		return false
	}
	if lit, ok := e.(*ast.CompositeLit); ok {
		to := l.target(lhs)
		vs := l.literal(lit)
		p := to()
		l.at(lhs.Pos())
		if id, ok := ast.Unparen(lhs).(*ast.Ident); ok && !l.it.facts.shared[l.c.info.Uses[id]] {
			l.clear(p)
			for i, c := range p.cells {
				for j, s := range c.slots {
					if vs[y.start(i)+j] == none {
						l.set(s, l.zero(c.t))
					}
				}
			}
		} else {
			if y.n > maxValue {
				l.tooLarge(y.n)
				return true
			}
			for i, z := range l.zeros(y) {
				if vs[i] == none {
					vs[i] = z
				}
			}
		}
		l.store(p, vs)
		return true
	}
	if y.n <= maxSSA || l.rootOf(e) == nil || l.rootOf(lhs) == nil {
		return false
	}
	to := l.target(lhs)
	from := l.place(e)
	return l.copyWhole(to(), from)
}

// update lowers x = f(x), the operands of x being evaluated once.
func (l *lowerer) update(x ast.Expr, pos token.Pos, f func(ir.Value) ir.Value) {
	p := l.place(x)
	v := l.load(p)[0]
	l.at(pos)
	l.store(p, []ir.Value{f(v)})
}

func (l *lowerer) assignStmt(s *ast.AssignStmt) {
	switch s.Tok {
	case token.DEFINE:
		ids := make([]*ast.Ident, len(s.Lhs))
		for i, e := range s.Lhs {
			ids[i] = e.(*ast.Ident)
		}
		l.define(ids, s.Rhs)
	case token.ASSIGN:
		if len(s.Lhs) == 1 && len(s.Rhs) == 1 && l.inPlace(s.Rhs[0], func(y *layout, e ast.Expr) bool { return l.assignWhole(s.Lhs[0], y, e) }) {
			return
		}
		to := make([]func() place, len(s.Lhs))
		for i, e := range s.Lhs {
			if id, ok := ast.Unparen(e).(*ast.Ident); !ok || id.Name != "_" {
				to[i] = l.target(e)
			}
		}
		vs := l.list(s.Rhs)
		for i, e := range s.Lhs {
			var n int
			switch {
			case to[i] != nil:
				n = l.layout(l.c.info.TypeOf(e)).n
			case len(s.Lhs) == len(s.Rhs):
				n = l.layout(l.c.info.TypeOf(s.Rhs[i])).n
			default:
				n = l.resultSize(s.Rhs[0], i)
			}
			if to[i] != nil {
				p := to[i]()
				l.at(e.Pos())
				l.store(p, vs[:n])
			}
			vs = vs[n:]
		}
	default:
		l.update(s.Lhs[0], s.TokPos, func(x ir.Value) ir.Value { return l.binary(assignOps[s.Tok], s.TokPos, x, s.Rhs[0]) })
	}
}

func (l *lowerer) returnStmt(s *ast.ReturnStmt) {
	var vs []ir.Value
	if len(s.Results) > 0 {
		vs = l.list(s.Results)
	} else {
		for _, r := range l.results {
			vs = append(vs, l.load(l.vars[r])...)
		}
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

// rangeStmt lowers a range: the counter is hidden, so that an assignment to the
// iteration variable does not change it.
func (l *lowerer) rangeStmt(s *ast.RangeStmt, label string) {
	if t := l.c.info.TypeOf(s.X); isSlice(t) || isArray(t) {
		l.rangeElements(s, label)
		return
	}
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
	l.count(s, label, outside, t, n, func(h ir.Value) {
		if key != nil {
			l.declare(key, []ir.Value{h})
		} else if s.Key != nil && s.Tok == token.ASSIGN {
			l.iteration(s.Key, []ir.Value{h})
		}
	})
}

// count makes a loop of n iterations, of type t; enter is given the number of
// each.
func (l *lowerer) count(s *ast.RangeStmt, label string, outside int, t ir.Type, n ir.Value, enter func(h ir.Value)) {
	l.at(s.For)
	h := l.temporary(l.zero(t))
	l.loop(loop{pos: s.For, label: label, outside: outside, body: s.Body,
		carried: append(l.assigned(s), h), inBody: l.assigned(s),
		cond:  func() ir.Value { return l.b.Op(ir.OpLt, l.cur[h], n) },
		enter: func() { enter(l.cur[h]) },
		post:  func() { l.set(h, l.b.Op(ir.OpAdd, l.cur[h], l.one(t))) },
	})
}

// iteration assigns to an iteration variable that was declared before.
func (l *lowerer) iteration(e ast.Expr, vs []ir.Value) {
	if id, ok := ast.Unparen(e).(*ast.Ident); ok && id.Name == "_" {
		return
	}
	p := l.place(e)
	l.at(e.Pos())
	l.store(p, vs)
}

// rangeElements lowers a range over a slice or an array, which is evaluated
// once: an array whose elements are used is copied if the body may change it.
func (l *lowerer) rangeElements(s *ast.RangeStmt, label string) {
	outside := len(l.types)
	x := ast.Unparen(s.X)
	slice := isSlice(l.c.info.TypeOf(x))
	value := s.Value
	if id, ok := value.(*ast.Ident); ok && id.Name == "_" {
		value = nil
	}
	y := l.layout(l.c.info.TypeOf(x))
	var p place
	var v []ir.Value
	l.at(x.Pos())
	n := none
	switch {
	case slice:
		p = l.place(x)
		v = l.load(p)
		n = v[1]
	case value != nil:
		p = l.place(x)
		l.at(x.Pos())
		if obj := l.rootOf(x); obj != nil && l.changes(s, obj) {
			q := l.newPlace(y, "range", ir.Local, true)
			if !l.copyWhole(q, p) {
				l.store(q, l.load(p))
			}
			p = q
		}
		p = l.inMemory(p)
	case !isCall(x):
	default:
		l.values(x)
	}
	if n == none {
		n = l.b.Const(ir.I64, ir.Bits(y.len))
	}
	l.count(s, label, outside, ir.I64, n, func(h ir.Value) {
		give := func(e ast.Expr, vs func() []ir.Value) {
			id, ok := e.(*ast.Ident)
			switch {
			case e == nil || ok && id.Name == "_":
			case s.Tok == token.ASSIGN:
				l.iteration(e, vs())
			default:
				l.at(e.Pos())
				l.declare(l.c.info.Defs[id], vs())
			}
		}
		give(s.Key, func() []ir.Value { return []ir.Value{h} })
		give(value, func() []ir.Value {
			if slice {
				return l.load(l.part(p, v, h))
			}
			return l.load(l.elem(p, h, 0))
		})
	})
}

// changes reports whether statements may change an array: by assignment, or
// through a slice of it, or, if threads share it, by another thread.
func (l *lowerer) changes(body ast.Node, obj types.Object) bool {
	f := l.it.facts
	if f.sliced[obj] {
		return true
	}
	found := false
	ast.Inspect(body, func(n ast.Node) bool {
		check := func(e ast.Expr) { found = found || e != nil && f.root(e) == obj }
		switch n := n.(type) {
		case *ast.AssignStmt:
			for _, e := range n.Lhs {
				check(e)
			}
		case *ast.IncDecStmt:
			check(n.X)
		case *ast.RangeStmt:
			check(n.Key)
			check(n.Value)
		case *ast.CallExpr:
			if path, _ := l.c.libFunc(n); f.shared[obj] && !l.c.info.Types[n.Fun].IsType() && path != "math" && path != bitsPath {
				found = true
			}
		}
		return true
	})
	return found
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
	first := l.present(lp.carried)
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
			l.b.Yield(l.present(lp.carried)...)
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
	sw := &switcher{l: l, s: s}
	if s.Tag != nil {
		sw.tag = l.values(s.Tag)
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
	tag       []ir.Value // nil without a tag
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
			if sw.tag == nil {
				return l.expr(e)
			}
			v := l.values(e)
			l.at(e.Pos())
			return l.equal(l.layout(l.c.info.TypeOf(sw.s.Tag)), sw.tag, v)
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
		fell := l.temporary(l.zero(ir.Bool))
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
