// Package sim is a simulated GPU behind the interface of package driver. It executes the PTX text that it is given, warp
// by warp, so that results and counts are exact; what it says about durations is a prediction. It knows no IR and no
// array: it gets the very bytes that a card would get.
//
// A card is a data file (cards.go). A module is parsed and verified (package ptx) and refused if its target is above the
// card; a kernel is decoded once (program.go, encode.go), then executed (execute.go) with its memory accesses handed to
// a memory system that counts and a checker that looks for faults (access.go).
package sim

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"gpunotes/gpukit/internal/driver"
	"gpunotes/gpukit/internal/ptx"
)

// Options are settings of a simulated card. The zero value is the usual one.
type Options struct {
	// Unchecked turns the checker off: races, memory that was never written, divergent barriers. Addresses are always
	// checked.
	Unchecked bool
	// Uncounted turns off what the caches and the memory count.
	Uncounted bool
	// Strict makes an error of what PTX leaves open: a quotient by zero, a shuffle from a lane that is not there.
	Strict bool
	// HostBytes, if not nil, says how many bytes this machine can still give. It is asked at allocations of 64 MiB and
	// more: what the card has and the machine has not is OutOfMemory too. Memory of the card is not taken from the
	// machine before it is used.
	HostBytes func() uint64
	// Registers, if not nil, says how many registers per thread a kernel is taken to have instead of the estimate, 0 to keep
	// that: what a compiler is known to have used.
	Registers func(kernel string) int
	// Streams is how many streams the card says it has, 1 if it is 0. Work does not overlap: every call does its own.
	Streams int
}

const largeBytes = 64 << 20

// Driver gives the cards, in the order of CardNames.
type Driver struct{ Options Options }

// Devices describes all cards.
func (d Driver) Devices() ([]driver.Info, error) {
	var out []driver.Info
	for _, n := range CardNames() {
		c, err := LookupCard(n)
		if err != nil {
			return nil, err
		}
		out = append(out, c.Info())
	}
	return out, nil
}

// Open makes card i.
func (d Driver) Open(i int) (driver.Device, error) {
	names := CardNames()
	if i < 0 || i >= len(names) {
		return nil, &driver.Error{Call: "cuDeviceGet", Code: driver.InvalidDevice, Detail: fmt.Sprintf("there is no simulated card %d; there are 0 to %d", i, len(names)-1)}
	}
	c, err := LookupCard(names[i])
	if err != nil {
		return nil, err
	}
	return New(c, d.Options), nil
}

// Device is a simulated card.
type Device struct {
	mu       sync.Mutex
	card     *Card
	options  Options
	mem      *memory
	closed   bool
	record   func(driver.Record)
	clock    time.Duration // of the card
	launches uint64
	last     *Stats
}

// New makes a card with nothing in its memory.
func New(card *Card, o Options) *Device {
	return &Device{card: card, options: o, mem: newMemory(uint64(card.MemoryBytes))}
}

// Card is the card that this device is.
func (d *Device) Card() *Card { return d.card }

// LastLaunch is what the last launch that ended well did, nil before one.
func (d *Device) LastLaunch() *Stats {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.last
}

// Info describes the card.
func (d *Device) Info() driver.Info { return d.card.Info() }

// open locks the device for a call; the caller unlocks it if the error is nil.
func (d *Device) open(call string) error {
	d.mu.Lock()
	if d.closed {
		d.mu.Unlock()
		return &driver.Error{Call: call, Code: driver.Deinitialized, Detail: "the device is closed"}
	}
	return nil
}

// MemInfo says how much of the card's memory is free.
func (d *Device) MemInfo() (free, total uint64, err error) {
	if err := d.open("cuMemGetInfo"); err != nil {
		return 0, 0, err
	}
	defer d.mu.Unlock()
	return d.mem.capacity - d.mem.used, d.mem.capacity, nil
}

// Alloc gives n bytes, which are zero.
func (d *Device) Alloc(n uint64) (driver.Ptr, error) {
	const call = "cuMemAlloc"
	if err := d.open(call); err != nil {
		return 0, err
	}
	defer d.mu.Unlock()
	if n == 0 {
		return 0, &driver.Error{Call: call, Code: driver.InvalidValue, Detail: "0 bytes asked for"}
	}
	if d.options.HostBytes != nil && n >= largeBytes && n <= d.mem.capacity-d.mem.used {
		if have, promised := d.options.HostBytes(), d.mem.used-d.mem.touched; n+promised > have {
			return 0, &driver.Error{Call: call, Code: driver.OutOfMemory, Detail: fmt.Sprintf("%s asked for: the simulated card has them, but this machine has only %s left, of which %s are promised; take fewer elements", size(n), size(have), size(promised))}
		}
	}
	s, err := d.mem.alloc(n, false)
	if err != nil {
		if e := d.card.CheckAlloc(n, d.mem.capacity-d.mem.used); e != nil {
			return 0, e
		}
		return 0, &driver.Error{Call: call, Code: driver.OutOfMemory, Detail: err.Error()}
	}
	return driver.Ptr(s.base), nil
}

