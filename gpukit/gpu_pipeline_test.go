package gpukit

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"gpunotes/gpukit/host"
	"gpunotes/gpukit/internal/driver"
)

// smallParts makes calls of a few bytes worth a pipeline, for a test.
func smallParts(t *testing.T, from, part, piece int) {
	old := []int{pipelineFrom, pipelineLeast, pipelineMost, stagingPiece}
	pipelineFrom, pipelineLeast, pipelineMost, stagingPiece = from, part, part, piece
	t.Cleanup(func() { pipelineFrom, pipelineLeast, pipelineMost, stagingPiece = old[0], old[1], old[2], old[3] })
}

func minus2(x, y float64) float64 { return x - float64(2*y) }
func waves(x, y float64) float64  { return float64(math.Sin(x)*math.Exp(y)) + math.Cos(x) }
func mulMod(a, b int32) int32     { return a % b }
func cumulate(x, y, out []float64) {
	s := 0.0
	for i := range out {
		s += x[i] - y[0]
		out[i] += s
	}
}
func lineAndTotal(x [][]float64, k float64) (first, sum float64) {
	for i := range x {
		for j := range x[i] {
			sum += float64(x[i][j] * k)
		}
	}
	return x[0][0], sum
}

// layout lays elements out in memory: transposed, reversed, with gaps, or with
// neither.
func layout(r *rand.Rand, a *Array) *Array {
	n := len(a.shape)
	if n == 0 || a.Size() == 0 {
		return a.copy()
	}
	wide := append([]int{}, a.shape...)
	d := r.IntN(n)
	switch r.IntN(6) {
	case 0: // transposed
		x := newArray(makeStorage(a.DType(), a.Size()), a.T().shape).T()
		assign(x, a)
		return x
	case 1: // reversed in one dimension
		x := newArray(makeStorage(a.DType(), a.Size()), wide).Slice(d, wide[d]-1, -wide[d]-1, -1)
		assign(x, a)
		return x
	case 2: // with gaps
		wide[d] = 2*wide[d] + 1
		x := newArray(makeStorage(a.DType(), sizeOf("test", wide)), wide).Slice(d, 1, wide[d], 2)
		assign(x, a)
		return x
	case 3: // behind something else
		x := newArray(makeStorage(a.DType(), a.Size()+3), []int{a.Size() + 3}).Slice(0, 3, a.Size()+3, 1).Reshape(a.shape...)
		assign(x, a)
		return x
	}
	return a.copy()
}

func assign(dst, src *Array) {
	var to []int
	dst.each(func(k int) { to = append(to, k) })
	i := 0
	src.each(func(k int) {
		dst.store.setBits(to[i], src.store.bits(k))
		i++
	})
}

// twin is a copy of a list of arrays: what was one memory is one again.
func twin(list []any) (out []any) {
	made := map[storage]storage{}
	for _, x := range list {
		a, ok := x.(*Array)
		if !ok || sliceBehind(a.store) == nil {
			out = append(out, x)
			continue
		}
		s := made[a.store]
		if s == nil {
			s = makeStorage(a.DType(), a.store.len())
			for k := range s.len() {
				s.setBits(k, a.store.bits(k))
			}
			made[a.store] = s
		}
		out = append(out, &Array{s, a.offset, a.shape, a.strides})
	}
	return out
}

// spreadCall is a call with arguments of random shapes and layouts.
type spreadCall struct {
	fn     any
	layout string // of a gufunc
	args   []any
	out    []*Array
	put    int // the argument that is put on the device, if there is one
}

func (p spreadCall) String() string {
	s := fmt.Sprintf("%T %q", p.fn, p.layout)
	for _, x := range append(p.args, p.outs()...) {
		if a, ok := x.(*Array); ok {
			s += fmt.Sprintf(" %v%v%v", a.DType(), a.shape, a.strides)
		} else {
			s += fmt.Sprint(" ", x)
		}
	}
	return s
}

