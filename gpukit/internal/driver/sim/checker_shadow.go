package sim

import "math/bits"

// What is remembered of memory, the shadow: memory is divided into pages, a page into cells of 8 bytes or, once a
// smaller access was seen in it, of 4, 2 or 1. For each class of accesses a cell has a mark: who, block and time, and
// how, thread and pc. 32 cells are a row. While the marked cells of a row are those of one warp side by side, or of one
// thread that goes along, the row has one mark for all (a strip); that makes the usual access cheap, and the shadow of
// memory that is touched here and there small.
//
// A mark that a later one makes superfluous may stay: what it says is still true.

const (
	pageBits   = 12
	maxGrain   = 3  // largest cell: 8 bytes
	rowCells   = 32 // cells of a row
	threadBits = 10

	regionBits = 12 // pages of a region
)

// class is what a mark is of. The second of reads and atomics is the other of two that stand for all.
type class uint8

const (
	writes class = iota
	reads
	reads2
	atomics
	atomics2
	numClasses
)

// directory finds the page of an address.
type directory struct {
	regions map[uint64]*region
	last    *region
	lastKey uint64
}

type region [1 << regionBits]*page

func (d *directory) page(addr uint64) *page {
	key := addr >> (pageBits + regionBits)
	r := d.last
	if r == nil || key != d.lastKey {
		r = d.regions[key]
		if r == nil {
			if d.regions == nil {
				d.regions = map[uint64]*region{}
			}
			r = new(region)
			d.regions[key] = r
		}
		d.last, d.lastKey = r, key
	}
	at := &r[addr>>pageBits%(1<<regionBits)]
	if *at == nil {
		*at = &page{bytes: 1 << pageBits}
	}
	return *at
}

// page is the shadow of some memory.
type page struct {
	bytes int
	grain uint8 // size of a cell is 1 << grain
	used  bool  // grain is chosen
	of    [numClasses]shadow
}

// shadow has the marks of one class; it has no strips as long as there are none.
type shadow struct {
	strips []strip
	who    []uint64 // of mixed rows, 32 cells from strip.base - 1 on
	how    []uint32
}

// strip has the mark of a row: that of the cells from..to-1, thread how + (cell-from) >> wide, if it is not mixed.
type strip struct {
	who      uint64
	how      uint32
	base     int32 // 0: never was mixed
	kind     uint8
	wide     uint8 // 1: a lane has two cells; oneThread: all are of one thread
	from, to uint8
}

const (
	empty uint8 = iota
	simple
	mixed

	oneThread = 7
)

// mark is the mark of one cell; who is 0 if there is none.
type mark struct {
	who uint64
	how uint32
}

func (m mark) thread() uint32 { return m.how & (1<<threadBits - 1) }

// clear forgets all marks.
func (p *page) clear() {
	for i := range p.of {
		s := &p.of[i]
		for j := range s.strips {
			s.strips[j].kind = empty
		}
	}
}

// fit makes cells small enough for an access of size bytes.
func (p *page) fit(size int) {
	if !p.used || size < 1<<p.grain {
		p.refine(size)
	}
}

func (p *page) refine(size int) {
	g := min(uint8(bits.Len(uint(size))-1), maxGrain)
	if !p.used {
		p.grain, p.used = g, true
		return
	}
	more := 1 << (p.grain - g)
	for i := range p.of {
		s := p.of[i]
		if s.strips == nil {
			continue
		}
		fine := shadow{strips: make([]strip, len(s.strips)*more)}
		for cell := range len(s.strips) * rowCells {
			if m := s.at(cell); m.who != 0 {
				for i := range more {
					fine.put(cell*more+i, m)
				}
			}
		}
		p.of[i] = fine
	}
	p.grain = g
}

// shadow returns the marks of a class to be changed.
func (p *page) shadow(c class) *shadow {
	s := &p.of[c]
	if s.strips == nil {
		s.strips = make([]strip, p.bytes>>p.grain/rowCells)
	}
	return s
}

// at is the mark of a cell.
func (s *shadow) at(cell int) mark {
	if s.strips == nil {
		return mark{}
	}
	t, i := &s.strips[cell/rowCells], cell%rowCells
	switch t.kind {
	case simple:
		if from := int(t.from); i >= from && i < int(t.to) {
			return mark{t.who, t.how + uint32(i-from)>>t.wide}
		}
	case mixed:
		return mark{s.who[int(t.base)-1+i], s.how[int(t.base)-1+i]}
	}
	return mark{}
}

