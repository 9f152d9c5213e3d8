package source

import (
	"fmt"
	"go/ast"
	"go/token"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
)

// Notebook records the declarations of the cells that an interpreter executed.
// It is safe for concurrent use, as far as its value function is.
type Notebook struct {
	value   func(string) (reflect.Value, bool)
	version atomic.Uint64

	mu      sync.Mutex
	names   map[string]*entry // the latest declaration of each name
	funcs   map[ID]*entry     // every function ever recorded, by identity
	imports map[string]string // replaced, never changed: Func and Decl hand it out
	dots    []string
	// assigned says where a global is assigned inside a block or a function.
	assigned map[string]token.Position
}

// entry is one declaration of one name.
type entry struct {
	name  string
	fn    *ast.FuncDecl
	gen   *ast.GenDecl
	text  string
	where token.Position
	err   error
	id    ID
	held  reflect.Value           // the function; keeps its address, and so id, from being used again
	types map[string]reflect.Type // of the globals that a function uses, when it was recorded
}

// NewNotebook returns an empty record; value looks up a global's current value.
// It may be nil, and is called from the goroutine that calls Record, Resolve or
// Lookup, which it must not call itself.
func NewNotebook(value func(name string) (reflect.Value, bool)) *Notebook {
	return &Notebook{
		value:    value,
		names:    map[string]*entry{},
		funcs:    map[ID]*entry{},
		imports:  map[string]string{},
		assigned: map[string]token.Position{},
	}
}

// Version changes with every Record. As long as it is the same, all names have
// the declarations they had, with one exception that only a new Lookup sees: a
// variable that running code has assigned another function.
func (n *Notebook) Version() uint64 { return n.version.Load() }

// Record notes the top-level declarations of text, a part of cell number cell
// that has just been executed and begins at line (1-based) of the cell, where
// blanks stand for what is before it in that line: imports,
// constants, types, variables, functions, and function literals assigned to a
// variable. Text that is not Go, such as macros and kernel commands, is passed
// over. A name declared again has the new declaration from then on; a function
// value that was recorded before keeps its own text, and is kept alive.
func (n *Notebook) Record(cell, line int, text string) error {
	if n == nil {
		return nil
	}
	if line < 1 {
		return fmt.Errorf("cell %d cannot begin at line %d: lines count from 1", cell, line)
	}
	items := splitItems("cell "+strconv.Itoa(cell), line, text)
	n.mu.Lock()
	defer n.mu.Unlock()
	defer n.version.Add(1)

	for i := range items {
		items[i].reassigned(func(id *ast.Ident) {
			n.assigned[id.Name] = fset.Position(id.Pos())
		})
	}
	// The functions of this text, by name; a later one replaces an earlier one.
	type fresh struct {
		*entry
		last bool
	}
	fns := map[string]fresh{}
	declare := func(e *entry, last bool) {
		if e.name == "_" {
			return
		}
		if _, ok := n.imports[e.name]; ok {
			n.imports = maps.Clone(n.imports)
			delete(n.imports, e.name)
		}
		delete(fns, e.name)
		n.names[e.name] = e
		if e.fn != nil {
			fns[e.name] = fresh{e, last}
		}
	}
	for i := range items {
		it, last := &items[i], i == len(items)-1
		variable := func(id *ast.Ident, value ast.Expr, gen *ast.GenDecl) {
			e := &entry{name: id.Name, gen: gen, where: fset.Position(id.Pos())}
			if gen != nil {
				e.text = it.text(gen.Pos(), gen.End())
			}
			if lit := funcLit(value); lit != nil {
				e.fn, e.gen, e.text = namedLit(id, lit), nil, it.text(lit.Pos(), lit.End())
			}
			declare(e, last)
		}
		switch d := it.decl.(type) {
		case *ast.FuncDecl:
			if d.Recv == nil && d.Body != nil {
				declare(&entry{name: d.Name.Name, fn: d, text: it.text(d.Pos(), d.End()), where: fset.Position(d.Name.Pos())}, last)
			}
		case *ast.GenDecl:
			for _, s := range d.Specs {
				switch s := s.(type) {
				case *ast.ImportSpec:
					n.addImport(s)
				case *ast.TypeSpec:
					declare(&entry{name: s.Name.Name, gen: d, text: it.text(d.Pos(), d.End()), where: fset.Position(s.Name.Pos())}, last)
				case *ast.ValueSpec:
					for i, id := range s.Names {
						if d.Tok == token.VAR && len(s.Values) == len(s.Names) {
							variable(id, s.Values[i], d)
						} else if d.Tok == token.VAR {
							variable(id, nil, d)
						} else {
							declare(&entry{name: id.Name, gen: d, text: it.text(d.Pos(), d.End()), where: fset.Position(id.Pos())}, last)
						}
					}
				}
			}
		}
		if a, ok := it.stmt.(*ast.AssignStmt); ok && (a.Tok == token.DEFINE || a.Tok == token.ASSIGN) {
			for i, x := range a.Lhs {
				id, ok := ast.Unparen(x).(*ast.Ident)
				if !ok {
					continue
				}
				var value ast.Expr
				if len(a.Rhs) == len(a.Lhs) {
					value = a.Rhs[i]
				}
				// An assignment declares nothing, but may replace a function.
				if old := n.names[id.Name]; a.Tok == token.DEFINE || funcLit(value) != nil || old != nil && old.fn != nil {
					variable(id, value, nil)
				}
			}
		}
		for _, id := range it.names {
			declare(&entry{name: id.Name, where: token.Position{Filename: "cell " + strconv.Itoa(cell), Line: line}}, last)
		}
	}

	for name, e := range fns {
		e.types = n.usedTypes(e.fn)
		v, ok := n.function(name)
		if !ok || v.IsNil() || !fits(e.fn.Type, v.Type()) {
			continue
		}
		id := Identity(v.Interface())
		if old := n.funcs[id]; old != nil && old.err == nil && (len(old.fn.Body.List) > 0 || len(e.fn.Body.List) > 0) {
			continue // known before this text ran, so it is not the function written here; only empty ones share a closure
		}
		if at, ok := n.assigned[name]; ok && !e.last {
			// Code of this text that ran after the declaration may have put another function there.
			e.err = fmt.Errorf("%s: %s is also assigned at %s, so it is not certain that it still is the function written here; "+
				"declare it alone in a cell, under a name that nothing else assigns", e.where, name, at)
		}
		e.id, e.held = id, v
		n.funcs[id] = e.entry
	}
	return nil
}

