package cell

import (
	"go/ast"
	"go/token"

	"github.com/cosmos72/gomacro/fast"
	"github.com/cosmos72/gomacro/xreflect"
)

// compileFresh compiles a chunk so that a variable declared again with another
// type gets a place of its own. gomacro would give it the place of the old one,
// and the functions that use the old one would read the new bits by the old type.
// A variable declared again with its old type keeps the place: functions
// of earlier cells see the new value, as everywhere in a notebook.
func (s *Session) compileFresh(c Chunk) *fast.Expr {
	before := s.names()
	s.checkCounts(c.Nodes)
	expr := s.compileNodes(c)
	again := s.retyped(before)
	if len(again) == 0 {
		return expr
	}
	comp := s.ir.Comp
	comp.Code.Clear()
	comp.Binds, comp.Types = before.binds, before.types
	if names, typ, values, pos := soleVars(c.Nodes); names != nil {
		// The values may use the old variable: w := float64(w).
		var inits []*fast.Expr
		var t xreflect.Type
		if typ != nil {
			t = comp.Type(typ)
		}
		if values != nil {
			inits = comp.ExprsMultipleValues(values, len(names))
		}
		s.forget(again)
		comp.DeclVars0(names, t, inits, pos)
		return comp.Code.AsExpr()
	}
	s.forget(again)
	return s.compileNodes(c)
}

// checkCounts refuses to give one variable the first of several results, which
// gomacro does, at the cost of an error that nobody sees. It looks at the top of
// the cell only.
func (s *Session) checkCounts(nodes []ast.Node) {
	c := s.ir.Comp
	count := func(names int, values []ast.Expr) {
		if names != 1 || len(values) != 1 {
			return
		}
		call, ok := values[0].(*ast.CallExpr)
		if !ok {
			return
		}
		n := c.Expr(call, nil).NumOut()
		c.Code.Clear()
		if n > 1 {
			c.Pos = call.Pos()
			c.Errorf("assignment mismatch: 1 variable but the call returns %d values", n)
		}
	}
	if len(nodes) != 1 {
		return // in a chunk of declarations they may not be known yet
	}
	if a, ok := nodes[0].(*ast.AssignStmt); ok && a.Tok != token.DEFINE {
		count(len(a.Lhs), a.Rhs)
	} else if names, _, values, _ := soleVars(nodes); names != nil {
		count(len(names), values)
	}
}

func (s *Session) forget(names []string) {
	for _, name := range names {
		delete(s.ir.Comp.Binds, name)
	}
}

// retyped lists the variables that lie where one of another type lay.
func (s *Session) retyped(before names) (list []string) {
	for name, b := range s.ir.Comp.Binds {
		was := before.binds[name]
		if was == nil || was == b || !isVar(was) || was.Type == nil || b.Type == nil {
			continue
		}
		same := b.Type.IdenticalTo(was.Type)
		if kind := before.kinds[name]; kind != nil && kind != b.Type.ReflectType() {
			same = false
		}
		if !same && b.Desc.Class() != fast.ConstBind && b.Desc.Index() == was.Desc.Index() && isInt(b) == isInt(was) {
			list = append(list, name)
		}
	}
	return list
}

func isVar(b *fast.Bind) bool { return b.Desc.Class() == fast.VarBind || isInt(b) }

func isInt(b *fast.Bind) bool { return b.Desc.Class() == fast.IntBind }

// soleVars takes apart a chunk that is one declaration of variables.
func soleVars(nodes []ast.Node) (names []string, typ ast.Expr, values []ast.Expr, pos []token.Pos) {
	if len(nodes) != 1 {
		return nil, nil, nil, nil
	}
	switch n := nodes[0].(type) {
	case *ast.AssignStmt:
		if n.Tok != token.DEFINE {
			break
		}
		for _, e := range n.Lhs {
			id, ok := e.(*ast.Ident)
			if !ok {
				return nil, nil, nil, nil
			}
			names, pos = append(names, id.Name), append(pos, id.Pos())
		}
		return names, nil, n.Rhs, pos
	case *ast.GenDecl:
		if n.Tok != token.VAR || len(n.Specs) != 1 {
			break
		}
		spec, ok := n.Specs[0].(*ast.ValueSpec)
		if !ok {
			break
		}
		for _, id := range spec.Names {
			names, pos = append(names, id.Name), append(pos, id.Pos())
		}
		return names, spec.Type, spec.Values, pos
	}
	return nil, nil, nil, nil
}
