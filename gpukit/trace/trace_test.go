package trace

import (
	"encoding/json"
	"encoding/xml"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

// The tables of the three threads, as published: nvprof on a Quadro K2000 and a
// GeForce GTX 970. Pages have squeezed the blanks, so cells are compared, and the
// alignment in TestAlignment. Kernel names are shortened here. Two durations have a
// digit more than was printed, without which the throughput differs in its last one.

const (
	us = time.Microsecond
	ms = time.Millisecond
)

func at(x float64, unit time.Duration) time.Duration {
	return time.Duration(float64(x*float64(unit)) + 0.5)
}

// copyOf is a copy of a thread on the K2000.
func copyOf(kind Kind, start, dur time.Duration, size int64) Record {
	r := Record{Kind: kind, Start: start, Duration: dur, Size: size, Src: Pageable, Dst: Device, Device: "Quadro K2000 (0)", Context: 1, Stream: 7}
	if kind == DtoH {
		r.Src, r.Dst = Device, Pageable
	}
	return r
}

func launchOf(start, dur time.Duration, name string, id, grid, block, regs int) Record {
	return Record{Kind: Launch, Name: name, ID: id, Start: start, Duration: dur, Grid: [3]int{grid, 1, 1}, Block: [3]int{block, 1, 1},
		Registers: regs, Device: "Quadro K2000 (0)", Context: 1, Stream: 7}
}

const (
	mib15  = 16000000 // float64 (100,4000,5)
	kib156 = 160000   // float64 (4000,5)
)

var golden = []struct {
	name    string
	records []Record
	want    string
}{
	{"t14", []Record{
		copyOf(HtoD, at(312.36, ms), at(1.2160, us), 8),
		copyOf(HtoD, at(312.81, ms), at(27.392, us), kib156),
		copyOf(HtoD, at(313.52, ms), at(5.8696, ms), mib15),
		copyOf(HtoD, at(319.74, ms), at(1.0880, us), 8),
		copyOf(HtoD, at(319.93, ms), 896, 8),
		launchOf(at(321.40, ms), at(1.22538, time.Second), "cudapy::__main__::__gufunc_cVestDiscount$242", 37, 1, 64, 63),
		copyOf(DtoH, at(1.54678, time.Second), at(7.1816, ms), mib15),
	}, `
312.36ms 1.2160us - - - - - 8B 6.2742MB/s Pageable Device Quadro K2000 (0 1 7 [CUDA memcpy HtoD]
312.81ms 27.392us - - - - - 156.25KB 5.4400GB/s Pageable Device Quadro K2000 (0 1 7 [CUDA memcpy HtoD]
313.52ms 5.8696ms - - - - - 15.259MB 2.5387GB/s Pageable Device Quadro K2000 (0 1 7 [CUDA memcpy HtoD]
319.74ms 1.0880us - - - - - 8B 7.0123MB/s Pageable Device Quadro K2000 (0 1 7 [CUDA memcpy HtoD]
319.93ms 896ns - - - - - 8B 8.5149MB/s Pageable Device Quadro K2000 (0 1 7 [CUDA memcpy HtoD]
321.40ms 1.22538s (1 1 1) (64 1 1) 63 0B 0B - - - - Quadro K2000 (0 1 7 cudapy::__main__::__gufunc_cVestDiscount$242 [37]
1.54678s 7.1816ms - - - - - 15.259MB 2.0749GB/s Device Pageable Quadro K2000 (0 1 7 [CUDA memcpy DtoH]`},
	{"t15", []Record{
		copyOf(HtoD, at(193.92, ms), at(6.2729, ms), mib15),
		copyOf(HtoD, at(201.09, ms), at(5.7101, ms), mib15),
		launchOf(at(364.92, ms), at(842.49, us), "cudapy::__main__::__vectorized_cVestDiscount$242", 31, 15625, 128, 13),
		copyOf(DtoH, at(365.77, ms), at(7.1528, ms), mib15),
	}, `
193.92ms 6.2729ms - - - - - 15.259MB 2.3755GB/s Pageable Device Quadro K2000 (0 1 7 [CUDA memcpy HtoD]
201.09ms 5.7101ms - - - - - 15.259MB 2.6096GB/s Pageable Device Quadro K2000 (0 1 7 [CUDA memcpy HtoD]
364.92ms 842.49us (15625 1 1) (128 1 1) 13 0B 0B - - - - Quadro K2000 (0 1 7 cudapy::__main__::__vectorized_cVestDiscount$242 [31]
365.77ms 7.1528ms - - - - - 15.259MB 2.0833GB/s Device Pageable Quadro K2000 (0 1 7 [CUDA memcpy DtoH]`},
	{"t16", []Record{
		copyOf(HtoD, at(307.05, ms), at(27.392, us), kib156),
		copyOf(HtoD, at(307.79, ms), at(5.9293, ms), mib15),
		copyOf(HtoD, at(314.34, ms), at(1.3440, us), 8),
		copyOf(HtoD, at(314.54, ms), 896, 8),
		launchOf(at(317.27, ms), at(47.398, ms), "cudapy::__main__::__gufunc_cVestDiscount$242", 35, 2, 64, 63),
		copyOf(DtoH, at(364.67, ms), at(7.3799, ms), mib15),
	}, `
307.05ms 27.392us - - - - - 156.25KB 5.4400GB/s Pageable Device Quadro K2000 (0 1 7 [CUDA memcpy HtoD]
307.79ms 5.9293ms - - - - - 15.259MB 2.5131GB/s Pageable Device Quadro K2000 (0 1 7 [CUDA memcpy HtoD]
314.34ms 1.3440us - - - - - 8B 5.6766MB/s Pageable Device Quadro K2000 (0 1 7 [CUDA memcpy HtoD]
314.54ms 896ns - - - - - 8B 8.5149MB/s Pageable Device Quadro K2000 (0 1 7 [CUDA memcpy HtoD]
317.27ms 47.398ms (2 1 1) (64 1 1) 63 0B 0B - - - - Quadro K2000 (0 1 7 cudapy::__main__::__gufunc_cVestDiscount$242 [35]
364.67ms 7.3799ms - - - - - 15.259MB 2.0192GB/s Device Pageable Quadro K2000 (0 1 7 [CUDA memcpy DtoH]`},
	{"t17", []Record{
		copyOf(HtoD, at(304.92, ms), at(1.1840, us), 8),
		copyOf(HtoD, at(305.36, ms), at(27.392, us), kib156),
		copyOf(HtoD, at(306.08, ms), at(6.0208, ms), mib15),
		copyOf(HtoD, at(312.44, ms), at(1.0880, us), 8),
		launchOf(at(313.59, ms), at(8.9961, ms), "cudapy::__main__::__gufunc_cVestDiscount$242", 35, 63, 64, 63),
		copyOf(DtoH, at(322.59, ms), at(7.27724, ms), mib15),
	}, `
304.92ms 1.1840us - - - - - 8B 6.4437MB/s Pageable Device Quadro K2000 (0 1 7 [CUDA memcpy HtoD]
305.36ms 27.392us - - - - - 156.25KB 5.4400GB/s Pageable Device Quadro K2000 (0 1 7 [CUDA memcpy HtoD]
306.08ms 6.0208ms - - - - - 15.259MB 2.4749GB/s Pageable Device Quadro K2000 (0 1 7 [CUDA memcpy HtoD]
312.44ms 1.0880us - - - - - 8B 7.0123MB/s Pageable Device Quadro K2000 (0 1 7 [CUDA memcpy HtoD]
313.59ms 8.9961ms (63 1 1) (64 1 1) 63 0B 0B - - - - Quadro K2000 (0 1 7 cudapy::__main__::__gufunc_cVestDiscount$242 [35]
322.59ms 7.2772ms - - - - - 15.259MB 2.0476GB/s Device Pageable Quadro K2000 (0 1 7 [CUDA memcpy DtoH]`},
	// nvprof of CUDA 8 had no memory types.
	{"GTX 970", onGTX970(
		copyOf(HtoD, at(271.33, ms), at(1.2800, us), 8),
		copyOf(HtoD, at(271.65, ms), at(14.591, us), kib156),
		copyOf(HtoD, at(272.09, ms), at(2.5868, ms), mib15),
		copyOf(HtoD, at(274.98, ms), 992, 8),
		copyOf(HtoD, at(275.17, ms), 640, 8),
		launchOf(at(276.33, ms), at(657.28, ms), "cudapy::__main__::__gufunc_cVestDiscount$242", 38, 1, 64, 40),
		copyOf(DtoH, at(933.62, ms), at(3.51282, ms), mib15),
	), `
271.33ms 1.2800us - - - - - 8B 5.9605MB/s - - GeForce GTX 970 1 7 [CUDA memcpy HtoD]
271.65ms 14.591us - - - - - 156.25KB 10.213GB/s - - GeForce GTX 970 1 7 [CUDA memcpy HtoD]
272.09ms 2.5868ms - - - - - 15.259MB 5.7605GB/s - - GeForce GTX 970 1 7 [CUDA memcpy HtoD]
274.98ms 992ns - - - - - 8B 7.6909MB/s - - GeForce GTX 970 1 7 [CUDA memcpy HtoD]
275.17ms 640ns - - - - - 8B 11.921MB/s - - GeForce GTX 970 1 7 [CUDA memcpy HtoD]
276.33ms 657.28ms (1 1 1) (64 1 1) 40 0B 0B - - - - GeForce GTX 970 1 7 cudapy::__main__::__gufunc_cVestDiscount$242 [38]
933.62ms 3.5128ms - - - - - 15.259MB 4.2419GB/s - - GeForce GTX 970 1 7 [CUDA memcpy DtoH]`},
}

func onGTX970(rs ...Record) []Record {
	for i := range rs {
		rs[i].Device, rs[i].Src, rs[i].Dst = "GeForce GTX 970 (0)", "", ""
	}
	return rs
}

// squeezed has one blank where a table has several, and no line's first.
func squeezed(s string) string {
	var lines []string
	for l := range strings.Lines(s) {
		lines = append(lines, strings.Join(strings.Fields(l), " "))
	}
	return strings.TrimSpace(strings.Join(lines, "\n"))
}

func TestGPUTraceOfTheThreads(t *testing.T) {
	const header = "Profiling result:\nStart Duration Grid Size Block Size Regs* SSMem* DSMem* Size Throughput SrcMemType DstMemType Device Context Stream Name"
	for _, c := range golden {
		got, after, _ := strings.Cut(squeezed((&Trace{Records: c.records}).GPUTrace()), "\n\n")
		if want := header + c.want; got != want {
			t.Errorf("%s:\n%s\nwant\n%s", c.name, got, want)
		}
		for _, n := range []string{"Regs: ", "SSMem: ", "DSMem: ", "SrcMemType: ", "DstMemType: "} {
			if strings.Count("\n"+after, "\n"+n) != 1 {
				t.Errorf("%s: no note %q:\n%s", c.name, n, after)
			}
		}
	}
}

func TestSummaryOfTheThreads(t *testing.T) {
	copies := func(kind Kind, durations ...time.Duration) (rs []Record) {
		for _, d := range durations {
			rs = append(rs, Record{Kind: kind, Duration: d})
		}
		return rs
	}
	for _, c := range []struct {
		name    string
		records []Record
		want    string
	}{
		// Of several copies the threads print the sum, the least and the greatest; the others here make up the sum.
		{"t38", append(copies(HtoD, 2697400, 2708100, 2708100, 3304400), append(copies(DtoH, 3252100), Record{Kind: Launch, Name: "__vectorized_a_cuda$242", Duration: 5872700})...), `
GPU activities: 55.58% 11.418ms 4 2.8545ms 2.6974ms 3.3044ms [CUDA memcpy HtoD]
28.59% 5.8727ms 1 5.8727ms 5.8727ms 5.8727ms __vectorized_a_cuda$242
15.83% 3.2521ms 1 3.2521ms 3.2521ms 3.2521ms [CUDA memcpy DtoH]`},
		{"t39", append(copies(HtoD, 3253500, 864, 2721000, 1000, 1036), append(copies(DtoH, 3145900, 1184, 1984, 2032), Record{Kind: Launch, Name: "__vectorized_a_cuda$242", Duration: 8467900})...), `
GPU activities: 48.12% 8.4679ms 1 8.4679ms 8.4679ms 8.4679ms __vectorized_a_cuda$242
33.97% 5.9774ms 5 1.1955ms 864ns 3.2535ms [CUDA memcpy HtoD]
17.91% 3.1511ms 4 787.77us 1.1840us 3.1459ms [CUDA memcpy DtoH]`},
		{"t40", append(copies(DtoH, 3344600), Record{Kind: Launch, Name: "LLA_distance_numba_cuda$241", Duration: 10364000}), `
GPU activities: 75.60% 10.364ms 1 10.364ms 10.364ms 10.364ms LLA_distance_numba_cuda$241
24.40% 3.3446ms 1 3.3446ms 3.3446ms 3.3446ms [CUDA memcpy DtoH]`},
	} {
		want := "Profiling result:\nType Time(%) Time Calls Avg Min Max Name" + c.want
		if got := squeezed((&Trace{Records: c.records}).Summary()); got != want {
			t.Errorf("%s:\n%s\nwant\n%s", c.name, got, want)
		}
	}
}

// The widths are those of nvprof 9 to 11.
func TestAlignment(t *testing.T) {
	tr := &Trace{Records: []Record{
		{Kind: HtoD, Start: 154623 * ms, Duration: 5534 * us, Size: 72000000, Src: Pinned, Dst: Device, Device: "GeForce GTX 1050", Context: 1, Stream: 7},
		{Kind: Launch, Name: "matmul_kernel", ID: 120, Start: 154634 * ms, Duration: at(934.47, ms), Grid: [3]int{188, 188, 1}, Block: [3]int{16, 16, 1},
			Registers: 32, StaticShared: 4096, Device: "GeForce GTX 1050", Context: 1, Stream: 7},
	}}
	const want = `Profiling result:
   Start  Duration            Grid Size      Block Size     Regs*    SSMem*    DSMem*      Size  Throughput  SrcMemType  DstMemType           Device   Context    Stream  Name
154.623s  5.5340ms                    -               -         -         -         -  68.665MB  12.117GB/s      Pinned      Device  GeForce GTX 105         1         7  [CUDA memcpy HtoD]
154.634s  934.47ms          (188 188 1)       (16 16 1)        32  4.0000KB        0B         -           -           -           -  GeForce GTX 105         1         7  matmul_kernel [120]

`
	if got := tr.GPUTrace(); !strings.HasPrefix(got, want) {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	const sum = `Profiling result:
            Type  Time(%)      Time     Calls       Avg       Min       Max  Name
 GPU activities:   99.41%  934.47ms         1  934.47ms  934.47ms  934.47ms  matmul_kernel
                    0.59%  5.5340ms         1  5.5340ms  5.5340ms  5.5340ms  [CUDA memcpy HtoD]
`
	if got := tr.Summary(); got != sum {
		t.Errorf("%s\nwant\n%s", got, sum)
	}
	if got := tr.String(); got != tr.GPUTrace()+"\n"+sum {
		t.Errorf("String is not both tables:\n%s", got)
	}
	// A cell that is too long widens its column: the last one still begins at one place.
	tr.Records[0].Grid = [3]int{}
	tr.Records[1].Grid = [3]int{1<<31 - 1, 65535, 65535}
	lines := strings.Split(tr.GPUTrace(), "\n")
	if a, b := strings.Index(lines[2], "["), strings.Index(lines[3], "matmul"); a != b || !strings.Contains(lines[3], "  (2147483647 65535 65535)  ") {
		t.Errorf("a long grid breaks the table:\n%s", strings.Join(lines[:4], "\n"))
	}
}

// parsed reads what a Format function wrote.
func parsed(t *testing.T, s string, units map[string]float64) (x float64, digits string) {
	t.Helper()
	i := strings.IndexFunc(s, func(r rune) bool { return (r < '0' || r > '9') && r != '.' })
	u, ok := units[s[i:]]
	x, err := strconv.ParseFloat(s[:i], 64)
	if err != nil || !ok {
		t.Fatalf("%q is not a number and a unit", s)
	}
	return x * u, s[:i]
}

// checkNumber tests the rule of units.go on x written as s, and returns what s says.
func checkNumber(t *testing.T, s string, x float64, units map[string]float64, base float64, width int, integer string) float64 {
	t.Helper()
	v, digits := parsed(t, s, units)
	unit := s[len(digits):]
	want := width - len(unit)
	if unit == integer {
		if v != x || strings.Contains(digits, ".") {
			t.Fatalf("%v is written %q", x, s)
		}
		return v
	}
	if len(digits) != want || strings.Count(digits, ".") != 1 {
		t.Fatalf("%v is written %q: %d significant digits and a point are wanted", x, s, want-1)
	}
	whole, frac, _ := strings.Cut(digits, ".")
	if n := x / units[unit]; n < 1 || n >= base {
		t.Fatalf("%v is written %q: the wrong unit", x, s)
	}
	half := units[unit] / 2
	for range frac {
		half /= 10
	}
	if d := v - x; d > half*(1+1e-9) || d < -half*(1+1e-9) {
		t.Fatalf("%v is written %q, off by %v", x, s, d)
	}
	if whole == "0" {
		t.Fatalf("%v is written %q: a leading zero", x, s)
	}
	return v
}

func TestUnits(t *testing.T) {
	times := map[string]float64{"ns": 1, "us": 1e3, "ms": 1e6, "s": 1e9}
	sizes := map[string]float64{"B": 1, "KB": 1 << 10, "MB": 1 << 20, "GB": 1 << 30, "TB": 1 << 40, "PB": 1 << 50, "EB": 1 << 60}
	rates := map[string]float64{}
	for u, x := range sizes {
		rates[u+"/s"] = x
	}
	rng := rand.New(rand.NewPCG(1, 2))
	edges := []int64{0, 1, 999, 1000, 1001, 1023, 1024, 1025, 99999, 100000, 999994, 999995, 999999, 1000000, 1048575, 1048576, 999999999, 1000000000, 999999499999, 999999999999, 1 << 40}
	for i := range 20000 {
		x := int64(1) << rng.IntN(49)
		x += rng.Int64N(x)
		if i < len(edges) {
			x = edges[i]
		}
		v := checkNumber(t, FormatDuration(time.Duration(x)), float64(x), times, 1e6, 8, "ns")
		if s := FormatDuration(time.Duration(x)); x >= 1000 && x < 1e9 {
			checkNumber(t, s, float64(x), times, 1000, 8, "ns")
		}
		shorter := max(0, x-1-rng.Int64N(1+x/1000))
		if w := checkNumber(t, FormatDuration(time.Duration(shorter)), float64(shorter), times, 1e6, 8, "ns"); w > v {
			t.Fatalf("%d is written as less than %d", x, shorter)
		}
		checkNumber(t, FormatSize(x), float64(x), sizes, 1024, 8, "B")
		if x > 0 {
			checkNumber(t, FormatThroughput(float64(x)), float64(x), rates, 1024, 10, "")
		}
	}
	for _, c := range []struct{ got, want string }{
		{FormatSize(160000), "156.25KB"},
		{FormatSize(16000000), "15.259MB"},
		{FormatSize(2048), "2.0000KB"},
		{FormatSize(-1), "-1B"},
		{FormatSize(1<<63 - 1), "8.0000EB"},
		{FormatDuration(1184), "1.1840us"},
		{FormatDuration(158 * ms), "158.00ms"},
		{FormatDuration(at(15.259, ms)), "15.259ms"},
		{FormatDuration(999999), "1000.0us"},
		{FormatDuration(-1500), "-1.5000us"},
		{FormatDuration(1823996 * ms), "1824.00s"},
		{FormatDuration(2000000 * time.Second), "2000000s"},
		{FormatDuration(1<<63 - 1), "9223372037s"},
		{FormatThroughput(16000000 / 5.8696e-3), "2.5387GB/s"},
		{FormatThroughput(8), "8.00000B/s"},
		{FormatThroughput(0), "-"},
		{FormatThroughput(-1), "-"},
		{FormatThroughput(1 / zero), "-"},
		{FormatThroughput(zero / zero), "-"},
		{FormatThroughput(Record{Kind: HtoD, Size: 8}.Throughput()), "-"},
	} {
		if c.got != c.want {
			t.Errorf("%q, want %q", c.got, c.want)
		}
	}
}

var zero float64

func TestNothing(t *testing.T) {
	var none *Trace
	for _, s := range []string{none.String(), none.GPUTrace(), none.Summary(), none.Counters()} {
		if s != "<nil *trace.Trace>" {
			t.Errorf("a nil trace says %q", s)
		}
	}
	if got := none.HTML(); got != "<pre>&lt;nil *trace.Trace&gt;</pre>" {
		t.Error(got)
	}
	if none.JSON() != "null" {
		t.Error(none.JSON())
	}
	empty := &Trace{}
	for _, s := range []string{empty.String(), empty.GPUTrace(), empty.Summary(), empty.HTML()} {
		if !strings.Contains(s, "nothing ran") || strings.Contains(s, "Duration") {
			t.Errorf("an empty trace says %q", s)
		}
	}
	noted := &Trace{Note: "no trace was started"}
	for _, s := range []string{noted.String(), noted.GPUTrace(), noted.Summary(), noted.HTML()} {
		if !strings.Contains(s, noted.Note) || strings.Contains(s, "nothing ran") {
			t.Errorf("a trace with a note says %q", s)
		}
	}
	noted.Records = golden[0].records
	if s := noted.String(); strings.Count(s, noted.Note) != 1 || !strings.Contains(s, "HtoD") {
		t.Errorf("the note is not there once:\n%s", s)
	}
}

func labelled(timings ...Timing) *Trace {
	t := &Trace{}
	for i, x := range timings {
		t.Records = append(t.Records, Record{Kind: Launch, Name: "f", Start: time.Duration(i) * ms, Duration: 1500, Timing: x})
	}
	return t
}

func TestTimingIsSaid(t *testing.T) {
	for _, c := range []struct {
		trace     *Trace
		text      string // heading
		html, sum int    // labels in the first and in the second table
		rows      int
	}{
		{labelled(Simulated, Simulated), "durations simulated:", 1, 4, 1},
		{labelled(Measured), "durations measured:", 0, 0, 1},
		{labelled(Unknown, Unknown), "result:", 0, 0, 1},
		{labelled(Simulated, Measured, Simulated, Unknown), "durations as marked:", 2, 4, 3},
	} {
		for _, s := range []string{c.trace.GPUTrace(), c.trace.Summary()} {
			if h, _, _ := strings.Cut(s, "\n"); !strings.HasSuffix(h, c.text) {
				t.Errorf("heading %q, want %q", h, c.text)
			}
		}
		page := c.trace.HTML()
		_, both, _ := strings.Cut(page, "Profiling result")
		first, second, _ := strings.Cut(both, "Profiling result")
		count := func(s string) int { return strings.Count(s, "<small>simulated</small>") }
		if count(first) != c.html || count(second) != c.sum {
			t.Errorf("%s: %d and %d labels, want %d and %d\n%s", c.text, count(first), count(second), c.html, c.sum, page)
		}
		if n := strings.Count(c.trace.Summary(), "\n") - 2; n != c.rows {
			t.Errorf("%s: %d rows in the summary, want %d", c.text, n, c.rows)
		}
	}
	mixed := labelled(Simulated, Measured, Unknown).GPUTrace()
	for _, want := range []string{"f (simulated)\n", "f (measured)\n", "f\n"} {
		if strings.Count(mixed, want) != 1 {
			t.Errorf("no row ends with %q:\n%s", want, mixed)
		}
	}
}

func TestOrderAndDevices(t *testing.T) {
	tr := &Trace{Records: []Record{
		{Kind: Launch, Name: "late", Start: 3, Duration: 5, OnCPU: true},
		{Kind: Memset, Start: 2, Duration: 4, Size: 4096, Dst: Device},
		{Kind: DtoD, Start: 1, Duration: 6, Size: 1 << 20},
	}}
	text := tr.GPUTrace()
	if a, b, c := strings.Index(text, "DtoD"), strings.Index(text, "memset"), strings.Index(text, "late"); !(a < b && b < c) {
		t.Errorf("not by start:\n%s", text)
	}
	if tr.Records[0].Name != "late" {
		t.Error("GPUTrace reorders the records")
	}
	const want = `Profiling result:
            Type  Time(%)      Time     Calls       Avg       Min       Max  Name
 GPU activities:   60.00%       6ns         1       6ns       6ns       6ns  [CUDA memcpy DtoD]
                   40.00%       4ns         1       4ns       4ns       4ns  [CUDA memset]
 CPU activities:  100.00%       5ns         1       5ns       5ns       5ns  late
`
	if got := tr.Summary(); got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	tr.Records = []Record{{Kind: Launch, Name: "f"}}
	if got := tr.Summary(); !strings.Contains(got, "  0.00%       0ns         1       0ns") {
		t.Errorf("no time at all:\n%s", got)
	}
	// Averages are cut, not rounded: 344 calls of 2.4860ms are 7.2260us in a published table.
	tr.Records = nil
	for i := range 344 {
		tr.Records = append(tr.Records, Record{Kind: HtoD, Duration: time.Duration(2486000/344 + i%2)})
	}
	if got := tr.Summary(); !strings.Contains(got, "344  7.2260us") {
		t.Error(got)
	}
}

func TestHTMLIsWellFormed(t *testing.T) {
	odd := golden[0].records[5]
	odd.Name = "f<Array<double, int=1>>&\"'\n\xff"
	odd.Device = "<b>"
	odd.Timing = Simulated
	odd.Counters = map[string]int64{"a<b": 1}
	for name, tr := range map[string]*Trace{
		"thread": {Records: golden[0].records},
		"odd":    {Records: append([]Record{odd}, golden[0].records...), Note: "<&>"},
		"empty":  {},
		"nil":    nil,
	} {
		page := tr.HTML()
		dec := xml.NewDecoder(strings.NewReader(strings.ReplaceAll(strings.ToValidUTF8(page, "?"), "<br>", "<br/>")))
		tables, cells, rows := 0, 0, 0
		for {
			tok, err := dec.Token()
			if err != nil {
				if err.Error() != "EOF" {
					t.Errorf("%s: %v\n%s", name, err, page)
				}
				break
			}
			if e, ok := tok.(xml.StartElement); ok {
				switch e.Name.Local {
				case "table":
					tables++
				case "tr":
					rows++
				case "td":
					cells++
				case "b", "Array":
					t.Errorf("%s: a name became an element", name)
				}
			}
		}
		want := map[string][3]int{"thread": {2, 12, 7*12 + 3*8}, "odd": {3, 16, 8*13 + 4*8 + 6}}[name]
		if got := [3]int{tables, rows, cells}; got != want {
			t.Errorf("%s: tables, rows, cells %v, want %v", name, got, want)
		}
		if strings.Contains(page, "color") || strings.Contains(page, "background") {
			t.Errorf("%s: a colour of its own is not legible in every theme", name)
		}
	}
}

// What all records share is said once, and the name is not pushed off the page.
func TestHTMLSaysOnceWhatAllShare(t *testing.T) {
	record := func(device string, context, stream int) Record {
		return Record{Kind: Launch, Name: "f", Device: device, Context: context, Stream: stream}
	}
	for _, c := range []struct {
		records []Record
		want    string // below the table
		columns []string
	}{
		{[]Record{record("Quadro <K2000> (0)", 1, 7), record("Quadro <K2000> (0)", 1, 7)}, "Device: Quadro &lt;K2000&gt; (0). Context: 1. Stream: 7.<br>", nil},
		{[]Record{record("a", 1, 7), record("a", 1, 8)}, "Device: a. Context: 1.<br>", []string{"Stream"}},
		{[]Record{record("a", 1, 7), record("b", 2, 7)}, "<small>Stream: 7.<br>", []string{"Device", "Context"}},
		{[]Record{record("", 0, 0)}, "<small>Regs: ", nil},
	} {
		page := (&Trace{Records: c.records}).HTML()
		if !strings.Contains(page, c.want) {
			t.Errorf("no %q in\n%s", c.want, page)
		}
		head, _, _ := strings.Cut(page, "</thead>")
		for _, name := range []string{"Device", "Context", "Stream"} {
			if strings.Contains(head, ">"+name+"<") != slices.Contains(c.columns, name) {
				t.Errorf("column %s: %v; want %v", name, !slices.Contains(c.columns, name), c.columns)
			}
		}
		for _, row := range strings.Split(page, "<tr>")[1 : 2+len(c.records)] {
			if n := strings.Count(row, "<td") + strings.Count(row, "<th "); n != 12+len(c.columns) {
				t.Errorf("%d cells in %s", n, row)
			}
		}
	}
}

func TestLongTrace(t *testing.T) {
	tr := &Trace{}
	for i := range 100000 {
		tr.Records = append(tr.Records, Record{Kind: Launch, Name: fmt.Sprintf("f%d", i%3), Start: time.Duration(i), Duration: 1})
	}
	page := tr.HTML()
	if n := strings.Count(page, "<tr>"); n != 1+head+1+tail+1+3 || !strings.Contains(page, "99750 more records") {
		t.Errorf("%d rows", n)
	}
	if len(page) > 1<<20 {
		t.Errorf("%d bytes", len(page))
	}
	if n := strings.Count(tr.GPUTrace(), "\n"); n != 2+100000+1+len(notes) {
		t.Errorf("%d lines of text", n)
	}
	tr.Records = tr.Records[:head+tail]
	if n := strings.Count(tr.HTML(), "<tr>"); n != 1+head+tail+1+3 {
		t.Errorf("%d rows of a trace that is not too long", n)
	}
}

func TestCounters(t *testing.T) {
	tr := &Trace{Records: []Record{
		{Kind: Launch, Name: "g", Start: 2, Counters: map[string]int64{"sectors": 7}},
		{Kind: Launch, Name: "f", Start: 1, Counters: map[string]int64{"sectors": 4, "L2 hits": 1}},
		{Kind: Launch, Name: "f", Start: 3, Counters: map[string]int64{"sectors": 7, "L2 hits": 1}},
	}}
	const want = `Kernel: f
Invocations          Min          Max          Avg        Total  Counter
          2            1            1          1.0            2  L2 hits
          2            4            7          5.5           11  sectors

Kernel: g
Invocations          Min          Max          Avg        Total  Counter
          1            7            7          7.0            7  sectors
`
	if got := tr.Counters(); got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	if got := (&Trace{Records: golden[0].records}).Counters(); !strings.Contains(got, "no counters") {
		t.Error(got)
	}
}

func TestJSONRoundTrip(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	word := func(of ...string) string { return of[rng.IntN(len(of))] }
	for range 300 {
		tr := &Trace{Records: []Record{}, Note: word("", "a \"note\" <b>")}
		for range rng.IntN(5) {
			r := Record{Kind: kinds[rng.IntN(len(kinds))], Name: word("", "f", "g<int>", "名"), Start: time.Duration(rng.Int64()), Duration: time.Duration(rng.Int64N(1e12)),
				Timing: Timing(word("", "measured", "simulated")), ID: rng.IntN(3), OnCPU: rng.IntN(2) == 0, Device: word("", "Quadro K2000 (0)"), Context: rng.IntN(2), Stream: rng.IntN(8),
				Size: rng.Int64N(1 << rng.IntN(62)), Src: Memory(word("", "Pageable", "Pinned")), Dst: Memory(word("", "Device")), Registers: rng.IntN(64), StaticShared: rng.IntN(2) * 4096, DynamicShared: rng.IntN(2) * 8}
			if rng.IntN(2) == 0 {
				r.Grid, r.Block = [3]int{rng.IntN(9), 1, 1}, [3]int{32, rng.IntN(9), 1}
				r.Counters = map[string]int64{"sectors": rng.Int64()}
			}
			tr.Records = append(tr.Records, r)
		}
		back, err := ParseJSON(tr.JSON())
		if err != nil || !reflect.DeepEqual(back, tr) {
			t.Fatalf("%v\n%#v\nwant\n%#v\n%s", err, back, tr, tr.JSON())
		}
	}
	back, err := ParseJSON((&Trace{}).JSON())
	if err != nil || len(back.Records) != 0 {
		t.Error(back, err)
	}
	// Every field is in the text under a name of its own.
	full := golden[0].records[0]
	v := reflect.ValueOf(&full).Elem()
	for i := range v.NumField() {
		if f := v.Field(i); f.IsZero() {
			switch f.Kind() {
			case reflect.String:
				f.SetString(string(Measured))
			case reflect.Int:
				f.SetInt(3)
			case reflect.Bool:
				f.SetBool(true)
			case reflect.Array:
				f.Set(reflect.ValueOf([3]int{1, 2, 3}))
			case reflect.Map:
				f.Set(reflect.ValueOf(map[string]int64{"a": 1}))
			default:
				t.Fatalf("field of kind %v", f.Kind())
			}
		}
	}
	var raw struct{ Records []map[string]any }
	if err := json.Unmarshal([]byte((&Trace{Records: []Record{full}}).JSON()), &raw); err != nil || len(raw.Records[0]) != v.NumField()+1 {
		t.Errorf("%v: %v", err, raw)
	}
	if x, _ := raw.Records[0]["throughput"].(float64); FormatThroughput(x) != "6.2742MB/s" {
		t.Errorf("throughput %v", x)
	}
}

func TestParseJSONRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"":                                "is empty",
		"null":                            "no list \"records\"",
		"{}":                              "no list \"records\"",
		"[1":                              "trace.ParseJSON: ",
		`{"records": 3}`:                  "records",
		`{"records": []} x`:               "more text",
		`{"records": [{}]}`:               "record 0: the kind is \"\"",
		`{"records": [{"kind": "jump"}]}`: "the kind is \"jump\"",
		`{"records": [{"kind": "HtoD"}, {"kind": "HtoD", "duration_ns": -1}]}`: "record 1",
		`{"records": [{"kind": "HtoD", "start_ns": -1}]}`:                      "negative",
		`{"records": [{"kind": "HtoD", "size": -1}]}`:                          "negative",
		`{"records": [{"kind": "HtoD", "timing": "guessed"}]}`:                 "guessed",
	} {
		tr, err := ParseJSON(text)
		if tr != nil || err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, %v; want %q", text, tr, err, want)
		}
	}
}

