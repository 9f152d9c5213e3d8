package gpukit

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"gpunotes/gpukit/host"
	"gpunotes/gpukit/internal/cpu"
	"gpunotes/gpukit/internal/frontend"
	"gpunotes/gpukit/internal/ir"
	"gpunotes/gpukit/internal/shape"
)

// call is a call that was checked and compiled, ready to run or to be
// explained. Vectorize, GUVectorize and Launch differ in how it is made.
type call struct {
	op     string
	fn     *function
	prog   *program
	loop   []int // loop dimensions: one worker each
	grid   Grid  // of Launch
	block  Block // of Launch
	args   []bound
	outs   []bound       // results
	after  []func()      // to do when the run has succeeded
	plain  *launch       // bind's, once it was asked for
	places *places       // on a GPU, from then on
	staged []stage       // likewise
	form   *form         // that they are of, if any
	serial string        // why loops that are taken are not workers in this call
	layout *shape.Layout // of GUVectorize

	resident bool // some argument lives on the device, so the results do

	given     bool             // the results were: Out
	separated bool             // an argument was copied, as a result overlaps it
	values    *parameterValues // that staged depends on
	facing    shape.Facts      // kind's, once it was asked for
	repeats   *repeats         // what calls like it have in common, if it can be run again
	again     bool             // it is one that has run, with other arguments
}

// bound is an argument or a result of a call and how the workers walk it.
type bound struct {
	name     string
	array    *Array    // nil for scalars
	leaves   []ir.Bits // of scalars: one, or the parts of a struct
	types    []ir.Type // of leaves
	loop     []int     // the array's strides over the loop dimensions
	core     []int     // the shape that one worker sees
	strides  []int     // its strides
	mem      ir.Mem    // of arrays that the function indexes
	indexed  bool      // the function indexes the array; else each worker has an element
	captured bool
	read     bool // of a launch: some thread reads the array
	written  bool
	fresh    bool   // a result that the call made
	dirty    bool   // its elements are whatever, though the workers may look at them
	solid    *Array // of a generator that workers index, on cores: its elements in memory, if the call needs them there
	copied   bool   // on a device: the workers get a copy, as results overlap it
}

const anyNumber = -1

// Arg is an argument of a call that is not an input of the function.
type Arg struct {
	out []*Array
}

// Out says where the results of a call go: into a, one array for each result,
// instead of into new arrays. It is the last argument of a call, which returns
// these arrays. They must have the dtypes of the results and shapes to which the
// results broadcast; arguments that overlap them are read as they were before
// the call.
func Out(a ...*Array) Arg { return Arg{out: a} }

// start begins a call: the device and the function.
func (d *Device) start(op string, fn any) (*call, error) {
	if err := d.usable(op); err != nil {
		return nil, err
	}
	f, err := d.function(fn)
	if err != nil {
		var ce *CompileError
		if errors.As(err, &ce) {
			return nil, err
		}
		return nil, fmt.Errorf("gpukit.%s: %w", op, err)
	}
	return &call{op: op, fn: f}, nil
}

func (c *call) refuse(remedy, format string, args ...any) error {
	return &ArgumentError{Op: c.op, Detail: fmt.Sprintf(format, args...), Remedy: remedy}
}

func (c *call) refuseArg(pos int, name, remedy, format string, args ...any) error {
	return &ArgumentError{Op: c.op, Arg: pos, Name: name, Detail: fmt.Sprintf(format, args...), Remedy: remedy}
}

// noOptions refuses options among the arguments.
func (c *call) noOptions(args []any) error {
	for i, x := range args {
		if o, ok := x.(Option); ok {
			var set options
			if o.set != nil {
				o.set(&set)
			}
			name := "the option" // of one that sets what is set anyhow
			if given := set.String(); given != "" {
				name = "gpukit." + given
			}
			return c.refuseArg(i+1, "", fmt.Sprintf("write gpu.With(%s).%s(...)", name, c.op), "an option is not an argument")
		}
	}
	return nil
}

// splitOut takes the Out off the arguments; out is nil if there is none.
func (c *call) splitOut(args []any) (in []any, out []*Array, err error) {
	for i, x := range args {
		o, ok := x.(Arg)
		if !ok {
			continue
		}
		if i != len(args)-1 {
			return nil, nil, c.refuseArg(i+1, "", "write it last", "gpukit.Out is not the last argument")
		}
		if len(o.out) == 0 {
			return nil, nil, c.refuseArg(i+1, "", "give it one array for each result", "gpukit.Out has no arrays")
		}
		return args[:i], o.out, nil
	}
	return args, nil, nil
}

// threadUses names what of a thread a function asks for.
func threadUses(p *frontend.Program) string {
	names := map[ir.ParamKind]string{ir.ThreadIdx: "ThreadIdx", ir.BlockIdx: "BlockIdx", ir.BlockDim: "BlockDim", ir.GridDim: "GridDim"}
	var uses []string
	for _, q := range p.Func.Params {
		if n, ok := names[q.Kind]; ok && !slices.Contains(uses, n) {
			uses = append(uses, n)
		}
	}
	if p.Meets {
		uses = append(uses, "barriers, shuffles or shared memory")
	}
	return strings.Join(uses, ", ")
}

