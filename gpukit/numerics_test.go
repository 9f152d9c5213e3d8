package gpukit

import (
	"errors"
	"fmt"
	"go/parser"
	"go/token"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"gpunotes/gpukit/internal/ir"
	"gpunotes/gpukit/simt"
)

func n8wrap(x, y int8) int8            { return x*y + x }
func n32quo(x, y int32) int32          { return x / y }
func n64quo(x, y int64) int64          { return x / y }
func n64rem(x, y int64) int64          { return x % y }
func n16shl(x int16, n uint) int16     { return x << n }
func n16shr(x int16, n uint) int16     { return x >> n }
func n32shl(x int32, n int) int32      { return x << n }
func n64mul(x, y float64) float64      { return x * y }
func n64add(x, y float64) float64      { return x + y }
func n64div(x, y float64) float64      { return x / y }
func n32mul(x, y float32) float32      { return x * y }
func n32div(x, y float32) float32      { return x / y }
func n32add(x, y float32) float32      { return x + y }
func nResidue(x, y, z float64) float64 { return x*y + z } // must not be fused
func nResidue32(x, y, z float32) float32 {
	return x*y - z // must not be fused
}
func nBits64(x float64) uint64    { return math.Float64bits(x) }
func nBits32(x float32) uint32    { return math.Float32bits(x) }
func nSign(x, y float64) float64  { return math.Copysign(x, y) }
func nNegative(x float64) bool    { return math.Signbit(-x) }
func nMin(x, y float64) float64   { return min(x, y) }
func nMax(x, y float64) float64   { return max(x, y) }
func nMin32(x, y float32) float32 { return min(x, y) }
func nMax32(x, y float32) float32 { return max(x, y) }
func nInt8(x float64) int8        { return int8(x) }
func nUint32(x float64) uint32    { return uint32(x) }
func nInt64(x float64) int64      { return int64(x) }
func nUint64(x float32) uint64    { return uint64(x) }
func nSqrt32(x float32) float32   { return float32(math.Sqrt(float64(x))) }
func nSin32(x float32) float32    { return float32(math.Sin(float64(x))) }
func nExp32(x float32) float32    { return float32(math.Exp(float64(x))) }
func nUniform(i uint64) float64   { return simt.UniformFloat64(42, i) }

func nCount(x []int32, n []int64) {
	if i := simt.Grid1(); i < len(x) {
		simt.AddInt64(&n[x[i]], int64(i))
		simt.MaxInt64(&n[8+x[i]], int64(i))
	}
}

// nHalves adds numbers that every order of additions sums up exactly.
func nHalves(x, sum []float64) {
	if i := simt.Grid1(); i < len(x) {
		simt.AddFloat64(&sum[0], x[i])
	}
}

// rule is a rule of numbers in the package's documentation, and what must be so.
type rule struct {
	number int
	check  func(c *ruleCheck)
}

type ruleCheck struct {
	*testing.T
	d *Device
}

// gives demands that fn of args is want, bit for bit but for NaNs.
func (c *ruleCheck) gives(want, fn any, args ...any) {
	c.Helper()
	arrays := make([]any, len(args))
	for i, x := range args {
		s := reflect.MakeSlice(reflect.SliceOf(reflect.TypeOf(x)), 70, 70)
		for k := range s.Len() {
			s.Index(k).Set(reflect.ValueOf(x))
		}
		arrays[i] = s.Interface()
	}
	for _, in := range [][]any{args, arrays} {
		out, err := c.d.Vectorize(fn, in...)
		if err != nil {
			c.Errorf("%v(%v): %v", nameOf(c.d, fn), args, err)
			return
		}
		t := out.DType().ir()
		for k := range out.Size() {
			if got := out.bitsAt(k); got != ir.Canonical(t, bitsOf(reflect.ValueOf(want))) {
				c.Errorf("%v(%v) = %v, want %v", nameOf(c.d, fn), args, ir.FormatBits(t, got), want)
				return
			}
		}
	}
}

