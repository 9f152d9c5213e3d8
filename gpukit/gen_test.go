package gpukit

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"gpunotes/gpukit/internal/ir"
)

// author writes random Go functions that the Go compiler accepts and that end:
// every loop burns fuel. Some take slices that they change.
type author struct {
	*rand.Rand
	b      *batch
	vars   []variable // in scope
	depth  int        // of statements
	names  int
	loops  []string // labels of enclosing loops
	done   []*authored
	calls  int
	res    string // result type of the present function
	ind    string
	flat   bool // no elements for now
	slices bool // the present function has x []X and m [][]M
	elem   []string
	libs   []ir.MathFn
}

type variable struct{ name, typ string }

// authored is a function that was written.
type authored struct {
	*batched
	cost int // calls that it makes at most
}

func newAuthor(r *rand.Rand, b *batch) *author {
	a := &author{Rand: r, b: b}
	b.conversions()
	b.text.WriteString(authorPrelude)
	for i := range ir.NumMath() {
		if fn := ir.MathFn(i); fn.Row().Go() {
			a.libs = append(a.libs, fn)
		}
	}
	return a
}

const authorPrelude = `
type S struct {
	a int
	b [4]int8
	c struct{ d float64; e [2]bool }
}

var table = [...]int32{3, 1, 4, 1, 5, 9, 2, 6}

var weights = [...]float64{0.5, -1, 1e300, 3}

func turn(a [4]int, s S) ([4]int, S) {
	for i, v := range a {
		a[(i+s.a)&3] += v
		s.b[i] -= int8(v)
		s.c.d += weights[i]
	}
	s.c.e[0] = !s.c.e[1]
	return a, s
}

`

func (a *author) pick(s ...string) string { return s[a.IntN(len(s))] }

func (a *author) typ() string { return a.pick(goTypes...) }

func (a *author) integer() string { return a.pick(goTypes[1:11]...) }

func (a *author) line(format string, args ...any) {
	fmt.Fprintf(&a.b.text, a.ind+format+"\n", args...)
}

func (a *author) fresh() string {
	a.names++
	return fmt.Sprintf("v%d", a.names)
}

func isFloat(t string) bool { return strings.HasPrefix(t, "float") }

func isInt(t string) bool { return strings.Contains(t, "int") }

// convert is x of type from as a t.
func convert(t, from, x string) string {
	switch {
	case from == t:
		return x
	case isInt(t) && isFloat(from):
		return "to_" + t + "_" + from + "(" + x + ")"
	}
	return t + "(" + x + ")"
}

// variable gives an expression of type t with a variable in it.
func (a *author) variable(t string) string {
	if a.IntN(3) == 0 {
		if e := a.element(t); e != "" {
			return e
		}
	}
	var have []string
	for _, v := range a.vars {
		if v.typ == t {
			have = append(have, v.name)
		}
	}
	if len(have) > 0 && a.IntN(8) > 0 {
		return have[a.IntN(len(have))]
	}
	for range 20 {
		switch v := a.vars[a.IntN(len(a.vars))]; {
		case !slices.Contains(goTypes, v.typ) || v.typ == "bool":
		case t == "bool":
			return "(" + v.name + " > 1)"
		default:
			return convert(t, v.typ, v.name)
		}
	}
	if t == "bool" {
		return "(fuel > 20)"
	}
	return convert(t, "int", "fuel")
}

// arrayTypes are of variables that are not scalars; in functions that take slices
// there are two more, "view" of a part of x and "row" of a part of m.
var arrayTypes = []string{"[4]int", "[2]uint8", "[4]float64", "[2]float32", "[8]int16", "[4]bool", "[2]uint32", "[4]uint64", "[2]int64", "[4]int32", "[2]uint16", "[4]int8", "[2]uint", "[2][4]int8", "S", "[2]S"}

// index is an index of n elements, a power of 2, seldom out of range.
func (a *author) index(n int) string {
	switch k := a.IntN(80); {
	case k == 0:
		return a.variable(a.pick("int", "uint8"))
	case k < 40:
		return fmt.Sprint(a.IntN(n))
	}
	return fmt.Sprintf("%s&%d", a.variable(a.pick("int", "uint8", "uint64", "int8", "int32")), n-1)
}

