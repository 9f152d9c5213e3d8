package sim

import (
	"fmt"
	"slices"
	"sort"
	"strings"

	"gpunotes/gpukit/internal/ptx"
)

// A kernel is decoded once: calls are expanded in place, symbols become addresses, virtual registers share slots by
// their lifetimes, and every instruction gets a dense form for the inner loop.

type opcode uint8

const (
	opJoin    opcode = iota // threads that went apart at a branch may meet here
	opVector                // d = vec(a, b, c)
	opTest                  // predicates pd, pq = cmp(a, b), with the predicate pa
	opSelect                // d = pa ? a : b
	opLogic                 // predicate pd = pa logic pb
	opFour                  // d = of a, b, c and e: bfi, lop3
	opCarry                 // d = of a, b, c and the carry flag
	opSpecial               // d = a special register
	opPack                  // d = the list's registers
	opUnpack                // the list's registers = a
	opParam                 // d = a kernel parameter
	opLoad
	opStore
	opAtom
	opBranch
	opExit
	opTrap
	opNothing
	opMeet   // warp instructions and barriers for which all named threads must be there
	opActive // activemask
)

type instr struct {
	op     opcode
	not    bool  // of guard
	invert bool  // of a comparison's result
	logic  uint8 // how a comparison is combined with pa
	notA   bool  // of pa
	notB   bool  // of pb

	guard          int32 // predicate, -1 if there is none
	d, a, b, c, e  int32 // registers; a negative source is ^index of a constant
	pd, pq, pa, pb int32 // predicates, -1 for none
	target         int32 // of a branch
	join           int32 // where its ways meet, -1
	site           int32 // index in the function's body, or in sites beyond that
	off            uint64

	vec   vector
	cmp   test
	fn    function
	four  func(a, b, c, e uint64) uint64
	carry carrying
	mem   *memoryRef
	meet  *meeting
	list  []int32 // of pack and unpack; -1 is a sink
}

// How a comparison is combined with a predicate, and the operations on predicates.
const (
	logicNone uint8 = iota
	logicAnd
	logicOr
	logicXor
	logicNot
	logicMove
)

// memoryRef is the memory operand of an instruction.
type memoryRef struct {
	space    ptx.Space
	size     int // of an element
	vec      int // elements
	signed   bool
	bits     int     // of the registers
	regs     []int32 // what is loaded or stored; -1 is a sink
	nc       bool
	atomic   bool
	volatile bool // a load that meets atomics of others
	red      bool // an atomic without result
	hidden   bool // parameters of calls: registers on a card, so that nobody counts them
	text     string

	win window // where the last access was
}

// meeting is an instruction of several threads.
type meeting struct {
	op      string // "bar", "warp", "shfl", "vote", "match", "redux"
	kind    string // of op
	all     bool   // every thread that is named must come; else those that are there
	members int32  // register with the mask of those named; a constant for all
	src     int32  // register or, for vote and bar.red, predicate
	notSrc  bool
	number  int32 // of the barrier: a register
	threads int32 // that it waits for, a register; -1 for all
	bits    int
	signed  bool
	dst     int32 // -1 for none
	pdst    int32
}

// site is where an instruction comes from.
type site struct {
	fn    *ptx.Func
	index int
	class Class
	// implied: not in the text, such as the exit behind the last instruction; not counted
	implied bool
}

// symbol is a name with an address.
type symbol struct {
	space   ptx.Space
	addr    uint64
	dynamic bool // behind the static shared memory, whose size is known at the end
	size    int
}

// program is a decoded kernel.
type program struct {
	m        *ptx.Module
	f        *ptx.Func
	code     []instr
	sites    []site
	consts   []lanes
	regs     int // slots
	preds    int
	shared   int // bytes of static shared memory
	local    int // bytes per thread that the kernel declares
	frame    int // local, and parameters of calls
	params   []paramPlace
	readOnly bool // has loads of memory that nobody writes (ld.global.nc)
	vars     []sharedVar
}

// sharedVar is a variable in shared memory. The dynamic one, without a size, lies behind all others.
type sharedVar struct {
	name string
	*symbol
}

