package sim

import (
	"fmt"
	"math"
	"strings"

	"gpunotes/gpukit/internal/ptx"
)

type encoder struct {
	x      *flattener
	p      *program
	slot   []int32
	consts map[uint64]int32
	f      *flat
	in     *instr
}

// encode makes the code that runs of the flattened one.
func (x *flattener) encode(p *program) error {
	for i := range x.code {
		x.code[i].operands()
	}
	g := newGraph(x.code)
	slot := x.allocate(p, g)
	// A block where ways meet begins with a join.
	start := make([]int32, len(x.code)+1)
	meets := make([]bool, len(g.blocks))
	for k := range g.blocks {
		if b := &g.blocks[k]; b.join >= 0 && len(b.succ) > 1 {
			meets[b.join] = true
		}
	}
	at := int32(0)
	for i := range x.code {
		start[i] = at
		if k := g.at[i]; g.blocks[k].from == i && meets[k] {
			at++
		}
		at++
	}
	e := &encoder{x: x, p: p, slot: slot, consts: map[uint64]int32{}}
	e.constant(0)
	p.code = make([]instr, 0, at)
	for i := range x.code {
		k := g.at[i]
		if g.blocks[k].from == i && meets[k] {
			p.code = append(p.code, instr{op: opJoin, guard: -1, site: int32(x.code[i].site)})
		}
		e.f = &x.code[i]
		in := instr{guard: -1, pd: -1, pq: -1, pa: -1, pb: -1, join: -1, target: -1, site: int32(e.f.site)}
		zero := e.constant(0)
		in.a, in.b, in.c, in.e = zero, zero, zero, zero
		e.in = &in
		if gd := e.f.in.Guard; gd.On {
			in.guard, in.not = slot[gd.Reg], gd.Not
		}
		if err := e.encode(); err != nil {
			return fmt.Errorf("%s: %w", e.f.in.Opcode, err)
		}
		if e.f.isBranch() {
			in.target = start[e.f.target]
			if j := g.blocks[k].join; j >= 0 && len(g.blocks[k].succ) > 1 {
				in.join = start[g.blocks[j].from]
			}
		}
		p.code = append(p.code, in)
		s := &p.sites[e.f.site]
		s.class = classOf(e.f.d)
	}
	return nil
}

// constant is the source operand of a number.
func (e *encoder) constant(x uint64) int32 {
	if i, ok := e.consts[x]; ok {
		return i
	}
	var l lanes
	for i := range l {
		l[i] = x
	}
	e.p.consts = append(e.p.consts, l)
	i := int32(-len(e.p.consts))
	e.consts[x] = i
	return i
}

// address is what a symbol stands for, as a mov sees it.
func (e *encoder) address(name string) uint64 { return e.f.env.lookup(name).addr }

// value is a source operand of type t.
func (e *encoder) value(o *ptx.Operand, t ptx.Type) int32 {
	switch o.Kind {
	case ptx.KindReg:
		return e.slot[o.Reg]
	case ptx.KindSym:
		return e.constant(e.address(o.Sym) + uint64(o.Off))
	}
	n := t.Bits()
	if n < 8 {
		n = 64
	}
	return e.constant(low(n, o.Bits))
}

func (e *encoder) bits(r ptx.RegID) int { return e.x.regs[r].Bits() }

// register is a predicate, or the register that is written; -1 for a sink.
func (e *encoder) register(o *ptx.Operand) int32 {
	if o.Kind == ptx.KindReg {
		return e.slot[o.Reg]
	}
	return -1
}

