package sim

import (
	"fmt"
	"math"
	"math/bits"

	"gpunotes/gpukit/internal/ptx"
)

// What an instruction computes in one lane, for every instruction that makes one value of up to three. Registers hold
// their bits in the low end of 64, the rest zero; predicates are 0 and 1. This is the whole of PTX's arithmetic; vector.go
// has the frequent ones again as loops over the lanes of a warp.

type function func(a, b, c uint64) uint64

func f32(x uint64) float32        { return math.Float32frombits(uint32(x)) }
func f64(x uint64) float64        { return math.Float64frombits(x) }
func bits32(x float32) uint64     { return uint64(math.Float32bits(x)) }
func bits64(x float64) uint64     { return math.Float64bits(x) }
func low(n int, x uint64) uint64  { return x << (64 - n) >> (64 - n) }
func sext(n int, x uint64) uint64 { return uint64(int64(x<<(64-n)) >> (64 - n)) }

func truth(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}

// extend is x, an integer of type t, as one of 64 bits.
func extend(t ptx.Type, x uint64) uint64 {
	if t.IsSigned() {
		return sext(t.Bits(), x)
	}
	return low(t.Bits(), x)
}

// flush is x, or a zero of its sign if it is denormal.
func flush(x float32) float32 {
	if b := math.Float32bits(x); b&0x7F800000 == 0 {
		return math.Float32frombits(b & 0x80000000)
	}
	return x
}

func saturate(x float64) float64 {
	switch {
	case x > 1:
		return 1
	case x > 0:
		return x
	}
	return 0 // NaN and -0 too
}

// roundingMod is the rounding that the modifiers ask for.
func roundingMod(d *ptx.Decoded) rounding {
	for _, m := range d.Mods {
		if r := roundingOf(m); r != nearest {
			return r
		}
	}
	return nearest
}

// floats makes a function of one on floats of the instruction's type: operands flushed and results flushed and
// saturated as it says.
func floats(d *ptx.Decoded, f func(x, y, z float64) float64) function {
	ftz, sat := d.Has("ftz"), d.Has("sat")
	if d.Type == ptx.F64 {
		return func(a, b, c uint64) uint64 {
			r := f(f64(a), f64(b), f64(c))
			if sat {
				r = saturate(r)
			}
			return bits64(r)
		}
	}
	in := func(x uint64) float64 {
		if v := f32(x); ftz {
			return float64(flush(v))
		} else {
			return float64(v)
		}
	}
	return func(a, b, c uint64) uint64 {
		return out32(f(in(a), in(b), in(c)), ftz, sat)
	}
}

// out32 is the float32 value r as a register.
func out32(r float64, ftz, sat bool) uint64 {
	if sat {
		r = saturate(r)
	}
	if r != r {
		return nan32
	}
	x := float32(r)
	if ftz {
		x = flush(x)
	}
	return bits32(x)
}

// clampS32 is a sum in 64 bits as a saturated s32.
func clampS32(x int64) uint64 {
	return uint64(uint32(max(min(x, math.MaxInt32), math.MinInt32)))
}

