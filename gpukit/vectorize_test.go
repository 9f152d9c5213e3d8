package gpukit

import (
	"errors"
	"math"
	"runtime"
	"strings"
	"sync"
	"testing"

	"gonum.org/v1/gonum/mat"

	"gpunotes/gpukit/host"
)

func add1(x float64) float64 { return x + 1 }
func idiv(a, b int) int      { return a / b }
func shl(a int, n int) int   { return a << n }
func endless(x float64) float64 {
	for x == x {
		x = x + 0
	}
	return x
}
func twice(x float64) (a, b float64) { return x, x }
func fact(n int) int {
	if n < 2 {
		return 1
	}
	return n * fact(n-1)
}
func even(n int) bool { return n == 0 || odd(n-1) }
func odd(n int) bool  { return n != 0 && even(n-1) }

var scale = 3.0

func scaled(x float64) float64 { return scale * x }

func manyFaults(x float64) float64 {
	m := map[int]float64{1: x}
	defer println()
	go add1(x)
	return m[1]
}

func generic[T float64](x T) T { return x }

// fails demands of devices of either kind an error whose text has all words, and
// that the next call works.
func fails(t *testing.T, name string, f func(d *Device) error, words ...string) {
	t.Helper()
	for _, kind := range kinds {
		failsOn(t, kind, name, f, words...)
	}
}

func failsOn(t *testing.T, kind, name string, f func(d *Device) error, words ...string) {
	t.Helper()
	name += " on " + kind
	d := MustOpen(kind)
	defer d.Close()
	err := f(d)
	if err == nil {
		t.Errorf("%s: no error", name)
		return
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("%s: the error does not say %q:\n%v", name, w, err)
		}
	}
	z, err := d.Vectorize(add1, Arange(3))
	if err != nil || z.At(2) != 3 {
		t.Errorf("%s: the next call gives %v, %v", name, z, err)
	}
}

func TestBadInput(t *testing.T) {
	one := func(fn any, args ...any) func(*Device) error {
		return func(d *Device) error { _, err := d.Vectorize(fn, args...); return err }
	}
	var nilFunc func(float64) float64
	var nilArray *Array
	local := 2.0
	captures := func(x float64) float64 { return x * local }
	for name, c := range map[string]struct {
		f     func(*Device) error
		words []string
	}{
		"too few":              {one(dist, 1.0, 2.0), []string{"5 arguments (lat1, lon1, lat2, lon2, s)", "got 2"}},
		"too many":             {one(add1, 1.0, 2.0), []string{"1 argument (x)", "got 2"}},
		"no broadcast":         {one(gcd, FromSlice([]int{1, 2}), FromSlice([]int{1, 2, 3})), []string{"could not be broadcast together with shapes (2,) (3,)", "arguments 1 (a) and 2 (b)", "2 and 3"}},
		"dtype":                {one(add1, FromSlice([]float32{1})), []string{"argument 1 (x)", "float32", ".As(gpukit.Float64)"}},
		"inexact":              {one(mixed, 0.1, 1, true, 1), []string{"argument 1 (a)", "0.1", "float32"}},
		"negative to unsigned": {one(mixed, 0.5, 1, true, -1), []string{"argument 4 (d)", "-1", "uint64"}},
		"2^63 to int":          {one(gcd, math.Ldexp(1, 63), 1), []string{"9.223372036854775e+18"[:8], "int64"}},
		"NaN to int":           {one(gcd, math.NaN(), 1), []string{"NaN", "int64"}},
		"bool for number":      {one(add1, true), []string{"true", "float64"}},
		"number for bool":      {one(mixed, 0.5, 1, 1, 1), []string{"argument 3 (c)", "bool"}},
		"too large":            {one(add1, Linspace(0, 1, 1e12)), []string{"(1000000000000,)", "7.276 TiB", "available"}},
		"nil":                  {one(add1, nil), []string{"argument 1 (x)", "nil"}},
		"nil array":            {one(add1, nilArray), []string{"argument 1 (x)", "nil"}},
		"zero Array":           {one(add1, &Array{}), []string{"argument 1 (x)", "not made by gpukit"}},
		"string":               {one(add1, "1"), []string{"string"}},
		"ragged":               {one(add1, [][]float64{{1}, {}}), []string{"ragged"}},
		"matrix":               {one(add1, mat.NewDense(1, 1, nil)), []string{"FromMatrix"}},
		"nil function":         {one(nilFunc, 1.0), []string{"nil"}},
		"no function":          {one(3, 1.0), []string{"not a function"}},
		"untyped nil function": {one(nil, 1.0), []string{"nil"}},
		"two results":          {one(twice, 1.0), []string{"twice", "returns 2 values"}},
		"divide by zero":       {one(idiv, FromSlice([]int{1, 7, 7}), FromSlice([]int{1, 0, 0})), []string{"vectorize_test.go", "integer divide by zero", "(1,)", "a = 7, b = 0"}},
		"negative shift":       {one(shl, 1, -3), []string{"negative shift amount", "n = -3"}},
		"recursion":            {one(fact, 3), []string{"fact → fact", "vectorize_test.go"}},
		"mutual recursion":     {one(even, 3), []string{"even → odd → even"}},
		"package variable":     {one(scaled, 1.0), []string{"scale", "argument"}},
		"captured local":       {one(captures, 1.0), []string{"local", "argument"}},
		"method value":         {one(celsius(1).String), []string{"method"}},
		"generic":              {one(generic[float64], 1.0), []string{"generic"}},
		"library function":     {one(strings.Count, 1.0), []string{"strings.Count"}},
	} {
		fails(t, name, c.f, c.words...)
	}
	fails(t, "all faults at once", one(manyFaults, 1.0), "vectorize_test.go:40:7: ", "map", "vectorize_test.go:41:2: defer", "vectorize_test.go:42:2: go")
	var ce *CompileError
	_, err := MustOpen("cpu").Vectorize(manyFaults, 1.0)
	if !errors.As(err, &ce) || len(ce.Faults) < 3 {
		t.Fatalf("%#v", err)
	}
	for _, f := range ce.Faults {
		if f.Pos == "" || f.Code == "" || f.Message == "" || f.Help == "" {
			t.Errorf("an incomplete fault: %+v", f)
		}
	}
}

