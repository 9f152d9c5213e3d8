package frontend

import (
	"bytes"
	"context"
	"fmt"
	"math/rand"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"gpunotes/gpukit/internal/ir"
)

// generator writes random functions that the Go compiler accepts. Every loop
// burns fuel, so all of them end.
type generator struct {
	rnd   *rand.Rand
	b     strings.Builder
	vars  []variable // in scope
	depth int        // of statements
	names int
	loops []string // labels of enclosing loops
	done  []string // result types of the functions so far, f0, f1, ...
	cost  []int    // calls that each one makes at most
	calls int
	res   string // result type of the present function
	ind   string
	flat  bool // no elements for now
}

type variable struct{ name, typ string }

var genTypes = []string{"int", "int8", "uint8", "int32", "uint16", "uint64", "float64", "float32", "bool"}

func (g *generator) pick(s ...string) string { return s[g.rnd.Intn(len(s))] }

func (g *generator) line(format string, args ...any) {
	fmt.Fprintf(&g.b, g.ind+format+"\n", args...)
}

func (g *generator) fresh() string {
	g.names++
	return fmt.Sprintf("v%d", g.names)
}

func isFloat(t string) bool { return strings.HasPrefix(t, "float") }

// variable gives an expression of type t with a variable in it.
func (g *generator) variable(t string) string {
	var have []string
	for _, v := range g.vars {
		if v.typ == t {
			have = append(have, v.name)
		}
	}
	if g.rnd.Intn(3) == 0 {
		if e := g.element(t); e != "" {
			return e
		}
	}
	if len(have) > 0 && g.rnd.Intn(8) > 0 {
		return have[g.rnd.Intn(len(have))]
	}
	if t == "bool" {
		return "(p1 > int(p2))"
	}
	// The parameters p1 int and p2 uint8 are always in scope.
	return t + "(" + g.pick("p1", "p2") + ")"
}

// arrayTypes are of variables that are not scalars; prelude declares S.
var arrayTypes = []string{"[4]int", "[2]uint8", "[4]float64", "[2][4]int8", "S", "[2]S", "view", "row"}

const prelude = `type S struct {
	a int
	b [4]int8
	c struct{ d float64; e [2]bool }
}

type view = []int

type row = []int32

var table = [...]int32{3, 1, 4, 1, 5, 9, 2, 6}

func turn(a [4]int, s S, r row) ([4]int, S) {
	for i, v := range a {
		a[(i+s.a)&3] += v
		s.b[i] -= int8(v)
		if i < len(r) {
			r[i] ^= table[(v+i)&7]
		}
	}
	s.c.e[0] = !s.c.e[1]
	return a, s
}

`

// index is an index of n elements, a power of 2, seldom out of range.
func (g *generator) index(n int) string {
	switch g.rnd.Intn(60) {
	case 0:
		return g.variable(g.pick("int", "uint8"))
	case 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25:
		return fmt.Sprint(g.rnd.Intn(n))
	}
	return fmt.Sprintf("%s&%d", g.variable(g.pick("int", "uint8", "uint64", "int8")), n-1)
}

// element is an element of type t of some variable, "" if there is none.
func (g *generator) element(t string) string {
	var have []string
	add := func(x, typ string) {
		switch typ {
		case "[4]int", "[2]uint8", "[4]float64":
			n := int(typ[1] - '0')
			if typ[3:] == t {
				have = append(have, x+"["+g.index(n)+"]")
			}
		case "view", "row":
			if typ == "view" && t == "int" || typ == "row" && t == "int32" {
				have = append(have, x+"["+g.pick("0", "len("+x+")-1")+"]")
			}
		case "[2][4]int8":
			if t == "int8" {
				have = append(have, x+"["+g.index(2)+"]["+g.index(4)+"]")
			}
		}
	}
	if len(g.vars) == 0 || g.flat {
		return ""
	}
	g.flat = true // indices are not elements again
	defer func() { g.flat = false }()
	for range 3 {
		v := g.vars[g.rnd.Intn(len(g.vars))]
		add(v.name, v.typ)
		s := v.name
		if v.typ == "[2]S" {
			s += "[" + g.index(2) + "]"
		}
		if v.typ == "S" || v.typ == "[2]S" {
			switch t {
			case "int":
				have = append(have, s+".a")
			case "int8":
				have = append(have, s+".b["+g.index(4)+"]")
			case "float64":
				have = append(have, s+".c.d")
			case "bool":
				have = append(have, s+".c.e["+g.index(2)+"]")
			}
		}
	}
	if t == "int" {
		have = append(have, "x["+g.index(4)+"]")
	}
	if t == "int32" {
		have = append(have, "m["+g.index(2)+"]["+g.index(4)+"]", "table["+g.index(8)+"]")
	}
	if len(have) == 0 {
		return ""
	}
	return have[g.rnd.Intn(len(have))]
}

