package cell

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unsafe"

	"github.com/cosmos72/gomacro/imports"
)

// kit stands for a compiled package such as gpukit.
var kit struct {
	sync.Mutex
	passed  []any
	printed []string
	inside  func()
}

type BoomError struct{ n int }

func (e *BoomError) Error() string { return fmt.Sprintf("boom %d", e.n) }

func init() {
	imports.Packages["kit"] = imports.Package{Name: "kit", Binds: map[string]reflect.Value{
		"Take":  reflect.ValueOf(func(f interface{}) { kit.passed = append(kit.passed, f) }),
		"Fail":  reflect.ValueOf(func(n int) error { return &BoomError{n} }),
		"Two":   reflect.ValueOf(func(n int) (int, error) { return n, nil }),
		"Two1":  reflect.ValueOf(func(n int) (int, error) { return n, errors.New("second") }),
		"Must":  reflect.ValueOf(func(n int) int { panic(&BoomError{n}) }),
		"Print": reflect.ValueOf(func(s string) { kit.printed = append(kit.printed, s) }),
		"Poll":  reflect.ValueOf(func() { kit.inside() }),
	}}
}

type recorded struct {
	cell, line int
	text       string
}

func newSession(t *testing.T) (*Session, *[]recorded) {
	t.Helper()
	var rec []recorded
	s := NewSession(func(cell, line int, text string) error {
		rec = append(rec, recorded{cell, line, text})
		return nil
	}, func(text string) { t.Log("warning:", text) })
	if _, err := s.Run(0, "import (\"kit\"; \"fmt\"; \"errors\"; \"time\"; \"os\"; \"sort\")"); err != nil {
		t.Fatal(err)
	}
	rec = nil
	return s, &rec
}

func TestErrorRule(t *testing.T) {
	s, _ := newSession(t)
	for _, c := range []struct {
		name, code string
		line       int // 0: must not fail
		ename, msg string
	}{
		{"define", "x := 1\na, err := kit.Two1(3)\nkit.Print(\"no\")", 2, "Error", "second"},
		{"define fine", "a, err := kit.Two(3)\na", 0, "", ""},
		{"assign", "var err error\nerr = kit.Fail(1)\n", 2, "BoomError", "boom 1"},
		{"assign blank", "_, err = kit.Two1(2)", 1, "Error", "second"},
		{"assign nil", "err = nil", 0, "", ""},
		{"old err is not looked at again", "var err = error(nil)\n(func() { err = errors.New(\"inner\") })()\ny := 2", 0, "", ""},
		{"var with err stops before the next declaration", "var q, err = kit.Two1(1)\nvar r = kit.Must(1)", 1, "Error", "second"},
		{"discarded", "z, _ := kit.Two1(2)\n_ = kit.Fail(1)", 0, "", ""},
		{"expression", "kit.Fail(7)", 1, "BoomError", "boom 7"},
		{"expression, second result", "\n\nkit.Two1(7)\nkit.Print(\"no\")", 3, "Error", "second"},
		{"expression in parentheses", "(kit.Fail(7))", 1, "BoomError", "boom 7"},
		{"a variable is not a call", "e := errors.New(\"kept\")\ne", 0, "", ""},
		{"receive", "ch := make(chan error, 1)\nch <- errors.New(\"late\")\n<-ch", 3, "Error", "late"},
		{"inside a block", "if true {\n  err := kit.Fail(1)\n  _ = err\n}", 0, "", ""},
		{"err of another type", "{}\nfunc ff() (int, string) { return 1, \"s\" }\n", 0, "", ""},
		{"Must", "for i := 0; i < 3; i++ {\n  kit.Must(i)\n}", 2, "BoomError", "boom 0"},
		{"wrapped", "fmt.Errorf(\"outer: %w\", kit.Fail(4))", 1, "BoomError", "outer: boom 4"},
		{"nil dereference", "var p *struct{ X int }\np.X", 2, "Panic", "nil pointer"},
		{"panic", "func g() {\n\tpanic(\"deep\")\n}\n\nfunc f() {\n\tg()\n}\nf()", 2, "Panic", "deep"},
		{"exit", "os.Exit(3)", 1, "Exit", "os.Exit(3)"},
		{"compile", "x := 1\ny := undefinedName + 1", 2, "CompileError", "undefinedName"},
		{"compile in function", "func h() int {\n\treturn nope\n}", 2, "CompileError", "nope"},
		{"syntax", "x := 1\ny := )", 2, "SyntaxError", ""},
		{"import", "import \"fmt\"\nimport \"no/such\"", 2, "ImportError", "no/such"},
	} {
		// No subtest: the interpreter belongs to one goroutine.
		kit.printed = nil
		_, err := s.Run(5, c.code)
		if c.line == 0 {
			if err != nil {
				t.Errorf("%s: failed: %v", c.name, err.Traceback())
			}
			continue
		}
		if err == nil {
			t.Errorf("%s: did not fail", c.name)
			continue
		}
		if len(err.Frames) == 0 || err.Frames[0].Line != c.line || err.Frames[0].Cell != 5 {
			t.Errorf("%s: place: %+v, want cell 5 line %d", c.name, err.Frames, c.line)
		} else if want := strings.TrimRight(strings.Split(c.code, "\n")[c.line-1], " "); err.Frames[0].Source != want {
			t.Errorf("%s: source %q, want %q", c.name, err.Frames[0].Source, want)
		}
		if err.Name != c.ename || !strings.Contains(err.Message, c.msg) {
			t.Errorf("%s: %s: %s; want %s: ...%s...", c.name, err.Name, err.Message, c.ename, c.msg)
		}
		if kit.printed != nil {
			t.Errorf("%s: went on after the error", c.name)
		}
	}
	if _, err := s.Run(6, "1+1"); err != nil {
		t.Fatal("not usable afterwards:", err)
	}
}

