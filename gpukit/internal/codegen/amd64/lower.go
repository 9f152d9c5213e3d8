package amd64

import (
	"encoding/binary"
	"fmt"
	"math"
	"sync"

	"gpunotes/gpukit/internal/ir"
)

// vreg is a virtual register: a vector, a mask or a general register; 0 is none.
// It may be written more than once, and it has one place, a register or a spill
// slot, from its first occurrence in the list of instructions to its last.
type vreg int32

// source is the operand of an instruction that may be in memory.
type source struct {
	v     vreg
	isMem bool
	mem   memory
	// base and index, if not 0, are in the place of mem.base and mem.index.
	base, index vreg
	gpr         uint8 // a fixed general register, if v is 0
}

// inst is a machine instruction on virtual registers, or something that the
// emitter knows: a place, a jump, a fused multiply-add, fixed code.
//
// Rows that read their destination take it from v, if that is given: the emitter
// copies v to reg first. So add64 is reg = v + rm. Rows of formM are reg = op(v),
// or without reg operate on rm in place.
type inst struct {
	row          *row
	reg, v, c, k vreg
	gpr          uint8 // in the place of reg
	rm           source
	zero         bool
	imm          int32

	special special
	label   label
	cond    condition
	fixed   func(a *assembler)
	block   *block
	pos     int32 // in lowerer.positions
}

type special uint8

const (
	ordinary  special = iota
	undefined         // reg begins here, with any value
	place             // label
	jump              // to label if cond
	fused             // reg = v*rm + c; imm has the bits single, negated, subtracted
	fixed             // instructions on fixed registers alone
	insertion         // block
	constant          // reg is rm, a constant of the pool, from here on
	loopBegin
	loopEnd
	coldBegin // up to coldEnd: placed behind the main code
	coldEnd
	exitCode  // leaves the code: imm is the Exit, label where to go on
	keepAlive // reg is needed up to here
)

const (
	single  = 1 // of float32
	negated = 2 // the product is

	subtracted = 4 // the sum's other operand is
)

// block is a list of instructions that is put into the main list after all
// lowering: what is asked for later, but belongs behind a definition.
type block struct{ insts []inst }

// value is what an IR value is in the code.
type value struct {
	shape   laneShape
	defined bool
	known   bool
	bits    ir.Bits
	parts   []vreg // varying; a uniform float: one
	gpr     vreg   // uniform integers and bools; of a unit: lane 0
	behind  *block // the definition of gpr
	spread  []vreg // gpr in vectors or masks, once somebody asked
}

type lowerer struct {
	k   *Kernel
	f   *ir.Func
	isa Target
	t   target
	o   Options
	a   *assembler
	an  *analysis

	lanes     int // workers of a group, W
	maskLanes int // lanes of a mask part
	groups    int // how many times the smallest group
	regBytes  int
	narrow    bool // one part: for uniform values computed as vectors
	calledOut bool // the last operation became a callout

	insts      []inst
	b          *buffers
	magnitudes magnitudes
	kinds      []kind   // by vreg: vec, mask or r64
	poolOf     []int32  // by vreg: which of pool, 0 for none
	pool       []pooled // the constants
	vals       []value
	into       [][]vreg // by ir.Value: the registers that it must be computed in
	constants  map[constantKey]vreg
	prologue   *block // once per call
	row        *block // once per row
	stack      []*region
	parted     map[*ir.Instr]bool // see findParted
	crossed    map[*ir.Instr]bool // which breaks to constructs around leave
	uses       []int32            // by value: as operands
	prepared   *ir.Func           // whose parted and uses these are
	compared   *ir.Instr          // a comparison that the next branch does
	// The comparisons that made the condition of an if under the mask of its region.
	compareAgain []inst
	coldDepth    int
	positions    []ir.Pos
	marks        []Mark
	pos          int32
	dead         bool // what follows is not reached, up to the next place
	err          *Unsupported

	state      int // bytes of the state that are given away
	sites      []Site
	faults     []*ir.Instr
	faultFuncs []*ir.Func // which they are of
	fault      FaultPlace
	faultArea  int // of the state
	mem        memories
	sums       sums
	calls      calls
	fr         frame

	restore, save label
}

// buffers are lists that one compilation hands to the next.
type buffers struct {
	insts, flat []inst
	out         []emitted
	marks       []uint32 // of freeRegisters
}

