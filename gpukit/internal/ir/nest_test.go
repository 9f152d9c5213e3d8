package ir_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"math"
	"math/rand/v2"
	"os"
	"runtime/debug"
	"slices"
	"sort"
	"strconv"
	"strings"
	"testing"

	"gpunotes/gpukit/internal/frontend"
	"gpunotes/gpukit/internal/ir"
)

// nCase is a nest, compiled, with what is known about it.
type nCase struct {
	n     *nest
	text  string
	lines map[int]int
	prog  *frontend.Program
	f     *ir.Func
	alias ir.Aliasing
	args  []*nArgs
	truth *nTruth
}

// spreader is what is under test.
type spreader func(c *nCase) *ir.Spread

func real(c *nCase) *ir.Spread { return ir.SpreadLoops(c.f, c.alias) }

func compileNest(text string) (*frontend.Program, error) {
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, "nest.go", text, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	return frontend.Compile(frontend.Input{Decl: file.Decls[0].(*ast.FuncDecl), Fset: fset, Text: text, Imports: map[string]string{"atomic": "sync/atomic"}})
}

// newCase compiles a nest as the front desk does and finds out the truth about it. It is nil for a nest that runs too
// long.
func newCase(n *nest) (*nCase, error) {
	c := &nCase{n: n}
	c.text, c.lines = n.text()
	var err error
	if c.prog, err = compileNest(c.text); err != nil {
		return nil, fmt.Errorf("%v\n%s", err, c.text)
	}
	for set := range nSets {
		c.args = append(c.args, n.newArgs(set, false))
	}
	c.truth = n.truth(c.args)
	if !c.truth.usable {
		return nil, nil
	}
	c.f = ir.Narrow(ir.Optimize(c.prog.Func), false)
	c.alias.Uniform = make([]bool, len(c.f.Params))
	for m := range c.f.Mems {
		c.alias.Class = append(c.alias.Class, m)
		c.alias.Distinct = append(c.alias.Distinct, true)
	}
	mem := func(i int) ir.Mem { return c.prog.Params[i].Mem }
	for i := range n.arrays {
		c.alias.Class[mem(i)] = int(mem(n.class[i]))
		c.alias.Distinct[mem(i)] = n.distinct[i]
	}
	for i := range n.scalars() {
		c.alias.Uniform[c.prog.Params[len(n.arrays)+i].First] = n.uniform[i]
	}
	return c, nil
}

// bits are the arguments of a worker.
func (c *nCase) bits(a *nArgs, worker int) (out []ir.Bits) {
	for _, v := range a.views {
		out = append(out, ir.Bits(v.off+worker*len(a.types)))
		for _, x := range v.shape {
			out = append(out, ir.Bits(x))
		}
		for _, x := range v.stride {
			out = append(out, ir.Bits(x))
		}
	}
	return append(out, a.scalars[worker]...)
}

// nMemory is the memory of a run: it knows who touched what. If no worker of a stage touches what another one writes,
// each of them does the same in any order and interleaving, instruction by instruction.
type nMemory struct {
	cells   []ir.Bits
	watch   bool
	task    int32
	written []int32 // by cell: task+1 of who did, 0 for nobody
	read    []int32 // likewise, or -1 for several
	wrong   string
}

func (m *nMemory) stage() { clear(m.written); clear(m.read) }

// nWindow is the memory of one array parameter.
type nWindow struct {
	*nMemory
	inside []bool
}

func (w *nWindow) check(i int, what string) bool {
	if i < 0 || i >= len(w.cells) || !w.inside[i] {
		if w.wrong == "" {
			w.wrong = fmt.Sprintf("a %s outside of the array", what)
		}
		return false
	}
	return true
}