// element is an element of type t of some variable, "" if there is none.
func (a *author) element(t string) string {
	if len(a.vars) == 0 || a.flat {
		return ""
	}
	a.flat = true // indices are not elements again
	defer func() { a.flat = false }()
	var have []string
	for range 3 {
		v := a.vars[a.IntN(len(a.vars))]
		s, typ := v.name, v.typ
		if typ == "[2]S" {
			s, typ = s+"["+a.index(2)+"]", "S"
		}
		switch {
		case typ == "S" && t == "int":
			have = append(have, s+".a")
		case typ == "S" && t == "int8":
			have = append(have, s+".b["+a.index(4)+"]")
		case typ == "S" && t == "float64":
			have = append(have, s+".c.d")
		case typ == "S" && t == "bool":
			have = append(have, s+".c.e["+a.index(2)+"]")
		case typ == "[2][4]int8" && t == "int8":
			have = append(have, s+"["+a.index(2)+"]["+a.index(4)+"]")
		case typ == "view" && t == a.elem[0] || typ == "row" && t == a.elem[1]:
			have = append(have, s+"["+a.pick("0", "len("+s+")-1")+"]")
		case len(typ) > 3 && typ[0] == '[' && typ[3:] == t:
			have = append(have, s+"["+a.index(int(typ[1]-'0'))+"]")
		}
	}
	if a.slices && t == a.elem[0] {
		have = append(have, "x["+a.index(4)+"]", "x[len(x)-1]")
	}
	if a.slices && t == a.elem[1] {
		have = append(have, "m["+a.index(2)+"]["+a.index(4)+"]")
	}
	if t == "int32" {
		have = append(have, "table["+a.index(8)+"]")
	}
	if t == "float64" && a.IntN(3) == 0 {
		have = append(have, "weights["+a.index(4)+"]")
	}
	if len(have) == 0 {
		return ""
	}
	return have[a.IntN(len(have))]
}

// composite is a value of an array type.
func (a *author) composite(t string) string {
	for _, v := range a.vars {
		if v.typ == t && a.IntN(2) == 0 {
			return v.name
		}
	}
	switch t {
	case "view":
		return a.pick("x", "x[1:]", "x[:3]", "x["+a.index(2)+":4]")
	case "row":
		return a.pick("m["+a.index(2)+"]", "m["+a.index(2)+"][2:]", "m[1][:1]")
	case "[2][4]int8":
		return "[2][4]int8{{1, " + a.expr("int8", 1) + "}, {3: 9}}"
	case "S":
		return a.pick("S{}", "S{a: "+a.expr("int", 1)+", b: [4]int8{1, 2, 3, "+a.expr("int8", 1)+"}}")
	case "[2]S":
		return "[2]S{1: " + a.composite("S") + "}"
	}
	e := t[3:]
	return a.pick(t+"{"+a.expr(e, 1)+", "+a.expr(e, 1)+"}", t+"{1: "+a.expr(e, 1)+"}", t+"{}")
}

// arrayStmt is a statement on arrays and structs.
func (a *author) arrayStmt() {
	t := a.pick(arrayTypes...)
	if a.slices && a.IntN(3) == 0 {
		t = a.pick("view", "row")
	}
	array := t != "view" && t != "row"
	var same []string
	for _, v := range a.vars {
		if v.typ == t {
			same = append(same, v.name)
		}
	}
	switch k := a.IntN(6); {
	case k < 2 || len(same) == 0:
		name := a.fresh()
		if k == 0 && array {
			a.line("var %s %s", name, t)
		} else {
			a.line("%s := %s", name, a.composite(t))
		}
		a.line("_ = %s", name)
		a.vars = append(a.vars, variable{name, t})
	case k == 2:
		a.line("%s = %s", same[a.IntN(len(same))], a.composite(t))
	case k == 3 && array:
		a.line("if %s %s %s {", same[0], a.pick("==", "!="), same[len(same)-1])
		a.block(1)
		a.line("}")
	case k == 4:
		a.line("%s, %s = %s, %s", same[0], same[len(same)-1], same[len(same)-1], same[0])
	default:
		for _, v := range a.vars {
			switch v.typ {
			case "S":
				a.line("_, %s = turn(%s, %s)", v.name, a.composite("[4]int"), v.name)
				return
			case "[4]int":
				a.line("%s, _ = turn(%s, %s)", v.name, v.name, a.composite("S"))
				return
			}
		}
	}
}