func TestNilAndClosedDevice(t *testing.T) {
	var d *Device
	if _, err := d.Vectorize(add1, 1.0); err == nil || !strings.Contains(err.Error(), "device is nil") {
		t.Error(err)
	}
	if _, err := d.Explain(add1, 1.0); err == nil || !strings.Contains(err.Error(), "device is nil") {
		t.Error(err)
	}
	if d.With(FastMath()) != nil || d.Close() == nil || d.Name() == "" || d.String() == "" {
		t.Error("a nil device")
	}
	if _, err := new(Device).Vectorize(add1, 1.0); err == nil {
		t.Error("a zero Device works")
	}
	d = MustOpen("cpu")
	w := d.With(FastMath())
	if d.Close() != nil || d.Close() != nil {
		t.Error("Close")
	}
	for _, d := range []*Device{d, w} {
		if _, err := d.Vectorize(add1, 1.0); !errors.Is(err, ErrClosed) {
			t.Error(err)
		}
	}
}

func TestOpen(t *testing.T) {
	for _, name := range []string{"", "gpu", "cuda:0", "sim:", "sim:h2000", "CPU"} {
		if name == "cuda:0" && len(cudaDevices()) > 0 {
			continue
		}
		if _, err := Open(name); err == nil || !strings.Contains(err.Error(), `"parallel"`) || !strings.Contains(err.Error(), `"sim:gtx-970"`) {
			t.Errorf("Open(%q): %v", name, err)
		}
	}
	best := "parallel"
	if cards := cudaDevices(); len(cards) > 0 {
		best = "cuda:0"
	}
	if d, err := Open("auto"); err != nil || d.Name() != best {
		t.Error(d, err)
	}
	for _, i := range Devices() {
		d, err := Open(i.Name)
		if err != nil || i.Description == "" {
			t.Errorf("%v: %v", i, err)
		}
		d.Close()
	}
}

func TestVectorizeShapes(t *testing.T) {
	d := MustOpen("cpu")
	v := func(fn any, args ...any) *Array { t.Helper(); return Must(d.Vectorize(fn, args...)) }
	same(t, "0-d", v(add1, 1.5).Shape(), []int{})
	same(t, "0-d value", v(add1, 1.5).Item(), 2.5)
	same(t, "int constant for float", v(add1, 30).Item(), 31.0)
	same(t, "slice", v(add1, []float64{1, 2}).Float64s(), []float64{2, 3})
	same(t, "nested", v(add1, [][]float64{{1, 2}, {3, 4}}).Shape(), []int{2, 2})
	same(t, "empty", v(add1, Zeros(0, 3)).Shape(), []int{0, 3})
	same(t, "empty with 1", v(math.Hypot, Zeros(0, 1), Zeros(1, 4)).Shape(), []int{0, 4})
	same(t, "outer", v(gcd, []int64{12, 18}, FromSlice([]int64{8, 9, 6}).Reshape(3, 1)).Float64s(), []float64{4, 2, 3, 9, 6, 6})
	same(t, "bool result", v(isPrime, []int32{2, 4, 97}).DType(), Bool)
	same(t, "no parameters", v(constant7).Item(), 7.0)
	same(t, "int result", v(mandelbrot, 0.0, 0.0).DType(), Int64)
	same(t, "named type", v(fahrenheit, []celsius{100}).Item(), 212.0)
	same(t, "huge generated", v(add1, Full(2).BroadcastTo(3, 1)).Float64s(), []float64{3, 3, 3})
}

