package ptx

import (
	"fmt"
	"strings"
	"sync"
)

// Form is a row of the instruction table: an opcode, the modifiers that it
// takes in their order, its operands, and what a module must declare to use it.
//
// Operands are written as in "=T T u32": = is a destination; T the
// instruction's type (its last type modifier), T0 its first, W twice as wide;
// ~ allows a wider register; V is ~T or, with .v2 and .v4, a vector of these;
// P a predicate or a pair p|q; Q a T or a pair of a T and a predicate; p a
// predicate, possibly negated; [] an address; A a register or the address of a
// variable; M what mov takes; n and n2 a register or number (a barrier, a count
// of threads); i a number; L a label; C a call. A ? behind it makes an operand
// optional.
type Form struct {
	Op      string
	Slots   []Slot
	Args    []string
	Version Version // lowest .version
	SM      int     // lowest .target
	ID      int     // index in the table
}

// Slot is a place for a modifier.
type Slot struct {
	Words    []string
	Optional bool
}

// String writes the form as a pattern.
func (f *Form) String() string {
	var b strings.Builder
	b.WriteString(f.Op)
	for _, s := range f.Slots {
		w := "." + strings.Join(s.Words, "|.")
		if s.Optional {
			w = "{" + w + "}"
		} else if len(s.Words) > 1 {
			w = "(" + w + ")"
		}
		b.WriteString(w)
	}
	if len(f.Args) > 0 {
		b.WriteString(" " + strings.Join(f.Args, ", "))
	}
	return b.String()
}

// Forms returns the instruction table.
func Forms() []*Form { return forms }

// Decoded is an opcode taken apart.
type Decoded struct {
	Form  *Form
	Op    string
	Mods  []string // by slot of the form, "" where it is left out
	Type  Type     // the last type modifier: what a convert reads
	Types []Type   // all of them: a convert gives Types[0]
	Space Space    // of a memory instruction
	Vec   int      // 2 or 4 with .v2 or .v4, else 0
}

// Has reports whether the opcode has the modifier, e.g. "sat".
func (d *Decoded) Has(mod string) bool {
	for _, m := range d.Mods {
		if m == mod {
			return true
		}
	}
	return false
}

// Decode takes an opcode such as "ld.global.nc.f64" apart. It is memoised and
// safe for concurrent use; the result must not be changed. The first row that
// fits is the one that asks for least.
func Decode(opcode string) (*Decoded, error) {
	if d, ok := decoded.Load(opcode); ok {
		return d.(*Decoded), nil
	}
	words := strings.Split(opcode, ".")
	rows := formsByOp[words[0]]
	if rows == nil {
		return nil, fmt.Errorf("unknown instruction %q", words[0])
	}
	best := 0
	for _, f := range rows {
		mods, n, ok := match(f.Slots, words[1:])
		best = max(best, n)
		if !ok {
			continue
		}
		d := &Decoded{Form: f, Op: f.Op, Mods: mods}
		for _, m := range mods {
			if t := ParseType(m); t != NoType {
				d.Type = t
				d.Types = append(d.Types, t)
			}
			switch m {
			case "v2":
				d.Vec = 2
			case "v4":
				d.Vec = 4
			}
			if s, ok := spaceByName[m]; ok {
				d.Space = s
			}
		}
		decoded.Store(opcode, d)
		return d, nil
	}
	if best < len(words)-1 {
		return nil, fmt.Errorf("%s does not take .%s here", strings.Join(words[:best+1], "."), words[best+1])
	}
	return nil, fmt.Errorf("%s is not complete: a modifier or type is missing", opcode)
}

var decoded sync.Map // of *Decoded by opcode

// match fits words to slots and says how many words it got through at best.
func match(slots []Slot, words []string) (mods []string, best int, ok bool) {
	if len(slots) == 0 {
		return nil, 0, len(words) == 0
	}
	s := slots[0]
	if len(words) > 0 && s.takes(words[0]) {
		rest, n, ok := match(slots[1:], words[1:])
		if ok {
			return append([]string{words[0]}, rest...), n + 1, true
		}
		best = n + 1
	}
	if s.Optional {
		rest, n, ok := match(slots[1:], words)
		if ok {
			return append([]string{""}, rest...), n, true
		}
		best = max(best, n)
	}
	return nil, best, false
}