// Load implements ir.Storage.
func (w *nWindow) Load(i int) ir.Bits {
	if !w.check(i, "read") {
		return 0
	}
	if w.watch {
		if by := w.written[i]; by != 0 && by != w.task+1 && w.wrong == "" {
			w.wrong = fmt.Sprintf("race: worker %d reads what %d writes in the same stage", w.task, by-1)
		}
		switch w.read[i] {
		case 0, w.task + 1:
			w.read[i] = w.task + 1
		default:
			w.read[i] = -1
		}
	}
	return w.cells[i]
}

// Store implements ir.Storage.
func (w *nWindow) Store(i int, b ir.Bits) {
	if !w.check(i, "write") {
		return
	}
	if w.watch {
		if by := w.written[i]; by != 0 && by != w.task+1 && w.wrong == "" {
			w.wrong = fmt.Sprintf("race: workers %d and %d write one element in the same stage", by-1, w.task)
		}
		if by := w.read[i]; by != 0 && by != w.task+1 && w.wrong == "" {
			w.wrong = fmt.Sprintf("race: worker %d writes what another one reads in the same stage", w.task)
		}
		w.written[i] = w.task + 1
	}
	w.cells[i] = b
}

// windows gives every Global memory of f its part of m.
func (c *nCase) windows(a *nArgs, m *nMemory) (out []ir.Storage) {
	for _, v := range a.views {
		w := &nWindow{m, make([]bool, len(m.cells))}
		var mark func(at, d int)
		mark = func(at, d int) {
			if d == len(v.shape) {
				w.inside[at] = true
				return
			}
			for i := range v.shape[d] {
				mark(at+i*v.stride[d], d+1)
			}
		}
		for worker := range a.workers() {
			mark(v.off+worker*len(a.types), 0)
		}
		out = append(out, w)
	}
	return out
}

// nRunner runs stages of one case on one set of arguments.
type nRunner struct {
	c    *nCase
	a    *nArgs
	bits [][]ir.Bits
	m    *nMemory
	mems []ir.Storage
	eval ir.Evaluator
	said []string // printed
}

func newRunner(c *nCase, a *nArgs) *nRunner {
	r := &nRunner{c: c, a: a, m: &nMemory{cells: slices.Clone(a.data), written: make([]int32, len(a.data)), read: make([]int32, len(a.data))}}
	r.mems = c.windows(a, r.m)
	r.eval.Steps = 1e6
	r.eval.Print = func(line string) { r.said = append(r.said, line) }
	for w := range a.workers() {
		r.bits = append(r.bits, c.bits(a, w))
	}
	return r
}

func (r *nRunner) reset() {
	copy(r.m.cells, r.a.data)
	r.m.watch, r.m.wrong, r.said = false, "", nil
}

// nSpace is the index space of a stage: the number of iterations of each loop, and their product. A count may fail where
// the function does.
type nSpace struct {
	counts []int
	total  int
	failed bool
	wrong  string
}

// spaces are the index spaces of the stages.
func (r *nRunner) spaces(sp *ir.Spread) (out []nSpace) {
	e := ir.Evaluator{Steps: 1 << 16}
	for i := range sp.Stages {
		s := nSpace{total: 1}
		for k, f := range sp.Stages[i].Counts {
			mems := r.mems
			if globals(f) == 0 {
				mems = nil
			}
			res, err := e.RunWorker(f, mems, r.bits[0])
			if err != nil {
				s.failed = true
				break
			}
			n := int64(res[0])
			switch {
			case n < 0:
				s.wrong = fmt.Sprintf("count %d is %d", k, n)
			case n > math.MaxInt64/4/int64(max(1, s.total)): // math.MaxInt64 says so, and nothing else can be as large
				s.wrong = itself
			default:
				s.total *= int(n)
			}
			s.counts = append(s.counts, int(n))
		}
		out = append(out, s)
	}
	return out
}

const endless = "it does not end"

// itself says that the function is to be run instead of the stages; there is nothing to compare then.
const itself = "the function itself"

// many is as many workers of a stage as are run; more are there only where the function fails, and then the ones that
// fail may be left out.
const many = 2000

