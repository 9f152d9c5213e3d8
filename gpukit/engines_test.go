package gpukit

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"gpunotes/gpukit/internal/cpu"
	"gpunotes/gpukit/internal/driver/sim"
	"gpunotes/gpukit/internal/ir"
)

// testedEngine is an engine of the table.
type testedEngine struct {
	name string
	open func() *Device
}

// engines are compared with each other and with native Go by the conformance
// suite and the fuzzer. An engine joins with one line. Of those of the processor,
// what this machine has is there; TestEnginesOfThisMachine says what is not.
var engines = slices.Concat([]testedEngine{{"reference", openReference}},
	coresHere(cpu.Portable, 0),
	coresHere(cpu.AVX2, 1),
	coresHere(cpu.AVX512, 1),
	[]testedEngine{
		{"parallel", func() *Device { return MustOpen("parallel") }},
		{"sim:quadro-k2000", func() *Device { return openStrict("sim:quadro-k2000") }},
		{"sim:h200", func() *Device { return openStrict("sim:h200") }},
	})

// coresHere is an engine of the processor on so many goroutines, 0 for all, or nothing
// if this machine lacks it.
func coresHere(e cpu.Engine, goroutines int) []testedEngine {
	if !slices.Contains(cpu.Engines(), e) {
		return nil
	}
	return []testedEngine{{engineNames[e], func() *Device { return openCores(e, goroutines) }}}
}

func openCores(e cpu.Engine, goroutines int) *Device {
	return &Device{core: &core{name: engineNames[e], goroutines: goroutines, engine: cores{e}}}
}

// TestEnginesOfThisMachine skips what cannot be tested here.
func TestEnginesOfThisMachine(t *testing.T) {
	for _, e := range []cpu.Engine{cpu.Portable, cpu.AVX2, cpu.AVX512} {
		t.Run(engineNames[e], func(t *testing.T) {
			have := slices.Contains(cpu.Engines(), e)
			t.Setenv(engineVariable, engineNames[e])
			for _, name := range []string{"cpu", "parallel"} {
				d, err := Open(name)
				switch {
				case have && (err != nil || d.engine != engine(cores{e})):
					t.Fatalf("Open(%q) with %s=%s: %v, %v", name, engineVariable, engineNames[e], d, err)
				case !have && (err == nil || !strings.Contains(err.Error(), "this machine has ") || !strings.Contains(err.Error(), "portable")):
					t.Fatalf("Open(%q) with %s=%s: error %v", name, engineVariable, engineNames[e], err)
				}
			}
			if !have {
				t.Skipf("not tested: this machine has %v", cpu.Engines())
			}
		})
	}
	t.Setenv(engineVariable, "sse9")
	if _, err := Open("cpu"); err == nil || !strings.Contains(err.Error(), "GPUNOTES_CPU=sse9") || !strings.Contains(err.Error(), "portable") {
		t.Errorf("an engine that nobody has: error %v", err)
	}
	t.Setenv(engineVariable, "")
	if d := MustOpen("cpu"); d.engine != engine(cores{cpu.Engines()[0]}) {
		t.Errorf("Open takes %v, the best of %v", d.engine, cpu.Engines())
	}
}

// ENGINES=reference,portable has the suite and the fuzzer try these alone. With a real
// card among them, it is also the only kind of device that tests of devices try.
func init() {
	if only := os.Getenv("ENGINES"); only != "" {
		for _, name := range strings.Split(only, ",") {
			if strings.HasPrefix(name, "cuda:") {
				kinds = []string{name}
			}
		}
		all := engines
		engines = engines[:0:0]
		for _, e := range all {
			if slices.Contains(strings.Split(only, ","), e.name) {
				engines = append(engines, e)
			}
		}
		if len(engines) < len(strings.Split(only, ",")) { // else the tests would pass without it
			fmt.Fprintf(os.Stderr, "ENGINES=%s: not all of these are there\n", only)
			os.Exit(1)
		}
	}
}

// kinds are devices of either kind: of what a test says of devices, all that can
// differ differs between these.
var kinds = []string{"parallel", "sim:quadro-k2000"}

// eachKind runs f as a subtest for the host's cores and for a GPU.
func eachKind(t *testing.T, f func(t *testing.T, d *Device)) {
	for _, name := range kinds {
		t.Run(name, func(t *testing.T) {
			d := MustOpen(name)
			defer d.Close()
			f(t, d)
		})
	}
}

// eachEngine runs f as a subtest for every engine.
func eachEngine(t *testing.T, f func(t *testing.T, d *Device)) {
	for _, e := range engines {
		t.Run(e.name, func(t *testing.T) {
			d := e.open()
			defer d.Close()
			f(t, d)
		})
	}
}

// openPortable opens the portable engine on all cores.
func openPortable() *Device { return openCores(cpu.Portable, 0) }

// openStrict opens a simulated card on which code is an error that another card
// could execute otherwise.
func openStrict(name string) *Device {
	g, err := simulatedWith(name, sim.Options{Strict: true})
	if err != nil {
		panic(err)
	}
	return g.device()
}

// openReference opens the reference evaluator as a device. It runs functions as
// they were written, not optimised.
func openReference() *Device {
	return &Device{core: &core{name: "reference", goroutines: 1, engine: reference{}}}
}

type reference struct{}

func (reference) compile(*ir.Func, options) (executable, error) { return nil, nil }

func (reference) describe(_ *Device, c *call, p *Plan) error {
	p.Engine, p.Code = "reference evaluator", c.fn.source.Func.String()
	return nil
}

func (reference) run(d *Device, c *call) error {
	l, err := c.bind(d)
	if err != nil {
		return err
	}
	n := 1
	for _, s := range l.Shape {
		n *= s
	}
	var mems []ir.Storage
	for _, m := range l.Mems {
		mems = append(mems, memoryOf{storageOf(m)})
	}
	e := ir.Evaluator{Cancelled: l.Cancelled, Print: l.Print, DynamicShared: l.DynamicShared}
	group := max(l.Group, 1)
	for w := 0; w < n; w += group {
		var args [][]ir.Bits
		for i := range group {
			args = append(args, workerArgs(&l.Launch, w+i))
		}
		out, err := e.RunBlock(c.fn.source.Func, mems, args)
		var fault *ir.FaultError
		switch {
		case errors.As(err, &fault) && fault.Fault == ir.Cancelled:
			return cpu.ErrCancelled
		case errors.As(err, &fault):
			w += fault.Worker
			return &cpu.WorkerError{Worker: w, Index: unravel(w, l.Shape), Args: args[fault.Worker], Err: err}
		case err != nil:
			return err
		}
		for i, res := range out {
			for j, b := range res {
				storageOf(l.Out[j].Data).setBits(element(&l.Out[j], unravel(w+i, l.Shape)), b)
			}
		}
	}
	return nil
}

// memoryOf is a storage as a memory of the evaluator.
type memoryOf struct{ storage }

func (w memoryOf) Load(i int) ir.Bits     { return w.bits(i) }
func (w memoryOf) Store(i int, b ir.Bits) { w.setBits(i, b) }