// addImport makes an import visible to all cells.
func (n *Notebook) addImport(s *ast.ImportSpec) {
	p, err := strconv.Unquote(s.Path.Value)
	if err != nil {
		return
	}
	name := importName(p)
	if s.Name != nil {
		name = s.Name.Name
	}
	switch name {
	case "_":
	case ".":
		if !slices.Contains(n.dots, p) {
			n.dots = append(slices.Clip(n.dots), p)
		}
	default:
		n.imports = maps.Clone(n.imports)
		n.imports[name] = p
		delete(n.names, name)
	}
}

// current returns the current value of a global.
func (n *Notebook) current(name string) (v reflect.Value, ok bool) {
	if n.value == nil {
		return reflect.Value{}, false
	}
	defer func() {
		if recover() != nil { // an interpreter may panic about a name it does not like
			v, ok = reflect.Value{}, false
		}
	}()
	v, ok = n.value(name)
	if ok && v.IsValid() && v.Kind() == reflect.Interface && !v.IsNil() {
		v = v.Elem()
	}
	return v, ok && v.IsValid() && v.CanInterface()
}

// function returns the current value of a global that is a function, detached
// from the variable.
func (n *Notebook) function(name string) (reflect.Value, bool) {
	v, ok := n.current(name)
	if !ok || v.Kind() != reflect.Func {
		return v, false
	}
	return reflect.ValueOf(v.Interface()), true
}

// usedTypes returns the types that the globals which fn may refer to have now.
func (n *Notebook) usedTypes(fn *ast.FuncDecl) map[string]reflect.Type {
	ts := map[string]reflect.Type{}
	use := func(node ast.Node) bool {
		id, ok := node.(*ast.Ident)
		if !ok || id.Obj != nil || n.names[id.Name] == nil && n.notGlobal(id.Name) {
			return true
		}
		if _, seen := ts[id.Name]; !seen {
			ts[id.Name] = nil
			if v, ok := n.current(id.Name); ok {
				ts[id.Name] = v.Type()
			}
		}
		return true
	}
	ast.Inspect(fn.Type, use)
	ast.Inspect(fn.Body, use)
	return ts
}