func (p spreadCall) outs() (list []any) {
	for _, a := range p.out {
		list = append(list, a)
	}
	return list
}

// run runs the call on d, with memory of its own, and returns what is in all arrays
// afterwards.
func (p spreadCall) run(d *Device) (all [][]uint64, err error) {
	mine := twin(append(append([]any{}, p.args...), p.outs()...))
	args := append([]any{}, mine[:len(p.args)]...)
	if p.put >= 0 && d.gpu != nil {
		if a, ok := args[p.put].(*Array); ok {
			put := Must(d.Put(a))
			defer put.Free()
			args[p.put] = put
		}
	}
	var out []*Array
	for _, x := range mine[len(p.args):] {
		out = append(out, x.(*Array))
	}
	n := 1
	if reflect.TypeOf(p.fn).NumOut() > 1 {
		n = 2
	}
	if out != nil {
		args = append(args, Out(out...))
	}
	var list []*Array
	switch {
	case p.layout == "" && n == 1:
		var a *Array
		a, err = d.Vectorize(p.fn, args...)
		list = []*Array{a}
	case n == 1:
		var a *Array
		a, err = d.GUVectorize(p.fn, p.layout, args...)
		list = []*Array{a}
	default:
		var a, b *Array
		a, b, err = d.GUVectorize2(p.fn, p.layout, args...)
		list = []*Array{a, b}
	}
	if err != nil {
		return nil, err
	}
	for _, x := range mine {
		if a, ok := x.(*Array); ok {
			list = append(list, a)
		}
	}
	for _, a := range list {
		var bits []uint64
		h := a.Host()
		h.each(func(k int) { bits = append(bits, h.store.bits(k)) })
		all = append(all, bits)
	}
	return all, nil
}

func random(r *rand.Rand, t DType, dims ...int) *Array {
	a := newArray(makeStorage(t, sizeOf("test", dims)), dims)
	a.each(func(k int) {
		x := float64(r.IntN(2000) - 1000)
		switch {
		case t == Bool:
			x = float64(r.IntN(2))
		case t.ir().IsFloat():
			x *= r.Float64()
		}
		a.store.setBits(k, FromSlice([]float64{x}).As(t).store.bits(0))
	})
	return a
}

func randomSpread(r *rand.Rand) (p spreadCall) {
	dims := make([]int, 1+r.IntN(3))
	for i := range dims {
		dims[i] = []int{1, 2, 3, 7, 16, 40}[r.IntN(6)]
	}
	part := func() []int { // a shape that broadcasts to dims
		d := append([]int{}, dims...)
		if r.IntN(3) == 0 {
			d = d[r.IntN(len(d)):]
		}
		for i := range d {
			if r.IntN(5) == 0 {
				d[i] = 1
			}
		}
		return d
	}
	operand := func(t DType, core ...int) any {
		switch {
		case t == Float64 && len(core) == 0 && r.IntN(8) == 0:
			return 1.5
		case t == Float64 && r.IntN(6) == 0: // no memory
			d := append(part(), core...)
			return Linspace(-3, 5, sizeOf("test", d)).Reshape(d...)
		}
		return layout(r, random(r, t, append(part(), core...)...))
	}
	result := func(t DType, core ...int) *Array {
		return layout(r, random(r, t, append(append([]int{}, dims...), core...)...))
	}
	n := []int{1, 3, 8, 17}[r.IntN(4)]
	p.put = -1
	if r.IntN(6) == 0 {
		p.put = 0
	}
	given := r.IntN(2) == 0
	switch r.IntN(6) {
	case 0:
		p.fn, p.args = minus2, []any{operand(Float64), operand(Float64)}
		if given {
			p.out = []*Array{result(Float64)}
			if r.IntN(2) == 0 { // in place
				p.args[0], p.put = p.out[0], -1
			}
			if r.IntN(4) == 0 && p.out[0].shape[0] > 1 { // over each other
				a := p.out[0]
				p.args, p.out = []any{a.Slice(0, 1, a.shape[0], 1), 2.0}, []*Array{a.Slice(0, 0, a.shape[0]-1, 1)}
			}
		}
	case 1:
		b := random(r, Int32, part()...)
		zeros := r.IntN(2) // or two zeros, somewhere
		b.each(func(k int) { b.store.setBits(k, b.store.bits(k)|1) })
		for range 2 * zeros {
			b.store.setBits(r.IntN(b.store.len()), 0)
		}
		p.fn, p.args = mulMod, []any{operand(Int32), b}
		if given {
			p.out = []*Array{result(Int32)}
		}
	case 2:
		p.fn, p.layout, p.args = cumulate, "(n),()->(n)", []any{operand(Float64, n), operand(Float64)}
		if given {
			p.out = []*Array{result(Float64, n)}
		}
	case 3:
		p.fn, p.layout, p.args = lineAndTotal, "(m,n),()->(),()", []any{operand(Float64, 2, n), operand(Float64)}
		if given {
			p.out = []*Array{result(Float64), result(Float64)}
		}
	case 4: // what depends on one argument becomes a stage of its own
		p.fn, p.args = waves, []any{operand(Float64), operand(Float64)}
		if given {
			p.out = []*Array{result(Float64)}
		}
	case 5:
		p.fn, p.args = mixed, []any{operand(Float32), operand(Int16), operand(Bool), operand(Uint64)}
		if given {
			p.out = []*Array{result(Float32)}
		}
	}
	if given && p.put >= 0 { // results are where an argument is: not here
		p.put = -1
	}
	return p
}