func (e *encoder) encode() error {
	d, args, in := e.f.d, e.f.in.Args, e.in
	switch d.Op {
	case "bra":
		in.op = opBranch
		return nil
	case "exit", "ret":
		in.op = opExit
		return nil
	case "trap", "brkpt":
		in.op = opTrap
		return nil
	case "membar":
		in.op = opNothing
		if d.Has("cta") && e.p.m.Target < 70 { // what stands for a barrier of the warp there
			in.op = opMeet
			in.meet = &meeting{op: "warp", members: e.constant(math.MaxUint32), src: e.constant(0), threads: -1, dst: -1, pdst: -1, bits: 32}
		}
		return nil
	case "fence", "nanosleep", "prefetch", "prefetchu":
		in.op = opNothing
		return nil
	case "activemask":
		in.op, in.d = opActive, e.register(&args[0])
		return nil
	case "bar", "barrier", "shfl", "vote", "match", "redux":
		return e.meeting()
	case "ld", "ldu", "st", "atom", "red":
		return e.memory()
	case "setp":
		return e.comparison()
	case "testp", "isspacep":
		in.op, in.pd = opTest, e.register(&args[0])
		in.a = e.value(&args[1], ptx.U64)
		if d.Op == "testp" {
			in.cmp = lanewiseTest(semantics(d))
			return nil
		}
		if args[1].Kind == ptx.KindSym {
			return fmt.Errorf("the address of a variable as an operand is not supported: mov it into a register")
		}
		lo, hi := spaceWindow(d.Space)
		in.cmp = lanewiseTest(func(a, _, _ uint64) uint64 { return truth(a >= lo && a < hi) })
		return nil
	case "selp":
		in.op, in.d = opSelect, e.register(&args[0])
		in.a, in.b = e.value(&args[1], d.Type), e.value(&args[2], d.Type)
		in.pa, in.notA = e.register(&args[3]), args[3].Not
		return nil
	case "mov":
		return e.move()
	case "cvta":
		return e.convertAddress()
	case "bfi", "lop3":
		in.op, in.d = opFour, e.register(&args[0])
		in.a, in.b, in.c = e.value(&args[1], d.Type), e.value(&args[2], d.Type), e.value(&args[3], ptx.U32)
		in.e = e.value(&args[4], ptx.U32)
		if d.Op == "bfi" {
			n := d.Type.Bits()
			in.four = func(a, b, c, e uint64) uint64 { return bfi(a, b, c, e, n) }
			return nil
		}
		in.four = func(a, b, c, e uint64) uint64 {
			var r uint64
			for k := range 8 {
				if e>>k&1 != 0 { // of a, b, c as bits 2, 1, 0 of k
					x, y, z := a, b, c
					if k&4 == 0 {
						x = ^x
					}
					if k&2 == 0 {
						y = ^y
					}
					if k&1 == 0 {
						z = ^z
					}
					r |= x & y & z
				}
			}
			return low(32, r)
		}
		return nil
	}
	if d.Type == ptx.Pred { // and, or, xor, not
		in.op, in.pd = opLogic, e.register(&args[0])
		in.pa, in.notA = e.register(&args[1]), args[1].Not
		in.logic = map[string]uint8{"and": logicAnd, "or": logicOr, "xor": logicXor, "not": logicNot}[d.Op]
		if len(args) > 2 {
			in.pb, in.notB = e.register(&args[2]), args[2].Not
		}
		return nil
	}
	// All others make one value.
	in.d = e.register(&args[0])
	srcs := []*int32{&in.a, &in.b, &in.c}
	exact := args[0].Kind == ptx.KindReg
	for i := range args[1:] {
		*srcs[i] = e.value(&args[i+1], e.sourceType(i))
		if o := &args[i+1]; o.Kind == ptx.KindReg && d.Op == "cvt" && e.bits(o.Reg) > d.Type.Bits() && d.Type.Bits() >= 32 {
			exact = false // reads a part of the register
		}
	}
	if in.d < 0 {
		in.op = opNothing
		return nil
	}
	if d.Has("cc") || d.Op == "addc" || d.Op == "subc" || d.Op == "madc" {
		in.op, in.carry = opCarry, carrySemantics(d)
		if in.carry == nil {
			return fmt.Errorf("the simulator does not know it")
		}
		return nil
	}
	in.op = opVector
	to := d.Type
	if d.Op == "cvt" {
		to = d.Types[0]
		exact = exact && e.bits(args[0].Reg) == to.Bits()
	}
	if (d.Op == "div" || d.Op == "rem") && !d.Type.IsFloat() {
		in.off = uint64(d.Type.Bits())<<1 | truth(d.Type.IsSigned())
	}
	if exact {
		if in.vec = vectors[e.f.in.Opcode]; in.vec != nil {
			return nil
		}
	}
	f := semantics(d)
	if f == nil {
		return fmt.Errorf("the simulator does not know it")
	}
	if n := e.bits(args[0].Reg); d.Op == "cvt" && n > to.Bits() && to.IsSigned() {
		g, k := f, to.Bits()
		f = func(a, b, c uint64) uint64 { return low(n, sext(k, g(a, b, c))) }
	}
	in.vec = lanewise(f)
	return nil
}

