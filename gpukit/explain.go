package gpukit

import (
	"fmt"
	"html"
	"slices"
	"strings"

	"gpunotes/gpukit/internal/ir"
	"gpunotes/gpukit/internal/shape"
)

// Plan says how a call would run. Explain returns it; as the last line of a
// cell it shows itself.
type Plan struct {
	Func       string         // the function's name
	Device     string         // the device with its settings
	Engine     string         // what executes the kernel
	Layout     string         // of GUVectorize
	Grid       Grid           // of Launch, and of every call on a GPU
	Block      Block          // of Launch, and of every call on a GPU
	LoopDims   []int          // the shape over which calls of the function are spread
	IndexSpace []int          // LoopDims, and the iterations of the loops that were taken
	Workers    int            // the number of its elements, which are the workers
	Loops      []PlanLoop     // what became of the loops of the function
	Goroutines int            // at most so many run at the same time; 0 on a GPU
	Args       []PlanArgument // parameters, captured variables
	Results    []PlanArgument // of Vectorize and GUVectorize
	BytesIn    int            // read from memory; numbers and generated arrays have none
	BytesOut   int            // written
	Registers  int            // of a thread, on a GPU
	Shared     int            // bytes of shared memory of a block of Launch, SharedBytes included
	BlocksHeld int            // so many blocks like Block does a multiprocessor hold at a time; 0 if none can run, or without a GPU
	Occupancy  float64        // the warps of these blocks as a share of all that it could hold; 0 without a GPU
	HtoD       int            // bytes that the call copies to a GPU
	DtoH       int            // and back
	Instead    string         // what to write for more workers, ready to paste; "" if gpukit knows nothing
	Note       string         // what makes the call slow or a mistake, with the remedy, or why a GPU would refuse it; "" if gpukit sees nothing
	Tables     []PlanTable    // what is computed once for many workers
	Machine    []PlanMachine  // of each stage, its machine code for the processor
	SelfCheck  string         // what is compared with the reference evaluator, or why nothing is
	IR         string         // the function in the intermediate representation, optimised
	Code       string         // what the engine executes

	launch, onGPU bool
	geometry      string    // why the block of a GPU has its size
	held          occupancy // of a GPU
}

// PlanMachine tells of the machine code of a stage of a call. Instructions of a loop
// and of what seldom runs are counted once.
type PlanMachine struct {
	Stage        string // the function, or the part of it
	Width        int    // bits of a register
	Lanes        int    // workers that run at a time
	Instructions int    // in all
	PerElement   float64
	Spills       int      // values that live in memory, for want of registers
	Constants    int      // that are in registers before the loop over the workers
	PerCall      int      // instructions before it, besides
	PerRow       int      // instructions before each row of workers
	InGo         []string // what the code lets Go carry out, worker by worker: slow if it is much
}

// String says it in a line.
func (m PlanMachine) String() string {
	s := fmt.Sprintf("%d workers at a time in registers of %d bits, %d instructions (%.3g per element)", m.Lanes, m.Width, m.Instructions, m.PerElement)
	if m.Spills > 0 {
		s += fmt.Sprintf(", %d values in memory", m.Spills)
	}
	var hoisted []string
	add := func(n int, what, whats string) {
		switch {
		case n == 1:
			hoisted = append(hoisted, "1 "+what)
		case n > 1:
			hoisted = append(hoisted, fmt.Sprintf("%d %s", n, whats))
		}
	}
	add(m.Constants, "constant", "constants")
	add(m.PerCall, "instruction per call", "instructions per call")
	add(m.PerRow, "instruction per row", "instructions per row")
	if len(hoisted) > 0 {
		s += ", out of the loop over them: " + strings.Join(hoisted, ", ")
	}
	if len(m.InGo) > 0 {
		s += ", in Go: " + strings.Join(m.InGo, ", ")
	}
	return s
}

// PlanArgument is one argument of the call that a Plan explains.
type PlanArgument struct {
	Name  string
	DType DType
	Kind  string // "array", "generated array", "number", "captured variable" or "result"
	Shape []int
	Note  string // how it is walked, e.g. "contiguous" or "repeats along dimension 0"
	Bytes int    // of memory read
}

// Explain compiles fn for the arguments as Vectorize would, runs nothing, and
// says how it would run: what becomes of each loop of fn, over which index space the
// workers are spread, how each argument is read, and the code. The errors are those
// of Vectorize.
func (d *Device) Explain(fn any, args ...any) (*Plan, error) {
	return d.explainSpread("Explain", fn, nil, args)
}

// ExplainGU is Explain for GUVectorize.
func (d *Device) ExplainGU(fn any, layout string, args ...any) (*Plan, error) {
	return d.explainSpread("ExplainGU", fn, &layout, args)
}

