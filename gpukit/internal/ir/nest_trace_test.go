package ir_test

import (
	"math"
	"math/rand/v2"
	"slices"

	"gpunotes/gpukit/internal/ir"
)

// nView is where an array parameter lies among the cells.
type nView struct {
	off           int
	shape, stride []int
}

// nArgs is what a nest runs on. All arrays lie in one sequence of cells, one copy of it for each worker.
type nArgs struct {
	scalars [][]ir.Bits // by worker, in the order of nest.scalars
	views   []nView     // of worker 0
	types   []ir.Type   // of the cells of a worker
	data    []ir.Bits
}

func (a *nArgs) workers() int { return len(a.scalars) }

// nSets is how many different arguments a nest is tried on. Those of extremes may run too long.
const nSets, extremes = 8, 7

// newArgs makes arguments. Unless they are to be any, arrays are as large as what the nest does with them needs.
// apart keeps arrays apart that may overlap.
func (n *nest) newArgs(set int, apart bool) *nArgs {
	r := rand.New(rand.NewPCG(n.seed, 100+uint64(set)))
	a := &nArgs{}
	sizes := [nSets][4]int64{{3, 3, 3, 1}, {5, 3, 2, 2}, {2, 7, 3, 0}, {4, 2, 5, 3}, {7, 5, 2, 1}, {3, 4, 2, 2}, {1, 0, 1, 0}, {3, 4, 2, 1}}[set%nSets]
	anyShape := set == 5
	switch set {
	case 4:
		if r.IntN(2) == 0 {
			sizes = [4]int64{2, 3, 7, 4}
		}
	case 5:
		sizes[3] = int64(r.IntN(4) - 1)
	case 6: // nothing, or one
		sizes = [4]int64{int64(r.IntN(3) - 1), int64(r.IntN(3) - 1), int64(r.IntN(2)), int64(r.IntN(2))}
	default:
		if set >= nSets { // for the truth alone
			for i := range sizes {
				sizes[i] = int64(r.IntN([]int{4, 4, 6, 9}[r.IntN(4)]) - r.IntN(8)/7)
			}
		}
	}
	workers := 1
	if set == 3 {
		workers = 2
	}
	base := []int{int(max(sizes[0], 0)), int(max(sizes[1], 0)), int(max(sizes[2], 0))}
	if set == extremes {
		for i := range sizes {
			if r.IntN(2) == 0 {
				big := []int64{math.MaxInt64, math.MaxInt64 - 1, math.MinInt64, math.MinInt64 + 1, 1 << 62, -1 << 62, 1 << 48, 1<<63 - 3, 1<<32 + 1, -1 << 32}
				sizes[i] = big[r.IntN(len(big))]
			}
		}
	}
	for w := range workers {
		var bits []ir.Bits
		for i, x := range sizes {
			if w > 0 && !n.uniform[i] {
				x = max(0, x-1)
			}
			bits = append(bits, ir.Bits(x))
		}
		a.scalars = append(a.scalars, append(bits, ir.FromF64(float64(r.IntN(9)-2)/2)))
	}
	for _, p := range n.arrays {
		v := nView{}
		for d := range p.rank {
			k := base[min(d, 2)]
			if anyShape || r.IntN(6) == 0 {
				k = r.IntN(6)
			}
			v.shape = append(v.shape, k)
		}
		v.stride = make([]int, p.rank)
		a.views = append(a.views, v)
	}
	if !anyShape {
		for range 4 {
			limit := most
			if set >= nSets {
				limit = mostOfAll
			}
			if !n.grow(a, limit) {
				break
			}
		}
	}
	n.place(a, r, apart)
	return a
}

// most is how many elements an array may have; where only the interpreter runs it may be more.
const most, mostOfAll = 160, 3000

// grow makes arrays larger until the nest stays within them, and reports whether it had to.
func (n *nest) grow(a *nArgs, limit int) (grown bool) {
	need := make([][]int, len(n.arrays))
	for i := range a.views {
		need[i] = slices.Clone(a.views[i].shape)
	}
	for w := range a.workers() {
		r := newRun(n, a, w, nil)
		r.need = need
		r.run()
	}
	for i := range a.views {
		for d, k := range need[i] {
			old := a.views[i].shape[d]
			if k == old {
				continue
			}
			a.views[i].shape[d] = k
			size := 1
			for _, s := range a.views[i].shape {
				size *= max(s, 1)
			}
			if size > limit {
				a.views[i].shape[d] = old
			} else {
				grown = true
			}
		}
	}
	return grown
}

