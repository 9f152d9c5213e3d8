//go:build !cuda

package gpukit

import "errors"

// A build without the tag cuda has no CUDA devices.
func cudaDevices() []DeviceInfo { return nil }

var errNoCUDA = errors.New("this build of gpukit has no CUDA; for a program see \"On an NVIDIA GPU\" in the README: go build -tags cuda, with two folders of headers in CGO_CFLAGS; for the notebook: make lab, on a machine with NVIDIA's driver")

func openCUDA(string) (*gpu, error) { return nil, errNoCUDA }
