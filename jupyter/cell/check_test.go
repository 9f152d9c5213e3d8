package cell

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cosmos72/gomacro/imports"

	_ "gpunotes/jupyter/bindings"
)

// checked is a session in which no chunk may be too odd to be checked.
func checked(t *testing.T) *Session {
	t.Helper()
	givenUp = func(reason any) { t.Errorf("a chunk was not checked: %v\n%s", reason, debug.Stack()) }
	t.Cleanup(func() { givenUp = nil })
	s := NewSession(nil, nil)
	for i, code := range []string{
		`import ("fmt"; "math"; "strings"; "time"; "os"; "sort"; "errors"; "gpunotes/gpukit"; "gonum.org/v1/gonum/mat")`,
		`n := 3
x := 1.5
s := "text"
ok := true
a := []int{1, 2, 3}
m := map[string]int{"a": 1}
var u8 uint8 = 200
ch := make(chan int, 9)
var out chan<- int = ch
var any1 interface{} = 3
var e error
f := func(p float64) float64 { return p }
const limit = 65
const big = 1 << 40
const typed uint8 = 7`,
		`type I interface { M(int) string }
type P struct { X, Y float64; name string }
func (p P) Len() float64 { return math.Hypot(p.X, p.Y) }
func (p *P) Move(d float64) { p.X += d }
type Q struct { P; tags []string }
func two() (int, error) { return 1, nil }
func plain(a int, b string) float64 { return 0 }
func none() {}
p := P{X: 3, Y: 4}
q := Q{P: p}
gpu := gpukit.MustOpen("cpu")`,
		`func (p P) M(i int) string { return fmt.Sprint(p.Len(), i) }`,
	} {
		if _, err := s.Run(i+1, code); err != nil {
			t.Fatal(strings.Join(err.Traceback(), "\n"))
		}
	}
	return s
}

