package nvptx

import (
	"fmt"
	mathbits "math/bits"
	"slices"
	"strings"

	"gpunotes/gpukit/internal/ir"
)

// Addresses are sums of products: base + size*(offset + i*stride + ...). They are
// computed modulo 2^64, where every law of such sums holds, so that they can be
// taken apart at will: what does not change in a loop is computed before it, and
// what changes by equal steps is a value of the loop that is added to.

// term is a product of values and a number; poly is a sum of them, in order of
// their values.
type term struct {
	values []ir.Value // in order
	coef   uint64
}

type poly []term

func constPoly(c uint64) poly {
	if c == 0 {
		return nil
	}
	return poly{{nil, c}}
}

func valuePoly(v ir.Value) poly { return poly{{[]ir.Value{v}, 1}} }

func compareTerms(a, b term) int { return slices.Compare(a.values, b.values) }

// plus is p + k*q.
func (p poly) plus(q poly, k uint64) poly {
	out := make(poly, 0, len(p)+len(q))
	for len(p) > 0 || len(q) > 0 {
		c := 0
		switch {
		case len(p) == 0:
			c = 1
		case len(q) == 0:
			c = -1
		default:
			c = compareTerms(p[0], q[0])
		}
		var t term
		if c <= 0 {
			t, p = p[0], p[1:]
		}
		if c >= 0 {
			t = term{q[0].values, t.coef + k*q[0].coef}
			q = q[1:]
		}
		if t.coef != 0 {
			out = append(out, t)
		}
	}
	return out
}

func (p poly) times(q poly) poly {
	var out poly
	for _, a := range p {
		var row poly
		for _, b := range q {
			vs := append(slices.Clone(a.values), b.values...)
			slices.Sort(vs)
			if c := a.coef * b.coef; c != 0 {
				row = append(row, term{vs, c})
			}
		}
		slices.SortFunc(row, compareTerms)
		out = out.plus(row, 1)
	}
	return out
}

// constant takes the number off a sum.
func (p poly) constant() (rest poly, c uint64) {
	if len(p) > 0 && len(p[0].values) == 0 {
		return p[1:], p[0].coef
	}
	return p, 0
}

func (p poly) key() string {
	var b strings.Builder
	for _, t := range p {
		fmt.Fprint(&b, t.coef, t.values)
	}
	return b.String()
}

// large is when a sum is left alone.
const largePoly, largeTerm = 12, 4

// loopFrame is a loop being written.
type loopFrame struct {
	pre     *ir.Region // what is computed before it
	known   map[string]ir.Value
	carried []ir.Value
	first   []poly // of carried values
	step    []poly // nil if it does not go in equal steps
	stepped []bool
	extra   []stepped
}

// stepped is a value that the loop goes on with in equal steps.
type stepped struct{ value, first, step ir.Value }

// tooManySteps bounds the registers that a loop spends on them.
const tooManySteps = 12

type addresser struct {
	*copier
	base   []ir.Value // by memory
	polys  []poly     // by new value, nil where it is only itself
	depth  []int      // by new value: in how many loops it is defined
	frames []*loopFrame
}

// addressed returns f with addresses in bytes as the operands of loads, stores
// and atomic operations. The bases of its memories are further parameters, one
// for each, behind those of f.
func addressed(f *ir.Func) *ir.Func {
	a := &addresser{copier: newCopier(f)}
	for i, m := range f.Mems {
		a.base = append(a.base, a.b.F.AddParam(fmt.Sprintf("%s.base%d", m.Name, i), ir.I64))
	}
	a.instr = a.special
	return a.run()
}

func (a *addresser) poly(v ir.Value) poly {
	if int(v) < len(a.polys) && a.polys[v] != nil {
		return a.polys[v]
	}
	return valuePoly(v)
}

func (a *addresser) depthOf(v ir.Value) int {
	if int(v) < len(a.depth) {
		return a.depth[v]
	}
	return 0
}

// at notes how deep values are.
func (a *addresser) at(depth int, vs ...ir.Value) {
	for _, v := range vs {
		for int(v) >= len(a.depth) {
			a.depth = append(a.depth, 0)
		}
		a.depth[v] = depth
	}
}

