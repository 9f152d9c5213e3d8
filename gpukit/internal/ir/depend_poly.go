package ir

import (
	"cmp"
	"math"
	"slices"
)

// monomial is a product of at most four values, in order; noValue stands for those that are not there.
type monomial [degree]Value

const degree = 4

const noValue Value = -1

var unit = monomial{noValue, noValue, noValue, noValue}

// poly is a sum of monomials with factors, in order of the monomials. Numbers wrap around as those of int64 do, so that
// it is the same number as the values that it was made of, whatever they are.
type poly []polyTerm

type polyTerm struct {
	m monomial
	c int64
}

func number64(c int64) poly {
	if c == 0 {
		return nil
	}
	return poly{{unit, c}}
}

func atom(v Value) poly { return poly{{alone(v), 1}} }

func alone(v Value) monomial { return monomial{noValue, noValue, noValue, v} }

// product reports whether m is of more than one value.
func (m monomial) product() bool { return m[degree-2] != noValue }

func compareMonomials(a, b monomial) int { return slices.Compare(a[:], b[:]) }

// plus is p + c*q.
func (p poly) plus(q poly, c int64) poly {
	out := make(poly, 0, len(p)+len(q))
	for len(p) > 0 || len(q) > 0 {
		order := 0
		switch {
		case len(p) == 0:
			order = 1
		case len(q) == 0:
			order = -1
		default:
			order = compareMonomials(p[0].m, q[0].m)
		}
		var t polyTerm
		if order <= 0 {
			t, p = p[0], p[1:]
		}
		if order >= 0 {
			t.m = q[0].m
			t.c += c * q[0].c
			q = q[1:]
		}
		if t.c != 0 {
			out = append(out, t)
		}
	}
	return out
}

// maxTerms bounds a polynomial: a longer one is a value of its own.
const maxTerms = 40

// times is the product, unless it is of too many values.
func (p poly) times(q poly) (poly, bool) {
	if len(p)*len(q) > maxTerms {
		return nil, false
	}
	var out poly
	for _, s := range p {
		for _, t := range q {
			m := slices.Concat(s.m[:], t.m[:])
			slices.Sort(m)
			if m[degree-1] != noValue {
				return nil, false
			}
			out = out.plus(poly{{monomial(m[degree:]), 1}}, s.c*t.c)
		}
	}
	return out, true
}

func (p poly) constant() (int64, bool) {
	switch {
	case len(p) == 0:
		return 0, true
	case len(p) == 1 && p[0].m == unit:
		return p[0].c, true
	}
	return 0, false
}

func (p poly) equal(q poly) bool { return slices.Equal(p, q) }

// factor is the number that stands before v alone.
func (p poly) factor(v Value) int64 {
	i, ok := slices.BinarySearchFunc(p, alone(v), func(t polyTerm, m monomial) int { return compareMonomials(t.m, m) })
	if !ok {
		return 0
	}
	return p[i].c
}

func (m monomial) has(v Value) bool { return slices.Contains(m[:], v) }

// without is m divided by v, which it has.
func (m monomial) without(v Value) monomial {
	i := slices.Index(m[:], v)
	m[i] = noValue
	slices.SortFunc(m[:], cmp.Compare)
	return m
}

// replace puts polynomials in the places of values.
func (p poly) replace(by func(Value) (poly, bool)) (poly, bool) {
	var out poly
	for _, t := range p {
		part, ok := number64(t.c), true
		for _, v := range t.m {
			if v == noValue {
				continue
			}
			q, yes := by(v)
			if !yes {
				q = atom(v)
			}
			if part, ok = part.times(q); !ok {
				return nil, false
			}
		}
		if out = out.plus(part, 1); len(out) > maxTerms {
			return nil, false
		}
	}
	return out, true
}

func gcd(a, b int64) int64 {
	for b != 0 {
		a, b = b, a%b
	}
	if a < 0 {
		a = -a
	}
	return a
}

// row is a sum of variables with whole factors and, last, a number.
type row []int64

// system asks whether whole numbers exist for which each row of zero is 0 and each row of positive is at least 0.
type system struct {
	zero, positive []row
	failed         bool // a number grew too large, or there were too many rows
}

