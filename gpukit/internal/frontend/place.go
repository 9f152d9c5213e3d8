package frontend

import (
	"fmt"
	"go/ast"
	"go/constant"
	"go/types"

	"gpunotes/gpukit/internal/ir"
)

// place is where a value of a Go type is: a variable, a part of one, or a value
// that was just computed.
type place struct {
	lay   *layout
	cells []cell // of each group of lay
	mem   ir.Mem // of a slice: what it is a view of
}

// cell is where the scalars of a group are: exactly one of slots, vals and a
// memory.
type cell struct {
	t     ir.Type
	n     int
	slots []slot     // of a variable in SSA form
	vals  []ir.Value // of a computed value
	inMem bool
	mem   ir.Mem
	at    ir.Value // the first one's index is at + base
	base  int
}

// none is no value.
const none ir.Value = -1

// maxValue bounds the scalars of a value that is passed, compared or assigned
// as a whole; only whole arrays in memory are copied by a loop.
const maxValue = 256

// maxSSA bounds the scalars of a variable that is not in memory.
const maxSSA = 64

func (l *lowerer) layout(t types.Type) *layout {
	if y := l.layouts[t]; y != nil {
		return y
	}
	y, ok := layoutOf(t)
	if !ok {
		panic(fmt.Sprintf("type %v passed the law", t))
	}
	l.layouts[t] = y
	return y
}

// computed makes the place of a value that was just computed.
func computed(y *layout, vs []ir.Value, mem ir.Mem) place {
	p := place{lay: y, mem: mem}
	for _, g := range y.groups {
		p.cells = append(p.cells, cell{t: g.t, n: g.n, vals: vs[:g.n], at: none})
		vs = vs[g.n:]
	}
	return p
}

// index is the index of scalar i of a cell in memory.
func (l *lowerer) index(c cell, i int) ir.Value {
	switch k := l.b.Const; {
	case c.at == none:
		return k(ir.I64, ir.Bits(c.base+i))
	case c.base+i == 0:
		return c.at
	default:
		return l.b.Op(ir.OpAdd, c.at, k(ir.I64, ir.Bits(c.base+i)))
	}
}

// load gives all scalars of p.
func (l *lowerer) load(p place) []ir.Value {
	if p.lay.n > maxValue {
		l.tooLarge(p.lay.n)
		return l.zeros(p.lay)
	}
	var vs []ir.Value
	for _, c := range p.cells {
		for i := range c.n {
			switch {
			case c.inMem:
				vs = append(vs, l.b.Load(c.mem, l.index(c, i)))
			case c.vals != nil:
				vs = append(vs, c.vals[i])
			default:
				vs = append(vs, l.cur[c.slots[i]])
			}
		}
	}
	return vs
}

// store puts vs into p, which is a variable or a part of one. A scalar that is
// none is left as it is.
func (l *lowerer) store(p place, vs []ir.Value) {
	for _, c := range p.cells {
		for i := range c.n {
			switch {
			case vs[i] == none:
			case c.inMem:
				l.b.Store(c.mem, l.index(c, i), vs[i])
			default:
				l.set(c.slots[i], vs[i])
			}
		}
		vs = vs[c.n:]
	}
}

func (l *lowerer) tooLarge(n int) {
	l.refuse(CodeTooLarge, "copy or compare the elements in a loop, or pass a slice of the array, a[:]",
		"a value of %d elements; values of more than %d are not moved as a whole", n, maxValue)
}

// refuse reports a fault at the present position.
func (l *lowerer) refuse(code Code, help, format string, args ...any) {
	l.c.rep.addAt(code, l.b.Pos, help, format, args...)
}

// zeros are the scalars of the zero value.
func (l *lowerer) zeros(y *layout) []ir.Value {
	vs := make([]ir.Value, 0, y.n)
	for _, g := range y.groups {
		z := l.zero(g.t)
		for range g.n {
			vs = append(vs, z)
		}
	}
	return vs
}