// Free gives memory back.
func (d *Device) Free(p driver.Ptr) error {
	const call = "cuMemFree"
	if err := d.open(call); err != nil {
		return err
	}
	defer d.mu.Unlock()
	if p != 0 && !d.mem.free(uint64(p)) {
		return &driver.Error{Call: call, Code: driver.InvalidValue, Detail: fmt.Sprintf("%#x is no allocation, or was freed before", uint64(p))}
	}
	return nil
}

// CopyIn copies from host to device.
func (d *Device) CopyIn(dst driver.Ptr, src []byte) error {
	const call = "cuMemcpyHtoD"
	if err := d.open(call); err != nil {
		return err
	}
	defer d.mu.Unlock()
	if err := d.mem.write(call, dst, src); err != nil {
		return err
	}
	d.done(driver.Record{Op: driver.HostToDevice, Bytes: uint64(len(src))})
	return nil
}

// CopyOut copies from device to host.
func (d *Device) CopyOut(dst []byte, src driver.Ptr) error {
	const call = "cuMemcpyDtoH"
	if err := d.open(call); err != nil {
		return err
	}
	defer d.mu.Unlock()
	if err := d.mem.read(call, dst, src); err != nil {
		return err
	}
	d.done(driver.Record{Op: driver.DeviceToHost, Bytes: uint64(len(dst))})
	return nil
}

// Copy copies within the device.
func (d *Device) Copy(dst, src driver.Ptr, n uint64) error {
	const call = "cuMemcpyDtoD"
	if err := d.open(call); err != nil {
		return err
	}
	defer d.mu.Unlock()
	if dst < src+driver.Ptr(n) && src < dst+driver.Ptr(n) && n > 0 {
		return &driver.Error{Call: call, Code: driver.InvalidValue, Detail: fmt.Sprintf("%d bytes at %#x and at %#x overlap", n, uint64(src), uint64(dst))}
	}
	if err := d.mem.each(call, dst, n, func(*segment, uint64, uint64, uint64) {}); err != nil {
		return err
	}
	at := dst
	err := d.mem.pieces(call, src, n, func(p []byte) {
		d.mem.write(call, at, p) // within the range looked at above
		at += driver.Ptr(len(p))
	})
	if err != nil {
		return err
	}
	d.done(driver.Record{Op: driver.DeviceToDevice, Bytes: n})
	return nil
}

// Streams is 1, unless Options say otherwise.
func (d *Device) Streams() int { return max(d.options.Streams, 1) }

// Pinned gives ordinary memory: a copy is done when its call returns.
func (d *Device) Pinned(n int) ([]byte, error) {
	if err := d.open("cuMemHostAlloc"); err != nil {
		return nil, err
	}
	d.mu.Unlock()
	return make([]byte, n), nil
}

// FreePinned leaves the memory to the garbage collector.
func (d *Device) FreePinned([]byte) error { return nil }

// StartIn is CopyIn.
func (d *Device) StartIn(_ driver.Stream, dst driver.Ptr, src []byte) error {
	return d.CopyIn(dst, src)
}

// StartOut is CopyOut.
func (d *Device) StartOut(_ driver.Stream, dst []byte, src driver.Ptr) error {
	return d.CopyOut(dst, src)
}

// Mark makes a mark that is reached.
func (d *Device) Mark(s driver.Stream) (driver.Mark, error) { return driver.Mark{Stream: s}, d.Sync() }

// After has nothing to wait for.
func (d *Device) After(driver.Stream, driver.Mark) error { return d.Sync() }

// Wait has nothing to wait for.
func (d *Device) Wait(driver.Mark) error { return d.Sync() }

// CancelWord is 0: the executor asks.
func (d *Device) CancelWord() driver.Ptr { return 0 }

