package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
)

func env(pairs ...string) func(string) string {
	m := map[string]string{}
	for i := 0; i < len(pairs); i += 2 {
		m[pairs[i]] = pairs[i+1]
	}
	return func(k string) string { return m[k] }
}

func TestChoosePlace(t *testing.T) {
	abs, err := filepath.Abs("rel")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		prefix     string
		user       bool
		name       string
		env        func(string) string
		dir, flags string // "" for an error
	}{
		{"/opt/x", false, "gpunotes", env("VIRTUAL_ENV", "/venv"), "/opt/x/share/jupyter/kernels/gpunotes", "--prefix /opt/x"},
		{"rel", false, "gpunotes", env(), abs + "/share/jupyter/kernels/gpunotes", "--prefix " + abs},
		{"/a b", false, "gophernotes", env(), "/a b/share/jupyter/kernels/gophernotes", "--prefix '/a b' --as gophernotes"},
		{"", false, "gpunotes", env("VIRTUAL_ENV", "/venv", "HOME", "/h"), "/venv/share/jupyter/kernels/gpunotes", ""},
		{"", true, "gpunotes", env("VIRTUAL_ENV", "/venv", "JUPYTER_DATA_DIR", "/j"), "/j/kernels/gpunotes", "--user"},
		{"", false, "gpunotes", env("JUPYTER_DATA_DIR", "/j"), "/j/kernels/gpunotes", ""},
		{"", false, "gpunotes", env("LAB", "/here/.venv", "JUPYTER_DATA_DIR", "/j"), "/here/.venv/share/jupyter/kernels/gpunotes", ""},
		{"", false, "gpunotes", env("LAB", "/here/.venv", "VIRTUAL_ENV", "/venv"), "/venv/share/jupyter/kernels/gpunotes", ""},
		{"", true, "gpunotes", env("LAB", "/here/.venv", "JUPYTER_DATA_DIR", "/j"), "/j/kernels/gpunotes", "--user"},
		{"/x", true, "gpunotes", env(), "", ""},
		{"/x", false, "../evil", env(), "", ""},
		{"/x", false, "Upper", env(), "", ""},
		{"/x", false, "..", env(), "", ""},
		{"/x", false, "", env(), "", ""},
		{"", true, "gpunotes", env(), "", ""},
	} {
		p, err := choosePlace(c.prefix, c.user, c.name, c.env("LAB"), c.env)
		if c.dir == "" {
			if err == nil {
				t.Errorf("%+v: no error but %v", c, p)
			}
			continue
		}
		if err != nil || p.dir() != filepath.FromSlash(c.dir) || p.flags() != c.flags {
			t.Errorf("%q %v %q: %s %q (%v), want %s %q", c.prefix, c.user, c.name, p.dir(), p.flags(), err, c.dir, c.flags)
		}
	}
}

func TestUserData(t *testing.T) {
	for _, c := range []struct {
		goos string
		env  func(string) string
		want string
	}{
		{"linux", env("HOME", "/h"), "/h/.local/share/jupyter"},
		{"linux", env("HOME", "/h", "XDG_DATA_HOME", "/x"), "/x/jupyter"},
		{"freebsd", env("HOME", "/h"), "/h/.local/share/jupyter"},
		{"darwin", env("HOME", "/h", "XDG_DATA_HOME", "/x"), "/h/Library/Jupyter"},
		{"windows", env("APPDATA", "/a"), "/a/jupyter"},
		{"darwin", env("HOME", "/h", "JUPYTER_DATA_DIR", "/j"), "/j"},
	} {
		got, err := userData(c.goos, c.env)
		if err != nil || filepath.ToSlash(got) != c.want {
			t.Errorf("%s: %s (%v), want %s", c.goos, got, err, c.want)
		}
	}
}

// fake builds a "kernel" that is a shell script.
func fake(script string) builder {
	return func(binary string, _ io.Writer) (mark, error) {
		return mark{Build: "b1", Go: "go1"}, os.WriteFile(binary, []byte("#!/bin/sh\n"+script), 0o755)
	}
}

const good = `echo '{"build":"b1"}'`

