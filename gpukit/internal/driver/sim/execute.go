package sim

import (
	"encoding/binary"
	"fmt"
	"math/bits"

	"gpunotes/gpukit/internal/driver"
	"gpunotes/gpukit/internal/ptx"
)

// execution is one launch. Warps take turns: one memory instruction each, over all multiprocessors, so that what the
// caches see is near to what those of a card see. All on one goroutine, so that a launch gives the same twice.
type execution struct {
	p       *program
	mem     *memory
	grid    driver.Dim
	block   driver.Dim
	dynamic int // bytes of dynamic shared memory
	params  []byte
	sms     int
	hold    int // blocks that a multiprocessor holds
	number  uint64

	system  memorySystem
	memory  *hierarchy // system, if warps are timed too
	card    *Card
	deps    []dependence
	checker checker
	strict  bool // what PTX leaves open is an error
	cancel  func() bool
	tell    func(done, total int)
	budget  uint64 // warp instructions; 0 is no bound

	hits                []Count // by site
	taken, diverged     uint64
	slots               uint64  // of issue
	products            uint64  // of the integer multiplier
	cycles              float64 // of the slowest warp of each block, summed
	steps               uint64
	left                int // until the next look at budget and cancel
	runnable            int // warps
	ended               int // blocks
	addr, pos           lanes
	acc                 access
	fixed, written      map[uint64]bool // of a strict launch
	pool                []*block
	threads, warpsOfOne int
}

const lookEvery = 1 << 14

type warpState uint8

const (
	warpReady warpState = iota
	warpWaits           // at a barrier
	warpDone
)

type block struct {
	index  int
	at     driver.Dim
	sm     int
	shared []byte
	warps  []*warp
	alive  int // warps that are not done
	bars   [16]barrier
}

type barrier struct {
	arrived int // warps
	want    int // threads, 0 for all
	count   int // of true predicates, and of threads
	threads int
	waiting []*warp
}

// node is a group of threads of a warp at one place. A group that went apart waits at pc for its parts, and they leave
// when they come to join, which is that pc.
type node struct {
	pc, join int32
	mask     uint32
	parent   int32 // -1 for none
	parts    int32
	state    nodeState
}

type nodeState uint8

const (
	nodeFree nodeState = iota
	nodeReady
	nodeParted  // waits for its parts
	nodeBlocked // waits for other threads at pc
)

type warp struct {
	b      *block
	index  int
	state  warpState
	live   uint32 // threads that have not left
	pc     int32  // of the group that runs
	mask   uint32
	cur    int32
	nodes  []node
	regs   []lanes
	consts []lanes
	preds  []uint32
	carry  uint32
	local  []byte
	tid    [3]lanes
	time   scoreboard
}

// src is a source operand.
func (w *warp) src(i int32) *lanes {
	if i >= 0 {
		return &w.regs[i]
	}
	return &w.consts[^i]
}

// pred is a predicate operand.
func (w *warp) pred(i int32, not bool) uint32 {
	var p uint32
	if i >= 0 {
		p = w.preds[i]
	}
	if not {
		p = ^p
	}
	return p
}

// setPred writes a predicate in the lanes of m.
func (w *warp) setPred(i int32, v, m uint32) {
	if i >= 0 {
		w.preds[i] = w.preds[i]&^m | v&m
	}
}

// run executes the launch.
func (x *execution) run() (err error) {
	x.hits = make([]Count, len(x.p.sites))
	x.left = lookEvery
	if x.budget > 0 && x.budget < lookEvery {
		x.left = int(x.budget)
		x.steps -= lookEvery - x.budget // look adds lookEvery
	}
	x.threads = x.block.Count()
	x.warpsOfOne = (x.threads + 31) / 32
	total := x.grid.Count()
	resident := make([][]*block, min(x.sms, total))
	next := make([]int, len(resident))
	left := total
	if x.tell != nil {
		x.tell(0, total)
	}
	fill := func(sm int) {
		for len(resident[sm]) < x.hold && next[sm] < total {
			resident[sm] = append(resident[sm], x.start(sm, next[sm]))
			next[sm] += x.sms
		}
	}
	for sm := range resident {
		next[sm] = sm
		fill(sm)
	}
	for left > 0 {
		ran := false
		for sm := range resident {
			ended := false
			for _, b := range resident[sm] {
				for _, w := range b.warps {
					if w.state != warpReady {
						continue
					}
					ran = true
					if err := x.step(w); err != nil {
						return err
					}
				}
				ended = ended || b.alive == 0
			}
			if !ended {
				continue
			}
			kept := resident[sm][:0]
			for _, b := range resident[sm] {
				if b.alive > 0 {
					kept = append(kept, b)
					continue
				}
				if x.checker != nil {
					x.checker.blockEnd(sm, b.index)
				}
				var slowest int64
				for _, w := range b.warps {
					slowest = max(slowest, w.time.now)
				}
				x.cycles += float64(slowest)
				x.pool = append(x.pool, b)
				left--
				x.ended++
			}
			resident[sm] = kept
			fill(sm)
		}
		if !ran && left > 0 {
			return x.stuck(resident)
		}
	}
	if x.system != nil {
		x.system.finish()
	}
	if x.checker != nil {
		if err := x.checker.finish(); err != nil {
			return x.checked(err)
		}
	}
	return nil
}

