package plots

import (
	"bytes"
	"compress/zlib"
	"encoding/xml"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"io"
	"math"
	"math/rand"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"gpunotes/gpukit"
	"gpunotes/gpukit/trace"
)

// gophernotes asserts this interface, spelled out.
var _ interface {
	Render() struct{ Data, Metadata, Transient map[string]interface{} }
} = (*Figure)(nil)

// A probe is a plotter that notes where the plot area is.
type probe struct {
	c draw.Canvas
	p *plot.Plot
}

func (pr *probe) Plot(c draw.Canvas, p *plot.Plot) {
	q := *p
	pr.c, pr.p = c, &q
}

// picture is a figure as shown, with the way from coordinates to pixels.
type picture struct {
	image.Image
	at   func(x, y float64) color.NRGBA
	area image.Rectangle
}

func pictureOf(t *testing.T, f *Figure) picture {
	t.Helper()
	if err := f.Err(); err != nil {
		t.Fatal(err)
	}
	pr := &probe{}
	f.Plot().Add(pr)
	data, err := f.encode("png")
	if err != nil {
		t.Fatal(err)
	}
	img, err := png.Decode(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	high := img.Bounds().Dy()
	dots := func(l vg.Length) float64 { return l.Dots(2 * cssDPI) }
	trX, trY := pr.p.Transforms(&pr.c)
	return picture{
		Image: img,
		at: func(x, y float64) color.NRGBA {
			px, py := int(dots(trX(x))), high-1-int(dots(trY(y)))
			return color.NRGBAModel.Convert(img.At(px, py)).(color.NRGBA)
		},
		area: image.Rect(int(dots(pr.c.Min.X))+2, high-int(dots(pr.c.Max.Y))+2, int(dots(pr.c.Max.X))-2, high-int(dots(pr.c.Min.Y))-2),
	}
}

func hex(v uint32) color.NRGBA {
	return color.NRGBA{uint8(v >> 16), uint8(v >> 8), uint8(v), 255}
}

func TestHeatmapPixels(t *testing.T) {
	fs := func(v ...float64) *gpukit.Array { return gpukit.FromSlice(v) }
	x4, y3 := fs(0, 1, 2, 3), fs(10, 20, 30)
	z34 := gpukit.FromSlice([][]float64{{1, 2, 3, 4}, {5, 6, 7, 8}, {9, 10, 11, 12}})
	xm, ym := gpukit.MeshGrid(x4, y3)
	big := math.MaxFloat64
	tests := []struct {
		name    string
		x, y, z *gpukit.Array
	}{
		{"axes", x4, y3, z34},
		{"meshes", xm, ym, z34},
		{"mesh and axis", xm, y3, z34},
		{"uneven axes", fs(0, 1, 3, 10), fs(-5, 0, 1), z34},
		{"falling x", fs(3, 2, 1, 0), y3, z34},
		{"falling y", x4, fs(3, 2, 1), z34},
		{"both falling and uneven", fs(9, 2, 1, 0), fs(3, 1, -7), z34},
		{"falling meshes", xm.Slice(1, 3, -5, -1), ym.Slice(0, 2, -4, -1), z34},
		{"int values", x4, y3, z34.As(gpukit.Int32)},
		{"uint8 values", x4, y3, z34.As(gpukit.Uint8)},
		{"bool values", x4, y3, gpukit.FromSlice([][]bool{{true, false, true, true}, {false, true, false, false}, {true, true, true, false}})},
		{"float32 everywhere", x4.As(gpukit.Float32), y3.As(gpukit.Float32), z34.As(gpukit.Float32)},
		{"int axes", gpukit.FromSlice([]int{2, 4, 8, 16}), gpukit.FromSlice([]int64{-1, 0, 1}), z34},
		{"generators", gpukit.Arange(4), gpukit.Linspace(1, 0, 3), gpukit.Arange(12).Reshape(3, 4)},
		{"transposed view", y3, x4, z34.T()},
		{"reversed view", x4, y3, z34.Slice(0, 2, -4, -1).Slice(1, 3, -5, -1)},
		{"strided view", x4.Slice(0, 0, 4, 2), y3, z34.Slice(1, 0, 4, 2)},
		{"broadcast view", x4, y3, x4.BroadcastTo(3, 4)},
		{"one row", x4, fs(7), fs(1, 2, 3, 4).Reshape(1, 4)},
		{"one column", fs(7), y3, fs(1, 2, 3).Reshape(3, 1)},
		{"one row of meshes", x4.Reshape(1, 4), fs(7, 7, 7, 7).Reshape(1, 4), fs(1, 2, 3, 4).Reshape(1, 4)},
		{"huge values", fs(0, 1), fs(0, 1), gpukit.FromSlice([][]float64{{-big, big}, {0, big / 2}})},
		{"tiny values", fs(0, 1), fs(0, 1), gpukit.FromSlice([][]float64{{0, 4e-323}, {2e-323, 1e-323}})},
		{"huge coordinates", fs(-1e300, 1e300), fs(1e300, 0.5e300), gpukit.FromSlice([][]float64{{1, 2}, {3, 4}})},
		{"tiny coordinates", fs(1e-300, 2e-300), fs(0, 1e-300), gpukit.FromSlice([][]float64{{1, 2}, {3, 4}})},
		{"close coordinates", fs(1e9, 1e9+0.5), fs(-1e15, 1-1e15), gpukit.FromSlice([][]float64{{1, 2}, {3, 4}})},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := pictureOf(t, Heatmap(tt.x, tt.y, tt.z).Size(3, 2.4))
			ny, nx := tt.z.Shape()[0], tt.z.Shape()[1]
			lo, hi := math.Inf(1), math.Inf(-1)
			for _, v := range tt.z.Float64s() {
				lo, hi = math.Min(lo, v), math.Max(hi, v)
			}
			viridis := palettes["viridis"]()
			for i := range ny {
				for j := range nx {
					x, y := coordinateOf(tt.x, j, i, j), coordinateOf(tt.y, i, i, j)
					v := tt.z.At(i, j)
					want := viridis.at(v, lo, hi)
					switch v { // the palette's published ends
					case lo:
						want = hex(0x440154)
					case hi:
						want = hex(0xfde725)
					}
					if got := p.at(x, y); got != want {
						t.Errorf("z[%d,%d] = %g at (%g, %g) is drawn %v, want %v", i, j, v, x, y, got, want)
					}
				}
			}
		})
	}
}

