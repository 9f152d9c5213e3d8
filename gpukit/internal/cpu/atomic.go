package cpu

import (
	"math"
	"sync"
	"sync/atomic"

	"gpunotes/gpukit/internal/ir"
)

// Atomics on Global memory are processor atomics where Go has them, for 32 and
// 64 bit integers, and take one of a set of locks otherwise. The lock follows
// from the address, so it is the same one for memories that overlap and for
// other runs. Memory that other goroutines cannot see needs neither.

const stripes = 256

var locks [stripes]struct {
	sync.Mutex
	_ [56]byte // a cache line each
}

// words are the processor atomics of a type.
type words[T element] struct {
	load func(*T) T
	swap func(p *T, old, new T) bool
	add  func(*T, T) T
}

// elements give single elements of slices of a type as bits.
var elements [numTypes]struct {
	get func(mem any, i int64) ir.Bits
	set func(mem any, i int64, b ir.Bits)
	of  any // a formOf
	no  any // an empty slice
}

type formOf[T element] struct {
	from func(ir.Bits) T
	to   func(T) ir.Bits
}

func elementsOf[T element](t ir.Type, from func(ir.Bits) T, to func(T) ir.Bits) {
	e := &elements[t]
	e.get = func(mem any, i int64) ir.Bits { return to(mem.([]T)[i]) }
	e.set = func(mem any, i int64, b ir.Bits) { mem.([]T)[i] = from(b) }
	e.of, e.no = formOf[T]{from, to}, []T{}
}

var atomics [ir.CompareSwap + 1][numTypes]step

// atomicOne are those on one element of a memory, for code: base is the memory's
// address in elements, and y the second operand of CompareSwap.
var atomicOne [ir.CompareSwap + 1][numTypes]func(mem any, base uintptr, i int64, x, y ir.Bits) (old ir.Bits)

func atomicsOf[T number](t ir.Type, w *words[T], kinds map[ir.Kind]func(old, x, y T) T) {
	e := elements[t].of.(formOf[T])
	for k, f := range kinds {
		atomics[k][t] = atomicStep(k, w, f)
		atomicOne[k][t] = func(mem any, base uintptr, i int64, x, y ir.Bits) ir.Bits {
			return e.to(change(w, mem.([]T), base, i, e.from(x), e.from(y), f))
		}
	}
}

// change is an atomic operation on one element of a Global memory.
func change[T number](w *words[T], mem []T, base uintptr, i int64, x, y T, f func(old, x, y T) T) T {
	p := &mem[i]
	if w != nil {
		for {
			old := w.load(p)
			if w.swap(p, old, f(old, x, y)) {
				return old
			}
		}
	}
	lock := &locks[(base+uintptr(i))%stripes]
	lock.Lock()
	old := *p
	*p = f(old, x, y)
	lock.Unlock()
	return old
}

var atomicNames = [...]string{"add", "min", "max", "and", "or", "xor", "exchange", "compareswap"}

// combines reports whether the kind can be done on the operands of all lanes
// first and then on the memory: for integers alone.
func combines(k ir.Kind) bool { return k <= ir.AtomicXor }

func atomicStep[T number](k ir.Kind, w *words[T], f func(old, x, y T) T) step {
	half := 0.5
	whole := T(half) == 0 // an integer type
	return func(m *machine, x *inst) {
		b, n := m.banks[x.t].(*bank[T]), m.n[x.frame]
		space := m.plan.f.Mems[x.mem].Space
		mem := b.mem[x.mem]
		idx, vx, vy := m.banks[ir.I64].(*bank[int64]).view[x.a], b.view[x.b], b.view[x.b]
		if k == ir.CompareSwap {
			vy = b.view[x.c]
		}
		si, sx, sy := 1-int(x.ones&1), 1-int(x.ones>>1&1), 1-int(x.ones>>2&1)
		if k != ir.CompareSwap {
			sy = sx
		}
		var d []T
		if x.d != noSlot {
			d = b.own[x.d][:n]
		}
		if d == nil && si == 0 && space != ir.Local && whole && combines(k) && n > 1 {
			sum := vx[0]
			for i := 1; i < n; i++ {
				sum = f(sum, vx[i*sx], sum)
			}
			vx, vy, n = []T{sum}, []T{sum}, 1
		}
		put := func(i int, old T) {
			if d != nil {
				d[i] = old
			}
		}
		switch {
		case space == ir.Local:
			ids, all := m.identities(x.frame), m.n[frameBlock]
			for i := range n {
				id := i
				if ids != nil {
					id = int(ids[i])
				}
				p := &mem[int(idx[i*si])*all+id]
				old := *p
				*p = f(old, vx[i*sx], vy[i*sy])
				put(i, old)
			}
		case space == ir.Shared && k == ir.AtomicAdd && d == nil:
			for i := range n {
				mem[idx[i*si]] += vx[i*sx]
			}
		case space == ir.Shared:
			for i := range n {
				p := &mem[idx[i*si]]
				old := *p
				*p = f(old, vx[i*sx], vy[i*sy])
				put(i, old)
			}
		case w != nil && k == ir.AtomicAdd:
			for i := range n {
				v := vx[i*sx]
				old := w.add(&mem[idx[i*si]], v) - v
				put(i, old)
			}
		default:
			for i := range n {
				put(i, change(w, mem, b.base[x.mem], idx[i*si], vx[i*sx], vy[i*sy], f))
			}
		}
		if d != nil {
			b.view[x.d] = d
		}
	}
}

