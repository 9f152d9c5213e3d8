package amd64

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
)

// The general registers in use. RSP, RBP, R14 and R15 are never touched.
const (
	rax uint8 = 0
	rcx uint8 = 1
	rdx uint8 = 2
	rbx uint8 = 3
	rsi uint8 = 6
	rdi uint8 = 7
	r8q uint8 = 8
	r9  uint8 = 9
	r10 uint8 = 10
	r11 uint8 = 11
)

var gprNames = [4][16]string{
	{"al", "cl", "dl", "bl", "spl", "bpl", "sil", "dil", "r8b", "r9b", "r10b", "r11b", "r12b", "r13b", "r14b", "r15b"},
	{"ax", "cx", "dx", "bx", "sp", "bp", "si", "di", "r8w", "r9w", "r10w", "r11w", "r12w", "r13w", "r14w", "r15w"},
	{"eax", "ecx", "edx", "ebx", "esp", "ebp", "esi", "edi", "r8d", "r9d", "r10d", "r11d", "r12d", "r13d", "r14d", "r15d"},
	{"rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15"},
}

// memory is a memory operand: base + index*scale + disp, or a place relative
// to the instruction pointer (a constant of the pool, or a label).
type memory struct {
	base     uint8
	indexed  bool
	index    uint8
	scale    uint8 // log2
	disp     int32
	relative bool
	constant int   // of the pool, if relative and label is 0
	label    label // if relative
	// broadcast repeats one element, of the instruction's size, for all lanes (EVEX).
	broadcast bool
	// lanewise: index is a vector register, for gathers and scatters.
	lanewise bool
}

func at(base uint8, disp int32) memory { return memory{base: base, disp: disp} }

// operand is the register or memory operand of an instruction.
type operand struct {
	reg   uint8
	isMem bool
	mem   memory
}

func register(r uint8) operand  { return operand{reg: r} }
func inMemory(m memory) operand { return operand{isMem: true, mem: m} }

// operands are those of one instruction, by their place in the encoding.
type operands struct {
	reg, v uint8
	rm     operand
	c      uint8 // is4
	k      uint8 // opmask, 0 for none
	zero   bool  // zeroing instead of merging
	imm    int32
}

// label is a place in the code; 0 is none.
type label int32

// jump lengths are found by passes: all long at first, then shortened where
// the distance of the pass before allows it, until nothing changes. Code only
// shrinks, so that a short jump stays short.
type assembler struct {
	vectorLength length // of instructions that do not fix it
	useEVEX      bool   // for vectors
	code         []byte
	before       []byte // code of the last pass
	labels       []int  // offset of each label, of this pass or of the last
	short        []bool // by jump
	jumps        int
	changed      bool
	pass         int
	pool         [][]byte
	poolIndex    map[string]int
	poolAt       []int // offset of each constant, of the last pass
	end          int   // of code and pool, of the last pass
	listing      *strings.Builder
	starts       []int // of the instructions in the listing
	count        int   // instructions
}

func newAssembler(l length, evex bool) *assembler {
	return &assembler{vectorLength: l, useEVEX: evex, labels: []int{0}, poolIndex: map[string]int{}}
}

func (a *assembler) newLabel() label {
	a.labels = append(a.labels, 0)
	return label(len(a.labels) - 1)
}

// constant puts bytes into the pool and returns their number there. They are
// aligned to their length.
func (a *assembler) constant(b []byte) int {
	if i, ok := a.poolIndex[string(b)]; ok {
		return i
	}
	a.pool = append(a.pool, b)
	a.poolIndex[string(b)] = len(a.pool) - 1
	return len(a.pool) - 1
}

// assemble runs emit until the lengths of all jumps are settled and returns
// the code with its constants behind. emit must do the same each time.
func (a *assembler) assemble(emit func(), listing bool) ([]byte, string) {
	a.pass = 0
	for last := false; ; a.pass++ {
		a.before, a.code = a.code, a.before[:0]
		a.jumps, a.count, a.changed = 0, 0, false
		if last && listing {
			a.listing = &strings.Builder{}
		}
		emit()
		if last {
			break
		}
		end := a.layPool()
		last = !a.changed && end == a.end
		a.end = end
		if last && !listing { // another pass would write the same
			break
		}
	}
	for len(a.code)%64 != 0 {
		a.code = append(a.code, 0xCC)
	}
	out := append(make([]byte, 0, a.end), a.code...)
	for _, i := range a.poolOrder() {
		for len(out) < a.poolAt[i] {
			out = append(out, 0)
		}
		out = append(out, a.pool[i]...)
	}
	if a.listing == nil {
		return out, ""
	}
	return out, a.listing.String()
}

