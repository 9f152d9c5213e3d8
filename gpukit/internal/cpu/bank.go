package cpu

import (
	"math"
	"reflect"

	"gpunotes/gpukit/internal/ir"
)

// bank holds all slots of one Go type. A slot is where a block keeps a value:
// a view of its lanes (or of its only element, if it is one for all lanes), and
// the buffer that whoever defines the value writes to. The view may show
// another slot's buffer, or an operand itself.
type bank[T element] struct {
	view [][]T
	own  [][]T     // the buffer
	home [][]T     // own as the plan has it; results are bound over it for a while
	in   [][]T     // data, by parameter
	out  [][]T     // data, by result
	mem  [][]T     // by memory of the function
	base []uintptr // of mem, in elements
	from func(ir.Bits) T
	to   func(T) ir.Bits
}

// slots is a bank of any type: what moves values and does not compute.
type slots interface {
	allot(buffer []int32, buffers, n int)
	set(slot int32, b ir.Bits)
	bind(data any, param, result int) (length int, ok bool)
	release()

	get(slot int32, i int) ir.Bits
	put(slot int32, i int, b ir.Bits)
	alias(dst, src int32)
	copy(dst, src int32, n int)
	swap(dst, src int32, n int)
	spread(dst, src int32, n int)
	gather(dst, src int32, idx []int32)
	scatter(dst, src int32, idx []int32)
	scatterOne(dst, src int32, idx []int32)
	begin(slot int32, n int)
	compact(slot int32, n int, moves []move)

	room(slot int32, n int)
	load(slot int32, param, off, stride, at, n int)
	show(slot int32, param, off, n int)
	direct(slot int32, result, off, n int)
	restore(slot int32)
	share(dst, src int32)
	store(slot int32, result, off, stride, at, n int)
	at(param, off int) ir.Bits
	same(param, off, result, outOff int) bool

	bindMem(mem int, data any) (ok bool)
	makeMem(mem, n int)
	fillMem(mem int, data []ir.Bits)
	clearMem(mem int)
}

// move fills the place of a lane that left.
type move struct{ to, from int32 }

func newSlots(t ir.Type, slots, params, results, mems int) slots {
	switch t {
	case ir.Bool:
		return newBank(slots, params, results, mems, func(b ir.Bits) bool { return b != 0 }, ir.FromBool)
	case ir.I8:
		return newBank(slots, params, results, mems, fromInt[int8], toInt[int8])
	case ir.I16:
		return newBank(slots, params, results, mems, fromInt[int16], toInt[int16])
	case ir.I32:
		return newBank(slots, params, results, mems, fromInt[int32], toInt[int32])
	case ir.I64:
		return newBank(slots, params, results, mems, fromInt[int64], toInt[int64])
	case ir.U8:
		return newBank(slots, params, results, mems, fromInt[uint8], toInt[uint8])
	case ir.U16:
		return newBank(slots, params, results, mems, fromInt[uint16], toInt[uint16])
	case ir.U32:
		return newBank(slots, params, results, mems, fromInt[uint32], toInt[uint32])
	case ir.U64:
		return newBank(slots, params, results, mems, fromInt[uint64], toInt[uint64])
	case ir.F32:
		return newBank(slots, params, results, mems, ir.ToF32, ir.FromF32)
	}
	return newBank(slots, params, results, mems, ir.ToF64, ir.FromF64)
}

func fromInt[T integer](b ir.Bits) T { return T(b) }

func toInt[T integer](x T) ir.Bits {
	if T(0)-1 < 0 {
		return ir.Bits(int64(x))
	}
	return ir.Bits(x)
}

func newBank[T element](n, params, results, mems int, from func(ir.Bits) T, to func(T) ir.Bits) *bank[T] {
	all := make([][]T, 3*n+params+results+mems)
	b := &bank[T]{from: from, to: to, base: make([]uintptr, mems)}
	for _, part := range []struct {
		s *[][]T
		n int
	}{{&b.view, n}, {&b.own, n}, {&b.home, n}, {&b.in, params}, {&b.out, results}, {&b.mem, mems}} {
		*part.s, all = all[:part.n:part.n], all[part.n:]
	}
	return b
}

// allot gives every slot its buffer of n elements by number; -1 is none, and -2
// a buffer of one element.
func (b *bank[T]) allot(buffer []int32, buffers, n int) {
	ones := 0
	for _, k := range buffer {
		if k == -2 {
			ones++
		}
	}
	mem := make([]T, buffers*n+ones)
	one := mem[buffers*n:]
	for slot, k := range buffer {
		switch {
		case k >= 0:
			b.home[slot] = mem[int(k)*n : int(k+1)*n : int(k+1)*n]
		case k == -2:
			b.home[slot], one = one[:1:1], one[1:]
		}
		b.own[slot] = b.home[slot]
	}
}

func (b *bank[T]) set(slot int32, x ir.Bits) {
	b.own[slot][0] = b.from(x)
	b.view[slot] = b.own[slot][:1]
}

// bind takes the data of an operand: of a parameter, or of a result.
func (b *bank[T]) bind(data any, param, result int) (int, bool) {
	d, ok := data.([]T)
	if param >= 0 {
		b.in[param] = d
	} else {
		b.out[result] = d
	}
	return len(d), ok
}

// release forgets everything that belongs to the caller of a run. Views of one
// element stay: constants are among them.
func (b *bank[T]) release() {
	clear(b.in)
	clear(b.out)
	for i := range b.view {
		b.own[i] = b.home[i]
		if len(b.home[i]) != 1 {
			b.view[i] = nil
		}
	}
}

