package amd64

import "math/bits"

// emitter turns the list of instructions into machine code.
type emitter struct {
	l     *lowerer
	a     *assembler
	alloc *allocation
	out   []emitted
	pos   int32

	dry  bool            // only count the spare registers
	free [classes]uint32 // registers that hold nothing at this instruction
	took [classes]int    // spare registers of this instruction
	has  [classes][8]vreg
	most [classes]int
	// The instructions for which the free registers are not enough.
	short [classes][]shortage

	regBase, slotBase int32
	stateSize         int
	hot               int // see Code.Hot
}

// emitted is an instruction on machine registers.
type emitted struct {
	row   *row
	o     operands
	what  special // ordinary, place, jump, fixed
	cond  condition
	label label
	fixed func(a *assembler)
	pos   int32

	at, size int32 // of an ordinary one, in the code of the last pass
}

func newEmitter(l *lowerer) *emitter {
	l.b.insts, l.insts = l.insts, flatten(l.b.flat, l.insts)
	l.b.flat = l.insts
	l.fold()
	e := &emitter{l: l, a: l.a, alloc: l.allocate(), out: l.b.out}
	e.regBase = int32(l.allocateState(0, 64))
	n := e.regBase
	for c := range classes {
		n += int32(len(e.alloc.used[c])) * l.size(classKinds[c])
	}
	e.slotBase = (n + 63) &^ 63
	e.resolve()
	e.leaving()
	end := e.callCode((e.slotBase + e.alloc.slots + 63) &^ 63)
	e.stateSize = int(end+63) &^ 63
	l.b.out = e.out
	return e
}

// resolve goes through the list, the cold parts last.
func (e *emitter) resolve() { e.part(0, len(e.l.insts)) }

// part emits instructions from one to before another, and the cold parts inside behind
// them.
func (e *emitter) part(from, to int) {
	depth := 0
	var inner [][2]int
	for i := from; i < to; i++ {
		switch e.l.insts[i].special {
		case coldBegin:
			if depth == 0 {
				e.list(from, i)
				from = i
			}
			depth++
		case coldEnd:
			depth--
			if depth == 0 {
				inner = append(inner, [2]int{from + 1, i})
				from = i + 1
			}
		}
	}
	e.list(from, to)
	for _, p := range inner {
		e.part(p[0], p[1])
	}
}

func (e *emitter) list(from, to int) {
	for i := from; i < to; i++ {
		in := &e.l.insts[i]
		if e.dry && !e.touchesMemory(in) {
			continue // it takes no spare registers
		}
		e.took = [classes]int{}
		for c := range classes {
			e.free[c] = e.alloc.free[c][i]
		}
		e.pos = in.pos
		switch in.special {
		case ordinary:
			e.ordinary(in)
		case place, jump:
			e.put(emitted{what: in.special, cond: in.cond, label: in.label})
		case fixed:
			e.put(emitted{what: fixed, fixed: in.fixed})
		case fused:
			e.fused(in)
		case constant:
			e.constant(in)
		case exitCode:
			e.op(lea, operands{reg: rcx, rm: inMemory(memory{relative: true, label: in.label})})
			e.op(movImm32, operands{rm: register(rdx), imm: in.imm})
			e.put(emitted{what: jump, cond: always, label: e.l.save})
		}
		for c, n := range e.took {
			n -= bits.OnesCount32(e.free[c])
			e.most[c] = max(e.most[c], n)
			if n > 0 && e.dry {
				e.short[c] = append(e.short[c], shortage{int32(i), int32(n)})
			}
		}
	}
	e.free = [classes]uint32{}
}

// touchesMemory reports whether an operand of an instruction is a virtual register that
// is in memory.
func (e *emitter) touchesMemory(in *inst) bool {
	reg := e.alloc.reg
	return reg[in.reg] == spilled || reg[in.v] == spilled || reg[in.c] == spilled || reg[in.k] == spilled ||
		reg[in.rm.v] == spilled || reg[in.rm.base] == spilled || reg[in.rm.index] == spilled
}

func (e *emitter) put(x emitted) {
	if !e.dry {
		x.pos = e.pos
		e.out = append(e.out, x)
	}
}

func (e *emitter) op(r *row, o operands) { e.put(emitted{row: r, o: o}) }

