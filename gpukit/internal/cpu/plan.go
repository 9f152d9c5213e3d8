package cpu

import (
	"cmp"
	"fmt"
	"slices"
	"sync"

	"gpunotes/gpukit/internal/ir"
)

// ref is a slot of a bank.
type ref struct {
	t    ir.Type
	slot int32
	one  bool // one element for all lanes
}

// inst is one instruction of a block program.
type inst struct {
	run        step
	d, a, b, c int32 // slots
	op         ir.Op // of a part of a ramp
	frame      int32 // whose lanes it runs over
	t, u       uint8 // banks
	check      bool  // afterwards the frame may be empty, or the machine stopped
	leave      *leave
	branch     *branch
	loop       *loop
	next       *next
	mem        int32
	ones       uint8 // operands that are one value for all lanes, as bits
	guard      *guard
	print      []ref
	src        *ir.Instr
	first      *ir.Instr // that src is fused with
	form       string    // for Describe
}

// Frames that every plan has.
const (
	frameOne   = 0 // a single lane: values that all lanes share
	frameBlock = 1 // the lanes of the block
)

// construct is what control can leave: an if, a loop or the function.
type construct struct {
	id      int
	outer   int32 // the frame in which it stands
	results []ref
	lossy   bool  // lanes may pass it on their way to an outer construct
	live    []ref // what the outer frame must keep when it loses lanes
}

// body is a region as a frame: what it takes from the outer frame, and its code.
type body struct {
	frame int32
	in    []transfer
	code  []inst
	idle  bool // does nothing but yield nothing
}

// transfer brings a value from a slot to another.
type transfer struct {
	dst, src ref
	swap     bool // src is not read any more: exchange the buffers
}

type branch struct {
	construct
	cond ref
	arms [2]body
}

type loop struct {
	construct
	body    body
	carried []transfer
	cost    float64 // of one iteration of one lane, in ns
}

// leave ends a region.
type leave struct {
	past   []*construct // passed by, innermost first
	target *construct
	vals   []ref
}

// next begins the next iteration of a loop.
type next struct{ moves []transfer }

type constant struct {
	ref
	bits ir.Bits
}

// plan is a block program for given classes of the parameters.
type plan struct {
	f       *ir.Func
	meets   bool    // a block is a block of threads
	inPlace bool    // lanes that fail leave, and the others go on
	params  []ref   // with noSlot if only the ramp is wanted
	inputs  []*ramp // by parameter, if it is one
	class   []class // of the parameters
	consts  []constant
	run     []inst // once per run
	row     []inst // once per row
	column  []inst // once per block of columns
	body    body
	fn      construct
	early   []ref // by result: the value that is computed in the result's own place, if its type is not Invalid

	slots      [numTypes]int
	buffer     [numTypes][]int32 // by slot, see bank.allot
	buffers    [numTypes]int
	frames     int
	outer      []int32 // by frame
	cleared    []bool  // by memory: a Local one that the function clears before it looks
	constructs int
	length     int     // of a block, at most
	cost       float64 // of a lane, in ns
	loops      bool
	machines   sync.Pool
}

// A slot's buffer: one of those below, or a number.
const (
	noBuffer  = -1
	oneBuffer = -2
)

type slotInfo struct {
	start, end int // positions; it holds its value between them
	one, buf   bool
	kept       bool // its buffer is found elsewhere: a result's, an operand's
	alone      bool // it shares its buffer with nobody
	last       int  // if not 0: where it is read last, though its buffer is taken longer
}

type frameInfo struct {
	id       int32
	slot     map[ir.Value]ref
	all      []ref
	inherits int  // so many of all are live-ins
	compacts bool // lanes may leave it
}

