package sim

import "math/bits"

// A line is what a cache has a tag for, a sector what it fetches and what a memory burst moves.
const (
	lineBits       = 7
	sectorBits     = 5
	sectorsPerLine = 1 << (lineBits - sectorBits)
	maxWays        = 16
)

// The kinds of accesses that are counted apart.
const (
	Loads = iota
	Stores
	Atomics
)

// Traffic counts the accesses of one kind to one space. Lines of 128 and sectors of 32 bytes are those that the live
// lanes of one access touch, each once.
type Traffic struct {
	Accesses uint64 // of warps
	Lanes    uint64
	Bytes    uint64 // that the lanes asked for
	Lines    uint64
	Sectors  uint64
}

// SharedTraffic counts accesses to shared memory. A wave is one pass over the banks; an access of up to 4 bytes per
// lane needs at least one, wider ones as many as their words ask for. Conflicts are the waves beyond these.
type SharedTraffic struct {
	Accesses  uint64
	Lanes     uint64
	Waves     uint64
	Conflicts uint64
}

// Hits counts sectors that a cache was asked for.
type Hits struct{ Hits, Misses uint64 }

// MemoryCounts is what the memory did in a launch. The arrays are indexed by Loads, Stores and Atomics.
type MemoryCounts struct {
	Global, Local [3]Traffic
	Shared        [3]SharedTraffic
	Constant      Traffic // Lines and Sectors are 0
	ConstantWaves uint64  // different addresses, one after the other
	Param         uint64  // accesses
	// AtomicConflicts are the passes that lanes of one access need beyond the first because they meet at one address.
	AtomicConflicts uint64

	L1            Hits // loads that go through it
	L2            Hits // loads and atomics
	L2Writes      uint64
	Bursts        uint64 // of 32 bytes, read and written
	WrittenBursts uint64
	Activations   uint64 // of memory rows

	Sites []Site // by pc
}

// L2Sectors is all that L2 was asked for.
func (m *MemoryCounts) L2Sectors() uint64 { return m.L2.Hits + m.L2.Misses + m.L2Writes }

// Lines is all lines of global and local memory, those that the load and store units process.
func (m *MemoryCounts) Lines() (n uint64) {
	for k := range m.Global {
		n += m.Global[k].Lines + m.Local[k].Lines
	}
	return n
}

// SharedWaves is all passes over the banks of shared memory.
func (m *MemoryCounts) SharedWaves() (n uint64) {
	for k := range m.Shared {
		n += m.Shared[k].Waves
	}
	return n
}

// Site is what the accesses of one instruction did.
type Site struct {
	Accesses, Lanes uint64
	Lines, Sectors  uint64 // global and local
	Waves           uint64 // shared
}

// level is where an access ended.
type level uint8

const (
	inL1 level = iota // or on chip
	inL2
	inMemory
)

// outcome is what one access was, for those that time it.
type outcome struct {
	lines, sectors, waves int
	slowest               level // of a load or atomic; a store does not wait
}

// hierarchy is the memory system of a card: L1 per multiprocessor, a common L2, memory channels.
//
// Both caches have lines of four sectors, replace the least recently used line of a set, and choose the set by a hash.
// L2 writes back and does not fetch what is written, so that a partly written sector counts as present; L1 holds
// loads only, and local stores, which it passes on. Atomics work in L2. Whatever is dirty at the end of the launch is
// written to memory. L1 of one multiprocessor is not told of the stores of others: that changes values, not counts.
type hierarchy struct {
	card   *Card
	Counts MemoryCounts
	last   outcome

	l1 []*cache // by multiprocessor, made when used
	l2 cache
	dram

	parts  [160]part // lines of the access at hand: a local access of 16 bytes per lane can have 128
	nparts int

	bankCount [64]uint8
	bankRows  [64][32]uint32 // only the first count of each bank are valid
}

// part is a line with the sectors of it that are touched.
type part struct {
	line uint64
	mask uint8
}

func newMemorySystem(card *Card) *hierarchy {
	m := &hierarchy{card: card, l1: make([]*cache, card.Multiprocessors)}
	m.l2.init(card.L2Bytes, card.L2Ways)
	m.dram.init(card)
	return m
}

var _ memorySystem = (*hierarchy)(nil)

