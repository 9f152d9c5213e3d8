package gpukit

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"gpunotes/gpukit/internal/ir"
	"gpunotes/gpukit/internal/shape"
)

// What Explain says of the loops of a function.

// PlanLoop says what became of a loop.
type PlanLoop struct {
	Pos   string // where it begins, as "cell 3:4:5" or "file.go:4:5"
	Taken bool   // its iterations are workers
	// Dimensions are those of the index spaces that its iterations are, one for each
	// stage in which it is a loop; Iterations is their number.
	Dimensions []int
	Iterations int
	// Why says why it is serial, and Ends where the two ends of the dependence are
	// that forbids it, if one does.
	Why  string
	Ends []string
	// InOrder is what a serial loop accumulates, in order ("sum", "product",
	// "minimum", "maximum"), if that is all that keeps it serial. InParts says that
	// FastMath computes it in four parts instead.
	InOrder string
	InParts bool
}

// String returns it in one line.
func (l PlanLoop) String() string {
	switch {
	case l.Taken:
		var dims []string
		for _, d := range l.Dimensions {
			if s := fmt.Sprint(d); !slices.Contains(dims, s) {
				dims = append(dims, s)
			}
		}
		word := "dimension"
		if len(dims) > 1 {
			word += "s"
		}
		return fmt.Sprintf("at %s: taken: %s %s of the index space, %d iterations", l.Pos, word, strings.Join(dims, ", "), l.Iterations)
	case l.InParts:
		return fmt.Sprintf("at %s: serial: a %s, in four parts (FastMath)", l.Pos, l.InOrder)
	case l.InOrder != "":
		return fmt.Sprintf("at %s: serial: a %s, kept in order", l.Pos, l.InOrder)
	}
	why := l.Why
	if why == "" { // it was taken, and this call has nothing for it to do
		why = "no iteration in this call"
	}
	s := fmt.Sprintf("at %s: serial: %s", l.Pos, why)
	if len(l.Ends) > 0 {
		s += " (" + strings.Join(l.Ends, " and ") + ")"
	}
	return s
}

// loops fills in what the plan says of loops and the index space.
func (c *call) loops(d *Device, p *Plan) {
	p.IndexSpace = c.loop
	for i := range c.staged {
		if s := &c.staged[i]; s.space != nil {
			if n, _ := shape.Size(s.space); n > p.Workers {
				p.IndexSpace, p.Workers = s.space, n
			}
		}
	}
	l, err := c.bind(d)
	if err != nil || p.launch {
		return
	}
	f, stages, why := c.form, c.staged, c.serial
	if f == nil && c.prog.worthForms {
		// What the loops could be without the option.
		if f, err = c.prog.form(c, l); err != nil {
			return
		}
		stages, why = nil, "OneWorkerPerSlice() keeps it so"
	}
	if f == nil {
		return
	}
	for _, x := range f.loops {
		pl := PlanLoop{Pos: x.Pos.String(), Why: x.Why, InOrder: x.Reduction}
		for _, end := range []ir.Pos{x.Source, x.Sink} {
			if end != (ir.Pos{}) && !slices.Contains(pl.Ends, end.String()) {
				pl.Ends = append(pl.Ends, end.String())
			}
		}
		if x.Taken {
			pl.Why, pl.InOrder, pl.Ends = why, "", nil
		}
		pl.InParts = pl.InOrder != "" && slices.ContainsFunc(c.staged, func(s stage) bool { return slices.Contains(s.inParts, x.Pos) })
		for i := range stages {
			s := &stages[i]
			if s.of == nil {
				continue
			}
			for k, at := range s.of.loops {
				if x.Taken && at == x.Pos {
					dim := len(c.loop) + k
					pl.Taken, pl.Dimensions, pl.Iterations = true, append(pl.Dimensions, dim), s.space[dim]
				}
			}
		}
		p.Loops = append(p.Loops, pl)
	}
	if c.form == nil {
		p.Instead = c.instead(d, f, l)
	}
}

// instead is what to write for more workers where the loops of a function could be
// taken and are not; "" if there is nothing simple.
func (c *call) instead(d *Device, f *form, l *launch) string {
	stages, _, err := c.spreadStages(d, f, &parameterValues{l: l})
	if err != nil || len(stages) != 1 {
		return ""
	}
	s := &stages[0]
	if text := c.asNumbers(s); text != "" {
		return text
	}
	return c.asSlices(s)
}

