package cpu

import (
	"testing"

	"gpunotes/gpukit/internal/ir"
)

// TestFusions runs every form of every pair, either way round, on values whose
// products are not exact: a product that is not rounded would show.
func TestFusions(t *testing.T) {
	const n = 3000
	for key, forms := range fusions {
		for mask, run := range []step{forms.vvv, forms.vsv, forms.vvs, forms.vss} {
			if run == nil {
				continue
			}
			for turn := range 4 {
				f := ir.NewFunc("pair", ir.F64)
				x, y, z := f.AddParam("x", ir.F64), f.AddParam("y", ir.F64), f.AddParam("z", ir.F64)
				b := ir.NewBuilder(f)
				if turn&1 == 1 && key.first != ir.OpSub {
					x, y = y, x
				}
				v := b.Op(key.first, x, y)
				if key.right || turn&2 == 2 && key.second != ir.OpSub {
					v = b.Op(key.second, z, v)
				} else {
					v = b.Op(key.second, v, z)
				}
				b.Yield(v)
				d := newDice(uint64(mask))
				l := Launch{Shape: []int{n}, Out: results(f, n)}
				for i := range 3 {
					if i == 1 && mask&1 == 1 || i == 2 && mask&2 == 2 {
						l.In = append(l.In, scalarF64(d.NormFloat64()))
						continue
					}
					special := specials(ir.F64)
					l.In = append(l.In, array(ir.F64, n, func(w int) ir.Bits {
						if w%10 == 0 {
							return special[d.IntN(len(special))]
						}
						return ir.FromF64(d.NormFloat64())
					}))
				}
				p := compile(t, f)
				if s := p.Stats(&l); s.PerLane != 1 {
					t.Errorf("%v %v is not fused:\n%s", key, mask, p.Describe(&l))
				}
				if err := compare(p, l, evaluate(f, &l)); err != nil {
					t.Errorf("%v %v: %v\n%s", key, mask, err, p.Describe(&l))
				}
			}
		}
	}
}

// TestFusionAcrossControl has an if, which loses lanes, between the two.
func TestFusionAcrossControl(t *testing.T) {
	f := ir.NewFunc("across", ir.F64)
	x, y := f.AddParam("x", ir.F64), f.AddParam("y", ir.F64)
	b := ir.NewBuilder(f)
	s := b.Op(ir.OpAdd, x, b.Const(ir.F64, ir.FromF64(0.1)))
	v := b.Op(ir.OpMul, s, y)
	b.If(b.Op(ir.OpLt, x, y), nil, func() { b.Break(1, y) }, func() { b.Yield() })
	b.Yield(b.Op(ir.OpAdd, v, s))
	d := newDice(3)
	l := Launch{Shape: []int{2000}, Out: results(f, 2000)}
	for range 2 {
		l.In = append(l.In, array(ir.F64, 2000, func(int) ir.Bits { return ir.FromF64(d.NormFloat64()) }))
	}
	if err := compare(compile(t, f), l, evaluate(f, &l)); err != nil {
		t.Error(err)
	}
}
