package nvptx

import (
	"fmt"
	"math"
	mathbits "math/bits"
	"slices"
	"strings"

	"gpunotes/gpukit/internal/ir"
	"gpunotes/gpukit/internal/ptx"
)

type emitter struct {
	level   int // of levels: what may be used
	k       *Kernel
	f       *ir.Func
	m       *ptx.Module
	tables  map[ir.Mem]ptx.Space // of constant memories, where they are
	fn      *ptx.Func
	entry   *Entry
	checks  []int                  // of the entry's, those of this function
	callees map[*ir.Func]*outlined // of the kernel

	vals      []ptx.Operand // by ir.Value: a register or, for a constant, an immediate
	consts    map[ir.Value]ir.Bits
	origins   []origin                 // by parameter
	def       []*ir.Instr              // by value
	used      []bool                   // by value
	uses      []int                    // by value
	unbounded map[*ir.Instr]bool       // loops that look at the cancel word
	folded    map[ir.Value]offset      // sums that only addresses use
	target    map[ir.Value]ptx.Operand // where a value is wanted
	groups    map[*ir.Instr]*group     // vector loads and stores
	loops     map[ir.Value]*ir.Instr   // by carried value
	align     map[ir.Value]int64       // what aligned found out
	refs      map[string]bool          // labels that are branched to
	nest      []construct              // enclosing constructs, the function first
	labels    int
	counts    map[ptx.Type]int
	loc       ptx.Loc
	files     map[string]int

	scaled  map[int]ptx.Operand // the worker's number, times a size
	worker  ptx.Operand         // the worker's number, unless k.Threads
	record  ptx.Operand
	cancel  ptx.Operand
	printed ptx.Operand
}

// offset is a value and a number of bytes.
type offset struct {
	v ir.Value
	n int64
}

// construct is where a break goes.
type construct struct {
	results []ptx.Operand
	end     string
}

func newEmitter(m *ptx.Module, level int, k *Kernel, f *ir.Func, origins []origin) *emitter {
	e := &emitter{k: k, f: f, m: m, vals: make([]ptx.Operand, len(f.Types)), consts: map[ir.Value]ir.Bits{}, counts: map[ptx.Type]int{},
		def: definitions(f), used: make([]bool, len(f.Types)), uses: make([]int, len(f.Types)), unbounded: map[*ir.Instr]bool{}, folded: map[ir.Value]offset{}, target: map[ir.Value]ptx.Operand{}, refs: map[string]bool{}, scaled: map[int]ptx.Operand{}, groups: map[*ir.Instr]*group{}, loops: map[ir.Value]*ir.Instr{}}
	e.level, e.origins = level, origins
	e.study()
	return e
}

// study finds out what is used, and how.
func (e *emitter) study() {
	plain := make([]bool, len(e.f.Types)) // used otherwise than as an address
	ir.Walk(e.f.Body, func(in *ir.Instr) {
		for i, a := range in.Args {
			e.used[a] = true
			e.uses[a]++
			plain[a] = plain[a] || i > 0 || in.Op != ir.OpLoad && in.Op != ir.OpStore && in.Op != ir.OpAtomic
		}
		if in.Op == ir.OpClear {
			e.used[e.base(in.Mem)] = true
		}
		for _, v := range in.Carried {
			e.loops[v] = in
		}
		if in.Op == ir.OpLoop && e.k.Poll {
			if c, ok := counted(e.f, e.def, in); !ok || !c.ends(e.f, e.def) {
				e.unbounded[in] = true
			}
		}
	})
	for v, in := range e.def {
		if in == nil || in.Op != ir.OpAdd || e.f.Types[v] != ir.I64 || plain[v] {
			continue
		}
		for k, x := range in.Args {
			if d := e.def[x]; d != nil && d.Op == ir.OpConst && int64(d.Imm) > -1<<30 && int64(d.Imm) < 1<<30 {
				e.folded[ir.Value(v)] = offset{in.Args[1-k], int64(d.Imm)}
			}
		}
	}
	e.findGroups(e.f.Body)
}

// polls reports whether some loop looks at the cancel word.
func (e *emitter) polls() bool { return len(e.unbounded) > 0 }

// base is the parameter that is the base of a memory.
func (e *emitter) base(m ir.Mem) ir.Value {
	return e.f.Params[len(e.f.Params)-len(e.f.Mems)+int(m)].Value
}

// pointer is the operand for the element at address v.
func (e *emitter) pointer(v ir.Value) ptx.Operand {
	root, n := e.resolve(v)
	return ptx.Addr(e.inReg(root).Reg, n)
}

func (e *emitter) mayFault() (yes bool) {
	ir.Walk(e.f.Body, func(in *ir.Instr) { yes = yes || in.MayFault(e.f) })
	return yes
}

// at sets the source position of what follows.
func (e *emitter) at(p ir.Pos) {
	if p.Line == 0 {
		return
	}
	i, ok := e.files[p.File]
	if !ok {
		i = len(e.m.Files) + 1
		e.files[p.File] = i
		e.m.Files = append(e.m.Files, ptx.File{Index: i, Name: p.File})
	}
	e.loc = ptx.Loc{File: i, Line: int(p.Line), Col: int(p.Col)}
}

