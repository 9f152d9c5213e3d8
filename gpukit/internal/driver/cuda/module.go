//go:build cuda

package cuda

import (
	"bytes"
	"fmt"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unsafe"

	"gorgonia.org/cu"

	"gpunotes/gpukit/internal/driver"
)

// module is a loaded image.
type module struct {
	d    *device
	cu   cu.Module
	text ptxText

	gate     sync.RWMutex // after context.use: shared while the handle is used
	unloaded bool         // of gate
}

// ptxText is what the text of an image says, zero for a binary.
type ptxText struct {
	version driver.Version
	target  int
	entries map[string]entry
}

// entry is a kernel's head.
type entry struct {
	params   int
	long     string     // the first parameter of more than one value, "" if there is none
	required driver.Dim // .reqntid
	bound    int        // threads of .maxntid, 0 for none
}

var (
	ptxComment = regexp.MustCompile(`(?s)//[^\n]*|/\*.*?\*/`)
	ptxVersion = regexp.MustCompile(`\.version\s+(\d+)\.(\d+)`)
	ptxTarget  = regexp.MustCompile(`\.target\s+sm_(\d+)`)
	ptxEntry   = regexp.MustCompile(`\.entry\s+([\w$%]+)\s*(?:\(([^)]*)\))?([^{;]*)[{;]`)
	ptxArray   = regexp.MustCompile(`\.[bsuf](\d+)\s+[\w$%]+\s*\[\s*(\d+)\s*\]`)
	ptxBound   = regexp.MustCompile(`\.(maxntid|reqntid)\s+(\d+)(?:\s*,\s*(\d+))?(?:\s*,\s*(\d+))?`)
)

// readPTX reads the heads of PTX text.
func readPTX(image []byte) ptxText {
	s := ptxComment.ReplaceAllString(string(image), " ")
	number := func(s string) int { n, _ := strconv.Atoi(s); return n }
	t := ptxText{entries: map[string]entry{}}
	if m := ptxVersion.FindStringSubmatch(s); m != nil {
		t.version = driver.Version{Major: number(m[1]), Minor: number(m[2])}
	}
	if m := ptxTarget.FindStringSubmatch(s); m != nil {
		t.target = number(m[1])
	}
	for _, m := range ptxEntry.FindAllStringSubmatch(s, -1) {
		var e entry
		for _, p := range strings.Split(m[2], ",") {
			if !strings.Contains(p, ".param") {
				continue
			}
			e.params++
			if a := ptxArray.FindStringSubmatch(p); a != nil && e.long == "" && number(a[1])/8*number(a[2]) > 8 {
				e.long = strings.Join(strings.Fields(p), " ")
			}
		}
		for _, b := range ptxBound.FindAllStringSubmatch(m[3], -1) {
			n := driver.Dim{X: number(b[2]), Y: max(number(b[3]), 1), Z: max(number(b[4]), 1)}
			e.bound = n.Count()
			if b[1] == "reqntid" {
				e.required = n
			}
		}
		t.entries[m[1]] = e
	}
	return t
}

// Load makes a module of PTX text, or of a binary that the driver takes.
func (d *device) Load(image []byte) (driver.Module, error) {
	const call = "cuModuleLoadDataEx"
	if err := d.usable(call); err != nil {
		return nil, err
	}
	m := &module{d: d}
	binary := bytes.HasPrefix(image, []byte("\x7fELF")) || bytes.HasPrefix(image, []byte("\x50\xed\x55\xba"))
	if !binary {
		image = bytes.TrimRight(image, "\x00") // the call below adds one
		if len(bytes.TrimSpace(image)) == 0 {
			return nil, &driver.Error{Call: call, Code: driver.InvalidImage, Detail: "the image is empty"}
		}
		m.text = readPTX(image)
		if sm := d.info.SM(); m.text.target > sm {
			return nil, &driver.Error{Call: call, Code: driver.NoBinaryForGPU, Log: fmt.Sprintf(".target sm_%d is above %s, which is sm_%d", m.text.target, d.info.Name, sm)}
		}
	}
	log := make([]byte, 16<<10)
	var pin runtime.Pinner // its address goes to the driver as a number
	pin.Pin(&log[0])
	defer pin.Unpin()
	err := d.do(call, func() error {
		var err error
		m.cu, err = cu.LoadDataEx(string(image), &cu.JITErrorLogBuffer{Buffer: log})
		if err != nil {
			return d.refused(call, err, log, m.text)
		}
		d.mu.Lock()
		d.modules[m] = struct{}{}
		d.mu.Unlock()
		return nil
	})
	if err != nil {
		return nil, err
	}
	return m, nil
}

