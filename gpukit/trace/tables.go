package trace

import (
	"fmt"
	"html"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// column is a column of a table; all but the last are right-aligned.
type column struct {
	name  string
	width int // nvprof's, without the two blanks between columns
}

// table is what the text and the HTML form of a table have in common.
type table struct {
	columns []column
	rows    [][]string
	timings []Timing // of the rows
	times   []int    // the columns that hold durations
}

var traceColumns = []column{
	{"Start", 8}, {"Duration", 8}, {"Grid Size", 19}, {"Block Size", 14}, {"Regs*", 8}, {"SSMem*", 8}, {"DSMem*", 8},
	{"Size", 8}, {"Throughput", 10}, {"SrcMemType", 10}, {"DstMemType", 10}, {"Device", deviceWidth}, {"Context", 8}, {"Stream", 8}, {"Name", 0},
}

// deviceWidth is where nvprof cuts the name of a device.
const deviceWidth = 15

var summaryColumns = []column{
	{"Type", 16}, {"Time(%)", 7}, {"Time", 8}, {"Calls", 8}, {"Avg", 8}, {"Min", 8}, {"Max", 8}, {"Name", 0},
}

// The columns that hold durations.
var (
	traceTimes   = []int{1}
	summaryTimes = []int{2, 4, 5, 6}
)

// notes explain the columns with a star.
var notes = []string{
	"Regs: Registers of a thread, those that driver and tools need included.",
	"SSMem: Static shared memory of a block.",
	"DSMem: Dynamic shared memory of a block.",
	"SrcMemType: The memory that a copy reads.",
	"DstMemType: The memory that a copy writes.",
}

func dims(d [3]int) string { return fmt.Sprintf("(%d %d %d)", d[0], d[1], d[2]) }

// number writes a count, 0 as "-".
func number(n int) string {
	if n == 0 {
		return "-"
	}
	return fmt.Sprint(n)
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// ordered returns the records by start.
func (t *Trace) ordered() []Record {
	rs := slices.Clone(t.Records)
	slices.SortStableFunc(rs, func(a, b Record) int { return int(max(-1, min(1, a.Start-b.Start))) })
	return rs
}

// traceTable has a row for each record.
func traceTable(records []Record) table {
	tab := table{columns: traceColumns, times: traceTimes}
	for _, r := range records {
		row := []string{FormatDuration(r.Start), FormatDuration(r.Duration), "-", "-", "-", "-", "-", "-", "-",
			orDash(string(r.Src)), orDash(string(r.Dst)), orDash(r.Device), number(r.Context), number(r.Stream), r.label()}
		if r.Kind == Launch {
			if r.Grid != [3]int{} {
				row[2], row[3] = dims(r.Grid), dims(r.Block)
				row[5], row[6] = FormatSize(int64(r.StaticShared)), FormatSize(int64(r.DynamicShared))
			}
			row[4] = number(r.Registers)
			if r.ID > 0 {
				row[14] += fmt.Sprintf(" [%d]", r.ID)
			}
		} else {
			row[7], row[8] = FormatSize(r.Size), FormatThroughput(r.Throughput())
		}
		tab.rows, tab.timings = append(tab.rows, row), append(tab.timings, r.Timing)
	}
	return tab
}

// group is a row of the summary.
type group struct {
	onCPU           bool
	name            string
	timing          Timing
	calls           int
	total, low, top time.Duration
}

// groups adds up the records of one name, the devices apart: GPUs first, then the
// longest total first.
func (t *Trace) groups() []*group {
	type key struct {
		onCPU  bool
		kind   Kind
		name   string
		timing Timing
	}
	found := map[key]*group{}
	var gs []*group
	for _, r := range t.Records {
		k := key{r.OnCPU, r.Kind, r.label(), r.Timing}
		g := found[k]
		if g == nil {
			g = &group{onCPU: r.OnCPU, name: k.name, timing: r.Timing, low: r.Duration, top: r.Duration}
			found[k], gs = g, append(gs, g)
		}
		g.calls++
		g.total += r.Duration
		g.low, g.top = min(g.low, r.Duration), max(g.top, r.Duration)
	}
	slices.SortStableFunc(gs, func(a, b *group) int {
		switch {
		case a.onCPU != b.onCPU && b.onCPU:
			return -1
		case a.onCPU != b.onCPU:
			return 1
		}
		return int(max(-1, min(1, b.total-a.total)))
	})
	return gs
}

// summaryTable has a row for each name. Percentages are of the devices of one
// type; the average is cut to whole nanoseconds, as nvprof does.
func (t *Trace) summaryTable() table {
	tab := table{columns: summaryColumns, times: summaryTimes}
	gs := t.groups()
	all := map[bool]time.Duration{}
	for _, g := range gs {
		all[g.onCPU] += g.total
	}
	for i, g := range gs {
		kind := ""
		if i == 0 || gs[i-1].onCPU != g.onCPU {
			kind = "GPU activities:"
			if g.onCPU {
				kind = "CPU activities:"
			}
		}
		percent := 0.0
		if all[g.onCPU] > 0 {
			percent = 100 * float64(g.total) / float64(all[g.onCPU])
		}
		tab.rows = append(tab.rows, []string{kind, fmt.Sprintf("%.2f%%", percent), FormatDuration(g.total), fmt.Sprint(g.calls),
			FormatDuration(g.total / time.Duration(g.calls)), FormatDuration(g.low), FormatDuration(g.top), g.name})
		tab.timings = append(tab.timings, g.timing)
	}
	return tab
}

// timing is the common timing of all rows; mixed if they differ.
func (tab table) timing() (common Timing, mixed bool) {
	for i, x := range tab.timings {
		if i > 0 && x != tab.timings[0] {
			return Unknown, true
		}
		common = x
	}
	return common, false
}

// heading is the line above a table. It says where the times come from; where
// they come from different places, each row does.
func (tab table) heading() string {
	switch timing, mixed := tab.timing(); {
	case mixed:
		return "Profiling result, durations as marked:"
	case timing == Simulated:
		return "Profiling result, durations simulated:"
	case timing == Measured:
		return "Profiling result, durations measured:"
	}
	return "Profiling result:"
}

// text lays the table out as nvprof does; a column with a longer cell is wider.
func (tab table) text() string {
	last := len(tab.columns) - 1
	width := make([]int, last)
	lines := [][]string{make([]string, last+1)}
	for i, c := range tab.columns {
		lines[0][i] = c.name
		if i < last {
			width[i] = c.width
		}
	}
	_, mixed := tab.timing()
	for n, r := range tab.rows {
		r = slices.Clone(r)
		for i, c := range tab.columns {
			if c.name == "Device" {
				r[i] = cut(r[i], deviceWidth)
			}
			r[i] = oneLine(r[i])
			if i < last {
				width[i] = max(width[i], utf8.RuneCountInString(r[i]))
			}
		}
		if mixed && tab.timings[n] != Unknown {
			r[last] += " (" + string(tab.timings[n]) + ")"
		}
		lines = append(lines, r)
	}
	var b strings.Builder
	b.WriteString(tab.heading() + "\n")
	for _, l := range lines {
		for i, c := range l[:last] {
			if i > 0 {
				b.WriteString("  ")
			}
			fmt.Fprintf(&b, "%*s", width[i], c)
		}
		b.WriteString("  " + l[last] + "\n")
	}
	return b.String()
}

// cut keeps the first n bytes, and no half of a character.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "")
}

// oneLine keeps a name from breaking the table.
func oneLine(s string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\r' || r == '\t' {
			return ' '
		}
		return r
	}, s)
}

