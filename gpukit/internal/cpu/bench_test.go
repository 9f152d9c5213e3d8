package cpu

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"gpunotes/gpukit/internal/frontend"
	"gpunotes/gpukit/internal/ir"
	"gpunotes/gpukit/internal/ir/irtest"
)

// distance is the function of the mesh experiment, with its helper inlined.
func distance() *ir.Func {
	f := ir.NewFunc("dist", ir.F64)
	lat1, lon1 := f.AddParam("lat1", ir.F64), f.AddParam("lon1", ir.F64)
	lat2, lon2 := f.AddParam("lat2", ir.F64), f.AddParam("lon2", ir.F64)
	s := f.AddParam("s", ir.F64)
	b := ir.NewBuilder(f)
	fn := func(name string, args ...ir.Value) ir.Value {
		m, ok := ir.LookupMath(name)
		if !ok {
			panic(name)
		}
		return b.Math(m, args...)
	}
	half, rad := b.Const(ir.F64, ir.FromF64(0.008726645)), b.Const(ir.F64, ir.FromF64(0.01745329))
	sine := func(x, y ir.Value) ir.Value {
		v := fn("math.Sin", b.Op(ir.OpMul, half, b.Op(ir.OpSub, y, x)))
		return b.Op(ir.OpMul, v, v)
	}
	c := b.Op(ir.OpMul, fn("math.Cos", b.Op(ir.OpMul, rad, lat1)), fn("math.Cos", b.Op(ir.OpMul, rad, lat2)))
	a := b.Op(ir.OpAdd, sine(lat1, lat2), b.Op(ir.OpMul, c, sine(lon1, lon2)))
	one := b.Const(ir.F64, ir.FromF64(1))
	b.Yield(b.Op(ir.OpMul, fn("math.Atan2", a, b.Op(ir.OpSub, one, a)), s))
	return f
}

func distGo(lat1, lon1, lat2, lon2, s float64) float64 {
	sq := func(x float64) float64 { return float64(x * x) }
	a := sq(math.Sin(0.008726645*(lat2-lat1))) +
		float64(math.Cos(0.01745329*lat1)*math.Cos(0.01745329*lat2)*sq(math.Sin(0.008726645*(lon2-lon1))))
	return math.Atan2(a, 1-a) * s
}

// ratio runs engine and native turn by turn and reports the median of the
// quotients of their times, and both per worker.
func ratio(b *testing.B, n int, engine, native func()) {
	engine()
	native()
	var q, e, g []float64
	for b.Loop() {
		t0 := time.Now()
		engine()
		t1 := time.Now()
		native()
		t2 := time.Now()
		e, g = append(e, float64(t1.Sub(t0))/float64(n)), append(g, float64(t2.Sub(t1))/float64(n))
		q = append(q, float64(t1.Sub(t0))/float64(t2.Sub(t1)))
	}
	median := func(x []float64) float64 { slices.Sort(x); return x[len(x)/2] }
	b.ReportMetric(median(q), "engine/Go")
	b.ReportMetric(median(e), "engine-ns/worker")
	b.ReportMetric(median(g), "Go-ns/worker")
}

func floats64(n int, f func(i int) float64) []float64 {
	x := make([]float64, n)
	for i := range x {
		x[i] = f(i)
	}
	return x
}

func flat(data any, t ir.Type) Operand { return Operand{Type: t, Data: data, Strides: []int{1}} }

func scalarF64(x float64) Operand { return Operand{Type: ir.F64, Scalar: ir.FromF64(x)} }

func mustRun(b *testing.B, p *Program, l Launch) {
	if err := p.Run(l); err != nil {
		b.Fatal(err)
	}
}

