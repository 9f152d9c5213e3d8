package amd64

// form says where the operands of an instruction stand in its encoding.
type form uint8

const (
	formNone form = iota
	formRVM       // reg = op(vvvv, rm)
	formRM        // reg = op(rm)
	formMR        // rm = op(reg)
	formMVR       // rm = op(vvvv, reg)
	formVM        // vvvv = op(rm), the opcode continued in reg
	formM         // rm alone, the opcode continued in reg
	formTest      // flags = op(reg, rm)
)

// kind is the kind of a register operand.
type kind uint8

const (
	none kind = iota
	vec       // xmm, ymm or zmm, by vector length
	xmm       // xmm in any case
	mask      // k
	r8        // general registers by size
	r32
	r64
)

// row is one instruction of the assembler.
type row struct {
	name string // Intel syntax
	// evex is the name of the EVEX form where it is another.
	evex    string
	form    form
	legacy  bool
	m       uint8 // opcode map: 0 (legacy only) one byte, 1 0F, 2 0F38, 3 0F3A
	pp      uint8 // mandatory prefix: 0 none, 1 66, 2 F3, 3 F2
	op      uint8
	vw      int8 // VEX.W or REX.W; no if there is no such form
	ew      int8 // EVEX.W; no if there is no such form
	digit   uint8
	imm     uint8 // bytes of immediate
	is4     bool  // a fourth register in the immediate
	n       uint8 // bytes of the memory operand; 0 is the vector length
	length  length
	reg, rm kind
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

func rvm(name string, m, pp, op uint8, vw, ew int8) *row {
	return &row{name: name, form: formRVM, m: m, pp: pp, op: op, vw: vw, ew: ew, reg: vec, rm: vec}
}

func rm(name string, m, pp, op uint8, vw, ew int8) *row {
	r := rvm(name, m, pp, op, vw, ew)
	r.form = formRM
	return r
}

func shiftRow(name string, op, digit uint8, vw, ew int8) *row {
	return &row{name: name, form: formVM, m: 1, pp: 1, op: op, vw: vw, ew: ew, digit: digit, imm: 1, reg: vec, rm: vec}
}

func withImm(r *row) *row { r.imm = 1; return r }

func kRow(name string, form form, op uint8, l length, pp uint8) *row {
	return &row{name: name, form: form, m: 1, pp: pp, op: op, ew: no, length: l, reg: mask, rm: mask, n: 1}
}

func gpr(name string, form form, m, op uint8, w int8, digit, imm uint8) *row {
	k, n := r32, uint8(4)
	if w == 1 {
		k, n = r64, 8
	}
	return &row{name: name, form: form, legacy: true, m: m, op: op, vw: w, ew: no, digit: digit, imm: imm, reg: k, rm: k, n: n}
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

	vfmadd213pd = rvm("vfmadd213pd", 2, 1, 0xA8, 1, 1) // reg = vvvv*reg + rm
	vfmadd231pd = rvm("vfmadd231pd", 2, 1, 0xB8, 1, 1) // reg = vvvv*rm + reg

	vroundpd = &row{name: "vroundpd", evex: "vrndscalepd", form: formRM, m: 3, pp: 1, op: 0x09, vw: 0, ew: 1, imm: 1, reg: vec, rm: vec}

	vpaddq   = rvm("vpaddq", 1, 1, 0xD4, 0, 1)
	vpsubq   = rvm("vpsubq", 1, 1, 0xFB, 0, 1)
	vpmuludq = rvm("vpmuludq", 1, 1, 0xF4, 0, 1)
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

	vpblendd = withImm(rvm("vpblendd", 3, 1, 0x02, 0, no))

	// Comparisons: to a vector with VEX, to a mask with EVEX.
	vcmppd   = withImm(rvm("vcmppd", 1, 1, 0xC2, 0, no))
	vcmppdK  = withImm(&row{name: "vcmppd", form: formRVM, m: 1, pp: 1, op: 0xC2, vw: no, ew: 1, reg: mask, rm: vec})
	vpcmpeqq = rvm("vpcmpeqq", 2, 1, 0x29, 0, no)
	vpcmpgtq = rvm("vpcmpgtq", 2, 1, 0x37, 0, no)
	vpcmpq   = withImm(&row{name: "vpcmpq", form: formRVM, m: 3, pp: 1, op: 0x1F, vw: no, ew: 1, reg: mask, rm: vec})
	vpcmpuq  = withImm(&row{name: "vpcmpuq", form: formRVM, m: 3, pp: 1, op: 0x1E, vw: no, ew: 1, reg: mask, rm: vec})
	vtestpd  = &row{name: "vtestpd", form: formTest, m: 2, pp: 1, op: 0x0F, vw: 0, ew: no, reg: vec, rm: vec}

	vblendvpd = &row{name: "vblendvpd", form: formRVM, m: 3, pp: 1, op: 0x4B, vw: 0, ew: no, is4: true, reg: vec, rm: vec} // rm where is4, else vvvv
	vblendmpd = rvm("vblendmpd", 2, 1, 0x65, no, 1)                                                                        // rm where k, else vvvv

	vcvtqq2pd   = rm("vcvtqq2pd", 1, 2, 0xE6, no, 1)
	vcvtuqq2pd  = rm("vcvtuqq2pd", 1, 2, 0x7A, no, 1)
	vcvttpd2qq  = rm("vcvttpd2qq", 1, 1, 0x7A, no, 1)
	vcvttpd2uqq = rm("vcvttpd2uqq", 1, 1, 0x78, no, 1)

	// Moves.
	vmovapd      = rm("vmovapd", 1, 1, 0x28, 0, 1)
	vmovupd      = rm("vmovupd", 1, 1, 0x10, 0, 1)
	vmovupdStore = &row{name: "vmovupd", form: formMR, m: 1, pp: 1, op: 0x11, vw: 0, ew: 1, reg: vec, rm: vec}
	vbroadcastsd = &row{name: "vbroadcastsd", form: formRM, m: 2, pp: 1, op: 0x19, vw: 0, ew: 1, n: 8, reg: vec, rm: xmm}
	vpbroadcastq = &row{name: "vpbroadcastq", form: formRM, m: 2, pp: 1, op: 0x59, vw: 0, ew: 1, n: 8, reg: vec, rm: xmm}
	// From a general register.
	vpbroadcastqR = &row{name: "vpbroadcastq", form: formRM, m: 2, pp: 1, op: 0x7C, vw: no, ew: 1, reg: vec, rm: r64}
	vmovq         = &row{name: "vmovq", form: formRM, m: 1, pp: 1, op: 0x6E, vw: 1, ew: no, length: l128, n: 8, reg: xmm, rm: r64}
	vmovd         = &row{name: "vmovd", form: formRM, m: 1, pp: 1, op: 0x6E, vw: 0, ew: no, length: l128, n: 4, reg: xmm, rm: r32}
	// Masked by the sign bits of vvvv.
	vmaskmovpd      = rvm("vmaskmovpd", 2, 1, 0x2D, 0, no)
	vmaskmovpdStore = &row{name: "vmaskmovpd", form: formMVR, m: 2, pp: 1, op: 0x2F, vw: 0, ew: no, reg: vec, rm: vec}
	// Bytes of bools.
	vpmovsxbq     = &row{name: "vpmovsxbq", form: formRM, m: 2, pp: 1, op: 0x22, vw: 0, ew: no, n: 4, reg: vec, rm: xmm}
	vmovmskpd     = &row{name: "vmovmskpd", form: formRM, m: 1, pp: 1, op: 0x50, vw: 0, ew: no, reg: r32, rm: vec}
	vmovdqu8      = &row{name: "vmovdqu8", form: formRM, m: 1, pp: 3, op: 0x6F, vw: no, ew: 0, length: l128, reg: xmm, rm: xmm}
	vmovdqu8Store = &row{name: "vmovdqu8", form: formMR, m: 1, pp: 3, op: 0x7F, vw: no, ew: 0, length: l128, reg: xmm, rm: xmm}
	vptestmb      = &row{name: "vptestmb", form: formRVM, m: 2, pp: 1, op: 0x26, vw: no, ew: 0, length: l128, reg: mask, rm: xmm}
	vpmovm2b      = &row{name: "vpmovm2b", form: formRM, m: 2, pp: 2, op: 0x28, vw: no, ew: 0, length: l128, reg: xmm, rm: mask}
	vandpdX       = &row{name: "vandpd", form: formRVM, m: 1, pp: 1, op: 0x54, vw: 0, ew: 1, length: l128, reg: xmm, rm: xmm}

	// Masks of 8 lanes.
	kandb      = kRow("kandb", formRVM, 0x41, l256, 1)
	kandnb     = kRow("kandnb", formRVM, 0x42, l256, 1) // ^vvvv & rm
	korb       = kRow("korb", formRVM, 0x45, l256, 1)
	kxnorb     = kRow("kxnorb", formRVM, 0x46, l256, 1)
	kxorb      = kRow("kxorb", formRVM, 0x47, l256, 1)
	knotb      = kRow("knotb", formRM, 0x44, l128, 1)
	kortestb   = kRow("kortestb", formTest, 0x98, l128, 1)
	kmovb      = kRow("kmovb", formRM, 0x90, l128, 1)
	kmovbStore = kRow("kmovb", formMR, 0x91, l128, 1)

	vzeroupper = &row{name: "vzeroupper", form: formNone, m: 1, op: 0x77, ew: no, length: l128}

	// General registers.
	movLoad    = gpr("mov", formRM, 0, 0x8B, 1, 0, 0)
	movStore   = gpr("mov", formMR, 0, 0x89, 1, 0, 0)
	movLoad32  = gpr("mov", formRM, 0, 0x8B, 0, 0, 0)
	movStore32 = gpr("mov", formMR, 0, 0x89, 0, 0, 0)
	movStore8  = &row{name: "mov", form: formMR, legacy: true, op: 0x88, ew: no, reg: r8, rm: r8, n: 1}
	movImm     = gpr("mov", formM, 0, 0xC7, 1, 0, 4)
	movzxByte  = &row{name: "movzx", form: formRM, legacy: true, m: 1, op: 0xB6, ew: no, reg: r32, rm: r8, n: 1}
	lea        = gpr("lea", formRM, 0, 0x8D, 1, 0, 0)
	addImm     = gpr("add", formM, 0, 0x83, 1, 0, 1)
	subImm     = gpr("sub", formM, 0, 0x83, 1, 5, 1)
	cmpImm     = gpr("cmp", formM, 0, 0x83, 1, 7, 1)
	testReg    = gpr("test", formMR, 0, 0x85, 1, 0, 0)
	xor32      = gpr("xor", formMR, 0, 0x31, 0, 0, 0)
	or32       = gpr("or", formMR, 0, 0x09, 0, 0, 0)
	dec        = gpr("dec", formM, 0, 0xFF, 1, 1, 0)
	shl32      = gpr("shl", formM, 0, 0xC1, 0, 4, 1)
	shr32      = gpr("shr", formM, 0, 0xC1, 0, 5, 1)
	and32Imm   = gpr("and", formM, 0, 0x81, 0, 4, 4)
	imul32Imm  = gpr("imul", formRM, 0, 0x69, 0, 0, 4)
	movReg     = gpr("mov", formMR, 0, 0x89, 1, 0, 0)
	neg        = gpr("neg", formM, 0, 0xF7, 1, 3, 0)
	div        = gpr("div", formM, 0, 0xF7, 1, 6, 0) // RDX:RAX by rm: quotient to RAX, remainder to RDX
	idiv       = gpr("idiv", formM, 0, 0xF7, 1, 7, 0)
	cqo        = &row{name: "cqo", form: formNone, legacy: true, op: 0x99, vw: 1, ew: no}
	jmpReg     = &row{name: "jmp", form: formM, legacy: true, op: 0xFF, ew: no, digit: 4, reg: r64, rm: r64, n: 8}
	ret        = &row{name: "ret", form: formNone, legacy: true, op: 0xC3, ew: no}
)

// condition is a condition of a jump, as encoded.
type condition uint8

const (
	ifBelow    condition = 0x2 // unsigned <
	ifNotBelow condition = 0x3
	ifEqual    condition = 0x4 // or zero
	ifNotEqual condition = 0x5
	ifBelowE   condition = 0x6
	ifAbove    condition = 0x7 // unsigned >
	ifNotSign  condition = 0x9
	always     condition = 0x10
)

var jumpNames = map[condition]string{ifBelow: "jb", ifNotBelow: "jae", ifEqual: "je", ifNotEqual: "jne", ifBelowE: "jbe", ifAbove: "ja", ifNotSign: "jns", always: "jmp"}