func (e *emitter) ins(op string, args ...ptx.Operand) {
	e.fn.Instrs = append(e.fn.Instrs, ptx.Instr{Opcode: op, Args: args, Loc: e.loc})
}

var registerNames = map[ptx.Type]string{ptx.Pred: "%p", ptx.B32: "%r", ptx.B64: "%rd", ptx.F32: "%f", ptx.F64: "%fd"}

// reg makes a register.
func (e *emitter) reg(t ptx.Type) ptx.Operand {
	n := e.counts[t]
	e.counts[t]++
	return ptx.R(e.fn.AddReg(t, fmt.Sprint(registerNames[t], n)))
}

// get computes into a new register.
func (e *emitter) get(op string, t ptx.Type, args ...ptx.Operand) ptx.Operand {
	d := e.reg(t)
	e.ins(op, append([]ptx.Operand{d}, args...)...)
	return d
}

func (e *emitter) jump(label string) {
	e.refs[label] = true
	e.ins("bra", ptx.To(label))
}

// land puts a label here if anything branches to it.
func (e *emitter) land(label string) {
	if e.refs[label] {
		e.fn.AddLabel(label)
	}
}

func (e *emitter) branch(p ptx.Operand, not bool, label string) {
	e.jump(label)
	e.fn.Instrs[len(e.fn.Instrs)-1].Guard = ptx.Guard{On: true, Not: not, Reg: p.Reg}
}

func (e *emitter) label(what string) string {
	e.labels++
	return fmt.Sprintf("L%d_%s", e.labels, what)
}

// finish orders the registers by type.
func (e *emitter) finish() {
	order := make([]ptx.RegID, len(e.fn.Regs))
	for i := range order {
		order[i] = ptx.RegID(i)
	}
	slices.SortStableFunc(order, func(a, b ptx.RegID) int { return int(e.fn.Regs[a].Type) - int(e.fn.Regs[b].Type) })
	renamed := make([]ptx.RegID, len(order))
	regs := make([]ptx.Reg, len(order))
	for i, r := range order {
		renamed[r], regs[i] = ptx.RegID(i), e.fn.Regs[r]
	}
	e.fn.Regs = regs
	var rename func(os []ptx.Operand)
	rename = func(os []ptx.Operand) {
		for i := range os {
			if o := &os[i]; o.Kind == ptx.KindReg || o.Kind == ptx.KindAddr && o.Reg != ptx.NoReg {
				o.Reg = renamed[o.Reg]
			}
			rename(os[i].Elems)
		}
	}
	for i := range e.fn.Instrs {
		in := &e.fn.Instrs[i]
		if in.Guard.On {
			in.Guard.Reg = renamed[in.Guard.Reg]
		}
		rename(in.Args)
	}
}

// class is the type of the registers that hold a t.
func class(t ir.Type) ptx.Type {
	switch {
	case t == ir.Bool:
		return ptx.Pred
	case t == ir.F32:
		return ptx.F32
	case t == ir.F64:
		return ptx.F64
	case t.Bits() == 64:
		return ptx.B64
	}
	return ptx.B32
}

// suffix is the type of instructions that compute with a t.
func suffix(t ir.Type) string {
	switch {
	case t == ir.F32:
		return "f32"
	case t == ir.F64:
		return "f64"
	case t.Bits() == 64 && t.IsSigned():
		return "s64"
	case t.Bits() == 64:
		return "u64"
	case t.IsSigned():
		return "s32"
	}
	return "u32"
}

// bits is the type of instructions that move or mask a t.
func bits(t ir.Type) string {
	switch {
	case t == ir.Bool:
		return "pred"
	case t.Bits() == 64:
		return "b64"
	}
	return "b32"
}

// move is the type of a mov or selp of a t.
func move(t ir.Type) string {
	if t.IsFloat() {
		return suffix(t)
	}
	return bits(t)
}

// immediate is a constant as an operand; a Bool has none but in mov.
func immediate(t ir.Type, b ir.Bits) ptx.Operand {
	switch t {
	case ir.F64:
		return ptx.Operand{Kind: ptx.KindF64, Bits: b}
	case ir.F32:
		return ptx.Operand{Kind: ptx.KindF32, Bits: b}
	}
	return ptx.Int(int64(b))
}

// use is an operand that may be an immediate (but for Bool).
func (e *emitter) use(v ir.Value) ptx.Operand {
	if _, ok := e.consts[v]; ok && e.f.Types[v] == ir.Bool {
		return e.inReg(v)
	}
	return e.vals[v]
}

// inReg is an operand that must be a register.
func (e *emitter) inReg(v ir.Value) ptx.Operand {
	if _, ok := e.consts[v]; ok {
		t := e.f.Types[v]
		return e.get("mov."+move(t), class(t), e.vals[v])
	}
	return e.vals[v]
}

