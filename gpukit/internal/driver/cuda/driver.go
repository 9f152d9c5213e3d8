//go:build cuda

package cuda

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"

	"gorgonia.org/cu"

	"gpunotes/gpukit/internal/driver"
	"gpunotes/gpukit/internal/driver/cuda/shim"
)

// Driver gives the CUDA devices of this machine, in the driver's order, which CUDA_VISIBLE_DEVICES changes. The zero value
// is ready. The driver is started by the first call that finds its library, and how that went is final: what is mended
// afterwards needs a new process.
type Driver struct{}

// The driver reads CUDA_VISIBLE_DEVICES when it starts.
const visible = "CUDA_VISIBLE_DEVICES"

var start struct {
	sync.Mutex
	done    bool
	err     error  // of cuInit
	visible string // value of the variable at that time
	set     bool
}

// begin finds the library and starts the driver.
func begin() error {
	start.Lock()
	defer start.Unlock()
	if !start.done {
		if err := shim.Load(); err != nil {
			return unloaded(err)
		}
		start.visible, start.set = os.LookupEnv(visible)
		start.err = initialize()
		start.done = true
	}
	if start.err != nil {
		return unstarted(codeOf(start.err), start.visible, start.set)
	}
	return nil
}

// unloaded is the error where there is no library.
func unloaded(err error) error {
	e := &driver.Error{Call: "dlopen", Code: driver.NoDevice, Detail: err.Error()}
	var s *shim.Error
	if errors.As(err, &s) && s.Library != "" {
		switch module := kernelModule(); {
		case module != "":
			e.Detail += fmt.Sprintf(". The driver's kernel module is here (%s), but not its library: in a container, start that with --gpus all and NVIDIA_DRIVER_CAPABILITIES=compute,utility; elsewhere install the driver's compute libraries of that very version", module)
		case s.Library == "libcuda.so.1":
			e.Detail += ". It comes with NVIDIA's driver: install that where there is a GPU; start a container with --gpus all. Without a GPU use a simulated one"
		default:
			e.Detail += fmt.Sprintf(". %s says that this is the driver's library: unset it to use libcuda.so.1", shim.Variable)
		}
	}
	return e
}

// unstarted is the error where cuInit failed, or where it found no device. It is NoDevice, for errors.Is, whatever the code.
func unstarted(c driver.Code, value string, set bool) error {
	e := &driver.Error{Call: "cuInit", Code: c}
	if c != driver.NoDevice {
		e.Cause = driver.NoDevice
	}
	const again = "; then restart the program"
	switch c {
	case driver.NoDevice:
		e.Detail = noDevice(value, set)
	case driver.StubLibrary:
		e.Detail = fmt.Sprintf("%s is the CUDA toolkit's stand-in for linking, not a driver: take the folder \"stubs\" out of LD_LIBRARY_PATH", shim.Library()) + again
	case driver.SystemDriverMismatch:
		e.Detail = "the driver's library and its kernel module are of different versions" + in(kernelModule()) + ": after an update of the driver, restart the machine; in a container, take the host's library"
	case driver.CompatNotSupportedOnDevice:
		e.Detail = "a library of CUDA's forward compatibility was found, which this device does not support: take its folder \"compat\" out of LD_LIBRARY_PATH, or update the driver" + again
	case driver.SystemNotReady:
		e.Detail = "the driver waits for a service of the system: on machines with NVSwitch start nvidia-fabricmanager" + again
	case driver.Unknown, driver.OperatingSystem:
		e.Detail = "the driver could not start; often /dev/nvidia-uvm is missing or its module hangs after a suspend: modprobe -r nvidia_uvm && modprobe nvidia_uvm" + again
	case driver.DeviceUnavailable:
		e.Detail = words(c) + again
	case driver.MPSConnectionFailed, driver.MPSRPCFailure, driver.MPSServerNotReady, driver.MPSMaxClientsReached, driver.MPSMaxConnectionsReached, driver.MPSClientTerminated:
		e.Detail = cmp.Or(describe(c), "the service that shares the device among processes (MPS) refused") + ": see nvidia-cuda-mps-control" + again
	default:
		e.Detail = cmp.Or(describe(c), "the driver could not start") + again
	}
	return e
}

// noDevice explains a driver that shows no device.
func noDevice(value string, set bool) string {
	cards := cards()
	if set {
		s := fmt.Sprintf("%s=%q hides every device", visible, value)
		if len(cards) > 0 {
			s += fmt.Sprintf(" of this machine's %d", len(cards))
		}
		return s + ": " + hidden(value) + ". It is read when the driver starts, so unset it or set it before, and restart the program"
	}
	if len(cards) > 0 {
		return fmt.Sprintf("the driver is here and the machine has %d device(s) (%s), but this process may not use one: a container needs --gpus all, a user the right to open /dev/nvidia*", len(cards), strings.Join(cards, ", "))
	}
	return "the driver is here, but no device that it knows" + in(kernelModule()) + ": see nvidia-smi. Without a GPU use a simulated one"
}

