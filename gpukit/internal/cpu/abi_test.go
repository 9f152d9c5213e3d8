package cpu

import (
	"fmt"
	"sync"
	"testing"
	"unsafe"

	"gpunotes/gpukit/internal/codegen/amd64"
	"gpunotes/gpukit/internal/ir"
	"gpunotes/gpukit/internal/ir/irtest"
)

// interpret is machine code as abi.go describes it, but in Go: it walks rows and
// groups, and evaluates one worker after the other. So whatever finds, cuts and
// schedules workers is tested on every machine, and apart from the code generator.
// Nothing is a callout. If pauses, it stops after every group.
func interpret(k *amd64.Kernel, lanes int, pauses bool) *Native {
	it := &interpreter{k: k, lanes: lanes, pauses: pauses}
	code := &amd64.Code{Lanes: lanes, Instructions: 10}
	ir.Walk(k.Func.Body, func(in *ir.Instr) {
		if in.MayFault(k.Func) {
			code.Faults, code.FaultFuncs = append(code.Faults, in), append(code.FaultFuncs, k.Func)
		}
	})
	code.Fault = amd64.FaultPlace{Lanes: 8 * it.state, Sites: 8 * (it.state + 1), Values: 8 * (it.state + 1 + lanes)}
	it.state += 1 + lanes + amd64.MaxFaultValues*lanes
	it.code = code
	code.State = 8 * it.state
	n := newNative(k, code)
	n.enter = it.enter
	return n
}

type interpreter struct {
	k      *amd64.Kernel
	code   *amd64.Code
	lanes  int
	pauses bool
	state  int // words
	alone  sync.Mutex
}

func word(p uint64) *uint64 {
	return (*uint64)(*(*unsafe.Pointer)(unsafe.Pointer(&p)))
}

func readAt(t ir.Type, at uint64) ir.Bits {
	p := *(*unsafe.Pointer)(unsafe.Pointer(&at))
	switch t {
	case ir.Bool, ir.U8:
		return ir.Bits(*(*uint8)(p))
	case ir.I8:
		return ir.Bits(int64(*(*int8)(p)))
	case ir.U16:
		return ir.Bits(*(*uint16)(p))
	case ir.I16:
		return ir.Bits(int64(*(*int16)(p)))
	case ir.U32, ir.F32:
		return ir.Bits(*(*uint32)(p))
	case ir.I32:
		return ir.Bits(int64(*(*int32)(p)))
	}
	return *(*uint64)(p)
}

func writeAt(t ir.Type, at uint64, b ir.Bits) {
	p := *(*unsafe.Pointer)(unsafe.Pointer(&at))
	switch t.Size() {
	case 1:
		*(*uint8)(p) = uint8(b)
	case 2:
		*(*uint16)(p) = uint16(b)
	case 4:
		*(*uint32)(p) = uint32(b)
	default:
		*(*uint64)(p) = b
	}
}

// raw is a memory by its address.
type raw struct {
	t       ir.Type
	at, len uint64
}

func (r raw) place(i int) uint64 {
	if uint64(i) >= r.len {
		panic(fmt.Sprintf("element %d of %d", i, r.len))
	}
	return r.at + uint64(i*r.t.Size())
}
func (r raw) Load(i int) ir.Bits     { return readAt(r.t, r.place(i)) }
func (r raw) Store(i int, b ir.Bits) { writeAt(r.t, r.place(i), b) }

// enter runs until there is something to say. Where it stands is in the words of the
// rows and lanes themselves; resuming goes on behind the group.
func (it *interpreter) enter(b *[amd64.BlockSize / 8]uint64) {
	k := it.k
	count := int(b[amd64.BlockCount/8])
	streams := func(i, off int) *uint64 {
		return word(b[amd64.BlockStreams/8] + uint64(i*amd64.StreamSize+off))
	}
	if b[amd64.BlockResume/8] == 0 {
		for d := range amd64.MaxLevels + 1 {
			b[amd64.BlockLane/8+d] = 0
		}
	}
	b[amd64.BlockResume/8] = 1
	for {
		lane := int(b[amd64.BlockLane/8])
		if lane < count {
			if it.group(b, lane, min(it.lanes, count-lane)) {
				b[amd64.BlockExit/8] = uint64(amd64.ExitFault)
				return
			}
			b[amd64.BlockLane/8] += uint64(it.lanes)
			if it.pauses {
				b[amd64.BlockExit/8] = uint64(amd64.ExitPaused)
				return
			}
			continue
		}
		b[amd64.BlockLane/8] = 0
		d := 0
		for ; d < k.Levels; d++ {
			row := &b[amd64.BlockRow/8+d]
			*row++
			if *row < b[amd64.BlockRows/8+d] {
				for i := range len(k.In) + len(k.Out) {
					if i >= len(k.In) || k.In[i] != amd64.Same {
						*streams(i, amd64.StreamWord) += *streams(i, amd64.StreamAdvance+8*d)
					}
				}
				break
			}
			*row = 0
		}
		if d == k.Levels {
			b[amd64.BlockExit/8], b[amd64.BlockResume/8] = uint64(amd64.ExitDone), 0
			return
		}
	}
}