// coordinateOf reads element k of an axis, or (i, j) of a mesh.
func coordinateOf(a *gpukit.Array, k, i, j int) float64 {
	if a.NDim() == 2 {
		return a.At(i, j)
	}
	return a.At(k)
}

func TestHeatmapSpecialValues(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	x, y := gpukit.Arange(3), gpukit.Arange(2)
	f := Heatmap(x, y, gpukit.FromSlice([][]float64{{1, nan, 3}, {inf, -inf, nan}}))
	p := pictureOf(t, f)
	for _, tt := range []struct {
		x, y float64
		want color.NRGBA
	}{
		{0, 0, hex(0x440154)}, {1, 0, hex(0xc8c8c8)}, {2, 0, hex(0xfde725)},
		{0, 1, hex(0xfde725)}, {1, 1, hex(0x440154)}, {2, 1, hex(0xc8c8c8)},
	} {
		if got := p.at(tt.x, tt.y); got != tt.want {
			t.Errorf("at (%g, %g): %v, want %v", tt.x, tt.y, got, tt.want)
		}
	}
	for _, s := range []string{"2 values are NaN", "1 value is +Inf", "1 value is -Inf"} {
		if notes := strings.Join(f.content.notes(), "; "); !strings.Contains(notes, s) {
			t.Errorf("the notes %q do not say %q", notes, s)
		}
	}
	for _, s := range []string{"NaN: 2.", "+Inf: 1.", "-Inf: 1."} {
		if !strings.Contains(f.Alt(), s) {
			t.Errorf("Alt %q does not say %q", f.Alt(), s)
		}
	}

	for name, v := range map[string]float64{"equal": 3, "equal zero": 0, "equal huge": -math.MaxFloat64, "equal tiny": 5e-324, "all NaN": nan, "all Inf": inf} {
		t.Run(name, func(t *testing.T) {
			p := pictureOf(t, Heatmap(x, y, gpukit.Full(v, 2, 3)))
			first := p.at(0, 0)
			for _, c := range []color.NRGBA{p.at(1, 0), p.at(2, 1)} {
				if c != first {
					t.Errorf("equal values are drawn %v and %v", first, c)
				}
			}
			if got := first == hex(0xc8c8c8); got != math.IsNaN(v) {
				t.Errorf("%g is drawn %v", v, first)
			}
		})
	}
}

