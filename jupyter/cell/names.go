package cell

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/cosmos72/gomacro/fast"
	"github.com/cosmos72/gomacro/imports"
)

// advise adds to the message of a fault what to write instead.
func (l *look) advise(f fault) string {
	line, _ := l.src.position(f.pos)
	hinted := withHint(f.msg, l.src.line(line))
	if cure := l.twoValues(f); cure != "" {
		return f.msg + "\n" + cure
	}
	switch f.code {
	case undeclaredName:
		name := f.msg[strings.LastIndexByte(f.msg, ' ')+1:]
		if hinted != f.msg {
			return hinted
		}
		if cure := l.declaring(name, f.pos); cure != "" {
			return f.msg + "\n" + cure
		}
		return f.msg + "\n" + l.unknown(name, f.pos)
	case undeclaredImportedName:
		x, sel := l.selector(f.pos)
		if sel == nil {
			return f.msg
		}
		path := l.pathOf(x)
		if near := nearest(sel.Name, membersOf(path)); len(near) > 0 {
			return f.msg + "\n" + didYouMean(near, x.(*ast.Ident).Name+".")
		}
		if more := longer(sel.Name, membersOf(path)); len(more) > 0 {
			return f.msg + "\n" + didYouMean(more, x.(*ast.Ident).Name+".")
		}
		return f.msg + fmt.Sprintf("\nthe package %s, as cells see it, has no %s (generic functions and types are missing, and in some packages what is newer than Go 1.17)", path, sel.Name)
	case missingFieldOrMethod:
		if x, sel := l.selector(f.pos); sel != nil && !strings.Contains(f.msg, "but does have") {
			if near := nearest(sel.Name, fieldsAndMethods(l.info.Types[x].Type)); len(near) > 0 {
				return f.msg + "\n" + didYouMean(near, "")
			}
			if cure := l.asCall(x, sel.Name); cure != "" {
				return f.msg + "\n" + cure
			}
		}
		return f.msg
	case notAnExpr:
		if t, _, ok := strings.Cut(f.msg, " (type) is not an expression"); ok {
			return f.msg + fmt.Sprintf("\n%s is a type and no value; ?%s describes it", t, t)
		}
	}
	return hinted
}

// errorBeside are the messages about a call with two results where one belongs.
var errorBeside = regexp.MustCompile(`returns 2 values$|in single-value context$|^too many arguments in call to `)

// twoValues says how to take the error that a call at the place of a fault gives
// beside its value.
func (l *look) twoValues(f fault) (cure string) {
	if !errorBeside.MatchString(f.msg) {
		return ""
	}
	name := "v"
	ast.Inspect(l.tree, func(n ast.Node) bool {
		switch x := n.(type) {
		case *ast.AssignStmt:
			if id, ok := x.Lhs[0].(*ast.Ident); ok && len(x.Lhs) == 1 && len(x.Rhs) == 1 && x.Rhs[0].Pos() == f.pos {
				name = id.Name
			}
		case *ast.CallExpr:
			t, ok := l.info.Types[x].Type.(*types.Tuple)
			if x.Pos() != f.pos || !ok || t.Len() != 2 || !types.Identical(t.At(1).Type(), types.Universe.Lookup("error").Type()) {
				return true
			}
			call := types.ExprString(x.Fun) + "()"
			if len(x.Args) > 0 {
				call = types.ExprString(x.Fun) + "(...)"
			}
			cure = fmt.Sprintf("%s returns an error, too: write %s, err := %s", types.ExprString(x.Fun), name, call)
			if t.At(0).Type().String() == "*gpunotes/gpukit.Array" {
				cure += fmt.Sprintf(", or gpukit.Must(%s), which stops the cell at an error", call)
			} else if name == "v" {
				cure += " in a line of its own"
			}
		}
		return true
	})
	return cure
}

// asCall says which function does what other languages have as a method x.name.
func (l *look) asCall(x ast.Expr, name string) string {
	t := l.info.Types[x].Type
	if t == nil {
		return ""
	}
	text := types.ExprString(x)
	switch u := t.Underlying().(type) {
	case *types.Basic:
		if u.Info()&types.IsString == 0 {
			return ""
		}
		for _, f := range membersOf("strings") {
			if strings.EqualFold(f, name) {
				return l.meant("strings", fmt.Sprintf("%s(%s, ...)", f, text))
			}
		}
	case *types.Slice:
		if slices.Contains([]string{"append", "push", "push_back", "add"}, strings.ToLower(name)) {
			return fmt.Sprintf("write %s = append(%[1]s, x)", text)
		}
	case *types.Array, *types.Map, *types.Chan:
	default:
		return ""
	}
	if slices.Contains([]string{"len", "length", "size", "count"}, strings.ToLower(name)) {
		return fmt.Sprintf("write len(%s)", text)
	}
	return ""
}

