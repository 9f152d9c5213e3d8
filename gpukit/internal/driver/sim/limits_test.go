package sim

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"gpunotes/gpukit/internal/driver"
)

func TestCheckLaunch(t *testing.T) {
	d := func(x ...int) driver.Dim { return driver.Dim{X: x[0], Y: x[1], Z: x[2]} }
	one := d(1, 1, 1)
	for _, c := range []struct {
		card        string
		grid, block driver.Dim
		registers   int
		static, dyn int
		code        driver.Code
		want        []string // in the message; nil: it may run
	}{
		{"quadro-k2000", one, d(1024, 1, 1), 63, 0, 0, 0, nil},
		{"quadro-k2000", d(math.MaxInt32, 65535, 65535), d(32, 32, 1), 32, 49152, 0, 0, nil},
		{"quadro-k2000", one, d(4, 4, 64), 32, 0, 49152, 0, nil},
		{"quadro-k2000", one, d(2048, 1, 1), 10, 0, 0, driver.InvalidValue, []string{"(2048,1,1)", "2048 threads along x", "Quadro K2000", "1024"}},
		{"quadro-k2000", one, d(1, 1025, 1), 10, 0, 0, driver.InvalidValue, []string{"1025 threads along y", "1024"}},
		{"quadro-k2000", one, d(1, 1, 65), 10, 0, 0, driver.InvalidValue, []string{"65 threads along z", "64"}},
		{"quadro-k2000", one, d(32, 33, 1), 10, 0, 0, driver.InvalidValue, []string{"(32,33,1)", "1056 threads", "1024 per block"}},
		{"h200", one, d(1024, 1024, 64), 10, 0, 0, driver.InvalidValue, []string{"67108864 threads", "1024"}},
		{"quadro-k2000", d(1, 65536, 1), one, 10, 0, 0, driver.InvalidValue, []string{"65536 blocks along y", "65535", "put the long axis on x"}},
		{"quadro-k2000", d(1, 1, 65536), one, 10, 0, 0, driver.InvalidValue, []string{"65536 blocks along z", "65535"}},
		{"quadro-k2000", d(math.MaxInt32+1, 1, 1), one, 10, 0, 0, driver.InvalidValue, []string{"2147483648 blocks along x", "2147483647"}},
		{"quadro-k2000", d(0, 1, 1), one, 10, 0, 0, driver.InvalidValue, []string{"grid (0,1,1)", "0 blocks along x", "at least 1"}},
		{"quadro-k2000", one, d(1, -3, 1), 10, 0, 0, driver.InvalidValue, []string{"-3 threads along y"}},
		{"quadro-k2000", one, one, 64, 0, 0, driver.LaunchOutOfResources, []string{"64 registers", "63"}},
		{"gtx-970", one, d(1024, 1, 1), 64, 0, 0, 0, nil},
		// 65 to 72 registers of a warp take 2304 of 65536: 28 warps.
		{"gtx-970", one, d(1024, 1, 1), 65, 0, 0, driver.LaunchOutOfResources, []string{"1024 threads", "65 registers", "65536", "largest block that fits has 896 threads"}},
		{"gtx-970", one, d(896, 1, 1), 72, 0, 0, 0, nil},
		{"gtx-970", one, d(257, 1, 1), 255, 0, 0, driver.LaunchOutOfResources, []string{"256 threads"}},
		{"quadro-k2000", one, one, 10, 49153, 0, driver.InvalidValue, []string{"49153 bytes", "48 KiB"}},
		{"quadro-k2000", one, one, 10, 40000, 9153, driver.InvalidValue, []string{"40000 bytes", "9153 bytes", "49153 bytes", "49152 bytes (48 KiB)"}},
		{"a100", one, one, 10, 0, 166912, 0, nil},
		{"a100", one, one, 10, 0, 166913, driver.InvalidValue, []string{"163 KiB"}},
		{"a100", one, one, 10, 49153, 0, driver.InvalidValue, []string{"dynamic shared memory", "163 KiB"}},
		{"a100", one, one, 10, 0, -1, driver.InvalidValue, []string{"-1 bytes"}},
	} {
		err := card(t, c.card).CheckLaunch(driver.Attributes{Name: "k", Registers: c.registers, Shared: c.static}, driver.Launch{Grid: c.grid, Block: c.block, Shared: c.dyn})
		name := fmt.Sprintf("%s grid %v block %v registers %d shared %d + %d", c.card, c.grid, c.block, c.registers, c.static, c.dyn)
		if c.want == nil {
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if !errors.Is(err, c.code) {
			t.Errorf("%s: %v, want %v", name, err, c.code)
			continue
		}
		for _, w := range append(c.want, "kernel k", "cuLaunchKernel") {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("%s: %v\n\tdoes not say %q", name, err, w)
			}
		}
	}
	// What is named as the largest block does fit, and a warp more does not.
	for _, name := range CardNames() {
		c := card(t, name)
		for r := 1; r <= c.RegistersPerThread; r++ {
			n := c.MaxThreads(r)
			a := driver.Attributes{Registers: r}
			if err := c.CheckLaunch(a, driver.Launch{Grid: one, Block: d(n, 1, 1)}); err != nil || c.Occupancy(n, r, 0).Blocks == 0 {
				t.Errorf("%s: %d registers: largest block %d: %v", name, r, n, err)
			}
			if n < 1024 && c.CheckLaunch(a, driver.Launch{Grid: one, Block: d(n+32, 1, 1)}) == nil || n < 1024 && c.Occupancy(n+32, r, 0).Blocks != 0 {
				t.Errorf("%s: %d registers: %d threads fit too", name, r, n+32)
			}
		}
	}
}

func TestCheckAlloc(t *testing.T) {
	c := card(t, "quadro-k2000")
	if err := c.CheckAlloc(1<<31, 1<<31); err != nil {
		t.Error(err)
	}
	err := c.CheckAlloc(1e15, 1<<30)
	if !errors.Is(err, driver.OutOfMemory) {
		t.Fatal(err)
	}
	for _, w := range []string{"1000000000000000 bytes (909.5 TiB)", "1073741824 bytes (1 GiB) of 2147483648 bytes (2 GiB)", "Quadro K2000"} {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("%v: does not say %s", err, w)
		}
	}
	if err := c.CheckAlloc(math.MaxUint64, 0); !errors.Is(err, driver.OutOfMemory) {
		t.Error(err)
	}
}
