package gpukit

import (
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"
	"reflect"
	"testing"

	"gpunotes/gpukit/internal/ir"
	"gpunotes/gpukit/internal/libm"
	"gpunotes/gpukit/simt"
)

// The functions that are compared with themselves as compiled Go. A product
// that feeds a sum is written float64(x*y), so that the Go compiler may not
// fuse it either.

func sq(x float64) float64 { return float64(x * x) }

func dist(lat1, lon1, lat2, lon2, s float64) float64 {
	a := sq(math.Sin(0.008726645*(lat2-lat1))) +
		float64(math.Cos(0.01745329*lat1)*math.Cos(0.01745329*lat2)*sq(math.Sin(0.008726645*(lon2-lon1))))
	return math.Atan2(a, 1-a) * s
}

// distNative is dist as compiled Go: what a kernel calls math.Sin is libm.Sin.
func distNative(lat1, lon1, lat2, lon2, s float64) float64 {
	a := sq(libm.Sin(0.008726645*(lat2-lat1))) +
		float64(libm.Cos(0.01745329*lat1)*libm.Cos(0.01745329*lat2)*sq(libm.Sin(0.008726645*(lon2-lon1))))
	return libm.Atan2(a, 1-a) * s
}

func mandelbrot(cx, cy float64) int {
	x, y := 0.0, 0.0
	for n := 0; n < 200; n++ {
		xx, yy := float64(x*x), float64(y*y)
		if xx+yy > 4 {
			return n
		}
		x, y = xx-yy+cx, float64(2*x*y)+cy
	}
	return 200
}

func gcd(a, b int64) int64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

func isPrime(n int32) bool {
	if n < 2 {
		return false
	}
	for d := int32(2); d <= n/d && d < 1000; d++ {
		if n%d == 0 {
			return false
		}
	}
	return true
}

// grade has every kind of switch.
func grade(x float64, k uint8) int {
	r := 0
	switch {
	case x != x:
		return -1
	case x < -1, x > 1:
		r = 10
	case x == 0:
		r = 20
		fallthrough
	default:
		r++
	}
	switch k % 5 {
	case 0, 1:
		r += 100
	case 2:
		if x > 0 {
			break
		}
		r += 200
	default:
		r += int(k)
	}
	return r
}

// search leaves two loops at once.
func search(limit int, x float64) (where int) {
	where = -1
outer:
	for i := range 20 {
		for j := i; j < 20; j++ {
			if j == limit%20 {
				continue outer
			}
			if math.Sin(float64(float64(i)*x)+float64(j)) > 0.99 {
				where = 20*i + j
				break outer
			}
		}
	}
	return
}

func wrap8(a, b int8) int8 { return a*b + a - b<<1 }

func bitmix(x uint32, n uint) uint32 {
	x ^= x << (n % 40)
	x ^= x >> 17
	x &^= 0x1000
	return x | 1
}

func mixed(a float32, b int16, c bool, d uint64) float32 {
	if c && a > float32(b) || d > 1<<63 {
		return min(a, float32(b)) / 3
	}
	return max(a, float32(b)) + float32(d)
}

type celsius float64

func (c celsius) String() string { return fmt.Sprint(float64(c), " C") }

func fahrenheit(c celsius) float64 { return float64(float64(c)*9/5) + 32 }

func newton(x float64) float64 {
	if x < 0 {
		return math.NaN()
	}
	y := x
	for y > 0 && math.Abs(float64(y*y)-x) > 1e-10*x {
		prev := y
		y = (y + x/y) / 2
		if y == prev {
			break
		}
	}
	return y
}

func parts(x float64) (whole, frac float64) { return math.Modf(x) }

func useParts(x, y float64) float64 {
	w, f := parts(x)
	_, e := math.Frexp(y)
	s, c := math.Sincos(f)
	return w + float64(s*c) + float64(e)
}

func usePartsNative(x, y float64) float64 {
	w, f := math.Modf(x)
	_, e := math.Frexp(y)
	s, c := libm.Sincos(f)
	return w + float64(s*c) + float64(e)
}

func constant7() float64 { return 7 }

var conformance = []any{
	sq, dist, mandelbrot, gcd, isPrime, grade, search, wrap8, bitmix, mixed, fahrenheit, newton, useParts,
	simt.UniformFloat64, bits.OnesCount64, bits.RotateLeft32,
	math.Sin, math.Atan2, math.Sqrt, math.Pow, math.Float64bits, math.IsNaN, math.Max, math.Hypot,
	cRotated, cSwapped,
}

