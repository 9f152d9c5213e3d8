//go:build go1.21

package main

import (
	"os/exec"
	"syscall"
)

// dieWithParent lets the system end a process when the one that started it is gone.
func dieWithParent(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
