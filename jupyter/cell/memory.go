package cell

import (
	"fmt"
	"go/ast"
	"go/token"
	"math"
	"os"
	"reflect"
	"strconv"
	"strings"
	"sync"
)

// small reports whether the size of a make is a literal that cannot be too big.
func small(size ast.Expr) bool {
	lit, ok := size.(*ast.BasicLit)
	return ok && lit.Kind == token.INT && len(lit.Value) < 7
}

// room returns the size n of a make, if a value like sample with n elements fits
// into the memory of this machine, and panics if not. What it does not
// understand it leaves to make.
func room(sample, n interface{}) int {
	size := reflect.ValueOf(n)
	var count float64
	switch {
	case !size.IsValid():
		panic(&Error{Name: "CompileError", Message: "make: the size is nil"})
	case size.CanInt():
		count = float64(size.Int())
	case size.CanUint():
		count = float64(size.Uint())
	case size.CanFloat() && size.Float() == math.Trunc(size.Float()):
		count = size.Float()
	default:
		panic(&Error{Name: "CompileError", Message: fmt.Sprintf("make: the size %v is not an integer", n)})
	}
	t := reflect.TypeOf(sample)
	each := 0.0
	switch {
	case t == nil:
	case t.Kind() == reflect.Slice, t.Kind() == reflect.Chan:
		each = float64(t.Elem().Size())
	case t.Kind() == reflect.Map:
		each = float64(t.Elem().Size() + t.Key().Size())
	}
	if limit := float64(Memory()); count*each > limit || count > math.MaxInt {
		panic(&Error{Name: "OutOfMemory", Message: fmt.Sprintf("make(%v, %v) needs %s; this machine has %s", t, n, BytesText(count*each), BytesText(limit))})
	}
	return int(count)
}

// BytesText is a number of bytes in units of 1024.
func BytesText(b float64) string {
	unit := 0
	units := []string{"bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"}
	for b >= 1024 && unit < len(units)-1 {
		b, unit = b/1024, unit+1
	}
	return fmt.Sprintf("%.4g %s", b, units[unit])
}

// Memory is how many bytes this process may use at most: the memory of the
// machine, or of its container. Where the system does not tell, it is a terabyte.
func Memory() int64 { return memory() }

var memory = sync.OnceValue(func() int64 {
	limit := float64(1 << 40)
	if text, err := os.ReadFile("/proc/meminfo"); err == nil {
		for line := range strings.Lines(string(text)) {
			var kib float64
			if n, _ := fmt.Sscanf(line, "MemTotal: %g kB", &kib); n == 1 {
				limit = min(limit, kib*1024)
			}
		}
	}
	for _, file := range []string{"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"} {
		if text, err := os.ReadFile(file); err == nil {
			if b, err := strconv.ParseFloat(strings.TrimSpace(string(text)), 64); err == nil && b > 0 {
				limit = min(limit, b)
			}
		}
	}
	return int64(limit)
})
