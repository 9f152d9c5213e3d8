package ptx

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
)

// author writes random modules that use every row of the table.
type author struct {
	*rand.Rand
	m *Module
	f *Func
}

func pick[T any](a *author, xs ...T) T { return xs[a.IntN(len(xs))] }

func (a *author) bits() uint64 {
	return pick(a, 0, 1, ^uint64(0), 1<<63, 1<<63-1, 1<<31, 0x7FF8000000000001, a.Uint64(), a.Uint64()>>32)
}

func (a *author) variable(space Space, name string) Var {
	v := Var{Space: space, Type: pick(a, B8, B16, B32, B64, U8, U16, U32, U64, S8, S16, S32, S64, F32, F64), Name: name, Align: pick(a, 0, 0, 8, 16)}
	if v.Array = a.IntN(2) == 0; v.Array {
		v.Len = 1 + a.IntN(5)
	}
	if space == Global || space == Const {
		for range a.IntN(max(v.Len, 1) + 1) {
			x := a.bits()
			switch n := v.Type.Bits(); {
			case v.Type.IsSigned():
				x = uint64(int64(x<<(64-n)) >> (64 - n))
			case n < 64:
				x &= 1<<n - 1
			}
			v.Init = append(v.Init, x)
		}
	}
	return v
}

// opcode fills the slots of a form.
func (a *author) opcode(f *Form) (string, *Decoded) {
	for {
		op := f.Op
		for _, s := range f.Slots {
			if !s.Optional || a.IntN(2) == 0 {
				op += "." + pick(a, s.Words...)
			}
		}
		d, err := Decode(op)
		if err != nil {
			panic(err)
		}
		// What Verify refuses.
		if d.Type.Bits()*d.Vec <= 128 && !(d.Op == "cvta" && d.Type == U32) && !(d.Op == "cvt" && d.Has("sat") && !d.Types[0].IsFloat() && holds(d.Types[0], d.Type)) {
			return op, d
		}
	}
}

// register finds or declares a register that fits.
func (a *author) register(fits func(Type) bool) Operand {
	var ids []RegID
	for i, r := range a.f.Regs {
		if fits(r.Type) {
			ids = append(ids, RegID(i))
		}
	}
	return R(ids[a.IntN(len(ids))])
}

func (a *author) value(t Type, dest, loose bool) Operand {
	if !dest && t != Pred && a.IntN(3) == 0 {
		switch {
		case t == F32:
			return Operand{Kind: KindF32, Bits: a.bits() & 0xFFFFFFFF}
		case t == F64:
			return Operand{Kind: KindF64, Bits: a.bits()}
		}
		return Operand{Kind: KindInt, Bits: a.bits()}
	}
	return a.register(func(r Type) bool { return agree(t, r) || loose && relaxed(t, r) })
}

func (a *author) operand(d *Decoded, shape string) Operand {
	shape, dest := strings.CutPrefix(shape, "=")
	is := func(t Type) func(Type) bool { return func(r Type) bool { return r == t } }
	switch shape {
	case "[]":
		switch a.IntN(3) {
		case 0:
			if d.Op == "st" && d.Space == ParamSpace {
				return SymAddr("arg", 0)
			}
			if d.Space != Generic && d.Space != Local {
				return SymAddr(map[Space]string{Global: "g0", Const: "c0", Shared: "s0", ParamSpace: "p0"}[d.Space], pick(a, int64(0), 8, -8))
			}
		case 1:
			if d.Space == Local {
				return Operand{Kind: KindAddr, Reg: NoReg, Off: int64(8 * a.IntN(10))}
			}
		}
		return Addr(a.register(is(B64)).Reg, pick(a, int64(0), 4, -16, 1<<20))
	case "L":
		return To(pick(a, "A", "$L_1"))
	case "C":
		return Operand{}
	case "P":
		p := a.register(is(Pred))
		if a.IntN(3) == 0 {
			return Pair(p, pick(a, a.register(is(Pred)), Operand{Kind: KindSink}))
		}
		return p
	case "p":
		p := a.register(is(Pred))
		p.Not = a.IntN(2) == 0
		return p
	case "Q", "Q32":
		t := d.Type
		if shape == "Q32" {
			t = U32
		}
		r := a.value(t, true, false)
		if a.IntN(2) == 0 {
			return Pair(r, a.register(is(Pred)))
		}
		return r
	case "V":
		if d.Vec == 0 {
			return a.value(d.Type, dest, true)
		}
		first := a.value(d.Type, true, true)
		es := []Operand{first}
		for len(es) < d.Vec {
			es = append(es, a.register(is(a.f.Regs[first.Reg].Type)))
		}
		return Vec(es...)
	case "A":
		t := d.Type
		if t == NoType {
			t = U64
		}
		return a.value(t, true, false)
	case "M":
		if !dest && d.Type == U32 && a.IntN(2) == 0 {
			return Special(pick(a, "%tid.x", "%nctaid.z", "%laneid"))
		}
		if !dest && d.Type == U64 && a.IntN(2) == 0 {
			return Sym(pick(a, "g0", "s0"), pick(a, int64(0), 8))
		}
		return a.value(d.Type, dest, false)
	case "n":
		return pick(a, Int(0), a.register(is(U32)))
	case "n2":
		return pick(a, Int(64), a.register(is(U32)))
	case "u32":
		if !dest && a.IntN(2) == 0 {
			return Int(int64(a.IntN(32)))
		}
		return a.register(func(r Type) bool { return agree(U32, r) })
	case "i":
		return Int(int64(a.IntN(256)))
	}
	shape, loose := strings.CutPrefix(shape, "~")
	t := map[string]Type{"T": d.Type, "W": wider(d.Type)}[shape]
	if shape == "T0" {
		t = d.Types[0]
	} else if t == NoType {
		t = ParseType(shape)
	}
	return a.value(t, dest, loose)
}

