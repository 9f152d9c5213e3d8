package gpukit

import (
	"errors"

	"gpunotes/gpukit/internal/cpu"
	"gpunotes/gpukit/internal/ir"
)

// engine is what executes the functions of a device.
type engine interface {
	// compile makes code of an optimised function.
	compile(f *ir.Func, o options) (executable, error)
	// run runs the stages of a call, one after the other. The error is a
	// *ShapeError, cpu.ErrCancelled, a *cpu.WorkerError of a worker of the call or
	// a fault of the device.
	run(d *Device, c *call) error
	// describe names the engine in p, and gives the code that a call would execute.
	describe(d *Device, c *call, p *Plan) error
}

// executable is a function compiled by an engine: what that engine likes.
type executable any

// portable is the engine that runs everywhere.
type portable struct{}

func (portable) compile(f *ir.Func, _ options) (executable, error) { return cpu.Compile(f) }

func (portable) run(d *Device, c *call) error {
	stages, err := c.stages(d)
	if err != nil {
		return err
	}
	for i := range stages {
		s := &stages[i]
		err := d.timed(c, s, func() error { return s.code.(*cpu.Program).Run(s.Launch) })
		var failed *cpu.WorkerError
		if s.per > 0 && errors.As(err, &failed) {
			return c.failed(d, failed.Worker/s.per, failed.Err)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (portable) describe(d *Device, c *call, plan *Plan) error {
	plan.Engine = "portable: every operation over a block of elements, in Go"
	stages, err := c.stages(d)
	if err != nil {
		plan.Engine, plan.Code = "portable", "the arguments do not fit into memory"
		return nil
	}
	plan.stages(stages, func(s *stage) string { return s.code.(*cpu.Program).Describe(&s.Launch) })
	return nil
}