// Where cells are smaller than pixels: a NaN still shows, and means are exact.
func TestHeatmapDownsampling(t *testing.T) {
	const n = 3000
	z := make([]float64, n*n)
	for i := range z {
		z[i] = float64(i % n / (n / 2))
	}
	z[1234*n+2345] = math.NaN()
	axis := gpukit.Arange(n)
	p := pictureOf(t, Heatmap(axis, axis, gpukit.FromFlat(z, n, n)))
	if got := p.at(2345, 1234); got != hex(0xc8c8c8) {
		t.Errorf("the pixel with the NaN is %v", got)
	}
	seen := map[color.NRGBA]int{}
	for y := p.area.Min.Y; y < p.area.Max.Y; y++ {
		for x := p.area.Min.X; x < p.area.Max.X; x++ {
			seen[color.NRGBAModel.Convert(p.At(x, y)).(color.NRGBA)]++
		}
	}
	if seen[hex(0xc8c8c8)] != 1 {
		t.Errorf("%d grey pixels, want 1", seen[hex(0xc8c8c8)])
	}
	if len(seen) > 6 { // the halves, the NaN, and columns of pixels with both
		t.Errorf("%d colours for a picture of two values: %v", len(seen), seen)
	}

	g := &heat{grid: &grid{x: make([]float64, 3), z: []float64{1, 2, 6, 3, 4, 8}}}
	for _, tt := range []struct {
		rows, cols span
		want       float64
	}{{span{0, 1}, span{2, 3}, 6}, {span{0, 2}, span{0, 2}, 2.5}, {span{0, 2}, span{0, 3}, 4}} {
		if got := g.mean(tt.rows, tt.cols); math.Abs(got-tt.want) > 1e-15 {
			t.Errorf("mean of rows %v, columns %v is %g, want %g", tt.rows, tt.cols, got, tt.want)
		}
	}
}

func TestCellsOf(t *testing.T) {
	rnd := rand.New(rand.NewSource(1))
	for range 300 {
		cells, pixels := 1+rnd.Intn(60), 1+rnd.Intn(60)
		bounds := []vg.Length{0}
		for range cells {
			bounds = append(bounds, bounds[len(bounds)-1]+vg.Length(rnd.Float64()+0.01))
		}
		total := bounds[cells]
		for k := range bounds {
			bounds[k] *= 100 / total
		}
		w := 100 / vg.Length(pixels)
		centres := make([]vg.Length, pixels)
		for i := range centres {
			centres[i] = (vg.Length(i) + 0.5) * w
		}
		falling := make([]vg.Length, cells+1)
		for k := range falling {
			falling[k] = bounds[cells-k]
		}
		spans, mirrored := cellsOf(bounds, centres), cellsOf(falling, centres)
		for i, s := range spans {
			if want := (span{cells - s.to, cells - s.from}); pixels > 1 && mirrored[i] != want {
				t.Fatalf("falling bounds: pixel %d shows %v, want %v", i, mirrored[i], want)
			}
			if pixels == 1 {
				continue
			}
			// The oracle: cells with their middle in the pixel, or the one under the centre.
			var want []int
			for k := range cells {
				if m := (bounds[k] + bounds[k+1]) / 2; m >= centres[i]-w/2 && m < centres[i]+w/2 {
					want = append(want, k)
				}
			}
			if want == nil {
				for k := range cells {
					if bounds[k] <= centres[i] && centres[i] < bounds[k+1] {
						want = []int{k}
					}
				}
			}
			if s.from != want[0] || s.to != want[len(want)-1]+1 {
				t.Fatalf("pixel %d at %g shows cells %v, want %v", i, centres[i], s, want)
			}
		}
	}
}

