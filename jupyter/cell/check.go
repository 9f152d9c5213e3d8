package cell

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"reflect"
	"slices"
	"strconv"
	"strings"

	gtypes "github.com/cosmos72/gomacro/go/types"
	"github.com/cosmos72/gomacro/imports"
)

// The interpreter takes much that is not Go: a number where a string belongs, a
// function without its last return, constants that overflow. It then runs what nobody
// wrote. So go/types looks at every cell before it runs.
//
// It must never refuse a cell that is right. What a notebook has over Go is not looked
// for: the kinds of errors that are reported are listed. And where a name is known
// whose type is not, it has no type, and go/types is silent about it.

// A fault is an error that the check found.
type fault struct {
	pos  token.Pos
	code int
	msg  string
}

// Numbers that go/types gives to kinds of errors: the documentation of types.Error says
// that tools may read them so. They do not change between releases, unlike the texts.
const (
	duplicateDecl          = 10
	noNewVar               = 19
	notAnExpr              = 42
	unexportedLitField     = 68
	undeclaredImportedName = 73
	undeclaredName         = 75
	missingFieldOrMethod   = 76
	unusedExpr             = 100

	badImport = -2 // of our own
)

// reported are the numbers of the kinds of errors that mean the same in a notebook as
// in Go. Left out are those about names that are declared again, imported or declared
// in vain, the releases of the language, and what is only found in files.
var reported = func() map[int]bool {
	list := map[int]bool{badImport: true}
	for _, r := range [][2]int{
		{11, 18},   // recursive types; constants; untyped nil; assignments
		{20, 28},   // assignability, types, lengths, map keys
		{30, 31},   // embedded pointers, receivers
		{33, 34},   // a field and a method of one name, two methods
		{35, 36},   // blank, iota
		{41, 78},   // operands, operators, conversions of constants, indices, literals, names
		{81, 97},   // ... and builtin functions; assertions, conversions
		{100, 100}, // values that nobody uses
		{102, 106}, // returns, conditions
		{108, 121}, // loops, break and continue, switch, select, labels
		{123, 132}, // goto, calls, defer, go
	} {
		for code := r[0]; code <= r[1]; code++ {
			list[code] = true
		}
	}
	return list
}()

// maxFaults bounds how many errors of a cell are shown.
const maxFaults = 10

// check looks for errors in a cell without running it.
func (s *Session) check(src *source, nodes []ast.Node) *Error {
	s.compiling.Lock()
	defer s.compiling.Unlock()
	if s.compiled == nil {
		s.compiled = newCompiled()
	}
	n := newNotebook(s.compiled, s.ir.Comp)
	n.src, n.nodes = src, nodes
	var faults []fault
	for _, c := range src.chunks(nodes) {
		faults = append(faults, badImports(c)...)
		if !n.unsure {
			faults = append(faults, n.check(c)...)
		}
	}
	slices.SortStableFunc(faults, func(a, b fault) int { return int(a.pos) - int(b.pos) })
	var list []*Error
	told := map[string]bool{}
	for _, f := range faults {
		if !told[f.msg] && len(list) < maxFaults {
			list = append(list, src.failure(f))
		}
		told[f.msg] = true
	}
	if len(list) == 0 {
		return nil
	}
	list[0].Also = list[1:]
	return list[0]
}

func (src *source) failure(f fault) *Error {
	line, col := src.position(f.pos)
	if line == 0 {
		line, col = 1, 1
	}
	name := "CompileError"
	if f.code == badImport {
		name = "ImportError"
	}
	return src.fault(name, line, col, f.msg)
}

// badImports finds packages that are not compiled in. gomacro would build a plugin,
// which this binary cannot load, and go on with an empty package.
func badImports(c Chunk) (faults []fault) {
	for _, spec := range importsOf(c.Nodes) {
		path, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			continue
		}
		if _, ok := imports.Packages[path]; !ok {
			faults = append(faults, fault{spec.Path.Pos(), badImport, fmt.Sprintf("package %q is not compiled into this kernel%s", path, importHint(path))})
		}
	}
	return faults
}

func importsOf(nodes []ast.Node) (specs []*ast.ImportSpec) {
	for _, node := range nodes {
		if d, ok := node.(*ast.GenDecl); ok && d.Tok == token.IMPORT {
			for _, spec := range d.Specs {
				if spec, ok := spec.(*ast.ImportSpec); ok && spec.Path != nil {
					specs = append(specs, spec)
				}
			}
		}
	}
	return specs
}