var spareBuffers = sync.Pool{New: func() any { return new(buffers) }}

// take gives the lowerer buffers, giveBack makes them the next one's.
func (l *lowerer) take() {
	l.b = spareBuffers.Get().(*buffers)
	l.insts = l.b.insts[:0]
	l.b.flat, l.b.out = l.b.flat[:0], l.b.out[:0]
}

func (l *lowerer) giveBack() {
	for _, s := range [...]*[]inst{&l.b.insts, &l.b.flat} {
		clear(*s)
		*s = (*s)[:0]
	}
	clear(l.b.out)
	l.b.out = l.b.out[:0]
	spareBuffers.Put(l.b)
}

// pooled is where a constant is in the pool, if mem is relative.
type pooled struct {
	mem    memory // broadcast: one element, of 8 bytes
	bits   uint64
	narrow bool // both halves of the 8 bytes are the same
}

type constantKey struct {
	bits  uint64
	bytes int
}

func newLowerer(k *Kernel, t Target, o Options) *lowerer {
	f := k.Func
	l := &lowerer{k: k, f: f, isa: t, o: o, kinds: []kind{none}, poolOf: make([]int32, 1), pool: make([]pooled, 1), vals: make([]value, len(f.Types)), into: make([][]vreg, len(f.Types)),
		constants: map[constantKey]vreg{}, prologue: &block{}, row: &block{}, positions: []ir.Pos{{}}}
	switch t {
	case AVX512:
		l.t, l.a, l.regBytes = avx512{}, newAssembler(l512, true), 64
	default:
		l.t, l.a, l.regBytes = avx2{}, newAssembler(l256, false), 32
	}
	l.state = stateFixed
	return l
}

func (l *lowerer) refuse(pos ir.Pos, format string, args ...any) {
	if l.err == nil {
		l.err = &Unsupported{Func: l.f.Name, Pos: pos, Reason: fmt.Sprintf(format, args...)}
	}
}

func (l *lowerer) new(k kind) vreg {
	l.kinds = append(l.kinds, k)
	l.poolOf = append(l.poolOf, 0)
	return vreg(len(l.kinds) - 1)
}

func (l *lowerer) vector() vreg  { return l.new(vec) }
func (l *lowerer) newMask() vreg { return l.new(l.t.maskKind()) }
func (l *lowerer) newGPR() vreg  { return l.new(r64) }

func (l *lowerer) newVectors(n int) []vreg { return l.several(n, l.vector) }
func (l *lowerer) newMasks(n int) []vreg   { return l.several(n, l.newMask) }

func (l *lowerer) several(n int, f func() vreg) []vreg {
	vs := make([]vreg, n)
	for i := range vs {
		vs[i] = f()
	}
	return vs
}

// newParts makes the registers of a varying value.
func (l *lowerer) newParts(t ir.Type) []vreg {
	if t == ir.Bool {
		return l.newMasks(l.parts(t))
	}
	return l.newVectors(l.parts(t))
}

// allocateState reserves bytes of the state.
func (l *lowerer) allocateState(bytes, align int) int {
	l.state = (l.state + align - 1) &^ (align - 1)
	at := l.state
	l.state += bytes
	return at
}

func (l *lowerer) add(i inst) {
	i.pos = l.pos
	l.insts = append(l.insts, i)
}

func (l *lowerer) fixed(f func(a *assembler)) { l.add(inst{special: fixed, fixed: f}) }

func (l *lowerer) place(at label) {
	l.dead = false
	l.add(inst{special: place, label: at})
}

func (l *lowerer) jump(c condition, to label) { l.add(inst{special: jump, cond: c, label: to}) }

// insert puts a block here, which may be filled later with in.
func (l *lowerer) insert() *block {
	b := &block{}
	l.add(inst{special: insertion, block: b})
	return b
}

// in lets f append to a block.
func (l *lowerer) in(b *block, f func()) {
	outer, narrow := l.insts, l.narrow
	l.insts, l.narrow = b.insts, false
	f()
	b.insts = l.insts
	l.insts, l.narrow = outer, narrow
}

// cold lets f append code that is placed behind the main code. It is reached and
// left by jumps.
func (l *lowerer) cold(f func()) {
	l.add(inst{special: coldBegin})
	f()
	l.add(inst{special: coldEnd})
}