// start makes a block ready.
func (x *execution) start(sm, index int) *block {
	var b *block
	if n := len(x.pool); n > 0 {
		b = x.pool[n-1]
		x.pool = x.pool[:n-1]
		clear(b.shared)
		b.bars = [16]barrier{}
	} else {
		b = x.newBlock()
	}
	b.index, b.sm = index, sm
	b.at = driver.Dim{X: index % x.grid.X, Y: index / x.grid.X % x.grid.Y, Z: index / x.grid.X / x.grid.Y}
	b.alive = len(b.warps)
	x.runnable += b.alive
	for _, w := range b.warps {
		w.state = warpReady
		n := min(x.threads-32*w.index, 32)
		w.live = uint32(uint64(1)<<n - 1)
		w.pc, w.mask, w.cur = 0, w.live, 0
		w.nodes = append(w.nodes[:0], node{pc: 0, join: -1, mask: w.live, parent: -1, state: nodeReady})
		clear(w.local)
		if x.deps != nil {
			w.time.start(x.p)
		}
	}
	if x.checker != nil {
		x.checker.blockStart(sm, index)
	}
	return b
}

func (x *execution) newBlock() *block {
	b := &block{shared: make([]byte, x.p.sharedBytes(x.dynamic))}
	for i := range x.warpsOfOne {
		w := &warp{b: b, index: i, consts: x.p.consts, regs: make([]lanes, x.p.regs), preds: make([]uint32, x.p.preds), local: make([]byte, 32*x.p.frame)}
		for l := range 32 {
			t := x.thread(i, l)
			w.tid[0][l], w.tid[1][l], w.tid[2][l] = uint64(t.X), uint64(t.Y), uint64(t.Z)
		}
		b.warps = append(b.warps, w)
	}
	return b
}

// thread is the place in the block of a lane of a warp.
func (x *execution) thread(warp, lane int) driver.Dim {
	t := warp*32 + lane
	return driver.Dim{X: t % x.block.X, Y: t / x.block.X % x.block.Y, Z: t / x.block.X / x.block.Y}
}

