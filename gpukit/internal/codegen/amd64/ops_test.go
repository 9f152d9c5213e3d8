package amd64_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"gpunotes/gpukit/internal/codegen/amd64"
	"gpunotes/gpukit/internal/cpu"
	"gpunotes/gpukit/internal/ir"
	"gpunotes/gpukit/internal/ir/irtest"
)

// anyValue draws from everything that a type has: special values, small ones, and all
// bits.
func anyValue(r *rand.Rand, t ir.Type) ir.Bits {
	if r.IntN(4) > 0 {
		return irtest.Value(r, t)
	}
	switch {
	case t == ir.F64 && r.IntN(2) == 0:
		return ir.FromF64(math.Ldexp(r.NormFloat64(), r.IntN(140)-70))
	case t == ir.F32 && r.IntN(2) == 0:
		return ir.FromF32(float32(math.Ldexp(r.NormFloat64(), r.IntN(140)-70)))
	case t == ir.F32 || t == ir.Bool:
		return r.Uint64() & (1<<32 - 1) >> (31 * (t.Bits() & 8 >> 3))
	case t.IsInt() && r.IntN(2) == 0: // near the middle between two floats
		return ir.Wrap(t, ((1<<24|r.Uint64()&(1<<24-1))<<1|1)<<r.IntN(39)+r.Uint64()%3-1)
	case t.IsInt():
		return ir.Wrap(t, r.Uint64()>>r.IntN(64))
	}
	return r.Uint64()
}

// opCase computes results of operands with many different values.
type opCase struct {
	name   string
	in     []ir.Type
	out    ir.Type
	build  func(b *ir.Builder, x []ir.Value) ir.Value
	accept func(x []ir.Bits) bool // nil: all
}

// checkOps compares cases with the same operands with the evaluator, where operands
// differ from lane to lane, are the same for all, or constants; for all workers, and in
// a branch that few of them take.
func checkOps(t *testing.T, cases []opCase) {
	t.Helper()
	const n = 101
	in := cases[0].in
	r := rand.New(rand.NewPCG(uint64(len(cases)), uint64(in[0])))
	ways := 1
	for range in {
		ways *= 3
	}
	for way := range ways {
		repeat := 1
		if way > 0 {
			repeat = 3 // other values of what is the same for all
		}
		for range repeat {
			var access []amd64.Access
			constant := make([]bool, len(in))
			same := make([]ir.Bits, len(in))
			w := way
			for i := range in {
				access = append(access, []amd64.Access{amd64.Unit, amd64.Same, amd64.Same}[w%3])
				constant[i] = w%3 == 2
				same[i] = anyValue(r, in[i])
				w /= 3
			}
			rows := make([][]ir.Bits, n)
			for k := range rows {
				x := make([]ir.Bits, len(in))
				for i := range in {
					x[i] = same[i]
					if access[i] == amd64.Unit {
						x[i] = anyValue(r, in[i])
					}
				}
				rows[k] = x
			}
			// Cases that do not take the operands are left out.
			var taken []opCase
			for _, c := range cases {
				ok := true
				for k := range rows {
					ok = ok && (c.accept == nil || c.accept(rows[k]))
				}
				if ok || c.accept == nil {
					taken = append(taken, c)
				} else if way == 0 {
					t.Fatalf("%s takes none of the operands", c.name)
				}
			}
			if len(taken) == 0 {
				continue
			}
			var results []ir.Type
			for _, c := range taken {
				results = append(results, c.out)
			}
			// Of the cases a function, and one that has them in a branch.
			function := func(name string, branch bool) *ir.Func {
				f := ir.NewFunc(name, results...)
				var params []ir.Value
				for i := range in {
					params = append(params, f.AddParam(fmt.Sprint("x", i), in[i]))
				}
				b := ir.NewBuilder(f)
				yield := func() {
					for i := range in {
						if constant[i] {
							params[i] = b.Const(in[i], same[i])
						}
					}
					var out []ir.Value
					for _, c := range taken {
						out = append(out, c.build(b, params))
					}
					b.Yield(out...)
				}
				if !branch {
					yield()
				} else {
					few := f.AddParam("few", ir.Bool)
					b.Yield(b.If(few, results, yield, func() {
						var out []ir.Value
						for _, t := range results {
							out = append(out, b.Const(t, 0))
						}
						b.Yield(out...)
					})...)
				}
				if err := ir.Verify(f); err != nil {
					t.Fatalf("%v\n%v", err, f)
				}
				return f
			}
			f, g := function("ops", false), function("branch", true)
			want := make([][]ir.Bits, n)
			for k := range rows {
				var err error
				if want[k], err = new(ir.Evaluator).Run(f, rows[k]...); err != nil {
					t.Fatal(err)
				}
			}
			branchRows, branchWant := make([][]ir.Bits, n), make([][]ir.Bits, n)
			for k := range rows {
				taken := ir.Bits(0)
				branchWant[k] = make([]ir.Bits, len(results))
				if r.IntN(8) == 0 {
					taken, branchWant[k] = 1, want[k]
				}
				branchRows[k] = append(slices.Clone(rows[k]), taken)
			}
			branchAccess := append(slices.Clone(access), amd64.Unit)
			for _, target := range targets(t) {
				runOps(t, f, target, 1+len(in)%2, taken, access, rows, want)
				runOps(t, g, target, 2, taken, branchAccess, branchRows, branchWant)
			}
		}
	}
}

