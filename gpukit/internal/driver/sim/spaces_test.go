package sim

import (
	"encoding/binary"
	"fmt"
	"math"
	"strings"
	"testing"

	"gpunotes/gpukit/internal/driver"
	"gpunotes/gpukit/internal/ptx"
)

// spaceModule is a module of a kernel that has a value of 16 bytes in each space, all at %rdat: global memory from
// parameter a, which is also where st leaves it; shared, local and constant memory; or the kernel's parameters.
func spaceModule(space ptx.Space, body string) string {
	var prologue string
	copyIn := "ld.global.u64 %rd1, [%rda]; ld.global.u64 %rd2, [%rda+8]; st.SPACE.u64 [%rdat], %rd1; st.SPACE.u64 [%rdat+8], %rd2;"
	switch space {
	case ptx.Shared:
		prologue = "mov.u64 %rdat, buf; " + strings.ReplaceAll(copyIn, "SPACE", "shared")
	case ptx.Local:
		prologue = "mov.u64 %rdat, lbuf; " + strings.ReplaceAll(copyIn, "SPACE", "local")
	case ptx.Const:
		prologue = "mov.u64 %rdat, cbuf;"
	case ptx.ParamSpace:
		prologue = "mov.u64 %rdat, k_x;"
	default:
		prologue = "mov.u64 %rdat, %rda;"
	}
	s := kernelText("sm_90", "x y a out", ".reg .b64 %rdat; .shared .align 16 .b8 sbuf[8]; .shared .align 16 .b8 buf[16]; .local .align 16 .b8 lpad[16]; .local .align 16 .b8 lbuf[16];\n"+prologue+"\n"+body+"\nret;")
	s = strings.Replace(s, ".version 7.0", ".version 7.8", 1)
	s = strings.Replace(s, ".address_size 64\n", ".address_size 64\n.const .align 16 .u64 cpad[3] = {1, 2, 3};\n.const .align 16 .u64 cbuf[2] = {0xF1E2D3C4B5A69788, 0x8172635445362718};\n", 1)
	return s
}

var sixteen = []uint64{0xF1E2D3C4B5A69788, 0x8172635445362718}

// TestLoadsAndStores executes every load and store of PTX's table.
func TestLoadsAndStores(t *testing.T) {
	d := open(t, "h200", bare)
	var raw []byte
	for _, w := range sixteen {
		raw = binary.LittleEndian.AppendUint64(raw, w)
	}
	count := 0
	for _, form := range ptx.Forms() {
		if form.Op != "ld" && form.Op != "ldu" && form.Op != "st" {
			continue
		}
		for _, op := range opcodes(form) {
			dec, _ := ptx.Decode(op)
			n, size := max(dec.Vec, 1), dec.Type.Size()
			reg := map[int]string{8: "%rd1", 4: "%r1", 2: "%h1", 1: "%r1"}[size]
			if dec.Type.IsFloat() {
				reg = map[int]string{8: "%fd1", 4: "%f1"}[size]
			}
			wide := max(size, 2)
			if size == 1 {
				wide = 4
			}
			var regs, move []string
			for k := range n {
				r := reg[:len(reg)-1] + fmt.Sprint(10+k)
				regs = append(regs, r)
				typ := map[int]string{8: "u64", 4: "u32", 2: "u16"}[wide]
				if dec.Type.IsFloat() {
					typ = dec.Type.String()
				}
				if form.Op == "st" {
					if size == 1 {
						typ = "u8"
					}
					move = append(move, fmt.Sprintf("ld.global.%s %s, [%%rda+%d];", typ, r, k*size))
				} else {
					move = append(move, fmt.Sprintf("st.global.%s [%%rdout+%d], %s;", typ, k*8, r))
				}
			}
			list := strings.Join(regs, ", ")
			if n > 1 {
				list = "{" + list + "}"
			}
			var body string
			if form.Op == "st" {
				// 8 bytes on, if there is room; read back the whole.
				at := 16 - n*size
				sp := dec.Space.String()
				if dec.Space == ptx.Generic {
					sp = "global"
				}
				if dec.Space == ptx.ParamSpace {
					continue // of calls
				}
				body = strings.Join(move, " ") + fmt.Sprintf("\n%s [%%rdat+%d], %s; ld.%s.u64 %%rd1, [%%rdat]; ld.%s.u64 %%rd2, [%%rdat+8]; st.global.u64 [%%rdout], %%rd1; st.global.u64 [%%rdout+8], %%rd2;", op, at, list, sp, sp)
			} else {
				at := 16 - n*size
				body = fmt.Sprintf("%s %s, [%%rdat+%d];\n%s", op, list, at, strings.Join(move, " "))
			}
			f := loadKernel(t, d, spaceModule(dec.Space, body))
			a, out := alloc(t, d, raw), alloc(t, d, words(4))
			one := driver.Dim{X: 1, Y: 1, Z: 1}
			if err := f.Launch(driver.Launch{Grid: one, Block: one, Params: []uint64{sixteen[0], sixteen[1], a, out}}); err != nil {
				t.Errorf("%s: %v", op, err)
				continue
			}
			got := readWords(t, d, out, 4)
			want := make([]uint64, 4)
			at := 16 - n*size
			if form.Op == "st" {
				b := append([]byte(nil), raw...)
				for k := range n {
					copy(b[at+k*size:], raw[k*size:][:size])
				}
				want[0], want[1] = binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[8:])
			} else {
				for k := range n {
					var b [8]byte
					copy(b[:], raw[at+k*size:][:size])
					v := binary.LittleEndian.Uint64(b[:])
					if dec.Type.IsSigned() {
						v = low(8*wide, sext(8*size, v))
					}
					want[k] = v
				}
			}
			for k := range want {
				if got[k] != want[k] {
					t.Errorf("%s: got %#x, want %#x", op, got, want)
					break
				}
			}
			d.Free(driver.Ptr(a))
			d.Free(driver.Ptr(out))
			count++
		}
	}
	if t.Logf("%d loads and stores", count); count < 700 {
		t.Errorf("only %d loads and stores", count)
	}
}

