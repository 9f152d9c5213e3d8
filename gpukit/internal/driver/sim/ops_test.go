package sim

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"strings"
	"testing"

	"gpunotes/gpukit/internal/driver"
	"gpunotes/gpukit/internal/ptx"
)

// opcodes lists all opcodes of a row of PTX's table that are its own.
func opcodes(f *ptx.Form) (out []string) {
	var expand func(prefix string, slots []ptx.Slot)
	expand = func(prefix string, slots []ptx.Slot) {
		if len(slots) == 0 {
			if d, err := ptx.Decode(prefix); err == nil && d.Form == f && d.Type.Bits()*max(d.Vec, 1) <= 128 {
				out = append(out, prefix)
			}
			return
		}
		if slots[0].Optional {
			expand(prefix, slots[1:])
		}
		for _, w := range slots[0].Words {
			expand(prefix+"."+w, slots[1:])
		}
	}
	expand(f.Op, f.Slots)
	return out
}

// shapeType is the type of an operand of the given shape, NoType if it is none of a register.
func shapeType(d *ptx.Decoded, shape string) ptx.Type {
	shape = strings.TrimPrefix(strings.TrimPrefix(shape, "="), "~")
	switch shape {
	case "T":
		return d.Type
	case "T0":
		return d.Types[0]
	case "W":
		return map[ptx.Type]ptx.Type{ptx.U16: ptx.U32, ptx.S16: ptx.S32, ptx.U32: ptx.U64, ptx.S32: ptx.S64}[d.Type]
	case "P", "p":
		return ptx.Pred
	case "M":
		return d.Type
	}
	return ptx.ParseType(shape)
}

func values(t ptx.Type) (out []uint64) {
	switch t {
	case ptx.Pred:
		return []uint64{0, 1}
	case ptx.F64:
		for _, x := range []float64{0, 1, 1.5, 0.5, 2.5, 3.5, 1.0 / 3, 0.1, 1e10, 1e300, 1e-300, 0x1p-1074, 0x1p-1022, 0x1p-1022 - 0x1p-1074, math.MaxFloat64, math.Inf(1), math.NaN(), 1 << 31, 1<<31 - 0.5, 1 << 32, 1 << 63, 1 << 64, 1<<53 + 2,
			0x1p-126, 0x1p-149, 0x1.8p-149, 0x1p-150, math.MaxFloat32, 0x1.ffffffp127, 1 + 0x1p-52, 1 + 0x1p-24, 127.5, 255.5} {
			out = append(out, bits64(x), bits64(-x))
		}
	case ptx.F32:
		for _, x := range []float32{0, 1, 1.5, 0.5, 2.5, 3.5, 1.0 / 3, 0.1, 1e10, 1e30, 1e-30, 0x1p-149, 0x1p-126, 0x1p-126 - 0x1p-149, math.MaxFloat32, float32(math.Inf(1)), float32(math.NaN()), 1 << 31, 1 << 32, 1 << 63, 1 << 40, 1<<24 + 2, 1 + 0x1p-23, 127.5, 255.5, 0x1p-75, 0x1.8p-74} {
			out = append(out, bits32(x), bits32(-x))
		}
	default:
		for _, x := range []uint64{0, 1, 2, 3, 5, 7, 24, 31, 32, 33, 63, 64, 100, 0x7F, 0x80, 0xFF, 0x7FFF, 0x8000, 0xFFFF, 0x7FFFFF, 0x800000, 0x7FFFFFFF, 1 << 31, math.MaxUint32, 1 << 32, 1<<63 - 1, 1 << 63, math.MaxUint64, math.MaxUint64 - 1, 0x123456789ABCDEF0, 0xFEDCBA9876543210} {
			out = append(out, low(max(t.Bits(), 32), x))
		}
	}
	return out
}

// register is a declared register for a type and the load that fills it: what is narrower than it is has rubbish above.
func register(t ptx.Type, wide bool, n int) (name, move string) {
	switch {
	case t == ptx.Pred:
		return fmt.Sprintf("%%p%d", n), fmt.Sprintf("ld.global.u32 %%r%d, [%%rd%d]; setp.ne.u32 %%p%d, %%r%d, 0;", 20+n, 20+n, n, 20+n)
	case t == ptx.F32:
		return fmt.Sprintf("%%f%d", n), fmt.Sprintf("ld.global.f32 %%f%d, [%%rd%d];", n, 20+n)
	case t == ptx.F64:
		return fmt.Sprintf("%%fd%d", n), fmt.Sprintf("ld.global.f64 %%fd%d, [%%rd%d];", n, 20+n)
	case t.Bits() == 64 || wide:
		return fmt.Sprintf("%%rd%d", n), fmt.Sprintf("ld.global.u64 %%rd%d, [%%rd%d];", n, 20+n)
	case t.Bits() == 16:
		return fmt.Sprintf("%%h%d", n), fmt.Sprintf("ld.global.u16 %%h%d, [%%rd%d];", n, 20+n)
	}
	return fmt.Sprintf("%%r%d", n), fmt.Sprintf("ld.global.u32 %%r%d, [%%rd%d];", n, 20+n)
}

