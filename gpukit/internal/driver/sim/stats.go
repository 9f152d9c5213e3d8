package sim

import (
	"gpunotes/gpukit/internal/ptx"
)

// Class is a kind of instruction, by the unit of a multiprocessor that executes it.
type Class uint8

// The classes.
const (
	Move          Class = iota // mov, selp and the like
	Int32                      // sums, logic, shifts and comparisons of up to 32 bits
	Int64                      // the same of 64 bits
	Multiply32                 // integer products of up to 32 bits, wide ones too
	Multiply64                 // of 64 bits
	Divide32                   // integer quotients and remainders, which are short programs on a card
	Divide64                   // of 64 bits
	Float32                    // add, mul, fma, compare, min and max in f32
	Float64                    // in f64
	FloatDivide32              // div, sqrt and rcp with a rounding mode: short programs on a card
	FloatDivide64              // in f64
	Special                    // approximations of the special function unit
	Convert                    // conversions within 32 bits
	Convert64                  // conversions from or to f64 or 64-bit integers, but for integers among themselves
	LoadGlobal
	StoreGlobal
	LoadShared
	StoreShared
	LoadLocal
	StoreLocal
	LoadConst
	LoadParam
	AtomicGlobal
	AtomicShared
	Branch
	Barrier
	Exchange // shuffles, votes and matches
	Other    // fences, exit, prefetch
	NumClasses
)

var classNames = [NumClasses]string{"move", "int32", "int64", "multiply32", "multiply64", "divide32", "divide64", "float32", "float64", "float divide32", "float divide64", "special",
	"convert", "convert64", "load global", "store global", "load shared", "store shared", "load local", "store local", "load const", "load param", "atomic global", "atomic shared", "branch", "barrier", "exchange", "other"}

// String names the class, e.g. "float64".
func (c Class) String() string { return classNames[c] }

func classOf(d *ptx.Decoded) Class {
	wide := d.Type.Bits() == 64
	pick := func(narrow, wideOne Class) Class {
		if wide {
			return wideOne
		}
		return narrow
	}
	switch d.Op {
	case "bra", "call", "ret":
		return Branch
	case "exit", "trap", "brkpt", "membar", "fence", "nanosleep", "prefetch", "prefetchu":
		return Other
	case "bar", "barrier":
		return Barrier
	case "shfl", "vote", "match", "redux", "activemask":
		return Exchange
	case "mov", "cvta", "selp", "slct":
		return Move
	case "ld", "ldu":
		switch d.Space {
		case ptx.Shared:
			return LoadShared
		case ptx.Local:
			return LoadLocal
		case ptx.Const:
			return LoadConst
		case ptx.ParamSpace:
			return LoadParam
		}
		return LoadGlobal
	case "st":
		switch d.Space {
		case ptx.Shared:
			return StoreShared
		case ptx.Local, ptx.ParamSpace:
			return StoreLocal
		}
		return StoreGlobal
	case "atom", "red":
		if d.Space == ptx.Shared {
			return AtomicShared
		}
		return AtomicGlobal
	case "cvt":
		from, to := d.Types[1], d.Types[0]
		switch {
		case !from.IsFloat() && !to.IsFloat():
			return pick(Int32, Int64)
		case from.Bits() == 64 || to.Bits() == 64:
			return Convert64
		}
		return Convert
	}
	if d.Type.IsFloat() {
		switch {
		case d.Op == "neg", d.Op == "abs", d.Op == "copysign", d.Op == "testp":
			return pick(Float32, Float64)
		case d.Has("approx") || d.Has("full"):
			return Special
		case d.Op == "div", d.Op == "sqrt", d.Op == "rcp":
			return pick(FloatDivide32, FloatDivide64)
		}
		return pick(Float32, Float64)
	}
	switch d.Op {
	case "mul", "mad", "madc", "mul24", "mad24":
		return pick(Multiply32, Multiply64)
	case "div", "rem":
		return pick(Divide32, Divide64)
	}
	return pick(Int32, Int64)
}

// Count counts executions: by warps, however few of their threads took part, and by threads.
type Count struct{ Warps, Lanes uint64 }

// Stats is what one launch did. Counts are exact.
type Stats struct {
	Kernel                     string
	Count                                        // of all instructions
	Classes                    [NumClasses]Count // by class
	Opcodes                    map[string]Count  // by instruction, e.g. "add.rn.f64"
	Lines                      map[Line]Count    // by source line; without .loc all are of the zero Line
	Blocks                     int
	Resident                   int           // blocks on a multiprocessor at a time, at most
	TakenBranches, Divergences uint64        // of warps
	Memory                     *MemoryCounts // nil if it was not counted
	// Slots are issue slots, of instructions that a card has to make of several too, and Products those of the integer
	// multiplier. WarpCycles is how long the slowest warp of a block would take alone, the mean of all blocks. All are
	// predictions, and 0 if memory was not counted.
	Slots      uint64
	Products   uint64
	WarpCycles float64
}

// Line is a line of the source that PTX was made from.
type Line struct {
	File string
	Line int
}

// stats sums the counts up.
func (x *execution) stats() *Stats {
	s := &Stats{Kernel: x.p.f.Name, Opcodes: map[string]Count{}, Lines: map[Line]Count{}, Blocks: x.grid.Count(), Resident: x.hold, TakenBranches: x.taken, Divergences: x.diverged, Slots: x.slots, Products: x.products}
	if s.Blocks > 0 {
		s.WarpCycles = x.cycles / float64(s.Blocks)
	}
	add := func(to *Count, c Count) {
		to.Warps += c.Warps
		to.Lanes += c.Lanes
	}
	for i, c := range x.hits {
		t := &x.p.sites[i]
		if c.Warps == 0 || t.index >= len(t.fn.Instrs) || t.implied {
			continue
		}
		add(&s.Count, c)
		add(&s.Classes[t.class], c)
		op := t.fn.Instrs[t.index].Opcode
		n := s.Opcodes[op]
		add(&n, c)
		s.Opcodes[op] = n
		file, line, _ := x.p.source(i)
		l := s.Lines[Line{file, line}]
		add(&l, c)
		s.Lines[Line{file, line}] = l
	}
	return s
}
