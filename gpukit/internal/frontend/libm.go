package frontend

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io/fs"
	"slices"
	"strings"
	"sync"

	"gpunotes/gpukit/internal/ir"
	"gpunotes/gpukit/internal/libm"
)

// library is package libm as text.
type library struct {
	fset  *token.FileSet
	decls map[string]Decl
	mu    sync.Mutex
	funcs map[string]*Program // those compiled so far
	apart map[string]*ir.Func // by name, what OutlinedBody gave; of rare functions, those themselves
}

var libmText = sync.OnceValue(func() *library {
	lib := &library{fset: token.NewFileSet(), decls: map[string]Decl{}, funcs: map[string]*Program{}, apart: map[string]*ir.Func{}}
	names, err := fs.Glob(libm.Source, "*.go")
	if err != nil {
		panic(err)
	}
	var files []*ast.File
	for _, name := range names {
		text, err := libm.Source.ReadFile(name)
		if err != nil {
			panic(err)
		}
		file, err := parser.ParseFile(lib.fset, libm.Dir+name, text, parser.SkipObjectResolution)
		if err != nil {
			panic(err)
		}
		files = append(files, file)
	}
	assigned := Assigned(files...)
	imports := map[string]string{"math": "math", "bits": bitsPath}
	for _, file := range files {
		for _, d := range file.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				lib.decls[d.Name.Name] = Decl{Name: d.Name.Name, Func: d, Imports: imports, Where: lib.fset.Position(d.Pos())}
			case *ast.GenDecl:
				for _, s := range d.Specs {
					for _, id := range specNames(s) {
						lib.decls[id.Name] = Decl{Name: id.Name, Gen: d, Imports: imports, Where: lib.fset.Position(d.Pos()),
							Constant: d.Tok == token.VAR && !assigned[id.Name]}
					}
				}
			}
		}
	}
	return lib
})

func (lib *library) lookup(name string) (Decl, bool) {
	d, ok := lib.decls[name]
	return d, ok
}

// compile gives the IR of a function, or nil if the package has none of that
// name. Its faults are faults of libm.
func (lib *library) compile(name string) *Program {
	lib.mu.Lock()
	defer lib.mu.Unlock()
	if p, ok := lib.funcs[name]; ok {
		return p
	}
	d := lib.decls[name]
	if d.Func == nil || !ast.IsExported(name) {
		return nil
	}
	p, err := Compile(Input{Decl: d.Func, Fset: lib.fset, Imports: d.Imports, Lookup: lib.lookup, Callee: true})
	if err != nil {
		panic(fmt.Sprintf("libm.%s: %v", name, err))
	}
	ir.Loosen(p.Func)
	lib.funcs[name] = p
	return p
}

// written is the part of simt that is written in Go: package libm.
func (c *compiler) written(fn *types.Func) *Program {
	if fn.Pkg() != simtPackage() {
		return nil
	}
	return libmText().compile(fn.Name())
}

// MathBody gives the function of package libm that computes fn, and which of its
// results that is; nil if every engine has code for fn (see ir.Expand).
func MathBody(fn ir.MathFn) (body *ir.Func, result int) {
	row := fn.Row()
	if row.Libm == "" {
		return nil, 0
	}
	p := libmText().compile(row.Libm)
	if p == nil {
		return nil, 0
	}
	return p.Func, row.Result
}

// OutlinedBody is MathBody for engines that carry out both ways of a branch: what
// few arguments reach (libm.Rare) is a function of its own, marked Outline and the
// same for all that call it, and other branches became selects where that is
// cheaper (ir.Flatten).
func OutlinedBody(fn ir.MathFn) (body *ir.Func, result int) {
	body, result = MathBody(fn)
	if body == nil {
		return nil, 0
	}
	lib := libmText()
	lib.mu.Lock()
	defer lib.mu.Unlock()
	name := fn.Row().Libm
	if lib.apart[name] == nil {
		lib.apart[name] = lib.outlined(body)
	}
	return lib.apart[name], result
}

func (lib *library) outlined(f *ir.Func) *ir.Func {
	form := strings.HasSuffix(f.Name, "F32") || strings.HasSuffix(f.Name, "Fast")
	var to func(callee *ir.Func) *ir.Func
	to = func(callee *ir.Func) *ir.Func {
		if !slices.Contains(libm.Rare, callee.Name) && !(form && ast.IsExported(callee.Name) && !strings.HasSuffix(callee.Name, "Fast")) {
			return ir.Redirect(callee, to)
		}
		key := "rare " + callee.Name
		if lib.apart[key] == nil {
			rare := *ir.ProveBounds(ir.Optimize(callee))
			rare.Outline = true
			lib.apart[key] = &rare
		}
		return lib.apart[key]
	}
	return ir.Flatten(ir.ProveBounds(ir.Optimize(ir.Redirect(f, to))), 10, 10, 32)
}