// samples is how many threads try an instruction.
const samples = 128

// executeOne runs one instruction on samples: inputs by operand, results as stored.
func executeOne(t testing.TB, d *Device, opcode string, wide bool, in [][]uint64) (results [2][]uint64, text string) {
	dec, err := ptx.Decode(opcode)
	if err != nil {
		t.Fatal(err)
	}
	var body strings.Builder
	body.WriteString("mov.u32 %r50, %ctaid.x; mov.u32 %r51, %ntid.x; mov.u32 %r52, %tid.x;\nmad.lo.u32 %r50, %r50, %r51, %r52;\nmul.wide.u32 %rd50, %r50, 8; add.u64 %rd51, %rd50, %rdout; add.u64 %rd52, %rd50, %rdtwo;\n")
	var names []string
	store := ""
	k := 0
	for i, shape := range dec.Form.Args {
		dst := strings.HasPrefix(shape, "=")
		if shape == "i" {
			names = append(names, "0xE8")
			continue
		}
		st := shapeType(dec, shape)
		if st == ptx.NoType {
			t.Fatalf("%s: operand %s", opcode, shape)
		}
		w := wide && strings.Contains(shape, "~") && !st.IsFloat()
		name, move := register(st, w, i)
		switch {
		case !dst:
			fmt.Fprintf(&body, "add.u64 %%rd%d, %%rd50, %%rdin%d; %s\n", 20+i, k, move)
			k++
		case shape == "=P":
			name = "%p10|%p11"
			store = "selp.u32 %r10, 1, 0, %p10; st.global.u32 [%rd51], %r10; selp.u32 %r11, 1, 0, %p11; st.global.u32 [%rd52], %r11;"
		case st == ptx.Pred:
			name, store = "%p10", "selp.u32 %r10, 1, 0, %p10; st.global.u32 [%rd51], %r10;"
		default:
			name = map[byte]string{'r': "%r10", 'f': "%f10", 'h': "%h10"}[name[1]]
			size, letter := 32, "u"
			switch {
			case st == ptx.F64:
				name, size, letter = "%fd10", 64, "f"
			case st == ptx.F32:
				letter = "f"
			case st.Bits() == 64 || w:
				name, size = "%rd10", 64
			case st.Bits() == 16:
				name, size = "%h10", 16
			default:
				name = "%r10"
			}
			store = fmt.Sprintf("st.global.%s%d [%%rd51], %s;", letter, size, name)
		}
		names = append(names, name)
	}
	fmt.Fprintf(&body, "%s %s;\n%s\nret;", opcode, strings.Join(names, ", "), store)
	params := []string{"out", "two"}
	for i := range in {
		params = append(params, fmt.Sprint("in", i))
	}
	text = strings.Replace(kernelText("sm_90", strings.Join(params, " "), body.String()), ".version 7.0", ".version 7.8", 1)
	f := loadKernel(t, d, text)
	l := driver.Launch{Grid: driver.Dim{X: 2, Y: 1, Z: 1}, Block: driver.Dim{X: samples / 2, Y: 1, Z: 1}}
	l.Params = append(l.Params, alloc(t, d, words(samples)), alloc(t, d, words(samples)))
	for _, v := range in {
		var raw []byte
		for _, x := range v {
			raw = binary.LittleEndian.AppendUint64(raw, x)
		}
		l.Params = append(l.Params, alloc(t, d, raw))
	}
	if err := f.Launch(l); err != nil {
		t.Fatalf("%s: %v", opcode, err)
	}
	for i := range results {
		results[i] = readWords(t, d, l.Params[i], samples)
	}
	for _, p := range l.Params {
		d.Free(driver.Ptr(p))
	}
	return results, text
}

