package source

import (
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"
	"strings"
)

// item is one top-level declaration or statement of a notebook text.
type item struct {
	src   string // the synthetic file that was parsed
	file  *token.File
	decl  ast.Decl // nil if it is a statement
	stmt  ast.Stmt // nil if it is a declaration
	names []*ast.Ident
	// names are set, and decl and stmt nil, if the text is not Go but seems to
	// declare these names, as a macro call may.
}

// text returns the source between two positions of the item.
func (it *item) text(from, to token.Pos) string {
	return it.src[it.file.Offset(from):it.file.Offset(to)]
}

// splitItems cuts notebook text into its top-level items and parses each on its
// own, so that one that is not Go does not hide the others.
func splitItems(name string, line int, text string) []item {
	text = blankCommands(text)
	var sc scanner.Scanner
	f := token.NewFileSet().AddFile("", -1, len(text))
	// An error here is one of a text that is not Go; parsing the item tells.
	sc.Init(f, []byte(text), func(token.Position, string) {}, 0)
	type tok struct {
		t   token.Token
		lit string
	}
	var items []item
	var toks []tok
	start, end, depth := -1, 0, 0
	flush := func() {
		if start < 0 {
			return
		}
		at := f.Position(f.Pos(start))
		column := at.Column
		it, ok := parseItem(name, line+at.Line-1, column, text[start:end], toks[0].t)
		if !ok {
			ts := toks
			for len(ts) > 0 && (ts[0].t == token.FUNC || ts[0].t == token.VAR || ts[0].t == token.CONST || ts[0].t == token.TYPE) {
				ts = ts[1:]
			}
			for i, t := range ts {
				if t.t == token.IDENT {
					it.names = append(it.names, ast.NewIdent(t.lit))
				} else if t.t != token.COMMA || i == 0 {
					break
				}
			}
		}
		items = append(items, it)
		toks, start = nil, -1
	}
	for {
		pos, t, lit := sc.Scan()
		if t == token.EOF {
			end = len(text)
			flush()
			return items
		}
		off := f.Offset(pos)
		switch t {
		case token.LPAREN, token.LBRACE, token.LBRACK:
			depth++
		case token.RPAREN, token.RBRACE, token.RBRACK:
			depth = max(0, depth-1)
		case token.SEMICOLON:
			if depth == 0 {
				end = off
				flush()
				continue
			}
		}
		if start < 0 {
			start = off
		}
		toks = append(toks, tok{t, lit})
	}
}

// blankCommands overwrites kernel commands (%magic, $shell) with spaces: they
// may hold anything. No line of Go begins with these characters.
func blankCommands(text string) string {
	if !strings.ContainsAny(text, "%$") {
		return text
	}
	lines := strings.Split(text, "\n")
	for i, l := range lines {
		if s := strings.TrimLeft(l, " \t"); s != "" && (s[0] == '%' || s[0] == '$') {
			lines[i] = strings.Repeat(" ", len(l))
		}
	}
	return strings.Join(lines, "\n")
}

// parseItem parses text, which begins at line and column of the cell.
func parseItem(name string, line, column int, text string, first token.Token) (item, bool) {
	const declHead, stmtHead = "package p\n", "package p\nfunc _() {\n"
	var heads []string
	switch first {
	case token.IMPORT, token.CONST, token.VAR, token.TYPE:
		heads = []string{declHead}
	case token.FUNC:
		heads = []string{declHead, stmtHead}
	default:
		heads = []string{stmtHead}
	}
	for _, head := range heads {
		src := head + text + "\n"
		if head == stmtHead {
			src += "}\n"
		}
		file, err := parser.ParseFile(fset, name, src, 0)
		if err != nil || len(file.Decls) != 1 {
			continue
		}
		it := item{src: src, file: fset.File(file.Pos()), decl: file.Decls[0]}
		if head == stmtHead {
			body := file.Decls[0].(*ast.FuncDecl).Body.List
			if len(body) != 1 {
				continue
			}
			it.decl, it.stmt = nil, body[0]
		}
		it.file.AddLineColumnInfo(len(head), name, line, column)
		return it, true
	}
	return item{}, false
}

// reassigned calls add for every name that is not local to the item and that
// the item assigns, or takes the address of, somewhere inside a block or a
// function: then its value does not tell which text it has.
func (it *item) reassigned(add func(*ast.Ident)) {
	var root ast.Node = it.decl
	if it.stmt != nil {
		root = it.stmt
	} else if it.decl == nil {
		return
	}
	global := func(x ast.Expr) {
		if id, ok := ast.Unparen(x).(*ast.Ident); ok && id.Obj == nil && id.Name != "_" {
			add(id)
		}
	}
	ast.Inspect(root, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.AssignStmt:
			if n.Tok == token.ASSIGN && n != root {
				for _, x := range n.Lhs {
					global(x)
				}
			}
		case *ast.RangeStmt:
			if n.Tok == token.ASSIGN {
				global(n.Key)
				if n.Value != nil {
					global(n.Value)
				}
			}
		case *ast.UnaryExpr:
			if n.Op == token.AND {
				global(n.X)
			}
		}
		return true
	})
}
