package frontend

import (
	"fmt"
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"

	"gpunotes/gpukit/internal/ir"
)

var binaryOps = map[token.Token]ir.Op{
	token.ADD: ir.OpAdd, token.SUB: ir.OpSub, token.MUL: ir.OpMul, token.QUO: ir.OpDiv, token.REM: ir.OpRem,
	token.SHL: ir.OpShl, token.SHR: ir.OpShr,
	token.AND: ir.OpAnd, token.OR: ir.OpOr, token.XOR: ir.OpXor, token.AND_NOT: ir.OpAndNot,
	token.EQL: ir.OpEq, token.NEQ: ir.OpNe, token.LSS: ir.OpLt, token.LEQ: ir.OpLe, token.GTR: ir.OpGt, token.GEQ: ir.OpGe,
}

var assignOps = map[token.Token]token.Token{
	token.ADD_ASSIGN: token.ADD, token.SUB_ASSIGN: token.SUB, token.MUL_ASSIGN: token.MUL, token.QUO_ASSIGN: token.QUO,
	token.REM_ASSIGN: token.REM, token.SHL_ASSIGN: token.SHL, token.SHR_ASSIGN: token.SHR,
	token.AND_ASSIGN: token.AND, token.OR_ASSIGN: token.OR, token.XOR_ASSIGN: token.XOR, token.AND_NOT_ASSIGN: token.AND_NOT,
}

// one is the constant 1 of a number type.
func (l *lowerer) one(t ir.Type) ir.Value {
	return l.b.Const(t, constBits(t, constant.MakeInt64(1)))
}

// list lowers the right side of an assignment, the operands of a return or
// the arguments of a call: one value each, or all results of one call.
func (l *lowerer) list(es []ast.Expr) []ir.Value {
	if len(es) == 1 {
		if call, ok := ast.Unparen(es[0]).(*ast.CallExpr); ok {
			if _, ok := l.c.info.TypeOf(call).(*types.Tuple); ok {
				return l.callResults(call)
			}
		}
	}
	var vs []ir.Value
	for _, e := range es {
		vs = append(vs, l.values(e)...)
	}
	return vs
}

// values lowers an expression to the scalars of its value.
func (l *lowerer) values(e ast.Expr) []ir.Value {
	if l.layout(l.c.info.TypeOf(e)).scalar() {
		return []ir.Value{l.expr(e)}
	}
	p := l.place(e)
	l.at(e.Pos())
	return l.load(p)
}

// expr lowers an expression whose value is a scalar.
func (l *lowerer) expr(e ast.Expr) ir.Value {
	tv := l.c.info.Types[e]
	if tv.Value != nil {
		l.at(e.Pos())
		t := l.irType(tv.Type)
		return l.b.Const(t, constBits(t, tv.Value))
	}
	switch e := e.(type) {
	case *ast.ParenExpr:
		return l.expr(e.X)
	case *ast.Ident, *ast.SelectorExpr, *ast.IndexExpr:
		return l.load(l.place(e))[0]
	case *ast.UnaryExpr:
		x := l.expr(e.X)
		l.at(e.OpPos)
		switch e.Op {
		case token.SUB:
			return l.b.Op(ir.OpNeg, x)
		case token.NOT, token.XOR:
			return l.b.Op(ir.OpNot, x)
		}
		return x
	case *ast.BinaryExpr:
		if (e.Op == token.EQL || e.Op == token.NEQ) && !l.layout(l.c.info.TypeOf(e.X)).scalar() {
			x, y := l.values(e.X), l.values(e.Y)
			l.at(e.OpPos)
			v := l.equal(l.layout(l.c.info.TypeOf(e.X)), x, y)
			if e.Op == token.NEQ {
				v = l.b.Op(ir.OpNot, v)
			}
			return v
		}
		x := l.expr(e.X)
		if e.Op == token.LAND || e.Op == token.LOR {
			l.at(e.OpPos)
			return l.shortCircuit(x, e.Op == token.LOR, l.harmless(e.Y), func() ir.Value { return l.expr(e.Y) })
		}
		return l.binary(e.Op, e.OpPos, x, e.Y)
	case *ast.CallExpr:
		return l.callResults(e)[0]
	}
	panic(fmt.Sprintf("%T passed the law", e))
}

// equal compares two values scalar by scalar.
func (l *lowerer) equal(lay *layout, x, y []ir.Value) ir.Value {
	v := none
	for _, g := range lay.groups {
		for i := range g.n {
			if g.blank {
				break
			}
			w := l.b.Op(ir.OpEq, x[i], y[i])
			if v == none {
				v = w
			} else {
				v = l.b.Op(ir.OpAnd, v, w)
			}
		}
		x, y = x[g.n:], y[g.n:]
	}
	if v == none {
		return l.yes()
	}
	return v
}