// TestArithmetic executes every instruction of PTX's table that computes values of values, on special ones, and
// compares with arithmetic in integers and rationals of any size.
func TestArithmetic(t *testing.T) {
	d := open(t, "h200", bare)
	r := rand.New(rand.NewPCG(1, 2))
	count, other := 0, map[string]bool{}
	for _, form := range ptx.Forms() {
		if elsewhere[form.Op] {
			continue
		}
		for _, op := range opcodes(form) {
			dec, _ := ptx.Decode(op)
			if dec.Has("cc") || form.Op == "addc" || form.Op == "subc" || form.Op == "madc" {
				continue // TestCarry
			}
			if dec.Op == "cvt" && dec.Has("sat") && !dec.Types[0].IsFloat() && !dec.Type.IsFloat() && holdsAll(dec.Types[0], dec.Type) {
				continue // refused: nothing to saturate
			}
			for _, wide := range []bool{false, true} {
				if wide && dec.Op != "cvt" {
					continue
				}
				var in [][]uint64
				for _, shape := range form.Args {
					if strings.HasPrefix(shape, "=") || shape == "i" {
						continue
					}
					vs := values(shapeType(dec, shape))
					if shape == "u32" && r.IntN(2) == 0 {
						vs = vs[:13] // positions and lengths
					}
					list := make([]uint64, samples)
					for i := range list {
						list[i] = vs[r.IntN(len(vs))]
						if wide {
							list[i] ^= uint64(0xA5A5A5A5) << max(shapeType(dec, shape).Bits(), 8) & -truth(!shapeType(dec, shape).IsFloat())
						}
					}
					in = append(in, list)
				}
				got, text := executeOne(t, d, op, wide, in)
				count++
				for i := range samples {
					var args [4]uint64
					for k := range in {
						args[k] = in[k][i]
					}
					want, ok := oracle(dec, args, wide)
					if !ok {
						other[op] = true
						break
					}
					bad := got[0][i] != want[0] && !bothNaN(dec, got[0][i], want[0])
					if form.Args[0] == "=P" {
						bad = bad || got[1][i] != want[1]
					}
					if approximate(dec) {
						bad = !near(dec, got[0][i], want[0])
					}
					if bad {
						t.Errorf("%s of %#x: got %#x, want %#x\n%s", op, args[:len(in)], got[0][i], want, text)
						break
					}
				}
			}
		}
	}
	t.Logf("%d opcodes", count)
	for op := range other {
		t.Errorf("no oracle for %s", op)
	}
	if count < 1500 {
		t.Errorf("only %d opcodes", count)
	}
}

// elsewhere are instructions that other tests are about.
var elsewhere = map[string]bool{"ld": true, "ldu": true, "st": true, "atom": true, "red": true, "prefetch": true, "prefetchu": true, "bar": true, "barrier": true, "membar": true, "fence": true,
	"shfl": true, "vote": true, "activemask": true, "match": true, "redux": true, "bra": true, "call": true, "ret": true, "exit": true, "trap": true, "brkpt": true, "nanosleep": true, "cvta": true, "isspacep": true}

func holdsAll(t, u ptx.Type) bool {
	return t.IsSigned() == u.IsSigned() && t.Bits() >= u.Bits() || t.IsSigned() && t.Bits() > u.Bits()
}

func resultType(d *ptx.Decoded) ptx.Type {
	s := d.Form.Args[0]
	return shapeType(d, s)
}

func bothNaN(d *ptx.Decoded, a, b uint64) bool {
	switch resultType(d) {
	case ptx.F64:
		return f64(a) != f64(a) && f64(b) != f64(b)
	case ptx.F32:
		return d.Op == "mov" || d.Op == "selp" || d.Op == "slct" || d.Op == "neg" || d.Op == "abs"
	}
	return false
}

func approximate(d *ptx.Decoded) bool {
	switch d.Op {
	case "rsqrt", "sin", "cos", "lg2", "ex2", "tanh":
		return true
	}
	return d.Op == "rcp" && d.Has("approx") && d.Type == ptx.F64
}

func near(d *ptx.Decoded, a, b uint64) bool {
	x, y := f64(a), f64(b)
	if d.Type == ptx.F32 {
		x, y = float64(f32(a)), float64(f32(b))
	}
	return x == y || x != x && y != y || math.Abs(x-y) <= 1e-6*math.Abs(y)
}

// The oracle: integers of any size, and rationals that are rounded once.

func bigOf(t ptx.Type, x uint64) *big.Int {
	v := new(big.Int).SetUint64(low(t.Bits(), x))
	if t.IsSigned() && v.Bit(t.Bits()-1) == 1 {
		v.Sub(v, new(big.Int).Lsh(big.NewInt(1), uint(t.Bits())))
	}
	return v
}

// wrap is v modulo 2^n.
func wrap(n int, v *big.Int) uint64 {
	m := new(big.Int).Lsh(big.NewInt(1), uint(n))
	return new(big.Int).Mod(v, m).Uint64()
}

func clampBig(t ptx.Type, v *big.Int) uint64 {
	lo, hi := new(big.Int), new(big.Int).Lsh(big.NewInt(1), uint(t.Bits()))
	if t.IsSigned() {
		hi.Rsh(hi, 1)
		lo.Neg(hi)
	}
	hi.Sub(hi, big.NewInt(1))
	if v.Cmp(lo) < 0 {
		v = lo
	}
	if v.Cmp(hi) > 0 {
		v = hi
	}
	return wrap(t.Bits(), v)
}

// number is a float taken apart.
type number struct {
	nan, inf, minus bool
	rat             *big.Rat // of a finite one
}

func numberOf(t ptx.Type, x uint64, ftz bool) number {
	v := f64(x)
	if t == ptx.F32 {
		v = float64(f32(x))
		if ftz && math.Abs(v) < 0x1p-126 {
			v = math.Copysign(0, v)
		}
	}
	if t == ptx.F64 && ftz && math.Abs(v) < 0x1p-1022 { // rcp.approx.ftz.f64
		v = math.Copysign(0, v)
	}
	n := number{nan: v != v, inf: math.IsInf(v, 0), minus: math.Signbit(v)}
	if !n.nan && !n.inf {
		n.rat = new(big.Rat).SetFloat64(v)
	}
	return n
}

