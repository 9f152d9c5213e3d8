package nvptx

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/big"
	mathbits "math/bits"
	"testing"

	"gpunotes/gpukit/internal/ptx"
)

// A plain interpreter of the PTX that Emit writes, by the PTX manual and not by
// the IR: one block after the other, an instruction of each thread in turn. What PTX leaves open is an error.

type machine struct {
	m      *ptx.Module
	global []byte // at address globalBase
	consts []byte
	vars   map[string]uint64
	steps  int
	limit  int // of steps
	// Of a kernel with .nc loads: what these read, and what the kernel wrote.
	fixed, written map[uint64]bool
}

const globalBase = 1 << 32

func newMachine(t testing.TB, m *ptx.Module) *machine {
	t.Helper()
	mc := &machine{m: m, vars: map[string]uint64{}, limit: 50e6}
	for i := range m.Vars {
		v := &m.Vars[i]
		if v.Space == ptx.Shared {
			continue
		}
		var b []byte
		for k := range max(v.Len, 1) {
			var x uint64
			if k < len(v.Init) {
				x = v.Init[k]
			}
			b = append(b, binary.LittleEndian.AppendUint64(nil, x)[:v.Type.Size()]...)
		}
		if v.Space == ptx.Global {
			mc.vars[v.Name] = mc.alloc(b)
			continue
		}
		for len(mc.consts)%16 != 0 {
			mc.consts = append(mc.consts, 0)
		}
		mc.vars[v.Name] = uint64(len(mc.consts))
		mc.consts = append(mc.consts, b...)
	}
	return mc
}

// alloc puts data into global memory.
func (mc *machine) alloc(data []byte) uint64 {
	for len(mc.global)%256 != 0 {
		mc.global = append(mc.global, 0)
	}
	at := globalBase + uint64(len(mc.global))
	mc.global = append(mc.global, data...)
	return at
}

func (mc *machine) word(addr uint64, size int) uint64 {
	var b [8]byte
	copy(b[:], mc.global[addr-globalBase:][:size])
	return binary.LittleEndian.Uint64(b[:])
}

type thread struct {
	mc     *machine
	f      *ptx.Func
	code   []*ptx.Decoded
	params []byte
	shared []byte
	local  []byte
	vars   map[string]uint64
	regs   []uint64
	sreg   map[string]uint64
	pc     int
	done   bool
	waits  bool
}

// launch runs a kernel on a one-dimensional grid.
func (mc *machine) launch(name string, grid, block, dynamic int, params []uint64) error {
	f := mc.m.Func(name)
	if len(params) != len(f.Params) {
		return fmt.Errorf("%d parameters, want %d", len(params), len(f.Params))
	}
	var code []*ptx.Decoded
	for i := range f.Instrs {
		d, err := ptx.Decode(f.Instrs[i].Opcode)
		if err != nil {
			return err
		}
		code = append(code, d)
		if d.Has("nc") {
			mc.fixed, mc.written = map[uint64]bool{}, map[uint64]bool{}
		}
	}
	vars := map[string]uint64{}
	for n, a := range mc.vars {
		vars[n] = a
	}
	var raw []byte
	for i, p := range params {
		vars[f.Params[i].Name] = uint64(len(raw))
		raw = binary.LittleEndian.AppendUint64(raw, p)
	}
	var sharedSize, localSize uint64
	for i := range f.Vars {
		size := &sharedSize
		if f.Vars[i].Space == ptx.Local {
			size = &localSize
		}
		*size = (*size + 15) &^ 15
		vars[f.Vars[i].Name] = *size
		*size += uint64(f.Vars[i].Size())
	}
	sharedSize = (sharedSize + 15) &^ 15
	vars["dynamic_shared"] = sharedSize
	sharedSize += uint64(dynamic)
	for b := range grid {
		shared := make([]byte, sharedSize)
		threads := make([]*thread, block)
		for i := range threads {
			threads[i] = &thread{mc: mc, f: f, code: code, params: raw, shared: shared, local: make([]byte, localSize), vars: vars, regs: make([]uint64, len(f.Regs)),
				sreg: map[string]uint64{"%tid.x": uint64(i), "%ntid.x": uint64(block), "%ctaid.x": uint64(b), "%nctaid.x": uint64(grid), "%ntid.y": 1, "%ntid.z": 1, "%nctaid.y": 1, "%nctaid.z": 1, "%laneid": uint64(i % 32)}}
		}
		if err := runBlock(threads); err != nil {
			return err
		}
	}
	return nil
}

