package main

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"time"

	"gpunotes/gpukit/internal/driver"
	"gpunotes/gpukit/internal/driver/sim"
)

// replayed is a kernel of a thread on its simulated card.
type replayed struct {
	row       kernelRow
	stats     *sim.Stats
	registers int
	seconds   float64
	bound     string
}

// machine is a simulated card on which one experiment runs.
type machine struct {
	dev *sim.Device
	err error
}

func (m *machine) alloc(values []float64) driver.Ptr {
	if m.err != nil {
		return 0
	}
	p, err := m.dev.Alloc(uint64(8 * len(values)))
	if err == nil {
		b := make([]byte, 0, 8*len(values))
		for _, v := range values {
			b = binary.LittleEndian.AppendUint64(b, math.Float64bits(v))
		}
		err = m.dev.CopyIn(p, b)
	}
	m.err = err
	return p
}

func (m *machine) word(n int64) driver.Ptr {
	return m.alloc([]float64{math.Float64frombits(uint64(n))})
}

func arange(n int) []float64 {
	x := make([]float64, n)
	for i := range x {
		x[i] = float64(i)
	}
	return x
}

func full(n int, v float64) []float64 {
	x := make([]float64, n)
	for i := range x {
		x[i] = v
	}
	return x
}

// axes are the flat coordinates of the threads' mesh.
func axes() (lat, lon []float64) {
	const n = 1000
	for i := range n * n {
		at := func(k int, lo float64) float64 { return lo + float64(float64(k)*(2.0/(n-1))) }
		lat, lon = append(lat, at(i%n, 29)), append(lon, at(i/n, 99))
	}
	return lat, lon
}

// replay runs a thread's kernel as numba wrote it.
func replay(row kernelRow) (*replayed, error) {
	card, err := sim.LookupCard(row.card)
	if err != nil {
		return nil, err
	}
	m := &machine{dev: sim.New(card, sim.Options{Unchecked: true, Registers: func(string) int { return row.registers }})}
	var a *assembler
	var params []uint64
	launch := driver.Launch{Grid: driver.Dim{X: 1, Y: 1, Z: 1}, Block: driver.Dim{X: 64, Y: 1, Z: 1}}
	var out driver.Ptr
	size := 0
	set := func(x array, p driver.Ptr, sizes ...int) {
		strides := make([]int, len(sizes))
		for d, s := len(sizes)-1, 8; d >= 0; d-- {
			strides[d] = s
			s *= sizes[d]
		}
		setArray(params, x, uint64(p), sizes, strides)
	}
	result := func(n int) driver.Ptr {
		size = n
		out = m.alloc(make([]float64, n))
		return out
	}
	switch row.id {
	case "t14":
		a = gufunc("t14", 3, 2, []int{0, 2, 1})
		params = make([]uint64, a.words)
		x := new(assembler).layout(3, 2)
		set(x.sizes[0], m.word(100), 1)
		set(x.mult, m.alloc(arange(20000)), 1, 4000, 5)
		set(x.disc, m.alloc(arange(2000000)), 1, 100, 4000, 5)
		set(x.sizes[1], m.word(5), 1)
		set(x.sizes[2], m.word(4000), 1)
		set(x.out, result(2000000), 1, 100, 4000, 5)
	case "t16":
		a = gufunc("t16", 2, 2, []int{1, 0})
		params = make([]uint64, a.words)
		x := new(assembler).layout(2, 2)
		launch.Grid.X = 2
		set(x.sizes[0], m.word(5), 100)
		setArray(params, x.mult, uint64(m.alloc(arange(20000))), []int{100, 4000, 5}, []int{0, 40, 8})
		set(x.disc, m.alloc(arange(2000000)), 100, 4000, 5)
		set(x.sizes[1], m.word(4000), 100)
		set(x.out, result(2000000), 100, 4000, 5)
		for _, s := range x.sizes { // one number for all workers
			params[s.stride(0)] = 0
		}
	case "t17":
		a = gufunc("t17", 2, 1, []int{0, 1})
		params = make([]uint64, a.words)
		x := new(assembler).layout(2, 1)
		launch.Grid.X = 63
		set(x.sizes[0], m.word(100), 4000)
		set(x.mult, m.alloc(arange(20000)), 4000, 5)
		set(x.disc, m.alloc(arange(2000000)), 4000, 100, 5)
		set(x.sizes[1], m.word(5), 4000)
		set(x.out, result(2000000), 4000, 100, 5)
		for _, s := range x.sizes {
			params[s.stride(0)] = 0
		}
	case "t15":
		a = elementwise("t15", 2, func(a *assembler, in []string) string { return a.f2("mul", in[0], in[1]) })
		params = make([]uint64, a.words)
		launch.Grid.X, launch.Block.X = 15625, 128
		x := new(assembler).records(3)
		set(x[0], m.alloc(full(2000000, 1)), 2000000)
		set(x[1], m.alloc(arange(2000000)), 2000000)
		set(x[2], result(2000000), 2000000)
	case "t38", "t39":
		lat, lon := axes()
		inputs := 4
		if row.id == "t38" {
			a = elementwise("t38", 4, func(a *assembler, in []string) string { return a.chord(in[0], in[1], in[2], in[3]) })
		} else {
			inputs = 5
			a = elementwise("t39", 5, func(a *assembler, in []string) string { return a.distance(in[0], in[1], in[2], in[3], in[4]) })
		}
		params = make([]uint64, a.words)
		launch.Grid.X, launch.Block.X = 7813, 128
		x := new(assembler).records(inputs + 1)
		set(x[0], m.alloc(lat), len(lat))
		set(x[1], m.alloc(lon), len(lon))
		if row.id == "t38" {
			set(x[2], m.alloc(full(len(lat), 30)), len(lat))
			set(x[3], m.alloc(full(len(lat), 101)), len(lat))
		} else {
			for k, v := range []float64{30, 101, 1} { // one element that repeats
				setArray(params, x[2+k], uint64(m.alloc([]float64{v})), []int{len(lat)}, []int{0})
			}
		}
		set(x[inputs], result(len(lat)), len(lat))
	case "t40":
		a = mesh()
		params = make([]uint64, a.words)
		launch.Grid, launch.Block = driver.Dim{X: 32, Y: 32, Z: 1}, driver.Dim{X: 32, Y: 32, Z: 1}
		for k, v := range []float64{30, 101, 29, 31, 99, 101, 1} {
			params[k] = math.Float64bits(v)
		}
		params[7], params[8] = 1000, 1000
		set(array{9, 2}, result(1000000), 1000, 1000)
	}
	if m.err != nil {
		return nil, m.err
	}
	module, err := m.dev.Load([]byte(a.text()))
	if err != nil {
		return nil, err
	}
	f, err := module.Function(a.name)
	if err != nil {
		return nil, err
	}
	var seconds float64
	m.dev.Record(func(r driver.Record) { seconds = r.Duration.Seconds() })
	launch.Params = params
	if err := f.Launch(launch); err != nil {
		return nil, err
	}
	m.dev.Record(nil)
	got := make([]byte, 8*size)
	if err := m.dev.CopyOut(got, out); err != nil {
		return nil, err
	}
	if sum := fmt.Sprintf("%x", sha256.Sum256(got))[:16]; row.digest != "" && sum != row.digest {
		return nil, fmt.Errorf("%s on %s computes %s, and numpy %s", row.id, row.card, sum, row.digest)
	}
	r := &replayed{row: row, stats: m.dev.LastLaunch(), registers: f.Attributes().Registers, seconds: seconds}
	r.bound = bound(card, r.stats, r.registers)
	return r, nil
}