// TestAtomics executes every atomic operation of PTX's table once, and then by many threads at one place.
func TestAtomics(t *testing.T) {
	d := open(t, "h200", bare)
	count := 0
	type pair struct{ old, x, y, want uint64 }
	// Hand-computed, by operation.
	int32s := map[string][]pair{
		"add": {{5, 7, 0, 12}, {math.MaxUint32, 2, 0, 1}}, "and": {{12, 10, 0, 8}}, "or": {{12, 10, 0, 14}}, "xor": {{12, 10, 0, 6}}, "exch": {{5, 9, 0, 9}},
		"cas": {{5, 5, 8, 8}, {5, 6, 8, 5}}, "inc": {{3, 5, 0, 4}, {5, 5, 0, 0}, {9, 5, 0, 0}}, "dec": {{3, 5, 0, 2}, {0, 5, 0, 5}, {9, 5, 0, 5}},
	}
	for _, form := range ptx.Forms() {
		if form.Op != "atom" && form.Op != "red" {
			continue
		}
		for _, op := range opcodes(form) {
			dec, _ := ptx.Decode(op)
			var what string
			for _, m := range dec.Mods {
				if int32s[m] != nil || m == "min" || m == "max" {
					what = m
				}
			}
			cases := int32s[what]
			n := dec.Type.Bits()
			switch {
			case dec.Type == ptx.F32:
				cases = []pair{{bits32(1.5), bits32(2), 0, bits32(3.5)}}
				if dec.Space == ptx.Shared {
					cases = append(cases, pair{1, 1, 0, 2}) // denormals
				} else {
					cases = append(cases, pair{1, 1, 0, 0})
				}
			case dec.Type == ptx.F64:
				cases = []pair{{bits64(1.5), bits64(2), 0, bits64(3.5)}, {1, 1, 0, 2}}
			case what == "min" && dec.Type.IsSigned():
				cases = []pair{{5, low(n, ^uint64(0)), 0, low(n, ^uint64(0))}, {low(n, ^uint64(0)), 5, 0, low(n, ^uint64(0))}}
			case what == "max" && dec.Type.IsSigned():
				cases = []pair{{5, low(n, ^uint64(0)), 0, 5}, {low(n, ^uint64(0)), 5, 0, 5}}
			case what == "min":
				cases = []pair{{5, low(n, ^uint64(0)), 0, 5}, {low(n, ^uint64(0)), 5, 0, 5}}
			case what == "max":
				cases = []pair{{5, low(n, ^uint64(0)), 0, low(n, ^uint64(0))}, {low(n, ^uint64(0)), 5, 0, low(n, ^uint64(0))}}
			case n == 64 && what == "add":
				cases = []pair{{5, 7, 0, 12}, {math.MaxUint64, 2, 0, 1}, {math.MaxUint32, 1, 0, 1 << 32}}
			}
			if len(cases) == 0 {
				t.Errorf("%s: no case", op)
			}
			letter, word := "r", "u32"
			if n == 64 {
				letter, word = "rd", "u64"
			}
			reg := func(k int) string { return fmt.Sprintf("%%%s%d", letter, k) }
			suffix := ""
			if dec.Type.IsFloat() {
				suffix = map[int]string{32: "%f", 64: "%fd"}[n]
			}
			var body string
			arg := func(k int) string {
				if suffix == "" {
					return reg(k)
				}
				body += fmt.Sprintf("mov.b%d %s%d, %s;\n", n, suffix, k, reg(k))
				return fmt.Sprintf("%s%d", suffix, k)
			}
			body = fmt.Sprintf("cvt.%s.u64 %s, %%rdx; cvt.%s.u64 %s, %%rdy;\n", word, reg(10), word, reg(11))
			args := "[%rdat], " + arg(10)
			if what == "cas" {
				args += ", " + reg(11)
			}
			if form.Op == "atom" {
				dst := reg(12)
				if suffix != "" {
					dst = suffix + "12"
				}
				body += fmt.Sprintf("%s %s, %s;\n", op, dst, args)
				if suffix != "" {
					body += fmt.Sprintf("mov.b%d %s, %s;\n", n, reg(12), dst)
				}
				body += fmt.Sprintf("st.global.%s [%%rdout], %s;\n", word, reg(12))
			} else {
				body += fmt.Sprintf("%s %s;\n", op, args)
			}
			sp := "global"
			if dec.Space == ptx.Shared {
				sp = "shared"
			}
			body += fmt.Sprintf("ld.%s.%s %s, [%%rdat]; st.global.%s [%%rdout+8], %s;", sp, word, reg(13), word, reg(13))
			f := loadKernel(t, d, spaceModule(dec.Space, body))
			for _, c := range cases {
				raw := binary.LittleEndian.AppendUint64(nil, c.old)
				a, out := alloc(t, d, append(raw, raw...)), alloc(t, d, words(2))
				one := driver.Dim{X: 1, Y: 1, Z: 1}
				if err := f.Launch(driver.Launch{Grid: one, Block: one, Params: []uint64{c.x, c.y, a, out}}); err != nil {
					t.Fatalf("%s: %v", op, err)
				}
				got := readWords(t, d, out, 2)
				if got[1] != c.want || form.Op == "atom" && got[0] != c.old {
					t.Errorf("%s of %#x and %#x, %#x: got %#x, was %#x, want %#x", op, c.old, c.x, c.y, got[1], got[0], c.want)
				}
				d.Free(driver.Ptr(a))
				d.Free(driver.Ptr(out))
			}
			count++
		}
	}
	if t.Logf("%d atomic operations", count); count < 300 {
		t.Errorf("only %d atomic operations", count)
	}
}

