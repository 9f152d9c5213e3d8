// Package driver is the CUDA driver API as one Go interface: what a simulated card and a real one have in common. It
// knows neither; values of the interface come from package sim, or from a binding of libcuda.
//
// A Device is one card with one context and a few streams: the work of a stream happens in the order of the calls, that of
// different streams may overlap. A call may return before its work is done; what went wrong in it is then the error of a
// later call, at the latest of Sync. All methods may be called from any goroutine.
package driver

import (
	"fmt"
	"strings"
	"time"
)

// Ptr is an address in a device's memory. 0 is none.
type Ptr uint64

// Dim is the size of a grid or block, or a place in one.
type Dim struct{ X, Y, Z int }

// Count is the number of places; 0 where a size is not positive.
func (d Dim) Count() int {
	if d.X <= 0 || d.Y <= 0 || d.Z <= 0 {
		return 0
	}
	return d.X * d.Y * d.Z
}

// String returns e.g. "(32,8,1)".
func (d Dim) String() string { return fmt.Sprintf("(%d,%d,%d)", d.X, d.Y, d.Z) }

// Version is a version of the driver, or of the PTX that it takes.
type Version struct{ Major, Minor int }

// String returns e.g. "7.4".
func (v Version) String() string { return fmt.Sprintf("%d.%d", v.Major, v.Minor) }

// Info describes a device. Sizes are in bytes, clocks in Hz. 0 is unknown.
type Info struct {
	Name       string // "Quadro K2000"
	Capability Version
	Simulated  bool

	Multiprocessors int
	WarpSize        int
	Clock           float64
	MemoryClock     float64
	BusBits         int // width of the memory bus
	L2              int

	Memory   uint64 // of the device, all of it
	Constant int    // constant memory of a module

	MaxThreadsPerBlock int
	MaxBlock           Dim // largest block along each axis
	MaxGrid            Dim

	RegistersPerBlock         int // 32-bit registers
	RegistersPerThread        int
	RegistersPerMP            int
	SharedPerBlock            int // without asking for more
	SharedPerBlockOptIn       int // most that a function may ask for
	SharedPerMP               int
	MaxThreadsPerMP           int
	MaxBlocksPerMP            int
	LocalPerThread            int
	UnifiedAddressing, Mapped bool // host memory can be mapped
	CopyEngines               int  // copies that run beside a kernel

	Driver Version // of the driver: 12.4 is CUDA 12.4
	PTX    Version // newest PTX that the driver takes
	PCI    string  // "0000:01:00.0"
	UUID   string  // "GPU-8c3c6e0a-..."
}

// SM is the capability as in sm_NN: 75 for 7.5.
func (i Info) SM() int { return i.Capability.Major*10 + i.Capability.Minor }

// Stream is an order of work on a device, a number from 0 to Streams - 1. Calls without a stream use 0.
type Stream int

// Mark is a point in the work of a stream: the end of what was begun there before the mark was made.
type Mark struct {
	Stream Stream
	Number uint64 // counts the marks of a device
}

// Driver is a source of devices.
type Driver interface {
	// Devices lists the devices; their position is what Open takes. A machine without any is NoDevice, not an empty list.
	Devices() ([]Info, error)
	// Open makes device i ready, from 0.
	Open(i int) (Device, error)
}

