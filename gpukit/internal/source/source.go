// Package source says where the text of a function comes from: it takes a
// function value to its declaration and to the scope in which the identifiers
// of that declaration are resolved.
//
// A function typed in a notebook is found by the identity of its closure in the
// record that the Notebook keeps of the executed cells. A function of compiled
// Go is found by the name and the lines that the binary knows of it, in sources
// registered by Embed or else in the directory it was built from. A source that
// does not match the binary is an error, never a guess.
//
// The package parses; it checks no types. The syntax trees it hands out are
// shared, and must not be changed.
package source

import (
	"errors"
	"fmt"
	"go/ast"
	"go/token"
	"path"
	"reflect"
	"strconv"
	"strings"
)

// fset holds the positions of everything parsed here, notebook and compiled
// alike, so that one call tree never needs two of them.
var fset = token.NewFileSet()

// Func is a function whose source was found.
type Func struct {
	Name       string            // as the user knows it; of a literal, the variable it is assigned to
	Builtin    string            // "math.Sin": a function of math, math/bits or gpukit/simt, which needs no source; Decl is then nil
	Package    string            // import path; "" in a notebook
	Decl       *ast.FuncDecl     // a literal is presented as a declaration with the same positions
	Fset       *token.FileSet    // prints positions as "cell 3:4:7" or "file.go:12:3"
	Imports    map[string]string // local name to import path, as visible to Decl; read only
	DotImports []string          // paths imported as "."
	Scope      Scope             // resolves the package-level identifiers of Decl
	Captured   []Capture         // variables of an enclosing function that a literal uses
	Where      token.Position

	text string
}

// Text returns the exact source text of the declaration, "" for a Builtin.
func (f *Func) Text() string { return f.text }

// Capture is a variable of an enclosing function that a literal of compiled Go uses.
type Capture struct {
	Name     string
	Declared token.Position
	Used     token.Position // the first use in the literal
}

// Scope resolves identifiers that are not declared inside a function.
type Scope interface {
	// Lookup returns the current declaration of a package-level identifier.
	// Predeclared identifiers and package names are not found.
	Lookup(name string) (Decl, bool)
}

// Decl is what a package-level identifier stands for. A notebook variable that
// was not declared by a var declaration has neither Func nor Gen.
type Decl struct {
	Name       string
	Package    string            // import path; "" in a notebook
	Func       *ast.FuncDecl     // a function; the same pointer as long as it is the same declaration
	Gen        *ast.GenDecl      // the whole const, type or var declaration, so that iota keeps its meaning
	Imports    map[string]string // as visible to this declaration; read only
	DotImports []string
	Files      func() []*ast.File // all files of a compiled package, its tests included; else nil
	Scope      Scope              // resolves the identifiers of this declaration; nil for a variable without one
	Where      token.Position

	// Value is the current value of a notebook global: of a variable, or of a
	// function whose value is known. It is not valid otherwise.
	Value reflect.Value

	// Local marks a local of the function that encloses a literal. Constants and
	// types have their Gen, variables have nothing: their value is not known.
	Local bool

	// Err is not nil if the name exists but its declaration cannot be used: it
	// cannot be told, or is not what Go calls see. Help says what to do.
	Err  error
	Help string

	text string
}

// Text returns the exact source text of the declaration: of the function, or of
// the whole const, type or var group; "" if there is none.
func (d Decl) Text() string { return d.text }

// refusal is an error and its remedy.
type refusal struct{ what, help string }

func (r *refusal) Error() string { return r.what + ": " + r.help }

// refuse enters why the declaration cannot be used.
func (d *Decl) refuse(err error) {
	d.Err = err
	if r := (*refusal)(nil); errors.As(err, &r) {
		d.Err, d.Help = errors.New(r.what), r.help
	}
}

// Resolve finds the declaration of the function value fn. nb may be nil. The
// errors are in words for the user and say what to write instead.
func Resolve(fn any, nb *Notebook) (*Func, error) {
	if fn == nil {
		return nil, errors.New("nil is not a function: pass a function, e.g. func f(x float64) float64")
	}
	v := reflect.ValueOf(fn)
	if v.Kind() != reflect.Func {
		return nil, fmt.Errorf("a value of type %s is not a function: pass the function itself, e.g. f, not f(x)", v.Type())
	}
	if v.IsNil() {
		return nil, fmt.Errorf("the function of type %s is nil: assign a function to the variable first", v.Type())
	}
	if nb != nil {
		if f, ok := nb.resolve(Identity(fn)); ok {
			return f, nil
		}
	}
	return resolveCompiled(v, nb)
}