func runBlock(threads []*thread) error {
	for {
		var alive []*thread
		for ran := true; ran; {
			ran = false
			for _, t := range threads {
				if t.done || t.waits {
					continue
				}
				ran = true
				if err := t.step(); err != nil {
					return fmt.Errorf("%s, instruction %d: %s: %w", t.f.Name, t.pc, t.f.Format(&t.f.Instrs[min(t.pc, len(t.f.Instrs)-1)]), err)
				}
			}
		}
		for _, t := range threads {
			if !t.done {
				alive = append(alive, t)
			}
		}
		if len(alive) == 0 {
			return nil
		}
		for _, t := range alive {
			if t.pc != alive[0].pc {
				return fmt.Errorf("threads wait at different places")
			}
		}
		for lo := 0; lo < len(threads); lo += 32 {
			warp := map[uint64]*thread{}
			for _, t := range threads[lo:min(lo+32, len(threads))] {
				if !t.done {
					warp[t.sreg["%laneid"]] = t
				}
			}
			meet(warp)
		}
		for _, t := range alive {
			t.waits = false
			t.pc++
		}
	}
}

// meet carries out a warp operation.
func meet(warp map[uint64]*thread) {
	var ballot, all uint64
	results := map[uint64]uint64{}
	for lane, t := range warp {
		in, d := &t.f.Instrs[t.pc], t.code[t.pc]
		switch d.Op {
		case "vote":
			all |= 1 << lane
			ballot |= t.read(&in.Args[1], ptx.Pred) << lane
		case "shfl":
			from := t.read(&in.Args[2], ptx.U32)
			results[lane] = 0xDEADBEEF // from a lane that is not there
			if o := warp[from]; o != nil && from < 32 {
				results[lane] = o.read(&in.Args[1], ptx.B32)
			}
		}
	}
	for lane, t := range warp {
		in, d := &t.f.Instrs[t.pc], t.code[t.pc]
		switch {
		case d.Op == "shfl":
			t.write(&in.Args[0], results[lane])
		case d.Op != "vote":
		case d.Has("ballot"):
			t.write(&in.Args[0], ballot)
		case d.Has("any"):
			t.write(&in.Args[0], truth(ballot != 0))
		default:
			t.write(&in.Args[0], truth(ballot == all))
		}
	}
}

func truth(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}

func mask(t ptx.Type, x uint64) uint64 { return x << (64 - t.Bits()) >> (64 - t.Bits()) }

// extend is x, of type t, as a 64-bit integer.
func extend(t ptx.Type, x uint64) uint64 {
	if t.IsSigned() {
		return uint64(int64(x<<(64-t.Bits())) >> (64 - t.Bits()))
	}
	return mask(t, x)
}

func (t *thread) read(o *ptx.Operand, typ ptx.Type) uint64 {
	switch o.Kind {
	case ptx.KindReg:
		x := mask(typ, t.regs[o.Reg])
		if o.Not {
			x ^= 1
		}
		return x
	case ptx.KindSpecial:
		x, ok := t.sreg[o.Sym]
		if !ok && o.Sym[len(o.Sym)-2] != '.' {
			panic("no " + o.Sym)
		}
		return x
	case ptx.KindSym:
		return t.vars[o.Sym] + uint64(o.Off)
	}
	return mask(typ, o.Bits)
}

func (t *thread) write(o *ptx.Operand, x uint64) {
	t.regs[o.Reg] = mask(t.f.Regs[o.Reg].Type, x)
}