// step runs a warp until it has made a memory access, waits or ends.
func (x *execution) step(w *warp) error {
	code := x.p.code
	pc, mask := w.pc, w.mask
	for {
		in := &code[pc]
		if in.op == opJoin {
			if w.nodes[w.cur].join == pc {
				w.leave()
				if !w.pick() {
					if err := x.blocked(w); err != nil || w.state != warpReady {
						return err
					}
				}
				pc, mask = w.pc, w.mask
				continue
			}
			pc++
			continue
		}
		m := mask
		if in.guard >= 0 {
			g := w.preds[in.guard]
			if in.not {
				g = ^g
			}
			m &= g
		}
		h := &x.hits[in.site]
		h.Warps++
		h.Lanes += uint64(bits.OnesCount32(m))
		if x.deps != nil {
			x.tick(w, pc, in.op == opBranch && m != 0)
		}
		if x.left--; x.left <= 0 {
			if err := x.look(w, in, mask); err != nil {
				return err
			}
		}
		if m == 0 && in.op != opBranch {
			pc++
			continue
		}
		switch in.op {
		case opVector:
			if in.off != 0 && x.strict {
				if err := x.openDivision(w, in, m); err != nil {
					return err
				}
			}
			in.vec(&w.regs[in.d], w.src(in.a), w.src(in.b), w.src(in.c), m)
		case opTest:
			r := in.cmp(w.src(in.a), w.src(in.b), m)
			if in.invert {
				r = ^r
			}
			q := ^r
			if in.logic != logicNone {
				c := w.pred(in.pa, in.notA)
				switch in.logic {
				case logicAnd:
					r, q = r&c, q&c
				case logicOr:
					r, q = r|c, q|c
				case logicXor:
					r, q = r^c, q^c
				}
			}
			w.setPred(in.pd, r, m)
			w.setPred(in.pq, q, m)
		case opBranch:
			switch {
			case m == 0:
			case m == mask || in.target == pc+1:
				pc = in.target
				x.taken++
				continue
			default:
				x.taken++
				x.diverged++
				pc, mask = w.part(in, pc, m)
				continue
			}
		case opSelect:
			choose(&w.regs[in.d], w.src(in.a), w.src(in.b), w.pred(in.pa, in.notA), m)
		case opLoad, opStore, opAtom:
			w.pc = pc
			if err := x.access(w, in, m); err != nil {
				return err
			}
			if in.mem.space != ptx.Shared && !in.mem.hidden && in.mem.space != ptx.Const && x.runnable > 1 {
				w.pc, w.mask = pc+1, mask
				return nil
			}
		case opLogic:
			a, b := w.pred(in.pa, in.notA), w.pred(in.pb, in.notB)
			switch in.logic {
			case logicAnd:
				a &= b
			case logicOr:
				a |= b
			case logicXor:
				a ^= b
			case logicNot:
				a = ^a
			}
			w.setPred(in.pd, a, m)
		case opSpecial:
			x.special(w, special(in.off), &w.regs[in.d], m)
		case opParam:
			if err := x.param(w, in, m); err != nil {
				return err
			}
		case opFour:
			d, a, b, c, e := &w.regs[in.d], w.src(in.a), w.src(in.b), w.src(in.c), w.src(in.e)
			for t := m; t != 0; t &= t - 1 {
				i := bits.TrailingZeros32(t) & 31
				d[i] = in.four(a[i], b[i], c[i], e[i])
			}
		case opCarry:
			d, a, b, c := &w.regs[in.d], w.src(in.a), w.src(in.b), w.src(in.c)
			for t := m; t != 0; t &= t - 1 {
				i := bits.TrailingZeros32(t) & 31
				r, out := in.carry(a[i], b[i], c[i], uint64(w.carry>>i&1))
				d[i] = r
				w.carry = w.carry&^(1<<i) | uint32(out)<<i
			}
		case opPack:
			d := &w.regs[in.d]
			for t := m; t != 0; t &= t - 1 {
				i := bits.TrailingZeros32(t) & 31
				var v uint64
				for k, s := range in.list {
					v |= w.src(s)[i] << (uint64(k) * in.off)
				}
				d[i] = v
			}
		case opUnpack:
			a := w.src(in.a)
			for t := m; t != 0; t &= t - 1 {
				i := bits.TrailingZeros32(t) & 31
				v := a[i]
				for k, s := range in.list {
					if s >= 0 {
						w.regs[s][i] = low(int(in.off), v>>(uint64(k)*in.off))
					}
				}
			}
		case opActive:
			if in.d >= 0 {
				d := &w.regs[in.d]
				for t := m; t != 0; t &= t - 1 {
					d[bits.TrailingZeros32(t)&31] = uint64(mask)
				}
			}
		case opExit:
			w.live &^= m
			if mask &^= m; mask == 0 {
				w.leave()
				if !w.pick() {
					if w.live == 0 {
						x.end(w)
						return nil
					}
					if err := x.blocked(w); err != nil || w.state != warpReady {
						return err
					}
				}
				pc, mask = w.pc, w.mask
				continue
			}
			w.nodes[w.cur].mask = mask
		case opTrap:
			return x.fail(driver.IllegalInstruction, w, in, bits.TrailingZeros32(m), "a trap")
		case opMeet:
			w.pc, w.mask = pc, mask
			done, err := x.meet(w, in)
			if err != nil {
				return err
			}
			if !done {
				if w.state == warpReady && !w.pick() {
					if err := x.blocked(w); err != nil {
						return err
					}
				}
				if w.state != warpReady {
					return nil
				}
				pc, mask = w.pc, w.mask
				continue
			}
		}
		pc++
	}
}

func choose(d, a, b *lanes, p, m uint32) {
	if m == allLanes {
		for i := range d {
			k := -uint64(p >> i & 1)
			d[i] = b[i] ^ (a[i]^b[i])&k
		}
		return
	}
	for ; m != 0; m &= m - 1 {
		i := bits.TrailingZeros32(m) & 31
		if p>>i&1 != 0 {
			d[i] = a[i]
		} else {
			d[i] = b[i]
		}
	}
}

