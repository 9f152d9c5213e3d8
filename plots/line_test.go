package plots

import (
	"bytes"
	"encoding/base64"
	"encoding/xml"
	"fmt"
	"html"
	"image"
	"image/color"
	"image/png"
	"math"
	"math/rand"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"gpunotes/gpukit"
	"gpunotes/gpukit/trace"
)

func TestLineErrors(t *testing.T) {
	x := []float64{1, 2, 3}
	nan := math.NaN()
	for _, tt := range []struct {
		f    *Figure
		want string
	}{
		{Line(x), "no y is given: plots.Line(x, y)"},
		{Scatter(x), "plots.Scatter(x, y)"},
		{Line(nil, x), "x is nil, and y has no X of its own"},
		{Line(nil, Series{Name: "a", Values: x}), `x is nil, and series "a" has no X`},
		{Line((*gpukit.Array)(nil), x), "gpukit.Arange(3)"},
		{Line(x, (*gpukit.Array)(nil)), "y is nil"},
		{Line(x, nil), "y is nil"},
		{Line(x, x, []float64{1}), "y number 2 has 1 values for 3 of x"},
		{Line(x, Series{Name: "b", X: []float64{1}, Values: x}), `series "b" has 3 values for 1 of x`},
		{Line(3.5, x), "x is of type float64"},
		{Line(x, "abc"), "y is of type string"},
		{Line(x, []string{"a"}), "y"},
		{Line(x, gpukit.Zeros(3, 2)), "y has shape (3, 2), want one dimension"},
		{Line(gpukit.Full(1), x), "x has shape ()"},
		{Line([]float64{}, []float64{}), "no elements"},
		{Scatter(gpukit.Zeros(0), gpukit.Zeros(0)), "no elements"},
		{Line(x, []float64{nan, nan, nan}), "none of the 3 points"},
		{Scatter([]float64{nan}, []float64{1}), "none of the 1 points"},
		{Line(x, []float64{1, 1e301, 2}), "point 1 is (2, 1e+301): numbers beyond 1e300"},
		{Line(x, []float64{1, 0, 2}).Log(), "Log: y of point 1 is 0, and a logarithmic axis"},
		{Line([]float64{-1, 1}, Series{Name: "c", Values: []float64{1, 2}}).LogX(), `LogX: series "c": x of point 0 is -1`},
		{Line([]float64{5e-324}, []float64{1}).LogX(), "from 1e-300 on"},
		{Bars([]string{"a"}, Series{Values: []float64{1}}).LogX(), "only Line and Scatter"},
		{Bars([]string{"a"}, Series{X: []float64{1}, Values: []float64{1}}), "bars stand at labels"},
		{Bars([]string{"a"}, Series{Values: []float64{5e-324}}).Log(), "from 1e-300 on"},
		{(*Figure)(nil).LogX(), "LogX of a nil *Figure"},
		{Line(x, x).Levels(1), "only plots.Contour"},
	} {
		if err := tt.f.Err(); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("got %v, want %q", err, tt.want)
		}
		if d := tt.f.Render(); d.Data["image/svg+xml"] != nil || d.Data["text/plain"] != tt.f.Alt() {
			t.Errorf("%q: Render shows %v", tt.want, d.Data)
		}
	}
}

// Every kind of argument gives the same points.
func TestLineArguments(t *testing.T) {
	want := Line([]float64{0, 1, 2}, []float64{3, 4, 5}).Render().Data["image/svg+xml"]
	a := gpukit.FromSlice([]int32{3, 4, 5})
	for name, f := range map[string]*Figure{
		"arrays":     Line(gpukit.Arange(3), a),
		"ints":       Line([]int{0, 1, 2}, []uint8{3, 4, 5}),
		"views":      Line(gpukit.Arange(3).Slice(0, 2, -4, -1).Slice(0, 2, -4, -1), a.Reshape(1, 3).T().Reshape(-1)),
		"series":     Line([]float64{0, 1, 2}, Series{Values: []float64{3, 4, 5}}),
		"series own": Line(nil, []Series{{X: []float64{0, 1, 2}, Values: []float64{3, 4, 5}}}),
	} {
		if got := f.Render().Data["image/svg+xml"]; got != want {
			t.Errorf("%s: another figure: %v", name, f)
		}
	}
	x := []float64{1, 2}
	f := Line(x, x)
	before := f.Render().Data["image/svg+xml"]
	x[0] = 100
	if f.Render().Data["image/svg+xml"] != before {
		t.Error("the figure changes with the slice")
	}
}