func at(t *testing.T) place {
	if runtime.GOOS == "windows" {
		t.Skip("the stand-in for a kernel is a shell script")
	}
	t.Helper()
	p, err := choosePlace(t.TempDir(), false, "gpunotes", "", env())
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func mustInstall(t *testing.T, p place) {
	t.Helper()
	if err := install(p, fake(good), io.Discard); err != nil {
		t.Fatal(err)
	}
}

func TestInstallWritesWhatJupyterNeeds(t *testing.T) {
	p := at(t)
	mustInstall(t, p)
	mustInstall(t, p) // again, over itself
	data, err := os.ReadFile(filepath.Join(p.dir(), "kernel.json"))
	if err != nil {
		t.Fatal(err)
	}
	var raw map[string]any
	if err := json.Unmarshal(data, &raw); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"argv":           []any{"{resource_dir}/gophernotes", "{connection_file}"},
		"display_name":   "Go (gpunotes)",
		"language":       "go",
		"interrupt_mode": "message",
		"metadata":       map[string]any{"gpunotes": map[string]any{"build": "b1", "go": "go1"}},
	}
	if fmt.Sprint(raw) != fmt.Sprint(want) {
		t.Errorf("%v\nwant\n%v", raw, want)
	}
	for _, f := range []string{"gophernotes", "logo-32x32.png", "logo-64x64.png"} {
		if !exists(filepath.Join(p.dir(), f)) {
			t.Error("missing:", f)
		}
	}
	onlyKernels(t, p)
	if x := examine(p); x != nil {
		t.Errorf("a good install has problems: %v", x)
	}
}

// onlyKernels checks that nothing half-made is left behind.
func onlyKernels(t *testing.T, p place) {
	t.Helper()
	entries, err := os.ReadDir(p.data)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.Name() != "kernels" {
			t.Error("left behind:", e.Name())
		}
	}
}

func TestFailedInstallKeepsTheOldOne(t *testing.T) {
	for name, b := range map[string]builder{
		"build fails": func(string, io.Writer) (mark, error) { return mark{}, errors.New("compile error") },
		"not started": fake("exit 3"),
		"nonsense":    fake("echo hello"),
		"not a program": func(binary string, _ io.Writer) (mark, error) {
			return mark{Build: "b2"}, os.WriteFile(binary, []byte("text"), 0o755)
		},
		"nothing built": func(string, io.Writer) (mark, error) { return mark{Build: "b2"}, nil },
	} {
		p := at(t)
		mustInstall(t, p)
		if err := install(p, b, io.Discard); err == nil {
			t.Errorf("%s: no error", name)
		}
		if x := examine(p); x != nil {
			t.Errorf("%s: the old kernel is damaged: %v", name, x)
		}
		onlyKernels(t, p)
		fresh := at(t)
		if err := install(fresh, b, io.Discard); err == nil || exists(fresh.dir()) {
			t.Errorf("%s: a broken kernel was installed (%v)", name, err)
		}
	}
}

