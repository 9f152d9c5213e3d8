//go:build go1.21

// This file takes the place of gophernotes' main.go: it brings our own loop
// and names the protocol that our replies keep.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"

	"gpunotes/gpukit"
	_ "gpunotes/jupyter/bindings"
	"gpunotes/jupyter/cell"
)

const (
	// Version is the version of the gophernotes that this kernel is built from.
	Version string = "0.7.5"

	// ProtocolVersion is the version of the Jupyter messages we send.
	ProtocolVersion string = "5.4"
)

// build identifies the source this binary was built from; set by the linker.
var build = "unknown"

func main() {
	if len(os.Args) == 3 && os.Args[1] == serveFlag {
		if os.Getenv("GOMEMLIMIT") == "" {
			// Else the collector lets the heap double where there is no room for that.
			debug.SetMemoryLimit(cell.Memory() / 10 * 9)
		}
		if program, err := os.Executable(); err == nil {
			cell.Installed = installed(program, os.Getenv("VIRTUAL_ENV"), os.Getenv("HOME"))
		}
		if err := serve(os.Args[2], true); err != nil {
			fmt.Fprintln(os.Stderr, "gpunotes kernel:", err)
			os.Exit(1)
		}
		return
	}
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: gophernotes CONNECTION_FILE\n       gophernotes --selfcheck\n\nJupyter starts this program; to try it, run: jupyter console --kernel gpunotes")
		os.Exit(2)
	}
	switch os.Args[1] {
	case "--selfcheck":
		os.Exit(selfcheck())
	case "--devices":
		devices()
	default:
		os.Exit(supervise(os.Args[1]))
	}
}

// installed returns the flags of `jupyter install` that lead to a kernel program, "" if
// none are needed: without any, the command takes the active environment, else that of
// make lab, else the user's directory.
func installed(program, environment, home string) string {
	real := func(path string) string {
		if r, err := filepath.EvalSymlinks(path); err == nil {
			return r
		}
		return path
	}
	dir := filepath.Dir(program)
	data := filepath.Dir(filepath.Dir(dir))
	prefix := strings.TrimSuffix(data, filepath.Join(string(filepath.Separator), "share", "jupyter"))
	if filepath.Base(filepath.Dir(dir)) != "kernels" || prefix == data || strings.ContainsAny(prefix, " '\"") {
		return ""
	}
	flags := ""
	switch {
	case environment != "" && real(environment) != real(prefix):
		flags = "--prefix " + prefix
	case environment == "" && home != "" && real(filepath.Join(home, ".local")) == real(prefix):
		flags = "--user"
	case environment == "" && filepath.Base(prefix) != ".venv":
		flags = "--prefix " + prefix
	}
	if name := filepath.Base(dir); name != "gpunotes" {
		flags = strings.TrimSpace(flags + " --as " + name)
	}
	return flags
}

// selfcheck starts everything but the sockets, runs a cell, and tells
// `jupyter doctor` what it is.
func selfcheck() int {
	k := newKernel()
	res, failed := k.session.Run(1, "import _ \"gpunotes/gpukit\"\n1 + 1")
	if failed != nil {
		fmt.Fprintln(os.Stderr, failed)
		return 1
	}
	if len(res.Values) != 1 || res.Values[0] != 2 {
		fmt.Fprintln(os.Stderr, "the interpreter computes 1 + 1 =", res.Values)
		return 1
	}
	out, _ := json.Marshal(map[string]string{"build": build})
	fmt.Println(string(out))
	return 0
}

// devices tells `jupyter doctor` which GPUs this kernel sees.
func devices() {
	type device struct {
		Name  string `json:"name"`
		About string `json:"about"`
	}
	var said struct {
		CUDA    bool     `json:"cuda"` // built with it
		Devices []device `json:"devices"`
		Error   string   `json:"error,omitempty"` // why the first cannot be opened
	}
	said.CUDA = builtWithCUDA()
	for _, d := range cards() {
		said.Devices = append(said.Devices, device{d.Name, d.Description})
	}
	if d, err := gpukit.Open("cuda:0"); err != nil {
		said.Error = err.Error()
	} else {
		d.Close()
	}
	out, _ := json.Marshal(said)
	fmt.Println(string(out))
}