func modeOf(d *ptx.Decoded) string {
	for _, m := range d.Mods {
		switch m {
		case "rn", "rz", "rm", "rp", "rni", "rzi", "rmi", "rpi":
			return m[:2]
		}
	}
	return "rn"
}

// roundQuotient rounds p/q to an integer; sticky says that the exact value is a little above p/q (of magnitudes).
func roundQuotient(p, q *big.Int, mode string, minus, sticky bool) *big.Int {
	quo, rem := new(big.Int).QuoRem(p, q, new(big.Int))
	half := new(big.Int).Lsh(rem, 1).Cmp(q)
	if half == 0 && sticky {
		half = 1
	}
	exact := rem.Sign() == 0 && !sticky
	up := false
	switch mode {
	case "rn":
		up = half > 0 || half == 0 && quo.Bit(0) == 1
	case "rm":
		up = minus && !exact
	case "rp":
		up = !minus && !exact
	}
	if up {
		quo.Add(quo, big.NewInt(1))
	}
	return quo
}

// roundNumber rounds the magnitude p/q of the given sign to a float.
func roundNumber(t ptx.Type, p, q *big.Int, mode string, minus, sticky bool) uint64 {
	mant, bias := 53, 1023
	if t == ptx.F32 {
		mant, bias = 24, 127
	}
	var sign uint64
	if minus {
		sign = 1 << (t.Bits() - 1)
	}
	if p.Sign() == 0 && !sticky {
		return sign
	}
	// The exponent e so that 2^(mant-1) <= p/q * 2^-e < 2^mant, or that of denormals.
	e := p.BitLen() - q.BitLen() - mant
	scaled := func(e int) (a, b *big.Int) {
		a, b = p, q
		if e < 0 {
			a = new(big.Int).Lsh(p, uint(-e))
		} else {
			b = new(big.Int).Lsh(q, uint(e))
		}
		return a, b
	}
	limit := new(big.Int).Lsh(big.NewInt(1), uint(mant))
	for {
		a, b := scaled(e)
		if new(big.Int).Quo(a, b).Cmp(limit) < 0 {
			break
		}
		e++
	}
	for {
		a, b := scaled(e - 1)
		if new(big.Int).Quo(a, b).Cmp(limit) >= 0 {
			break
		}
		e--
	}
	e = max(e, 1-bias-(mant-1))
	a, b := scaled(e)
	m := roundQuotient(a, b, mode, minus, sticky)
	if m.Cmp(limit) == 0 {
		m.Rsh(m, 1)
		e++
	}
	if e+mant-1 > bias { // too large
		inf := uint64(2*bias+1) << (mant - 1)
		if mode == "rz" || mode == "rm" && !minus || mode == "rp" && minus {
			inf--
		}
		return sign | inf
	}
	if m.Bit(mant-1) == 0 { // denormal
		return sign | m.Uint64()
	}
	return sign | uint64(e+mant-1+bias)<<(mant-1) | m.Uint64()&(1<<(mant-1)-1)
}

func special64(t ptx.Type, inf, minus bool) uint64 {
	x := math.NaN()
	if inf {
		x = math.Inf(1)
		if minus {
			x = -x
		}
	}
	if t == ptx.F32 {
		if !inf {
			return nan32
		}
		return bits32(float32(x))
	}
	return bits64(x)
}

func ofRat(t ptx.Type, r *big.Rat, mode string, minusZero bool) uint64 {
	minus := r.Sign() < 0 || r.Sign() == 0 && minusZero
	return roundNumber(t, new(big.Int).Abs(r.Num()), r.Denom(), mode, minus, false)
}

// sum is x + y rounded.
func sum(t ptx.Type, x, y number, mode string) uint64 {
	switch {
	case x.nan || y.nan || x.inf && y.inf && x.minus != y.minus:
		return special64(t, false, false)
	case x.inf:
		return special64(t, true, x.minus)
	case y.inf:
		return special64(t, true, y.minus)
	}
	r := new(big.Rat).Add(x.rat, y.rat)
	minusZero := x.minus && y.minus || x.minus != y.minus && mode == "rm"
	return ofRat(t, r, mode, minusZero)
}

func times(x, y number) number {
	n := number{minus: x.minus != y.minus}
	zero := func(v number) bool { return v.rat != nil && v.rat.Sign() == 0 }
	switch {
	case x.nan || y.nan || x.inf && zero(y) || y.inf && zero(x):
		n.nan = true
	case x.inf || y.inf:
		n.inf = true
	default:
		n.rat = new(big.Rat).Mul(x.rat, y.rat)
	}
	return n
}

func (n number) round(t ptx.Type, mode string) uint64 {
	if n.rat == nil {
		return special64(t, n.inf, n.minus)
	}
	return ofRat(t, n.rat, mode, n.minus)
}

