package sim

import (
	"math"
	"strings"
	"testing"
	"time"

	"gpunotes/gpukit/internal/driver"
)

// predict launches a kernel of parameters a, b and out, of 2^21 words each, and returns what was counted and predicted.
func predict(t *testing.T, card string, body string, blocks, size int) (*Stats, time.Duration) {
	t.Helper()
	d := open(t, card, Options{Unchecked: true})
	target := map[string]string{"quadro-k2000": "sm_30", "gtx-970": "sm_52", "h200": "sm_90"}[card]
	f := loadKernel(t, d, strings.Replace(kernelText(target, "a b out", body), ".version 7.0", map[bool]string{true: ".version 7.8", false: ".version 7.0"}[card == "h200"], 1))
	var p []uint64
	for range 3 {
		q, err := d.Alloc(8 << 21)
		if err != nil {
			t.Fatal(err)
		}
		p = append(p, uint64(q))
	}
	var r driver.Record
	d.Record(func(x driver.Record) { r = x })
	if err := f.Launch(driver.Launch{Grid: driver.Dim{X: blocks, Y: 1, Z: 1}, Block: driver.Dim{X: size, Y: 1, Z: 1}, Params: p}); err != nil {
		t.Fatal(err)
	}
	return d.LastLaunch(), r.Duration
}

// TestScoreboard has the cycles of ten more instructions, by the rule: in order, one issue slot after the other, each
// when its operands are ready.
func TestScoreboard(t *testing.T) {
	k, err := LookupCard("quadro-k2000")
	if err != nil {
		t.Fatal(err)
	}
	a, dp := float64(k.ALULatency), float64(k.FP64Latency)
	for _, c := range []struct {
		name, step, last string
		each             float64
	}{
		{"dependent f32", "add.rn.f32 %f1, %f1, %f2;", "", a},
		{"independent f32", "add.rn.f32 %f3, %f1, %f2;", "", 1},
		{"dependent f64", "fma.rn.f64 %fd1, %fd1, %fd1, %fd2;", "", dp},
		{"dependent 64-bit sums", "add.s64 %rd1, %rd1, 3;", "", 2 * a},
		{"independent 64-bit sums", "add.s64 %rd2, %rd1, 3;", "", 2},
		{"products of 64 bits", "mul.lo.s64 %rd1, %rd1, %rd1;", "", float64(k.Multiply64Latency)},
		{"products with a literal", "mul.lo.s64 %rd1, %rd1, 33;", "", float64(k.Multiply64Latency * (k.Multiply64Slots - k.Multiply64HalfSlots) / k.Multiply64Slots)},
		{"products with a negative one", "mul.lo.s64 %rd1, %rd1, -33;", "", float64(k.Multiply64Latency)},
		{"independent products", "mul.lo.s64 %rd2, %rd1, %rd1;", "", float64(k.Multiply64Slots)},
		{"independent products of numbers of 32 bits", "mul.lo.s64 %rd2, %rd7, 33;", "", float64(k.Multiply64Slots - 2*k.Multiply64HalfSlots)},
		{"moves", "mov.u32 %r2, %r1;", "", 0},
		{"a predicate", "setp.lt.u32 %p1, %r1, 5; @%p1 add.u32 %r1, %r1, 1;", "", 2 * a},
		{"loads of one place, each at the address that the last gave", "ld.global.u64 %rd3, [%rd3];", "", float64(k.L2Latency) + 1},
		{"loads from shared memory", "ld.shared.u64 %rd4, [%rd4];", "", float64(k.SharedLatency) + 1},
		{"independent loads", "ld.global.u64 %rd5, [%rd3];", "", 1},
		{"stores to 32 lines", "st.global.u64 [%rd6], %rd1;", "", 1 + float64(31*float64(k.LineDelay))},
	} {
		// The word at %rda holds its own address, after a first access that brings it to L2.
		body := func(n int) string {
			return "mov.u32 %r1, %tid.x; cvt.u64.u32 %rd7, %r1; mul.wide.u32 %rd6, %r1, 128; add.u64 %rd6, %rd6, %rdout; st.global.u64 [%rda], %rda; mov.u64 %rd4, dyn; .shared .align 8 .b64 s[1]; mov.u64 %rd4, s; st.shared.u64 [%rd4], %rd4; mov.u64 %rd3, %rda; mov.f32 %f1, 0f00000000; mov.f64 %fd1, 0d0000000000000000; mov.u64 %rd1, 1;\n" +
				strings.Repeat(c.step+"\n", n) +
				"st.global.f32 [%rdb], %f1; st.global.f64 [%rdb+8], %fd1; st.global.u64 [%rdb+16], %rd1; st.global.u64 [%rdb+24], %rd3; st.global.u64 [%rdb+32], %rd4; st.global.u32 [%rdb+40], %r1; ret;"
		}
		if c.name == "dependent f32" || c.name == "independent f32" {
			c.step = strings.ReplaceAll(c.step, "%f2", "%f1")
		}
		s20, _ := predict(t, "quadro-k2000", body(20), 1, 32)
		s30, _ := predict(t, "quadro-k2000", body(30), 1, 32)
		if got := (s30.WarpCycles - s20.WarpCycles) / 10; got != c.each {
			t.Errorf("%s: %v cycles, want %v", c.name, got, c.each)
		}
	}
	loop := func(n string) string {
		return "mov.u32 %r1, 0; LOOP: add.u32 %r1, %r1, 1; setp.lt.u32 %p0, %r1, " + n + "; @%p0 bra LOOP; ret;"
	}
	s20, _ := predict(t, "quadro-k2000", loop("20"), 1, 32)
	s30, _ := predict(t, "quadro-k2000", loop("30"), 1, 32)
	// The sum waits for nothing after a taken branch, the comparison for the sum, the branch for the comparison.
	if got, want := (s30.WarpCycles-s20.WarpCycles)/10, float64(2*a)+1+float64(k.TakenBranchLatency); got != want {
		t.Errorf("a loop: %v cycles, want %v", got, want)
	}
}