// refused is the error of an image that the driver does not take.
func (d *device) refused(call string, err error, log []byte, text ptxText) error {
	said, _, _ := bytes.Cut(log, []byte{0})
	e := d.c.failed(call, err, "")
	e.Log = strings.TrimSpace(string(said))
	// Drivers before 11.1 have no code of its own for it.
	if e.Code == driver.InvalidPTX && strings.Contains(e.Log, "Unsupported .version") {
		e.Code = driver.UnsupportedPTXVersion
	}
	switch e.Code {
	case driver.UnsupportedPTXVersion:
		e.Detail = fmt.Sprintf("the code is PTX %v; the driver is of CUDA %v and takes PTX up to %v: install a newer driver", text.version, d.info.Driver, d.info.PTX)
	case driver.InvalidPTX, driver.NoBinaryForGPU, driver.InvalidImage:
		if e.Log != "" {
			e.Detail = ""
		}
	}
	return e
}

// with runs f in do while the module is loaded.
func (m *module) with(call string, f func() error) error {
	return m.d.do(call, func() error { return m.here(call, f) })
}

// here is with, called in do.
func (m *module) here(call string, f func() error) error {
	m.gate.RLock()
	defer m.gate.RUnlock()
	if m.unloaded {
		return &driver.Error{Call: call, Code: driver.InvalidHandle, Detail: "the module is unloaded"}
	}
	return f()
}

// Global returns address and size of a variable.
func (m *module) Global(name string) (driver.Ptr, uint64, error) {
	const call = "cuModuleGetGlobal"
	if strings.Contains(name, "\x00") {
		return 0, 0, &driver.Error{Call: call, Code: driver.NotFound, Detail: fmt.Sprintf("the module has no variable %q", name)}
	}
	var at cu.DevicePtr
	var n int64
	err := m.with(call, func() error {
		var err error
		if at, n, err = m.cu.Global(name); err != nil {
			detail := ""
			if codeOf(err) == driver.NotFound {
				detail = fmt.Sprintf("the module has no variable %q", name)
			}
			return m.d.c.failed(call, err, detail)
		}
		m.d.mu.Lock()
		defer m.d.mu.Unlock()
		m.d.memory.add(region{base: uint64(at), size: uint64(n), module: m})
		return nil
	})
	return driver.Ptr(at), uint64(n), err
}

// Unload frees the module, when no kernel runs.
func (m *module) Unload() error {
	const call = "cuModuleUnload"
	d := m.d
	if err := d.settle(call); err != nil { // the driver would wait
		return err
	}
	return d.do(call, func() error {
		m.gate.Lock()
		defer m.gate.Unlock()
		if m.unloaded {
			return &driver.Error{Call: call, Code: driver.InvalidHandle, Detail: "the module is unloaded already"}
		}
		m.unloaded = true
		d.mu.Lock()
		delete(d.modules, m)
		d.memory = slices.DeleteFunc(d.memory, func(r region) bool { return r.module == m })
		d.mu.Unlock()
		if err := m.cu.Unload(); err != nil {
			return d.c.failed(call, err, "")
		}
		return nil
	})
}

// function is a kernel.
type function struct {
	m          *module
	cu         cu.Function
	attributes driver.Attributes
	entry      *entry // nil if the image is no text

	mu      sync.Mutex
	allowed int // bytes of dynamic shared memory that it may have
}