func over(x, y number) number {
	n := number{minus: x.minus != y.minus}
	zero := func(v number) bool { return v.rat != nil && v.rat.Sign() == 0 }
	switch {
	case x.nan || y.nan || x.inf && y.inf || zero(x) && zero(y):
		n.nan = true
	case x.inf || zero(y):
		n.inf = true
	case y.inf:
		n.rat = new(big.Rat)
	default:
		n.rat = new(big.Rat).Quo(x.rat, y.rat)
	}
	return n
}

// root is the square root rounded.
func root(t ptx.Type, x number, mode string) uint64 {
	switch {
	case x.nan, x.minus && (x.inf || x.rat.Sign() != 0):
		return special64(t, false, false)
	case x.inf:
		return special64(t, true, false)
	case x.rat.Sign() == 0:
		return ofRat(t, x.rat, mode, x.minus)
	}
	// floor(sqrt(x * 4^k)) / 2^k and a sticky bit.
	const k = 1400
	v := new(big.Int).Lsh(x.rat.Num(), 2*k)
	rem := new(big.Int)
	v.QuoRem(v, x.rat.Denom(), rem)
	s := new(big.Int).Sqrt(v)
	sticky := rem.Sign() != 0 || new(big.Int).Mul(s, s).Cmp(v) != 0
	return roundNumber(t, s, new(big.Int).Lsh(big.NewInt(1), k), mode, false, sticky)
}

// finish applies .sat and .ftz to a float result.
func finish(d *ptx.Decoded, t ptx.Type, r uint64) uint64 {
	x := f64(r)
	if t == ptx.F32 {
		x = float64(f32(r))
	}
	if d.Has("sat") {
		switch {
		case !(x > 0):
			r = 0
		case x > 1:
			r = map[ptx.Type]uint64{ptx.F32: bits32(1), ptx.F64: bits64(1)}[t]
		}
	}
	if d.Has("ftz") && t == ptx.F64 && math.Abs(f64(r)) < 0x1p-1022 {
		r &= 1 << 63
	}
	if d.Has("ftz") && t == ptx.F32 && math.Abs(float64(f32(r))) < 0x1p-126 {
		r &= 1 << 31
	}
	return r
}

