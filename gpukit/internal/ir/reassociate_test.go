package ir

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// summer makes a random function with a loop that accumulates.
type summer struct {
	r    *rand.Rand
	f    *Func
	b    *Builder
	x, y ArrayParam
	n    Value
	keys []string // by result: how it is accumulated
}

func (s *summer) pick(of ...string) string { return of[s.r.IntN(len(of))] }

func (s *summer) number(t Type, k int) Value { return s.b.Const(t, Wrap(t, Bits(k))) }

// element loads an element at an index that is checked or surely in range.
func (s *summer) element(a ArrayParam, i Value) Value {
	b := s.b
	b.Pos.Line++
	i = b.Convert(I64, i)
	if s.r.IntN(3) == 0 {
		i = b.Op(OpRem, i, b.Const(I64, 37))
		i = b.Op(OpMax, i, b.Op(OpNeg, i))
	} else {
		b.Bounds(i, a.Shape[0])
	}
	return b.Load(a.Mem, b.Op(OpAdd, a.Offset, b.Op(OpMul, i, a.Stride[0])))
}

func newSummer(r *rand.Rand) *summer {
	s := &summer{r: r, f: NewFunc("f")}
	f := s.f
	s.x, s.y = f.AddArray("x", F64, 1), f.AddArray("y", F64, 1)
	s.n = f.AddParam("n", I64)
	begin := f.AddParam("begin", F64)
	s.b = NewBuilder(f)
	b := s.b

	ct := []Type{I64, I64, I64, I32, I16, U8}[r.IntN(6)]
	step := []int{1, 1, 1, 2, 3, -1, -2}[r.IntN(7)]
	if ct == U8 {
		step = max(step, -step)
	}
	first := s.number(ct, r.IntN(4))
	var bound Value
	switch r.IntN(4) {
	case 0:
		bound = s.number(ct, 17+r.IntN(30))
	case 1:
		bound = b.Convert(ct, s.x.Shape[0])
	default:
		bound = b.Convert(ct, s.n)
	}
	if step < 0 {
		first, bound = bound, s.number(ct, r.IntN(3))
	}
	ops := []Op{OpLt, OpLt, OpLe}
	if step == 1 || step == -1 {
		ops = append(ops, OpNe)
	}
	op := ops[r.IntN(len(ops))]
	if step < 0 && op != OpNe {
		op = mirrored[op]
	}

	init := []Value{first}
	if r.IntN(2) == 0 { // something else that goes on
		init = append(init, s.number(I64, 5))
	}
	sums := len(init)
	for range 1 + r.IntN(3) {
		key := s.pick("add", "add", "sub", "mul", "min", "max", "if max", "if min", "load max", "some", "fma", "twice", "single")
		s.keys = append(s.keys, key)
		x := begin
		switch key {
		case "single":
			x = b.Convert(F32, x)
		case "if max", "load max":
			x = b.Const(F64, FromF64(math.Inf(-1)))
		}
		init = append(init, x)
	}
	types := f.types(nil, init)
	out := b.Loop(init, types, func(c []Value) {
		i := c[0]
		next := append([]Value(nil), c...)
		cond := b.Op(op, i, bound)
		if r.IntN(4) == 0 {
			cond = b.Op(mirrored[op], bound, i)
		}
		leave := func() { b.Break(1, c...) }
		var more []Value
		stay := func() { b.Yield() }
		var handed []Type
		inArm := r.IntN(4) == 0       // all of it
		if !inArm && r.IntN(3) == 0 { // some of it
			handed = []Type{F64}
			stay = func() { b.Yield(b.Op(OpMul, s.element(s.x, i), b.Const(F64, FromF64(2)))) }
		}
		work := func() {}
		if inArm {
			handed, stay = types[1:], func() { work(); b.Yield(slices.Clone(next[1:])...) }
		}
		test := func() {
			if r.IntN(3) == 0 {
				more = b.If(b.Op(OpNot, cond), handed, leave, stay)
			} else {
				more = b.If(cond, handed, stay, leave)
			}
		}
		work = func() {
			if sums == 2 {
				next[1] = b.Op(OpAdd, b.Op(OpMul, c[1], s.number(I64, 3)), b.Convert(I64, i))
			}
			for k, key := range s.keys {
				v := c[sums+k]
				element := func() Value {
					if !inArm && len(more) > 0 && r.IntN(2) == 0 {
						return more[0]
					}
					if sums == 2 && r.IntN(4) == 0 {
						return b.Convert(F64, b.Op(OpRem, c[1], s.number(I64, 5)))
					}
					return s.element(s.x, i)
				}
				if key == "mul" {
					element = func() Value { return s.element(s.y, i) }
				}
				x := element()
				extreme := func(op Op) Value {
					if r.IntN(2) == 0 {
						return b.Op(OpSelect, b.Op(op, x, v), x, v)
					}
					return b.If(b.Op(mirrored[op], v, x), []Type{F64}, func() { b.Yield(x) }, func() { b.Yield(v) })[0]
				}
				switch key {
				case "add":
					v = b.Op(OpAdd, v, x)
					if r.IntN(2) == 0 {
						v = b.Op(OpAdd, x, c[sums+k])
					}
				case "sub":
					v = b.Op(OpSub, v, x)
				case "mul":
					v = b.Op(OpMul, v, x)
				case "min":
					v = b.Op(OpMin, v, x)
				case "max":
					v = b.Op(OpMax, x, v)
				case "if max":
					v = extreme(OpGt)
				case "if min":
					v = extreme(OpLe)
				case "load max":
					at := b.Convert(I64, i)
					b.Bounds(at, s.x.Shape[0])
					load := func() Value {
						return b.Load(s.x.Mem, b.Op(OpAdd, s.x.Offset, b.Op(OpMul, at, s.x.Stride[0])))
					}
					x := load()
					v = b.If(b.Op(OpGt, x, v), []Type{F64}, func() { b.Bounds(at, s.x.Shape[0]); b.Yield(load()) }, func() { b.Yield(v) })[0]
				case "some":
					was := v
					v = b.If(b.Op(OpGt, x, b.Const(F64, 0)), []Type{F64}, func() {
						b.Yield(b.Op(OpAdd, was, element()))
					}, func() {
						if r.IntN(2) == 0 {
							b.Yield(was)
						} else {
							b.If(b.Op(OpLt, x, b.Const(F64, FromF64(-3))), nil, func() { b.Break(1, was) }, func() { b.Yield() })
							b.Yield(b.Op(OpSub, was, x))
						}
					})[0]
				case "fma":
					fn, _ := LookupMath("math.FMA")
					v = b.Math(fn, x, b.Const(F64, FromF64(3)), v)
				case "twice":
					v = b.Op(OpAdd, b.Op(OpAdd, v, x), element())
				case "single":
					v = b.Op(OpAdd, v, b.Convert(F32, x))
				}
				next[sums+k] = v
			}
		}
		test()
		if inArm {
			copy(next[1:], more)
		} else {
			work()
		}
		next[0] = b.Op(OpAdd, i, s.number(ct, step))
		b.Yield(next...)
	})
	f.Results = types
	b.Yield(out...)
	return s
}

