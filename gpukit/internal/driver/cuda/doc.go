//go:build cuda

// Package cuda is the binding of NVIDIA's driver, through gorgonia.org/cu, behind the interface of package driver. What cu
// lacks is in extra.go. The library is looked for when the first device is asked for (package shim): a program with this
// package in it starts anywhere.
//
// Every call runs on the goroutine of its caller, on a thread on which the device's primary context is current. Nothing of
// cu that works on a context of its own is used (cu.Ctx): those calls lose errors.
package cuda
