// Package simt is what a kernel can say and ask as one thread of a GPU: the
// coordinates of the thread in its block and of the block in the grid,
// barriers, shared memory, atomic operations, the exchange of values inside a
// warp, and random numbers that need no state.
//
// The functions have a meaning only inside a kernel, where the compiler takes
// their place. Called by ordinary Go they panic and say so; the random numbers
// alone are computed there too.
//
// Atomic operations take the address of an element, &x[i], of an array that other
// threads see: a slice or a shared array. All return the value before, as CUDA's do;
// sync/atomic's own functions, which kernels may use too, return the value after.
//
// Shuffles give each thread of a warp a value of another one, votes ask all of them.
// All threads of the warp that have not left the kernel must arrive at the same one.
//
// Types stand in the names because notebooks know no generics.
package simt

import "gpunotes/gpukit/internal/libm"

// WarpSize is the number of lanes of a warp: consecutive threads of a block,
// x the fastest.
const WarpSize = 32

// Dim3 is a position or a size in up to three dimensions, x the fastest.
type Dim3 struct {
	X, Y, Z int
}

// ThreadIdx is the position of the thread in its block, each coordinate from 0.
func ThreadIdx() Dim3 { return outside[Dim3]("ThreadIdx") }

// BlockIdx is the position of the block in the grid, each coordinate from 0.
func BlockIdx() Dim3 { return outside[Dim3]("BlockIdx") }

// BlockDim is the number of threads of a block along each dimension.
func BlockDim() Dim3 { return outside[Dim3]("BlockDim") }

// GridDim is the number of blocks of the grid along each dimension.
func GridDim() Dim3 { return outside[Dim3]("GridDim") }

// Grid1 is the position of the thread in the whole grid along x:
// BlockIdx().X*BlockDim().X + ThreadIdx().X, in 64 bits.
func Grid1() int { return outside[int]("Grid1") }

// Grid2 is the position of the thread in the whole grid along x and y.
func Grid2() (x, y int) { d := outside[Dim3]("Grid2"); return d.X, d.Y }

// Grid3 is the position of the thread in the whole grid along x, y and z.
func Grid3() (x, y, z int) { d := outside[Dim3]("Grid3"); return d.X, d.Y, d.Z }

// LaneID is the position of the thread in its warp, 0 to WarpSize-1.
func LaneID() int { return outside[int]("LaneID") }

// SyncThreads waits until every thread of the block has arrived; all threads of
// a block must arrive at the same one. Threads that have left the kernel do not
// count.
func SyncThreads() { outside[int]("SyncThreads") }

// SyncWarp waits until every thread of the warp has arrived.
func SyncWarp() { outside[int]("SyncWarp") }

// Shared says that an array is one for the whole block instead of one for each
// thread: var tile [256]float64; simt.Shared(&tile). The argument is the
// address of a local array that is declared without a value; what it holds at
// first is undefined.
func Shared(array any) { outside[int]("Shared") }

// SharedFloat32 is the block's dynamic shared memory as float32s. The launch gives its
// size: gpu.With(gpukit.SharedBytes(n)).Launch(...). A kernel uses it as one type
// only. What it holds at first is undefined.
func SharedFloat32() []float32 { return outside[[]float32]("SharedFloat32") }

// SharedFloat64 is the block's dynamic shared memory as float64s. The launch gives its
// size: gpu.With(gpukit.SharedBytes(n)).Launch(...). A kernel uses it as one type
// only. What it holds at first is undefined.
func SharedFloat64() []float64 { return outside[[]float64]("SharedFloat64") }

// SharedInt32 is the block's dynamic shared memory as int32s. The launch gives its
// size: gpu.With(gpukit.SharedBytes(n)).Launch(...). A kernel uses it as one type
// only. What it holds at first is undefined.
func SharedInt32() []int32 { return outside[[]int32]("SharedInt32") }

// SharedInt64 is the block's dynamic shared memory as int64s. The launch gives its
// size: gpu.With(gpukit.SharedBytes(n)).Launch(...). A kernel uses it as one type
// only. What it holds at first is undefined.
func SharedInt64() []int64 { return outside[[]int64]("SharedInt64") }

// Philox4x32 is the counter-based generator Philox4x32-10: four random words
// for each counter and key. It has no state and can be called anywhere.
func Philox4x32(counter [4]uint32, key [2]uint32) [4]uint32 { return libm.Philox4x32(counter, key) }

// UniformFloat64 is random number index of the sequence that seed names,
// uniform in [0, 1). It has no state and can be called anywhere.
func UniformFloat64(seed, index uint64) float64 { return libm.UniformFloat64(seed, index) }

// NormFloat64 is random number index of the sequence that seed names, normal
// with mean 0 and standard deviation 1. It has no state and can be called
// anywhere.
func NormFloat64(seed, index uint64) float64 { return libm.NormFloat64(seed, index) }

func outside[T any](name string) T {
	panic("simt." + name + " was called outside a kernel: only a function that runs on a device has a thread")
}
