package shape

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// array makes an operand of shape s in C order.
func array(s ...int) Operand { return Operand{s, Contiguous(s)} }

func arrays(shapes [][]int) []Operand {
	var ops []Operand
	for _, s := range shapes {
		ops = append(ops, array(s...))
	}
	return ops
}

// supplied makes the out argument of Plan; a nil shape is to be allocated.
func supplied(shapes [][]int) []*Operand {
	var ops []*Operand
	for _, s := range shapes {
		if s == nil {
			ops = append(ops, nil)
			continue
		}
		o := array(s...)
		ops = append(ops, &o)
	}
	return ops
}

// planned is the outcome of a plan as the tables write it: loop and output
// shapes, or the error.
func planned(layout string, in, out [][]int) string {
	l, err := ParseLayout(layout, len(in), -1)
	if err != nil {
		return err.Error()
	}
	p, err := l.Plan("g", arrays(in), supplied(out))
	if err != nil {
		return err.Error()
	}
	s := tight(p.Loop) + " workers"
	for _, o := range p.OutShapes {
		s += " " + tight(o)
	}
	return s
}

func TestPlanTable(t *testing.T) {
	type shapes = [][]int
	const (
		dot    = "(i),(i)->()"
		t14    = "(),(m,o),(n,m,o),(),()->(n,m,o)"
		t16    = "(m,o),(m,o),(),()->(m,o)"
		t17    = "(),(o),(m,o),()->(m,o)"
		matmul = "(m?,n),(n,p?)->(m?,p?)"
		two    = "(),()->()"
	)
	for _, c := range []struct {
		row, layout string
		in, out     shapes
		want        string
	}{
		{"G1", "()->()", shapes{{2, 3}}, nil, "(2,3) workers (2,3)"},
		{"G4", "(3),(3)->(3)", shapes{{4, 3}, {3}}, nil, "(4,) workers (4,3)"},
		{"G5", "(n)->(2)", shapes{{5, 3}}, nil, "(5,) workers (5,2)"},
		{"G7", "(n,d)->(p)", shapes{{3, 2}}, nil, "g: Output operand 0 has core dimension 0 unspecified, with gufunc signature (n,d)->(p)"},
		{"G7 out", "(n,d)->(p)", shapes{{3, 2}}, shapes{{6}}, "() workers (6,)"},
		{"G7 other out", "(i)->(j),(j)", shapes{{3}}, shapes{nil, {4}}, "() workers (4,) (4,)"},
		{"G7 second dimension", "(i)->(i,j?)", shapes{{3}}, nil, "g: Output operand 0 has core dimension 1 unspecified, with gufunc signature (i)->(i,j?)"},

		{"K1", dot, shapes{{3, 5, 4}, {5, 4}}, nil, "(3,5) workers (3,5)"},
		{"K2", dot, shapes{{3, 1}, {3, 4}}, nil, "g: Input operand 1 has a mismatch in its core dimension 0, with gufunc signature (i),(i)->() (size 4 is different from 1)"},
		{"K3", dot, shapes{{}, {3}}, nil, "g: Input operand 0 does not have enough dimensions (has 0, gufunc core with signature (i),(i)->() requires 1)"},
		{"K4", t16, shapes{{3, 2}, {4, 3, 5}, {}, {}}, nil, "g: Input operand 1 has a mismatch in its core dimension 1, with gufunc signature (m,o),(m,o),(),()->(m,o) (size 5 is different from 2)"},
		{"K5", t16, shapes{{2}, {4, 3, 2}, {}, {}}, nil, "g: Input operand 0 does not have enough dimensions (has 1, gufunc core with signature (m,o),(m,o),(),()->(m,o) requires 2)"},
		{"K6", "(3),(3)->(3)", shapes{{4, 2}, {2}}, nil, "g: Input operand 0 has a mismatch in its core dimension 0, with gufunc signature (3),(3)->(3) (size 2 is different from 3)"},
		{"K6 out", t16, shapes{{3, 2}, {3, 2}, {}, {}}, shapes{{3, 3}}, "g: Output operand 0 has a mismatch in its core dimension 1, with gufunc signature (m,o),(m,o),(),()->(m,o) (size 3 is different from 2)"},
		{"K7 vector matrix", matmul, shapes{{3}, {3, 2}}, nil, "() workers (2,)"},
		{"K7 matrix vector", matmul, shapes{{4, 3}, {3}}, nil, "() workers (4,)"},
		{"K7 vectors", matmul, shapes{{3}, {3}}, nil, "() workers ()"},
		{"K7 scalar", matmul, shapes{{}, {3}}, nil, "g: Input operand 0 does not have enough dimensions (has 0, gufunc core with signature (m?,n),(n,p?)->(m?,p?) requires 1)"},
		{"K7 out without p", matmul, shapes{{3}, {3, 7}}, shapes{{6}}, "g: Output operand 0 has a mismatch in its core dimension 0, with gufunc signature (m?,n),(n,p?)->(m?,p?) (size 6 is different from 7)"},
		{"K7 out drops", "(i)->(j?)", shapes{{3}}, shapes{{}}, "() workers ()"},
		{"K7 twice in one operand", "(m?,m?)->()", shapes{{3}}, nil, "(3,) workers (3,)"},
		{"K7 later operand drops", "(m?,n?),(n?)->(m?)", shapes{{4, 5}, {}}, nil, "(4,) workers (4,5)"},
		{"K7 fixed", "(3?),(3?)->()", shapes{{4, 3}, {3}}, nil, "(4,) workers (4,)"},
		{"K7 fixed and missing", "(3?)->()", shapes{{}}, nil, "g: Input operand 0 has a mismatch in its core dimension 0, with gufunc signature (3?)->() (size 1 is different from 3)"},
		{"K8", dot, shapes{{0, 2}, {4, 0, 2}}, nil, "(4,0) workers (4,0)"},
		{"K8 core", "(m,n),(n)->(m)", shapes{{4, 0, 2}, {2}}, nil, "(4,) workers (4,0)"},
		{"K8 sum of nothing", "(n)->()", shapes{{4, 0}}, nil, "(4,) workers (4,)"},

		{"L1", t16, shapes{{3, 2}, {4, 3, 2}, {}, {}}, nil, "(4,) workers (4,3,2)"},
		{"L2", t16, shapes{{5, 1, 3, 2}, {4, 3, 2}, {}, {}}, nil, "(5,4) workers (5,4,3,2)"},
		{"L3", t16, shapes{{3, 2}, {4, 3, 2}, {4}, {}}, nil, "(4,) workers (4,3,2)"},
		{"L4", t16, shapes{{5, 3, 2}, {4, 3, 2}, {}, {}}, nil, "operands could not be broadcast together with remapped shapes [original->remapped]: (5,3,2)->(5,newaxis,newaxis) (4,3,2)->(4,newaxis,newaxis) ()->() ()->()  and requested shape (3,2)"},
		{"L4 out", "(i)->(i),(i,i)", shapes{{5, 4}}, shapes{{6, 4}, {6, 4, 4}}, "operands could not be broadcast together with remapped shapes [original->remapped]: (5,4)->(5,newaxis,newaxis,newaxis) (6,4)->(6,4,newaxis,newaxis) (6,4,4)->(6,newaxis,4,4)  and requested shape (4,4,4)"},
		{"L4 without core", dot, shapes{{4, 6}, {3, 6}}, nil, "operands could not be broadcast together with remapped shapes [original->remapped]: (4,6)->(4,) (3,6)->(3,)  and requested shape ()"},
		{"L5", t16, shapes{{3, 2}, {0, 3, 2}, {}, {}}, nil, "(0,) workers (0,3,2)"},
		{"L5 stretched", t16, shapes{{1, 3, 2}, {0, 3, 2}, {}, {}}, nil, "(0,) workers (0,3,2)"},
		{"L6", t16, shapes{{3, 2}, {4, 3, 2}, {}, {}}, shapes{{7, 4, 3, 2}}, "(7,4) workers (7,4,3,2)"},
		{"L6 smaller", t16, shapes{{3, 2}, {4, 3, 2}, {}, {}}, shapes{{1, 3, 2}}, "non-broadcastable output operand with shape (1,3,2) doesn't match the broadcast shape (4,3,2)"},
		{"L6 lower rank", t16, shapes{{3, 2}, {4, 3, 2}, {}, {}}, shapes{{3, 2}}, "non-broadcastable output operand with shape (3,2) doesn't match the broadcast shape (4,3,2)"},
		{"L6 lower rank by ones", t16, shapes{{3, 2}, {1, 4, 3, 2}, {}, {}}, shapes{{4, 3, 2}}, "(1,4) workers (4,3,2)"},
		{"L7", two, shapes{{2, 3}, {4}}, nil, "operands could not be broadcast together with shapes (2,3) (4,) "},
		{"L7 out", two, shapes{{4}, {4}}, shapes{{3}}, "operands could not be broadcast together with shapes (4,) (4,) (3,) "},
		{"L7 zero and two", two, shapes{{0}, {2}}, nil, "operands could not be broadcast together with shapes (0,) (2,) "},
		{"L8", two, shapes{{2, 2}, {}}, shapes{{2}}, "non-broadcastable output operand with shape (2,) doesn't match the broadcast shape (2,2)"},
		{"L8 one", two, shapes{{4}, {4}}, shapes{{1}}, "non-broadcastable output operand with shape (1,) doesn't match the broadcast shape (4,)"},
		{"L8 lower rank by ones", two, shapes{{1, 3}, {3}}, shapes{{3}}, "non-broadcastable output operand with shape (3,) doesn't match the broadcast shape (1,3)"},
		{"L8 empty", two, shapes{{0}, {1}}, shapes{{1}}, "non-broadcastable output operand with shape (1,) doesn't match the broadcast shape (0,)"},
		{"L8 scalar", two, shapes{{2}, {}}, shapes{{}}, "non-broadcastable output operand with shape () doesn't match the broadcast shape (2,)"},
		{"L8 larger", two, shapes{{4}, {}}, shapes{{7, 4}}, "(7,4) workers (7,4)"},
		{"L8 larger and empty", two, shapes{{1}, {}}, shapes{{0}}, "(0,) workers (0,)"},
		{"L8 second output", "()->(),()", shapes{{2, 3}}, shapes{nil, {3}}, "non-broadcastable output operand with shape (3,) doesn't match the broadcast shape (2,3)"},

		{"D1", t14, shapes{{}, {4000, 5}, {100, 4000, 5}, {}, {}}, nil, "() workers (100,4000,5)"},
		{"D2", t16, shapes{{4000, 5}, {100, 4000, 5}, {}, {}}, nil, "(100,) workers (100,4000,5)"},
		{"D3", t17, shapes{{}, {4000, 5}, {4000, 100, 5}, {}}, nil, "(4000,) workers (4000,100,5)"},
		{"D4", two, shapes{{3, 1}, {1, 4}}, nil, "(3,4) workers (3,4)"},
		{"D5", two, shapes{{4}, {3, 4}}, nil, "(3,4) workers (3,4)"},
		{"D6", two, shapes{{1, 1}, {3, 4}}, nil, "(3,4) workers (3,4)"},
		{"D7", "(n),(n)->()", shapes{{0, 3}, {0, 3}}, nil, "(0,) workers (0,)"},
		{"D8", "(n),(n)->()", shapes{{0, 3}, {3}}, nil, "(0,) workers (0,)"},

		{"loop too large", two, shapes{{1 << 40, 1}, {1 << 40}}, nil, "g: the loop (1099511627776, 1099511627776) has more elements than an int can count"},
		{"output too large", "(m),(n)->(m,n)", shapes{{1 << 40}, {1 << 40}}, nil, "g: Output operand 0 of shape (1099511627776, 1099511627776) has more elements than an int can count"},
		{"written with blanks", " (i) -> () ", shapes{{}}, nil, "g: Input operand 0 does not have enough dimensions (has 0, gufunc core with signature  (i) -> ()  requires 1)"},
	} {
		t.Run(c.row, func(t *testing.T) {
			if got := planned(c.layout, c.in, c.out); got != c.want {
				t.Errorf("%s on %v out %v:\n got %s\nwant %s", c.layout, c.in, c.out, got, c.want)
			}
		})
	}
}