// part divides the group that runs at a branch that the threads of m take, and returns what runs on.
func (w *warp) part(in *instr, pc int32, m uint32) (int32, uint32) {
	n := &w.nodes[w.cur]
	rest := n.mask &^ m
	next := pc + 1
	join := in.join
	parent := w.cur
	if join < 0 || join == n.join {
		// Nowhere before the place where the whole group leaves: the parts are its own siblings.
		join, parent = n.join, n.parent
		switch {
		case in.target == join && join >= 0:
			n.mask = rest
			w.pc, w.mask = next, rest
			return next, rest
		case next == join && join >= 0:
			n.mask = m
			w.pc, w.mask = in.target, m
			return in.target, m
		}
		n.mask = rest
		if parent >= 0 {
			w.nodes[parent].parts++
		}
		n.pc, n.state = next, nodeReady
		w.cur = w.add(node{pc: in.target, join: join, mask: m, parent: parent, state: nodeReady})
		w.pc, w.mask = in.target, m
		return in.target, m
	}
	n.pc, n.state, n.parts = join, nodeParted, 0
	if next != join {
		w.nodes[parent].parts++
		w.cur = w.add(node{pc: next, join: join, mask: rest, parent: parent, state: nodeReady})
		w.pc, w.mask = next, rest
	}
	if in.target != join {
		w.nodes[parent].parts++
		w.cur = w.add(node{pc: in.target, join: join, mask: m, parent: parent, state: nodeReady})
		w.pc, w.mask = in.target, m
	}
	return w.pc, w.mask
}

func (w *warp) add(n node) int32 {
	for i := range w.nodes {
		if w.nodes[i].state == nodeFree {
			w.nodes[i] = n
			return int32(i)
		}
	}
	w.nodes = append(w.nodes, n)
	return int32(len(w.nodes) - 1)
}

// leave ends the running group: it is where it joins the others, or its threads have left the kernel.
func (w *warp) leave() {
	n := &w.nodes[w.cur]
	n.state = nodeFree
	if n.parent >= 0 {
		w.arrive(n.parent)
	}
}

// arrive tells a group that one of its parts is there or gone.
func (w *warp) arrive(i int32) {
	for i >= 0 {
		n := &w.nodes[i]
		if n.parts--; n.parts > 0 {
			return
		}
		if n.mask &= w.live; n.mask != 0 {
			n.state = nodeReady
			return
		}
		n.state = nodeFree
		i = n.parent
	}
}

// pick chooses the group that runs next: the last that was made. It is false if none can run.
func (w *warp) pick() bool {
	for i := len(w.nodes) - 1; i >= 0; i-- {
		if n := &w.nodes[i]; n.state == nodeReady {
			w.cur, w.pc, w.mask = int32(i), n.pc, n.mask&w.live
			return true
		}
	}
	return false
}

// end ends a warp, and the barriers that waited for it only.
func (x *execution) end(w *warp) {
	w.state = warpDone
	w.b.alive--
	x.runnable--
	for i := range w.b.bars {
		if b := &w.b.bars[i]; len(b.waiting) > 0 {
			x.release(w.b, b)
		}
	}
}

// look is done from time to time: the step budget and the Stop button.
func (x *execution) look(w *warp, in *instr, mask uint32) error {
	x.left = lookEvery
	x.steps += lookEvery
	if x.budget > 0 {
		if x.steps >= x.budget {
			return x.fail(driver.LaunchTimeout, w, in, bits.TrailingZeros32(mask), fmt.Sprintf("the kernel has executed %d warp instructions and does not end", x.steps))
		}
		x.left = int(min(lookEvery, x.budget-x.steps))
		x.steps -= uint64(lookEvery - x.left)
	}
	if x.cancel != nil && x.cancel() {
		return x.fail(driver.LaunchTimeout, w, in, bits.TrailingZeros32(mask), "stopped")
	}
	if x.tell != nil {
		x.tell(x.ended, x.grid.Count())
	}
	return nil
}

// place is where a lane of a warp is.
func (x *execution) place(w *warp, site int32, lane int) *driver.Place {
	s := x.p.sites[site]
	p := &driver.Place{Kernel: x.p.f.Name, Block: w.b.at, Thread: x.thread(w.index, lane)}
	if s.index >= len(s.fn.Instrs) {
		return p
	}
	i := &s.fn.Instrs[s.index]
	p.PTXLine, p.Instruction = i.Pos.Line, s.fn.Format(i)
	p.File, p.Line, p.Col = x.p.source(int(site))
	return p
}

