package frontend

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/printer"
	"go/token"
	"go/types"
	"reflect"
	"sort"
	"strings"

	"gpunotes/gpukit/internal/ir"
)

// Input is a function to compile and the world it was written in.
type Input struct {
	Decl *ast.FuncDecl
	// Text is the exact source of Decl, for the key; when empty it is printed
	// from Decl.
	Text string
	// Fset holds the positions of Decl and of everything that Lookup gives.
	Fset *token.FileSet
	// Imports maps the package names visible to Decl to import paths; a dot
	// import of path p has the name ".p".
	Imports map[string]string
	// Lookup finds the current package-level declaration of a name; may be nil.
	Lookup func(name string) (Decl, bool)
	// FreeLocal reports whether a name is a local variable of a function that
	// encloses Decl; may be nil.
	FreeLocal func(name string) bool
	// Notebook says that Decl was typed in a cell.
	Notebook bool
}

// Decl is a package-level declaration.
type Decl struct {
	Name string
	// Func or Gen is the declaration; Gen is the whole const, type or var
	// group, the same pointer for each of its names.
	Func    *ast.FuncDecl
	Gen     *ast.GenDecl
	Imports map[string]string // as in Input
	Text    string            // exact source, for the key; printed when empty
	Where   token.Position
	// Lookup resolves the identifiers of this declaration, as Input.Lookup
	// does those of the function, and is used if that is nil.
	Lookup func(name string) (Decl, bool)
	// GlobalType is the type of a notebook's global variable, which is captured
	// by value at each call; nil for anything else.
	GlobalType reflect.Type
	// Refuse, if not empty, says why the name cannot be used in a kernel.
	Refuse string
}

// Program is a compiled function.
type Program struct {
	// Func is verified. Its parameters are the Go function's and then one for
	// each captured global.
	Func *ir.Func
	// Params and ParamNames are those of the Go function only.
	Params     []ir.Type
	ParamNames []string
	// Captured names the captured globals in the order of their parameters.
	Captured []string
	Results  []ir.Type
	// Key holds everything that the result depends on: the text and place of
	// every declaration in the call tree and the types of captured globals.
	Key string
}

// Compile compiles in.Decl and everything it calls. The error is Diagnostics:
// all faults of the call tree.
func Compile(in Input) (p *Program, err error) {
	c := &compiler{in: in, rep: report{fset: in.Fset, seen: map[Diagnostic]bool{}}}
	defer func() {
		if r := recover(); r != nil {
			p, err = nil, c.internal(r)
		}
	}()
	c.collect()
	c.check()
	reach := c.reachable()
	c.typeErrors(reach)
	c.law(reach)
	if len(c.rep.list) == 0 && c.invalid {
		// The error is where go/types followed a name without noting it, as in
		// a cycle of types.
		c.typeErrors(c.items)
	}
	if len(c.rep.list) > 0 {
		c.rep.list.sort()
		return nil, c.rep.list
	}
	return c.program(reach)
}

// CompileMath compiles a function of package math itself, e.g. "math.Sin". The
// error is Diagnostics.
func CompileMath(name string) (*Program, error) {
	short, ok := strings.CutPrefix(name, "math.")
	fns := mathFuncs()[short]
	if !ok || fns == nil {
		return nil, Diagnostics{{Code: CodePackage, Message: name + " is not a function that kernels can call",
			Help: "use a function of package math, or write the function in Go"}}
	}
	p := &Program{Key: name, Params: fns[0].Row().In}
	for _, fn := range fns {
		p.Results = append(p.Results, fn.Row().Out)
	}
	p.Func = ir.NewFunc(name, p.Results...)
	var args, out []ir.Value
	for i, t := range p.Params {
		p.ParamNames = append(p.ParamNames, string(rune('x'+i)))
		args = append(args, p.Func.AddParam(p.ParamNames[i], t))
	}
	b := ir.NewBuilder(p.Func)
	for _, fn := range fns {
		out = append(out, b.Math(fn, args...))
	}
	b.Yield(out...)
	return p, ir.Verify(p.Func)
}

// compiler is one run of Compile.
type compiler struct {
	in    Input
	rep   report
	items []*item          // items[0] is the function itself
	names map[string]*item // package-level names in use
	pkg   *types.Package
	info  types.Info
	errs  []types.Error
	byObj map[types.Object]*item
	used  map[types.Object]bool // by reachable declarations
	calls map[*item][]call      // in source order
	stale []staleUse
	// invalid says that the law met something without a type.
	invalid bool
}

// program lowers the reachable functions, callees first.
func (c *compiler) program(reach []*item) (*Program, error) {
	funcs := map[*item]*lowered{}
	for _, it := range c.callOrder() {
		funcs[it] = c.lower(it, funcs)
	}
	root := funcs[c.items[0]]
	if err := ir.Verify(root.f); err != nil {
		panic(err)
	}
	p := &Program{Func: root.f, Captured: root.captured, Results: root.f.Results, Key: c.key(reach)}
	for _, q := range root.f.Params[:len(root.f.Params)-len(root.captured)] {
		p.Params = append(p.Params, root.f.Type(q.Value))
		p.ParamNames = append(p.ParamNames, q.Name)
	}
	return p, nil
}

// key writes down every declaration of the call tree.
func (c *compiler) key(reach []*item) string {
	var parts []string
	for _, it := range reach[1:] {
		parts = append(parts, c.keyOf(it))
	}
	sort.Strings(parts)
	return c.keyOf(reach[0]) + strings.Join(parts, "")
}

func (c *compiler) keyOf(it *item) string {
	if it.global != nil {
		return fmt.Sprintf("var %s %v\n", it.name, it.global.Type())
	}
	text := it.decl.Text
	if text == "" {
		text = c.print(it.node)
	}
	// Positions are part of the faults that a program reports, and imports of
	// what its names mean.
	return fmt.Sprintf("%v %q %q\n", c.in.Fset.Position(it.node.Pos()), it.used, text)
}

func (c *compiler) print(n ast.Node) string {
	var b bytes.Buffer
	if err := printer.Fprint(&b, c.in.Fset, n); err != nil {
		return err.Error()
	}
	return b.String()
}

// internal makes the report of a fault of this package.
func (c *compiler) internal(r any) (ds Diagnostics) {
	d := Diagnostic{Code: CodeInternal, Message: fmt.Sprintf("internal error: %v", r),
		Help: "this is a fault of gpukit, not of the function; please report it with this text:\n"}
	defer func() {
		// The syntax tree itself may be what is broken.
		if recover() != nil {
			ds = Diagnostics{d}
		}
	}()
	d.Pos = c.in.Fset.Position(c.in.Decl.Pos())
	d.Help += c.print(c.in.Decl)
	return Diagnostics{d}
}
