// Package ir is the typed, structured intermediate representation of a kernel:
// what a Go function means, free of Go syntax and of any target.
//
// A Func is a tree of regions. Control has three constructs and no other:
// OpIf, OpLoop and OpBreak to an enclosing level. Both region-bearing
// instructions have results, and so has the function; a region hands values
// out by its terminator:
//
//	yield v...      in an if: the if is done and its results are v
//	                in a loop: the next iteration begins with carried values v
//	                in the function body: return v
//	break L v...    leaves the L-th enclosing construct (0 is the innermost,
//	                the function itself the outermost) with results v
//	unreachable     control cannot arrive here
//
// So continue and return are breaks, and there is no other exit from a loop.
// The program is SPMD: one evaluation of a Func is one worker (on a GPU, one
// thread; on a CPU, one lane).
//
// The package knows no go/ast, no device, no array and no target. Meaning is
// fixed by Evaluator, the reference evaluator; every engine must give its bits
// (with any NaN equal to any NaN).
package ir