// whole is a value of an array type.
func (g *generator) whole(t string) string {
	for _, v := range g.vars {
		if v.typ == t && g.rnd.Intn(2) == 0 {
			return v.name
		}
	}
	switch t {
	case "[4]int", "[4]float64":
		e := t[3:]
		return g.pick(t+"{"+g.expr(e, 1)+", "+g.expr(e, 1)+"}", t+"{2: "+g.expr(e, 1)+"}", t+"{}")
	case "[2]uint8":
		return "[...]uint8{" + g.expr("uint8", 1) + ", 7}"
	case "[2][4]int8":
		return "[2][4]int8{{1, " + g.expr("int8", 1) + "}, {3: 9}}"
	case "S":
		return g.pick("S{}", "S{a: "+g.expr("int", 1)+", b: [4]int8{1, 2, 3, "+g.expr("int8", 1)+"}}")
	case "[2]S":
		return "[2]S{1: " + g.whole("S") + "}"
	case "view":
		return g.pick("x", "x[1:]", "x[:3]", "x["+g.index(2)+":4]")
	}
	return g.pick("m["+g.index(2)+"]", "m["+g.index(2)+"][2:]", "m[1][:1]")
}

// arrayStmt is a statement on arrays, slices and structs.
func (g *generator) arrayStmt() {
	t := arrayTypes[g.rnd.Intn(len(arrayTypes))]
	var same []string
	for _, v := range g.vars {
		if v.typ == t {
			same = append(same, v.name)
		}
	}
	k := g.rnd.Intn(6)
	switch {
	case k < 2 || len(same) == 0:
		name := g.fresh()
		if k == 0 && t != "view" && t != "row" {
			g.line("var %s %s", name, t)
		} else {
			g.line("%s := %s", name, g.whole(t))
		}
		g.line("_ = %s", name)
		g.vars = append(g.vars, variable{name, t})
	case k == 2:
		g.line("%s = %s", same[g.rnd.Intn(len(same))], g.whole(t))
	case k == 3 && t != "view" && t != "row":
		g.line("if %s %s %s {", same[0], g.pick("==", "!="), same[len(same)-1])
		g.block(1)
		g.line("}")
	case k == 4:
		g.line("%s, %s = %s, %s", same[0], same[len(same)-1], same[len(same)-1], same[0])
	default:
		for _, v := range g.vars {
			switch v.typ {
			case "S":
				g.line("_, %s = turn(%s, %s, %s)", v.name, g.whole("[4]int"), v.name, g.whole("row"))
				return
			case "[4]int":
				g.line("%s, _ = turn(%s, %s, %s)", v.name, v.name, g.whole("S"), g.whole("row"))
				return
			}
		}
	}
}

// over is a range over elements of type t, with the name of its variable.
func (g *generator) over() (clause, name, t string) {
	name = g.fresh()
	i := g.fresh()
	for _, v := range g.vars {
		if strings.HasPrefix(v.typ, "[") && g.rnd.Intn(2) == 0 {
			return fmt.Sprintf("%s, %s := range %s", i, name, v.name), name, v.typ[3:]
		}
	}
	switch g.rnd.Intn(3) {
	case 0:
		return fmt.Sprintf("%s, %s := range x", i, name), name, "int"
	case 1:
		return fmt.Sprintf("%s, %s := range m", i, name), name, "row"
	}
	return fmt.Sprintf("%s, %s := range table", i, name), name, "int32"
}

