package gpukit

import (
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
	sharedUnit   = 256 // bytes per block
)

// bestBlock is the number of threads per block with the highest occupancy, the
// smallest of several. The rule is that of numba before 0.40.
func bestBlock(info *driver.Info, registers, shared int) int {
	warp := max(info.WarpSize, 1)
	best, threads := 0, min(128, max(info.MaxThreadsPerBlock, 1)) // if no block fits, the launch says why
	for t := warp; t <= info.MaxThreadsPerBlock; t += warp {
		if n := warpsUnderWay(info, t/warp, registers, shared); n > best {
			best, threads = n, t
		}
	}
	return threads
}

// warpsUnderWay is how many warps a multiprocessor has at a time.
func warpsUnderWay(info *driver.Info, warpsPerBlock, registers, shared int) int {
	up := func(n, unit int) int { return (n + unit - 1) / unit * unit }
	blocks := min(info.MaxBlocksPerMP, info.MaxThreadsPerMP/info.WarpSize/warpsPerBlock)
	switch {
	case registers > info.RegistersPerThread:
		return 0
	case registers > 0:
		warps := info.RegistersPerMP / up(registers*info.WarpSize, registerUnit)
		blocks = min(blocks, warps/warpUnit*warpUnit/warpsPerBlock)
	}
	if shared > 0 {
		blocks = min(blocks, info.SharedPerMP/up(shared, sharedUnit))
	}
	return blocks * warpsPerBlock
}