// field is field i of p.
func (p place) field(i int) place {
	g := p.lay.field(i)
	f := p.lay.fields[i]
	return place{lay: f, cells: p.cells[g : g+len(f.groups)]}
}

// elem is element i of array p, which is const k if i is none.
func (l *lowerer) elem(p place, i ir.Value, k int) place {
	e := place{lay: p.lay.elem, cells: make([]cell, len(p.cells))}
	for j, c := range p.cells {
		n := p.lay.elem.groups[j].n
		c.n = n
		switch {
		case i == none && c.inMem:
			c.base += k * n
		case i == none && c.vals != nil:
			c.vals = c.vals[k*n : (k+1)*n]
		case i == none:
			c.slots = c.slots[k*n : (k+1)*n]
		case !c.inMem:
			panic("an index of a variable that is not in memory")
		default:
			at := i
			if n != 1 {
				at = l.b.Op(ir.OpMul, i, l.b.Const(ir.I64, ir.Bits(n)))
			}
			if c.at != none {
				at = l.b.Op(ir.OpAdd, c.at, at)
			}
			c.at = at
		}
		e.cells[j] = c
	}
	return e
}

// inMemory gives p in memory: a computed value is put there.
func (l *lowerer) inMemory(p place) place {
	for _, c := range p.cells {
		if !c.inMem {
			vs := l.load(p)
			q := l.newPlace(p.lay, "value", ir.Local, true)
			l.store(q, vs)
			return q
		}
	}
	return p
}

// newPlace makes room for a variable: the groups of arrays in memories, if
// asked for, others in slots.
func (l *lowerer) newPlace(y *layout, name string, space ir.Space, memory bool) place {
	p := place{lay: y}
	for _, g := range y.groups {
		c := cell{t: g.t, n: g.n, at: none}
		if memory && g.array {
			c.inMem = true
			c.mem = l.b.F.AddMem(ir.Memory{Name: name, Space: space, Elem: g.t, Len: g.n})
		} else {
			c.slots = make([]slot, g.n)
			for i := range c.slots {
				c.slots[i] = l.slot(g.t)
			}
		}
		p.cells = append(p.cells, c)
	}
	return p
}

// declare makes a variable and gives it its first value; none stands for zero.
func (l *lowerer) declare(obj types.Object, vs []ir.Value) {
	p := l.variable(obj)
	l.clear(p)
	for i, c := range p.cells {
		if c.inMem {
			continue
		}
		for j, s := range c.slots {
			if v := p.lay.start(i) + j; vs[v] == none {
				l.set(s, l.zero(c.t))
			}
		}
	}
	l.store(p, vs)
}

// clear makes the memories of a variable zero.
func (l *lowerer) clear(p place) {
	for _, c := range p.cells {
		if c.inMem && c.n > 0 {
			l.b.Clear(c.mem)
		}
	}
}

// variable makes room for obj.
func (l *lowerer) variable(obj types.Object) place {
	y := l.layout(obj.Type())
	f := l.it.facts
	space := ir.Local
	if f.shared[obj] {
		space = ir.Shared
	}
	p := l.newPlace(y, obj.Name(), space, f.memory[obj] || y.n > maxSSA)
	if y.rank > 0 {
		p.mem = l.viewed(obj, y)
	}
	l.vars[obj] = p
	for i, c := range p.cells {
		if c.inMem {
			l.mems[source{obj, i}] = c.mem
		}
	}
	return p
}

// viewed is the memory that a slice variable is a view of.
func (l *lowerer) viewed(obj types.Object, y *layout) ir.Mem {
	src, ok := l.it.facts.sourceOf(obj)
	if !ok {
		// It never gets a value, so that no index is in range.
		return l.b.F.AddMem(ir.Memory{Name: obj.Name(), Space: ir.Local, Elem: y.of, Len: 1})
	}
	if fn, ok := src.obj.(*types.Func); ok {
		t, _ := sharedType(fn.Name())
		return l.shared[t]
	}
	return l.mems[src]
}

