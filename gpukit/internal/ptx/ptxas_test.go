package ptx

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestAssembler asks NVIDIA's ptxas about the table: every row, with registers
// and with whatever else the model lets stand for an operand, under the lowest
// version and target that the table claims (those that ptxas still knows).
func TestAssembler(t *testing.T) {
	ptxas := os.Getenv("GPUNOTES_PTXAS")
	if ptxas == "" {
		t.Skip("GPUNOTES_PTXAS is not set: no NVIDIA assembler (ptxas) to ask")
	}
	help, err := exec.Command(ptxas, "--help").CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v", ptxas, err)
	}
	type key struct {
		v  Version
		sm int
	}
	oldest := 50 // what is older is gone from newer assemblers
	for oldest < 100 && !strings.Contains(string(help), fmt.Sprintf("'sm_%d'", oldest)) {
		oldest++
	}
	modules := map[key]*Module{}
	a := &author{Rand: rand.New(rand.NewPCG(5, 6))}
	for _, form := range Forms() {
		for range 12 {
			op, d := a.opcode(form)
			sm := max(d.Form.SM, oldest)
			tv, ok := TargetVersion(sm)
			for !ok {
				sm++
				tv, ok = TargetVersion(sm)
			}
			if d.Form.Version.Less(tv) {
				d2 := *d.Form
				d2.Version = tv
				form = &d2
			} else {
				form = d.Form
			}
			k := key{form.Version, sm}
			m := modules[k]
			if m == nil {
				m = a.module()
				m.Version, m.Target = k.v, k.sm
				m.Vars = m.Vars[:3]
				m.Funcs = append(m.Funcs[:1], a.function(0, nil))
				m.Funcs[1].Labels = nil
				m.Funcs[1].AddLabel("A")
				modules[k] = m
			}
			a.m, a.f = m, m.Funcs[1]
			in := Instr{Opcode: op, Loc: Loc{1, 1, 1}}
			for _, shape := range d.Form.Args {
				shape, optional := strings.CutSuffix(shape, "?")
				if optional && a.IntN(2) == 0 {
					break
				}
				in.Args = append(in.Args, a.operand(d, shape))
			}
			if form.Op == "call" {
				continue
			}
			a.f.Instrs = append(a.f.Instrs, in)
		}
	}
	dir := t.TempDir()
	all, asked := 0, 0
	for k, m := range modules {
		m.Funcs[1].Labels = append(m.Funcs[1].Labels, Label{"$L_1", len(m.Funcs[1].Instrs)})
		if err := Verify(m); err != nil {
			t.Error(err)
			continue
		}
		all += len(m.Funcs[1].Instrs)
		arch := fmt.Sprintf("sm_%d", k.sm)
		if !strings.Contains(string(help), "'"+arch+"'") {
			continue
		}
		text := m.String()
		file := filepath.Join(dir, "table.ptx")
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		asked += len(m.Funcs[1].Instrs)
		out, err := exec.Command(ptxas, "-arch="+arch, "-c", "-o", file+".o", file).CombinedOutput()
		if err == nil {
			continue
		}
		lines := strings.Split(text, "\n")
		for _, l := range strings.Split(string(out), "\n") {
			var line int
			if i := strings.Index(l, ", line "); i >= 0 {
				fmt.Sscanf(l[i:], ", line %d;", &line)
			}
			if line > 0 && strings.Contains(l, "error") {
				t.Errorf(".version %v, %s: %s: %s", k.v, arch, strings.TrimSpace(lines[line-1]), l[strings.Index(l, "error"):])
			}
		}
		if !t.Failed() {
			t.Errorf("%v %s", err, out)
		}
	}
	if asked < all*9/10 {
		t.Errorf("only %d of %d instructions were assembled", asked, all)
	}
	t.Logf("%d of %d instructions, from sm_%d on", asked, all, oldest)
}
