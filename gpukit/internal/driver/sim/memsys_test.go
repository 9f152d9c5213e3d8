package sim

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// model is the memory system written down as simply as possible: sets of bytes, lists of lines, a list of requests.
type model struct {
	c        *Card
	l1       map[int]map[uint64][]*modelLine // by multiprocessor and set, last used first
	l2       map[uint64][]*modelLine
	requests [][]uint64 // rows by channel
	MemoryCounts
}

type modelLine struct {
	line           uint64
	present, dirty [4]bool
}

func newModel(c *Card) *model {
	return &model{c: c, l1: map[int]map[uint64][]*modelLine{}, l2: map[uint64][]*modelLine{}, requests: make([][]uint64, c.MemoryChannels)}
}

func (m *model) request(line uint64, write bool) {
	block := line * 128 / uint64(m.c.ChannelBytes)
	n := uint64(m.c.MemoryChannels)
	ch := (block ^ block>>4 ^ block>>9) % n
	m.requests[ch] = append(m.requests[ch], block/n*uint64(m.c.ChannelBytes)/uint64(m.c.RowBytes))
	m.Bursts++
	if write {
		m.WrittenBursts++
	}
}

// use makes a line the most recent of its set.
func use(sets map[uint64][]*modelLine, size, ways int, line uint64) (l, gone *modelLine) {
	set := uint64(uint32(line^line>>7^line>>15)) % uint64(size/128/ways)
	s := sets[set]
	if i := slices.IndexFunc(s, func(l *modelLine) bool { return l.line == line }); i >= 0 {
		l = s[i]
		s = slices.Delete(s, i, i+1)
	} else {
		l = &modelLine{line: line}
		if len(s) == ways {
			gone, s = s[ways-1], s[:ways-1]
		}
	}
	sets[set] = append([]*modelLine{l}, s...)
	return l, gone
}

func (m *model) sector(sm int, addr uint64, kind int, l1Load, l1Store bool) {
	line, s := addr/128, addr/32%4
	if l1Load && kind == Loads || l1Store && kind == Stores {
		if m.l1[sm] == nil {
			m.l1[sm] = map[uint64][]*modelLine{}
		}
		l, _ := use(m.l1[sm], m.c.L1Bytes, m.c.L1Ways, line)
		hit := l.present[s]
		l.present[s] = true
		if kind == Loads {
			if hit {
				m.L1.Hits++
				return
			}
			m.L1.Misses++
		}
	}
	l, gone := use(m.l2, m.c.L2Bytes, m.c.L2Ways, line)
	if gone != nil {
		for _, d := range gone.dirty {
			if d {
				m.request(gone.line, true)
			}
		}
	}
	switch {
	case kind == Stores:
		m.L2Writes++
	case l.present[s]:
		m.L2.Hits++
	default:
		m.L2.Misses++
		m.request(line, false)
	}
	l.present[s] = true
	l.dirty[s] = l.dirty[s] || kind != Loads
}

func (m *model) access(a *access) {
	kind := Loads
	if a.store {
		kind = Stores
		if a.atomic {
			kind = Atomics
		}
	}
	lines, sectors := map[uint64]bool{}, map[uint64]bool{}
	var order []uint64 // sectors, lines in the order in which lanes touch them
	t := &m.Global[kind]
	l1Load, l1Store := !a.atomic && (m.c.L1Global != 0 || a.nc && m.c.L1ReadOnly != 0), false
	if a.space == spaceLocal {
		t = &m.Local[kind]
		l1Load, l1Store = m.c.L1Local != 0, m.c.L1Local != 0
	}
	meet, atomics := map[uint64]int{}, 0
	for lane := range 32 {
		if a.mask>>lane&1 == 0 {
			continue
		}
		t.Lanes++
		t.Bytes += uint64(a.size)
		meet[a.addr[lane]]++
		atomics = max(atomics, meet[a.addr[lane]])
		for i := range a.size {
			x := a.addr[lane] + uint64(i)
			if a.space == spaceLocal {
				warps := m.c.ThreadsPerBlock / 32
				window := uint64(a.sm*m.c.BlocksPerMP*warps + a.block/m.c.Multiprocessors%m.c.BlocksPerMP*warps + a.warp)
				x = 1<<57 + window<<24 + x/4*128 + uint64(lane)*4 + x%4
			}
			lines[x/128] = true
			if !sectors[x/32] {
				sectors[x/32] = true
				order = append(order, x/32)
			}
		}
	}
	t.Accesses++
	t.Lines += uint64(len(lines))
	t.Sectors += uint64(len(sectors))
	if kind == Atomics {
		m.AtomicConflicts += uint64(atomics - 1)
	}
	// The caches are asked line by line, sectors in their order.
	place := map[uint64]int{}
	for i, s := range order {
		if _, ok := place[s/4]; !ok {
			place[s/4] = i
		}
	}
	slices.SortFunc(order, func(a, b uint64) int {
		if a/4 != b/4 {
			return place[a/4] - place[b/4]
		}
		return int(a) - int(b)
	})
	for _, s := range order {
		m.sector(a.sm, s*32, kind, l1Load, l1Store)
	}
}