func runOps(t *testing.T, f *ir.Func, target amd64.Target, parts int, cases []opCase, access []amd64.Access, rows, want [][]ir.Bits) {
	t.Helper()
	v := variant{target: target, parts: parts, in: access}
	run := cpu.Rows{Count: len(rows)}
	for i, p := range f.Params {
		s := cpu.Stream{Value: rows[0][i], Step: 1}
		if access[i] == amd64.Unit {
			e := newElements(f.Types[p.Value], len(rows))
			for k := range rows {
				e.put(k, rows[k][i])
			}
			s.Data = e.s.Interface()
		}
		run.In = append(run.In, s)
	}
	var out []elements
	for _, typ := range f.Results {
		v.out = append(v.out, amd64.Unit)
		e := newElements(typ, len(rows))
		out = append(out, e)
		run.Out = append(run.Out, cpu.Stream{Data: e.s.Interface(), Step: 1})
	}
	native := load(t, f, v)
	if n := len(native.Code().Sites); n > 0 {
		t.Errorf("%v: %d instructions are left to Go, the first is %v\n%v", target, n, native.Code().Sites[0].Instr.Op, f)
	}
	if err := native.Run(run); err != nil {
		t.Fatalf("%v: %v\n%v", target, err, f)
	}
	for j, typ := range f.Results {
		for k := range rows {
			got := out[j].get(k)
			if ir.Canonical(typ, got) != ir.Canonical(typ, want[k][j]) {
				t.Errorf("%v, %s of %v (accesses %v): worker %d has %s (%#x), want %s (%#x); operands %#x", target, cases[j].name, cases[j].in, access, k,
					ir.FormatBits(typ, got), got, ir.FormatBits(typ, want[k][j]), want[k][j], rows[k])
				break
			}
		}
	}
}

func opOf(op ir.Op, in ...ir.Type) (opCase, bool) {
	out, err := op.ResultType(in)
	return opCase{name: op.String(), in: in, out: out, build: func(b *ir.Builder, x []ir.Value) ir.Value { return b.Op(op, x...) }}, err == nil
}

// TestOperations compares every operation on every type with the evaluator.
func TestOperations(t *testing.T) {
	for _, typ := range ir.Types {
		t.Run(typ.String(), func(t *testing.T) {
			for args := 1; args <= 2; args++ {
				var cases []opCase
				for op := range ir.NumOps {
					if op.Row().Eval == nil || op.Row().Args != args || op == ir.OpShl || op == ir.OpShr {
						continue
					}
					if c, ok := opOf(op, []ir.Type{typ, typ}[:args]...); ok {
						if op == ir.OpDiv && typ.IsInt() || op == ir.OpRem {
							c.build = func(b *ir.Builder, x []ir.Value) ir.Value {
								return b.Op(op, x[0], b.Op(ir.OpOr, x[1], b.Const(typ, 1)))
							}
						}
						cases = append(cases, c)
					}
				}
				if len(cases) > 0 {
					checkOps(t, cases)
				}
			}
			c, _ := opOf(ir.OpSelect, ir.Bool, typ, typ)
			checkOps(t, []opCase{c})
		})
	}
}

