package gpukit_test

import (
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unicode"
)

// TestRedefinition plays random notebooks: functions are declared, declared
// anew, aliased, their cells run again; variables are assigned and change their
// type. After every step a function is called, and the outcome compared with
// that of a fresh notebook in which the declarations that are visible now are
// executed once. Either both give the same number, or both refuse, or the old
// notebook says that something has changed since a function was declared, which
// in the fresh one it has not: a constant, or the type of a variable. Then the
// cells that matter are run again, which is the remedy, and the number must be
// the same.
func TestRedefinition(t *testing.T) {
	sequences := 200
	if testing.Short() {
		sequences = 40
	}
	var same, refused, changed int
	for seed := range sequences {
		r := rand.New(rand.NewPCG(uint64(seed), 11))
		s := newSession(t)
		s.ir.Comp.Stdout, s.ir.Comp.Stderr = io.Discard, io.Discard
		b := &book{r: r, visible: map[string]string{}, params: map[string]int{}}
		for step := range 14 {
			cell := b.next()
			if err := s.try(cell); err != nil {
				break // the interpreter refuses it, and may be left with half a declaration
			}
			b.cells = append(b.cells, cell)
			b.see(cell)
			name := b.pick()
			if name == "" {
				continue
			}
			call := name + strings.Repeat(", 1.5", b.params[name])
			s.last, s.err = nil, nil
			s.run("vectorize(" + call + ")")
			got, gotErr := s.last, s.err

			fresh := newSession(t)
			fresh.ir.Comp.Stdout, fresh.ir.Comp.Stderr = io.Discard, io.Discard
			want, wantErr := fresh.fresh(b, call)
			switch {
			case wantErr != nil && strings.Contains(wantErr.Error(), "declaration loop"):
				// Initialised variables may not need each other; cells may.
			case gotErr == nil && wantErr == nil:
				if got.Item() != want {
					t.Fatalf("seed %d, step %d: %s = %v, afresh %v\n%s", seed, step, call, got.Item(), want, b)
				}
				same++
			case gotErr != nil && wantErr != nil:
				refused++
			case gotErr != nil && strings.Contains(gotErr.Error(), "since"):
				changed++
				s.last, s.err = nil, nil
				if v, err := s.fresh(b, call); err != nil || v != want {
					t.Fatalf("seed %d, step %d: %s = %v, %v after all cells ran again; afresh %v\n%s", seed, step, call, v, err, want, b)
				}
			default:
				t.Fatalf("seed %d, step %d: %s = %v, %v; afresh %v, %v\n%s", seed, step, call, got, gotErr, want, wantErr, b)
			}
		}
	}
	t.Logf("%d the same, %d refused by both, %d changed since", same, refused, changed)
	if same < sequences*3 || refused < sequences/4 || changed < sequences/40 {
		t.Error("not every kind of outcome is tested")
	}
}

// book is a random notebook in the making.
type book struct {
	r       *rand.Rand
	cells   []string
	visible map[string]string // name to the declaration that it stands for
	params  map[string]int    // of functions
}

func (b *book) String() string { return strings.Join(b.cells, "\n---\n") }

var funcNames = []string{"f", "g", "h"}

// next writes another cell.
func (b *book) next() string {
	cell := ""
	switch k := b.r.IntN(10); {
	case k == 0 && len(b.cells) > 0: // run an old cell again
		cell = b.cells[b.r.IntN(len(b.cells))]
	case k < 3:
		cell = fmt.Sprintf("%s := %s", []string{"c", "k"}[b.r.IntN(2)], []string{"2.5", "10.0", "7", `"text"`, "true"}[b.r.IntN(5)])
	case k == 3 && b.visible["c"] == "c := 2.5":
		cell = "c = 4.5"
	case k == 4:
		cell = fmt.Sprintf("const q = %d", b.r.IntN(9))
	default:
		name := funcNames[b.r.IntN(len(funcNames))]
		n := 1 + b.r.IntN(2)
		cell = fmt.Sprintf("func %s(%s float64) float64 { return %s }", name, []string{"x", "x, y"}[n-1], b.expr(n))
		if b.r.IntN(5) == 0 {
			cell = fmt.Sprintf("%s := func(%s float64) float64 { return %s }", name, []string{"x", "x, y"}[n-1], b.expr(n))
		}
	}
	return cell
}

// see notes what a cell declares.
func (b *book) see(cell string) {
	words := strings.FieldsFunc(cell, func(r rune) bool { return r == ' ' || r == '(' })
	name := words[0]
	if name == "func" || name == "const" {
		name = words[1]
	}
	if cell == "c = 4.5" {
		cell = "c := 4.5"
	}
	b.visible[name] = cell
	delete(b.params, name)
	if strings.Contains(cell, "func") {
		b.params[name] = 1 + strings.Count(cell[:strings.Index(cell, " float64)")], ",")
	}
}

// expr uses what a user would: parameters, variables, the other functions.
func (b *book) expr(n int) string {
	terms := []string{"x", fmt.Sprint(1 + b.r.IntN(5))}
	if n == 2 {
		terms = append(terms, "y")
	}
	for range 2 {
		switch b.r.IntN(4) {
		case 0:
			if v := b.visible["c"]; strings.HasSuffix(v, ".5") || strings.HasSuffix(v, ".0") {
				terms = append(terms, []string{"c", "float64(c)"}[b.r.IntN(2)])
			}
		case 1:
			if _, ok := b.visible["q"]; ok {
				terms = append(terms, "q")
			}
		default:
			for name, n := range b.params {
				terms = append(terms, name+"(x"+strings.Repeat(", 2", n-1)+")")
				break
			}
		}
	}
	b.r.Shuffle(len(terms), func(i, j int) { terms[i], terms[j] = terms[j], terms[i] })
	return strings.Join(terms, " + ")
}

func (b *book) pick() string {
	names := slices.Sorted(maps.Keys(b.params))
	if len(names) == 0 {
		return ""
	}
	return names[b.r.IntN(len(names))]
}

// try is run for a cell that the interpreter may refuse.
func (s *session) try(cell string) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%v", r)
		}
	}()
	s.run(cell)
	return nil
}

// fresh executes what is visible in b once, what is used before what uses it,
// and makes the call. A declaration that the interpreter refuses is a refusal.
func (s *session) fresh(b *book, call string) (v float64, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%v", r)
		}
	}()
	// Only what the call needs: another function may well be broken by now.
	seen := map[string]bool{}
	var need func(name string)
	need = func(name string) {
		decl := b.visible[name]
		if seen[name] || decl == "" {
			return
		}
		seen[name] = true
		for _, w := range strings.FieldsFunc(decl, func(r rune) bool { return !unicode.IsLetter(r) }) {
			need(w)
		}
		s.run(decl)
	}
	need(call[:1])
	s.run("vectorize(" + call + ")")
	if s.err != nil {
		return 0, s.err
	}
	return s.last.Item(), nil
}