// fails demands that fn of args ends the call with an error about text.
func (c *ruleCheck) fails(text string, fn any, args ...any) {
	c.Helper()
	_, err := c.d.Vectorize(fn, args...)
	var we *WorkerError
	if !errors.As(err, &we) || !strings.Contains(err.Error(), text) {
		c.Errorf("%v(%v): error %v, want one about %q", nameOf(c.d, fn), args, err, text)
	}
}

var (
	inf        = math.Inf(1)
	minusZero  = math.Copysign(0, -1)
	otherNaN   = math.Float64frombits(0xFFF0000000000123)
	otherNaN32 = math.Float32frombits(0xFFC12345)
)

var rules = []rule{
	{1, func(c *ruleCheck) {
		c.gives(int8(44), n8wrap, int8(100), int8(2))
		c.gives(int64(-3), n64quo, int64(-7), int64(2))
		c.gives(int64(-1), n64rem, int64(-7), int64(2))
		c.gives(int64(1), n64rem, int64(7), int64(-2))
		c.gives(int64(math.MinInt64), n64quo, int64(math.MinInt64), int64(-1))
		c.gives(int64(0), n64rem, int64(math.MinInt64), int64(-1))
		c.gives(int32(math.MinInt32), n32quo, int32(math.MinInt32), int32(-1))
		c.gives(int16(0), n16shl, int16(1), uint(16))
		c.gives(int16(0), n16shl, int16(1), uint(math.MaxUint64))
		c.gives(int16(math.MinInt16), n16shl, int16(1), uint(15))
		c.gives(int16(-1), n16shr, int16(-8), uint(64))
		c.gives(int16(0), n16shr, int16(8), uint(16))
		c.fails("integer divide by zero", n64quo, int64(7), int64(0))
		c.fails("integer divide by zero", n64rem, int64(7), int64(0))
		c.fails("negative shift amount", n32shl, int32(7), -1)
	}},
	{2, func(c *ruleCheck) {
		c.gives(0.30000000000000004, n64add, 0.1, 0.2)
		c.gives(5e-324, n64mul, 1e-300, 4e-24)
		c.gives(0x1p-1072, n64div, 0x1p-1070, 4.0)
		c.gives(0x1p-1073, n64div, 0x3p-1074, 2.0) // a tie, to even
		c.gives(0.0, n64mul, 1e-300, 1e-300)
		c.gives(minusZero, n64mul, 0.0, -1.0)
		c.gives(inf, n64div, 1.0, 0.0)
		c.gives(-inf, n64div, 1.0, minusZero)
		c.gives(math.NaN(), n64div, 0.0, 0.0)
		c.gives(float32(7.5e-39), n32mul, float32(1.5e-38), float32(0.5))
		c.gives(float32(1<<24), n32add, float32(1<<24), float32(1)) // to even
		c.gives(float32(1<<24+4), n32add, float32(1<<24), float32(3))
		c.gives(float32(1)/3, n32div, float32(1), float32(3))
		c.gives(math.Sqrt2, math.Sqrt, 2.0)
		c.gives(0x1p-535, math.Sqrt, 0x1p-1070)
		c.gives(0x1p-53-0x1p-105, math.FMA, 1+0x1p-52, 1-0x1p-53, -1.0)
	}},
	{3, func(c *ruleCheck) {
		c.gives(0.0, nResidue, 1+0x1p-52, 1-0x1p-53, -1.0)
		c.gives(0.0, nResidue, 0.1, 0.1, -0.010000000000000002)
		c.gives(-8.326672684688674e-19, math.FMA, 0.1, 0.1, -0.010000000000000002)
		c.gives(float32(0), nResidue32, float32(0.1), float32(0.1), float32(0.010000001))
	}},
	{4, func(c *ruleCheck) {
		for _, x := range []float64{math.NaN(), otherNaN, -otherNaN} {
			c.gives(uint64(0x7FF8000000000001), nBits64, x)
			c.gives(false, math.Signbit, x)
			c.gives(false, nNegative, x)
			c.gives(2.0, nSign, -2.0, x)
		}
		c.gives(uint32(0x7FC00000), nBits32, otherNaN32)
		c.gives(uint32(0x7FC00000), nBits32, -otherNaN32)
		c.gives(true, math.Signbit, minusZero)
	}},
	{5, func(c *ruleCheck) {
		for _, p := range [][2]any{{nMin, nMax}} {
			c.gives(math.NaN(), p[0], math.NaN(), 1.0)
			c.gives(math.NaN(), p[1], 1.0, math.NaN())
			c.gives(math.NaN(), p[0], math.NaN(), -inf)
			c.gives(math.NaN(), p[1], inf, math.NaN())
			c.gives(minusZero, p[0], 0.0, minusZero)
			c.gives(minusZero, p[0], minusZero, 0.0)
			c.gives(0.0, p[1], minusZero, 0.0)
			c.gives(0.0, p[1], 0.0, minusZero)
		}
		negative := float32(minusZero)
		c.gives(negative, nMin32, float32(0), negative)
		c.gives(float32(0), nMax32, negative, float32(0))
		c.gives(float32(math.NaN()), nMax32, float32(3), float32(math.NaN()))
		c.gives(inf, math.Max, math.NaN(), inf)
		c.gives(-inf, math.Min, -inf, math.NaN())
		c.gives(math.NaN(), math.Max, math.NaN(), 1.0)
		c.gives(minusZero, math.Min, 0.0, minusZero)
	}},
	{6, func(c *ruleCheck) {
		c.gives(int8(127), nInt8, 300.0)
		c.gives(int8(-128), nInt8, -1e300)
		c.gives(int8(-3), nInt8, -3.99)
		c.gives(int8(127), nInt8, 127.99)
		c.gives(int8(0), nInt8, math.NaN())
		c.gives(uint32(0), nUint32, -1.0)
		c.gives(uint32(0), nUint32, -0.99)
		c.gives(uint32(math.MaxUint32), nUint32, inf)
		c.gives(uint32(math.MaxUint32), nUint32, 4294967295.5)
		c.gives(int64(math.MaxInt64), nInt64, 9.3e18)
		c.gives(int64(math.MinInt64), nInt64, -inf)
		c.gives(int64(0), nInt64, otherNaN)
		c.gives(uint64(math.MaxUint64), nUint64, float32(1.9e19))
		c.gives(uint64(18446742974197923840), nUint64, float32(1.8446743e19))
	}},
	{7, func(c *ruleCheck) {
		pi := math.Pi
		for _, x := range [][3]float64{{0, 0, 0}, {0, minusZero, pi}, {minusZero, minusZero, -pi}, {minusZero, 0, minusZero}, {1, 0, pi / 2}, {inf, inf, pi / 4}, {inf, -inf, 3 * pi / 4}, {-inf, 3, -pi / 2}} {
			c.gives(x[2], math.Atan2, x[0], x[1])
		}
		for _, x := range [][3]float64{{0, 0, 1}, {-1, inf, 1}, {-1, 0.5, math.NaN()}, {2, -1074, 5e-324}, {math.NaN(), 0, 1}, {1, math.NaN(), 1}, {0, -1, inf}, {minusZero, -1, -inf}, {minusZero, 2, 0}, {-2, 3, -8}, {inf, -1, 0}} {
			c.gives(x[2], math.Pow, x[0], x[1])
		}
		c.gives(minusZero, math.Sin, minusZero)
		c.gives(1.0, math.Cos, 0.0)
		c.gives(math.NaN(), math.Sin, inf)
		c.gives(0.0, math.Exp, -inf)
		c.gives(-inf, math.Log, 0.0)
		c.gives(math.NaN(), math.Log, -1.0)
		c.gives(0.0, math.Log, 1.0)
		c.gives(3.0, math.Cbrt, 27.0)
		c.gives(inf, math.Hypot, math.NaN(), -inf)
		c.gives(5.0, math.Hypot, -3.0, 4.0)
		c.gives(-1.0, math.Mod, -7.0, 2.0)
	}},
	{8, func(c *ruleCheck) {
		for _, x := range []float32{0, 1, 2, 0.1, -0.7, 3e-39, 123.456, 1e10, 88, float32(inf), float32(math.NaN())} {
			c.gives(float32(math.Sqrt(float64(x))), nSqrt32, x)
			for _, p := range []struct {
				wide   func(float64) float64
				narrow any
			}{{math.Sin, nSin32}, {math.Exp, nExp32}} {
				wide := Must(c.d.Vectorize(p.wide, float64(x))).bitsAt(0)
				c.gives(float32(ir.ToF64(wide)), p.narrow, x)
			}
		}
		p, err := c.d.Explain(nSin32, float32(1))
		if err != nil || !strings.Contains(p.IR, "math.Sin.f32") {
			c.Errorf("the form for float32 is not in use: %v\n%v", err, p)
		}
	}},
	{9, func(c *ruleCheck) {
		x := make([]int32, 5000)
		want := make([]int64, 16)
		halves, sum := make([]float64, len(x)), 0.0
		for i := range x {
			x[i] = int32(i * i % 8)
			want[x[i]] += int64(i)
			want[8+x[i]] = int64(i)
			halves[i] = float64(i%100) / 2
			sum += halves[i]
		}
		n := make([]int64, 16)
		if err := c.d.Launch(nCount, Blocks(40), Threads(128), x, n); err != nil || !slices.Equal(n, want) {
			c.Errorf("atomics on integers: %v, %v; want %v", n, err, want)
		}
		got := []float64{0}
		if err := c.d.Launch(nHalves, Blocks(40), Threads(128), halves, got); err != nil || got[0] != sum {
			c.Errorf("atomics on floats: %v, %v; want %v", got, err, sum)
		}
	}},
	{10, func(c *ruleCheck) {
		index := make([]uint64, 3000)
		for i := range index {
			index[i] = uint64(i)
		}
		u := Must(c.d.Vectorize(nUniform, index))
		for i := range index {
			if u.At(i) != simt.UniformFloat64(42, uint64(i)) {
				c.Fatalf("random number %d is %v, natively %v", i, u.At(i), simt.UniformFloat64(42, uint64(i)))
			}
		}
		if got := fmt.Sprintf("%x", u.Sum()); got != uniformSum {
			c.Errorf("sum of random numbers is %s, want %s", got, uniformSum)
		}
	}},
}

