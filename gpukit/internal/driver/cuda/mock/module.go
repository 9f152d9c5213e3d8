//go:build cuda

package main

import (
	"encoding/binary"
	"errors"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"gpunotes/gpukit/internal/driver"
)

// module is a module of a context.
type module struct {
	c    *context
	m    driver.Module
	text string // PTX

	functions map[string]uint64 // handles
	variables map[uint64]bool   // allocations
}

// function is a kernel.
type function struct {
	m       *module
	f       driver.Function
	sizes   []int // bytes of the parameters
	dynamic int   // bytes of dynamic shared memory that were asked for
}

// Options of the compiler in the driver. Source: cuda.h, CUjit_option.
const (
	jitWallTime    = 2
	jitInfoBuffer  = 3
	jitInfoBytes   = 4
	jitErrorBuffer = 5
	jitErrorBytes  = 6
)

// Attributes of functions. Source: cuda.h, CUfunction_attribute.
const (
	functionMaxThreads = iota
	functionShared
	functionConstant
	functionLocal
	functionRegisters
	functionPTX
	functionBinary
	functionCacheMode
	functionDynamicShared
	functionCarveout
)

func init() {
	for name, e := range map[string]entry{
		"cuModuleLoad":         {run: moduleLoad, out: []int{0, 1}},
		"cuModuleLoadData":     {run: func(t *thread, k *call) driver.Code { return t.load(k, 0, 0, 0) }, out: []int{0, 1}},
		"cuModuleLoadDataEx":   {run: func(t *thread, k *call) driver.Code { return t.load(k, k.int(2), k.x[3], k.x[4]) }, out: []int{0, 1}},
		"cuModuleUnload":       {run: moduleUnload},
		"cuModuleGetFunction":  {run: moduleGetFunction, out: []int{0, 2}},
		"cuModuleGetGlobal_v2": {run: moduleGetGlobal, out: []int{3}},
		"cuFuncGetAttribute":   {run: funcGetAttribute, out: []int{0}},
		"cuFuncSetAttribute":   {run: funcSetAttribute},
		"cuFuncSetCacheConfig": {run: func(t *thread, k *call) driver.Code { _, code := t.function(k.x[0]); return code }},
		"cuFuncSetSharedMemConfig": {run: func(t *thread, k *call) driver.Code {
			_, code := t.function(k.x[0])
			return code
		}},
		"cuOccupancyMaxActiveBlocksPerMultiprocessor":          {run: occupancy, out: []int{0}},
		"cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags": {run: occupancy, out: []int{0}},
		"cuOccupancyMaxPotentialBlockSize":                     {run: largestBlock, out: []int{0, 1}},
		"cuLaunchKernel":                                       {run: launchKernel},
	} {
		entries[name] = e
	}
}

func moduleLoad(t *thread, k *call) driver.Code {
	image, err := os.ReadFile(t.wire.text(k.x[1]))
	if err != nil {
		return 301 // CUDA_ERROR_FILE_NOT_FOUND
	}
	m, code, _ := t.newModule(image)
	if code == 0 {
		t.put64(k.x[0], t.m.handle(m))
	}
	return code
}

// load loads an image with options: n numbers, and as many values.
func (t *thread) load(k *call, n int, options, values uint64) driver.Code {
	image := []byte(t.wire.text(k.x[1])) // of machine code its first bytes, which are enough to refuse it
	m, code, log := t.newModule(image)
	if n > 0 && (options == 0 || values == 0) {
		return driver.InvalidValue
	}
	value := map[int]uint64{}
	place := map[int]uint64{}
	if n > 0 {
		o := make([]byte, 4*n)
		t.read(o, options)
		for i, v := range t.words(values, n) {
			option := int(binary.LittleEndian.Uint32(o[4*i:]))
			place[option], value[option] = values+8*uint64(i), v
		}
	}
	for _, o := range []struct {
		buffer, bytes int
		text          string
	}{{jitErrorBuffer, jitErrorBytes, log}, {jitInfoBuffer, jitInfoBytes, ""}} {
		if room := int(uint32(value[o.bytes])); value[o.buffer] != 0 && place[o.bytes] != 0 {
			t.putText(value[o.buffer], room, o.text)
			t.put64(place[o.bytes], uint64(min(len(o.text), max(room-1, 0))))
		}
	}
	if at := place[jitWallTime]; at != 0 {
		t.putFloat(at, 1)
	}
	if code == 0 {
		t.put64(k.x[0], t.m.handle(m))
	}
	return code
}

