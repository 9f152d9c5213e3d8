package gpukit

import (
	"math"
	"os"
	"strings"
	"testing"

	"gpunotes/gpukit/internal/driver/sim"
)

func low(x float64) uint8          { return uint8(uint64(x)) }
func lowOf(x, y float64) uint8     { return uint8(uint64(x) + 3*uint64(y)) }
func addBytes(x, y uint8) uint8    { return x + y }
func hasCode(code, op string) bool { return strings.Contains(code, op) }

// openRoomy opens an h200 that does not ask how much memory this machine has: what is
// not touched takes none.
func openRoomy(t *testing.T) *Device {
	g, err := simulatedWith("sim:h200", sim.Options{HostBytes: func() uint64 { return math.MaxUint64 / 2 }})
	if err != nil {
		t.Fatal(err)
	}
	d := g.device()
	t.Cleanup(func() { d.Close() })
	return d
}

// Elements that are more than 4 GiB apart, in rows whose stride is beyond 32 bits.
func TestAddressesBeyond32Bits(t *testing.T) {
	d := openRoomy(t)
	const apart = 1<<32 + 1<<31 + 64
	m, err := d.gpu.memory(Uint8, 3*apart+100)
	if err != nil {
		t.Fatal(err)
	}
	all := d.keep(newArray(m, []int{3*apart + 100}))
	defer all.Free()
	part := &Array{all.store, 7, []int{3, 20}, []int{apart, 2}}
	row := Must(d.Vectorize(low, Arange(20)))
	Must(d.Vectorize(lowOf, Arange(20), Arange(3).Reshape(3, 1), Out(part)))
	Must(d.Vectorize(addBytes, part, row, Out(part)))
	for i := range 3 {
		for j := range 20 {
			if got, want := part.store.bits(7+i*apart+2*j), uint64(2*j+3*i); got != want {
				t.Fatalf("element %d, %d is %d, want %d", i, j, got, want)
			}
		}
	}
	back := &Array{all.store, 7 + 2*apart, []int{3}, []int{-apart}}
	same(t, "reversed", Must(d.Vectorize(low, Arange(3), Out(back))).NDim(), 1)
	same(t, "first of the last row", part.store.bits(7+2*apart), uint64(0))
	same(t, "first of the first row", part.store.bits(7), uint64(2))
}

// More workers than 32 bits count: the grid is one that the card takes, and nothing is
// counted in 32 bits. Below that it is.
func TestWorkersBeyond32Bits(t *testing.T) {
	d := quadro(t)
	for _, c := range []struct {
		rows, columns int
		wide          bool
	}{{1 << 10, 1 << 10, false}, {1<<16 - 1, 1 << 15, false}, {1 << 16, 1 << 15, true}, {1 << 20, 1 << 20, true}} {
		x, y := MeshGrid(Arange(c.columns), Arange(c.rows))
		p, err := d.With(OneWorkerPerSlice()).Explain(lowOf, x, y)
		if err != nil {
			t.Fatal(err)
		}
		if p.Workers != c.rows*c.columns || p.Grid.X > d.gpu.info.MaxGrid.X || p.Grid.X < min(p.Workers/p.Block.X, d.gpu.info.MaxGrid.X) || p.Grid.Y != 1 {
			t.Errorf("%d x %d: %d workers, grid %v", c.rows, c.columns, p.Workers, p.Grid)
		}
		if hasCode(p.Code, "div.u64") != c.wide || hasCode(p.Code, "div.u32") == c.wide {
			t.Errorf("%d x %d: places are counted in the wrong width:\n%s", c.rows, c.columns, p.Code)
		}
	}
	// A card with a small grid: the same code, a thread for many workers.
	d.gpu.info.MaxGrid.X = 2
	z := Must(d.With(ThreadsPerBlock(32)).Vectorize(lowOf, Arange(50), Arange(40).Reshape(40, 1)))
	same(t, "last", z.At(39, 49), float64(uint8(49+3*39)))
}

// The whole way, with 2^31 + 1000 workers. It takes minutes and 2 GiB.
func TestTwoToThe31Workers(t *testing.T) {
	if os.Getenv("WIDE") == "" {
		t.Skip("takes minutes: set WIDE=1")
	}
	g, err := simulatedWith("sim:h200", sim.Options{Unchecked: true, Uncounted: true})
	if err != nil {
		t.Fatal(err)
	}
	d := g.device()
	defer d.Close()
	const n = 1<<31 + 1000
	z := Must(d.Vectorize(low, Arange(n), Out(Must(d.Empty(Uint8, n)))))
	for _, k := range []int{0, 1, 255, 256, 1<<31 - 1, 1 << 31, 1<<31 + 1, n - 1} {
		same(t, "element", z.At(k), float64(k%256))
	}
}
