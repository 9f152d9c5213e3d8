package frontend

import (
	"math"
	"math/bits"
)

// The functions of this file are for slices, arrays and structs what those of
// native_test.go are for scalars.

func aSum(x []float64) (s float64) {
	for _, v := range x {
		s += v
	}
	return s
}

func aAxpy(a float64, x, y []float64) int {
	for i := range x {
		y[i] += float64(a * x[i])
	}
	return len(x) - len(y)
}

func aMatmul(a, b, c [][]float64) {
	for i := range c {
		for j := range c[i] {
			s := 0.0
			for k, v := range a[i] {
				s += float64(v * b[k][j])
			}
			c[i][j] = s
		}
	}
}

func aConvolve(x, kernel, out []float64) {
	for i := range out {
		var s float64
		for j := 0; j < len(kernel); j++ {
			if k := i + j - len(kernel)/2; k >= 0 && k < len(x) && !math.IsNaN(x[k]) {
				s += float64(kernel[j] * x[k])
			}
		}
		out[i] = s
	}
}

func aPrefix(x []int32, out []int32) (last int32) {
	for i, v := range x {
		if i > 0 {
			v += out[i-1]
		}
		out[i] = v
	}
	return out[len(out)-1]
}

func aHistogram(x []uint8, h []int32, low uint8) {
	for _, v := range x {
		h[v-low]++
		h[0] -= 1
	}
}

func aRank3(x [][][]int32, s int32) (n int32, m int) {
	for i, plane := range x {
		for j, row := range plane {
			for k := range row {
				row[k] += s
				n += x[i][j][k] * int32(i-j+k)
			}
			m += len(row)
		}
	}
	return n, m
}

func aRows(x [][]float64, i int, j uint8) (float64, int) {
	row := x[i]
	var other []float64
	other = x[j]
	s := other[0]
	for k := 0; k < 4; k++ {
		if k%2 == 1 {
			row, other = other, row
		} else if k == 2 {
			row = x[k]
		}
		row[0] += s
		s -= float64(len(other))
		row = row[1:]
		if len(row) == 0 {
			break
		}
	}
	return s, len(row) + len(x)
}

func dot(a, b []float64) (s float64) {
	for i := range a {
		s += float64(a[i] * b[i])
	}
	return s
}

func scale(x []float64, by float64) {
	for i := range x {
		x[i] *= by
	}
}

func trace(m [][]float64) (s float64) {
	for i := range m {
		s += m[i][i]
	}
	return
}

func aCallees(x [][]float64, y []float64) float64 {
	for i := range y {
		y[i] = dot(x[i], x[0])
		scale(x[i][1:], y[i])
	}
	return trace(x[1:]) + dot(y, y)
}

func aVest14(countRow int, multBy [][]float64, discount [][][]float64, n, countCol int, cv [][][]float64) {
	for row := 0; row < countRow; row++ {
		for col := 0; col < countCol; col++ {
			for num := 0; num < n; num++ {
				cv[row][col][num] = multBy[col][num] * discount[row][col][num]
			}
		}
	}
}

func aVest16(multBy, discount [][]float64, n, countCol int, cv [][]float64) {
	for col := 0; col < countCol; col++ {
		for num := 0; num < n; num++ {
			cv[col][num] = multBy[col][num] * discount[col][num]
		}
	}
}

func aVest17(countCol int, multBy []float64, discount [][]float64, n int, cv [][]float64) {
	for col := 0; col < countCol; col++ {
		for num := 0; num < n; num++ {
			cv[col][num] = multBy[num] * discount[col][num]
		}
	}
}

func aSlices(x []int32, a, b int, c uint16) (int, int32) {
	y := x[a:b]
	z := x[:c]
	w := x[a:]
	all := x[:]
	all = all[:len(y)]
	if len(y) > 0 {
		y[len(y)-1] = 7
	}
	if len(z) > 1 {
		z = z[1:2]
		z[0]++
	}
	for range w {
		all = w
		w = w[:]
	}
	return len(y)*1000 + len(z)*100 + len(w)*10 + len(all), aTotal(x)
}

func aTotal(x []int32) (t int32) {
	for _, t = range x {
		if t > 5 {
			return t
		}
	}
	for i := range x[:len(x)/2] {
		t += x[i]
	}
	return t
}

func aIndexTypes(x []int32, i int8, j uint64, k int32) int32 {
	return x[i] - x[j&7]*x[k] + x[uint8(i)] + x[2]
}

func two(i int) (int, int32) { return i % 3, int32(i) }

func aOrder(x []int32, i, j int) (int, int32) {
	if j < 0 || j >= len(x) {
		// Which of two indices out of range is found first is not fixed.
		j = i
	}
	x[i], x[j] = x[j], x[i]
	i, x[i] = j, 5
	x[i], i = int32(i), i+1
	k := 0
	next := 0
	x[k], k = 9, 2
	x[k], next = int32(k), len(x)
	k, x[1] = two(next)
	x[k%len(x)] <<= 1
	return k, x[0]
}

type view []float64
type grid [][]float64

func first(v view) float64 { return v[0] }

