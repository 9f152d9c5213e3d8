// Command accuracy measures the functions of package libm against MPFR, which
// is correct to the last bit, and fails if one is further off than table.go
// claims. `make accuracy` runs it and has it write ACCURACY.md.
//
// The error is in ulp: the distance between the result and the true value,
// divided by the distance of neighbouring float64 numbers at the true value
// (2**-1074 below the normal range). A result that is correctly rounded has at
// most 0.5. An infinite result counts as 2**1024. Functions whose results are
// exact are compared with package math, as are all of them where an argument is
// zero, infinite or NaN.
package main

import (
	"bufio"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"time"
)

func main() {
	points := flag.Int("points", 1000000, "points per function; slow ones take a fifth of it")
	only := flag.String("run", "", "only functions whose names match this regular expression")
	python := flag.String("python", "python3", "a Python that has gmpy2")
	script := flag.String("script", "gpukit/internal/libm/accuracy/mpfr.py", "where mpfr.py is")
	table := flag.String("table", "", "write the result to this Markdown file, whose lines of other functions stay")
	flag.Parse()
	if err := run(*points, *only, *python, *script, *table); err != nil {
		fmt.Fprintln(os.Stderr, "accuracy:", err)
		os.Exit(1)
	}
}

func run(points int, only, python, script, table string) error {
	names, err := regexp.Compile(only)
	if err != nil {
		return err
	}
	var chosen []*row
	for _, r := range rows {
		if names.MatchString(r.name) {
			chosen = append(chosen, r)
		}
	}
	if len(chosen) == 0 {
		return fmt.Errorf("no function matches %q", only)
	}
	pool, err := startPool(python, script)
	if err != nil {
		return err
	}
	defer pool.close()
	var failed []string
	var results []result
	for _, r := range chosen {
		start := time.Now()
		res, err := r.measure(points, pool)
		if err != nil {
			return fmt.Errorf("%s: %w", r.name, err)
		}
		verdict := ""
		if !(res.ours.max <= r.bound) {
			failed = append(failed, r.name)
			verdict = "  MORE THAN CLAIMED"
		}
		fmt.Printf("%-14s %8d points  max %-8s at %-40s claimed %-5v Go's %-8s %5.1f s%s\n", r.name, res.points,
			ulps(res.ours.max), res.ours.at(r), r.bound, ulps(res.theirs.max), time.Since(start).Seconds(), verdict)
		results = append(results, res)
	}
	if table != "" {
		before, err := os.ReadFile(table)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if err := os.WriteFile(table, []byte(markdown(results, string(before))), 0o666); err != nil {
			return err
		}
	}
	if failed != nil {
		return fmt.Errorf("less accurate than claimed in table.go: %s", strings.Join(failed, ", "))
	}
	return nil
}

// A worst is the greatest error of a function.
type worst struct{ max, x, y float64 }

func (w *worst) see(err, x, y float64) {
	if err > w.max || err != err {
		*w = worst{err, x, y}
	}
}

func (w worst) at(r *row) string {
	if w.max == 0 {
		return ""
	}
	if r.binary {
		return fmt.Sprintf("%v, %v", w.x, w.y)
	}
	return fmt.Sprint(w.x)
}

type result struct {
	row          *row
	points       int
	ours, theirs worst
}

const chunk = 10000

func (r *row) measure(n int, pool *pool) (result, error) {
	if r.slow {
		n /= 5
	}
	xs, ys := r.points(n)
	res := result{row: r, points: len(xs)}
	var exactly, measured []int
	for i, x := range xs {
		if r.exactly(x, ys[i]) {
			exactly = append(exactly, i)
		} else {
			measured = append(measured, i)
		}
	}
	for _, i := range exactly {
		x, y := xs[i], ys[i]
		if !same(r.ours(x, y), r.theirs(x, y)) {
			res.ours.see(math.Inf(1), x, y)
		}
	}
	var mu sync.Mutex
	var wait sync.WaitGroup
	var first error
	for len(measured) > 0 {
		part := measured[:min(chunk, len(measured))]
		measured = measured[len(part):]
		ref := pool.take()
		wait.Go(func() {
			defer pool.put(ref)
			ours, theirs, err := r.part(ref, xs, ys, part)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				first = errors.Join(first, err)
				return
			}
			res.ours.see(ours.max, ours.x, ours.y)
			res.theirs.see(theirs.max, theirs.x, theirs.y)
		})
	}
	wait.Wait()
	return res, first
}

