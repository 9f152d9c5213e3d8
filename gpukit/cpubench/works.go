package main

import (
	"fmt"
	"math"
	"sync"

	"gpunotes/gpukit"
)

// sizes are the same for every tool; bench.py says them.
type sizes struct {
	rows      int // of the discount, each of 20000 elements
	side      int // points along each axis of the distance mesh
	options   int // rows of 512
	pixels    int // along each axis of the Mandelbrot set
	most      int // iterations of a pixel
	matrices  int // 8x8, once through memory
	resident  int // 8x8, that stay in the cache
	repeats   int // of these
	processor int // threads of the rows for several
}

const row, columns, five, optionRow, eight = 20000, 4000, 5, 512, 8

// work is one variant of a piece of work on one number of threads, its
// arguments ready.
type work struct {
	run    func() error
	result func() []float64
}

// bench makes works. Arrays of arguments are shared by all of them.
type bench struct {
	sizes
	inputs  map[string][]float64
	devices [2]*gpukit.Device // for one thread, for several
}

func newBench(s sizes) (*bench, error) {
	b := &bench{sizes: s, inputs: map[string][]float64{}}
	for i, name := range []string{"cpu", "parallel"} {
		d, err := gpukit.Open(name)
		if err != nil {
			return nil, err
		}
		b.devices[i] = d
	}
	return b, nil
}

func (b *bench) input(name string, n int, element func(int) float64) []float64 {
	if x, ok := b.inputs[name]; ok {
		return x
	}
	x := make([]float64, n)
	for i := range x {
		x[i] = element(i)
	}
	b.inputs[name] = x
	return x
}

// uniform is a number in [0, 1) for each index, by splitmix64, which every tool
// can compute alike.
func uniform(i int) float64 {
	z := uint64(i+1) * 0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return float64((z^z>>31)>>11) / (1 << 53)
}

// spaced is numpy's linspace.
func spaced(start, stop float64, n, i int) float64 {
	if i == n-1 {
		return stop
	}
	return float64(float64(i)*((stop-start)/float64(n-1))) + start
}

func (b *bench) small() []float64 {
	return b.input("small", row, func(i int) float64 { return float64(i) })
}

func (b *bench) discount() []float64 {
	return b.input("discount", b.rows*row, func(i int) float64 { return float64(i) })
}

func (b *bench) mesh() (lat, lon []float64) {
	n := b.side
	lat = b.input("lat", n*n, func(i int) float64 { return spaced(29, 31, n, i%n) })
	lon = b.input("lon", n*n, func(i int) float64 { return spaced(99, 101, n, i/n) })
	return lat, lon
}

func (b *bench) market() (price, strike, years []float64) {
	n := b.options * optionRow
	price = b.input("price", n, func(i int) float64 { return 5 + float64(25*uniform(3*i)) })
	strike = b.input("strike", n, func(i int) float64 { return 1 + float64(99*uniform(3*i+1)) })
	years = b.input("years", n, func(i int) float64 { return 0.25 + float64(9.75*uniform(3*i+2)) })
	return price, strike, years
}

func (b *bench) plane() (cx, cy []float64) {
	n := b.pixels
	cx = b.input("cx", n, func(i int) float64 { return float64(float64(3*i)/float64(n)) - 2 })
	cy = b.input("cy", n, func(i int) float64 { return float64(float64(3*i)/float64(n)) - 1.5 })
	return cx, cy
}

func (b *bench) pairs(n int) (x, y []float64) {
	size := n * eight * eight
	x = b.input(fmt.Sprint("a", n), size, func(i int) float64 { return float64(i%97) * 0.01 })
	y = b.input(fmt.Sprint("b", n), size, func(i int) float64 { return float64(float64(i%89)*0.02) - 0.5 })
	return x, y
}

// make returns the work, or an error that says that there is none of these names.
func (b *bench) make(name, variant string, threads int) (*work, error) {
	if threads > 1 {
		threads = b.processor
	}
	if variant == "go" {
		return b.plain(name, threads)
	}
	d := b.devices[min(threads, 2)-1]
	switch variant {
	case "gpukit":
	case "fastmath":
		d = d.With(gpukit.FastMath())
	default:
		return nil, fmt.Errorf("no variant %q", variant)
	}
	return b.gpukit(name, d)
}

func values(a ...*gpukit.Array) func() []float64 {
	return func() []float64 {
		var all []float64
		for _, x := range a {
			all = append(all, x.Float64s()...)
		}
		return all
	}
}

