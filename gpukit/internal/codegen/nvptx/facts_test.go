package nvptx

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"gpunotes/gpukit/internal/ir"
	"gpunotes/gpukit/internal/ir/irtest"
	"gpunotes/gpukit/internal/ptx"
)

// opcodes counts the instructions of a kernel whose opcode begins with prefix.
func opcodes(f *ptx.Func, prefix string) (n int) {
	for i := range f.Instrs {
		if strings.HasPrefix(f.Instrs[i].Opcode, prefix) {
			n++
		}
	}
	return n
}

// randomFacts are some of what is true of a launch.
func randomFacts(r *rand.Rand, f *ir.Func, in *irtest.Inputs, k *Kernel) (facts Facts) {
	facts.Frozen, facts.Arrays, facts.InStrides, facts.OutStrides = map[int]ir.Bits{}, map[ir.Mem]Array{}, map[Place]int64{}, map[Place]int64{}
	facts.Narrow = r.IntN(2) == 0
	for i, p := range f.Params {
		same := true
		for _, a := range in.Args {
			same = same && a[i] == in.Args[0][i]
		}
		if same && r.IntN(3) == 0 && p.Kind < ir.ThreadIdx {
			facts.Frozen[i] = in.Args[0][i]
		}
		if p.Kind == ir.Stride && in.Args[0][i] == 1 && r.IntN(2) == 0 {
			facts.Arrays[p.Mem] = Array{Contiguous: r.IntN(2) == 0, Unit: true}
		}
	}
	for i, a := range k.In {
		if a == Strided && r.IntN(2) == 0 {
			facts.InStrides[Place{i, 0}] = -pad
		}
	}
	for i, a := range k.Out {
		if a == Strided && r.IntN(2) == 0 {
			facts.OutStrides[Place{i, 0}] = -pad
		}
	}
	return facts
}

// TestVectors: adjacent elements of one worker are one access where the
// alignment is known, and only there.
func TestVectors(t *testing.T) {
	for _, typ := range []ir.Type{ir.F64, ir.F32, ir.U8, ir.I64} {
		for _, c := range []struct {
			align, width  int
			alias, frozen bool
			loads, stores int // vectors of each
			single        int // loads and stores of one element
		}{
			{align: 32, width: 4, frozen: true, loads: 1, stores: 1},
			{align: 0, width: 4, frozen: true, single: 8},
			{align: typ.Size() * 2, width: 4, frozen: true, loads: 2, stores: 2},
			{align: 32, width: 3, frozen: true, single: 6},
			{align: 32, width: 4, frozen: true, alias: true, stores: 0, single: 8},
			{align: 32, width: 4, frozen: false, single: -1},
		} {
			f := ir.NewFunc("rows")
			x, out := f.AddArray("x", typ, 2), f.AddArray("out", typ, 2)
			tid := f.AddParamOf(ir.Param{Name: "threadIdx.x", Kind: ir.ThreadIdx}, ir.I64)
			b := ir.NewBuilder(f)
			b.Loop([]ir.Value{b.Const(ir.I64, 0)}, nil, func(v []ir.Value) {
				b.If(b.Op(ir.OpLt, v[0], x.Shape[1]), nil, func() {
					at := func(a ir.ArrayParam) ir.Value {
						return b.Op(ir.OpAdd, b.Op(ir.OpAdd, a.Offset, b.Op(ir.OpMul, tid, a.Stride[0])), b.Op(ir.OpMul, v[0], a.Stride[1]))
					}
					e := b.Load(x.Mem, at(x))
					b.Store(out.Mem, at(out), b.Op(ir.OpAdd, e, e))
					b.Yield()
				}, func() { b.Break(1) })
				b.Yield(b.Op(ir.OpAdd, v[0], b.Const(ir.I64, 1)))
			})
			b.Yield()
			const rows = 6
			k := &Kernel{Name: "rows", Func: f, Threads: true, NoAlias: !c.alias, Facts: Facts{Frozen: map[int]ir.Bits{}, Arrays: map[ir.Mem]Array{}}}
			in := &irtest.Inputs{Groups: 1, Group: rows, Mems: make([][]ir.Bits, 2)}
			for m := range 2 {
				k.Facts.Arrays[ir.Mem(m)] = Array{Contiguous: true, Align: c.align}
				in.Mems[m] = make([]ir.Bits, rows*c.width)
				for j := range in.Mems[m] {
					in.Mems[m][j] = ir.Convert(typ, ir.I64, ir.Bits(j+m))
				}
			}
			var args []ir.Bits
			for i, p := range f.Params {
				v := map[ir.ParamKind]int{ir.Shape: []int{rows, c.width}[p.Dim], ir.Stride: []int{c.width, 1}[p.Dim]}[p.Kind]
				args = append(args, ir.Bits(v))
				if p.Kind == ir.Shape && c.frozen {
					k.Facts.Frozen[i] = ir.Bits(v)
				}
			}
			for w := range rows {
				in.Args = append(in.Args, append(args[:len(args)-1:len(args)-1], ir.Bits(w)))
			}
			m, entries := emit(t, Target{SM: 61}, k)
			got, err := executeOn(newMachine(t, m), k, entries[0], in, 1, rows)
			if err == nil {
				err = compare(f, got, expect(f, in), in.Args)
			}
			if err != nil {
				t.Fatalf("%v, %+v: %v\n%v", typ, c, err, m)
			}
			fn := m.Func("rows")
			all := opcodes(fn, "ld.global") + opcodes(fn, "st.global")
			loads, stores := 0, 0
			for i := range fn.Instrs {
				if d, _ := ptx.Decode(fn.Instrs[i].Opcode); d.Vec > 0 && d.Op == "ld" {
					loads++
				} else if d.Vec > 0 {
					stores++
				}
			}
			want := c
			if typ == ir.F64 || typ == ir.I64 { // 16 bytes are two
				want.loads, want.stores = c.loads*2, c.stores*2
				if c.align == 16 {
					want.loads, want.stores = c.loads, c.stores
				}
			}
			if loads != want.loads || stores != want.stores || c.single >= 0 && all-loads-stores != want.single {
				t.Errorf("%v, %+v: %d vector loads, %d vector stores, %d others\n%v", typ, c, loads, stores, all-loads-stores, m)
			}
		}
	}
}