// A look is the check of one chunk.
type look struct {
	*notebook
	tree     *ast.File
	body     *ast.FuncDecl // around statements; nil for declarations that may refer to each other
	pkg      *types.Package
	info     *types.Info
	imported map[string]string // names of packages to their paths
	outside  []outsider
	twice    []fault // methods of outsiders that the chunk declares again
	faults   []fault
	// doubt is set when the interpreter's way with what is declared again is not Go's.
	doubt bool
}

// givenUp is for tests: it is told why a chunk could not be checked.
var givenUp func(reason any)

// check looks for errors in a chunk, and notes what it declares.
func (n *notebook) check(c Chunk) (faults []fault) {
	defer func() {
		n.own = nil
		if r := recover(); r != nil {
			n.unsure, faults = true, nil // nodes that only gomacro has
			if givenUp != nil {
				givenUp(r)
			}
		}
	}()
	l := &look{notebook: n, pkg: home(), imported: map[string]string{}}
	l.build(c)
	l.supply()
	if n.unsure {
		return nil
	}
	l.methods(true)
	l.run(false)
	l.methods(false)
	l.declare(c)
	l.findPictures()
	if l.doubt || n.unsure {
		return nil
	}
	return l.judge()
}

// build makes a file of the chunk: of statements, in a function; then a variable that
// they declare does not hide the old one from its own value.
func (l *look) build(c Chunk) {
	l.tree = &ast.File{Name: &ast.Ident{NamePos: c.Nodes[0].Pos(), Name: homeName}, Package: c.Nodes[0].Pos()}
	l.own = map[string]bool{}
	if g, ok := c.Nodes[0].(*ast.GenDecl); c.Decl && (len(c.Nodes) > 1 || !ok || g.Tok != token.VAR && g.Tok != token.CONST) {
		for _, node := range c.Nodes {
			switch d := node.(type) {
			case *ast.FuncDecl:
				if d.Recv == nil {
					l.own[d.Name.Name] = true
					l.doubt = l.doubt || d.Name.Name == "init"
				}
			case *ast.GenDecl:
				for _, id := range declaredBy(d) {
					l.own[id.Name] = true
				}
			}
		}
		for _, node := range c.Nodes {
			d := node.(ast.Decl)
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv != nil && len(f.Recv.List) == 1 && !l.own[receiver(f.Recv.List[0].Type)] {
				o := outsider{f, receiver(f.Recv.List[0].Type), asFunction(f)}
				if slices.ContainsFunc(l.outside, func(p outsider) bool {
					return p.base == o.base && p.method.Name.Name == f.Name.Name && f.Name.Name != "_"
				}) {
					l.twice = append(l.twice, fault{f.Name.Pos(), duplicateDecl, fmt.Sprintf("method %s.%s is declared twice in this cell", o.base, f.Name.Name)})
				}
				l.outside = append(l.outside, o)
				d = o.f
			}
			l.tree.Decls = append(l.tree.Decls, d)
		}
		for _, spec := range importsOf(c.Nodes) {
			if path, err := strconv.Unquote(spec.Path.Value); err == nil {
				name := packageName(path)
				if spec.Name != nil {
					name = spec.Name.Name
				}
				l.own[name], l.imported[name] = true, path
				if name == "." && imports.Packages[path].Name != "" {
					l.all(path)
				}
			}
		}
		return
	}
	var list []ast.Stmt
	for _, node := range c.Nodes {
		switch x := node.(type) {
		case ast.Decl:
			list = append(list, &ast.DeclStmt{Decl: x})
		case ast.Expr:
			exprs := valuesOf(x)
			if exprs == nil {
				exprs = []ast.Expr{x}
			}
			for _, e := range exprs {
				list = append(list, &ast.ExprStmt{X: e})
			}
		case ast.Stmt:
			list = append(list, x)
		}
	}
	pos := c.Nodes[0].Pos()
	l.body = &ast.FuncDecl{
		Name: &ast.Ident{NamePos: pos, Name: "_"},
		Type: &ast.FuncType{Func: pos, Params: &ast.FieldList{Opening: pos, Closing: pos}},
		Body: &ast.BlockStmt{Lbrace: pos, List: list, Rbrace: pos},
	}
	l.tree.Decls = []ast.Decl{l.body}
}

// An outsider is a method of a type that the chunk does not declare. go/types knows
// methods only beside their types: to it, this is a function.
type outsider struct {
	method *ast.FuncDecl
	base   string
	f      *ast.FuncDecl
}