func (s *Slot) takes(word string) bool {
	for _, w := range s.Words {
		if w == word {
			return true
		}
	}
	return false
}

var (
	forms       []*Form
	formsByOp   = map[string][]*Form{}
	typeByName  = map[string]Type{}
	spaceByName = map[string]Space{}
)

// Groups of modifiers, named with $ in the rows below.
var groups = map[string]string{
	"int":  "u16|u32|u64|s16|s32|s64",
	"bits": "b16|b32|b64",
	"any":  "b16|b32|b64|u16|u32|u64|s16|s32|s64|f32|f64",
	"mem":  "b8|b16|b32|b64|u8|u16|u32|u64|s8|s16|s32|s64|f32|f64",
	"cvt":  "u8|u16|u32|u64|s8|s16|s32|s64",
	"rnd":  "rn|rz|rm|rp",
	"rndi": "rni|rzi|rmi|rpi",
	"cc":   "u32|s32|u64|s64",
	"ld":   "global|shared|local|const|param",
	"st":   "global|shared|local|param",
	"atom": "global|shared",
	"vec":  "v2|v4",
}

func init() {
	for t := Pred; t < numTypes; t++ {
		typeByName[t.String()] = t
	}
	for s := Global; s < numSpaces; s++ {
		spaceByName[s.String()] = s
	}
	for _, r := range rows {
		addRow(r)
	}
	for _, r := range atomRows {
		addAtom(r)
	}
}

type row struct {
	op, mods, args string
	version        Version
	sm             int
}

func addRow(r row) {
	f := &Form{Op: r.op, Args: strings.Fields(r.args), Version: r.version, SM: r.sm, ID: len(forms)}
	if f.Version.Major == 0 {
		f.Version.Major = 1
	}
	for _, w := range strings.Fields(r.mods) {
		w, opt := strings.CutSuffix(w, "?")
		var words []string
		for _, x := range strings.Split(w, "|") {
			if g, ok := strings.CutPrefix(x, "$"); ok {
				words = append(words, strings.Split(groups[g], "|")...)
			} else {
				words = append(words, x)
			}
		}
		f.Slots = append(f.Slots, Slot{words, opt})
	}
	forms = append(forms, f)
	formsByOp[f.Op] = append(formsByOp[f.Op], f)
}

// addAtom adds an atomic operation, and its scoped and ordered variants; red
// is the same without a result.
func addAtom(r row) {
	for _, v := range []struct {
		prefix  string
		version Version
		sm      int
	}{
		{"", Version{1, 1}, 0},
		{"cta|gpu|sys ", Version{5, 0}, 60},
		{"relaxed|acquire|release|acq_rel cta|gpu|sys? ", Version{6, 0}, 70},
	} {
		x := r
		if r.op == "red" {
			v.prefix = strings.Replace(v.prefix, "relaxed|acquire|release|acq_rel", "relaxed|release", 1)
		}
		x.mods = v.prefix + "$atom? " + r.mods
		if x.version.Less(v.version) {
			x.version = v.version
		}
		x.sm = max(x.sm, v.sm)
		addRow(x)
	}
}