// Fill sets n bytes.
func (d *Device) Fill(dst driver.Ptr, value byte, n uint64) error {
	const call = "cuMemsetD8"
	if err := d.open(call); err != nil {
		return err
	}
	defer d.mu.Unlock()
	if err := d.mem.fill(call, dst, value, n); err != nil {
		return err
	}
	d.done(driver.Record{Op: driver.Memset, Bytes: n})
	return nil
}

// Poke writes memory while a launch runs, as a host does whose memory is mapped. It may be called from the launch's Cancel
// and from nowhere else.
func (d *Device) Poke(dst driver.Ptr, src []byte) error {
	return d.mem.write("cuMemHostAlloc", dst, src)
}

// done gives a finished operation its place in time.
func (d *Device) done(r driver.Record) {
	r.Start, r.Duration, r.Simulated = d.clock, d.card.duration(&r), true
	d.clock += r.Duration
	if d.record != nil {
		d.record(r)
	}
}

// Record makes the device report what it does; each call is reported before it returns.
func (d *Device) Record(f func(driver.Record)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.record = f
}

// Sync has nothing to wait for.
func (d *Device) Sync() error {
	if err := d.open("cuCtxSynchronize"); err != nil {
		return err
	}
	d.mu.Unlock()
	return nil
}

// Lost is always nil.
func (d *Device) Lost() error { return nil }

// Close frees everything.
func (d *Device) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closed = true
	d.mem = newMemory(uint64(d.card.MemoryBytes))
	return nil
}

type module struct {
	d        *Device
	m        *ptx.Module
	globals  map[string]*symbol
	segments []*segment
	constant int
	programs map[string]*kernel
	unloaded bool
}

// Load makes a module of PTX text.
func (d *Device) Load(image []byte) (driver.Module, error) {
	const call = "cuModuleLoadDataEx"
	if err := d.open(call); err != nil {
		return nil, err
	}
	defer d.mu.Unlock()
	image = bytes.TrimRight(image, "\x00")
	if len(bytes.TrimSpace(image)) == 0 {
		return nil, &driver.Error{Call: call, Code: driver.InvalidImage, Detail: "the image is empty"}
	}
	if bytes.HasPrefix(image, []byte("\x7fELF")) || bytes.HasPrefix(image, []byte("\x50\xed\x55\xba")) {
		return nil, &driver.Error{Call: call, Code: driver.NoBinaryForGPU, Detail: "the image is machine code of a card; a simulated card takes PTX text"}
	}
	info := d.card.Info()
	refuse := func(code driver.Code, log string) error {
		return &driver.Error{Call: call, Code: code, Log: log}
	}
	m, err := ptx.Parse(string(image))
	if err != nil {
		return nil, refuse(driver.InvalidPTX, "ptx error: "+err.Error())
	}
	if newest := (ptx.Version{Major: info.PTX.Major, Minor: info.PTX.Minor}); newest.Less(m.Version) {
		return nil, refuse(driver.UnsupportedPTXVersion, fmt.Sprintf("ptx error: Unsupported .version %v; current version is '%v'", m.Version, newest))
	}
	if m.Target > info.SM() {
		return nil, refuse(driver.NoBinaryForGPU, fmt.Sprintf("ptx error: .target sm_%d is above %s, which is sm_%d", m.Target, info.Name, info.SM()))
	}
	if m.AddressSize != 64 {
		return nil, refuse(driver.InvalidPTX, fmt.Sprintf("ptx error: .address_size %d; 64 is needed", m.AddressSize))
	}
	mod := &module{d: d, m: m, globals: map[string]*symbol{}, programs: map[string]*kernel{}}
	for i := range m.Vars {
		v := &m.Vars[i]
		if v.Space != ptx.Global && v.Space != ptx.Const || v.Size() == 0 {
			continue
		}
		if v.Space == ptx.Const {
			if mod.constant = roundUp(mod.constant, v.Alignment()) + v.Size(); mod.constant > info.Constant {
				mod.free()
				return nil, refuse(driver.InvalidPTX, fmt.Sprintf("ptx error: %d bytes of constant data or more, but a module may have %d", mod.constant, info.Constant))
			}
		}
		s, err := d.mem.alloc(uint64(v.Size()), v.Space == ptx.Const)
		if err != nil {
			mod.free()
			return nil, &driver.Error{Call: call, Code: driver.OutOfMemory, Detail: fmt.Sprintf("variable %s: %v", v.Name, err)}
		}
		s.variable = v.Name
		mod.segments = append(mod.segments, s)
		mod.globals[v.Name] = &symbol{space: v.Space, addr: s.base, size: v.Size()}
		var raw []byte
		for _, x := range v.Init {
			raw = append(raw, binary.LittleEndian.AppendUint64(nil, x)[:v.Type.Size()]...)
		}
		d.mem.write(call, driver.Ptr(s.base), raw)
	}
	return mod, nil
}

