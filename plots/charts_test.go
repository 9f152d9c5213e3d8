package plots_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"gpunotes/gpukit"
	"gpunotes/gpukit/trace"
	"gpunotes/plots"
)

// What is wrong with a chart's data is the figure's error, and names the value.
func TestChartErrors(t *testing.T) {
	one := plots.Series{Name: "a", Values: []float64{1, 2}}
	two := []string{"x", "y"}
	for want, f := range map[string]*plots.Figure{
		"no labels":               plots.Bars(nil, one),
		"no series":               plots.Bars(two),
		"2 values for 1 labels":   plots.Bars([]string{"x"}, one),
		`"y" is +Inf`:             plots.Bars(two, plots.Series{Name: "a", Values: []float64{1, math.Inf(1)}}),
		"no value is a number":    plots.Bars(two, plots.Series{Values: []float64{math.NaN(), math.NaN()}}),
		"from 1e-300 on":          plots.Bars(two, plots.Series{Name: "a", Values: []float64{1, 0}}).Log(),
		"only Bars, Line":         plots.Heatmap(gpukit.Arange(2), gpukit.Arange(2), gpukit.Zeros(2, 2)).Log(),
		"Log of a nil *Figure":    (*plots.Figure)(nil).Log(),
		"the trace is nil":        plots.Timeline(nil),
		"no records: nothing ran": plots.Timeline(&trace.Trace{}),
		"no records: a reason":    plots.Timeline(&trace.Trace{Note: "a reason"}),
		"no roofs":                plots.Roofline(nil),
		`roof "r"`:                plots.Roofline([]plots.Roof{{Name: "r", FLOPS: 1}}),
		"positive and finite":     plots.Roofline([]plots.Roof{{Name: "r", FLOPS: 1, Bandwidth: math.Inf(1)}}),
		`work "w"`:                plots.Roofline([]plots.Roof{{Name: "r", FLOPS: 1, Bandwidth: 1}}, plots.Work{Name: "w", Intensity: 1}),
	} {
		if err := f.Err(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
		if d := f.Render(); d.Data["text/plain"] == nil || d.Data["image/svg+xml"] != nil {
			t.Errorf("%s: %v", want, d)
		}
	}
}

// Charts are drawn whatever the sizes of their values, in every format.
func TestChartsDraw(t *testing.T) {
	var many []string
	var values []float64
	for i := range 60 {
		many = append(many, strings.Repeat("long ", 5))
		values = append(values, math.Pow(10, float64(i-30)))
	}
	record := func(start, took time.Duration, k trace.Kind) trace.Record {
		return trace.Record{Kind: k, Start: start, Duration: took, Size: 8}
	}
	for name, f := range map[string]*plots.Figure{
		"many":     plots.Bars(many, plots.Series{Name: "a", Values: values}).Log(),
		"equal":    plots.Bars([]string{"x"}, plots.Series{Name: "a", Values: []float64{10}}).Log(),
		"zero":     plots.Bars([]string{"x"}, plots.Series{Values: []float64{0}}),
		"negative": plots.Bars([]string{"x", "y"}, plots.Series{Values: []float64{-3, 5}}, plots.Series{Name: "日本", Values: []float64{1e300, -1e300}}),
		"instant":  plots.Timeline(&trace.Trace{Records: []trace.Record{record(0, 0, trace.Launch)}}),
		"all":      plots.Timeline(&trace.Trace{Records: []trace.Record{record(0, 1, trace.HtoD), record(5, time.Hour, trace.Launch), record(7, 1, trace.DtoH), record(8, 1, trace.DtoD), record(9, 1, trace.Memset)}}),
		"extreme":  plots.Roofline([]plots.Roof{{"r", 1e300, 1e-5}, {"s", 1e-5, 1e300}}, plots.Work{"w", 1e-3, 1e3, ""}),
	} {
		for _, format := range []string{".svg", ".png", ".pdf"} {
			if err := f.Save(t.TempDir() + "/a" + format); err != nil {
				t.Errorf("%s%s: %v", name, format, err)
			}
		}
		if s := f.Render().Data["image/svg+xml"]; s == nil {
			t.Errorf("%s: %v", name, f.Render().Data)
		}
	}
}
