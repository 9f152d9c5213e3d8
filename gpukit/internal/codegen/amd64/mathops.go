package amd64

import (
	"math"

	"gpunotes/gpukit/internal/ir"
)

// Native reports whether there is code for a library function. The others are to be
// expanded first.
func Native(fn ir.MathFn) bool { return mathTable[fn.Row().Name] != nil }

func library(l *lowerer, in *ir.Instr, t ir.Type, dst []vreg) {
	f := mathTable[in.Fn.Row().Name]
	if f == nil {
		l.callout(in)
		return
	}
	f(l, in, t, dst)
}

func scalarLibrary(l *lowerer, in *ir.Instr, t ir.Type, dst vreg) bool {
	f := scalarMath[in.Fn.Row().Name]
	return f != nil && f(l, in, t, dst)
}

// mathTable has the library functions that are a few instructions.
var mathTable = map[string]vectorOp{
	"math.Sqrt":        one(vsqrtpd, vsqrtps),
	"math.Sqrt.f32":    one(vsqrtpd, vsqrtps),
	"math.RoundToEven": rounded(0),
	"math.Floor":       rounded(1),
	"math.Ceil":        rounded(2),
	"math.Trunc":       rounded(3),
	"math.Modf.int":    rounded(3),

	"math.RoundToEven.f32": rounded(0),
	"math.Floor.f32":       rounded(1),
	"math.Ceil.f32":        rounded(2),
	"math.Trunc.f32":       rounded(3),

	"math.Abs":     absFloat,
	"math.Abs.f32": absFloat,
	"math.Round": eachPart(func(l *lowerer, d, x vreg) {
		// Half away from zero: of the absolute value, then the sign.
		abs, whole, rest, up, sign := l.vector(), l.vector(), l.vector(), l.newMask(), l.vector()
		l.op3(vandpd, abs, x, l.splat(signBit-1))
		l.op2i(vroundpd, whole, fromReg(abs), 3|8)
		l.op3(vsubpd, rest, abs, fromReg(whole))
		l.t.compare(l, ir.F64, ir.OpGe, up, rest, l.splatF(0.5))
		l.t.keep(l, ir.F64, rest, up, l.splatF(1))
		l.op3(vaddpd, whole, whole, fromReg(rest))
		l.op3(vandpd, sign, x, l.splat(signBit))
		l.op3(vorpd, d, whole, fromReg(sign))
	}),
	"math.Modf.frac": eachPart(func(l *lowerer, d, x vreg) {
		u, sign := l.vector(), l.vector()
		l.op2i(vroundpd, u, fromReg(x), 3|8)
		l.op3(vsubpd, u, x, fromReg(u))
		l.op3(vandpd, sign, x, l.splat(signBit))
		l.op3(vandpd, u, u, l.splat(signBit-1))
		l.op3(vorpd, d, u, fromReg(sign))
	}),
	"math.FMA": func(l *lowerer, in *ir.Instr, t ir.Type, dst []vreg) {
		if z, known := l.known(in.Args[2]); known && z == signOf(t) { // nothing is added by -0
			direct(vmulpd, vmulps)(l, in, t, dst)
			return
		}
		xs, ys, zs := l.vecs(in.Args[0]), l.vecs(in.Args[1]), l.vecs(in.Args[2])
		for p, d := range dst {
			l.fma(t, d, of(xs, p), of(ys, p), of(zs, p), false)
		}
	},
	// The sign of a NaN counts as positive.
	"math.Copysign": func(l *lowerer, in *ir.Instr, t ir.Type, dst []vreg) {
		xs, ys := l.vecs(in.Args[0]), l.vecs(in.Args[1])
		for p, d := range dst {
			x, y := of(xs, p), of(ys, p)
			m, abs, sign := l.newMask(), l.vector(), l.vector()
			l.t.unordered(l, t, m, y, y, true)
			l.t.keep(l, t, sign, m, fromReg(y))
			l.op3(vandpd, sign, sign, l.splat(signBit))
			l.op3(vandpd, abs, x, l.splat(signBit-1))
			l.op3(vorpd, d, abs, fromReg(sign))
		}
	},
	// The loose forms take a NaN's own sign and bits.
	"math.Copysign.loose": func(l *lowerer, in *ir.Instr, t ir.Type, dst []vreg) {
		xs, ys := l.vecs(in.Args[0]), l.vecs(in.Args[1])
		for p, d := range dst {
			abs, sign := l.vector(), l.vector()
			l.op3(vandpd, abs, of(xs, p), l.splat(signBit-1))
			l.op3(vandpd, sign, of(ys, p), l.splat(signBit))
			l.op3(vorpd, d, abs, fromReg(sign))
		}
	},
	"math.Float64bits.loose": copied,
	"math.Signbit.loose": func(l *lowerer, in *ir.Instr, _ ir.Type, dst []vreg) {
		xs := l.vecs(in.Args[0])
		l.toMasks(ir.F64, dst, func(p int, m vreg) { l.t.compare(l, ir.I64, ir.OpLt, m, of(xs, p), l.splat(0)) })
	},
	"math.Dim": func(l *lowerer, in *ir.Instr, _ ir.Type, dst []vreg) {
		xs, ys := l.vecs(in.Args[0]), l.vecs(in.Args[1])
		for p, d := range dst {
			u := l.vector()
			l.op3(vsubpd, u, of(xs, p), fromReg(of(ys, p)))
			l.op3(vmaxpd, u, l.load(0), fromReg(u)) // the second if it is a NaN
			l.op3(vaddpd, d, u, l.splat(0))         // no -0
		}
	},
	"math.Max": goExtreme(true),
	"math.Min": goExtreme(false),

	"math.Float64bits":     canonicalBits(ir.CanonicalNaN),
	"math.Float32bits":     canonicalBits(ir.Canonical(ir.F32, 0x7FFFFFFF)),
	"math.Float64frombits": copied,
	"math.Float32frombits": copied,

	"math.NaN": func(l *lowerer, in *ir.Instr, _ ir.Type, dst []vreg) {
		for _, d := range dst {
			l.copy(d, l.load(ir.CanonicalNaN))
		}
	},
	"math.Inf": func(l *lowerer, in *ir.Instr, t ir.Type, dst []vreg) {
		xs := l.vecs(in.Args[0])
		for p, d := range dst {
			m := l.newMask()
			l.t.compare(l, t, ir.OpGe, m, of(xs, p), l.splat(0))
			l.blend(ir.F64, d, m, l.splatF(math.Inf(1)), l.load(math.Float64bits(math.Inf(-1))))
		}
	},
	"math.IsNaN": func(l *lowerer, in *ir.Instr, t ir.Type, dst []vreg) {
		xs := l.vecs(in.Args[0])
		l.toMasks(t, dst, func(p int, m vreg) { l.t.unordered(l, t, m, of(xs, p), of(xs, p), false) })
	},
	"math.IsInf": isInf,
	"math.Signbit": func(l *lowerer, in *ir.Instr, t ir.Type, dst []vreg) {
		xs := l.vecs(in.Args[0])
		l.toMasks(t, dst, func(p int, d vreg) {
			m, number := l.newMask(), l.newMask()
			l.t.compare(l, ir.I64, ir.OpLt, m, of(xs, p), l.splat(0))
			l.t.unordered(l, t, number, of(xs, p), of(xs, p), true)
			l.t.maskAnd(l, d, m, number)
		})
	},
}

