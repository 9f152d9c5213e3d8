// Package cell runs the cells of a Go notebook in a gomacro interpreter.
//
// It knows nothing of Jupyter: it splits a cell into chunks, runs them one by
// one, applies the error rule (an error that nobody took stops the cell at
// that line), turns every panic into an error with its line and call stack,
// and stops a running cell on request while keeping all variables.
package cell

import (
	"go/ast"
	"go/token"
	"strings"

	"github.com/cosmos72/gomacro/go/etoken"
	"github.com/cosmos72/gomacro/go/parser"
)

// A Chunk is a part of a cell that is evaluated as one: a run of consecutive
// declarations, so that they may refer to each other in any order, or one
// statement or expression.
type Chunk struct {
	Nodes []ast.Node
	Decl  bool   // the nodes are declarations
	Line  int    // 1-based line of the cell at which Text begins
	Text  string // source, its first line padded with blanks so that columns are those of the cell
}

// A source is the text of a cell with what is needed to find lines in it.
type source struct {
	cell int
	code string
	file *etoken.File
	// What was parsed has valuesName and a parenthesis more than code, at this
	// offset; 0 if not, and there is none at 0.
	values   int
	pictures []*ast.ExprStmt // in loops and branches, to be shown
}

// offset returns the byte offset of pos in the cell, -1 if it lies elsewhere.
func (s *source) offset(pos token.Pos) int {
	if s.file == nil || !pos.IsValid() || int(pos) < s.file.Base() || int(pos) > s.file.Base()+s.file.Size() {
		return -1
	}
	off := int(pos) - s.file.Base()
	if s.values > 0 && off >= s.values-1 {
		off = min(max(off-len(valuesName)-1, s.values-1), len(s.code))
	}
	return off
}

// position returns the 1-based line and byte column of pos, 0, 0 if unknown.
// It counts newlines itself: a //line comment in a cell must not mislead it.
func (s *source) position(pos token.Pos) (line, col int) {
	off := s.offset(pos)
	if off < 0 || off > len(s.code) {
		return 0, 0
	}
	before := s.code[:off]
	return 1 + strings.Count(before, "\n"), off - strings.LastIndexByte(before, '\n')
}

// line returns the text of a 1-based line, "" if there is none.
func (s *source) line(n int) string {
	lines := strings.Split(s.code, "\n")
	if n < 1 || n > len(lines) {
		return ""
	}
	return strings.TrimRight(lines[n-1], " \t\r")
}

// chunks groups the top-level nodes of the cell.
func (s *source) chunks(nodes []ast.Node) []Chunk {
	var list []Chunk
	for i := 0; i < len(nodes); {
		j := i + 1
		_, decl := nodes[i].(ast.Decl)
		// A declaration of err ends its chunk: the error rule must look at
		// it before the next declaration uses what came with it.
		for decl && j < len(nodes) && !assignsErr(nodes[j-1]) && !unpacks(nodes[j-1]) {
			// Imports stay when what follows them fails.
			if _, ok := nodes[j].(ast.Decl); !ok || unpacks(nodes[j]) || isImport(nodes[j-1]) != isImport(nodes[j]) {
				break
			}
			j++
		}
		next := len(s.code)
		if j < len(nodes) {
			if off := s.offset(nodes[j].Pos()); off >= 0 {
				next = off
			}
		}
		c := Chunk{Nodes: nodes[i:j], Decl: decl}
		c.Line, c.Text = s.cut(nodes[i].Pos(), endOf(nodes[j-1]), next)
		list = append(list, c)
		i = j
	}
	return list
}

func isImport(node ast.Node) bool {
	g, ok := node.(*ast.GenDecl)
	return ok && g.Tok == token.IMPORT
}

// endOf is node.End, or no position for the nodes only gomacro knows.
func endOf(node ast.Node) (end token.Pos) {
	defer func() {
		if recover() != nil {
			end = token.NoPos
		}
	}()
	return node.End()
}

// cut returns the source from start to end (or to the offset limit, if end is
// not known) with the rest of its first line blanked, and its line number.
func (s *source) cut(start, end token.Pos, limit int) (int, string) {
	from, to := s.offset(start), s.offset(end)
	if from < 0 {
		return 1, s.code
	}
	if to < from || to > limit {
		to = limit
	}
	if to < from {
		to = len(s.code)
	}
	bol := strings.LastIndexByte(s.code[:from], '\n') + 1
	line := 1 + strings.Count(s.code[:from], "\n")
	return line, strings.Repeat(" ", from-bol) + strings.TrimRight(s.code[from:to], " \t\r\n")
}

