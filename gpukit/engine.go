package gpukit

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"gpunotes/gpukit/internal/cpu"
	"gpunotes/gpukit/internal/frontend"
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

// cores is the engine of the processor's cores.
type cores struct{ cpu.Engine }

// engineVariable chooses between the engines of a processor.
const engineVariable = "GPUNOTES_CPU"

// engineNames are what engineVariable can hold.
var engineNames = map[cpu.Engine]string{cpu.Portable: "portable", cpu.AVX2: "avx2", cpu.AVX512: "avx512"}

// bestCores is the best engine of this machine, or what engineVariable says.
func bestCores() (cores, error) {
	have := cpu.Engines()
	want := os.Getenv(engineVariable)
	if want == "" {
		return cores{have[0]}, nil
	}
	var names []string
	for _, e := range have {
		if engineNames[e] == want {
			return cores{e}, nil
		}
		names = append(names, engineNames[e])
	}
	return cores{}, fmt.Errorf("%s=%s: this machine has %s; set it to one of these, or not at all", engineVariable, want, strings.Join(names, ", "))
}

func (e cores) compile(f *ir.Func, _ options) (executable, error) {
	return cpu.Compile(f, cpu.Options{Engine: e.Engine, Body: frontend.OutlinedBody})
}

func (cores) run(d *Device, c *call) error {
	stages, err := c.stages(d)
	if err != nil {
		return err
	}
	for i := range stages {
		s := &stages[i]
		s.Launch.Progress = d.progress(i, len(stages))
		err := d.timed(c, s, func() error { return s.code.(*cpu.Program).Run(s.Launch) })
		if err != nil {
			var failed *cpu.WorkerError
			if s.per > 0 && errors.As(err, &failed) {
				return c.failed(d, failed.Worker/s.per, failed.Err)
			}
			return err
		}
	}
	return nil
}

// The engines in words.
const (
	inBlocks = "portable: every operation over a block of elements, in Go"
	inLanes  = "%v machine code"
)

func (e cores) describe(d *Device, c *call, plan *Plan) error {
	stages, err := c.stages(d)
	if err != nil {
		plan.Engine, plan.Code = "portable", "the arguments do not fit into memory"
		return nil
	}
	plan.Engine = inBlocks
	var refused []string
	plan.stages(stages, func(s *stage) string {
		p := s.code.(*cpu.Program)
		if e.Engine == cpu.Portable {
			return p.Describe(&s.Launch)
		}
		if in, why := p.Inside(&s.Launch); why == nil {
			plan.Machine = append(plan.Machine, PlanMachine{Stage: s.name, Instructions: in.Instructions, Width: in.Width, Lanes: in.Lanes,
				PerElement: float64(in.Instructions) / float64(in.Lanes), Spills: in.Spills, Constants: in.Constants, PerCall: in.PerCall, PerRow: in.PerRow, InGo: in.InGo})
		} else {
			at := ""
			if len(stages) > 1 {
				at = s.name + ": "
			}
			refused = append(refused, fmt.Sprintf("%sno machine code: %v", at, why))
		}
		return c.fn.withSource(p.Describe(&s.Launch))
	})
	if e.Engine != cpu.Portable && len(refused) < len(stages) {
		plan.Engine = fmt.Sprintf(inLanes, e.Engine)
	}
	if len(refused) > 0 {
		plan.Engine += "; " + strings.Join(refused, "; ")
	}
	return nil
}