// one is one instruction with one operand.
func one(wide, narrow *row) vectorOp {
	r := rowPair{wide, narrow}
	return func(l *lowerer, in *ir.Instr, t ir.Type, dst []vreg) {
		xs := l.srcs(in.Args[0])
		for p, d := range dst {
			l.op2(r.of(t), d, of(xs, p))
		}
	}
}

// eachPart computes part by part from one operand of the same type.
func eachPart(f func(l *lowerer, d, x vreg)) vectorOp {
	return func(l *lowerer, in *ir.Instr, _ ir.Type, dst []vreg) {
		xs := l.vecs(in.Args[0])
		for p, d := range dst {
			f(l, d, of(xs, p))
		}
	}
}

var copied = eachPart(func(l *lowerer, d, x vreg) { l.copy(d, x) })

// rounded rounds by an immediate, without the exception for inexact results.
func rounded(mode int32) vectorOp {
	r := rowPair{vroundpd, vroundps}
	return func(l *lowerer, in *ir.Instr, t ir.Type, dst []vreg) {
		xs := l.srcs(in.Args[0])
		for p, d := range dst {
			l.op2i(r.of(t), d, of(xs, p), mode|8)
		}
	}
}

func absFloat(l *lowerer, in *ir.Instr, t ir.Type, dst []vreg) {
	xs := l.vecs(in.Args[0])
	for p, d := range dst {
		l.op3(bitAnd.of(t), d, of(xs, p), l.splatOf(t, signOf(t)-1))
	}
}

