package frontend

import (
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
	"strings"
)

// call is a call of a function of the call tree.
type call struct {
	pos    token.Pos
	callee *item
}

// law refuses everything in the reachable declarations that the kernel
// language does not have, and recursion.
func (c *compiler) law(reach []*item) {
	c.calls = map[*item][]call{}
	for i := 0; i < len(reach); i++ {
		it := reach[i]
		l := &lawyer{c: c, it: it, silent: map[types.Object]bool{}}
		switch node := it.node.(type) {
		case *ast.FuncDecl:
			l.function(node)
			it.facts = c.factsOf(it)
		case *ast.GenDecl:
			for _, s := range c.stale {
				if s.gen == it.decl.Gen {
					l.refuse(CodeStaleConst, s.id.Pos(), "run the cell with this declaration again, or use other names",
						"%s was declared again after this declaration used it", s.id.Name)
				}
			}
			if it.table {
				l.table(node.Specs[0].(*ast.ValueSpec))
				continue
			}
			l.group = true
			l.genDecl(node)
		}
	}
	c.recursion()
}

// recursion refuses cycles of calls.
func (c *compiler) recursion() {
	const busy, done = 1, 2
	state := map[*item]int{}
	var path []*item
	var visit func(it *item)
	visit = func(it *item) {
		state[it] = busy
		path = append(path, it)
		for _, k := range c.calls[it] {
			switch state[k.callee] {
			case busy:
				i := len(path) - 1
				for path[i] != k.callee {
					i--
				}
				cycle := ""
				for _, p := range path[i:] {
					cycle += p.name + " → "
				}
				c.rep.add(CodeRecursion, k.pos, "kernels have no call stack: write a loop, with variables for what the calls would keep",
					"recursive call: %s", cycle+k.callee.name)
			case 0:
				visit(k.callee)
			}
		}
		path = path[:len(path)-1]
		state[it] = done
	}
	visit(c.items[0])
}

// callOrder lists the functions of the call tree, callees first.
func (c *compiler) callOrder() []*item {
	var order []*item
	seen := map[*item]bool{}
	var visit func(it *item)
	visit = func(it *item) {
		if seen[it] {
			return
		}
		seen[it] = true
		for _, k := range c.calls[it] {
			visit(k.callee)
		}
		order = append(order, it)
	}
	visit(c.items[0])
	return order
}

// lawyer applies the law to one declaration.
type lawyer struct {
	c  *compiler
	it *item
	// silent holds variables whose declaration was refused: their uses are not
	// refused again.
	silent map[types.Object]bool
	// badResult says that a result type was refused.
	badResult bool
	// group says that the declaration is of the package: what nobody uses of
	// a group does not matter.
	group bool
}

func (l *lawyer) unused(id *ast.Ident) bool {
	return l.group && !l.c.used[l.c.info.Defs[id]]
}

func (l *lawyer) refuse(code Code, pos token.Pos, help, format string, args ...any) {
	l.c.rep.add(code, pos, help, format, args...)
}

func (l *lawyer) text(e ast.Expr) string {
	s := types.ExprString(e)
	if len(s) > 60 {
		s = s[:57] + "..."
	}
	return s
}

func (l *lawyer) function(fd *ast.FuncDecl) {
	name := fd.Name.Name
	if fd.Recv != nil {
		l.refuse(CodeMethod, fd.Pos(), "write it as a function: the receiver becomes the first parameter", "%s is a method", name)
		return
	}
	if fd.Type.TypeParams != nil {
		l.refuse(CodeGeneric, fd.Type.TypeParams.Pos(), "write one function for each type, with plain types such as float64", "%s has type parameters", name)
		return
	}
	for _, f := range fd.Type.Params.List {
		if dots, ok := f.Type.(*ast.Ellipsis); ok {
			l.refuse(CodeVariadic, dots.Pos(), "give the function a fixed number of parameters", "%s is variadic", name)
			l.silence(f.Names)
			continue
		}
		what := "a parameter"
		if len(f.Names) > 0 {
			what = "parameter " + f.Names[0].Name
		}
		if !l.typ(f.Type, what) {
			l.silence(f.Names)
		}
	}
	if fd.Type.Results != nil {
		for _, f := range fd.Type.Results.List {
			if !l.typ(f.Type, "a result") || !l.result(f.Type) {
				l.badResult = true
				l.silence(f.Names)
			}
		}
	}
	if fd.Body == nil {
		l.refuse(CodeNoBody, fd.Name.Pos(), "write the function in Go: kernels cannot call assembly or C", "%s has no body", name)
		return
	}
	l.stmt(fd.Body)
}