// Each of these is wrong Go that gomacro takes or says little about; place is that of the first error.
func TestWrongCellsAreRefused(t *testing.T) {
	s := checked(t)
	s.ir.DeclVar("ran", nil, false)
	for _, c := range []struct{ code, place, part string }{
		// A number is no text, and text no number.
		{`"a" + 65`, "1:1", "fmt.Sprint"},
		{`var v string = 97`, "1:16", "cannot use 97"},
		{`m[65]`, "1:3", "map index"},
		{`m[limit] = 2`, "1:3", "map index"},
		{`"abc" == 97`, "1:10", "mismatched types"},
		{`s == 97`, "1:6", "mismatched types"},
		{`[]string{1, 2}`, "1:10", "cannot use 1"},
		{`map[string]int{65: 1}`, "1:16", "cannot use 65"},
		{`strings.ToUpper(97)`, "1:17", "argument to strings.ToUpper"},
		{`func r() string { return 97 }`, "1:26", "return statement"},
		{`s = 97`, "1:5", "cannot use 97"},
		{`s += 97`, "1:1", "mismatched types"},
		{`switch s { case 97: }`, "1:17", "cannot convert 97"},
		{`plain(1, 97)`, "1:10", "cannot use 97"},
		{`P{name: 97}`, "1:9", "cannot use 97"},
		{`append([]string{}, 97)`, "1:20", "cannot use 97"},
		{`(chan string)(nil) <- 97`, "1:23", "cannot use 97"},
		{`s + n`, "1:1", "mismatched types"},
		{`n + s`, "1:1", "strconv"},
		{`int("3")`, "1:5", "strconv"},
		// Names that are declared twice.
		{`func r(a int, a float64) int { return 1 }`, "1:15", "a redeclared"},
		{`func r(a int) (a float64) { return 1 }`, "1:16", "a redeclared"},
		{`func (p P) R(p int) int { return 1 }`, "1:14", "p redeclared"},
		{`v := func(a, a int) {}`, "1:14", "a redeclared"},
		{"func (p P) R() {}\nfunc (p P) R() {}", "2:12", "P.R is declared twice"},
		{"type V struct{ a int }\nfunc (w V) R() {}\nfunc (w *V) R() {}", "3:13", "R already declared"},
		{`type W struct{ a, a int }`, "1:21", "multiple fields"},
		{`type W interface{ R(); R() }`, "1:25", "multiple methods"},
		// Numbers.
		{`uint8(200) + 100`, "1:1", "overflows"},
		{`var v uint8 = 256`, "1:15", "overflows"},
		{`u8 + 300`, "1:6", "overflows"},
		{`typed + 250`, "1:1", "overflows"},
		{`uint(-1)`, "1:6", "overflows"},
		{`n + x`, "1:1", "float64(...)"},
		{`n * 2.5`, "1:5", "float64(...)"},
		{`math.Sqrt(n)`, "1:11", "write float64(n)"},
		{`n = x`, "1:5", "write int(x)"},
		{`n * time.Second`, "1:1", "time.Duration(n)"},
		{`1 << -1`, "1:6", "negative shift"},
		{`x << 2`, "1:1", "shift"},
		{`n / 0`, "1:5", "division by zero"},
		{`n % 0`, "1:5", "division by zero"},
		{`x % 2`, "1:1", "operator %"},
		{`-s`, "1:2", "operator -"},
		{`!n`, "1:2", "operator !"},
		{`ok + ok`, "1:1", "operator +"},
		{`n && ok`, "1:1", ""},
		// Calls, results, returns.
		{"func r(x int) int {\n\tif x > 0 { return 1 }\n}", "3:1", "missing return"},
		{"func (p P) R() int {\n\tfor n > 0 { return 1 }\n}", "3:1", "missing return"},
		{"g := func() int {\n}", "2:1", "missing return"},
		{`plain(1)`, "1:8", "not enough arguments"},
		{`plain(1, "a", 2)`, "1:15", "too many arguments"},
		{`plain("a", 1)`, "1:7", "cannot use"},
		{`v := none()`, "1:6", "used as value"},
		{`v := two()`, "1:6", "2 values"},
		{`v, w := 1, 2, 3`, "1:9", "assignment mismatch"},
		{`func r() (int, error) { return 1 }`, "1:32", "not enough return values"},
		{`func r() { return 1 }`, "1:19", "too many return values"},
		{`n()`, "1:1", "cannot call"},
		{`f(1, 2)`, "1:6", "too many arguments"},
		{`gpu.Launch(f, gpukit.Threads(4), gpukit.Blocks(3))`, "1:15", "gpukit.Blocks(3), gpukit.Threads(4)"},
		{`gpu.Vectorize()`, "1:15", "not enough arguments"},
		{`p.Move("a")`, "1:8", "cannot use"},
		{`q.Move()`, "1:8", "not enough arguments"},
		{`go none`, "1:8", "must be invoked"},
		{`a = append(a, "x")`, "1:15", "cannot use"},
		{`len(n)`, "1:5", "built-in len"},
		{`make(int)`, "1:6", "cannot make"},
		{`copy(a, s)`, "1:6", ""},
		{`delete(a, 1)`, "1:8", "not a map"},
		// Interfaces, assertions, conversions.
		{`var _ I = n`, "1:11", "missing method M"},
		{"type T struct{}\nvar _ I = T{}", "2:11", "missing method M"},
		{"type T struct{}\nfunc (t *T) M(int) string { return \"\" }\nvar _ I = T{}", "3:11", "&"},
		{`var v fmt.Stringer = p`, "1:22", "missing method String"},
		{`sort.Sort(a)`, "1:11", "missing method Len"},
		{`var v error = "bad"`, "1:15", "missing method Error"},
		{`func r() error { return "bad" }`, "1:25", "missing method Error"},
		{`n.(int)`, "1:1", "not an interface"},
		{`e.(P)`, "1:1", "missing method Error"},
		{`switch n.(type) { }`, "1:8", "not an interface"},
		{`[]int(s)`, "1:7", "cannot convert"},
		{`P(n)`, "1:3", "cannot convert"},
		{`var v []byte = "abc"`, "1:16", "as []byte value"},
		// Composite values, indices, channels, statements.
		{`P{1, 2}`, "1:7", "too few values"},
		{`P{Z: 1}`, "1:3", "unknown field Z"},
		{`P{X: 1, X: 2}`, "1:9", "duplicate field"},
		{`map[string]int{"a": 1, "a": 2}`, "1:24", "duplicate key"},
		{`[2]int{1, 2, 3}`, "1:14", "out of bounds"},
		{`[3]int{}[5]`, "1:10", "out of bounds"},
		{`a["x"]`, "1:3", ""},
		{`a[1.5]`, "1:3", "truncated"},
		{`a[-1]`, "1:3", "must not be negative"},
		{`n[0]`, "1:1", "cannot index"},
		{`a[2:1]`, "1:5", "invalid slice ind"},
		{`var v map[[]int]int`, "1:11", "map key"},
		{`a == a`, "1:1", "slice can only be compared to nil"},
		{`<-out`, "1:3", "receive from send-only"},
		{`ch <- "a"`, "1:7", "cannot use"},
		{`n <- 1`, "1:3", "non-channel"},
		{`*n`, "1:2", "cannot indirect"},
		{`&3`, "1:2", "cannot take address"},
		{`3 = n`, "1:1", "cannot assign"},
		{`limit = 3`, "1:1", "cannot assign"},
		{`map[string]P{}["a"].X = 1`, "1:1", "cannot assign"},
		{`s++`, "1:1", "non-numeric"},
		{"if n {\n}", "1:4", "x != 0"},
		{"for n {\n}", "1:5", "condition"},
		{`if n > 0 { n == 1 }`, "1:12", "= assigns"},
		{`func r() { append(a, 1) }`, "1:12", "not used"},
		{`for range n {}`, "", ""},
		{`for i, v := range ch {}`, "1:8", "permits only one"},
		{`switch n { case 1: case 1: }`, "1:25", "duplicate case"},
		{`switch { case 1: }`, "1:15", "type bool"},
		{`for { break L }`, "1:13", "label"},
		{`break`, "1:1", "break"},
		{`var v T9`, "1:7", "undefined: T9"},
		{`var v n`, "1:7", "is not a type"},
		{`P`, "1:1", "?P describes it"},
		{`x := nil`, "1:6", "untyped nil"},
		{`const c = n`, "1:11", "not constant"},
		{`type R struct { r R }`, "1:6", "recursive"},
		// Names, with what they may have been meant to be.
		{`fmt.println(1)`, "1:5", "did you mean fmt.Println?"},
		{`strings.ToUppr(s)`, "1:9", "did you mean strings.ToUpper?"},
		{`maht.Sin(1)`, "1:1", "did you mean math?"},
		{`Math.Sin(1)`, "1:1", "did you mean math?"},
		{`Println(1)`, "1:1", "did you mean fmt.Println?"},
		{`rand.Intn(3)`, "1:1", `import it first: import "math/rand"`},
		{`func r() int { return bits.Len(3) }`, "1:23", `import it first: import "math/bits"`},
		{`strconv.Itao(3)`, "1:1", "did you mean strconv.Itoa?"},
		{`slices.Sort(a)`, "1:1", "sort.Ints"},
		{`netip.MustParseAddr("x")`, "1:1", "--with net/netip"},
		{`gpu.Vectorise(f, 1)`, "1:5", "did you mean Vectorize?"},
		{`p.x`, "1:3", "did you mean X?"},
		{`q.Lenn()`, "1:3", "did you mean Len?"},
		{`q.nam`, "1:3", "did you mean name?"},
		{`limitt + 1`, "1:1", "did you mean limit?"},
		{`func r(width int) int { return widht }`, "1:32", "did you mean width?"},
		{"below()\nfunc below() {}", "1:1", "declared in line 2"},
		{`mat.NewDense(1, 2)`, "1:18", "not enough arguments"},
		{`os.ReadFil("x")`, "1:4", "did you mean os.ReadFile?"},
		{`time.Now().Yeer()`, "1:12", "did you mean Year?"},
		{`import "C"`, "1:8", "cannot contain C"},
		{`import "nosuchpkg"`, "1:8", "standard library has no such package"},
		{`import "maths"`, "1:8", `did you mean "math"?`},
		{"goto L\nL:\n\tn++", "1:6", "a for loop"},
		// Within a cell what stands above counts.
		{"v := 3\nv := \"a\"\nv * 2", "3:1", "mismatched types"},
		{"type T struct{ A int }\nt := T{1}\nt.B", "3:3", "no field or method B"},
		{"import \"bytes\"\nbytes.ToUpper(3)", "2:15", "cannot use 3"},
		{"ran = true\nn, s, \"a\" + 1", "2:7", "mismatched types"},
		{"ran = true\n\n// é\nü := \"é\" + 1", "4:7", "mismatched types"},
		// Syntax.
		{"if n > 1\n{\n}", "1:9", "put the { at its end"},
		{"for n > 1\n{\n}", "1:10", "put the { at its end"},
		{"if n = 3 {\n}", "1:4", "== compares"},
		{"if ok {\n}\nelse {\n}", "3:1", "in the line of the }"},
	} {
		_, err := s.Run(7, c.code)
		switch {
		case c.place == "":
			if err == nil {
				t.Errorf("%s: was taken", c.code)
			}
		case err == nil || !strings.HasPrefix(err.Message, "cell 7:"+c.place+": ") || !strings.Contains(err.Message, c.part):
			t.Errorf("%s: %v; want cell 7:%s: ...%s...", c.code, err, c.place, c.part)
		case len(err.Traceback()) < 4 || !strings.HasSuffix(err.Traceback()[3], "^"):
			t.Errorf("%s: no caret:\n%s", c.code, strings.Join(err.Traceback(), "\n"))
		}
		if v, _ := s.Lookup("ran"); v.Bool() {
			t.Fatalf("%s: ran", c.code)
		}
	}
}