func (a *addresser) special(in *ir.Instr, _ []ir.Instr) bool {
	switch in.Op {
	case ir.OpLoop:
		a.loop(in)
	case ir.OpLoad, ir.OpStore, ir.OpAtomic:
		size := uint64(a.old.Mems[in.Mem].Elem.Size())
		p, c := valuePoly(a.base[in.Mem]).plus(a.poly(a.vals[in.Args[0]]), size).constant()
		x := *in
		x.Args = a.args(in.Args)
		if x.Args[0] = a.value(p, len(a.frames), a.b.R); c != 0 {
			x.Args[0] = a.b.Op(ir.OpAdd, x.Args[0], a.b.Const(ir.I64, c))
		}
		x.Results = a.fresh(in.Results)
		a.at(len(a.frames), x.Results...)
		a.add(x)
	default:
		a.copy(in)
		for _, v := range in.Results {
			a.at(len(a.frames), a.vals[v])
		}
		if len(in.Results) == 1 && len(in.Regions) == 0 {
			if p, ok := a.sum(in); ok {
				v := a.vals[in.Results[0]]
				for int(v) >= len(a.polys) {
					a.polys = append(a.polys, nil)
				}
				if a.polys[v] = p; p == nil {
					a.polys[v] = poly{}
				}
			}
		}
	}
	return true
}

// sum is what an operation on 64-bit integers adds up to.
func (a *addresser) sum(in *ir.Instr) (p poly, ok bool) {
	wide := func(v ir.Value) bool { t := a.old.Types[v]; return t == ir.I64 || t == ir.U64 }
	if !wide(in.Results[0]) {
		return nil, false
	}
	of := func(i int) poly { return a.poly(a.vals[in.Args[i]]) }
	switch in.Op {
	case ir.OpConst:
		return constPoly(in.Imm), true
	case ir.OpConvert:
		if !wide(in.Args[0]) {
			return nil, false
		}
		p = of(0)
	case ir.OpAdd:
		p = of(0).plus(of(1), 1)
	case ir.OpSub:
		p = of(0).plus(of(1), ^uint64(0))
	case ir.OpNeg:
		p = poly(nil).plus(of(0), ^uint64(0))
	case ir.OpMul:
		x, y := of(0), of(1)
		if a.outside(x) && a.outside(y) {
			return nil, false // it does not change: taken apart it would be more work
		}
		p = x.times(y)
	case ir.OpShl:
		n, c := of(1).constant()
		if len(n) > 0 || c > 63 {
			return nil, false
		}
		p = poly(nil).plus(of(0), 1<<c)
	default:
		return nil, false
	}
	return p, len(p) <= largePoly && !slices.ContainsFunc(p, func(t term) bool { return len(t.values) > largeTerm })
}

// outside reports whether a sum is of values from outside all loops, and not just
// a number.
func (a *addresser) outside(p poly) bool {
	if p, _ := p.constant(); len(p) == 0 {
		return false
	}
	return !slices.ContainsFunc(p, func(t term) bool {
		return slices.ContainsFunc(t.values, func(v ir.Value) bool { return a.depthOf(v) > 0 })
	})
}

// steps is by how much a carried value of a loop goes on, in new values, if that
// does not change in the loop.
func (a *addresser) steps(loop *ir.Instr, j int, inside map[ir.Value]bool) (poly, bool) {
	last := loop.Regions[0].Terminator()
	if last.Op != ir.OpYield || a.old.Types[loop.Carried[j]] != ir.I64 && a.old.Types[loop.Carried[j]] != ir.U64 {
		return nil, false
	}
	var step poly
	v := last.Args[j]
	for v != loop.Carried[j] {
		in := a.def[v]
		if in == nil || in.Op != ir.OpAdd && in.Op != ir.OpSub {
			return nil, false
		}
		outer := func(w ir.Value) (poly, bool) {
			if d := a.def[w]; d != nil && d.Op == ir.OpConst {
				return constPoly(d.Imm), true
			}
			if inside[w] {
				return nil, false
			}
			return a.poly(a.vals[w]), true
		}
		if p, ok := outer(in.Args[1]); ok {
			k := uint64(1)
			if in.Op == ir.OpSub {
				k = ^uint64(0)
			}
			v, step = in.Args[0], step.plus(p, k)
		} else if p, ok := outer(in.Args[0]); ok && in.Op == ir.OpAdd {
			v, step = in.Args[1], step.plus(p, 1)
		} else {
			return nil, false
		}
	}
	return step, true
}

