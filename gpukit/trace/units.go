package trace

import (
	"fmt"
	"time"
)

// nvprof's rule, read off its published tables: a number is as long as its column
// allows, five significant digits before a unit of two letters, six before one of
// one letter. Nanoseconds and bytes are counts and have no decimals. Times change
// units at 1000, sizes at 1024.

// FormatDuration writes a time as nvprof does: 896ns, 1.1840us, 27.392us,
// 158.00ms, 1.22538s. From 1000 s on, where nvprof writes 2e+03s, it keeps the six
// digits, and all digits from 1000000 s on.
func FormatDuration(d time.Duration) string {
	sign, ns := "", float64(d)
	if d < 0 {
		sign, ns = "-", -ns
	}
	switch {
	case ns < 1e3:
		return fmt.Sprintf("%s%.0fns", sign, ns)
	case ns < 1e6:
		return fmt.Sprintf("%s%#.5gus", sign, ns/1e3)
	case ns < 1e9:
		return fmt.Sprintf("%s%#.5gms", sign, ns/1e6)
	case ns < 999999.5e9:
		return fmt.Sprintf("%s%#.6gs", sign, ns/1e9)
	}
	return fmt.Sprintf("%s%.0fs", sign, ns/1e9)
}

var binaryUnits = []string{"KB", "MB", "GB", "TB", "PB", "EB"}

// binary divides x by 1024 until it is below; the unit is "B" if it is at once.
func binary(x float64) (float64, string) {
	unit := "B"
	for _, u := range binaryUnits {
		if x < 1024 {
			break
		}
		x, unit = x/1024, u
	}
	return x, unit
}

// FormatSize writes a number of bytes as nvprof does, in units of 1024: 8B,
// 156.25KB, 15.259MB.
func FormatSize(bytes int64) string {
	if bytes < 0 {
		return fmt.Sprintf("%dB", bytes)
	}
	x, unit := binary(float64(bytes))
	if unit == "B" {
		return fmt.Sprintf("%dB", bytes)
	}
	return fmt.Sprintf("%#.5g%s", x, unit)
}

// FormatThroughput writes bytes per second as nvprof does, in units of 1024:
// 6.2742MB/s, 2.5387GB/s. What is not a positive finite number is "-".
func FormatThroughput(bytesPerSecond float64) string {
	if !(bytesPerSecond > 0) || bytesPerSecond-bytesPerSecond != 0 {
		return "-"
	}
	x, unit := binary(bytesPerSecond)
	if unit == "B" {
		return fmt.Sprintf("%#.6gB/s", x)
	}
	return fmt.Sprintf("%#.5g%s/s", x, unit)
}
