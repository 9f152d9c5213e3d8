// Package libm is the part of the library that is written in the kernel
// language itself: ordinary Go that runs natively and that the front end
// compiles, from the text embedded here, where a kernel calls it.
package libm

import _ "embed"

// Source is the text of the package's functions, one file.
//
//go:embed philox.go
var Source string

// File is the name that positions in Source have.
const File = "gpukit/internal/libm/philox.go"
