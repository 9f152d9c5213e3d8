package ir

import (
	"fmt"
	"iter"
	"strings"
)

// Evaluator is the reference evaluator: obviously right rather than fast. It
// runs one worker, or the workers of one block, each in turn up to the next
// place where they meet. It is not safe for concurrent use.
type Evaluator struct {
	// Steps bounds the instructions of each worker of a run; 0 means no bound.
	Steps int64
	// Cancelled, if not nil, is polled now and then; true ends the run.
	Cancelled func() bool
	// Print takes the lines that workers print; nil drops them.
	Print func(line string)
	// DynamicShared is the length of shared memories of length 0.
	DynamicShared int
}

// Storage is the data of a Global memory.
type Storage interface {
	Load(i int) Bits
	Store(i int, b Bits)
}

// FaultError says where a worker failed.
type FaultError struct {
	Fault  Fault
	Func   string
	Pos    Pos
	Expr   string // operands of the failing operation, e.g. "7 / 0"
	Worker int    // of a block, in order
}

// Error names the fault, the place and the operands.
func (e *FaultError) Error() string {
	s := e.Fault.String()
	if e.Expr != "" {
		s += " (" + e.Expr + ")"
	}
	if e.Pos.Line != 0 {
		s = e.Pos.String() + ": " + s
	}
	return s + " in " + e.Func
}

// Run evaluates f, which has no memory, on one worker's arguments. The error is
// a *FaultError.
func (e *Evaluator) Run(f *Func, args ...Bits) ([]Bits, error) {
	return e.RunWorker(f, nil, args)
}

// RunWorker evaluates f on one worker that is a block of its own. mems are the
// data of f's Global memories, in order.
func (e *Evaluator) RunWorker(f *Func, mems []Storage, args []Bits) ([]Bits, error) {
	out, err := e.RunBlock(f, mems, [][]Bits{args})
	if err != nil {
		return nil, err
	}
	return out[0], nil
}

// RunBlock evaluates f on the workers of one block, given their arguments in
// the order of threads, x fastest. The error is that of the lowest worker that
// failed before they met again.
func (e *Evaluator) RunBlock(f *Func, mems []Storage, args [][]Bits) ([][]Bits, error) {
	b := &block{e: e, shared: map[sharedKey]cells{}}
	out := make([][]Bits, len(args))
	threads := make([]*machine, len(args))
	for i, a := range args {
		if len(a) != len(f.Params) {
			return nil, fmt.Errorf("ir: %s takes %d arguments, not %d", f.Name, len(f.Params), len(a))
		}
		threads[i] = &machine{block: b, worker: i}
	}
	if !meets(f) {
		for i, m := range threads {
			out[i] = m.call(f, mems, args[i])
			if m.err != nil {
				return nil, m.err
			}
		}
		return out, nil
	}
	for i, m := range threads {
		next, stop := iter.Pull(func(yield func(*meeting) bool) {
			m.yield = yield
			out[i] = m.call(f, mems, args[i])
		})
		defer stop()
		m.next = next
	}
	if err := b.schedule(threads); err != nil {
		return nil, err
	}
	return out, nil
}

// meets reports whether workers of f wait for each other.
func meets(f *Func) (yes bool) {
	Walk(f.Body, func(in *Instr) {
		switch in.Op {
		case OpBarrier, OpWarpBarrier, OpShuffle, OpVote:
			yes = true
		case OpCall:
			yes = yes || meets(in.Callee)
		}
	})
	return yes
}

// block is what the workers of a block share.
type block struct {
	e      *Evaluator
	shared map[sharedKey]cells
}

type sharedKey struct {
	f   *Func
	mem Mem
}

// cells is memory of the evaluator's own.
type cells []Bits

func (c cells) Load(i int) Bits     { return c[i] }
func (c cells) Store(i int, b Bits) { c[i] = b }

// meeting is a worker waiting for others.
type meeting struct {
	in    *Instr
	f     *Func
	args  []Bits
	reply Bits
}

