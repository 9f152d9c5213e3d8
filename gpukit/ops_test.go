package gpukit

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"gpunotes/gpukit/internal/ir"
	"gpunotes/gpukit/internal/ir/irtest"
)

// lanes are sizes around those at which engines change their ways: vectors, warps,
// blocks.
var lanes = []int{0, 1, 2, 31, 32, 33, 63, 64, 65, 255, 256, 257, 513, 1025}

// specials are rows of all special values of the parameters, for one or two of them,
// and random ones for more.
func (f *batched) specials(r *rand.Rand, random int) {
	var sets [][]ir.Bits
	for _, p := range f.params {
		sets = append(sets, irtest.Specials(irTypes[p]))
	}
	switch len(sets) {
	case 1:
		for _, x := range sets[0] {
			f.rows = append(f.rows, []ir.Bits{x})
		}
	case 2:
		for _, x := range sets[0] {
			for _, y := range sets[1] {
				f.rows = append(f.rows, []ir.Bits{x, y})
			}
		}
		f.height, f.width, f.walks = len(sets[0]), len(sets[1]), []byte("rc")
	}
	for range random {
		var row []ir.Bits
		for i, p := range f.params {
			x := randomValue(r, irTypes[p])
			if r.IntN(3) == 0 {
				x = sets[i][r.IntN(len(sets[i]))]
			}
			row = append(row, x)
		}
		f.rows = append(f.rows, row)
	}
}

// randomValue is a special value, a small one, or any; and of floats also one near 1
// whose last bits are not zero, so that every operation has something to round.
func randomValue(r *rand.Rand, t ir.Type) ir.Bits {
	switch k := r.IntN(8); {
	case k < 2:
		return randomBits(r, t)
	case k < 5 && t == ir.F64:
		return ir.FromF64(r.NormFloat64())
	case k < 5 && t == ir.F32:
		return ir.FromF32(float32(r.NormFloat64()))
	}
	return irtest.Value(r, t)
}

// randomBits is any value of a type.
func randomBits(r *rand.Rand, t ir.Type) ir.Bits {
	switch t {
	case ir.Bool:
		return r.Uint64() & 1
	case ir.F32:
		return ir.Canonical(t, r.Uint64()&(1<<32-1))
	case ir.F64:
		return ir.Canonical(t, r.Uint64())
	}
	return ir.Wrap(t, r.Uint64()>>r.IntN(64))
}

// opFunctions are every operator and conversion for every type that has it.
func opFunctions() *batch {
	b := &batch{}
	b.conversions()
	add := func(result, body string, params ...string) {
		b.add(fmt.Sprintf("f%d", len(b.funcs)), result, "return "+body, params...)
	}
	for _, t := range goTypes {
		integer, float := strings.Contains(t, "int"), strings.HasPrefix(t, "float")
		arithmetic, comparisons := "+ - * /", "== != < <= > >="
		switch {
		case integer:
			arithmetic += " % & | ^ &^"
			add(t, "-x", t)
			add(t, "^x", t)
			for _, by := range goTypes[1:11] {
				add(t, "x << y", t, by)
				add(t, "x >> y", t, by)
			}
		case float:
			add(t, "-x", t)
		default:
			arithmetic, comparisons = "&& ||", "== !="
			add(t, "!x", t)
		}
		for _, op := range strings.Fields(arithmetic) {
			add(t, "x "+op+" y", t, t)
			if t == "bool" {
				continue
			}
			// Passes know operations with constants.
			for _, c := range []string{"0", "1", "2", "-1"} {
				if c == "-1" && t[0] == 'u' {
					c = "7"
				}
				if c != "0" || op != "/" && op != "%" {
					add(t, "x "+op+" "+c, t)
				}
				add(t, c+" "+op+" x", t)
			}
		}
		for _, op := range strings.Fields(comparisons) {
			add("bool", "x "+op+" y", t, t)
		}
		if t == "bool" {
			continue
		}
		// Two operations that an engine may take for one.
		for _, f := range []string{"x*y", "z - x*y", "x*y - z", "(x - y)*z", "x - y + z", "x + y + z", "x*y + z", "z + x*y", "x*z + y*z", "-(x*y) - z"} {
			if float {
				for _, p := range []string{"x*y", "x*z", "y*z"} {
					f = strings.ReplaceAll(f, p, t+"("+p+")")
				}
			}
			add(t, f, t, t, t)
		}
		// What must not be taken for the same, or run when it must not.
		body := func(result, text string, params ...string) {
			b.add(fmt.Sprintf("f%d", len(b.funcs)), result, strings.ReplaceAll(text, "T", t), params...)
		}
		if float {
			add(t, "(x - y)/(y - x)", t, t)
			add(t, "x/y - y/x", t, t)
		} else {
			add(t, "(x - y) ^ (y - x) << 1", t, t)
			add(t, "x &^ y ^ (y &^ x) << 1", t, t)
			add(t, "x << (y & 3) ^ y << (x & 3)", t, t)
			add("bool", "y != 0 && x/y > 1", t, t)
			add("bool", "y == 0 || x%y == 1", t, t)
			body(t, "if y == 0 { return 3 }; return x % y", t, t)
			body(t, "a := [4]T{x, y, 3, 4}; return a[y & 4]", t, t)
			body(t, "a := [8]T{x, y, 3, 4}; if x > 1 { return a[y & 7] }; return a[(x ^ y) & 7]", t, t)
			body(t, "r := x; for i := T(0); i < y & 3; i++ { if x != i { r = r / (x - i) } }; return r", t, t)
		}
		add("bool", "(x < y) != (y <= x)", t, t)
		body("bool", "return [2]T{x, y} == [2]T{y, y}", t, t)
		body("bool", "return [3]T{x, y, x} != [3]T{x, x, y}", t, t)
		body(t, "for i := 0; T(i) < y && i < 5; i++ { x, y = y, x }; return x - y - y", t, t)
		body(t, "a, b, c := x, y, x; for i := 0; i < 4; i++ { if a > b { break }; a, b, c = c, a, b + 1 }; return a - b - c", t, t)
		body(t, "var a [4]T; for i := range a { if x < y { a[i] = x }; x++ }; return a[0] - a[1] + a[2] - a[3]", t, t)
		body(t, "r := x; for i := 0; i < 3; i++ { if x < y { var a [16]T; r += a[15]; a[15-i+i] = x; r += a[(i+12)&15] }; y-- }; return r", t, t)
		add(t, "min(x, y)", t, t)
		add(t, "max(x, y)", t, t)
		for _, from := range goTypes[1:] {
			if integer && strings.HasPrefix(from, "float") {
				add(t, "to_"+t+"_"+from+"(x)", from)
			} else {
				add(t, t+"(x)", from)
			}
		}
	}
	return b
}

