package ir

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// liftWorld makes a random function of two iterations and a few arrays: loads and
// stores in the body, in branches and in a loop, at sums of products, and arguments
// with which no index is out of range.
type liftWorld struct {
	r      *rand.Rand
	f      *Func
	b      *Builder
	arrays []ArrayParam
	it     [2]Value
	n      Value // a number that is the same for all workers
	odd    Value // one that is not
	floats []Value
}

func newLiftWorld(r *rand.Rand) *liftWorld {
	w := &liftWorld{r: r, f: NewFunc("f")}
	for i := range 3 {
		w.arrays = append(w.arrays, w.f.AddArray(fmt.Sprintf("a%d", i), F64, 2))
	}
	w.n, w.odd = w.f.AddParam("n", I64), w.f.AddParam("odd", I64)
	for i := range w.it {
		w.it[i] = w.f.AddParamOf(Param{Name: fmt.Sprintf("iteration%d", i), Kind: Iteration, Dim: i}, I64)
	}
	w.b = NewBuilder(w.f)
	w.floats = []Value{w.b.Const(F64, FromF64(1.5))}
	w.list(2, nil)
	w.b.Yield()
	return w
}

// index is the place of an element, as a front end writes it.
func (w *liftWorld) index(a ArrayParam, inner []Value) Value {
	b, v := w.b, a.Offset
	for _, st := range a.Stride {
		c := func(x int64) Value { return b.Const(I64, Bits(x)) }
		var sub Value
		switch w.r.IntN(8) {
		case 0:
			sub = c(int64(w.r.IntN(3)))
		case 1:
			sub = w.n
		case 2:
			sub = w.odd
		case 3:
			sub = b.Op(OpAdd, w.it[w.r.IntN(2)], c(int64(w.r.IntN(3))))
		case 4:
			sub = b.Op(OpMul, b.Op(OpSub, c(3), w.it[w.r.IntN(2)]), c(2))
		case 5:
			if sub = w.it[0]; len(inner) > 0 {
				sub = b.Op(OpAdd, sub, inner[w.r.IntN(len(inner))])
			}
		default:
			sub = w.it[w.r.IntN(2)]
		}
		v = b.Op(OpAdd, v, b.Op(OpMul, sub, st))
	}
	return v
}

func (w *liftWorld) list(depth int, inner []Value) {
	b, r := w.b, w.r
	seen := len(w.floats)
	for range 1 + r.IntN(4) {
		a := w.arrays[r.IntN(3)]
		switch k := r.IntN(8); {
		case k < 3:
			w.floats = append(w.floats, b.Load(a.Mem, w.index(a, inner)))
		case k < 6:
			x := b.Op(OpMul, w.floats[r.IntN(len(w.floats))], w.floats[r.IntN(len(w.floats))])
			b.Store(a.Mem, w.index(a, inner), x)
		case k == 6 && depth > 0:
			leave := r.IntN(4) == 0
			b.If(b.Op(OpLt, w.odd, w.it[r.IntN(2)]), nil, func() {
				w.list(depth-1, inner)
				if leave && len(inner) == 0 && depth == 2 {
					b.Break(1)
				} else {
					b.Yield()
				}
			}, func() { b.Yield() })
		case k == 7 && depth > 0:
			b.Loop([]Value{b.Const(I64, 0)}, nil, func(c []Value) {
				b.If(b.Op(OpLt, c[0], b.Const(I64, 2)), nil, func() { b.Yield() }, func() { b.Break(1) })
				w.list(depth-1, append(slices.Clone(inner), c[0]))
				b.Yield(b.Op(OpAdd, c[0], b.Const(I64, 1)))
			})
		}
	}
	w.floats = w.floats[:seen]
}

type liftMemory []Bits

func (m liftMemory) Load(i int) Bits     { return m[i] }
func (m liftMemory) Store(i int, b Bits) { m[i] = b }

// TestLiftAccesses runs random functions as they are, and with their accesses
// lifted: elements read and written where At says.
func TestLiftAccesses(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 8))
	elements, results, indices := 0, 0, 0
	for seed := range 2000 {
		w := newLiftWorld(r)
		f := Optimize(w.f)
		uniform := make([]bool, len(f.Params))
		for i, q := range f.Params {
			uniform[i] = q.Name == "n"
		}
		before := f.String()
		a := LiftAccesses(f, uniform)
		if err := Verify(a.Func); err != nil || f.String() != before {
			t.Fatalf("%d: %v\n%v\n%v", seed, err, f, a.Func)
		}
		args := make([]Bits, len(f.Params))
		for i, q := range f.Params {
			switch q.Kind {
			case Offset:
				args[i] = 1000
			case Shape:
				args[i] = 10
			case Stride:
				args[i] = Bits([]int64{1, 7, -3, 11, 2, 5}[2*int(q.Mem)+q.Dim])
			default:
				args[i] = Bits(r.IntN(4))
			}
		}
		var mems, lifted []Storage
		var copies []liftMemory
		for m := range f.Mems {
			x := make(liftMemory, 2000)
			for i := range x {
				x[i] = FromF64(float64(i%97) + float64(m))
			}
			y := slices.Clone(x)
			mems, copies = append(mems, x), append(copies, y)
		}
		for _, m := range a.Mems {
			lifted = append(lifted, copies[m])
		}
		at := func(x *Lifted) (k int64) {
			for _, p := range x.At {
				y := p.Times
				for _, i := range p.Params {
					y *= int64(args[i])
				}
				k += y
			}
			return k
		}
		var largs []Bits
		for i := range a.Params {
			switch x := &a.Params[i]; {
			case x.Param != None:
				largs = append(largs, args[x.Param])
			case x.Element:
				elements++
				largs = append(largs, copies[x.Mem][at(x)])
			default:
				indices++
				largs = append(largs, Bits(at(x)))
			}
		}
		if _, err := (&Evaluator{}).RunWorker(f, mems, args); err != nil {
			t.Fatal(err)
		}
		out, err := (&Evaluator{}).RunWorker(a.Func, lifted, largs)
		if err != nil {
			t.Fatalf("%d: %v\n%v\n%v", seed, err, f, a.Func)
		}
		for i := range a.Results {
			results++
			copies[a.Results[i].Mem][at(&a.Results[i])] = out[i]
		}
		for m := range mems {
			if !slices.Equal(mems[m].(liftMemory), copies[m]) {
				t.Fatalf("%d: memory %d differs\n%v\n%v\n%+v", seed, m, f, a.Func, a.Results)
			}
		}
	}
	t.Logf("%d elements, %d results, %d indices", elements, results, indices)
	if elements < 150 || results < 300 || indices < 1000 {
		t.Errorf("%d elements, %d results, %d indices: the functions are no test", elements, results, indices)
	}
}
