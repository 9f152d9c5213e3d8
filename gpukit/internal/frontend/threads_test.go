package frontend

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"gpunotes/gpukit/internal/ir"
	"gpunotes/gpukit/internal/libm"
)

// kernels has for each kernel what its only array must hold after a launch; it
// begins as 0, 1, 2, ... and is the first parameter. It runs as the front end
// made it and optimised.
var kernels = []struct {
	name        string
	grid, block [3]int
	dynamic     int // elements of dynamic shared memory
	x           int // elements of the array
	src         string
	want        func(i int) float64
	flags       string // of UsesThreads, Meets, Prints, Atomics
}{
	{"guard", [3]int{3, 1, 1}, [3]int{4, 1, 1}, 0, 10, `func f(x []float64) {
		i := simt.Grid1()
		if i >= len(x) { return }
		x[i] = float64(i*100 + simt.ThreadIdx().X*10 + simt.BlockIdx().X)
	}`, func(i int) float64 { return float64(i*100 + i%4*10 + i/4) }, "T"},
	{"two dimensions", [3]int{2, 3, 1}, [3]int{4, 2, 1}, 0, 48, `func f(x []float64) {
		i, j := simt.Grid2()
		d, n := simt.BlockDim(), simt.GridDim()
		w := d.X * n.X
		x[j*w+i] = float64(i*1000 + j) + float64(n.Y + d.Y + d.Z + n.Z)/16
	}`, func(i int) float64 { return float64(i%8*1000+i/8) + 7.0/16 }, "T"},
	{"three dimensions", [3]int{2, 1, 2}, [3]int{2, 2, 2}, 0, 32, `func place() (simt.Dim3, int) { return simt.BlockIdx(), simt.LaneID() }
	func f(x []float64) {
		i, j, k := simt.Grid3()
		b, lane := place()
		x[i + 4*(j + 2*k)] = float64(lane + b.X*100 + b.Z*1000)
	}`, func(i int) float64 {
		x, y, z := i%4, i/4%2, i/8
		return float64(x%2 + 2*(y+2*(z%2)) + x/2*100 + z/2*1000)
	}, "T"},
	{"reduction", [3]int{2, 1, 1}, [3]int{64, 1, 1}, 0, 128, `func f(x []float64) {
		var tile [64]float64
		simt.Shared(&tile)
		t := simt.ThreadIdx().X
		base := simt.BlockIdx().X * simt.BlockDim().X
		tile[t] = x[base+t]
		for h := simt.BlockDim().X / 2; h > 0; h /= 2 {
			simt.SyncThreads()
			if t < h {
				tile[t] += tile[t+h]
			}
		}
		simt.SyncThreads()
		x[base+t] = tile[0]
	}`, func(i int) float64 { return float64(64*63/2 + i/64*64*64) }, "TM"},
	{"shared by a callee", [3]int{1, 1, 1}, [3]int{8, 1, 1}, 8, 8, `func put(s []float64, t int, v float64) { s[t] = v; simt.SyncThreads() }
	func get(t int) float64 { s := simt.SharedFloat64(); return s[len(s)-1-t] }
	func f(x []float64) {
		t := simt.ThreadIdx().X
		put(simt.SharedFloat64(), t, x[t]*2)
		x[t] = get(t)
	}`, func(i int) float64 { return float64(2 * (7 - i)) }, "TM"},
	{"transpose a tile", [3]int{1, 1, 1}, [3]int{4, 4, 1}, 0, 16, `type tile [4][5]float64
	func f(x []float64) {
		var t tile
		simt.Shared(&t)
		i, j := simt.ThreadIdx().X, simt.ThreadIdx().Y
		t[j][i] = x[j*4+i]
		simt.SyncThreads()
		x[j*4+i] = t[i][j]
	}`, func(i int) float64 { return float64(i%4*4 + i/4) }, "TM"},
	{"atomics", [3]int{2, 1, 1}, [3]int{32, 1, 1}, 0, 4, `func f(x []float64) {
		var count [2]int32
		var most [3]int64
		var words [2]uint32
		simt.Shared(&count)
		simt.Shared(&most)
		simt.Shared(&words)
		t := simt.ThreadIdx().X
		if t == 0 { count[0], count[1], most[0], most[1], most[2], words[0], words[1] = 0, 0, 0, 100, 7, 0, 0 }
		simt.SyncThreads()
		old := atomic.AddInt32(&count[t%2], 2) - simt.AddInt32(&count[t%2], 1)
		simt.MaxInt64(&most[0], int64(t))
		simt.MinInt64(&most[1], int64(t))
		simt.CasInt64(&most[2], 7, int64(t))
		atomic.OrUint32(&words[0], 1<<uint(t))
		if atomic.CompareAndSwapUint32(&words[1], uint32(t), uint32(t)+1) { old++ }
		simt.SyncThreads()
		if t == 0 {
			simt.AddFloat64(&x[0], float64(count[0] + count[1]*1000))
			simt.ExchFloat64(&x[1], float64(most[0]*1000 + most[1]*100 + most[2] + int64(old)))
			atomic.StoreInt32(&count[0], int32(atomic.LoadUint32(&words[1])))
			if words[0] == 1<<32-1 { simt.AddFloat64(&x[3], float64(count[0])) }
		}
	}`, func(i int) float64 {
		// old is 0 and then 1 more for each thread in turn.
		return []float64{2 * 48048, 31001, 2, 3 + 2*32}[i]
	}, "TMA"},
	{"shuffles and votes", [3]int{1, 1, 1}, [3]int{32, 1, 1}, 0, 32, `func f(x []float64) {
		i := simt.LaneID()
		v := x[i]
		for d := simt.WarpSize / 2; d > 0; d /= 2 { v += simt.ShuffleXorFloat64(v, d) }
		up := simt.ShuffleUpInt32(int32(i), 1) + int32(simt.ShuffleDownInt64(int64(i), 2))
		first := simt.ShuffleFloat32(float32(i+5), 0)
		simt.SyncWarp()
		n := 0
		if simt.Any(i == 7) { n++ }
		if simt.All(i < 32) { n += 10 }
		b := simt.Ballot(i % 2 == 0)
		x[i] = v + float64(up)*1000 + float64(first)/8 + float64(n)/128 + float64(b >> 28)*1e6
	}`, func(i int) float64 {
		return 31*16 + float64(float64(max(i-1, 0)+i+2-2*(i/30))*1000) + 5.0/8 + 11.0/128 + 5e6
	}, "TM"},
	{"random numbers", [3]int{1, 1, 1}, [3]int{4, 1, 1}, 0, 4, `func f(x []float64) {
		i := simt.ThreadIdx().X
		r := simt.Philox4x32([4]uint32{uint32(i)}, [2]uint32{1, 2})
		x[i] = float64(r[i]) + simt.UniformFloat64(7, uint64(i)) + simt.NormFloat64(8, uint64(i))
	}`, func(i int) float64 {
		return float64(libm.Philox4x32([4]uint32{uint32(i)}, [2]uint32{1, 2})[i]) + libm.UniformFloat64(7, uint64(i)) + libm.NormFloat64(8, uint64(i))
	}, "T"},
	{"exit before a barrier", [3]int{1, 1, 1}, [3]int{8, 1, 1}, 0, 5, `func f(x []float64) {
		t := simt.ThreadIdx().X
		if t >= len(x) { return }
		v := x[(t+1)%len(x)]
		simt.SyncThreads()
		x[t] = v
	}`, func(i int) float64 { return float64((i + 1) % 5) }, "TM"},
	{"println", [3]int{1, 1, 1}, [3]int{2, 1, 1}, 0, 2, `func f(x []float64) {
		i := simt.ThreadIdx().X
		println("thread", i, "has", x[i], x[i] > 0, uint8(200+i), "!")
		println()
	}`, func(i int) float64 { return float64(i) }, "TP"},
}