// dirty is what has to be written at the end: it does not enter the model's requests, whose order is a detail.
func (m *model) dirty() (n uint64) {
	for _, s := range m.l2 {
		for _, l := range s {
			for _, d := range l.dirty {
				if d {
					n++
				}
			}
		}
	}
	return n
}

func (m *model) rows() (n uint64) {
	for _, q := range m.requests {
		open := map[uint64]uint64{}
		for len(q) > 0 {
			k := min(len(q), m.c.ReorderWindow)
			seen := map[uint64]bool{}
			for _, r := range q[:k] {
				bank := (r ^ r>>4) % uint64(m.c.Banks)
				if last, ok := open[bank]; !seen[r] && (!ok || last != r) {
					open[bank] = r
					n++
				}
				seen[r] = true
			}
			q = q[k:]
		}
	}
	return n
}

// pattern fills the addresses of an access.
func pattern(r *rand.Rand, a *access, addr *[32]uint64, span uint64) {
	size := uint64(a.size)
	base := r.Uint64N(span) / size * size
	stride := []uint64{size, size, size, 0, 2 * size, 32, 128, 4000, 160000}[r.IntN(9)] / size * size
	kind := r.IntN(10)
	for i := range addr {
		switch {
		case kind < 6:
			addr[i] = base + uint64(i)*stride
		case kind < 7:
			addr[i] = base + uint64(31-i)*stride
		case kind < 8:
			addr[i] = base ^ uint64(i)*size
		default:
			addr[i] = r.Uint64N(span) / size * size
		}
	}
	switch r.IntN(5) {
	case 0:
		a.mask = r.Uint32() | 1
	case 1:
		a.mask = 1 << r.IntN(32)
	case 2:
		a.mask = 1<<r.IntN(32) - 1 | 1
	default:
		a.mask = ^uint32(0)
	}
}

func TestHierarchyAgainstModel(t *testing.T) {
	for _, name := range CardNames() {
		for _, shrink := range []bool{false, true} {
			c := *card(t, name)
			if shrink { // so that sets overflow all the time
				c.L2Bytes, c.L1Bytes = 128*c.L2Ways*7, 128*c.L1Ways*3
			}
			r := rand.New(rand.NewPCG(1, uint64(len(name))))
			m, want := newMemorySystem(&c), newModel(&c)
			for i := range 4000 {
				var addr [32]uint64
				a := &access{sm: r.IntN(2), warp: r.IntN(4), size: 1 << r.IntN(5), pc: r.IntN(50), addr: &addr, store: r.IntN(3) == 0, nc: r.IntN(8) == 0}
				a.block = r.IntN(5)*c.Multiprocessors + a.sm
				span := uint64(1 << 15)
				if i%3 == 0 {
					span = 1 << 22
				}
				switch r.IntN(8) {
				case 0:
					a.space = spaceLocal
					span = 1 << 12
				case 1:
					a.atomic, a.store = true, r.IntN(2) == 0
				}
				pattern(r, a, &addr, span)
				if a.space == spaceGlobal {
					for i := range addr {
						addr[i] += 0x7f0000000000
					}
				} else {
					for i := range addr {
						addr[i] %= 512 << 10
					}
				}
				m.access(a)
				want.access(a)
			}
			got := m.Counts
			got.Sites = nil
			// Before the end of the launch all but the activations is there.
			if fmt.Sprint(got) != fmt.Sprint(want.MemoryCounts) {
				t.Errorf("%s: counted %+v\nwant %+v", name, got, want.MemoryCounts)
			}
			drained := newMemorySystem(&c)
			drained.dram = m.dram
			drained.drain()
			if rows := want.rows(); drained.activations != rows {
				t.Errorf("%s: %d activations, want %d", name, drained.activations, rows)
			}
			m.finish()
			if n := m.Counts.WrittenBursts - got.WrittenBursts; n != want.dirty() || m.Counts.Bursts-got.Bursts != n {
				t.Errorf("%s: %d sectors written at the end, want %d", name, n, want.dirty())
			}
			if got.L1.Hits+got.L2.Hits == 0 || shrink && got.WrittenBursts == 0 {
				t.Errorf("%s: nothing hits or nothing is evicted", name)
			}
			var sum Site
			for _, s := range m.Counts.Sites {
				sum.Accesses += s.Accesses
				sum.Lines += s.Lines
				sum.Sectors += s.Sectors
			}
			if sum.Accesses != 4000 || sum.Lines != got.Lines() || sum.Sectors != got.Global[0].Sectors+got.Global[1].Sectors+got.Global[2].Sectors+got.Local[0].Sectors+got.Local[1].Sectors {
				t.Errorf("%s: by instruction %+v", name, sum)
			}
		}
	}
}

