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