// What programmers of other languages write first says what Go has in its place.
func TestHabitsOfOtherLanguages(t *testing.T) {
	s := checked(t)
	if _, err := s.Run(5, "import \"gpunotes/gpukit/simt\"\nA := gpukit.Arange(3)"); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ code, hint string }{
		// A call that returns an error, too, where one value belongs.
		{`z := gpu.Vectorize(math.Sin, A)`, "gpu.Vectorize returns an error, too: write z, err := gpu.Vectorize(...), or gpukit.Must(gpu.Vectorize(...)), which stops the cell"},
		{`var z = gpu.Vectorize(math.Sin, A)`, "gpukit.Must(gpu.Vectorize(...))"},
		{`gpu.Vectorize(math.Sin, A).Sum()`, "gpukit.Must(gpu.Vectorize(...))"},
		{`fmt.Sprint(gpu.Vectorize(math.Sin, A), 1)`, "gpukit.Must(gpu.Vectorize(...))"},
		{`func r() *gpukit.Array { z := gpu.Vectorize(math.Sin, A); return z }`, "gpukit.Must(gpu.Vectorize(...))"},
		{`n = two()`, "two returns an error, too: write n, err := two()"},
		{`two() + 1`, "write v, err := two() in a line of its own"},
		{`f(two())`, "write v, err := two() in a line of its own"},
		// Arrays.
		{`A + 1`, "gpu.Vectorize(f, a, b)"},
		{`A * A`, "gpu.Vectorize(f, a, b)"},
		{`x * A`, "gpu.Vectorize(f, a, b)"},
		{`A[0]`, "At(i)"},
		{`A[1:2]`, "Slice(axis, from, to, step)"},
		{`len(A)`, "Size()"},
		{`for v := range A { _ = v }`, "Float64s()"},
		{`math.Sin(A)`, "gpu.Vectorize(math.Sin, A)"},
		{`math.Sin([]float64{1, 2})`, "gpu.Vectorize(math.Sin, []float64{…})"},
		{`var v []float64 = A`, "A.Float64s()"},
		{`var v *gpukit.Array = x`, "gpukit.Full(v, n)"},
		{`A.shape`, "does have method Shape"},
		{`np.linspace(0, 1, 3)`, "did you mean gpukit.Linspace?"},
		{`np.sin(x)`, "did you mean math.Sin?"},
		{`gpukit.Zeros((2, 3))`, "without parentheses"},
		// Operators and literals.
		{`x ** 2`, "math.Pow(x, y)"},
		{`v := 2 ** n`, "math.Pow(x, y)"},
		{`x ^ 2`, "exclusive or"},
		{`x ^= 2`, "exclusive or"},
		{`ok and ok`, "&&"},
		{`not ok`, "! for not"},
		{`x if ok else n`, "write an if"},
		{`ok ? 1 : 2`, "write an if"},
		{`++n`, "write n++"},
		{`n++ + 1`, "statements of their own"},
		{`x = x = 3`, "x, y = 3, 3"},
		{`a = [1, 2, 3]`, "[]float64{1, 2, 3}"},
		{`a[-1]`, "a[len(a)-1]"},
		{`'abc'`, "double quotation marks"},
		{`f"{x}"`, "fmt.Sprint"},
		{`# comment`, "begin with //"},
		{`x := 3 # comment`, "begin with //"},
		// Statements and declarations.
		{`def r(x): return x`, "func f(x float64)"},
		{`v := lambda x: x`, "func(x float64)"},
		{"for i in range(10):\n\tfmt.Print(i)", "for i := 0; i < n; i++"},
		{`while ok { }`, "only loop is for"},
		{`import numpy as np`, "quotation marks"},
		{`import math`, "quotation marks"},
		{`from math import sin`, "quotation marks"},
		{"if ok {\n} elif n > 1 {\n}", "else if"},
		{`if (x > 3) n = 2`, "in braces"},
		{`if x > 3:`, "in braces"},
		{`int v = 3`, "v := 3"},
		{`let v = 3`, "v := 3"},
		{`const c = math.Sin(1)`, "write c := ..."},
		{`for i := 0, i < 3, i++ { }`, "separated by semicolons"},
		{`for (i := 0; i < 3; i++) { }`, "no parentheses"},
		{`print "a"`, "fmt.Println"},
		{`print(f"{x}")`, "fmt.Sprintf"},
		{`func r(x: float64) -> float64 { return x }`, "without a colon"},
		{`func r(float64 v) float64 { return v }`, "behind the name: v float64"},
		{`func r(v, w) float64 { return v }`, "behind it: v float64"},
		{`func r(float) int { return 1 }`, "did you mean float64?"},
		{`func r(v float64) { return v }`, "behind the parameters"},
		{`return 3`, "alone in its last line"},
		{`const int N = 3`, "behind the name: N int"},
		{`var float64 v`, "behind the name: v float64"},
		{`type V struct { a int, b int }`, "by semicolons"},
		{`struct V { a int }`, "type T struct"},
		{`class V { }`, "type T struct"},
		{`#include <math.h>`, "import \"math\""},
		{`unseen = 5`, "to declare it, write unseen := ..."},
		{`func r() { unseen = 5 }`, "to declare it, write unseen := ..."},
		{`func r(width int) { widht = 5 }`, "did you mean width? To declare it,"},
		{`limi = 5`, "to declare it, write limi := ..."},
		{`any2 = 5`, "did you mean any1? To declare it, write any2 := ..."},
		{`for i = 0; i < 3; i++ { }`, "write i := ..."},
		{`for i = range a { }`, "write := before range"},
		{`x % 2`, "math.Mod"},
		{`[]float64{1, 2} * 2`, "gpu.Vectorize(f, a, b)"},
		{`a + a`, "gpu.Vectorize(f, a, b)"},
		{"x\n$ls", "at the top of a cell"},
		// Names and methods.
		{`sin(x)`, "did you mean math.Sin?"},
		{`pi`, "did you mean math.Pi?"},
		{`sqrt(x)`, "did you mean math.Sqrt?"},
		{`v := null`, "did you mean nil?"},
		{`float(n)`, "did you mean float64?"},
		{`a.append(3)`, "a = append(a, x)"},
		{`a.length`, "len(a)"},
		{`s.size()`, "len(s)"},
		{`s.split(",")`, "did you mean strings.Split(s, ...)?"},
		// CUDA and numba.
		{`func k(x []float64) { i := blockIdx.x; x[i] = 1 }`, "did you mean simt.BlockIdx()?"},
		{`func k(x []float64) { __syncthreads() }`, "did you mean simt.SyncThreads?"},
		{`func k(x []float64) { syncthreads() }`, "did you mean simt.SyncThreads?"},
		{`func k(x []float64) { i := cuda.grid(1); x[i] = 1 }`, "did you mean simt.Grid1?"},
		{`func k(x []float64) { simt.AtomicAdd(&x[0], 1) }`, "did you mean simt.AddFloat32 or simt.AddFloat64 or"},
		{`func k(x []float64) { simt.AddInt64(&x[0], 1) }`, "simt.AddFloat64 for a float64"},
		{"func k(x []float64) {\n\t__shared__ float part[256]\n}", "simt.Shared(&part)"},
		// Names of cells that have not run.
		{`gqu.Vectorize(math.Sin, A)`, "did you mean gpu?"},
		{`waiting.Vectorize(math.Sin, A)`, "run the cells above first"},
		// Names of blocks that have ended.
		{"for iter := 0; iter < 3; iter++ {\n}\nfmt.Println(iter)", "iter is declared in line 1, in a block that ends before"},
		{"func r() error {\n\tif failed := error(nil); failed != nil {\n\t}\n\treturn failed\n}", "failed is declared in line 2, in a block that ends before"},
		{"if ok {\n\tvar inner int\n\t_ = inner\n}\ninner + 1", "inner is declared in line 2, in a block that ends before"},
		{"if ok {\n\tqq := qq + 1\n\t_ = qq\n}", "nothing that has run declares qq"},
		// A question where it is none.
		{"x\n?x", "at the top of a cell"},
		{"x\nx?", "at the top of a cell"},
	} {
		_, err := s.Run(7, c.code)
		if err == nil || !strings.Contains(err.Message, c.hint) {
			t.Errorf("%s: %v; want the hint %s", c.code, err, c.hint)
		}
	}
	if _, err := s.Run(8, "gpukit.Must(gpu.Vectorize(nothing, A), nil)\ngpukit.Must(absent)"); err == nil || len(err.Also) != 2 {
		t.Errorf("an unknown name leads to other errors: %+v", err)
	}
	fresh := NewSession(nil, nil)
	if _, err := fresh.Run(1, "sin(1)"); err == nil || !strings.Contains(err.Message, `did you mean math.Sin? It needs import "math"`) {
		t.Error(err)
	}
	for i, c := range []struct{ code, hint string }{
		{"w := \"a,b\"\nw.split(\",\")", `did you mean strings.Split(w, ...)? It needs import "strings"`},
		{"import str \"strings\"\nw := \"a,b\"\nw.split(\",\")", "did you mean str.Split(w, ...)?"},
	} {
		if _, err := fresh.Run(2+i, c.code); err == nil || !strings.HasSuffix(err.Message, c.hint) {
			t.Errorf("%s: %v", c.code, err)
		}
	}
}

