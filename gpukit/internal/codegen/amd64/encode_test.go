package amd64

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the golden files")

// allRows are the rows of the table, by hand: a new row is added here, or the
// coverage test of the random programs finds it missing.
var allRows = []*row{
	vaddpd, vsubpd, vmulpd, vdivpd, vminpd, vmaxpd, vandpd, vandnpd, vorpd, vxorpd, vsqrtpd,
	vfmadd213pd, vfmadd231pd, vroundpd, vpaddq, vpsubq, vpmuludq, vpmullq, vpminsq, vpmaxsq, vpminuq, vpmaxuq,
	vpsllvq, vpsrlvq, vpsravq, vpsllq, vpsrlq, vpsraq, vpblendd, vcmppd, vcmppdK, vpcmpeqq, vpcmpgtq, vpcmpq, vpcmpuq, vtestpd,
	vblendvpd, vblendmpd, vcvtqq2pd, vcvtuqq2pd, vcvttpd2qq, vcvttpd2uqq, vmovapd, vmovupd, vmovupdStore, vbroadcastsd, vpbroadcastq,
	vpbroadcastqR, vmovq, vmovd, vmaskmovpd, vmaskmovpdStore, vpmovsxbq, vmovmskpd, vmovdqu8, vmovdqu8Store, vptestmb, vpmovm2b, vandpdX,
	kandb, kandnb, korb, kxnorb, kxorb, knotb, kortestb, kmovb, kmovbStore, vzeroupper,
	movLoad, movStore, movLoad32, movStore32, movStore8, movImm, movzxByte, lea, addImm, subImm, cmpImm, testReg,
	xor32, or32, dec, shl32, shr32, and32Imm, imul32Imm, movReg, neg, div, idiv, cqo, jmpReg, ret,
}

// memories are memory operands of every shape of encoding.
var memories = []memory{
	at(rax, 0), at(rcx, 8), at(rsi, 64), at(rsi, -64), at(rsi, 0x1040), at(rdi, 127), at(rdi, 128), at(r8q, 32), at(5, 0), at(4, 16), at(12, 0), at(13, 0),
	{base: rcx, indexed: true, index: rdx, scale: 3}, {base: r11, indexed: true, index: r10, scale: 3, disp: 64},
	{base: rcx, indexed: true, index: rdx, disp: 1}, {relative: true, constant: 0}, {relative: true, constant: 1},
}

// everyForm emits a selection of operands for every row that the target has.
func everyForm(a *assembler, evex bool) {
	top := uint8(15)
	if evex {
		top = 31
	}
	regs := func(k kind, i int) uint8 {
		switch k {
		case mask:
			return uint8(i*3) & 7
		case vec, xmm:
			return uint8(i*7+3) % (top + 1)
		}
		return []uint8{rax, rcx, rdx, rbx, rsi, rdi, r8q, r10, r11}[i%9]
	}
	for n, r := range allRows {
		if r.vw == no && !evex || r.ew == no && evex && (r.reg == vec || r.reg == xmm || r.rm == vec) {
			continue
		}
		for i := range 4 {
			o := operands{reg: regs(r.reg, i+n), v: regs(r.rm, i+n+1), rm: register(regs(r.rm, i+n+2)), c: regs(r.reg, i+1), imm: int32(i*5 + 1)}
			isEVEX := !r.legacy && evex && r.ew != no
			if isEVEX && i == 3 && r.form != formMR && r != vpbroadcastqR && r != vpmovm2b {
				o.k = 5
				if r.reg == vec || r.reg == xmm {
					o.zero = r.form != formVM && r != vblendmpd
				}
			}
			onlyMemory := r == lea || r == vmaskmovpd || r == vmaskmovpdStore || r == kmovbStore
			if !onlyMemory {
				a.op(r, o)
			}
			if r.form == formNone || r.rm == mask && r != kmovb && r != kmovbStore || r == vmovmskpd || r.form == formVM && !isEVEX ||
				r == vpbroadcastqR || r == vpmovm2b || r == kortestb || r == jmpReg {
				continue
			}
			for j := range 5 {
				o.rm = inMemory(memories[(i*5+j+n)%len(memories)])
				a.op(r, o)
			}
			if isEVEX && r.rm == vec && r.n == 0 && r != vmovapd && r != vmovupd && r != vmovupdStore {
				o.rm = inMemory(memory{base: rsi, disp: 8 * int32(i*50-100), broadcast: true})
				a.op(r, o)
			}
		}
	}
}

