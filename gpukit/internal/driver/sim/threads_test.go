package sim

import (
	"fmt"
	"math/bits"
	"strings"
	"testing"

	"gpunotes/gpukit/internal/driver"
)

// TestWarpInstructions has shuffles, votes, matches and reductions of a warp, by values computed here.
func TestWarpInstructions(t *testing.T) {
	const start = "mov.u32 %r0, %tid.x; mul.lo.u32 %r1, %r0, 7; and.b32 %r1, %r1, 31; and.b32 %r2, %r0, 3; setp.eq.u32 %p0, %r2, 1;\n"
	val := func(i int) uint64 { return uint64(i * 7 & 31) }
	pred := func(i int) bool { return i&3 == 1 }
	ballot := func(n int, f func(i int) bool) (m uint64) {
		for i := range n {
			m |= truth(f(i)) << i
		}
		return m
	}
	type test struct {
		body string
		want func(i, n int) uint64 // of lane i of n
	}
	b2i := func(p string) string { return "selp.u32 %r9, 1, 0, " + p + "; cvt.u64.u32 %rd0, %r9;" }
	out := "cvt.u64.u32 %rd0, %r9;"
	shift := func(i, n, j int, ok bool) uint64 {
		if !ok || j < 0 || j >= 32 {
			j = i
		}
		if j >= n {
			return 0
		}
		return val(j)
	}
	tests := []test{
		{"shfl.sync.up.b32 %r9, %r1, 3, 0, -1;" + out, func(i, n int) uint64 { return shift(i, n, i-3, i-3 >= 0) }},
		{"shfl.sync.down.b32 %r9, %r1, 5, 31, -1;" + out, func(i, n int) uint64 { return shift(i, n, i+5, i+5 <= 31) }},
		{"shfl.sync.bfly.b32 %r9, %r1, 6, 31, -1;" + out, func(i, n int) uint64 { return shift(i, n, i^6, true) }},
		{"shfl.sync.idx.b32 %r9, %r1, %r2, 31, -1;" + out, func(i, n int) uint64 { return shift(i, n, i&3, true) }},
		// Segments of 8 lanes: mask 24, clamp 7.
		{"shfl.sync.down.b32 %r9|%p1, %r1, 3, 0x1807, -1;" + out, func(i, n int) uint64 { return shift(i, n, i+3, i+3 <= i|7) }},
		{"shfl.sync.down.b32 _|%p1, %r1, 3, 0x1807, -1;" + b2i("%p1"), func(i, n int) uint64 { return truth(i+3 <= i|7) }},
		{"shfl.sync.up.b32 %r9|%p1, %r1, 2, 0x1800, -1;" + out, func(i, n int) uint64 { return shift(i, n, i-2, i-2 >= i&^7) }},
		{"shfl.sync.idx.b32 %r9, %r1, 2, 0x181F, -1;" + out, func(i, n int) uint64 { return shift(i, n, i&^7|2, true) }},
		// The result in the place of the operand.
		{"shfl.sync.bfly.b32 %r1, %r1, 1, 31, -1; mov.u32 %r9, %r1;" + out, func(i, n int) uint64 { return shift(i, n, i^1, true) }},
		{"vote.sync.ballot.b32 %r9, %p0, -1;" + out, func(i, n int) uint64 { return ballot(n, pred) }},
		{"vote.sync.ballot.b32 %r9, !%p0, -1;" + out, func(i, n int) uint64 { return ballot(n, func(i int) bool { return !pred(i) }) }},
		{"vote.sync.any.pred %p1, %p0, -1;" + b2i("%p1"), func(i, n int) uint64 { return truth(n > 1) }},
		{"vote.sync.all.pred %p1, %p0, -1;" + b2i("%p1"), func(i, n int) uint64 { return 0 }},
		{"setp.lt.u32 %p2, %r0, 32; vote.sync.all.pred %p1, %p2, -1;" + b2i("%p1"), func(i, n int) uint64 { return 1 }},
		{"vote.sync.uni.pred %p1, %p0, -1;" + b2i("%p1"), func(i, n int) uint64 { return truth(n == 1) }},
		{"match.any.sync.b32 %r9, %r2, -1;" + out, func(i, n int) uint64 { return ballot(n, func(j int) bool { return j&3 == i&3 }) }},
		{"cvt.u64.u32 %rd3, %r2; match.any.sync.b64 %r9, %rd3, -1;" + out, func(i, n int) uint64 { return ballot(n, func(j int) bool { return j&3 == i&3 }) }},
		{"match.all.sync.b32 %r9|%p1, %r2, -1;" + out, func(i, n int) uint64 { return truth(n == 1) }},
		{"mov.u32 %r4, 9; match.all.sync.b32 %r9|%p1, %r4, -1; @!%p1 mov.u32 %r9, 0;" + out, func(i, n int) uint64 { return ballot(n, func(int) bool { return true }) }},
		{"redux.sync.add.u32 %r9, %r0, -1;" + out, func(i, n int) uint64 { return uint64(n * (n - 1) / 2) }},
		{"sub.s32 %r4, %r0, 3; redux.sync.min.s32 %r9, %r4, -1;" + out, func(i, n int) uint64 { return 0xFFFFFFFD }},
		{"sub.s32 %r4, %r0, 3; redux.sync.max.u32 %r9, %r4, -1;" + out, func(i, n int) uint64 {
			if n > 2 {
				return 0xFFFFFFFF
			}
			return 0xFFFFFFFD
		}},
		{"redux.sync.or.b32 %r9, %r0, -1;" + out, func(i, n int) uint64 { return uint64(1)<<bits.Len(uint(n-1)) - 1 }},
		{"redux.sync.xor.b32 %r9, %r1, -1;" + out, func(i, n int) (x uint64) {
			for j := range n {
				x ^= val(j)
			}
			return x
		}},
		{"add.u32 %r4, %r0, 64; redux.sync.and.b32 %r9, %r4, -1;" + out, func(i, n int) uint64 {
			if n == 1 {
				return 64
			}
			return 64
		}},
		// Only some are there: those that left, and those that went another way.
		{"activemask.b32 %r9; @%p0 activemask.b32 %r9;" + out, func(i, n int) uint64 { return ballot(n, func(int) bool { return true }) }},
		{"mov.u32 %r9, 0; @!%p0 bra OVER; activemask.b32 %r9; OVER:" + out, func(i, n int) uint64 { return ballot(n, pred) & -truth(pred(i)) }},
		{"mov.u32 %r9, 0; @!%p0 bra OVER; vote.sync.ballot.b32 %r9, %p0, 0x22222222; OVER:" + out, func(i, n int) uint64 { return ballot(n, pred) & -truth(pred(i)) }},
		{"@%p0 bra OTHER; vote.sync.ballot.b32 %r9, %p0, -1; bra OVER; OTHER: mov.u64 %rd0, 7; bra LAST; OVER: cvt.u64.u32 %rd0, %r9; LAST:", nil},
	}
	for _, n := range []int{32, 1, 11} {
		for _, c := range tests {
			d := open(t, "h200", bare)
			if c.want == nil { // the way of some is without the vote: they leave, then it is complete
				body := strings.Replace(start+"@%p0 bra GONE; vote.sync.ballot.b32 %r9, !%p0, -1; bra OVER; GONE: exit; OVER: cvt.u64.u32 %rd0, %r9;", "\n", "\n", 1)
				got, err := threads(t, d, "sm_80", 1, n, body)
				if err != nil {
					t.Errorf("%v", err)
					continue
				}
				want := ballot(n, func(i int) bool { return !pred(i) })
				for i, g := range got {
					if g != want && !pred(i) {
						t.Errorf("threads that left: %#x, want %#x", g, want)
					}
				}
				continue
			}
			got, err := threads(t, d, "sm_80", 1, n, start+c.body)
			if err != nil {
				t.Errorf("%s: %v", c.body, err)
				continue
			}
			for i, g := range got {
				if want := c.want(i, n); g != want {
					t.Errorf("%s\nlane %d of %d: got %#x, want %#x", c.body, i, n, g, want)
					break
				}
			}
		}
	}
}