// All errors of a cell are shown, each with its line.
func TestAllErrorsOfACell(t *testing.T) {
	s := checked(t)
	code := "v := s + 1\nw := v * 2\n\nfmt.Prinln(w)\nnope(nope)\nimport \"no/such\""
	_, err := s.Run(9, code)
	if err == nil {
		t.Fatal("was taken")
	}
	lines := strings.Split(strings.Join(err.Traceback(), "\n"), "\n")
	want := []string{"CompileError: cell 9:1:6: ", "cell 9:4:5: undefined: fmt.Prinln", "cell 9:5:1: undefined: nope", "ImportError: cell 9:6:8: "}
	for _, w := range want {
		if !slices.ContainsFunc(lines, func(l string) bool { return strings.Contains(l, w) }) {
			t.Errorf("no line has %q:\n%s", w, strings.Join(lines, "\n"))
		}
	}
	if len(err.Also) != len(want)-1 {
		t.Errorf("%d more errors:\n%s", len(err.Also), strings.Join(lines, "\n"))
	}
	if _, err := s.Run(10, strings.Repeat("s = 1\n", 5)+"a = 1\nn = s\n"+strings.Repeat("m = 2\nok = s\nx = s\n", 9)); err == nil || len(err.Also) > maxFaults-1 {
		t.Errorf("%+v", err)
	}
	rest, _, _ := Directives("%errcheck on\n%cd /\nn + s")
	if _, err := s.Run(11, rest); err == nil || !slices.Contains(err.Traceback(), "     3 | n + s") || err.Frames[0].Col != 1 {
		t.Error(err)
	}
}