type planner struct {
	*plan
	of     []class
	found  *classifier
	uses   []int // by value
	one    []ref // by value
	info   [numTypes][]slotInfo
	pos    int
	stack  []*construct
	needed map[*ir.Region][]ir.Value
	later  []func() // run at the end, when all intervals are known
	exits  int      // leaves that end the function
	isRamp []bool   // by value
	wanted []bool   // by value: its elements are
	ramps  map[ir.Value]ramp
	fixed  map[ref]bool         // slots that a run fills once
	fused  map[*ir.Instr]fusion // by second operation
	inside map[*ir.Instr]bool   // first operations
	weight float64              // how often the current code runs per lane, guessed
}

const forever = int(^uint(0) >> 1)

func newPlan(prog *Program, params []class) *plan {
	f := prog.f
	p := &planner{
		plan:   &plan{f: f, meets: prog.meets, inPlace: prog.inPlace, class: params, frames: 2, outer: make([]int32, 2)},
		found:  classify(f, params),
		uses:   make([]int, len(f.Types)),
		one:    make([]ref, len(f.Types)),
		needed: map[*ir.Region][]ir.Value{},
		fused:  map[*ir.Instr]fusion{},
		inside: map[*ir.Instr]bool{},
		weight: 1,
	}
	ir.Walk(f.Body, func(in *ir.Instr) {
		for _, a := range in.Args {
			p.uses[a]++
		}
	})
	p.of = p.found.of
	p.findCleared()
	block := &frameInfo{id: frameBlock, slot: map[ir.Value]ref{}}
	p.findRamps()
	p.inputs = make([]*ramp, len(f.Params))
	for i, q := range f.Params {
		if p.isRamp[q.Value] {
			r := p.paramRamp(q.Value)
			p.inputs[i] = &r
			if !p.wanted[q.Value] {
				p.params = append(p.params, ref{ir.I64, noSlot, false})
				continue
			}
		}
		p.params = append(p.params, p.outside(block, q.Value))
	}
	p.hoist(block)
	p.findFusions()

	p.fn = construct{id: p.construct(), outer: frameBlock}
	for _, t := range f.Results {
		r := p.slot(t, false)
		p.slotInfo(r).kept = true
		p.fn.results = append(p.fn.results, r)
	}
	p.early = make([]ref, len(f.Results))
	p.stack = []*construct{&p.fn}
	root := p.enter(&p.body, block, f.Body)
	p.body.code = p.region(root, f.Body, false)
	p.settle(&p.body, root)
	if p.exits == 1 {
		p.computeInPlace(root)
	}
	for _, f := range p.later {
		f()
	}
	p.allocate()
	return p.plan
}

func (p *planner) construct() int { p.constructs++; return p.constructs - 1 }

func (p *planner) slot(t ir.Type, one bool) ref {
	r := ref{t, int32(p.slots[t]), one}
	p.slots[t]++
	p.info[t] = append(p.info[t], slotInfo{start: p.pos, end: p.pos, one: one, buf: !one})
	return r
}

func (p *planner) slotInfo(r ref) *slotInfo { return &p.info[r.t][r.slot] }

func (p *planner) use(r ref, pos int) {
	if i := p.slotInfo(r); i.end < pos {
		i.end = pos
	}
}

// outside makes the slot of a value that is computed before the body runs.
func (p *planner) outside(block *frameInfo, v ir.Value) ref {
	if !p.of[v].varies() {
		return p.single(v)
	}
	r := p.slot(p.f.Types[v], false)
	p.slotInfo(r).end = forever
	block.slot[v] = r
	return r
}

// single makes the slot of a value that all lanes share.
func (p *planner) single(v ir.Value) ref {
	p.one[v] = p.slot(p.f.Types[v], true)
	return p.one[v]
}

// define makes the slot of a value that is computed in frame fr.
func (p *planner) define(fr *frameInfo, v ir.Value) ref {
	if !p.of[v].varies() {
		return p.single(v)
	}
	r := p.slot(p.f.Types[v], false)
	fr.slot[v] = r
	fr.all = append(fr.all, r)
	return r
}

func (p *planner) ref(fr *frameInfo, v ir.Value) ref {
	if !p.of[v].varies() {
		return p.one[v]
	}
	return fr.slot[v]
}

