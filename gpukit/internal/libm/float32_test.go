package libm

import (
	"math"
	"math/rand/v2"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
)

type float32Func struct {
	name   string
	single func(float32) float32
	double func(float64) float64
}

var float32Funcs = []float32Func{
	{"Sin", SinF32, Sin}, {"Cos", CosF32, Cos}, {"Tan", TanF32, Tan}, {"Atan", AtanF32, Atan},
	{"Exp", ExpF32, Exp}, {"Exp2", Exp2F32, Exp2}, {"Tanh", TanhF32, Tanh},
	{"Sqrt", func(x float32) float32 { return float32(math.Sqrt(float64(x))) }, math.Sqrt}, // the first is an instruction for float32
	{"Log", LogF32, Log}, {"Log2", Log2F32, Log2}, {"Log10", Log10F32, Log10}, {"Cbrt", CbrtF32, Cbrt},
}

// TestFloat32 compares each function with the one of float64, bit for bit: on
// every 4099th float32 and those around them where they are dense in special
// ones, or on all of them if GPUNOTES_FLOAT32 says so (make test-float32).
func TestFloat32(t *testing.T) {
	all := os.Getenv("GPUNOTES_FLOAT32") == "all"
	for _, f := range float32Funcs {
		t.Run(f.name, func(t *testing.T) {
			check := func(b uint32) bool {
				x := math.Float32frombits(b)
				got, want := f.single(x), float32(f.double(float64(x)))
				return math.Float32bits(got) == math.Float32bits(want) || got != got && want != want
			}
			if !all {
				for i := range uint32(1 << 20) {
					for _, b := range []uint32{i * 4099, i % 4096, 1<<31 | i%4096, math.Float32bits(1) - 2048 + i%4096} {
						if !check(b) {
							t.Fatalf("%sF32(%v) is not float32(%s)", f.name, math.Float32frombits(b), f.name)
						}
					}
				}
				return
			}
			var next atomic.Uint64
			var wait sync.WaitGroup
			for range runtime.NumCPU() {
				wait.Go(func() {
					for {
						from := next.Add(1<<20) - 1<<20
						if from >= 1<<32 || t.Failed() {
							return
						}
						for i := range uint64(1 << 20) {
							if b := uint32(from + i); !check(b) {
								t.Errorf("%sF32(%v) is not float32(%s)", f.name, math.Float32frombits(b), f.name)
								return
							}
						}
					}
				})
			}
			wait.Wait()
		})
	}
}

// TestFloat32Margin: what decides is well within the error that undecided allows
// for, 2^-43.
func TestFloat32Margin(t *testing.T) {
	for _, c := range []struct {
		name   string
		lo, hi float64
		short  func(x float64) float64
		double func(float64) float64
	}{
		{"sin", -0.7854, 0.7854, shortSin, Sin},
		{"cos", -0.7854, 0.7854, shortCos, Cos},
		{"expm1", -0.3466, 0.3466, func(r float64) float64 { return r * shortExpm1(r) }, Expm1},
		{"log", 0.5, 2, func(x float64) float64 { k, l := shortLog(x); return math.FMA(k, shortLn2, l) }, Log},
		{"atan", 0, 20, func(x float64) float64 { return shortAtan(x, 1) }, Atan},
	} {
		r := rand.New(rand.NewPCG(1, 2))
		for range 200000 {
			x := float64(float32(c.lo + float64((c.hi-c.lo)*r.Float64())))
			if x == 0 {
				continue
			}
			got, want := c.short(x), c.double(x)
			if off := math.Abs(got-want) / math.Abs(want); !(off < 0x1p-46) && got != want {
				t.Fatalf("%s(%v) is off by 2^%.1f", c.name, x, math.Log2(off))
			}
		}
	}
}

var float32Pairs = []struct {
	name   string
	single func(x, y float32) float32
	double func(x, y float64) float64
}{{"Pow", PowF32, Pow}, {"Atan2", Atan2F32, Atan2}, {"Hypot", HypotF32, Hypot}}

func TestFloat32Pairs(t *testing.T) {
	special := []float32{0, float32(math.Copysign(0, -1)), 1, -1, 2, -2, 3, 0.5, 1e-30, -1e-30, 1e-45, 1e30, math.MaxFloat32,
		float32(math.Inf(1)), float32(math.Inf(-1)), float32(math.NaN())}
	r := rand.New(rand.NewPCG(3, 4))
	for _, f := range float32Pairs {
		compare := func(x, y float32) {
			got, want := f.single(x, y), float32(f.double(float64(x), float64(y)))
			if math.Float32bits(got) != math.Float32bits(want) && (got == got || want == want) {
				t.Errorf("%sF32(%v, %v) = %v, not %v", f.name, x, y, got, want)
			}
		}
		for _, x := range special {
			for _, y := range special {
				compare(x, y)
			}
		}
		for range 300000 {
			compare(math.Float32frombits(r.Uint32()), math.Float32frombits(r.Uint32()))
			compare(float32(10*r.Float64()), float32(float64(20*r.Float64())-10))
			compare(float32(r.IntN(5000)), float32(r.IntN(4))) // exact, and ties
		}
	}
}

func BenchmarkFloat32(b *testing.B) {
	xs := make([]float32, 1024)
	r := rand.New(rand.NewPCG(5, 6))
	for i := range xs {
		xs[i] = float32(10 * r.Float64())
	}
	for _, f := range float32Funcs {
		b.Run(f.name+"/short", func(b *testing.B) {
			for i := range b.N {
				xs[0] = f.single(xs[i&1022+1])
			}
		})
		b.Run(f.name+"/double", func(b *testing.B) {
			for i := range b.N {
				xs[0] = float32(f.double(float64(xs[i&1022+1])))
			}
		})
	}
}