func (a *author) constant(t string) string {
	switch {
	case t == "bool":
		return a.pick("true", "false")
	case isFloat(t):
		return a.pick("0.5", "1", "3", "1e3", "0.1", "7")
	}
	return a.pick("1", "2", "3", "5", "7", "100")
}

// joined is x op y, where y, or rarely x, may be a constant in its place.
func (a *author) joined(t, op, x string, y func() string) string {
	c := a.constant(t)
	if op != " / " && a.IntN(3) == 0 {
		c = "0"
	}
	switch k := a.IntN(12); {
	case k < 4:
		return x + op + c
	case k == 4:
		return c + op + x
	}
	return x + op + y()
}

// library is a call of a function of math or math/bits whose result is a t.
func (a *author) library(t string, depth int) string {
	var fits []ir.MathFn
	for _, fn := range a.libs {
		if fn.Row().Out == irTypes[t] {
			fits = append(fits, fn)
		}
	}
	if len(fits) == 0 {
		return ""
	}
	fn := fits[a.IntN(len(fits))]
	row := fn.Row()
	pkg, name, _ := strings.Cut(row.Name, ".")
	name, part, two := strings.Cut(name, ".")
	var args []string
	for _, in := range row.In {
		p := map[ir.Type]string{ir.Bool: "bool", ir.I64: "int", ir.U8: "uint8", ir.U16: "uint16", ir.U32: "uint32", ir.U64: "uint64", ir.F32: "float32", ir.F64: "float64"}[in]
		if pkg == "bits" && in == ir.U64 && !strings.HasSuffix(name, "64") {
			p = "uint"
		}
		args = append(args, a.expr(p, depth-1))
	}
	if strings.HasPrefix(name, "Add") || strings.HasPrefix(name, "Sub") {
		args[2] = "(" + args[2] + " & 1)" // Go leaves open what another carry does
	}
	if name == "Jn" || name == "Yn" {
		args[0] = "(" + args[0] + " % 20)"
	}
	call := pkg + "." + name + "(" + strings.Join(args, ", ") + ")"
	if two {
		v := a.fresh()
		left := v + ", _"
		if part == "exp" || part == "sign" || part == "cos" || part == "frac" && name == "Modf" || part == "carry" || part == "borrow" || part == "lo" {
			left = "_, " + v
		}
		a.line("%s := %s", left, call)
		a.line("_ = %s", v)
		call = v
	}
	out := map[ir.Type]string{ir.Bool: "bool", ir.I64: "int", ir.U8: "uint8", ir.U16: "uint16", ir.U32: "uint32", ir.U64: "uint64", ir.F32: "float32", ir.F64: "float64"}[row.Out]
	if pkg == "bits" && row.Out == ir.U64 && !strings.HasSuffix(name, "64") {
		out = "uint"
	}
	return convert(t, out, call)
}

