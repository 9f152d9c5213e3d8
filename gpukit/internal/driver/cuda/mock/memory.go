//go:build cuda

package main

import (
	"bytes"
	"encoding/binary"
	"slices"

	"gpunotes/gpukit/internal/driver"
)

// allocation is memory of a card.
type allocation struct {
	base, size uint64
	fixed      bool // not from cuMemAlloc or cuMemAllocAsync: a variable of a module, or mapped
}

// pinned is page-locked memory of the program.
type pinned struct {
	c             *context // with which it ends
	address, size uint64
	flags         int
	ours          bool // from cuMemHostAlloc; else registered
}

// mapping is page-locked memory that kernels reach. The card has a copy, which is kept equal while a kernel runs; what a
// kernel writes comes back when it has ended.
type mapping struct {
	host   *pinned
	device driver.Ptr
	shared []byte // what both had when they were last equal
}

const fillBytes = 1 << 20

// find is the allocation that has n bytes at an address, nil if none has.
func (c *context) find(address, n uint64) *allocation {
	i, _ := slices.BinarySearchFunc(c.memory, address+1, func(a *allocation, x uint64) int {
		if a.base < x {
			return -1
		}
		return 1
	})
	if i == 0 {
		return nil
	}
	if a := c.memory[i-1]; address-a.base <= a.size && n <= a.size-(address-a.base) {
		return a
	}
	return nil
}

func (c *context) add(a *allocation) {
	i, _ := slices.BinarySearchFunc(c.memory, a.base, func(a *allocation, x uint64) int {
		if a.base < x {
			return -1
		}
		return 1
	})
	c.memory = slices.Insert(c.memory, i, a)
}

func (c *context) forget(base uint64) *allocation {
	for i, a := range c.memory {
		if a.base == base && !a.fixed {
			c.memory = slices.Delete(c.memory, i, i+1)
			return a
		}
	}
	return nil
}

// isPinned says whether n bytes of the program's memory are page-locked.
func (m *mock) isPinned(address, n uint64) bool {
	return slices.ContainsFunc(m.pinned, func(p *pinned) bool { return address >= p.address && address+n <= p.address+p.size })
}

func init() {
	for name, e := range map[string]entry{
		"cuMemAlloc_v2":           {run: memAlloc, out: []int{0}},
		"cuMemAllocAsync":         {run: memAllocAsync, out: []int{0}},
		"cuMemFree_v2":            {run: memFree},
		"cuMemFreeAsync":          {run: memFreeAsync},
		"cuMemGetInfo_v2":         {run: memGetInfo, out: []int{0, 1}},
		"cuMemGetAddressRange_v2": {run: memGetAddressRange},
		"cuMemPoolTrimTo":         {run: func(t *thread, k *call) driver.Code { return 0 }, free: true},
		"cuDeviceGetDefaultMemPool": {run: func(t *thread, k *call) driver.Code {
			if t.device(k.int(1)) == nil {
				return driver.InvalidDevice
			}
			t.put64(k.x[0], 0x8000+uint64(k.int(1))*16)
			return 0
		}, out: []int{0}, free: true},

		"cuMemHostAlloc":               {run: func(t *thread, k *call) driver.Code { return t.hostAlloc(k, k.int(2)) }, out: []int{0}},
		"cuMemAllocHost_v2":            {run: func(t *thread, k *call) driver.Code { return t.hostAlloc(k, 0) }, out: []int{0}},
		"cuMemFreeHost":                {run: func(t *thread, k *call) driver.Code { return t.unpin(k.x[0], true) }},
		"cuMemHostRegister_v2":         {run: hostRegister},
		"cuMemHostUnregister":          {run: func(t *thread, k *call) driver.Code { return t.unpin(k.x[0], false) }},
		"cuMemHostGetDevicePointer_v2": {run: hostGetDevicePointer, out: []int{0}},
		"cuMemHostGetFlags":            {run: hostGetFlags, out: []int{0}},

		"cuMemcpyHtoD_v2":      {run: func(t *thread, k *call) driver.Code { return t.copyIn(k, 0, false) }},
		"cuMemcpyHtoDAsync_v2": {run: func(t *thread, k *call) driver.Code { return t.copyIn(k, k.x[3], true) }},
		"cuMemcpyDtoH_v2":      {run: func(t *thread, k *call) driver.Code { return t.copyOut(k, 0, false) }},
		"cuMemcpyDtoHAsync_v2": {run: func(t *thread, k *call) driver.Code { return t.copyOut(k, k.x[3], true) }},
		"cuMemcpyDtoD_v2":      {run: func(t *thread, k *call) driver.Code { return t.copyWithin(k, 0) }},
		"cuMemcpyDtoDAsync_v2": {run: func(t *thread, k *call) driver.Code { return t.copyWithin(k, k.x[3]) }},
	} {
		entries[name] = e
	}
	for suffix, size := range map[string]int{"D8": 1, "D16": 2, "D32": 4} {
		entries["cuMemset"+suffix+"_v2"] = entry{run: func(t *thread, k *call) driver.Code { return t.set(k, size, 0) }}
		entries["cuMemset"+suffix+"Async"] = entry{run: func(t *thread, k *call) driver.Code { return t.set(k, size, k.x[3]) }}
	}
}