// Why there is no table.
const (
	nothing = "The trace is empty: nothing ran between StartTrace and StopTrace."
	isNil   = "<nil *trace.Trace>"
)

// missing says why there is no table, if so.
func (t *Trace) missing() string {
	switch {
	case t == nil:
		return isNil
	case len(t.Records) > 0:
		return ""
	case t.Note != "":
		return t.Note
	}
	return nothing
}

// GPUTrace returns one line for each copy and launch by start, in the shape of
// nvprof --print-gpu-trace, with notes on its columns. A trace without records
// says so.
func (t *Trace) GPUTrace() string {
	if why := t.missing(); why != "" {
		return why
	}
	return t.noted() + traceTable(t.ordered()).text() + "\n" + strings.Join(notes, "\n") + "\n"
}

// Summary returns one line for each kernel and each direction of copies, the
// longest total first, in the shape of nvprof's summary: share and sum of the
// times, number of calls, and average, least and greatest time. A trace without
// records says so.
func (t *Trace) Summary() string {
	if why := t.missing(); why != "" {
		return why
	}
	return t.noted() + t.summaryTable().text()
}

// noted is the note as lines above a table.
func (t *Trace) noted() string {
	if t.Note == "" {
		return ""
	}
	return t.Note + "\n\n"
}

// Counters returns what a simulated GPU counted: for each kernel and counter the
// number of launches that have it, the least, greatest and average count and the
// sum, in the shape of nvprof --events. It says so if there are none.
func (t *Trace) Counters() string {
	if t == nil {
		return isNil
	}
	tabs, names := t.counterTables()
	if len(tabs) == 0 {
		return "The trace has no counters: only launches on a simulated GPU have them."
	}
	var b strings.Builder
	for i, tab := range tabs {
		if i > 0 {
			b.WriteByte('\n')
		}
		text := tab.text()
		b.WriteString("Kernel: " + oneLine(names[i]) + "\n" + text[strings.IndexByte(text, '\n')+1:])
	}
	return b.String()
}