// expr is an expression of type t. It may write statements before itself, so it
// must not stand where only some evaluate it.
func (a *author) expr(t string, depth int) string {
	if depth <= 0 {
		return a.variable(t)
	}
	again := func() string { return a.expr(t, depth-1) }
	right := func() string {
		if a.IntN(3) == 0 {
			return a.constant(t)
		}
		return again()
	}
	switch a.IntN(14) {
	case 0:
		if len(a.done) == 0 {
			break
		}
		// A cheap function that was written before.
		if k := a.done[a.IntN(len(a.done))]; k.result == t && k.cost+a.calls < 2 && (k.elem == nil || a.slices && slices.Equal(k.elem, a.elem)) {
			a.calls += 1 + k.cost
			var args []string
			for _, p := range k.params {
				args = append(args, a.expr(p, depth-1))
			}
			if k.elem != nil {
				args = append(args, "x", "m")
			}
			return k.name + "(" + strings.Join(args, ", ") + ")"
		}
	case 1, 2:
		if s := a.library(t, depth); s != "" {
			return s
		}
	}
	x := a.expr(t, depth-1)
	switch {
	case t == "bool":
		switch a.IntN(4) {
		case 0:
			return "!(" + x + ")"
		case 1:
			return "(" + x + a.pick(" && ", " || ", " == ", " != ") + "(" + a.expr(t, depth-1) + "))"
		}
		u := a.pick(goTypes[1:]...)
		return "(" + a.expr(u, depth-1) + a.pick(" < ", " <= ", " > ", " >= ", " == ", " != ") + a.expr(u, depth-1) + ")"
	case isFloat(t):
		switch a.IntN(8) {
		case 0:
			return "-(" + x + ")"
		case 1:
			from := a.pick(goTypes[1:]...)
			return t + "(" + a.expr(from, depth-1) + ")"
		case 2:
			return a.pick("min", "max") + "(" + x + ", " + right() + ")"
		}
		return t + "(" + a.joined(t, a.pick(" + ", " - ", " * ", " / "), x, again) + ")"
	}
	switch a.IntN(12) {
	case 0:
		return a.pick("-", "^") + "(" + x + ")"
	case 1, 2:
		from := a.pick(goTypes[1:]...)
		return convert(t, from, "("+a.expr(from, depth-1)+")")
	case 3:
		return a.pick("min", "max") + "(" + x + ", " + right() + ")"
	case 4:
		by := a.integer()
		return "(" + x + a.pick(" << ", " >> ") + "(" + a.expr(by, depth-1) + a.pick(" & 15", " & 15", " & 15", " & 127", " & 127", "") + "))"
	case 5:
		return "(" + x + a.pick(" / ", " % ") + "(" + a.expr(t, depth-1) + a.pick(" | 1", " | 1", " | 1", "") + "))"
	case 6:
		return "(" + x + a.pick(" / ", " % ") + a.constant(t) + ")"
	}
	return "(" + a.joined(t, a.pick(" + ", " - ", " * ", " & ", " | ", " ^ ", " &^ "), x, again) + ")"
}

func (a *author) block(n int) {
	scope, ind := len(a.vars), a.ind
	a.ind += "\t"
	a.depth++
	for range n {
		a.stmt()
	}
	a.depth--
	a.ind = ind
	a.vars = a.vars[:scope]
}

func (a *author) target() variable {
	if a.IntN(3) == 0 {
		t := a.typ()
		if e := a.element(t); e != "" && !strings.HasPrefix(e, "table") && !strings.HasPrefix(e, "weights") {
			return variable{e, t}
		}
	}
	for {
		if v := a.vars[a.IntN(len(a.vars))]; slices.Contains(goTypes, v.typ) {
			return v
		}
	}
}

func (a *author) declare() {
	t := a.typ()
	name := a.fresh()
	if a.IntN(6) == 0 {
		name = a.target().name // shadows
		if strings.ContainsAny(name, "[.") {
			return
		}
		e := a.expr(t, 1)
		a.line("if fuel > 3 {")
		a.line("\t%s := %s", name, e)
		a.line("\t_ = %s", name)
		a.line("}")
		return
	}
	if a.IntN(4) == 0 {
		a.line("var %s %s", name, t)
	} else {
		e := a.expr(t, 2)
		a.line("var %s %s = %s", name, t, e)
	}
	a.line("_ = %s", name)
	a.vars = append(a.vars, variable{name, t})
}

// fuel writes the burning of fuel at the head of a loop's body.
func (a *author) fuel() {
	a.ind += "\t"
	e := a.expr(a.res, 1)
	a.line("if fuel--; fuel < 0 {")
	a.line("\treturn %s", e)
	a.line("}")
	a.ind = a.ind[1:]
}