// asFunction makes the receiver of a method its first parameter.
func asFunction(m *ast.FuncDecl) *ast.FuncDecl {
	f, t, params := *m, *m.Type, *m.Type.Params
	params.List = nil
	for _, field := range append(slices.Clone(m.Recv.List), m.Type.Params.List...) {
		named := *field
		if len(named.Names) == 0 {
			named.Names = []*ast.Ident{{NamePos: field.Pos(), Name: "_"}}
		}
		params.List = append(params.List, &named)
	}
	t.Params = &params
	f.Recv, f.Name, f.Type = nil, &ast.Ident{NamePos: m.Name.Pos(), Name: "_"}, &t
	return &f
}

// declaredBy lists the names that a declaration declares, but for imports.
func declaredBy(d *ast.GenDecl) (ids []*ast.Ident) {
	for _, spec := range d.Specs {
		switch spec := spec.(type) {
		case *ast.ValueSpec:
			ids = append(ids, spec.Names...)
		case *ast.TypeSpec:
			ids = append(ids, spec.Name)
		}
	}
	return ids
}

// supply puts what the chunk may refer to where go/types looks for it.
func (l *look) supply() {
	names := map[string]bool{}
	ast.Inspect(l.tree, func(node ast.Node) bool {
		switch x := node.(type) {
		case *ast.Ident:
			names[x.Name] = true
		case *ast.UnaryExpr:
			l.unsure = l.unsure || x.Op > token.TILDE // of macros
		case *ast.SelectorExpr:
			if id, ok := x.X.(*ast.Ident); ok {
				path := l.imported[id.Name]
				if path == "" {
					path = l.path(id.Name)
				}
				if path != "" {
					l.member(path, x.Sel.Name)
					l.unsure = l.unsure || twofold(path, x.Sel.Name)
				}
			}
		}
		return true
	})
	for name := range names {
		if l.own[name] || name == "_" || name == homeName {
			continue
		}
		obj := l.object(name)
		if p, ok := obj.(*types.PkgName); ok {
			obj = types.NewPkgName(token.NoPos, l.pkg, name, p.Imported()) // go/types wants its own
		}
		if obj != nil {
			l.pkg.Scope().Insert(obj)
		}
	}
}

// twofold reports whether a package has a type and a value of one name, which the
// interpreter keeps apart: either may be meant.
func twofold(path, name string) bool {
	p := imports.Packages[path]
	_, isType := p.Types[name]
	_, isValue := p.Binds[name]
	return isType && isValue
}

// messageWords say in messages what cells call types by. What is shown is of a type
// without a name, which packages of pictures need not import.
var messageWords = strings.NewReplacer(homeName+".", "",
	"struct{Data map[string]interface{}; Metadata map[string]interface{}; Transient map[string]interface{}}", "display.Data")

func (l *look) run(headsOnly bool) {
	l.faults = nil
	l.info = &types.Info{Types: map[ast.Expr]types.TypeAndValue{}, Defs: map[*ast.Ident]types.Object{}}
	conf := types.Config{
		GoVersion:        "go1.17",
		Importer:         l.compiled,
		IgnoreFuncBodies: headsOnly,
		Error: func(err error) {
			if e, ok := err.(types.Error); ok && !strings.HasPrefix(e.Msg, "\t") {
				code := reflect.ValueOf(e).FieldByName("go116code")
				if code.IsValid() && code.CanInt() {
					l.faults = append(l.faults, fault{e.Pos, int(code.Int()), messageWords.Replace(e.Msg)})
				}
			}
		},
		DisableUnusedImportCheck: true,
	}
	set := token.NewFileSet()
	file := set.AddFile("cell", l.src.file.Base(), l.src.file.Size())
	if l.src.values == 0 {
		file.SetLinesForContent([]byte(l.src.code)) // for messages that name another line
	}
	_ = types.NewChecker(&conf, set, l.pkg, l.info).Files([]*ast.File{l.tree})
}

