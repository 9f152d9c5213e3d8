// Command experiments reproduces the measurements of two public threads, about
// numba's guvectorize on a GPU and about a mesh that is made there, on simulated
// cards, and prints what the threads print beside it:
//
//	go run ./gpukit/internal/experiments [-o EXPERIMENTS.md | -check EXPERIMENTS.md]
//
// The first block replays the threads: kernels in the shape that numba gives them,
// with its register counts, geometry and copies. The second runs the same work through
// gpukit. All durations of cards are simulated.
package main

import (
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"gpunotes/gpukit/internal/driver/sim"
)

var cards = []string{"quadro-k2000", "gtx-970", "gtx-1080-ti", "tesla-t4", "a100", "h200"}

func main() {
	file := flag.String("o", "", "file to write the tables to, without what was measured on this machine")
	check := flag.String("check", "", "file that has to hold these tables; prints nothing else")
	flag.Parse()
	if err := run(*file, *check); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(file, check string) error {
	var kept strings.Builder
	var w io.Writer = io.MultiWriter(os.Stdout, &kept)
	if check != "" {
		w = &kept
	}
	fmt.Fprintf(w, "# The threads' experiments on simulated cards\n\nWritten by `make experiments`. Durations of cards are simulated: model and cards %s. Those of the threads were measured there, by nvprof.\n", sim.Model())
	if err := replays(w); err != nil {
		return err
	}
	if err := ours(w); err != nil {
		return err
	}
	if check != "" {
		was, err := os.ReadFile(check)
		if err != nil {
			return err
		}
		if now := kept.String(); string(was) != now {
			return fmt.Errorf("%s is not current (make experiments):\n%s", check, difference(string(was), now))
		}
		return nil
	}
	if file != "" {
		if err := os.WriteFile(file, []byte(kept.String()), 0o666); err != nil {
			return err
		}
	}
	return here(os.Stdout)
}

// difference shows the first line that is another.
func difference(was, now string) string {
	a, b := strings.Split(was, "\n"), strings.Split(now, "\n")
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return fmt.Sprintf("line %d was\n%s\nand is\n%s", i+1, a[i], b[i])
		}
	}
	return fmt.Sprintf("%d lines, and now %d", len(a), len(b))
}

func table(w io.Writer, header ...string) func(cells ...string) {
	row := func(cells ...string) { fmt.Fprintf(w, "| %s |\n", strings.Join(cells, " | ")) }
	fmt.Fprintln(w)
	row(header...)
	row(slices.Repeat([]string{"---"}, len(header))...)
	return row
}

// seconds writes a duration as nvprof does: five digits and a unit.
func seconds(s float64) string {
	for _, u := range []struct {
		unit string
		size float64
	}{{"s", 1}, {"ms", 1e-3}, {"us", 1e-6}} {
		if s >= u.size {
			return fmt.Sprintf("%.5g%s", s/u.size, u.unit)
		}
	}
	return fmt.Sprintf("%.4gns", s*1e9)
}

func percent(got, want float64) string { return fmt.Sprintf("%+.1f %%", 100*(got/want-1)) }

func title(card string) string {
	c, err := sim.LookupCard(card)
	if err != nil {
		return card
	}
	return c.Title
}

const (
	kernelTolerance = 0.25
	copyTolerance   = 0.15
)

// replays prints the first block. That a row is out of its bounds is an error.
func replays(w io.Writer) error {
	fmt.Fprintf(w, "\n## Replay: the kernels as numba writes them\n\nRegisters, grid and block of the threads. One number of the model is fitted to these rows, the factor for kernels that use all\n63 registers of the Quadro K2000; \"left out\" is the error if it is fitted to the other rows. Values agree with numpy's bit for bit\nwhere the work is products.\n")
	var rows []*replayed
	for _, x := range kernelRows {
		r, err := replay(x)
		if err != nil {
			return err
		}
		rows = append(rows, r)
	}
	var out []string
	row := table(w, "experiment", "card", "registers", "thread", "simulated", "error", "left out", "nothing fitted", "bound by")
	for i, r := range rows {
		others := slices.Delete(slices.Clone(rows), i, i+1)
		row(r.row.id, title(r.row.card), fmt.Sprint(r.registers), seconds(r.row.seconds), seconds(r.seconds), percent(r.seconds, r.row.seconds),
			percent(r.predict(fit(others)), r.row.seconds), percent(r.predict(1), r.row.seconds), r.bound)
		if math.Abs(r.seconds/r.row.seconds-1) > kernelTolerance {
			out = append(out, r.row.id+" on "+r.row.card)
		}
		for _, x := range rows[:i] {
			if x.row.thread == r.row.thread && (x.seconds < r.seconds) != (x.row.seconds < r.row.seconds) {
				out = append(out, "the order of "+x.row.id+" and "+r.row.id)
			}
		}
	}
	fmt.Fprintf(w, "\nThe factor that fits all rows best is %.3f; the data file has 1.82.\n", fit(rows))

	row = table(w, "copy", "card", "thread, mean", "of", "simulated", "error")
	for _, x := range copyRows {
		took, err := copied(x)
		if err != nil {
			return err
		}
		m, dir := mean(x.seconds), "HtoD"
		if x.back {
			dir = "DtoH"
		}
		row(fmt.Sprintf("%s %s", size(x.bytes), dir), title(x.card), seconds(m), fmt.Sprint(len(x.seconds)), seconds(took.Seconds()), percent(took.Seconds(), m))
		if math.Abs(took.Seconds()/m-1) > copyTolerance {
			out = append(out, fmt.Sprintf("copies of %d bytes on %s", x.bytes, x.card))
		}
	}
	logs, worst := heldOut()
	fmt.Fprintf(w, "\nHeld out: %d figures of streaming kernels on a V100, an A100 and a GH200 (RRZE-HPC/gpu-benches, gpu-stream), which had no part in\nthe fit: mean error %+.1f %%, root mean square of the log errors %.3f, the worst a factor of %.2f (%s).\n",
		len(logs), 100*math.Expm1(mean(logs)), rootMeanSquare(logs), math.Exp(slices.MaxFunc(logs, func(a, b float64) int {
			if math.Abs(a) < math.Abs(b) {
				return -1
			}
			return 1
		})), worst)
	if len(out) > 0 {
		return fmt.Errorf("out of bounds: %s", strings.Join(out, ", "))
	}
	return nil
}