func TestCallStack(t *testing.T) {
	s, _ := newSession(t)
	if _, err := s.Run(1, "func inner(i int) int {\n\ta := []int{1}\n\treturn a[i]\n}"); err != nil {
		t.Fatal(err)
	}
	_, err := s.Run(2, "func outer() int {\n\tn := 0\n\tfor i := 0; i < 3; i++ {\n\t\tn += inner(i)\n\t}\n\treturn n\n}\nx := 3\nouter()")
	if err == nil {
		t.Fatal("did not fail")
	}
	want := []Frame{
		{1, 3, "inner", "\treturn a[i]"},
		{2, 4, "outer", "\t\tn += inner(i)"},
		{2, 9, "", "outer()"},
	}
	if !slices.Equal(err.Frames, want) {
		t.Errorf("frames:\n%+v, want\n%+v", err.Frames, want)
	}
}

func TestShown(t *testing.T) {
	s, _ := newSession(t)
	for _, c := range []struct{ code, want string }{
		{"1 + 2", "[3]"},
		{"x := 3", "[]"},
		{"fmt.Print()", "[]"},
		{"fmt.Fprintf(os.Stderr, \"\")", "[]"},
		{"kit.Two(4)", "[4]"},
		{"func two() (int, int) { return 1, 2 }\ntwo()", "[1 2]"},
		{"(func() {})()", "[]"},
		{"error(nil)", "[]"},
		{"5; x := 4", "[]"},
		{"", "[]"},
		{"// only a comment", "[]"},
	} {
		res, err := s.Run(1, c.code)
		if err != nil {
			t.Errorf("%q: %v", c.code, err)
		} else if got := fmt.Sprint(res.Values); got != c.want {
			t.Errorf("%q shows %s, want %s", c.code, got, c.want)
		}
	}
}

func TestRecord(t *testing.T) {
	s, rec := newSession(t)
	code := "var k = 2.0; func f(x float64) float64 {\n\treturn g(x)\n}\n\n// g doubles\nfunc g(x float64) float64 { return k * x }\ny := f(2); h := func(x float64) float64 {\n\treturn x\n}\ny // é\nbroken()"
	_, err := s.Run(7, code)
	if err == nil || err.Frames[0].Line != 11 {
		t.Fatal("want an error in line 11, got", err)
	}
	want := []recorded{
		{7, 1, "var k = 2.0; func f(x float64) float64 {\n\treturn g(x)\n}\n\n// g doubles\nfunc g(x float64) float64 { return k * x }"},
		{7, 7, "y := f(2)"},
		{7, 7, strings.Repeat(" ", 11) + "h := func(x float64) float64 {\n\treturn x\n}"},
		{7, 10, "y"},
	}
	if !slices.Equal(*rec, want) {
		t.Errorf("recorded\n%+v, want\n%+v", *rec, want)
	}
}

func TestRecordComplaintIsNoError(t *testing.T) {
	var warned []string
	s := NewSession(func(int, int, string) error { return errors.New("odd") }, func(m string) { warned = append(warned, m) })
	if _, err := s.Run(1, "x := 1"); err != nil {
		t.Fatal(err)
	}
	if len(warned) != 1 || !strings.Contains(warned[0], "odd") {
		t.Error(warned)
	}
}