// opened names the device of an array that is not on d.
func opened(home *core, d *Device) string {
	if home.name == d.name {
		return fmt.Sprintf("another opening of %q", home.name)
	}
	return fmt.Sprintf("opened as %q", home.name)
}

// place checks where an array lives.
func (c *call) place(d *Device, pos int, name string, a *Array) error {
	home := a.home()
	if home == nil {
		return nil
	}
	if home != d.core {
		return c.refuseArg(pos, name, "pass it as .Host(), or Put it there", "the array is on another device (%s), the call on %s", opened(home, d), d.name)
	}
	c.resident = true
	return nil
}

// spread prepares a call of fn over the loop dimensions of its arguments: of an
// elementwise function if layout is nil, else of a gufunc. The call returns n
// results, unless an Out gives their number; anyNumber takes what there are.
func (d *Device) spread(op string, fn any, layout *string, n int, args []any) (*call, error) {
	c, err := d.start(op, fn)
	if err != nil {
		return nil, err
	}
	src := c.fn.source
	if err := c.noOptions(args); err != nil {
		return nil, err
	}
	in, given, err := c.splitOut(args)
	if err != nil {
		return nil, err
	}
	if src.UsesThreads || src.Meets {
		return nil, c.refuse("launch it with Launch, which gives it a grid of threads", "%s uses package simt (%s), but this call has no threads", c.fn.name, threadUses(src))
	}
	if c.given = given != nil; c.given {
		n = len(given)
	}
	l, nin, n, err := c.signature(layout, n, given != nil)
	if err != nil {
		return nil, err
	}
	if len(in) != nin {
		return nil, c.refuse("", "%s takes %s, got %d", c.fn.name, parameters(src.Params[:nin]), len(in))
	}
	shapes := make([]shape.Operand, nin)
	c.args = make([]bound, 0, nin+len(src.Captured))
	for i, x := range in {
		b, err := c.take(d, i, x, false)
		if err != nil {
			return nil, err
		}
		if b.array != nil {
			shapes[i] = shape.Operand{Shape: b.array.shape, Strides: b.array.strides}
		}
		c.args = append(c.args, b)
	}
	outs := make([]*shape.Operand, n)
	c.outs = make([]bound, 0, n)
	for i := range outs {
		t := c.resultType(i, nin)
		b := bound{name: c.resultName(i, nin), written: true}
		if len(src.Results) == 0 {
			b.indexed, b.mem = true, src.Params[nin+i].Mem
		}
		if given == nil {
			b.array = &Array{store: unmade(t)}
		} else {
			b.array = given[i]
			if err := c.checkOut(d, i, b.array, t); err != nil {
				return nil, err
			}
			outs[i] = &shape.Operand{Shape: b.array.shape, Strides: b.array.strides}
		}
		c.outs = append(c.outs, b)
	}
	plan, err := l.Plan(c.fn.name, shapes, outs)
	if err != nil {
		return nil, &ShapeError{Op: op, Detail: strings.TrimSpace(err.Error()) + c.conflict(l, shapes) + c.operand(err)}
	}
	if _, ok := shape.Size(plan.Loop); !ok {
		return nil, &ShapeError{Op: op, Detail: fmt.Sprintf("the arguments broadcast to shape %s, which is too large", shape.Format(plan.Loop))}
	}
	c.loop = plan.Loop
	if layout != nil {
		c.layout = l
	}
	for i := range c.args {
		c.args[i].walk(plan.In[i])
	}
	for i := range c.outs {
		o := &c.outs[i]
		if given == nil {
			if _, ok := shape.Size(plan.OutShapes[i]); !ok {
				return nil, &ShapeError{Op: op, Detail: fmt.Sprintf("result %d would have shape %s, which is too large", i+1, shape.Format(plan.OutShapes[i]))}
			}
			o.array.shape, o.array.strides = plan.OutShapes[i], shape.Contiguous(plan.OutShapes[i])
		}
		o.walk(plan.Out[i])
		if given != nil && shape.SelfOverlaps(slices.Concat(c.loop, plan.Out[i].CoreShape), slices.Concat(o.loop, plan.Out[i].CoreStrides)) {
			return nil, c.refuse("pass an array with one place for each element of the result", "Out array %d (shape %s, strides %v) would be written more than once in the same place", i+1, shape.Format(o.array.shape), o.array.strides)
		}
	}
	for i, a := range given {
		for j, b := range given[:i] {
			if overlap(a, b) {
				return nil, c.refuse("give each result an array of its own", "Out arrays %d and %d overlap", j+1, i+1)
			}
		}
	}
	if why := caught(func() { c.separate(layout == nil) }); why != "" {
		return nil, &ShapeError{Op: op, Detail: why}
	}
	return c, c.finish(d)
}

// caught says why an array that f makes cannot be made, or "": the detail of the
// *ShapeError that f panics with.
func caught(f func()) string {
	if e := panicked(f); e != nil {
		return e.Detail
	}
	return ""
}

// panicked is the *ShapeError that f panics with, or nil.
func panicked(f func()) (e *ShapeError) {
	defer func() {
		if r := recover(); r != nil {
			var ok bool
			if e, ok = r.(*ShapeError); !ok {
				panic(r)
			}
		}
	}()
	f()
	return nil
}

