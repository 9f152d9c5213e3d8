package cpu

import "gpunotes/gpukit/internal/ir"

// Two operations on float64 of which the second is the only use of the first
// run as one loop: the value between them stays in a register. The bits are
// those of the two, for a product is rounded before it is added (package gpukit says why).

// pair names a fusion: the first operation, the second, and whether the first
// one's result is the second's right operand (of a commutative one it is not).
type pair struct {
	first, second ir.Op
	right         bool
}

// fused has the loops of a pair for operands x, y of the first operation and z,
// the other one of the second; s in place of v stands for one value for all
// lanes. A nil form is not fused.
type fused struct{ vvv, vsv, vvs, vss step }

var fusions = map[pair]fused{
	{ir.OpMul, ir.OpAdd, false}: {fuseVVV(mulAddVVV), fuseVSV(mulAddVSV), fuseVVS(mulAddVVS), fuseVSS(mulAddVSS)},
	{ir.OpMul, ir.OpSub, false}: {vvv: fuseVVV(mulSubVVV)},
	{ir.OpMul, ir.OpSub, true}:  {vvv: fuseVVV(subProductVVV)},
	{ir.OpSub, ir.OpMul, false}: {vvv: fuseVVV(subMulVVV), vvs: fuseVVS(subMulVVS), vss: fuseVSS(subMulVSS)},
	{ir.OpSub, ir.OpAdd, false}: {vvv: fuseVVV(subAddVVV)},
	{ir.OpAdd, ir.OpAdd, false}: {vvv: fuseVVV(addAddVVV)},
}

func mulAddVVV(d, x, y, z []float64) {
	x, y, z = x[:len(d)], y[:len(d)], z[:len(d)]
	for i := range d {
		d[i] = float64(x[i]*y[i]) + z[i]
	}
}

func mulAddVSV(d, x, z []float64, y float64) {
	x, z = x[:len(d)], z[:len(d)]
	for i := range d {
		d[i] = float64(x[i]*y) + z[i]
	}
}

func mulAddVVS(d, x, y []float64, z float64) {
	x, y = x[:len(d)], y[:len(d)]
	for i := range d {
		d[i] = float64(x[i]*y[i]) + z
	}
}

func mulAddVSS(d, x []float64, y, z float64) {
	x = x[:len(d)]
	for i := range d {
		d[i] = float64(x[i]*y) + z
	}
}

func mulSubVVV(d, x, y, z []float64) {
	x, y, z = x[:len(d)], y[:len(d)], z[:len(d)]
	for i := range d {
		d[i] = float64(x[i]*y[i]) - z[i]
	}
}

func subProductVVV(d, x, y, z []float64) {
	x, y, z = x[:len(d)], y[:len(d)], z[:len(d)]
	for i := range d {
		d[i] = z[i] - float64(x[i]*y[i])
	}
}

func subMulVVV(d, x, y, z []float64) {
	x, y, z = x[:len(d)], y[:len(d)], z[:len(d)]
	for i := range d {
		d[i] = (x[i] - y[i]) * z[i]
	}
}

func subMulVVS(d, x, y []float64, z float64) {
	x, y = x[:len(d)], y[:len(d)]
	for i := range d {
		d[i] = (x[i] - y[i]) * z
	}
}

func subMulVSS(d, x []float64, y, z float64) {
	x = x[:len(d)]
	for i := range d {
		d[i] = (x[i] - y) * z
	}
}

func subAddVVV(d, x, y, z []float64) {
	x, y, z = x[:len(d)], y[:len(d)], z[:len(d)]
	for i := range d {
		d[i] = x[i] - y[i] + z[i]
	}
}

func addAddVVV(d, x, y, z []float64) {
	x, y, z = x[:len(d)], y[:len(d)], z[:len(d)]
	for i := range d {
		d[i] = x[i] + y[i] + z[i]
	}
}

func fuseVVV(k func(d, x, y, z []float64)) step {
	return func(m *machine, x *inst) {
		b, n := m.banks[ir.F64].(*bank[float64]), m.n[x.frame]
		d := b.own[x.d][:n]
		k(d, b.view[x.a][:n], b.view[x.b][:n], b.view[x.c][:n])
		b.view[x.d] = d
	}
}

func fuseVSV(k func(d, x, z []float64, y float64)) step {
	return func(m *machine, x *inst) {
		b, n := m.banks[ir.F64].(*bank[float64]), m.n[x.frame]
		d := b.own[x.d][:n]
		k(d, b.view[x.a][:n], b.view[x.c][:n], b.view[x.b][0])
		b.view[x.d] = d
	}
}

func fuseVVS(k func(d, x, y []float64, z float64)) step {
	return func(m *machine, x *inst) {
		b, n := m.banks[ir.F64].(*bank[float64]), m.n[x.frame]
		d := b.own[x.d][:n]
		k(d, b.view[x.a][:n], b.view[x.b][:n], b.view[x.c][0])
		b.view[x.d] = d
	}
}

func fuseVSS(k func(d, x []float64, y, z float64)) step {
	return func(m *machine, x *inst) {
		b, n := m.banks[ir.F64].(*bank[float64]), m.n[x.frame]
		d := b.own[x.d][:n]
		k(d, b.view[x.a][:n], b.view[x.b][0], b.view[x.c][0])
		b.view[x.d] = d
	}
}

// fusion is a pair that was found: the operands, and the loop.
type fusion struct {
	first *ir.Instr
	args  [3]ir.Value
	run   step
}

// findFusions looks for pairs in every region. A first operation takes part in
// no other pair.
func (p *planner) findFusions() {
	var visit func(r *ir.Region)
	visit = func(r *ir.Region) {
		at := map[ir.Value]*ir.Instr{}
		for i := range r.Instrs {
			in := &r.Instrs[i]
			for _, s := range in.Regions {
				visit(s)
			}
			if !p.fusible(in) {
				continue
			}
			for side, a := range in.Args {
				first := at[a]
				if first == nil || p.uses[a] != 1 {
					continue
				}
				if f, ok := p.match(first, in, side); ok {
					p.fused[in], p.inside[first] = f, true
					break
				}
			}
			if _, ok := p.fused[in]; !ok {
				at[in.Results[0]] = in
			}
		}
	}
	visit(p.f.Body)
}

func (p *planner) fusible(in *ir.Instr) bool {
	switch in.Op {
	case ir.OpAdd, ir.OpSub, ir.OpMul:
		v := in.Results[0]
		return p.f.Types[v] == ir.F64 && p.of[v].varies() && !p.of[v].hoisted()
	}
	return false
}

func (p *planner) match(first, second *ir.Instr, side int) (fusion, bool) {
	x, y, z := first.Args[0], first.Args[1], second.Args[1-side]
	if first.Op != ir.OpSub && !p.of[x].varies() {
		x, y = y, x
	}
	if !p.of[x].varies() {
		return fusion{}, false
	}
	forms := fusions[pair{first.Op, second.Op, side == 1 && second.Op == ir.OpSub}]
	f := fusion{first: first, args: [3]ir.Value{x, y, z}}
	switch ys, zs := !p.of[y].varies(), !p.of[z].varies(); {
	case ys && zs:
		f.run = forms.vss
	case ys:
		f.run = forms.vsv
	case zs:
		f.run = forms.vvs
	default:
		f.run = forms.vvv
	}
	return f, f.run != nil
}
