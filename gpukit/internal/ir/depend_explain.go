package ir

import (
	"fmt"
	"strings"
)

// explain says in the user's words that element y of a later iteration of l may be element x of an earlier one.
func (n *nest) explain(l *loop, x, y *access) *dependence {
	d := &dependence{source: x.in, sink: y.in, stays: n.elementStays(l, x) && n.elementStays(l, y)}
	what := [2]string{"read", "written"}
	did := func(a *access) string {
		if a.write {
			return what[1]
		}
		return what[0]
	}
	if x == y && d.stays {
		d.why = fmt.Sprintf("every iteration writes element %s", n.element(x.in))
		return d
	}
	if d.stays && x.write && !y.write {
		d.why = fmt.Sprintf("element %s, written in one iteration, is read in the next", n.element(y.in))
		return d
	}
	when := "in one iteration"
	if k, ok := n.distance(l, x, y); ok && k > 0 {
		switch {
		case k == 1:
			when = "in the iteration before"
		case k > 1:
			when = fmt.Sprintf("%d iterations before", k)
		}
		d.why = fmt.Sprintf("element %s, %s %s, is %s here", n.element(y.in), did(x), when, did(y))
		return d
	}
	d.why = fmt.Sprintf("element %s, %s in one iteration, may be element %s, %s in a later one", n.element(x.in), did(x), n.element(y.in), did(y))
	return d
}

// elementStays reports whether a is one element in all iterations of l.
func (n *nest) elementStays(l *loop, a *access) bool {
	for _, s := range a.subs {
		if n.polyDependsOn(s)&(1<<l.id) != 0 {
			return false
		}
	}
	return true
}

// distance is the number of iterations of l from x to y, if it is a number.
func (n *nest) distance(l *loop, x, y *access) (int64, bool) {
	found, k := false, int64(0)
	for d := range x.subs {
		c, ok := x.subs[d].plus(y.subs[d], -1).constant()
		if !ok {
			return 0, false
		}
		f := x.subs[d].factor(l.iter)
		switch {
		case f == 0 && c != 0:
			return 0, false
		case f != 0:
			// f*i + rest = f*(i+k) + rest - c
			if c%f != 0 || found && c/f != k {
				return 0, false
			}
			found, k = true, c/f
		}
	}
	return k, found
}

// element writes the element that a load or store is about as Go does, with the counters of loops called i, j, k from
// outside in.
func (n *nest) element(in *Instr) string {
	name := n.f.Mems[in.Mem].Name
	x := n.arrays[in.Mem]
	if x == nil {
		return name + "[...]"
	}
	subs := make([]poly, len(x.stride))
terms:
	for _, t := range n.raw(in.Args[0]) {
		for d, s := range x.stride {
			if t.m.has(s) {
				subs[d] = subs[d].plus(poly{{t.m.without(s), t.c}}, 1)
				continue terms
			}
		}
	}
	var b strings.Builder
	b.WriteString(name)
	for _, s := range subs {
		fmt.Fprintf(&b, "[%s]", n.words(s))
	}
	return b.String()
}

func (n *nest) words(p poly) string {
	if len(p) == 0 {
		return "0"
	}
	var b strings.Builder
	write := func(t polyTerm) bool {
		c := t.c
		switch {
		case c < 0:
			b.WriteByte('-')
			c = -c
		case b.Len() > 0:
			b.WriteByte('+')
		}
		sep := ""
		if c != 1 || t.m == unit {
			fmt.Fprint(&b, c)
			sep = "*"
		}
		for _, v := range t.m {
			if v == noValue {
				continue
			}
			w, ok := n.word(v)
			if !ok {
				return false
			}
			b.WriteString(sep + w)
			sep = "*"
		}
		return true
	}
	for _, numbers := range []bool{false, true} {
		for _, t := range p {
			if (t.m == unit) == numbers && !write(t) {
				return "..."
			}
		}
	}
	return b.String()
}

func (n *nest) word(v Value) (string, bool) {
	if i := n.param[v]; i != None {
		q := n.f.Params[i]
		if q.Kind == Shape {
			s := n.f.Mems[q.Mem].Name
			for range q.Dim {
				s += "[0]"
			}
			return "len(" + s + ")", true
		}
		return q.Name, true
	}
	if l := n.carrier[v]; l != nil && l.depth < 6 {
		if v == l.counter && l.notCounted == "" {
			return string(rune('i' + l.depth)), true
		}
		return "", false
	}
	return "", false
}
