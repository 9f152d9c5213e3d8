package cpu

import "gpunotes/gpukit/internal/ir"

// Where threads of a block meet, the block is one frame, and its lanes are at
// the same operation anyway. Lanes that have left the kernel have left the
// frame; the others are all there, or the function would have been refused
// (ir.Divergences).

// meet reports whether the threads may go on. If one of them has failed they
// may not: what comes behind depends on it.
func (m *machine) meet() bool {
	if m.worst.in != nil {
		m.stop = true
	}
	return !m.stop
}

func stepBarrier(m *machine, x *inst) { m.meet() }

var shuffles [numTypes]step

func shuffleStep[T element](m *machine, x *inst) {
	if !m.meet() {
		return
	}
	b, n := m.banks[x.t].(*bank[T]), m.n[x.frame]
	v, by := b.view[x.a][:n], m.banks[ir.I64].(*bank[int64]).view[x.b]
	step := 1
	if x.ones&2 != 0 {
		step = 0
	}
	ids, here := m.identities(x.frame), m.whereabouts(x.frame)
	if x.d == noSlot {
		return
	}
	d := b.own[x.d][:n]
	for i := range d {
		t := i
		if ids != nil {
			t = int(ids[i])
		}
		lane, from := t%ir.WarpSize, i
		if s := ir.ShuffleSource(x.src.Kind, lane, by[i*step]); s >= 0 && here[t-lane+s] >= 0 {
			from = int(here[t-lane+s])
		}
		d[i] = v[from]
	}
	b.view[x.d] = d
}

// whereabouts lists where in the frame each thread of the block is, or -1, up
// to the end of the last warp.
func (m *machine) whereabouts(frame int32) []int32 {
	all := (m.n[frameBlock] + ir.WarpSize - 1) / ir.WarpSize * ir.WarpSize
	if len(m.here) < all {
		m.here = make([]int32, all)
	}
	here, ids := m.here[:all], m.identities(frame)
	for i := range here {
		here[i] = -1
	}
	if ids == nil {
		for i := range m.n[frame] {
			here[i] = int32(i)
		}
	}
	for i, id := range ids {
		here[id] = int32(i)
	}
	return here
}

func stepVote(m *machine, x *inst) {
	if !m.meet() || x.d == noSlot {
		return
	}
	votes, n := m.banks[ir.Bool].(*bank[bool]), m.n[x.frame]
	ids := m.identities(x.frame)
	warp := func(i int) (int, uint32) {
		if ids != nil {
			i = int(ids[i])
		}
		return i / ir.WarpSize, 1 << (i % ir.WarpSize)
	}
	var ballot, present [MaxGroup / ir.WarpSize]uint32
	for i, v := range votes.view[x.a][:n] {
		w, mask := warp(i)
		present[w] |= mask
		if v {
			ballot[w] |= mask
		}
	}
	if x.src.Kind == ir.Ballot {
		b := m.banks[ir.U32].(*bank[uint32])
		d := b.own[x.d][:n]
		for i := range d {
			w, _ := warp(i)
			d[i] = ballot[w]
		}
		b.view[x.d] = d
		return
	}
	d := votes.own[x.d][:n]
	for i := range d {
		w, _ := warp(i)
		d[i] = ballot[w] != 0
		if x.src.Kind == ir.VoteAll {
			d[i] = ballot[w] == present[w]
		}
	}
	votes.view[x.d] = d
}
