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
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"
)

const gophernotes = "github.com/gopherdata/gophernotes"

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
		return nil, fmt.Errorf("go %s: %w\n%s", strings.Join(args, " "), err, strings.TrimSpace(stderr.String()))
	}
	return stdout.Bytes(), nil
}

type module struct {
	Path, Version, Dir, GoMod string
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

// buildKernel compiles the kernel from the source around the current directory.
func buildKernel(binary string, cuda cudaBuild, progress io.Writer) (mark, error) {
	var m mark
	step := func(what string, do func() error) error {
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
	work, err := workFolder()
	if err != nil {
		return m, err
	}
	defer os.RemoveAll(work)
	var root string
	var notes module
	err = step("finding gophernotes", func() (err error) {
		if root, err = sourceRoot(); err != nil {
			return err
		}
		notes, err = findGophernotes(root)
		return err
	})
	if err != nil {
		return m, err
	}
	folder := filepath.Join(work, "gophernotes")
	modfile := filepath.Join(work, "kernel.mod")
	err = step("copying gophernotes "+notes.Version+" and adding our loop", func() error {
		if err := assemble(folder, notes.Dir, filepath.Join(root, "jupyter", "_kernel")); err != nil {
			return err
		}
		if err := writeModfile(modfile, root, folder); err != nil {
			return err
		}
		m.Build, err = fingerprint(root)
		return err
	})
	if err != nil {
		return m, err
	}
	m.Go = runtime.Version()
	err = step("compiling (minutes the first time)", func() (err error) {
		args := []string{"build", "-buildvcs=false", "-trimpath", "-modfile=" + modfile, "-ldflags=-s -w -X main.build=" + m.Build, "-o", binary}
		var env []string
		if cuda.with {
			args = append(args, cudaTags)
			if env, err = cudaEnv(root, cuda.header); err != nil {
				return err
			}
		}
		_, err = goToolWith(env, root, append(args, gophernotes)...)
		return err
	})
	return m, err
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

// findGophernotes returns gophernotes in the module cache, downloading it if
// it is not there yet.
func findGophernotes(root string) (module, error) {
	var m module
	for _, args := range [][]string{{"list", "-m", "-json", gophernotes}, {"mod", "download", "-json", gophernotes}} {
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
	return m, fmt.Errorf("%s could not be downloaded", gophernotes)
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

// copyFile copies contents only: files in the module cache are read-only.
func copyFile(dst, src string) error {
	data, err := os.ReadFile(src)
	if err != nil {
		return err
	}
	return os.WriteFile(dst, data, 0o644)
}

// writeModfile writes our go.mod with gophernotes replaced by folder, and our
// go.sum beside it under the name the go command looks for.
func writeModfile(modfile, root, folder string) error {
	mod, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		return err
	}
	mod = fmt.Appendf(mod, "\nreplace %s => %q\n", gophernotes, filepath.ToSlash(folder))
	if err := os.WriteFile(modfile, mod, 0o644); err != nil {
		return err
	}
	return copyFile(strings.TrimSuffix(modfile, ".mod")+".sum", filepath.Join(root, "go.sum"))
}

// fingerprint identifies the source that goes into the kernel.
func fingerprint(root string) (string, error) {
	var files []string
	for _, top := range []string{"go.mod", "go.sum", "gpukit", "plots", "jupyter"} {
		err := filepath.WalkDir(filepath.Join(root, top), func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				if errors.Is(err, fs.ErrNotExist) {
					return nil
				}
				return err
			}
			name := d.Name()
			if d.IsDir() {
				if name[0] == '.' || name == "testdata" || name == "kerneltest" || name == "__pycache__" {
					return filepath.SkipDir
				}
				return nil
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
	Build    string   `json:"build"`
	Go       string   `json:"go"`
	Seconds  float64  `json:"seconds"`
	Packages []string `json:"packages"`
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
