// Package trace holds what a device did between StartTrace and StopTrace: plain
// records, one for each copy and each launch, and the two tables in which
// NVIDIA's profiler nvprof shows them, in its units.
//
//	gpu.StartTrace()
//	z := gpukit.Must(gpu.Vectorize(dist, lat, lon, 30.0, 101.0, 1.0))
//	gpu.StopTrace()
//
// As the last line of a cell, StopTrace shows both tables. Durations that a
// simulated GPU predicted are labelled "simulated" wherever they are shown.
package trace

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// Kind says what a record is of.
type Kind string

// The kinds of records.
const (
	Launch Kind = "launch" // a kernel
	HtoD   Kind = "HtoD"   // a copy from host to device
	DtoH   Kind = "DtoH"   // a copy from device to host
	DtoD   Kind = "DtoD"   // a copy within a device
	Memset Kind = "memset" // memory filled with one value
)

var kinds = []Kind{Launch, HtoD, DtoH, DtoD, Memset}

// Memory is a kind of memory that a copy reads or writes; empty if not known.
type Memory string

// The kinds of memory that nvprof tells apart.
const (
	Pageable Memory = "Pageable" // ordinary host memory
	Pinned   Memory = "Pinned"   // page-locked host memory
	Device   Memory = "Device"
)

// Timing says where the times of a record come from.
type Timing string

// The origins of times.
const (
	Unknown   Timing = ""
	Measured  Timing = "measured"
	Simulated Timing = "simulated" // predicted from counts by a simulated GPU
)

// Record is one copy or one launch. Fields that do not apply, or that the device
// does not know, are zero and shown as "-".
type Record struct {
	Kind     Kind          `json:"kind"`
	Name     string        `json:"name,omitempty"` // of the kernel; a copy may leave it empty
	ID       int           `json:"id,omitempty"`   // number of the call that launched it, shown in brackets after the kernel's name
	Start    time.Duration `json:"start_ns"`       // since the trace began, in ns
	Duration time.Duration `json:"duration_ns"`    // in ns
	Timing   Timing        `json:"timing,omitempty"`

	// Of launches: blocks and threads along x, y, z, registers per thread, bytes
	// of shared memory per block. Grid is zero where workers are not arranged in
	// a grid.
	Grid          [3]int `json:"grid,omitzero"`
	Block         [3]int `json:"block,omitzero"`
	Registers     int    `json:"registers,omitempty"`
	StaticShared  int    `json:"static_shared,omitempty"`
	DynamicShared int    `json:"dynamic_shared,omitempty"`

	// Of copies: bytes, and the memory at both ends.
	Size int64  `json:"size,omitempty"`
	Src  Memory `json:"src,omitempty"`
	Dst  Memory `json:"dst,omitempty"`

	Device  string `json:"device,omitempty"` // tables of text show its first 15 bytes, as nvprof does
	OnCPU   bool   `json:"on_cpu,omitempty"` // the device is the host's own cores
	Context int    `json:"context,omitempty"`
	Stream  int    `json:"stream,omitempty"`

	// Of simulated launches: what the simulator counted, by name, for example
	// warp instructions by class, sectors, cache hits, DRAM bursts.
	Counters map[string]int64 `json:"counters,omitempty"`
}

// Throughput returns Size over Duration in bytes per second, 0 of launches and
// where the duration is 0.
func (r Record) Throughput() float64 {
	if r.Kind == Launch || r.Size <= 0 || r.Duration <= 0 {
		return 0
	}
	return float64(r.Size) / r.Duration.Seconds()
}

// label is the name of a record, as nvprof writes those of copies.
func (r Record) label() string {
	switch {
	case r.Name != "":
		return r.Name
	case r.Kind == Memset:
		return "[CUDA memset]"
	case r.Kind == Launch:
		return "(no name)"
	}
	return "[CUDA memcpy " + string(r.Kind) + "]"
}

// String returns name, size or grid, and times in one line.
func (r Record) String() string {
	var b strings.Builder
	b.WriteString(r.label())
	switch {
	case r.Kind != Launch:
		b.WriteString(" " + FormatSize(r.Size))
	case r.Grid != [3]int{}:
		fmt.Fprintf(&b, " grid %s block %s", dims(r.Grid), dims(r.Block))
	}
	fmt.Fprintf(&b, ", at %s for %s", FormatDuration(r.Start), FormatDuration(r.Duration))
	if r.Timing != Unknown {
		fmt.Fprintf(&b, " (%s)", r.Timing)
	}
	return b.String()
}

// MarshalJSON writes the record's fields, and the throughput in bytes per second
// for readers in other languages.
func (r Record) MarshalJSON() ([]byte, error) {
	type fields Record
	return json.Marshal(struct {
		fields
		Throughput float64 `json:"throughput,omitempty"`
	}{fields(r), r.Throughput()})
}

