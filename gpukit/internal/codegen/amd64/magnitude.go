package amd64

import (
	"math/bits"

	"gpunotes/gpukit/internal/ir"
)

// magnitudes finds how large integers can be, from how they are computed.
type magnitudes struct {
	f   *ir.Func
	def map[ir.Value]*ir.Instr
}

// magnitude is a w so that an integer is at least -2^w and less than 2^w.
func (l *lowerer) magnitude(x ir.Value) int {
	m := &l.magnitudes
	if m.f != l.f {
		m.f, m.def = l.f, map[ir.Value]*ir.Instr{}
		ir.Walk(l.f.Body, func(in *ir.Instr) {
			if len(in.Results) == 1 && len(in.Regions) == 0 {
				m.def[in.Results[0]] = in
			}
		})
	}
	return m.of(x, 4)
}

func (m *magnitudes) of(x ir.Value, depth int) int {
	t := m.f.Types[x]
	most := t.Bits()
	if t.IsSigned() {
		most--
	}
	in := m.def[x]
	if in == nil || depth == 0 {
		return most
	}
	arg := func(i int) int { return m.of(in.Args[i], depth-1) }
	constant := func(i int) (c uint64, ok bool) {
		if d := m.def[in.Args[i]]; d != nil && d.Op == ir.OpConst {
			return d.Imm, true
		}
		return 0, false
	}
	w := most
	switch in.Op {
	case ir.OpConst:
		w = bits.Len64(in.Imm)
		if t.IsSigned() && int64(in.Imm) < 0 {
			w = bits.Len64(^in.Imm)
		}
	case ir.OpConvert:
		if from := m.f.Types[in.Args[0]]; from.IsInt() && (t.IsSigned() || from.IsUnsigned()) {
			w = arg(0)
		}
	case ir.OpShr:
		w = arg(0)
		if k, ok := constant(1); ok && k < 64 {
			w = max(0, w-int(k))
		}
	case ir.OpAnd:
		if t.IsUnsigned() {
			w = min(arg(0), arg(1))
			break
		}
		w = max(arg(0), arg(1))
		for i := range 2 {
			if c, ok := constant(i); ok && int64(c) >= 0 {
				w = bits.Len64(c)
			}
		}
	case ir.OpRem:
		w = min(arg(0), arg(1))
	case ir.OpMin, ir.OpMax:
		w = max(arg(0), arg(1))
	case ir.OpSelect:
		w = max(arg(1), arg(2))
	case ir.OpAdd:
		w = max(arg(0), arg(1)) + 1
	case ir.OpSub:
		if t.IsSigned() {
			w = max(arg(0), arg(1)) + 1
		}
	case ir.OpMul:
		w = arg(0) + arg(1)
		if t.IsSigned() {
			w++ // the product of the lowest ones
		}
	case ir.OpMath:
		switch in.Fn.Row().Out {
		case ir.I64:
			if name := in.Fn.Row().Name; len(name) > 5 && name[:5] == "bits." {
				w = 7 // counts of bits
			}
		}
	}
	return min(w, most)
}