// TestReassociate compares random reductions, of values of which every order gives
// the same, with what becomes of them.
func TestReassociate(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 19))
	minusZero := math.Copysign(0, -1)
	done, failed, of := 0, 0, map[string]int{}
	for seed := range 1500 {
		s := newSummer(r)
		f := Optimize(s.f)
		before := f.String()
		g, at := Reassociate(f)
		if err := Verify(g); err != nil || f.String() != before {
			t.Fatalf("%d: %v\n%v\n%v", seed, err, f, g)
		}
		if len(at) > 0 {
			done++
			for _, k := range s.keys {
				of[k]++
			}
		} else if g != f {
			t.Fatalf("%d: changed, and nothing done", seed)
		}
		for round := range 4 {
			size := r.IntN(60)
			n := size
			switch r.IntN(6) {
			case 0:
				n = r.IntN(12)
			case 1:
				n = size + r.IntN(3)
			case 2:
				n = -r.IntN(5)
			case 3:
				n = min(r.IntN(10), size)
			}
			x, y := make(liftMemory, 200), make(liftMemory, 200)
			zeros := r.IntN(4) == 0
			for i := range x {
				v := float64(r.IntN(17) - 8)
				switch {
				case zeros:
					v = minusZero
				case v == 0 && r.IntN(2) == 0:
					v = minusZero
				case round == 3 && r.IntN(30) == 0:
					v = []float64{math.Inf(1), math.Inf(-1), math.NaN()}[r.IntN(3)]
				}
				x[i] = FromF64(v)
				y[i] = FromF64([]float64{1, -1, 2, -2, 0.5, -0.5}[r.IntN(6)])
				if round == 3 && r.IntN(60) == 0 {
					y[i] = FromF64([]float64{0, minusZero, math.Inf(1), math.NaN()}[r.IntN(4)])
				}
			}
			begin := []float64{0, minusZero, 3, 1, -2, math.Inf(-1), math.Inf(1), math.NaN()}[r.IntN(8)]
			args := []Bits{50, Bits(size), 1, 50, Bits(size), 1, Bits(n), FromF64(begin)}
			run := func(f *Func) ([]Bits, *FaultError) {
				e := Evaluator{Steps: 1 << 14}
				out, err := e.RunBlock(f, []Storage{x, y}, [][]Bits{args})
				var fault *FaultError
				if err != nil {
					if !errors.As(err, &fault) {
						t.Fatal(err)
					}
					return nil, fault
				}
				return out[0], nil
			}
			want, wrong := run(f)
			got, fault := run(g)
			if wrong != nil {
				if wrong.Fault == StepBudget { // n is on the wrong side
					continue
				}
				failed++
				if fault == nil || *fault != *wrong {
					t.Fatalf("%d: %v, not %v\n%v\n%v", seed, fault, wrong, f, g)
				}
				continue
			}
			if fault != nil {
				t.Fatalf("%d: %v\n%v\n%v", seed, fault, f, g)
			}
			for k, v := range want {
				a, b := Canonical(f.Results[k], v), Canonical(f.Results[k], got[k])
				if f.Results[k] == F64 && strings.Contains(s.keys[k-len(want)+len(s.keys)], " m") && ToF64(a) == 0 {
					b &^= 1 << 63
					a &^= 1 << 63
				}
				if a != b {
					t.Fatalf("%d: result %d is %s, not %s (size %d, n %d, begin %v)\n%v\n%v", seed, k, FormatBits(f.Results[k], got[k]), FormatBits(f.Results[k], v), size, n, begin, f, g)
				}
			}
		}
	}
	if done < 700 || failed < 500 {
		t.Errorf("%d of 1500 were computed in parts, %d failed", done, failed)
	}
	for _, k := range []string{"add", "sub", "mul", "min", "max", "if max", "if min", "load max", "some", "fma", "twice", "single"} {
		if of[k] < 30 {
			t.Errorf("%q: %d times", k, of[k])
		}
	}
}

