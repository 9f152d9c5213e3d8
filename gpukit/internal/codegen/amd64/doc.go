// Package amd64 compiles a function of the IR to AVX2 or AVX-512 machine code that
// runs it for a group of workers at a time, one worker per lane.
//
// The path of a Compile:
//
//	analyse  what the lanes have in common: values that are the same in all of them,
//	         branches that all take alike                (lanes.go)
//	width    how many lanes a group has                  (width.go)
//	frame    rows of workers, groups in them, operands   (frame.go)
//	lower    structured IR -> a list of machine instructions on virtual registers;
//	         control becomes masks where lanes differ    (lower.go, control.go)
//	         operations (ops.go, scalar.go, convert.go, divide.go, mathops.go),
//	         memories (memory.go, lanewise.go), calls (calls.go)
//	shorten  two instructions into one, loads into operands (shorten.go, fold.go)
//	target   what AVX2 and AVX-512 do differently        (avx2.go, avx512.go)
//	allocate virtual -> machine registers, spills        (allocate.go)
//	emit     loads and stores of what was spilled        (emit.go)
//	encode   instructions -> bytes, from one table       (encode.go, table.go)
//
// A varying value of 64 bits has lanes of 64 bits, all others have lanes of 32 bits,
// in as many registers as the group needs; a bool is a mask, in parts of equally many
// lanes. A uniform value is one number: integers and bools are in general registers,
// where scalar code computes them; floats have all lanes of one vector the same.
// Constants are operands in memory, or in registers where some are left.
//
// Control: all lanes together jump. Where they part, a region has a mask of the lanes
// that are in it: an arm without lanes is jumped over; a loop goes on while its mask has
// any; a break hands out values by blending and takes its lanes out of every region
// up to the construct that they leave. What hardly happens is placed behind the main
// code. Lanes outside a mask compute whatever they like: nothing is stored, and no
// fault counts.
//
// The code is position independent and a leaf: it uses neither the stack nor its
// pointer, calls nothing and writes only to result elements, memories of the kernel, and
// the state that it is given. It counts down a budget at its back edges and comes back,
// to be resumed, when that is used up, so that no call lasts long; and it comes back
// for what only Go can do. The package only makes bytes; it maps nothing and runs
// nothing. abi.go is the contract with who does.
package amd64