// rows lists the instructions; where forms of one opcode overlap, the one that
// asks for least comes first.
var rows = []row{
	// Integer and floating-point arithmetic.
	{op: "add", mods: "$int", args: "=T T T"},
	{op: "add", mods: "sat s32", args: "=T T T"},
	{op: "add", mods: "$rnd? ftz? sat? f32", args: "=T T T"},
	{op: "add", mods: "$rnd? f64", args: "=T T T", sm: 13},
	{op: "add", mods: "cc u32|s32", args: "=T T T", version: Version{1, 2}},
	{op: "add", mods: "cc u64|s64", args: "=T T T", version: Version{4, 3}},
	{op: "addc", mods: "cc? u32|s32", args: "=T T T", version: Version{1, 2}},
	{op: "addc", mods: "cc? u64|s64", args: "=T T T", version: Version{4, 3}},
	{op: "sub", mods: "$int", args: "=T T T"},
	{op: "sub", mods: "sat s32", args: "=T T T"},
	{op: "sub", mods: "$rnd? ftz? sat? f32", args: "=T T T"},
	{op: "sub", mods: "$rnd? f64", args: "=T T T", sm: 13},
	{op: "sub", mods: "cc u32|s32", args: "=T T T", version: Version{1, 2}},
	{op: "sub", mods: "cc u64|s64", args: "=T T T", version: Version{4, 3}},
	{op: "subc", mods: "cc? u32|s32", args: "=T T T", version: Version{3, 0}},
	{op: "subc", mods: "cc? u64|s64", args: "=T T T", version: Version{4, 3}},
	{op: "mul", mods: "lo|hi $int", args: "=T T T"},
	{op: "mul", mods: "wide u16|u32|s16|s32", args: "=W T T"},
	{op: "mul", mods: "$rnd? ftz? sat? f32", args: "=T T T"},
	{op: "mul", mods: "$rnd? f64", args: "=T T T", sm: 13},
	{op: "mul24", mods: "lo|hi u32|s32", args: "=T T T"},
	{op: "mad", mods: "lo|hi $int", args: "=T T T T"},
	{op: "mad", mods: "hi sat s32", args: "=T T T T"},
	{op: "mad", mods: "wide u16|u32|s16|s32", args: "=W T T W"},
	{op: "mad", mods: "lo|hi cc u32|s32", args: "=T T T T", version: Version{3, 0}, sm: 20},
	{op: "mad", mods: "lo|hi cc u64|s64", args: "=T T T T", version: Version{4, 3}, sm: 20},
	{op: "mad", mods: "$rnd ftz? sat? f32", args: "=T T T T", sm: 20},
	{op: "mad", mods: "$rnd f64", args: "=T T T T", sm: 13},
	{op: "madc", mods: "lo|hi cc? u32|s32", args: "=T T T T", version: Version{3, 0}, sm: 20},
	{op: "madc", mods: "lo|hi cc? u64|s64", args: "=T T T T", version: Version{4, 3}, sm: 20},
	{op: "mad24", mods: "lo|hi u32|s32", args: "=T T T T"},
	{op: "fma", mods: "$rnd ftz? sat? f32", args: "=T T T T", version: Version{2, 0}, sm: 20},
	{op: "fma", mods: "$rnd f64", args: "=T T T T", version: Version{1, 4}, sm: 13},
	{op: "sad", mods: "$int", args: "=T T T T"},
	{op: "div", mods: "$int", args: "=T T T"},
	{op: "div", mods: "approx|full ftz? f32", args: "=T T T", version: Version{1, 4}},
	{op: "div", mods: "$rnd ftz? f32", args: "=T T T", version: Version{1, 4}, sm: 20},
	{op: "div", mods: "rn f64", args: "=T T T", version: Version{1, 4}, sm: 13},
	{op: "div", mods: "rz|rm|rp f64", args: "=T T T", version: Version{1, 4}, sm: 20},
	{op: "rem", mods: "$int", args: "=T T T"},
	{op: "abs", mods: "s16|s32|s64", args: "=T T"},
	{op: "abs", mods: "ftz? f32", args: "=T T"},
	{op: "abs", mods: "f64", args: "=T T", sm: 13},
	{op: "neg", mods: "s16|s32|s64", args: "=T T"},
	{op: "neg", mods: "ftz? f32", args: "=T T"},
	{op: "neg", mods: "f64", args: "=T T", sm: 13},
	{op: "min", mods: "$int", args: "=T T T"},
	{op: "min", mods: "ftz? f32", args: "=T T T"},
	{op: "min", mods: "ftz? NaN f32", args: "=T T T", version: Version{7, 0}, sm: 80},
	{op: "min", mods: "f64", args: "=T T T", sm: 13},
	{op: "max", mods: "$int", args: "=T T T"},
	{op: "max", mods: "ftz? f32", args: "=T T T"},
	{op: "max", mods: "ftz? NaN f32", args: "=T T T", version: Version{7, 0}, sm: 80},
	{op: "max", mods: "f64", args: "=T T T", sm: 13},
	{op: "testp", mods: "finite|infinite|number|notanumber|normal|subnormal f32|f64", args: "=pred T", version: Version{2, 0}, sm: 20},
	{op: "copysign", mods: "f32|f64", args: "=T T T", version: Version{2, 0}, sm: 20},
	{op: "rcp", mods: "approx ftz? f32", args: "=T T", version: Version{1, 4}},
	{op: "rcp", mods: "$rnd ftz? f32", args: "=T T", version: Version{1, 4}, sm: 20},
	{op: "rcp", mods: "rn f64", args: "=T T", version: Version{1, 4}, sm: 13},
	{op: "rcp", mods: "rz|rm|rp f64", args: "=T T", version: Version{1, 4}, sm: 20},
	{op: "rcp", mods: "approx ftz f64", args: "=T T", version: Version{2, 1}, sm: 20},
	{op: "sqrt", mods: "approx ftz? f32", args: "=T T", version: Version{1, 4}},
	{op: "sqrt", mods: "$rnd ftz? f32", args: "=T T", version: Version{1, 4}, sm: 20},
	{op: "sqrt", mods: "rn f64", args: "=T T", version: Version{1, 4}, sm: 13},
	{op: "sqrt", mods: "rz|rm|rp f64", args: "=T T", version: Version{1, 4}, sm: 20},
	{op: "rsqrt", mods: "approx ftz? f32", args: "=T T", version: Version{1, 4}},
	{op: "rsqrt", mods: "approx f64", args: "=T T", version: Version{1, 4}, sm: 13},
	{op: "rsqrt", mods: "approx ftz f64", args: "=T T", version: Version{4, 0}, sm: 20},
	{op: "sin", mods: "approx ftz? f32", args: "=T T", version: Version{1, 4}},
	{op: "cos", mods: "approx ftz? f32", args: "=T T", version: Version{1, 4}},
	{op: "lg2", mods: "approx ftz? f32", args: "=T T", version: Version{1, 4}},
	{op: "ex2", mods: "approx ftz? f32", args: "=T T", version: Version{1, 4}},
	{op: "tanh", mods: "approx f32", args: "=T T", version: Version{7, 0}, sm: 75},

	// Bits.
	{op: "popc", mods: "b32|b64", args: "=u32 T", version: Version{2, 0}, sm: 20},
	{op: "clz", mods: "b32|b64", args: "=u32 T", version: Version{2, 0}, sm: 20},
	{op: "bfind", mods: "shiftamt? $cc", args: "=u32 T", version: Version{2, 0}, sm: 20},
	{op: "brev", mods: "b32|b64", args: "=T T", version: Version{2, 0}, sm: 20},
	{op: "bfe", mods: "$cc", args: "=T T u32 u32", version: Version{2, 0}, sm: 20},
	{op: "bfi", mods: "b32|b64", args: "=T T T u32 u32", version: Version{2, 0}, sm: 20},
	{op: "prmt", mods: "b32 f4e|b4e|rc8|ecl|ecr|rc16?", args: "=T T T u32", version: Version{2, 0}, sm: 20},
	{op: "and", mods: "pred|$bits", args: "=T T T"},
	{op: "or", mods: "pred|$bits", args: "=T T T"},
	{op: "xor", mods: "pred|$bits", args: "=T T T"},
	{op: "not", mods: "pred|$bits", args: "=T T"},
	{op: "cnot", mods: "$bits", args: "=T T"},
	{op: "lop3", mods: "b32", args: "=T T T T i", version: Version{4, 3}, sm: 50},
	{op: "shl", mods: "$bits", args: "=T T u32"},
	{op: "shr", mods: "$bits|$int", args: "=T T u32"},
	{op: "shf", mods: "l|r clamp|wrap b32", args: "=T T T u32", version: Version{3, 1}, sm: 32},

	// Comparison and choice.
	{op: "setp", mods: "eq|ne $bits", args: "=P T T"},
	{op: "setp", mods: "eq|ne and|or|xor $bits", args: "=P T T p"},
	{op: "setp", mods: "eq|ne|lt|le|gt|ge s16|s32|s64", args: "=P T T"},
	{op: "setp", mods: "eq|ne|lt|le|gt|ge and|or|xor s16|s32|s64", args: "=P T T p"},
	{op: "setp", mods: "eq|ne|lt|le|gt|ge|lo|ls|hi|hs u16|u32|u64", args: "=P T T"},
	{op: "setp", mods: "eq|ne|lt|le|gt|ge|lo|ls|hi|hs and|or|xor u16|u32|u64", args: "=P T T p"},
	{op: "setp", mods: "eq|ne|lt|le|gt|ge|equ|neu|ltu|leu|gtu|geu|num|nan ftz? f32", args: "=P T T"},
	{op: "setp", mods: "eq|ne|lt|le|gt|ge|equ|neu|ltu|leu|gtu|geu|num|nan and|or|xor ftz? f32", args: "=P T T p"},
	{op: "setp", mods: "eq|ne|lt|le|gt|ge|equ|neu|ltu|leu|gtu|geu|num|nan f64", args: "=P T T", sm: 13},
	{op: "setp", mods: "eq|ne|lt|le|gt|ge|equ|neu|ltu|leu|gtu|geu|num|nan and|or|xor f64", args: "=P T T p", sm: 13},
	{op: "set", mods: "eq|ne|lt|le|gt|ge u32|s32|f32 $int", args: "=T0 T T"},
	{op: "set", mods: "eq|ne|lt|le|gt|ge|equ|neu|ltu|leu|gtu|geu|num|nan ftz? u32|s32|f32 f32", args: "=T0 T T"},
	{op: "set", mods: "eq|ne|lt|le|gt|ge|equ|neu|ltu|leu|gtu|geu|num|nan u32|s32|f32 f64", args: "=T0 T T", sm: 13},
	{op: "selp", mods: "$any", args: "=T T T p"},
	{op: "slct", mods: "$any s32", args: "=T0 T0 T0 T"},
	{op: "slct", mods: "ftz? $any f32", args: "=T0 T0 T0 T"},

	// Moves, memory and conversion.
	{op: "mov", mods: "pred|$any", args: "=M M"},
	{op: "cvt", mods: "$cvt $cvt", args: "=~T0 ~T"},
	{op: "cvt", mods: "sat $cvt $cvt", args: "=~T0 ~T"},
	{op: "cvt", mods: "$rndi ftz? sat? $cvt f32", args: "=~T0 T"},
	{op: "cvt", mods: "$rndi sat? $cvt f64", args: "=~T0 T", sm: 13},
	{op: "cvt", mods: "$rnd ftz? sat? f32 $cvt", args: "=T0 ~T"},
	{op: "cvt", mods: "$rnd sat? f64 $cvt", args: "=T0 ~T", sm: 13},
	{op: "cvt", mods: "$rndi? ftz? sat? f32 f32", args: "=T0 T"},
	{op: "cvt", mods: "$rndi? sat? f64 f64", args: "=T0 T", sm: 13},
	{op: "cvt", mods: "$rnd ftz? sat? f32 f64", args: "=T0 T", sm: 13},
	{op: "cvt", mods: "ftz? sat? f64 f32", args: "=T0 T", sm: 13},
	{op: "cvta", mods: "global|shared|local u32|u64", args: "=T A", version: Version{2, 0}, sm: 20},
	{op: "cvta", mods: "to global|shared|local u32|u64", args: "=T T", version: Version{2, 0}, sm: 20},
	{op: "cvta", mods: "to? const u32|u64", args: "=T A", version: Version{3, 1}, sm: 20},
	{op: "isspacep", mods: "global|shared|local", args: "=pred A", version: Version{2, 0}, sm: 20},
	{op: "isspacep", mods: "const", args: "=pred A", version: Version{3, 1}, sm: 20},
	{op: "ld", mods: "$ld $vec? $mem", args: "=V []"},
	{op: "ld", mods: "$ld? ca|cg|cs|lu|cv? $vec? $mem", args: "=V []", version: Version{2, 0}, sm: 20},
	{op: "ld", mods: "volatile global|shared? $vec? $mem", args: "=V []", version: Version{1, 1}},
	{op: "ld", mods: "global ca|cg|cs? nc $vec? $mem", args: "=V []", version: Version{3, 1}, sm: 32},
	{op: "ld", mods: "relaxed|acquire cta|gpu|sys global|shared? $vec? $mem", args: "=V []", version: Version{6, 0}, sm: 70},
	{op: "ldu", mods: "global? $vec? $mem", args: "=V []", version: Version{2, 0}, sm: 20},
	{op: "st", mods: "$st $vec? $mem", args: "[] V"},
	{op: "st", mods: "$st? wb|cg|cs|wt? $vec? $mem", args: "[] V", version: Version{2, 0}, sm: 20},
	{op: "st", mods: "volatile global|shared? $vec? $mem", args: "[] V", version: Version{1, 1}},
	{op: "st", mods: "relaxed|release cta|gpu|sys global|shared? $vec? $mem", args: "[] V", version: Version{6, 0}, sm: 70},
	{op: "prefetch", mods: "global|local? L1|L2", args: "[]", version: Version{2, 0}, sm: 20},
	{op: "prefetchu", mods: "L1", args: "[]", version: Version{2, 0}, sm: 20},

	// Threads of a block and of a warp.
	{op: "bar", mods: "sync", args: "n n2?"},
	{op: "bar", mods: "arrive", args: "n n2", version: Version{2, 0}, sm: 20},
	{op: "bar", mods: "red popc u32", args: "=T n p", version: Version{2, 0}, sm: 20},
	{op: "bar", mods: "red and|or pred", args: "=T n p", version: Version{2, 0}, sm: 20},
	{op: "bar", mods: "warp sync", args: "u32", version: Version{6, 0}, sm: 30},
	{op: "barrier", mods: "sync aligned?", args: "n n2?", version: Version{6, 0}, sm: 30},
	{op: "membar", mods: "cta|gl", version: Version{1, 4}},
	{op: "membar", mods: "sys", version: Version{2, 0}, sm: 20},
	{op: "fence", mods: "sc|acq_rel cta|gpu|sys", version: Version{6, 0}, sm: 70},
	{op: "shfl", mods: "up|down|bfly|idx b32", args: "=Q T u32 u32", version: Version{3, 0}, sm: 30},
	{op: "shfl", mods: "sync up|down|bfly|idx b32", args: "=Q T u32 u32 u32", version: Version{6, 0}, sm: 30},
	{op: "vote", mods: "all|any|uni pred", args: "=T p", version: Version{1, 2}, sm: 12},
	{op: "vote", mods: "ballot b32", args: "=T p", version: Version{2, 0}, sm: 20},
	{op: "vote", mods: "sync all|any|uni pred", args: "=T p u32", version: Version{6, 0}, sm: 30},
	{op: "vote", mods: "sync ballot b32", args: "=T p u32", version: Version{6, 0}, sm: 30},
	{op: "activemask", mods: "b32", args: "=T", version: Version{6, 2}, sm: 30},
	{op: "match", mods: "any sync b32|b64", args: "=u32 T u32", version: Version{6, 0}, sm: 70},
	{op: "match", mods: "all sync b32|b64", args: "=Q32 T u32", version: Version{6, 0}, sm: 70},
	{op: "redux", mods: "sync add|min|max u32|s32", args: "=T T u32", version: Version{7, 0}, sm: 80},
	{op: "redux", mods: "sync and|or|xor b32", args: "=u32 u32 u32", version: Version{7, 0}, sm: 80},

	// Control.
	{op: "bra", mods: "uni?", args: "L"},
	{op: "call", mods: "uni?", args: "C"},
	{op: "ret", mods: "uni?"},
	{op: "exit"},
	{op: "trap"},
	{op: "brkpt", sm: 11},
	{op: "nanosleep", mods: "u32", args: "u32", version: Version{6, 3}, sm: 70},
}

