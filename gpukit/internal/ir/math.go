package ir

import (
	"math"
	"math/bits"
	"strings"

	"gpunotes/gpukit/internal/libm"
)

// MathFn is a library function: one operation of the IR whatever it expands
// to in an engine.
type MathFn uint8

// MathRow says what a library function is.
type MathRow struct {
	Name string // as Go calls it, e.g. "math.Sin", "bits.Len64"
	In   []Type
	Out  Type
	// Cheap functions are a few machine instructions: fine to compute for nothing.
	Cheap bool
	// Libm is the function of package libm whose text an engine may compile
	// instead, and Result which of its results this is; "" for functions that
	// every engine has code for.
	Libm   string
	Result int
	// Eval is the function itself, on values in Bits form.
	Eval func(a []Bits) Bits
	// F1 and F2 are the same for the common signatures, else nil.
	F1 func(float64) float64
	F2 func(x, y float64) float64
	// Single is the float64 function, e.g. "math.Sin", that this one computes for
	// float32 operands, rounded to float32 (see Narrow); "" for functions of Go.
	// Identical: with the same bits for all operands.
	Single    string
	Identical bool
	// S1 and S2 are such a function.
	S1 func(float32) float32
	S2 func(x, y float32) float32
	// Loose is the function that this one is but for NaN: it looks at the bits of one
	// as they are, about which engines disagree, and saves a test. What uses it gives
	// the same result whatever they are: the functions of package libm. "" for
	// functions of Go.
	Loose string
	// Fast is the function that this one takes the place of under FastMath (see Relax),
	// within 4 ulp (a power: 4 + |y log x|/16) and with all its special values; "" for
	// functions of Go.
	Fast string
}

// Go reports whether the function is one of Go's packages, rather than a form of one.
func (r *MathRow) Go() bool { return r.Single == "" && r.Loose == "" && r.Fast == "" }

// Row returns the row of fn.
func (fn MathFn) Row() *MathRow { return &mathTable[fn] }

// String returns the Go name of fn.
func (fn MathFn) String() string { return mathTable[fn].Name }

// NumMath is the number of library functions.
func NumMath() int { return len(mathTable) }

// LookupMath finds a library function by its Go name, e.g. "math.Sin". Go
// functions of two results are pairs here: math.Frexp is "math.Frexp.frac" and
// "math.Frexp.exp", and so on.
func LookupMath(name string) (MathFn, bool) {
	fn, ok := mathByName[name]
	return fn, ok
}

var mathByName = func() map[string]MathFn {
	m := make(map[string]MathFn, len(mathTable))
	for i := range mathTable {
		m[mathTable[i].Name] = MathFn(i)
	}
	return m
}()

func f1(name string, f func(float64) float64) MathRow {
	return MathRow{Name: name, In: []Type{F64}, Out: F64, F1: f,
		Eval: func(a []Bits) Bits { return FromF64(f(ToF64(a[0]))) }}
}

func f2(name string, f func(x, y float64) float64) MathRow {
	return MathRow{Name: name, In: []Type{F64, F64}, Out: F64, F2: f,
		Eval: func(a []Bits) Bits { return FromF64(f(ToF64(a[0]), ToF64(a[1]))) }}
}

func fn(name string, out Type, eval func(a []Bits) Bits, in ...Type) MathRow {
	return MathRow{Name: name, In: in, Out: out, Eval: eval}
}

func libm1(name string, f func(float64) float64) MathRow { return ofLibm(f1(name, f)) }

func libm2(name string, f func(x, y float64) float64) MathRow { return ofLibm(f2(name, f)) }

// libmN is a function of package libm of any signature. Of two results the rows
// follow each other.
func libmN(name string, out Type, eval func(a []Bits) Bits, in ...Type) MathRow {
	return ofLibm(fn(name, out, eval, in...))
}

func ofLibm(r MathRow) MathRow {
	short, result, _ := strings.Cut(strings.TrimPrefix(r.Name, "math."), ".")
	r.Libm = short
	if result == "exp" || result == "sign" || result == "cos" {
		r.Result = 1
	}
	return r
}

// single1 is the form of a function for float32, in package libm.
func single1(name string, f func(float32) float32) MathRow {
	r := fn("math."+name+".f32", F32, func(a []Bits) Bits { return FromF32(f(ToF32(a[0]))) }, F32)
	r.Single, r.Identical, r.S1 = "math."+name, true, f
	r.Libm = name + "F32"
	return r
}

// exact1 is one that every engine has code for.
func exact1(name string, f func(float64) float64) MathRow {
	r := single1(name, func(x float32) float32 { return float32(f(float64(x))) })
	r.Libm, r.Cheap = "", true
	return r
}

