package frontend

import (
	"bytes"
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
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
	// Callee says that other functions call Decl, so that its results can be of
	// any type that one function can hand to another.
	Callee bool
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
	// Constant says of a variable declared in Gen that nothing in the program
	// assigns to it or to a part of it: see Assigned.
	Constant bool
	// Refuse, if not empty, says why the name cannot be used in a kernel, and
	// Help, if not empty, what to do instead.
	Refuse string
	Help   string
}

// Program is a compiled function.
type Program struct {
	// Func is verified. Its parameters are, in this order, those of the Go
	// function as Params says, those of captured globals as Captured says, the
	// places of a thread that it asks for (of kind ir.ThreadIdx and so on, with
	// their Dim), and the length of the dynamic shared memory, of kind ir.Shape,
	// if it uses that.
	Func     *ir.Func
	Params   []Param
	Captured []Capture
	Results  []ir.Type
	// Key holds everything that the result depends on: the text and place of
	// every declaration in the call tree and the types of captured globals.
	Key string

	UsesThreads bool // asks for the place of a thread
	Meets       bool // threads wait for each other or share memory
	Prints      bool
	Atomics     bool
}

// Kind says how an argument of the Go function is passed.
type Kind uint8

// The kinds of parameters.
const (
	Scalar Kind = iota
	Array       // a slice: an array of any strides
	Parts       // a struct or a fixed array, as the scalars that it consists of
)

// Param is a parameter of the Go function.
type Param struct {
	Name  string
	Kind  Kind
	First int     // of its parameters in Func.Params
	Type  ir.Type // of a Scalar, or of the elements of an Array
	// Of an Array: the parameters are the offset, Rank sizes and Rank strides.
	Rank    int
	Mem     ir.Mem
	Read    bool // some element, in the whole call tree
	Written bool
	// Of Parts: each is one parameter.
	Leaves []Leaf
	Form   *Form
}

// Form is what a struct or a fixed array is made of.
type Form struct {
	Text   string  // its type, as Go writes it
	Scalar ir.Type // if it is one
	Names  []string
	Fields []*Form // of a struct
	Elem   *Form   // of an array
	Len    int
}

// Leaf is a scalar of a struct or of a fixed array.
type Leaf struct {
	Path []int // field numbers and indices from outside in
	Type ir.Type
}

