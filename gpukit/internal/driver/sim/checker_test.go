package sim

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"gpunotes/gpukit/internal/driver"
)

// rig runs kernels that are written as what their warps do: f gives the address of a lane, or false if it takes no part.
type rig struct {
	*memoryChecker
	err error
}

func newRig(blocks, threads, shared int) *rig {
	r := &rig{memoryChecker: newChecker(driver.Dim{X: blocks, Y: 1, Z: 1}, driver.Dim{X: threads, Y: 1, Z: 1}, shared, func(pc int) string { return fmt.Sprintf("cell 1:%d", pc) })}
	for b := range blocks {
		r.blockStart(0, b)
	}
	return r
}

func (r *rig) warps() int { return (r.block.X*max(r.block.Y, 1) + 31) / 32 }

// all lets every warp of a block make an access.
func (r *rig) all(block int, a access, f func(thread int) (uint64, bool)) {
	for w := range r.warps() {
		r.warp(block, w, a, f)
	}
}

func (r *rig) warp(block, warp int, a access, f func(thread int) (uint64, bool)) {
	if r.err != nil {
		return
	}
	var addr [32]uint64
	a.block, a.warp, a.mask, a.addr = block, warp, 0, &addr
	for l := range 32 {
		addr[l] = 0xdead00000000 + uint64(l) // of lanes that are not live: nobody may look
		if t := warp*32 + l; t < r.block.X*max(r.block.Y, 1) {
			if x, ok := f(t); ok {
				addr[l] = x
				a.mask |= 1 << l
			}
		}
	}
	r.err = r.access(&a)
}

func (r *rig) bar(block, pc int) {
	for w := range r.warps() {
		n := min(32, r.block.X-32*w)
		m := uint32(uint64(1)<<n - 1)
		if r.err == nil {
			r.err = r.barrier(0, block, w, m, m, pc)
		}
	}
}

func (r *rig) end() error {
	for b := range r.grid.X {
		r.blockEnd(0, b)
	}
	if r.err == nil {
		r.err = r.memoryChecker.finish()
	}
	return r.err
}

func load(pc, size int) access  { return access{pc: pc, size: size} }
func store(pc, size int) access { return access{pc: pc, size: size, store: true} }
func atomic(pc, size int) access {
	return access{pc: pc, size: size, store: true, atomic: true}
}
func in(s space, a access) access { a.space = s; return a }

func every(base, stride int) func(t int) (uint64, bool) {
	return func(t int) (uint64, bool) { return uint64(base + t*stride), true }
}

func only(n int, f func(t int) (uint64, bool)) func(t int) (uint64, bool) {
	return func(t int) (uint64, bool) {
		if t != n {
			return 0, false
		}
		return f(t)
	}
}