var atomRows = []row{
	{op: "atom", mods: "and|or|xor|exch b32", args: "=T [] T", sm: 20},
	{op: "atom", mods: "exch b64", args: "=T [] T", version: Version{1, 2}, sm: 20},
	{op: "atom", mods: "cas b32|b64", args: "=T [] T T", version: Version{1, 2}, sm: 20},
	{op: "atom", mods: "add u32|s32|u64", args: "=T [] T", version: Version{1, 2}, sm: 20},
	{op: "atom", mods: "inc|dec u32", args: "=T [] T", sm: 20},
	{op: "atom", mods: "min|max u32|s32", args: "=T [] T", sm: 20},
	{op: "atom", mods: "and|or|xor b64", args: "=T [] T", version: Version{3, 1}, sm: 32},
	{op: "atom", mods: "min|max u64|s64", args: "=T [] T", version: Version{3, 1}, sm: 32},
	{op: "atom", mods: "add f32", args: "=T [] T", version: Version{2, 0}, sm: 20},
	{op: "atom", mods: "add f64", args: "=T [] T", version: Version{5, 0}, sm: 60},
	{op: "red", mods: "and|or|xor b32", args: "[] T", sm: 20},
	{op: "red", mods: "add u32|s32|u64", args: "[] T", version: Version{1, 2}, sm: 20},
	{op: "red", mods: "inc|dec u32", args: "[] T", sm: 20},
	{op: "red", mods: "min|max u32|s32", args: "[] T", sm: 20},
	{op: "red", mods: "and|or|xor b64", args: "[] T", version: Version{3, 1}, sm: 32},
	{op: "red", mods: "min|max u64|s64", args: "[] T", version: Version{3, 1}, sm: 32},
	{op: "red", mods: "add f32", args: "[] T", version: Version{2, 0}, sm: 20},
	{op: "red", mods: "add f64", args: "[] T", version: Version{5, 0}, sm: 60},
}

