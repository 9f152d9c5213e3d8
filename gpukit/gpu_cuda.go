//go:build cuda

package gpukit

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"gpunotes/gpukit/internal/driver"
	"gpunotes/gpukit/internal/driver/cuda"
)

// cudaSource gives the CUDA devices. What is peculiar to them is all in this file.
var cudaSource driver.Driver = cuda.Driver{}

// cudaDevices lists the CUDA devices, none if there is no driver.
func cudaDevices() (list []DeviceInfo) {
	infos, err := cudaSource.Devices()
	if err != nil {
		return nil
	}
	for i, x := range infos {
		list = append(list, DeviceInfo{fmt.Sprint(cudaPrefix, i), fmt.Sprintf("%s, compute capability %v, %s of memory, its driver knows CUDA %v",
			x.Name, x.Capability, bytes(float64(x.Memory)), x.Driver)})
	}
	return list
}

// openCUDA opens a CUDA device by its name.
func openCUDA(name string) (*gpu, error) {
	number := strings.TrimPrefix(name, cudaPrefix)
	i, err := strconv.Atoi(number)
	if err != nil || strconv.Itoa(i) != number || i < 0 {
		return nil, errors.New("a CUDA device is named by its number, as in \"cuda:0\"")
	}
	infos, err := cudaSource.Devices()
	if err != nil {
		return nil, err
	}
	if i >= len(infos) {
		there := "there is only cuda:0"
		if n := len(infos); n > 1 {
			there = fmt.Sprintf("there are cuda:0 to cuda:%d", n-1)
		}
		if n := len(infos); n == 2 {
			there = "there are cuda:0 and cuda:1"
		}
		if v, set := os.LookupEnv("CUDA_VISIBLE_DEVICES"); set {
			there += fmt.Sprintf("; CUDA_VISIBLE_DEVICES=%q, in the environment of this program, says which cards it sees", v)
		}
		return nil, errors.New(there)
	}
	x := infos[i]
	if x.SM() < 30 {
		return nil, fmt.Errorf("%s has compute capability %v: 3.0 is the first that gpukit has code for", x.Name, x.Capability)
	}
	return openGPU(name, fmt.Sprintf("%s (driver of CUDA %v)", x.Name, x.Driver), cudaSource, i)
}
