package frontend

import (
	"errors"
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"regexp"
	"strconv"
	"strings"
)

// libImporter knows the packages that kernels can use. Any other package becomes
// one whose names go/types takes without a word; the law refuses their uses.
type libImporter struct{}

func (libImporter) Import(path string) (*types.Package, error) {
	if path == "unsafe" {
		return types.Unsafe, nil
	}
	if isLib(path) {
		return libPackage(path), nil
	}
	return nil, errors.New("not a package of the kernel language")
}

// check runs go/types on the collected declarations.
func (c *compiler) check() {
	c.pkg = types.NewPackage("kernel", "kernel")
	for _, it := range c.items {
		switch {
		case it.global != nil:
			it.global = types.NewVar(token.NoPos, c.pkg, it.name, it.global.Type())
			c.pkg.Scope().Insert(it.global)
		case it.refuse != nil:
			// A use of an invalid variable is not an error of go/types.
			c.pkg.Scope().Insert(types.NewVar(token.NoPos, c.pkg, it.name, types.Typ[types.Invalid]))
		}
	}
	c.info = types.Info{
		Types: map[ast.Expr]types.TypeAndValue{},
		Defs:  map[*ast.Ident]types.Object{},
		Uses:  map[*ast.Ident]types.Object{},

		Selections: map[*ast.SelectorExpr]*types.Selection{},
	}
	conf := types.Config{
		GoVersion:                "go1.26",
		Importer:                 libImporter{},
		DisableUnusedImportCheck: true,
		Error:                    func(err error) { c.errs = append(c.errs, err.(types.Error)) },
	}
	// The errors come through conf.Error.
	_ = types.NewChecker(&conf, c.in.Fset, c.pkg, &c.info).Files(c.files())
	c.byObj = map[types.Object]*item{}
	for name, it := range c.names {
		if obj := c.pkg.Scope().Lookup(name); obj != nil {
			c.byObj[obj] = it
		}
	}
	for _, it := range c.items {
		if fd, ok := it.node.(*ast.FuncDecl); ok {
			// A method, or a function called _, is not in the scope.
			it.fn, _ = c.info.Defs[fd.Name].(*types.Func)
		}
	}
}

// reachable lists the items that the function really depends on, itself first,
// in the order of their first use.
func (c *compiler) reachable() []*item {
	c.used = map[types.Object]bool{}
	seen := map[*item]bool{c.items[0]: true}
	list := []*item{c.items[0]}
	for i := 0; i < len(list); i++ {
		if list[i].node == nil {
			continue
		}
		ast.Inspect(list[i].node, func(n ast.Node) bool {
			if id, ok := n.(*ast.Ident); ok {
				obj := c.info.Uses[id]
				c.used[obj] = true
				it := c.byObj[obj]
				if it != nil && !seen[it] {
					seen[it] = true
					list = append(list, it)
				}
			}
			return true
		})
	}
	return list
}

// typeErrors turns the errors of go/types inside the reachable declarations
// into diagnostics.
func (c *compiler) typeErrors(reach []*item) {
	for _, e := range c.errs {
		for _, it := range reach {
			if it.node != nil && it.node.Pos() <= e.Pos && e.Pos < it.node.End() {
				c.typeError(it, e)
				break
			}
		}
	}
}

func (c *compiler) typeError(it *item, e types.Error) {
	if strings.Contains(e.Msg, "declared and not used") {
		// The notebook's interpreter accepts unused variables and labels.
		return
	}
	if strings.HasPrefix(e.Msg, "\t") {
		// A further line of the error before.
		if n := len(c.rep.list); n > 0 && c.rep.list[n-1].Code == CodeType {
			c.rep.list[n-1].Message += "; " + strings.TrimSpace(e.Msg)
		}
		return
	}
	if name, ok := strings.CutPrefix(e.Msg, "undefined: "); ok {
		c.rep.add(CodeUndefined, e.Pos, c.undefinedHelp(it, name), "undefined: %s", name)
		return
	}
	if strings.Contains(e.Msg, "has no field or method") {
		c.rep.add(CodeMethod, e.Pos, "write a function with the receiver as its first parameter: there are no methods in a kernel", "%s: no such field, and methods are not part of the kernel language", strings.TrimSpace(strings.Split(e.Msg, " undefined ")[0]))
		return
	}
	help := "correct the function; kernels follow Go's own rules for types"
	for _, h := range typeHelp {
		if strings.Contains(e.Msg, h.in) {
			help = h.help
			break
		}
	}
	if m := wantsType.FindStringSubmatch(e.Msg); m != nil {
		help = fmt.Sprintf("convert it: %s(%s)", m[2], m[1])
	}
	c.rep.add(CodeType, e.Pos, help+c.calleePlace(it, e.Pos), "%s", oneLine.Replace(e.Msg))
}