// TestGenerators compares generated elements, of a parameter and of a memory,
// with the formulas in Go.
func TestGenerators(t *testing.T) {
	linspace := func(start, stop float64, n, k int) float64 {
		step := (stop - start) / float64(n-1)
		switch {
		case n > 1 && k == n-1:
			return stop
		case n == 1:
			step = 0
		case step == 0:
			return float64(float64(k)/float64(n-1)*(stop-start)) + start
		}
		return float64(float64(k)*step) + start
	}
	f := ir.NewFunc("f", ir.F64)
	x := f.AddParam("x", ir.F64)
	axis := f.AddArray("axis", ir.F64, 1)
	b := ir.NewBuilder(f)
	y := b.Load(axis.Mem, b.Op(ir.OpAdd, axis.Offset, b.Op(ir.OpMul, b.Const(ir.I64, 2), axis.Stride[0])))
	b.Yield(b.Op(ir.OpSub, x, b.Op(ir.OpMul, y, b.Const(ir.F64, ir.FromF64(0.25)))))
	for _, c := range []struct {
		g           Generator
		start, stop float64
		n           int
	}{
		{Arange, 0, 0, 30}, {Linspace, 29, 31, 30}, {Linspace, -1.1, 99.7, 13}, {Linspace, 3, 4, 1}, {Linspace, math.Copysign(0, -1), 0, 7}, {Linspace, 1, -1, 2},
		{Flat, 0, 5e-324, 30}, {Flat, 1e-300, 1e-300, 5}, {Linspace, math.Inf(-1), 1, 4}, {Linspace, 0, math.NaN(), 4}, {Linspace, 5, 5, 1},
	} {
		at := func(k int) float64 {
			if c.g == Arange {
				return float64(k)
			}
			return linspace(c.start, c.stop, c.n, k)
		}
		k := &Kernel{Name: "f", Func: f, In: []Access{Generated(c.g)}, Out: []Access{Contiguous}, Facts: Facts{Arrays: map[ir.Mem]Array{0: {Generator: c.g}}}}
		m, entries := emit(t, Target{SM: 52}, k)
		if n := opcodes(m.Func("f"), "ld.global"); n > 0 {
			t.Errorf("%+v: %d loads\n%v", c, n, m)
		}
		// The parameter is walked backwards from the last element, each second one.
		workers := (c.n + 1) / 2
		mc := newMachine(t, m)
		out := mc.alloc(make([]byte, 8*workers))
		var params []uint64
		for _, p := range entries[0].Params {
			step := 0.0
			if c.n > 1 {
				step = (c.stop - c.start) / float64(c.n-1)
			}
			if c.g == Flat {
				step = c.stop - c.start
			}
			last := int64(-1)
			if c.n > 1 {
				last = int64(c.n - 1)
			}
			switch {
			case p.Kind == Workers:
				params = append(params, uint64(workers))
			case p.Kind == OutBase:
				params = append(params, out)
			case p.Kind == ArgValue && p.Index == 0:
				params = append(params, uint64(c.n-1))
			case p.Kind == ArgStride && p.Index == 0:
				params = append(params, ^uint64(1))
			case p.Kind == ArgValue:
				params = append(params, map[ir.ParamKind]uint64{ir.Offset: 1, ir.Stride: 3}[f.Params[p.Index].Kind])
			case p.Kind == GenStart:
				params = append(params, math.Float64bits(c.start))
			case p.Kind == GenStep:
				params = append(params, math.Float64bits(step))
			case p.Kind == GenStop:
				params = append(params, math.Float64bits(c.stop))
			case p.Kind == GenLast:
				params = append(params, uint64(last))
			default:
				t.Fatalf("parameter %+v", p)
			}
		}
		if err := mc.launch("f", 1, 4, 0, params); err != nil {
			t.Fatalf("%v\n%v", err, m)
		}
		for w := range workers {
			want := at(c.n-1-2*w) - float64(at(1+2*3)*0.25)
			got := mc.word(out+uint64(8*w), 8)
			if ir.Canonical(ir.F64, got) != ir.Canonical(ir.F64, ir.FromF64(want)) {
				t.Errorf("%+v, worker %d: %v (%#x), want %v (%#x)", c, w, ir.ToF64(got), got, want, math.Float64bits(want))
			}
		}
	}
}

