package amd64

import "slices"

// shorten puts two instructions into one where the first one computes for the second
// alone: a sign into a multiply-add, a mask into a comparison, two operations on bits.
func (f *folder) shorten() {
	l := f.l
	s := shortener{folder: f, last: make([]int32, len(l.kinds))}
	for i := range l.insts {
		in := &l.insts[i]
		switch in.special {
		case ordinary:
			s.ordinary(in)
		case fused:
			s.fused(in)
		case jump, undefined, constant:
		default:
			s.begin = int32(i)
		}
		in.operandsAt(func(v vreg, writes, _ bool) {
			if writes {
				s.last[v] = int32(i) + 1
			}
		})
	}
}

type shortener struct {
	*folder
	last  []int32 // by vreg: 1 + the instruction that wrote it last, so far
	begin int32   // nothing jumps in between from here on
}

// only is the instruction that computes v for a single use.
func (s *shortener) only(v vreg) *inst {
	if v == 0 || s.uses[v] != 1 || s.writes[v] != 1 || s.last[v] == 0 {
		return nil
	}
	d := &s.l.insts[s.last[v]-1]
	if d.special != ordinary || d.row == nil || d.k != 0 || d.reg != v || d.rm.isMem || d.rm.v == 0 {
		return nil
	}
	return d
}

// keeps reports whether x still has what the instruction that wrote v read.
func (s *shortener) keeps(x, v vreg) bool {
	return s.writes[x] == 1 || s.last[v] > s.begin+1 && s.last[x] < s.last[v]
}

// is reports whether v is this in all lanes.
func (s *shortener) is(v vreg, bits uint64) bool {
	p := &s.l.pool[s.l.poolOf[v]]
	return s.l.poolOf[v] != 0 && p.bits == bits && (bits != 0 || p.narrow) // tables have no bits
}

// fused takes the operands of changes of sign.
func (s *shortener) fused(in *inst) {
	if in.rm.isMem {
		return
	}
	sign := uint64(signBit)
	if in.imm&single != 0 {
		sign = signBit32 | signBit32<<32
	}
	for i, p := range [...]*vreg{&in.v, &in.rm.v, &in.c} {
		d := s.only(*p)
		if d == nil || d.row != vxorpd && d.row != vxorps || !s.keeps(d.v, d.reg) || !s.is(d.rm.v, sign) {
			continue
		}
		*p = d.v
		if i < 2 {
			in.imm ^= negated
		} else {
			in.imm ^= subtracted
		}
		s.uses[d.rm.v]--
		d.remove()
	}
}

func (s *shortener) ordinary(in *inst) {
	if s.l.isa != AVX512 {
		return
	}
	switch r := in.row; r {
	case vpcmpq, vpcmpuq, vpcmpd, vpcmpud:
		s.test(in)
	case kandw, kandnw:
		s.masked(in)
	default:
		if bitTable(r) != nil {
			s.bits(in)
		}
	}
}

// test compares bits with zero without computing them.
func (s *shortener) test(in *inst) {
	d := s.only(in.v)
	if in.imm&^4 != 0 || d == nil || d.row != vandpd && d.row != vandps || !s.keeps(d.v, d.reg) || !s.keeps(d.rm.v, d.reg) || !s.is(in.rm.v, 0) {
		return
	}
	r := [...]*row{vptestnmq, vptestnmd, vptestmq, vptestmd}[bit(in.row == vpcmpd || in.row == vpcmpud)|byte(in.imm>>1)]
	s.uses[in.rm.v]--
	in.row, in.v, in.rm, in.imm = r, d.v, d.rm, 0
	d.remove()
}

// complements are the comparisons that say the opposite, but for those with a predicate
// in the immediate, where bit 2 does.
var complements = map[*row]*row{}

func init() {
	for _, p := range [][2]*row{{vptestmq, vptestnmq}, {vptestmd, vptestnmd}} {
		complements[p[0]], complements[p[1]] = p[1], p[0]
	}
}