// meanings are the oracles of the functions that use libm in a kernel and package
// math as compiled Go.
var meanings = map[string]any{
	"dist": distNative, "useParts": usePartsNative,
	"math.Sin": libm.Sin, "math.Atan2": libm.Atan2, "math.Pow": libm.Pow, "math.Hypot": libm.Hypot,
}

// inputs returns n values of type t, special ones first.
func inputs(r *rand.Rand, t reflect.Type, n int) reflect.Value {
	s := reflect.MakeSlice(reflect.SliceOf(t), n, n)
	for i := range n {
		v := s.Index(i)
		special := i < 64 && r.IntN(3) > 0
		switch {
		case t.Kind() == reflect.Bool:
			v.SetBool(r.IntN(2) == 0)
		case v.CanFloat():
			f := r.NormFloat64() * 3
			if special {
				f = []float64{0, math.Copysign(0, -1), 1, -1, 0.5, math.Inf(1), math.Inf(-1), math.NaN(), 1e300, -1e-310, 5e-324, math.MaxFloat64, 1 << 53, 3, 100.25}[r.IntN(15)]
			}
			v.SetFloat(f)
		case v.CanInt():
			x := int64(r.IntN(401) - 200)
			if special {
				x = []int64{0, 1, -1, math.MaxInt64, math.MinInt64, math.MaxInt32, math.MinInt32, 127, -128, 2, 3}[r.IntN(11)]
			}
			v.SetInt(x)
		case v.CanUint():
			x := r.Uint64() >> r.IntN(64)
			if special {
				x = []uint64{0, 1, math.MaxUint64, 1 << 63, 255, 254, 31, 32, 33, 63, 64}[r.IntN(11)]
			}
			v.SetUint(x)
		}
	}
	return s
}

// Carried values of a loop that change places.

func cRotated(x float64, n uint8) float64 {
	a, b, c := x, 2.0, 3.0
	for i := uint8(0); i < n%7; i++ {
		a, b, c = b, c, a
	}
	return float64(a*100) + float64(b*10) + c
}

func cSwapped(x, y int32, n uint8) int32 {
	p, q := x > y, x < 0
	for n > 3 {
		x, y = y, x
		p, q = q, p
		n -= 3
	}
	if p {
		return x
	}
	return x*3 - y
}

func TestVectorizeMatchesNativeGo(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for _, e := range engines {
		name, d := e.name, e.open()
		for _, fn := range conformance {
			f := reflect.ValueOf(fn)
			if m, ok := meanings[nameOf(d, fn)]; ok {
				f = reflect.ValueOf(m)
			}
			for _, n := range []int{0, 1, 2, 63, 64, 257, 5000} {
				var args []any
				var columns []reflect.Value
				for i := range f.Type().NumIn() {
					c := inputs(r, f.Type().In(i), n)
					columns = append(columns, c)
					args = append(args, c.Interface())
				}
				out, err := d.Vectorize(fn, args...)
				if err != nil {
					t.Errorf("%s: %v", name, err)
					break
				}
				for k := range n {
					in := make([]reflect.Value, len(columns))
					for i := range in {
						in[i] = columns[i].Index(k)
					}
					want := bitsOf(f.Call(in)[0])
					got := out.store.bits(k)
					rt := out.DType().ir()
					if ir.Canonical(rt, got) != ir.Canonical(rt, want) {
						t.Fatalf("%s: %T %s(%v) = %s, native Go says %s", name, fn, nameOf(d, fn), in, ir.FormatBits(rt, got), ir.FormatBits(rt, want))
					}
				}
			}
		}
	}
}

func nameOf(d *Device, fn any) string {
	f, err := d.function(fn)
	if err != nil {
		return err.Error()
	}
	return f.name
}

