package source

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// world is a module of its own in a temporary directory, with a copy of this
// package and a program that prints what it can resolve.
type world struct {
	t   *testing.T
	dir string
}

func newWorld(t *testing.T) *world {
	if testing.Short() {
		t.Skip("builds programs")
	}
	w := &world{t, t.TempDir()}
	own, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range own {
		if text, err := os.ReadFile(name); err != nil {
			t.Fatal(err)
		} else if !strings.HasSuffix(name, "_test.go") {
			w.write("source/"+name, string(text))
		}
	}
	w.write("go.mod", "module example.com/exp\n\ngo 1.26\n")
	w.write("main.go", `package main

import (
	"embed"
	"fmt"
	"os"

	"example.com/exp/source"
)

//go:embed *.go
var sources embed.FS

//go:noinline
func calls(x float64) float64 { return callee(x) + inlined(x) }

func constant(x float64) float64 { return factor * x }

func show(fn any) {
	f, err := source.Resolve(fn, nil)
	if err != nil {
		fmt.Println("error:", err)
		return
	}
	fmt.Println("found:", f.Where, f.Text())
	for _, name := range []string{"callee", "inlined", "factor"} {
		if d, ok := f.Scope.Lookup(name); !ok {
			fmt.Println(name, "unknown")
		} else if d.Err != nil {
			fmt.Println(name+":", d.Err, "/", d.Help)
		} else {
			fmt.Println(name, "at", d.Where)
		}
	}
}

func main() {
	if len(os.Args) > 1 {
		fmt.Println(source.Embed(sources))
	}
	show(calls)
	show(other)
}
`)
	w.write("other.go", "package main\n\nimport \"math\"\n\nconst factor = 2.5\n\n//go:noinline\nfunc other(x float64) float64 { return math.Sqrt(x) }\n")
	w.write("callee.go", "package main\n\n//go:noinline\nfunc callee(x float64) float64 { return x + 1 }\n")
	w.write("inlined.go", "package main\n\nfunc inlined(x float64) float64 { return x + 2 }\n")
	return w
}

func (w *world) write(name, text string) {
	w.t.Helper()
	file := filepath.Join(w.dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		w.t.Fatal(err)
	}
}

// run executes a command in the module, and wants the words in its output.
func (w *world) run(command string, want ...string) {
	w.t.Helper()
	words := strings.Fields(command)
	if words[0] == "./exp" {
		words[0] = filepath.Join(w.dir, "exp")
	}
	cmd := exec.Command(words[0], words[1:]...)
	cmd.Dir = w.dir
	cmd.Env = append(os.Environ(), "GOFLAGS=", "GOWORK=off", "GO111MODULE=on")
	out, err := cmd.CombinedOutput()
	if err != nil {
		w.t.Fatalf("%s: %v\n%s", command, err, out)
	}
	for _, text := range want {
		if !strings.Contains(string(out), text) {
			w.t.Errorf("%s: the output lacks %q:\n%s", command, text, out)
		}
	}
}

// touch gives a file the time that it has after an edit.
func (w *world) touch(name string) {
	w.t.Helper()
	time.Sleep(20 * time.Millisecond) // the clock of a file system may tick slowly
	now := time.Now()
	if err := os.Chtimes(filepath.Join(w.dir, name), now, now); err != nil {
		w.t.Fatal(err)
	}
	time.Sleep(20 * time.Millisecond)
}

// A file that has changed since the build is not the source, be it that of the
// function or that of what it uses. What go run and go test start is always new.
func TestProgramOlderThanItsFiles(t *testing.T) {
	w := newWorld(t)
	all := []string{"found: main.go:15:6 func calls(", "callee at callee.go:4:6", "inlined at inlined.go:3:6", "factor at other.go:5:7", "found: other.go:8:6 func other"}
	w.run("go run .", all...)
	w.touch("main.go")
	w.touch("other.go")
	w.run("go run .", all...) // from the cache, where it is older than its files
	w.run("go build -o exp")
	w.run("./exp", all...)
	w.write("other.go", strings.Replace("package main\n\nimport \"math\"\n\nconst factor = 2.5\n\n//go:noinline\nfunc other(x float64) float64 { return math.Sqrt(x) }\n", "2.5", "3.5", 1))
	w.touch("other.go")
	w.run("./exp", "found: main.go:15:6 func calls(", "callee at callee.go:4:6",
		"factor: other.go has been changed since this program was built, so it may not be the source of factor any more / build and start the program again",
		"other.go has been changed since this program was built, so it may not be the source of main.other any more: build and start the program again")
	w.run("./exp embed", all...) // has what it was built from
	w.run("go build -o exp")
	w.run("./exp", all...)
	w.touch("callee.go")
	w.run("./exp", "found: main.go:15:6 func calls(", "callee: callee.go has been changed", "factor at other.go:5:7")
	w.run("go build -o exp") // builds nothing, but says that the program is up to date
	w.run("./exp", all...)
	w.touch("go.mod")
	w.write("notes.txt", "x")
	w.write("unused.go", "package main\n\nconst unused = 1\n")
	w.run("./exp", all...)
}