func (a *author) instr(f *Form) Instr {
	op, d := a.opcode(f)
	in := Instr{Opcode: op}
	if op == "call" || op == "call.uni" {
		in.Args = []Operand{{Kind: KindList, Elems: []Operand{a.value(F64, true, false)}}, {Kind: KindFunc, Sym: "helper"}, {Kind: KindList, Elems: []Operand{a.value(U64, false, false), Sym("l0", 0)}}}
		return in
	}
	for _, shape := range d.Form.Args {
		shape, optional := strings.CutSuffix(shape, "?")
		if optional && a.IntN(2) == 0 {
			break
		}
		in.Args = append(in.Args, a.operand(d, shape))
	}
	if a.IntN(4) == 0 {
		in.Guard = Guard{On: true, Not: a.IntN(2) == 0, Reg: a.register(func(t Type) bool { return t == Pred }).Reg}
	}
	return in
}

func (a *author) function(k int, forms []*Form) *Func {
	f := &Func{Entry: true, Name: fmt.Sprint("kernel", k), Linkage: Visible}
	a.f = f
	for i := range 2 + a.IntN(3) {
		f.Params = append(f.Params, a.variable(ParamSpace, fmt.Sprint("p", i)))
	}
	f.Params[1] = Var{Space: ParamSpace, Type: U64, Name: "p1", Ptr: true, PtrSpace: Global, PtrAlign: 8}
	f.Vars = []Var{{Space: Local, Name: "l0", Type: B8, Array: true, Len: 8, Align: 8}, a.variable(Shared, "s1"), {Space: ParamSpace, Type: B64, Name: "arg"}}
	for t := Pred; t < numTypes; t++ {
		if t.Bits() == 8 {
			continue
		}
		if a.IntN(4) == 0 {
			f.AddReg(t, fmt.Sprintf("own_%v", t))
		}
		for n := range 1 + a.IntN(3) {
			f.AddReg(t, fmt.Sprintf("%%%v_%d", t, n))
		}
	}
	if a.IntN(2) == 0 {
		f.Bounds = []Bound{{"maxntid", []int{256, 1, 1}}, {"minnctapersm", []int{2}}}
	}
	loc := Loc{}
	f.AddLabel("A")
	for _, form := range forms {
		switch a.IntN(8) {
		case 0:
			loc = Loc{1 + a.IntN(2), 1 + a.IntN(50), a.IntN(9)}
		case 1:
			f.AddLabel(fmt.Sprint("L", len(f.Labels)))
		case 2:
			f.Pragmas = append(f.Pragmas, Pragma{"nounroll", len(f.Instrs)})
		}
		in := a.instr(form)
		in.Loc = loc
		f.Instrs = append(f.Instrs, in)
	}
	f.AddLabel("$L_1")
	return f
}

func (a *author) module() *Module {
	m := &Module{Version: Version{8, 0}, Target: 90, AddressSize: 64, Files: []File{{1, "cell 3"}, {2, "a b.go"}}}
	a.m = m
	m.Vars = []Var{{Space: Global, Type: B64, Array: true, Len: 3, Name: "g0"}, {Space: Const, Type: F64, Array: true, Len: 4, Name: "c0", Init: []uint64{1 << 63, 5}},
		{Space: Shared, Type: B8, Array: true, Name: "s0", Linkage: Extern, Align: 16}}
	for i := range a.IntN(4) {
		m.Vars = append(m.Vars, a.variable(pick(a, Global, Const, Shared), fmt.Sprint("v", i)))
	}
	m.Funcs = []*Func{{Name: "helper", Linkage: Extern, Proto: true, Results: []Var{{Space: ParamSpace, Type: F64, Name: "r"}},
		Params: []Var{{Space: ParamSpace, Type: U64, Name: "x"}, {Space: ParamSpace, Type: B8, Array: true, Len: 8, Name: "y", Align: 8}}}}
	all := append([]*Form(nil), Forms()...)
	a.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	m.Funcs = append(m.Funcs, a.function(0, all), a.function(1, all[:20]))
	return m
}

