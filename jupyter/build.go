package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"time"

	"gpunotes/jupyter/apidoc"
)

const (
	gophernotes = "github.com/gopherdata/gophernotes"
	gomacro     = "github.com/cosmos72/gomacro"
	zeromq      = "github.com/go-zeromq/zmq4"
)

// goTool runs the go command in the module, untouched by the caller's own
// workspace and flags.
func goTool(dir string, args ...string) ([]byte, error) { return goToolWith(nil, dir, args...) }

// goToolWith is goTool with more in the environment.
func goToolWith(env []string, dir string, args ...string) ([]byte, error) {
	path, err := exec.LookPath("go")
	if err != nil {
		return nil, errors.New("the go command is not on your PATH; install Go from https://go.dev/dl/ (the installed kernel itself will not need it)")
	}
	cmd := exec.Command(path, args...)
	cmd.Dir = dir
	cmd.Env = append(append(os.Environ(), "GOWORK=off", "GOFLAGS=", "CGO_ENABLED=0"), env...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return stdout.Bytes(), fmt.Errorf("go %s: %w\n%s", strings.Join(args, " "), err, strings.TrimSpace(stderr.String()))
	}
	return stdout.Bytes(), nil
}

type module struct {
	Path, Version, Dir string
}

// sourceRoot finds the module gpunotes around the current directory.
func sourceRoot() (string, error) {
	here, err := os.Getwd()
	if err != nil {
		return "", err
	}
	out, err := goTool("", "env", "GOMOD")
	if err != nil {
		return "", err
	}
	if mod := strings.TrimSpace(string(out)); mod == "" || mod == os.DevNull {
		return "", fmt.Errorf("%s is not inside the source of gpunotes, which is needed here: cd into it first", here)
	}
	if out, err = goTool("", "list", "-m", "-json"); err != nil {
		return "", err
	}
	var m module
	if err := json.Unmarshal(out, &m); err != nil {
		return "", err
	}
	if m.Path != "gpunotes" || m.Dir == "" {
		return "", fmt.Errorf("%s belongs to the module %q: cd into the source of gpunotes first", here, m.Path)
	}
	return m.Dir, nil
}

// prepared is a folder in which the kernel can be built.
type prepared struct {
	root    string            // of our module
	folder  string            // the package to build
	modfile string            // with which to build it
	notes   module            // gophernotes as published
	copies  map[string]string // the folders in place of modules
	with    []string          // what is compiled in beside
	overlay string            // for the go command; "" if none is needed
}

