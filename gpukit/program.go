package gpukit

import (
	"errors"
	"fmt"
	"go/ast"
	"go/token"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"

	"gpunotes/gpukit/host"
	"gpunotes/gpukit/internal/cpu"
	"gpunotes/gpukit/internal/frontend"
	"gpunotes/gpukit/internal/ir"
	"gpunotes/gpukit/internal/shape"
	"gpunotes/gpukit/internal/source"
)

// programCache keeps what was compiled on a device. Both maps are bounded: when
// one is full it is emptied, and what is still in use is compiled again.
type programCache struct {
	functions map[functionKey]*function
	programs  map[programKey]*program
}

const maxPrograms = 1024

// functionKey finds a function again without looking at its source: in a
// notebook, as long as no cell has changed a declaration.
type functionKey struct {
	id       source.ID
	notebook *host.Notebook
	version  uint64
}

// function is a function value whose source was found and read.
type function struct {
	value  any // held: a freed closure's identity could come to mean another
	name   string
	scope  source.Scope
	source *frontend.Program
	uses   []use // functions that a notebook's scopes resolved
	lines  map[sourceLine]string

	mu       sync.Mutex
	retained []*call // calls that are over and can run again, the last one last
}

// use is a function that another one calls. A notebook variable can be assigned
// another function in the middle of a statement, which no cell's end announces.
type use struct {
	scope source.Scope
	name  string
	decl  *ast.FuncDecl
}

// sourceLine is a place in the source, file and line.
type sourceLine struct {
	file string
	line int
}

// note keeps the text of a declaration, for listings.
func (f *function) note(at token.Position, text string) {
	if f.lines == nil {
		f.lines = map[sourceLine]string{}
	}
	for i, s := range strings.Split(text, "\n") {
		f.lines[sourceLine{at.Filename, at.Line + i}] = strings.TrimSpace(s)
	}
}

// withSource puts the line of the source behind each comment of a listing that names
// a position.
func (f *function) withSource(listing string) string {
	var b strings.Builder
	last := ""
	for line := range strings.Lines(listing) {
		at, ok := strings.CutPrefix(strings.TrimSpace(line), "; ")
		place := strings.Split(at, ":")
		if n := len(place); ok && n >= 3 {
			k, _ := strconv.Atoi(place[n-2])
			if text := f.lines[sourceLine{strings.Join(place[:n-2], ":"), k}]; text != "" && text != last {
				line = fmt.Sprintf("; %-16s  %s\n", at, text)
				last = text
			}
		}
		b.WriteString(line)
	}
	return b.String()
}

// current reports whether every name still stands for the same function.
func (f *function) current() bool {
	for _, u := range f.uses {
		if d, ok := u.scope.Lookup(u.name); !ok || d.Func != u.decl {
			return false
		}
	}
	return true
}

// programKey is everything that the code of a program depends on.
type programKey struct {
	source  string
	options options
}

// program is the code of a function for this device.
type program struct {
	once   sync.Once
	err    error
	ir     *ir.Func // optimised
	kernel kernel   // the function itself
	// worthForms says that the function has loops or checks of which the facts of a
	// call may tell more.
	worthForms bool

	mu     sync.Mutex
	forms  map[shape.Facts]*form
	checks checks
}

// known is the function that fn was found to be before, or nil, and its key.
func (d *Device) known(fn any) (*function, functionKey) {
	if f, ok := fn.(*function); ok { // found already
		return f, functionKey{}
	}
	key := functionKey{id: source.Identity(fn), notebook: host.Current().Source}
	if key.notebook != nil {
		key.version = key.notebook.Version()
	}
	if key.id != 0 {
		d.mu.Lock()
		f := d.programs.functions[key]
		d.mu.Unlock()
		if f != nil && f.current() {
			return f, key
		}
	}
	return nil, key
}