func TestRecordString(t *testing.T) {
	rs := append([]Record{}, golden[0].records[2], golden[0].records[5], Record{Kind: Launch, Name: "f", Duration: 1500, Timing: Simulated})
	for i, want := range []string{
		"[CUDA memcpy HtoD] 15.259MB, at 313.52ms for 5.8696ms",
		"cudapy::__main__::__gufunc_cVestDiscount$242 grid (1 1 1) block (64 1 1), at 321.40ms for 1.22538s",
		"f, at 0ns for 1.5000us (simulated)",
	} {
		if got := rs[i].String(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestDeviceIsCutBetweenCharacters(t *testing.T) {
	tr := &Trace{Records: []Record{{Kind: Launch, Name: "a\nb", Device: "ÄÄÄÄÄÄÄÄÄÄ"}}}
	text := tr.GPUTrace()
	if !utf8.ValidString(text) || !strings.Contains(text, " ÄÄÄÄÄÄÄ ") || !strings.Contains(text, "  a b\n") {
		t.Error(text)
	}
}

func TestSums(t *testing.T) {
	x := &Trace{Records: []Record{
		{Kind: HtoD, Duration: 3, Size: 8}, {Kind: Launch, Duration: 5, Counters: map[string]int64{"a": 2}},
		{Kind: HtoD, Duration: 4, Size: 1}, {Kind: Launch, Duration: 7, Counters: map[string]int64{"a": 1, "b": 4}},
	}}
	if x.Time(HtoD) != 7 || x.Time(Launch) != 12 || x.Time(Memset) != 0 || x.Bytes(HtoD) != 9 || x.Counter("a") != 3 || x.Counter("c") != -1 || x.Counter("L2 hits") != 0 || x.Counter("warp instructions, move") != 0 {
		t.Error(x.Time(HtoD), x.Time(Launch), x.Time(Memset), x.Bytes(HtoD), x.Counter("a"), x.Counter("c"))
	}
	var none *Trace
	if none.Time(Launch) != 0 || none.Bytes(HtoD) != 0 || none.Counter("lines") != 0 || none.Counter("a") != -1 {
		t.Error("a nil trace")
	}
}