func (r *row) part(ref *reference, xs, ys []float64, part []int) (ours, theirs worst, err error) {
	args := [][]float64{make([]float64, len(part)), make([]float64, len(part))}
	for k, i := range part {
		args[0][k], args[1][k] = xs[i], ys[i]
		if r.start {
			args[1][k] = r.ours(xs[i], 0)
		}
	}
	if !r.binary && !r.start {
		args = args[:1]
	}
	truths, err := ref.ask(r.mpfr, args)
	if err != nil {
		return ours, theirs, err
	}
	for k, i := range part {
		x, y := xs[i], ys[i]
		floor := 0.0
		if r.floor != nil {
			floor = r.floor(x, y)
		}
		widen := 1.0
		if r.widen != nil {
			widen = r.widen(x, y)
		}
		ours.see(truths[k].off(r.ours(x, y), floor)/widen, x, y)
		theirs.see(truths[k].off(r.theirs(x, y), floor)/widen, x, y)
	}
	return ours, theirs, nil
}

// exactly says whether package math is the oracle for these arguments.
func (r *row) exactly(x, y float64) bool {
	return r.mpfr == "" || special(x) && !r.orders || r.binary && special(y)
}

func special(x float64) bool { return x == 0 || math.IsInf(x, 0) || x != x }

func same(a, b float64) bool {
	return a != a && b != b || math.Float64bits(a) == math.Float64bits(b)
}

// A truth is a value of MPFR: rounded, and what is left in ulp, where an ulp is
// 2**exp.
type truth struct {
	rounded, rest float64
	exp           int
}

// off is the error of y in ulp.
func (t truth) off(y, floor float64) float64 {
	switch {
	case t.rounded != t.rounded || y != y:
		if t.rounded != t.rounded && y != y {
			return 0
		}
		return math.Inf(1)
	case y == 0 && t.rounded == 0:
		if math.Signbit(y) != math.Signbit(t.rounded) {
			return math.Inf(1)
		}
	case math.IsInf(y, 0):
		if math.Signbit(y) != math.Signbit(t.rounded) {
			return math.Inf(1)
		}
		if math.Abs(t.rounded) == math.MaxFloat64 {
			return max(0, 1-math.Copysign(t.rest, t.rest*t.rounded))
		}
		return math.Inf(1)
	}
	err := math.Abs(math.Ldexp(y/4-t.rounded/4, 2-t.exp) - t.rest)
	if math.Abs(y) < 0x1p1000 {
		err = math.Abs(math.Ldexp(y-t.rounded, -t.exp) - t.rest)
	}
	if floor > 0 {
		_, e := math.Frexp(floor)
		err = math.Ldexp(err, min(0, t.exp-max(e-53, -1074)))
	}
	return err
}

// A reference is a process that runs mpfr.py.
type reference struct {
	in  io.WriteCloser
	out *bufio.Reader
	cmd *exec.Cmd
}