// place lays arrays out in memory and fills it.
func (n *nest) place(a *nArgs, r *rand.Rand, apart bool) {
	low, high := make([]int, len(a.views)), make([]int, len(a.views))
	for i := range a.views {
		v := &a.views[i]
		step := 1
		dims := make([]int, len(v.shape))
		for d := range dims {
			dims[d] = len(dims) - 1 - d
		}
		odd := r.IntN(3) == 0
		if odd {
			dims = r.Perm(len(dims))
			step += r.IntN(2)
		}
		for _, d := range dims {
			v.stride[d] = step
			if odd && r.IntN(4) == 0 {
				v.stride[d] = -step
			}
			step *= max(v.shape[d], 1)
			if odd {
				step += r.IntN(2)
			}
		}
		if !n.distinct[i] {
			for d := range v.stride {
				v.stride[d] = r.IntN(4) - 1
			}
		}
		for j := range i { // like the one that it may overlap
			if n.class[j] == n.class[i] && slices.Equal(a.views[j].shape, v.shape) && n.distinct[i] && n.distinct[j] && r.IntN(2) == 0 {
				copy(v.stride, a.views[j].stride)
			}
		}
		for d, s := range v.stride {
			far := s * max(v.shape[d]-1, 0)
			low[i], high[i] = low[i]+min(far, 0), high[i]+max(far, 0)
		}
	}
	next := 2
	for c := range a.views {
		lo, hi, first := math.MaxInt, math.MinInt, -1
		for i := range a.views {
			if n.class[i] != c {
				continue
			}
			v := &a.views[i]
			switch {
			case first < 0:
				first = i
				v.off = 0
			case !apart && r.IntN(5) > 0:
				v.off = a.views[first].off + []int{0, 0, 1, -1, 2, -3, r.IntN(30) - 10}[r.IntN(7)]
			default:
				v.off = hi + 1 - low[i]
			}
			lo, hi = min(lo, v.off+low[i]), max(hi, v.off+high[i])
		}
		for i := range a.views {
			if n.class[i] == c {
				a.views[i].off += next - lo
			}
		}
		if first >= 0 {
			next += hi - lo + 1 + r.IntN(3)
		}
	}
	a.types = make([]ir.Type, next)
	for i, v := range a.views {
		for c := v.off + low[i]; c <= v.off+high[i]; c++ {
			a.types[c] = n.arrays[i].elem
		}
	}
	for range a.workers() {
		for _, t := range a.types {
			a.data = append(a.data, content(r, t))
		}
	}
}

// content is a number that is often an index.
func content(r *rand.Rand, t ir.Type) ir.Bits {
	x := float64(r.IntN(40)-10) / 4
	if r.IntN(40) == 0 {
		x = []float64{math.NaN(), math.Inf(1), math.Copysign(0, -1), 1e30}[r.IntN(4)]
	}
	switch t {
	case ir.Invalid:
		return 0
	case ir.F64:
		return ir.FromF64(x)
	case ir.F32:
		return ir.FromF32(float32(x))
	}
	k := int64(r.IntN(6))
	if r.IntN(25) == 0 {
		k = int64(r.IntN(300) - 100)
	}
	return ir.Wrap(t, ir.Bits(k))
}

type nControl uint8

const (
	goOn nControl = iota
	doBreak
	doContinue
	doReturn
	doFail
)

// nRows is what a slice variable stands for: dimensions from dim on of an array, of which the first begins at org and
// has n elements.
type nRows struct{ array, dim, org, off, n int }

// nRun interprets a nest for one worker.
type nRun struct {
	n       *nest
	a       *nArgs
	worker  int
	cells   []ir.Bits
	vals    []ir.Bits
	rows    []nRows
	locals  []ir.Bits
	watch   *nWatch
	need    [][]int // if not nil, indices only say how large arrays must be
	target  int
	failed  bool
	steps   int
	runaway bool
}

