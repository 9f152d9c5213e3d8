package gpukit

import (
	"fmt"
	"math/bits"
	"slices"
	"strings"
	"sync"

	"gpunotes/gpukit/internal/cpu"
	"gpunotes/gpukit/internal/ir"
	"gpunotes/gpukit/internal/shape"
)

// What depends on some dimensions of the index space only is computed once for
// each place on them, by a stage of its own, into a table that the workers then
// read; what is the same for all workers is computed here, before the stages run.
// ir.HoistAxes cuts the function; this file decides what pays, and binds the parts.

const (
	// Below so many workers nothing is taken out, and nobody looks.
	hoistFrom = 4096
	// A table must have at most a part of the elements that there are workers.
	hoistRatio = 3
	// What one more launch costs, in seconds: assumed, on a GPU 5 us, the usual
	// figure for an empty kernel, on cores as much as a call of ten elements.
	gpuLaunchTime, coreLaunchTime = 5e-6, 5e-6
	// What the evaluator takes for the numbers that are the same for all workers,
	// assumed, and how many instructions it may run: beyond that workers compute them.
	hostTime, hostSteps = 10e-6, 1 << 12
	// Simple operations in a second: of a core, in loops over blocks and as machine
	// code, assumed, and of a multiprocessor in a clock, those of one warp.
	blockSpeed, laneSpeed, clockSpeed = 1.5e9, 1e10, ir.WarpSize
	// In rows of so many workers the portable engine itself computes once what does
	// not change along them, and once for all rows what changes along them alone.
	ownRows = 64
)

// tablePays overrides what pays, for tests.
var tablePays func(on ir.Axes, saved int) bool

// hoistings are the ways in which a kernel was cut, by what its parameters depend
// on and, roughly, the sizes of the index space; nil where nothing pays.
type hoistings struct {
	mu   sync.Mutex
	kind map[string]*hoisting
	cut  map[string]*hoisting // by what came out
}

// hoisting is a kernel cut into tables and what remains.
type hoisting struct {
	main   *kernel
	tables []tableKernel
	host   *ir.Func // what is the same for all workers, nil if nothing is
	uses   []int    // the parameters of the kernel that host has
	places []ir.Pos // of its results

	mu      sync.Mutex
	tooLong bool // the evaluator did not get through host
}

// tableKernel computes a table.
type tableKernel struct {
	*kernel
	axes ir.Axes
	uses []int    // the parameters of the kernel that it has
	pos  []ir.Pos // of its results
}

// withTables puts before each stage those that compute its tables.
func (c *call) withTables(d *Device, stages []stage) ([]stage, error) {
	if c.block.X > 0 {
		return stages, nil
	}
	var all []stage
	for i := range stages {
		cut, err := stages[i].cutTables(d)
		if err != nil {
			return nil, err
		}
		if cut != nil && all == nil {
			all = slices.Clone(stages[:i])
		}
		if cut != nil {
			all = append(all, cut...)
		} else if all != nil {
			all = append(all, stages[i])
		}
	}
	if all == nil {
		return stages, nil
	}
	return all, nil
}

// cutTables is the stage as tables and what remains, nil if it stays as it is.
func (s *stage) cutTables(d *Device) ([]stage, error) {
	n, _ := shape.Size(s.Shape)
	if n == 0 || n < hoistFrom && tablePays == nil || len(s.Shape) > 64 {
		return nil, nil
	}
	varies := make([]ir.Axes, len(s.In))
	var key strings.Builder
	var any ir.Axes
	for i := range s.In {
		varies[i] = s.varies(&s.In[i])
		any |= varies[i]
		fmt.Fprintf(&key, "%x ", varies[i])
	}
	if any == 0 {
		return nil, nil
	}
	for _, n := range s.Shape {
		fmt.Fprint(&key, bits.Len(uint(n)), ",")
	}
	h, err := s.hoist(d, key.String(), varies)
	if h == nil || err != nil {
		return nil, err
	}
	return s.bindTables(d, h)
}

// varies says on which dimensions an operand depends.
func (s *stage) varies(o *cpu.Operand) (on ir.Axes) {
	for dim, st := range o.Strides {
		if st != 0 && s.Shape[dim] > 1 {
			on |= 1 << dim
		}
	}
	if _, far := o.Data.(quiet); on == 0 && far {
		return 1<<len(s.Shape) - 1 // to read it here would take longer than anything
	}
	return on
}