// global gives the place of a captured array or of a table.
func (l *lowerer) global(obj types.Object) (place, bool) {
	if p, ok := l.vars[obj]; ok {
		return p, true
	}
	it := l.c.byObj[obj]
	if it == nil || !it.table {
		return place{}, false
	}
	lit := ast.Unparen(it.node.(*ast.GenDecl).Specs[0].(*ast.ValueSpec).Values[0]).(*ast.CompositeLit)
	p := l.constants(l.layout(obj.Type()), it.name, lit)
	l.vars[obj] = p
	return p, true
}

// constants makes constant memory of a literal of constants; what is not of an
// array becomes constant values, here.
func (l *lowerer) constants(y *layout, name string, lit *ast.CompositeLit) place {
	bits := make([]ir.Bits, y.n)
	l.fill(y, lit, func(at int, t ir.Type, e ast.Expr) { bits[at] = constBits(t, l.c.info.Types[e].Value) })
	p := place{lay: y}
	for _, g := range y.groups {
		p.cells = append(p.cells, cell{t: g.t, n: g.n, at: none, inMem: true,
			mem: l.b.F.AddMem(ir.Memory{Name: name, Space: ir.Constant, Elem: g.t, Len: g.n, Data: bits[:g.n:g.n]})})
		bits = bits[g.n:]
	}
	return p
}

// fill calls put for each scalar that a literal of layout y names, with its
// place among all scalars.
func (l *lowerer) fill(y *layout, lit *ast.CompositeLit, put func(at int, t ir.Type, e ast.Expr)) {
	// starts of the groups in the whole value, and of the part in each group
	var visit func(y *layout, starts []int, e ast.Expr)
	visit = func(y *layout, starts []int, e ast.Expr) {
		lit, ok := ast.Unparen(e).(*ast.CompositeLit)
		if !ok {
			// A scalar, or a whole value of another expression.
			l.whole(y, starts, e, put)
			return
		}
		next := 0
		for _, x := range lit.Elts {
			i := next
			if kv, ok := x.(*ast.KeyValueExpr); ok {
				x = kv.Value
				if y.elem != nil {
					k, _ := constant.Int64Val(constant.ToInt(l.c.info.Types[kv.Key].Value))
					i = int(k)
				} else {
					i = fieldNumber(l.c.info.TypeOf(lit), kv.Key.(*ast.Ident).Name)
				}
			}
			next = i + 1
			if y.elem != nil {
				at := make([]int, len(starts))
				for g := range starts {
					at[g] = starts[g] + i*y.elem.groups[g].n
				}
				visit(y.elem, at, x)
			} else {
				g := y.field(i)
				visit(y.fields[i], starts[g:g+len(y.fields[i].groups)], x)
			}
		}
	}
	starts := make([]int, len(y.groups))
	for g := range starts {
		starts[g] = y.start(g)
	}
	visit(y, starts, lit)
}

// whole is fill for a value that is not a literal.
func (l *lowerer) whole(y *layout, starts []int, e ast.Expr, put func(at int, t ir.Type, e ast.Expr)) {
	if y.scalar() {
		put(starts[0], y.groups[0].t, e)
		return
	}
	vs := l.values(e)
	for g, x := range y.groups {
		for i := range x.n {
			l.filled[starts[g]+i] = vs[i]
		}
		vs = vs[x.n:]
	}
}

func fieldNumber(t types.Type, name string) int {
	s := t.Underlying().(*types.Struct)
	for i := range s.NumFields() {
		if s.Field(i).Name() == name {
			return i
		}
	}
	panic("no field " + name)
}

// literal gives the scalars of a composite literal, none for those that it does
// not name.
func (l *lowerer) literal(lit *ast.CompositeLit) []ir.Value {
	y := l.layout(l.c.info.TypeOf(lit))
	vs := make([]ir.Value, y.n)
	for i := range vs {
		vs[i] = none
	}
	outer := l.filled
	l.filled = vs
	l.fill(y, lit, func(at int, _ ir.Type, e ast.Expr) { vs[at] = l.expr(e) })
	l.filled = outer
	return vs
}

