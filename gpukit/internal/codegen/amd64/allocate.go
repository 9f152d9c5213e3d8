package amd64

import (
	"math"
	"slices"
)

// allocation says where the virtual registers are.
type allocation struct {
	reg    []int16 // by vreg: the machine register, or inMemory
	slot   []int32 // by vreg: the offset among the slots, of those in memory but constants
	slots  int32   // bytes of slots
	spills int
	used   [classes][]uint8  // registers in use, in order
	spare  [classes][]uint8  // registers for operands in memory, for one instruction
	free   [classes][]uint32 // by instruction: the registers that hold nothing at it
}

const spilled = -1

// class numbers the kinds of virtual registers.
func class(k kind) int {
	switch k {
	case vec:
		return 0
	case mask:
		return 1
	}
	return 2
}

const classes = 3

var classKinds = [classes]kind{vec, mask, r64}

// interval is from the first to the last occurrence of a virtual register, in the
// order of the list, and so that it covers every loop that it is carried into.
// Instruction i reads at 2i and writes at 2i+1.
type interval struct {
	v           vreg
	first, last int32
	weight      float64
	worth       float64 // what a register gains it, per place at which it takes one
	hints       [3]vreg // whose machine register would save a move
	inMemory    bool    // it must not have a register
}

// flatten puts the blocks where they belong.
func flatten(out, insts []inst) []inst {
	for i := range insts {
		if in := &insts[i]; in.special == insertion {
			out = flatten(out, in.block.insts)
			continue
		}
		out = append(out, insts[i])
	}
	return out
}

// operandsAt calls f for the virtual registers of an instruction: whether it is
// written, and whether it is needed up to the end of the instruction.
func (in *inst) operandsAt(f func(v vreg, writes, late bool)) {
	late := false
	if r := in.row; r != nil {
		// A legacy instruction begins with a copy of v, a gather with whole lanes.
		late = r.legacy && r.reads && in.v != 0 || r.form == formGather
	}
	regReads, rmWrites := false, false
	if r := in.row; r != nil {
		switch r.form {
		case formMR, formMVR, formScatter:
			regReads = true
			rmWrites = r != testReg
		case formTest:
			regReads = true
		case formM:
			rmWrites = in.reg == 0 && !(r == cmpImm || r == cmpImm4 || r == testImm)
		}
	}
	if in.v != 0 {
		f(in.v, false, late && in.row.form == formGather)
	}
	if in.c != 0 {
		f(in.c, false, false)
	}
	if in.k != 0 {
		f(in.k, false, late)
	}
	if in.rm.v != 0 {
		f(in.rm.v, false, late)
		if rmWrites {
			f(in.rm.v, true, true)
		}
	}
	if in.rm.base != 0 {
		f(in.rm.base, false, late)
	}
	if in.rm.index != 0 {
		f(in.rm.index, false, late)
	}
	if in.reg != 0 {
		f(in.reg, !regReads, false)
	}
}

// intervals finds the intervals, by their first occurrence.
func (l *lowerer) intervals() []interval {
	all := make([]interval, len(l.kinds))
	weight, cold := 1.0, 0
	type span struct{ begin, end int32 }
	var loops []span
	var open []int
	for i := range l.insts {
		in := &l.insts[i]
		switch in.special {
		case loopBegin:
			weight = float64(weight * 8)
			open = append(open, len(loops))
			loops = append(loops, span{int32(2 * i), 0})
		case loopEnd:
			weight /= 8
			loops[open[len(open)-1]].end = int32(2*i + 1)
			open = open[:len(open)-1]
		case coldBegin:
			cold++
		case coldEnd:
			cold--
		}
		w := weight
		if cold > 0 {
			w = weight / 64
		}
		in.operandsAt(func(v vreg, writes, late bool) {
			x := &all[v]
			at := int32(2 * i)
			if writes || late {
				at++
			}
			if x.v == 0 {
				*x = interval{v: v, first: at}
				if writes {
					x.hints = in.hints()
				}
			}
			x.last = max(x.last, at)
			x.weight += w
		})
	}
	// Inner loops are behind the loops around them.
	for _, s := range slices.Backward(loops) {
		for i := range all {
			if x := &all[i]; x.v != 0 && x.first < s.begin && x.last >= s.begin && x.last < s.end {
				x.last = s.end
			}
		}
	}
	for i := range all {
		if l.poolOf[i] != 0 {
			all[i].weight /= 2 // nothing is stored, and often nothing loaded
		}
	}
	all = slices.DeleteFunc(all, func(x interval) bool { return x.v == 0 })
	for i := range all {
		x := &all[i]
		x.worth = x.weight / math.Max(1, float64(x.last-x.first))
	}
	slices.SortStableFunc(all, func(x, y interval) int { return int(x.first - y.first) })
	return all
}