// TestContention adds from all threads at one place, with the instruction and with a loop of compare and swap that
// each thread leaves when it has won.
func TestContention(t *testing.T) {
	d := open(t, "gtx-1080-ti", bare)
	f := loadKernel(t, d, kernelText("sm_60", "a", `
mov.u32 %r0, %tid.x; cvt.u64.u32 %rd1, %r0;
atom.global.add.u64 %rd2, [%rda], %rd1;
ld.global.u64 %rd3, [%rda+8];
AGAIN: mov.b64 %rd4, %rd3; add.u64 %rd5, %rd4, %rd1;
atom.global.cas.b64 %rd3, [%rda+8], %rd4, %rd5;
setp.ne.u64 %p0, %rd3, %rd4; @%p0 bra AGAIN;
red.global.max.u64 [%rda+16], %rd1;
ret;`))
	a := alloc(t, d, words(3))
	if err := f.Launch(driver.Launch{Grid: driver.Dim{X: 5, Y: 3, Z: 1}, Block: driver.Dim{X: 100, Y: 1, Z: 1}, Params: []uint64{a}}); err != nil {
		t.Fatal(err)
	}
	want := uint64(15 * 99 * 100 / 2)
	if got := readWords(t, d, a, 3); got[0] != want || got[1] != want || got[2] != 99 {
		t.Errorf("%v, want %d twice and 99", got, want)
	}
}

