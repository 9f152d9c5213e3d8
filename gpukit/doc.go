// Package gpukit runs ordinary Go functions over arrays: on every core of this
// machine, and by the same call on a GPU or a simulated one.
//
//	gpu := gpukit.MustOpen("parallel")
//	lon, lat := gpukit.MeshGrid(gpukit.Linspace(99, 101, 1000), gpukit.Linspace(29, 31, 1000))
//	z, err := gpu.Vectorize(dist, lat, lon, 30.0, 101.0, 1.0)
//
// dist is any Go function within the kernel language, typed in a notebook cell
// or standing in a .go file; gpukit finds its source, compiles it for the
// device, and keeps the result.
//
// # Devices
//
// "cpu" runs on the caller's goroutine, "parallel" on as many as there are
// processors, "auto" takes the best device there is. Results do not depend on
// the device.
//
// # The kernel language
//
// Parameters and results are bool, integers, float32 and float64, or named types
// of these. Inside: constants, variables, assignment, if, switch, every form of
// for but range over containers, break and continue with labels, return
// anywhere, calls of other Go functions of the same notebook or package without
// recursion, min, max, conversions, and package math. Scalar variables of a
// notebook are read at each call. Everything else is refused before anything
// runs, with a *CompileError that lists every fault with its position and what
// to write instead.
//
// # Numbers
//
// Meaning is Go's: integers wrap around, division truncates, shifts by the width
// or more give 0 (or -1), floats are IEEE with denormals, and x*y+z is never
// fused. Where Go leaves a conversion open it is fixed here: float to integer
// truncates, saturates out of range, and gives 0 for NaN. All NaNs count as one:
// math.Float64bits of a NaN is 0x7FF8000000000001 and its sign is positive.
// Integer division by zero and shifts by a negative count are a *WorkerError that
// names the lowest element where it happened.
//
// # Errors
//
// What depends on the world, on the function or on the arguments of a call is
// returned as an error, and the next call works. Constructors and views of
// arrays panic with a *ShapeError, as gonum's mat does, so that calls chain.
package gpukit