// schedule runs the workers until all are done. Each runs until it waits; then
// those that wait at one place, a whole warp or the whole block, go on.
func (b *block) schedule(threads []*machine) error {
	for {
		alive := 0
		for _, m := range threads {
			if !m.done && m.waits == nil {
				var ok bool
				if m.waits, ok = m.next(); !ok {
					m.done, m.waits = true, nil
				}
			}
			if m.err != nil {
				return m.err
			}
			if !m.done {
				alive++
			}
		}
		if alive == 0 {
			return nil
		}
		released := false
		for lo := 0; lo < len(threads); lo += WarpSize {
			if warp := waiting(threads[lo:min(lo+WarpSize, len(threads))]); warp != nil && warp[0].waits.in.Op != OpBarrier {
				exchange(warp)
				released = true
			}
		}
		if all := waiting(threads); !released && all != nil {
			for _, m := range all {
				m.waits = nil
			}
			released = true
		}
		if !released {
			for _, m := range threads {
				if !m.done {
					return &FaultError{Fault: Divergent, Func: m.waits.f.Name, Pos: m.waits.in.Pos, Worker: m.worker}
				}
			}
		}
	}
}

// waiting returns the workers that are not done, if all of them wait at the
// same instruction; nil if not, or if there are none.
func waiting(threads []*machine) []*machine {
	var alive []*machine
	for _, m := range threads {
		if m.done {
			continue
		}
		if m.waits == nil || len(alive) > 0 && m.waits.in != alive[0].waits.in {
			return nil
		}
		alive = append(alive, m)
	}
	return alive
}

// exchange answers the meeting of a warp.
func exchange(warp []*machine) {
	lanes := map[int]*machine{}
	for _, m := range warp {
		lanes[m.worker%WarpSize] = m
	}
	in := warp[0].waits.in
	switch in.Op {
	case OpShuffle:
		for lane, m := range lanes {
			m.waits.reply = m.waits.args[0]
			if from, ok := lanes[ShuffleSource(in.Kind, lane, int64(m.waits.args[1]))]; ok {
				m.waits.reply = from.waits.args[0]
			}
		}
	case OpVote:
		var ballot Bits
		for lane, m := range lanes {
			ballot |= m.waits.args[0] << lane
		}
		for _, m := range warp {
			switch in.Kind {
			case VoteAny:
				m.waits.reply = FromBool(ballot != 0)
			case VoteAll:
				var all Bits
				for lane := range lanes {
					all |= 1 << lane
				}
				m.waits.reply = FromBool(ballot == all)
			default:
				m.waits.reply = ballot
			}
		}
	}
	for _, m := range warp {
		m.reply, m.waits = m.waits.reply, nil
	}
}

// ShuffleSource is the lane whose value a lane is given, or -1.
func ShuffleSource(k Kind, lane int, by int64) int {
	from := by
	switch k {
	case ShuffleUp:
		from = int64(lane) - by
	case ShuffleDown:
		from = int64(lane) + by
	case ShuffleXor:
		from = int64(lane) ^ by
	}
	if from < 0 || from >= WarpSize {
		return -1
	}
	return int(from)
}

type machine struct {
	block  *block
	worker int
	steps  int64
	err    *FaultError

	// Of workers that meet.
	next  func() (*meeting, bool)
	yield func(*meeting) bool
	waits *meeting
	reply Bits
	done  bool
}

type frame struct {
	m    *machine
	f    *Func
	vals []Bits
	mems []Storage
}

