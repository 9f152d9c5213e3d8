package cpu

import (
	"fmt"

	"gpunotes/gpukit/internal/ir"
)

// A guard is what comes before an operation that may fault: it looks at the
// operands of all lanes at once. In a function without memory it ends the
// block, which then runs again to find the worker. In one with memory the lanes
// that fail are noted and leave, as if they had returned.
type guard struct {
	construct              // stands in the frame of the operation
	past      []*construct // around it, innermost first
	args      []ref
	ramp      *ramp // of the index
	good      func(m *machine, x *inst) bool
	checked   *ir.Instr
}

// flaw is where a worker failed.
type flaw struct {
	in    *ir.Instr
	of    *ir.Func // that it is of
	fault ir.Fault
	place int // in the block
	args  [3]ir.Bits
}

// guard emits the guard of in.
func (p *planner) guard(code *[]inst, fr *frameInfo, in *ir.Instr) {
	g := &guard{construct: construct{id: p.construct(), outer: fr.id}, checked: in}
	for i := len(p.stack) - 1; i > 0; i-- { // p.stack[0] is the function
		g.past = append(g.past, p.stack[i])
		p.stack[i].lossy = p.stack[i].lossy || p.inPlace
	}
	for j, a := range in.Args {
		if p.takesRamp(in, j) {
			r := p.ramps[a]
			g.ramp = &r
			g.args = append(g.args, r.first)
			continue
		}
		r := p.ref(fr, a)
		p.use(r, p.pos)
		g.args = append(g.args, r)
	}
	x := inst{run: stepGuard, frame: fr.id, check: true, guard: g, src: in}
	switch in.Op {
	case ir.OpBounds:
		g.good = inBounds
		switch c := p.of[in.Args[0]]; {
		case g.ramp != nil:
			g.good = rampInBounds
		case c.affine() && g.args[1].one:
			g.good = endsInBounds
		}
	case ir.OpSliceBounds:
		g.good = inSliceBounds
	default:
		g.good = guards[in.Op == ir.OpShl || in.Op == ir.OpShr][g.args[1].t]
	}
	if p.inPlace {
		p.keepLive(&g.construct, fr)
	}
	*code = append(*code, x)
	p.pos++
	p.plan.cost += float64(p.weight * 0.5)
}

func stepGuard(m *machine, x *inst) {
	switch {
	case x.guard.good(m, x):
	case m.plan.inPlace:
		m.leaveFaulty(x)
	default:
		m.fault, m.stop = true, true
	}
}

// faultOf is the fault of in on operands a.
func faultOf(f *ir.Func, in *ir.Instr, a []ir.Bits) ir.Fault {
	if in.Op == ir.OpBounds || in.Op == ir.OpSliceBounds {
		return ir.CheckBounds(in.Op, a)
	}
	_, fault := ir.Compute(f, in, a)
	return fault
}

// leaveFaulty notes the lanes that a guard refuses and takes them out of every
// frame.
func (m *machine) leaveFaulty(x *inst) {
	g := x.guard
	m.bad = m.bad[:0]
	for i := range m.n[x.frame] {
		var a [3]ir.Bits
		for j, r := range g.args {
			k := i
			if r.one {
				k = 0
			}
			a[j] = m.banks[r.t].get(r.slot, k)
		}
		if g.ramp != nil {
			_, step := m.ramp(g.ramp.first.slot, g.ramp.step.slot)
			a[0] += ir.Bits(step * int64(m.place(x.frame, i)))
		}
		fault := faultOf(m.plan.f, g.checked, a[:len(g.args)])
		if fault == ir.NoFault {
			continue
		}
		m.bad = append(m.bad, int32(i))
		if place := m.place(x.frame, i); m.worst.in == nil || place < m.worst.place {
			m.worst = flaw{g.checked, m.plan.f, fault, place, a}
		}
	}
	m.begin(&g.construct)
	m.gone[g.id] = append(m.gone[g.id], m.bad...)
	frame := x.frame
	for _, k := range g.past {
		if lane := m.lane[frame]; lane != nil {
			for i, j := range m.bad {
				m.bad[i] = lane[j]
			}
		}
		m.gone[k.id] = append(m.gone[k.id], m.bad...)
		frame = k.outer
	}
	m.end(&g.construct)
}

