package gpukit

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"gpunotes/gpukit/internal/cpu"
	"gpunotes/gpukit/simt"
	"gpunotes/gpukit/trace"
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

func tooMuchForMost(x []float64) {
	var s [10000]float64
	simt.Shared(&s)
	t := simt.ThreadIdx().X
	s[t] = x[t]
	simt.SyncThreads()
	x[t] = s[31-t]
}

// What a plan says of shared memory and occupancy is what the launch has, on every card.
func TestExplainOccupancy(t *testing.T) {
	for _, info := range Devices() {
		if !strings.HasPrefix(info.Name, "sim:") {
			continue
		}
		t.Run(info.Name, func(t *testing.T) {
			d := MustOpen(info.Name)
			defer d.Close()
			for _, c := range []struct {
				kernel any
				n      int // threads of a block
				shared int // dynamic
				args   []any
			}{
				{saxpy, 32, 0, []any{2.0, Zeros(64), Zeros(64)}},
				{saxpy, 48, 0, []any{2.0, Zeros(64), Zeros(64)}},
				{saxpy, 768, 0, []any{2.0, Zeros(64), Zeros(64)}},
				{saxpy, 1024, 0, []any{2.0, Zeros(64), Zeros(64)}},
				{blockSums, 256, 0, []any{Zeros(64), Zeros(4)}},
				{blockSums, 64, 0, []any{Zeros(64), Zeros(4)}},
				{sharedHalves, 32, 256, []any{Zeros(32)}},
				{sharedHalves, 32, 5000, []any{Zeros(32)}},
				{sharedHalves, 32, 40000, []any{Zeros(32)}},
				{manyRegisters, 96, 0, []any{Zeros(2048), Zeros(2048)}},
			} {
				on := d.With(SharedBytes(c.shared))
				p, err := on.ExplainLaunch(c.kernel, Blocks(1), Threads(c.n), c.args...)
				if err != nil {
					t.Fatal(err)
				}
				on.StartTrace()
				if err := on.Launch(c.kernel, Blocks(1), Threads(c.n), c.args...); err != nil {
					t.Fatal(err)
				}
				tr := on.StopTrace()
				r := tr.Records[slices.IndexFunc(tr.Records, func(r trace.Record) bool { return r.Kind == trace.Launch })]
				what := fmt.Sprintf("%s, %d threads, %d bytes: ", p.Func, c.n, c.shared)
				same(t, what+"shared memory", p.Shared, r.StaticShared+r.DynamicShared)
				same(t, what+"blocks", p.BlocksHeld, int(r.Counters["blocks per multiprocessor"]))
				same(t, what+"occupancy", p.Occupancy, float64(p.BlocksHeld*((c.n+31)/32))*32/float64(d.gpu.info.MaxThreadsPerMP))
				same(t, what+"note", p.Note, "")
				if text := p.String(); (p.Occupancy < 1) != strings.Contains(text, "limited by") || !strings.Contains(text, bytes(p.Shared)+" a block") {
					t.Errorf("%s%s", what, text)
				}
			}
		})
	}
	d := quadro(t)
	for _, c := range []struct {
		kernel       any
		n            int
		args         []any
		want, memory string
	}{
		{saxpy, 64, []any{2.0, Zeros(64), Zeros(64)}, "50 %: a multiprocessor holds 16 blocks, 32 of 64 warps, limited by the number of blocks", "0B a block"},
		{saxpy, 128, []any{2.0, Zeros(64), Zeros(64)}, "100 %: a multiprocessor holds 16 blocks, 64 of 64 warps\n", "0B a block"},
		{saxpy, 768, []any{2.0, Zeros(64), Zeros(64)}, "75 %: a multiprocessor holds 2 blocks, 48 of 64 warps, limited by the number of threads", "0B a block"},
		{tooMuchForMost, 32, []any{Zeros(32)}, "0 %: no block can run\n", "78.125KB a block"},
	} {
		p, err := d.ExplainLaunch(c.kernel, Blocks(1), Threads(c.n), c.args...)
		if err != nil || !strings.Contains(p.String(), "occupancy        "+c.want) || !strings.Contains(p.String(), "shared memory    "+c.memory) {
			t.Errorf("%v, want %s, %s\n%v", err, c.want, c.memory, p)
		}
	}
	p, err := d.Explain(add1, Arange(1000))
	if err != nil || p.Shared != 0 || p.BlocksHeld != 16 || p.Occupancy != 1 || strings.Contains(p.String(), "shared memory") || !strings.Contains(p.String(), "\noccupancy        100 %") {
		t.Errorf("%v, %v", p, err)
	}
	p, err = MustOpen("cpu").With(SharedBytes(256)).ExplainLaunch(sharedHalves, Blocks(1), Threads(32), Zeros(32))
	if err != nil || p.Shared != 128+256 || p.BlocksHeld != 0 || p.Occupancy != 0 || strings.Contains(p.String(), "occupancy") || !strings.Contains(p.String(), "shared memory    384B a block") {
		t.Errorf("%v, %v", p, err)
	}
}

