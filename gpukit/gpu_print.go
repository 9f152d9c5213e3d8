package gpukit

import (
	"encoding/binary"
	"math"
	"slices"

	"gpunotes/gpukit/internal/codegen/nvptx"
	"gpunotes/gpukit/internal/cpu"
	"gpunotes/gpukit/internal/driver"
)

// printRoom is how many bytes a launch has for what its threads print, far more
// than is shown of it: threads take their lines in no certain order, and the first
// of the lowest workers must be among them. A variable for tests.
var printRoom = 32 << 20

// printing makes room for the lines of a launch, if it prints any.
func (l *gpuLaunch) printing(g *gpu, v *variant, get func(n int) (*block, error)) (err error) {
	if !slices.ContainsFunc(v.entry.Params, func(q nvptx.Param) bool { return q.Kind == nvptx.Printed }) {
		return nil
	}
	lines := printRoom / 8 / v.entry.LineWords
	n := 8 * (nvptx.PrintHeader + lines*v.entry.LineWords)
	if l.printed, err = get(n); err != nil {
		return err
	}
	if err = g.fill(l.printed.ptr, 0, n, true); err != nil {
		return err
	}
	var room [8]byte
	binary.LittleEndian.PutUint64(room[:], uint64(lines))
	return g.copyIn(l.printed.ptr+8, room[:], true)
}

// takeLines copies what was printed from the device.
func (l *gpuLaunch) takeLines(g *gpu, v *variant) error {
	if l.printed == nil {
		return nil
	}
	var header [8 * nvptx.PrintHeader]byte
	if err := g.copyOut(header[:], l.printed.ptr, true); err != nil {
		return err
	}
	words := make([]uint64, nvptx.PrintHeader)
	unpack(words, 0, header[:])
	if n := nvptx.Stored(words) * v.entry.LineWords; n > 0 {
		x := g.staging.take(8 * n)
		if err := g.copyOut(x.b[:8*n], l.printed.ptr+driver.Ptr(len(header)), true); err != nil {
			return err
		}
		words = append(words, make([]uint64, n)...)
		unpack(words, nvptx.PrintHeader, x.b[:8*n])
	}
	l.lines, l.lost = v.entry.Lines(words)
	return nil
}

// show prints the lines of a launch of which worker failed, or none if it is -1, as
// a launch on cores does. Of a failure's higher workers it is chance which ran.
func (l *gpuLaunch) show(d *Device, c *call, v *variant, worker int) {
	last := uint64(math.MaxUint64)
	if worker >= 0 {
		last = uint64(worker)
		if c.fn.source.Meets {
			group := uint64(c.block.X * c.block.Y * c.block.Z)
			last = last/group*group + group - 1
		}
	}
	n, more := 0, l.lost
	for _, x := range l.lines {
		switch {
		case x.Worker > last:
		case n == cpu.MaxLines:
			more++
		default:
			n++
			d.printLine(v.entry.Prints[x.Site].Format(x.Args))
		}
	}
	if more > 0 {
		d.printLine(cpu.MoreLines(more))
	}
}