// Lines pass through their points and nowhere else, on all axes; gaps are gaps.
func TestLinePixels(t *testing.T) {
	white, blue := hex(0xffffff), distinct[0]
	nan := math.NaN()
	for name, f := range map[string]*Figure{
		"linear": Line([]float64{1, 10, 100, 1000}, []float64{1, 100, nan, 1000}),
		"log":    Line([]float64{1, 10, 100, 1000}, []float64{1, 100, nan, 1000}).Log(),
		"log x":  Line([]float64{1, 10, 100, 1000}, []float64{1, 100, nan, 1000}).LogX(),
		"both":   Line([]float64{1, 10, 100, 1000}, []float64{1, 100, nan, 1000}).LogX().Log(),
		"Inf":    Line([]float64{1, 10, 100, 1000}, []float64{1, 100, math.Inf(-1), 1000}).LogX().Log(),
		"points": Scatter([]float64{1, 10, nan, 1000}, []float64{1, 100, 7, 1000}),
	} {
		p := pictureOf(t, f)
		for _, at := range [][2]float64{{1, 1}, {10, 100}, {1000, 1000}} {
			if got := p.at(at[0], at[1]); got != blue {
				t.Errorf("%s: (%g, %g) is %v", name, at[0], at[1], got)
			}
		}
		if got := p.at(123, 456); got != white {
			t.Errorf("%s: in the gap there is %v", name, got)
		}
		if s := strings.Join(f.content.notes(), "; "); !strings.Contains(s, "1 point has a NaN or an infinity and") {
			t.Errorf("%s: notes %q", name, s)
		}
		if !strings.Contains(f.Alt(), "; 1 missing") {
			t.Errorf("%s: Alt %q", name, f.Alt())
		}
	}
}

// A long series looks as if all of its points were drawn.
func TestLineReduced(t *testing.T) {
	rnd := rand.New(rand.NewSource(3))
	n := 60000
	x, y := make([]float64, n), make([]float64, n)
	for i := range x {
		x[i], y[i] = float64(i), math.Sin(float64(i)/3000)+rnd.NormFloat64()/20
	}
	y[12345], y[54321] = 3, -3
	draw := func(f *Figure) *image.RGBA {
		data, err := f.Size(3, 2).encode("png")
		if err != nil {
			t.Fatal(err)
		}
		img, err := png.Decode(bytes.NewReader(data))
		if err != nil {
			t.Fatal(err)
		}
		out := image.NewRGBA(img.Bounds())
		for y := range img.Bounds().Dy() {
			for x := range img.Bounds().Dx() {
				out.Set(x, y, img.At(x, y))
			}
		}
		return out
	}
	f := Line(x, y)
	a := draw(f)
	c := f.content.(*xy)
	if got := len(c.drawn[0].lines[0]); !c.reduced || got > 4*int(c.f.w/column) {
		t.Errorf("%d points are drawn", got)
	}
	if c.notes() == nil {
		t.Error("no note")
	}
	// The same with every point, and with the note's room.
	c.drawn = []drawn{{n: n}}
	for i := range x {
		if i == 0 {
			c.drawn[0].lines = []polyline{nil}
		}
		c.drawn[0].lines[0] = append(c.drawn[0].lines[0], point{x[i], y[i]})
	}
	b := draw(f)
	off := 0
	for i := range a.Pix {
		if d := int(a.Pix[i]) - int(b.Pix[i]); d > 90 || d < -90 {
			off++
		}
	}
	if off > len(a.Pix)/2000 {
		t.Errorf("%d of %d values differ", off, len(a.Pix))
	}

	// Extremes are never lost.
	for range 200 {
		m := 1 + rnd.Intn(30)
		v := make([]float64, m)
		for i := range v {
			v[i] = float64(rnd.Intn(9))
		}
		got := extremes(v, 0, m)
		lo, hi := math.Inf(1), math.Inf(-1)
		for _, i := range got {
			lo, hi = math.Min(lo, v[i]), math.Max(hi, v[i])
		}
		if !slices.IsSorted(got) || got[0] != 0 || got[len(got)-1] != m-1 || lo != slices.Min(v) || hi != slices.Max(v) {
			t.Fatalf("%v: %v", v, got)
		}
	}
}

// A point in a cloud of many, or between gaps, is seen, and what a notebook is sent
// stays small.
func TestManyPoints(t *testing.T) {
	rnd := rand.New(rand.NewSource(4))
	n := 200000
	x, y := make([]float64, n), make([]float64, n)
	for i := range x {
		x[i], y[i] = rnd.NormFloat64(), rnd.NormFloat64()
	}
	x[777], y[777] = 9, 9
	cloud := Scatter(x, y)
	if got := pictureOf(t, cloud).at(9, 9); got == hex(0xffffff) {
		t.Error("the lone point is not drawn")
	}
	d := cloud.Render()
	if data, _ := d.Data["image/png"].([]byte); data == nil || len(data) > maxPNG {
		t.Errorf("a cloud: %d bytes of PNG", len(data))
	}
	if err := cloud.Save(t.TempDir() + "/a.svg"); err != nil {
		t.Error(err)
	}
	for i := range x {
		x[i], y[i] = float64(i), math.NaN()
		if i%2 == 0 {
			y[i] = 1
		}
	}
	alone := Line(x, y)
	if got := pictureOf(t, alone).at(float64(n/2), 1); got == hex(0xffffff) {
		t.Error("points between gaps are not drawn")
	}
	for i := range x {
		x[i], y[i] = float64(i), rnd.Float64()
	}
	if s, _ := Line(x, y, y).Render().Data["image/svg+xml"].(string); len(s) == 0 || len(s) > 1e6 {
		t.Errorf("noise: %d bytes of SVG", len(s))
	}
}

