package nvptx

import (
	"math"

	"gpunotes/gpukit/internal/ir"
	"gpunotes/gpukit/internal/ptx"
)

// mathCode has the library functions that are a few instructions. The others
// are for a library in the kernel language to expand first.
var mathCode = map[string]func(e *emitter, a []ir.Value) ptx.Operand{
	"math.Abs":         unary("abs.f64"),
	"math.Ceil":        unary("cvt.rpi.f64.f64"),
	"math.Floor":       unary("cvt.rmi.f64.f64"),
	"math.Trunc":       unary("cvt.rzi.f64.f64"),
	"math.RoundToEven": unary("cvt.rni.f64.f64"),
	"math.Modf.int":    unary("cvt.rzi.f64.f64"),
	"math.Sqrt":        unary("sqrt.rn.f64"),

	"math.Abs.f32":         unary32("abs.f32"),
	"math.Ceil.f32":        unary32("cvt.rpi.f32.f32"),
	"math.Floor.f32":       unary32("cvt.rmi.f32.f32"),
	"math.Trunc.f32":       unary32("cvt.rzi.f32.f32"),
	"math.RoundToEven.f32": unary32("cvt.rni.f32.f32"),
	"math.Sqrt.f32":        unary32("sqrt.rn.f32"),

	"math.Round": func(e *emitter, a []ir.Value) ptx.Operand {
		// Half away from zero; what is taken away is exact.
		x := e.inReg(a[0])
		whole := e.get("cvt.rzi.f64.f64", ptx.F64, x)
		part := e.get("abs.f64", ptx.F64, e.get("sub.rn.f64", ptx.F64, x, whole))
		up := e.get("setp.ge.f64", ptx.Pred, part, ptx.Float64(0.5))
		next := e.get("add.rn.f64", ptx.F64, e.get("abs.f64", ptx.F64, whole), ptx.Float64(1))
		return e.get("selp.f64", ptx.F64, e.withSign(next, x), whole, up)
	},
	"math.Modf.frac": func(e *emitter, a []ir.Value) ptx.Operand {
		x := e.inReg(a[0])
		return e.withSign(e.get("sub.rn.f64", ptx.F64, x, e.get("cvt.rzi.f64.f64", ptx.F64, x)), x)
	},
	"math.FMA": func(e *emitter, a []ir.Value) ptx.Operand {
		return e.get("fma.rn.f64", ptx.F64, e.inReg(a[0]), e.use(a[1]), e.use(a[2]))
	},
	"math.Copysign": func(e *emitter, a []ir.Value) ptx.Operand {
		// The sign of a NaN counts as positive.
		y := e.inReg(a[1])
		y = e.get("selp.f64", ptx.F64, ptx.Float64(0), y, e.get("setp.nan.f64", ptx.Pred, y, y))
		return e.withSign(e.inReg(a[0]), y)
	},
	"math.Dim": func(e *emitter, a []ir.Value) ptx.Operand {
		d := e.get("sub.rn.f64", ptx.F64, e.inReg(a[0]), e.use(a[1]))
		return e.get("selp.f64", ptx.F64, ptx.Float64(0), d, e.get("setp.le.f64", ptx.Pred, d, ptx.Float64(0)))
	},
	"math.Max": func(e *emitter, a []ir.Value) ptx.Operand { return e.goExtreme(true, e.inReg(a[0]), e.inReg(a[1])) },
	"math.Min": func(e *emitter, a []ir.Value) ptx.Operand { return e.goExtreme(false, e.inReg(a[0]), e.inReg(a[1])) },

	"math.Float64bits": func(e *emitter, a []ir.Value) ptx.Operand {
		x := e.inReg(a[0])
		return e.get("selp.b64", ptx.B64, ptx.Int(ir.CanonicalNaN), e.get("mov.b64", ptx.B64, x), e.get("setp.nan.f64", ptx.Pred, x, x))
	},
	"math.Float64bits.loose": func(e *emitter, a []ir.Value) ptx.Operand { return e.get("mov.b64", ptx.B64, e.inReg(a[0])) },
	"math.Copysign.loose":    func(e *emitter, a []ir.Value) ptx.Operand { return e.withSign(e.inReg(a[0]), e.inReg(a[1])) },
	"math.Signbit.loose": func(e *emitter, a []ir.Value) ptx.Operand {
		return e.get("setp.lt.s64", ptx.Pred, e.get("mov.b64", ptx.B64, e.inReg(a[0])), ptx.Int(0))
	},
	"math.Float32bits": func(e *emitter, a []ir.Value) ptx.Operand {
		x := e.inReg(a[0])
		return e.get("selp.b32", ptx.B32, ptx.Int(int64(nan(ir.F32).Bits)), e.get("mov.b32", ptx.B32, x), e.get("setp.nan.f32", ptx.Pred, x, x))
	},
	"math.Float64frombits": func(e *emitter, a []ir.Value) ptx.Operand { return e.get("mov.b64", ptx.F64, e.inReg(a[0])) },
	"math.Float32frombits": func(e *emitter, a []ir.Value) ptx.Operand { return e.get("mov.b32", ptx.F32, e.inReg(a[0])) },
	"math.Inf": func(e *emitter, a []ir.Value) ptx.Operand {
		p := e.get("setp.ge.s64", ptx.Pred, e.inReg(a[0]), ptx.Int(0))
		return e.get("selp.f64", ptx.F64, ptx.Float64(math.Inf(1)), ptx.Float64(math.Inf(-1)), p)
	},
	"math.IsInf": func(e *emitter, a []ir.Value) ptx.Operand {
		x, sign := e.inReg(a[0]), e.inReg(a[1])
		up := e.get("setp.ge.s64", ptx.Pred, sign, ptx.Int(0))
		down := e.get("setp.le.s64", ptx.Pred, sign, ptx.Int(0))
		up = e.get("setp.eq.and.f64", ptx.Pred, x, ptx.Float64(math.Inf(1)), up)
		down = e.get("setp.eq.and.f64", ptx.Pred, x, ptx.Float64(math.Inf(-1)), down)
		return e.get("or.pred", ptx.Pred, up, down)
	},
	"math.IsNaN": func(e *emitter, a []ir.Value) ptx.Operand {
		x := e.inReg(a[0])
		return e.get("setp.nan.f64", ptx.Pred, x, x)
	},
	"math.NaN": func(e *emitter, a []ir.Value) ptx.Operand { return e.get("mov.f64", ptx.F64, nan(ir.F64)) },
	"math.Signbit": func(e *emitter, a []ir.Value) ptx.Operand {
		x := e.inReg(a[0])
		number := e.get("setp.num.f64", ptx.Pred, x, x)
		return e.get("setp.lt.and.s64", ptx.Pred, e.get("mov.b64", ptx.B64, x), ptx.Int(0), number)
	},
}