// ExplainLaunch is Explain for Launch. What the kernel needs is in the plan: registers and shared
// memory, how many blocks a multiprocessor of the GPU then holds, and, as a Note, why
// the GPU would refuse the launch.
func (d *Device) ExplainLaunch(kernel any, grid Grid, block Block, args ...any) (*Plan, error) {
	c, err := d.launched("ExplainLaunch", kernel, grid, block, args)
	if err != nil {
		return nil, err
	}
	return d.plan(c)
}

func (d *Device) explainSpread(op string, fn any, layout *string, args []any) (*Plan, error) {
	c, err := d.spread(op, fn, layout, anyNumber, args)
	if err != nil {
		return nil, err
	}
	p, err := d.plan(c)
	if err == nil && layout != nil {
		p.Layout = *layout
		if p.Note == "" {
			p.Note = c.lonely(p.Workers)
		}
	}
	return p, err
}

// manyElements is how many elements are too many for one worker.
const manyElements = 1024

// lonely says that a gufunc has one worker for many elements.
func (c *call) lonely(workers int) string {
	most := 0
	for _, list := range [][]bound{c.args, c.outs} {
		for i := range list {
			if n, ok := shape.Size(list[i].core); ok && list[i].indexed {
				most = max(most, n)
			}
		}
	}
	if workers != 1 || most < manyElements {
		return ""
	}
	return fmt.Sprintf("1 worker for %d elements: use Vectorize for a function of numbers, or move a dimension out of the layout", most)
}

// unshared says that the threads of a kernel wait for each other but share no memory,
// though each has an array: the call of simt.Shared may be missing.
func (c *call) unshared() string {
	waits, own := false, ""
	for _, m := range c.prog.ir.Mems {
		switch {
		case m.Space == ir.Shared:
			return ""
		case m.Space == ir.Local && own == "":
			own = m.Name
		}
	}
	ir.Walk(c.prog.ir.Body, func(in *ir.Instr) { waits = waits || in.Op == ir.OpBarrier })
	if !waits || own == "" {
		return ""
	}
	return fmt.Sprintf("the threads wait for each other, but each has its own %s: for one of the whole block write simt.Shared(&%s) below its declaration", own, own)
}

// plan describes a call that is ready to run.
func (d *Device) plan(c *call) (*Plan, error) {
	p := &Plan{
		Func:       c.fn.name,
		Device:     d.label(),
		LoopDims:   c.loop,
		Goroutines: d.workers(),
		IR:         c.prog.ir.String(),
	}
	p.Workers, _ = shape.Size(c.loop)
	for i := range c.args {
		a := c.args[i].describe(c.loop, d.gpu != nil)
		if c.grid.X == 0 || c.args[i].read || c.args[i].captured {
			p.BytesIn += a.Bytes
		}
		if c.args[i].written {
			p.BytesOut += a.Bytes
		}
		p.Args = append(p.Args, a)
	}
	for i := range c.outs {
		a := c.outs[i].describe(c.loop, d.gpu != nil)
		a.Kind = "result"
		p.BytesOut += a.Bytes
		p.Results = append(p.Results, a)
	}
	p.Grid, p.Block, p.launch = c.grid, c.block, c.grid.X > 0
	if p.launch {
		p.Shared, _ = c.shared(d)
		p.Note = c.unshared()
	}
	if err := d.engine.describe(d, c, p); err != nil {
		return nil, err
	}
	c.loops(d, p)
	p.SelfCheck = c.selfCheck(d)
	return p, nil
}

// stages takes the code of the stages, each written by code.
func (p *Plan) stages(stages []stage, code func(*stage) string) {
	p.IR, p.Code = "", ""
	for i := range stages {
		s := &stages[i]
		if len(stages) > 1 {
			p.IR += s.name + "\n"
			p.Code += s.name + "\n"
		}
		p.Tables = append(p.Tables, s.planTables()...)
		p.IR += s.f.String()
		p.Code += code(s)
	}
}