// TestPlaces puts known strides, frozen and equal sizes into kernels of several
// loop dimensions, and looks at what is left to compute.
func TestPlaces(t *testing.T) {
	f := ir.NewFunc("outer", ir.F64)
	x, y := f.AddParam("x", ir.F64), f.AddParam("y", ir.F64)
	b := ir.NewBuilder(f)
	b.Yield(b.Op(ir.OpSub, x, y))
	known := map[Place]int64{{0, 0}: 0, {0, 1}: 1, {0, 2}: 0, {1, 0}: 0, {1, 1}: 0, {1, 2}: 2}
	for _, c := range []struct {
		facts Facts
		loads int // of strides
		div64 int
	}{
		{Facts{}, 6, 2},
		{Facts{InStrides: known}, 0, 2},
		{Facts{InStrides: known, Narrow: true}, 0, 0},
		{Facts{InStrides: map[Place]int64{{0, 0}: 0, {1, 0}: 0}}, 4, 2},
		{Facts{InStrides: map[Place]int64{{0, 0}: 0, {0, 1}: 0, {1, 0}: 0, {1, 1}: 0}}, 2, 1},
	} {
		k := &Kernel{Name: "outer", Func: f, Rank: 3, In: []Access{Strided, Strided}, Out: []Access{Contiguous}, Facts: c.facts}
		m, entries := emit(t, Target{SM: 61}, k)
		fn := m.Func("outer")
		strides := 0
		mc := newMachine(t, m)
		data := func(n int) uint64 {
			b := make([]byte, 8*n)
			for i := range n {
				put(b[8*i:][:8], ir.FromF64(float64(i)))
			}
			return mc.alloc(b)
		}
		shape := []int{2, 3, 5}
		bases := [2]uint64{data(3), data(9)}
		out := mc.alloc(make([]byte, 8*30))
		var params []uint64
		last := len(c.facts.InStrides) == 4 && c.facts.InStrides[Place{0, 1}] == 0 // only the last dimension counts
		if _, ok := c.facts.InStrides[Place{0, 1}]; !ok {
			last = false
		}
		for _, p := range entries[0].Params {
			switch p.Kind {
			case Workers:
				params = append(params, 30)
			case LoopShape:
				params = append(params, uint64(shape[p.Dim]))
			case ArgBase:
				params = append(params, bases[p.Index])
			case ArgStride:
				strides++
				s := known[Place{p.Index, p.Dim}]
				if last && p.Index == 0 {
					s = 0
				}
				params = append(params, uint64(s))
			case OutBase:
				params = append(params, out)
			}
		}
		if err := mc.launch("outer", 2, 7, 0, params); err != nil {
			t.Fatal(err)
		}
		for i := range 30 {
			want := float64(i/5%3) - float64(2*(i%5))
			if last {
				want = -float64(2 * (i % 5))
			}
			if got := ir.ToF64(mc.word(out+uint64(8*i), 8)); got != want {
				t.Fatalf("%+v: element %d is %v, want %v\n%v", c.facts, i, got, want, m)
			}
		}
		if div := opcodes(fn, "div.u64"); strides != c.loads || div != c.div64 || (div == 0) != c.facts.Narrow {
			t.Errorf("%+v: %d strides are passed, %d divisions of 64 bits\n%v", c.facts, strides, div, m)
		}
	}
}