// nLocal is the length of local arrays at most.
const nLocal = 8

func newRun(n *nest, a *nArgs, worker int, cells []ir.Bits) *nRun {
	r := &nRun{n: n, a: a, worker: worker, cells: cells, vals: make([]ir.Bits, n.ids), rows: make([]nRows, n.ids)}
	for i, v := range n.scalars() {
		r.vals[v.id] = a.scalars[worker][i]
	}
	for i, p := range n.arrays {
		r.rows[p.id] = nRows{array: i, off: a.views[i].off + worker*len(a.types), n: a.views[i].shape[0]}
	}
	return r
}

// run interprets the nest and reports whether it fails.
func (r *nRun) run() bool {
	r.stmts(r.n.body)
	return r.failed
}

func (r *nRun) fail() { r.failed = true }

func (r *nRun) read(cell int, private bool) {
	if r.watch != nil {
		r.watch.touch(cell, private, false)
	}
}

func (r *nRun) wrote(cell int, private bool) {
	if r.watch != nil {
		r.watch.touch(cell, private, true)
	}
}

func (r *nRun) int(e *nExpr) int { return int(int64(r.eval(e))) }

func (r *nRun) eval(e *nExpr) ir.Bits {
	switch e.kind {
	case eConst:
		switch e.typ {
		case ir.F64:
			return ir.FromF64(float64(e.val) / 4)
		case ir.F32:
			return ir.FromF32(float32(e.val) / 4)
		}
		return ir.Bits(e.val)
	case eVar:
		if !e.v.loop {
			r.read(e.v.id, true)
		}
		return r.vals[e.v.id]
	case eConv:
		return ir.Convert(e.typ, e.args[0].typ, r.eval(e.args[0]))
	case eLoad:
		c, ok := r.element(e.a, e.args)
		if !ok {
			return 0
		}
		if e.a.len > 0 {
			r.read(r.n.ids+e.a.id*nLocal+c, true)
			return r.locals[e.a.id*nLocal+c]
		}
		if r.need != nil {
			if e.typ == ir.F64 {
				return ir.FromF64(1.5)
			}
			return ir.Bits(r.steps % 5)
		}
		r.read(c, false)
		return r.cells[c]
	case eLen:
		if e.a.base != nil {
			r.read(e.a.id, true)
		}
		return ir.Bits(r.rows[e.a.id].n)
	}
	x, y := r.eval(e.args[0]), r.eval(e.args[1])
	t := e.args[0].typ
	if t == ir.I64 {
		a, b := int64(x), int64(y)
		switch e.op {
		case ir.OpAdd:
			return x + y
		case ir.OpSub:
			return x - y
		case ir.OpMul:
			return x * y
		case ir.OpLt:
			return ir.FromBool(a < b)
		}
	}
	b, fault := e.op.Row().Eval([]ir.Type{t, t}, []ir.Bits{x, y})
	if fault != ir.NoFault {
		r.fail()
	}
	return b
}

// element is the cell of an element, or its place in a local array.
func (r *nRun) element(a *nArray, subs []*nExpr) (int, bool) {
	if a.len > 0 {
		i := r.int(subs[0])
		if i < 0 || i >= a.len {
			r.fail()
		}
		return i, !r.failed
	}
	v, ok := r.inner(a, subs)
	return v.off, ok
}

// inner is what is left of a behind some subscripts.
func (r *nRun) inner(a *nArray, subs []*nExpr) (nRows, bool) {
	v := r.rows[a.id]
	if a.base != nil {
		r.read(a.id, true)
	}
	view := &r.a.views[v.array]
	for _, e := range subs {
		i := r.int(e)
		if r.failed {
			return v, false
		}
		if !r.within(&v, i, i+1) {
			return v, false
		}
		v.off += i * view.stride[v.dim]
		v.dim++
		v.org, v.n = 0, 0
		if v.dim < len(view.shape) {
			v.n = view.shape[v.dim]
		}
	}
	return v, true
}

