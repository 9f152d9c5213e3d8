//go:build go1.21

package main

import (
	"fmt"
	"io"
	"log"
	"os"
	"strings"
	"sync"
	"time"

	"gpunotes/jupyter/cell"
	"gpunotes/jupyter/stream"
)

// capture takes over standard output and standard error for good, down to the
// file descriptors, so that C libraries and GPUs print into the notebook too.
// The kernel's own log stays on the old standard error.
func (k *kernel) capture(first msgReceipt) error {
	k.current = &first
	var err error
	if k.out, err = stream.New(func(text string) { k.stream(StreamStdout, text) }); err != nil {
		return err
	}
	if k.err, err = stream.New(func(text string) { k.stream(StreamStderr, text) }); err != nil {
		return err
	}
	saved, err := redirect(k.out.File(), k.err.File())
	if err != nil {
		logger.Println("what C libraries print stays out of the notebook:", err)
	} else if saved != nil {
		logger.SetOutput(saved)
	}
	os.Stdout, os.Stderr = k.out.File(), k.err.File()
	if null, err := os.Open(os.DevNull); err == nil {
		os.Stdin = null // input comes from the front end, never from where Jupyter was started
	}
	log.SetOutput(printer{k, StreamStderr}) // the cells' log
	return nil
}

// flush passes on all text printed so far.
func (k *kernel) flush() {
	for _, s := range []*stream.Stream{k.out, k.err} {
		if err := s.Flush(5 * time.Second); err != nil {
			logger.Println(err)
		}
	}
}

// stream shows text below the current cell.
func (k *kernel) stream(name, text string) {
	if r := k.receipt(); r != nil {
		if err := r.PublishWriteStream(name, cell.PlainTypes(text)); err != nil {
			logger.Println("text not sent:", err)
		}
	}
}

func (k *kernel) receipt() *msgReceipt {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.current
}

// printer writes to standard output or error of the cell to which the calling
// goroutine belongs: that of the running cell or, in a goroutine that an earlier
// cell has left behind, of that one.
type printer struct {
	k    *kernel
	name string
}

func (p printer) Write(text []byte) (int, error) {
	if o, ok := p.k.session.Owner().(*ownText); ok && o.r != p.k.receipt() {
		o.write(p.name, text)
		return len(text), nil
	}
	if p.name == StreamStdout {
		return os.Stdout.Write(text)
	}
	return os.Stderr.Write(text)
}

// ownText is what goroutines print after another cell has run.
type ownText struct {
	r    *msgReceipt
	mu   sync.Mutex
	name string
	text strings.Builder
	due  bool
}

func (o *ownText) write(name string, text []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.name != name || o.text.Len() > stream.Full {
		o.send()
		o.name = name
	}
	o.text.Write(text)
	if !o.due {
		o.due = true
		time.AfterFunc(stream.Gather, func() {
			o.mu.Lock()
			defer o.mu.Unlock()
			o.due = false
			o.send()
		})
	}
}

func (o *ownText) send() {
	if o.text.Len() == 0 {
		return
	}
	if err := o.r.PublishWriteStream(o.name, cell.PlainTypes(strings.ToValidUTF8(o.text.String(), "\uFFFD"))); err != nil {
		logger.Println("text not sent:", err)
	}
	o.text.Reset()
}

// bindPrints lets the functions of fmt that cells call print into the right
// cell, and read from the front end.
func (k *kernel) bindPrints() {
	out, errs := printer{k, StreamStdout}, printer{k, StreamStderr}
	to := func(w io.Writer) io.Writer {
		switch w {
		case os.Stdout:
			return out
		case os.Stderr:
			return errs
		}
		return w
	}
	rebind("fmt", map[string]interface{}{
		"Print":   func(args ...interface{}) (int, error) { return fmt.Fprint(out, args...) },
		"Println": func(args ...interface{}) (int, error) { return fmt.Fprintln(out, args...) },
		"Printf": func(format string, args ...interface{}) (int, error) {
			return fmt.Fprintf(out, typeVerbs(format, args), args...)
		},
		"Fprint": func(w io.Writer, args ...interface{}) (int, error) { return fmt.Fprint(to(w), args...) },
		"Fprintln": func(w io.Writer, args ...interface{}) (int, error) {
			return fmt.Fprintln(to(w), args...)
		},
		"Fprintf": func(w io.Writer, format string, args ...interface{}) (int, error) {
			return fmt.Fprintf(to(w), typeVerbs(format, args), args...)
		},
	})
}
