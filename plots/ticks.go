package plots

import (
	"math"
	"strconv"
	"strings"

	"gonum.org/v1/plot"
)

// niceTicks marks about n multiples of 1, 2 or 5 times a power of ten. Unlike
// plot.DefaultTicks it keeps to them in ranges as small as 1e-300, and its
// labels show just the digits that differ.
type niceTicks struct{ n int }

// Ticks returns labelled ticks within [lo, hi].
func (t *niceTicks) Ticks(lo, hi float64) []plot.Tick {
	var ticks []plot.Tick
	values, step := niceValues(lo, hi, t.n)
	for _, v := range values {
		ticks = append(ticks, plot.Tick{Value: v, Label: formatTick(v, step, math.Max(math.Abs(lo), math.Abs(hi)))})
	}
	return ticks
}

// niceValues returns the multiples of a nice step within [lo, hi], at most n+1
// of them, and the step.
func niceValues(lo, hi float64, n int) (values []float64, step float64) {
	n = max(n, 1)
	span := hi/float64(n) - lo/float64(n) // divided first: hi-lo may overflow
	if !(span > 0) || math.IsInf(span, 0) {
		return []float64{lo}, math.Abs(lo)
	}
	exp := int(math.Floor(math.Log10(span)))
	mult := 10.0
	for _, m := range []float64{1, 2, 5} {
		if m*math.Pow10(exp) >= span*(1-1e-9) {
			mult = m
			break
		}
	}
	if mult == 10 {
		mult, exp = 1, exp+1
	}
	// Through the decimal text each value is the double nearest to what its
	// label says: 0.3, not 0.30000000000000004.
	step = decimal(mult, exp)
	if step == 0 || math.IsInf(step, 0) {
		return []float64{lo}, math.Abs(lo)
	}
	for k := math.Ceil(lo/step*(1-math.Copysign(1e-12, lo))) + 0; len(values) <= n+1; k++ {
		v := decimal(k*mult, exp)
		if v > hi+step*1e-9 {
			break
		}
		if v >= lo-step*1e-9 {
			values = append(values, v)
		}
		if k+1 == k {
			break
		}
	}
	if len(values) == 0 {
		return []float64{lo}, math.Abs(lo)
	}
	return values, step
}

func decimal(m float64, exp int) float64 {
	v, err := strconv.ParseFloat(strconv.FormatFloat(m, 'f', -1, 64)+"e"+strconv.Itoa(exp), 64)
	if err != nil {
		return math.Inf(1)
	}
	return v + 0 // no -0
}

// formatTick writes v with the decimals that a step needs, on an axis that
// reaches largest.
func formatTick(v, step, largest float64) string {
	if v == 0 {
		return "0"
	}
	if step <= 0 || math.IsNaN(step) {
		return shortNumber(v)
	}
	exp := int(math.Floor(math.Log10(step) + 1e-9))
	whole := int(math.Floor(math.Log10(largest))) + 1
	if exp >= -5 && (largest < 1e6 || exp < 3 && whole+max(0, -exp) <= 9) {
		return strconv.FormatFloat(v, 'f', max(0, -exp), 64)
	}
	digits := int(math.Floor(math.Log10(math.Abs(v))+1e-9)) - exp
	return trimExponent(strconv.FormatFloat(v, 'e', max(0, min(digits, 16)), 64))
}

// shortNumber writes v with up to six digits.
func shortNumber(v float64) string {
	return trimExponent(strconv.FormatFloat(v, 'g', 6, 64))
}

// trimExponent turns 1.50e+07 into 1.5e7.
func trimExponent(s string) string {
	m, e, ok := strings.Cut(s, "e")
	if !ok {
		return s
	}
	if strings.Contains(m, ".") {
		m = strings.TrimRight(strings.TrimRight(m, "0"), ".")
	}
	digits := strings.TrimLeft(e[1:], "0")
	if digits == "" {
		return m
	}
	sign := ""
	if e[0] == '-' {
		sign = "-"
	}
	return m + "e" + sign + digits
}