// TestOperators compares every operator with native Go, for every type and all
// pairs of special values.
func TestOperators(t *testing.T) {
	b := opFunctions()
	r := rand.New(rand.NewPCG(31, 32))
	for _, f := range b.funcs {
		f.specials(r, 200)
	}
	// Parts of slices, with bounds that do not fit together.
	b.text.WriteString("func part(x0, y0 int, x []int, m [][]int32) int { v := x[x0&3 : y0&3+1]; if len(v) == 0 { return 7 }; v[0] += len(v); return v[len(v)-1] }\n")
	f := b.declared("part", "int", "int", "int")
	f.elem = []string{"int", "int32"}
	b.wrappers(f)
	f.random(r, 100)
	b.run(t)
	eachEngine(t, func(t *testing.T, d *Device) { b.check(t, d, r, lanes...) })
}

// mathFunctions are every function of math and math/bits, one for each result.
func mathFunctions() *batch {
	b := &batch{}
	words := map[ir.Type]string{ir.Bool: "bool", ir.I64: "int", ir.U8: "uint8", ir.U16: "uint16", ir.U32: "uint32", ir.U64: "uint64", ir.F32: "float32", ir.F64: "float64"}
	for i := range ir.NumMath() {
		row := ir.MathFn(i).Row()
		pkg, name, _ := strings.Cut(row.Name, ".")
		name, part, two := strings.Cut(name, ".")
		if !row.Go() {
			continue
		}
		var params, args []string
		for j, p := range row.In {
			x := string(rune('x' + j))
			word := words[p]
			if pkg == "bits" && p == ir.U64 && !strings.HasSuffix(name, "64") {
				word = "uint"
			}
			params, args = append(params, word), append(args, x)
		}
		result := words[row.Out]
		if pkg == "bits" && row.Out == ir.U64 && !strings.HasSuffix(name, "64") {
			result = "uint"
		}
		if strings.HasPrefix(name, "Add") || strings.HasPrefix(name, "Sub") {
			args[2] += " & 1" // Go leaves open what another carry does
		}
		if name == "Jn" || name == "Yn" {
			args[0] += " % 50" // the time that they take grows with the order
		}
		call := pkg + "." + name + "(" + strings.Join(args, ", ") + ")"
		body := "return " + call
		if two {
			first := part == "frac" && name == "Frexp" || part == "int" || part == "lgamma" || part == "sin" || part == "sum" || part == "diff" || part == "hi"
			body = "r, _ := " + call + "; return r"
			if !first {
				body = "_, r := " + call + "; return r"
			}
		}
		b.add(fmt.Sprintf("m%d_%s", i, name), result, body, params...)
	}
	return b
}

// TestLibrary compares every function of math and math/bits with libm as the Go
// compiler makes it, and with package math where that is exact.
func TestLibrary(t *testing.T) {
	b := mathFunctions()
	r := rand.New(rand.NewPCG(33, 34))
	for _, f := range b.funcs {
		f.specials(r, 300)
		if len(f.params) == 0 {
			f.rows = [][]ir.Bits{{}}
		}
	}
	b.run(t)
	eachEngine(t, func(t *testing.T, d *Device) { b.check(t, d, r, 1, 64, 257) })
}