// figures is one of each kind, with the text given.
func figures(s string) map[string]*Figure {
	series := []Series{{Name: s, Values: []float64{1, 2}}, {Name: s, Values: []float64{3, 2}}}
	xs := gpukit.Arange(4)
	z := gpukit.Arange(12).Reshape(3, 4)
	return map[string]*Figure{
		"Line":     Line([]float64{0, 1}, series),
		"Scatter":  Scatter([]float64{0, 1}, series),
		"Heatmap":  Heatmap(xs, gpukit.Arange(3), z).ColorLabel(s),
		"Contour":  Contour(xs, gpukit.Arange(3), z).ColorLabel(s),
		"Bars":     Bars([]string{s, "b"}, series...),
		"Timeline": Timeline(&trace.Trace{Records: []trace.Record{{Kind: trace.Launch, Name: s, Duration: time.Second}}}),
		"Roofline": Roofline([]Roof{{s, 1e10, 1e10}, {"b", 1e12, 1e11}}, Work{s, 0.01, 1e8, ""}, Work{s, 100, 1e10, "b"}),
	}
}

// Long text is wrapped, never cut: the margin stays white. So the figure has its own
// ground on any page, too.
func TestLongText(t *testing.T) {
	for _, s := range []string{strings.Repeat("rather long text ", 8), strings.Repeat("W", 60)} {
		for name, f := range figures(s) {
			data, err := f.Title(s).Labels(s, s).Size(6.4, 4.8).encode("png")
			if err != nil {
				t.Errorf("%s, %.12s: %v", name, s, err)
				continue
			}
			img, err := png.Decode(bytes.NewReader(data))
			if err != nil {
				t.Fatal(err)
			}
			b := img.Bounds()
			const edge = 3
			for y := range b.Dy() {
				for x := 0; x < b.Dx(); x++ {
					if x == edge && y >= edge && y < b.Dy()-edge {
						x = b.Dx() - edge // only the margin
					}
					if r, g, b, a := img.At(x, y).RGBA(); r+g+b+a != 4*0xffff {
						os.WriteFile(kept+"/"+name+".png", data, 0o644)
						t.Fatalf("%s, %.12s: something is cut at (%d, %d)", name, s, x, y)
					}
				}
			}
		}
	}
	// Names for which the legend has no room are counted.
	var many []Series
	for i := range 60 {
		many = append(many, Series{Name: fmt.Sprint("s", i), Values: []float64{float64(i)}})
	}
	f := Line([]float64{1}, many)
	if l := f.content.key(f).(*legend); len(l.names) != 60 || !strings.Contains(f.Alt(), "s59:") {
		t.Error(f)
	}
}

const kept = "../artefacts/plots"

// A screen reader has something to say in every form.
func TestAltText(t *testing.T) {
	for name, f := range figures("a < b & \"c\" 30°") {
		f.Title(`<"T"> é`)
		alt, d := f.Alt(), f.Render()
		if alt == "" || d.Data["text/plain"] != alt || !strings.HasPrefix(alt, `<"T"> é. `) {
			t.Errorf("%s: Alt %q, text %q", name, alt, d.Data["text/plain"])
		}
		page, _ := d.Data["text/html"].(string)
		var img struct {
			Alt    string `xml:"alt,attr"`
			Src    string `xml:"src,attr"`
			Width  int    `xml:"width,attr"`
			Height int    `xml:"height,attr"`
		}
		if err := xml.Unmarshal([]byte(strings.TrimSuffix(page, ">")+"/>"), &img); err != nil || img.Alt != alt || img.Width != 614 {
			t.Errorf("%s: %v, alt %q, width %d", name, err, img.Alt, img.Width)
		}
		kind, code, _ := strings.Cut(img.Src, ";base64,")
		data, err := base64.StdEncoding.DecodeString(code)
		if err != nil {
			t.Error(name, err)
		}
		switch svg, _ := d.Data["image/svg+xml"].(string); kind {
		case "data:image/svg+xml":
			if string(data) != svg || !strings.Contains(svg, "<title>"+html.EscapeString(alt)+"</title>") {
				t.Errorf("%s: the HTML has another SVG, or the SVG no title", name)
			}
			if _, first, _ := strings.Cut(svg, "<path "); !strings.HasPrefix(first, `d="M0,0L`) || !strings.Contains(first[:120], "fill:#FFFFFF") {
				t.Errorf("%s: the SVG has no ground: it starts %.120s", name, first)
			}
		case "data:image/png":
			if !bytes.Equal(data, d.Data["image/png"].([]byte)) || !bytes.Contains(data, []byte(alt)) {
				t.Errorf("%s: the HTML has another PNG, or the PNG no description", name)
			}
		default:
			t.Errorf("%s: %s", name, kind)
		}
	}
}