// outsideBody reports whether in is computed outside the body.
func (p *planner) outsideBody(in *ir.Instr) bool {
	switch in.Op {
	case ir.OpIf, ir.OpLoop, ir.OpYield, ir.OpBreak, ir.OpUnreachable:
		return false
	}
	return len(in.Results) == 1 && p.of[in.Results[0]].hoisted()
}

// hoist emits what is computed outside the body.
func (p *planner) hoist(block *frameInfo) {
	ir.Walk(p.f.Body, func(in *ir.Instr) {
		if !p.outsideBody(in) {
			return
		}
		if in.Op == ir.OpConst {
			p.consts = append(p.consts, constant{p.outside(block, in.Results[0]), in.Imm})
			return
		}
		switch p.of[in.Results[0]].kind() {
		case 0:
			p.operation(&p.run, block, in, p.outside)
		case perRow:
			p.operation(&p.row, block, in, p.outside)
		default:
			p.operation(&p.column, block, in, p.outside)
		}
	})
}

// needs lists the values per lane that r uses and does not define, in order.
func (p *planner) needs(r *ir.Region) []ir.Value {
	if n, ok := p.needed[r]; ok {
		return n
	}
	used, defined := map[ir.Value]bool{}, map[ir.Value]bool{}
	for i := range r.Instrs {
		in := &r.Instrs[i]
		if p.outsideBody(in) {
			continue
		}
		for j, a := range in.Args {
			used[a] = used[a] || !p.takesRamp(in, j)
		}
		for _, s := range in.Regions {
			for _, v := range p.needs(s) {
				used[v] = true
			}
			for _, v := range in.Carried {
				defined[v] = true
			}
		}
		for _, v := range in.Results {
			defined[v] = true
		}
	}
	list := []ir.Value{}
	for v, yes := range used {
		if yes && p.of[v].varies() && !defined[v] {
			list = append(list, v)
		}
	}
	slices.Sort(list)
	p.needed[r] = list
	return list
}

// enter makes the frame of region r inside frame outer.
func (p *planner) enter(b *body, outer *frameInfo, r *ir.Region) *frameInfo {
	b.frame = int32(p.frames)
	p.frames++
	p.outer = append(p.outer, outer.id)
	fr := &frameInfo{id: b.frame, slot: map[ir.Value]ref{}}
	for _, v := range p.needs(r) {
		if _, ok := outer.slot[v]; !ok {
			continue // a carried value of the loop that r is the body of
		}
		b.in = append(b.in, transfer{dst: p.define(fr, v), src: outer.slot[v]})
	}
	fr.inherits = len(fr.all)
	return fr
}

// settle says which live-ins of a frame that is entered by all lanes need a
// buffer: those of a frame that can lose lanes.
func (p *planner) settle(b *body, fr *frameInfo) {
	if !fr.compacts {
		for _, t := range b.in {
			p.slotInfo(t.dst).buf = false
		}
	}
}

func (p *planner) region(fr *frameInfo, r *ir.Region, ofLoop bool) []inst {
	var code []inst
	for i := range r.Instrs {
		in := &r.Instrs[i]
		p.pos++
		switch in.Op {
		case ir.OpIf:
			code = append(code, p.branch(fr, in))
		case ir.OpLoop:
			code = append(code, p.loop(fr, in))
		case ir.OpYield:
			if ofLoop {
				break // loop emits it, it knows the carried values
			}
			code = append(code, p.leave(fr, in, 0))
		case ir.OpBreak:
			code = append(code, p.leave(fr, in, in.Level()))
		case ir.OpUnreachable:
			code = append(code, inst{run: stepUnreachable, frame: fr.id, check: true, src: in})
		case ir.OpLoad, ir.OpStore, ir.OpClear, ir.OpAtomic, ir.OpBounds, ir.OpSliceBounds,
			ir.OpBarrier, ir.OpWarpBarrier, ir.OpShuffle, ir.OpVote, ir.OpPrint:
			p.effect(&code, fr, in)
		default:
			if !p.outsideBody(in) && !p.inside[in] {
				p.operation(&code, fr, in, p.define)
			}
		}
	}
	return code
}

