package sim

import (
	"fmt"
	"math/bits"

	"gpunotes/gpukit/internal/driver"
)

// Instructions of several threads. A group that comes first blocks; what it waits for runs on until it comes too or has
// left the kernel. So a warp that went apart before a barrier is well where the rest of it exits, as Volta and later
// cards define it, and what never comes is an error.

// meet carries out the instruction, or blocks the running group at it.
func (x *execution) meet(w *warp, in *instr) (done bool, err error) {
	t, n := in.meet, &w.nodes[w.cur]
	n.pc, n.mask = w.pc, w.mask
	if t.op == "bar" {
		n.state = nodeBlocked
		if w.mask != w.live {
			return false, nil
		}
		return false, x.arrive(w)
	}
	need := w.live // an old instruction takes whoever is there, so let come who will
	if t.all {
		need = w.needs(in, w.mask)
	}
	if need&^w.mask != 0 {
		n.state = nodeBlocked
		return false, nil
	}
	return true, x.together(w, in, w.mask)
}

// needs is which threads an instruction that m has come to waits for.
func (w *warp) needs(in *instr, m uint32) uint32 {
	if !in.meet.all {
		return m
	}
	return uint32(w.src(in.meet.members)[bits.TrailingZeros32(m)&31]) & w.live
}

// blocked looks for what can go on when no group of a warp can run by itself.
func (x *execution) blocked(w *warp) error {
	bars := true
	for _, all := range []bool{true, false} {
		for i := range w.nodes {
			n := &w.nodes[i]
			if n.state != nodeBlocked || x.p.code[n.pc].meet.op == "bar" {
				continue
			}
			bars = false
			in := &x.p.code[n.pc]
			there := w.at(n.pc)
			if in.meet.all != all || w.needs(in, there)&^there != 0 {
				continue
			}
			if err := x.together(w, in, there); err != nil {
				return err
			}
			w.proceed(n.pc)
			return nil
		}
	}
	if w.sever() {
		return nil
	}
	if bars {
		return x.arrive(w)
	}
	for i := range w.nodes {
		if n := &w.nodes[i]; n.state == nodeBlocked && x.p.code[n.pc].meet.op != "bar" {
			in := &x.p.code[n.pc]
			missing := w.needs(in, n.mask) &^ n.mask
			return x.fail(driver.LaunchFailed, w, in, bits.TrailingZeros32(n.mask), fmt.Sprintf("this thread waits for others of its warp (lanes %#x) that do not come", missing))
		}
	}
	return &driver.Error{Call: "cuLaunchKernel", Code: driver.LaunchFailed, Detail: "sim: internal error: a warp without a group"}
}

// sever lets threads go on that wait where ways meet for others that are blocked: meeting again is no right of theirs.
// It is false if there are none.
func (w *warp) sever() bool {
	for i := len(w.nodes) - 1; i >= 0; i-- {
		if w.nodes[i].state != nodeParted {
			continue
		}
		var away uint32
		for k := range w.nodes {
			if w.nodes[k].state == nodeFree {
				continue
			}
			for up := w.nodes[k].parent; up >= 0; up = w.nodes[up].parent {
				if up == int32(i) {
					away |= w.nodes[k].mask
				}
			}
		}
		n := &w.nodes[i]
		here := n.mask & w.live &^ away
		if here == 0 {
			continue
		}
		n.mask &^= here
		if n.parent >= 0 {
			w.nodes[n.parent].parts++
		}
		w.add(node{pc: n.pc, join: n.join, mask: here, parent: n.parent, state: nodeReady})
		return w.pick()
	}
	return false
}

// at is all threads that are blocked at pc.
func (w *warp) at(pc int32) (all uint32) {
	for i := range w.nodes {
		if n := &w.nodes[i]; n.state == nodeBlocked && n.pc == pc {
			all |= n.mask & w.live
		}
	}
	return all
}

// proceed lets the groups go on that are blocked at pc, or all if that is -1. Those that would meet at the same place
// anyway go on as one.
func (w *warp) proceed(pc int32) {
	for i := range w.nodes {
		n := &w.nodes[i]
		if n.state != nodeBlocked || pc >= 0 && n.pc != pc {
			continue
		}
		for k := i + 1; k < len(w.nodes); k++ {
			if o := &w.nodes[k]; o.state == nodeBlocked && o.pc == n.pc && o.join == n.join && o.parent == n.parent {
				n.mask |= o.mask
				o.state = nodeFree
				if n.parent >= 0 {
					w.nodes[n.parent].parts--
				}
			}
		}
		n.pc++
		n.state = nodeReady
	}
	w.pick()
}