// conflict names the arguments whose loop dimensions do not broadcast, if that is
// what is wrong.
func (c *call) conflict(l *shape.Layout, in []shape.Operand) string {
	loops := make([][]int, len(in))
	for i, o := range in {
		n := len(o.Shape) - len(l.In[i])
		if n < 0 {
			return ""
		}
		loops[i] = o.Shape[:n]
	}
	_, x := shape.Broadcast(loops...)
	if x == nil {
		return ""
	}
	ps := c.fn.source.Params
	return fmt.Sprintf("; arguments %d (%s) and %d (%s) have sizes %d and %d in loop dimension %d from the end, which must be equal or 1",
		x.First+1, ps[x.First].Name, x.Second+1, ps[x.Second].Name, x.FirstSize, x.SecondSize, x.FromEnd)
}

// operand names the argument that an error of shape is about, which counts from 0.
func (c *call) operand(err error) string {
	var e *shape.OperandError
	if !errors.As(err, &e) {
		return ""
	}
	if e.Output {
		return fmt.Sprintf("; output operand %d is array %d of Out, of shape %s", e.At, e.At+1, shape.Format(c.outs[e.At].array.shape))
	}
	of := "a number"
	if a := c.args[e.At].array; a.NDim() > 0 {
		of = "of shape " + shape.Format(a.shape)
	}
	return fmt.Sprintf("; input operand %d is argument %d (%s), %s", e.At, e.At+1, c.args[e.At].name, of)
}

func (b *bound) walk(p shape.PlannedOperand) {
	b.loop, b.core, b.strides = p.LoopStrides, p.CoreShape, p.CoreStrides
	if b.indexed && len(b.core) == 0 { // a scalar as a slice of one element
		b.core, b.strides = []int{1}, []int{0}
	}
	b.settle()
}

// settle gives core dimensions of one element the stride that they would have in
// an array without gaps. It is multiplied by 0 alone, but code that knows of no gaps
// and a host that computes with the strides have to mean the same.
func (b *bound) settle() {
	for d := len(b.core) - 1; d >= 0; d-- {
		if b.core[d] != 1 {
			continue
		}
		want := 1
		if d+1 < len(b.core) {
			want = b.strides[d+1] * b.core[d+1]
		}
		if b.strides[d] != want {
			b.strides = slices.Clone(b.strides)
			b.strides[d] = want
		}
	}
}

// signature compares the function with the layout and the number of results
// that are wanted, and says how many of its parameters are inputs and how many
// results there are.
func (c *call) signature(layout *string, wanted int, given bool) (l *shape.Layout, nin, n int, err error) {
	src := c.fn.source
	nin, n = len(src.Params), wanted
	returned := len(src.Results)
	if layout == nil {
		if n == anyNumber {
			n = max(returned, 1)
		}
		for i, p := range src.Params {
			if p.Kind == frontend.Array {
				return nil, 0, 0, c.refuseArg(i+1, p.Name, fmt.Sprintf("declare it as %v, or use GUVectorize with a layout", p.Type), "parameter %s is a slice: %s calls the function for each element", p.Name, c.op)
			}
		}
		if returned != n {
			return nil, 0, 0, c.resultCount(returned, n)
		}
		return shape.Elementwise(nin, n), nin, n, nil
	}
	if l, err = shape.ParseLayout(*layout, -1, -1); err != nil {
		return nil, 0, 0, c.refuse(`write it like "(m,n),(n)->(m)": of each argument the core dimensions in brackets, () for a number, and the results after ->`, "layout: %v", err)
	}
	if n == anyNumber {
		n = max(len(l.Out), 1)
	}
	if returned == 0 {
		nin -= len(l.Out)
	}
	switch {
	case len(l.Out) != n && given:
		return nil, 0, 0, c.refuse("give it one array for each result", "gpukit.Out has %s, layout %v has %s", counted(n, "array", "arrays"), l, counted(len(l.Out), "result", "results"))
	case len(l.Out) != n:
		return nil, 0, 0, c.refuse(fmt.Sprintf("pass gpukit.Out with %s, or for two results call GUVectorize2", counted(len(l.Out), "array", "arrays")), "layout %v has %s, %s returns %d", l, counted(len(l.Out), "result", "results"), c.op, n)
	case returned != 0 && returned != n:
		return nil, 0, 0, c.resultCount(returned, n)
	case nin != len(l.In) || nin < 0:
		return nil, 0, 0, c.refuse("the function takes the inputs of the layout and then, if it returns nothing, its results", "layout %v has %s and %s, %s takes %s", l, counted(len(l.In), "input", "inputs"), counted(len(l.Out), "result", "results"), c.fn.name, parameters(src.Params))
	}
	for i, p := range src.Params {
		core := l.In
		j := i
		if i >= nin {
			core, j = l.Out, i-nin
		}
		rank := len(core[j])
		switch {
		case p.Kind != frontend.Array && (rank > 0 || i >= nin):
			want := "[]"
			for range rank - 1 {
				want += "[]"
			}
			return nil, 0, 0, c.refuse(fmt.Sprintf("declare it as %s%v", want, p.Type), "parameter %d (%s) has %s in layout %v, but is not a slice", i+1, p.Name, counted(rank, "core dimension", "core dimensions"), l)
		case p.Kind == frontend.Array && p.Rank != max(rank, 1):
			return nil, 0, 0, c.refuse("give it as many [] as the layout has core dimensions", "parameter %d (%s) is a slice of rank %d, layout %v gives it %s", i+1, p.Name, p.Rank, l, counted(rank, "core dimension", "core dimensions"))
		case i < nin && p.Kind == frontend.Array && p.Written:
			return nil, 0, 0, c.refuse("write to the result instead, or use Launch", "%s writes to parameter %d (%s), which is an input of layout %v", c.fn.name, i+1, p.Name, l)
		}
	}
	for j := range returned {
		if len(l.Out[j]) > 0 {
			return nil, 0, 0, c.refuse("write the result through a last parameter that is a slice", "%s returns a number, but layout %v has core dimensions in result %d", c.fn.name, l, j+1)
		}
	}
	return l, nin, n, nil
}

