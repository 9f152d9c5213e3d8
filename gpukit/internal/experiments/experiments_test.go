package main

import (
	"io"
	"os"
	"slices"
	"strings"
	"testing"

	"gpunotes/gpukit/internal/driver/sim"
)

// The model explains the threads' figures within its bounds, and the kernels have the
// values that numpy gives.
func TestReplay(t *testing.T) {
	if testing.Short() {
		t.Skip("simulates for some seconds")
	}
	if err := replays(io.Discard); err != nil {
		t.Error(err)
	}
}

// The thread's kernel executes what its listing says: in the inner loop 12
// instructions, of which 2 loads, a product and a store; around it 11 and 6 for 5
// elements. A load of a parameter or two is in front.
func TestShapeOfTheListing(t *testing.T) {
	r, err := replay(kernelRows[0])
	if err != nil {
		t.Fatal(err)
	}
	c := r.stats.Classes
	for _, x := range []struct {
		what      string
		got, want float64
	}{
		{"instructions", float64(r.stats.Warps), 12 + 17.0/5},
		{"loads", float64(c[sim.LoadGlobal].Warps), 2},
		{"stores", float64(c[sim.StoreGlobal].Warps), 1},
		{"products", float64(c[sim.Float64].Warps), 1},
	} {
		if per := x.got / 2e6; per < x.want-0.05 || per > x.want+0.05 {
			t.Errorf("%s: %.3f per element, want %.3f", x.what, per, x.want)
		}
	}
	if n := gufunc("t14", 3, 2, []int{0, 2, 1}).words; n != listing.parameters {
		t.Errorf("%d words of parameters", n)
	}
}

func TestHeldOut(t *testing.T) {
	logs, worst := heldOut()
	if rms := rootMeanSquare(logs); len(logs) != 84 || rms > 0.14 || worst != "A100 triad" {
		t.Errorf("%d figures, error %.3f, worst %s", len(logs), rms, worst)
	}
}

// README shows rows of the table.
func TestReadmeShowsTheTable(t *testing.T) {
	readme, err := os.ReadFile("../../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	table, err := os.ReadFile("EXPERIMENTS.md")
	if err != nil {
		t.Fatal(err)
	}
	cells := func(row string) []string {
		var out []string
		for _, c := range strings.Split(strings.Trim(row, "|"), "|") {
			if c = strings.TrimSpace(c); c != "" {
				out = append(out, c)
			}
		}
		return out
	}
	_, section, _ := strings.Cut(string(readme), "\n## The threads, reproduced\n")
	section, _, _ = strings.Cut(section, "\n## ")
	shown := 0
	for _, row := range strings.Split(section, "\n") {
		if !strings.HasPrefix(row, "| t") {
			continue
		}
		shown++
		found := slices.ContainsFunc(strings.Split(string(table), "\n"), func(full string) bool {
			have := cells(full)
			return !slices.ContainsFunc(cells(row), func(c string) bool { return !slices.Contains(have, c) })
		})
		if !found {
			t.Errorf("README has %q, which is not in EXPERIMENTS.md", row)
		}
	}
	if shown != len(kernelRows)+len(programs()) || !strings.Contains(section, sim.Model()) {
		t.Errorf("README shows %d rows; its model has to be %s", shown, sim.Model())
	}
}

// A table that was made with another model, or other cards, says nothing about these.
func TestTableIsOfThisModel(t *testing.T) {
	text, err := os.ReadFile("EXPERIMENTS.md")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(text), "model and cards "+sim.Model()) {
		t.Errorf("EXPERIMENTS.md is not of model %s: make experiments", sim.Model())
	}
}
