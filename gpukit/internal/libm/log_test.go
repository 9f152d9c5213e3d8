package libm

import (
	"math"
	"math/big"
	"testing"
)

func TestLog(t *testing.T) {
	at := []float64{math.Sqrt2, math.Sqrt2 / 2, 1 - 0x1p-9, 1 + 0x1p-8, 0x1p-1022, 0x1p-1074, math.E}
	for i := range uint64(128) {
		at = append(at, math.Nextafter(math.Float64frombits(logOffset+i<<45), 2))
	}
	smallest := 0x1p-1074
	function{"Log", Log, math.Log, bigLog, smallest, math.MaxFloat64, at}.test(t)
	function{"Log2", Log2, math.Log2, func(x *big.Float) *big.Float { return over(bigLog(x), bigLn2) }, smallest, math.MaxFloat64, at}.test(t)
	ln10 := bigLog(exact(10).SetPrec(400))
	function{"Log10", Log10, math.Log10, func(x *big.Float) *big.Float { return over(bigLog(x), ln10) }, smallest, math.MaxFloat64, at}.test(t)
	function{"Log1p", Log1p, math.Log1p, func(x *big.Float) *big.Float { return bigLog(plus(x, 1)) }, math.Nextafter(-1, 0), math.MaxFloat64,
		append(at, 0x1p-54, 0x1p-53, 0x1p1022, 0.41, 0.29, 1-0x1p-53)}.test(t)
}

func TestLogOfPowers(t *testing.T) {
	for n := -1074; n <= 1023; n++ {
		if got := Log2(math.Ldexp(1, n)); got != float64(n) {
			t.Errorf("Log2(2^%d) = %x", n, got)
		}
	}
	for n := -307; n <= 308; n++ {
		if got := Log10(Pow10(n)); got != float64(n) {
			t.Errorf("Log10(10^%d) = %x", n, got)
		}
	}
}

func BenchmarkLog(b *testing.B)   { benchmark1(b, Log, math.Log, 0, 20) }
func BenchmarkLog2(b *testing.B)  { benchmark1(b, Log2, math.Log2, 0, 20) }
func BenchmarkLog10(b *testing.B) { benchmark1(b, Log10, math.Log10, 0, 20) }
func BenchmarkLog1p(b *testing.B) { benchmark1(b, Log1p, math.Log1p, -0.9, 3) }
