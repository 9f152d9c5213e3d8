package gpukit

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"gpunotes/gpukit/internal/ir"
	"gpunotes/gpukit/internal/shape"
)

func weighted(x [][]float64, w []float64, s float64, out []float64) {
	for i := range out {
		sum := 0.0
		for j := range w {
			sum += float64(x[i][j] * w[j])
		}
		out[i] = float64(sum*s) + out[i]
	}
}

func plusTimes(x, y, z float64) float64 { return float64(x*y) + z }

// anyLayout is an array of a shape in a layout by chance, with elements of its own,
// which may be on a GPU.
func anyLayout(r *rand.Rand, d *Device, dims ...int) *Array {
	if r.IntN(6) == 0 {
		n, _ := shape.Size(dims)
		return Linspace(0, float64(n), n).Reshape(dims...)
	}
	full := make([]int, len(dims))
	for i, n := range dims {
		if full[i] = n + r.IntN(2); r.IntN(5) == 0 {
			full[i] = 2*n + 1
		}
	}
	turned := len(dims) > 1 && r.IntN(4) == 0
	if turned {
		slices.Reverse(full)
	}
	a := axes(full...)
	if d.gpu != nil && r.IntN(2) == 0 {
		a = Must(d.Put(a))
	}
	if turned {
		a = a.T()
	}
	for i, n := range dims {
		step, from := 1, 0
		if a.shape[i] > 2*n {
			step = 2
		} else if a.shape[i] > n {
			from = r.IntN(2)
		}
		a = a.Slice(i, from, from+step*(n-1)+1, step)
	}
	if r.IntN(5) == 0 {
		i := r.IntN(len(dims))
		return a.Slice(i, 0, 1, 1).BroadcastTo(dims...)
	}
	return a
}

// TestFactsOfCalls makes random calls of few functions, so that much is code that
// was made for another call with the same facts, and compares the results with the
// evaluator's; what the facts say of addresses is compared with every worker's.
func TestFactsOfCalls(t *testing.T) {
	ref := openReference()
	for _, name := range []string{"cpu", "sim:quadro-k2000"} {
		t.Run(name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(uint64(len(name)), 5))
			d := MustOpen(name)
			defer d.Close()
			shapes := map[shape.Facts]string{}
			again := 0
			for range 150 {
				size := func() int { return 1 + min(r.IntN(30), 1+r.IntN(8)) }
				m, n, l := size(), size(), size()
				var fn any
				var layout string
				var args []any
				switch r.IntN(3) {
				case 0:
					fn, layout = weighted, "(m,n),(n),()->(m)"
					args = []any{anyLayout(r, d, l, m, n), anyLayout(r, d, n), anyLayout(r, d, l)}
				case 1:
					fn, layout = matmul, "(m,n),(n,p)->(m,p)"
					args = []any{anyLayout(r, d, m, n), anyLayout(r, d, l, n, m)}
				case 2:
					fn = plusTimes
					args = []any{anyLayout(r, d, m, n), anyLayout(r, d, n), anyLayout(r, d, m, 1)}
				}
				what := fmt.Sprint(layout, m, n, l)
				call := func(d *Device, args ...any) (*Array, error) {
					if layout == "" {
						return d.Vectorize(fn, args...)
					}
					return d.GUVectorize(fn, layout, args...)
				}
				var lay *string
				if layout != "" {
					lay = &layout
				}
				c, err := d.spread("GUVectorize", fn, lay, 1, args)
				if err != nil {
					t.Fatal(what, err)
				}
				stages, err := c.stages(d)
				if err != nil {
					t.Fatal(what, err)
				}
				for i := range stages {
					s := &stages[i]
					if old, ok := shapes[s.known]; ok && old != what {
						again++
					}
					shapes[s.known] = what
					if d.gpu != nil {
						s.addresses(t, c, what)
					}
				}
				got, err := call(d, args...)
				if err != nil {
					t.Fatal(what, err)
				}
				for i := range args {
					args[i] = args[i].(*Array).Host()
				}
				if want := Must(call(ref, args...)); digest(got.Host()) != digest(want) {
					t.Fatalf("%s: %v\nwant %v", what, got, want)
				}
			}
			if again < 12 {
				t.Errorf("facts of %d launches were those of other shapes", again)
			}
		})
	}
}

// addresses compares what is known of alignment with all workers' arrays.
func (s *stage) addresses(t *testing.T, c *call, what string) {
	k := kernelOf(s.f, s.known)
	for m, b := range s.mems {
		a := k.Facts.Arrays[ir.Mem(m)]
		if b == nil || a.Align == 0 {
			continue
		}
		size := b.array.DType().Size()
		for i, q := range s.f.Params {
			if q.Kind != ir.Offset || q.Mem != ir.Mem(m) {
				continue
			}
			shape.Each(s.Shape, s.In[i].Strides, s.In[i].Offset, func(at int) {
				if (c.places.homes[b].shift+at*size)%a.Align != 0 {
					t.Fatalf("%s: an array of %s begins at byte %d, which is no multiple of %d", what, b.name, at*size, a.Align)
				}
			})
		}
	}
}