// TestGeneric goes from and to generic addresses, and asks what they are.
func TestGeneric(t *testing.T) {
	d := open(t, "h200", bare)
	f := loadKernel(t, d, spaceModule(ptx.Local, `
mov.u64 %rd10, buf; cvta.shared.u64 %rd11, %rd10; cvta.to.shared.u64 %rd12, %rd11;
mov.u64 %rd13, lbuf; cvta.local.u64 %rd14, %rd13; cvta.to.local.u64 %rd15, %rd14;
mov.u64 %rd16, cbuf; cvta.const.u64 %rd17, %rd16; cvta.global.u64 %rd18, %rda;
st.u64 [%rd11], 11; st.u64 [%rd14], 22;
ld.shared.u64 %rd1, [%rd12]; ld.local.u64 %rd2, [%rd15]; ld.u64 %rd3, [%rd17+8]; ld.u64 %rd4, [%rd18];
st.global.u64 [%rdout], %rd1; st.global.u64 [%rdout+8], %rd2; st.global.u64 [%rdout+16], %rd3; st.global.u64 [%rdout+24], %rd4;
mov.u32 %r1, 0;
isspacep.shared %p0, %rd11; @%p0 add.u32 %r1, %r1, 1; isspacep.local %p0, %rd14; @%p0 add.u32 %r1, %r1, 2;
isspacep.const %p0, %rd17; @%p0 add.u32 %r1, %r1, 4; isspacep.global %p0, %rd18; @%p0 add.u32 %r1, %r1, 8;
isspacep.global %p0, %rd11; @%p0 add.u32 %r1, %r1, 16; isspacep.local %p0, %rd11; @%p0 add.u32 %r1, %r1, 32; isspacep.shared %p0, %rd18; @%p0 add.u32 %r1, %r1, 64;
cvt.u64.u32 %rd5, %r1; st.global.u64 [%rdout+32], %rd5;
setp.eq.u64 %p1, %rdx, 0; selp.b64 %rd6, %rd11, %rd14, %p1;`))
	out := alloc(t, d, words(5))
	one := driver.Dim{X: 1, Y: 1, Z: 1}
	raw := binary.LittleEndian.AppendUint64(nil, sixteen[0])
	if err := f.Launch(driver.Launch{Grid: one, Block: one, Params: []uint64{0, 0, alloc(t, d, append(raw, raw...)), out}}); err != nil {
		t.Fatal(err)
	}
	want := []uint64{11, 22, sixteen[1], sixteen[0], 15}
	for i, g := range readWords(t, d, out, 5) {
		if g != want[i] {
			t.Errorf("%d: %#x, want %#x", i, g, want[i])
		}
	}
	// One access with lanes in several spaces.
	got, err := threads(t, d, "sm_70", 1, 32, `
.shared .align 8 .b64 s[1]; .local .align 8 .b64 l[1];
mov.u64 %rd1, s; cvta.shared.u64 %rd1, %rd1; mov.u64 %rd2, l; cvta.local.u64 %rd2, %rd2;
mov.u32 %r0, %tid.x; and.b32 %r1, %r0, 1; setp.eq.u32 %p0, %r1, 0; cvt.u64.u32 %rd4, %r0;
selp.b64 %rd3, %rd1, %rd2, %p0;
st.u64 [%rd3], %rd4; bar.warp.sync -1; ld.u64 %rd0, [%rd3];`)
	if err != nil {
		t.Fatal(err)
	}
	for i, g := range got {
		want := uint64(30) // the last that wrote
		if i%2 == 1 {
			want = uint64(i)
		}
		if g != want {
			t.Errorf("thread %d: %d, want %d", i, g, want)
		}
	}
}