// laneSize is the bytes of a lane of type t.
func laneSize(t ir.Type) int {
	if t.Bits() == 64 {
		return 8
	}
	return 4
}

// parts is the number of registers of a varying value of type t; of Bool, that of
// mask parts.
func (l *lowerer) parts(t ir.Type) int {
	n := l.lanes
	if l.narrow {
		n = l.maskLanes
	}
	if t == ir.Bool {
		return n / l.maskLanes
	}
	return max(1, n*laneSize(t)/l.regBytes)
}

// known is the value of a constant.
func (l *lowerer) known(x ir.Value) (ir.Bits, bool) { return l.vals[x].bits, l.vals[x].known }

// uniform reports whether all lanes have the same.
func (l *lowerer) uniform(x ir.Value) bool { return l.vals[x].known || l.vals[x].shape == shapeUniform }

// unit is the general register with lane 0 of a value that goes up by one from
// lane to lane.
func (l *lowerer) unit(x ir.Value) (base vreg, ok bool) {
	v := &l.vals[x]
	return v.gpr, !v.known && v.shape == shapeUnit
}

func repeat(v vreg, n int) []vreg {
	vs := make([]vreg, n)
	for i := range vs {
		vs[i] = v
	}
	return vs
}

// vecs is a number in vector registers, one per part; if it is uniform, one and the
// same.
func (l *lowerer) vecs(x ir.Value) []vreg {
	v, t := &l.vals[x], l.f.Types[x]
	switch {
	case v.known:
		return repeat(l.constant(v.bits, laneSize(t)), l.parts(t))
	case v.shape == shapeVarying:
		return v.parts
	case t.IsFloat():
		return repeat(v.parts[0], l.parts(t))
	case v.shape == shapeUnit:
		return l.spread(v, func() []vreg {
			b := l.vector()
			l.broadcast(b, v.gpr, t)
			vs := l.newVectors(l.lanes * 8 / l.regBytes)
			for p, d := range vs {
				l.op3(vpaddq, d, b, fromReg(l.iota(p)))
			}
			return vs
		})
	}
	vs := l.spread(v, func() []vreg {
		b := l.vector()
		l.broadcast(b, v.gpr, t)
		return []vreg{b}
	})
	return repeat(vs[0], l.parts(t))
}

// spread makes vectors or masks of a general register, behind its definition so that
// all can use them; in cold code just here.
func (l *lowerer) spread(v *value, f func() []vreg) (vs []vreg) {
	switch {
	case v.spread != nil:
	case l.coldDepth > 0:
		return f()
	default:
		l.in(v.behind, func() { v.spread = f() })
	}
	return v.spread
}

// broadcast puts an integer in a general register into all lanes.
func (l *lowerer) broadcast(dst, gpr vreg, t ir.Type) {
	wide := laneSize(t) == 8
	switch {
	case l.isa == AVX512 && wide:
		l.op2(vpbroadcastqR, dst, fromReg(gpr))
	case l.isa == AVX512:
		l.op2(vpbroadcastdR, dst, fromReg(gpr))
	default:
		x := l.vector()
		l.op2(vmovq, x, fromReg(gpr))
		r := vpbroadcastd
		if wide {
			r = vpbroadcastq
		}
		l.op2(r, dst, fromReg(x))
	}
}

// iota is a constant: the numbers of the lanes of a part of 64-bit lanes.
func (l *lowerer) iota(part int) vreg {
	n := l.regBytes / 8
	w := make([]uint64, n)
	for i := range w {
		w[i] = uint64(part*n + i)
	}
	return l.poolVector(constantKey{uint64(part), -1}, l.words(w...))
}

// constant is a constant in all lanes. It is in a register if there is room for
// it, else in memory.
func (l *lowerer) constant(bits uint64, bytes int) vreg {
	if bytes == 4 {
		bits = bits & 0xFFFFFFFF * 0x1_0000_0001
	}
	w := []uint64{bits}
	if l.isa == AVX2 {
		w = []uint64{bits, bits, bits, bits}
	}
	m := l.words(w...)
	m.broadcast = l.isa == AVX512
	v := l.poolVector(constantKey{bits, 0}, m)
	p := &l.pool[l.poolOf[v]]
	p.bits, p.narrow = bits, bits>>32 == bits&0xFFFFFFFF
	return v
}

