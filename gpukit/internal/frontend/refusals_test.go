package frontend

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"reflect"
	"sort"
	"strconv"
	"strings"
	"testing"
)

// refusals has at least one program for each Code. The function is f; /*!*/
// stands before each offending token, in order of position when there are
// several. A name "global_T" is a notebook variable of type T, "refused" one
// that cannot be captured, "local" a local of an enclosing function.
var refusals = []struct {
	code Code
	src  string
	says string // part of a message
}{
	{CodeGoto, "func f(x int) int { again: x++; if x < 0 { /*!*/goto again }; return x }", "goto again"},
	{CodeDefer, "func g() {}; func f(x int) int { /*!*/defer g(); return x }", "defer g"},
	{CodeGo, "func g() {}; func f(x int) int { /*!*/go g(); return x }", "go g"},
	{CodeSelect, "func f(x int) int { /*!*/select {}; return x }", ""},
	{CodeSend, "func f(x int) int { var c /*chan*/ /*!!*/chan int; c /*!*/<- 1; return x }", "send c <- 1"},
	{CodeTypeSwitch, "func f(x int) int { /*!*/switch any(x).(type) { case int: return 1 }; return x }", ""},
	{CodeRange, "func f(x int) int { for range /*!*/\"abc\" { x++ }; return x }", `range over "abc", of type`},
	{CodeReceive, "func f(x int) int { var c /*!!*/chan int; return x + /*!*/<-c }", "<-c"},
	{CodeFuncLit, "func f(x int) int { g := /*!*/func() int { return 1 }; return x + g() }", ""},
	{CodeFuncLit, "func f(x int) int { return /*!*/func() int { return x }() }", ""},
	{CodeFuncValue, "import \"math\"; func f(x float64) float64 { g := /*!*/math.Sin; return g(x) }", "math.Sin is used as a value"},
	{CodeFuncValue, "func g(x int) int { return x }; func f(x int) int { h := /*!*/g; return h(x) }", "function g"},
	{CodeCompositeLit, "func f(x int) int { a := /*!*/[]int{1, 2}; return a[0] + x }", "[]int{…}"},
	{CodeIndex, "func f(x int) int { return x + int(/*!*/\"abc\"[x]) }", `"abc"[x]`},
	{CodeSliceExpr, "func f(x int) int { s := /*!*/\"abc\"[x:]; return x + len(s) }", ""},
	{CodeSliceExpr, "func f(a []int) int { return len(/*!*/a[0:1:2]) }", "with a capacity"},
	{CodeSliceExpr, "func f(x int) int { return len(/*!*/global_array[x:]) + len(a2(x)) }; func a2(x int) [2]int { var a [2][3]int; b := /*!*/a[:]; return [2]int{len(b), x} }", "slice a[:], of type [][3]int"},
	{CodeSliceElement, "func f(a [][]float64) { /*!*/a[0] = a[1] }", "a[0], a row of a"},
	{CodeTwoArrays, "func f(a, b []float64, x int) float64 { s := a; if x > 0 { /*!*/s = b }; return s[0] }", "s is a view of a and here becomes one of b"},
	{CodeTwoArrays, "func f(a, b [][]float64) { r, q := a[0], b[0]; /*!*/r, q = q, r; r[0] = q[0] }", "r is a view"},
	{CodeTwoArrays, "func f(n int) (x int) { var /*!*/s []int; for i := range n { var a [3]int; a[0] = i; if i > 0 { x += s[0] }; s = a[:] }; return }", "outlives"},
	{CodeTwoArrays, "func f(n int) (x int) { var /*!*/s []int; for a := [3]int{}; n > 0; n-- { if n == 2 { x += s[0] }; s = a[:] }; return }", "outlives"},
	{CodeAtomic, "import \"sync/atomic\"; func f(n int64) int64 { return atomic.AddInt64(/*!*/&n, 1) }", "&n"},
	{CodeAtomic, "import \"gpunotes/gpukit/simt\"; func f(x int32) int32 { var a [3]int32; return simt.AddInt32(/*!*/&a[0], x) }", "no other thread sees"},
	{CodeAtomic, "import \"sync/atomic\"; func add(x []int32) int32 { return /*!*/atomic.AddInt32(&x[0], 1) }; func f(y []int32) int32 { var a [3]int32; return add(y) + add(a[:]) }", "the array a, which no"},
	{CodeShared, "import \"gpunotes/gpukit/simt\"; func f(x []float64) { simt.Shared(/*!*/&x[0]) }", "simt.Shared(&x[0])"},
	{CodeShared, "import \"gpunotes/gpukit/simt\"; func f(x []float64) { a := [2]float64{1, 2}; simt.Shared(/*!*/&a); x[0] = a[1] }", "without a value"},
	{CodeDivergent, "import \"gpunotes/gpukit/simt\"; func f(x []float64) { if simt.ThreadIdx().X < 16 { /*!*/simt.SyncThreads() } }", "the barrier may be reached by some threads only: the condition at cell 3:3:"},
	{CodeDivergent, "import \"gpunotes/gpukit/simt\"; func f(x []float64) { for i := simt.ThreadIdx().X; i < 9; i++ { x[i] = /*!*/simt.ShuffleDownFloat64(x[i], 1) } }", "the shuffle"},
	{CodeTooLarge, "func f(x int) bool { var a, b [1000]int; a[x], b[x] = 1, 2; return /*!*/a == /*!*/b }", "1000 elements"},
	{CodeAddress, "func f(x int) int { p := /*!*/&x; return *p }", "&x"},
	{CodeDeref, "func g() /*!!*/*int { for {} }; func f(x int) int { return x + /*!*/*g() }", "*g()"},
	{CodeTypeAssert, "func g() /*!!*/any { for {} }; func f(x int) int { return x + /*!*/g().(int) }", ""},
	{CodeNil, "func g(p /*!!*/any) {}; func f(x int) int { g(/*!*/nil); return x }", ""},
	{CodeStringValue, "func f(x int) int { s := /*!*/\"abc\"; return x + len(s) }", `"abc" is a string`},
	{CodeStringValue, "const s = \"abc\"; func f(x int) int { t := /*!*/s; _ = t; return x }", "s is a string"},
	{CodeComplexValue, "func f(x int) int { z := /*!*/1i; _ = z; return x }", "1i"},
	{CodePrint, "func f(x int) int { /*!*/print(x); return x }", "print"},
	{CodePrint, "func f(x []int) int { println(1, /*!*/x); return 1 }", "println of x"},
	{CodeBuiltin, "func f(x int) int { if x < 0 { /*!*/panic(\"no\") }; return x }", "panic"},
	{CodeBuiltin, "func f(x int) int { return x + len(/*!*/make([]int, x)) }", ""},
	{CodeBuiltin, "func f(a []int) int { a = /*!*/append(a, 1); return /*!*/copy(a, a) + /*!*/cap(a) }", ""},
	{CodeBuiltin, "func f(x float64) float64 { return x + /*!*/real(complex(x, x)) }", ""},

	{CodeSlice, "func f(a /*!*/[]string, i int) int { for j := range a { a[j] = a[i] }; return len(a) }", "parameter a has type []string"},
	{CodeSlice, "func f(x int) int { var a /*!*/[][3]int; return len(a) + x }", "variable a has type [][3]int"},
	{CodeSlice, "func f(x []int) (/*!*/[]int) { return x }", "a result has type []int"},
	{CodeArray, "func f(x int) int { var a /*!*/[3][]int; a[0][0] = x; return len(a[0]) }", "[3][]int"},
	{CodeArray, "func f(x int) int { var a /*!*/[1 << 30]int; return a[x] }", "more than a million"},
	{CodeArray, "func f(x []int) int { a := /*!*/[2]int(x); return a[0] }", "conversion [2]int(x)"},
	{CodeArray, "func f(x int) /*!*/[2]int { return [2]int{x, 1} }", "a result of the kernel itself"},
	{CodeStruct, "type point /*!*/struct{ x, y []float64 }; func f(p /*!!*/point) float64 { return p.x[0] }", "parameter p has type point"},
	{CodeStruct, "func f(x int) int { type t /*!*/struct{ x string }; return x }", "type t"},
	{CodeStruct, "type point struct{ x, y float64 }; func f(p point) /*!*/point { return p }", "a result of the kernel itself"},
	{CodePointer, "func f(p /*!*/*float64) float64 { *p = 1; return *p }", "*float64"},
	{CodeMap, "func f(x int) int { var m /*!*/map[int]int; return m[x] }", "map[int]int"},
	{CodeChan, "func f(c /*!*/chan int) int { return 1 }", "chan int"},
	{CodeFuncType, "func f(g /*!*/func(int) int, x int) int { return g(x) }", "func(int) int"},
	{CodeInterface, "func f(x /*!*/any) int { return 1 }", "any"},
	{CodeInterface, "func f(x int) (int, /*!*/error) { return x, nil }", "error"},
	{CodeString, "func f(s /*!*/string) int { return len(s) }", "string"},
	{CodeString, "func f(x int) int { s := /*!*/string(rune(x)); return len(s) }", "string"},
	{CodeComplex, "func f(z /*!*/complex128) float64 { return real(z) }", "complex128"},

	{CodeMethod, "type t int; /*!*/func (x t) f() int { return 1 }", "f is a method"},
	{CodeMethod, "type t int; func (x t) m() int { return 1 }; func f(x t) int { return x./*!*/m() }", "x.m"},
	{CodeGeneric, "func f/*!*/[T any](x T) T { return x }", "type parameters"},
	{CodeGeneric, "func g/*!!*/[T any](x T) T { return x }; func f(x int) int { return /*!*/g[int](x) }", "g[int]"},
	{CodeVariadic, "func f(x /*!*/...float64) float64 { return x[0] }", "variadic"},
	{CodeVariadic, "func g(x /*!!*/...int) int { return 1 }; func f(a []int) int { return g(a/*!*/...) }", "with ..."},
	{CodeNoBody, "func /*!*/f(x float64) float64", "no body"},
	{CodeRecursion, "func f(n int) int { if n < 2 { return n }; return /*!*/f(n-1) + /*!*/f(n-2) }", "f → f"},
	{CodeRecursion, "func f(n int) int { return g(n) }; func g(n int) int { return h(n) }; func h(n int) int { return /*!*/g(n-1) }", "g → h → g"},
	{CodePackage, "import \"strings\"; func f(x int) int { return x + /*!*/strings.Count(\"a\", \"b\") }", "package strings is not part of the kernel language"},
	{CodePackage, "import \"math/bits\"; func f(x, y uint64) uint64 { return /*!*/bits.Rem64(x, y, y) }", "bits.Rem64 is not part of the kernel language"},
	{CodePackage, "import \"sync\"; func f(x int) int { var m /*!*/sync.Mutex; m.Lock(); return x }", "package sync is not part"},
	{CodePackage, "import \"time\"; func f(d /*!*/time.Duration) int { return int(d) }", "package time"},
	{CodePackageVar, "var scale = 2.5; func f(x float64) float64 { return x * /*!*/scale }", "scale is a package-level variable"},
	{CodePackageVar, "var table = []float64{1, 2}; func f(x int) float64 { return /*!*/table[x] }", "table is a package-level variable"},
	{CodeCaptured, "func f(x float64) float64 { return x * /*!*/global_slice[0] }", "global_slice is a global variable of type []float64"},
	{CodePackageVar, "var table = []float64{1, 2}; func f(x int) float64 { return /*!*/table[x] }", "table is a package-level variable"},
	{CodeCaptured, "func f(x float64) float64 { return x * /*!*/refused }", "refused was lost"},
	{CodeAssignCaptured, "func f(x float64) float64 { /*!*/global_float64 += x; return x }", "a kernel sees a copy"},
	{CodeAssignCaptured, "func f(x int) int { /*!*/global_array[x] = 1; return x }", "assignment to global_array[x]"},
	{CodeFreeLocal, "func f(x float64) float64 { return x * /*!*/local }", "local is a local variable of the enclosing function"},
	{CodeStaleConst, "const ( A = 1; B = /*!*/A + 1 ); const ( A = 5 ); func f(x int) int { return x + B }", "A was declared again"},
	{CodeUndefined, "func f(x float64) float64 { return /*!*/foo(x) + /*!*/sqrt(x) }", "undefined: foo"},
	{CodeUndefined, "import \"math\"; func f(x float64) float64 { return math./*!*/Sine(x) }", "undefined: math.Sine"},
	{CodeUndefined, "func f(x float64) float64 { return /*!*/math.Sin(x) }", "undefined: math"},
	{CodeSyntax, "func f(x int) int { x = /*!*/= 1 /* not Go */; return x }", "not Go"},
	{CodeSyntax, "func f(x int) int { /*!*/) /* not Go */; return x }", "not Go"},
	{CodeType, "func f(x float64, i int) float64 { return /*!*/x + i }", "mismatched types float64 and int"},
	{CodeType, "func f(x float64) float64 { if x > 0 { return x } /*!*/}", "missing return"},
	{CodeType, "func f(x int) int { return x / /*!*/0 }", "division by zero"},
	{CodeType, "func g(x int) int { return x }; func f(x float64) float64 { return float64(g(/*!*/x)) }", "argument to g"},
	{CodeType, "type /*!*/a b; type b a; func f(x a) a { return x }", "invalid recursive type"},
	{CodeType, "func f(x int8) int8 { return x + /*!*/300 }", "300"},
}

