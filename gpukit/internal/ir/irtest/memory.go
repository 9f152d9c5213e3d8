package irtest

import (
	"fmt"
	"slices"

	"gpunotes/gpukit/internal/ir"
)

// memories adds what an author with Memory needs.
func (a *author) memories() {
	place := func(name string, k ir.ParamKind) ir.Value {
		v := a.f.AddParamOf(ir.Param{Name: name, Kind: k}, ir.I64)
		a.see(v)
		return v
	}
	a.thread, a.block, a.dim = place("threadIdx.x", ir.ThreadIdx), place("blockIdx.x", ir.BlockIdx), place("blockDim.x", ir.BlockDim)
	for i := range 1 + a.IntN(2) {
		a.read = append(a.read, a.f.AddArray(fmt.Sprint("read", i), a.typ(), 1))
	}
	for i := range 1 + a.IntN(2) {
		a.written = append(a.written, a.f.AddArray(fmt.Sprint("written", i), a.typ(), 1))
	}
	for i := range a.IntN(2) {
		a.sums = append(a.sums, a.f.AddArray(fmt.Sprint("sum", i), a.integer(), 1))
	}
	for i := range a.IntN(3) {
		a.own = append(a.own, a.f.AddMem(ir.Memory{Name: fmt.Sprint("own", i), Space: ir.Local, Elem: a.typ(), Len: 1 << a.IntN(4)}))
	}
	for i := range a.IntN(2) {
		m := ir.Memory{Name: fmt.Sprint("table", i), Space: ir.Constant, Elem: a.typ(), Len: 1 << a.IntN(4)}
		for range m.Len {
			m.Data = append(m.Data, Value(a.Rand, m.Elem))
		}
		a.tables = append(a.tables, a.f.AddMem(m))
	}
	if a.Threads {
		a.shared = a.f.AddMem(ir.Memory{Name: "shared", Space: ir.Shared, Elem: a.typ()})
		a.counters = a.f.AddMem(ir.Memory{Name: "counters", Space: ir.Shared, Elem: a.integer(), Len: 8})
	}
}

func (a *author) integer() ir.Type {
	for {
		if t := a.Types[a.IntN(len(a.Types))]; t.IsInt() {
			return t
		}
	}
}

// within is a random index below n, a value that is positive.
func (a *author) within(n ir.Value) ir.Value {
	i := a.pick(ir.I64)
	if a.IntN(2) == 0 {
		i = []ir.Value{a.worker, a.thread, a.b.Op(ir.OpAdd, a.worker, a.int(a.IntN(5)))}[a.IntN(3)]
	}
	if a.Faults && a.has(ir.OpBounds) && a.IntN(4) == 0 {
		i = a.b.Op(ir.OpAnd, i, a.int([]int{31, 63, 1023, -1}[a.IntN(4)]))
		a.b.Bounds(i, n)
		return i
	}
	return a.b.Op(ir.OpRem, a.b.Op(ir.OpAnd, i, a.int(1<<62-1)), n)
}

// masked is a random index into a memory whose length is a power of two.
func (a *author) masked(m ir.Mem) ir.Value {
	n := a.f.Mems[m].Len
	if a.IntN(2) == 0 {
		return a.int(a.IntN(n))
	}
	return a.b.Op(ir.OpAnd, a.pick(ir.I64), a.int(n-1))
}

func (a *author) element(p ir.ArrayParam, i ir.Value) ir.Value {
	return a.b.Op(ir.OpAdd, p.Offset, a.b.Op(ir.OpMul, i, p.Stride[0]))
}

// slot is an element of a written array that belongs to the worker.
func (a *author) slot(p ir.ArrayParam) ir.Value {
	k := a.int(a.IntN(Slots))
	if a.IntN(2) == 0 {
		k = a.b.Op(ir.OpAnd, a.pick(ir.I64), a.int(Slots-1))
	}
	i := a.b.Op(ir.OpAdd, a.b.Op(ir.OpMul, a.worker, a.int(Slots)), k)
	if a.has(ir.OpBounds) && a.IntN(2) == 0 {
		a.b.Bounds(i, p.Shape[0])
	}
	return a.element(p, i)
}

// commuting is a kind of atomic operation whose order does not matter.
func (a *author) commuting() ir.Kind { return ir.Kind(a.IntN(int(ir.AtomicXor) + 1)) }

