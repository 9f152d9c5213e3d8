package ir_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"gpunotes/gpukit/internal/ir"
	"gpunotes/gpukit/internal/ir/irtest"
)

// gridOf is an index space with the parameters of every worker in it.
type gridOf struct {
	dims   []int
	args   [][]ir.Bits // by worker, in C order
	varies []ir.Axes   // by parameter
}

func (g *gridOf) at(w int) []int {
	idx := make([]int, len(g.dims))
	for d := len(g.dims) - 1; d >= 0; d-- {
		idx[d] = w % g.dims[d]
		w /= g.dims[d]
	}
	return idx
}

// along is the worker whose place is that of w on some axes and 0 on the others.
func (g *gridOf) along(w int, on ir.Axes) int {
	k := 0
	for d, i := range g.at(w) {
		k *= g.dims[d]
		if on.Has(d) {
			k += i
		}
	}
	return k
}

// restrict lets the scalar parameters of in depend on random axes of dims only.
func restrict(r *rand.Rand, f *ir.Func, in *irtest.Inputs, dims []int) *gridOf {
	g := &gridOf{dims: dims, args: in.Args}
	for i, p := range f.Params {
		on := ir.Axes(r.Uint64N(1 << len(dims)))
		if p.Kind != ir.Scalar {
			on = 1<<len(dims) - 1
		}
		for w := range in.Args {
			in.Args[w][i] = in.Args[g.along(w, on)][i]
		}
		if r.IntN(4) == 0 { // more than it needs
			on |= ir.Axes(r.Uint64N(1 << len(dims)))
		}
		g.varies = append(g.varies, on)
	}
	return g
}

// hoisted checks what HoistAxes made of f, and gives the inputs of what remains.
func hoisted(f, main *ir.Func, tables []ir.Table, g *gridOf, in *irtest.Inputs) (*irtest.Inputs, error) {
	if err := ir.Verify(main); err != nil {
		return nil, err
	}
	var all ir.Axes
	for _, on := range g.varies {
		all |= on
	}
	out := *in
	out.Args = make([][]ir.Bits, len(in.Args))
	for w := range out.Args {
		out.Args[w] = slices.Clone(in.Args[w])
	}
	for k, t := range tables {
		if err := ir.Verify(t.Func); err != nil {
			return nil, fmt.Errorf("table %d: %w", k, err)
		}
		if t.Axes&^all != 0 || t.Axes == all || len(t.Pos) != len(t.Func.Results) || len(t.Pos) == 0 || t.Saved <= 0 {
			return nil, fmt.Errorf("table %d over %b of %b, %d places, %d results, %d saved", k, t.Axes, all, len(t.Pos), len(t.Func.Results), t.Saved)
		}
		for _, s := range tables[:k] {
			if s.Axes == t.Axes {
				return nil, fmt.Errorf("two tables over %b", t.Axes)
			}
		}
		used := map[ir.Value]bool{}
		var err error
		ir.Walk(t.Func.Body, func(x *ir.Instr) {
			for _, a := range x.Args {
				used[a] = true
			}
			switch x.Op {
			case ir.OpIf, ir.OpLoop, ir.OpYield, ir.OpBreak, ir.OpUnreachable:
			default:
				if !x.Pure(t.Func) {
					err = fmt.Errorf("table %d has %v", k, x.Op)
				}
			}
		})
		for i, p := range t.Func.Params {
			if used[p.Value] && g.varies[i]&^t.Axes != 0 {
				err = fmt.Errorf("table %d over %b uses %s, which varies on %b", k, t.Axes, p.Name, g.varies[i])
			}
			if p.Kind != f.Params[i].Kind || p.Name != f.Params[i].Name || t.Func.Types[p.Value] != f.Types[f.Params[i].Value] {
				err = fmt.Errorf("table %d has other parameters", k)
			}
		}
		if err != nil {
			return nil, err
		}
		done := map[int][]ir.Bits{}
		e := &ir.Evaluator{Steps: 1e6}
		for w := range out.Args {
			at := g.along(w, t.Axes)
			if done[at] == nil {
				res, err := e.RunWorker(t.Func, make([]ir.Storage, 64), in.Args[at])
				if err != nil {
					return nil, fmt.Errorf("table %d: %w", k, err)
				}
				done[at] = res
			}
			out.Args[w] = append(out.Args[w], done[at]...)
		}
	}
	if len(main.Params) != len(out.Args[0]) {
		return nil, fmt.Errorf("%d parameters for %d arguments", len(main.Params), len(out.Args[0]))
	}
	return &out, nil
}

// TestHoistAxesRandom compares random functions on small index spaces with their
// tables and what remains of them.
func TestHoistAxesRandom(t *testing.T) {
	taken, proper, branches, loops := 0, 0, 0, 0
	defer ir.FetchCost(ir.FetchCost(0, 0))
	for k, o := range []irtest.Options{{}, {Faults: true}, {Memory: true}, {Memory: true, Faults: true}, {Memory: true, Threads: true, Faults: true}} {
		for seed := range uint64(500) {
			r := rand.New(rand.NewPCG(seed, uint64(k)))
			ir.FetchCost(int(seed%3), int(seed%2))
			f := ir.Optimize(irtest.Random(r, fmt.Sprint("f", seed), o))
			dims := [][]int{{7}, {3, 4}, {2, 3, 2}, {1, 5, 1}}[r.IntN(4)]
			n := 1
			for _, d := range dims {
				n *= d
			}
			in := irtest.NewInputs(r, f, 1, n)
			g := restrict(r, f, in, dims)
			asked := map[ir.Axes]bool{}
			worth := func(on ir.Axes, cost int) bool {
				asked[on] = true
				return cost <= 0 || seed%3 == 0 || (uint64(on)*7+seed)%3 > 0
			}
			main, tables := ir.HoistAxes(f, g.varies, worth)
			again, _ := ir.HoistAxes(f, g.varies, worth)
			if main.String() != again.String() {
				t.Fatalf("seed %d, %+v: not the same twice", seed, o)
			}
			if len(tables) == 0 && main != f {
				t.Fatalf("seed %d, %+v: no tables and another function", seed, o)
			}
			got, err := hoisted(f, main, tables, g, in)
			if err == nil {
				err = in.Evaluate(f).Compare(f, got.Evaluate(main))
			}
			for _, tab := range tables {
				taken++
				if tab.Axes != 0 {
					proper++
				}
				ir.Walk(tab.Func.Body, func(x *ir.Instr) {
					switch x.Op {
					case ir.OpIf:
						branches++
					case ir.OpLoop:
						loops++
					}
				})
				if err == nil && !asked[tab.Axes] {
					err = fmt.Errorf("a table over %b, which was not asked for", tab.Axes)
				}
			}
			if err != nil {
				for _, tab := range tables {
					t.Logf("over %b\n%v", tab.Axes, tab.Func)
				}
				t.Fatalf("seed %d, %+v: %v\n%v\n%v", seed, o, err, f, main)
			}
		}
	}
	t.Logf("%d tables, %d of them over some axis, with %d ifs and %d loops", taken, proper, branches, loops)
	if proper < 300 || branches < 10 || loops < 5 {
		t.Errorf("only %d tables over an axis, with %d ifs and %d loops", proper, branches, loops)
	}
}