func TestPlanRefusesTheCallersFaults(t *testing.T) {
	one, two := array(3), Operand{[]int{2, 2}, []int{1}}
	for _, c := range []struct {
		in   []Operand
		out  []*Operand
		want string
	}{
		{[]Operand{one}, nil, "g: 1 inputs given, layout (),()->() has 2"},
		{[]Operand{one, one}, []*Operand{nil, nil}, "g: 2 outputs given, layout (),()->() has 1"},
		{[]Operand{one, two}, nil, "g: Input operand 1 has 1 strides for 2 dimensions"},
		{[]Operand{one, one}, []*Operand{{[]int{-1}, []int{1}}}, "g: Output operand 0 has the impossible shape (-1,)"},
	} {
		if p, err := Elementwise(2, 1).Plan("g", c.in, c.out); err == nil || err.Error() != c.want {
			t.Errorf("%v, %v, want %s", p, err, c.want)
		}
	}
}

func TestPlanStrides(t *testing.T) {
	l, err := ParseLayout("(m?,n),(n,p?),()->(m?,p?)", 3, 1)
	if err != nil {
		t.Fatal(err)
	}
	// A vector walked backwards, a stack of transposed matrices, one number.
	p, err := l.Plan("g", []Operand{
		{[]int{3}, []int{-2}},
		{[]int{5, 1, 3, 7}, []int{100, 21, 1, 3}},
		{[]int{1}, []int{9}},
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := &Plan{
		Loop:    []int{5, 1},
		Sizes:   []int{1, 3, 7},
		Missing: []bool{true, false, false},
		In: []PlannedOperand{
			{[]int{0, 0}, []int{1, 3}, []int{0, -2}},
			{[]int{100, 0}, []int{3, 7}, []int{1, 3}},
			{[]int{0, 0}, nil, nil},
		},
		Out:       []PlannedOperand{{[]int{7, 0}, []int{1, 7}, []int{0, 1}}},
		OutShapes: [][]int{{5, 1, 7}},
	}
	if !reflect.DeepEqual(p, want) {
		t.Errorf("plan\n got %+v\nwant %+v", p, want)
	}
	// A nil layout is that of a ufunc.
	var none *Layout
	a, errA := none.Plan("g", []Operand{array(2, 1), array(3)}, nil)
	b, errB := Elementwise(2, 1).Plan("g", []Operand{array(2, 1), array(3)}, nil)
	if errA != nil || errB != nil || !reflect.DeepEqual(a, b) {
		t.Errorf("nil layout: %+v, %v, want %+v, %v", a, errA, b, errB)
	}
}

func TestPlanLikeNumpy(t *testing.T) {
	done, kinds := 0, map[string]int{}
	for _, a := range numpyAnswers(t) {
		if a.In == nil {
			continue
		}
		l, err := ParseLayout(a.Layout, a.Nin, a.Nout)
		if err != nil {
			t.Fatal(err)
		}
		p, err := l.Plan("g", arrays(a.In), supplied(a.Out))
		if a.Error != "" {
			// numpy's two other texts for an output that is too small.
			const small = "non-broadcastable output operand with shape "
			fits := err != nil && err.Error() == a.Error
			if strings.HasPrefix(a.Error, "output operand requires a reduction") || strings.Contains(a.Error, "[remapped to ") {
				fits = err != nil && strings.HasPrefix(err.Error(), small)
			}
			if !fits {
				t.Errorf("%s %v %v: %v\nwant %s", a.Layout, a.In, a.Out, err, a.Error)
			}
			words := strings.Fields(strings.TrimPrefix(a.Error, "g: Input operand"))
			kinds[strings.Join(words[1:4], " ")]++
			continue
		}
		done++
		if err != nil {
			t.Errorf("%s %v %v: %v, numpy accepts", a.Layout, a.In, a.Out, err)
			continue
		}
		n, _ := Size(p.Loop)
		if !slices.EqualFunc(p.OutShapes, a.Shapes, slices.Equal) || n != a.Workers {
			t.Errorf("%s %v %v: %d workers for %v, numpy %d for %v", a.Layout, a.In, a.Out, n, p.OutShapes, a.Workers, a.Shapes)
		}
	}
	if done < 100 || len(kinds) < 6 {
		t.Errorf("%d plans, errors %v: too few are tested", done, kinds)
	}
}

// model is numpy's rule written for reading: names instead of positions, lists
// that shrink, one index at a time.
type model struct {
	loop      []int
	size      map[string]int
	outShapes [][]int
	cores     [][]string // what is left of each operand's core
}

// modelOf returns nil where the operands do not fit. cores are the layout's,
// a nil shape is an output to be allocated.
func modelOf(layout [][]string, nin int, shapes [][]int) *model {
	m := &model{size: map[string]int{}}
	for _, core := range layout {
		m.cores = append(m.cores, slices.Clone(core))
	}
	for i, s := range shapes {
		for _, d := range layout[i] {
			if s == nil || len(s) >= len(m.cores[i]) {
				break
			}
			if !strings.HasSuffix(d, "?") {
				continue
			}
			for k := range m.cores {
				m.cores[k] = slices.DeleteFunc(m.cores[k], func(x string) bool { return x == d })
			}
			m.size[d] = 1
		}
		if s != nil && len(s) < len(m.cores[i]) {
			return nil
		}
	}
	var stacked [][]int
	for i, s := range shapes {
		if s == nil {
			continue
		}
		n := len(s) - len(m.cores[i])
		stacked = append(stacked, s[:n])
		for j, d := range m.cores[i] {
			old, known := m.size[d]
			if d[0] >= '0' && d[0] <= '9' {
				old, known = int(d[0]-'0'), true
			}
			if known && old != s[n+j] {
				return nil
			}
			m.size[d] = s[n+j]
		}
	}
	for col := 1; ; col++ { // from the last dimension
		here := []int{}
		for _, s := range stacked {
			if col <= len(s) {
				here = append(here, s[len(s)-col])
			}
		}
		if len(here) == 0 {
			break
		}
		others := slices.DeleteFunc(here, func(d int) bool { return d == 1 })
		slices.Sort(others)
		others = slices.Compact(others)
		if len(others) > 1 {
			return nil
		}
		m.loop = append(append([]int{}, append(others, 1)[0]), m.loop...)
	}
	for i := nin; i < len(layout); i++ {
		s := slices.Clone(m.loop)
		for _, d := range m.cores[i] {
			n, known := m.size[d]
			if d[0] >= '0' && d[0] <= '9' {
				n, known = int(d[0]-'0'), true
			}
			if !known {
				return nil
			}
			s = append(s, n)
		}
		if given := shapes[i]; given != nil && !slices.Equal(given, s) {
			plain := len(slices.Concat(layout...)) == 0
			for !plain && len(s) > len(given) && s[0] == 1 && len(s) > len(m.cores[i]) {
				s = s[1:]
			}
			if !slices.Equal(given, s) {
				return nil
			}
		}
		m.outShapes = append(m.outShapes, s)
	}
	return m
}

// element is the index of the element of operand i that worker w sees at core
// index c (one number for each core dimension of the layout).
func (m *model) element(layout []string, left []string, s, st, w, c []int) int {
	at := 0
	n := len(s) - len(left)
	for k := range n {
		if s[k] != 1 {
			at += w[len(w)-n+k] * st[k]
		}
	}
	for k, d := range layout {
		if slices.Contains(left, d) {
			at += c[k] * st[n]
			n++
		}
	}
	return at
}

// indices lists all indices of shape s.
func indices(s []int) [][]int {
	all := [][]int{{}}
	for _, d := range s {
		var next [][]int
		for _, p := range all {
			for i := range d {
				next = append(next, append(slices.Clone(p), i))
			}
		}
		all = next
	}
	return all
}

func TestPlanMatchesModel(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	fits, faults, outs, dropped := 0, 0, 0, 0
	for range 20000 {
		nin, nout := r.IntN(4), 1+r.IntN(2)
		names := [][]string{{}, {"i"}, {"i", "j"}, {"m?", "n", "p?"}, {"i", "2"}, {"3", "k?"}}[r.IntN(6)]
		base := make([]int, r.IntN(3))
		for i := range base {
			base[i] = r.IntN(4)
		}
		size := map[string]int{"2": 2, "3": 3}
		gone := map[string]bool{}
		for _, d := range names {
			if _, fixed := size[d]; !fixed {
				size[d] = r.IntN(4)
			}
			gone[d] = strings.HasSuffix(d, "?") && r.IntN(3) == 0
		}
		var layout [][]string
		var shapes [][]int
		for i := range nin + nout {
			var core []string
			for range min(r.IntN(3), len(names)) {
				core = append(core, names[r.IntN(len(names))])
			}
			layout = append(layout, core)
			s := slices.Clone(base)
			if i < nin {
				s = s[r.IntN(len(base)+1):]
			} else if r.IntN(4) == 0 {
				s = append([]int{r.IntN(4)}, s...)
			}
			for k := range s {
				if i < nin && r.IntN(5) == 0 {
					s[k] = 1
				}
			}
			for _, d := range core {
				if !gone[d] {
					s = append(s, size[d])
				}
			}
			if len(s) > 0 && r.IntN(20) == 0 {
				s[r.IntN(len(s))] = r.IntN(4)
			}
			if s == nil {
				s = []int{}
			}
			if i >= nin && r.IntN(2) == 0 {
				s = nil
			}
			shapes = append(shapes, s)
		}
		var args []string
		for _, core := range layout {
			args = append(args, "("+strings.Join(core, ",")+")")
		}
		text := strings.Join(args[:nin], ",") + "->" + strings.Join(args[nin:], ",")
		l, err := ParseLayout(text, nin, nout)
		if err != nil {
			t.Fatal(err)
		}
		var ops []Operand
		for _, s := range shapes {
			st := make([]int, len(s))
			for k := range st {
				st[k] = r.IntN(41) - 20
			}
			ops = append(ops, Operand{s, st})
		}
		var out []*Operand
		for i := range nout {
			if shapes[nin+i] == nil {
				out = append(out, nil)
			} else {
				out = append(out, &ops[nin+i])
			}
		}
		p, err := l.Plan("g", ops[:nin], out)
		m := modelOf(layout, nin, shapes)
		if (err == nil) != (m != nil) {
			t.Fatalf("%s %v: %v, model %+v", text, shapes, err, m)
		}
		if m == nil {
			faults++
			continue
		}
		fits++
		if !slices.Equal(p.Loop, m.loop) || !slices.EqualFunc(p.OutShapes, m.outShapes, slices.Equal) {
			t.Fatalf("%s %v: loop %v outputs %v, model %+v", text, shapes, p.Loop, p.OutShapes, m)
		}
		for k, gone := range p.Missing {
			d := l.Dims[k]
			if gone {
				dropped++
			}
			if gone && (!d.Optional || p.Sizes[k] != 1) {
				t.Fatalf("%s %v: %+v is missing, size %d", text, shapes, d, p.Sizes[k])
			}
		}
		for i, o := range append(slices.Clone(p.In), p.Out...) {
			s, st := shapes[i], ops[i].Strides
			if s == nil {
				s = m.outShapes[i-nin]
				st = Contiguous(s)
			} else if i >= nin {
				outs++
			}
			core := make([]int, len(layout[i]))
			for k, d := range layout[i] {
				core[k] = 1
				if slices.Contains(m.cores[i], d) {
					core[k] = m.size[d]
					if d == "2" || d == "3" {
						core[k] = int(d[0] - '0')
					}
				}
			}
			if !slices.Equal(o.CoreShape, core) {
				t.Fatalf("%s %v: operand %d has core %v, want %v", text, shapes, i, o.CoreShape, core)
			}
			for _, w := range indices(m.loop) {
				for _, c := range indices(core) {
					got := 0
					for k := range w {
						got += w[k] * o.LoopStrides[k]
					}
					for k := range c {
						got += c[k] * o.CoreStrides[k]
					}
					if want := m.element(layout[i], m.cores[i], s, st, w, c); got != want {
						t.Fatalf("%s %v: operand %d, worker %v, core %v: element %d, want %d", text, shapes, i, w, c, got, want)
					}
				}
			}
		}
	}
	if fits < 4000 || faults < 2000 || outs < 1000 || dropped < 200 {
		t.Errorf("%d fit, %d do not, %d supplied outputs, %d dropped dimensions: not all kinds are tested", fits, faults, outs, dropped)
	}
}

func ExampleLayout_Plan() {
	l, _ := ParseLayout("(m,n),(n)->(m)", 2, 1)
	matrices, vector := []int{10, 3, 4}, []int{4}
	p, err := l.Plan("matvec", []Operand{
		{matrices, Contiguous(matrices)},
		{vector, Contiguous(vector)},
	}, nil)
	fmt.Println(p.Loop, p.OutShapes[0], err)
	fmt.Println(p.In[0].LoopStrides, p.In[0].CoreShape, p.In[0].CoreStrides)
	fmt.Println(p.In[1].LoopStrides, p.In[1].CoreShape, p.In[1].CoreStrides)
	// Output:
	// [10] [10 3] <nil>
	// [12] [3 4] [4 1]
	// [0] [4] [1]
}
