package cpu

import (
	"context"
	"fmt"
	"math"
	"runtime/pprof"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"gpunotes/gpukit/internal/codegen/amd64"
	"gpunotes/gpukit/internal/ir"
)

// Engine is how a program runs.
type Engine uint8

// The engines. Portable runs everywhere and whatever the language has. The others
// are machine code, and leave to it what they do not have.
const (
	Portable Engine = iota
	AVX2
	AVX512
)

// String names the engine.
func (e Engine) String() string { return [...]string{"portable", "AVX2", "AVX-512"}[e] }

// Engines are those of this machine, the best first and Portable last.
func Engines() []Engine {
	var list []Engine
	for _, t := range MachineTargets() {
		list = append(list, engineOf(t))
	}
	return append(list, Portable)
}

func engineOf(t amd64.Target) Engine {
	if t == amd64.AVX512 {
		return AVX512
	}
	return AVX2
}

// Options say what Compile makes.
type Options struct {
	// Engine is one of Engines.
	Engine Engine
	// Body gives the functions that machine code calls in the place of library
	// functions, as ir.Expand wants them: frontend.OutlinedBody. Without it Go carries those
	// out that the code does not have, one lane at a time, which is slow. The portable
	// engine does not look at it.
	Body func(ir.MathFn) (*ir.Func, int)
}

// machineProgram is a program as machine code: a variant for each kind of launch.
type machineProgram struct {
	given  *ir.Func
	target amd64.Target
	body   func(ir.MathFn) (*ir.Func, int)
	load   func(*amd64.Kernel, amd64.Target, amd64.Options) (*Native, error)

	once    sync.Once
	f       *ir.Func // given with its library functions
	err     error    // nothing will do
	used    []bool   // by parameter
	ordered bool     // some worker may fail: the lowest one has to be found
	prints  bool
	loops   bool
	weight  float64 // instructions of a worker, guessed
	freeze  []int   // parameters whose values make better code
	labels  context.Context

	mu       sync.RWMutex
	variants map[string]*variant
}

// The limits of variants: from the first on sizes do not become part of code any
// more, from the second on those that there are go.
const (
	manyVariants = 32
	mostVariants = 256
)

// smallSize is up to which sizes become part of the code.
const smallSize = 16

// unrolled is how many instructions a loop may have that is written out.
const unrolled = 256

// merged is how many instructions an arm of an if may have that all lanes compute.
const merged = 10

// variant is machine code for launches of one kind.
type variant struct {
	kernel amd64.Kernel
	frozen map[int]ir.Bits

	once sync.Once
	code *Native
	err  error // why another engine runs them

	cost atomic.Uint64 // ns of a worker as a float64, as measured last; 0 at first
	runs atomic.Uint32
}

// prepare finds what matters for running the function.
func (p *machineProgram) prepare() error {
	p.once.Do(func() {
		p.err = guarded(func() (err error) { p.f, err = p.expand(nil); return err })
		if p.err == nil {
			p.look()
			p.labels = pprof.WithLabels(context.Background(), pprof.Labels("kernel", p.given.Name))
		}
	})
	return p.err
}

// expand makes the function for code, for calls of which parameters, by number, have
// these values.
func (p *machineProgram) expand(values map[int]ir.Bits) (*ir.Func, error) {
	f := p.given
	if len(values) > 0 {
		f = ir.Unroll(ir.Assume(f, values), unrolled)
	}
	f = ir.Optimize(ir.ProveBounds(f))
	if p.body != nil {
		f = ir.Expand(f, func(fn ir.MathFn) (*ir.Func, int) {
			if amd64.Native(fn) {
				return nil, 0
			}
			return p.body(fn)
		})
		f = ir.Flatten(f, merged, merged, 0)
	}
	return f, ir.Verify(f)
}

// Loud makes a fault of the compiler a panic, for tests: results stay right where the
// portable engine takes over in silence.
var Loud bool

// guarded makes an error of a panic: the portable engine can run what we cannot
// compile.
func guarded(f func() error) (err error) {
	if Loud {
		return f()
	}
	defer func() {
		if e := recover(); e != nil {
			err = fmt.Errorf("cpu: internal error: %v", e)
		}
	}()
	return f()
}

// look finds what matters for running the function.
func (p *machineProgram) look() {
	f := p.f
	used, limits := make([]bool, len(f.Types)), make([]bool, len(f.Types))
	consts := map[ir.Value]ir.Bits{}
	var region func(r *ir.Region, times float64, inLoop bool)
	region = func(r *ir.Region, times float64, inLoop bool) {
		for i := range r.Instrs {
			in := &r.Instrs[i]
			p.weight += times
			for _, a := range in.Args {
				used[a] = true
			}
			switch in.Op {
			case ir.OpConst:
				consts[in.Results[0]] = in.Imm
			case ir.OpPrint:
				p.prints = true
			case ir.OpLt, ir.OpLe, ir.OpGt, ir.OpGe, ir.OpEq, ir.OpNe:
				if inLoop {
					limits[in.Args[0]], limits[in.Args[1]] = true, true
				}
			case ir.OpLoop:
				p.loops = true
			}
			if in.MayFault(f) {
				b, known := ir.Bits(0), false
				if len(in.Args) == 2 && in.Op != ir.OpBounds {
					b, known = consts[in.Args[1]]
				}
				shift := in.Op == ir.OpShl || in.Op == ir.OpShr
				p.ordered = p.ordered || !known || b == 0 && !shift || shift && int64(b) < 0
			}
			for _, s := range in.Regions {
				if in.Op == ir.OpLoop {
					region(s, times*loopWeight, true)
				} else {
					region(s, times, inLoop)
				}
			}
		}
	}
	region(f.Body, 1, false)
	for i, q := range f.Params {
		p.used = append(p.used, used[q.Value])
		if q.Kind == ir.Stride && used[q.Value] || q.Kind == ir.Shape && limits[q.Value] {
			p.freeze = append(p.freeze, i)
		}
	}
}