func TestErrors(t *testing.T) {
	x, y := gpukit.Arange(4), gpukit.Arange(3)
	z := gpukit.Arange(12).Reshape(3, 4)
	xm, ym := gpukit.MeshGrid(x, y)
	fs := func(v ...float64) *gpukit.Array { return gpukit.FromSlice(v) }
	bent := gpukit.FromSlice([][]float64{{0, 1, 2, 3}, {0, 1, 2, 3}, {0, 1, 2.5, 3}})
	tests := []struct {
		name string
		f    *Figure
		want []string
	}{
		{"nil x", Heatmap(nil, y, z), []string{"plots.Heatmap: x is a nil array"}},
		{"nil y", Heatmap(x, nil, z), []string{"y is a nil array"}},
		{"nil z", Contour(x, y, nil), []string{"plots.Contour: z is a nil array"}},
		{"z 1-d", Heatmap(x, y, x), []string{"z has shape (4,)", "(ny, nx)"}},
		{"z 3-d", Heatmap(x, y, z.Reshape(3, 4, 1)), []string{"z has shape (3, 4, 1)"}},
		{"z 0-d", Heatmap(x, y, gpukit.Full(1)), []string{"z has shape ()"}},
		{"z empty", Heatmap(gpukit.Arange(0), y, gpukit.Zeros(3, 0)), []string{"z has shape (3, 0)", "no value"}},
		{"x short", Heatmap(gpukit.Arange(5), y, z), []string{"x has shape (5,)", "z has shape (3, 4)", "4 columns", "(4,)"}},
		{"y short", Heatmap(x, gpukit.Arange(2), z), []string{"y has shape (2,)", "3 rows", "(3,)"}},
		{"swapped axes", Heatmap(y, x, z), []string{"x has shape (3,)", "z.T()"}},
		{"meshes for the transpose", Heatmap(xm.T(), ym.T(), z), []string{"x has shape (4, 3)", "z.T()"}},
		{"swapped meshes", Heatmap(ym, xm, z), []string{"x, a mesh of shape (3, 4)", "the other mesh"}},
		{"bent mesh", Heatmap(bent, ym, z), []string{"x, a mesh", "element (2, 2) is 2.5, but 2 was met"}},
		{"NaN coordinate", Heatmap(fs(0, 1, math.NaN(), 3), y, z), []string{"x[2] is NaN", "finite"}},
		{"Inf coordinate", Heatmap(x, fs(0, 1, math.Inf(1)), z), []string{"y[2] is +Inf"}},
		{"NaN in mesh", Heatmap(gpukit.Full(math.NaN(), 3, 4), ym, z), []string{"x[0] is NaN"}},
		{"equal coordinates", Heatmap(fs(0, 1, 1, 2), y, z), []string{"x[2] = 1 follows 1", "sort"}},
		{"turning coordinates", Contour(x, fs(0, 2, 1), z), []string{"y[2] = 1 follows 2"}},
		{"all equal coordinates", Heatmap(x, fs(1, 1, 1), z), []string{"y[1] = 1 follows 1"}},
		{"too large coordinate", Heatmap(fs(0, 1, 2, 1e301), y, z), []string{"x[3] is 1e+301"}},
		{"contour of a row", Contour(x, gpukit.Arange(1), x.Reshape(1, 4)), []string{"z has shape (1, 4)", "Heatmap"}},
		{"contour of a column", Contour(gpukit.Arange(1), x, x.Reshape(4, 1)), []string{"z has shape (4, 1)"}},
		{"size 0", Heatmap(x, y, z).Size(0, 3), []string{"Size(0, 3)", "inches"}},
		{"size NaN", Heatmap(x, y, z).Size(4, math.NaN()), []string{"Size(4, NaN)"}},
		{"size Inf", Heatmap(x, y, z).Size(math.Inf(1), 4), []string{"Size(+Inf, 4)"}},
		{"palette", Heatmap(x, y, z).Palette("jet"), []string{`Palette("jet")`, "cividis, coolwarm, viridis"}},
		{"levels of a heat map", Heatmap(x, y, z).Levels(1), []string{"only plots.Contour"}},
		{"no level", Contour(x, y, z).Levels(), []string{"no level is given"}},
		{"NaN level", Contour(x, y, z).Levels(1, math.NaN()), []string{"level 2 is NaN"}},
		{"first error stays", Heatmap(nil, y, z).Size(0, 0).Palette("jet"), []string{"x is a nil array"}},
		{"nil figure", (*Figure)(nil).Title("t").Labels("a", "b").ColorLabel("c").Size(1, 1).Levels(1).Palette("jet"), []string{"Title of a nil *Figure"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			err := tt.f.Err()
			if err == nil {
				t.Fatal("no error")
			}
			for _, w := range tt.want {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("error %q does not say %q", err, w)
				}
			}
			path := filepath.Join(t.TempDir(), "f.png")
			if got := tt.f.Save(path); got == nil || got.Error() != err.Error() {
				t.Errorf("Save: %v", got)
			}
			if _, err := os.Stat(path); err == nil {
				t.Error("Save wrote a file")
			}
			d := tt.f.Render()
			if d.Data["text/plain"] != err.Error() || d.Data["image/png"] != nil || d.Data["image/svg+xml"] != nil {
				t.Errorf("Render shows %v", d.Data)
			}
			if tt.f.Plot() == nil || tt.f.Alt() != err.Error() {
				t.Error("Plot or Alt of the figure with an error")
			}
		})
	}
}

