package sim

import (
	"fmt"
	"strings"
	"testing"

	"gpunotes/gpukit/internal/ptx"
)

// Pressure counted by hand, 2 to be added.
func TestEstimateRegisters(t *testing.T) {
	const regs = ".reg .pred %p<4>; .reg .b16 %h<4>; .reg .b32 %r<8>; .reg .b64 %d<8>; .reg .f64 %f<8>;\n"
	for _, c := range []struct {
		name, body string
		want       int
	}{
		{"nothing", "ret;", 0},
		{"a result that nobody reads", "mov.u32 %r1, %tid.x; ret;", 1},
		{"parameters and constants are free", "ld.param.u64 %d1, [p]; ld.param.u64 %d2, [q]; mov.f64 %f1, 0d3FF0000000000000; st.global.f64 [%d1], %f1; st.global.f64 [%d2], %f1; ret;", 0},
		{"their addresses too", "ld.param.u64 %d1, [p]; cvta.to.global.u64 %d2, %d1; ld.global.f64 %f1, [%d2]; st.global.f64 [%d2+8], %f1; ret;", 2},
		{"what changes is not free", "mov.u32 %r1, 0; L: add.s32 %r1, %r1, 1; setp.lt.s32 %p1, %r1, 9; @%p1 bra L; ret;", 1},
		{"a loop keeps what it reads", "mov.u32 %r1, %tid.x; mov.u32 %r2, 0; L: add.s32 %r2, %r2, %r1; setp.lt.s32 %p1, %r2, 9; @%p1 bra L; ret;", 2},
		{"wide and narrow", "mov.u32 %r1, %tid.x; cvt.u64.u32 %d1, %r1; cvt.u16.u32 %h1, %r1; add.u32 %r2, %r1, 1; add.u64 %d2, %d1, 1; add.u16 %h2, %h1, 1; setp.eq.u32 %p1, %r2, 0; setp.eq.u64 %p2, %d2, 0; setp.eq.u16 %p3, %h2, 0; ret;", 4},
		{"operand dies where the result is born", "mov.u32 %r1, %tid.x; add.u32 %r2, %r1, 1; add.u32 %r3, %r2, 1; ret;", 1},
		{"a guarded write keeps the old value", "mov.u32 %r1, %tid.x; mov.u32 %r2, %tid.y; setp.eq.u32 %p1, %r1, 0; @%p1 mov.u32 %r2, %r1; st.shared.u32 [s], %r2; ret;", 2},
		{"one arm of two", "mov.u32 %r1, %tid.x; setp.eq.u32 %p1, %r1, 0; @%p1 bra A; cvt.u64.u32 %d1, %r1; mul.lo.u64 %d2, %d1, %d1; add.u64 %d3, %d1, %d2; st.shared.u64 [s], %d3; bra B; A: st.shared.u32 [s], %r1; B: ret;", 4},
		{"a predicated end is no end", "mov.u32 %r1, %tid.x; mov.u32 %r2, %tid.y; setp.eq.u32 %p1, %r1, 0; @%p1 ret; st.shared.u32 [s], %r2; ret;", 2},
		{"a vector", "mov.u32 %r1, %tid.x; cvt.u64.u32 %d1, %r1; ld.global.v2.f64 {%f1, %f2}, [%d1]; add.rn.f64 %f3, %f1, %f2; st.global.f64 [%d1], %f3; ret;", 6},
		{"a call adds the callee", "mov.u32 %r1, %tid.x; mov.u32 %r2, %tid.y; st.param.b32 [x], %r1; call (y), g, (x); ld.param.b32 %r3, [y]; add.u32 %r4, %r3, %r2; st.shared.u32 [s], %r4; ret;", 1 + 3},
		{"unreachable code", "mov.u32 %r1, %tid.x; ret; add.u32 %r2, %r1, 1;", 1},
	} {
		src := ".version 6.0\n.target sm_30\n.address_size 64\n" +
			".func (.param .b32 o) g(.param .b32 i) {\n.reg .b32 %r<6>;\nld.param.b32 %r0, [i]; add.u32 %r1, %r0, 1; add.u32 %r2, %r0, 2; mul.lo.u32 %r3, %r1, %r2; add.u32 %r4, %r3, %r0; st.param.b32 [o], %r4; ret;\n}\n" +
			".visible .entry k(.param .u64 p, .param .u64 q) {\n" + regs + ".shared .align 8 .b8 s[16]; .param .b32 x; .param .b32 y;\n" + c.body + "\n}\n"
		m, err := ptx.Parse(src)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if got := EstimateRegisters(m, m.Func("k")); got != c.want+2 {
			t.Errorf("%s: %d, want %d + 2", c.name, got, c.want)
		}
	}
}

// Long code with many registers takes no long time, and a recursion ends.
func TestEstimateRegistersLarge(t *testing.T) {
	var b strings.Builder
	b.WriteString(".version 6.0\n.target sm_30\n.address_size 64\n.visible .entry k() {\n.reg .pred %p; .reg .b32 %r<4002>;\nmov.u32 %r0, %tid.x;\n")
	for i := range 4000 {
		fmt.Fprintf(&b, "L%d: add.u32 %%r%d, %%r%d, 1;\nsetp.eq.u32 %%p, %%r%d, 7;\n@%%p bra L%d;\n", i, i+1, i, i+1, i/2)
	}
	b.WriteString("ret;\n}\n")
	m, err := ptx.Parse(b.String())
	if err != nil {
		t.Fatal(err)
	}
	// Every register may be needed again by a branch back to half of the way.
	if got := EstimateRegisters(m, m.Func("k")); got < 100 {
		t.Errorf("%d registers", got)
	}
}
