package main

import (
	"math"

	"gpunotes/gpukit/internal/driver/sim"
)

// The check on figures that had no part in the model's only fitted number: streaming
// kernels on three other cards, from few threads in flight to many (RRZE-HPC/gpu-benches,
// gpu-stream, commit 1038c5d: threads in flight, then GB/s of init, read, scale and
// triad on float64, one element per thread). The H200 of the card files stands for
// the GH200, with the memory bandwidth of that card; a V100 is no card of ours and is
// made of an A100 with a V100's clock, latency and memory (the same collection).
type streamed struct {
	card    string
	peak    float64 // GB/s of the data sheet
	latency int     // cycles of a load from memory
	mhz     float64
	points  [][5]float64
}

var streams = []streamed{
	{"V100", 900, 431, 1380, [][5]float64{
		{1280, 39, 19, 34, 64}, {8960, 267, 119, 212, 352}, {20480, 599, 263, 426, 638}, {40960, 897, 491, 675, 759},
		{71680, 897, 708, 776, 772}, {112640, 897, 804, 797, 780}, {158720, 897, 863, 808, 787}}},
	{"A100", 1555, 550, 1410, [][5]float64{
		{1728, 54, 20, 39, 55}, {13824, 412, 162, 292, 406}, {27648, 802, 310, 548, 743}, {55296, 1501, 592, 956, 1232},
		{96768, 1538, 946, 1318, 1353}, {158976, 1538, 1335, 1363, 1368}, {221184, 1539, 1500, 1382, 1358}}},
	{"GH200", 4023, 687, 1980, [][5]float64{
		{2112, 77, 31, 61, 108}, {14784, 521, 208, 384, 660}, {33792, 1167, 486, 854, 1408}, {67584, 2186, 935, 1397, 2367},
		{118272, 3408, 1496, 2070, 3187}, {185856, 3939, 2148, 2727, 3585}, {261888, 3942, 2729, 3155, 3779}}},
}

// The kernels: bytes that an element moves, loads that wait for each other.
var streamKernels = []struct {
	name  string
	bytes float64
	loads int
}{{"init", 8, 0}, {"read", 8, 1}, {"scale", 16, 1}, {"triad", 32, 1}}

// heldOut is the model's GB/s over the measured ones, as logarithms: one for each
// point, by kernel and card.
func heldOut() (logs []float64, worst string) {
	card, err := sim.LookupCard("a100")
	if err != nil {
		panic(err)
	}
	most := 0.0
	for _, s := range streams {
		c := *card
		c.ClockMHz, c.MemoryGBS, c.MemoryLatency, c.StartUS = s.mhz, s.peak, s.latency, 0
		for _, p := range s.points {
			for k, kernel := range streamKernels {
				// One wave of a launch that is long: every thread moves an element, then a block takes
				// its place. Counted, not executed: nothing but memory and latency is busy.
				threads := p[0]
				st := &sim.Stats{
					Blocks: c.Multiprocessors, Resident: 1, WarpCycles: float64(kernel.loads * s.latency),
					Memory: &sim.MemoryCounts{Bursts: uint64(threads * kernel.bytes / 32)},
				}
				gbs := threads * kernel.bytes / c.KernelSeconds(st, 32) / 1e9
				e := math.Log(gbs / p[1+k])
				logs = append(logs, e)
				if math.Abs(e) > most {
					most, worst = math.Abs(e), s.card+" "+kernel.name
				}
			}
		}
	}
	return logs, worst
}

// rootMeanSquare of logarithms: 0.1 is about 10 %.
func rootMeanSquare(x []float64) float64 {
	s := 0.0
	for _, v := range x {
		s += float64(v * v)
	}
	return math.Sqrt(s / float64(len(x)))
}
