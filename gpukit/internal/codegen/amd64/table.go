package amd64

// form says where the operands of an instruction stand in its encoding.
type form uint8

const (
	formNone    form = iota
	formRVM          // reg = op(vvvv, rm)
	formRM           // reg = op(rm)
	formMR           // rm = op(reg)
	formMVR          // rm = op(vvvv, reg)
	formVM           // vvvv = op(rm), the opcode continued in reg
	formM            // rm alone, read or written or both, the opcode continued in reg
	formTest         // flags = op(reg, rm)
	formRMV          // reg = op(rm, vvvv)
	formO            // reg = op(reg), reg in the opcode
	formGather       // reg = lanes of memory rm; the mask is vvvv (VEX) or k (EVEX), and is all zero afterwards
	formScatter      // lanes of memory rm = reg, masked by k, which is all zero afterwards
)

// kind is the kind of a register operand.
type kind uint8

const (
	none    kind = iota
	vec          // xmm, ymm or zmm, by vector length
	half         // of the vector length
	quarter      // of the vector length, but no less than xmm
	eighth       // of the vector length, as xmm
	xmm          // xmm in any case
	mask         // k
	r8           // general registers by size
	r16
	r32
	r64
)

// row is one instruction of the assembler.
type row struct {
	name string // Intel syntax
	// evex is the name of the EVEX form where it is another.
	evex   string
	form   form
	legacy bool
	m      uint8 // opcode map: 0 (legacy only) one byte, 1 0F, 2 0F38, 3 0F3A
	pp     uint8 // mandatory prefix: 0 none, 1 66, 2 F3, 3 F2
	op     uint8
	vw     int8 // VEX.W or REX.W; no if there is no such form
	ew     int8 // EVEX.W; no if there is no such form
	digit  uint8
	imm    uint8 // bytes of immediate
	is4    bool  // a fourth register in the immediate
	// reads: the destination (reg; rm in formM) is an operand, too. On virtual
	// registers: what inst.reg (inst.rm in formM) has before is used.
	reads  bool
	n      uint8 // bytes of the memory operand; 0: those of rm's kind
	length length
	reg    kind
	v      kind // of vvvv; none: that of rm
	rm     kind
	// onlyMemory: rm is no register; onlyRegister: it is one.
	onlyMemory, onlyRegister bool
	lock                     bool // the prefix
	// noBroadcast: no element of memory for all lanes, and noMask: no opmask, though there is an EVEX form.
	noBroadcast, noMask bool
}

// length is the vector length of an encoding.
type length uint8

const (
	byTarget length = iota
	l128            // also VEX.L = 0
	l256            // also VEX.L = 1
	l512
)

const no = -1

// rows are all instructions, in the order of their declaration.
var rows []*row

func newRow(r row) *row {
	rows = append(rows, &r)
	return &r
}

func rvm(name string, m, pp, op uint8, vw, ew int8) *row {
	return newRow(row{name: name, form: formRVM, m: m, pp: pp, op: op, vw: vw, ew: ew, reg: vec, rm: vec})
}

func rm(name string, m, pp, op uint8, vw, ew int8) *row {
	r := rvm(name, m, pp, op, vw, ew)
	r.form = formRM
	return r
}

// mixed is reg = op(rm) between vectors of different size.
func mixed(name string, reg, rmKind kind, m, pp, op uint8, vw, ew int8) *row {
	r := rm(name, m, pp, op, vw, ew)
	r.reg, r.rm = reg, rmKind
	return r
}

// widening is an integer move to wider lanes.
func widening(name string, rmKind kind, op uint8) *row {
	r := mixed(name, vec, rmKind, 2, 1, op, 0, 0)
	r.noBroadcast = true
	return r
}

// narrowing is an integer move to narrower lanes, or to memory.
func narrowing(name string, rmKind kind, op uint8) *row {
	r := mixed(name, vec, rmKind, 2, 2, op, no, 0)
	r.form, r.noBroadcast = formMR, true
	return r
}

// move is a load, or a copy; moveOut is a store.
func move(name string, pp, op uint8, vw, ew int8) *row {
	r := rm(name, 1, pp, op, vw, ew)
	r.noBroadcast = true
	return r
}

func moveOut(name string, pp, op uint8, vw, ew int8) *row {
	r := move(name, pp, op, vw, ew)
	r.form, r.onlyMemory = formMR, true
	return r
}

// scalar is reg = op(rm) of one element of n bytes.
func scalar(name string, reg, rmKind kind, n, m, pp, op uint8, vw, ew int8) *row {
	r := mixed(name, reg, rmKind, m, pp, op, vw, ew)
	r.n, r.noBroadcast = n, true
	return r
}

// moveScalar is a move between xmm and a general register.
func moveScalar(name string, form form, op uint8, w int8, gpr kind, n uint8) *row {
	return newRow(row{name: name, form: form, m: 1, pp: 1, op: op, vw: w, ew: w, length: l128, n: n, reg: xmm, rm: gpr, noBroadcast: true, noMask: true})
}