// layout is where the arrays of a gufunc stand in its parameters.
type layout struct {
	sizes           []array
	mult, disc, out array
}

// layout takes the parameters of a gufunc of so many loops, in the order of the
// thread: sizes stand around the arrays.
func (a *assembler) layout(loops, factor int) layout {
	var x layout
	x.sizes = append(x.sizes, a.array(1))
	x.mult, x.disc = a.array(factor+1), a.array(loops+1)
	for len(x.sizes) < loops {
		x.sizes = append(x.sizes, a.array(1))
	}
	x.out = a.array(loops + 1)
	return x
}

// records takes the parameters of n arrays of one dimension.
func (a *assembler) records(n int) []array {
	var x []array
	for range n {
		x = append(x, a.array(1))
	}
	return x
}

// bound names the resource that a launch keeps busy longest.
func bound(c *sim.Card, s *sim.Stats, registers int) string {
	return slices.MaxFunc(c.Resources(s, registers), func(a, b sim.Resource) int {
		if a.Seconds < b.Seconds {
			return -1
		}
		return 1
	}).Name
}

// predict is the time of a row if the factor for kernels that use all registers of
// the Quadro K2000 were another.
func (r *replayed) predict(factor float64) float64 {
	card, err := sim.LookupCard(r.row.card)
	if err != nil {
		panic(err)
	}
	c := *card
	if c.SerialFactorAtRegisterCap > 0 {
		c.SerialFactorAtRegisterCap = factor
	}
	return c.KernelSeconds(r.stats, r.registers)
}

// fit is the factor with the least sum of squared log errors over rows.
func fit(rows []*replayed) float64 {
	cost := func(f float64) (s float64) {
		for _, r := range rows {
			e := math.Log(r.predict(f) / r.row.seconds)
			s += float64(e * e)
		}
		return s
	}
	lo, hi := 0.5, 5.0
	for range 60 { // golden section
		a, b := hi-float64(0.6180339887498949*(hi-lo)), lo+float64(0.6180339887498949*(hi-lo))
		if cost(a) < cost(b) {
			hi = b
		} else {
			lo = a
		}
	}
	return (lo + hi) / 2
}

// copied is the simulated time of a kind of copy.
func copied(row copyRow) (time.Duration, error) {
	card, err := sim.LookupCard(row.card)
	if err != nil {
		return 0, err
	}
	dev := sim.New(card, sim.Options{})
	p, err := dev.Alloc(uint64(row.bytes))
	if err != nil {
		return 0, err
	}
	var took time.Duration
	dev.Record(func(r driver.Record) { took = r.Duration })
	b := make([]byte, row.bytes)
	if row.back {
		if err := dev.CopyIn(p, b); err != nil {
			return 0, err
		}
		err = dev.CopyOut(b, p)
	} else {
		err = dev.CopyIn(p, b)
	}
	return took, err
}