// asNumbers writes the stage as a function of numbers and the call of Vectorize that
// does the same, if each worker has an element of each array, as broadcasting gives it.
func (c *call) asNumbers(s *stage) string {
	k := s.kernel
	if len(c.outs) != 1 || len(k.f.Results) != 1 || len(k.f.Mems) > 0 || k.observed() {
		return ""
	}
	broadcast := func(x *ir.Lifted) bool {
		b := c.plain.mems[x.Mem]
		want, ok := shape.BroadcastStrides(b.array.shape, b.array.strides, s.space)
		offset, got := c.at(k.given, x.At, &parameterValues{l: c.plain}, len(s.space))
		for d, n := range s.space {
			ok = ok && (n == 1 || got[d] == want[d])
		}
		return ok && offset == b.array.offset
	}
	x := &k.lifted.Results[0]
	if !broadcast(x) || !slices.Equal(c.plain.mems[x.Mem].array.shape, s.space) {
		return ""
	}
	var names, args []string
	for i, q := range k.f.Params {
		x := &k.lifted.Params[i]
		if q.Kind != ir.Scalar || x.Param == ir.None && !broadcast(x) || slices.Contains(names, q.Name) {
			return ""
		}
		if x.Param != ir.None && !uniformOperand(&c.plain.In[x.Param], c.plain.Shape) { // it would broadcast along other dimensions
			return ""
		}
		t := k.f.Types[q.Value]
		if last := len(args) - 1; i > 0 && k.f.Types[k.f.Params[i-1].Value] == t {
			args[last] = strings.TrimSuffix(args[last], " "+DType(t).String())
		}
		names, args = append(names, q.Name), append(args, fmt.Sprintf("%s %v", q.Name, DType(t)))
	}
	body, ok := goText(k.f)
	if !ok {
		return ""
	}
	name := "each" + strings.ToUpper(c.fn.name[:1]) + c.fn.name[1:]
	return fmt.Sprintf("func %s(%s) %v {\n%s}\ngpu.Vectorize(%s)", name, strings.Join(args, ", "), DType(k.f.Results[0]), body,
		strings.Join(append([]string{name}, names...), ", "))
}

var goOperators = map[ir.Op]string{ir.OpAdd: "+", ir.OpSub: "-", ir.OpMul: "*", ir.OpDiv: "/", ir.OpRem: "%", ir.OpAnd: "&", ir.OpOr: "|", ir.OpXor: "^"}

// goText writes the body of a function without control as Go.
func goText(f *ir.Func) (string, bool) {
	var b strings.Builder
	uses := map[ir.Value]int{}
	text := map[ir.Value]string{}
	for _, q := range f.Params {
		text[q.Value] = q.Name
	}
	for i := range f.Body.Instrs {
		for _, v := range f.Body.Instrs[i].Args {
			uses[v]++
		}
	}
	locals := 0
	for i := range f.Body.Instrs {
		in := &f.Body.Instrs[i]
		var a []string
		for _, v := range in.Args {
			a = append(a, text[v])
		}
		if in.Op == ir.OpYield {
			fmt.Fprintf(&b, "\treturn %s\n", bare(a[0]))
			return b.String(), true
		}
		if len(in.Results) != 1 {
			return "", false
		}
		v := in.Results[0]
		t := f.Types[v]
		var x string
		switch op, known := goOperators[in.Op]; {
		case in.Op == ir.OpConst && t == ir.F64:
			c := ir.ToF64(in.Imm)
			if math.IsNaN(c) || math.IsInf(c, 0) || c == 0 && math.Signbit(c) {
				return "", false
			}
			if x = fmt.Sprint(c); !strings.ContainsAny(x, ".e") {
				x += ".0"
			}
		case in.Op == ir.OpConst && t.IsInt():
			x = fmt.Sprintf("%v(%s)", DType(t), ir.FormatBits(t, in.Imm))
		case in.Op == ir.OpMath:
			for i := range a {
				a[i] = bare(a[i])
			}
			x = fmt.Sprintf("%v(%s)", in.Fn, strings.Join(a, ", "))
		case in.Op == ir.OpConvert && t != ir.Bool && f.Types[in.Args[0]] != ir.Bool:
			x = fmt.Sprintf("%v(%s)", DType(t), bare(a[0]))
		case in.Op == ir.OpNeg:
			x = "(-" + a[0] + ")"
		case known && t != ir.Bool:
			x = "(" + a[0] + " " + op + " " + a[1] + ")"
		default:
			return "", false
		}
		if uses[v] > 1 && in.Op != ir.OpConst {
			name := ""
			for name == "" || slices.ContainsFunc(f.Params, func(q ir.Param) bool { return q.Name == name }) {
				locals++
				name = fmt.Sprintf("t%d", locals)
			}
			fmt.Fprintf(&b, "\t%s := %s\n", name, bare(x))
			x = name
		}
		text[v] = x
	}
	return "", false
}

