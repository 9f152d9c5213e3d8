package main

import (
	"bytes"
	"encoding/json"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestMain lets the test binary be the program that bench.py starts.
func TestMain(m *testing.M) {
	if os.Getenv("CPUBENCH_SERVES") != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

var tiny = []string{"2", "32", "2", "64", "20", "16", "8", "2", "2"}

// Every work that bench.py may ask for gives gpukit's numbers in plain Go too.
func TestWorks(t *testing.T) {
	s, err := parse(tiny)
	if err != nil {
		t.Fatal(err)
	}
	b, err := newBench(s)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, plain string
		part        float64 // of the largest result, that they may differ
	}{
		{"discount", "discount", 0}, {"discount, new result", "discount", 0}, {"t14", "discount", 0}, {"t16", "discount", 0},
		{"discount17", "", 0}, {"t17", "", 0},
		{"distance", "distance", 1e-15}, {"mesh", "mesh", 1e-15}, {"mesh", "distance", 1e-15},
		{"options, polynomial", "options, polynomial", 1e-14}, {"options, erf", "options, erf", 1e-14}, {"options, erf", "options, polynomial", 1e-6},
		{"mandelbrot", "mandelbrot", 0}, {"matrices", "matrices", 0}, {"matrices in cache", "matrices in cache", 0},
		{"ten elements", "", 0},
	} {
		for threads := 1; threads <= 2; threads++ {
			for _, variant := range []string{"gpukit", "fastmath"} {
				w, err := b.make(c.name, variant, threads)
				if err != nil {
					t.Fatal(err)
				}
				if err := w.run(); err != nil {
					t.Fatalf("%s, %s: %v", c.name, variant, err)
				}
				got := w.result()
				if c.plain == "" {
					continue
				}
				p, err := b.make(c.plain, "go", threads)
				if err != nil {
					t.Fatal(err)
				}
				p.run()
				part := c.part
				if variant == "fastmath" {
					part = max(part, 1e-12)
				}
				if _, d, err := difference(got, p.result()); err != nil || d > part {
					t.Errorf("%s, %s on %d threads: differs from Go's by %g of the largest, %v", c.name, variant, threads, d, err)
				}
			}
		}
	}
	// The forms of t17 compute the same, and are no transpose of t16.
	a, _ := b.make("discount17", "gpukit", 1)
	z, _ := b.make("t17", "gpukit", 1)
	a.run()
	z.run()
	if most, _, err := difference(a.result(), z.result()); most != 0 || err != nil {
		t.Errorf("t17 differs from its form with Vectorize by %g ulp, %v", most, err)
	}
}

func TestDifference(t *testing.T) {
	up := math.Nextafter(1, 2)
	for _, c := range []struct{ a, b, want float64 }{
		{1, 1, 0}, {1, up, 1}, {0, math.Copysign(0, -1), 0}, {math.NaN(), -math.NaN(), 0}, {math.NaN(), 1, math.Inf(1)},
		{math.SmallestNonzeroFloat64, -math.SmallestNonzeroFloat64, 2}, {math.MaxFloat64, math.Inf(1), 1},
	} {
		if got := ulps(c.a, c.b); got != c.want {
			t.Errorf("%g and %g are %g ulp apart, not %g", c.a, c.b, got, c.want)
		}
		if got := ulps(c.b, c.a); got != c.want {
			t.Errorf("%g and %g are %g ulp apart, not %g", c.b, c.a, got, c.want)
		}
	}
	if most, part, err := difference([]float64{2, 4}, []float64{2, 3}); part != 0.25 || most != 1<<51 || err != nil {
		t.Error(most, part, err)
	}
	if _, _, err := difference([]float64{2}, nil); err == nil {
		t.Error("results of different lengths are compared")
	}
}

func TestAnswers(t *testing.T) {
	s, _ := parse(tiny)
	b, err := newBench(s)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "x")
	for _, c := range []struct{ request, want string }{
		{"time\tdiscount\tgpukit\t1\t2", `{"ns":[`},
		{"dump\tdiscount\tgo\t1\t" + file, `{}`},
		{"check\tdiscount\tgpukit\t2\t" + file, `{"ulp":0,"part":0}`},
		{"check\tdistance\tgpukit\t2\t" + file, `"error":"40000 numbers, gpukit has 1024"`},
		{"compile\tt38\tgpukit\t1\t2", `{"ns":[`},
		{"time\tdiscount\tgpukit\t1", `"error":"4 fields`},
		{"time\tdiscount\tgpukit\t0\t1", `"error":"threads`},
		{"time\tdiscount\tgpukit\t1\tx", `"error":"repetitions`},
		{"time\tnothing\tgpukit\t1\t1", `"error":"no work`},
		{"time\tdiscount\tnobody\t1\t1", `"error":"no variant`},
		{"sleep\tdiscount\tgpukit\t1\t1", `"error":"no request`},
	} {
		var out bytes.Buffer
		if err := serve(b, strings.NewReader(c.request+"\n"), &out); err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(out.String(), "\n")
		var about map[string]string
		if err := json.Unmarshal([]byte(lines[0]), &about); err != nil || about["engine"] == "" || about["stores"] == "" {
			t.Fatalf("%q, %v", lines[0], err)
		}
		if !strings.Contains(lines[1], c.want) {
			t.Errorf("%q is answered by %s, not %s", c.request, lines[1], c.want)
		}
	}
	if _, err := parse([]string{"1"}); err == nil {
		t.Error("one size is taken")
	}
}

// TestDriver runs bench.py on small works, without peers.
func TestDriver(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("there is no python3")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(t.TempDir(), "PEERS.md")
	samples := filepath.Join(t.TempDir(), "samples.json")
	cmd := exec.Command(python, "bench.py", "--cpubench", self, "--tiny", "--no-peers", "--pairs", "1", "--minutes", "0.5", "--out", out, "--samples", samples)
	cmd.Env = append(os.Environ(), "CPUBENCH_SERVES=1")
	if said, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	text, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"| t14 | 1 |", "vectorize form", "plain Go", "| mandelbrot | 1 |", "ten elements, warm, on cpu", "compile matrices"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("the table lacks %q:\n%s", want, text)
		}
	}
	var kept struct {
		Rows []struct {
			Pairs []struct {
				GpukitNS []float64 `json:"gpukit_ns"`
				PeerNS   []float64 `json:"peer_ns"`
			}
		}
	}
	data, err := os.ReadFile(samples)
	if err == nil {
		err = json.Unmarshal(data, &kept)
	}
	if err != nil || len(kept.Rows) == 0 {
		t.Fatalf("%v\n%s", err, data)
	}
	for _, r := range kept.Rows {
		if len(r.Pairs) == 0 || len(r.Pairs[0].GpukitNS) == 0 || len(r.Pairs[0].PeerNS) == 0 {
			t.Errorf("a row without samples: %+v", r)
		}
	}
}