// What is right in a notebook must run, in this order.
func TestRightCellsPass(t *testing.T) {
	s := checked(t)
	for i, code := range []string{
		`n := "was an int"`, `n = n + "!"`, `n := 5`, `n := n + 1`, "n, err := two()\nn, err := two()\nerr", `x, n := n, x`,
		`const limit = "text"`, `limit + "a"`,
		`unused := 3`, `import "regexp"`, "import \"fmt\"\nimport \"fmt\"", `import str "strings"`, `str.ToUpper("a")`,
		"func r() { unused := 1; v := 2; v := 3; fmt.Print(v) }", "if true { v := 1; v := 2; _ = v }",
		`p, s, 1 + 2`, `two(), 3`, `m["a"], 3`, `x`, `1 + 2`, `p`, `p.X == 3`, `f`, `a[0]`, `m["a"]`, `<-(func() chan int { c := make(chan int, 1); c <- 1; return c })()`,
		`any1.(int)`, `two()`, `none()`, `fmt.Sprint()`, `_ = 3`, `_ := 3`, `_, v := two()`, `error(nil)`,
		"type P struct { X, Y float64; name string }\np = P{X: 1}\np.Len()", // declared again, it is the same type and keeps its methods
		"type P struct { X, Y float64; name string }\nfunc norm() float64 { return p.Len() + q.Len() }\nnorm()",
		"func (p P) More() float64 { return 1 }\nfunc (p P) Extra() float64 { return p.Len() + p.More() }", `p.Extra()`,
		"func (p P) Extra() string { return \"now text\" }\np.Extra() + \"a\"", `p.Extra() + "a"`,
		"type P struct { A string }\np := P{\"a\"}\np.A", `p.A + "b"`,
		"type D int\nvar d D = 3\nd + 1", `d * 2`, "type D string\nd := D(\"a\")", `d + "b"`,
		"type L struct { next *L; v int }\nl := &L{v: 1}\nl = &L{l, 2}\nl.v",
		"type Shape interface { Area() float64 }\ntype Sq struct{ a float64 }\nfunc (s Sq) Area() float64 { return s.a * s.a }\nvar sh Shape = Sq{2}\nsh.Area()", `sh.(Sq).a`,
		"func even(n int) bool { if n == 0 { return true }; return odd(n - 1) }\nfunc odd(n int) bool { if n == 0 { return false }; return even(n - 1) }\neven(4)",
		"func r() int { for {} }", "func r() int { panic(1) }", "func r(n int) int { switch { case n > 0: return 1; default: return 2 } }",
		"func r() (v int, err error) { v = 1; return }", "r()",
		`var v uint8 = 255`, `v + 1`, `uint8(200) + 55`, `1 << 3`, `1 << uint(3)`, `float64(1 << 3)`, `2.5 / 0.5`, `math.MaxUint32`, `uint64(math.MaxUint64)`, `'a' + 1`, `string(rune(65)) + "b"`,
		`time.Duration(3) * time.Second`, `3 * time.Second`, `time.Now().Year() > 2000`, `time.January + 1`, `time.Second.Seconds() / 2`,
		`os.FileMode(0644) | os.ModeDir`, `var rd interface{ Read([]byte) (int, error) } = strings.NewReader("a")`, `fmt.Fprint(os.Stderr)`,
		`errors.As(errors.New("a"), &e)`, `sort.Slice(a, func(i, j int) bool { return a[i] < a[j] })`, `sort.Sort(sort.Reverse(sort.IntSlice(a)))`,
		`var st fmt.Stringer = time.Second`, `st.String()`, `switch v := any1.(type) { case int: _ = v + 1; case string: _ = v + "a" }`,
		`Z := gpukit.Must(gpu.Vectorize(math.Sin, []float64{1, 2}))`, `Z.Sum()`, `gpukit.Linspace(0, 1, 5).As(gpukit.Float32)`,
		`mat.NewDense(2, 2, []float64{1, 2, 3, 4}).At(0, 1)`, `var mm mat.Matrix = mat.NewDense(2, 2, nil)`, `mat.Sum(mm)`,
		`for i := 0; i < 3; i++ { go func(i int) { ch <- i }(i) }`, `for i := 0; i < 3; i++ { <-ch }`, `select { case v := <-ch: _ = v; default: }`,
		"outer:\nfor i := 0; i < 3; i++ { for { if i > 1 { break outer }; continue outer } }", "unusedLabel:\nfor false {}",
		`(func() int { return 3 })() + 1`, "import . \"math/bits\"\nLen(8)", `Len(8)`, `OnesCount(7)`,
		`var any2 interface{} = p`, `any2 == nil`, `map[string]interface{}{"a": 1, "b": "c", "d": []int{1}}`, `[]interface{}{1, "a", nil}`, `[...]string{2: "a", 0: "b"}`,
		`struct{ A int; b string }{1, "a"}`, `anon := []struct{ A int; b string }{{1, "a"}}`, `anon[0].b`, `fn := map[string]func(float64) float64{"sin": math.Sin, "f": f}`, `fn["sin"](0)`,
		`len := 3`, `len + 1`, "func main() { fmt.Print() }", `main()`, "func (p P) _() {}\nfunc (p P) _() {}", "func r(_, _ int) (_ int) { return 1 }", "func init() { n = n }", `var i interface{ M(int) string }`, `complex(1, 2) * 1i`, `real(1i)`,
		`make([]int, 3, 4)`, `append([]byte("a"), "b"...)`, `copy(make([]byte, 3), "abc")`, `new(int)`, `fmt.Println(two())`, "defer0 := 1", `(func() { defer close(make(chan int)) })()`,
	} {
		if _, err := s.Run(20+i, code); err != nil {
			t.Errorf("%s: %s", code, strings.Join(err.Traceback(), "\n"))
		}
	}
}