// group runs n workers; it reports whether some failed.
func (it *interpreter) group(b *[amd64.BlockSize / 8]uint64, lane, n int) bool {
	k, f := it.k, it.k.Func
	var mems []ir.Storage
	for _, m := range f.Mems {
		if m.Space == ir.Global {
			base := b[amd64.BlockMems/8] + uint64(16*len(mems))
			mems = append(mems, raw{m.Elem, *word(base), *word(base + 8)})
		}
	}
	if len(mems) > 0 {
		it.alone.Lock() // the evaluator's atomic operations are not
		defer it.alone.Unlock()
	}
	failed := false
	state := func(off int) *uint64 { return word(b[amd64.BlockState/8] + uint64(off)) }
	*state(it.code.Fault.Lanes) = 0
	for i := range n {
		args := make([]ir.Bits, len(k.In))
		at := func(j int) uint64 {
			s := b[amd64.BlockStreams/8] + uint64(j*amd64.StreamSize)
			w, step := *word(s), *word(s + amd64.StreamStep)
			access, t := amd64.Same, ir.Invalid
			if j < len(k.In) {
				access, t = k.In[j], f.Types[f.Params[j].Value]
			} else {
				access, t = k.Out[j-len(k.In)], f.Results[j-len(k.In)]
			}
			switch access {
			case amd64.Unit:
				return w + uint64((lane+i)*t.Size())
			case amd64.CountUnit:
				return w + uint64(lane+i)
			case amd64.Strided, amd64.CountStep:
				return w + uint64(lane+i)*step
			}
			return w
		}
		for j := range args {
			args[j] = at(j)
			switch t := f.Types[f.Params[j].Value]; k.In[j] {
			case amd64.Unit, amd64.Strided, amd64.PerRow:
				args[j] = readAt(t, at(j))
			}
		}
		e := ir.Evaluator{Print: func(text string) {
			c := (*nativeCall)(unsafe.Pointer(b))
			_, row := c.where()
			if c.lines.print != nil {
				c.lines.print(c.workerAt(lane+i, row), text)
			}
		}}
		out, err := e.RunWorker(f, mems, args)
		if fault, ok := err.(*ir.FaultError); ok {
			failed = true
			*state(it.code.Fault.Lanes) |= 1 << i
			site, vals := it.blame(fault)
			w := state(it.code.Fault.Sites + 4*i&^7)
			shift := 32 * (i & 1)
			*w = *w&^(0xFFFFFFFF<<shift) | uint64(site)<<shift
			for j, x := range vals {
				*state(it.code.Fault.Values + 8*(j*it.lanes+i)) = x
			}
			continue
		} else if err != nil {
			panic(err)
		}
		for j, x := range out {
			writeAt(f.Results[j], at(len(k.In)+j), x)
		}
	}
	return failed
}

// blame finds the instruction that failed, by its place in the source: tests give
// each its own, and the operands, from the text of the fault.
func (it *interpreter) blame(fault *ir.FaultError) (int, []ir.Bits) {
	for i, in := range it.code.Faults {
		if in.Pos == fault.Pos {
			var a, b, c int64
			switch in.Op {
			case ir.OpBounds:
				fmt.Sscanf(fault.Expr, "index %d, length %d", &a, &b)
			case ir.OpSliceBounds:
				fmt.Sscanf(fault.Expr, "[%d:%d], length %d", &a, &b, &c)
			case ir.OpDiv:
				fmt.Sscanf(fault.Expr, "%d / %d", &a, &b)
			case ir.OpRem:
				fmt.Sscanf(fault.Expr, "%d %% %d", &a, &b)
			case ir.OpShl:
				fmt.Sscanf(fault.Expr, "%d << %d", &a, &b)
			case ir.OpShr:
				fmt.Sscanf(fault.Expr, "%d >> %d", &a, &b)
			default:
				panic("no operands of " + in.Op.String())
			}
			return i, []ir.Bits{ir.Bits(a), ir.Bits(b), ir.Bits(c)}
		}
	}
	panic("nobody to blame for " + fault.Error())
}