func (p *planner) leave(fr *frameInfo, in *ir.Instr, level int) inst {
	top := len(p.stack) - 1
	l := &leave{target: p.stack[top-level]}
	for i := range level {
		k := p.stack[top-i]
		k.lossy = true
		l.past = append(l.past, k)
	}
	if l.target == &p.fn {
		p.exits++
		if level > 0 {
			p.exits = 2 // never in place
		}
	}
	for _, v := range in.Args {
		r := p.ref(fr, v)
		p.use(r, p.pos)
		l.vals = append(l.vals, r)
	}
	return inst{run: stepLeave, frame: fr.id, check: true, leave: l, src: in}
}

// begin makes the construct of in, which stands in fr.
func (p *planner) begin(k *construct, fr *frameInfo, in *ir.Instr) {
	*k = construct{id: p.construct(), outer: fr.id}
	for _, v := range in.Results {
		k.results = append(k.results, p.define(fr, v))
	}
	p.stack = append(p.stack, k)
}

// end closes it: what its regions use stays alive as long as it runs.
func (p *planner) end(k *construct, fr *frameInfo, in *ir.Instr) {
	p.stack = p.stack[:len(p.stack)-1]
	p.pos++
	for _, r := range in.Regions {
		for _, v := range p.needs(r) {
			if s, ok := fr.slot[v]; ok {
				p.use(s, p.pos)
			}
		}
	}
	for _, v := range in.Args {
		p.use(p.ref(fr, v), p.pos)
	}
	for _, r := range k.results {
		p.use(r, p.pos)
	}
	if !k.lossy {
		return
	}
	p.keepLive(k, fr)
}

// keepLive notes that fr may lose lanes at this place: k gets to know what it
// must keep of the others.
func (p *planner) keepLive(k *construct, fr *frameInfo) {
	fr.compacts = true
	all, pos := slices.Clone(fr.all), p.pos
	p.later = append(p.later, func() {
		for _, r := range all {
			i := p.slotInfo(r)
			if i.last > pos || i.last == 0 && i.end > pos {
				k.live = append(k.live, r)
			}
		}
	})
}

func (p *planner) branch(fr *frameInfo, in *ir.Instr) inst {
	b := &branch{cond: p.ref(fr, in.Args[0])}
	p.begin(&b.construct, fr, in)
	for i, r := range in.Regions {
		p.pos++
		arm := p.enter(&b.arms[i], fr, r)
		b.arms[i].code = p.region(arm, r, false)
		c := b.arms[i].code
		b.arms[i].idle = len(c) == 1 && c[0].leave != nil && len(c[0].leave.past) == 0 && len(c[0].leave.vals) == 0
	}
	p.end(&b.construct, fr, in)
	p.plan.cost += p.weight
	return inst{run: stepBranch, frame: fr.id, check: true, branch: b, src: in}
}

// loopWeight is a guess at how often a loop runs.
const loopWeight = 16

func (p *planner) loop(fr *frameInfo, in *ir.Instr) inst {
	p.loops = true
	l := &loop{}
	p.begin(&l.construct, fr, in)
	weight, cost := p.weight, p.plan.cost
	p.weight, p.plan.cost = 1, 0
	r := in.Regions[0]
	inner := p.enter(&l.body, fr, r)
	for i, v := range in.Carried {
		l.carried = append(l.carried, transfer{dst: p.define(inner, v), src: p.ref(fr, in.Args[i])})
	}
	l.body.code = p.region(inner, r, true)
	if t := r.Terminator(); t.Op == ir.OpYield {
		l.body.code = append(l.body.code, p.next(inner, in, t))
	}
	l.cost = p.plan.cost + 1
	p.weight, p.plan.cost = weight, cost+float64(weight*loopWeight*l.cost)
	p.end(&l.construct, fr, in)
	for _, t := range l.body.in {
		p.use(t.dst, p.pos)
	}
	for i, t := range l.carried {
		if y := r.Terminator(); y.Op != ir.OpYield || y.Args[i] != in.Carried[i] {
			p.slotInfo(t.dst).last = max(1, p.slotInfo(t.dst).end)
		}
		p.use(t.dst, p.pos)
	}
	p.settle(&l.body, inner)
	return inst{run: stepLoop, frame: fr.id, check: true, loop: l, src: in}
}