func (m *machine) call(f *Func, bound []Storage, args []Bits) []Bits {
	fr := &frame{m: m, f: f, vals: make([]Bits, len(f.Types)), mems: make([]Storage, len(f.Mems))}
	for i, p := range f.Params {
		fr.vals[p.Value] = args[i]
	}
	for i, mem := range f.Mems {
		switch mem.Space {
		case Global:
			fr.mems[i] = bound[0]
			bound = bound[1:]
		case Shared:
			key := sharedKey{f, Mem(i)}
			if m.block.shared[key] == nil {
				n := mem.Len
				if n == 0 {
					n = m.block.e.DynamicShared
				}
				m.block.shared[key] = make(cells, n)
			}
			fr.mems[i] = m.block.shared[key]
		case Local:
			fr.mems[i] = make(cells, mem.Len)
		case Constant:
			fr.mems[i] = cells(mem.Data)
		}
	}
	_, out := fr.region(f.Body)
	return out
}

// fallsThrough is the level of a region that ends in yield.
const fallsThrough = -1

// region runs r and returns how it ended: fallsThrough with the yielded
// values, or the level of a break (as the region sees it) with its values.
func (fr *frame) region(r *Region) (int, []Bits) {
	for i := range r.Instrs {
		in := &r.Instrs[i]
		if !fr.step(in) {
			return fallsThrough, nil
		}
		switch in.Op {
		case OpYield:
			return fallsThrough, fr.get(in.Args)
		case OpBreak:
			return in.Level(), fr.get(in.Args)
		case OpUnreachable:
			panic("ir: internal error: unreachable reached in " + fr.f.Name)
		case OpIf:
			arm := in.Regions[1]
			if fr.vals[in.Args[0]] != 0 {
				arm = in.Regions[0]
			}
			level, vals := fr.region(arm)
			if level > 0 {
				return level - 1, vals
			}
			fr.set(in.Results, vals)
		case OpLoop:
			fr.set(in.Carried, fr.get(in.Args))
			for {
				level, vals := fr.region(in.Regions[0])
				if level > 0 {
					return level - 1, vals
				}
				if level == 0 || fr.m.err != nil {
					fr.set(in.Results, vals)
					break
				}
				fr.set(in.Carried, vals)
			}
		case OpCall:
			bound := make([]Storage, len(in.Mems))
			for j, m := range in.Mems {
				bound[j] = fr.mems[m]
			}
			fr.set(in.Results, fr.m.call(in.Callee, bound, fr.get(in.Args)))
		default:
			fr.perform(in)
		}
		if fr.m.err != nil {
			return fallsThrough, nil
		}
	}
	panic("ir: internal error: a region without terminator in " + fr.f.Name)
}

// perform runs an instruction without control.
func (fr *frame) perform(in *Instr) {
	a := fr.get(in.Args)
	switch in.Op {
	case OpLoad:
		fr.vals[in.Results[0]] = fr.mems[in.Mem].Load(int(int64(a[0])))
	case OpStore:
		fr.mems[in.Mem].Store(int(int64(a[0])), a[1])
	case OpClear:
		clear(fr.mems[in.Mem].(cells))
	case OpAtomic:
		at := int(int64(a[0]))
		old := fr.mems[in.Mem].Load(at)
		fr.mems[in.Mem].Store(at, AtomicResult(in.Kind, fr.f.Mems[in.Mem].Elem, old, a[1:]))
		fr.vals[in.Results[0]] = old
	case OpBounds, OpSliceBounds:
		if fault := CheckBounds(in.Op, a); fault != NoFault {
			fr.fail(in, fault, faultExpr(fr.f, in, a))
		}
	case OpBarrier, OpWarpBarrier, OpShuffle, OpVote:
		if !fr.m.yield(&meeting{in: in, f: fr.f, args: a}) {
			fr.fail(in, Cancelled, "")
			return
		}
		if len(in.Results) > 0 {
			fr.vals[in.Results[0]] = fr.m.reply
		}
	case OpPrint:
		if p := fr.m.block.e.Print; p != nil {
			p(FormatPrint(fr.f, in, a))
		}
	default:
		v, fault := Compute(fr.f, in, a)
		if fault != NoFault {
			fr.fail(in, fault, faultExpr(fr.f, in, a))
		}
		fr.vals[in.Results[0]] = v
	}
}