// single2 is one of two operands: too many for all of them to be tried.
func single2(name string, f func(x, y float32) float32) MathRow {
	r := fn("math."+name+".f32", F32, func(a []Bits) Bits { return FromF32(f(ToF32(a[0]), ToF32(a[1]))) }, F32, F32)
	r.Single, r.S2, r.Libm = "math."+name, f, name+"F32"
	return r
}

// fast1 is the form of a function for FastMath, in package libm.
func fast1(name string, f func(float64) float64) MathRow { return ofFast(name, f1("", f)) }

// fast2 is one of two operands.
func fast2(name string, f func(x, y float64) float64) MathRow { return ofFast(name, f2("", f)) }

func ofFast(name string, r MathRow) MathRow {
	r.Name, r.Fast = "math."+name+".fast", "math."+name
	r.Libm, _, _ = strings.Cut(name, ".")
	r.Libm += "Fast"
	return r
}

// second is the row of the second result.
func second(r MathRow) MathRow {
	r.Result = 1
	return r
}

// loose is a form that looks at nothing but the bits of an operand.
func loose(name string, out Type, eval func(a []Bits) Bits, in ...Type) MathRow {
	r := cheapRow(fn("math."+name+".loose", out, eval, in...))
	r.Loose = "math." + name
	return r
}

func cheapRow(r MathRow) MathRow {
	r.Cheap = true
	return r
}

// The sign of a NaN is never observed: it counts as positive.
func signbit(x float64) bool { return x == x && math.Signbit(x) }

func copysign(x, y float64) float64 {
	if y != y {
		y = 1
	}
	return math.Copysign(x, y)
}

// clampInt brings a kernel's int into the range of the Go function's int.
func clampInt(b Bits) int {
	return int(max(math.MinInt, min(math.MaxInt, int64(b))))
}

// bitsRow is a function of math/bits: integers in, one integer out.
func bitsRow(name string, out Type, eval func(x, y, z Bits) Bits, in ...Type) MathRow {
	return cheapRow(fn("bits."+name, out, func(a []Bits) Bits {
		var x [3]Bits
		copy(x[:], a)
		return Wrap(out, eval(x[0], x[1], x[2]))
	}, in...))
}

// bitsRows makes the functions of math/bits that exist for every width.
func bitsRows() (rows []MathRow) {
	for _, w := range []struct {
		suffix string
		t      Type
	}{{"", U64}, {"8", U8}, {"16", U16}, {"32", U32}, {"64", U64}} {
		n, t := w.t.Bits(), w.t
		one := func(name string, out Type, f func(x uint64) uint64) {
			rows = append(rows, bitsRow(name+w.suffix, out, func(x, _, _ Bits) Bits { return f(x) }, t))
		}
		one("LeadingZeros", I64, func(x uint64) uint64 { return uint64(n - bits.Len64(x)) })
		one("TrailingZeros", I64, func(x uint64) uint64 { return uint64(min(n, bits.TrailingZeros64(x))) })
		one("OnesCount", I64, func(x uint64) uint64 { return uint64(bits.OnesCount64(x)) })
		one("Len", I64, func(x uint64) uint64 { return uint64(bits.Len64(x)) })
		one("Reverse", t, func(x uint64) uint64 { return bits.Reverse64(x) >> (64 - n) })
		if n > 8 {
			one("ReverseBytes", t, func(x uint64) uint64 { return bits.ReverseBytes64(x) >> (64 - n) })
		}
		rows = append(rows, bitsRow("RotateLeft"+w.suffix, t, func(x, k, _ Bits) Bits {
			s := k & Bits(n-1)
			return x<<s | x>>(Bits(n)-s)
		}, t, I64))
		if n < 32 {
			continue
		}
		pair := func(name, first, second string, f func(x, y, carry uint64) (uint64, uint64), in ...Type) {
			rows = append(rows,
				bitsRow(name+w.suffix+"."+first, t, func(x, y, z Bits) Bits { a, _ := f(x, y, z); return a }, in...),
				bitsRow(name+w.suffix+"."+second, t, func(x, y, z Bits) Bits { _, b := f(x, y, z); return b }, in...))
		}
		add, sub, mul := bits.Add64, bits.Sub64, bits.Mul64
		if n == 32 {
			// Go leaves open what a carry that is neither 0 nor 1 does: here what its
			// functions for 64 bits do, on every engine.
			add = func(x, y, c uint64) (uint64, uint64) {
				s := uint32(x + y + c)
				return uint64(s), uint64((uint32(x&y) | uint32(x|y)&^s) >> 31)
			}
			sub = func(x, y, c uint64) (uint64, uint64) {
				d := uint32(x - y - c)
				return uint64(d), uint64((uint32(^x&y) | ^uint32(x^y)&d) >> 31)
			}
			mul = func(x, y uint64) (uint64, uint64) { return x * y >> 32, x * y }
		}
		pair("Add", "sum", "carry", add, t, t, t)
		pair("Sub", "diff", "borrow", sub, t, t, t)
		pair("Mul", "hi", "lo", func(x, y, _ uint64) (uint64, uint64) { return mul(x, y) }, t, t)
	}
	return rows
}