// within checks that an array has elements from..to-1.
func (r *nRun) within(v *nRows, from, to int) bool {
	if from < 0 || from > to {
		r.fail()
		return false
	}
	if to > v.n {
		if r.need == nil || to > most {
			r.fail()
			return false
		}
		n := &r.need[v.array][v.dim]
		*n = max(*n, v.org+to)
	}
	return true
}

func (r *nRun) set(v *nVar, b ir.Bits) {
	r.vals[v.id] = b
	if !v.loop {
		r.wrote(v.id, true)
	}
}

func (r *nRun) stmts(ss []*nStmt) nControl {
	for _, s := range ss {
		if r.steps++; r.steps > 6000 {
			r.runaway = true
			r.fail()
		}
		c := goOn
		if !r.failed {
			c = r.stmt(s)
		}
		if r.failed {
			return doFail
		}
		if c != goOn {
			return c
		}
	}
	return goOn
}

func (r *nRun) stmt(s *nStmt) nControl {
	switch s.kind {
	case sDecl, sSet:
		r.set(s.v, r.eval(s.e))
	case sStore:
		c, ok := r.element(s.a, s.subs)
		x := r.eval(s.e)
		switch {
		case !ok || r.failed:
		case s.a.len > 0:
			r.locals[s.a.id*nLocal+c] = x
			r.wrote(r.n.ids+s.a.id*nLocal+c, true)
		case r.need == nil:
			r.cells[c] = x
			r.wrote(c, false)
		}
	case sAtomic:
		c, ok := r.element(s.a, s.subs)
		x := r.eval(s.e)
		if ok && !r.failed && r.need == nil {
			r.read(c, false)
			r.cells[c] = ir.Wrap(s.a.elem, r.cells[c]+x)
			r.wrote(c, false)
		}
	case sPrint:
		r.eval(s.e)
		if r.watch != nil {
			r.watch.prints()
		}
	case sIf:
		if r.eval(s.e) != 0 {
			return r.stmts(s.then)
		}
		return r.stmts(s.els)
	case sLoop:
		return r.loop(s)
	case sBreak:
		r.target = s.target
		return doBreak
	case sContinue:
		r.target = s.target
		return doContinue
	case sReturn:
		return doReturn
	case sView:
		if s.a.row != nil {
			if v, ok := r.inner(s.a.base, []*nExpr{s.a.row}); ok {
				r.rows[s.a.id] = v
				r.wrote(s.a.id, true)
			}
			return goOn
		}
		v := r.rows[s.a.base.id]
		from, to := r.int(s.a.from), v.n
		if s.a.to != nil {
			to = r.int(s.a.to)
		}
		if r.need != nil && from > to {
			to = from
		}
		if r.within(&v, from, to) {
			v.off += from * r.a.views[v.array].stride[v.dim]
			v.org, v.n = v.org+from, to-from
			r.rows[s.a.id] = v
			r.wrote(s.a.id, true)
		}
	case sMove:
		v := r.rows[s.a.id]
		r.read(s.a.id, true)
		if r.within(&v, 1, max(1, v.n)) {
			v.off += r.a.views[v.array].stride[v.dim]
			v.org, v.n = v.org+1, max(v.n-1, 0)
			r.rows[s.a.id] = v
			r.wrote(s.a.id, true)
		}
	case sLocal:
		if r.locals == nil {
			r.locals = make([]ir.Bits, r.n.ids*nLocal)
		}
		for i := range s.a.len {
			r.locals[s.a.id*nLocal+i] = 0
			r.wrote(r.n.ids+s.a.id*nLocal+i, true)
		}
	}
	return goOn
}

