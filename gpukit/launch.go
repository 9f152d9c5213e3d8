package gpukit

import (
	"fmt"
	"reflect"

	"gpunotes/gpukit/internal/frontend"
	"gpunotes/gpukit/internal/ir"
	"gpunotes/gpukit/internal/shape"
)

// Launch runs kernel once for every thread of a grid of blocks and waits for
// it. kernel is a Go function without results; package simt tells it which
// thread it is. Arguments are arrays and slices, which it may read and write
// (parameters of type []float64, [][]float64, ...), and numbers, structs and
// fixed arrays by value. What it writes to a slice or array is there afterwards.
//
// The error is a *CompileError if kernel is outside the kernel language, an
// *ArgumentError if grid, block or an argument does not fit, a *WorkerError if a
// thread failed, a *DeviceError if a GPU could not do it or its checker found a
// race, ErrInterrupted if the user pressed Stop. Overlapping arguments are the
// caller's own business.
func (d *Device) Launch(kernel any, grid Grid, block Block, args ...any) error {
	c, err := d.repeat("Launch", kernel, nil, grid, block, args), error(nil)
	if c == nil {
		c, err = d.launched("Launch", kernel, grid, block, args)
	}
	if err == nil {
		err = d.run(c)
	}
	if err != nil {
		return d.orClosed("Launch", err)
	}
	c.retain(d, nil)
	return nil
}

// launched prepares a launch.
func (d *Device) launched(op string, kernel any, grid Grid, block Block, args []any) (*call, error) {
	c, err := d.start(op, kernel)
	if err != nil {
		return nil, err
	}
	if err := checkGeometry(op, grid, block); err != nil {
		return nil, err
	}
	src := c.fn.source
	if err := c.noOptions(args); err != nil {
		return nil, err
	}
	if len(src.Results) > 0 {
		return nil, c.refuse("write results to an array that is an argument", "%s returns a value, but there is nobody to take it", c.fn.name)
	}
	if len(args) != len(src.Params) {
		return nil, c.refuse("", "%s takes %s, got %d", c.fn.name, parameters(src.Params), len(args))
	}
	c.grid, c.block = grid, block
	c.loop = []int{grid.Z, grid.Y, grid.X, block.Z, block.Y, block.X}
	if _, ok := shape.Size(c.loop); !ok {
		return nil, c.refuse("use fewer blocks", "a grid of %v with blocks of %v has too many threads", grid, block)
	}
	for i, x := range args {
		p := src.Params[i]
		b, err := c.take(d, i, x, p.Written)
		if err != nil {
			return nil, err
		}
		if p.Kind == frontend.Scalar && b.array != nil {
			return nil, c.refuseArg(i+1, p.Name, fmt.Sprintf("declare it as []%v, or pass a number", p.Type), "the argument is an array, the parameter one %v", p.Type)
		}
		if b.array != nil {
			if b.array.NDim() != p.Rank {
				return nil, c.refuseArg(i+1, p.Name, "give the parameter as many [] as the array has dimensions", "the array has shape %s, the parameter is a slice of rank %d", shape.Format(b.array.shape), p.Rank)
			}
			b.loop, b.core, b.strides = make([]int, 6), b.array.shape, b.array.strides
			b.settle()
			b.read = p.Read
			if p.Written {
				if err := c.writable(i, p, &b, x); err != nil {
					return nil, err
				}
			}
		}
		c.args = append(c.args, b)
	}
	if err := c.finish(d); err != nil {
		return nil, err
	}
	return c, c.checkShared(d)
}

// shared is the shared memory of a block in bytes, and as how many types the kernel uses
// the dynamic part.
func (c *call) shared(d *Device) (size, types int) {
	for _, m := range c.prog.ir.Mems {
		switch {
		case m.Space != ir.Shared:
		case m.Len == 0:
			types++
		default:
			size += m.Len * m.Elem.Size()
		}
	}
	if types > 0 {
		size += d.options.sharedBytes
	}
	return size, types
}

// checkShared refuses more shared memory than any card has, and dynamic shared memory that
// the launch does not give.
func (c *call) checkShared(d *Device) error {
	size, types := c.shared(d)
	switch {
	case types > 1:
		return c.refuse("use one of simt.SharedFloat64, SharedFloat32, SharedInt64, SharedInt32 in a kernel", "%s uses the dynamic shared memory as several types", c.fn.name)
	case types == 1 && d.options.sharedBytes == 0:
		return c.refuse(fmt.Sprintf("write gpu.With(gpukit.SharedBytes(n)).%s(...), n being the bytes of a block", c.op), "%s uses dynamic shared memory, but the launch gives it none", c.fn.name)
	case size > maxShared:
		return c.refuse("use smaller arrays, or give each block less to do", "a block of %s needs %s of shared memory, and no card has more than %s", c.fn.name, amount(float64(size)), amount(float64(maxShared)))
	}
	return nil
}

// writable sees to it that what the kernel writes arrives in x.
func (c *call) writable(i int, p frontend.Param, b *bound, x any) error {
	if !inMemory(b.array.store) {
		return c.refuseArg(i+1, p.Name, "make it with gpukit.Zeros, or copy it", "the kernel writes to it, but its elements are computed, not stored")
	}
	if _, ok := x.(*Array); ok || reflect.TypeOf(x) == reflect.TypeOf(sliceBehind(b.array.store)) {
		return nil
	}
	// The argument was copied: nested slices, int and uint.
	a, to := b.array, reflect.ValueOf(x)
	c.after = append(c.after, func() { writeBack(a, to) })
	return nil
}

// writeBack copies the elements of a into the (nested) slice that it was made
// of.
func writeBack(a *Array, to reflect.Value) {
	k := 0
	var fill func(v reflect.Value)
	fill = func(v reflect.Value) {
		if v.Kind() == reflect.Slice {
			for i := range v.Len() {
				fill(v.Index(i))
			}
			return
		}
		switch b := a.store.bits(k); {
		case v.Kind() == reflect.Bool:
			v.SetBool(b != 0)
		case v.CanInt():
			v.SetInt(int64(b))
		case v.CanUint():
			v.SetUint(b)
		default:
			v.SetFloat(toFloat(a.DType(), b))
		}
		k++
	}
	fill(to)
}
