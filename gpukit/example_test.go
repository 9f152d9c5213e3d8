package gpukit_test

import (
	"embed"
	"errors"
	"fmt"
	"math"

	"gonum.org/v1/gonum/mat"

	"gpunotes/gpukit"
	"gpunotes/gpukit/simt"
	"gpunotes/gpukit/trace"
)

// haversine is the angle between two places on a sphere, all in degrees.
func haversine(lat1, lon1, lat2, lon2 float64) float64 {
	const rad = math.Pi / 180
	a, b := math.Sin((lat2-lat1)*rad/2), math.Sin((lon2-lon1)*rad/2)
	return 2 / rad * math.Asin(math.Sqrt(a*a+math.Cos(lat1*rad)*math.Cos(lat2*rad)*b*b))
}

func celsius(fahrenheit float64) float64 { return (fahrenheit - 32) / 1.8 }

func divide(a, b int) int { return a / b }

func polar(x, y float64) (r, phi float64) { return math.Hypot(x, y), math.Atan2(y, x) }

func product(a [][]float64, x, out []float64) {
	for i := range out {
		sum := 0.0
		for j := range x {
			sum += a[i][j] * x[j]
		}
		out[i] = sum
	}
}

func meanAndSpread(x []float64, mean, spread []float64) {
	sum, squares := 0.0, 0.0
	for _, v := range x {
		sum += v
		squares += v * v
	}
	n := float64(len(x))
	mean[0] = sum / n
	spread[0] = math.Sqrt(squares/n - mean[0]*mean[0])
}

func axpy(a float64, x, y []float64) {
	if i := simt.Grid1(); i < len(x) {
		y[i] += a * x[i]
	}
}

func reverseBlock(x []float64) {
	part := simt.SharedFloat64()
	t, i := simt.ThreadIdx().X, simt.Grid1()
	part[t] = x[i]
	simt.SyncThreads()
	x[i] = part[simt.BlockDim().X-1-t]
}

func total(x, out []float64) {
	sum := 0.0
	for _, v := range x {
		sum += v
	}
	out[0] = sum
}

//go:embed *.go
var goFiles embed.FS

// A program that is copied to another machine takes its source with it:
//
//	//go:embed *.go
//	var goFiles embed.FS
func ExampleEmbedSource() {
	fmt.Println(gpukit.EmbedSource(goFiles))
	gpu := gpukit.MustOpen("cpu")
	fmt.Println(gpukit.Must(gpu.Vectorize(celsius, 212.0)).Item())
	// Output:
	// <nil>
	// 100
}

// How far every point of a mesh is from one place, in degrees.
func ExampleDevice_Vectorize() {
	gpu := gpukit.MustOpen("parallel")
	lon, lat := gpukit.MeshGrid(gpukit.Linspace(99, 101, 5), gpukit.Linspace(29, 31, 3))
	z, err := gpu.Vectorize(haversine, lat, lon, 30.0, 101.0)
	fmt.Println(z, err)
	// Output:
	// (3, 5) float64 array
	// [[2.00745 1.64448 1.3257 1.09058 1]
	//  [1.73203 1.29903 0.866023 0.433012 0]
	//  [1.99233 1.63411 1.31999 1.08885 1]] <nil>
}

// What goes wrong for an element is an error that names it, and the device can be
// used as before.
func ExampleDevice_Vectorize_fault() {
	gpu := gpukit.MustOpen("cpu")
	_, err := gpu.Vectorize(divide, 100, []int{5, 0, 20})
	var fault *gpukit.WorkerError
	fmt.Println(errors.As(err, &fault), fault.Index, fault.Args)
	fmt.Println(gpukit.Must(gpu.Vectorize(divide, 100, []int{5, 10, 20})).Float64s())
	// Output:
	// true [1] [a = 100 b = 0]
	// [20 10 5]
}

func ExampleDevice_Vectorize2() {
	gpu := gpukit.MustOpen("cpu")
	r, phi, err := gpu.Vectorize2(polar, []float64{3, 0, -1}, []float64{4, 2, 0})
	fmt.Println(r.Float64s(), phi.Float64s(), err)
	// Output:
	// [5 2 1] [0.9272952180016122 1.5707963267948966 3.141592653589793] <nil>
}