// Trace is a list of records. Its methods accept a nil trace and say so.
type Trace struct {
	Records []Record `json:"records"`
	Note    string   `json:"note,omitempty"` // what there is to say about the trace as a whole
}

// Time adds up the durations of all records of a kind, as in
// t.Time(trace.Launch): 0 of a nil trace and where there are none. Records that
// overlap in time count each.
func (t *Trace) Time(k Kind) time.Duration {
	return time.Duration(t.sum(k, func(r *Record) int64 { return int64(r.Duration) }))
}

// Bytes adds up the sizes of all records of a kind, as Time does the durations.
func (t *Trace) Bytes(k Kind) int64 {
	return t.sum(k, func(r *Record) int64 { return r.Size })
}

func (t *Trace) sum(k Kind, of func(*Record) int64) (sum int64) {
	if t != nil {
		for i := range t.Records {
			if r := &t.Records[i]; r.Kind == k {
				sum += of(r)
			}
		}
	}
	return sum
}

// The names of the simulator's counters, and of the classes of warp instructions.
var (
	counters = []string{"warp instructions", "thread instructions", "taken branches", "divergent branches", "blocks per multiprocessor", "lines",
		"L1 hits", "L1 misses", "L2 hits", "L2 misses", "L2 sectors", "DRAM bursts", "DRAM row activations", "shared memory conflicts", "atomic conflicts"}
	classes = []string{"move", "int32", "int64", "multiply32", "multiply64", "divide32", "divide64", "float32", "float64", "float divide32", "float divide64",
		"special", "convert", "convert64", "load global", "store global", "load shared", "store shared", "load local", "store local", "load const", "load param",
		"atomic global", "atomic shared", "branch", "barrier", "exchange", "other"}
)

// Counter adds up a number that the simulator counted in the launches. Its name is one of
//
//	warp instructions, thread instructions, taken branches, divergent branches,
//	blocks per multiprocessor, lines, L1 hits, L1 misses, L2 hits, L2 misses,
//	L2 sectors, DRAM bursts, DRAM row activations, shared memory conflicts,
//	atomic conflicts
//
// or "warp instructions, " and a class: move, int32, int64, multiply32, multiply64,
// divide32, divide64, float32, float64, float divide32, float divide64, special, convert,
// convert64, load global (store global, load shared, store shared, load local, store
// local, load const, load param), atomic global, atomic shared, branch, barrier,
// exchange, other. Counters shows what there is. It is 0 where nothing of it happened,
// or was counted, and -1 for any other name.
func (t *Trace) Counter(name string) int64 {
	var sum int64
	found := slices.Contains(counters, name)
	if class, ok := strings.CutPrefix(name, "warp instructions, "); ok {
		found = slices.Contains(classes, class)
	}
	if t != nil {
		for _, r := range t.Records {
			n, ok := r.Counters[name]
			found = found || ok
			sum += n
		}
	}
	if !found {
		return -1
	}
	return sum
}

// JSON returns the trace as indented JSON, times in nanoseconds, sizes in bytes:
// what ParseJSON reads. Of a nil trace it is "null".
func (t *Trace) JSON() string {
	if t == nil {
		return "null"
	}
	c := *t
	if c.Records == nil {
		c.Records = []Record{} // [], not null
	}
	out, err := json.MarshalIndent(c, "", "  ")
	if err != nil { // strings, integers and finite numbers: cannot happen
		return fmt.Sprintf("{\"records\": [], \"note\": %q}", err)
	}
	return string(out)
}

// ParseJSON reads what JSON wrote. The error says which record is wrong and how;
// fields that it does not know are ignored.
func ParseJSON(text string) (*Trace, error) {
	refuse := func(format string, args ...any) (*Trace, error) {
		return nil, fmt.Errorf("trace.ParseJSON: "+format, args...)
	}
	t := &Trace{}
	dec := json.NewDecoder(strings.NewReader(text))
	if err := dec.Decode(&t); err != nil {
		if errors.Is(err, io.EOF) {
			return refuse("the text is empty; pass what Trace.JSON returned")
		}
		return refuse("%w", err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return refuse("there is more text after the trace")
	}
	if t == nil || t.Records == nil {
		return refuse("the text has no list \"records\"; pass what Trace.JSON returned")
	}
	for i, r := range t.Records {
		switch {
		case !slices.Contains(kinds, r.Kind):
			return refuse("record %d: the kind is %q, not one of %q", i, r.Kind, kinds)
		case r.Timing != Unknown && r.Timing != Measured && r.Timing != Simulated:
			return refuse("record %d: the timing is %q, not %q or %q", i, r.Timing, Measured, Simulated)
		case r.Start < 0 || r.Duration < 0:
			return refuse("record %d: it starts at %d ns for %d ns; neither can be negative", i, r.Start, r.Duration)
		case r.Size < 0 || r.Registers < 0 || r.StaticShared < 0 || r.DynamicShared < 0:
			return refuse("record %d: a size or the number of registers is negative", i)
		}
	}
	return t, nil
}
