//go:build cuda

package gpukit

// A CUDA device is an engine and a kind of device like the others, where there is one.
func init() {
	if len(cudaDevices()) == 0 {
		return
	}
	engines = append(engines, struct {
		name string
		open func() *Device
	}{"cuda:0", func() *Device { return MustOpen("cuda:0") }})
	kinds = append(kinds, "cuda:0")
}
