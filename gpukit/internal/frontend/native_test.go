package frontend

import (
	"math"

	"gpunotes/gpukit/internal/libm"
)

// The functions of this file are compiled natively and by this package, from
// the text of this file, and the results are compared bit for bit. A product
// that feeds an addition is written float64(x*y): the Go compiler may fuse it.
// What a kernel calls math.Sin is libm.Sin, so that it is written here, and read
// as math.Sin.

func sq(x float64) float64 { return float64(x * x) }

func tDist(lat1, lon1, lat2, lon2, s float64) float64 {
	a := sq(libm.Sin(0.008726645*(lat2-lat1))) +
		float64(libm.Cos(0.01745329*lat1)*libm.Cos(0.01745329*lat2)*sq(libm.Sin(0.008726645*(lon2-lon1))))
	return libm.Atan2(a, 1-a) * s
}

func tMandelbrot(cr, ci float64) int {
	const limit = 50
	zr, zi := 0.0, 0.0
	for n := 0; n < limit; n++ {
		if float64(zr*zr)+float64(zi*zi) > 4 {
			return n
		}
		zr, zi = float64(zr*zr)-float64(zi*zi)+cr, float64(2*zr*zi)+ci
	}
	return limit
}

func tCollatz(n int64) (steps int) {
	n = n%1000 + 1
	if n < 1 {
		return -1
	}
	for n != 1 {
		if n%2 == 0 {
			n /= 2
		} else {
			n = 3*n + 1
		}
		steps++
	}
	return
}

func tGcd(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	if a < 0 {
		return -a
	}
	return a
}

func tNewton(x float64) float64 {
	if !(x > 0) || math.IsInf(x, 0) {
		return x
	}
	y := 1.0
	for i := 0; i < 60; i++ {
		next := float64(0.5 * (y + x/y))
		if next == y {
			break
		}
		y = next
	}
	return y
}

func poly(x float64) float64 { return float64(float64(x*x)*x) - float64(2*x) - 5 }

func tBisect(lo, hi float64) (root float64, steps int, ok bool) {
	if !(poly(lo) < 0) == !(poly(hi) < 0) {
		return math.NaN(), 0, false
	}
	for ; steps < 100; steps++ {
		root = lo + float64((hi-lo)*0.5)
		switch f := poly(root); {
		case f == 0, hi-lo < 1e-9:
			return root, steps, true
		case f < 0 == (poly(lo) < 0):
			lo = root
		default:
			hi = root
		}
	}
	ok = true
	return
}

func tIsPrime(n uint16) bool {
	if n < 2 {
		return false
	}
	for d := uint32(2); d*d <= uint32(n); d++ {
		if uint32(n)%d == 0 {
			return false
		}
	}
	return true
}

func tPopcount(x uint64) (n int) {
	for ; x != 0; n++ {
		x &= x - 1
	}
	return n
}

func tLabels(n int, x float64) (int, float64) {
	sum, count := 0.0, 0
outer:
	for i := 0; i < n&15; i++ {
		for j := 0; ; j++ {
			if j > 9 {
				break
			}
			if i*j == 12 {
				continue outer
			}
			if i+j > 20 {
				break outer
			}
			switch {
			case j == 3:
				continue
			case j == 7:
				break
			case i == 11:
				continue outer
			default:
				count++
			}
			sum += float64(i*j) + x
		}
		count += 100
	}
	return count, sum
}

func tSwitch(x int32) int {
	switch y := x % 7; y {
	case 0:
		return 10
	case 1, 2, -1:
		x++
	default:
		x = -x
	case -2:
		if x < -50 {
			break
		}
		x += 5
	case 3:
	}
	return int(x)
}

func tFallthrough(x int8) (r int) {
	switch x & 7 {
	case 0:
		r += 1
		fallthrough
	case 1:
		r += 10
		if x > 50 {
			break
		}
		r *= 2
		fallthrough
	default:
		r += 100
		fallthrough
	case 2:
		r += 1000
	case 3, 4:
		r = -1
		if x < 0 {
			return 7
		}
		fallthrough
	case 5:
		r -= 5
	}
	return r * 3
}

func tSwitchLoop(n uint8) int {
	total := 0
loop:
	for i := uint8(0); ; i++ {
		switch {
		case i == n, i > 200:
			break loop
		case i%3 == 0:
			continue loop
		case i%5 == 0:
			total += 5
			continue
		}
		total++
	}
	return total
}

func tOnlyDefault(x int) int {
	switch {
	default:
		if x > 3 {
			break
		}
		x *= 10
	}
	switch x {
	}
	switch x := x + 1; x {
	default:
		return x
	}
}

func tInnerBreak(n int) (r int) {
	n &= 31
	for {
		n--
		if n < 0 {
			break
		}
		for i := range n {
			if i == 5 {
				break
			}
			r += i
		}
		if n%4 == 1 {
			continue
		}
		r += 1000
	}
	return
}

