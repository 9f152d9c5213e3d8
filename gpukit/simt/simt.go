// Package simt is what a kernel can ask about its place on a GPU: the
// coordinates of the thread in its block and of the block in the grid, and the
// barrier of a block.
//
// The functions have a meaning only inside a kernel, where the compiler takes
// their place. Called by ordinary Go they panic and say so.
package simt

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

// SyncThreads waits until every thread of the block has arrived; all threads of
// a block must arrive at the same one.
func SyncThreads() { outside[int]("SyncThreads") }

func outside[T any](name string) T {
	panic("simt." + name + " was called outside a kernel: only a function that runs on a device has a thread")
}