// The file of a function that is gone is named; what else it declared is not
// found.
func TestProgramWithoutItsFiles(t *testing.T) {
	w := newWorld(t)
	w.run("go build -o exp")
	for _, name := range []string{"callee.go", "inlined.go", "other.go"} {
		text, err := os.ReadFile(filepath.Join(w.dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Remove(filepath.Join(w.dir, name)); err != nil {
			t.Fatal(err)
		}
		want := []string{"found: main.go:15:6 func calls("}
		path := filepath.Join(w.dir, name) + " is missing"
		switch name {
		case "other.go":
			want = append(want, "error: the source of main.other is needed, but "+path+": restore the file, or build and start the program again",
				"callee at")
		default:
			want = append(want, "factor at")
		}
		w.run("./exp", want...)
		w.run("./exp embed", "callee at", "inlined at", "factor at")
		w.write(name, string(text))
		w.run("go build -o exp")
	}
}

// Under go test a package main has an import path, in names and nowhere else.
func TestPackageMainUnderTest(t *testing.T) {
	w := newWorld(t)
	w.write("main_test.go", `package main

import (
	"os"
	"testing"

	"example.com/exp/source"
)

func inTest(x float64) float64 { return x + factor }

func TestMain(m *testing.M) {
	named := func(x float64) float64 {
		return x + 3
	}
	show(calls)
	show(inTest)
	show(named)
	if err := source.Embed(sources); err != nil {
		panic(err)
	}
	show(other)
	os.Exit(m.Run())
}
`)
	w.write("outside_test.go", `package main_test

import (
	"fmt"
	"testing"

	"example.com/exp/source"
)

const outer = 1

func outside(x float64) float64 { return x + outer }

func TestOutside(t *testing.T) {
	f, err := source.Resolve(outside, nil)
	if err != nil {
		t.Fatal(err)
	}
	d, ok := f.Scope.Lookup("outer")
	_, others := f.Scope.Lookup("factor")
	fmt.Println("outside:", f.Where, d.Where, ok, others)
}
`)
	want := []string{"found: main.go:15:6 func calls(", "callee at callee.go:4:6", "factor at other.go:5:7", "found: main_test.go:10:6 func inTest(",
		"found: main_test.go:13:2 func(x float64)", "found: other.go:8:6", "outside: outside_test.go:12:6 outside_test.go:10:7 true false"}
	w.run("go test -v .", want...)
	w.run("go test -v main.go other.go callee.go inlined.go main_test.go", want[:6]...) // of no module
	w.run("go test -c -o exp .")
	w.run("./exp", want...)
	w.touch("callee.go")
	w.run("./exp", "found: main.go:15:6 func calls(", "callee: callee.go has been changed")
}

func TestNewer(t *testing.T) {
	at := time.Unix(1_700_000_000, 123_000_000)
	for _, c := range []struct {
		other, mod time.Time
		want       bool
	}{
		{at, at, false},
		{at, at.Add(-time.Second), false},
		{at, at.Add(4 * time.Millisecond), false}, // one tick
		{at, at.Add(time.Second), true},
		// Whole seconds, or every second one: up to two seconds tell nothing.
		{at.Truncate(time.Second), at, false},
		{at.Truncate(2 * time.Second), at.Truncate(2 * time.Second).Add(1900 * time.Millisecond), false},
		{at.Truncate(2 * time.Second), at.Truncate(2 * time.Second).Add(2 * time.Second), true},
	} {
		if got := newer(c.mod, c.other); got != c.want {
			t.Errorf("newer(%v, %v) = %v", c.mod, c.other, got)
		}
	}
	for name, want := range map[string]bool{
		"/tmp/go-build1838526247/b001/exe/exp": true, "/tmp/go-build3784541800/b001/exp.test": true, "/root/x/exp": false, "/root/go-build/exp": false,
		"/root/.cache/go-build/f5/f50abf3f314314d112a82af8ff7e94def41f255be8e0d2d059c2770571648265-d/exp": true,
	} {
		if byGo.MatchString(name) != want {
			t.Errorf("byGo of %s is %v", name, !want)
		}
	}
}