// result refuses result types that no function can have, or that the function
// itself cannot have: its caller is not Go.
func (l *lawyer) result(e ast.Expr) bool {
	t := l.c.info.TypeOf(e)
	y, _ := layoutOf(t)
	switch {
	case isSlice(t):
		l.refuse(CodeSlice, e.Pos(), "give the function the array to write into as a parameter, or return the bounds of the part",
			"a result has type %s: functions of a kernel do not return slices", typeName(t))
	case l.it != l.c.items[0] || l.c.in.Callee || y.scalar():
		return true
	case isArray(t):
		l.refuse(CodeArray, e.Pos(), "write into a slice parameter", "a result of the kernel itself has type %s", typeName(t))
	default:
		l.refuse(CodeStruct, e.Pos(), "return the fields as several results", "a result of the kernel itself has type %s", typeName(t))
	}
	return false
}

func typeName(t types.Type) string {
	return types.TypeString(t, func(*types.Package) string { return "" })
}

func (l *lawyer) silence(ids []*ast.Ident) {
	for _, id := range ids {
		if obj := l.c.info.Defs[id]; obj != nil {
			l.silent[obj] = true
		}
	}
}

// typ refuses a type outside the language, written at e; what it is the type
// of is for the message. It reports whether the type is good.
func (l *lawyer) typ(e ast.Expr, what string) bool {
	if !l.importedName(e) {
		return false
	}
	t := l.c.info.TypeOf(e)
	if t == nil || t == types.Typ[types.Invalid] {
		l.c.invalid = true
		return false
	}
	if _, ok := layoutOf(t); ok {
		return true
	}
	l.refuseType(e.Pos(), t, what)
	return false
}

// importedName refuses a name of a package that kernels do not have.
func (l *lawyer) importedName(e ast.Expr) bool {
	if sel, ok := ast.Unparen(e).(*ast.SelectorExpr); ok {
		if path, ok := l.pkgPath(sel.X); ok && !isLib(path) {
			l.refusePackage(sel, path)
			return false
		}
	}
	return true
}

func (l *lawyer) refuseType(pos token.Pos, t types.Type, what string) {
	name := types.TypeString(t, func(*types.Package) string { return "" })
	say := func(code Code, kind, help string) {
		l.refuse(code, pos, help, "%s has type %s: %s are not part of the kernel language yet", what, name, kind)
	}
	never := func(code Code, kind, help string) {
		l.refuse(code, pos, help, "%s has type %s: %s are not part of the kernel language", what, name, kind)
	}
	if _, ok := t.(*types.TypeParam); ok {
		never(CodeGeneric, "type parameters", "write a plain type such as float64")
		return
	}
	switch u := t.Underlying().(type) {
	case *types.Slice:
		never(CodeSlice, "slices of anything but numbers and bools", "use a slice of numbers with one dimension more, or one slice for each field")
	case *types.Array:
		if y, ok := layoutOf(u.Elem()); !ok || y.rank > 0 {
			never(CodeArray, "arrays of such elements", "use an array of numbers, bools, arrays or structs of these; an N-dimensional array parameter is a slice of slices")
		} else {
			never(CodeArray, "arrays of more than a million elements", "pass a slice as an argument")
		}
	case *types.Struct:
		never(CodeStruct, "structs with such fields", "use fields that are numbers, bools, arrays or structs of these, and pass slices as parameters of their own")
	case *types.Pointer:
		never(CodePointer, "pointers", "pass the value, and return the new one: functions can have several results")
	case *types.Map:
		never(CodeMap, "maps", "use a switch, or a function that computes the value")
	case *types.Chan:
		never(CodeChan, "channels", "each worker runs alone: pass values as arguments and return results")
	case *types.Signature:
		never(CodeFuncType, "functions as values", "call the function by its name")
	case *types.Interface:
		never(CodeInterface, "interfaces", "write a concrete type such as float64")
	case *types.Basic:
		switch {
		case u.Info()&types.IsString != 0:
			never(CodeString, "strings", "use an integer code for each case")
		case u.Info()&types.IsComplex != 0:
			say(CodeComplex, "complex numbers", "use two float64 variables, the real and the imaginary part")
		case u.Kind() == types.UntypedNil:
			never(CodeNil, "nil values", "use a number, for example 0 or math.NaN()")
		default:
			never(CodePointer, "pointers", "pass the value")
		}
	default:
		never(CodeType, "values of this type", "use bool, an integer type, float32 or float64")
	}
}