// TestReassociateLeavesAlone: what is no reduction, what others see, and what is not
// worth it.
func TestReassociateLeavesAlone(t *testing.T) {
	type parts struct {
		b    *Builder
		x    ArrayParam
		i, s Value
	}
	load := func(p parts) Value { return p.b.Load(p.x.Mem, p.b.Op(OpAdd, p.x.Offset, p.i)) }
	sum := func(p parts) Value { return p.b.Op(OpAdd, p.s, load(p)) }
	for _, c := range []struct {
		name  string
		bound int // or the length
		next  func(p parts) Value
		want  bool
	}{
		{"a sum", -1, sum, true},
		{"17 iterations", 17, sum, true},
		{"16 iterations", 16, sum, false},
		{"no iterations", 0, sum, false},
		{"a store", -1, func(p parts) Value {
			p.b.Store(p.x.Mem, p.x.Offset, p.b.Const(F64, 0))
			return sum(p)
		}, false},
		{"an atomic", -1, func(p parts) Value {
			return p.b.Op(OpAdd, p.s, p.b.Atomic(AtomicAdd, p.x.Mem, p.x.Offset, p.b.Const(F64, 0)))
		}, false},
		{"a print", -1, func(p parts) Value { p.b.Print([]string{"", ""}, p.i); return sum(p) }, false},
		{"a barrier", -1, func(p parts) Value { p.b.Barrier(); return sum(p) }, false},
		{"a shuffle", -1, func(p parts) Value {
			return p.b.Op(OpAdd, p.s, p.b.Shuffle(ShuffleXor, load(p), p.b.Const(I64, 1)))
		}, false},
		{"an early end", -1, func(p parts) Value {
			x := load(p)
			p.b.If(p.b.Op(OpGt, x, p.b.Const(F64, FromF64(9))), nil, func() { p.b.Break(1, p.i, p.s) }, func() { p.b.Yield() })
			return p.b.Op(OpAdd, p.s, x)
		}, false},
		{"looked at", -1, func(p parts) Value {
			at := p.b.Op(OpAnd, p.b.Convert(I64, p.s), p.b.Const(I64, 1))
			return p.b.Op(OpAdd, p.s, p.b.Load(p.x.Mem, at))
		}, false},
		{"tested", -1, func(p parts) Value {
			return p.b.Op(OpSelect, p.b.Op(OpGt, p.s, p.b.Const(F64, FromF64(9))), p.b.Const(F64, 0), sum(p))
		}, false},
		{"a recurrence", -1, func(p parts) Value { return p.b.Op(OpAdd, p.b.Op(OpMul, p.s, p.b.Const(F64, FromF64(0.5))), load(p)) }, false},
		{"taken from", -1, func(p parts) Value { return p.b.Op(OpSub, load(p), p.s) }, false},
		{"doubled", -1, func(p parts) Value { return p.b.Op(OpAdd, p.s, p.s) }, false},
		{"begun anew", -1, func(p parts) Value {
			return p.b.Op(OpSelect, p.b.Op(OpLt, load(p), p.b.Const(F64, 0)), load(p), sum(p))
		}, false},
		{"begun anew on a way", -1, func(p parts) Value {
			x := load(p)
			return p.b.If(p.b.Op(OpLt, x, p.b.Const(F64, 0)), []Type{F64}, func() { p.b.Yield(load(p)) }, func() { p.b.Yield(p.b.Op(OpAdd, p.s, x)) })[0]
		}, false},
		{"the last", -1, load, false},
		{"NaN sticks", -1, func(p parts) Value { x := load(p); return p.b.Op(OpSelect, p.b.Op(OpGt, p.s, x), p.s, x) }, false},
		{"another one kept", -1, func(p parts) Value {
			x := load(p)
			return p.b.Op(OpSelect, p.b.Op(OpGt, x, p.s), p.b.Op(OpNeg, x), p.s)
		}, false},
		{"kept", -1, func(p parts) Value {
			x := load(p)
			return p.b.If(p.b.Op(OpGt, x, p.s), []Type{F64}, func() { p.b.Yield(load(p)) }, func() { p.b.Yield(p.s) })[0]
		}, true},
		{"a check where it is kept", -1, func(p parts) Value {
			x := load(p)
			return p.b.If(p.b.Op(OpGt, x, p.s), []Type{F64}, func() { p.b.Bounds(p.i, p.x.Stride[0]); p.b.Yield(load(p)) }, func() { p.b.Yield(p.s) })[0]
		}, false},
		{"another element kept", -1, func(p parts) Value {
			x := load(p)
			return p.b.If(p.b.Op(OpGt, x, p.s), []Type{F64}, func() { p.b.Yield(p.b.Load(p.x.Mem, p.x.Offset)) }, func() { p.b.Yield(p.s) })[0]
		}, false},
		{"a large body", -1, func(p parts) Value {
			x := load(p)
			for range largestBody {
				x = p.b.Op(OpMul, x, x)
			}
			return p.b.Op(OpAdd, p.s, x)
		}, false},
		{"a loop", -1, func(p parts) Value {
			k := p.b.Loop([]Value{p.b.Const(I64, 0)}, []Type{I64}, func(c []Value) {
				p.b.If(p.b.Op(OpLt, c[0], p.b.Const(I64, 2)), nil, func() { p.b.Yield() }, func() { p.b.Break(1, c[0]) })
				p.b.Yield(p.b.Op(OpAdd, c[0], p.b.Const(I64, 1)))
			})
			return p.b.Op(OpAdd, p.s, p.b.Convert(F64, k[0]))
		}, false},
	} {
		f := NewFunc("f", F64)
		x := f.AddArray("x", F64, 1)
		b := NewBuilder(f)
		bound := x.Shape[0]
		if c.bound >= 0 {
			bound = b.Const(I64, Bits(c.bound))
		}
		out := b.Loop([]Value{b.Const(I64, 0), b.Const(F64, 0)}, []Type{I64, F64}, func(v []Value) {
			b.If(b.Op(OpLt, v[0], bound), nil, func() { b.Yield() }, func() { b.Break(1, v...) })
			s := c.next(parts{b, x, v[0], v[1]})
			b.Yield(b.Op(OpAdd, v[0], b.Const(I64, 1)), s)
		})
		b.Yield(out[1])
		if err := Verify(f); err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		if _, at := Reassociate(Optimize(f)); (len(at) > 0) != c.want {
			t.Errorf("%s: in parts: %v", c.name, !c.want)
		}
	}
}