// Sums that can be done by hand.
func TestHierarchyByHand(t *testing.T) {
	type step struct {
		space   space
		store   bool
		atomic  bool
		size    int
		mask    uint32
		addr    func(i int) uint64
		lines   int
		sectors int
		slowest level
	}
	all := ^uint32(0)
	lin := func(base, stride uint64) func(int) uint64 {
		return func(i int) uint64 { return base + uint64(i)*stride }
	}
	for _, c := range []struct {
		name, card string
		steps      []step
		bursts     uint64
	}{
		{"coalesced f64, then again", "quadro-k2000", []step{
			{size: 8, mask: all, addr: lin(4096, 8), lines: 2, sectors: 8, slowest: inMemory},
			{size: 8, mask: all, addr: lin(4096, 8), lines: 2, sectors: 8, slowest: inL2}}, 8},
		{"the same with L1", "a100", []step{
			{size: 8, mask: all, addr: lin(4096, 8), lines: 2, sectors: 8, slowest: inMemory},
			{size: 8, mask: all, addr: lin(4096, 8), lines: 2, sectors: 8, slowest: inL1}}, 8},
		{"one element over the line", "a100", []step{{size: 8, mask: all, addr: lin(4104, 8), lines: 3, sectors: 9, slowest: inMemory}}, 9},
		{"f32", "a100", []step{{size: 4, mask: all, addr: lin(4096, 4), lines: 1, sectors: 4, slowest: inMemory}}, 4},
		{"bytes", "a100", []step{{size: 1, mask: all, addr: lin(4096, 1), lines: 1, sectors: 1, slowest: inMemory}}, 1},
		{"vectors of two f64", "a100", []step{{size: 16, mask: all, addr: lin(4096, 16), lines: 4, sectors: 16, slowest: inMemory}}, 16},
		{"a broadcast", "a100", []step{{size: 8, mask: all, addr: lin(4096, 0), lines: 1, sectors: 1, slowest: inMemory}}, 1},
		{"reversed", "a100", []step{{size: 8, mask: all, addr: func(i int) uint64 { return 4096 + 8*uint64(31-i) }, lines: 2, sectors: 8, slowest: inMemory}}, 8},
		{"a column", "quadro-k2000", []step{{size: 8, mask: all, addr: lin(4096, 4000), lines: 32, sectors: 32, slowest: inMemory}}, 32},
		{"every second", "quadro-k2000", []step{{size: 8, mask: all, addr: lin(4096, 16), lines: 4, sectors: 16, slowest: inMemory}}, 16},
		{"one lane", "quadro-k2000", []step{{size: 8, mask: 1 << 7, addr: lin(4096, 8), lines: 1, sectors: 1, slowest: inMemory}}, 1},
		{"the edge: 8 lanes", "quadro-k2000", []step{{size: 8, mask: 0xff, addr: lin(4096, 8), lines: 1, sectors: 2, slowest: inMemory}}, 2},
		{"a store is not fetched, but written at the end", "quadro-k2000", []step{
			{store: true, size: 8, mask: all, addr: lin(4096, 8), lines: 2, sectors: 8},
			{size: 8, mask: all, addr: lin(4096, 8), lines: 2, sectors: 8, slowest: inL2}}, 8},
		{"an atomic reads and writes", "a100", []step{
			{atomic: true, store: true, size: 4, mask: all, addr: lin(4096, 0), lines: 1, sectors: 1, slowest: inMemory},
			{atomic: true, store: true, size: 4, mask: all, addr: lin(4096, 0), lines: 1, sectors: 1, slowest: inL2}}, 2},
		{"a volatile load passes L1 by", "a100", []step{
			{size: 4, mask: all, addr: lin(4096, 0), lines: 1, sectors: 1, slowest: inMemory},
			{atomic: true, size: 4, mask: all, addr: lin(4096, 0), lines: 1, sectors: 1, slowest: inL2}}, 1},
		{"local memory lies by words", "quadro-k2000", []step{
			{space: spaceLocal, store: true, size: 8, mask: all, addr: lin(16, 0), lines: 2, sectors: 8},
			{space: spaceLocal, size: 4, mask: all, addr: lin(20, 0), lines: 1, sectors: 4, slowest: inL1},
			{space: spaceLocal, size: 1, mask: 3, addr: lin(16, 0), lines: 1, sectors: 1, slowest: inL1},
			{space: spaceLocal, size: 16, mask: all, addr: lin(0, 16), lines: 128, sectors: 128, slowest: inMemory}}, 8 + 126},
		{"local memory without L1", "gtx-970", []step{
			{space: spaceLocal, store: true, size: 4, mask: all, addr: lin(16, 0), lines: 1, sectors: 4},
			{space: spaceLocal, size: 4, mask: all, addr: lin(16, 0), lines: 1, sectors: 4, slowest: inL2}}, 4},
		{"misaligned, unchecked", "quadro-k2000", []step{{size: 8, mask: 3, addr: lin(4096+28, 100), lines: 2, sectors: 3, slowest: inMemory}}, 3},
	} {
		m := newMemorySystem(card(t, c.card))
		for i, s := range c.steps {
			var addr [32]uint64
			for l := range addr {
				addr[l] = s.addr(l)
			}
			m.access(&access{space: s.space, store: s.store, atomic: s.atomic, size: s.size, mask: s.mask, addr: &addr})
			if want := (outcome{lines: s.lines, sectors: s.sectors, slowest: s.slowest}); m.last != want {
				t.Errorf("%s, step %d: %+v, want %+v", c.name, i, m.last, want)
			}
		}
		m.finish()
		if m.Counts.Bursts != c.bursts {
			t.Errorf("%s: %d bursts, want %d", c.name, m.Counts.Bursts, c.bursts)
		}
	}
}

