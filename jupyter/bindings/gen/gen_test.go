package main

import (
	"bytes"
	"go/format"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// The fixture packages have one of every declaration; their committed bindings are run by the tests of ../.
const (
	testdata = "gpunotes/jupyter/bindings/gen/testdata/"
	fixture  = "testdata/kindsbind"
)

var fixturePackages = []string{testdata + "kinds", testdata + "reflect"}

// readSources opens the source of every package of this module that the bound ones consist of, so that go test
// does not take the result from its cache after one of them has changed.
func readSources(t *testing.T, paths []string) {
	t.Helper()
	list, err := goList(append([]string{"-deps", "--"}, paths...)...)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, l := range list {
		if l.Module == nil || !l.Module.Main {
			continue
		}
		if _, err := os.ReadDir(l.Dir); err != nil { // notices a new file
			t.Fatal(err)
		}
		for _, name := range l.GoFiles {
			if _, err := os.ReadFile(filepath.Join(l.Dir, name)); err != nil {
				t.Fatal(err)
			}
			n++
		}
	}
	if n == 0 {
		t.Error("found no source of this module among the bound packages")
	}
}

func TestBindingsAreCurrent(t *testing.T) {
	readSources(t, bound)
	if err := run([]string{"-check"}, io.Discard); err != nil {
		t.Error(err)
	}
}

func TestFixtureIsCurrent(t *testing.T) {
	readSources(t, fixturePackages)
	dir, err := filepath.Abs(fixture) // so that the command in the message works from anywhere in the module
	if err != nil {
		t.Fatal(err)
	}
	if err := run(append([]string{"-check", "-dir", dir, "-package", "kindsbind"}, fixturePackages...), io.Discard); err != nil {
		t.Error(err)
	}
}

func TestOutput(t *testing.T) {
	first, err := generate("x", fixturePackages)
	if err != nil {
		t.Fatal(err)
	}
	second, err := generate("x", fixturePackages)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(first, second) {
		t.Error("two runs differ")
	}
	for _, f := range first {
		if !bytes.HasPrefix(f.text, []byte(header)) {
			t.Errorf("%s: no header", f.name)
		}
		if pretty, err := format.Source(f.text); err != nil || !bytes.Equal(pretty, f.text) {
			t.Errorf("%s: not formatted (%v)", f.name, err)
		}
	}
	// What is left out, by name and with the reason, in the result and in the file.
	want := []string{
		"Box: generic type: gomacro has no generics",
		"Generic: generic function: gomacro has no generics",
		"Number: constraint interface: not the type of any value",
		"PairOf: generic type: gomacro has no generics",
		"Sealed: interpreted types cannot implement it: unexported method sealed",
		"Unnameable: interpreted types cannot implement it: method Get uses Secret (" + testdata + "kinds/internal/hidden is internal)",
		"UsesUnexported: interpreted types cannot implement it: method Get uses the unexported type point",
	}
	if got := first[0].skipped; !reflect.DeepEqual(got, want) {
		t.Errorf("skipped\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	for _, w := range want {
		if !strings.Contains(string(first[0].text), "//   - "+w+"\n") {
			t.Errorf("the file does not say %q", w)
		}
	}
}

func TestRefusals(t *testing.T) {
	for _, c := range []struct{ path, want string }{
		{testdata + "broken", `broken.go:5:13: cannot use "text"`},
		{testdata + "command", "a command cannot be imported"},
		{testdata + "missing", testdata + "missing"},
		{testdata + "kinds/internal/hidden", "is internal"},
	} {
		_, err := generate("x", []string{c.path})
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), c.path) {
			t.Errorf("%s: error %v, want %q", c.path, err, c.want)
		}
	}
	if err := run([]string{testdata + "empty"}, io.Discard); err == nil || !strings.Contains(err.Error(), "-dir") {
		t.Errorf("packages without -dir: error %v", err)
	}
}

func TestWriteAndCheck(t *testing.T) {
	dir := t.TempDir()
	files := []file{
		{path: "a", name: "a_bindings.go", text: []byte(header + "\npackage x\n")},
		{path: "b", name: "b_bindings.go", text: []byte(header + "\npackage x\n\n// b\n")},
	}
	put := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	stale := func(want ...string) {
		t.Helper()
		err := checkFiles(dir, files, "THE CURE")
		if len(want) == 0 {
			if err != nil {
				t.Errorf("unexpected: %v", err)
			}
			return
		}
		var text []string
		for _, w := range want {
			text = append(text, filepath.Join(dir, w))
		}
		if full := strings.Join(text, "\n") + "\nrun: THE CURE"; err == nil || err.Error() != full {
			t.Errorf("error\n%v\nwant\n%s", err, full)
		}
	}
	write := func(n int) {
		t.Helper()
		changed, err := writeFiles(dir, files)
		if err != nil || len(changed) != n {
			t.Errorf("changed %q, %v; want %d changes", changed, err, n)
		}
	}
	stale("a_bindings.go is missing", "b_bindings.go is missing")
	write(2)
	stale()
	write(0)
	put("a_bindings.go", header+"old")
	put("gone_bindings.go", header+"package x")
	put("hand.go", "package x\n")
	stale("a_bindings.go is out of date", "gone_bindings.go belongs to no bound package")
	write(2)
	stale()
	if _, err := os.Stat(filepath.Join(dir, "hand.go")); err != nil {
		t.Error("deleted a file that it did not write")
	}
	put("a_bindings.go", "package x // by hand\n")
	stale("a_bindings.go is out of date")
	if _, err := writeFiles(dir, files); err == nil || !strings.Contains(err.Error(), "not written by this program") {
		t.Errorf("overwriting a hand-written file: error %v", err)
	}
}

func TestPackageWithoutExports(t *testing.T) {
	files, err := generate("x", []string{testdata + "empty"})
	if err != nil {
		t.Fatal(err)
	}
	if text := string(files[0].text); strings.Contains(text, `empty "`) || !strings.Contains(text, `"empty",`) {
		t.Errorf("an import without use, or no entry:\n%s", text)
	}
}

// The bindings of the standard library of another Go are no fault.
func TestAnotherReleaseIsNoFault(t *testing.T) {
	dir := t.TempDir()
	text := func(rest string) []byte { return []byte(header + rest) }
	files := []file{{path: "math", name: "math_bindings.go", text: text(releaseLine + release() + ".\nnew")}}
	for old, stale := range map[string]bool{
		releaseLine + "go1.25.\nold":           false,
		releaseLine + release() + ".\nold":     true,
		releaseLine + release() + ".\nnew":     false,
		"old":                                  true,
		"package x\n" + releaseLine + "go1.25": true,
	} {
		if err := os.WriteFile(filepath.Join(dir, "math_bindings.go"), text(old), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := checkFiles(dir, files, ""); (err != nil) != stale {
			t.Errorf("%q: %v, want a fault: %v", old, err, stale)
		}
	}
	for path, want := range map[string]bool{"math": true, "math/rand/v2": true, "gonum.org/v1/plot": false, "gpunotes/gpukit": false} {
		if std(path) != want {
			t.Errorf("%s: std is %v", path, !want)
		}
	}
}