// gophernotes' package display has functions and interfaces of one name.
func TestMembersOfTwoKinds(t *testing.T) {
	imports.Packages["twofold"] = imports.Package{
		Name:  "twofold",
		Binds: map[string]reflect.Value{"Image": reflect.ValueOf(func(n int) string { return "made" })},
		Types: map[string]reflect.Type{"Image": reflect.TypeFor[fmt.Stringer]()},
	}
	defer delete(imports.Packages, "twofold")
	s := checked(t)
	if res, err := s.Run(1, "import \"twofold\"\nstrings.ToUpper(twofold.Image(3))"); err != nil || res.Values[0] != "MADE" {
		t.Error(res, err)
	}
	if _, err := s.Run(2, "var v twofold.Image = time.Second\nv.String()"); err != nil {
		t.Error(err)
	}
}

// Every cell of the notebooks passes. They are compiled one after another, not run.
func TestNotebooksPass(t *testing.T) {
	files, err := filepath.Glob("../../notebooks/[0-9][0-9]-*.ipynb")
	if err != nil || len(files) < 5 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var book struct {
			Cells []struct {
				Type   string `json:"cell_type"`
				Source any    `json:"source"`
			} `json:"cells"`
		}
		if err := json.Unmarshal(data, &book); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		givenUp = func(reason any) { t.Errorf("%s: a chunk was not checked: %v", file, reason) }
		s := NewSession(nil, nil)
		n := 0
		for _, c := range book.Cells {
			if c.Type != "code" {
				continue
			}
			text, _ := c.Source.(string)
			if lines, ok := c.Source.([]any); ok {
				for _, l := range lines {
					text += fmt.Sprint(l)
				}
			}
			n++
			rest, expect, _ := Directives(text)
			src, nodes, failed := s.parse(n, rest)
			if failed == nil {
				for _, chunk := range src.chunks(nodes) {
					if list := valuesOf(chunk.Nodes[0]); list != nil {
						continue
					}
					if _, failed = s.compile(src, chunk); failed != nil {
						break
					}
				}
			}
			if failed != nil && !expect {
				t.Errorf("%s, code cell %d: %s", file, n, strings.Join(failed.Traceback(), "\n"))
			}
		}
		if n < 3 {
			t.Errorf("%s has %d cells", file, n)
		}
	}
	givenUp = nil
}