// code gives the instructions to the assembler.
func (e *emitter) code() {
	from := 0
	for i := range e.out {
		x := &e.out[i]
		e.l.mark(x.pos)
		switch x.what {
		case ordinary:
			at := int32(len(e.a.code))
			if e.a.pass > 0 && e.a.listing == nil && !(x.o.rm.isMem && x.o.rm.mem.relative) {
				e.a.again(x.at, x.size)
			} else {
				e.a.op(x.row, x.o)
			}
			x.at, x.size = at, int32(len(e.a.code))-at
		case place:
			e.a.place(x.label)
			if x.label == e.l.fr.group {
				from = e.a.count
			}
			if x.label == e.l.fr.next {
				e.hot = e.a.count - from
			}
		case jump:
			e.a.jump(x.cond, x.label)
			if x.label == e.l.fr.group {
				e.hot = e.a.count - from
			}
		case fixed:
			x.fixed(e.a)
		}
	}
}

func (e *emitter) slot(v vreg) memory { return at(rsi, e.slotBase+e.alloc.slot[v]) }

func (e *emitter) spare(c int) uint8 {
	n := e.took[c]
	e.took[c]++
	e.has[c][n] = 0
	return e.spareAt(c, n)
}

func (e *emitter) spareAt(c, n int) uint8 {
	if e.dry {
		return 0
	}
	free := e.free[c]
	for range n {
		free &= free - 1
	}
	if free != 0 {
		return uint8(bits.TrailingZeros32(free))
	}
	return e.alloc.spare[c][n-bits.OnesCount32(e.free[c])]
}

// loadRow and storeRow move whole registers.
func loadRow(k kind) *row {
	switch k {
	case mask:
		return kmovw
	case r64:
		return movLoad
	}
	return vmovupd
}

func storeRow(k kind) *row {
	switch k {
	case mask:
		return kmovwStore
	case r64:
		return movStore
	}
	return vmovupdStore
}

// inRegister reports whether v has a machine register.
func (e *emitter) inRegister(v vreg) bool { return e.alloc.reg[v] != spilled }

// use returns a machine register that holds v, a spare one if v is in memory.
func (e *emitter) use(v vreg) uint8 {
	if r := e.alloc.reg[v]; r != spilled {
		return uint8(r)
	}
	c := class(e.l.kinds[v])
	for i := range e.took[c] {
		if e.has[c][i] == v {
			return e.spareAt(c, i)
		}
	}
	s := e.spare(c)
	e.has[c][e.took[c]-1] = v
	e.load(s, v)
	return s
}

// load moves v, which is in memory, to a register.
func (e *emitter) load(r uint8, v vreg) {
	k := e.l.kinds[v]
	c := &e.l.pool[e.l.poolOf[v]]
	switch {
	case !c.mem.relative:
		e.op(loadRow(k), operands{reg: r, rm: inMemory(e.slot(v))})
	case c.bits == 0 && c.mem.broadcast:
		e.op(vxorps, operands{reg: r, v: r, rm: register(r)})
	case c.mem.broadcast:
		m := c.mem
		m.broadcast = false
		e.op(vbroadcastsd, operands{reg: r, rm: inMemory(m)})
	default:
		e.op(vmovupd, operands{reg: r, rm: inMemory(c.mem)})
	}
}

// constant loads a constant that has a register.
func (e *emitter) constant(in *inst) {
	if r := e.alloc.reg[in.reg]; r != spilled {
		e.load(uint8(r), in.reg)
	}
}

// memoryFor is v, which is in memory, as a memory operand of a row, if the row can
// have it there.
func (e *emitter) memoryFor(r *row, v vreg) (memory, bool) {
	if r.onlyRegister || r.form == formVM && !e.a.encodesEVEX(r) {
		return memory{}, false
	}
	c := &e.l.pool[e.l.poolOf[v]]
	k := e.l.kinds[v]
	whole := r.rm == vec && r.n == 0 || r.rm == xmm || r.rm == half || r.rm == quarter || r.rm == eighth
	switch {
	case k == r64:
		return e.slot(v), r.rm == r64 || r.rm == r32 || r.rm == r16 || r.rm == r8
	case k == mask:
		return e.slot(v), r == kmovw || r == kmovb
	case !c.mem.relative:
		return e.slot(v), whole || r.rm == vec && r.n != 0
	case !c.mem.broadcast:
		return c.mem, whole
	}
	// One element in memory.
	if r.legacy || r.noBroadcast || !e.a.encodesEVEX(r) || r.rm != vec || r.ew == 0 && !c.narrow {
		return memory{}, false
	}
	return c.mem, true
}

