//go:build cuda

// The mock is a libcuda.so.1 whose launches are executed by the simulator of package sim, so that a program that talks to
// CUDA can be tested on a machine without a GPU. It proves plumbing only: that the calls are made, in a legal order, with
// the right arguments, and that errors come through. What a card's compiler makes of the PTX, how long anything takes, and
// how a real driver differs from this one's idea of it, only a card can tell.
//
//	go run -tags cuda gpunotes/gpukit/internal/driver/cuda/mock -o FOLDER
//
// writes two files that belong together, libcuda.so.1 (with gcc, from libcuda.c; no cuda.h is needed) and gpunotes-mock,
// this program. The library starts the program at its first call and hands it every call; one process of it belongs to
// one process that loaded the library, and ends with it. LD_LIBRARY_PATH=FOLDER makes the library the driver. (Two
// processes, because two Go runtimes in one fight over signals: in a trial, a profiled host died within seconds.)
//
// Settings are taken from the environment when the first call starts the server:
//
//	GPUNOTES_MOCK_CARDS    names of simulated cards: "h200,quadro-k2000" if unset. Empty: a driver without a GPU, cuInit is 100
//	GPUNOTES_MOCK_DRIVER   version of the driver, 12040 if unset. Newer PTX than it took is refused with 222
//	GPUNOTES_MOCK_MEMORY   bytes of memory of each card, instead of the card's own
//	GPUNOTES_MOCK_INIT     what cuInit returns, such as 803
//	GPUNOTES_MOCK_FAIL     "cuMemAlloc_v2:3=2,cuLaunchKernel:1=719": the third call of the one returns 2, the first of the other 719.
//	                       An error that a context does not survive stays with it, as if a kernel had caused it
//	GPUNOTES_MOCK_MISSING  "cuMemAllocAsync,...": these return 801, as all do that the mock does not know
//	GPUNOTES_MOCK_SEED     a number: which of the orders of work that streams and events leave open is taken
//	GPUNOTES_MOCK_STRICT   1: what PTX leaves open is an error (sim.Options.Strict)
//	GPUNOTES_MOCK_FAST     1: no checker, no counters (Unchecked and Uncounted). The checker ends a kernel with 719 for what a
//	                       card says nothing about, such as a race
//	GPUNOTES_MOCK_VERBOSE  1: calls that fail, and what the simulator says of kernels that do, go to standard error
//	CUDA_VISIBLE_DEVICES   as for the driver: numbers or beginnings of UUIDs, up to the first that is no device
//
// Work in a stream is done as late as the rules allow: when somebody waits for it, or a piece at a time when somebody asks
// whether it is done. Among streams it is done in an order that only events and the default stream restrict. What is copied
// from pinned memory is read then, what is copied from other memory is read during the call. So a program that does not
// wait where it has to gets other bits. A card does one thing at a time: nothing overlaps, so a kernel must not wait for
// work in another stream.
//
// gpunotesMockLive(char *buffer, int n) is an entry point of its own. It writes what was not freed, in the form "allocations 0
// (0 bytes), pinned 0, modules 0, streams 0, events 0, contexts 0".
package main

import (
	_ "embed"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

//go:embed libcuda.c
var library []byte

// unsupported lists entry points that programs link to, and that only say that they are not supported.
//
//go:embed unsupported.txt
var unsupported string

func main() {
	folder := flag.String("o", "", "folder to write libcuda.so.1 and gpunotes-mock into")
	address := flag.String("serve", "", "for the library: serve at this name")
	flag.Parse()
	var err error
	switch {
	case *address != "":
		err = serve(*address)
	case *folder != "":
		err = build(*folder)
	default:
		flag.Usage()
		os.Exit(2)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "mock libcuda:", err)
		os.Exit(1)
	}
}

// build writes the library, and this program beside it.
func build(folder string) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	sources, err := os.MkdirTemp("", "mock")
	if err != nil {
		return err
	}
	defer os.RemoveAll(sources)
	var names strings.Builder
	for _, n := range symbols() {
		fmt.Fprintf(&names, "ENTRY(%s)\n", n)
	}
	c, h := filepath.Join(sources, "libcuda.c"), filepath.Join(sources, "names.h")
	if err := os.WriteFile(h, []byte(names.String()), 0o644); err != nil {
		return err
	}
	if err := os.WriteFile(c, library, 0o644); err != nil {
		return err
	}
	out, err := exec.Command("gcc", "-std=gnu11", "-O1", "-Wall", "-Wextra", "-Werror", "-fvisibility=hidden", "-fPIC", "-shared", "-pthread",
		"-Wl,-soname,libcuda.so.1", "-DNAMES=\""+h+"\"", c, "-o", filepath.Join(folder, "libcuda.so.1"), "-ldl").CombinedOutput()
	if err != nil {
		return fmt.Errorf("gcc: %v\n%s", err, out)
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	from, err := os.Open(self)
	if err != nil {
		return err
	}
	defer from.Close()
	to, err := os.OpenFile(filepath.Join(folder, "gpunotes-mock"), os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o755)
	if err != nil {
		return err
	}
	if _, err := io.Copy(to, from); err != nil {
		return err
	}
	return to.Close()
}