func (r *nRun) loop(s *nStmt) nControl {
	l := s.loop
	i, n := 0, 0
	switch l.form {
	case lRange:
		n = r.int(l.to)
	case lElements:
		if l.over.base != nil {
			r.read(l.over.id, true)
		}
		n = r.rows[l.over.id].n
	default:
		r.vals[l.v.id] = r.eval(l.from)
	}
	r.watch.begin(s)
	defer r.watch.end(s)
	for !r.failed {
		if r.steps++; r.steps > 6000 {
			r.runaway = true
			r.fail()
			return doFail
		}
		switch l.form {
		case lRange, lElements:
			if i >= n {
				return goOn
			}
			r.vals[l.v.id] = ir.Bits(i)
			i++
		default:
			more := r.eval(cmp(l.cmp, use(l.v), l.to))
			if r.failed || more == 0 {
				return goOn
			}
		}
		r.watch.next(s)
		if l.val != nil {
			x := r.eval(&nExpr{kind: eLoad, typ: l.over.elem, a: l.over, args: []*nExpr{use(l.v)}})
			r.set(l.val, x)
		}
		c := r.stmts(s.then)
		switch {
		case c == doBreak && r.target == l.id:
			return goOn
		case c == doContinue && r.target == l.id, c == goOn:
		default:
			return c
		}
		if l.form == lFor || l.form == lWhile {
			r.vals[l.v.id] = ir.Wrap(l.v.typ, r.vals[l.v.id]+ir.Bits(l.step))
		}
	}
	return doFail
}

// nLoopFacts is what brute force finds out about a loop.
type nLoopFacts struct {
	s      *nStmt
	parent *nLoopFacts
	top    int // number of the statement of the function that holds it

	exits   bool // it may be left early
	regular bool // nobody but itself moves its index
	uniform bool // the number of iterations is the same for all workers and known before they run

	trips              int // at most seen
	empty              bool
	flow, anti, output bool // between elements of arrays
	carried            bool // scalars and local arrays, from iteration to iteration
	last               bool // scalars and local arrays, out of the last iteration

	up        []*nLoopFacts // its ancestors, outermost first, and itself
	combos    []*nCombo     // for each: what iterations of this loop touch, in all iterations of that one together
	it        int32         // present iteration, or -1
	private   []nPrivate
	touched   []int
	stamp     int32
	wantTaken bool
}

// nIters is a set of iterations as far as it matters: none, one, or several.
type nIters struct {
	some, many bool
	first      int32
}

func (s *nIters) add(it int32) {
	s.many = s.many || s.some && s.first != it
	if !s.some {
		s.some, s.first = true, it
	}
}

func (s *nIters) other(it int32) bool { return s.many || s.some && s.first != it }

// apart reports whether no element of s and t differ.
func (s *nIters) apart(t *nIters) bool {
	return s.some && t.some && (s.many || t.many || s.first != t.first)
}

type nTouch struct {
	stamp         int32
	written, read nIters
}

type nCombo struct {
	conflict bool
	stamp    int32
	cells    []nTouch
}

type nPrivate struct {
	stamp            int32
	at               int32 // the iteration of the last write, or -2
	written, exposed nIters
}

func (l *nLoopFacts) independent() bool {
	return !l.exits && l.regular && !l.carried && !l.last && !l.flow && !l.anti && !l.output
}

// nWatch follows a run.
type nWatch struct {
	loops   []*nLoopFacts // in order of the text
	of      map[*nStmt]*nLoopFacts
	active  []*nLoopFacts
	pending [][]*nLoopFacts // by private cell: loops whose last value it holds
	stamp   int32
	// privates is the number of private cells: scalars and elements of local arrays.
	privates int
}

func (w *nWatch) begin(s *nStmt) {
	if w == nil {
		return
	}
	l := w.of[s]
	w.active = append(w.active, l)
	w.stamp++
	l.it, l.stamp, l.touched = -1, w.stamp, l.touched[:0]
	for _, m := range w.loops {
		for k, u := range m.up {
			if u == l {
				m.combos[k].stamp = w.stamp
			}
		}
	}
}

func (w *nWatch) next(s *nStmt) {
	if w != nil {
		w.of[s].it++
	}
}

func (w *nWatch) end(s *nStmt) {
	if w == nil {
		return
	}
	l := w.of[s]
	w.active = w.active[:len(w.active)-1]
	trips := int(l.it) + 1
	l.it = -1
	l.trips = max(l.trips, trips)
	l.empty = l.empty || trips == 0
	for _, c := range l.touched {
		p := &l.private[c]
		l.carried = l.carried || p.exposed.apart(&p.written)
		if p.written.some && w.pending != nil {
			w.pending[c] = append(w.pending[c], l)
		}
	}
}

