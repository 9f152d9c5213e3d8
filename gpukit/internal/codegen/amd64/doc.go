// Package amd64 compiles a function of the IR to AVX2 or AVX-512 machine code
// that runs it for a vector of workers at a time, one worker per 64-bit lane.
//
// The path of a Compile:
//
//	lower    structured IR -> a list of machine instructions on virtual
//	         registers; control becomes masks            (lower.go, ops.go)
//	target   what AVX2 and AVX-512 do differently        (avx2.go, avx512.go)
//	allocate virtual -> machine registers, spills        (allocate.go)
//	emit     loads and stores of what was spilled        (emit.go)
//	encode   instructions -> bytes, from one table       (encode.go, table.go)
//
// A lane holds a float64, int64 or uint64; a bool is a mask. All control is
// supported, and all arithmetic, comparisons, conversions and shifts of these
// types; of package math what is a few instructions (mathTable in ops.go).
// Anything else, other types and memory first of all, is an *Unsupported error.
//
// Control: each region has a mask of the lanes that are in it. An if computes
// the masks of its arms and jumps over an arm without lanes; a loop goes on
// while its mask has any; a break hands out values by blending and takes its
// lanes out of every region up to the construct that they leave. Lanes outside
// a mask compute whatever they like: nothing is stored, and no fault counts.
//
// The code is position independent and a leaf: it uses neither the stack nor
// its pointer, calls nothing and writes only to result elements and to the
// state area that it is given. It counts its back edges and comes back, to be
// resumed, when a budget is used up, so that no call lasts long. The package
// only makes bytes; it maps nothing and runs nothing.
package amd64