// result returns the register to compute v in, and what to do afterwards. With
// reads it has v's value before; share lets it be that of an operand.
func (e *emitter) result(v vreg, reads, share bool) (uint8, func()) {
	if r := e.alloc.reg[v]; r != spilled {
		return uint8(r), nil
	}
	k := e.l.kinds[v]
	var s uint8
	if c := class(k); share && e.took[c] > 0 {
		s = e.spareAt(c, 0)
	} else {
		s = e.spare(c)
	}
	if reads {
		e.load(s, v)
	}
	return s, func() { e.op(storeRow(k), operands{reg: s, rm: inMemory(e.slot(v))}) }
}

// address is a memory operand on machine registers.
func (e *emitter) address(s *source) memory {
	m := s.mem
	if s.base != 0 {
		m.base = e.use(s.base)
	}
	if s.index != 0 {
		m.indexed = true
		m.index = e.use(s.index)
	}
	return m
}

// rm is the rm operand of a row.
func (e *emitter) rm(r *row, s *source) operand {
	switch {
	case s.isMem:
		return inMemory(e.address(s))
	case s.v == 0:
		return register(s.gpr)
	case e.inRegister(s.v):
		return register(uint8(e.alloc.reg[s.v]))
	}
	if m, ok := e.memoryFor(r, s.v); ok {
		return inMemory(m)
	}
	return register(e.use(s.v))
}

// move copies registers of one kind.
func (e *emitter) move(k kind, dst, src uint8) {
	if dst == src {
		return
	}
	switch k {
	case mask:
		e.op(kmovw, operands{reg: dst, rm: register(src)})
	case r64:
		e.op(movLoad, operands{reg: dst, rm: register(src)})
	default:
		e.op(vmovapd, operands{reg: dst, rm: register(src)})
	}
}

// copies reports whether a row only copies.
func copies(r *row) bool { return r == vmovapd || r == kmovw || r == movLoad }

func (e *emitter) ordinary(in *inst) {
	r := in.row
	if copies(r) && in.reg != 0 && in.rm.v != 0 && in.k == 0 {
		e.copy(in)
		return
	}
	if r.legacy && in.reg != 0 && (r.reads || r.form == formM) {
		e.legacy(in)
		return
	}
	o := operands{zero: in.zero, imm: in.imm}
	merges := in.k != 0 && !in.zero && in.reg != 0 && (r.reg == vec || r.reg == xmm) && r != vblendmpd && r != vblendmps
	reads := r.reads || merges
	if (r == kxnorw || r == kxorw) && in.v == in.reg && in.rm.v == in.reg { // all or none, whatever it holds
		d, after := e.result(in.reg, false, false)
		e.op(r, operands{reg: d, v: d, rm: register(d)})
		if after != nil {
			after()
		}
		return
	}
	switch {
	case in.v == 0:
	case !reads && e.loadsEarly(in, in.v):
		o.v = uint8(e.alloc.reg[in.reg])
		e.load(o.v, in.v)
	default:
		o.v = e.use(in.v)
	}
	if in.c != 0 {
		o.c = e.use(in.c)
	}
	if in.k != 0 {
		o.k = e.use(in.k)
	}
	rmWritten := (r.form == formMR || r.form == formM) && in.rm.v != 0 && !e.inRegister(in.rm.v)
	var after func()
	if rmWritten {
		if m, ok := e.memoryFor(r, in.rm.v); ok {
			o.rm = inMemory(m)
		} else {
			var s uint8
			s, after = e.result(in.rm.v, true, false)
			o.rm = register(s)
		}
	} else {
		o.rm = e.rm(r, &in.rm)
	}
	switch {
	case in.reg == 0:
		o.reg = in.gpr
	case r.form == formMR || r.form == formMVR || r.form == formTest || r.form == formScatter:
		o.reg = e.use(in.reg)
	default:
		if after != nil {
			panic("amd64: internal error: two results in memory")
		}
		o.reg, after = e.result(in.reg, reads, !reads && r.form != formGather)
	}
	e.op(r, o)
	if after != nil {
		after()
	}
}

// loadsEarly reports whether an operand in memory may be loaded into the register of
// the result: no other operand is there.
func (e *emitter) loadsEarly(in *inst, x vreg) bool {
	if e.inRegister(x) || in.reg == 0 || !e.inRegister(in.reg) || e.l.kinds[x] != e.l.kinds[in.reg] {
		return false
	}
	if r := in.row; r != nil && (r.form == formMR || r.form == formMVR || r.form == formTest || r.form == formScatter || r.form == formGather) {
		return false
	}
	for _, v := range [...]vreg{in.v, in.c, in.k, in.rm.v, in.rm.base, in.rm.index} {
		if v != 0 && e.l.kinds[v] == e.l.kinds[x] && e.alloc.reg[v] == e.alloc.reg[in.reg] {
			return false
		}
	}
	return true
}