// put marks a cell.
func (s *shadow) put(cell int, m mark) {
	t, i := &s.strips[cell/rowCells], uint8(cell%rowCells)
	switch t.kind {
	case empty:
		*t = strip{who: m.who, how: m.how, base: t.base, kind: simple, wide: oneThread, from: i, to: i + 1}
		return
	case simple:
		if t.from == i && t.to == i+1 {
			t.who, t.how, t.wide = m.who, m.how, oneThread
			return
		}
		if t.who == m.who && t.to == i && t.how == m.how && (t.wide == oneThread || t.to == t.from+1) {
			t.to, t.wide = i+1, oneThread
			return
		}
		s.mix(t)
	}
	s.who[int(t.base)-1+int(i)], s.how[int(t.base)-1+int(i)] = m.who, m.how
}

// mix gives every cell of a row a mark of its own.
func (s *shadow) mix(t *strip) {
	if t.base == 0 {
		t.base = int32(len(s.who)) + 1
		s.who = append(s.who, make([]uint64, rowCells)...)
		s.how = append(s.how, make([]uint32, rowCells)...)
	}
	who, how := s.who[t.base-1:][:rowCells], s.how[t.base-1:][:rowCells]
	clear(who)
	if t.kind == simple {
		for i := t.from; i < t.to; i++ {
			who[i], how[i] = t.who, t.how+uint32(i-t.from)>>t.wide
		}
	}
	t.kind = mixed
}

// check is one access on its way.
type check struct {
	c      *memoryChecker
	b      *blockClock
	a      *access
	who    uint64
	thread uint32 // of lane 0
	pc     uint32 // where it stands in how
	class  class
}

// races reports whether m and thread t, now, are of different threads and unordered.
func (k *check) races(m mark, t uint32) bool {
	switch {
	case m.who == 0:
		return false
	case m.who>>32 != k.b.key:
		return true
	case uint32(m.who) < k.b.barrier:
		return false
	}
	u := m.thread()
	return u != t && (u>>5 != t>>5 || uint32(m.who) >= k.b.warp[t>>5&31])
}

// distance says how far two marks are apart, for the choice of those that stand for all: 3 different blocks, 2 different
// warps, 1 different lanes.
func distance(a, b mark) int {
	switch {
	case a.who>>32 != b.who>>32:
		return 3
	case a.thread()>>5 != b.thread()>>5:
		return 2
	case a.thread() != b.thread():
		return 1
	}
	return 0
}

// foes are the classes with which a class conflicts.
var foes = [numClasses][]class{
	writes:  {writes, reads, reads2, atomics, atomics2},
	reads:   {writes, atomics, atomics2},
	atomics: {writes, reads, reads2},
}

// page finds the page of an address and the offset in it.
func (k *check) page(addr uint64) (*page, int) {
	if k.a.space == spaceShared {
		return &k.b.shared, int(addr)
	}
	return k.c.global.page(addr), int(addr % (1 << pageBits))
}

// lane checks and marks the access of one lane.
func (k *check) lane(addr uint64, lane uint32) error {
	p, at := k.page(addr)
	p.fit(k.a.size)
	for n := max(1, k.a.size>>p.grain); n > 0; n-- {
		if err := k.cell(p, at>>p.grain, lane); err != nil {
			return err
		}
		at += 1 << p.grain
	}
	return nil
}

// cell checks and marks one cell.
func (k *check) cell(p *page, cell int, lane uint32) error {
	t := k.thread | lane
	for _, f := range foes[k.class] {
		if s := &p.of[f]; s.strips != nil {
			if m := s.at(cell); k.races(m, t) {
				return k.race(f, m, lane)
			}
		}
	}
	me := mark{k.who, k.pc | t}
	s := p.shadow(k.class)
	a := s.at(cell)
	if a.who == me.who && a.thread() == t {
		return nil // the same thread a moment ago: it may stand for this
	}
	if k.class == writes || !k.races(a, t) {
		// All before is ordered before this one: what races with it races with this one too.
		s.put(cell, me)
		return nil
	}
	o := p.shadow(k.class + 1)
	b := o.at(cell)
	if b.who == 0 || (b.who != me.who || b.thread() != t) && (!k.races(b, t) || distance(a, me) > distance(a, b)) {
		o.put(cell, me)
	}
	return nil
}

// row checks and marks the bytes from lo to hi, of lanes side by side from first on.
func (k *check) row(lo, hi uint64, first uint32) error {
	for lo < hi {
		p, at := k.page(lo)
		p.fit(k.a.size)
		end := min(uint64(p.bytes), uint64(at)+hi-lo) // in the page
		wide := uint8(0)                              // log2 of the cells of a lane
		if k.a.size > 1<<p.grain {
			wide = uint8(bits.Len(uint(k.a.size>>p.grain)) - 1)
		}
		cell, stop := at>>p.grain, int(end)>>p.grain
		for base := cell; cell < stop; {
			next := min(stop, (cell/rowCells+1)*rowCells)
			lane := first + uint32(cell-base)>>wide
			if !k.strip(p, cell, next, lane, wide) {
				for c := cell; c < next; c++ {
					if err := k.cell(p, c, first+uint32(c-base)>>wide); err != nil {
						return err
					}
				}
			}
			cell = next
		}
		n := end - uint64(at)
		first += uint32(n) / uint32(k.a.size)
		lo += n
	}
	return nil
}