var counterColumns = []column{{"Invocations", 11}, {"Min", 11}, {"Max", 11}, {"Avg", 11}, {"Total", 11}, {"Counter", 0}}

// counterTables has a table for each kernel with counters, by first launch.
func (t *Trace) counterTables() (tabs []table, names []string) {
	type count struct {
		n             int
		low, top, sum int64
	}
	counts := map[string]map[string]*count{}
	for _, r := range t.ordered() {
		of := counts[r.label()]
		if of == nil && len(r.Counters) > 0 {
			of = map[string]*count{}
			counts[r.label()], names = of, append(names, r.label())
		}
		for name, x := range r.Counters {
			c := of[name]
			if c == nil {
				c = &count{low: x, top: x}
				of[name] = c
			}
			c.n++
			c.sum += x
			c.low, c.top = min(c.low, x), max(c.top, x)
		}
	}
	for _, name := range names {
		tab := table{columns: counterColumns}
		of := counts[name]
		var sorted []string
		for c := range of {
			sorted = append(sorted, c)
		}
		slices.Sort(sorted)
		for _, s := range sorted {
			c := of[s]
			tab.rows = append(tab.rows, []string{fmt.Sprint(c.n), fmt.Sprint(c.low), fmt.Sprint(c.top), fmt.Sprintf("%.1f", float64(c.sum)/float64(c.n)), fmt.Sprint(c.sum), s})
			tab.timings = append(tab.timings, Unknown)
		}
		tabs = append(tabs, tab)
	}
	return tabs, names
}

// String returns both tables as text.
func (t *Trace) String() string {
	if why := t.missing(); why != "" {
		return why
	}
	rest := &Trace{Records: t.Records}
	return t.GPUTrace() + "\n" + rest.Summary()
}

// A notebook shows the first head and the last tail records of a longer trace: a
// browser is slow with tens of thousands of rows. GPUTrace has them all.
const (
	head = 200
	tail = 50
)

