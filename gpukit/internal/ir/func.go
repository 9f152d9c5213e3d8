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

// Param is a parameter of a function.
type Param struct {
	Name  string
	Value Value
}

// Func is one function: scalars in, scalars out.
type Func struct {
	Name    string
	Params  []Param
	Results []Type
	Body    *Region
	Types   []Type // the type of each Value
	Pos     Pos
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
	Callee  *Func     // of OpCall
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

// AddParam appends a parameter.
func (f *Func) AddParam(name string, t Type) Value {
	v := f.NewValue(t)
	f.Params = append(f.Params, Param{name, v})
	return v
}

// Type returns the type of v.
func (f *Func) Type(v Value) Type { return f.Types[v] }

// Builder appends instructions to the regions of a function.
type Builder struct {
	F   *Func
	R   *Region // where the next instruction goes
	Pos Pos     // its position
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
	t := make([]Type, len(args))
	for i, a := range args {
		t[i] = b.F.Types[a]
	}
	rt, err := op.ResultType(t)
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

// Convert appends the conversion of x to t by Go's rules and contract 5.
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
	res := b.values(callee.Results)
	b.add(Instr{Op: OpCall, Callee: callee, Args: args, Results: res})
	return res
}

func (b *Builder) values(ts []Type) []Value {
	vs := make([]Value, len(ts))
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
	carried := make([]Value, len(init))
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
