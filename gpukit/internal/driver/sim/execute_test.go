package sim

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"testing"

	"gpunotes/gpukit/internal/driver"
)

// open makes a card, by default without what other tests are about.
func open(t testing.TB, card string, o Options) *Device {
	t.Helper()
	c, err := LookupCard(card)
	if err != nil {
		t.Fatal(err)
	}
	return New(c, o)
}

var bare = Options{Unchecked: true, Uncounted: true}

// kernelText is a module of one kernel k of the given 8-byte parameters, "a b c", which are in %rda, %rdb, %rdc.
func kernelText(target string, params string, body string) string {
	var b strings.Builder
	fmt.Fprintf(&b, ".version 7.0\n.target %s\n.address_size 64\n.extern .shared .align 16 .b8 dyn[];\n.visible .entry k(", target)
	for i, p := range strings.Fields(params) {
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, ".param .u64 k_%s", p)
	}
	b.WriteString(")\n{\n.reg .pred %p<20>;\n.reg .b16 %h<20>;\n.reg .b32 %r<60>;\n.reg .b64 %rd<60>;\n.reg .f32 %f<20>;\n.reg .f64 %fd<20>;\n")
	for _, p := range strings.Fields(params) {
		fmt.Fprintf(&b, ".reg .b64 %%rd%s;\nld.param.u64 %%rd%s, [k_%s];\n", p, p, p)
	}
	b.WriteString(body)
	b.WriteString("\n}\n")
	return b.String()
}