func (b *bank[T]) get(slot int32, i int) ir.Bits { return b.to(b.view[slot][i]) }

func (b *bank[T]) put(slot int32, i int, x ir.Bits) { b.own[slot][i] = b.from(x) }

func (b *bank[T]) alias(dst, src int32) { b.view[dst] = b.view[src] }

func (b *bank[T]) begin(slot int32, n int) { b.view[slot] = b.own[slot][:n] }

func (b *bank[T]) copy(dst, src int32, n int) {
	d, s := b.own[dst][:n], b.view[src][:n]
	if n > 0 && &d[0] != &s[0] {
		copy(d, s)
	}
	b.view[dst] = d
}

// swap moves what is in the buffer of src to dst by exchanging the buffers.
func (b *bank[T]) swap(dst, src int32, n int) {
	b.own[dst], b.own[src] = b.own[src], b.own[dst]
	b.view[dst] = b.own[dst][:n]
}

// spread writes the one element of src to n lanes of dst.
func (b *bank[T]) spread(dst, src int32, n int) {
	d, s := b.own[dst][:n], b.view[src][0]
	for i := range d {
		d[i] = s
	}
	b.view[dst] = d
}

func (b *bank[T]) gather(dst, src int32, idx []int32) {
	d, s := b.own[dst][:len(idx)], b.view[src]
	for i, j := range idx {
		d[i] = s[j]
	}
	b.view[dst] = d
}

func (b *bank[T]) scatter(dst, src int32, idx []int32) {
	d, s := b.own[dst], b.view[src][:len(idx)]
	for i, j := range idx {
		d[j] = s[i]
	}
}

func (b *bank[T]) scatterOne(dst, src int32, idx []int32) {
	d, s := b.own[dst], b.view[src][0]
	for _, j := range idx {
		d[j] = s
	}
}

// compact keeps n lanes of slot. The first time it copies them to the slot's
// own buffer, for the view may show what others still need.
func (b *bank[T]) compact(slot int32, n int, moves []move) {
	d, s := b.own[slot][:n], b.view[slot]
	if n > 0 && &d[0] != &s[0] {
		copy(d, s)
	}
	for _, m := range moves {
		d[m.to] = s[m.from]
	}
	b.view[slot] = d
}

// room makes the buffer of an operand's slot, which a contiguous one does not
// need.
func (b *bank[T]) room(slot int32, n int) {
	if len(b.own[slot]) < n {
		b.home[slot] = make([]T, n)
		b.own[slot] = b.home[slot]
	}
}

// load brings n elements of an operand to places at.. of slot.
func (b *bank[T]) load(slot int32, param, off, stride, at, n int) {
	d, s := b.own[slot][at:at+n], b.in[param]
	switch stride {
	case 0:
		x := s[off]
		for i := range d {
			d[i] = x
		}
	case 1:
		copy(d, s[off:off+n])
	default:
		for i := range d {
			d[i] = s[off]
			off += stride
		}
	}
	b.view[slot] = b.own[slot][:at+n]
}

// show lets the slot view the operand itself.
func (b *bank[T]) show(slot int32, param, off, n int) { b.view[slot] = b.in[param][off : off+n] }

// direct lets definitions of the slot write to the result itself.
func (b *bank[T]) direct(slot int32, result, off, n int) { b.own[slot] = b.out[result][off : off+n] }

func (b *bank[T]) restore(slot int32) { b.own[slot] = b.home[slot] }

// share lets definitions of dst write to the buffer of src.
func (b *bank[T]) share(dst, src int32) { b.own[dst] = b.own[src] }

// store brings n places at.. of slot to a result.
func (b *bank[T]) store(slot int32, result, off, stride, at, n int) {
	s, d := b.own[slot][at:at+n], b.out[result]
	if stride == 1 {
		copy(d[off:off+n], s)
		return
	}
	for _, x := range s {
		d[off] = x
		off += stride
	}
}

func (b *bank[T]) at(param, off int) ir.Bits { return b.to(b.in[param][off]) }

// same reports whether an element of a parameter and one of a result are one
// place in memory.
func (b *bank[T]) same(param, off, result, outOff int) bool {
	return &b.in[param][off] == &b.out[result][outOff]
}

// bindMem takes the data of a Global memory; nil is an empty one.
func (b *bank[T]) bindMem(mem int, data any) bool {
	d, ok := data.([]T)
	b.mem[mem] = d
	if len(d) > 0 {
		v := reflect.ValueOf(d)
		b.base[mem] = v.Pointer() / v.Type().Elem().Size()
	}
	return ok || data == nil
}

// makeMem gives a memory of our own n elements, whatever is in them.
func (b *bank[T]) makeMem(mem, n int) {
	if cap(b.mem[mem]) < n {
		b.mem[mem] = make([]T, n)
	}
	b.mem[mem] = b.mem[mem][:n]
}

func (b *bank[T]) fillMem(mem int, data []ir.Bits) {
	b.makeMem(mem, len(data))
	for i, x := range data {
		b.mem[mem][i] = b.from(x)
	}
}

func (b *bank[T]) clearMem(mem int) { clear(b.mem[mem]) }

// typeRange gives the bounds that truncate needs.
func typeRange[D integer]() (lo, hi float64, low, high D) {
	size := 0
	for x := D(1); x != 0; x <<= 1 {
		size++
	}
	if D(0)-1 < 0 {
		low = D(1) << (size - 1)
		return -math.Ldexp(1, size-1), math.Ldexp(1, size-1), low, low - 1
	}
	return 0, math.Ldexp(1, size), 0, D(0) - 1
}