func (s *stage) hoist(d *Device, key string, varies []ir.Axes) (*hoisting, error) {
	hs := &s.kernel.hoistings
	hs.mu.Lock()
	defer hs.mu.Unlock()
	if h, ok := hs.kind[key]; ok && tablePays == nil {
		return h, nil
	}
	if hs.kind == nil || len(hs.kind) >= maxVariants {
		hs.kind, hs.cut = map[string]*hoisting{}, map[string]*hoisting{}
	}
	main, tables := ir.HoistAxes(s.f, varies, s.pays(d))
	var h *hoisting
	if len(tables) > 0 {
		var cut strings.Builder
		fmt.Fprint(&cut, main)
		for _, t := range tables {
			fmt.Fprint(&cut, t.Axes, t.Func)
		}
		if h = hs.cut[cut.String()]; h == nil {
			h = &hoisting{}
			var err error
			if h.main, err = newKernel(main).compiled(d); err != nil {
				return nil, err
			}
			for _, t := range tables {
				f, uses := alone(t.Func)
				if t.Axes == 0 { // the last one
					h.host, h.uses, h.places = f, uses, t.Pos
					continue
				}
				k, err := newKernel(f).compiled(d)
				if err != nil {
					return nil, err
				}
				h.tables = append(h.tables, tableKernel{k, t.Axes, uses, t.Pos})
			}
			hs.cut[cut.String()] = h
		}
	}
	if tablePays == nil {
		hs.kind[key] = h
	}
	return h, nil
}

// alone leaves out the memories of f, which it does not access, and the parameters
// that it does not use; the others are numbers and places like any.
func alone(f *ir.Func) (*ir.Func, []int) {
	used := make([]bool, len(f.Types))
	ir.Walk(f.Body, func(in *ir.Instr) {
		for _, a := range in.Args {
			used[a] = true
		}
	})
	g := *f
	g.Params, g.Mems = nil, nil
	var which []int
	for i, p := range f.Params {
		if !used[p.Value] {
			continue
		}
		q := ir.Param{Name: p.Name, Value: p.Value, Kind: ir.Scalar}
		if p.Kind == ir.Offset || p.Kind == ir.Iteration {
			q.Kind = ir.Iteration
		}
		g.Params, which = append(g.Params, q), append(which, i)
	}
	return &g, which
}

// pays says which tables are worth a launch.
func (s *stage) pays(d *Device) func(on ir.Axes, saved int) bool {
	if tablePays != nil {
		return tablePays
	}
	n, _ := shape.Size(s.Shape)
	speed, launch := blockSpeed*float64(d.workers()), coreLaunchTime
	inGo := d.engine == engine(cores{cpu.Portable})
	switch {
	case d.gpu == nil && !inGo:
		speed = laneSpeed * float64(d.workers())
	case d.gpu != nil:
		i := &d.gpu.info
		speed, launch = clockSpeed*float64(i.Multiprocessors)*i.Clock, gpuLaunchTime
	}
	return func(on ir.Axes, saved int) bool {
		time := float64(n) * float64(saved) / speed
		switch {
		case on == 0 && d.gpu != nil:
			return time > 2*hostTime
		case on == 0: // machine code would compute it for every group of lanes
			return !inGo && time > 2*launch
		case inGo && s.ownRow(on):
			return false
		}
		return s.size(on)*hoistRatio <= n && time > 2*launch
	}
}

// ownRow reports whether the portable engine computes what depends on these
// dimensions once in a row, or once for all rows.
func (s *stage) ownRow(on ir.Axes) bool {
	dims, keep := s.joined()
	if len(dims) == 0 || dims[len(dims)-1] < ownRows {
		return false
	}
	first := 0 // of the dimensions that are a row
	if len(keep) > 1 {
		first = keep[len(keep)-2] + 1
	}
	return on>>first == 0 || on>>first<<first == on
}

// size is the number of places on some dimensions.
func (s *stage) size(on ir.Axes) int {
	n := 1
	for d, k := range s.Shape {
		if on.Has(d) {
			n *= k
		}
	}
	return n
}

// along says in words how often a table is computed.
func (s *stage) along(on ir.Axes) string {
	var wide, names []string
	for d, n := range s.Shape {
		if n > 1 {
			wide = append(wide, fmt.Sprint(d))
		}
		if on.Has(d) {
			names = append(names, fmt.Sprint(d))
		}
	}
	switch {
	case len(names) == 0:
		return "per call"
	case len(names) > 1:
		return "per index of dimensions " + strings.Join(names, ", ")
	case len(wide) == 2 && names[0] == wide[0]:
		return "per row"
	case len(wide) == 2:
		return "per column"
	}
	return "per index of dimension " + names[0]
}

