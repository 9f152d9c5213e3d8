package nvptx

import (
	"encoding/binary"
	"fmt"
	"slices"
	"testing"

	"gpunotes/gpukit/internal/driver"
	"gpunotes/gpukit/internal/ir"
)

// printed is where the kernels of an entry print.
type printed struct {
	mc    *machine
	entry *Entry
	room  int
	at    uint64 // 0 if it does not print
}

func newPrinted(mc *machine, e *Entry, room int) printed {
	p := printed{mc, e, room, 0}
	if e.LineWords > 0 {
		data := make([]byte, 8*(PrintHeader+room*e.LineWords))
		binary.LittleEndian.PutUint64(data[8:], uint64(room))
		p.at = mc.alloc(data)
	}
	return p
}

func (p *printed) lines() (lines []Line, lost int) {
	if p.at == 0 {
		return nil, 0
	}
	data := make([]byte, 8*(PrintHeader+p.room*p.entry.LineWords))
	if err := p.mc.d.CopyOut(data, driver.Ptr(p.at)); err != nil {
		p.mc.t.Fatal(err)
	}
	words := make([]uint64, len(data)/8)
	for i := range words {
		words[i] = binary.LittleEndian.Uint64(data[8*i:])
	}
	return p.entry.Lines(words)
}

// printer prints an argument of each type, in a loop i of 3, and in a branch that
// every other worker takes.
func printer() *ir.Func {
	f := ir.NewFunc("printer")
	var args []ir.Value
	for _, t := range ir.Types {
		args = append(args, f.AddParam("x_"+t.String(), t))
	}
	b := ir.NewBuilder(f)
	k := func(i int) ir.Value { return b.Const(ir.I64, ir.Bits(i)) }
	worker := args[slices.Index(ir.Types[:], ir.I64)]
	b.Print([]string{"begin ", ""}, worker)
	b.Loop([]ir.Value{k(0)}, nil, func(c []ir.Value) {
		b.If(b.Op(ir.OpGe, c[0], k(3)), nil, func() { b.Break(1) }, func() { b.Yield() })
		text := make([]string, len(args)+2)
		for i := range text[1:] {
			text[1+i] = " | "
		}
		b.Print(text, append([]ir.Value{c[0]}, args...)...)
		odd := b.Op(ir.OpEq, b.Op(ir.OpAnd, worker, k(1)), k(1))
		b.If(odd, nil, func() { b.Print([]string{"odd"}); b.Yield() }, func() { b.Yield() })
		b.Yield(b.Op(ir.OpAdd, c[0], k(1)))
	})
	b.Yield()
	return f
}

// outlinedPrinter calls printer as a function of its own.
func outlinedPrinter() *ir.Func {
	g := printer()
	g.Outline = true
	f := ir.NewFunc("outer")
	var args []ir.Value
	for _, p := range g.Params {
		args = append(args, f.AddParam(p.Name, g.Types[p.Value]))
	}
	b := ir.NewBuilder(f)
	b.CallMems(g, nil, args...)
	b.Yield()
	return f
}