// sharedAt is the variable at an address of shared memory, and how many bytes behind its start that is.
func (p *program) sharedAt(addr uint64) (name string, off int, ok bool) {
	for _, v := range p.vars {
		if addr >= v.addr && (v.dynamic || addr < v.addr+uint64(v.size)) {
			return v.name, int(addr - v.addr), true
		}
	}
	return "", 0, false
}

// paramPlace says where a parameter lies.
type paramPlace struct{ off, size int }

// flat is an instruction of the flattened function.
type flat struct {
	in     ptx.Instr
	d      *ptx.Decoded
	env    *environment
	label  int // of a branch
	target int
	site   int
	uses   []int
	defs   []int
	tmp    ptx.RegID // of a special register that is read in place of a register
}

func (f *flat) isBranch() bool { return f.d.Op == "bra" }
func (f *flat) isExit() bool   { return f.d.Op == "exit" || f.d.Op == "ret" || f.d.Op == "trap" }

// environment has the names of one expanded function.
type environment struct {
	syms  map[string]*symbol
	outer map[string]*symbol // of the module
}

func (e *environment) lookup(name string) *symbol {
	if s := e.syms[name]; s != nil {
		return s
	}
	return e.outer[name]
}

type flattener struct {
	m       *ptx.Module
	globals map[string]*symbol
	statics map[*ptx.Var]*symbol // shared memory, once for a module variable and a function's
	code    []flat
	regs    []ptx.Type
	sites   []site
	labels  []int // position
	shared  int
	local   int
	hidden  int // bytes of parameters of calls, placed behind local
	hiddens []*symbol
	dyn     []*symbol
	vars    []sharedVar
	depth   []string
}

// compile decodes kernel f of m. globals are the addresses of the module's variables in global and constant memory.
func compile(m *ptx.Module, f *ptx.Func, globals map[string]*symbol) (*program, error) {
	x := &flattener{m: m, globals: map[string]*symbol{}, statics: map[*ptx.Var]*symbol{}}
	for n, s := range globals {
		x.globals[n] = s
	}
	for i := range m.Vars {
		if v := &m.Vars[i]; v.Space == ptx.Shared {
			if v.Linkage == ptx.Extern && v.Size() == 0 {
				s := &symbol{space: ptx.Shared, dynamic: true}
				x.dyn = append(x.dyn, s)
				x.vars = append(x.vars, sharedVar{v.Name, s})
				x.globals[v.Name] = s
			} else if mentions(m, f, v.Name) {
				x.globals[v.Name] = x.static(v)
			}
		}
	}
	p := &program{m: m, f: f}
	env := &environment{syms: map[string]*symbol{}, outer: x.globals}
	off := 0
	for i := range f.Params {
		v := &f.Params[i]
		off = roundUp(off, v.Alignment())
		env.syms[v.Name] = &symbol{space: ptx.ParamSpace, addr: uint64(off), size: v.Size()}
		p.params = append(p.params, paramPlace{off, v.Size()})
		off += v.Size()
	}
	x.sites = make([]site, len(f.Instrs))
	for i := range f.Instrs {
		x.sites[i] = site{fn: f, index: i}
	}
	if err := x.function(f, env, -1); err != nil {
		return nil, err
	}
	x.emit(ptx.Instr{Opcode: "exit"}, env, len(x.sites)) // of one that runs off its end
	x.sites = append(x.sites, site{fn: f, index: max(len(f.Instrs)-1, 0), implied: true})
	for i := range x.code {
		if x.code[i].isBranch() {
			x.code[i].target = x.labels[x.code[i].label]
		}
	}
	p.shared, p.local, p.vars = x.shared, x.local, x.vars
	for _, s := range x.dyn {
		s.addr = uint64(roundUp(x.shared, 16))
	}
	p.frame = roundUp(x.local, 16)
	for _, s := range x.hiddens {
		s.addr += uint64(p.frame)
	}
	p.frame = roundUp(p.frame+x.hidden, 16)
	p.sites = x.sites
	return p, x.encode(p)
}

