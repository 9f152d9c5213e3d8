//go:build cuda

package cuda

/*
#include <cuda.h>
#include <stdlib.h>
*/
import "C"

import (
	"unsafe"

	"gorgonia.org/cu"

	"gpunotes/gpukit/internal/driver"
)

// Attributes of devices and functions that cu has no name for; it takes any number.
const (
	attributeOptInShared = cu.DeviceAttribute(C.CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)
	attributeBlocksPerMP = cu.DeviceAttribute(C.CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR)
	attributePools       = cu.DeviceAttribute(C.CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED)
	mostDynamicShared    = C.CUfunction_attribute(C.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES)
)

func status(r C.CUresult) error {
	if r == C.CUDA_SUCCESS {
		return nil
	}
	return driver.Code(r)
}

// initialize is cuInit. The library answers the same however often it is asked.
func initialize() error { return status(C.cuInit(0)) }

// describe is the driver's own sentence about an error, "" if it has none.
func describe(c driver.Code) string {
	var s *C.char
	if C.cuGetErrorString(C.CUresult(c), &s) != C.CUDA_SUCCESS || s == nil {
		return ""
	}
	return C.GoString(s)
}

// pciBusID is e.g. "0000:01:00.0".
func pciBusID(d cu.Device) (string, error) {
	var b [32]C.char
	if err := status(C.cuDeviceGetPCIBusId(&b[0], C.int(len(b)), C.CUdevice(d))); err != nil {
		return "", err
	}
	return C.GoString(&b[0]), nil
}

// hostAlloc gives memory of the host, at the start of a page, or nil. It is not the driver's (cuMemHostAlloc), which
// vanishes with a context that is reset: whoever still holds it must not crash.
func hostAlloc(n int) unsafe.Pointer {
	const page = 4096
	return C.aligned_alloc(page, C.size_t((n+page-1)/page*page))
}

func hostFree(p unsafe.Pointer) { C.free(p) }

// lock makes memory of hostAlloc page-locked, for every context, and lets kernels reach it.
func lock(p unsafe.Pointer, n int) error {
	return status(C.cuMemHostRegister(p, C.size_t(n), C.CU_MEMHOSTREGISTER_PORTABLE|C.CU_MEMHOSTREGISTER_DEVICEMAP))
}

func unlock(p unsafe.Pointer) error { return status(C.cuMemHostUnregister(p)) }

// hostAddress is where kernels find page-locked memory.
func hostAddress(p unsafe.Pointer) (driver.Ptr, error) {
	var a C.CUdeviceptr
	err := status(C.cuMemHostGetDevicePointer(&a, p, 0))
	return driver.Ptr(a), err
}

func streamOf(s cu.Stream) C.CUstream { return C.CUstream(unsafe.Pointer(s.C())) }

// allocAsync gives memory that may be used behind this place of the stream.
func allocAsync(n uint64, s cu.Stream) (driver.Ptr, error) {
	var p C.CUdeviceptr
	err := status(C.cuMemAllocAsync(&p, C.size_t(n), streamOf(s)))
	return driver.Ptr(p), err
}

// freeAsync gives memory back when the stream has come to this place.
func freeAsync(p driver.Ptr, s cu.Stream) error {
	return status(C.cuMemFreeAsync(C.CUdeviceptr(p), streamOf(s)))
}

// trim gives to the device what the pool behind allocAsync holds unused.
func trim(d cu.Device) error {
	var pool C.CUmemoryPool
	if err := status(C.cuDeviceGetDefaultMemPool(&pool, C.CUdevice(d))); err != nil {
		return err
	}
	return status(C.cuMemPoolTrimTo(pool, 0))
}

// allowShared lets a function have up to n bytes of dynamic shared memory.
func allowShared(f cu.Function, n int) error {
	return status(C.cuFuncSetAttribute(*(*C.CUfunction)(unsafe.Pointer(&f)), mostDynamicShared, C.int(n)))
}
