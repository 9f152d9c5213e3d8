package sim

import (
	"crypto/sha256"
	"embed"
	"fmt"
	"io/fs"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"gpunotes/gpukit/internal/driver"
	"gpunotes/gpukit/internal/ptx"
)

// What durations depend on: the formulas, the counts and the data files.
//
//go:embed timing.go stats.go memsys.go memsys_cache.go registers.go cards/*.json
var modelFiles embed.FS

// Model is a fingerprint of the timing model and the cards: predictions that name it can be compared, and a table that
// was made before a change says so.
var Model = sync.OnceValue(func() string {
	h := sha256.New()
	fs.WalkDir(modelFiles, ".", func(name string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			text, _ := modelFiles.ReadFile(name)
			h.Write(text)
		}
		return err
	})
	return fmt.Sprintf("%x", h.Sum(nil)[:6])
})

// duration predicts how long a copy or launch takes on the card.
func (c *Card) duration(r *driver.Record) time.Duration {
	var s float64
	switch n := float64(r.Bytes); r.Op {
	case driver.HostToDevice, driver.DeviceToHost:
		// A fixed part and the link's rate. Pageable memory goes through a staging buffer on the host: beyond its first
		// filling the host's own copying adds to it.
		link := c.LinkGBS * 1e9 * c.LinkEfficiency
		s = float64(c.CopyStartUS*1e-6) + n/link
		if stage := float64(c.StagingBytes); !r.Pinned && n > stage {
			host := c.HostCopyGBS * 1e9
			if r.Op == driver.DeviceToHost {
				host *= c.HostCopyBackRatio
			}
			s += (n - stage) / host
		}
	case driver.DeviceToDevice:
		s = float64(c.StartUS*1e-6) + 2*n/(c.MemoryGBS*1e9*c.Efficiency)
	case driver.Memset:
		s = float64(c.StartUS*1e-6) + n/(c.MemoryGBS*1e9*c.Efficiency)
	case driver.Kernel:
		if st, ok := r.Stats.(*Stats); ok {
			s = c.KernelSeconds(st, r.Attributes.Registers)
		}
	}
	return time.Duration(math.Round(s * 1e9))
}

// cost is what a class of instructions takes: issue slots of the warp, and cycles until the result can be used.
type cost struct{ slots, latency int64 }

// Steps that the short programs behind divisions and square roots are taken to have, all assumed: a card has no
// instruction for them.
const (
	divide32Steps     = 20
	divide64Steps     = 80
	floatDivideSteps  = 8 // reciprocal, two Newton steps, remainder
	specialLatencies  = 4 // of the arithmetic unit
	minMax64Slots     = 4
	select64Slots     = 2
	wideSlots         = 2 // 64-bit sums, logic and comparisons go by halves
	wideLatencies     = 2
	minMax64Latencies = 3
)

func (c *Card) costs() (t [NumClasses]cost) {
	a, dp := int64(c.ALULatency), int64(c.FP64Latency)
	for k := range t {
		t[k] = cost{1, a}
	}
	t[Move] = cost{0, 0}
	t[Int64] = cost{wideSlots, wideLatencies * a}
	t[Multiply64] = cost{int64(c.Multiply64Slots), int64(c.Multiply64Latency)}
	t[Divide32] = cost{divide32Steps, divide32Steps * a}
	t[Divide64] = cost{divide64Steps, divide64Steps * a}
	t[Float64] = cost{1, dp}
	t[FloatDivide32] = cost{floatDivideSteps + 1, floatDivideSteps*a + specialLatencies*a}
	t[FloatDivide64] = cost{floatDivideSteps + 1, floatDivideSteps*dp + specialLatencies*a}
	t[Special] = cost{1, specialLatencies * a}
	t[Convert64] = cost{1, dp}
	t[LoadConst] = cost{1, int64(c.L1Latency)}
	t[Exchange] = cost{1, int64(c.SharedLatency)}
	return t
}

// dependence is what an instruction waits for and what waits for it.
type dependence struct {
	srcs, dsts   []int32 // registers
	psrcs, pdsts []int32 // predicates
	cost         cost
	products     int64 // that the integer multiplier makes for it
}