// poolOrder puts wide constants first: no padding between them.
func (a *assembler) poolOrder() []int {
	order := make([]int, len(a.pool))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int { return len(a.pool[j]) - len(a.pool[i]) })
	return order
}

func (a *assembler) layPool() int {
	at := (len(a.code) + 63) &^ 63
	a.poolAt = make([]int, len(a.pool))
	for _, i := range a.poolOrder() {
		a.poolAt[i] = at
		at += len(a.pool[i])
	}
	return at
}

func (a *assembler) place(l label) {
	if a.labels[l] != len(a.code) {
		a.labels[l] = len(a.code)
		a.changed = true
	}
}

// jump emits a jump if the condition holds.
func (a *assembler) jump(c condition, to label) {
	a.count++
	i := a.jumps
	a.jumps++
	if i == len(a.short) {
		a.short = append(a.short, false)
		a.changed = true
	}
	start := len(a.code)
	if d := a.labels[to] - (start + 2); a.pass > 0 && !a.short[i] && d >= -128 && d <= 127 {
		a.short[i] = true
		a.changed = true
	}
	switch {
	case a.short[i] && c == always:
		a.code = append(a.code, 0xEB, byte(a.labels[to]-start-2))
	case a.short[i]:
		a.code = append(a.code, 0x70|byte(c), byte(a.labels[to]-start-2))
	case c == always:
		a.code = binary.LittleEndian.AppendUint32(append(a.code, 0xE9), uint32(a.labels[to]-start-5))
	default:
		a.code = binary.LittleEndian.AppendUint32(append(a.code, 0x0F, 0x80|byte(c)), uint32(a.labels[to]-start-6))
	}
	if a.listing != nil {
		a.starts = append(a.starts, start)
		fmt.Fprintf(a.listing, "%s 0x%x\n", c.jumpName(), a.labels[to])
	}
}

// op emits an instruction.
func (a *assembler) op(r *row, o operands) {
	a.count++
	if a.listing != nil {
		a.starts = append(a.starts, len(a.code))
		a.print(r, o)
	}
	switch {
	case r.legacy:
		a.legacy(r, o)
	case a.encodesEVEX(r):
		a.evex(r, o)
	default:
		a.vex(r, o)
	}
}

// again emits an instruction as the last pass did, from so many bytes on.
func (a *assembler) again(at, size int32) {
	a.count++
	a.code = append(a.code, a.before[at:at+size]...)
}

func (a *assembler) encodesEVEX(r *row) bool {
	return !r.legacy && (r.vw == no || a.useEVEX && r.ew != no)
}

func bit(b bool) byte {
	if b {
		return 1
	}
	return 0
}

func (r *row) regField(o *operands) (reg, v uint8) {
	switch r.form {
	case formVM:
		return r.digit, o.reg
	case formM:
		return r.digit, 0
	case formRVM, formMVR, formRMV, formGather:
		return o.reg, o.v
	}
	return o.reg, 0
}

// highBits are the X and B bits of the operand.
func (o *operand) highBits() (x, b byte) {
	switch {
	case !o.isMem:
		return o.reg >> 4 & 1, o.reg >> 3 & 1
	case o.mem.relative:
		return 0, 0
	case o.mem.indexed:
		return o.mem.index >> 3 & 1, o.mem.base >> 3 & 1
	}
	return 0, o.mem.base >> 3 & 1
}

func (a *assembler) legacy(r *row, o operands) {
	reg, _ := r.regField(&o)
	x, b := o.rm.highBits()
	if !o.rm.isMem {
		x = 0
	}
	rex := byte(r.vw)<<3 | reg>>3&1<<2 | x<<1 | b
	switch r.form {
	case formNone:
		rex = byte(r.vw) << 3
	case formO:
		rex = byte(r.vw)<<3 | reg>>3
	}
	if r.lock {
		a.code = append(a.code, 0xF0)
	}
	if r.pp != 0 {
		a.code = append(a.code, [...]byte{1: 0x66, 2: 0xF3, 3: 0xF2}[r.pp])
	}
	byteReg := r.reg == r8 && reg >= 4 || r.rm == r8 && !o.rm.isMem && o.rm.reg >= 4
	if rex != 0 || byteReg {
		a.code = append(a.code, 0x40|rex)
	}
	if r.m == 1 {
		a.code = append(a.code, 0x0F)
	}
	switch r.form {
	case formNone:
		a.code = append(a.code, r.op)
	case formO:
		a.code = append(a.code, r.op|reg&7)
	default:
		a.code = append(a.code, r.op)
		a.modrm(reg, o.rm, 1, int(r.imm))
	}
	a.immediate(r, o)
}