// prepare makes a copy of gophernotes with our loop in it, and copies of the
// modules that are corrected.
func prepare(work string, with []string, step func(what string, do func() error) error, progress io.Writer) (p prepared, err error) {
	found := map[string]module{}
	err = step("finding gophernotes", func() (err error) {
		if p.root, err = sourceRoot(); err != nil {
			return err
		}
		if p.notes, err = findModule(p.root, gophernotes); err != nil {
			return err
		}
		for path := range patches {
			if found[path], err = findModule(p.root, path); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return p, err
	}
	p.folder = filepath.Join(work, "gophernotes")
	p.modfile = filepath.Join(work, "kernel.mod")
	p.copies = map[string]string{gophernotes: p.folder}
	err = step("copying gophernotes "+p.notes.Version+" and adding our loop", func() error {
		if err := assemble(p.folder, p.notes.Dir, filepath.Join(p.root, "jupyter", "_kernel")); err != nil {
			return err
		}
		for path, list := range patches {
			p.copies[path] = filepath.Join(work, filepath.Base(path))
			if err := correct(p.copies[path], found[path].Dir, list); err != nil {
				return err
			}
			if err := addFiles(p.copies[path], filepath.Join(p.root, "jupyter", "_"+filepath.Base(path))); err != nil {
				return err
			}
		}
		return writeModfile(p.modfile, p.root, p.copies)
	})
	if err != nil {
		return p, err
	}
	if err := step("bindings of the standard library of "+goRelease(p.root), func() error { return rebind(&p) }); err != nil {
		return p, err
	}
	if len(with) > 0 {
		var skipped []string
		err := step("bindings of "+strings.Join(with, ", "), func() (err error) {
			skipped, err = bindMore(p, with)
			return err
		})
		if err != nil {
			return p, err
		}
		for _, s := range skipped {
			fmt.Fprintln(progress, "  "+s)
		}
	}
	return p, step("collecting documentation", func() error {
		return writeReference(p, filepath.Join(p.folder, "std"), filepath.Join(p.folder, "with"), filepath.Join(p.copies[gomacro], "imports"), filepath.Join(p.root, "jupyter", "bindings"))
	})
}

// stepwise runs steps and writes how long each took.
func stepwise(progress io.Writer) func(what string, do func() error) error {
	return func(what string, do func() error) error {
		fmt.Fprintf(progress, "%s ...", what)
		start := time.Now()
		err := do()
		result := "s"
		if err != nil {
			result = "s, failed"
		}
		fmt.Fprintf(progress, " %.1f %s\n", time.Since(start).Seconds(), result)
		return err
	}
}

// buildKernel compiles the kernel from the source around the current directory.
// with names packages to compile in beside those that it always has.
func buildKernel(binary string, cuda cudaBuild, with []string, progress io.Writer) (mark, error) {
	m := mark{With: with}
	work, err := workFolder()
	if err != nil {
		return m, err
	}
	defer os.RemoveAll(work)
	step := stepwise(progress)
	p, err := prepare(work, with, step, progress)
	if err != nil {
		return m, err
	}
	if m.Build, err = fingerprint(p.root); err != nil {
		return m, err
	}
	m.Go = runtime.Version()
	err = step("compiling (minutes the first time)", func() (err error) {
		args := []string{"build", "-buildvcs=false", "-trimpath", "-modfile=" + p.modfile, "-ldflags=-s -w -X main.build=" + m.Build + " -X main.revision=" + revision(p.root), "-o", binary}
		if p.overlay != "" {
			args = append(args, "-overlay="+p.overlay)
		}
		var env []string
		if cuda.with {
			args = append(args, cudaTags)
			if env, err = cudaEnv(p.root, cuda.header); err != nil {
				return err
			}
		}
		_, err = goToolWith(env, p.root, append(args, gophernotes)...)
		return err
	})
	return m, err
}

// What goes into the kernel is in kernelSource, but for the folders outside, tests and
// pages. The Makefile has the same list.
var (
	kernelSource = []string{"go.mod", "go.sum", "gpukit", "plots", "jupyter"}
	outside      = []string{"jupyter/lab", "jupyter/kerneltest", "gpukit/cpubench", "gpukit/gpubench", "gpukit/internal/experiments", "gpukit/internal/libm/accuracy"}
)

// revision is the commit of the source, with a + if it was changed since; "" where
// git does not know it.
func revision(root string) string {
	git := func(args ...string) (string, error) {
		cmd := exec.Command("git", args...)
		cmd.Dir = root
		out, err := cmd.Output()
		return strings.TrimSpace(string(out)), err
	}
	commit, err := git("rev-parse", "--short=12", "HEAD")
	if err != nil {
		return ""
	}
	args := append([]string{"status", "--porcelain", "--untracked-files=no", "--"}, kernelSource...)
	args = append(args, ":(exclude)*_test.go", ":(exclude)*.md", ":(exclude)*/testdata/*")
	for _, dir := range outside {
		args = append(args, ":(exclude)"+dir)
	}
	if changed, err := git(args...); err != nil || changed != "" {
		commit += "+"
	}
	return commit
}

func workFolder() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return os.MkdirTemp("", "gpunotes-kernel-")
	}
	cache = filepath.Join(cache, "gpunotes")
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return os.MkdirTemp("", "gpunotes-kernel-")
	}
	return os.MkdirTemp(cache, "kernel-")
}