// TestDivisors divides by all kinds of constants, and by what is no constant but even.
func TestDivisors(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for _, typ := range ir.Types {
		if !typ.IsInt() {
			continue
		}
		divisors := []ir.Bits{1, 2, 3, 5, 6, 7, 10, 11, 25, 60, 64, 100, 125, 127, 128, 255, 641, 1000, 1 << 15, 1<<15 - 1, 1<<16 + 1, 1_000_000_007, 1 << 31, 1<<31 - 1, 1<<32 - 1, 1<<32 + 1, 1 << 62, 1<<63 - 1, 1 << 63, 1<<64 - 1, 1<<64 - 2, 1<<64 - 3, 1<<64 - 1000}
		for range 20 {
			divisors = append(divisors, r.Uint64()>>r.IntN(64))
		}
		var byConst []opCase
		for _, d := range divisors {
			if d = ir.Wrap(typ, d); d == 0 {
				continue
			}
			for _, op := range []ir.Op{ir.OpDiv, ir.OpRem} {
				byConst = append(byConst, opCase{name: fmt.Sprintf("%v by %s", op, ir.FormatBits(typ, d)), in: []ir.Type{typ}, out: typ,
					build: func(b *ir.Builder, x []ir.Value) ir.Value { return b.Op(op, x[0], b.Const(typ, d)) }})
			}
		}
		for chunk := range slices.Chunk(byConst, 12) {
			checkOps(t, chunk)
		}
		var cases []opCase
		for _, op := range []ir.Op{ir.OpDiv, ir.OpRem} {
			cases = append(cases, opCase{name: op.String(), in: []ir.Type{typ, typ}, out: typ, build: func(b *ir.Builder, x []ir.Value) ir.Value {
				return b.Op(op, x[0], b.Op(ir.OpSelect, b.Op(ir.OpEq, x[1], b.Const(typ, 0)), b.Const(typ, 6), x[1]))
			}})
		}
		checkOps(t, cases)
	}
}

// TestFaults divides by zero and shifts by negative counts, for some workers, in an arm that
// others do not take.
func TestFaults(t *testing.T) {
	for _, typ := range ir.Types {
		if !typ.IsInt() {
			continue
		}
		for _, op := range []ir.Op{ir.OpDiv, ir.OpRem, ir.OpShl, ir.OpShr} {
			by := typ
			if op == ir.OpShl || op == ir.OpShr {
				by = []ir.Type{ir.I8, ir.I16, ir.I32, ir.I64}[int(typ)%4]
			}
			for _, constant := range []bool{false, true} {
				f := ir.NewFunc("fault", typ)
				x, y, p := f.AddParam("x", typ), f.AddParam("y", by), f.AddParam("p", ir.Bool)
				b := ir.NewBuilder(f)
				if constant {
					y = b.Const(by, 0)
					if by != typ || op == ir.OpShl || op == ir.OpShr {
						y = b.Const(by, ^ir.Bits(0))
					}
				}
				r := b.If(p, []ir.Type{typ}, func() { b.Yield(b.Op(op, x, y)) }, func() { b.Yield(x) })
				b.Yield(r...)
				check(t, f, func(r *rand.Rand, t ir.Type) ir.Bits {
					if t == ir.Bool {
						return ir.FromBool(r.IntN(5) == 0)
					}
					if r.IntN(30) == 0 {
						return ir.Wrap(t, -ir.Bits(r.IntN(2)))
					}
					return ir.Bits(1 + r.IntN(20))
				})
			}
		}
	}
}

// TestShortNumbers computes with 64-bit integers that are known to be short.
func TestShortNumbers(t *testing.T) {
	for _, typ := range []ir.Type{ir.I64, ir.U64} {
		var cases []opCase
		for _, bits := range []ir.Bits{14, 31, 33, 52} {
			for name, shorten := range map[string]func(b *ir.Builder, x ir.Value) ir.Value{
				"shifted": func(b *ir.Builder, x ir.Value) ir.Value { return b.Op(ir.OpShr, x, b.Const(ir.U64, bits)) },
				"masked":  func(b *ir.Builder, x ir.Value) ir.Value { return b.Op(ir.OpAnd, x, b.Const(typ, 1<<bits-1)) },
				"rest": func(b *ir.Builder, x ir.Value) ir.Value {
					return b.Op(ir.OpRem, x, b.Const(typ, 1<<bits))
				},
				"converted": func(b *ir.Builder, x ir.Value) ir.Value { return b.Convert(typ, b.Convert(ir.I32, x)) },
			} {
				add := func(what string, out ir.Type, f func(b *ir.Builder, x, y ir.Value) ir.Value) {
					cases = append(cases, opCase{name: fmt.Sprintf("%s of %s by %d", what, name, bits), in: []ir.Type{typ, typ}, out: out,
						build: func(b *ir.Builder, x []ir.Value) ir.Value { return f(b, shorten(b, x[0]), shorten(b, x[1])) }})
				}
				add("product", typ, func(b *ir.Builder, x, y ir.Value) ir.Value { return b.Op(ir.OpMul, x, y) })
				add("sum's product", typ, func(b *ir.Builder, x, y ir.Value) ir.Value { return b.Op(ir.OpMul, b.Op(ir.OpAdd, x, y), y) })
				add("float", ir.F64, func(b *ir.Builder, x, _ ir.Value) ir.Value { return b.Convert(ir.F64, x) })
				add("quotient", typ, func(b *ir.Builder, x, y ir.Value) ir.Value {
					return b.Op(ir.OpDiv, x, b.Op(ir.OpSelect, b.Op(ir.OpEq, y, b.Const(typ, 0)), b.Const(typ, 7), y))
				})
				add("remainder", typ, func(b *ir.Builder, x, y ir.Value) ir.Value {
					return b.Op(ir.OpRem, x, b.Op(ir.OpSelect, b.Op(ir.OpEq, y, b.Const(typ, 0)), b.Const(typ, 7), y))
				})
			}
		}
		for chunk := range slices.Chunk(cases, 40) {
			checkOps(t, chunk)
		}
	}
}

