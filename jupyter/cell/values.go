package cell

import (
	"fmt"
	"go/ast"
	"go/scanner"
	"go/token"
	"reflect"
	"strings"

	basereflect "github.com/cosmos72/gomacro/base/reflect"
)

// valuesName stands before the values on the last line of a cell: x, y is not
// Go, but calls can have several arguments. It is never called. Its first letter
// is one to the scanner, and on no keyboard.
const valuesName = "\u01c3values"

// severalValues returns the code with its last statement, a list of expressions
// that begins at an offset, made the arguments of a call.
func severalValues(code string, off int) (string, bool) {
	var s scanner.Scanner
	set := token.NewFileSet()
	file := set.AddFile("", set.Base(), len(code)-off)
	s.Init(file, []byte(code[off:]), func(token.Position, string) {}, 0)
	depth, end, ended := 0, off, false // end is that of the last token
	for {
		pos, tok, text := s.Scan()
		switch tok {
		case token.LPAREN, token.LBRACK, token.LBRACE:
			depth++
		case token.RPAREN, token.RBRACK, token.RBRACE:
			if depth--; depth < 0 {
				return "", false // inside a block
			}
		case token.SEMICOLON:
			if depth == 0 && !ended {
				ended = true
				continue
			}
		case token.EOF:
			return code[:off] + valuesName + "(" + code[off:end] + ")" + code[end:], true
		}
		if ended {
			return "", false // more statements: these values are not the last
		}
		if text == "" {
			text = tok.String()
		}
		end = off + file.Offset(pos) + len(text)
	}
}

// valuesOf returns the expressions of such a list, nil for any other node.
func valuesOf(n ast.Node) []ast.Expr {
	call, ok := n.(*ast.CallExpr)
	if !ok {
		return nil
	}
	if id, ok := call.Fun.(*ast.Ident); !ok || id.Name != valuesName {
		return nil
	}
	return call.Args
}

// runValues evaluates the list on the last line of a cell.
func (s *Session) runValues(src *source, c Chunk, list []ast.Expr) (Result, *Error) {
	var res Result
	for _, e := range list {
		one := Chunk{Nodes: []ast.Node{e}, Line: c.Line, Text: c.Text}
		expr, failed := s.compile(src, one)
		if failed != nil {
			return Result{}, failed
		}
		values, types, failed := s.eval(expr)
		if failed != nil {
			failed.Frames = s.withTop(src, one, failed.Frames)
			return Result{}, failed
		}
		if failed := s.untaken(src, one, values, types); failed != nil {
			return Result{}, failed
		}
		if n := len(values); n == 2 && hasOK(e) || n > 1 && s.isError(types[n-1]) && basereflect.ValueInterface(values[n-1]) == nil {
			values, types = values[:n-1], types[:n-1]
		}
		if len(values) != 1 {
			line, col := src.position(e.Pos())
			return Result{}, src.fault("CompileError", line, col, fmt.Sprintf("in a list of values each must be one; this gives %d", len(values)))
		}
		res.Values, res.Types = append(res.Values, basereflect.ValueInterface(values[0])), append(res.Types, types[0])
	}
	res.List = true
	return res, nil
}

// changed reports whether an expression statement in the middle of a cell gave
// something else than the variable it began with: fig.Title("x") gives fig again.
func (s *Session) changed(node ast.Node, value interface{}) bool {
	if _, ok := node.(*ast.Ident); ok {
		return true // to be seen is all that a name alone can be for
	}
	e, _ := node.(ast.Expr)
	root, ok := rootOf(e).(*ast.Ident)
	if !ok {
		return true
	}
	v, ok := s.Lookup(root.Name)
	if !ok || !v.IsValid() || !v.CanInterface() {
		return true
	}
	x := reflect.ValueOf(v.Interface())
	y := reflect.ValueOf(value)
	return x.Kind() != reflect.Pointer || y.Kind() != reflect.Pointer || x.Pointer() != y.Pointer()
}

// rootOf is what a chain of calls and selections begins with.
func rootOf(e ast.Expr) ast.Expr {
	for {
		switch x := e.(type) {
		case *ast.CallExpr:
			e = x.Fun
		case *ast.SelectorExpr:
			e = x.X
		case *ast.ParenExpr:
			e = x.X
		default:
			return e
		}
	}
}

// unshift takes valuesName out of a column of the interpreter's.
func (s *source) unshift(line, col int) int {
	if s.values == 0 {
		return col
	}
	if first, at := s.position(s.file.Pos(s.values - 1)); line == first && col > at {
		return max(col-len(valuesName)-1, at)
	}
	return col
}

// isList reports whether the parser's complaint is that of a list of values.
func isList(msg string) bool { return strings.Contains(msg, "expected 1 expression") }