func (c *call) resultCount(returned, n int) error {
	remedy := "return exactly one number or bool"
	switch {
	case returned == 2 && n == 1:
		remedy = "call " + c.op + "2, or pass gpukit.Out with 2 arrays"
	case returned > 2:
		remedy = fmt.Sprintf("pass gpukit.Out with %d arrays", returned)
	case n == 2:
		remedy = "return exactly two numbers or bools"
	}
	return c.refuse(remedy, "%s returns %d values, the call wants %d", c.fn.name, returned, n)
}

func (c *call) resultType(i, nin int) DType {
	if r := c.fn.source.Results; len(r) > 0 {
		return DType(r[i])
	}
	return DType(c.fn.source.Params[nin+i].Type)
}

func (c *call) resultName(i, nin int) string {
	if len(c.fn.source.Results) > 0 {
		return fmt.Sprintf("result %d", i+1)
	}
	return c.fn.source.Params[nin+i].Name
}

func (c *call) checkOut(d *Device, i int, a *Array, t DType) error {
	refuse := func(remedy, format string, args ...any) error {
		return c.refuse(remedy, "Out array %d: %s", i+1, fmt.Sprintf(format, args...))
	}
	switch {
	case a == nil:
		return refuse("make it with gpukit.Zeros", "it is nil")
	case a.unusable() != "":
		return refuse("", "%s", a.unusable())
	case a.DType() != t:
		return refuse(fmt.Sprintf("make it with gpukit.Zeros(...).As(%s)", t.constant()), "its dtype is %v, the result's is %v", a.DType(), t)
	case !inMemory(a.store):
		return refuse("make it with gpukit.Zeros", "its elements are computed, not stored, so it cannot be written")
	}
	return c.place(d, 0, fmt.Sprintf("Out array %d", i+1), a)
}

// take takes x as the argument for parameter i.
func (c *call) take(d *Device, i int, x any, written bool) (bound, error) {
	p := c.fn.source.Params[i]
	b := bound{name: p.Name, written: written, indexed: p.Kind == frontend.Array, mem: p.Mem}
	if p.Kind == frontend.Parts {
		v := reflect.ValueOf(x)
		if !v.IsValid() || !madeOf(v.Type(), p.Form) || !b.parts(p.Leaves, v) {
			return b, c.refuseArg(i+1, p.Name, "pass a value of that type", "its type is %T, and the function declares %s", x, p.Form.Text)
		}
		return b, nil
	}
	array, scalar, err := toArgument(c.op, i+1, p.Name, p.Type, x)
	switch {
	case err != nil:
		return b, err
	case array == nil && p.Kind == frontend.Array && p.Type == ir.F64 && d.gpu != nil:
		array = Full(ir.ToF64(scalar)) // nothing to copy
	case array == nil && p.Kind == frontend.Array:
		array = newArray(makeStorage(DType(p.Type), 1), nil)
		array.store.setBits(0, scalar)
	case array == nil:
		b.leaves, b.types = []ir.Bits{scalar}, []ir.Type{p.Type}
		return b, nil
	}
	b.array = array
	if d.gpu != nil && !written {
		b.array = array.gathered()
	}
	return b, c.place(d, i+1, p.Name, array)
}

// finish reads the captured variables, compiles, and checks what the code needs.
func (c *call) finish(d *Device) (err error) {
	if err := c.capture(); err != nil {
		return err
	}
	if c.prog, err = d.program(c.fn); err != nil {
		return err
	}
	return c.checkLocal(d)
}

// checkLocal refuses local arrays that no card has room for, or this machine, once
// for each worker that is under way.
func (c *call) checkLocal(d *Device) error {
	size := 0
	for _, m := range c.prog.ir.Mems {
		if m.Space == ir.Local {
			size += m.Len * m.Elem.Size()
		}
	}
	if size > maxLocal {
		return c.refuse("use smaller arrays, or an array that is an argument", "the local arrays of %s take %s for each thread, and no card gives a thread more than %s", c.fn.name, amount(float64(size)), amount(float64(maxLocal)))
	}
	lanes := 1
	if c.fn.source.Meets {
		lanes = c.block.X * c.block.Y * c.block.Z
	}
	if d.gpu != nil {
		return nil
	}
	if why := room(Uint8, size*lanes*d.workers()); why != "" {
		return c.refuse("use smaller arrays, or an array that is an argument", "the local arrays of %s do not fit, one for each thread: %s", c.fn.name, why)
	}
	return nil
}

