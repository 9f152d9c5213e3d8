package cpu

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"gpunotes/gpukit/internal/ir"
)

// Stats are numbers of a block program.
type Stats struct {
	Once      int // operations done once per run, not per worker
	PerRow    int // operations done once per row
	PerColumn int // operations done once per column
	PerLane   int // operations in the body that work on every lane
	Shared    int // operations in the body that work on one value for all lanes
	Buffers   int // block buffers
	Block     int // workers in a block, at most
}

// Stats returns the numbers of the program for the kinds of the arguments that
// l has, or for arrays if l is nil.
func (p *Program) Stats(l *Launch) Stats {
	pl := p.planOf(l)
	s := Stats{Once: len(pl.run), PerRow: len(pl.row), PerColumn: len(pl.column), Block: pl.length}
	for _, n := range pl.buffers {
		s.Buffers += n
	}
	var count func(code []inst)
	count = func(code []inst) {
		for i := range code {
			switch x := &code[i]; {
			case x.branch != nil:
				count(x.branch.arms[0].code)
				count(x.branch.arms[1].code)
			case x.loop != nil:
				count(x.loop.body.code)
			case x.leave != nil || x.next != nil || x.guard != nil:
			case x.frame == frameOne:
				s.Shared++
			default:
				s.PerLane++
			}
		}
	}
	count(pl.body.code)
	return s
}

// Refused says why machine code does not run calls of l's shape and strides, or nil
// if it does. It compiles the code if there is none yet.
func (p *Program) Refused(l *Launch) error {
	_, err := p.variantOf(l)
	return err
}

// variantOf is the machine code for l; l may leave results out.
func (p *Program) variantOf(l *Launch) (*variant, error) {
	switch {
	case p.native == nil && p.meets:
		return nil, errors.New("threads of a block wait for each other, or share memory")
	case p.native == nil:
		return nil, errors.New("the engine is portable")
	}
	if err := p.native.prepare(); err != nil {
		return nil, err
	}
	r := &crew{native: p.native}
	r.prog, r.plain, r.planning, r.launch = p, true, true, *l
	r.pad()
	total, err := r.layout()
	if err != nil {
		return nil, err
	}
	if total == 0 {
		return nil, errors.New("there are no workers")
	}
	r.total = total
	r.chooseLanes()
	if err := r.bindOperands(); err != nil {
		return nil, err
	}
	r.variant()
	return r.v, r.v.err
}

// pad adds results that a launch left out.
func (r *run) pad() {
	l, f := &r.launch, r.prog.f
	for _, t := range f.Results[min(len(l.Out), len(f.Results)):] {
		o := Operand{Type: t, Data: elements[t].no, Strides: make([]int, len(l.Shape))}
		for d, step := len(l.Shape)-1, 1; d >= 0; d-- {
			o.Strides[d] = step
			step *= l.Shape[d]
		}
		l.Out = append(slices.Clip(l.Out), o)
	}
}

// planOf is the plan for a launch of l's shape and strides; l may leave results
// out.
func (p *Program) planOf(l *Launch) *plan {
	classes := make([]class, len(p.f.Params))
	for i := range classes {
		classes[i] = perRow | perLane | ragged
	}
	if l != nil {
		r := &run{prog: p, launch: *l, planning: true}
		for _, t := range p.f.Results[min(len(l.Out), len(p.f.Results)):] {
			r.launch.Out = append(slices.Clip(r.launch.Out), Operand{Type: t})
		}
		if total, err := r.layout(); err == nil && total > 0 {
			r.classify(total)
			classes = r.classes
		}
	}
	return p.planFor(classes)
}

// Describe writes the block program as text: what is computed when, and in
// which slots. It is for the kinds of the arguments that l has, or for arrays
// if l is nil.
//
// A slot is written as its type and number; with a dot behind, it holds one
// value for all lanes.
//
// Where machine code runs such calls it is its listing instead.
func (p *Program) Describe(l *Launch) string {
	if p.native != nil && l != nil {
		if v, err := p.variantOf(l); err == nil {
			return v.describe(p.native)
		}
	}
	pl := p.planOf(l)
	d := &describer{p: pl}
	fmt.Fprintf(&d.b, "%s: blocks of up to %d workers, about %.0f ns per worker\n", pl.f.Name, pl.length, pl.cost)
	for i, q := range pl.f.Params {
		kind := map[class]string{0: "one value", perRow: "one value per row", perLane: "one value per column", perRow | perLane: "an array"}[pl.class[i].kind()]
		fmt.Fprintf(&d.b, "  %s = %s, %s\n", d.ref(pl.params[i]), q.Name, kind)
	}
	for _, c := range pl.consts {
		fmt.Fprintf(&d.b, "  %s = %s\n", d.ref(c.ref), ir.FormatBits(c.t, c.bits))
	}
	for _, part := range []struct {
		when string
		code []inst
	}{{"once per run", pl.run}, {"once per column", pl.column}, {"once per row", pl.row}, {"per block", pl.body.code}} {
		if len(part.code) > 0 {
			fmt.Fprintf(&d.b, "%s:\n", part.when)
			d.code(part.code, 1)
		}
	}
	return d.b.String()
}

type describer struct {
	p *plan
	b strings.Builder
}

