package simt_test

import (
	"fmt"
	"math"

	"gpunotes/gpukit"
	"gpunotes/gpukit/simt"
)

// run launches a kernel on a simulated card and says what went wrong.
func run(kernel interface{}, blocks gpukit.Grid, threads gpukit.Block, args ...interface{}) {
	gpu := gpukit.MustOpen("sim:quadro-k2000")
	defer gpu.Close()
	if err := gpu.With(gpukit.SharedBytes(256)).Launch(kernel, blocks, threads, args...); err != nil {
		fmt.Println(err)
	}
}

// numbers are 1, 2, ... n.
func numbers(n int) []int32 {
	v := make([]int32, n)
	for i := range v {
		v[i] = int32(i + 1)
	}
	return v
}

func positions(thread, block []int32) {
	i := simt.BlockIdx().X*simt.BlockDim().X + simt.ThreadIdx().X
	thread[i] = int32(simt.ThreadIdx().X)
	block[i] = int32(simt.BlockIdx().X)
}

func ExampleThreadIdx() {
	thread, block := make([]int32, 6), make([]int32, 6)
	run(positions, gpukit.Blocks(2), gpukit.Threads(3), thread, block)
	fmt.Println(thread)
	// Output:
	// [0 1 2 0 1 2]
}

func ExampleBlockIdx() {
	thread, block := make([]int32, 6), make([]int32, 6)
	run(positions, gpukit.Blocks(2), gpukit.Threads(3), thread, block)
	fmt.Println(block)
	// Output:
	// [0 0 0 1 1 1]
}

// stride lets few threads do the work of many: each takes every so many elements.
func stride(x []float64) {
	for i := simt.Grid1(); i < len(x); i += simt.BlockDim().X * simt.GridDim().X {
		x[i] = x[i] * x[i]
	}
}

func ExampleGridDim() {
	x := []float64{1, 2, 3, 4, 5, 6, 7}
	run(stride, gpukit.Blocks(1), gpukit.Threads(2), x)
	fmt.Println(x)
	// Output:
	// [1 4 9 16 25 36 49]
}

func ExampleBlockDim() {
	x := []float64{1, 2, 3, 4, 5, 6, 7}
	run(stride, gpukit.Blocks(2), gpukit.Threads(2), x)
	fmt.Println(x)
	// Output:
	// [1 4 9 16 25 36 49]
}

func double(x []float64) {
	if i := simt.Grid1(); i < len(x) { // the grid may be larger
		x[i] = 2 * x[i]
	}
}

func ExampleGrid1() {
	x := []float64{1, 2, 3, 4, 5}
	run(double, gpukit.Blocks(2), gpukit.Threads(3), x)
	fmt.Println(x)
	// Output:
	// [2 4 6 8 10]
}

func transpose(in, out [][]float64) {
	x, y := simt.Grid2() // x goes along rows, so that neighbours read neighbours
	if y < len(in) && x < len(in[y]) {
		out[x][y] = in[y][x]
	}
}

func ExampleGrid2() {
	in := [][]float64{{1, 2, 3}, {4, 5, 6}}
	out := gpukit.Zeros(3, 2)
	run(transpose, gpukit.Blocks(2, 1), gpukit.Threads(2, 2), gpukit.FromSlice(in), out)
	fmt.Println(out)
	// Output:
	// (3, 2) float64 array
	// [[1 4]
	//  [2 5]
	//  [3 6]]
}

func count3(out [][][]int32) {
	x, y, z := simt.Grid3()
	out[z][y][x] = int32(100*z + 10*y + x)
}

func ExampleGrid3() {
	out := gpukit.Zeros(2, 2, 2).As(gpukit.Int32)
	run(count3, gpukit.Blocks(1, 1, 2), gpukit.Threads(2, 2, 1), out)
	fmt.Println(out.Float64s())
	// Output:
	// [0 1 10 11 100 101 110 111]
}

func lanes(out []int32) { out[simt.Grid1()] = int32(simt.LaneID()) }

func ExampleLaneID() {
	out := make([]int32, 64)
	run(lanes, gpukit.Blocks(1), gpukit.Threads(64), out)
	fmt.Println(out[0], out[simt.WarpSize-1], out[simt.WarpSize])
	// Output:
	// 0 31 0
}

// sumBlock adds up 64 elements for each block, in shared memory.
func sumBlock(x, out []float64) {
	var part [64]float64
	simt.Shared(&part)
	t := simt.ThreadIdx().X
	part[t] = x[simt.Grid1()]
	for h := 32; h > 0; h /= 2 {
		simt.SyncThreads()
		if t < h {
			part[t] += part[t+h]
		}
	}
	if t == 0 {
		out[simt.BlockIdx().X] = part[0]
	}
}