// TestOldWarpInstructions has the forms before Volta, which take whoever is there.
func TestOldWarpInstructions(t *testing.T) {
	d := open(t, "quadro-k2000", bare)
	got, err := threads(t, d, "sm_30", 1, 32, `
mov.u32 %r0, %tid.x; setp.lt.u32 %p0, %r0, 8; mov.u32 %r2, 0;
@!%p0 bra OVER;
vote.ballot.b32 %r1, %p0; shfl.up.b32 %r2|%p1, %r0, 1, 0; vote.all.pred %p2, %p0; vote.any.pred %p3, %p1; vote.uni.pred %p4, %p1;
OVER: selp.u32 %r3, 1000, 0, %p2; add.u32 %r2, %r2, %r3; selp.u32 %r3, 10000, 0, %p3; add.u32 %r2, %r2, %r3; selp.u32 %r3, 100000, 0, %p4; add.u32 %r2, %r2, %r3;
@!%p0 mov.u32 %r2, 5; cvt.u64.u32 %rd0, %r2; @%p0 cvt.u64.u32 %rd1, %r1; @%p0 shl.b64 %rd1, %rd1, 32; @%p0 add.u64 %rd0, %rd0, %rd1;`)
	if err != nil {
		t.Fatal(err)
	}
	for i, g := range got {
		want := uint64(5)
		if i < 8 {
			want = uint64(max(i-1, 0)) + 11000 + 255<<32
		}
		if g != want {
			t.Errorf("lane %d: %#x, want %#x", i, g, want)
		}
	}
}