// norm brings the low bits of x into the form in which registers hold a t.
func (e *emitter) norm(t ir.Type, x ptx.Operand) ptx.Operand {
	switch t {
	case ir.I8:
		return e.get("cvt.s32.s8", ptx.B32, x)
	case ir.I16:
		return e.get("cvt.s32.s16", ptx.B32, x)
	case ir.U8:
		return e.get("and.b32", ptx.B32, x, ptx.Int(0xFF))
	case ir.U16:
		return e.get("and.b32", ptx.B32, x, ptx.Int(0xFFFF))
	}
	return x
}

// function emits the body and returns its results.
func (e *emitter) function() []ptx.Operand {
	if !leaves(e.f.Body, 0) { // the one exit is its end
		var results []ptx.Operand
		e.nest = []construct{{}}
		e.region(e.f.Body, func(args []ir.Value) {
			for _, v := range args {
				results = append(results, e.inReg(v))
			}
		})
		if results != nil || len(e.f.Results) == 0 {
			return results
		}
		for _, t := range e.f.Results { // it never ends
			results = append(results, e.reg(class(t)))
		}
		return results
	}
	c := construct{end: "DONE"}
	for _, t := range e.f.Results {
		c.results = append(c.results, e.reg(class(t)))
	}
	e.nest = []construct{c}
	e.region(e.f.Body, func(args []ir.Value) { e.moves(c.results, args) })
	e.land(c.end)
	return c.results
}

// leaves reports whether a break inside r leaves the construct that r belongs
// to, or the one that is n levels further out.
func leaves(r *ir.Region, n int) bool {
	for i := range r.Instrs {
		in := &r.Instrs[i]
		if in.Op == ir.OpBreak && in.Level() == n || slices.ContainsFunc(in.Regions, func(s *ir.Region) bool { return leaves(s, n+1) }) {
			return true
		}
	}
	return false
}

// moves hands values over, all at once.
func (e *emitter) moves(to []ptx.Operand, from []ir.Value) {
	type pending struct {
		to, from ptx.Operand
		t        ir.Type
	}
	var todo []pending
	for i, v := range from {
		if x := e.vals[v]; x.Kind != ptx.KindReg || x.Reg != to[i].Reg {
			todo = append(todo, pending{to[i], x, e.f.Types[v]})
		}
	}
	for len(todo) > 0 {
		k := slices.IndexFunc(todo, func(p pending) bool {
			return !slices.ContainsFunc(todo, func(q pending) bool { return q.from.Kind == ptx.KindReg && q.from.Reg == p.to.Reg })
		})
		if k < 0 { // a cycle: free one target
			p := &todo[0]
			for j := range todo[1:] {
				if q := &todo[1+j]; q.from.Kind == ptx.KindReg && q.from.Reg == p.to.Reg {
					q.from = e.get("mov."+move(q.t), class(q.t), q.from)
				}
			}
			k = 0
			if p.from.Kind == ptx.KindReg && p.from.Reg == p.to.Reg {
				panic("nvptx: internal error: a move to itself")
			}
		}
		e.ins("mov."+move(todo[k].t), todo[k].to, todo[k].from)
		todo = slices.Delete(todo, k, k+1)
	}
}

// region emits r; yield hands out the values of its yield and falls through.
func (e *emitter) region(r *ir.Region, yield func([]ir.Value)) { e.parts(r, func(int) {}, yield) }

// parts is region that calls then behind each instruction.
func (e *emitter) parts(r *ir.Region, then func(i int), yield func([]ir.Value)) {
	for i := range r.Instrs {
		in := &r.Instrs[i]
		e.at(in.Pos)
		switch in.Op {
		case ir.OpYield:
			yield(in.Args)
		case ir.OpBreak:
			c := e.nest[len(e.nest)-1-in.Level()]
			e.moves(c.results, in.Args)
			e.jump(c.end)
		case ir.OpUnreachable:
		case ir.OpIf:
			e.branches(in)
		case ir.OpLoop:
			e.loop(in)
		case ir.OpCall:
			e.call(in)
		default:
			e.settle(in)
		}
		then(i)
	}
}

// settle emits an operation, its result where it is wanted.
func (e *emitter) settle(in *ir.Instr) {
	if len(in.Results) == 1 {
		if _, ok := e.folded[in.Results[0]]; ok {
			return
		}
	}
	n := ptx.RegID(len(e.fn.Regs))
	e.operation(in)
	if len(in.Results) != 1 {
		return
	}
	v := in.Results[0]
	want, ok := e.target[v]
	if !ok {
		return
	}
	have := e.vals[v]
	if have.Kind != ptx.KindReg {
		return
	}
	last := &e.fn.Instrs[len(e.fn.Instrs)-1]
	if have.Reg >= n && !last.Guard.On && len(last.Args) > 0 && last.Args[0].Kind == ptx.KindReg && last.Args[0].Reg == have.Reg && last.Opcode != "bra" && !strings.HasPrefix(last.Opcode, "st.") {
		last.Args[0] = want
	} else {
		e.ins("mov."+move(e.f.Types[v]), want, have)
	}
	e.vals[v] = want
}

