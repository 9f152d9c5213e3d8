package ir_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"gpunotes/gpukit/internal/ir"
)

// The tester itself is tested: with spreaders that know the truth from brute force: the honest one, which must pass and
// to which nothing that should be taken may be missing, others that leave something out, and SpreadLoops misled.

// bruteForce spreads the first loop of the function, outermost, of which take holds: what stands before it, the loop,
// and what stands behind it are a stage each. Loops with scalars that cannot be handed from stage to stage stay.
func bruteForce(c *nCase, take func(l *nLoopFacts) bool) *ir.Spread {
	sp := &ir.Spread{}
	for _, l := range c.truth.loops {
		taken := false
		if len(sp.Stages) == 0 && l.parent == nil && c.n.body[l.top] == l.s && c.exists(l) && l.uniform && l.regular && take(l) {
			sp.Stages, taken = c.split(l)
		}
		sp.Loops = append(sp.Loops, ir.SpreadLoop{Pos: ir.Pos{File: "nest.go", Line: int32(c.lines[l.s.loop.id])}, Depth: len(l.up) - 1, Taken: taken, Why: "brute force"})
	}
	return sp
}

func loads(s *nStmt) (yes bool) {
	for _, e := range s.exprs() {
		eachExpr(e, func(x *nExpr) { yes = yes || x.kind == eLoad })
	}
	return yes
}

func returns(s *nStmt) (yes bool) {
	eachStmt([]*nStmt{s}, func(x *nStmt) { yes = yes || x.kind == sReturn })
	return yes
}

// split makes the stages in which l is taken.
func (c *nCase) split(l *nLoopFacts) ([]ir.Stage, bool) {
	n := c.n
	before, after := n.body[:l.top], n.body[l.top+1:]
	var decls []*nStmt
	first, behind := len(before) > 0, len(after) > 0
	assigned := map[*nVar]bool{}
	for _, s := range before {
		switch {
		case s.kind == sDecl && !loads(s), s.kind == sView, s.kind == sIf && !loads(s) && len(s.then) == 1 && s.then[0].kind == sReturn:
			decls = append(decls, s)
		case s.kind == sDecl || s.kind == sIf && !hasLoop(s.then) || s.kind == sLocal:
			return nil, false
		}
		if hasLoop([]*nStmt{s}) {
			eachStmt([]*nStmt{s}, func(x *nStmt) { assigned[x.v] = assigned[x.v] || x.kind == sSet })
		}
	}
	uses := false
	eachStmt(before, func(s *nStmt) { uses = uses || hasLoop([]*nStmt{s}) && returns(s) })
	for _, s := range decls {
		for _, e := range s.exprs() {
			uses = uses || !n.uniformExpr(e)
		}
	}
	for _, s := range n.body[l.top:] {
		eachStmt([]*nStmt{s}, func(x *nStmt) {
			for _, e := range x.exprs() {
				eachExpr(e, func(y *nExpr) { uses = uses || y.kind == eVar && assigned[y.v] })
			}
		})
	}
	if uses {
		return nil, false
	}
	ord, it := &nVar{name: "ord", typ: ir.I64}, &nVar{name: "it", typ: ir.I64}
	x := *l.s
	x.then = []*nStmt{
		{kind: sSet, v: ord, e: plus(use(ord), 1)},
		{kind: sIf, e: cmp(ir.OpEq, use(ord), plus(use(it), 1)), then: l.s.then},
	}
	y := *l.s
	h := *l.s.loop
	h.val = nil
	y.loop = &h
	y.then = x.then[:1]
	start := &nStmt{kind: sDecl, v: ord, e: num(0)}
	build := func(body []*nStmt, extra, result, value, tail string) *ir.Func {
		p := &nPrinter{lines: map[int]int{}, label: map[int]bool{}, value: value}
		p.say("package p")
		p.function("func f("+n.params()+extra+")"+result, body, tail)
		prog, err := compileNest(p.String())
		if err != nil {
			panic(fmt.Sprintf("%v\n%s", err, p.String()))
		}
		f := ir.Narrow(ir.Optimize(prog.Func), false)
		if extra != "" {
			f.Params[len(f.Params)-1].Kind = ir.Iteration
		}
		return f
	}
	var out []ir.Stage
	if first {
		out = append(out, ir.Stage{Func: build(before, "", "", "", "")})
	}
	out = append(out, ir.Stage{
		Func:   build(slices.Concat(decls, []*nStmt{start, &x}), ", it int", "", "", ""),
		Counts: []*ir.Func{build(slices.Concat(decls, []*nStmt{start, &y}), "", " int", "0", "ord")},
	})
	if behind {
		out = append(out, ir.Stage{Func: build(slices.Concat(decls, after), "", "", "", "")})
	}
	return out, true
}