// isConstant reports whether all elements of a literal are constants.
func (l *lowerer) isConstant(lit *ast.CompositeLit) bool {
	for _, x := range lit.Elts {
		if kv, ok := x.(*ast.KeyValueExpr); ok {
			x = kv.Value
		}
		if inner, ok := ast.Unparen(x).(*ast.CompositeLit); ok {
			if !l.isConstant(inner) {
				return false
			}
		} else if l.c.info.Types[x].Value == nil {
			return false
		}
	}
	return true
}

// place gives the place of e; indices are evaluated and checked.
func (l *lowerer) place(e ast.Expr) place { return l.target(e)() }

// target evaluates the operands of e, as the left side of an assignment does
// first, and returns what goes there and checks the last index.
func (l *lowerer) target(e ast.Expr) func() place {
	is := func(p place) func() place { return func() place { return p } }
	switch e := ast.Unparen(e).(type) {
	case *ast.Ident:
		obj := l.c.objOf(e)
		if v, ok := l.globals[obj]; ok {
			return is(computed(l.layout(obj.Type()), []ir.Value{v}, 0))
		}
		if p, ok := l.global(obj); ok {
			return is(p)
		}
		panic(e.Name + " is not a variable of the function")
	case *ast.SelectorExpr:
		if sel := l.c.info.Selections[e]; sel != nil {
			if p, ok := l.coordinate(e); ok {
				return is(p)
			}
			in := l.target(e.X)
			return func() place {
				p := in()
				for _, i := range sel.Index() {
					p = p.field(i)
				}
				return p
			}
		}
	case *ast.IndexExpr:
		if isSlice(l.c.info.TypeOf(e.X)) {
			return l.sliceElem(e)
		}
		in := l.target(e.X)
		if k := l.c.info.Types[e.Index].Value; k != nil {
			i, _ := constant.Int64Val(constant.ToInt(k))
			return func() place { return l.elem(in(), none, int(i)) }
		}
		i := l.indexValue(e.Index)
		return func() place {
			p := in()
			l.at(e.Index.Pos())
			l.b.Bounds(i, l.b.Const(ir.I64, ir.Bits(p.lay.len)))
			return l.elem(l.inMemory(p), i, 0)
		}
	case *ast.SliceExpr:
		vs, mem := l.sliceExpr(e)
		return is(computed(l.layout(l.c.info.TypeOf(e)), vs, mem))
	case *ast.CompositeLit:
		y := l.layout(l.c.info.TypeOf(e))
		if y.n > 8 && y.elem != nil && l.isConstant(e) {
			l.at(e.Pos())
			return is(l.constants(y, "literal", e))
		}
		vs := l.literal(e)
		l.at(e.Pos())
		z := l.zeros(y)
		for i, v := range vs {
			if v == none {
				vs[i] = z[i]
			}
		}
		return is(computed(y, vs, 0))
	case *ast.CallExpr:
		if tv := l.c.info.Types[e.Fun]; tv.IsType() && !l.layout(tv.Type).scalar() {
			return l.target(e.Args[0])
		}
		if fn := l.c.libObj(e); fn != nil {
			if t, ok := sharedType(fn.Name()); ok && fn.Pkg() == simtPackage() {
				return is(computed(l.layout(l.c.info.TypeOf(e)), []ir.Value{l.zero(ir.I64), l.hidden[hidden{shared: true, t: t}], l.one(ir.I64)}, l.shared[t]))
			}
		}
		return is(computed(l.layout(l.c.info.TypeOf(e)), l.callResults(e), 0))
	}
	panic(fmt.Sprintf("%T passed the law", e))
}

// indexValue lowers an index to int64.
func (l *lowerer) indexValue(e ast.Expr) ir.Value {
	v := l.expr(e)
	l.at(e.Pos())
	return l.b.Convert(ir.I64, v)
}