// semantics returns the function of an instruction, nil if it is not of this kind.
func semantics(d *ptx.Decoded) function {
	t := d.Type
	n := t.Bits()
	if t.IsFloat() {
		if f := floatSemantics(d); f != nil {
			return f
		}
	}
	ex := func(x uint64) uint64 { return extend(t, x) }
	signed := t.IsSigned()
	switch d.Op {
	case "add":
		if d.Has("sat") {
			return func(a, b, _ uint64) uint64 { return clampS32(int64(int32(a)) + int64(int32(b))) }
		}
		return func(a, b, _ uint64) uint64 { return low(n, a+b) }
	case "sub":
		if d.Has("sat") {
			return func(a, b, _ uint64) uint64 { return clampS32(int64(int32(a)) - int64(int32(b))) }
		}
		return func(a, b, _ uint64) uint64 { return low(n, a-b) }
	case "mul":
		return product(d)
	case "mad":
		p := product(d)
		switch {
		case d.Has("sat"):
			return func(a, b, c uint64) uint64 { return clampS32(int64(int32(p(a, b, 0))) + int64(int32(c))) }
		case d.Has("wide"):
			return func(a, b, c uint64) uint64 { return low(2*n, p(a, b, 0)+c) }
		}
		return func(a, b, c uint64) uint64 { return low(n, p(a, b, 0)+c) }
	case "mul24", "mad24":
		shift := 0
		if d.Has("hi") {
			shift = 16
		}
		ex24 := func(x uint64) uint64 {
			if signed {
				return sext(24, x)
			}
			return low(24, x)
		}
		if d.Op == "mul24" {
			return func(a, b, _ uint64) uint64 { return low(32, uint64(int64(ex24(a)*ex24(b))>>shift)) }
		}
		return func(a, b, c uint64) uint64 { return low(32, uint64(int64(ex24(a)*ex24(b))>>shift)+c) }
	case "sad":
		return func(a, b, c uint64) uint64 {
			x, y := ex(a), ex(b)
			if less(signed, x, y) {
				x, y = y, x
			}
			return low(n, c+x-y)
		}
	case "div":
		return func(a, b, _ uint64) uint64 {
			x, y := ex(a), ex(b)
			switch {
			case y == 0: // left open
				return low(n, ^uint64(0))
			case signed && int64(y) == -1:
				return low(n, -x)
			case signed:
				return low(n, uint64(int64(x)/int64(y)))
			}
			return x / y
		}
	case "rem":
		return func(a, b, _ uint64) uint64 {
			x, y := ex(a), ex(b)
			switch {
			case y == 0: // left open
				return low(n, x)
			case signed && int64(y) == -1:
				return 0
			case signed:
				return low(n, uint64(int64(x)%int64(y)))
			}
			return x % y
		}
	case "abs":
		return func(a, _, _ uint64) uint64 {
			x := ex(a)
			if int64(x) < 0 {
				x = -x
			}
			return low(n, x)
		}
	case "neg":
		return func(a, _, _ uint64) uint64 { return low(n, -a) }
	case "min":
		return func(a, b, _ uint64) uint64 {
			if less(signed, ex(b), ex(a)) {
				return b
			}
			return a
		}
	case "max":
		return func(a, b, _ uint64) uint64 {
			if less(signed, ex(a), ex(b)) {
				return b
			}
			return a
		}
	case "popc":
		return func(a, _, _ uint64) uint64 { return uint64(bits.OnesCount64(low(n, a))) }
	case "clz":
		return func(a, _, _ uint64) uint64 { return uint64(bits.LeadingZeros64(low(n, a)) - (64 - n)) }
	case "bfind":
		shiftamt := d.Has("shiftamt")
		return func(a, _, _ uint64) uint64 {
			x := ex(a)
			if signed && int64(x) < 0 {
				x = ^x
			}
			if x == 0 {
				return math.MaxUint32
			}
			pos := bits.Len64(x) - 1
			if shiftamt {
				pos = n - 1 - pos
			}
			return uint64(pos)
		}
	case "brev":
		return func(a, _, _ uint64) uint64 { return bits.Reverse64(a) >> (64 - n) }
	case "bfe":
		return func(a, b, c uint64) uint64 { return bfe(a, b&0xFF, c&0xFF, n, signed) }
	case "bfi":
		return func(a, b, c uint64) uint64 { return 0 } // four operands: see bfi
	case "prmt":
		return prmt(d.Mods[1])
	case "and":
		return func(a, b, _ uint64) uint64 { return a & b }
	case "or":
		return func(a, b, _ uint64) uint64 { return a | b }
	case "xor":
		return func(a, b, _ uint64) uint64 { return a ^ b }
	case "not":
		return func(a, _, _ uint64) uint64 { return low(n, ^a) }
	case "cnot":
		return func(a, _, _ uint64) uint64 { return truth(a == 0) }
	case "shl":
		return func(a, b, _ uint64) uint64 { return low(n, a<<low(32, b)) }
	case "shr":
		if signed {
			return func(a, b, _ uint64) uint64 { return low(n, uint64(int64(sext(n, a))>>low(32, b))) }
		}
		return func(a, b, _ uint64) uint64 { return a >> low(32, b) }
	case "shf":
		clamp, left := d.Has("clamp"), d.Has("l")
		return func(a, b, c uint64) uint64 {
			k := low(32, c)
			if clamp {
				k = min(k, 32)
			} else {
				k &= 31
			}
			x := b<<32 | a
			if left {
				return low(32, x<<k>>32)
			}
			return low(32, x>>k)
		}
	case "setp", "set":
		cmp := comparison(d)
		if d.Op == "setp" {
			return func(a, b, _ uint64) uint64 { return truth(cmp(a, b)) }
		}
		yes := uint64(math.MaxUint32)
		if d.Types[0] == ptx.F32 {
			yes = bits32(1)
		}
		return func(a, b, _ uint64) uint64 { return yes * truth(cmp(a, b)) }
	case "slct":
		if t == ptx.F32 {
			ftz := d.Has("ftz")
			return func(a, b, c uint64) uint64 {
				x := f32(c)
				if ftz {
					x = flush(x)
				}
				if x >= 0 {
					return a
				}
				return b
			}
		}
		return func(a, b, c uint64) uint64 {
			if int32(c) >= 0 {
				return a
			}
			return b
		}
	case "mov":
		return func(a, _, _ uint64) uint64 { return a }
	case "cvt":
		return conversion(d)
	}
	return nil
}

