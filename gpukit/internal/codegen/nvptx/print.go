package nvptx

import (
	"cmp"
	"slices"

	"gpunotes/gpukit/internal/ir"
	"gpunotes/gpukit/internal/ptx"
)

// Print is a place where workers print a line.
type Print struct {
	Text  []string // before, between and behind the operands
	Types []ir.Type
}

// A line is, in words of 64 bits, worker and site in one, not 0, then the
// operands, in the form of ir.Bits. All lines of a kernel are of one size.

// PrintHeader is how many words stand before the first line.
const PrintHeader = 2

// lineWords is how many words a line of a kernel of f takes, 0 if it prints none.
func lineWords(f *ir.Func) (n int) {
	ir.Walk(f.Body, func(in *ir.Instr) {
		switch in.Op {
		case ir.OpPrint:
			n = max(n, 1+len(in.Args))
		case ir.OpCall:
			n = max(n, lineWords(in.Callee))
		}
	})
	return n
}

// Line is a line that a worker printed.
type Line struct {
	Worker uint64
	Site   int // of Prints
	Args   []ir.Bits
}

// Format is the line without its end.
func (p Print) Format(args []ir.Bits) string { return ir.FormatLine(p.Text, p.Types, args) }

// Lines reads what a kernel left where Printed said; of the room that was not used
// nothing need be in words. Lines come in the order of workers, those of a worker
// in its own. lost is how many there was no room for; which, is chance.
func (e *Entry) Lines(words []uint64) (lines []Line, lost int) {
	stored := Stored(words)
	for i := range stored {
		at := words[PrintHeader+i*e.LineWords:]
		if at[0] == 0 { // its thread was stopped before it was complete
			continue
		}
		site := int(at[0]&(1<<checkBits-1)) - 1
		lines = append(lines, Line{at[0] >> checkBits, site, at[1 : 1+len(e.Prints[site].Types)]})
	}
	slices.SortStableFunc(lines, func(a, b Line) int { return cmp.Compare(a.Worker, b.Worker) })
	return lines, int(words[0]) - stored
}

// Stored is how many lines begin with the two words of this header.
func Stored(header []uint64) int { return int(min(header[0], header[1])) }

// prints reports whether a function prints, or one that it calls.
func (e *emitter) prints() (yes bool) {
	ir.Walk(e.f.Body, func(in *ir.Instr) { yes = yes || in.Op == ir.OpPrint })
	return yes || e.calls(func(o *outlined) bool { return o.prints })
}

// site is the number of a place to print. What is written out several times is one.
func (e *emitter) site(in *ir.Instr) int {
	p := Print{Text: in.Text}
	for _, a := range in.Args {
		p.Types = append(p.Types, e.f.Types[a])
	}
	same := func(q Print) bool { return slices.Equal(p.Text, q.Text) && slices.Equal(p.Types, q.Types) }
	if i := slices.IndexFunc(e.entry.Prints, same); i >= 0 {
		return i
	}
	e.entry.Prints = append(e.entry.Prints, p)
	return len(e.entry.Prints) - 1
}

// print takes the next line and, if there is room, stores it: what says whose it is
// comes last.
func (e *emitter) print(in *ir.Instr) {
	var words []ptx.Operand
	for _, a := range in.Args {
		words = append(words, e.word(e.f.Types[a], e.inReg(a)))
	}
	worker := e.worker
	if worker.Kind == ptx.NoOperand {
		worker = e.thread()
	}
	head := e.get("shl.b64", ptx.B64, worker, ptx.Int(checkBits))
	head = e.get("or.b64", ptx.B64, head, ptx.Int(int64(e.site(in)+1)))
	room := e.get("ld.global.u64", ptx.B64, ptx.Addr(e.printed.Reg, 8))
	one := e.get("mov.b64", ptx.B64, ptx.Int(1))
	n := e.atomic(ir.AtomicAdd, ir.U64, "global", ptx.Addr(e.printed.Reg, 0), []ptx.Operand{one})
	fits := e.get("setp.lt.u64", ptx.Pred, n, room)
	at := e.get("mad.lo.s64", ptx.B64, n, ptx.Int(int64(8*e.entry.LineWords)), e.printed)
	store := func(word int, x ptx.Operand) {
		e.ins("st.global.b64", ptx.Addr(at.Reg, int64(8*(PrintHeader+word))), x)
		e.fn.Instrs[len(e.fn.Instrs)-1].Guard = ptx.Guard{On: true, Reg: fits.Reg}
	}
	for i, x := range words {
		store(1+i, x)
	}
	store(0, head)
}

// word is a value in the form of ir.Bits, in 64 bits.
func (e *emitter) word(t ir.Type, x ptx.Operand) ptx.Operand {
	switch {
	case t == ir.Bool:
		return e.get("cvt.u64.u32", ptx.B64, e.get("selp.b32", ptx.B32, ptx.Int(1), ptx.Int(0), x))
	case t == ir.F32:
		return e.get("cvt.u64.u32", ptx.B64, e.get("mov.b32", ptx.B32, x))
	case t == ir.F64:
		return e.get("mov.b64", ptx.B64, x)
	}
	return e.convert(t, map[bool]ir.Type{true: ir.I64, false: ir.U64}[t.IsSigned()], x)
}