func (a *addresser) loop(in *ir.Instr) {
	f := &loopFrame{pre: &ir.Region{}, known: map[string]ir.Value{}}
	inside := changing(in)
	for j, v := range in.Args {
		s, ok := a.steps(in, j, inside)
		f.first, f.step, f.stepped = append(f.first, a.poly(a.vals[v])), append(f.step, s), append(f.stepped, ok)
	}
	x := *in
	x.Args = a.args(in.Args)
	x.Carried = a.fresh(in.Carried)
	f.carried = x.Carried
	a.frames = append(a.frames, f)
	a.at(len(a.frames), x.Carried...)
	body := a.inside(level{true, true}, func() {
		ins := in.Regions[0].Instrs
		a.instrs(ins[:len(ins)-1])
		last := ins[len(ins)-1]
		if last.Op != ir.OpYield {
			a.instrs(ins[len(ins)-1:])
			return
		}
		next := a.args(last.Args)
		a.b.Pos = last.Pos
		for _, e := range f.extra {
			next = append(next, a.b.Op(ir.OpAdd, e.value, e.step))
		}
		a.b.Yield(next...)
	})
	a.frames = a.frames[:len(a.frames)-1]
	x.Args, x.Carried = slices.Clip(x.Args), slices.Clip(x.Carried)
	for _, e := range f.extra {
		x.Args, x.Carried = append(x.Args, e.first), append(x.Carried, e.value)
	}
	a.b.R.Instrs = append(a.b.R.Instrs, f.pre.Instrs...)
	x.Regions = []*ir.Region{body}
	x.Results = a.fresh(in.Results)
	a.at(len(a.frames), x.Results...)
	a.add(x)
}

// in runs build with the builder in another region.
func (a *addresser) in(r *ir.Region, build func() ir.Value) ir.Value {
	outer := a.b.R
	a.b.R = r
	v := build()
	a.b.R = outer
	return v
}