func tRange(n int16, m uint8) (int, int16, uint8) {
	sum := 0
	var last int16
	for i := range n % 50 {
		last = i
		i *= 2
		sum += int(i)
	}
	for range 3 {
		sum += 7
	}
	var k uint8
	for k = range 5 {
		if k == m {
			break
		}
	}
	for i := range 10 {
		if i > int(m) {
			continue
		}
		sum ^= i
	}
	for range m & 3 {
		sum++
	}
	return sum, last, k
}

func tShadow(x int) int {
	y := x
	{
		x := x + 1
		y += x
		if x, z := x*2, 3; x > z {
			y += x
			x = 100
			y += x
		} else if w := x + z; w > 0 {
			y -= w
		}
		x++
		y += x
	}
	for x := 0; x < 3; x++ {
		y += x
		x := x * 10
		y += x
	}
	return y + x
}

func tNamed(x, y float64) (lo, hi float64, _ int, swapped bool) {
	lo, hi = x, y
	if lo > hi {
		lo, hi = hi, lo
		swapped = true
		return
	}
	if lo == hi {
		return hi, lo, 5, false
	}
	return
}

func tEarly(n int, lim int) int {
	for i := 0; ; i++ {
		for j := 0; j < i; j++ {
			if i*j > lim&1023 {
				if j%2 == 0 {
					return i*1000 + j
				}
				return -i*1000 - j
			}
		}
		if i > n&63 {
			return i
		}
	}
}

func divmod(a, b int32) (q, r int32) { return a / b, a % b }

func swap(a, b int32) (int32, int32) { return b, a }

func tMulti(a, b int32) (int32, int32, int32) {
	q, r := divmod(a, b)
	q, s := swap(q, r)
	_, r = swap(divmod(b, a))
	var t, u = divmod(q, 7)
	return q + t, r, s - u
}

func tWrap8(a, b int8) (int8, int8, int8, int8, int8, int8) {
	c := a
	c++
	d := b
	d--
	return a + b, a - b, a * b, -a, c, d
}

func tWrapU16(a, b uint16) (uint16, uint16, uint16, uint16, uint16) {
	return a + b, a - b, a * b, -a, ^a
}

func tWrap64(a, b int64) (int64, int64, int64, int64, int64) {
	return a + b, a - b, a * b, -a, a &^ b
}

func tDiv(a, b int64) (int64, int64) { return a / b, a % b }

func tDiv8(a, b int8) (int8, int8) { return a / b, a % b }

func tDivU(a, b uint32) (uint32, uint32) { return a / b, a % b }

func tBits(a, b uint32) (uint32, uint32, uint32, uint32, uint32) {
	x := a
	x &= b
	y := a
	y |= b
	z := a
	z ^= b
	w := a
	w &^= b
	return x, y, z, w, ^a
}

func tShift(a int32, b uint64, n uint8) (int32, int32, uint64, uint64) {
	c := a
	c <<= n
	d := b
	d >>= n
	return c, a >> n, b << n, d
}

func tShiftSigned(a int16, n int) (int16, int16) { return a << n, a >> n }

func tShiftConst(a int8, b uint16) (int8, int8, uint16, int64) {
	var one int64 = 1 << (b & 63)
	return a << 3, a >> 7, b >> 15, one
}

func tConvertInt(a int64, b uint32, c int8) (int8, uint8, int16, uint16, int32, uint32, uint64, int, int64, uint64) {
	return int8(a), uint8(a), int16(b), uint16(c), int32(a), uint32(c), uint64(c), int(b), int64(b), uint64(b)
}

func tConvertFloat(a int64, b uint64, c int16, x float64, y float32) (float64, float64, float32, float32, float32, float64, float64) {
	return float64(a), float64(b), float32(a), float32(b), float32(x), float64(y), float64(c)
}

func tTruncate(x float64) (int32, int64, uint8) {
	if !(x > -1e9 && x < 1e9) {
		x = 3.99
	}
	return int32(x), int64(-x), uint8(libm.Mod(math.Abs(x), 256))
}

func tFloat32(x, y float32) (float32, float32, float32, float32, bool) {
	z := x
	z += 0.1
	z = float32(z*y) - 1e-3
	return x + y, float32(x*y) + 0.5, x / y, z, x < y
}

func tFloat(x, y float64) (float64, float64, float64, float64, float64) {
	z := x
	z /= y
	return x + y, x - y, x * y, z, -x
}

func tCompare(x, y float64) (a, b, c, d, e, f bool) {
	return x < y, x <= y, x > y, x >= y, x == y, x != y
}

func tCompareInt(x, y int8, p, q bool) (bool, bool, bool, bool, bool) {
	return x < y, uint8(x) >= uint8(y), p == q, p != q, !p && (q || x > y)
}