// access writes an operation on memory.
func (a *author) access() {
	switch a.IntN(14) {
	case 0, 1:
		p := a.read[a.IntN(len(a.read))]
		a.see(a.b.Load(p.Mem, a.element(p, a.within(p.Shape[0]))))
	case 2, 3:
		p := a.written[a.IntN(len(a.written))]
		a.b.Store(p.Mem, a.slot(p), a.pick(a.f.Mems[p.Mem].Elem))
	case 4:
		p := a.written[a.IntN(len(a.written))]
		a.see(a.b.Load(p.Mem, a.slot(p)))
	case 5:
		if p := a.written[a.IntN(len(a.written))]; a.f.Mems[p.Mem].Elem != ir.Bool {
			t := a.f.Mems[p.Mem].Elem
			k := []ir.Kind{ir.AtomicAdd, ir.AtomicMin, ir.AtomicMax, ir.Exchange, ir.CompareSwap}[a.IntN(5)]
			args := a.picks([]ir.Type{t, t})
			if k != ir.CompareSwap {
				args = args[:1]
			}
			a.see(a.b.Atomic(k, p.Mem, a.slot(p), args...))
		}
	case 6:
		for _, p := range a.sums {
			a.b.Atomic(a.theOne(p), p.Mem, a.element(p, a.within(p.Shape[0])), a.pick(a.f.Mems[p.Mem].Elem))
		}
	case 7, 8:
		for _, m := range a.own {
			a.b.Store(m, a.masked(m), a.pick(a.f.Mems[m].Elem))
		}
	case 9, 10:
		for _, m := range append(a.own, a.tables...) {
			a.see(a.b.Load(m, a.masked(m)))
		}
	case 11:
		if len(a.own) > 0 {
			a.b.Clear(a.own[a.IntN(len(a.own))])
		}
	case 12:
		if a.Faults && a.has(ir.OpSliceBounds) {
			from := a.b.Op(ir.OpAnd, a.pick(ir.I64), a.int(7))
			a.b.SliceBounds(from, a.b.Op(ir.OpOr, from, a.int(a.IntN(16))), a.b.Op(ir.OpOr, a.pick(ir.I64), a.int(13)))
		}
	case 13:
		if t := a.typ(); a.has(ir.OpPrint) && a.IntN(3) == 0 {
			a.b.Print([]string{"worker ", ": ", ""}, a.worker, a.pick(t))
		}
	}
}

// theOne is the kind of atomic operation on an array: one for each, since
// those of different kinds do not commute.
func (a *author) theOne(p ir.ArrayParam) ir.Kind { return ir.Kind(int(p.Mem) % int(ir.AtomicXor+1)) }

// together writes what all threads of a block do, at the top level. Each ends
// where nobody looks any more at what the next one writes.
func (a *author) together() {
	for range 1 + a.IntN(3) {
		a.line++
		a.b.Pos = ir.Pos{File: "random", Line: a.line, Col: 1}
		kind := a.IntN(6)
		if a.Faults && kind > 3 {
			// Which worker's fault counts depends on where they met before, and
			// an exchange may be left out if nobody looks at what it gives.
			a.b.WarpBarrier()
		}
		switch kind {
		case 0, 1:
			a.exchange()
		case 2: // several times
			n, one := a.int(1+a.IntN(3)), a.int(1)
			t := a.f.Mems[a.shared].Elem
			a.see(a.b.Loop([]ir.Value{a.int(0), a.pick(t)}, []ir.Type{t}, func(c []ir.Value) {
				a.inside([]ir.Type{t}, func() {
					a.b.If(a.b.Op(ir.OpGe, c[0], n), nil, func() { a.b.Break(1, c[1]) }, func() { a.b.Yield() })
					a.see(c...)
					a.exchange()
					a.b.Yield(a.b.Op(ir.OpAdd, c[0], one), a.pick(t))
				})
			})...)
		case 3:
			k := a.commuting()
			for range 1 + a.IntN(2) {
				a.b.Atomic(k, a.counters, a.masked(a.counters), a.pick(a.f.Mems[a.counters].Elem))
			}
			a.b.Barrier()
			a.see(a.b.Load(a.counters, a.masked(a.counters)))
			a.b.Barrier()
		case 4:
			by := a.int(a.IntN(40) - 4)
			if a.IntN(2) == 0 {
				by = a.b.Op(ir.OpAnd, a.pick(ir.I64), a.int(31))
			}
			a.see(a.b.Shuffle(ir.Kind(a.IntN(int(ir.ShuffleXor)+1)), a.pick(a.typ()), by))
			if a.IntN(2) == 0 {
				a.b.WarpBarrier()
			}
		case 5:
			kinds := []ir.Kind{ir.VoteAny, ir.VoteAll}
			if slices.Contains(a.Types, ir.U32) {
				kinds = append(kinds, ir.Ballot)
			}
			a.see(a.b.Vote(kinds[a.IntN(len(kinds))], a.pick(ir.Bool)))
		}
	}
}

// exchange lets each thread see what another one put down.
func (a *author) exchange() {
	a.b.Store(a.shared, a.thread, a.pick(a.f.Mems[a.shared].Elem))
	a.b.Barrier()
	i := a.b.Op(ir.OpRem, a.b.Op(ir.OpAnd, a.pick(ir.I64), a.int(1<<62-1)), a.dim)
	a.see(a.b.Load(a.shared, i))
	a.b.Barrier()
}