// word returns the data word of an interface holding a func: its closure.
func word(f any) unsafe.Pointer { return (*[2]unsafe.Pointer)(unsafe.Pointer(&f))[1] }

func TestLookupGivesTheClosureThatCellsPass(t *testing.T) {
	s, _ := newSession(t)
	for _, c := range []struct{ name, decl string }{
		{"f0", "func f0() float64 { return 1 }"},
		{"f1", "func f1(x float64) float64 { return x }"},
		{"fi", "func fi(x int) bool { return x > 0 }"},
		{"fn", "func fn(x []float64) { x[0] = 1 }"},
		{"f2", "func f2(x, y float64) float64 { return x*y }"},
		{"f5", "func f5(a, b, c, d, e float64) float64 { return a }"},
		{"fs", "func fs(i int, x [][]float64, y []int32) (float64, int) { return 0, 0 }"},
		{"lit", "lit := func(x float64) float64 { return x }"},
		{"lit3", "lit3 := func(x, y, z float64) float64 { return x }"},
		{"vlit", "var vlit = func(x, y float64) float64 { return x }"},
		{"named", "type V [2]float64\nfunc named(v V) V { return v }"},
		{"f2", "func f2(x, y float64) float64 { return x+y }"},
		{"f1", "func f1(x, y float64) float64 { return x+y }"},
		{"lit", "lit = func(x float64) float64 { return 2*x }"},
	} {
		kit.passed = nil
		before, had := s.Lookup(c.name)
		var old unsafe.Pointer
		if had {
			old = word(before.Interface())
		}
		if _, err := s.Run(1, c.decl+"\nkit.Take("+c.name+")\nkit.Take("+c.name+")"); err != nil {
			t.Errorf("%s: %v", c.decl, err)
			continue
		}
		v, ok := s.Lookup(c.name)
		if !ok || v.Kind() != reflect.Func {
			t.Errorf("%s: Lookup gives %v, %v", c.decl, v, ok)
			continue
		}
		w := word(v.Interface())
		if w != word(kit.passed[0]) || w != word(kit.passed[1]) {
			t.Errorf("%s: Lookup gives another closure than the cell passes", c.decl)
		}
		if had && w == old {
			t.Errorf("%s: redefinition kept the closure", c.decl)
		}
		// Through a variable and a call, as in a loop over functions.
		kit.passed = nil
		if _, err := s.Run(2, "(func() { p := "+c.name+"; kit.Take(p) })()"); err != nil || word(kit.passed[0]) != w {
			t.Errorf("%s: another closure through a local variable (%v)", c.decl, err)
		}
	}
}

func TestLookupValues(t *testing.T) {
	s, _ := newSession(t)
	_, err := s.Run(1, `const c = 3.5
var b = true; var i8 int8 = -3; var u16 uint16 = 65535; i := -7; var u8 uint8 = 200
f := 2.5; var f32 float32 = 1.25; z := complex(1, -2); var z64 complex64 = 3-4i
type D float64
var d D = 6
s := "text"; sl := []int{1,2}; arr := [2]float64{1, 2}; var np *int`)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"c": "3.5", "b": "true", "i8": "-3", "u16": "65535", "i": "-7", "u8": "200", "f": "2.5", "f32": "1.25",
		"z": "(1-2i)", "z64": "(3-4i)", "d": "6", "s": "text", "sl": "[1 2]", "arr": "[1 2]", "np": "<nil>",
	} {
		v, ok := s.Lookup(name)
		if !ok || fmt.Sprint(v) != want {
			t.Errorf("%s = %v (%v), want %s", name, v, ok, want)
		}
	}
	if _, ok := s.Lookup("nothing"); ok {
		t.Error("found a name that is not there")
	}
	// Seen from inside a call, while the cell changes it.
	var seen []float64
	kit.inside = func() { v, _ := s.Lookup("f"); seen = append(seen, v.Float()) }
	if _, err := s.Run(2, "for f = 0; f < 3; f++ { kit.Poll() }"); err != nil || !slices.Equal(seen, []float64{0, 1, 2}) {
		t.Error(seen, err)
	}
}