func (g *generator) constant(t string) string {
	switch {
	case t == "bool":
		return g.pick("true", "false")
	case isFloat(t):
		return g.pick("0.5", "3", "1e3", "0.1", "7")
	}
	return g.pick("1", "2", "3", "5", "7", "100")
}

func (g *generator) expr(t string, depth int) string {
	if depth <= 0 {
		return g.variable(t)
	}
	right := func() string {
		if g.rnd.Intn(3) == 0 {
			return g.constant(t)
		}
		return g.expr(t, depth-1)
	}
	if f := g.rnd.Intn(12); f == 0 && len(g.done) > 0 {
		// A cheap function of an earlier level.
		k := g.rnd.Intn(len(g.done))
		if g.done[k] == t && g.cost[k]+g.calls < 6 {
			g.calls += 1 + g.cost[k]
			return fmt.Sprintf("f%d(%s, %s, x, m)", k, g.expr("int", depth-1), g.expr("uint8", depth-1))
		}
	}
	x := g.expr(t, depth-1)
	switch {
	case t == "bool":
		switch g.rnd.Intn(4) {
		case 0:
			return "!(" + x + ")"
		case 1:
			return "(" + x + g.pick(" && ", " || ", " == ", " != ") + "(" + g.expr(t, depth-1) + "))"
		}
		u := genTypes[g.rnd.Intn(len(genTypes)-1)]
		return "(" + g.expr(u, depth-1) + g.pick(" < ", " <= ", " > ", " >= ", " == ", " != ") + g.expr(u, depth-1) + ")"
	case isFloat(t):
		switch g.rnd.Intn(8) {
		case 0:
			return "-(" + x + ")"
		case 1:
			return t + "(" + g.expr(g.pick("int", "int8", "uint64", "uint16", "float64", "float32"), depth-1) + ")"
		case 2:
			return g.pick("min", "max") + "(" + x + ", " + right() + ")"
		}
		return t + "(" + x + g.pick(" + ", " - ", " * ", " / ") + right() + ")"
	}
	switch g.rnd.Intn(12) {
	case 0:
		return g.pick("-", "^") + "(" + x + ")"
	case 1:
		return t + "(" + g.expr(g.pick("int", "int8", "uint64", "uint16", "int32", "uint8"), depth-1) + ")"
	case 2:
		return g.pick("min", "max") + "(" + x + ", " + right() + ")"
	case 3:
		return "(" + x + g.pick(" << ", " >> ") + "(" + g.expr(g.pick("uint8", "uint8", "int"), depth-1) + " & 15))"
	case 4:
		return "(" + x + g.pick(" / ", " % ") + "(" + g.expr(t, depth-1) + g.pick(" | 1", "") + "))"
	}
	return "(" + x + g.pick(" + ", " - ", " * ", " & ", " | ", " ^ ", " &^ ") + right() + ")"
}

func (g *generator) block(n int) {
	scope, ind := len(g.vars), g.ind
	g.ind += "\t"
	g.depth++
	for range n {
		g.stmt()
	}
	g.depth--
	g.ind = ind
	g.vars = g.vars[:scope]
}

func (g *generator) target() variable {
	if g.rnd.Intn(3) == 0 {
		t := genTypes[g.rnd.Intn(len(genTypes))]
		if e := g.element(t); e != "" && !strings.HasPrefix(e, "table") {
			return variable{e, t}
		}
	}
	for {
		v := g.vars[g.rnd.Intn(len(g.vars))]
		if slices.Contains(genTypes, v.typ) {
			return v
		}
	}
}

func (g *generator) declare() {
	t := genTypes[g.rnd.Intn(len(genTypes))]
	name := g.fresh()
	if n := len(g.vars); n > 0 && g.rnd.Intn(5) == 0 {
		name = g.target().name // shadows, unless it is of this block
		if strings.ContainsAny(name, "[.") {
			return
		}
		g.line("if true {")
		g.line("\t%s := %s", name, g.expr(t, 1))
		g.line("\t_ = %s", name)
		g.line("}")
		return
	}
	switch g.rnd.Intn(3) {
	case 0:
		g.line("var %s %s", name, t)
	default:
		g.line("var %s %s = %s", name, t, g.expr(t, 2))
	}
	g.line("_ = %s", name)
	g.vars = append(g.vars, variable{name, t})
}