func (d *Device) registers(kernel string) int {
	if d.options.Registers == nil {
		return 0
	}
	return min(d.options.Registers(kernel), d.card.RegistersPerThread)
}

func (m *module) free() {
	for _, s := range m.segments {
		for i, t := range m.d.mem.segs {
			if s == t {
				m.d.mem.remove(i)
				break
			}
		}
	}
	m.segments = nil
}

// Function returns a kernel, decoded.
func (m *module) Function(name string) (driver.Function, error) {
	const call = "cuModuleGetFunction"
	if err := m.d.open(call); err != nil {
		return nil, err
	}
	defer m.d.mu.Unlock()
	if m.unloaded {
		return nil, &driver.Error{Call: call, Code: driver.InvalidHandle, Detail: "the module is unloaded"}
	}
	if k := m.programs[name]; k != nil {
		return k, nil
	}
	f := m.m.Func(name)
	if f == nil || !f.Entry || f.Proto {
		return nil, &driver.Error{Call: call, Code: driver.NotFound, Detail: fmt.Sprintf("the module has no kernel %q", name)}
	}
	p, err := compile(m.m, f, m.globals)
	if err != nil {
		return nil, &driver.Error{Call: call, Code: driver.InvalidPTX, Detail: err.Error()}
	}
	k := &kernel{m: m, p: p}
	k.attributes = driver.Attributes{
		Name: name, Registers: min(EstimateRegisters(m.m, f), m.d.card.RegistersPerThread), Shared: p.shared, Local: p.local, Constant: m.constant,
		PTX: driver.Version{Major: m.m.Version.Major, Minor: m.m.Version.Minor}, Target: m.m.Target,
	}
	if known := m.d.registers(name); known > 0 {
		k.attributes.Registers = known
	}
	for _, b := range f.Bounds {
		switch b.Name {
		case "maxnreg":
			k.attributes.Registers = min(k.attributes.Registers, b.Values[0])
		case "maxntid", "reqntid":
			n := driver.Dim{X: 1, Y: 1, Z: 1}
			for i, v := range b.Values {
				*[]*int{&n.X, &n.Y, &n.Z}[i] = v
			}
			if b.Name == "reqntid" {
				k.required = n
			}
			k.bound = n.Count()
		}
	}
	k.attributes.MaxThreads = m.d.card.MaxThreads(k.attributes.Registers)
	if k.bound > 0 {
		k.attributes.MaxThreads = min(k.attributes.MaxThreads, k.bound)
	}
	m.programs[name] = k
	return k, nil
}

// Global returns the place of a variable.
func (m *module) Global(name string) (driver.Ptr, uint64, error) {
	const call = "cuModuleGetGlobal"
	if err := m.d.open(call); err != nil {
		return 0, 0, err
	}
	defer m.d.mu.Unlock()
	s := m.globals[name]
	if s == nil || m.unloaded {
		return 0, 0, &driver.Error{Call: call, Code: driver.NotFound, Detail: fmt.Sprintf("the module has no variable %q", name)}
	}
	return driver.Ptr(s.addr), uint64(s.size), nil
}

// Unload frees the module's variables.
func (m *module) Unload() error {
	const call = "cuModuleUnload"
	if err := m.d.open(call); err != nil {
		return err
	}
	defer m.d.mu.Unlock()
	if m.unloaded {
		return &driver.Error{Call: call, Code: driver.InvalidHandle, Detail: "the module is unloaded already"}
	}
	m.unloaded = true
	m.free()
	return nil
}

type kernel struct {
	m          *module
	p          *program
	attributes driver.Attributes
	required   driver.Dim // block size that it asks for; zero for any
	bound      int        // threads per block that it allows; 0 for no bound
	deps       []dependence
}

// Attributes says what the kernel needs.
func (k *kernel) Attributes() driver.Attributes { return k.attributes }