func (d *describer) ref(r ref) string {
	if r.slot == noSlot {
		return "a ramp"
	}
	if r.one {
		return fmt.Sprintf("%v#%d.", r.t, r.slot)
	}
	return fmt.Sprintf("%v#%d", r.t, r.slot)
}

func (d *describer) refs(rs []ref) string {
	s := make([]string, len(rs))
	for i, r := range rs {
		s[i] = d.ref(r)
	}
	return strings.Join(s, ", ")
}

func (d *describer) moves(ts []transfer) string {
	s := make([]string, len(ts))
	for i, t := range ts {
		s[i] = d.ref(t.dst) + " = " + d.ref(t.src)
	}
	return strings.Join(s, ", ")
}

// slot is the ref of a slot by its number.
func (d *describer) slot(t ir.Type, slot int32) string {
	return d.ref(ref{t, slot, d.p.buffer[t][slot] == oneBuffer})
}

func (d *describer) code(code []inst, depth int) {
	indent := strings.Repeat("  ", depth)
	for i := range code {
		x := &code[i]
		d.b.WriteString(indent)
		switch {
		case x.branch != nil:
			if len(x.branch.results) > 0 {
				d.b.WriteString(d.refs(x.branch.results) + " = ")
			}
			fmt.Fprintf(&d.b, "if %s\n", d.ref(x.branch.cond))
			d.code(x.branch.arms[0].code, depth+1)
			fmt.Fprintf(&d.b, "%selse\n", indent)
			d.code(x.branch.arms[1].code, depth+1)
		case x.loop != nil:
			if len(x.loop.results) > 0 {
				d.b.WriteString(d.refs(x.loop.results) + " = ")
			}
			fmt.Fprintf(&d.b, "loop with %s\n", d.moves(x.loop.carried))
			d.code(x.loop.body.code, depth+1)
		case x.leave != nil:
			fmt.Fprintf(&d.b, "leave %d %s\n", len(x.leave.past), d.refs(x.leave.vals))
		case x.next != nil:
			fmt.Fprintf(&d.b, "next %s\n", d.moves(x.next.moves))
		case x.form == "spread":
			t := ir.Type(x.t)
			fmt.Fprintf(&d.b, "%s = spread %s\n", d.slot(t, x.d), d.slot(t, x.a))
		case x.guard != nil:
			fmt.Fprintf(&d.b, "guard %v %s\n", x.src.Op, d.refs(x.guard.args))
		case x.src.Op == ir.OpUnreachable:
			d.b.WriteString("unreachable\n")
		default:
			d.operation(x)
		}
	}
}

func (d *describer) operation(x *inst) {
	f, in := d.p.f, x.src
	name := in.Op.String()
	if in.Op == ir.OpMath {
		name = in.Fn.String()
	}
	switch x.form {
	case "part":
		fmt.Fprintf(&d.b, "%s = %v %s", d.slot(ir.I64, x.d), x.op, d.slot(ir.I64, x.a))
		if x.op != ir.OpNeg {
			d.b.WriteString(", " + d.slot(ir.I64, x.b))
		}
		d.b.WriteByte('\n')
		return
	}
	slots := []int32{x.a, x.b, x.c}
	switch {
	case x.first != nil:
		args := []string{d.slot(ir.F64, x.a), d.slot(ir.F64, x.b), d.slot(ir.F64, x.c)}
		op := [2]string{x.first.Op.String(), name}
		if x.src.Op == ir.OpSub && x.src.Args[1] == x.first.Results[0] {
			fmt.Fprintf(&d.b, "%s = %s %s, (%s %s, %s)\n", d.slot(ir.F64, x.d), op[1], args[2], op[0], args[0], args[1])
		} else {
			fmt.Fprintf(&d.b, "%s = %s (%s %s, %s), %s\n", d.slot(ir.F64, x.d), op[1], op[0], args[0], args[1], args[2])
		}
		return
	case in.Op == ir.OpSelect:
		slots = []int32{x.c, x.a, x.b}
	case x.form == "sv":
		slots = []int32{x.b, x.a}
	}
	args := make([]string, len(in.Args))
	if x.form == "ramp" && x.src.Op != ir.OpLoad && x.src.Op != ir.OpStore {
		fmt.Fprintf(&d.b, "%s = ramp %s, %s\n", d.slot(ir.I64, x.d), d.slot(ir.I64, x.a), d.slot(ir.I64, x.b))
		return
	}
	for i, a := range in.Args {
		if x.print != nil {
			args[i] = d.ref(x.print[i])
		} else {
			args[i] = d.slot(f.Types[a], slots[i])
		}
	}
	switch in.Op {
	case ir.OpLoad, ir.OpStore:
		name += fmt.Sprintf(" [%s] %s", x.form, f.Mems[in.Mem].Name)
	case ir.OpAtomic:
		name += " " + atomicNames[in.Kind] + " " + f.Mems[in.Mem].Name
	case ir.OpClear:
		name += " " + f.Mems[in.Mem].Name
	}
	if x.d != noSlot && len(in.Results) == 1 {
		name = d.slot(f.Types[in.Results[0]], x.d) + " = " + name
	}
	d.b.WriteString(strings.TrimSpace(name+" "+strings.Join(args, ", ")) + "\n")
}