func less(signed bool, a, b uint64) bool {
	if signed {
		return int64(a) < int64(b)
	}
	return a < b
}

func product(d *ptx.Decoded) function {
	t, n := d.Type, d.Type.Bits()
	switch {
	case d.Has("wide"):
		return func(a, b, _ uint64) uint64 { return low(2*n, extend(t, a)*extend(t, b)) }
	case !d.Has("hi"):
		return func(a, b, _ uint64) uint64 { return low(n, a*b) }
	case n < 64:
		return func(a, b, _ uint64) uint64 { return low(n, uint64(int64(extend(t, a)*extend(t, b))>>n)) }
	case t.IsSigned():
		return func(a, b, _ uint64) uint64 { return mulHiS64(a, b) }
	}
	return func(a, b, _ uint64) uint64 {
		hi, _ := bits.Mul64(a, b)
		return hi
	}
}

// bfe takes length bits of a from position pos on; beyond the end are sign bits.
func bfe(a, pos, length uint64, n int, signed bool) uint64 {
	var sign uint64
	if signed && length > 0 {
		sign = a >> min(pos+length-1, uint64(n-1)) & 1
	}
	r := low(n, a) >> pos
	if pos+length >= uint64(n) { // what is above the end of a
		if sign != 0 {
			if pos < uint64(n) {
				r |= ^uint64(0) << (uint64(n) - pos)
			} else {
				r = ^uint64(0)
			}
		}
	}
	if length < 64 {
		r &= 1<<length - 1
		if sign != 0 {
			r |= ^uint64(0) << length
		}
	}
	return low(n, r)
}

// bfi puts the low length bits of a into b at pos.
func bfi(a, b, pos, length uint64, n int) uint64 {
	pos, length = pos&0xFF, length&0xFF
	mask := low(n, (uint64(1)<<length-1)<<pos) // Go's shifts beyond the width give 0
	return b&^mask | a<<pos&mask
}

