package gpukit

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"gpunotes/gpukit/internal/codegen/nvptx"
	"gpunotes/gpukit/internal/frontend"
	"gpunotes/gpukit/internal/ir"
)

// TestConformanceThroughPtxas has NVIDIA's assembler (GPUNOTES_PTXAS=path) take the
// code of every operator and library function, many kernels in a module.
func TestConformanceThroughPtxas(t *testing.T) {
	ptxas := os.Getenv("GPUNOTES_PTXAS")
	if ptxas == "" {
		t.Skip("GPUNOTES_PTXAS is not set; make test-ptxas installs the assembler and sets it")
	}
	help, err := exec.Command(ptxas, "--help").CombinedOutput()
	if err != nil {
		t.Fatal(err)
	}
	var kernels []*nvptx.Kernel
	for _, b := range []*batch{opFunctions(), mathFunctions()} {
		b.compile(t)
		for _, f := range b.funcs {
			g := ir.Optimize(ir.Expand(ir.Narrow(ir.Optimize(f.fn.source.Func), false), func(fn ir.MathFn) (*ir.Func, int) {
				if nvptx.Native(fn) {
					return nil, 0
				}
				return frontend.MathBody(fn)
			}))
			k := &nvptx.Kernel{Name: "k" + f.name, Func: g, Rank: 1, Out: []nvptx.Access{nvptx.Contiguous}}
			for range f.params {
				k.In = append(k.In, nvptx.Contiguous)
			}
			kernels = append(kernels, k)
		}
	}
	// The oldest that the assembler knows, which takes sm_30's code as well, and the newest here.
	assembled := 0
	for _, sm := range []struct {
		arch string
		sm   int
	}{{"sm_35", 30}, {"sm_52", 52}, {"sm_90", 90}} {
		if !strings.Contains(string(help), "'"+sm.arch+"'") {
			continue
		}
		for i := 0; i < len(kernels); i += 400 {
			m, _, err := nvptx.Emit(nvptx.Target{SM: sm.sm}, kernels[i:min(i+400, len(kernels))]...)
			if err != nil {
				t.Fatal(err)
			}
			file := filepath.Join(t.TempDir(), "kernels.ptx")
			if err := os.WriteFile(file, []byte(m.String()), 0o600); err != nil {
				t.Fatal(err)
			}
			if out, err := exec.Command(ptxas, "-O1", "-arch="+sm.arch, "-o", file+".cubin", file).CombinedOutput(); err != nil {
				t.Errorf("%s, kernels from %d on: %v\n%.2000s", sm.arch, i, err, out)
			}
			assembled++
		}
	}
	if assembled == 0 {
		t.Error("the assembler knows none of the targets")
	}
	t.Logf("%d kernels, %d modules", len(kernels), assembled)
}
