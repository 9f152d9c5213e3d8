// Package nvptx turns IR into PTX. A worker is a thread: control becomes
// branches, a value a register, a region's results are moved into the registers
// of its construct. Every result has the bits of ir.Evaluator (any NaN being
// equal to any NaN): rounding is always stated, so that ptxas fuses nothing,
// and selects correct what PTX does differently from Go.
//
// Registers hold Bool as a predicate, integers of up to 32 bits sign- or
// zero-extended in 32 bits, the others as they are. In memory a Bool is a byte.
package nvptx