func (g *generator) fuel() {
	g.line("\tif fuel--; fuel < 0 {")
	g.line("\t\treturn %s", g.expr(g.res, 1))
	g.line("\t}")
}

// loop writes the loop with the header given, whose body may use label.
func (g *generator) loop(header, label string) {
	g.line("%s:", label)
	g.line("%s {", header)
	g.fuel()
	if name, _, ok := strings.Cut(strings.TrimPrefix(header, "for "), " :="); ok {
		g.line("\t_ = %s", name)
	}
	g.line("\tif fuel == 33 {")
	g.line("\t\tcontinue %s", label)
	g.line("\t}")
	g.loops = append(g.loops, label)
	g.block(1 + g.rnd.Intn(3))
	g.loops = g.loops[:len(g.loops)-1]
	g.line("}")
}

func (g *generator) stmt() {
	k := g.rnd.Intn(26)
	if k >= 20 && k < 25 {
		g.arrayStmt()
		return
	}
	if g.depth > 4 && k >= 8 {
		k = g.rnd.Intn(8)
	}
	switch k {
	case 0, 1:
		g.declare()
	case 2, 3:
		v := g.target()
		g.line("%s = %s", v.name, g.expr(v.typ, 3))
	case 4:
		v := g.target()
		switch {
		case v.typ == "bool":
			g.line("%s = !%s", v.name, v.name)
		case isFloat(v.typ):
			g.line("%s %s %s", v.name, g.pick("+=", "-=", "*=", "/="), g.expr(v.typ, 1))
		default:
			g.line("%s %s %s", v.name, g.pick("+=", "-=", "*=", "&=", "|=", "^=", "&^="), g.expr(v.typ, 1))
		}
	case 5:
		if v := g.target(); v.typ != "bool" {
			g.line("%s%s", v.name, g.pick("++", "--"))
		}
	case 6:
		v, w := g.target(), g.target()
		if v.name != w.name {
			g.line("%s, %s = %s, %s", v.name, w.name, g.expr(v.typ, 1), g.expr(w.typ, 1))
		}
	case 7:
		if n := len(g.loops); n > 0 {
			g.line("if %s {", g.expr("bool", 2))
			g.line("\t%s", g.pick("break ", "continue ")+g.loops[g.rnd.Intn(n)])
			g.line("}")
		}
	case 8:
		g.line("if %s {", g.expr("bool", 1))
		g.line("\treturn %s", g.expr(g.res, 2))
		g.line("}")
	case 9, 10, 11:
		init := ""
		if g.rnd.Intn(3) == 0 {
			if v := g.target(); v.typ != "bool" {
				init = v.name + " = " + g.expr(v.typ, 1) + "; "
			}
		}
		g.line("if %s%s {", init, g.expr("bool", 2))
		g.block(1 + g.rnd.Intn(3))
		if g.rnd.Intn(2) == 0 {
			g.line("} else {")
			g.block(1 + g.rnd.Intn(3))
		}
		g.line("}")
	case 12:
		i := g.fresh()
		g.vars = append(g.vars, variable{i, "int"})
		header := fmt.Sprintf("for %s := 0; %s < %d; %s++", i, i, 1+g.rnd.Intn(9), i)
		g.loop(header, "L"+i)
		g.vars = g.vars[:len(g.vars)-1]
	case 13:
		g.loop("for "+g.expr("bool", 2), "L"+g.fresh())
	case 14:
		label := "L" + g.fresh()
		g.loop("for", label)
	case 15:
		i := g.fresh()
		t := g.pick("int", "uint8", "int8")
		header := fmt.Sprintf("for %s := range (%s & 7)", i, g.expr(t, 1))
		g.vars = append(g.vars, variable{i, t})
		g.loop(strings.Replace(header, "range", "range ", 1), "L"+i)
		g.vars = g.vars[:len(g.vars)-1]
	case 16, 17:
		g.switchStmt()
	case 18:
		g.line("{")
		g.block(1 + g.rnd.Intn(3))
		g.line("}")
	case 25:
		clause, name, t := g.over()
		g.vars = append(g.vars, variable{name, t})
		g.line("for %s {", clause)
		g.line("\t_, _ = %s", strings.Replace(clause[:strings.Index(clause, " :=")], "_, ", "", 1))
		g.fuel()
		g.block(1 + g.rnd.Intn(3))
		g.line("}")
		g.vars = g.vars[:len(g.vars)-1]
	case 19:
		v := g.target()
		if v.typ == "bool" || isFloat(v.typ) {
			return
		}
		g.line("%s %s %s & 7", v.name, g.pick("<<=", ">>="), g.variable("uint8"))
	}
}