// TestEqual: what a layout gives one name is passed once.
func TestEqual(t *testing.T) {
	f := ir.Optimize(vest())
	names := map[string]int{}
	for i, p := range f.Params {
		names[p.Name] = i
	}
	equal := map[int]int{names["countCol"]: names["multBy.shape0"], names["n"]: names["multBy.shape1"], names["discount.shape0"]: names["countRow"]}
	for _, p := range [][2]string{{"discount.shape1", "multBy.shape0"}, {"discount.shape2", "multBy.shape1"}, {"cv.shape0", "countRow"}, {"cv.shape1", "multBy.shape0"}, {"cv.shape2", "multBy.shape1"}} {
		equal[names[p[0]]] = names[p[1]]
	}
	arrays := map[ir.Mem]Array{0: {Contiguous: true}, 1: {Contiguous: true}, 2: {Contiguous: true}}
	k := &Kernel{Name: "vest", Func: f, Facts: Facts{Arrays: arrays, Equal: equal}}
	m, entries := emit(t, Target{SM: 61}, k)
	if len(entries[0].Checks) > 0 { // each loop goes to a length
		t.Errorf("checks %v\n%v", entries[0].Checks, m)
	}
	values := 0
	for _, p := range entries[0].Params {
		if p.Kind == ArgValue {
			values++
		}
	}
	if want := 3 + 3; values != want { // three offsets, three sizes
		t.Errorf("%d values are passed, want %d\n%v", values, want, m)
	}
	in := &irtest.Inputs{Groups: 1, Group: 1, Args: [][]ir.Bits{vestArgs(f, 3, 4, 11)}}
	for _, n := range []int{44, 132, 132} {
		data := make([]ir.Bits, n)
		for i := range data {
			data[i] = ir.FromF64(float64(i))
		}
		in.Mems = append(in.Mems, data)
	}
	got, err := executeOn(newMachine(t, m), k, entries[0], in, 1, 1)
	if err == nil {
		err = compare(f, got, expect(f, in), in.Args)
	}
	if err != nil {
		t.Fatal(fmt.Errorf("%w\n%v", err, m))
	}
}

func TestLimits(t *testing.T) {
	f := vest()
	var names []string
	for _, i := range Limits(f) {
		names = append(names, f.Params[i].Name)
	}
	if got := strings.Join(names, " "); got != "countRow n countCol" {
		t.Errorf("%s", got)
	}
	if l := Limits(collatz()); l != nil {
		t.Errorf("%v", l)
	}
}

// TestDeterministic: the same kernels are the same text, with lines of the
// source that are those of the function.
func TestDeterministic(t *testing.T) {
	first, entries := emit(t, Target{SM: 61}, experiments()...)
	text := first.String()
	for range 3 {
		if m, _ := emit(t, Target{SM: 61}, experiments()...); m.String() != text {
			t.Fatal("another text")
		}
	}
	if len(entries) != len(experiments()) {
		t.Fatal(len(entries))
	}
	fn := first.Func("t14")
	for i := range fn.Instrs {
		if in := &fn.Instrs[i]; strings.HasPrefix(in.Opcode, "st.global") && (in.Loc.Line != 7 || in.Loc.Col != 5 || first.Files[in.Loc.File-1].Name != "cell 1") {
			t.Errorf("%s is said to be of %+v", fn.Format(in), in.Loc)
		}
	}
}