func tMinMax(x, y float64, i, j int32, k uint8) (float64, float64, int32, int32, uint8, float64) {
	return min(x, y), max(x, y, 1), min(i, j, 5), max(i, j), max(k, 100), min(x, 3, y, -2)
}

func loops(n int) bool {
	for n > 5 {
		n -= 5
	}
	return n == 3
}

func tShortCircuit(a, b int) (bool, bool, bool, int) {
	n := 0
	if b != 0 && a/b > 2 || a == 7 {
		n++
	}
	if b == 0 || a%b == 1 {
		n += 10
	}
	x := a > 0 && loops(a&255)
	y := a < 0 || loops(b&255) || b>>1 == 3
	z := b >= 0 && a<<b == 8
	switch {
	case b == 0, 100/b > 7:
		n += 100
	case b > 0 && 1000/b > 7 && a != 0 && 1000/a > 2:
		n += 200
	}
	return x, y, z, n
}

func tMath(x, y float64) (float64, float64, float64, float64, float64, bool) {
	frac, exp := libm.Frexp(x)
	whole, part := math.Modf(y)
	s, c := libm.Sincos(x)
	l, sign := libm.Lgamma(y)
	return libm.Ldexp(frac, exp), whole - part, s + c, l * float64(sign),
		math.Sqrt(math.Abs(x)) + libm.Pow(y, 2) + math.Pi, math.IsNaN(x) || math.IsInf(y, -1)
}

func tMathBits(x float64, y float32) (uint64, uint32, float64, int) {
	return math.Float64bits(x), math.Float32bits(y), math.Float64frombits(math.Float64bits(y2(y)) &^ 1), libm.Ilogb(x)
}

func y2(y float32) float64 { return float64(y) * 2 }

type celsius float64
type level uint8

const (
	low level = iota
	mid
	_
	high
	mask             = 1<<iota - 1
	freezing celsius = 273.15
)

const third, big = 1.0 / 3, 1 << 62

func kelvin(c celsius) celsius { return c + freezing }

func grade(c celsius) level {
	type step = level
	const hot = 30.0
	var s step
	switch {
	case c > hot:
		s = high
	case float64(c) > float64(10):
		s = mid
	default:
		s = low
	}
	return s
}

func tNamedTypes(x float64, b bool) (celsius, level, uint8, int, float64, int64) {
	type flag bool
	f := flag(b)
	var g flag = true
	c := celsius(x)
	if f == g && bool(!f) != b {
		c = kelvin(c)
	}
	return c, grade(c), uint8(high), mask, third * x, big
}

func tZero(b bool) (x float64, i int8, ok bool) {
	var (
		y, z    float64
		j       int8 = 3
		p, q         = j, 2.5
		_, _         = swap(1, 2)
		_            = z
		unsaid  uintptr
		largest uint64 = math.MaxUint64
	)
	if b {
		return y, p, z == 0
	}
	x = q
	i -= 100
	i -= 100
	ok = largest+1 == 0 && unsaid == 0
	return
}

func tRune(x int32) (int32, uint8) {
	if x == 'x' {
		return 'y', 'a' - 32
	}
	return x + 'z', '0'
}

func tParens(x int) (r int) {
	(r) = ((x) + (2))
	(r)++

	_ = r
	_, r = 1, (r)*2
	return (r)
}

func tNoPosts(n int) int {
	n &= 7
	i := 0
	for i < n {
		i++
		if i == 3 {
			continue
		}
		if i == 6 {
			break
		}
	}
	for i = 10; i < 12; {
		i++
	}
	for ; ; i++ {
		if i > 20 {
			return i + n
		}
	}
}

func nothing(x int) {
	if x > 0 {
		return
	}
	for x < 0 {
		x++
	}
}

func tCallStatement(x int) int {
	nothing(x & 7)
	math.Sqrt(2)
	return x
}

func tUnnamed(int, _ float64, x int) int { return x }

func tIfElseChain(x int) string1 {
	if x < -10 {
		return 1
	} else if x < 0 {
		x = -x
	} else if y := x % 3; y == 0 {
		return string1(y)
	} else if y == 1 {
		x += y
	} else {
		return 9
	}
	return string1(x)
}

type string1 int32

func tSwitchReturns(x int) int {
	switch {
	case x > 5:
		return 1
	case x < -5:
		return 2
	default:
		return 3
	}
}

func tNestedSwitch(x, y int) (r int) {
	switch x & 3 {
	case 1:
		switch y & 3 {
		case 1:
			r = 1
			fallthrough
		case 2:
			r += 2
			break
		default:
			r = 50
			return
		}
		r *= 3
		fallthrough
	case 2:
		r++
	default:
		r = -1
	}
	return r
}

func tLabelledSwitch(x int) (r int) {
out:
	switch {
	case x > 0:
		for i := 0; i < 10; i++ {
			r += i
			if i == x {
				break out
			}
		}
		r = -r
	case x < -3:
		r = 3
	}
	return r + 1
}
