package amd64

import (
	"math/bits"

	"gpunotes/gpukit/internal/ir"
)

// How elements of memories are read and written depends on how the lanes hold the
// index. Nothing outside of a memory is touched for any lane: lanes that are not
// active are masked, as their indices are not checked. What reads one element for
// all lanes has no mask: where it stands some lane is active.

func init() {
	opTable[ir.OpLoad], opTable[ir.OpStore], opTable[ir.OpClear] = lowerLoad, lowerStore, lowerClear
	opTable[ir.OpBounds], opTable[ir.OpSliceBounds] = lowerBounds, lowerSliceBounds
	opTable[ir.OpAtomic], opTable[ir.OpCall] = lowerAtomic, lowerCall
	scalarTable[ir.OpLoad] = loadScalar
}

// memories is what lowering knows of the memories of a kernel.
type memories struct {
	globals   []int  // by memory of the function that is being lowered: the number of a Global one
	bases     []vreg // by number: its address, once it is needed
	lengths   []vreg
	locals    []int          // by memory: where a Local one is in the state, -1 if nowhere yet
	areas     int            // of lane loops, in the state; 0 if nowhere yet
	tails     map[int][]vreg // by the size of a lane: the masks of the lanes that there are
	group     *block         // at the beginning of a group
	uncleared []ir.Mem
}

// bindMemories numbers the memories of f. Its Global ones are those of outer, in order, or those of
// the kernel.
func (l *lowerer) bindMemories(f *ir.Func, outer []int) {
	m := &l.mem
	m.globals, m.locals = make([]int, len(f.Mems)), make([]int, len(f.Mems))
	n := 0
	for i := range f.Mems {
		m.locals[i] = -1
		if f.Mems[i].Space == ir.Global {
			m.globals[i] = n
			if outer != nil {
				m.globals[i] = outer[n]
			}
			n++
		}
	}
	for len(m.bases) < n {
		m.bases, m.lengths = append(m.bases, 0), append(m.lengths, 0)
	}
}

// memoryWord is a word of BlockMems in a register from the start of the call on.
func (l *lowerer) memoryWord(known []vreg, number, word int) vreg {
	if known[number] == 0 {
		r := l.newGPR()
		known[number] = r
		l.in(l.prologue, func() {
			t := l.newGPR()
			l.add(inst{row: movLoad, reg: t, rm: inState(stateBlock)})
			l.op2(movLoad, t, address(t, 0, 0, BlockMems))
			l.op2(movLoad, r, address(t, 0, 0, int32(16*number+8*word)))
		})
	}
	return known[number]
}

// memoryBase is the address of a Global memory or of the table of a Constant one.
func (l *lowerer) memoryBase(m ir.Mem) vreg {
	if l.f.Mems[m].Space == ir.Constant {
		v := l.newGPR()
		l.op2(lea, v, fromMem(memory{relative: true, constant: l.a.constant(tableBytes(&l.f.Mems[m]))}))
		return v
	}
	return l.memoryWord(l.mem.bases, l.mem.globals[m], 0)
}

// memoryLength is the length in elements of a Global or Constant memory.
func (l *lowerer) memoryLength(m ir.Mem) vreg {
	if mem := &l.f.Mems[m]; mem.Space != ir.Global {
		v := l.newGPR()
		l.loadInt(v, uint64(mem.Len))
		return v
	}
	return l.memoryWord(l.mem.lengths, l.mem.globals[m], 1)
}

// tableBytes are the elements of a Constant memory as they lie in the pool.
func tableBytes(m *ir.Memory) []byte {
	size := m.Elem.Size()
	b := make([]byte, 0, m.Len*size)
	for i := range m.Len {
		x := m.Data[i]
		for range size {
			b = append(b, byte(x))
			x >>= 8
		}
	}
	return b
}

func log2(n int) uint8 { return uint8(bits.TrailingZeros(uint(n))) }

// held is the type as which registers hold elements of type t: bools are bytes.
func held(t ir.Type) ir.Type {
	if t == ir.Bool {
		return ir.U8
	}
	return t
}

// fullLanes is how many lanes of type t a register has room for, which may be more
// than a group has.
func (l *lowerer) fullLanes(t ir.Type) int { return l.regBytes / laneSize(t) }