func BenchmarkDistance(b *testing.B) {
	const n = 1_000_000
	lat := floats64(n, func(i int) float64 { return 29 + 2*float64(i/1000)/999 })
	lon := floats64(n, func(i int) float64 { return 99 + 2*float64(i%1000)/999 })
	out, outGo := make([]float64, n), make([]float64, n)
	result := []Operand{flat(out, ir.F64)}
	b.Run("2arrays", func(b *testing.B) {
		each(b, distance(), func(b *testing.B, p *Program) {
			l := Launch{Shape: []int{n}, In: []Operand{flat(lat, ir.F64), flat(lon, ir.F64), scalarF64(30), scalarF64(101), scalarF64(1)}, Out: result, Goroutines: 1}
			ratio(b, n, func() { mustRun(b, p, l) }, func() {
				for i := range outGo {
					outGo[i] = distGo(lat[i], lon[i], 30, 101, 1)
				}
			})
		})
	})
	b.Run("5arrays", func(b *testing.B) {
		each(b, distance(), func(b *testing.B, p *Program) {
			lat2, lon2, s := floats64(n, func(i int) float64 { return 30 + float64(i%7) }), floats64(n, func(i int) float64 { return 101 - float64(i%5) }), floats64(n, func(int) float64 { return 1 })
			l := Launch{Shape: []int{n}, In: []Operand{flat(lat, ir.F64), flat(lon, ir.F64), flat(lat2, ir.F64), flat(lon2, ir.F64), flat(s, ir.F64)}, Out: result, Goroutines: 1}
			ratio(b, n, func() { mustRun(b, p, l) }, func() {
				for i := range outGo {
					outGo[i] = distGo(lat[i], lon[i], lat2[i], lon2[i], s[i])
				}
			})
		})
	})
	b.Run("mesh", func(b *testing.B) {
		each(b, distance(), func(b *testing.B, p *Program) { // lat and lon as views of their axes
			latAxis, lonAxis := lat[:0:0], lon[:1000]
			for i := 0; i < n; i += 1000 {
				latAxis = append(latAxis, lat[i])
			}
			l := Launch{Shape: []int{1000, 1000}, Goroutines: 1, In: []Operand{{Type: ir.F64, Data: latAxis, Strides: []int{1, 0}}, {Type: ir.F64, Data: lonAxis, Strides: []int{0, 1}}, scalarF64(30), scalarF64(101), scalarF64(1)},
				Out: []Operand{{Type: ir.F64, Data: out, Strides: []int{1000, 1}}}}
			ratio(b, n, func() { mustRun(b, p, l) }, func() {
				for i := range outGo {
					outGo[i] = distGo(lat[i], lon[i], 30, 101, 1)
				}
			})
		})
	})
}

func BenchmarkMandelbrot(b *testing.B) {
	const side = 300
	const n = side * side
	x, y := floats64(n, func(i int) float64 { return -2 + 2.5*float64(i%side)/side }), floats64(n, func(i int) float64 { return -1.25 + 2.5*float64(i/side)/side })
	out, outGo := make([]int64, n), make([]int64, n)
	l := Launch{Shape: []int{n}, In: []Operand{flat(x, ir.F64), flat(y, ir.F64), {Type: ir.I64, Scalar: 200}}, Out: []Operand{flat(out, ir.I64)}, Goroutines: 1}
	each(b, irtest.Mandelbrot(), func(b *testing.B, p *Program) {
		ratio(b, n, func() { mustRun(b, p, l) }, func() {
			for i := range outGo {
				outGo[i] = irtest.MandelbrotGo(x[i], y[i], 200)
			}
		})
	})
}

func BenchmarkMultiply(b *testing.B) {
	for _, n := range []int{1000, 200_000, 2_000_000, 20_000_000} {
		x, y := floats64(n, func(i int) float64 { return float64(i) }), floats64(n, func(i int) float64 { return float64(n - i) })
		out, outGo := make([]float64, n), make([]float64, n)
		for _, g := range []int{1, 2} {
			b.Run(fmt.Sprintf("%d/%d", n, g), func(b *testing.B) {
				each(b, product2(), func(b *testing.B, p *Program) {
					l := Launch{Shape: []int{n}, In: []Operand{flat(x, ir.F64), flat(y, ir.F64)}, Out: []Operand{flat(out, ir.F64)}, Goroutines: g}
					ratio(b, n, func() { mustRun(b, p, l) }, func() {
						for i := range outGo {
							outGo[i] = x[i] * y[i]
						}
					})
				})
			})
		}
	}
}

func product2() *ir.Func {
	f := ir.NewFunc("mul", ir.F64)
	u, v := f.AddParam("a", ir.F64), f.AddParam("b", ir.F64)
	b := ir.NewBuilder(f)
	b.Yield(b.Op(ir.OpMul, u, v))
	return f
}

