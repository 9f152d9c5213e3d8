package amd64

import "gpunotes/gpukit/internal/ir"

// The size of a group. Several registers per value let independent instructions
// overlap, as long as they fit the register file and the code stays small.
const (
	mostParts        = 4
	spareRegisters   = 3    // for what single operations need in between
	cheapSpills      = 8    // of AVX2: operands in memory cost less than waiting for results
	mostInstructions = 1200 // of the IR, times parts
	// Straight code so long that groups that follow each other hardly overlap gains from more
	// parts even where many values are in memory (measured).
	longCode = 128
)

// chooseLanes chooses the lanes of a group and of a mask part.
func (l *lowerer) chooseLanes() {
	wide, narrow := false, false
	note := func(t ir.Type, varying bool) {
		if varying && t != ir.Bool {
			wide = wide || laneSize(t) == 8
			narrow = narrow || laneSize(t) == 4
		}
	}
	for x, t := range l.f.Types {
		note(t, l.an.shape(ir.Value(x)) != shapeUniform)
	}
	for _, t := range l.f.Results {
		note(t, true)
	}
	locals := func(f *ir.Func) {
		for _, m := range f.Mems {
			note(m.Elem, m.Space == ir.Local) // whatever is stored there, there is one for each lane
		}
	}
	locals(l.f)
	eachCallee(l.f, map[*ir.Func]bool{}, func(g *ir.Func) {
		for _, t := range g.Types {
			note(t, true)
		}
		locals(g)
	})
	l.maskLanes = l.regBytes / 4
	if wide || !narrow {
		l.maskLanes = l.regBytes / 8
	}
	l.lanes = l.maskLanes
	if narrow {
		l.lanes = l.regBytes / 4
	}
	least := l.lanes
	l.groups = 1
	if l.o.Parts > 0 {
		l.groups = l.o.Parts
		l.lanes *= l.groups
		return
	}
	p := pressure{l: l}
	p.measure()
	registers := 16
	if l.a.useEVEX {
		registers = 32
	}
	long := p.instructions >= longCode && len(p.loops) == 0
	for u := mostParts; u > 1; u /= 2 {
		fits := u*p.most+p.shared+spareRegisters <= registers && u*p.mostMasks <= 8 ||
			long && u*p.most+p.shared <= registers*3/2 && u*p.mostMasks <= 16
		if l.isa == AVX2 { // which has masks in vectors
			in := u*(p.most+p.mostMasks) + p.shared + spareRegisters
			fits = in <= registers+cheapSpills || long && in <= 2*registers+cheapSpills
		}
		if fits && u*p.instructions <= mostInstructions && (l.k.Lanes <= 0 || l.k.Lanes > least*u/2) && least*u <= 64 {
			l.groups, l.lanes = u, least*u
			return
		}
	}
}

// pressure measures how many registers are in use at once, of a group of one part.
type pressure struct {
	l            *lowerer
	n            int // instructions so far
	first, last  []int32
	loops        [][2]int32
	most         int // vectors
	mostMasks    int
	shared       int // vectors with one value for all parts
	instructions int
}

func (p *pressure) measure() {
	l := p.l
	p.first, p.last = make([]int32, len(l.f.Types)), make([]int32, len(l.f.Types))
	for i := range p.first {
		p.first[i] = -1
	}
	for i, q := range l.f.Params {
		switch l.k.In[i] {
		case Unit, Strided, CountStep:
			p.first[q.Value] = 0
		}
	}
	p.region(l.f.Body)
	p.instructions = p.n
	// Values of outer loops live to the end of the inner ones that use them.
	for i := len(p.loops) - 1; i >= 0; i-- {
		s := p.loops[i]
		for x := range p.first {
			if p.first[x] >= 0 && p.first[x] < s[0] && p.last[x] >= s[0] && p.last[x] < s[1] {
				p.last[x] = s[1]
			}
		}
	}
	vectors, masks := make([]int, p.n+2), make([]int, p.n+2)
	for x, from := range p.first {
		if from < 0 || p.last[x] <= from {
			continue
		}
		t := l.f.Types[x]
		if l.an.shape(ir.Value(x)) != shapeVarying {
			if t.IsFloat() {
				p.shared++
			}
			continue
		}
		at, by := vectors, 1
		switch {
		case t == ir.Bool:
			at, by = masks, l.parts(t)
		default:
			by = l.parts(t)
		}
		at[from] += by
		at[p.last[x]] -= by
	}
	sum := func(xs []int) (most int) {
		n := 0
		for _, x := range xs {
			n += x
			most = max(most, n)
		}
		return most
	}
	p.most, p.mostMasks = sum(vectors), sum(masks)
	// Masks of arms and loops are not values.
	own := l.nesting(l.f.Body)
	if l.isParted(nil) {
		own++
	}
	p.mostMasks += l.parts(ir.Bool) * own
}

// nesting is how deep constructs with masks of their own stand in each other.
func (l *lowerer) nesting(r *ir.Region) int {
	most := 0
	for i := range r.Instrs {
		in := &r.Instrs[i]
		n := 0
		if in.Op == ir.OpIf && l.an.varyingIf(in) || l.isParted(in) {
			n = 1
		}
		for _, s := range in.Regions {
			if onlyYields(s) || n == 1 && in.Op == ir.OpIf && ends(s) {
				continue
			}
			most = max(most, n+l.nesting(s))
		}
	}
	return most
}

func (p *pressure) define(x ir.Value) {
	if p.l.an.known[x] {
		return
	}
	p.first[x] = int32(p.n)
	p.last[x] = int32(p.n)
}

func (p *pressure) region(r *ir.Region) {
	for i := range r.Instrs {
		in := &r.Instrs[i]
		if in.Op == ir.OpConst {
			continue
		}
		for _, x := range in.Args {
			p.last[x] = int32(p.n)
		}
		p.n++
		if in.Op == ir.OpLoop {
			for _, x := range in.Carried {
				p.define(x)
			}
		}
		from := p.n
		for _, s := range in.Regions {
			p.region(s)
		}
		if in.Op == ir.OpLoop {
			p.loops = append(p.loops, [2]int32{int32(from), int32(p.n)})
			for _, x := range in.Carried {
				p.last[x] = int32(p.n)
			}
		}
		for _, x := range in.Results {
			p.define(x)
		}
	}
}