// capture reads the notebook variables that the function uses.
func (c *call) capture() error {
	for _, p := range c.fn.source.Captured {
		v, ok := c.fn.scope.Lookup(p.Name)
		b := bound{name: p.Name, captured: true}
		if !ok || !v.Value.IsValid() || !b.take(p, v.Value) {
			return c.refuse("run the cell of the function again", "the variable %s, which %s uses, is no longer what it was when the function was compiled", p.Name, c.fn.name)
		}
		c.args = append(c.args, b)
	}
	return nil
}

// take takes the value of a captured variable: a scalar, or a fixed array, which
// becomes memory of its own.
func (b *bound) take(p frontend.Capture, v reflect.Value) bool {
	if !p.Array {
		return b.parts([]frontend.Leaf{{Type: p.Type}}, v)
	}
	n := 1
	for _, d := range p.Dims {
		n *= d
	}
	b.array = newArray(makeStorage(DType(p.Type), n), []int{n})
	b.mem, b.indexed = p.Mem, true
	k := 0
	var fill func(v reflect.Value, dims []int) bool
	fill = func(v reflect.Value, dims []int) bool {
		if len(dims) == 0 {
			if dtypeOfKind(v.Kind()).ir() != p.Type {
				return false
			}
			b.array.store.setBits(k, bitsOf(v))
			k++
			return true
		}
		if v.Kind() != reflect.Array || v.Len() != dims[0] {
			return false
		}
		for i := range v.Len() {
			if !fill(v.Index(i), dims[1:]) {
				return false
			}
		}
		return true
	}
	return fill(v, p.Dims)
}

// madeOf reports whether a type is made like a struct or a fixed array of the kernel
// language: as many elements, fields of the same names. What an interpreter calls a
// field may have something in front of the name.
func madeOf(t reflect.Type, f *frontend.Form) bool {
	switch {
	case f.Elem != nil:
		return t.Kind() == reflect.Array && t.Len() == f.Len && madeOf(t.Elem(), f.Elem)
	case f.Scalar != ir.Invalid:
		return dtypeOfKind(t.Kind()).ir() == f.Scalar
	case t.Kind() != reflect.Struct || t.NumField() != len(f.Fields):
		return false
	}
	for i, g := range f.Fields {
		if !strings.HasSuffix(t.Field(i).Name, f.Names[i]) || !madeOf(t.Field(i).Type, g) {
			return false
		}
	}
	return true
}

// parts takes the scalars of v that leaves say.
func (b *bound) parts(leaves []frontend.Leaf, v reflect.Value) bool {
	if !v.IsValid() {
		return false
	}
	for _, leaf := range leaves {
		x := v
		for _, step := range leaf.Path {
			switch {
			case x.Kind() == reflect.Struct && step < x.NumField():
				x = x.Field(step)
			case x.Kind() == reflect.Array && step < x.Len():
				x = x.Index(step)
			default:
				return false
			}
		}
		if dtypeOfKind(x.Kind()).ir() != leaf.Type {
			return false
		}
		b.leaves = append(b.leaves, bitsOf(x))
		b.types = append(b.types, leaf.Type)
	}
	return true
}

// separate makes arguments independent of results that overlap them, so that a
// worker reads what was there before the call. An elementwise function may work
// in place: each worker reads its own element before it writes it.
func (c *call) separate(elementwise bool) {
	for i := range c.args {
		a := &c.args[i]
		if a.array == nil || a.captured || !inMemory(a.array.store) {
			continue
		}
		for j := range c.outs {
			if !c.entangled(a, &c.outs[j], elementwise) {
				continue
			}
			c.separated = true
			if deviceMemoryOf(a.array.store) != nil {
				a.copied = true // on the device, when the call runs
			} else {
				a.array = a.array.packed()
			}
			break
		}
	}
}

// entangled reports whether workers that write a result may change what others
// read of an argument.
func (c *call) entangled(a, o *bound, elementwise bool) bool {
	return overlap(a.array, o.array) && !(elementwise && a.array.offset == o.array.offset && shape.SameElements(
		shape.Span{Shape: c.loop, Strides: a.loop}, shape.Span{Shape: c.loop, Strides: o.loop}) && sameStorage(a.array, o.array))
}

// sameStorage reports whether two arrays count their elements from one place.
func sameStorage(a, b *Array) bool {
	x, okx := extentOf(a.store)
	y, oky := extentOf(b.store)
	return okx && oky && x.space == y.space && x.first == y.first
}