func (e *emitter) results(vs []ir.Value) (out []ptx.Operand) {
	for _, v := range vs {
		e.vals[v] = e.reg(class(e.f.Types[v]))
		out = append(out, e.vals[v])
	}
	return out
}

// quiet reports whether a region does nothing but yield no values.
func quiet(r *ir.Region) bool {
	return len(r.Instrs) == 1 && (r.Instrs[0].Op == ir.OpYield && len(r.Instrs[0].Args) == 0 || r.Instrs[0].Op == ir.OpUnreachable)
}

func (e *emitter) branches(in *ir.Instr) {
	c := construct{end: e.label("end")}
	c.results = e.results(in.Results)
	e.nest = append(e.nest, c)
	give := func(args []ir.Value) { e.moves(c.results, args) }
	then, els := in.Regions[0], in.Regions[1]
	for _, r := range in.Regions {
		e.aim(r, c.results)
	}
	if b, ok := e.consts[in.Args[0]]; ok {
		if b == 0 {
			then = els
		}
		e.region(then, give)
	} else {
		p := e.use(in.Args[0])
		exit, exits := e.direct(els)
		back, goes := e.direct(then)
		switch {
		case exits:
			e.branch(p, true, exit)
			e.region(then, give)
		case goes:
			e.branch(p, false, back)
			e.region(els, give)
		case quiet(then):
			e.branch(p, false, c.end)
			e.region(els, give)
		case quiet(els):
			e.branch(p, true, c.end)
			e.region(then, give)
		default:
			other := e.label("else")
			e.branch(p, true, other)
			e.region(then, func(args []ir.Value) {
				give(args)
				e.jump(c.end)
			})
			e.land(other)
			e.region(els, give)
		}
	}
	e.nest = e.nest[:len(e.nest)-1]
	e.land(c.end)
}

// direct reports whether an arm of an if does no more than go somewhere, and
// where.
func (e *emitter) direct(r *ir.Region) (label string, ok bool) {
	in := &r.Instrs[0]
	if in.Op != ir.OpBreak {
		return "", false
	}
	if in.Level() == 0 {
		return "", false
	}
	c := e.nest[len(e.nest)-1-in.Level()]
	for i, v := range in.Args {
		if x := e.vals[v]; x.Kind != ptx.KindReg || x.Reg != c.results[i].Reg {
			return "", false
		}
	}
	return c.end, true
}

// aim lets what a region computes for its yield alone be computed where that
// hands it over.
func (e *emitter) aim(r *ir.Region, into []ptx.Operand) {
	last := r.Terminator()
	if last.Op != ir.OpYield {
		return
	}
	for i := range r.Instrs {
		in := &r.Instrs[i]
		if len(in.Results) != 1 || len(in.Regions) > 0 || in.Op == ir.OpConst {
			continue
		}
		v := in.Results[0]
		if k := slices.Index(last.Args, v); k >= 0 && e.uses[v] == 1 {
			e.target[v] = into[k]
		}
	}
}

// root is the value whose register v stands for or is counted from.
func (e *emitter) root(v ir.Value) ir.Value {
	for {
		if o, ok := e.folded[v]; ok {
			v = o.v
			continue
		}
		d := e.def[v]
		if d == nil || d.Op != ir.OpConvert {
			return v
		}
		v = d.Args[0]
	}
}

// advance lets the next carried values of a loop be computed in the registers of
// the old ones, where nobody looks at these any more.
func (e *emitter) advance(in *ir.Instr, carried []ptx.Operand) {
	body := in.Regions[0]
	last := body.Terminator()
	if last.Op != ir.OpYield {
		return
	}
	after := map[ir.Value]int{} // by root: the last instruction that uses it
	for i := range body.Instrs {
		ir.Walk(&ir.Region{Instrs: body.Instrs[i : i+1]}, func(x *ir.Instr) {
			at := i
			if g := e.groups[x]; g != nil && x == &body.Instrs[i] && x.Op == ir.OpStore {
				at = g.last
			}
			for _, a := range x.Args {
				after[e.root(a)] = max(after[e.root(a)], at)
			}
		})
	}
	for i := range body.Instrs {
		x := &body.Instrs[i]
		if len(x.Results) != 1 || len(x.Regions) > 0 || x.Op == ir.OpConst {
			continue
		}
		v := x.Results[0]
		if k := slices.Index(last.Args, v); k >= 0 && e.uses[v] == 1 && after[in.Carried[k]] <= i {
			e.target[v] = carried[k]
		}
	}
}

// rotated is how many instructions a loop's way in may have to be written again
// at its end, which saves the branch to it.
const rotated = 12

