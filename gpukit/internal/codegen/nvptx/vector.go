package nvptx

import (
	"fmt"
	mathbits "math/bits"
	"slices"

	"gpunotes/gpukit/internal/ir"
	"gpunotes/gpukit/internal/ptx"
)

// group is loads or stores of adjacent elements that become one instruction:
// loads where the first stands, stores where the last does.
type group struct {
	members []*ir.Instr // by address
	at      *ir.Instr   // where it is emitted
	last    int         // in the region: the last of them
	regs    []ptx.Operand
}

// access is a load or store of a root and a number of bytes.
type access struct {
	in   *ir.Instr
	pos  int
	root ir.Value
	off  int64
}

// resolve takes an address apart.
func (e *emitter) resolve(v ir.Value) (root ir.Value, off int64) {
	for {
		o, ok := e.folded[v]
		if !ok {
			return v, off
		}
		v, off = o.v, off+o.n
	}
}

// findGroups looks for groups in a region and those inside it.
func (e *emitter) findGroups(r *ir.Region) {
	var loads, stores []access
	flush := func(as *[]access) {
		e.join(*as)
		*as = nil
	}
	for i := range r.Instrs {
		in := &r.Instrs[i]
		for _, s := range in.Regions {
			e.findGroups(s)
		}
		switch {
		case in.Op == ir.OpLoad:
			// A store that waits must not wait for longer than a load of what it wrote.
			stores = e.keepApart(stores, in.Mem)
			root, off := e.resolve(in.Args[0])
			loads = append(loads, access{in, i, root, off})
		case in.Op == ir.OpStore:
			loads = e.keepApart(loads, in.Mem)
			// Stores keep their order among memories that may be one.
			if len(stores) > 0 && stores[0].in.Mem != in.Mem {
				stores = e.keepApart(stores, in.Mem)
			}
			root, off := e.resolve(in.Args[0])
			if slices.ContainsFunc(stores, func(a access) bool { return a.in.Mem == in.Mem && (a.root != root || a.off == off) }) {
				flush(&stores)
			}
			stores = append(stores, access{in, i, root, off})
		case len(in.Regions) > 0 || in.MayFault(e.f) || in.Op.Row().Result == nil && in.Op != ir.OpConst && in.Op != ir.OpConvert && in.Op != ir.OpMath:
			flush(&loads)
			flush(&stores)
		}
	}
	flush(&loads)
	flush(&stores)
}

// keepApart ends the groups of those accesses that may touch what an access of
// memory m touches, one of the two being a store.
func (e *emitter) keepApart(as []access, m ir.Mem) []access {
	if !slices.ContainsFunc(as, func(a access) bool { return e.mayOverlap(a.in.Mem, m) }) {
		return as
	}
	e.join(as)
	return nil
}

// mayOverlap reports whether two memories, one of which is written, may share
// elements.
func (e *emitter) mayOverlap(a, b ir.Mem) bool {
	if a == b {
		return true
	}
	if e.f.Mems[a].Space != ir.Global || e.f.Mems[b].Space != ir.Global {
		return false
	}
	alone := func(m, other ir.Mem) bool {
		return !written(e.f, m) && (e.k.NoAlias || e.k.Facts.Arrays[m].NoAlias)
	}
	return !alone(a, b) && !alone(b, a)
}

// join makes groups of accesses that stand in one straight line.
func (e *emitter) join(as []access) {
	if len(as) < 2 {
		return
	}
	slices.SortStableFunc(as, func(a, b access) int {
		if a.in.Mem != b.in.Mem {
			return int(a.in.Mem) - int(b.in.Mem)
		}
		if a.root != b.root {
			return int(a.root) - int(b.root)
		}
		return int(a.off - b.off)
	})
	for i := 0; i < len(as); {
		t := e.f.Mems[as[i].in.Mem].Elem
		size := int64(t.Size())
		n := 1
		for i+n < len(as) && as[i+n].in.Mem == as[i].in.Mem && as[i+n].root == as[i].root && as[i+n].off == as[i].off+int64(n)*size {
			n++
		}
		for n = min(n, int(16/size), 4); n > 1; n-- {
			whole := int64(n) * size
			if n != 3 && t != ir.Bool && as[i].off%whole == 0 && e.aligned(as[i].root) >= whole {
				break
			}
		}
		if n > 1 {
			g := &group{}
			first, last := as[i], as[i]
			for _, a := range as[i : i+n] {
				g.members = append(g.members, a.in)
				e.groups[a.in] = g
				if a.pos < first.pos {
					first = a
				}
				if a.pos > last.pos {
					last = a
				}
			}
			if g.at, g.last = first.in, last.pos; first.in.Op == ir.OpStore {
				g.at = last.in
			}
		}
		i += n
	}
}

