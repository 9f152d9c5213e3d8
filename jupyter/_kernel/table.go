//go:build go1.21

package main

import (
	"fmt"
	"html"
	"reflect"
	"strings"
	"unicode/utf8"

	"github.com/cosmos72/gomacro/xreflect"
)

// Bounds of what is shown of a table.
const (
	maxRows   = 20 // of a longer one, the first and the last
	tailRows  = 5
	maxColumn = 60 // characters of a field
)

// table is a list of structs that is shown one row each.
type table struct {
	names   []string
	rows    [][]string
	numbers []bool // the column is numbers: to the right
	total   int
	head    int // rows before the gap
}

// records makes a table of a slice or array of structs, or of pointers to them,
// unless they say themselves how they look.
func (k *kernel) records(v interface{}, of xreflect.Type) (t table, ok bool) {
	list := reflect.ValueOf(v)
	if v == nil || list.Kind() != reflect.Slice && list.Kind() != reflect.Array || list.Len() == 0 {
		return t, false
	}
	elem := list.Type().Elem()
	if elem.Implements(stringerType) || elem.Implements(errorType) {
		return t, false
	}
	var field xreflect.Type // what the elements are to the interpreter
	if of != nil && (of.Kind() == reflect.Slice || of.Kind() == reflect.Array) {
		field = of.Elem()
		if k.stringer != nil && field.Implements(k.stringer) {
			return t, false
		}
	}
	if elem.Kind() == reflect.Ptr {
		elem = elem.Elem()
	}
	if elem.Kind() != reflect.Struct || xreflect.Empty(elem) || elem.Field(0).Name == xreflect.StrGensymInterface {
		return t, false
	}
	for i := 0; i < elem.NumField(); i++ {
		f := elem.Field(i)
		name, _ := xreflect.FieldName(f.Name)
		t.names = append(t.names, name)
		switch f.Type.Kind() {
		case reflect.Bool, reflect.String, reflect.Struct, reflect.Map, reflect.Slice, reflect.Array, reflect.Func, reflect.Interface, reflect.Ptr, reflect.Chan:
			t.numbers = append(t.numbers, false)
		default:
			t.numbers = append(t.numbers, true)
		}
	}
	t.total = list.Len()
	t.head = t.total
	if t.total > maxRows {
		t.head = maxRows - tailRows
	}
	for i := 0; i < t.total; i++ {
		if i == t.head {
			i = t.total - tailRows
		}
		t.rows = append(t.rows, fields(list.Index(i), field))
	}
	return t, true
}

var errorType = reflect.TypeOf((*error)(nil)).Elem()

func fields(v reflect.Value, of xreflect.Type) []string {
	if v.Kind() == reflect.Ptr {
		if v.IsNil() {
			row := make([]string, v.Type().Elem().NumField())
			row[0] = "<nil>"
			return row
		}
		v = v.Elem()
		if of != nil && of.Kind() == reflect.Ptr {
			of = of.Elem()
		}
	}
	row := make([]string, v.NumField())
	for i := range row {
		var text string
		if f := v.Field(i); f.CanInterface() {
			var t xreflect.Type
			if of != nil && of.Kind() == reflect.Struct && i < of.NumField() {
				t = of.Field(i).Type
			}
			text = fmt.Sprint(xreflect.Show(f.Interface(), t))
		} else {
			text = fmt.Sprint(f) // fmt looks into fields that programs may not
		}
		if utf8.RuneCountInString(text) > maxColumn {
			text = string([]rune(text)[:maxColumn-3]) + "..."
		}
		row[i] = strings.ReplaceAll(text, "\n", " ")
	}
	return row
}

// note says how many rows there are, if not all are shown.
func (t table) note() string {
	if len(t.rows) == t.total {
		return ""
	}
	return fmt.Sprintf("%s rows, %d not shown", count(int64(t.total)), t.total-len(t.rows))
}

func (t table) text() string {
	width := make([]int, len(t.names))
	for _, row := range append([][]string{t.names}, t.rows...) {
		for i, s := range row {
			width[i] = max(width[i], utf8.RuneCountInString(s))
		}
	}
	var b strings.Builder
	line := func(row []string) {
		var parts []string
		for i, s := range row {
			pad := strings.Repeat(" ", width[i]-utf8.RuneCountInString(s))
			if t.numbers[i] {
				s = pad + s
			} else {
				s += pad
			}
			parts = append(parts, s)
		}
		b.WriteString(strings.TrimRight(strings.Join(parts, "  "), " ") + "\n")
	}
	line(t.names)
	for i, row := range t.rows {
		if i == t.head {
			b.WriteString("...\n")
		}
		line(row)
	}
	if n := t.note(); n != "" {
		b.WriteString(n + "\n")
	}
	return strings.TrimSuffix(b.String(), "\n")
}

func (t table) html() string {
	var b strings.Builder
	line := func(tag string, row []string) {
		b.WriteString("<tr>")
		for i, s := range row {
			side := "left"
			if t.numbers[i] {
				side = "right"
			}
			fmt.Fprintf(&b, `<%s style="text-align:%s">%s</%s>`, tag, side, html.EscapeString(s), tag)
		}
		b.WriteString("</tr>\n")
	}
	b.WriteString("<table>\n")
	line("th", t.names)
	for i, row := range t.rows {
		if i == t.head {
			fmt.Fprintf(&b, "<tr><td colspan=\"%d\">...</td></tr>\n", len(t.names))
		}
		line("td", row)
	}
	b.WriteString("</table>")
	if n := t.note(); n != "" {
		b.WriteString("<small>" + n + "</small>")
	}
	return b.String()
}

// maxElements is how many elements of a slice are shown in full; of a longer one,
// the first and last few.
const (
	maxElements  = 1000
	headElements = 10
	tailElements = 3
)

// shortened is a long slice as fmt would print it, without its middle.
func shortened(v interface{}) (string, bool) {
	list := reflect.ValueOf(v)
	if list.Kind() != reflect.Slice && list.Kind() != reflect.Array || list.Len() <= maxElements {
		return "", false
	}
	if list.Kind() == reflect.Array {
		c := reflect.New(list.Type()).Elem()
		c.Set(list)
		list = c
	}
	head := fmt.Sprint(list.Slice(0, headElements).Interface())
	tail := fmt.Sprint(list.Slice(list.Len()-tailElements, list.Len()).Interface())
	return fmt.Sprintf("%s ... %s (%s elements)", strings.TrimSuffix(head, "]"), strings.TrimPrefix(tail, "["), count(int64(list.Len()))), true
}