func cut(spaces []nSpace, workers int) bool {
	return slices.ContainsFunc(spaces, func(s nSpace) bool { return s.total*workers > many })
}

// run runs the stages, the workers of each in the order that order gives, and reports whether one failed.
func (r *nRunner) run(sp *ir.Spread, spaces []nSpace, checked bool, order func(n int) []int) (failed bool, wrong string) {
	for _, s := range spaces {
		if s.wrong != "" {
			return false, s.wrong
		}
	}
	for k := range sp.Stages {
		s := &sp.Stages[k]
		f := s.Func
		holds := true
		for _, b := range r.bits {
			for _, cond := range s.Conditions {
				holds = holds && cond.Holds(b)
			}
		}
		if checked || !holds {
			f = s.Checked()
		}
		if spaces[k].failed {
			return true, ""
		}
		counts, total := spaces[k].counts, spaces[k].total
		r.m.stage()
		workers := len(r.bits)
		for _, task := range order(min(total*workers, many)) {
			r.m.task = int32(task)
			it := task / workers
			args := slices.Clone(r.bits[task%workers])
			its := make([]ir.Bits, len(counts))
			for d := len(counts) - 1; d >= 0; d-- {
				its[d] = ir.Bits(it % counts[d])
				it /= counts[d]
			}
			if _, err := r.eval.RunWorker(f, r.mems, append(args, its...)); err != nil {
				if strings.Contains(err.Error(), ir.StepBudget.String()) {
					return true, endless
				}
				return true, r.m.wrong
			}
			if r.m.wrong != "" {
				return false, r.m.wrong
			}
		}
	}
	return false, r.m.wrong
}

func (r *nRunner) original() (failed bool) {
	r.reset()
	for _, b := range r.bits {
		if _, err := r.eval.RunWorker(r.c.f, r.mems, b); err != nil {
			return true
		}
	}
	return false
}

// differ reports the first cell that differs.
func (a *nArgs) differ(got, want []ir.Bits) string {
	for i := range want {
		t := a.types[i%len(a.types)]
		if t == ir.Invalid {
			continue
		}
		if ir.Canonical(t, got[i]) != ir.Canonical(t, want[i]) {
			return fmt.Sprintf("cell %d is %s, should be %s", i, ir.FormatBits(t, got[i]), ir.FormatBits(t, want[i]))
		}
	}
	return ""
}

func forward(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}

func backward(n int) []int {
	out := forward(n)
	slices.Reverse(out)
	return out
}

// wrong looks for a fault of what a spreader says: the set of arguments that shows it and what is wrong, or "".
func (c *nCase) wrong(sp *ir.Spread) (set int, what string) {
	defer func() {
		if r := recover(); r != nil {
			what = fmt.Sprint("crash: ", r)
		}
	}()
	if what := c.form(sp); what != "" {
		return 0, what
	}
	if len(sp.Stages) == 0 {
		return 0, ""
	}
	conditions := false
	for _, s := range sp.Stages {
		conditions = conditions || len(s.Conditions) > 0
	}
	rnd := rand.New(rand.NewPCG(c.n.seed, 9))
	shuffled := func(n int) []int { return rnd.Perm(n) }
	for set, a := range c.args {
		if a == nil {
			continue
		}
		r := newRunner(c, a)
		fails := r.original()
		want, said := slices.Clone(r.m.cells), slices.Sorted(slices.Values(r.said))
		spaces := r.spaces(sp)
		for k, order := range []func(int) []int{forward, backward, shuffled, shuffled, shuffled} {
			for _, checked := range []bool{false, true} {
				if checked && !conditions {
					continue
				}
				r.reset()
				r.m.watch = k == 0 && !fails
				failed, what := r.run(sp, spaces, checked, order)
				switch {
				case what == itself, what == endless && fails:
					what = ""
				case what != "":
				case failed && !fails:
					what = "it fails, the original does not"
				case !failed && fails && cut(spaces, a.workers()):
				case !failed && fails:
					what = "it does not fail, the original does"
				case !fails:
					what = a.differ(r.m.cells, want)
					if !slices.Equal(slices.Sorted(slices.Values(r.said)), said) {
						what = "it prints other lines"
					}
				}
				if what != "" {
					return set, fmt.Sprintf("%s (set %d, order %d, checked %v)", what, set, k, checked)
				}
			}
		}
	}
	return 0, ""
}