// function finds and reads the source of fn.
func (d *Device) function(fn any) (*function, error) {
	known, key := d.known(fn)
	if known != nil {
		return known, nil
	}
	src, err := source.Resolve(fn, key.notebook)
	if err != nil {
		return nil, err
	}
	f := &function{value: fn, name: src.Name, scope: src.Scope}
	if src.Builtin != "" {
		f.source, err = frontend.CompileMath(src.Builtin)
	} else {
		f.note(src.Where, src.Text())
		f.source, err = frontend.Compile(f.input(src, key.notebook != nil && src.Package == ""))
	}
	if err != nil {
		return nil, compileError(src.Name, err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.programs.functions) >= maxPrograms || d.programs.functions == nil {
		d.programs.functions = map[functionKey]*function{}
	}
	d.programs.functions[key] = f
	return f, nil
}

// input puts a function and its scope into the words of the front end.
func (f *function) input(src *source.Func, notebook bool) frontend.Input {
	return frontend.Input{
		Decl:     src.Decl,
		Fset:     src.Fset,
		Imports:  imports(src.Imports, src.DotImports),
		Text:     src.Text(),
		Notebook: notebook,
		Lookup:   f.lookup(src.Scope, notebook),
		FreeLocal: func(name string) bool {
			return slices.ContainsFunc(src.Captured, func(c source.Capture) bool { return c.Name == name })
		},
	}
}

func imports(named map[string]string, dots []string) map[string]string {
	if len(dots) == 0 {
		return named
	}
	all := map[string]string{}
	for k, v := range named {
		all[k] = v
	}
	for _, p := range dots {
		all["."+p] = p
	}
	return all
}

// lookup resolves the names of a declaration.
func (f *function) lookup(scope source.Scope, notebook bool) func(string) (frontend.Decl, bool) {
	return func(name string) (frontend.Decl, bool) {
		d, ok := scope.Lookup(name)
		if !ok {
			return frontend.Decl{}, false
		}
		if notebook && d.Func != nil {
			f.uses = append(f.uses, use{scope, name, d.Func})
		}
		if d.Func != nil {
			f.note(d.Where, d.Text())
		}
		out := frontend.Decl{
			Name:    d.Name,
			Func:    d.Func,
			Gen:     d.Gen,
			Imports: imports(d.Imports, d.DotImports),
			Text:    d.Text(),
			Where:   d.Where,
		}
		if d.Gen != nil && d.Gen.Tok == token.VAR && d.Files != nil && !ast.IsExported(name) {
			out.Constant = !frontend.Assigned(d.Files()...)[name]
		}
		if d.Scope != nil {
			out.Lookup = f.lookup(d.Scope, notebook)
		}
		if d.Err != nil {
			out.Refuse, out.Help = d.Err.Error(), d.Help
		}
		if d.Value.IsValid() {
			if t := d.Value.Type(); t.Kind() != reflect.Func {
				out.GlobalType = t
			}
		}
		return out, true
	}
}

// compileError puts the front end's diagnostics into the public form.
func compileError(name string, err error) error {
	var ds frontend.Diagnostics
	if !errors.As(err, &ds) {
		return err
	}
	e := &CompileError{Func: name}
	for _, d := range ds {
		e.Faults = append(e.Faults, CompileFault{Pos: d.Pos.String(), Code: string(d.Code), Message: d.Message, Help: d.Help})
	}
	return e
}

// program returns the code of f for this device and its settings.
func (d *Device) program(f *function) (*program, error) {
	key := programKey{f.source.Key, d.options}
	o := &key.options
	o.sharedBytes, o.threadsPerBlock, o.numbaGeometry, o.numbaRegisters = 0, 0, false, 0 // the launch's, not the code's
	d.mu.Lock()
	p := d.programs.programs[key]
	if p == nil {
		if len(d.programs.programs) >= maxPrograms || d.programs.programs == nil {
			d.programs.programs = map[programKey]*program{}
		}
		p = &program{}
		d.programs.programs[key] = p
	}
	d.mu.Unlock()
	p.once.Do(func() {
		p.ir = ir.Narrow(ir.Optimize(f.source.Func), d.options.fastMath)
		if e, ok := d.engine.(cores); d.options.unchecked && (!ok || e.Engine == cpu.Portable) { // else it could end the process
			ir.DropBounds(p.ir)
		}
		ir.Walk(p.ir.Body, func(in *ir.Instr) {
			p.worthForms = p.worthForms || in.Op == ir.OpLoop || in.Op == ir.OpBounds || in.Op == ir.OpSliceBounds
		})
		k := newKernel(p.ir)
		p.kernel.f, p.kernel.given, p.kernel.fails, p.kernel.prints = p.ir, p.ir, k.fails, k.prints
		if !p.worthForms || d.gpu != nil { // else a form of it may be all that runs
			_, p.err = p.kernel.compiled(d)
		}
	})
	return p, p.err
}