// Matrices times vectors: three matrices, one vector, three results. The outer loop
// of product becomes workers too.
func ExampleDevice_GUVectorize() {
	gpu := gpukit.MustOpen("parallel")
	a := gpukit.Arange(12).Reshape(3, 2, 2)
	y, err := gpu.GUVectorize(product, "(m,n),(n)->(m)", a, []float64{1, 10})
	fmt.Println(y.Shape(), y.Float64s(), err)
	// Output:
	// [3 2] [10 32 54 76 98 120] <nil>
}

func ExampleDevice_GUVectorize2() {
	gpu := gpukit.MustOpen("cpu")
	rows := gpukit.FromSlice([][]float64{{1, 2, 3, 4}, {5, 5, 5, 5}})
	mean, spread, err := gpu.GUVectorize2(meanAndSpread, "(n)->(),()", rows)
	fmt.Printf("%.3f %.3f %v\n", mean.Float64s(), spread.Float64s(), err)
	// Output:
	// [2.500 5.000] [1.118 0.000] <nil>
}

// The last block has more threads than there are elements left: kernels test that.
func ExampleDevice_Launch() {
	gpu := gpukit.MustOpen("sim:quadro-k2000")
	defer gpu.Close()
	x, y := gpukit.Arange(5), []float64{100, 100, 100, 100, 100}
	err := gpu.Launch(axpy, gpukit.Blocks(2), gpukit.Threads(4), 2.0, x, y)
	fmt.Println(y, err)
	// Output:
	// [100 102 104 106 108] <nil>
}

// What a call would do, without doing it.
func ExampleDevice_Explain() {
	gpu := gpukit.MustOpen("sim:quadro-k2000")
	defer gpu.Close()
	p, err := gpu.Explain(celsius, gpukit.Zeros(1000, 1000))
	fmt.Println(p.Workers, p.Block, p.HtoD, p.DtoH, err)
	// Output:
	// 1000000 (128, 1, 1) 8000000 8000000 <nil>
}

// A loop whose iterations need nothing of each other becomes workers; a sum stays in
// order.
func ExampleDevice_ExplainGU() {
	gpu := gpukit.MustOpen("parallel")
	p, err := gpu.ExplainGU(product, "(m,n),(n)->(m)", gpukit.Zeros(100, 50), gpukit.Zeros(50))
	for _, l := range p.Loops {
		fmt.Printf("%v %d %q\n", l.Taken, l.Iterations, l.InOrder)
	}
	fmt.Println(p.Workers, err)
	// Output:
	// true 100 ""
	// false 0 "sum"
	// 100 <nil>
}

func ExampleDevice_ExplainLaunch() {
	gpu := gpukit.MustOpen("cpu")
	p, err := gpu.ExplainLaunch(axpy, gpukit.Blocks(4), gpukit.Threads(256), 2.0, gpukit.Zeros(1000), gpukit.Zeros(1000))
	fmt.Println(p.Workers, p.Grid, p.Block, err)
	for _, a := range p.Args {
		fmt.Println(a.Name, a.DType, a.Kind)
	}
	// Output:
	// 1024 (4, 1, 1) (256, 1, 1) <nil>
	// a float64 number
	// x float64 array
	// y float64 array
}

// What a block needs says how many of them a multiprocessor holds; what a card would not
// take is in the note.
func ExampleDevice_ExplainLaunch_occupancy() {
	gpu := gpukit.MustOpen("sim:quadro-k2000")
	defer gpu.Close()
	for _, n := range []int{1 << 10, 1 << 14, 1 << 16} {
		p, err := gpu.With(gpukit.SharedBytes(n)).ExplainLaunch(reverseBlock, gpukit.Blocks(4), gpukit.Threads(128), gpukit.Zeros(512))
		fmt.Println(p.Shared, p.BlocksHeld, p.Occupancy, p.Note, err)
	}
	// Output:
	// 1024 16 1  <nil>
	// 16384 3 0.1875  <nil>
	// 65536 0 0 the card refuses this launch: kernel reverseBlock: 0 bytes of static and 65536 bytes (64 KiB) of dynamic shared memory are 65536 bytes (64 KiB); Quadro K2000 takes at most 49152 bytes (48 KiB) per block <nil>
}

func ExampleOpen() {
	gpu, err := gpukit.Open("cpu")
	fmt.Println(gpu.Name(), err)
	_, err = gpukit.Open("sim:no-such-card")
	fmt.Println(err != nil)
	// Output:
	// cpu <nil>
	// true
}