// globals is the number of Global memories.
func globals(f *ir.Func) (n int) {
	for _, m := range f.Mems {
		if m.Space == ir.Global {
			n++
		}
	}
	return n
}

// form looks for what is not well formed.
func (c *nCase) form(sp *ir.Spread) string {
	if sp == nil {
		return "nil"
	}
	uniform := func(i int) bool {
		p := c.f.Params[i]
		return p.Kind.Uniform() || p.Kind == ir.Scalar && c.alias.Uniform[i]
	}
	for k := range sp.Stages {
		s := &sp.Stages[k]
		for _, f := range append([]*ir.Func{s.Func, s.Checked()}, s.Counts...) {
			if f == nil {
				if len(s.Conditions) > 0 {
					return "conditions, and no checked function"
				}
				continue
			}
			if err := ir.Verify(f); err != nil {
				return err.Error()
			}
			n := len(c.f.Params)
			if len(f.Params) < n {
				return "too few parameters"
			}
			for i, p := range f.Params[:n] {
				if q := c.f.Params[i]; p.Kind != q.Kind || p.Mem != q.Mem || p.Dim != q.Dim || p.Name != q.Name {
					return fmt.Sprintf("parameter %d of stage %d is another one", i, k)
				}
			}
		}
		for _, f := range []*ir.Func{s.Func, s.Checked()} {
			if f == nil {
				continue
			}
			if len(f.Results) > 0 || len(f.Params) != len(c.f.Params)+len(s.Counts) || globals(f) != globals(c.f) {
				return fmt.Sprintf("stage %d has other results, parameters or memories", k)
			}
			for i, p := range f.Params[len(c.f.Params):] {
				if p.Kind != ir.Iteration || p.Dim != i || f.Types[p.Value] != ir.I64 {
					return fmt.Sprintf("parameter %s of stage %d is not the number of iteration %d", p.Name, k, i)
				}
			}
		}
		for _, f := range s.Counts {
			if len(f.Params) != len(c.f.Params) || !slices.Equal(f.Results, []ir.Type{ir.I64}) {
				return "a count with other parameters or results"
			}
			used := map[ir.Value]bool{}
			reads := false
			ir.Walk(f.Body, func(in *ir.Instr) {
				reads = reads || in.Op == ir.OpLoad || in.Op == ir.OpStore
				for _, a := range in.Args {
					used[a] = true
				}
			})
			if reads {
				return "a count reads memory"
			}
			for i, p := range f.Params {
				if used[p.Value] && !uniform(i) {
					return fmt.Sprintf("a count depends on %s, which is not the same for all workers", p.Name)
				}
			}
		}
		for _, cond := range s.Conditions {
			for _, i := range []int{cond.A, cond.B} {
				if i != ir.None && (i >= len(c.f.Params) || !uniform(i) && c.f.Params[i].Kind != ir.Scalar) {
					return "a condition depends on what is not the same for all workers"
				}
			}
		}
	}
	return ""
}

// loopOf finds what is said of a loop.
func (c *nCase) loopOf(sp *ir.Spread, l *nLoopFacts) *ir.SpreadLoop {
	line := int32(c.lines[l.s.loop.id])
	for i := range sp.Loops {
		if sp.Loops[i].Pos.Line == line {
			return &sp.Loops[i]
		}
	}
	return nil
}

// exists reports whether a loop is still there after optimisation.
func (c *nCase) exists(l *nLoopFacts) (yes bool) {
	line := int32(c.lines[l.s.loop.id])
	ir.Walk(c.f.Body, func(in *ir.Instr) { yes = yes || in.Op == ir.OpLoop && in.Pos.Line == line })
	return yes
}