// canonicalBits are the bits of a float, one pattern for all NaNs.
func canonicalBits(nan uint64) vectorOp {
	return func(l *lowerer, in *ir.Instr, t ir.Type, dst []vreg) {
		xs := l.vecs(in.Args[0])
		for p, d := range dst {
			m, x := l.newMask(), of(xs, p)
			l.t.unordered(l, t, m, x, x, false)
			l.blend(t, d, m, l.splatOf(t, nan), x)
		}
	}
}

// goExtreme is math.Max or math.Min: an infinity on the winning side beats a NaN.
func goExtreme(max bool) vectorOp {
	inf := math.Inf(-1)
	if max {
		inf = math.Inf(1)
	}
	return func(l *lowerer, in *ir.Instr, t ir.Type, dst []vreg) {
		xs, ys := l.vecs(in.Args[0]), l.vecs(in.Args[1])
		for p, d := range dst {
			x, y, r := of(xs, p), of(ys, p), l.vector()
			m, n := l.newMask(), l.newMask()
			l.t.compare(l, t, ir.OpEq, m, x, l.splatF(inf))
			l.t.compare(l, t, ir.OpEq, n, y, l.splatF(inf))
			l.t.maskOr(l, m, m, n)
			if max {
				l.maxOf(t, r, x, y)
			} else {
				l.minOf(t, r, x, y)
			}
			l.blend(t, d, m, l.splatF(inf), r)
		}
	}
}

// isInf: by a sign above 0, below, or 0 for any.
func isInf(l *lowerer, in *ir.Instr, t ir.Type, dst []vreg) {
	xs := l.vecs(in.Args[0])
	is := func(m, x vreg, sign int) { l.t.compare(l, t, ir.OpEq, m, x, l.splatF(math.Inf(sign))) }
	if c, known := l.known(in.Args[1]); known {
		l.toMasks(t, dst, func(p int, m vreg) {
			x := of(xs, p)
			switch sign := int64(c); {
			case sign > 0:
				is(m, x, 1)
			case sign < 0:
				is(m, x, -1)
			default:
				abs := l.vector()
				l.op3(vandpd, abs, x, l.splat(signBit-1))
				is(m, abs, 1)
			}
		})
		return
	}
	signs := l.vecs(in.Args[1])
	l.toMasks(t, dst, func(p int, m vreg) {
		up, down, may := l.newMask(), l.newMask(), l.newMask()
		is(up, of(xs, p), 1)
		l.t.compare(l, ir.I64, ir.OpGe, may, of(signs, p), l.splat(0))
		l.t.maskAnd(l, up, up, may)
		is(down, of(xs, p), -1)
		l.t.compare(l, ir.I64, ir.OpLe, may, of(signs, p), l.splat(0))
		l.t.maskAnd(l, down, down, may)
		l.t.maskOr(l, m, up, down)
	})
}