// copy emits a copy between registers or memory.
func (e *emitter) copy(in *inst) {
	k := e.l.kinds[in.reg]
	d, s := e.alloc.reg[in.reg], e.alloc.reg[in.rm.v]
	switch {
	case in.reg == in.rm.v:
	case d != spilled && s != spilled:
		e.move(k, uint8(d), uint8(s))
	case d != spilled:
		e.load(uint8(d), in.rm.v)
	default:
		e.op(storeRow(k), operands{reg: e.use(in.rm.v), rm: inMemory(e.slot(in.reg))})
	}
}

// legacy emits an instruction whose destination is its first operand.
func (e *emitter) legacy(in *inst) {
	r := in.row
	d, after := e.result(in.reg, in.v == 0, false)
	rm := e.rmOf(in)
	v := in.v
	if v != 0 && !rm.isMem && in.rm.v != 0 && e.inRegister(in.rm.v) && rm.reg == d && !(e.inRegister(v) && uint8(e.alloc.reg[v]) == d) {
		// The second operand is in the destination.
		switch r {
		case add64, and64, or64, xor64, imul64:
			rm = e.rm(r, &source{v: v})
			v = 0
		case sub64:
			e.op(neg, operands{rm: register(d)})
			rm = e.rm(add64, &source{v: v})
			r, v = add64, 0
		case cmovcc[r.op&15]: // the other one, if not
			rm = e.rm(r, &source{v: v})
			r, v = cmovcc[r.op&15^1], 0
		default:
			panic("amd64: internal error: " + r.name + " into its second operand")
		}
	}
	if v != 0 {
		if e.inRegister(v) {
			e.move(r64, d, uint8(e.alloc.reg[v]))
		} else {
			e.load(d, v)
		}
	}
	o := operands{imm: in.imm}
	if r.form == formM {
		o.rm = register(d)
	} else {
		o.reg, o.rm = d, rm
	}
	e.op(r, o)
	if after != nil {
		after()
	}
}

func (e *emitter) rmOf(in *inst) operand {
	if in.row.form == formM || in.row.form == formO {
		return operand{}
	}
	return e.rm(in.row, &in.rm)
}

// fusedRows are the forms of a multiply-add: by 132, 213, 231, and by the bits
// single, negated and subtracted.
var fusedRows = [8][3]*row{
	0:                             {vfmadd132pd, vfmadd213pd, vfmadd231pd},
	single:                        {vfmadd132ps, vfmadd213ps, vfmadd231ps},
	negated:                       {vfnmadd132pd, vfnmadd213pd, vfnmadd231pd},
	single | negated:              {vfnmadd132ps, vfnmadd213ps, vfnmadd231ps},
	subtracted:                    {vfmsub132pd, vfmsub213pd, vfmsub231pd},
	single | subtracted:           {vfmsub132ps, vfmsub213ps, vfmsub231ps},
	negated | subtracted:          {vfnmsub132pd, vfnmsub213pd, vfnmsub231pd},
	single | negated | subtracted: {vfnmsub132ps, vfnmsub213ps, vfnmsub231ps},
}

