package plots

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/recorder"

	"gpunotes/gpukit/trace"
)

// A text that was drawn, and where; its corners if it is not rotated.
type drawnText struct {
	text  string
	size  vg.Length
	where vg.Rectangle
}

// textsOf draws f and returns its texts, in order.
func textsOf(t *testing.T, f *Figure) []drawnText {
	t.Helper()
	var rec recorder.Canvas
	if err := f.draw(draw.NewCanvas(&rec, f.w, f.h)); err != nil {
		t.Fatal(err)
	}
	var out []drawnText
	for _, a := range rec.Actions {
		if s, ok := a.(*recorder.FillString); ok {
			at, sty := s.Point, sans(s.Size)
			out = append(out, drawnText{s.String, s.Size, vg.Rectangle{Min: at, Max: vg.Point{X: at.X + sty.Width(s.String), Y: at.Y + sty.FontExtents().Ascent}}})
		}
	}
	return out
}

func ofSize(texts []drawnText, size vg.Length) []drawnText {
	var out []drawnText
	for _, s := range texts {
		if s.size == size {
			out = append(out, s)
		}
	}
	return out
}

// Values stand at the ends of their bars, also of the longest ones, at any size of the
// figure.
func TestBarsShowValues(t *testing.T) {
	for _, tt := range []struct {
		values []float64
		log    bool
		want   string
	}{
		{[]float64{657, 500, 2}, false, "657 500 2"},
		{[]float64{1, -2}, false, "1 -2"},
		{[]float64{-950, -500, 0}, false, "-950 -500 0"},
		{[]float64{0}, false, "0"},
		{[]float64{1e300, -1e300}, false, "1e300 -1e300"},
		{[]float64{1, math.NaN()}, false, "1"},
		{[]float64{1000, 999, 1}, true, "1000 999 1"},
		{[]float64{1e-9, 1e200}, true, "1e-9 1e200"},
		{[]float64{7}, true, "7"},
	} {
		for _, high := range []float64{1.5, 2.2, 3, 4.8, 20} {
			for _, title := range []string{"", "a title", "温度"} { // the last has a note
				labels := []string{"one", "two", "three"}[:len(tt.values)]
				f := Bars(labels, Series{Values: tt.values}).Title(title).Labels("", "ms").Size(5, high)
				if tt.log {
					f.Log()
				}
				var got []string
				for _, s := range ofSize(textsOf(t, f), noteSize) {
					if !strings.Contains(s.text, "missing") && !strings.Contains(s.text, "lacks") {
						got = append(got, s.text)
					}
				}
				if s := strings.Join(got, " "); s != tt.want {
					t.Errorf("%v, log %v, %g inches, title %q: the values %s are written, want %s (axis %g to %g)",
						tt.values, tt.log, high, title, s, tt.want, f.plot.Y.Min, f.plot.Y.Max)
				}
			}
		}
	}
	f := Bars([]string{"a"}, Series{Values: []float64{5}})
	f.Plot().Y.Max = 100
	if textsOf(t, f); f.Plot().Y.Max != 100 {
		t.Errorf("the axis that the user set ends at %g now", f.Plot().Y.Max)
	}
}

// Whatever the number of bars and the widths of names, no text lies on another.
func TestBarTextsKeepApart(t *testing.T) {
	for _, n := range []int{1, 2, 5, 9, 20, 40, 60, 150, 700} {
		for _, name := range []string{"%d", "label %d", "a somewhat longer label with the number %d"} {
			for series := 1; series <= 3; series++ {
				var labels []string
				var all []Series
				for i := range n {
					labels = append(labels, fmt.Sprintf(name, i))
				}
				for k := range series {
					s := Series{}
					for i := range n {
						s.Values = append(s.Values, float64(1+(i+k)%2*5000))
					}
					all = append(all, s)
				}
				f := Bars(labels, all...)
				what := fmt.Sprintf("%d labels such as %q, %d series", n, labels[0], series)
				texts := textsOf(t, f)
				keepApart(t, what, ofSize(texts, noteSize))
				if f.plot.X.Tick.Label.Rotation == 0 {
					keepApart(t, what, ofSize(texts, tickSize))
				}
				names := f.plot.X.Tick.Marker.(named)
				if names[0] == "" {
					t.Errorf("%s: the first one is not written", what)
				}
				// Lines aslant are as far apart as the places of their labels, seen at 45 degrees.
				for i, s := range names {
					every := f.content.(*bars).every
					if (i%every == 0) != (s != "") {
						t.Errorf("%s: every %d is written, and label %d is %q", what, every, i, s)
					}
					step := (f.w - 60) / vg.Length(n) * vg.Length(every) / math.Sqrt2
					if h := sans(tickSize).Height(s); f.plot.X.Tick.Label.Rotation != 0 && every < n && h > step {
						t.Fatalf("%s: lines of height %g at a distance of %g", what, h, step)
					}
				}
			}
		}
	}
}