func (l *lowerer) poolVector(key constantKey, m memory) vreg {
	if v := l.constants[key]; v != 0 {
		return v
	}
	v := l.vector()
	l.constants[key], l.poolOf[v] = v, int32(len(l.pool))
	l.pool = append(l.pool, pooled{mem: m})
	l.prologue.insts = append(l.prologue.insts, inst{special: constant, reg: v, rm: fromMem(m)})
	return v
}

// srcs is vecs for the operands of instructions that may be in memory.
func (l *lowerer) srcs(x ir.Value) []source {
	vs := l.vecs(x)
	s := make([]source, len(vs))
	for i, v := range vs {
		s[i] = fromReg(v)
	}
	return s
}

// gpr is a uniform integer in Bits form, or bool, in a general register.
func (l *lowerer) gpr(x ir.Value) vreg {
	v := &l.vals[x]
	if v.known {
		r := l.newGPR()
		l.loadInt(r, v.bits)
		return r
	}
	if v.gpr == 0 {
		panic(fmt.Sprintf("amd64: internal error: value %d is in no general register", x))
	}
	return v.gpr
}

// loadInt is dst = bits.
func (l *lowerer) loadInt(dst vreg, bits uint64) {
	switch {
	case uint64(uint32(bits)) == bits:
		l.add(inst{row: movImm32, reg: dst, imm: int32(bits)})
	case uint64(int64(int32(bits))) == bits:
		l.add(inst{row: movImm, reg: dst, imm: int32(bits)})
	default:
		l.op2(movLoad, dst, fromMem(l.words(bits)))
	}
}

// masks is a bool, per mask part.
func (l *lowerer) masks(x ir.Value) []vreg {
	v := &l.vals[x]
	n := l.parts(ir.Bool)
	switch {
	case v.known && l.isa == AVX2:
		bits := uint64(0)
		if v.bits != 0 {
			bits = ^bits
		}
		return repeat(l.constant(bits, 8), n)
	case v.known:
		m := l.newMask()
		l.t.constMask(l, m, v.bits != 0)
		return repeat(m, n)
	case v.shape == shapeVarying:
		return v.parts
	}
	vs := l.spread(v, func() []vreg {
		all, m := l.newGPR(), l.newMask()
		l.add(inst{row: neg, reg: all, v: v.gpr})
		l.maskOfBits(m, all)
		return []vreg{m}
	})
	return repeat(vs[0], n)
}

// maskOfBits is a mask of a general register with all bits set, or none.
func (l *lowerer) maskOfBits(dst, all vreg) {
	if l.isa == AVX512 {
		l.op2(kmovwFrom, dst, fromReg(all))
		return
	}
	l.broadcast(dst, all, ir.I64)
}

// active is the mask of the lanes that are in the current region.
func (l *lowerer) active() []vreg {
	if l.narrow {
		return l.top().mask[:1]
	}
	return l.top().mask
}

// watched are the masks of the lanes whose values of type t matter, for each part of the
// value. One that is the same for all lanes is computed once, for lanes of any part.
func (l *lowerer) watched(t ir.Type) []vreg {
	if !l.narrow {
		return l.maskFor(l.active(), t)
	}
	ms := l.top().mask
	any := ms[0]
	for _, m := range ms[1:] {
		if m != any {
			u := l.newMask()
			l.t.maskOr(l, u, any, m)
			any = u
		}
	}
	return []vreg{any}
}

// allActive reports that all lanes of the group that there are are active.
func (l *lowerer) allActive() bool { return l.fault.Lanes == 0 && l.top().mask[0] == l.fr.tail[0] }

// maskFor gives the masks for the parts of a value of type t.
func (l *lowerer) maskFor(ms []vreg, t ir.Type) []vreg {
	per := l.regBytes / laneSize(t)
	if t == ir.Bool || per == l.maskLanes || l.lanes < per {
		return ms
	}
	if len(ms) == 1 { // narrow
		return ms
	}
	out := make([]vreg, len(ms)/2)
	for i := range out {
		if ms[2*i] == ms[2*i+1] && l.isa == AVX2 { // a uniform bool
			out[i] = ms[2*i]
			continue
		}
		out[i] = l.newMask()
		if l.isa == AVX512 {
			l.op3(kunpckbw, out[i], ms[2*i+1], fromReg(ms[2*i]))
			continue
		}
		x := l.vector()
		l.op3i(vshufps, x, ms[2*i], fromReg(ms[2*i+1]), 0x88)
		l.op2i(vpermqI, out[i], fromReg(x), 0xD8)
	}
	return out
}