func objdump(t *testing.T, code []byte) []string {
	t.Helper()
	tool, err := exec.LookPath("objdump")
	if err != nil {
		t.Skip("objdump, the judge of this test, is not installed (it is in binutils)")
	}
	file := filepath.Join(t.TempDir(), "code")
	if err := os.WriteFile(file, code, 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(tool, "-D", "-b", "binary", "-m", "i386:x86-64", "-M", "intel", "--insn-width=16", file).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var lines []string
	for line := range strings.Lines(string(out)) {
		if _, text, ok := strings.Cut(strings.TrimSpace(line), ":\t"); ok {
			if _, text, ok = strings.Cut(text, "\t"); ok {
				lines = append(lines, normal(text))
			}
		}
	}
	return lines
}

var (
	comment   = regexp.MustCompile(`\s*#.*$`)
	spaces    = regexp.MustCompile(`\s+`)
	sizes     = regexp.MustCompile(`(XMMWORD|YMMWORD|ZMMWORD|QWORD|DWORD|WORD|BYTE) PTR `)
	broadcast = regexp.MustCompile(`(?:QWORD BCST )(\[[^\]]*\])`)
	oldBcst   = regexp.MustCompile(`\{1to\d\}`)
	compared  = regexp.MustCompile(`^vp?cmp([a-z_]+?)(pd|uq|q) (.*)$`)
)

var floatPredicates = map[string]int{"eq": 0, "lt": 1, "le": 2, "unord": 3, "neq": 4, "nlt": 5, "nle": 6, "ord": 7, "eq_uq": 8, "nge": 9, "ngt": 10, "false": 11, "neq_oq": 12,
	"ge": 13, "gt": 14, "true": 15, "eq_os": 16, "lt_oq": 17, "le_oq": 18, "unord_s": 19, "neq_us": 20, "nlt_uq": 21, "nle_uq": 22, "ord_s": 23, "ge_oq": 29, "gt_oq": 30}
var intPredicates = map[string]int{"eq": 0, "lt": 1, "le": 2, "neq": 4, "nlt": 5, "nle": 6}

// normal brings objdump's text into the form of a listing.
func normal(s string) string {
	place := ""
	if i := strings.Index(s, "# 0x"); i >= 0 {
		place = strings.TrimSpace(s[i+2:])
	}
	s = strings.TrimSpace(comment.ReplaceAllString(s, ""))
	if place != "" {
		s = regexp.MustCompile(`\[rip[^\]]*\]`).ReplaceAllString(s, "[rip->"+place+"]")
	}
	s = strings.TrimPrefix(spaces.ReplaceAllString(s, " "), "{evex} ") // new versions say so where VEX would do
	s = broadcast.ReplaceAllString(s, "$1{bcst}")
	s = oldBcst.ReplaceAllString(sizes.ReplaceAllString(s, ""), "{bcst}")
	s = strings.ReplaceAll(strings.ReplaceAll(s, ", ", ","), "+0x0]", "]")
	if m := compared.FindStringSubmatch(s); m != nil && m[1] != "eqq" && m[1] != "gtq" {
		if p, ok := floatPredicates[m[1]]; ok && m[2] == "pd" {
			return fmt.Sprintf("vcmppd %s,%#x", m[3], p)
		}
		// vpcmpeqq and vpcmpgtq of VEX are instructions of their own.
		if p, ok := intPredicates[m[1]]; ok && m[2] != "pd" && strings.HasPrefix(m[3], "k") {
			return fmt.Sprintf("vpcmp%s %s,%#x", m[2], m[3], p)
		}
	}
	return s
}

func compareListing(t *testing.T, got []string, listing string) {
	t.Helper()
	want := strings.Split(strings.TrimSpace(listing), "\n")
	bad := 0
	for i, w := range want {
		if i >= len(got) || got[i] != w {
			g := "nothing"
			if i < len(got) {
				g = got[i]
			}
			t.Errorf("instruction %d: meant %q, objdump reads %q", i, w, g)
			if bad++; bad > 20 {
				t.FailNow()
			}
		}
	}
}

func encodeEveryForm(evex bool) (a *assembler, listing string) {
	l := l256
	if evex {
		l = l512
	}
	a = newAssembler(l, evex)
	a.constant(bytes.Repeat([]byte{1}, 8))
	a.constant(bytes.Repeat([]byte{2}, 64))
	_, listing = a.assemble(func() { everyForm(a, evex) }, true)
	return a, listing
}

func TestEncodingAgainstObjdump(t *testing.T) {
	for _, evex := range []bool{false, true} {
		t.Run(fmt.Sprint("evex=", evex), func(t *testing.T) {
			a, listing := encodeEveryForm(evex)
			compareListing(t, objdump(t, a.code), listing)
		})
	}
}

// TestEncodingGolden compares with bytes that objdump agreed with, for
// machines without it.
func TestEncodingGolden(t *testing.T) {
	for file, evex := range map[string]bool{"vex.golden": false, "evex.golden": true} {
		a, listing := encodeEveryForm(evex)
		var b strings.Builder
		for i, line := range strings.Split(strings.TrimSpace(listing), "\n") {
			end := len(a.code)
			if i+1 < len(a.starts) {
				end = a.starts[i+1]
			}
			code := a.code[a.starts[i]:end]
			if i+1 == len(a.starts) {
				code = bytes.TrimRight(code, "\xcc") // padding
			}
			fmt.Fprintf(&b, "%x\t%s\n", code, line)
		}
		file = filepath.Join("testdata", file)
		if *update {
			compareListing(t, objdump(t, a.code), listing)
			if t.Failed() {
				return
			}
			if err := os.WriteFile(file, []byte(b.String()), 0o666); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if string(want) != b.String() {
			t.Errorf("%s: the encoding changed; if objdump agrees, run the test with -update", file)
		}
	}
}