// source is the place in the source of the instruction with that number (access.pc); "" if it has none.
func (p *program) source(pc int) (file string, line, col int) {
	s := p.sites[pc]
	if s.index >= len(s.fn.Instrs) {
		return "", 0, 0
	}
	loc := s.fn.Instrs[s.index].Loc
	for _, f := range p.m.Files {
		if f.Index == loc.File && loc.Line > 0 {
			return f.Name, loc.Line, loc.Col
		}
	}
	return "", 0, 0
}

// text is the instruction with that number (access.pc) and its line in the PTX.
func (p *program) text(pc int) (instruction string, line int) {
	s := p.sites[pc]
	if s.index >= len(s.fn.Instrs) {
		return "exit;", 0
	}
	i := &s.fn.Instrs[s.index]
	return s.fn.Format(i), i.Pos.Line
}

func (x *execution) fail(code driver.Code, w *warp, in *instr, lane int, detail string) error {
	return &driver.Error{Call: "cuLaunchKernel", Code: code, Detail: detail, Place: x.place(w, in.site, lane&31)}
}

// checked wraps what the checker found.
func (x *execution) checked(err error) error {
	e := &driver.Error{Call: "cuLaunchKernel", Code: driver.LaunchFailed, Detail: err.Error(), Cause: err}
	if v, ok := err.(*Violation); ok {
		e.Place = &driver.Place{Kernel: x.p.f.Name, Block: v.First.Block, Thread: v.First.Thread}
		e.Place.Instruction, e.Place.PTXLine = x.p.text(v.First.PC)
		e.Place.File, e.Place.Line, e.Place.Col = x.p.source(v.First.PC)
		if v.Fault == Misaligned {
			e.Code = driver.MisalignedAddress
		} else if v.Fault == OutsideShared {
			e.Code = driver.IllegalAddress
		}
	}
	return e
}

// stuck says where the warps wait when none can run.
func (x *execution) stuck(resident [][]*block) error {
	for _, bs := range resident {
		for _, b := range bs {
			for _, w := range b.warps {
				if w.state == warpWaits {
					return x.fail(driver.LaunchFailed, w, &x.p.code[w.pc], bits.TrailingZeros32(w.mask), "no thread can go on: this one waits at a barrier to which the others do not come")
				}
			}
		}
	}
	return &driver.Error{Call: "cuLaunchKernel", Code: driver.LaunchFailed, Detail: "no thread can go on"}
}

// openDivision looks for a quotient that PTX leaves open.
func (x *execution) openDivision(w *warp, in *instr, m uint32) error {
	a, b := w.src(in.a), w.src(in.b)
	n := int(in.off >> 1)
	for t := m; t != 0; t &= t - 1 {
		i := bits.TrailingZeros32(t) & 31
		switch {
		case b[i] == 0:
			return x.fail(driver.LaunchFailed, w, in, i, "division by zero")
		case in.off&1 != 0 && sext(n, b[i]) == ^uint64(0) && a[i] == 1<<(n-1):
			return x.fail(driver.LaunchFailed, w, in, i, "the quotient overflows")
		}
	}
	return nil
}

func (x *execution) special(w *warp, s special, d *lanes, m uint32) {
	var v uint64
	switch s {
	case tidX, tidY, tidZ:
		vecMov(d, &w.tid[s-tidX], nil, nil, m)
		return
	case ntidX:
		v = uint64(x.block.X)
	case ntidY:
		v = uint64(x.block.Y)
	case ntidZ:
		v = uint64(x.block.Z)
	case ctaidX:
		v = uint64(w.b.at.X)
	case ctaidY:
		v = uint64(w.b.at.Y)
	case ctaidZ:
		v = uint64(w.b.at.Z)
	case nctaidX:
		v = uint64(x.grid.X)
	case nctaidY:
		v = uint64(x.grid.Y)
	case nctaidZ:
		v = uint64(x.grid.Z)
	case warpID:
		v = uint64(w.index)
	case nwarpID:
		v = uint64(x.warpsOfOne)
	case smID:
		v = uint64(w.b.sm)
	case nsmID:
		v = uint64(x.sms)
	case gridID:
		v = x.number
	case clock:
		v = x.steps + uint64(lookEvery-x.left)
	case clockHi:
		v = (x.steps + uint64(lookEvery-x.left)) >> 32
	case sharedSize:
		v = uint64(len(w.b.shared))
	case dynamicSize:
		v = uint64(x.dynamic)
	default:
		for ; m != 0; m &= m - 1 {
			i := bits.TrailingZeros32(m) & 31
			bit := uint64(1) << i
			switch s {
			case laneID:
				d[i] = uint64(i)
			case maskEQ:
				d[i] = bit
			case maskLT:
				d[i] = bit - 1
			case maskLE:
				d[i] = bit<<1 - 1
			case maskGE:
				d[i] = allLanes &^ (bit - 1)
			case maskGT:
				d[i] = allLanes &^ (bit<<1 - 1)
			}
		}
		return
	}
	broadcast(d, v, m)
}

