package gpukit

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"runtime"
	"slices"
	"sync"
	"weak"

	"gpunotes/gpukit/internal/driver"
	"gpunotes/gpukit/internal/ir"
	"gpunotes/gpukit/internal/shape"
)

// pool is the memory of a card that arrays and calls hold, or held: what is given
// back is kept for the next of its size. It may still be in use by what was begun
// before; the next does not get at it before that is done, as long as all is begun
// in stream 0, or after what was begun there.
type pool struct {
	dev   driver.Device
	card  string // which it is, if there may be other openings of it
	exact bool   // ask for what is needed, so that the device notices what lies behind
	limit int    // keep no more than this, if not 0; of a device that is done when a call returns

	mu     sync.Mutex
	closed bool
	free   map[int][]driver.Ptr // by size
	kept   int                  // bytes of free
	live   map[*block]weak.Pointer[deviceMemory]
}

// block is a part of a card's memory.
type block struct {
	ptr  driver.Ptr
	size int // 0: no memory
	held bool
}

// classOf is the size in which n bytes are asked for: steps of an eighth between
// powers of two, so that sizes of arrays that change a little find each other's
// memory; a whole number of 2 MiB pages of what is large.
func classOf(n int) int {
	const least, page = 512, 2 << 20
	switch {
	case n <= least:
		return least
	case n > 8*page:
		return (n + page - 1) / page * page
	}
	step := 1 << (bits.Len(uint(n-1)) - 4)
	return (n + step - 1) / step * step
}

// get gives n bytes, no memory for 0.
func (p *pool) get(n int) (*block, error) {
	if n == 0 {
		return &block{}, nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, ErrClosed
	}
	b := &block{size: n, held: true}
	if !p.exact {
		b.size = classOf(n)
	}
	if list := p.free[b.size]; len(list) > 0 {
		b.ptr = list[len(list)-1]
		p.free[b.size] = list[:len(list)-1]
		p.kept -= b.size
	} else {
		var err error
		if b.ptr, err = p.dev.Alloc(uint64(b.size)); err != nil {
			return nil, err
		}
	}
	if p.live == nil {
		p.live = map[*block]weak.Pointer[deviceMemory]{}
	}
	p.live[b] = weak.Pointer[deviceMemory]{}
	return b, nil
}

// put takes a block back; a second time it does nothing.
func (p *pool) put(b *block) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.take(b)
}

func (p *pool) take(b *block) {
	if b == nil || !b.held {
		return
	}
	b.held = false
	delete(p.live, b)
	if p.closed {
		return
	}
	if p.limit > 0 && p.kept+b.size > p.limit {
		p.dev.Free(b.ptr)
		return
	}
	p.kept += b.size
	if p.free == nil {
		p.free = map[int][]driver.Ptr{}
	}
	p.free[b.size] = append(p.free[b.size], b.ptr)
}

// reclaim gives the card what nobody holds, when all that was begun is done. The
// error is of that.
func (p *pool) reclaim() error {
	if err := p.dev.Sync(); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for b, w := range p.live {
		if w != (weak.Pointer[deviceMemory]{}) && w.Value() == nil {
			p.take(b)
		}
	}
	p.empty()
	return nil
}

// A card that is opened more than once has one memory, from which each opening
// takes: the pools by card. They stay when an opening is forgotten without Close, so
// that what nobody holds any more can be had.
var pools struct {
	sync.Mutex
	of map[string][]*pool
}

// share makes the pool one of a card's; a simulated card has no other.
func (p *pool) share(card string) {
	if p.card = card; card == "" {
		return
	}
	pools.Lock()
	defer pools.Unlock()
	if pools.of == nil {
		pools.of = map[string][]*pool{}
	}
	pools.of[card] = append(pools.of[card], p)
}

// reclaimOthers gives back what the other openings of the card do not use. That they
// fail is their users' error, not this one's.
func (p *pool) reclaimOthers() {
	pools.Lock()
	others := slices.Clone(pools.of[p.card])
	pools.Unlock()
	for _, q := range others {
		if q != p && q.reclaim() == nil {
			q.dev.MemInfo() // to answer it has to be free, not only freed in order of a stream
		}
	}
}

// leave ends the sharing.
func (p *pool) leave() {
	pools.Lock()
	defer pools.Unlock()
	if list := slices.DeleteFunc(pools.of[p.card], func(q *pool) bool { return q == p }); len(list) > 0 {
		pools.of[p.card] = list
	} else {
		delete(pools.of, p.card)
	}
}

func (p *pool) empty() {
	for _, list := range p.free {
		for _, ptr := range list {
			p.dev.Free(ptr)
		}
	}
	p.free, p.kept = nil, 0
}

// close gives everything back, held or not: arrays cannot be used any more.
func (p *pool) close() {
	p.leave()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.empty()
	for b := range p.live {
		b.held = false
		p.dev.Free(b.ptr)
	}
	p.live, p.closed = nil, true
}

// deviceMemory is the storage of arrays on a GPU. An array that nobody refers to
// any more gives its block back when the garbage collector sees it.
type deviceMemory struct {
	gpu   *gpu
	t     DType
	n     int
	block *block
}