// Planted faults, and the kernel that is right beside each. kernel is told which of the two to run.
func TestChecker(t *testing.T) {
	const n = 128
	sh := spaceShared
	below := func(limit int, f func(t int) (uint64, bool)) func(t int) (uint64, bool) {
		return func(t int) (uint64, bool) {
			x, ok := f(t)
			return x, ok && t < limit
		}
	}
	for _, c := range []struct {
		name                    string
		blocks, threads, shared int
		kernel                  func(r *rig, good bool)
		fault                   Fault
		want                    []string
	}{
		{"block reduction", 2, n, 8 * n, func(r *rig, good bool) {
			for b := range 2 {
				r.all(b, load(1, 8), every(4096+b*8*n, 8))
				r.all(b, in(sh, store(2, 8)), every(0, 8))
				r.bar(b, 3)
				for s := n / 2; s > 0; s /= 2 {
					r.all(b, in(sh, load(4, 8)), below(s, every(0, 8)))
					r.all(b, in(sh, load(4, 8)), below(s, every(8*s, 8)))
					r.all(b, in(sh, store(5, 8)), below(s, every(0, 8)))
					if good || s != n/2 {
						r.bar(b, 6)
					}
				}
				r.all(b, in(sh, load(7, 8)), only(0, every(0, 8)))
				r.all(b, store(8, 8), only(0, every(1<<20+8*b, 8)))
			}
		}, RaceInBlock, []string{"block (0,0,0) thread (0,0,0), cell 1:4 reads shared memory at 0x100", "block (0,0,0) thread (32,0,0), cell 1:5 wrote it before", "SyncThreads"}},
		{"transposed tile", 1, 1024, 8 * 33 * 32, func(r *rig, good bool) {
			at := func(t int) int { return 8 * (t/32*33 + t%32) }
			r.all(0, in(sh, store(1, 8)), func(t int) (uint64, bool) { return uint64(at(t)), true })
			if good {
				r.bar(0, 2)
			}
			r.all(0, in(sh, load(3, 8)), func(t int) (uint64, bool) { return uint64(at(t%32*32 + t/32)), true })
			r.all(0, store(4, 8), every(4096, 8))
		}, RaceInBlock, []string{"thread (1,0,0), cell 1:3 reads shared memory at 0x108", "thread (32,0,0), cell 1:1 wrote it"}},
		{"ping-pong buffers", 1, n, 16 * n, func(r *rig, good bool) {
			r.all(0, in(sh, store(1, 8)), every(0, 8))
			r.bar(0, 2)
			for i := range 4 {
				from, to := i%2*8*n, (i+1)%2*8*n
				r.all(0, in(sh, load(3, 8)), func(t int) (uint64, bool) { return uint64(from + (t+1)%n*8), true })
				if !good && i == 3 {
					to = from
				}
				r.all(0, in(sh, store(4, 8)), every(to, 8))
				r.bar(0, 5)
			}
		}, RaceInBlock, []string{"cell 1:4 writes", "cell 1:3 read"}},
		{"histogram in global memory", 2, n, 0, func(r *rig, good bool) {
			bins := func(t int) (uint64, bool) { return uint64(4096 + t*7%16*4), true }
			for b := range 2 {
				a := load(1, 4)
				if good {
					a = atomic(1, 4)
				} else {
					r.all(b, a, bins)
					a = store(2, 4)
				}
				r.all(b, a, bins)
			}
		}, RaceInBlock, []string{"cell 1:2 writes global memory at"}},
		{"histogram in shared memory", 2, n, 64, func(r *rig, good bool) {
			for b := range 2 {
				r.all(b, in(sh, store(1, 4)), below(16, every(0, 4)))
				if good {
					r.bar(b, 2)
				}
				r.all(b, in(sh, atomic(3, 4)), func(t int) (uint64, bool) { return uint64(t % 16 * 4), true })
				r.bar(b, 4)
				r.all(b, in(sh, load(5, 4)), below(16, every(0, 4)))
				r.all(b, atomic(6, 4), below(16, every(4096, 4)))
			}
		}, RaceInBlock, []string{"thread (16,0,0), cell 1:3 atomically updates shared", "thread (0,0,0), cell 1:1 wrote"}},
		{"a loop of compare-and-swap", 2, n, 0, func(r *rig, good bool) {
			first := load(1, 8)
			first.atomic = good // volatile
			for b := range 2 {
				r.all(b, first, every(4096, 0))
				for range 3 {
					r.all(b, atomic(2, 8), every(4096, 0))
				}
			}
		}, RaceInBlock, []string{"thread (0,0,0), cell 1:2 atomically updates", "cell 1:1 read it"}},
		{"neighbouring bytes", 2, n, n, func(r *rig, good bool) {
			for b := range 2 {
				r.all(b, store(1, 1), every(4096+b*n, 1))
				r.all(b, in(sh, store(2, 1)), every(0, 1))
				if !good {
					r.all(b, store(3, 2), only(5, every(4096+b*n, 2)))
				}
			}
		}, RaceInBlock, []string{"thread (5,0,0), cell 1:3 writes global memory at 0x100a", "thread (10,0,0), cell 1:1 wrote"}},
		{"blocks that write side by side", 2, 100, 0, func(r *rig, good bool) {
			for b := range 2 {
				shift := 0
				if !good {
					shift = b * 8
				}
				r.all(b, store(1, 8), every(4096+b*800-shift, 8))
			}
		}, RaceOfBlocks, []string{"block (1,0,0) thread (0,0,0), cell 1:1 writes global memory at 0x1318", "block (0,0,0) thread (99,0,0), cell 1:1 wrote it before", "any order"}},
		{"a stencil in place", 2, n, 0, func(r *rig, good bool) {
			out := 4096
			if good {
				out = 1 << 20
			}
			for b := range 2 {
				r.all(b, load(1, 8), every(4096+b*8*n, 8))
				r.all(b, load(2, 8), every(4096+b*8*n+8, 8))
				r.bar(b, 3)
				r.all(b, store(4, 8), every(out+b*8*n, 8))
			}
		}, RaceOfBlocks, []string{"block (1,0,0) thread (0,0,0), cell 1:4 writes", "block (0,0,0) thread (127,0,0), cell 1:2 read"}},
		{"read by all, written by one block after a barrier", 2, n, 0, func(r *rig, good bool) {
			for b := range 2 {
				r.all(b, load(1, 8), every(4096, 0))
			}
			r.bar(0, 2)
			if !good {
				r.all(0, store(3, 8), only(7, every(4096, 0)))
			}
		}, RaceOfBlocks, []string{"block (0,0,0) thread (7,0,0), cell 1:3 writes global memory at 0x1000", "block (1,0,0)", "cell 1:1 read it"}},
		{"atomics of two blocks on what one has set", 2, n, 0, func(r *rig, good bool) {
			if !good {
				r.all(0, store(1, 4), only(0, every(4096, 0)))
				r.bar(0, 2)
			}
			for b := range 2 {
				r.all(b, atomic(3, 4), every(4096, 0))
			}
		}, RaceOfBlocks, []string{"block (1,0,0) thread (0,0,0), cell 1:3 atomically updates", "block (0,0,0) thread (0,0,0), cell 1:1 wrote"}},
		{"lanes of a warp", 1, 32, 256, func(r *rig, good bool) {
			r.all(0, in(sh, store(1, 8)), every(0, 8))
			if good {
				r.syncWarp(0, 0)
			}
			r.all(0, in(sh, load(2, 8)), func(t int) (uint64, bool) { return uint64((t ^ 1) * 8), true })
		}, RaceInBlock, []string{"thread (0,0,0), cell 1:2 reads", "thread (1,0,0), cell 1:1 wrote", "SyncWarp"}},
		{"one address in one instruction", 1, 32, 8, func(r *rig, good bool) {
			f := every(0, 0)
			if good {
				f = only(3, f)
			}
			r.all(0, in(sh, store(1, 8)), f)
		}, RaceInBlock, []string{"thread (1,0,0), cell 1:1 writes", "thread (0,0,0), cell 1:1 wrote", "in one instruction"}},
		{"a warp barrier is none for other warps", 1, 64, 512, func(r *rig, good bool) {
			r.warp(0, 0, in(sh, store(1, 8)), every(0, 8))
			r.syncWarp(0, 0)
			r.syncWarp(0, 1)
			if good {
				r.bar(0, 2)
			}
			r.warp(0, 1, in(sh, load(3, 8)), every(-256, 8))
		}, RaceInBlock, []string{"thread (32,0,0), cell 1:3 reads", "thread (0,0,0), cell 1:1 wrote"}},
		{"unwritten shared memory", 1, n, 8 * n, func(r *rig, good bool) {
			limit := n - 1
			if good {
				limit = n
			}
			r.all(0, in(sh, store(1, 8)), below(limit, every(0, 8)))
			r.bar(0, 2)
			r.all(0, in(sh, load(3, 8)), every(0, 8))
		}, UnwrittenShared, []string{"thread (127,0,0), cell 1:3 reads 8 bytes of shared memory at 0x3f8"}},
		{"an atomic on unwritten shared memory", 1, n, 8, func(r *rig, good bool) {
			if good {
				r.all(0, in(sh, store(1, 4)), only(0, every(4, 0)))
				r.bar(0, 2)
			}
			r.all(0, in(sh, atomic(3, 4)), every(4, 0))
		}, UnwrittenShared, []string{"thread (0,0,0), cell 1:3 reads 4 bytes of shared memory at 0x4"}},
		{"half a value of shared memory", 1, 1, 8, func(r *rig, good bool) {
			size := 4
			if good {
				size = 8
			}
			r.all(0, in(sh, store(1, size)), every(0, 0))
			r.all(0, in(sh, load(2, 8)), every(0, 0))
		}, UnwrittenShared, []string{"0x0"}},
		{"outside shared memory", 1, n, 8 * n, func(r *rig, good bool) {
			off := 8
			if good {
				off = 0
			}
			r.all(0, in(sh, store(1, 8)), every(off, 8))
		}, OutsideShared, []string{"thread (127,0,0), cell 1:1 writes 8 bytes of shared memory at 0x400", "1024 bytes"}},
		{"misaligned", 1, n, 0, func(r *rig, good bool) {
			r.all(0, load(1, 8), func(t int) (uint64, bool) {
				if !good && t == 77 {
					return 4096 + 77*8 + 4, true
				}
				return 4096 + uint64(t)*8, true
			})
		}, Misaligned, []string{"thread (77,0,0), cell 1:1 reads 8 bytes", "0x126c", "multiple of 8"}},
		{"misaligned from the start", 1, n, 0, func(r *rig, good bool) {
			off := 2
			if good {
				off = 4
			}
			r.all(0, in(spaceLocal, store(1, 4)), every(off, 4))
		}, Misaligned, []string{"local memory at 0x2"}},
		{"barrier in an if", 1, 64, 0, func(r *rig, good bool) {
			m := uint32(0x55555555)
			if good {
				m = ^uint32(0)
			}
			r.err = r.barrier(0, 0, 0, m, ^uint32(0), 5)
			if r.err == nil {
				r.err = r.barrier(0, 0, 1, m, ^uint32(0), 5)
			}
		}, DivergentBarrier, []string{"thread (0,0,0), cell 1:5", "threads (1,0,0) (3,0,0) (5,0,0) (7,0,0) and 12 more"}},
		{"threads that have left do not count", 1, 64, 0, func(r *rig, good bool) {
			live := uint32(0x7fff)
			if !good {
				live = 0xffff
			}
			r.err = r.barrier(0, 0, 1, 0x7fff, live, 5)
		}, DivergentBarrier, []string{"thread (32,0,0)", "thread (47,0,0)"}},
		{"two barriers", 1, 64, 0, func(r *rig, good bool) {
			pc := 6
			if good {
				pc = 5
			}
			r.err = r.barrier(0, 0, 0, ^uint32(0), ^uint32(0), 5)
			if r.err == nil {
				r.err = r.barrier(0, 0, 1, ^uint32(0), ^uint32(0), pc)
			}
		}, DivergentBarrier, []string{"thread (32,0,0), cell 1:6", "another one, cell 1:5"}},
	} {
		for _, good := range []bool{true, false} {
			r := newRig(c.blocks, c.threads, c.shared)
			c.kernel(r, good)
			err := r.end()
			if good {
				if err != nil {
					t.Errorf("%s, the right kernel: %v", c.name, err)
				}
				continue
			}
			var v *Violation
			if !errors.As(err, &v) || v.Fault != c.fault {
				t.Errorf("%s: %v", c.name, err)
				continue
			}
			for _, w := range c.want {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("%s: %v\n\tdoes not say %q", c.name, err, w)
				}
			}
			if (v.Second != nil) != (c.fault == RaceInBlock || c.fault == RaceOfBlocks) {
				t.Errorf("%s: second thread %v", c.name, v.Second)
			}
		}
	}
}