// specials are the special registers.
var specials = func() map[string]SpecialReg {
	m := map[string]SpecialReg{}
	for _, n := range []string{"%tid", "%ntid", "%ctaid", "%nctaid"} {
		for _, c := range []string{".x", ".y", ".z"} {
			m[n+c] = SpecialReg{Type: U32, Version: Version{1, 0}}
		}
	}
	for n, v := range map[string]Version{"%laneid": {1, 3}, "%warpid": {1, 3}, "%nwarpid": {2, 0}, "%smid": {1, 3}, "%nsmid": {2, 0}, "%clock": {1, 0},
		"%clock_hi": {5, 0}, "%lanemask_eq": {2, 0}, "%lanemask_le": {2, 0}, "%lanemask_lt": {2, 0}, "%lanemask_ge": {2, 0}, "%lanemask_gt": {2, 0},
		"%globaltimer_lo": {3, 1}, "%globaltimer_hi": {3, 1}, "%total_smem_size": {4, 1}, "%dynamic_smem_size": {4, 1}} {
		m[n] = SpecialReg{Type: U32, Version: v}
	}
	for n, v := range map[string]Version{"%gridid": {3, 0}, "%clock64": {2, 0}, "%globaltimer": {3, 1}} {
		m[n] = SpecialReg{Type: U64, Version: v}
	}
	return m
}()

