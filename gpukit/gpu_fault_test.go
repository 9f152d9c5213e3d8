package gpukit

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"gpunotes/gpukit/internal/driver"
)

func tells(x float64) float64 {
	if x == 3 {
		println("three", x)
	}
	return x
}

// everyWay is a call of each kind, as far as a device can tell. Each says whether
// what it gives is right.
var everyWay = []struct {
	name string
	run  func(d *Device) (right bool, err error)
}{
	{"Put", func(d *Device) (bool, error) {
		a, err := d.Put(Arange(100).Float64s())
		if err != nil {
			return false, err
		}
		defer a.Free()
		return a.Sum() == 4950 && a.At(3) == 3, nil
	}},
	{"Empty", func(d *Device) (bool, error) {
		a, err := d.Empty(Int16, 50)
		if err != nil {
			return false, err
		}
		defer a.Free()
		b, err := d.Put(a)
		if err != nil {
			return false, err
		}
		defer b.Free()
		return b.Host().Max() == 0, nil
	}},
	{"resident", func(d *Device) (bool, error) {
		a, err := d.Put(FromSlice(Arange(100).Float64s()))
		if err != nil {
			return false, err
		}
		defer a.Free()
		for range 3 {
			b, err := d.Vectorize(add1, a, Out(a))
			if err != nil || b != a {
				return false, err
			}
		}
		err = d.Sync()
		return err == nil && a.At(7) == 10, err
	}},
	{"over itself", func(d *Device) (bool, error) {
		a, err := d.Put(FromSlice([]float64{1, 2, 3, 4}))
		if err != nil {
			return false, err
		}
		defer a.Free()
		if _, err := d.Vectorize(add2, a.Slice(0, 0, 3, 1), a.Slice(0, 1, 4, 1), Out(a.Slice(0, 1, 4, 1))); err != nil {
			return false, err
		}
		return a.At(3) == 7, nil
	}},
	{"host", func(d *Device) (bool, error) {
		z, err := d.Vectorize(idiv, []int{9, 8}, []int{3, 2})
		return err == nil && z.At(1) == 4, err
	}},
	{"a worker fails", func(d *Device) (bool, error) {
		_, err := d.Vectorize(idiv, []int{9, 8}, []int{3, 0})
		if w := new(WorkerError); errors.As(err, &w) {
			return w.Index[0] == 1, nil
		}
		return false, err
	}},
	{"gufunc", func(d *Device) (bool, error) {
		z, err := d.GUVectorize(scaleRow, "(n),()->(n)", FromSlice(Arange(12).Float64s()).Reshape(3, 4), 2.0)
		return err == nil && z.At(2, 3) == 22, err
	}},
	{"launch", func(d *Device) (bool, error) {
		x := []float64{4, 6}
		err := d.Launch(halve, Blocks(1), Threads(1), x)
		if err != nil && (x[0] != 4 || x[1] != 6) {
			return false, fmt.Errorf("the launch failed, but its argument was written: %v", x)
		}
		return err == nil && x[0] == 2 && x[1] == 3, err
	}},
	{"prints", func(d *Device) (bool, error) {
		n := 0
		d.printed = func(line string) {
			if line == "three 3" || strings.HasPrefix(line, "three") {
				n++
			}
		}
		z, err := d.Vectorize(tells, []float64{1, 3, 5})
		return err == nil && n == 1 && z.At(2) == 5, err
	}},
	{"in parts", func(d *Device) (bool, error) {
		x := make([]float64, 1000)
		for i := range x {
			x[i] = float64(i)
		}
		z, err := d.Vectorize(add2, x, 1.0)
		return err == nil && z.Sum() == 500500, err
	}},
	{"in parts, a worker fails", func(d *Device) (bool, error) {
		a, b := make([]int, 1000), make([]int, 1000)
		for i := range b {
			b[i] = 998 - i
		}
		_, err := d.Vectorize(idiv, a, b)
		if w := new(WorkerError); errors.As(err, &w) {
			return w.Index[0] == 998, nil
		}
		return false, err
	}},
}

// caughtFault runs one of everyWay; methods of arrays panic.
func caughtFault(d *Device, f func(d *Device) (bool, error)) (right bool, err error) {
	if why := caught(func() { right, err = f(d) }); why != "" {
		err = errors.New(why)
	}
	return right, err
}

