package ir

import (
	"reflect"
	"strings"
	"testing"
)

// reduce sums the elements of an array by one block through shared memory:
// shared[t] = x[t]; for h := n/2; h > 0; h /= 2 { barrier; if t < h { shared[t]
// += shared[t+h] } }; if t == 0 { out[0] = shared[0] }.
func reduce(n int, guard func(b *Builder, t Value)) *Func {
	f := NewFunc("reduce")
	x := f.AddArray("x", F64, 1)
	out := f.AddArray("out", F64, 1)
	t := f.AddParamOf(Param{Name: "threadIdx.x", Kind: ThreadIdx}, I64)
	s := f.AddMem(Memory{Name: "s", Space: Shared, Elem: F64, Len: n})
	b := NewBuilder(f)
	b.Bounds(t, x.Shape[0])
	b.Store(s, t, b.Load(x.Mem, b.Op(OpAdd, x.Offset, b.Op(OpMul, t, x.Stride[0]))))
	if guard != nil {
		guard(b, t)
	}
	zero, two := b.Const(I64, 0), b.Const(I64, 2)
	b.Loop([]Value{b.Const(I64, Bits(n/2))}, nil, func(c []Value) {
		b.If(b.Op(OpGt, c[0], zero), nil, func() {
			b.Barrier()
			b.If(b.Op(OpLt, t, c[0]), nil, func() {
				b.Store(s, t, b.Op(OpAdd, b.Load(s, t), b.Load(s, b.Op(OpAdd, t, c[0]))))
				b.Yield()
			}, func() { b.Yield() })
			b.Yield()
		}, func() { b.Break(1) })
		b.Yield(b.Op(OpDiv, c[0], two))
	})
	b.If(b.Op(OpEq, t, zero), nil, func() {
		b.Store(out.Mem, out.Offset, b.Load(s, zero))
		b.Yield()
	}, func() { b.Yield() })
	b.Yield()
	return f
}

func TestSharedMemoryReduction(t *testing.T) {
	for _, f := range []*Func{reduce(8, nil), Optimize(reduce(8, nil))} {
		if err := Verify(f); err != nil {
			t.Fatal(err, "\n", f)
		}
		x, out := make(cells, 8), make(cells, 1)
		var args [][]Bits
		for i := range 8 {
			x[i] = FromF64(float64(i + 1))
			// x: offset, shape, stride; out the same; thread.
			args = append(args, []Bits{0, 8, 1, 0, 1, 1, Bits(i)})
		}
		if _, err := new(Evaluator).RunBlock(f, []Storage{x, out}, args); err != nil || ToF64(out[0]) != 36 {
			t.Errorf("%v, %v\n%v", ToF64(out[0]), err, f)
		}
		args[3][1] = 2
		_, err := new(Evaluator).RunBlock(f, []Storage{x, out}, args)
		if fe, ok := err.(*FaultError); !ok || fe.Fault != IndexRange || fe.Worker != 3 || !strings.Contains(err.Error(), "index 3, length 2") {
			t.Errorf("out of range: %v", err)
		}
	}
}

