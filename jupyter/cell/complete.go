package cell

import (
	"cmp"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/cosmos72/gomacro/imports"
	"github.com/cosmos72/gomacro/xreflect"
)

// byteOffset turns the cursor of Jupyter, counted in characters, into bytes.
func byteOffset(code string, cursor int) int {
	for i := range code {
		if cursor <= 0 {
			return i
		}
		cursor--
	}
	return len(code)
}

var specialWords = []string{"%%bench", "%%time", "%cd", "%devices", "%errcheck", ExpectError, "%help", "%versions"}

// Completions returns the names that may stand at the cursor, and the part of
// the code that they replace. Cursors count characters. It may be called while a
// cell runs.
func (s *Session) Completions(code string, cursor int) (names []string, start, end int) {
	s.compiling.Lock()
	defer s.compiling.Unlock()
	off := byteOffset(code, cursor)
	end = utf8.RuneCountInString(code[:off])
	start = end
	defer func() {
		if recover() != nil {
			names, start = nil, end
		}
	}()
	set, from := s.completions(code, off)
	names = slices.Sorted(maps.Keys(set))
	if len(names) > 0 {
		start = utf8.RuneCountInString(code[:from])
	}
	return names, start, end
}

func (s *Session) completions(code string, off int) (names map[string]bool, from int) {
	head := code[:off]
	line := head[strings.LastIndexByte(head, '\n')+1:]
	if strings.HasPrefix(line, "%") {
		word, path, second := strings.Cut(line, " ")
		switch {
		case !second:
			return starting(specialWords, line), off - len(line)
		case word == "%cd":
			return files(path, true), off - len(path)
		case word == "%errcheck":
			return starting([]string{"off", "on"}, path), off - len(path)
		}
		return nil, off
	}
	if strings.HasPrefix(line, "$") {
		path := line[strings.LastIndexAny(line, " \t$=;|&<>(")+1:]
		return files(path, false), off - len(path)
	}
	if strings.HasPrefix(line, "?") && !strings.ContainsAny(line, " .") {
		names, from := s.completions(line[1:], len(line)-1)
		return names, off - len(line) + 1 + from
	}
	// The word before the cursor begins here.
	from = off
	for from > 0 {
		r, n := utf8.DecodeLastRuneInString(head[:from])
		if r != '_' && !unicode.IsLetter(r) && !unicode.IsDigit(r) {
			break
		}
		from -= n
	}
	word := head[from:]
	list := lexemes(head)
	if n := len(list); n > 0 && list[n-1].tok == token.SEMICOLON && list[n-1].start == list[n-1].end {
		list = list[:n-1]
	}
	if n := len(list); n > 0 {
		last := list[n-1]
		if (last.tok == token.STRING || last.tok == token.CHAR) && !closed(last.text) {
			if inImport(list) {
				at := last.start + 1
				return starting(slices.Collect(maps.Keys(imports.Packages)), head[at:]), at
			}
			at := last.start + 1
			if s.Texts != nil && n > 2 && list[n-2].tok == token.LPAREN {
				if path := dotted(exprAt(head[:list[n-2].start])); len(path) == 2 {
					t := &typing{s: s}
					t.names, t.packages = locals(code[:last.start])
					owner, _ := t.packageOf(&ast.Ident{Name: path[0]})
					if texts := s.Texts(owner, path[1]); texts != nil {
						return starting(texts, head[at:]), at
					}
				}
			}
			if last.tok == token.STRING && last.text[0] == '"' {
				return files(head[at:], false), at
			}
			return nil, off
		}
		if isComment(head, last.end) {
			return nil, off
		}
	}
	vars, packages := locals(code[:from] + code[off:]) // without the unfinished word
	before, _ := locals(code[:from])
	maps.Copy(vars, before) // what stands above hides what stands below
	t := &typing{s: s, names: vars, packages: packages}
	if strings.HasSuffix(strings.TrimRight(head[:from], " \t\n"), ".") {
		dot := strings.LastIndexByte(head[:from], '.')
		return starting(s.behindDot(t, head[:dot]), word), from
	}
	names = map[string]bool{}
	if lit := literalType(list, from); lit != nil {
		if x := t.typeExpr(lit(head)); x != nil {
			for x.Kind() == reflect.Slice || x.Kind() == reflect.Ptr || x.Kind() == reflect.Array {
				x = x.Elem()
			}
			for name := range fieldNames(x) {
				if strings.HasPrefix(name, word) {
					names[name] = true
				}
			}
		}
	}
	if word == "" {
		return names, from
	}
	var all []string
	all = slices.AppendSeq(all, maps.Keys(keywordUse))
	all = slices.AppendSeq(all, maps.Keys(vars))
	all = slices.AppendSeq(all, maps.Keys(packages))
	for c := s.ir.Comp; c != nil; c = c.Outer {
		all = slices.AppendSeq(all, maps.Keys(c.Binds))
		all = slices.AppendSeq(all, maps.Keys(c.Types))
	}
	for path := range imports.Packages {
		if strings.HasPrefix(path, "gpunotes/") && path != guardPath { // what the notebook is for
			all = append(all, packageName(path))
		}
	}
	maps.Copy(names, starting(all, word))
	return names, from
}