// Whatever call of the driver fails, at whatever time: the error says where, nothing
// is left, and the next call works, or says that the device is lost, and a new one
// works. A few of them are tried; FAULTS=all tries each.
func TestDriverFaults(t *testing.T) {
	old := sampleTime
	sampleTime = 0
	defer func() { sampleTime = old }()
	smallParts(t, 4000, 1000, 1000)
	methods := []string{"Alloc", "Free", "Pinned", "FreePinned", "StartIn", "StartOut", "CopyIn", "CopyOut", "Copy", "Fill", "Load", "Function", "Launch", "Mark", "After", "Wait", "Sync", "doing"}
	codes := []driver.Code{driver.OutOfMemory, driver.Unknown, driver.IllegalAddress}
	hits := map[string]int{}
	few := os.Getenv("FAULTS") != "all"
	r := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 3))
	for _, way := range everyWay {
		x := lag(3)
		d := x.opened()
		begin := map[string]int{}
		for _, m := range methods {
			begin[m] = x.count(m)
		}
		if right, err := caughtFault(d, way.run); !right || err != nil {
			t.Fatalf("%s: %v, %v", way.name, right, err)
		}
		d.Sync()
		for _, m := range methods {
			n := x.count(m) - begin[m]
			for _, at := range []int{1, 2, 3, (n + 1) / 2, n - 1, n} {
				if at < 1 || at > n {
					continue
				}
				hits[m]++
				for _, code := range codes {
					if !few || r.IntN(25) == 0 {
						injected(t, way.name, way.run, m, at, code)
					}
				}
			}
		}
		d.Close()
	}
	for _, m := range methods {
		if hits[m] == 0 && m != "Free" && m != "FreePinned" {
			t.Errorf("nothing called %s", m)
		}
	}
}

func injected(t *testing.T, name string, run func(d *Device) (bool, error), method string, at int, code driver.Code) {
	t.Helper()
	x := lag(3)
	d := x.opened()
	base, first := x.left(), x.count(method)
	name = fmt.Sprintf("%s, %s number %d is %v", name, method, at, code)
	x.mu.Lock()
	x.fail = func(m string, n int) error {
		if m == method && n == first+at {
			return errInjected(code, "cuFake"+method)
		}
		return nil
	}
	x.mu.Unlock()
	right, err := caughtFault(d, run)
	if err == nil {
		err = d.Sync() // of what nobody waited for
	}
	x.mu.Lock()
	x.fail = nil
	lost := x.lost
	x.mu.Unlock()
	if err == nil && !right {
		t.Errorf("%s: no error, and the results are wrong", name)
	}
	if err != nil && (!strings.Contains(err.Error(), "on sim:lagging: ") || !strings.Contains(err.Error(), code.String())) {
		t.Errorf("%s: the error does not say where: %v", name, err)
	}
	if err != nil && code == driver.OutOfMemory && errors.As(err, new(*DeviceError)) && !errors.Is(err, ErrOutOfMemory) {
		t.Errorf("%s: %v is not ErrOutOfMemory", name, err)
	}
	if lost != nil {
		if err == nil || !strings.Contains(err.Error(), "the device is lost: close it and open it again") {
			t.Errorf("%s: %v", name, err)
		}
		for _, way := range everyWay[:5] {
			if _, err := caughtFault(d, way.run); err == nil || !strings.Contains(err.Error(), "the device is lost: close it and open it again") {
				t.Errorf("%s, then %s: %v", name, way.name, err)
			}
		}
	} else if right, err := caughtFault(d, run); !right || err != nil {
		t.Errorf("%s, then again: %v, %v", name, right, err)
	}
	if lost == nil {
		runtime.GC()
		if err := d.gpu.pool.reclaim(); err != nil || held(d) != 0 || x.left() > base && method != "Free" {
			t.Errorf("%s: %v, %d bytes are held, %d blocks are left, at first it were %d", name, err, held(d), x.left(), base)
		}
	}
	if n := len(d.gpu.staging.used); n > 0 {
		t.Errorf("%s: %d pieces of staging memory are in use", name, n)
	}
	if err := d.Close(); err != nil {
		t.Errorf("%s: Close: %v", name, err)
	}
	if n := len(x.pinned); n > 0 && lost == nil && method != "FreePinned" {
		t.Errorf("%s: %d pieces of pinned memory are left", name, n)
	}
	if err := second(d.Vectorize(add1, 1.0)); !errors.Is(err, ErrClosed) {
		t.Errorf("%s: after Close: %v", name, err)
	}
}