// interpreted makes a program whose machine code is interpreted.
func interpreted(t testing.TB, f *ir.Func, lanes int, pauses bool) *Program {
	t.Helper()
	p := compile(t, f)
	if p.meets {
		t.Fatal("the threads meet")
	}
	p.native = &machineProgram{given: f, variants: map[string]*variant{}}
	p.native.load = func(k *amd64.Kernel, _ amd64.Target, _ amd64.Options) (*Native, error) {
		return interpret(k, lanes, pauses), nil
	}
	return p
}

// smallBoxes lets boxes have few workers and wakes goroutines early.
func smallBoxes(t *testing.T) {
	old := [...]float64{boxTime, leastBox, worthCrew}
	boxTime, leastBox, worthCrew = 2e3, 100, 4e3
	t.Cleanup(func() { boxTime, leastBox, worthCrew = old[0], old[1], old[2] })
}

// TestCrew runs functions over shapes, strides, generators and numbers of
// goroutines, with boxes of a few workers and of many.
func TestCrew(t *testing.T) {
	d := newDice(3)
	smallBoxes(t)
	fs := []*ir.Func{mixed()}
	for i := range 12 {
		fs = append(fs, irtest.Random(d.Rand, fmt.Sprint("crew ", i), irtest.Options{Faults: i%3 == 0}))
	}
	for i, f := range fs {
		p := interpreted(t, f, []int{1, 4, 16}[i%3], i%2 == 0)
		times := 1
		if i == 0 {
			times = 8
		}
		for range times {
			for _, shape := range [][]int{{}, {0}, {1}, {100}, {3, 70}, {70, 3}, {5, 4, 6}, {2, 3, 4, 5}, {3, 2, 2, 2, 6}, {2, 2, 1, 3, 2, 20}, {90, 2, 2, 3, 2}} {
				l := d.launch(f, shape)
				want := evaluate(f, &l)
				for _, g := range []int{1, 3} {
					l.Goroutines = g
					if err := compare(p, l, want); err != nil {
						t.Fatalf("shape %v, %d goroutines: %v\n%v", shape, g, err, f)
					}
					if err := p.Refused(&l); err != nil && workers(shape) > 0 {
						t.Fatal(err)
					}
				}
			}
		}
	}
}

// emptyCode is code that has done everything at once.
func emptyCode(t testing.TB, f *ir.Func) *Program {
	p := interpreted(t, f, 8, false)
	p.native.load = func(k *amd64.Kernel, _ amd64.Target, _ amd64.Options) (*Native, error) {
		n := interpret(k, 8, false)
		n.enter = func(b *[amd64.BlockSize / 8]uint64) { b[amd64.BlockExit/8] = uint64(amd64.ExitDone) }
		return n, nil
	}
	return p
}

// BenchmarkCrew is what a call costs besides its code.
func BenchmarkCrew(b *testing.B) {
	p := emptyCode(b, distance())
	x := floats64(10, func(i int) float64 { return 30 + float64(i) })
	out := make([]float64, 10)
	l := Launch{Shape: []int{10}, In: []Operand{flat(x, ir.F64), flat(x, ir.F64), scalarF64(30), scalarF64(101), scalarF64(1)}, Out: []Operand{flat(out, ir.F64)}, Goroutines: 2}
	b.ReportAllocs()
	for b.Loop() {
		mustRun(b, p, l)
	}
}

// TestCrewMemory does so with memories, printing, atomic operations and faults.
func TestCrewMemory(t *testing.T) {
	d := newDice(8)
	smallBoxes(t)
	for i := range 16 {
		o := irtest.Options{Memory: true, Faults: i%2 == 0}
		f := ir.Optimize(irtest.Random(d.Rand, fmt.Sprint("crew ", i), o))
		p := interpreted(t, f, []int{1, 4, 16}[i%3], i%4 < 2)
		for _, groups := range []int{1, 9, 50} {
			group := []int{1, 3, 32}[d.IntN(3)]
			in := irtest.NewInputs(d.Rand, f, groups, group)
			want := in.Evaluate(f)
			for j := range 2 {
				l, run := d.blocks(f, in, j == 1)
				if err := want.Compare(f, run(p)); err != nil {
					t.Fatalf("%d: %d blocks of %d, shape %v, %d goroutines: %v\n%v", i, groups, group, l.Shape, l.Goroutines, err, f)
				}
				if err := p.Refused(&l); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
}
