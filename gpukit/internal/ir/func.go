package ir

import "fmt"

// Value names a result of an instruction, a parameter or a carried value: an
// index into Func.Types. Each is defined once and is visible in the rest of
// its region and in the regions nested there.
type Value int32

// Pos is a place in the user's source. The zero Pos is unknown.
type Pos struct {
	File      string
	Line, Col int32
}

// String returns file:line:col, as in "cell 3:4:7" or "geo.go:12:5".
func (p Pos) String() string {
	if p.Line == 0 {
		return p.File
	}
	return fmt.Sprintf("%s:%d:%d", p.File, p.Line, p.Col)
}

// Param is a parameter of a function: a scalar.
type Param struct {
	Name  string
	Value Value
	Kind  ParamKind
	Mem   Mem // of Offset, Shape and Stride: the memory they belong to
	Dim   int // of Shape and Stride: the dimension; of the places of a thread: 0 is x, 1 is y, 2 is z
}

// ParamKind says what a parameter stands for.
type ParamKind uint8

// The kinds of parameters. An array of rank n is a memory and 2n+1 parameters:
// element (i, j, ...) is at Offset + i*Stride(0) + j*Stride(1) + ... in the
// memory. Offset may differ from worker to worker, shape and strides do not.
const (
	Scalar    ParamKind = iota // an argument of the Go function, or a part of one
	Captured                   // a variable of the notebook
	Offset                     // where an array begins in its memory
	Shape                      // the size of a dimension
	Stride                     // its stride, in elements
	ThreadIdx                  // the place of the worker's thread in its block
	BlockIdx                   // the place of the block in the grid
	BlockDim                   // the threads of a block
	GridDim                    // the blocks of the grid
	Iteration                  // the number of the iteration of a loop that became workers (SpreadLoops); Dim numbers the loops
)

// Uniform reports whether every worker of a block is given the same value, if
// scalar arguments are not.
func (k ParamKind) Uniform() bool {
	return k != Scalar && k != ThreadIdx && k != Offset && k != Iteration
}

// Func is one function: scalars in, scalars out, and memories that it reads
// and writes.
type Func struct {
	Name    string
	Params  []Param
	Mems    []Memory
	Results []Type
	Body    *Region
	Types   []Type // the type of each Value
	Pos     Pos
	// Outline keeps calls of the function calls, where Inline would put its body:
	// for what is large and rarely reached. It declares no Shared memory.
	Outline bool

	settled bool // Optimize made it, and would change nothing; who changes it clears this
}

// Mem names a memory of a function: an index into Func.Mems.
type Mem int32

// Memory is a sequence of elements of one type.
type Memory struct {
	Name  string
	Space Space
	Elem  Type
	// Len is the number of elements of Shared, Local and Constant memory; 0 for
	// the dynamic shared memory, whose size a launch gives.
	Len  int
	Data []Bits // of Constant memory
}

// Space says who shares a memory.
type Space uint8

// The spaces.
const (
	Global   Space = iota // given by the caller: the data of an array argument
	Shared                // one for each block
	Local                 // one for each worker
	Constant              // never written
)

// String returns the name of the space as printed in IR text.
func (s Space) String() string {
	return [...]string{"global", "shared", "local", "constant"}[s]
}

// Region is a sequence of instructions; the last one, and no other, is a
// terminator.
type Region struct {
	Instrs []Instr
}

// Instr is one instruction.
type Instr struct {
	Op      Op
	Fn      MathFn    // of OpMath
	Kind    Kind      // of OpAtomic, OpShuffle, OpVote
	Mem     Mem       // of OpLoad, OpStore, OpAtomic, OpClear
	Callee  *Func     // of OpCall
	Mems    []Mem     // of OpCall: the callee's Global memories, in order
	Text    []string  // of OpPrint: what stands before, between and behind the operands
	Imm     Bits      // of OpConst: the value; of OpBreak: the level
	Args    []Value   // operands; of OpLoop: first values of the carried ones
	Results []Value   // one for ordinary operations
	Carried []Value   // of OpLoop: the carried values as the body sees them
	Regions []*Region // of OpIf: then, else; of OpLoop: body
	Pos     Pos
}

// Level is the level of an OpBreak.
func (in *Instr) Level() int { return int(in.Imm) }

// Terminator returns the last instruction of r.
func (r *Region) Terminator() *Instr { return &r.Instrs[len(r.Instrs)-1] }

// NewFunc returns a function without parameters or body.
func NewFunc(name string, results ...Type) *Func {
	return &Func{Name: name, Results: results, Body: &Region{}}
}

// NewValue makes a fresh value of type t.
func (f *Func) NewValue(t Type) Value {
	f.Types = append(f.Types, t)
	return Value(len(f.Types) - 1)
}

