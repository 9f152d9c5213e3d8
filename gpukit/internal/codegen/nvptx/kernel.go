package nvptx

import (
	"errors"
	"fmt"
	mathbits "math/bits"
	"slices"
	"strings"

	"gpunotes/gpukit/internal/ir"
	"gpunotes/gpukit/internal/ptx"
)

// Target is the device that code is for.
type Target struct {
	SM  int         // compute capability, 75 for 7.5
	PTX ptx.Version // the newest that its driver takes; zero: no bound
}

// Access is how a kernel gets a parameter of its function, or puts a result.
type Access uint8

const (
	// ByValue: the kernel's parameter is the value, in the form of ir.Bits.
	ByValue Access = iota
	// Contiguous: element i of an array is worker i's.
	Contiguous
	// Strided: the worker's place in the loop dimensions, times the strides (in
	// elements), is the element of an array; added to the value of an
	// ir.Offset parameter it is that parameter.
	Strided

	generated // and on: Generated
)

// Generated is the access of a float64 parameter that is no array: the worker's
// element, found as that of a Strided one, is a formula's. What the launch passes
// are ArgValue, the number of the first worker's element, ArgStride as ever, and
// the numbers of the formula. Elements that are all the same are ByValue.
func Generated(g Generator) Access { return generated + Access(g) }

// Kernel says which kernel to make of a function.
type Kernel struct {
	Name string // a PTX identifier, unique in its module
	// Func is the function. Calls are inlined, but for those of functions marked
	// Outline. Parameters that are places of a thread are taken from the special
	// registers.
	Func *ir.Func
	// Threads makes one worker of each thread of the launch, for a function that
	// knows its thread. Otherwise the workers are 0 to n-1, n a parameter, and
	// threads in any number of one-dimensional blocks share them out. The number
	// of a worker that is a thread counts blocks, then threads, x first.
	Threads bool
	// Rank is the number of loop dimensions of Strided accesses, at least 1.
	Rank int
	In   []Access // by Func.Params; missing ones are ByValue
	Out  []Access // by Func.Results
	// NoAlias says that no array that is written overlaps one that is read.
	NoAlias bool
	// Poll makes every loop that is not sure to end look at a cancel word.
	Poll bool
	// Facts are what every launch of this code has in common.
	Facts Facts
}

// Entry is a kernel as made: what to pass, what a fault means.
type Entry struct {
	Name   string
	Params []Param
	Checks []Check // by check number
	Prints []Print // by site number
	Shared []SharedVar
	// LineWords is how many words a printed line takes.
	LineWords int
}

// SharedVar is a variable in shared memory.
type SharedVar struct {
	Name   string // in the PTX
	Memory ir.Memory
}

// ParamKind is what a kernel's parameter is.
type ParamKind uint8

// The kinds of kernel parameters, each 8 bytes.
const (
	Workers   ParamKind = iota // the number of workers, unless Threads
	LoopShape                  // size of loop dimension Dim
	MemBase                    // address of Global memory Index of the function
	ArgValue                   // function parameter Index, in the form of ir.Bits
	ArgBase                    // address of element 0 of the array of function parameter Index
	ArgStride                  // its stride in loop dimension Dim, in elements
	OutBase                    // the same of result Index
	OutStride
	// Record is the address of a 64-bit word, all ones before the launch. A
	// worker that fails leaves the smallest value that Failure understands.
	Record
	// Cancel is the address of a 32-bit word; not zero ends the kernel.
	Cancel
	// Printed is the address of the 64-bit words into which workers print: a count,
	// 0 before the launch; how many lines there is room for; and, all zero, room for
	// as many lines of LineWords each. What Lines makes of them is what was printed.
	Printed
	// The numbers of a Generator: float64, but GenLast, the number of the last
	// element, or -1 if there are not two, is an int64.
	GenStart
	GenStep
	GenLast
	GenStop
)

// Param is a parameter of a kernel. Values that the code does not need are not
// among the parameters.
type Param struct {
	Kind  ParamKind
	Index int
	Dim   int
	// Mem says of the numbers of a Generator that Index is that of a memory.
	Mem bool
}

// Check is a place where a worker may fail.
type Check struct {
	Fault ir.Fault
	Pos   ir.Pos
}

const checkBits = 16

// Failure reads the record: the lowest worker that failed and its check.
func Failure(record uint64) (worker uint64, check int, failed bool) {
	return record >> checkBits, int(record & (1<<checkBits - 1)), record != ^uint64(0)
}

// Native reports whether Emit has code for the library function.
func Native(fn ir.MathFn) bool {
	_, ok := mathCode[fn.String()]
	return ok
}

