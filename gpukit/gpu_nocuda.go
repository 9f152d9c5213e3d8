//go:build !cuda

package gpukit

import "errors"

// A build without the tag cuda has no CUDA devices.
func cudaDevices() []DeviceInfo { return nil }

var errNoCUDA = errors.New("this build of gpukit has no CUDA; for a program: go build -tags cuda, with CGO_CFLAGS=-I and the folder of cuda.h in the environment; for the notebook: make lab, on a machine with NVIDIA's driver")

func openCUDA(string) (*gpu, error) { return nil, errNoCUDA }
