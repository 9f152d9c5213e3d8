//go:build go1.21

package main

import (
	"os"
	"strconv"
	"time"
)

// followParent ends the first process, and with it the kernel, when the Jupyter
// server that started it is gone.
func followParent() {
	parent := os.Getppid()
	if id, err := strconv.Atoi(os.Getenv("JPY_PARENT_PID")); err != nil || id != parent || id <= 1 {
		return
	}
	go func() {
		for range time.Tick(time.Second) {
			if os.Getppid() != parent {
				os.Exit(1)
			}
		}
	}()
}