func ExampleMustOpen() {
	gpu := gpukit.MustOpen("sim:tesla-t4")
	defer gpu.Close()
	fmt.Println(gpu.Name())
	// Output:
	// sim:tesla-t4
}

// Cards that every machine simulates, and whatever devices this one has.
func ExampleDevices() {
	found := map[string]bool{}
	for _, d := range gpukit.Devices() {
		found[d.Name] = true
	}
	fmt.Println(found["cpu"], found["parallel"], found["sim:a100"])
	// Output:
	// true true true
}

// In cells and loops, Must stands for the test of the error.
func ExampleMust() {
	gpu := gpukit.MustOpen("cpu")
	hot := gpukit.Must(gpu.Vectorize(celsius, []float64{32, 212}))
	fmt.Println(hot.Float64s())
	// Output:
	// [0 100]
}

// Results go into memory that exists already; y may be an argument, too.
func ExampleOut() {
	gpu := gpukit.MustOpen("cpu")
	y := gpukit.FromSlice([]float64{32, 50, 212})
	gpukit.Must(gpu.Vectorize(celsius, y, gpukit.Out(y)))
	fmt.Println(y.Float64s())
	// Output:
	// [0 10 100]
}

func ExampleBlocks() {
	fmt.Println(gpukit.Blocks(32, 8), gpukit.Blocks(100))
	// Output:
	// (32, 8, 1) (100, 1, 1)
}

// Blocks of 16 x 16 threads that cover an array of 1000 columns and 500 rows.
func ExampleThreads() {
	block := gpukit.Threads(16, 16)
	grid := gpukit.Blocks((1000+block.X-1)/block.X, (500+block.Y-1)/block.Y)
	fmt.Println(block, grid)
	// Output:
	// (16, 16, 1) (63, 32, 1)
}

// Dynamic shared memory: its size is the launch's to say.
func ExampleSharedBytes() {
	gpu := gpukit.MustOpen("sim:quadro-k2000")
	defer gpu.Close()
	x := []float64{0, 1, 2, 3, 4, 5, 6, 7}
	err := gpu.With(gpukit.SharedBytes(4*8)).Launch(reverseBlock, gpukit.Blocks(2), gpukit.Threads(4), x)
	fmt.Println(x, err)
	// Output:
	// [3 2 1 0 7 6 5 4] <nil>
}

func ExampleThreadsPerBlock() {
	gpu := gpukit.MustOpen("sim:quadro-k2000")
	defer gpu.Close()
	for _, n := range []int{64, 256} {
		p, err := gpu.With(gpukit.ThreadsPerBlock(n)).Explain(celsius, gpukit.Zeros(10000))
		fmt.Println(p.Block, p.Grid, err)
	}
	// Output:
	// (64, 1, 1) (157, 1, 1) <nil>
	// (256, 1, 1) (40, 1, 1) <nil>
}

// The grid that numba chose for its own kernel of 22 registers.
func ExampleNumbaGeometry() {
	gpu := gpukit.MustOpen("sim:quadro-k2000")
	defer gpu.Close()
	p, err := gpu.With(gpukit.NumbaGeometry(22)).Explain(celsius, gpukit.Zeros(1000, 1000))
	fmt.Println(p.Grid, p.Block, err)
	// Output:
	// (7813, 1, 1) (128, 1, 1) <nil>
}

// numba's behaviour: one worker for each slice, whatever loops the function has.
func ExampleOneWorkerPerSlice() {
	gpu := gpukit.MustOpen("parallel")
	a, x := gpukit.Zeros(100, 50), gpukit.Zeros(50)
	p := must(gpu.ExplainGU(product, "(m,n),(n)->(m)", a, x))
	q := must(gpu.With(gpukit.OneWorkerPerSlice()).ExplainGU(product, "(m,n),(n)->(m)", a, x))
	fmt.Println(p.Workers, q.Workers)
	// Output:
	// 100 1
}

func must(p *gpukit.Plan, err error) *gpukit.Plan {
	if err != nil {
		panic(err)
	}
	return p
}

// A long sum may be computed in four parts. Its last bits may then differ, but here
// every sum on the way is exact.
func ExampleFastMath() {
	gpu := gpukit.MustOpen("cpu").With(gpukit.FastMath())
	x := make([]float64, 1000)
	for i := range x {
		x[i] = float64(i)
	}
	p := must(gpu.ExplainGU(total, "(n)->()", x))
	fmt.Println(p.Loops[0].InOrder, p.Loops[0].InParts)
	fmt.Println(gpukit.Must(gpu.GUVectorize(total, "(n)->()", x)).Item())
	// Output:
	// sum true
	// 499500
}