// lookupIn adds the special names of the table to p.
func lookupIn(p *pkg) Input {
	in := p.input("f")
	in.Lookup = func(name string) (Decl, bool) {
		switch name {
		case "global_float64":
			return Decl{Name: name, GlobalType: reflect.TypeFor[float64]()}, true
		case "global_array":
			return Decl{Name: name, GlobalType: reflect.TypeFor[[4]int]()}, true
		case "global_slice":
			return Decl{Name: name, GlobalType: reflect.TypeFor[[]float64]()}, true
		case "refused":
			return Decl{Name: name, Refuse: "refused was lost"}, true
		}
		d, ok := p.decls[name]
		return d, ok
	}
	in.FreeLocal = func(name string) bool { return name == "local" }
	return in
}

func TestRefusals(t *testing.T) {
	have := map[Code]bool{}
	for i, c := range refusals {
		have[c.code] = true
		// "/*!!*/" marks the place of a refusal with another code.
		src := "package p\n" + strings.ReplaceAll(c.src, ";", "\n")
		p := parse(t, "cell 3", src)
		in := lookupIn(p)
		if in.Decl == nil {
			in.Decl = method(t, p, src)
		}
		_, err := Compile(in)
		ds, ok := err.(Diagnostics)
		if !ok {
			t.Errorf("%d: accepted, or another error: %v\n%s", i, err, c.src)
			continue
		}
		var got, want []string
		said := false
		for _, d := range ds {
			if d.Help == "" || d.Message == "" {
				t.Errorf("%d: no help or no message: %v", i, d)
			}
			pos := strconv.Itoa(d.Pos.Line) + ":" + strconv.Itoa(d.Pos.Column)
			if d.Code == c.code {
				said = said || strings.Contains(d.Message, c.says)
				pos += " " + string(c.code)
			}
			got = append(got, pos)
		}
		want = append(marks(src, "/*!*/", " "+string(c.code)), marks(src, "/*!!*/", "")...)
		// The other refusal may have the same code.
		for k, g := range got {
			for _, w := range want {
				if g == w+" "+string(c.code) {
					got[k] = w
				}
			}
		}
		sort.Strings(got)
		sort.Strings(want)
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%d: at %q, want %q\n%s\n%v", i, got, want, c.src, err)
		}
		if !said {
			t.Errorf("%d: no %s says %q\n%s\n%v", i, c.code, c.says, c.src, err)
		}
		if strings.Contains(err.Error(), "\t") && !strings.Contains(err.Error(), "cell 3:") {
			t.Errorf("%d: no position in %v", i, err)
		}
	}
	for name, code := range codes(t) {
		if !have[code] && code != CodeInternal {
			t.Errorf("%s has no example in the table", name)
		}
	}
}