// mentions reports whether f, or what it calls, names a variable.
func mentions(m *ptx.Module, f *ptx.Func, name string) bool {
	seen := map[string]bool{}
	var in func(f *ptx.Func) bool
	var operand func(o *ptx.Operand) bool
	operand = func(o *ptx.Operand) bool {
		if o.Kind == ptx.KindFunc {
			return in(m.Func(o.Sym))
		}
		return o.Sym == name && (o.Kind == ptx.KindSym || o.Kind == ptx.KindAddr) || slices.ContainsFunc(o.Elems, func(e ptx.Operand) bool { return operand(&e) })
	}
	in = func(f *ptx.Func) bool {
		if f == nil || seen[f.Name] {
			return false
		}
		seen[f.Name] = true
		return slices.ContainsFunc(f.Instrs, func(i ptx.Instr) bool {
			return slices.ContainsFunc(i.Args, func(o ptx.Operand) bool { return operand(&o) })
		})
	}
	return in(f)
}

func (x *flattener) static(v *ptx.Var) *symbol {
	if s := x.statics[v]; s != nil {
		return s
	}
	x.shared = roundUp(x.shared, v.Alignment())
	s := &symbol{space: ptx.Shared, addr: uint64(x.shared), size: v.Size()}
	x.shared += v.Size()
	x.statics[v] = s
	x.vars = append(x.vars, sharedVar{v.Name, s})
	return s
}

// hide makes room for a parameter of a call.
func (x *flattener) hide(size, align int) *symbol {
	x.hidden = roundUp(x.hidden, max(align, 1))
	s := &symbol{space: ptx.ParamSpace, addr: uint64(x.hidden), size: size, dynamic: true}
	x.hidden += size
	x.hiddens = append(x.hiddens, s)
	return s
}

func (x *flattener) label() int {
	x.labels = append(x.labels, -1)
	return len(x.labels) - 1
}

func (x *flattener) reg(t ptx.Type) ptx.RegID {
	x.regs = append(x.regs, t)
	return ptx.RegID(len(x.regs) - 1)
}

func (x *flattener) emit(in ptx.Instr, env *environment, at int) *flat {
	d, err := ptx.Decode(in.Opcode)
	if err != nil {
		panic("sim: internal error: " + err.Error())
	}
	x.code = append(x.code, flat{in: in, d: d, env: env, site: at, label: -1, tmp: ptx.NoReg})
	return &x.code[len(x.code)-1]
}

const maxCode = 1 << 20

