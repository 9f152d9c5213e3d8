package ir

import (
	"fmt"
	"strings"
	"testing"
)

// TestHoistAxes shows what is taken out, and what is not.
func TestHoistAxes(t *testing.T) {
	fn := func(name string) MathFn {
		f, ok := LookupMath("math." + name)
		if !ok {
			t.Fatal(name)
		}
		return f
	}
	sin, cos, atan2, jn := fn("Sin"), fn("Cos"), fn("Atan2"), fn("Jn")
	num := func(b *Builder, x float64) Value { return b.Const(F64, FromF64(x)) }
	always := func(Axes, int) bool { return true }
	// Parameters: x varies on axis 0, y on axis 1, s on none, n on axis 0.
	cases := map[string]struct {
		build func(b *Builder, x, y, s, n Value)
		worth func(Axes, int) bool
		want  string // the tables: axes, and the functions in them
		main  string // the functions in what remains
	}{
		"distance": {func(b *Builder, x, y, s, _ Value) {
			c := num(b, 0.0087)
			half := func(d Value) Value { v := b.Math(sin, b.Op(OpMul, c, d)); return b.Op(OpMul, v, v) }
			a := b.Op(OpAdd, half(b.Op(OpSub, s, x)),
				b.Op(OpMul, b.Op(OpMul, b.Math(cos, b.Op(OpMul, c, x)), b.Math(cos, b.Op(OpMul, c, s))), half(b.Op(OpSub, s, y))))
			b.Yield(b.Op(OpMul, b.Math(atan2, a, b.Op(OpSub, num(b, 1), a)), s))
		}, nil, "1: Sin Cos Cos -> 2, 2: Sin -> 1", "Atan2"},
		"an addition": {func(b *Builder, x, y, s, _ Value) {
			b.Yield(b.Op(OpAdd, b.Op(OpMul, x, s), b.Convert(F64, b.Convert(F32, y))))
		}, nil, "", ""},
		"a shared sine": {func(b *Builder, x, y, _, _ Value) {
			v := b.Math(sin, x)
			one := num(b, 1)
			b.Yield(b.Op(OpDiv, b.Op(OpMul, b.Op(OpAdd, v, one), y), b.Op(OpAdd, y, b.Op(OpMul, v, v))))
		}, nil, "1: Sin -> 1", ""},
		"a number": {func(b *Builder, x, y, s, _ Value) {
			b.Yield(b.Op(OpMul, b.Op(OpMul, x, y), b.Math(cos, s)))
		}, nil, "0: Cos -> 1", ""},
		"refused": {func(b *Builder, x, y, s, _ Value) {
			b.Yield(b.Op(OpMul, b.Math(sin, b.Op(OpMul, x, b.Math(cos, s))), b.Math(sin, y)))
		}, func(on Axes, _ int) bool { return on != 1 }, "2: Sin -> 1, 0: Cos -> 1", "Sin"},
		"too little": {func(b *Builder, x, y, s, _ Value) {
			b.Yield(b.Op(OpMul, b.Math(sin, x), y))
		}, func(_ Axes, cost int) bool { return cost > costFunction }, "", "Sin"},
		"all axes": {func(b *Builder, x, y, _, _ Value) {
			b.Yield(b.Math(sin, b.Op(OpMul, x, y)))
		}, nil, "", "Sin"},
		"a division that may fail": {func(b *Builder, x, y, _, n Value) {
			b.Yield(b.Op(OpMul, y, b.Math(sin, b.Convert(F64, b.Op(OpDiv, b.Const(I64, 7), n)))))
		}, nil, "", "Sin"},
		"an arm": {func(b *Builder, x, y, _, _ Value) {
			b.Yield(b.If(b.Op(OpLt, y, num(b, 0)), []Type{F64}, func() { b.Yield(b.Math(sin, x)) }, func() { b.Yield(y) })[0])
		}, nil, "1: Sin -> 1", ""},
		"a heavy arm": {func(b *Builder, x, y, _, _ Value) {
			b.Yield(b.If(b.Op(OpLt, y, num(b, 0)), []Type{F64}, func() {
				v := x
				for range 5 {
					v = b.Math(sin, v)
				}
				b.Yield(v)
			}, func() { b.Yield(y) })[0])
		}, nil, "1: Sin Sin Sin -> 1", "Sin Sin"},
		"a whole if": {func(b *Builder, x, y, _, _ Value) {
			v := b.If(b.Op(OpLt, x, num(b, 0)), []Type{F64}, func() { b.Yield(b.Math(sin, x)) }, func() { b.Yield(b.Math(cos, x)) })[0]
			b.Yield(b.Op(OpMul, v, y))
		}, nil, "1: Sin Cos -> 1", ""},
		"a loop": {func(b *Builder, x, y, _, n Value) {
			b.Yield(b.Op(OpMul, y, repeated(b, sin, x, n)))
		}, nil, "1: loop Sin -> 1", ""},
		"a loop and more": {func(b *Builder, x, y, _, n Value) {
			v := b.Convert(F64, b.Convert(F32, repeated(b, sin, x, n)))
			b.Yield(b.Op(OpMul, y, b.Math(cos, v)))
		}, nil, "1: loop Sin Cos -> 1", ""},
		"more than a loop that not all enter": {func(b *Builder, x, y, _, n Value) {
			b.Yield(b.If(b.Op(OpLt, y, num(b, 0)), []Type{F64}, func() {
				b.Yield(b.Math(cos, repeated(b, sin, x, n)))
			}, func() { b.Yield(y) })[0])
		}, nil, "", "loop Sin Cos"},
		"a loop without results": {func(b *Builder, x, y, _, n Value) {
			repeated(b, sin, x, n)
			b.Yield(b.Op(OpMul, y, b.Math(cos, x)))
		}, nil, "1: Cos -> 1", "loop"},
		"a loop that not all enter": {func(b *Builder, x, y, _, n Value) {
			b.Yield(b.If(b.Op(OpLt, y, num(b, 0)), []Type{F64}, func() { b.Yield(repeated(b, sin, x, n)) }, func() { b.Yield(y) })[0])
		}, nil, "", "loop Sin"},
		"a loop behind what may fail": {func(b *Builder, x, y, _, n Value) {
			b.Bounds(n, b.Const(I64, 5))
			b.Yield(b.Op(OpMul, y, repeated(b, sin, x, n)))
		}, nil, "", "loop Sin"},
		"an order that not all reach": {func(b *Builder, x, y, _, n Value) {
			b.Yield(b.If(b.Op(OpLt, y, num(b, 0)), []Type{F64}, func() { b.Yield(b.Math(jn, n, x)) }, func() { b.Yield(y) })[0])
		}, nil, "", "Jn"},
		"an order": {func(b *Builder, x, y, _, n Value) {
			b.Yield(b.Op(OpMul, b.Math(jn, n, x), y))
		}, nil, "1: Jn -> 1", ""},
		"the same twice": {func(b *Builder, x, y, _, _ Value) {
			b.Yield(b.If(b.Op(OpLt, y, num(b, 0)), []Type{F64},
				func() { b.Yield(b.Op(OpDiv, b.Math(sin, x), y)) }, func() { b.Yield(b.Math(atan2, y, b.Math(sin, x))) })[0])
		}, nil, "1: Sin -> 1", "Atan2"},
		"a result": {func(b *Builder, x, _, _, _ Value) { b.Yield(b.Math(sin, x)) }, nil, "", "Sin"},
	}
	for name, c := range cases {
		f := NewFunc("f", F64)
		x, y, s, n := f.AddParam("x", F64), f.AddParam("y", F64), f.AddParam("s", F64), f.AddParam("n", I64)
		c.build(NewBuilder(f), x, y, s, n)
		if err := Verify(f); err != nil {
			t.Fatal(name, err)
		}
		f = Optimize(f)
		worth := c.worth
		if worth == nil {
			worth = always
		}
		main, tables := HoistAxes(f, []Axes{1, 2, 0, 1}, worth)
		var list []string
		for _, tab := range tables {
			if err := Verify(tab.Func); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			list = append(list, fmt.Sprintf("%d:%s -> %d", tab.Axes, calls(tab.Func), len(tab.Pos)))
		}
		if err := Verify(main); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		got, rest := strings.Join(list, ", "), strings.TrimSpace(calls(main))
		if got != c.want || rest != c.main {
			t.Errorf("%s: tables %q, and %q remains; want %q, %q\n%v", name, got, rest, c.want, c.main, main)
		}
		if len(tables) == 0 && main != f {
			t.Errorf("%s: no tables, and not the function itself", name)
		}
	}
}

// repeated adds f(x) n times.
func repeated(b *Builder, f MathFn, x, n Value) Value {
	one := b.Const(I64, 1)
	return b.Loop([]Value{b.Const(I64, 0), x}, []Type{F64}, func(v []Value) {
		b.If(b.Op(OpLt, v[0], n), nil, func() { b.Yield() }, func() { b.Break(1, v[1]) })
		b.Yield(b.Op(OpAdd, v[0], one), b.Op(OpAdd, v[1], b.Math(f, v[1])))
	})[0]
}

func calls(f *Func) (s string) {
	Walk(f.Body, func(in *Instr) {
		switch in.Op {
		case OpLoop:
			s += " loop"
		case OpMath:
			s += " " + strings.TrimPrefix(in.Fn.String(), "math.")
		}
	})
	return s
}
