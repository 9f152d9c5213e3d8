package gpukit

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"gpunotes/gpukit/internal/frontend"
	"gpunotes/gpukit/internal/ir"
	"gpunotes/gpukit/internal/ir/irtest"
)

// fuzzing says how much to try: FUZZ=20 tries 20 times as much as a test of
// everyday, and SEED other programs than that. `make fuzz` sets both.
func fuzzing() (rounds int, seed uint64) {
	number := func(name string, otherwise int) int {
		if n, err := strconv.Atoi(os.Getenv(name)); err == nil && n > 0 {
			return n
		}
		return otherwise
	}
	return number("FUZZ", 1), uint64(number("SEED", 20))
}

// TestRandomFunctions compares random Go functions, on every engine, with the Go
// compiler: of numbers as ufuncs, of slices as kernels and as gufuncs.
func TestRandomFunctions(t *testing.T) {
	rounds, seed := fuzzing()
	seen := coverage{}
	for round := range rounds {
		r := rand.New(rand.NewPCG(seed, uint64(round)))
		b := &batch{}
		a := newAuthor(r, b)
		for i := range 90 {
			a.function(i%3 == 2)
		}
		for _, f := range b.funcs {
			f.random(r, 70)
		}
		b.run(t)
		for _, f := range b.funcs {
			for _, fn := range []*function{f.fn, f.kernel, f.gufn} {
				if fn != nil {
					seen.add(fn.source.Func)
				}
			}
		}
		eachEngine(t, func(t *testing.T, d *Device) {
			b.check(t, d, r, 0, 1, 33)
			b.tablesAgree(t, d, r)
		})
		if t.Failed() {
			if testing.Verbose() {
				t.Log(b.text.String())
			}
			t.Fatalf("SEED=%d, round %d", seed, round)
		}
	}
	for i := range 400 * rounds {
		if f := randomKernel(t, seed, uint64(i)); f != nil {
			seen.add(f)
		}
	}
	seen.report(t)
}

// random are random rows, those of functions of numbers beginning with a table.
func (f *batched) random(r *rand.Rand, n int) {
	types := slices.Clone(f.params)
	for k := range sliceElements {
		if f.elem != nil {
			types = append(types, f.elemType(k))
		}
	}
	if f.elem == nil {
		f.height, f.width = 7, 9
		for range f.params {
			f.walks = append(f.walks, "rrccb1"[r.IntN(6)])
		}
	}
	for k := range n {
		var row []ir.Bits
		for i, t := range types {
			x := randomValue(r, irTypes[t])
			switch {
			case k >= f.height*f.width:
			case f.walks[i] == 'r' && k%f.width > 0:
				x = f.rows[k-1][i]
			case f.walks[i] == 'c' && k >= f.width:
				x = f.rows[k-f.width][i]
			case f.walks[i] == '1' && k > 0:
				x = f.rows[0][i]
			}
			row = append(row, x)
		}
		f.rows = append(f.rows, row)
	}
}

// randomKernel compares a random function of all operations, with threads that
// meet, on every engine with the first one, which is the reference evaluator.
func randomKernel(t *testing.T, seed, i uint64) *ir.Func {
	r := rand.New(rand.NewPCG(seed, i+1<<32))
	o := irtest.Options{Memory: true, Threads: i%2 == 0, Faults: i%3 == 0}
	if o.Threads { // these have enough else to do
		o.Without = []ir.Op{ir.OpPrint}
	}
	f := irtest.Random(r, fmt.Sprint("k", i), o)
	if err := ir.Verify(f); err != nil {
		t.Fatal(err)
	}
	group, blocks := 1+r.IntN(70), 1+r.IntN(3)
	in := irtest.NewInputs(r, f, blocks, group)
	for i := range in.Args {
		copy(in.Args[i], in.Args[0]) // Launch gives all threads the same numbers
	}
	fn, args := launchable(f, in)
	var want []*Array
	var wantLines []string
	var failed error
	for e := range engines {
		d := engines[e].open()
		var lines []string
		d.printed = func(s string) { lines = append(lines, s) }
		var copies []*Array
		in := slices.Clone(args)
		for k, x := range in {
			if a, ok := x.(*Array); ok {
				c := &Array{makeStorage(a.DType(), a.store.len()), a.offset, a.shape, a.strides}
				for j := range a.store.len() {
					c.store.setBits(j, a.store.bits(j))
				}
				in[k] = c
				copies = append(copies, c)
			}
		}
		dynamic := 8 * group
		err := d.With(SharedBytes(dynamic)).Launch(fn, Blocks(blocks), Threads(group), in...)
		d.Close()
		slices.Sort(lines) // the reference does not put them in the order of workers
		switch {
		case e == 0:
			want, wantLines, failed = copies, lines, err
			continue
		case fmt.Sprint(err) != fmt.Sprint(failed):
			t.Errorf("SEED=%d, kernel %d on %s: error %v, want %v", seed, i, engines[e].name, err, failed)
			return f
		case err != nil:
			continue
		case !slices.Equal(lines, wantLines):
			t.Errorf("SEED=%d, kernel %d on %s: it prints %q, want %q", seed, i, engines[e].name, lines, wantLines)
			return f
		}
		for k, a := range copies {
			for j := range a.Size() {
				if got, w := a.bitsAt(j), want[k].bitsAt(j); got != w {
					t.Errorf("SEED=%d, kernel %d on %s: element %d of array %d is %s, want %s", seed, i, engines[e].name, j, k,
						ir.FormatBits(a.DType().ir(), got), ir.FormatBits(a.DType().ir(), w))
					return f
				}
			}
		}
	}
	return f
}