// oracle is what an instruction gives; a second result is that of a pair of predicates.
func oracle(d *ptx.Decoded, a [4]uint64, wide bool) (r [2]uint64, ok bool) {
	t := d.Type
	n := t.Bits()
	one := func(x uint64) ([2]uint64, bool) { return [2]uint64{x}, true }
	if d.Op == "setp" || d.Op == "set" {
		return compareOracle(d, a)
	}
	if t.IsFloat() || d.Op == "cvt" {
		if x, ok := floatOracle(d, a, wide); ok {
			return one(x)
		}
	}
	if t == ptx.Pred {
		switch d.Op {
		case "and":
			return one(a[0] & a[1])
		case "or":
			return one(a[0] | a[1])
		case "xor":
			return one(a[0] ^ a[1])
		case "not":
			return one(a[0] ^ 1)
		case "mov":
			return one(a[0])
		}
	}
	switch d.Op {
	case "selp":
		if a[2] != 0 {
			return one(low(n, a[0]))
		}
		return one(low(n, a[1]))
	case "slct":
		k := d.Types[0].Bits()
		yes := int32(a[2]) >= 0
		if t == ptx.F32 {
			x := numberOf(t, a[2], d.Has("ftz"))
			yes = !x.nan && (!x.minus || x.rat != nil && x.rat.Sign() == 0)
		}
		if yes {
			return one(low(k, a[0]))
		}
		return one(low(k, a[1]))
	case "mov":
		return one(low(n, a[0]))
	}
	if t.IsFloat() {
		return r, false
	}
	x, y, z := bigOf(t, a[0]), bigOf(t, a[1]), bigOf(t, a[2])
	v := new(big.Int)
	mulPart := func(x, y *big.Int, n int) *big.Int {
		p := new(big.Int).Mul(x, y)
		if d.Has("hi") {
			p.Rsh(p, uint(n)) // toward minus infinity, as the high half of a two's complement is
		}
		return p
	}
	switch d.Op {
	case "add", "sub":
		if v.Add(x, y); d.Op == "sub" {
			v.Sub(x, y)
		}
		if d.Has("sat") {
			return one(clampBig(t, v))
		}
	case "mul", "mad":
		v = mulPart(x, y, n)
		if d.Has("wide") {
			if n *= 2; d.Op == "mad" {
				v.Add(v, new(big.Int).SetUint64(a[2]))
			}
			return one(wrap(n, v))
		}
		if d.Op == "mad" {
			if d.Has("sat") {
				return one(clampBig(t, v.Add(v, z)))
			}
			v.Add(v, z)
		}
	case "mul24", "mad24":
		cut := func(x uint64) *big.Int {
			v := new(big.Int).SetUint64(x & 0xFFFFFF)
			if t.IsSigned() && x>>23&1 != 0 {
				v.Sub(v, big.NewInt(1<<24))
			}
			return v
		}
		v = mulPart(cut(a[0]), cut(a[1]), 16)
		if d.Op == "mad24" {
			v.Add(v, z)
		}
	case "sad":
		v.Add(z, v.Abs(v.Sub(x, y)))
	case "div":
		if y.Sign() == 0 {
			return one(wrap(n, big.NewInt(-1)))
		}
		v.Quo(x, y)
	case "rem":
		if y.Sign() == 0 {
			return one(wrap(n, x))
		}
		v.Rem(x, y)
	case "abs":
		v.Abs(x)
	case "neg":
		v.Neg(x)
	case "min", "max":
		if v = x; (x.Cmp(y) > 0) == (d.Op == "min") {
			v = y
		}
	case "and":
		v.SetUint64(a[0] & a[1])
	case "or":
		v.SetUint64(a[0] | a[1])
	case "xor":
		v.SetUint64(a[0] ^ a[1])
	case "not":
		v.Not(x)
	case "cnot":
		v.SetUint64(truth(x.Sign() == 0))
	case "shl":
		v.Lsh(x, uint(min(low(32, a[1]), 200)))
	case "shr":
		v.Rsh(x, uint(min(low(32, a[1]), 200)))
	case "shf":
		k := uint(low(32, a[2]))
		if d.Has("wrap") {
			k %= 32
		} else {
			k = min(k, 32)
		}
		both := new(big.Int).SetUint64(low(32, a[1])<<32 | low(32, a[0]))
		if d.Has("l") {
			v.Rsh(v.Lsh(both, k), 32)
		} else {
			v.Rsh(both, k)
		}
	case "popc", "clz", "bfind", "brev":
		var ones, lead, rev uint64
		top := -1
		for i := range n {
			if low(n, a[0])>>i&1 != 0 {
				ones++
				top = i
				rev |= 1 << (n - 1 - i)
			}
		}
		lead = uint64(n - 1 - top)
		switch d.Op {
		case "popc":
			return one(ones)
		case "clz":
			return one(lead)
		case "brev":
			return one(rev)
		}
		if t.IsSigned() && low(n, a[0])>>(n-1) != 0 {
			top = -1
			for i := range n {
				if low(n, a[0])>>i&1 == 0 {
					top = i
				}
			}
		}
		switch {
		case top < 0:
			return one(math.MaxUint32)
		case d.Has("shiftamt"):
			return one(uint64(n - 1 - top))
		}
		return one(uint64(top))
	case "bfe":
		// The manual's own program.
		pos, length := int(a[1]&0xFF), int(a[2]&0xFF)
		msb := n - 1
		var sbit uint64
		if t.IsSigned() && length != 0 {
			sbit = low(n, a[0]) >> min(pos+length-1, msb) & 1
		}
		var r uint64
		for i := 0; i <= msb; i++ {
			bit := sbit
			if i < length && pos+i <= msb {
				bit = low(n, a[0]) >> (pos + i) & 1
			}
			r |= bit << i
		}
		return one(r)
	case "bfi":
		pos, length := int(a[2]&0xFF), int(a[3]&0xFF)
		r := low(n, a[1])
		for i := 0; i < length && pos+i <= n-1; i++ {
			r = r&^(1<<(pos+i)) | a[0]>>i&1<<(pos+i)
		}
		return one(r)
	case "prmt":
		return one(prmtOracle(d, a))
	case "lop3":
		var r uint64
		for i := range 32 {
			k := a[0]>>i&1<<2 | a[1]>>i&1<<1 | a[2]>>i&1
			r |= uint64(0xE8) >> k & 1 << i
		}
		return one(r)
	default:
		return r, false
	}
	return one(wrap(n, v))
}

func prmtOracle(d *ptx.Decoded, a [4]uint64) uint64 {
	var bytes [8]byte
	binary.LittleEndian.PutUint32(bytes[:], uint32(a[0]))
	binary.LittleEndian.PutUint32(bytes[4:], uint32(a[1]))
	var out [4]byte
	c := int(a[2] & 3)
	for i := range out {
		switch d.Mods[1] {
		case "":
			s := a[2] >> (4 * i) & 15
			out[i] = bytes[s&7]
			if s&8 != 0 {
				out[i] = byte(int8(out[i]) >> 7)
			}
		case "f4e":
			out[i] = bytes[c+i]
		case "b4e":
			out[i] = bytes[(c-i+8)%8]
		case "rc8":
			out[i] = bytes[c]
		case "ecl":
			out[i] = bytes[max(i, c)]
		case "ecr":
			out[i] = bytes[min(i, c)]
		case "rc16":
			out[i] = bytes[c%2*2+i%2]
		}
	}
	return uint64(binary.LittleEndian.Uint32(out[:]))
}