func (g *generator) switchStmt() {
	n := 1 + g.rnd.Intn(4)
	otherwise := g.rnd.Intn(n + 2)
	t := g.pick("int", "int8", "uint8", "uint64")
	tag := g.rnd.Intn(3) > 0
	if tag {
		g.line("switch %s & 7 {", g.expr(t, 2))
	} else {
		g.line("switch {")
	}
	ind := g.ind
	for i := range n {
		switch {
		case i == otherwise:
			g.line("default:")
		case tag && g.rnd.Intn(3) == 0:
			g.line("case %d, %s:", i, g.variable(t))
		case tag:
			g.line("case %d:", i)
		case g.rnd.Intn(3) == 0:
			g.line("case %s, %s:", g.expr("bool", 2), g.expr("bool", 2))
		default:
			g.line("case %s:", g.expr("bool", 2))
		}
		g.block(g.rnd.Intn(3))
		if g.rnd.Intn(4) == 0 {
			g.line("\tif %s {", g.expr("bool", 1))
			g.line("\t\tbreak")
			g.line("\t}")
		}
		if i < n-1 && g.rnd.Intn(3) == 0 {
			g.line("\tfallthrough")
		}
	}
	g.ind = ind
	g.line("}")
}

func (g *generator) function(i int) {
	g.res = genTypes[g.rnd.Intn(len(genTypes))]
	g.vars = []variable{{"p1", "int"}, {"p2", "uint8"}, {"x", "view"}}
	g.calls, g.depth, g.ind = 0, 0, ""
	g.line("func f%d(p1 int, p2 uint8, x []int, m [][]int32) %s {", i, g.res)
	g.line("\tfuel := 40")
	g.line("\t_ = fuel")
	g.block(4 + g.rnd.Intn(6))
	g.line("\treturn %s", g.expr(g.res, 2))
	g.line("}")
	g.done = append(g.done, g.res)
	g.cost = append(g.cost, g.calls)
}

var randomArgs = [][2]int{{0, 0}, {1, 2}, {-7, 250}, {1 << 40, 17}, {-1 << 63, 255}, {12345, 128}, {3, 3}, {-100, 1}}