// Bank conflicts: waves over the least number.
func TestBankConflicts(t *testing.T) {
	lin := func(stride uint64) func(int) uint64 { return func(i int) uint64 { return uint64(i) * stride } }
	for _, c := range []struct {
		name          string
		size          int
		mask          uint32
		addr          func(i int) uint64
		waves, kepler int // with banks of 4 and of 8 bytes
		least         int
		leastKepler   int
	}{
		{"f32 side by side", 4, ^uint32(0), lin(4), 1, 1, 1, 1},
		{"f32, every second", 4, ^uint32(0), lin(8), 2, 1, 1, 1},
		{"f32, every fourth", 4, ^uint32(0), lin(16), 4, 2, 1, 1},
		{"f32, a column of 32 x 32", 4, ^uint32(0), lin(128), 32, 16, 1, 1},
		{"f32, a column of 32 x 33", 4, ^uint32(0), lin(132), 1, 1, 1, 1},
		{"broadcast", 8, ^uint32(0), lin(0), 2, 1, 2, 1},
		{"bytes", 1, ^uint32(0), lin(1), 1, 1, 1, 1},
		{"f64 side by side", 8, ^uint32(0), lin(8), 2, 1, 2, 1},
		{"f64, a column of 32 x 32", 8, ^uint32(0), lin(256), 32, 32, 2, 1},
		{"f64, a column of 32 x 33", 8, ^uint32(0), lin(264), 2, 1, 2, 1},
		{"f64, half a warp", 8, 0xffff, lin(8), 1, 1, 1, 1},
		{"pairs of f64", 16, ^uint32(0), lin(16), 4, 2, 4, 2},
		{"two words of one bank", 4, 3, lin(128), 2, 1, 1, 1},
		{"two words of one bank, a row apart", 4, 3, lin(256), 2, 2, 1, 1},
		{"random bins", 4, 0xff, func(i int) uint64 { return []uint64{0, 128, 4, 0, 132, 128, 256, 8}[i] }, 3, 2, 1, 1},
		{"one lane", 4, 1 << 31, lin(128), 1, 1, 1, 1},
	} {
		for _, name := range []string{"quadro-k2000", "h200"} {
			waves, least := c.waves, c.least
			if name == "quadro-k2000" {
				waves, least = c.kepler, c.leastKepler
			}
			m := newMemorySystem(card(t, name))
			var addr [32]uint64
			for i := range addr {
				if c.mask>>i&1 != 0 {
					addr[i] = c.addr(i)
				}
			}
			m.access(&access{space: spaceShared, size: c.size, mask: c.mask, addr: &addr})
			if s := m.Counts.Shared[Loads]; s.Waves != uint64(waves) || s.Conflicts != uint64(waves-least) || s.Accesses != 1 || m.last.waves != waves {
				t.Errorf("%s on %s: %+v, want %d waves, %d at least", c.name, name, s, waves, least)
			}
		}
	}
}

