// Package host is the seam between gpukit and a notebook that runs it.
//
// A notebook kernel makes one Notebook, records in it the text of every piece
// of source it has executed, and attaches it together with a way to ask
// whether the user has pressed Stop and a way to update a displayed output.
// A program that is not a notebook needs nothing of this package.
package host

import (
	"reflect"
	"sync/atomic"

	"gpunotes/gpukit/internal/source"
)

// Host is what a notebook offers to gpukit. Every field may be nil.
type Host struct {
	// Source resolves functions typed in cells.
	Source *Notebook
	// Interrupted reports whether the user has asked the running cell to stop.
	// It is polled often, from any goroutine, and must be cheap.
	Interrupted func() bool
	// Progress takes how far a call is: done of total equal parts of its work, which
	// parts those are differs. It is called often, from any goroutine, and must be
	// cheap. A call begins with done 0; calls at the same time report in turns. Of a
	// call whose work cannot be counted nothing is reported.
	Progress func(done, total int64)
	// Update replaces the HTML shown under the display id, or shows it first.
	Update func(displayID, html string) error
}

// Notebook records the declarations of the cells that an interpreter executed.
type Notebook = source.Notebook

// NewNotebook returns an empty record. value looks up the current value of a
// notebook global by name; it is called from the goroutine that calls gpukit.
func NewNotebook(value func(name string) (reflect.Value, bool)) *Notebook {
	return source.NewNotebook(value)
}

var current atomic.Pointer[Host]

// Attach makes h the host of this process; the last one attached is used.
func Attach(h Host) { current.Store(&h) }

// Current returns the attached host, or the zero Host.
func Current() Host {
	if h := current.Load(); h != nil {
		return *h
	}
	return Host{}
}
