package cpu

import "gpunotes/gpukit/internal/ir"

// machine executes a plan on one goroutine, block after block.
type machine struct {
	plan  *plan
	banks [numTypes]slots

	n       []int     // lanes, by frame
	lane    [][]int32 // by frame: the place of each lane in the outer frame; nil if the same
	laneBuf [][]int32

	// By construct: the places, in its outer frame, of lanes that passed it on
	// the way to an outer construct; or that all did.
	gone    [][]int32
	allGone []bool

	base    int       // its first worker
	inputs  []ir.Bits // of the worker that worst is about
	worst   flaw      // of the lowest worker that failed in place
	lines   []line
	dropped int // lines that are not kept

	bad    []int32 // scratch of leaveFaulty
	places []int32 // scratch of identities
	here   []int32 // scratch of shuffle

	mark    []bool // scratch of compact, false in between
	moves   []move
	scratch []int32

	stop  bool // leave the block
	fault bool // because a lane faulted

	run   *run
	first bool    // the caller's
	block int64   // the block's number
	spent float64 // ns since the last poll, about
}

func (p *plan) newMachine() *machine {
	m := &machine{plan: p, n: make([]int, p.frames), lane: make([][]int32, p.frames), laneBuf: make([][]int32, p.frames),
		gone: make([][]int32, p.constructs), allGone: make([]bool, p.constructs)}
	for t := range m.banks {
		if p.slots[t] > 0 || p.holds(ir.Type(t)) {
			m.banks[t] = newSlots(ir.Type(t), p.slots[t], len(p.params), len(p.f.Results), len(p.f.Mems))
			m.banks[t].allot(p.buffer[t], p.buffers[t], p.length)
		}
	}
	if p.constructs > 1 {
		mem := make([]int32, (p.frames+1)*(p.length+1))
		for i := range m.laneBuf {
			m.laneBuf[i], mem = mem[:p.length+1:p.length+1], mem[p.length+1:]
		}
		m.scratch = mem
		m.mark = make([]bool, p.length)
	}
	m.n[frameOne] = 1
	for i, mem := range p.f.Mems {
		if mem.Space == ir.Constant {
			m.banks[mem.Elem].fillMem(i, mem.Data)
		}
	}
	for _, c := range p.consts {
		m.banks[c.t].set(c.slot, c.bits)
	}
	return m
}

// exec runs code until its frame is empty or the machine stops.
func (m *machine) exec(code []inst) {
	for i := range code {
		x := &code[i]
		x.run(m, x)
		if x.check && (m.stop || m.n[x.frame] == 0) {
			return
		}
	}
}

// enterAll runs a body for all n lanes of the outer frame: nothing is copied.
func (m *machine) enterAll(b *body, n int) {
	m.n[b.frame], m.lane[b.frame] = n, nil
	for _, t := range b.in {
		m.banks[t.dst.t].alias(t.dst.slot, t.src.slot)
	}
}

// enterSome runs a body for the lanes at idx of the outer frame.
func (m *machine) enterSome(b *body, idx []int32) {
	m.n[b.frame], m.lane[b.frame] = len(idx), idx
	for _, t := range b.in {
		m.banks[t.dst.t].gather(t.dst.slot, t.src.slot, idx)
	}
}

func (m *machine) begin(k *construct) {
	m.gone[k.id], m.allGone[k.id] = m.gone[k.id][:0], false
}

// end goes on behind a construct, with the lanes that arrived there.
func (m *machine) end(k *construct) {
	if m.stop {
		return
	}
	n := m.n[k.outer]
	gone := len(m.gone[k.id])
	if m.allGone[k.id] || gone == n {
		m.n[k.outer] = 0
		return
	}
	for _, r := range k.results {
		if !r.one {
			m.banks[r.t].begin(r.slot, n)
		}
	}
	if gone > 0 {
		m.compact(k, n)
	}
}

// compact closes the gaps that lanes left in the outer frame of k, with lanes
// from its end: the cost is that of the lanes that left.
func (m *machine) compact(k *construct, n int) {
	gone, fr := m.gone[k.id], k.outer
	rest := n - len(gone)
	for _, g := range gone {
		m.mark[g] = true
	}
	m.moves = m.moves[:0]
	last := int32(rest)
	for _, g := range gone {
		if int(g) < rest {
			for m.mark[last] {
				last++
			}
			m.moves = append(m.moves, move{g, last})
			last++
		}
	}
	for _, g := range gone {
		m.mark[g] = false
	}
	lane := m.lane[fr]
	if lane == nil {
		lane = m.laneBuf[fr]
		for i := range lane[:n] {
			lane[i] = int32(i)
		}
	}
	for _, mv := range m.moves {
		lane[mv.to] = lane[mv.from]
	}
	m.n[fr], m.lane[fr] = rest, lane[:rest]
	for _, r := range k.live {
		m.banks[r.t].compact(r.slot, rest, m.moves)
	}
}

