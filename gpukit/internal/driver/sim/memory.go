package sim

import (
	"fmt"
	"slices"

	"gpunotes/gpukit/internal/driver"
)

// The address space. What Alloc gives lies far apart, so that an index that is wrong by one is seen; addresses are
// used again only when there are no others. Generic addresses of shared and local memory are windows above, constants lie below.
const (
	constWindow  = 0x7d00_0000_0000
	globalWindow = 0x7f00_0000_0000
	sharedWindow = 0x7f80_0000_0000
	localWindow  = 0x7f90_0000_0000
	windowEnd    = 0x7fa0_0000_0000

	alignment = 256
	pageBytes = 16 << 20
)

// segment is one allocation. Its bytes are made page by page when they are touched.
type segment struct {
	base, size uint64
	pages      [][]byte
	constant   bool
	variable   string // of a module
}

// window is a part of a segment that lies in one piece.
type window struct {
	base uint64
	data []byte
}

// at returns n bytes at addr, nil if they are not in the window.
func (w *window) at(addr, n uint64) []byte {
	off := addr - w.base
	if off+n > uint64(len(w.data)) || off > uint64(len(w.data)) {
		return nil
	}
	return w.data[off : off+n : off+n]
}

type memory struct {
	segs           []*segment // by address
	next, nextCons uint64
	used, capacity uint64
	touched        uint64    // bytes of used that this machine has given
	freed          []segment // the last ones, for messages
}

func newMemory(capacity uint64) *memory {
	return &memory{next: globalWindow, nextCons: constWindow, capacity: capacity}
}

func (m *memory) alloc(n uint64, constant bool) (*segment, error) {
	rounded := (n + alignment - 1) &^ (alignment - 1)
	if rounded < n || rounded > m.capacity-m.used {
		return nil, fmt.Errorf("%d bytes asked for, %d of %d free", n, m.capacity-m.used, m.capacity)
	}
	next, from, to := &m.next, uint64(globalWindow), uint64(sharedWindow)
	if constant {
		next, from, to = &m.nextCons, constWindow, globalWindow
	}
	base := *next
	if to-base < rounded+alignment { // the window is used up: look for a gap
		if base = m.gap(from, to, rounded+alignment); base == 0 {
			return nil, fmt.Errorf("no gap of %d bytes in the address space", n)
		}
	}
	s := &segment{base: base, size: n, constant: constant, pages: make([][]byte, (n+pageBytes-1)/pageBytes)}
	*next = max(*next, base+rounded+alignment)
	m.used += rounded
	i, _ := slices.BinarySearchFunc(m.segs, s.base, bySegment)
	m.segs = slices.Insert(m.segs, i, s)
	return s, nil
}

// gap returns the lowest address from which n bytes are free within a window, 0 if there is none.
func (m *memory) gap(from, to, n uint64) uint64 {
	at := from
	for _, s := range m.segs {
		if s.base < from || s.base >= to {
			continue
		}
		if s.base-at >= n {
			return at
		}
		at = s.base + (s.size+alignment-1)&^(alignment-1) + alignment
	}
	if to-at >= n {
		return at
	}
	return 0
}

func bySegment(s *segment, addr uint64) int {
	if s.base < addr {
		return -1
	} else if s.base > addr {
		return 1
	}
	return 0
}

func (m *memory) free(addr uint64) bool {
	i, ok := slices.BinarySearchFunc(m.segs, addr, bySegment)
	if !ok || m.segs[i].variable != "" {
		return false
	}
	m.remove(i)
	return true
}

func (m *memory) remove(i int) {
	s := m.segs[i]
	for _, p := range s.pages {
		m.touched -= uint64(len(p))
	}
	m.used -= (s.size + alignment - 1) &^ (alignment - 1)
	if len(m.freed) == 64 {
		m.freed = m.freed[1:]
	}
	m.freed = append(m.freed, segment{base: s.base, size: s.size})
	m.segs = slices.Delete(m.segs, i, i+1)
}

