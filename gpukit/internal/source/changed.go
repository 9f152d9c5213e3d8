package source

import (
	"fmt"
	"go/ast"
	"go/token"
	"reflect"
	"slices"
	"strings"
)

// An interpreter compiles what a name means into the function that uses it: a
// constant, a type, a package, the type of a variable. If the name is declared
// again, Go calls of the function keep the old meaning until its cell runs
// again. Such a function is refused, for a kernel would see the new one.

// used is what a name meant to the declaration that uses it.
type used struct {
	name string
	decl *entry       // nil if no cell declared it
	path string       // of an import
	typ  reflect.Type // of a variable or function
	at   token.Position
}

// known reports whether the name meant something at all.
func (u used) known() bool {
	return u.decl != nil || u.path != "" || u.typ != nil || predeclared[u.name]
}

// isFixed reports whether a declaration is a constant's or a type's.
func isFixed(e *entry) bool { return e != nil && e.gen != nil && e.gen.Tok != token.VAR }

// kind says what a declaration is.
func (e *entry) kind() string {
	switch {
	case e.fn != nil:
		return "function"
	case e.gen != nil && e.gen.Tok != token.VAR:
		return map[token.Token]string{token.CONST: "constant", token.TYPE: "type"}[e.gen.Tok]
	}
	return "variable"
}

// usesOf notes what the global names in nodes mean now; nodes may belong to a
// group of declarations, whose names count as global.
func (n *Notebook) usesOf(group *ast.GenDecl, nodes ...ast.Node) (us []used) {
	var visit func(ast.Node) bool
	visit = func(node ast.Node) bool {
		if sel, ok := node.(*ast.SelectorExpr); ok {
			ast.Inspect(sel.X, visit)
			return false
		}
		id, ok := node.(*ast.Ident)
		if !ok || id.Name == "_" {
			return true
		}
		if id.Obj != nil {
			spec, ok := id.Obj.Decl.(ast.Spec)
			if !ok || group == nil || !slices.Contains(group.Specs, spec) {
				return true
			}
		}
		if slices.ContainsFunc(us, func(u used) bool { return u.name == id.Name }) {
			return true
		}
		u := used{name: id.Name, decl: n.names[id.Name], at: fset.Position(id.Pos())}
		if u.decl == nil {
			u.path = n.imports[id.Name]
		}
		if !isFixed(u.decl) && (u.decl != nil || !n.notGlobal(id.Name)) {
			if v, ok := n.current(id.Name); ok {
				u.typ = v.Type()
			}
		}
		us = append(us, u)
		return true
	}
	for _, node := range nodes {
		if node != nil {
			ast.Inspect(node, visit)
		}
	}
	return us
}

// changed says which name a function uses, directly or through constants and
// types, has another meaning now than Go calls of the function see; nil if none.
func (n *Notebook) changed(e *entry) *refusal {
	return n.changedIn(e, e.name, map[*entry]bool{})
}

func (n *Notebook) changedIn(e *entry, fn string, seen map[*entry]bool) *refusal {
	if seen[e] {
		return nil
	}
	seen[e] = true
	again := fmt.Sprintf("run the cell of %s again", e.name)
	if e.name != fn {
		again = fmt.Sprintf("run the cells of %s and then of %s again", e.name, fn)
	}
	for _, u := range e.uses {
		name, now := u.name, n.names[u.name]
		if !u.known() {
			continue
		}
		changed := func(was, is, help string) *refusal {
			return &refusal{fmt.Sprintf("%s: %s was %s when %s was declared (%s), and is %s since; Go calls of %s still see the old meaning",
				u.at, name, was, e.name, e.where, is, fn), help}
		}
		newName := again + ", so that it is compiled with the new meaning, or give the new " + name + " another name"
		switch {
		case now == nil:
			if p := n.imports[name]; p != "" && p != u.path {
				return changed(u.meaning(), "package "+p, newName)
			}
		case isFixed(u.decl) && !same(u.decl, now, map[[2]*entry]bool{}), !isFixed(u.decl) && isFixed(now), u.path != "", u.decl == nil && predeclared[name]:
			return changed(u.meaning(), fmt.Sprintf("the %s of %s", now.kind(), now.where), newName)
		case isFixed(now):
			if r := n.changedIn(now, fn, seen); r != nil {
				return r
			}
		}
		if u.typ == nil {
			continue
		}
		v, ok := n.current(name)
		if !ok || v.Type() == u.typ {
			continue
		}
		is := oneOf(v.Type())
		if now != nil {
			is += " (" + now.where.String() + ")"
		}
		help := again + " so that it is compiled for the new type, or give the new " + name + " another name"
		if u.typ.Kind() == reflect.Func {
			help = fmt.Sprintf("%s, with its call of %s changed to the new parameters and results", again, name)
		}
		return changed(oneOf(u.typ), is, help)
	}
	return nil
}

// oneOf is the name of a type with its article: an int, a uint.
func oneOf(t reflect.Type) string {
	name := t.String()
	if strings.IndexByte("aeioAEIO", name[0]) >= 0 {
		return "an " + name
	}
	return "a " + name
}

// meaning says what a name was.
func (u used) meaning() string {
	switch {
	case u.decl != nil:
		return fmt.Sprintf("the %s of %s", u.decl.kind(), u.decl.where)
	case u.path != "":
		return "package " + u.path
	case u.typ != nil:
		return oneOf(u.typ)
	}
	return "Go's own " + u.name
}

// same reports whether two declarations of a constant or type mean the same, as
// when the cell was run twice.
func same(a, b *entry, seen map[[2]*entry]bool) bool {
	if a == b || seen[[2]*entry{a, b}] {
		return true
	}
	seen[[2]*entry{a, b}] = true
	if !isFixed(a) || !isFixed(b) || a.name != b.name || a.text != b.text || len(a.uses) != len(b.uses) {
		return false
	}
	for i, u := range a.uses {
		v := b.uses[i]
		if u.name != v.name || u.path != v.path || u.typ != v.typ || isFixed(u.decl) != isFixed(v.decl) ||
			isFixed(u.decl) && !same(u.decl, v.decl, seen) {
			return false
		}
	}
	return true
}