// A call in parts gives what the call as a whole gives: every bit of every array, or
// the same failing worker.
func TestPipeline(t *testing.T) {
	x, d := openLagging(t)
	rounds := 100
	if n, err := strconv.Atoi(os.Getenv("PIPELINE")); err == nil {
		rounds = n
	}
	cut, failed := agreesInParts(t, d, rounds, func() int { return x.count("Launch") })
	t.Logf("of %d calls %d were done in parts, of which %d failed", rounds, cut, failed)
	if cut < rounds/4 || failed == 0 && rounds > 500 { // what the calls are is chance
		t.Errorf("of %d calls %d were done in parts, of which %d failed", rounds, cut, failed)
	}
}

// agreesInParts compares random calls on d with the same on a card that does one thing
// at a time. launches counts what d has launched.
func agreesInParts(t *testing.T, d *Device, rounds int, launches func() int) (cut, failed int) {
	smallParts(t, 64, 400, 128)
	plain, ref := quadro(t), openReference()
	seed := uint64(time.Now().UnixNano())
	r := rand.New(rand.NewPCG(seed, 1))
	for range rounds {
		p := randomSpread(r)
		d := d
		if r.IntN(2) == 0 {
			d = d.With(OneWorkerPerSlice())
		}
		want, wrong := p.run(plain)
		before := launches()
		got, err := p.run(d)
		if launches() > before+1 {
			cut++
			if err != nil {
				failed++
			}
		}
		if fmt.Sprint(err) != fmt.Sprint(wrong) || !reflect.DeepEqual(got, want) {
			t.Fatalf("seed %d, %v: %v, %v\nas one launch: %v, %v", seed, p, got, err, want, wrong)
		}
		if r.IntN(4) == 0 {
			if want, wrong := p.run(ref); fmt.Sprint(err) != fmt.Sprint(wrong) || !reflect.DeepEqual(got, want) {
				t.Fatalf("seed %d, %v: %v, %v\nby the evaluator: %v, %v", seed, p, got, err, want, wrong)
			}
		}
	}
	return cut, failed
}