// interpreted compares the interpreter of nests with the reference evaluator: the truth is about the same function.
func (c *nCase) interpreted() string {
	for set, a := range c.args {
		if a == nil {
			continue
		}
		r := newRunner(c, a)
		fails := r.original()
		cells := slices.Clone(a.data)
		failed, endless := false, false
		for w := range a.workers() {
			r := newRun(c.n, a, w, cells)
			failed, endless = r.run(), r.runaway
			if failed {
				break
			}
		}
		if endless { // longer than the interpreter goes; Optimize may have dropped a loop without effect
			continue
		}
		if failed != fails {
			return fmt.Sprintf("set %d: the interpreter fails %v, the evaluator %v", set, failed, fails)
		}
		if !fails {
			if d := a.differ(cells, r.m.cells); d != "" {
				return fmt.Sprintf("set %d: of the interpreter, %s", set, d)
			}
		}
		if r.m.wrong != "" {
			return fmt.Sprintf("set %d: %s", set, r.m.wrong)
		}
	}
	return ""
}

func printSpread(sp *ir.Spread) string {
	var b strings.Builder
	for _, l := range sp.Loops {
		fmt.Fprintf(&b, "%+v\n", l)
	}
	for i, s := range sp.Stages {
		fmt.Fprintf(&b, "stage %d, steps %v, conditions:", i, s.Steps)
		for _, c := range s.Conditions {
			fmt.Fprintf(&b, " %s;", c.String(s.Func))
		}
		fmt.Fprintf(&b, "\n%v", s.Func)
		for k, f := range s.Counts {
			fmt.Fprintf(&b, "count %d\n%v", k, f)
		}
		if s.Checked() != s.Func {
			fmt.Fprintf(&b, "checked\n%v", s.Checked())
		}
	}
	return b.String()
}

