package cell

import (
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"runtime"
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
		"Tools": reflect.ValueOf(&Tools{}),
		"Poll":  reflect.ValueOf(func() { kit.inside() }),
	}}
}

// Tools has methods, as a device of gpukit.
type Tools struct{}

func (*Tools) Use(f any, args ...any) error { return nil }

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
		{"compile in a list", "x := 1\nx, nope, 3", 2, "CompileError", "cell 5:2:4: undefined: nope"},
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
		{1, 3, "inner", "\treturn a[i]", 9},
		{2, 4, "outer", "\t\tn += inner(i)", 3},
		{2, 9, "", "outer()", 1},
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
		{"1, 2", "[1 2]"},
		{"q := 7\nq, fmt.Sprint(q, \"a, b\"), []int{1, q} // the end", "[7 7a, b [1 7]]"},
		{"kit.Two(1), 2", "[1 2]"},
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
	code := "var k = 2.0; func f(x float64) float64 {\n\treturn g(x)\n}\n\n// g doubles\nfunc g(x float64) float64 { return k * x }\ny := f(2); h := func(x float64) float64 {\n\treturn x\n}\ny // é\nkit.Must(1)"
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

// A pasted program only declares its main: the cell says so, and how to go on.
func TestWholeProgramSaysThatMainIsOnlyDeclared(t *testing.T) {
	var warned []string
	s := NewSession(nil, func(m string) { warned = append(warned, m) })
	for _, c := range []struct{ code, want string }{
		{"package main\nimport \"fmt\"\nfunc main() { fmt.Print() }", "main()"},
		{"func init() {}", "init()"},
		{"main()\ninit()", ""},
		{"func main() {}\nmain()", ""},
		{"func mean() {}", ""},
	} {
		warned = nil
		if _, err := s.Run(1, c.code); err != nil {
			t.Errorf("%s: %v", c.code, err)
		}
		if got := strings.Join(warned, "\n"); (got == "") != (c.want == "") || !strings.HasSuffix(got, c.want) {
			t.Errorf("%s: warned %q, want %q", c.code, got, c.want)
		}
	}
}

