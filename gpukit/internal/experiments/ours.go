package main

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"gpunotes/gpukit"
	"gpunotes/gpukit/trace"
)

// The threads' programs, written for gpukit.

func product(a, b float64) float64 { return a * b }

func discount14(countRow int64, multBy [][]float64, discount [][][]float64, n, countCol int64, cv [][][]float64) {
	for d := 0; d < int(countRow); d++ {
		for id := 0; id < int(countCol); id++ {
			for num := 0; num < int(n); num++ {
				cv[d][id][num] = multBy[id][num] * discount[d][id][num]
			}
		}
	}
}

func discount16(multBy, discount [][]float64, n, countCol int64, cv [][]float64) {
	for id := 0; id < int(countCol); id++ {
		for num := 0; num < int(n); num++ {
			cv[id][num] = multBy[id][num] * discount[id][num]
		}
	}
}

func discount17(countRow int64, multBy []float64, discount [][]float64, n int64, cv [][]float64) {
	for d := 0; d < int(countRow); d++ {
		for num := 0; num < int(n); num++ {
			cv[d][num] = multBy[num] * discount[d][num]
		}
	}
}

func sq(x float64) float64 { return float64(x * x) } // a product that a sum takes is rounded first, whatever the processor

// chord and distance are the thread's, both square roots missing as there.
func chord(lat1, lon1, lat2, lon2 float64) float64 {
	return sq(math.Sin(0.008726645*(lat2-lat1))) +
		float64(math.Cos(0.01745329*lat1)*math.Cos(0.01745329*lat2)*sq(math.Sin(0.008726645*(lon2-lon1))))
}

func distance(lat1, lon1, lat2, lon2, s float64) float64 {
	a := chord(lat1, lon1, lat2, lon2)
	return math.Atan2(a, 1-a) * s
}

// program is an experiment through gpukit.
type program struct {
	id, what string
	digest   string
	sum      float64 // where there is no digest
	run      func(d *gpukit.Device) (*gpukit.Array, error)
	explain  func(d *gpukit.Device) (*gpukit.Plan, error)
}

const (
	layout14 = "(),(m,o),(n,m,o),(),() -> (n,m,o)"
	layout16 = "(m,o),(m,o),(),() -> (m,o)"
	layout17 = "(),(o),(m,o),() -> (m,o)"
	meshSum  = 101.63463687513529 // numpy's
)

// programs makes the experiments. The arrays are in host memory, as the threads'
// are, but for the mesh of t40.
func programs() []program {
	stored := func(a *gpukit.Array) *gpukit.Array { return gpukit.FromFlat(a.Float64s(), a.Shape()...) }
	multBy := stored(gpukit.Arange(20000).Reshape(4000, 5))
	discount := stored(gpukit.Arange(2000000).Reshape(100, 4000, 5))
	ones := stored(gpukit.Full(1, 100, 4000, 5))
	reshaped := discount.Reshape(4000, 100, 5)
	lon, lat := gpukit.MeshGrid(gpukit.Linspace(99, 101, 1000), gpukit.Linspace(29, 31, 1000))
	x, y := stored(lat).Reshape(1000000), stored(lon).Reshape(1000000)
	x2, y2 := stored(gpukit.Full(30, 1000000)), stored(gpukit.Full(101, 1000000))
	gu := func(fn any, layout string, args ...any) (func(*gpukit.Device) (*gpukit.Array, error), func(*gpukit.Device) (*gpukit.Plan, error)) {
		return func(d *gpukit.Device) (*gpukit.Array, error) { return d.GUVectorize(fn, layout, args...) },
			func(d *gpukit.Device) (*gpukit.Plan, error) { return d.ExplainGU(fn, layout, args...) }
	}
	each := func(fn any, args ...any) (func(*gpukit.Device) (*gpukit.Array, error), func(*gpukit.Device) (*gpukit.Plan, error)) {
		return func(d *gpukit.Device) (*gpukit.Array, error) { return d.Vectorize(fn, args...) },
			func(d *gpukit.Device) (*gpukit.Plan, error) { return d.Explain(fn, args...) }
	}
	var out []program
	add := func(id, what, digest string, sum float64, run func(*gpukit.Device) (*gpukit.Array, error), explain func(*gpukit.Device) (*gpukit.Plan, error)) {
		out = append(out, program{id, what, digest, sum, run, explain})
	}
	run14, explain14 := gu(discount14, layout14, 100, multBy, discount, 5, 4000)
	one := func(d *gpukit.Device) *gpukit.Device {
		return d.With(gpukit.OneWorkerPerSlice(), gpukit.NumbaGeometry(63))
	}
	add("t14", "one worker, as numba runs it", "b1f8a3a022963e39", 0,
		func(d *gpukit.Device) (*gpukit.Array, error) { return run14(one(d)) },
		func(d *gpukit.Device) (*gpukit.Plan, error) { return explain14(one(d)) })
	add("t14", "the same call, loops become workers", "b1f8a3a022963e39", 0, run14, explain14)
	run, explain := each(product, ones, discount)
	add("t15", "Vectorize", "0786e50f2e2d20f8", 0, run, explain)
	run16, explain16 := gu(discount16, layout16, multBy, discount, 5, 4000)
	add("t16", "a hundred workers, as numba runs it", "b1f8a3a022963e39", 0,
		func(d *gpukit.Device) (*gpukit.Array, error) { return run16(one(d)) },
		func(d *gpukit.Device) (*gpukit.Plan, error) { return explain16(one(d)) })
	add("t16", "the same call, loops become workers", "b1f8a3a022963e39", 0, run16, explain16)
	run17, explain17 := gu(discount17, layout17, 100, multBy, reshaped, 5)
	add("t17", "4000 workers, as numba runs it", "dc84579c26216530", 0,
		func(d *gpukit.Device) (*gpukit.Array, error) { return run17(one(d)) },
		func(d *gpukit.Device) (*gpukit.Plan, error) { return explain17(one(d)) })
	add("t17", "the same call, loops become workers", "dc84579c26216530", 0, run17, explain17)
	run, explain = each(chord, x, y, x2, y2)
	add("t38", "four arrays; atan2 stays on the host", "", math.NaN(), run, explain)
	run, explain = each(distance, x, y, 30.0, 101.0, 1.0)
	add("t39", "two arrays, three numbers", "", meshSum, run, explain)
	run, explain = each(distance, lat, lon, 30.0, 101.0, 1.0)
	add("t40", "the mesh is computed where it is used", "", meshSum, run, explain)
	return out
}