// memory makes storage for n elements, contents undefined.
func (g *gpu) memory(t DType, n int) (*deviceMemory, error) {
	if size := float64(n) * float64(t.Size()); size > float64(g.info.Memory) {
		return nil, &driver.Error{Call: "cuMemAlloc", Code: driver.OutOfMemory, Detail: fmt.Sprintf("%d elements of %v need %s, and the device has %s in all", n, t, amount(size), amount(float64(g.info.Memory)))}
	}
	b, err := g.alloc(n * t.Size())
	if err != nil {
		return nil, err
	}
	m := &deviceMemory{gpu: g, t: t, n: n, block: b}
	if b.size > 0 {
		g.pool.mu.Lock()
		open := !g.pool.closed
		if open {
			g.pool.live[b] = weak.Make(m)
		}
		g.pool.mu.Unlock()
		if !open {
			return nil, ErrClosed
		}
		runtime.AddCleanup(m, func(b *block) { g.pool.put(b) }, b)
	}
	return m, nil
}

// broken is what reading or writing an array panics with where its card cannot.
func (g *gpu) broken(op string, err error) *ShapeError {
	err = g.fault(op, err)
	return &ShapeError{Detail: err.Error(), device: err}
}

func (m *deviceMemory) dtype() DType { return m.t }
func (m *deviceMemory) len() int     { return m.n }

func (m *deviceMemory) at(k int) driver.Ptr { return m.block.ptr + driver.Ptr(k*m.t.Size()) }

func (m *deviceMemory) bits(k int) ir.Bits { return m.load(k, false) }

// load reads one element. What the card cannot give is a *ShapeError, as of an
// array that was freed.
func (m *deviceMemory) load(k int, hidden bool) ir.Bits {
	var b [8]byte
	x := b[:m.t.Size()]
	defer m.gpu.lock()()
	if err := m.gpu.copyOut(x, m.at(k), hidden); err != nil {
		panic(m.gpu.broken("At", err))
	}
	return decode(m.t, x)
}

func (m *deviceMemory) setBits(k int, b ir.Bits) {
	var x [8]byte
	binary.LittleEndian.PutUint64(x[:], b)
	defer m.gpu.lock()()
	if err := m.gpu.copyIn(m.at(k), x[:m.t.Size()], false); err != nil {
		panic(m.gpu.broken("Set", err))
	}
}

// decode is the element in the memory of a card.
func decode(t DType, x []byte) ir.Bits {
	var b [8]byte
	copy(b[:], x)
	u := binary.LittleEndian.Uint64(b[:])
	switch t {
	case Int8:
		return ir.Bits(int8(u))
	case Int16:
		return ir.Bits(int16(u))
	case Int32:
		return ir.Bits(int32(u))
	}
	return u
}

// quiet is the memory of a card as gpukit's own checks read it: in no trace.
type quiet struct{ *deviceMemory }

func (q quiet) bits(k int) ir.Bits { return q.load(k, true) }

// quietly is s for the reference evaluator.
func quietly(s storage) storage {
	if m := deviceMemoryOf(s); m != nil {
		return quiet{m}
	}
	return s
}

// deviceMemoryOf is the memory on a GPU behind s, nil if it is elsewhere.
func deviceMemoryOf(s storage) *deviceMemory {
	switch x := s.(type) {
	case *deviceMemory:
		return x
	case quiet:
		return x.deviceMemory
	case *resident:
		return deviceMemoryOf(x.storage)
	}
	return nil
}

// download returns a in host memory, with the strides that it has, in one copy of
// what it spans.
func (m *deviceMemory) download(a *Array) *Array {
	lo, hi, ok := shape.Span{Offset: a.offset, Shape: a.shape, Strides: a.strides}.Bounds()
	if !ok {
		return &Array{makeStorage(m.t, 0), 0, a.shape, a.strides}
	}
	out, size := makeStorage(m.t, hi-lo+1), m.t.Size()
	defer m.gpu.lock()()
	err := m.gpu.moveOut(out.len()*size, m.at(lo), func(b []byte, off int) { unpack(sliceBehind(out), off/size, b) })
	if err != nil {
		panic(m.gpu.broken("Host", err))
	}
	return &Array{out, a.offset - lo, a.shape, a.strides}
}

// local returns a where its elements can be walked: a itself, or a copy of what
// is on a GPU.
func (a *Array) local() *Array {
	if m := deviceMemoryOf(a.store); m != nil {
		return m.download(a)
	}
	return a
}

// upload makes the device's copy of the elements of a, in C order.
func (g *gpu) upload(a *Array) (*Array, error) {
	m, err := g.memory(a.DType(), a.Size())
	if err != nil {
		return nil, err
	}
	out := newArray(m, a.shape)
	if a.Size() == 0 {
		return out, nil
	}
	from := deviceMemoryOf(a.store)
	if from != nil && from.gpu == g && a.contiguous() {
		defer g.lock()()
		err = g.copyWithin(m.block.ptr, from.at(a.offset), m.n*m.t.Size())
	} else {
		a = a.local()
		data := sliceBehind(a.store)
		if data == nil || !a.contiguous() {
			a = a.copy()
			data = sliceBehind(a.store)
		}
		defer g.lock()()
		size := m.t.Size()
		_, err = g.moveIn(0, m.block.ptr, m.n*size, func(b []byte, off int) { pack(b, data, a.offset+off/size) })
		if err == nil {
			err = g.wait()
		}
	}
	if err != nil {
		g.pool.put(m.block)
		return nil, err
	}
	return out, nil
}

// empty makes an array of zeros.
func (g *gpu) empty(t DType, dims []int) (*Array, error) {
	m, err := g.memory(t, sizeOf("Empty", dims))
	if err != nil {
		return nil, err
	}
	defer g.lock()()
	if err := g.fill(m.block.ptr, 0, m.n*t.Size(), false); err != nil {
		g.pool.put(m.block)
		return nil, err
	}
	return newArray(m, dims), nil
}
