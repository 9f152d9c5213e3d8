package cpu

import "gpunotes/gpukit/internal/ir"

// step executes one instruction of a block program.
type step func(m *machine, x *inst)

// binary is an operation of two operands, in the forms that exist: v is a value
// per lane, s one value for all lanes. Form sv finds them swapped, the vector
// in a. Where a form is nil the plan spreads the scalar first.
type binary struct{ vv, vs, sv step }

const numTypes = int(ir.F64) + 1

// The engine's table of operations, by operation and type of the operands.
var (
	binaries    [ir.NumOps][numTypes]binary
	shifts      [ir.NumOps][numTypes][numTypes]binary // by types of value and count
	unaries     [ir.NumOps][numTypes]step
	conversions [numTypes][numTypes]step // to, from
	selections  [numTypes]step
)

func vv[T element](k func(d, x, y []T)) step {
	return func(m *machine, x *inst) {
		b, n := m.banks[x.t].(*bank[T]), m.n[x.frame]
		d := b.own[x.d][:n]
		k(d, b.view[x.a][:n], b.view[x.b][:n])
		b.view[x.d] = d
	}
}

func vs[T element](k func(d, x []T, y T)) step {
	return func(m *machine, x *inst) {
		b, n := m.banks[x.t].(*bank[T]), m.n[x.frame]
		d := b.own[x.d][:n]
		k(d, b.view[x.a][:n], b.view[x.b][0])
		b.view[x.d] = d
	}
}

func v[T element](k func(d, x []T)) step {
	return func(m *machine, x *inst) {
		b, n := m.banks[x.t].(*bank[T]), m.n[x.frame]
		d := b.own[x.d][:n]
		k(d, b.view[x.a][:n])
		b.view[x.d] = d
	}
}

// The forms for kernels that may fault on values T and U.

func faultVV[T, U element](k func(d, x []T, y []U) bool) step {
	return func(m *machine, x *inst) {
		b, c, n := m.banks[x.t].(*bank[T]), m.banks[x.u].(*bank[U]), m.n[x.frame]
		d := b.own[x.d][:n]
		if !k(d, b.view[x.a][:n], c.view[x.b][:n]) {
			m.fault, m.stop = true, true
		}
		b.view[x.d] = d
	}
}

func faultVS[T, U element](k func(d, x []T, y U) bool) step {
	return func(m *machine, x *inst) {
		b, c, n := m.banks[x.t].(*bank[T]), m.banks[x.u].(*bank[U]), m.n[x.frame]
		d := b.own[x.d][:n]
		if !k(d, b.view[x.a][:n], c.view[x.b][0]) {
			m.fault, m.stop = true, true
		}
		b.view[x.d] = d
	}
}

func compareVV[T element](k func(d []bool, x, y []T)) step {
	return func(m *machine, x *inst) {
		b, r, n := m.banks[x.t].(*bank[T]), m.banks[ir.Bool].(*bank[bool]), m.n[x.frame]
		d := r.own[x.d][:n]
		k(d, b.view[x.a][:n], b.view[x.b][:n])
		r.view[x.d] = d
	}
}

func compareVS[T element](k func(d []bool, x []T, y T)) step {
	return func(m *machine, x *inst) {
		b, r, n := m.banks[x.t].(*bank[T]), m.banks[ir.Bool].(*bank[bool]), m.n[x.frame]
		d := r.own[x.d][:n]
		k(d, b.view[x.a][:n], b.view[x.b][0])
		r.view[x.d] = d
	}
}

func conversion[D, S element](k func(d []D, x []S)) step {
	return func(m *machine, x *inst) {
		b, s, n := m.banks[x.u].(*bank[D]), m.banks[x.t].(*bank[S]), m.n[x.frame]
		d := b.own[x.d][:n]
		k(d, s.view[x.a][:n])
		b.view[x.d] = d
	}
}

func selection[T element]() step {
	return func(m *machine, x *inst) {
		b, c, n := m.banks[x.t].(*bank[T]), m.banks[ir.Bool].(*bank[bool]), m.n[x.frame]
		d := b.own[x.d][:n]
		choose(d, c.view[x.c][:n], b.view[x.a][:n], b.view[x.b][:n])
		b.view[x.d] = d
	}
}

// numbers enters what every number type has. Form sv of a comparison is form vs
// of the mirrored one.
func numbers[T number](t ir.Type) {
	memoriesOf[T](t)
	binaries[ir.OpAdd][t] = binary{vv(addVV[T]), vs(addVS[T]), vs(addVS[T])}
	binaries[ir.OpSub][t] = binary{vv(subVV[T]), vs(subVS[T]), vs(subSV[T])}
	binaries[ir.OpMul][t] = binary{vv(mulVV[T]), vs(mulVS[T]), vs(mulVS[T])}
	binaries[ir.OpMin][t] = binary{vv(minVV[T]), vs(minVS[T]), vs(minVS[T])}
	binaries[ir.OpMax][t] = binary{vv(maxVV[T]), vs(maxVS[T]), vs(maxVS[T])}
	lt, le := compareVV(ltVV[T]), compareVV(leVV[T])
	gt := compareVV(func(d []bool, x, y []T) { ltVV(d, y, x) })
	ge := compareVV(func(d []bool, x, y []T) { leVV(d, y, x) })
	eqS, neS := compareVS(eqVS[T]), compareVS(neVS[T])
	ltS, leS, gtS, geS := compareVS(ltVS[T]), compareVS(leVS[T]), compareVS(gtVS[T]), compareVS(geVS[T])
	binaries[ir.OpEq][t] = binary{compareVV(eqVV[T]), eqS, eqS}
	binaries[ir.OpNe][t] = binary{compareVV(neVV[T]), neS, neS}
	binaries[ir.OpLt][t] = binary{lt, ltS, gtS}
	binaries[ir.OpLe][t] = binary{le, leS, geS}
	binaries[ir.OpGt][t] = binary{gt, gtS, ltS}
	binaries[ir.OpGe][t] = binary{ge, geS, leS}
	unaries[ir.OpNeg][t] = v(negV[T])
	selections[t] = selection[T]()
}