// exactMasks are the active lanes as masks of the parts of type t; those behind the last
// lane of the group are not in them.
func (l *lowerer) exactMasks(t ir.Type) []vreg {
	if !l.allTheTime() || l.fullLanes(t) == l.maskLanes {
		return l.exactly(l.active(), t)
	}
	// For the whole group, and for all who ask.
	size := laneSize(t)
	if l.mem.tails[size] == nil {
		if l.mem.tails == nil {
			l.mem.tails = map[int][]vreg{}
		}
		l.in(l.mem.group, func() { l.mem.tails[size] = l.exactly(l.fr.tail, t) })
	}
	return l.mem.tails[size]
}

// allTheTime reports that all lanes that there are are active, each time that this place
// is arrived at.
func (l *lowerer) allTheTime() bool { return l.allActive() && !l.an.fails }

// wholeParts reports that all lanes of registers with lanes of type t are active, each
// time that this place is arrived at.
func (l *lowerer) wholeParts(t ir.Type) bool {
	return l.fr.full && l.allTheTime() && l.lanes >= l.fullLanes(t)
}

func (l *lowerer) exactly(active []vreg, t ir.Type) []vreg {
	ms := l.maskFor(active, t)
	if l.lanes >= l.fullLanes(t) {
		return ms
	}
	m := l.newMask()
	if l.isa == AVX512 {
		l.op2(kmovb, m, fromReg(ms[0]))
		return []vreg{m}
	}
	x, y := l.vector(), l.vector()
	l.op3i(vshufps, x, ms[0], fromReg(ms[0]), 0x88)
	l.op2i(vpermqI, y, fromReg(x), 0x08)
	l.op3(vandpd, m, y, fromReg(l.poolVector(constantKey{2, -4}, l.words(^uint64(0), ^uint64(0), 0, 0))))
	return []vreg{m}
}

// element is element index of a memory, an index that is uniform.
func (l *lowerer) element(m ir.Mem, index ir.Value) source {
	base, size := l.memoryBase(m), l.f.Mems[m].Elem.Size()
	index, off := l.displaced(index, size)
	if c, ok := l.known(index); ok && int64(c) >= 0 && c < 1<<27 {
		return address(base, 0, 0, int32(c)*int32(size))
	}
	return address(base, l.gpr(index), log2(size), off)
}

// loadScalar is a load of an integer or bool that all lanes want.
func loadScalar(l *lowerer, in *ir.Instr, _ ir.Type, dst vreg) bool {
	m := &l.f.Mems[in.Mem]
	if m.Space == ir.Local || !l.uniform(in.Args[0]) {
		return false
	}
	l.op2(loadRowOf(m.Elem), dst, l.element(in.Mem, in.Args[0]))
	return true
}

// isStill reports whether a load of so many registers gives the same in all rows of the
// fastest dimension, and is to be done before them.
func (l *lowerer) isStill(m ir.Mem, index ir.Value, registers int) bool {
	f := &l.fr
	most := 16
	if l.isa == AVX2 {
		most = 6
	}
	if f.still == nil || l.f != l.k.Func || l.f.Mems[m].Space != ir.Global || !f.single || len(l.stack) != 2 || !l.wholeParts(held(l.f.Mems[m].Elem)) || f.stills+registers > most || l.writes() {
		return false
	}
	from, _ := l.displaced(index, 1)
	for i, p := range l.f.Params {
		if p.Value == from && i < len(l.k.Still) && l.k.Still[i] {
			f.stills += registers
			return true
		}
	}
	return false
}

// writes reports whether workers may write to memories.
func (l *lowerer) writes() (yes bool) {
	ir.Walk(l.f.Body, func(in *ir.Instr) {
		switch in.Op {
		case ir.OpStore, ir.OpClear, ir.OpAtomic, ir.OpCall:
			yes = true
		}
	})
	return yes
}

func lowerLoad(l *lowerer, in *ir.Instr, _ ir.Type, dst []vreg) {
	m := &l.f.Mems[in.Mem]
	index, t := in.Args[0], m.Elem
	var vs []vreg
	switch {
	case m.Space == ir.Local:
		vs = l.loadLocal(in)
	case l.narrow && t.IsFloat():
		row := vbroadcastsd
		if t == ir.F32 {
			row = vbroadcastss
		}
		load := func() { l.op2(row, dst[0], l.element(in.Mem, index)) }
		if l.isStill(in.Mem, index, 1) {
			l.in(l.fr.still, load)
		} else {
			load()
		}
		return
	case l.isa == AVX512 && m.Space == ir.Constant && t.Size() == 8 && m.Len <= shortTable:
		vs = l.fromShortTable(m, index)
	default:
		base := l.memoryBase(in.Mem)
		first, ok := l.unit(index)
		switch {
		case ok && t.Size() >= 4 && l.isStill(in.Mem, index, l.parts(t)):
			l.in(l.fr.still, func() { vs = l.loadUnit(in.Mem, base, first, index) })
		case ok:
			vs = l.loadUnit(in.Mem, base, first, index)
		default:
			vs = l.gather(t, base, index)
		}
	}
	l.calledOut = true // compute need not define it
	if t == ir.Bool {
		l.defineMasks(in.Results[0], l.nonZero(vs))
		return
	}
	l.define(in.Results[0], vs)
}