// wantsType finds the expression and the type that it should have.
var wantsType = regexp.MustCompile(`^cannot use (.+) \((?:variable|value) of (?:\w+ )*type \w+\) as (bool|u?int\w*|float\d+) value`)

// oneLine joins what go/types spreads over several lines.
var oneLine = strings.NewReplacer("\n\t", ", ", "\n", ", ")

// typeHelp gives a remedy by a part of go/types' message; the first one wins.
var typeHelp = []struct{ in, help string }{
	{"mismatched types", "convert one operand to the type of the other, for example float64(i)"},
	{"missing return", "end every path of the function with a return"},
	{"division by zero", "divide by something that is not the constant 0"},
	{"truncated", "write a constant that the type can hold, or convert a variable: int(x)"},
	{"overflows", "write a constant that the type can hold, or use a wider type"},
	{"cannot use", "convert the value, for example float64(i)"},
	{"not enough arguments", "give one argument for each parameter"},
	{"too many arguments", "give one argument for each parameter"},
	{"return values", "return one value for each result"},
	{"assignment mismatch", "put as many variables on the left as there are values on the right"},
	{"redeclared", "use another name, or = instead of :="},
	{"no new variables", "write = instead of :="},
	{"invalid recursive type", "use a type that does not contain itself"},
	{"cannot assign", "assign to a variable that is declared in the function"},
	{"is not used", "assign the value to a variable or to _"},
	{"is not a type", "write a type here"},
}

func (c *compiler) undefinedHelp(it *item, name string) string {
	if pkg, fn, ok := strings.Cut(name, "."); ok {
		if it.imports[pkg] == atomicPath {
			return fmt.Sprintf("kernels have the functions of package %s on elements of integers, for example AddInt64(&x[i], 1), not %s", pkg, fn)
		}
		return fmt.Sprintf("package %s has no %s; see its documentation for the name", pkg, fn)
	}
	for local, path := range it.imports {
		if strings.HasPrefix(local, ".") && !isLib(path) {
			return fmt.Sprintf("if it is a name of package %s: kernels cannot use that package, so write the function in Go", path)
		}
	}
	if mathPackage().Scope().Lookup(strings.ToUpper(name[:1])+name[1:]) != nil {
		return fmt.Sprintf("if you mean math.%s, write that and import \"math\"", strings.ToUpper(name[:1])+name[1:])
	}
	for _, path := range libPaths {
		if short := path[strings.LastIndex(path, "/")+1:]; name == short || libPackage(path).Scope().Lookup(name) != nil {
			return "import " + strconv.Quote(path) + " first"
		}
	}
	if c.in.Notebook {
		return "run the cell that declares " + name + " first, or pass it as an argument"
	}
	return "declare " + name + " in this package (if it is: the file must be where the program was built), import its package, or pass it as an argument"
}

// calleePlace says where the function is declared whose call is at pos: it may
// have changed since the caller was written.
func (c *compiler) calleePlace(it *item, pos token.Pos) string {
	place := ""
	ast.Inspect(it.node, func(n ast.Node) bool {
		if n == nil || pos < n.Pos() || pos >= n.End() {
			return false
		}
		if call, ok := n.(*ast.CallExpr); ok {
			if id, ok := ast.Unparen(call.Fun).(*ast.Ident); ok {
				if callee := c.byObj[c.info.Uses[id]]; callee != nil && callee.node != nil {
					place = fmt.Sprintf("; %s is declared at %v", id.Name, c.in.Fset.Position(callee.node.Pos()))
				}
			}
		}
		return true
	})
	return place
}
