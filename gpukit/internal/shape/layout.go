package shape

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Layout is a layout signature such as (m,n),(n)->(m): which trailing
// dimensions of each operand one call of the function sees, its core
// dimensions. Make one with ParseLayout or Elementwise.
//
// The grammar is that of numpy's generalised ufuncs:
//
//	Layout = Args "->" Args
//	Args   = Arg { "," Arg }
//	Arg    = "(" [ Dim { "," Dim } ] ")"
//	Dim    = ( Name | Size ) [ "?" ]
//
// A name is an ASCII identifier and means one size wherever it occurs. A
// positive decimal number fixes the size. "?" marks a dimension that operands
// may lack. Blanks and tabs between tokens do not matter, but "?" belongs to
// its name.
type Layout struct {
	Dims []Dim   // the distinct core dimensions, in order of first use
	In   [][]int // per input, its core dimensions as positions in Dims
	Out  [][]int // per output, likewise
	text string  // as written, for messages
}

// Dim is a core dimension.
type Dim struct {
	Name     string // as in the signature; of a fixed one its decimal digits
	Size     int    // the fixed size, 0 if the operands decide
	Optional bool   // written with "?"
}

// LayoutError says where a layout signature goes wrong.
type LayoutError struct {
	Text   string // the signature
	Pos    int    // byte position in Text, from 0
	Reason string // in numpy's words
}

// Error returns the reason, the position and the signature, as numpy does.
func (e *LayoutError) Error() string {
	return fmt.Sprintf("%s at position %d in \"%s\"", e.Reason, e.Pos, e.Text)
}

// Elementwise is the layout of a function of scalars: no operand has a core
// dimension.
func Elementwise(nin, nout int) *Layout {
	l := &Layout{In: make([][]int, nin), Out: make([][]int, nout)}
	l.text = l.String()
	return l
}

// ParseLayout reads the layout signature s of a function of nin inputs and
// nout outputs; a count of -1 takes what s says. The error is a *LayoutError
// with numpy's text and byte position. An output may use a name that no input
// has: its size then comes from an array supplied for an output.
func ParseLayout(s string, nin, nout int) (*Layout, error) {
	p := layoutParser{s: s, l: &Layout{text: s}}
	if reason := p.parse(nin, nout); reason != "" {
		return nil, &LayoutError{s, p.i, reason}
	}
	return p.l, nil
}

type layoutParser struct {
	s string
	i int // position of the next byte
	l *Layout
}

// The methods of layoutParser return the reason of a fault at p.i, or "".

func (p *layoutParser) parse(nin, nout int) string {
	n := 0 // arguments read
	arrow, comma := false, false
	for p.blanks(); p.i < len(p.s); n++ {
		if !arrow && (n == nin || nin < 0 && !comma && p.at() == '-') {
			if !strings.HasPrefix(p.s[p.i:], "->") {
				return "expect '->'"
			}
			p.i += 2
			p.blanks()
			arrow = true
		}
		core, reason := p.argument()
		if reason != "" {
			return reason
		}
		if arrow {
			p.l.Out = append(p.l.Out, core)
		} else {
			p.l.In = append(p.l.In, core)
		}
		p.blanks()
		switch {
		case !arrow && nin < 0:
			if p.at() == '-' {
				comma = false
				continue
			}
			if p.at() != ',' {
				return "expect ',' or '->'"
			}
		case !arrow && n+1 == nin, arrow && len(p.l.Out) == nout:
			continue
		case arrow && nout < 0 && p.i == len(p.s):
			return ""
		case p.at() != ',':
			return "expect ','"
		}
		comma = true
		p.i++
		p.blanks()
	}
	switch {
	case nin >= 0 && n < nin, len(p.l.Out) < nout, nout < 0:
		return "incomplete signature: not all arguments found"
	case len(p.l.Out) > nout:
		return "too many arguments in signature"
	}
	return ""
}

func (p *layoutParser) argument() (core []int, reason string) {
	if p.at() != '(' {
		return nil, "expect '('"
	}
	p.i++
	for p.blanks(); p.at() != ')'; {
		if p.i == len(p.s) {
			return nil, "unexpected end of signature string"
		}
		k, reason := p.dim()
		if reason != "" {
			return nil, reason
		}
		core = append(core, k)
		p.blanks()
		switch p.at() {
		case ')':
		case ',':
			p.i++
			p.blanks()
			if p.at() == ')' {
				return nil, "',' must not be followed by ')'"
			}
		default:
			return nil, "expect ',' or ')'"
		}
	}
	p.i++
	return core, ""
}

// dim reads a dimension and returns its position in p.l.Dims.
func (p *layoutParser) dim() (int, string) {
	end := p.i
	for end < len(p.s) && (p.s[end] == '_' || isDigit(p.s[end]) || isLetter(p.s[end])) {
		end++
	}
	d := Dim{Name: p.s[p.i:end]}
	if end == p.i || isDigit(d.Name[0]) {
		// numpy takes the largest int for an overflow, so it is refused too.
		n, err := strconv.Atoi(d.Name)
		if err != nil || n <= 0 || n == math.MaxInt {
			return 0, "expect dimension name or non-zero frozen size"
		}
		d.Name, d.Size = strconv.Itoa(n), n
	}
	after := end
	if end < len(p.s) && p.s[end] == '?' {
		d.Optional = true
		after++
	}
	for k, old := range p.l.Dims {
		switch {
		case old.Name != d.Name:
			continue
		case d.Optional && !old.Optional:
			return 0, "? cannot be used, name already seen without ?"
		case !d.Optional && old.Optional:
			return 0, "? must be used, name already seen with ?"
		}
		p.i = after
		return k, ""
	}
	p.i = after
	p.l.Dims = append(p.l.Dims, d)
	return len(p.l.Dims) - 1, ""
}

func (p *layoutParser) blanks() {
	for p.i < len(p.s) && (p.s[p.i] == ' ' || p.s[p.i] == '\t') {
		p.i++
	}
}

// at is the next byte, 0 at the end.
func (p *layoutParser) at() byte {
	if p.i < len(p.s) {
		return p.s[p.i]
	}
	return 0
}

func isDigit(c byte) bool  { return '0' <= c && c <= '9' }
func isLetter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }

// IsElementwise reports whether no operand has a core dimension; that of a nil
// layout is true.
func (l *Layout) IsElementwise() bool { return l == nil || len(l.Dims) == 0 }

// String is the signature without blanks; that of a nil layout is empty. Equal
// strings mean the same layout.
func (l *Layout) String() string {
	if l == nil {
		return ""
	}
	var b strings.Builder
	l.write(&b, l.In)
	if len(l.Out) > 0 { // numpy refuses an arrow without outputs
		b.WriteString("->")
	}
	l.write(&b, l.Out)
	return b.String()
}

func (l *Layout) write(b *strings.Builder, args [][]int) {
	for i, core := range args {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteByte('(')
		for j, k := range core {
			if j > 0 {
				b.WriteByte(',')
			}
			b.WriteString(l.Dims[k].Name)
			if l.Dims[k].Optional {
				b.WriteByte('?')
			}
		}
		b.WriteByte(')')
	}
}
