package amd64

import (
	"fmt"

	"gpunotes/gpukit/internal/ir"
)

// A function marked Outline is a subroutine behind the main code. Operands, the mask
// of the lanes that call, and results go through fixed places in the state: no
// function calls itself. Who calls has all its registers saved meanwhile, since they
// are allocated for each function as if it were alone; what is in the state for long,
// and the registers of constants and addresses of memories, hold for all functions.
//
// A call site has in RCX where to go on and in RDX the subroutine, and jumps to the
// code that saves the registers of its function, which gives the subroutine in RCX
// where to return to: code that restores them.

// subroutine is an Outline function, with the Global memories that calls bind.
type subroutine struct {
	f       *ir.Func
	globals []int
	entry   label
	active  int // in the state: a word with the lanes that call
	in, out []Place
	fails   bool // some lane may fail in it
}

// caller is a function with call sites: the main one or a subroutine.
type caller struct {
	save, restore label
	back          int // in the state: where the site goes on
}

// calls is what lowering knows of calls.
type calls struct {
	subroutines []*subroutine
	byKey       map[string]*subroutine
	current     *caller // of the function that is being lowered, once it calls
	callers     []*caller
}

func lowerCall(l *lowerer, in *ir.Instr, _ ir.Type, _ []vreg) {
	s := l.subroutine(in)
	if s == nil {
		return
	}
	c := &l.calls
	if c.current == nil {
		c.current = &caller{save: l.a.newLabel(), restore: l.a.newLabel(), back: l.allocateState(8, 8)}
		c.callers = append(c.callers, c.current)
	}
	for i, x := range in.Args {
		p := s.in[i]
		if p.Type == ir.Bool {
			l.storeLanes(l.masks(x), p.Offset)
			continue
		}
		for k, r := range l.vecs(x) {
			l.store(vmovupdStore, r, inState(p.Offset+k*l.regBytes))
		}
	}
	l.storeLanes(l.active(), s.active)
	back := l.a.newLabel()
	l.fixed(func(a *assembler) {
		a.op(lea, operands{reg: rcx, rm: inMemory(memory{relative: true, label: back})})
		a.op(lea, operands{reg: rdx, rm: inMemory(memory{relative: true, label: s.entry})})
	})
	l.jump(always, c.current.save)
	l.place(back)
	if s.fails {
		l.withoutFailed()
	}
	for i, x := range in.Results {
		dst := l.newParts(l.f.Types[x])
		l.fromPlace(dst, s.out[i])
		l.defineFromGroup(x, dst)
	}
}

// fromPlace loads registers from a place for all lanes.
func (l *lowerer) fromPlace(dst []vreg, p Place) {
	if p.Type == ir.Bool {
		l.loadLanes(dst, p.Offset)
		return
	}
	for k, r := range dst {
		l.op2(vmovupd, r, inState(p.Offset+k*l.regBytes))
	}
}

// withoutFailed takes lanes that have failed out of all regions.
func (l *lowerer) withoutFailed() {
	none := l.a.newLabel()
	if l.fault.Lanes == 0 {
		l.reserveFaults()
	}
	l.add(inst{row: cmpImm, rm: inState(l.fault.Lanes), imm: 0})
	l.jump(ifEqual, none)
	failed := l.newMasks(l.parts(ir.Bool))
	l.loadLanes(failed, l.fault.Lanes)
	for _, r := range l.stack {
		if r.own {
			for p, m := range failed {
				l.t.maskAndNot(l, r.mask[p], r.mask[p], m)
			}
		}
	}
	for _, r := range l.stack {
		if r.own {
			l.jumpIfEmpty(r.mask, r.end)
		}
	}
	l.place(none)
}

// subroutine finds the subroutine of a call, nil if there cannot be one.
func (l *lowerer) subroutine(in *ir.Instr) *subroutine {
	g, c := in.Callee, &l.calls
	globals := []int{}
	for _, m := range in.Mems {
		if l.f.Mems[m].Space != ir.Global {
			l.refuse(in.Pos, "a call of %s with %s memory", g.Name, l.f.Mems[m].Space)
			return nil
		}
		globals = append(globals, l.mem.globals[m])
	}
	key := fmt.Sprintf("%p %v", g, globals)
	if s := c.byKey[key]; s != nil {
		return s
	}
	s := &subroutine{f: g, globals: globals, entry: l.a.newLabel(), active: l.allocateState(8, 8), fails: mayFail(g)}
	place := func(t ir.Type) Place {
		if t == ir.Bool {
			return Place{Type: t, Offset: l.allocateState(8, 8)}
		}
		return l.newPlace(t)
	}
	for _, p := range g.Params {
		s.in = append(s.in, place(g.Types[p.Value]))
	}
	for _, t := range g.Results {
		s.out = append(s.out, place(t))
	}
	if c.byKey == nil {
		c.byKey = map[string]*subroutine{}
	}
	c.byKey[key] = s
	c.subroutines = append(c.subroutines, s)
	if s.fails && l.fault.Lanes == 0 {
		l.reserveFaults()
	}
	return s
}

