package ptx

import (
	"fmt"
	"math"
)

// Version is a PTX ISA version.
type Version struct{ Major, Minor int }

// String returns e.g. "6.0".
func (v Version) String() string { return fmt.Sprintf("%d.%d", v.Major, v.Minor) }

// Less reports whether v is older than w.
func (v Version) Less(w Version) bool {
	return v.Major < w.Major || v.Major == w.Major && v.Minor < w.Minor
}

// Type is a fundamental type: of a register, a variable or an instruction.
type Type uint8

// The types; Pred is a one-bit register, the B types are bits without meaning.
const (
	NoType Type = iota
	Pred
	B8
	B16
	B32
	B64
	U8
	U16
	U32
	U64
	S8
	S16
	S32
	S64
	F32
	F64
	numTypes
)

var typeNames = [numTypes]string{"", "pred", "b8", "b16", "b32", "b64", "u8", "u16", "u32", "u64", "s8", "s16", "s32", "s64", "f32", "f64"}

// String returns the type's name without the dot, e.g. "f64".
func (t Type) String() string {
	if t < numTypes {
		return typeNames[t]
	}
	return fmt.Sprintf("Type(%d)", uint8(t))
}

// ParseType is the inverse of String; NoType if there is no such type.
func ParseType(s string) Type { return typeByName[s] }

// Bits is the width in bits; 1 for Pred.
func (t Type) Bits() int {
	switch t {
	case Pred:
		return 1
	case B8, U8, S8:
		return 8
	case B16, U16, S16:
		return 16
	case B32, U32, S32, F32:
		return 32
	case B64, U64, S64, F64:
		return 64
	}
	return 0
}

// Size is the width in bytes, 0 for Pred.
func (t Type) Size() int { return t.Bits() / 8 }

// IsFloat reports whether t is F32 or F64.
func (t Type) IsFloat() bool { return t == F32 || t == F64 }

// IsSigned reports whether t is a signed integer.
func (t Type) IsSigned() bool { return t >= S8 && t <= S64 }

// IsUnsigned reports whether t is an unsigned integer.
func (t Type) IsUnsigned() bool { return t >= U8 && t <= U64 }

// IsBits reports whether t is one of the B types.
func (t Type) IsBits() bool { return t >= B8 && t <= B64 }

// Space is a state space of memory.
type Space uint8

// The spaces. Generic is what an instruction without a space addresses.
const (
	Generic Space = iota
	Global
	Shared
	Local
	Const
	ParamSpace
	numSpaces
)

var spaceNames = [numSpaces]string{"generic", "global", "shared", "local", "const", "param"}

// String returns the name without the dot, e.g. "global".
func (s Space) String() string {
	if s < numSpaces {
		return spaceNames[s]
	}
	return fmt.Sprintf("Space(%d)", uint8(s))
}

// Linkage is how a symbol is seen from other modules.
type Linkage uint8

// The linkages.
const (
	Internal Linkage = iota
	Visible
	Extern
	Weak
	numLinkages
)

var linkageNames = [numLinkages]string{"", "visible", "extern", "weak"}

// Module is one PTX text.
type Module struct {
	Version     Version
	Target      int      // 35 of sm_35
	TargetFlags []string // what follows the first name of .target, e.g. "debug"
	AddressSize int      // 32 or 64
	Files       []File
	Vars        []Var
	Funcs       []*Func
}

// File is a .file directive: an index that .loc uses.
type File struct {
	Index int
	Name  string
}

// Var is a variable: of a module, of a function, or a parameter.
type Var struct {
	Linkage Linkage
	Space   Space
	Align   int // in bytes; 0: the natural one of Type
	Type    Type
	Vec     int // 2 or 4 for .v2 and .v4, else 0
	Name    string
	Array   bool
	Len     int      // elements of an array; 0 for one of unknown length
	Init    []uint64 // bits of the first elements; the rest is 0
	// Ptr says that a parameter holds an address in PtrSpace of alignment PtrAlign.
	Ptr      bool
	PtrSpace Space
	PtrAlign int
}

// Size is the size of the variable in bytes, 0 for an array of unknown length.
func (v *Var) Size() int {
	n := v.Type.Size() * max(v.Vec, 1)
	if v.Array {
		n *= v.Len
	}
	return n
}

// Alignment is Align or, where that is 0, the natural one.
func (v *Var) Alignment() int {
	if v.Align > 0 {
		return v.Align
	}
	return v.Type.Size() * max(v.Vec, 1)
}

// Reg is a virtual register.
type Reg struct {
	Type Type
	Name string
}

// RegID names a register of a function: an index into Func.Regs.
type RegID int32

// NoReg is the absence of a register.
const NoReg RegID = -1

