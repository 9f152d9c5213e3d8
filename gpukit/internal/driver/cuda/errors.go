//go:build cuda

package cuda

import (
	"fmt"
	"reflect"

	"gpunotes/gpukit/internal/driver"
)

// codeOf is the CUresult in an error of cu, whose type is not exported, or of extra.go.
func codeOf(err error) driver.Code {
	if v := reflect.ValueOf(err); v.Kind() == reflect.Int {
		return driver.Code(v.Int())
	}
	return driver.Unknown
}

// fatal says whether a context is of no use after an error, as cuda.h has it: every further call returns the same.
// InvalidContext is one because every call is made with a context: somebody else has reset it.
func fatal(c driver.Code) bool {
	switch c {
	case driver.InvalidContext, driver.ECCUncorrectable, driver.NVLinkUncorrectable, driver.Contained, driver.IllegalAddress, driver.LaunchTimeout,
		driver.ContextIsDestroyed, driver.Assert, driver.HardwareStackError, driver.IllegalInstruction, driver.MisalignedAddress,
		driver.InvalidAddressSpace, driver.InvalidPC, driver.LaunchFailed, driver.TensorMemoryLeak, driver.MPSClientTerminated,
		driver.ExternalDevice, driver.Unknown:
		return true
	}
	return false
}

// words is what an error of the driver means to a user, where the call at hand has nothing better to say.
func words(c driver.Code) string {
	switch c {
	case driver.ECCUncorrectable:
		return "the device's memory has an error that it cannot correct; restart the program, and if it comes again, the machine"
	case driver.IllegalAddress:
		return "a kernel read or wrote memory that is not its own"
	case driver.LaunchTimeout:
		return "the driver ended a kernel that ran too long: the device also drives a display, and its watchdog allows a few seconds"
	case driver.ContextIsDestroyed, driver.InvalidContext:
		return "the device was reset"
	case driver.Assert:
		return "an assertion in a kernel failed"
	case driver.HardwareStackError:
		return "the call stack of a kernel was damaged or too deep"
	case driver.IllegalInstruction, driver.InvalidPC:
		return "a kernel came to an instruction that is none"
	case driver.MisalignedAddress:
		return "a kernel read or wrote at an address that is no multiple of the size"
	case driver.InvalidAddressSpace:
		return "a kernel used an address of the wrong memory (global, shared or local)"
	case driver.LaunchFailed:
		return "a kernel failed while it ran"
	case driver.JITCompilerNotFound:
		return "the driver's compiler, libnvidia-ptxjitcompiler.so.1, is not here; it comes with the driver, in a container with NVIDIA_DRIVER_CAPABILITIES=compute,utility"
	case driver.JITCompilationDisabled:
		return "compiling is turned off: unset CUDA_DISABLE_PTX_JIT"
	case driver.DeviceUnavailable:
		return "another process has the device for itself (compute mode; see nvidia-smi)"
	case driver.NotSupported:
		return "the driver or the device cannot do this; a newer driver may"
	}
	return describe(c)
}

// failure is the error of a call of the driver. detail "" is what is known of the code.
func failure(call string, err error, detail string) *driver.Error {
	c := codeOf(err)
	if detail == "" {
		detail = words(c)
	}
	return &driver.Error{Call: call, Code: c, Detail: detail}
}

func invalid(call, format string, args ...any) *driver.Error {
	return &driver.Error{Call: call, Code: driver.InvalidValue, Detail: fmt.Sprintf(format, args...)}
}

// size writes a number of bytes exactly, and in binary units where that reads better.
func size[T int | uint64](n T) string {
	if n < 1024 {
		return fmt.Sprintf("%d bytes", n)
	}
	x, u := float64(n)/1024, 0
	for x >= 1024 && u < 5 {
		x, u = x/1024, u+1
	}
	return fmt.Sprintf("%d bytes (%.4g %ciB)", n, x, "KMGTPE"[u])
}
