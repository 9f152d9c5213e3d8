package ir_test

import (
	"fmt"
	"slices"
	"strings"

	"gpunotes/gpukit/internal/ir"
)

// edited returns ss with what f makes of statement number k, counted with outer ones first.
func edited(ss []*nStmt, k *int, f func(*nStmt) []*nStmt) (out []*nStmt) {
	for _, s := range ss {
		*k--
		if *k == -1 {
			out = append(out, f(s)...)
			continue
		}
		then, els := edited(s.then, k, f), edited(s.els, k, f)
		if !slices.Equal(then, s.then) || !slices.Equal(els, s.els) {
			x := *s
			x.then, x.els = then, els
			s = &x
		}
		out = append(out, s)
	}
	return out
}

// simpler are expressions that may stand for e, of its type.
func simpler(e *nExpr) (out []*nExpr) {
	if e.kind == eConst || e.typ == ir.Bool {
		return nil
	}
	if e.kind == eBin {
		for i, a := range e.args {
			if a.typ == e.typ {
				out = append(out, a)
			}
			for _, x := range simpler(a) {
				y := *e
				y.args = slices.Clone(e.args)
				y.args[i] = x
				out = append(out, &y)
			}
		}
	}
	if e.kind != eVar {
		out = append(out, &nExpr{kind: eConst, typ: e.typ, val: 1})
	}
	return out
}