// maxRows bounds the work.
const maxRows = 400

func (s *system) mul(a, b int64) int64 {
	c := a * b
	if a != 0 && (c/a != b || a == -1 && b == math.MinInt64) {
		s.failed = true
	}
	return c
}

func (s *system) add(a, b int64) int64 {
	c := a + b
	if (c > a) != (b > 0) && b != 0 {
		s.failed = true
	}
	return c
}

// combine is a*x + b*y.
func (s *system) combine(x row, a int64, y row, b int64) row {
	out := make(row, len(x))
	for i := range x {
		out[i] = s.add(s.mul(x[i], a), s.mul(y[i], b))
	}
	return out
}

func (r row) divisor() (g int64) {
	for _, c := range r[:len(r)-1] {
		g = gcd(g, c)
	}
	return g
}

func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b != 0 && (a < 0) != (b < 0) {
		q--
	}
	return q
}

// impossible reports whether it is certain that there are no such numbers: equations are put into the other rows, then
// variables are eliminated one by one (Fourier and Motzkin), rounding as whole numbers allow.
func (s *system) impossible() bool {
	for len(s.zero) > 0 {
		pick, at := -1, 0
		for k, r := range s.zero {
			g := r.divisor()
			last := len(r) - 1
			if g == 0 {
				if r[last] != 0 {
					return true
				}
				s.zero = slices.Delete(s.zero, k, k+1)
				pick = -2
				break
			}
			if r[last]%g != 0 {
				return true
			}
			for i := range r {
				r[i] /= g
			}
			for i, c := range r[:last] {
				if pick < 0 && (c == 1 || c == -1) {
					pick, at = k, i
				}
			}
		}
		if pick == -2 {
			continue
		}
		if pick < 0 { // no variable can be taken out: keep what follows for fractions
			for _, r := range s.zero {
				s.positive = append(s.positive, r, s.combine(r, -1, r, 0))
			}
			s.zero = nil
			break
		}
		e := s.zero[pick]
		s.zero = slices.Delete(s.zero, pick, pick+1)
		for _, rows := range [][]row{s.zero, s.positive} {
			for i, r := range rows {
				if r[at] != 0 {
					rows[i] = s.combine(r, 1, e, -r[at]*e[at])
				}
			}
		}
		if s.failed {
			return false
		}
	}
	return s.eliminate()
}

func (s *system) eliminate() bool {
	rows := s.positive
	for {
		kept := rows[:0:0]
		seen := map[string]int{}
		var vars []bool
		for _, r := range rows {
			last := len(r) - 1
			g := r.divisor()
			if g == 0 {
				if r[last] < 0 {
					return true
				}
				continue
			}
			key := make([]byte, 0, 8*last)
			for i := range r {
				if i == last {
					r[i] = floorDiv(r[i], g)
				} else {
					r[i] /= g
					for b := 0; b < 64; b += 8 {
						key = append(key, byte(r[i]>>b))
					}
				}
			}
			if k, ok := seen[string(key)]; ok { // only the sharper of two
				if r[last] < kept[k][last] {
					kept[k] = r
				}
				continue
			}
			seen[string(key)] = len(kept)
			kept = append(kept, r)
		}
		rows = kept
		if len(rows) == 0 {
			return false
		}
		n := len(rows[0]) - 1
		vars = make([]bool, n)
		best, cost := -1, math.MaxInt
		for i := range n {
			up, down := 0, 0
			for _, r := range rows {
				switch {
				case r[i] > 0:
					up++
				case r[i] < 0:
					down++
				}
			}
			if vars[i] = up+down > 0; vars[i] && up*down-up-down < cost {
				best, cost = i, up*down-up-down
			}
		}
		if best < 0 {
			return false
		}
		var next []row
		for _, r := range rows {
			if r[best] == 0 {
				next = append(next, r)
			}
		}
		for _, x := range rows {
			if x[best] <= 0 {
				continue
			}
			for _, y := range rows {
				if y[best] < 0 {
					g := gcd(x[best], y[best])
					next = append(next, s.combine(x, -y[best]/g, y, x[best]/g))
				}
			}
		}
		if s.failed || len(next) > maxRows {
			return false
		}
		rows = next
	}
}