func (m *hierarchy) access(a *access) {
	if a.mask == 0 {
		return
	}
	m.last = outcome{}
	kind := Loads
	switch {
	case a.store && a.atomic:
		kind = Atomics
	case a.store:
		kind = Stores
	}
	for a.pc >= len(m.Counts.Sites) {
		m.Counts.Sites = append(m.Counts.Sites, make([]Site, a.pc+1-len(m.Counts.Sites))...)
	}
	lanes := uint64(bits.OnesCount32(a.mask))
	site := &m.Counts.Sites[a.pc]
	site.Accesses++
	site.Lanes += lanes
	var t *Traffic
	cached := false
	switch a.space {
	case spaceGlobal:
		t = &m.Counts.Global[kind]
		m.split(a)
		// A load that is marked atomic is a volatile one: it asks L2.
		cached = !a.atomic && (m.card.L1Global != 0 || a.nc && m.card.L1ReadOnly != 0)
		if kind == Atomics {
			m.Counts.AtomicConflicts += uint64(meetings(a) - 1)
		}
	case spaceLocal:
		t = &m.Counts.Local[kind]
		m.splitLocal(a)
		cached = m.card.L1Local != 0
	case spaceShared:
		s := &m.Counts.Shared[kind]
		waves, least := m.waves(a)
		s.Accesses++
		s.Lanes += lanes
		s.Waves += uint64(waves)
		s.Conflicts += uint64(waves - least)
		if kind == Atomics {
			m.Counts.AtomicConflicts += uint64(meetings(a) - 1)
		}
		site.Waves += uint64(waves)
		m.last.waves = waves
		return
	case spaceConstant:
		c := &m.Counts.Constant
		c.Accesses++
		c.Lanes += lanes
		c.Bytes += lanes * uint64(a.size)
		n := different(a)
		m.Counts.ConstantWaves += uint64(n)
		m.last.waves = n
		return
	default:
		m.Counts.Param++
		return
	}
	sectors := 0
	for i := range m.parts[:m.nparts] {
		p := &m.parts[i]
		sectors += bits.OnesCount8(p.mask)
		switch kind {
		case Loads:
			m.load(a.sm, p, cached)
		case Stores:
			m.store(a.sm, p, cached && a.space == spaceLocal)
		default:
			m.read(p.line, p.mask, p.mask)
		}
	}
	t.Accesses++
	t.Lanes += lanes
	t.Bytes += lanes * uint64(a.size)
	t.Lines += uint64(m.nparts)
	t.Sectors += uint64(sectors)
	site.Lines += uint64(m.nparts)
	site.Sectors += uint64(sectors)
	m.last.lines, m.last.sectors = m.nparts, sectors
}

// load asks L1, if it caches this, and L2 for what is missing there.
func (m *hierarchy) load(sm int, p *part, cached bool) {
	mask := p.mask
	if cached {
		state, _, _ := m.l1Of(sm).find(p.line)
		hit := mask & *state
		*state |= mask
		m.Counts.L1.Hits += uint64(bits.OnesCount8(hit))
		mask &^= hit
		m.Counts.L1.Misses += uint64(bits.OnesCount8(mask))
		if mask == 0 {
			return
		}
	}
	m.read(p.line, mask, 0)
}

// read reads sectors from L2, and from memory what is not there; those of dirty it changes too.
func (m *hierarchy) read(line uint64, mask, dirty uint8) {
	state, old, out := m.l2.find(line)
	if out != 0 {
		m.write(old, out)
	}
	hit := mask & *state
	*state |= mask | dirty<<4
	m.Counts.L2.Hits += uint64(bits.OnesCount8(hit))
	at := inL2
	if miss := bits.OnesCount8(mask &^ hit); miss != 0 {
		m.Counts.L2.Misses += uint64(miss)
		m.request(line, miss)
		m.Counts.Bursts += uint64(miss)
		at = inMemory
	}
	m.last.slowest = max(m.last.slowest, at)
}

func (m *hierarchy) store(sm int, p *part, cached bool) {
	if cached {
		state, _, _ := m.l1Of(sm).find(p.line)
		*state |= p.mask
	}
	state, old, out := m.l2.find(p.line)
	if out != 0 {
		m.write(old, out)
	}
	*state |= p.mask | p.mask<<4
	m.Counts.L2Writes += uint64(bits.OnesCount8(p.mask))
}

// write sends dirty sectors to memory.
func (m *hierarchy) write(line uint64, dirty uint8) {
	n := bits.OnesCount8(dirty)
	m.request(line, n)
	m.Counts.Bursts += uint64(n)
	m.Counts.WrittenBursts += uint64(n)
}