func keepApart(t *testing.T, what string, texts []drawnText) {
	t.Helper()
	for i, a := range texts {
		for _, b := range texts[i+1:] {
			x := min(a.where.Max.X, b.where.Max.X) - max(a.where.Min.X, b.where.Min.X)
			y := min(a.where.Max.Y, b.where.Max.Y) - max(a.where.Min.Y, b.where.Min.Y)
			if x > -0.5 && y > 1 {
				t.Errorf("%s: %q and %q overlap by %.3g x %.3g points", what, a.text, b.text, x, y)
				return
			}
		}
	}
}

// Many labels: the words for it stay short, and so does what a notebook is sent.
func TestManyBars(t *testing.T) {
	for _, n := range []int{500, 4000, 9000} {
		var labels []string
		values := make([]float64, n)
		for i := range values {
			labels, values[i] = append(labels, fmt.Sprintf("label %d", i)), float64(i%17)
		}
		values[3], values[5], values[7] = math.NaN(), -1, 99
		f := Bars(labels, Series{Name: "s", Values: values})
		want := fmt.Sprintf("Bars. %d labels from label 0 to label %d. s: least -1 at label 5, greatest 99 at label 7; 1 missing.", n, n-1)
		if f.Alt() != want {
			t.Errorf("Alt is %q, want %q", f.Alt(), want)
		}
		sum := 0
		for _, v := range f.Render().Data {
			switch v := v.(type) {
			case string:
				sum += len(v)
			case []byte:
				sum += len(v)
			}
		}
		if sum > 2<<20 {
			t.Errorf("%d labels: %d bytes", n, sum)
		}
		if notes := fmt.Sprint(f.content.notes()); !strings.Contains(notes, "labels the first is written") {
			t.Errorf("%d labels: %s", n, notes)
		}
	}
}

// The same for a trace: what hides behind other records is left out.
func TestManyRecords(t *testing.T) {
	var records []trace.Record
	for i := range 20000 {
		records = append(records, trace.Record{Kind: trace.Launch, Name: "k", Start: time.Duration(i * 1000), Duration: 900})
	}
	d := Timeline(&trace.Trace{Records: records}).Render()
	if n := len(d.Data["image/svg+xml"].(string)); n > 200000 {
		t.Errorf("%d bytes", n)
	}
}

// Records in any order make the same picture, and stay in their order.
func TestUnorderedRecords(t *testing.T) {
	const ms = time.Millisecond
	records := []trace.Record{
		{Kind: trace.Launch, Name: "late", Start: 10 * ms, Duration: 5 * ms},
		{Kind: trace.Launch, Name: "early", Start: 0, Duration: 5 * ms},
		{Kind: trace.Launch, Name: "between", Start: 5 * ms, Duration: 4 * ms},
	}
	ordered := []trace.Record{records[1], records[2], records[0]}
	given := slices.Clone(records)
	var got []string
	for _, s := range ofSize(textsOf(t, Timeline(&trace.Trace{Records: records})), noteSize) {
		if slices.ContainsFunc(records, func(r trace.Record) bool { return r.Name == s.text }) {
			got = append(got, s.text)
		}
	}
	if want := []string{"early", "between", "late"}; !slices.Equal(got, want) {
		t.Errorf("drawn are %q, want %q", got, want)
	}
	if !reflect.DeepEqual(records, given) {
		t.Error("the trace's records were put into another order")
	}
	svg := func(r []trace.Record) any { return Timeline(&trace.Trace{Records: r}).Render().Data["image/svg+xml"] }
	if svg(records) != svg(ordered) {
		t.Error("the order of the records changes the picture")
	}
}