// heldValues are the registers of x, in which a bool is 0 or 1.
func (l *lowerer) heldValues(x ir.Value) []vreg {
	if l.f.Types[x] == ir.Bool {
		return l.zeroOrOne(l.masks(x))
	}
	return l.vecs(x)
}

// nonZero has the 32-bit lanes that are not zero as mask parts.
func (l *lowerer) nonZero(vs []vreg) []vreg {
	ms := l.newMasks(len(vs))
	for p, v := range vs {
		if l.isa == AVX512 {
			l.op3(vptestmd, ms[p], v, fromReg(v))
		} else {
			l.op3(vpcmpgtd, ms[p], v, fromReg(l.constant(0, 8)))
		}
	}
	return l.maskFrom(ms, ir.U8)
}

// zeroOrOne has mask parts as numbers in 32-bit lanes.
func (l *lowerer) zeroOrOne(ms []vreg) []vreg {
	if l.isa == AVX2 && l.maskLanes == 4 && len(ms) == 1 {
		x, y, z := l.vector(), l.vector(), l.vector()
		l.op3i(vshufps, x, ms[0], fromReg(ms[0]), 0x88)
		l.op2i(vpermqI, y, fromReg(x), 0x08)
		l.op2i(vpsrld, z, fromReg(y), 31)
		return []vreg{z}
	}
	parts := l.maskFor(ms, ir.U8)
	vs := l.newVectors(len(parts))
	for p, m := range parts {
		v := m
		if l.isa == AVX512 {
			v = l.vector()
			l.op2(vpmovm2d, v, fromReg(m))
		}
		l.op2i(vpsrld, vs[p], fromReg(v), 31)
	}
	return vs
}

// unitPart is where part p of elements begins that follow each other.
func (l *lowerer) unitPart(t ir.Type, base, first vreg, p int) source {
	return address(base, first, scaleOf(t), int32(p*l.fullLanes(held(t))*t.Size()))
}

// unitFrom is where the elements from a unit index on begin.
func (l *lowerer) unitFrom(t ir.Type, base vreg, index ir.Value) source {
	index, off := l.displaced(index, t.Size())
	return address(base, l.base(index), scaleOf(t), off)
}

// partAt is where part p of elements from a place on begins.
func (l *lowerer) partAt(t ir.Type, at source, p int) source {
	at.mem.disp += int32(p * l.fullLanes(held(t)) * t.Size())
	return at
}

// unitRows have, by type, the load of consecutive elements to lanes and the store from there.
// AVX2 has only the loads of the small ones, and none of these has a mask.
var unitRows = [...]struct{ load, store *row }{
	ir.Bool: {vpmovzxbd, vpmovdb}, ir.I8: {vpmovsxbd, vpmovdb}, ir.U8: {vpmovzxbd, vpmovdb},
	ir.I16: {vpmovsxwd, vpmovdw}, ir.U16: {vpmovzxwd, vpmovdw},
	ir.I32: {vmovups, vmovupsStore}, ir.U32: {vmovups, vmovupsStore}, ir.F32: {vmovups, vmovupsStore},
	ir.I64: {vmovupd, vmovupdStore}, ir.U64: {vmovupd, vmovupdStore}, ir.F64: {vmovupd, vmovupdStore},
}

// loadUnit reads consecutive elements, from element first on.
func (l *lowerer) loadUnit(m ir.Mem, base, first vreg, index ir.Value) []vreg {
	t := l.f.Mems[m].Elem
	h := held(t)
	if l.isa == AVX2 && t.Size() < 4 {
		return l.loadSmall(m, base, first)
	}
	vs, at := l.newVectors(l.parts(h)), l.unitFrom(t, base, index)
	if l.wholeParts(h) {
		for p, v := range vs {
			l.op2(unitRows[t].load, v, l.partAt(t, at, p))
		}
		return vs
	}
	ms := l.exactMasks(h)
	for p, v := range vs {
		from := l.partAt(t, at, p)
		switch {
		case l.isa == AVX512:
			l.add(inst{row: unitRows[t].load, reg: v, rm: from, k: ms[p], zero: true})
		case t.Size() == 8:
			l.op3(vmaskmovpd, v, ms[p], from)
		default:
			l.op3(vmaskmovps, v, ms[p], from)
		}
	}
	return vs
}