// TestPredictions has launches and copies whose durations were published, within what the model promises.
func TestPredictions(t *testing.T) {
	const product = `
mov.u32 %r0, %tid.x; mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mad.lo.u32 %r0, %r1, %r2, %r0; mul.wide.u32 %rd1, %r0, 8;
add.s64 %rd2, %rda, %rd1; add.s64 %rd3, %rdb, %rd1; add.s64 %rd4, %rdout, %rd1; ld.global.f64 %fd0, [%rd2]; ld.global.f64 %fd1, [%rd3]; mul.rn.f64 %fd2, %fd0, %fd1; st.global.f64 [%rd4], %fd2; ret;`
	s, got := predict(t, "quadro-k2000", product, 15625, 128)
	// 2e6 products of float64 took 842.49 us on a Quadro K2000.
	if want := 842490 * time.Nanosecond; math.Abs(math.Log(float64(got)/float64(want))) > 0.25 {
		t.Errorf("2e6 products: %v, measured %v (%+v)", got, want, s)
	}
	h, fast := predict(t, "h200", product, 15625, 128)
	if fast*10 > got || h.Classes != s.Classes {
		t.Errorf("H200: %v", fast)
	}
	d := open(t, "quadro-k2000", Options{})
	var r driver.Record
	d.Record(func(x driver.Record) { r = x })
	p, _ := d.Alloc(16e6)
	for _, c := range []struct {
		n    int
		back bool
		want time.Duration
	}{{8, false, 1100}, {160000, false, 27392}, {16e6, false, 5.9e6}, {16e6, true, 7.2e6}} {
		if b := make([]byte, c.n); c.back {
			d.CopyOut(b, p)
		} else {
			d.CopyIn(p, b)
		}
		if math.Abs(math.Log(float64(r.Duration)/float64(c.want))) > 0.15 {
			t.Errorf("%d bytes, back %v: %v, measured about %v", c.n, c.back, r.Duration, c.want)
		}
	}
}

// TestPasses: of launches that differ in nothing but where in shared memory they go, those with fewer passes over the
// banks are predicted to take no longer, and those with far more to take longer.
func TestPasses(t *testing.T) {
	const body = `.shared .align 8 .b8 s[32768]; mov.u32 %r1, %tid.x; and.b32 %r2, %r1, 31; mul.lo.u32 %r3, %r2, STRIDE; and.b32 %r3, %r3, 1023; mul.wide.u32 %rd1, %r3, BYTES; mov.u64 %rd2, s; add.s64 %rd2, %rd2, %rd1;
mul.wide.u32 %rd3, %r1, 8; add.s64 %rd3, %rd3, %rdout; mov.u32 %r4, 0;
LOOP: ld.shared.bBITS VALUE, [%rd2]; st.shared.bBITS [%rd2], VALUE; add.u32 %r4, %r4, 1; setp.lt.u32 %p0, %r4, 20; @%p0 bra LOOP; st.global.bBITS [%rd3], VALUE; ret;`
	for _, card := range []string{"quadro-k2000", "gtx-970"} {
		for _, bits := range []string{"32", "64"} {
			type run struct {
				stride string
				waves  uint64
				took   time.Duration
			}
			var runs []run
			for _, stride := range []string{"1", "2", "3", "4", "5", "8", "16", "17", "32", "33"} {
				text := strings.NewReplacer("STRIDE", stride, "BYTES", map[string]string{"32": "4", "64": "8"}[bits], "BITS", bits, "VALUE", map[string]string{"32": "%r5", "64": "%rd5"}[bits]).Replace(body)
				s, took := predict(t, card, text, 104, 256)
				runs = append(runs, run{stride, s.Memory.SharedWaves(), took})
			}
			for _, a := range runs {
				for _, b := range runs {
					if a.waves < b.waves && a.took > b.took || a.waves*4 < b.waves && a.took*5 > b.took*4 {
						t.Errorf("%s, %s bits: %d passes at stride %s take %v, and %d at stride %s %v", card, bits, a.waves, a.stride, a.took, b.waves, b.stride, b.took)
					}
				}
			}
		}
	}
}