// What the card refuses is in the plan, in the words of the refusal.
func TestExplainRefusal(t *testing.T) {
	x, y := Zeros(2048), Zeros(2048)
	for name, c := range map[string]struct {
		device string
		kernel any
		n      int
		shared int
		args   []any
		fits   string // a card that takes it
	}{
		"static shared memory":  {"sim:quadro-k2000", tooMuchForMost, 32, 0, []any{Zeros(32)}, ""},
		"dynamic shared memory": {"sim:gtx-970", sharedHalves, 32, 60000, []any{Zeros(32)}, "sim:h200"},
		"registers":             {"sim:h200", manyRegisters, 1024, 0, []any{x, y}, "sim:quadro-k2000"},
	} {
		d := MustOpen(c.device).With(SharedBytes(c.shared))
		p, err := d.ExplainLaunch(c.kernel, Blocks(1), Threads(c.n), c.args...)
		if err != nil {
			t.Fatal(name, err)
		}
		var ae *ArgumentError
		if err := d.Launch(c.kernel, Blocks(1), Threads(c.n), c.args...); !errors.As(err, &ae) || p.Note != "the card refuses this launch: "+ae.Detail {
			t.Errorf("%s: the note is %q, the refusal %v", name, p.Note, err)
		}
		if p.BlocksHeld != 0 || p.Occupancy != 0 || !strings.Contains(p.String(), "\nnote             the card refuses this launch: ") {
			t.Errorf("%s: %v", name, p)
		}
		d.Close()
		if c.fits == "" {
			continue
		}
		other := MustOpen(c.fits).With(SharedBytes(c.shared))
		if p, err = other.ExplainLaunch(c.kernel, Blocks(1), Threads(c.n), c.args...); err != nil || p.Note != "" || p.BlocksHeld == 0 {
			t.Errorf("%s on %s: %q, %v", name, c.fits, p.Note, err)
		}
		other.Close()
	}
	d := quadro(t)
	p, err := d.With(ThreadsPerBlock(5000)).Explain(add1, x)
	if err != nil || !strings.Contains(p.Note, "refuses") || !strings.Contains(p.Note, "1024") {
		t.Errorf("%v, %v", p, err)
	}
}

func unshared(x, sums []float64) {
	var part [128]float64
	t := simt.ThreadIdx().X
	part[t] = x[t]
	for s := 64; s > 0; s >>= 1 {
		simt.SyncThreads()
		if t < s {
			part[t] += part[t+s]
		}
	}
	if t == 0 {
		sums[0] = part[0]
	}
}

func shuffledAlone(x []float64) {
	var own [4]float64
	i := simt.ThreadIdx().X
	for k := 0; k < 4; k++ {
		own[(i+k)%4] = x[i] + float64(k)
	}
	x[i] = own[i%4]
}

// The forgotten simt.Shared is no error, but the plan says what it looks like.
func TestExplainUnshared(t *testing.T) {
	for _, name := range []string{"cpu", "sim:quadro-k2000"} {
		d := MustOpen(name)
		p, err := d.ExplainLaunch(unshared, Blocks(1), Threads(128), Zeros(128), Zeros(1))
		if err != nil || !strings.Contains(p.Note, "each has its own part") || !strings.Contains(p.Note, "simt.Shared(&part)") {
			t.Errorf("%s: %v, %v", name, p, err)
		}
		for _, c := range []struct {
			kernel any
			args   []any
		}{{blockSums, []any{Zeros(128), Zeros(1)}}, {shuffledAlone, []any{Zeros(128)}}} {
			if p, err := d.ExplainLaunch(c.kernel, Blocks(1), Threads(128), c.args...); err != nil || p.Note != "" {
				t.Errorf("%s: %v, %v", name, p.Note, err)
			}
		}
		d.Close()
	}
}