// Missing lists the operations of f that Emit has no code for, as in
// "math.Sin", each once.
func Missing(f *ir.Func) []string {
	var out []string
	add := func(s string) {
		if !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	seen := map[*ir.Func]bool{}
	var look func(f *ir.Func)
	look = func(f *ir.Func) {
		if seen[f] {
			return
		}
		seen[f] = true
		ir.Walk(f.Body, func(in *ir.Instr) {
			switch {
			case in.Op == ir.OpMath && !Native(in.Fn):
				add(in.Fn.String())
			case in.Op == ir.OpCall:
				look(in.Callee)
			}
		})
	}
	look(f)
	slices.Sort(out)
	return out
}

// Emit makes one module of kernels for a target. The .target is the lowest of
// sm_30, 35, 60 and 70 that gives what is used, and sm_70 on devices from there
// on; the .version is the lowest that has it all.
func Emit(t Target, kernels ...*Kernel) (*ptx.Module, []*Entry, error) {
	if t.SM < 30 {
		return nil, nil, fmt.Errorf("compute capability %d.%d is too old: 3.0 is the first supported", t.SM/10, t.SM%10)
	}
	m := &ptx.Module{AddressSize: 64}
	var entries []*Entry
	var faults []error
	files := map[string]int{}
	for _, k := range kernels {
		if missing := Missing(k.Func); len(missing) > 0 {
			faults = append(faults, fmt.Errorf("no device code for %s yet (in %s)", strings.Join(missing, ", "), k.Func.Name))
			continue
		}
		f, origins, err := prepare(k)
		if err != nil {
			faults = append(faults, err)
			continue
		}
		level := 0
		for _, l := range levels {
			if l <= t.SM {
				level = l
			}
		}
		e := newEmitter(m, level, k, f, origins)
		e.entry, e.callees, e.files = &Entry{Name: k.Name, LineWords: lineWords(k.Func)}, map[*ir.Func]*outlined{}, files
		e.fn = &ptx.Func{Linkage: ptx.Visible, Entry: true, Name: k.Name}
		m.Funcs = append(m.Funcs, e.fn)
		if err := e.outlines(); err != nil {
			faults = append(faults, err)
			continue
		}
		entry, err := e.kernel()
		if err != nil {
			faults = append(faults, err)
			continue
		}
		entries = append(entries, entry)
	}
	if len(faults) > 0 {
		return nil, nil, errors.Join(faults...)
	}
	version, sm := ptx.Requires(m)
	for _, l := range levels {
		if l >= sm && l <= t.SM || l == 70 && t.SM >= 70 {
			if m.Target = l; t.SM < 70 {
				break
			}
		}
	}
	if v, _ := ptx.TargetVersion(m.Target); version.Less(v) {
		version = v
	}
	if m.Version = version; t.PTX != (ptx.Version{}) && t.PTX.Less(version) {
		return nil, nil, fmt.Errorf("the driver takes PTX up to %v, but this needs %v: use a newer driver", t.PTX, version)
	}
	if err := ptx.Verify(m); err != nil {
		return nil, nil, fmt.Errorf("nvptx: internal error: %w", err)
	}
	return m, entries, nil
}

// levels are the targets that bring something new.
var levels = []int{30, 35, 60, 70}

// kernel emits the kernel around the function.
func (e *emitter) kernel() (*Entry, error) {
	k := e.k
	if !k.Threads && meets(e.f) {
		return nil, fmt.Errorf("nvptx: internal error: %s: threads meet, but workers are shared out among threads", k.Name)
	}
	rank := max(k.Rank, 1)

	// What is the same for all workers.
	var n ptx.Operand
	if !k.Threads {
		n = e.param(Param{Kind: Workers}, "u64")
	}
	args, outs := make([]argument, len(e.f.Params)), make([]argument, len(k.Out))
	places := make([]bool, rank) // which places are looked at
	strides := func(kind ParamKind, i int, known map[Place]int64) (out []ptx.Operand) {
		for d := range rank {
			x, ok := known[Place{i, d}]
			switch {
			case ok && x == 0:
				out = append(out, ptx.Operand{})
				continue
			case ok:
				out = append(out, ptx.Int(x))
			default:
				out = append(out, e.param(Param{Kind: kind, Index: i, Dim: d}, "u64"))
			}
			places[d] = true
		}
		return out
	}
	for i, p := range e.f.Params {
		if !e.used[p.Value] {
			continue
		}
		t, o := e.f.Types[p.Value], e.origins[i]
		a := &args[i]
		switch {
		case p.Kind >= ir.ThreadIdx && p.Kind <= ir.GridDim:
			name := map[ir.ParamKind]string{ir.ThreadIdx: "%tid", ir.BlockIdx: "%ctaid", ir.BlockDim: "%ntid", ir.GridDim: "%nctaid"}[p.Kind]
			r := e.get("mov.u32", ptx.B32, ptx.Special(name+[]string{".x", ".y", ".z"}[p.Dim]))
			e.vals[p.Value] = e.convert(ir.U32, t, r)
			continue
		case o.kind == MemBase:
			e.vals[p.Value] = e.memory(o.index)
			continue
		case o.kind == ArgBase:
			a.base = e.address(Param{Kind: ArgBase, Index: o.index})
			a.on = true
		default:
			q := Param{Kind: o.kind, Index: o.index}
			if o.index < 0 {
				q.Index, q.Mem = -1-o.index, true
			}
			e.vals[p.Value] = e.scalar(q, t)
		}
		if o.steps {
			a.strides = strides(ArgStride, o.index, k.Facts.InStrides)
		}
	}
	for i, a := range k.Out {
		outs[i] = argument{on: true, base: e.address(Param{Kind: OutBase, Index: i})}
		if a == Strided {
			outs[i].strides = strides(OutStride, i, k.Facts.OutStrides)
		}
	}
	var shape []ptx.Operand
	if first := slices.Index(places, true); !k.Threads && first >= 0 {
		shape = make([]ptx.Operand, rank)
		typ := "u64"
		if k.Facts.Narrow {
			typ = "u32"
		}
		for d := max(first, 1); d < rank; d++ {
			shape[d] = e.param(Param{Kind: LoopShape, Dim: d}, typ)
		}
	}
	if e.mayFault() || e.calls(func(o *outlined) bool { return o.record }) {
		e.record = e.address(Param{Kind: Record})
	}
	if e.polls() {
		e.cancel = e.address(Param{Kind: Cancel})
	}
	if e.prints() {
		e.printed = e.address(Param{Kind: Printed})
	}

	exit := "EXIT"
	var step ptx.Operand
	if !k.Threads {
		block := e.get("mov.u32", ptx.B32, ptx.Special("%ctaid.x"))
		size := e.get("mov.u32", ptx.B32, ptx.Special("%ntid.x"))
		thread := e.get("mov.u32", ptx.B32, ptx.Special("%tid.x"))
		blocks := e.get("mov.u32", ptx.B32, ptx.Special("%nctaid.x"))
		e.worker = e.get("mad.wide.u32", ptx.B64, block, size, e.get("cvt.u64.u32", ptx.B64, thread))
		step = e.get("mul.wide.u32", ptx.B64, blocks, size)
		e.branch(e.get("setp.ge.u64", ptx.Pred, e.worker, n), false, exit)
		e.fn.AddLabel("WORKER")
	} else if e.prints() || len(k.Out) > 0 || slices.Contains(places, true) || slices.ContainsFunc(args, func(a argument) bool { return a.on }) {
		e.worker = e.thread()
	}
	place := e.place(shape, places)
	for i := range e.f.Params {
		v := e.f.Params[i].Value
		switch a := &args[i]; {
		case a.on:
			e.vals[v] = e.load(e.elementOf(a, place, e.f.Types[v]), "global"+e.readOnly(k.NoAlias), e.f.Types[v])
		case a.strides != nil:
			e.vals[v] = e.stepped(a.strides, place, e.vals[v])
		}
	}
	results := e.function()
	for i := range outs {
		t := e.f.Results[i]
		e.store(e.elementOf(&outs[i], place, t), "global", t, results[i])
	}
	if !k.Threads {
		e.ins("add.s64", e.worker, e.worker, step)
		e.branch(e.get("setp.lt.u64", ptx.Pred, e.worker, n), false, "WORKER")
	}
	e.fn.AddLabel(exit)
	e.ins("ret")
	e.faults("ret")
	e.finish()
	if len(e.entry.Checks) >= 1<<checkBits {
		return nil, fmt.Errorf("%s has %d index and division checks; a kernel may have %d", e.f.Name, len(e.entry.Checks), 1<<checkBits-1)
	}
	if len(e.entry.Prints) >= 1<<checkBits {
		return nil, fmt.Errorf("%s prints in %d places; a kernel may in %d", e.f.Name, len(e.entry.Prints), 1<<checkBits-1)
	}
	return e.entry, nil
}

// thread is the number of the thread in the launch: blocks and threads count x
// first.
func (e *emitter) thread() ptx.Operand {
	get := func(s string) ptx.Operand { return e.get("mov.u32", ptx.B32, ptx.Special(s)) }
	wide := func(s string) ptx.Operand { return e.get("cvt.u64.u32", ptx.B64, get(s)) }
	linear := func(idx, dim string) ptx.Operand {
		r := e.get("mad.lo.s64", ptx.B64, wide(idx+".z"), wide(dim+".y"), wide(idx+".y"))
		return e.get("mad.lo.s64", ptx.B64, r, wide(dim+".x"), wide(idx+".x"))
	}
	size := e.get("mul.lo.u32", ptx.B32, e.get("mul.lo.u32", ptx.B32, get("%ntid.x"), get("%ntid.y")), get("%ntid.z"))
	return e.get("mad.lo.s64", ptx.B64, linear("%ctaid", "%nctaid"), e.get("cvt.u64.u32", ptx.B64, size), linear("%tid", "%ntid"))
}

// meets reports whether workers wait for each other or share memory.
func meets(f *ir.Func) bool {
	yes := slices.ContainsFunc(f.Mems, func(m ir.Memory) bool { return m.Space == ir.Shared })
	ir.Walk(f.Body, func(in *ir.Instr) {
		switch in.Op {
		case ir.OpBarrier, ir.OpWarpBarrier, ir.OpShuffle, ir.OpVote:
			yes = true
		}
	})
	return yes
}

// argument is an operand of which each worker has an element.
type argument struct {
	on      bool
	base    ptx.Operand
	strides []ptx.Operand // nil if contiguous; no operand for 0
}

// place is the worker's index in each loop dimension that is looked at.
func (e *emitter) place(shape []ptx.Operand, places []bool) []ptx.Operand {
	place := make([]ptx.Operand, len(places))
	first := slices.Index(places, true)
	if first < 0 {
		return place
	}
	rest := e.worker
	narrow := e.k.Facts.Narrow && len(places) > 1 && !e.k.Threads
	if narrow {
		rest = e.get("cvt.u32.u64", ptx.B32, rest)
	}
	for d := len(places) - 1; d >= first && d > 0; d-- {
		if q := rest; narrow {
			if rest = e.get("div.u32", ptx.B32, q, shape[d]); places[d] {
				place[d] = e.get("cvt.u64.u32", ptx.B64, e.get("sub.s32", ptx.B32, q, e.get("mul.lo.u32", ptx.B32, rest, shape[d])))
			}
		} else if rest = e.get("div.u64", ptx.B64, q, shape[d]); places[d] {
			place[d] = e.get("sub.s64", ptx.B64, q, e.get("mul.lo.s64", ptx.B64, rest, shape[d]))
		}
	}
	if first == 0 {
		if place[0] = rest; narrow {
			place[0] = e.get("cvt.u64.u32", ptx.B64, rest)
		}
	}
	return place
}

// stepped is what places times strides come to, added to from if that is an
// operand.
func (e *emitter) stepped(strides, place []ptx.Operand, from ptx.Operand) ptx.Operand {
	for d, s := range strides {
		one := s.Kind == ptx.KindInt && s.Bits == 1
		switch {
		case s.Kind == ptx.NoOperand:
		case one && from.Kind == ptx.NoOperand:
			from = place[d]
		case one:
			from = e.get("add.s64", ptx.B64, place[d], from)
		case from.Kind == ptx.NoOperand:
			from = e.get("mul.lo.s64", ptx.B64, place[d], s)
		default:
			from = e.get("mad.lo.s64", ptx.B64, place[d], s, from)
		}
	}
	return from
}

func (e *emitter) elementOf(a *argument, place []ptx.Operand, t ir.Type) ptx.Operand {
	if a.strides == nil {
		// One product for all arrays of that size.
		bytes, ok := e.scaled[t.Size()]
		if !ok {
			if bytes = e.worker; t.Size() > 1 {
				bytes = e.get("shl.b64", ptx.B64, e.worker, ptx.Int(int64(mathbits.TrailingZeros(uint(t.Size())))))
			}
			e.scaled[t.Size()] = bytes
		}
		return ptx.Addr(e.get("add.s64", ptx.B64, a.base, bytes).Reg, 0)
	}
	index := e.stepped(a.strides, place, ptx.Operand{})
	if index.Kind == ptx.NoOperand {
		return ptx.Addr(a.base.Reg, 0)
	}
	return e.element(a.base, index, t)
}

// readOnly is the modifier of loads that nothing in this launch writes over.
func (e *emitter) readOnly(alone bool) string {
	if alone && e.level >= 35 {
		return ".nc"
	}
	return ""
}

// param declares a kernel parameter and loads it.
func (e *emitter) param(p Param, typ string) ptx.Operand {
	e.entry.Params = append(e.entry.Params, p)
	name := fmt.Sprintf("%s_%d", e.k.Name, len(e.fn.Params))
	e.fn.Params = append(e.fn.Params, ptx.Var{Space: ptx.ParamSpace, Type: ptx.U64, Name: name})
	return e.get("ld.param."+typ, registerOf(ptx.ParseType(typ)), ptx.SymAddr(name, 0))
}

// address declares a parameter that is an address in global memory.
func (e *emitter) address(p Param) ptx.Operand {
	return e.get("cvta.to.global.u64", ptx.B64, e.param(p, "u64"))
}

// scalar declares a parameter that is a value of type t.
func (e *emitter) scalar(p Param, t ir.Type) ptx.Operand {
	switch {
	case t == ir.Bool:
		return e.get("setp.ne.s32", ptx.Pred, e.param(p, "u32"), ptx.Int(0))
	case t.IsFloat():
		return e.param(p, suffix(t))
	case t.Bits() == 64:
		return e.param(p, "u64")
	}
	return e.param(p, "u32")
}

func registerOf(t ptx.Type) ptx.Type {
	switch t {
	case ptx.F32, ptx.F64, ptx.Pred:
		return t
	}
	if t.Bits() == 64 {
		return ptx.B64
	}
	return ptx.B32
}

// memory declares memory i of the function and returns its base.
func (e *emitter) memory(i int) ptx.Operand {
	m := e.f.Mems[i]
	v := ptx.Var{Type: ptx.B8, Align: int(memoryAlign(m)), Array: true, Len: m.Len * m.Elem.Size(), Name: fmt.Sprintf("%s_m%d", e.fn.Name, i)}
	switch m.Space {
	case ir.Global:
		return e.address(Param{Kind: MemBase, Index: i})
	case ir.Shared:
		v.Space = ptx.Shared
		if m.Len == 0 {
			v.Name, v.Linkage, v.Align = "dynamic_shared", ptx.Extern, 16
			if !slices.ContainsFunc(e.m.Vars, func(x ptx.Var) bool { return x.Name == v.Name }) {
				e.m.Vars = append(e.m.Vars, v)
			}
		} else {
			e.fn.Vars = append(e.fn.Vars, v)
		}
		e.entry.Shared = append(e.entry.Shared, SharedVar{v.Name, m})
	case ir.Local:
		v.Space = ptx.Local
		if v.Len > 0 {
			e.fn.Vars = append(e.fn.Vars, v)
		}
	case ir.Constant:
		v.Space = e.constantSpace(ir.Mem(i))
		v.Type, v.Len = memoryType(m.Elem), m.Len
		v.Init = append([]uint64(nil), m.Data...)
		if v.Len > 0 {
			e.m.Vars = append(e.m.Vars, v)
		}
	}
	if v.Array && v.Len > 0 || v.Linkage == ptx.Extern {
		return e.get("mov.u64", ptx.B64, ptx.Sym(v.Name, 0))
	}
	return e.get("mov.u64", ptx.B64, ptx.Int(0))
}

// constantBank is what a module has of constant memory, in bytes.
const constantBank = 64 << 10

// constantSpace is where table i goes: to constant memory, as long as there is room.
func (e *emitter) constantSpace(i ir.Mem) ptx.Space {
	if s, ok := e.tables[i]; ok {
		return s
	}
	used := 0
	for _, v := range e.m.Vars {
		if v.Space == ptx.Const {
			used += (v.Len*v.Type.Size() + 15) / 16 * 16
		}
	}
	m := e.f.Mems[i]
	s := ptx.Const
	if used+m.Len*m.Elem.Size() > constantBank {
		s = ptx.Global
	}
	if e.tables == nil {
		e.tables = map[ir.Mem]ptx.Space{}
	}
	e.tables[i] = s
	return s
}

// space is the name of the space of memory i.
func (e *emitter) space(i ir.Mem) string {
	switch m := e.f.Mems[i]; m.Space {
	case ir.Global:
		return "global"
	case ir.Shared:
		return "shared"
	case ir.Local:
		return "local"
	default:
		return e.constantSpace(i).String()
	}
}

// memoryType is the type of an element of t in memory.
func memoryType(t ir.Type) ptx.Type {
	switch t {
	case ir.Bool, ir.U8:
		return ptx.U8
	case ir.I8:
		return ptx.S8
	case ir.I16:
		return ptx.S16
	case ir.U16:
		return ptx.U16
	}
	return ptx.ParseType(suffix(t))
}