// broadcast sets the lanes of m.
func broadcast(d *lanes, v uint64, m uint32) {
	if m == allLanes {
		for i := range d {
			d[i] = v
		}
		return
	}
	for ; m != 0; m &= m - 1 {
		d[bits.TrailingZeros32(m)&31] = v
	}
}

// param loads a parameter of the kernel.
func (x *execution) param(w *warp, in *instr, m uint32) error {
	r := in.mem
	a := w.src(in.a)
	if x.system != nil {
		for t := m; t != 0; t &= t - 1 {
			i := bits.TrailingZeros32(t) & 31
			x.addr[i] = a[i] + in.off
		}
		x.acc = access{sm: w.b.sm, block: w.b.index, warp: w.index, space: spaceParam, size: r.size * r.vec, mask: m, addr: &x.addr, pc: int(in.site)}
		x.system.access(&x.acc)
	}
	if n := uint64(r.size); in.a < 0 && r.vec == 1 && r.regs[0] >= 0 { // the usual one: the same for all
		at := a[0] + in.off
		if at <= uint64(len(x.params)) && uint64(len(x.params))-at >= n {
			broadcast(&w.regs[r.regs[0]], r.extend(get(x.params[at:], r.size)), m)
			return nil
		}
	}
	for t := m; t != 0; t &= t - 1 {
		i := bits.TrailingZeros32(t) & 31
		at, n := a[i]+in.off, uint64(r.size*r.vec)
		if at > uint64(len(x.params)) || at+n > uint64(len(x.params)) {
			return x.fail(driver.IllegalAddress, w, in, i, fmt.Sprintf("%d bytes at %d of the parameters, which are %d bytes", n, at, len(x.params)))
		}
		for k, d := range r.regs {
			if d >= 0 {
				w.regs[d][i] = r.extend(get(x.params[at+uint64(k*r.size):], r.size))
			}
		}
	}
	return nil
}

// stale looks for memory that the launch writes and reads as never written (ld.global.nc).
func (x *execution) stale(w *warp, in *instr, m uint32) error {
	if x.fixed == nil {
		x.fixed, x.written = map[uint64]bool{}, map[uint64]bool{}
	}
	n := uint64(in.mem.size * in.mem.vec)
	for t := m; t != 0; t &= t - 1 {
		i := bits.TrailingZeros32(t) & 31
		for a := x.addr[i]; a < x.addr[i]+n; a++ {
			if in.mem.nc {
				x.fixed[a] = true
			} else if in.op != opLoad {
				x.written[a] = true
			}
			if x.fixed[a] && x.written[a] {
				return x.fail(driver.LaunchFailed, w, in, i, fmt.Sprintf("address %#x is written in this launch, and read as never written (ld.global.nc)", a))
			}
		}
	}
	return nil
}

// extend makes of what was loaded what the register holds.
func (r *memoryRef) extend(v uint64) uint64 {
	if r.signed {
		return low(r.bits, sext(8*r.size, v))
	}
	return v
}

func get(b []byte, n int) uint64 {
	switch n {
	case 8:
		return binary.LittleEndian.Uint64(b)
	case 4:
		return uint64(binary.LittleEndian.Uint32(b))
	case 2:
		return uint64(binary.LittleEndian.Uint16(b))
	}
	return uint64(b[0])
}

func put(b []byte, n int, v uint64) {
	switch n {
	case 8:
		binary.LittleEndian.PutUint64(b, v)
	case 4:
		binary.LittleEndian.PutUint32(b, uint32(v))
	case 2:
		binary.LittleEndian.PutUint16(b, uint16(v))
	default:
		b[0] = byte(v)
	}
}

