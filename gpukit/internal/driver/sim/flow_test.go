package sim

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"gpunotes/gpukit/internal/driver"
)

// TestRandomFlow runs random control flow, reducible or not, with early exits and loops, and compares every thread with
// what it does alone. The lanes that were counted are those threads' steps.
func TestRandomFlow(t *testing.T) {
	for seed := range uint64(120) {
		r := rand.New(rand.NewPCG(seed, 7))
		n := 2 + r.IntN(9)
		type block struct {
			mul, add   uint64
			bit        int // of x that decides; -1: always first
			to, other  int
			exits      int // bit of x that makes a thread leave here, -1 for none
			predicated bool
		}
		blocks := make([]block, n)
		var b strings.Builder
		b.WriteString("mov.u32 %r0, %tid.x; mul.wide.u32 %rd1, %r0, 0x9E3779B1; mul.wide.u32 %rd2, %r0, 8; add.u64 %rd2, %rd2, %rdout; mov.u32 %r1, 40;\n")
		for i := range blocks {
			k := &blocks[i]
			*k = block{mul: r.Uint64() | 1, add: r.Uint64() >> 1, bit: r.IntN(64), to: r.IntN(n), other: r.IntN(n), exits: -1, predicated: r.IntN(3) == 0}
			if r.IntN(4) == 0 {
				k.bit = -1
			}
			if r.IntN(4) == 0 {
				k.exits = r.IntN(64)
			}
			fmt.Fprintf(&b, "B%d: mov.u64 %%rd3, %d; mad.lo.u64 %%rd1, %%rd1, %%rd3, %d; sub.u32 %%r1, %%r1, 1; setp.eq.u32 %%p0, %%r1, 0; @%%p0 bra OUT;\n", i, k.mul, k.add)
			if k.predicated {
				fmt.Fprintf(&b, "and.b64 %%rd4, %%rd1, 4; setp.ne.u64 %%p3, %%rd4, 0; @%%p3 xor.b64 %%rd1, %%rd1, 99; @!%%p3 add.u64 %%rd1, %%rd1, 7;\n")
			}
			if k.exits >= 0 {
				fmt.Fprintf(&b, "shr.u64 %%rd4, %%rd1, %d; and.b64 %%rd4, %%rd4, 1; setp.ne.u64 %%p1, %%rd4, 0; @%%p1 st.global.u64 [%%rd2], %%rd1; @%%p1 exit;\n", k.exits)
			}
			if k.bit < 0 {
				if k.to != i+1 {
					fmt.Fprintf(&b, "bra B%d;\n", k.to)
				}
				continue
			}
			fmt.Fprintf(&b, "shr.u64 %%rd4, %%rd1, %d; and.b64 %%rd4, %%rd4, 1; setp.ne.u64 %%p2, %%rd4, 0; @%%p2 bra B%d;\n", k.bit, k.to)
			if k.other != i+1 {
				fmt.Fprintf(&b, "bra B%d;\n", k.other)
			}
		}
		b.WriteString("OUT: st.global.u64 [%rd2], %rd1; ret;")
		size := 1 + r.IntN(100)
		var steps uint64
		alone := func(tid int) uint64 {
			x, fuel, at := uint64(tid)*0x9E3779B1, 40, 0
			for {
				k := &blocks[at]
				x = x*k.mul + k.add
				steps++
				if fuel--; fuel == 0 {
					return x
				}
				if k.predicated {
					if x&4 != 0 {
						x ^= 99
					} else {
						x += 7
					}
				}
				if k.exits >= 0 && x>>k.exits&1 != 0 {
					return x
				}
				if at = k.other; k.bit < 0 || x>>k.bit&1 != 0 {
					at = k.to
				}
			}
		}
		d := open(t, "tesla-t4", bare)
		text := kernelText("sm_70", "out", b.String())
		f := loadKernel(t, d, text)
		out := alloc(t, d, words(size))
		if err := f.Launch(driver.Launch{Grid: driver.Dim{X: 1, Y: 1, Z: 1}, Block: driver.Dim{X: size, Y: 1, Z: 1}, Params: []uint64{out}, Steps: 1e6}); err != nil {
			t.Fatalf("seed %d: %v\n%s", seed, err, text)
		}
		for i, got := range readWords(t, d, out, size) {
			if want := alone(i); got != want {
				t.Fatalf("seed %d: thread %d: got %#x, want %#x\n%s", seed, i, got, want, text)
			}
		}
		if got := d.LastLaunch().Opcodes["mad.lo.u64"].Lanes; got != steps {
			t.Errorf("seed %d: %d steps counted, want %d", seed, got, steps)
		}
	}
}
