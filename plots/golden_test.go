package plots_test

import (
	"bytes"
	"flag"
	"image"
	"image/color"
	"image/png"
	"io"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"
)

var update = flag.Bool("update", false, "write the figures of the examples to testdata instead of comparing them")

// Where pictures that differ are kept, outside version control.
const kept = "../artefacts/plots"

// The examples save into the temporary directory; it goes away with the tests.
func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "plots")
	if err != nil {
		panic(err)
	}
	os.Setenv("TMPDIR", dir)
	os.Setenv("TMP", dir) // Windows
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

func TestGolden(t *testing.T) {
	stdout := os.Stdout
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	os.Stdout = null
	ExampleHeatmap()
	ExampleHeatmap_cells()
	ExampleContour()
	ExampleBars()
	ExampleTimeline()
	ExampleRoofline()
	ExampleLine()
	ExampleScatter()
	ExampleFigure_LogX()
	os.Stdout = stdout
	null.Close()
	for _, name := range []string{"heatmap.png", "cells.png", "contour.png", "contour.svg", "bars.png", "bars.svg", "timeline.png", "roofline.png",
		"line.png", "line.svg", "scatter.png", "loglog.png"} {
		t.Run(name, func(t *testing.T) {
			got, err := os.ReadFile(filepath.Join(os.TempDir(), name))
			if err != nil {
				t.Fatal(err)
			}
			golden := filepath.Join("testdata", name)
			if *update {
				if err := os.WriteFile(golden, got, 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatalf("%v; run go test ./plots -update", err)
			}
			difference := ""
			var diff []byte
			if filepath.Ext(name) == ".svg" {
				difference = compareSVG(got, want)
			} else {
				difference, diff = comparePNG(t, got, want)
			}
			if difference == "" {
				return
			}
			os.MkdirAll(kept, 0o755)
			os.WriteFile(filepath.Join(kept, name), got, 0o644)
			if diff != nil {
				os.WriteFile(filepath.Join(kept, "difference-"+name), diff, 0o644)
			}
			t.Errorf("%s: %s; see %s (-update accepts it)", golden, difference, kept)
		})
	}
}

// comparePNG allows what another processor's rounding may do: a few pixels of
// other colour, or all of nearly the same.
func comparePNG(t *testing.T, got, want []byte) (string, []byte) {
	t.Helper()
	decode := func(b []byte) image.Image {
		img, err := png.Decode(bytes.NewReader(b))
		if err != nil {
			t.Fatal(err)
		}
		return img
	}
	a, b := decode(got), decode(want)
	if a.Bounds() != b.Bounds() {
		return "size " + a.Bounds().Size().String() + ", want " + b.Bounds().Size().String(), nil
	}
	diff := image.NewGray(a.Bounds())
	off, total := 0, a.Bounds().Dx()*a.Bounds().Dy()
	for y := range a.Bounds().Dy() {
		for x := range a.Bounds().Dx() {
			p, q := color.NRGBAModel.Convert(a.At(x, y)).(color.NRGBA), color.NRGBAModel.Convert(b.At(x, y)).(color.NRGBA)
			d := 0.0
			for _, c := range [][2]uint8{{p.R, q.R}, {p.G, q.G}, {p.B, q.B}, {p.A, q.A}} {
				d = math.Max(d, math.Abs(float64(c[0])-float64(c[1])))
			}
			diff.SetGray(x, y, color.Gray{uint8(255 - d)})
			if d > 6 {
				off++
			}
		}
	}
	if off <= total/2000 {
		return "", nil
	}
	var out bytes.Buffer
	png.Encode(&out, diff)
	return strconv.Itoa(off) + " of " + strconv.Itoa(total) + " pixels differ", out.Bytes()
}

var number = regexp.MustCompile(`-?\d+(?:\.\d+)?(?:e[-+]?\d+)?`)

// compareSVG wants the same text, with numbers equal to a fiftieth of a point.
func compareSVG(got, want []byte) string {
	if !bytes.Equal(number.ReplaceAll(got, []byte("#")), number.ReplaceAll(want, []byte("#"))) {
		return "other elements or points"
	}
	a, b := number.FindAll(got, -1), number.FindAll(want, -1)
	for i := range a {
		x, _ := strconv.ParseFloat(string(a[i]), 64)
		y, _ := strconv.ParseFloat(string(b[i]), 64)
		if math.Abs(x-y) > 0.02+math.Abs(y)*1e-6 {
			return "number " + string(a[i]) + " instead of " + string(b[i])
		}
	}
	return ""
}

// The comparison itself must tell pictures apart.
func TestComparison(t *testing.T) {
	picture := func(change func(*image.NRGBA)) []byte {
		img := image.NewNRGBA(image.Rect(0, 0, 100, 100))
		for i := range img.Pix {
			img.Pix[i] = 200
		}
		change(img)
		var b bytes.Buffer
		if err := png.Encode(io.Writer(&b), img); err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}
	same := picture(func(*image.NRGBA) {})
	for name, tt := range map[string]struct {
		change func(*image.NRGBA)
		equal  bool
	}{
		"nothing":    {func(*image.NRGBA) {}, true},
		"two pixels": {func(i *image.NRGBA) { i.Pix[0], i.Pix[40] = 0, 0 }, true},
		"a shade": {func(i *image.NRGBA) {
			for k := range i.Pix {
				i.Pix[k] += 3
			}
		}, true},
		"a line": {func(i *image.NRGBA) {
			for x := range 100 {
				i.SetNRGBA(x, 50, color.NRGBA{A: 255})
			}
		}, false},
	} {
		d, diff := comparePNG(t, picture(tt.change), same)
		if (d == "") != tt.equal || (diff == nil) != tt.equal {
			t.Errorf("%s: %q", name, d)
		}
	}
	svg := []byte(`<path d="M1.5,2L3,4" />`)
	for s, equal := range map[string]bool{string(svg): true, `<path d="M1.51,2L3,4" />`: true, `<path d="M1.6,2L3,4" />`: false, `<path d="M1.5,2L3,4Z" />`: false} {
		if d := compareSVG([]byte(s), svg); (d == "") != equal {
			t.Errorf("%s: %q", s, d)
		}
	}
}