// TestReassociateEnds: bounds at the ends of the counter's type, where a bound less
// a group would wrap around.
func TestReassociateEnds(t *testing.T) {
	for _, typ := range []Type{I8, U8, I16, I32, I64} {
		for _, up := range []bool{true, false} {
			for _, equal := range []bool{false, true} {
				f := NewFunc("f", F64)
				first, bound := f.AddParam("first", typ), f.AddParam("bound", typ)
				b := NewBuilder(f)
				op, step := OpLt, 1
				if !up {
					op, step = OpGt, -1
				}
				if equal {
					op = OpNe
				}
				out := b.Loop([]Value{first, b.Const(F64, 0)}, []Type{typ, F64}, func(v []Value) {
					b.If(b.Op(op, v[0], bound), nil, func() { b.Yield() }, func() { b.Break(1, v...) })
					b.Yield(b.Op(OpAdd, v[0], b.Const(typ, Wrap(typ, Bits(step)))), b.Op(OpAdd, v[1], b.Convert(F64, v[0])))
				})
				b.Yield(out[1])
				name := fmt.Sprint(typ, up, equal)
				g, at := Reassociate(Optimize(f))
				if len(at) == 0 && !equal && (up || typ != U8) { // -1 is 255 of it
					t.Errorf("%s: left alone", name)
				}
				lo, hi := rangeOf(typ).lo, rangeOf(typ).hi
				for _, c := range [][2]int64{{lo, lo}, {lo, lo + 1}, {lo, lo + 2}, {lo, lo + 9}, {hi - 9, hi}, {hi - 1, hi}, {hi, hi}, {hi, lo}, {lo, hi}, {5, 3}, {3, 5}, {lo + 9, lo}, {hi, hi - 2}} {
					if c[0] < lo || uint64(c[1]-c[0]) > 300 && uint64(c[0]-c[1]) > 300 && (c[0] < c[1]) == up {
						continue
					}
					args := []Bits{Wrap(typ, Bits(c[0])), Wrap(typ, Bits(c[1]))}
					e := Evaluator{Steps: 1 << 14}
					want, err := e.Run(f, args...)
					got, wrong := e.Run(g, args...)
					if err != nil {
						continue
					}
					if wrong != nil || got[0] != want[0] {
						t.Errorf("%s %v: %v (%v), not %v", name, c, got, wrong, want)
					}
				}
			}
		}
	}
}