// features says what there is in a nest.
func (c *nCase) features() map[string]bool {
	n, has := c.n, map[string]bool{}
	depth := 0
	tops := 0
	for _, l := range c.truth.loops {
		depth = max(depth, len(l.up))
		h := l.s.loop
		if l.parent == nil {
			tops++
		}
		has["dependent loop"] = has["dependent loop"] || !l.independent()
		has["empty loop"] = has["empty loop"] || l.empty
		has["strided loop"] = has["strided loop"] || h.step > 1 || h.step < -1
		has["downward loop"] = has["downward loop"] || h.step < 0
		has["carried scalar"] = has["carried scalar"] || l.carried
		has["last value"] = has["last value"] || l.last
		has["early exit"] = has["early exit"] || l.exits
		has["range loop"] = has["range loop"] || h.form == lRange || h.form == lElements
		has["while loop"] = has["while loop"] || h.form == lWhile
		has["narrow index"] = has["narrow index"] || h.v != nil && h.v.typ != ir.I64
		has["index moved in the body"] = has["index moved in the body"] || !l.regular
		has["flow dependence"] = has["flow dependence"] || l.flow
		has["anti dependence"] = has["anti dependence"] || l.anti
		has["output dependence"] = has["output dependence"] || l.output
		for _, e := range h.bounds() {
			eachExpr(e, func(x *nExpr) {
				has["triangular loop"] = has["triangular loop"] || x.kind == eVar && x.v.loop
				has["bound from memory"] = has["bound from memory"] || x.kind == eLoad
			})
		}
	}
	has[fmt.Sprint("depth ", depth)] = true
	has["several loops in sequence"] = tops > 1
	has["no loop independent"] = !slices.ContainsFunc(c.truth.loops, func(l *nLoopFacts) bool { return l.independent() && l.trips > 1 })
	for i := range n.arrays {
		has["aliased"] = has["aliased"] || n.class[i] != i
		has["elements not distinct"] = has["elements not distinct"] || !n.distinct[i]
		has[fmt.Sprint("rank ", n.arrays[i].rank)] = true
		has["element "+n.arrays[i].elem.String()] = true
	}
	has["scalar not uniform"] = slices.Contains(n.uniform, false)
	loaded, stored := map[*nArray]bool{}, map[*nArray]bool{}
	indices := func(e *nExpr) (vs []*nVar) {
		eachExpr(e, func(x *nExpr) {
			if x.kind == eVar && x.v.loop {
				vs = append(vs, x.v)
			}
		})
		return vs
	}
	eachAccess(n.body, func(a *nArray, subs []*nExpr, write bool) {
		if write {
			stored[a.root()] = true
		} else {
			loaded[a.root()] = true
		}
		has["local array"] = has["local array"] || a.len > 0
		before := ""
		for _, e := range subs {
			vs := indices(e)
			if len(vs) > 0 {
				has["diagonal"] = has["diagonal"] || vs[0].name == before
				has["transposed"] = has["transposed"] || before != "" && vs[0].name < before && len(before) == 1
				before = vs[0].name
			}
			has["coupled subscript"] = has["coupled subscript"] || len(vs) > 1
			ok, varies := n.affineExpr(e)
			has["subscript not affine"] = has["subscript not affine"] || !ok
			if ok && varies && e.kind == eBin && (e.op == ir.OpAdd || e.op == ir.OpSub) {
				has["stencil"] = has["stencil"] || e.args[1].kind == eConst
				has["symbolic shift"] = has["symbolic shift"] || e.args[1].kind == eVar && !e.args[1].v.loop
			}
			if ok && varies && e.kind == eBin && e.op == ir.OpMul {
				has["scaled subscript"] = true
			}
			eachExpr(e, func(x *nExpr) { has["indirect index"] = has["indirect index"] || x.kind == eLoad })
		}
	})
	for a := range stored {
		has["read and written array"] = has["read and written array"] || loaded[a]
	}
	for _, s := range n.body {
		has["loop in an if"] = has["loop in an if"] || s.kind == sIf && hasLoop(s.then)
	}
	eachStmt(n.body, func(s *nStmt) {
		has["conditional store"] = has["conditional store"] || s.kind == sIf && effects(s.then)
		has["row view"] = has["row view"] || s.kind == sView && s.a.row != nil
		has["part of an array"] = has["part of an array"] || s.kind == sView && s.a.from != nil
		has["moving slice"] = has["moving slice"] || s.kind == sMove
		has["atomic operation"] = has["atomic operation"] || s.kind == sAtomic
		has["println"] = has["println"] || s.kind == sPrint
		has["continue"] = has["continue"] || s.kind == sContinue
		for _, e := range s.exprs() {
			eachExpr(e, func(x *nExpr) {
				has["division"] = has["division"] || x.kind == eBin && (x.op == ir.OpDiv || x.op == ir.OpRem) && x.args[1].kind != eConst
			})
		}
	})
	has["fails on some arguments"] = c.truth.fine < len(c.args)
	return has
}

// nReport adds up what was found.
type nReport struct {
	nests, dropped     int
	runs, fine         int // of nests on arguments; without a fault
	features           map[string]int
	claims             int // loops taken
	claimed            int // nests with a loop taken
	loops, want, taken int // loops; those that should be taken; of these, taken
	affine, reached    int // loops of functions that are affine and hold a loop that should be taken; those in which one was taken
	benign             int // taken though brute force finds a dependence, yet without a race
	why                map[string]int
	example            map[string]*nCase
	wrong              map[string]int // by kind
}

func newReport() *nReport {
	return &nReport{features: map[string]int{}, why: map[string]int{}, wrong: map[string]int{}, example: map[string]*nCase{}}
}