// plain forgets where instructions were found.
func plain(m *Module) *Module {
	for _, f := range m.Funcs {
		for i := range f.Instrs {
			f.Instrs[i].Pos = Pos{}
		}
	}
	return m
}

func TestRoundTrip(t *testing.T) {
	for seed := range uint64(60) {
		a := &author{Rand: rand.New(rand.NewPCG(seed, 1))}
		m := a.module()
		if err := Verify(m); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		text := m.String()
		got, err := Parse(text)
		if err != nil {
			t.Fatalf("seed %d: %v\n%s", seed, err, text)
		}
		if plain(got); !reflect.DeepEqual(got, m) {
			second := got.String()
			for i, l := range strings.Split(text, "\n") {
				if s := strings.Split(second, "\n"); i >= len(s) || s[i] != l {
					t.Fatalf("seed %d, line %d: %q became %q", seed, i+1, l, s[min(i, len(s)-1)])
				}
			}
			for k := range m.Funcs {
				for i := range m.Funcs[k].Instrs {
					if x, y := m.Funcs[k].Instrs[i], got.Funcs[k].Instrs[i]; !reflect.DeepEqual(x, y) {
						t.Fatalf("seed %d: %+v became %+v", seed, x, y)
					}
				}
			}
			t.Fatalf("seed %d: prints alike but differs\n%+v\n%+v", seed, m, got)
		}
	}
}

// TestParseDamaged feeds texts cut anywhere, and with a token lost: an error
// with a position or a module, never a panic.
func TestParseDamaged(t *testing.T) {
	a := &author{Rand: rand.New(rand.NewPCG(7, 7))}
	text := a.module().String()
	for range 300 {
		i := a.IntN(len(text))
		j := min(len(text), i+1+a.IntN(6))
		for _, s := range []string{text[:i], text[:i] + text[j:], text[:i] + pick(a, "{", "}", ";", "[", "]", ",", "|", "<", "@", "%", "\"", "-", ".x", "0x", "/*") + text[i:]} {
			if _, err := Parse(s); err != nil {
				if _, ok := err.(*Error); !ok {
					t.Fatalf("%T: %v", err, err)
				}
			}
		}
	}
}

const handWritten = `
// a comment
.version 6.0  .target sm_35, debug
.address_size 64
.file 1 "x.cu", 1600000000, 1234
.global .align 4 .u32 counter, other;
.const .f32 table[2][2] = {{1.0, 0f3F000000}, {-2.5e1, 4.0}};
.func (.param .b32 out) twice (.param .b32 in)
{ .reg .u32 %r<2>;
  ld.param.u32 %r0, [in]; add.u32 %r1, %r0, %r0; st.param.u32 [out], %r1; ret; }
.visible .entry
k(.param .u64 .ptr .global .align 4 data, .param .f32 x) .reqntid 32, 1, 1
{
	.reg .pred p, q; .reg .b32 %a<3>, %b; .reg .b64 %d<2>; .reg .f32 %f<6>;
	.shared .align 16 .b8 buf[256];
	.loc 1 5 3, function_name $info, inlined_at 1 9 2
	ld.param.u64 %d0, [data];	/* over
	two lines */ cvta.to.global.u64 %d0, %d0;
$again:	mov.u32 %a0, %tid.x;
	setp.lt.and.u32 p|q, %a0, 0x10U, !p;
@!p	bra.uni $again;
	{ .reg .b32 %a0; .param .b32 t0; .param .b32 t1;
	  mov.u32 %a0, WARP_SZ; st.param.b32 [t0+0], %a0;
	  call.uni (t1), twice, (t0);
	  ld.param.b32 %a1, [t1]; $again: bra $again; }
	ld.global.v2.f32 {%f0, %f1}, [%d0-8];
	add.f32 %f2, %f0, 1.5;
	.pragma "nounroll";
	mov.b64 {%a1, %a2}, %d0; mov.b64 %d1, {%a1, %a2};
	shfl.down.b32 %b|q, %a0, 1, 31; atom.global.add.u32 %b, [counter], 1;
	bar.sync 0; @p exit; st.shared.f32 [buf+4], %f2; ret;
}`

