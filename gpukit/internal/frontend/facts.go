package frontend

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"
)

// facts are what must be known of a function's arrays and slices before it is
// lowered.
type facts struct {
	c *compiler
	// memory holds the variables whose arrays are indexed by what is not a
	// constant, or sliced: they live in memory, others in SSA form.
	memory map[types.Object]bool
	// shared holds the variables that simt.Shared was called on.
	shared map[types.Object]bool
	// assigned holds the variables that are assigned, whole or in part, after
	// their declaration.
	assigned map[types.Object]bool
	// sliced holds the variables whose arrays are sliced.
	sliced map[types.Object]bool
	// parent joins the slice variables that are views of one array; the
	// root of each set has its source, if it is known, in source.
	parent map[types.Object]types.Object
	source map[types.Object]source
	slices []types.Object // slice variables that get a value in the function
	loops  []loopNode
}

// loopNode is a loop: what its head or body declares is new in each iteration.
type loopNode struct {
	ast.Node
	body *ast.BlockStmt
}

// source is what slices are views of: a parameter, the arrays of a variable, or
// the dynamic shared memory.
type source struct {
	obj   types.Object
	group int
}

// factsOf gathers the facts and refuses slices that can be views of more than
// one array: memories have no addresses at run time.
func (c *compiler) factsOf(it *item) *facts {
	f := &facts{c: c, memory: map[types.Object]bool{}, shared: map[types.Object]bool{}, assigned: map[types.Object]bool{}, sliced: map[types.Object]bool{},
		parent: map[types.Object]types.Object{}, source: map[types.Object]source{}}
	fd := it.node.(*ast.FuncDecl)
	for _, p := range fd.Type.Params.List {
		for _, id := range p.Names {
			if obj := c.info.Defs[id]; obj != nil && isSlice(obj.Type()) {
				f.source[obj] = source{obj, 0}
			}
		}
	}
	if fd.Body == nil {
		return f
	}
	ast.Inspect(fd.Body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ForStmt:
			f.loops = append(f.loops, loopNode{n, n.Body})
		case *ast.RangeStmt:
			f.loops = append(f.loops, loopNode{n, n.Body})
			if n.Value != nil && isArray(c.info.TypeOf(n.X)) {
				f.needsMemory(n.X)
			}
		case *ast.IndexExpr:
			if isArray(c.info.TypeOf(n.X)) && c.info.Types[n.Index].Value == nil {
				f.needsMemory(n.X)
			}
		case *ast.SliceExpr:
			if isArray(c.info.TypeOf(n.X)) {
				f.needsMemory(n.X)
				if obj := f.root(n.X); obj != nil {
					f.assigned[obj], f.sliced[obj] = true, true
				}
			}
		case *ast.CallExpr:
			if path, name := c.libFunc(n); path == simtPath && name == "Shared" && len(n.Args) == 1 {
				if u, ok := ast.Unparen(n.Args[0]).(*ast.UnaryExpr); ok {
					if obj := f.root(u.X); obj != nil {
						f.memory[obj], f.shared[obj] = true, true
					}
				}
			}
		case *ast.AssignStmt:
			for i, e := range n.Lhs {
				if id, ok := e.(*ast.Ident); !ok || c.info.Defs[id] == nil {
					f.assigns(e)
				}
				if len(n.Lhs) == len(n.Rhs) {
					f.view(e, n.Rhs[i])
				}
			}
		case *ast.IncDecStmt:
			f.assigns(n.X)
		case *ast.ValueSpec:
			for i, id := range n.Names {
				if len(n.Names) == len(n.Values) {
					f.view(id, n.Values[i])
				}
			}
		}
		if n, ok := n.(*ast.RangeStmt); ok {
			if n.Tok == token.ASSIGN {
				for _, e := range []ast.Expr{n.Key, n.Value} {
					if e != nil {
						f.assigns(e)
					}
				}
			}
			if n.Value != nil {
				f.view(n.Value, n.X)
			}
		}
		return true
	})
	f.outlives()
	return f
}

// root is the variable that e is a part of: through fields and elements of
// arrays, not of slices.
func (f *facts) root(e ast.Expr) types.Object {
	switch e := ast.Unparen(e).(type) {
	case *ast.Ident:
		if v, ok := f.c.objOf(e).(*types.Var); ok {
			return v
		}
	case *ast.IndexExpr:
		if isArray(f.c.info.TypeOf(e.X)) {
			return f.root(e.X)
		}
	case *ast.SelectorExpr:
		if sel := f.c.info.Selections[e]; sel != nil && sel.Kind() == types.FieldVal {
			return f.root(e.X)
		}
	}
	return nil
}