// find returns the segment that has addr, or the one before it; nil if there is none.
func (m *memory) find(addr uint64) *segment {
	i, ok := slices.BinarySearchFunc(m.segs, addr, bySegment)
	if !ok {
		i--
	}
	if i < 0 {
		return nil
	}
	return m.segs[i]
}

// window returns the window with n bytes at addr, n a power of two that divides addr.
func (m *memory) window(addr, n uint64) (window, bool) {
	s := m.find(addr)
	if s == nil || addr-s.base+n > s.size || addr-s.base >= s.size {
		return window{}, false
	}
	page := (addr - s.base) / pageBytes
	return window{s.base + page*pageBytes, m.page(s, page)}, true
}

func (m *memory) page(s *segment, i uint64) []byte {
	if s.pages[i] == nil {
		s.pages[i] = make([]byte, min(pageBytes, s.size-i*pageBytes))
		m.touched += uint64(len(s.pages[i]))
	}
	return s.pages[i]
}

// explain says what is at an address that may not be used.
func (m *memory) explain(addr, n uint64) string {
	if addr < 4096 {
		return fmt.Sprintf("address %#x: a null pointer", addr)
	}
	for _, f := range m.freed {
		if addr-f.base < f.size {
			return fmt.Sprintf("address %#x is in memory that was freed (%d bytes at %#x)", addr, f.size, f.base)
		}
	}
	if s := m.find(addr); s != nil && addr-s.base < s.size+1<<20 {
		if addr-s.base >= s.size {
			return fmt.Sprintf("address %#x is %d bytes behind the end of %s", addr, addr-s.base-s.size, s)
		}
		return fmt.Sprintf("address %#x: %d bytes reach over the end of %s", addr, n, s)
	}
	for _, s := range m.segs {
		if s.base > addr && s.base-addr <= alignment {
			return fmt.Sprintf("address %#x is %d bytes before the start of %s", addr, s.base-addr, s)
		}
	}
	return fmt.Sprintf("address %#x is in no allocation", addr)
}

// String describes the segment for messages.
func (s *segment) String() string {
	if s.variable != "" {
		return fmt.Sprintf("%s (%d bytes at %#x)", s.variable, s.size, s.base)
	}
	return fmt.Sprintf("the allocation of %d bytes at %#x", s.size, s.base)
}

// each calls f for the pieces of n bytes at addr, each within page i of s.
func (m *memory) each(call string, addr driver.Ptr, n uint64, f func(s *segment, i, from, to uint64)) error {
	a := uint64(addr)
	if n == 0 {
		return nil
	}
	s := m.find(a)
	if s == nil || a-s.base >= s.size || n > s.size-(a-s.base) {
		return &driver.Error{Call: call, Code: driver.InvalidValue, Detail: fmt.Sprintf("%d bytes at %#x are not within one allocation", n, a)}
	}
	for off := a - s.base; n > 0; {
		from := off % pageBytes
		k := min(pageBytes-from, n)
		f(s, off/pageBytes, from, from+k)
		off += k
		n -= k
	}
	return nil
}

func (m *memory) pieces(call string, addr driver.Ptr, n uint64, f func(piece []byte)) error {
	return m.each(call, addr, n, func(s *segment, i, from, to uint64) { f(m.page(s, i)[from:to]) })
}

// fill sets n bytes. Pages that nobody has touched are zero already.
func (m *memory) fill(call string, addr driver.Ptr, value byte, n uint64) error {
	return m.each(call, addr, n, func(s *segment, i, from, to uint64) {
		switch {
		case value != 0:
			p := m.page(s, i)[from:to]
			for k := range p {
				p[k] = value
			}
		case s.pages[i] != nil:
			clear(s.pages[i][from:to])
		}
	})
}

func (m *memory) read(call string, dst []byte, addr driver.Ptr) error {
	return m.pieces(call, addr, uint64(len(dst)), func(p []byte) { dst = dst[copy(dst, p):] })
}

func (m *memory) write(call string, addr driver.Ptr, src []byte) error {
	return m.pieces(call, addr, uint64(len(src)), func(p []byte) { src = src[copy(p, src):] })
}