func (e *emitter) loop(in *ir.Instr) {
	c := construct{end: e.label("end")}
	head := e.label("loop")
	c.results = e.results(in.Results)
	carried := e.results(in.Carried)
	e.moves(carried, in.Args)
	e.fn.AddLabel(head)
	e.nest = append(e.nest, c)
	e.advance(in, carried)

	// The way in: what stands before and in the first if that leaves the loop.
	body := in.Regions[0]
	first, start := -1, len(e.fn.Instrs)
	for i := range body.Instrs {
		if x := &body.Instrs[i]; len(x.Regions) > 0 {
			if k := exitArm(x); x.Op == ir.OpIf && k >= 0 && quiet(x.Regions[1-k]) && x.Regions[k].Terminator().Op == ir.OpBreak && x.Regions[k].Terminator().Level() == 1 {
				first = i
			}
			break
		}
	}
	var way []ptx.Instr
	inside := ""
	labels := len(e.fn.Labels)
	then := func(i int) {
		if i != first {
			return
		}
		ins := e.fn.Instrs[start:]
		for _, l := range e.fn.Labels[labels:] {
			if l.At < len(e.fn.Instrs) {
				return
			}
		}
		if len(ins) > 0 && len(ins) <= rotated && body.Terminator().Op == ir.OpYield {
			for _, x := range ins {
				x.Args = slices.Clone(x.Args)
				way = append(way, x)
			}
			inside = e.label("body")
			e.fn.AddLabel(inside)
		}
	}
	e.parts(body, then, func(args []ir.Value) {
		e.moves(carried, args)
		if e.unbounded[in] {
			word := e.get("ld.volatile.global.u32", ptx.B32, ptx.Addr(e.cancel.Reg, 0))
			e.branch(e.get("setp.ne.s32", ptx.Pred, word, ptx.Int(0)), false, "EXIT")
		}
		if !e.again(way, inside, c.end) {
			e.jump(head)
		}
	})
	e.nest = e.nest[:len(e.nest)-1]
	e.land(c.end)
}

// again writes the way into a loop at its end, just before the label end.
func (e *emitter) again(way []ptx.Instr, inside, end string) bool {
	if len(way) == 0 {
		return false
	}
	last := &way[len(way)-1]
	switch {
	case last.Opcode == "bra" && last.Guard.On && last.Args[0].Sym == end:
		last.Guard.Not = !last.Guard.Not
		last.Args[0].Sym = inside
	case last.Opcode == "bra" && !last.Guard.On && last.Args[0].Sym == end:
		way = way[:len(way)-1]
		k := slices.IndexFunc(way, func(x ptx.Instr) bool { return x.Opcode == "bra" })
		if k < 0 || !way[k].Guard.On || slices.ContainsFunc(way[k+1:], func(x ptx.Instr) bool { return x.Opcode == "bra" }) {
			return false
		}
		way[k].Args[0].Sym = inside
	default:
		return false
	}
	for i := range way {
		if way[i].Loc == (ptx.Loc{}) {
			way[i].Loc = e.loc // none can be without behind one with
		}
	}
	e.refs[inside] = true
	e.fn.Instrs = append(e.fn.Instrs, way...)
	return true
}

// check makes the worker fail if p, or always if p is no operand.
func (e *emitter) check(in *ir.Instr, fault ir.Fault, p ptx.Operand) {
	label := fmt.Sprintf("FAULT%d", len(e.entry.Checks))
	e.checks = append(e.checks, len(e.entry.Checks))
	e.entry.Checks = append(e.entry.Checks, Check{fault, in.Pos})
	if p.Kind == ptx.NoOperand {
		e.jump(label)
		return
	}
	e.branch(p, false, label)
}

// faults emits what the checks branch to: the record keeps the smallest of
// worker and check, then the thread ends.
func (e *emitter) faults(end string) {
	if len(e.checks) == 0 {
		return
	}
	number := e.reg(ptx.B64)
	for _, i := range e.checks {
		e.fn.AddLabel(fmt.Sprintf("FAULT%d", i))
		e.ins("mov.u64", number, ptx.Int(int64(i)))
		e.ins("bra", ptx.To("FAULT"))
	}
	e.fn.AddLabel("FAULT")
	worker := e.worker
	if worker.Kind == ptx.NoOperand {
		worker = e.thread()
	}
	value := e.get("or.b64", ptx.B64, e.get("shl.b64", ptx.B64, worker, ptx.Int(checkBits)), number)
	e.atomic(ir.AtomicMin, ir.U64, "global", ptx.Addr(e.record.Reg, 0), []ptx.Operand{value})
	e.ins(end)
}

// element is the address of element index of an array at base.
func (e *emitter) element(base, index ptx.Operand, t ir.Type) ptx.Operand {
	shift := map[int]int64{1: 0, 2: 1, 4: 2, 8: 3}[t.Size()]
	if index.Kind == ptx.KindInt && int64(index.Bits) >= 0 && index.Bits < 1<<28 {
		return ptx.Addr(base.Reg, int64(index.Bits)<<shift)
	}
	if index.Kind == ptx.KindInt {
		index = e.get("mov.b64", ptx.B64, index)
	}
	if shift > 0 {
		index = e.get("shl.b64", ptx.B64, index, ptx.Int(shift))
	}
	return ptx.Addr(e.get("add.s64", ptx.B64, base, index).Reg, 0)
}

