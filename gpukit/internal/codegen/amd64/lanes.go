package amd64

import "gpunotes/gpukit/internal/ir"

// laneShape says how the lanes of a group hold a value: those that are active where it is visible,
// the others may have anything.
type laneShape uint8

const (
	shapeVarying laneShape = iota
	shapeUniform           // all the same
	shapeUnit              // of I64: lane i has that of lane 0 plus i
	shapeUnknown           // not seen yet, while the analysis runs
)

func (s laneShape) join(t laneShape) laneShape {
	switch {
	case s == t || t == shapeUnknown:
		return s
	case s == shapeUnknown:
		return t
	}
	return shapeVarying
}

// analysis says what the lanes of a group have in common, values and control.
type analysis struct {
	f      *ir.Func
	shapes []laneShape // by value
	depth  []int32     // by value: the number of the construct whose region defines it
	known  []bool      // by value: a constant
	bits   []ir.Bits   // of a constant
	used   []bool      // by value: somebody reads it
	fails  bool        // some worker may fail

	constructs map[*ir.Instr]*constructLanes
	nest       []*constructLanes // around the place where the analysis stands; the function first
	changed    bool
}

// constructLanes is what the analysis knows of an if, a loop or the function.
type constructLanes struct {
	in      *ir.Instr // nil is the function
	varying bool      // an if whose lanes may take both arms, a loop that they may leave at different times
	leaves  bool      // some lanes may leave the region around it from inside while others stay

	// Of one pass over it: how results are handed out.
	exits   int
	partial bool       // by a part of its lanes, or not by all at the same time
	first   []ir.Value // what the first exit hands out
	same    []bool     // by result: what is handed out is one value, whenever a lane leaves
	joined  []laneShape
}

// analyse classifies the values and the control of a kernel.
func analyse(k *Kernel) *analysis {
	f := k.Func
	a := &analysis{f: f, shapes: make([]laneShape, len(f.Types)), depth: make([]int32, len(f.Types)),
		known: make([]bool, len(f.Types)), bits: make([]ir.Bits, len(f.Types)), used: make([]bool, len(f.Types)),
		constructs: map[*ir.Instr]*constructLanes{}}
	ir.Walk(f.Body, func(in *ir.Instr) {
		for _, v := range in.Args {
			a.used[v] = true
		}
	})
	a.fails = mayFail(f)
	for i := range a.shapes {
		a.shapes[i] = shapeUnknown
	}
	for i, p := range f.Params {
		a.shapes[p.Value] = accessShape(k.In[i])
	}
	for again := true; again; {
		for a.changed = true; a.changed; {
			a.changed = false
			whole := &constructLanes{}
			whole.begin(len(f.Results))
			a.nest = append(a.nest[:0], whole)
			a.region(f.Body, -1)
		}
		again = false
		for i, s := range a.shapes { // what no exit hands out
			if s == shapeUnknown {
				a.shapes[i], again = shapeVarying, true
			}
		}
	}
	return a
}

func accessShape(x Access) laneShape {
	switch x {
	case Same, PerRow, Count:
		return shapeUniform
	case CountUnit:
		return shapeUnit
	}
	return shapeVarying
}

// shape is the shape of a value.
func (a *analysis) shape(v ir.Value) laneShape { return a.shapes[v] }

// varyingIf reports whether active lanes may take different arms of an if.
func (a *analysis) varyingIf(in *ir.Instr) bool { return a.constructs[in].varying }

// partsLeave reports whether an if or a loop may take some lanes, and not all, out of the
// region around it.
func (a *analysis) partsLeave(in *ir.Instr) bool { return a.constructs[in].leaves }

func (c *constructLanes) begin(results int) {
	c.exits, c.partial, c.first = 0, false, nil
	if c.same == nil {
		c.same, c.joined = make([]bool, results), make([]laneShape, results)
	}
	for j := range c.same {
		c.same[j], c.joined[j] = true, shapeUnknown
	}
}

// define says that v, of a region in the last construct of nest, has a shape.
func (a *analysis) define(v ir.Value, s laneShape) {
	a.depth[v] = int32(len(a.nest) - 1)
	a.lower(v, s)
}

func (a *analysis) lower(v ir.Value, s laneShape) {
	if t := a.shapes[v].join(s); t != a.shapes[v] {
		a.shapes[v] = t
		a.changed = true
	}
}