func shiftRow(name string, op, digit uint8, vw, ew int8) *row {
	return newRow(row{name: name, form: formVM, m: 1, pp: 1, op: op, vw: vw, ew: ew, digit: digit, imm: 1, reg: vec, rm: vec})
}

func withImm(r *row) *row { r.imm = 1; return r }

// accumulating marks instructions that read their destination.
func accumulating(r *row) *row { r.reads = true; return r }

// toMask gives a mask.
func toMask(r *row) *row { r.reg, r.v = mask, r.rm; return r }

func bytewise(r *row) *row { r.noBroadcast = true; return r }

// ofLength fixes the vector length.
func ofLength(l length, r *row) *row { r.length = l; return r }

func memoryOnly(r *row) *row { r.onlyMemory = true; return r }

func registerOnly(r *row) *row { r.onlyRegister = true; return r }

// blend4 is rm where is4 has a sign bit, else vvvv.
func blend4(name string, op uint8) *row {
	r := rvm(name, 3, 1, op, 0, no)
	r.is4 = true
	return r
}

// gather and scatter: n is the size of an element, index the kind of the indices.
func gather(name string, reg, index kind, op uint8, w int8, n uint8) *row {
	return newRow(row{name: name, form: formGather, m: 2, pp: 1, op: op, vw: w, ew: w, n: n, reg: reg, v: reg, rm: index, onlyMemory: true, reads: true, noBroadcast: true})
}

func scatter(name string, reg, index kind, op uint8, w int8, n uint8) *row {
	r := gather(name, reg, index, op, w, n)
	r.form, r.vw, r.reads = formScatter, no, false
	return r
}

func kRow(name string, form form, op uint8, l length, pp uint8) *row {
	return newRow(row{name: name, form: form, m: 1, pp: pp, op: op, ew: no, length: l, reg: mask, rm: mask, n: 1 + pp&1 ^ 1, onlyRegister: true})
}

func kShift(name string, op uint8, w int8) *row {
	return newRow(row{name: name, form: formRM, m: 3, pp: 1, op: op, vw: w, ew: no, length: l128, imm: 1, reg: mask, rm: mask, onlyRegister: true})
}

func kMove(name string, form form, op, pp uint8, reg, rmKind kind) *row {
	r := kRow(name, form, op, l128, pp)
	r.reg, r.rm = reg, rmKind
	return r
}

func gpr(name string, form form, m, op uint8, w int8, digit, imm uint8) *row {
	k, n := r32, uint8(4)
	if w == 1 {
		k, n = r64, 8
	}
	return newRow(row{name: name, form: form, legacy: true, m: m, op: op, vw: w, ew: no, digit: digit, imm: imm, reg: k, rm: k, n: n})
}

// twoOperand is reg = reg op rm.
func twoOperand(name string, m, op uint8, w int8) *row {
	return accumulating(gpr(name, formRM, m, op, w, 0, 0))
}

// inPlace is rm = op(rm), with an immediate of imm bytes if that is not 0.
func inPlace(name string, op, digit uint8, w int8, imm uint8) *row {
	return accumulating(gpr(name, formM, 0, op, w, digit, imm))
}

// extending is a move from a narrower operand.
func extending(name string, m, op uint8, w int8, rmKind kind, n uint8) *row {
	r := gpr(name, formRM, m, op, w, 0, 0)
	r.rm, r.n = rmKind, n
	return r
}

// counting is popcnt and its kin, of SSE4 and BMI.
func counting(name string, op uint8) *row {
	r := gpr(name, formRM, 1, op, 1, 0, 0)
	r.pp = 2
	return r
}

// bmi is an instruction of BMI, on 64-bit general registers.
func bmi(name string, form form, m, pp, op uint8) *row {
	return newRow(row{name: name, form: form, m: m, pp: pp, op: op, vw: 1, ew: no, length: l128, n: 8, reg: r64, rm: r64})
}

// locked has the prefix that makes an instruction on memory one step.
func locked(name string, m, op uint8, w int8) *row {
	r := memoryOnly(gpr("lock "+name, formMR, m, op, w, 0, 0))
	r.lock = true
	return r
}

// byCondition has the row of every condition.
func byCondition(f func(name string, cc uint8) *row) (rows [16]*row) {
	for c, name := range conditionNames[:len(rows)] {
		if name != "" {
			rows[c] = f(name, uint8(c))
		}
	}
	return rows
}

func rounding(name, evex string, op uint8, ew int8) *row {
	r := withImm(rm(name, 3, 1, op, 0, ew))
	r.evex = evex
	return r
}

func unmasked(r *row) *row { r.noMask = true; return r }

// asXMM fixes 16 bytes.
func asXMM(r *row) *row {
	if r.reg == vec {
		r.reg = xmm
	}
	if r.rm == vec {
		r.rm = xmm
	}
	if r.v == vec {
		r.v = xmm
	}
	r.length, r.noBroadcast = l128, true
	return r
}

func extract(name string, rmKind kind, op uint8, l length, vw, ew int8) *row {
	r := ofLength(l, withImm(mixed(name, vec, rmKind, 3, 1, op, vw, ew)))
	r.form, r.noBroadcast = formMR, true
	if rmKind == xmm {
		r.n = 16
	}
	return r
}

