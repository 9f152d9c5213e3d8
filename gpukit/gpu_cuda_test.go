//go:build cuda

package gpukit

import (
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"gpunotes/gpukit/host"
	"gpunotes/gpukit/internal/driver/cuda/shim"
)

// The driver reads its surroundings once. So each kind of trouble is a process of its
// own: this test program again, on a libcuda that simulates (package mock), which
// GPUNOTES_LIBCUDA names. It proves that errors arrive, not that a card makes them.
const troubleChild = "GPUNOTES_TROUBLE"

func livingOnTheMock() (string, bool) { return shim.Ask("gpunotesMockLive") }

// trouble runs f in a process with these settings.
func trouble(t *testing.T, name string, env []string, f func(t *testing.T)) {
	t.Run(name, func(t *testing.T) {
		if os.Getenv(troubleChild) == t.Name() {
			f(t)
			return
		}
		t.Parallel()
		args := []string{"-test.v", "-test.timeout=100s"}
		var path []string
		for _, p := range strings.Split(t.Name(), "/") {
			path = append(path, "^"+strings.NewReplacer("(", "\\(", ")", "\\)").Replace(p)+"$")
		}
		c := exec.Command(os.Args[0], append(args, "-test.run="+strings.Join(path, "/"))...)
		c.Env = append(append(os.Environ(), troubleChild+"="+t.Name(), "ENGINES="), env...) // some of them have no card
		out, err := c.CombinedOutput()
		if err != nil || !strings.Contains(string(out), "--- PASS: "+t.Name()) {
			t.Errorf("%v: %v\n%s", env, err, out)
		}
	})
}

// says fails the test if an error does not have all of words.
func says(t *testing.T, err error, words ...string) {
	t.Helper()
	if err == nil {
		t.Errorf("no error; it should say %q", words)
		return
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("%v; it does not say %q", err, w)
		}
	}
}

// nothingLeft looks whether all memory of the driver was given back.
func nothingLeft(t *testing.T) {
	t.Helper()
	if left, ok := livingOnTheMock(); !ok || !strings.Contains(left, "allocations 0 (0 bytes), pinned 0") {
		t.Errorf("left: %q", left)
	}
}

