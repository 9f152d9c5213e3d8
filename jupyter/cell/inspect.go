package cell

import (
	"fmt"
	"reflect"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/cosmos72/gomacro/fast"
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

// Completions returns the names that may stand at the cursor, and the part of
// the code that they replace. Cursors count characters.
func (s *Session) Completions(code string, cursor int) (names []string, start, end int) {
	off := byteOffset(code, cursor)
	end = utf8.RuneCountInString(code[:off])
	start = end
	defer func() {
		if recover() != nil {
			names, start = nil, end
		}
	}()
	head, names, _ := s.ir.CompleteWords(code[:off], off)
	return names, utf8.RuneCountInString(head), end
}

// Describe says what the name at the cursor stands for: its kind, type, and
// for a basic constant or variable its value.
func (s *Session) Describe(code string, cursor int) (text string, found bool) {
	defer func() {
		if recover() != nil {
			text, found = "", false
		}
	}()
	path := pathAt(code, byteOffset(code, cursor))
	if path == nil {
		return "", false
	}
	if text, found = s.declaration(path); !found || len(path) > 1 {
		return text, found
	}
	if v, ok := s.Lookup(path[0]); ok && v.CanInterface() {
		switch k := v.Kind().String(); {
		case strings.HasPrefix(k, "int"), strings.HasPrefix(k, "uint"), strings.HasPrefix(k, "float"),
			strings.HasPrefix(k, "complex"), k == "bool":
			text += fmt.Sprintf(" = %v", v)
		}
	}
	return text, true
}

// declaration says what a dotted name was declared as.
func (s *Session) declaration(path []string) (text string, found bool) {
	c := s.ir.Comp
	sym := c.TryResolve(path[0])
	if sym == nil {
		if t := c.TryResolveType(path[0]); t != nil && len(path) == 1 {
			return fmt.Sprintf("type %s %v", path[0], t), true
		}
		return "", false
	}
	if imp, ok := sym.Bind.Value.(*fast.Import); ok {
		if len(path) == 1 {
			return fmt.Sprintf("package %s %q", imp.Name, imp.Path), true
		}
		if b := imp.Binds[path[1]]; b != nil && len(path) == 2 {
			return describe(strings.Join(path, "."), b), true
		}
		if t := imp.Types[path[1]]; t != nil && len(path) == 2 {
			return fmt.Sprintf("type %s %v", strings.Join(path, "."), t.Kind()), true
		}
		return "", false
	}
	if len(path) > 1 {
		return s.describeMember(sym, path)
	}
	return describe(path[0], &sym.Bind), true
}

// receiverOf is how gomacro begins the type of a method: func (T).(
var receiverOf = regexp.MustCompile(`^func \([^()]*\)\.\(`)

func (s *Session) describeMember(sym *fast.Symbol, path []string) (string, bool) {
	t := sym.Bind.Type
	for i, name := range path[1:] {
		field, isField, method, isMethod, err := s.ir.Comp.TryLookupFieldOrMethod(t, name)
		if err == nil && !isField && !isMethod && t.Kind() == reflect.Ptr {
			// gomacro keeps the methods of a pointer with what it points to.
			field, isField, method, isMethod, err = s.ir.Comp.TryLookupFieldOrMethod(t.Elem(), name)
		}
		last := i == len(path)-2
		switch {
		case err != nil:
			return "", false
		case isField && last:
			return fmt.Sprintf("field %s %v", strings.Join(path, "."), field.Type), true
		case isField:
			t = field.Type
		case isMethod && last:
			text := receiverOf.ReplaceAllString(fmt.Sprint(method.Type), "func(")
			return fmt.Sprintf("method %s %s", strings.Join(path, "."), text), true
		default:
			return "", false
		}
	}
	return "", false
}

func describe(name string, b *fast.Bind) string {
	kind := "var"
	switch b.Desc.Class() {
	case fast.ConstBind:
		kind = "const"
	case fast.FuncBind:
		kind = "func"
	}
	return fmt.Sprintf("%s %s %v", kind, name, b.Type)
}

// pathAt returns the dotted name around a byte offset.
func pathAt(code string, off int) []string {
	part := func(r rune) bool { return r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r) }
	end := off
	for end < len(code) {
		r, n := utf8.DecodeRuneInString(code[end:])
		if !part(r) {
			break
		}
		end += n
	}
	start := off
	for start > 0 {
		r, n := utf8.DecodeLastRuneInString(code[:start])
		if !part(r) && r != '.' {
			break
		}
		start -= n
	}
	path := strings.Split(code[start:end], ".")
	for _, p := range path {
		if p == "" || unicode.IsDigit(rune(p[0])) {
			return nil
		}
	}
	return path
}
