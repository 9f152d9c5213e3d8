package sim

import (
	"math/bits"

	"gpunotes/gpukit/internal/ptx"
)

// EstimateRegisters says how many 32-bit registers per thread a compiler would need for function f of module m: the most
// that are live at one place of the PTX, and 2 for what every kernel needs. 64-bit values take two registers, predicates
// none. What a compiler takes from the constant bank or the instruction takes none either: parameters of a kernel,
// their addresses made global, and constants. Under a call the callee's registers are added. Not known are the
// compiler's reordering and its cap; a caller cuts the number at the card's registers per thread.
func EstimateRegisters(m *ptx.Module, f *ptx.Func) int {
	return 2 + (&pressure{m: m, seen: map[*ptx.Func]bool{}, known: map[*ptx.Func]int{}}).of(f)
}

type pressure struct {
	m     *ptx.Module
	seen  map[*ptx.Func]bool // on the way here: a recursion counts once
	known map[*ptx.Func]int
}

// regSet is a set of registers.
type regSet []uint64

func (s regSet) add(r ptx.RegID)    { s[r>>6] |= 1 << (r & 63) }
func (s regSet) remove(r ptx.RegID) { s[r>>6] &^= 1 << (r & 63) }

// of is the pressure in f, by backward data flow over its basic blocks.
func (p *pressure) of(f *ptx.Func) int {
	if f == nil || f.Proto || p.seen[f] || len(f.Instrs) == 0 {
		return 0
	}
	if n, ok := p.known[f]; ok {
		return n
	}
	p.seen[f] = true
	defer delete(p.seen, f)

	n := len(f.Instrs)
	code := make([]regUse, n)
	for i := range f.Instrs {
		code[i] = usesOf(&f.Instrs[i])
	}
	cost := p.costs(f, code)

	// Basic blocks.
	leader := make([]bool, n+1)
	leader[0], leader[n] = true, true
	labels := map[string]int{}
	for _, l := range f.Labels {
		leader[l.At] = true
		labels[l.Name] = l.At
	}
	for i := range code {
		if code[i].target != "" || code[i].stops {
			leader[i+1] = true
		}
	}
	var starts []int
	blockAt := make([]int, n+1)
	for i := range n + 1 {
		if leader[i] {
			starts = append(starts, i)
		}
		blockAt[i] = len(starts) - 1
	}
	words := (len(f.Regs) + 63) / 64
	in := make([]regSet, len(starts)) // live at the start of a block; that behind the last is empty
	store := make(regSet, words*len(starts))
	for b := range in {
		in[b] = store[b*words : (b+1)*words]
	}
	live := make(regSet, words)
	enter := func(b int) { // live = what is live at the end of block b
		clear(live)
		last := starts[b+1] - 1
		merge := func(to int) {
			for w := range live {
				live[w] |= in[to][w]
			}
		}
		if c := &code[last]; !c.stops || c.guarded {
			merge(b + 1)
		}
		if c := &code[last]; c.target != "" {
			if at, ok := labels[c.target]; ok {
				merge(blockAt[at])
			}
		}
	}
	step := func(i int) { // live before instruction i from live behind it
		c := &code[i]
		if !c.guarded {
			for _, r := range c.defs {
				live.remove(r)
			}
		}
		for _, r := range c.uses {
			live.add(r)
		}
	}
	for changed := true; changed; {
		changed = false
		for b := len(starts) - 2; b >= 0; b-- {
			enter(b)
			for i := starts[b+1] - 1; i >= starts[b]; i-- {
				step(i)
			}
			for w := range live {
				if live[w] != in[b][w] {
					in[b][w], changed = live[w], true
				}
			}
		}
	}

	most := 0
	weight := func() (n int) {
		for w, x := range live {
			for ; x != 0; x &= x - 1 {
				n += cost[w<<6+bits.TrailingZeros64(x)]
			}
		}
		return n
	}
	for b := len(starts) - 2; b >= 0; b-- {
		enter(b)
		for i := starts[b+1] - 1; i >= starts[b]; i-- {
			for _, r := range code[i].defs { // a result that nobody reads needs its place too
				live.add(r)
			}
			most = max(most, weight())
			step(i)
			now := weight()
			if c := code[i].callee; c != "" {
				now += p.of(p.m.Func(c))
			}
			most = max(most, now)
		}
	}
	p.known[f] = most
	return most
}