func (w *nWatch) touch(cell int, private, write bool) {
	if private {
		w.touchPrivate(cell, write)
		return
	}
	if len(w.active) == 0 {
		return
	}
	for _, m := range w.loops {
		for k, u := range m.up {
			if u.it < 0 { // not inside
				break
			}
			c := m.combos[k]
			if cell >= len(c.cells) {
				c.cells = append(c.cells, make([]nTouch, cell+200-len(c.cells))...)
			}
			t := &c.cells[cell]
			if t.stamp != c.stamp {
				*t = nTouch{stamp: c.stamp}
			}
			self := u == m
			if write {
				if t.written.other(m.it) {
					c.conflict = true
					m.output = m.output || self
				}
				if t.read.other(m.it) {
					c.conflict = true
					m.anti = m.anti || self
				}
				t.written.add(m.it)
			} else {
				if t.written.other(m.it) {
					c.conflict = true
					m.flow = m.flow || self
				}
				t.read.add(m.it)
			}
		}
	}
}

// prints notes that a line is printed: lines have an order.
func (w *nWatch) prints() {
	for _, l := range w.active {
		l.carried = true
	}
}

func (w *nWatch) touchPrivate(c int, write bool) {
	if w.pending == nil {
		w.pending = make([][]*nLoopFacts, w.privates)
	}
	if p := w.pending[c]; len(p) > 0 {
		if !write {
			for _, l := range p {
				l.last = true
			}
		}
		w.pending[c] = p[:0]
	}
	for _, l := range w.active {
		if l.private == nil {
			l.private = make([]nPrivate, w.privates)
		}
		p := &l.private[c]
		if p.stamp != l.stamp {
			*p = nPrivate{stamp: l.stamp, at: -2}
			l.touched = append(l.touched, c)
		}
		if write {
			p.at = l.it
			p.written.add(l.it)
		} else if p.at != l.it {
			p.exposed.add(l.it)
		}
	}
}

// nTruth is what is known of a nest.
type nTruth struct {
	n      *nest
	watch  *nWatch
	isSure bool
	loops  []*nLoopFacts
	affine map[int]bool // by statement of the function that has loops
	held   map[int]bool // it depends on what an earlier loop left in variables, or on how that was left
	fine   int          // runs that did not fail
	usable bool
}

// truth finds out by brute force which loops of n are independent.
func (n *nest) truth(args []*nArgs) *nTruth {
	t := &nTruth{n: n, usable: true, watch: &nWatch{of: map[*nStmt]*nLoopFacts{}, privates: n.ids * (1 + nLocal)}}
	for top, s := range n.body {
		t.collect(n, t.watch, []*nStmt{s}, nil, top)
	}
	t.loops = t.watch.loops
	for set, a := range args {
		t.fine += t.try(a)
		if set == extremes && !t.usable {
			args[set], t.usable = nil, true
		}
	}
	t.judge(n)
	return t
}

// sure tries more sizes before it is said that a loop is independent.
func (t *nTruth) sure() {
	if t.isSure {
		return
	}
	t.isSure = true
	for set := nSets; set < nSets+60 && t.usable && slices.ContainsFunc(t.loops, func(l *nLoopFacts) bool { return l.independent() }); set++ {
		t.try(t.n.newArgs(set, false))
	}
	t.judge(t.n)
}

// try follows the workers of one set of arguments and returns how many do not fail.
func (t *nTruth) try(a *nArgs) (fine int) {
	cells, w := slices.Clone(a.data), t.watch
	for worker := range a.workers() {
		for _, l := range w.loops {
			l.it = -1
		}
		for c := range w.pending {
			w.pending[c] = w.pending[c][:0]
		}
		w.active = w.active[:0]
		r := newRun(t.n, a, worker, cells)
		r.watch = w
		if !r.run() {
			fine = 1
		}
		t.usable = t.usable && !r.runaway
	}
	return fine
}

