package gpukit

import (
	"fmt"
	"html"
	"strings"

	"gpunotes/gpukit/internal/shape"
)

// Plan says how a call would run. Explain returns it; as the last line of a
// cell it shows itself.
type Plan struct {
	Func       string         // the function's name
	Device     string         // the device with its settings
	Engine     string         // what executes the kernel
	LoopDims   []int          // the shape over which workers are spread
	Workers    int            // their number: one evaluation of the function each
	Goroutines int            // at most so many run at the same time
	Args       []PlanArgument // in the order of the parameters, captured variables last
	Result     DType
	BytesIn    int    // read from memory; numbers and generated arrays have none
	BytesOut   int    // written
	IR         string // the function in the intermediate representation, optimised
	Code       string // what the engine executes
}

// PlanArgument is one argument of the call that a Plan explains.
type PlanArgument struct {
	Name  string
	DType DType
	Kind  string // "array", "generated array", "number" or "captured variable"
	Shape []int
	Note  string // how it is walked, e.g. "contiguous" or "repeats along dimension 0"
	Bytes int    // of memory read
}

// Explain compiles fn for the arguments as Vectorize would, runs nothing, and
// says how it would run. The errors are those of Vectorize.
func (d *Device) Explain(fn any, args ...any) (*Plan, error) {
	c, err := d.prepare("Explain", fn, args)
	if err != nil {
		return nil, err
	}
	src := c.fn.source
	p := &Plan{
		Func:       c.fn.name,
		Device:     d.String(),
		Engine:     "portable: every operation over a block of elements, in Go",
		LoopDims:   c.loop,
		Goroutines: d.workers(),
		Result:     DType(src.Results[0]),
		IR:         c.prog.ir.String(),
	}
	l := d.launch(c, nil)
	p.Code = c.prog.cpu.Describe(&l)
	p.Workers, _ = shape.Size(c.loop)
	p.BytesOut = p.Workers * p.Result.Size()
	for i, t := range c.types() {
		a := PlanArgument{Name: src.Func.Params[i].Name, DType: DType(t), Kind: "number", Note: "the same for every worker"}
		if i >= len(src.Params) {
			a.Kind = "captured variable"
		}
		if arr := c.args[i].array; arr != nil {
			a.describe(arr, c.loop)
		}
		p.BytesIn += a.Bytes
		p.Args = append(p.Args, a)
	}
	return p, nil
}

func (p *PlanArgument) describe(a *Array, loop []int) {
	p.Kind, p.Shape, p.Note = "array", a.Shape(), "strided"
	if a.contiguous() {
		p.Note = "contiguous"
	}
	var repeats []string
	distinct := 1
	st, _ := shape.BroadcastStrides(a.shape, a.strides, loop)
	for i, n := range loop {
		if st[i] == 0 && n > 1 {
			repeats = append(repeats, fmt.Sprint(i))
		} else {
			distinct *= n
		}
	}
	if len(repeats) == 1 {
		p.Note = "repeats along dimension " + repeats[0]
	} else if len(repeats) > 1 {
		p.Note = "repeats along dimensions " + strings.Join(repeats, ", ")
	}
	if g, ok := a.store.(*generator); ok {
		p.Kind = "generated array"
		p.Note = g.String() + ", " + p.Note
		return
	}
	p.Bytes = distinct * p.DType.Size()
}

// bytes writes n in binary units, as nvprof does.
func bytes(n int) string {
	x, unit := float64(n), "B"
	for _, u := range []string{"KB", "MB", "GB", "TB"} {
		if x < 1024 {
			break
		}
		x, unit = x/1024, u
	}
	return fmt.Sprintf("%.5g%s", x, unit)
}

// rows are the facts of the plan, one a line.
func (p *Plan) rows() [][2]string {
	return [][2]string{
		{"function", p.Func},
		{"device", p.Device},
		{"engine", p.Engine},
		{"loop dimensions", shape.Format(p.LoopDims)},
		{"workers", p.workers()},
		{"memory", fmt.Sprintf("%s read, %s written", bytes(p.BytesIn), bytes(p.BytesOut))},
		{"result", fmt.Sprintf("%v %s", p.Result, shape.Format(p.LoopDims))},
	}
}

// workers does not name the number of processors: a plan reads the same on every
// machine.
func (p *Plan) workers() string {
	if p.Goroutines == 1 {
		return fmt.Sprintf("%d, one after the other", p.Workers)
	}
	return fmt.Sprintf("%d, in blocks over all processors", p.Workers)
}

func (a *PlanArgument) cells() []string {
	s := "-"
	if a.Shape != nil {
		s = shape.Format(a.Shape)
	}
	return []string{a.Name, a.DType.String(), a.Kind, s, bytes(a.Bytes), a.Note}
}

var argumentHeader = []string{"parameter", "dtype", "argument", "shape", "bytes", "access"}

// String returns the whole plan as text.
func (p *Plan) String() string {
	if p == nil {
		return "<nil *gpukit.Plan>"
	}
	var b strings.Builder
	for _, r := range p.rows() {
		fmt.Fprintf(&b, "%-16s %s\n", r[0], r[1])
	}
	b.WriteByte('\n')
	table := [][]string{argumentHeader}
	for i := range p.Args {
		table = append(table, p.Args[i].cells())
	}
	width := make([]int, len(argumentHeader))
	for _, r := range table {
		for i, c := range r {
			width[i] = max(width[i], len(c))
		}
	}
	for _, r := range table {
		for i, c := range r {
			fmt.Fprintf(&b, "%-*s  ", width[i], c)
		}
		b.WriteByte('\n')
	}
	fmt.Fprintf(&b, "\nIR, optimised:\n%s\ncode:\n%s", p.IR, p.Code)
	return b.String()
}

// HTML returns the plan for the notebook: the facts and arguments as tables, IR
// and code folded.
func (p *Plan) HTML() string {
	if p == nil {
		return "<pre>" + html.EscapeString(p.String()) + "</pre>"
	}
	var b strings.Builder
	row := func(tag string, cells ...string) {
		b.WriteString("<tr>")
		for _, c := range cells {
			fmt.Fprintf(&b, "<%s style=\"text-align:left\">%s</%s>", tag, html.EscapeString(c), tag)
		}
		b.WriteString("</tr>")
	}
	b.WriteString("<div><table>")
	for _, r := range p.rows() {
		row("td", r[0], r[1])
	}
	b.WriteString("</table><table>")
	row("th", argumentHeader...)
	for i := range p.Args {
		row("td", p.Args[i].cells()...)
	}
	fmt.Fprintf(&b, "</table><details><summary>IR, optimised</summary><pre>%s</pre></details><details><summary>code</summary><pre>%s</pre></details></div>",
		html.EscapeString(p.IR), html.EscapeString(p.Code))
	return b.String()
}