func (l *lawyer) genDecl(d *ast.GenDecl) {
	for _, s := range d.Specs {
		switch s := s.(type) {
		case *ast.TypeSpec:
			if l.unused(s.Name) {
				continue
			}
			if s.TypeParams != nil {
				l.refuse(CodeGeneric, s.TypeParams.Pos(), "write a plain type such as float64", "type %s has type parameters", s.Name.Name)
				continue
			}
			l.typ(s.Type, "type "+s.Name.Name)
		case *ast.ValueSpec:
			if d.Tok == token.CONST {
				for i, id := range s.Names {
					if k, ok := l.c.info.Defs[id].(*types.Const); l.unused(id) || ok && k.Type() != types.Typ[types.Invalid] {
						// String constants do no harm until they are used.
						continue
					}
					if i < len(s.Values) {
						l.expr(s.Values[i])
					}
				}
				continue
			}
			if s.Type != nil && !l.typ(s.Type, "variable "+s.Names[0].Name) {
				l.silence(s.Names)
				continue
			}
			l.define(s.Names, s.Values)
		}
	}
}

// define applies the law to new variables and their first values.
func (l *lawyer) define(ids []*ast.Ident, values []ast.Expr) {
	for i, id := range ids {
		before := len(l.c.rep.list)
		if i < len(values) {
			l.operand(values[i])
		}
		obj := l.c.info.Defs[id]
		if obj == nil {
			continue
		}
		if _, ok := layoutOf(obj.Type()); !ok {
			l.silent[obj] = true
			// The results of a call are refused where the callee is declared.
			if len(l.c.rep.list) == before && len(values) == len(ids) && obj.Type() != types.Typ[types.Invalid] && !isCall(values[i]) {
				l.refuseType(id.Pos(), obj.Type(), "variable "+id.Name)
			}
		}
	}
	for i := len(ids); i < len(values); i++ {
		l.operand(values[i])
	}
}

func isCall(e ast.Expr) bool {
	_, ok := ast.Unparen(e).(*ast.CallExpr)
	return ok
}

func (l *lawyer) stmts(list []ast.Stmt) {
	for _, s := range list {
		l.stmt(s)
	}
}

func (l *lawyer) stmt(s ast.Stmt) {
	switch s := s.(type) {
	case nil, *ast.EmptyStmt:
	case *ast.BlockStmt:
		l.stmts(s.List)
	case *ast.DeclStmt:
		if d, ok := s.Decl.(*ast.GenDecl); ok {
			l.genDecl(d)
		}
	case *ast.ExprStmt:
		l.expr(s.X)
	case *ast.IncDecStmt:
		l.assigned(s.X)
	case *ast.AssignStmt:
		l.assign(s)
	case *ast.IfStmt:
		l.stmt(s.Init)
		l.operand(s.Cond)
		l.stmt(s.Body)
		l.stmt(s.Else)
	case *ast.ForStmt:
		l.stmt(s.Init)
		if s.Cond != nil {
			l.operand(s.Cond)
		}
		l.stmt(s.Post)
		l.stmt(s.Body)
	case *ast.RangeStmt:
		l.rangeStmt(s)
	case *ast.SwitchStmt:
		l.stmt(s.Init)
		if s.Tag != nil {
			l.operand(s.Tag)
		}
		for _, cc := range s.Body.List {
			for _, e := range cc.(*ast.CaseClause).List {
				l.operand(e)
			}
			l.stmts(cc.(*ast.CaseClause).Body)
		}
	case *ast.LabeledStmt:
		l.stmt(s.Stmt)
	case *ast.ReturnStmt:
		l.operands(s.Results, l.badResult)
	case *ast.BranchStmt:
		if s.Tok == token.GOTO {
			l.refuse(CodeGoto, s.Pos(), "use for, break and continue; break and continue take a label", "goto %s", s.Label.Name)
		}
	case *ast.DeferStmt:
		l.refuse(CodeDefer, s.Pos(), "call the function where it is to run", "defer %s", l.text(s.Call.Fun))
	case *ast.GoStmt:
		l.refuse(CodeGo, s.Pos(), "call the function directly: the workers already run side by side", "go %s", l.text(s.Call.Fun))
	case *ast.SelectStmt:
		l.refuse(CodeSelect, s.Pos(), "use if or switch: there are no channels in a kernel", "select")
	case *ast.SendStmt:
		l.refuse(CodeSend, s.Arrow, "return the value: there are no channels in a kernel", "send %s <- %s", l.text(s.Chan), l.text(s.Value))
	case *ast.TypeSwitchStmt:
		l.refuse(CodeTypeSwitch, s.Pos(), "write one function for each type", "type switch")
	case *ast.BadStmt:
		l.syntax(s)
	default:
		l.refuse(CodeInternal, s.Pos(), "use another statement", "a statement that kernels do not know (%T)", s)
	}
}

func (l *lawyer) syntax(n ast.Node) {
	l.refuse(CodeSyntax, n.Pos(), "correct the text here", "this is not Go")
}