func compareOracle(d *ptx.Decoded, a [4]uint64) (r [2]uint64, ok bool) {
	t, cmp := d.Type, d.Mods[0]
	var c int
	unordered := false
	if t.IsFloat() {
		x, y := numberOf(t, a[0], d.Has("ftz")), numberOf(t, a[1], d.Has("ftz"))
		unordered = x.nan || y.nan
		rank := func(v number) int {
			switch {
			case v.inf && v.minus:
				return -1
			case v.inf:
				return 1
			}
			return 0
		}
		if !unordered {
			if c = rank(x) - rank(y); c == 0 && x.rat != nil && y.rat != nil {
				c = x.rat.Cmp(y.rat)
			}
		}
	} else {
		c = bigOf(t, a[0]).Cmp(bigOf(t, a[1]))
	}
	res := map[string]bool{"eq": c == 0, "ne": c != 0, "lt": c < 0, "le": c <= 0, "gt": c > 0, "ge": c >= 0, "lo": c < 0, "ls": c <= 0, "hi": c > 0, "hs": c >= 0}
	yes, known := res[cmp]
	switch {
	case known && t.IsFloat():
		yes = yes && !unordered
	case cmp == "num":
		yes = !unordered
	case cmp == "nan":
		yes = unordered
	case !known:
		yes = unordered || res[cmp[:2]]
	}
	if d.Op == "set" {
		switch {
		case !yes:
			return [2]uint64{}, true
		case d.Types[0] == ptx.F32:
			return [2]uint64{0x3F800000}, true
		}
		return [2]uint64{math.MaxUint32}, true
	}
	p, q := yes, !yes
	switch k := a[2] != 0; {
	case d.Has("and"):
		p, q = p && k, q && k
	case d.Has("or"):
		p, q = p || k, q || k
	case d.Has("xor"):
		p, q = p != k, q != k
	}
	return [2]uint64{truth(p), truth(q)}, true
}

func floatOracle(d *ptx.Decoded, a [4]uint64, wide bool) (uint64, bool) {
	t := d.Type
	ftz, mode := d.Has("ftz"), modeOf(d)
	if d.Op == "cvt" {
		return convertOracle(d, a[0], wide)
	}
	x, y, z := numberOf(t, a[0], ftz), numberOf(t, a[1], ftz), numberOf(t, a[2], ftz)
	value := f64(a[0])
	if t == ptx.F32 {
		value = float64(f32(a[0]))
		if ftz && math.Abs(value) < 0x1p-126 {
			value = math.Copysign(0, value)
		}
	}
	pack := func(v float64) uint64 {
		if t == ptx.F32 {
			if v != v {
				return nan32
			}
			return bits32(float32(v))
		}
		return bits64(v)
	}
	var r uint64
	switch d.Op {
	case "add":
		r = sum(t, x, y, mode)
	case "sub":
		y.minus = !y.minus
		if y.rat != nil {
			y.rat = new(big.Rat).Neg(y.rat)
		}
		r = sum(t, x, y, mode)
	case "mul":
		r = times(x, y).round(t, mode)
	case "mad", "fma":
		r = sum(t, times(x, y), z, mode)
	case "div":
		r = over(x, y).round(t, mode)
	case "rcp":
		r = over(number{rat: big.NewRat(1, 1)}, x).round(t, mode)
	case "sqrt":
		r = root(t, x, mode)
	case "rsqrt":
		r = pack(1 / math.Sqrt(value))
	case "sin":
		r = pack(math.Sin(value))
	case "cos":
		r = pack(math.Cos(value))
	case "lg2":
		r = pack(math.Log2(value))
	case "ex2":
		r = pack(math.Exp2(value))
	case "tanh":
		r = pack(math.Tanh(value))
	case "abs":
		r = a[0] &^ (1 << (t.Bits() - 1))
		if x.nan && ftz {
			r = nan32
		}
	case "neg":
		r = a[0] ^ 1<<(t.Bits()-1)
		if x.nan && ftz {
			r = nan32
		}
	case "copysign":
		return a[0]&(1<<(t.Bits()-1)) | a[1]&^(1<<(t.Bits()-1)), true
	case "min", "max":
		v := f64(a[1])
		if t == ptx.F32 {
			v = float64(f32(a[1]))
		}
		switch {
		case x.nan && y.nan, d.Has("NaN") && (x.nan || y.nan):
			r = special64(t, false, false)
		case x.nan:
			r = a[1]
		case y.nan:
			r = a[0]
		case value == v && value == 0 || ftz && math.Abs(value) < 0x1p-126 && math.Abs(v) < 0x1p-126: // zeros, of which -0 is the smaller
			r = 0
			if d.Op == "min" && (x.minus || y.minus) || x.minus && y.minus {
				r = 1 << (t.Bits() - 1)
			}
		case (value < v) == (d.Op == "min"):
			r = a[0]
		default:
			r = a[1]
		}
	case "testp":
		small := big.NewRat(1, 1)
		small.SetFrac(big.NewInt(1), new(big.Int).Lsh(big.NewInt(1), map[ptx.Type]uint{ptx.F32: 126, ptx.F64: 1022}[t]))
		denormal := x.rat != nil && x.rat.Sign() != 0 && new(big.Rat).Abs(x.rat).Cmp(small) < 0
		return truth(map[string]bool{"finite": x.rat != nil, "infinite": x.inf, "number": !x.nan, "notanumber": x.nan, "normal": x.rat != nil && x.rat.Sign() != 0 && !denormal, "subnormal": denormal}[d.Mods[0]]), true
	default:
		return 0, false
	}
	return finish(d, t, r), true
}

