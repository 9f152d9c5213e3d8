package gpukit

import (
	"math/bits"

	"gpunotes/gpukit/internal/cpu"
	"gpunotes/gpukit/internal/driver"
)

// Copies between host and device go through memory of our own, page-locked where
// the driver gives such: then they overlap with other work, and the user's arrays
// are free at once, and untouched until it is known that all went well.

const (
	// stagingKept is how many bytes of it are kept for the next call.
	stagingKept = 64 << 20
	// stagingAhead is how many pieces of an array wait to be copied in, at most.
	stagingAhead = 8
)

// stagingPiece is the size of the copies that large arrays are moved in. A variable
// for tests.
var stagingPiece = 4 << 20

// staging is the host memory for copies of one device. It is used by who has locked
// the device.
type staging struct {
	dev  driver.Device
	free map[int][]*slab // by size
	kept int             // bytes of free
	used []*slab         // until the device has done what was begun
}

// slab is a piece of staging memory.
type slab struct {
	b      []byte // as it was given
	pinned bool
	taken  bool
}

// stagingClass is the size in which n bytes are asked for.
func stagingClass(n int) int {
	const least = 4 << 10
	switch {
	case n <= least:
		return least
	case n <= stagingKept/4:
		return 1 << bits.Len(uint(n-1))
	}
	return n
}

// take gives n bytes, contents undefined, until give or the end of all work. It
// panics with a *ShapeError if this machine has too little memory.
func (s *staging) take(n int) *slab {
	size := stagingClass(n)
	var x *slab
	if list := s.free[size]; len(list) > 0 {
		x = list[len(list)-1]
		s.free[size] = list[:len(list)-1]
		s.kept -= size
	} else {
		needRoom("", Uint8, size)
		if size > stagingKept {
			s.empty()
		}
		x = &slab{}
		if b, err := s.dev.Pinned(size); err == nil && len(b) >= size {
			x.b, x.pinned = b, true
		} else { // slower, but as good
			x.b = make([]byte, size)
		}
	}
	x.taken = true
	s.used = append(s.used, x)
	return x
}

// give takes a slab back that no copy uses any more.
func (s *staging) give(x *slab) {
	for i, y := range s.used {
		if x == y {
			s.used[i] = s.used[len(s.used)-1]
			s.used = s.used[:len(s.used)-1]
			s.keep(x)
			return
		}
	}
}

func (s *staging) keep(x *slab) {
	if !x.taken {
		return
	}
	x.taken = false
	size := len(x.b)
	if s.kept+size > stagingKept {
		s.empty() // of sizes that were of use once
	}
	if size > stagingKept {
		s.drop(x)
		return
	}
	if s.free == nil {
		s.free = map[int][]*slab{}
	}
	s.free[size] = append(s.free[size], x)
	s.kept += size
}

func (s *staging) drop(x *slab) {
	if x.pinned {
		s.dev.FreePinned(x.b)
	}
	x.b = nil
}

// done takes back all that is in use: the device has done everything.
func (s *staging) done() {
	for i, x := range s.used {
		s.keep(x)
		s.used[i] = nil
	}
	s.used = s.used[:0]
}

// empty gives back what is not in use.
func (s *staging) empty() {
	for _, list := range s.free {
		for _, x := range list {
			s.drop(x)
		}
	}
	s.free, s.kept = nil, 0
}

// piece is a part of an array that is being copied out.
type piece struct {
	slab *slab
	off  int // where it begins in the array
	n    int
	mark driver.Mark // reached when the copy is done
}

func (p *piece) bytes() []byte { return p.slab.b[:p.n] }

// moveIn copies n bytes to the device in a stream, from what fill writes: a part of
// them that begins at off. Nobody waits for the last of them, which are in what is
// returned.
func (g *gpu) moveIn(s driver.Stream, dst driver.Ptr, n int, fill func(b []byte, off int)) ([]*slab, error) {
	if n == 0 {
		return nil, nil
	}
	step := n
	if g.streams > 1 && n > stagingPiece {
		step = stagingPiece
	}
	var list []*slab
	var marks []driver.Mark
	for off := 0; off < n; off += step {
		if len(list) == stagingAhead {
			if err := g.dev.Wait(marks[0]); err != nil {
				return list, err
			}
			if g.stopped() {
				return list, cpu.ErrCancelled
			}
			g.staging.give(list[0])
			list, marks = list[1:], marks[1:]
		}
		size := min(step, n-off)
		x := g.staging.take(size)
		fill(x.b[:size], off)
		list = append(list, x)
		if err := g.startIn(s, dst+driver.Ptr(off), x.b[:size]); err != nil {
			return list, err
		}
		if step < n {
			m, err := g.dev.Mark(s)
			if err != nil {
				return list, err
			}
			marks = append(marks, m)
		}
	}
	return list, nil
}

// moveOut copies n bytes from the device, after all that was begun in stream 0, and
// hands them to take in parts, each of which begins at off.
func (g *gpu) moveOut(n int, src driver.Ptr, take func(b []byte, off int)) error {
	if n == 0 {
		return nil
	}
	step := n
	if g.streams > 1 && n > stagingPiece {
		step = stagingPiece
	}
	const ahead = 3
	var list []piece
	first := func() error {
		p := &list[0]
		var err error
		if step == n {
			err = g.wait()
		} else {
			err = g.dev.Wait(p.mark)
		}
		if err == nil && g.stopped() {
			err = cpu.ErrCancelled
		}
		if err == nil {
			take(p.bytes(), p.off)
			g.staging.give(p.slab)
			list = list[1:]
		}
		return err
	}
	for off := 0; off < n; off += step {
		if len(list) == ahead {
			if err := first(); err != nil {
				return err
			}
		}
		p := piece{off: off, n: min(step, n-off)}
		p.slab = g.staging.take(p.n)
		if err := g.startOut(0, p.bytes(), src+driver.Ptr(off), false); err != nil {
			return err
		}
		if step < n {
			var err error
			if p.mark, err = g.dev.Mark(0); err != nil {
				return err
			}
		}
		list = append(list, p)
	}
	for len(list) > 0 {
		if err := first(); err != nil {
			return err
		}
	}
	return nil
}
