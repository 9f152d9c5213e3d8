package shape

import (
	"bufio"
	"encoding/json"
	"os"
	"reflect"
	"testing"
)

// answer is what numpy 2.4.6 does with one layout, and, if In is set, with
// operands of those shapes. testdata/oracle.py asked it.
type answer struct {
	Layout    string
	Nin, Nout int
	In, Out   [][]int
	Canonical string
	Shapes    [][]int
	Workers   int
	Error     string
}

func numpyAnswers(t *testing.T) []answer {
	t.Helper()
	f, err := os.Open("testdata/numpy.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var all []answer
	for s := bufio.NewScanner(f); s.Scan(); {
		var a answer
		if err := json.Unmarshal(s.Bytes(), &a); err != nil {
			t.Fatal(err)
		}
		all = append(all, a)
	}
	return all
}

func TestParseLayoutTable(t *testing.T) {
	const name = "expect dimension name or non-zero frozen size"
	for _, c := range []struct {
		row, layout string
		nin, nout   int
		want        string // the canonical text
		pos         int
		reason      string
	}{
		{"G1", "()->()", 1, 1, "()->()", 0, ""},
		{"G2", "(i),(i)->()", 2, 1, "(i),(i)->()", 0, ""},
		{"G3", " ( i , j ) , (j)->( i ) ", 2, 1, "(i,j),(j)->(i)", 0, ""},
		{"G4", "(3),(3)->(3)", 2, 1, "(3),(3)->(3)", 0, ""},
		{"G5", "(n)->(2)", 1, 1, "(n)->(2)", 0, ""},
		{"G6", "(m?,n),(n,p?)->(m?,p?)", 2, 1, "(m?,n),(n,p?)->(m?,p?)", 0, ""},
		{"G7", "(i)->(j)", 1, 1, "(i)->(j)", 0, ""},
		{"G8", "(i)->()", 2, 1, "", 3, "expect ','"},
		{"G9", "(i),i)->()", 2, 1, "", 4, "expect '('"},
		{"G10", "(i,),(i)->()", 2, 1, "", 3, "',' must not be followed by ')'"},
		{"G11", "(0)->()", 1, 1, "", 1, name},
		{"G11 sign", "(-1)->()", 1, 1, "", 1, name},
		{"G11 digits", "(3x)->()", 1, 1, "", 1, name},
		{"G11 overflow", "(9223372036854775807)->()", 1, 1, "", 1, name},
		{"G12", "(i?),(i)->()", 2, 1, "", 6, "? must be used, name already seen with ?"},
		{"G13", "(i),(i?)->()", 2, 1, "", 5, "? cannot be used, name already seen without ?"},
		{"G14", "(i),(i)->(", 2, 1, "", 10, "unexpected end of signature string"},
		{"G15", "(i) (i)->()", 2, 1, "", 4, "expect ','"},
		{"G16 arrow", "(i),(i)()", 2, 1, "", 7, "expect '->'"},
		{"G16 too few", "(i),(i)", 2, 1, "", 7, "incomplete signature: not all arguments found"},
		{"empty", "", 1, 1, "", 0, "incomplete signature: not all arguments found"},
		{"blank before ?", "(i ?)->()", 1, 1, "", 3, "expect ',' or ')'"},
		{"newline", "(i\n)->()", 1, 1, "", 2, "expect ',' or ')'"},
		{"not ASCII", "(é)->()", 1, 1, "", 1, name},
		{"NUL", "(i\x00", 1, 1, "", 2, "expect ',' or ')'"},
		{"NUL in place of an argument", "\x00", 1, 1, "", 0, "expect '('"},
		{"leading zeros", "(03),(3)->(_a1)", 2, 1, "(3),(3)->(_a1)", 0, ""},
		{"more outputs than the function", "(i)->(),()", 1, 1, "", 7, "expect '('"},
		{"more outputs, then a comma", "(i)->()(),", 1, 1, "", 10, "too many arguments in signature"},
		{"no inputs", "->(3)", 0, 1, "->(3)", 0, ""},
		{"no outputs", "(i)", 1, 0, "(i)", 0, ""},

		{"any", "(i),(i)->(),(i)", -1, -1, "(i),(i)->(),(i)", 0, ""},
		{"any inputs", "(i) , () -> ()", -1, 1, "(i),()->()", 0, ""},
		{"any outputs", "(i)->(),() ", 1, -1, "(i)->(),()", 0, ""},
		{"any, no inputs", "->(3)", -1, -1, "->(3)", 0, ""},
		{"any, empty", "", -1, -1, "", 0, "incomplete signature: not all arguments found"},
		{"any, no arrow", "(i),(i)", -1, -1, "", 7, "expect ',' or '->'"},
		{"any, half an arrow", "(i)- >()", -1, -1, "", 3, "expect '->'"},
		{"any, no output", "(i)->", -1, -1, "", 5, "expect '('"},
		{"any, comma before the arrow", "(i),->()", -1, -1, "", 4, "expect '('"},
		{"any, trailing comma", "(i)->(),", -1, -1, "", 8, "incomplete signature: not all arguments found"},
		{"any, two arrows", "(i)->()->()", -1, -1, "", 7, "expect ','"},
		{"any outputs, no arrow", "(i)", 1, -1, "", 3, "incomplete signature: not all arguments found"},
		{"any inputs, too few outputs", "(i)->()", -1, 2, "", 7, "expect ','"},
		{"any inputs, too many outputs", "(i)->(),()", -1, 1, "", 7, "expect '('"},
	} {
		t.Run(c.row, func(t *testing.T) {
			l, err := ParseLayout(c.layout, c.nin, c.nout)
			if c.reason != "" {
				if want := (&LayoutError{c.layout, c.pos, c.reason}); l != nil || !reflect.DeepEqual(err, want) {
					t.Fatalf("%q: %v, %v, want %v", c.layout, l, err, want)
				}
				return
			}
			if err != nil || l.String() != c.want {
				t.Fatalf("%q: %v, %v, want %v", c.layout, l, err, c.want)
			}
			if c.nin >= 0 && len(l.In) != c.nin || c.nout >= 0 && len(l.Out) != c.nout {
				t.Errorf("%q: %d inputs, %d outputs", c.layout, len(l.In), len(l.Out))
			}
			again, err := ParseLayout(l.String(), len(l.In), len(l.Out))
			if err != nil || !reflect.DeepEqual(again.Dims, l.Dims) || !reflect.DeepEqual(again.In, l.In) || !reflect.DeepEqual(again.Out, l.Out) {
				t.Errorf("%q is not %q: %v", l.String(), c.layout, err)
			}
		})
	}
}

func TestParsedLayout(t *testing.T) {
	l, err := ParseLayout("(m?,n),(n,03)->(m?,p,3)", 2, 1)
	if err != nil {
		t.Fatal(err)
	}
	if want := []Dim{{"m", 0, true}, {"n", 0, false}, {"3", 3, false}, {"p", 0, false}}; !reflect.DeepEqual(l.Dims, want) {
		t.Errorf("dims %v, want %v", l.Dims, want)
	}
	if want := [][]int{{0, 1}, {1, 2}}; !reflect.DeepEqual(l.In, want) {
		t.Errorf("inputs %v, want %v", l.In, want)
	}
	if want := [][]int{{0, 3, 2}}; !reflect.DeepEqual(l.Out, want) {
		t.Errorf("outputs %v, want %v", l.Out, want)
	}
	if l.IsElementwise() {
		t.Error("a layout with core dimensions is elementwise")
	}
	var none *Layout
	if !none.IsElementwise() || none.String() != "" || !Elementwise(2, 1).IsElementwise() || Elementwise(2, 1).String() != "(),()->()" {
		t.Error("elementwise layouts")
	}
}

func TestParseLayoutLikeNumpy(t *testing.T) {
	good, bad := 0, 0
	for _, a := range numpyAnswers(t) {
		if a.In != nil {
			continue
		}
		l, err := ParseLayout(a.Layout, a.Nin, a.Nout)
		switch {
		case a.Error == "":
			good++
			if err != nil || l.String() != a.Canonical {
				t.Errorf("%q (%d,%d): %v, %v, want %s", a.Layout, a.Nin, a.Nout, l, err, a.Canonical)
			}
		default:
			bad++
			if err == nil || err.Error() != a.Error {
				t.Errorf("%q (%d,%d): %v, %v, want %s", a.Layout, a.Nin, a.Nout, l, err, a.Error)
			}
		}
	}
	if good < 100 || bad < 100 {
		t.Errorf("%d good, %d bad layouts: not both kinds are tested", good, bad)
	}
}

func FuzzParseLayout(f *testing.F) {
	f.Add("(m?,n),(n,03)->(m?,p,3)", 2, 1)
	f.Add("(i)->()(),", -1, -1)
	f.Fuzz(func(t *testing.T, s string, nin, nout int) {
		l, err := ParseLayout(s, nin, nout)
		if err != nil {
			if e := err.(*LayoutError); e.Pos < 0 || e.Pos > len(s) || e.Reason == "" {
				t.Fatalf("%+v", e)
			}
			return
		}
		again, err := ParseLayout(l.String(), len(l.In), len(l.Out))
		if err != nil || again.String() != l.String() {
			t.Fatalf("%q: %q: %v, %v", s, l, again, err)
		}
	})
}
