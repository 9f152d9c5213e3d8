package nvptx

import (
	"fmt"

	"gpunotes/gpukit/internal/ir"
	"gpunotes/gpukit/internal/ptx"
)

// readOnlyMem is readOnly for a Global memory of the function.
func (e *emitter) readOnlyMem(m ir.Mem) string {
	if written(e.f, m) {
		return ""
	}
	return e.readOnly(e.k.NoAlias || e.k.Facts.Arrays[m].NoAlias)
}

// clear sets a Local memory to zero.
func (e *emitter) clear(m ir.Mem) {
	t, n := e.f.Mems[m].Elem, e.f.Mems[m].Len
	zero := e.get("mov.b64", ptx.B64, ptx.Int(0))
	if t == ir.Bool {
		t = ir.U8
	}
	op := fmt.Sprintf("st.local.b%d", t.Bits())
	base := e.vals[e.base(m)]
	if n <= 16 {
		for i := range n {
			e.ins(op, ptx.Addr(base.Reg, int64(i*t.Size())), zero)
		}
		return
	}
	at, head := e.get("mov.b64", ptx.B64, base), e.label("clear")
	end := e.get("add.s64", ptx.B64, base, ptx.Int(int64(n*t.Size())))
	e.fn.AddLabel(head)
	e.ins(op, ptx.Addr(at.Reg, 0), zero)
	e.ins("add.s64", at, at, ptx.Int(int64(t.Size())))
	e.branch(e.get("setp.lt.u64", ptx.Pred, at, end), false, head)
}

// atomic emits an atomic operation on the word at addr and returns what was
// there: an instruction where there is one of the exact meaning, else a loop of
// compare-and-swap.
func (e *emitter) atomic(k ir.Kind, t ir.Type, space string, addr ptx.Operand, x []ptx.Operand) ptx.Operand {
	b := fmt.Sprintf("b%d", t.Bits())
	wide := t.Bits() == 64
	get := func(op, typ string, x ...ptx.Operand) ptx.Operand {
		return e.get("atom."+space+"."+op+"."+typ, class(t), append([]ptx.Operand{addr}, x...)...)
	}
	if space == "local" {
		// Nobody else sees it, and PTX has no atomics there.
		old := e.load(addr, space, t)
		e.store(addr, space, t, e.updated(k, t, old, x))
		return old
	}
	switch {
	case t.Bits() < 32:
		return e.atomicPart(k, t, space, addr, x)
	case k == ir.Exchange:
		return get("exch", b, x[0])
	case k == ir.CompareSwap:
		return get("cas", b, x[0], x[1])
	case k == ir.AtomicAdd && t.IsInt():
		return get("add", map[bool]string{true: "u64", false: suffix(t)}[wide], x[0])
	case k == ir.AtomicAdd && t == ir.F64 && e.level >= 60:
		return get("add", "f64", x[0])
	case t.IsInt() && (!wide || e.level >= 35):
		switch k {
		case ir.AtomicMin:
			return get("min", suffix(t), x[0])
		case ir.AtomicMax:
			return get("max", suffix(t), x[0])
		case ir.AtomicAnd:
			return get("and", b, x[0])
		case ir.AtomicOr:
			return get("or", b, x[0])
		case ir.AtomicXor:
			return get("xor", b, x[0])
		}
	}
	// atom.add.f32 flushes denormals, so that it is no use here.
	bt := map[bool]ir.Type{true: ir.U64, false: ir.U32}[wide]
	old := e.reg(class(t))
	e.ins("ld.volatile."+space+"."+b, old, addr)
	head := e.label("atomic")
	e.fn.AddLabel(head)
	was := e.get("mov."+b, class(bt), old)
	e.ins("atom."+space+".cas."+b, old, addr, was, e.updated(k, t, old, x))
	now := e.get("mov."+b, class(bt), old)
	e.branch(e.get("setp.ne."+b, ptx.Pred, now, was), false, head)
	return old
}

// atomicPart is atomic on an integer of 8 or 16 bits, by compare-and-swap on the
// 32-bit word that holds it; the memory must end where a word does.
func (e *emitter) atomicPart(k ir.Kind, t ir.Type, space string, addr ptx.Operand, x []ptx.Operand) ptx.Operand {
	at := ptx.R(addr.Reg)
	if addr.Off != 0 {
		at = e.get("add.s64", ptx.B64, at, ptx.Int(addr.Off))
	}
	shift := e.get("shl.b32", ptx.B32, e.get("and.b32", ptx.B32, e.get("cvt.u32.u64", ptx.B32, at), ptx.Int(3)), ptx.Int(3))
	word := ptx.Addr(e.get("and.b64", ptx.B64, at, ptx.Int(-4)).Reg, 0)
	all := ptx.Int(int64(1)<<t.Bits() - 1)
	keep := e.get("not.b32", ptx.B32, e.get("shl.b32", ptx.B32, e.get("mov.b32", ptx.B32, all), shift))
	now, old := e.reg(ptx.B32), e.reg(ptx.B32)
	e.ins("ld.volatile."+space+".b32", now, word)
	head := e.label("atomic")
	e.refs[head] = true
	e.land(head)
	was := e.get("mov.b32", ptx.B32, now)
	e.ins("mov.b32", old, e.norm(t, e.get("shr.u32", ptx.B32, was, shift)))
	part := e.get("shl.b32", ptx.B32, e.get("and.b32", ptx.B32, e.updated(k, t, old, x), all), shift)
	e.ins("atom."+space+".cas.b32", now, word, was, e.get("or.b32", ptx.B32, e.get("and.b32", ptx.B32, was, keep), part))
	e.branch(e.get("setp.ne.s32", ptx.Pred, now, was), false, head)
	return old
}