// missed says for which reason a loop was not taken, among the affine ones that should be: "" if there is none.
func (c *nCase) missed(sp *ir.Spread) (why string, affine, reached int) {
	if why, affine, reached = c.missing(sp); why != "" && !c.truth.isSure {
		c.truth.sure()
		return c.missing(sp)
	}
	return why, affine, reached
}

// missing is missed as far as the truth is known.
func (c *nCase) missing(sp *ir.Spread) (why string, affine, reached int) {
	for top := range c.n.body {
		if !c.truth.affine[top] || c.truth.held[top] {
			continue
		}
		var want, took bool
		reason := ""
		for _, l := range c.truth.loops {
			if l.top != top || !c.exists(l) {
				continue
			}
			s := c.loopOf(sp, l)
			took = took || s != nil && s.Taken
			if l.wantTaken && !want {
				want = true
				if reason = "nothing is said"; s != nil {
					reason = s.Why
				}
			}
		}
		if want {
			affine++
			if took {
				reached++
			} else {
				why = reason
			}
		}
	}
	return why, affine, reached
}

// whyClass is a reason without what differs from loop to loop.
func whyClass(s string) string {
	var b strings.Builder
	for _, w := range strings.Fields(s) {
		if strings.ContainsAny(w, "0123456789:[]") || len(strings.Trim(w, ",.;")) == 1 && w != "a" {
			w = "#"
		}
		b.WriteString(" " + w)
	}
	return strings.TrimSpace(b.String())
}

func (r *nReport) add(c *nCase, sp *ir.Spread) {
	r.nests++
	r.runs += len(c.args)
	r.fine += c.truth.fine
	for f, yes := range c.features() {
		if yes {
			r.features[f]++
		}
	}
	any := false
	for _, l := range sp.Loops {
		if l.Taken {
			r.claims++
			any = true
		}
	}
	if any {
		r.claimed++
	}
	why, affine, reached := c.missed(sp)
	for _, l := range c.truth.loops {
		if !c.exists(l) {
			continue
		}
		r.loops++
		s := c.loopOf(sp, l)
		took := s != nil && s.Taken
		if l.wantTaken && c.truth.affine[l.top] && !c.truth.held[l.top] {
			r.want++
			if took {
				r.taken++
			}
		}
		if took && !l.independent() {
			r.benign++
			for why, is := range map[string]bool{"left early": l.exits, "index moved": !l.regular, "carried": l.carried, "last value": l.last, "flow": l.flow, "anti": l.anti, "output": l.output} {
				if is {
					r.features["  taken though: "+why]++
				}
			}
		}
	}
	r.affine += affine
	r.reached += reached
	if why != "" {
		w := whyClass(why)
		r.why[w]++
		if r.example[w] == nil {
			r.example[w] = c
		}
	}
}

func sum(counts map[string]int) (n int) {
	for _, k := range counts {
		n += k
	}
	return n
}

func percent(a, b int) string { return fmt.Sprintf("%.1f %%", 100*float64(a)/float64(max(b, 1))) }

func (r *nReport) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d nests (%d more ran too long), %d loops, %s of the runs do not fail, %d wrong\n", r.nests, r.dropped, r.loops, percent(r.fine, r.runs), sum(r.wrong))
	fmt.Fprintf(&b, "%d loops taken in %d nests; %d of them where iterations touch the same variables\n", r.claims, r.claimed, r.benign)
	fmt.Fprintf(&b, "affine nests with a loop that could be taken: %d, taken %d (%s); such loops: %d, taken %d (%s)\n", r.affine, r.reached, percent(r.reached, r.affine),
		r.want, r.taken, percent(r.taken, r.want))
	var names []string
	for f := range r.features {
		names = append(names, f)
	}
	sort.Strings(names)
	for _, f := range names {
		fmt.Fprintf(&b, "\t%-28s %s\n", f, percent(r.features[f], r.nests))
	}
	return b.String()
}

