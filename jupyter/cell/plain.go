package cell

import (
	"fmt"
	"go/ast"
	"regexp"
	"strconv"
	"strings"
)

// mark begins what gomacro, and our additions to it, put into the types that
// compiled code sees of types declared in cells. No text of a user has it.
const mark = "\U00012038"

var (
	brandTag   = regexp.MustCompile(`"(?:[^"\\]|\\.)*` + mark + `:(?:[^"\\]|\\.)*"`)
	brandName  = regexp.MustCompile(mark + `:\\"((?:[^"\\])*)\\"`)
	hiddenTag  = regexp.MustCompile(` "json:\\"-\\" xml:\\"-\\""`)
	fieldMarks = strings.NewReplacer(mark, "", "\U00012039", "", "\U0001202A xreflect.InterfaceHeader; ", "")
)

// PlainTypes writes types in a text as the cell has them, where compiled code has
// named them as it sees them: main.T for struct { X int }.
func PlainTypes(text string) string {
	if !strings.Contains(text, mark[:3]) {
		return text
	}
	for from := 0; ; {
		at := brandTag.FindStringIndex(text[from:])
		if at == nil {
			break
		}
		start, end := from+at[0], from+at[1]
		m := brandName.FindStringSubmatch(text[start:end])
		first, last := opening(text[:start]), closing(text, end)
		if m == nil || first < 0 || last < 0 {
			from = end
			continue
		}
		name, _, _ := strings.Cut(m[1], "#")
		text = text[:first] + name + text[last:]
		from = first + len(name)
	}
	return fieldMarks.Replace(hiddenTag.ReplaceAllString(text, ""))
}

// closing returns the offset behind the brace that ends the struct type of whose first
// field the tag ends at an offset, -1 if there is none.
func closing(text string, at int) int {
	for depth := 1; at < len(text); at++ {
		switch text[at] {
		case '{':
			depth++
		case '}':
			if depth--; depth == 0 {
				return at + 1
			}
		case '"':
			quoted, err := strconv.QuotedPrefix(text[at:])
			if err != nil {
				return -1
			}
			at += len(quoted) - 1
		}
	}
	return -1
}

// opening returns the offset of the struct type that is open at the end of a text.
func opening(text string) int {
	const begin = "struct {"
	for at := len(text); ; {
		if at = strings.LastIndex(text[:at], begin); at < 0 || closing(text, at+len(begin)) < 0 {
			return at
		}
	}
}

// Shown returns what fmt is to be given for a value, so that it sees the methods that
// cells have declared.
var Shown = func(v any) any { return v }

// TypeName is the name of the type of a value, as cells have it.
var TypeName = func(v any) string { return fmt.Sprintf("%T", v) }

// asserted says of a type assertion that failed what the value is, if to look at it
// again does nothing else.
func (s *Session) asserted(node ast.Node, want any) string {
	e, _ := node.(ast.Expr)
	if x, ok := ast.Unparen(e).(*ast.TypeAssertExpr); ok {
		if id, ok := x.X.(*ast.Ident); ok {
			if v, ok := s.Lookup(id.Name); ok && v.IsValid() && v.CanInterface() {
				switch name := TypeName(v.Interface()); {
				case v.Interface() == nil, name == "<nil>":
					return fmt.Sprintf("interface conversion: the interface is nil, not %v", want)
				default:
					return fmt.Sprintf("interface conversion: the interface holds a %s, not a %v", name, want)
				}
			}
		}
	}
	return fmt.Sprintf("interface conversion: the value is not a %v", want)
}
