// Package cpu runs kernels on cores, with machine code or with the portable engine.
//
// Machine code is package amd64's; here it is found, run and scheduled:
//
//	Compile   keeps the verified function, and the processor's engine
//	variant   is code for launches of one kind: how lanes find each operand, how
//	          many dimensions the code walks, sizes that are worth knowing    (variant.go)
//	crew      cuts the workers into boxes of bounded time, for goroutines    (crew.go)
//	Native    runs code on operands: pauses, what Go carries out, faults     (native.go)
//	exec      executable memory, addresses and the jump                      (exec_amd64.go)
//
// The portable engine runs whatever has no machine code, and everywhere: each
// operation of the IR runs over a block of workers before the next one does,
// so that dispatch costs little and every loop is dense. Its path of a launch:
//
//	Compile   keeps the verified function
//	planFor   makes the block program for the kinds of the arguments: what is
//	          one value for all lanes, what is computed once per run, per row or
//	          per column, which buffer holds which value        (classify.go, plan.go)
//	schedule  cuts the workers into blocks, the blocks into chunks     (launch.go)
//	machine   executes a block                                        (machine.go)
//	kernels   the dense loops, native Go on the Go type of the value   (kernels.go, steps.go)
//	          memories, and indices in equal steps         (memory.go, atomic.go, ramp.go)
//	          what may fault, and what becomes of it       (guard.go)
//	          threads of a block that meet, and printing   (threads.go, print.go)
//
// There control works by compaction, without masks: a frame is a dense set of lanes,
// and it belongs to one region of the function. Lanes that take the other arm,
// or that leave a loop, are moved out of the frame; so an operation runs on
// active lanes only and cannot fault for a lane that never got there.
//
// Where threads of a block wait for each other or share memory, a block of
// workers is a block of threads. Its lanes do one operation after the other
// together, so that a barrier has nothing to do, and a shuffle reads a buffer.
//
// The package imports no array, no device and no source: operands are plain Go
// slices with strides.
package cpu