// finish writes back what is dirty.
func (m *hierarchy) finish() {
	m.l2.flush(m.write)
	m.drain()
	m.Counts.Activations = m.activations
}

func (m *hierarchy) l1Of(sm int) *cache {
	c := m.l1[sm]
	if c == nil {
		c = new(cache)
		c.init(m.card.L1Bytes, m.card.L1Ways)
		m.l1[sm] = c
	}
	return c
}

// split finds the lines and sectors of an access to global memory.
func (m *hierarchy) split(a *access) {
	m.nparts = 0
	first, last := bits.TrailingZeros32(a.mask), 31-bits.LeadingZeros32(a.mask)
	lo, size := a.addr[first], uint64(a.size)
	if first == last {
		m.span(lo, lo+size)
		return
	}
	if a.mask>>first == 1<<(last-first+1)-1 { // no gaps
		if a.addr[last] == lo && constant(a.addr[first:last+1]) {
			m.span(lo, lo+size)
			return
		}
		if a.addr[last]-lo == uint64(last-first)*size && consecutive(a.addr[first:last+1], size) {
			m.span(lo, a.addr[last]+size)
			return
		}
	}
	highest := uint64(0) // of the lines so far: a higher one is new
	for w := a.mask; w != 0; w &= w - 1 {
		x := a.addr[bits.TrailingZeros32(w)&31]
		line, s := x>>lineBits, uint(x>>sectorBits)%sectorsPerLine
		if e := (x + size - 1) >> sectorBits; e != x>>sectorBits { // a misaligned access, unchecked
			for y := x >> sectorBits; y < e; y++ {
				m.add(y>>(lineBits-sectorBits), 1<<(y%sectorsPerLine))
			}
			line, s = e>>(lineBits-sectorBits), uint(e%sectorsPerLine)
			highest = ^uint64(0)
		}
		if m.nparts > 0 && m.parts[m.nparts-1].line == line {
			m.parts[m.nparts-1].mask |= 1 << s
		} else if m.nparts == 0 || line > highest {
			m.parts[m.nparts] = part{line, 1 << s}
			m.nparts++
			highest = max(highest, line)
		} else {
			m.add(line, 1<<s)
			highest = max(highest, line)
		}
	}
}

func constant(x []uint64) bool {
	for _, y := range x {
		if y != x[0] {
			return false
		}
	}
	return true
}

func consecutive(x []uint64, step uint64) bool {
	want := x[0]
	for _, y := range x {
		if y != want {
			return false
		}
		want += step
	}
	return true
}

// span adds the bytes from lo to hi.
func (m *hierarchy) span(lo, hi uint64) {
	for s, end := lo>>sectorBits, (hi-1)>>sectorBits; s <= end; {
		line := s >> (lineBits - sectorBits)
		stop := min(end, line<<(lineBits-sectorBits)|(sectorsPerLine-1))
		m.parts[m.nparts] = part{line, uint8(2<<(stop%sectorsPerLine) - 1<<(s%sectorsPerLine))}
		m.nparts++
		s = stop + 1
	}
}

// add adds sectors of a line that may be there already.
func (m *hierarchy) add(line uint64, mask uint8) {
	for i := m.nparts - 1; i >= 0; i-- {
		if m.parts[i].line == line {
			m.parts[i].mask |= mask
			return
		}
	}
	m.parts[m.nparts] = part{line, mask}
	m.nparts++
}

// Local memory of a warp is laid out by 4-byte words, the 32 lanes' words of one offset side by side, so that a word
// is a line. Warps have windows of their own far from all other memory; a block takes the place of the one before the
// last BlocksPerMP on its multiprocessor.
const (
	localWordBits = 17 // 512 KiB per thread
	localBase     = 1 << 50
)