func numberAtomics[T number](t ir.Type, w *words[T], same func(x, y T) bool) {
	atomicsOf(t, w, map[ir.Kind]func(old, x, y T) T{
		ir.AtomicAdd: func(old, x, _ T) T { return old + x },
		ir.AtomicMin: func(old, x, _ T) T { return min(old, x) },
		ir.AtomicMax: func(old, x, _ T) T { return max(old, x) },
		ir.Exchange:  func(_, x, _ T) T { return x },
		ir.CompareSwap: func(old, x, y T) T {
			if same(old, x) {
				return y
			}
			return old
		},
	})
}

func integerAtomics[T integer](t ir.Type, w *words[T]) {
	numberAtomics(t, w, func(x, y T) bool { return x == y })
	atomicsOf(t, w, map[ir.Kind]func(old, x, y T) T{
		ir.AtomicAnd: func(old, x, _ T) T { return old & x },
		ir.AtomicOr:  func(old, x, _ T) T { return old | x },
		ir.AtomicXor: func(old, x, _ T) T { return old ^ x },
	})
}

func init() {
	elementsOf(ir.Bool, func(b ir.Bits) bool { return b != 0 }, ir.FromBool)
	elementsOf(ir.I8, fromInt[int8], toInt[int8])
	elementsOf(ir.I16, fromInt[int16], toInt[int16])
	elementsOf(ir.I32, fromInt[int32], toInt[int32])
	elementsOf(ir.I64, fromInt[int64], toInt[int64])
	elementsOf(ir.U8, fromInt[uint8], toInt[uint8])
	elementsOf(ir.U16, fromInt[uint16], toInt[uint16])
	elementsOf(ir.U32, fromInt[uint32], toInt[uint32])
	elementsOf(ir.U64, fromInt[uint64], toInt[uint64])
	elementsOf(ir.F32, ir.ToF32, ir.FromF32)
	elementsOf(ir.F64, ir.ToF64, ir.FromF64)
	integerAtomics[int8](ir.I8, nil)
	integerAtomics[int16](ir.I16, nil)
	integerAtomics(ir.I32, &words[int32]{atomic.LoadInt32, atomic.CompareAndSwapInt32, atomic.AddInt32})
	integerAtomics(ir.I64, &words[int64]{atomic.LoadInt64, atomic.CompareAndSwapInt64, atomic.AddInt64})
	integerAtomics[uint8](ir.U8, nil)
	integerAtomics[uint16](ir.U16, nil)
	integerAtomics(ir.U32, &words[uint32]{atomic.LoadUint32, atomic.CompareAndSwapUint32, atomic.AddUint32})
	integerAtomics(ir.U64, &words[uint64]{atomic.LoadUint64, atomic.CompareAndSwapUint64, atomic.AddUint64})
	numberAtomics(ir.F32, nil, func(x, y float32) bool { return math.Float32bits(x) == math.Float32bits(y) })
	numberAtomics(ir.F64, nil, func(x, y float64) bool { return math.Float64bits(x) == math.Float64bits(y) })
}

func (p *planner) atomic(in *ir.Instr) step { return atomics[in.Kind][p.f.Mems[in.Mem].Elem] }
