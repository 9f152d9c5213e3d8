package cpu

import (
	"slices"

	"gpunotes/gpukit/internal/ir"
)

// A bank holds the memories of its type as Go slices: those that the launch
// gives, and the machine's own for the others. A Local memory has one element
// of each lane of the block behind the other, then the next ones; so lanes that
// move in their frame need not take it along.

// holds reports whether a memory has elements of type t.
func (p *plan) holds(t ir.Type) bool {
	return slices.ContainsFunc(p.f.Mems, func(m ir.Memory) bool { return m.Elem == t })
}

// findCleared finds the Local memories that need not be zero at first.
func (p *planner) findCleared() {
	p.cleared = make([]bool, len(p.f.Mems))
	touched := make([]bool, len(p.f.Mems))
	for i := range p.f.Body.Instrs {
		ir.Walk(&ir.Region{Instrs: p.f.Body.Instrs[i : i+1]}, func(in *ir.Instr) {
			switch in.Op {
			case ir.OpClear, ir.OpLoad, ir.OpStore, ir.OpAtomic:
				if !touched[in.Mem] {
					touched[in.Mem] = true
					p.cleared[in.Mem] = in == &p.f.Body.Instrs[i] && in.Op == ir.OpClear
				}
			}
		})
	}
}

// beginMems makes the machine's own memories what they are at the start of a
// block of n lanes.
func (m *machine) beginMems(n int) {
	for i, mem := range m.plan.f.Mems {
		switch mem.Space {
		case ir.Shared:
			m.banks[mem.Elem].clearMem(i)
		case ir.Local:
			m.banks[mem.Elem].makeMem(i, mem.Len*n)
			if !m.plan.cleared[i] {
				m.banks[mem.Elem].clearMem(i)
			}
		}
	}
}

// place is the place in the block of a lane of a frame.
func (m *machine) place(frame int32, i int) int {
	for ; frame != frameBlock; frame = m.plan.outer[frame] {
		if lane := m.lane[frame]; lane != nil {
			i = int(lane[i])
		}
	}
	return i
}

// whole reports whether a frame has all lanes of the block, in order.
func (m *machine) whole(frame int32) bool {
	for ; frame != frameBlock; frame = m.plan.outer[frame] {
		if m.lane[frame] != nil {
			return false
		}
	}
	return true
}

// identities lists the places in the block of the lanes of a frame, or is nil
// if it is whole.
func (m *machine) identities(frame int32) []int32 {
	var ids []int32
	for ; frame != frameBlock; frame = m.plan.outer[frame] {
		lane := m.lane[frame]
		switch {
		case lane == nil:
		case ids == nil:
			m.places = append(m.places[:0], lane[:m.n[frame]]...)
			ids = m.places
		default:
			for i, j := range ids {
				ids[i] = lane[j]
			}
		}
	}
	return ids
}

// consecutive reports whether an index that is affine counts up by one.
func (m *machine) consecutive(frame int32, idx []int64) bool {
	return len(idx) > 1 && idx[1]-idx[0] == 1 && m.whole(frame)
}

// piece is n elements of a memory. A slice expression alone would let it reach
// up to the capacity.
func piece[T element](mem []T, first int64, n int) []T {
	_ = mem[first+int64(n)-1]
	return mem[first:][:n]
}

// access has the steps of loads or of stores of a type, by what the index is:
// one for all lanes, affine, or any; and those for Local memory.
type access struct{ one, ramp, affine, any, localOne, localAny step }

var (
	loads  [numTypes]access
	stores [numTypes]access
)

func (m *machine) index(x *inst, n int) []int64 {
	return m.banks[ir.I64].(*bank[int64]).view[x.a][:n]
}

func loadsOf[T element]() access {
	gather := func(d, mem []T, idx []int64) {
		idx = idx[:len(d)]
		for i := range d {
			d[i] = mem[idx[i]]
		}
	}
	over := func(k func(m *machine, x *inst, d, mem []T, n int)) step {
		return func(m *machine, x *inst) {
			b, n := m.banks[x.t].(*bank[T]), m.n[x.frame]
			d := b.own[x.d][:n]
			k(m, x, d, b.mem[x.mem], n)
			b.view[x.d] = d
		}
	}
	return access{
		one:  over(func(m *machine, x *inst, d, mem []T, _ int) { d[0] = mem[m.index(x, 1)[0]] }),
		ramp: over(loadRamp[T]),
		affine: over(func(m *machine, x *inst, d, mem []T, n int) {
			idx := m.index(x, n)
			if m.consecutive(x.frame, idx) {
				copy(d, piece(mem, idx[0], n))
				return
			}
			gather(d, mem, idx)
		}),
		any: over(func(m *machine, x *inst, d, mem []T, n int) { gather(d, mem, m.index(x, n)) }),
		localOne: over(func(m *machine, x *inst, d, mem []T, n int) {
			all := m.n[frameBlock]
			row := piece(mem, m.index(x, 1)[0]*int64(all), all)
			ids := m.identities(x.frame)
			if ids == nil {
				copy(d, row)
				return
			}
			for i, id := range ids[:n] {
				d[i] = row[id]
			}
		}),
		localAny: over(func(m *machine, x *inst, d, mem []T, n int) {
			all, idx := int64(m.n[frameBlock]), m.index(x, n)
			ids := m.identities(x.frame)
			for i := range d {
				id := int64(i)
				if ids != nil {
					id = int64(ids[i])
				}
				d[i] = mem[idx[i]*all+id]
			}
		}),
	}
}

