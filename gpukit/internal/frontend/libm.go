package frontend

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io/fs"
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
}

var libmText = sync.OnceValue(func() *library {
	lib := &library{fset: token.NewFileSet(), decls: map[string]Decl{}, funcs: map[string]*Program{}}
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
