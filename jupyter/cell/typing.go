package cell

import (
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"
	"reflect"
	"strconv"
	"strings"

	"github.com/cosmos72/gomacro/fast"
	"github.com/cosmos72/gomacro/imports"
	"github.com/cosmos72/gomacro/xreflect"
)

// A local is a name declared in the text of a cell that need not have run.
type local struct {
	value  ast.Expr // what it is set to, or its type if that is set
	typ    bool
	result int  // which result of value it is
	ranged bool // it is the key (result 0) or the element (1) of value
}

// token of a cell, with its bytes.
type lexeme struct {
	tok        token.Token
	text       string
	start, end int
}

// lexemes splits code that may be unfinished.
func lexemes(code string) (list []lexeme) {
	var s scanner.Scanner
	set := token.NewFileSet()
	file := set.AddFile("", set.Base(), len(code))
	s.Init(file, []byte(code), func(token.Position, string) {}, 0)
	for {
		pos, tok, text := s.Scan()
		if tok == token.EOF {
			return list
		}
		start := file.Offset(pos)
		n := len(text)
		if text == "" {
			text = tok.String()
			n = len(text)
		}
		if tok == token.SEMICOLON && text == "\n" {
			n = 0
		}
		list = append(list, lexeme{tok, text, start, min(start+n, len(code))})
	}
}

// until returns the index of the lexeme that ends the expression at i: one of
// the given ones, outside brackets.
func until(list []lexeme, i int, ends ...token.Token) int {
	depth := 0
	for ; i < len(list); i++ {
		switch t := list[i].tok; {
		case depth == 0 && isOneOf(t, ends):
			return i
		case t == token.LPAREN || t == token.LBRACK || t == token.LBRACE:
			depth++
		case t == token.RPAREN || t == token.RBRACK || t == token.RBRACE:
			if depth--; depth < 0 {
				return i
			}
		}
	}
	return i
}

func isOneOf(t token.Token, list []token.Token) bool {
	for _, x := range list {
		if t == x {
			return true
		}
	}
	return false
}

// locals finds what code declares, by its look: short declarations, var, and
// the parameters of functions. A later declaration hides an earlier one. It
// also returns the imports.
func locals(code string) (names map[string]local, packages map[string]string) {
	names, packages = map[string]local{}, map[string]string{}
	list := lexemes(code)
	text := func(i, j int) string {
		if i >= j || i >= len(list) {
			return ""
		}
		return code[list[i].start:list[j-1].end]
	}
	params := func(fields *ast.FieldList) {
		if fields == nil {
			return
		}
		for _, f := range fields.List {
			t := f.Type
			if e, ok := t.(*ast.Ellipsis); ok {
				t = &ast.ArrayType{Elt: e.Elt}
			}
			for _, id := range f.Names {
				names[id.Name] = local{value: t, typ: true}
			}
		}
	}
	for i := range list {
		switch list[i].tok {
		case token.DEFINE:
			var ids []string
			for j := i - 1; j >= 0 && list[j].tok == token.IDENT; j -= 2 {
				ids = append([]string{list[j].text}, ids...)
				if j == 0 || list[j-1].tok != token.COMMA {
					break
				}
			}
			from, ranged := i+1, false
			if from < len(list) && list[from].tok == token.RANGE {
				from, ranged = from+1, true
			}
			end := until(list, from, token.SEMICOLON)
			if ranged {
				end = until(list, from, token.SEMICOLON, token.LBRACE)
			}
			for n := 0; n < len(ids); n++ {
				to := until(list[:end], from, token.COMMA)
				e, err := parser.ParseExpr(text(from, to))
				if err == nil && !ranged && to < end && len(ids) > 1 {
					names[ids[n]] = local{value: e}
					from = to + 1
					continue
				}
				if err == nil && (ranged || n == 0) {
					for r, id := range ids[n:] {
						names[id] = local{value: e, result: r, ranged: ranged}
					}
				} else if err == nil {
					names[ids[n]] = local{value: e}
				}
				break
			}
		case token.VAR:
			if i+2 < len(list) && list[i+1].tok == token.IDENT {
				end := until(list, i+2, token.SEMICOLON, token.ASSIGN)
				if t, err := parser.ParseExpr(text(i+2, end)); err == nil {
					names[list[i+1].text] = local{value: t, typ: true}
				} else if end < len(list) && list[end].tok == token.ASSIGN {
					if e, err := parser.ParseExpr(text(end+1, until(list, end+1, token.SEMICOLON))); err == nil {
						names[list[i+1].text] = local{value: e}
					}
				}
			}
		case token.FUNC:
			j := i + 1
			if j < len(list) && list[j].tok == token.LPAREN { // a receiver, or the parameters of a literal
				end := until(list, j+1)
				if t, err := parser.ParseExpr("func" + text(j, min(end+1, len(list)))); err == nil {
					if t, ok := t.(*ast.FuncType); ok {
						params(t.Params)
					}
				}
				j = end + 1
			}
			if j+1 < len(list) && list[j].tok == token.IDENT && list[j+1].tok == token.LPAREN {
				end := until(list, j+2)
				if t, err := parser.ParseExpr("func" + text(j+1, min(end+1, len(list)))); err == nil {
					if t, ok := t.(*ast.FuncType); ok {
						params(t.Params)
					}
				}
			}
		case token.IMPORT:
			for j := i + 1; j < len(list) && j < i+200; j++ {
				if l := list[j]; l.tok == token.STRING {
					if path, err := strconv.Unquote(l.text); err == nil {
						name := packageName(path)
						if list[j-1].tok == token.IDENT {
							name = list[j-1].text
						}
						packages[name] = path
					}
				}
				if list[j].tok == token.RPAREN || list[i+1].tok != token.LPAREN && list[j].tok == token.SEMICOLON {
					break
				}
			}
		}
	}
	return names, packages
}