// Only for kernels whose indices are known to fit.
func ExampleUnchecked() {
	gpu := gpukit.MustOpen("cpu").With(gpukit.Unchecked())
	y := gpukit.Must(gpu.GUVectorize(product, "(m,n),(n)->(m)", gpukit.FromSlice([][]float64{{1, 2}, {3, 4}}), []float64{1, 1}))
	fmt.Println(y.Float64s())
	// Output:
	// [3 7]
}

// Other settings, the same memory: both see x, which stays on the device.
func ExampleDevice_With() {
	gpu := gpukit.MustOpen("sim:quadro-k2000")
	defer gpu.Close()
	small := gpu.With(gpukit.ThreadsPerBlock(64))
	x, err := gpu.Put([]float64{32, 212})
	fmt.Println(gpukit.Must(small.Vectorize(celsius, x)).Float64s(), err)
	// Output:
	// [0 100] <nil>
}

func ExampleDevice_Name() {
	fmt.Println(gpukit.MustOpen("cpu").With(gpukit.FastMath()).Name())
	// Output:
	// cpu
}

// Arrays on a device are not copied for each call.
func ExampleDevice_Put() {
	gpu := gpukit.MustOpen("sim:quadro-k2000")
	defer gpu.Close()
	f, err := gpu.Put([]float64{32, 50, 212})
	c := gpukit.Must(gpu.Vectorize(celsius, f))
	fmt.Println(c.Device(), c.Host().Device(), c.Float64s(), err)
	// Output:
	// sim:quadro-k2000 host [0 10 100] <nil>
}

func ExampleDevice_Empty() {
	gpu := gpukit.MustOpen("sim:quadro-k2000")
	defer gpu.Close()
	out, err := gpu.Empty(gpukit.Float64, 3)
	fmt.Println(out.Device(), out.Float64s(), err)
	gpukit.Must(gpu.Vectorize(celsius, []float64{32, 50, 212}, gpukit.Out(out)))
	fmt.Println(out.Float64s())
	// Output:
	// sim:quadro-k2000 [0 0 0] <nil>
	// [0 10 100]
}

// Work whose arrays are all on the device may still be running when a call returns.
func ExampleDevice_Sync() {
	gpu := gpukit.MustOpen("sim:quadro-k2000")
	defer gpu.Close()
	f, err := gpu.Put([]float64{32, 50, 212})
	c := gpukit.Must(gpu.Vectorize(celsius, f))
	fmt.Println(gpu.Sync(), c.Device(), err)
	// Output:
	// <nil> sim:quadro-k2000 <nil>
}

func ExampleDevice_Close() {
	gpu := gpukit.MustOpen("sim:quadro-k2000")
	fmt.Println(gpu.Close())
	_, err := gpu.Vectorize(celsius, 212.0)
	fmt.Println(errors.Is(err, gpukit.ErrClosed))
	// Output:
	// <nil>
	// true
}

func ExampleDevice_StartTrace() {
	gpu := gpukit.MustOpen("sim:quadro-k2000")
	defer gpu.Close()
	gpu.StartTrace()
	gpukit.Must(gpu.Vectorize(celsius, gpukit.Zeros(1000)))
	for _, r := range gpu.StopTrace().Records {
		fmt.Println(r.Kind, r.Size, r.Grid, r.Block)
	}
	// Output:
	// HtoD 8000 [0 0 0] [0 0 0]
	// launch 0 [8 1 1] [128 1 1]
	// DtoH 8000 [0 0 0] [0 0 0]
}

func ExampleDevice_StopTrace() {
	gpu := gpukit.MustOpen("sim:quadro-k2000")
	defer gpu.Close()
	gpu.StartTrace()
	gpukit.Must(gpu.Vectorize(celsius, gpukit.Zeros(1000)))
	t := gpu.StopTrace()
	fmt.Println(t.Bytes(trace.HtoD), t.Bytes(trace.DtoH), t.Time(trace.Launch) > 0)
	// Output:
	// 8000 8000 true
}

func ExampleArange() {
	fmt.Println(gpukit.Arange(5).Float64s())
	// Output:
	// [0 1 2 3 4]
}

