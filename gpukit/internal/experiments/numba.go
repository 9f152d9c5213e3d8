package main

import (
	"fmt"
	"math"
	"strings"
)

// The kernels of the threads as numba writes them, so that the simulated card gets
// the work that the real one had: an array is a record of words in the parameters,
// every index is checked for being negative, strides are read at run time, loads do
// not say which memory they mean. The text is ours; the shape and the numbers of
// instructions are those of the listing in the first thread and of numba 0.38.

// assembler writes one kernel.
type assembler struct {
	name         string
	words        int // 64-bit parameters
	body         strings.Builder
	rd, r, fd, p int // registers in use
	labels       int
}

func (a *assembler) say(format string, args ...any) { fmt.Fprintf(&a.body, "\t"+format+"\n", args...) }

func (a *assembler) label() string { a.labels++; return fmt.Sprintf("L%d", a.labels) }

func (a *assembler) at(label string) { fmt.Fprintf(&a.body, "%s:\n", label) }

func (a *assembler) wide() string   { a.rd++; return fmt.Sprintf("%%rd%d", a.rd) }
func (a *assembler) narrow() string { a.r++; return fmt.Sprintf("%%r%d", a.r) }
func (a *assembler) float() string  { a.fd++; return fmt.Sprintf("%%fd%d", a.fd) }
func (a *assembler) pred() string   { a.p++; return fmt.Sprintf("%%p%d", a.p) }

// word reads parameter i.
func (a *assembler) word(i int) string {
	d := a.wide()
	a.say("ld.param.u64 %s, [%s_param_%d];", d, a.name, i)
	return d
}

// scalar is a parameter passed by value.
func (a *assembler) scalar() int { a.words++; return a.words - 1 }

// array is numba's record of an array of so many dimensions: five words, of which
// the last is the address, then sizes, then strides in bytes.
type array struct{ first, dims int }

func (a *assembler) array(dims int) array {
	x := array{a.words, dims}
	a.words += 5 + 2*dims
	return x
}

func (x array) data() int        { return x.first + 4 }
func (x array) size(d int) int   { return x.first + 5 + d }
func (x array) stride(d int) int { return x.first + 5 + x.dims + d }

// text is the module.
func (a *assembler) text() string {
	var b strings.Builder
	fmt.Fprintf(&b, ".version 3.1\n.target sm_30\n.address_size 64\n\n.visible .entry %s(", a.name)
	for i := range a.words {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, "\n\t.param .u64 %s_param_%d", a.name, i)
	}
	fmt.Fprintf(&b, "\n)\n{\n\t.reg .pred %%p<%d>;\n\t.reg .b32 %%r<%d>;\n\t.reg .f64 %%fd<%d>;\n\t.reg .b64 %%rd<%d>;\n\n", a.p+1, a.r+1, a.fd+1, a.rd+1)
	return b.String() + a.body.String() + "}\n"
}

// thread is the number of the thread in the grid along a dimension, widened.
func (a *assembler) thread(dim string) string {
	t, c, n, i, d := a.narrow(), a.narrow(), a.narrow(), a.narrow(), a.wide()
	a.say("mov.u32 %s, %%tid.%s;", t, dim)
	a.say("mov.u32 %s, %%ctaid.%s;", c, dim)
	a.say("mov.u32 %s, %%ntid.%s;", n, dim)
	a.say("mad.lo.s32 %s, %s, %s, %s;", i, c, n, t)
	a.say("cvt.s64.s32 %s, %s;", d, i)
	return d
}

func (a *assembler) op2(op, x, y string) string {
	d := a.wide()
	a.say("%s %s, %s, %s;", op, d, x, y)
	return d
}