func (t *nTruth) collect(n *nest, w *nWatch, ss []*nStmt, parent *nLoopFacts, top int) {
	for _, s := range ss {
		p := parent
		if s.kind == sLoop {
			l := &nLoopFacts{s: s, parent: parent, top: top, it: -1, regular: true, uniform: n.uniformLoop(s.loop)}
			if parent != nil {
				l.up = slices.Clone(parent.up)
			}
			l.up = append(l.up, l)
			for range l.up {
				l.combos = append(l.combos, &nCombo{})
			}
			inside := map[int]bool{}
			eachStmt(s.then, func(x *nStmt) {
				switch x.kind {
				case sLoop:
					inside[x.loop.id] = true
				case sSet:
					l.regular = l.regular && x.v != s.loop.v
				case sMove:
					l.regular = l.regular && x.a != s.loop.over
				}
			})
			eachStmt(s.then, func(x *nStmt) {
				switch x.kind {
				case sBreak:
					l.exits = l.exits || !inside[x.target]
				case sContinue:
					l.exits = l.exits || !inside[x.target] && x.target != s.loop.id
				case sReturn:
					l.exits = true
				}
			})
			w.loops = append(w.loops, l)
			w.of[s] = l
			p = l
		}
		t.collect(n, w, s.then, p, top)
		t.collect(n, w, s.els, p, top)
	}
}

// uniformExpr reports whether e is the same for all workers and known before they run.
func (n *nest) uniformExpr(e *nExpr) bool {
	switch e.kind {
	case eConst:
		return true
	case eVar:
		if i := slices.Index(n.scalars(), e.v); i >= 0 {
			return n.uniform[i]
		}
		return !e.v.loop && e.v.def != nil && n.uniformExpr(e.v.def)
	case eLoad:
		return false
	case eLen:
		return n.uniformLen(e.a)
	}
	for _, x := range e.args {
		if !n.uniformExpr(x) {
			return false
		}
	}
	return true
}

func (n *nest) uniformLen(a *nArray) bool {
	moved := false
	eachStmt(n.body, func(s *nStmt) { moved = moved || s.kind == sMove && s.a == a })
	switch {
	case moved || a.len > 0:
		return !moved
	case a.from == nil: // a parameter or a row
		return true
	}
	return n.uniformExpr(a.from) && (a.to != nil && n.uniformExpr(a.to) || a.to == nil && n.uniformLen(a.base))
}

func (n *nest) uniformLoop(l *nLoop) bool {
	if l.over != nil {
		return n.uniformLen(l.over)
	}
	for _, e := range l.bounds() {
		if !n.uniformExpr(e) {
			return false
		}
	}
	return true
}

// affineExpr reports whether e is affine in indices of loops and in what is the same for all iterations; varies
// whether there is an index in it.
func (n *nest) affineExpr(e *nExpr) (ok, varies bool) {
	if e.typ != ir.I64 {
		return false, false
	}
	switch e.kind {
	case eConst, eLen:
		return true, false
	case eVar:
		switch {
		case e.v.loop:
			return true, true
		case e.v.def != nil:
			return n.affineExpr(e.v.def)
		}
		return slices.Contains(n.ints, e.v), false
	case eBin:
		ok, v0 := n.affineExpr(e.args[0])
		ok1, v1 := n.affineExpr(e.args[1])
		switch {
		case !ok || !ok1:
			return false, false
		case !v0 && !v1 || e.op == ir.OpAdd || e.op == ir.OpSub:
			return true, v0 || v1
		}
		return e.op == ir.OpMul && (e.args[0].kind == eConst || e.args[1].kind == eConst), true
	}
	return false, false
}

func (n *nest) affineTree(ss []*nStmt) bool {
	all := true
	check := func(e *nExpr) {
		ok, _ := n.affineExpr(e)
		all = all && ok
	}
	view := func(a *nArray) {
		for ; a.base != nil; a = a.base {
			for _, e := range []*nExpr{a.row, a.from, a.to} {
				if e != nil {
					check(e)
				}
			}
		}
	}
	eachAccess(ss, func(a *nArray, subs []*nExpr, _ bool) {
		view(a)
		for _, e := range subs {
			check(e)
		}
	})
	eachStmt(ss, func(s *nStmt) {
		switch s.kind {
		case sLoop:
			all = all && s.loop.v.typ == ir.I64
			for _, e := range s.loop.bounds() {
				check(e)
			}
		case sView:
			view(s.a)
		case sSet:
			all = all && !s.v.loop
		}
	})
	eachStmt(n.body, func(s *nStmt) { all = all && s.kind != sMove })
	return all
}