// costs is how many registers each virtual one takes.
func (p *pressure) costs(f *ptx.Func, code []regUse) []int {
	cost := make([]int, len(f.Regs))
	for r := range cost {
		switch t := f.Regs[r].Type; {
		case t == ptx.Pred:
		case t.Bits() == 64:
			cost[r] = 2
		default:
			cost[r] = 1
		}
	}
	if !f.Entry {
		return cost
	}
	defs := make([]int, len(f.Regs))
	for i := range code {
		for _, r := range code[i].defs {
			defs[r]++
		}
	}
	params := map[string]bool{}
	for i := range f.Params {
		params[f.Params[i].Name] = true
	}
	for i := range f.Instrs {
		in := &f.Instrs[i]
		if len(code[i].defs) == 0 || len(in.Args) < 2 {
			continue
		}
		d, err := ptx.Decode(in.Opcode)
		if err != nil {
			continue
		}
		free := false
		switch src := &in.Args[1]; d.Op {
		case "ld":
			free = d.Space == ptx.ParamSpace && src.Kind == ptx.KindAddr && src.Reg == ptx.NoReg && params[src.Sym]
		case "mov":
			free = src.Kind == ptx.KindInt || src.Kind == ptx.KindF32 || src.Kind == ptx.KindF64
		case "cvta":
			free = src.Kind == ptx.KindReg && cost[src.Reg] == 0
		}
		for _, r := range code[i].defs {
			if free && defs[r] == 1 {
				cost[r] = 0
			}
		}
	}
	return cost
}

// regUse says which registers an instruction writes and reads, and where control goes.
type regUse struct {
	defs, uses []ptx.RegID
	guarded    bool
	target     string // of a branch
	stops      bool   // control does not run on to the next instruction
	callee     string
}

func usesOf(in *ptx.Instr) regUse {
	u := regUse{guarded: in.Guard.On}
	if in.Guard.On {
		u.uses = append(u.uses, in.Guard.Reg)
	}
	d, err := ptx.Decode(in.Opcode)
	if err != nil {
		return u
	}
	var collect func(o *ptx.Operand, to *[]ptx.RegID)
	collect = func(o *ptx.Operand, to *[]ptx.RegID) {
		switch o.Kind {
		case ptx.KindReg:
			*to = append(*to, o.Reg)
		case ptx.KindAddr:
			if o.Reg != ptx.NoReg {
				u.uses = append(u.uses, o.Reg)
			}
		}
		for i := range o.Elems {
			collect(&o.Elems[i], to)
		}
	}
	switch d.Op {
	case "bra":
		u.target, u.stops = in.Args[0].Sym, true
		return u
	case "ret", "exit", "trap":
		u.stops = true
	case "call":
		to := &u.uses
		for i := range in.Args {
			if in.Args[i].Kind == ptx.KindFunc {
				u.callee = in.Args[i].Sym
			}
		}
		if len(in.Args) > 0 && in.Args[0].Kind == ptx.KindList {
			to = &u.defs
		}
		for i := range in.Args {
			if in.Args[i].Kind == ptx.KindFunc {
				to = &u.uses
			}
			collect(&in.Args[i], to)
		}
		return u
	}
	for i := range in.Args {
		to := &u.uses
		if i < len(d.Form.Args) && d.Form.Args[i][0] == '=' {
			to = &u.defs
		}
		collect(&in.Args[i], to)
	}
	return u
}
