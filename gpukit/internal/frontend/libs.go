package frontend

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"maps"
	"slices"
	"strings"
	"sync"

	"gpunotes/gpukit/internal/ir"
)

// The packages that kernels can use, for go/types. Each is read-only once made.

const (
	bitsPath   = "math/bits"
	atomicPath = "sync/atomic"
	simtPath   = "gpunotes/gpukit/simt"
)

// libPaths are their import paths.
var libPaths = []string{"math", bitsPath, atomicPath, simtPath}

func isLib(path string) bool { return slices.Contains(libPaths, path) }

func libPackage(path string) *types.Package {
	switch path {
	case "math":
		return mathPackage()
	case bitsPath:
		return bitsPackage()
	case atomicPath:
		return atomicPackage()
	case simtPath:
		return simtPackage()
	}
	return nil
}

// refusedLib are functions of these packages that kernels do not have.
var refusedLib = map[string]string{
	"math/bits.Div": "use / and %", "math/bits.Div32": "use / and % on uint64", "math/bits.Div64": "use / and % on numbers of at most 64 bits",
	"math/bits.Rem": "use %", "math/bits.Rem32": "use % on uint64", "math/bits.Rem64": "use % on numbers of at most 64 bits",
	"sync/atomic.LoadPointer": noPointers, "sync/atomic.StorePointer": noPointers, "sync/atomic.SwapPointer": noPointers,
	"sync/atomic.CompareAndSwapPointer": noPointers,
}

const noPointers = "exchange an index: there are no pointers in a kernel"

// parsedPackage checks a package that has declarations without bodies only.
func parsedPackage(path, text string) *types.Package {
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, path, text, parser.SkipObjectResolution)
	if err != nil {
		panic(err)
	}
	conf := types.Config{Importer: libImporter{}}
	pkg, err := conf.Check(path, fset, []*ast.File{file}, nil)
	if err != nil {
		panic(err)
	}
	return pkg
}

var bitsPackage = sync.OnceValue(func() *types.Package {
	pkg := parsedPackage(bitsPath, `package bits
const UintSize = 64
func Div(hi, lo, y uint) (quo, rem uint)
func Div32(hi, lo, y uint32) (quo, rem uint32)
func Div64(hi, lo, y uint64) (quo, rem uint64)
func Rem(hi, lo, y uint) uint
func Rem32(hi, lo, y uint32) uint32
func Rem64(hi, lo, y uint64) uint64`)
	for name, fns := range libFuncs(bitsPath) {
		word := types.Typ[types.Uint]
		if strings.HasSuffix(name, "64") {
			word = types.Typ[types.Uint64]
		}
		insertFunc(pkg, name, fns, func(t ir.Type) types.Type {
			switch t {
			case ir.U64:
				return word
			case ir.U8:
				return types.Typ[types.Uint8]
			case ir.U16:
				return types.Typ[types.Uint16]
			}
			return goType[t]
		})
	}
	return pkg
})

func insertFunc(pkg *types.Package, name string, fns []ir.MathFn, typ func(ir.Type) types.Type) {
	var params, results []*types.Var
	for _, t := range fns[0].Row().In {
		params = append(params, types.NewParam(token.NoPos, pkg, "", typ(t)))
	}
	for _, fn := range fns {
		results = append(results, types.NewParam(token.NoPos, pkg, "", typ(fn.Row().Out)))
	}
	sig := types.NewSignatureType(nil, nil, nil, types.NewTuple(params...), types.NewTuple(results...), false)
	pkg.Scope().Insert(types.NewFunc(token.NoPos, pkg, name, sig))
}

// atomicForms are the functions of sync/atomic and simt on the address of an
// element, for each type: "T" in the parameters and results.
type atomicForm struct {
	name  string
	types []string
	sig   string
	// kind and of say what becomes of the old value; result what is returned.
	kind   ir.Kind
	result atomicResult
}

type atomicResult uint8

const (
	givesBefore atomicResult = iota
	givesAfter               // of an addition
	givesSwapped
	givesNothing
)

var (
	integers = []string{"Int32", "Int64", "Uint32", "Uint64"}
	words    = append(slices.Clone(integers), "Uintptr")
	numbers  = append(slices.Clone(integers), "Float32", "Float64")
)

var atomicForms = map[string][]atomicForm{
	atomicPath: {
		{"Add", words, "(p *T, v T) T", ir.AtomicAdd, givesAfter},
		{"Load", words, "(p *T) T", ir.AtomicAdd, givesBefore},
		{"Store", words, "(p *T, v T)", ir.Exchange, givesNothing},
		{"Swap", words, "(p *T, v T) T", ir.Exchange, givesBefore},
		{"And", words, "(p *T, v T) T", ir.AtomicAnd, givesBefore},
		{"Or", words, "(p *T, v T) T", ir.AtomicOr, givesBefore},
		{"CompareAndSwap", words, "(p *T, old, v T) bool", ir.CompareSwap, givesSwapped},
	},
	simtPath: {
		{"Add", numbers, "(p *T, v T) T", ir.AtomicAdd, givesBefore},
		{"Min", integers, "(p *T, v T) T", ir.AtomicMin, givesBefore},
		{"Max", integers, "(p *T, v T) T", ir.AtomicMax, givesBefore},
		{"Exch", numbers, "(p *T, v T) T", ir.Exchange, givesBefore},
		{"Cas", integers, "(p *T, old, v T) T", ir.CompareSwap, givesBefore},
	},
}

