package sim

import (
	"fmt"

	"gpunotes/gpukit/internal/driver"
)

// CheckLaunch compares a launch with the limits of the card, as cuLaunchKernel does before anything runs. The error is
// InvalidValue, or LaunchOutOfResources for registers, and says what is too much, the limit and what would fit.
func (c *Card) CheckLaunch(a driver.Attributes, l driver.Launch) error {
	bad := func(code driver.Code, format string, args ...any) error {
		return &driver.Error{Call: "cuLaunchKernel", Code: code, Detail: fmt.Sprintf("kernel %s: ", a.Name) + fmt.Sprintf(format, args...)}
	}
	type axis struct {
		what, name string
		n, max     int
	}
	for _, x := range []axis{
		{"grid", "x", l.Grid.X, c.GridX}, {"grid", "y", l.Grid.Y, c.GridY}, {"grid", "z", l.Grid.Z, c.GridZ},
		{"block", "x", l.Block.X, c.BlockX}, {"block", "y", l.Block.Y, c.BlockY}, {"block", "z", l.Block.Z, c.BlockZ},
	} {
		unit := "blocks"
		if x.what == "block" {
			unit = "threads"
		}
		if x.n < 1 {
			return bad(driver.InvalidValue, "%s %v has %d %s along %s; there must be at least 1", x.what, dim(l, x.what), x.n, unit, x.name)
		}
		if x.n > x.max {
			hint := ""
			if x.what == "grid" && x.name != "x" && l.Grid.X <= x.max {
				hint = "; put the long axis on x"
			}
			return bad(driver.InvalidValue, "%s %v has %d %s along %s; %s takes at most %d there%s", x.what, dim(l, x.what), x.n, unit, x.name, c.Title, x.max, hint)
		}
	}
	threads := l.Block.Count()
	if threads > c.ThreadsPerBlock {
		return bad(driver.InvalidValue, "block %v has %d threads; %s takes at most %d per block", l.Block, threads, c.Title, c.ThreadsPerBlock)
	}
	if a.Registers > c.RegistersPerThread {
		return bad(driver.LaunchOutOfResources, "it uses %d registers per thread; %s has at most %d", a.Registers, c.Title, c.RegistersPerThread)
	}
	if largest := c.MaxThreads(a.Registers); threads > largest {
		return bad(driver.LaunchOutOfResources, "block %v has %d threads of %d registers each; %s has %d registers per block, handed out to warps in steps of %d. The largest block that fits has %d threads",
			l.Block, threads, a.Registers, c.Title, c.RegistersPerBlock, c.RegisterUnit, largest)
	}
	switch {
	case l.Shared < 0:
		return bad(driver.InvalidValue, "%d bytes of dynamic shared memory", l.Shared)
	case a.Shared > c.SharedPerBlock:
		more := "use smaller arrays"
		if c.SharedPerBlockOptIn > c.SharedPerBlock {
			more = "as dynamic shared memory it may be up to " + size(c.SharedPerBlockOptIn)
		}
		return bad(driver.InvalidValue, "it declares %s of shared memory; %s takes at most %s per block: %s",
			size(a.Shared), c.Title, size(c.SharedPerBlock), more)
	case a.Shared+l.Shared > c.SharedPerBlockOptIn:
		return bad(driver.InvalidValue, "%s of static and %s of dynamic shared memory are %s; %s takes at most %s per block",
			size(a.Shared), size(l.Shared), size(a.Shared+l.Shared), c.Title, size(c.SharedPerBlockOptIn))
	case a.Local > c.LocalPerThread:
		return bad(driver.LaunchOutOfResources, "it uses %s of local memory per thread; %s has at most %s: use smaller local arrays, or one array that is an argument, with a part of it for each thread", size(a.Local), c.Title, size(c.LocalPerThread))
	}
	return nil
}

func dim(l driver.Launch, what string) driver.Dim {
	if what == "grid" {
		return l.Grid
	}
	return l.Block
}

// CheckAlloc is nil if n bytes can be had while free are left, else OutOfMemory with the sizes.
func (c *Card) CheckAlloc(n, free uint64) error {
	if n <= free {
		return nil
	}
	return &driver.Error{Call: "cuMemAlloc", Code: driver.OutOfMemory, Detail: fmt.Sprintf("%s asked for, %s of %s free on %s; free arrays that are no longer needed, or work in parts",
		size(n), size(free), size(uint64(c.MemoryBytes)), c.Title)}
}

// size writes a number of bytes exactly, and in binary units where that reads better.
func size[T int | uint64](n T) string {
	units := []string{"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"}
	if n < 1024 {
		return fmt.Sprintf("%d bytes", n)
	}
	x, u := float64(n)/1024, 0
	for x >= 1024 && u < len(units)-1 {
		x, u = x/1024, u+1
	}
	return fmt.Sprintf("%d bytes (%.4g %s)", n, x, units[u])
}