func (l *lawyer) assign(s *ast.AssignStmt) {
	if s.Tok != token.DEFINE {
		for _, e := range s.Lhs {
			l.assigned(e)
		}
		for _, e := range s.Rhs {
			l.operand(e)
		}
		return
	}
	var ids []*ast.Ident
	for _, e := range s.Lhs {
		if id, ok := e.(*ast.Ident); ok {
			ids = append(ids, id)
			if l.c.info.Defs[id] == nil {
				l.assigned(id)
			}
		}
	}
	l.define(ids, s.Rhs)
}

// assigned applies the law to the left side of an assignment.
func (l *lawyer) assigned(e ast.Expr) {
	id, ok := ast.Unparen(e).(*ast.Ident)
	if ok && id.Name == "_" {
		return
	}
	f := facts{c: l.c}
	if obj := f.root(e); obj != nil {
		switch it := l.c.byObj[obj]; {
		case it == nil:
		case it.global != nil:
			l.refuse(CodeAssignCaptured, e.Pos(), "use a local variable and return it; assign the result to "+it.name+" outside the kernel",
				"assignment to %s, a global variable: a kernel sees a copy of its value", l.text(e))
			return
		case it.table:
			l.refuse(CodePackageVar, e.Pos(), "copy it to a local variable, or pass a slice as an argument",
				"assignment to %s, a package-level variable: a table is constant", l.text(e))
			return
		}
	}
	before := len(l.c.rep.list)
	l.expr(e)
	if x, ok := ast.Unparen(e).(*ast.IndexExpr); ok && len(l.c.rep.list) == before && isSlice(l.c.info.TypeOf(e)) && !l.isSilent(e) {
		l.refuse(CodeSliceElement, e.Pos(), "assign the elements one by one in a loop; a row of an array cannot be exchanged for another",
			"assignment to %s, a row of %s", l.text(e), l.text(x.X))
	}
}

func (l *lawyer) rangeStmt(s *ast.RangeStmt) {
	t := l.c.info.TypeOf(s.X)
	before := len(l.c.rep.list)
	known := t != nil && t != types.Typ[types.Invalid] && !l.isSilent(s.X)
	if known {
		if it, ok := irType(t); !isSlice(t) && !isArray(t) && (!ok || !it.IsInt() && !isUntypedInt(l.c.info.Types[s.X])) {
			l.refuse(CodeRange, s.X.Pos(), "range over a slice, an array or an integer, or write for i := 0; i < n; i++",
				"range over %s, of type %s", l.text(s.X), typeName(t))
		}
	}
	if len(l.c.rep.list) == before {
		l.operand(s.X)
	}
	for _, e := range []ast.Expr{s.Key, s.Value} {
		if e == nil {
			continue
		}
		if s.Tok == token.ASSIGN {
			l.assigned(e)
		} else if id, ok := e.(*ast.Ident); ok {
			if obj := l.c.info.Defs[id]; obj != nil {
				if _, ok := layoutOf(obj.Type()); !ok {
					l.silent[obj] = true
				}
			}
		}
	}
	l.stmt(s.Body)
}

// isUntypedInt reports whether a range over a constant such as 1e3 counts.
func isUntypedInt(tv types.TypeAndValue) bool {
	return tv.Value != nil && constant.ToInt(tv.Value).Kind() == constant.Int
}

// isSilent reports whether e is a variable whose declaration was refused, or
// an element or a field of one.
func (l *lawyer) isSilent(e ast.Expr) bool {
	switch e := ast.Unparen(e).(type) {
	case *ast.Ident:
		return l.silent[l.c.info.Uses[e]]
	case *ast.IndexExpr:
		return l.isSilent(e.X)
	case *ast.SliceExpr:
		return l.isSilent(e.X)
	case *ast.SelectorExpr:
		return l.isSilent(e.X)
	case *ast.StarExpr:
		return l.isSilent(e.X)
	case *ast.CallExpr:
		// len(a)
		if tv := l.c.info.Types[e.Fun]; tv.IsBuiltin() && len(e.Args) > 0 {
			return l.isSilent(e.Args[0])
		}
		return l.isSilent(e.Fun)
	}
	return false
}

// operands is operand for each of es; where their place was refused already,
// a value of a type outside the language is not refused again.
func (l *lawyer) operands(es []ast.Expr, refused bool) {
	for _, e := range es {
		if t := l.c.info.TypeOf(e); refused && t != nil && t != types.Typ[types.Invalid] {
			if _, ok := layoutOf(t); !ok || isSlice(t) || l.it == l.c.items[0] {
				continue
			}
		}
		l.operand(e)
	}
}

