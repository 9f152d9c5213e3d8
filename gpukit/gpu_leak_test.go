package gpukit

import (
	"fmt"
	"os"
	"runtime"
	"sync"
	"testing"
	"weak"

	"gpunotes/gpukit/internal/cpu"
)

// All cards that the tests of this package open are looked at in the end: memory of a
// device that no array holds and no call uses is lost, and an array that something
// still refers to when all tests are over was kept by gpukit.
func TestMain(m *testing.M) {
	cpu.Loud = true // no test passes because the portable engine took over in silence
	var mu sync.Mutex
	var cards []weak.Pointer[gpu]
	whenOpened = func(g *gpu) {
		mu.Lock()
		defer mu.Unlock()
		cards = append(cards, weak.Make(g))
	}
	code := m.Run()
	for range 2 { // cards that nobody has any more go with the first
		runtime.GC()
	}
	for _, w := range cards {
		if g := w.Value(); g != nil && code == 0 {
			if why := g.leaks(); why != "" {
				fmt.Fprintf(os.Stderr, "after all tests: %s: %s\n", g.name, why)
				code = 1
			}
		}
	}
	os.Exit(code)
}

// leaks says what of a card's memory is still held although no call runs and no array
// should be left, or "".
func (g *gpu) leaks() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.pool.mu.Lock()
	defer g.pool.mu.Unlock()
	temporary, arrays, held := 0, 0, 0
	for b, w := range g.pool.live {
		switch {
		case w.Value() != nil:
			arrays++
			held += b.size
		case w == weak.Pointer[deviceMemory]{}:
			temporary += b.size
		}
	}
	switch {
	case temporary > 0:
		return fmt.Sprintf("%d bytes were taken by a call and not given back", temporary)
	case arrays > 0:
		return fmt.Sprintf("%d arrays with %d bytes are still open", arrays, held)
	case len(g.staging.used) > 0:
		return fmt.Sprintf("%d pieces of staging memory are in use", len(g.staging.used))
	}
	return ""
}

// What TestMain looks for is found.
func TestLeaksAreFound(t *testing.T) {
	d := MustOpen("sim:quadro-k2000")
	defer d.Close()
	same(t, "at first", d.gpu.leaks(), "")
	a := Must(d.Put([]float64{1, 2, 3}))
	same(t, "an array", d.gpu.leaks(), "1 arrays with 24 bytes are still open")
	a.Free()
	same(t, "freed", d.gpu.leaks(), "")
	b, err := d.gpu.alloc(100)
	if err != nil {
		t.Fatal(err)
	}
	same(t, "memory of a call", d.gpu.leaks(), "100 bytes were taken by a call and not given back")
	d.gpu.pool.put(b)
	same(t, "given back", d.gpu.leaks(), "")
	runtime.KeepAlive(a)
}