func TestParseHandWritten(t *testing.T) {
	m, err := Parse(handWritten)
	if err != nil {
		t.Fatal(err)
	}
	text := m.String()
	for _, want := range []string{
		".reg .b32 %a0_1;", "mov.u32 %a0_1, 32;", "@!p bra.uni $again;", "bra $again_1;", "[%d0+-8]", "add.f32 %f2, %f0, 0f3FC00000;", ".loc 1 5 3\n",
		".const .f32 table[4] = {0f3F800000, 0f3F000000, 0fC1C80000, 0f40800000};", ".global .align 4 .u32 other;", ".target sm_35, debug", ".param .u64 .ptr .global .align 4 data",
		"setp.lt.and.u32 p|q, %a0, 16, !p;", "call.uni (t1), twice, (t0);", ".reqntid 32, 1, 1",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	again, err := Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(plain(again), plain(m)) {
		t.Errorf("changed by a second round:\n%s\n%s", text, again)
	}
	if v, sm := Requires(m); v != (Version{3, 0}) || sm != 30 {
		t.Errorf("requires %v, sm_%d", v, sm)
	}
}

func TestErrors(t *testing.T) {
	wrap := func(body string) string {
		return ".version 3.1\n.target sm_35\n.address_size 64\n.entry k(.param .u64 a) {\n.reg .f64 %x<2>; .reg .b32 %r<2>; .reg .b64 %d; .reg .pred p;\n" + body + "\n}"
	}
	for _, c := range []struct{ text, want string }{
		{"mov.u32 %r0, 1;", "ptx:1:1: found mov.u32; PTX begins with .version"},
		{wrap("add.f65 %x0, %x0, %x1;"), "ptx:6:1: add does not take .f65 here"},
		{wrap("add.rn %x0, %x0, %x1;"), "ptx:6:1: add.rn is not complete: a modifier or type is missing"},
		{wrap("frob.u32 %r0, 1;"), `ptx:6:1: unknown instruction "frob"`},
		{wrap("add.f64 %x0, %x9, %x1;"), "ptx:6:14: %x9 is not declared"},
		{wrap("add.f64 %x0, %r0, %x1;"), "operand 2 has a register of type .b32, not .f64"},
		{wrap("add.f64 %x0, 1, %x1;"), "operand 2 does not fit .f64"},
		{wrap("add.f64 %x0, %x1;"), "an operand is missing: add{.rn|.rz|.rm|.rp}.f64 =T, T, T"},
		{wrap("add.f64 %x0, %x1, %x1, %x1;"), "too many operands"},
		{wrap("bra nowhere;"), "nowhere is not declared"},
		{wrap("@%r0 bra nowhere;"), "nowhere is not declared"},
		{wrap("L: @%r0 bra L;"), "the guard is not a predicate"},
		{wrap("match.any.sync.b32 %r0, %r1, 1;"), "needs .version 6.0"},
		{wrap("ld.global.f64 %x0, [a];"), "is in .param, not .global"},
		{wrap("ld.global.f64 %x0, [%x0];"), "has an address of type .f64"},
		{wrap("shl.b64 %d, %d, %d;"), "operand 3 has a register of type .b64, not .u32"},
		{wrap("L: ret; L: ret;"), "L is declared twice"},
		{wrap("ret"), "found }, want a constant"},
		{wrap("mov.u32 %r0, 12z;"), "ptx:6:14: 12z is not a number"},
		{wrap("{ ret;"), "k does not end: } is missing"},
		{".version 3.0\n.target sm_35", ".target sm_35 needs .version 3.1, not 3.0"},
		{".version 3.1\n.target sm_35\n.section .debug {}", ".section is not a directive that we know"},
	} {
		_, err := Parse(c.text)
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), "ptx:") {
			t.Errorf("%s: error %v, want %s", c.text[strings.LastIndex(c.text[:len(c.text)-1], "\n")+1:], err, c.want)
		}
	}
}

// TestTable checks that no row hides behind another that asks for more.
func TestTable(t *testing.T) {
	used := map[int]bool{}
	a := &author{Rand: rand.New(rand.NewPCG(1, 2))}
	for _, f := range Forms() {
		for range 50 {
			op, d := a.opcode(f)
			if d.Form.SM > f.SM || f.Version.Less(d.Form.Version) {
				t.Errorf("%s decodes to %v, which asks for more than %v", op, d.Form, f)
			}
			used[d.Form.ID] = true
		}
	}
	if len(used) != len(Forms()) {
		t.Errorf("%d rows are never decoded to", len(Forms())-len(used))
	}
}