// bare leaves out parentheses around all of x.
func bare(x string) string {
	if !strings.HasPrefix(x, "(") {
		return x
	}
	n := 0
	for i, r := range x {
		switch r {
		case '(':
			n++
		case ')':
			n--
		}
		if n == 0 && i < len(x)-1 {
			return x
		}
	}
	return x[1 : len(x)-1]
}

// steppedAlone reports whether the outermost loop of the stage does no more with the
// arrays that it steps through than take its own part of each, and nothing else with
// its counter or their lengths: then the loop can be left out of the function.
func (s *stage) steppedAlone(c *call) bool {
	k := s.kernel
	stepped := func(m ir.Mem) bool {
		return slices.ContainsFunc(s.of.steps[0], func(x ir.Step) bool { return x.Mem == m })
	}
	own := func(x *ir.Lifted) bool {
		if x.Param != ir.None || !stepped(x.Mem) {
			return true
		}
		_, walks := c.at(k.given, x.At, &parameterValues{l: c.plain}, len(s.space))
		return walks[len(c.loop)] == c.plain.mems[x.Mem].strides[0]
	}
	for i, q := range k.f.Params {
		x := &k.lifted.Params[i]
		if !own(x) {
			return false
		}
		other := q.Kind == ir.Iteration && q.Dim == 0
		if x.Param != ir.None && stepped(q.Mem) { // the function's own: not where an access is, but a number
			other = other || q.Kind == ir.Offset || q.Kind == ir.Shape && q.Dim == 0
		}
		if other && uses(k.f, q.Value) {
			return false
		}
	}
	return !slices.ContainsFunc(k.lifted.Results, func(x ir.Lifted) bool { return !own(&x) })
}

// asSlices writes the call with a layout in which the outermost loop of the stage is
// a loop dimension, and says what changes in the function.
func (c *call) asSlices(s *stage) string {
	if c.layout == nil || len(c.loop) > 0 || len(s.of.steps) == 0 {
		return ""
	}
	if !s.steppedAlone(c) {
		return ""
	}
	// The dimension that the loop goes through, in all arrays.
	name, steps := -1, s.of.steps[0]
	l := c.layout
	cores := slices.Concat(l.In, l.Out)
	var operands []*bound
	for i := range l.In {
		operands = append(operands, &c.args[i])
	}
	for i := range c.outs {
		operands = append(operands, &c.outs[i])
	}
	var fewer []string
	moved := &shape.Layout{Dims: l.Dims}
	for i, b := range operands {
		core := cores[i]
		stepped := b.indexed && slices.ContainsFunc(steps, func(x ir.Step) bool { return x.Mem == b.mem })
		if stepped {
			for _, x := range steps {
				if x.Mem == b.mem && (x.Dim != 0 || x.Times != 1) {
					return ""
				}
			}
			if len(core) == 0 || name >= 0 && core[0] != name || b.core[0] != s.space[0] {
				return ""
			}
			name = core[0]
			core = core[1:]
			switch {
			case len(core) > 0:
				fewer = append(fewer, b.name+" one [] and one index less")
			case b.written:
				fewer = append(fewer, b.name+" the index 0")
			default:
				fewer = append(fewer, b.name+" no [] and no index")
			}
		}
		if i < len(l.In) {
			moved.In = append(moved.In, core)
		} else {
			moved.Out = append(moved.Out, core)
		}
	}
	if name < 0 || slices.ContainsFunc(slices.Concat(moved.In, moved.Out), func(core []int) bool { return slices.Contains(core, name) }) {
		return ""
	}
	args := []string{c.fn.name, fmt.Sprintf("%q", moved.String())}
	for i := range l.In {
		args = append(args, c.args[i].name)
	}
	return fmt.Sprintf("// in %s leave out the loop at %v, and give %s\ngpu.GUVectorize(%s)",
		c.fn.name, s.of.loops[0], strings.Join(fewer, ", "), strings.Join(args, ", "))
}