func (t *thread) newModule(image []byte) (*module, driver.Code, string) {
	c := t.c
	dev, life := c.dev, c.life
	var loaded driver.Module
	var err error
	t.m.unlocked(func() { loaded, err = dev.Load(image) })
	if c.dead || c.life != life {
		return nil, driver.ContextIsDestroyed, ""
	}
	if err != nil {
		var e *driver.Error
		log := ""
		if errors.As(err, &e) {
			log = e.Log
		}
		return nil, codeOf(err), log
	}
	return &module{c: c, m: loaded, text: string(image), functions: map[string]uint64{}, variables: map[uint64]bool{}}, 0, ""
}

func (t *thread) module(handle uint64) (*module, driver.Code) {
	m, ok := t.m.handles[handle].(*module)
	if !ok || m.c != t.c {
		return nil, driver.InvalidHandle
	}
	return m, 0
}

// moduleUnload waits for all work: some of it may be of the module.
func moduleUnload(t *thread, k *call) driver.Code {
	m, code := t.module(k.x[0])
	if code != 0 {
		return code
	}
	if code := m.c.awaitAll(); code != 0 {
		return code
	}
	delete(t.m.handles, k.x[0])
	for _, h := range m.functions {
		delete(t.m.handles, h)
	}
	for i := 0; i < len(m.c.memory); {
		if a := m.c.memory[i]; a.fixed && m.variables[a.base] {
			m.c.memory = append(m.c.memory[:i], m.c.memory[i+1:]...)
		} else {
			i++
		}
	}
	var err error
	t.m.unlocked(func() { err = m.m.Unload() })
	if err != nil {
		return codeOf(err)
	}
	return 0
}

func moduleGetFunction(t *thread, k *call) driver.Code {
	m, code := t.module(k.x[1])
	if code != 0 {
		return code
	}
	name := t.wire.text(k.x[2])
	if h := m.functions[name]; h != 0 {
		t.put64(k.x[0], h)
		return 0
	}
	var f driver.Function
	var err error
	t.m.unlocked(func() { f, err = m.m.Function(name) })
	if err != nil {
		return codeOf(err)
	}
	h := t.m.handle(&function{m: m, f: f, sizes: parameterSizes(m.text, name)})
	m.functions[name] = h
	t.put64(k.x[0], h)
	return 0
}

var (
	comments  = regexp.MustCompile(`(?s)/\*.*?\*/|//[^\n]*`)
	parameter = regexp.MustCompile(`\.(?:pred|[busf])(\d+)\b[^\[]*(?:\[\s*(\d*)\s*\])?`)
)

// parameterSizes are the bytes of the parameters of an entry of a PTX text that was taken by the simulator: the driver
// reads as much of each, and the caller need not have more.
func parameterSizes(text, name string) []int {
	text = comments.ReplaceAllString(text, " ")
	head := regexp.MustCompile(`\.entry\s+` + regexp.QuoteMeta(name) + `\s*\(([^)]*)\)`).FindStringSubmatch(text)
	if head == nil {
		return nil // an entry without parameters need not have the brackets
	}
	var sizes []int
	for _, p := range strings.Split(head[1], ",") {
		m := parameter.FindStringSubmatch(p)
		if m == nil {
			continue
		}
		bits, _ := strconv.Atoi(m[1])
		n := 1
		if m[2] != "" {
			n, _ = strconv.Atoi(m[2])
		}
		sizes = append(sizes, bits/8*n)
	}
	return sizes
}

func moduleGetGlobal(t *thread, k *call) driver.Code {
	m, code := t.module(k.x[2])
	if code != 0 {
		return code
	}
	name := t.wire.text(k.x[3])
	var p driver.Ptr
	var n uint64
	var err error
	t.m.unlocked(func() { p, n, err = m.m.Global(name) })
	if err != nil {
		return codeOf(err)
	}
	if !m.variables[uint64(p)] {
		m.variables[uint64(p)] = true
		m.c.add(&allocation{base: uint64(p), size: n, fixed: true})
	}
	if k.x[0] != 0 {
		t.put64(k.x[0], uint64(p))
	}
	if k.x[1] != 0 {
		t.put64(k.x[1], n)
	}
	return 0
}