func TestDivergences(t *testing.T) {
	half := func(b *Builder, tid Value) Value { return b.Op(OpLt, tid, b.Const(I64, 4)) }
	for name, c := range map[string]struct {
		guard func(b *Builder, tid Value)
		want  int
	}{
		"none":       {nil, 0},
		"guard exit": {func(b *Builder, tid Value) { b.If(half(b, tid), nil, func() { b.Yield() }, func() { b.Break(1) }) }, 0},
		"in an arm": {func(b *Builder, tid Value) {
			b.If(half(b, tid), nil, func() { b.Barrier(); b.Yield() }, func() { b.Yield() })
		}, 1},
		"in a loop of varying length": {func(b *Builder, tid Value) {
			b.Loop([]Value{tid}, nil, func(c []Value) {
				b.Barrier()
				b.If(b.Op(OpGt, c[0], b.Const(I64, 0)), nil, func() { b.Yield() }, func() { b.Break(1) })
				b.Yield(b.Op(OpSub, c[0], b.Const(I64, 1)))
			})
		}, 1},
		"behind such a loop": {func(b *Builder, tid Value) {
			b.Loop([]Value{tid}, nil, func(c []Value) {
				b.If(b.Op(OpGt, c[0], b.Const(I64, 0)), nil, func() { b.Yield() }, func() { b.Break(1) })
				b.Yield(b.Op(OpSub, c[0], b.Const(I64, 1)))
			})
			b.Barrier()
		}, 0},
		"after leaving a block early": {func(b *Builder, tid Value) {
			yes := b.Const(Bool, 1)
			b.If(yes, nil, func() {
				b.If(half(b, tid), nil, func() { b.Break(1) }, func() { b.Yield() })
				b.Barrier()
				b.Yield()
			}, func() { b.Unreachable() })
		}, 1},
		"under a loaded condition": {func(b *Builder, tid Value) {
			b.If(b.Op(OpLt, b.Load(2, b.Const(I64, 0)), b.Const(F64, 0)), nil, func() { b.Barrier(); b.Yield() }, func() { b.Yield() })
		}, 1},
		"vote": {func(b *Builder, tid Value) {
			b.If(b.Vote(VoteAny, half(b, tid)), nil, func() { b.Barrier(); b.Yield() }, func() { b.Yield() })
		}, 1},
	} {
		f := reduce(8, c.guard)
		if err := Verify(f); err != nil {
			t.Fatal(name, err)
		}
		if got := Divergences(Inline(f), nil); len(got) != c.want {
			t.Errorf("%s: %v, want %d", name, got, c.want)
		}
	}
}

func TestWarpExchange(t *testing.T) {
	f := NewFunc("warp", I64, I64, Bool, U32)
	tid := f.AddParamOf(Param{Name: "threadIdx.x", Kind: ThreadIdx}, I64)
	b := NewBuilder(f)
	// Lanes 30 and 31 leave first.
	b.If(b.Op(OpLt, tid, b.Const(I64, 30)), nil, func() { b.Yield() }, func() {
		z := b.Const(I64, 0)
		b.Break(1, z, z, b.Const(Bool, 0), b.Const(U32, 0))
	})
	down := b.Shuffle(ShuffleDown, b.Op(OpMul, tid, tid), b.Const(I64, 2))
	other := b.Shuffle(ShuffleXor, tid, b.Const(I64, 1))
	even := b.Op(OpEq, b.Op(OpRem, tid, b.Const(I64, 2)), b.Const(I64, 0))
	b.Yield(down, other, b.Vote(VoteAll, even), b.Vote(Ballot, even))
	if err := Verify(f); err != nil {
		t.Fatal(err)
	}
	args := make([][]Bits, 32)
	for i := range args {
		args[i] = []Bits{Bits(i)}
	}
	out, err := new(Evaluator).RunBlock(f, nil, args)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 30 {
		from := i + 2
		if from >= 30 {
			from = i
		}
		want := []Bits{Bits(from * from), Bits(i ^ 1), 0, 0x15555555}
		if !reflect.DeepEqual(out[i], want) {
			t.Errorf("lane %d: %v, want %v", i, out[i], want)
		}
	}
}

func TestAtomicsAndPrint(t *testing.T) {
	f := NewFunc("count")
	a := f.AddArray("a", I32, 1)
	tid := f.AddParamOf(Param{Name: "threadIdx.x", Kind: ThreadIdx}, I64)
	b := NewBuilder(f)
	old := b.Atomic(AtomicAdd, a.Mem, a.Offset, b.Const(I32, 2))
	b.Print([]string{"thread ", " saw ", ""}, tid, old)
	b.Atomic(CompareSwap, a.Mem, a.Offset, b.Const(I32, 8), b.Const(I32, 100))
	b.Yield()
	mem := cells{0}
	var lines []string
	e := &Evaluator{Print: func(s string) { lines = append(lines, s) }}
	args := [][]Bits{{0, 1, 1, 0}, {0, 1, 1, 1}, {0, 1, 1, 2}, {0, 1, 1, 3}, {0, 1, 1, 4}}
	if _, err := e.RunBlock(f, []Storage{mem}, args); err != nil || mem[0] != 102 {
		t.Error(mem, err)
	}
	if want := "thread 4 saw 100"; len(lines) != 5 || lines[4] != want {
		t.Errorf("%q", lines)
	}
}