func unary(op string) func(e *emitter, a []ir.Value) ptx.Operand {
	return func(e *emitter, a []ir.Value) ptx.Operand { return e.get(op, ptx.F64, e.inReg(a[0])) }
}

func unary32(op string) func(e *emitter, a []ir.Value) ptx.Operand {
	return func(e *emitter, a []ir.Value) ptx.Operand { return e.get(op, ptx.F32, e.inReg(a[0])) }
}

// withSign is x with the sign of y, both registers.
func (e *emitter) withSign(x, y ptx.Operand) ptx.Operand {
	m := e.get("and.b64", ptx.B64, e.get("mov.b64", ptx.B64, x), ptx.Int(math.MaxInt64))
	s := e.get("and.b64", ptx.B64, e.get("mov.b64", ptx.B64, y), ptx.Int(math.MinInt64))
	return e.get("mov.b64", ptx.F64, e.get("or.b64", ptx.B64, m, s))
}

// goExtreme is math.Max or math.Min: an infinity on the winning side beats NaN.
func (e *emitter) goExtreme(max bool, x, y ptx.Operand) ptx.Operand {
	inf := ptx.Float64(math.Inf(-1))
	if max {
		inf = ptx.Float64(math.Inf(1))
	}
	wins := e.get("setp.eq.f64", ptx.Pred, x, inf)
	wins = e.get("setp.eq.or.f64", ptx.Pred, y, inf, wins)
	return e.get("selp.f64", ptx.F64, inf, e.extreme(max, ir.F64, x, y), wins)
}