func aNamed(g grid, v view) float64 {
	r := view(g[1])
	r[0] = first(v) + first(g[0])
	return first(view(v[1:])) + r[len(r)-1]
}

func aBools(x []bool, y []bool) (n int) {
	for i, b := range x {
		y[i] = b != y[i] || i > 2 && x[i-1]
		if y[i] && !b {
			n++
		}
	}
	return
}

func aShortCircuit(x []int32, i, j int) (n int) {
	if i >= 0 && i < len(x) && x[i] > 3 || j > 2 {
		n++
	}
	switch {
	case j < 0, x[j] > 3, i == 1 && x[i] < 0:
		n += 10
	case len(x[j:]) > 2:
		n += 100
	}
	return n
}

func aFound(x [][]int32, want int32) (int, int) {
rows:
	for i, row := range x {
		for j, v := range row {
			switch {
			case v == want:
				return i, j
			case v < 0:
				continue rows
			case v > 50:
				break rows
			}
		}
	}
	return -1, -1
}

func aBubble(x []int32) {
	for n := len(x); n > 1; {
		m := 0
		for i := 1; i < n; i++ {
			if x[i-1] > x[i] {
				x[i-1], x[i] = x[i], x[i-1]
				m = i
			}
		}
		n = m
	}
}

// Fixed arrays.

func aConstantIndex(x, y float64) (float64, float64) {
	var a [4]float64
	a[0], a[1] = x, y
	a[2] = a[0] + a[1]
	b := a
	a[3] = 5
	b[0]++
	if x > y {
		a[1] = b[2]
		b = a
	} else {
		b[3] -= a[2]
	}
	return a[0] + a[1] - b[0], b[3] - float64(len(a))
}

func aDynamicIndex(x []int32, i int, j uint8) (int32, int32) {
	var a [5]int32
	b := [...]int32{1, 2, 4: 7, 6, 3: 0 + 9}
	for k, v := range x {
		a[k] = v
		a[k] += b[k]
	}
	c := a
	c[i]++
	a[j] -= 2
	return a[i] - c[j], b[i+1]
}

func aZeroInLoop(n int) (s int32) {
	for i := range n & 7 {
		var a [3]int32
		a[i%3]++
		s = s*3 + a[0]*2 + a[i/3]
		b := [2][3]int32{{1, 2}, {2: int32(i)}}
		b[i%2][i%3] += s
		s += b[1][2] + b[0][1] - b[i&1][0]
	}
	return s
}

func rotate(a [3]float64, by int) [3]float64 {
	var b [3]float64
	for i, v := range a {
		b[(i+by)%3] = v
	}
	a[0] = 100
	return b
}

func minmax(a [3]float64) (lo [3]float64, n int, hi [3]float64) {
	lo, hi = a, a
	for i := range a {
		lo[i] = min(a[i], 1)
		hi[i] = max(a[i], 1)
		n = i
	}
	return
}

func aByValue(a [3]float64, i int) (float64, bool) {
	b := rotate(a, i)
	c, n, d := minmax(rotate(b, 1))
	return a[0] + b[n] + rotate(c, 2)[i&1] + d[0], b == a || c != [3]float64{1, 1, 1}
}

func aRangeCopies(a [4]int32) (s int32) {
	for i, v := range a {
		a[3-i] = v + 1
		s = s*5 + v
	}
	for i, v := range [...]int32{3, 1, 2} {
		s += v * a[i]
	}
	for i := range a {
		a[i] = int32(i)
	}
	var k int
	for k, a[1] = range a {
		s += a[1]
	}
	for range a {
		s++
	}
	return s + int32(k)
}

func aArrayViews(x []int32, i int) int32 {
	var a [6]int32
	var m [3][4]int32
	v := a[1:5]
	for k := range v {
		v[k] = int32(k) * x[0]
	}
	fill32(m[i][:], x[1])
	fill32(m[2][1:3], 8)
	fill32(v[i:], 3)
	w := m[1][2:]
	w = m[i][:1]
	w[0] -= 5
	return a[1] + a[2]*10 + a[4]*100 + m[i][1] + m[2][2] + m[0][0] + int32(len(w))
}

func fill32(x []int32, v int32) {
	for i := range x {
		x[i] = v + int32(i)
	}
}

func aBig(x []int32, i int) (int32, int32) {
	var a, b [300]int32
	for k := range a {
		a[k] = int32(k) + x[k%len(x)]
	}
	b = a
	a[i&255] = -1
	c := b
	b = [300]int32{5, 6, 299: 7}
	return a[i&255] + c[i&255], b[i&255] - b[299] + c[299]
}

func aManyConstants(x int32) int32 {
	var a [70]int32
	a[69] = x
	a[1] = a[69] + a[0]
	return a[1]
}

var primes = [...]int32{2, 3, 5, 7, 11, 13, 17}

var weights = [2][3]float64{{0.5, 1, 2}, {1 << 4, math.Pi}}

func aTables(i, j int) (int32, float64) {
	local := [...]int32{10, 20, 30, 40}
	s := local[i&3]
	for _, p := range primes {
		s += p * tableAt(i)
	}
	return s, weights[1][0] + weights[i][j] + float64(len(primes))
}