// A PNG with a description is read by others, and by its checksum.
func TestDescribed(t *testing.T) {
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, 3, 2))); err != nil {
		t.Fatal(err)
	}
	img, err := png.Decode(bytes.NewReader(described(b.Bytes(), "30° è")))
	if err != nil || img.Bounds().Dx() != 3 {
		t.Error(err)
	}
}

// Series are told apart by colour-blind eyes, and by their marks without colour.
func TestSeriesColours(t *testing.T) {
	names := map[string][3][3]float64{"all cones": {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}}
	// Full dichromacy, in linear sRGB: Machado, Oliveira and Fernandes, A Physiologically-based
	// Model for Simulation of Color Vision Deficiency, IEEE TVCG 15 (2009), severity 1.0.
	names["protanopia"] = [3][3]float64{{0.152286, 1.052583, -0.204868}, {0.114503, 0.786281, 0.099216}, {-0.003882, -0.048116, 1.051998}}
	names["deuteranopia"] = [3][3]float64{{0.367322, 0.860646, -0.227968}, {0.280085, 0.672501, 0.047413}, {-0.011820, 0.042940, 0.968881}}
	names["tritanopia"] = [3][3]float64{{1.255528, -0.076749, -0.178779}, {-0.078411, 0.930809, 0.147602}, {0.004733, 0.691367, 0.303900}}
	for name, m := range names {
		var seen [][3]float64
		for _, c := range distinct {
			seen = append(seen, lab(m, c))
		}
		white := lab(m, hex(0xffffff))
		for i := range seen {
			for j := range i {
				if d := apart(seen[i], seen[j]); d < 12 {
					t.Errorf("%s: colours %d and %d are %.1f apart", name, j, i, d)
				}
			}
			if d := apart(seen[i], white); d < 25 {
				t.Errorf("%s: colour %d is %.1f from the ground", name, i, d)
			}
		}
	}
	pairs := map[[2]int]bool{}
	for k := range len(distinct) * int(shapes) {
		pairs[[2]int{k % len(distinct), int(shapeOfSeries(k))}] = true
		if k >= int(shapes) {
			continue
		}
		for j := range k {
			if shapeOfSeries(j) == shapeOfSeries(k) {
				t.Errorf("series %d and %d have the same marks", j, k)
			}
		}
	}
	if len(pairs) != len(distinct)*int(shapes) {
		t.Errorf("%d pairs of colour and shape", len(pairs))
	}
}

// lab is CIELAB of a colour seen through m, for D65 (IEC 61966-2-1 and CIE 15).
func lab(m [3][3]float64, c color.NRGBA) [3]float64 {
	linear := func(v uint8) float64 {
		if s := float64(v) / 255; s > 0.04045 {
			return math.Pow((s+0.055)/1.055, 2.4)
		}
		return float64(v) / 255 / 12.92
	}
	times := func(m [3][3]float64, v [3]float64) (out [3]float64) {
		for i := range m {
			for j := range v {
				out[i] += m[i][j] * v[j]
			}
		}
		return out
	}
	rgb := times(m, [3]float64{linear(c.R), linear(c.G), linear(c.B)})
	for i := range rgb {
		rgb[i] = math.Max(0, math.Min(1, rgb[i]))
	}
	xyz := times([3][3]float64{{0.4124, 0.3576, 0.1805}, {0.2126, 0.7152, 0.0722}, {0.0193, 0.1192, 0.9505}}, rgb)
	f := func(t float64) float64 {
		if t > 216.0/24389 {
			return math.Cbrt(t)
		}
		return (24389.0/27*t + 16) / 116
	}
	x, y, z := f(xyz[0]/0.95047), f(xyz[1]), f(xyz[2]/1.08883)
	return [3]float64{116*y - 16, 500 * (x - y), 200 * (y - z)}
}

// apart is the distance in CIELAB of 1976, of which about 2.3 is just noticed.
func apart(a, b [3]float64) float64 {
	return math.Sqrt((a[0]-b[0])*(a[0]-b[0]) + (a[1]-b[1])*(a[1]-b[1]) + (a[2]-b[2])*(a[2]-b[2]))
}