// Device is an opened card. After Close every call returns Deinitialized, but for Close and Info.
type Device interface {
	Info() Info
	// MemInfo says how many bytes of the device's memory are free, and how many there are.
	MemInfo() (free, total uint64, err error)
	// Alloc gives n bytes at a multiple of 256, contents undefined. n = 0 is InvalidValue, too large is OutOfMemory;
	// neither harms the device.
	Alloc(n uint64) (Ptr, error)
	// Free gives back what Alloc gave; anything else is InvalidValue. Free(0) does nothing.
	Free(p Ptr) error
	// Streams is how many streams there are: 1 where work cannot overlap.
	Streams() int
	// Pinned gives n bytes of host memory, page-locked where that makes copies faster or lets them overlap; FreePinned
	// gives it back when no copy uses it any more. Close frees what is left.
	Pinned(n int) ([]byte, error)
	FreePinned(b []byte) error
	// StartIn and StartOut begin a copy between host and device. Until a Mark made later in the stream is reached, or
	// Sync returns, src must stay as it is and dst is undefined.
	StartIn(s Stream, dst Ptr, src []byte) error
	StartOut(s Stream, dst []byte, src Ptr) error
	// Mark makes a mark in a stream. Marks made before a Sync that returned are reached.
	Mark(s Stream) (Mark, error)
	// After makes what is begun in s from now on wait until m is reached.
	After(s Stream, m Mark) error
	// Wait waits until m is reached, and returns what failed so far. While a launch runs, its Cancel is asked.
	Wait(m Mark) error
	// CancelWord is the address of a 32-bit word, 0 until a launch's Cancel was true and then not 0 until it has ended:
	// kernels have to look at it. It is 0 for a device that asks by itself.
	CancelWord() Ptr
	// CopyIn copies from host to device. src may be changed when it returns.
	CopyIn(dst Ptr, src []byte) error
	// CopyOut copies from device to host, and waits for it.
	CopyOut(dst []byte, src Ptr) error
	// Copy copies within the device; ranges that overlap are InvalidValue.
	Copy(dst, src Ptr, n uint64) error
	// Fill sets n bytes.
	Fill(dst Ptr, value byte, n uint64) error
	// Load makes a module of an image: PTX text, with or without a final zero byte. A refusal carries the
	// compiler's log: InvalidPTX, UnsupportedPTXVersion, or NoBinaryForGPU where the .target is above the device.
	Load(image []byte) (Module, error)
	// Record makes the device report each copy and launch from now on, in the order of the calls that began them, at the
	// latest in Sync; nil ends that.
	Record(f func(Record))
	// Sync waits until all streams are done, and returns what failed since. While a launch runs, its Cancel is asked.
	Sync() error
	// Lost is nil, or the error after which the context is of no use and the device must be opened anew: every later call
	// but Close fails with it. A simulated device is never lost.
	Lost() error
	// Close ends what runs, as far as it can be ended, and frees everything. A second one does nothing.
	Close() error
}

// Module is code on a device.
type Module interface {
	// Function returns a kernel, NotFound if there is none of that name.
	Function(name string) (Function, error)
	// Global returns address and size of a module variable in global or constant memory, or NotFound.
	Global(name string) (Ptr, uint64, error)
	// Unload frees the module; its functions cannot be launched any more.
	Unload() error
}

// Function is a kernel.
type Function interface {
	Attributes() Attributes
	// Check is the error of a Launch whose numbers the card does not take, without launching. Of Params only the number counts.
	Check(l Launch) error
	// Launch starts it. Numbers that the card does not take are InvalidValue or LaunchOutOfResources, before anything runs.
	Launch(l Launch) error
}

// Attributes says what a kernel needs.
type Attributes struct {
	Name       string
	Registers  int // 32-bit registers per thread
	Shared     int // bytes of static shared memory per block
	Local      int // bytes of local memory per thread
	Constant   int // bytes of constant memory of its module
	MaxThreads int // threads per block with these registers on this device
	PTX        Version
	Target     int // 35 of sm_35
}

// Launch is how to start a kernel.
type Launch struct {
	Grid, Block Dim
	Shared      int      // bytes of dynamic shared memory per block
	Stream      Stream   // in which it runs
	Params      []uint64 // one for each parameter, the value in its low bytes
	// Cancel, if not nil, is asked from time to time until the launch has ended; true ends the kernel with LaunchTimeout,
	// an error of Launch or of the Wait or Sync after it. It must not call the device. Where CancelWord is not 0 a kernel
	// ends only if it reads that word.
	Cancel func() bool
	// Progress, if not nil, takes from time to time how many blocks are done, first 0, where that is known: on a simulated device.
	Progress func(done, total int)
	// Name, if not nil, says what is at an address of global memory, for messages; "" if it does not know.
	Name func(address uint64) string
	// SharedName, if not nil, does the same for shared memory, off bytes behind the start of a variable of the PTX.
	SharedName func(variable string, off int) string
	// Steps, if not 0, is how many warp instructions the launch may execute on a simulated device. More is
	// LaunchTimeout.
	Steps uint64
}

// Operation is what a Record reports.
type Operation uint8

// The operations.
const (
	HostToDevice Operation = iota
	DeviceToHost
	DeviceToDevice
	Memset
	Kernel
)

// String names the operation as nvprof does.
func (o Operation) String() string {
	return [...]string{"[CUDA memcpy HtoD]", "[CUDA memcpy DtoH]", "[CUDA memcpy DtoD]", "[CUDA memset]", "kernel"}[o]
}