// gufunc multiplies elements in as many nested loops as the layout has dimensions:
// three for t14, two for t16 and t17. factor is the rank of the array that repeats.
// The kernel's arrays have one dimension more, over which the workers are spread.
func gufunc(name string, loops, factor int, counts []int) *assembler {
	a := &assembler{name: name}
	// The order of the thread's parameters: sizes stand around the arrays, so that
	// which loop each one bounds is said by counts, innermost last.
	x := a.layout(loops, factor)
	sizes, mult, disc, out := x.sizes, x.mult, x.disc, x.out

	i := a.thread("x")
	least := a.word(sizes[0].size(0))
	for _, x := range append(append([]array{mult, disc}, sizes[1:]...), out) {
		least = a.op2("min.s64", a.word(x.size(0)), least)
	}
	leave, p := a.label(), a.pred()
	a.say("setp.le.s64 %s, %s, %s;", p, least, i)
	a.say("@%s bra %s;", p, leave)
	var bound []string
	for _, k := range counts {
		at := a.op2("add.s64", a.word(sizes[k].data()), a.op2("mul.lo.s64", a.word(sizes[k].stride(0)), i))
		n := a.wide()
		a.say("ld.u64 %s, [%s];", n, at)
		bound = append(bound, n)
	}
	arrays := []array{out, disc, mult}
	pointers := make([]string, 3)
	strides := make([][]string, 3)
	for k, x := range arrays {
		pointers[k] = a.op2("add.s64", a.word(x.data()), a.op2("mul.lo.s64", a.word(x.stride(0)), i))
		for d := 1; d <= x.dims-1; d++ {
			strides[k] = append(strides[k], a.word(x.stride(d)))
		}
	}
	a.nest(bound, pointers, strides, loops)
	a.at(leave)
	a.say("ret;")
	return a
}

// nest writes the loops from the outermost of those that are left.
func (a *assembler) nest(bound, pointers []string, strides [][]string, loops int) {
	skip, top := a.label(), a.label()
	p := a.pred()
	a.say("setp.lt.s64 %s, %s, 1;", p, bound[0])
	a.say("@%s bra %s;", p, skip)
	if loops == 1 {
		left := a.wide()
		a.say("add.s64 %s, %s, 1;", left, bound[0])
		var moving []string
		for _, x := range pointers {
			m := a.wide()
			a.say("mov.u64 %s, %s;", m, x)
			moving = append(moving, m)
		}
		a.at(top)
		now, next, q := a.wide(), a.wide(), a.pred()
		x, y, z := a.float(), a.float(), a.float()
		a.say("mov.u64 %s, %s;", now, left)
		a.say("ld.f64 %s, [%s];", x, moving[1])
		a.say("ld.f64 %s, [%s];", y, moving[2])
		a.say("mul.f64 %s, %s, %s;", z, y, x)
		a.say("st.f64 [%s], %s;", moving[0], z)
		for k, m := range moving {
			a.say("add.s64 %s, %s, %s;", m, m, strides[k][len(strides[k])-1])
		}
		a.say("add.s64 %s, %s, -1;", next, now)
		a.say("setp.gt.s64 %s, %s, 1;", q, next)
		a.say("mov.u64 %s, %s;", left, next)
		a.say("@%s bra %s;", q, top)
		a.at(skip)
		return
	}
	index, left := a.wide(), a.wide()
	a.say("mov.u64 %s, 0;", index)
	a.say("mov.u64 %s, %s;", left, bound[0])
	a.at(top)
	inner := make([]string, len(pointers))
	rest := make([][]string, len(strides))
	for k := range pointers {
		inner[k], rest[k] = pointers[k], strides[k]
		if len(strides[k]) >= loops { // the array has this dimension
			inner[k] = a.op2("add.s64", pointers[k], a.op2("mul.lo.s64", strides[k][0], index))
			rest[k] = strides[k][1:]
		}
	}
	a.nest(bound[1:], inner, rest, loops-1)
	next, q := a.wide(), a.pred()
	a.say("add.s64 %s, %s, -1;", next, left)
	a.say("add.s64 %s, %s, 1;", index, index)
	a.say("setp.gt.s64 %s, %s, 1;", q, left)
	a.say("mov.u64 %s, %s;", left, next)
	a.say("@%s bra %s;", q, top)
	a.at(skip)
}