func integers[T integer](t ir.Type) {
	guardsOf[T](t)
	numbers[T](t)
	binaries[ir.OpDiv][t] = binary{vv: faultVV(quoVV[T]), vs: faultVS(quoVS[T])}
	binaries[ir.OpRem][t] = binary{vv: faultVV(remVV[T]), vs: faultVS(remVS[T])}
	binaries[ir.OpAnd][t] = binary{vv(andVV[T]), vs(andVS[T]), vs(andVS[T])}
	binaries[ir.OpOr][t] = binary{vv: vv(orVV[T])}
	binaries[ir.OpXor][t] = binary{vv: vv(xorVV[T])}
	binaries[ir.OpAndNot][t] = binary{vv: vv(andNotVV[T])}
	unaries[ir.OpNot][t] = v(notV[T])
	shiftsBy[T, int8](t, ir.I8)
	shiftsBy[T, int16](t, ir.I16)
	shiftsBy[T, int32](t, ir.I32)
	shiftsBy[T, int64](t, ir.I64)
	shiftsBy[T, uint8](t, ir.U8)
	shiftsBy[T, uint16](t, ir.U16)
	shiftsBy[T, uint32](t, ir.U32)
	shiftsBy[T, uint64](t, ir.U64)
	convertsInto[T](t)
	truncates[T, float32](t, ir.F32)
	truncates[T, float64](t, ir.F64)
}

func shiftsBy[T, N integer](t, n ir.Type) {
	shifts[ir.OpShl][t][n] = binary{vv: faultVV(shlVV[T, N]), vs: faultVS(shlVS[T, N])}
	shifts[ir.OpShr][t][n] = binary{vv: faultVV(shrVV[T, N]), vs: faultVS(shrVS[T, N])}
}

func floats[T float](t ir.Type) {
	numbers[T](t)
	binaries[ir.OpDiv][t] = binary{vv(divVV[T]), vs(divVS[T]), vs(divSV[T])}
	convertsInto[T](t)
	conversions[t][ir.F32] = conversion(convert[T, float32])
	conversions[t][ir.F64] = conversion(convert[T, float64])
}

func convertsInto[D number](t ir.Type) {
	conversions[t][ir.I8] = conversion(convert[D, int8])
	conversions[t][ir.I16] = conversion(convert[D, int16])
	conversions[t][ir.I32] = conversion(convert[D, int32])
	conversions[t][ir.I64] = conversion(convert[D, int64])
	conversions[t][ir.U8] = conversion(convert[D, uint8])
	conversions[t][ir.U16] = conversion(convert[D, uint16])
	conversions[t][ir.U32] = conversion(convert[D, uint32])
	conversions[t][ir.U64] = conversion(convert[D, uint64])
}

func truncates[D integer, S float](to, from ir.Type) {
	lo, hi, low, high := typeRange[D]()
	conversions[to][from] = conversion(func(d []D, x []S) { truncate(d, x, lo, hi, low, high) })
}

func init() {
	integers[int8](ir.I8)
	integers[int16](ir.I16)
	integers[int32](ir.I32)
	integers[int64](ir.I64)
	integers[uint8](ir.U8)
	integers[uint16](ir.U16)
	integers[uint32](ir.U32)
	integers[uint64](ir.U64)
	floats[float32](ir.F32)
	floats[float64](ir.F64)
	b := ir.Bool
	memoriesOf[bool](b)
	binaries[ir.OpAnd][b] = binary{vv: vv(boolAnd)}
	binaries[ir.OpOr][b] = binary{vv: vv(boolOr)}
	binaries[ir.OpXor][b] = binary{vv: vv(boolXor)}
	binaries[ir.OpAndNot][b] = binary{vv: vv(boolAndNot)}
	binaries[ir.OpEq][b] = binary{vv: vv(boolEq)}
	binaries[ir.OpNe][b] = binary{vv: vv(boolXor)}
	unaries[ir.OpNot][b] = v(boolNot)
	selections[b] = selection[bool]()
}

// mathStep is the step of a library function.
func mathStep(row *ir.MathRow) step {
	if k := direct1[row.Name]; k != nil {
		return v(k)
	}
	if k := direct2[row.Name]; k != nil {
		return vv(k)
	}
	if k := single1[row.Name]; k != nil {
		return v(k)
	}
	switch {
	case row.F1 != nil:
		f := row.F1
		return v(func(d, x []float64) { math1(d, x, f) })
	case row.F2 != nil:
		f := row.F2
		return vv(func(d, x, y []float64) { math2(d, x, y, f) })
	case row.S1 != nil:
		f := row.S1
		return v(func(d, x []float32) { math1(d, x, f) })
	case row.S2 != nil:
		f := row.S2
		return vv(func(d, x, y []float32) { math2(d, x, y, f) })
	}
	// Any signature: lane by lane through the row.
	return func(m *machine, x *inst) {
		var a [3]ir.Bits
		src := [3]int32{x.a, x.b, x.c}
		out, n := m.banks[row.Out], m.n[x.frame]
		for i := range n {
			for j, t := range row.In {
				a[j] = m.banks[t].get(src[j], i)
			}
			out.put(x.d, i, row.Eval(a[:len(row.In)]))
		}
		out.begin(x.d, n)
	}
}

// spreadStep makes a value per lane from one for all.
func spreadStep(m *machine, x *inst) { m.banks[x.t].spread(x.d, x.a, m.n[x.frame]) }