// insert puts rm in a part of vvvv.
func insert(name string, rmKind kind, op uint8, l length, vw, ew int8) *row {
	r := ofLength(l, withImm(mixed(name, vec, rmKind, 3, 1, op, vw, ew)))
	r.form, r.v, r.noBroadcast = formRVM, vec, true
	if rmKind == xmm {
		r.n = 16
	}
	return r
}

func maskedStore(name string, op uint8) *row {
	r := memoryOnly(rvm(name, 2, 1, op, 0, no))
	r.form = formMVR
	return r
}

// fromMask spreads bits to lanes, signsToMask collects sign bits.
func fromMask(name string, op uint8, ew int8) *row {
	return newRow(row{name: name, form: formRM, m: 2, pp: 2, op: op, vw: no, ew: ew, reg: vec, rm: mask, onlyRegister: true, noMask: true})
}

func signsToMask(name string, ew int8) *row {
	return newRow(row{name: name, form: formRM, m: 2, pp: 2, op: 0x39, vw: no, ew: ew, reg: mask, rm: vec, onlyRegister: true, noMask: true})
}

func kLoad(name string, pp uint8) *row {
	r := kMove(name, formRM, 0x90, pp, mask, mask)
	r.onlyRegister = false
	return r
}

func store16() *row {
	r := gpr("mov", formMR, 0, 0x89, 0, 0, 0)
	r.pp, r.reg, r.rm, r.n = 1, r16, r16, 2
	return r
}