// The shares of a shape are all its workers, in order, in boxes of the size asked for.
func TestShares(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 9))
	for range 2000 {
		dims := make([]int, 1+r.IntN(4))
		n := 1
		for i := range dims {
			dims[i] = 1 + r.IntN([]int{3, 9, 5000}[r.IntN(3)])
			if n*dims[i] > 1<<24 {
				dims[i] = 1
			}
			n *= dims[i]
		}
		want := 1 + r.IntN(n)
		list := shares(dims, want)
		if len(list) > 20000 {
			continue
		}
		next := 0
		for _, s := range list {
			first, size := 0, 1
			for d := range dims {
				first = first*dims[d] + s.at[d]
				size *= s.dims[d]
				if s.at[d]+s.dims[d] > dims[d] || s.dims[d] < 1 {
					t.Fatalf("%v by %d: %+v", dims, want, s)
				}
			}
			last := 0 // the number of the last worker of the box: no other is between
			for d := range dims {
				last = last*dims[d] + s.at[d] + s.dims[d] - 1
			}
			if s.first != next || first != next || s.workers != size || last != next+size-1 || size > want {
				t.Fatalf("%v by %d: %+v, worker %d is next", dims, want, s, next)
			}
			next += size
		}
		if next != n {
			t.Fatalf("%v by %d: %d workers of %d", dims, want, next, n)
		}
	}
}

// Stop ends a call between and in its parts, and the next call works.
func TestStopInAPipeline(t *testing.T) {
	smallParts(t, 64, 4000, 1000)
	x, d := openLagging(t)
	old := host.Current()
	defer host.Attach(old)
	want := Must(d.Vectorize(add1, Arange(20000).Float64s()))
	whole := x.count("Launch")
	for _, after := range []int64{1, 5, 20, 60} {
		var asked atomic.Int64
		host.Attach(host.Host{Interrupted: func() bool { return asked.Add(1) > after }})
		before := x.count("Launch")
		out := Zeros(20000)
		_, err := d.Vectorize(add1, Arange(20000).Float64s(), Out(out))
		host.Attach(old)
		if !errors.Is(err, ErrInterrupted) || x.count("Launch")-before >= whole {
			t.Errorf("stopped when asked for the %d-th time: %v, %d launches of %d", after, err, x.count("Launch")-before, whole)
		}
		same(t, "the next call", digest(Must(d.Vectorize(add1, Arange(20000).Float64s()))), digest(want))
	}
	// A part that does not end by itself.
	began := time.Now()
	var stop atomic.Bool
	host.Attach(host.Host{Interrupted: stop.Load})
	time.AfterFunc(20*time.Millisecond, func() { stop.Store(true) })
	_, err := d.Vectorize(endless, Arange(20000).Float64s())
	host.Attach(old)
	if !errors.Is(err, ErrInterrupted) || time.Since(began) > 10*time.Second {
		t.Errorf("%v after %v", err, time.Since(began))
	}
	same(t, "the next call", digest(Must(d.Vectorize(add1, Arange(20000).Float64s()))), digest(want))
}

// The trace of a call in parts has the copies and launches in order, and in their
// streams.
func TestTraceOfAPipeline(t *testing.T) {
	smallParts(t, 64, 16<<10, 1<<20)
	_, d := openLagging(t)
	x := Arange(4096).Float64s()
	Must(d.Vectorize(checkedHalf, x))
	d.StartTrace()
	Must(d.Vectorize(checkedHalf, x))
	var got []string
	for _, r := range d.StopTrace().Records {
		got = append(got, fmt.Sprintf("%v %s%d@%d", r.Kind, r.Name, r.Size, r.Stream))
	}
	in, out := 0, 0
	for _, r := range got {
		switch {
		case strings.HasPrefix(r, "HtoD"):
			in++
		case strings.HasPrefix(r, "DtoH"):
			out++
		}
	}
	if in != 4 || out != 4 || len(got) != 12 {
		t.Errorf("%q", got)
	}
}