func convertOracle(d *ptx.Decoded, a uint64, wide bool) (uint64, bool) {
	to, from := d.Types[0], d.Types[1]
	mode := modeOf(d)
	// An integer result is extended to its register.
	fill := func(v *big.Int) uint64 {
		n := max(to.Bits(), 32)
		if to.Bits() == 16 {
			n = 16
		}
		if wide {
			n = 64
		}
		return wrap(n, v)
	}
	signedOf := func(x uint64) *big.Int { return bigOf(to, x) }
	if !from.IsFloat() {
		v := bigOf(from, a)
		if to.IsFloat() {
			return finish(d, to, ofRat(to, new(big.Rat).SetInt(v), mode, false)), true
		}
		if d.Has("sat") {
			return fill(signedOf(clampBig(to, v))), true
		}
		return fill(signedOf(wrap(to.Bits(), v))), true
	}
	x := numberOf(from, a, d.Has("ftz"))
	whole := false
	for _, m := range d.Mods {
		whole = whole || len(m) == 3 && m[0] == 'r'
	}
	if whole && x.rat != nil {
		i := roundQuotient(new(big.Int).Abs(x.rat.Num()), x.rat.Denom(), mode, x.minus, false)
		if x.minus {
			i.Neg(i)
		}
		x.rat = new(big.Rat).SetInt(i)
	}
	if to.IsFloat() {
		if x.rat == nil {
			return finish(d, to, special64(to, x.inf, x.minus)), true
		}
		return finish(d, to, ofRat(to, x.rat, mode, x.minus)), true
	}
	switch {
	case x.nan:
		if from == ptx.F64 || to.Bits() == 64 {
			return fill(signedOf(1 << (to.Bits() - 1))), true
		}
		return 0, true
	case x.inf:
		v := new(big.Int).Lsh(big.NewInt(1), 100)
		if x.minus {
			v.Neg(v)
		}
		return fill(signedOf(clampBig(to, v))), true
	}
	return fill(signedOf(clampBig(to, x.rat.Num()))), true
}

// TestVectors compares the loops over lanes with the function of one lane, for all and for some lanes; the others keep
// what they have.
func TestVectors(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	fill := func(typ ptx.Type) (l lanes) {
		vs := values(typ)
		for i := range l {
			if l[i] = vs[r.IntN(len(vs))]; r.IntN(3) == 0 && !typ.IsFloat() {
				l[i] = low(typ.Bits(), r.Uint64())
			}
			l[i] = low(max(typ.Bits(), 8), l[i])
		}
		return l
	}
	masks := []uint32{allLanes, 1, 1 << 31, 0xF0F0F0F0, allLanes - 1, 0}
	operand := func(d *ptx.Decoded, k int) lanes {
		if k < len(d.Form.Args) {
			if typ := shapeType(d, d.Form.Args[k]); typ != ptx.NoType && typ != ptx.Pred {
				return fill(typ)
			}
		}
		return lanes{}
	}
	for op, vec := range vectors {
		d, err := ptx.Decode(op)
		if err != nil {
			t.Errorf("%v", err)
			continue
		}
		f := semantics(d)
		if f == nil {
			if d.Op != "cvta" {
				t.Errorf("%s has no function", op)
			}
			continue
		}
		for range 40 {
			a, b, c := operand(d, 1), operand(d, 2), operand(d, 3)
			for _, m := range masks {
				got := fill(ptx.U64)
				want := got
				vec(&got, &a, &b, &c, m)
				lanewise(f)(&want, &a, &b, &c, m)
				for i := range got {
					if got[i] != want[i] && !bothNaN(d, got[i], want[i]) {
						t.Fatalf("%s, lane %d of %#x: %#x, %#x, %#x give %#x, want %#x", op, i, m, a[i], b[i], c[i], got[i], want[i])
					}
				}
			}
		}
	}
	for key, cmp := range tests {
		d, err := ptx.Decode("setp." + key)
		if err != nil {
			t.Errorf("%v", err)
			continue
		}
		f := semantics(d)
		for range 40 {
			a, b := fill(d.Type), fill(d.Type)
			for _, m := range masks {
				if got, want := cmp(&a, &b, m)&m, lanewiseTest(f)(&a, &b, m); got != want {
					t.Fatalf("setp.%s: %#x, want %#x", key, got, want)
				}
			}
		}
	}
}
