package nvptx

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"gpunotes/gpukit/internal/ir"
	"gpunotes/gpukit/internal/ir/irtest"
)

// caller makes a function that calls g twice, once for some workers only, and
// returns what the calls give and whether the second was made.
func caller(g *ir.Func) *ir.Func {
	f := ir.NewFunc("caller", append(append([]ir.Type(nil), g.Results...), g.Results...)...)
	var args []ir.Value
	var mems []ir.Mem
	for _, m := range g.Mems {
		if m.Space == ir.Global {
			mems = append(mems, f.AddMem(ir.Memory{Name: m.Name, Space: ir.Global, Elem: m.Elem}))
		}
	}
	for _, p := range g.Params {
		q := p
		if p.Kind == ir.Offset || p.Kind == ir.Shape || p.Kind == ir.Stride {
			n := ir.Mem(0) // its number among the Global ones
			for _, m := range g.Mems[:p.Mem] {
				if m.Space == ir.Global {
					n++
				}
			}
			q.Mem = n
		}
		args = append(args, f.AddParamOf(q, g.Types[p.Value]))
	}
	b := ir.NewBuilder(f)
	r := b.CallMems(g, mems, args...)
	var last ir.Value
	for i, p := range g.Params {
		if p.Kind == ir.Scalar && g.Types[p.Value] == ir.Bool {
			last = args[i]
		}
	}
	s := b.If(last, g.Results, func() { b.Yield(b.CallMems(g, mems, args...)...) }, func() { b.Yield(r...) })
	b.Yield(append(r, s...)...)
	return f
}

// TestOutline compares random functions that are called with the evaluator:
// scalars of all types, memories, faults inside, calls in calls.
func TestOutline(t *testing.T) {
	ran, faulted := 0, 0
	for _, o := range []irtest.Options{{Statements: 30}, {Statements: 30, Faults: true}, {Statements: 30, Memory: true, Faults: true}} {
		for seed := range uint64(60) {
			r := rand.New(rand.NewPCG(seed, 77))
			g := random(r, fmt.Sprint("g", seed), o)
			g.Outline = true
			f := caller(g)
			if seed%3 == 0 && !o.Memory {
				h := caller(g)
				h.Outline = true
				f = caller(h)
			}
			if err := ir.Verify(f); err != nil {
				t.Fatal(err)
			}
			in := irtest.NewInputs(r, f, 1+r.IntN(2), 1+r.IntN(8))
			k := &Kernel{Name: "caller", Func: f, Threads: o.Memory, NoAlias: r.IntN(2) == 0, Poll: r.IntN(2) == 0}
			if seed%2 == 0 {
				k.Func = ir.Optimize(f)
			}
			for _, p := range f.Params {
				a := Contiguous
				if p.Kind >= ir.ThreadIdx {
					a = ByValue
				}
				k.In = append(k.In, a)
			}
			for range f.Results {
				k.Out = append(k.Out, Contiguous)
			}
			m, entries := emit(t, Target{SM: 61}, k)
			if opcodes(m.Func("caller"), "call") == 0 || !strings.Contains(m.String(), ".func") {
				t.Fatalf("seed %d: no call\n%v", seed, m)
			}
			want := expect(f, in)
			grid, block := in.Groups, in.Group
			got, err := executeOn(newMachine(t, m), k, entries[0], in, grid, block)
			if err == nil {
				err = compare(f, got, want, in.Args)
			}
			if err != nil {
				t.Fatalf("seed %d, %+v: %v\n%v\n%v", seed, o, err, f, m)
			}
			if ran++; want.worker >= 0 {
				faulted++
			}
		}
	}
	if t.Logf("%d launches, %d faulted", ran, faulted); faulted < 5 {
		t.Error("too few faults")
	}
}