// Function returns a kernel.
func (m *module) Function(name string) (driver.Function, error) {
	const call = "cuModuleGetFunction"
	missing := fmt.Sprintf("the module has no kernel %q", name)
	if strings.Contains(name, "\x00") {
		return nil, &driver.Error{Call: call, Code: driver.NotFound, Detail: missing}
	}
	f := &function{m: m}
	err := m.with(call, func() (err error) {
		if f.cu, err = m.cu.Function(name); err != nil {
			if codeOf(err) != driver.NotFound {
				missing = ""
			}
			return m.d.c.failed(call, err, missing)
		}
		ask := func(a cu.FunctionAttribute) (n int) {
			if err == nil {
				if n, err = f.cu.Attribute(a); err != nil {
					err = m.d.c.failed("cuFuncGetAttribute", err, "")
				}
			}
			return n
		}
		f.attributes = driver.Attributes{
			Name: name, Registers: ask(cu.NumRegs), Shared: ask(cu.SharedSizeBytes), Local: ask(cu.LocalSizeBytes), Constant: ask(cu.ConstSizeBytes),
			MaxThreads: ask(cu.FnMaxThreadsPerBlock), PTX: m.text.version, Target: ask(cu.PtxVersion), // it is the .target's
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	f.allowed = m.d.info.SharedPerBlock - f.attributes.Shared
	if e, ok := m.text.entries[name]; ok {
		f.entry = &e
		f.attributes.Target = m.text.target
	}
	return f, nil
}

// Attributes says what the kernel needs.
func (f *function) Attributes() driver.Attributes { return f.attributes }

// Check compares a launch with the limits of device and kernel, so that the error says more than the driver's number.
func (f *function) Check(l driver.Launch) error {
	info, a := f.m.d.info, f.attributes
	bad := func(code driver.Code, format string, args ...any) error {
		return &driver.Error{Call: "cuLaunchKernel", Code: code, Detail: fmt.Sprintf("kernel %s: ", a.Name) + fmt.Sprintf(format, args...)}
	}
	for _, part := range []struct {
		name, unit string
		n, most    driver.Dim
	}{{"grid", "blocks", l.Grid, info.MaxGrid}, {"block", "threads", l.Block, info.MaxBlock}} {
		for i, axis := range "xyz" {
			n, most := [3]int{part.n.X, part.n.Y, part.n.Z}[i], [3]int{part.most.X, part.most.Y, part.most.Z}[i]
			if n < 1 {
				return bad(driver.InvalidValue, "%s %v has %d %s along %c; there must be at least 1", part.name, part.n, n, part.unit, axis)
			}
			if n > most {
				hint := ""
				if part.name == "grid" && axis != 'x' && l.Grid.X <= most {
					hint = "; put the long axis on x"
				}
				return bad(driver.InvalidValue, "%s %v has %d %s along %c; %s takes at most %d there%s", part.name, part.n, n, part.unit, axis, info.Name, most, hint)
			}
		}
	}
	threads := l.Block.Count()
	if threads > info.MaxThreadsPerBlock {
		return bad(driver.InvalidValue, "block %v has %d threads; %s takes at most %d per block", l.Block, threads, info.Name, info.MaxThreadsPerBlock)
	}
	if e := f.entry; e != nil {
		switch {
		case e.required != (driver.Dim{}) && e.required != l.Block:
			return bad(driver.InvalidValue, "block %v, but it asks for %v (.reqntid)", l.Block, e.required)
		case e.bound > 0 && threads > e.bound:
			return bad(driver.InvalidValue, "block %v has %d threads, but it allows %d (.maxntid)", l.Block, threads, e.bound)
		}
	}
	if threads > a.MaxThreads {
		return bad(driver.LaunchOutOfResources, "block %v has %d threads of %d registers each; %s has %d registers per block. The largest block that fits has %d threads",
			l.Block, threads, a.Registers, info.Name, info.RegistersPerBlock, a.MaxThreads)
	}
	switch {
	case l.Shared < 0:
		return bad(driver.InvalidValue, "%d bytes of dynamic shared memory", l.Shared)
	case a.Shared+l.Shared > info.SharedPerBlockOptIn:
		return bad(driver.InvalidValue, "%s of static and %s of dynamic shared memory are %s; %s takes at most %s per block",
			size(a.Shared), size(l.Shared), size(a.Shared+l.Shared), info.Name, size(info.SharedPerBlockOptIn))
	}
	if e := f.entry; e != nil {
		switch {
		case e.long != "":
			return bad(driver.InvalidValue, "parameter %s has more than 8 bytes; a parameter is one value of up to 8", e.long)
		case len(l.Params) != e.params:
			return bad(driver.InvalidValue, "%d parameters, but it has %d", len(l.Params), e.params)
		}
	}
	return nil
}

// allow asks for dynamic shared memory beyond what every kernel may have. Called in do.
func (f *function) allow(n int) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if n <= f.allowed {
		return nil
	}
	if err := allowShared(f.cu, n); err != nil {
		return f.m.d.c.failed("cuFuncSetAttribute", err, fmt.Sprintf("kernel %s: %s of dynamic shared memory: %s", f.attributes.Name, size(n), words(codeOf(err))))
	}
	f.allowed = n
	return nil
}

// Launch starts the kernel. While others are being stopped it waits.
func (f *function) Launch(l driver.Launch) error {
	const call = "cuLaunchKernel"
	d := f.m.d
	if err := d.usable(call); err != nil {
		return err
	}
	if err := f.m.here(call, func() error { return nil }); err != nil {
		return err
	}
	if _, err := d.lane(call, l.Stream); err != nil {
		return err
	}
	if err := f.Check(l); err != nil {
		return err
	}
	params := make([]unsafe.Pointer, len(l.Params))
	values := append([]uint64(nil), l.Params...) // cu reads 8 bytes of each
	for i := range values {
		params[i] = unsafe.Pointer(&values[i])
	}
	x := &launch{name: f.attributes.Name, cancel: l.Cancel}
	if err := d.enter(call, x); err != nil {
		return err
	}
	shown := l
	shown.Params, shown.Cancel, shown.Progress = nil, nil, nil
	o := operation{record: driver.Record{Op: driver.Kernel, Attributes: f.attributes, Launch: shown}, launch: x}
	err := d.enqueue(call, l.Stream, o, func(s cu.Stream) error {
		return f.m.here(call, func() error {
			if err := f.allow(l.Shared); err != nil {
				return err
			}
			err := f.cu.Launch(l.Grid.X, l.Grid.Y, l.Grid.Z, l.Block.X, l.Block.Y, l.Block.Z, l.Shared, s, params)
			if err != nil {
				return d.c.failed(call, err, fmt.Sprintf("kernel %s: %s", f.attributes.Name, words(codeOf(err))))
			}
			return nil
		})
	})
	if err != nil {
		d.leave(x)
	}
	return err
}