// overlap reports whether two stored arrays may share an element.
func overlap(a, b *Array) bool {
	x, okx := extentOf(a.store)
	y, oky := extentOf(b.store)
	if !okx || !oky || x.space != y.space || x.n == 0 || y.n == 0 {
		return false // memory of one element type is never that of another
	}
	if a.DType() != b.DType() { // on a device: elements of other sizes, or the same bytes read otherwise
		bytesOf := func(a *Array, e extent) (lo, hi uint64) {
			from, n := spanOf(a)
			size := a.DType().Size()
			return e.first + uint64(from*size), e.first + uint64((from+n)*size)
		}
		alo, ahi := bytesOf(a, x)
		blo, bhi := bytesOf(b, y)
		return alo < bhi && blo < ahi
	}
	size := int64(a.DType().Size())
	shift := int(int64(y.first-x.first) / size)
	return shape.Overlaps(
		shape.Span{Offset: a.offset, Shape: a.shape, Strides: a.strides},
		shape.Span{Offset: b.offset + shift, Shape: b.shape, Strides: b.strides})
}

// packed returns an array of the same shape and strides over a copy, in host
// memory, of the storage that a spans, so that what repeats in a repeats in it.
func (a *Array) packed() *Array {
	if m := deviceMemoryOf(a.store); m != nil {
		return m.download(a)
	}
	lo, hi, ok := shape.Span{Offset: a.offset, Shape: a.shape, Strides: a.strides}.Bounds()
	if !ok {
		return &Array{makeStorage(a.DType(), 0), 0, a.shape, a.strides}
	}
	return &Array{stored(a.store, lo, hi-lo+1), a.offset - lo, a.shape, a.strides}
}

// stored returns n elements of s, which is not on a device, in new memory.
func stored(s storage, lo, n int) storage {
	out, _ := makeDirty(s.dtype(), n)
	if g, ok := s.(*generator); ok {
		g.Fill(sliceBehind(out).([]float64), lo, 1)
	} else {
		reflect.Copy(reflect.ValueOf(sliceBehind(out)), reflect.ValueOf(part(sliceBehind(s), lo, lo+n)))
	}
	return out
}

// allocate makes the results that were not given.
func (c *call) allocate(d *Device) error {
	for i := range c.outs {
		a := c.outs[i].array
		t, ok := a.store.(unmade)
		if !ok {
			continue
		}
		if c.resident && d.gpu != nil {
			m, err := d.gpu.memory(DType(t), a.Size())
			if err != nil {
				c.discard(i)
				return d.gpu.fault(c.op, err)
			}
			a.store = m
			d.keep(a)
			c.outs[i].fresh = true
			continue
		}
		if why := room(DType(t), a.Size()); why != "" {
			return &ShapeError{Op: c.op, Detail: fmt.Sprintf("the result has shape %s: %s", shape.Format(a.shape), why)}
		}
		a.store, c.outs[i].dirty = makeDirty(DType(t), a.Size())
		if c.resident {
			d.keep(a)
		}
		c.outs[i].fresh = true
	}
	return nil
}

// wipeResults makes zeros of results, in memory that was used before, that the
// workers do not write whole before they may look at an element.
func (c *call) wipeResults(d *Device) error {
	for i := range c.outs {
		o := &c.outs[i]
		if !o.dirty || !o.indexed {
			continue
		}
		stages, err := c.stages(d)
		if err != nil {
			return err
		}
		if !o.writtenWhole(stages) {
			wipe(o.array.store)
		}
	}
	return nil
}

// writtenWhole reports whether the first of the stages that knows of a result writes
// all its elements, and does not read them: each worker one, and no two the same.
func (o *bound) writtenWhole(stages []stage) bool {
	for i := range stages {
		s := &stages[i]
		if slices.Contains(s.in, o) || slices.Contains(s.mems, o) {
			return false
		}
		at := slices.Index(s.out, o)
		if at < 0 {
			continue
		}
		workers, ok := shape.Size(s.Shape)
		return ok && workers == o.array.Size() && !shape.SelfOverlaps(s.Shape, s.Out[at].Strides)
	}
	return false
}

// discard gives back the first n results that allocate made.
func (c *call) discard(n int) {
	for i := range c.outs[:n] {
		if c.outs[i].fresh {
			c.outs[i].array.Free()
		}
	}
}

// unmade is the storage of a result before the call runs.
type unmade DType

func (u unmade) dtype() DType { return DType(u) }
func (u unmade) len() int     { return 0 }
func (u unmade) bits(int) ir.Bits {
	panic("gpukit: internal error: an array that was not made is read")
}
func (u unmade) setBits(int, ir.Bits) {
	panic("gpukit: internal error: an array that was not made is written")
}

// launch is a call, or a part of one, as the engines see it.
type launch struct {
	cpu.Launch
	in, out []*bound // whose elements the operands are; nil of numbers and places
	nums    []*bound // by operand of In, the argument that is the number
	mems    []*bound // by memory of the function, those that it is given
	known   shape.Facts
}

// joined are the dimensions of the launch as its workers walk them.
func (l *launch) joined() (dims, keep []int) {
	s := shape.Space{Dims: l.Shape}
	for _, list := range [][]cpu.Operand{l.In, l.Out} {
		for i := range list {
			if o := &list[i]; o.Strides != nil {
				s.Walks = append(s.Walks, shape.Walk{Strides: o.Strides})
			}
		}
	}
	return s.Join(nil, nil)
}