func (m *hierarchy) splitLocal(a *access) {
	m.nparts = 0
	c := m.card
	place := (a.block/c.Multiprocessors%c.BlocksPerMP)*(c.ThreadsPerBlock/c.WarpSize) + a.warp
	base := uint64(localBase) + uint64(a.sm*c.BlocksPerMP*(c.ThreadsPerBlock/c.WarpSize)+place)<<localWordBits
	first, last := bits.TrailingZeros32(a.mask), 31-bits.LeadingZeros32(a.mask)
	if x := a.addr[first] & (4<<localWordBits - 1); a.mask>>first == 1<<(last-first+1)-1 && a.addr[last] == a.addr[first] && constant(a.addr[first:last+1]) {
		groups := uint8(2<<(last/8) - 1<<(first/8)) // of 8 lanes, a sector each
		for word := x / 4; word <= (x+uint64(a.size)-1)/4; word++ {
			m.parts[m.nparts] = part{base + word, groups}
			m.nparts++
		}
		return
	}
	for w := a.mask; w != 0; w &= w - 1 {
		lane := bits.TrailingZeros32(w) & 31
		x := a.addr[lane] & (4<<localWordBits - 1)
		for word := x / 4; word <= (x+uint64(a.size)-1)/4; word++ {
			m.add(base+word, 1<<(lane/8))
		}
	}
}

// waves counts the passes over the banks of shared memory, and how few there could be. Lanes that read the same word
// share it. With banks of 4 bytes a wide access goes by halves or quarters of the warp; banks of 8 bytes serve two words
// of one row at a time.
func (m *hierarchy) waves(a *access) (waves, least int) {
	width := uint64(m.card.BankBytes)
	group := 32 // lanes of one pass
	if uint64(a.size) > width {
		group = 32 * int(width) / a.size
	}
	unit := min(uint64(a.size), width) // neighbouring lanes' words lie in neighbouring banks
	unit = max(unit, 4)
	nb := uint64(m.card.SharedBanks)
	easy := false // no two lanes want different words of a bank
	if first, last := bits.TrailingZeros32(a.mask), 31-bits.LeadingZeros32(a.mask); a.mask>>first == 1<<(last-first+1)-1 {
		lo, hi := a.addr[first], a.addr[last]
		easy = hi == lo && constant(a.addr[first:last+1]) ||
			a.size >= 4 && hi-lo == uint64((last-first)*a.size) && consecutive(a.addr[first:last+1], uint64(a.size))
	}
	for lo := 0; lo < 32; lo += group {
		live := a.mask >> lo & uint32(1<<group-1)
		if live == 0 {
			continue
		}
		least++
		if easy || live&(live-1) == 0 {
			waves++
			continue
		}
		x := a.addr[lo : lo+group]
		if first, n := bits.TrailingZeros32(live), bits.OnesCount32(live); live>>first == 1<<n-1 && uint64(a.size) >= unit {
			// Lanes a fixed distance apart come back to the same bank after a power of two of them.
			step := x[first+1] - x[first]
			if k := step / unit; step%unit == 0 && consecutive(x[first:first+n], step) && (width == 4 || a.size >= 8) {
				period := 32 >> min(bits.TrailingZeros64(k), 5)
				if k == 0 {
					period = 32
				}
				waves += (n + period - 1) / period
				continue
			}
		}
		m.bankCount = [64]uint8{}
		count, rows := &m.bankCount, &m.bankRows
		most := uint8(1)
		for w := live; w != 0; w &= w - 1 {
			y := x[bits.TrailingZeros32(w)]
			for e := y + uint64(a.size) - 1; y <= e; y = (y/unit + 1) * unit {
				bank, row := y/unit%nb&63, uint32(y/(width*nb))
				if a.size > int(width) {
					row = uint32(y / (unit * nb))
				}
				known := false
				for _, r := range rows[bank][:count[bank]] {
					known = known || r == row
				}
				if !known && count[bank] < 32 {
					rows[bank][count[bank]] = row
					count[bank]++
					most = max(most, count[bank])
				}
			}
		}
		waves += int(most)
	}
	return waves, least
}

// meetings is the largest number of lanes that have one address.
func meetings(a *access) int {
	var seen [32]uint64
	var count [32]int
	n, most := 0, 1
	if a.mask&(a.mask-1) == 0 {
		return 1
	}
	for w := a.mask; w != 0; w &= w - 1 {
		x := a.addr[bits.TrailingZeros32(w)&31]
		i := 0
		for i < n && seen[i] != x {
			i++
		}
		if i == n {
			seen[n], count[n] = x, 0
			n++
		}
		count[i]++
		most = max(most, count[i])
	}
	return most
}

// different is how many addresses the lanes have.
func different(a *access) int {
	var seen [32]uint64
	n := 0
	for w := a.mask; w != 0; w &= w - 1 {
		x := a.addr[bits.TrailingZeros32(w)&31]
		i := 0
		for i < n && seen[i] != x {
			i++
		}
		if i == n {
			seen[n] = x
			n++
		}
	}
	return n
}