// TestBadAccess names what was wrong with an address, and the device goes on.
func TestBadAccess(t *testing.T) {
	for _, c := range []struct {
		body, text string
		code       driver.Code
	}{
		{".loc 1 7 3\nadd.u64 %rd1, %rda, 64; st.global.u64 [%rd1], 1;", "0 bytes behind the end of the allocation of 64 bytes", driver.IllegalAddress},
		{"add.u64 %rd1, %rda, 64; ld.global.u32 %r0, [%rd1+4];", "4 bytes behind the end", driver.IllegalAddress},
		{"ld.global.v2.u64 {%rd1, %rd2}, [%rda+56];", "reach over the end", driver.IllegalAddress},
		{"ld.global.u64 %rd1, [%rda+-8];", "8 bytes before the start", driver.IllegalAddress},
		{"mov.u64 %rd1, 0; ld.global.u64 %rd1, [%rd1+8];", "null pointer", driver.IllegalAddress},
		{"mov.u64 %rd1, 0x123456789000; ld.u64 %rd1, [%rd1];", "no allocation", driver.IllegalAddress},
		{"ld.global.u64 %rd1, [%rda+4];", "not a multiple of 8", driver.MisalignedAddress},
		{"ld.global.v4.f32 {%f0, %f1, %f2, %f3}, [%rda+8];", "not a multiple of 16", driver.MisalignedAddress},
		{"mov.u64 %rd1, dyn; st.shared.u32 [%rd1+4096], 0;", "shared memory has", driver.IllegalAddress},
		{".local .b8 l[8]; mov.u64 %rd1, l; st.local.u32 [%rd1+8], 0;", "local memory has", driver.IllegalAddress},
		{"st.global.u64 [%rdb], 1;", "memory that was freed", driver.IllegalAddress},
		{"atom.global.add.u32 %r0, [%rda+64], 1;", "behind the end", driver.IllegalAddress},
		{"trap;", "trap", driver.IllegalInstruction},
	} {
		d := open(t, "quadro-k2000", bare)
		text := kernelText("sm_30", "a b", "mov.u32 %r10, %tid.x; mov.u32 %r11, %ctaid.x; setp.ne.u32 %p1, %r10, 35; @%p1 ret; setp.ne.u32 %p1, %r11, 2; @%p1 ret;\n"+c.body)
		text = strings.Replace(text, ".address_size 64\n", ".address_size 64\n.file 1 \"cell 3\"\n", 1)
		f := loadKernel(t, d, text)
		a, b := alloc(t, d, words(8)), alloc(t, d, words(8))
		d.Free(driver.Ptr(b))
		l := driver.Launch{Grid: driver.Dim{X: 4, Y: 1, Z: 1}, Block: driver.Dim{X: 40, Y: 1, Z: 1}, Shared: 4096, Params: []uint64{a, b}}
		err := f.Launch(l)
		if code(err) != c.code || !strings.Contains(fmt.Sprint(err), c.text) || !strings.Contains(fmt.Sprint(err), "block (2,0,0), thread (35,0,0)") {
			t.Errorf("%s: %v", c.body, err)
		}
		if strings.HasPrefix(c.body, ".loc ") && !strings.Contains(fmt.Sprint(err), "cell 3:7:3") {
			t.Errorf("%v", err)
		}
		if got, err := threads(t, d, "sm_30", 1, 2, "mov.u64 %rd0, 4;"); err != nil || got[1] != 4 {
			t.Errorf("after %s: %v %v", c.body, got, err)
		}
	}
}

// TestLargeArrays goes over more than a page of backing memory.
func TestLargeArrays(t *testing.T) {
	d := open(t, "h200", bare)
	const n = pageBytes/8 + 100
	p, err := d.Alloc(8 * n)
	if err != nil {
		t.Fatal(err)
	}
	f := loadKernel(t, d, kernelText("sm_70", "a", `
mov.u32 %r0, %tid.x; mul.wide.u32 %rd1, %r0, 8; add.u64 %rd1, %rd1, %rda;
add.u64 %rd1, %rd1, 16776960;
cvt.u64.u32 %rd2, %r0; st.global.u64 [%rd1], %rd2; ld.global.u64 %rd3, [%rd1]; add.u64 %rd3, %rd3, 1; st.global.u64 [%rd1], %rd3; ret;`))
	if err := f.Launch(driver.Launch{Grid: driver.Dim{X: 1, Y: 1, Z: 1}, Block: driver.Dim{X: 64, Y: 1, Z: 1}, Params: []uint64{uint64(p)}}); err != nil {
		t.Fatal(err)
	}
	for i, g := range readWords(t, d, uint64(p)+16776960, 64) {
		if g != uint64(i+1) {
			t.Fatalf("%d: %d", i, g)
		}
	}
	q, err := d.Alloc(8 * n)
	if err == nil {
		err = d.Copy(q, p, 8*n)
	}
	if err != nil {
		t.Fatal(err)
	}
	if got := readWords(t, d, uint64(q)+16776960, 64); got[63] != 64 {
		t.Errorf("a copy has %v", got)
	}
	if err := d.Fill(q, 1, 8*n); err != nil {
		t.Fatal(err)
	}
	if got := readWords(t, d, uint64(q)+pageBytes-8, 2); got[0] != 0x0101010101010101 || got[1] != got[0] {
		t.Errorf("%#x", got)
	}
}