func (b *bench) gpukit(name string, d *gpukit.Device) (*work, error) {
	flat := func(x []float64, shape ...int) *gpukit.Array { return gpukit.FromFlat(x, shape...) }
	vectorize := func(f any, out *gpukit.Array, args ...any) (*work, error) {
		args = append(args, gpukit.Out(out))
		return &work{func() error { _, err := d.Vectorize(f, args...); return err }, values(out)}, nil
	}
	gufunc := func(f any, layout string, out *gpukit.Array, args ...any) (*work, error) {
		args = append(args, gpukit.Out(out))
		return &work{func() error { _, err := d.GUVectorize(f, layout, args...); return err }, values(out)}, nil
	}
	switch name {
	case "discount":
		return vectorize(product, gpukit.Zeros(b.rows, columns, five), flat(b.small(), columns, five), flat(b.discount(), b.rows, columns, five))
	case "discount17": // what vest17 computes, as a function of numbers
		return vectorize(product, gpukit.Zeros(columns, b.rows, five), flat(b.small(), columns, 1, five), flat(b.discount(), columns, b.rows, five))
	case "discount, new result":
		x, y := flat(b.small(), columns, five), flat(b.discount(), b.rows, columns, five)
		var z *gpukit.Array
		return &work{func() (err error) { z, err = d.Vectorize(product, x, y); return err }, func() []float64 { return z.Float64s() }}, nil
	case "t14":
		return gufunc(vest14, "(),(m,o),(n,m,o),(),() -> (n,m,o)", gpukit.Zeros(b.rows, columns, five),
			b.rows, flat(b.small(), columns, five), flat(b.discount(), b.rows, columns, five), five, columns)
	case "t16":
		return gufunc(vest16, "(m,o),(m,o),(),() -> (m,o)", gpukit.Zeros(b.rows, columns, five),
			flat(b.small(), columns, five), flat(b.discount(), b.rows, columns, five), five, columns)
	case "t17":
		return gufunc(vest17, "(),(o),(m,o),() -> (m,o)", gpukit.Zeros(columns, b.rows, five),
			b.rows, flat(b.small(), columns, five), flat(b.discount(), columns, b.rows, five), five)
	case "distance":
		lat, lon := b.mesh()
		n := b.side * b.side
		return vectorize(distance, gpukit.Zeros(n), flat(lat, n), flat(lon, n), 30.0, 101.0, 1.0)
	case "mesh":
		lat, lon := gpukit.MeshGrid(gpukit.Linspace(29, 31, b.side), gpukit.Linspace(99, 101, b.side))
		return vectorize(distance, gpukit.Zeros(b.side, b.side), lat, lon, 30.0, 101.0, 1.0)
	case "options, polynomial", "options, erf":
		f := optionsPoly
		if name == "options, erf" {
			f = optionsErf
		}
		price, strike, years := b.market()
		call, put := gpukit.Zeros(b.options, optionRow), gpukit.Zeros(b.options, optionRow)
		args := []any{flat(price, b.options, optionRow), flat(strike, b.options, optionRow), flat(years, b.options, optionRow),
			0.02, 0.3, gpukit.Out(call, put)}
		return &work{func() error {
			_, _, err := d.GUVectorize2(f, "(n),(n),(n),(),()->(n),(n)", args...)
			return err
		}, values(call, put)}, nil
	case "mandelbrot":
		cx, cy := b.plane()
		return vectorize(mandelbrot, gpukit.Zeros(b.pixels, b.pixels).As(gpukit.Int64), flat(cx, b.pixels), flat(cy, b.pixels, 1), b.most)
	case "matrices", "matrices in cache":
		n, repeats := b.matrices, 1
		if name == "matrices in cache" {
			n, repeats = b.resident, b.repeats
		}
		x, y := b.pairs(n)
		once, err := gufunc(matrices, "(m,n),(n,p)->(m,p)", gpukit.Zeros(n, eight, eight), flat(x, n, eight, eight), flat(y, n, eight, eight))
		if err != nil {
			return nil, err
		}
		return &work{repeat(repeats, once.run), once.result}, nil
	case "ten elements": // a thousand calls
		x := gpukit.FromFlat(b.input("ten", 10, func(i int) float64 { return spaced(29, 31, 10, i) }), 10)
		y := gpukit.FromFlat(b.input("ten more", 10, func(i int) float64 { return spaced(99, 101, 10, i) }), 10)
		var z *gpukit.Array
		return &work{repeat(1000, func() (err error) { z, err = d.Vectorize(distance, x, y, 30.0, 101.0, 1.0); return err }),
			func() []float64 { return z.Float64s() }}, nil
	}
	return nil, fmt.Errorf("no work %q", name)
}

func repeat(n int, f func() error) func() error {
	return func() error {
		for range n {
			if err := f(); err != nil {
				return err
			}
		}
		return nil
	}
}

// parts calls f for each of n threads with its part of the range below count.
func parts(n, count int, f func(from, to int)) {
	if n == 1 {
		f(0, count)
		return
	}
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { f(count*i/n, count*(i+1)/n) })
	}
	all.Wait()
}