// maskFrom is the opposite: masks of parts of t become mask parts.
func (l *lowerer) maskFrom(parts []vreg, t ir.Type) []vreg {
	per := l.regBytes / laneSize(t)
	if t == ir.Bool || per == l.maskLanes {
		return parts
	}
	n := l.parts(ir.Bool)
	out := make([]vreg, 0, 2*len(parts))
	for _, m := range parts {
		if len(out) >= n {
			break
		}
		if l.isa == AVX512 {
			// The instructions of 8 lanes do not see the upper half.
			out = append(out, m)
			if len(out) < n {
				hi := l.newMask()
				l.op2i(kshiftrw, hi, fromReg(m), 8)
				out = append(out, hi)
			}
			continue
		}
		lo := l.newMask()
		l.op2(vpmovsxdq, lo, fromReg(m))
		out = append(out, lo)
		if len(out) < n {
			x, hi := l.vector(), l.newMask()
			l.add(inst{row: vextractf128, reg: m, rm: fromReg(x), imm: 1})
			l.op2(vpmovsxdq, hi, fromReg(x))
			out = append(out, hi)
		}
	}
	return out
}

func (l *lowerer) set(x ir.Value) *value {
	v := &l.vals[x]
	v.defined, v.shape = true, l.an.shape(x)
	return v
}

// define gives a value its vectors.
func (l *lowerer) define(x ir.Value, parts []vreg) {
	v := l.set(x)
	if l.f.Types[x] == ir.Bool {
		v.parts = parts
		if v.shape != shapeVarying {
			v.shape = shapeVarying // masks serve as well
		}
		return
	}
	switch {
	case v.shape == shapeVarying, v.shape == shapeUniform && l.f.Types[x].IsFloat():
		v.parts = parts
	default:
		l.defineGPR(x, l.firstLane(parts[0], l.f.Types[x]))
	}
}

// defineMasks gives a bool its masks.
func (l *lowerer) defineMasks(x ir.Value, ms []vreg) { l.define(x, ms) }

// defineGPR gives a uniform integer or bool its general register, or a unit that of
// lane 0.
func (l *lowerer) defineGPR(x ir.Value, r vreg) {
	v := l.set(x)
	v.gpr, v.behind = r, l.insert()
}

// firstLane moves lane 0 of a vector to a general register, in Bits form.
func (l *lowerer) firstLane(x vreg, t ir.Type) vreg {
	r := l.newGPR()
	if laneSize(t) == 8 {
		l.add(inst{row: vmovqOut, reg: x, rm: fromReg(r)})
		return r
	}
	l.add(inst{row: vmovdOut, reg: x, rm: fromReg(r)})
	if t.IsSigned() {
		wide := l.newGPR()
		l.op2(movsxd, wide, fromReg(r))
		return wide
	}
	return r
}

// jumpIfEmpty jumps if masks have no lanes.
func (l *lowerer) jumpIfEmpty(ms []vreg, to label) {
	l.test(ms)
	l.jump(ifEqual, to)
}

// test sets the zero flag if masks have no lanes.
func (l *lowerer) test(ms []vreg) {
	if n := len(ms); l.isa == AVX512 && n > 1 {
		row := kortestb
		if l.maskLanes == 16 {
			row = kortestw
		}
		l.op2(row, l.anyOf(ms[:n/2]), fromReg(l.anyOf(ms[n/2:])))
		return
	}
	l.t.test(l, l.anyOf(ms))
}

func (l *lowerer) anyOf(ms []vreg) vreg {
	m := ms[0]
	for _, o := range ms[1:] {
		u := l.newMask()
		l.t.maskOr(l, u, m, o)
		m = u
	}
	return m
}

func fromReg(v vreg) source { return source{v: v} }

func fromMem(m memory) source { return source{isMem: true, mem: m} }