func TestNilFigure(t *testing.T) {
	var f *Figure
	for name, g := range map[string]*Figure{"Title": f.Title(""), "Labels": f.Labels("", ""), "ColorLabel": f.ColorLabel(""),
		"Size": f.Size(3, 3), "Palette": f.Palette(""), "Levels": f.Levels()} {
		if g == nil || g.Err() == nil || !strings.Contains(g.Err().Error(), name+" of a nil") {
			t.Errorf("%s of a nil figure: %v", name, g)
		}
	}
	for _, f := range []*Figure{nil, {}} {
		if f.Err() == nil || f.Save("x.png") == nil || f.Render().Data["text/plain"] == nil || f.Alt() == "" || f.String() == "" || f.Plot() == nil {
			t.Error("a method of a nil figure, or of an empty one, says nothing")
		}
	}
	var empty Figure
	if err := empty.Title("a").Size(3, 3).Log().Err(); err == nil || !strings.Contains(err.Error(), "plots: Title of an empty Figure; make one with plots.Line") {
		t.Errorf("an empty figure: %v", err)
	}
}

// What goes wrong while drawing is an error too, and the next figure draws.
func TestDrawingFails(t *testing.T) {
	x, y, z := gpukit.Arange(4), gpukit.Arange(3), gpukit.Arange(12).Reshape(3, 4)
	f := Heatmap(x, y, z)
	f.Plot().Add(panicky{})
	if s := fmt.Sprint(f.Render().Data["text/plain"]); !strings.Contains(s, "cannot be drawn: on purpose") {
		t.Errorf("a plotter that panics: %q", s)
	}
	f = Heatmap(x, y, z).Size(1.5, 1.5).Labels("x", strings.Repeat("W", 300)).ColorLabel(strings.Repeat("wide words ", 100))
	for _, s := range []string{fmt.Sprint(f.Render().Data["text/plain"]), fmt.Sprint(f.Err()), fmt.Sprint(f.Save(filepath.Join(t.TempDir(), "f.png")))} {
		if !strings.Contains(s, "leaves no room") {
			t.Errorf("labels without end: %q", s)
		}
	}
	if f.Size(20, 20); f.Err() != nil || f.Render().Data["image/png"] == nil {
		t.Errorf("in a larger figure: %v", f.Err())
	}
	if f := Heatmap(x, y, z); f.Render().Data["image/png"] == nil {
		t.Error("the next figure is not drawn")
	}
}

type panicky struct{}

func (panicky) Plot(draw.Canvas, *plot.Plot) { panic(errors.New("on purpose")) }

func TestSave(t *testing.T) {
	x, y, z := gpukit.Arange(4), gpukit.Arange(3), gpukit.Arange(12).Reshape(3, 4)
	dir := t.TempDir()
	for _, name := range []string{"Heatmap", "Contour"} {
		for ext, magic := range map[string]string{".png": "\x89PNG", ".PNG": "\x89PNG", ".jpg": "\xff\xd8", ".jpeg": "\xff\xd8", ".svg": "<?xml", ".pdf": "%PDF"} {
			var first []byte
			for range 3 { // the same figure, the same bytes
				f := Heatmap(x, y, z)
				if name == "Contour" {
					f = Contour(x, y, z)
				}
				path := filepath.Join(dir, name+ext)
				if err := f.Title("a < b").Size(3, 2.4).Labels("x / µm", "y").ColorLabel("z").Save(path); err != nil {
					t.Fatal(err)
				}
				data, err := os.ReadFile(path)
				if err != nil || !bytes.HasPrefix(data, []byte(magic)) {
					t.Errorf("%s: %v, starts %q", path, err, data[:min(8, len(data))])
				}
				if first == nil {
					first = data
				} else if !bytes.Equal(first, data) {
					t.Errorf("%s: two runs differ", path)
				}
			}
		}
	}
	for _, path := range []string{"f", "f.eps", "f.gif", ".", ""} {
		err := Heatmap(x, y, z).Save(filepath.Join(dir, path))
		if err == nil || !strings.Contains(err.Error(), ".png, .jpg, .jpeg, .svg, .pdf") {
			t.Errorf("Save(%q): %v", path, err)
		}
	}
	if err := Heatmap(x, y, z).Save(filepath.Join(dir, "none", "f.png")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a directory that is not there: %v", err)
	}
}

