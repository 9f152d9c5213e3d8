package nvptx

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"gpunotes/gpukit/internal/ir"
	"gpunotes/gpukit/internal/ir/irtest"
)

// assemble runs NVIDIA's assembler. What it writes must be free of warnings and
// of spilled registers.
func assemble(ptxas, arch, name, text string, dir string) (said string, err error) {
	file := filepath.Join(dir, name+"."+arch+".ptx")
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		return "", err
	}
	out, err := exec.Command(ptxas, "-arch="+arch, "-v", "-lineinfo", "-o", file+".cubin", file).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("ptxas -arch=%s %s: %v\n%s", arch, name, err, cut(string(out)))
	}
	for _, l := range strings.Split(string(out), "\n") {
		spills := strings.Contains(l, "bytes spill") && !strings.Contains(l, " 0 bytes spill stores, 0 bytes spill loads")
		if spills || strings.Contains(strings.ToLower(l), "warning") {
			return "", fmt.Errorf("ptxas -arch=%s %s: %s", arch, name, l)
		}
	}
	return string(out), nil
}

func cut(s string) string { return s[:min(len(s), 2000)] }

// memoryKernels use the operations on memory and among threads.
func memoryKernels() (ks []*Kernel) {
	for i, n := range []int{64, 0} {
		ks = append(ks, &Kernel{Name: fmt.Sprint("sum", i), Func: ir.Optimize(sum(n, 64)), Threads: true, NoAlias: true, Poll: true})
	}
	for _, typ := range ir.Types {
		f := ir.NewFunc("memory")
		x, by, out := f.AddArray("x", typ, 1), f.AddArray("by", ir.I64, 1), f.AddArray("out", typ, 1)
		vals := specials(typ)
		table := f.AddMem(ir.Memory{Name: "table", Space: ir.Constant, Elem: typ, Len: len(vals), Data: vals})
		local := f.AddMem(ir.Memory{Name: "local", Space: ir.Local, Elem: typ, Len: 40})
		shared := f.AddMem(ir.Memory{Name: "shared", Space: ir.Shared, Elem: typ, Len: 64})
		tid := f.AddParamOf(ir.Param{Name: "threadIdx.x", Kind: ir.ThreadIdx}, ir.I64)
		b := ir.NewBuilder(f)
		b.Bounds(tid, x.Shape[0])
		b.SliceBounds(b.Load(by.Mem, tid), tid, x.Shape[0])
		b.Clear(local)
		v := b.Load(x.Mem, tid)
		b.Store(shared, tid, b.Load(table, tid))
		b.Store(local, tid, v)
		b.Barrier()
		for kind := ir.ShuffleIdx; kind <= ir.ShuffleXor; kind++ {
			v = b.Shuffle(kind, v, tid)
		}
		p := b.Op(ir.OpEq, v, b.Load(shared, b.Load(by.Mem, tid)))
		b.WarpBarrier()
		any := b.Op(ir.OpEq, b.Vote(ir.Ballot, p), b.Const(ir.U32, 5))
		any = b.Op(ir.OpOr, any, b.Op(ir.OpXor, b.Vote(ir.VoteAny, p), b.Vote(ir.VoteAll, p)))
		b.Store(out.Mem, tid, b.Op(ir.OpSelect, any, v, b.Load(local, b.Load(by.Mem, tid))))
		for kind := ir.AtomicAdd; kind <= ir.CompareSwap && typ != ir.Bool; kind++ {
			if typ.IsFloat() && kind >= ir.AtomicAnd && kind <= ir.AtomicXor {
				continue
			}
			args := []ir.Value{v, v}[:1]
			if kind == ir.CompareSwap {
				args = append(args, v)
			}
			v = b.Atomic(kind, out.Mem, tid, args...)
			args[len(args)-1] = v
			v = b.Atomic(kind, shared, tid, args...)
		}
		b.Store(out.Mem, tid, v)
		b.Yield()
		ks = append(ks, &Kernel{Name: "memory_" + typ.String(), Func: f, Threads: true, NoAlias: true})
	}
	for i, f := range []*ir.Func{printer(), outlinedPrinter()} {
		for _, threads := range []bool{true, false} {
			ks = append(ks, &Kernel{Name: fmt.Sprintf("prints%d_%v", i, threads), Func: f, Threads: threads})
		}
	}
	return ks
}