// binary lowers x op y.
func (l *lowerer) binary(op token.Token, pos token.Pos, x ir.Value, y ast.Expr) ir.Value {
	var v ir.Value
	if tv := l.c.info.Types[y]; (op == token.SHL || op == token.SHR) && tv.Value != nil {
		// An unsigned count cannot be negative, whatever its type was.
		l.at(y.Pos())
		v = l.b.Const(ir.U64, constBits(ir.U64, tv.Value))
	} else {
		v = l.expr(y)
	}
	l.at(pos)
	return l.b.Op(binaryOps[op], x, v)
}

// shortCircuit lowers x || y (or is true) or x && y. A harmless y may run in
// any case.
func (l *lowerer) shortCircuit(x ir.Value, or, harmless bool, y func() ir.Value) ir.Value {
	pos := l.b.Pos
	if harmless {
		v := y()
		l.b.Pos = pos
		if or {
			return l.b.Op(ir.OpOr, x, v)
		}
		return l.b.Op(ir.OpAnd, x, v)
	}
	known := func() ir.Value { return l.b.Const(ir.Bool, ir.FromBool(or)) }
	if or {
		return l.choose(x, ir.Bool, known, y)
	}
	return l.choose(x, ir.Bool, y, known)
}

// choose makes an if with one result of type t.
func (l *lowerer) choose(cond ir.Value, t ir.Type, then, els func() ir.Value) ir.Value {
	// Expressions assign nothing and leave no construct.
	l.push(&construct{})
	v := l.b.If(cond, []ir.Type{t}, func() { l.b.Yield(then()) }, func() { l.b.Yield(els()) })
	l.stack = l.stack[:len(l.stack)-1]
	return v[0]
}

// harmless reports whether e can neither fault nor take long: then it does not
// matter whether it runs.
func (l *lowerer) harmless(e ast.Expr) bool {
	ok := true
	ast.Inspect(e, func(n ast.Node) bool {
		n2, isExpr := n.(ast.Expr)
		if isExpr && l.c.info.Types[n2].Value != nil {
			return false
		}
		switch n := n.(type) {
		case *ast.CallExpr:
			if tv := l.c.info.Types[n.Fun]; !tv.IsType() && !tv.IsBuiltin() && l.mathCall(n) == nil {
				ok = false
			}
		case *ast.IndexExpr, *ast.SliceExpr, *ast.CompositeLit:
			ok = false
		case *ast.BinaryExpr:
			t := l.c.info.TypeOf(n.Y)
			x, _ := irType(t)
			y := l.c.info.Types[n.Y].Value
			switch n.Op {
			case token.QUO, token.REM:
				if x.IsInt() && y == nil {
					ok = false
				}
			case token.SHL, token.SHR:
				if x.IsSigned() && y == nil {
					ok = false
				}
			}
		}
		return ok
	})
	return ok
}

// mathCall gives the operations of a call of package math or math/bits, or nil.
func (l *lowerer) mathCall(e *ast.CallExpr) []ir.MathFn {
	if fn := l.c.libObj(e); fn != nil {
		return libFuncs(fn.Pkg().Path())[fn.Name()]
	}
	return nil
}

// callResults lowers a call, a conversion included, to the scalars of its
// results.
func (l *lowerer) callResults(e *ast.CallExpr) []ir.Value {
	tv := l.c.info.Types[e]
	if tv.Value != nil {
		return []ir.Value{l.expr(e)}
	}
	fun := l.c.info.Types[e.Fun]
	fn := l.c.libObj(e)
	switch {
	case fun.IsBuiltin():
		return l.builtin(e)
	case fun.IsType():
		if !l.layout(fun.Type).scalar() {
			return l.values(e.Args[0])
		}
	case fn != nil && l.c.written(fn) == nil && l.mathCall(e) == nil:
		return l.thread(e, fn)
	}
	args := l.list(e.Args)
	l.at(e.Pos())
	if fun.IsType() {
		return []ir.Value{l.b.Convert(l.irType(fun.Type), args[0])}
	}
	if fns := l.mathCall(e); fns != nil {
		vs := make([]ir.Value, len(fns))
		for i, fn := range fns {
			vs[i] = l.b.Math(fn, args...)
		}
		return vs
	}
	if fn != nil {
		return l.b.Call(l.c.written(fn).Func, args...)
	}
	callee := l.funcs[l.c.byObj[l.c.info.Uses[ast.Unparen(e.Fun).(*ast.Ident)]]]
	var mems []ir.Mem
	for i, p := range callee.params {
		if p.Kind == Array {
			mems = append(mems, l.memOf(e.Args[i]))
		}
	}
	l.at(e.Pos())
	for _, h := range callee.hidden {
		if v, ok := l.hidden[h]; ok {
			args = append(args, v)
		}
		switch {
		case h.shared:
			mems = append(mems, l.shared[h.t])
		case callee.captured != nil && h.global != nil && l.vars[h.global].lay != nil:
			mems = append(mems, l.vars[h.global].cells[0].mem)
		}
	}
	return l.b.CallMems(callee.f, mems, args...)
}

// memOf is the memory that a slice expression is a view of.
func (l *lowerer) memOf(e ast.Expr) ir.Mem {
	of, src, _ := l.it.facts.viewed(e)
	if of != nil {
		return l.vars[of].mem
	}
	if fn, ok := src.obj.(*types.Func); ok {
		t, _ := sharedType(fn.Name())
		return l.shared[t]
	}
	return l.mems[src]
}