// bitsOf fills the arguments of a thread.
func (p *Program) bitsOf(thread, block, dim, grid [3]int, x, dynamic int) []ir.Bits {
	var a []ir.Bits
	for _, q := range p.Func.Params {
		var n int
		switch q.Kind {
		case ir.ThreadIdx:
			n = thread[q.Dim]
		case ir.BlockIdx:
			n = block[q.Dim]
		case ir.BlockDim:
			n = dim[q.Dim]
		case ir.GridDim:
			n = grid[q.Dim]
		case ir.Shape:
			n = x
			if p.Func.Mems[q.Mem].Space == ir.Shared {
				n = dynamic
			}
		case ir.Stride:
			n = 1
		}
		a = append(a, ir.Bits(n))
	}
	return a
}

func TestKernels(t *testing.T) {
	for _, k := range kernels {
		p := parse(t, "cell 5", "package p\nimport \"gpunotes/gpukit/simt\"\nimport \"sync/atomic\"\n"+k.src)
		prog, err := Compile(p.input("f"))
		if err != nil {
			t.Errorf("%s: %v", k.name, err)
			continue
		}
		flags := ""
		for i, f := range []bool{prog.UsesThreads, prog.Meets, prog.Prints, prog.Atomics} {
			if f {
				flags += "TMPA"[i : i+1]
			}
		}
		if flags != k.flags {
			t.Errorf("%s: flags %s, want %s", k.name, flags, k.flags)
		}
		for _, f := range []*ir.Func{prog.Func, ir.Optimize(prog.Func)} {
			x := make(memory, k.x)
			for i := range x {
				x[i] = ir.FromF64(float64(i))
			}
			var lines []string
			e := &ir.Evaluator{DynamicShared: k.dynamic, Print: func(s string) { lines = append(lines, s) }}
			for b := range k.grid[0] * k.grid[1] * k.grid[2] {
				var args [][]ir.Bits
				for i := range k.block[0] * k.block[1] * k.block[2] {
					args = append(args, prog.bitsOf(split(i, k.block), split(b, k.grid), k.block, k.grid, k.x, k.dynamic))
				}
				if _, err := e.RunBlock(f, []ir.Storage{x}, args); err != nil {
					t.Errorf("%s: %v\n%v", k.name, err, f)
				}
			}
			for i := range x {
				if got := ir.ToF64(x[i]); got != k.want(i) {
					t.Errorf("%s: x[%d] = %v, want %v", k.name, i, got, k.want(i))
				}
			}
			if want := []string{"thread 0 has 0 false 200 !", "", "thread 1 has 1 true 201 !", ""}; k.name == "println" && !slices.Equal(lines, want) {
				t.Errorf("printed %q", lines)
			}
		}
	}
}