// place is the memory that an address operand means.
func (t *thread) place(d *ptx.Decoded, o *ptx.Operand) ([]byte, error) {
	addr := uint64(o.Off)
	if o.Reg != ptx.NoReg {
		addr += t.regs[o.Reg]
	} else {
		addr += t.vars[o.Sym]
	}
	var m []byte
	switch d.Space {
	case ptx.Global:
		addr -= globalBase
		m = t.mc.global
	case ptx.Shared:
		m = t.shared
	case ptx.Local:
		m = t.local
	case ptx.Const:
		m = t.mc.consts
	case ptx.ParamSpace:
		m = t.params
	}
	n := uint64(d.Type.Size())
	if addr > uint64(len(m)) || addr+n > uint64(len(m)) {
		return nil, fmt.Errorf("address %#x is outside of %v memory", addr, d.Space)
	}
	if addr%n != 0 {
		return nil, fmt.Errorf("address %#x is misaligned", addr)
	}
	if d.Space == ptx.Global && t.mc.fixed != nil {
		if d.Has("nc") {
			t.mc.fixed[addr] = true
		} else if d.Op != "ld" {
			t.mc.written[addr] = true
		}
		if t.mc.fixed[addr] && t.mc.written[addr] {
			return nil, fmt.Errorf("address %#x is written and read as never written", addr)
		}
	}
	return m[addr:][:n], nil
}

func get(b []byte) (x uint64) {
	for i, c := range b {
		x |= uint64(c) << (8 * i)
	}
	return x
}

func put(b []byte, x uint64) {
	for i := range b {
		b[i] = byte(x >> (8 * i))
	}
}

func float(t ptx.Type, x uint64) float64 {
	if t == ptx.F32 {
		return float64(math.Float32frombits(uint32(x)))
	}
	return math.Float64frombits(x)
}

// pack rounds to type t. Rounding a float64 sum, product, quotient or root of
// float32 again gives the float32 result (53 >= 2*24+2).
func pack(t ptx.Type, x float64) uint64 {
	if t == ptx.F32 {
		return uint64(math.Float32bits(float32(x)))
	}
	return math.Float64bits(x)
}