// launchable makes of a random function one that Launch takes: results go to
// arrays, and there are arrays for its memories.
func launchable(f *ir.Func, in *irtest.Inputs) (*function, []any) {
	g := ir.NewFunc(f.Name)
	src := &frontend.Program{Func: g, Key: fmt.Sprintf("%s %p", f.Name, f), UsesThreads: true, Meets: true}
	var args []any
	var vals []ir.Value
	mems := map[ir.Mem]ir.Mem{}
	var bound []ir.Mem
	k := 0
	place := map[ir.ParamKind]ir.Value{}
	arrays := map[ir.Mem]*Array{}
	for m, mem := range f.Mems {
		if mem.Space != ir.Global {
			continue
		}
		data := makeStorage(DType(mem.Elem), len(in.Mems[k]))
		for i, b := range in.Mems[k] {
			data.setBits(i, b)
		}
		k++
		mems[ir.Mem(m)] = g.AddMem(mem)
		bound = append(bound, mems[ir.Mem(m)])
		arrays[ir.Mem(m)] = &Array{data, 0, []int{0}, []int{0}}
	}
	for i, p := range f.Params {
		x := in.Args[0][i]
		old := p.Mem
		p.Mem = mems[p.Mem]
		v := g.AddParamOf(p, f.Types[p.Value])
		vals = append(vals, v)
		switch p.Kind {
		case ir.Scalar:
			t := f.Types[p.Value]
			src.Params = append(src.Params, frontend.Param{Name: p.Name, Type: t})
			s := makeStorage(DType(t), 1)
			s.setBits(0, x)
			args = append(args, (&Array{s, 0, nil, nil}).Item())
		case ir.Offset:
			arrays[old].offset = int(x)
			src.Params = append(src.Params, frontend.Param{Name: p.Name, Kind: frontend.Array, Type: f.Mems[old].Elem, Rank: 1, Mem: p.Mem, Read: true, Written: true})
			args = append(args, arrays[old])
		case ir.Shape:
			arrays[old].shape[0] = int(x)
		case ir.Stride:
			arrays[old].strides[0] = int(x)
		default:
			place[p.Kind] = v
		}
	}
	n := in.Groups * in.Group
	var outs []ir.ArrayParam
	for j, t := range f.Results {
		outs = append(outs, g.AddArray(fmt.Sprint("out", j), t, 1))
		src.Params = append(src.Params, frontend.Param{Name: fmt.Sprint("out", j), Kind: frontend.Array, Type: t, Rank: 1, Mem: outs[j].Mem, Written: true})
		args = append(args, newArray(makeStorage(DType(t), n), []int{n}))
	}
	b := ir.NewBuilder(g)
	res := b.CallMems(f, bound, vals...)
	worker := b.Op(ir.OpAdd, b.Op(ir.OpMul, place[ir.BlockIdx], place[ir.BlockDim]), place[ir.ThreadIdx])
	for j, o := range outs {
		b.Store(o.Mem, b.Op(ir.OpAdd, o.Offset, b.Op(ir.OpMul, worker, o.Stride[0])), res[j])
	}
	b.Yield()
	return &function{name: f.Name, source: src}, args
}

// coverage counts operations by type and by what they stand in.
type coverage map[string]int

// add counts a function as it was written and as it is optimised.
func (c coverage) add(f *ir.Func) {
	funcs := map[*ir.Func]bool{}
	var visit func(f *ir.Func, r *ir.Region, where string)
	visit = func(f *ir.Func, r *ir.Region, where string) {
		for i := range r.Instrs {
			in := &r.Instrs[i]
			for _, k := range keysOf(f, in) {
				c[k+" "+where]++
			}
			for _, s := range in.Regions {
				inner := "if"
				if in.Op == ir.OpLoop || where == "loop" {
					inner = "loop"
				}
				visit(f, s, inner)
			}
			if in.Callee != nil && !funcs[in.Callee] {
				funcs[in.Callee] = true
				visit(in.Callee, in.Callee.Body, "straight")
			}
		}
	}
	visit(f, f.Body, "straight")
	visit(ir.Optimize(f), ir.Optimize(f).Body, "straight")
}