func hasLoop(ss []*nStmt) (yes bool) {
	eachStmt(ss, func(s *nStmt) { yes = yes || s.kind == sLoop })
	return yes
}

// stores reports whether something is written to an array parameter.
func stores(ss []*nStmt) (yes bool) {
	eachStmt(ss, func(s *nStmt) { yes = yes || s.kind == sStore && s.a.len == 0 || s.kind == sAtomic })
	return yes
}

// apart reports whether elements of arrays that are written are known to be apart from all others.
func (n *nest) apart(ss []*nStmt) bool {
	all := true
	eachAccess(ss, func(a *nArray, _ []*nExpr, write bool) {
		i := slices.Index(n.arrays, a.root())
		if !write || i < 0 {
			return
		}
		all = all && n.distinct[i]
		eachAccess(ss, func(b *nArray, _ []*nExpr, _ bool) {
			j := slices.Index(n.arrays, b.root())
			all = all && (j < 0 || i == j || n.class[i] != n.class[j])
		})
	})
	return all
}

// onlyDecls reports whether what is beside stmt s in ss declares and does nothing else.
func onlyDecls(ss []*nStmt, s *nStmt) bool {
	for _, x := range ss {
		switch {
		case x == s:
		case x.kind == sDecl || x.kind == sView:
		case x.kind == sIf && len(x.then) > 0 && holds(x, s):
			return onlyDecls(x.then, s) && onlyDecls(x.els, s)
		default:
			return false
		}
	}
	return true
}

func holds(x, s *nStmt) (yes bool) {
	eachStmt([]*nStmt{x}, func(y *nStmt) { yes = yes || y == s })
	return yes
}

// judge says which loops an analysis should take.
func (t *nTruth) judge(n *nest) {
	t.affine, t.held = map[int]bool{}, map[int]bool{}
	assigned := map[*nVar]bool{}
	localSet := map[*nArray]bool{}
	over := false
	eachStmt(n.body, func(s *nStmt) { over = over || s.kind == sAtomic || s.kind == sPrint }) // these keep their order
	written := map[*nArray]bool{}
	eachAccess(n.body, func(a *nArray, _ []*nExpr, write bool) {
		if write {
			for i, b := range n.arrays {
				if r := slices.Index(n.arrays, a.root()); r >= 0 && n.class[i] == n.class[r] {
					written[b] = true
				}
			}
		}
	})
	// A condition on what is written has to be looked at before.
	changes := func(e *nExpr) (yes bool) {
		eachExpr(e, func(x *nExpr) { yes = yes || x.kind == eLoad && written[x.a.root()] })
		return yes
	}
	for top, s := range n.body {
		tree := []*nStmt{s}
		if hasLoop(tree) {
			t.affine[top], t.held[top] = n.affineTree(tree), over || s.kind == sIf && changes(s.e)
			eachStmt(tree, func(x *nStmt) {
				for _, e := range x.exprs() {
					eachExpr(e, func(y *nExpr) {
						if y.kind == eVar && assigned[y.v] || y.kind == eLoad && localSet[y.a] {
							t.held[top] = true
						}
					})
				}
			})
		}
		eachStmt(tree, func(x *nStmt) {
			switch {
			case x.kind == sReturn && (hasLoop(tree) || changes(s.e)):
				over = true
			case x.kind == sSet && hasLoop(tree):
				assigned[x.v] = true
			case x.kind == sStore && x.a.len > 0:
				localSet[x.a] = true
			}
		})
	}
	for _, l := range t.loops {
		free := l.independent() && l.uniform && l.trips > 1 && stores(l.s.then) && n.apart(l.s.then)
		var serial *nLoopFacts // the outermost loop around that is not taken
		at := 0
		for i, u := range l.up[:len(l.up)-1] {
			if serial == nil && !u.wantTaken {
				serial, at = u, i
			}
			if serial != nil && u.exits {
				free = false
			}
			free = free && onlyDecls(u.s.then, l.up[i+1].s)
		}
		if serial != nil {
			free = free && !l.combos[at].conflict
		}
		l.wantTaken = free
	}
}