// next assigns the yielded values to the carried ones, all at once: one that
// would be overwritten before it is read goes through a slot of its own.
func (p *planner) next(fr *frameInfo, loop, yield *ir.Instr) inst {
	n := &next{}
	var lanes, ones []transfer
	var swapped []ref
	varying := 0 // carried values, which come behind the live-ins in fr.all
	for _, c := range loop.Carried {
		if p.of[c].varies() {
			varying++
		}
	}
	for i, c := range loop.Carried {
		v := yield.Args[i]
		if v == c {
			continue
		}
		dst, src := p.ref(fr, c), p.ref(fr, v)
		p.use(src, p.pos+1)
		if slices.Contains(loop.Carried, v) && dst.one == src.one {
			tmp := p.slot(dst.t, dst.one)
			p.use(tmp, p.pos+1)
			n.moves = append(n.moves, transfer{dst: tmp, src: src})
			src = tmp
		}
		if dst.one {
			ones = append(ones, transfer{dst: dst, src: src})
		} else {
			t := transfer{dst: dst, src: src}
			if k := slices.Index(fr.all, src); !src.one && k >= fr.inherits+varying && !slices.Contains(swapped, src) {
				t.swap = true
				swapped = append(swapped, src)
				p.slotInfo(dst).alone, p.slotInfo(src).alone = true, true
			}
			lanes = append(lanes, t)
		}
	}
	p.pos++
	n.moves = append(append(n.moves, lanes...), ones...)
	return inst{run: stepNext, frame: fr.id, next: n, src: yield}
}

// operation emits an ordinary operation; define makes its result's slot.
func (p *planner) operation(code *[]inst, fr *frameInfo, in *ir.Instr, define func(*frameInfo, ir.Value) ref) {
	res := in.Results[0]
	if p.isRamp[res] {
		p.ramp(code, fr, in, define)
		return
	}
	varies := p.of[res].varies()
	x := inst{frame: fr.id, src: in}
	f, twice := p.fused[in]
	vals := in.Args
	if twice {
		vals = f.args[:]
	}
	var args [3]ref
	for i, a := range vals {
		args[i] = p.ref(fr, a)
	}
	if !varies {
		x.frame = frameOne
	}
	guarded := p.inPlace && !p.found.safe(in)
	if guarded {
		p.guard(code, fr, in)
	}
	spread := func(i int) {
		if varies {
			args[i] = p.spread(code, fr, args[i])
		}
	}
	t := p.f.Types[res]
	if len(in.Args) > 0 {
		t = args[0].t
	}
	x.t, x.u = uint8(t), uint8(t)
	switch op := in.Op; {
	case twice:
		x.run, x.first, x.form = f.run, f.first, "fused"
	case op == ir.OpConvert:
		x.u = uint8(p.f.Types[res])
		x.run = conversions[x.u][t]
	case op == ir.OpMath:
		for i := range in.Args {
			spread(i)
		}
		x.run = mathStep(in.Fn.Row())
	case op == ir.OpSelect:
		for i := range in.Args {
			spread(i)
		}
		x.t = uint8(args[1].t)
		x.run = selections[x.t]
		args[0], args[1], args[2] = args[1], args[2], args[0]
	case op.Row().Args == 1:
		x.run = unaries[in.Op][t]
	default:
		forms := &binaries[in.Op][t]
		if in.Op == ir.OpShl || in.Op == ir.OpShr {
			forms = &shifts[in.Op][t][args[1].t]
			x.u = uint8(args[1].t)
		}
		switch {
		case varies && args[1].one && forms.vs != nil:
			x.run, x.form = forms.vs, "vs"
		case varies && args[0].one && forms.sv != nil:
			x.run, x.form = forms.sv, "sv"
			args[0], args[1] = args[1], args[0]
		default:
			spread(0)
			spread(1)
			x.run = forms.vv
		}
	}
	if x.run == nil {
		panic(fmt.Sprintf("cpu: internal error: no loop for %v of %v", in.Op, t))
	}
	x.check = in.MayFault(p.f) && !guarded
	for i := range vals {
		p.use(args[i], p.pos)
	}
	x.a, x.b, x.c = args[0].slot, args[1].slot, args[2].slot
	x.d = define(fr, res).slot
	*code = append(*code, x)
	if varies {
		p.plan.cost += float64(p.weight * laneCost(in))
	}
}

