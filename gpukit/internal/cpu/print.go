package cpu

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"gpunotes/gpukit/internal/ir"
)

// line is a printed line. Lines are put in the order of workers before anyone
// sees them, and those of the highest are dropped when there are too many.
type line struct {
	worker int
	text   string
}

func stepPrint(m *machine, x *inst) {
	r := m.run
	if r.launch.Print == nil {
		return
	}
	args := make([]ir.Bits, len(x.print))
	for i := range m.n[x.frame] {
		worker := m.base + m.place(x.frame, i)
		if int64(worker) > r.lastLine.Load() {
			m.dropped++
			continue
		}
		for j, a := range x.print {
			k := i
			if a.one {
				k = 0
			}
			args[j] = m.banks[a.t].get(a.slot, k)
		}
		m.lines = append(m.lines, line{worker, ir.FormatPrint(m.plan.f, x.src, args)})
	}
	if len(m.lines) > 2*MaxLines {
		var n int
		m.lines, n = firstLines(m.lines)
		m.dropped += n
	}
}

// firstLines sorts lines and keeps the first; it says how many it dropped.
func firstLines(lines []line) ([]line, int) {
	slices.SortStableFunc(lines, func(a, b line) int { return cmp.Compare(a.worker, b.worker) })
	n := max(0, len(lines)-MaxLines)
	clear(lines[len(lines)-n:])
	return lines[:len(lines)-n], n
}

// collect takes the lines of a block that has run. All of a worker's come from
// one block.
func (r *run) collect(lines *[]line, dropped *int) {
	if len(*lines) == 0 && *dropped == 0 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lines = append(r.lines, *lines...)
	r.dropped += *dropped
	if len(r.lines) > 2*MaxLines {
		var n int
		r.lines, n = firstLines(r.lines)
		r.dropped += n
		r.lastLine.Store(int64(r.lines[len(r.lines)-1].worker))
	}
	clear(*lines)
	*lines, *dropped = (*lines)[:0], 0
}

// MoreLines is what is printed in the place of n lines that are not.
func MoreLines(n int) string { return fmt.Sprintf("... and %d more lines", n) }

// deliver hands the lines to the caller. If a worker failed, those of higher
// ones are left out: which of them ran is chance.
func (r *run) deliver() {
	if r.launch.Print == nil || len(r.lines) == 0 {
		return
	}
	last := math.MaxInt
	if r.worst.in != nil {
		last = r.worst.worker
		if g := max(r.launch.Group, 1); r.prog.meets {
			last = last/g*g + g - 1
		}
	}
	lines, n := firstLines(r.lines)
	for _, l := range lines {
		if l.worker <= last {
			r.launch.Print(l.text)
		}
	}
	if n += r.dropped; n > 0 {
		r.launch.Print(MoreLines(n))
	}
	clear(r.lines)
	r.lines = r.lines[:0]
}