func prmt(mode string) function {
	pick := func(a, b uint64, sel [4]uint64) uint64 {
		var r uint64
		v := a | b<<32
		for i, s := range sel {
			x := v >> (8 * (s & 7)) & 0xFF
			if s&8 != 0 { // the sign of the byte
				x = x >> 7 * 0xFF
			}
			r |= x << (8 * i)
		}
		return r
	}
	table, ok := map[string][4][4]uint64{
		"f4e":  {{0, 1, 2, 3}, {1, 2, 3, 4}, {2, 3, 4, 5}, {3, 4, 5, 6}},
		"b4e":  {{0, 7, 6, 5}, {1, 0, 7, 6}, {2, 1, 0, 7}, {3, 2, 1, 0}},
		"rc8":  {{0, 0, 0, 0}, {1, 1, 1, 1}, {2, 2, 2, 2}, {3, 3, 3, 3}},
		"ecl":  {{0, 1, 2, 3}, {1, 1, 2, 3}, {2, 2, 2, 3}, {3, 3, 3, 3}},
		"ecr":  {{0, 0, 0, 0}, {0, 1, 1, 1}, {0, 1, 2, 2}, {0, 1, 2, 3}},
		"rc16": {{0, 1, 0, 1}, {2, 3, 2, 3}, {0, 1, 0, 1}, {2, 3, 2, 3}},
	}[mode]
	if ok {
		return func(a, b, c uint64) uint64 { return pick(a, b, table[c&3]) }
	}
	return func(a, b, c uint64) uint64 {
		return pick(a, b, [4]uint64{c & 15, c >> 4 & 15, c >> 8 & 15, c >> 12 & 15})
	}
}

// comparison is the comparison of a setp or set, without its boolean operator.
func comparison(d *ptx.Decoded) func(a, b uint64) bool {
	op := d.Mods[0]
	if t := d.Type; !t.IsFloat() {
		var test func(c int) bool
		switch op {
		case "eq":
			test = func(c int) bool { return c == 0 }
		case "ne":
			test = func(c int) bool { return c != 0 }
		case "lt", "lo":
			test = func(c int) bool { return c < 0 }
		case "le", "ls":
			test = func(c int) bool { return c <= 0 }
		case "gt", "hi":
			test = func(c int) bool { return c > 0 }
		case "ge", "hs":
			test = func(c int) bool { return c >= 0 }
		}
		return func(a, b uint64) bool {
			x, y := extend(t, a), extend(t, b)
			switch {
			case less(t.IsSigned(), x, y):
				return test(-1)
			case x == y:
				return test(0)
			}
			return test(1)
		}
	}
	value := f64
	if d.Type == ptx.F32 {
		ftz := d.Has("ftz")
		value = func(x uint64) float64 {
			v := f32(x)
			if ftz {
				v = flush(v)
			}
			return float64(v)
		}
	}
	return func(a, b uint64) bool {
		x, y := value(a), value(b)
		if x != x || y != y {
			return op == "nan" || len(op) == 3 && op[2] == 'u'
		}
		switch op {
		case "num":
			return true
		case "eq", "equ":
			return x == y
		case "ne", "neu":
			return x != y
		case "lt", "ltu":
			return x < y
		case "le", "leu":
			return x <= y
		case "gt", "gtu":
			return x > y
		case "ge", "geu":
			return x >= y
		}
		return false // nan
	}
}