// expr is the text of the operands, which is ir's to write: a function of this
// operation alone fails with it.
func (w *flaw) expr() string {
	one := ir.NewFunc("one")
	in := *w.in
	in.Args, in.Results = nil, nil
	for i, a := range w.in.Args {
		in.Args = append(in.Args, one.AddParam(fmt.Sprint(i), w.of.Types[a]))
	}
	for _, r := range w.in.Results {
		in.Results = append(in.Results, one.NewValue(w.of.Types[r]))
	}
	one.Body.Instrs = []ir.Instr{in, {Op: ir.OpYield}}
	if _, err := new(ir.Evaluator).Run(one, w.args[:len(in.Args)]...); err != nil {
		return err.(*ir.FaultError).Expr
	}
	return ""
}

// lanes is a value in a guard: its elements, and the step from lane to lane.
func (m *machine) lanes(r ref, n int) ([]int64, int) {
	v := m.banks[ir.I64].(*bank[int64]).view[r.slot]
	if r.one {
		return v[:1], 0
	}
	return v[:n], 1
}

func inBounds(m *machine, x *inst) bool {
	a, n := x.guard.args, m.n[x.frame]
	if a[0].one && a[1].one {
		n = 1
	}
	idx, si := m.lanes(a[0], n)
	length, sl := m.lanes(a[1], n)
	if si == 1 && sl == 0 {
		limit, bad := uint64(length[0]), uint8(0)
		for _, i := range idx {
			bad |= bit(uint64(i) >= limit)
		}
		return bad == 0
	}
	for i := range n {
		if uint64(idx[i*si]) >= uint64(length[i*sl]) {
			return false
		}
	}
	return true
}

// endsInBounds is inBounds for an affine index.
func endsInBounds(m *machine, x *inst) bool {
	a, n := x.guard.args, m.n[x.frame]
	idx, _ := m.lanes(a[0], n)
	length, _ := m.lanes(a[1], n)
	limit := uint64(length[0])
	if n > 1 && m.whole(x.frame) {
		const far = 1 << 50 // from there on steps might wrap around
		if step := idx[1] - idx[0]; step > -far && step < far {
			return uint64(idx[0]) < limit && uint64(idx[n-1]) < limit
		}
	}
	return inBounds(m, x)
}

func inSliceBounds(m *machine, x *inst) bool {
	a, n := x.guard.args, m.n[x.frame]
	from, sf := m.lanes(a[0], n)
	to, st := m.lanes(a[1], n)
	length, sl := m.lanes(a[2], n)
	if sf+st+sl == 0 {
		n = 1
	}
	for i := range n {
		if f, t := from[i*sf], to[i*st]; f < 0 || f > t || t > length[i*sl] {
			return false
		}
	}
	return true
}

// guards are those of divisions (false) and shifts (true), by the type of the
// divisor or count.
var guards = map[bool]*[numTypes]func(m *machine, x *inst) bool{false: {}, true: {}}

func guardsOf[T integer](t ir.Type) {
	over := func(bad func(v T) bool) func(m *machine, x *inst) bool {
		return func(m *machine, x *inst) bool {
			r := x.guard.args[1]
			v := m.banks[t].(*bank[T]).view[r.slot]
			if r.one {
				return !bad(v[0])
			}
			for _, y := range v[:m.n[x.frame]] {
				if bad(y) {
					return false
				}
			}
			return true
		}
	}
	guards[false][t] = over(func(v T) bool { return v == 0 })
	guards[true][t] = over(func(v T) bool { return v < 0 })
}