// elementwise is what numba's vectorize makes: a thread per element.
func elementwise(name string, inputs int, body func(a *assembler, in []string) string) *assembler {
	a := &assembler{name: name}
	arrays := a.records(inputs + 1)
	i := a.thread("x")
	leave, p := a.label(), a.pred()
	a.say("setp.ge.s64 %s, %s, %s;", p, i, a.word(arrays[inputs].size(0)))
	a.say("@%s bra %s;", p, leave)
	address := func(x array) string {
		q, wrap := a.pred(), a.wide()
		a.say("setp.lt.s64 %s, %s, 0;", q, i)
		a.say("selp.b64 %s, %s, 0, %s;", wrap, a.word(x.size(0)), q)
		j := a.op2("add.s64", wrap, i)
		return a.op2("add.s64", a.word(x.data()), a.op2("mul.lo.s64", j, a.word(x.stride(0))))
	}
	var in []string
	for _, x := range arrays[:inputs] {
		v := a.float()
		a.say("ld.f64 %s, [%s];", v, address(x))
		in = append(in, v)
	}
	v := body(a, in)
	a.say("st.f64 [%s], %s;", address(arrays[inputs]), v)
	a.at(leave)
	a.say("ret;")
	return a
}

func number(x float64) string { return fmt.Sprintf("0d%016X", math.Float64bits(x)) }

func (a *assembler) f2(op, x, y string) string {
	d := a.float()
	a.say("%s.f64 %s, %s, %s;", op, d, x, y)
	return d
}

func (a *assembler) fma(x, y, z string) string {
	d := a.float()
	a.say("fma.rn.f64 %s, %s, %s, %s;", d, x, y, z)
	return d
}

// sine is sin, or cos if quarter is 1: reduction by pi/2 in three steps, a
// polynomial, 14 operations in f64 and 2 conversions, about as many as the device
// library has on its fast path. For arguments up to some thousands.
func (a *assembler) sine(x string, quarter int) string {
	n, f := a.narrow(), a.float()
	a.say("cvt.rni.s32.f64 %s, %s;", n, a.f2("mul", x, number(2/math.Pi)))
	a.say("cvt.rn.f64.s32 %s, %s;", f, n)
	// pi/2 in parts of 33 bits (fdlibm, e_rem_pio2.c).
	r := a.fma(f, number(-1.57079632673412561417e+00), x)
	r = a.fma(f, number(-6.07710050630396597660e-11), r)
	r = a.fma(f, number(-2.02226624879595063154e-21), r)
	z := a.f2("mul", r, r)
	rz := a.f2("mul", r, z)
	if quarter > 0 {
		a.say("add.s32 %s, %s, %d;", n, n, quarter)
	}
	odd, bit, two, neg := a.pred(), a.narrow(), a.narrow(), a.pred()
	a.say("and.b32 %s, %s, 1;", bit, n)
	a.say("setp.eq.s32 %s, %s, 1;", odd, bit)
	choose := func(s, c string) string {
		d := a.float()
		a.say("selp.f64 %s, %s, %s, %s;", d, c, s, odd)
		return d
	}
	series := func(k int) string { // the terms of both series, from the highest
		s, c := 1.0, 1.0
		for i := 2; i <= 2*k+1; i++ {
			s /= float64(i)
		}
		for i := 2; i <= 2*k; i++ {
			c /= float64(i)
		}
		if k%2 == 1 {
			s, c = -s, -c
		}
		return choose(number(s), number(c))
	}
	p := series(7)
	for k := 6; k >= 1; k-- {
		p = a.fma(p, z, series(k))
	}
	v := a.fma(p, choose(rz, z), choose(r, number(1)))
	a.say("and.b32 %s, %s, 2;", two, n)
	a.say("setp.ne.s32 %s, %s, 0;", neg, two)
	a.say("@%s neg.f64 %s, %s;", neg, v, v)
	return v
}

