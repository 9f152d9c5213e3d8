package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/mod/semver"
)

// generator is the package that writes bindings.
const generator = "./jupyter/bindings/gen"

// left are packages of the standard library that gomacro binds by hand, or that
// are of no use in a cell.
var left = regexp.MustCompile(`^(unsafe|plugin|runtime|runtime/.*|syscall|reflect|testing|testing/.*|log/syslog|io/ioutil)$`)

// newer are packages that the standard library has gained since gomacro's bindings were made.
var newer = []string{"crypto/ecdh", "hash/maphash", "log/slog", "net/netip"}

// boundBy finds the packages that the bindings in a folder are for.
func boundBy(dir string) (map[string]bool, error) {
	paths := map[string]bool{}
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return nil, err
	}
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			return nil, err
		}
		for _, m := range boundPackage.FindAllSubmatch(text, -1) {
			paths[string(m[1])] = true
		}
	}
	return paths, nil
}

// goRelease is the release of the go command that builds, such as go1.26.
func goRelease(root string) string {
	out, err := goTool(root, "env", "GOVERSION")
	if err != nil {
		return runtime.Version()
	}
	v := strings.SplitN(strings.TrimSpace(string(out)), ".", 3)
	return strings.Join(v[:min(len(v), 2)], ".")
}

// rebind makes the bindings of the standard library anew, with what it has in
// the release that builds. Those that are committed are kept if they are of it.
func rebind(p *prepared) error {
	old, err := boundBy(filepath.Join(p.copies[gomacro], "imports"))
	if err != nil {
		return err
	}
	home := filepath.Join(p.root, "jupyter", "bindings")
	ours, err := boundBy(home)
	if err != nil {
		return err
	}
	paths := slices.Clone(newer)
	for path := range old {
		if !left.MatchString(path) && !ours[path] {
			paths = append(paths, path)
		}
	}
	slices.Sort(paths)
	if _, err := bind(*p, "std", paths); err != nil {
		return err
	}
	text, err := os.ReadFile(filepath.Join(home, "strings_bindings.go"))
	if err != nil || bytes.Contains(text, []byte("// As of "+goRelease(p.root)+".\n")) {
		return err
	}
	var again []string
	for path := range ours {
		if first, _, _ := strings.Cut(path, "/"); !strings.Contains(first, ".") && first != "gpunotes" {
			again = append(again, path)
		}
	}
	dir := filepath.Join(filepath.Dir(p.folder), "again")
	if _, err := generate(*p, dir, "bindings", again); err != nil {
		return err
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return err
	}
	overlay := map[string]map[string]string{"Replace": {}}
	for _, f := range files {
		overlay["Replace"][filepath.Join(home, filepath.Base(f))] = f
	}
	data, err := json.Marshal(overlay)
	if err != nil {
		return err
	}
	p.overlay = filepath.Join(filepath.Dir(p.folder), "overlay.json")
	return os.WriteFile(p.overlay, data, 0o644)
}

// generate runs the generator of bindings, and returns what it says of the
// packages that it binds only in part.
func generate(p prepared, dir, name string, paths []string) (skipped []string, err error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	args := append([]string{"run", generator, "-dir", dir, "-package", name}, paths...)
	var env []string
	if len(p.with) > 0 {
		env = []string{"GOFLAGS=-modfile=" + p.modfile} // it knows more modules
	}
	out, err := goToolWith(env, p.root, args...)
	for line := range strings.Lines(string(out)) {
		if strings.Contains(line, ": skipped ") {
			skipped = append(skipped, strings.TrimSpace(line))
		}
	}
	return skipped, err
}

// bind makes a package of bindings beside the package to build, which imports it.
func bind(p prepared, name string, paths []string) (skipped []string, err error) {
	dir := filepath.Join(p.folder, name)
	if skipped, err = generate(p, dir, name, paths); err != nil {
		return nil, err
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return nil, err
	}
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			return nil, err
		}
		// gophernotes' module is of an old Go; the tag lets a file have more.
		if err := os.WriteFile(f, append([]byte("//go:build go1.21\n\n"), text...), 0o644); err != nil {
			return nil, err
		}
	}
	text := fmt.Sprintf("package main\n\nimport _ %q\n", gophernotes+"/"+name)
	return skipped, os.WriteFile(filepath.Join(p.folder, "bound_"+name+".go"), []byte(text), 0o644)
}

// packages are what is compiled in beside what every kernel has.
type packages struct {
	kept  []string // that the kernel had which is replaced
	asked []string
}

