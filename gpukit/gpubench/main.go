// Command gpubench runs the experiments' work through gpukit for the script
// bench.py, which compares it with numba and CuPy. It reads requests, a JSON
// object a line, and answers each with one.
package main

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"os"
	"runtime"
	"time"

	"gpunotes/gpukit"
	"gpunotes/gpukit/trace"
)

// request asks for one experiment. Elements are float64.
type request struct {
	Form     string `json:"form"`
	Elements int    `json:"elements"`
	Reps     int    `json:"reps"`
	Warmup   int    `json:"warmup"`
	Host     bool   `json:"host"` // arguments and result in host memory, else on the device
}

// answer gives one number for each repetition.
type answer struct {
	CallMS   []float64 `json:"call_ms"`             // wall clock, until the result is there
	KernelMS []float64 `json:"kernel_ms,omitempty"` // of all launches of a call, on the device's clock
	CopyMS   []float64 `json:"copy_ms,omitempty"`
	Sum      float64   `json:"sum"` // of a few elements of the result, for comparison
	Note     string    `json:"note,omitempty"`
	Error    string    `json:"error,omitempty"`
}

func product(a, b float64) float64 { return a * b }

func vest14(countRow int64, multBy [][]float64, discount [][][]float64, n, countCol int64, cv [][][]float64) {
	for d := 0; d < int(countRow); d++ {
		for id := 0; id < int(countCol); id++ {
			for num := 0; num < int(n); num++ {
				cv[d][id][num] = multBy[id][num] * discount[d][id][num]
			}
		}
	}
}

func vest16(multBy, discount [][]float64, n, countCol int64, cv [][]float64) {
	for id := 0; id < int(countCol); id++ {
		for num := 0; num < int(n); num++ {
			cv[id][num] = multBy[id][num] * discount[id][num]
		}
	}
}

func vest17(countRow int64, multBy []float64, discount [][]float64, n int64, cv [][]float64) {
	for d := 0; d < int(countRow); d++ {
		for num := 0; num < int(n); num++ {
			cv[d][num] = multBy[num] * discount[d][num]
		}
	}
}

func square(x float64) float64 { return float64(x * x) } // a product that a sum takes is rounded first, whatever the processor

// chord is the haversine's a, as the thread has it.
func chord(lat1, lon1, lat2, lon2 float64) float64 {
	return square(math.Sin(0.008726645*(lat2-lat1))) +
		float64(math.Cos(0.01745329*lat1)*math.Cos(0.01745329*lat2)*square(math.Sin(0.008726645*(lon2-lon1))))
}

func distance(lat1, lon1, lat2, lon2, s float64) float64 {
	a := chord(lat1, lon1, lat2, lon2)
	return math.Atan2(a, 1-a) * s
}

func increment(x float64) float64 { return x + 1 }

// form makes the arguments for about n elements and returns the call.
func form(d *gpukit.Device, r request) (func() (*gpukit.Array, error), error) {
	rows := max(r.Elements/20000, 1)
	side := max(int(math.Sqrt(float64(r.Elements))), 1)
	put := func(a *gpukit.Array) *gpukit.Array {
		if r.Host {
			return gpukit.FromFlat(a.Float64s(), a.Shape()...) // a generator holds no data
		}
		return gpukit.Must(d.Put(a))
	}
	small := func() *gpukit.Array { return put(gpukit.Arange(20000).Reshape(4000, 5)) }
	lon, lat := gpukit.MeshGrid(gpukit.Linspace(99, 101, side), gpukit.Linspace(29, 31, side))
	switch r.Form {
	case "t14":
		multBy, discount := small(), put(gpukit.Arange(20000*rows).Reshape(rows, 4000, 5))
		return func() (*gpukit.Array, error) {
			return d.GUVectorize(vest14, "(),(m,o),(n,m,o),(),() -> (n,m,o)", rows, multBy, discount, 5, 4000)
		}, nil
	case "t15":
		multBy, discount := put(gpukit.Full(1, rows, 4000, 5)), put(gpukit.Arange(20000*rows).Reshape(rows, 4000, 5))
		return func() (*gpukit.Array, error) { return d.Vectorize(product, multBy, discount) }, nil
	case "t16":
		multBy, discount := small(), put(gpukit.Arange(20000*rows).Reshape(rows, 4000, 5))
		return func() (*gpukit.Array, error) {
			return d.GUVectorize(vest16, "(m,o),(m,o),(),() -> (m,o)", multBy, discount, 5, 4000)
		}, nil
	case "t17":
		multBy, discount := small(), put(gpukit.Arange(20000*rows).Reshape(4000, rows, 5))
		return func() (*gpukit.Array, error) {
			return d.GUVectorize(vest17, "(),(o),(m,o),() -> (m,o)", rows, multBy, discount, 5)
		}, nil
	case "t38":
		x, y := put(lat.Reshape(side*side)), put(lon.Reshape(side*side))
		x2, y2 := put(gpukit.Full(30, side*side)), put(gpukit.Full(101, side*side))
		return func() (*gpukit.Array, error) { return d.Vectorize(chord, x, y, x2, y2) }, nil
	case "t39":
		x, y := put(lat.Reshape(side*side)), put(lon.Reshape(side*side))
		return func() (*gpukit.Array, error) { return d.Vectorize(distance, x, y, 30.0, 101.0, 1.0) }, nil
	case "t40":
		// The arguments have no memory: what makes the call one on the device is the
		// array for its result.
		if r.Host {
			return func() (*gpukit.Array, error) { return d.Vectorize(distance, lat, lon, 30.0, 101.0, 1.0) }, nil
		}
		out, err := d.Empty(gpukit.Float64, side, side)
		if err != nil {
			return nil, err
		}
		return func() (*gpukit.Array, error) {
			return d.Vectorize(distance, lat, lon, 30.0, 101.0, 1.0, gpukit.Out(out))
		}, nil
	case "launch": // what a call costs that computes next to nothing
		x := put(gpukit.Arange(1))
		return func() (*gpukit.Array, error) { return d.Vectorize(increment, x) }, nil
	case "copy in":
		x := gpukit.FromSlice(gpukit.Arange(r.Elements).Float64s())
		return func() (*gpukit.Array, error) { return d.Put(x) }, nil
	case "copy out":
		x := gpukit.Must(d.Put(gpukit.Arange(r.Elements)))
		return func() (*gpukit.Array, error) { return x.Host(), nil }, nil
	case "copy within":
		x := gpukit.Must(d.Put(gpukit.Arange(r.Elements)))
		return func() (*gpukit.Array, error) { return d.Put(x) }, nil
	}
	return nil, fmt.Errorf("there is no form %q", r.Form)
}

