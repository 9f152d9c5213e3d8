package gpukit

import (
	"gpunotes/gpukit/internal/cpu"
	"gpunotes/gpukit/internal/ir"
)

// engine is what executes the functions of a device.
type engine interface {
	// compile makes code of a function: as the front end gave it, and optimised.
	compile(source, optimised *ir.Func, o options) (executable, error)
}

// executable is a function compiled by an engine.
type executable interface {
	// run runs a call. The error is a *ShapeError, cpu.ErrCancelled, a
	// *cpu.WorkerError or a fault of the device.
	run(d *Device, c *call) error
	// describe names the engine in p, and gives the code that a call would execute.
	describe(d *Device, c *call, p *Plan) error
}

// portable is the engine that runs everywhere.
type portable struct{}

type portableCode struct{ *cpu.Program }

func (portable) compile(_, optimised *ir.Func, _ options) (executable, error) {
	p, err := cpu.Compile(optimised)
	return portableCode{p}, err
}

func (p portableCode) run(d *Device, c *call) error {
	l, err := c.launch(d)
	if err != nil {
		return err
	}
	return d.timed(c, func() error { return p.Run(l) })
}

func (p portableCode) describe(d *Device, c *call, plan *Plan) error {
	l, err := c.launch(d)
	if err != nil {
		plan.Engine, plan.Code = "portable", "the arguments do not fit into memory"
		return nil
	}
	plan.Engine, plan.Code = "portable: every operation over a block of elements, in Go", p.Describe(&l)
	return nil
}