func TestInterrupt(t *testing.T) {
	s, _ := newSession(t)
	if _, err := s.Run(1, "n := 0; kept := 42"); err != nil {
		t.Fatal(err)
	}
	kit.inside = func() {
		for !s.Interrupted() {
			time.Sleep(time.Millisecond)
		}
	}
	for _, code := range []string{
		"for {}",
		"for { n++ }",
		"func spin() { for { n++ } }\nspin()",
		"kit.Poll()\nkit.Print(\"not reached\")",
		"for { kit.Poll() }",
		"func swallow() { defer func() { recover() }(); for {} }\nfor { swallow() }",
		"func again() { defer func() { if r := recover(); r != nil { n = 0 } }(); for {} }\nfor { again() }",
		"time.Sleep(time.Hour)",
		"sort.Slice([]int{3, 2, 1}, func(i, j int) bool { for {}; return true })",
	} {
		kit.printed = nil
		go func() {
			time.Sleep(30 * time.Millisecond)
			s.Interrupt()
		}()
		start := time.Now()
		_, err := s.Run(2, code)
		if err == nil || !err.Interrupted || err.Message != "interrupted" || len(err.Frames) == 0 || err.Frames[0].Line == 0 {
			t.Errorf("%s: %+v", code, err)
		}
		if d := time.Since(start); d > 2*time.Second {
			t.Errorf("%s: took %v", code, d)
		}
		if kit.printed != nil {
			t.Errorf("%s: went on", code)
		}
		res, err := s.Run(3, "kept")
		if err != nil || fmt.Sprint(res.Values) != "[42]" {
			t.Errorf("%s: afterwards %v %v", code, res.Values, err)
		}
	}
	s.Interrupt() // idle: no effect on the next cell
	if _, err := s.Run(4, "for i := 0; i < 100; i++ {}"); err != nil {
		t.Error(err)
	}
}

func TestFailureLeavesNamesUsable(t *testing.T) {
	s, _ := newSession(t)
	if _, err := s.Run(1, "x := \"old\"\nfunc f(a int) int { return a }"); err != nil {
		t.Fatal(err)
	}
	for _, code := range []string{
		"x := kit.Must(1)",
		"var fresh = kit.Must(1)",
		"func f(a, b int) int { return a }\nfunc broken() { nope }",
		"type T struct { X int }; func bad() { nope }",
	} {
		if _, err := s.Run(2, code); err == nil {
			t.Fatalf("%s did not fail", code)
		}
	}
	res, err := s.Run(3, "fmt.Sprint(x, f(3))")
	if err != nil || res.Values[0] != "old3" && res.Values[0] != "old 3" {
		t.Error(res.Values, err)
	}
	if _, err := s.Run(4, "type T struct { Y float64 }\nfunc f(a string) string { return a + x }\nx := \"new\"\nf(\"a \")\nt := T{2}\nt.Y"); err != nil {
		t.Error(err)
	}
}

func TestForwardReferencesAndRedefinition(t *testing.T) {
	s, _ := newSession(t)
	res, err := s.Run(1, "func a(n int) int { return b(n) + b(n) }\nfunc b(n int) int { return k }\nconst k = 3\na(2)")
	if err != nil || fmt.Sprint(res.Values) != "[6]" {
		t.Fatal(res.Values, err)
	}
	res, err = s.Run(2, "func b(n int) int { return 100 }\na(2)")
	if err != nil || fmt.Sprint(res.Values) != "[200]" {
		t.Fatal(res.Values, err)
	}
}

func TestDirectives(t *testing.T) {
	rest, expect, sp := Directives("\n%expect-error\n%cd /tmp\n$ls\nx % 2\n%not special")
	if rest != "\n\n\n\nx % 2\n%not special" || !expect || !slices.Equal(sp, []Special{{3, "%cd /tmp"}, {4, "$ls"}}) {
		t.Errorf("%q %v %v", rest, expect, sp)
	}
	if _, expect, sp := Directives("%cd /\n%expect-error"); expect || len(sp) != 2 {
		t.Error("only the first line may announce a failure")
	}
}

func TestComplete(t *testing.T) {
	for _, c := range []struct{ code, status, indent string }{
		{"", "complete", ""},
		{"x := 1", "complete", ""},
		{"fmt.Println(1)", "complete", ""},
		{"func f() {", "incomplete", "\t"},
		{"func f() {\n\tfor {", "incomplete", "\t\t"},
		{"func f() {\n\tx := 1", "incomplete", "\t"},
		{"x := []int{1,", "incomplete", ""},
		{"f(1,", "incomplete", ""},
		{"f(", "incomplete", "\t"},
		{"x :=", "incomplete", ""},
		{"if x {", "incomplete", "\t"},
		{"s := `abc", "incomplete", ""},
		{"/* open", "incomplete", ""},
		{"x := )", "invalid", ""},
		{"s := \"abc", "invalid", ""},
		{"func f() {\n\t)\n", "invalid", ""},
		{"%expect-error\nx := 1", "complete", ""},
	} {
		status, indent := Complete(c.code)
		if status != c.status || indent != c.indent {
			t.Errorf("%q: %s %q, want %s %q", c.code, status, indent, c.status, c.indent)
		}
	}
}