// own reports whether all variables that l assigns to are declared in it. Brute force does not see every assignment.
func own(l *nLoopFacts) bool {
	vars, locals := map[*nVar]bool{}, map[*nArray]bool{}
	eachStmt(l.s.then, func(s *nStmt) {
		switch s.kind {
		case sDecl:
			vars[s.v] = true
		case sLocal:
			locals[s.a] = true
		}
	})
	all := true
	eachStmt(l.s.then, func(s *nStmt) {
		switch {
		case s.kind == sSet:
			all = all && vars[s.v]
		case s.kind == sStore && s.a.len > 0:
			all = all && locals[s.a]
		case s.kind == sMove:
			all = false
		}
	})
	return all
}

// honest leaves nothing out.
func honest(c *nCase) *ir.Spread {
	c.truth.sure()
	return bruteForce(c, func(l *nLoopFacts) bool { return l.independent() && own(l) })
}

// planted are spreaders that leave something out.
var planted = map[string]spreader{
	"every loop":            func(c *nCase) *ir.Spread { return bruteForce(c, func(*nLoopFacts) bool { return true }) },
	"no early exits":        leaving(func(l *nLoopFacts) { l.exits = false }),
	"no carried variables":  leaving(func(l *nLoopFacts) { l.carried = false }),
	"no last values":        leaving(func(l *nLoopFacts) { l.last = false }),
	"no flow dependences":   leaving(func(l *nLoopFacts) { l.flow = false }),
	"no anti dependences":   leaving(func(l *nLoopFacts) { l.anti = false }),
	"no output dependences": leaving(func(l *nLoopFacts) { l.output = false }),
	"arrays never overlap":  supposing(func(n *nest) *nest { return n }, true),
	"elements are always apart": supposing(func(n *nest) *nest {
		m := *n
		m.distinct = make([]bool, len(n.distinct))
		for i := range m.distinct {
			m.distinct[i] = true
		}
		return &m
	}, false),
}

// misled are what SpreadLoops says when it is told what is not so, or what becomes of it if a part is lost.
var misled = map[string]spreader{
	"told that no arrays overlap": telling(func(a *ir.Aliasing) {
		a.Class = slices.Clone(a.Class)
		for i := range a.Class {
			a.Class[i] = i
		}
	}),
	"told that elements are apart":   telling(func(a *ir.Aliasing) { a.Distinct = slices.Repeat([]bool{true}, len(a.Distinct)) }),
	"told that scalars are the same": telling(func(a *ir.Aliasing) { a.Uniform = slices.Repeat([]bool{true}, len(a.Uniform)) }),
	"conditions lost": losing(func(sp *ir.Spread) {
		for i := range sp.Stages {
			sp.Stages[i].Conditions = nil
		}
	}),
	"stages in another order": losing(func(sp *ir.Spread) { slices.Reverse(sp.Stages) }),
	"last stage lost":         losing(func(sp *ir.Spread) { sp.Stages = sp.Stages[:max(0, len(sp.Stages)-1)] }),
}

func telling(lie func(*ir.Aliasing)) spreader {
	return func(c *nCase) *ir.Spread {
		a := c.alias
		lie(&a)
		return ir.SpreadLoops(c.f, a)
	}
}

func losing(lose func(*ir.Spread)) spreader {
	return func(c *nCase) *ir.Spread {
		sp := *real(c)
		sp.Stages = slices.Clone(sp.Stages)
		lose(&sp)
		return &sp
	}
}

// leaving ignores something of what is known of loops.
func leaving(out func(l *nLoopFacts)) spreader {
	return func(c *nCase) *ir.Spread {
		return bruteForce(c, func(l *nLoopFacts) bool {
			x := *l
			out(&x)
			return x.independent()
		})
	}
}

// supposing looks at other arguments than there may be.
func supposing(other func(*nest) *nest, apart bool) spreader {
	return func(c *nCase) *ir.Spread {
		n := other(c.n)
		var args []*nArgs
		for set := range nSets {
			args = append(args, n.newArgs(set, apart))
		}
		t := n.truth(args)
		return bruteForce(c, func(l *nLoopFacts) bool {
			for _, m := range t.loops {
				if m.s == l.s {
					return m.independent()
				}
			}
			return false
		})
	}
}

// TestNestTester: the tester accepts what is right and finds each planted fault within some nests.
func TestNestTester(t *testing.T) {
	r := newReport()
	const accepted, most = 60, 800
	left := map[string]spreader{}
	maps.Copy(left, planted)
	maps.Copy(left, misled)
	for seed := uint64(1); seed <= most && (seed <= accepted || len(left) > 0); seed++ {
		c, sp, err := try(seed, honest, r)
		if err != nil {
			t.Fatal(err)
		}
		if c == nil {
			continue
		}
		if seed <= accepted {
			r.add(c, sp)
			if d := c.interpreted(); d != "" {
				t.Fatalf("seed %d: %s\n%s", seed, d, c.text)
			}
			if what := c.fault(sp); what != "" {
				t.Fatalf("seed %d: the honest one: %s", seed, c.minimal(what, honest))
			}
		}
		for name, s := range left {
			if what := c.fault(spreadOf(c, s, false)); what != "" {
				t.Logf("%s: found in nest %d: %s", name, seed, what)
				delete(left, name)
			}
		}
	}
	for name := range left {
		t.Errorf("%s: not found in %d nests", name, most)
	}
	t.Log(r)
}
