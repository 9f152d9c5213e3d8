package gpukit

import (
	"encoding/xml"
	"errors"
	"io"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"gpunotes/gpukit/internal/driver"
)

const (
	ofCores = `
exact      results, the bits of every other device; the bytes that Explain names
measured   times`
	ofSimulated = `
exact      results, the bits of every other device; counts of instructions, memory traffic and copies
predicted  times; registers of a thread`
)

func TestDeviceShowsItself(t *testing.T) {
	real := &Device{core: &core{name: "cuda:0", gpu: &gpu{info: driver.Info{
		Name: "A <card> & more", Capability: driver.Version{Major: 9}, Multiprocessors: 132, Memory: 150e9, Driver: driver.Version{Major: 12, Minor: 4},
	}}}}
	closed := MustOpen("cpu")
	closed.Close()
	for want, d := range map[string]*Device{
		`device     cpu
what       one core of this machine's processor` + ofCores: MustOpen("cpu"),
		`device     parallel
what       all cores of this machine's processor` + ofCores: MustOpen("parallel"),
		`device     sim:quadro-k2000
what       simulated Quadro K2000: compute capability 3.0, 2 multiprocessors, 2GB of memory` + ofSimulated: MustOpen("sim:quadro-k2000"),
		`device     sim:h200 with FastMath(), NumbaGeometry(63)
what       simulated NVIDIA H200: compute capability 9.0, 132 multiprocessors, 131.32GB of memory` + ofSimulated: MustOpen("sim:h200").With(FastMath(), NumbaGeometry(63)),
		`device     cuda:0
what       A <card> & more: compute capability 9.0, 132 multiprocessors, 139.7GB of memory
driver     CUDA 12.4
exact      results, of the code that simulated cards execute; sizes of grids, blocks and copies; registers of a thread
measured   times of kernels and copies, by the card`: real,
		`device     cpu
closed     open it again to use it
what       one core of this machine's processor` + ofCores: closed,
	} {
		if got := d.String(); got != want {
			t.Errorf("got:\n%s\nwant:\n%s", got, want)
		}
		page := d.HTML()
		var text strings.Builder
		for dec := xml.NewDecoder(strings.NewReader(page)); ; {
			token, err := dec.Token()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatalf("%v in %s", err, page)
			}
			if c, ok := token.(xml.CharData); ok {
				text.Write(c)
			}
		}
		for _, row := range d.badge() {
			if !strings.Contains(text.String(), row[1]) {
				t.Errorf("%q is missing in %s", row[1], page)
			}
		}
		// The page of the notebook may be light or dark: text keeps its colour, and nothing is laid under it.
		if s := regexp.MustCompile(`background|[";]color:`).FindString(page); s != "" {
			t.Errorf("%s in %s", s, page)
		}
	}
}

// A notebook with the badge of a device is compared on other machines.
func TestBadgeTellsNothingOfTheMachine(t *testing.T) {
	show := func() (all string) {
		for _, i := range Devices() {
			if !strings.HasPrefix(i.Name, cudaPrefix) && i.Name != "auto" {
				d := MustOpen(i.Name)
				all += d.String() + d.HTML()
				d.Close()
			}
		}
		return all
	}
	before := show()
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(runtime.NumCPU() + 3))
	t.Setenv(engineVariable, "portable")
	if after := show(); after != before {
		t.Errorf("before:\n%s\nafter:\n%s", before, after)
	}
}

func TestBadgeOfNoDevice(t *testing.T) {
	var none *Device
	for d, want := range map[*Device]string{none: "<nil *gpukit.Device>", new(Device): "<gpukit.Device that was not opened>"} {
		if d.String() != want || d.Name() != want || d.HTML() != "<pre>"+strings.NewReplacer("<", "&lt;", ">", "&gt;").Replace(want)+"</pre>" {
			t.Errorf("%s, %s, %s", d.String(), d.Name(), d.HTML())
		}
	}
}