func ExampleLinspace() {
	fmt.Println(gpukit.Linspace(0, 1, 5).Float64s(), gpukit.Linspace(99, 101, 3).Float64s())
	// Output:
	// [0 0.25 0.5 0.75 1] [99 100 101]
}

func ExampleFull() {
	fmt.Println(gpukit.Full(2.5, 2, 3))
	// Output:
	// (2, 3) float64 array
	// [[2.5 2.5 2.5]
	//  [2.5 2.5 2.5]]
}

func ExampleZeros() {
	z := gpukit.Zeros(2, 3).As(gpukit.Int32)
	fmt.Println(z.Shape(), z.DType(), z.Sum())
	// Output:
	// [2 3] int32 0
}

func ExampleLike() {
	a := gpukit.FromSlice([][]int32{{1, 2}, {3, 4}})
	fmt.Println(gpukit.Like(a))
	// Output:
	// (2, 2) int32 array
	// [[0 0]
	//  [0 0]]
}

// The coordinates of all points of a grid: rows are y, columns x.
func ExampleMeshGrid() {
	x, y := gpukit.MeshGrid(gpukit.Arange(3), gpukit.Linspace(10, 20, 2))
	fmt.Println(x)
	fmt.Println(y)
	// Output:
	// (2, 3) float64 array
	// [[0 1 2]
	//  [0 1 2]]
	// (2, 3) float64 array
	// [[10 10 10]
	//  [20 20 20]]
}

func ExampleFromSlice() {
	a := gpukit.FromSlice([][]int{{1, 2, 3}, {4, 5, 6}})
	fmt.Println(a.Shape(), a.DType(), a.At(1, 2))
	// Output:
	// [2 3] int64 6
}

// The array and the slice are the same memory.
func ExampleFromFlat() {
	data := []float32{1, 2, 3, 4, 5, 6}
	a := gpukit.FromFlat(data, 2, 3)
	data[5] = 60
	fmt.Println(a)
	// Output:
	// (2, 3) float32 array
	// [[1 2 3]
	//  [4 5 60]]
}

func ExampleFromMatrix() {
	m := mat.NewDense(2, 2, []float64{1, 2, 3, 4})
	fmt.Println(gpukit.FromMatrix(m).T().Float64s())
	// Output:
	// [1 3 2 4]
}

// Solve a system of equations with gonum.
func ExampleArray_Matrix() {
	a := gpukit.FromSlice([][]float64{{2, 0}, {0, 4}})
	b := gpukit.FromSlice([][]float64{{6}, {8}})
	var x mat.Dense
	err := x.Solve(a.Matrix(), b.Matrix())
	fmt.Println(gpukit.FromMatrix(&x).Float64s(), err)
	// Output:
	// [3 2] <nil>
}

func ExampleArray_As() {
	a := gpukit.FromSlice([]float64{1.9, -1.9, 300, math.NaN()})
	fmt.Println(a.As(gpukit.Int8).Float64s(), a.As(gpukit.Bool).Float64s())
	// Output:
	// [1 -1 127 0] [1 1 1 1]
}

func ExampleArray_At() {
	a := gpukit.Arange(6).Reshape(2, 3)
	fmt.Println(a.At(0, 2), a.At(1, 0))
	// Output:
	// 2 3
}

func ExampleArray_Item() {
	gpu := gpukit.MustOpen("cpu")
	fmt.Println(gpukit.Must(gpu.Vectorize(celsius, 212.0)).Item())
	// Output:
	// 100
}

// A column for each row of a table.
func ExampleArray_BroadcastTo() {
	column := gpukit.FromSlice([]float64{10, 20}).Reshape(2, 1)
	fmt.Println(column.BroadcastTo(2, 3))
	// Output:
	// (2, 3) float64 array
	// [[10 10 10]
	//  [20 20 20]]
}

func ExampleArray_Reshape() {
	a := gpukit.Arange(6)
	fmt.Println(a.Reshape(2, 3).Shape(), a.Reshape(3, -1).Shape(), a.Reshape(2, 3).Reshape(-1).Shape())
	// Output:
	// [2 3] [3 2] [6]
}

