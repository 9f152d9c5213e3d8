package gpukit

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"gpunotes/gpukit/internal/cpu"
	"gpunotes/gpukit/simt"
)

func reversedBlock(x, out []float64) {
	var tile [64]float64
	simt.Shared(&tile)
	i := simt.ThreadIdx().X
	tile[i] = x[i]
	simt.SyncThreads()
	out[i] = tile[63-i]
}

func chatty(x float64) float64 {
	if x > 8 {
		println("large", x)
	}
	return x + 1
}

// TestExplainMachineCode: a plan says what the code is, and shows it beside the source;
// of what has none it says why.
func TestExplainMachineCode(t *testing.T) {
	for _, e := range []cpu.Engine{cpu.AVX2, cpu.AVX512} {
		t.Run(engineNames[e], func(t *testing.T) {
			if !slices.Contains(cpu.Engines(), e) {
				t.Skipf("this machine has %v", cpu.Engines())
			}
			d := openCores(e, 1)
			x := Arange(100).copy()
			p, err := d.Explain(mandelbrot, x, x)
			if err != nil {
				t.Fatal(err)
			}
			same(t, "engine", p.Engine, e.String()+" machine code")
			if len(p.Machine) != 1 {
				t.Fatalf("machine code of %d stages", len(p.Machine))
			}
			m := p.Machine[0]
			same(t, "stage", m.Stage, "mandelbrot")
			width := map[cpu.Engine]int{cpu.AVX2: 256, cpu.AVX512: 512}[e]
			if m.Width != width || m.Lanes < width/64 || m.Lanes%(width/64) != 0 || m.Instructions < 30 || e == cpu.AVX512 && m.Constants < 1 || len(m.InGo) != 0 ||
				m.PerElement != float64(m.Instructions)/float64(m.Lanes) {
				t.Errorf("machine code: %+v", m)
			}
			for _, text := range []string{p.String(), p.HTML()} {
				for _, want := range []string{"registers of " + fmt.Sprint(width) + " bits", "xx, yy := float64(x*x), float64(y*y)", "vmulpd", "out of the loop over them"} {
					if !strings.Contains(text, want) {
						t.Errorf("the plan does not say %q:\n%s", want, text)
					}
				}
			}
			// The listing has each instruction with its address, upwards.
			last := -1
			for line := range strings.Lines(p.Code) {
				at := 0
				if _, err := fmt.Sscanf(line, "%v", &at); err == nil {
					if at <= last {
						t.Fatalf("address %#x after %#x", at, last)
					}
					last = at
				}
			}
			if last < 2*m.Instructions {
				t.Errorf("the last of %d instructions is at %#x", m.Instructions, last)
			}

			if p, err = d.Explain(chatty, x); err != nil || fmt.Sprint(p.Machine[0].InGo) != "[print]" {
				t.Errorf("in Go: %v, %v", p.Machine, err)
			}
			if p, err = d.ExplainLaunch(reversedBlock, Blocks(1), Threads(64), Zeros(64), Zeros(64)); err != nil {
				t.Fatal(err)
			}
			if len(p.Machine) != 0 || !strings.HasPrefix(p.Engine, "portable: ") || !strings.Contains(p.Engine, "no machine code: threads of a block wait for each other, or share memory") {
				t.Errorf("a block with a barrier: %s, %v", p.Engine, p.Machine)
			}
		})
	}
	if p, err := openCores(cpu.Portable, 1).Explain(add2, Arange(9), 1.0); err != nil || p.Engine != inBlocks || len(p.Machine) != 0 {
		t.Errorf("portable: %v, %v", p, err)
	}
}