func TestForeignKernelsAreLeftAlone(t *testing.T) {
	for name, content := range map[string]string{
		"stock gophernotes": `{"argv":["gophernotes","{connection_file}"],"display_name":"Go","language":"go"}`,
		"other metadata":    `{"metadata":{"other":{}}}`,
		"not JSON":          `{`,
		"no kernel.json":    "",
	} {
		p := at(t)
		if err := os.MkdirAll(p.dir(), 0o755); err != nil {
			t.Fatal(err)
		}
		if content != "" {
			if err := os.WriteFile(filepath.Join(p.dir(), "kernel.json"), []byte(content), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		for verb, err := range map[string]error{"install": install(p, fake(good), io.Discard), "uninstall": uninstall(p, io.Discard)} {
			if err == nil || !strings.Contains(err.Error(), "not made by gpunotes") {
				t.Errorf("%s, %s: %v", name, verb, err)
			}
		}
		if !exists(p.dir()) {
			t.Errorf("%s: removed", name)
		}
	}
}

func TestUninstall(t *testing.T) {
	p := at(t)
	mustInstall(t, p)
	other := p
	other.name = "other"
	mustInstall(t, other)
	if err := uninstall(p, io.Discard); err != nil || exists(p.dir()) || !exists(other.dir()) {
		t.Error(err)
	}
	if err := uninstall(p, io.Discard); err == nil || !strings.Contains(err.Error(), "no kernel") {
		t.Error(err)
	}
}

func TestDoctorFindsWhatIsBroken(t *testing.T) {
	edit := func(old, new string) func(string) error {
		return func(dir string) error {
			path := filepath.Join(dir, "kernel.json")
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			if !strings.Contains(string(data), old) {
				return fmt.Errorf("nothing to replace: %s", old)
			}
			return os.WriteFile(path, []byte(strings.ReplaceAll(string(data), old, new)), 0o644)
		}
	}
	script := func(text string) func(string) error {
		return func(dir string) error { return os.WriteFile(filepath.Join(dir, "gophernotes"), []byte(text), 0o755) }
	}
	for _, c := range []struct {
		name       string
		do         func(dir string) error
		what, cure string
	}{
		{"missing", os.RemoveAll, "is not installed", "go run ./jupyter install --prefix"},
		{"no kernel.json", func(d string) error { return os.Remove(filepath.Join(d, "kernel.json")) }, "no kernel.json", "/share/jupyter/kernels/gpunotes, then go run ./jupyter install --prefix"},
		{"empty", func(d string) error { return os.WriteFile(filepath.Join(d, "kernel.json"), []byte("{}"), 0o644) }, "does not say whose", "rm -r "},
		{"nameless", func(d string) error {
			return os.WriteFile(filepath.Join(d, "kernel.json"), []byte(`{"argv":["thing"]}`), 0o644)
		}, `another kernel ("thing")`, "--as"},
		{"not JSON", edit("{", "["), "not valid JSON", "install"},
		{"not ours", edit(`"gpunotes": {`, `"x": {`), "another kernel", "--as"},
		{"argv", edit("{resource_dir}/gophernotes", "/gone/gophernotes"), "/gone/gophernotes", "install"},
		{"interrupt mode", edit("message", "signal"), "interrupt_mode", "install"},
		{"no program", func(d string) error { return os.Remove(filepath.Join(d, "gophernotes")) }, "missing", "install"},
		{"directory", func(d string) error {
			return errors.Join(os.Remove(filepath.Join(d, "gophernotes")), os.Mkdir(filepath.Join(d, "gophernotes"), 0o755))
		}, "not a file", "install"},
		{"not executable", func(d string) error { return os.Chmod(filepath.Join(d, "gophernotes"), 0o644) }, "may not be executed", "chmod +x"},
		{"other machine", script("\x7fELF\x02\x01\x01 not for here"), "not a program for this machine", "install"},
		{"crashes", script("#!/bin/sh\necho panic: oh >&2\nexit 2"), "panic: oh", "install"},
		{"silent", script("#!/bin/sh\n"), "does not work", "install"},
		{"mixed", script("#!/bin/sh\necho '{\"build\":\"b0\"}'"), "two different builds", "install"},
	} {
		p := at(t)
		mustInstall(t, p)
		if err := c.do(p.dir()); err != nil {
			t.Fatal(c.name, err)
		}
		x := examine(p)
		if len(x) != 1 || !strings.Contains(x[0].what, c.what) || !strings.Contains(x[0].cure, c.cure) {
			t.Errorf("%s: %v, want %q and the cure %q", c.name, x, c.what, c.cure)
		}
	}
}

func TestDoctorAsksJupyter(t *testing.T) {
	p := at(t)
	mustInstall(t, p)
	jupyter := filepath.Join(t.TempDir(), "jupyter")
	for _, c := range []struct{ name, output, what string }{
		{"well", fmt.Sprintf(`{"kernelspecs":{"gpunotes":{"resource_dir":%q}}}`, p.dir()), ""},
		{"unseen", `{"kernelspecs":{"python3":{"resource_dir":"/x"}}}`, "does not look"},
		{"shadowed", `{"kernelspecs":{"gpunotes":{"resource_dir":"/elsewhere/gpunotes"}}}`, "hides"},
		{"broken", `Traceback`, "does not work"},
	} {
		if err := os.WriteFile(jupyter, []byte("#!/bin/sh\ncat <<'END'\n"+c.output+"\nEND\n"), 0o755); err != nil {
			t.Fatal(err)
		}
		x := examineJupyter(p, jupyter)
		if c.what == "" {
			if x != nil {
				t.Errorf("%s: %v", c.name, x)
			}
		} else if len(x) != 1 || !strings.Contains(x[0].what, c.what) || x[0].cure == "" {
			t.Errorf("%s: %v, want %q", c.name, x, c.what)
		}
	}
	if x := examineJupyter(p, ""); len(x) != 1 || !strings.Contains(x[0].cure, "pip install") {
		t.Error(x)
	}
}

// tree makes a small source tree.
func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o444); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func TestFingerprint(t *testing.T) {
	files := map[string]string{"go.mod": "module gpunotes", "gpukit/a.go": "package gpukit", "gpukit/card.json": "{}", "gpukit/a_test.go": "1", "notebooks/x.ipynb": "{}"}
	print := func() string {
		s, err := fingerprint(tree(t, files))
		if err != nil || len(s) != 16 {
			t.Fatal(s, err)
		}
		return s
	}
	first := print()
	for _, same := range []string{"gpukit/a_test.go", "notebooks/x.ipynb", "gpukit/README.md", "gpukit/testdata/x", "jupyter/lab/x.py", "gpukit/internal/libm/accuracy/x.go"} {
		files[same] += "changed"
		if print() != first {
			t.Errorf("%s does not go into the kernel, but counts", same)
		}
	}
	for _, other := range []string{"gpukit/a.go", "gpukit/card.json", "go.mod", "plots/new.go", "jupyter/_kernel/x.go"} {
		before := print()
		files[other] += "changed"
		if print() == before {
			t.Errorf("%s goes into the kernel, but does not count", other)
		}
	}
}

// What make builds the kernel anew for is what the kernel says that it is of.
func TestMakefileAndFingerprintAgree(t *testing.T) {
	root, err := sourceRoot()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(root, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	value := map[string]string{}
	for _, m := range regexp.MustCompile(`(?m)^(\w+) := (.*)$`).FindAllStringSubmatch(string(text), -1) {
		value[m[1]] = regexp.MustCompile(`\$\(\w+\)`).ReplaceAllStringFunc(m[2], func(v string) string { return value[v[2:len(v)-1]] })
	}
	list := strings.Fields(value["NOT_IN_KERNEL"])
	slices.Sort(list)
	if want := slices.Sorted(slices.Values(outside)); !slices.Equal(list, want) {
		t.Errorf("the Makefile leaves out %q, jupyter %q", list, want)
	}
	if !strings.Contains(value["KERNEL_SOURCES"], strings.Join(kernelSource[:2], " ")) || !strings.Contains(value["KERNEL_SOURCES"], "find "+strings.Join(kernelSource[2:], " ")) {
		t.Errorf("the Makefile looks elsewhere: %s", value["KERNEL_SOURCES"])
	}
	for _, dir := range outside {
		if !exists(filepath.Join(root, dir)) {
			t.Errorf("there is no %s", dir)
		}
	}
	out, err := goTool(root, "list", "-deps", "./jupyter", "./jupyter/bindings/gen", "./jupyter/bindings", "./jupyter/cell", "./jupyter/stream", "./jupyter/apidoc")
	if err != nil {
		t.Fatal(err)
	}
	for path := range strings.FieldsSeq(string(out)) {
		dir, ours := strings.CutPrefix(path, "gpunotes/")
		for _, o := range outside {
			if ours && (dir == o || strings.HasPrefix(dir, o+"/")) {
				t.Errorf("%s goes into the kernel, but does not count", path)
			}
		}
	}
}

func TestDoctorNoticesNewerSource(t *testing.T) {
	p := at(t)
	mustInstall(t, p)
	root := tree(t, map[string]string{"go.mod": "module gpunotes"})
	x := examineAge(p, root)
	if len(x) != 1 || !strings.Contains(x[0].what, "another state of the source") {
		t.Error(x)
	}
	now, err := fingerprint(root)
	if err != nil {
		t.Fatal(err)
	}
	s, err := readSpec(p.dir())
	if err != nil {
		t.Fatal(err)
	}
	s.Metadata.Mark.Build = now
	data, _ := json.Marshal(s)
	if err := os.WriteFile(filepath.Join(p.dir(), "kernel.json"), data, 0o644); err != nil {
		t.Fatal(err)
	}
	if x := examineAge(p, root); x != nil {
		t.Error(x)
	}
}

func TestAssemble(t *testing.T) {
	notes := tree(t, map[string]string{
		"go.mod": "module m", "LICENSE": "l", "main.go": "old", "kernel.go": "k", "kernel_test.go": "t",
		"imports/a.go": "i", "examples/x.go": "x", "README.md": "r",
	})
	ours := tree(t, map[string]string{"main.go": "new", "loop.go": "loop"})
	folder := filepath.Join(t.TempDir(), "out")
	if err := assemble(folder, notes, ours); err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	filepath.WalkDir(folder, func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			data, _ := os.ReadFile(path)
			rel, _ := filepath.Rel(folder, path)
			got[filepath.ToSlash(rel)] = string(data)
		}
		return err
	})
	want := map[string]string{"go.mod": "module m", "LICENSE": "l", "main.go": "new", "kernel.go": "k", "imports/a.go": "i", "loop.go": "loop"}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%v\nwant\n%v", got, want)
	}
	clash := tree(t, map[string]string{"kernel.go": "mine"})
	if err := assemble(filepath.Join(t.TempDir(), "out"), notes, clash); err == nil {
		t.Error("a file of gophernotes was replaced")
	}
	if err := assemble(filepath.Join(t.TempDir(), "out"), notes, t.TempDir()); err == nil {
		t.Error("built without our loop")
	}
}

