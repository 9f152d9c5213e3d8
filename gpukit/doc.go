// Package gpukit runs ordinary Go functions over arrays, on every core of this
// machine, on NVIDIA GPUs and on simulated ones.
//
//	gpu := gpukit.MustOpen("parallel")
//	lon, lat := gpukit.MeshGrid(gpukit.Linspace(99, 101, 1000), gpukit.Linspace(29, 31, 1000))
//	z, err := gpu.Vectorize(dist, lat, lon, 30.0, 101.0, 1.0)
//
// dist is any Go function within the kernel language, typed in a notebook cell
// or standing in a .go file; gpukit finds its source, compiles it for the
// device, and keeps the result. Vectorize calls a function for every element,
// GUVectorize for every slice that a layout such as "(m,n),(n)->(m)" makes, and
// Launch for every thread of a grid of blocks. Explain and its kin say how a
// call would run.
//
// # Devices
//
// "cpu" runs on the caller's goroutine, "parallel" on as many as there are
// processors: as machine code, AVX-512 or AVX2, or where that cannot be in a portable
// engine; the environment variable GPUNOTES_CPU (avx512, avx2, portable) forces one, for
// tests. "auto" takes the best device there is. "cuda:0" is the first GPU, in
// programs built with the tag cuda (see the README). "sim:quadro-k2000" and its
// like, which Devices lists, execute PTX, the code of CUDA devices, as such a card
// would, look for races and other faults of kernels, count, and predict how long
// the card would have taken. Results do not depend on the device. Put and Empty
// make arrays that belong to a device; calls with one of them leave their results
// there. Other arguments are copied for the call where a device has memory of its
// own: once each, at the size that they have before they are broadcast; numbers
// and generated arrays not at all.
//
// # The kernel language
//
// LANGUAGE.md, beside this package's source, says what a kernel may contain and
// lists what is refused. In short: bool, integers, float32 and float64, slices
// of these as views of arrays, fixed arrays, structs; all of Go's statements on
// them but goroutines, channels, defer and goto; other functions of the same
// notebook or package, without recursion; packages math, math/bits, sync/atomic
// and gpukit/simt. Numbers that are variables of a notebook are read at each
// call; package-level variables of .go files are refused. What is outside the
// language is refused before anything runs, with a *CompileError that lists
// every fault with its position and what to write instead.
//
// # Traces
//
// What runs between StartTrace and StopTrace is recorded: launches, and on a
// device with memory of its own the copies too. StopTrace returns a *trace.Trace,
// which as the last line of a cell shows the two tables of NVIDIA's nvprof.
//
// # Numbers
//
// These rules hold on every device; each has its test.
//
//  1. Meaning is Go's. Integers wrap around; / and % truncate; the lowest integer
//     divided by -1 is itself, with remainder 0; a shift by the width or more gives
//     0, or -1 for a negative number shifted right; integer division by zero and a
//     negative shift count end the call with an error.
//  2. +, -, *, /, math.Sqrt and math.FMA of float64, and the operators of float32,
//     are IEEE 754, rounded to nearest even, subnormal numbers included.
//  3. x*y+z is never fused, whatever the processor; math.FMA alone is.
//  4. All NaNs are one, whatever bits an array holds for them: math.Float64bits of a NaN is 0x7FF8000000000001 and
//     math.Float32bits is 0x7FC00000, its sign is positive, and math.Copysign takes
//     it as positive.
//  5. The built-in min and max are NaN if an operand is, and -0 is below +0.
//     math.Min and math.Max are those of Go's library, for which an infinity on the
//     winning side wins over NaN.
//  6. A float that is converted to an integer is truncated; out of range it becomes
//     the nearest integer of the type, and NaN becomes 0. Go leaves these open.
//  7. Functions of package math are our own library's and give the same bits
//     everywhere. Special values are those that Go's documentation names. Sqrt, FMA,
//     Sin, Cos, Tan, Asin, Acos, Atan, Atan2, Sinh, Cosh, Tanh, Asinh, Acosh, Atanh,
//     Exp, Exp2, Expm1, Log, Log2, Log10, Log1p, Pow, Cbrt, Hypot, Erf and Erfc are
//     within 1 ulp; bounds of the others, and what was measured, are in
//     internal/libm/ACCURACY.md, which make accuracy writes.
//  8. float32(math.F(float64(x))) of a float32 x may be computed in another way only
//     if that gives the same bits for every x; with FastMath also otherwise.
//  9. Atomic operations on integers give the same result in any order; atomic
//     additions of floats depend on their order, and so may their last bits.
//  10. Sum, Min, Max, ArgMin and Reduce follow one fixed tree, and random numbers of
//     package simt depend on seed and index alone: the same bits everywhere.
//
// # Errors
//
// What depends on the world, on the function or on the arguments of a call is
// returned as an error, and the next call works: *CompileError, *ArgumentError,
// *ShapeError, *WorkerError, *DeviceError, ErrInterrupted, ErrClosed, or a plain
// error when the source of a function cannot be found. Constructors, views and other methods of
// arrays panic with a *ShapeError, as gonum's mat does, so that calls chain.
//
// A call ends early with ErrInterrupted when the user presses Stop in a notebook, and
// with ErrClosed when another goroutine closes the device.
//
// Integer division by zero, shifts by a negative count and indices out of range
// are a *WorkerError that names the lowest element or thread where it happened.
package gpukit