// methods gives methods to the types of earlier cells, before the bodies that call them
// are looked at; and to types that the chunk declares again the methods that they had,
// which they keep.
func (l *look) methods(before bool) {
	typesHere, methodsHere := map[string]bool{}, map[string]map[string]bool{}
	for _, d := range l.tree.Decls {
		switch d := d.(type) {
		case *ast.GenDecl:
			for _, id := range declaredBy(d) {
				if d.Tok == token.TYPE {
					typesHere[id.Name] = true
				}
			}
		case *ast.FuncDecl:
			if d.Recv != nil && len(d.Recv.List) == 1 {
				base := receiver(d.Recv.List[0].Type)
				if methodsHere[base] == nil {
					methodsHere[base] = map[string]bool{}
				}
				methodsHere[base][d.Name.Name] = true
			}
		}
	}
	if !before {
		for name := range typesHere {
			obj, _ := l.pkg.Scope().Lookup(name).(*types.TypeName)
			if t := l.c.Types[name]; t != nil && obj != nil {
				l.again(obj, t.GoType(), methodsHere[name])
			}
			if l.declared[name] != nil {
				l.unsure = true // twice in this cell
			}
		}
		return
	}
	if len(l.outside) == 0 {
		return
	}
	if len(typesHere) > 0 {
		l.unsure = true // those of this look will not be those of the next
		return
	}
	l.run(true)
	for _, o := range l.outside {
		obj, _ := l.pkg.Scope().Lookup(o.base).(*types.TypeName)
		f, _ := l.info.Defs[o.f.Name].(*types.Func)
		if obj == nil || f == nil {
			continue
		}
		named, ok := obj.Type().(*types.Named)
		if !ok || named.Obj().Pkg() == nil || named.Obj().Pkg().Path() != homePath || types.IsInterface(named) {
			continue // not a type that can have methods
		}
		sig := f.Signature()
		var params []*types.Var
		for i := 1; i < sig.Params().Len(); i++ {
			params = append(params, sig.Params().At(i))
		}
		recv := types.NewParam(token.NoPos, l.notebook.pkg, "", sig.Params().At(0).Type())
		sig = types.NewSignatureType(recv, nil, nil, types.NewTuple(params...), sig.Results(), sig.Variadic())
		m := types.NewFunc(token.NoPos, l.notebook.pkg, o.method.Name.Name, sig)
		for i := range named.NumMethods() {
			if old := named.Method(i); old.Name() == m.Name() && !types.Identical(old.Type(), m.Type()) {
				l.unsure = true // the other one is called by now
			}
		}
		named.AddMethod(m)
	}
	l.pkg = home() // the next look begins anew
	l.supply()
}

// again notes that a type of an earlier cell is declared again.
func (l *look) again(obj *types.TypeName, old gtypes.Type, methods map[string]bool) {
	g, ok := old.(*gtypes.Named)
	named, ok2 := obj.Type().(*types.Named)
	if !ok || !ok2 || g.Obj().Name() != obj.Name() {
		return
	}
	if l.named[g] != nil {
		l.unsure = true // an earlier chunk uses it as it was
	}
	l.named[g] = named
	for i := range g.NumMethods() {
		if !methods[g.Method(i).Name()] {
			l.doubt = true // this chunk may call it
		}
	}
	l.own = nil
	l.addMethods(named, g)
}

// declare notes what the chunk declares, for the chunks behind it.
func (l *look) declare(c Chunk) {
	l.own = nil
	put := func(id *ast.Ident) {
		if id.Name == "_" {
			return
		}
		obj := l.info.Defs[id]
		if v, ok := obj.(*types.Var); ok {
			obj = types.NewVar(token.NoPos, l.notebook.pkg, id.Name, v.Type())
		}
		l.declared[id.Name] = obj
	}
	for _, node := range c.Nodes {
		switch x := node.(type) {
		case *ast.FuncDecl:
			if x.Recv == nil {
				put(x.Name)
			}
		case *ast.GenDecl:
			for _, id := range declaredBy(x) {
				put(id)
			}
		case *ast.AssignStmt:
			if x.Tok == token.DEFINE {
				for _, e := range x.Lhs {
					if id, ok := e.(*ast.Ident); ok {
						put(id)
					}
				}
			}
		}
	}
	for name, path := range l.imported {
		switch {
		case imports.Packages[path].Name == "":
			l.declared[name] = nil
		case name == ".":
			scope := l.all(path).Scope()
			for _, member := range scope.Names() {
				l.declared[member] = scope.Lookup(member)
			}
		case name != "_":
			l.declared[name] = types.NewPkgName(token.NoPos, l.notebook.pkg, name, l.compiled.pkg(path))
		}
	}
	for _, f := range l.faults {
		if f.code == duplicateDecl && !l.declaresOnce(f.pos) {
			l.doubt = true
			if l.body == nil {
				for name := range l.declared {
					if l.pkg.Scope().Lookup(name) != nil {
						l.declared[name] = nil
					}
				}
			}
		}
	}
}