func (t *thread) step() error {
	if t.mc.steps++; t.mc.steps > t.mc.limit {
		return fmt.Errorf("does not end")
	}
	in, d := &t.f.Instrs[t.pc], t.code[t.pc]
	if in.Guard.On && (t.regs[in.Guard.Reg] != 0) == in.Guard.Not {
		t.pc++
		return nil
	}
	a := in.Args
	arg := func(i int) uint64 { return t.read(&a[i], d.Type) }
	ext := func(i int) uint64 { return extend(d.Type, arg(i)) }
	fl := func(i int) float64 { return float(d.Type, arg(i)) }
	set := func(x uint64) { t.write(&a[0], x) }
	switch d.Op {
	case "ret", "exit":
		t.done = true
		return nil
	case "bra":
		t.pc, _ = t.f.LabelAt(a[0].Sym)
		return nil
	case "bar", "vote", "shfl":
		t.waits = true
		return nil
	case "mov":
		switch {
		case a[0].Kind == ptx.KindVec:
			x := arg(1)
			for i := range a[0].Elems {
				t.write(&a[0].Elems[i], x>>(i*64/len(a[0].Elems)))
			}
		case a[1].Kind == ptx.KindVec:
			var x uint64
			for i := range a[1].Elems {
				x |= t.read(&a[1].Elems[i], ptx.B32) << (32 * i)
			}
			set(x)
		default:
			set(arg(1))
		}
	case "membar":
	case "cvta":
		set(arg(1))
	case "ld":
		b, err := t.place(d, &a[1])
		if err != nil {
			return err
		}
		set(extend(d.Type, get(b)))
	case "st":
		b, err := t.place(d, &a[0])
		if err != nil {
			return err
		}
		put(b, arg(1))
	case "atom":
		return t.atom(in, d)
	case "cvt":
		t.cvt(in, d)
	case "add", "sub", "mul", "div", "rem", "min", "max":
		x, err := t.binary(d, arg(1), arg(2))
		if err != nil {
			return err
		}
		set(x)
	case "mad":
		x, _ := t.binary(&ptx.Decoded{Op: "mul", Mods: d.Mods, Type: d.Type}, arg(1), arg(2))
		typ := d.Type
		if d.Has("wide") {
			typ = ptx.U64
		}
		set(x + t.read(&a[3], typ))
	case "fma":
		if d.Type != ptx.F64 {
			return fmt.Errorf("not known here")
		}
		set(math.Float64bits(math.FMA(fl(1), fl(2), fl(3))))
	case "sqrt":
		set(pack(d.Type, math.Sqrt(fl(1))))
	case "neg":
		if d.Type.IsFloat() {
			set(arg(1) ^ 1<<(d.Type.Bits()-1))
		} else {
			set(-arg(1))
		}
	case "abs":
		set(pack(d.Type, math.Abs(fl(1))))
	case "and":
		set(arg(1) & arg(2))
	case "or":
		set(arg(1) | arg(2))
	case "xor":
		set(arg(1) ^ arg(2))
	case "not":
		set(^arg(1))
	case "shl":
		set(arg(1) << min(t.read(&a[2], ptx.U32), uint64(d.Type.Bits())))
	case "shr":
		n := min(t.read(&a[2], ptx.U32), uint64(d.Type.Bits()))
		if d.Type.IsSigned() {
			set(uint64(int64(ext(1)) >> n))
		} else {
			set(arg(1) >> n)
		}
	case "clz":
		set(uint64(mathbits.LeadingZeros64(arg(1)) - 64 + d.Type.Bits()))
	case "popc":
		set(uint64(mathbits.OnesCount64(arg(1))))
	case "brev":
		set(mathbits.Reverse64(arg(1)) >> (64 - d.Type.Bits()))
	case "prmt":
		v, x := arg(1)|arg(2)<<32, uint64(0)
		for i := range 4 {
			x |= v >> (8 * (t.read(&a[3], ptx.U32) >> (4 * i) & 7)) & 0xFF << (8 * i)
		}
		set(x)
	case "setp":
		r := t.compare(d, arg(1), arg(2))
		if len(a) > 3 {
			c := t.read(&a[3], ptx.Pred) != 0
			switch {
			case d.Has("and"):
				r = r && c
			case d.Has("or"):
				r = r || c
			default:
				r = r != c
			}
		}
		set(truth(r))
	case "selp":
		if t.read(&a[3], ptx.Pred) != 0 {
			set(arg(1))
		} else {
			set(arg(2))
		}
	default:
		return fmt.Errorf("not known here")
	}
	t.pc++
	return nil
}

func (t *thread) compare(d *ptx.Decoded, x, y uint64) bool {
	cmp := d.Mods[0]
	var c int
	if d.Type.IsFloat() {
		a, b := float(d.Type, x), float(d.Type, y)
		if a != a || b != b {
			return cmp == "nan" || len(cmp) == 3 && cmp[2] == 'u'
		}
		c = int(truth(a > b)) - int(truth(a < b))
	} else if d.Type.IsSigned() {
		a, b := int64(extend(d.Type, x)), int64(extend(d.Type, y))
		c = int(truth(a > b)) - int(truth(a < b))
	} else {
		c = int(truth(x > y)) - int(truth(x < y))
	}
	switch cmp[:2] {
	case "eq":
		return c == 0
	case "ne":
		return c != 0
	case "lt":
		return c < 0
	case "le":
		return c <= 0
	case "gt":
		return c > 0
	case "ge":
		return c >= 0
	case "nu":
		return true
	}
	return false // nan
}