// Every view of the same numbers gives the same results.
func TestVectorizeViews(t *testing.T) {
	d := MustOpen("parallel")
	add := func(x, y float64) float64 { return x - float64(2*y) }
	r := rand.New(rand.NewPCG(7, 8))
	for range 300 {
		dims := make([]int, r.IntN(4))
		for i := range dims {
			dims[i] = []int{0, 1, 1, 2, 3, 5, 40}[r.IntN(7)]
		}
		x, y := randomView(r, dims), randomView(r, dims)
		got, err := d.Vectorize(add, x, y)
		if err != nil {
			t.Fatal(err)
		}
		xs, ys := x.BroadcastTo(got.Shape()...).Float64s(), y.BroadcastTo(got.Shape()...).Float64s()
		gs := got.Float64s()
		for i := range gs {
			if want := add(xs[i], ys[i]); gs[i] != want {
				t.Fatalf("shapes %v, %v strides %v, %v: element %d is %v, want %v", x.shape, y.shape, x.strides, y.strides, i, gs[i], want)
			}
		}
	}
}

// randomView makes an array that broadcasts to dims: transposed, sliced,
// reversed, generated, missing dimensions or with some of size 1.
func randomView(r *rand.Rand, dims []int) *Array {
	d := append([]int{}, dims[r.IntN(len(dims)+1):]...)
	for i := range d {
		if r.IntN(4) == 0 {
			d[i] = 1
		}
	}
	n := len(d)
	rev := make([]int, n)
	for i := range d {
		rev[i] = d[n-1-i]
	}
	switch size := sizeOf("test", d); r.IntN(5) {
	case 0:
		return Linspace(-3, 5, size).Reshape(d...)
	case 1:
		return Full(r.NormFloat64(), d...)
	case 2:
		return Arange(size).Reshape(rev...).T()
	case 3:
		if n > 0 {
			wide := append([]int{}, d...)
			wide[n-1] = wide[n-1]*2 + 1
			return Linspace(0, 1, sizeOf("test", wide)).Reshape(wide...).Slice(n-1, 2*d[n-1]-1, -2*d[n-1]-3, -2)
		}
		fallthrough
	default:
		x := make([]float64, size)
		for i := range x {
			x[i] = r.NormFloat64()
		}
		return FromFlat(x, d...)
	}
}

// warpsAfterSomeLeft has threads return before the others shuffle and vote.
func warpsAfterSomeLeft(leave int, x, down, up []int64, all, any []bool, ballot []uint32) {
	i := simt.ThreadIdx().X
	if i%leave == 1 {
		return
	}
	down[i] = simt.ShuffleDownInt64(x[i], 1)
	up[i] = simt.ShuffleInt64(x[i], 2)
	all[i] = simt.All(x[i] > 20)
	any[i] = simt.Any(x[i] > 60)
	ballot[i] = simt.Ballot(x[i] > 20)
}

// TestWarpsAfterSomeLeft: who has returned has no vote and no value, whatever place
// the others have then.
func TestWarpsAfterSomeLeft(t *testing.T) {
	const n = 80
	eachEngine(t, func(t *testing.T, d *Device) {
		for _, leave := range []int{2, 3, 5, 7, 1000} {
			x, down, up := make([]int64, n), make([]int64, n), make([]int64, n)
			all, any, ballot := make([]bool, n), make([]bool, n), make([]uint32, n)
			for i := range x {
				x[i] = int64(i)
			}
			if err := d.Launch(warpsAfterSomeLeft, Blocks(1), Threads(n), leave, x, down, up, all, any, ballot); err != nil {
				t.Fatal(err)
			}
			here := func(i int) bool { return i < n && i%leave != 1 }
			for i := range n {
				if !here(i) {
					continue
				}
				first := i / 32 * 32
				wantDown, wantUp, wantAll, wantAny, wantBallot := x[i], x[i], true, false, uint32(0)
				if i%32 < 31 && here(i+1) {
					wantDown = x[i+1]
				}
				if here(first + 2) {
					wantUp = x[first+2]
				}
				for lane := range 32 {
					if k := first + lane; here(k) {
						wantAll = wantAll && k > 20
						wantAny = wantAny || k > 60
						if k > 20 {
							wantBallot |= 1 << lane
						}
					}
				}
				if down[i] != wantDown || up[i] != wantUp || all[i] != wantAll || any[i] != wantAny || ballot[i] != wantBallot {
					t.Fatalf("every %dth left, thread %d has %d, %d, %v, %v, %b, want %d, %d, %v, %v, %b", leave, i, down[i], up[i], all[i], any[i], ballot[i], wantDown, wantUp, wantAll, wantAny, wantBallot)
				}
			}
		}
	})
}