// operand is expr for an expression whose value is used.
func (l *lawyer) operand(e ast.Expr) {
	before := len(l.c.rep.list)
	l.expr(e)
	if len(l.c.rep.list) > before || l.isSilent(e) {
		return
	}
	tv := l.c.info.Types[e]
	if tv.Type == nil || tv.Type == types.Typ[types.Invalid] {
		l.c.invalid = true
		return
	}
	if tv.IsVoid() {
		return
	}
	if _, ok := tv.Type.(*types.Tuple); ok {
		// Several results of a function, whose declaration was checked.
		return
	}
	if _, ok := layoutOf(tv.Type); !ok && tv.IsValue() {
		if id, ok := ast.Unparen(e).(*ast.Ident); ok && l.c.byObj[l.c.info.Uses[id]] != nil {
			return
		}
		if isCall(e) {
			return
		}
		l.refuseType(e.Pos(), tv.Type, l.text(e))
	}
}

// expr applies the law to an expression.
func (l *lawyer) expr(e ast.Expr) {
	tv := l.c.info.Types[e]
	if tv.Value != nil {
		if _, ok := irType(tv.Type); ok {
			return
		}
		if b, ok := tv.Type.Underlying().(*types.Basic); ok && b.Info()&types.IsString != 0 {
			l.refuse(CodeStringValue, e.Pos(), "use an integer code", "%s is a string: strings are not part of the kernel language", l.text(e))
		} else {
			l.refuse(CodeComplexValue, e.Pos(), "use two float64 values, the real and the imaginary part",
				"%s is a complex number: these are not part of the kernel language yet", l.text(e))
		}
		return
	}
	if tv.IsNil() {
		l.refuse(CodeNil, e.Pos(), "use a number, for example 0 or math.NaN()", "nil is not a value of the kernel language")
		return
	}
	switch e := e.(type) {
	case *ast.ParenExpr:
		l.expr(e.X)
	case *ast.Ident:
		l.ident(e)
	case *ast.UnaryExpr:
		switch e.Op {
		case token.AND:
			l.refuse(CodeAddress, e.OpPos, "pass the value and return the new one: there are no pointers in a kernel", "address %s", l.text(e))
		case token.ARROW:
			l.refuse(CodeReceive, e.OpPos, "pass the value as an argument: there are no channels in a kernel", "receive %s", l.text(e))
		default:
			l.operand(e.X)
		}
	case *ast.BinaryExpr:
		l.operand(e.X)
		l.operand(e.Y)
	case *ast.CallExpr:
		l.call(e)
	case *ast.SelectorExpr:
		l.selector(e)
	case *ast.BadExpr:
		l.syntax(e)
	case *ast.FuncLit:
		l.refuse(CodeFuncLit, e.Pos(), "declare it as a function with a name, outside of this one, and call that", "function literal")
	case *ast.CompositeLit:
		l.compositeLit(e)
	case *ast.IndexExpr:
		if tv := l.c.info.Types[e.X]; tv.Type != nil {
			if _, ok := tv.Type.Underlying().(*types.Signature); ok {
				l.refuse(CodeGeneric, e.Pos(), "call a function without type parameters", "instance %s of a generic function", l.text(e))
				return
			}
		}
		l.part(e.X, func() {
			if t := l.c.info.TypeOf(e.X); isSlice(t) || isArray(t) {
				l.operand(e.X)
				return
			}
			l.refuse(CodeIndex, e.Pos(), "use an array of integers, [...]uint8{...}", "element %s: only slices and arrays have elements in a kernel", l.text(e))
		})
		l.operand(e.Index)
	case *ast.IndexListExpr:
		l.refuse(CodeGeneric, e.Pos(), "call a function without type parameters", "instance %s of a generic function", l.text(e))
	case *ast.SliceExpr:
		if obj := (&facts{c: l.c}).root(e.X); obj != nil && l.c.byObj[obj] != nil && isArray(l.c.info.TypeOf(e.X)) {
			l.sliceExpr(e)
		} else {
			l.part(e.X, func() { l.sliceExpr(e) })
		}
		for _, x := range []ast.Expr{e.Low, e.High} {
			if x != nil {
				l.operand(x)
			}
		}
	case *ast.StarExpr:
		l.part(e.X, func() {
			l.refuse(CodeDeref, e.Pos(), "pass the value: there are no pointers in a kernel", "pointer target %s", l.text(e))
		})
	case *ast.TypeAssertExpr:
		l.part(e.X, func() {
			l.refuse(CodeTypeAssert, e.Pos(), "use a concrete type such as float64", "type assertion %s", l.text(e))
		})
	default:
		if tv.IsType() {
			l.typ(e, l.text(e))
		} else if tv.Type != nil {
			l.refuse(CodeInternal, e.Pos(), "use another expression", "an expression that kernels do not know: %s", l.text(e))
		}
	}
}

