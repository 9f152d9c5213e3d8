package nvptx

import (
	"errors"
	"fmt"
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
)

// Kernel says which kernel to make of a function.
type Kernel struct {
	Name string // a PTX identifier, unique in its module
	// Func is a function without calls (ir.Optimize). Parameters that are places
	// of a thread are taken from the special registers.
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
	// Poll makes every loop look at a cancel word.
	Poll bool
}

// Entry is a kernel as made: what to pass, what a fault means.
type Entry struct {
	Name   string
	Params []Param
	Checks []Check // by check number
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
)

// Param is a parameter of a kernel.
type Param struct {
	Kind  ParamKind
	Index int
	Dim   int
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
	ir.Walk(f.Body, func(in *ir.Instr) {
		switch {
		case in.Op == ir.OpMath && !Native(in.Fn):
			add(in.Fn.String())
		case in.Op == ir.OpPrint:
			add("println")
		case in.Op == ir.OpAtomic && f.Mems[in.Mem].Elem.Size() < 4:
			add("an atomic operation on " + f.Mems[in.Mem].Elem.String())
		case in.Op == ir.OpCall:
			add("a call of " + in.Callee.Name)
		}
	})
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
	for _, k := range kernels {
		if missing := Missing(k.Func); len(missing) > 0 {
			faults = append(faults, fmt.Errorf("no device code for %s yet (in %s)", strings.Join(missing, ", "), k.Func.Name))
			continue
		}
		e := newEmitter(m, t, k)
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
	if n := len(k.In); n > len(e.f.Params) || len(k.Out) != len(e.f.Results) {
		return nil, fmt.Errorf("nvptx: internal error: %s: %d accesses for %d parameters, %d for %d results", k.Name, n, len(e.f.Params), len(k.Out), len(e.f.Results))
	}
	if !k.Threads && meets(e.f) {
		return nil, fmt.Errorf("nvptx: internal error: %s: threads meet, but workers are shared out among threads", k.Name)
	}
	rank := max(k.Rank, 1)
	strided := slices.Contains(k.In, Strided) || slices.Contains(k.Out, Strided)

	// What is the same for all workers.
	var n ptx.Operand
	var shape []ptx.Operand
	if !k.Threads {
		n = e.param(Param{Kind: Workers}, "u64")
		if strided && rank > 1 {
			for d := range rank {
				shape = append(shape, e.param(Param{Kind: LoopShape, Dim: d}, "u64"))
			}
		}
	}
	e.memories()
	strides := func(kind ParamKind, i int, a Access) (out []ptx.Operand) {
		for d := 0; d < rank && a == Strided; d++ {
			out = append(out, e.param(Param{Kind: kind, Index: i, Dim: d}, "u64"))
		}
		return out
	}
	ins, outs := make([]array, len(e.f.Params)), make([]array, len(k.Out))
	for i, p := range e.f.Params {
		t := e.f.Types[p.Value]
		a := ByValue
		if i < len(k.In) {
			a = k.In[i]
		}
		switch {
		case p.Kind >= ir.ThreadIdx && p.Kind <= ir.GridDim:
			name := map[ir.ParamKind]string{ir.ThreadIdx: "%tid", ir.BlockIdx: "%ctaid", ir.BlockDim: "%ntid", ir.GridDim: "%nctaid"}[p.Kind]
			r := e.get("mov.u32", ptx.B32, ptx.Special(name+[]string{".x", ".y", ".z"}[p.Dim]))
			e.vals[p.Value] = e.convert(ir.U32, t, r)
		case a == ByValue:
			e.vals[p.Value] = e.scalar(Param{Kind: ArgValue, Index: i}, t)
		case p.Kind == ir.Offset && a == Strided:
			e.vals[p.Value] = e.scalar(Param{Kind: ArgValue, Index: i}, t)
			ins[i].strides = strides(ArgStride, i, a)
		default:
			ins[i] = array{base: e.address(Param{Kind: ArgBase, Index: i}), strides: strides(ArgStride, i, a), on: true}
		}
	}
	for i, a := range k.Out {
		outs[i] = array{base: e.address(Param{Kind: OutBase, Index: i}), strides: strides(OutStride, i, a), on: true}
	}
	if e.mayFault() {
		e.record = e.address(Param{Kind: Record})
	}
	if k.Poll {
		e.cancel = e.address(Param{Kind: Cancel})
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
	} else if len(k.Out) > 0 || slices.Contains(k.In, Contiguous) || strided {
		e.worker = e.thread()
	}
	place := e.place(shape, strided, rank)
	for i := range e.f.Params {
		v := e.f.Params[i].Value
		switch a := &ins[i]; {
		case a.on:
			e.vals[v] = e.load(e.elementOf(a, place, e.f.Types[v]), "global"+e.readOnly(), e.f.Types[v])
		case a.strides != nil:
			for d, s := range a.strides {
				e.vals[v] = e.get("mad.lo.s64", ptx.B64, place[d], s, e.vals[v])
			}
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
	e.faults()
	e.finish()
	if len(e.entry.Checks) >= 1<<checkBits {
		return nil, fmt.Errorf("%s has %d index and division checks; a kernel may have %d", e.f.Name, len(e.entry.Checks), 1<<checkBits-1)
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

// array is an operand of which each worker has an element.
type array struct {
	on      bool
	base    ptx.Operand
	strides []ptx.Operand // nil if contiguous
}

// place is the worker's index in each loop dimension.
func (e *emitter) place(shape []ptx.Operand, strided bool, rank int) []ptx.Operand {
	if !strided {
		return nil
	}
	place := make([]ptx.Operand, rank)
	rest := e.worker
	for d := rank - 1; d > 0; d-- {
		q := e.get("div.u64", ptx.B64, rest, shape[d])
		place[d] = e.get("sub.s64", ptx.B64, rest, e.get("mul.lo.s64", ptx.B64, q, shape[d]))
		rest = q
	}
	place[0] = rest
	return place
}

func (e *emitter) elementOf(a *array, place []ptx.Operand, t ir.Type) ptx.Operand {
	index := e.worker
	for d, s := range a.strides {
		if d == 0 {
			index = e.get("mul.lo.s64", ptx.B64, place[d], s)
		} else {
			index = e.get("mad.lo.s64", ptx.B64, place[d], s, index)
		}
	}
	return e.element(a.base, index, t)
}

// readOnly is the modifier of loads that nothing in this launch writes over.
func (e *emitter) readOnly() string {
	if e.k.NoAlias && e.level >= 35 {
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

// memories declares the memories of the function.
func (e *emitter) memories() {
	for i, m := range e.f.Mems {
		v := ptx.Var{Type: ptx.B8, Align: max(m.Elem.Size(), 1), Array: true, Len: m.Len * m.Elem.Size(), Name: fmt.Sprintf("%s_m%d", e.k.Name, i)}
		switch m.Space {
		case ir.Global:
			e.mems = append(e.mems, memory{space: "global", base: e.address(Param{Kind: MemBase, Index: i})})
			continue
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
		case ir.Local:
			v.Space = ptx.Local
			if v.Len > 0 {
				e.fn.Vars = append(e.fn.Vars, v)
			}
		case ir.Constant:
			v.Space = ptx.Const
			if v.Len > 32<<10 { // the constant bank has 64 KiB in all
				v.Space = ptx.Global
			}
			v.Type, v.Len = memoryType(m.Elem), m.Len
			v.Init = append([]uint64(nil), m.Data...)
			if v.Len > 0 {
				e.m.Vars = append(e.m.Vars, v)
			}
		}
		mem := memory{space: v.Space.String()}
		if v.Array && v.Len > 0 || v.Linkage == ptx.Extern {
			mem.base = e.get("mov.u64", ptx.B64, ptx.Sym(v.Name, 0))
		} else {
			mem.base = e.get("mov.u64", ptx.B64, ptx.Int(0))
		}
		e.mems = append(e.mems, mem)
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
