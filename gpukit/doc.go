// Package gpukit runs ordinary Go functions over arrays, on every core of this
// machine.
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
// processors, "auto" takes the best device there is. Results do not depend on
// the device. Put and Empty make arrays that belong to a device; calls with one
// of them leave their results there.
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
// Meaning is Go's: integers wrap around, division truncates, shifts by the width
// or more give 0 (or -1), floats are IEEE with denormals, and x*y+z is never
// fused. Where Go leaves a conversion open it is fixed here: float to integer
// truncates, saturates out of range, and gives 0 for NaN. All NaNs count as one:
// math.Float64bits of a NaN is 0x7FF8000000000001 and its sign is positive. The
// built-in min and max are NaN if an operand is; math.Min and math.Max are
// those of Go's library, for which an infinity wins over NaN. Atomic additions of
// floats depend on their order and so may their results.
//
// # Errors
//
// What depends on the world, on the function or on the arguments of a call is
// returned as an error, and the next call works: *CompileError, *ArgumentError,
// *ShapeError, *WorkerError, ErrInterrupted, ErrClosed, or a plain error when the
// source of a function cannot be found. Constructors, views and other methods of
// arrays panic with a *ShapeError, as gonum's mat does, so that calls chain.
//
// Integer division by zero, shifts by a negative count and indices out of range
// are a *WorkerError that names the lowest element or thread where it happened.
package gpukit
