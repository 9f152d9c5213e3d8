package gpukit

import (
	"errors"
	"fmt"
	"strings"
)

// ShapeError is what array constructors and views panic with: an argument that
// does not fit. It is also the error of a call whose arguments do not
// broadcast.
type ShapeError struct {
	Op     string // the function or method, e.g. "Reshape"
	Detail string

	device error // the *DeviceError that it is about, if the array's device failed
}

// Unwrap returns the *DeviceError if it was a device that failed, else nil.
func (e *ShapeError) Unwrap() error { return e.device }

// Error returns "gpukit.Op: detail", or "gpukit: detail" without an Op.
func (e *ShapeError) Error() string {
	if e.Op == "" {
		return "gpukit: " + e.Detail
	}
	return "gpukit." + e.Op + ": " + e.Detail
}

// ArgumentError says that an argument of a call cannot be used.
type ArgumentError struct {
	Op     string // the call, e.g. "Vectorize"
	Arg    int    // position after the function, from 1; 0 if not about one argument
	Name   string // the parameter's name, if known
	Detail string
	Remedy string // what to write instead; may be empty
}

// Error names the call, the argument, what is wrong, and the remedy.
func (e *ArgumentError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "gpukit.%s: ", e.Op)
	if e.Arg > 0 {
		fmt.Fprintf(&b, "argument %d", e.Arg)
		if e.Name != "" {
			fmt.Fprintf(&b, " (%s)", e.Name)
		}
		b.WriteString(": ")
	}
	b.WriteString(e.Detail)
	if e.Remedy != "" {
		b.WriteString("; " + e.Remedy)
	}
	return b.String()
}

// counted is a number of things: 1 index, 2 indices.
func counted(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// ErrInterrupted is the error of a call that the user stopped.
var ErrInterrupted = errors.New("gpukit: interrupted")

// ErrClosed is the error of a call on a device after Close.
var ErrClosed = errors.New("the device is closed; open it again")

// CompileError lists everything in a function that keeps it from being a
// kernel, each line with position and remedy.
type CompileError struct {
	Func   string // the function's name
	Faults []CompileFault
}

// CompileFault is one reason in a CompileError.
type CompileFault struct {
	Pos     string // "cell 3:4:7" or "geo.go:12:5"
	Code    string // stable name of the kind of fault, e.g. "goto"; LANGUAGE.md lists them
	Message string
	Help    string
}

// Error lists the faults, one a line, each followed by its remedy.
func (e *CompileError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "gpukit: %s cannot be a kernel:", e.Func)
	for _, f := range e.Faults {
		fmt.Fprintf(&b, "\n%s: %s", f.Pos, f.Message)
		if f.Help != "" {
			fmt.Fprintf(&b, "\n\t%s", f.Help)
		}
	}
	return b.String()
}

// WorkerError says that the function failed for some element. The outputs of
// the call are unspecified; the device and the next call are not affected.
type WorkerError struct {
	Func   string
	Index  []int    // the lowest failing element of the loop dimensions; nil of a Launch
	Block  *Grid    // of a Launch: the position of the block
	Thread *Block   // of a Launch: the position of the thread in it
	Args   []string // the arguments of that element, as "name = value"
	Err    error    // what failed and where, e.g. "cell 3:4:7: integer divide by zero"
}

// Error names the place, the fault and the element with its arguments.
func (e *WorkerError) Error() string {
	return fmt.Sprintf("gpukit: %v, %s", e.Err, workerPlace(e.Index, e.Block, e.Thread, e.Args))
}

// Unwrap returns Err.
func (e *WorkerError) Unwrap() error { return e.Err }