// dependences prepares the timing of a program on a card.
func (p *program) dependences(c *Card) []dependence {
	costs := c.costs()
	out := make([]dependence, len(p.code))
	small := map[*ptx.Func]map[ptx.RegID]bool{}
	for i := range p.code {
		in, d := &p.code[i], &out[i]
		switch d.cost = costs[p.sites[in.site].class]; p.sites[in.site].class {
		case Multiply32:
			d.products = 1
		case Multiply64:
			d.products = d.cost.slots
		}
		src := func(list *[]int32, rs ...int32) {
			for _, r := range rs {
				if r >= 0 && !slices.Contains(*list, r) {
					*list = append(*list, r)
				}
			}
		}
		src(&d.psrcs, in.guard, in.pa, in.pb)
		src(&d.pdsts, in.pd, in.pq)
		if in.op == opJoin || in.op == opBranch || in.op == opExit || in.op == opNothing {
			continue
		}
		src(&d.srcs, in.a, in.b, in.c, in.e)
		switch in.op {
		case opVector, opFour, opCarry, opSpecial, opPack, opSelect, opActive:
			src(&d.dsts, in.d)
		}
		switch in.op {
		case opPack:
			src(&d.srcs, in.list...)
		case opUnpack:
			src(&d.dsts, in.list...)
		case opStore:
			src(&d.srcs, in.mem.regs...)
		case opLoad, opAtom, opParam:
			src(&d.dsts, in.mem.regs...)
		case opMeet:
			t := in.meet
			if t.op == "vote" || t.op == "bar" {
				src(&d.psrcs, t.src)
			} else {
				src(&d.srcs, t.src)
			}
			src(&d.dsts, t.dst)
			src(&d.pdsts, t.pdst)
		case opSelect:
			d.cost = costs[Int32]
		}
		s := p.sites[in.site]
		if s.index < len(s.fn.Instrs) {
			switch op := s.fn.Instrs[s.index].Opcode; {
			case in.op == opSelect && strings.HasSuffix(op, "64"):
				d.cost.slots = select64Slots
			case d.products > 1 && strings.Contains(op, ".lo."):
				if small[s.fn] == nil {
					small[s.fn] = below32(s.fn)
				}
				for _, o := range s.fn.Instrs[s.index].Args[1:3] {
					if o.Kind == ptx.KindInt && o.Bits < 1<<32 || o.Kind == ptx.KindReg && small[s.fn][o.Reg] {
						d.products -= int64(c.Multiply64HalfSlots)
					}
				}
				d.cost = cost{d.products, max(d.cost.latency*d.products/d.cost.slots, int64(c.ALULatency))}
			case (strings.HasPrefix(op, "min.") || strings.HasPrefix(op, "max.")) && (strings.HasSuffix(op, "s64") || strings.HasSuffix(op, "u64")):
				d.cost = cost{minMax64Slots, minMax64Latencies * int64(c.ALULatency)}
			}
		}
	}
	return out
}

// below32 are the registers of 64 bits in which a card's compiler sees no high half: they are set once, to an unsigned
// number of 32 bits. A literal that is less than 2^32 has none either. ptxas of CUDA 13, asked on 2026-12-01 for sm_75,
// sm_80 and sm_90, makes one IMAD.WIDE of a product of two such numbers, and an IMAD more for each factor that has a high
// half: three for any two, two for any one and the literal 33, one for %tid.x and 33.
func below32(f *ptx.Func) map[ptx.RegID]bool {
	m := map[ptx.RegID]bool{}
	for i := range f.Instrs {
		in := &f.Instrs[i]
		if len(in.Args) == 0 {
			continue
		}
		for _, to := range append(in.Args[:1:1], in.Args[0].Elems...) {
			if to.Kind == ptx.KindReg {
				_, again := m[to.Reg]
				m[to.Reg] = !again && (in.Opcode == "cvt.u64.u32" || in.Opcode == "cvt.s64.u32")
			}
		}
	}
	return m
}

// scoreboard is the time of a warp as if it were alone: instructions issue in order, each when the one before has and
// what it reads is ready.
type scoreboard struct {
	now         int64
	ready, pred []int64
}

func (s *scoreboard) start(p *program) {
	if s.ready == nil {
		s.ready, s.pred = make([]int64, p.regs), make([]int64, p.preds)
	}
	clear(s.ready)
	clear(s.pred)
	s.now = 0
}

// tick issues an instruction; one that accesses memory is completed by landed.
func (x *execution) tick(w *warp, pc int32, taken bool) {
	d, s := &x.deps[pc], &w.time
	t := s.now
	for _, r := range d.srcs {
		t = max(t, s.ready[r])
	}
	for _, r := range d.psrcs {
		t = max(t, s.pred[r])
	}
	if d.cost.slots == 0 { // a mov, which the compiler folds away
		for _, r := range d.dsts {
			s.ready[r] = t
		}
		for _, r := range d.pdsts {
			s.pred[r] = t
		}
		return
	}
	for _, r := range d.dsts {
		s.ready[r] = t + d.cost.latency
	}
	for _, r := range d.pdsts {
		s.pred[r] = t + d.cost.latency
	}
	if s.now = t + d.cost.slots; taken {
		s.now += int64(x.card.TakenBranchLatency)
	}
	x.slots += uint64(d.cost.slots)
	x.products += uint64(d.products)
}

