package cell

import (
	"go/ast"
	"reflect"
	"slices"

	"github.com/cosmos72/gomacro/ast2"
	"github.com/cosmos72/gomacro/base/dep"
	"github.com/cosmos72/gomacro/fast"
	"github.com/cosmos72/gomacro/go/types"
	"github.com/cosmos72/gomacro/xreflect"
)

// compileAnnounced compiles types first, then the heads of all functions and
// methods, and last their bodies and the variables, which may use any of these.
func (s *Session) compileAnnounced(funcs, methods []*ast.FuncDecl, others []ast.Node) *fast.Expr {
	c := s.ir.Comp
	types, rest := splitVars(others)
	var code []*fast.Expr
	if len(types) > 0 {
		if e := s.ir.CompileAst(ast2.NodeSlice{X: types}); e != nil {
			code = append(code, e)
		}
	}
	for _, f := range methods {
		s.announce(f)
		rest = append(rest, f)
	}
	for _, f := range funcs {
		t, _, _ := c.TypeFunction(f.Type)
		c.NewFuncBind(f.Name.Name, t)
		rest = append(rest, f)
	}
	return inTurn(append(code, s.compileBodies(rest)...))
}

func (s *Session) announce(method *ast.FuncDecl) {
	name, c := method.Name.Name, s.ir.Comp
	if name == "_" {
		return
	}
	c.Pos = method.Pos()
	t, _, _ := c.TypeFunctionOrMethod(method.Recv.List[0], method.Type)
	recv := t.In(0)
	if recv.Kind() == reflect.Pointer && !recv.Named() {
		recv = recv.Elem()
	}
	recv.AddMethod(name, t)
}

// compileBodies compiles variables before the functions that use them. Where the
// code runs, functions come first: the values of variables may call them.
func (s *Session) compileBodies(nodes []ast.Node) []*fast.Expr {
	c := s.ir.Comp
	sorter := dep.NewSorter()
	sorter.LoadNodes(nodes)
	var bodies []ast.Node
	var funcs, vars []*fast.Expr
	for _, d := range sorter.All() {
		if _, ok := d.Node.(*ast.FuncDecl); ok {
			bodies = append(bodies, d.Node)
		} else if d.Extra != nil && d.Kind == dep.Var {
			c.DeclVars(d.Extra.Spec())
			vars = append(vars, c.Code.AsExpr())
		} else if d.Node != nil {
			vars = append(vars, c.CompileNode(d.Node))
		}
	}
	for _, f := range bodies {
		funcs = append(funcs, c.CompileNode(f))
	}
	return slices.DeleteFunc(append(funcs, vars...), func(e *fast.Expr) bool { return e == nil })
}

func splitMethods(nodes []ast.Node) (methods []*ast.FuncDecl, others []ast.Node) {
	for _, n := range nodes {
		if f, ok := n.(*ast.FuncDecl); ok && f.Recv != nil && len(f.Recv.List) == 1 {
			methods = append(methods, f)
		} else {
			others = append(others, n)
		}
	}
	return methods, others
}

// keepMethods returns what takes the methods back that nodes add to types of
// earlier cells: one that was announced only would be there and could not be called.
func (s *Session) keepMethods(nodes []ast.Node) (restore func()) {
	var all []func()
	methods, _ := splitMethods(nodes)
	seen := map[string]bool{}
	for _, f := range methods {
		name := receiver(f.Recv.List[0].Type)
		if t := s.ir.Comp.Types[name]; t != nil && !seen[name] {
			seen[name] = true
			all = append(all, keepMethodsOf(t))
		}
	}
	return func() {
		for _, f := range all {
			f()
		}
	}
}

func keepMethodsOf(t xreflect.Type) (restore func()) {
	named, ok := t.GoType().(*types.Named)
	if !ok || t.Kind() == reflect.Interface || t.Kind() == reflect.Pointer {
		return func() {}
	}
	var was []*types.Func
	for i := range named.NumMethods() {
		was = append(was, named.Method(i))
	}
	values := slices.Clone(*t.GetMethods())
	return func() {
		for i := named.NumMethods() - 1; i >= len(was); i-- {
			m := named.Method(i)
			t.RemoveMethods([]string{m.Name()}, m.Pkg().Path())
		}
		for _, m := range was {
			named.ReplaceMethod(m)
		}
		*t.GetMethods() = values
		t.Universe().InvalidateMethodCache()
	}
}