// findModule returns a module in the module cache, downloading it if it is not
// there yet.
func findModule(root, path string) (module, error) {
	var m module
	for _, args := range [][]string{{"list", "-m", "-json", path}, {"mod", "download", "-json", path}} {
		out, err := goTool(root, args...)
		if err != nil {
			return m, err
		}
		if err := json.Unmarshal(out, &m); err != nil {
			return m, err
		}
		if m.Dir != "" {
			return m, nil
		}
	}
	return m, fmt.Errorf("%s could not be downloaded", path)
}

// assemble makes the package to build: gophernotes' files, and ours in place of
// its main.go. Its tests and pictures are of no use here.
func assemble(folder, notes, ours string) error {
	err := filepath.WalkDir(notes, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(notes, path)
		if err != nil {
			return err
		}
		if d.IsDir() {
			if rel != "." && rel != "imports" {
				return filepath.SkipDir
			}
			return os.MkdirAll(filepath.Join(folder, rel), 0o755)
		}
		name := d.Name()
		if name != "go.mod" && name != "LICENSE" && (!strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go")) {
			return nil
		}
		return copyFile(filepath.Join(folder, rel), path)
	})
	if err != nil {
		return err
	}
	if err := embeds(filepath.Join(folder, "go.mod")); err != nil {
		return err
	}
	files, err := filepath.Glob(filepath.Join(ours, "*.go"))
	if err != nil || len(files) == 0 {
		return errors.Join(err, fmt.Errorf("no source of the kernel in %s", ours))
	}
	for _, f := range files {
		dst := filepath.Join(folder, filepath.Base(f))
		if filepath.Base(f) != "main.go" && exists(dst) {
			return fmt.Errorf("%s would replace a file of gophernotes: give it another name", f)
		}
		if err := copyFile(dst, f); err != nil {
			return err
		}
	}
	return nil
}

var goLine = regexp.MustCompile(`(?m)^go 1\.1[0-5]$`)

// embeds raises the Go release that a go.mod names to the first that has go:embed.
func embeds(gomod string) error {
	text, err := os.ReadFile(gomod)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return os.WriteFile(gomod, goLine.ReplaceAll(text, []byte("go 1.16")), 0o644)
}

// correct copies the packages of a module and applies patches to the copy.
func correct(folder, from string, patches []patch) error {
	err := filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		name := d.Name()
		switch {
		case d.IsDir() && rel != "." && (name[0] == '_' || name[0] == '.' || name == "testdata"):
			return filepath.SkipDir
		case d.IsDir():
			return os.MkdirAll(filepath.Join(folder, rel), 0o755)
		case name != "go.mod" && name != "LICENSE" && !slices.Contains([]string{".go", ".s", ".h"}, filepath.Ext(name)) || strings.HasSuffix(name, "_test.go"):
			return nil
		}
		return copyFile(filepath.Join(folder, rel), path)
	})
	if err != nil {
		return err
	}
	for _, p := range patches {
		name := filepath.Join(folder, filepath.FromSlash(p.file))
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		if n := strings.Count(string(text), p.old); n != 1 {
			return fmt.Errorf("%s in %s has %d places that read %q; the correction in jupyter/corrections.go is for another version", p.file, from, n, p.old)
		}
		if err := os.WriteFile(name, []byte(strings.Replace(string(text), p.old, p.new, 1)), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// addFiles puts our files of a folder, if there is one, into the packages of the same
// names in the copy of a module.
func addFiles(folder, ours string) error {
	if !exists(ours) {
		return nil
	}
	return filepath.WalkDir(ours, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".go" {
			return err
		}
		rel, err := filepath.Rel(ours, path)
		if err != nil {
			return err
		}
		dst := filepath.Join(folder, rel)
		if exists(dst) {
			return fmt.Errorf("%s would replace a file of the module: give it another name", path)
		}
		return copyFile(dst, path)
	})
}

// copyFile copies contents only: files in the module cache are read-only.
func copyFile(dst, src string) error {
	data, err := os.ReadFile(src)
	if err != nil {
		return err
	}
	return os.WriteFile(dst, data, 0o644)
}

// writeModfile writes our go.mod with modules replaced by folders, and our
// go.sum beside it under the name the go command looks for.
func writeModfile(modfile, root string, folders map[string]string) error {
	mod, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		return err
	}
	for _, path := range slices.Sorted(maps.Keys(folders)) {
		mod = fmt.Appendf(mod, "\nreplace %s => %q\n", path, filepath.ToSlash(folders[path]))
	}
	if err := os.WriteFile(modfile, mod, 0o644); err != nil {
		return err
	}
	return copyFile(strings.TrimSuffix(modfile, ".mod")+".sum", filepath.Join(root, "go.sum"))
}