// AddParam appends a scalar parameter.
func (f *Func) AddParam(name string, t Type) Value {
	return f.AddParamOf(Param{Name: name}, t)
}

// AddParamOf appends a parameter of any kind; p.Value is set here.
func (f *Func) AddParamOf(p Param, t Type) Value {
	p.Value = f.NewValue(t)
	f.Params = append(f.Params, p)
	return p.Value
}

// AddMem appends a memory.
func (f *Func) AddMem(m Memory) Mem {
	f.Mems = append(f.Mems, m)
	return Mem(len(f.Mems) - 1)
}

// ArrayParam is an array parameter of a function.
type ArrayParam struct {
	Mem    Mem
	Offset Value
	Shape  []Value
	Stride []Value
}

// AddArray appends an array parameter of a given rank: a Global memory and its
// 2*rank+1 parameters, offset first, then shape, then strides, all I64.
func (f *Func) AddArray(name string, elem Type, rank int) ArrayParam {
	a := ArrayParam{Mem: f.AddMem(Memory{Name: name, Space: Global, Elem: elem})}
	a.Offset = f.AddParamOf(Param{Name: name + ".offset", Kind: Offset, Mem: a.Mem}, I64)
	for i := range rank {
		a.Shape = append(a.Shape, f.AddParamOf(Param{Name: fmt.Sprintf("%s.shape%d", name, i), Kind: Shape, Mem: a.Mem, Dim: i}, I64))
	}
	for i := range rank {
		a.Stride = append(a.Stride, f.AddParamOf(Param{Name: fmt.Sprintf("%s.stride%d", name, i), Kind: Stride, Mem: a.Mem, Dim: i}, I64))
	}
	return a
}

// Type returns the type of v.
func (f *Func) Type(v Value) Type { return f.Types[v] }

// Builder appends instructions to the regions of a function.
type Builder struct {
	F   *Func
	R   *Region // where the next instruction goes
	Pos Pos     // its position

	spare []Value // for operands and results
}

// NewBuilder returns a builder at the start of f's body.
func NewBuilder(f *Func) *Builder { return &Builder{F: f, R: f.Body} }

func (b *Builder) add(in Instr) {
	in.Pos = b.Pos
	b.R.Instrs = append(b.R.Instrs, in)
}

// Op appends an ordinary operation and returns its result; the result type
// follows from the operands by the op's row. It panics on operands that the
// row refuses: the front end has checked types before.
func (b *Builder) Op(op Op, args ...Value) Value {
	rt, err := op.ResultType(b.F.types(nil, args))
	if err != nil {
		panic("ir: internal error: " + err.Error())
	}
	v := b.F.NewValue(rt)
	b.add(Instr{Op: op, Args: args, Results: []Value{v}})
	return v
}

// Const appends a constant of type t.
func (b *Builder) Const(t Type, bits Bits) Value {
	v := b.F.NewValue(t)
	b.add(Instr{Op: OpConst, Imm: bits, Results: []Value{v}})
	return v
}

// Convert appends the conversion of x to t by Go's rules; a float that is out of range saturates, and NaN gives 0.
func (b *Builder) Convert(t Type, x Value) Value {
	if b.F.Types[x] == t {
		return x
	}
	v := b.F.NewValue(t)
	b.add(Instr{Op: OpConvert, Args: []Value{x}, Results: []Value{v}})
	return v
}

// Math appends a call of a library function.
func (b *Builder) Math(fn MathFn, args ...Value) Value {
	v := b.F.NewValue(fn.Row().Out)
	b.add(Instr{Op: OpMath, Fn: fn, Args: args, Results: []Value{v}})
	return v
}

// Call appends a call of another function.
func (b *Builder) Call(callee *Func, args ...Value) []Value {
	return b.CallMems(callee, nil, args...)
}

// CallMems is Call with the memories that stand for the callee's Global ones.
func (b *Builder) CallMems(callee *Func, mems []Mem, args ...Value) []Value {
	res := b.values(callee.Results)
	b.add(Instr{Op: OpCall, Callee: callee, Mems: mems, Args: args, Results: res})
	return res
}

// Load appends the read of element index of m.
func (b *Builder) Load(m Mem, index Value) Value {
	v := b.F.NewValue(b.F.Mems[m].Elem)
	b.add(Instr{Op: OpLoad, Mem: m, Args: []Value{index}, Results: []Value{v}})
	return v
}

// Store appends the write of x to element index of m.
func (b *Builder) Store(m Mem, index, x Value) {
	b.add(Instr{Op: OpStore, Mem: m, Args: []Value{index, x}})
}

// Clear appends the setting of all of Local memory m to zero.
func (b *Builder) Clear(m Mem) { b.add(Instr{Op: OpClear, Mem: m}) }

