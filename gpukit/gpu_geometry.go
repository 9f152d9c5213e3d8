package gpukit

import (
	"fmt"

	"gpunotes/gpukit/internal/driver"
)

// The threads of Vectorize and GUVectorize stand in blocks of one dimension. Which
// size is best is a question of occupancy: how many threads a multiprocessor has
// under way at a time.

// geometry is the grid and block of a launch.
func (l *gpuLaunch) geometry(d *Device, c *call, v *variant) (grid, block driver.Dim) {
	if c.block.X > 0 {
		return driver.Dim(c.grid), driver.Dim(c.block)
	}
	info := &d.gpu.info
	threads := d.options.threadsPerBlock
	if threads == 0 {
		registers := v.needs.Registers
		if d.options.numbaRegisters > 0 {
			registers = d.options.numbaRegisters
		}
		threads = min(bestBlock(info, registers, v.needs.Shared), v.needs.MaxThreads)
	}
	threads = max(threads, 1)
	blocks := max((l.workers+threads-1)/threads, 1)
	if info.MaxGrid.X > 0 {
		blocks = min(blocks, info.MaxGrid.X) // a thread goes on with more workers
	}
	return driver.Dim{X: blocks, Y: 1, Z: 1}, driver.Dim{X: threads, Y: 1, Z: 1}
}

// Units in which a multiprocessor hands out registers and shared memory, of
// compute capability 3.0 and later (numba 0.38.1, cuda/cudadrv/autotune.py, after
// NVIDIA's occupancy calculator).
const (
	registerUnit = 256 // per warp
	warpUnit     = 4   // of warps that have their registers
)

// sharedUnits are the unit in which shared memory is handed out and what the system
// keeps of it, in bytes per block (NVIDIA's occupancy calculator, and CUDA C++ Programming
// Guide, technical specifications per compute capability).
func sharedUnits(sm int) (unit, reserved int) {
	if sm >= 80 {
		return 128, 1024
	}
	return 256, 0
}

// bestBlock is the number of threads per block with the highest occupancy, the
// smallest of several. The rule is that of numba before 0.40.
func bestBlock(info *driver.Info, registers, shared int) int {
	warp := max(info.WarpSize, 1)
	best, threads := 0, min(128, max(info.MaxThreadsPerBlock, 1)) // if no block fits, the launch says why
	for t := warp; t <= info.MaxThreadsPerBlock; t += warp {
		if n := occupancyOf(info, t, registers, shared).warps; n > best {
			best, threads = n, t
		}
	}
	return threads
}

// occupancy is what a multiprocessor holds of a kernel at a time.
type occupancy struct {
	blocks, warps int
	most          int    // warps that it could hold
	limit         string // what allows no more
}

// occupancyOf is what a multiprocessor holds at a time of a kernel with blocks of some threads.
func occupancyOf(info *driver.Info, threads, registers, shared int) occupancy {
	up := func(n, unit int) int { return (n + unit - 1) / unit * unit }
	warp := max(info.WarpSize, 1)
	warps := up(threads, warp) / warp
	h := occupancy{most: info.MaxThreadsPerMP / warp, limit: "the number of threads"}
	h.blocks = h.most / warps
	limit := func(n int, by string) {
		if n < h.blocks {
			h.blocks, h.limit = n, by
		}
	}
	limit(info.MaxBlocksPerMP, "the number of blocks")
	switch {
	case registers > info.RegistersPerThread:
		limit(0, "registers")
	case registers > 0:
		n := info.RegistersPerMP / up(registers*warp, registerUnit)
		limit(n/warpUnit*warpUnit/warps, "registers")
	}
	if unit, reserved := sharedUnits(info.SM()); shared+reserved > 0 {
		limit(info.SharedPerMP/up(shared+reserved, unit), "shared memory")
	}
	h.warps = h.blocks * warps
	return h
}

// String says it in a line.
func (h occupancy) String() string {
	blocks := "blocks"
	switch h.blocks {
	case 0:
		return "0 %: no block can run"
	case 1:
		blocks = "block"
	}
	s := fmt.Sprintf("%.3g %%: a multiprocessor holds %d %s, %d of %d warps", 100*h.share(), h.blocks, blocks, h.warps, h.most)
	if h.warps < h.most {
		s += ", limited by " + h.limit
	}
	return s
}

// share is the occupancy.
func (h occupancy) share() float64 { return float64(h.warps) / float64(max(h.most, 1)) }