// smaller are nests that are a step simpler than n.
func (n *nest) smaller() (out []*nest) {
	with := func(f func(m *nest)) {
		m := *n
		m.arrays, m.class, m.distinct, m.uniform = slices.Clone(n.arrays), slices.Clone(n.class), slices.Clone(n.distinct), slices.Clone(n.uniform)
		f(&m)
		out = append(out, &m)
	}
	count := 0
	eachStmt(n.body, func(*nStmt) { count++ })
	for k := range count {
		edit := func(f func(*nStmt) []*nStmt) {
			with(func(m *nest) {
				at := k
				m.body = edited(n.body, &at, f)
			})
		}
		edit(func(*nStmt) []*nStmt { return nil })
		at := k
		var s *nStmt
		edited(n.body, &at, func(x *nStmt) []*nStmt { s = x; return nil })
		change := func(f func(x *nStmt)) {
			edit(func(x *nStmt) []*nStmt {
				y := *x
				f(&y)
				return []*nStmt{&y}
			})
		}
		switch s.kind {
		case sIf:
			edit(func(x *nStmt) []*nStmt { return x.then })
			if len(s.els) > 0 {
				edit(func(x *nStmt) []*nStmt { return x.els })
				change(func(x *nStmt) { x.els = nil })
			}
		case sLoop:
			h := *s.loop
			if h.form == lFor || h.form == lWhile {
				if h.step != 1 || h.cmp != ir.OpLt || h.form == lWhile || h.from.kind != eConst || h.from.val != 0 {
					plain := h
					plain.form, plain.step, plain.cmp, plain.from = lFor, 1, ir.OpLt, &nExpr{kind: eConst, typ: h.v.typ}
					if h.cmp == ir.OpGe {
						plain.to = use(n.ints[0])
					}
					change(func(x *nStmt) { x.loop = &plain })
				}
				for _, e := range simpler(h.to) {
					short := h
					short.to = e
					change(func(x *nStmt) { x.loop = &short })
				}
			}
			if h.val != nil {
				bare := h
				bare.val = nil
				change(func(x *nStmt) { x.loop = &bare })
			}
		}
		if s.e != nil && (s.kind != sDecl || s.v.def == nil) {
			for _, e := range simpler(s.e) {
				change(func(x *nStmt) { x.e = e })
			}
		}
		for i := range s.subs {
			for _, e := range simpler(s.subs[i]) {
				change(func(x *nStmt) {
					x.subs = slices.Clone(x.subs)
					x.subs[i] = e
				})
			}
		}
	}
	if slices.Contains(n.distinct, false) {
		with(func(m *nest) {
			for i := range m.distinct {
				m.distinct[i] = true
			}
		})
	}
	if slices.Contains(n.uniform, false) {
		with(func(m *nest) {
			for i := range m.uniform {
				m.uniform[i] = true
			}
		})
	}
	for i := range n.arrays {
		if n.class[i] != i {
			with(func(m *nest) { m.class[i] = i })
		}
		text, _ := n.text()
		if _, body, _ := strings.Cut(text, "{"); !slices.Contains(strings.FieldsFunc(body, func(r rune) bool {
			return !(r == '_' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z')
		}), n.arrays[i].name) && !slices.Contains(n.class[i+1:], i) {
			with(func(m *nest) {
				m.arrays = slices.Delete(m.arrays, i, i+1)
				m.class = slices.Delete(m.class, i, i+1)
				m.distinct = slices.Delete(m.distinct, i, i+1)
				for j, c := range m.class {
					if c > i {
						m.class[j] = c - 1
					}
				}
			})
		}
	}
	return out
}

// shrink makes c smaller, in some tries, as long as keep says that it is still what it is about.
func (c *nCase) shrink(tries int, keep func(*nCase) bool) *nCase {
	for tries > 0 {
		var next *nCase
		for _, n := range c.n.smaller() {
			if tries--; tries < 0 {
				break
			}
			if d, err := newCase(n); err == nil && d != nil && keep(d) {
				next = d
				break
			}
		}
		if next == nil {
			break
		}
		c = next
	}
	return c
}

// faultClass is the kind of a fault: what there is before the numbers.
func faultClass(what string) string {
	what, _, _ = strings.Cut(what, "\n")
	if i := strings.IndexAny(what, "0123456789("); i > 0 {
		return what[:i]
	}
	return what
}

// minimal shows a small nest that has the fault as well.
func (c *nCase) minimal(what string, spread spreader) string {
	d := c.shrink(600, func(d *nCase) bool {
		w := d.fault(spreadOf(d, spread, strings.HasPrefix(what, "crash")))
		return faultClass(w) == faultClass(what)
	})
	sp := spreadOf(d, spread, strings.HasPrefix(what, "crash"))
	set, _ := d.wrong(sp)
	return fmt.Sprintf("%s\n%s%s\nof\n%v\nbecame\n%s", d.fault(sp), d.text, d.describe(set), d.f, printSpread(sp))
}

// describe says what is known of the arguments, and a set of them.
func (c *nCase) describe(set int) string {
	var b strings.Builder
	for i, a := range c.n.arrays {
		fmt.Fprintf(&b, "// %s: ", a.name)
		if c.n.class[i] != i {
			fmt.Fprintf(&b, "may overlap %s; ", c.n.arrays[c.n.class[i]].name)
		}
		if !c.n.distinct[i] {
			b.WriteString("elements may coincide; ")
		}
		v := c.args[set].views[i]
		fmt.Fprintf(&b, "set %d: offset %d, shape %v, strides %v\n", set, v.off, v.shape, v.stride)
	}
	for i, v := range c.n.scalars() {
		if !c.n.uniform[i] {
			fmt.Fprintf(&b, "// %s differs between workers\n", v.name)
		}
	}
	fmt.Fprintf(&b, "// seed %d, set %d: n, m, p, k =", c.n.seed, set)
	for i := range c.n.ints {
		for w := range c.args[set].workers() {
			fmt.Fprintf(&b, " %d", int64(c.args[set].scalars[w][i]))
		}
	}
	b.WriteByte('\n')
	return b.String()
}

// minimalMissed shows a small nest that is missed for the same reason.
func (c *nCase) minimalMissed(why string) string {
	d := c.shrink(200, func(d *nCase) bool {
		w, _, _ := d.missed(spreadOf(d, real, false))
		return w != "" && whyClass(w) == why
	})
	var b strings.Builder
	b.WriteString(d.text)
	b.WriteString(d.describe(0))
	for _, l := range spreadOf(d, real, false).Loops {
		fmt.Fprintf(&b, "// %+v\n", l)
	}
	return b.String()
}