// gather finds what to compile in: what is asked for, and what the installed kernel
// has, but for other versions of the same and folders that are gone. The word none
// leaves the latter out.
func gather(p place, asked []string, out io.Writer) (w packages) {
	path := func(s string) string { s, _, _ = strings.Cut(s, "@"); return s }
	for _, s := range asked {
		if isFolder(s) {
			if abs, err := filepath.Abs(s); err == nil {
				s = abs // it is kept for a time when the current directory may be another
			}
		}
		if s != "none" {
			w.asked = append(w.asked, s)
		}
	}
	old, err := readSpec(p.dir())
	if err != nil || old.Metadata.Mark == nil || slices.Contains(asked, "none") {
		return w
	}
	for _, s := range old.Metadata.Mark.With {
		switch {
		case slices.ContainsFunc(w.asked, func(a string) bool { return path(a) == path(s) }):
		case isFolder(s) && !exists(s):
			fmt.Fprintf(out, "left out: %s, which the kernel had, is no longer there\n", s)
		default:
			w.kept = append(w.kept, s)
		}
	}
	if len(w.kept) > 0 {
		fmt.Fprintf(out, "kept: %s, which the kernel had (--with none leaves it out)\n", strings.Join(w.kept, ", "))
	}
	return w
}

func isFolder(s string) bool { return strings.HasPrefix(s, ".") || filepath.IsAbs(s) }

// bindMore compiles further packages in: import paths, with @version if it is not
// to be the newest, or directories of a module, all of whose packages are meant
// that can be imported.
func bindMore(p prepared, with []string) (skipped []string, err error) {
	p.with = with
	var paths []string
	for _, w := range with {
		if isFolder(w) {
			list, err := addLocal(p, w)
			if err != nil {
				return nil, err
			}
			paths = append(paths, list...)
			continue
		}
		path, version, _ := strings.Cut(w, "@")
		if first, _, _ := strings.Cut(path, "/"); strings.Contains(first, ".") {
			if version == "" {
				version = "latest"
			}
			if known, err := goTool(p.root, "list", "-modfile="+p.modfile, "-find", path); err != nil || version != "latest" || len(known) == 0 {
				if _, err := goTool(p.root, "get", "-modfile="+p.modfile, path+"@"+version); err != nil {
					return nil, fmt.Errorf("%s cannot be had: %w", w, err)
				}
				if err := sameRequirements(p, w); err != nil {
					return nil, err
				}
			}
		}
		paths = append(paths, path)
	}
	return bind(p, "with", paths)
}

// addLocal makes a module on this machine part of the build, and lists its packages.
func addLocal(p prepared, dir string) ([]string, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	if !exists(abs) {
		return nil, fmt.Errorf("there is no folder %s", dir)
	}
	out, err := goTool(abs, "list", "-m", "-json")
	if err != nil {
		return nil, fmt.Errorf("%s is not in a module that the go command can read: %w", dir, err)
	}
	var m module
	if err := json.Unmarshal(out, &m); err != nil {
		return nil, err
	}
	if m.Dir == "" || m.Path == "" {
		return nil, fmt.Errorf("%s is not in a module: it needs a go.mod (go mod init NAME)", dir)
	}
	list, err := goTool(abs, "list", "-f", `{{if and (ne .Name "main") .GoFiles}}{{.ImportPath}}{{end}}`, "./...")
	if err != nil {
		return nil, err
	}
	var paths []string
	for path := range strings.FieldsSeq(string(list)) {
		if !strings.Contains("/"+path+"/", "/internal/") {
			paths = append(paths, path)
		}
	}
	if len(paths) == 0 {
		return nil, fmt.Errorf("%s has no package that can be imported", dir)
	}
	if m.Path == "gpunotes" {
		return paths, nil
	}
	const version = "@v0.0.0-00010101000000-000000000000" // of a module that is only here
	edit := []string{"mod", "edit", "-require=" + m.Path + version, "-replace=" + m.Path + "=" + m.Dir, p.modfile}
	if _, err := goTool(p.root, edit...); err != nil {
		return nil, err
	}
	// What it needs, it brings.
	if _, err := goTool(p.root, "get", "-modfile="+p.modfile, m.Path+version); err != nil {
		return nil, err
	}
	return paths, nil
}

// sameRequirements reports what the go command has changed of our own requirements to
// have w: an older version of what the kernel is made of would not compile.
func sameRequirements(p prepared, w string) error {
	versions := func(modfile string) (map[string]string, error) {
		out, err := goTool(p.root, "mod", "edit", "-json", modfile)
		if err != nil {
			return nil, err
		}
		var mod struct{ Require []module }
		if err := json.Unmarshal(out, &mod); err != nil {
			return nil, err
		}
		list := map[string]string{}
		for _, m := range mod.Require {
			list[m.Path] = m.Version
		}
		return list, nil
	}
	ours, err := versions(filepath.Join(p.root, "go.mod"))
	if err != nil {
		return err
	}
	now, err := versions(p.modfile)
	if err != nil {
		return err
	}
	for _, path := range slices.Sorted(maps.Keys(ours)) {
		if now[path] != "" && semver.Compare(now[path], ours[path]) < 0 {
			return fmt.Errorf("%s does not go with %s %s, which the kernel is made of: take a later version", w, path, ours[path])
		}
	}
	return nil
}
