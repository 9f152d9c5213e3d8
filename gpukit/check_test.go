package gpukit

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"gpunotes/gpukit/simt"
)

// A machine that is busy must not leave the tests without a check.
func init() { sampleTime = time.Second }

// lying runs like an engine and then changes what it computed.
type lying struct {
	engine
	lie func(c *call)
}

func (l lying) run(d *Device, c *call) error {
	err := l.engine.run(d, c)
	l.lie(c)
	return err
}

func checkedHalf(x float64) float64 { return x / 2 }

func checkedRow(x, out []float64) {
	for i := range x {
		out[i] = x[i] + 1
	}
}

func checkedKernel(x []float64) {
	if i := simt.Grid1(); i < len(x) {
		x[i] = float64(3*x[i]) + 1
	}
}

// checkedRacy writes where other threads read and write.
func checkedRacy(x []float64) {
	if i := simt.Grid1(); i+1 < len(x) {
		x[i] = x[i+1] + float64(i)
		x[0] = float64(i)
	}
}

func checkedSum(x, sum []float64) {
	if i := simt.Grid1(); i < len(x) {
		simt.AddFloat64(&sum[0], x[i])
	}
}

// TestSelfCheck lets an engine compute something else, in the last worker.
func TestSelfCheck(t *testing.T) {
	last := func(a *Array) { a.store.setBits(a.Size()-1, a.store.bits(a.Size()-1)^1) }
	result := func(c *call) { last(c.outs[0].array) }
	first := func(c *call) { last(c.args[0].array) }
	x := func() *Array { return Linspace(0, 1, 100).copy() }
	for _, c := range []struct {
		name string
		lie  func(c *call)
		run  func(d *Device) error
		want string
	}{
		{"Vectorize", result, func(d *Device) error { _, err := d.Vectorize(checkedHalf, x()); return err }, "result 1 = "},
		{"GUVectorize", result, func(d *Device) error {
			_, err := d.GUVectorize(checkedRow, "(n)->(n)", x().Reshape(5, 20))
			return err
		}, "element 99 of out"},
		{"Launch", first, func(d *Device) error { return d.Launch(checkedKernel, Blocks(1), Threads(100), x()) }, "element 99 of x"},
		{"races", first, func(d *Device) error { return d.Launch(checkedRacy, Blocks(1), Threads(100), x()) }, ""},
		{"atomics", func(c *call) { last(c.args[1].array) }, func(d *Device) error {
			return d.Launch(checkedSum, Blocks(1), Threads(100), x(), Zeros(1))
		}, ""},
		{"FastMath", result, func(d *Device) error {
			_, err := d.With(FastMath()).Vectorize(checkedHalf, x())
			return err
		}, ""},
	} {
		d := &Device{core: &core{name: "lying", engine: lying{cores{}, c.lie}}}
		err := c.run(d)
		var mis *MiscompileError
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%s: %v", c.name, err)
		case c.want != "" && (!errors.As(err, &mis) || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s: error %v, want one about %s", c.name, err, c.want)
		case c.want != "":
			if again := c.run(d); again == nil {
				t.Errorf("%s: the next call goes on with the code", c.name)
			}
			honest := &Device{core: &core{name: "honest", engine: cores{}}}
			if err := c.run(honest); err != nil {
				t.Errorf("%s: %v on an engine that computes what is right", c.name, err)
			}
		}
	}
}

// What stays on a GPU is checked there.
func TestSelfCheckOnTheDevice(t *testing.T) {
	for _, resident := range []bool{false, true} {
		d := quadro(t)
		d.engine = lying{d.engine, func(c *call) {
			a := c.outs[0].array
			a.store.setBits(a.Size()-1, a.store.bits(a.Size()-1)^1)
		}}
		x := Arange(100)
		if resident {
			x = Must(d.Put(x))
		}
		before := held(d)
		_, err := d.Vectorize(checkedHalf, x)
		var mis *MiscompileError
		if !errors.As(err, &mis) || !strings.Contains(err.Error(), "result 1 = ") || mis.Index[0] != 99 {
			t.Errorf("resident %v: %v", resident, err)
		}
		if held(d) != before {
			t.Error("the result is still held")
		}
	}
}

// TestSelfCheckInPlace has results that replace arguments: the check must have
// looked before.
func TestSelfCheckInPlace(t *testing.T) {
	eachEngine(t, func(t *testing.T, d *Device) {
		x := Linspace(0, 1, 1000).copy()
		if _, err := d.Vectorize(checkedHalf, x, Out(x)); err != nil {
			t.Error(err)
		}
		if err := d.Launch(checkedKernel, Blocks(10), Threads(100), x); err != nil {
			t.Error(err)
		}
		if got, want := x.At(999), 2.5; got != want {
			t.Errorf("last element %v, want %v", got, want)
		}
	})
}

func accumulates(x, out []float64) {
	for i := range x {
		out[i] += x[i]
	}
}

func increments(x []float64) {
	if i := simt.Grid1(); i < len(x) {
		x[i]++
	}
}

// TestSelfCheckOfZeros has results whose memory was something else before.
func TestSelfCheckOfZeros(t *testing.T) {
	eachEngine(t, func(t *testing.T, d *Device) {
		old, x := Must(d.Put([]float64{50, 60, 70, 80})), Must(d.Put([]float64{1, 2, 3, 4}))
		old.Free()
		z, err := d.GUVectorize(accumulates, "(n)->(n)", x)
		if err != nil || z.Sum() != 10 {
			t.Errorf("%v, %v", z, err)
		}
	})
}

// TestSelfCheckAmongOthers has calls that write to one array at the same time,
// which is their users' race and not a fault of the code.
func TestSelfCheckAmongOthers(t *testing.T) {
	eachKind(t, func(t *testing.T, d *Device) {
		x := Must(d.Put(make([]float64, 64)))
		var wg sync.WaitGroup
		for range 16 {
			wg.Go(func() {
				for range 20 {
					if err := d.Launch(increments, Blocks(1), Threads(64), x); err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
	})
}

// TestExplainSelfCheck shows that what a plan says of the check becomes true.
func TestExplainSelfCheck(t *testing.T) {
	d := MustOpen("cpu")
	plan := func() string {
		p, err := d.Explain(checkedHalf, []float64{1, 2, 3})
		if err != nil {
			t.Fatal(err)
		}
		return p.SelfCheck
	}
	if s := plan(); !strings.Contains(s, "up to 4 workers of the first call") {
		t.Errorf("before: %s", s)
	}
	Must(d.Vectorize(checkedHalf, []float64{1, 2, 3}))
	if s := plan(); s != "workers of the first call agreed with the reference evaluator" {
		t.Errorf("after: %s", s)
	}
	p, err := d.ExplainLaunch(checkedSum, Blocks(1), Threads(1), []float64{1}, []float64{0})
	if err != nil || p.SelfCheck != "none: the function has atomic operations" {
		t.Errorf("atomics: %v, %v", p, err)
	}
}
