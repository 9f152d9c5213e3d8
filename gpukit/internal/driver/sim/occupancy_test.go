package sim

import (
	"testing"
)

// Where the occupancy is best, by threads per block.
func TestOccupancyBest(t *testing.T) {
	for _, c := range []struct {
		card      string
		registers int
		best      float64
		at        []int
	}{
		{"quadro-k2000", 63, 0.5, []int{64, 128, 256, 512, 1024}},
		{"quadro-k2000", 13, 1, []int{128, 256, 512, 1024}},
		{"gtx-970", 40, 0.75, []int{64, 96, 128, 192, 256, 384, 512, 768}},
	} {
		k := card(t, c.card)
		at := map[int]bool{}
		for _, n := range c.at {
			at[n] = true
			if o := k.Occupancy(n, c.registers, 0); o.Fraction != c.best {
				t.Errorf("%s, %d registers, %d threads: %+v, want %v", c.card, c.registers, n, o, c.best)
			}
		}
		for n := 32; n <= 1024; n += 32 {
			if o := k.Occupancy(n, c.registers, 0); o.Fraction > c.best || o.Fraction < c.best && at[n] {
				t.Errorf("%s, %d registers, %d threads: %+v", c.card, c.registers, n, o)
			}
		}
	}
}

// By hand, from the published rule; every card and every limit.
func TestOccupancy(t *testing.T) {
	for _, c := range []struct {
		card                       string
		threads, registers, shared int
		blocks                     int
		limit                      string
	}{
		{"quadro-k2000", 64, 13, 0, 16, "blocks"},
		{"quadro-k2000", 1024, 32, 0, 2, "threads"},
		{"quadro-k2000", 1024, 33, 0, 1, "registers"}, // 33*32 rounds up to 1280, 51 warps, 48 in fours
		{"quadro-k2000", 128, 20, 16384, 3, "shared memory"},
		{"quadro-k2000", 128, 20, 16385, 2, "shared memory"},
		{"quadro-k2000", 128, 64, 0, 0, "registers"},
		{"quadro-k2000", 1025, 10, 0, 0, "threads"},
		{"quadro-k2000", 0, 10, 0, 0, "threads"},
		{"gtx-970", 33, 0, 0, 32, "threads"},
		{"gtx-970", 32, 0, 0, 32, "blocks"},
		{"gtx-970", 256, 32, 24576, 4, "shared memory"},
		{"gtx-1080-ti", 256, 40, 0, 6, "registers"},
		{"tesla-t4", 1024, 64, 0, 1, "threads"},
		{"tesla-t4", 32, 16, 0, 16, "blocks"},
		{"tesla-t4", 64, 16, 65536, 1, "shared memory"},
		{"a100", 128, 16, 0, 16, "threads"},
		{"a100", 64, 16, 4096, 32, "threads"}, // 33 blocks of 4 + 1 KiB would fit
		{"a100", 64, 16, 5120, 27, "shared memory"},
		{"a100", 64, 255, 0, 4, "registers"},
		{"a100", 256, 32, 166912, 1, "shared memory"},
		{"a100", 256, 32, 167937, 0, "shared memory"},
		{"h200", 128, 16, 0, 16, "threads"},
		{"h200", 256, 32, 232448, 1, "shared memory"},
		{"h200", 256, 32, 115712, 2, "shared memory"}, // (113 + 1) KiB twice is all of 228
	} {
		o := card(t, c.card).Occupancy(c.threads, c.registers, c.shared)
		if o.Blocks != c.blocks || o.Limit != c.limit {
			t.Errorf("%s %d threads, %d registers, %d shared: %+v, want %d by %s", c.card, c.threads, c.registers, c.shared, o, c.blocks, c.limit)
		}
	}
}

// The driver prefers large blocks: with it the kernels above get 1024 threads.
func TestLargestBlock(t *testing.T) {
	for _, c := range []struct {
		card                     string
		registers, shared, limit int
		threads, blocks          int
	}{
		{"quadro-k2000", 63, 0, 0, 1024, 2},
		{"quadro-k2000", 13, 0, 0, 1024, 4},
		{"quadro-k2000", 13, 0, 256, 256, 16},
		{"quadro-k2000", 13, 0, 100, 100, 32}, // four warps each, as many as of 128
		{"gtx-970", 40, 0, 0, 768, 26},
		{"a100", 32, 0, 0, 1024, 216},
		{"a100", 255, 0, 0, 256, 108},
		{"quadro-k2000", 64, 0, 0, 0, 0},
		{"quadro-k2000", 20, 50000, 0, 0, 0},
	} {
		threads, blocks := card(t, c.card).LargestBlock(c.registers, c.shared, c.limit)
		if threads != c.threads || blocks != c.blocks {
			t.Errorf("%s %d registers, %d shared, at most %d: %d threads, %d blocks; want %d, %d", c.card, c.registers, c.shared, c.limit, threads, blocks, c.threads, c.blocks)
		}
	}
}