// address is the memory at base + index<<scale + disp; index may be 0, for none.
func address(base, index vreg, scale uint8, disp int32) source {
	return source{isMem: true, base: base, index: index, mem: memory{scale: scale, disp: disp, indexed: index != 0}}
}

// inState is memory of the state.
func inState(off int) source { return fromMem(at(rsi, int32(off))) }

// op3 is reg = row(v, rm), op2 is reg = row(rm).
func (l *lowerer) op3(r *row, dst, v vreg, rm source) { l.add(inst{row: r, reg: dst, v: v, rm: rm}) }
func (l *lowerer) op3i(r *row, dst, v vreg, rm source, imm int32) {
	l.add(inst{row: r, reg: dst, v: v, rm: rm, imm: imm})
}
func (l *lowerer) op2(r *row, dst vreg, rm source) { l.add(inst{row: r, reg: dst, rm: rm}) }
func (l *lowerer) op2i(r *row, dst vreg, rm source, imm int32) {
	l.add(inst{row: r, reg: dst, rm: rm, imm: imm})
}

// store is a row that writes src to memory.
func (l *lowerer) store(r *row, src vreg, to source) { l.add(inst{row: r, reg: src, rm: to}) }

// fma is dst = x*y + z, or with negate -(x*y) + z, rounded once.
func (l *lowerer) fma(t ir.Type, dst, x, y, z vreg, negate bool) {
	imm := int32(0)
	if t == ir.F32 {
		imm |= single
	}
	if negate {
		imm |= negated
	}
	l.add(inst{special: fused, reg: dst, v: x, rm: fromReg(y), c: z, imm: imm})
}

// words is a constant of the pool.
func (l *lowerer) words(w ...uint64) memory {
	var b []byte
	for _, x := range w {
		b = binary.LittleEndian.AppendUint64(b, x)
	}
	return memory{relative: true, constant: l.a.constant(b)}
}

// splat is a constant in every 64-bit lane as an operand.
func (l *lowerer) splat(bits uint64) source { return fromReg(l.constant(bits, 8)) }

func (l *lowerer) splatF(x float64) source { return l.splat(math.Float64bits(x)) }

// load is a constant in all 64-bit lanes.
func (l *lowerer) load(bits uint64) vreg { return l.constant(bits, 8) }

// copy is dst = src, of registers of one kind.
func (l *lowerer) copy(dst, src vreg) {
	switch {
	case dst == src:
	case l.kinds[dst] == mask:
		l.op2(kmovw, dst, fromReg(src))
	case l.kinds[dst] == r64:
		l.op2(movLoad, dst, fromReg(src))
	default:
		l.op2(vmovapd, dst, fromReg(src))
	}
}

// blend is dst = x where m, else y, for lanes of type t, m as maskFor gives it.
func (l *lowerer) blend(t ir.Type, dst, m vreg, x source, y vreg) {
	switch {
	case l.isa == AVX2 && laneSize(t) == 8:
		l.add(inst{row: vblendvpd, reg: dst, v: y, rm: x, c: m})
	case l.isa == AVX2:
		l.add(inst{row: vblendvps, reg: dst, v: y, rm: x, c: m})
	case laneSize(t) == 8:
		l.add(inst{row: vblendmpd, reg: dst, v: y, rm: x, k: m})
	default:
		l.add(inst{row: vblendmps, reg: dst, v: y, rm: x, k: m})
	}
}

func (l *lowerer) top() *region { return l.stack[len(l.stack)-1] }

// vectorOp lowers an operation into dst, one register per part of the result. t is
// the type of its first operand. What it cannot do it gives to callout.
type vectorOp func(l *lowerer, in *ir.Instr, t ir.Type, dst []vreg)

// scalarOp lowers an operation on uniform operands to a uniform integer or bool. It
// reports whether it did; if not, it has appended nothing.
type scalarOp func(l *lowerer, in *ir.Instr, t ir.Type, dst vreg) bool