// arcTangent is atan2(y, x) of positive numbers of which the ratio is far from 1, as
// here: 31 operations and a quotient, as many as the device library has.
func (a *assembler) arcTangent(y, x string) string {
	swap, far := a.pred(), a.pred()
	ay, ax := a.float(), a.float()
	a.say("abs.f64 %s, %s;", ay, y)
	a.say("abs.f64 %s, %s;", ax, x)
	a.say("setp.gt.f64 %s, %s, %s;", swap, ay, ax)
	a.say("setp.lt.f64 %s, %s, %s;", far, x, number(0))
	q := a.f2("div.rn", a.f2("min", ay, ax), a.f2("max", ay, ax))
	z := a.f2("mul", q, q)
	p := number(-1.0 / 39)
	for k := 18; k >= 1; k-- {
		term := 1 / float64(2*k+1)
		if k%2 == 1 {
			term = -term
		}
		p = a.fma(p, z, number(term))
	}
	v := a.fma(a.f2("mul", p, z), q, q)
	a.say("@%s sub.f64 %s, %s, %s;", swap, v, number(math.Pi/2), v)
	a.say("@%s sub.f64 %s, %s, %s;", far, v, number(math.Pi), v)
	return v
}

// chord is the a of the threads' distance.
func (a *assembler) chord(lat1, lon1, lat2, lon2 string) string {
	half := func(x, y string) string { return a.sine(a.f2("mul", a.f2("sub", x, y), number(0.008726645)), 0) }
	u, v := half(lat2, lat1), half(lon2, lon1)
	c1 := a.sine(a.f2("mul", lat1, number(0.01745329)), 1)
	c2 := a.sine(a.f2("mul", lat2, number(0.01745329)), 1)
	return a.fma(a.f2("mul", c1, c2), a.f2("mul", v, v), a.f2("mul", u, u))
}

func (a *assembler) distance(lat1, lon1, lat2, lon2, s string) string {
	c := a.chord(lat1, lon1, lat2, lon2)
	return a.f2("mul", a.arcTangent(c, a.f2("sub", number(1), c)), s)
}

// mesh is t40: a kernel that makes the coordinates where it uses them. Seven numbers
// and two sizes by value, then an array of two dimensions.
func mesh() *assembler {
	a := &assembler{name: "t40"}
	var values []string
	for range 7 {
		w, f := a.word(a.scalar()), a.float()
		a.say("mov.b64 %s, %s;", f, w)
		values = append(values, f)
	}
	nx, ny := a.word(a.scalar()), a.word(a.scalar())
	out := a.array(2)
	x, y := a.thread("x"), a.thread("y")
	leave, p, q := a.label(), a.pred(), a.pred()
	a.say("setp.ge.s64 %s, %s, %s;", p, x, nx)
	a.say("@%s bra %s;", p, leave)
	a.say("setp.ge.s64 %s, %s, %s;", q, y, ny)
	a.say("@%s bra %s;", q, leave)
	along := func(i, n, lo, hi string) string {
		k, f, g := a.wide(), a.float(), a.float()
		a.say("add.s64 %s, %s, -1;", k, n)
		a.say("cvt.rn.f64.s64 %s, %s;", f, i)
		a.say("cvt.rn.f64.s64 %s, %s;", g, k)
		return a.f2("add", a.f2("div.rn", a.f2("mul", f, a.f2("sub", hi, lo)), g), lo)
	}
	lat := along(x, nx, values[2], values[3])
	lon := along(y, ny, values[4], values[5])
	v := a.distance(lat, lon, values[0], values[1], values[6])
	address := a.op2("add.s64", a.word(out.data()), a.op2("mul.lo.s64", a.word(out.stride(0)), y))
	address = a.op2("add.s64", address, a.op2("mul.lo.s64", a.word(out.stride(1)), x))
	a.say("st.f64 [%s], %s;", address, v)
	a.at(leave)
	a.say("ret;")
	return a
}

// setArray fills in an array's words.
func setArray(words []uint64, x array, address uint64, sizes, strides []int) {
	n := 1
	for _, s := range sizes {
		n *= s
	}
	words[x.first+2], words[x.first+3], words[x.data()] = uint64(n), 8, address
	for d := range sizes {
		words[x.size(d)], words[x.stride(d)] = uint64(sizes[d]), uint64(strides[d])
	}
}