// sourceType is the type of source operand i by the table, for immediates.
func (e *encoder) sourceType(i int) ptx.Type {
	d := e.f.d
	k := i + 1
	if k >= len(d.Form.Args) {
		return d.Type
	}
	switch s := strings.TrimLeft(strings.TrimSuffix(d.Form.Args[k], "?"), "~"); s {
	case "T":
		return d.Type
	case "T0":
		return d.Types[0]
	case "W":
		return ptx.U64
	default:
		if t := ptx.ParseType(s); t != ptx.NoType {
			return t
		}
	}
	return d.Type
}

func spaceWindow(s ptx.Space) (lo, hi uint64) {
	switch s {
	case ptx.Shared:
		return sharedWindow, localWindow
	case ptx.Local:
		return localWindow, windowEnd
	case ptx.Const:
		return constWindow, globalWindow
	}
	return globalWindow, sharedWindow
}

func (e *encoder) comparison() error {
	d, args, in := e.f.d, e.f.in.Args, e.in
	in.op = opTest
	if o := &args[0]; o.Kind == ptx.KindPair {
		in.pd, in.pq = e.register(&o.Elems[0]), e.register(&o.Elems[1])
	} else {
		in.pd = e.register(o)
	}
	in.a, in.b = e.value(&args[1], d.Type), e.value(&args[2], d.Type)
	if len(args) > 3 {
		in.pa, in.notA = e.register(&args[3]), args[3].Not
		in.logic = map[string]uint8{"and": logicAnd, "or": logicOr, "xor": logicXor}[d.Mods[1]]
	}
	cmp, swap := d.Mods[0], false
	float := d.Type.IsFloat()
	if float && !d.Has("ftz") || !float {
		if float {
			switch cmp {
			case "num":
				cmp, in.invert = "nan", true
			case "ltu":
				cmp, in.invert, swap = "le", true, true
			case "leu":
				cmp, in.invert, swap = "lt", true, true
			case "gtu":
				cmp, in.invert = "le", true
			case "geu":
				cmp, in.invert = "lt", true
			case "neu":
				cmp, in.invert = "eq", true
			}
		}
		switch cmp {
		case "gt":
			cmp, swap = "lt", true
		case "ge":
			cmp, swap = "le", true
		case "hi":
			cmp, swap = "lo", true
		case "hs":
			cmp, swap = "ls", true
		}
		if in.cmp = tests[cmp+"."+d.Type.String()]; in.cmp != nil {
			if swap {
				in.a, in.b = in.b, in.a
			}
			return nil
		}
	}
	in.invert = false
	in.cmp = lanewiseTest(semantics(d))
	return nil
}