// region goes through r, whose construct is the last of nest. The lanes in it are all that entered
// nest[k] (or its iteration) for k > split; for the others they may be a part. It returns the
// smallest number of a construct that a part of the lanes may leave, or a large one.
func (a *analysis) region(r *ir.Region, split int) (leaves int) {
	leaves = len(a.nest)
	depth := len(a.nest) - 1
	for i := range r.Instrs {
		in := &r.Instrs[i]
		switch in.Op {
		case ir.OpYield:
			if c := a.nest[depth].in; c != nil && c.Op == ir.OpLoop {
				for j, v := range in.Args {
					a.lower(c.Carried[j], a.shapes[v])
				}
				break
			}
			a.exit(depth, in, split)
		case ir.OpBreak:
			to := depth - in.Level()
			a.exit(to, in, split)
			if split >= to {
				leaves = min(leaves, to)
			}
		case ir.OpIf, ir.OpLoop:
			out := a.construct(in, split)
			if a.constructs[in].leaves {
				leaves, split = min(leaves, out), depth
			}
		case ir.OpConst:
			v := in.Results[0]
			a.known[v], a.bits[v] = true, in.Imm
			a.define(v, shapeUniform)
		default:
			for _, v := range in.Results {
				a.define(v, a.result(in))
			}
		}
	}
	return leaves
}

// construct goes through an if or a loop.
func (a *analysis) construct(in *ir.Instr, split int) (leaves int) {
	c := a.constructs[in]
	if c == nil {
		c = &constructLanes{in: in}
		a.constructs[in] = c
	}
	c.begin(len(in.Results))
	a.nest = append(a.nest, c)
	depth := len(a.nest) - 1
	if in.Op == ir.OpIf {
		if !c.varying && a.shapes[in.Args[0]] == shapeVarying {
			c.varying, a.changed = true, true
		}
	} else {
		for j, v := range in.Args {
			a.define(in.Carried[j], a.shapes[v])
		}
	}
	inside := split
	if c.varying {
		inside = depth
	}
	leaves = len(a.nest)
	for _, r := range in.Regions {
		leaves = min(leaves, a.region(r, inside))
	}
	a.nest = a.nest[:depth]
	if in.Op == ir.OpLoop && leaves <= depth && !c.varying {
		c.varying, a.changed = true, true
	}
	if leaves < depth && !c.leaves {
		c.leaves, a.changed = true, true
	}
	for j, v := range in.Results {
		a.define(v, c.result(j))
	}
	return leaves
}

// result is the shape of result j, after a pass over the construct.
func (c *constructLanes) result(j int) laneShape {
	if c.partial && !c.same[j] {
		return shapeVarying
	}
	return c.joined[j]
}

// exit notes what an exit hands out to nest[to].
func (a *analysis) exit(to int, in *ir.Instr, split int) {
	c := a.nest[to]
	c.exits++
	c.partial = c.partial || split >= to
	repeats := len(a.nest) // the first divergent loop that the exit leaves
	for i := len(a.nest) - 1; i >= to; i-- {
		if o := a.nest[i]; o.varying && o.in.Op == ir.OpLoop {
			repeats = i
		}
	}
	if c.exits == 1 {
		c.first = in.Args
	}
	for j, v := range in.Args {
		c.joined[j] = c.joined[j].join(a.shapes[v])
		// Inside a divergent loop a value may be another one in every iteration.
		c.same[j] = c.same[j] && a.alike(v, c.first[j]) && (a.known[v] || int(a.depth[v]) < repeats)
	}
}

// alike reports whether two values are one.
func (a *analysis) alike(v, w ir.Value) bool {
	return v == w || a.known[v] && a.known[w] && a.bits[v] == a.bits[w]
}

// result is the shape of what an instruction without regions gives.
func (a *analysis) result(in *ir.Instr) laneShape {
	s := shapeUniform
	for _, v := range in.Args {
		if a.shapes[v] != shapeUniform {
			s = shapeVarying
		}
	}
	shape := func(i int) laneShape { return a.shapes[in.Args[i]] }
	switch in.Op {
	case ir.OpLoad:
		if a.f.Mems[in.Mem].Space == ir.Local {
			return shapeVarying
		}
	case ir.OpAtomic, ir.OpShuffle, ir.OpVote:
		return shapeVarying
	case ir.OpCall:
		if !repeatable(in.Callee) {
			return shapeVarying
		}
	case ir.OpAdd:
		if a.f.Types[in.Args[0]] == ir.I64 && (shape(0) == shapeUnit && shape(1) == shapeUniform || shape(0) == shapeUniform && shape(1) == shapeUnit) {
			return shapeUnit
		}
	case ir.OpSub:
		if shape(0) == shapeUnit && shape(1) == shapeUniform {
			return shapeUnit
		}
	case ir.OpSelect:
		if shape(0) == shapeUniform && shape(1) == shape(2) {
			return shape(1)
		}
	}
	return s
}

// repeatable reports whether calls with the same arguments give the same.
func repeatable(f *ir.Func) bool {
	yes := true
	ir.Walk(f.Body, func(in *ir.Instr) {
		switch in.Op {
		case ir.OpAtomic, ir.OpShuffle, ir.OpVote:
			yes = false
		case ir.OpCall:
			yes = yes && repeatable(in.Callee)
		}
	})
	return yes
}