func split(i int, n [3]int) [3]int { return [3]int{i % n[0], i / n[0] % n[1], i / n[0] / n[1]} }

// TestUniform: what is the same for all threads, or left by some of them for
// good, does not make a barrier divergent.
func TestUniform(t *testing.T) {
	for _, c := range []struct {
		ok   bool
		body string
	}{
		{true, "if n > 5 { simt.SyncThreads() }"},
		{true, "for i := 0; i < len(x); i++ { simt.SyncThreads() }"},
		{true, "for i := range x { if i == n { break }; simt.SyncThreads() }"},
		{true, "if simt.BlockIdx().X > 3 { simt.SyncThreads() }"},
		{true, "if x[0] > 3 { n = 1 }; if table[n] > 1 { simt.SyncThreads() }"},
		{false, "x[0] = 1; if x[0] > 3 { simt.SyncThreads() }"},
		{false, "for i := 0; i < simt.ThreadIdx().X; i++ { simt.SyncThreads() }"},
		{false, "if simt.Grid1() > n { n = 0 }; if n > 3 { simt.SyncThreads() }"},
		{false, "switch simt.LaneID() { case 0: simt.SyncWarp() }"},
		{false, "b := simt.ThreadIdx().X > 3 && simt.All(true); _ = b"},
		{false, "early(simt.ThreadIdx().X)"},
		{true, "early(n)"},
	} {
		p := parse(t, "cell 3", "package p\nimport \"gpunotes/gpukit/simt\"\nvar table = [...]int{1, 2}\n"+
			"func early(k int) { if k > 3 { return }; simt.SyncThreads() }\nfunc f(x []float64, n int) {\n"+c.body+"\n}")
		_, err := Compile(p.input("f"))
		ds, _ := err.(Diagnostics)
		if c.ok && err != nil || !c.ok && (len(ds) != 1 || ds[0].Code != CodeDivergent) {
			t.Errorf("%s: %v", c.body, err)
		}
	}
}