// reasons are the most frequent reasons for missed nests.
func (r *nReport) reasons(most int) (names []string) {
	for w := range r.why {
		names = append(names, w)
	}
	sort.Slice(names, func(i, j int) bool {
		if r.why[names[i]] != r.why[names[j]] {
			return r.why[names[i]] > r.why[names[j]]
		}
		return names[i] < names[j]
	})
	return names[:min(most, len(names))]
}

// try runs one nest. It is nil for one that is dropped.
func try(seed uint64, spread spreader, r *nReport) (c *nCase, sp *ir.Spread, err error) {
	c, err = newCase(newNest(seed))
	if err != nil {
		return nil, nil, fmt.Errorf("seed %d: %w", seed, err)
	}
	if c == nil {
		r.dropped++
		return nil, nil, nil
	}
	return c, spreadOf(c, spread, seed%8 == 0), nil
}

// spreadOf runs a spreader. What panics, or says different things in two runs, takes nothing and says so in Why.
func spreadOf(c *nCase, spread spreader, twice bool) (sp *ir.Spread) {
	defer func() {
		if r := recover(); r != nil {
			sp = &ir.Spread{Loops: []ir.SpreadLoop{{Why: fmt.Sprintf("crash: %v\n%s", r, debug.Stack())}}}
		}
	}()
	before := ""
	if twice {
		before = c.f.String()
	}
	sp = spread(c)
	if twice {
		if c.f.String() != before {
			panic("the function itself was changed")
		}
		if a, b := printSpread(sp), printSpread(spread(c)); a != b {
			panic("two runs differ:\n" + a + "\n" + b)
		}
	}
	return sp
}

// fault is what is wrong with sp, or "".
func (c *nCase) fault(sp *ir.Spread) string {
	for _, l := range sp.Loops {
		if strings.HasPrefix(l.Why, "crash: ") {
			return l.Why
		}
	}
	_, what := c.wrong(sp)
	return what
}

func env(t testing.TB, name string, otherwise int) int {
	s := os.Getenv(name)
	if s == "" {
		return otherwise
	}
	x, err := strconv.Atoi(s)
	if err != nil {
		t.Fatalf("%s is not a number: %v", name, err)
	}
	return x
}

// TestSpreadNests runs SpreadLoops on random nests of loops: whatever it takes must do what the function does, bit for
// bit and fault for fault, in any order of workers and without two of them meeting at one element; and it must take
// nearly all of what brute force shows to be independent. NESTS and SEED say how many nests, and which; then what is
// missed is shown as well.
func TestSpreadNests(t *testing.T) {
	count, first := env(t, "NESTS", 500), uint64(env(t, "SEED", 1))
	r := newReport()
	for seed := first; r.nests < count; seed++ {
		c, sp, err := try(seed, real, r)
		if err != nil {
			t.Fatal(err)
		}
		if c == nil {
			continue
		}
		if seed%16 == 0 {
			if d := c.interpreted(); d != "" {
				t.Fatalf("seed %d: %s\n%s", seed, d, c.text)
			}
		}
		r.add(c, sp)
		if what := c.fault(sp); what != "" {
			if r.wrong[faultClass(what)]++; r.wrong[faultClass(what)] == 1 {
				t.Errorf("seed %d: %s", seed, c.minimal(what, real))
			}
		}
	}
	for what, n := range r.wrong {
		t.Errorf("%d times: %s", n, what)
	}
	if count >= 300 && (100*r.reached < 90*r.affine || 100*r.taken < 90*r.want) {
		t.Errorf("less than 90 %% of the independent loops are taken")
	}
	if count >= 300 && 100*r.features["dependent loop"] < 40*r.nests {
		t.Errorf("less than 40 %% of the nests have a dependent loop")
	}
	t.Log(r)
	if os.Getenv("NESTS") == "" {
		return
	}
	for i, w := range r.reasons(16) {
		if i >= 6 {
			t.Logf("%d times: %s", r.why[w], w)
			continue
		}
		t.Logf("%d times: %s, as in\n%s", r.why[w], w, r.example[w].minimalMissed(w))
	}
}