// A compiled call that does not notice Stop is left to itself, and nothing that
// it does afterwards is noticed.
func TestCompiledCallsAreAbandoned(t *testing.T) {
	s, _ := newSession(t)
	if _, err := s.Run(1, "import \"sync\"\nkept := 42\nch := make(chan int); to := make(chan int)\nvar wg sync.WaitGroup\nvar mu sync.Mutex\nwg.Add(1)\nmu.Lock()\nfunc wait() int {\n\treturn <-ch\n}"); err != nil {
		t.Fatal(err)
	}
	goroutines := runtime.NumGoroutine()
	free := make(chan bool)
	kit.inside = func() { <-free }
	for i, c := range []struct {
		code string
		line int
	}{
		{"1\n<-ch", 2}, {"to <- 1", 1}, {"wg.Wait()", 1}, {"\nmu.Lock()", 2}, {"kit.Poll()\nkit.Print(\"not reached\")", 1},
		{"x := wait()\nkit.Print(\"not reached\")", 9}, {"for v := range ch { kit.Print(\"v\"); _ = v }", 1}, {"var nilch chan int\n<-nilch", 2},
		{"f := func() int { defer func() { recover() }(); return <-ch }\nf()\nkit.Print(\"not reached\")", 1},
	} {
		kit.printed = nil
		go func() {
			time.Sleep(30 * time.Millisecond)
			s.Interrupt()
		}()
		start := time.Now()
		_, err := s.Run(10+i, c.code)
		if err == nil || !err.Interrupted || !strings.HasPrefix(err.Message, "interrupted; the call here cannot be stopped") || len(err.Frames) == 0 || err.Frames[0].Line != c.line {
			t.Fatalf("%s: %+v", c.code, err)
		}
		if d := time.Since(start); d > time.Second {
			t.Errorf("%s: took %v", c.code, d)
		}
		res, err := s.Run(100, "kept++\nfunc fib(n int) int { if n < 2 { return n }; return fib(n-1) + fib(n-2) }\nfib(10)")
		if err != nil || fmt.Sprint(res.Values) != "[55]" {
			t.Fatalf("%s: afterwards %v %v", c.code, res.Values, err)
		}
		if kit.printed != nil {
			t.Errorf("%s: went on", c.code)
		}
		// Also the next Stop works, and call stacks.
		go func() {
			time.Sleep(20 * time.Millisecond)
			s.Interrupt()
		}()
		if _, err := s.Run(101, "func spin() { for {} }\nspin()"); err == nil || err.Message != "interrupted" || err.Frames[0].Func != "spin" {
			t.Errorf("%s: Stop afterwards: %+v", c.code, err)
		}
	}
	// The calls end: those who made them are gone without a trace.
	close(free)
	if _, err := s.Run(200, "wg.Done()\nmu.Unlock()\nclose(ch)\n<-to"); err != nil {
		t.Error(err)
	}
	for end := time.Now().Add(5 * time.Second); runtime.NumGoroutine() > goroutines+3 && time.Now().Before(end); {
		time.Sleep(10 * time.Millisecond)
	}
	if n := runtime.NumGoroutine(); n > goroutines+3 { // the nil channel stays
		t.Errorf("%d goroutines, %d before", n, goroutines)
	}
	if kit.printed != nil {
		t.Error("an abandoned cell went on:", kit.printed)
	}
	if res, err := s.Run(201, "kept"); err != nil || fmt.Sprint(res.Values) != "[51]" {
		t.Error(res.Values, err)
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
	if _, err := s.Run(1, "alpha := 1.5\nfunc f(x float64) float64 { return x }\ntype P struct { X int }\np := P{3}\nconst c = 2; tl := kit.Tools; pp := &p"); err != nil {
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
		{"pp.X", 3, "field pp.X int"},
		{"tl.Use(f)", 4, "method tl.Use func("},
		{"kit.Two", 7, "func kit.Two func(int) (int, error)"},
		{"nothing", 3, ""},
		{"1 + 2", 1, ""},
		{"", 0, ""},
	} {
		d, found := s.Describe(c.code, c.cursor)
		text := d.Text
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
		{"os.Unheard(\"x\")", "has no Unheard"},
		{"func g[T any](x T) T { return x }", "one function for each type"},
		{"type G[T any] struct{ x T }", "one type for each case"},
		{"func() {}()", "in parentheses"},
		{"1, 2; 3", "the last line"},
		{"import \"v2/fmt\"", "did you mean \"fmt\"?"},
		{"import \"slices\"", "generic functions only"},
		{"import \"example.com/other\"", "go run ./jupyter install --with example.com/other"},
		{"!ls", "$ls"},
		{"x := 1\n%expect-error", "must be the first line"},
		{"x := 1\n%cd /tmp", "at the top of a cell"},
		{"!pip install numpy", "$ls"},
		{"bits.Len(3)", "import \"math/bits\""},
		{"func r() int { return rand.Intn(3) }", "import it first: import \"math/rand\""},
		{"x := 1.0; x / 0", "variable that holds 0"},
		{"func back() {\nL:\n\tgoto L\n}", "a for loop"},
		{"n := uint(3)\nvar w int64 = 1 << n", "int64(1) << n"},
		{"type P struct{}\nfunc (p *P) M() {}\nvar i interface{ M() } = P{}", "&T{...}"},
	} {
		_, err := s.Run(1, c.code)
		if err == nil || !strings.Contains(err.Message, c.hint) {
			t.Errorf("%s: %v, want the hint %q", c.code, err, c.hint)
		}
	}
}

func TestHintForGridAndBlock(t *testing.T) {
	for _, m := range []string{
		"cannot use 3 (untyped int constant) as gpukit.Grid value in argument to gpu.Launch",
		"cannot use gpukit.Threads(4) (value of struct type gpukit.Block) as gpukit.Grid value in argument to gpu.Launch",
		"cannot use n (variable of type int) as gpukit.Block value in argument to gpu.Launch",
	} {
		if h := withHint(m, ""); !strings.Contains(h, "gpukit.Blocks(3), gpukit.Threads(4)") {
			t.Errorf("%s: %s", m, h)
		}
	}
}

// A panic in a goroutine ends a Go program; here it ends the cell that started
// it, at once, wherever the cell is by then.
func TestGoroutinePanicIsAnErrorOfTheCell(t *testing.T) {
	warned := make(chan string, 10)
	s := NewSession(nil, func(m string) { warned <- m })
	if _, err := s.Run(1, "import \"time\"\nfunc f(p *int, e error, x float64) { *p = int(x) }\nfunc v(xs ...int) { panic(len(xs)) }\nend := make(chan int)\nn := 0"); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		code, want string
		line       int
	}{
		{"go (func() { panic(\"alone\") })()\ntime.Sleep(time.Hour)", "alone", 1},
		{"\ngo (func() { panic(\"alone\") })()\nfor {}", "alone", 2},
		{"go (func() { defer close(end); panic(\"alone\") })()\n<-end\ntime.Sleep(50*time.Millisecond)\nn = 1", "alone", 1},
		{"go func(a int, b ...string) { panic(b[a]) }(1, \"p\", \"q\")\ntime.Sleep(time.Hour)", "q", 1},
		{"func g() {\n\tgo f(nil, nil, 3)\n}\ng()\ntime.Sleep(time.Hour)", "nil pointer", 2},
		{"go v([]int{1, 2, 3}...)\ntime.Sleep(time.Hour)", "3", 1},
	} {
		start := time.Now()
		_, err := s.Run(4, c.code)
		if err == nil || err.Interrupted || !strings.HasPrefix(err.Message, "panic in a goroutine: ") || !strings.Contains(err.Message, c.want) {
			t.Errorf("%s: %v, want %q", c.code, err, c.want)
			continue
		}
		if top := err.Frames[len(err.Frames)-1]; top.Line != c.line || top.Cell != 4 || top.Source == "" {
			t.Errorf("%s: at %+v, want line %d", c.code, top, c.line)
		}
		if d := time.Since(start); d > 2*time.Second {
			t.Errorf("%s: took %v", c.code, d)
		}
		if res, err := s.Run(5, "n"); err != nil || fmt.Sprint(res.Values) != "[0]" {
			t.Errorf("%s: went on: %v %v", c.code, res.Values, err)
		}
	}
	// After its cell it is a remark, and the later cell is well.
	if _, err := s.Run(6, "\ngo (func() { time.Sleep(100*time.Millisecond); panic(\"late\") })()"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Run(7, "time.Sleep(300*time.Millisecond)"); err != nil {
		t.Error(err)
	}
	select {
	case got := <-warned:
		if got != "cell 6, line 2: panic in a goroutine: late" {
			t.Error(got)
		}
	case <-time.After(5 * time.Second):
		t.Error("nothing reported")
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

func TestInterruptEndsTheGoroutines(t *testing.T) {
	s := NewSession(nil, func(text string) { t.Error("warning:", text) })
	if _, err := s.Run(1, "import (\"time\"; \"sync/atomic\")\nvar n int64\nfunc count() {\n\tfor {\n\t\tatomic.AddInt64(&n, 1)\n\t\ttime.Sleep(time.Millisecond)\n\t}\n}"); err != nil {
		t.Fatal(err)
	}
	counts := func() bool {
		t.Helper()
		res, err := s.Run(9, "a := atomic.LoadInt64(&n)\nfor i := 0; i < 300 && atomic.LoadInt64(&n) == a; i++ {\n\ttime.Sleep(time.Millisecond)\n}\natomic.LoadInt64(&n) != a")
		if err != nil {
			t.Fatal(err)
		}
		return res.Values[0].(bool)
	}
	if _, err := s.Run(2, "go count()\ngo count()"); err != nil || !counts() {
		t.Fatal("no goroutine runs:", err)
	}
	go func() {
		time.Sleep(30 * time.Millisecond)
		s.Interrupt()
	}()
	if _, err := s.Run(3, "go count()\nfor {}"); err == nil || !err.Interrupted {
		t.Error(err)
	}
	if !counts() {
		t.Error("Stop ended the goroutines of an earlier cell")
	}
	s.Interrupt() // between cells
	alive := func() int {
		s.goroutines.mu.Lock()
		defer s.goroutines.mu.Unlock()
		return len(s.goroutines.alive)
	}
	for end := time.Now().Add(5 * time.Second); alive() > 0 && time.Now().Before(end); {
		time.Sleep(time.Millisecond)
	}
	if n := alive(); n != 0 || counts() {
		t.Errorf("Stop between cells left %d goroutines running", n)
	}
}

// A variable declared again with another type is another variable: functions
// that use the old one must not read the new bits.
func TestRedeclaredVariables(t *testing.T) {
	types := []struct{ value, shown string }{
		{"3", "3"}, {"2.5", "2.5"}, {"true", "true"}, {"\"abc\"", "abc"}, {"[]int{1, 2}", "[1 2]"}, {"map[int]int{1: 2}", "map[1:2]"},
		{"complex(1, 2)", "(1+2i)"}, {"uint8(7)", "7"}, {"float32(1.5)", "1.5"}, {"struct{ X int }{4}", "{4}"}, {"error(nil)", "<nil>"},
	}
	for _, form := range []string{"v := %s", "var v = %s", "v, other := %s, 1", "var v, other = %s, 1"} {
		s, _ := newSession(t)
		for i, old := range types {
			for j, now := range types {
				code := func(text string) string {
					return regexp.MustCompile(`\bv\b`).ReplaceAllString(text, fmt.Sprintf("v%d_%d", i, j))
				}
				if _, err := s.Run(1, code(fmt.Sprintf(form, old.value)+"\nuse := func() string { return fmt.Sprint(v) }\nfunc get() string { return fmt.Sprint(v) }")); err != nil {
					t.Fatalf("%s: %v", form, err)
				}
				if _, err := s.Run(2, code(fmt.Sprintf(form, now.value))); err != nil {
					t.Fatalf("%s: %s after %s: %v", form, now.value, old.value, err)
				}
				want := old.shown
				if i == j {
					want = now.shown
				}
				res, err := s.Run(3, code("get() + \" \" + use() + \" \" + fmt.Sprint(v)"))
				if err != nil || res.Values[0] != want+" "+want+" "+now.shown {
					t.Errorf("%s: %s after %s: %v %v, want %s, %s, %s", form, now.value, old.value, res.Values, err, want, want, now.shown)
				}
			}
		}
	}
	s, _ := newSession(t)
	for i, c := range []struct{ code, want string }{
		{"w := 3; func rw() int { return w }; rw()", "[3]"},
		{"w := float64(w) * 1.5; w", "[4.5]"},
		{"w := fmt.Sprint(w, \"!\"); w", "[4.5!]"},
		{"w = w + w; w", "[4.5!4.5!]"},
		{"w, x := len(w), w; fmt.Sprint(w, x)", "[8 4.5!4.5!]"},
		{"w = 4; rw()", "[3]"},
		{"w := 5; rw()", "[3]"}, // of the type that rw knows, but not its variable
		{"func rw() int { return w }; rw()", "[5]"},
		{"w := 6; rw()", "[6]"},
		{"for w = 0; w < 3; w++ {}; rw()", "[3]"},
		{"type D int; var d D = 3; func rd() int { return int(d) }; rd()", "[3]"},
		{"type D float64; var d D = 2.5; fmt.Sprint(d, rd())", "[2.5 3]"},
		{"const w = \"const\"; fmt.Sprint(w, rw())", "[const 3]"},
		{"w := 7.5; func rf() float64 { return w }; fmt.Sprint(rf(), rw())", "[7.5 3]"},
	} {
		code := strings.ReplaceAll(c.code, "; ", "\n")
		if strings.HasPrefix(c.code, "for ") {
			code = c.code
		}
		res, err := s.Run(i+1, code)
		if err != nil || fmt.Sprint(res.Values) != c.want && strings.ReplaceAll(fmt.Sprint(res.Values), " ", "") != strings.ReplaceAll(c.want, " ", "") {
			t.Errorf("%s: %v %v, want %s", code, res.Values, err, c.want)
		}
	}
	// A failed declaration takes nothing away.
	if _, err := s.Run(20, "w := fmt.Sprint(kit.Must(1))"); err == nil {
		t.Fatal("did not fail")
	}
	if res, err := s.Run(21, "w"); err != nil || fmt.Sprint(res.Values) != "[7.5]" {
		t.Error(res.Values, err)
	}
	// A function declared again with another type: its callers say so.
	if _, err := s.Run(22, "func callee(x int) int { return x }\nfunc caller() int { return callee(1) }"); err != nil {
		t.Fatal(err)
	}
	_, err := s.Run(23, "func callee(x float64) float64 { return x }\ncaller()")
	if err == nil || !strings.Contains(err.Message, "declared again as func(float64) float64") || err.Frames[0].Line != 2 || err.Frames[0].Cell != 22 {
		t.Error(err)
	}
}

func TestRefusedAtTheTopOfACell(t *testing.T) {
	s, _ := newSession(t)
	for _, c := range []struct{ code, place, part string }{
		{"nil", "cell 1:1:1: ", "nil alone"},
		{"x := 1\n  (nil)", "cell 1:2:3: ", "nil alone"},
		{"defer kit.Print(\"a\")\nkit.Print(\"b\")", "cell 1:1:1: ", "defer"},
		{"for i := 0; i < 2; i++ {\n\tdefer kit.Print(\"a\")\n}", "cell 1:2:2: ", "defer"},
		{"x := nil", "cell 1:1:6: ", "untyped nil"},
		{"x := kit.Two(1)", "cell 1:1:6: ", "1 variable but kit.Two returns 2 values"},
		{"1\nvar x = kit.Two(1)", "cell 1:2:9: ", "in single-value context"},
		{"x := 1\nx = kit.Two(1)", "cell 1:2:5: ", "1 variable but kit.Two returns 2 values"},
		{"\"a\" * 2", "cell 1:1:1: ", "mismatched types"},
	} {
		kit.printed = nil
		_, err := s.Run(1, c.code)
		if err == nil || err.Name != "CompileError" || !strings.HasPrefix(err.Message, c.place) || !strings.Contains(err.Message, c.part) || len(err.Frames) == 0 || kit.printed != nil {
			t.Errorf("%s: %v, printed %v; want %s...%s", c.code, err, kit.printed, c.place, c.part)
		}
	}
	for _, code := range []string{"x, err := kit.Two(1)", "x := func() int { return 1 }()", "x := int(2.0)", "x := len(\"abc\")", "var x = append([]int{}, 1)", "x := make([]int, 2)", "x := new(int)", "x := []byte(\"a\")"} {
		if _, err := s.Run(1, code); err != nil {
			t.Errorf("%s: %v", code, err)
		}
	}
	kit.printed = nil
	if _, err := s.Run(2, "(func() {\n\tdefer kit.Print(\"end\")\n\tkit.Print(\"body\")\n})()\nvar e error = nil\ne == nil"); err != nil || !slices.Equal(kit.printed, []string{"body", "end"}) {
		t.Error(err, kit.printed)
	}
}

// Messages do not show what the interpreter is made of.
func TestMessagesAreInGo(t *testing.T) {
	s, _ := newSession(t)
	if _, err := s.Run(1, "i := 5; a := []int{1, 2}; tl := kit.Tools; var e error; func own(x int) int { return x }; func many(x int, y ...float64) {}; type M struct{}; func (m M) All(x int, s ...string) {}; var m M"); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ code, want string }{
		{"own(1, 2)", "want (int)"},
		{"tl.Use()", "want (interface{}, ...interface{})"},
		{"many()", "want (int, ...float64)"},
		{"func g() { many() }", "want (int, ...float64)"},
		{"func g(many func(int, []string)) { many() }", "want (int, []string)"},
		{"m.All()", "want (int, ...string)"},
		{"math.Sin(1)", "undefined: math\nimport it first"},
		{"nothing.Foo()", "undefined: nothing"},
		{"kit.Nothing()", "undefined: kit.Nothing"},
		{"tl.Nothing()", "tl.Nothing undefined (type *cell.Tools has no field or method Nothing)"},
		{"kit.Two(1, 2)", "have (number, number)"},
		{"fmt.Sprintf()", "want (string, ...interface{})"},
		{"i = \"a\"", "cannot use \"a\" (untyped string constant) as int value"},
		{"a[i]", "index out of range of the slice"},
		{"[2]int{}[i]", "index out of range of the array"},
		{"a[1:i]", "bounds out of range of the slice"},
		{"e.Error()", "method call on a nil interface value"},
		{"make([]int, -i)", "make of a slice: negative len"},
	} {
		_, err := s.Run(2, c.code)
		if err == nil || !strings.Contains(err.Message, c.want) {
			t.Errorf("%s: %v, want %q", c.code, err, c.want)
		}
		if err != nil && (strings.Contains(err.Message, "reflect") || strings.Contains(err.Message, "ast.") || strings.Contains(err.Message, "untyped.")) {
			t.Errorf("%s: %v", c.code, err)
		}
	}
}

func TestMakeOfWhatDoesNotFit(t *testing.T) {
	s, _ := newSession(t)
	if _, err := s.Run(1, "type V []float64\nn := 1 << 40; k := int16(3); var u uint64 = 1 << 62"); err != nil {
		t.Fatal(err)
	}
	for _, code := range []string{
		"make([]float64, 1<<40)", "make([]float64, n)", "make([]int8, 10, 1<<50)", "make(V, u)", "make([]string, 1e15)",
		"make(map[string]int, n)", "make(chan int, n)", "make([][4]float64, 1<<36)", "func f(k int) V {\n\treturn make(V, k)\n}\nf(n)",
	} {
		_, err := s.Run(2, code)
		if err == nil || err.Name != "OutOfMemory" || !strings.Contains(err.Message, "this machine has") || err.Frames[0].Line == 0 {
			t.Errorf("%s: %v", code, err)
		}
	}
	for code, want := range map[string]string{
		"len(make([]float64, 1000000))":                                                                     "[1000000]",
		"fmt.Sprint(make([]int, k), make(V, k-1, 9))":                                                       "[[0 0 0] [0 0]]",
		"fmt.Sprint(len(make([]int, 1e3)), cap(make(chan int, k)))":                                         "[1000 3]",
		"m := make(map[int]int, k); m[1]++; m[1]":                                                           "[1]",
		"func g(make func(int, int) int) int { return make(2, 3) }; g(func(a, b int) int { return a * b })": "[6]",
	} {
		if res, err := s.Run(3, strings.ReplaceAll(code, "; ", "\n")); err != nil || fmt.Sprint(res.Values) != want {
			t.Errorf("%s: %v %v, want %s", code, res.Values, err, want)
		}
	}
	for _, c := range []struct{ code, want string }{{"make([]int, \"a\")", "to type int"}, {"make([]int, 2.5)", "truncated to int"}, {"make([]int, nil)", "nil"}} {
		if _, err := s.Run(4, c.code); err == nil || !strings.Contains(err.Message, c.want) {
			t.Errorf("%s: %v", c.code, err)
		}
	}
}

// What gomacro gives a second result shows the first.
func TestCommaOKIsNotShown(t *testing.T) {
	s, _ := newSession(t)
	if _, err := s.Run(1, "m := map[string]int{\"a\": 1}; var x interface{} = 3; a := []int{7}; ch := make(chan int, 1); ch <- 5"); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ code, want string }{
		{"m[\"a\"]", "[1]"}, {"(m[\"b\"])", "[0]"}, {"x.(int)", "[3]"}, {"a[0]", "[7]"}, {"<-ch", "[5]"}, {"v, ok := m[\"b\"]\nfmt.Sprint(v, ok)", "[0 false]"},
	} {
		if res, err := s.Run(2, c.code); err != nil || fmt.Sprint(res.Values) != c.want {
			t.Errorf("%s: %v %v, want %s", c.code, res.Values, err, c.want)
		}
	}
	if _, err := s.Run(3, "1\nx.(string)"); err == nil || err.Name != "Panic" || err.Frames[0].Line != 2 || !strings.Contains(err.Message, "not a string") {
		t.Error(err)
	}
}

// What a loop at the top of a cell says of itself is right, and the loop does what it does anywhere.
func TestLoopsSayHowFarTheyAre(t *testing.T) {
	s, _ := newSession(t)
	var told []Activity
	s.Watch = func(a Activity) bool { told = append(told, a); return true }
	must := func(code string) Result {
		t.Helper()
		res, failed := s.Run(1, code)
		if failed != nil {
			t.Fatalf("%s: %v", code, failed)
		}
		return res
	}
	must("import \"kit\"\nn := 6\nxs := []int{1, 2, 3, 4, 5, 6}\nvar k int\ntype T uint8\n")
	for _, c := range []struct {
		loop        string
		done, total int64
	}{
		{"for i := 0; i < n; i++ { if i == 4 { kit.Poll() } }", 4, 6},
		{"for i := 2; i <= n; i += 2 { if i == 4 { kit.Poll() } }", 2, 5},
		{"for i := n - 1; i >= 0; i-- { if i == 1 { kit.Poll() } }", 4, 6},
		{"for k = 0; k < len(xs); k++ { if k == 4 { kit.Poll() } }", 4, 6},
		{"for u := T(0); u < 6; u++ { if u == 4 { kit.Poll() } }", 4, 0},
		{"for f := 0.0; f < 6; f += 1 { if f == 4 { kit.Poll() } }", 4, 6},
		{"outer:\nfor i := 0; i < 6; i++ { for { if i == 4 { kit.Poll(); break outer }; continue outer } }", 4, 6},
		{"for i := 0; i < 6; i++ { i := i + 1; if i == 5 { kit.Poll() } }", 4, 6},
		{"for _, x := range xs { if x == 5 { kit.Poll() } }", 4, 6},
		{"for i := range xs { if i == 4 { kit.Poll() } }", 4, 6},
		{"for j := 0; ; j++ { if j == 4 { kit.Poll(); break } }", 4, 0},
		{"m := 0\nfor m < 6 { if m == 4 { kit.Poll() }; m++ }", 4, 0},
	} {
		told = nil
		kit.inside = func() { s.tell(time.Now().Add(time.Hour)) }
		must(c.loop)
		if len(told) != 2 || !told[0].Loop || told[0].Done != c.done || told[0].Total != c.total && c.total > 0 || !told[1].Over {
			t.Errorf("%s: %+v, want %d of %d", c.loop, told, c.done, c.total)
		}
	}
	// Drawing counts as a statement, but for that in a loop.
	told = nil
	s.Drawing(func() { s.tell(time.Now().Add(time.Hour)) })
	if len(told) != 2 || !told[0].Drawing || told[0].Over || told[0].Line != 2 || !told[1].Over {
		t.Errorf("drawing: %+v", told)
	}
	told = nil
	kit.inside = func() { s.Drawing(func() { s.tell(time.Now().Add(time.Hour)) }) }
	must("for i := 0; i < 6; i++ { if i == 4 { kit.Poll() } }")
	if len(told) != 2 || !told[0].Loop || told[0].Drawing || told[0].Done != 4 {
		t.Errorf("drawing in a loop: %+v", told)
	}
	// Values, functions that keep the variable, and places of errors are as without.
	res := must("var fs []func() int\nsum := 0\nfor i := 0; i < 4; i++ { sum += i; fs = append(fs, func() int { return i }) }\nsum*10 + fs[0]()")
	if res.Values[0] != 64 {
		t.Errorf("the loop gave %v", res.Values)
	}
	if _, failed := s.Run(7, "x := 1\n\nfor i := 0; i < 3; i++ {\n\txs[i+9] = x\n}"); failed == nil || len(failed.Frames) == 0 || failed.Frames[0].Line != 4 {
		t.Errorf("an error in a loop: %+v", failed)
	}
	if _, failed := s.Run(8, "for i := 0; i < undefinedName; i++ { }"); failed == nil || !strings.Contains(failed.Message, "undefinedName") || failed.Frames[0].Line != 1 {
		t.Errorf("an error in a condition: %+v", failed)
	}
	if _, failed := s.Run(9, "for i := 0; i < 3; i++ { }\ni"); failed == nil {
		t.Error("the variable of a loop is known behind it")
	}
}