func (e *encoder) move() error {
	d, args, in := e.f.d, e.f.in.Args, e.in
	dst, src := &args[0], &args[1]
	switch {
	case d.Type == ptx.Pred:
		in.op, in.logic, in.pd = opLogic, logicMove, e.register(dst)
		if src.Kind == ptx.KindInt {
			in.notA = src.Bits != 0 // of no predicate, which is false
		} else {
			in.pa = e.register(src)
		}
	case dst.Kind == ptx.KindVec:
		in.op, in.a = opUnpack, e.value(src, d.Type)
		for i := range dst.Elems {
			in.list = append(in.list, e.register(&dst.Elems[i]))
		}
		in.off = uint64(d.Type.Bits() / len(dst.Elems))
	case src.Kind == ptx.KindVec:
		in.op, in.d = opPack, e.register(dst)
		n := d.Type.Bits() / len(src.Elems)
		for i := range src.Elems {
			o := &src.Elems[i]
			in.list = append(in.list, e.value(o, map[int]ptx.Type{8: ptx.B8, 16: ptx.B16, 32: ptx.B32}[n]))
		}
		in.off = uint64(n)
	case src.Kind == ptx.KindSpecial:
		in.op, in.d = opSpecial, e.register(dst)
		k, ok := specials[src.Sym]
		if !ok {
			return fmt.Errorf("the simulator does not know %s", src.Sym)
		}
		in.off = uint64(k)
	default:
		in.op, in.d, in.a, in.vec = opVector, e.register(dst), e.value(src, d.Type), vecMov
	}
	if in.op != opLogic && in.op != opUnpack && in.d < 0 {
		in.op = opNothing
	}
	return nil
}

func (e *encoder) convertAddress() error {
	d, args, in := e.f.d, e.f.in.Args, e.in
	in.op, in.d = opVector, e.register(&args[0])
	in.a = e.value(&args[1], d.Type)
	var base uint64
	switch d.Space {
	case ptx.Shared:
		base = sharedWindow
	case ptx.Local:
		base = localWindow
	}
	if d.Has("to") {
		base = -base
	}
	if base == 0 {
		in.vec = vecMov
		return nil
	}
	if d.Type.Bits() == 32 {
		return fmt.Errorf("generic addresses have 64 bits here: .address_size 64 is needed")
	}
	in.vec, in.b = vecAdd64, e.constant(base)
	return nil
}

// memory encodes loads, stores and atomic operations.
func (e *encoder) memory() error {
	d, args, in := e.f.d, e.f.in.Args, e.in
	r := &memoryRef{space: d.Space, size: d.Type.Size(), vec: max(d.Vec, 1), signed: d.Type.IsSigned(), bits: d.Type.Bits(), nc: d.Has("nc"), volatile: d.Has("volatile"), text: e.f.in.Opcode}
	in.mem = r
	e.p.readOnly = e.p.readOnly || r.nc
	if d.Op == "ldu" {
		r.space, r.nc = ptx.Global, d.Space == ptx.Global
	}
	place, data := 1, 0
	switch d.Op {
	case "ld", "ldu":
		in.op = opLoad
	case "st":
		in.op, place, data = opStore, 0, 1
	case "atom":
		in.op, r.atomic = opAtom, true
	case "red":
		in.op, r.atomic, r.red, place = opAtom, true, true, 0
	}
	o := &args[place]
	in.off = uint64(o.Off)
	if o.Reg != ptx.NoReg {
		in.a = e.slot[o.Reg]
	} else if o.Sym != "" {
		s := e.f.env.lookup(o.Sym)
		in.off += s.addr
		if r.space == ptx.Generic {
			r.space = s.space
		}
		if s.space == ptx.ParamSpace && s.dynamic {
			r.space, r.hidden = ptx.Local, true
		} else if s.space == ptx.ParamSpace {
			in.op = opParam
		}
	}
	if r.space == ptx.ParamSpace && in.op != opParam {
		if in.op == opStore {
			return fmt.Errorf("parameters of the kernel cannot be written")
		}
		in.op = opParam
	}
	if r.atomic {
		in.fn = atomicSemantics(d)
		r.regs = []int32{-1}
		rest := args[1:]
		if !r.red {
			r.regs[0] = e.register(&args[0])
			rest = args[2:]
		}
		in.b = e.value(&rest[0], d.Type)
		if len(rest) > 1 {
			in.c = e.value(&rest[1], d.Type)
		}
		return nil
	}
	elems := args[data : data+1]
	if args[data].Kind == ptx.KindVec {
		elems = args[data].Elems
	}
	for i := range elems {
		v := &elems[i]
		if in.op == opStore {
			r.regs = append(r.regs, e.value(v, d.Type))
			continue
		}
		r.regs = append(r.regs, e.register(v))
		if v.Kind == ptx.KindReg {
			r.bits = e.bits(v.Reg)
		}
	}
	return nil
}