// bind puts the call into the terms of its function: worker by worker, a stage
// alone. The error is a *ShapeError.
func (c *call) bind(d *Device) (*launch, error) {
	if c.plain != nil {
		return c.plain, nil
	}
	if why := caught(func() { c.plain = c.makeLaunch(d) }); why != "" {
		return nil, &ShapeError{Op: c.op, Detail: why}
	}
	if d.gpu != nil {
		c.places = &places{homes: map[*bound]home{}}
		c.places.find(c)
	}
	c.plain.known = c.facts(d, c.plain, &c.prog.kernel)
	return c.plain, nil
}

func (c *call) makeLaunch(d *Device) *launch {
	f := c.fn.source.Func
	l := &launch{
		Launch: cpu.Launch{
			Shape:      c.loop,
			In:         make([]cpu.Operand, 0, len(f.Params)),
			Goroutines: d.workers(),
			Cancelled:  d.cancelled,
			Print:      d.printLine,
			Group:      c.block.X * c.block.Y * c.block.Z,
		},
		in:   make([]*bound, 0, len(f.Params)),
		nums: make([]*bound, len(f.Params)),
	}
	for _, m := range c.prog.ir.Mems {
		if m.Space == ir.Shared && m.Len == 0 {
			l.DynamicShared = d.options.sharedBytes / m.Elem.Size()
		}
	}
	if len(f.Mems) > 0 {
		l.mems = make([]*bound, len(f.Mems))
	}
	scalars := make([]*bound, 0, len(f.Params)) // one for each leaf
	for i := range c.args {
		switch b := &c.args[i]; {
		case b.array == nil:
			for range b.leaves {
				scalars = append(scalars, b)
			}
		case b.indexed:
			l.mems[b.mem] = b
		default:
			scalars = append(scalars, b)
		}
	}
	for i := range c.outs {
		if b := &c.outs[i]; b.indexed {
			l.mems[b.mem] = b
		} else {
			l.Out, l.out = append(l.Out, b.elements()), append(l.out, b)
		}
	}
	for m, mem := range f.Mems {
		if mem.Space == ir.Global {
			l.Mems = append(l.Mems, l.mems[m].memory())
		}
	}
	leaf := 0
	for _, p := range f.Params {
		t := f.Types[p.Value]
		var o cpu.Operand
		var owner *bound
		switch p.Kind {
		case ir.Scalar, ir.Captured:
			b := scalars[0]
			if scalars = scalars[1:]; b.array != nil {
				o, owner = b.elements(), b
				break
			}
			o = cpu.Operand{Type: b.types[leaf], Scalar: b.leaves[leaf]}
			l.nums[len(l.In)] = b
			if leaf++; leaf == len(b.leaves) {
				leaf = 0
			}
		case ir.Offset:
			b := l.mems[p.Mem]
			o = cpu.Operand{Type: t, Index: true, Offset: b.walked().offset, Strides: b.loop}
		case ir.Shape:
			n := c.sharedLen(d, p.Mem)
			if b := l.mems[p.Mem]; b != nil {
				n = b.core[p.Dim]
			}
			o = uniform(t, n)
		case ir.Stride:
			o = uniform(t, l.mems[p.Mem].strides[p.Dim])
		default:
			o = c.thread(p, t)
		}
		l.In, l.in = append(l.In, o), append(l.in, owner)
	}
	return l
}

// cancelled says when a running call is to end: when the user presses Stop or the
// device is closed.
func (d *Device) cancelled() bool {
	if d.closed.Load() {
		return true
	}
	stop := host.Current().Interrupted
	return stop != nil && stop()
}

// progress is what tells the host how far part k of n parts of a call is, nil if the
// host does not want to know.
func (d *Device) progress(k, n int) func(done, total int) {
	tell := host.Current().Progress
	if tell == nil {
		return nil
	}
	return func(done, total int) { tell(int64(k)*int64(total)+int64(done), int64(n)*int64(total)) }
}

// sharedLen is the number of elements of a dynamic shared memory.
func (c *call) sharedLen(d *Device, m ir.Mem) int {
	return d.options.sharedBytes / c.fn.source.Func.Mems[m].Elem.Size()
}

func uniform(t ir.Type, x int) cpu.Operand { return cpu.Operand{Type: t, Scalar: ir.Bits(int64(x))} }

// thread is a parameter that says where a thread is. The loop dimensions of a
// launch are those of the grid and then those of the block, z first.
func (c *call) thread(p ir.Param, t ir.Type) cpu.Operand {
	dims := [3]int{c.grid.X, c.grid.Y, c.grid.Z}
	at := 2 - p.Dim
	switch p.Kind {
	case ir.BlockDim:
		dims = [3]int{c.block.X, c.block.Y, c.block.Z}
		fallthrough
	case ir.GridDim:
		return uniform(t, dims[p.Dim])
	case ir.ThreadIdx:
		at += 3
	}
	st := make([]int, 6)
	st[at] = 1
	return cpu.Operand{Type: t, Index: true, Strides: st}
}

// elements is an array whose element each worker has for itself.
func (b *bound) elements() cpu.Operand {
	a := b.walked()
	o := cpu.Operand{Type: a.DType().ir(), Offset: a.offset, Strides: b.loop}
	b.put(&o)
	return o
}

