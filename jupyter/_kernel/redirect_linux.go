//go:build go1.21

package main

import (
	"os"
	"syscall"
)

// redirect makes out and err the standard output and error of the process, and
// returns the old standard error.
func redirect(out, err *os.File) (*os.File, error) {
	saved, e := syscall.Dup(2)
	if e != nil {
		return nil, e
	}
	syscall.CloseOnExec(saved)
	// Fd makes the pipes blocking: C does not expect to be told to come again.
	if e := syscall.Dup3(int(out.Fd()), 1, 0); e != nil {
		return nil, e
	}
	if e := syscall.Dup3(int(err.Fd()), 2, 0); e != nil {
		return nil, e
	}
	return os.NewFile(uintptr(saved), "stderr"), nil
}
