package gpukit

import "testing"

// The way of a call that has next to nothing to do: what is left is our own.
func BenchmarkSmallCallOnAGPU(b *testing.B) {
	d := MustOpen("sim:quadro-k2000")
	defer d.Close()
	one := []float64{1}
	x := Must(d.Put(one))
	out := Must(d.Empty(Float64, 1))
	for _, c := range []struct {
		name string
		f    func() error
	}{
		{"resident", func() error { return second(d.Vectorize(add1, x, Out(out))) }},
		{"resident, may fail", func() error { return d.Launch(setFirst, Blocks(1), Threads(1), x) }},
		{"host", func() error { return second(d.Vectorize(add1, one)) }},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := c.f(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
