package sim

import (
	"fmt"
	"math/bits"
	"strings"

	"gpunotes/gpukit/internal/driver"
)

// Fault is what the checker finds.
type Fault uint8

// The faults.
const (
	Misaligned       Fault = iota // an address that is no multiple of the access's size
	OutsideShared                 // an access outside the block's shared memory
	UnwrittenShared               // shared memory that no thread of the block has written is read
	RaceInBlock                   // two threads of a block, one of which writes, and no barrier between them
	RaceOfBlocks                  // the same of two blocks, which nothing can order
	DivergentBarrier              // a barrier to which not all threads come that should
)

// Party is a thread that takes part in a fault, and what it did.
type Party struct {
	Block, Thread driver.Dim
	Does          string // "writes", "reads", "adds atomically to" and the like
	PC            int
	Where         string // its place in the source
}

// Violation is an error of a kernel in its use of memory or barriers.
type Violation struct {
	Fault  Fault
	Space  string // "global" or "shared"; empty for a barrier
	Addr   uint64
	Name   string // of what is there, if the launch knows
	Size   int
	First  Party  // the thread that was caught
	Second *Party // of a race: the thread that was there before
	Detail string
}

// Error says in a sentence what is wrong and in another what to do.
func (v *Violation) Error() string {
	var b strings.Builder
	who := func(p *Party) string {
		return fmt.Sprintf("block %v thread %v, %s", p.Block, p.Thread, p.Where)
	}
	at := v.Name
	if at == "" {
		at = fmt.Sprintf("%s memory at %#x", v.Space, v.Addr)
	}
	switch v.Fault {
	case Misaligned:
		fmt.Fprintf(&b, "misaligned access: %s %s %d bytes of %s, which is no multiple of %d", who(&v.First), v.First.Does, v.Size, at, v.Size)
	case OutsideShared:
		fmt.Fprintf(&b, "outside shared memory: %s %s %d bytes of %s; %s", who(&v.First), v.First.Does, v.Size, at, v.Detail)
	case UnwrittenShared:
		fmt.Fprintf(&b, "unwritten shared memory: %s reads %d bytes of %s that no thread of the block has written. Shared memory has no initial value: write it first, with a barrier (SyncThreads) between", who(&v.First), v.Size, at)
	case RaceInBlock, RaceOfBlocks:
		fmt.Fprintf(&b, "data race: %s %s %s; %s %s it before", who(&v.First), v.First.Does, at, who(v.Second), v.Second.Does)
		switch {
		case v.Fault == RaceOfBlocks:
			b.WriteString(". Blocks run in any order: let each write elements of its own, use atomics for both, or launch a second kernel")
		case v.Detail != "":
			b.WriteString(". " + v.Detail)
		default:
			b.WriteString(", with no barrier between. Put a barrier (SyncThreads) between them, or use atomics for both")
		}
	case DivergentBarrier:
		fmt.Fprintf(&b, "divergent barrier: %s comes to a barrier; %s. All threads of a block must come to the same barrier: move it out of the if or loop", who(&v.First), v.Detail)
	}
	return b.String()
}

// memoryChecker looks at every access for errors that a card would not report.
//
// Two accesses to a byte race if they come from different threads, one of them writes, not both are atomic, and nothing
// orders them. A barrier orders the threads of a block, a warp barrier those of a warp; running in step does not, so
// that code which relies on it is reported. Nothing orders blocks, not even atomics: the pattern in which the last block
// reads what others wrote is reported. Lanes that store to one address in one instruction race whatever they store, as
// in Go. A volatile load counts as atomic: access.atomic is set and access.store is not.
//
// Order is kept as time: each block has a clock that a barrier moves on, and what happened before the last barrier is
// ordered before now. Per granule of memory (checker_shadow.go) the last write is kept and, of reads and of atomics since, two
// each that between them race with whatever any of them would race with: two of different blocks if there are, else of
// different warps, else of different lanes. So every race is found at its second access, and none is reported that is
// none. Only the number of blocks is limited, to 2^32 - 2.
type memoryChecker struct {
	grid, block driver.Dim
	where       func(pc int) string
	name        func(address uint64) string // of global memory; may be nil
	sharedName  func(address uint64) string // of shared memory; may be nil
	sharedBytes int

	blocks map[int]*blockClock
	last   *blockClock // the one of the access before
	free   []*blockClock

	global directory
}

// blockClock is what is known of a running block.
type blockClock struct {
	index   int
	key     uint64 // index + 1
	now     uint32 // the clock
	barrier uint32 // time of the last barrier
	warp    [32]uint32
	// A barrier is over, and its time known, at the next access of a warp that has been there: arrived counts barriers
	// per warp and round is the highest count.
	arrived [32]uint32
	round   uint32
	pending bool
	pc      int // of the barrier of this round

	shared  page
	written []uint64 // a bit per byte of shared memory
}