// TestAssembler feeds every operation on every type, the control kernels, the
// kernels on memory and some random ones to NVIDIA's ptxas, for every generation
// of devices that it knows. sm_30 text is assembled for sm_35.
func TestAssembler(t *testing.T) {
	ptxas := os.Getenv("GPUNOTES_PTXAS")
	if ptxas == "" {
		t.Skip("GPUNOTES_PTXAS is not set: no NVIDIA assembler (ptxas) to ask")
	}
	help, err := exec.Command(ptxas, "--help").CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v", ptxas, err)
	}
	var ks []*Kernel
	for _, s := range singles() {
		ks = append(ks, elementwise(s.name, s.f))
	}
	for _, c := range controls() {
		ks = append(ks, &Kernel{Name: c.f.Name, Func: ir.Optimize(c.f), In: c.in, Out: []Access{Strided}, Rank: 2, NoAlias: true, Poll: true})
	}
	ks = append(ks, memoryKernels()...)
	ks = append(ks, experiments()...)
	for seed := range uint64(30) {
		f := random(rand.New(rand.NewPCG(seed, 5)), fmt.Sprint("random", seed), irtest.Options{Faults: true, Memory: seed%3 > 0, Threads: seed%3 > 1})
		k := elementwise(f.Name, f)
		if k.Threads = seed%3 > 0; k.Threads {
			k.In = nil
		}
		if seed%2 == 0 {
			k.Func = ir.Optimize(f)
		}
		ks = append(ks, k)
	}
	for seed := range uint64(10) {
		g := random(rand.New(rand.NewPCG(seed, 6)), "callee", irtest.Options{Faults: true, Memory: seed%2 > 0})
		g.Outline = true
		ks = append(ks, &Kernel{Name: fmt.Sprint("caller", seed), Func: caller(g), Threads: seed%2 > 0, Poll: true, Out: make([]Access, 2*len(g.Results))})
		for i := range ks[len(ks)-1].Out {
			ks[len(ks)-1].Out[i] = Contiguous
		}
	}
	dir := t.TempDir()
	var wg sync.WaitGroup
	running := make(chan bool, 2)
	done := 0
	for _, sm := range []int{30, 35, 52, 61, 75, 80, 90, 100} {
		arch := fmt.Sprintf("sm_%d", max(sm, 35))
		if !strings.Contains(string(help), "'"+arch+"'") {
			continue
		}
		done++
		m, _ := emit(t, Target{SM: sm}, ks...)
		// Parts, to use two cores.
		for part := range 4 {
			p := *m
			p.Funcs = m.Funcs[len(m.Funcs)*part/4 : len(m.Funcs)*(part+1)/4]
			wg.Add(1)
			go func() {
				defer wg.Done()
				running <- true
				defer func() { <-running }()
				if _, err := assemble(ptxas, arch, fmt.Sprintf("all%d_%d", sm, part), p.String(), dir); err != nil {
					t.Error(err)
				}
			}()
		}
	}
	wg.Wait()
	if done < 4 {
		t.Errorf("%s knows only %d of the architectures", ptxas, done)
	}
}