// TestBarriers sums in shared memory, meets at barriers by number and count, reduces at barriers.
func TestBarriers(t *testing.T) {
	for _, c := range []struct {
		name, body string
		size       int
		want       func(i int) uint64
	}{
		{"tree", `
.shared .align 8 .b64 s[256]; mov.u64 %rd1, s; mov.u32 %r0, %tid.x; mad.wide.u32 %rd2, %r0, 8, %rd1; cvt.u64.u32 %rd3, %r0; st.shared.u64 [%rd2], %rd3;
mov.u32 %r1, 128;
LOOP: bar.sync 0; setp.ge.u32 %p0, %r0, %r1; @%p0 bra SKIP;
mad.wide.u32 %rd4, %r1, 8, %rd2; ld.shared.u64 %rd5, [%rd4]; ld.shared.u64 %rd6, [%rd2]; add.u64 %rd5, %rd5, %rd6; st.shared.u64 [%rd2], %rd5;
SKIP: shr.u32 %r1, %r1, 1; setp.ne.u32 %p1, %r1, 0; @%p1 bra LOOP;
bar.sync 0; ld.shared.u64 %rd0, [%rd1];`, 256, func(int) uint64 { return 255 * 256 / 2 }},
		{"dynamic memory read across", `
mov.u64 %rd1, dyn; mov.u32 %r0, %tid.x; mad.wide.u32 %rd2, %r0, 8, %rd1; cvt.u64.u32 %rd3, %r0; st.shared.u64 [%rd2], %rd3;
barrier.sync 3; sub.u32 %r1, 99, %r0; mad.wide.u32 %rd2, %r1, 8, %rd1; ld.shared.u64 %rd0, [%rd2];`, 100, func(i int) uint64 { return uint64(99 - i) }},
		{"some left before", `
mov.u32 %r0, %tid.x; mov.u64 %rd0, 0; setp.lt.u32 %p0, %r0, 5; @%p0 exit; setp.gt.u32 %p0, %r0, 90; @%p0 exit; bar.sync 0; mov.u64 %rd0, 1;`, 128, func(i int) uint64 { return truth(i >= 5 && i <= 90) }},
		{"producer and consumer", `
.shared .align 8 .b64 s[1]; mov.u64 %rd1, s; mov.u32 %r0, %tid.x; mov.u64 %rd0, 0; setp.lt.u32 %p0, %r0, 32; @%p0 bra PRODUCE;
bar.sync 1, 64; ld.shared.u64 %rd0, [%rd1]; bra END;
PRODUCE: st.shared.u64 [%rd1], 42; bar.arrive 1, 64; END:`, 64, func(i int) uint64 { return 42 * truth(i >= 32) }},
		{"reductions", `
mov.u32 %r0, %tid.x; and.b32 %r1, %r0, 3; setp.eq.u32 %p0, %r1, 0; bar.red.popc.u32 %r2, 0, %p0; bar.red.and.pred %p1, 0, %p0; bar.red.or.pred %p2, 0, !%p0;
bar.red.popc.u32 %r3, 0, !%p0; selp.u32 %r4, 10000, 0, %p1; selp.u32 %r5, 20000, 0, %p2; mad.lo.u32 %r2, %r3, 100, %r2; add.u32 %r2, %r2, %r4; add.u32 %r2, %r2, %r5; cvt.u64.u32 %rd0, %r2;`, 80,
			func(int) uint64 { return 20 + 6000 + 20000 }},
		{"warps apart", `
.shared .align 8 .b64 s[4]; mov.u64 %rd1, s; mov.u32 %r0, %tid.x; shr.u32 %r1, %r0, 5; mov.u32 %r2, 0;
WAIT: setp.ge.u32 %p0, %r2, %r1; @%p0 bra GO; bar.sync 0; add.u32 %r2, %r2, 1; bra WAIT;
GO: mad.wide.u32 %rd2, %r1, 8, %rd1; cvt.u64.u32 %rd3, %r1; st.shared.u64 [%rd2], %rd3;
REST: setp.ge.u32 %p0, %r2, 4; @%p0 bra DONE; bar.sync 0; add.u32 %r2, %r2, 1; bra REST;
DONE: ld.shared.u64 %rd0, [%rd1+24]; ld.shared.u64 %rd4, [%rd1+8]; add.u64 %rd0, %rd0, %rd4;`, 128, func(int) uint64 { return 4 }},
	} {
		for _, card := range []string{"quadro-k2000", "h200"} {
			if card == "quadro-k2000" && strings.Contains(c.body, "barrier") {
				continue
			}
			d := open(t, card, bare)
			got, err := threads(t, d, "sm_30", 3, c.size, c.body)
			if err != nil {
				t.Errorf("%s: %v", c.name, err)
				continue
			}
			for i, g := range got {
				want := c.want(i % c.size)
				if g != want {
					t.Errorf("%s: thread %d got %d, want %d", c.name, i, g, want)
					break
				}
			}
		}
	}
}

