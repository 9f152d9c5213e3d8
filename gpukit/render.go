package gpukit

import (
	"fmt"
	"html"
	"strings"

	"gpunotes/gpukit/internal/ir"
	"gpunotes/gpukit/internal/shape"
)

// An array of more than whole elements is printed with each dimension longer than
// 2*edge+1 as its first and last edge elements.
const (
	whole = 100
	edge  = 3
)

// shown returns the indices of a dimension that are printed; -1 stands for the
// gap.
func (a *Array) shown(n int) []int {
	var s []int
	for i := 0; i < n; i++ {
		if a.Size() > whole && n > 2*edge+1 && i == edge {
			s = append(s, -1)
			i = n - edge
		}
		s = append(s, i)
	}
	return s
}

// near is a where its elements are quickly read: what is on a device is fetched,
// unless it is much more than what is shown.
func (a *Array) near() *Array {
	if a.store.len()*a.DType().Size() > nearBytes {
		return a
	}
	return a.local()
}

const nearBytes = 1 << 20

func (a *Array) element(k int) string {
	b := a.store.bits(k)
	if a.DType() == Float64 || a.DType() == Float32 {
		return fmt.Sprintf("%.6g", toFloat(a.DType(), b))
	}
	return ir.FormatBits(a.DType().ir(), b)
}

// String returns a table of the elements, long dimensions cut in the middle,
// under a line with shape and dtype.
func (a *Array) String() string {
	if a == nil {
		return "<nil *gpukit.Array>"
	}
	if why := a.unusable(); why != "" {
		return "<" + why + ">"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s %v array", shape.Format(a.shape), a.DType())
	if a.Size() == 0 {
		return b.String()
	}
	b.WriteByte('\n')
	a = a.near()
	a.text(&b, 0, a.offset)
	return b.String()
}

func (a *Array) text(b *strings.Builder, axis, k int) {
	if axis == len(a.shape) {
		b.WriteString(a.element(k))
		return
	}
	b.WriteByte('[')
	sep := " "
	if axis < len(a.shape)-1 {
		sep = "\n" + strings.Repeat(" ", axis+1)
	}
	for i, x := range a.shown(a.shape[axis]) {
		if i > 0 {
			b.WriteString(sep)
		}
		if x < 0 {
			b.WriteString("...")
		} else {
			a.text(b, axis+1, k+x*a.strides[axis])
		}
	}
	b.WriteByte(']')
}

// HTML returns the same as a table for the notebook: the last two dimensions as
// rows and columns, of an array of higher rank the first such sheet.
func (a *Array) HTML() string {
	if a == nil || a.unusable() != "" {
		return "<pre>" + html.EscapeString(a.String()) + "</pre>"
	}
	sheet := a.near()
	note := ""
	for len(sheet.shape) > 2 && sheet.Size() > 0 {
		note += "0, "
		sheet = &Array{sheet.store, sheet.offset, sheet.shape[1:], sheet.strides[1:]}
	}
	var b strings.Builder
	fmt.Fprintf(&b, "<div><div>%s %v array", shape.Format(a.shape), a.DType())
	if note != "" {
		fmt.Fprintf(&b, ", sheet [%s:, :]", note)
	}
	b.WriteString("</div>")
	if a.Size() > 0 {
		for len(sheet.shape) < 2 {
			sheet = &Array{sheet.store, sheet.offset, append([]int{1}, sheet.shape...), append([]int{0}, sheet.strides...)}
		}
		cols := a.shown(sheet.shape[1])
		row := func(cell func(x int) string) {
			b.WriteString("<tr>")
			for _, x := range cols {
				b.WriteString("<td style=\"text-align:right\">")
				if x < 0 {
					b.WriteString("…")
				} else {
					b.WriteString(cell(x))
				}
				b.WriteString("</td>")
			}
			b.WriteString("</tr>")
		}
		b.WriteString("<table>")
		for _, i := range a.shown(sheet.shape[0]) {
			row(func(x int) string {
				if i < 0 {
					return "…"
				}
				return html.EscapeString(sheet.element(sheet.offset + i*sheet.strides[0] + x*sheet.strides[1]))
			})
		}
		b.WriteString("</table>")
	}
	b.WriteString("</div>")
	return b.String()
}

// badge is what a device says of itself: its name, what it is, and how far its
// numbers can be trusted. Of "cpu", "parallel" and simulated cards it is the same on
// every machine, so nothing of the machine is in it.
func (d *Device) badge() [][2]string {
	rows := [][2]string{{"device", d.label()}}
	add := func(name, text string) { rows = append(rows, [2]string{name, text}) }
	if d.closed.Load() {
		add("closed", "open it again to use it")
	}
	if d.gpu == nil {
		what := "all cores of this machine's processor"
		if d.goroutines == 1 {
			what = "one core of this machine's processor"
		}
		add("what", what)
		add("exact", "results, the bits of every other device; the bytes that Explain names")
		add("measured", "times")
		return rows
	}
	x := &d.gpu.info
	what := x.Name
	if x.Simulated {
		what = "simulated " + what
	}
	add("what", fmt.Sprintf("%s: compute capability %v, %d multiprocessors, %s of memory", what, x.Capability, x.Multiprocessors, bytes(float64(x.Memory))))
	if x.Simulated {
		add("exact", "results, the bits of every other device; counts of instructions, memory traffic and copies")
		add("predicted", "times; registers of a thread")
		return rows
	}
	add("driver", fmt.Sprintf("CUDA %v", x.Driver))
	add("exact", "results, of the code that simulated cards execute; sizes of grids, blocks and copies; registers of a thread")
	add("measured", "times of kernels and copies, by the card")
	return rows
}

// String returns a few lines: the name with the settings that With changed, what the
// device is, and which of its numbers are exact, which predicted and which measured.
// For "cpu", "parallel" and simulated cards they are the same on every machine. Name
// is the name alone.
func (d *Device) String() string {
	if d == nil || d.core == nil {
		return d.Name()
	}
	var b strings.Builder
	for i, r := range d.badge() {
		if i > 0 {
			b.WriteByte('\n')
		}
		fmt.Fprintf(&b, "%-9s  %s", r[0], r[1])
	}
	return b.String()
}

// badgeColours mark what kind of number a line of a badge is about: seen on white and on
// black alike, and never the only sign of it.
var badgeColours = map[string]string{"exact": "#2a9d6f", "predicted": "#c98500", "measured": "#4a86e8", "closed": "#d9534f"}

// HTML returns the lines of String as a badge for the notebook. Text has the
// colour of the page.
func (d *Device) HTML() string {
	if d == nil || d.core == nil {
		return "<pre>" + html.EscapeString(d.Name()) + "</pre>"
	}
	var b strings.Builder
	b.WriteString(`<div style="display:inline-block;border:1px solid #808080;border-radius:6px;padding:0.5em 1em;line-height:1.5">`)
	for i, r := range d.badge() {
		name, text, colour := html.EscapeString(r[0]), html.EscapeString(r[1]), badgeColours[r[0]]
		switch {
		case i == 0:
			fmt.Fprintf(&b, `<div><b>%s</b></div>`, text)
		case r[0] == "what":
			fmt.Fprintf(&b, `<div>%s</div>`, text)
		case colour != "":
			fmt.Fprintf(&b, `<div><span style="border-left:0.5em solid %s;padding-left:0.5em"><b>%s</b></span> %s</div>`, colour, name, text)
		default:
			fmt.Fprintf(&b, `<div>%s: %s</div>`, name, text)
		}
	}
	b.WriteString(`</div>`)
	return b.String()
}