func loadKernel(t testing.TB, d *Device, text string) driver.Function {
	t.Helper()
	m, err := d.Load([]byte(text))
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	f, err := m.Function("k")
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func alloc(t testing.TB, d *Device, data []byte) uint64 {
	t.Helper()
	p, err := d.Alloc(uint64(len(data)))
	if err == nil {
		err = d.CopyIn(p, data)
	}
	if err != nil {
		t.Fatal(err)
	}
	return uint64(p)
}

func words(n int) []byte { return make([]byte, 8*n) }

func readWords(t testing.TB, d *Device, p uint64, n int) []uint64 {
	t.Helper()
	b := make([]byte, 8*n)
	if err := d.CopyOut(b, driver.Ptr(p)); err != nil {
		t.Fatal(err)
	}
	out := make([]uint64, n)
	for i := range out {
		out[i] = binary.LittleEndian.Uint64(b[8*i:])
	}
	return out
}

// storeOwn stores %rd0 at the thread's own word of %rdout.
const storeOwn = `
mov.u32 %r50, %ctaid.x; mov.u32 %r51, %ntid.x; mov.u32 %r52, %tid.x;
mad.lo.u32 %r50, %r50, %r51, %r52;
mad.wide.u32 %rd50, %r50, 8, %rdout;
st.global.u64 [%rd50], %rd0;
ret;
`

// threads runs a kernel body that leaves a value in %rd0, and returns that of each thread.
func threads(t testing.TB, d *Device, target string, blocks, size int, body string) ([]uint64, error) {
	t.Helper()
	f := loadKernel(t, d, kernelText(target, "out", body+storeOwn))
	out := alloc(t, d, words(blocks*size))
	err := f.Launch(driver.Launch{Grid: driver.Dim{X: blocks, Y: 1, Z: 1}, Block: driver.Dim{X: size, Y: 1, Z: 1}, Shared: 4096, Params: []uint64{out}, Steps: 1e6})
	if err != nil {
		return nil, err
	}
	return readWords(t, d, out, blocks*size), nil
}

// TestControlFlow compares what threads compute on ways that part with what they would compute alone.
func TestControlFlow(t *testing.T) {
	tid := "mov.u32 %r0, %tid.x; cvt.u64.u32 %rd1, %r0; mov.u64 %rd0, 0;\n"
	for _, c := range []struct {
		name, body string
		want       func(i int) int
	}{
		{"if else", `
setp.lt.u32 %p0, %r0, 10; @%p0 bra THEN;
add.u64 %rd0, %rd1, 100; bra END;
THEN: add.u64 %rd0, %rd1, 1000;
END: add.u64 %rd0, %rd0, 1;`, func(i int) int {
			if i < 10 {
				return i + 1001
			}
			return i + 101
		}},
		{"loop of different lengths", `
mov.u64 %rd2, 0;
LOOP: setp.ge.u64 %p0, %rd2, %rd1; @%p0 bra END;
add.u64 %rd0, %rd0, %rd2; add.u64 %rd2, %rd2, 1; bra LOOP;
END:`, func(i int) int { return i * (i - 1) / 2 }},
		{"loop with break and continue", `
mov.u64 %rd2, 0;
LOOP: add.u64 %rd2, %rd2, 1; setp.gt.u64 %p0, %rd2, 20; @%p0 bra END;
and.b64 %rd3, %rd2, 1; setp.eq.u64 %p1, %rd3, 0; @%p1 bra LOOP;
setp.gt.u64 %p2, %rd2, %rd1; @%p2 bra END;
add.u64 %rd0, %rd0, %rd2; bra LOOP;
END:`, func(i int) (s int) {
			for k := 1; k <= 20; k++ {
				if k%2 == 0 {
					continue
				}
				if k > i {
					break
				}
				s += k
			}
			return s
		}},
		{"some leave early", `
setp.eq.u32 %p0, %r0, 3; @%p0 ret;
setp.lt.u32 %p1, %r0, 8; @%p1 bra EARLY;
add.u64 %rd0, %rd1, 5; bra ON;
EARLY: and.b32 %r1, %r0, 1; setp.eq.u32 %p2, %r1, 0; @%p2 exit; mov.u64 %rd0, 77;
ON:`, func(i int) int {
			switch {
			case i == 3 || i < 8 && i%2 == 0:
				return 0
			case i < 8:
				return 77
			}
			return i + 5
		}},
		{"nested", `
setp.lt.u32 %p0, %r0, 16; @!%p0 bra ELSE;
and.b32 %r1, %r0, 1; setp.eq.u32 %p1, %r1, 0; @%p1 bra EVEN;
mov.u64 %rd0, 1; bra IN;
EVEN: mov.u64 %rd0, 2;
IN: add.u64 %rd0, %rd0, 10; bra END;
ELSE: mov.u64 %rd0, 3;
END: add.u64 %rd0, %rd0, %rd1;`, func(i int) int {
			switch {
			case i >= 16:
				return 3 + i
			case i%2 == 0:
				return 12 + i
			}
			return 11 + i
		}},
		{"two ways into a loop", `
mov.u64 %rd2, 5; setp.lt.u32 %p0, %r0, 7; @%p0 bra B;
A: add.u64 %rd0, %rd0, 1;
B: add.u64 %rd0, %rd0, 10; sub.u64 %rd2, %rd2, 1; setp.eq.u64 %p1, %rd2, 0; @%p1 bra END;
and.b64 %rd3, %rd2, 1; setp.eq.u64 %p2, %rd3, 0; @%p2 bra A; bra B;
END:`, func(i int) int {
			n, s := 5, 0
			if i >= 7 {
				s++
			}
			for {
				s += 10
				if n--; n == 0 {
					return s
				}
				if n%2 == 0 {
					s++
				}
			}
		}},
		{"switch by jumps back", `
mov.u64 %rd2, %rd1; bra TEST;
ONE: add.u64 %rd0, %rd0, 1; shr.u64 %rd2, %rd2, 1; bra TEST;
ZERO: add.u64 %rd0, %rd0, 100; shr.u64 %rd2, %rd2, 1;
TEST: setp.eq.u64 %p0, %rd2, 0; @%p0 bra END;
and.b64 %rd3, %rd2, 1; setp.ne.u64 %p1, %rd3, 0; @%p1 bra ONE; bra ZERO;
END:`, func(i int) (s int) {
			for ; i > 0; i /= 2 {
				if i%2 == 1 {
					s++
				} else {
					s += 100
				}
			}
			return s
		}},
	} {
		for _, size := range []int{1, 32, 50} {
			d := open(t, "quadro-k2000", bare)
			got, err := threads(t, d, "sm_30", 2, size, tid+c.body)
			if err != nil {
				t.Errorf("%s: %v", c.name, err)
				continue
			}
			for i, g := range got {
				if want := c.want(i % size); int(g) != want {
					t.Errorf("%s, %d threads: thread %d got %d, want %d", c.name, size, i, g, want)
					break
				}
			}
		}
	}
}

// TestMeetAgain counts the warps at an instruction behind a branch: threads that went apart are together there.
func TestMeetAgain(t *testing.T) {
	d := open(t, "quadro-k2000", bare)
	_, err := threads(t, d, "sm_30", 1, 32, `
mov.u32 %r0, %tid.x; mov.u64 %rd0, 0; mov.u32 %r2, 0;
LOOP:
and.b32 %r1, %r0, 3; setp.eq.u32 %p0, %r1, 0; @%p0 bra A;
setp.gt.u32 %p1, %r0, 1000; @%p1 bra FAULT;
add.u64 %rd0, %rd0, 1; bra B;
A: setp.gt.u32 %p1, %r0, 1000; @%p1 bra FAULT; sub.u64 %rd0, %rd0, 1;
B: popc.b32 %r3, %r0;
add.u32 %r2, %r2, 1; setp.lt.u32 %p2, %r2, %r0; @%p2 bra LOOP;
brev.b32 %r3, %r0;
bra END;
FAULT: trap;
END:`)
	if err != nil {
		t.Fatal(err)
	}
	s := d.LastLaunch()
	if s.Opcodes["popc.b32"].Warps != 31 || s.Opcodes["brev.b32"] != (Count{1, 32}) || s.Opcodes["st.global.u64"] != (Count{1, 32}) {
		t.Errorf("%v", s.Opcodes)
	}
	if s.Divergences < 31 {
		t.Errorf("%d divergences", s.Divergences)
	}
}

func code(err error) driver.Code {
	var c driver.Code
	errors.As(err, &c)
	return c
}

func TestEndless(t *testing.T) {
	d := open(t, "tesla-t4", bare)
	f := loadKernel(t, d, kernelText("sm_70", "", "LOOP: add.u32 %r0, %r0, 1; bra LOOP;"))
	one := driver.Dim{X: 1, Y: 1, Z: 1}
	err := f.Launch(driver.Launch{Grid: one, Block: one, Steps: 100000})
	if code(err) != driver.LaunchTimeout || !strings.Contains(err.Error(), "100000 warp instructions") {
		t.Errorf("%v", err)
	}
	n := 0
	err = f.Launch(driver.Launch{Grid: one, Block: one, Cancel: func() bool { n++; return n > 3 }})
	if code(err) != driver.LaunchTimeout || !strings.Contains(err.Error(), "stopped") {
		t.Errorf("%v", err)
	}
	if got, err := threads(t, d, "sm_70", 1, 3, "mov.u64 %rd0, 9;"); err != nil || got[2] != 9 {
		t.Errorf("the device is no longer usable: %v %v", got, err)
	}
}