// sliceElem is element i of a slice: a scalar in memory, or a slice of a
// dimension less.
func (l *lowerer) sliceElem(e *ast.IndexExpr) func() place {
	p := l.place(e.X)
	v := l.load(p)
	i := l.indexValue(e.Index)
	return func() place {
		l.at(e.Index.Pos())
		l.b.Bounds(i, v[1])
		return l.part(p, v, i)
	}
}

// part is element i of a slice p of values v, unchecked.
func (l *lowerer) part(p place, v []ir.Value, i ir.Value) place {
	r := p.lay.rank
	at := l.b.Op(ir.OpAdd, v[0], l.b.Op(ir.OpMul, i, v[1+r]))
	if r == 1 {
		return place{lay: &layout{groups: []group{{t: p.lay.of, n: 1}}, n: 1}, cells: []cell{{t: p.lay.of, n: 1, inMem: true, mem: p.mem, at: at}}}
	}
	y := &layout{groups: []group{{t: ir.I64, n: 2*r - 1}}, n: 2*r - 1, rank: r - 1, of: p.lay.of}
	vs := append([]ir.Value{at}, v[2:1+r]...)
	return computed(y, append(vs, v[2+r:]...), p.mem)
}

// sliceExpr lowers x[lo:hi] of a slice, or of an array in memory.
func (l *lowerer) sliceExpr(e *ast.SliceExpr) ([]ir.Value, ir.Mem) {
	p := l.place(e.X)
	var v []ir.Value
	mem := p.mem
	if p.lay.rank > 0 {
		v = append(v, l.load(p)...)
	} else {
		c := p.cells[0]
		mem = c.mem
		v = []ir.Value{l.index(c, 0), l.b.Const(ir.I64, ir.Bits(p.lay.len)), l.one(ir.I64)}
	}
	lo, hi := none, v[1]
	if e.Low != nil {
		lo = l.indexValue(e.Low)
	}
	if e.High != nil {
		hi = l.indexValue(e.High)
	}
	if lo == none && e.High == nil {
		return v, mem
	}
	l.at(e.Lbrack)
	from := lo
	if lo == none {
		from = l.zero(ir.I64)
	}
	l.b.SliceBounds(from, hi, v[1])
	if lo != none {
		v[0] = l.b.Op(ir.OpAdd, v[0], l.b.Op(ir.OpMul, lo, v[1+max(p.lay.rank, 1)]))
		hi = l.b.Op(ir.OpSub, hi, lo)
	}
	v[1] = hi
	return v, mem
}

// copyWhole copies one array in memory to another by a loop; false if that is
// not the way.
func (l *lowerer) copyWhole(to, from place) bool {
	if to.lay.n <= maxSSA {
		return false
	}
	for i, c := range to.cells {
		if g := to.lay.groups[i]; g.array && (!c.inMem || !from.cells[i].inMem) {
			return false
		}
	}
	for i, c := range to.cells {
		f := from.cells[i]
		switch {
		case !to.lay.groups[i].array:
			one := place{lay: &layout{groups: []group{to.lay.groups[i]}, n: 1}}
			one.cells = []cell{f}
			vs := l.load(one)
			one.cells = []cell{c}
			l.store(one, vs)
		default:
			n := l.b.Const(ir.I64, ir.Bits(c.n))
			l.b.Loop([]ir.Value{l.zero(ir.I64)}, nil, func(k []ir.Value) {
				l.b.If(l.b.Op(ir.OpLt, k[0], n), nil, func() {
					l.b.Store(c.mem, l.b.Op(ir.OpAdd, l.index(c, 0), k[0]), l.b.Load(f.mem, l.b.Op(ir.OpAdd, l.index(f, 0), k[0])))
					l.b.Yield()
				}, func() { l.b.Break(1) })
				l.b.Yield(l.b.Op(ir.OpAdd, k[0], l.one(ir.I64)))
			})
		}
	}
	return true
}