func floatSemantics(d *ptx.Decoded) function {
	single := d.Type == ptx.F32
	mode := roundingMod(d)
	n := d.Type.Bits()
	one := func(f func(x float64) float64) function {
		return floats(d, func(x, _, _ float64) float64 { return narrow(single, f(x)) })
	}
	switch d.Op {
	case "add":
		return floats(d, func(x, y, _ float64) float64 { return addRounded(single, mode, x, y) })
	case "sub":
		return floats(d, func(x, y, _ float64) float64 { return addRounded(single, mode, x, -y) })
	case "mul":
		return floats(d, func(x, y, _ float64) float64 { return mulRounded(single, mode, x, y) })
	case "mad", "fma":
		return floats(d, func(x, y, z float64) float64 { return fma(single, mode, x, y, z) })
	case "div":
		return floats(d, func(x, y, _ float64) float64 { return divRounded(single, mode, x, y) })
	case "rcp":
		if d.Type == ptx.F64 && d.Has("approx") { // the upper half only, which is what is used of it
			return func(a, _, _ uint64) uint64 { return bits64(flush64(1/flush64(f64(a)))) &^ math.MaxUint32 }
		}
		return floats(d, func(x, _, _ float64) float64 { return divRounded(single, mode, 1, x) })
	case "sqrt":
		return floats(d, func(x, _, _ float64) float64 { return sqrtRounded(single, mode, x) })
	case "rsqrt":
		return one(func(x float64) float64 { return 1 / math.Sqrt(x) })
	case "sin":
		return one(math.Sin)
	case "cos":
		return one(math.Cos)
	case "lg2":
		return one(math.Log2)
	case "ex2":
		return one(math.Exp2)
	case "tanh":
		return one(math.Tanh)
	case "abs":
		if d.Has("ftz") {
			return floats(d, func(x, _, _ float64) float64 { return math.Abs(x) })
		}
		return func(a, _, _ uint64) uint64 { return a &^ (1 << (n - 1)) }
	case "neg":
		if d.Has("ftz") {
			return floats(d, func(x, _, _ float64) float64 { return -x })
		}
		return func(a, _, _ uint64) uint64 { return a ^ 1<<(n-1) }
	case "copysign":
		return func(a, b, _ uint64) uint64 { return b&^(1<<(n-1)) | a&(1<<(n-1)) }
	case "min", "max":
		larger, strict := d.Op == "max", d.Has("NaN")
		return floats(d, func(x, y, _ float64) float64 {
			switch {
			case x != x:
				if strict {
					return x
				}
				return y
			case y != y:
				if strict {
					return y
				}
				return x
			case larger:
				return math.Max(x, y)
			}
			return math.Min(x, y)
		})
	case "testp":
		value := f64
		smallest := 0x1p-1022
		if single {
			value = func(x uint64) float64 { return float64(f32(x)) }
			smallest = 0x1p-126
		}
		what := d.Mods[0]
		return func(a, _, _ uint64) uint64 {
			x := math.Abs(value(a))
			isNaN, isInf := x != x, math.IsInf(x, 0)
			switch what {
			case "finite":
				return truth(!isNaN && !isInf)
			case "infinite":
				return truth(isInf)
			case "number":
				return truth(!isNaN)
			case "notanumber":
				return truth(isNaN)
			case "normal":
				return truth(!isNaN && !isInf && x >= smallest)
			}
			return truth(x < smallest && x > 0)
		}
	}
	return nil
}

func flush64(x float64) float64 {
	if math.Abs(x) < 0x1p-1022 {
		return math.Copysign(0, x)
	}
	return x
}

// conversion is cvt. What it reads may be in a wider register; what it makes is of type Types[0], extended later.
func conversion(d *ptx.Decoded) function {
	to, from := d.Types[0], d.Types[1]
	mode := roundingMod(d)
	ftz, sat := d.Has("ftz"), d.Has("sat")
	value := func(x uint64) float64 {
		if from == ptx.F64 {
			return f64(x)
		}
		v := f32(x)
		if ftz {
			v = flush(v)
		}
		return float64(v)
	}
	whole := false
	for _, m := range d.Mods {
		whole = whole || len(m) == 3 && m[0] == 'r' && m[2] == 'i'
	}
	pack := func(r float64) uint64 {
		if to == ptx.F32 {
			return out32(r, ftz, sat)
		}
		if sat {
			r = saturate(r)
		}
		return bits64(r)
	}
	switch {
	case from.IsFloat() && to.IsFloat():
		switch {
		case whole:
			return func(a, _, _ uint64) uint64 { return pack(roundInt(mode, value(a))) }
		case to == ptx.F32 && from == ptx.F64:
			return func(a, _, _ uint64) uint64 { return pack(narrowed(mode, value(a))) }
		}
		return func(a, _, _ uint64) uint64 { return pack(value(a)) }
	case to.IsFloat():
		return func(a, _, _ uint64) uint64 {
			x := extend(from, a)
			if from.IsSigned() && int64(x) < 0 {
				return pack(fromInt(to == ptx.F32, mode, -x, true))
			}
			return pack(fromInt(to == ptx.F32, mode, x, false))
		}
	case from.IsFloat():
		// "In float-to-integer conversion, depending upon conversion types, NaN input results in": the sign bit for
		// f64 and for 64-bit results, else zero.
		var nan uint64
		if from == ptx.F64 || to.Bits() == 64 {
			nan = 1 << (to.Bits() - 1)
		}
		return func(a, _, _ uint64) uint64 { return toInt(mode, value(a), to.Bits(), to.IsSigned(), nan) }
	case sat:
		return func(a, _, _ uint64) uint64 {
			x := extend(from, a)
			n := to.Bits()
			switch {
			case to.IsSigned() && from.IsSigned():
				return low(n, uint64(max(min(int64(x), 1<<(n-1)-1), -1<<(n-1))))
			case to.IsSigned():
				return min(x, 1<<(n-1)-1)
			case from.IsSigned() && int64(x) < 0:
				return 0
			}
			return min(x, ^uint64(0)>>(64-n))
		}
	}
	return func(a, _, _ uint64) uint64 { return low(to.Bits(), extend(from, a)) }
}