// hints are the operands whose register the result had best take over.
func (in *inst) hints() (h [3]vreg) {
	switch r := in.row; {
	case in.special == fused:
		return [3]vreg{in.c, in.v, in.rm.v}
	case r == nil:
	case r == vmovapd || r == kmovw || r == movLoad:
		h[0] = in.rm.v
	case r.legacy && r.reads:
		h[0] = in.v
	}
	return h
}

// registersOf lists the machine registers of a class, those that are best first.
func (l *lowerer) registersOf(c int) (all []uint8) {
	switch classKinds[c] {
	case vec:
		n := 16
		if l.a.useEVEX {
			n = 32
		}
		for r := range n {
			all = append(all, uint8(r))
		}
	case mask: // k0 cannot be an opmask
		for r := range 7 {
			all = append(all, uint8(r+1))
		}
	default:
		all = []uint8{rdi, rbx, r8q, r9, r10, r11, 12, 13, 14}
	}
	return all
}

// allocate is a linear scan over the intervals of each class. Operands in memory go
// through registers that are free at the instruction; others are set aside for them only as
// far as those are not enough.
func (l *lowerer) allocate() *allocation {
	a := &allocation{reg: make([]int16, len(l.kinds)), slot: make([]int32, len(l.kinds))}
	all := l.intervals()
	var of [classes][]interval
	var size [classes]int
	for i := range all {
		size[class(l.kinds[all[i].v])]++
	}
	for c, n := range size {
		of[c] = make([]interval, 0, n)
	}
	for _, x := range all {
		c := class(l.kinds[x.v])
		of[c] = append(of[c], x)
	}
	var reserve [classes]int
	done := [classes]bool{}
	for again, tries := true, 0; again; tries++ {
		again = false
		for c := range classes {
			if done[c] {
				continue
			}
			done[c] = true
			regs := l.registersOf(c)
			n := len(regs) - reserve[c]
			a.spare[c] = regs[n:]
			l.scan(a, of[c], regs[:n])
			a.free[c] = l.freeRegisters(a, of[c], regs[:n], a.free[c])
		}
		e := &emitter{l: l, a: l.a, alloc: a, dry: true}
		e.resolve()
		for c, n := range e.most {
			if n <= reserve[c] {
				continue
			}
			again, done[c] = true, false
			if tries >= mostTries || len(e.short[c]) > mostShort || !l.makeRoom(a, of[c], e.short[c]) {
				reserve[c] = n
			}
		}
	}
	for c := range classes {
		var in [32]bool
		for _, x := range of[c] {
			if r := a.reg[x.v]; r != spilled {
				in[r] = true
			}
		}
		for r, yes := range in {
			if yes {
				a.used[c] = append(a.used[c], uint8(r))
			}
		}
	}
	for _, c := range [...]int{0, 1, 2} { // vectors first: they are aligned
		for _, x := range of[c] {
			if a.reg[x.v] == spilled && l.poolOf[x.v] == 0 {
				a.slot[x.v] = a.slots
				a.slots += l.size(classKinds[c])
				a.spills++
			}
		}
	}
	return a
}

func (l *lowerer) size(k kind) int32 {
	if k == vec {
		return int32(l.regBytes)
	}
	return 8
}

