package libm

import (
	"math"
	"math/big"
	"testing"
)

func TestHyperbolic(t *testing.T) {
	at := []float64{1, 0x1p-54, 0x1p-27, 708, 709.78, 710, 710.4758600739439, 710.47586007394396, 711, 20, 22, 0.17, 0.347, 0x1p500}
	reciprocal := func(x *big.Float) *big.Float { return over(newBig(x).SetInt64(1), x) }
	area := func(x *big.Float, sign int64) *big.Float {
		root := plus(newBig(x).Mul(x, x), sign)
		root.Sqrt(root)
		s := bigLog(root.Add(root, newBig(x).Abs(x)))
		if x.Sign() < 0 {
			s.Neg(s)
		}
		return s
	}
	below1 := math.Nextafter(1, 0)
	for _, f := range []function{
		{"Sinh", Sinh, math.Sinh, func(x *big.Float) *big.Float {
			e := bigExp(x)
			return half(e.Sub(e, reciprocal(e)))
		}, -800, 800, at},
		{"Cosh", Cosh, math.Cosh, func(x *big.Float) *big.Float {
			e := bigExp(x)
			return half(e.Add(e, reciprocal(e)))
		}, -800, 800, at},
		{"Tanh", Tanh, math.Tanh, func(x *big.Float) *big.Float {
			e := bigExp(newBig(x).Add(x, x))
			return over(plus(e, -1), plus(e, 1))
		}, -30, 30, at},
		{"Asinh", Asinh, math.Asinh, func(x *big.Float) *big.Float { return area(x, 1) }, -math.MaxFloat64, math.MaxFloat64, at},
		{"Acosh", Acosh, math.Acosh, func(x *big.Float) *big.Float { return area(x, -1) }, math.Nextafter(1, 2), math.MaxFloat64,
			append(at, 1.0000000000000007)},
		{"Atanh", Atanh, math.Atanh, func(x *big.Float) *big.Float {
			return half(bigLog(over(plus(x, 1), plus(newBig(x).Neg(x), 1))))
		}, -below1, below1, at},
	} {
		f.test(t)
	}
}

func BenchmarkSinh(b *testing.B)  { benchmark1(b, Sinh, math.Sinh, -10, 10) }
func BenchmarkCosh(b *testing.B)  { benchmark1(b, Cosh, math.Cosh, -10, 10) }
func BenchmarkTanh(b *testing.B)  { benchmark1(b, Tanh, math.Tanh, -3, 3) }
func BenchmarkAsinh(b *testing.B) { benchmark1(b, Asinh, math.Asinh, -10, 10) }
func BenchmarkAcosh(b *testing.B) { benchmark1(b, Acosh, math.Acosh, 1, 10) }
func BenchmarkAtanh(b *testing.B) { benchmark1(b, Atanh, math.Atanh, -1, 1) }
