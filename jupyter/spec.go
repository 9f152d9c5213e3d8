package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
)

// spec is what we write into and read from kernel.json.
type spec struct {
	Argv          []string          `json:"argv"`
	DisplayName   string            `json:"display_name"`
	Language      string            `json:"language"`
	InterruptMode string            `json:"interrupt_mode"`
	Env           map[string]string `json:"env,omitempty"`
	Metadata      metadata          `json:"metadata"`
}

type metadata struct {
	Mark *mark `json:"gpunotes,omitempty"`
}

// mark tells our kernelspecs from others, and what the kernel was built from.
type mark struct {
	Build string   `json:"build"`          // fingerprint of the source
	Go    string   `json:"go"`             // version of the compiler
	With  []string `json:"with,omitempty"` // what --with named
	CUDA  string   `json:"cuda,omitempty"` // release of the cuda.h it was built with; "no" if it was to be built without; "" if CUDA was not found
}

func newSpec(m mark, name string) spec {
	display := "Go (gpunotes)"
	if name != "gpunotes" {
		display = fmt.Sprintf("Go (gpunotes, as %s)", name) // the list in Jupyter shows nothing else
	}
	return spec{
		Argv:          []string{"{resource_dir}/gophernotes", "{connection_file}"},
		DisplayName:   display,
		Language:      "go",
		InterruptMode: "message",
		Metadata:      metadata{&m},
	}
}

func readSpec(dir string) (spec, error) {
	var s spec
	data, err := os.ReadFile(filepath.Join(dir, "kernel.json"))
	if err != nil {
		return s, err
	}
	if err := json.Unmarshal(data, &s); err != nil {
		return s, fmt.Errorf("%s is not valid JSON: %w", filepath.Join(dir, "kernel.json"), err)
	}
	return s, nil
}

// foreign explains why a directory is not ours to touch; nil if it is.
func foreign(dir string) error {
	s, err := readSpec(dir)
	if err == nil && s.Metadata.Mark != nil {
		return nil
	}
	why := "its kernel.json does not carry our mark"
	if err != nil {
		why = err.Error()
	}
	return fmt.Errorf("%s was not made by gpunotes (%s), so it stays as it is; if you do not need it, remove it yourself", dir, why)
}

// others are the names of widely used kernels. A kernelspec that we put into one
// directory of Jupyter would hide theirs in another.
var others = regexp.MustCompile(`^(python|ipython|pypy|xpython|ir|xr|julia|bash|zsh|sh|powershell|rust|evcxr|gonb|lgo|deno|javascript|typescript|tslab|jslab|xcpp|xc|cling|java|ijava|jjava|rapaio|kotlin|scala|almond|spylon|sparkmagic|pyspark|ruby|perl|php|lua|xlua|octave|matlab|sagemath|maxima|sql|xsqlite|dotnet|csharp|\.net-.*|haskell|ihaskell|ocaml|clojure|elixir|fortran|nim|swift|wolframlanguage)[-_]?[0-9.]*$`)

// builder makes the kernel program at path binary.
type builder func(binary string, progress io.Writer) (mark, error)

// install puts a kernelspec in place. Until the new one is complete and has
// been tried, the old one stays; if the exchange fails, the old one comes back.
func install(p place, build builder, progress io.Writer) error {
	dir := p.dir()
	if exists(dir) {
		if err := foreign(dir); err != nil {
			return err
		}
	} else if others.MatchString(p.name) {
		return fmt.Errorf("--as %s: notebooks made for the kernel %[1]q would open in this one; take another name", p.name)
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return err
	}
	// Beside kernels/, not in it: Jupyter takes every directory there for a kernel.
	tmp, err := os.MkdirTemp(p.data, ".gpunotes-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	fresh := filepath.Join(tmp, "new")
	if err := os.Mkdir(fresh, 0o755); err != nil {
		return err
	}
	binary := filepath.Join(fresh, binaryName())
	m, err := build(binary, progress)
	if err != nil {
		return err
	}
	if _, err := selfcheck(binary); err != nil {
		return fmt.Errorf("the new kernel does not work, the old one is kept: %w", err)
	}
	data, err := json.MarshalIndent(newSpec(m, p.name), "", "  ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(fresh, "kernel.json"), append(data, '\n'), 0o644); err != nil {
		return err
	}
	if err := drawLogos(fresh); err != nil {
		return err
	}
	old := filepath.Join(tmp, "old")
	had := exists(dir)
	if had {
		if err := os.Rename(dir, old); err != nil {
			return err
		}
	}
	if err := os.Rename(fresh, dir); err != nil {
		if had {
			err = errors.Join(err, os.Rename(old, dir))
		}
		return err
	}
	fmt.Fprintf(progress, "installed the kernel %q in %s\n", p.name, dir)
	return nil
}

// uninstall removes a kernelspec that carries our mark.
func uninstall(p place, progress io.Writer) error {
	dir := p.dir()
	if !exists(dir) {
		return fmt.Errorf("there is no kernel %q in %s", p.name, filepath.Dir(dir))
	}
	if err := foreign(dir); err != nil {
		return err
	}
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	fmt.Fprintf(progress, "removed the kernel %q from %s\n", p.name, dir)
	return nil
}