// size writes a size as nvprof does.
func size(n int) string {
	x := float64(n)
	for _, u := range []string{"B", "KB", "MB"} {
		if x < 1024 || u == "MB" {
			return fmt.Sprintf("%.5g%s", x, u)
		}
		x /= 1024
	}
	return ""
}

// threadOf is the thread's figure for a program on a card, 0 if there is none.
func threadOf(id, card string) float64 {
	for _, r := range kernelRows {
		if r.id == id && r.card == card {
			return r.seconds
		}
	}
	return 0
}

// ours prints the second block.
func ours(w io.Writer) error {
	fmt.Fprintf(w, "\n## Ours: the same work through gpukit\n\nKernels; launches of one call together. \"as numba runs it\" is with OneWorkerPerSlice and NumbaGeometry(63).\nValues agree with numpy's: products bit for bit, the sum over the mesh within 1e-12.\n")
	all := programs()
	header := []string{"experiment", "", "thread, K2000", "thread, GTX 970"}
	for _, c := range cards {
		header = append(header, title(c))
	}
	row := table(w, header...)
	k2000 := make([]*figures, len(all))
	for i, p := range all {
		cells := []string{p.id, p.what, "-", "-"}
		for k, c := range cards[:2] {
			if s := threadOf(p.id, c); s > 0 {
				cells[2+k] = seconds(s)
			}
		}
		for _, c := range cards {
			f, err := p.on("sim:" + c)
			if err != nil {
				return err
			}
			if c == cards[0] {
				k2000[i] = f
			}
			cells = append(cells, seconds(f.kernel.Seconds()))
		}
		row(cells...)
	}
	fmt.Fprintf(w, "\nOn the Quadro K2000:\n")
	row = table(w, "experiment", "", "workers", "grid", "block", "registers", "launches", "copied in", "copied back", "copies", "warp instructions")
	dims := func(d [3]int) string { return fmt.Sprintf("(%d %d %d)", d[0], d[1], d[2]) }
	for i, p := range all {
		f := k2000[i]
		row(p.id, p.what, fmt.Sprint(f.plan.Workers), dims(f.grid), dims(f.block), fmt.Sprint(f.registers), fmt.Sprint(f.launches), size(f.in), size(f.out), seconds(f.copies.Seconds()), fmt.Sprint(f.warps))
	}

	n, kinds := instructions(k2000[0].plan.Code)
	r, err := replay(kernelRows[0])
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "\n## The PTX of the one worker\n\nThe thread's listing has %d instructions, for %d parameters of which it reads %d; it multiplies once. Executed, in the replay, that is\n%.1f per element. Ours has %d, of which %d load parameters, and executes %.1f per element.\n",
		listing.instructions, listing.parameters, listing.read, float64(r.stats.Warps)/2e6, n, kinds["ld.param.u64"], float64(k2000[0].warps)/2e6)
	return nil
}

// here prints what was measured on this machine.
func here(w io.Writer) error {
	fmt.Fprintf(w, "\n## Measured on this machine (%d processors, %s)\n\nNot simulated: the first call on a new device, with compiling, and the median of five later ones.\n", runtime.GOMAXPROCS(0), runtime.GOARCH)
	row := table(w, "experiment", "", "device", "first call", "later")
	for _, p := range programs() {
		if p.id == "t38" || strings.Contains(p.what, "numba") {
			continue
		}
		for _, d := range []string{"cpu", "parallel"} {
			first, later, err := p.measured(d)
			if err != nil {
				return err
			}
			row(p.id, p.what, d, seconds(first), seconds(later))
		}
	}
	fmt.Fprintf(w, "\nThe thread's t16a is t16 on its CPU: 6.578ms. Its t15 takes 0.37508s the first time and 22.832ms with a warm-up.\n%s\n", time.Now().Format(time.DateOnly))
	return nil
}
