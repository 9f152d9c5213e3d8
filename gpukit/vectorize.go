package gpukit

import (
	"errors"
	"fmt"

	"gpunotes/gpukit/host"
	"gpunotes/gpukit/internal/cpu"
	"gpunotes/gpukit/internal/ir"
	"gpunotes/gpukit/internal/shape"
)

// call is a call of a vectorized function that was checked and compiled, ready
// to run or to be explained.
type call struct {
	op   string
	fn   *function
	prog *program
	args []argument // parameters, then captured globals
	loop []int      // loop dimensions

	resident bool // some argument lives on the device, so the results do
}

// Vectorize calls fn once for every element and returns the results as one
// array. fn is a Go function with parameters and one result of scalar types.
// There is one argument for each parameter: an array or a (nested) Go slice of
// the parameter's dtype, or a number, which is converted if its value is exactly
// representable. Arrays are broadcast by numpy's rule: shapes are aligned at the
// last dimension and dimensions of size 1 repeat; the result has the common
// shape, and is 0-d if all arguments are numbers.
//
// The error is a *CompileError if fn is outside the kernel language, an
// *ArgumentError or *ShapeError if the arguments do not fit, a *WorkerError if
// fn failed for an element, ErrInterrupted if the user pressed Stop.
func (d *Device) Vectorize(fn any, args ...any) (*Array, error) {
	c, err := d.prepare("Vectorize", fn, args)
	if err != nil {
		return nil, err
	}
	n, _ := shape.Size(c.loop)
	out := newArray(makeStorage(DType(c.fn.source.Results[0]), n), c.loop)
	if c.resident {
		d.keep(out)
	}
	if err := d.run(c, out); err != nil {
		return nil, err
	}
	return out, nil
}

// prepare checks the arguments of a call and compiles its function.
func (d *Device) prepare(op string, fn any, args []any) (*call, error) {
	if err := d.usable(op); err != nil {
		return nil, err
	}
	f, err := d.function(fn)
	if err != nil {
		var ce *CompileError
		if errors.As(err, &ce) {
			return nil, err
		}
		return nil, fmt.Errorf("gpukit.%s: %w", op, err)
	}
	src := f.source
	if n := len(src.Results); n != 1 {
		return nil, &ArgumentError{Op: op, Detail: fmt.Sprintf("%s returns %d values", f.name, n), Remedy: "return exactly one number or bool"}
	}
	if len(args) != len(src.Params) {
		return nil, &ArgumentError{Op: op, Detail: fmt.Sprintf("%s takes %s, got %d", f.name, parameters(src.ParamNames), len(args))}
	}
	c := &call{op: op, fn: f, args: make([]argument, 0, len(src.Func.Params))}
	shapes := make([][]int, 0, len(args))
	for i, x := range args {
		a, err := toArgument(op, i+1, src.ParamNames[i], src.Params[i], x)
		if err != nil {
			return nil, err
		}
		if a.array != nil && a.array.home() != nil {
			if home := a.array.home(); home != d.core {
				return nil, &ArgumentError{Op: op, Arg: i + 1, Name: src.ParamNames[i],
					Detail: fmt.Sprintf("the array is on device %s, the call on %s", home.name, d.name), Remedy: "pass it as .Host(), or Put it there"}
			}
			c.resident = true
		}
		c.args = append(c.args, a)
		shapes = append(shapes, a.dims())
	}
	if err := c.capture(); err != nil {
		return nil, err
	}
	loop, conflict := shape.Broadcast(shapes...)
	if conflict != nil {
		return nil, c.conflict(conflict)
	}
	if _, ok := shape.Size(loop); !ok {
		return nil, &ShapeError{Op: op, Detail: fmt.Sprintf("the arguments broadcast to shape %s, which is too large", shape.Format(loop))}
	}
	c.loop = loop
	c.prog, err = d.program(f)
	return c, err
}

func parameters(names []string) string {
	switch len(names) {
	case 0:
		return "no arguments"
	case 1:
		return fmt.Sprintf("1 argument (%s)", names[0])
	}
	s := names[0]
	for _, n := range names[1:] {
		s += ", " + n
	}
	return fmt.Sprintf("%d arguments (%s)", len(names), s)
}

// capture reads the notebook variables that the function uses.
func (c *call) capture() error {
	src := c.fn.source
	for i, name := range src.Captured {
		p := src.Func.Params[len(src.Params)+i]
		d, ok := c.fn.scope.Lookup(name)
		if !ok || !d.Value.IsValid() || dtypeOfKind(d.Value.Kind()).ir() != src.Func.Types[p.Value] {
			return &ArgumentError{Op: c.op, Name: name, Detail: fmt.Sprintf("the variable %s, which %s uses, is no longer a %v", name, c.fn.name, src.Func.Types[p.Value]), Remedy: "run the cell of the function again"}
		}
		c.args = append(c.args, argument{scalar: bitsOf(d.Value)})
	}
	return nil
}

// conflict says which arguments do not broadcast.
func (c *call) conflict(x *shape.Conflict) error {
	names := c.fn.source.ParamNames
	return &ShapeError{Op: c.op, Detail: fmt.Sprintf(
		"arguments %d (%s) of shape %s and %d (%s) of shape %s do not broadcast: dimension %d from the end has sizes %d and %d, which must be equal or 1",
		x.First+1, names[x.First], shape.Format(c.args[x.First].dims()), x.Second+1, names[x.Second], shape.Format(c.args[x.Second].dims()),
		x.FromEnd, x.FirstSize, x.SecondSize)}
}

func (c *call) types() []ir.Type {
	f := c.fn.source.Func
	t := make([]ir.Type, len(f.Params))
	for i, p := range f.Params {
		t[i] = f.Types[p.Value]
	}
	return t
}

// launch describes the run of the call to the engine; out may be nil.
func (d *Device) launch(c *call, out *Array) cpu.Launch {
	l := cpu.Launch{
		Shape:      c.loop,
		In:         make([]cpu.Operand, len(c.args)),
		Goroutines: d.workers(),
		Cancelled:  host.Current().Interrupted,
	}
	for i, t := range c.types() {
		l.In[i] = c.args[i].operand(t, c.loop)
	}
	if out != nil {
		l.Out = []cpu.Operand{argument{array: out}.operand(out.DType().ir(), c.loop)}
	}
	return l
}

// run runs the call into out.
func (d *Device) run(c *call, out *Array) error {
	err := c.prog.cpu.Run(d.launch(c, out))
	var failed *cpu.WorkerError
	switch {
	case err == nil:
		return nil
	case errors.Is(err, cpu.ErrCancelled):
		return ErrInterrupted
	case errors.As(err, &failed):
		e := &WorkerError{Func: c.fn.name, Index: failed.Index, Err: failed.Err}
		for i, p := range c.fn.source.Func.Params {
			e.Args = append(e.Args, p.Name+" = "+ir.FormatBits(c.fn.source.Func.Types[p.Value], failed.Args[i]))
		}
		return e
	}
	return fmt.Errorf("gpukit.%s: %w", c.op, err)
}