// describe says how the workers walk an argument or result.
func (b *bound) describe(loop []int, onGPU bool) PlanArgument {
	p := PlanArgument{Name: b.name, Kind: "number", Note: "the same for every worker"}
	if b.captured {
		p.Kind = "captured variable"
	}
	if b.array == nil {
		if len(b.types) != 1 {
			p.Kind = fmt.Sprintf("%d numbers", len(b.types))
		}
		if len(b.types) > 0 {
			p.DType = DType(b.types[0])
		}
		return p
	}
	a := b.array
	p.DType, p.Shape = a.DType(), a.Shape()
	if b.captured {
		return p
	}
	p.Kind, p.Note = "array", "strided"
	if a.contiguous() {
		p.Note = "contiguous"
	}
	if b.indexed {
		p.Note += fmt.Sprintf(", each worker sees %s", shape.Format(b.core))
	}
	var repeats []string
	distinct, _ := shape.Size(b.core)
	if !b.indexed {
		distinct = 1
	}
	wide := 0 // dimensions with more than one worker
	for i, n := range loop {
		if n > 1 {
			wide++
		}
		if b.loop[i] == 0 && n > 1 {
			repeats = append(repeats, fmt.Sprint(i))
		} else {
			distinct *= n
		}
	}
	if len(repeats) > 0 {
		how := "repeats along dimension " + repeats[0]
		switch {
		case len(repeats) == wide:
			how = "the same for every worker"
		case len(repeats) > 1:
			how = "repeats along dimensions " + strings.Join(repeats, ", ")
		}
		if b.indexed {
			how = p.Note + ", " + how
		}
		p.Note = how
	}
	if g, ok := a.store.(*generator); ok {
		p.Kind = "generated array"
		p.Note = g.String() + ", " + p.Note
		if b.indexed && !onGPU {
			p.Note += ", written to memory for the call"
			p.Bytes = g.n * p.DType.Size()
		}
		return p
	}
	p.Bytes = distinct * p.DType.Size()
	return p
}

// bytes writes a size in binary units, as nvprof does.
func bytes[T int | float64](n T) string {
	x, unit := float64(n), "B"
	for _, u := range []string{"KB", "MB", "GB", "TB", "PB"} {
		if x < 1024 {
			break
		}
		x, unit = x/1024, u
	}
	return fmt.Sprintf("%.5g%s", x, unit)
}

// rows are the facts of the plan, one a line.
func (p *Plan) rows() [][2]string {
	r := [][2]string{
		{"function", p.Func},
		{"device", p.Device},
		{"engine", p.Engine},
	}
	if p.Layout != "" {
		r = append(r, [2]string{"layout", p.Layout})
	}
	if !p.launch {
		r = append(r, [2]string{"loop dimensions", shape.Format(p.LoopDims)})
		if len(p.IndexSpace) > len(p.LoopDims) {
			r = append(r, [2]string{"index space", shape.Format(p.IndexSpace)})
		}
		r = append(r, [2]string{"workers", p.workers()})
	}
	for _, l := range p.Loops {
		r = append(r, [2]string{"loop", l.String()})
	}
	if p.Grid.X > 0 {
		r = append(r, [2]string{"grid, block", fmt.Sprintf("%v blocks of %v threads%s", p.Grid, p.Block, p.geometry)})
	}
	if p.launch {
		r = append(r, [2]string{"threads", p.workers()})
	}
	if p.onGPU {
		r = append(r, [2]string{"registers", fmt.Sprintf("%d a thread", p.Registers)})
	}
	if p.launch {
		r = append(r, [2]string{"shared memory", bytes(p.Shared) + " a block"})
	}
	if p.onGPU {
		r = append(r, [2]string{"occupancy", p.held.String()},
			[2]string{"copies", fmt.Sprintf("%s to the device, %s back", bytes(p.HtoD), bytes(p.DtoH))})
	}
	if p.Note != "" {
		r = append(r, [2]string{"note", p.Note})
	}
	for _, m := range p.Machine {
		at := ""
		if len(p.Machine) > 1 {
			at = m.Stage + ": "
		}
		r = append(r, [2]string{"machine code", at + m.String()})
	}
	for _, t := range p.Tables {
		r = append(r, [2]string{"computed once", t.String()})
	}
	return append(r, [2]string{"memory", fmt.Sprintf("%s read, %s written", bytes(p.BytesIn), bytes(p.BytesOut))},
		[2]string{"self-check", p.SelfCheck})
}

// all are the arguments and the results.
func (p *Plan) all() []PlanArgument { return append(slices.Clip(p.Args), p.Results...) }

// workers does not name the number of processors: a plan reads the same on every
// machine.
func (p *Plan) workers() string {
	if p.Workers <= 1 || p.onGPU {
		return fmt.Sprint(p.Workers)
	}
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
	for _, a := range p.all() {
		table = append(table, a.cells())
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
	if p.Instead != "" {
		fmt.Fprintf(&b, "\nfor more workers, write instead:\n%s\n", p.Instead)
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
	for _, a := range p.all() {
		row("td", a.cells()...)
	}
	b.WriteString("</table>")
	if p.Instead != "" {
		fmt.Fprintf(&b, "<p>for more workers, write instead:</p><pre>%s</pre>", html.EscapeString(p.Instead))
	}
	fmt.Fprintf(&b, "<details><summary>IR, optimised</summary><pre>%s</pre></details><details><summary>code</summary><pre>%s</pre></details></div>",
		html.EscapeString(p.IR), html.EscapeString(p.Code))
	return b.String()
}