// storesOf: with one index for all lanes the last one's value stays, which may
// be the only one.
func storesOf[T element]() access {
	scatter := func(mem, v []T, idx []int64) {
		idx = idx[:len(v)]
		for i, y := range v {
			mem[idx[i]] = y
		}
	}
	over := func(k func(m *machine, x *inst, mem, v []T, n int)) step {
		return func(m *machine, x *inst) {
			b := m.banks[x.t].(*bank[T])
			n, v := m.n[x.frame], b.view[x.b]
			k(m, x, b.mem[x.mem], v[:min(n, len(v))], n)
		}
	}
	return access{
		one:  over(func(m *machine, x *inst, mem, v []T, _ int) { mem[m.index(x, 1)[0]] = v[len(v)-1] }),
		ramp: over(storeRamp[T]),
		affine: over(func(m *machine, x *inst, mem, v []T, n int) {
			idx := m.index(x, n)
			if m.consecutive(x.frame, idx) {
				copy(piece(mem, idx[0], n), v)
				return
			}
			scatter(mem, v, idx)
		}),
		any: over(func(m *machine, x *inst, mem, v []T, n int) { scatter(mem, v, m.index(x, n)) }),
		localOne: over(func(m *machine, x *inst, mem, v []T, n int) {
			all := m.n[frameBlock]
			row := piece(mem, m.index(x, 1)[0]*int64(all), all)
			ids := m.identities(x.frame)
			if ids == nil {
				copy(row, v)
				return
			}
			for i, id := range ids[:n] {
				row[id] = v[i]
			}
		}),
		localAny: over(func(m *machine, x *inst, mem, v []T, n int) {
			all, idx := int64(m.n[frameBlock]), m.index(x, n)
			ids := m.identities(x.frame)
			for i := range v {
				id := int64(i)
				if ids != nil {
					id = int64(ids[i])
				}
				mem[idx[i]*all+id] = v[i]
			}
		}),
	}
}

func clearStep[T element](m *machine, x *inst) {
	b, all := m.banks[x.t].(*bank[T]), m.n[frameBlock]
	mem, ids := b.mem[x.mem], m.identities(x.frame)
	if ids == nil {
		clear(mem)
		return
	}
	for ; len(mem) > 0; mem = mem[all:] {
		for _, id := range ids {
			mem[id] = *new(T)
		}
	}
}

var clears [numTypes]step

func memoriesOf[T element](t ir.Type) {
	loads[t], stores[t], clears[t], shuffles[t] = loadsOf[T](), storesOf[T](), clearStep[T], shuffleStep[T]
}

// form picks the step of an access by its index.
func (p *planner) form(a *access, in *ir.Instr, x *inst) {
	c := p.of[in.Args[0]]
	local := p.f.Mems[in.Mem].Space == ir.Local
	switch {
	case local && !c.varies():
		x.run, x.form = a.localOne, "local, one"
	case local:
		x.run, x.form = a.localAny, "local"
	case !c.varies():
		x.run, x.form = a.one, "one"
	case p.takesRamp(in, 0):
		x.run, x.form = a.ramp, "ramp"
	case c.affine():
		x.run, x.form = a.affine, "affine"
	default:
		x.run, x.form = a.any, "any"
	}
}

// effect emits an instruction that has to do with memory or with other lanes.
func (p *planner) effect(code *[]inst, fr *frameInfo, in *ir.Instr) {
	x := inst{frame: fr.id, src: in, mem: int32(in.Mem), d: noSlot}
	args := make([]ref, len(in.Args))
	var index ramp
	for i, a := range in.Args {
		if p.takesRamp(in, i) {
			index = p.ramps[a]
			args[i] = index.first
		} else {
			args[i] = p.ref(fr, a)
		}
	}
	used := len(in.Results) == 1 && p.uses[in.Results[0]] > 0
	varies := used && p.of[in.Results[0]].varies()
	until := 0 // how far past this place operands are read
	switch in.Op {
	case ir.OpBounds, ir.OpSliceBounds:
		p.guard(code, fr, in)
		return
	case ir.OpLoad:
		if !used {
			return
		}
		x.t = uint8(p.f.Mems[in.Mem].Elem)
		p.form(&loads[x.t], in, &x)
		if !varies {
			x.frame = frameOne
		}
	case ir.OpStore:
		x.t = uint8(args[1].t)
		p.form(&stores[x.t], in, &x)
		if x.form != "one" {
			args[1] = p.spread(code, fr, args[1])
		}
	case ir.OpClear:
		x.t = uint8(p.f.Mems[in.Mem].Elem)
		x.run = clears[x.t]
	case ir.OpAtomic:
		x.t = uint8(args[1].t)
		x.run = p.atomic(in)
		for i, a := range args {
			if a.one {
				x.ones |= 1 << i
			}
		}
	case ir.OpBarrier, ir.OpWarpBarrier:
		x.run, x.check = stepBarrier, true
	case ir.OpShuffle:
		args[0] = p.spread(code, fr, args[0])
		x.t = uint8(args[0].t)
		x.run, x.check = shuffles[x.t], true
		if args[1].one {
			x.ones |= 2
		}
		until = 1
	case ir.OpVote:
		args[0] = p.spread(code, fr, args[0])
		x.t = uint8(ir.Bool)
		x.run, x.check = stepVote, true
		until = 1
	case ir.OpPrint:
		x.run, x.print = stepPrint, args
	}
	for _, a := range args {
		p.use(a, p.pos+until)
	}
	for i, s := range []*int32{&x.a, &x.b, &x.c} {
		if i < len(args) {
			*s = args[i].slot
		}
	}
	if x.form == "ramp" {
		x.c = index.step.slot
		p.use(index.step, p.pos)
	}
	if used {
		x.d = p.define(fr, in.Results[0]).slot
	}
	p.pos += until
	*code = append(*code, x)
	p.plan.cost += float64(p.weight * laneCost(in))
}

// noSlot is the result of an operation that nobody looks at.
const noSlot = -1