// arrive brings a warp, all of whose threads are at barriers, to its barrier.
func (x *execution) arrive(w *warp) error {
	var first *instr
	var bar *barrier
	told := int32(-1)
	for i := range w.nodes {
		n := &w.nodes[i]
		if n.state != nodeBlocked {
			continue
		}
		in := &x.p.code[n.pc]
		lane := bits.TrailingZeros32(n.mask)
		number := w.src(in.meet.number)[lane&31]
		if number > 15 {
			return x.fail(driver.LaunchFailed, w, in, lane, fmt.Sprintf("barrier %d: a block has 0 to 15", number))
		}
		if x.checker != nil && told != n.pc {
			told = n.pc
			if err := x.checker.barrier(w.b.sm, w.b.index, w.index, w.at(n.pc), w.live, int(in.site)); err != nil {
				return x.checked(err)
			}
		}
		b := &w.b.bars[number]
		if bar != nil && (b != bar || in.meet.kind != first.meet.kind) {
			return x.fail(driver.LaunchFailed, w, in, lane, "threads of a warp wait at different barriers")
		}
		if first == nil {
			first, bar = in, b
		}
		b.count += bits.OnesCount32(w.pred(in.meet.src, in.meet.notSrc) & n.mask & w.live)
		b.threads += bits.OnesCount32(n.mask & w.live)
		if in.meet.threads >= 0 || in.meet.threads < -1 {
			b.want = int(w.src(in.meet.threads)[lane&31])
		}
	}
	if first.meet.kind == "arrive" {
		bar.arrived++
		w.proceed(-1)
	} else {
		w.state = warpWaits
		x.runnable--
		bar.waiting = append(bar.waiting, w)
	}
	x.release(w.b, bar)
	return nil
}

// release ends a barrier to which all have come.
func (x *execution) release(b *block, bar *barrier) {
	n := bar.arrived + len(bar.waiting)
	if bar.want > 0 && n*32 < bar.want || bar.want == 0 && n < b.alive {
		return
	}
	var last int64
	for _, w := range bar.waiting {
		last = max(last, w.time.now)
	}
	for _, w := range bar.waiting {
		w.time.now = last
		for i := range w.nodes {
			nd := &w.nodes[i]
			if nd.state != nodeBlocked {
				continue
			}
			t := x.p.code[nd.pc].meet
			switch t.kind {
			case "popc":
				w.fill(t.dst, uint64(bar.count), nd.mask)
			case "and":
				w.setPred(t.pdst, -one(bar.count == bar.threads), nd.mask)
			case "or":
				w.setPred(t.pdst, -one(bar.count > 0), nd.mask)
			}
		}
		w.state = warpReady
		x.runnable++
		w.proceed(-1)
	}
	*bar = barrier{waiting: bar.waiting[:0]}
}

// fill sets a register, if there is one, in the lanes of m.
func (w *warp) fill(r int32, v uint64, m uint32) {
	if r >= 0 {
		broadcast(&w.regs[r], v, m)
	}
}

// together carries out a warp instruction for the threads of m.
func (x *execution) together(w *warp, in *instr, m uint32) error {
	t := in.meet
	switch t.op {
	case "warp":
		if x.checker != nil {
			x.checker.syncWarp(w.b.index, w.index)
		}
	case "vote":
		p := w.pred(t.src, t.notSrc) & m
		switch t.kind {
		case "all":
			w.setPred(t.pdst, -one(p == m), m)
		case "any":
			w.setPred(t.pdst, -one(p != 0), m)
		case "uni":
			w.setPred(t.pdst, -one(p == 0 || p == m), m)
		case "ballot":
			w.fill(t.dst, uint64(p), m)
		}
	case "shfl":
		return x.shuffle(w, in, m)
	case "match":
		a := *w.src(t.src)
		var same uint32
		for k := m; k != 0; k &= k - 1 {
			i := bits.TrailingZeros32(k) & 31
			same = 0
			for j := range a {
				same |= one(a[j] == a[i]) << j
			}
			same &= m
			if t.kind == "any" {
				w.fill(t.dst, uint64(same), 1<<i)
			}
		}
		if t.kind == "all" {
			yes := one(same == m)
			w.fill(t.dst, uint64(yes*m), m)
			w.setPred(t.pdst, -yes, m)
		}
	case "redux":
		a := w.src(t.src)
		r := a[bits.TrailingZeros32(m)&31]
		for k := m & (m - 1); k != 0; k &= k - 1 {
			v := a[bits.TrailingZeros32(k)&31]
			switch t.kind {
			case "add":
				r = low(32, r+v)
			case "and":
				r &= v
			case "or":
				r |= v
			case "xor":
				r ^= v
			default:
				smaller := v < r
				if t.signed {
					smaller = int32(v) < int32(r)
				}
				if smaller == (t.kind == "min") {
					r = v
				}
			}
		}
		w.fill(t.dst, r, m)
	}
	return nil
}

// shuffle is shfl: lanes as in the table of "Data Movement and Conversion Instructions: shfl".
func (x *execution) shuffle(w *warp, in *instr, m uint32) error {
	t := in.meet
	a, bs, cs := *w.src(t.src), *w.src(in.b), *w.src(in.c) // copies: the result may lie in the place of an operand
	for k := m; k != 0; k &= k - 1 {
		lane := bits.TrailingZeros32(k) & 31
		b, c, segment := int(bs[lane]&31), int(cs[lane]&31), int(cs[lane]>>8&31)
		most := lane&segment | c&^segment
		j := lane
		var ok bool
		switch t.kind {
		case "up":
			j = lane - b
			ok = j >= most
		case "down":
			j = lane + b
			ok = j <= most
		case "bfly":
			j = lane ^ b
			ok = j <= most
		case "idx":
			j = lane&segment | b&^segment
			ok = j <= most
		}
		if !ok {
			j = lane
		}
		v := a[j&31]
		if m>>(j&31)&1 == 0 {
			if x.strict {
				return x.fail(driver.LaunchFailed, w, in, lane, fmt.Sprintf("a shuffle from lane %d, which is not there", j))
			}
			v = 0
		}
		w.fill(t.dst, v, 1<<lane)
		w.setPred(t.pdst, -one(ok), 1<<lane)
	}
	return nil
}