func stepLeave(m *machine, x *inst) {
	l := x.leave
	n := m.n[x.frame]
	idx := m.lane[x.frame]
	for _, k := range l.past {
		if idx == nil {
			m.allGone[k.id] = true
		} else {
			m.gone[k.id] = append(m.gone[k.id], idx...)
		}
		up := m.lane[k.outer]
		switch {
		case up == nil:
		case idx == nil:
			idx = up
		default:
			s := m.scratch[:n]
			for i, j := range idx {
				s[i] = up[j]
			}
			idx = s
		}
	}
	for i, src := range l.vals {
		dst := l.target.results[i]
		b := m.banks[dst.t]
		switch {
		case dst.one:
			b.copy(dst.slot, src.slot, 1)
		case idx == nil && src.one:
			b.spread(dst.slot, src.slot, n)
		case idx == nil:
			b.copy(dst.slot, src.slot, n)
		case src.one:
			b.scatterOne(dst.slot, src.slot, idx)
		default:
			b.scatter(dst.slot, src.slot, idx)
		}
	}
	m.n[x.frame] = 0
}

func stepUnreachable(m *machine, x *inst) {
	panic("cpu: internal error: unreachable reached in " + m.plan.f.Name)
}

func stepBranch(m *machine, x *inst) {
	b := x.branch
	m.begin(&b.construct)
	n := m.n[x.frame]
	conds := m.banks[ir.Bool].(*bank[bool]).view[b.cond.slot]
	then, els := &b.arms[0], &b.arms[1]
	yes := n
	var t, e []int32 // the lanes of the arms, once they are known
	switch {
	case b.cond.one:
		if !conds[0] {
			yes = 0
		}
	case els.idle && !anyTrue(conds[:n]):
		yes = 0
	case els.idle:
		t = m.laneBuf[then.frame]
		yes = listTrue(conds[:n], t)
	default:
		yes = countTrue(conds[:n])
		if yes > 0 && yes < n {
			t, e = m.laneBuf[then.frame], m.laneBuf[els.frame]
			partition(conds[:n], t, e)
		}
	}
	switch yes {
	case n:
		m.armAll(then, n)
	case 0:
		m.armAll(els, n)
	default:
		m.armSome(then, t[:yes])
		if !els.idle && !m.stop {
			m.armSome(els, e[:n-yes])
		}
	}
	m.end(&b.construct)
}

func (m *machine) armAll(b *body, n int) {
	if !b.idle {
		m.enterAll(b, n)
		m.exec(b.code)
	}
}

func (m *machine) armSome(b *body, idx []int32) {
	if !b.idle {
		m.enterSome(b, idx)
		m.exec(b.code)
	}
}

// partition lists the places that hold true in t and the others in e; both
// have room for one more than there are.
func partition(conds []bool, t, e []int32) {
	nt, ne := 0, 0
	for i, c := range conds {
		t[nt], e[ne] = int32(i), int32(i)
		y := int(bit(c))
		nt += y
		ne += 1 - y
	}
}

// listTrue lists the places that hold true in t, which has room for one more,
// and counts them.
func listTrue(conds []bool, t []int32) int {
	n := 0
	for i, c := range conds {
		t[n] = int32(i)
		n += int(bit(c))
	}
	return n
}

func stepLoop(m *machine, x *inst) {
	l := x.loop
	m.begin(&l.construct)
	n := m.n[x.frame]
	m.enterAll(&l.body, n)
	for _, t := range l.carried {
		b := m.banks[t.dst.t]
		switch {
		case t.dst.one:
			b.copy(t.dst.slot, t.src.slot, 1)
		case t.src.one:
			b.spread(t.dst.slot, t.src.slot, n)
		default:
			b.alias(t.dst.slot, t.src.slot)
		}
	}
	fr := l.body.frame
	for {
		lanes := m.n[fr]
		m.exec(l.body.code)
		if m.stop || m.n[fr] == 0 {
			break
		}
		if m.poll(float64(float64(lanes)*l.cost) + 50); m.stop {
			break
		}
	}
	m.end(&l.construct)
}

func stepNext(m *machine, x *inst) {
	n := m.n[x.frame]
	for _, t := range x.next.moves {
		b := m.banks[t.dst.t]
		switch {
		case t.dst.one:
			b.copy(t.dst.slot, t.src.slot, 1)
		case t.src.one:
			b.spread(t.dst.slot, t.src.slot, n)
		case t.swap:
			b.swap(t.dst.slot, t.src.slot, n)
		default:
			b.copy(t.dst.slot, t.src.slot, n)
		}
	}
}