// mayFail reports whether a worker may fail in f or in what it calls.
func mayFail(f *ir.Func) (yes bool) {
	ir.Walk(f.Body, func(in *ir.Instr) {
		yes = yes || in.MayFault(f) || in.Op == ir.OpCall && mayFail(in.Callee)
	})
	return yes
}

// eachCallee calls f for the functions that a function calls, and those that they call.
func eachCallee(f *ir.Func, seen map[*ir.Func]bool, do func(*ir.Func)) {
	ir.Walk(f.Body, func(in *ir.Instr) {
		if in.Op == ir.OpCall && !seen[in.Callee] {
			seen[in.Callee] = true
			do(in.Callee)
			eachCallee(in.Callee, seen, do)
		}
	})
}

// lowerSubroutines lowers the subroutines that are called, and those that these call.
func (l *lowerer) lowerSubroutines() {
	for i := 0; i < len(l.calls.subroutines) && l.err == nil; i++ {
		l.lowerSubroutine(l.calls.subroutines[i])
	}
	if len(l.calls.subroutines) > 0 {
		// Code that is left says where it stands.
		for _, r := range [...]vreg{l.fr.index, l.fr.row} {
			if r != 0 {
				l.add(inst{special: keepAlive, reg: r})
			}
		}
	}
}

func (l *lowerer) lowerSubroutine(s *subroutine) {
	g := s.f
	in := make([]Access, len(g.Params))
	for i := range in {
		in[i] = Unit
	}
	l.f, l.an = g, analyse(&Kernel{Func: g, In: in})
	l.vals, l.into = make([]value, len(g.Types)), make([][]vreg, len(g.Types))
	l.calls.current = nil
	l.mem.uncleared = nil
	l.bindMemories(g, s.globals)
	l.place(s.entry)
	link := l.allocateState(8, 8)
	l.add(inst{row: movStore, gpr: rcx, rm: inState(link)})
	all := &region{of: &construct{}, mask: l.newMasks(l.parts(ir.Bool)), own: true, end: l.a.newLabel()}
	l.loadLanes(all.mask, s.active)
	locals := l.insert()
	for i, p := range g.Params {
		dst := l.newParts(g.Types[p.Value])
		l.fromPlace(dst, s.in[i])
		l.define(p.Value, dst)
	}
	body := &region{of: &construct{types: g.Results}, mask: all.mask, end: all.end}
	if l.partsLeave(g.Body) {
		body.own, body.mask = true, l.newMasks(len(all.mask))
		for p, m := range all.mask {
			l.copy(body.mask[p], m)
		}
	}
	for _, t := range g.Results {
		body.of.results = append(body.of.results, l.reserve(t, shapeVarying))
	}
	l.begin(body.of)
	l.stack = []*region{all, body}
	l.instructions(g.Body.Instrs)
	if l.err != nil {
		return
	}
	l.place(body.end)
	for i, r := range body.of.results {
		p := s.out[i]
		if p.Type == ir.Bool {
			l.storeLanes(r.parts, p.Offset)
			continue
		}
		for k, v := range r.parts {
			l.store(vmovupdStore, v, inState(p.Offset+k*l.regBytes))
		}
	}
	l.fixed(func(a *assembler) {
		a.op(movLoad, operands{reg: rcx, rm: inMemory(at(rsi, int32(link)))})
		a.op(jmpReg, operands{rm: register(rcx)})
	})
	l.in(locals, l.beginLocals)
}

// callCode emits what saves and restores the registers of functions that call, from
// an offset in the state on, and returns the offset behind.
func (e *emitter) callCode(off int32) int32 {
	for _, c := range e.l.calls.callers {
		back := inMemory(at(rsi, int32(c.back)))
		e.put(emitted{what: place, label: c.save})
		e.op(movStore, operands{reg: rcx, rm: back})
		end := e.registers(false, off)
		e.op(lea, operands{reg: rcx, rm: inMemory(memory{relative: true, label: c.restore})})
		e.op(jmpReg, operands{rm: register(rdx)})
		e.put(emitted{what: place, label: c.restore})
		e.registers(true, off)
		e.op(movLoad, operands{reg: rcx, rm: back})
		e.op(jmpReg, operands{rm: register(rcx)})
		off = (end + 63) &^ 63
	}
	return off
}