func TestRender(t *testing.T) {
	x, y, z := gpukit.Arange(4), gpukit.Arange(3), gpukit.Arange(12).Reshape(3, 4)
	d := Heatmap(x, y, z).Size(5, 3.5).Render()
	cfg, err := png.DecodeConfig(bytes.NewReader(d.Data["image/png"].([]byte)))
	if err != nil || cfg.Width != 960 || cfg.Height != 672 {
		t.Errorf("PNG: %v, %d x %d", err, cfg.Width, cfg.Height)
	}
	meta := d.Metadata["image/png"].(map[string]interface{})
	if meta["width"] != 480 || meta["height"] != 336 || meta["alt"] != d.Data["text/plain"] {
		t.Errorf("metadata %v", meta)
	}

	f := Contour(x, y, z).Title(`<a href="x">`).ColorLabel("z & more")
	d = f.Render()
	svg := d.Data["image/svg+xml"].(string)
	count := map[string]int{}
	dec := xml.NewDecoder(strings.NewReader(svg))
	for title := false; ; {
		tok, err := dec.Token()
		if err == io.EOF {
			break
		} else if err != nil {
			t.Fatalf("the SVG is not well-formed: %v", err)
		}
		switch tok := tok.(type) {
		case xml.StartElement:
			count[tok.Name.Local]++
			title = tok.Name.Local == "title"
		case xml.CharData:
			if title && string(tok) != f.Alt() {
				t.Errorf("title %q, want %q", tok, f.Alt())
			}
			title = false
		}
	}
	if count["title"] != 1 || count["text"] != 0 || count["a"] != 0 || count["path"] < 20 {
		t.Errorf("SVG elements %v", count)
	}
	if b := f.String(); b != f.Alt() {
		t.Errorf("String %q", b)
	}
}

// Text that the font lacks must not vanish; wrapping loses nothing.
func TestText(t *testing.T) {
	sty := sans(10)
	for s, want := range map[string]string{"": "", "plain": "plain", "m s⁻²": "m s^-2", "30° Ä µ λ m²": "30° Ä µ λ m²", "日": "?", "a\nb": "a\nb", "a\tb\rc\x00": "a b c "} {
		if got := printable(sty, s); got != want {
			t.Errorf("printable(%q) = %q, want %q", s, got, want)
		}
	}
	long := strings.Repeat("some words ", 30)
	w := wrap(sty, long, 100)
	if strings.Join(strings.Fields(w), " ") != strings.TrimSpace(long) || sty.Width(w) > 100 {
		t.Errorf("wrap: %q", w)
	}
}

// What the font lacks is counted, wherever it stands.
func TestLackingIsNoted(t *testing.T) {
	one := []float64{1}
	for _, tt := range []struct {
		f    *Figure
		want int
	}{
		{Line(one, one).Title("why? m s⁻²\t°C"), 0},
		{Line(one, one).Title("温"), 1},
		{Line(one, one).Labels("温度 / °C", "時間 / s"), 4},
		{Line(one, Series{Name: "温度", Values: one}), 2},
		{Bars([]string{"温", "度"}, Series{Name: "時間", Values: []float64{1, 2}}), 4},
		{Heatmap(gpukit.Arange(2), gpukit.Arange(2), gpukit.Zeros(2, 2)).ColorLabel("温度"), 2},
		{Contour(gpukit.Arange(2), gpukit.Arange(2), gpukit.Zeros(2, 2)).ColorLabel("温度"), 2},
		{Roofline([]Roof{{"温", 1, 1}}, Work{"度", 1, 1, ""}), 2},
		{Timeline(&trace.Trace{Records: []trace.Record{{Kind: trace.Launch, Name: "核"}, {Kind: trace.Launch, Name: "核"}}}), 1},
	} {
		want := ""
		switch {
		case tt.want == 1:
			want = "a ? stands for a character that the font lacks"
		case tt.want > 1:
			want = fmt.Sprintf("? stands for %d characters that the font lacks", tt.want)
		}
		if got := strings.Join(tt.f.lacking(), "; "); got != want {
			t.Errorf("%s: %q, want %q", tt.f.Alt(), got, want)
		}
		if l, err := tt.f.layout(draw.Canvas{Rectangle: tt.f.bounds()}); err != nil || !strings.Contains(strings.ReplaceAll(l.notes, "\n", " "), want) {
			t.Errorf("%s: the notes are %q (%v)", tt.f.Alt(), l.notes, err)
		}
	}
}