func (e *emitter) load(addr ptx.Operand, space string, t ir.Type) ptx.Operand {
	if t == ir.Bool {
		return e.get("setp.ne.s32", ptx.Pred, e.get("ld."+space+".u8", ptx.B32, addr), ptx.Int(0))
	}
	return e.get(fmt.Sprintf("ld.%s.%v", space, memoryType(t)), class(t), addr)
}

func (e *emitter) store(addr ptx.Operand, space string, t ir.Type, x ptx.Operand) {
	if t == ir.Bool {
		x = e.get("selp.b32", ptx.B32, ptx.Int(1), ptx.Int(0), x)
	}
	e.ins(fmt.Sprintf("st.%s.%v", space, memoryType(t)), addr, x)
}

// operation emits an instruction without control.
func (e *emitter) operation(in *ir.Instr) {
	switch in.Op {
	case ir.OpConst:
		v := in.Results[0]
		e.consts[v] = in.Imm
		e.vals[v] = immediate(e.f.Types[v], in.Imm)
		return
	case ir.OpConvert:
		v, x := in.Results[0], in.Args[0]
		e.vals[v] = e.convert(e.f.Types[x], e.f.Types[v], e.inReg(x))
		return
	case ir.OpMath:
		e.vals[in.Results[0]] = mathCode[in.Fn.String()](e, in.Args)
		return
	case ir.OpLoad, ir.OpStore:
		if g := e.groups[in]; g != nil {
			e.vector(in, g)
			return
		}
		if in.Op == ir.OpStore {
			e.store(e.pointer(in.Args[0]), e.space(in.Mem), e.f.Mems[in.Mem].Elem, e.inReg(in.Args[1]))
			return
		}
		space := e.space(in.Mem)
		if e.f.Mems[in.Mem].Space == ir.Global {
			space += e.readOnlyMem(in.Mem)
		}
		e.vals[in.Results[0]] = e.load(e.pointer(in.Args[0]), space, e.f.Mems[in.Mem].Elem)
		return
	case ir.OpClear:
		e.clear(in.Mem)
		return
	case ir.OpBounds:
		e.check(in, ir.IndexRange, e.get("setp.ge.u64", ptx.Pred, e.inReg(in.Args[0]), e.use(in.Args[1])))
		return
	case ir.OpSliceBounds:
		from, to, n := e.inReg(in.Args[0]), e.inReg(in.Args[1]), e.inReg(in.Args[2])
		bad := e.get("setp.lt.s64", ptx.Pred, from, ptx.Int(0))
		bad = e.get("setp.gt.or.s64", ptx.Pred, from, to, bad)
		bad = e.get("setp.gt.or.s64", ptx.Pred, to, n, bad)
		e.check(in, ir.SliceRange, bad)
		return
	case ir.OpAtomic:
		addr := e.pointer(in.Args[0])
		var x []ptx.Operand
		for _, a := range in.Args[1:] {
			x = append(x, e.inReg(a))
		}
		e.vals[in.Results[0]] = e.atomic(in.Kind, e.f.Mems[in.Mem].Elem, e.space(in.Mem), addr, x)
		return
	case ir.OpBarrier:
		e.ins("bar.sync", ptx.Int(0))
		return
	case ir.OpWarpBarrier:
		if e.level >= 70 {
			e.ins("bar.warp.sync", ptx.Int(-1))
		} else {
			e.ins("membar.cta") // a warp is in step here: only memory needs order
		}
		return
	case ir.OpShuffle:
		e.vals[in.Results[0]] = e.shuffle(in)
		return
	case ir.OpVote:
		e.vals[in.Results[0]] = e.vote(in.Kind, e.inReg(in.Args[0]))
		return
	case ir.OpPrint:
		e.print(in)
		return
	}
	t := e.f.Types[in.Args[0]]
	op, args := in.Op, in.Args
	if _, ok := e.consts[args[0]]; ok && len(args) == 2 && t != ir.Bool { // immediates stand behind
		if m, ok := mirrored[op]; ok {
			op, args = m, []ir.Value{args[1], args[0]}
		} else if op.Row().Commutative && !t.IsFloat() {
			args = []ir.Value{args[1], args[0]}
		}
	}
	x := e.inReg(args[0])
	var y ptx.Operand
	if len(args) > 1 {
		y = e.use(args[1])
	}
	var r ptx.Operand
	switch op {
	case ir.OpDiv, ir.OpRem:
		if t.IsInt() {
			r = e.divide(in, t, x, y)
			break
		}
		r = e.binary(op, t, x, y)
	case ir.OpShl, ir.OpShr:
		r = e.shift(in, t, x)
	case ir.OpNeg:
		if t.IsFloat() {
			r = e.get("neg."+suffix(t), class(t), x)
		} else {
			r = e.norm(t, e.get("neg.s"+suffix(t)[1:], class(t), x))
		}
	case ir.OpNot:
		if r = e.get("not."+bits(t), class(t), x); t.IsUnsigned() {
			r = e.norm(t, r)
		}
	case ir.OpSelect:
		r = e.choose(e.f.Types[in.Args[1]], x, e.use(in.Args[1]), e.use(in.Args[2]))
	default:
		r = e.binary(op, t, x, y)
	}
	e.vals[in.Results[0]] = r
}