// loadSmall reads consecutive small elements with AVX2: all of them if the whole group
// is within the memory, else those of the active lanes.
func (l *lowerer) loadSmall(m ir.Mem, base, first vreg) []vreg {
	t := l.f.Mems[m].Elem
	h := held(t)
	vs := l.newVectors(l.parts(h))
	each, end := l.a.newLabel(), l.a.newLabel()
	room := l.newGPR() // elements behind those of a group that begins at the memory's begin
	l.add(inst{row: subImm4, reg: room, v: l.memoryLength(m), imm: int32(max(l.lanes, l.fullLanes(h)))})
	l.jump(ifBelow, each)
	l.op2(cmp64, first, fromReg(room))
	l.jump(ifAbove, each)
	l.undefine(vs)
	for p, v := range vs {
		l.op2(unitRows[t].load, v, l.unitPart(t, base, first, p))
	}
	l.jump(always, end)
	l.place(each)
	for p, x := range l.loadEach(t, base, l.consecutive(first)) {
		l.copy(vs[p], x)
	}
	l.place(end)
	return vs
}

// gather reads elements anywhere.
func (l *lowerer) gather(t ir.Type, base vreg, index ir.Value) []vreg {
	if t.Size() < 4 {
		return l.loadEach(t, base, l.indices(l.vecs(index)))
	}
	return l.gatherAt(t, source{base: base}, l.vecs(index), scaleOf(t))
}

// shortTable is the most elements of 8 bytes of a table that a register holds.
const shortTable = 8

// fromShortTable reads elements of a short table, with AVX-512.
func (l *lowerer) fromShortTable(m *ir.Memory, index ir.Value) []vreg {
	words := make([]uint64, shortTable)
	copy(words, m.Data)
	idx := l.vecs(index)
	vs := l.newVectors(len(idx))
	for p, v := range vs {
		l.op3(vpermq, v, idx[p], fromMem(l.words(words...)))
	}
	return vs
}

// lanewise is memory at from + idx<<scale for lanes.
func lanewise(from source, idx vreg, scale uint8) source {
	from.isMem, from.index = true, idx
	from.mem.scale, from.mem.indexed, from.mem.lanewise = scale, true, true
	return from
}

// gatherAt reads elements of 4 or 8 bytes at from + idx<<scale.
func (l *lowerer) gatherAt(t ir.Type, from source, idx []vreg, scale uint8) []vreg {
	one := func(r *row, idx, m vreg) vreg {
		v, taken := l.vector(), l.newMask() // the instruction takes the mask away
		l.add(inst{special: undefined, reg: v})
		l.op3(vxorps, v, v, fromReg(v))
		l.copy(taken, m)
		in := inst{row: r, reg: v, rm: lanewise(from, idx, scale)}
		if l.isa == AVX512 {
			in.k = taken
		} else {
			in.v = taken
		}
		l.add(in)
		return v
	}
	vs := make([]vreg, l.parts(t))
	if laneSize(t) == 8 {
		ms := l.exactMasks(t)
		for p := range vs {
			vs[p] = one(vgatherqpd, idx[p], ms[p])
		}
		return vs
	}
	ms := l.halfMasks(len(idx))
	for p := range vs {
		vs[p] = one(vgatherqps, idx[2*p], ms[2*p])
		if 2*p+1 < len(idx) {
			low := vs[p]
			vs[p] = l.vector()
			l.op3i(l.insertRow(), vs[p], low, fromReg(one(vgatherqps, idx[2*p+1], ms[2*p+1])), 1)
		}
	}
	return vs
}

func (l *lowerer) insertRow() *row {
	if l.isa == AVX512 {
		return vinsertf64x4
	}
	return vinsertf128
}

// upperHalf is the upper half of a vector.
func (l *lowerer) upperHalf(src vreg) vreg {
	v, r := l.vector(), vextractf128
	if l.isa == AVX512 {
		r = vextractf64x4
	}
	l.add(inst{row: r, reg: src, rm: fromReg(v), imm: 1})
	return v
}

// halfMasks are the active lanes for the n halves of registers of 32-bit lanes.
func (l *lowerer) halfMasks(n int) []vreg {
	if l.isa == AVX512 {
		return l.exactMasks(ir.I64)
	}
	var ms []vreg
	for _, m := range l.exactMasks(ir.I32) {
		ms = append(ms, m)
		if len(ms) < n {
			ms = append(ms, l.upperHalf(m))
		}
	}
	return ms
}