func ExampleShared() {
	out := make([]float64, 2)
	run(sumBlock, gpukit.Blocks(2), gpukit.Threads(64), gpukit.Arange(128), out)
	fmt.Println(out)
	// Output:
	// [2016 6112]
}

func shift(x []float64) {
	part := simt.SharedFloat64()
	t := simt.ThreadIdx().X
	part[t] = x[t]
	simt.SyncThreads() // all have written before one reads another's
	x[t] = part[(t+1)%simt.BlockDim().X]
}

func ExampleSyncThreads() {
	x := []float64{1, 2, 3, 4}
	run(shift, gpukit.Blocks(1), gpukit.Threads(4), x)
	fmt.Println(x)
	// Output:
	// [2 3 4 1]
}

// With gpukit.SharedBytes(8*4) a block of the launch has room for four float64.
func ExampleSharedFloat64() {
	x := []float64{10, 20, 30, 40}
	gpu := gpukit.MustOpen("sim:quadro-k2000")
	defer gpu.Close()
	err := gpu.With(gpukit.SharedBytes(8*4)).Launch(shift, gpukit.Blocks(1), gpukit.Threads(4), x)
	fmt.Println(x, err)
	// Output:
	// [20 30 40 10] <nil>
}

func swapPairs(x []int32) {
	var part [32]int32
	simt.Shared(&part)
	lane := simt.LaneID()
	part[lane] = x[lane]
	simt.SyncWarp() // enough where only lanes of one warp meet
	x[lane] = part[lane^1]
}

func ExampleSyncWarp() {
	x := numbers(32)
	run(swapPairs, gpukit.Blocks(1), gpukit.Threads(32), x)
	fmt.Println(x[:6])
	// Output:
	// [2 1 4 3 6 5]
}

// histogram counts values below 4.
func histogram(x []int32, counts []int64) {
	if i := simt.Grid1(); i < len(x) {
		simt.AddInt64(&counts[x[i]], 1)
	}
}

func ExampleAddInt64() {
	counts := make([]int64, 4)
	run(histogram, gpukit.Blocks(1), gpukit.Threads(32), []int32{0, 1, 1, 3, 3, 3}, counts)
	fmt.Println(counts)
	// Output:
	// [1 2 0 3]
}

func bounds(x, lo, hi []int32) {
	simt.MinInt32(&lo[0], x[simt.Grid1()])
	simt.MaxInt32(&hi[0], x[simt.Grid1()])
}

func ExampleMinInt32() {
	lo, hi := []int32{math.MaxInt32}, []int32{math.MinInt32}
	run(bounds, gpukit.Blocks(1), gpukit.Threads(5), []int32{3, -7, 12, 0, 5}, lo, hi)
	fmt.Println(lo[0])
	// Output:
	// -7
}

func ExampleMaxInt32() {
	lo, hi := []int32{math.MaxInt32}, []int32{math.MinInt32}
	run(bounds, gpukit.Blocks(1), gpukit.Threads(5), []int32{3, -7, 12, 0, 5}, lo, hi)
	fmt.Println(hi[0])
	// Output:
	// 12
}

// first lets one thread of all claim a task, and exactly one.
func first(task []int32, claims []int32) {
	if simt.ExchInt32(&task[0], 1) == 0 {
		simt.AddInt32(&claims[0], 1)
	}
}

func ExampleExchInt32() {
	claims := []int32{0}
	run(first, gpukit.Blocks(2), gpukit.Threads(32), []int32{0}, claims)
	fmt.Println(claims[0])
	// Output:
	// 1
}

// multiply is an atomic operation that simt has not, made of one that it has.
func multiply(p []int64, x []int64) {
	v := x[simt.Grid1()]
	for old := simt.AddInt64(&p[0], 0); ; {
		seen := simt.CasInt64(&p[0], old, old*v)
		if seen == old {
			return
		}
		old = seen
	}
}

func ExampleCasInt64() {
	p := []int64{1}
	run(multiply, gpukit.Blocks(1), gpukit.Threads(5), p, []int64{1, 2, 3, 4, 5})
	fmt.Println(p[0])
	// Output:
	// 120
}

func votes(x []int32, any, all []bool, ballot []uint32) {
	i := simt.Grid1()
	any[i] = simt.Any(x[i] > 31)
	all[i] = simt.All(x[i] > 31)
	ballot[i] = simt.Ballot(x[i]%8 == 0)
}

// Whether some number of 1 to 32 is above 31: every thread of the warp is told.
func ExampleAny() {
	any, all, ballot := make([]bool, 32), make([]bool, 32), make([]uint32, 32)
	run(votes, gpukit.Blocks(1), gpukit.Threads(32), numbers(32), any, all, ballot)
	fmt.Println(any[0], any[31])
	// Output:
	// true true
}