// foreign are words of other languages, of CUDA and of numba, and what cells have in their place.
var foreign = map[string]string{
	"None": "nil", "null": "nil", "NULL": "nil", "nullptr": "nil", "float": "float64", "double": "float64", "long": "int64", "str": "fmt.Sprint", "help": "?name",
	"blockIdx": "simt.BlockIdx()", "threadIdx": "simt.ThreadIdx()", "blockDim": "simt.BlockDim()", "gridDim": "simt.GridDim()", "warpSize": "simt.WarpSize",
	"__syncthreads": "simt.SyncThreads", "__syncwarp": "simt.SyncWarp", "atomicAdd": "simt.AddFloat64",
	"cuda.grid": "simt.Grid1", "cuda.blockIdx": "simt.BlockIdx()", "cuda.threadIdx": "simt.ThreadIdx()", "cuda.blockDim": "simt.BlockDim()", "cuda.gridDim": "simt.GridDim()",
	"cuda.syncthreads": "simt.SyncThreads", "cuda.shared": "simt.Shared", "cuda.atomic": "simt.AddFloat64", "cuda.laneid": "simt.LaneID", "cuda.jit": "gpu.Launch",
}

// longer lists members of a package that begin with a name, which may say Atomic as CUDA's do.
func longer(name string, members []string) (list []string) {
	name = strings.ToLower(strings.TrimPrefix(name, "Atomic"))
	for _, m := range members {
		if len(name) > 2 && strings.HasPrefix(strings.ToLower(m), name) {
			list = append(list, m)
		}
	}
	slices.Sort(list)
	return list[:min(len(list), 3)]
}

// owners lists members of the packages that the cell has whose name is the given one, or
// differs from it in upper and lower case only.
func (l *look) owners(name string, same func(a, b string) bool) (list []string) {
	for _, pkg := range l.packageNames() {
		for _, m := range membersOf(l.path(pkg)) {
			if same(m, name) {
				list = append(list, pkg+"."+m)
			}
		}
	}
	slices.Sort(list)
	list = slices.Compact(list)
	return list[:min(len(list), 3)]
}

// declaring says how a name is declared where it looks as if that were meant; "" elsewhere.
func (l *look) declaring(name string, pos token.Pos) (cure string) {
	isType := func(ids []*ast.Ident) bool {
		return slices.ContainsFunc(ids, func(id *ast.Ident) bool {
			_, ok := types.Universe.Lookup(id.Name).(*types.TypeName)
			return ok
		})
	}
	ast.Inspect(l.tree, func(n ast.Node) bool {
		switch x := n.(type) {
		case *ast.AssignStmt:
			for _, e := range x.Lhs {
				if id, ok := e.(*ast.Ident); ok && id.Pos() == pos && x.Tok == token.ASSIGN {
					cure = fmt.Sprintf("to declare it, write %s := ...", name)
					if near := nearest(name, l.variables()); len(near) > 0 {
						cure = didYouMean(near, "") + " " + strings.ToUpper(cure[:1]) + cure[1:]
					}
				}
			}
		case *ast.RangeStmt:
			if x.Tok == token.ASSIGN && (x.Key != nil && x.Key.Pos() == pos || x.Value != nil && x.Value.Pos() == pos) {
				cure = "to declare it, write := before range"
			}
		case *ast.ValueSpec:
			if x.Type != nil && x.Type.Pos() == pos && isType(x.Names) {
				cure = fmt.Sprintf("the type stands behind the name: %s %s", name, x.Names[0].Name)
			}
		case *ast.FuncType:
			for _, p := range x.Params.List {
				if p.Type.Pos() == pos && isType(p.Names) {
					cure = fmt.Sprintf("the type stands behind the name: %s %s", name, p.Names[0].Name)
				} else if id, ok := p.Type.(*ast.Ident); ok && id.Pos() == pos && len(p.Names) == 0 && !token.IsExported(name) && foreign[name] == "" && len(nearest(name, types.Universe.Names())) == 0 {
					cure = fmt.Sprintf("if %s is the name of a parameter, its type stands behind it: %[1]s float64", name)
				}
			}
		}
		return true
	})
	return cure
}