func in(module string) string {
	if module == "" {
		return ""
	}
	return " (kernel module: " + module + ")"
}

// hidden says what is wrong with a value of CUDA_VISIBLE_DEVICES that shows no device.
func hidden(value string) string {
	const takes = "it takes a list of numbers from 0, or of UUIDs as nvidia-smi -L shows them (GPU-...)"
	first, _, _ := strings.Cut(value, ",")
	first = strings.TrimSpace(first)
	upper := strings.ToUpper(first)
	switch {
	case first == "":
		return "empty shows none; " + takes
	case first[0] == '-':
		return fmt.Sprintf("%s hides itself and all that follow; %s", first, takes)
	case strings.HasPrefix(upper, "10DE"): // NVIDIA's number among PCI vendors
		return fmt.Sprintf("%s are PCI ids, which say what kind of card it is, not which; %s", first, takes)
	case strings.Contains(first, ":"):
		return fmt.Sprintf("%s looks like a PCI id, which it does not take; %s", first, takes)
	case strings.HasPrefix(upper, "GPU-") || strings.HasPrefix(upper, "MIG-"):
		return fmt.Sprintf("no device has the UUID %s, and one that is not there hides itself and all that follow; %s", first, takes)
	case strings.Trim(first, "0123456789") == "":
		return fmt.Sprintf("there is no device %s, and one that is not there hides itself and all that follow; %s", first, takes)
	}
	return fmt.Sprintf("%s is neither; %s", first, takes)
}

// kernelModule is the version of NVIDIA's kernel module, "" where there is none.
func kernelModule() string {
	b, err := os.ReadFile("/proc/driver/nvidia/version")
	if err != nil {
		return ""
	}
	line, _, _ := strings.Cut(string(b), "\n")
	return strings.Join(strings.Fields(strings.TrimPrefix(line, "NVRM version:")), " ")
}

// cards are the PCI ids of the devices that the kernel module knows.
func cards() []string {
	list, err := os.ReadDir("/proc/driver/nvidia/gpus")
	if err != nil {
		return nil
	}
	var out []string
	for _, e := range list {
		out = append(out, e.Name())
	}
	return out
}

// count starts the driver and counts the devices: at least 1, or an error.
func count() (int, error) {
	if err := begin(); err != nil {
		return 0, err
	}
	n, err := cu.NumDevices()
	if err != nil {
		return 0, failure("cuDeviceGetCount", err, "")
	}
	if n == 0 {
		return 0, unstarted(driver.NoDevice, start.visible, start.set)
	}
	return n, nil
}