func lowerStore(l *lowerer, in *ir.Instr, _ ir.Type, _ []vreg) {
	m := &l.f.Mems[in.Mem]
	index, x, t := in.Args[0], in.Args[1], m.Elem
	if m.Space == ir.Local {
		l.storeLocal(in)
		return
	}
	if l.uniform(index) {
		l.storeOne(l.element(in.Mem, index), t, x)
		return
	}
	base := l.memoryBase(in.Mem)
	first, unit := l.unit(index)
	switch {
	case unit && (l.isa == AVX512 || t.Size() >= 4):
		l.storeConsecutive(t, l.unitFrom(t, base, index), l.heldValues(x))
	case unit:
		l.storeSmall(t, base, first, l.heldValues(x))
	case l.isa == AVX512 && t.Size() >= 4:
		l.scatterAt(t, source{base: base}, l.vecs(index), l.heldValues(x), scaleOf(t))
	default:
		l.storeEach(t, base, l.indices(l.vecs(index)), l.heldValues(x))
	}
}

// storeOne writes an element that is one for all lanes: that of the last lane stays.
func (l *lowerer) storeOne(to source, t ir.Type, x ir.Value) {
	if l.uniform(x) {
		switch _, known := l.known(x); {
		case known || !t.IsFloat():
			l.store(storeRowOf(t), l.gpr(x), to)
		case t == ir.F64:
			l.store(vmovqOut, l.vecs(x)[0], to)
		default:
			l.store(vmovdOut, l.vecs(x)[0], to)
		}
		return
	}
	h := held(t)
	l.keep(0, l.heldValues(x))
	zeros, last, v := l.newGPR(), l.newGPR(), l.newGPR()
	l.op2(lzcnt, zeros, fromReg(l.bitsOf(l.active())))
	l.add(inst{row: xorImm, reg: last, v: zeros, imm: 63})
	l.op2(l.laneLoad(h), v, l.kept(0, h, last))
	l.store(storeRowOf(t), v, to)
}

// storeConsecutive writes consecutive elements, from element first on.
func (l *lowerer) storeConsecutive(t ir.Type, at source, vs []vreg) {
	if l.wholeParts(held(t)) {
		for p, v := range vs {
			l.store(unitRows[t].store, v, l.partAt(t, at, p))
		}
		return
	}
	ms := l.exactMasks(held(t))
	if l.isa == AVX2 && !l.fr.single && l.allTheTime() && l.lanes >= l.fullLanes(t) {
		// Masked stores are slow on some processors.
		partly, end := l.a.newLabel(), l.a.newLabel()
		l.cmpImm(l.fr.index, -l.lanes)
		l.jump(ifGreater, partly)
		for p, v := range vs {
			l.store(unitRows[t].store, v, l.partAt(t, at, p))
		}
		l.jump(always, end)
		l.place(partly)
		defer l.place(end)
	}
	for p, v := range vs {
		to := l.partAt(t, at, p)
		switch {
		case l.isa == AVX512:
			l.add(inst{row: unitRows[t].store, reg: v, rm: to, k: ms[p]})
		case t.Size() == 8:
			l.add(inst{row: vmaskmovpdStore, reg: v, v: ms[p], rm: to})
		default:
			l.add(inst{row: vmaskmovpsStore, reg: v, v: ms[p], rm: to})
		}
	}
}

// storeSmall writes consecutive small elements with AVX2, from element first on: all at once if
// all lanes are there.
func (l *lowerer) storeSmall(t ir.Type, base, first vreg, vs []vreg) {
	if l.wholeParts(held(t)) {
		for p, v := range vs {
			l.storePacked(t.Size(), v, l.unitPart(t, base, first, p))
		}
		return
	}
	if !l.fr.single && l.allTheTime() && l.lanes >= l.fullLanes(held(t)) {
		partly, end := l.a.newLabel(), l.a.newLabel()
		l.cmpImm(l.fr.index, -l.lanes)
		l.jump(ifGreater, partly)
		for p, v := range vs {
			l.storePacked(t.Size(), v, l.unitPart(t, base, first, p))
		}
		l.jump(always, end)
		l.place(partly)
		defer l.place(end)
	}
	l.storeEach(t, base, l.consecutive(first), vs)
}

