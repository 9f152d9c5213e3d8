package gpukit

import (
	"errors"
	"fmt"
	"io/fs"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"

	"gpunotes/gpukit/internal/source"
)

// Device runs functions. It is safe for concurrent use. Devices made by With
// share everything but the settings.
type Device struct {
	*core
	options options
}

// core is what the variants of a device share.
type core struct {
	name       string
	goroutines int // 0: as many as GOMAXPROCS at the call
	engine     engine
	gpu        *gpu // nil if the device is the host's cores
	closed     atomic.Bool
	mu         sync.Mutex
	programs   programCache
	recorder   atomic.Pointer[recording] // of the trace that is running
	printed    func(line string)         // takes what workers print instead of standard output, if not nil
}

// DeviceInfo describes a device that Open accepts.
type DeviceInfo struct {
	Name        string // what to pass to Open
	Description string
}

// String returns "name: description".
func (i DeviceInfo) String() string { return i.Name + ": " + i.Description }

// Devices lists the devices of this machine, and the cards that it can simulate.
// CUDA devices are among them if gpukit was built with the tag cuda and NVIDIA's
// driver shows them; Open says why not.
func Devices() []DeviceInfo {
	n := runtime.GOMAXPROCS(0)
	cards := cudaDevices()
	best := "parallel"
	if len(cards) > 0 {
		best = cards[0].Name
	}
	list := []DeviceInfo{
		{"cpu", "one goroutine"},
		{"parallel", fmt.Sprintf("%d goroutines, one per processor that Go uses", n)},
		{"auto", "the best device there is: " + best},
	}
	return append(append(list, cards...), simCards()...)
}

// cudaPrefix begins the names of CUDA devices.
const cudaPrefix = "cuda:"

// Open opens a device: "cpu", "parallel", a CUDA device, "cuda:0" being the first
// that the driver shows, a simulated GPU such as "sim:quadro-k2000", or "auto", which
// is "cuda:0" if there is one, else "parallel". Any other name is an error that lists
// the devices of this machine. Each opened GPU has a memory of its own, which Close
// gives back. The driver reads CUDA_VISIBLE_DEVICES when the first CUDA device is
// asked for.
//
// "cpu" and "parallel" run machine code for the best instructions that the processor
// has, AVX-512 or AVX2, or elsewhere a portable engine written in Go, which also runs
// what machine code does not have; Explain tells. The environment variable
// GPUNOTES_CPU set to avx512, avx2 or portable forces one of them; it is an error if
// the machine lacks it. The bits of results do not depend on it.
func Open(name string) (*Device, error) {
	full := name
	if name == "auto" {
		full = "parallel"
		if cards := cudaDevices(); len(cards) > 0 {
			full = cards[0].Name
		}
	}
	var g *gpu
	err := errors.New("there is no such device")
	switch kind, _, _ := strings.Cut(full, ":"); {
	case full == "cpu" || full == "parallel":
		e, err := bestCores()
		if err != nil {
			return nil, fmt.Errorf("gpukit.Open(%q): %w", name, err)
		}
		c := &core{name: full, engine: e}
		if full == "cpu" {
			c.goroutines = 1
		}
		return &Device{core: c}, nil
	case kind == "sim":
		g, err = simulated(full)
	case kind == "cuda":
		g, err = openCUDA(full)
	}
	if err == nil {
		return g.device(), nil
	}
	var have []string
	for _, i := range Devices() {
		have = append(have, fmt.Sprintf("%q", i.Name))
	}
	return nil, fmt.Errorf("gpukit.Open(%q): %w; open one of %s", name, err, strings.Join(have, ", "))
}

// MustOpen is Open for cells: it panics with Open's error.
func MustOpen(name string) *Device {
	d, err := Open(name)
	if err != nil {
		panic(err)
	}
	return d
}

// Name returns the name of the device; if it was opened as "auto", that of the device
// that this is.
func (d *Device) Name() string {
	switch {
	case d == nil:
		return "<nil *gpukit.Device>"
	case d.core == nil:
		return "<gpukit.Device that was not opened>"
	}
	return d.name
}

// label is the name and the settings that With changed.
func (d *Device) label() string {
	if d == nil || d.core == nil {
		return d.Name()
	}
	if s := d.options.String(); s != "" {
		return d.name + " with " + s
	}
	return d.name
}

// With returns the same device, its memory and trace shared, with other
// settings. With of a nil device is nil.
func (d *Device) With(opts ...Option) *Device {
	if d == nil {
		return nil
	}
	w := &Device{core: d.core, options: d.options}
	for _, o := range opts {
		if o.set != nil {
			o.set(&w.options)
		}
	}
	return w
}

// Close gives back what the device holds. Calls that are running end soon, and
// later ones at once, on it or on a variant made by With, with ErrClosed; results that are in host memory stay valid.
// Closing twice is not an error.
func (d *Device) Close() error {
	if d == nil {
		return d.usable("Close")
	}
	if !d.closed.Swap(true) {
		d.mu.Lock()
		d.programs = programCache{}
		d.mu.Unlock()
		if d.gpu != nil {
			return d.gpu.fault("Close", d.gpu.close())
		}
	}
	return nil
}

// usable returns why the device cannot be used for op, if so.
func (d *Device) usable(op string) error {
	switch {
	case d == nil || d.core == nil:
		return fmt.Errorf("gpukit.%s: the device is nil; open one, e.g. gpu := gpukit.MustOpen(\"parallel\")", op)
	case d.closed.Load():
		return fmt.Errorf("gpukit.%s: %w", op, ErrClosed)
	}
	return nil
}

// orClosed is err, or ErrClosed where err may only say that the device was closed
// meanwhile.
func (d *Device) orClosed(op string, err error) error {
	if err != nil && d != nil && d.core != nil && d.closed.Load() && (errors.As(err, new(*DeviceError)) || errors.As(err, new(*ArgumentError)) || errors.As(err, new(*ShapeError))) {
		return fmt.Errorf("gpukit.%s: %w", op, ErrClosed)
	}
	return err
}

func (d *Device) workers() int {
	if d.goroutines > 0 {
		return d.goroutines
	}
	return runtime.GOMAXPROCS(0)
}

// Must returns a, or panics with err: for cells and loops, as in
// Must(gpu.Vectorize(f, x)).
func Must(a *Array, err error) *Array {
	if err != nil {
		panic(err)
	}
	return a
}

// EmbedSource registers the Go files of packages for programs that run where
// their source directory is not: embed the files next to the functions with
// //go:embed *.go and pass the embed.FS. A file that does not match the binary
// is found out when a function of it is used, and is an error then.
func EmbedSource(files fs.FS) error {
	if err := source.Embed(files); err != nil {
		return fmt.Errorf("gpukit.EmbedSource: %w", err)
	}
	return nil
}