// Coordinates of three axes, and blocks whose place in memory is used again.
func TestCheckerCoordinates(t *testing.T) {
	c := newChecker(driver.Dim{X: 3, Y: 2, Z: 2}, driver.Dim{X: 8, Y: 4, Z: 2}, 0, func(int) string { return "?" })
	var addr [32]uint64
	for b := range 12 {
		c.blockStart(0, b)
		addr[3] = 4096
		a := access{block: b, warp: 1, size: 4, mask: 8, addr: &addr, store: b == 0 || b == 11}
		if b != 0 && b != 11 {
			addr[3] += uint64(b) * 8
		}
		err := c.access(&a)
		c.blockEnd(0, b)
		if b < 11 {
			if err != nil {
				t.Fatal(err)
			}
			continue
		}
		if err == nil || !strings.Contains(err.Error(), "block (2,1,1) thread (3,0,1)") || !strings.Contains(err.Error(), "block (0,0,0) thread (3,0,1)") {
			t.Error(err)
		}
	}
}

// seen is an access of one lane in the memory of an oracle that forgets nothing.
type seen struct {
	block, thread, epoch, sync int
	space                      space
	addr                       uint64
	size                       int
	store, atomic              bool
}

func (a *seen) races(b *seen) bool {
	switch {
	case a.space != b.space || a.space == spaceShared && a.block != b.block,
		a.addr+uint64(a.size) <= b.addr || b.addr+uint64(b.size) <= a.addr,
		!a.store && !b.store, a.atomic && b.atomic:
		return false
	case a.block != b.block:
		return true
	case a.thread == b.thread || a.epoch != b.epoch:
		return false
	}
	return a.thread/32 != b.thread/32 || a.sync == b.sync
}