// Func is a kernel (.entry) or a device function (.func).
type Func struct {
	Linkage Linkage
	Entry   bool
	Name    string
	Results []Var // of a .func
	Params  []Var
	Bounds  []Bound // performance directives
	Proto   bool    // a declaration: no body follows
	Regs    []Reg
	Vars    []Var // .local, .shared and .param variables of the body
	Instrs  []Instr
	Labels  []Label  // by position
	Pragmas []Pragma // by position
}

// Bound is a performance directive, e.g. {"maxntid", {256, 1, 1}}.
type Bound struct {
	Name   string
	Values []int
}

// Label names the place before instruction At.
type Label struct {
	Name string
	At   int
}

// Pragma is a .pragma before instruction At.
type Pragma struct {
	Text string
	At   int
}

// Loc is a place in the source that the PTX was made from: File is the index
// of a .file directive. The zero Loc is unknown.
type Loc struct{ File, Line, Col int }

// Pos is a place in PTX text, from 1; zero where no text was parsed.
type Pos struct{ Line, Col int }

// Guard is the predicate of an instruction. The zero value is none.
type Guard struct {
	On  bool
	Not bool
	Reg RegID
}

// Instr is one instruction. Opcode is the whole of it, e.g. "add.rn.f64";
// Decode takes it apart.
type Instr struct {
	Guard  Guard
	Opcode string
	Args   []Operand
	Loc    Loc // every instruction after the first with a Loc has one
	Pos    Pos // where Parse found it; no part of its meaning
}

// Kind is what an operand is.
type Kind uint8

// The kinds of operands.
const (
	NoOperand   Kind = iota
	KindReg          // Reg, with Not for a negated predicate
	KindInt          // Bits: an integer, sign-extended if negative
	KindF32          // Bits: IEEE bits
	KindF64          // Bits: IEEE bits
	KindSpecial      // Sym: a special register, e.g. "%tid.x"
	KindSym          // Sym + Off: the address of a variable
	KindAddr         // [Reg + Off], or [Sym + Off] if Reg is NoReg, or [Off] if Sym is empty too
	KindLabel        // Sym
	KindFunc         // Sym
	KindVec          // {Elems}
	KindPair         // Elems[0] | Elems[1]
	KindList         // (Elems), of a call
	KindSink         // _
)

// Operand is an operand of an instruction.
type Operand struct {
	Kind  Kind
	Not   bool
	Reg   RegID
	Bits  uint64
	Sym   string
	Off   int64
	Elems []Operand
}

// R is a register operand.
func R(r RegID) Operand { return Operand{Kind: KindReg, Reg: r} }

// Not is a negated predicate.
func Not(r RegID) Operand { return Operand{Kind: KindReg, Reg: r, Not: true} }

// Int is an integer immediate.
func Int(x int64) Operand { return Operand{Kind: KindInt, Bits: uint64(x)} }

// Float64 is an f64 immediate.
func Float64(x float64) Operand { return Operand{Kind: KindF64, Bits: math.Float64bits(x)} }

// Special is a special register, e.g. "%tid.x".
func Special(name string) Operand { return Operand{Kind: KindSpecial, Sym: name} }

// Sym is the address of a variable, off bytes on.
func Sym(name string, off int64) Operand { return Operand{Kind: KindSym, Sym: name, Off: off} }

// Addr is [r+off].
func Addr(r RegID, off int64) Operand { return Operand{Kind: KindAddr, Reg: r, Off: off} }

// SymAddr is [name+off].
func SymAddr(name string, off int64) Operand {
	return Operand{Kind: KindAddr, Reg: NoReg, Sym: name, Off: off}
}

// To is a label.
func To(label string) Operand { return Operand{Kind: KindLabel, Sym: label} }

// Vec is {elems}.
func Vec(elems ...Operand) Operand { return Operand{Kind: KindVec, Elems: elems} }

// Pair is a|b.
func Pair(a, b Operand) Operand { return Operand{Kind: KindPair, Elems: []Operand{a, b}} }

// AddReg declares a register.
func (f *Func) AddReg(t Type, name string) RegID {
	f.Regs = append(f.Regs, Reg{t, name})
	return RegID(len(f.Regs) - 1)
}

// AddLabel puts a label before the next instruction.
func (f *Func) AddLabel(name string) { f.Labels = append(f.Labels, Label{name, len(f.Instrs)}) }

// LabelAt returns the instruction that the label stands before.
func (f *Func) LabelAt(name string) (int, bool) {
	for _, l := range f.Labels {
		if l.Name == name {
			return l.At, true
		}
	}
	return 0, false
}

// Func returns the function of that name, its body rather than a declaration,
// or nil.
func (m *Module) Func(name string) *Func {
	var found *Func
	for _, f := range m.Funcs {
		if f.Name == name && (found == nil || !f.Proto) {
			found = f
		}
	}
	return found
}