// The functions of math/bits.
func init() {
	for _, w := range []struct {
		suffix string
		t      ir.Type
	}{{"", ir.U64}, {"8", ir.U8}, {"16", ir.U16}, {"32", ir.U32}, {"64", ir.U64}} {
		t := w.t
		n, lane := t.Bits(), max(32, t.Bits())
		zeros := func(l *lowerer, d, x vreg) { l.t.leadingZeros(l, t, d, x) }
		// minus is k - f(x).
		minus := func(k int, f func(l *lowerer, d, x vreg)) vectorOp {
			return l64(t, func(l *lowerer, d, x vreg) {
				u := l.vector()
				f(l, u, x)
				l.op3(subInt.of(t), d, l.loadOf(t, uint64(k)), fromReg(u))
			})
		}
		mathTable["bits.Len"+w.suffix] = minus(lane, zeros)
		mathTable["bits.LeadingZeros"+w.suffix] = l64(t, zeros)
		if n < lane {
			mathTable["bits.LeadingZeros"+w.suffix] = l64(t, func(l *lowerer, d, x vreg) {
				u := l.vector()
				zeros(l, u, x)
				l.op3(vpsubd, d, u, l.splatOf(t, uint64(lane-n)))
			})
		}
		mathTable["bits.TrailingZeros"+w.suffix] = minus(lane, func(l *lowerer, d, x vreg) {
			// All below the last one: not x, and x-1.
			u := l.vector()
			if n < lane {
				v := l.vector()
				l.op3(vorps, v, x, l.splatOf(t, 1<<n))
				x = v
			}
			l.op3(addInt.of(t), u, x, l.splatOf(t, ^uint64(0)))
			l.op3(vandnps, u, x, fromReg(u))
			zeros(l, d, u)
		})
		mathTable["bits.OnesCount"+w.suffix] = l64(t, func(l *lowerer, d, x vreg) { l.onesCount(t, d, x) })
		mathTable["bits.Reverse"+w.suffix] = eachPart(func(l *lowerer, d, x vreg) {
			// The bits of each byte, half by half, then the bytes.
			u, v := l.vector(), l.vector()
			l.halfBytes(u, v, x)
			l.op3(vpshufb, u, l.table16(lowReversed, 0xE060A020C0408000, 0xF070B030D0509010), fromReg(u))
			l.op3(vpshufb, v, l.table16(highReversed, 0x0E060A020C040800, 0x0F070B030D050901), fromReg(v))
			if n == 8 {
				l.op3(vorps, d, u, fromReg(v))
				return
			}
			l.op3(vorps, u, u, fromReg(v))
			l.reverseBytes(t, d, u)
		})
		mathTable["bits.RotateLeft"+w.suffix] = func(l *lowerer, in *ir.Instr, _ ir.Type, dst []vreg) { rotateLeft(l, in, t, dst) }
		if n > 8 {
			mathTable["bits.ReverseBytes"+w.suffix] = eachPart(func(l *lowerer, d, x vreg) { l.reverseBytes(t, d, x) })
		}
		if n < 32 {
			continue
		}
		three := func(f func(l *lowerer, d, x, y, c vreg)) vectorOp {
			return func(l *lowerer, in *ir.Instr, _ ir.Type, dst []vreg) {
				xs, ys, cs := l.vecs(in.Args[0]), l.vecs(in.Args[1]), l.vecs(in.Args[len(in.Args)-1])
				for p, d := range dst {
					f(l, d, of(xs, p), of(ys, p), of(cs, p))
				}
			}
		}
		add, sub := addInt.of(t), subInt.of(t)
		last := func(l *lowerer, d, x vreg) { l.op2i(shiftRight.of(t), d, fromReg(x), int32(n-1)) }
		sum := func(r *row) func(l *lowerer, d, x, y, c vreg) {
			return func(l *lowerer, d, x, y, c vreg) {
				u := l.vector()
				l.op3(r, u, x, fromReg(y))
				l.op3(r, d, u, fromReg(c))
			}
		}
		mathTable["bits.Add"+w.suffix+".sum"] = three(sum(add))
		mathTable["bits.Sub"+w.suffix+".diff"] = three(sum(sub))
		mathTable["bits.Add"+w.suffix+".carry"] = three(func(l *lowerer, d, x, y, c vreg) {
			// The top bit of (x & y) | ((x | y) &^ sum).
			s, or, and := l.vector(), l.vector(), l.vector()
			sum(add)(l, s, x, y, c)
			l.op3(vorps, or, x, fromReg(y))
			l.op3(vandnps, s, s, fromReg(or))
			l.op3(vandps, and, x, fromReg(y))
			l.op3(vorps, s, s, fromReg(and))
			last(l, d, s)
		})
		mathTable["bits.Sub"+w.suffix+".borrow"] = three(func(l *lowerer, d, x, y, c vreg) {
			// The top bit of (^x & y) | (^(x ^ y) & diff).
			s, differ, and := l.vector(), l.vector(), l.vector()
			sum(sub)(l, s, x, y, c)
			l.op3(vxorps, differ, x, fromReg(y))
			l.op3(vandnps, s, differ, fromReg(s))
			l.op3(vandnps, and, x, fromReg(y))
			l.op3(vorps, s, s, fromReg(and))
			last(l, d, s)
		})
		mathTable["bits.Mul"+w.suffix+".lo"] = three(func(l *lowerer, d, x, y, _ vreg) { l.times(t, d, x, y) })
		mathTable["bits.Mul"+w.suffix+".hi"] = three(func(l *lowerer, d, x, y, _ vreg) {
			u := l.vector()
			l.op2i(vpsrlq, u, fromReg(y), 32)
			if n == 64 {
				l.high64(d, x, fromReg(y), fromReg(u))
				return
			}
			even, odd := l.vector(), l.vector()
			l.op3(vpmuludq, even, x, fromReg(y))
			l.op2i(vpsrlq, odd, fromReg(x), 32)
			l.op3(vpmuludq, odd, odd, fromReg(u))
			l.t.upperHalves(l, d, even, odd)
		})
	}
}