// The instructions. Opcodes are those of Intel's manual, volume 2.
var (
	vaddpd  = rvm("vaddpd", 1, 1, 0x58, 0, 1)
	vsubpd  = rvm("vsubpd", 1, 1, 0x5C, 0, 1)
	vmulpd  = rvm("vmulpd", 1, 1, 0x59, 0, 1)
	vdivpd  = rvm("vdivpd", 1, 1, 0x5E, 0, 1)
	vminpd  = rvm("vminpd", 1, 1, 0x5D, 0, 1)
	vmaxpd  = rvm("vmaxpd", 1, 1, 0x5F, 0, 1)
	vandpd  = rvm("vandpd", 1, 1, 0x54, 0, 1)
	vandnpd = rvm("vandnpd", 1, 1, 0x55, 0, 1) // ^vvvv & rm
	vorpd   = rvm("vorpd", 1, 1, 0x56, 0, 1)
	vxorpd  = rvm("vxorpd", 1, 1, 0x57, 0, 1)
	vsqrtpd = rm("vsqrtpd", 1, 1, 0x51, 0, 1)

	vaddps  = rvm("vaddps", 1, 0, 0x58, 0, 0)
	vsubps  = rvm("vsubps", 1, 0, 0x5C, 0, 0)
	vmulps  = rvm("vmulps", 1, 0, 0x59, 0, 0)
	vdivps  = rvm("vdivps", 1, 0, 0x5E, 0, 0)
	vminps  = rvm("vminps", 1, 0, 0x5D, 0, 0)
	vmaxps  = rvm("vmaxps", 1, 0, 0x5F, 0, 0)
	vandps  = rvm("vandps", 1, 0, 0x54, 0, 0)
	vandnps = rvm("vandnps", 1, 0, 0x55, 0, 0)
	vorps   = rvm("vorps", 1, 0, 0x56, 0, 0)
	vxorps  = rvm("vxorps", 1, 0, 0x57, 0, 0)
	vsqrtps = rm("vsqrtps", 1, 0, 0x51, 0, 0)

	// 213: reg = vvvv*reg + rm. 231: reg = vvvv*rm + reg. 132: reg = reg*rm + vvvv.
	// With n the product is negated.
	vfmadd132pd  = accumulating(rvm("vfmadd132pd", 2, 1, 0x98, 1, 1))
	vfmadd213pd  = accumulating(rvm("vfmadd213pd", 2, 1, 0xA8, 1, 1))
	vfmadd231pd  = accumulating(rvm("vfmadd231pd", 2, 1, 0xB8, 1, 1))
	vfnmadd132pd = accumulating(rvm("vfnmadd132pd", 2, 1, 0x9C, 1, 1))
	vfnmadd213pd = accumulating(rvm("vfnmadd213pd", 2, 1, 0xAC, 1, 1))
	vfnmadd231pd = accumulating(rvm("vfnmadd231pd", 2, 1, 0xBC, 1, 1))
	vfmadd132ps  = accumulating(rvm("vfmadd132ps", 2, 1, 0x98, 0, 0))
	vfmadd213ps  = accumulating(rvm("vfmadd213ps", 2, 1, 0xA8, 0, 0))
	vfmadd231ps  = accumulating(rvm("vfmadd231ps", 2, 1, 0xB8, 0, 0))
	vfnmadd132ps = accumulating(rvm("vfnmadd132ps", 2, 1, 0x9C, 0, 0))
	vfnmadd213ps = accumulating(rvm("vfnmadd213ps", 2, 1, 0xAC, 0, 0))
	vfnmadd231ps = accumulating(rvm("vfnmadd231ps", 2, 1, 0xBC, 0, 0))
	vfmsub132pd  = accumulating(rvm("vfmsub132pd", 2, 1, 0x9A, 1, 1)) // less the third operand
	vfmsub213pd  = accumulating(rvm("vfmsub213pd", 2, 1, 0xAA, 1, 1))
	vfmsub231pd  = accumulating(rvm("vfmsub231pd", 2, 1, 0xBA, 1, 1))
	vfnmsub132pd = accumulating(rvm("vfnmsub132pd", 2, 1, 0x9E, 1, 1))
	vfnmsub213pd = accumulating(rvm("vfnmsub213pd", 2, 1, 0xAE, 1, 1))
	vfnmsub231pd = accumulating(rvm("vfnmsub231pd", 2, 1, 0xBE, 1, 1))
	vfmsub132ps  = accumulating(rvm("vfmsub132ps", 2, 1, 0x9A, 0, 0))
	vfmsub213ps  = accumulating(rvm("vfmsub213ps", 2, 1, 0xAA, 0, 0))
	vfmsub231ps  = accumulating(rvm("vfmsub231ps", 2, 1, 0xBA, 0, 0))
	vfnmsub132ps = accumulating(rvm("vfnmsub132ps", 2, 1, 0x9E, 0, 0))
	vfnmsub213ps = accumulating(rvm("vfnmsub213ps", 2, 1, 0xAE, 0, 0))
	vfnmsub231ps = accumulating(rvm("vfnmsub231ps", 2, 1, 0xBE, 0, 0))

	vroundpd = rounding("vroundpd", "vrndscalepd", 0x09, 1)
	vroundps = rounding("vroundps", "vrndscaleps", 0x08, 0)

	vpaddq   = rvm("vpaddq", 1, 1, 0xD4, 0, 1)
	vpsubq   = rvm("vpsubq", 1, 1, 0xFB, 0, 1)
	vpmuludq = rvm("vpmuludq", 1, 1, 0xF4, 0, 1)
	vpmuldq  = rvm("vpmuldq", 2, 1, 0x28, 0, 1)
	vpmullq  = rvm("vpmullq", 2, 1, 0x40, no, 1)
	vpminsq  = rvm("vpminsq", 2, 1, 0x39, no, 1)
	vpmaxsq  = rvm("vpmaxsq", 2, 1, 0x3D, no, 1)
	vpminuq  = rvm("vpminuq", 2, 1, 0x3B, no, 1)
	vpmaxuq  = rvm("vpmaxuq", 2, 1, 0x3F, no, 1)
	vpsllvq  = rvm("vpsllvq", 2, 1, 0x47, 1, 1)
	vpsrlvq  = rvm("vpsrlvq", 2, 1, 0x45, 1, 1)
	vpsravq  = rvm("vpsravq", 2, 1, 0x46, no, 1)
	vpsllq   = shiftRow("vpsllq", 0x73, 6, 0, 1)
	vpsrlq   = shiftRow("vpsrlq", 0x73, 2, 0, 1)
	vpsraq   = shiftRow("vpsraq", 0x72, 4, no, 1)
	vprolvq  = rvm("vprolvq", 2, 1, 0x15, no, 1)
	vprolq   = shiftRow("vprolq", 0x72, 1, no, 1)
	vpabsq   = rm("vpabsq", 2, 1, 0x1F, no, 1)

	vpaddd  = rvm("vpaddd", 1, 1, 0xFE, 0, 0)
	vpsubd  = rvm("vpsubd", 1, 1, 0xFA, 0, 0)
	vpmulld = rvm("vpmulld", 2, 1, 0x40, 0, 0)
	vpminsd = rvm("vpminsd", 2, 1, 0x39, 0, 0)
	vpmaxsd = rvm("vpmaxsd", 2, 1, 0x3D, 0, 0)
	vpminud = rvm("vpminud", 2, 1, 0x3B, 0, 0)
	vpmaxud = rvm("vpmaxud", 2, 1, 0x3F, 0, 0)
	vpsllvd = rvm("vpsllvd", 2, 1, 0x47, 0, 0)
	vpsrlvd = rvm("vpsrlvd", 2, 1, 0x45, 0, 0)
	vpsravd = rvm("vpsravd", 2, 1, 0x46, 0, 0)
	vpslld  = shiftRow("vpslld", 0x72, 6, 0, 0)
	vpsrld  = shiftRow("vpsrld", 0x72, 2, 0, 0)
	vpsrad  = shiftRow("vpsrad", 0x72, 4, 0, 0)
	vprolvd = rvm("vprolvd", 2, 1, 0x15, no, 0)
	vprold  = shiftRow("vprold", 0x72, 1, no, 0)
	vpabsd  = rm("vpabsd", 2, 1, 0x1E, 0, 0)

	// Bits and bytes.
	vplzcntq   = rm("vplzcntq", 2, 1, 0x44, no, 1)
	vplzcntd   = rm("vplzcntd", 2, 1, 0x44, no, 0)
	vpshufb    = bytewise(rvm("vpshufb", 2, 1, 0x00, 0, 0)) // of each 16 bytes of vvvv
	vpsadbw    = unmasked(bytewise(rvm("vpsadbw", 1, 1, 0xF6, 0, 0)))
	vpaddb     = bytewise(rvm("vpaddb", 1, 1, 0xFC, 0, 0))
	vpmaddubsw = bytewise(rvm("vpmaddubsw", 2, 1, 0x04, 0, 0))
	vpmaddwd   = bytewise(rvm("vpmaddwd", 1, 1, 0xF5, 0, 0))

	// Halves, and lanes in another order.
	vpblendd      = withImm(rvm("vpblendd", 3, 1, 0x02, 0, no))
	vshufps       = withImm(rvm("vshufps", 1, 0, 0xC6, 0, 0))
	vpshufd       = withImm(rm("vpshufd", 1, 1, 0x70, 0, 0))
	vpermqI       = withImm(rm("vpermq", 3, 1, 0x00, 1, 1))
	vpermd        = rvm("vpermd", 2, 1, 0x36, 0, 0) // lanes of rm, chosen by vvvv
	vpermq        = rvm("vpermq", 2, 1, 0x36, no, 1)
	vpermi2d      = accumulating(rvm("vpermi2d", 2, 1, 0x76, no, 0)) // lanes of vvvv and then rm, chosen by reg
	valignq       = withImm(rvm("valignq", 3, 1, 0x03, no, 1))       // lanes of vvvv behind those of rm, from imm on
	vextractf128  = extract("vextractf128", xmm, 0x19, l256, 0, no)
	vinsertf128   = insert("vinsertf128", xmm, 0x18, l256, 0, no)
	vextractf64x4 = extract("vextractf64x4", half, 0x1B, l512, no, 1)
	vinsertf64x4  = insert("vinsertf64x4", half, 0x1A, l512, no, 1)

	// Comparisons: to a vector with VEX, to a mask with EVEX.
	vcmppd   = withImm(rvm("vcmppd", 1, 1, 0xC2, 0, no))
	vcmpps   = withImm(rvm("vcmpps", 1, 0, 0xC2, 0, no))
	vcmppdK  = toMask(withImm(rvm("vcmppd", 1, 1, 0xC2, no, 1)))
	vcmppsK  = toMask(withImm(rvm("vcmpps", 1, 0, 0xC2, no, 0)))
	vpcmpeqq = rvm("vpcmpeqq", 2, 1, 0x29, 0, no)
	vpcmpgtq = rvm("vpcmpgtq", 2, 1, 0x37, 0, no)
	vpcmpeqd = rvm("vpcmpeqd", 1, 1, 0x76, 0, no)
	vpcmpgtd = rvm("vpcmpgtd", 1, 1, 0x66, 0, no)
	vpcmpq   = toMask(withImm(rvm("vpcmpq", 3, 1, 0x1F, no, 1)))
	vpcmpuq  = toMask(withImm(rvm("vpcmpuq", 3, 1, 0x1E, no, 1)))
	vpcmpd   = toMask(withImm(rvm("vpcmpd", 3, 1, 0x1F, no, 0)))
	vpcmpud  = toMask(withImm(rvm("vpcmpud", 3, 1, 0x1E, no, 0)))
	vptestmq = toMask(rvm("vptestmq", 2, 1, 0x27, no, 1)) // of lanes where vvvv & rm is not 0
	vptestmd = toMask(rvm("vptestmd", 2, 1, 0x27, no, 0))

	vptestnmq  = toMask(rvm("vptestnmq", 2, 2, 0x27, no, 1)) // where it is 0
	vptestnmd  = toMask(rvm("vptestnmd", 2, 2, 0x27, no, 0))
	vpternlogq = accumulating(withImm(rvm("vpternlogq", 3, 1, 0x25, no, 1))) // bits by a table of reg, vvvv and rm
	vtestps    = newRow(row{name: "vtestps", form: formTest, m: 2, pp: 1, op: 0x0E, vw: 0, ew: no, reg: vec, rm: vec})
	vptest     = newRow(row{name: "vptest", form: formTest, m: 2, pp: 1, op: 0x17, vw: 0, ew: no, reg: vec, rm: vec})

	// rm where a sign bit of is4, or a bit of k, is set, else vvvv.
	vblendvpd = blend4("vblendvpd", 0x4B)
	vblendvps = blend4("vblendvps", 0x4A)
	vblendmpd = rvm("vblendmpd", 2, 1, 0x65, no, 1)
	vblendmps = rvm("vblendmps", 2, 1, 0x65, no, 0)

	// Conversions.
	vcvtqq2pd   = rm("vcvtqq2pd", 1, 2, 0xE6, no, 1)
	vcvtuqq2pd  = rm("vcvtuqq2pd", 1, 2, 0x7A, no, 1)
	vcvttpd2qq  = rm("vcvttpd2qq", 1, 1, 0x7A, no, 1)
	vcvttpd2uqq = rm("vcvttpd2uqq", 1, 1, 0x78, no, 1)
	vcvtps2pd   = mixed("vcvtps2pd", vec, half, 1, 0, 0x5A, 0, 0)
	vcvtpd2ps   = mixed("vcvtpd2ps", half, vec, 1, 1, 0x5A, 0, 1)
	vcvtdq2pd   = mixed("vcvtdq2pd", vec, half, 1, 2, 0xE6, 0, 0)
	vcvtudq2pd  = mixed("vcvtudq2pd", vec, half, 1, 2, 0x7A, no, 0)
	vcvttpd2dq  = mixed("vcvttpd2dq", half, vec, 1, 1, 0xE6, 0, 1)
	vcvttpd2udq = mixed("vcvttpd2udq", half, vec, 1, 0, 0x78, no, 1)
	vcvtdq2ps   = rm("vcvtdq2ps", 1, 0, 0x5B, 0, 0)
	vcvtudq2ps  = rm("vcvtudq2ps", 1, 3, 0x7A, no, 0)
	vcvttps2dq  = rm("vcvttps2dq", 1, 2, 0x5B, 0, 0)
	vcvttps2udq = rm("vcvttps2udq", 1, 0, 0x78, no, 0)
	vcvtqq2ps   = mixed("vcvtqq2ps", half, vec, 1, 0, 0x5B, no, 1)
	vcvtuqq2ps  = mixed("vcvtuqq2ps", half, vec, 1, 3, 0x7A, no, 1)

	vpmovsxdq = widening("vpmovsxdq", half, 0x25)
	vpmovzxdq = widening("vpmovzxdq", half, 0x35)
	vpmovsxwd = widening("vpmovsxwd", half, 0x23)
	vpmovzxwd = widening("vpmovzxwd", half, 0x33)
	vpmovsxbd = widening("vpmovsxbd", quarter, 0x21)
	vpmovzxbd = widening("vpmovzxbd", quarter, 0x31)
	vpmovsxbq = widening("vpmovsxbq", eighth, 0x22)
	vpmovqd   = narrowing("vpmovqd", half, 0x35)
	vpmovdw   = narrowing("vpmovdw", half, 0x33)
	vpmovdb   = narrowing("vpmovdb", quarter, 0x31)

	// Moves.
	vmovapd       = move("vmovapd", 1, 0x28, 0, 1)
	vmovupd       = move("vmovupd", 1, 0x10, 0, 1)
	vmovups       = move("vmovups", 0, 0x10, 0, 0)
	vmovupdStore  = moveOut("vmovupd", 1, 0x11, 0, 1)
	vmovupsStore  = moveOut("vmovups", 0, 0x11, 0, 0)
	vmovntpdStore = unmasked(moveOut("vmovntpd", 1, 0x2B, 0, 1))
	vmovdqu8      = asXMM(move("vmovdqu8", 3, 0x6F, no, 0))
	vmovdqu8Store = asXMM(moveOut("vmovdqu8", 3, 0x7F, no, 0))
	vbroadcastsd  = scalar("vbroadcastsd", vec, xmm, 8, 2, 1, 0x19, 0, 1)
	vbroadcastss  = scalar("vbroadcastss", vec, xmm, 4, 2, 1, 0x18, 0, 0)
	vpbroadcastq  = scalar("vpbroadcastq", vec, xmm, 8, 2, 1, 0x59, 0, 1)
	vpbroadcastd  = scalar("vpbroadcastd", vec, xmm, 4, 2, 1, 0x58, 0, 0)
	// From a general register.
	vpbroadcastqR = registerOnly(scalar("vpbroadcastq", vec, r64, 8, 2, 1, 0x7C, no, 1))
	vpbroadcastdR = registerOnly(scalar("vpbroadcastd", vec, r32, 4, 2, 1, 0x7C, no, 0))
	vmovq         = moveScalar("vmovq", formRM, 0x6E, 1, r64, 8)
	vmovd         = moveScalar("vmovd", formRM, 0x6E, 0, r32, 4)
	vmovqOut      = moveScalar("vmovq", formMR, 0x7E, 1, r64, 8)
	vmovdOut      = moveScalar("vmovd", formMR, 0x7E, 0, r32, 4)
	// Masked by the sign bits of vvvv.
	vmaskmovpd      = memoryOnly(rvm("vmaskmovpd", 2, 1, 0x2D, 0, no))
	vmaskmovps      = memoryOnly(rvm("vmaskmovps", 2, 1, 0x2C, 0, no))
	vmaskmovpdStore = maskedStore("vmaskmovpd", 0x2F)
	vmaskmovpsStore = maskedStore("vmaskmovps", 0x2E)

	// The first letter after gather or scatter is of the indices, 32 or 64 bits wide.
	vgatherqps  = gather("vgatherqps", half, vec, 0x93, 0, 4)
	vgatherqpd  = gather("vgatherqpd", vec, vec, 0x93, 1, 8)
	vscatterqps = scatter("vscatterqps", half, vec, 0xA3, 0, 4)
	vscatterqpd = scatter("vscatterqpd", vec, vec, 0xA3, 1, 8)

	// Sign bits, and bytes of bools.
	vmovmskpd = registerOnly(mixed("vmovmskpd", r32, vec, 1, 1, 0x50, 0, no))
	vmovmskps = registerOnly(mixed("vmovmskps", r32, vec, 1, 0, 0x50, 0, no))
	vptestmb  = asXMM(toMask(bytewise(rvm("vptestmb", 2, 1, 0x26, no, 0))))
	vpmovm2b  = asXMM(fromMask("vpmovm2b", 0x28, 0))
	vpmovm2d  = fromMask("vpmovm2d", 0x38, 0)
	vpmovm2q  = fromMask("vpmovm2q", 0x38, 1)
	vpmovq2m  = signsToMask("vpmovq2m", 1)
	vandpdX   = asXMM(rvm("vandpd", 1, 1, 0x54, 0, 1))

	// Masks of 8 and of 16 lanes.
	kortestb   = kRow("kortestb", formTest, 0x98, l128, 1)
	kmovb      = kLoad("kmovb", 1)
	kmovbStore = memoryOnly(kMove("kmovb", formMR, 0x91, 1, mask, mask))
	kmovbFrom  = kMove("kmovb", formRM, 0x92, 1, mask, r32)
	kmovbTo    = kMove("kmovb", formRM, 0x93, 1, r32, mask)
	kunpckbw   = kRow("kunpckbw", formRVM, 0x4B, l256, 1) // rm, and vvvv above it
	kandw      = kRow("kandw", formRVM, 0x41, l256, 0)
	kandnw     = kRow("kandnw", formRVM, 0x42, l256, 0)
	korw       = kRow("korw", formRVM, 0x45, l256, 0)
	kxnorw     = kRow("kxnorw", formRVM, 0x46, l256, 0)
	kxorw      = kRow("kxorw", formRVM, 0x47, l256, 0)
	knotw      = kRow("knotw", formRM, 0x44, l128, 0)
	kortestw   = kRow("kortestw", formTest, 0x98, l128, 0)
	kmovw      = kLoad("kmovw", 0)
	kmovwStore = memoryOnly(kMove("kmovw", formMR, 0x91, 0, mask, mask))
	kmovwFrom  = kMove("kmovw", formRM, 0x92, 0, mask, r32)
	kmovwTo    = kMove("kmovw", formRM, 0x93, 0, r32, mask)
	kshiftrw   = kShift("kshiftrw", 0x30, 1)

	vzeroupper = newRow(row{name: "vzeroupper", form: formNone, m: 1, op: 0x77, ew: no, length: l128})

	// General registers: moves.
	movLoad    = gpr("mov", formRM, 0, 0x8B, 1, 0, 0)
	movStore   = gpr("mov", formMR, 0, 0x89, 1, 0, 0)
	movLoad32  = gpr("mov", formRM, 0, 0x8B, 0, 0, 0) // clears the upper half
	movStore32 = gpr("mov", formMR, 0, 0x89, 0, 0, 0)
	movStore16 = store16()
	movStore8  = newRow(row{name: "mov", form: formMR, legacy: true, op: 0x88, ew: no, reg: r8, rm: r8, n: 1})
	movImm     = gpr("mov", formM, 0, 0xC7, 1, 0, 4)
	movImm32   = gpr("mov", formM, 0, 0xC7, 0, 0, 4) // clears the upper half
	movzxByte  = extending("movzx", 1, 0xB6, 0, r8, 1)
	movzxWord  = extending("movzx", 1, 0xB7, 0, r16, 2)
	movsxByte  = extending("movsx", 1, 0xBE, 1, r8, 1)
	movsxWord  = extending("movsx", 1, 0xBF, 1, r16, 2)
	movsxd     = extending("movsxd", 0, 0x63, 1, r32, 4)
	lea        = memoryOnly(gpr("lea", formRM, 0, 0x8D, 1, 0, 0))

	// General registers: arithmetic. The flags are those of the last one.
	add64    = twoOperand("add", 0, 0x03, 1)
	sub64    = twoOperand("sub", 0, 0x2B, 1)
	and64    = twoOperand("and", 0, 0x23, 1)
	or64     = twoOperand("or", 0, 0x0B, 1)
	xor64    = twoOperand("xor", 0, 0x33, 1)
	imul64   = twoOperand("imul", 1, 0xAF, 1)
	cmp64    = gpr("cmp", formTest, 0, 0x3B, 1, 0, 0)
	testReg  = gpr("test", formMR, 0, 0x85, 1, 0, 0)
	addImm   = inPlace("add", 0x83, 0, 1, 1)
	orImm    = inPlace("or", 0x83, 1, 1, 1)
	andImm   = inPlace("and", 0x83, 4, 1, 1)
	subImm   = inPlace("sub", 0x83, 5, 1, 1)
	xorImm   = inPlace("xor", 0x83, 6, 1, 1)
	cmpImm   = gpr("cmp", formM, 0, 0x83, 1, 7, 1)
	addImm4  = inPlace("add", 0x81, 0, 1, 4)
	orImm4   = inPlace("or", 0x81, 1, 1, 4)
	andImm4  = inPlace("and", 0x81, 4, 1, 4)
	subImm4  = inPlace("sub", 0x81, 5, 1, 4)
	xorImm4  = inPlace("xor", 0x81, 6, 1, 4)
	cmpImm4  = gpr("cmp", formM, 0, 0x81, 1, 7, 4)
	imulImm  = gpr("imul", formRM, 0, 0x69, 1, 0, 4)
	testImm  = gpr("test", formM, 0, 0xF7, 1, 0, 4)
	not64    = inPlace("not", 0xF7, 2, 1, 0)
	neg      = inPlace("neg", 0xF7, 3, 1, 0)
	dec      = inPlace("dec", 0xFF, 1, 1, 0)
	shl64    = inPlace("shl", 0xC1, 4, 1, 1)
	shr64    = inPlace("shr", 0xC1, 5, 1, 1)
	sar64    = inPlace("sar", 0xC1, 7, 1, 1)
	rol64    = inPlace("rol", 0xC1, 0, 1, 1)
	bswap    = newRow(row{name: "bswap", form: formO, legacy: true, m: 1, op: 0xC8, vw: 1, ew: no, reg: r64, rm: r64, reads: true})
	popcnt   = counting("popcnt", 0xB8)
	tzcnt    = counting("tzcnt", 0xBC)
	lzcnt    = counting("lzcnt", 0xBD)
	xor32    = gpr("xor", formMR, 0, 0x31, 0, 0, 0)
	and32Imm = inPlace("and", 0x81, 4, 0, 4)

	imul32Imm = gpr("imul", formRM, 0, 0x69, 0, 0, 4)

	shlx  = bmi("shlx", formRMV, 2, 1, 0xF7) // rm by vvvv modulo 64
	shrx  = bmi("shrx", formRMV, 2, 3, 0xF7)
	sarx  = bmi("sarx", formRMV, 2, 2, 0xF7)
	andn  = bmi("andn", formRVM, 2, 0, 0xF2)
	setcc = byCondition(func(name string, cc uint8) *row {
		return newRow(row{name: "set" + name, form: formM, legacy: true, m: 1, op: 0x90 | cc, ew: no, reg: r8, rm: r8, n: 1})
	})
	cmovcc = byCondition(func(name string, cc uint8) *row { return twoOperand("cmov"+name, 1, 0x40|cc, 1) })

	div    = gpr("div", formM, 0, 0xF7, 1, 6, 0) // RDX:RAX by rm: quotient to RAX, remainder to RDX
	idiv   = gpr("idiv", formM, 0, 0xF7, 1, 7, 0)
	div32  = gpr("div", formM, 0, 0xF7, 0, 6, 0)
	cqo    = newRow(row{name: "cqo", form: formNone, legacy: true, op: 0x99, vw: 1, ew: no})
	jmpReg = registerOnly(newRow(row{name: "jmp", form: formM, legacy: true, op: 0xFF, ew: no, digit: 4, reg: r64, rm: r64, n: 8}))
	ret    = newRow(row{name: "ret", form: formNone, legacy: true, op: 0xC3, ew: no})

	// In one step on memory, for all cores.
	lockXadd      = locked("xadd", 1, 0xC1, 1) // reg is what was there, and rm the sum
	lockXadd32    = locked("xadd", 1, 0xC1, 0)
	lockCmpxchg   = locked("cmpxchg", 1, 0xB1, 1) // rm becomes reg if it is RAX, else RAX becomes rm
	lockCmpxchg32 = locked("cmpxchg", 1, 0xB1, 0)
	xchg          = memoryOnly(gpr("xchg", formMR, 0, 0x87, 1, 0, 0)) // locks by itself
	xchg32        = memoryOnly(gpr("xchg", formMR, 0, 0x87, 0, 0, 0))
)

// condition is a condition of a jump, as encoded.
type condition uint8

const (
	ifBelow     condition = 0x2 // unsigned <, or carry
	ifNotBelow  condition = 0x3
	ifEqual     condition = 0x4 // or zero
	ifNotEqual  condition = 0x5
	ifBelowE    condition = 0x6
	ifAbove     condition = 0x7 // unsigned >
	ifSign      condition = 0x8
	ifNotSign   condition = 0x9
	ifParity    condition = 0xA // after vucomis: unordered
	ifNotParity condition = 0xB
	ifLess      condition = 0xC // signed
	ifGreaterE  condition = 0xD
	ifLessE     condition = 0xE
	ifGreater   condition = 0xF
	always      condition = 0x10
)

// not is the opposite.
func (c condition) not() condition { return c ^ 1 }

var conditionNames = [...]string{ifBelow: "b", ifNotBelow: "ae", ifEqual: "e", ifNotEqual: "ne", ifBelowE: "be", ifAbove: "a", ifSign: "s", ifNotSign: "ns",
	ifParity: "p", ifNotParity: "np", ifLess: "l", ifGreaterE: "ge", ifLessE: "le", ifGreater: "g", always: "mp"}

func (c condition) jumpName() string { return "j" + conditionNames[c] }