// alloc takes memory, with something in it.
func (c *context) alloc(n uint64) (*allocation, driver.Code) {
	if n == 0 {
		return nil, driver.InvalidValue
	}
	var p driver.Ptr
	var err error
	dev, life := c.dev, c.life
	c.m.unlocked(func() {
		if p, err = dev.Alloc(n); err == nil && n <= fillBytes {
			c.aside(func() { dev.Fill(p, 0xa5, n) })
		}
	})
	if err != nil {
		return nil, codeOf(err)
	}
	if c.dead || c.life != life {
		return nil, driver.ContextIsDestroyed
	}
	a := &allocation{base: uint64(p), size: n}
	c.add(a)
	return a, 0
}

// aside does what is not the program's, and takes no time of the card.
func (c *context) aside(f func()) {
	c.silent.Add(1)
	defer c.silent.Add(-1)
	f()
}

func memAlloc(t *thread, k *call) driver.Code {
	a, code := t.c.alloc(k.x[1])
	if code == 0 {
		t.put64(k.x[0], a.base)
	}
	return code
}

func memAllocAsync(t *thread, k *call) driver.Code {
	if _, code := t.stream(k.x[2]); code != 0 {
		return code
	}
	return memAlloc(t, k)
}

// memFree waits for all work, as the driver does.
func memFree(t *thread, k *call) driver.Code {
	if k.x[0] == 0 {
		return 0
	}
	c := t.c
	if a := c.find(k.x[0], 0); a == nil || a.base != k.x[0] || a.fixed {
		return driver.InvalidValue
	}
	code := c.awaitAll()
	if code != 0 && !survivable(code) || c.dead {
		return code
	}
	if c.forget(k.x[0]) == nil {
		return driver.InvalidValue
	}
	dev := c.dev
	var err error
	c.m.unlocked(func() { err = dev.Free(driver.Ptr(k.x[0])) })
	if err != nil {
		return codeOf(err)
	}
	return code // of earlier work
}

func memFreeAsync(t *thread, k *call) driver.Code {
	s, code := t.stream(k.x[1])
	if code != 0 {
		return code
	}
	if t.c.forget(k.x[0]) == nil {
		return driver.InvalidValue
	}
	dev := t.c.dev
	t.c.enqueue(s, func() error { return dev.Free(driver.Ptr(k.x[0])) })
	return 0
}

func memGetInfo(t *thread, k *call) driver.Code {
	var free, total uint64
	var err error
	c := t.c
	c.m.unlocked(func() { free, total, err = c.dev.MemInfo() })
	if err != nil {
		return codeOf(err)
	}
	for _, m := range c.maps { // is memory of the host
		free += (m.host.size + 255) &^ 255
	}
	t.put64(k.x[0], free)
	t.put64(k.x[1], total)
	return 0
}

func memGetAddressRange(t *thread, k *call) driver.Code {
	a := t.c.find(k.x[2], 1)
	if a == nil {
		return driver.NotFound
	}
	if k.x[0] != 0 {
		t.put64(k.x[0], a.base)
	}
	if k.x[1] != 0 {
		t.put64(k.x[1], a.size)
	}
	return 0
}

func (t *thread) hostAlloc(k *call, flags int) driver.Code {
	if k.x[1] == 0 || flags&^7 != 0 {
		return driver.InvalidValue
	}
	address := t.mapped(k.x[1])
	if address == 0 {
		return driver.OutOfMemory
	}
	t.m.pinned = append(t.m.pinned, &pinned{c: t.c, address: address, size: k.x[1], flags: flags, ours: true})
	t.put64(k.x[0], address)
	return 0
}