// strip does cells of one row at once; false if they must be done one by one, perhaps because there is a race.
func (k *check) strip(p *page, from, to int, lane uint32, wide uint8) bool {
	row := from / rowCells
	from, to = from%rowCells, to-row*rowCells
	for _, f := range foes[k.class] {
		if s := &p.of[f]; s.strips != nil && !k.clearOf(s, row, from, to, lane, wide) {
			return false
		}
	}
	s := p.shadow(k.class)
	if k.class == writes || k.clearOf(s, row, from, to, lane, wide) {
		k.fill(s, row, from, to, lane, wide)
		return true
	}
	// Others have read it, or updated it, since. If they are of one other warp, so is the choice of two.
	a := &s.strips[row]
	other := func(t *strip) bool { return t.who>>32 != k.b.key || t.how>>5&31 != k.thread>>5 }
	if a.kind != simple || int(a.from) > from || int(a.to) < to || !other(a) {
		return false
	}
	o := p.shadow(k.class + 1)
	switch b := &o.strips[row]; {
	case b.kind == mixed:
		return false
	case b.kind == empty, k.clearOf(o, row, from, to, lane, wide):
	case int(b.from) > from || int(b.to) < to:
		return false
	default:
		if near := a.who>>32 == b.who>>32; !near || a.who>>32 == k.b.key && a.how>>5&31 != b.how>>5&31 {
			return true // these two are as far apart as this one would be
		}
	}
	k.fill(o, row, from, to, lane, wide)
	return true
}

// fill marks cells of one row.
func (k *check) fill(s *shadow, row, from, to int, lane uint32, wide uint8) {
	how := k.pc | k.thread | lane
	t := &s.strips[row]
	switch {
	case t.kind == empty, from == 0 && to == rowCells, t.kind == simple && from <= int(t.from) && to >= int(t.to):
		if to-from == 1 {
			wide = oneThread
		}
		*t = strip{who: k.who, how: how, base: t.base, kind: simple, wide: wide, from: uint8(from), to: uint8(to)}
		return
	case t.kind == simple:
		s.mix(t)
	}
	who, hows := s.who[int(t.base)-1:][from:to], s.how[int(t.base)-1:][from:to]
	for i := range who {
		who[i] = k.who
	}
	for i := range hows {
		hows[i] = how + uint32(i)>>wide
	}
}

// clearOf reports whether none of some cells of one row can race with the access; cells of a mixed row are looked at
// one by one.
func (k *check) clearOf(s *shadow, row, from, to int, lane uint32, wide uint8) bool {
	t := &s.strips[row]
	mine := k.thread | lane // of the first cell
	switch t.kind {
	case empty:
		return true
	case simple:
		lo, hi := max(from, int(t.from)), min(to, int(t.to))
		if lo >= hi {
			return true
		}
		if t.who>>32 != k.b.key {
			return false
		}
		now := uint32(t.who)
		if now < k.b.barrier {
			return true
		}
		theirs := t.how&(1<<threadBits-1) + uint32(lo-int(t.from))>>t.wide
		mine += uint32(lo-from) >> wide
		return theirs == mine && (t.wide == wide || hi == lo+1) || theirs>>5 == mine>>5 && now < k.b.warp[mine>>5&31]
	}
	whos, hows := s.who[int(t.base)-1:][from:to], s.how[int(t.base)-1:][from:to]
	before := k.b.key<<32 | uint64(k.b.barrier)
	for i, who := range whos {
		if who == 0 || who < before && who>>32 == k.b.key {
			continue
		}
		if k.races(mark{who, hows[i]}, mine+uint32(i)>>wide) {
			return false
		}
	}
	return true
}

// race makes the error.
func (k *check) race(f class, m mark, lane uint32) error {
	v := k.c.violation(RaceInBlock, k.a, int(lane))
	other := k.c.party(m.who>>32-1, m.thread(), int(m.how>>threadBits), [...]string{"wrote", "read", "read", "atomically updated", "atomically updated"}[f])
	v.Second = &other
	switch {
	case m.who>>32 != k.b.key:
		v.Fault = RaceOfBlocks
	case m.thread()>>5 != (k.thread|lane)>>5:
	case m.who == k.who && int(m.how>>threadBits) == k.a.pc && k.class == writes && f == writes:
		v.Detail = "Both lanes of the warp store in one instruction: which value stays is left open. Let one thread write, or use atomics"
	default:
		v.Detail = "Threads of a warp need not run in step. Put a barrier (SyncWarp or SyncThreads) between them, or use atomics for both"
	}
	return v
}
