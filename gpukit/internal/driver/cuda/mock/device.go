//go:build cuda

package main

import (
	"gpunotes/gpukit/internal/driver"
)

func init() {
	for name, e := range map[string]entry{
		"cuDeviceGetCount": {run: func(t *thread, k *call) driver.Code { t.put32(k.x[0], len(t.m.set.cards)); return 0 }, out: []int{0}, free: true},
		"cuDeviceGet": {run: func(t *thread, k *call) driver.Code {
			if t.device(k.int(1)) == nil {
				return driver.InvalidDevice
			}
			t.put32(k.x[0], k.int(1))
			return 0
		}, out: []int{0}, free: true},
		"cuDeviceGetName": {run: ofDevice(2, func(t *thread, k *call, d *card) driver.Code {
			t.putText(k.x[0], k.int(1), d.Title)
			return 0
		}), out: []int{0}, free: true},
		"cuDeviceTotalMem_v2": {run: ofDevice(1, func(t *thread, k *call, d *card) driver.Code {
			t.put64(k.x[0], uint64(d.MemoryBytes))
			return 0
		}), out: []int{0}, free: true},
		"cuDeviceGetUuid": {run: ofDevice(1, func(t *thread, k *call, d *card) driver.Code {
			t.write(k.x[0], d.uuid[:])
			return 0
		}), out: []int{0}, free: true},
		"cuDeviceGetPCIBusId": {run: ofDevice(2, func(t *thread, k *call, d *card) driver.Code {
			t.putText(k.x[0], k.int(1), d.bus())
			return 0
		}), out: []int{0}, free: true},
		"cuDeviceGetByPCIBusId": {run: func(t *thread, k *call) driver.Code {
			id := t.wire.text(k.x[1])
			for i, d := range t.m.set.cards {
				if d.bus() == id {
					t.put32(k.x[0], i)
					return 0
				}
			}
			return driver.InvalidDevice
		}, out: []int{0, 1}, free: true},
		"cuDeviceGetAttribute": {run: ofDevice(2, deviceGetAttribute), out: []int{0}, free: true},
		"cuDeviceComputeCapability": {run: ofDevice(2, func(t *thread, k *call, d *card) driver.Code {
			t.put32(k.x[0], d.CapabilityMajor)
			t.put32(k.x[1], d.CapabilityMinor)
			return 0
		}), out: []int{0, 1}, free: true},
		"cuDeviceCanAccessPeer": {run: ofDevice(1, func(t *thread, k *call, d *card) driver.Code {
			t.put32(k.x[0], 0)
			return 0
		}), out: []int{0}, free: true},
		"cuGetErrorName":   {run: func(t *thread, k *call) driver.Code { return t.errorText(k, 0) }, out: []int{1}, early: true},
		"cuGetErrorString": {run: func(t *thread, k *call) driver.Code { return t.errorText(k, 1) }, out: []int{1}, early: true},
	} {
		entries[name] = e
	}
	entries["cuDeviceGetUuid_v2"] = entries["cuDeviceGetUuid"]
}

// ofDevice gives f the device that argument i names.
func ofDevice(i int, f func(*thread, *call, *card) driver.Code) func(*thread, *call) driver.Code {
	return func(t *thread, k *call) driver.Code {
		d := t.device(k.int(i))
		if d == nil {
			return driver.InvalidDevice
		}
		return f(t, k, d)
	}
}

// attributes are those of a device by number. Source: cuda.h, CUdevice_attribute.
var attributes = map[int]func(d *card, i *driver.Info) int{
	1:   func(d *card, i *driver.Info) int { return i.MaxThreadsPerBlock },
	2:   func(d *card, i *driver.Info) int { return i.MaxBlock.X },
	3:   func(d *card, i *driver.Info) int { return i.MaxBlock.Y },
	4:   func(d *card, i *driver.Info) int { return i.MaxBlock.Z },
	5:   func(d *card, i *driver.Info) int { return i.MaxGrid.X },
	6:   func(d *card, i *driver.Info) int { return i.MaxGrid.Y },
	7:   func(d *card, i *driver.Info) int { return i.MaxGrid.Z },
	8:   func(d *card, i *driver.Info) int { return i.SharedPerBlock },
	9:   func(d *card, i *driver.Info) int { return i.Constant },
	10:  func(d *card, i *driver.Info) int { return i.WarpSize },
	11:  constant(1<<31 - 1), // pitch
	12:  func(d *card, i *driver.Info) int { return i.RegistersPerBlock },
	13:  func(d *card, i *driver.Info) int { return int(i.Clock / 1e3) },
	14:  constant(512), // alignment of textures
	15:  constant(1),   // copies beside kernels
	16:  func(d *card, i *driver.Info) int { return i.Multiprocessors },
	17:  constant(0), // limit of the time of kernels
	18:  constant(0), // integrated
	19:  constant(1), // host memory can be mapped
	20:  constant(0), // compute mode
	31:  constant(1), // concurrent kernels
	32:  constant(0), // ECC
	33:  func(d *card, i *driver.Info) int { return d.number + 1 },
	34:  constant(0),
	35:  constant(0), // TCC
	36:  func(d *card, i *driver.Info) int { return int(i.MemoryClock / 1e3) },
	37:  func(d *card, i *driver.Info) int { return i.BusBits },
	38:  func(d *card, i *driver.Info) int { return i.L2 },
	39:  func(d *card, i *driver.Info) int { return i.MaxThreadsPerMP },
	40:  constant(2), // copy engines
	41:  constant(1), // one address space
	50:  constant(0), // PCI domain
	75:  func(d *card, i *driver.Info) int { return i.Capability.Major },
	76:  func(d *card, i *driver.Info) int { return i.Capability.Minor },
	78:  constant(1), // priorities of streams
	79:  func(d *card, i *driver.Info) int { return d.L1Global },
	80:  func(d *card, i *driver.Info) int { return d.L1Local },
	81:  func(d *card, i *driver.Info) int { return i.SharedPerMP },
	82:  func(d *card, i *driver.Info) int { return i.RegistersPerMP },
	83:  constant(0), // managed memory
	84:  constant(0), // board of several cards
	88:  constant(0), // pageable memory
	89:  constant(0), // managed memory beside the host
	91:  constant(0), // registered memory under its own address
	95:  constant(0), // cooperative launches
	97:  func(d *card, i *driver.Info) int { return i.SharedPerBlockOptIn },
	99:  constant(1), // host memory can be registered
	106: func(d *card, i *driver.Info) int { return i.MaxBlocksPerMP },
	111: func(d *card, i *driver.Info) int { return d.SharedReserved },
	115: func(d *card, i *driver.Info) int { // pools
		if i.Capability.Major >= 6 {
			return 1
		}
		return 0
	},
}

