package ir

import "math"

// Relax returns f, a function without calls, for FastMath: library functions that
// have a faster form become that (MathRow.Fast), powers with exponents -1, 2, 3 and 4
// become a division and products, quotients by constants products with 1/constant, and
// float64 products with one use, in a sum or
// difference, become one with it: math.FMA, rounded once.
func Relax(f *Func) *Func {
	r := &relaxer{f: f.clone(), def: make([]*Instr, len(f.Types)), uses: make([]int, len(f.Types))}
	Walk(r.f.Body, func(in *Instr) {
		if len(in.Results) == 1 {
			r.def[in.Results[0]] = in
		}
		for _, a := range in.Args {
			r.uses[a]++
		}
	})
	r.f.Body = r.region(r.f.Body)
	r.f.settled = f.settled && fingerprint(r.f) == fingerprint(f)
	return Optimize(r.f)
}

// fastOf has the faster form of a function.
var fastOf = func() map[MathFn]MathFn {
	m := map[MathFn]MathFn{}
	for i := range mathTable {
		if of := mathTable[i].Fast; of != "" {
			m[mathByName[of]] = MathFn(i)
		}
	}
	return m
}()

var fmaFn, powFn = mathByName["math.FMA"], mathByName["math.Pow"]

type relaxer struct {
	f    *Func
	def  []*Instr // by value of f, of what has one result
	uses []int
}

func (r *relaxer) region(s *Region) *Region {
	b := &Builder{F: r.f, R: &Region{Instrs: make([]Instr, 0, len(s.Instrs))}}
	for _, in := range s.Instrs {
		b.Pos = in.Pos
		for i, t := range in.Regions {
			in.Regions[i] = r.region(t)
		}
		switch {
		case in.Op == OpMath && in.Fn == powFn && r.power(b, &in):
		case in.Op == OpMath:
			if fn, ok := fastOf[in.Fn]; ok {
				in.Fn = fn
			}
		case in.Op == OpDiv && r.f.Types[in.Results[0]] == F64:
			if c := r.defOf(in.Args[1]); c != nil && c.Op == OpConst && math.Abs(ToF64(c.Imm)) < 0x1p1000 && math.Abs(ToF64(c.Imm)) > 0x1p-1000 {
				in.Op, in.Args = OpMul, []Value{in.Args[0], b.Const(F64, FromF64(1/ToF64(c.Imm)))}
			}
		case (in.Op == OpAdd || in.Op == OpSub) && r.f.Types[in.Results[0]] == F64:
			r.fuse(b, &in)
		}
		b.R.Instrs = append(b.R.Instrs, in)
	}
	return b.R
}

// power makes in a cheaper operation of the same value, if its exponent is a number
// for which there is one.
func (r *relaxer) power(b *Builder, in *Instr) bool {
	x, d := in.Args[0], r.defOf(in.Args[1])
	if d == nil || d.Op != OpConst {
		return false
	}
	op, y := OpMul, x
	switch ToF64(d.Imm) {
	case -1:
		op, x = OpDiv, b.Const(F64, FromF64(1))
	case 2:
	case 3:
		x = b.Op(OpMul, x, x)
	case 4:
		x = b.Op(OpMul, x, x)
		y = x
	default:
		return false
	}
	*in = Instr{Op: op, Args: []Value{x, y}, Results: in.Results, Pos: in.Pos}
	return true
}

// product returns the operation of v if it is a product that nothing else needs.
func (r *relaxer) product(v Value) *Instr {
	if d := r.defOf(v); d != nil && d.Op == OpMul && r.uses[v] == 1 {
		return d
	}
	return nil
}

// fuse makes in, a sum or difference, a fused one if an operand is a product.
func (r *relaxer) fuse(b *Builder, in *Instr) {
	x, y := in.Args[0], in.Args[1]
	var args []Value
	if d := r.product(y); d != nil {
		args = []Value{d.Args[0], d.Args[1], x}
		if in.Op == OpSub {
			k := 0 // rather a constant
			if c := r.defOf(args[1]); c != nil && c.Op == OpConst {
				k = 1
			}
			args[k] = r.minus(b, args[k])
		}
	} else if d := r.product(x); d != nil {
		args = []Value{d.Args[0], d.Args[1], y}
		if in.Op == OpSub {
			args[2] = r.minus(b, y)
		}
	} else {
		return
	}
	*in = Instr{Op: OpMath, Fn: fmaFn, Args: args, Results: in.Results, Pos: in.Pos}
}

func (r *relaxer) minus(b *Builder, v Value) Value {
	if c := r.defOf(v); c != nil && c.Op == OpConst {
		return b.Const(F64, c.Imm^1<<63)
	}
	return b.Op(OpNeg, v)
}

// defOf is the instruction that v comes from, if that has one result and was there
// before.
func (r *relaxer) defOf(v Value) *Instr {
	if int(v) >= len(r.def) {
		return nil
	}
	return r.def[v]
}
