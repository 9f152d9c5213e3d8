package amd64

// emitter turns the list of instructions into machine code.
type emitter struct {
	l         *lowerer
	a         *assembler
	alloc     *allocation
	scratch   [2][]uint8 // vectors, masks
	slotBase  int32
	stateSize int
}

// The state area has two words of progress, the operands of a division, the
// registers that a pause saves, and the slots.
const (
	stateIndex = 0
	stateLeft  = 8
	stateX     = 64
	stateY     = 128
	stateRegs  = 192
)

func newEmitter(l *lowerer) *emitter {
	e := &emitter{l: l, a: l.a, alloc: l.allocate()}
	_, e.scratch[0] = l.registersOf(vec, true)
	_, e.scratch[1] = l.registersOf(mask, true)
	e.slotBase = stateRegs + int32(len(e.alloc.used[0]))*l.size(vec)
	e.slotBase += (int32(len(e.alloc.used[1]))*l.size(mask) + 63) &^ 63
	e.stateSize = int(e.slotBase+e.alloc.slots+63) &^ 63
	return e
}

func (e *emitter) code() {
	for i := range e.l.insts {
		in := &e.l.insts[i]
		switch in.special {
		case undefined:
		case place:
			e.a.place(in.label)
		case jump:
			e.a.jump(in.cond, in.label)
		case fixed:
			in.fixed(e.a)
		case fused:
			e.fused(in)
		default:
			e.ordinary(in)
		}
	}
	for _, p := range e.l.pauses {
		e.a.place(p.at)
		e.a.op(lea, operands{reg: rcx, rm: inMemory(memory{relative: true, label: p.resume})})
		e.a.jump(always, e.l.save)
	}
	e.pause()
}

func (e *emitter) slot(v vreg) memory { return at(rsi, e.slotBase+e.alloc.slot[v]) }

func class(k kind) int {
	if k == mask {
		return 1
	}
	return 0
}

// loadRow and storeRow move whole registers.
func loadRow(k kind) *row {
	if k == mask {
		return kmovb
	}
	return vmovupd
}

func storeRow(k kind) *row {
	if k == mask {
		return kmovbStore
	}
	return vmovupdStore
}

// use returns a machine register that holds v, the n-th scratch register if v
// is in memory.
func (e *emitter) use(v vreg, n int) uint8 {
	if r := e.alloc.reg[v]; r != inSlot {
		return uint8(r)
	}
	k := e.l.kinds[v]
	s := e.scratch[class(k)][n]
	e.a.op(loadRow(k), operands{reg: s, rm: inMemory(e.slot(v))})
	return s
}

// result returns the register to compute v in, and what to do afterwards.
func (e *emitter) result(v vreg) (uint8, func()) {
	if r := e.alloc.reg[v]; r != inSlot {
		return uint8(r), func() {}
	}
	k := e.l.kinds[v]
	s := e.scratch[class(k)][0]
	return s, func() { e.a.op(storeRow(k), operands{reg: s, rm: inMemory(e.slot(v))}) }
}

func (e *emitter) ordinary(in *inst) {
	r := in.row
	if (r == vmovapd || r == kmovb) && !in.rm.isMem && e.alloc.reg[in.reg] == e.alloc.reg[in.rm.v] && e.alloc.reg[in.reg] != inSlot {
		return
	}
	o := operands{zero: in.zero, imm: in.imm}
	if in.v != 0 {
		o.v = e.use(in.v, 0)
	}
	if in.c != 0 {
		o.c = e.use(in.c, 2)
	}
	if in.k != 0 {
		o.k = e.use(in.k, 0)
	}
	switch {
	case in.rm.isMem:
		o.rm = inMemory(in.rm.mem)
	case in.rm.v == 0:
		o.rm = register(in.rm.gpr)
	case e.alloc.reg[in.rm.v] == inSlot && e.l.kinds[in.rm.v] == vec && r.rm == vec && r.n == 0 && r.form != formVM && r != vmovmskpd:
		o.rm = inMemory(e.slot(in.rm.v))
	default:
		n := 1
		if r.form == formRM || r.form == formVM {
			n = 0
		}
		o.rm = register(e.use(in.rm.v, n))
	}
	after := func() {}
	switch {
	case in.reg == 0:
		o.reg = in.gpr
	case r.form == formMR || r.form == formMVR:
		o.reg = e.use(in.reg, 2)
	case r.form == formTest:
		o.reg = e.use(in.reg, 0)
	default:
		o.reg, after = e.result(in.reg)
	}
	e.a.op(r, o)
	after()
}

// fused chooses the form of the multiply-add whose destroyed operand is the
// destination.
func (e *emitter) fused(in *inst) {
	x, y, z := e.use(in.v, 0), e.use(in.rm.v, 1), e.use(in.c, 2)
	d, after := e.result(in.reg)
	switch {
	case d == z:
		e.a.op(vfmadd231pd, operands{reg: d, v: x, rm: register(y)})
	case d == x:
		e.a.op(vfmadd213pd, operands{reg: d, v: y, rm: register(z)})
	case d == y:
		e.a.op(vfmadd213pd, operands{reg: d, v: x, rm: register(z)})
	default:
		e.a.op(vmovapd, operands{reg: d, rm: register(x)})
		e.a.op(vfmadd213pd, operands{reg: d, v: y, rm: register(z)})
	}
	after()
}

// pause emits the code that saves all registers and returns, and the code that
// restores them and goes on.
func (e *emitter) pause() {
	a := e.a
	registers := func(load bool) {
		off := int32(stateRegs)
		for c, k := range [...]kind{vec, mask} {
			r := storeRow(k)
			if load {
				r = loadRow(k)
			}
			for _, reg := range e.alloc.used[c] {
				a.op(r, operands{reg: reg, rm: inMemory(at(rsi, off))})
				off += e.l.size(k)
			}
		}
	}
	a.place(e.l.save)
	a.op(movStore, operands{reg: rcx, rm: inMemory(at(rax, ArgResume))})
	a.op(movStore, operands{reg: rdx, rm: inMemory(at(rsi, stateIndex))})
	a.op(movStore, operands{reg: r8q, rm: inMemory(at(rsi, stateLeft))})
	registers(false)
	a.op(vzeroupper, operands{})
	a.op(ret, operands{})
	a.place(e.l.fault)
	a.op(movImm, operands{rm: inMemory(at(rax, ArgFault)), imm: 1})
	a.op(movImm, operands{rm: inMemory(at(rax, ArgResume))})
	a.op(vzeroupper, operands{})
	a.op(ret, operands{})
	a.place(e.l.restore)
	a.op(movLoad, operands{reg: rdx, rm: inMemory(at(rsi, stateIndex))})
	a.op(movLoad, operands{reg: r8q, rm: inMemory(at(rsi, stateLeft))})
	registers(true)
	a.op(jmpReg, operands{rm: register(rcx)})
}
