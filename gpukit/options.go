package gpukit

import (
	"fmt"
	"strings"
)

// Option is a setting of a device, made by the functions that return one and
// taken by Device.With.
type Option struct {
	set func(*options)
}

// options are all settings; the zero value is the default. It is comparable:
// part of the key under which compiled programs are kept.
type options struct {
	fastMath          bool
	unchecked         bool
	oneWorkerPerSlice bool
	sharedBytes       int
	threadsPerBlock   int
	numbaGeometry     bool
	numbaRegisters    int
}

// FastMath allows results that differ in the last bits where that is faster. It
// allows, it does not demand: the rest gives the same bits.
//
// float32(math.F(float64(x), float64(y))) of Pow, Atan2 and Hypot takes forms for
// float32. For float64, Sin, Cos, Sincos, Tan, Atan, Atan2, Tanh, Exp, Exp2, Log, Log2,
// Log10 and Erf are within 4 ulp instead of 1 for every argument, and Pow(x, y) is
// within 4 + |y log x|/16; of a NaN, an infinity and a zero they give what they
// always do (internal/libm/ACCURACY.md has the measured errors). Powers with the
// constant exponents -1, 2, 3 and 4 become a division or products, and x/c with a
// constant c becomes x*(1/c). A product of float64
// numbers that is only added to or subtracted from something is not rounded before, as
// with math.FMA, even if the function says float64(x*y). All of this gives the same
// bits on every device. A sum, product, minimum or maximum of floats that one worker computes in
// a loop is computed in four parts, of every fourth operand, so that four operations
// are under way at once; Explain names these loops. With an eps of 2^-52 for float64
// and 2^-23 for float32, a sum of n operands x then differs by less than n*eps*sum|x|
// and a product by less than n*eps of itself; on the way they may overflow where they
// did not in order, or not where they did. A minimum or maximum, NaN and -0 included,
// is the same, but if x > m { m = x } may keep another one of +0 and -0. Sums of
// integers, loops that store, print, wait or leave early, and loops of 16 iterations
// or fewer if that is a constant stay as they are.
func FastMath() Option { return Option{func(o *options) { o.fastMath = true }} }

// Unchecked leaves out the checks of indices, but for those in machine code for the
// processor, where they cost next to nothing. An index out of range is then an
// error without a position, or on a GPU undefined behaviour.
func Unchecked() Option { return Option{func(o *options) { o.unchecked = true }} }

// OneWorkerPerSlice keeps the loops of a function serial, one worker for each
// slice that the layout of GUVectorize makes, as numba does. Without it a loop of a
// Vectorize or GUVectorize function becomes workers where it can (see GUVectorize);
// the results are the same, bit for bit.
func OneWorkerPerSlice() Option { return Option{func(o *options) { o.oneWorkerPerSlice = true }} }

// SharedBytes gives every block of a Launch n bytes of dynamic shared memory,
// which simt.SharedFloat64 and its kin return as a slice. What it holds at first
// is undefined. A negative n counts as 0; a launch refuses more than a GPU has, and 0
// for a kernel that uses dynamic shared memory.
func SharedBytes(n int) Option { return Option{func(o *options) { o.sharedBytes = max(n, 0) }} }

// ThreadsPerBlock sets the size of the blocks of Vectorize and GUVectorize on a
// GPU; n below 1 leaves it to gpukit, which takes the size with the most threads
// under way. A launch refuses more than the card allows.
func ThreadsPerBlock(n int) Option { return Option{func(o *options) { o.threadsPerBlock = max(n, 0) }} }

// NumbaGeometry makes the blocks of Vectorize and GUVectorize on a GPU as numba
// before 0.40 did for a kernel of so many registers per thread: of the multiples
// of 32 with the highest occupancy the smallest. registers = 0 takes the count of
// our own kernel; another one is from numba's, and Explain says so.
func NumbaGeometry(registers int) Option {
	return Option{func(o *options) { o.numbaGeometry, o.numbaRegisters = true, max(registers, 0) }}
}

// String lists the settings that are not the default.
func (o options) String() string {
	var s []string
	if o.fastMath {
		s = append(s, "FastMath()")
	}
	if o.unchecked {
		s = append(s, "Unchecked()")
	}
	if o.oneWorkerPerSlice {
		s = append(s, "OneWorkerPerSlice()")
	}
	if o.sharedBytes > 0 {
		s = append(s, fmt.Sprintf("SharedBytes(%d)", o.sharedBytes))
	}
	if o.threadsPerBlock > 0 {
		s = append(s, fmt.Sprintf("ThreadsPerBlock(%d)", o.threadsPerBlock))
	}
	if o.numbaGeometry {
		s = append(s, fmt.Sprintf("NumbaGeometry(%d)", o.numbaRegisters))
	}
	return strings.Join(s, ", ")
}