func (l *lowerer) builtin(e *ast.CallExpr) []ir.Value {
	switch name := ast.Unparen(e.Fun).(*ast.Ident).Name; name {
	case "len":
		x := e.Args[0]
		if isSlice(l.c.info.TypeOf(x)) {
			return l.values(x)[1:2]
		}
		// An array whose length is no constant: its expression has a call.
		l.values(x)
		return []ir.Value{l.b.Const(ir.I64, ir.Bits(l.layout(l.c.info.TypeOf(x)).len))}
	case "println":
		l.println(e)
		return nil
	default:
		args := l.list(e.Args)
		l.at(e.Pos())
		op := ir.OpMin
		if name == "max" {
			op = ir.OpMax
		}
		v := args[0]
		for _, a := range args[1:] {
			v = l.b.Op(op, v, a)
		}
		return []ir.Value{v}
	}
}

// println prints its operands with spaces between, as Go's does.
func (l *lowerer) println(e *ast.CallExpr) {
	text := []string{""}
	var args []ir.Value
	for i, x := range e.Args {
		if i > 0 {
			text[len(text)-1] += " "
		}
		if tv := l.c.info.Types[x]; isText(tv) {
			text[len(text)-1] += constant.StringVal(tv.Value)
			continue
		}
		args = append(args, l.expr(x))
		text = append(text, "")
	}
	l.at(e.Pos())
	l.b.Print(text, args...)
}

// coordinate is simt.ThreadIdx().X and the like.
func (l *lowerer) coordinate(e *ast.SelectorExpr) (place, bool) {
	k, d, call := l.c.coordinateOf(e)
	if call == nil {
		return place{}, false
	}
	return computed(l.layout(types.Typ[types.Int]), []ir.Value{l.hidden[coordinate(k, d)]}, 0), true
}

// thread lowers a function of sync/atomic or simt.
func (l *lowerer) thread(e *ast.CallExpr, fn *types.Func) []ir.Value {
	path, name := fn.Pkg().Path(), fn.Name()
	get := func(k ir.ParamKind, d int) ir.Value { return l.hidden[coordinate(k, d)] }
	if a, ok := atomics[path+"."+name]; ok {
		return l.atomic(e, a)
	}
	if k, ok := placeKinds[name]; ok {
		return []ir.Value{get(k, 0), get(k, 1), get(k, 2)}
	}
	if k, ok := shuffleOf(name); ok {
		args := l.list(e.Args)
		l.at(e.Pos())
		return []ir.Value{l.b.Shuffle(k, args[0], args[1])}
	}
	if k, ok := votes[name]; ok {
		v := l.expr(e.Args[0])
		l.at(e.Pos())
		return []ir.Value{l.b.Vote(k, v)}
	}
	l.at(e.Pos())
	switch name {
	case "SyncThreads":
		l.b.Barrier()
	case "SyncWarp":
		l.b.WarpBarrier()
	case "Shared":
		// The variable was made shared where it is declared.
	case "Grid1", "Grid2", "Grid3":
		var vs []ir.Value
		for d := range int(name[4] - '0') {
			vs = append(vs, l.b.Op(ir.OpAdd, l.b.Op(ir.OpMul, get(ir.BlockIdx, d), get(ir.BlockDim, d)), get(ir.ThreadIdx, d)))
		}
		return vs
	case "LaneID":
		yz := l.b.Op(ir.OpAdd, get(ir.ThreadIdx, 1), l.b.Op(ir.OpMul, get(ir.BlockDim, 1), get(ir.ThreadIdx, 2)))
		n := l.b.Op(ir.OpAdd, get(ir.ThreadIdx, 0), l.b.Op(ir.OpMul, get(ir.BlockDim, 0), yz))
		return []ir.Value{l.b.Op(ir.OpAnd, n, l.b.Const(ir.I64, ir.WarpSize-1))}
	default:
		if t, ok := sharedType(name); ok {
			return []ir.Value{l.zero(ir.I64), l.hidden[hidden{shared: true, t: t}], l.one(ir.I64)}
		}
		panic(name + " passed the law")
	}
	return nil
}

// atomic lowers an atomic operation on &x[i].
func (l *lowerer) atomic(e *ast.CallExpr, a atomicForm) []ir.Value {
	to := l.target(ast.Unparen(e.Args[0]).(*ast.UnaryExpr).X)
	args := l.list(e.Args[1:])
	c := to().cells[0]
	l.at(e.Pos())
	if len(args) == 0 { // a load
		args = append(args, l.zero(c.t))
	}
	old := l.b.Atomic(a.kind, c.mem, l.index(c, 0), args...)
	switch a.result {
	case givesAfter:
		return []ir.Value{l.b.Op(ir.OpAdd, old, args[0])}
	case givesSwapped:
		return []ir.Value{l.b.Op(ir.OpEq, old, args[0])}
	case givesNothing:
		return nil
	}
	return []ir.Value{old}
}