// compute lowers an ordinary operation.
func (l *lowerer) compute(in *ir.Instr) {
	switch in.Op {
	case ir.OpBarrier, ir.OpWarpBarrier, ir.OpShuffle, ir.OpVote:
		l.refuse(in.Pos, "%v", in.Op)
		return
	case ir.OpLoad, ir.OpStore, ir.OpAtomic, ir.OpClear:
		if l.f.Mems[in.Mem].Space == ir.Shared {
			l.refuse(in.Pos, "shared memory")
			return
		}
	}
	t := ir.Invalid
	if len(in.Args) > 0 {
		t = l.f.Types[in.Args[0]]
	}
	if in.Op == ir.OpCall {
		if f := opTable[in.Op]; f != nil {
			f(l, in, t, nil) // defines the results itself
			return
		}
		l.callout(in)
		return
	}
	if len(in.Results) == 0 {
		if f := opTable[in.Op]; f != nil {
			f(l, in, t, nil)
			return
		}
		l.callout(in)
		return
	}
	out := in.Results[0]
	rt := l.f.Types[out]
	shape := l.an.shape(out)
	switch {
	case shape == shapeUnit:
		l.unitOp(in, out)
		return
	case shape == shapeUniform && !rt.IsFloat():
		if f := scalarTable[in.Op]; f != nil {
			dst := l.newGPR()
			if r := l.into[out]; r != nil {
				dst = r[0]
			}
			if f(l, in, t, dst) {
				l.defineGPR(out, dst)
				return
			}
		}
	}
	f := opTable[in.Op]
	if f == nil || len(in.Results) > 1 {
		l.callout(in)
		return
	}
	if shape == shapeUniform {
		// One part is enough.
		l.narrow = true
	}
	dst := l.into[out]
	if dst == nil || shape == shapeUniform && !rt.IsFloat() {
		dst = l.newParts(rt)
	}
	if l.narrow {
		dst = dst[:1]
	}
	l.calledOut = false
	f(l, in, t, dst)
	l.narrow = false
	switch {
	case l.calledOut: // and defined
	case shape == shapeUniform:
		l.reduce(out, dst)
	default:
		l.define(out, dst)
	}
}

// reduce defines a uniform value of which one part was computed.
func (l *lowerer) reduce(out ir.Value, dst []vreg) {
	t := l.f.Types[out]
	switch {
	case t == ir.Bool:
		l.defineGPR(out, l.firstBit(dst[0]))
	case t.IsFloat():
		l.set(out).parts = dst[:1]
	default:
		l.defineGPR(out, l.firstLane(dst[0], t))
	}
}

// firstBit is lane 0 of a mask as 0 or 1.
func (l *lowerer) firstBit(m vreg) vreg {
	r := l.newGPR()
	if l.isa == AVX512 {
		l.op2(kmovwTo, r, fromReg(m))
	} else {
		l.op2(vmovmskpd, r, fromReg(m))
	}
	b := l.newGPR()
	l.add(inst{row: andImm, reg: b, v: r, imm: 1})
	return b
}

// unitOp is unit + uniform, uniform + unit, unit - uniform, or a choice of units.
func (l *lowerer) unitOp(in *ir.Instr, out ir.Value) {
	dst := l.newGPR()
	if in.Op == ir.OpSelect && in.Args[1] == in.Args[2] {
		l.copy(dst, l.base(in.Args[1]))
		l.defineGPR(out, dst)
		return
	}
	if in.Op == ir.OpSelect {
		c, x, y := l.gpr(in.Args[0]), l.base(in.Args[1]), l.base(in.Args[2])
		l.copy(dst, y)
		l.add(inst{row: testReg, reg: c, rm: fromReg(c)})
		l.add(inst{row: cmovcc[ifNotEqual], reg: dst, rm: fromReg(x)})
		l.defineGPR(out, dst)
		return
	}
	x, y := in.Args[0], in.Args[1]
	if in.Op == ir.OpAdd && l.uniform(x) {
		x, y = y, x
	}
	b, known := l.known(y)
	if in.Op == ir.OpSub {
		b = -b
	}
	switch {
	case known && int64(b) == int64(int32(b)):
		l.op2(lea, dst, address(l.base(x), 0, 0, int32(b)))
	case in.Op == ir.OpSub:
		l.op3(sub64, dst, l.base(x), fromReg(l.gpr(y)))
	default:
		l.op2(lea, dst, address(l.base(x), l.gpr(y), 0, 0))
	}
	l.defineGPR(out, dst)
}

// base is lane 0 of a unit or uniform integer.
func (l *lowerer) base(x ir.Value) vreg { return l.gpr(x) }