// choose is x if p, else y.
func (e *emitter) choose(t ir.Type, p, x, y ptx.Operand) ptx.Operand {
	if t == ir.Bool {
		a := e.get("and.pred", ptx.Pred, x, p)
		b := e.get("and.pred", ptx.Pred, y, e.get("not.pred", ptx.Pred, p))
		return e.get("or.pred", ptx.Pred, a, b)
	}
	return e.get("selp."+move(t), class(t), x, y, p)
}

var comparisons = map[ir.Op]string{ir.OpEq: "eq", ir.OpNe: "ne", ir.OpLt: "lt", ir.OpLe: "le", ir.OpGt: "gt", ir.OpGe: "ge"}

// binary emits an operation of two operands that cannot fault; x is a register.
func (e *emitter) binary(op ir.Op, t ir.Type, x, y ptx.Operand) ptx.Operand {
	s, c := suffix(t), class(t)
	rounded := ""
	if t.IsFloat() {
		rounded = ".rn"
	}
	switch op {
	case ir.OpAdd:
		return e.norm(t, e.get("add"+rounded+"."+s, c, x, y))
	case ir.OpSub:
		return e.norm(t, e.get("sub"+rounded+"."+s, c, x, y))
	case ir.OpMul:
		if t.IsFloat() {
			return e.get("mul.rn."+s, c, x, y)
		}
		return e.norm(t, e.get("mul.lo."+s, c, x, y))
	case ir.OpDiv:
		return e.get("div.rn."+s, c, x, y)
	case ir.OpMin, ir.OpMax:
		if t.IsFloat() {
			return e.extreme(op == ir.OpMax, t, x, y)
		}
		return e.get(op.String()+"."+s, c, x, y)
	case ir.OpAnd, ir.OpOr, ir.OpXor:
		return e.get(op.String()+"."+bits(t), c, x, y)
	case ir.OpAndNot:
		if y.Kind == ptx.KindInt {
			y.Bits = ^y.Bits
		} else {
			y = e.get("not."+bits(t), c, y)
		}
		return e.get("and."+bits(t), c, x, y)
	}
	cmp := comparisons[op]
	switch {
	case cmp == "":
		panic("nvptx: internal error: no code for " + op.String())
	case t == ir.Bool && op == ir.OpNe:
		return e.get("xor.pred", ptx.Pred, x, y)
	case t == ir.Bool:
		return e.get("not.pred", ptx.Pred, e.get("xor.pred", ptx.Pred, x, y))
	case t.IsFloat() && op == ir.OpNe:
		cmp = "neu" // true for NaN
	}
	return e.get("setp."+cmp+"."+s, ptx.Pred, x, y)
}

// nan is the NaN that is handed out where one is made.
func nan(t ir.Type) ptx.Operand { return immediate(t, ir.Canonical(t, ir.Bits(nanBits[t]))) }

var nanBits = map[ir.Type]uint64{ir.F64: ir.CanonicalNaN, ir.F32: uint64(math.Float32bits(float32(math.NaN())))}

// extreme is min or max of floats: PTX's own give the number if one operand is
// NaN.
func (e *emitter) extreme(max bool, t ir.Type, x, y ptx.Operand) ptx.Operand {
	s, c := suffix(t), class(t)
	cmp, zero := "lt", "or"
	if max {
		cmp, zero = "gt", "and"
	}
	if y.Kind != ptx.KindReg {
		y = e.get("mov."+s, c, y)
	}
	r := e.get("selp."+s, c, x, y, e.get("setp."+cmp+"."+s, ptx.Pred, x, y))
	// Equal operands may be zeros of different sign.
	r = e.get("selp."+s, c, e.get(zero+"."+bits(t), c, x, y), r, e.get("setp.eq."+s, ptx.Pred, x, y))
	return e.get("selp."+s, c, nan(t), r, e.get("setp.nan."+s, ptx.Pred, x, y))
}

// divide emits / and % of integers.
func (e *emitter) divide(in *ir.Instr, t ir.Type, x, y ptx.Operand) ptx.Operand {
	s, c := suffix(t), class(t)
	constant := y.Kind == ptx.KindInt
	switch {
	case constant && y.Bits == 0:
		e.check(in, ir.DivideByZero, ptx.Operand{})
		return x
	case !constant:
		e.check(in, ir.DivideByZero, e.get("setp.eq."+s, ptx.Pred, y, ptx.Int(0)))
	}
	if constant {
		if r, ok := e.divideByPower(in.Op, t, x, y.Bits); ok {
			return r
		}
	}
	// The smallest integer by -1 overflows: divide by 1 and negate.
	var minus ptx.Operand
	overflows := (t == ir.I32 || t == ir.I64) && (!constant || int64(y.Bits) == -1)
	if overflows {
		if constant {
			if in.Op == ir.OpRem {
				return e.get("mov."+bits(t), c, ptx.Int(0))
			}
			return e.get("neg."+s, c, x)
		}
		minus = e.get("setp.eq."+s, ptx.Pred, y, ptx.Int(-1))
		y = e.get("selp."+bits(t), c, ptx.Int(1), y, minus)
	}
	if in.Op == ir.OpRem {
		return e.get("rem."+s, c, x, y)
	}
	q := e.get("div."+s, c, x, y)
	if overflows {
		q = e.get("selp."+bits(t), c, e.get("neg."+s, c, q), q, minus)
	}
	if t == ir.I8 || t == ir.I16 {
		q = e.norm(t, q)
	}
	return q
}