// part refuses an element, a field or the like of x, unless x was refused or
// is not known.
func (l *lawyer) part(x ast.Expr, refuse func()) {
	if l.isSilent(x) {
		return
	}
	if id, ok := ast.Unparen(x).(*ast.Ident); ok {
		if it := l.c.byObj[l.c.info.Uses[id]]; it != nil {
			l.ident(id)
			return
		}
	}
	if t := l.c.info.TypeOf(x); t == nil || t == types.Typ[types.Invalid] {
		l.expr(x)
		return
	}
	refuse()
}

// ident applies the law to a name used as a value.
func (l *lawyer) ident(id *ast.Ident) {
	obj := l.c.info.Uses[id]
	if it := l.c.byObj[obj]; it != nil && it.refuse != nil {
		l.refuse(it.refuse.code, id.Pos(), it.refuse.help, "%s", it.refuse.msg)
		return
	}
	if fn, ok := obj.(*types.Func); ok {
		l.refuse(CodeFuncValue, id.Pos(), "call the function here: "+fn.Name()+"(...)", "function %s is used as a value", fn.Name())
	}
}

func (l *lawyer) pkgPath(x ast.Expr) (string, bool) {
	if id, ok := x.(*ast.Ident); ok {
		if pn, ok := l.c.info.Uses[id].(*types.PkgName); ok {
			return pn.Imported().Path(), true
		}
	}
	return "", false
}

func (l *lawyer) selector(e *ast.SelectorExpr) {
	if path, ok := l.pkgPath(e.X); ok {
		if !isLib(path) {
			l.refusePackage(e, path)
		} else if _, ok := l.c.info.Uses[e.Sel].(*types.Func); ok {
			l.refuse(CodeFuncValue, e.Pos(), "call the function here: "+l.text(e)+"(...)", "function %s is used as a value", l.text(e))
		}
		return
	}
	l.part(e.X, func() {
		if _, ok := l.c.info.Uses[e.Sel].(*types.Func); ok {
			l.refuse(CodeMethod, e.Pos(), "write a function with the receiver as its first parameter", "method %s", l.text(e))
			return
		}
		l.operand(e.X)
	})
}

func (l *lawyer) compositeLit(e *ast.CompositeLit) {
	t := l.c.info.TypeOf(e)
	if t == nil || t == types.Typ[types.Invalid] {
		l.c.invalid = true
		return
	}
	if isSlice(t) {
		l.refuse(CodeCompositeLit, e.Pos(), "write an array, [...]T{...}: its size is part of its type", "composite literal %s: kernels make no slices", l.text(e))
		return
	}
	if _, ok := layoutOf(t); !ok {
		l.refuseType(e.Pos(), t, l.text(e))
		return
	}
	for _, x := range e.Elts {
		if kv, ok := x.(*ast.KeyValueExpr); ok {
			x = kv.Value
		}
		l.operand(x)
	}
}

func (l *lawyer) sliceExpr(e *ast.SliceExpr) {
	t := l.c.info.TypeOf(e.X)
	f := facts{c: l.c}
	switch {
	case e.Slice3:
		l.refuse(CodeSliceExpr, e.Pos(), "write x[a:b]: a slice in a kernel has no capacity but its length", "slice %s with a capacity", l.text(e))
	case isSlice(t):
		l.operand(e.X)
	case isArray(t):
		obj := f.root(e.X)
		if it := l.c.byObj[obj]; obj == nil || it != nil {
			l.refuse(CodeSliceExpr, e.Pos(), "copy the array to a local variable and slice that", "slice %s of an array that is not a local variable", l.text(e))
			return
		}
		l.operand(e.X)
		if _, ok := layoutOf(l.c.info.TypeOf(e)); !ok {
			l.refuse(CodeSliceExpr, e.Pos(), "slice the innermost array: "+l.text(e.X)+"[i][:]", "slice %s, of type %s", l.text(e), typeName(l.c.info.TypeOf(e)))
		}
	default:
		l.refuse(CodeSliceExpr, e.Pos(), "use an array of integers, [...]uint8{...}", "slice %s: only slices and arrays have parts in a kernel", l.text(e))
	}
}

// table applies the law to the declaration of a constant table.
func (l *lawyer) table(s *ast.ValueSpec) {
	before := len(l.c.rep.list)
	l.define(s.Names, s.Values)
	if s.Type != nil && len(l.c.rep.list) == before {
		l.typ(s.Type, "variable "+s.Names[0].Name)
	}
	if len(l.c.rep.list) > before {
		return
	}
	l.constant(ast.Unparen(s.Values[0]).(*ast.CompositeLit))
}

// constant refuses elements of a literal that are not constants.
func (l *lawyer) constant(lit *ast.CompositeLit) {
	for _, x := range lit.Elts {
		if kv, ok := x.(*ast.KeyValueExpr); ok {
			x = kv.Value
		}
		if inner, ok := ast.Unparen(x).(*ast.CompositeLit); ok {
			l.constant(inner)
		} else if l.c.info.Types[x].Value == nil {
			l.notConstant(x)
		}
	}
}

