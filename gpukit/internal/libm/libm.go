// Package libm is the mathematical library: ordinary Go in the kernel language
// itself. It runs natively in the engines that work on cores, and the front end
// compiles the same text, embedded here, for those that run generated code, so
// that every engine computes the same operations and gives the same bits.
//
// Its functions have the names of package math's. They call each other, and of
// package math only what is an instruction or two on every target (see Natives),
// write float64(x*y) where a product feeds a sum, and fuse with math.FMA alone. What
// Float64bits, Signbit and Copysign make of a NaN must not show in a result: in
// generated code it is anything (ir.Loosen).
package libm

import "embed"

// Source holds the files of the package, without its tests.
//
//go:embed bessel.go erf.go exact.go exp.go fast.go float32.go gamma.go hyperbolic.go libm.go log.go philox.go pow.go roots.go trig.go
var Source embed.FS

// Dir is the directory that positions in Source have.
const Dir = "gpukit/internal/libm/"

// Natives are the functions of package math that the functions of this one may
// call: those that engines have code for.
var Natives = []string{
	"Abs", "Ceil", "Copysign", "Dim", "FMA", "Float32bits", "Float32frombits", "Float64bits", "Float64frombits",
	"Floor", "Inf", "IsInf", "IsNaN", "Max", "Min", "Modf", "NaN", "Round", "RoundToEven", "Signbit", "Sqrt", "Trunc",
}

// Rare are the functions that other functions of the package reach for few of
// their arguments: engines for which branches cost more than calls keep them apart.
// Functions for float32 and those of fast.go reach the accurate ones as rarely.
var Rare = []string{
	"acoshRare", "asinhRare", "atan2Scale", "atanhRare", "besselForward", "cosHuge", "erfcRare", "exp2Rare", "expRare", "expm1Rare",
	"hugeQuarterTurns", "hyperbolicRare", "hypotRare", "jnBackward", "ldexpRare", "log1pRare", "logRare", "powRare", "remRare",
	"sinHuge", "tanHuge",
}
