package trace_test

import (
	"encoding/json"
	"fmt"
	"time"

	"gpunotes/gpukit"
	"gpunotes/gpukit/trace"
)

func square(x float64) float64 { return x * x }

// recorded is a trace of one call on a simulated card: a copy in, a launch, a copy out.
func recorded() *trace.Trace {
	gpu := gpukit.MustOpen("sim:quadro-k2000")
	defer gpu.Close()
	gpu.StartTrace()
	gpukit.Must(gpu.Vectorize(square, gpukit.Zeros(10000)))
	return gpu.StopTrace()
}

// pair are two launches and a copy, as another program may have measured them.
func pair() *trace.Trace {
	return &trace.Trace{Records: []trace.Record{
		{Kind: trace.HtoD, Start: 0, Duration: 1500 * time.Microsecond, Size: 8000000, Src: trace.Pageable, Dst: trace.Device, Device: "card", Context: 1, Stream: 7},
		{Kind: trace.Launch, Name: "square", ID: 1, Start: 2 * time.Millisecond, Duration: 250 * time.Microsecond, Grid: [3]int{7813, 1, 1}, Block: [3]int{128, 1, 1}, Registers: 12, Device: "card", Context: 1, Stream: 7},
		{Kind: trace.Launch, Name: "square", ID: 2, Start: 3 * time.Millisecond, Duration: 350 * time.Microsecond, Grid: [3]int{7813, 1, 1}, Block: [3]int{128, 1, 1}, Registers: 12, Device: "card", Context: 1, Stream: 7,
			Counters: map[string]int64{"DRAM reads": 250000, "DRAM writes": 250000}},
	}}
}

// What share of a call is the kernel, and what the copies?
func ExampleTrace_Time() {
	t := recorded()
	copies := t.Time(trace.HtoD) + t.Time(trace.DtoH)
	fmt.Println(copies > t.Time(trace.Launch))
	// Output:
	// true
}

func ExampleTrace_Bytes() {
	t := recorded()
	fmt.Println(t.Bytes(trace.HtoD), t.Bytes(trace.DtoH))
	// Output:
	// 80000 80000
}

// A simulated card counts: each of the 313 warps loads its elements once, and none
// waits at a bank of the shared memory. There is no counter of the last name.
func ExampleTrace_Counter() {
	t := recorded()
	fmt.Println(t.Counter("warp instructions, load global"), t.Counter("shared memory conflicts"), t.Counter("bank conflicts"))
	// Output:
	// 313 0 -1
}

func ExampleTrace_Counters() {
	fmt.Println(pair().Counters())
	// Output:
	// Kernel: square
	// Invocations          Min          Max          Avg        Total  Counter
	//           1       250000       250000     250000.0       250000  DRAM reads
	//           1       250000       250000     250000.0       250000  DRAM writes
}

func ExampleTrace_GPUTrace() {
	fmt.Println(pair().GPUTrace())
	// Output:
	// Profiling result:
	//    Start  Duration            Grid Size      Block Size     Regs*    SSMem*    DSMem*      Size  Throughput  SrcMemType  DstMemType           Device   Context    Stream  Name
	//      0ns  1.5000ms                    -               -         -         -         -  7.6294MB  4.9671GB/s    Pageable      Device             card         1         7  [CUDA memcpy HtoD]
	// 2.0000ms  250.00us           (7813 1 1)       (128 1 1)        12        0B        0B         -           -           -           -             card         1         7  square [1]
	// 3.0000ms  350.00us           (7813 1 1)       (128 1 1)        12        0B        0B         -           -           -           -             card         1         7  square [2]
	//
	// Regs: Registers of a thread, those that driver and tools need included.
	// SSMem: Static shared memory of a block.
	// DSMem: Dynamic shared memory of a block.
	// SrcMemType: The memory that a copy reads.
	// DstMemType: The memory that a copy writes.
}

func ExampleTrace_Summary() {
	fmt.Println(pair().Summary())
	// Output:
	// Profiling result:
	//             Type  Time(%)      Time     Calls       Avg       Min       Max  Name
	//  GPU activities:   71.43%  1.5000ms         1  1.5000ms  1.5000ms  1.5000ms  [CUDA memcpy HtoD]
	//                    28.57%  600.00us         2  300.00us  250.00us  350.00us  square
}

// A trace can be kept in a file, and read again.
func ExampleTrace_JSON() {
	text := pair().JSON()
	t, err := trace.ParseJSON(text)
	fmt.Println(t.Time(trace.Launch), err)
	// Output:
	// 600µs <nil>
}

func ExampleParseJSON() {
	t, err := trace.ParseJSON(`{"records": [{"kind": "launch", "name": "f", "start_ns": 0, "duration_ns": 2500}]}`)
	fmt.Println(t.Records[0], err)
	_, err = trace.ParseJSON(`{"records": [{"kind": "lunch"}]}`)
	fmt.Println(err)
	// Output:
	// f, at 0ns for 2.5000us <nil>
	// trace.ParseJSON: record 0: the kind is "lunch", not one of ["launch" "HtoD" "DtoH" "DtoD" "memset"]
}

func ExampleRecord_Throughput() {
	r := pair().Records[0]
	fmt.Printf("%.2e bytes/s, %s\n", r.Throughput(), trace.FormatThroughput(r.Throughput()))
	// Output:
	// 5.33e+09 bytes/s, 4.9671GB/s
}

// Other languages find the throughput ready.
func ExampleRecord_MarshalJSON() {
	text, err := json.Marshal(trace.Record{Kind: trace.DtoH, Duration: time.Second, Size: 1 << 30})
	fmt.Println(string(text), err)
	// Output:
	// {"kind":"DtoH","start_ns":0,"duration_ns":1000000000,"size":1073741824,"throughput":1073741824} <nil>
}

func ExampleFormatDuration() {
	for _, d := range []time.Duration{896, 27392, 158 * time.Millisecond, 1225380 * time.Microsecond} {
		fmt.Println(trace.FormatDuration(d))
	}
	// Output:
	// 896ns
	// 27.392us
	// 158.00ms
	// 1.22538s
}

func ExampleFormatSize() {
	fmt.Println(trace.FormatSize(8), trace.FormatSize(160000), trace.FormatSize(16000000))
	// Output:
	// 8B 156.25KB 15.259MB
}

func ExampleFormatThroughput() {
	fmt.Println(trace.FormatThroughput(2.7e9), trace.FormatThroughput(0))
	// Output:
	// 2.5146GB/s -
}