// Record is one finished copy, fill or launch.
type Record struct {
	Op         Operation
	Start      time.Duration // since the device was opened, on the device's clock
	Duration   time.Duration
	Simulated  bool   // the times are predicted, not measured
	Bytes      uint64 // of a copy or fill
	Pinned     bool   // the host memory of a copy
	Attributes Attributes
	Launch     Launch // Params and Cancel left out
	Stream     Stream
	// Stats is what a simulated device counted in a launch; its type is that device's. nil elsewhere.
	Stats any
}

// Place is where a kernel failed.
type Place struct {
	Kernel        string
	File          string // source of the kernel by its .loc, or ""
	Line, Col     int
	PTXLine       int
	Instruction   string
	Block, Thread Dim
}

// String returns e.g. "cell 3:4:7 (PTX line 62: st.global.f64 [%rd4], %fd1;), block (0,0,0), thread (5,0,0)".
func (p *Place) String() string {
	var b strings.Builder
	if p.File != "" {
		fmt.Fprintf(&b, "%s:%d:%d (PTX line %d: %s)", p.File, p.Line, p.Col, p.PTXLine, p.Instruction)
	} else {
		fmt.Fprintf(&b, "%s, PTX line %d: %s", p.Kernel, p.PTXLine, p.Instruction)
	}
	fmt.Fprintf(&b, ", block %v, thread %v", p.Block, p.Thread)
	return b.String()
}

// Error is a call that failed. errors.Is(err, OutOfMemory) and its like tell which error it is.
type Error struct {
	Call   string // "cuMemAlloc"
	Code   Code
	Detail string // what was wrong and what to do, for the user; may be empty
	Log    string // of the compiler in the driver
	Place  *Place // of a kernel that failed, if known
	Cause  error  // what a device knows beyond that, for errors.As; Detail has its text
}

// Error returns call, CUDA's name of the error, and the details there are.
func (e *Error) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %v", e.Call, e.Code)
	if e.Detail != "" {
		fmt.Fprintf(&b, ": %s", e.Detail)
	}
	if e.Place != nil && e.Cause == nil {
		fmt.Fprintf(&b, ", at %v", e.Place)
	}
	if e.Log != "" {
		fmt.Fprintf(&b, "\n%s", strings.TrimRight(e.Log, "\n\x00"))
	}
	return b.String()
}

// Unwrap returns the code and, if there is one, the cause.
func (e *Error) Unwrap() []error {
	if e.Cause != nil {
		return []error{e.Code, e.Cause}
	}
	return []error{e.Code}
}

// Code is a CUresult.
type Code int

// The errors that can come from the calls of this package, numbers from cuda.h.
const (
	InvalidValue               Code = 1
	OutOfMemory                Code = 2
	NotInitialized             Code = 3
	Deinitialized              Code = 4
	StubLibrary                Code = 34
	CallRequiresNewerDriver    Code = 36
	DeviceUnavailable          Code = 46
	NoDevice                   Code = 100
	InvalidDevice              Code = 101
	DeviceNotLicensed          Code = 102
	InvalidImage               Code = 200
	InvalidContext             Code = 201
	MapFailed                  Code = 205
	NoBinaryForGPU             Code = 209
	ECCUncorrectable           Code = 214
	InvalidPTX                 Code = 218
	NVLinkUncorrectable        Code = 220
	JITCompilerNotFound        Code = 221
	UnsupportedPTXVersion      Code = 222
	JITCompilationDisabled     Code = 223
	Contained                  Code = 226
	SharedObjectInitFailed     Code = 303
	OperatingSystem            Code = 304
	InvalidHandle              Code = 400
	IllegalState               Code = 401
	NotFound                   Code = 500
	NotReady                   Code = 600
	IllegalAddress             Code = 700
	LaunchOutOfResources       Code = 701
	LaunchTimeout              Code = 702
	PrimaryContextActive       Code = 708
	ContextIsDestroyed         Code = 709
	Assert                     Code = 710
	HardwareStackError         Code = 714
	IllegalInstruction         Code = 715
	MisalignedAddress          Code = 716
	InvalidAddressSpace        Code = 717
	InvalidPC                  Code = 718
	LaunchFailed               Code = 719
	TensorMemoryLeak           Code = 721
	NotPermitted               Code = 800
	NotSupported               Code = 801
	SystemNotReady             Code = 802
	SystemDriverMismatch       Code = 803
	CompatNotSupportedOnDevice Code = 804
	MPSConnectionFailed        Code = 805
	MPSRPCFailure              Code = 806
	MPSServerNotReady          Code = 807
	MPSMaxClientsReached       Code = 808
	MPSMaxConnectionsReached   Code = 809
	MPSClientTerminated        Code = 810
	ExternalDevice             Code = 911
	Unknown                    Code = 999
)

