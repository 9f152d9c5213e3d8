package frontend

import (
	"fmt"
	"go/token"
	"sort"
	"strings"

	"gpunotes/gpukit/internal/ir"
)

// Code names a kind of diagnostic; it is stable, for tests and documentation.
type Code string

// Statements that kernels do not have.
const (
	// CodeGoto: a jump to a label. Example: goto done
	CodeGoto Code = "goto"
	// CodeDefer: a deferred call. Example: defer f()
	CodeDefer Code = "defer"
	// CodeGo: a goroutine. Example: go f()
	CodeGo Code = "go"
	// CodeSelect: a select statement. Example: select {}
	CodeSelect Code = "select"
	// CodeSend: a channel send. Example: c <- 1
	CodeSend Code = "send"
	// CodeTypeSwitch: a type switch. Example: switch x.(type) {}
	CodeTypeSwitch Code = "type switch"
	// CodeRange: range over anything but a slice, an array or an integer. Example: for _, c := range "abc" {}
	CodeRange Code = "range"
)

// Expressions that kernels do not have.
const (
	// CodeReceive: a channel receive. Example: x := <-c
	CodeReceive Code = "receive"
	// CodeFuncLit: a function literal. Example: f := func() {}
	CodeFuncLit Code = "func literal"
	// CodeFuncValue: a function used as a value. Example: f := math.Sin
	CodeFuncValue Code = "func value"
	// CodeCompositeLit: a literal of a slice. Example: a := []int{1, 2}
	CodeCompositeLit Code = "composite literal"
	// CodeIndex: an element of anything but a slice or an array. Example: "abc"[i]
	CodeIndex Code = "index"
	// CodeSliceExpr: a slice of a string or of what has no name, or one with a capacity. Example: "abc"[i:]
	CodeSliceExpr Code = "slice expression"
	// CodeSliceElement: a row of an array exchanged for another. Example: a[0] = a[1], with a [][]float64
	CodeSliceElement Code = "row assignment"
	// CodeTwoArrays: a slice variable that can be a view of two arrays. Example: s := a; if x > 0 { s = b }
	CodeTwoArrays Code = "two arrays"
	// CodeAtomic: an atomic operation on anything but an element of a slice or of a shared array. Example: atomic.AddInt64(&n, 1)
	CodeAtomic Code = "atomic operand"
	// CodeShared: simt.Shared of anything but a local array that is declared without a value. Example: simt.Shared(&x[0])
	CodeShared Code = "shared"
	// CodeDivergent: a barrier, a shuffle or a vote that only some threads may reach. Example: if simt.ThreadIdx().X < 16 { simt.SyncThreads() }
	CodeDivergent Code = "divergent"
	// CodeTooLarge: an array of many elements used as a value. Example: a == b, with a [1000]float64
	CodeTooLarge Code = "too large"
	// CodeAddress: the address of a variable. Example: p := &x
	CodeAddress Code = "address"
	// CodeDeref: a pointer's target. Example: *p = 1
	CodeDeref Code = "dereference"
	// CodeTypeAssert: a type assertion. Example: x.(int)
	CodeTypeAssert Code = "type assertion"
	// CodeNil: the value nil. Example: p := nil
	CodeNil Code = "nil"
	// CodeStringValue: a string constant. Example: s := "abc"
	CodeStringValue Code = "string value"
	// CodeComplexValue: a complex constant. Example: z := 1i
	CodeComplexValue Code = "complex value"
	// CodePrint: print, and println of anything but numbers, bools and string constants. Example: print(x)
	CodePrint Code = "print"
	// CodeBuiltin: any other predeclared function but min, max and len. Example: panic(1)
	CodeBuiltin Code = "builtin"
)

// Types that kernels do not have.
const (
	// CodeSlice: a slice type of anything but numbers and bools, or a slice as a result. Example: func f(a []string) float64
	CodeSlice Code = "slice type"
	// CodeArray: an array type of other elements or of very many, or an array as the kernel's result. Example: var a [3][]float64
	CodeArray Code = "array type"
	// CodeStruct: a struct type with other fields, or a struct as the kernel's result. Example: type rows struct{ a []float64 }
	CodeStruct Code = "struct type"
	// CodePointer: a pointer type. Example: func f(p *float64) float64
	CodePointer Code = "pointer type"
	// CodeMap: a map type. Example: var m map[int]float64
	CodeMap Code = "map type"
	// CodeChan: a channel type. Example: var c chan int
	CodeChan Code = "channel type"
	// CodeFuncType: a function type. Example: func f(g func(float64) float64) float64
	CodeFuncType Code = "func type"
	// CodeInterface: an interface type. Example: func f(x any) float64
	CodeInterface Code = "interface type"
	// CodeString: a string type. Example: func f(s string) float64
	CodeString Code = "string type"
	// CodeComplex: a complex type. Example: func f(z complex128) float64
	CodeComplex Code = "complex type"
)