// importName is the local name of an import without one: the last element of
// the path, without a version.
func importName(p string) string {
	base := path.Base(p)
	if len(base) > 1 && base[0] == 'v' && path.Dir(p) != "." {
		if _, err := strconv.Atoi(base[1:]); err == nil {
			base = path.Base(path.Dir(p))
		}
	}
	if i := strings.LastIndex(base, ".v"); i > 0 {
		base = base[:i]
	}
	return base
}

// namedLit presents a literal as the declaration of the variable it is assigned to.
func namedLit(name *ast.Ident, lit *ast.FuncLit) *ast.FuncDecl {
	return &ast.FuncDecl{
		Name: &ast.Ident{NamePos: name.Pos(), Name: name.Name},
		Type: lit.Type,
		Body: lit.Body,
	}
}

// funcLit returns x if it is a function literal, in parentheses or not.
func funcLit(x ast.Expr) *ast.FuncLit {
	if x == nil {
		return nil
	}
	lit, _ := ast.Unparen(x).(*ast.FuncLit)
	return lit
}

// fits reports whether a declared signature can be that of t, as far as can be
// seen without resolving names.
func fits(ft *ast.FuncType, t reflect.Type) bool {
	if ft.TypeParams != nil {
		return false
	}
	in, out := fieldTypes(ft.Params), fieldTypes(ft.Results)
	if len(in) != t.NumIn() || len(out) != t.NumOut() {
		return false
	}
	for i, x := range in {
		if e, ok := x.(*ast.Ellipsis); ok {
			if !t.IsVariadic() || !typeFits(e.Elt, t.In(i).Elem()) {
				return false
			}
			continue
		}
		if t.IsVariadic() && i == len(in)-1 || !typeFits(x, t.In(i)) {
			return false
		}
	}
	for i, x := range out {
		if !typeFits(x, t.Out(i)) {
			return false
		}
	}
	return true
}

func fieldTypes(l *ast.FieldList) []ast.Expr {
	if l == nil {
		return nil
	}
	var ts []ast.Expr
	for _, f := range l.List {
		for range max(1, len(f.Names)) {
			ts = append(ts, f.Type)
		}
	}
	return ts
}

var basicKinds = map[string]reflect.Kind{
	"bool": reflect.Bool, "string": reflect.String, "uintptr": reflect.Uintptr, "byte": reflect.Uint8, "rune": reflect.Int32,
	"int": reflect.Int, "int8": reflect.Int8, "int16": reflect.Int16, "int32": reflect.Int32, "int64": reflect.Int64,
	"uint": reflect.Uint, "uint8": reflect.Uint8, "uint16": reflect.Uint16, "uint32": reflect.Uint32, "uint64": reflect.Uint64,
	"float32": reflect.Float32, "float64": reflect.Float64, "complex64": reflect.Complex64, "complex128": reflect.Complex128,
}

func typeFits(x ast.Expr, t reflect.Type) bool {
	switch x := ast.Unparen(x).(type) {
	case *ast.Ident:
		if k, ok := basicKinds[x.Name]; ok && x.Obj == nil {
			return t.Kind() == k && t.PkgPath() == ""
		}
	case *ast.ArrayType:
		if t.Name() != "" {
			return false
		}
		if x.Len == nil {
			return t.Kind() == reflect.Slice && typeFits(x.Elt, t.Elem())
		}
		if t.Kind() != reflect.Array || !typeFits(x.Elt, t.Elem()) {
			return false
		}
		if lit, ok := x.Len.(*ast.BasicLit); ok {
			n, err := strconv.ParseInt(lit.Value, 0, 64)
			return err != nil || n == int64(t.Len())
		}
	case *ast.StarExpr:
		return t.Kind() == reflect.Pointer && typeFits(x.X, t.Elem())
	case *ast.FuncType:
		return t.Kind() == reflect.Func && fits(x, t)
	case *ast.MapType:
		return t.Kind() == reflect.Map
	case *ast.ChanType:
		return t.Kind() == reflect.Chan
	case *ast.StructType:
		return t.Kind() == reflect.Struct
	case *ast.InterfaceType:
		return t.Kind() == reflect.Interface
	}
	return true // a named type: not decided here
}