// TestRandomPrograms compares random functions with the Go compiler: one
// program with all of them, run once.
func TestRandomPrograms(t *testing.T) {
	if testing.Short() {
		t.Skip("builds a program")
	}
	count := 60
	if os.Getenv("SEED") != "" {
		count = 250
	}
	g := &generator{rnd: rand.New(rand.NewSource(seed()))}
	g.b.WriteString("package main\n\n" + prelude)
	for i := range count {
		g.function(i)
	}
	src := g.b.String()

	var main strings.Builder
	main.WriteString("package main\n\nimport \"math\"\n\nfunc bit(b bool) uint64 {\n\tif b {\n\t\treturn 1\n\t}\n\treturn 0\n}\n\n" +
		"func bits64(x float64) uint64 {\n\tif x != x {\n\t\treturn 0x7FF8000000000001\n\t}\n\treturn math.Float64bits(x)\n}\n\n" +
		"func bits32(x float32) uint64 {\n\tif x != x {\n\t\treturn 0x7FC00000\n\t}\n\treturn uint64(math.Float32bits(x))\n}\n\n" +
		"func try(f func() uint64) {\n\tdefer func() {\n\t\tif r := recover(); r != nil {\n\t\t\tprintln(r.(error).Error())\n\t\t}\n\t}()\n\tprintln(f())\n}\n\n" +
		"func sum(r uint64, x []int, m [][]int32) uint64 {\n\tfor _, v := range x {\n\t\tr = r*31 + uint64(v)\n\t}\n" +
		"\tfor _, row := range m {\n\t\tfor _, v := range row {\n\t\t\tr = r*31 + uint64(v)\n\t\t}\n\t}\n\treturn r\n}\n\nfunc main() {\n")
	for i, res := range g.done {
		pack := map[string]string{"bool": "bit(%s)", "float64": "bits64(%s)", "float32": "bits32(%s)"}[res]
		if pack == "" {
			pack = "uint64(%s)"
		}
		for _, a := range randomArgs {
			fmt.Fprintf(&main, "\ttry(func() uint64 {\n\t\tx, m := []int{3, -1, %d, 2}, [][]int32{{1, 2, 3, 4}, {-5, 6, 7, %d}}\n\t\tr := "+pack+"\n\t\treturn sum(r, x, m)\n\t})\n", i, i, fmt.Sprintf("f%d(%d, %d, x, m)", i, a[0], a[1]))
		}
	}
	main.WriteString("}\n")

	dir := t.TempDir()
	for name, text := range map[string]string{"go.mod": "module random\n\ngo 1.26\n", "f.go": src, "main.go": main.String()} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "go", "run", "-gcflags=-N -l", ".")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=", "CGO_ENABLED=0")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if err := cmd.Run(); err != nil {
		out := stderr.String()
		t.Fatalf("%v\n%s", err, out[:min(len(out), 3000)])
	}
	want := strings.Split(strings.TrimSpace(stderr.String()), "\n")
	if len(want) != count*len(randomArgs) {
		t.Fatalf("%d results from the program", len(want))
	}

	p := parse(t, "f.go", src)
	faults := 0
	for i := range count {
		name := fmt.Sprintf("f%d", i)
		prog, err := Compile(p.input(name))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for k, a := range randomArgs {
			w := want[i*len(randomArgs)+k]
			x, m := ints(3, -1, i, 2), ints(1, 2, 3, 4, -5, 6, 7, i)
			code := prog.Func
			if k%2 == 1 {
				code = ir.Optimize(code)
			}
			out, err := (&ir.Evaluator{Steps: 1e5}).RunWorker(code, []ir.Storage{x, m}, append([]ir.Bits{ir.Bits(a[0]), ir.Bits(a[1])}, ints(0, 4, 1, 0, 2, 4, 4, 1)...))
			if err != nil {
				faults++
				if err.(*ir.FaultError).Fault == ir.StepBudget {
					continue // loops in calls in loops
				}
				if !strings.Contains(w, err.(*ir.FaultError).Fault.String()) {
					t.Errorf("%s(%d, %d): %v, native %s", name, a[0], a[1], err, w)
				}
				continue
			}
			rt := prog.Results[0]
			got := ir.Canonical(rt, out[0])
			for _, v := range append(x, m...) {
				got = got*31 + v
			}
			var bits ir.Bits
			if _, err := fmt.Sscan(w, &bits); err != nil || bits != got {
				t.Errorf("%s(%d, %d) = %s, sum %d, native %s", name, a[0], a[1], ir.FormatBits(rt, out[0]), got, w)
			}
		}
	}
	if faults > len(want)/2 {
		t.Errorf("%d of %d calls fault", faults, len(want))
	}
}

func ints(vs ...int) memory {
	m := make(memory, len(vs))
	for i, v := range vs {
		m[i] = ir.Bits(v)
	}
	return m
}

// seed makes SEED=1, SEED=2, ... try more and other programs.
func seed() int64 {
	n, _ := strconv.Atoi(os.Getenv("SEED"))
	return int64(n + 20)
}