// l64 is a function of an unsigned integer to I64, computed in lanes of the operand.
func l64(t ir.Type, f func(l *lowerer, d, x vreg)) vectorOp {
	return func(l *lowerer, in *ir.Instr, _ ir.Type, dst []vreg) {
		xs := l.vecs(in.Args[0])
		if isWide(t) {
			for p, d := range dst {
				f(l, d, of(xs, p))
			}
			return
		}
		rs := make([]vreg, (len(dst)+1)/2)
		for p := range rs {
			rs[p] = l.vector()
			f(l, rs[p], of(xs, p))
		}
		l.eachHalf(rs, len(dst), func(p int, h vreg) { l.widen(dst[p], h, false) })
	}
}

// halfBytes are the lower and the upper halves of all bytes.
func (l *lowerer) halfBytes(low, high, x vreg) {
	const mask = 0x0F0F0F0F0F0F0F0F
	l.op3(vandpd, low, x, l.splat(mask))
	l.op2i(vpsrld, high, fromReg(x), 4)
	l.op3(vandpd, high, high, l.splat(mask))
}

// onesCount counts by halves of bytes, and sums up.
func (l *lowerer) onesCount(t ir.Type, dst, x vreg) {
	u, v := l.vector(), l.vector()
	l.halfBytes(u, v, x)
	table := l.table16(bitCounts, 0x0302020102010100, 0x0403030203020201)
	l.op3(vpshufb, u, table, fromReg(u))
	l.op3(vpshufb, v, table, fromReg(v))
	if isWide(t) {
		l.op3(vpaddb, u, u, fromReg(v))
		l.op3(vpsadbw, dst, u, l.splat(0))
		return
	}
	ones := l.load(0x0101010101010101)
	l.op3(vpaddb, u, u, fromReg(v))
	l.op3(vpmaddubsw, u, u, fromReg(ones))
	l.op3(vpmaddwd, dst, u, l.splat(0x0001000100010001))
}

// reverseBytes reverses the bytes of type t; those above it are zero, and stay so.
func (l *lowerer) reverseBytes(t ir.Type, dst, x vreg) {
	n, lane := t.Size(), laneSize(t)
	var w [2]uint64
	for i := range 16 {
		from := 0x80 // zero
		if i%lane < n {
			from = i - i%lane + n - 1 - i%lane
		}
		w[i/8] |= uint64(from) << (8 * (i % 8))
	}
	key := byteOrder
	key.bits = uint64(n)
	l.op3(vpshufb, dst, x, fromReg(l.table16(key, w[0], w[1])))
}

