package cpu

import "gpunotes/gpukit/internal/ir"

// A ramp is an index that goes in equal steps over the lanes of the block, such
// as the number of a worker, or offset + i*stride of it. As long as it is only
// added to, multiplied and used as an index, its first value and its step are
// all there is of it, and loads and stores are of contiguous or strided pieces.
type ramp struct{ first, step ref }

// findRamps finds the values that are ramps, and those of them of which someone
// wants the elements.
func (p *planner) findRamps() {
	p.isRamp, p.wanted = make([]bool, len(p.f.Types)), make([]bool, len(p.f.Types))
	p.ramps, p.fixed = map[ir.Value]ramp{}, map[ref]bool{}
	for _, q := range p.f.Params {
		p.isRamp[q.Value] = p.of[q.Value].affine()
	}
	ir.Walk(p.f.Body, func(in *ir.Instr) {
		if len(in.Results) != 1 || !p.of[in.Results[0]].affine() || !p.found.linear(in) {
			return
		}
		for _, a := range in.Args {
			if p.of[a].varies() && !p.isRamp[a] {
				return
			}
		}
		p.isRamp[in.Results[0]] = true
	})
	ir.Walk(p.f.Body, func(in *ir.Instr) {
		for j, a := range in.Args {
			p.wanted[a] = p.wanted[a] || !p.takesRamp(in, j)
		}
	})
}

// takesRamp reports whether operand j of in is a ramp that it takes as such.
func (p *planner) takesRamp(in *ir.Instr, j int) bool {
	if !p.isRamp[in.Args[j]] {
		return false
	}
	switch in.Op {
	case ir.OpLoad, ir.OpStore:
		return j == 0 && p.f.Mems[in.Mem].Space != ir.Local
	case ir.OpBounds:
		return j == 0 && !p.of[in.Args[1]].varies()
	}
	return len(in.Results) == 1 && p.isRamp[in.Results[0]]
}

// paramRamp makes the ramp of a parameter, which a run fills in.
func (p *planner) paramRamp(v ir.Value) ramp {
	r := ramp{p.slot(ir.I64, true), p.slot(ir.I64, true)}
	p.ramps[v], p.fixed[r.step] = r, true
	return r
}

// ramp emits a linear operation on ramps.
func (p *planner) ramp(code *[]inst, fr *frameInfo, in *ir.Instr, define func(*frameInfo, ir.Value) ref) {
	emit := func(code *[]inst, op ir.Op, a ...ref) ref {
		x := inst{frame: frameOne, t: uint8(ir.I64), u: uint8(ir.I64), src: in, form: "part", op: op, a: a[0].slot}
		if len(a) == 1 {
			x.run = unaries[op][ir.I64]
		} else {
			x.run, x.b = binaries[op][ir.I64].vv, a[1].slot
		}
		for _, r := range a {
			p.use(r, p.pos)
		}
		d := p.slot(ir.I64, true)
		x.d = d.slot
		*code = append(*code, x)
		return d
	}
	// step is emitted once per run if it can be.
	step := func(op ir.Op, a ...ref) ref {
		fixed := true
		for _, r := range a {
			fixed = fixed && p.fixed[r]
		}
		if !fixed {
			return emit(code, op, a...)
		}
		d := emit(&p.plan.run, op, a...)
		p.fixed[d] = true
		return d
	}
	var side [2]ref // first values, or the one value
	var r [2]ramp
	var is [2]bool
	for j, a := range in.Args {
		if r[j], is[j] = p.ramps[a]; is[j] {
			side[j] = r[j].first
			continue
		}
		side[j] = p.one[a]
		if p.of[a] == 0 {
			p.fixed[side[j]] = true
		}
	}
	var to ramp
	switch {
	case in.Op == ir.OpNeg:
		to = ramp{emit(code, ir.OpNeg, side[0]), step(ir.OpNeg, r[0].step)}
	case in.Op == ir.OpMul && is[0]:
		to = ramp{emit(code, ir.OpMul, side[0], side[1]), step(ir.OpMul, r[0].step, side[1])}
	case in.Op == ir.OpMul:
		to = ramp{emit(code, ir.OpMul, side[0], side[1]), step(ir.OpMul, r[1].step, side[0])}
	case is[0] && is[1]:
		to = ramp{emit(code, in.Op, side[0], side[1]), step(in.Op, r[0].step, r[1].step)}
	case is[0]:
		to = ramp{emit(code, in.Op, side[0], side[1]), r[0].step}
	case in.Op == ir.OpSub:
		to = ramp{emit(code, in.Op, side[0], side[1]), step(ir.OpNeg, r[1].step)}
	default:
		to = ramp{emit(code, in.Op, side[0], side[1]), r[1].step}
	}
	v := in.Results[0]
	p.ramps[v] = to
	if p.wanted[v] {
		*code = append(*code, inst{run: stepRamp, frame: fr.id, src: in, form: "ramp", t: uint8(ir.I64), a: to.first.slot, b: to.step.slot, d: define(fr, v).slot})
		p.plan.cost += float64(p.weight * 0.5)
	}
}

func (m *machine) ramp(first, step int32) (int64, int64) {
	b := m.banks[ir.I64].(*bank[int64])
	return b.view[first][0], b.view[step][0]
}

// stepRamp writes out the elements.
func stepRamp(m *machine, x *inst) {
	b, n := m.banks[ir.I64].(*bank[int64]), m.n[x.frame]
	d := b.own[x.d][:n]
	v, step := m.ramp(x.a, x.b)
	if ids := m.identities(x.frame); ids != nil {
		for i, id := range ids[:n] {
			s := step * int64(id)
			d[i] = v + s
		}
	} else {
		for i := range d {
			d[i] = v
			v += step
		}
	}
	b.view[x.d] = d
}

// rampInBounds looks at both ends, of all lanes of the block.
func rampInBounds(m *machine, x *inst) bool {
	g := x.guard
	v, step := m.ramp(g.ramp.first.slot, g.ramp.step.slot)
	limit := uint64(m.banks[ir.I64].(*bank[int64]).view[g.args[1].slot][0])
	const far = 1 << 50 // from there on steps might wrap around
	if step > -far && step < far && uint64(v) < limit && uint64(v+step*int64(m.n[frameBlock]-1)) < limit {
		return true
	}
	for i := range m.n[x.frame] {
		if uint64(v+step*int64(m.place(x.frame, i))) >= limit {
			return false
		}
	}
	return true
}

// loadRamp and storeRamp access a piece of a memory.

func loadRamp[T element](m *machine, x *inst, d, mem []T, n int) {
	at, step := m.ramp(x.a, x.c)
	ids := m.identities(x.frame)
	switch {
	case ids != nil:
		for i, id := range ids[:n] {
			d[i] = mem[at+step*int64(id)]
		}
	case step == 1:
		copy(d, piece(mem, at, n))
	default:
		for i := range d {
			d[i] = mem[at]
			at += step
		}
	}
}

func storeRamp[T element](m *machine, x *inst, mem, v []T, n int) {
	at, step := m.ramp(x.a, x.c)
	ids := m.identities(x.frame)
	switch {
	case ids != nil:
		for i, id := range ids[:n] {
			mem[at+step*int64(id)] = v[i]
		}
	case step == 1:
		copy(piece(mem, at, n), v)
	default:
		for _, y := range v {
			mem[at] = y
			at += step
		}
	}
}