// vector emits an access of a group, or nothing where the group is elsewhere.
func (e *emitter) vector(in *ir.Instr, g *group) {
	if in == g.at {
		m := g.members[0].Mem
		t := e.f.Mems[m].Elem
		space := e.space(m)
		addr := e.pointer(g.members[0].Args[0])
		if in.Op == ir.OpLoad {
			if e.f.Mems[m].Space == ir.Global {
				space += e.readOnlyMem(m)
			}
			for range g.members {
				g.regs = append(g.regs, e.reg(class(t)))
			}
			e.ins(fmt.Sprintf("ld.%s.v%d.%v", space, len(g.members), memoryType(t)), ptx.Vec(g.regs...), addr)
		} else {
			for _, x := range g.members {
				g.regs = append(g.regs, e.inReg(x.Args[1]))
			}
			e.ins(fmt.Sprintf("st.%s.v%d.%v", space, len(g.members), memoryType(t)), addr, ptx.Vec(g.regs...))
		}
	}
	if in.Op == ir.OpLoad {
		e.vals[in.Results[0]] = g.regs[slices.Index(g.members, in)]
	}
}

const allAlign = 1 << 20

// aligned is a power of two that divides the value.
func (e *emitter) aligned(v ir.Value) int64 {
	if e.align == nil {
		e.align = map[ir.Value]int64{}
	}
	return e.alignment(v, map[ir.Value]bool{})
}

// alignment takes for granted what the carried values in busy are a multiple of:
// an iteration keeps it.
func (e *emitter) alignment(v ir.Value, busy map[ir.Value]bool) int64 {
	if a, ok := e.align[v]; ok {
		return a
	}
	of := func(v ir.Value) int64 { return e.alignment(v, busy) }
	if l, ok := e.loops[v]; ok {
		if busy[v] {
			return allAlign
		}
		busy[v] = true
		k := slices.Index(l.Carried, v)
		a := of(l.Args[k])
		if last := l.Regions[0].Terminator(); last.Op == ir.OpYield {
			a = min(a, of(last.Args[k]))
		}
		delete(busy, v)
		if len(busy) == 0 {
			e.align[v] = a
		}
		return a
	}
	in := e.def[v]
	if in == nil {
		for i, p := range e.f.Params {
			if p.Value != v {
				continue
			}
			o := e.origins[i]
			switch {
			case o.kind == MemBase:
				if m := e.f.Mems[o.index]; m.Space != ir.Global {
					return memoryAlign(m)
				}
				return int64(max(e.k.Facts.Arrays[ir.Mem(o.index)].Align, 1))
			case p.Kind == ir.Offset && o.kind == ArgValue && o.index < len(e.k.Func.Params) && e.k.Func.Params[o.index].Kind == ir.Offset:
				if a := int64(e.k.Facts.Arrays[p.Mem].Align) / int64(e.f.Mems[p.Mem].Elem.Size()); a > 1 {
					return a
				}
			}
		}
		return 1
	}
	switch in.Op {
	case ir.OpConst:
		if in.Imm == 0 {
			return allAlign
		}
		return 1 << min(mathbits.TrailingZeros64(in.Imm), 20)
	case ir.OpAdd, ir.OpSub, ir.OpOr, ir.OpXor:
		return min(of(in.Args[0]), of(in.Args[1]))
	case ir.OpAnd:
		return max(of(in.Args[0]), of(in.Args[1]))
	case ir.OpMul:
		return min(of(in.Args[0])*of(in.Args[1]), allAlign)
	case ir.OpNeg:
		return of(in.Args[0])
	case ir.OpShl:
		if d := e.def[in.Args[1]]; d != nil && d.Op == ir.OpConst && d.Imm < 64 {
			return min(of(in.Args[0])<<min(d.Imm, 20), allAlign)
		}
		return of(in.Args[0])
	case ir.OpSelect, ir.OpMin, ir.OpMax:
		n := len(in.Args)
		return min(of(in.Args[n-2]), of(in.Args[n-1]))
	case ir.OpConvert:
		if t := e.f.Types[in.Args[0]]; t.IsInt() {
			return of(in.Args[0])
		}
	}
	return 1
}

// memoryAlign is the alignment of a memory of the kernel's own.
func memoryAlign(m ir.Memory) int64 {
	if m.Len*m.Elem.Size() >= 16 || m.Len == 0 && m.Space == ir.Shared {
		return 16
	}
	return int64(m.Elem.Size())
}
