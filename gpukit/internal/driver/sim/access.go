package sim

// space is a state space of PTX as far as an access is concerned. Generic addresses are resolved before an access is
// reported.
type space uint8

const (
	spaceGlobal space = iota
	spaceShared
	spaceLocal
	spaceConstant
	spaceParam
)

// String names the space as PTX does.
func (s space) String() string {
	switch s {
	case spaceGlobal:
		return "global"
	case spaceShared:
		return "shared"
	case spaceLocal:
		return "local"
	case spaceConstant:
		return "const"
	}
	return "param"
}

// access is one memory instruction of one warp. It is valid during the call only: the executor reuses it.
type access struct {
	sm    int // multiprocessor
	block int // linear index of the block in the grid, x running fastest
	warp  int // warp in the block
	space space

	store  bool // writes; an atomic reads too
	atomic bool // or, without store, a load that is volatile, relaxed or acquire
	nc     bool // ld.global.nc: the read-only path

	size int         // bytes per lane
	mask uint32      // live lanes
	addr *[32]uint64 // global and const: device addresses. Shared, local, param: offsets in the window. Live lanes only
	pc   int         // index of the instruction in the function's body
}

// memorySystem counts what the caches and the memory do. The executor calls it for every access in the order in which
// the warps make them.
type memorySystem interface {
	access(a *access)
	finish() // end of launch
}

// checker looks at every access and barrier before it happens. An error ends the launch.
type checker interface {
	access(a *access) error
	// barrier is told of a warp that reaches bar.sync: arrived are its lanes that are here, live those that have not exited.
	barrier(sm, block, warp int, arrived, live uint32, pc int) error
	// syncWarp is told of a warp that has met at a barrier of the warp.
	syncWarp(block, warp int)
	blockStart(sm, block int)
	blockEnd(sm, block int)
	finish() error
}
