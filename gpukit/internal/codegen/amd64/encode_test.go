package amd64

import (
	"bytes"
	"crypto/sha256"
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

// memoryForms are memory operands of every shape of encoding.
var memoryForms = []memory{
	at(rax, 0), at(rcx, 8), at(rsi, 64), at(rsi, -64), at(rsi, 0x1040), at(rdi, 127), at(rdi, 128), at(r8q, 32), at(5, 0), at(4, 16), at(12, 0), at(13, 0),
	{base: rcx, indexed: true, index: rdx, scale: 3}, {base: r11, indexed: true, index: r10, scale: 3, disp: 64},
	{base: rcx, indexed: true, index: rdx, disp: 1}, {relative: true, constant: 0}, {relative: true, constant: 1},
}

// everyForm emits a selection of operands for every row that the target has:
// every register in every place, every shape of memory operand, and
// displacements around the ends of one byte, scaled or not.
func everyForm(a *assembler, evex bool) (places []rowPlace) {
	regs := func(k kind, i int) uint8 {
		switch k {
		case none:
			return 0
		case mask:
			return uint8(i*3) & 7
		case vec, half, quarter, eighth, xmm:
			if evex {
				return uint8(i*7+3) % 32
			}
			return uint8(i*7+3) % 16
		}
		return []uint8{rax, rcx, rdx, rbx, rsi, rdi, r8q, r9, r10, r11, 12, 13}[i%12]
	}
	for n, r := range rows {
		isEVEX := a.encodesEVEX(r)
		if isEVEX && !evex || !isEVEX && !r.legacy && evex && r.ew == no && (isVector(r.reg) || isVector(r.rm)) {
			continue
		}
		places = append(places, rowPlace{r, len(a.code)})
		vk := r.v
		if vk == none {
			vk = r.rm
		}
		for i := range 5 {
			o := operands{reg: regs(r.reg, i+n), v: regs(vk, i+n+1), rm: register(regs(r.rm, i+n+2)), c: regs(r.reg, i+1), imm: int32(i*5 + 1)}
			if r.imm == 4 {
				o.imm = int32(i-2) * 1000
			}
			masked := isEVEX && !r.noMask && (i == 3 || r.form == formGather || r.form == formScatter)
			if masked {
				o.k = uint8(1 + i)
				o.zero = !r.onlyMemory && r.reg != mask && r.form != formTest
			}
			if !r.onlyMemory {
				a.op(r, o)
			}
			// Shifts of VEX have no memory operand.
			if r.onlyRegister || r.form == formNone || r.form == formO || r.form == formVM && !isEVEX {
				continue
			}
			if r.form == formMR {
				o.zero = false
			}
			l := a.lengthOf(r)
			for j := range 5 {
				m := memoryForms[(i*5+j+n)%len(memoryForms)]
				if r.form == formGather || r.form == formScatter {
					// Mask, indices and destination are three registers.
					m = memory{base: regs(r64, i+j), indexed: true, lanewise: true, index: regs(vec, i+n+2), scale: uint8(j & 3), disp: memoryForms[j].disp}
				}
				o.rm = inMemory(m)
				a.op(r, o)
			}
			if r.form == formGather || r.form == formScatter {
				continue
			}
			for _, d := range []int32{-129, -128, -127, 126, 127, 128, 1} {
				unit := r.bytes(l)
				if !isEVEX {
					unit = 1
				}
				o.rm = inMemory(at(regs(r64, i+int(d&3)), d*unit))
				a.op(r, o)
			}
			if isEVEX && !r.noBroadcast {
				for _, d := range []int32{-129, -128, 0, 127, 128} {
					o.rm = inMemory(memory{base: rsi, disp: d * 4 << r.ew, broadcast: true})
					a.op(r, o)
				}
			}
		}
	}
	return places
}

// rowPlace is where the forms of a row begin.
type rowPlace struct {
	row *row
	at  int
}

func isVector(k kind) bool { return k >= vec && k <= xmm }

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
	broadcast = regexp.MustCompile(`(?:[DQ]WORD BCST )(\[[^\]]*\])`)
	oldBcst   = regexp.MustCompile(`\{1to\d+\}`)
	compared  = regexp.MustCompile(`^vp?cmp([a-z_]+?)(pd|ps|uq|q|ud|d) (.*)$`)
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
	if m := compared.FindStringSubmatch(s); m != nil {
		if p, ok := floatPredicates[m[1]]; ok && m[2][0] == 'p' {
			return fmt.Sprintf("vcmp%s %s,%#x", m[2], m[3], p)
		}
		// vpcmpeqq and vpcmpgtq of VEX are instructions of their own.
		if p, ok := intPredicates[m[1]]; ok && m[2][0] != 'p' && strings.HasPrefix(m[3], "k") {
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

func encodeEveryForm(evex bool) (a *assembler, places []rowPlace, listing string) {
	l := l256
	if evex {
		l = l512
	}
	a = newAssembler(l, evex)
	a.constant(bytes.Repeat([]byte{1}, 8))
	a.constant(bytes.Repeat([]byte{2}, 64))
	_, listing = a.assemble(func() { places = everyForm(a, evex) }, true)
	return a, places, listing
}

func TestEncodingAgainstObjdump(t *testing.T) {
	for _, evex := range []bool{false, true} {
		t.Run(fmt.Sprint("evex=", evex), func(t *testing.T) {
			a, _, listing := encodeEveryForm(evex)
			compareListing(t, objdump(t, a.code), listing)
		})
	}
}

// TestEveryRowIsEncoded: a row has a form on one of the targets at least.
func TestEveryRowIsEncoded(t *testing.T) {
	seen := map[*row]bool{}
	for _, evex := range []bool{false, true} {
		_, places, _ := encodeEveryForm(evex)
		for _, p := range places {
			seen[p.row] = true
		}
	}
	for _, r := range rows {
		if !seen[r] {
			t.Errorf("%s has no form on any target", r.name)
		}
	}
}

// TestEncodingGolden compares with what objdump agreed with, for machines without
// it: by row, the first form and a hash of the bytes of all of them.
func TestEncodingGolden(t *testing.T) {
	for file, evex := range map[string]bool{"vex.golden": false, "evex.golden": true} {
		a, places, listing := encodeEveryForm(evex)
		code := bytes.TrimRight(a.code, "\xcc") // padding
		lines := strings.Split(strings.TrimSpace(listing), "\n")
		line := map[int]string{}
		for i, at := range a.starts {
			line[at] = lines[i]
		}
		var b strings.Builder
		for i, p := range places {
			end := len(code)
			if i+1 < len(places) {
				end = places[i+1].at
			}
			h := sha256.Sum256(code[p.at:end])
			fmt.Fprintf(&b, "%x\t%s\n", h[:6], line[p.at])
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
