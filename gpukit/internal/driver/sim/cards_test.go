package sim

import (
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

func card(t testing.TB, name string) *Card {
	t.Helper()
	c, err := LookupCard(name)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// Every number of every card has a source, and the numbers fit each other.
func TestCards(t *testing.T) {
	fields := 0
	for i := range reflect.TypeFor[Card]().NumField() {
		if reflect.TypeFor[Card]().Field(i).Tag.Get("card") != "" {
			fields++
		}
	}
	if got := len(CardNames()); got != 6 {
		t.Errorf("%d cards", got)
	}
	files, _ := filepath.Glob("cards/*.json")
	if len(files) != len(CardNames()) {
		t.Errorf("%d data files for %d cards", len(files), len(CardNames()))
	}
	// What each number may be at least; what is not listed is at least 1.
	zero := map[string]bool{"capability_minor": true, "driver_minor": true, "ptx_minor": true, "shared_reserved": true, "l1_global": true, "l1_read_only": true, "l1_local": true}
	fraction := map[string]bool{"link_efficiency": true, "efficiency": true, "host_copy_back_ratio": true}
	for _, name := range CardNames() {
		c := card(t, name)
		if c.Name != name {
			t.Errorf("%s is called %s in its file", name, c.Name)
		}
		if len(c.Numbers()) != fields {
			t.Errorf("%s: %d numbers, %d fields", name, len(c.Numbers()), fields)
		}
		for _, n := range c.Numbers() {
			switch {
			case len(n.Source) < len("assumed"):
				t.Errorf("%s: %s: source %q", name, n.Key, n.Source)
			case n.Value < 1 && !zero[n.Key] && !fraction[n.Key], fraction[n.Key] && (n.Value <= 0 || n.Value > 1):
				t.Errorf("%s: %s = %v", name, n.Key, n.Value)
			}
		}
		// Transfers per second times width of the bus: two transfers per cycle of the memory clock, GDDR6 and GDDR5 as
		// deviceQuery gives it.
		if bw := 2 * c.MemoryClockMHz * 1e6 * float64(c.BusBits) / 8 / 1e9; math.Abs(bw/c.MemoryGBS-1) > 0.01 {
			t.Errorf("%s: clock and bus make %.1f GB/s, the file says %v", name, bw, c.MemoryGBS)
		}
		if c.ThreadsPerMP != c.WarpsPerMP*c.WarpSize || c.SharedPerBlock > c.SharedPerBlockOptIn || c.SharedPerBlockOptIn+c.SharedReserved > c.SharedPerMP ||
			c.WarpSize != 32 || c.L1Latency >= c.L2Latency || c.L2Latency >= c.MemoryLatency || c.L2Bytes%(128*c.L2Ways) != 0 || c.L1Bytes%(128*c.L1Ways) != 0 ||
			c.RegistersPerThread > 255 || c.RowBytes%c.ChannelBytes != 0 || c.SharedPerMP%c.SharedUnit != 0 {
			t.Errorf("%s: numbers that do not fit", name)
		}
		if c.SerialFactorAtRegisterCap != 1 && name != "quadro-k2000" {
			t.Errorf("%s: a fitted factor", name)
		}
		info := c.Info()
		if info.SM() != c.SM() || info.Memory != uint64(c.MemoryBytes) || info.Name != c.Title || !info.Simulated || info.MaxGrid.X != math.MaxInt32 {
			t.Errorf("%s: Info %+v", name, info)
		}
	}
	// Double-precision peak by data sheet, GFLOP/s.
	for name, peak := range map[string]float64{"quadro-k2000": 30.5, "gtx-970": 122, "gtx-1080-ti": 354, "tesla-t4": 254, "a100": 9746, "h200": 33450} {
		c := card(t, name)
		if got := 2 * float64(c.FP64Lanes*c.Multiprocessors) * c.ClockMHz / 1e3; math.Abs(got/peak-1) > 0.01 {
			t.Errorf("%s: %.1f GFLOP/s in float64, %.1f published", name, got, peak)
		}
	}
}

func TestUnknownCard(t *testing.T) {
	for _, name := range []string{"", "rtx-4090", "Quadro K2000", "../cards_test"} {
		_, err := LookupCard(name)
		if err == nil {
			t.Fatalf("%q is a card", name)
		}
		for _, want := range append(CardNames(), "\""+name+"\"") {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%v: does not name %s", err, want)
			}
		}
	}
}

// A data file with a mistake is refused, and the message names the number.
func TestReadCardRefuses(t *testing.T) {
	text, err := os.ReadFile("cards/a100.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ old, new, want string }{
		{`"warp_size": [32,`, `"warp_size": [32.5,`, "warp_size"},
		{`"warp_size": [32,`, `"warp_size": ["32",`, "warp_size"},
		{`"warp_size": [32,`, `"warp_size": [-32,`, "warp_size"},
		{`"warp_size": [32,`, `"warp_sizes": [32,`, "warp_size is missing"},
		{`"row_bytes": [2048, "assumed"]`, `"row_bytes": [2048, " "]`, "row_bytes has no source"},
		{`"row_bytes": [2048, "assumed"]`, `"row_bytes": [2048]`, "row_bytes: source"},
		{`"row_bytes"`, `"rows": [1, "assumed"], "row_bytes"`, "rows is no number"},
		{`"title"`, `"titel"`, "title"},
		{`{`, ``, "invalid"},
	} {
		bad := strings.Replace(string(text), c.old, c.new, 1)
		if bad == string(text) {
			t.Fatalf("%s is not in the file", c.old)
		}
		if _, err := readCard([]byte(bad)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", c.new, err)
		}
	}
}