// packageName is how programs call the package of an import path.
func packageName(path string) string {
	if p, ok := imports.Packages[path]; ok && p.Name != "" {
		return p.Name
	}
	return path[strings.LastIndexByte(path, '/')+1:]
}

// typing finds out the types of expressions without running or compiling them.
type typing struct {
	s        *Session
	names    map[string]local
	packages map[string]string
	depth    int
}

// results returns the types that an expression gives, nil if that is not known.
func (t *typing) results(e ast.Expr) []xreflect.Type {
	if t.depth++; t.depth > 50 {
		return nil
	}
	defer func() { t.depth-- }()
	one := func(x xreflect.Type) []xreflect.Type {
		if x == nil {
			return nil
		}
		return []xreflect.Type{x}
	}
	first := func(e ast.Expr) xreflect.Type {
		if list := t.results(e); len(list) > 0 {
			return list[0]
		}
		return nil
	}
	c := t.s.ir.Comp
	switch e := e.(type) {
	case *ast.ParenExpr:
		return t.results(e.X)
	case *ast.BasicLit:
		switch e.Kind {
		case token.INT:
			return one(c.TypeOf(0))
		case token.FLOAT:
			return one(c.TypeOf(0.0))
		case token.STRING:
			return one(c.TypeOf(""))
		}
	case *ast.Ident:
		if l, ok := t.names[e.Name]; ok && l.value != e {
			delete(t.names, e.Name) // x := x + 1 means another x
			defer func() { t.names[e.Name] = l }()
			if l.typ {
				return one(t.typeExpr(l.value))
			}
			list := t.results(l.value)
			if l.ranged && len(list) == 1 {
				return one(elementOf(c, list[0], l.result))
			}
			if l.result < len(list) {
				return list[l.result : l.result+1]
			}
			return nil
		}
		if sym := c.TryResolve(e.Name); sym != nil && sym.Bind.Type != nil {
			return one(sym.Bind.Type)
		}
	case *ast.SelectorExpr:
		if imp, binds := t.packageOf(e.X); imp != "" {
			if b, ok := binds[e.Sel.Name]; ok {
				return one(typeOfBind(c, b))
			}
			return nil
		}
		x := first(e.X)
		if x == nil {
			return nil
		}
		if m := member(c, x, e.Sel.Name); m.typ != nil {
			return one(m.typ)
		}
	case *ast.CallExpr:
		if id, ok := e.Fun.(*ast.Ident); ok && len(e.Args) > 0 {
			switch id.Name {
			case "make":
				return one(t.typeExpr(e.Args[0]))
			case "new":
				if x := t.typeExpr(e.Args[0]); x != nil {
					return one(c.Universe.PtrTo(x))
				}
				return nil
			case "append":
				return t.results(e.Args[0])
			case "len", "cap":
				return one(c.TypeOf(0))
			}
		}
		f := first(e.Fun)
		if f == nil || f.Kind() != reflect.Func {
			return one(t.typeExpr(e.Fun)) // a conversion
		}
		var list []xreflect.Type
		for i := 0; i < f.NumOut(); i++ {
			list = append(list, f.Out(i))
		}
		return list
	case *ast.CompositeLit:
		return one(t.typeExpr(e.Type))
	case *ast.FuncLit:
		return one(t.typeExpr(e.Type))
	case *ast.UnaryExpr:
		x := first(e.X)
		switch {
		case x == nil:
		case e.Op == token.AND:
			return one(c.Universe.PtrTo(x))
		case e.Op == token.ARROW && x.Kind() == reflect.Chan:
			return one(x.Elem())
		case e.Op != token.ARROW:
			return one(x)
		}
	case *ast.StarExpr:
		if x := first(e.X); x != nil && x.Kind() == reflect.Ptr {
			return one(x.Elem())
		}
	case *ast.IndexExpr:
		if x := first(e.X); x != nil {
			return one(elementOf(c, x, 1))
		}
	case *ast.SliceExpr:
		return one(first(e.X))
	case *ast.TypeAssertExpr:
		return one(t.typeExpr(e.Type))
	case *ast.BinaryExpr:
		return one(first(e.X))
	}
	return nil
}