// SpecialReg says what a special register is.
type SpecialReg struct {
	Type    Type
	Version Version
}

// LookupSpecial returns the special register of that name, e.g. "%tid.x".
func LookupSpecial(name string) (SpecialReg, bool) {
	s, ok := specials[name]
	return s, ok
}

// targets lists the architectures and the version that introduced each.
var targets = []struct {
	sm      int
	version Version
}{
	{10, Version{1, 0}}, {11, Version{1, 0}}, {12, Version{1, 2}}, {13, Version{1, 2}}, {20, Version{2, 0}}, {30, Version{3, 0}}, {32, Version{4, 0}}, {35, Version{3, 1}},
	{37, Version{4, 1}}, {50, Version{4, 0}}, {52, Version{4, 1}}, {53, Version{4, 2}}, {60, Version{5, 0}}, {61, Version{5, 0}}, {62, Version{5, 0}},
	{70, Version{6, 0}}, {72, Version{6, 1}}, {75, Version{6, 3}}, {80, Version{7, 0}}, {86, Version{7, 1}}, {87, Version{7, 4}}, {89, Version{7, 8}}, {90, Version{7, 8}},
	{100, Version{8, 6}}, {101, Version{8, 6}}, {120, Version{8, 7}},
}

// TargetVersion returns the version that introduced .target sm_NN.
func TargetVersion(sm int) (Version, bool) {
	for _, t := range targets {
		if t.sm == sm {
			return t.version, true
		}
	}
	return Version{}, false
}
