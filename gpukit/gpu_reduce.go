package gpukit

import (
	_ "embed"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"strings"
	"sync"

	"gpunotes/gpukit/internal/frontend"
	"gpunotes/gpukit/internal/ir"
	"gpunotes/gpukit/internal/shape"
)

//go:embed gpu_kernels.go
var kernelText string

// ownKernels are the functions of gpu_kernels.go.
var ownKernels = sync.OnceValue(func() map[string]*function {
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, "gpu_kernels.go", kernelText, parser.SkipObjectResolution)
	if err != nil {
		panic("gpukit: internal error: " + err.Error())
	}
	all := map[string]*function{}
	for _, x := range file.Decls {
		decl, ok := x.(*ast.FuncDecl)
		if !ok {
			continue
		}
		p, err := frontend.Compile(frontend.Input{Decl: decl, Fset: fset, Imports: map[string]string{"simt": "gpunotes/gpukit/simt"}})
		if err != nil {
			panic("gpukit: internal error: " + err.Error())
		}
		all[decl.Name.Name] = &function{name: decl.Name.Name, source: p}
	}
	return all
})

// reduceHere is up to how many bytes an array is fetched and reduced on the host:
// that takes no longer than a launch.
const reduceHere = 64 << 10

// reduced reduces an array on a GPU there, by the kernel of that name, along its
// last dimensions: those beyond rest, which is the shape of the result. ok is false
// of arrays elsewhere and of small ones, and if the device has no room. The result
// is on the device, of float64 or int64.
func (a *Array) reduced(kernel string, rest []int) (out *Array, ok bool) {
	m := deviceMemoryOf(a.store)
	if m == nil || a.Size()*a.DType().Size() <= reduceHere {
		return nil, false
	}
	out, err := a.reduce(kernel, rest)
	if errors.Is(err, ErrInterrupted) {
		panic(ErrInterrupted)
	}
	return out, err == nil
}

func (a *Array) reduce(kernel string, rest []int) (*Array, error) {
	d := &Device{core: a.home()}
	to, prefix := Float64, "float"
	if kernel == "sumIntegerLines" {
		to, prefix = Int64, "wide"
	}
	x := a
	if a.DType() != to || !a.contiguous() {
		name := a.DType().String()
		var err error
		if x, err = d.Vectorize(ownKernels()[prefix+strings.ToUpper(name[:1])+name[1:]], a); err != nil {
			return nil, err
		}
	}
	lines, _ := shape.Size(rest)
	n := a.Size() / lines
	x = &Array{x.store, x.offset, []int{lines, n}, []int{n, 1}}
	for x.store == a.store || n > 1 {
		groups := (n + fan - 1) / fan
		m, err := d.gpu.memory(to, lines*groups)
		if err != nil {
			return nil, d.gpu.fault("Reduce", err)
		}
		y := d.keep(newArray(m, []int{lines, groups}))
		threads := 1
		for threads < fan/2 && 2*threads < n {
			threads *= 2
		}
		err = d.Launch(ownKernels()[kernel], Blocks(lines*groups), Threads(threads), x, y)
		if x.store != a.store {
			x.Free()
		}
		if err != nil {
			y.Free()
			return nil, err
		}
		x, n = y, groups
	}
	return &Array{x.store, x.offset, append([]int{}, rest...), shape.Contiguous(rest)}, nil
}

// total is the reduction of the whole array.
func (a *Array) total(kernel string) (b ir.Bits, ok bool) {
	r, ok := a.reduced(kernel, nil)
	if !ok {
		return 0, false
	}
	defer r.Free()
	return r.store.bits(r.offset), true
}