func TestTrouble(t *testing.T) {
	if os.Getenv(troubleChild) == "" {
		cudaDevices()
		if _, mock := livingOnTheMock(); !mock {
			t.Skip("for the mock of libcuda: GPUNOTES_LIBCUDA names it")
		}
	}
	without := func(words ...string) func(t *testing.T) {
		return func(t *testing.T) {
			_, err := Open("cuda:0")
			says(t, err, append(words, "gpukit.Open(\"cuda:0\")", "\"parallel\"")...)
			d, err := Open("auto")
			if err != nil || d.Name() != "parallel" {
				t.Errorf("auto is %v, %v", d, err)
			}
			for _, i := range Devices() {
				if strings.HasPrefix(i.Name, "cuda") || strings.Contains(i.Description, "cuda") {
					t.Errorf("there is %v", i)
				}
			}
			sim := MustOpen("sim:quadro-k2000")
			defer sim.Close()
			same(t, "simulated", Must(sim.Vectorize(add1, 1.0)).Item(), 2.0)
		}
	}
	trouble(t, "no library", []string{"GPUNOTES_LIBCUDA=/nowhere/libcuda.so.1"}, without("/nowhere/libcuda.so.1"))
	trouble(t, "library turned off", []string{"GPUNOTES_LIBCUDA="}, without("GPUNOTES_LIBCUDA"))
	trouble(t, "no GPU", []string{"GPUNOTES_MOCK_CARDS="}, without("CUDA_ERROR_NO_DEVICE"))
	for value, word := range map[string]string{"0000:01:00.0": "PCI id", "-1": "-1", "7": "no device 7", "GPU-12345678": "UUID", "": "empty"} {
		trouble(t, "hidden by "+strings.ReplaceAll(value, ":", " "), []string{"CUDA_VISIBLE_DEVICES=" + value}, without("CUDA_VISIBLE_DEVICES", word))
	}
	for value, want := range map[string]string{"1": "Quadro", "1,0": "Quadro", "0": "H200"} {
		trouble(t, "shown "+value, []string{"CUDA_VISIBLE_DEVICES=" + value}, func(t *testing.T) {
			d := MustOpen("auto")
			defer d.Close()
			p, err := d.Explain(add1, 1.0)
			if err != nil || d.Name() != "cuda:0" || !strings.Contains(p.Engine, want) {
				t.Errorf("%v: %v, %v", d, p, err)
			}
			list := fmt.Sprint(Devices())
			if !strings.Contains(list, "cuda:0: ") || !strings.Contains(list, "the best device there is: cuda:0") || strings.Contains(list, "cuda:1: ") != (value == "1,0") {
				t.Error(list)
			}
		})
	}
	trouble(t, "names", nil, func(t *testing.T) {
		for name, word := range map[string]string{"cuda:5": "there are cuda:0 and cuda:1", "cuda:x": "by its number", "cuda": "by its number", "cuda:": "by its number", "cuda:-1": "by its number", "cuda:01": "by its number"} {
			_, err := Open(name)
			says(t, err, word, "\"cuda:1\"", fmt.Sprintf("Open(%q)", name))
		}
	})
	trouble(t, "driver older than the code", []string{"GPUNOTES_MOCK_DRIVER=8000"}, func(t *testing.T) {
		d := MustOpen("cuda:0")
		defer d.Close()
		for range 2 {
			says(t, second(d.Vectorize(add1, 1.0)), "Vectorize on cuda:0", "5.0", "6.0", "newer driver")
		}
		k := MustOpen("cuda:1") // an older card needs no newer code
		defer k.Close()
		same(t, "quadro", Must(k.Vectorize(add1, 1.0)).Item(), 2.0)
	})
	trouble(t, "two openings share a memory", []string{"GPUNOTES_MOCK_MEMORY=300000000"}, func(t *testing.T) {
		first := MustOpen("cuda:0")
		Must(first.Put(FromSlice(make([]float64, 20e6)))).Free() // kept for the next of its size
		second := MustOpen("cuda:0")
		Must(second.Put(FromSlice(make([]float64, 20e6)))).Free()
		for range 6 { // as a cell that is run again and again
			Must(MustOpen("cuda:0").Put(FromSlice(make([]float64, 10e6))))
		}
		same(t, "the first", Must(first.Vectorize(add1, []float64{1})).At(0), 2.0)
	})
	trouble(t, "a device that fails as an argument is read", []string{"GPUNOTES_MOCK_FAIL=cuMemcpyDtoHAsync_v2:1=700"}, func(t *testing.T) {
		d := MustOpen("cuda:0")
		_, err := d.Vectorize(add1, Must(d.Put([]float64{1, 2, 3})))
		if !errors.As(err, new(*DeviceError)) {
			t.Errorf("%T: %v", err, err)
		}
		says(t, err, "cuda:0", "close it and open it again")
	})
	trouble(t, "out of memory", []string{"GPUNOTES_MOCK_MEMORY=200000000"}, func(t *testing.T) {
		d := MustOpen("cuda:0")
		x := Must(d.Put(FromSlice(make([]float64, 1e6))))
		for range 2 {
			_, err := d.Empty(Float64, 25e6)
			says(t, err, "Empty on cuda:0", "out of device memory")
			if !errors.Is(err, ErrOutOfMemory) {
				t.Errorf("%v is not ErrOutOfMemory", err)
			}
			_, err = d.Vectorize(add1, make([]float64, 12e6))
			says(t, err, "Vectorize on cuda:0", "out of device memory")
			same(t, "a small call", Must(d.Vectorize(add1, x)).At(5), 1.0)
		}
		// What nobody has any more makes room.
		for range 12 {
			if _, err := d.Empty(Float64, 5e6); err != nil {
				t.Fatal(err)
			}
		}
		runtime.KeepAlive(x)
		d.Close()
		nothingLeft(t)
	})
	trouble(t, "limits of a launch", nil, func(t *testing.T) {
		d := MustOpen("cuda:1")
		defer d.Close()
		x := Zeros(10)
		says(t, second(d.With(ThreadsPerBlock(2048)).Vectorize(add1, x)), "2048", "1024")
		says(t, d.Launch(halve, Grid{X: 1, Y: 70000, Z: 1}, Threads(1), x), "70000", "65535")
		says(t, d.Launch(halve, Blocks(1), Block{X: 1, Y: 1, Z: 65}, x), "65", "64")
		same(t, "the next call", Must(d.Vectorize(add1, 1.0)).Item(), 2.0)
	})
	trouble(t, "64 goroutines", []string{"GPUNOTES_MOCK_FAST=1"}, func(t *testing.T) {
		d := MustOpen("cuda:0")
		e := MustOpen("cuda:1")
		x := Must(d.Put(Arange(500)))
		var wg sync.WaitGroup
		for k := range 64 {
			wg.Go(func() {
				for i := range 4 {
					z, err := d.Vectorize(add2, x, Full(float64(k), 500))
					if err != nil || z.At(i) != float64(i+k) {
						t.Errorf("%v, %v", z, err)
						return
					}
					z.Free()
					y := make([]float64, 300)
					for j := range y {
						y[j] = float64(k)
					}
					if z, err = e.Vectorize(add1, y); err != nil || z.Sum() != 300*float64(k+1) {
						t.Errorf("%v, %v", z, err)
						return
					}
				}
			})
		}
		wg.Wait()
		d.Close()
		e.Close()
		nothingLeft(t)
	})
	trouble(t, "two devices", nil, func(t *testing.T) {
		d, e := MustOpen("cuda:0"), MustOpen("cuda:1")
		x := Must(d.Put(Arange(10)))
		says(t, second(e.Vectorize(add1, x)), "opened as \"cuda:0\"", "the call on cuda:1")
		same(t, "on one", Must(d.Vectorize(add1, x)).Sum(), 55.0)
		same(t, "on the other", Must(e.Vectorize(add1, x.Host())).Sum(), 55.0)
		for range 2 {
			if err := d.Close(); err != nil {
				t.Error(err)
			}
		}
		for op, err := range map[string]error{
			"Vectorize": second(d.Vectorize(add1, 1.0)), "Put": second(d.Put([]float64{1})), "Sync": d.Sync(), "Empty": second(d.Empty(Float64, 3)),
		} {
			if !errors.Is(err, ErrClosed) || !strings.Contains(err.Error(), op) {
				t.Errorf("%s: %v", op, err)
			}
		}
		shapeError(t, "At", func() { x.At(0) }, "closed")
		same(t, "the other still works", Must(e.Vectorize(add1, 1.0)).Item(), 2.0)
		e.Close()
		nothingLeft(t)
	})
	trouble(t, "a fault that stays", []string{"GPUNOTES_MOCK_FAIL=cuLaunchKernel:2=700"}, func(t *testing.T) {
		d := MustOpen("cuda:0")
		x := Must(d.Put(Arange(1000)))
		Must(d.Vectorize(add1, x))
		err := second(d.Vectorize(add1, x))
		if err == nil {
			err = d.Sync()
		}
		says(t, err, "on cuda:0", "CUDA_ERROR_ILLEGAL_ADDRESS", "close it and open it again")
		for _, err := range []error{second(d.Vectorize(add1, 1.0)), second(d.Put([]float64{1})), second(d.Empty(Float64, 1e6)), d.Sync()} {
			says(t, err, "close it and open it again")
		}
		if err := d.Close(); err != nil {
			t.Error(err)
		}
		d, err = Open("cuda:0")
		if err != nil {
			t.Fatal(err)
		}
		same(t, "opened again", Must(d.Vectorize(add1, Arange(1000))).Sum(), 500500.0)
		d.Close()
		nothingLeft(t)
	})
	trouble(t, "Stop", nil, func(t *testing.T) {
		d := MustOpen("cuda:0")
		defer d.Close()
		old := host.Current()
		defer host.Attach(old)
		for _, x := range []any{1.0, Must(d.Put(Arange(3))), make([]float64, 3e6)} {
			var stop atomic.Bool
			var at atomic.Int64
			host.Attach(host.Host{Interrupted: stop.Load})
			began := time.Now()
			time.AfterFunc(300*time.Millisecond, func() { at.Store(int64(time.Since(began))); stop.Store(true) })
			_, err := d.Vectorize(endless, x)
			took := time.Since(began) - time.Duration(at.Load())
			host.Attach(old)
			if !errors.Is(err, ErrInterrupted) || took > 5*time.Second {
				t.Errorf("%v, %v after Stop", err, took)
			}
			t.Logf("%v after Stop", took)
			same(t, "the next call", Must(d.Vectorize(endless, math.NaN())).Size(), 1)
		}
	})
	for _, seed := range []string{"1", "2", "3"} {
		trouble(t, "orders "+seed, []string{"GPUNOTES_MOCK_SEED=" + seed, "GPUNOTES_MOCK_FAST=1"}, func(t *testing.T) {
			smallParts(t, 4000, 4000, 2000)
			d := MustOpen("cuda:0")
			for _, way := range everyWay {
				if right, err := caughtFault(d, way.run); !right || err != nil {
					t.Errorf("%s: %v, %v", way.name, right, err)
				}
			}
			agreesInParts(t, d, 60, func() int { return 0 })
			d.Close()
			nothingLeft(t)
		})
	}
}
