package gpukit

import "fmt"

// Grid is the number of blocks of a launch along x, y and z.
type Grid struct{ X, Y, Z int }

// Block is the number of threads of a block along x, y and z.
type Block struct{ X, Y, Z int }

// Blocks makes a Grid of one to three dimensions, as in Blocks(32, 32); those
// not given are 1. Anything else is refused by the call that gets it.
func Blocks(n ...int) Grid {
	d := dims3(n)
	return Grid{d[0], d[1], d[2]}
}

// Threads makes a Block of one to three dimensions, as in Threads(16, 16);
// those not given are 1. Anything else is refused by the call that gets it.
func Threads(n ...int) Block {
	d := dims3(n)
	return Block{d[0], d[1], d[2]}
}

func dims3(n []int) [3]int {
	d := [3]int{1, 1, 1}
	if len(n) == 0 || len(n) > 3 {
		return [3]int{} // refused
	}
	copy(d[:], n)
	return d
}

// String returns the dimensions as (x, y, z).
func (g Grid) String() string { return fmt.Sprintf("(%d, %d, %d)", g.X, g.Y, g.Z) }

// String returns the dimensions as (x, y, z).
func (b Block) String() string { return fmt.Sprintf("(%d, %d, %d)", b.X, b.Y, b.Z) }

// Limits of a launch, those of CUDA devices of compute capability 3.0 and later
// (CUDA C++ Programming Guide, technical specifications per compute
// capability), kept on every device so that a kernel that runs here runs there.
const (
	maxBlockThreads = 1024
	maxBlockX       = 1024
	maxBlockZ       = 64
	maxGridX        = 1<<31 - 1
	maxGridYZ       = 65535
)

// maxShared is the most shared memory that a block can have on any card: 227 KB
// on compute capability 9.0 (the same table).
const maxShared = 227 << 10

// maxLocal is the local memory that a thread can have on any card: 512 KB (CUDA
// C++ Programming Guide, technical specifications per compute capability).
const maxLocal = 512 << 10

// checkGeometry refuses a grid or block that no device takes.
func checkGeometry(op string, g Grid, b Block) error {
	refuse := func(what, remedy string, args ...any) error {
		return &ArgumentError{Op: op, Detail: fmt.Sprintf(what, args...), Remedy: remedy}
	}
	switch {
	case g == Grid{}:
		return refuse("the grid is (0, 0, 0), which is also what gpukit.Blocks makes of no number or more than three: it needs one to three dimensions, each at least 1", "write e.g. gpukit.Blocks(32) or gpukit.Blocks(32, 32)")
	case b == Block{}:
		return refuse("the block is (0, 0, 0), which is also what gpukit.Threads makes of no number or more than three: it needs one to three dimensions, each at least 1", "write e.g. gpukit.Threads(256) or gpukit.Threads(16, 16)")
	case g.X < 1 || g.Y < 1 || g.Z < 1:
		return refuse("the grid is %v: it needs one to three dimensions, each at least 1", "write e.g. gpukit.Blocks(32) or gpukit.Blocks(32, 32)", g)
	case b.X < 1 || b.Y < 1 || b.Z < 1:
		return refuse("the block is %v: it needs one to three dimensions, each at least 1", "write e.g. gpukit.Threads(256) or gpukit.Threads(16, 16)", b)
	case g.X > maxGridX || g.Y > maxGridYZ || g.Z > maxGridYZ:
		return refuse("the grid is %v: the limits are (%d, %d, %d)", "use fewer blocks and let each thread do more", g, maxGridX, maxGridYZ, maxGridYZ)
	case b.X > maxBlockX || b.Y > maxBlockX || b.Z > maxBlockZ:
		return refuse("the block is %v: the limits are (%d, %d, %d)", "use smaller blocks and more of them", b, maxBlockX, maxBlockX, maxBlockZ)
	case b.X*b.Y*b.Z > maxBlockThreads:
		return refuse("a block of %v has %d threads: the limit is %d", "use smaller blocks and more of them", b, b.X*b.Y*b.Z, maxBlockThreads)
	}
	return nil
}