// BenchmarkTen is a warm call on ten workers.
func BenchmarkTen(b *testing.B) {
	x := floats64(10, func(i int) float64 { return 30 + float64(i) })
	out := make([]float64, 10)
	l := Launch{Shape: []int{10}, In: []Operand{flat(x, ir.F64), flat(x, ir.F64), scalarF64(30), scalarF64(101), scalarF64(1)}, Out: []Operand{flat(out, ir.F64)}, Goroutines: 2}
	each(b, distance(), func(b *testing.B, p *Program) {
		b.ReportAllocs()
		for b.Loop() {
			mustRun(b, p, l)
		}
	})
}

// each runs a benchmark on every engine.
func each(b *testing.B, f *ir.Func, run func(b *testing.B, p *Program)) {
	for _, e := range Engines() {
		b.Run(e.String(), func(b *testing.B) {
			p, err := Compile(ir.Optimize(f), Options{Engine: e, Body: frontend.OutlinedBody})
			if err != nil {
				b.Fatal(err)
			}
			run(b, p)
		})
	}
}

// BenchmarkPlan makes the block program of a new kind of call.
func BenchmarkPlan(b *testing.B) {
	p := compile(b, distance())
	classes := []class{perRow, perLane | ragged, 0, 0, 0}
	b.ReportAllocs()
	for b.Loop() {
		newPlan(p, classes)
	}
}

// BenchmarkSlices is a product of 2 million elements as loops over slices.
func BenchmarkSlices(b *testing.B) {
	const n = 2_000_000
	f := ir.Optimize(product())
	p := compile(b, f)
	x, y := floats64(n, func(i int) float64 { return float64(i) }), floats64(n, func(i int) float64 { return float64(n - i) })
	out, outGo := make([]float64, n), make([]float64, n)
	for _, workers := range []int{1, 100, 4000, n} {
		b.Run(fmt.Sprint(workers), func(b *testing.B) {
			l := slicesOf(f, n, workers, x, y, out)
			ratio(b, n, func() { mustRun(b, p, l) }, func() {
				for i := range outGo {
					outGo[i] = x[i] * y[i]
				}
			})
		})
	}
}

func BenchmarkReduction(b *testing.B) {
	const n = 2_000_000
	f := ir.Optimize(reduction())
	p := compile(b, f)
	x := floats64(n, func(i int) float64 { return float64(i % 97) })
	for _, threads := range []int{32, 256, 1024} {
		b.Run(fmt.Sprint(threads), func(b *testing.B) {
			out, sum := []float64{0}, 0.0
			l := grid2(f, [2]int{n / threads / 8, 1}, [2]int{threads, 1}, [][]int{{n}, {1}})
			l.Mems, l.Goroutines, l.DynamicShared = []any{x, out}, 1, threads
			ratio(b, n, func() { mustRun(b, p, l) }, func() {
				for _, v := range x {
					sum += v
				}
			})
		})
	}
}

func BenchmarkMatrixProduct(b *testing.B) {
	const n = 256
	f := ir.Optimize(tiled(16))
	p := compile(b, f)
	x, y, out := make([]float32, n*n), make([]float32, n*n), make([]float32, n*n)
	l := grid2(f, [2]int{n / 16, n / 16}, [2]int{16, 16}, [][]int{{n, n}, {n, n}, {n, n}})
	l.Mems, l.Goroutines = []any{x, y, out}, 1
	ratio(b, n*n*n, func() { mustRun(b, p, l) }, func() {
		for i := range n {
			for j := range n {
				var s float32
				for k := range n {
					s += float32(x[i*n+k] * y[k*n+j])
				}
				out[i*n+j] = s
			}
		}
	})
}

func BenchmarkHistogram(b *testing.B) {
	const n = 2_000_000
	f := histogram()
	x, bins := make([]uint8, n), make([]int32, 256)
	for i := range x {
		x[i] = uint8(i * i / 7)
	}
	l := grid2(f, [2]int{100, 1}, [2]int{256, 1}, [][]int{{n}, {256}})
	l.Mems, l.Goroutines = []any{x, bins}, 1
	each(b, f, func(b *testing.B, p *Program) {
		ratio(b, n, func() { mustRun(b, p, l) }, func() {
			for _, v := range x {
				bins[v]++
			}
		})
	})
}