// TestLibPackages compares the hand-built packages with the real ones.
func TestLibPackages(t *testing.T) {
	for _, path := range []string{bitsPath, atomicPath, simtPath} {
		real := realPackage(t, path)
		have := libPackage(path).Scope()
		for _, name := range real.Scope().Names() {
			want := real.Scope().Lookup(name)
			got := have.Lookup(name)
			if !want.Exported() {
				continue
			}
			if _, ok := want.(*types.TypeName); ok && path == atomicPath {
				continue // atomic.Int64 and the like
			}
			if got == nil {
				t.Errorf("no %s.%s", path, name)
			} else if g, w := types.ObjectString(got, nil), types.ObjectString(want, nil); names.Replace(g) != names.Replace(w) && !types.Identical(got.Type(), want.Type()) {
				t.Errorf("%s, want %s", g, w)
			}
		}
		for _, name := range have.Names() {
			if real.Scope().Lookup(name) == nil {
				t.Errorf("%s.%s does not exist", path, name)
			}
		}
	}
}

// names hides what two checkers of one source do not share: Dim3 is two types.
var names = strings.NewReplacer("(lane int)", "", "delta int", "lane int", "mask int", "lane int")

func realPackage(t *testing.T, path string) *types.Package {
	if path != simtPath {
		pkg, err := importerFor(t).Import(path)
		if err != nil {
			t.Fatal(err)
		}
		return pkg
	}
	fset := token.NewFileSet()
	dir := "../../simt/"
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var files []*ast.File
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), ".go") && !strings.HasSuffix(e.Name(), "_test.go") {
			f, err := parser.ParseFile(fset, dir+e.Name(), nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			files = append(files, f)
		}
	}
	conf := types.Config{Importer: libImporter{}, Error: func(error) {}} // package libm is not known here
	pkg, _ := conf.Check(path, fset, files, nil)
	return pkg
}

// TestEveryLibFunction compiles a call of every function of the packages.
func TestEveryLibFunction(t *testing.T) {
	for _, path := range libPaths {
		short := path[strings.LastIndex(path, "/")+1:]
		scope := libPackage(path).Scope()
		for _, name := range scope.Names() {
			fn, ok := scope.Lookup(name).(*types.Func)
			if !ok || refusedLib[path+"."+name] != "" {
				continue
			}
			sig := fn.Type().(*types.Signature)
			var params, args, blanks []string
			for i := range sig.Params().Len() {
				pt := sig.Params().At(i).Type()
				v := fmt.Sprintf("p%d", i)
				switch u := types.Unalias(pt).(type) {
				case *types.Pointer:
					params, args = append(params, v+" []"+u.Elem().String()), append(args, "&"+v+"[0]")
				case *types.Interface:
					args = append(args, "&tile")
				default:
					params, args = append(params, v+" "+pt.String()), append(args, v)
				}
			}
			for range sig.Results().Len() {
				blanks = append(blanks, "_")
			}
			assign := ""
			if len(blanks) > 0 {
				assign = strings.Join(blanks, ", ") + " = "
			}
			src := fmt.Sprintf("package p\nimport %q\nfunc f(%s) {\n\tvar tile [2]int\n\t_ = tile[0]\n\t%s%s.%s(%s)\n}\n", path, strings.Join(params, ", "), assign, short, name, strings.Join(args, ", "))
			if _, err := Compile(parse(t, "lib.go", src).input("f")); err != nil {
				t.Errorf("%s: %v\n%s", fn, err, src)
			}
		}
	}
}