// access carries out a load, store or atomic operation.
func (x *execution) access(w *warp, in *instr, m uint32) error {
	a, addr, off := w.src(in.a), &x.addr, in.off
	if m == allLanes {
		for i := range addr {
			addr[i] = a[i] + off
		}
	} else {
		for t := m; t != 0; t &= t - 1 {
			i := bits.TrailingZeros32(t) & 31
			addr[i] = a[i] + off
		}
	}
	if in.mem.space != ptx.Generic {
		return x.perform(w, in, in.mem.space, m)
	}
	for m != 0 {
		s, base := spaceOf(addr[bits.TrailingZeros32(m)&31])
		var g uint32
		for t := m; t != 0; t &= t - 1 {
			i := bits.TrailingZeros32(t) & 31
			if o, _ := spaceOf(addr[i]); o == s {
				g |= 1 << i
			}
		}
		for t := g; t != 0; t &= t - 1 {
			addr[bits.TrailingZeros32(t)&31] -= base
		}
		if err := x.perform(w, in, s, g); err != nil {
			return err
		}
		m &^= g
	}
	return nil
}

// spaceOf is the space of a generic address, and what to take off it.
func spaceOf(addr uint64) (ptx.Space, uint64) {
	switch {
	case addr >= sharedWindow && addr < localWindow:
		return ptx.Shared, sharedWindow
	case addr >= localWindow && addr < windowEnd:
		return ptx.Local, localWindow
	case addr >= constWindow && addr < globalWindow:
		return ptx.Const, 0
	}
	return ptx.Global, 0
}

// perform is access within one space, at x.addr.
func (x *execution) perform(w *warp, in *instr, s ptx.Space, m uint32) error {
	r := in.mem
	n := uint64(r.size * r.vec)
	addr, pos := &x.addr, &x.pos
	// Where in data each lane goes; addresses are checked for their range and alignment.
	var data []byte
	var odd uint64
	inside := true
	switch s {
	case ptx.Global, ptx.Const:
		data = r.win.data
		base, limit := r.win.base, uint64(len(data))-n
		inside = uint64(len(data)) >= n
		var out uint64
		if m == allLanes {
			for i := range addr {
				p := addr[i] - base
				pos[i] = p
				odd |= p
				out |= limit - p // its top bit is set where p > limit, if both are small
				out |= p
			}
		} else {
			for t := m; t != 0; t &= t - 1 {
				i := bits.TrailingZeros32(t) & 31
				p := addr[i] - base
				pos[i] = p
				odd |= p
				out |= limit - p
				out |= p
			}
		}
		inside = inside && int64(out) >= 0
	case ptx.Shared, ptx.Local:
		data = w.b.shared
		size, step := uint64(len(data)), uint64(0)
		if s == ptx.Local {
			data = w.local
			size = uint64(x.p.frame)
			step = size
			if !r.hidden {
				size = uint64(x.p.local)
			}
		}
		for t := m; t != 0; t &= t - 1 {
			i := bits.TrailingZeros32(t) & 31
			p := addr[i]
			odd |= p
			if p > size || size-p < n {
				return x.fail(driver.IllegalAddress, w, in, i, fmt.Sprintf("%d bytes at %#x, but the %v memory has %d bytes", n, p, s, size))
			}
			pos[i] = p + uint64(i)*step
		}
	default:
		return x.fail(driver.InvalidAddressSpace, w, in, bits.TrailingZeros32(m), fmt.Sprintf("an access to %v memory", s))
	}
	if odd&(n-1) != 0 || !inside {
		if err := x.inspect(w, in, s, m, n); err != nil {
			return err
		}
	}
	if x.strict && x.p.readOnly && s == ptx.Global {
		if err := x.stale(w, in, m); err != nil {
			return err
		}
	}
	if (x.system != nil || x.checker != nil) && !r.hidden {
		x.acc = access{sm: w.b.sm, block: w.b.index, warp: w.index, space: spaceNumber(s), store: in.op == opStore || in.op == opAtom, atomic: in.op == opAtom || in.op == opLoad && r.volatile, nc: r.nc, size: int(n), mask: m, addr: addr, pc: int(in.site)}
		if x.checker != nil {
			if err := x.checker.access(&x.acc); err != nil {
				return x.checked(err)
			}
		}
		if x.system != nil {
			x.system.access(&x.acc)
			if x.deps != nil {
				x.landed(w, w.pc, s)
			}
		}
	}
	if !inside {
		return x.scattered(w, in, m)
	}
	switch in.op {
	case opLoad:
		if r.vec > 1 || r.signed || r.size < 4 {
			for k, d := range r.regs {
				if d < 0 {
					continue
				}
				dst := &w.regs[d]
				for t := m; t != 0; t &= t - 1 {
					i := bits.TrailingZeros32(t) & 31
					dst[i] = r.extend(get(data[pos[i]+uint64(k*r.size):], r.size))
				}
			}
			return nil
		}
		if r.regs[0] < 0 {
			return nil
		}
		d := &w.regs[r.regs[0]]
		switch {
		case r.size == 8 && m == allLanes:
			for i := range d {
				d[i] = binary.LittleEndian.Uint64(data[pos[i]:])
			}
		case r.size == 8:
			for t := m; t != 0; t &= t - 1 {
				i := bits.TrailingZeros32(t) & 31
				d[i] = binary.LittleEndian.Uint64(data[pos[i]:])
			}
		default:
			for t := m; t != 0; t &= t - 1 {
				i := bits.TrailingZeros32(t) & 31
				d[i] = uint64(binary.LittleEndian.Uint32(data[pos[i]:]))
			}
		}
	case opStore:
		if r.vec == 1 && r.size == 8 {
			v := w.src(r.regs[0])
			for t := m; t != 0; t &= t - 1 {
				i := bits.TrailingZeros32(t) & 31
				binary.LittleEndian.PutUint64(data[pos[i]:], v[i])
			}
			return nil
		}
		for k, s := range r.regs {
			v := w.src(s)
			for t := m; t != 0; t &= t - 1 {
				i := bits.TrailingZeros32(t) & 31
				put(data[pos[i]+uint64(k*r.size):], r.size, v[i])
			}
		}
	case opAtom:
		for t := m; t != 0; t &= t - 1 {
			i := bits.TrailingZeros32(t) & 31
			x.atom(w, in, data[pos[i]:], i)
		}
	}
	return nil
}