// typeExpr returns the type that an expression names.
func (t *typing) typeExpr(e ast.Expr) (x xreflect.Type) {
	defer func() {
		if recover() != nil {
			x = nil
		}
	}()
	if e == nil {
		return nil
	}
	c := t.s.ir.Comp
	if sel, ok := e.(*ast.SelectorExpr); ok {
		if path, _ := t.packageOf(sel.X); path != "" {
			if rt, ok := imports.Packages[path].Types[sel.Sel.Name]; ok {
				return c.Universe.FromReflectType(rt)
			}
			return nil
		}
	}
	if star, ok := e.(*ast.StarExpr); ok {
		if x := t.typeExpr(star.X); x != nil {
			return c.Universe.PtrTo(x)
		}
		return nil
	}
	return c.Type(e)
}

// packageOf returns the import path and the symbols of the package that an
// expression names, "" if it does not name one.
func (t *typing) packageOf(e ast.Expr) (path string, binds map[string]reflect.Value) {
	id, ok := e.(*ast.Ident)
	if !ok {
		return "", nil
	}
	if _, hidden := t.names[id.Name]; hidden {
		return "", nil
	}
	path = t.s.packagePath(id.Name, t.packages)
	return path, imports.Packages[path].Binds
}

// packagePath returns the import path of the package that is called name: as it
// was imported, as the cell imports it, or as it would be.
func (s *Session) packagePath(name string, packages map[string]string) string {
	if sym := s.ir.Comp.TryResolve(name); sym != nil {
		if imp, ok := sym.Bind.Value.(*fast.Import); ok {
			return imp.Path
		}
		return ""
	}
	if path, ok := packages[name]; ok {
		return path
	}
	best := ""
	for path := range imports.Packages {
		if packageName(path) == name && path != guardPath && (best == "" || len(path) < len(best) || len(path) == len(best) && path < best) {
			best = path
		}
	}
	return best
}

func typeOfBind(c *fast.Comp, v reflect.Value) xreflect.Type {
	if !v.IsValid() {
		return nil
	}
	return c.Universe.FromReflectType(v.Type())
}