func (a *assembler) immediate(r *row, o operands) {
	switch r.imm {
	case 1:
		a.code = append(a.code, byte(o.imm))
	case 4:
		a.code = binary.LittleEndian.AppendUint32(a.code, uint32(o.imm))
	}
}

func (a *assembler) vex(r *row, o operands) {
	reg, v := r.regField(&o)
	x, b := o.rm.highBits()
	if !o.rm.isMem {
		x = 0
	}
	if reg|v > 15 || o.k != 0 || o.rm.isMem && o.rm.mem.broadcast {
		panic("amd64: internal error: no VEX form of " + r.name)
	}
	l := r.length
	if l == byTarget {
		l = l256
	}
	last := (^v&15)<<3 | byte(l-l128)<<2 | r.pp
	if r.m == 1 && r.vw == 0 && x == 0 && b == 0 {
		a.code = append(a.code, 0xC5, (reg>>3&1^1)<<7|last)
	} else {
		a.code = append(a.code, 0xC4, (reg>>3&1^1)<<7|(x^1)<<6|(b^1)<<5|r.m, byte(r.vw)<<7|last)
	}
	a.code = append(a.code, r.op)
	if r.form == formNone {
		return
	}
	tail := int(r.imm)
	if r.is4 {
		tail = 1
	}
	a.modrm(reg, o.rm, 1, tail)
	if r.is4 {
		a.code = append(a.code, o.c<<4)
	}
	a.immediate(r, o)
}

func (a *assembler) lengthOf(r *row) length {
	if r.length == byTarget {
		return a.vectorLength
	}
	return r.length
}

func (a *assembler) evex(r *row, o operands) {
	reg, v := r.regField(&o)
	x, b := o.rm.highBits()
	l := a.lengthOf(r)
	if o.rm.isMem && o.rm.mem.lanewise {
		v = o.rm.mem.index & 16 // the place of the index's high bit
	}
	a.code = append(a.code, 0x62,
		(reg>>3&1^1)<<7|(x^1)<<6|(b^1)<<5|(reg>>4&1^1)<<4|r.m,
		byte(r.ew)<<7|(^v&15)<<3|4|r.pp,
		bit(o.zero)<<7|byte(l-l128)<<5|bit(o.rm.isMem && o.rm.mem.broadcast)<<4|(v>>4&1^1)<<3|o.k,
		r.op)
	n := r.bytes(l)
	if o.rm.isMem && o.rm.mem.broadcast {
		n = 4 << r.ew
	}
	a.modrm(reg, o.rm, n, int(r.imm))
	a.immediate(r, o)
}

// bytes is the size of the memory operand.
func (r *row) bytes(l length) int32 {
	n := int32(16) << (l - l128)
	switch {
	case r.n != 0:
		return int32(r.n)
	case r.rm == half:
		return n / 2
	case r.rm == quarter:
		return n / 4
	case r.rm == eighth:
		return n / 8
	}
	return n
}

// modrm emits ModRM, SIB and displacement. n is the unit of a one-byte
// displacement, tail the number of bytes that follow in the instruction.
func (a *assembler) modrm(reg uint8, rm operand, n int32, tail int) {
	reg &= 7
	if !rm.isMem {
		a.code = append(a.code, 0xC0|reg<<3|rm.reg&7)
		return
	}
	m := rm.mem
	if m.relative {
		a.code = append(a.code, reg<<3|5)
		a.code = binary.LittleEndian.AppendUint32(a.code, uint32(a.target(m)-(len(a.code)+4+tail)))
		return
	}
	base := m.base & 7
	mod := byte(2)
	switch {
	case m.disp == 0 && base != 5:
		mod = 0
	case m.disp%n == 0 && m.disp/n >= -128 && m.disp/n <= 127:
		mod = 1
	}
	if m.indexed || base == 4 {
		index := byte(4)
		if m.indexed {
			index = m.index & 7
		}
		a.code = append(a.code, mod<<6|reg<<3|4, m.scale<<6|index<<3|base)
	} else {
		a.code = append(a.code, mod<<6|reg<<3|base)
	}
	switch mod {
	case 1:
		a.code = append(a.code, byte(m.disp/n))
	case 2:
		a.code = binary.LittleEndian.AppendUint32(a.code, uint32(m.disp))
	}
}