// The checker finds a race exactly where a comparison with every earlier access finds one.
func TestCheckerAgainstHistory(t *testing.T) {
	const blocks, warps, shared = 3, 2, 2048
	races, accesses := 0, 0
	for seed := range uint64(500) {
		r := rand.New(rand.NewPCG(seed, 7))
		c := newChecker(driver.Dim{X: blocks, Y: 1, Z: 1}, driver.Dim{X: 32 * warps, Y: 1, Z: 1}, shared, func(int) string { return "?" })
		var history []seen
		var epoch, sync [blocks][warps]int
		fill := func(block int) { // so that nothing is unwritten
			var addr [32]uint64
			for off := 0; off < shared; off += 512 {
				for i := range addr {
					addr[i] = uint64(off + 16*i)
				}
				if err := c.access(&access{block: block, space: spaceShared, store: true, size: 16, mask: ^uint32(0), addr: &addr}); err != nil {
					t.Fatal(err)
				}
			}
			for w := range warps {
				if err := c.barrier(0, block, w, ^uint32(0), ^uint32(0), 0); err != nil {
					t.Fatal(err)
				}
				epoch[block][w]++
			}
		}
		for b := range blocks {
			c.blockStart(0, b)
			fill(b)
		}
		sizes := []int{1, 2, 4, 8, 16}[r.IntN(5):]
		oneBlock := r.IntN(2) == 0
		mostlyLoads := r.IntN(2) == 0
	trace:
		for range 60 {
			b, w := r.IntN(blocks), r.IntN(warps)
			if oneBlock {
				b = 0
			}
			waits := func(w int) bool { // at a barrier to which another has not come
				for _, e := range epoch[b] {
					if e < epoch[b][w] {
						return true
					}
				}
				return false
			}
			if waits(w) {
				continue
			}
			switch r.IntN(12) {
			case 0, 1:
				if err := c.barrier(0, b, w, ^uint32(0), ^uint32(0), 0); err != nil {
					t.Fatal(err)
				}
				epoch[b][w]++
				continue
			case 2:
				c.syncWarp(b, w)
				sync[b][w]++
				continue
			}
			var addr [32]uint64
			a := access{block: b, warp: w, pc: r.IntN(100), size: sizes[r.IntN(len(sizes))], addr: &addr, mask: ^uint32(0)}
			a.store = r.IntN(2) == 0 && !(mostlyLoads && r.IntN(4) > 0)
			a.atomic = a.store && r.IntN(2) == 0
			if r.IntN(2) == 0 {
				a.space = spaceShared
			}
			span := uint64(shared - 512)
			base := uint64(r.IntN(4)) * 512
			if r.IntN(3) == 0 {
				base = r.Uint64N(span)
			}
			base = min(base, span) / uint64(a.size) * uint64(a.size)
			shape := r.IntN(8)
			for i := range addr {
				switch shape {
				default:
					addr[i] = base + uint64(i*a.size)
				case 5:
					addr[i] = base
				case 6:
					addr[i] = base + uint64((i^1)*a.size)
				case 7:
					addr[i] = r.Uint64N(shared/uint64(a.size)) * uint64(a.size)
				}
				if a.space == spaceGlobal {
					addr[i] += 1<<40 - 1024 // over the border of two pages
				}
			}
			switch r.IntN(4) {
			case 0:
				a.mask = 1 << r.IntN(32)
			case 1:
				a.mask = r.Uint32() | 1
			}
			var new []seen
			race := false
			for l := range 32 {
				if a.mask>>l&1 == 0 {
					continue
				}
				s := seen{b, w*32 + l, epoch[b][w], sync[b][w], a.space, addr[l], a.size, a.store, a.atomic}
				for i := range new {
					race = race || s.races(&new[i])
				}
				for i := range history {
					race = race || s.races(&history[i])
				}
				new = append(new, s)
			}
			if race && r.IntN(12) > 0 {
				continue // so that there are long traces without a race
			}
			accesses++
			err := c.access(&a)
			if (err != nil) != race {
				t.Fatalf("seed %d: %+v at %#x: %v, but race is %v", seed, a, addr, err, race)
			}
			if race {
				races++
				v := err.(*Violation)
				if (v.Fault == RaceOfBlocks) != (v.First.Block != v.Second.Block) || v.First.PC != a.pc || v.First.Block.X != b || v.First.Thread.X/32 != w ||
					v.First.Block == v.Second.Block && v.First.Thread == v.Second.Thread {
					t.Fatalf("seed %d: %v", seed, err)
				}
				// The pair is one that the history knows as a race.
				known := false
				for _, s := range append(history, new...) {
					for _, n := range new {
						known = known || n.thread == v.First.Thread.X && s.block == v.Second.Block.X && s.thread == v.Second.Thread.X && n.races(&s)
					}
				}
				if !known {
					t.Fatalf("seed %d: %v: these two do not race", seed, err)
				}
				break trace
			}
			history = append(history, new...)
		}
	}
	if races < 100 || accesses < 8000 {
		t.Errorf("only %d races in %d accesses", races, accesses)
	}
	t.Logf("%d races, %d accesses", races, accesses)
}