// TestCapturedArray: a fixed array of the notebook is memory; its elements are
// read in the order of the array.
func TestCapturedArray(t *testing.T) {
	p := parse(t, "cell 1", `package p
func at(i, j int) float64 { return weights[i][j] * scale }
func f(i, j int) float64 { w := weights; s := w[1][2]; return at(i, j) + s + weights[1][0] + float64(len(other)) + float64(other[i]) }
`)
	prog, err := Compile(notebook(p, map[string]any{"weights": [2][3]float64{}, "scale": 2.0, "other": [4]uint8{}}))
	if err != nil {
		t.Fatal(err)
	}
	want := []Capture{{Name: "other", Array: true, Type: ir.U8, Mem: 0, Dims: []int{4}}, {Name: "scale", Type: ir.F64, First: 2}, {Name: "weights", Array: true, Type: ir.F64, Mem: 1, Dims: []int{2, 3}}}
	if !reflect.DeepEqual(prog.Captured, want) {
		t.Fatalf("captured %+v", prog.Captured)
	}
	weights := memory{}
	for i := range 6 {
		weights = append(weights, ir.FromF64(float64(i+1)))
	}
	for _, f := range []*ir.Func{prog.Func, ir.Optimize(prog.Func)} {
		out, err := new(ir.Evaluator).RunWorker(f, []ir.Storage{memory{10, 20, 30, 40}, weights}, []ir.Bits{1, 1, ir.FromF64(2)})
		if err != nil || ir.ToF64(out[0]) != 10+6+4+4+20 {
			t.Errorf("%v, %v", out, err)
		}
		_, err = new(ir.Evaluator).RunWorker(f, []ir.Storage{memory{10, 20, 30, 40}, weights}, []ir.Bits{1, 3, ir.FromF64(2)})
		if err == nil || !strings.Contains(err.Error(), "index 3, length 3") {
			t.Errorf("out of range: %v", err)
		}
	}
}

// TestParamsOf: what a program says of its parameters.
func TestParamsOf(t *testing.T) {
	p := parse(t, "cell 1", `package p
import "gpunotes/gpukit/simt"
type q struct { n [2]int32; x float64 }
func put(a []float64, b [][]int8) { a[0] = float64(b[0][0]) }
func f(k int, a, c []float64, s q, b [][]int8, d []uint16) { put(c, b); a[simt.Grid1()] = s.x; d[0]++ }
`)
	prog, err := Compile(p.input("f"))
	if err != nil {
		t.Fatal(err)
	}
	want := []Param{
		{Name: "k", Type: ir.I64},
		{Name: "a", Kind: Array, First: 1, Type: ir.F64, Rank: 1, Mem: 0, Written: true},
		{Name: "c", Kind: Array, First: 4, Type: ir.F64, Rank: 1, Mem: 1, Written: true},
		{Name: "s", Kind: Parts, First: 7, Leaves: []Leaf{{[]int{0, 0}, ir.I32}, {[]int{0, 1}, ir.I32}, {[]int{1}, ir.F64}},
			Form: &Form{Text: "q", Names: []string{"n", "x"}, Fields: []*Form{
				{Text: "[2]int32", Len: 2, Elem: &Form{Text: "int32", Scalar: ir.I32}}, {Text: "float64", Scalar: ir.F64}}}},
		{Name: "b", Kind: Array, First: 10, Type: ir.I8, Rank: 2, Mem: 2, Read: true},
		{Name: "d", Kind: Array, First: 15, Type: ir.U16, Rank: 1, Mem: 3, Read: true, Written: true},
	}
	if !reflect.DeepEqual(prog.Params, want) {
		t.Errorf("%+v", prog.Params)
	}
	var names []string
	for _, q := range prog.Func.Params {
		names = append(names, q.Name)
	}
	if got := strings.Join(names, " "); got != "k a.offset a.shape0 a.stride0 c.offset c.shape0 c.stride0 s.n[0] s.n[1] s.x b.offset b.shape0 b.shape1 b.stride0 b.stride1 d.offset d.shape0 d.stride0 blockDim.x blockIdx.x threadIdx.x" {
		t.Error(got)
	}
}
