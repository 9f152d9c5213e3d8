package libm

import "math"

func Acos(x float64) float64 { return math.Acos(x) }

func Acosh(x float64) float64 { return math.Acosh(x) }

func Asin(x float64) float64 { return math.Asin(x) }

func Asinh(x float64) float64 { return math.Asinh(x) }

func Atan(x float64) float64 { return math.Atan(x) }

func Atanh(x float64) float64 { return math.Atanh(x) }

func Cbrt(x float64) float64 { return math.Cbrt(x) }

func Cos(x float64) float64 { return math.Cos(x) }

func Cosh(x float64) float64 { return math.Cosh(x) }

func Erf(x float64) float64 { return math.Erf(x) }

func Erfc(x float64) float64 { return math.Erfc(x) }

func Erfcinv(x float64) float64 { return math.Erfcinv(x) }

func Erfinv(x float64) float64 { return math.Erfinv(x) }

func Exp(x float64) float64 { return math.Exp(x) }

func Exp2(x float64) float64 { return math.Exp2(x) }

func Expm1(x float64) float64 { return math.Expm1(x) }

func Gamma(x float64) float64 { return math.Gamma(x) }

func J0(x float64) float64 { return math.J0(x) }

func J1(x float64) float64 { return math.J1(x) }

func Log(x float64) float64 { return math.Log(x) }

func Log10(x float64) float64 { return math.Log10(x) }

func Log1p(x float64) float64 { return math.Log1p(x) }

func Log2(x float64) float64 { return math.Log2(x) }

func Logb(x float64) float64 { return math.Logb(x) }

func Sin(x float64) float64 { return math.Sin(x) }

func Sinh(x float64) float64 { return math.Sinh(x) }

func Tan(x float64) float64 { return math.Tan(x) }

func Tanh(x float64) float64 { return math.Tanh(x) }

func Y0(x float64) float64 { return math.Y0(x) }

func Y1(x float64) float64 { return math.Y1(x) }

func Atan2(x, y float64) float64 { return math.Atan2(x, y) }

func Hypot(x, y float64) float64 { return math.Hypot(x, y) }

func Mod(x, y float64) float64 { return math.Mod(x, y) }

func Nextafter(x, y float64) float64 { return math.Nextafter(x, y) }

func Pow(x, y float64) float64 { return math.Pow(x, y) }

func Remainder(x, y float64) float64 { return math.Remainder(x, y) }

func Ilogb(x float64) int { return math.Ilogb(x) }

func Jn(n int, x float64) float64 { return math.Jn(n, x) }

func Yn(n int, x float64) float64 { return math.Yn(n, x) }

func Ldexp(frac float64, exp int) float64 { return math.Ldexp(frac, exp) }

func Nextafter32(x, y float32) float32 { return math.Nextafter32(x, y) }

func Pow10(n int) float64 { return math.Pow10(n) }

func Frexp(x float64) (frac float64, exp int) { return math.Frexp(x) }

func Lgamma(x float64) (lgamma float64, sign int) { return math.Lgamma(x) }

func Sincos(x float64) (sin, cos float64) { return math.Sincos(x) }
