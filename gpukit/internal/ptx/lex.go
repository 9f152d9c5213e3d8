package ptx

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Error is a fault in PTX text.
type Error struct {
	Pos Pos
	Msg string
}

// Error gives line:col and what is wrong.
func (e *Error) Error() string {
	if e.Pos.Line == 0 {
		return "ptx: " + e.Msg
	}
	return fmt.Sprintf("ptx:%d:%d: %s", e.Pos.Line, e.Pos.Col, e.Msg)
}

type tokenKind uint8

const (
	tokEOF    tokenKind = iota
	tokIdent            // also %tid, and a path of names: add.rn.f64, %tid.x
	tokDot              // .word: text is the word
	tokInt              // bits
	tokF32              // bits
	tokF64              // bits
	tokString           // text
	tokPunct            // text
)

type token struct {
	kind tokenKind
	text string
	bits uint64
	pos  Pos
}

func (t token) String() string {
	switch t.kind {
	case tokEOF:
		return "the end of the text"
	case tokDot:
		return "." + t.text
	case tokString:
		return strconv.Quote(t.text)
	}
	return t.text
}

func letter(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' || c == '$' || c == '%'
}
func digit(c byte) bool { return c >= '0' && c <= '9' }

// lex cuts the text into tokens.
func lex(src string) (toks []token, err error) {
	line, start := 1, 0
	i := 0
	at := func(j int) byte {
		if j < len(src) {
			return src[j]
		}
		return 0
	}
	word := func(j int) int {
		for letter(at(j)) && at(j) != '%' || digit(at(j)) {
			j++
		}
		return j
	}
	for {
		for i < len(src) && strings.IndexByte(" \t\r\n\f\v", src[i]) >= 0 {
			if src[i] == '\n' {
				line, start = line+1, i+1
			}
			i++
		}
		pos := Pos{line, i - start + 1}
		if i >= len(src) {
			return append(toks, token{kind: tokEOF, pos: pos}), nil
		}
		j := i + 1
		switch c := src[i]; {
		case c == '/' && at(j) == '/':
			for j < len(src) && src[j] != '\n' {
				j++
			}
			i = j
		case c == '/' && at(j) == '*':
			end := strings.Index(src[j+1:], "*/")
			if end < 0 {
				return nil, &Error{pos, "a comment that does not end"}
			}
			j += 1 + end + 2
			for k := i; k < j; k++ {
				if src[k] == '\n' {
					line, start = line+1, k+1
				}
			}
			i = j
		case letter(c):
			j = word(j)
			for at(j) == '.' && (letter(at(j+1)) || digit(at(j+1))) {
				j = word(j + 1)
			}
			toks = append(toks, token{kind: tokIdent, text: src[i:j], pos: pos})
			i = j
		case c == '.' && letter(at(j)):
			j = word(j)
			toks = append(toks, token{kind: tokDot, text: src[i+1 : j], pos: pos})
			i = j
		case digit(c) || c == '.' && digit(at(j)):
			for digit(at(j)) || letter(at(j)) || at(j) == '.' || (at(j) == '+' || at(j) == '-') && (at(j-1) == 'e' || at(j-1) == 'E') && !strings.HasPrefix(src[i:j], "0x") && !strings.HasPrefix(src[i:j], "0X") {
				j++
			}
			t, ok := number(src[i:j])
			if !ok {
				return nil, &Error{pos, fmt.Sprintf("%s is not a number", src[i:j])}
			}
			t.pos = pos
			toks = append(toks, t)
			i = j
		case c == '"':
			for j < len(src) && src[j] != '"' && src[j] != '\n' {
				j++
			}
			if at(j) != '"' {
				return nil, &Error{pos, "a string that does not end"}
			}
			toks = append(toks, token{kind: tokString, text: src[i+1 : j], pos: pos})
			i = j + 1
		case strings.IndexByte("{}()[]<>,;:+-!~|@=*", c) >= 0:
			toks = append(toks, token{kind: tokPunct, text: src[i:j], pos: pos})
			i = j
		default:
			return nil, &Error{pos, fmt.Sprintf("unexpected character %q", c)}
		}
	}
}

// number reads an integer (decimal, 0x, 0b, octal, with U), a hexadecimal
// float (0f, 0d) or a decimal float.
func number(s string) (token, bool) {
	if len(s) > 2 && s[0] == '0' {
		switch s[1] {
		case 'f', 'F':
			b, err := strconv.ParseUint(s[2:], 16, 32)
			return token{kind: tokF32, text: s, bits: b}, err == nil && len(s) == 10
		case 'd', 'D':
			b, err := strconv.ParseUint(s[2:], 16, 64)
			return token{kind: tokF64, text: s, bits: b}, err == nil && len(s) == 18
		}
	}
	if b, err := strconv.ParseUint(strings.TrimSuffix(s, "U"), 0, 64); err == nil && !strings.Contains(s, "_") {
		return token{kind: tokInt, text: s, bits: b}, true
	}
	x, err := strconv.ParseFloat(s, 64)
	ok := err == nil && strings.ContainsAny(s, ".eE") && !strings.ContainsAny(s, "xX_")
	return token{kind: tokF64, text: s, bits: math.Float64bits(x)}, ok
}