// rotateLeft takes the count modulo the width.
func rotateLeft(l *lowerer, in *ir.Instr, t ir.Type, dst []vreg) {
	xs, k := l.vecs(in.Args[0]), in.Args[1]
	n := t.Bits()
	c, known := l.known(k)
	c &= uint64(n - 1)
	var ns []vreg
	switch {
	case known:
	case isWide(t):
		ns = l.vecs(k)
	case l.uniform(k):
		v := l.vector()
		l.broadcast(v, l.gpr(k), t)
		ns = []vreg{v}
	default:
		ks := l.vecs(k)
		for p := range dst {
			v := l.vector()
			l.t.narrow(l, v, of(ks, 2*p), of(ks, 2*p+1))
			ns = append(ns, v)
		}
	}
	for p, d := range dst {
		x := of(xs, p)
		switch {
		case known && c == 0:
			l.copy(d, x)
		case known && n >= 32:
			l.t.rotateLeft(l, t, d, x, 0, int32(c))
		case known:
			u, v := l.vector(), l.vector()
			l.op2i(vpslld, u, fromReg(x), int32(c))
			l.op2i(vpsrld, v, fromReg(x), int32(n)-int32(c))
			l.op3(vorps, u, u, fromReg(v))
			l.normalise(t, d, u)
		case n >= 32:
			l.t.rotateLeft(l, t, d, x, of(ns, p), 0)
		default:
			s, u, v := l.vector(), l.vector(), l.vector()
			l.op3(vandps, s, of(ns, p), l.splatOf(t, uint64(n-1)))
			l.op3(vpsllvd, u, x, fromReg(s))
			l.op3(vpsubd, v, l.loadOf(t, uint64(n)), fromReg(s))
			l.op3(vpsrlvd, v, x, fromReg(v))
			l.op3(vorps, u, u, fromReg(v))
			l.normalise(t, d, u)
		}
	}
}

// scalarMath has those on integers that all lanes have the same of.
var scalarMath = map[string]scalarOp{}

func init() {
	for _, w := range []struct {
		suffix string
		n      int
	}{{"", 64}, {"8", 8}, {"16", 16}, {"32", 32}, {"64", 64}} {
		n := w.n
		scalarMath["bits.OnesCount"+w.suffix] = func(l *lowerer, in *ir.Instr, _ ir.Type, dst vreg) bool {
			l.op2(popcnt, dst, fromReg(l.gpr(in.Args[0])))
			return true
		}
		scalarMath["bits.LeadingZeros"+w.suffix] = func(l *lowerer, in *ir.Instr, _ ir.Type, dst vreg) bool {
			u := l.newGPR()
			l.op2(lzcnt, u, fromReg(l.gpr(in.Args[0])))
			l.add(inst{row: subImm, reg: dst, v: u, imm: int32(64 - n)})
			return true
		}
		scalarMath["bits.Len"+w.suffix] = func(l *lowerer, in *ir.Instr, _ ir.Type, dst vreg) bool {
			u, v := l.newGPR(), l.newGPR()
			l.op2(lzcnt, u, fromReg(l.gpr(in.Args[0])))
			l.add(inst{row: neg, reg: v, v: u})
			l.add(inst{row: addImm, reg: dst, v: v, imm: 64})
			return true
		}
		scalarMath["bits.TrailingZeros"+w.suffix] = func(l *lowerer, in *ir.Instr, _ ir.Type, dst vreg) bool {
			u := l.newGPR()
			l.op2(tzcnt, u, fromReg(l.gpr(in.Args[0])))
			l.copy(dst, l.atMost(u, uint64(n)))
			return true
		}
		scalarMath["bits.RotateLeft"+w.suffix] = func(l *lowerer, in *ir.Instr, _ ir.Type, dst vreg) bool {
			c, known := l.known(in.Args[1])
			if !known || n != 64 {
				return false
			}
			l.add(inst{row: rol64, reg: dst, v: l.gpr(in.Args[0]), imm: int32(c & 63)})
			return true
		}
		if n > 8 {
			scalarMath["bits.ReverseBytes"+w.suffix] = func(l *lowerer, in *ir.Instr, _ ir.Type, dst vreg) bool {
				u := l.newGPR()
				l.add(inst{row: bswap, reg: u, v: l.gpr(in.Args[0])})
				l.add(inst{row: shr64, reg: dst, v: u, imm: int32(64 - n)})
				return true
			}
		}
	}
}