// plain is the work in Go as one writes it without gpukit.
func (b *bench) plain(name string, threads int) (*work, error) {
	made := func(count int, out []float64, f func(from, to int)) (*work, error) {
		return &work{func() error { parts(threads, count, f); return nil }, func() []float64 { return out }}, nil
	}
	switch name {
	case "discount":
		m, x, z := b.small(), b.discount(), make([]float64, b.rows*row)
		return made(b.rows, z, func(from, to int) {
			for i := from; i < to; i++ {
				x, z := x[i*row:(i+1)*row], z[i*row:(i+1)*row]
				for j, f := range m {
					z[j] = f * x[j]
				}
			}
		})
	case "distance":
		lat, lon := b.mesh()
		z := make([]float64, len(lat))
		return made(len(z), z, func(from, to int) {
			for i := from; i < to; i++ {
				z[i] = distance(lat[i], lon[i], 30, 101, 1)
			}
		})
	case "mesh": // what depends on one axis is computed once
		n := b.side
		z, ofLat, factor, ofLon := make([]float64, n*n), make([]float64, n), make([]float64, n), make([]float64, n)
		fill := func(from, to int) {
			for i := from; i < to; i++ {
				for j := range n {
					a := ofLat[j] + float64(factor[j]*ofLon[i])
					z[i*n+j] = math.Atan2(a, 1-a)
				}
			}
		}
		return &work{func() error {
			for i := range n {
				lat, lon := spaced(29, 31, n, i), spaced(99, 101, n, i)
				ofLat[i] = square(math.Sin(0.008726645 * (30 - lat)))
				factor[i] = math.Cos(0.01745329*lat) * math.Cos(0.01745329*30)
				ofLon[i] = square(math.Sin(0.008726645 * (101 - lon)))
			}
			parts(threads, n, fill)
			return nil
		}, func() []float64 { return z }}, nil
	case "options, polynomial", "options, erf":
		f := optionsPoly
		if name == "options, erf" {
			f = optionsErf
		}
		price, strike, years := b.market()
		both := make([]float64, 2*len(price))
		call, put := both[:len(price)], both[len(price):]
		return made(b.options, both, func(from, to int) {
			from, to = from*optionRow, to*optionRow
			f(price[from:to], strike[from:to], years[from:to], 0.02, 0.3, call[from:to], put[from:to])
		})
	case "mandelbrot":
		cx, cy := b.plane()
		n := b.pixels
		z := make([]int, n*n)
		return &work{func() error {
			parts(threads, n, func(from, to int) {
				for i := from; i < to; i++ {
					for j := range n {
						z[i*n+j] = mandelbrot(cx[j], cy[i], b.most)
					}
				}
			})
			return nil
		}, func() []float64 {
			x := make([]float64, len(z))
			for i, k := range z {
				x[i] = float64(k)
			}
			return x
		}}, nil
	case "matrices", "matrices in cache":
		n, repeats := b.matrices, 1
		if name == "matrices in cache" {
			n, repeats = b.resident, b.repeats
		}
		const size = eight * eight
		x, y := b.pairs(n)
		z := make([]float64, n*size)
		return made(n, z, func(from, to int) {
			for range repeats {
				for i := from * size; i < to*size; i += size {
					product8((*[size]float64)(x[i:]), (*[size]float64)(y[i:]), (*[size]float64)(z[i:]))
				}
			}
		})
	}
	return nil, fmt.Errorf("no work %q", name)
}

func product8(a, b, c *[eight * eight]float64) {
	for i := range eight {
		for j := range eight {
			s := 0.0
			for k := range eight {
				s += float64(a[i*eight+k] * b[k*eight+j])
			}
			c[i*eight+j] = s
		}
	}
}

// smallest are the kernels whose compilation is timed, over so few elements that
// running them takes no time.
func (b *bench) smallest(d *gpukit.Device, name string) (func() error, error) {
	tiny := *b
	tiny.sizes = sizes{rows: 1, side: 32, options: 2, pixels: 16, most: b.most, matrices: 8, resident: 8, repeats: 1, processor: b.processor}
	tiny.inputs = map[string][]float64{}
	if name == "t38" {
		lat, lon := tiny.mesh()
		return func() error { _, err := d.Vectorize(chord, lat, lon, 30.0, 101.0); return err }, nil
	}
	same := map[string]string{"t15": "discount", "t39": "distance", "t40": "mesh"}
	if s, ok := same[name]; ok {
		name = s
	}
	w, err := tiny.gpukit(name, d)
	if err != nil {
		return nil, err
	}
	return w.run, nil
}

// ulps is how many float64 lie between two numbers, and 0 for two NaNs.
func ulps(a, b float64) float64 {
	order := func(x float64) int64 {
		k := int64(math.Float64bits(x))
		if k < 0 {
			return math.MinInt64 - k
		}
		return k
	}
	switch {
	case a == b || math.IsNaN(a) && math.IsNaN(b):
		return 0
	case math.IsNaN(a) != math.IsNaN(b):
		return math.Inf(1)
	}
	x, y := order(a), order(b)
	return float64(uint64(max(x, y)) - uint64(min(x, y)))
}

// difference says how far two results are apart: the largest distance in ulp, and
// the largest absolute one as a part of the largest number.
func difference(ours, theirs []float64) (most, part float64, err error) {
	if len(ours) != len(theirs) {
		return 0, 0, fmt.Errorf("%d numbers, gpukit has %d", len(theirs), len(ours))
	}
	largest := 0.0
	for i, x := range ours {
		most = max(most, ulps(x, theirs[i]))
		part = max(part, math.Abs(x-theirs[i]))
		largest = max(largest, math.Abs(x))
	}
	if largest > 0 {
		part /= largest
	}
	return most, part, nil
}