func constant(v int) func(*card, *driver.Info) int { return func(*card, *driver.Info) int { return v } }

func deviceGetAttribute(t *thread, k *call, d *card) driver.Code {
	f := attributes[k.int(1)]
	if f == nil {
		return driver.InvalidValue
	}
	info := d.Info()
	t.put32(k.x[0], f(d, &info))
	return 0
}

// errorText gives name or description of an error, as memory of the program that stays.
func (t *thread) errorText(k *call, which int) driver.Code {
	code := driver.Code(k.int(0))
	text, ok := errorTexts[code]
	if !ok {
		t.put64(k.x[1], 0)
		return driver.InvalidValue
	}
	at := t.m.texts[code]
	if at[which] == 0 {
		at[which] = t.mapped(4096)
		t.m.texts[code] = at
		t.putText(at[which], 4096, text[which])
	}
	t.put64(k.x[1], at[which])
	return 0
}

// errorTexts are names and descriptions of errors. Source: cuda.h.
var errorTexts = map[driver.Code][2]string{
	0:   {"CUDA_SUCCESS", "no error"},
	1:   {"CUDA_ERROR_INVALID_VALUE", "invalid argument"},
	2:   {"CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
	3:   {"CUDA_ERROR_NOT_INITIALIZED", "initialization error"},
	4:   {"CUDA_ERROR_DEINITIALIZED", "driver shutting down"},
	34:  {"CUDA_ERROR_STUB_LIBRARY", "CUDA driver is a stub library"},
	100: {"CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
	101: {"CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
	200: {"CUDA_ERROR_INVALID_IMAGE", "device kernel image is invalid"},
	201: {"CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
	209: {"CUDA_ERROR_NO_BINARY_FOR_GPU", "no kernel image is available for execution on the device"},
	218: {"CUDA_ERROR_INVALID_PTX", "a PTX JIT compilation failed"},
	222: {"CUDA_ERROR_UNSUPPORTED_PTX_VERSION", "the provided PTX was compiled with an unsupported toolchain."},
	301: {"CUDA_ERROR_FILE_NOT_FOUND", "file not found"},
	400: {"CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"},
	500: {"CUDA_ERROR_NOT_FOUND", "named symbol not found"},
	600: {"CUDA_ERROR_NOT_READY", "device not ready"},
	700: {"CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered"},
	701: {"CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES", "too many resources requested for launch"},
	702: {"CUDA_ERROR_LAUNCH_TIMEOUT", "the launch timed out and was terminated"},
	709: {"CUDA_ERROR_CONTEXT_IS_DESTROYED", "context is destroyed"},
	710: {"CUDA_ERROR_ASSERT", "device-side assert triggered"},
	712: {"CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED", "part or all of the requested memory range is already mapped"},
	713: {"CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED", "pointer does not correspond to a registered memory region"},
	714: {"CUDA_ERROR_HARDWARE_STACK_ERROR", "hardware stack error"},
	715: {"CUDA_ERROR_ILLEGAL_INSTRUCTION", "an illegal instruction was encountered"},
	716: {"CUDA_ERROR_MISALIGNED_ADDRESS", "misaligned address"},
	717: {"CUDA_ERROR_INVALID_ADDRESS_SPACE", "operation not supported on global/shared address space"},
	718: {"CUDA_ERROR_INVALID_PC", "invalid program counter"},
	719: {"CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure"},
	801: {"CUDA_ERROR_NOT_SUPPORTED", "operation not supported"},
	802: {"CUDA_ERROR_SYSTEM_NOT_READY", "system not yet initialized"},
	803: {"CUDA_ERROR_SYSTEM_DRIVER_MISMATCH", "system has unsupported display driver / cuda driver combination"},
	999: {"CUDA_ERROR_UNKNOWN", "unknown error"},
}