func hostRegister(t *thread, k *call) driver.Code {
	if k.x[0] == 0 || k.x[1] == 0 || k.int(2)&^15 != 0 {
		return driver.InvalidValue
	}
	for _, p := range t.m.pinned {
		if k.x[0] < p.address+p.size && p.address < k.x[0]+k.x[1] {
			return 712 // CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED
		}
	}
	t.m.pinned = append(t.m.pinned, &pinned{c: t.c, address: k.x[0], size: k.x[1], flags: k.int(2)})
	return 0
}

// unpin waits for all work, as the driver does.
func (t *thread) unpin(address uint64, ours bool) driver.Code {
	i := slices.IndexFunc(t.m.pinned, func(p *pinned) bool { return p.address == address && p.ours == ours })
	if i < 0 {
		if !ours {
			return 713 // CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED
		}
		return driver.InvalidValue
	}
	p := t.m.pinned[i]
	t.m.pinned = slices.Delete(t.m.pinned, i, i+1)
	for _, x := range t.m.handles {
		c, ok := x.(*context)
		if !ok || c.dead {
			continue
		}
		if code := c.awaitAll(); code != 0 {
			t.m.pinned = append(t.m.pinned, p)
			return code
		}
		for _, m := range c.maps {
			if m.host == p {
				c.memory = slices.DeleteFunc(c.memory, func(a *allocation) bool { return a.base == uint64(m.device) })
				t.m.unlocked(func() { c.dev.Free(m.device) })
			}
		}
		c.maps = slices.DeleteFunc(c.maps, func(m *mapping) bool { return m.host == p })
	}
	if ours {
		t.unmap(p.address, p.size)
	}
	return 0
}

func hostGetFlags(t *thread, k *call) driver.Code {
	for _, p := range t.m.pinned {
		if p.address == k.x[1] {
			t.put32(k.x[0], p.flags)
			return 0
		}
	}
	return driver.InvalidValue
}

func hostGetDevicePointer(t *thread, k *call) driver.Code {
	for _, p := range t.m.pinned {
		if k.x[1] < p.address || k.x[1] >= p.address+p.size {
			continue
		}
		m, code := t.c.mapping(p)
		if code == 0 {
			t.put64(k.x[0], uint64(m.device)+k.x[1]-p.address)
		}
		return code
	}
	return driver.InvalidValue
}

// mapping maps page-locked memory. All of it can be mapped: the cards have one address space with the host.
func (c *context) mapping(p *pinned) (*mapping, driver.Code) {
	for _, m := range c.maps {
		if m.host == p {
			return m, 0
		}
	}
	var device driver.Ptr
	var err error
	dev := c.dev
	c.m.unlocked(func() {
		if device, err = dev.Alloc(p.size); err == nil {
			c.aside(func() { err = dev.Fill(device, 0, p.size) })
		}
	})
	if err != nil {
		return nil, codeOf(err)
	}
	m := &mapping{host: p, device: device, shared: make([]byte, p.size)}
	c.maps = append(c.maps, m)
	c.add(&allocation{base: uint64(device), size: p.size, fixed: true})
	return m, 0
}

// onCard does work on a card: what the program wrote into mapped memory is there before, what the card wrote comes back.
func (c *context) onCard(run func() error) error {
	c.m.mu.Lock()
	maps := slices.Clone(c.maps)
	c.m.mu.Unlock()
	if len(maps) == 0 {
		return run()
	}
	c.aside(func() { c.share(maps, c.dev.CopyIn) })
	err := run()
	c.aside(func() {
		for _, m := range maps {
			b := make([]byte, len(m.shared))
			if c.dev.CopyOut(b, m.device) == nil {
				m.bring(&c.m.host, b)
			}
		}
	})
	return err
}

// share brings what the program wrote into mapped memory to the card; put is how.
func (c *context) share(maps []*mapping, put func(driver.Ptr, []byte) error) {
	for _, m := range maps {
		m.fetch(&c.m.host, put)
	}
}

// fetch brings what the program wrote to the card; put is how.
func (m *mapping) fetch(h *hostMemory, put func(driver.Ptr, []byte) error) {
	now := make([]byte, len(m.shared))
	h.read(now, m.host.address)
	for _, r := range changes(m.shared, now) {
		put(m.device+driver.Ptr(r[0]), now[r[0]:r[1]])
	}
	m.shared = now
}

// bring brings what the card wrote to the program.
func (m *mapping) bring(h *hostMemory, now []byte) {
	h.write(m.host.address, now, changes(m.shared, now)...)
	m.shared = now
}

