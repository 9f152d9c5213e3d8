package cpu

import (
	"fmt"
	"slices"
	"strings"

	"gpunotes/gpukit/internal/codegen/amd64"
	"gpunotes/gpukit/internal/ir"
)

// Inside are facts of machine code, for people.
type Inside struct {
	Engine       Engine
	Width        int      // bits of a register
	Lanes        int      // workers at a time
	Instructions int      // in all; a loop's count once
	Spills       int      // values that live in memory
	Constants    int      // that stay in registers
	PerCall      int      // instructions that run once per call, but for those of constants
	PerRow       int      // instructions that run once per row of workers
	InGo         []string // what Go carries out, lane by lane
}

// Inside looks into the machine code that runs calls of l's shape and strides. The
// error says why there is none.
func (p *Program) Inside(l *Launch) (*Inside, error) {
	v, err := p.variantOf(l)
	if err != nil {
		return nil, err
	}
	c := v.code.code
	in := &Inside{Engine: engineOf(c.Target), Width: 256, Lanes: c.Lanes, Instructions: c.Instructions, Spills: c.Spills,
		Constants: c.Constants, PerCall: c.PerCall, PerRow: c.PerRow}
	if c.Target == amd64.AVX512 {
		in.Width = 512
	}
	for i := range c.Sites {
		x := c.Sites[i].Instr
		name := x.Op.String()
		switch x.Op {
		case ir.OpMath:
			name = x.Fn.String()
		case ir.OpCall:
			name = x.Callee.Name
		}
		if !slices.Contains(in.InGo, name) {
			in.InGo = append(in.InGo, name)
		}
	}
	slices.Sort(in.InGo)
	return in, nil
}

// list writes the listing of code, with addresses, and comments where the position in
// the source changes.
func list(b *strings.Builder, c *amd64.Code) {
	marks := c.Marks
	for i, line := range strings.Split(strings.TrimSuffix(c.Listing, "\n"), "\n") {
		for ; len(marks) > 0 && marks[0].Line <= i; marks = marks[1:] {
			if at := marks[0].Pos; at.Line > 0 && (len(marks) == 1 || marks[1].Line > i) {
				fmt.Fprintf(b, "; %v\n", at)
			}
		}
		if i < len(c.Starts) {
			fmt.Fprintf(b, "%#6x  ", c.Starts[i])
		}
		b.WriteString(line + "\n")
	}
}