// predeclared are Go's own identifiers, which a cell may declare anew.
var predeclared = func() map[string]bool {
	m := map[string]bool{}
	for _, name := range strings.Fields(`any bool byte comparable complex64 complex128 error float32 float64
		int int8 int16 int32 int64 rune string uint uint8 uint16 uint32 uint64 uintptr true false iota nil
		append cap clear close complex copy delete imag len make max min new panic print println real recover`) {
		m[name] = true
	}
	return m
}()

// notGlobal reports whether a name that no cell declared is an import or predeclared.
func (n *Notebook) notGlobal(name string) bool { return n.imports[name] != "" || predeclared[name] }

// resolve finds the function with the identity id.
func (n *Notebook) resolve(id ID) (*Func, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	e := n.funcs[id]
	if e == nil || id == 0 || e.err != nil {
		return nil, false
	}
	return &Func{
		Name: e.fn.Name.Name, Decl: e.fn, Fset: fset, Imports: n.imports, DotImports: n.dots,
		Scope: cellScope{n, e}, Where: e.where, text: e.text,
	}, true
}

// failure returns why the function with the identity id has no certain text.
func (n *Notebook) failure(id ID) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if e := n.funcs[id]; e != nil {
		return e.err
	}
	return nil
}

// cellScope is the notebook's scope as seen by the function of one cell.
type cellScope struct {
	n    *Notebook
	from *entry
}

// Lookup implements Scope. A function is found by the value that the name has
// now, so that a name to which another function was assigned has that one's
// declaration.
func (s cellScope) Lookup(name string) (Decl, bool) {
	n := s.n
	n.mu.Lock()
	defer n.mu.Unlock()
	e := n.names[name]
	if e == nil && n.notGlobal(name) {
		return Decl{}, false
	}
	if e != nil && e.gen != nil && e.gen.Tok != token.VAR {
		return n.decl(s, name, e), true
	}
	v, ok := n.current(name)
	if e == nil && !ok {
		return Decl{}, false
	}
	if e == nil {
		e = &entry{name: name}
	}
	if ok && v.Kind() == reflect.Func {
		v = reflect.ValueOf(v.Interface())
		id := Identity(v.Interface())
		known := n.funcs[id]
		switch {
		case id != 0 && e.id == id:
		case v.IsNil():
			e = &entry{name: name, where: e.where, err: fmt.Errorf("the function variable %s is nil: assign a function to it first", name)}
		case known != nil:
			e = known
		case resolvesCompiled(v):
			e = &entry{name: name, where: e.where, err: fmt.Errorf("%s holds the compiled function %s: call that one by its name", name, compiledName(v))}
		default:
			e = &entry{name: name, where: e.where, err: unknownFunction(name)}
		}
	}
	d := n.decl(s, name, e)
	if ok {
		d.Value = v
	}
	return d, true
}

// decl makes the Decl of an entry as seen from a scope.
func (n *Notebook) decl(s cellScope, name string, e *entry) Decl {
	d := Decl{Name: name, Func: e.fn, Gen: e.gen, Imports: n.imports, DotImports: n.dots, Where: e.where, Err: e.err, text: e.text}
	if e.fn != nil {
		d.Scope = cellScope{n, e}
	} else if e.gen != nil {
		d.Scope = cellScope{n, nil}
	}
	if s.from != nil {
		d.Recorded = s.from.types[name]
	}
	return d
}

// unknownFunction is the error for a function value that no cell declared; name may be "".
func unknownFunction(name string) error {
	what := "this function value was"
	if name != "" {
		what = "the function that the variable " + name + " holds was"
	}
	return fmt.Errorf("%s not declared at the top level of a cell, so its source is not known: declare it there with "+
		"func f(...) or f := func(...) and pass f; a function made inside another function or block, or one without a name, "+
		"cannot be compiled: pass what it captures as arguments", what)
}
