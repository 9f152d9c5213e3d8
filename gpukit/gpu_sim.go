package gpukit

import (
	"fmt"
	"slices"
	"strings"

	"gpunotes/gpukit/internal/driver/sim"
)

// simPrefix begins the names of simulated cards. What is peculiar to them is all
// in this file.
const simPrefix = "sim:"

// simSteps is how many warp instructions a launch may take: some minutes. A kernel
// that takes more is most likely one without end.
const simSteps = 1 << 33

// simKept is how much memory of a card that nobody uses is kept for the next who
// asks: it is memory of this machine.
const simKept = 256 << 20

// simulated opens a simulated card.
func simulated(name string) (*gpu, error) { return simulatedWith(name, sim.Options{}) }

func simulatedWith(name string, o sim.Options) (*gpu, error) {
	card := strings.TrimPrefix(name, simPrefix)
	i := slices.Index(sim.CardNames(), card)
	if i < 0 {
		return nil, fmt.Errorf("there is no simulated card %q", card)
	}
	if o.HostBytes == nil {
		o.HostBytes = func() uint64 { return uint64(available()) }
	}
	g, err := openGPU(name, fmt.Sprintf("the simulator (%s)", card), sim.Driver{Options: o}, i)
	if err == nil {
		g.counters, g.steps = simCounters, simSteps
		g.pool.exact, g.pool.limit = true, simKept
	}
	return g, err
}

// simCards lists the simulated cards.
func simCards() []DeviceInfo {
	infos, err := sim.Driver{}.Devices()
	if err != nil {
		return nil
	}
	var out []DeviceInfo
	for i, name := range sim.CardNames() {
		x := &infos[i]
		out = append(out, DeviceInfo{simPrefix + name, fmt.Sprintf("simulated %s, compute capability %v, %s of memory: exact results and counts, predicted times",
			x.Name, x.Capability, bytes(float64(x.Memory)))})
	}
	return out
}

// simCounters names what the simulator counted in a launch: warp instructions,
// and those of threads that took part, in all and by class; then memory.
func simCounters(stats any) map[string]int64 {
	s, ok := stats.(*sim.Stats)
	if !ok || s == nil {
		return nil
	}
	m := map[string]int64{}
	set := func(name string, n uint64) {
		if n > 0 {
			m[name] = int64(n)
		}
	}
	set("warp instructions", s.Warps)
	set("thread instructions", s.Lanes)
	for k, c := range s.Classes {
		set("warp instructions, "+sim.Class(k).String(), c.Warps)
	}
	set("divergent branches", s.Divergences)
	set("taken branches", s.TakenBranches)
	set("blocks per multiprocessor", uint64(s.Resident))
	if x := s.Memory; x != nil {
		set("lines", x.Lines())
		set("L1 hits", x.L1.Hits)
		set("L1 misses", x.L1.Misses)
		set("L2 hits", x.L2.Hits)
		set("L2 misses", x.L2.Misses)
		set("L2 sectors", x.L2Sectors())
		set("DRAM bursts", x.Bursts)
		set("DRAM row activations", x.Activations)
		for k := range x.Shared {
			set("shared memory conflicts", x.Shared[k].Conflicts+uint64(m["shared memory conflicts"]))
		}
		set("atomic conflicts", x.AtomicConflicts)
	}
	return m
}