func BenchmarkChecker(b *testing.B) {
	type walk struct {
		name   string
		a      access
		mask   uint32
		stride uint64
		step   uint64
	}
	for _, k := range []walk{
		{"addresses alone", access{size: 8}, 0, 8, 256},
		{"coalesced load", access{size: 8}, ^uint32(0), 8, 256},
		{"coalesced store", access{size: 8, store: true}, ^uint32(0), 8, 256},
		{"coalesced store, 8 bytes off", access{size: 8, store: true}, ^uint32(0), 8, 264},
		{"one lane", access{size: 8, store: true}, 1, 8, 8},
		{"column", access{size: 8}, ^uint32(0), 4000, 8},
		{"broadcast", access{size: 8}, ^uint32(0), 0, 8},
		{"every second", access{size: 8, store: true}, ^uint32(0), 16, 512},
		{"shared", access{size: 8, store: true, space: spaceShared}, ^uint32(0), 8, 0},
		{"shared column", access{size: 8, store: true, space: spaceShared}, ^uint32(0), 264, 0},
		{"atomics", access{size: 8, store: true, atomic: true}, ^uint32(0), 8, 0},
	} {
		b.Run(k.name, func(b *testing.B) {
			c := newChecker(driver.Dim{X: 1 << 20, Y: 1, Z: 1}, driver.Dim{X: 32, Y: 1, Z: 1}, 48<<10, func(int) string { return "?" })
			var addr [32]uint64
			a := k.a
			a.mask, a.addr = k.mask, &addr
			base := uint64(0)
			c.blockStart(0, 0)
			for b.Loop() {
				base += k.step
				if base > 1<<24 { // 16 MiB, then again after a barrier
					base = 0
					c.barrier(0, 0, 0, ^uint32(0), ^uint32(0), 0)
				}
				for i := range addr {
					addr[i] = base + uint64(i)*k.stride
				}
				if err := c.access(&a); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