// fused chooses the form of the multiply-add whose destroyed operand is the
// destination, with an operand in memory if there is one.
func (e *emitter) fused(in *inst) {
	rows := &fusedRows[in.imm]
	if in.rm.isMem {
		e.fusedMemory(in, rows)
		return
	}
	x, y, z := in.v, in.rm.v, in.c
	var mx, my, mz memory
	inMem := func(v vreg) (memory, bool) {
		if e.inRegister(v) {
			return memory{}, false
		}
		return e.memoryFor(rows[0], v)
	}
	mx, xm := inMem(x)
	my, ym := inMem(y)
	mz, zm := inMem(z)
	// One of them at most stays in memory: the sum's, else a factor.
	switch {
	case zm:
		xm, ym = false, false
	case ym:
		xm = false
	}
	if xm {
		x, y, mx, my, xm, ym = y, x, my, mx, ym, xm
	}
	var rx, ry, rz uint8
	factor := func(v vreg) uint8 {
		if !e.loadsEarly(in, v) || v == z {
			return e.use(v)
		}
		d := uint8(e.alloc.reg[in.reg])
		e.load(d, v)
		return d
	}
	switch {
	case ym || e.inRegister(y) || y == x:
		rx = factor(x)
		if !ym && y == x {
			ry = rx
		} else if !ym {
			ry = e.use(y)
		}
	default:
		rx, ry = e.use(x), factor(y)
	}
	if !zm {
		switch z {
		case x:
			rz = rx
		case y:
			rz = ry
			if ym {
				rz = e.use(z)
			}
		default:
			rz = e.use(z)
		}
	}
	var d uint8
	var after func()
	if e.inRegister(in.reg) {
		d = uint8(e.alloc.reg[in.reg])
	} else {
		d, after = e.result(in.reg, false, false)
	}
	f132, f213, f231 := rows[0], rows[1], rows[2]
	switch {
	case zm && d == ry && d != rx:
		e.op(f213, operands{reg: d, v: rx, rm: inMemory(mz)})
	case zm:
		e.move(vec, d, rx)
		e.op(f213, operands{reg: d, v: ry, rm: inMemory(mz)})
	case ym && d == rx && d != rz:
		e.op(f132, operands{reg: d, v: rz, rm: inMemory(my)})
	case ym:
		e.move(vec, d, rz)
		e.op(f231, operands{reg: d, v: rx, rm: inMemory(my)})
	case d == rz:
		e.op(f231, operands{reg: d, v: rx, rm: register(ry)})
	case d == rx:
		e.op(f213, operands{reg: d, v: ry, rm: register(rz)})
	case d == ry:
		e.op(f213, operands{reg: d, v: rx, rm: register(rz)})
	default:
		e.move(vec, d, rz)
		e.op(f231, operands{reg: d, v: rx, rm: register(ry)})
	}
	if after != nil {
		after()
	}
}

// fusedMemory is a multiply-add with a factor in memory.
func (e *emitter) fusedMemory(in *inst, rows *[3]*row) {
	x, z := e.use(in.v), e.use(in.c)
	o := operands{rm: inMemory(e.address(&in.rm)), zero: in.zero}
	if in.k != 0 {
		o.k = e.use(in.k)
	}
	d, after := e.result(in.reg, false, false)
	r := rows[2]
	if o.reg, o.v = d, x; d == x && d != z {
		r, o.v = rows[0], z
	} else {
		e.move(vec, d, z)
	}
	e.op(r, o)
	if after != nil {
		after()
	}
}

// registers saves all registers that are in use in the state, or loads them, from an offset on,
// and returns the offset behind.
func (e *emitter) registers(load bool, off int32) int32 {
	for c, k := range classKinds {
		r := storeRow(k)
		if load {
			r = loadRow(k)
		}
		for _, reg := range e.alloc.used[c] {
			e.op(r, operands{reg: reg, rm: inMemory(at(rsi, off))})
			off += e.l.size(k)
		}
	}
	return off
}

// leaving emits the code that saves all registers and returns, and the code that
// restores them and goes on. RCX has where to, RDX the Exit.
func (e *emitter) leaving() {
	e.pos = 0
	e.put(emitted{what: place, label: e.l.save})
	e.op(movLoad, operands{reg: rax, rm: inMemory(at(rsi, stateBlock))})
	e.op(movStore, operands{reg: rcx, rm: inMemory(at(rax, BlockResume))})
	e.op(movStore, operands{reg: rdx, rm: inMemory(at(rax, BlockExit))})
	e.op(movStore, operands{reg: budget, rm: inMemory(at(rax, BlockBudget))}) // what is left of it
	if e.l.fr.single {
		e.op(movImm, operands{rm: inMemory(at(rax, BlockLane))})
	} else {
		e.op(movLoad, operands{reg: rdx, rm: e.rm(movLoad, &source{v: e.l.fr.index})})
		e.op(add64, operands{reg: rdx, rm: inMemory(at(rax, BlockCount))})
		e.op(movStore, operands{reg: rdx, rm: inMemory(at(rax, BlockLane))})
	}
	if e.l.k.Levels > 0 {
		e.op(movLoad, operands{reg: rdx, rm: e.rm(movLoad, &source{v: e.l.fr.row})})
		e.op(movStore, operands{reg: rdx, rm: inMemory(at(rax, BlockRow))})
	}
	e.registers(false, e.regBase)
	e.op(vzeroupper, operands{})
	e.op(ret, operands{})
	e.put(emitted{what: place, label: e.l.restore})
	e.registers(true, e.regBase)
	e.op(jmpReg, operands{rm: register(rcx)})
}

// mark notes of what position the next instruction of the listing is.
func (l *lowerer) mark(pos int32) {
	if n := len(l.marks); l.a.listing != nil && pos > 0 && (n == 0 || l.marks[n-1].Pos != l.positions[pos]) {
		l.marks = append(l.marks, Mark{len(l.a.starts), l.positions[pos]})
	}
}