// Declarations and names.
const (
	// CodeMethod: a method, declared or called. Example: func (t T) f() float64
	CodeMethod Code = "method"
	// CodeGeneric: type parameters. Example: func f[T any](x T) T
	CodeGeneric Code = "generic"
	// CodeVariadic: a variadic function, or a call with "...". Example: func f(x ...float64) float64
	CodeVariadic Code = "variadic"
	// CodeNoBody: a function without a body. Example: func f(x float64) float64
	CodeNoBody Code = "no body"
	// CodeRecursion: a function that calls itself, directly or not. Example: return fib(n-1) + fib(n-2)
	CodeRecursion Code = "recursion"
	// CodePackage: a package other than math, math/bits, sync/atomic and simt. Example: strings.ToUpper(s)
	CodePackage Code = "package"
	// CodePackageVar: a package-level variable of compiled Go that is not a constant table. Example: return x * scale
	CodePackageVar Code = "package variable"
	// CodeCaptured: a variable that cannot be captured by value. Example: return x * weights[0]
	CodeCaptured Code = "captured variable"
	// CodeAssignCaptured: an assignment to a captured variable. Example: count++
	CodeAssignCaptured Code = "assignment to captured variable"
	// CodeFreeLocal: a local variable of an enclosing function. Example: func() { k := func(x float64) float64 { return x * s } }
	CodeFreeLocal Code = "free local"
	// CodeStaleConst: a constant whose declaration uses a name that was declared again later. Example: const ( A = 1; B = A + 1 ), then const A = 5
	CodeStaleConst Code = "stale declaration"
	// CodeUndefined: a name that means nothing here. Example: return foo(x)
	CodeUndefined Code = "undefined"
	// CodeSyntax: text that is not Go. Example: x := = 1
	CodeSyntax Code = "syntax"
	// CodeType: a violation of Go's own rules. Example: return x + i, with a float64 and an int
	CodeType Code = "type"
	// CodeInternal: a fault of this package.
	CodeInternal Code = "internal error"
)

// Diagnostic is one fault of a user's function.
type Diagnostic struct {
	Code    Code
	Pos     token.Position
	Message string // what was found, with the offending text or value
	Help    string // what to write instead
}

// String is "cell 3:4:7: message", a line break, a tab and the help.
func (d Diagnostic) String() string {
	s := d.Message
	if d.Pos.IsValid() || d.Pos.Filename != "" {
		s = d.Pos.String() + ": " + s
	}
	if d.Help != "" {
		s += "\n\t" + d.Help
	}
	return s
}

// Diagnostics are all faults of a function and of what it calls, by position.
type Diagnostics []Diagnostic

// Error lists every diagnostic.
func (ds Diagnostics) Error() string {
	s := make([]string, len(ds))
	for i, d := range ds {
		s[i] = d.String()
	}
	return strings.Join(s, "\n")
}

func (ds Diagnostics) sort() {
	sort.SliceStable(ds, func(i, j int) bool {
		a, b := ds[i].Pos, ds[j].Pos
		if a.Filename != b.Filename {
			return a.Filename < b.Filename
		}
		if a.Line != b.Line {
			return a.Line < b.Line
		}
		return a.Column < b.Column
	})
}

// report collects the diagnostics of one compile.
type report struct {
	fset *token.FileSet
	list Diagnostics
	seen map[Diagnostic]bool
}

func (r *report) add(code Code, pos token.Pos, help, format string, args ...any) {
	r.put(Diagnostic{Code: code, Pos: r.fset.Position(pos), Message: fmt.Sprintf(format, args...), Help: help})
}

// addAt is add for a place that the IR knows.
func (r *report) addAt(code Code, pos ir.Pos, help, format string, args ...any) {
	r.put(Diagnostic{Code: code, Pos: token.Position{Filename: pos.File, Line: int(pos.Line), Column: int(pos.Col)},
		Message: fmt.Sprintf(format, args...), Help: help})
}

func (r *report) put(d Diagnostic) {
	if !r.seen[d] {
		r.seen[d] = true
		r.list = append(r.list, d)
	}
}