func (ref *reference) ask(name string, args [][]float64) ([]truth, error) {
	n := len(args[0])
	w := bufio.NewWriter(ref.in)
	fmt.Fprintf(w, "%s %d %d\n", name, len(args), n)
	for _, a := range args {
		binary.Write(w, binary.NativeEndian, a)
	}
	if err := w.Flush(); err != nil {
		return nil, err
	}
	rounded, rest, exp := make([]float64, n), make([]float64, n), make([]int32, n)
	for _, to := range []any{rounded, rest, exp} {
		if err := binary.Read(ref.out, binary.NativeEndian, to); err != nil {
			return nil, fmt.Errorf("mpfr.py gave no answer: %w", err)
		}
	}
	truths := make([]truth, n)
	for i := range truths {
		truths[i] = truth{rounded[i], rest[i], int(exp[i])}
	}
	return truths, nil
}

// A pool has one reference for every core.
type pool struct {
	free chan *reference
	all  []*reference
}

func startPool(python, script string) (*pool, error) {
	p := &pool{free: make(chan *reference, runtime.NumCPU())}
	for range cap(p.free) {
		cmd := exec.Command(python, filepath.FromSlash(script))
		cmd.Stderr = os.Stderr
		in, err := cmd.StdinPipe()
		if err != nil {
			return nil, err
		}
		out, err := cmd.StdoutPipe()
		if err != nil {
			return nil, err
		}
		if err := cmd.Start(); err != nil {
			return nil, err
		}
		ref := &reference{in, bufio.NewReader(out), cmd}
		p.all = append(p.all, ref)
		p.free <- ref
	}
	return p, nil
}

func (p *pool) take() *reference   { return <-p.free }
func (p *pool) put(ref *reference) { p.free <- ref }

func (p *pool) close() {
	for _, ref := range p.all {
		ref.in.Close()
		ref.cmd.Wait()
	}
}

func ulps(x float64) string {
	switch {
	case x == 0:
		return "exact"
	case math.IsInf(x, 0):
		return "wrong"
	case x >= 1e4:
		return fmt.Sprintf("%.0e", x)
	case x >= 100:
		return fmt.Sprintf("%.0f", x)
	case x == math.Trunc(x):
		return fmt.Sprintf("%.0f", x)
	}
	return fmt.Sprintf("%.3f", x)
}

// claim is what ACCURACY.md says of a row in its second column.
func (r *row) claim() string {
	s := ulps(r.bound)
	if r.bound != 0 {
		s = fmt.Sprint(r.bound)
	}
	if r.note != "" {
		s += " (" + r.note + ")"
	}
	return s
}

func markdown(results []result, before string) string {
	var b strings.Builder
	b.WriteString(`# Accuracy of package libm

Written by ` + "`make accuracy`" + ` from the bounds in accuracy/table.go and from measurements against MPFR; do not edit.

The error is the distance from the true value in ulp, the distance of neighbouring float64 numbers at the true value
(2^-1074 below the normal range). A correctly rounded result is off by at most 0.5. "Exact" functions are the same as
package math's on all points (but Ldexp, of exponents next to the ends of int, where package math's wraps around), and so
is every function where an argument is zero, infinite or NaN. The points are the same in every run: exponents uniform over
the function's range, typical ranges uniformly, and neighbourhoods of thresholds, zeros and extrema; for angles also
float64 numbers next to the first 10^6 multiples of pi/2 and, for every exponent, those that come closest. "Measured" is
the greatest error seen, in units of the scale that stands in parentheses, not a bound. The last column is package math of Go on the same points ("wrong" is a NaN, an infinity or a sign that should not be).

| function | claimed | measured | at | points | Go |
|---|---|---|---|---|---|
`)
	lines := map[string]string{}
	for line := range strings.Lines(before) {
		if name, _, ok := strings.Cut(strings.TrimPrefix(line, "| "), " | "); ok {
			lines[name] = line
		}
	}
	for _, r := range results {
		lines[r.row.name] = fmt.Sprintf("| %s | %s | %s | %s | %d | %s |\n", r.row.name, r.row.claim(), ulps(r.ours.max), r.ours.at(r.row), r.points, ulps(r.theirs.max))
	}
	for _, r := range rows {
		b.WriteString(lines[r.name])
	}
	return b.String()
}
