package cell

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/cosmos72/gomacro/fast"
	"github.com/cosmos72/gomacro/imports"
)

// A Description says what a name stands for.
type Description struct {
	Text string // kind, name, type, and for a basic constant or variable its value
	// Path and Symbol are the package and the name under which a compiled package
	// documents it: "fmt", "Println"; "net/url", "URL.Query". Of a variable they
	// are those of its type. Both may be "".
	Path, Symbol string
	Source       string // of a function declared in a cell, with the comment above it
	Name         string // of a variable of the notebook, "" if it is none
}

// Describe says what the name at the cursor stands for or, between names, the
// function around whose arguments the cursor is. Cursors count characters.
func (s *Session) Describe(code string, cursor int) (d Description, found bool) {
	defer func() {
		if recover() != nil {
			d, found = Description{}, false
		}
	}()
	off := byteOffset(code, cursor)
	end := off
	for end < len(code) {
		r, n := utf8.DecodeRuneInString(code[end:])
		if r != '_' && !unicode.IsLetter(r) && !unicode.IsDigit(r) {
			break
		}
		end += n
	}
	vars, packages := locals(code)
	t := &typing{s: s, names: vars, packages: packages}
	if e := exprAt(code[:end]); e != nil {
		if d, found = s.describeExpr(t, e); found {
			return d, true
		}
	}
	list := lexemes(code[:off])
	depth := 0
	for i := len(list) - 1; i > 0; i-- {
		switch list[i].tok {
		case token.RPAREN, token.RBRACK, token.RBRACE:
			depth++
		case token.LBRACK, token.LBRACE:
			depth--
		case token.LPAREN:
			if depth--; depth < 0 && list[i-1].tok == token.IDENT {
				if e := exprAt(code[:list[i].start]); e != nil {
					return s.describeExpr(t, e)
				}
			}
		}
	}
	return Description{}, false
}

func (s *Session) describeExpr(t *typing, e ast.Expr) (d Description, found bool) {
	path := dotted(e)
	if len(path) == 1 && predeclared[path[0]] {
		if sym := s.ir.Comp.TryResolve(path[0]); sym == nil || sym.Upn > 0 { // not declared again in a cell
			return Description{Text: path[0], Path: "builtin", Symbol: path[0]}, true
		}
	}
	if len(path) > 0 {
		_, hidden := t.names[path[0]]
		if sym := s.ir.Comp.TryResolve(path[0]); sym != nil || !hidden {
			d.Text, found = s.declaration(path)
		}
	}
	switch e := e.(type) {
	case *ast.Ident:
		if p := s.packagePath(e.Name, t.packages); p != "" && !found {
			if _, hidden := t.names[e.Name]; !hidden {
				return Description{Text: fmt.Sprintf("package %s %q", e.Name, p), Path: p}, true
			}
		} else if p != "" {
			d.Path = p
		}
		if src := s.sourceOf(e.Name); src != "" {
			d.Source = src
		}
		if v, ok := s.Lookup(e.Name); ok && v.CanInterface() {
			d.Name = e.Name
			switch k := v.Kind(); {
			case k >= reflect.Bool && k <= reflect.Complex128:
				d.Text += fmt.Sprintf(" = %v", v)
			case k == reflect.String && v.Len() <= 200:
				d.Text += fmt.Sprintf(" = %q", v)
			case k == reflect.Slice || k == reflect.Map || k == reflect.Chan:
				d.Text += fmt.Sprintf(", len %d", v.Len())
			}
		}
		if !found {
			if list := t.results(e); len(list) == 1 {
				d.Text, found = fmt.Sprintf("var %s %v", e.Name, list[0]), true
			}
		}
		if list := t.results(e); len(list) == 1 && d.Path == "" {
			rt := list[0].ReflectType()
			if rt.Kind() == reflect.Ptr {
				rt = rt.Elem()
			}
			if rt.Name() != "" && rt.PkgPath() != "" {
				d.Path, d.Symbol = rt.PkgPath(), rt.Name()
			}
		}
		return d, found
	case *ast.SelectorExpr:
		if p, binds := t.packageOf(e.X); p != "" {
			d.Path, d.Symbol = p, e.Sel.Name
			if !found {
				full := packageName(p) + "." + e.Sel.Name
				if b, ok := binds[e.Sel.Name]; ok {
					return Description{Text: fmt.Sprintf("%s %s %v", kindOf(b), full, b.Type()), Path: p, Symbol: e.Sel.Name}, true
				} else if rt, ok := imports.Packages[p].Types[e.Sel.Name]; ok {
					return Description{Text: fmt.Sprintf("type %s %v", full, rt.Kind()), Path: p, Symbol: e.Sel.Name}, true
				}
			}
			return d, found
		}
		list := t.results(e.X)
		if len(list) == 0 {
			if x := t.typeExpr(e.X); x != nil {
				list = append(list, x)
			}
		}
		if len(list) == 0 {
			return d, found
		}
		m := member(s.ir.Comp, list[0], e.Sel.Name)
		if m.typ == nil {
			return d, found
		}
		if m.inner {
			d.Path, d.Symbol = m.owner.PkgPath(), m.owner.Name()+"."+e.Sel.Name
		}
		if !found {
			kind := "field"
			if m.method {
				kind = "method"
			}
			d.Text, found = fmt.Sprintf("%s %s %s", kind, e.Sel.Name, receiverOf.ReplaceAllString(fmt.Sprint(m.typ), "func(")), true
		}
	}
	return d, found
}

func kindOf(v reflect.Value) string {
	switch {
	case v.Kind() == reflect.Func:
		return "func"
	case v.CanSet():
		return "var"
	}
	return "const"
}

var predeclared = func() map[string]bool {
	names := map[string]bool{}
	for _, name := range types.Universe.Names() {
		names[name] = true
	}
	return names
}()

// dotted returns the names of a.b.c, nil for another expression.
func dotted(e ast.Expr) []string {
	switch e := e.(type) {
	case *ast.Ident:
		return []string{e.Name}
	case *ast.SelectorExpr:
		if path := dotted(e.X); path != nil {
			return append(path, e.Sel.Name)
		}
	}
	return nil
}

// sourceOf returns the text of a function declared in a cell, with its comment.
func (s *Session) sourceOf(name string) string {
	for _, f := range slices.Backward(s.funcs) {
		if f.name != name {
			continue
		}
		for _, src := range slices.Backward(s.cells) {
			from, to := src.offset(f.start), src.offset(f.end)
			if src.cell != f.cell || from < 0 || to < from || to > len(src.code) {
				continue
			}
			lines := strings.Split(src.code[:from], "\n")
			first := len(lines) - 1 // of the function itself
			for first > 0 && strings.HasPrefix(strings.TrimSpace(lines[first-1]), "//") {
				first--
			}
			comment := strings.Join(lines[first:len(lines)-1], "\n")
			if comment != "" {
				comment += "\n"
			}
			return comment + src.code[from:to]
		}
	}
	return ""
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
