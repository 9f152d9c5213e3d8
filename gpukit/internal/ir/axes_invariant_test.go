package ir

import "testing"

// TestInvariants: what does not change is computed before the outermost loop in
// which it does not, also if it stands in ifs and inner loops; what could take
// for ever stays where it is.
func TestInvariants(t *testing.T) {
	sin, _ := LookupMath("math.Sin")
	jn, _ := LookupMath("math.Jn")
	for name, c := range map[string]struct {
		fn    MathFn
		depth int  // of loops around it
		arm   bool // in an if of the innermost
		after int  // loops around it when optimised
	}{
		"a loop":                  {sin, 1, false, 0},
		"four loops":              {sin, 4, false, 0},
		"an if in three loops":    {sin, 3, true, 0},
		"an order in a loop":      {jn, 1, false, 1},
		"an order in nested ones": {jn, 2, true, 2},
	} {
		f := NewFunc("f", F64)
		x, n := f.AddParam("x", F64), f.AddParam("n", I64)
		b := NewBuilder(f)
		zero, one, sum := b.Const(I64, 0), b.Const(I64, 1), b.Const(F64, 0)
		var nest func(d int, sum Value) Value
		nest = func(d int, sum Value) Value {
			if d == 0 {
				term := func() Value {
					if c.fn == jn {
						return b.Math(jn, n, x)
					}
					return b.Math(sin, x)
				}
				if !c.arm {
					return b.Op(OpAdd, sum, term())
				}
				return b.If(b.Op(OpLt, sum, b.Const(F64, FromF64(3))), []Type{F64},
					func() { b.Yield(b.Op(OpAdd, sum, term())) }, func() { b.Yield(sum) })[0]
			}
			return b.Loop([]Value{zero, sum}, []Type{F64}, func(v []Value) {
				b.If(b.Op(OpLt, v[0], n), nil, func() { b.Yield() }, func() { b.Break(1, v[1]) })
				next := nest(d-1, v[1])
				b.Yield(b.Op(OpAdd, v[0], one), next)
			})[0]
		}
		b.Yield(nest(c.depth, sum))
		g := Optimize(f)
		if err := Verify(g); err != nil {
			t.Fatal(err)
		}
		depth := -1
		var find func(r *Region, d int)
		find = func(r *Region, d int) {
			for i := range r.Instrs {
				in := &r.Instrs[i]
				if in.Op == OpMath {
					depth = d
				}
				for _, s := range in.Regions {
					if in.Op == OpLoop {
						find(s, d+1)
					} else {
						find(s, d)
					}
				}
			}
		}
		find(g.Body, 0)
		if depth != c.after {
			t.Errorf("%s: computed inside %d loops, want %d\n%v", name, depth, c.after, g)
		}
		want, err := new(Evaluator).Run(f, FromF64(0.7), 3)
		got, err2 := new(Evaluator).Run(g, FromF64(0.7), 3)
		if err != nil || err2 != nil || want[0] != got[0] {
			t.Errorf("%s: %v, %v; want %v, %v", name, got, err2, want, err)
		}
	}
}