// The values that numpy gives for the mesh (linspace axes, s = 1): the sum over
// all elements, and single points.
func TestDistanceMesh(t *testing.T) {
	lon, lat := MeshGrid(Linspace(99, 101, 1000), Linspace(29, 31, 1000))
	z := Must(MustOpen("parallel").Vectorize(dist, lat, lon, 30.0, 101.0, 1.0))
	if got, want := z.Sum(), 101.63463687513529; math.Abs(got-want) > 1e-11*want {
		t.Errorf("the sum is %v, numpy's is %v", got, want)
	}
	if got, want := z.At(0, 0), 0.00030695340453264116; math.Abs(got-want) > 1e-15*want {
		t.Errorf("at (29, 99): %v, numpy's is %v", got, want)
	}
}

func TestStop(t *testing.T) {
	restore := attachInterrupted(true)
	defer restore()
	for _, name := range []string{"cpu", "parallel"} {
		if _, err := MustOpen(name).Vectorize(endless, Arange(10)); !errors.Is(err, ErrInterrupted) {
			t.Errorf("%s: %v", name, err)
		}
	}
	func() {
		defer func() {
			if r := recover(); r != ErrInterrupted {
				t.Errorf("Sum of very many elements: %v", r)
			}
		}()
		Full(1, 1000000, 1000000).Sum()
	}()
	attachInterrupted(false)
	if z := Must(MustOpen("cpu").Vectorize(add1, Arange(3))); z.At(2) != 3 {
		t.Error(z)
	}
}

func TestConcurrentCalls(t *testing.T) {
	d := MustOpen("parallel")
	var wg sync.WaitGroup
	for i := range 32 {
		wg.Go(func() {
			z, err := d.Vectorize(dist, Linspace(29, 31, 3000), 99.0, 30.0, 101.0, float64(i))
			if err != nil || z.At(7) != distNative(Linspace(29, 31, 3000).At(7), 99, 30, 101, float64(i)) {
				t.Error(i, z, err)
			}
		})
	}
	wg.Wait()
	if len(d.programs.programs) != 1 {
		t.Errorf("%d programs for one function", len(d.programs.programs))
	}
}

// A call allocates its output and little else.
func TestMemoryOfACall(t *testing.T) {
	d := MustOpen("parallel")
	lon, lat := MeshGrid(Linspace(99, 101, 1000), Linspace(29, 31, 2000))
	call := func() { Must(d.Vectorize(dist, lat, lon, 30.0, 101.0, 1.0)) }
	call()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	call()
	runtime.ReadMemStats(&after)
	if got, limit := after.TotalAlloc-before.TotalAlloc, uint64(16e6+3<<20); got > limit { // huge pages begin where they begin
		t.Errorf("a call with 16 MB of output allocates %d bytes, more than %d", got, limit)
	}
}

func TestExplain(t *testing.T) {
	d := MustOpen("parallel")
	lon, lat := MeshGrid(Linspace(99, 101, 1000), Linspace(29, 31, 500))
	p, err := d.Explain(dist, lat, Must(d.Vectorize(add1, lon)), 30.0, 101.0, 1.0)
	if err != nil {
		t.Fatal(err)
	}
	same(t, "LoopDims", p.LoopDims, []int{500, 1000})
	same(t, "Workers", p.Workers, 500000)
	same(t, "BytesIn", p.BytesIn, 4000000)
	same(t, "BytesOut", p.BytesOut, 4000000)
	s := p.String()
	for _, w := range []string{"(500, 1000)", "500000", "3.8147MB", "Linspace(29, 31, 500)", "repeats along dimension 1", "contiguous", "math.Atan2", "lat1", "parallel"} {
		if !strings.Contains(s, w) {
			t.Errorf("the plan does not say %q:\n%s", w, s)
		}
	}
	p, err = openPortable().Explain(dist, lat, lon, 30.0, 101.0, 1.0)
	if err != nil || !strings.Contains(p.Code, "once per row") || !strings.Contains(p.Code, "once per column") || !strings.Contains(p.Code, "one value per row") {
		t.Errorf("the code for a mesh does not say what is computed once: %v\n%s", err, p)
	}
	if h := p.HTML(); !strings.Contains(h, "<table>") || !strings.Contains(h, "math.Atan2") {
		t.Error(h)
	}
	if _, err := d.Explain(manyFaults, 1.0); err == nil {
		t.Error("Explain accepts what Vectorize refuses")
	}
	var none *Plan
	if none.String() == "" || none.HTML() == "" {
		t.Error("a nil plan")
	}
}

func attachInterrupted(on bool) (restore func()) {
	old := host.Current()
	host.Attach(host.Host{Interrupted: func() bool { return on }})
	return func() { host.Attach(old) }
}
