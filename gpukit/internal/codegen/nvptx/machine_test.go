package nvptx

import (
	"encoding/binary"
	"strings"
	"testing"

	"gpunotes/gpukit/internal/driver"
	"gpunotes/gpukit/internal/driver/sim"
	"gpunotes/gpukit/internal/ptx"
)

// machine is a simulated card with one module, strict: what PTX leaves open is an error.
type machine struct {
	t     testing.TB
	d     *sim.Device
	mod   driver.Module
	steps int    // instructions of threads in the last launch
	limit uint64 // of warp instructions
}

func newMachine(t testing.TB, m *ptx.Module) *machine {
	t.Helper()
	if last.m == m { // some tests run the kernels of a large module one by one
		return &machine{t: t, d: last.d, mod: last.mod, limit: 50e6}
	}
	text := m.String()
	name := map[int]string{30: "quadro-k2000", 35: "gtx-970", 60: "gtx-1080-ti"}[m.Target]
	if name == "" {
		name = []string{"tesla-t4", "a100", "h200"}[len(text)%3]
	}
	card, err := sim.LookupCard(name)
	if err != nil {
		t.Fatal(err)
	}
	// Counting and checking take their time: every fourth module. Shared memory is zero for the evaluator; on a card it
	// is not, so that the checker would object.
	rare := len(text)%4 == 0
	o := sim.Options{Strict: true, Uncounted: !rare, Unchecked: !rare || strings.Contains(text, ".shared")}
	mc := &machine{t: t, d: sim.New(card, o), limit: 50e6}
	if mc.mod, err = mc.d.Load([]byte(text)); err != nil {
		t.Fatal(err)
	}
	last.m, last.d, last.mod = m, mc.d, mc.mod
	return mc
}

// last is the module that was loaded last.
var last struct {
	m   *ptx.Module
	d   *sim.Device
	mod driver.Module
}

// alloc puts data into global memory, whole words: atomic operations on bytes are made of those on words.
func (mc *machine) alloc(data []byte) uint64 {
	p, err := mc.d.Alloc(uint64(max(len(data)+3, 4) &^ 3))
	if err == nil {
		err = mc.d.CopyIn(p, data)
	}
	if err != nil {
		mc.t.Fatal(err)
	}
	return uint64(p)
}

func (mc *machine) word(addr uint64, size int) uint64 {
	var b [8]byte
	if err := mc.d.CopyOut(b[:size], driver.Ptr(addr)); err != nil {
		mc.t.Fatal(err)
	}
	return binary.LittleEndian.Uint64(b[:])
}

// launch runs a kernel on a one-dimensional grid.
func (mc *machine) launch(name string, grid, block, dynamic int, params []uint64) error {
	f, err := mc.mod.Function(name)
	if err != nil {
		return err
	}
	err = f.Launch(driver.Launch{Grid: driver.Dim{X: grid, Y: 1, Z: 1}, Block: driver.Dim{X: block, Y: 1, Z: 1}, Shared: dynamic, Params: params, Steps: mc.limit})
	if err == nil {
		mc.steps = int(mc.d.LastLaunch().Lanes)
	}
	return err
}

func put(b []byte, x uint64) {
	for i := range b {
		b[i] = byte(x >> (8 * i))
	}
}