// assignsErr reports whether a top-level node gives the variable err a value.
func assignsErr(node ast.Node) bool {
	switch n := node.(type) {
	case *ast.AssignStmt:
		if n.Tok != token.ASSIGN && n.Tok != token.DEFINE {
			return false
		}
		for _, lhs := range n.Lhs {
			if id, ok := lhs.(*ast.Ident); ok && id.Name == "err" {
				return true
			}
		}
	case *ast.GenDecl:
		if n.Tok != token.VAR {
			return false
		}
		for _, spec := range n.Specs {
			if v, ok := spec.(*ast.ValueSpec); ok && len(v.Values) > 0 {
				for _, id := range v.Names {
					if id.Name == "err" {
						return true
					}
				}
			}
		}
	}
	return false
}

// unpacks reports whether a declaration has the form var a, b = f(). gomacro
// compiles that only where it need not sort declarations.
func unpacks(node ast.Node) bool {
	n, ok := node.(*ast.GenDecl)
	if !ok || n.Tok != token.VAR {
		return false
	}
	for _, spec := range n.Specs {
		if v, ok := spec.(*ast.ValueSpec); ok && len(v.Names) > 1 && len(v.Values) == 1 {
			return true
		}
	}
	return false
}

// hasOK reports whether node is <-ch, m[k] or x.(T), which gomacro always gives a
// second result.
func hasOK(node ast.Node) bool {
	switch n := node.(type) {
	case *ast.ParenExpr:
		return hasOK(n.X)
	case *ast.IndexExpr:
		return true
	}
	return isReceive(node) || isAssertion(node)
}

func isAssertion(node ast.Node) bool {
	switch n := node.(type) {
	case *ast.ParenExpr:
		return isAssertion(n.X)
	case *ast.TypeAssertExpr:
		return true
	}
	return false
}

// isReceive reports whether node is <-ch.
func isReceive(node ast.Node) bool {
	switch n := node.(type) {
	case *ast.ParenExpr:
		return isReceive(n.X)
	case *ast.UnaryExpr:
		return n.Op == token.ARROW
	}
	return false
}

// isCall reports whether an expression hands over the results of a call or a
// receive: only there can an error be one that nobody took.
func isCall(node ast.Node) bool {
	switch n := node.(type) {
	case *ast.ParenExpr:
		return isCall(n.X)
	case *ast.CallExpr:
		return true
	}
	return isReceive(node)
}

// A Special is a line at the top of a cell that is not Go: a command of the
// kernel (%...) or of the operating system ($...), or a question (?name, or a
// cell that is name? and nothing else).
type Special struct {
	Line int
	Text string
}

// ExpectError is the first line of a cell that is meant to fail.
const ExpectError = "%expect-error"

// Directives takes the special lines from the top of a cell. In the returned
// code they are blank, so that line numbers stay. expect reports whether the
// first line that is not blank is %expect-error.
func Directives(code string) (rest string, expect bool, specials []Special) {
	if name := strings.TrimSpace(code); len(name) > 1 && strings.HasSuffix(name, "?") && !strings.ContainsAny(name, " \t\n\"`'") {
		return "", false, []Special{{1 + strings.Count(code[:strings.Index(code, name)], "\n"), "?" + strings.TrimSuffix(name, "?")}}
	}
	lines := strings.Split(code, "\n")
	first := true
	for i, line := range lines {
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		if line[0] != '%' && line[0] != '$' && line[0] != '?' {
			break
		}
		if first && line == ExpectError {
			expect = true
		} else {
			specials = append(specials, Special{i + 1, line})
		}
		first = false
		lines[i] = ""
	}
	return strings.Join(lines, "\n"), expect, specials
}

// Complete tells whether code can be run as it stands: "complete",
// "incomplete" (then with the indentation the next line should have) or
// "invalid".
func Complete(code string) (status, indent string) {
	defer func() {
		if recover() != nil {
			status, indent = "invalid", ""
		}
	}()
	rest, _, _ := Directives(code)
	var p parser.Parser
	p.Configure(0, '~')
	set := etoken.NewFileSet()
	p.Init(set, "", 0, []byte(rest))
	_, err := p.Parse()
	if err == nil {
		return "complete", ""
	}
	first := firstSyntaxError(err)
	atEnd := first.offset >= len(strings.TrimRight(rest, " \t\r\n"))
	open := strings.Contains(first.msg, "raw string literal not terminated") || strings.Contains(first.msg, "comment not terminated")
	// The scanner ends the last line with a newline of its own.
	if !open && !(atEnd && (strings.Contains(first.msg, "EOF") || strings.Contains(first.msg, "newline"))) {
		return "invalid", ""
	}
	last := code[strings.LastIndexByte(code, '\n')+1:]
	indent = last[:len(last)-len(strings.TrimLeft(last, " \t"))]
	t := strings.TrimSpace(last)
	label := strings.HasSuffix(t, ":") && (strings.HasPrefix(t, "case ") || strings.HasPrefix(t, "default"))
	if !open && t != "" && (label || strings.ContainsRune("{([", rune(t[len(t)-1]))) {
		indent += "\t"
	}
	return "incomplete", indent
}
