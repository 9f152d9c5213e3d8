package gpukit_test

import (
	"math"
	"sync"
	"testing"

	"gpunotes/gpukit"
	"gpunotes/gpukit/host"
)

type report struct{ done, total int64 }

// reports are what the host is told of calls.
func reports(t *testing.T, calls func()) (list []report) {
	var mu sync.Mutex
	old := host.Current()
	defer host.Attach(old)
	host.Attach(host.Host{Progress: func(done, total int64) {
		mu.Lock()
		defer mu.Unlock()
		list = append(list, report{done, total})
	}})
	calls()
	return list
}

func iterateLess(x float64) float64 {
	for i := 0; i < 20; i++ {
		x += math.Sin(x)
	}
	return x
}

func iterate(x float64) float64 {
	for i := 0; i < 3000; i++ {
		x += math.Sin(x)
	}
	return x
}

// Every report of a call is of the same total, none says less than the one before, it
// begins at 0 and comes on.
func TestProgress(t *testing.T) {
	for _, c := range []struct {
		device string
		env    string
		fn     any
		n      int
	}{
		{"cpu", "", iterate, 20000},
		{"parallel", "", iterate, 20000},
		{"parallel", "portable", iterate, 20000},
		{"sim:gtx-970", "", iterateLess, 1 << 16}, // more blocks than the card holds
	} {
		t.Run(c.device+c.env, func(t *testing.T) {
			if c.env != "" {
				t.Setenv("GPUNOTES_CPU", c.env)
			}
			d := gpukit.MustOpen(c.device)
			defer d.Close()
			var x *gpukit.Array
			list := reports(t, func() { x = gpukit.Must(d.Vectorize(c.fn, gpukit.Linspace(0, 1, c.n))) })
			if x.Size() != c.n {
				t.Fatal(x)
			}
			if len(list) < 2 || list[0].done != 0 {
				t.Fatalf("reports %v", list)
			}
			for i, r := range list {
				if r.total != list[0].total || r.total < 2 || r.done > r.total || i > 0 && r.done < list[i-1].done {
					t.Errorf("report %d: %d of %d after %v", i, r.done, r.total, list[max(i-1, 0)])
				}
			}
			if last := list[len(list)-1]; 2*last.done < last.total {
				t.Errorf("the last report is %d of %d", last.done, last.total)
			}
			again := reports(t, func() { gpukit.Must(d.Vectorize(c.fn, gpukit.Linspace(0, 1, c.n))) })
			if again[0].done != 0 || again[len(again)-1].done == 0 {
				t.Errorf("the second call begins with %v, ends with %v", again[0], again[len(again)-1])
			}
		})
	}
}

func TestArrayDevice(t *testing.T) {
	sim := gpukit.MustOpen("sim:gtx-970")
	defer sim.Close()
	x := gpukit.Linspace(0, 1, 4)
	put := gpukit.Must(sim.Put(x))
	for _, c := range []struct {
		a    *gpukit.Array
		want string
	}{
		{x, "host"}, {x.As(gpukit.Float32), "host"}, {put, "sim:gtx-970"}, {put.Reshape(2, 2).T(), "sim:gtx-970"}, {put.Host(), "host"}, {nil, ""},
	} {
		if got := c.a.Device(); got != c.want {
			t.Errorf("device %q, want %q", got, c.want)
		}
	}
	put.Free()
	if got := put.Device(); got != "sim:gtx-970" {
		t.Errorf("of a freed array: %q", got)
	}
}