// Where all is on the device and nothing can go wrong, a call does not wait; what does
// go wrong is told later.
func TestCallsThatDoNotWait(t *testing.T) {
	x, d := openLagging(t)
	a := Must(d.Put(FromSlice(Arange(1000).Float64s())))
	calls := func() {
		Must(d.Vectorize(add1, a, Out(a)))
		b := Must(d.Vectorize(add1, a))
		Must(d.Vectorize(add2, a, b, Out(a)))
		b.Free()
	}
	calls() // checked against the evaluator
	waits := func() int { return x.count("Sync") + x.count("Wait") + x.count("CopyOut") }
	before := waits()
	for range 5 {
		calls()
	}
	if n := waits() - before; n != 0 {
		t.Errorf("15 calls on the device waited %d times", n)
	}
	want := 3.0
	for range 6 {
		want = float64(2*(want+1)) + 1
	}
	same(t, "result", a.At(3), want)
	Must(d.Vectorize(idiv, []int{4}, []int{2}))
	before = waits()
	Must(d.Vectorize(idiv, []int{4}, []int{2}))
	if n := waits() - before; n != 1 {
		t.Errorf("a call with host arrays waited %d times", n)
	}

	fail := func(code driver.Code) {
		x.mu.Lock()
		defer x.mu.Unlock()
		at := x.calls["doing"] + 1
		x.fail = func(m string, n int) error {
			if m == "doing" && n == at {
				return errInjected(code, "cuLaunchKernel")
			}
			return nil
		}
	}
	fail(driver.Unknown)
	if err := second(d.Vectorize(add1, a, Out(a))); err != nil {
		t.Error(err)
	}
	if err := d.Sync(); err == nil || !strings.Contains(err.Error(), "gpukit.Sync on sim:lagging: cuLaunchKernel: CUDA_ERROR_UNKNOWN") {
		t.Error(err)
	}
	if err := d.Sync(); err != nil {
		t.Error(err)
	}
	fail(driver.IllegalAddress)
	if err := second(d.Vectorize(add1, a, Out(a))); err != nil {
		t.Error(err)
	}
	err := second(d.Vectorize(idiv, []int{4}, []int{2}))
	if err == nil || !strings.Contains(err.Error(), "used memory that is not its own") || !strings.Contains(err.Error(), "close it and open it again") {
		t.Error(err)
	}
	shapeError(t, "At", func() { a.At(3) }, "At on sim:lagging", "close it and open it again")
	shapeError(t, "Host", func() { a.Host() }, "Host on sim:lagging", "close it and open it again")
	if err := d.Close(); err != nil {
		t.Error(err)
	}
	again := lag(3).opened()
	defer again.Close()
	same(t, "opened again", Must(again.Vectorize(add1, 1.0)).Item(), 2.0)
}

// A device that does not ask by itself has kernels look at a word.
func TestCancelWord(t *testing.T) {
	x := lag(3)
	word, err := x.Device.Alloc(4)
	if err != nil {
		t.Fatal(err)
	}
	x.Device.Fill(word, 0, 4)
	x.word = word
	d := x.opened()
	defer d.Close()
	old := host.Current()
	defer host.Attach(old)
	for _, where := range []func([]float64) any{
		func(x []float64) any { return x },
		func(x []float64) any { return Must(d.Put(x)) },
	} {
		a := where([]float64{1, 2, 3})
		host.Attach(host.Host{Interrupted: func() bool { return true }})
		_, err := d.Vectorize(endless, a)
		host.Attach(old)
		if !errors.Is(err, ErrInterrupted) {
			t.Errorf("%v", err)
		}
		same(t, "the next call", Must(d.Vectorize(endless, math.NaN())).Size(), 1)
	}
	p, err := d.Explain(add1, 1.0)
	if err != nil || strings.Contains(p.Code, "ld.volatile") {
		t.Errorf("a kernel that ends looks at the word: %v, %v", p, err)
	}
}