func (e *encoder) meeting() error {
	d, args, in := e.f.d, e.f.in.Args, e.in
	in.op = opMeet
	m := &meeting{op: d.Op, all: true, members: e.constant(math.MaxUint32), src: e.constant(0), threads: -1, dst: -1, pdst: -1, bits: max(d.Type.Bits(), 32), signed: d.Type.IsSigned()}
	in.meet = m
	last := func() { m.members = e.value(&args[len(args)-1], ptx.U32) }
	result := func(o *ptx.Operand) {
		if o.Kind == ptx.KindPair {
			m.pdst = e.register(&o.Elems[1])
			o = &o.Elems[0]
		}
		m.dst = e.register(o)
	}
	switch d.Op {
	case "bar", "barrier":
		m.op = "bar"
		m.kind = d.Mods[0] // sync, arrive, red, warp
		if m.kind == "warp" {
			m.op = "warp"
			last()
			return nil
		}
		k := 0
		if m.kind == "red" {
			m.kind = d.Mods[1]
			if d.Type == ptx.Pred {
				m.pdst = e.register(&args[0])
			} else {
				m.dst = e.register(&args[0])
			}
			m.src, m.notSrc = e.register(&args[2]), args[2].Not
			k = 1
		} else if len(args) > 1 {
			m.threads = e.value(&args[1], ptx.U32)
		}
		m.number = e.value(&args[k], ptx.U32)
	case "shfl":
		m.kind = d.Mods[0]
		if m.kind == "sync" {
			m.kind = d.Mods[1]
			last()
		} else {
			m.all = false
		}
		result(&args[0])
		m.src = e.value(&args[1], d.Type)
		in.b, in.c = e.value(&args[2], ptx.U32), e.value(&args[3], ptx.U32)
	case "vote":
		m.kind = d.Mods[0]
		if m.kind == "sync" {
			m.kind = d.Mods[1]
			last()
		} else {
			m.all = false
		}
		if d.Type == ptx.Pred {
			m.pdst = e.register(&args[0])
		} else {
			m.dst = e.register(&args[0])
		}
		m.src, m.notSrc = e.register(&args[1]), args[1].Not
	case "match":
		m.kind = d.Mods[0]
		last()
		result(&args[0])
		m.src = e.value(&args[1], d.Type)
	case "redux":
		m.kind = d.Mods[1]
		last()
		m.dst = e.register(&args[0])
		m.src = e.value(&args[1], d.Type)
	}
	return nil
}

// specials numbers the special registers.
var specials = map[string]special{
	"%tid.x": tidX, "%tid.y": tidY, "%tid.z": tidZ, "%ntid.x": ntidX, "%ntid.y": ntidY, "%ntid.z": ntidZ,
	"%ctaid.x": ctaidX, "%ctaid.y": ctaidY, "%ctaid.z": ctaidZ, "%nctaid.x": nctaidX, "%nctaid.y": nctaidY, "%nctaid.z": nctaidZ,
	"%laneid": laneID, "%warpid": warpID, "%nwarpid": nwarpID, "%smid": smID, "%nsmid": nsmID, "%gridid": gridID,
	"%lanemask_eq": maskEQ, "%lanemask_le": maskLE, "%lanemask_lt": maskLT, "%lanemask_ge": maskGE, "%lanemask_gt": maskGT,
	"%clock": clock, "%clock64": clock, "%clock_hi": clockHi, "%globaltimer": clock, "%globaltimer_lo": clock, "%globaltimer_hi": clockHi,
	"%total_smem_size": sharedSize, "%dynamic_smem_size": dynamicSize,
}

type special uint8

const (
	tidX special = iota
	tidY
	tidZ
	ntidX
	ntidY
	ntidZ
	ctaidX
	ctaidY
	ctaidZ
	nctaidX
	nctaidY
	nctaidZ
	laneID
	warpID
	nwarpID
	smID
	nsmID
	gridID
	maskEQ
	maskLE
	maskLT
	maskGE
	maskGT
	clock
	clockHi
	sharedSize
	dynamicSize
)