// HTML returns both tables for the notebook, which colours them; of a trace of
// more than 250 records the middle is left out of the first one. A device, context or
// stream that all records share is named below it, so that it fits the page. Counters
// are folded below.
func (t *Trace) HTML() string {
	if why := t.missing(); why != "" {
		return "<pre>" + html.EscapeString(why) + "</pre>"
	}
	var b strings.Builder
	b.WriteString("<div>")
	if t.Note != "" {
		b.WriteString("<p>" + html.EscapeString(t.Note) + "</p>")
	}
	records := t.ordered()
	drop, shared := alike(records)
	hidden := len(records) - head - tail
	if hidden > 0 {
		tab := traceTable(append(records[:head:head], records[head+hidden:]...)).without(drop)
		tab.html(&b, head, fmt.Sprintf("%d more records; GPUTrace() prints them", hidden))
	} else {
		traceTable(records).without(drop).html(&b, -1, "")
	}
	b.WriteString("<small>")
	if shared != "" {
		b.WriteString(html.EscapeString(shared) + "<br>")
	}
	for i, n := range notes {
		if i > 0 {
			b.WriteString("<br>")
		}
		b.WriteString(n)
	}
	b.WriteString("</small>")
	t.summaryTable().html(&b, -1, "")
	if tabs, names := t.counterTables(); len(tabs) > 0 {
		b.WriteString("<details><summary>Counters</summary>")
		for i, tab := range tabs {
			b.WriteString("<div>Kernel: " + html.EscapeString(names[i]) + "</div>")
			tab.grid(&b, -1, "")
		}
		b.WriteString("</details>")
	}
	b.WriteString("</div>")
	return b.String()
}

// alike finds the columns of device, context and stream in which all records have the
// same, and says what that is.
func alike(records []Record) (drop []int, text string) {
	var parts []string
	for i, c := range traceColumns {
		of := map[string]func(r *Record) string{
			"Device":  func(r *Record) string { return r.Device },
			"Context": func(r *Record) string { return number(r.Context) },
			"Stream":  func(r *Record) string { return number(r.Stream) },
		}[c.name]
		if of == nil || len(records) == 0 {
			continue
		}
		first := of(&records[0])
		if slices.ContainsFunc(records, func(r Record) bool { return of(&r) != first }) {
			continue
		}
		drop = append(drop, i)
		if first != "" && first != "-" {
			parts = append(parts, c.name+": "+oneLine(first)+".")
		}
	}
	return drop, strings.Join(parts, " ")
}

// without leaves out columns, all of them to the right of those that hold durations, which
// are known by their numbers.
func (tab table) without(drop []int) table {
	out := table{timings: tab.timings, times: tab.times}
	for i, c := range tab.columns {
		if !slices.Contains(drop, i) {
			out.columns = append(out.columns, c)
		}
	}
	for _, r := range tab.rows {
		var row []string
		for i, s := range r {
			if !slices.Contains(drop, i) {
				row = append(row, s)
			}
		}
		out.rows = append(out.rows, row)
	}
	return out
}

// html writes the table under its heading.
func (tab table) html(b *strings.Builder, gap int, hidden string) {
	b.WriteString("<div>" + tab.heading() + "</div>")
	tab.grid(b, gap, hidden)
}

// grid writes the table, with a row that says what is hidden before row gap. It
// sets no colours: those of the notebook's theme are legible, light or dark.
func (tab table) grid(b *strings.Builder, gap int, hidden string) {
	last := len(tab.columns) - 1
	cell := func(tag string, i int, text string, timing Timing) {
		align := "right"
		if i == last {
			align = "left"
		}
		fmt.Fprintf(b, "<%s style=\"text-align:%s;white-space:nowrap\">%s", tag, align, html.EscapeString(text))
		if timing != Unknown && slices.Contains(tab.times, i) {
			b.WriteString(" <small>" + html.EscapeString(string(timing)) + "</small>")
		}
		fmt.Fprintf(b, "</%s>", tag)
	}
	common, mixed := tab.timing()
	b.WriteString("<div style=\"overflow-x:auto\"><table><thead><tr>")
	for i, c := range tab.columns {
		cell("th", i, c.name, common)
	}
	b.WriteString("</tr></thead><tbody>")
	for n, r := range tab.rows {
		if n == gap {
			fmt.Fprintf(b, "<tr><td colspan=\"%d\" style=\"text-align:left\">… %s …</td></tr>", last+1, hidden)
		}
		timing := Unknown
		if mixed {
			timing = tab.timings[n]
		}
		b.WriteString("<tr>")
		for i, text := range r {
			cell("td", i, text, timing)
		}
		b.WriteString("</tr>")
	}
	b.WriteString("</tbody></table></div>")
}