// FormatPrint is the line that an OpPrint prints, without its end.
func FormatPrint(f *Func, in *Instr, a []Bits) string {
	var types [8]Type
	return FormatLine(in.Text, f.types(types[:0], in.Args), a)
}

// FormatLine is what an OpPrint with this Text and operands of these types
// prints of operands a.
func FormatLine(text []string, types []Type, a []Bits) string {
	var b strings.Builder
	for i, s := range text {
		b.WriteString(s)
		if i < len(a) {
			b.WriteString(FormatBits(types[i], a[i]))
		}
	}
	return b.String()
}

// CheckBounds is the fault of OpBounds or OpSliceBounds on operands a.
func CheckBounds(op Op, a []Bits) Fault {
	if op == OpBounds {
		if a[0] >= a[1] { // unsigned: negative indices are large
			return IndexRange
		}
		return NoFault
	}
	if from, to, n := int64(a[0]), int64(a[1]), int64(a[2]); from < 0 || from > to || to > n {
		return SliceRange
	}
	return NoFault
}

// AtomicResult is what an atomic operation of kind k leaves in a memory of type
// t that held old.
func AtomicResult(k Kind, t Type, old Bits, x []Bits) Bits {
	op := [...]Op{AtomicAdd: OpAdd, AtomicMin: OpMin, AtomicMax: OpMax, AtomicAnd: OpAnd, AtomicOr: OpOr, AtomicXor: OpXor}
	switch k {
	case Exchange:
		return x[0]
	case CompareSwap:
		if old == x[0] {
			return x[1]
		}
		return old
	}
	b, _ := op[k].Row().Eval([]Type{t, t}, []Bits{old, x[0]})
	return b
}

// Compute evaluates one instruction without control and memory on operands a.
func Compute(f *Func, in *Instr, a []Bits) (Bits, Fault) {
	switch in.Op {
	case OpConst:
		return in.Imm, NoFault
	case OpConvert:
		return Convert(f.Types[in.Results[0]], f.Types[in.Args[0]], a[0]), NoFault
	case OpMath:
		return in.Fn.Row().Eval(a), NoFault
	}
	var t [3]Type
	return in.Op.Row().Eval(f.types(t[:0], in.Args), a)
}

var faultSymbol = map[Op]string{OpDiv: "/", OpRem: "%", OpShl: "<<", OpShr: ">>"}

func faultExpr(f *Func, in *Instr, a []Bits) string {
	switch in.Op {
	case OpBounds:
		return fmt.Sprintf("index %d, length %d", int64(a[0]), int64(a[1]))
	case OpSliceBounds:
		return fmt.Sprintf("[%d:%d], length %d", int64(a[0]), int64(a[1]), int64(a[2]))
	}
	return FormatBits(f.Types[in.Args[0]], a[0]) + " " + faultSymbol[in.Op] + " " + FormatBits(f.Types[in.Args[1]], a[1])
}

func (fr *frame) fail(in *Instr, fault Fault, expr string) {
	if fr.m.err == nil {
		fr.m.err = &FaultError{Fault: fault, Func: fr.f.Name, Pos: in.Pos, Expr: expr, Worker: fr.m.worker}
	}
}

func (fr *frame) step(in *Instr) bool {
	m, e := fr.m, fr.m.block.e
	m.steps++
	if e.Steps > 0 && m.steps > e.Steps {
		fr.fail(in, StepBudget, "")
	} else if m.steps%1024 == 0 && e.Cancelled != nil && e.Cancelled() {
		fr.fail(in, Cancelled, "")
	}
	return m.err == nil
}

func (fr *frame) get(vs []Value) []Bits {
	out := make([]Bits, len(vs))
	for i, v := range vs {
		out[i] = fr.vals[v]
	}
	return out
}

func (fr *frame) set(vs []Value, bits []Bits) {
	for i, b := range bits {
		fr.vals[vs[i]] = b
	}
}