func TestCompletionsCountCharacters(t *testing.T) {
	s, _ := newSession(t)
	if _, err := s.Run(1, "größe := 3; alpha := 1"); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		code       string
		cursor     int
		want       string
		start, end int
	}{
		{"fmt.Printl", 10, "[Println]", 4, 10},
		{"x := \"äöü\"; fmt.Printl", 22, "[Println]", 16, 22},
		{"alp + 1", 3, "[alpha]", 0, 3},
		{"\"ä\" + alp", 9, "[alpha]", 6, 9},
		{"zzz", 3, "[]", 0, 3},
		{"", 0, "[]", 0, 0},
		{"alp", 99, "[alpha]", 0, 3},
	} {
		names, start, end := s.Completions(c.code, c.cursor)
		if len(names) == 0 {
			start = c.start // nothing is replaced
		}
		if fmt.Sprint(names) != c.want || start != c.start || end != c.end {
			t.Errorf("%q at %d: %v %d-%d, want %s %d-%d", c.code, c.cursor, names, start, end, c.want, c.start, c.end)
		}
	}
}

func TestDescribe(t *testing.T) {
	s, _ := newSession(t)
	if _, err := s.Run(1, "alpha := 1.5\nfunc f(x float64) float64 { return x }\ntype P struct { X int }\np := P{3}\nconst c = 2"); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		code   string
		cursor int
		want   string
	}{
		{"alpha", 2, "var alpha float64 = 1.5"},
		{"y := f(alpha)", 6, "func f func(float64) float64"},
		{"fmt.Println(1)", 8, "func fmt.Println"},
		{"fmt", 1, "package fmt \"fmt\""},
		{"p.X", 3, "field p.X int"},
		{"kit.Two", 7, "func kit.Two func(int) (int, error)"},
		{"nothing", 3, ""},
		{"1 + 2", 1, ""},
		{"", 0, ""},
	} {
		text, found := s.Describe(c.code, c.cursor)
		if found != (c.want != "") || !strings.HasPrefix(text, c.want) {
			t.Errorf("%q: %q %v, want %q", c.code, text, found, c.want)
		}
	}
}

func TestHints(t *testing.T) {
	s, _ := newSession(t)
	for _, c := range []struct{ code, hint string }{
		{"min(1, 2)", "math.Min"},
		{"max(1.0, 2)", "math.Max"},
		{"m := map[int]int{}; clear(m)", "new map"},
		{"for i := range 3 { _ = i }", "for i := 0; i < 3; i++"},
		{"a := []int{1}; i := int64(0); a[i] = 2", "write int(i)"},
		{"a := []int{1}; j := uint8(0); a[j] = 2", "write int(j)"},
		{"os.ReadFile(\"x\")", "has no ReadFile"},
		{"func g[T any](x T) T { return x }", "one function for each type"},
		{"type G[T any] struct{ x T }", "one type for each case"},
		{"func() {}()", "in parentheses"},
		{"1, 2", "one value"},
		{"import \"v2/fmt\"", "did you mean \"fmt\"?"},
		{"import \"slices\"", "jupyter/bindings"},
	} {
		_, err := s.Run(1, c.code)
		if err == nil || !strings.Contains(err.Message, c.hint) {
			t.Errorf("%s: %v, want the hint %q", c.code, err, c.hint)
		}
	}
}