// What a slice has in memory is what a card has.
func TestPack(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 5))
	for _, dt := range []DType{Bool, Int8, Int16, Int32, Int64, Uint8, Uint16, Uint32, Uint64, Float32, Float64} {
		a := random(r, dt, 1000)
		data, size := sliceBehind(a.store), dt.Size()
		want := make([]byte, 700*size)
		if _, err := binary.Encode(want, binary.LittleEndian, part(data, 200, 900)); err != nil {
			t.Fatal(err)
		}
		for _, little := range []bool{true, false} {
			old := littleEndian
			littleEndian = little && old
			got := make([]byte, len(want))
			pack(got, data, 200)
			if !slices.Equal(got, want) {
				t.Errorf("%v is packed as %x, want %x", dt, got[:32], want[:32])
			}
			b := makeStorage(dt, 1000)
			unpack(sliceBehind(b), 100, got)
			for k := range 700 {
				if b.bits(100+k) != a.store.bits(200+k) {
					t.Fatalf("%v: element %d is %x, want %x", dt, k, b.bits(100+k), a.store.bits(200+k))
				}
			}
			if b.bits(99) != 0 || b.bits(800) != 0 {
				t.Errorf("%v: more was unpacked", dt)
			}
			littleEndian = old
		}
	}
	odd := make([]bool, 3)
	unpack(odd, 0, []byte{0, 2, 255})
	same(t, "bools", odd, []bool{false, true, true})
	if _, ok := bytesOf([]string{"a"}); ok {
		t.Error("a string is a number")
	}
	big := make([]float64, 5<<20/8*3+7)
	for i := range big {
		big[i] = float64(i)
	}
	b := make([]byte, 8*len(big))
	pack(b, big, 0)
	back := make([]float64, len(big))
	unpack(back, 0, b)
	if !slices.Equal(big, back) {
		t.Error("large slices are not moved as a whole")
	}
}

// Memory that a call gave back may still be in use when the next gets it.
func TestMemoryInUseByEarlierCalls(t *testing.T) {
	smallParts(t, 64, 4000, 2000)
	x, d := openLagging(t)
	const n = 3000
	twos := make([]float64, n)
	for i := range twos {
		twos[i] = 2
	}
	Must(d.Vectorize(add1, Must(d.Put(twos))))
	Must(d.Vectorize(add2, twos, twos))
	for range 20 {
		a, out := Must(d.Put(Full(1, n))), Must(d.Empty(Float64, n))
		d.Sync()
		x.later(0, false, func() error { time.Sleep(2 * time.Millisecond); return nil })
		Must(d.Vectorize(add1, a, Out(out)))
		a.Free() // the kernel has not begun
		z := Must(d.Vectorize(add1, twos))
		same(t, "the earlier call, the later one", []float64{out.Sum(), z.Sum()}, []float64{2 * n, 3 * n})
		out.Free()
	}
}

func everySecond(x, y []int32) {
	for i := 0; i < len(x); i += 2 {
		y[i] = x[i] + 7
	}
}

// What a call leaves alone in an array that it gets is there afterwards, whatever
// parts the call was done in and however the arrays lie.
func TestPartsKeepTheRest(t *testing.T) {
	smallParts(t, 64, 400, 128)
	_, d := openLagging(t)
	const n = 300
	for _, x := range []*Array{Arange(4*n).As(Int32).Reshape(4, n).T(), Arange(4*n).As(Int32).Reshape(n, 4)} {
		for _, y := range []*Array{Full(1, n, 4).As(Int32), Full(1, 4, n).As(Int32).T(), Full(1, n, 4).As(Int32).Slice(0, n-1, -n-1, -1), Full(1, n, 4).As(Int32).Slice(1, 3, -5, -1)} {
			for _, d := range []*Device{d, d.With(OneWorkerPerSlice())} {
				if _, err := d.GUVectorize(everySecond, "(n)->(n)", x, Out(y)); err != nil {
					t.Fatal(err)
				}
				for i := range n {
					for j := range 4 {
						want := 1.0
						if j%2 == 0 {
							want = x.At(i, j) + 7
						}
						if got := y.At(i, j); got != want {
							t.Fatalf("element (%d, %d) is %v, want %v", i, j, got, want)
						}
					}
				}
			}
		}
	}
}
