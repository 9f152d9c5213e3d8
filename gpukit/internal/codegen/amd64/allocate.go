package amd64

import "slices"

// allocation says where the virtual registers are.
type allocation struct {
	reg    []int16 // by vreg: the machine register, or inSlot
	slot   []int32 // by vreg, if inSlot: the offset among the slots
	slots  int32   // bytes of slots
	spills int
	used   [2][]uint8 // vector and mask registers in use
}

const inSlot = -1

// scratch registers hold spilled operands for the time of one instruction.
// They are set aside only where something is spilled.
const (
	vectorScratch = 3
	maskScratch   = 2
)

// interval is from the first to the last occurrence of a virtual register, in
// the order of the list, and so that it covers every loop that it is carried
// into.
type interval struct {
	v           vreg
	first, last int
	weight      float64
	hint        vreg // a register whose machine register would save a move
}

// occurrences calls f for the virtual registers of an instruction.
func (i *inst) occurrences(f func(vreg)) {
	for _, v := range [...]vreg{i.reg, i.v, i.c, i.k, i.rm.v} {
		if v != 0 {
			f(v)
		}
	}
}

// intervals finds the intervals, by their first occurrence.
func (l *lowerer) intervals() []interval {
	all := make([]interval, len(l.kinds))
	weight := make([]float64, len(l.insts)+1)
	for i := range weight {
		weight[i] = 1
	}
	for _, loop := range l.loops {
		for i := loop[0]; i < loop[1]; i++ {
			weight[i] = float64(weight[i] * 8)
		}
	}
	for i := range l.insts {
		in := &l.insts[i]
		in.occurrences(func(v vreg) {
			x := &all[v]
			if x.v == 0 {
				*x = interval{v: v, first: i}
				if in.row == vmovapd && in.reg == v || in.row == kmovb && in.reg == v {
					x.hint = in.rm.v
				}
			}
			x.last = i
			x.weight += weight[i]
		})
	}
	for _, loop := range l.loops { // inner loops first
		for i := range all {
			if x := &all[i]; x.first < loop[0] && x.last >= loop[0] && x.last < loop[1] {
				x.last = loop[1]
			}
		}
	}
	all = slices.DeleteFunc(all, func(x interval) bool { return x.v == 0 })
	slices.SortStableFunc(all, func(x, y interval) int { return x.first - y.first })
	return all
}

// registersOf lists the machine registers of a class.
func (l *lowerer) registersOf(k kind, reserve bool) (free, scratch []uint8) {
	from, n, s := 0, 16, vectorScratch
	if l.a.useEVEX {
		n = 32
	}
	if k == mask { // k0 cannot be an opmask
		from, n, s = 1, 8, maskScratch
	}
	for r := from; r < n; r++ {
		free = append(free, uint8(r))
	}
	if reserve {
		return free[:len(free)-s], free[len(free)-s:]
	}
	return free, nil
}

// allocate is a linear scan over the intervals, for vectors and for masks.
func (l *lowerer) allocate() *allocation {
	a := &allocation{reg: make([]int16, len(l.kinds)), slot: make([]int32, len(l.kinds))}
	all := l.intervals()
	for c, k := range [...]kind{vec, mask} {
		free, _ := l.registersOf(k, false)
		if !l.scan(a, all, k, free) {
			free, _ = l.registersOf(k, true)
			l.scan(a, all, k, free)
		}
		for _, r := range free {
			if slices.ContainsFunc(all, func(x interval) bool { return l.kinds[x.v] == k && a.reg[x.v] == int16(r) }) {
				a.used[c] = append(a.used[c], r)
			}
		}
	}
	// Slots: vectors first, aligned.
	for _, k := range [...]kind{vec, mask} {
		for _, x := range all {
			if l.kinds[x.v] == k && a.reg[x.v] == inSlot {
				a.slot[x.v] = a.slots
				a.slots += l.size(k)
				a.spills++
			}
		}
	}
	return a
}

func (l *lowerer) size(k kind) int32 {
	if k == mask {
		return 8
	}
	return int32(8 * l.t.lanes())
}

// scan gives the intervals of class k registers and reports whether all got one.
func (l *lowerer) scan(a *allocation, all []interval, k kind, regs []uint8) bool {
	free := slices.Clone(regs)
	slices.Reverse(free) // the lowest first: shorter encodings
	var active []interval
	complete := true
	for _, x := range all {
		if l.kinds[x.v] != k {
			continue
		}
		active = slices.DeleteFunc(active, func(y interval) bool {
			// An instruction reads before it writes: what ends here is free here.
			if y.last > x.first {
				return false
			}
			free = append(free, uint8(a.reg[y.v]))
			return true
		})
		if len(free) == 0 {
			complete = false
			least, at := x, -1
			for i, y := range active {
				if y.worth() < least.worth() {
					least, at = y, i
				}
			}
			if at < 0 {
				a.reg[x.v] = inSlot
				continue
			}
			a.reg[x.v] = a.reg[least.v]
			a.reg[least.v] = inSlot
			active[at] = x
			continue
		}
		i := len(free) - 1
		if h := x.hint; h != 0 && l.kinds[h] == k {
			if j := slices.Index(free, uint8(a.reg[h])); j >= 0 && a.reg[h] != inSlot {
				i = j
			}
		}
		a.reg[x.v] = int16(free[i])
		free = slices.Delete(free, i, i+1)
		active = append(active, x)
	}
	return complete
}

func (x interval) worth() float64 { return x.weight / float64(x.last-x.first+1) }