// keysOf names an instruction for the table: what it is and its types.
func keysOf(f *ir.Func, in *ir.Instr) []string {
	switch {
	case in.Op.Row().Result != nil && (in.Op == ir.OpShl || in.Op == ir.OpShr):
		return []string{fmt.Sprint(in.Op, " ", f.Types[in.Args[0]]), fmt.Sprint(in.Op, " by ", f.Types[in.Args[1]])}
	case in.Op.Row().Result != nil:
		return []string{fmt.Sprint(in.Op, " ", f.Types[in.Args[len(in.Args)-1]])}
	case in.Op == ir.OpConvert:
		return []string{fmt.Sprint("convert ", f.Types[in.Args[0]], " ", f.Types[in.Results[0]])}
	case in.Op == ir.OpMath:
		return []string{in.Fn.String()}
	case in.Op == ir.OpLoad || in.Op == ir.OpStore:
		m := f.Mems[in.Mem]
		return []string{fmt.Sprint(in.Op, " ", m.Space, " ", m.Elem)}
	case in.Op == ir.OpAtomic:
		return []string{fmt.Sprint("atomic ", in.Kind, " ", f.Mems[in.Mem].Elem)}
	case in.Op == ir.OpShuffle || in.Op == ir.OpVote:
		return []string{fmt.Sprint(in.Op, " ", in.Kind, " ", f.Types[in.Args[0]])}
	case in.Op == ir.OpBreak:
		return []string{fmt.Sprint("break ", min(in.Level(), 3))}
	}
	return []string{in.Op.String()}
}

// table is everything that there is to cover.
func table() []string {
	var all []string
	add := func(where []string, format string, args ...any) {
		for _, w := range where {
			all = append(all, fmt.Sprintf(format, args...)+" "+w)
		}
	}
	everywhere, anywhere, nested := []string{"straight", "if", "loop"}, []string{"*"}, []string{"if", "loop"}
	for op := range ir.NumOps {
		row := op.Row()
		if row.Result == nil {
			continue
		}
		for _, t := range ir.Types {
			ts := []ir.Type{t, t, t}[:row.Args]
			if row.Args == 3 {
				ts[0] = ir.Bool
			}
			if op == ir.OpShl || op == ir.OpShr {
				if row.Result([]ir.Type{ir.I64, t}) != ir.Invalid {
					add(anywhere, "%v by %v", op, t)
				}
			}
			if row.Result(ts) != ir.Invalid {
				add(everywhere, "%v %v", op, t)
			}
		}
	}
	for _, from := range ir.Types {
		for _, to := range ir.Types {
			if from != to && from != ir.Bool && to != ir.Bool {
				add(anywhere, "convert %v %v", from, to)
			}
		}
		for _, space := range []ir.Space{ir.Global, ir.Local} {
			add(anywhere, "load %v %v", space, from)
			add(anywhere, "store %v %v", space, from)
		}
		add(anywhere, "load shared %v", from)
		add(anywhere, "load constant %v", from)
		for k := ir.ShuffleIdx; k <= ir.ShuffleXor; k++ {
			add(anywhere, "shuffle %v %v", k, from)
		}
		if from.IsInt() {
			for k := ir.Kind(0); k <= ir.AtomicXor; k++ {
				add(anywhere, "atomic %v %v", k, from)
			}
			add(anywhere, "atomic %v %v", ir.CompareSwap, from)
			add(anywhere, "atomic %v %v", ir.Exchange, from)
		}
	}
	for i := range ir.NumMath() {
		if name := ir.MathFn(i).String(); name != "math.Jn" && name != "math.Yn" && ir.MathFn(i).Row().Go() {
			add(anywhere, "%s", name)
		}
	}
	for _, v := range []ir.Kind{ir.VoteAny, ir.VoteAll, ir.Ballot} {
		add(anywhere, "vote %v bool", v)
	}
	for level := range 4 {
		add(nested, "break %d", level)
	}
	for _, op := range []ir.Op{ir.OpIf, ir.OpLoop, ir.OpCall} {
		add(everywhere, "%v", op)
	}
	for _, op := range []ir.Op{ir.OpBarrier, ir.OpWarpBarrier, ir.OpBounds, ir.OpSliceBounds, ir.OpClear, ir.OpPrint} {
		add(anywhere, "%v", op)
	}
	return all
}

// report fails below 95 % of the table.
func (c coverage) report(t *testing.T) {
	for k, n := range maps.Clone(c) {
		c[k[:strings.LastIndex(k, " ")]+" *"] += n
	}
	all := table()
	var missing []string
	for _, k := range all {
		if c[k] == 0 {
			missing = append(missing, k)
		}
	}
	slices.Sort(missing)
	percent := 100 * float64(len(all)-len(missing)) / float64(len(all))
	t.Logf("%.1f %% of %d entries (operation, type, control) covered; not: %s", percent, len(all), strings.Join(missing, ", "))
	if percent < 95 {
		t.Errorf("only %.1f %% of the operations by type and control are covered, want 95", percent)
	}
}
