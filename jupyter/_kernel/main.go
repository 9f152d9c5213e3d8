//go:build go1.21

// This file takes the place of gophernotes' main.go: it brings our own loop
// and names the protocol that our replies keep.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"sort"
	"strings"
	"time"

	"github.com/cosmos72/gomacro/imports"

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
	case "--version":
		fmt.Println("gpunotes", build)
	case "--selfcheck":
		os.Exit(selfcheck())
	case "--devices":
		devices()
	default:
		os.Exit(supervise(os.Args[1]))
	}
}

// selfcheck starts everything but the sockets, runs a cell, and tells
// `jupyter doctor` what it is.
func selfcheck() int {
	start := time.Now()
	k := newKernel()
	code := "1 + 1"
	if _, ok := imports.Packages["gpunotes/gpukit"]; ok {
		code = "import _ \"gpunotes/gpukit\"\n1 + 1"
	}
	res, failed := k.session.Run(1, code)
	if failed != nil {
		fmt.Fprintln(os.Stderr, failed)
		return 1
	}
	if len(res.Values) != 1 || res.Values[0] != 2 {
		fmt.Fprintln(os.Stderr, "the interpreter computes 1 + 1 =", res.Values)
		return 1
	}
	var ours []string
	for path := range imports.Packages {
		if strings.HasPrefix(path, "gpunotes/") && path != "gpunotes/jupyter/guard" {
			ours = append(ours, path)
		}
	}
	sort.Strings(ours)
	out, _ := json.Marshal(map[string]interface{}{
		"build": build, "go": runtime.Version(), "target": runtime.GOOS + "/" + runtime.GOARCH,
		"seconds": time.Since(start).Seconds(), "packages": ours,
	})
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
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			said.CUDA = said.CUDA || s.Key == "-tags" && strings.Contains(","+s.Value+",", ",cuda,")
		}
	}
	for _, d := range gpukit.Devices() {
		if strings.HasPrefix(d.Name, "cuda:") {
			said.Devices = append(said.Devices, device{d.Name, d.Description})
		}
	}
	if d, err := gpukit.Open("cuda:0"); err != nil {
		said.Error = err.Error()
	} else {
		d.Close()
	}
	out, _ := json.Marshal(said)
	fmt.Println(string(out))
}