func (l *lawyer) notConstant(e ast.Expr) {
	l.refuse(CodePackageVar, e.Pos(), "write the number, or compute the table in the function", "the element %s of a table is not a constant", l.text(e))
}

// packageHelp says what to do instead of using a package.
var packageHelp = map[string]string{
	"fmt":                   "use println, or return the value and print it outside the kernel",
	"math/rand":             "use simt.UniformFloat64(seed, i), or pass an array of random numbers as an argument",
	"math/rand/v2":          "use simt.UniformFloat64(seed, i), or pass an array of random numbers as an argument",
	"math/cmplx":            "use two float64 variables, the real and the imaginary part",
	"time":                  "pass the time as an argument",
	"sync":                  "use simt.SyncThreads, or sync/atomic on the elements of a slice",
	"gpunotes/gpukit":       "call gpukit outside the kernel and pass arrays as arguments",
	"gpunotes/gpukit/trace": "call it outside the kernel",
}

func (l *lawyer) refusePackage(e *ast.SelectorExpr, path string) {
	help := packageHelp[path]
	if help == "" {
		help = "kernels can use packages math, math/bits, sync/atomic and simt and functions of your own: write " + e.Sel.Name + " in Go, or compute the value outside and pass it as an argument"
	}
	l.refuse(CodePackage, e.Pos(), help, "%s: package %s is not part of the kernel language", l.text(e), path)
}

// builtinHelp says what to write instead of a predeclared function.
var builtinHelp = map[string]string{
	"append":  "write into an array that was made outside and is an argument",
	"make":    "use a fixed array, var a [16]float64, or pass an array that was made outside as an argument",
	"new":     "declare a variable: there are no pointers in a kernel",
	"cap":     "use len: a slice in a kernel has no capacity but its length",
	"copy":    "assign the elements one by one in a loop",
	"clear":   "assign zero to the elements in a loop",
	"panic":   "return a value that marks the failure, for example math.NaN()",
	"recover": "test for the failure beforehand, for example if d != 0 { ... }",
}

func (l *lawyer) call(e *ast.CallExpr) {
	args := func() { l.operands(e.Args, false) }
	fun := ast.Unparen(e.Fun)
	tv := l.c.info.Types[fun]
	if e.Ellipsis.IsValid() {
		l.refuse(CodeVariadic, e.Ellipsis, "give the arguments one by one", "call %s with ...", l.text(fun))
		return
	}
	switch {
	case tv.IsType():
		if l.typ(fun, "the conversion") {
			args()
			if len(e.Args) == 1 && isArray(tv.Type) && isSlice(l.c.info.TypeOf(e.Args[0])) && !l.isSilent(e.Args[0]) {
				l.refuse(CodeArray, e.Pos(), "assign the elements one by one in a loop", "conversion %s of a slice to an array", l.text(e))
			}
		}
		return
	case tv.IsBuiltin():
		l.builtin(e, fun, args)
		return
	}
	switch fun := fun.(type) {
	case *ast.Ident:
		obj := l.c.info.Uses[fun]
		if _, ok := obj.(*types.Func); ok {
			if it := l.c.byObj[obj]; it != nil {
				l.c.calls[l.it] = append(l.c.calls[l.it], call{fun.Pos(), it})
			} else if l.libCall(e) {
				return
			}
		} else if obj != nil && !l.silent[obj] {
			before := len(l.c.rep.list)
			l.ident(fun)
			if t := obj.Type(); len(l.c.rep.list) == before && t != nil && t != types.Typ[types.Invalid] {
				l.refuse(CodeFuncValue, fun.Pos(), "call a declared function by its name", "call of the variable %s", fun.Name)
			}
		}
		args()
	case *ast.SelectorExpr:
		if path, ok := l.pkgPath(fun.X); ok {
			if !isLib(path) {
				l.refusePackage(fun, path)
			} else if l.libCall(e) {
				return
			}
			l.operands(e.Args, !isLib(path))
			return
		}
		l.selector(fun)
		args()
	default:
		// A literal, an instance, or the value of another expression.
		before := len(l.c.rep.list)
		l.expr(fun)
		if len(l.c.rep.list) == before && tv.Type != nil && tv.Type != types.Typ[types.Invalid] && !l.isSilent(fun) {
			l.refuse(CodeFuncValue, fun.Pos(), "call a declared function by its name", "call of the value %s", l.text(fun))
		}
		args()
	}
}

