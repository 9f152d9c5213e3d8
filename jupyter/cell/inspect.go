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
	Source       string // of a function or type declared in a cell, with the comment above it; of a type its methods, too
	Name         string // of a variable of the notebook, "" if it is none
}

// Describe says what the name at the cursor stands for or, between names, the
// function around whose arguments the cursor is. Cursors count characters.
//
// It may be called while a cell runs. Then values that the cell may be changing
// are left out.
func (s *Session) Describe(code string, cursor int) (d Description, found bool) {
	s.compiling.Lock()
	defer s.compiling.Unlock()
	defer func() {
		if recover() != nil {
			d, found = Description{}, false
		}
		d.Text = shortTypes(d.Text)
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
	for _, l := range lexemes(code[:end]) {
		if l.end == end && l.start <= off && l.tok.IsKeyword() {
			return Description{Text: keywordUse[l.text]}, true
		}
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
			if strings.HasPrefix(d.Text, "type ") {
				d.Text = ""
			}
		}
		if v, ok := s.lookup(e.Name); ok && v.CanInterface() {
			d.Name = e.Name
			d.Text += valueText(v, s.running.Load())
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
			} else if x := list[0]; d.Source == "" {
				for x.Kind() == reflect.Ptr || x.Kind() == reflect.Slice || x.Kind() == reflect.Array || x.Kind() == reflect.Map {
					x = x.Elem()
				}
				if x.Named() {
					d.Source = s.typeSource(x.Name())
				}
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

// maxValue is the length of a value that is shown whole beside its name.
const maxValue = 200

// valueText is what stands behind the declaration of a variable. While a cell
// runs only values are read that cannot be half changed.
func valueText(v reflect.Value, running bool) string {
	switch k := v.Kind(); {
	case k >= reflect.Bool && k <= reflect.Complex128:
		return fmt.Sprintf(" = %v", v)
	case k == reflect.String:
		if text := v.String(); len(text) > maxValue {
			return fmt.Sprintf(", len %d, = %q...", v.Len(), strings.ToValidUTF8(text[:maxValue], ""))
		}
		return fmt.Sprintf(" = %q", v)
	case (k == reflect.Ptr || k == reflect.Interface || k == reflect.Map || k == reflect.Slice || k == reflect.Func || k == reflect.Chan) && v.IsNil():
		return " = nil"
	case k == reflect.Slice || k == reflect.Map || k == reflect.Chan || k == reflect.Array:
		text := fmt.Sprintf(", len %d", v.Len())
		if k == reflect.Chan {
			return text + fmt.Sprintf(" of %d", v.Cap())
		}
		if whole := plain(v, running); whole != "" {
			text += ", = " + whole
		}
		return text
	case k == reflect.Struct:
		if whole := plain(v, running); whole != "" {
			return " = " + whole
		}
	case k == reflect.Interface && !running:
		if err, ok := v.Interface().(error); ok {
			return fmt.Sprintf(" = %.*q", maxValue, err.Error())
		}
		return fmt.Sprintf(" = %v", v.Elem().Type()) + valueText(v.Elem(), running)
	}
	return ""
}

// plain is a short value of plain parts, "" for another.
func plain(v reflect.Value, running bool) string {
	if running || countParts(v, maxValue/2) < 0 {
		return ""
	}
	if text := PlainTypes(fmt.Sprintf("%+v", v.Interface())); len(text) <= maxValue {
		return text
	}
	return ""
}

// countParts counts the numbers and texts in a value; -1 for more than n or for what is not plain.
func countParts(v reflect.Value, n int) int {
	sum := 0
	add := func(v reflect.Value) bool {
		k := countParts(v, n-sum)
		sum += k
		return k >= 0 && sum <= n
	}
	switch k := v.Kind(); {
	case k >= reflect.Bool && k <= reflect.Complex128, k == reflect.String:
		return 1
	case k == reflect.Slice || k == reflect.Array:
		if v.Len() > n {
			return -1
		}
		for i := 0; i < v.Len(); i++ {
			if !add(v.Index(i)) {
				return -1
			}
		}
	case k == reflect.Struct:
		for i := 0; i < v.NumField(); i++ {
			if !add(v.Field(i)) {
				return -1
			}
		}
	case k == reflect.Map:
		if v.Len() > n {
			return -1
		}
		for _, key := range v.MapKeys() {
			if !add(key) || !add(v.MapIndex(key)) {
				return -1
			}
		}
	case (k == reflect.Ptr || k == reflect.Interface) && v.IsNil():
		return 1
	default:
		return -1
	}
	return sum
}

// longPath is the path in front of a package's name, which stands in types of the interpreter.
var longPath = regexp.MustCompile(`(?:[\w.~-]+/)+(\w+\.)|\bmain\.`)

// shortTypes writes types as programs do: *gpukit.Device, Point.
func shortTypes(text string) string {
	first, rest, more := strings.Cut(text, "\n")
	if !strings.HasPrefix(first, "package ") {
		first = longPath.ReplaceAllString(first, "$1")
	}
	if more {
		first += "\n" + rest
	}
	return PlainTypes(first)
}

// keywordUse says how a keyword is used.
var keywordUse = map[string]string{
	"break":       "break        leaves the innermost for, switch or select\nbreak Label  the one with the label",
	"case":        "case a, b:   a branch of a switch (values, or types) or of a select (a channel operation)",
	"chan":        "chan T       a channel of T; chan<- T only to send, <-chan T only to receive\nch := make(chan int, 3)",
	"const":       "const name = value\nconst (\n\tA = iota // 0\n\tB        // 1\n)",
	"continue":    "continue        begins the next round of the innermost for\ncontinue Label  of the one with the label",
	"default":     "default:     the branch of a switch or select that is taken if no other is",
	"defer":       "defer f(x)   calls f when the function around it returns; x is computed now",
	"else":        "if condition { } else { }\nif condition { } else if other { }",
	"fallthrough": "fallthrough  goes on with the next case of a switch",
	"for":         "for i := 0; i < n; i++ { }\nfor condition { }\nfor { }\nfor index, element := range list { }\nfor key, value := range table { }",
	"func":        "func name(a, b float64, rest ...int) (result float64, err error) { }\nfunc (r Receiver) Method() { }\nf := func(x float64) float64 { return x }",
	"go":          "go f(x)      calls f at the same time as what follows",
	"goto":        "goto Label",
	"if":          "if condition { }\nif err := f(); err != nil { } else { }",
	"import":      "import \"path\"\nimport name \"path\"\nimport (\"fmt\"; \"gpunotes/gpukit\")",
	"interface":   "type Shape interface { Area() float64 }\ninterface{}  any value",
	"map":         "map[K]V      a table from K to V\ntable := map[string]int{\"a\": 1}\nvalue, present := table[\"a\"]\ndelete(table, \"a\")",
	"package":     "package name  begins a file; a cell needs none",
	"range":       "for index, element := range list { }\nfor key, value := range table { }\nfor value := range channel { }",
	"return":      "return a, b",
	"select":      "select {\ncase x := <-ch:\ncase out <- y:\ndefault:\n}",
	"struct":      "type Point struct {\n\tX, Y float64\n}\np := Point{X: 1, Y: 2}",
	"switch":      "switch x {\ncase 1, 2:\ndefault:\n}\nswitch { case x < 0: }\nswitch v := x.(type) { case int: }",
	"type":        "type Name T  a new type\ntype Name = T  another name for T",
	"var":         "var x, y float64\nvar x = 1.5\nx := 1.5  the same",
}

// sourceOf returns the text of a function or type declared in a cell, with its
// comment; behind a type stand the heads of its methods.
func (s *Session) sourceOf(name string) string {
	if sym := s.ir.Comp.TryResolve(name); sym == nil && s.ir.Comp.TryResolveType(name) != nil {
		return s.typeSource(name)
	}
	for _, f := range slices.Backward(s.funcs) {
		if f.name != name {
			continue
		}
		for _, src := range slices.Backward(s.cells) {
			from, to := src.offset(f.start), src.offset(f.end)
			if src.cell != f.cell || from < 0 || to < from || to > len(src.code) {
				continue
			}
			return commentAbove(src.code, from) + src.code[from:to]
		}
	}
	return ""
}

// typeSource finds the latest declaration of a type in the cells.
func (s *Session) typeSource(name string) string {
	text := ""
	var methods []string
	for _, src := range slices.Backward(s.cells) {
		list := lexemes(src.code)
		depth, group, found := 0, -1, 0
		for i, l := range list {
			switch l.tok {
			case token.LPAREN, token.LBRACE, token.LBRACK:
				depth++
			case token.RPAREN, token.RBRACE, token.RBRACK:
				if depth--; depth < group {
					group = -1
				}
			case token.FUNC:
				if depth == 0 {
					if head := methodHead(src.code, list[i:], name); head != "" {
						methods = slices.Insert(methods, found, head)
						found++
					}
				}
			case token.TYPE:
				if depth == 0 && i+1 < len(list) && list[i+1].tok == token.LPAREN {
					group = 1
				}
			case token.IDENT:
				if l.text != name || i == 0 {
					continue
				}
				before := list[i-1]
				single := before.tok == token.TYPE && depth == 0
				if !single && !(group == 1 && depth == 1 && (before.tok == token.LPAREN || before.tok == token.SEMICOLON)) {
					continue
				}
				from := l.start
				if single {
					from = before.start
				}
				end := until(list, i, token.SEMICOLON)
				text = commentAbove(src.code, from) + src.code[from:list[end-1].end]
				if !single {
					text = commentAbove(src.code, from) + "type " + src.code[from:list[end-1].end]
				}
			}
		}
		if text != "" {
			break
		}
	}
	if text != "" && len(methods) > 0 {
		text += "\n\n" + strings.Join(methods, "\n")
	}
	return text
}

// methodHead returns the head of the method of a type that begins a list of lexemes.
func methodHead(code string, list []lexeme, name string) string {
	if len(list) < 4 || list[1].tok != token.LPAREN {
		return ""
	}
	end := until(list, 2) // of the receiver
	if end >= len(list) || list[end-1].text != name {
		return ""
	}
	body := until(list, end+1, token.LBRACE, token.SEMICOLON)
	for body < len(list) && body+1 < len(list) && list[body].tok == token.LBRACE && isOneOf(list[body-1].tok, []token.Token{token.INTERFACE, token.STRUCT}) {
		body = until(list, until(list, body+1)+1, token.LBRACE, token.SEMICOLON)
	}
	return code[list[0].start:list[body-1].end]
}

// commentAbove returns the lines of comment that end right above a place.
func commentAbove(code string, at int) string {
	lines := strings.Split(code[:at], "\n")
	first := len(lines) - 1 // of the declaration itself
	for first > 0 && strings.HasPrefix(strings.TrimSpace(lines[first-1]), "//") {
		first--
	}
	if comment := strings.Join(lines[first:len(lines)-1], "\n"); comment != "" {
		return comment + "\n"
	}
	return ""
}

// declaration says what a dotted name was declared as.
func (s *Session) declaration(path []string) (text string, found bool) {
	c := s.ir.Comp
	sym := c.TryResolve(path[0])
	if sym == nil {
		if t := c.TryResolveType(path[0]); t != nil && len(path) == 1 {
			under := fmt.Sprint(t.Kind())
			if under == "struct" || under == "interface" || under == "func" || fmt.Sprint(t) == path[0] {
				return "type " + path[0], true // its source says more
			}
			return fmt.Sprintf("type %s %v", path[0], t.ReflectType().Kind()), true
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
	if kind == "const" && b.Lit.Untyped() {
		return fmt.Sprintf("const %s untyped %v", name, b.Lit.DefaultType())
	}
	return fmt.Sprintf("%s %s %v", kind, name, b.Type)
}