func (x *execution) atom(w *warp, in *instr, data []byte, i int) {
	r := in.mem
	old := get(data, r.size)
	put(data, r.size, in.fn(old, w.src(in.b)[i], w.src(in.c)[i]))
	if d := r.regs[0]; d >= 0 {
		w.regs[d][i] = old
	}
}

func spaceNumber(s ptx.Space) space {
	return [...]space{ptx.Global: spaceGlobal, ptx.Shared: spaceShared, ptx.Local: spaceLocal, ptx.Const: spaceConstant, ptx.ParamSpace: spaceParam}[s]
}

// inspect finds what is wrong with an access, if anything: it may be in another window only.
func (x *execution) inspect(w *warp, in *instr, s ptx.Space, m uint32, n uint64) error {
	for t := m; t != 0; t &= t - 1 {
		i := bits.TrailingZeros32(t) & 31
		a := x.addr[i]
		if s == ptx.Global || s == ptx.Const {
			seg := x.mem.find(a)
			if seg == nil || a-seg.base >= seg.size || seg.size-(a-seg.base) < n {
				return x.fail(driver.IllegalAddress, w, in, i, x.mem.explain(a, n))
			}
			if seg.constant != (s == ptx.Const) {
				return x.fail(driver.InvalidAddressSpace, w, in, i, fmt.Sprintf("address %#x is not in %v memory", a, s))
			}
			if s == ptx.Const && in.op != opLoad {
				return x.fail(driver.IllegalAddress, w, in, i, fmt.Sprintf("address %#x is in constant memory, which cannot be written", a))
			}
		}
		if a&(n-1) != 0 {
			return x.fail(driver.MisalignedAddress, w, in, i, fmt.Sprintf("address %#x is not a multiple of %d", a, n))
		}
	}
	return nil
}

// scattered is an access over several windows, or in another than the last one; every address is good.
func (x *execution) scattered(w *warp, in *instr, m uint32) error {
	r := in.mem
	n := uint64(r.size * r.vec)
	for t := m; t != 0; t &= t - 1 {
		i := bits.TrailingZeros32(t) & 31
		b := r.win.at(x.addr[i], n)
		if b == nil {
			r.win, _ = x.mem.window(x.addr[i], n)
			b = r.win.at(x.addr[i], n)
		}
		switch in.op {
		case opLoad:
			for k, d := range r.regs {
				if d >= 0 {
					w.regs[d][i] = r.extend(get(b[k*r.size:], r.size))
				}
			}
		case opStore:
			for k, s := range r.regs {
				put(b[k*r.size:], r.size, w.src(s)[i])
			}
		case opAtom:
			x.atom(w, in, b, i)
		}
	}
	return nil
}