// variables lists the names of variables that the cell sees.
func (l *look) variables() (names []string) {
	for name, b := range l.c.Binds {
		if isVar(b) {
			names = append(names, name)
		}
	}
	for name, obj := range l.declared {
		if _, ok := obj.(*types.Var); ok {
			names = append(names, name)
		}
	}
	for id, obj := range l.info.Defs {
		if _, ok := obj.(*types.Var); ok && id.Name != "_" {
			names = append(names, id.Name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// unknown says what an unknown name may have been meant to be.
func (l *look) unknown(name string, pos token.Pos) string {
	var member string
	if x, sel := l.selector(pos); sel != nil && x.Pos() == pos {
		member = sel.Name
	}
	if member != "" {
		if cure := importCure(name, member); cure != "" {
			return cure
		}
	}
	if line := l.below(name, pos); line > 0 {
		return fmt.Sprintf("it is declared in line %d, below: move the declaration up", line)
	}
	if line := l.ended(name, pos); line > 0 {
		return fmt.Sprintf("%s is declared in line %d, in a block that ends before: declare it before the block", name, line)
	}
	var all, packages []string
	for c := l.c; c != nil; c = c.Outer {
		all = slices.AppendSeq(all, maps.Keys(c.Binds))
		all = slices.AppendSeq(all, maps.Keys(c.Types))
	}
	all = slices.AppendSeq(all, maps.Keys(l.declared))
	ast.Inspect(l.tree, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok && id.Pos() < pos && l.info.Defs[id] != nil {
			all = append(all, id.Name)
		}
		return true
	})
	if l.body == nil {
		all = append(all, l.pkg.Scope().Names()...)
	}
	for path := range imports.Packages {
		if n := packageName(path); member != "" && importable(path) && slices.Contains(membersOf(path), member) {
			packages = append(packages, n)
		}
	}
	if list := l.owners(name, func(a, b string) bool { return a == b }); len(list) > 0 {
		return didYouMean(list, "")
	}
	all = slices.DeleteFunc(all, func(other string) bool {
		path := l.path(other)
		return member != "" && path != "" && !slices.Contains(membersOf(path), member)
	})
	near := nearest(name, all)
	if len(near) == 0 || !strings.EqualFold(near[0], name) {
		if list := l.owners(name, strings.EqualFold); member == "" && len(list) > 0 {
			return didYouMean(list, "")
		}
		for _, name := range []string{name + "." + member, name} {
			if word := foreign[name]; word != "" {
				return didYouMean([]string{word}, "")
			}
		}
	}
	if len(near) > 0 {
		return didYouMean(near, "")
	}
	if near := nearest(name, packages); len(near) > 0 {
		cure := didYouMean(near, "")
		if len(near) == 1 {
			if more := importCure(near[0], member); more != "" {
				cure += " " + more
			}
		}
		return cure
	}
	if list := l.owners(member, strings.EqualFold); member != "" && len(list) > 0 {
		return didYouMean(list, "") // np.linspace
	}
	if list := slices.DeleteFunc(membersOf("math"), func(m string) bool { return !strings.EqualFold(m, name) }); member == "" && len(list) > 0 {
		return l.meant("math", list[0])
	}
	return "nothing that has run declares " + name + ": run the cells above first (after a restart, again)"
}

// packageNames lists what the cell calls packages.
func (l *look) packageNames() (names []string) {
	for name, b := range l.c.Binds {
		if imp, ok := b.Value.(*fast.Import); ok && imp.Path != guardPath {
			names = append(names, name)
		}
	}
	for name, obj := range l.declared {
		if _, ok := obj.(*types.PkgName); ok && l.c.Binds[name] == nil {
			names = append(names, name)
		}
	}
	return names
}

// importCure says how to get a package that was not imported; "" if there is none.
func importCure(name, member string) string {
	var having, all []string
	for path := range imports.Packages {
		if packageName(path) == name && importable(path) {
			all = append(all, strconv.Quote(path))
			if slices.Contains(membersOf(path), member) {
				having = append(having, strconv.Quote(path))
			}
		}
	}
	slices.Sort(having)
	slices.Sort(all)
	switch path, known := missing(name); {
	case len(having) > 0:
		return "import it first: import " + strings.Join(having, " or ")
	case known && len(all) == 0:
		return fmt.Sprintf("the package %q is not compiled into this kernel%s", path, importHint(path))
	case len(all) > 0:
		cure := "import it first: import " + strings.Join(all, " or ")
		for _, path := range all {
			path, _ = strconv.Unquote(path)
			if near := nearest(member, membersOf(path)); len(near) > 0 {
				return cure + "; and " + didYouMean(near, name+".")
			}
		}
		return cure + fmt.Sprintf("; but it has no %s, as cells see it", member)
	}
	return ""
}

// importable reports whether cells are meant to import a package: not those that the
// interpreter consists of.
func importable(path string) bool {
	return path != guardPath && !strings.HasPrefix(path, "github.com/cosmos72/")
}

// below returns the line in which the cell declares a name behind pos, 0 if it does not.
func (l *look) below(name string, pos token.Pos) int {
	for _, node := range l.nodes {
		if node.Pos() <= pos {
			continue
		}
		var ids []*ast.Ident
		switch x := node.(type) {
		case *ast.FuncDecl:
			if x.Recv == nil {
				ids = append(ids, x.Name)
			}
		case *ast.GenDecl:
			ids = declaredBy(x)
		case *ast.AssignStmt:
			for _, e := range x.Lhs {
				if id, ok := e.(*ast.Ident); ok && x.Tok == token.DEFINE {
					ids = append(ids, id)
				}
			}
		}
		for _, id := range ids {
			if line, _ := l.src.position(id.Pos()); id.Name == name && line > 0 {
				return line
			}
		}
	}
	return 0
}

// ended is the line in which a block of the cell that ends before pos declares a name; 0
// if none does.
func (l *look) ended(name string, pos token.Pos) (line int) {
	for _, node := range l.nodes {
		switch node.(type) {
		case ast.Stmt, ast.Decl:
		default:
			continue
		}
		if node.Pos() >= pos {
			continue
		}
		var within []ast.Node
		declares := func(ids ...*ast.Ident) {
			for i := len(within) - 1; i >= 0; i-- {
				switch within[i].(type) {
				case *ast.BlockStmt, *ast.IfStmt, *ast.ForStmt, *ast.RangeStmt, *ast.SwitchStmt, *ast.TypeSwitchStmt, *ast.CaseClause, *ast.CommClause, *ast.FuncDecl, *ast.FuncLit:
				default:
					continue
				}
				for _, id := range ids {
					if id.Name == name && within[i].End() <= pos {
						line, _ = l.src.position(id.Pos())
					}
				}
				return
			}
		}
		ast.Inspect(node, func(n ast.Node) bool {
			if n == nil {
				within = within[:len(within)-1]
				return true
			}
			within = append(within, n)
			var exprs []ast.Expr
			var f *ast.FuncType
			switch x := n.(type) {
			case *ast.AssignStmt:
				if x.Tok == token.DEFINE {
					exprs = x.Lhs
				}
			case *ast.RangeStmt:
				if x.Tok == token.DEFINE {
					exprs = []ast.Expr{x.Key, x.Value}
				}
			case *ast.GenDecl:
				declares(declaredBy(x)...)
			case *ast.FuncDecl:
				f = x.Type
			case *ast.FuncLit:
				f = x.Type
			}
			for _, e := range exprs {
				if id, ok := e.(*ast.Ident); ok {
					declares(id)
				}
			}
			if f != nil {
				for _, field := range f.Params.List {
					declares(field.Names...)
				}
			}
			return true
		})
	}
	return line
}

// selector finds the x.Sel that has one of its names at pos.
func (l *look) selector(pos token.Pos) (x ast.Expr, sel *ast.Ident) {
	ast.Inspect(l.tree, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok && (s.Sel.Pos() == pos || sel == nil && s.X.Pos() == pos) {
			if _, ok := s.X.(*ast.Ident); ok || s.Sel.Pos() == pos {
				x, sel = s.X, s.Sel
			}
		}
		return true
	})
	return x, sel
}

// pathOf returns the import path of the package that an expression names.
func (l *look) pathOf(e ast.Expr) string {
	id, ok := e.(*ast.Ident)
	if !ok {
		return ""
	}
	if path := l.imported[id.Name]; path != "" {
		return path
	}
	return l.path(id.Name)
}

// membersOf lists what cells see of a package.
func membersOf(path string) (names []string) {
	p := imports.Packages[path]
	names = slices.AppendSeq(names, maps.Keys(p.Binds))
	names = slices.AppendSeq(names, maps.Keys(p.Types))
	return slices.AppendSeq(names, maps.Keys(p.Untypeds))
}

// fieldsAndMethods lists what may stand behind the dot of a value.
func fieldsAndMethods(t types.Type) (names []string) {
	if t == nil {
		return nil
	}
	p, isPointer := t.Underlying().(*types.Pointer)
	if isPointer {
		t = p.Elem()
	}
	set := types.NewMethodSet(t)
	if _, ok := t.Underlying().(*types.Interface); !ok {
		set = types.NewMethodSet(types.NewPointer(t))
	}
	for i := range set.Len() {
		names = append(names, set.At(i).Obj().Name())
	}
	var fields func(t types.Type, depth int)
	fields = func(t types.Type, depth int) {
		if p, ok := t.Underlying().(*types.Pointer); ok {
			t = p.Elem()
		}
		s, ok := t.Underlying().(*types.Struct)
		if !ok || depth > 4 {
			return
		}
		for i := range s.NumFields() {
			f := s.Field(i)
			if f.Exported() || f.Pkg().Path() == homePath {
				names = append(names, f.Name())
			}
			if f.Embedded() {
				fields(f.Type(), depth+1)
			}
		}
	}
	fields(t, 0)
	return names
}

func didYouMean(names []string, prefix string) string {
	for i := range names {
		names[i] = prefix + names[i]
	}
	return "did you mean " + strings.Join(names, " or ") + "?"
}

// meant asks whether a member of the package at path was meant, by the name that the
// cell has for the package; where it has none, it says what to import.
func (l *look) meant(path, member string) string {
	for _, pkg := range l.packageNames() {
		if l.path(pkg) == path {
			return didYouMean([]string{member}, pkg+".")
		}
	}
	return didYouMean([]string{member}, packageName(path)+".") + " It needs import " + strconv.Quote(path)
}

// nearest returns the names that name is most likely a slip of: those that differ in
// upper and lower case only or, if there are none, by the fewest letters.
func nearest(name string, all []string) []string {
	n := utf8.RuneCountInString(name)
	best := 3
	switch {
	case n < 3:
		best = 0
	case n < 6:
		best = 1
	case n < 9:
		best = 2
	}
	var same, near []string
	for _, other := range all {
		if other == name || other == "_" || strings.ContainsAny(other, "\u00b7\u01c3\U0001d648") {
			continue
		}
		if strings.EqualFold(name, other) {
			same = append(same, other)
			continue
		}
		if n == 3 && other != "" && other[0] != name[0] {
			continue
		}
		if d := slips(name, other, best); d < best {
			best, near = d, []string{other}
		} else if d == best && best > 0 {
			near = append(near, other)
		}
	}
	if len(same) > 0 {
		near = same
	}
	slices.Sort(near)
	near = slices.Compact(near)
	return near[:min(len(near), 3)]
}

// slips counts the letters that were left out, added or mistaken, or changed places
// with the next one, to get b from a: the distance of Damerau and Levenshtein between
// neighbouring letters. Beyond most it is not counted further.
func slips(a, b string, most int) int {
	x, y := []rune(strings.ToLower(a)), []rune(strings.ToLower(b))
	if d := len(x) - len(y); d > most || -d > most {
		return most + 1
	}
	rows := make([][]int, len(x)+1)
	for i := range rows {
		rows[i] = make([]int, len(y)+1)
		rows[i][0] = i
	}
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := 1; i <= len(x); i++ {
		for j := 1; j <= len(y); j++ {
			cost := 1
			if x[i-1] == y[j-1] {
				cost = 0
			}
			d := min(rows[i-1][j]+1, rows[i][j-1]+1, rows[i-1][j-1]+cost)
			if i > 1 && j > 1 && x[i-1] == y[j-2] && x[i-2] == y[j-1] {
				d = min(d, rows[i-2][j-2]+1)
			}
			rows[i][j] = d
		}
	}
	return rows[len(x)][len(y)]
}
