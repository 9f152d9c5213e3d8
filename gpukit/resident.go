package gpukit

import (
	"fmt"
	"sync/atomic"
)

// resident is storage that belongs to a device: it lasts until Free or until
// the device is closed. Views share it.
type resident struct {
	storage
	home  *core
	freed atomic.Bool
}

func (r *resident) slice() any { return sliceBehind(r.storage) }

// gone says why the storage cannot be used any more, or "".
func (r *resident) gone() string {
	switch {
	case r.freed.Load():
		return "the array was freed"
	case r.home.closed.Load():
		return fmt.Sprintf("the array was on device %s, which is closed", r.home.name)
	}
	return ""
}

// home is the device on which a lives, nil for the host.
func (a *Array) home() *core {
	if r, ok := a.store.(*resident); ok {
		return r.home
	}
	return nil
}

// unusable says why the elements of a are not there, or "".
func (a *Array) unusable() string {
	switch r, ok := a.store.(*resident); {
	case a.store == nil:
		return "the array was not made by gpukit"
	case ok:
		return r.gone()
	}
	return ""
}

// Put copies x to the device: an array, or a (nested) slice of numbers. Calls
// with the copy as an argument leave their results on the device too. It is
// freed by Free, when the device is closed, or when nothing refers to it any more.
// A GPU without room for it is a *DeviceError, which is ErrOutOfMemory.
func (d *Device) Put(x any) (*Array, error) {
	if err := d.usable("Put"); err != nil {
		return nil, err
	}
	a, ok := x.(*Array)
	switch {
	case !ok:
		if why := caught(func() { a = FromSlice(x) }); why != "" {
			return nil, &ArgumentError{Op: "Put", Arg: 1, Detail: why, Remedy: "pass an array or a rectangular slice of numbers"}
		}
	case a == nil:
		return nil, &ArgumentError{Op: "Put", Arg: 1, Detail: "the array is nil"}
	case a.unusable() != "":
		return nil, d.orClosed("Put", &ArgumentError{Op: "Put", Arg: 1, Detail: a.unusable()})
	}
	if d.gpu != nil {
		return d.placed("Put", func() (*Array, error) { return d.gpu.upload(a) })
	}
	return d.made("Put", a.copy)
}

// Empty returns an array of the given dtype and shape on the device. Its
// elements are zero. The error is a *ShapeError, an *ArgumentError, or, of a GPU,
// a *DeviceError.
func (d *Device) Empty(t DType, dims ...int) (*Array, error) {
	if err := d.usable("Empty"); err != nil {
		return nil, err
	}
	if !t.valid() {
		return nil, &ArgumentError{Op: "Empty", Arg: 1, Detail: fmt.Sprintf("%v is not a dtype", t), Remedy: "use gpukit.Float64 and its kin"}
	}
	if d.gpu != nil {
		return d.placed("Empty", func() (*Array, error) { return d.gpu.empty(t, dims) })
	}
	return d.made("Empty", func() *Array { return newArray(makeStorage(t, sizeOf("Empty", dims)), dims) })
}

// made makes an array that is the device's.
func (d *Device) made(op string, f func() *Array) (a *Array, err error) {
	if why := caught(func() { a = f() }); why != "" {
		return nil, &ShapeError{Op: op, Detail: why}
	}
	return d.keep(a), nil
}

// placed makes an array in the memory of the device, a GPU.
func (d *Device) placed(op string, f func() (*Array, error)) (a *Array, err error) {
	if why := caught(func() { a, err = f() }); why != "" {
		return nil, d.orClosed(op, &ShapeError{Op: op, Detail: why})
	}
	if err != nil {
		return nil, d.orClosed(op, d.gpu.fault(op, err))
	}
	return d.keep(a), nil
}

// beside puts b where a is: on the same device, if that is where it is. It panics
// with a *ShapeError if it does not fit there.
func (a *Array) beside(op string, b *Array) *Array {
	home := a.home()
	if home == nil {
		return b
	}
	d := &Device{core: home}
	if home.gpu != nil {
		out, err := d.placed(op, func() (*Array, error) { return home.gpu.upload(b) })
		if err != nil {
			panic(&ShapeError{Op: op, Detail: err.Error()})
		}
		return out
	}
	return d.keep(b)
}

// keep makes the storage of a new array the device's.
func (d *Device) keep(a *Array) *Array {
	a.store = &resident{storage: a.store, home: d.core}
	return a
}

// Sync waits until everything that was started on the device is done, and
// returns the first error of it. A call on a GPU may return before its work is done
// if all its arrays are on the device and no worker can fail or print; what goes
// wrong in it is then the error of Sync or of the next call. Whoever reads an element
// waits too. On a CPU every call has waited already.
func (d *Device) Sync() error {
	if err := d.usable("Sync"); err != nil || d.gpu == nil {
		return err
	}
	return d.gpu.fault("Sync", d.gpu.sync())
}
