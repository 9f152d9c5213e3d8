//go:build cuda

package shim

// The linker searches all -L before it searches any -l, so either the empty archive is found for the -lcuda of
// gorgonia.org/cu or a libcuda.so, of which nothing is needed then: every symbol is defined here.

/*
#cgo LDFLAGS: -Wl,--as-needed -L${SRCDIR}/link -ldl
#include <stdlib.h>
#include "shim.h"
*/
import "C"

import (
	"os"
	"strings"
	"sync"
	"unsafe"
)

// Variable is the environment variable that names another library than libcuda.so.1. If it is set and empty, there is none.
const Variable = "GPUNOTES_LIBCUDA"

// Error says why there is no library.
type Error struct {
	Library string // name that the dynamic linker was asked for, "" if Variable says that there is none
	Reason  string // in the dynamic linker's words
}

// Error names library and reason.
func (e *Error) Error() string {
	if e.Library == "" {
		return Variable + " is set and empty: no libcuda is used"
	}
	return e.Reason
}

var load struct {
	sync.Mutex
	name string // of the loaded library
}

// Load loads the library, once it has succeeded no more; until then each call tries anew. The error is an *Error.
func Load() error {
	load.Lock()
	defer load.Unlock()
	if load.name != "" {
		return nil
	}
	name, set := os.LookupEnv(Variable)
	if !set {
		name = "libcuda.so.1"
	}
	if name == "" {
		return &Error{}
	}
	file := C.CString(name)
	defer C.free(unsafe.Pointer(file))
	reason := C.gpunotes_cuda_load(file)
	if reason != nil {
		defer C.free(unsafe.Pointer(reason))
		return &Error{Library: name, Reason: strings.TrimSpace(C.GoString(reason))}
	}
	load.name = name
	return nil
}

// Library is what was loaded, "" before Load has succeeded.
func Library() string {
	load.Lock()
	defer load.Unlock()
	return load.name
}

// Ask calls int name(char *buffer, int size) of the loaded library and returns the text in buffer. NVIDIA's library has no
// such function; one for tests may have. false: there is none.
func Ask(name string) (string, bool) {
	buffer := make([]byte, 4096)
	n := C.CString(name)
	defer C.free(unsafe.Pointer(n))
	if C.gpunotes_cuda_ask(n, (*C.char)(unsafe.Pointer(&buffer[0])), C.int(len(buffer)-1)) == 0 {
		return "", false
	}
	return C.GoString((*C.char)(unsafe.Pointer(&buffer[0]))), true
}