// storePacked writes the low 1 or 2 bytes of 32-bit lanes side by side, with AVX2.
func (l *lowerer) storePacked(size int, src vreg, to source) {
	// In each half, and then both halves together.
	var order [4]uint64
	for i := range 32 {
		b := uint64(0x80) // zero
		if lane := i % 16 / size; lane < 4 {
			b = uint64(4*lane + i%size)
		}
		order[i/8] |= b << (8 * (i % 8))
	}
	x, y := l.vector(), l.vector()
	l.op3(vpshufb, x, src, fromReg(l.poolVector(constantKey{uint64(size), -3}, l.words(order[:]...))))
	if size == 2 {
		l.op2i(vpermqI, y, fromReg(x), 0x08)
		l.add(inst{row: vextractf128, reg: y, rm: to})
		return
	}
	l.op3(vpermd, y, l.poolVector(constantKey{1, -4}, l.words(0|4<<32, 0, 0, 0)), fromReg(x))
	l.store(vmovqOut, y, to)
}

// scatterAt writes elements of 4 or 8 bytes to to + idx<<scale, with AVX-512.
func (l *lowerer) scatterAt(t ir.Type, to source, idx, vs []vreg, scale uint8) {
	one := func(r *row, v, idx, m vreg) {
		taken := l.newMask()
		l.copy(taken, m)
		l.add(inst{row: r, reg: v, rm: lanewise(to, idx, scale), k: taken})
	}
	if laneSize(t) == 8 {
		ms := l.exactMasks(t)
		for p, v := range vs {
			one(vscatterqpd, v, idx[p], ms[p])
		}
		return
	}
	ms := l.halfMasks(len(idx))
	for p, v := range vs {
		one(vscatterqps, v, idx[2*p], ms[2*p])
		if 2*p+1 < len(idx) {
			one(vscatterqps, l.upperHalf(v), idx[2*p+1], ms[2*p+1])
		}
	}
}

// Local memories are in the state: rows of one element of each lane, in 4 or 8 bytes as in registers.

func (l *lowerer) localRow(t ir.Type) int { return max(l.regBytes, l.lanes*laneSize(held(t))) }

// mostState bounds the bytes of the state.
const mostState = 1 << 26

// localAt is where a Local memory begins in the state. It is all zero when a group begins.
func (l *lowerer) localAt(m ir.Mem) int32 {
	mem := &l.f.Mems[m]
	if l.mem.locals[m] < 0 {
		bytes := mem.Len * l.localRow(mem.Elem)
		if mem.Len > mostState || l.state+bytes > mostState {
			l.refuse(l.f.Pos, "a memory, %s, of %d elements for each worker", mem.Name, mem.Len)
			bytes = 0
		}
		l.mem.locals[m] = l.allocateState(bytes, 64)
		if !l.clearedFirst(m) {
			l.mem.uncleared = append(l.mem.uncleared, m)
		}
	}
	return int32(l.mem.locals[m])
}

// clearedFirst reports whether the function begins with clearing a memory, for all lanes, as far as
// it uses it.
func (l *lowerer) clearedFirst(m ir.Mem) bool {
	for i := range l.f.Body.Instrs {
		in := &l.f.Body.Instrs[i]
		touches := false
		ir.Walk(&ir.Region{Instrs: l.f.Body.Instrs[i : i+1]}, func(in *ir.Instr) {
			switch in.Op {
			case ir.OpLoad, ir.OpStore, ir.OpAtomic, ir.OpClear:
				touches = touches || in.Mem == m
			}
		})
		if touches {
			return in.Op == ir.OpClear
		}
	}
	return true
}

// localElement is the row of element index, an index that is uniform.
func (l *lowerer) localElement(m ir.Mem, index ir.Value) source {
	row, at := l.localRow(l.f.Mems[m].Elem), l.localAt(m)
	if c, ok := l.known(index); ok {
		return inState(int(at) + int(min(c, uint64(max(1, l.f.Mems[m].Len)-1)))*row)
	}
	v := l.newGPR()
	l.add(inst{row: shl64, reg: v, v: l.gpr(index), imm: int32(log2(row))})
	return source{isMem: true, index: v, mem: memory{base: rsi, indexed: true, disp: at}}
}

// plus is memory some bytes further on.
func (s source) plus(bytes int) source {
	s.mem.disp += int32(bytes)
	return s
}

// localIndices are where the elements of the lanes are in a Local memory, in lanes.
func (l *lowerer) localIndices(t ir.Type, index ir.Value) []vreg {
	idx := l.vecs(index)
	out := l.newVectors(len(idx))
	shift := log2(l.localRow(t) / laneSize(held(t)))
	for p, v := range idx {
		w := l.vector()
		l.op2i(vpsllq, w, fromReg(v), int32(shift))
		l.op3(vpaddq, out[p], w, fromReg(l.iota(p)))
	}
	return out
}