var mathTable = append([]MathRow{
	cheapRow(f1("math.Abs", math.Abs)),
	libm1("math.Acos", libm.Acos),
	libm1("math.Acosh", libm.Acosh),
	libm1("math.Asin", libm.Asin),
	libm1("math.Asinh", libm.Asinh),
	libm1("math.Atan", libm.Atan),
	libm1("math.Atanh", libm.Atanh),
	libm1("math.Cbrt", libm.Cbrt),
	cheapRow(f1("math.Ceil", math.Ceil)),
	libm1("math.Cos", libm.Cos),
	libm1("math.Cosh", libm.Cosh),
	libm1("math.Erf", libm.Erf),
	libm1("math.Erfc", libm.Erfc),
	libm1("math.Erfcinv", libm.Erfcinv),
	libm1("math.Erfinv", libm.Erfinv),
	libm1("math.Exp", libm.Exp),
	libm1("math.Exp2", libm.Exp2),
	libm1("math.Expm1", libm.Expm1),
	cheapRow(f1("math.Floor", math.Floor)),
	libm1("math.Gamma", libm.Gamma),
	libm1("math.J0", libm.J0),
	libm1("math.J1", libm.J1),
	libm1("math.Log", libm.Log),
	libm1("math.Log10", libm.Log10),
	libm1("math.Log1p", libm.Log1p),
	libm1("math.Log2", libm.Log2),
	libm1("math.Logb", libm.Logb),
	f1("math.Round", math.Round),
	cheapRow(f1("math.RoundToEven", math.RoundToEven)),
	libm1("math.Sin", libm.Sin),
	libm1("math.Sinh", libm.Sinh),
	cheapRow(f1("math.Sqrt", math.Sqrt)),
	libm1("math.Tan", libm.Tan),
	libm1("math.Tanh", libm.Tanh),
	cheapRow(f1("math.Trunc", math.Trunc)),
	libm1("math.Y0", libm.Y0),
	libm1("math.Y1", libm.Y1),

	libm2("math.Atan2", libm.Atan2),
	cheapRow(f2("math.Copysign", copysign)),
	cheapRow(f2("math.Dim", math.Dim)),
	libm2("math.Hypot", libm.Hypot),
	cheapRow(f2("math.Max", math.Max)),
	cheapRow(f2("math.Min", math.Min)),
	libm2("math.Mod", libm.Mod),
	libm2("math.Nextafter", libm.Nextafter),
	libm2("math.Pow", libm.Pow),
	libm2("math.Remainder", libm.Remainder),

	cheapRow(fn("math.FMA", F64, func(a []Bits) Bits { return FromF64(math.FMA(ToF64(a[0]), ToF64(a[1]), ToF64(a[2]))) }, F64, F64, F64)),
	cheapRow(fn("math.Float32bits", U32, func(a []Bits) Bits { return Canonical(F32, a[0]) }, F32)),
	cheapRow(fn("math.Float32frombits", F32, func(a []Bits) Bits { return a[0] }, U32)),
	cheapRow(fn("math.Float64bits", U64, func(a []Bits) Bits { return Canonical(F64, a[0]) }, F64)),
	cheapRow(fn("math.Float64frombits", F64, func(a []Bits) Bits { return a[0] }, U64)),
	libmN("math.Ilogb", I64, func(a []Bits) Bits { return Bits(int64(libm.Ilogb(ToF64(a[0])))) }, F64),
	cheapRow(fn("math.Inf", F64, func(a []Bits) Bits { return FromF64(math.Inf(clampInt(a[0]))) }, I64)),
	cheapRow(fn("math.IsInf", Bool, func(a []Bits) Bits { return FromBool(math.IsInf(ToF64(a[0]), clampInt(a[1]))) }, F64, I64)),
	cheapRow(fn("math.IsNaN", Bool, func(a []Bits) Bits { return FromBool(math.IsNaN(ToF64(a[0]))) }, F64)),
	libmN("math.Jn", F64, func(a []Bits) Bits { return FromF64(libm.Jn(clampInt(a[0]), ToF64(a[1]))) }, I64, F64),
	libmN("math.Ldexp", F64, func(a []Bits) Bits { return FromF64(libm.Ldexp(ToF64(a[0]), clampInt(a[1]))) }, F64, I64),
	cheapRow(fn("math.NaN", F64, func([]Bits) Bits { return CanonicalNaN })),
	libmN("math.Nextafter32", F32, func(a []Bits) Bits { return FromF32(libm.Nextafter32(ToF32(a[0]), ToF32(a[1]))) }, F32, F32),
	libmN("math.Pow10", F64, func(a []Bits) Bits { return FromF64(libm.Pow10(clampInt(a[0]))) }, I64),
	cheapRow(fn("math.Signbit", Bool, func(a []Bits) Bits { return FromBool(signbit(ToF64(a[0]))) }, F64)),
	libmN("math.Yn", F64, func(a []Bits) Bits { return FromF64(libm.Yn(clampInt(a[0]), ToF64(a[1]))) }, I64, F64),

	libmN("math.Frexp.frac", F64, func(a []Bits) Bits { f, _ := libm.Frexp(ToF64(a[0])); return FromF64(f) }, F64),
	libmN("math.Frexp.exp", I64, func(a []Bits) Bits { _, e := libm.Frexp(ToF64(a[0])); return Bits(int64(e)) }, F64),
	libmN("math.Lgamma.lgamma", F64, func(a []Bits) Bits { l, _ := libm.Lgamma(ToF64(a[0])); return FromF64(l) }, F64),
	libmN("math.Lgamma.sign", I64, func(a []Bits) Bits { _, s := libm.Lgamma(ToF64(a[0])); return Bits(int64(s)) }, F64),
	fn("math.Modf.int", F64, func(a []Bits) Bits { i, _ := math.Modf(ToF64(a[0])); return FromF64(i) }, F64),
	fn("math.Modf.frac", F64, func(a []Bits) Bits { _, f := math.Modf(ToF64(a[0])); return FromF64(f) }, F64),
	libmN("math.Sincos.sin", F64, func(a []Bits) Bits { s, _ := libm.Sincos(ToF64(a[0])); return FromF64(s) }, F64),
	libmN("math.Sincos.cos", F64, func(a []Bits) Bits { _, c := libm.Sincos(ToF64(a[0])); return FromF64(c) }, F64),

	loose("Copysign", F64, func(a []Bits) Bits { return a[0]&^(1<<63) | a[1]&(1<<63) }, F64, F64),
	loose("Float64bits", U64, func(a []Bits) Bits { return a[0] }, F64),
	loose("Signbit", Bool, func(a []Bits) Bits { return a[0] >> 63 }, F64),

	fast1("Atan", libm.AtanFast),
	fast1("Cos", libm.CosFast),
	fast1("Erf", libm.ErfFast),
	fast1("Exp", libm.ExpFast),
	fast1("Exp2", libm.Exp2Fast),
	fast1("Log", libm.LogFast),
	fast1("Log10", libm.Log10Fast),
	fast1("Log2", libm.Log2Fast),
	fast1("Sin", libm.SinFast),
	fast1("Tan", libm.TanFast),
	fast1("Tanh", libm.TanhFast),
	fast2("Atan2", libm.Atan2Fast),
	fast2("Pow", libm.PowFast),
	fast1("Sincos.sin", func(x float64) float64 { s, _ := libm.SincosFast(x); return s }),
	second(fast1("Sincos.cos", func(x float64) float64 { _, c := libm.SincosFast(x); return c })),

	exact1("Abs", math.Abs),
	exact1("Ceil", math.Ceil),
	exact1("Floor", math.Floor),
	exact1("RoundToEven", math.RoundToEven),
	exact1("Sqrt", math.Sqrt),
	exact1("Trunc", math.Trunc),
	single1("Atan", libm.AtanF32),
	single1("Cbrt", libm.CbrtF32),
	single1("Cos", libm.CosF32),
	single1("Exp", libm.ExpF32),
	single1("Exp2", libm.Exp2F32),
	single1("Log", libm.LogF32),
	single1("Log10", libm.Log10F32),
	single1("Log2", libm.Log2F32),
	single1("Sin", libm.SinF32),
	single1("Tan", libm.TanF32),
	single1("Tanh", libm.TanhF32),
	single2("Atan2", libm.Atan2F32),
	single2("Hypot", libm.HypotF32),
	single2("Pow", libm.PowF32),
}, bitsRows()...)

// looseOf has the loose form of a function.
var looseOf = func() map[MathFn]MathFn {
	m := map[MathFn]MathFn{}
	for i := range mathTable {
		if of := mathTable[i].Loose; of != "" {
			m[mathByName[of]] = MathFn(i)
		}
	}
	return m
}()

// Loosen makes f, and what it calls, use loose forms (MathRow.Loose), in place. It is
// for functions of package libm.
func Loosen(f *Func) {
	seen := map[*Func]bool{}
	var loosen func(f *Func)
	loosen = func(f *Func) {
		if seen[f] {
			return
		}
		seen[f] = true
		Walk(f.Body, func(in *Instr) {
			switch in.Op {
			case OpCall:
				loosen(in.Callee)
			case OpMath:
				if fn, ok := looseOf[in.Fn]; ok {
					in.Fn = fn
				}
			}
		})
	}
	loosen(f)
}
