package amd64

import (
	"slices"

	"gpunotes/gpukit/internal/ir"
)

// fold lets instructions read from memory what was loaded for them alone, in the
// straight code up to them, and removes additions that have become displacements.
func (l *lowerer) fold() {
	f := folder{l: l, uses: make([]int32, len(l.kinds)), writes: make([]int32, len(l.kinds))}
	for i := range l.insts {
		l.insts[i].operandsAt(func(v vreg, writes, _ bool) {
			if writes {
				f.writes[v]++
			} else {
				f.uses[v]++
			}
		})
	}
	for i := len(l.insts) - 1; i >= 0; i-- {
		if in := &l.insts[i]; in.row == lea && in.reg != 0 && f.uses[in.reg] == 0 && f.writes[in.reg] == 1 {
			in.operandsAt(func(v vreg, writes, _ bool) {
				if !writes {
					f.uses[v]--
				}
			})
			in.remove()
		}
	}
	f.shorten()
	for i := range l.insts {
		f.instruction(&l.insts[i])
	}
}

// folder goes through the list with the loads that may still be folded.
type folder struct {
	l            *lowerer
	uses, writes []int32 // by vreg
	loads        []*inst
}

// remove leaves nothing of an instruction.
func (in *inst) remove() { *in = inst{special: undefined} }

func (f *folder) instruction(in *inst) {
	switch in.special {
	case ordinary, fused:
		if len(f.loads) > 0 {
			f.use(in)
			f.changes(in)
		}
		if f.isLoad(in) {
			f.loads = append(f.loads, in)
		}
	case jump, undefined:
	default:
		f.loads = f.loads[:0]
	}
}

// isLoad reports whether in is a load of a whole register, or of one element for all
// lanes, with a single use.
func (f *folder) isLoad(in *inst) bool {
	if !in.rm.isMem || in.rm.mem.broadcast || in.reg == 0 || f.writes[in.reg] != 1 || f.uses[in.reg] != 1 {
		return false
	}
	switch in.row {
	case vmovupd, vmovups:
		return in.k == 0 || in.zero
	case vbroadcastsd, vbroadcastss:
		return in.k == 0 && f.l.a.useEVEX
	}
	return false
}

// use folds a load into in, if it can be.
func (f *folder) use(in *inst) {
	switch r := in.row; {
	case in.special == fused:
		if in.rm.isMem {
			return
		}
		width := vmulpd
		if in.imm&single != 0 {
			width = vmulps
		}
		for _, v := range [...]vreg{in.rm.v, in.v} {
			if ld := f.loadOf(v); ld != nil && fits(ld, width, in) {
				if v == in.v { // the product is the same
					in.v, in.rm.v = in.rm.v, v
				}
				f.put(in, ld)
				return
			}
		}
	case r != nil && r.form == formRVM && r.rm == vec && r.n == 0 && !in.rm.isMem && !r.onlyRegister && !r.legacy && !r.is4 && !r.reads && r.reg == vec:
		ld := f.loadOf(in.rm.v)
		if ld == nil && slices.Contains(commutative, r) {
			if ld = f.loadOf(in.v); ld != nil && fits(ld, r, in) {
				in.v, in.rm.v = in.rm.v, in.v
			}
		}
		if ld != nil && fits(ld, r, in) {
			f.put(in, ld)
		}
	}
}

// commutative are rows whose operands may change places. (Which of two NaNs a result is
// nobody can see.)
var commutative = []*row{vaddpd, vaddps, vmulpd, vmulps, vpaddq, vpaddd, vandpd, vandps, vorpd, vorps, vxorpd, vxorps}

func (f *folder) loadOf(v vreg) *inst {
	for _, ld := range f.loads {
		if v != 0 && ld.reg == v {
			return ld
		}
	}
	return nil
}

// fits reports whether a row can read as ld does. Lanes that are not in the mask of the
// load are not in use afterwards: they may become 0.
func fits(ld *inst, r *row, in *inst) bool {
	broadcast, masked := ld.row == vbroadcastsd || ld.row == vbroadcastss, ld.k != 0
	if !broadcast && !masked {
		return true
	}
	return r.ew == ld.row.ew && (!broadcast || !r.noBroadcast) && (!masked || !r.noMask && in.k == 0)
}

func (f *folder) put(in, ld *inst) {
	in.rm = ld.rm
	in.rm.mem.broadcast = ld.row == vbroadcastsd || ld.row == vbroadcastss
	if ld.k != 0 {
		in.k, in.zero = ld.k, true
	}
	f.forget(func(o *inst) bool { return o == ld })
	ld.remove()
}

func (f *folder) forget(which func(*inst) bool) {
	n := 0
	for _, ld := range f.loads {
		if !which(ld) {
			f.loads[n] = ld
			n++
		}
	}
	f.loads = f.loads[:n]
}

// changes forgets the loads of what in writes.
func (f *folder) changes(in *inst) {
	if in.writesMemory() {
		f.loads = f.loads[:0]
		return
	}
	in.operandsAt(func(v vreg, writes, _ bool) {
		if writes && f.writes[v] > 1 { // others are defined before they are used
			f.forget(func(ld *inst) bool { return ld.rm.base == v || ld.rm.index == v || ld.k == v })
		}
	})
}

func (in *inst) writesMemory() bool {
	if in.row == nil || !in.rm.isMem {
		return false
	}
	switch r := in.row; r.form {
	case formMR, formMVR, formScatter:
		return true
	case formM:
		return in.reg == 0 && r != cmpImm && r != cmpImm4 && r != testImm
	}
	return in.row.lock
}

// sum is a value plus a constant.
type sum struct {
	of   ir.Value
	plus int64
}

// sums are the values of the function that is another one plus a constant.
type sums struct {
	f  *ir.Func
	is map[ir.Value]sum
}

// displaced is x as another index and the bytes that elements of a size are from there,
// or x itself and 0.
func (l *lowerer) displaced(x ir.Value, size int) (ir.Value, int32) {
	if l.sums.f != l.f {
		l.sums = sums{l.f, l.findSums()}
	}
	y, c := x, int64(0)
	for {
		s, ok := l.sums.is[y]
		if !ok || l.an.shape(s.of) != l.an.shape(x) || s.plus > 1<<27 || s.plus < -1<<27 {
			break
		}
		if next := c + s.plus; next <= 1<<27 && next >= -1<<27 {
			y, c = s.of, next
			continue
		}
		break
	}
	return y, int32(c) * int32(size)
}

// findSums finds sums of values that keep their registers: a carried one has its next
// value before the iteration ends.
func (l *lowerer) findSums() map[ir.Value]sum {
	is, carried := map[ir.Value]sum{}, map[ir.Value]bool{}
	ir.Walk(l.f.Body, func(in *ir.Instr) {
		for _, x := range in.Carried {
			carried[x] = true
		}
		if (in.Op != ir.OpAdd && in.Op != ir.OpSub) || l.f.Types[in.Results[0]] != ir.I64 {
			return
		}
		x, y := in.Args[0], in.Args[1]
		if in.Op == ir.OpAdd && l.an.known[x] {
			x, y = y, x
		}
		if !l.an.known[y] || l.an.known[x] || carried[x] {
			return
		}
		c := int64(l.an.bits[y])
		if in.Op == ir.OpSub {
			c = -c
		}
		is[in.Results[0]] = sum{x, c}
	})
	return is
}