// spread makes a value per lane of one for all.
func (p *planner) spread(code *[]inst, fr *frameInfo, r ref) ref {
	if !r.one {
		return r
	}
	tmp := p.slot(r.t, false)
	*code = append(*code, inst{run: spreadStep, frame: fr.id, t: uint8(tmp.t), d: tmp.slot, a: r.slot, form: "spread"})
	p.use(r, p.pos)
	p.pos++
	return tmp
}

// laneCost is about what an operation costs per lane, in ns.
func laneCost(in *ir.Instr) float64 {
	switch in.Op {
	case ir.OpMath:
		return 15
	case ir.OpDiv, ir.OpRem:
		return 2
	case ir.OpLoad, ir.OpStore, ir.OpShuffle, ir.OpVote:
		return 1.5
	case ir.OpAtomic:
		return 10
	case ir.OpPrint:
		return 300
	}
	return 0.6
}

// computeInPlace lets results that the body computes for all lanes be written
// where they belong.
func (p *planner) computeInPlace(root *frameInfo) {
	t := p.f.Body.Terminator()
	for j, v := range t.Args {
		r, ok := root.slot[v]
		if !ok || slices.Index(root.all, r) < root.inherits || slices.Contains(p.early, r) {
			continue
		}
		p.early[j] = r
		p.slotInfo(r).kept = true
	}
}

// allocate gives slots their buffers, which they share over time.
func (p *planner) allocate() {
	bytes := 8 * (len(p.params) + len(p.f.Results))
	for t := range p.info {
		p.buffer[t] = make([]int32, len(p.info[t]))
		var order []int
		for i := range p.info[t] {
			order = append(order, i)
			p.buffer[t][i] = noBuffer
			if p.info[t][i].one {
				p.buffer[t][i] = oneBuffer
			}
		}
		for i := range p.params {
			if r := p.params[i]; int(r.t) == t && !r.one && r.slot != noSlot {
				p.info[t][r.slot].kept = true
			}
		}
		slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(p.info[t][a].start, p.info[t][b].start) })
		type held struct {
			buffer int32
			end    int
		}
		var busy []held
		var free []int32
		for _, i := range order {
			s := &p.info[t][i]
			if !s.buf || s.kept {
				continue
			}
			busy = slices.DeleteFunc(busy, func(h held) bool {
				if h.end <= s.start {
					free = append(free, h.buffer)
					return true
				}
				return false
			})
			var b int32
			if n := len(free); n > 0 && !s.alone {
				b, free = free[n-1], free[:n-1]
			} else {
				b = int32(p.buffers[t])
				p.buffers[t]++
			}
			p.buffer[t][i] = b
			if !s.alone {
				busy = append(busy, held{b, s.end})
			}
		}
		bytes += p.buffers[t] * ir.Type(t).Size()
	}
	p.length = MaxGroup
	if p.meets {
		return
	}
	local := 0
	for _, m := range p.f.Mems {
		if m.Space == ir.Local {
			local += m.Len * m.Elem.Size()
		}
	}
	for p.length > 16 && p.length*local > 256<<10 {
		p.length /= 2
	}
	for p.length > 128 && p.length*bytes > 40<<10 {
		p.length /= 2
	}
}