// updated is what an atomic operation makes of old.
func (e *emitter) updated(k ir.Kind, t ir.Type, old ptx.Operand, x []ptx.Operand) ptx.Operand {
	switch k {
	case ir.Exchange:
		return x[0]
	case ir.CompareSwap:
		b := fmt.Sprintf("b%d", max(t.Bits(), 32))
		return e.choose(t, e.get("setp.eq."+b, ptx.Pred, old, x[0]), x[1], old)
	}
	op := map[ir.Kind]ir.Op{ir.AtomicAdd: ir.OpAdd, ir.AtomicMin: ir.OpMin, ir.AtomicMax: ir.OpMax, ir.AtomicAnd: ir.OpAnd, ir.AtomicOr: ir.OpOr, ir.AtomicXor: ir.OpXor}[k]
	return e.binary(op, t, old, x[0])
}

// sync picks the form of a warp operation: from sm_70 on threads of a warp need
// not be in step and must name who takes part. All lanes are named: those that
// have left the kernel do not count.
func (e *emitter) sync(op string, args []ptx.Operand) (string, []ptx.Operand) {
	if e.level >= 70 {
		return op + ".sync", append(args, ptx.Int(-1))
	}
	return op, args
}

func (e *emitter) ballot(p ptx.Operand) ptx.Operand {
	op, args := e.sync("vote", []ptx.Operand{p})
	return e.get(op+".ballot.b32", ptx.B32, args...)
}

func (e *emitter) vote(k ir.Kind, p ptx.Operand) ptx.Operand {
	if k == ir.Ballot {
		return e.ballot(p)
	}
	op, args := e.sync("vote", []ptx.Operand{p})
	return e.get(op+map[ir.Kind]string{ir.VoteAny: ".any", ir.VoteAll: ".all"}[k]+".pred", ptx.Pred, args...)
}

// shuffle emits the exchange: PTX leaves open what comes from a lane that is
// not there or has left, so that lanes are counted first.
func (e *emitter) shuffle(in *ir.Instr) ptx.Operand {
	t := e.f.Types[in.Args[0]]
	x, by := e.inReg(in.Args[0]), e.inReg(in.Args[1])
	lane := e.get("cvt.u64.u32", ptx.B64, e.get("mov.u32", ptx.B32, ptx.Special("%laneid")))
	switch in.Kind {
	case ir.ShuffleUp:
		by = e.get("sub.s64", ptx.B64, lane, by)
	case ir.ShuffleDown:
		by = e.get("add.s64", ptx.B64, lane, by)
	case ir.ShuffleXor:
		by = e.get("xor.b64", ptx.B64, lane, by)
	}
	present := e.ballot(e.get("mov.pred", ptx.Pred, ptx.Int(1)))
	ok := e.get("setp.lt.u64", ptx.Pred, by, ptx.Int(ir.WarpSize))
	from := e.get("cvt.u32.u64", ptx.B32, by)
	bit := e.get("and.b32", ptx.B32, e.get("shr.u32", ptx.B32, present, from), ptx.Int(1))
	there := e.get("setp.ne.and.s32", ptx.Pred, bit, ptx.Int(0), ok)
	from = e.get("selp.b32", ptx.B32, from, e.get("mov.u32", ptx.B32, ptx.Special("%laneid")), there)

	word := func(w ptx.Operand) ptx.Operand {
		op, args := e.sync("shfl", []ptx.Operand{w, from, ptx.Int(0x1F)})
		return e.get(op+".idx.b32", ptx.B32, args...)
	}
	switch {
	case t == ir.Bool:
		w := word(e.get("selp.b32", ptx.B32, ptx.Int(1), ptx.Int(0), x))
		return e.get("setp.ne.s32", ptx.Pred, w, ptx.Int(0))
	case t == ir.F32:
		return e.get("mov.b32", ptx.F32, word(e.get("mov.b32", ptx.B32, x)))
	case t.Bits() == 64:
		lo, hi := e.reg(ptx.B32), e.reg(ptx.B32)
		e.ins("mov.b64", ptx.Vec(lo, hi), x)
		lo, hi = word(lo), word(hi)
		return e.get("mov.b64", class(t), ptx.Vec(lo, hi))
	}
	return word(x)
}