// files returns what begins with a path; of a directory that is not named yet nothing,
// as a text need not be a path.
func files(path string, onlyDirectories bool) map[string]bool {
	names := map[string]bool{}
	if path == "" && !onlyDirectories {
		return names
	}
	dir, base := filepath.Split(path)
	entries, err := os.ReadDir(cmp.Or(dir, "."))
	if err != nil {
		return names
	}
	for _, e := range entries {
		name := e.Name()
		if !strings.HasPrefix(name, base) || base == "" && name[0] == '.' {
			continue
		}
		if at, err := os.Stat(filepath.Join(dir, name)); err == nil && at.IsDir() {
			name += "/"
		} else if onlyDirectories {
			continue
		}
		if names[dir+name] = true; len(names) == 1000 {
			break
		}
	}
	return names
}

// starting keeps the names that begin with a word, and that cells can write.
func starting(all []string, word string) map[string]bool {
	names := map[string]bool{}
	for _, name := range all {
		if strings.HasPrefix(name, word) && name != word && !strings.ContainsRune(name, '\u00b7') && name != guardPath && (name[0] != '_' || word != "") {
			names[name] = true
		} else if name == word && word != "" {
			names[name] = true
		}
	}
	return names
}

// closed reports whether a string literal has its second quote.
func closed(text string) bool {
	return len(text) > 1 && text[len(text)-1] == text[0] && (text[0] == '`' || len(text) < 3 || text[len(text)-2] != '\\')
}

// inImport reports whether the list ends inside an import declaration.
func inImport(list []lexeme) bool {
	for i := len(list) - 2; i >= 0; i-- {
		switch list[i].tok {
		case token.IMPORT:
			return true
		case token.STRING, token.SEMICOLON, token.LPAREN, token.IDENT, token.PERIOD:
		default:
			return false
		}
	}
	return false
}

// isComment reports whether the rest of head behind its last token is a comment.
func isComment(head string, end int) bool {
	rest := strings.TrimSpace(head[min(end, len(head)):])
	line := rest[strings.LastIndexByte(rest, '\n')+1:]
	return strings.HasPrefix(line, "//") || strings.HasPrefix(rest, "/*") && !strings.Contains(rest, "*/")
}

// behindDot lists what may follow a dot.
func (s *Session) behindDot(t *typing, head string) (all []string) {
	e := exprAt(head)
	if e == nil {
		return nil
	}
	if path, binds := t.packageOf(e); path != "" {
		p := imports.Packages[path]
		all = slices.AppendSeq(all, maps.Keys(binds))
		all = slices.AppendSeq(all, maps.Keys(p.Types))
		return slices.AppendSeq(all, maps.Keys(p.Untypeds))
	}
	list := t.results(e)
	if len(list) == 0 {
		if x := t.typeExpr(e); x != nil {
			list = []xreflect.Type{x} // T.Method
		}
	}
	if len(list) == 0 || list[0] == nil {
		return nil
	}
	return slices.Collect(maps.Keys(members(list[0])))
}