func TestGoroutinePanicIsReported(t *testing.T) {
	warned := make(chan string, 10)
	s := NewSession(nil, func(m string) { warned <- m })
	for _, c := range []struct{ code, want string }{
		{"x := 1\ngo (func() { panic(\"alone\") })()", "cell 4, line 2: panic in a goroutine: alone"},
		{"go func(a int, b ...string) { panic(b[a]) }(1, \"p\", \"q\")", "line 1: panic in a goroutine: q"},
		{"func f(p *int, e error, x float64) { *p = int(x) }\nfunc g() {\n\tgo f(nil, nil, 3)\n}\ng()", "line 3: panic in a goroutine"},
		{"func v(xs ...int) { panic(len(xs)) }\ngo v([]int{1, 2, 3}...)", "line 2: panic in a goroutine: 3"},
	} {
		if _, err := s.Run(4, c.code); err != nil {
			t.Errorf("%s: %v", c.code, err)
			continue
		}
		select {
		case got := <-warned:
			if !strings.Contains(got, c.want) {
				t.Errorf("%s: %q, want %q", c.code, got, c.want)
			}
		case <-time.After(5 * time.Second):
			t.Errorf("%s: nothing reported", c.code)
		}
	}
	// Arguments are evaluated when the statement runs, and results are as before.
	res, err := s.Run(5, "ch := make(chan int, 3)\nfor i := 0; i < 3; i++ {\n\tgo (func(n int) { ch <- n })(i)\n}\n<-ch + <-ch + <-ch")
	if err != nil || fmt.Sprint(res.Values) != "[3]" {
		t.Error(res.Values, err)
	}
	if _, err := s.Run(6, "c2 := make(chan int)\ngo close(c2)\n<-c2"); err != nil {
		t.Error(err)
	}
}

func TestRecoverStillWorks(t *testing.T) {
	s, _ := newSession(t)
	res, err := s.Run(1, "func try(n int) (msg string) {\n\tdefer func() { if r := recover(); r != nil { msg = fmt.Sprint(\"saved: \", r) } }()\n\tif n > 0 { kit.Must(n) }\n\treturn \"fine\"\n}\ntry(0) + \", \" + try(2)")
	if err != nil || res.Values[0] != "fine, saved: boom 2" {
		t.Error(res.Values, err)
	}
}

func TestMutualRecursion(t *testing.T) {
	s, _ := newSession(t)
	code := "func even(n int) bool { if n == 0 { return yes }; return odd(n-1) }\nfunc odd(n int) bool { if n == 0 { return !yes }; return even(n-1) }\nconst yes = true\nvar e = even(10)\ne"
	for i := 0; i < 2; i++ {
		res, err := s.Run(1, code)
		if err != nil || fmt.Sprint(res.Values) != "[true]" {
			t.Fatal(res.Values, err)
		}
	}
	_, err := s.Run(2, "func a1() int { return b1() }\nfunc b1() int { return a1() + nope }")
	if err == nil || err.Frames[0].Line != 2 || !strings.Contains(err.Message, "nope") {
		t.Error(err)
	}
	if _, err := s.Run(3, "a1()"); err == nil {
		t.Error("a function of a failed cell can be called")
	}
}

func TestEndlessRecursionIsAnError(t *testing.T) {
	s, _ := newSession(t)
	for _, code := range []string{
		"func r(n int) int { return r(n+1) + 1 }\nr(0)",
		"func r5(a, b, c, d, e float64) float64 { return r5(a, b, c, d, e) + 1 }\nr5(1, 2, 3, 4, 5)",
		"type T struct { X int }\nfunc (t T) M(a []int) []int { return append(t.M(a), 1) }\nT{1}.M(nil)",
	} {
		_, err := s.Run(1, code)
		if err == nil || err.Name != "StackOverflow" || err.Interrupted || !strings.Contains(err.Message, "recursion") || len(err.Frames) == 0 {
			t.Errorf("%s: %+v", code, err)
		}
		if res, err := s.Run(2, "func fib(n int) int { if n < 2 { return n }; return fib(n-1) + fib(n-2) }\nfib(12)"); err != nil || fmt.Sprint(res.Values) != "[144]" {
			t.Fatal(res.Values, err)
		}
	}
	// Deep, but with an end.
	res, err := s.Run(3, "func sum(n int) int { if n == 0 { return 0 }; return n + sum(n-1) }\nsum(20000)")
	if err != nil || fmt.Sprint(res.Values) != "[200010000]" {
		t.Error(res.Values, err)
	}
}

func TestPartOfAFailedCellIsRecorded(t *testing.T) {
	s, rec := newSession(t)
	if _, err := s.Run(1, "func f(x float64) float64 { return x }\nvar v = kit.Must(1)"); err == nil {
		t.Fatal("did not fail")
	}
	if _, ok := s.Lookup("f"); !ok || len(*rec) != 1 {
		t.Error("f stays, but its source is not recorded:", *rec)
	}
	if _, err := s.Run(2, "w := f(2)\nw"); err != nil {
		t.Error(err)
	}
}