// put makes an operand one of elements of b.
func (b *bound) put(o *cpu.Operand) {
	o.Data, o.Gen = nil, nil
	switch s := b.walked().store.(type) {
	case *generator:
		o.Gen = s
	case unmade: // of a call that is explained
		o.Data = sliceBehind(makeStorage(DType(s), 0))
	default:
		if m := deviceMemoryOf(s); m != nil {
			o.Data = quiet{m}
		} else {
			o.Data = sliceBehind(s)
		}
	}
}

// walked is the array whose elements the workers get.
func (b *bound) walked() *Array {
	if b.solid != nil {
		return b.solid
	}
	return b.array
}

// memory is the slice of an array that workers index themselves. Off the host,
// and of a generator, it is a storage, which only the reference evaluator reads.
func (b *bound) memory() any {
	s := b.walked().store
	if m := sliceBehind(s); m != nil {
		return m
	}
	return quietly(s)
}

// solidify puts the elements of generators that the workers of a kernel on cores
// index into memory: all, or those that are memories of a function of lifted.
func (c *call) solidify(d *Device, only *ir.Accesses) {
	if d.gpu != nil {
		return
	}
	l, f := c.plain, c.fn.source.Func
	global := -1
	for m, b := range l.mems {
		if f.Mems[m].Space == ir.Global {
			global++
		}
		if b == nil || b.solid != nil || only != nil && !slices.Contains(only.Mems, ir.Mem(m)) {
			continue
		}
		if _, ok := b.array.store.(*generator); !ok {
			continue
		}
		b.solid = b.array.packed()
		l.Mems[global] = b.memory()
		for i, p := range f.Params {
			if p.Kind == ir.Offset && p.Mem == ir.Mem(m) {
				l.In[i].Offset = b.solid.offset
			}
		}
	}
}

// run runs the call.
func (d *Device) run(c *call) (err error) {
	if err := c.allocate(d); err != nil {
		return err
	}
	// Elements on a GPU cannot be read any more when it is closed, or fails.
	switch e := panicked(func() { err = d.runMade(c) }); {
	case e == nil:
	case d.closed.Load():
		err = fmt.Errorf("gpukit.%s: %w", c.op, ErrClosed)
	case e.device != nil:
		err = e.device
	default:
		err = &ShapeError{Op: c.op, Detail: e.Detail}
	}
	if err != nil {
		c.discard(len(c.outs))
	}
	return err
}

// runMade runs the call, whose results are made.
func (d *Device) runMade(c *call) error {
	running.Add(1)
	defer running.Add(-1)
	begun.Add(1)
	if c.again {
		c.rebind(d)
	}
	check, err := c.sampleFirst(d)
	if err != nil {
		return err
	}
	if err = c.wipeResults(d); err != nil {
		return err
	}
	if err = d.engine.run(d, c); err == nil && check != nil {
		if err := check.compare(); err != nil {
			return err
		}
	}
	if err != nil {
		return c.runError(d, err)
	}
	for _, f := range c.after {
		f()
	}
	return nil
}

// runError puts what a run ended with into words for the user.
func (c *call) runError(d *Device, err error) error {
	var failed *cpu.WorkerError
	switch {
	case errors.Is(err, cpu.ErrCancelled) && d.closed.Load():
		return fmt.Errorf("gpukit.%s: %w", c.op, ErrClosed)
	case errors.Is(err, cpu.ErrCancelled):
		return ErrInterrupted
	case errors.As(err, &failed):
		return c.workerError(failed)
	case errors.As(err, new(*ShapeError)), errors.As(err, new(*DeviceError)), errors.As(err, new(*ArgumentError)), errors.As(err, new(*CompileError)):
		return err
	}
	if d.options.unchecked {
		return fmt.Errorf("gpukit.%s: %s uses an index out of range, or another check that Unchecked() leaves out would have failed; run it without Unchecked() to see where (%w)", c.op, c.fn.name, err)
	}
	return fmt.Errorf("gpukit.%s: %w", c.op, err)
}

func (c *call) workerError(failed *cpu.WorkerError) error {
	e := &WorkerError{Func: c.fn.name, Args: c.arguments(failed.Args), Err: failed.Err}
	e.Index, e.Block, e.Thread = c.worker(failed.Index)
	return e
}

// worker names the worker at a place in the loop dimensions for the user.
func (c *call) worker(i []int) (index []int, block *Grid, thread *Block) {
	if c.block.X > 0 {
		return nil, &Grid{i[2], i[1], i[0]}, &Block{i[5], i[4], i[3]}
	}
	return i, nil, nil
}

// arguments writes the numbers among a worker's parameters.
func (c *call) arguments(args []ir.Bits) (list []string) {
	f := c.fn.source.Func
	for i, p := range f.Params {
		if p.Kind == ir.Scalar || p.Kind == ir.Captured {
			list = append(list, p.Name+" = "+ir.FormatBits(f.Types[p.Value], args[i]))
		}
	}
	return list
}

// printLine shows what a worker printed.
func (d *Device) printLine(line string) {
	if d.printed != nil {
		d.printed(line)
		return
	}
	fmt.Println(line)
}