// newChecker checks a launch. sharedBytes is the size of a block's shared memory, what lies between static and dynamic
// memory included; where turns a pc into a place in the source. The executor calls syncWarp for every barrier of a warp,
// and for membar.cta below sm_70, where that is what a barrier of a warp is compiled to.
func newChecker(grid, block driver.Dim, sharedBytes int, where func(pc int) string) *memoryChecker {
	return &memoryChecker{grid: grid, block: block, where: where, sharedBytes: sharedBytes, blocks: map[int]*blockClock{}}
}

var _ checker = (*memoryChecker)(nil)

func (c *memoryChecker) blockStart(sm, block int) {
	var b *blockClock
	if n := len(c.free); n > 0 {
		b = c.free[n-1]
		c.free = c.free[:n-1]
		shared, written := b.shared, b.written
		shared.clear()
		clear(written)
		*b = blockClock{shared: shared, written: written}
	} else {
		b = &blockClock{written: make([]uint64, (c.sharedBytes+63)/64)}
		b.shared.bytes = max(roundUp(c.sharedBytes, rowCells<<maxGrain), rowCells<<maxGrain)
	}
	b.index, b.key, b.now = block, uint64(block+1), 1
	c.blocks[block] = b
}

func (c *memoryChecker) blockEnd(sm, block int) {
	if b := c.blocks[block]; b != nil {
		delete(c.blocks, block)
		c.free = append(c.free, b)
		c.last = nil
	}
}

func (c *memoryChecker) of(block int) *blockClock {
	if c.last != nil && c.last.index == block {
		return c.last
	}
	b := c.blocks[block]
	if b == nil {
		c.blockStart(0, block)
		b = c.blocks[block]
	}
	c.last = b
	return b
}

// barrier is told of a warp at a barrier of the block.
func (c *memoryChecker) barrier(sm, block, warp int, arrived, live uint32, pc int) error {
	b := c.of(block)
	if missing := live &^ arrived; missing != 0 {
		return c.divergent(b, warp, arrived, pc, fmt.Sprintf("%s of its warp run on without it", c.threads(warp, missing)))
	}
	if b.arrived[warp] == b.round { // the first warp of a round
		b.settle()
		b.round++
		b.pending = true
		b.pc = pc
	} else if pc != b.pc {
		return c.divergent(b, warp, arrived, pc, fmt.Sprintf("other warps of the block wait at another one, %s", c.where(b.pc)))
	}
	b.arrived[warp]++
	return nil
}

// settle fixes the time of a barrier that is over.
func (b *blockClock) settle() {
	if b.pending {
		b.pending = false
		b.now++
		b.barrier = b.now
	}
}

// syncWarp is told of a warp barrier; it orders all lanes of the warp.
func (c *memoryChecker) syncWarp(block, warp int) {
	b := c.of(block)
	b.enter(warp)
	b.now++
	b.warp[warp] = b.now
}

func (b *blockClock) enter(warp int) {
	if b.pending && b.arrived[warp] == b.round {
		b.settle()
	}
}

func (c *memoryChecker) finish() error { return nil }

func (c *memoryChecker) access(a *access) error {
	if a.mask == 0 {
		return nil
	}
	first, last := bits.TrailingZeros32(a.mask), 31-bits.LeadingZeros32(a.mask)
	lo, hi := a.addr[first], a.addr[last]
	size := uint64(a.size)
	solid := a.mask>>first == 1<<(last-first+1)-1 // no lane is missing between
	row := solid && hi-lo == uint64(last-first)*size && consecutive(a.addr[first:last+1], size)
	odd := lo
	if !row {
		for w := a.mask; w != 0; w &= w - 1 {
			odd |= a.addr[bits.TrailingZeros32(w)&31]
		}
	}
	if odd&(size-1) != 0 {
		return c.misaligned(a)
	}
	if a.space != spaceGlobal && a.space != spaceShared {
		return nil
	}
	b := c.of(a.block)
	b.enter(a.warp)
	k := check{c: c, b: b, a: a, who: b.key<<32 | uint64(b.now), thread: uint32(a.warp << 5), pc: uint32(a.pc) << threadBits}
	switch {
	case a.atomic:
		k.class = atomics
	case a.store:
		k.class = writes
	default:
		k.class = reads
	}
	if a.space == spaceShared {
		if err := c.sharedBits(b, a, row, lo, hi+size); err != nil {
			return err
		}
	}
	switch {
	case first == last:
		return k.lane(lo, uint32(first))
	case row:
		return k.row(lo, hi+size, uint32(first))
	case solid && hi == lo && k.class == reads && constant(a.addr[first:last+1]):
		// Two lanes stand for all.
		if err := k.lane(lo, uint32(first)); err != nil {
			return err
		}
		return k.lane(lo, uint32(last))
	}
	for w := a.mask; w != 0; w &= w - 1 {
		i := bits.TrailingZeros32(w) & 31
		if err := k.lane(a.addr[i], uint32(i)); err != nil {
			return err
		}
	}
	return nil
}

