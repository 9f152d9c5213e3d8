package frontend

import (
	"cmp"
	"go/ast"
	"go/token"
	"go/types"
	"reflect"
	"sort"
	"strings"
)

// item is a package-level declaration that the function may need.
type item struct {
	name    string
	decl    Decl
	node    ast.Decl // as checked; nil for a variable that is not declared by syntax
	used    []string // imports in use, "name=path"
	imports map[string]string
	global  *types.Var // a captured global
	refuse  *refusal   // any use is refused
	table   bool       // a package-level array that is never assigned
	fn      *types.Func
	facts   *facts // of functions
}

// refusal is why a name cannot be used.
type refusal struct {
	code      Code
	msg, help string
}

// collect finds by name every declaration that the function may need. Names
// are taken without regard to scope, so that it may find too many: after
// checking, only what is really used counts (reachable).
func (c *compiler) collect() {
	fd := c.in.Decl
	root := &item{name: fd.Name.Name, node: fd, imports: c.in.Imports,
		decl: Decl{Name: fd.Name.Name, Func: fd, Text: c.in.Text, Where: c.in.Fset.Position(fd.Pos()), Lookup: c.in.Lookup}}
	c.names = map[string]*item{root.name: root}
	c.items = []*item{root}
	groups := map[*ast.GenDecl]*item{}
	for i := 0; i < len(c.items); i++ {
		if it := c.items[i]; it.node != nil {
			c.references(it, func(name string) { c.want(name, it.decl, groups, i == 0) })
		}
	}
}

// references calls want for each name in it that may be a package-level one,
// and notes the imports in use.
func (c *compiler) references(it *item, want func(name string)) {
	used := map[string]bool{}
	var visit func(ast.Node) bool
	visit = func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			ast.Inspect(n.X, visit)
			return false
		case *ast.BranchStmt:
			return false
		case *ast.Ident:
			if _, ok := it.imports[n.Name]; ok {
				used[n.Name] = true
			} else if n.Name != "_" {
				want(n.Name)
			}
		}
		return true
	}
	ast.Inspect(it.node, visit)
	for name, path := range it.imports {
		if used[name] || strings.HasPrefix(name, ".") && isLib(path) {
			it.used = append(it.used, name+"="+path)
		}
	}
	sort.Strings(it.used)
}

// lookup resolves a name that the declaration d uses.
func (c *compiler) lookup(d Decl, name string) (Decl, bool) {
	switch {
	case d.Lookup != nil:
		return d.Lookup(name)
	case c.in.Lookup != nil:
		return c.in.Lookup(name)
	}
	return Decl{}, false
}

// want looks a name that the declaration in uses up, once.
func (c *compiler) want(name string, in Decl, groups map[*ast.GenDecl]*item, local bool) {
	if _, ok := c.names[name]; ok {
		return
	}
	if local && c.in.FreeLocal != nil && c.in.FreeLocal(name) {
		c.insert(&item{name: name, refuse: &refusal{CodeFreeLocal, name + " is a local variable of the enclosing function",
			"pass it as an argument: a kernel sees its parameters, constants and other functions only"}})
		return
	}
	d, ok := c.lookup(in, name)
	if !ok {
		return
	}
	it := &item{name: name, decl: d, imports: d.Imports}
	switch {
	case d.Refuse != "":
		it.refuse = &refusal{CodeCaptured, d.Refuse, cmp.Or(d.Help, "pass it as an argument, or make it a constant")}
	case d.Func != nil:
		it.node = d.Func
	case d.GlobalType != nil:
		if t := captured(d.GlobalType); t != nil {
			it.global = types.NewVar(token.NoPos, nil, name, t)
		} else {
			it.refuse = &refusal{CodeCaptured, name + " is a global variable of type " + d.GlobalType.String() + ", which cannot be captured by value",
				"pass it as an argument; only numbers, bools and fixed arrays of these are captured"}
		}
	case d.Gen != nil && d.Gen.Tok == token.VAR && d.Constant && tableSpec(d.Gen, name) != nil:
		it.table = true
		it.node = &ast.GenDecl{TokPos: d.Gen.TokPos, Tok: token.VAR, Specs: []ast.Spec{tableSpec(d.Gen, name)}}
	case d.Gen != nil && d.Gen.Tok == token.VAR:
		it.refuse = &refusal{CodePackageVar, name + " is a package-level variable",
			"pass it as an argument, or make it a constant; a table is var " + name + " = [...]T{...}, not exported, that nothing assigns to"}
	case d.Gen != nil:
		if g := groups[d.Gen]; g != nil {
			c.names[name] = g
			return
		}
		groups[d.Gen] = it
		it.node = c.current(d)
	default:
		return
	}
	c.insert(it)
}

func (c *compiler) insert(it *item) {
	c.names[it.name] = it
	c.items = append(c.items, it)
}

// current returns the group of d without the names that another declaration
// has taken since, which happens in a notebook only. That a name of the group
// still depends on one of them would make its meaning a matter of luck: it is
// refused.
func (c *compiler) current(d Decl) *ast.GenDecl {
	stale := map[string]bool{}
	for _, s := range d.Gen.Specs {
		for _, id := range specNames(s) {
			if now, ok := c.lookup(d, id.Name); id.Name != "_" && (id.Name == c.in.Decl.Name.Name || !ok || now.Gen != d.Gen) {
				stale[id.Name] = true
			}
		}
	}
	if len(stale) == 0 {
		return d.Gen
	}
	group := *d.Gen
	group.Specs = nil
	for _, s := range d.Gen.Specs {
		switch s := s.(type) {
		case *ast.ValueSpec:
			spec := *s
			spec.Names = nil
			for _, id := range s.Names {
				if stale[id.Name] {
					id = &ast.Ident{NamePos: id.NamePos, Name: "_"}
				}
				spec.Names = append(spec.Names, id)
			}
			group.Specs = append(group.Specs, &spec)
			for _, v := range s.Values {
				c.refuseStale(v, stale, d)
			}
			if s.Type != nil {
				c.refuseStale(s.Type, stale, d)
			}
		case *ast.TypeSpec:
			if !stale[s.Name.Name] {
				group.Specs = append(group.Specs, s)
				c.refuseStale(s.Type, stale, d)
			}
		}
	}
	return &group
}

