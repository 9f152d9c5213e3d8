package plots_test

import (
	"flag"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gpunotes/gpukit"
	"gpunotes/plots"
)

// README begins
func sq(x float64) float64 { return x * x }
func dist(lat1, lon1, lat2, lon2, s float64) float64 {
	a := sq(math.Sin(0.008726645*(lat2-lat1))) +
		math.Cos(0.01745329*lat1)*math.Cos(0.01745329*lat2)*sq(math.Sin(0.008726645*(lon2-lon1)))
	return math.Atan2(a, 1-a) * s
}

// README ends

const readmePicture = "testdata/readme.png"

// The example of the README draws the picture that stands below it.
func TestReadmePicture(t *testing.T) {
	// README begins
	gpu := gpukit.MustOpen("parallel") // or "sim:quadro-k2000", a simulated GPU, or "cuda:0"
	lon, lat := gpukit.MeshGrid(gpukit.Linspace(99, 101, 1000), gpukit.Linspace(29, 31, 1000))
	Z := gpukit.Must(gpu.Vectorize(dist, lat, lon, 30.0, 101.0, 1.0)) // compile, run, bring back
	f := plots.Heatmap(lon, lat, Z).Labels("longitude / deg", "latitude / deg")
	// README ends

	f.Size(4.8, 3.6)
	out := filepath.Join(t.TempDir(), "readme.png")
	if err := f.Save(out); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	if flag.Lookup("update").Value.String() == "true" {
		if err := os.WriteFile(readmePicture, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(readmePicture)
	if err != nil {
		t.Fatalf("%v; run go test ./plots -run Readme -update", err)
	}
	if difference, _ := comparePNG(t, got, want); difference != "" {
		os.MkdirAll(kept, 0o755)
		os.WriteFile(filepath.Join(kept, "readme.png"), got, 0o644)
		t.Errorf("%s: %s; see %s (-update accepts it)", readmePicture, difference, kept)
	}

	for _, name := range []string{"README.md", "README.zh.md"} {
		text, err := os.ReadFile(filepath.Join("..", name))
		if err != nil {
			t.Fatal(err)
		}
		if s := `<img src="plots/` + readmePicture + `"`; !strings.Contains(string(text), s) {
			t.Errorf("%s does not show the picture: %s", name, s)
		}
		_, example, _ := strings.Cut(string(text), "```go\n")
		example, _, _ = strings.Cut(example, "```")
		_, code, _ := strings.Cut(example, "\n\n") // behind the imports
		if got, want := strings.Fields(code), readmeCode(t); strings.Join(got, " ") != strings.Join(want, " ") {
			t.Errorf("the example of %s is\n%s\nthat of the test\n%s", name, got, want)
		}
	}
}

// readmeCode is what stands between the marks in this file, as a cell has it: the last
// line is the figure.
func readmeCode(t *testing.T) []string {
	text, err := os.ReadFile("readme_test.go")
	if err != nil {
		t.Fatal(err)
	}
	var code []string
	for _, part := range strings.Split(string(text), "// README begins\n")[1:3] {
		part, _, _ = strings.Cut(part, "// README ends\n")
		code = append(code, strings.Fields(strings.Replace(part, "f := plots.", "plots.", 1))...)
	}
	return code
}