// experiments are the kernels of the experiments that are to be reproduced: one
// worker for everything, one for a plane or a row, one for an element, and the
// mesh made where it is used.
func experiments() (ks []*Kernel) {
	contiguous := map[ir.Mem]Array{0: {Contiguous: true}, 1: {Contiguous: true}, 2: {Contiguous: true}}
	f := ir.Optimize(vest())
	proven, _ := ir.AssumeBounds(f)
	sizes := map[int]ir.Bits{}
	for i, x := range vestArgs(f, 100, 4000, 5) {
		if k := f.Params[i].Kind; k == ir.Shape || k == ir.Scalar {
			sizes[i] = x
		}
	}
	ks = append(ks,
		&Kernel{Name: "t14_checked", Func: f, NoAlias: true},
		&Kernel{Name: "t14", Func: proven, NoAlias: true, Facts: Facts{Arrays: contiguous}},
		&Kernel{Name: "t14_frozen", Func: f, NoAlias: true, Facts: Facts{Arrays: contiguous, Frozen: sizes}})
	// A slice for each worker: the arrays begin at its place.
	slice := &Kernel{Name: "t16", Func: proven, NoAlias: true, Facts: Facts{Arrays: contiguous}}
	for _, p := range proven.Params {
		a := ByValue
		if p.Kind == ir.Offset {
			a = Strided
		}
		slice.In = append(slice.In, a)
	}
	ks = append(ks, slice)
	mul := ir.NewFunc("mul", ir.F64)
	x, y := mul.AddParam("x", ir.F64), mul.AddParam("y", ir.F64)
	b := ir.NewBuilder(mul)
	b.Yield(b.Op(ir.OpMul, x, y))
	ks = append(ks, elementwise("t15", mul))
	ks[len(ks)-1].NoAlias = true
	mesh := &Kernel{Name: "t40", Func: chord(), Rank: 2, In: []Access{Generated(Linspace), Generated(Linspace)}, Out: []Access{Contiguous}, NoAlias: true}
	mesh.Facts = Facts{Narrow: true, InStrides: map[Place]int64{{0, 0}: 1, {0, 1}: 0, {1, 0}: 0, {1, 1}: 1}}
	return append(ks, mesh, &Kernel{Name: "sum", Func: ir.Optimize(sum(64, 64)), Threads: true, NoAlias: true})
}

// TestRegisters prints what ptxas makes of the experiments' kernels, of which
// none may spill.
func TestRegisters(t *testing.T) {
	ptxas := os.Getenv("GPUNOTES_PTXAS")
	if ptxas == "" {
		t.Skip("GPUNOTES_PTXAS is not set: no NVIDIA assembler (ptxas) to ask")
	}
	help, _ := exec.Command(ptxas, "--help").CombinedOutput()
	dir := t.TempDir()
	used := regexp.MustCompile(`Compiling entry function '(\w+)'[^\n]*\n(?:[^\n]*\n)*?[^\n]*Used (\d+) registers`)
	table := map[string][]string{}
	var archs []string
	for _, sm := range []int{30, 52, 61, 75, 80, 90} {
		arch := fmt.Sprintf("sm_%d", max(sm, 35))
		if !strings.Contains(string(help), "'"+arch+"'") {
			continue
		}
		m, _ := emit(t, Target{SM: sm}, experiments()...)
		out, err := assemble(ptxas, arch, "experiments", m.String(), dir)
		if err != nil {
			t.Error(err)
			continue
		}
		archs = append(archs, arch)
		// Where NVIDIA's disassembler is installed, what the card would execute.
		if tool, err := exec.LookPath("cuobjdump"); err == nil {
			sass, err := exec.Command(tool, "-sass", filepath.Join(dir, "experiments."+arch+".ptx.cubin")).CombinedOutput()
			if err != nil || !strings.Contains(string(sass), "EXIT") {
				t.Errorf("cuobjdump, %s: %v\n%s", arch, err, cut(string(sass)))
			}
			t.Logf("%s:\n%s", arch, sass)
		}
		for _, f := range used.FindAllStringSubmatch(out, -1) {
			table[f[1]] = append(table[f[1]], f[2])
		}
	}
	t.Logf("%-12s %v", "registers", archs)
	for _, k := range experiments() {
		if t.Logf("%-12s %5s", k.Name, table[k.Name]); len(table[k.Name]) != len(archs) {
			t.Errorf("%s is not in what ptxas says", k.Name)
		}
	}
}