func ExampleAll() {
	any, all, ballot := make([]bool, 32), make([]bool, 32), make([]uint32, 32)
	run(votes, gpukit.Blocks(1), gpukit.Threads(32), numbers(32), any, all, ballot)
	fmt.Println(all[0], all[31])
	// Output:
	// false false
}

// Which of the numbers 1 to 32 are multiples of 8: those of lanes 7, 15, 23 and 31.
func ExampleBallot() {
	any, all, ballot := make([]bool, 32), make([]bool, 32), make([]uint32, 32)
	run(votes, gpukit.Blocks(1), gpukit.Threads(32), numbers(32), any, all, ballot)
	fmt.Printf("%032b\n", ballot[0])
	// Output:
	// 10000000100000001000000010000000
}

// spread gives all lanes the value of lane 3.
func spread(x []int32) { x[simt.Grid1()] = simt.ShuffleInt32(x[simt.Grid1()], 3) }

func ExampleShuffleInt32() {
	x := numbers(32)
	run(spread, gpukit.Blocks(1), gpukit.Threads(32), x)
	fmt.Println(x[0], x[31])
	// Output:
	// 4 4
}

// prefix makes the sums of all numbers up to each one's own, without shared memory.
func prefix(x []int32) {
	i, v := simt.Grid1(), x[simt.Grid1()]
	for d := 1; d < 32; d *= 2 {
		below := simt.ShuffleUpInt32(v, d)
		if simt.LaneID() >= d {
			v += below
		}
	}
	x[i] = v
}

func ExampleShuffleUpInt32() {
	x := numbers(32)
	run(prefix, gpukit.Blocks(1), gpukit.Threads(32), x)
	fmt.Println(x[:6], x[31])
	// Output:
	// [1 3 6 10 15 21] 528
}

// sumWarp adds up the lanes of a warp; lane 0 has the sum.
func sumWarp(x []int32) {
	v := x[simt.Grid1()]
	for d := 16; d > 0; d /= 2 {
		v += simt.ShuffleDownInt32(v, d)
	}
	x[simt.Grid1()] = v
}

func ExampleShuffleDownInt32() {
	x := numbers(32)
	run(sumWarp, gpukit.Blocks(1), gpukit.Threads(32), x)
	fmt.Println(x[0])
	// Output:
	// 528
}

// sumAll does so for every lane.
func sumAll(x []int32) {
	v := x[simt.Grid1()]
	for d := 16; d > 0; d /= 2 {
		v += simt.ShuffleXorInt32(v, d)
	}
	x[simt.Grid1()] = v
}

func ExampleShuffleXorInt32() {
	x := numbers(32)
	run(sumAll, gpukit.Blocks(1), gpukit.Threads(32), x)
	fmt.Println(x[0], x[31])
	// Output:
	// 528 528
}

// inCircle is 1 if point i of a sequence lies in the quarter circle.
func inCircle(seed uint64, i float64) float64 {
	x, y := simt.UniformFloat64(seed, 2*uint64(i)), simt.UniformFloat64(seed, 2*uint64(i)+1)
	if x*x+y*y < 1 {
		return 1
	}
	return 0
}

// pi by counting points: the same numbers on every device.
func ExampleUniformFloat64() {
	gpu := gpukit.MustOpen("parallel")
	n := 1000000
	hits := gpukit.Must(gpu.Vectorize(inCircle, uint64(2026), gpukit.Arange(n)))
	fmt.Println(4 * hits.Sum() / float64(n))
	// Output:
	// 3.141096
}

func normal(i float64) float64 { return simt.NormFloat64(1, uint64(i)) }

func ExampleNormFloat64() {
	gpu := gpukit.MustOpen("parallel")
	n := 100000
	x := gpukit.Must(gpu.Vectorize(normal, gpukit.Arange(n)))
	fmt.Printf("mean %.3f\n", x.Sum()/float64(n))
	// Output:
	// mean -0.002
}

// The generator itself needs no device. The counter names the block of random
// numbers, the key the sequence.
func ExamplePhilox4x32() {
	fmt.Printf("%08x\n", simt.Philox4x32([4]uint32{0, 0, 0, 0}, [2]uint32{0, 0}))
	fmt.Printf("%08x\n", simt.Philox4x32([4]uint32{1, 0, 0, 0}, [2]uint32{0, 0}))
	// Output:
	// [6627e8d5 e169c58d bc57ac4c 9b00dbd8]
	// [f8e4cca4 5cb200db b1a574eb 097eff67]
}