// worthFreezing reports whether the value of a parameter becomes part of the code.
func worthFreezing(k ir.ParamKind, x int64) bool {
	return k == ir.Stride && x >= 0 && x <= smallSize || k == ir.Shape && x > 0 && x <= smallSize
}

// find returns the variant of a key; make describes it if it is new.
func (p *machineProgram) find(key []byte, make func() *variant) *variant {
	p.mu.RLock()
	v := p.variants[string(key)]
	p.mu.RUnlock()
	if v == nil {
		p.mu.Lock()
		if v = p.variants[string(key)]; v == nil {
			if len(p.variants) >= mostVariants {
				clear(p.variants)
			}
			v = make()
			p.variants[string(key)] = v
		}
		p.mu.Unlock()
	}
	v.once.Do(func() { v.err = guarded(func() error { return v.compile(p) }) })
	return v
}

// many reports whether there are so many variants that new ones should serve more
// launches.
func (p *machineProgram) many() bool {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return len(p.variants) >= manyVariants
}

func (v *variant) compile(p *machineProgram) (err error) {
	k := v.kernel
	k.Func = p.f
	if len(v.frozen) > 0 {
		if k.Func, err = p.expand(v.frozen); err != nil {
			return err
		}
	}
	v.code, err = p.load(&k, p.target, amd64.Options{})
	return err
}

// estimate is the time of a worker in ns, and whether it was measured.
func (v *variant) estimate(p *machineProgram) (ns float64, measured bool) {
	if x := math.Float64frombits(v.cost.Load()); x > 0 {
		return x, true
	}
	return max(0.4*p.weight/float64(max(v.code.code.Lanes, 1)), 0.1), false
}

// measure notes what so many workers took.
func (v *variant) measure(workers int, ns float64) {
	x := max(ns/float64(workers), 1e-3)
	if old := math.Float64frombits(v.cost.Load()); old > 0 {
		// The system may have run something else meanwhile.
		x = old + float64(min(x, 4*old)-old)/4
	}
	v.cost.Store(math.Float64bits(x))
}

// describe is what Describe writes of a variant.
func (v *variant) describe(p *machineProgram) string {
	code := v.code.code
	if listed, err := amd64.Compile(v.code.kernel, p.target, amd64.Options{Listing: true}); err == nil {
		code = listed
	}
	b := &strings.Builder{}
	fmt.Fprintf(b, "%s: %v, %d workers at a time, %d instructions", p.given.Name, p.target, code.Lanes, code.Instructions)
	for _, n := range []struct {
		n    int
		what string
	}{{code.PerCall, "once per call"}, {code.PerRow, "once per row"}, {code.Constants, "constants in registers"}, {code.Spills, "values in memory"}} {
		if n.n > 0 {
			fmt.Fprintf(b, ", %d %s", n.n, n.what)
		}
	}
	b.WriteByte('\n')
	place := map[amd64.Access]string{
		amd64.Same: "one value", amd64.PerRow: "one value per row", amd64.Unit: "consecutive elements", amd64.Strided: "elements in equal steps",
		amd64.Count: "a place, one per row", amd64.CountUnit: "a place that counts up by one", amd64.CountStep: "a place in equal steps",
	}
	for i, q := range p.f.Params {
		what := place[v.kernel.In[i]]
		if x, ok := v.frozen[i]; ok {
			what = ir.FormatBits(p.f.Types[q.Value], x)
		} else if !p.used[i] {
			what = "not looked at"
		}
		fmt.Fprintf(b, "  %s: %s\n", q.Name, what)
	}
	for i := range p.f.Results {
		fmt.Fprintf(b, "  result %d: %s\n", i, place[v.kernel.Out[i]])
	}
	if len(code.Sites) > 0 {
		names := map[string]int{}
		for i := range code.Sites {
			in := code.Sites[i].Instr
			name := in.Op.String()
			if in.Op == ir.OpMath {
				name = in.Fn.String()
			}
			names[name]++
		}
		var list []string
		for name, n := range names {
			list = append(list, fmt.Sprintf("%d %s", n, name))
		}
		slices.Sort(list)
		fmt.Fprintf(b, "  carried out in Go: %s\n", strings.Join(list, ", "))
	}
	if v.kernel.Streaming {
		b.WriteString("  results are written past the caches\n")
	}
	list(b, code)
	return b.String()
}