func (c *compiler) objOf(id *ast.Ident) types.Object {
	if obj := c.info.Defs[id]; obj != nil {
		return obj
	}
	return c.info.Uses[id]
}

func (f *facts) needsMemory(e ast.Expr) {
	if obj := f.root(e); obj != nil {
		f.memory[obj] = true
	}
}

func (f *facts) assigns(e ast.Expr) {
	if obj := f.root(e); obj != nil {
		f.assigned[obj] = true
	}
}

func (f *facts) find(obj types.Object) types.Object {
	for {
		p, ok := f.parent[obj]
		if !ok {
			return obj
		}
		obj = p
	}
}

// sourceOf is the array that a slice variable is a view of; ok is false for
// one that never gets a value.
func (f *facts) sourceOf(obj types.Object) (source, bool) {
	s, ok := f.source[f.find(obj)]
	return s, ok
}

// view notes that the slice variable to becomes a view of what e is one of.
func (f *facts) view(to, e ast.Expr) {
	id, ok := ast.Unparen(to).(*ast.Ident)
	if !ok {
		return
	}
	obj := f.c.objOf(id)
	if obj == nil || !isSlice(obj.Type()) {
		return
	}
	if !slices.Contains(f.slices, obj) {
		f.slices = append(f.slices, obj)
	}
	a := f.find(obj)
	s, known := f.source[a]
	of, src, found := f.viewed(e)
	if of != nil {
		b := f.find(of)
		if a == b {
			return
		}
		src, found = f.source[b]
		f.parent[b] = a
	}
	switch {
	case !found:
	case !known:
		f.source[a] = src
	case s != src:
		f.c.rep.add(CodeTwoArrays, id.Pos(), "use one variable for each array, or an if around the accesses; rows of one array can be exchanged by their index",
			"%s is a view of %s and here becomes one of %s", id.Name, name(s.obj), name(src.obj))
	}
}

// outlives refuses a slice that is kept from one iteration of a loop to the
// next while the array is declared in the loop: that is a new one each time.
func (f *facts) outlives() {
	for _, obj := range f.slices {
		src, ok := f.sourceOf(obj)
		if !ok || !f.memory[src.obj] || f.shared[src.obj] {
			continue
		}
		for _, b := range f.loops {
			if within(b.Node, src.obj.Pos()) && !within(b.body, obj.Pos()) {
				f.c.rep.add(CodeTwoArrays, obj.Pos(), "declare "+src.obj.Name()+" before the loop",
					"%s outlives the array %s, which is another one in each iteration", obj.Name(), src.obj.Name())
				break
			}
		}
	}
}

// name is how a report calls a source.
func name(obj types.Object) string {
	if fn, ok := obj.(*types.Func); ok {
		return "simt." + fn.Name() + "()"
	}
	return obj.Name()
}

func within(n ast.Node, p token.Pos) bool { return n.Pos() <= p && p < n.End() }

// viewed is what a slice expression is a view of: that of another variable, or
// a source.
func (f *facts) viewed(e ast.Expr) (types.Object, source, bool) {
	switch e := ast.Unparen(e).(type) {
	case *ast.Ident:
		if v, ok := f.c.info.Uses[e].(*types.Var); ok && isSlice(v.Type()) {
			return v, source{}, false
		}
	case *ast.IndexExpr:
		if isSlice(f.c.info.TypeOf(e.X)) {
			return f.viewed(e.X)
		}
	case *ast.SliceExpr:
		if isSlice(f.c.info.TypeOf(e.X)) {
			return f.viewed(e.X)
		}
		if obj := f.root(e.X); obj != nil {
			_, first := f.groupOf(e.X)
			return nil, source{obj, first}, true
		}
	case *ast.CallExpr:
		if f.c.info.Types[e.Fun].IsType() && len(e.Args) == 1 {
			return f.viewed(e.Args[0])
		}
		if obj := f.c.libObj(e); obj != nil && obj.Pkg() == simtPackage() {
			return nil, source{obj, 0}, true
		}
	}
	return nil, source{}, false
}

// groupOf gives the layout of a part of a variable and the first of its
// groups among the variable's.
func (f *facts) groupOf(e ast.Expr) (*layout, int) {
	e = ast.Unparen(e)
	y, _ := layoutOf(f.c.info.TypeOf(e))
	switch e := e.(type) {
	case *ast.IndexExpr:
		_, g := f.groupOf(e.X)
		return y, g
	case *ast.SelectorExpr:
		sel := f.c.info.Selections[e]
		in, g := f.groupOf(e.X)
		for _, i := range sel.Index() {
			if in == nil || i >= len(in.fields) {
				return y, g
			}
			g += in.field(i)
			in = in.fields[i]
		}
		return y, g
	}
	return y, 0
}