// The functions of math/bits.
func init() {
	for _, w := range []struct {
		suffix string
		t      ir.Type
	}{{"", ir.U64}, {"8", ir.U8}, {"16", ir.U16}, {"32", ir.U32}, {"64", ir.U64}} {
		t := w.t
		n := int64(t.Bits())
		c, b := class(t), bits(t)
		size := int64(32)
		if n == 64 {
			size = 64
		}
		wide := func(e *emitter, r ptx.Operand) ptx.Operand { return e.get("cvt.s64.s32", ptx.B64, r) }
		set := func(name string, code func(e *emitter, x, y ptx.Operand, a []ir.Value) ptx.Operand) {
			mathCode["bits."+name] = func(e *emitter, a []ir.Value) ptx.Operand {
				var y ptx.Operand
				if len(a) > 1 {
					y = e.inReg(a[1])
				}
				return code(e, e.inReg(a[0]), y, a)
			}
		}
		length := func(e *emitter, x ptx.Operand) ptx.Operand {
			return e.get("sub.s32", ptx.B32, ptx.Int(size), e.get("clz."+b, ptx.B32, x))
		}
		set("Len"+w.suffix, func(e *emitter, x, _ ptx.Operand, _ []ir.Value) ptx.Operand { return wide(e, length(e, x)) })
		set("LeadingZeros"+w.suffix, func(e *emitter, x, _ ptx.Operand, _ []ir.Value) ptx.Operand {
			return wide(e, e.get("sub.s32", ptx.B32, ptx.Int(n), length(e, x)))
		})
		set("TrailingZeros"+w.suffix, func(e *emitter, x, _ ptx.Operand, _ []ir.Value) ptx.Operand {
			r := e.get("clz."+b, ptx.B32, e.get("brev."+b, c, x))
			if n < 32 {
				r = e.get("min.u32", ptx.B32, r, ptx.Int(n))
			}
			return wide(e, r)
		})
		set("OnesCount"+w.suffix, func(e *emitter, x, _ ptx.Operand, _ []ir.Value) ptx.Operand {
			return wide(e, e.get("popc."+b, ptx.B32, x))
		})
		set("Reverse"+w.suffix, func(e *emitter, x, _ ptx.Operand, _ []ir.Value) ptx.Operand {
			r := e.get("brev."+b, c, x)
			if n < 32 {
				r = e.get("shr.u32", c, r, ptx.Int(32-n))
			}
			return r
		})
		if n > 8 {
			set("ReverseBytes"+w.suffix, func(e *emitter, x, _ ptx.Operand, _ []ir.Value) ptx.Operand {
				flip := func(r ptx.Operand) ptx.Operand {
					return e.get("prmt.b32", ptx.B32, r, ptx.Int(0), ptx.Int(0x0123))
				}
				if n == 64 {
					lo, hi := e.reg(ptx.B32), e.reg(ptx.B32)
					e.ins("mov.b64", ptx.Vec(lo, hi), x)
					return e.get("mov.b64", c, ptx.Vec(flip(hi), flip(lo)))
				}
				r := flip(x)
				if n == 16 {
					r = e.get("shr.u32", c, r, ptx.Int(16))
				}
				return r
			})
		}
		set("RotateLeft"+w.suffix, func(e *emitter, x, k ptx.Operand, _ []ir.Value) ptx.Operand {
			left := e.get("and.b32", ptx.B32, e.get("cvt.u32.u64", ptx.B32, k), ptx.Int(n-1))
			right := e.get("sub.s32", ptx.B32, ptx.Int(n), left)
			hi := e.get("shl."+b, c, x, left)
			return e.norm(t, e.get("or."+b, c, hi, e.get("shr."+suffix(t), c, x, right)))
		})
		if n < 32 {
			continue
		}
		s := suffix(t)
		// The carry that comes in is added as it is: Go leaves open what others
		// than 0 and 1 do, and means x + y + carry.
		set("Add"+w.suffix+".sum", func(e *emitter, x, y ptx.Operand, a []ir.Value) ptx.Operand {
			return e.get("add."+s, c, e.get("add."+s, c, x, y), e.use(a[2]))
		})
		set("Add"+w.suffix+".carry", func(e *emitter, x, y ptx.Operand, a []ir.Value) ptx.Operand {
			sum := e.get("add."+s, c, e.get("add."+s, c, x, y), e.use(a[2]))
			// The top bit of (x & y) | ((x | y) &^ sum).
			some := e.get("and."+b, c, e.get("or."+b, c, x, y), e.get("not."+b, c, sum))
			return e.get("shr."+s, c, e.get("or."+b, c, e.get("and."+b, c, x, y), some), ptx.Int(n-1))
		})
		set("Sub"+w.suffix+".diff", func(e *emitter, x, y ptx.Operand, a []ir.Value) ptx.Operand {
			return e.get("sub."+s, c, e.get("sub."+s, c, x, y), e.use(a[2]))
		})
		set("Sub"+w.suffix+".borrow", func(e *emitter, x, y ptx.Operand, a []ir.Value) ptx.Operand {
			diff := e.get("sub."+s, c, e.get("sub."+s, c, x, y), e.use(a[2]))
			// The top bit of (^x & y) | (^(x ^ y) & diff).
			same := e.get("and."+b, c, e.get("not."+b, c, e.get("xor."+b, c, x, y)), diff)
			return e.get("shr."+s, c, e.get("or."+b, c, e.get("and."+b, c, e.get("not."+b, c, x), y), same), ptx.Int(n-1))
		})
		set("Mul"+w.suffix+".hi", func(e *emitter, x, y ptx.Operand, _ []ir.Value) ptx.Operand {
			return e.get("mul.hi."+s, c, x, y)
		})
		set("Mul"+w.suffix+".lo", func(e *emitter, x, y ptx.Operand, _ []ir.Value) ptx.Operand {
			return e.get("mul.lo."+s, c, x, y)
		})
	}
}