// Every second element, the last three, and all of them from the end.
func ExampleArray_Slice() {
	a := gpukit.Arange(6)
	fmt.Println(a.Slice(0, 0, 6, 2).Float64s())
	fmt.Println(a.Slice(0, -3, 6, 1).Float64s())
	fmt.Println(a.Slice(0, 5, -7, -1).Float64s())
	// Output:
	// [0 2 4]
	// [3 4 5]
	// [5 4 3 2 1 0]
}

func ExampleArray_T() {
	a := gpukit.Arange(24).Reshape(2, 3, 4)
	fmt.Println(a.T().Shape(), a.T(1, 0, 2).Shape(), a.T(1, 0, 2).At(2, 1, 3))
	// Output:
	// [4 3 2] [3 2 4] 23
}

func ExampleArray_Shape() {
	fmt.Println(gpukit.Zeros(2, 3).Shape(), gpukit.Full(1).Shape())
	// Output:
	// [2 3] []
}

func ExampleArray_NDim() {
	fmt.Println(gpukit.Zeros(2, 3).NDim(), gpukit.Full(1).NDim())
	// Output:
	// 2 0
}

func ExampleArray_Size() {
	fmt.Println(gpukit.Zeros(2, 3).Size(), gpukit.Full(1).Size(), gpukit.Zeros(2, 0).Size())
	// Output:
	// 6 1 0
}

func ExampleArray_DType() {
	fmt.Println(gpukit.FromSlice([]int{1}).DType(), gpukit.Arange(3).DType())
	// Output:
	// int64 float64
}

func ExampleDType_Size() {
	fmt.Println(gpukit.Float32.Size(), gpukit.Int64.Size(), gpukit.Bool.Size())
	// Output:
	// 4 8 1
}

func ExampleArray_Float64s() {
	fmt.Println(gpukit.FromSlice([][]bool{{true, false}, {true, true}}).T().Float64s())
	// Output:
	// [1 1 0 1]
}

func ExampleArray_Sum() {
	fmt.Println(gpukit.Arange(1001).Sum(), gpukit.Zeros(0).Sum())
	// Output:
	// 500500 0
}

func ExampleArray_Min() {
	fmt.Println(gpukit.FromSlice([]float64{3, -1, 2}).Min(), gpukit.FromSlice([]float64{3, math.NaN()}).Min())
	// Output:
	// -1 NaN
}

func ExampleArray_Max() {
	fmt.Println(gpukit.FromSlice([]int{3, -1, 2}).Max(), gpukit.FromSlice([]float64{3, math.NaN()}).Max())
	// Output:
	// 3 NaN
}

// The point of a grid that is nearest to a place.
func ExampleArray_ArgMin() {
	gpu := gpukit.MustOpen("cpu")
	lons, lats := gpukit.Linspace(99, 101, 201), gpukit.Linspace(29, 31, 201)
	lon, lat := gpukit.MeshGrid(lons, lats)
	at := gpukit.Must(gpu.Vectorize(haversine, lat, lon, 29.654, 100.123)).ArgMin()
	fmt.Println(at, lats.At(at[0]), lons.At(at[1]))
	// Output:
	// [65 112] 29.65 100.12
}

// Sums of the columns, and of the rows.
func ExampleArray_Reduce() {
	a := gpukit.FromSlice([][]float64{{1, 2, 3}, {10, 20, 30}})
	fmt.Println(a.Reduce(0).Float64s(), a.Reduce(1).Float64s())
	// Output:
	// [11 22 33] [6 60]
}

func ExampleArray_Device() {
	gpu := gpukit.MustOpen("sim:quadro-k2000")
	defer gpu.Close()
	a, err := gpu.Put([]float64{1, 2})
	fmt.Println(a.Device(), a.Host().Device(), err)
	// Output:
	// sim:quadro-k2000 host <nil>
}

// A copy that outlives the device.
func ExampleArray_Host() {
	gpu := gpukit.MustOpen("sim:quadro-k2000")
	a, err := gpu.Put([]float64{1, 2})
	h := a.Host()
	gpu.Close()
	fmt.Println(h.Float64s(), err)
	// Output:
	// [1 2] <nil>
}

// Memory of a device can be given back before its array is garbage.
func ExampleArray_Free() {
	gpu := gpukit.MustOpen("sim:quadro-k2000")
	defer gpu.Close()
	for i := 0; i < 3; i++ {
		a, err := gpu.Put(gpukit.Full(float64(i), 1000))
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(a.Sum())
		a.Free()
	}
	// Output:
	// 0
	// 1000
	// 2000
}