// TestLanguagePage: LANGUAGE.md has one line for each code, and no other.
func TestLanguagePage(t *testing.T) {
	text, err := os.ReadFile("../../LANGUAGE.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(text), "| code | what | instead |\n|---|---|---|\n")
	lines := map[string]int{}
	for _, line := range strings.Split(strings.TrimSpace(table), "\n") {
		cells := strings.Split(line, "|")
		if len(cells) != 5 {
			t.Errorf("a line of %d cells: %s", len(cells)-2, line)
			continue
		}
		lines[strings.TrimSpace(cells[1])]++
	}
	for name, code := range codes(t) {
		if lines[string(code)] != 1 {
			t.Errorf("%s, %q, has %d lines", name, code, lines[string(code)])
		}
		delete(lines, string(code))
	}
	for code := range lines {
		t.Errorf("%q is not a code", code)
	}
}

func method(t *testing.T, p *pkg, src string) *ast.FuncDecl {
	f, err := parser.ParseFile(p.fset, "cell 3", src, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	return f.Decls[len(f.Decls)-1].(*ast.FuncDecl)
}

// marks lists the places behind each mark.
func marks(src, mark, suffix string) []string {
	var out []string
	for i, line := range strings.Split(src, "\n") {
		for off := 0; ; {
			k := strings.Index(line[off:], mark)
			if k < 0 {
				break
			}
			off += k + len(mark)
			out = append(out, strconv.Itoa(i+1)+":"+strconv.Itoa(off+1)+suffix)
		}
	}
	return out
}

// codes reads the constants of type Code from the source, with their names.
func codes(t *testing.T) map[string]Code {
	f, err := parser.ParseFile(token.NewFileSet(), "diag.go", nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]Code{}
	for _, d := range f.Decls {
		g, ok := d.(*ast.GenDecl)
		if !ok || g.Tok != token.CONST {
			continue
		}
		for _, s := range g.Specs {
			s := s.(*ast.ValueSpec)
			v, _ := strconv.Unquote(s.Values[0].(*ast.BasicLit).Value)
			out[s.Names[0].Name] = Code(v)
			if doc := s.Doc.Text(); !strings.Contains(doc, "Example: ") && Code(v) != CodeInternal {
				t.Errorf("%s has no example in its comment", s.Names[0].Name)
			}
		}
	}
	if len(out) < 40 {
		t.Errorf("only %d codes found", len(out))
	}
	return out
}