// TestPrint: every type, every special value, as text; the lines of a worker in
// their order, workers in theirs, whatever the grid and whichever way threads work.
func TestPrint(t *testing.T) {
	var workers [][]ir.Bits
	for w := range 70 {
		var args []ir.Bits
		for _, typ := range ir.Types {
			s := specials(typ)
			args = append(args, s[w%len(s)])
		}
		args[slices.Index(ir.Types[:], ir.I64)] = ir.Bits(int64(w - 35))
		workers = append(workers, args)
	}
	for _, f := range []*ir.Func{printer(), outlinedPrinter()} {
		var want []string
		e := &ir.Evaluator{Print: func(s string) { want = append(want, s) }}
		for _, args := range workers {
			if _, err := e.Run(f, args...); err != nil {
				t.Fatal(err)
			}
		}
		for _, sm := range []int{30, 90} {
			for _, c := range []struct {
				threads     bool
				grid, block int
			}{{true, 7, 10}, {true, 1, 70}, {false, 1, 1}, {false, 3, 32}, {false, 2, 5}} {
				k := elementwise("print", f)
				k.Threads = c.threads
				m, entries := emit(t, Target{SM: sm}, k)
				mc := newMachine(t, m)
				var got []string
				p := newPrinted(mc, entries[0], 1000)
				params := printParams(mc, k, entries[0], workers, p.at)
				if err := mc.launch(k.Name, c.grid, c.block, 0, params); err != nil {
					t.Fatal(err)
				}
				lines, lost := p.lines()
				for _, l := range lines {
					got = append(got, entries[0].Prints[l.Site].Format(l.Args))
				}
				if !slices.Equal(got, want) || lost > 0 {
					t.Fatalf("%s, sm_%d, %+v: %d lines, %d lost, want %d\n%v\n%v", f.Name, sm, c, len(got), lost, len(want), got, m)
				}
				if len(entries[0].Prints) != 3 {
					t.Errorf("%d places to print", len(entries[0].Prints))
				}
			}
		}
	}
}

// printParams are the parameters of a kernel whose arguments are contiguous.
func printParams(mc *machine, k *Kernel, e *Entry, workers [][]ir.Bits, printed uint64) (params []uint64) {
	for _, q := range e.Params {
		switch q.Kind {
		case Workers:
			params = append(params, uint64(len(workers)))
		case Printed:
			params = append(params, printed)
		case ArgBase:
			size := k.Func.Types[k.Func.Params[q.Index].Value].Size()
			data := make([]byte, size*len(workers))
			for w, args := range workers {
				put(data[w*size:][:size], args[q.Index])
			}
			params = append(params, mc.alloc(data))
		default:
			mc.t.Fatalf("parameter %v", q)
		}
	}
	return params
}

// TestPrintRoom: lines that there is no room for are counted, nothing is written
// behind the room, and a line that was not completed is left out.
func TestPrintRoom(t *testing.T) {
	f := ir.NewFunc("f")
	x := f.AddParam("x", ir.I64)
	b := ir.NewBuilder(f)
	b.Print([]string{"", " and ", ""}, x, x)
	b.Print([]string{"", ""}, x)
	b.Yield()
	k := &Kernel{Name: "f", Func: f, In: []Access{Contiguous}}
	m, entries := emit(t, Target{SM: 30}, k)
	var workers [][]ir.Bits
	for w := range 50 {
		workers = append(workers, []ir.Bits{ir.Bits(w)})
	}
	for _, room := range []int{0, 1, 7, 99, 100, 101} {
		mc := newMachine(t, m)
		p := newPrinted(mc, entries[0], room)
		behind := mc.alloc(make([]byte, 64))
		if err := mc.launch("f", 2, 32, 0, printParams(mc, k, entries[0], workers, p.at)); err != nil {
			t.Fatal(err)
		}
		lines, lost := p.lines()
		if n := min(room, 100); len(lines) != n || lost != 100-n {
			t.Errorf("room for %d: %d lines, %d lost", room, len(lines), lost)
		}
		for _, l := range lines {
			w := fmt.Sprint(l.Worker)
			if s := entries[0].Prints[l.Site].Format(l.Args); s != w && s != w+" and "+w {
				t.Errorf("worker %d printed %q", l.Worker, s)
			}
		}
		for i := range uint64(8) {
			if mc.word(behind+8*i, 8) != 0 {
				t.Error("written behind the room")
			}
		}
	}
	e := entries[0]
	words := []uint64{2, 9, 0, 0, 0, 5<<checkBits | 2, 5, 0}
	if lines, lost := e.Lines(words); len(lines) != 1 || lost != 0 || lines[0].Worker != 5 || e.Prints[1].Format(lines[0].Args) != "5" {
		t.Error(lines, lost)
	}
}