// loop writes the loop with the header given, whose body may use label.
func (a *author) loop(header, label string) {
	a.line("%s:", label)
	a.line("%s {", header)
	a.fuel()
	if name, _, ok := strings.Cut(strings.TrimPrefix(header, "for "), " :="); ok {
		a.line("\t%s = %s", strings.Repeat("_, ", strings.Count(name, ","))+"_", name)
	}
	a.line("\tif fuel == 33 {")
	a.line("\t\tcontinue %s", label)
	a.line("\t}")
	a.loops = append(a.loops, label)
	a.block(1 + a.IntN(3))
	a.loops = a.loops[:len(a.loops)-1]
	a.line("}")
}

func (a *author) stmt() {
	k := a.IntN(28)
	if a.depth > 4 && k >= 8 {
		k = a.IntN(8)
	}
	switch k {
	case 0, 1:
		a.declare()
	case 2, 3:
		v := a.target()
		e := a.expr(v.typ, 3)
		a.line("%s = %s", v.name, e)
	case 4:
		v := a.target()
		switch {
		case v.typ == "bool":
			a.line("%s = !%s", v.name, v.name)
		case isFloat(v.typ):
			e := a.expr(v.typ, 1)
			a.line("%s %s %s", v.name, a.pick("+=", "-=", "*=", "/="), e)
		default:
			e := a.expr(v.typ, 1)
			a.line("%s %s %s", v.name, a.pick("+=", "-=", "*=", "&=", "|=", "^=", "&^="), e)
		}
	case 5:
		if v := a.target(); v.typ != "bool" {
			a.line("%s%s", v.name, a.pick("++", "--"))
		}
	case 6:
		v, w := a.target(), a.target()
		if v.name != w.name {
			x, y := a.expr(v.typ, 1), a.expr(w.typ, 1)
			a.line("%s, %s = %s, %s", v.name, w.name, x, y)
		}
	case 7:
		if n := len(a.loops); n > 0 {
			e := a.expr("bool", 2)
			a.line("if %s {", e)
			a.line("\t%s", a.pick("break ", "continue ")+a.loops[a.IntN(n)])
			a.line("}")
		}
	case 8:
		c, e := a.expr("bool", 1), a.expr(a.res, 2)
		a.line("if %s {", c)
		a.line("\treturn %s", e)
		a.line("}")
	case 9, 10, 11:
		e, init := a.expr("bool", 2), ""
		if a.IntN(3) == 0 {
			if v := a.target(); v.typ != "bool" {
				init = v.name + " = " + a.expr(v.typ, 1) + "; "
			}
		}
		a.line("if %s%s {", init, e)
		a.block(1 + a.IntN(3))
		if a.IntN(2) == 0 {
			a.line("} else {")
			a.block(1 + a.IntN(3))
		}
		a.line("}")
	case 12:
		i := a.fresh()
		a.vars = append(a.vars, variable{i, "int"})
		a.loop(fmt.Sprintf("for %s := 0; %s < %d; %s++", i, i, 1+a.IntN(9), i), "L"+i)
		a.vars = a.vars[:len(a.vars)-1]
	case 26: // the bound is a variable, which the body may change
		if v := a.target(); v.typ != "bool" && !isFloat(v.typ) {
			i := a.fresh()
			a.vars = append(a.vars, variable{i, v.typ})
			a.loop(fmt.Sprintf("for %s := %s(%d); %s %s %s; %s %s %d", i, v.typ, a.IntN(4), i, a.pick("<", "<=", "!="), v.name, i, a.pick("+=", "+=", "-="), 1+a.IntN(3)), "L"+i)
			a.vars = a.vars[:len(a.vars)-1]
		}
	case 27: // two counters that meet
		i, j, t := a.fresh(), a.fresh(), a.integer()
		header := fmt.Sprintf("for %s, %s := %s(0), (%s & 15); %s < %s; %s, %s = %s+1, %s-%d", i, j, t, a.expr(t, 1), i, j, i, j, i, j, a.IntN(2))
		a.vars = append(a.vars, variable{i, t}, variable{j, t})
		a.loop(header, "L"+i)
		a.vars = a.vars[:len(a.vars)-2]
	case 13:
		a.loop("for "+a.variable("bool"), "L"+a.fresh())
	case 14:
		a.loop("for", "L"+a.fresh())
	case 15:
		i := a.fresh()
		t := a.integer()
		header := fmt.Sprintf("for %s := range (%s & 7)", i, a.expr(t, 1))
		a.vars = append(a.vars, variable{i, t})
		a.loop(header, "L"+i)
		a.vars = a.vars[:len(a.vars)-1]
	case 16, 17:
		a.switchStmt()
	case 18:
		a.line("{")
		a.block(1 + a.IntN(3))
		a.line("}")
	case 19:
		if v := a.target(); isInt(v.typ) {
			a.line("%s %s %s & 7", v.name, a.pick("<<=", ">>="), a.variable(a.integer()))
		}
	case 25:
		a.over()
	default:
		a.arrayStmt()
	}
}