// TestDeadlocks end with an error that says who waits for whom.
func TestDeadlocks(t *testing.T) {
	for _, c := range []struct{ body, text string }{
		{"mov.u32 %r0, %tid.x; setp.lt.u32 %p0, %r0, 32; @%p0 bra A; bar.sync 1; bra B; A: bar.sync 2; B:", "waits at a barrier"},
		{"mov.u32 %r0, %tid.x; setp.lt.u32 %p0, %r0, 16; @%p0 bra A; bar.warp.sync -1; bra B; A: bar.sync 0; B:", "lanes 0xffff"},
		{"bar.sync 17;", "0 to 15"},
	} {
		d := open(t, "h200", bare)
		if _, err := threads(t, d, "sm_70", 1, 64, "mov.u64 %rd0, 0;"+c.body); code(err) != driver.LaunchFailed || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s: %v", c.body, err)
		}
	}
}

// TestCalls expands functions: results in .param variables and registers, two calls of one function, a guard, a
// function that returns early, memory of its own.
func TestCalls(t *testing.T) {
	d := open(t, "quadro-k2000", bare)
	text := strings.Replace(kernelText("sm_30", "out", `
.param .b64 x; .param .b64 y; .param .b64 r; .reg .f64 %fx;
mov.u32 %r0, %tid.x; cvt.u64.u32 %rd1, %r0; mov.u64 %rd5, 1000;
st.param.b64 [x], %rd1; st.param.b64 [y], 3;
call (r), madd, (x, y); ld.param.b64 %rd2, [r];
setp.lt.u32 %p0, %r0, 4; @%p0 call (%rd5), twice, (%rd2);
call (r), madd, (y, x); ld.param.b64 %rd3, [r];
add.u64 %rd0, %rd5, %rd3;
call leave, (%rd0);`+storeOwn), ".visible .entry", `
.func (.param .b64 res) madd (.param .b64 a, .param .b64 b)
{
 .reg .b64 %rd<5>; .local .align 8 .b64 l[2]; .reg .b64 %at; .reg .pred %q; .shared .b64 count[1];
 ld.param.b64 %rd1, [a]; ld.param.b64 %rd2, [b]; mov.u64 %at, l; st.local.u64 [%at+8], %rd2;
 setp.eq.u64 %q, %rd1, 2; @!%q bra GO; st.param.b64 [res], 77; ret;
GO: ld.local.u64 %rd3, [%at+8]; mad.lo.u64 %rd3, %rd1, 10, %rd3; st.param.b64 [res], %rd3; ret;
}
.func (.param .b64 res) twice (.param .b64 a)
{
 .reg .b64 %x; .param .b64 t; .param .b64 u; ld.param.b64 %x, [a]; st.param.b64 [u], %x; call (t), madd, (u, u); ld.param.b64 %x, [t]; st.param.b64 [res], %x;
}
.func leave (.param .b64 a)
{
 .reg .b64 %x; .reg .pred %q; ld.param.b64 %x, [a]; setp.eq.u64 %q, %x, 1031; @%q exit; ret;
}
.visible .entry`, 1)
	f := loadKernel(t, d, text)
	out := alloc(t, d, words(8))
	if err := f.Launch(driver.Launch{Grid: driver.Dim{X: 1, Y: 1, Z: 1}, Block: driver.Dim{X: 8, Y: 1, Z: 1}, Params: []uint64{out}}); err != nil {
		t.Fatal(err)
	}
	madd := func(a, b int) int {
		if a == 2 {
			return 77
		}
		return a*10 + b
	}
	for i, g := range readWords(t, d, out, 8) {
		want := 1000
		if x := madd(i, 3); i < 4 {
			want = madd(x, x)
		}
		if want += madd(3, i); want == 1031 {
			want = 0
		}
		if int(g) != want {
			t.Errorf("thread %d: %d, want %d", i, g, want)
		}
	}
	if a := f.Attributes(); a.Shared != 8 || a.Local != 16*4 && a.Local < 16 {
		t.Errorf("%+v", a)
	}
	_, err := d.Load([]byte(strings.Replace(text, "call leave, (%rd0);", "call again, ();", 1)))
	if err == nil {
		t.Error("a call of what is not there")
	}
	m, err := d.Load([]byte(".version 3.1\n.target sm_30\n.address_size 64\n.func loop () { call loop2, (); }\n.func loop2 () { call loop, (); }\n.visible .entry k() { call loop, (); }\n"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.Function("k"); err == nil || !strings.Contains(err.Error(), "loop -> loop2 -> loop") {
		t.Errorf("%v", err)
	}
}

// TestCarry adds, subtracts and multiplies in 128 and 64 bits by parts.
func TestCarry(t *testing.T) {
	d := open(t, "quadro-k2000", bare)
	vals := []uint64{0, 1, 0xFFFFFFFF, 0x100000000, 1 << 63, ^uint64(0), 0x123456789ABCDEF0, ^uint64(0) - 1}
	for _, x := range vals {
		for _, y := range vals {
			got, err := threads(t, d, "sm_30", 1, 8, strings.NewReplacer("X", fmt.Sprintf("%#x", x), "Y", fmt.Sprintf("%#x", y)).Replace(strings.Replace(`
mov.u64 %rd1, X; mov.u64 %rd2, Y; mov.b64 {%r1, %r2}, %rd1; mov.b64 {%r3, %r4}, %rd2;
add.cc.u32 %r5, %r1, %r3; addc.cc.u32 %r6, %r2, %r4; addc.u32 %r7, 0, 0;
sub.cc.u32 %r8, %r1, %r3; subc.cc.u32 %r9, %r2, %r4; subc.u32 %r10, 0, 0;
mad.lo.cc.u32 %r11, %r1, %r3, %r2; madc.hi.u32 %r12, %r1, %r3, 0;
mov.u32 %r0, %tid.x;
mov.b64 %rd0, {%r5, %r6}; setp.eq.u32 %p0, %r0, 1; @%p0 cvt.u64.u32 %rd0, %r7; setp.eq.u32 %p0, %r0, 2; @%p0 mov.b64 %rd0, {%r8, %r9}; setp.eq.u32 %p0, %r0, 3; @%p0 cvt.u64.u32 %rd0, %r10;
setp.eq.u32 %p0, %r0, 4; @%p0 mov.b64 %rd0, {%r11, %r12};`, "\n", "\n", 1)))
			if err != nil {
				t.Fatal(err)
			}
			s, carry := bits.Add64(x, y, 0)
			diff, borrow := bits.Sub64(x, y, 0)
			want := []uint64{s, carry, diff, -borrow & 0xFFFFFFFF, x&0xFFFFFFFF*(y&0xFFFFFFFF) + x>>32}
			for i, w := range want {
				if got[i] != w {
					t.Errorf("%#x and %#x, %d: got %#x, want %#x", x, y, i, got[i], w)
				}
			}
		}
	}
}

// TestSpecialRegisters reads where a thread is, in three dimensions.
func TestSpecialRegisters(t *testing.T) {
	d := open(t, "gtx-970", bare)
	names := []string{"%tid.x", "%tid.y", "%tid.z", "%ntid.x", "%ntid.y", "%ntid.z", "%ctaid.x", "%ctaid.y", "%ctaid.z", "%nctaid.x", "%nctaid.y", "%nctaid.z", "%laneid", "%warpid", "%nwarpid", "%nsmid",
		"%lanemask_eq", "%lanemask_lt", "%lanemask_le", "%lanemask_gt", "%lanemask_ge", "%total_smem_size", "%dynamic_smem_size"}
	body := `
mov.u32 %r0, %ctaid.z; mov.u32 %r1, %nctaid.y; mov.u32 %r2, %ctaid.y; mad.lo.u32 %r0, %r0, %r1, %r2; mov.u32 %r1, %nctaid.x; mov.u32 %r2, %ctaid.x; mad.lo.u32 %r0, %r0, %r1, %r2;
mov.u32 %r1, %ntid.z; mov.u32 %r2, %tid.z; mad.lo.u32 %r0, %r0, %r1, %r2; mov.u32 %r1, %ntid.y; mov.u32 %r2, %tid.y; mad.lo.u32 %r0, %r0, %r1, %r2; mov.u32 %r1, %ntid.x; mov.u32 %r2, %tid.x; mad.lo.u32 %r0, %r0, %r1, %r2;
mad.wide.u32 %rd1, %r0, ` + fmt.Sprint(8*len(names)) + ", %rdout;\n"
	for i, n := range names {
		if i%2 == 0 {
			body += fmt.Sprintf("mov.u32 %%r3, %s; cvt.u64.u32 %%rd2, %%r3; st.global.u64 [%%rd1+%d], %%rd2;\n", n, 8*i)
		} else { // a cvt reads it too
			body += fmt.Sprintf("cvt.u64.u32 %%rd2, %s; st.global.u64 [%%rd1+%d], %%rd2;\n", n, 8*i)
		}
	}
	f := loadKernel(t, d, strings.Replace(kernelText("sm_52", "out", body+".shared .b64 pad[3]; mov.u64 %rd3, pad; mov.u64 %rd4, dyn; mov.u32 %r4, %clock; mov.u64 %rd5, %clock64; mov.u64 %rd5, %globaltimer; mov.u64 %rd6, %gridid; mov.u32 %r5, %smid; ret;"), "7.0", "7.0", 1))
	grid, block := driver.Dim{X: 2, Y: 3, Z: 2}, driver.Dim{X: 5, Y: 3, Z: 4}
	n := grid.Count() * block.Count()
	out := alloc(t, d, words(n*len(names)))
	if err := f.Launch(driver.Launch{Grid: grid, Block: block, Shared: 100, Params: []uint64{out}}); err != nil {
		t.Fatal(err)
	}
	got := readWords(t, d, out, n*len(names))
	for i := range n {
		b, th := i/block.Count(), i%block.Count()
		lane := uint64(th % 32)
		eq := uint64(1) << lane
		want := []uint64{uint64(th % 5), uint64(th / 5 % 3), uint64(th / 15), 5, 3, 4, uint64(b % 2), uint64(b / 2 % 3), uint64(b / 6), 2, 3, 2, lane, uint64(th / 32), 2, 13,
			eq, eq - 1, eq<<1 - 1, 0xFFFFFFFF &^ (eq<<1 - 1), 0xFFFFFFFF &^ (eq - 1), 32 + 100, 100}
		for k, w := range want {
			if g := got[i*len(names)+k]; g != w {
				t.Fatalf("thread %d: %s is %d, want %d", i, names[k], g, w)
			}
		}
	}
}

// TestPacking takes vectors apart and puts them together, parts in the place of the whole.
func TestPacking(t *testing.T) {
	d := open(t, "quadro-k2000", bare)
	got, err := threads(t, d, "sm_30", 1, 2, `
mov.u64 %rd1, 0x1122334455667788; mov.b64 {%h0, %h1, %h2, %h3}, %rd1; mov.b64 %rd2, {%h3, %h2, %h1, %h0};
mov.b64 {%r0, %r1}, %rd2; mov.b64 %rd2, {%r1, %r0}; mov.b32 {%h4, %h5}, %r1; mov.b32 %r1, {%h5, %h4}; cvt.u64.u32 %rd3, %r1; xor.b64 %rd0, %rd2, %rd3;`)
	if err != nil {
		t.Fatal(err)
	}
	// %rd2 is 7788 5566 3344 1122, by words of 32 bits swapped.
	w := uint64(0x7788556633441122)
	lo, hi := w&0xFFFFFFFF, w>>32
	swapped := lo<<32 | hi
	half := hi&0xFFFF<<16 | hi>>16
	if want := swapped ^ half; got[0] != want || got[1] != want {
		t.Errorf("%#x, want %#x", got, want)
	}
}