// elementOf is the type of the key (0) or the element (1) of what can be ranged over.
func elementOf(c *fast.Comp, x xreflect.Type, which int) xreflect.Type {
	if x.Kind() == reflect.Ptr && x.Elem().Kind() == reflect.Array {
		x = x.Elem()
	}
	switch x.Kind() {
	case reflect.Slice, reflect.Array:
		if which == 1 {
			return x.Elem()
		}
		return c.TypeOf(0)
	case reflect.String:
		if which == 1 {
			return c.TypeOf('a')
		}
		return c.TypeOf(0)
	case reflect.Map:
		if which == 1 {
			return x.Elem()
		}
		return x.Key()
	case reflect.Chan:
		return x.Elem()
	}
	return nil
}

// found is a field or a method.
type found struct {
	typ    xreflect.Type
	method bool
	owner  reflect.Type // the type that has it, without pointer
	inner  bool         // owner is compiled
}

// member looks for a field or a method of a type or of what it points to.
func member(c *fast.Comp, t xreflect.Type, name string) (m found) {
	defer func() {
		if recover() != nil {
			m = found{}
		}
	}()
	field, isField, method, isMethod, err := c.TryLookupFieldOrMethod(t, name)
	if err == nil && !isField && !isMethod && t.Kind() == reflect.Ptr {
		// gomacro keeps the methods of a pointer with what it points to.
		field, isField, method, isMethod, err = c.TryLookupFieldOrMethod(t.Elem(), name)
	}
	m.owner = t.ReflectType()
	if m.owner.Kind() == reflect.Ptr {
		m.owner = m.owner.Elem()
	}
	m.inner = m.owner.PkgPath() != ""
	switch {
	case err != nil:
	case isField:
		m.typ = field.Type
	case isMethod:
		m.typ, m.method = method.Type, true
		if rt := t.ReflectType(); m.inner {
			if rm, ok := rt.MethodByName(name); ok {
				// Without the receiver, which gomacro leaves in.
				in, out := []reflect.Type{}, []reflect.Type{}
				first := 1
				if rt.Kind() == reflect.Interface {
					first = 0
				}
				for i := first; i < rm.Type.NumIn(); i++ {
					in = append(in, rm.Type.In(i))
				}
				for i := 0; i < rm.Type.NumOut(); i++ {
					out = append(out, rm.Type.Out(i))
				}
				m.typ = c.Universe.FromReflectType(reflect.FuncOf(in, out, rm.Type.IsVariadic()))
			}
		}
	}
	return m
}

// members lists the fields and methods that may stand behind a dot.
func members(t xreflect.Type) map[string]bool {
	names := map[string]bool{}
	add := func(name string) {
		if name != "" && name != "_" && !strings.ContainsAny(name, "\u00b7\U0001d648") {
			names[name] = true
		}
	}
	rt := t.ReflectType()
	for i := 0; i < rt.NumMethod(); i++ {
		add(rt.Method(i).Name)
	}
	if rt.Kind() != reflect.Ptr && rt.Kind() != reflect.Interface {
		for p, i := reflect.PointerTo(rt), 0; i < p.NumMethod(); i++ {
			add(p.Method(i).Name)
		}
	}
	var fields func(t xreflect.Type, depth int)
	fields = func(t xreflect.Type, depth int) {
		if t.Kind() == reflect.Ptr {
			t = t.Elem()
		}
		if t.Named() {
			for i := 0; i < t.NumExplicitMethod(); i++ {
				add(t.Method(i).Name)
			}
		}
		if t.Kind() != reflect.Struct || depth > 4 {
			return
		}
		compiled := t.PkgPath() != "" && t.PkgPath() != "main" && t.PkgPath() != "fast"
		for i := 0; i < t.NumField(); i++ {
			f := t.Field(i)
			if f.Name != "" && (!compiled || token.IsExported(f.Name)) {
				add(f.Name)
			}
			if f.Anonymous {
				fields(f.Type, depth+1)
			}
		}
	}
	func() {
		defer func() { _ = recover() }() // what was found so far is good
		fields(t, 0)
	}()
	return names
}