// libCall applies the law to a call of a package's function; true means that
// the arguments were dealt with.
func (l *lawyer) libCall(e *ast.CallExpr) bool {
	fn := l.c.libObj(e)
	if fn == nil {
		return false
	}
	path, name := fn.Pkg().Path(), fn.Name()
	if help := refusedLib[path+"."+name]; help != "" {
		l.refuse(CodePackage, e.Pos(), help, "%s is not part of the kernel language", l.text(e.Fun))
		return true
	}
	if len(e.Args) == 0 || l.c.written(fn) != nil {
		return false
	}
	if _, ok := atomics[path+"."+name]; ok {
		l.atomicOperand(e.Args[0])
		l.operands(e.Args[1:], false)
		return true
	}
	if path == simtPath && name == "Shared" {
		l.shared(e.Args[0])
		return true
	}
	return false
}

// atomicOperand takes &x[i] with x a slice or a shared array.
func (l *lawyer) atomicOperand(e ast.Expr) {
	const help = "write &x[i], where x is a slice or an array that simt.Shared was called on"
	u, ok := ast.Unparen(e).(*ast.UnaryExpr)
	if !ok || u.Op != token.AND {
		l.refuse(CodeAtomic, e.Pos(), help, "an atomic operation on %s", l.text(e))
		return
	}
	x, ok := ast.Unparen(u.X).(*ast.IndexExpr)
	if !ok {
		l.refuse(CodeAtomic, e.Pos(), help, "an atomic operation on %s", l.text(e))
		return
	}
	before := len(l.c.rep.list)
	l.operand(x)
	if len(l.c.rep.list) > before || l.isSilent(x) {
		return
	}
	if !isSlice(l.c.info.TypeOf(x.X)) {
		if obj := (&facts{c: l.c}).root(x); obj == nil || !l.isShared(obj) {
			l.refuse(CodeAtomic, e.Pos(), help, "an atomic operation on %s, which no other thread sees", l.text(e))
		}
	}
}

// isShared reports whether the function calls simt.Shared on the variable.
func (l *lawyer) isShared(obj types.Object) bool {
	found := false
	ast.Inspect(l.it.node, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok && len(call.Args) == 1 {
			if path, name := l.c.libFunc(call); path == simtPath && name == "Shared" {
				if u, ok := ast.Unparen(call.Args[0]).(*ast.UnaryExpr); ok {
					found = found || (&facts{c: l.c}).root(u.X) == obj
				}
			}
		}
		return true
	})
	return found
}

// shared takes the address of a local array that is declared without a value.
func (l *lawyer) shared(e ast.Expr) {
	const help = "declare it in this function, var tile [256]float64, and call simt.Shared(&tile) next"
	u, ok := ast.Unparen(e).(*ast.UnaryExpr)
	if ok && u.Op == token.AND {
		if id, ok := ast.Unparen(u.X).(*ast.Ident); ok {
			obj := l.c.info.Uses[id]
			if l.silent[obj] {
				return
			}
			declared := false
			ast.Inspect(l.it.node, func(n ast.Node) bool {
				if s, ok := n.(*ast.ValueSpec); ok && len(s.Values) == 0 {
					for _, name := range s.Names {
						declared = declared || obj != nil && l.c.info.Defs[name] == obj
					}
				}
				return true
			})
			if declared && isArray(obj.Type()) {
				return
			}
		}
	}
	l.refuse(CodeShared, e.Pos(), help, "simt.Shared(%s): not the address of a local array that is declared without a value", l.text(e))
}

// isText reports whether tv is a string constant.
func isText(tv types.TypeAndValue) bool { return tv.Value != nil && tv.Value.Kind() == constant.String }

func (l *lawyer) builtin(e *ast.CallExpr, fun ast.Expr, args func()) {
	name := l.text(fun)
	switch name {
	case "min", "max", "len":
		args()
	case "print":
		l.refuse(CodePrint, e.Pos(), "use println: lines of threads that run at once would mix", "print is not part of the kernel language")
	case "println":
		for _, x := range e.Args {
			if isText(l.c.info.Types[x]) {
				continue
			}
			before := len(l.c.rep.list)
			l.operand(x)
			if t := l.c.info.TypeOf(x); len(l.c.rep.list) == before && t != nil && !l.isSilent(x) {
				if y, ok := layoutOf(t); ok && !y.scalar() {
					l.refuse(CodePrint, x.Pos(), "print the elements one by one", "println of %s, of type %s", l.text(x), typeName(t))
				}
			}
		}
	default:
		if l.isSilent(e) {
			return
		}
		help := builtinHelp[strings.TrimPrefix(name, "unsafe.")]
		if help == "" {
			help = "use arithmetic, min, max, len and package math"
		}
		l.refuse(CodeBuiltin, e.Pos(), help, "%s is not part of the kernel language", l.text(e))
	}
}
