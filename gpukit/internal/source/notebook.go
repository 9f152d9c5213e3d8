package source

import (
	"fmt"
	"go/ast"
	"go/token"
	"maps"
	"path"
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
	methods []cellMethod
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
	held  reflect.Value // the function; keeps its address, and so id, from being used again
	uses  []used        // what the names in a function, constant or type meant when it was recorded
}

// cellMethod is a method that a cell declared.
type cellMethod struct {
	decl *ast.FuncDecl
	recv string // in parentheses
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
// value that was recorded before keeps its own text, and is kept alive. It is
// refused as long as a constant, a type, a package or the type of a variable
// that it uses is not what it was: Go calls of it keep the old meaning.
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
	var fixed []func()
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
			if d.Recv != nil {
				n.methods = append(n.methods, cellMethod{d, it.text(d.Recv.Pos(), d.Recv.End())})
			} else if d.Body != nil {
				declare(&entry{name: d.Name.Name, fn: d, text: it.text(d.Pos(), d.End()), where: fset.Position(d.Name.Pos())}, last)
			}
		case *ast.GenDecl:
			var typ ast.Expr // of the constants, and their values, which the next line may repeat
			var values []ast.Expr
			for _, s := range d.Specs {
				switch s := s.(type) {
				case *ast.ImportSpec:
					n.addImport(s)
				case *ast.TypeSpec:
					e := &entry{name: s.Name.Name, gen: d, text: it.text(d.Pos(), d.End()), where: fset.Position(s.Name.Pos())}
					declare(e, last)
					fixed = append(fixed, func() { e.uses = n.usesOf(d, s.Type) })
				case *ast.ValueSpec:
					if s.Type != nil || len(s.Values) > 0 {
						typ, values = s.Type, s.Values
					}
					for i, id := range s.Names {
						if d.Tok == token.VAR && len(s.Values) == len(s.Names) {
							variable(id, s.Values[i], d)
						} else if d.Tok == token.VAR {
							variable(id, nil, d)
						} else {
							e := &entry{name: id.Name, gen: d, text: it.text(d.Pos(), d.End()), where: fset.Position(id.Pos())}
							declare(e, last)
							of := []ast.Node{typ}
							if i < len(values) {
								of = append(of, values[i])
							}
							fixed = append(fixed, func() { e.uses = n.usesOf(d, of...) })
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

	for _, note := range fixed {
		note()
	}
	for name, e := range fns {
		e.uses = n.usesOf(nil, e.fn.Type, e.fn.Body)
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
			e.err = &refusal{fmt.Sprintf("%s: %s is also assigned at %s, so it is not certain that it still is the function written here", e.where, name, at),
				"declare it alone in a cell, under a name that nothing else assigns"}
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
	if e == nil || id == 0 || e.err != nil || n.changed(e) != nil {
		return nil, false
	}
	return &Func{
		Name: e.fn.Name.Name, Decl: e.fn, Fset: fset, Imports: n.imports, DotImports: n.dots,
		Scope: cellScope{n}, Where: e.where, text: e.text,
	}, true
}

// failure returns why the function with the identity id has no certain text.
func (n *Notebook) failure(id ID) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	e := n.funcs[id]
	switch {
	case e == nil || id == 0:
		return nil
	case e.err != nil:
		return e.err
	}
	if r := n.changed(e); r != nil {
		return r
	}
	return nil
}

// cellScope is the notebook's scope. It is the same for the functions of all
// cells: one that was recorded when a name had another meaning is refused.
type cellScope struct{ n *Notebook }

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
		return n.decl(name, e), true
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
			e = &entry{name: name, where: e.where, err: &refusal{"the function variable " + name + " is nil", "assign a function to it first"}}
		case known != nil:
			e = known
		case resolvesCompiled(v):
			e = &entry{name: name, where: e.where, err: holdsCompiled(name, v)}
		default:
			e = &entry{name: name, where: e.where, err: n.unknownFunction(name, v)}
		}
		if r := n.changed(e); e.err == nil && r != nil {
			old := *e
			old.err = r
			e = &old
		}
	}
	d := n.decl(name, e)
	if ok {
		d.Value = v
	}
	return d, true
}

// decl makes the Decl of an entry.
func (n *Notebook) decl(name string, e *entry) Decl {
	d := Decl{Name: name, Func: e.fn, Gen: e.gen, Imports: n.imports, DotImports: n.dots, Where: e.where, text: e.text}
	if e.fn != nil || e.gen != nil {
		d.Scope = cellScope{n}
	}
	d.refuse(e.err)
	return d
}

// holdsCompiled is the error for a function variable that holds a function of
// compiled Go.
func holdsCompiled(name string, v reflect.Value) error {
	s := symbolOf(v)
	if b := s.builtin(); b != "" {
		call := path.Base(b)
		return &refusal{fmt.Sprintf("%s is a variable that holds %s", name, b), fmt.Sprintf("write %s(...) in place of %s(...)", call, name)}
	}
	return &refusal{fmt.Sprintf("%s is a variable that holds the compiled function %s", name, s.full), "declare a function that computes the same in a cell, and call that"}
}

// unknownFunction is the error for a function value of an interpreter that no
// cell declared; name may be "", and n nil. The caller holds the lock.
func (n *Notebook) unknownFunction(name string, v reflect.Value) error {
	what := "this function value was"
	if name != "" {
		what = "the function that the variable " + name + " holds was"
	}
	r := &refusal{what + " not declared at the top level of a cell, so its source is not known",
		"declare it there with func f(...) or f := func(...) and pass f; a function made inside another function or block, or one without a name, " +
			"cannot be compiled: pass what it captures as arguments"}
	if n == nil {
		return r
	}
	// An interpreter's methods do not say what they are; their types do, nearly.
	for _, m := range slices.Backward(n.methods) {
		expr := *m.decl.Type
		expr.Params = &ast.FieldList{List: slices.Concat(m.decl.Recv.List, expr.Params.List)}
		if fits(m.decl.Type, v.Type()) || fits(&expr, v.Type()) {
			r.what += fmt.Sprintf("; it may be the method %s of %s, and methods cannot be compiled", m.decl.Name.Name, fset.Position(m.decl.Name.Pos()))
			r.help = fmt.Sprintf("instead of a method, declare a function that takes the receiver %s as its first argument; instead of another function value, ", m.recv) +
				"declare a function at the top level of a cell with func f(...) or f := func(...), that takes what it captures as arguments"
			break
		}
	}
	return r
}