// changes lists the ranges that are not equal. A byte more would be one that the other side may just be writing.
func changes(a, b []byte) (ranges [][2]int) {
	if bytes.Equal(a, b) {
		return nil
	}
	for i := 0; i < len(a); i++ {
		if a[i] == b[i] {
			continue
		}
		from := i
		for i < len(a) && a[i] != b[i] {
			i++
		}
		ranges = append(ranges, [2]int{from, i})
	}
	return ranges
}

// copyIn copies from the program to a card. Memory that is not page-locked is read now, behind what the stream still has
// to do; the call does not wait for the copy. Source: CUDA driver API, "API synchronization behavior".
func (t *thread) copyIn(k *call, handle uint64, async bool) driver.Code {
	dst, src, n := k.x[0], k.x[1], k.x[2]
	s, code := t.stream(handle)
	if code != 0 || n == 0 {
		return code
	}
	if src == 0 || t.c.find(dst, n) == nil {
		return driver.InvalidValue
	}
	c := t.c
	dev := c.dev
	if t.m.isPinned(src, n) {
		o := c.enqueue(s, func() error {
			b := make([]byte, n)
			c.m.host.read(b, src)
			return dev.CopyIn(driver.Ptr(dst), b)
		})
		if async {
			return 0
		}
		return c.await(o)
	}
	if !async {
		if code := c.await(c.enqueue(s, nil)); code != 0 {
			return code
		}
	}
	b := make([]byte, n)
	t.read(b, src)
	c.enqueue(s, func() error { return dev.CopyIn(driver.Ptr(dst), b) })
	return 0
}

// copyOut copies from a card to the program, and waits for it but where the copy is asynchronous and the memory
// page-locked.
func (t *thread) copyOut(k *call, handle uint64, async bool) driver.Code {
	dst, src, n := k.x[0], k.x[1], k.x[2]
	s, code := t.stream(handle)
	if code != 0 || n == 0 {
		return code
	}
	if dst == 0 || t.c.find(src, n) == nil {
		return driver.InvalidValue
	}
	c := t.c
	dev := c.dev
	if async && t.m.isPinned(dst, n) {
		c.enqueue(s, func() error {
			b := make([]byte, n)
			if err := dev.CopyOut(b, driver.Ptr(src)); err != nil {
				return err
			}
			c.m.host.write(dst, b, [2]int{0, len(b)})
			return nil
		})
		return 0
	}
	b := make([]byte, n)
	if code := c.await(c.enqueue(s, func() error { return dev.CopyOut(b, driver.Ptr(src)) })); code != 0 {
		return code
	}
	t.write(dst, b)
	return 0
}

// copyWithin copies within a card; the call does not wait.
func (t *thread) copyWithin(k *call, handle uint64) driver.Code {
	dst, src, n := k.x[0], k.x[1], k.x[2]
	s, code := t.stream(handle)
	if code != 0 || n == 0 {
		return code
	}
	if t.c.find(dst, n) == nil || t.c.find(src, n) == nil || dst < src+n && src < dst+n {
		return driver.InvalidValue
	}
	dev := t.c.dev
	t.c.enqueue(s, func() error { return dev.Copy(driver.Ptr(dst), driver.Ptr(src), n) })
	return 0
}

// set fills memory with a value of size bytes; the call does not wait.
func (t *thread) set(k *call, size int, handle uint64) driver.Code {
	dst, n := k.x[0], k.x[2]
	s, code := t.stream(handle)
	if code != 0 || n == 0 {
		return code
	}
	if dst%uint64(size) != 0 || n > 1<<48 || t.c.find(dst, n*uint64(size)) == nil {
		return driver.InvalidValue
	}
	value := binary.LittleEndian.AppendUint64(nil, k.x[1])[:size]
	dev := t.c.dev
	t.c.enqueue(s, func() error {
		if !slices.ContainsFunc(value, func(b byte) bool { return b != value[0] }) {
			return dev.Fill(driver.Ptr(dst), value[0], n*uint64(size))
		}
		piece := bytes.Repeat(value, int(min(n, pieceBytes)))
		for at, left := driver.Ptr(dst), n*uint64(size); left > 0; {
			b := piece[:min(left, uint64(len(piece)))]
			if err := dev.CopyIn(at, b); err != nil {
				return err
			}
			at, left = at+driver.Ptr(len(b)), left-uint64(len(b))
		}
		return nil
	})
	return 0
}