func (l *lowerer) inLocal(m ir.Mem) source { return inState(int(l.localAt(m))) }

func (l *lowerer) loadLocal(in *ir.Instr) []vreg {
	t := l.f.Mems[in.Mem].Elem
	h, index := held(t), in.Args[0]
	if !l.uniform(index) {
		return l.gatherAt(h, l.inLocal(in.Mem), l.localIndices(t, index), log2(laneSize(h)))
	}
	from, vs := l.localElement(in.Mem, index), l.newVectors(l.parts(h))
	for p, v := range vs {
		l.op2(vmovups, v, from.plus(p*l.regBytes))
	}
	return vs
}

func (l *lowerer) storeLocal(in *ir.Instr) {
	t := l.f.Mems[in.Mem].Elem
	h, index, vs := held(t), in.Args[0], l.heldValues(in.Args[1])
	switch {
	case l.uniform(index):
		l.storeRow(h, l.localElement(in.Mem, index), vs, l.allActive()) // lanes that are not there have no use for theirs
	case l.isa == AVX512:
		l.scatterAt(h, l.inLocal(in.Mem), l.localIndices(t, index), vs, log2(laneSize(h)))
	default:
		l.keep(1, vs)
		at := l.indices(l.localIndices(t, index))
		to, load, store := l.inLocal(in.Mem), l.laneLoad(h), l.laneStore(h)
		l.eachLane(func(lane vreg) {
			v := l.newGPR()
			l.op2(load, v, l.kept(1, h, lane))
			to.index = at(lane)
			to.mem.indexed, to.mem.scale = true, log2(laneSize(h))
			l.store(store, v, to)
		})
	}
}

// storeRow writes registers of the active lanes to a row of a Local memory, or with
// all those of all lanes.
func (l *lowerer) storeRow(h ir.Type, to source, vs []vreg, all bool) {
	if all {
		for p, v := range vs {
			l.store(vmovupsStore, v, to.plus(p*l.regBytes))
		}
		return
	}
	ms, wide := l.exactMasks(h), laneSize(h) == 8
	for p, v := range vs {
		to := to.plus(p * l.regBytes)
		switch {
		case l.isa == AVX512 && wide:
			l.add(inst{row: vmovupdStore, reg: v, rm: to, k: ms[p]})
		case l.isa == AVX512:
			l.add(inst{row: vmovupsStore, reg: v, rm: to, k: ms[p]})
		case wide:
			l.add(inst{row: vmaskmovpdStore, reg: v, v: ms[p], rm: to})
		default:
			l.add(inst{row: vmaskmovpsStore, reg: v, v: ms[p], rm: to})
		}
	}
}

func lowerClear(l *lowerer, in *ir.Instr, _ ir.Type, _ []vreg) {
	l.clearLocal(in.Mem, l.allActive())
}

// clearLocal sets all elements of a Local memory to zero for the active lanes, or with all
// for all.
func (l *lowerer) clearLocal(m ir.Mem, all bool) {
	mem := &l.f.Mems[m]
	h, row, at := held(mem.Elem), l.localRow(mem.Elem), int(l.localAt(m))
	vs := repeat(l.constant(0, 8), l.parts(h))
	const unrolled = 8
	if mem.Len <= unrolled {
		for i := range mem.Len {
			l.storeRow(h, inState(at+i*row), vs, all)
		}
		return
	}
	// Upwards to the end, counted in bytes from below.
	i, head := l.newGPR(), l.a.newLabel()
	l.loadInt(i, uint64(-int64(mem.Len*row)))
	l.add(inst{special: loopBegin})
	l.place(head)
	l.storeRow(h, source{isMem: true, index: i, mem: memory{base: rsi, indexed: true, disp: int32(at + mem.Len*row)}}, vs, all)
	l.addImm(i, row)
	l.jump(ifNotEqual, head)
	l.add(inst{special: loopEnd})
}

// beginLocals makes the Local memories zero that the function does not clear itself.
func (l *lowerer) beginLocals() {
	for _, m := range l.mem.uncleared {
		l.clearLocal(m, true)
	}
}