func tableAt(i int) int32 { return primes[i%len(primes)] }

func aEmpty(i int, x []float64) int {
	var none [0]int
	var never []float64
	for range none {
		return 5
	}
	if i == 77 {
		never[i] = x[0]
	}
	if i == 3 {
		return none[i]
	}
	return len(never) + len(none)
}

// Structs.

type point struct{ x, y float64 }

type body struct {
	at, speed point
	mass      float64
	tags      [3]int32
	_         bool
	point
}

func (p point) unused() float64 { return p.x }

func move(b body, dt float64) body {
	b.at.x += float64(b.speed.x * dt)
	b.at.y += float64(b.speed.y * dt)
	b.tags[1]++
	return b
}

func swapped(p point) (q point, ok bool) {
	q.x, q.y = p.y, p.x
	ok = q != p
	return
}

func aStructs(x, y float64, i int) (float64, int32, bool) {
	b := body{speed: point{y: y, x: 1}, mass: 2, tags: [3]int32{1, 2, 3}}
	b.at = point{x, y}
	c := b
	for k := 0; k < i&3; k++ {
		b = move(b, 0.5)
		if b.at.x > 10 {
			b.at, b.speed = b.speed, b.at
		}
	}
	c.tags[i&3%3] = 9
	b.point.x = 3
	b.y = b.x
	q, ok := swapped(b.at)
	var zero point
	switch q {
	case zero:
		return 0, 1, ok
	case point{x, y}, point{1, 2}:
		return 2, 3, ok
	}
	return b.at.x + float64(b.at.y*c.at.x) + q.x + b.point.y, b.tags[1] + c.tags[2], c == b
}

func aStructParam(b body, p point) float64 {
	b.at.x = p.y
	return b.at.x + float64(b.speed.y*b.mass) + float64(b.tags[2]) + b.y
}

func aBlankFields(b, c body) (bool, bool) {
	c.at, c.speed, c.mass, c.tags, c.point = b.at, b.speed, b.mass, b.tags, b.point
	return b == c, [2]body{b, c} == [2]body{c, b}
}

func aArrayOfStructs(x []float64, i int) (float64, int32) {
	var bs [4]body
	for k := range bs {
		bs[k].at.x = x[k%len(x)]
		bs[k].tags[k%3] = int32(k)
		bs[k].mass++
	}
	bs[1], bs[i] = bs[i], bs[1]
	b := bs[2]
	bs[2] = move(bs[i], 1)
	s := 0.0
	for k, b := range bs {
		s += float64(b.at.x * float64(k+1))
		s += b.mass
	}
	anon := struct {
		p [2]point
		n int32
	}{n: 4}
	anon.p[i&1].y = s
	return s + anon.p[1].y, b.tags[2] + bs[i].tags[1] + anon.n
}

// Bits.

func aBits8(x uint8, k int) (int, int, int, int, uint8, uint8) {
	return bits.LeadingZeros8(x), bits.TrailingZeros8(x), bits.OnesCount8(x), bits.Len8(x), bits.Reverse8(x), bits.RotateLeft8(x, k)
}

func aBits16(x uint16, k int) (int, int, int, int, uint16, uint16, uint16) {
	return bits.LeadingZeros16(x), bits.TrailingZeros16(x), bits.OnesCount16(x), bits.Len16(x), bits.Reverse16(x), bits.RotateLeft16(x, k), bits.ReverseBytes16(x)
}

func aBits32(x uint32, k int) (int, int, int, int, uint32, uint32, uint32) {
	return bits.LeadingZeros32(x), bits.TrailingZeros32(x), bits.OnesCount32(x), bits.Len32(x), bits.Reverse32(x), bits.RotateLeft32(x, k), bits.ReverseBytes32(x)
}

func aBits64(x uint64, k int) (int, int, int, int, uint64, uint64, uint64) {
	return bits.LeadingZeros64(x), bits.TrailingZeros64(x), bits.OnesCount64(x), bits.Len64(x), bits.Reverse64(x), bits.RotateLeft64(x, k), bits.ReverseBytes64(x)
}

func aBits(x uint, k int) (int, int, int, int, uint, uint, uint) {
	return bits.LeadingZeros(x), bits.TrailingZeros(x), bits.OnesCount(x), bits.Len(x), bits.Reverse(x), bits.RotateLeft(x, k), bits.ReverseBytes(x) + bits.UintSize
}

func aWide(x, y uint64, u, v uint32, a, b uint) (uint64, uint64, uint32, uint32, uint, uint) {
	s, c := bits.Add64(x, y, x&1)
	d, e := bits.Sub64(x, y, y&1)
	h, l := bits.Mul64(s, d)
	s2, c2 := bits.Add32(u, v, u&1)
	d2, e2 := bits.Sub32(u, v, v&1)
	h2, l2 := bits.Mul32(s2, d2)
	s3, c3 := bits.Add(a, b, a&1)
	d3, e3 := bits.Sub(a, b, b&1)
	h3, l3 := bits.Mul(s3, d3)
	return h ^ c, l ^ e, h2 ^ c2, l2 ^ e2, h3 ^ c3, l3 ^ e3
}
