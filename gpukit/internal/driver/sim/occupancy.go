package sim

// Occupancy says how many blocks of a kernel a multiprocessor holds at a time.
type Occupancy struct {
	Blocks   int     // per multiprocessor; 0 where a block does not fit at all
	Warps    int     // per multiprocessor
	Fraction float64 // of the warps that it could hold
	Limit    string  // what allows no more: "threads", "blocks", "registers" or "shared memory"
}

// Occupancy is that of a kernel with the given threads per block, registers per thread and bytes of shared memory per
// block, static and dynamic together. Warps are whole; registers go to a warp in units of RegisterUnit, and to
// WarpUnit warps at a time, because the schedulers do not share theirs; shared memory goes to a block in units of
// SharedUnit, after what the system keeps. Rule and units: NVIDIA's occupancy calculator.
func (c *Card) Occupancy(threads, registers, shared int) Occupancy {
	if threads <= 0 || threads > c.ThreadsPerBlock {
		return Occupancy{Limit: "threads"}
	}
	warps := (threads + c.WarpSize - 1) / c.WarpSize
	o := Occupancy{Blocks: c.WarpsPerMP / warps, Limit: "threads"}
	limit := func(n int, why string) {
		if n < o.Blocks {
			o.Blocks, o.Limit = n, why
		}
	}
	limit(c.BlocksPerMP, "blocks")
	if registers > c.RegistersPerThread {
		limit(0, "registers")
	} else if registers > 0 {
		limit(c.registerWarps(registers)/warps, "registers")
	}
	if shared+c.SharedReserved > 0 {
		limit(c.SharedPerMP/roundUp(shared+c.SharedReserved, c.SharedUnit), "shared memory")
	}
	o.Warps = o.Blocks * warps
	o.Fraction = float64(o.Warps) / float64(c.WarpsPerMP)
	return o
}

// registerWarps is how many warps have room for their registers.
func (c *Card) registerWarps(registers int) int {
	n := c.RegistersPerMP / roundUp(registers*c.WarpSize, c.RegisterUnit)
	return n - n%c.WarpUnit
}

// MaxThreads is the largest block that a kernel with this many registers can have; 0 if there is none.
func (c *Card) MaxThreads(registers int) int {
	if registers > c.RegistersPerThread {
		return 0
	}
	if registers <= 0 {
		return c.ThreadsPerBlock
	}
	return min(c.ThreadsPerBlock, c.registerWarps(registers)*c.WarpSize)
}

// LargestBlock is the block size that cuOccupancyMaxPotentialBlockSize proposes: of those with the most threads on a
// multiprocessor the largest, and no more than limit where that is not 0. It also gives the blocks that fill the card.
// Both are 0 if no block fits.
func (c *Card) LargestBlock(registers, shared, limit int) (threads, blocks int) {
	top := c.MaxThreads(registers)
	if limit > 0 {
		top = min(top, limit)
	}
	best := 0
	for t := roundUp(top, c.WarpSize); t > 0; t -= c.WarpSize {
		n := min(t, top)
		if b := c.Occupancy(n, registers, shared).Blocks; b*n > best {
			best, threads, blocks = b*n, n, b*c.Multiprocessors
		}
	}
	return threads, blocks
}

// roundUp rounds n up to a multiple of unit.
func roundUp(n, unit int) int { return (n + unit - 1) / unit * unit }