// Of many labels only those that are written count.
func TestLackingOfManyLabels(t *testing.T) {
	labels, values := make([]string, 700), make([]float64, 700)
	for i := range labels {
		labels[i] = "温度"
	}
	f := Bars(labels, Series{Values: values})
	marks := 0
	for _, s := range ofSize(textsOf(t, f), tickSize) {
		marks += strings.Count(s.text, "?")
	}
	if marks == 0 || marks == 1400 {
		t.Fatalf("%d question marks are drawn", marks)
	}
	want := fmt.Sprintf("? stands for %d characters that the font lacks", marks)
	if l, err := f.layout(draw.Canvas{Rectangle: f.bounds()}); err != nil || !strings.Contains(strings.ReplaceAll(l.notes, "\n", " "), want) {
		t.Errorf("the notes are %q (%v), want %q", l.notes, err, want)
	}
}

// gonum's PDF canvas draws pictures upside down; pdfCanvas undoes that. Should
// gonum mend it, the last matrix before the picture tells.
func TestPDFPicture(t *testing.T) {
	data, err := Heatmap(gpukit.Arange(2), gpukit.Arange(2), gpukit.Arange(4).Reshape(2, 2)).encode("pdf")
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(data, []byte("CreationDate (D:20")) {
		t.Error("the PDF tells the time")
	}
	found := 0
	for _, m := range regexp.MustCompile(`(?s)stream\r?\n(.*?)\r?\nendstream`).FindAllSubmatch(data, -1) {
		r, err := zlib.NewReader(bytes.NewReader(m[1]))
		if err != nil {
			continue
		}
		content, _ := io.ReadAll(r)
		if !bytes.Contains(content, []byte(" Do")) {
			continue
		}
		// All matrices here scale and shift, so their vertical scales multiply.
		up, stack, fields := 1.0, []float64{}, strings.Fields(string(content))
		for i, f := range fields {
			switch f {
			case "q":
				stack = append(stack, up)
			case "Q":
				up, stack = stack[len(stack)-1], stack[:len(stack)-1]
			case "cm":
				v, err := strconv.ParseFloat(fields[i-3], 64)
				if err != nil {
					t.Fatal(err)
				}
				up *= v
			case "Do":
				found++
				if up >= 0 {
					t.Errorf("the picture is drawn upright now (%g): drop pdfCanvas", up)
				}
			}
		}
	}
	if found != 1 { // more would come in random order
		t.Errorf("%d pictures, want 1", found)
	}
}

func TestPalettes(t *testing.T) {
	// Entries that matplotlib publishes.
	for _, tt := range []struct {
		name string
		i    int
		want uint32
		off  int
	}{{"viridis", 0, 0x440154, 0}, {"viridis", 128, 0x21918c, 1}, {"viridis", 255, 0xfde725, 0},
		{"cividis", 0, 0x00224e, 0}, {"cividis", 128, 0x7d7c78, 1}, {"cividis", 255, 0xfee838, 0}} {
		got, want := palettes[tt.name]().entry[tt.i], hex(tt.want)
		off := func(a, b uint8) bool { return math.Abs(float64(a)-float64(b)) > float64(tt.off) }
		if off(got.R, want.R) || off(got.G, want.G) || off(got.B, want.B) || got.A != 255 {
			t.Errorf("%s[%d] = %v, want %v", tt.name, tt.i, got, want)
		}
	}
	luma := func(c color.NRGBA) float64 { return 0.299*float64(c.R) + 0.587*float64(c.G) + 0.114*float64(c.B) }
	for name, make := range palettes {
		c := make()
		for i, e := range c.entry {
			if d := math.Abs(luma(e) - luma(c.nan)); d < 5 && max(e.R, e.G, e.B)-min(e.R, e.G, e.B) < 16 {
				t.Errorf("%s[%d] = %v is hard to tell from the grey of NaN", name, i, e)
			}
			if i > 0 && name != "coolwarm" && luma(e) < luma(c.entry[i-1])-0.6 {
				t.Errorf("%s darkens at %d", name, i)
			}
			if l := luma(onWhite(e)); l > 151 {
				t.Errorf("%s[%d] as a line has luma %g", name, i, l)
			}
		}
	}
	c := palettes["viridis"]()
	for _, tt := range []struct {
		v, lo, hi float64
		want      color.NRGBA
	}{{0, 0, 1, c.entry[0]}, {1, 0, 1, c.entry[255]}, {-5, 0, 1, c.entry[0]}, {5, 0, 1, c.entry[255]}, {0.5, 0, 1, c.entry[128]},
		{math.Inf(1), 0, 1, c.entry[255]}, {math.Inf(-1), 0, 1, c.entry[0]}, {math.NaN(), 0, 1, c.nan},
		{0, -math.MaxFloat64, math.MaxFloat64, c.entry[128]}} {
		if got := c.at(tt.v, tt.lo, tt.hi); got != tt.want {
			t.Errorf("at(%g, %g, %g) = %v, want %v", tt.v, tt.lo, tt.hi, got, tt.want)
		}
	}
}