// sharedBits keeps which bytes of shared memory are written. row says that the access is lo to hi without gaps.
func (c *memoryChecker) sharedBits(b *blockClock, a *access, row bool, lo, hi uint64) error {
	size := uint64(a.size)
	reads := !a.store || a.atomic
	if row && hi <= uint64(c.sharedBytes) {
		ok := true
		for x := lo; x < hi; {
			n := min(64-x%64, hi-x)
			m := (uint64(1)<<n - 1) << (x % 64)
			if n == 64 {
				m = ^uint64(0)
			}
			if reads && b.written[x/64]&m != m {
				ok = false
				break
			}
			if a.store {
				b.written[x/64] |= m
			}
			x += n
		}
		if ok {
			return nil
		}
	}
	for w := a.mask; w != 0; w &= w - 1 {
		i := bits.TrailingZeros32(w) & 31
		x := a.addr[i]
		if x+size > uint64(c.sharedBytes) || x+size < x {
			v := c.violation(OutsideShared, a, i)
			v.Detail = fmt.Sprintf("the block has %d bytes", c.sharedBytes)
			return v
		}
		m := (uint64(1)<<size - 1) << (x % 64) // in one word, being aligned
		if reads && b.written[x/64]&m != m {
			return c.violation(UnwrittenShared, a, i)
		}
	}
	if a.store {
		for w := a.mask; w != 0; w &= w - 1 {
			x := a.addr[bits.TrailingZeros32(w)&31]
			b.written[x/64] |= (uint64(1)<<size - 1) << (x % 64)
		}
	}
	return nil
}

func (c *memoryChecker) misaligned(a *access) error {
	for w := a.mask; w != 0; w &= w - 1 {
		if i := bits.TrailingZeros32(w) & 31; a.addr[i]&uint64(a.size-1) != 0 {
			return c.violation(Misaligned, a, i)
		}
	}
	return nil
}

func (c *memoryChecker) divergent(b *blockClock, warp int, arrived uint32, pc int, detail string) error {
	p := c.party(uint64(b.index), uint32(warp<<5|bits.TrailingZeros32(arrived)&31), pc, "")
	return &Violation{Fault: DivergentBarrier, First: p, Detail: detail}
}

// threads names some lanes.
func (c *memoryChecker) threads(warp int, lanes uint32) string {
	var names []string
	for w := lanes; w != 0; w &= w - 1 {
		if len(names) == 4 {
			return fmt.Sprintf("threads %s and %d more", strings.Join(names, " "), bits.OnesCount32(w))
		}
		names = append(names, place(c.block, warp<<5|bits.TrailingZeros32(w)).String())
	}
	if len(names) == 1 {
		return "thread " + names[0]
	}
	return "threads " + strings.Join(names, " ")
}

func (c *memoryChecker) party(block uint64, thread uint32, pc int, does string) Party {
	return Party{Block: place(c.grid, int(block)), Thread: place(c.block, int(thread)), Does: does, PC: pc, Where: c.where(pc)}
}

func (c *memoryChecker) violation(f Fault, a *access, lane int) *Violation {
	does := "reads"
	switch {
	case a.store && a.atomic:
		does = "atomically updates"
	case a.store:
		does = "writes"
	}
	name := ""
	if c.name != nil && a.space == spaceGlobal {
		name = c.name(a.addr[lane&31])
	}
	if c.sharedName != nil && a.space == spaceShared && f != OutsideShared {
		if name = c.sharedName(a.addr[lane&31]); name != "" {
			name += fmt.Sprintf(" (shared memory at %#x)", a.addr[lane&31])
		}
	}
	return &Violation{Fault: f, Space: a.space.String(), Addr: a.addr[lane&31], Name: name, Size: a.size, First: c.party(uint64(a.block), uint32(a.warp<<5|lane), a.pc, does)}
}

// place is where linear index i stands in d, x running fastest.
func place(d driver.Dim, i int) driver.Dim {
	x, y := max(d.X, 1), max(d.Y, 1)
	return driver.Dim{X: i % x, Y: i / x % y, Z: i / x / y}
}