// divideByPower divides by 2, 4 and so on, and by -2, -4 and so on, with shifts: a
// division costs a card a hundred instructions.
func (e *emitter) divideByPower(op ir.Op, t ir.Type, x ptx.Operand, divisor uint64) (r ptx.Operand, ok bool) {
	s, b, c := suffix(t), bits(t), class(t)
	n, minus := divisor, t.IsSigned() && int64(divisor) < 0
	if minus {
		n = -divisor
	}
	k := mathbits.TrailingZeros64(n)
	width := 32
	if t.Bits() == 64 {
		width = 64
	}
	if n&(n-1) != 0 || k == 0 || t.IsSigned() && k >= t.Bits()-1 {
		return r, false
	}
	low := ptx.Int(int64(n - 1))
	if !t.IsSigned() {
		if op == ir.OpRem {
			return e.get("and."+b, c, x, low), true
		}
		return e.get("shr."+s, c, x, ptx.Int(int64(k))), true
	}
	// Towards zero: below it, n-1 more.
	more := e.get("and."+b, c, e.get("shr."+s, c, x, ptx.Int(int64(width-1))), low)
	up := e.get("add."+s, c, x, more)
	if op == ir.OpRem {
		return e.get("sub."+s, c, x, e.get("and."+b, c, up, ptx.Int(-int64(n)))), true
	}
	if r = e.get("shr."+s, c, up, ptx.Int(int64(k))); minus {
		r = e.get("neg."+s, c, r)
	}
	return r, true
}

// shift emits << and >>. PTX clamps the count at the register's width, which is
// what Go's shifts by the width and more come to; narrower types sit extended
// in their register.
func (e *emitter) shift(in *ir.Instr, t ir.Type, x ptx.Operand) ptx.Operand {
	n, nt := e.vals[in.Args[1]], e.f.Types[in.Args[1]]
	switch {
	case n.Kind == ptx.KindInt && nt.IsSigned() && int64(n.Bits) < 0:
		e.check(in, ir.NegativeShift, ptx.Operand{})
		return x
	case n.Kind == ptx.KindInt:
		n = ptx.Int(int64(min(n.Bits, 64)))
	default:
		if nt.IsSigned() {
			e.check(in, ir.NegativeShift, e.get("setp.lt."+suffix(nt), ptx.Pred, n, ptx.Int(0)))
		}
		if nt.Bits() == 64 {
			n = e.get("cvt.u32.u64", ptx.B32, e.get("min.u64", ptx.B64, n, ptx.Int(64)))
		}
	}
	if in.Op == ir.OpShr {
		return e.get("shr."+suffix(t), class(t), x, n)
	}
	return e.norm(t, e.get("shl."+bits(t), class(t), x, n))
}

// convert emits the conversion of register x.
func (e *emitter) convert(from, to ir.Type, x ptx.Operand) ptx.Operand {
	c := class(to)
	switch {
	case from == to:
		return x
	case from == ir.F32 && to == ir.F64:
		return e.get("cvt.f64.f32", c, x)
	case from == ir.F64 && to == ir.F32:
		return e.get("cvt.rn.f32.f64", c, x)
	case to.IsFloat():
		return e.get("cvt.rn."+suffix(to)+"."+suffix(from), c, x)
	case from.IsFloat():
		// Out of range PTX saturates to 32 or 64 bits; of NaN it makes 0 or the
		// smallest integer, depending on the types.
		s := suffix(to)
		r := e.get("cvt.rzi."+s+"."+suffix(from), c, x)
		if to.Bits() < 32 {
			if hi := int64(1)<<to.Bits() - 1; to.IsUnsigned() {
				r = e.get("min.u32", c, r, ptx.Int(hi))
			} else {
				r = e.get("max.s32", c, e.get("min.s32", c, r, ptx.Int(hi>>1)), ptx.Int(-(hi>>1)-1))
			}
		}
		return e.get("selp."+bits(to), c, ptx.Int(0), r, e.get("setp.nan."+suffix(from), ptx.Pred, x, x))
	case to.Bits() == 64 && from.Bits() == 64:
		return x
	case to.Bits() == 64:
		return e.get("cvt."+suffix(to)+"."+suffix(from), c, x)
	case from.Bits() == 64:
		x = e.get("cvt.u32.u64", c, x)
	case from.Bits() <= to.Bits() && (from.IsUnsigned() && from.Bits() < to.Bits() || from.IsSigned() == to.IsSigned() || to.Bits() == 32):
		return x // in the form of the wider type already
	}
	return e.norm(to, x)
}