// The same by looking at every byte.
func TestBankConflictsAgainstModel(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for _, name := range []string{"quadro-k2000", "h200"} {
		c := card(t, name)
		m := newMemorySystem(c)
		for range 20000 {
			var addr [32]uint64
			a := access{space: spaceShared, size: 1 << r.IntN(5), addr: &addr}
			pattern(r, &a, &addr, 48<<10)
			if r.IntN(2) == 0 {
				step := r.Uint64N(40) * uint64(a.size)
				for i := range addr {
					addr[i] = 4096 + uint64(i)*step
					if r.IntN(400) == 0 {
						addr[i] += 32 * uint64(a.size)
					}
				}
			}
			want, width := 0, c.BankBytes
			group := min(32, 32*width/a.size)
			for lo := 0; lo < 32; lo += group {
				rows := map[uint64]map[uint64]bool{} // of each bank
				most := 0
				for l := lo; l < lo+group; l++ {
					for b := 0; b < a.size && a.mask>>l&1 != 0; b++ {
						y := addr[l] + uint64(b)
						word := uint64(4)
						if width == 8 && a.size >= 8 {
							word = 8
						}
						bank := y / word % 32
						if rows[bank] == nil {
							rows[bank] = map[uint64]bool{}
						}
						rows[bank][y/uint64(32*width)] = true
						most = max(most, len(rows[bank]))
					}
				}
				want += most
			}
			if m.access(&a); m.last.waves != want {
				t.Fatalf("%s: %d bytes at %v, lanes %#x: %d waves, want %d", name, a.size, addr, a.mask, m.last.waves, want)
			}
		}
	}
}

func TestAtomicConflictsAndConstants(t *testing.T) {
	m := newMemorySystem(card(t, "h200"))
	var addr [32]uint64
	for i := range addr {
		addr[i] = uint64(i%5) * 4
	}
	m.access(&access{space: spaceGlobal, atomic: true, store: true, size: 4, mask: ^uint32(0), addr: &addr}) // 7 meet at 0
	m.access(&access{space: spaceShared, atomic: true, store: true, size: 4, mask: 1, addr: &addr})
	m.access(&access{space: spaceConstant, size: 8, mask: 0xf, addr: &addr, pc: 3})
	m.access(&access{space: spaceParam, size: 8, mask: ^uint32(0), addr: &addr, pc: 3})
	m.access(&access{space: spaceGlobal, size: 8, addr: &addr, pc: 3}) // no lane
	c := m.Counts
	if c.AtomicConflicts != 6 || c.ConstantWaves != 4 || c.Constant.Lanes != 4 || c.Constant.Bytes != 32 || c.Param != 1 || c.Global[Loads].Accesses != 0 || c.Sites[3].Accesses != 2 {
		t.Errorf("%+v", c)
	}
}