// TestShifts shifts every type by counts of every type.
func TestShifts(t *testing.T) {
	for _, typ := range ir.Types {
		for _, by := range ir.Types {
			if !typ.IsInt() || !by.IsInt() {
				continue
			}
			var cases []opCase
			for _, op := range []ir.Op{ir.OpShl, ir.OpShr} {
				for _, most := range []ir.Bits{63, 127, 1<<63 - 1} {
					mask := most
					if by != ir.U64 {
						mask = ir.Wrap(by, most) & (1<<(by.Bits()-1) - 1)
					}
					cases = append(cases, opCase{name: op.String(), in: []ir.Type{typ, by}, out: typ, build: func(b *ir.Builder, x []ir.Value) ir.Value {
						return b.Op(op, x[0], b.Op(ir.OpAnd, x[1], b.Const(by, mask)))
					}})
				}
				if by.IsUnsigned() {
					c, _ := opOf(op, typ, by)
					cases = append(cases, c)
				}
			}
			checkOps(t, cases)
		}
	}
}

// TestConversions converts between every pair of types.
func TestConversions(t *testing.T) {
	for _, from := range ir.Types {
		var cases []opCase
		for _, to := range ir.Types {
			if from == ir.Bool || to == ir.Bool {
				continue
			}
			cases = append(cases, opCase{name: "convert to " + to.String(), in: []ir.Type{from}, out: to,
				build: func(b *ir.Builder, x []ir.Value) ir.Value { return b.Convert(to, x[0]) }})
		}
		for range 4 {
			if len(cases) > 0 {
				checkOps(t, cases)
			}
		}
	}
}

func mustMath(name string) ir.MathFn {
	fn, ok := ir.LookupMath(name)
	if !ok {
		panic("no function " + name)
	}
	return fn
}

// TestLibrary compares the library functions that there is code for.
func TestLibrary(t *testing.T) {
	groups := map[string][]opCase{}
	for i := range ir.NumMath() {
		fn := ir.MathFn(i)
		row := fn.Row()
		if !amd64.Native(fn) {
			if row.Libm == "" {
				t.Errorf("nobody has code for %v", fn)
			}
			continue
		}
		c := opCase{name: row.Name, in: row.In, out: row.Out, build: func(b *ir.Builder, x []ir.Value) ir.Value { return b.Math(fn, x...) }}
		if strings.HasPrefix(row.Name, "bits.Add") || strings.HasPrefix(row.Name, "bits.Sub") { // carries of 0 and 1
			c.build = func(b *ir.Builder, x []ir.Value) ir.Value {
				return b.Math(fn, x[0], x[1], b.Op(ir.OpAnd, x[2], b.Const(row.In[2], 1)))
			}
		}
		if len(row.In) == 0 {
			c.in = []ir.Type{ir.F64}
			c.build = func(b *ir.Builder, x []ir.Value) ir.Value { return b.Math(fn) }
		}
		if strings.HasSuffix(row.Name, ".loose") { // of numbers alone
			build := c.build
			c.build = func(b *ir.Builder, x []ir.Value) ir.Value {
				var y []ir.Value
				for _, v := range x {
					y = append(y, b.Op(ir.OpSelect, b.Math(mustMath("math.IsNaN"), v), b.Const(ir.F64, f64(-2)), v))
				}
				return build(b, y)
			}
		}
		key := fmt.Sprint(c.in)
		groups[key] = append(groups[key], c)
	}
	for key, cases := range groups {
		t.Run(key, func(t *testing.T) { checkOps(t, cases) })
	}
}