// Every member of every package that cells can import can be made known to go/types.
func TestEveryPackageIsKnown(t *testing.T) {
	w := newCompiled()
	for path := range imports.Packages {
		scope := w.all(path).Scope()
		for _, name := range membersOf(path) {
			obj := scope.Lookup(name)
			if obj == nil || obj.Type() == invalid {
				t.Errorf("%s.%s is %v", path, name, obj)
			}
		}
	}
}

// The numbers of kinds of errors are those of this release of Go.
func TestNumbersOfErrors(t *testing.T) {
	s := checked(t)
	for code, want := range map[string]int{
		"nope": undeclaredName, "fmt.Nope()": undeclaredImportedName, "p.Nope": missingFieldOrMethod, "P": notAnExpr,
		"func r() { n }": unusedExpr, "func r() { v := 1; v := 2; _ = v }": noNewVar, "func r() { var v int; var v string; _ = v }": duplicateDecl,
	} {
		src := &source{cell: 1, code: code}
		g := &s.ir.Comp.Globals
		start := g.Fileset.Base()
		nodes := g.ParseBytes([]byte(code))
		src.file = fileAt(g.Fileset, start)
		n := newNotebook(newCompiled(), s.ir.Comp)
		n.src, n.nodes = src, nodes
		l := &look{notebook: n, pkg: home(), imported: map[string]string{}}
		l.build(src.chunks(nodes)[0])
		l.supply()
		l.run(false)
		if !slices.ContainsFunc(l.faults, func(f fault) bool { return f.code == want }) {
			t.Errorf("%s: %+v, want one of the number %d", code, l.faults, want)
		}
	}
}

// The check of a small cell takes a small part of a millisecond, and keeps nothing.
func TestCheckIsFast(t *testing.T) {
	s := checked(t)
	const code = "y := math.Sqrt(x) + p.Len()\nfmt.Sprint(y, s)"
	run := func() {
		if _, _, failed := s.parse(1, code); failed != nil {
			t.Fatal(failed)
		}
	}
	run()
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	const rounds = 2000
	start := time.Now()
	for range rounds {
		run()
	}
	each := time.Since(start) / rounds
	runtime.GC()
	runtime.ReadMemStats(&after)
	grown := (int64(after.HeapAlloc) - int64(before.HeapAlloc)) / rounds
	t.Logf("%v and %d bytes for a cell, parsing included", each, grown)
	if each > 2*time.Millisecond || grown > 1000 {
		t.Errorf("%v and %d bytes for a cell", each, grown)
	}
}
