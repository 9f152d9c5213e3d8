//go:build cuda

// Package shim defines every entry point of libcuda that this module calls, so that a program can be built without that
// library and starts on a machine without it. Each is a jump to the library's own function, which Load finds; the calls
// themselves are what cuda.h says.
//
// Before Load, and where the library lacks a function, the answer is an error. The exception is cuInit, which has nothing
// to do and says so: package gorgonia.org/cu calls it when it is imported and ends the process if it fails. After Load it
// is the library's.
//
// The list of functions, symbols.h, is what the objects of gorgonia.org/cu and of package cuda leave undefined, for every
// cuda.h that is named:
//
//	go run generate.go /path/to/cuda-11/include /path/to/cuda-12/include /path/to/cuda-13/include
//
// The folder include holds a cuda.h that stands before the toolkit's (-I) and gives gorgonia.org/cu the functions of CUDA
// 12 where CUDA 13 has changed them. The folder link holds an archive with nothing in it, which is found as -lcuda.
package shim

//go:generate go run generate.go