// scan gives the intervals of a class registers.
func (l *lowerer) scan(a *allocation, all []interval, regs []uint8) {
	var free uint32
	for _, r := range regs {
		free |= 1 << r
	}
	active := make([]*interval, 0, 32)
	for i := range all {
		x := &all[i]
		n := 0
		for _, y := range active {
			// An instruction reads before it writes: what ends here is free here.
			if y.last >= x.first {
				active[n] = y
				n++
			} else {
				free |= 1 << a.reg[y.v]
			}
		}
		active = active[:n]
		if x.inMemory {
			a.reg[x.v] = spilled
			continue
		}
		if free == 0 {
			least, at := x, -1
			for i, y := range active {
				if y.worth < least.worth {
					least, at = y, i
				}
			}
			if at < 0 {
				a.reg[x.v] = spilled
				continue
			}
			a.reg[x.v] = a.reg[least.v]
			a.reg[least.v] = spilled
			active[at] = x
			continue
		}
		r := int16(-1)
		for _, h := range x.hints {
			if h != 0 && l.kinds[h] == l.kinds[x.v] && a.reg[h] >= 0 && free>>a.reg[h]&1 != 0 {
				r = a.reg[h]
				break
			}
		}
		if r < 0 {
			for _, c := range regs {
				if free>>c&1 != 0 {
					r = int16(c)
					break
				}
			}
		}
		a.reg[x.v] = r
		free &^= 1 << r
		active = append(active, x)
	}
}

// Registers for operands in memory are taken from values that are worth the least, if only
// mostShort instructions need any and mostTries times are enough, or else set aside.
const (
	mostTries = 4
	mostShort = 16
)

// shortage says that an instruction needs more registers for operands in memory than are free.
type shortage struct{ at, n int32 }

// makeRoom says that some values that have registers at instructions that are short of
// them must be in memory, and reports whether it found any for each.
func (l *lowerer) makeRoom(a *allocation, all []interval, short []shortage) bool {
	slices.SortFunc(short, func(x, y shortage) int { return int(x.at - y.at) })
	var active []*interval
	next := 0
	for _, s := range short {
		for ; next < len(all) && all[next].first <= 2*s.at+1; next++ {
			active = append(active, &all[next])
		}
		active = slices.DeleteFunc(active, func(x *interval) bool { return x.last < 2*s.at })
		n := s.n
		for _, x := range active {
			switch {
			case a.reg[x.v] == spilled:
				x.inMemory = true // so that it does not take what becomes free
			case x.inMemory:
				n--
			}
		}
		for ; n > 0; n-- {
			var least *interval
			for _, x := range active {
				if !x.inMemory && (least == nil || x.worth < least.worth) && !l.insts[s.at].mentions(x.v) {
					least = x
				}
			}
			if least == nil {
				return false
			}
			least.inMemory = true
		}
	}
	return true
}

// mentions reports whether v is an operand of an instruction.
func (in *inst) mentions(v vreg) (yes bool) {
	in.operandsAt(func(o vreg, _, _ bool) { yes = yes || o == v })
	return yes
}

// freeRegisters finds those of regs that no interval has, by instruction. It may use buf.
func (l *lowerer) freeRegisters(a *allocation, all []interval, regs []uint8, buf []uint32) []uint32 {
	n := len(l.insts)
	if cap(l.b.marks) < 4*n+2 {
		l.b.marks = make([]uint32, 6*n+2)
	}
	begins, ends := l.b.marks[:2*n+1], l.b.marks[2*n+1:4*n+2]
	clear(begins)
	clear(ends)
	for i := range all {
		x := &all[i]
		if r := a.reg[x.v]; r != spilled {
			begins[x.first] |= 1 << r
			ends[x.last+1] |= 1 << r
		}
	}
	every, taken := uint32(0), uint32(0)
	for _, r := range regs {
		every |= 1 << r
	}
	buf = slices.Grow(buf[:0], n)
	for i := range n {
		before := taken&^ends[2*i] | begins[2*i]
		taken = before&^ends[2*i+1] | begins[2*i+1]
		buf = append(buf, every&^before&^taken)
	}
	return buf
}