// atomics finds a form by path and name, "sync/atomic.AddInt32".
var atomics = func() map[string]atomicForm {
	m := map[string]atomicForm{}
	for path, forms := range atomicForms {
		for _, a := range forms {
			for _, t := range a.types {
				m[path+"."+a.name+t] = a
			}
		}
	}
	return m
}()

// declarations writes the forms of a package as Go.
func declarations(path string) string {
	var b strings.Builder
	for _, a := range atomicForms[path] {
		for _, t := range a.types {
			fmt.Fprintf(&b, "func %s%s%s\n", a.name, t, strings.ReplaceAll(a.sig, "T", strings.ToLower(t)))
		}
	}
	return b.String()
}

var atomicPackage = sync.OnceValue(func() *types.Package {
	return parsedPackage(atomicPath, `package atomic
import "unsafe"
func LoadPointer(addr *unsafe.Pointer) (val unsafe.Pointer)
func StorePointer(addr *unsafe.Pointer, val unsafe.Pointer)
func SwapPointer(addr *unsafe.Pointer, new unsafe.Pointer) (old unsafe.Pointer)
func CompareAndSwapPointer(addr *unsafe.Pointer, old, new unsafe.Pointer) (swapped bool)
`+declarations(atomicPath))
})

// The shuffles by the beginning of their names, for each of shuffled.
var shuffles = map[string]ir.Kind{"Shuffle": ir.ShuffleIdx, "ShuffleUp": ir.ShuffleUp, "ShuffleDown": ir.ShuffleDown, "ShuffleXor": ir.ShuffleXor}

var shuffled = []string{"Float32", "Float64", "Int32", "Int64"}

var votes = map[string]ir.Kind{"Any": ir.VoteAny, "All": ir.VoteAll, "Ballot": ir.Ballot}

// shuffleOf gives the kind of the shuffle of that name.
func shuffleOf(name string) (ir.Kind, bool) {
	for _, t := range shuffled {
		if s, ok := strings.CutSuffix(name, t); ok {
			k, ok := shuffles[s]
			return k, ok
		}
	}
	return 0, false
}

// sharedType is the element type of simt.SharedFloat64 and its kin.
func sharedType(name string) (ir.Type, bool) {
	s, ok := strings.CutPrefix(name, "Shared")
	if !ok || !slices.Contains(shuffled, s) {
		return ir.Invalid, false
	}
	return map[string]ir.Type{"Float32": ir.F32, "Float64": ir.F64, "Int32": ir.I32, "Int64": ir.I64}[s], true
}

// placeKinds are the coordinates of a thread.
var placeKinds = map[string]ir.ParamKind{"ThreadIdx": ir.ThreadIdx, "BlockIdx": ir.BlockIdx, "BlockDim": ir.BlockDim, "GridDim": ir.GridDim}

var simtPackage = sync.OnceValue(func() *types.Package {
	var b strings.Builder
	b.WriteString(`package simt
const WarpSize = 32
type Dim3 struct { X, Y, Z int }
func Grid1() int
func Grid2() (x, y int)
func Grid3() (x, y, z int)
func LaneID() int
func SyncThreads()
func SyncWarp()
func Shared(array any)
func Any(v bool) bool
func All(v bool) bool
func Ballot(v bool) uint32
func Philox4x32(counter [4]uint32, key [2]uint32) [4]uint32
func UniformFloat64(seed, index uint64) float64
func NormFloat64(seed, index uint64) float64
`)
	for _, name := range slices.Sorted(maps.Keys(placeKinds)) {
		fmt.Fprintf(&b, "func %s() Dim3\n", name)
	}
	for _, t := range shuffled {
		for _, name := range slices.Sorted(maps.Keys(shuffles)) {
			fmt.Fprintf(&b, "func %[1]s%[2]s(v %[3]s, lane int) %[3]s\n", name, t, strings.ToLower(t))
		}
		fmt.Fprintf(&b, "func Shared%s() []%s\n", t, strings.ToLower(t))
	}
	b.WriteString(declarations(simtPath))
	return parsedPackage(simtPath, b.String())
})

// libFuncs gives the operations of each function of math or math/bits by its
// name there: one, or two for those with two results.
func libFuncs(path string) map[string][]ir.MathFn { return libTable()[path] }

var libTable = sync.OnceValue(func() map[string]map[string][]ir.MathFn {
	m := map[string]map[string][]ir.MathFn{"math": {}, bitsPath: {}}
	for i := range ir.NumMath() {
		fn := ir.MathFn(i)
		if !fn.Row().Go() {
			continue
		}
		path, name, _ := strings.Cut(fn.String(), ".")
		if path == "bits" {
			path = bitsPath
		}
		name, _, _ = strings.Cut(name, ".")
		m[path][name] = append(m[path][name], fn)
	}
	return m
})

// libObj is the function of a package that e calls, or nil.
func (c *compiler) libObj(e *ast.CallExpr) *types.Func {
	var id *ast.Ident
	switch fun := ast.Unparen(e.Fun).(type) {
	case *ast.SelectorExpr:
		id = fun.Sel
	case *ast.Ident: // dot import
		id = fun
	default:
		return nil
	}
	fn, ok := c.info.Uses[id].(*types.Func)
	if !ok || fn.Pkg() == nil || c.byObj[fn] != nil {
		return nil
	}
	if libPackage(fn.Pkg().Path()) != fn.Pkg() {
		return nil
	}
	return fn
}

// libFunc gives the path and the name of the function of a package that e
// calls.
func (c *compiler) libFunc(e *ast.CallExpr) (path, name string) {
	if fn := c.libObj(e); fn != nil {
		return fn.Pkg().Path(), fn.Name()
	}
	return "", ""
}