// Check compares a launch with the limits of card and kernel.
func (k *kernel) Check(l driver.Launch) error {
	if err := k.m.d.card.CheckLaunch(k.attributes, l); err != nil {
		return err
	}
	bad := func(format string, args ...any) error {
		return &driver.Error{Call: "cuLaunchKernel", Code: driver.InvalidValue, Detail: fmt.Sprintf("kernel %s: ", k.p.f.Name) + fmt.Sprintf(format, args...)}
	}
	if k.required != (driver.Dim{}) && k.required != l.Block {
		return bad("block %v, but it asks for %v (.reqntid)", l.Block, k.required)
	}
	if n := l.Block.Count(); k.bound > 0 && n > k.bound {
		return bad("block %v has %d threads, but it allows %d (.maxntid)", l.Block, n, k.bound)
	}
	if len(l.Params) != len(k.p.params) {
		return bad("%d parameters, but it has %d", len(l.Params), len(k.p.params))
	}
	for i, p := range k.p.params {
		if p.size > 8 {
			return bad("parameter %d has %d bytes; a parameter is one value of up to 8", i, p.size)
		}
	}
	return nil
}

// Launch executes the kernel.
func (k *kernel) Launch(l driver.Launch) (err error) {
	const call = "cuLaunchKernel"
	d := k.m.d
	if err := d.open(call); err != nil {
		return err
	}
	defer d.mu.Unlock()
	if k.m.unloaded {
		return &driver.Error{Call: call, Code: driver.InvalidHandle, Detail: "the module is unloaded"}
	}
	if err := k.Check(l); err != nil {
		return err
	}
	x := &execution{p: k.p, mem: d.mem, grid: l.Grid, block: l.Block, dynamic: l.Shared, sms: d.card.Multiprocessors, number: d.launches, strict: d.options.Strict, cancel: l.Cancel, tell: l.Progress, budget: l.Steps}
	for i, p := range k.p.params {
		for len(x.params) < p.off+p.size {
			x.params = append(x.params, 0)
		}
		copy(x.params[p.off:p.off+p.size], binary.LittleEndian.AppendUint64(nil, l.Params[i]))
	}
	x.hold = min(max(d.card.Occupancy(l.Block.Count(), k.attributes.Registers, k.attributes.Shared+l.Shared).Blocks, 1), k.p.affordable(x))
	var memory *hierarchy
	if !d.options.Uncounted {
		memory = newMemorySystem(d.card)
		x.system, x.memory, x.card = memory, memory, d.card
		if k.deps == nil {
			k.deps = k.p.dependences(d.card)
		}
		x.deps = k.deps
	}
	if !d.options.Unchecked {
		c := newChecker(l.Grid, l.Block, k.p.sharedBytes(l.Shared), k.p.where)
		c.name = l.Name
		if l.SharedName != nil {
			c.sharedName = func(addr uint64) string {
				if v, off, ok := k.p.sharedAt(addr); ok {
					return l.SharedName(v, off)
				}
				return ""
			}
		}
		x.checker = c
	}
	d.launches++
	k.p.forget()
	defer func() {
		if r := recover(); r != nil {
			err = &driver.Error{Call: call, Code: driver.Unknown, Detail: fmt.Sprintf("internal error of the simulator: %v\n%s", r, debug.Stack())}
		}
	}()
	if err := x.run(); err != nil {
		if e := (*driver.Error)(nil); errors.As(err, &e) && e.Place != nil && e.Place.Kernel == "" {
			e.Place.Kernel = k.p.f.Name
		}
		return err
	}
	d.last = x.stats()
	if memory != nil {
		d.last.Memory = &memory.Counts
	}
	l.Params, l.Cancel, l.Progress = nil, nil, nil
	d.done(driver.Record{Op: driver.Kernel, Attributes: k.attributes, Launch: l, Stats: d.last})
	return nil
}

// affordable is how many blocks per multiprocessor this machine has the memory to hold at a time: a gigabyte of
// registers and local memory in all, but at least a block.
func (p *program) affordable(x *execution) int {
	warps := (x.block.Count() + 31) / 32
	each := warps * (p.regs*256 + 32*p.frame) * min(x.sms, x.grid.Count())
	return max(1<<30/max(each, 1), 1)
}

// where is the place of instruction pc (access.pc) for a message.
func (p *program) where(pc int) string {
	file, line, col := p.source(pc)
	text, at := p.text(pc)
	if file != "" {
		return fmt.Sprintf("%s:%d:%d (%s)", file, line, col, text)
	}
	return fmt.Sprintf("PTX line %d (%s)", at, text)
}

// forget forgets where the last accesses were: that memory may have been freed.
func (p *program) forget() {
	for i := range p.code {
		if r := p.code[i].mem; r != nil {
			r.win = window{}
		}
	}
}