// boundPackage finds in the source of bindings the package that they are for.
var boundPackage = regexp.MustCompile(`\bPackages\["([^"]+)"\]\s*=`)

// writeReference puts the documentation of every package that cells can import
// into the package to build. dirs hold the bindings. A package without source is
// left out: the kernel shows its types then.
func writeReference(p prepared, dirs ...string) error {
	paths := map[string]bool{"builtin": true}
	for _, dir := range dirs {
		more, err := boundBy(dir)
		if err != nil {
			return err
		}
		maps.Copy(paths, more)
	}
	args := []string{"list", "-e", "-modfile=" + p.modfile, "-json=ImportPath,Dir,GoFiles,CgoFiles", "--"}
	out, err := goTool(p.root, append(args, slices.Sorted(maps.Keys(paths))...)...)
	if err != nil {
		return err
	}
	docs := apidoc.Docs{}
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var l struct {
			ImportPath, Dir   string
			GoFiles, CgoFiles []string
		}
		if err := dec.Decode(&l); err == io.EOF {
			break
		} else if err != nil {
			return err
		}
		if l.Dir != "" && len(l.GoFiles)+len(l.CgoFiles) > 0 {
			_ = docs.Add(apidoc.Package{Path: l.ImportPath, Dir: l.Dir, Files: append(l.GoFiles, l.CgoFiles...)})
		}
	}
	data, err := docs.Pack()
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(p.folder, "reference.gz"), data, 0o644)
}

// fingerprint identifies the source that goes into the kernel.
func fingerprint(root string) (string, error) {
	var files []string
	for _, top := range kernelSource {
		err := filepath.WalkDir(filepath.Join(root, top), func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				if errors.Is(err, fs.ErrNotExist) {
					return nil
				}
				return err
			}
			name := d.Name()
			if d.IsDir() {
				rel, err := filepath.Rel(root, path)
				if err == nil && (name[0] == '.' || name == "testdata" || name == "__pycache__" || slices.Contains(outside, filepath.ToSlash(rel))) {
					return filepath.SkipDir
				}
				return err
			}
			if d.Type().IsRegular() && !strings.HasSuffix(name, "_test.go") && !strings.HasSuffix(name, ".md") {
				files = append(files, path)
			}
			return nil
		})
		if err != nil {
			return "", err
		}
	}
	slices.Sort(files)
	h := sha256.New()
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			return "", err
		}
		rel, err := filepath.Rel(root, f)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(h, "%s %d\n", filepath.ToSlash(rel), len(data))
		h.Write(data)
	}
	return hex.EncodeToString(h.Sum(nil))[:16], nil
}

// checked is what a kernel program says about itself.
type checked struct {
	Build string `json:"build"`
}

// selfcheck starts a kernel program, which runs a small cell and answers.
func selfcheck(binary string) (checked, error) {
	var c checked
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, binary, "--selfcheck")
	cmd.WaitDelay = time.Second
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			return c, errors.New("it did not answer within 30 s")
		}
		text := strings.TrimSpace(stderr.String())
		if lines := strings.Split(text, "\n"); len(lines) > 8 {
			text = strings.Join(lines[:8], "\n")
		}
		return c, fmt.Errorf("%w\n%s", err, text)
	}
	if err := json.Unmarshal(stdout.Bytes(), &c); err != nil || c.Build == "" {
		return c, fmt.Errorf("it answered %q, which no kernel of gpunotes does", firstLine(stdout.String()))
	}
	return c, nil
}

func firstLine(s string) string {
	s, _, _ = strings.Cut(s, "\n")
	if len(s) > 80 {
		s = s[:80]
	}
	return s
}