// masked computes the conjunction of a mask with a comparison, or its opposite, as a
// comparison under the mask.
func (s *shortener) masked(in *inst) {
	if in.rm.isMem || in.rm.v == 0 || in.v == in.rm.v {
		return
	}
	pairs := [][2]vreg{{in.v, in.rm.v}}
	if in.row == kandw {
		pairs = [][2]vreg{{in.rm.v, in.v}, {in.v, in.rm.v}}
	}
	for _, p := range pairs {
		y, m := p[0], p[1]
		if s.uses[y] != 1 || s.writes[y] != 1 || s.last[y] <= s.begin || s.last[m] == 0 || s.last[m] >= s.last[y] {
			continue
		}
		d := &s.l.insts[s.last[y]-1]
		r := d.row
		if d.special != ordinary || r == nil || d.k != 0 || r.reg != mask || r.rm != vec || r.noMask || r.vw != no || d.reg != y {
			continue
		}
		if in.row == kandnw {
			switch {
			case complements[r] != nil:
				d.row = complements[r]
			case r.imm != 0:
				d.imm ^= 4
			default:
				continue
			}
		}
		d.k = m
		*in = inst{row: kmovw, reg: in.reg, rm: fromReg(y), pos: in.pos}
		return
	}
}

// bitTable is what an operation on bits makes of all pairs of them, as the
// instruction on three operands wants it, the first being 0xF0 and the second 0xCC.
func bitTable(r *row) func(x, y uint8) uint8 {
	switch r {
	case vandpd, vandps:
		return func(x, y uint8) uint8 { return x & y }
	case vandnpd, vandnps:
		return func(x, y uint8) uint8 { return ^x & y }
	case vorpd, vorps:
		return func(x, y uint8) uint8 { return x | y }
	case vxorpd, vxorps:
		return func(x, y uint8) uint8 { return x ^ y }
	}
	return nil
}

// bits computes two operations on three operands at once: the first instruction becomes
// a copy of the one that the second destroys.
func (s *shortener) bits(in *inst) {
	if in.rm.isMem || in.k != 0 || in.v == in.rm.v || s.writes[in.reg] != 1 {
		return
	}
	for second, v := range [...]vreg{in.v, in.rm.v} {
		d := s.only(v)
		if d == nil || bitTable(d.row) == nil || s.last[v] <= s.begin+1 {
			continue
		}
		of := [3]vreg{d.v, d.rm.v, in.rm.v}
		if second == 1 {
			of[2] = in.v
		}
		// An operand that nobody else needs is destroyed, a constant is the last.
		ops := of
		slices.SortStableFunc(ops[:], func(x, y vreg) int { return s.rank(x) - s.rank(y) })
		if ops[0] == ops[1] || ops[1] == ops[2] || ops[0] == ops[2] || s.l.poolOf[ops[1]] != 0 ||
			slices.ContainsFunc(ops[:], func(x vreg) bool { return s.last[x] >= s.last[v] }) {
			continue
		}
		var bits [3]uint8
		for i, x := range of {
			bits[i] = [...]uint8{0xF0, 0xCC, 0xAA}[slices.Index(ops[:], x)]
		}
		x := bitTable(d.row)(bits[0], bits[1])
		if second == 0 {
			x = bitTable(in.row)(x, bits[2])
		} else {
			x = bitTable(in.row)(bits[2], x)
		}
		s.writes[in.reg], s.last[in.reg] = 2, s.last[v]
		*d = inst{row: vmovapd, reg: in.reg, rm: fromReg(ops[0]), pos: d.pos}
		*in = inst{row: vpternlogq, reg: in.reg, v: ops[1], rm: fromReg(ops[2]), imm: int32(x), pos: in.pos}
		return
	}
}

func (s *shortener) rank(v vreg) int {
	switch {
	case s.l.poolOf[v] != 0:
		return 2
	case s.uses[v] > 1:
		return 1
	}
	return 0
}