// target is the offset that a relative operand means, as of the last pass.
func (a *assembler) target(m memory) int {
	if m.label != 0 {
		return a.labels[m.label]
	}
	if m.constant < len(a.poolAt) {
		return a.poolAt[m.constant]
	}
	return 0
}

// print writes the instruction in Intel syntax as objdump does, with the
// condition of a comparison as an immediate.
func (a *assembler) print(r *row, o operands) {
	evex := a.encodesEVEX(r)
	name := r.name
	if evex && r.evex != "" {
		name = r.evex
	}
	l := a.lengthOf(r)
	opmask := ""
	if o.k != 0 {
		opmask = fmt.Sprintf("{k%d}", o.k)
		if o.zero {
			opmask += "{z}"
		}
	}
	reg := registerName(r.reg, l, o.reg)
	rmName := ""
	if o.rm.isMem {
		rmName = a.memoryName(o.rm.mem, r, evex)
	} else {
		rmName = registerName(r.rm, l, o.rm.reg)
	}
	vk := r.v
	if vk == none {
		vk = r.rm
	}
	v := registerName(vk, l, o.v)
	var ops []string
	switch r.form {
	case formRVM:
		ops = []string{reg + opmask, v, rmName}
	case formRM, formTest:
		ops = []string{reg + opmask, rmName}
	case formMR:
		ops = []string{rmName + opmask, reg}
	case formMVR:
		ops = []string{rmName, v, reg}
	case formVM:
		ops = []string{reg + opmask, rmName}
	case formM:
		ops = []string{rmName}
	case formRMV:
		ops = []string{reg, rmName, v}
	case formO:
		ops = []string{reg}
	case formGather:
		ops = []string{reg + opmask, rmName}
		if !evex {
			ops = append(ops, v)
		}
	case formScatter:
		ops = []string{rmName + opmask, reg}
	}
	if r.is4 {
		ops = append(ops, registerName(r.reg, l, o.c))
	}
	switch {
	case r.imm == 1 && r.legacy && o.imm < 0:
		ops = append(ops, fmt.Sprintf("%#x", uint64(int64(o.imm))))
	case r.imm == 1:
		ops = append(ops, fmt.Sprintf("%#x", uint8(o.imm)))
	case r.imm == 4 && r.vw == 1:
		ops = append(ops, fmt.Sprintf("%#x", uint64(int64(o.imm))))
	case r.imm == 4:
		ops = append(ops, fmt.Sprintf("%#x", uint32(o.imm)))
	}
	line := name
	if len(ops) > 0 {
		line += " " + strings.Join(ops, ",")
	}
	a.listing.WriteString(line + "\n")
}

func registerName(k kind, l length, r uint8) string {
	switch k {
	case none:
		return ""
	case mask:
		return fmt.Sprintf("k%d", r)
	case half:
		l = max(l-1, l128)
	case quarter:
		l = max(l, l128+2) - 2
	case eighth, xmm:
		l = l128
	case vec:
	default:
		return gprNames[k-r8][r]
	}
	return fmt.Sprintf("%s%d", [...]string{"", "xmm", "ymm", "zmm"}[l], r)
}

func (a *assembler) memoryName(m memory, r *row, evex bool) string {
	var s string
	switch {
	case m.relative:
		s = fmt.Sprintf("[rip->%#x]", a.target(m))
	default:
		s = "[" + gprNames[r64-r8][m.base]
		switch {
		case m.lanewise:
			s += fmt.Sprintf("+%s*%d", registerName(r.rm, a.lengthOf(r), m.index), 1<<m.scale)
		case m.indexed:
			s += fmt.Sprintf("+%s*%d", gprNames[r64-r8][m.index], 1<<m.scale)
		}
		switch {
		case m.disp > 0:
			s += fmt.Sprintf("+%#x", m.disp)
		case m.disp < 0:
			s += fmt.Sprintf("-%#x", -m.disp)
		}
		s += "]"
	}
	if evex && m.broadcast {
		s += "{bcst}"
	}
	return s
}