// figures are those of one program on one card.
type figures struct {
	plan        *gpukit.Plan
	kernel      time.Duration
	launches    int
	in, out     int // bytes
	copies      time.Duration
	warps       int64 // instructions
	grid, block [3]int
	registers   int
}

func (p program) on(card string) (*figures, error) {
	d, err := gpukit.Open(card)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	f := &figures{}
	if f.plan, err = p.explain(d); err != nil {
		return nil, err
	}
	d.StartTrace()
	a, err := p.run(d)
	t := d.StopTrace()
	if err != nil {
		return nil, fmt.Errorf("%s on %s: %w", p.id, card, err)
	}
	if err := p.check(a); err != nil {
		return nil, fmt.Errorf("%s on %s: %w", p.id, card, err)
	}
	for _, r := range t.Records {
		switch r.Kind {
		case trace.Launch:
			f.kernel += r.Duration
			f.launches++
			f.warps += r.Counters["warp instructions"]
			f.grid, f.block, f.registers = r.Grid, r.Block, r.Registers
		case trace.HtoD:
			f.copies += r.Duration
			f.in += int(r.Size)
		case trace.DtoH:
			f.copies += r.Duration
			f.out += int(r.Size)
		}
	}
	return f, nil
}

// check compares a result with numpy's.
func (p program) check(a *gpukit.Array) error {
	x := a.Float64s()
	if p.digest == "" {
		s := 0.0
		for _, v := range x {
			s += v
		}
		if !math.IsNaN(p.sum) && math.Abs(s-p.sum) > 1e-12*p.sum {
			return fmt.Errorf("the sum is %v, numpy's is %v", s, p.sum)
		}
		return nil
	}
	b := make([]byte, 0, 8*len(x))
	for _, v := range x {
		b = binary.LittleEndian.AppendUint64(b, math.Float64bits(v))
	}
	if got := fmt.Sprintf("%x", sha256.Sum256(b))[:16]; got != p.digest {
		return fmt.Errorf("the elements hash to %s, numpy's to %s", got, p.digest)
	}
	return nil
}

// measured is the wall clock of the first call on a new device and the median of
// five later ones, of this machine.
func (p program) measured(device string) (first, later float64, err error) {
	d, err := gpukit.Open(device)
	if err != nil {
		return 0, 0, err
	}
	defer d.Close()
	var times []float64
	for range 6 {
		start := time.Now()
		if _, err := p.run(d); err != nil {
			return 0, 0, err
		}
		times = append(times, time.Since(start).Seconds())
	}
	rest := slices.Sorted(slices.Values(times[1:]))
	return times[0], rest[len(rest)/2], nil
}

// instructions counts those of PTX text, by kind.
func instructions(text string) (all int, kinds map[string]int) {
	kinds = map[string]int{}
	_, body, _ := strings.Cut(text, "{")
	for _, l := range strings.Split(body, "\n") {
		l = strings.TrimSpace(l)
		if strings.HasPrefix(l, "@") {
			_, l, _ = strings.Cut(l, " ")
		}
		if l == "" || !strings.HasSuffix(l, ";") || l[0] == '.' || l[0] == '/' {
			continue
		}
		op, _, _ := strings.Cut(strings.TrimSuffix(l, ";"), " ")
		kinds[op]++
		all++
	}
	return all, kinds
}