var codeNames = map[Code]string{
	InvalidValue: "INVALID_VALUE", OutOfMemory: "OUT_OF_MEMORY", NotInitialized: "NOT_INITIALIZED", Deinitialized: "DEINITIALIZED",
	StubLibrary: "STUB_LIBRARY", CallRequiresNewerDriver: "CALL_REQUIRES_NEWER_DRIVER", DeviceUnavailable: "DEVICE_UNAVAILABLE", NoDevice: "NO_DEVICE",
	InvalidDevice: "INVALID_DEVICE", DeviceNotLicensed: "DEVICE_NOT_LICENSED", InvalidImage: "INVALID_IMAGE", InvalidContext: "INVALID_CONTEXT",
	MapFailed: "MAP_FAILED", NoBinaryForGPU: "NO_BINARY_FOR_GPU", ECCUncorrectable: "ECC_UNCORRECTABLE", InvalidPTX: "INVALID_PTX",
	NVLinkUncorrectable: "NVLINK_UNCORRECTABLE", JITCompilerNotFound: "JIT_COMPILER_NOT_FOUND", UnsupportedPTXVersion: "UNSUPPORTED_PTX_VERSION",
	JITCompilationDisabled: "JIT_COMPILATION_DISABLED", Contained: "CONTAINED", SharedObjectInitFailed: "SHARED_OBJECT_INIT_FAILED",
	OperatingSystem: "OPERATING_SYSTEM", InvalidHandle: "INVALID_HANDLE", IllegalState: "ILLEGAL_STATE", NotFound: "NOT_FOUND", NotReady: "NOT_READY",
	IllegalAddress: "ILLEGAL_ADDRESS", LaunchOutOfResources: "LAUNCH_OUT_OF_RESOURCES", LaunchTimeout: "LAUNCH_TIMEOUT",
	PrimaryContextActive: "PRIMARY_CONTEXT_ACTIVE", ContextIsDestroyed: "CONTEXT_IS_DESTROYED", Assert: "ASSERT",
	HardwareStackError: "HARDWARE_STACK_ERROR", IllegalInstruction: "ILLEGAL_INSTRUCTION", MisalignedAddress: "MISALIGNED_ADDRESS",
	InvalidAddressSpace: "INVALID_ADDRESS_SPACE", InvalidPC: "INVALID_PC", LaunchFailed: "LAUNCH_FAILED", TensorMemoryLeak: "TENSOR_MEMORY_LEAK",
	NotPermitted: "NOT_PERMITTED", NotSupported: "NOT_SUPPORTED", SystemNotReady: "SYSTEM_NOT_READY", SystemDriverMismatch: "SYSTEM_DRIVER_MISMATCH",
	CompatNotSupportedOnDevice: "COMPAT_NOT_SUPPORTED_ON_DEVICE", MPSConnectionFailed: "MPS_CONNECTION_FAILED", MPSRPCFailure: "MPS_RPC_FAILURE",
	MPSServerNotReady: "MPS_SERVER_NOT_READY", MPSMaxClientsReached: "MPS_MAX_CLIENTS_REACHED", MPSMaxConnectionsReached: "MPS_MAX_CONNECTIONS_REACHED",
	MPSClientTerminated: "MPS_CLIENT_TERMINATED", ExternalDevice: "EXTERNAL_DEVICE", Unknown: "UNKNOWN",
}

// String returns CUDA's name, e.g. "CUDA_ERROR_OUT_OF_MEMORY", or the number of one that this package does not know.
func (c Code) String() string {
	if n, ok := codeNames[c]; ok {
		return "CUDA_ERROR_" + n
	}
	return fmt.Sprintf("CUDA error %d", int(c))
}

// Error is String, so that a Code can be the target of errors.Is.
func (c Code) Error() string { return c.String() }