// lowerBounds checks 0 <= index < length, as unsigned numbers.
func lowerBounds(l *lowerer, in *ir.Instr, _ ir.Type, _ []vreg) {
	index, length := in.Args[0], in.Args[1]
	i, known := l.known(index)
	n, knownLength := l.known(length)
	if known && knownLength && i < n {
		return
	}
	if !l.uniform(length) || !l.uniform(index) && !l.isUnit(index) {
		l.faultIf(l.notBelow(index, length), in)
		return
	}
	if l.uniform(index) {
		if knownLength && int64(n) == int64(int32(n)) && !known {
			l.cmpImm(l.gpr(index), int(int64(n)))
		} else {
			l.op2(cmp64, l.gpr(index), fromReg(l.gpr(length)))
		}
		l.faultIfScalar(ifNotBelow, in)
		return
	}
	// The whole group at once, which may begin at most at length - lanes; lane by lane only if
	// that is not so.
	first, _ := l.unit(index)
	end, lanewise := l.a.newLabel(), l.a.newLabel()
	most := l.newGPR()
	l.add(inst{row: subImm4, reg: most, v: l.gpr(length), imm: int32(l.lanes)})
	l.jump(ifBelow, lanewise)
	l.op2(cmp64, first, fromReg(most))
	l.jump(ifBelowE, end)
	l.place(lanewise)
	l.coldDepth++ // vectors made here are not there for others
	l.faultIf(l.notBelow(index, length), in)
	l.coldDepth--
	l.place(end)
}

func (l *lowerer) isUnit(x ir.Value) bool { _, ok := l.unit(x); return ok }

// notBelow has the lanes with x >= y, as unsigned numbers, in mask parts.
func (l *lowerer) notBelow(x, y ir.Value) []vreg {
	return l.compareLanes(ir.OpGe, false, x, y)
}

// compareLanes compares 64-bit integers.
func (l *lowerer) compareLanes(op ir.Op, signed bool, x, y ir.Value) []vreg {
	xs, ys := l.vecs(x), l.vecs(y)
	ms := l.newMasks(len(xs))
	for p := range ms {
		switch {
		case l.isa == AVX512:
			r := vpcmpuq
			if signed {
				r = vpcmpq
			}
			l.op3i(r, ms[p], xs[p], fromReg(ys[p]), map[ir.Op]int32{ir.OpLt: 1, ir.OpGe: 5, ir.OpGt: 6}[op])
		default:
			a, b := xs[p], ys[p]
			if !signed {
				a, b = l.vector(), l.vector()
				sign := fromReg(l.constant(signBit, 8))
				l.op3(vxorpd, a, xs[p], sign)
				l.op3(vxorpd, b, ys[p], sign)
			}
			switch op {
			case ir.OpGt:
				l.op3(vpcmpgtq, ms[p], a, fromReg(b))
			case ir.OpLt:
				l.op3(vpcmpgtq, ms[p], b, fromReg(a))
			default:
				m := l.vector()
				l.op3(vpcmpgtq, m, b, fromReg(a))
				l.t.maskNot(l, ms[p], m)
			}
		}
	}
	return l.maskFrom(ms, ir.I64)
}

// lowerSliceBounds checks 0 <= from <= to <= length.
func lowerSliceBounds(l *lowerer, in *ir.Instr, _ ir.Type, _ []vreg) {
	from, to, length := in.Args[0], in.Args[1], in.Args[2]
	if l.uniform(from) && l.uniform(to) && l.uniform(length) {
		f, t, n := l.gpr(from), l.gpr(to), l.gpr(length)
		bad, end := l.a.newLabel(), l.a.newLabel()
		l.op2(cmp64, t, fromReg(n))
		l.jump(ifGreater, bad)
		l.op2(cmp64, f, fromReg(t))
		l.jump(ifGreater, bad)
		l.cmpImm(f, 0)
		l.jump(ifGreaterE, end)
		l.place(bad)
		l.faultIfScalar(always, in)
		l.place(end)
		return
	}
	bad := l.compareLanes(ir.OpGt, true, to, length)
	for p, m := range l.compareLanes(ir.OpGt, true, from, to) {
		u := l.newMask()
		l.t.maskOr(l, u, bad[p], m)
		bad[p] = u
	}
	zero := l.vecs(from)
	negative := l.newMasks(len(zero))
	for p, v := range zero {
		if l.isa == AVX512 {
			l.op2(vpmovq2m, negative[p], fromReg(v))
		} else {
			l.op3(vpcmpgtq, negative[p], l.constant(0, 8), fromReg(v))
		}
	}
	for p, m := range l.maskFrom(negative, ir.I64) {
		u := l.newMask()
		l.t.maskOr(l, u, bad[p], m)
		bad[p] = u
	}
	l.faultIf(bad, in)
}