func (t *thread) binary(d *ptx.Decoded, x, y uint64) (uint64, error) {
	if d.Type.IsFloat() {
		if d.Op != "min" && d.Op != "max" && !d.Has("rn") {
			return 0, fmt.Errorf("may be fused: no .rn")
		}
		a, b := float(d.Type, x), float(d.Type, y)
		switch d.Op {
		case "add":
			return pack(d.Type, a+b), nil
		case "sub":
			return pack(d.Type, a-b), nil
		case "mul":
			return pack(d.Type, a*b), nil
		case "div":
			return pack(d.Type, a/b), nil
		}
		return 0, fmt.Errorf("not known here")
	}
	signed := d.Type.IsSigned()
	a, b := extend(d.Type, x), extend(d.Type, y)
	switch d.Op {
	case "add":
		return a + b, nil
	case "sub":
		return a - b, nil
	case "mul":
		if !d.Has("hi") {
			return a * b, nil
		}
		if signed {
			return 0, fmt.Errorf("not known here")
		}
		hi, lo := mathbits.Mul64(a, b)
		if d.Type.Bits() == 32 {
			hi = lo >> 32
		}
		return hi, nil
	case "div", "rem":
		if b == 0 {
			return 0, fmt.Errorf("division by zero")
		}
		if signed && int64(b) == -1 && a == -a && a != 0 || signed && d.Type.Bits() == 32 && int64(a) == math.MinInt32 && int64(b) == -1 {
			return 0, fmt.Errorf("the quotient overflows")
		}
		switch {
		case d.Op == "div" && signed:
			return uint64(int64(a) / int64(b)), nil
		case d.Op == "div":
			return a / b, nil
		case signed:
			return uint64(int64(a) % int64(b)), nil
		}
		return a % b, nil
	}
	less := a < b
	if signed {
		less = int64(a) < int64(b)
	}
	if less == (d.Op == "min") {
		return a, nil
	}
	return b, nil
}

// roundInt rounds to an integer as a .r?i modifier says.
func roundInt(mod string, x float64) float64 {
	switch mod {
	case "rni":
		return math.RoundToEven(x)
	case "rzi":
		return math.Trunc(x)
	case "rmi":
		return math.Floor(x)
	case "rpi":
		return math.Ceil(x)
	}
	return x
}

func (t *thread) cvt(in *ptx.Instr, d *ptx.Decoded) {
	to, from := d.Types[0], d.Types[1]
	x := t.read(&in.Args[1], from)
	var r uint64
	switch {
	case from.IsFloat() && to.IsFloat():
		r = pack(to, roundInt(d.Mods[0], float(from, x)))
	case to.IsFloat():
		i := new(big.Float).SetPrec(64).SetUint64(extend(from, x))
		if from.IsSigned() {
			i.SetInt64(int64(extend(from, x)))
		}
		if to == ptx.F32 {
			f, _ := i.Float32()
			r = pack(to, float64(f))
		} else {
			f, _ := i.Float64()
			r = pack(to, f)
		}
	case from.IsFloat():
		// "In float-to-integer conversion, NaN inputs" and clamping.
		f := roundInt(d.Mods[0], float(from, x))
		hi := math.Ldexp(1, to.Bits())
		lo := 0.0
		if to.IsSigned() {
			hi /= 2
			lo = -hi
		}
		switch {
		case f != f:
			if from == ptx.F64 || to.Bits() == 64 {
				r = 1 << (to.Bits() - 1)
			}
		case f >= hi:
			if r = ^uint64(0); to.IsSigned() {
				r = 1<<(to.Bits()-1) - 1
			}
		case f < lo:
			if to.IsSigned() {
				r = -(uint64(1) << (to.Bits() - 1))
			}
		default:
			b, _ := new(big.Float).SetFloat64(f).Int(nil)
			if b.Sign() < 0 {
				r = uint64(b.Int64())
			} else {
				r = b.Uint64()
			}
		}
		r = extend(to, r)
	default:
		// Chopped or extended to the destination type, then to its register.
		r = extend(to, extend(from, x))
	}
	t.write(&in.Args[0], r)
}

func (t *thread) atom(in *ptx.Instr, d *ptx.Decoded) error {
	b, err := t.place(d, &in.Args[1])
	if err != nil {
		return err
	}
	old := get(b)
	x := t.read(&in.Args[2], d.Type)
	op := d.Mods[1]
	switch {
	case op == "exch":
	case op == "cas":
		if old != x {
			x = old
		} else {
			x = t.read(&in.Args[3], d.Type)
		}
	case op == "and":
		x &= old
	case op == "or":
		x |= old
	case op == "xor":
		x ^= old
	default:
		if x, err = t.binary(&ptx.Decoded{Op: op, Mods: []string{"rn"}, Type: d.Type}, old, x); err != nil {
			return err
		}
	}
	put(b, x)
	t.write(&in.Args[0], old)
	t.pc++
	return nil
}
