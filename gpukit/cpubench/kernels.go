package main

import "math"

// The functions that are measured: gpukit takes them as kernels, plain Go calls
// them. Products that a sum takes are rounded first, whatever the processor.

func product(a, b float64) float64 { return a * b }

func vest14(countRow int64, multBy [][]float64, discount [][][]float64, n, countCol int64, cv [][][]float64) {
	for d := 0; d < int(countRow); d++ {
		for id := 0; id < int(countCol); id++ {
			for num := 0; num < int(n); num++ {
				cv[d][id][num] = multBy[id][num] * discount[d][id][num]
			}
		}
	}
}

func vest16(multBy, discount [][]float64, n, countCol int64, cv [][]float64) {
	for id := 0; id < int(countCol); id++ {
		for num := 0; num < int(n); num++ {
			cv[id][num] = multBy[id][num] * discount[id][num]
		}
	}
}

func vest17(countRow int64, multBy []float64, discount [][]float64, n int64, cv [][]float64) {
	for d := 0; d < int(countRow); d++ {
		for num := 0; num < int(n); num++ {
			cv[d][num] = multBy[num] * discount[d][num]
		}
	}
}

func square(x float64) float64 { return float64(x * x) }

func chord(lat1, lon1, lat2, lon2 float64) float64 {
	return square(math.Sin(0.008726645*(lat2-lat1))) +
		float64(math.Cos(0.01745329*lat1)*math.Cos(0.01745329*lat2)*square(math.Sin(0.008726645*(lon2-lon1))))
}

func distance(lat1, lon1, lat2, lon2, s float64) float64 {
	a := chord(lat1, lon1, lat2, lon2)
	return math.Atan2(a, 1-a) * s
}

// cumulative is the normal distribution by the polynomial of Abramowitz and
// Stegun, 26.2.17.
func cumulative(d float64) float64 {
	k := 1 / (1 + float64(0.2316419*math.Abs(d)))
	p := 0.31938153 + float64(k*(-0.356563782+float64(k*(1.781477937+float64(k*(-1.821255978+float64(k*1.330274429)))))))
	r := float64(0.39894228040143267793994605993438 * math.Exp(-0.5*d*d) * (k * p))
	if d > 0 {
		return 1 - r
	}
	return r
}

func cumulativeErf(d float64) float64 {
	return 0.5 + float64(0.5*math.Erf(d*0.70710678118654752440))
}

// optionsPoly prices European options after Black and Scholes.
func optionsPoly(price, strike, years []float64, rate, volatility float64, call, put []float64) {
	for i := 0; i < len(price); i++ {
		q := math.Sqrt(years[i])
		d1 := (math.Log(price[i]/strike[i]) + float64((rate+float64(0.5*volatility*volatility))*years[i])) / (volatility * q)
		d2 := d1 - float64(volatility*q)
		c1, c2, e := cumulative(d1), cumulative(d2), math.Exp(-rate*years[i])
		call[i] = float64(price[i]*c1) - float64(strike[i]*e*c2)
		put[i] = float64(strike[i]*e*(1-c2)) - float64(price[i]*(1-c1))
	}
}

func optionsErf(price, strike, years []float64, rate, volatility float64, call, put []float64) {
	for i := 0; i < len(price); i++ {
		q := math.Sqrt(years[i])
		d1 := (math.Log(price[i]/strike[i]) + float64((rate+float64(0.5*volatility*volatility))*years[i])) / (volatility * q)
		d2 := d1 - float64(volatility*q)
		c1, c2, e := cumulativeErf(d1), cumulativeErf(d2), math.Exp(-rate*years[i])
		call[i] = float64(price[i]*c1) - float64(strike[i]*e*c2)
		put[i] = float64(strike[i]*e*(1-c2)) - float64(price[i]*(1-c1))
	}
}

func mandelbrot(cx, cy float64, most int) int {
	x, y := 0.0, 0.0
	i := 0
	for i < most {
		a, b := float64(x*x), float64(y*y)
		if a+b > 4 {
			break
		}
		y = float64(2*x*y) + cy
		x = a - b + cx
		i++
	}
	return i
}

func matrices(a, b, c [][]float64) {
	for i := 0; i < len(a); i++ {
		for j := 0; j < len(b[0]); j++ {
			s := 0.0
			for k := 0; k < len(b); k++ {
				s += float64(a[i][k] * b[k][j])
			}
			c[i][j] = s
		}
	}
}