// function appends the body of f; a ret goes to label back, or ends the thread if that is -1.
func (x *flattener) function(f *ptx.Func, env *environment, back int) error {
	if slices.Contains(x.depth, f.Name) {
		return fmt.Errorf("%s calls itself (%s), which the simulator cannot expand", f.Name, strings.Join(append(x.depth, f.Name), " -> "))
	}
	x.depth = append(x.depth, f.Name)
	defer func() { x.depth = x.depth[:len(x.depth)-1] }()
	base := ptx.RegID(len(x.regs))
	for _, r := range f.Regs {
		x.regs = append(x.regs, r.Type)
	}
	for i := range f.Vars {
		v := &f.Vars[i]
		switch v.Space {
		case ptx.Shared:
			env.syms[v.Name] = x.static(v)
		case ptx.ParamSpace:
			env.syms[v.Name] = x.hide(v.Size(), v.Alignment())
		default:
			x.local = roundUp(x.local, v.Alignment())
			env.syms[v.Name] = &symbol{space: ptx.Local, addr: uint64(x.local), size: v.Size()}
			x.local += v.Size()
		}
	}
	labels := map[string]int{}
	for _, l := range f.Labels {
		labels[l.Name] = x.label()
	}
	next := 0
	place := func(i int) {
		for ; next < len(f.Labels) && f.Labels[next].At == i; next++ {
			x.labels[labels[f.Labels[next].Name]] = len(x.code)
		}
	}
	var renumber func(os []ptx.Operand) []ptx.Operand
	renumber = func(os []ptx.Operand) []ptx.Operand {
		os = slices.Clone(os)
		for i := range os {
			o := &os[i]
			if o.Kind == ptx.KindReg || o.Kind == ptx.KindAddr && o.Reg != ptx.NoReg {
				o.Reg += base
			}
			o.Elems = renumber(o.Elems)
		}
		return os
	}
	for i := range f.Instrs {
		place(i)
		at := i
		if len(x.depth) > 1 {
			at = len(x.sites)
			x.sites = append(x.sites, site{fn: f, index: i})
		}
		in := f.Instrs[i]
		in.Args = renumber(in.Args)
		if in.Guard.On {
			in.Guard.Reg += base
		}
		if len(x.code) > maxCode {
			return fmt.Errorf("%s is too long: more than %d instructions when its calls are expanded", x.depth[0], maxCode)
		}
		d, err := ptx.Decode(in.Opcode)
		if err != nil {
			return err
		}
		// A guarded call or barrier is one that is branched around.
		skip := -1
		if in.Guard.On && (d.Op == "call" || meets(d)) {
			skip = x.label()
			g := in.Guard
			g.Not = !g.Not
			x.sites = append(x.sites, site{fn: f, index: i, implied: true})
			x.emit(ptx.Instr{Guard: g, Opcode: "bra", Loc: in.Loc, Pos: in.Pos}, env, len(x.sites)-1).label = skip
			in.Guard = ptx.Guard{}
		}
		switch {
		case d.Op == "call":
			if err := x.call(&in, env, at); err != nil {
				return err
			}
		case d.Op == "ret" && back >= 0:
			x.emit(ptx.Instr{Guard: in.Guard, Opcode: "bra", Loc: in.Loc, Pos: in.Pos}, env, at).label = back
		case d.Op == "bra":
			x.emit(in, env, at).label = labels[in.Args[0].Sym]
		default:
			// What is not a mov reads a special register through another one.
			if d.Op != "mov" {
				for k := range in.Args {
					if o := &in.Args[k]; o.Kind == ptx.KindSpecial {
						s, _ := ptx.LookupSpecial(o.Sym)
						r := x.reg(s.Type)
						x.emit(ptx.Instr{Opcode: "mov." + s.Type.String(), Args: []ptx.Operand{ptx.R(r), *o}, Loc: in.Loc, Pos: in.Pos}, env, at)
						*o = ptx.R(r)
					}
				}
			}
			x.emit(in, env, at)
		}
		if skip >= 0 {
			x.labels[skip] = len(x.code)
		}
	}
	place(len(f.Instrs))
	return nil
}

// call expands a call: parameters and results of the callee are the variables that are passed.
func (x *flattener) call(in *ptx.Instr, env *environment, at int) error {
	args := in.Args
	var results, params []ptx.Operand
	if args[0].Kind == ptx.KindList {
		results, args = args[0].Elems, args[1:]
	}
	name := args[0].Sym
	if len(args) > 1 {
		params = args[1].Elems
	}
	f := x.m.Func(name)
	if f == nil || f.Proto {
		return fmt.Errorf("%s is called, but its body is not in the module", name)
	}
	inner := &environment{syms: map[string]*symbol{}, outer: x.globals}
	pass := func(v *ptx.Var, o *ptx.Operand) (through bool) {
		if o.Kind == ptx.KindSym {
			inner.syms[v.Name] = env.lookup(o.Sym)
			return false
		}
		inner.syms[v.Name] = x.hide(v.Size(), v.Alignment())
		return true
	}
	for i := range f.Params {
		v := &f.Params[i]
		if pass(v, &params[i]) {
			x.emit(ptx.Instr{Opcode: "st.param." + v.Type.String(), Args: []ptx.Operand{ptx.SymAddr(v.Name, 0), params[i]}, Loc: in.Loc, Pos: in.Pos}, inner, at)
		}
	}
	var after []func()
	for i := range f.Results {
		v := &f.Results[i]
		if o := results[i]; pass(v, &o) && o.Kind == ptx.KindReg {
			after = append(after, func() {
				x.emit(ptx.Instr{Opcode: "ld.param." + v.Type.String(), Args: []ptx.Operand{o, ptx.SymAddr(v.Name, 0)}, Loc: in.Loc, Pos: in.Pos}, inner, at)
			})
		}
	}
	back := x.label()
	if err := x.function(f, inner, back); err != nil {
		return err
	}
	x.labels[back] = len(x.code)
	for _, f := range after {
		f()
	}
	return nil
}

