package gpukit_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/cosmos72/gomacro/imports"

	"gpunotes/gpukit"
	"gpunotes/gpukit/internal/frontend"
	"gpunotes/gpukit/internal/source"
)

// What a refusal advises must be what helps.
func TestNotebookRemedies(t *testing.T) {
	for _, c := range []struct {
		cells []string // the last one is the remedy
		call  string
		want  float64
		words []string
	}{
		{[]string{"const c = 2.5", "func f(x float64) float64 { return c * x }", "const c = 3.5", "func f(x float64) float64 { return c * x }"},
			"f, 2.0", 7, []string{"cell 1:1:7", "cell 2:1:36", "cell 3:1:7", "run the cell of f again"}},
		{[]string{"const c = 2.5", "func g(x float64) float64 { return c * x }", "func f(x float64) float64 { return g(x) }", "const c = 3.5",
			"func g(x float64) float64 { return c * x }"}, "f, 2.0", 7, []string{"cell 3:1:36", "cell 2:1:36: c was the constant of cell 1:1:7", "run the cell of g again"}},
		{[]string{"c := 2.5", "func f(x float64) float64 { return float64(c) * x }", "c := 3", "func f(x float64) float64 { return float64(c) * x }"},
			"f, 2.0", 6, []string{"cell 2:1:44: c was a float64", "cell 3:1:1", "run the cell of f again", "or give the new c another name"}},
		// The variable that g uses has changed since, though f's use of it is right.
		{[]string{"c := 2.5", "func g(x float64) float64 { return float64(c) * x }", "c := 3", "func f(x float64) float64 { return float64(c) + g(x) }",
			"func g(x float64) float64 { return float64(c) * x }"}, "f, 2.0", 9, []string{"cell 2:1:44: c was a float64", "run the cell of g again"}},
		{[]string{"func g(x float64) float64 { return x }", "func f(x float64) float64 { return g(x) }", "func g(x, y float64) float64 { return x + y }",
			"func f(x float64) float64 { return g(x, x) }"}, "f, 2.0", 4,
			[]string{"cell 2:1:36: g was a func(float64) float64", "func(float64, float64) float64 (cell 3:1:6)", "run the cell of f again, with its call of g changed"}},
		{[]string{"import \"math\"", "h := math.Sqrt", "func f(x float64) float64 { return h(x) }", "func f(x float64) float64 { return math.Sqrt(x) }"},
			"f, 4.0", 2, []string{"h is a variable that holds math.Sqrt", "write math.Sqrt(...) in place of h(...)"}},
		{[]string{"type Deg float64", "func (d Deg) Rad() float64 { return float64(d) / 2 }", "d := Deg(3)", "f := d.Rad", "f := func(d float64) float64 { return d / 2 }"},
			"f, 4.0", 2, []string{"it may be the method Rad of cell 2:1:14", "declare a function that takes the receiver (d Deg) as its first argument"}},
	} {
		s := newSession(t)
		last := len(c.cells) - 1
		for _, cell := range c.cells[:last] {
			s.run(cell)
		}
		call := c.call
		if strings.HasPrefix(c.cells[0], "type Deg") {
			call = "f"
		}
		s.refused(call, c.words...)
		if s.err != nil && strings.Contains(s.err.Error(), "make it a constant") {
			t.Errorf("%q: advice that does not help: %v", c.cells, s.err)
		}
		s.run(c.cells[last])
		s.want(c.call, c.want)
	}
}

// The functions that can be compiled by themselves are those that the refusal
// of any other function of the standard library names.
func TestMathByItself(t *testing.T) {
	names := 0
	for _, path := range []string{"math", "math/bits"} {
		for name, fn := range imports.Packages[path].Binds {
			if fn.Kind() != reflect.Func {
				continue
			}
			names++
			f, err := source.Resolve(fn.Interface(), nil)
			if err != nil || f.Builtin != path+"."+name {
				t.Errorf("%s.%s: %+v, %v", path, name, f, err)
				continue
			}
			_, err = frontend.CompileMath(f.Builtin)
			division := path == "math/bits" && (strings.HasPrefix(name, "Div") || strings.HasPrefix(name, "Rem"))
			if (err != nil) != division {
				t.Errorf("%s.%s: %v", path, name, err)
			}
		}
	}
	if names < 100 {
		t.Errorf("only %d functions", names)
	}
	if _, err := source.Resolve(strings.ToUpper, nil); err == nil || !strings.Contains(err.Error(), "those of math and math/bits, but not the divisions of math/bits") {
		t.Error(err)
	}
}

func bigPart(x []float64) {
	var part [100000]float64
	part[int(x[0])] = 1
	x[0] = part[0]
}

func bigArgument(x, part []float64) {
	part[int(x[0])] = 1
	x[0] = part[0]
}

// So must what the errors of arrays and calls advise.
func TestRemedies(t *testing.T) {
	said := func(err error, words ...string) {
		t.Helper()
		for _, w := range words {
			if err == nil || !strings.Contains(err.Error(), w) {
				t.Errorf("%v does not say %q", err, w)
			}
		}
	}
	panics := func(f func()) (err error) {
		defer func() { err, _ = recover().(error) }()
		f()
		return nil
	}
	data := []float64{1, 2, 3, 4, 5, 6}
	said(panics(func() { gpukit.FromFlat(data) }), "6 elements", "FromFlat(data, 6)")
	said(panics(func() { gpukit.FromFlat(data, 6) }))
	said(panics(func() { gpukit.FromFlat(data, 4, 2) }), "(4, 2)", "whose product is 6")
	said(panics(func() { gpukit.FromFlat([][]float64{{1}}, 1) }), "FromSlice takes nested ones")
	gpukit.FromSlice([][]float64{{1}})

	for _, name := range []string{"cpu", "sim:quadro-k2000"} {
		d := gpukit.MustOpen(name)
		for _, layout := range []string{"", "m,n->m", "(m,n),(n)", "(m,n)(n)->(m)"} {
			_, err := d.GUVectorize(product, layout, gpukit.Zeros(2, 3), gpukit.Zeros(3))
			said(err, "layout", `"(m,n),(n)->(m)"`)
		}
		if _, err := d.GUVectorize(product, "(m,n),(n)->(m)", gpukit.Zeros(2, 3), gpukit.Zeros(3)); err != nil {
			t.Error(err)
		}
		x := []float64{0}
		said(d.Launch(bigPart, gpukit.Blocks(1), gpukit.Threads(1), x), "bigPart", "781.2 KiB", "512 KiB", "an array that is an argument")
		if err := d.Launch(bigArgument, gpukit.Blocks(1), gpukit.Threads(1), x, make([]float64, 100000)); err != nil || x[0] != 1 {
			t.Error(err, x)
		}
		d.Close()
	}
}
