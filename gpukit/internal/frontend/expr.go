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
	vs := make([]ir.Value, len(es))
	for i, e := range es {
		vs[i] = l.expr(e)
	}
	return vs
}

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
	case *ast.Ident:
		obj := l.c.info.Uses[e]
		if s, ok := l.slots[obj]; ok {
			return l.cur[s]
		}
		if v, ok := l.globals[obj]; ok {
			return v
		}
		panic(e.Name + " is not a variable of the function")
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

// mathCall gives the operations of a call of package math, or nil.
func (l *lowerer) mathCall(e *ast.CallExpr) []ir.MathFn {
	var id *ast.Ident
	switch fun := ast.Unparen(e.Fun).(type) {
	case *ast.SelectorExpr:
		id = fun.Sel
	case *ast.Ident: // dot import
		id = fun
	default:
		return nil
	}
	if fn, ok := l.c.info.Uses[id].(*types.Func); ok && fn.Pkg() == mathPackage() {
		return mathFuncs()[fn.Name()]
	}
	return nil
}

// callResults lowers a call, a conversion included, to its results.
func (l *lowerer) callResults(e *ast.CallExpr) []ir.Value {
	if tv := l.c.info.Types[e]; tv.Value != nil {
		return []ir.Value{l.expr(e)}
	}
	tv := l.c.info.Types[e.Fun]
	args := l.list(e.Args)
	l.at(e.Pos())
	switch {
	case tv.IsType():
		return []ir.Value{l.b.Convert(l.irType(tv.Type), args[0])}
	case tv.IsBuiltin():
		op := ir.OpMin
		if ast.Unparen(e.Fun).(*ast.Ident).Name == "max" {
			op = ir.OpMax
		}
		v := args[0]
		for _, a := range args[1:] {
			v = l.b.Op(op, v, a)
		}
		return []ir.Value{v}
	}
	if fns := l.mathCall(e); fns != nil {
		vs := make([]ir.Value, len(fns))
		for i, fn := range fns {
			vs[i] = l.b.Math(fn, args...)
		}
		return vs
	}
	it := l.c.byObj[l.c.info.Uses[ast.Unparen(e.Fun).(*ast.Ident)]]
	callee := l.funcs[it]
	for _, name := range callee.captured {
		args = append(args, l.globals[l.c.names[name].global])
	}
	return l.b.Call(callee.f, args...)
}