// landed is told of an access that was just issued and counted: further lines hold the warp, and the slowest sector
// says when the result is there.
func (x *execution) landed(w *warp, pc int32, s ptx.Space) {
	o, c := &x.memory.last, x.card
	t := &w.time
	var latency int
	switch s {
	case ptx.Shared:
		latency = c.SharedLatency
		t.now += int64(max(o.waves-1, 0))
	case ptx.Const:
		latency = c.L1Latency
	default:
		latency = [...]int{inL1: c.L1Latency, inL2: c.L2Latency, inMemory: c.MemoryLatency}[o.slowest]
		t.now += int64(max(o.lines-1, 0)) * int64(c.LineDelay)
	}
	for _, r := range x.deps[pc].dsts {
		t.ready[r] = t.now + int64(latency)
	}
}

// Resource is a part of a card and how long a launch alone keeps it busy.
type Resource struct {
	Name    string
	Seconds float64
}

// KernelSeconds predicts how long a launch takes that did s, with that many registers per thread: the times of all
// resources brought together by a norm, because what is nearly as busy as the busiest hinders it.
func (c *Card) KernelSeconds(s *Stats, registers int) float64 {
	var norm float64
	for _, r := range c.Resources(s, registers) {
		norm += math.Pow(r.Seconds, c.OverlapExponent)
	}
	return float64(c.StartUS*1e-6) + math.Pow(norm, 1/c.OverlapExponent)
}

// Resources are the times of the slowest warps alone ("latency"), the issue slots and the integer multiplier ("issue"),
// the fp64, fp32 and special function units, the load and store unit, L2 and memory, whichever of its bytes and its row
// activations takes longer. The load and store unit takes a cycle for a line of global or local memory and for a pass
// over the banks of shared memory, each of which serves a word per cycle (CUDA C++ Programming Guide, shared memory). A
// launch without blocks has none.
func (c *Card) Resources(s *Stats, registers int) []Resource {
	used := min(s.Blocks, c.Multiprocessors)
	if used == 0 {
		return nil
	}
	mps, clock := float64(used), c.ClockMHz*1e6
	w := func(classes ...Class) (n float64) {
		for _, x := range classes {
			n += float64(s.Classes[x].Warps)
		}
		return n / mps
	}
	busy := func(warps float64, lanes int) float64 {
		return warps * 32 / float64(max(lanes, 1)) / clock / c.Efficiency
	}
	perMP, hold := float64((s.Blocks+c.Multiprocessors-1)/c.Multiprocessors), float64(max(s.Resident, 1))
	waves := perMP / hold
	if perMP <= 4*hold {
		waves = math.Ceil(waves)
	}
	serial := 1.0
	if registers >= c.RegistersPerThread && c.SerialFactorAtRegisterCap > 0 {
		serial = c.SerialFactorAtRegisterCap
	}
	parts := []Resource{
		{"latency", waves * (float64(serial*s.WarpCycles) + float64(c.BlockCycles)) / clock},
		{"issue", max(float64(s.Slots)/mps/float64(max(c.IssuePerClock, 1))/clock/c.Efficiency, busy(float64(s.Products)/mps, c.IntegerMultiplyLanes))},
		{"fp64", busy(w(Float64)+float64(floatDivideSteps*w(FloatDivide64)), c.FP64Lanes) + busy(w(Convert64), c.Convert64Lanes)},
		{"fp32", busy(w(Float32)+float64(floatDivideSteps*w(FloatDivide32)), c.FP32Lanes)},
		{"special", busy(w(Special, FloatDivide32, FloatDivide64), c.SpecialFunctionLanes)},
	}
	if m := s.Memory; m != nil {
		parts = append(parts,
			Resource{"load/store", float64(m.Lines()+m.SharedWaves()) / mps / clock / c.Efficiency},
			Resource{"L2", float64(m.L2Sectors()) * 32 / (c.L2BytesPerClock * clock) / c.Efficiency},
			Resource{"memory", max(float64(m.Bursts)*32/(c.MemoryGBS*1e9), float64(m.Activations)*c.ActivationNS*1e-9/float64(max(c.MemoryChannels, 1))) / c.Efficiency})
	}
	return parts
}