// exprAt parses the operand that ends a text: a.b(c)[d] of x + a.b(c)[d].
func exprAt(head string) ast.Expr {
	list := lexemes(head)
	if n := len(list); n > 0 && list[n-1].tok == token.SEMICOLON && list[n-1].start == list[n-1].end {
		list = list[:n-1]
	}
	i := len(list)
	depth := 0
	for i > 0 {
		t := list[i-1].tok
		if depth > 0 {
			switch t {
			case token.LPAREN, token.LBRACK, token.LBRACE:
				depth--
			case token.RPAREN, token.RBRACK, token.RBRACE:
				depth++
			}
			i--
			continue
		}
		operand := i == len(list) || list[i].tok == token.PERIOD || list[i].tok == token.LPAREN || list[i].tok == token.LBRACK || list[i].tok == token.LBRACE
		if t == token.RPAREN || t == token.RBRACK || t == token.RBRACE {
			if !operand {
				break
			}
			depth++
		} else if t == token.PERIOD {
			if i == len(list) {
				break
			}
		} else if !(t == token.IDENT || t == token.STRING || t == token.INT || t == token.FLOAT) || !operand {
			break
		}
		i--
	}
	return expression(head, list[i:])
}

// literalType returns how to parse the type of the composite literal around the
// end of the list, if a field name may stand there; nil if not.
func literalType(list []lexeme, from int) func(head string) ast.Expr {
	for len(list) > 0 && list[len(list)-1].start >= from {
		list = list[:len(list)-1]
	}
	n := len(list)
	if n < 2 || list[n-1].tok != token.LBRACE && list[n-1].tok != token.COMMA {
		return nil
	}
	depth := 0
	for i := n - 1; i > 0; i-- {
		switch list[i].tok {
		case token.RPAREN, token.RBRACK, token.RBRACE:
			depth++
		case token.LPAREN, token.LBRACK:
			if depth--; depth < 0 {
				return nil
			}
		case token.SEMICOLON:
			if depth == 0 && list[i].start != list[i].end {
				return nil
			}
		case token.LBRACE:
			if depth--; depth < 0 {
				if t := list[i-1].tok; t != token.IDENT && t != token.COMMA && t != token.LBRACE {
					return nil
				}
				k := i // of the outermost literal whose type is written: []T{{
				for k > 1 && (list[k-1].tok == token.LBRACE || list[k-1].tok == token.COMMA) {
					d := 0
					for k--; k > 0; k-- {
						if t := list[k].tok; t == token.RBRACE {
							d++
						} else if t == token.LBRACE {
							if d == 0 {
								break
							}
							d--
						}
					}
				}
				end := list[k].start
				return func(head string) ast.Expr { return typeAt(head[:end]) }
			}
		}
	}
	return nil
}

// expression parses what lexemes of a text make; nil if that is no expression.
func expression(head string, list []lexeme) ast.Expr {
	if len(list) == 0 {
		return nil
	}
	e, err := parser.ParseExpr(head[list[0].start:list[len(list)-1].end])
	if err != nil {
		return nil
	}
	return e
}

// typeAt parses the type that ends a text: []pkg.T of x := []pkg.T.
func typeAt(head string) ast.Expr {
	list := lexemes(head)
	if n := len(list); n > 0 && list[n-1].tok == token.SEMICOLON {
		list = list[:n-1]
	}
	i := len(list)
	for i > 0 && isOneOf(list[i-1].tok, []token.Token{token.IDENT, token.PERIOD, token.LBRACK, token.RBRACK, token.INT, token.MUL, token.MAP}) {
		if i < len(list) && list[i-1].tok == token.IDENT && list[i].tok == token.IDENT {
			break
		}
		i--
	}
	return expression(head, list[i:])
}

func fieldNames(t xreflect.Type) map[string]bool {
	names := map[string]bool{}
	if t.Kind() != reflect.Struct {
		return names
	}
	compiled := t.PkgPath() != "" && t.PkgPath() != "main" && t.PkgPath() != "fast"
	for i := 0; i < t.NumField(); i++ {
		if f := t.Field(i); f.Name != "" && f.Name != "_" && (!compiled || token.IsExported(f.Name)) {
			names[f.Name] = true
		}
	}
	return names
}