// Devices describes the devices. Without one the error says what was found and what to do, and is NoDevice for errors.Is.
func (Driver) Devices() ([]driver.Info, error) {
	n, err := count()
	if err != nil {
		return nil, err
	}
	out := make([]driver.Info, n)
	for i := range out {
		d, err := cu.GetDevice(i)
		if err != nil {
			return nil, failure("cuDeviceGet", err, "")
		}
		if out[i], err = describeDevice(d); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// Open makes device i ready. Several openings of one share the driver's primary context, with all other users of it in
// this process: an error that makes one of them Lost makes all of them so.
func (Driver) Open(i int) (driver.Device, error) {
	n, err := count()
	if err != nil {
		return nil, err
	}
	if i < 0 || i >= n {
		detail := fmt.Sprintf("there is no device %d; there are 0 to %d", i, n-1)
		if n == 1 {
			detail = fmt.Sprintf("there is no device %d; there is only device 0", i)
		}
		if start.set {
			detail += fmt.Sprintf(" (%s=%q)", visible, start.visible)
		}
		return nil, &driver.Error{Call: "cuDeviceGet", Code: driver.InvalidDevice, Detail: detail}
	}
	return open(i)
}

// describeDevice asks for all that there is to know.
func describeDevice(d cu.Device) (driver.Info, error) {
	var first error
	ask := func(a cu.DeviceAttribute) int {
		n, err := d.Attribute(a)
		if err != nil && codeOf(err) != driver.InvalidValue && first == nil { // INVALID_VALUE: an older driver, which has no such attribute
			first = failure("cuDeviceGetAttribute", err, fmt.Sprintf("attribute %d: %s", int(a), words(codeOf(err))))
		}
		if err != nil {
			return 0
		}
		return n
	}
	name, err := d.Name()
	if err != nil {
		return driver.Info{}, failure("cuDeviceGetName", err, "")
	}
	memory, err := d.TotalMem()
	if err != nil {
		return driver.Info{}, failure("cuDeviceTotalMem", err, "")
	}
	version := driver.Version{}
	if v := cu.Version(); v > 0 {
		version = driver.Version{Major: v / 1000, Minor: v % 1000 / 10}
	}
	info := driver.Info{
		Name:       name,
		Capability: driver.Version{Major: ask(cu.ComputeCapabilityMajor), Minor: ask(cu.ComputeCapabilityMinor)},

		Multiprocessors: ask(cu.MultiprocessorCount),
		WarpSize:        ask(cu.WarpSize),
		Clock:           float64(ask(cu.ClockRate)) * 1e3, // kHz
		MemoryClock:     float64(ask(cu.MemoryClockRate)) * 1e3,
		BusBits:         ask(cu.GlobalMemoryBusWidth),
		L2:              ask(cu.L2CacheSize),

		Memory:   uint64(memory),
		Constant: ask(cu.TotalConstantMemory),

		MaxThreadsPerBlock: ask(cu.MaxThreadsPerBlock),
		MaxBlock:           driver.Dim{X: ask(cu.MaxBlockDimX), Y: ask(cu.MaxBlockDimY), Z: ask(cu.MaxBlockDimZ)},
		MaxGrid:            driver.Dim{X: ask(cu.MaxGridDimX), Y: ask(cu.MaxGridDimY), Z: ask(cu.MaxGridDimZ)},

		RegistersPerBlock:   ask(cu.MaxRegistersPerBlock),
		RegistersPerThread:  255,
		RegistersPerMP:      ask(cu.MaxRegistersPerMultiprocessor),
		SharedPerBlock:      ask(cu.MaxSharedMemoryPerBlock),
		SharedPerBlockOptIn: ask(attributeOptInShared),
		SharedPerMP:         ask(cu.MaxSharedMemoryPerMultiprocessor),
		MaxThreadsPerMP:     ask(cu.MaxThreadsPerMultiprocessor),
		MaxBlocksPerMP:      ask(attributeBlocksPerMP),
		LocalPerThread:      512 << 10,

		UnifiedAddressing: ask(cu.UnifiedAddressing) != 0,
		Mapped:            ask(cu.CanMapHostMemory) != 0,
		CopyEngines:       ask(cu.AsyncEngineCount),

		Driver: version,
		PTX:    newestPTX(version),
	}
	if first != nil {
		return driver.Info{}, first
	}
	// No attributes; CUDA C++ Programming Guide, table "Technical Specifications per Compute Capability".
	if info.Capability == (driver.Version{Major: 3, Minor: 0}) {
		info.RegistersPerThread = 63
	}
	info.SharedPerBlockOptIn = max(info.SharedPerBlockOptIn, info.SharedPerBlock)
	if info.PCI, err = pciBusID(d); err != nil && codeOf(err) != driver.NotSupported {
		return driver.Info{}, failure("cuDeviceGetPCIBusId", err, "")
	}
	if id, err := d.UUID(); err == nil { // unknown to drivers before 9.2
		info.UUID = "GPU-" + id.String()
	}
	return info, nil
}

// newestPTX is the version of PTX that came with a version of CUDA. A driver newer than the table takes at least the last.
// Source: PTX ISA, "Release Notes", table "PTX Release History".
func newestPTX(v driver.Version) driver.Version {
	var ptx driver.Version
	for _, r := range [][4]int{
		{5, 0, 3, 1}, {5, 5, 3, 2}, {6, 0, 4, 0}, {6, 5, 4, 1}, {7, 0, 4, 2}, {7, 5, 4, 3}, {8, 0, 5, 0}, {9, 0, 6, 0},
		{9, 1, 6, 1}, {9, 2, 6, 2}, {10, 0, 6, 3}, {10, 1, 6, 4}, {10, 2, 6, 5}, {11, 0, 7, 0}, {11, 1, 7, 1},
		{11, 2, 7, 2}, {11, 3, 7, 3}, {11, 4, 7, 4}, {11, 5, 7, 5}, {11, 6, 7, 6}, {11, 7, 7, 7}, {11, 8, 7, 8},
		{12, 0, 8, 0}, {12, 1, 8, 1}, {12, 2, 8, 2}, {12, 3, 8, 3}, {12, 4, 8, 4}, {12, 5, 8, 5}, {12, 7, 8, 6},
		{12, 8, 8, 7}, {12, 9, 8, 8}, {13, 0, 9, 0}, {13, 1, 9, 1},
	} {
		if r[0] < v.Major || r[0] == v.Major && r[1] <= v.Minor {
			ptx = driver.Version{Major: r[2], Minor: r[3]}
		}
	}
	return ptx
}