// Capture is a global variable of the notebook, taken by value at each call: a
// scalar is a parameter; a fixed array is a memory without parameters, whose
// element i is the array's i-th, counted through all dimensions, the last one
// the fastest.
type Capture struct {
	Name  string
	Array bool
	Type  ir.Type
	First int    // of a scalar: its parameter in Func.Params
	Mem   ir.Mem // of an array
	Dims  []int
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

// CompileMath compiles a function of the library itself, e.g. "math.Sin",
// "math/bits.Len64" or "gpunotes/gpukit/simt.UniformFloat64". The error is
// Diagnostics.
func CompileMath(name string) (*Program, error) {
	dot := strings.LastIndex(name, ".")
	path, short := name[:max(dot, 0)], name[dot+1:]
	if path == simtPath {
		return compileSimt(short)
	}
	fns := libFuncs(path)[short]
	if fns == nil {
		return nil, Diagnostics{{Code: CodePackage, Message: name + " is not a function that kernels can call",
			Help: "use a function of package math or math/bits, or write the function in Go"}}
	}
	p := &Program{Key: name}
	for _, fn := range fns {
		p.Results = append(p.Results, fn.Row().Out)
	}
	p.Func = ir.NewFunc(name, p.Results...)
	var args, out []ir.Value
	for i, t := range fns[0].Row().In {
		q := Param{Name: string(rune('x' + i)), First: i, Type: t}
		p.Params = append(p.Params, q)
		args = append(args, p.Func.AddParam(q.Name, t))
	}
	b := ir.NewBuilder(p.Func)
	for _, fn := range fns {
		out = append(out, b.Math(fn, args...))
	}
	b.Yield(out...)
	return p, ir.Verify(p.Func)
}

// compileSimt compiles a function that calls one of package simt and does
// nothing else.
func compileSimt(name string) (*Program, error) {
	fn, ok := simtPackage().Scope().Lookup(name).(*types.Func)
	if !ok {
		return nil, Diagnostics{{Code: CodePackage, Message: "package simt has no function " + name}}
	}
	sig := fn.Signature()
	names := make([]string, sig.Params().Len())
	params := make([]string, len(names))
	for i := range names {
		names[i] = cmp.Or(sig.Params().At(i).Name(), fmt.Sprintf("x%d", i))
		params[i] = names[i] + " " + types.TypeString(sig.Params().At(i).Type(), (*types.Package).Name)
	}
	results := make([]string, sig.Results().Len())
	for i := range results {
		results[i] = types.TypeString(sig.Results().At(i).Type(), (*types.Package).Name)
	}
	text := fmt.Sprintf("package simt\nfunc %s(%s) (%s) { return simt.%[1]s(%[4]s) }", name, strings.Join(params, ", "), strings.Join(results, ", "), strings.Join(names, ", "))
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, "simt."+name, text, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	return Compile(Input{Decl: file.Decls[0].(*ast.FuncDecl), Text: text, Fset: fset, Imports: map[string]string{"simt": simtPath}})
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
	var f *ir.Func
	if len(c.rep.list) == 0 {
		if err := ir.Verify(root.f); err != nil {
			panic(err)
		}
		f = ir.Inline(root.f) // the memories of the function keep their numbers
		c.divergences(f)
		c.localAtomics(f)
	}
	if len(c.rep.list) > 0 {
		c.rep.list.sort()
		return nil, c.rep.list
	}
	p := &Program{Func: root.f, Params: root.params, Results: root.f.Results, Key: c.key(reach)}
	next := 0
	for i := range p.Params {
		p.Params[i].First = next
		next += p.Params[i].count()
	}
	for _, h := range root.hidden {
		switch {
		case h.global != nil:
			k := Capture{Name: h.name, Type: h.t, First: next}
			y, _ := layoutOf(h.global.Type())
			if k.Array = !y.scalar(); k.Array {
				k.First, k.Mem, k.Dims = 0, root.captured[h], y.dims()
			} else {
				next++
			}
			p.Captured = append(p.Captured, k)
		case !h.shared:
			p.UsesThreads = true
		}
	}
	p.effects(f)
	return p, nil
}

// dims are the sizes of an array of arrays of scalars.
func (y *layout) dims() (d []int) {
	for ; y.elem != nil; y = y.elem {
		d = append(d, y.len)
	}
	return d
}

func (p *Param) count() int {
	switch p.Kind {
	case Array:
		return 2*p.Rank + 1
	case Parts:
		return len(p.Leaves)
	}
	return 1
}

// effects finds out what the whole call tree does, which f is.
func (p *Program) effects(f *ir.Func) {
	read, written := make([]bool, len(f.Mems)), make([]bool, len(f.Mems))
	ir.Walk(f.Body, func(in *ir.Instr) {
		switch in.Op {
		case ir.OpLoad:
			read[in.Mem] = true
		case ir.OpStore:
			written[in.Mem] = true
		case ir.OpAtomic:
			p.Atomics = true
			read[in.Mem], written[in.Mem] = true, true
		case ir.OpPrint:
			p.Prints = true
		case ir.OpBarrier, ir.OpWarpBarrier, ir.OpShuffle, ir.OpVote:
			p.Meets = true
		}
	})
	for i := range p.Params {
		if q := &p.Params[i]; q.Kind == Array {
			q.Read, q.Written = read[q.Mem], written[q.Mem]
		}
	}
	for _, m := range f.Mems {
		p.Meets = p.Meets || m.Space == ir.Shared
	}
}

// divergences refuses meetings that not all threads may reach.
func (c *compiler) divergences(f *ir.Func) {
	what := map[ir.Op]string{ir.OpBarrier: "barrier", ir.OpWarpBarrier: "barrier of the warp", ir.OpShuffle: "shuffle", ir.OpVote: "vote"}
	for i := range f.Params {
		// Only Launch runs threads in company, and gives all of them one offset.
		if p := &f.Params[i]; p.Kind == ir.Offset {
			p.Kind = ir.Shape
		}
	}
	for _, d := range ir.Divergences(f, nil) {
		c.rep.addAt(CodeDivergent, d.Pos,
			"move it out of the if or the loop, so that all threads of the block reach it; threads that have nothing to do may return from the kernel before",
			"the %s may be reached by some threads only: the condition at %v may differ between threads", what[d.Op], d.Branch)
	}
}

// localAtomics refuses atomic operations on slices of an array that no other
// thread sees.
func (c *compiler) localAtomics(f *ir.Func) {
	ir.Walk(f.Body, func(in *ir.Instr) {
		if in.Op == ir.OpAtomic && f.Mems[in.Mem].Space == ir.Local {
			c.rep.addAt(CodeAtomic, in.Pos, "write to the element as usual, or call simt.Shared on the array",
				"an atomic operation on the array %s, which no other thread sees", f.Mems[in.Mem].Name)
		}
	})
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
	if it.node == nil { // refused, and named only by what nobody uses
		return ""
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