func TestNamesOfOtherKernels(t *testing.T) {
	for name, taken := range map[string]bool{
		"python3": true, "python3.12": true, "ir": true, "julia-1.10": true, "bash": true, "gonb": true, ".net-csharp": true, "xcpp17": true,
		"gpunotes": false, "gophernotes": false, "go": false, "mine": false, "python-for-go": false, "irene": false,
	} {
		p := at(t).named(name)
		err := install(p, fake(good), io.Discard)
		if (err != nil) != taken {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if taken {
			if exists(p.dir()) {
				t.Errorf("%s was installed", name)
			}
			continue
		}
		s, err := readSpec(p.dir())
		if err != nil || name != "gpunotes" && !strings.Contains(s.DisplayName, name) || !strings.HasPrefix(s.DisplayName, "Go (gpunotes") {
			t.Errorf("%s: %q %v", name, s.DisplayName, err)
		}
	}
	// One that we made under such a name long ago can be renewed.
	p := at(t)
	mustInstall(t, p)
	if err := os.Rename(p.dir(), p.named("python3").dir()); err != nil {
		t.Fatal(err)
	}
	mustInstall(t, p.named("python3"))
}

func TestDoctorKnowsOurOtherKernels(t *testing.T) {
	p, user := at(t), at(t)
	mustInstall(t, p.named("mine"))
	mustInstall(t, user)
	if err := os.MkdirAll(p.named("other").dir(), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("JUPYTER_DATA_DIR", user.data)
	t.Setenv("VIRTUAL_ENV", "")
	x := examine(p)
	if len(x) != 1 || !strings.Contains(x[0].cure, p.named("mine").command("doctor")) || !strings.Contains(x[0].cure, user.dir()+": go run ./jupyter doctor --user") || strings.Contains(x[0].cure, "other") {
		t.Error(x)
	}
}

func TestOutsideTheSource(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	if _, err := sourceRoot(); err == nil || !strings.Contains(err.Error(), "not inside the source of gpunotes") {
		t.Error(err)
	}
	if err := os.WriteFile("go.mod", []byte("module example.com/x\n\ngo 1.21\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := sourceRoot(); err == nil || !strings.Contains(err.Error(), `"example.com/x"`) {
		t.Error(err)
	}
}

func TestUsage(t *testing.T) {
	for _, c := range []struct {
		args   []string
		status int
		text   string
	}{
		{nil, 2, "usage:"},
		{[]string{"install", "--nonsense"}, 2, "nonsense"},
		{[]string{"install", "extra"}, 2, "extra"},
		{[]string{"dance", "--prefix", "/x"}, 2, "dance"},
		{[]string{"install", "--prefix", "/x", "--user"}, 2, "not both"},
		{[]string{"install", "--cuda=maybe"}, 2, "auto, yes, no"},
		{[]string{"install", "--help"}, 0, "usage:"},
		{[]string{"help"}, 0, "usage:"},
		{[]string{"--help"}, 0, "usage:"},
		{[]string{"install", "--prefix", t.TempDir(), "--as", "python3"}, 1, "take another name"},
		{[]string{"uninstall", "--prefix", t.TempDir()}, 1, "no kernel"},
	} {
		var out, errs bytes.Buffer
		if got := run(c.args, &out, &errs); got != c.status || !strings.Contains(out.String()+errs.String(), c.text) {
			t.Errorf("%q: status %d, %s%s", c.args, got, &out, &errs)
		}
	}
}

func TestSourcesOfTheKernelCarryTheirVersion(t *testing.T) {
	// The copied module says go 1.13; only this line lifts a file above it.
	files, err := filepath.Glob("_kernel/*.go")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(string(data), "//go:build go1.21\n") && !strings.HasPrefix(string(data), "//go:build go1.21 && ") {
			t.Errorf("%s does not begin with //go:build go1.21", f)
		}
	}
}

// What --with named before is kept, in the version that is asked for now.
func TestPackagesAreKept(t *testing.T) {
	p, mine, gone := at(t), t.TempDir(), filepath.Join(t.TempDir(), "gone")
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	if w := gather(p, []string{"example.com/a", "./x"}, io.Discard); len(w.kept) > 0 || fmt.Sprint(w.asked) != "[example.com/a "+filepath.Join(here, "x")+"]" {
		t.Errorf("without an old kernel: %+v", w)
	}
	err = install(p, func(binary string, out io.Writer) (mark, error) {
		m, err := fake(good)(binary, out)
		m.With = []string{"example.com/a@v1.0.0", "example.com/b", mine, gone}
		return m, err
	}, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ asked, kept, want, said string }{
		{"", "example.com/a@v1.0.0 example.com/b " + mine, "", "left out: " + gone},
		{"example.com/a", "example.com/b " + mine, "example.com/a", "--with none"},
		{"example.com/b@v2.0.0 " + mine, "example.com/a@v1.0.0", "example.com/b@v2.0.0 " + mine, "kept: example.com/a@v1.0.0,"},
		{"none", "", "", ""},
		{"none example.com/c", "", "example.com/c", ""},
	} {
		var out bytes.Buffer
		w := gather(p, strings.Fields(c.asked), &out)
		if strings.Join(w.kept, " ") != c.kept || strings.Join(w.asked, " ") != c.want || !strings.Contains(out.String(), c.said) || (c.said == "") != (out.Len() == 0) {
			t.Errorf("--with %s: %+v, said %q", c.asked, w, out.String())
		}
	}
}

// A package that was kept and cannot be built any more does not keep the kernel from being built.
func TestKeptPackagesMayFail(t *testing.T) {
	var out bytes.Buffer
	t.Chdir(t.TempDir()) // outside of the source nothing can be built
	_, err := kernelBuilder(machine{}, "no", packages{kept: []string{"example.com/a"}})("unused", &out)
	if err == nil || strings.Count(out.String(), "finding gophernotes") != 2 || !strings.Contains(out.String(), "so once more without example.com/a") {
		t.Errorf("%v\n%s", err, &out)
	}
}

func TestKeptPackagesGoWhereTheyAreToBlame(t *testing.T) {
	for _, c := range []struct {
		kept, asked []string
		bad         string // cannot be built
		want, err   string
	}{
		{[]string{"a"}, []string{"b"}, "", "a b", ""},
		{[]string{"a"}, []string{"b"}, "a", "b", ""},
		{[]string{"a"}, []string{"b"}, "b", "", "a b"},
		{nil, []string{"b"}, "b", "", "b"},
	} {
		build := func(with []string) (mark, error) {
			if slices.Contains(with, c.bad) {
				return mark{}, errors.New(strings.Join(with, " "))
			}
			return mark{With: with}, nil
		}
		made, err := buildKeeping(packages{kept: c.kept, asked: c.asked}, build, io.Discard)
		if got := strings.Join(made.With, " "); got != c.want || (err == nil) != (c.err == "") || err != nil && err.Error() != c.err {
			t.Errorf("%v: built with %q, %v", c, got, err)
		}
	}
}

// The go command may go back to an older gonum to have a package: then nothing is built.
func TestOlderRequirementsAreRefused(t *testing.T) {
	root, err := sourceRoot()
	if err != nil {
		t.Fatal(err)
	}
	ours, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	gonum, err := findModule(root, "gonum.org/v1/gonum")
	if err != nil {
		t.Fatal(err)
	}
	newest := gonum.Path + " " + gonum.Version
	for version, want := range map[string]string{gonum.Version: "", "v0.999.0": "", "v0.1.0": "example.com/a does not go with " + newest} {
		p := prepared{root: root, modfile: filepath.Join(t.TempDir(), "kernel.mod")}
		text := strings.Replace(string(ours), newest, gonum.Path+" "+version, 1)
		if err := os.WriteFile(p.modfile, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := sameRequirements(p, "example.com/a"); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", version, err)
		}
	}
}