func TestTicks(t *testing.T) {
	for _, tt := range []struct {
		lo, hi float64
		n      int
		want   string
	}{
		{0, 10, 5, "0 2 4 6 8 10"},
		{99, 101, 4, "99.0 99.5 100.0 100.5 101.0"},
		{-0.3, 0.3, 6, "-0.3 -0.2 -0.1 0 0.1 0.2 0.3"},
		{0, 0.000307, 6, "0 0.0001 0.0002 0.0003"},
		{-2e-9, 2e-9, 4, "-2e-9 -1e-9 0 1e-9 2e-9"},
		{1e6, 1e6 + 1, 2, "1000000.0 1000000.5 1000001.0"},
		{0, 5e7, 5, "0 1e7 2e7 3e7 4e7 5e7"},
		{1e9, 1e9 + 4e5, 2, "1e9 1.0002e9 1.0004e9"},
		{5, 5, 4, "5"},
	} {
		var got []string
		for _, k := range (&niceTicks{tt.n}).Ticks(tt.lo, tt.hi) {
			got = append(got, k.Label)
		}
		if s := strings.Join(got, " "); s != tt.want {
			t.Errorf("%g to %g: %s, want %s", tt.lo, tt.hi, s, tt.want)
		}
	}
	// Whatever the range: labels say their values, differ, and lie within.
	rnd := rand.New(rand.NewSource(2))
	for range 3000 {
		scale := math.Pow(10, rnd.Float64()*600-300)
		lo := (rnd.Float64() - 0.5) * scale
		hi := lo + rnd.Float64()*scale*math.Pow(10, -rnd.Float64()*12)
		n := 1 + rnd.Intn(10)
		if !(lo < hi) {
			continue
		}
		ticks := (&niceTicks{n}).Ticks(lo, hi)
		if len(ticks) == 0 || len(ticks) > n+1 {
			t.Fatalf("%g to %g: %d ticks for %d", lo, hi, len(ticks), n)
		}
		for i, k := range ticks {
			v, err := strconv.ParseFloat(k.Label, 64)
			if slack := (hi - lo) * 1e-3; err != nil || len(ticks) > 1 && math.Abs(v-k.Value) > slack || k.Value < lo-slack || k.Value > hi+slack {
				t.Fatalf("%g to %g: tick %q at %g", lo, hi, k.Label, k.Value)
			}
			if i > 0 && k.Label == ticks[i-1].Label {
				t.Fatalf("%g to %g: two ticks %q", lo, hi, k.Label)
			}
		}
	}
}

// Words without spaces are broken too, and no letter is lost.
func TestWrapWords(t *testing.T) {
	sty := sans(10)
	for _, s := range []string{strings.Repeat("W", 100), "short " + strings.Repeat("äöü", 40) + " end", strings.Repeat("a ", 50)} {
		for _, width := range []vg.Length{1, 30, 100} {
			w := wrap(sty, s, width)
			if all := strings.NewReplacer(" ", "", "\n", ""); all.Replace(w) != all.Replace(s) {
				t.Errorf("%g: %q becomes %q", width, s, w)
			}
			for _, l := range strings.Split(w, "\n") {
				if sty.Width(l) > width && len([]rune(l)) > 1 {
					t.Errorf("%g: %q is too long", width, l)
				}
			}
		}
	}
}