// value makes the value of p where r ends, in d loops.
func (a *addresser) value(p poly, d int, r *ir.Region) ir.Value {
	p, c := p.constant()
	if c != 0 {
		if len(p) == 0 {
			return a.in(r, func() ir.Value { return a.b.Const(ir.I64, c) })
		}
		v := a.value(p, d, r)
		return a.in(r, func() ir.Value { return a.b.Op(ir.OpAdd, v, a.b.Const(ir.I64, c)) })
	}
	switch {
	case len(p) == 0:
		return a.in(r, func() ir.Value { return a.b.Const(ir.I64, 0) })
	case len(p) == 1 && len(p[0].values) == 1 && p[0].coef == 1:
		return a.in(r, func() ir.Value { return a.b.Convert(ir.I64, p[0].values[0]) })
	}
	key := p.key()
	for _, f := range a.frames[:d] {
		if v, ok := f.known[key]; ok {
			return v
		}
	}
	if d == 0 {
		return a.in(r, func() ir.Value { return a.compute(p) })
	}
	f := a.frames[d-1]
	var steady, rest poly
	for _, t := range p {
		n, iv := 0, 0
		for _, v := range t.values {
			if a.depthOf(v) >= d {
				n++
				if j := slices.Index(f.carried, v); j >= 0 && f.stepped[j] {
					iv++
				}
			}
		}
		switch {
		case n == 0:
		case n == 1 && iv == 1:
			steady = append(steady, t)
		default:
			rest = append(rest, t)
		}
	}
	if len(rest) == 0 && len(steady) == 0 {
		v := a.value(p, d-1, f.pre)
		f.known[key] = v
		return v
	}
	if len(rest) == 0 && len(f.extra) < tooManySteps {
		first, step := p, poly(nil)
		for _, t := range steady {
			k := slices.IndexFunc(t.values, func(v ir.Value) bool { return a.depthOf(v) >= d })
			j := slices.Index(f.carried, t.values[k])
			others := poly{{slices.Delete(slices.Clone(t.values), k, k+1), t.coef}}
			first = first.plus(poly{t}, ^uint64(0)).plus(others.times(f.first[j]), 1)
			step = step.plus(others.times(f.step[j]), 1)
		}
		if len(first) <= 2*largePoly {
			e := stepped{first: a.value(first, d-1, f.pre), step: a.value(step, d-1, f.pre), value: a.b.F.NewValue(ir.I64)}
			a.at(d, e.value)
			f.extra = append(f.extra, e)
			f.known[key] = e.value
			return e.value
		}
	}
	// What varies, each with a factor that does not, and the rest.
	if len(rest) == 0 {
		rest, steady = steady, nil
	}
	type product struct {
		values []ir.Value
		factor poly
	}
	var products []product
	for _, t := range rest {
		var varying []ir.Value
		factor := poly{{nil, t.coef}}
		for _, v := range t.values {
			if a.depthOf(v) >= d {
				varying = append(varying, v)
			} else {
				factor = factor.times(valuePoly(v))
			}
		}
		k := slices.IndexFunc(products, func(q product) bool { return slices.Equal(q.values, varying) })
		if k < 0 {
			products = append(products, product{varying, factor})
		} else {
			products[k].factor = products[k].factor.plus(factor, 1)
		}
	}
	var others poly
	for _, t := range p {
		if !slices.ContainsFunc(rest, func(u term) bool { return compareTerms(t, u) == 0 }) {
			others = append(others, t)
		}
	}
	sum := ir.Value(-1)
	if len(others) > 0 {
		sum = a.value(others, d, r)
	}
	for _, q := range products {
		factor := ir.Value(-1)
		rest, c := q.factor.constant()
		if len(rest) > 0 {
			factor, c = a.value(q.factor, d, r), 1
		}
		v := a.in(r, func() ir.Value {
			v := a.product(q.values, c)
			if factor >= 0 {
				v = a.b.Op(ir.OpMul, v, factor)
			}
			return v
		})
		if sum < 0 {
			sum = v
		} else {
			sum = a.in(r, func() ir.Value { return a.b.Op(ir.OpAdd, sum, v) })
		}
	}
	return sum
}

// product computes the product of values and a number where the builder stands.
func (a *addresser) product(vs []ir.Value, coef uint64) ir.Value {
	v := a.b.Convert(ir.I64, vs[0])
	for _, w := range vs[1:] {
		v = a.b.Op(ir.OpMul, v, a.b.Convert(ir.I64, w))
	}
	switch {
	case coef == 1:
	case coef == ^uint64(0):
		v = a.b.Op(ir.OpNeg, v)
	case coef&(coef-1) == 0:
		v = a.b.Op(ir.OpShl, v, a.b.Const(ir.U64, uint64(mathbits.TrailingZeros64(coef))))
	default:
		v = a.b.Op(ir.OpMul, v, a.b.Const(ir.I64, coef))
	}
	return v
}

// compute computes a sum where the builder stands. A common power of two is
// multiplied with once.
func (a *addresser) compute(p poly) ir.Value {
	// Terms of coefficient 1, such as bases, are added at the end.
	var scaled, plain poly
	shift := 64
	for _, t := range p {
		if t.coef == 1 {
			plain = append(plain, t)
		} else {
			scaled = append(scaled, t)
			shift = min(shift, mathbits.TrailingZeros64(t.coef))
		}
	}
	sum := ir.Value(-1)
	plus := func(v ir.Value) {
		if sum >= 0 {
			v = a.b.Op(ir.OpAdd, sum, v)
		}
		sum = v
	}
	for _, t := range scaled {
		plus(a.product(t.values, t.coef>>shift))
	}
	if len(scaled) > 0 && shift > 0 {
		sum = a.b.Op(ir.OpShl, sum, a.b.Const(ir.U64, uint64(shift)))
	}
	for _, t := range plain {
		plus(a.product(t.values, 1))
	}
	return sum
}
