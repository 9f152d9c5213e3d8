package gpukit

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"runtime"
	"testing"

	"gpunotes/gpukit/internal/frontend"
)

// smallKernel makes the n-th of very many different functions.
func smallKernel(t testing.TB, n int) *function {
	t.Helper()
	fset := token.NewFileSet()
	text := fmt.Sprintf("package p\nfunc f(x float64) float64 { return x*%d + 1 }", n)
	file, err := parser.ParseFile(fset, "f.go", text, 0)
	if err != nil {
		t.Fatal(err)
	}
	src, err := frontend.Compile(frontend.Input{Decl: file.Decls[0].(*ast.FuncDecl), Fset: fset, Text: text})
	if err != nil {
		t.Fatal(err)
	}
	return &function{name: "f", source: src}
}

// Very many kernels do not pile up: the cache is bounded, and what is thrown out
// is compiled again when it comes back.
func TestManyKernels(t *testing.T) {
	d := MustOpen("cpu")
	n := 10000
	if testing.Short() {
		n = 3000
	}
	heap := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	var half uint64
	for i := range n {
		f := smallKernel(t, i)
		if _, err := d.program(f); err != nil {
			t.Fatal(err)
		}
		if i == n/2 {
			half = heap()
		}
		if len(d.programs.programs) > maxPrograms {
			t.Fatalf("%d programs are kept", len(d.programs.programs))
		}
	}
	if end := heap(); end > half+half/2+8<<20 {
		t.Errorf("the heap grew from %d bytes after %d kernels to %d after %d", half, n/2, end, n)
	}
	a, b := smallKernel(t, 5), smallKernel(t, 5)
	p, _ := d.program(a)
	if q, _ := d.program(b); p != q {
		t.Error("the same text is compiled twice")
	}
	if q, _ := d.With(Unchecked()).program(b); p == q {
		t.Error("other settings give the same program")
	}
	if q, _ := d.With(SharedBytes(8)).program(b); p != q {
		t.Error("the size of dynamic shared memory is no matter of the code")
	}
}