func (c *compiler) refuseStale(e ast.Expr, stale map[string]bool, d Decl) {
	ast.Inspect(e, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok && stale[id.Name] {
			c.stale = append(c.stale, staleUse{d.Gen, id})
		}
		return true
	})
}

// staleUse is a use of a name that was declared again since.
type staleUse struct {
	gen *ast.GenDecl
	id  *ast.Ident
}

func specNames(s ast.Spec) []*ast.Ident {
	switch s := s.(type) {
	case *ast.ValueSpec:
		return s.Names
	case *ast.TypeSpec:
		return []*ast.Ident{s.Name}
	}
	return nil
}

// tableSpec finds the declaration of name = [...]T{...} in a group.
func tableSpec(g *ast.GenDecl, name string) *ast.ValueSpec {
	for _, s := range g.Specs {
		if s, ok := s.(*ast.ValueSpec); ok && len(s.Names) == 1 && len(s.Values) == 1 && s.Names[0].Name == name {
			if lit, ok := ast.Unparen(s.Values[0]).(*ast.CompositeLit); ok {
				if t, ok := lit.Type.(*ast.ArrayType); ok && t.Len == nil {
					return nil
				}
				return s
			}
		}
	}
	return nil
}

// captured is the Go type of a global of type t, or nil if it cannot be
// captured by value.
func captured(t reflect.Type) types.Type {
	if t.Kind() == reflect.Array {
		if e := captured(t.Elem()); e != nil && t.Len() <= maxElements {
			a := types.NewArray(e, int64(t.Len()))
			if _, ok := layoutOf(a); ok {
				return a
			}
		}
		return nil
	}
	if t := reflectTypes[t.Kind()]; t != nil {
		return t
	}
	return nil
}

// Assigned lists the names of package-level variables that files may assign to
// or let others assign to: by name alone, so that it may list too many. A
// package-level array that is not exported and not listed for any file of its
// package is constant: see Decl.Constant.
func Assigned(files ...*ast.File) map[string]bool {
	names := map[string]bool{}
	var root func(e ast.Expr)
	root = func(e ast.Expr) {
		switch e := ast.Unparen(e).(type) {
		case *ast.Ident:
			names[e.Name] = true
		case *ast.IndexExpr:
			root(e.X)
		case *ast.SelectorExpr:
			root(e.X)
		case *ast.SliceExpr:
			root(e.X)
		}
	}
	for _, f := range files {
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.AssignStmt:
				for _, e := range n.Lhs {
					if n.Tok != token.DEFINE {
						root(e)
					}
				}
			case *ast.IncDecStmt:
				root(n.X)
			case *ast.RangeStmt:
				if n.Tok == token.ASSIGN {
					for _, e := range []ast.Expr{n.Key, n.Value} {
						if e != nil {
							root(e)
						}
					}
				}
			case *ast.UnaryExpr:
				if n.Op == token.AND {
					root(n.X)
				}
			case *ast.SliceExpr:
				root(n.X)
			case *ast.CallExpr:
				// A method may have a pointer receiver.
				if sel, ok := ast.Unparen(n.Fun).(*ast.SelectorExpr); ok {
					root(sel.X)
				}
			}
			return true
		})
	}
	return names
}

var reflectTypes = map[reflect.Kind]types.Type{
	reflect.Bool: types.Typ[types.Bool],
	reflect.Int:  types.Typ[types.Int], reflect.Int8: types.Typ[types.Int8], reflect.Int16: types.Typ[types.Int16],
	reflect.Int32: types.Typ[types.Int32], reflect.Int64: types.Typ[types.Int64],
	reflect.Uint: types.Typ[types.Uint], reflect.Uint8: types.Typ[types.Uint8], reflect.Uint16: types.Typ[types.Uint16],
	reflect.Uint32: types.Typ[types.Uint32], reflect.Uint64: types.Typ[types.Uint64], reflect.Uintptr: types.Typ[types.Uintptr],
	reflect.Float32: types.Typ[types.Float32], reflect.Float64: types.Typ[types.Float64],
}

// files builds one synthetic file for each set of imports in use.
func (c *compiler) files() []*ast.File {
	byImports := map[string]*ast.File{}
	var files []*ast.File
	for _, it := range c.items {
		if it.node == nil {
			continue
		}
		key := strings.Join(it.used, "\n")
		f := byImports[key]
		if f == nil {
			f = &ast.File{Name: ast.NewIdent("kernel")}
			if len(it.used) > 0 {
				f.Decls = append(f.Decls, importDecl(it.used))
			}
			byImports[key] = f
			files = append(files, f)
		}
		f.Decls = append(f.Decls, it.node)
	}
	return files
}

func importDecl(used []string) *ast.GenDecl {
	d := &ast.GenDecl{Tok: token.IMPORT}
	for _, u := range used {
		name, path, _ := strings.Cut(u, "=")
		if strings.HasPrefix(name, ".") {
			name = "."
		}
		d.Specs = append(d.Specs, &ast.ImportSpec{Name: ast.NewIdent(name), Path: &ast.BasicLit{Kind: token.STRING, Value: `"` + path + `"`}})
	}
	return d
}