// bindTables makes the stages of a hoisting.
func (s *stage) bindTables(d *Device, h *hoisting) ([]stage, error) {
	main := *s
	l := *s.launch
	main.kernel, main.launch, main.hoisting = h.main, &l, h
	l.In, l.in, l.nums = slices.Clone(s.In), slices.Clone(s.in), slices.Clone(s.nums)
	var stages []stage
	for i := range h.tables {
		t := s.table(d, &h.tables[i])
		for j, o := range t.Out {
			// The workers walk it on the dimensions that it has.
			steps, k := make([]int, len(s.Shape)), 0
			for dim := range s.Shape {
				if h.tables[i].axes.Has(dim) {
					steps[dim] = o.Strides[k]
					k++
				}
			}
			o.Strides = steps
			l.In, l.in, l.nums = append(l.In, o), append(l.in, t.out[j]), append(l.nums, nil)
		}
		stages = append(stages, t)
	}
	if h.host != nil {
		out, ok := h.numbers(s)
		if !ok {
			return nil, nil
		}
		for i, b := range out {
			l.In, l.in, l.nums = append(l.In, cpu.Operand{Type: h.host.Results[i], Scalar: b}), append(l.in, nil), append(l.nums, nil)
		}
	}
	return append(stages, main), nil
}

// table is the stage that computes a table.
func (s *stage) table(d *Device, t *tableKernel) stage {
	l := &launch{Launch: s.Launch}
	l.Shape, l.In, l.Out, l.Mems = nil, nil, nil, nil
	var keep []int
	for dim, n := range s.Shape {
		if t.axes.Has(dim) {
			keep, l.Shape = append(keep, dim), append(l.Shape, n)
		}
	}
	for _, p := range t.uses {
		o := s.In[p]
		if o.Strides != nil {
			o.Strides = pick(o.Strides, keep)
		}
		l.In, l.in, l.nums = append(l.In, o), append(l.in, s.in[p]), append(l.nums, s.nums[p])
	}
	n, _ := shape.Size(l.Shape)
	for _, r := range t.f.Results {
		b := &bound{name: "table", array: &Array{store: unmade(DType(r)), shape: l.Shape, strides: shape.Contiguous(l.Shape)}}
		o := cpu.Operand{Type: r, Strides: b.array.strides}
		if d.gpu == nil {
			b.array.store, _ = makeDirty(DType(r), n) // each of its workers writes one element
			o.Data = sliceBehind(b.array.store)
		}
		l.Out, l.out = append(l.Out, o), append(l.out, b)
	}
	return stage{kernel: t.kernel, launch: l, name: s.name + " (" + s.along(t.axes) + ")", made: l.out}
}

// PlanTable is an expression that is computed once for many workers.
type PlanTable struct {
	Pos   string // where it stands, e.g. "cell 3:4:7"
	Along string // once for what: "per row", "per column", "per index of dimension 2", "per call"
	Times int    // how often it is computed
	Of    int    // the workers that use it, each of which would compute it
}

// String says it in a line.
func (t PlanTable) String() string {
	return fmt.Sprintf("%s, %s: %d times instead of %d", t.Pos, t.Along, t.Times, t.Of)
}

// planTables lists what was taken out of a stage.
func (s *stage) planTables() (list []PlanTable) {
	h := s.hoisting
	if h == nil {
		return nil
	}
	n, _ := shape.Size(s.Shape)
	add := func(on ir.Axes, places []ir.Pos) {
		for _, p := range places {
			list = append(list, PlanTable{Pos: p.String(), Along: s.along(on), Times: s.size(on), Of: n})
		}
	}
	for _, t := range h.tables {
		add(t.axes, t.pos)
	}
	add(0, h.places)
	return list
}

// numbers evaluates what is the same for all workers; ok is false if that takes
// too long.
func (h *hoisting) numbers(s *stage) (out []ir.Bits, ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.tooLong {
		return nil, false
	}
	args := make([]ir.Bits, len(h.uses))
	for i, p := range h.uses {
		args[i] = argument(&s.In[p], make([]int, len(s.Shape)))
	}
	e := ir.Evaluator{Steps: hostSteps}
	out, err := e.Run(h.host, args...)
	h.tooLong = err != nil
	return out, err == nil
}
