package gpukit

import (
	"errors"
	"strings"
	"testing"
)

func TestPutEmptyFree(t *testing.T) {
	eachKind(t, putEmptyFree)
}

func putEmptyFree(t *testing.T, d *Device) {
	host := []float64{1, 2, 3}
	a := Must(d.Put(host))
	host[0] = 9
	same(t, "a copy", a.At(0), 1.0)
	same(t, "of a generator", Must(d.Put(Linspace(0, 1, 3))).Float64s(), []float64{0, 0.5, 1})
	same(t, "Empty", Must(d.Empty(Int32, 2, 2)).Float64s(), []float64{0, 0, 0, 0})
	same(t, "0-d", Must(d.Empty(Bool)).Size(), 1)

	h := a.Host()
	view := a.Slice(0, 2, -4, -1)
	a.Free()
	a.Free()
	same(t, "Host survives", h.Float64s(), []float64{1, 2, 3})
	shapeError(t, "At after Free", func() { view.At(0) }, "freed")
	shapeError(t, "Float64s after Free", func() { a.Float64s() }, "freed")
	if !strings.Contains(a.String(), "freed") || !strings.Contains(view.HTML(), "freed") {
		t.Error(a.String(), view.HTML())
	}
	if _, err := d.Vectorize(add1, view); err == nil || !strings.Contains(err.Error(), "argument 1 (x): the array was freed") {
		t.Error(err)
	}
	if _, err := d.Put(a); err == nil || !strings.Contains(err.Error(), "freed") {
		t.Error(err)
	}
	for name, err := range map[string]error{
		"nil array":   second(d.Put((*Array)(nil))),
		"nil":         second(d.Put(nil)),
		"ragged":      second(d.Put([][]int{{1}, {}})),
		"no dtype":    second(d.Empty(0, 2)),
		"negative":    second(d.Empty(Float64, -2)),
		"nil device":  second((*Device)(nil).Put(1)),
		"nil device2": (*Device)(nil).Sync(),
	} {
		if err == nil {
			t.Errorf("%s: no error", name)
		}
	}

	b := Must(d.Put([]int{1}))
	d.Close()
	shapeError(t, "after Close", func() { b.Item() }, "device "+d.Name(), "closed")
	if _, err := d.Put(1); !errors.Is(err, ErrClosed) {
		t.Error(err)
	}
}

func second(_ *Array, err error) error { return err }

func TestPlacement(t *testing.T) {
	d, other := MustOpen("cpu"), MustOpen("parallel")
	a := Must(d.Put([]float64{1, 2}))
	z := Must(d.Vectorize(dist, a, 1.0, 2.0, []float64{3, 4}, 5.0))
	if z.home() != d.core {
		t.Error("a device argument, but the result is on the host")
	}
	if z := Must(d.Vectorize(add1, []float64{1})); z.home() != nil {
		t.Error("host arguments, but the result is on the device")
	}
	if z := Must(d.With(FastMath()).Vectorize(add1, a)); z.home() != d.core {
		t.Error("With is not the same device")
	}
	_, err := other.Vectorize(add1, a)
	if err == nil || !strings.Contains(err.Error(), "cpu") || !strings.Contains(err.Error(), "parallel") || !strings.Contains(err.Error(), ".Host()") {
		t.Error(err)
	}
}
