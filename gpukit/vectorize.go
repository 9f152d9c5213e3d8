package gpukit

import (
	"fmt"

	"gpunotes/gpukit/internal/frontend"
)

// Vectorize calls fn once for every element and returns the results as one
// array. fn is a Go function with parameters and one result of scalar types;
// structs and fixed arrays are taken by value, the same for every element.
// There is one argument for each parameter: an array or a (nested) Go slice of
// the parameter's dtype, or a number, which is converted if its value is exactly
// representable. Arrays are broadcast by numpy's rule: shapes are aligned at the
// last dimension and dimensions of size 1 repeat; the result has the common
// shape, and is 0-d if all arguments are numbers. A last argument Out(a) takes
// the result; a function of several results needs one, and the first is
// returned.
//
// Results are where the arguments are: on the device if one of them is, else in
// host memory.
//
// The error is a *CompileError if fn is outside the kernel language, an
// *ArgumentError or *ShapeError if the arguments do not fit, a *WorkerError if
// fn failed for an element, a *DeviceError if a GPU could not do it,
// ErrInterrupted if the user pressed Stop.
func (d *Device) Vectorize(fn any, args ...any) (*Array, error) {
	a, _, err := d.spreadAndRun("Vectorize", fn, nil, 1, args)
	return a, err
}

// Vectorize2 is Vectorize for functions of two results.
func (d *Device) Vectorize2(fn any, args ...any) (*Array, *Array, error) {
	return d.spreadAndRun("Vectorize2", fn, nil, 2, args)
}

// GUVectorize calls fn once for every slice of its arguments. layout says, in
// numpy's signature grammar, which dimensions of each argument one call sees: in
// "(m,n),(n)->(m)" the first argument brings a matrix, the second a vector, and
// the result is a vector; names are sizes that must agree. These core dimensions
// are the last ones of the arguments; all others, the loop dimensions, are
// broadcast, and the function is called for each element of them.
//
// There is a worker for each call, and where fn has loops, for each iteration: a
// loop whose number of iterations is known before, the same for all calls, and
// whose iterations do not need each other's results, becomes a dimension of the
// index space, as if the layout had been cut finer. Sums and other accumulations
// are kept in order, unless FastMath allows otherwise. Nothing of this changes a bit
// of the results, or which call is named when one fails. ExplainGU says of each loop what became of it and why, and
// OneWorkerPerSlice keeps them all serial.
//
// A parameter with core dimensions is a slice with as many [] ([][]float64 for
// two); one without, "()", is a number, or a slice of one element. Results are
// the last parameters, which the function writes; they begin as zeros, or with
// Out as what is there. If every result is "()", the function may return them
// instead.
//
// The errors are those of Vectorize; a layout that cannot be parsed is an
// *ArgumentError with the position.
func (d *Device) GUVectorize(fn any, layout string, args ...any) (*Array, error) {
	a, _, err := d.spreadAndRun("GUVectorize", fn, &layout, 1, args)
	return a, err
}

// GUVectorize2 is GUVectorize for two results.
func (d *Device) GUVectorize2(fn any, layout string, args ...any) (*Array, *Array, error) {
	return d.spreadAndRun("GUVectorize2", fn, &layout, 2, args)
}

// spreadAndRun gives the first two results.
func (d *Device) spreadAndRun(op string, fn any, layout *string, n int, args []any) (a, b *Array, err error) {
	c := d.repeat(op, fn, layout, Grid{}, Block{}, args)
	if c == nil {
		c, err = d.spread(op, fn, layout, n, args)
	}
	if err == nil {
		err = d.run(c)
	}
	if err != nil {
		return nil, nil, d.orClosed(op, err)
	}
	a = c.outs[0].array
	if len(c.outs) > 1 {
		b = c.outs[1].array
	}
	c.retain(d, layout)
	return a, b, nil
}

func parameters(ps []frontend.Param) string {
	if len(ps) == 0 {
		return "no arguments"
	}
	s := ps[0].Name
	for _, p := range ps[1:] {
		s += ", " + p.Name
	}
	return fmt.Sprintf("%s (%s)", counted(len(ps), "argument", "arguments"), s)
}