// judge keeps the faults that are faults in a notebook, and says how to cure them.
func (l *look) judge() (faults []fault) {
	var again []ast.Node // statements := that declare nothing new
	var literals []ast.Node
	ast.Inspect(l.tree, func(node ast.Node) bool {
		switch x := node.(type) {
		case *ast.FuncLit:
			literals = append(literals, x)
		case *ast.AssignStmt:
			for _, f := range l.faults {
				if f.code == noNewVar && f.pos == x.TokPos {
					again = append(again, x)
				}
			}
		}
		return true
	})
	within := func(list []ast.Node, pos token.Pos) bool {
		return slices.ContainsFunc(list, func(n ast.Node) bool { return n.Pos() <= pos && pos < n.End() })
	}
	for _, f := range l.faults {
		switch {
		case f.code == duplicateDecl && l.declaresOnce(f.pos):
			faults = append(faults, f)
		case !reported[f.code] || strings.Contains(f.msg, "invalid type") || strings.Contains(f.msg, "invalid operand") || strings.Contains(f.msg, "unknown type") || strings.Contains(f.msg, "requires go1."):
		case within(again, f.pos):
		case f.code == unexportedLitField:
			// go/types takes the types of earlier cells for those of another package.
		case f.code == unusedExpr && l.body != nil && l.isTop(f.pos) && !within(literals, f.pos):
			// It is shown.
		case f.code == unusedExpr && slices.ContainsFunc(l.src.pictures, func(p *ast.ExprStmt) bool { return p.Pos() == f.pos }):
		default:
			f.msg = l.advise(f)
			faults = append(faults, f)
		}
	}
	return append(faults, l.twice...)
}

// findPictures notes the statements in the blocks of a chunk that are pictures, to be
// shown as they are at the top. fig.Title("x") is none: it gives fig again.
func (l *look) findPictures() {
	if l.body == nil {
		return
	}
	ast.Inspect(l.body.Body, func(node ast.Node) bool {
		switch x := node.(type) {
		case *ast.FuncLit:
			return false
		case *ast.ExprStmt:
			t := l.info.Types[x.X].Type
			_, alone := ast.Unparen(x.X).(*ast.Ident)
			_, call := ast.Unparen(x.X).(*ast.CallExpr) // not what a select receives
			if slices.Contains(l.body.Body.List, ast.Stmt(x)) || !alone && !call || !isPicture(t) {
				return true
			}
			if root := l.info.Types[rootOf(x.X)].Type; alone || root == nil || !types.Identical(root, t) {
				l.src.pictures = append(l.src.pictures, x)
			}
		}
		return true
	})
}

// isPicture reports whether a type of a compiled package says how it is drawn.
func isPicture(t types.Type) bool {
	named := t
	if p, ok := t.(*types.Pointer); ok {
		named = p.Elem()
	}
	if n, ok := named.(*types.Named); !ok || n.Obj().Pkg() == nil || n.Obj().Pkg().Path() == homePath {
		return false
	}
	methods := types.NewMethodSet(t)
	for _, name := range []string{"Render", "PNG", "SVG", "JPEG", "WriterTo"} {
		if methods.Lookup(nil, name) != nil {
			return true
		}
	}
	return !slices.ContainsFunc([]string{"ColorModel", "Bounds", "At"}, func(name string) bool { return methods.Lookup(nil, name) == nil }) // an image.Image
}

// declaresOnce reports whether pos is where a notebook, too, declares each name once: in
// the head of a function.
func (l *look) declaresOnce(pos token.Pos) (once bool) {
	in := func(list *ast.FieldList) bool { return list != nil && list.Pos() <= pos && pos < list.End() }
	ast.Inspect(l.tree, func(node ast.Node) bool {
		switch x := node.(type) {
		case *ast.FuncType:
			once = once || in(x.Params) || in(x.Results)
		case *ast.FuncDecl:
			once = once || in(x.Recv)
		}
		return true
	})
	return once
}

// isTop reports whether the expression at pos is a statement at the top of the cell.
func (l *look) isTop(pos token.Pos) bool {
	return slices.ContainsFunc(l.body.Body.List, func(s ast.Stmt) bool {
		e, ok := s.(*ast.ExprStmt)
		return ok && e.Pos() <= pos && pos < e.End()
	})
}