// sample adds up a few elements, at the same places as the scripts of the peers.
func sample(a *gpukit.Array) float64 {
	flat := a.Reshape(a.Size())
	s := 0.0
	for i := range 16 {
		s += flat.At((a.Size() - 1) * i / 15)
	}
	return s
}

func run(d *gpukit.Device, r request) (out answer) {
	defer func() { // what cannot be made panics with a *gpukit.ShapeError
		if x := recover(); x != nil {
			out.Error = fmt.Sprint(x)
		}
	}()
	call, err := form(d, r)
	if err != nil {
		return answer{Error: err.Error()}
	}
	once := func() (*gpukit.Array, time.Duration, error) {
		start := time.Now()
		a, err := call()
		if err == nil {
			err = d.Sync()
		}
		return a, time.Since(start), err
	}
	for range max(r.Warmup, 1) {
		a, _, err := once()
		if err != nil {
			return answer{Error: err.Error()}
		}
		if out.Sum == 0 {
			out.Sum = sample(a)
		}
		if !r.Host && r.Form != "t40" {
			a.Free()
		}
	}
	for range r.Reps { // without a trace, whose events cost time
		a, took, err := once()
		if err != nil {
			return answer{Error: err.Error()}
		}
		out.CallMS = append(out.CallMS, took.Seconds()*1e3)
		if !r.Host && r.Form != "t40" {
			a.Free()
		}
	}
	for range r.Reps {
		d.StartTrace()
		a, _, err := once()
		t := d.StopTrace()
		if err != nil {
			return answer{Error: err.Error()}
		}
		var kernel, copies time.Duration
		for _, x := range t.Records {
			if x.Kind == trace.Launch {
				kernel += x.Duration
			} else {
				copies += x.Duration
			}
			if x.Timing == trace.Simulated {
				out.Note = "simulated"
			}
		}
		out.KernelMS = append(out.KernelMS, kernel.Seconds()*1e3)
		out.CopyMS = append(out.CopyMS, copies.Seconds()*1e3)
		if !r.Host && r.Form != "t40" {
			a.Free()
		}
	}
	return out
}

func main() {
	name := flag.String("device", "cuda:0", "device, as gpukit.Open takes it")
	sources := flag.String("sources", "", "folder with the sources of this program, where they are not where it was built")
	flag.Parse()
	if *sources != "" {
		if err := gpukit.EmbedSource(os.DirFS(*sources)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	d, err := gpukit.Open(*name)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	defer d.Close()
	var about string
	for _, i := range gpukit.Devices() {
		if i.Name == *name {
			about = i.Description
		}
	}
	answers := json.NewEncoder(os.Stdout)
	answers.Encode(map[string]string{"peer": "gpukit", "device": about, "version": runtime.Version()})
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		var r request
		if err := json.Unmarshal(in.Bytes(), &r); err != nil {
			answers.Encode(answer{Error: err.Error()})
			continue
		}
		answers.Encode(run(d, r))
		runtime.GC() // what the arguments took goes back to the card's memory
	}
}