// over is a range over the elements of an array.
func (a *author) over() {
	over, t := "table", "int32"
	for _, v := range a.vars {
		if v.typ[0] == '[' && a.IntN(2) == 0 {
			over, t = v.name, v.typ[3:]
		}
	}
	if a.slices && a.IntN(2) == 0 {
		over, t = a.pick("x", "m[1]"), a.elem[0]
		if over != "x" {
			t = a.elem[1]
		}
	}
	i, name := a.fresh(), a.fresh()
	a.vars = append(a.vars, variable{name, t})
	a.line("for %s, %s := range %s {", i, name, over)
	a.line("\t_, _ = %s, %s", i, name)
	a.fuel()
	a.block(1 + a.IntN(3))
	a.line("}")
	a.vars = a.vars[:len(a.vars)-1]
}

func (a *author) switchStmt() {
	n := 1 + a.IntN(4)
	otherwise := a.IntN(n + 2)
	t := a.integer()
	tag := a.IntN(3) > 0
	if tag {
		e := a.expr(t, 2)
		a.line("switch %s & 7 {", e)
	} else {
		a.line("switch {")
	}
	ind := a.ind
	for i := range n {
		switch {
		case i == otherwise:
			a.line("default:")
		case tag && a.IntN(3) == 0:
			a.line("case %d, %s:", i, a.variable(t))
		case tag:
			a.line("case %d:", i)
		case a.IntN(3) == 0:
			a.line("case %s, %s:", a.variable("bool"), a.variable("bool"))
		default:
			a.line("case %s:", a.variable("bool"))
		}
		a.block(a.IntN(3))
		if a.IntN(4) == 0 {
			a.line("\tif %s {", a.variable("bool"))
			a.line("\t\tbreak")
			a.line("\t}")
		}
		if i < n-1 && a.IntN(3) == 0 {
			a.line("\tfallthrough")
		}
	}
	a.ind = ind
	a.line("}")
}

// function writes a function; with slices it has x []X of 4 elements and
// m [][]M of 2 by 4 after its numbers.
func (a *author) function(withSlices bool) *authored {
	name := fmt.Sprintf("f%d", len(a.done))
	a.res, a.slices, a.elem, a.vars = a.typ(), withSlices, nil, nil
	var params, list []string
	for i := range 1 + a.IntN(3) {
		t := a.typ()
		params = append(params, t)
		list = append(list, fmt.Sprintf("p%d %s", i, t))
		a.vars = append(a.vars, variable{fmt.Sprintf("p%d", i), t})
	}
	if withSlices {
		a.elem = []string{a.typ(), a.typ()}
		list = append(list, "x []"+a.elem[0], "m [][]"+a.elem[1])
	}
	a.calls, a.depth, a.ind = 0, 0, ""
	a.line("func %s(%s) %s {", name, strings.Join(list, ", "), a.res)
	a.line("\tfuel := 40")
	a.line("\t_ = fuel")
	a.vars = append(a.vars, variable{"fuel0", "int"})
	a.line("\tfuel0 := 7")
	a.line("\t_ = fuel0")
	a.block(4 + a.IntN(6))
	a.ind = "\t"
	e := a.expr(a.res, 2)
	a.line("return %s", e)
	a.ind = ""
	a.line("}")
	f := &authored{a.b.declared(name, a.res, params...), a.calls}
	if f.elem = a.elem; f.elem != nil {
		a.b.wrappers(f.batched)
	}
	a.done = append(a.done, f)
	return f
}
