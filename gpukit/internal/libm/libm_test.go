package libm

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestText: the embedded text is all of the package, and uses of package math
// only what engines have code for, and its constants.
func TestText(t *testing.T) {
	names, err := filepath.Glob("*.go")
	if err != nil || len(names) == 0 {
		t.Fatal(names, err)
	}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if embedded, err := Source.ReadFile(name); err != nil || string(embedded) != string(text) {
			t.Errorf("%s is not embedded in Source: %v", name, err)
		}
		for _, fault := range foreign(t, name, text) {
			t.Error(fault)
		}
	}
	for text, want := range map[string]int{
		"math.Sin(x)": 1, "math.Sqrt(x) + math.Pi": 0, "apply(math.Exp)": 1, "math.FMA(x, x, math.Log(x))": 1, "math.Inf(bits.Len(1))": 0,
	} {
		file := "package libm\n\nimport (\n\"math\"\n\"math/bits\"\n)\n\nvar _ = " + text
		if got := foreign(t, "text", []byte(file)); len(got) != want {
			t.Errorf("%s: %q", text, got)
		}
	}
}

// foreign are the uses of functions that are not ours to use.
func foreign(t *testing.T, name string, text []byte) (faults []string) {
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, name, text, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range f.Imports {
		if p := i.Path.Value; i.Name != nil || p != `"math"` && p != `"math/bits"` && p != `"embed"` {
			faults = append(faults, fset.Position(i.Pos()).String()+": imports "+p)
		}
	}
	ast.Inspect(f, func(n ast.Node) bool {
		sel, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		if x, ok := sel.X.(*ast.Ident); ok && x.Name == "math" && !slices.Contains(Natives, sel.Sel.Name) && !constants[sel.Sel.Name] {
			faults = append(faults, fset.Position(sel.Pos()).String()+": math."+sel.Sel.Name+" is not among Natives: call our own")
		}
		return true
	})
	return faults
}

var constants = map[string]bool{
	"E": true, "Pi": true, "Phi": true, "Sqrt2": true, "SqrtE": true, "SqrtPi": true, "SqrtPhi": true, "Ln2": true, "Log2E": true, "Ln10": true, "Log10E": true,
	"MaxFloat32": true, "SmallestNonzeroFloat32": true, "MaxFloat64": true, "SmallestNonzeroFloat64": true,
	"MaxInt": true, "MinInt": true, "MaxInt8": true, "MinInt8": true, "MaxInt16": true, "MinInt16": true, "MaxInt32": true, "MinInt32": true,
	"MaxInt64": true, "MinInt64": true, "MaxUint": true, "MaxUint8": true, "MaxUint16": true, "MaxUint32": true, "MaxUint64": true,
}
