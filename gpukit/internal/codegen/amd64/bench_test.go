package amd64_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"gpunotes/gpukit/internal/codegen/amd64"
	"gpunotes/gpukit/internal/cpu"
	"gpunotes/gpukit/internal/ir"
	"gpunotes/gpukit/internal/ir/irtest"
)

// BenchmarkMandelbrot runs 1e5 points, at most 200 iterations each, by turns
// in machine code, in the portable engine and in Go.
func BenchmarkMandelbrot(b *testing.B) {
	const n = 100_000
	x, y, out := make([]float64, n), make([]float64, n), make([]int64, n)
	for i := range n {
		x[i], y[i] = -2+2.5*float64(i%400)/400, -1.25+2.5*float64(i/400)/250
	}
	f := ir.Optimize(irtest.Mandelbrot())
	type contender struct {
		name string
		run  func()
	}
	cs := []contender{{"Go", func() {
		for i := range n {
			out[i] = irtest.MandelbrotGo(x[i], y[i], 200)
		}
	}}}
	p, err := cpu.Compile(f)
	if err != nil {
		b.Fatal(err)
	}
	l := cpu.Launch{Shape: []int{n}, Goroutines: 1,
		In:  []cpu.Operand{{Type: ir.F64, Data: x, Strides: []int{1}}, {Type: ir.F64, Data: y, Strides: []int{1}}, {Type: ir.I64, Scalar: 200}},
		Out: []cpu.Operand{{Type: ir.I64, Data: out, Strides: []int{1}}}}
	cs = append(cs, contender{"portable", func() {
		if err := p.Run(l); err != nil {
			b.Fatal(err)
		}
	}})
	for _, t := range targets(b) {
		m := load(b, f, t, []bool{false, false, true})
		cs = append(cs, contender{t.String(), func() {
			if err := m.Run(n, []any{x, y, []int64{200}}, []any{out}, nil); err != nil {
				b.Fatal(err)
			}
		}})
	}
	turns(b, n, cs, func(c contender) (string, func()) { return c.name, c.run })
}

// BenchmarkPolynomial is a polynomial of degree 16 on 1e5 numbers.
func BenchmarkPolynomial(b *testing.B) {
	const n, degree = 100_000, 16
	f := ir.NewFunc("polynomial", ir.F64)
	x := f.AddParam("x", ir.F64)
	bb := ir.NewBuilder(f)
	y := x
	for k := range degree {
		y = bb.Op(ir.OpAdd, bb.Op(ir.OpMul, y, x), bb.Const(ir.F64, f64(1/float64(k+1))))
	}
	bb.Yield(y)
	xs, out := make([]float64, n), make([]float64, n)
	for i := range xs {
		xs[i] = float64(i) / n
	}
	type contender struct {
		name string
		run  func()
	}
	cs := []contender{{"Go", func() {
		for i, x := range xs {
			y := x
			for k := range degree {
				y = float64(y*x) + coefficients[k]
			}
			out[i] = y
		}
	}}}
	for _, t := range targets(b) {
		m := load(b, f, t, nil)
		cs = append(cs, contender{t.String(), func() {
			if err := m.Run(n, []any{xs}, []any{out}, nil); err != nil {
				b.Fatal(err)
			}
		}})
	}
	turns(b, n, cs, func(c contender) (string, func()) { return c.name, c.run })
}

var coefficients = func() (c [16]float64) {
	for k := range c {
		c[k] = 1 / float64(k+1)
	}
	return c
}()

// turns runs contenders one after another and reports the medians.
func turns[C any](b *testing.B, n int, cs []C, of func(C) (string, func())) {
	times := make([][]float64, len(cs))
	for b.Loop() {
		for i, c := range cs {
			_, run := of(c)
			start := time.Now()
			run()
			times[i] = append(times[i], float64(time.Since(start))/float64(n))
		}
	}
	for i, c := range cs {
		name, _ := of(c)
		slices.Sort(times[i])
		b.ReportMetric(times[i][len(times[i])/2], name+"-ns/worker")
	}
}

func BenchmarkCompile(b *testing.B) {
	for _, t := range []amd64.Target{amd64.AVX2, amd64.AVX512} {
		for _, f := range []*ir.Func{ir.Optimize(irtest.Mandelbrot()), ir.Optimize(search())} {
			b.Run(fmt.Sprint(t, "/", f.Name), func(b *testing.B) {
				for b.Loop() {
					if _, err := amd64.Compile(f, t, amd64.Options{}); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

// BenchmarkTen is a warm run of ten workers: what a call costs.
func BenchmarkTen(b *testing.B) {
	x, out := make([]float64, 10), make([]float64, 10)
	f := ir.NewFunc("double", ir.F64)
	v := f.AddParam("x", ir.F64)
	bb := ir.NewBuilder(f)
	bb.Yield(bb.Op(ir.OpAdd, v, v))
	for _, t := range targets(b) {
		m := load(b, f, t, nil)
		in, o := []any{x}, []any{out}
		b.Run(t.String(), func(b *testing.B) {
			for b.Loop() {
				if err := m.Run(10, in, o, nil); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