// uniformSum is the sum of the first 3000 uniform numbers of seed 42, by the tree
// that Sum documents.
var uniformSum = func() string {
	x := make([]float64, 3000)
	for i := range x {
		x[i] = simt.UniformFloat64(42, uint64(i))
	}
	group := func(x []float64) float64 {
		x = append(slices.Clone(x), make([]float64, 1024-len(x))...) // +0 changes no sum of positive numbers
		for ; len(x) > 1; x = x[:len(x)/2] {
			for i := range len(x) / 2 {
				x[i] += x[i+len(x)/2]
			}
		}
		return x[0]
	}
	return fmt.Sprintf("%x", group([]float64{group(x[:1024]), group(x[1024:2048]), group(x[2048:])}))
}()

// TestNumbers checks every rule of numbers in the package's documentation.
func TestNumbers(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "doc.go", nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	doc := regexp.MustCompile(`(?m)^\s+(\d+)\. `).FindAllStringSubmatch(file.Doc.Text(), -1)
	if len(doc) != len(rules) {
		t.Errorf("%d rules in the documentation, %d are checked", len(doc), len(rules))
	}
	eachEngine(t, func(t *testing.T, d *Device) {
		for i, r := range rules {
			if i < len(doc) && doc[i][1] != fmt.Sprint(r.number) {
				t.Errorf("rule %s of the documentation is checked as %d", doc[i][1], r.number)
			}
			t.Run(fmt.Sprint(r.number), func(t *testing.T) { r.check(&ruleCheck{t, d}) })
		}
	})
}
