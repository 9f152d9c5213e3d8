package gpukit

import (
	"fmt"
	"math"
	"os"
	"runtime/debug"
	"strconv"
	"strings"

	"gpunotes/gpukit/internal/cpu"
)

// Go ends the process when memory runs out, and a notebook with it. So what is
// large is compared with what the machine can give before it is asked for.

// large is the size in bytes from which it is worth looking.
const large = 64 << 20

// room says why n elements of dtype t do not fit into memory, or "".
func room(t DType, n int) string {
	size := float64(n) * float64(t.Size())
	if size < large {
		return ""
	}
	have := available()
	if size > have && cpu.DropPages() {
		debug.FreeOSMemory()
		have = available()
	}
	if size > have {
		return fmt.Sprintf("%d elements of %v need %s, and %s are available; take fewer elements, or a part at a time", n, t, amount(size), amount(have))
	}
	return ""
}

// amount writes a number of bytes of memory. The tables and plans write such units as
// nvprof does, KB and so on.
func amount(n float64) string {
	unit := "bytes"
	for _, u := range []string{"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"} {
		if n < 1024 {
			break
		}
		n, unit = n/1024, u
	}
	return fmt.Sprintf("%.4g %s", n, unit)
}

// needRoom panics with a *ShapeError if n elements of dtype t do not fit.
func needRoom(op string, t DType, n int) {
	if why := room(t, n); why != "" {
		panic(&ShapeError{Op: op, Detail: why})
	}
}

// available is the number of bytes that this process can still have: Go's own
// limit, a container's, and what Linux calls MemAvailable. Elsewhere only the
// first is known.
func available() float64 {
	have := float64(math.MaxInt64)
	if limit := debug.SetMemoryLimit(-1); limit < math.MaxInt64 {
		have = float64(limit)
	}
	if text, err := os.ReadFile("/proc/meminfo"); err == nil {
		for line := range strings.Lines(string(text)) {
			if f := strings.Fields(line); len(f) == 3 && f[0] == "MemAvailable:" {
				if kb, err := strconv.ParseFloat(f[1], 64); err == nil {
					have = min(have, kb*1024)
				}
			}
		}
	}
	if text, err := os.ReadFile("/sys/fs/cgroup/memory.max"); err == nil {
		if b, err := strconv.ParseFloat(strings.TrimSpace(string(text)), 64); err == nil {
			have = min(have, b)
		}
	}
	return have
}