// column is the access pattern of a kernel in which every thread runs along a row of its own: 4000 rows of 500 float64,
// warps interleaved or one after the other.
func column(m *hierarchy, blocks, steps int, interleave bool) {
	var addr [32]uint64
	one := func(b, w, i int) {
		a := access{sm: b % m.card.Multiprocessors, block: b, warp: w, size: 8, mask: ^uint32(0), addr: &addr}
		put := func(base, row, col uint64) {
			for l := range addr {
				addr[l] = base + row*uint64(b*64+w*32+l) + col
			}
			m.access(&a)
		}
		put(0x10000000, 4000, 8*uint64(i))
		put(0x20000000, 40, 8*uint64(i%5))
		a.store = true
		put(0x30000000, 4000, 8*uint64(i))
	}
	if interleave {
		for i := range steps {
			for b := range blocks {
				one(b, 0, i)
				one(b, 1, i)
			}
		}
	} else {
		for b := range blocks {
			for w := range 2 {
				for i := range steps {
					one(b, w, i)
				}
			}
		}
	}
	m.finish()
}

// Interleaved warps make L2 thrash where one warp after the other would not; the numbers for 32 blocks and 100 steps are
// those of an independent program.
func TestColumnTraffic(t *testing.T) {
	k := card(t, "quadro-k2000")
	inter, seq := newMemorySystem(k), newMemorySystem(k)
	column(inter, 32, 100, true)
	column(seq, 32, 100, false)
	if c := inter.Counts; c.Bursts != 614400 || c.Activations != 404552 || c.Lines() != 473600 || c.L2Sectors() != 614400 {
		t.Errorf("interleaved %d bursts, %d activations, %d lines, %d sectors", c.Bursts, c.Activations, c.Lines(), c.L2Sectors())
	}
	if inter.Counts.Bursts < 5*seq.Counts.Bursts || seq.Counts.L2Sectors() != inter.Counts.L2Sectors() {
		t.Errorf("one after the other %d bursts", seq.Counts.Bursts)
	}
}

func benchmarkAccess(b *testing.B, name string, s space, store bool, mask uint32, stride, step uint64) {
	m := newMemorySystem(card(b, name))
	var addr [32]uint64
	a := &access{space: s, store: store, size: 8, mask: mask, addr: &addr}
	base := uint64(0)
	for b.Loop() {
		base += step
		if base > 1<<26 {
			base = 0
		}
		for i := range addr {
			addr[i] = base + uint64(i)*stride
		}
		m.access(a)
	}
}

func BenchmarkMemory(b *testing.B) {
	b.Run("addresses alone", func(b *testing.B) {
		var addr [32]uint64
		base := uint64(0)
		for b.Loop() {
			base += 8
			for i := range addr {
				addr[i] = base + uint64(i)*8
			}
		}
	})
	for _, name := range []string{"quadro-k2000", "h200"} {
		b.Run(name+"/coalesced load", func(b *testing.B) { benchmarkAccess(b, name, spaceGlobal, false, ^uint32(0), 8, 256) })
		b.Run(name+"/coalesced store", func(b *testing.B) { benchmarkAccess(b, name, spaceGlobal, true, ^uint32(0), 8, 256) })
		b.Run(name+"/one lane", func(b *testing.B) { benchmarkAccess(b, name, spaceGlobal, false, 1, 8, 8) })
		b.Run(name+"/column", func(b *testing.B) { benchmarkAccess(b, name, spaceGlobal, false, ^uint32(0), 4000, 8) })
		b.Run(name+"/broadcast", func(b *testing.B) { benchmarkAccess(b, name, spaceGlobal, false, ^uint32(0), 0, 8) })
		b.Run(name+"/shared", func(b *testing.B) { benchmarkAccess(b, name, spaceShared, false, ^uint32(0), 8, 0) })
		b.Run(name+"/shared column", func(b *testing.B) { benchmarkAccess(b, name, spaceShared, false, ^uint32(0), 256, 0) })
		b.Run(name+"/local", func(b *testing.B) { benchmarkAccess(b, name, spaceLocal, true, ^uint32(0), 0, 0) })
	}
}