// carrying is the function of an instruction that reads or sets the carry flag: add.cc and its kin.
type carrying func(a, b, c, carry uint64) (r, out uint64)

func carrySemantics(d *ptx.Decoded) carrying {
	n := d.Type.Bits()
	add := func(a, b, carry uint64) (uint64, uint64) {
		if n == 64 {
			return bits.Add64(a, b, carry)
		}
		s := a + b + carry
		return low(n, s), s >> n
	}
	takes := d.Op == "addc" || d.Op == "subc" || d.Op == "madc"
	in := func(carry uint64) uint64 {
		if takes {
			return carry
		}
		return 0
	}
	switch d.Op {
	case "add", "addc":
		return func(a, b, _, carry uint64) (uint64, uint64) { return add(a, b, in(carry)) }
	case "sub", "subc":
		return func(a, b, _, carry uint64) (uint64, uint64) {
			if n == 64 {
				return bits.Sub64(a, b, in(carry))
			}
			s := a - b - in(carry)
			return low(n, s), s >> 63
		}
	case "mad", "madc":
		p := product(d)
		return func(a, b, c, carry uint64) (uint64, uint64) { return add(p(a, b, 0), c, in(carry)) }
	}
	return nil
}

// atomicSemantics returns what an atomic operation makes of the old value, x and, for cas, y.
func atomicSemantics(d *ptx.Decoded) function {
	var op string
	for _, m := range d.Mods {
		switch m {
		case "and", "or", "xor", "exch", "cas", "add", "inc", "dec", "min", "max":
			op = m
		}
	}
	t := d.Type
	n := t.Bits()
	signed := t.IsSigned()
	switch op {
	case "exch":
		return func(_, x, _ uint64) uint64 { return x }
	case "cas":
		return func(old, x, y uint64) uint64 {
			if old == x {
				return y
			}
			return old
		}
	case "and":
		return func(old, x, _ uint64) uint64 { return old & x }
	case "or":
		return func(old, x, _ uint64) uint64 { return old | x }
	case "xor":
		return func(old, x, _ uint64) uint64 { return old ^ x }
	case "inc":
		return func(old, x, _ uint64) uint64 {
			if old >= x {
				return 0
			}
			return old + 1
		}
	case "dec":
		return func(old, x, _ uint64) uint64 {
			if old == 0 || old > x {
				return x
			}
			return old - 1
		}
	case "min":
		return func(old, x, _ uint64) uint64 {
			if less(signed, extend(t, x), extend(t, old)) {
				return x
			}
			return old
		}
	case "max":
		return func(old, x, _ uint64) uint64 {
			if less(signed, extend(t, old), extend(t, x)) {
				return x
			}
			return old
		}
	case "add":
		switch t {
		case ptx.F64:
			return func(old, x, _ uint64) uint64 { return bits64(f64(old) + f64(x)) }
		case ptx.F32:
			// "The floating-point operation .add.f32 on global memory flushes subnormal inputs and results to
			// sign-preserving zero; on shared memory it does not."
			global := d.Space == ptx.Global || d.Space == ptx.Generic
			return func(old, x, _ uint64) uint64 {
				a, b := f32(old), f32(x)
				if global {
					a, b = flush(a), flush(b)
				}
				return out32(float64(a+b), global, false)
			}
		}
		return func(old, x, _ uint64) uint64 { return low(n, old+x) }
	}
	panic(fmt.Sprintf("sim: internal error: no atomic %s", op))
}