func (t *thread) function(handle uint64) (*function, driver.Code) {
	f, ok := t.m.handles[handle].(*function)
	if !ok {
		return nil, driver.InvalidHandle
	}
	if f.m.c != t.c {
		return nil, driver.InvalidContext
	}
	return f, 0
}

func funcGetAttribute(t *thread, k *call) driver.Code {
	f, code := t.function(k.x[2])
	if code != 0 {
		return code
	}
	a, info := f.f.Attributes(), t.c.card.Info()
	var v int
	switch k.int(1) {
	case functionMaxThreads:
		v = a.MaxThreads
	case functionShared:
		v = a.Shared
	case functionConstant:
		v = a.Constant
	case functionLocal:
		v = a.Local
	case functionRegisters:
		v = a.Registers
	case functionPTX:
		v = a.PTX.Major*10 + a.PTX.Minor
	case functionBinary:
		v = info.SM()
	case functionCacheMode:
	case functionDynamicShared:
		v = max(f.dynamic, info.SharedPerBlock-a.Shared)
	case functionCarveout:
		v = -1
	default:
		return driver.InvalidValue
	}
	t.put32(k.x[0], v)
	return 0
}

func funcSetAttribute(t *thread, k *call) driver.Code {
	f, code := t.function(k.x[0])
	if code != 0 {
		return code
	}
	v := k.int(2)
	switch k.int(1) {
	case functionDynamicShared:
		if v < 0 || v+f.f.Attributes().Shared > t.c.card.SharedPerBlockOptIn {
			return driver.InvalidValue
		}
		f.dynamic = v
	case functionCarveout:
		if v < -1 || v > 100 {
			return driver.InvalidValue
		}
	default:
		return driver.InvalidValue
	}
	return 0
}

func occupancy(t *thread, k *call) driver.Code {
	f, code := t.function(k.x[1])
	if code != 0 {
		return code
	}
	threads := k.int(2)
	if threads < 1 {
		return driver.InvalidValue
	}
	a := f.f.Attributes()
	t.put32(k.x[0], t.c.card.Occupancy(threads, a.Registers, a.Shared+int(k.x[3])).Blocks)
	return 0
}

func largestBlock(t *thread, k *call) driver.Code {
	f, code := t.function(k.x[2])
	if code != 0 {
		return code
	}
	if k.x[3] != 0 {
		return driver.NotSupported // a function of the program would have to be called
	}
	a := f.f.Attributes()
	threads, blocks := t.c.card.LargestBlock(a.Registers, a.Shared+int(k.x[4]), k.int(5))
	t.put32(k.x[0], blocks)
	t.put32(k.x[1], threads)
	return 0
}

func launchKernel(t *thread, k *call) driver.Code {
	f, code := t.function(k.x[0])
	if code != 0 {
		return code
	}
	s, code := t.stream(k.x[8])
	if code != 0 {
		return code
	}
	size := func(i int) int { return int(uint32(k.x[i])) }
	l := driver.Launch{Grid: driver.Dim{X: size(1), Y: size(2), Z: size(3)}, Block: driver.Dim{X: size(4), Y: size(5), Z: size(6)}, Shared: size(7)}
	c, a := t.c, f.f.Attributes()
	if k.x[10] != 0 {
		return driver.NotSupported // parameters in one buffer
	}
	if err := c.card.CheckLaunch(a, l); err != nil {
		return codeOf(err)
	}
	if l.Block.Count() > a.MaxThreads || a.Shared+l.Shared > max(c.card.SharedPerBlock, a.Shared+f.dynamic) {
		return driver.InvalidValue
	}
	if len(f.sizes) > 0 && k.x[9] == 0 {
		return driver.InvalidValue
	}
	for _, n := range f.sizes {
		if n > 8 {
			return driver.InvalidValue
		}
	}
	if len(f.sizes) > 0 {
		places := t.words(k.x[9], len(f.sizes))
		if slices.Contains(places, 0) {
			return driver.InvalidValue
		}
		l.Params = t.gather(places, f.sizes)
	}
	dev := c.dev
	maps := slices.Clone(c.maps)
	l.Cancel = func() bool {
		c.share(maps, dev.Poke)
		return c.killed.Load()
	}
	c.enqueue(s, func() error { return f.f.Launch(l) })
	return 0
}
