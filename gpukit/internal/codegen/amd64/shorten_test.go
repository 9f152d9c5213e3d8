package amd64_test

import (
	"strings"
	"testing"

	"gpunotes/gpukit/internal/codegen/amd64"
	"gpunotes/gpukit/internal/ir"
)

// TestShorten: instructions that another one does with its own are gone, and the results
// are the same.
func TestShorten(t *testing.T) {
	type values = []ir.Value
	for _, c := range []struct {
		name     string
		make     func(b *ir.Builder, x, y, z, m, n, k ir.Value) ir.Value
		has, not string // of AVX-512: names of instructions
	}{
		{"minusFactor", func(b *ir.Builder, x, y, z, m, n, k ir.Value) ir.Value {
			return b.Math(mustMath("math.FMA"), b.Op(ir.OpNeg, x), y, z)
		}, "vfnmadd", "vxor"},
		{"minusFactors", func(b *ir.Builder, x, y, z, m, n, k ir.Value) ir.Value {
			return b.Math(mustMath("math.FMA"), b.Op(ir.OpNeg, x), b.Op(ir.OpNeg, y), z)
		}, "vfmadd", "vxor"},
		{"minusSum", func(b *ir.Builder, x, y, z, m, n, k ir.Value) ir.Value {
			return b.Math(mustMath("math.FMA"), x, y, b.Op(ir.OpNeg, z))
		}, "vfmsub", "vxor"},
		{"minusAll", func(b *ir.Builder, x, y, z, m, n, k ir.Value) ir.Value {
			return b.Math(mustMath("math.FMA"), x, b.Op(ir.OpNeg, y), b.Op(ir.OpNeg, z))
		}, "vfnmsub", "vxor"},
		{"minusUsedTwice", func(b *ir.Builder, x, y, z, m, n, k ir.Value) ir.Value {
			d := b.Op(ir.OpNeg, x)
			return b.Op(ir.OpAdd, d, b.Math(mustMath("math.FMA"), d, y, z))
		}, "vxor", "vfnm"},
		{"bitsAreZero", func(b *ir.Builder, x, y, z, m, n, k ir.Value) ir.Value {
			return b.Op(ir.OpSelect, b.Op(ir.OpEq, b.Op(ir.OpAnd, m, b.Const(ir.I64, 6)), b.Const(ir.I64, 0)), x, y)
		}, "vptestnmq", "vand"},
		{"bitsAreNot", func(b *ir.Builder, x, y, z, m, n, k ir.Value) ir.Value {
			return b.Op(ir.OpSelect, b.Op(ir.OpNe, b.Op(ir.OpAnd, m, n), b.Const(ir.I64, 0)), x, y)
		}, "vptestmq", "vand"},
		{"threeOfBits", func(b *ir.Builder, x, y, z, m, n, k ir.Value) ir.Value {
			return b.Convert(ir.F64, b.Op(ir.OpXor, b.Op(ir.OpAnd, m, n), k))
		}, "vpternlogq", "vand"},
		{"conjunction", func(b *ir.Builder, x, y, z, m, n, k ir.Value) ir.Value {
			return b.Op(ir.OpSelect, b.Op(ir.OpAnd, b.Op(ir.OpLt, x, y), b.Op(ir.OpLe, y, z)), x, z)
		}, "{k", "kand"},
		{"butNot", func(b *ir.Builder, x, y, z, m, n, k ir.Value) ir.Value {
			return b.Op(ir.OpSelect, b.Op(ir.OpAndNot, b.Op(ir.OpLt, x, y), b.Op(ir.OpLe, y, z)), x, z)
		}, "{k", "kand"},
	} {
		f := ir.NewFunc(c.name, ir.F64)
		var p values
		for _, t := range []ir.Type{ir.F64, ir.F64, ir.F64, ir.I64, ir.I64, ir.I64} {
			p = append(p, f.AddParam("p", t))
		}
		b := ir.NewBuilder(f)
		r := c.make(b, p[0], p[1], p[2], p[3], p[4], p[5])
		b.Yield(r)
		check(t, f, nil)
		k := &amd64.Kernel{Func: f, In: []amd64.Access{0, 0, 0, 0, 0, 0}, Out: []amd64.Access{amd64.Unit}}
		for i := range k.In {
			k.In[i] = amd64.Unit
		}
		code, err := amd64.Compile(k, amd64.AVX512, amd64.Options{Listing: true, Parts: 1})
		if err != nil {
			t.Fatal(err)
		}
		from := strings.Index(code.Listing, "vmovupd")
		if s := code.Listing[from:]; !strings.Contains(s, c.has) || strings.Contains(s, c.not) {
			t.Errorf("%s: with %s or without %s:\n%s", c.name, c.not, c.has, s)
		}
	}
}
