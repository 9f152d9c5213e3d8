package gpukit_test

import (
	"go/build"
	"reflect"
	"strings"
	"testing"

	"github.com/cosmos72/gomacro/fast"
	_ "github.com/cosmos72/gomacro/imports"
	"github.com/cosmos72/gomacro/xreflect"

	"gpunotes/gpukit"
	"gpunotes/gpukit/host"
)

// session is a notebook: an interpreter whose cells are recorded.
type session struct {
	t    *testing.T
	ir   *fast.Interp
	nb   *host.Notebook
	dev  *gpukit.Device
	cell int
	last *gpukit.Array
	err  error
}

func newSession(t *testing.T) *session {
	// The interpreter asks the go command for export data, which it cannot read.
	build.Default.IsDir = func(string) bool { return false }
	defer func() { build.Default.IsDir = nil }()
	s := &session{t: t, ir: fast.New(), dev: gpukit.MustOpen("cpu")}
	s.ir.Comp.Universe.Importer = &xreflect.Importer{}
	s.nb = host.NewNotebook(func(name string) (reflect.Value, bool) {
		v := s.ir.ValueOf(name)
		return v.ReflectValue(), v.IsValid()
	})
	old := host.Current()
	t.Cleanup(func() { host.Attach(old) })
	s.ir.DeclFunc("vectorize", func(fn interface{}, args ...interface{}) {
		s.last, s.err = s.dev.Vectorize(fn, args...)
	})
	return s
}

// run executes each chunk of text in turn as one cell.
func (s *session) run(chunks ...string) {
	s.t.Helper()
	host.Attach(host.Host{Source: s.nb}) // the test may have several
	s.cell++
	line := 1
	for _, c := range chunks {
		s.ir.Eval(c)
		if err := s.nb.Record(s.cell, line, c); err != nil {
			s.t.Fatal(err)
		}
		line += strings.Count(c, "\n") + 1
	}
}

// want calls an expression such as "f, 2.0" through Vectorize.
func (s *session) want(call string, want float64) {
	s.t.Helper()
	s.run("vectorize(" + call + ")")
	if s.err != nil || s.last.Item() != want {
		s.t.Errorf("Vectorize(%s) = %v, %v; want %v", call, s.last, s.err, want)
	}
}

func (s *session) refused(call string, words ...string) {
	s.t.Helper()
	s.run("vectorize(" + call + ")")
	if s.err == nil {
		s.t.Errorf("Vectorize(%s) = %v, want an error", call, s.last)
		return
	}
	for _, w := range words {
		if !strings.Contains(s.err.Error(), w) {
			s.t.Errorf("Vectorize(%s): the error does not say %q:\n%v", call, w, s.err)
		}
	}
}

func TestNotebookFunctions(t *testing.T) {
	s := newSession(t)
	s.run(`import "math"`)
	s.run("func half(x float64) float64 { return x / 2 }")
	s.run("func f(x float64) float64 { return half(x) + math.Sqrt(x) }")
	s.want("f, 16.0", 12)
	s.run("g := func(x float64) float64 { return f(x) * 2 }")
	s.want("g, 16.0", 24)

	// A redefined callee is seen by its callers.
	s.run("func half(x float64) float64 { return x * 100 }")
	s.want("f, 4.0", 402)
	s.want("g, 4.0", 804)

	// An older function value keeps its own text.
	s.run("old := half")
	s.run("func half(x float64) float64 { return -x }")
	s.want("old, 4.0", 400)
	s.want("f, 4.0", -2)

	// A callee with another signature is an error that names both cells.
	s.run("func half(x, y float64) float64 { return x * y }")
	s.refused("f, 4.0", "half", "cell 3", "cell 14")
}

func TestNotebookVariables(t *testing.T) {
	s := newSession(t)
	s.run("scale := 3.0")
	s.run("func f(x float64) float64 { return scale * x }")
	s.want("f, 2.0", 6)
	s.run("scale = 10")
	s.want("f, 2.0", 20)
	// The value is read at each call, also within one statement.
	s.run(`sum := 0.0`, `for i := 0; i < 4; i++ { scale = float64(i); vectorize(f, 1.0) }`)
	if s.err != nil || s.last.Item() != 3 {
		t.Error(s.last, s.err)
	}
	s.run(`scale := "three"`)
	s.refused("f, 2.0", "scale", "float64", "string", "cell 2")
	s.run("data := []float64{1, 2}")
	s.run("func h(x float64) float64 { return x + data[0] }")
	s.refused("h, 2.0", "cell 10:1:", "data", "pass it as an argument")
	// A function variable that is swapped in the middle of a statement.
	s.run("k := func(x float64) float64 { return x + 1 }")
	s.run("one := func(x float64) float64 { return x + 1 }", "two := func(x float64) float64 { return x + 2 }")
	s.run("func user(x float64) float64 { return k(x) }")
	s.want("user, 1.0", 2)
	s.run("for _, fn := range []func(float64) float64{one, two} { k = fn; vectorize(user, 1.0) }")
	if s.err == nil && s.last.Item() != 3 {
		t.Error("the function that k no longer is:", s.last)
	}
}

func TestNotebookRefusals(t *testing.T) {
	s := newSession(t)
	s.run("func loop(n int) int { return loop(n - 1) }")
	s.refused("loop, 3", "cell 1:1:", "loop → loop")
	s.run("func bad(x float64) float64 {\n\tdefer println(x)\n\ts := \"a\"\n\t_ = s\n\treturn x\n}")
	s.refused("bad, 3.0", "cell 3:2:2", "defer", "cell 3:3:")
	s.run("func make() func(float64) float64 { return func(x float64) float64 { return x } }")
	s.refused("make(), 1.0", "name")
}