// Bounds appends the check that 0 <= index < length.
func (b *Builder) Bounds(index, length Value) {
	b.add(Instr{Op: OpBounds, Args: []Value{index, length}})
}

// SliceBounds appends the check that 0 <= from <= to <= length.
func (b *Builder) SliceBounds(from, to, length Value) {
	b.add(Instr{Op: OpSliceBounds, Args: []Value{from, to, length}})
}

// Atomic appends an atomic operation on element index of m and returns what was
// there before. CompareSwap takes the expected value and the new one.
func (b *Builder) Atomic(k Kind, m Mem, index Value, x ...Value) Value {
	v := b.F.NewValue(b.F.Mems[m].Elem)
	b.add(Instr{Op: OpAtomic, Kind: k, Mem: m, Args: append([]Value{index}, x...), Results: []Value{v}})
	return v
}

// Barrier appends a barrier of the block, WarpBarrier one of the warp.
func (b *Builder) Barrier() { b.add(Instr{Op: OpBarrier}) }

// WarpBarrier appends a barrier of the warp.
func (b *Builder) WarpBarrier() { b.add(Instr{Op: OpWarpBarrier}) }

// Shuffle appends the exchange of x among the lanes of a warp; by is I64.
func (b *Builder) Shuffle(k Kind, x, by Value) Value {
	v := b.F.NewValue(b.F.Types[x])
	b.add(Instr{Op: OpShuffle, Kind: k, Args: []Value{x, by}, Results: []Value{v}})
	return v
}

// Vote appends the vote of the lanes of a warp on x: a Bool, or of Ballot a U32.
func (b *Builder) Vote(k Kind, x Value) Value {
	t := Bool
	if k == Ballot {
		t = U32
	}
	v := b.F.NewValue(t)
	b.add(Instr{Op: OpVote, Kind: k, Args: []Value{x}, Results: []Value{v}})
	return v
}

// Print appends the printing of a line: text[0], args[0], text[1], and so on;
// there is one text more than args.
func (b *Builder) Print(text []string, args ...Value) {
	b.add(Instr{Op: OpPrint, Text: text, Args: args})
}

// space is room for a few values.
func (b *Builder) space(n int) []Value {
	if n == 0 {
		return nil
	}
	if n > len(b.spare) {
		b.spare = make([]Value, max(64, 4*n))
	}
	vs := b.spare[:n:n]
	b.spare = b.spare[n:]
	return vs
}

func (b *Builder) values(ts []Type) []Value {
	vs := b.space(len(ts))
	for i, t := range ts {
		vs[i] = b.F.NewValue(t)
	}
	return vs
}

// If appends an if with results of the given types. then and els fill their
// regions, each of which must end in a terminator, with b positioned inside.
func (b *Builder) If(cond Value, results []Type, then, els func()) []Value {
	res := b.values(results)
	in := Instr{Op: OpIf, Args: []Value{cond}, Results: res, Regions: []*Region{{}, {}}}
	b.add(in)
	b.inside(in.Regions[0], then)
	b.inside(in.Regions[1], els)
	return res
}

// Loop appends a loop whose carried values begin as init. body receives the
// carried values of the iteration; the region's yield gives those of the next.
func (b *Builder) Loop(init []Value, results []Type, body func(carried []Value)) []Value {
	res := b.values(results)
	carried := b.space(len(init))
	for i, v := range init {
		carried[i] = b.F.NewValue(b.F.Types[v])
	}
	in := Instr{Op: OpLoop, Args: append([]Value(nil), init...), Carried: carried, Results: res, Regions: []*Region{{}}}
	b.add(in)
	b.inside(in.Regions[0], func() { body(carried) })
	return res
}

func (b *Builder) inside(r *Region, fill func()) {
	outer, pos := b.R, b.Pos
	b.R = r
	fill()
	b.R, b.Pos = outer, pos
}

// Yield ends the region.
func (b *Builder) Yield(vs ...Value) { b.add(Instr{Op: OpYield, Args: vs}) }

// Break ends the region by leaving the level-th enclosing construct.
func (b *Builder) Break(level int, vs ...Value) {
	b.add(Instr{Op: OpBreak, Imm: Bits(level), Args: vs})
}

// Unreachable ends a region whose end control never reaches.
func (b *Builder) Unreachable() { b.add(Instr{Op: OpUnreachable}) }

// Walk calls f for every instruction of r and the regions inside it, outer
// instructions before inner ones.
func Walk(r *Region, f func(*Instr)) {
	for i := range r.Instrs {
		in := &r.Instrs[i]
		f(in)
		for _, s := range in.Regions {
			Walk(s, f)
		}
	}
}