// meets reports whether an instruction is one of several threads.
func meets(d *ptx.Decoded) bool {
	switch d.Op {
	case "bar", "barrier", "shfl", "vote", "match", "redux":
		return true
	}
	return false
}

// operands lists the registers that an instruction reads and writes.
func (f *flat) operands() {
	add := func(list *[]int, o *ptx.Operand) {
		if o.Kind == ptx.KindReg || o.Kind == ptx.KindAddr && o.Reg != ptx.NoReg {
			*list = append(*list, int(o.Reg))
		}
	}
	for i := range f.in.Args {
		o := &f.in.Args[i]
		list := &f.uses
		if i < len(f.d.Form.Args) && strings.HasPrefix(f.d.Form.Args[i], "=") {
			list = &f.defs
		}
		add(list, o)
		for k := range o.Elems {
			add(list, &o.Elems[k])
		}
	}
	if f.in.Guard.On {
		f.uses = append(f.uses, int(f.in.Guard.Reg))
	}
}

// allocate gives registers slots by linear scan over their lifetimes, predicates and others apart. Threads of a warp
// that went apart do not disturb that: each lane of a slot is a thread's own.
func (x *flattener) allocate(p *program, g *graph) []int32 {
	n := len(x.regs)
	out := g.liveness(x.code, n)
	from, to := make([]int, n), make([]int, n)
	for i := range from {
		from[i] = -1
	}
	touch := func(r, at int) {
		if from[r] < 0 || at < from[r] {
			from[r] = at
		}
		to[r] = max(to[r], at)
	}
	for k := range g.blocks {
		b := &g.blocks[k]
		live := out[k]
		live.each(func(r int) { touch(r, 2*b.to) })
		for i := b.to - 1; i >= b.from; i-- {
			c := &x.code[i]
			for _, r := range c.defs {
				touch(r, 2*i+1)
				if !c.in.Guard.On {
					live.clear(r)
				}
			}
			for _, r := range c.uses {
				touch(r, 2*i)
				live.set(r)
			}
		}
		live.each(func(r int) { touch(r, 2*b.from) })
	}
	var order []int
	for r := range n {
		if from[r] >= 0 {
			order = append(order, r)
		}
	}
	sort.Slice(order, func(i, j int) bool {
		if a, b := from[order[i]], from[order[j]]; a != b {
			return a < b
		}
		return order[i] < order[j]
	})
	slot := make([]int32, n)
	type class struct {
		active []int // by end
		free   []int32
		count  int32
	}
	var classes [2]class
	for _, r := range order {
		c := &classes[0]
		if x.regs[r] == ptx.Pred {
			c = &classes[1]
		}
		k := 0
		for k < len(c.active) && to[c.active[k]] < from[r] {
			c.free = append(c.free, slot[c.active[k]])
			k++
		}
		c.active = c.active[k:]
		if m := len(c.free); m > 0 {
			slot[r] = c.free[m-1]
			c.free = c.free[:m-1]
		} else {
			slot[r] = c.count
			c.count++
		}
		at := sort.Search(len(c.active), func(i int) bool { return to[c.active[i]] > to[r] })
		c.active = slices.Insert(c.active, at, r)
	}
	p.regs, p.preds = int(classes[0].count), int(classes[1].count)
	return slot
}

// sharedBytes is the shared memory of a block. It is whole words: atomic operations on bytes are made of those on words.
func (p *program) sharedBytes(dynamic int) int {
	if dynamic == 0 {
		return roundUp(p.shared, 4)
	}
	return roundUp(p.shared, 16) + roundUp(dynamic, 4)
}
