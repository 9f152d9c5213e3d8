// Package nvptx turns IR into PTX. A worker is a thread: control becomes
// branches, a value a register, a region's results are moved into the registers
// of its construct. Every result has the bits of ir.Evaluator (any NaN being
// equal to any NaN): rounding is always stated, so that ptxas fuses nothing,
// and selects correct what PTX does differently from Go.
//
// Registers hold Bool as a predicate, integers of up to 32 bits sign- or
// zero-extended in 32 bits, the others as they are. In memory a Bool is a byte.
//
// A function goes through passes, each from IR to IR, before code is written
// (prepare.go):
//
//	specialise  what is known of all launches is put in (Facts)
//	flatten     an if of which one arm leaves becomes a branch out of the way
//	unroll      small loops are written out, whole or in blocks of iterations
//	addressed   indices become addresses in bytes that loops go on with by steps
//
// with ir.Optimize and ir.ProveBounds between them. The writer then folds
// constants into addresses, puts adjacent elements into one access (vector.go),
// computes carried values in place, and tests at the end of loops.
package nvptx
