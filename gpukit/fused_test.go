package gpukit_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestNoFusing: Go may compute x*y + z with one rounding, even if x*y was kept
// in a variable or comes out of a function, and does so on arm64 and with
// GOAMD64=v3. Only a conversion, float64(x*y), forbids it. Kernels never fuse, so
// every product here, and in the functions that they are compared with, that may
// feed a sum has one. Functions of examples run as kernels alone, and read as a user
// writes them.
func TestNoFusing(t *testing.T) {
	fset := token.NewFileSet()
	own, foreign := packagesOf(t, "./...")
	outside := importer.ForCompiler(fset, "gc", func(path string) (io.ReadCloser, error) {
		if file := foreign[path]; file != "" {
			return os.Open(file)
		}
		return nil, fmt.Errorf("no export data of %s", path)
	})
	files := 0
	search := func(path string, im types.Importer, names ...string) *types.Package {
		files += len(names)
		syntax := parsed(t, fset, own[strings.TrimSuffix(path, "_test")].Dir, names)
		pkg, info := checked(t, types.Config{Importer: im}, fset, path, syntax)
		if info == nil {
			return pkg
		}
		for _, f := range products(syntax, info) {
			if filepath.Base(fset.Position(f.product).Filename) == "example_test.go" {
				continue
			}
			if !strings.HasSuffix(lineOf(t, fset, f.product), mustNotFuse) {
				t.Errorf("%s: write float64(...) or float32(...) around this product, it may reach the sum of %s", fset.Position(f.product), at(fset, f.sum))
			}
		}
		return pkg
	}
	plain := &sources{t: t, fset: fset, own: own, outside: outside, done: map[string]*types.Package{}}
	for path, p := range own {
		tested := search(path, plain, slices.Concat(p.GoFiles, p.TestGoFiles)...)
		if p.XTestGoFiles != nil {
			// They see the package with its inner tests, and so does what they import.
			outer := &sources{t: t, fset: fset, own: own, outside: outside, done: map[string]*types.Package{}}
			for q, done := range plain.done {
				if !reaches(done, path) {
					outer.done[q] = done
				}
			}
			outer.done[path] = tested
			search(path+"_test", outer, p.XTestGoFiles...)
		}
	}
	if len(own) < 10 || files < 100 {
		t.Errorf("only %d packages, %d files", len(own), files)
	}
}

// A line that ends so is the text of a kernel whose result tells that it was
// fused. Nothing is compared with what Go makes of it.
const mustNotFuse = "// must not be fused"

func lineOf(t *testing.T, fset *token.FileSet, pos token.Pos) string {
	text, err := os.ReadFile(fset.Position(pos).Filename)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(string(text), "\n")[fset.Position(pos).Line-1]
}

// TestFindsFusing: what the search is for, and what it lets pass.
func TestFindsFusing(t *testing.T) {
	const header = "package p\n\nimport \"math\"\n\nvar _ = math.Pi\n\nfunc sq(x float64) float64 { return x * x }\n\nfunc add(x, y float64) float64 { return x + y }\n\ntype point struct{ x, y float64 }\n\n"
	for _, c := range []struct {
		body   string
		faults int
	}{
		{"return x*y + z", 1},
		{"return z - (x * y)", 1},
		{"return -(x*y) + z", 1},
		{"return x*y - y*z", 2},
		{"z += x * y; return z", 1},
		{"z -= x * y * x; return z", 1},
		{"t := x * y; return t + z", 1},
		{"var t = x * y; return t + z", 1},
		{"t, u := x*y, z; return t + u", 1},
		{"x *= y; return x + z", 1},
		{"return sq(x) + z", 1},
		{"t := sq(x); return t - z", 1},
		{"return add(x*y, z)", 1},
		{"p := point{x * y, z}; return p.x + p.y", 1},
		{"p := point{x: x * y}; return p.x + p.y", 1},
		{"var p point; p.x = x * y; return p.x + z", 1},
		{"a := [2]float64{x * y, z}; return a[0] + a[1]", 1},
		{"f := float32(x); return float64(f*f + f)", 1},
		{"return math.Abs(x) * y + z", 1},
		{"return float64(x*y) + z", 0},
		{"return x*y*z", 0},
		{"return x*y / z", 0},
		{"return math.FMA(x*y, z, x)", 0},
		{"return math.Abs(x*y) + z", 0},
		{"t := float64(x * y); return t + z", 0},
		{"return float64(sq(x)) + z", 0},
		{"if x*y > z { return 1 }; return x + y", 0},
		{"return 2*math.Pi + x", 0},
		{"n := int(z); return float64(n*n + n)", 0},
		{"return (x + y) * z", 0},
	} {
		fset := token.NewFileSet()
		f, err := parser.ParseFile(fset, "p.go", header+"func f(x, y, z float64) float64 { "+c.body+" }\n", 0)
		if err != nil {
			t.Fatal(c.body, err)
		}
		_, info := checked(t, types.Config{Importer: importer.Default()}, fset, "p", []*ast.File{f})
		if got := len(products([]*ast.File{f}, info)); got != c.faults {
			t.Errorf("%s: %d faults, want %d", c.body, got, c.faults)
		}
	}
}

// An ownPackage is what `go list` says of a package.
type ownPackage struct {
	ImportPath, Dir                    string
	GoFiles, TestGoFiles, XTestGoFiles []string
	Imports, TestImports, XTestImports []string
	Export                             string
}

// packagesOf lists packages of ours, and the export data of what they import.
func packagesOf(t *testing.T, pattern string) (own map[string]*ownPackage, foreign map[string]string) {
	t.Helper()
	own, foreign = map[string]*ownPackage{}, map[string]string{}
	var imports []string
	for _, p := range golist(t, pattern) {
		own[p.ImportPath] = p
		for _, i := range slices.Concat(p.Imports, p.TestImports, p.XTestImports) {
			if !ours(i) && i != "unsafe" {
				imports = append(imports, i)
			}
		}
	}
	slices.Sort(imports)
	for _, p := range golist(t, append([]string{"-deps", "-export"}, slices.Compact(imports)...)...) {
		foreign[p.ImportPath] = p.Export
	}
	return own, foreign
}

func ours(path string) bool { return strings.HasPrefix(path, "gpunotes/") }

func golist(t *testing.T, args ...string) (all []*ownPackage) {
	t.Helper()
	cmd := exec.Command("go", append([]string{"list", "-json=ImportPath,Dir,GoFiles,TestGoFiles,XTestGoFiles,Imports,TestImports,XTestImports,Export"}, args...)...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, stderr.String())
	}
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		p := new(ownPackage)
		if err := d.Decode(p); err == io.EOF {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
}

// sources imports our own packages from their source.
type sources struct {
	t       *testing.T
	fset    *token.FileSet
	own     map[string]*ownPackage
	outside types.Importer
	done    map[string]*types.Package
}

func (s *sources) Import(path string) (*types.Package, error) {
	if !ours(path) {
		return s.outside.Import(path)
	}
	if s.done[path] == nil {
		p := s.own[path]
		if p == nil {
			return nil, fmt.Errorf("no package %s in gpukit", path)
		}
		conf := types.Config{Importer: s, IgnoreFuncBodies: true}
		s.done[path], _ = checked(s.t, conf, s.fset, path, parsed(s.t, s.fset, p.Dir, p.GoFiles))
	}
	return s.done[path], nil
}

// reaches says whether p imports path, directly or not.
func reaches(p *types.Package, path string) bool {
	return p.Path() == path || ours(p.Path()) && slices.ContainsFunc(p.Imports(), func(q *types.Package) bool { return reaches(q, path) })
}

func parsed(t *testing.T, fset *token.FileSet, dir string, names []string) (files []*ast.File) {
	t.Helper()
	for _, name := range names {
		f, err := parser.ParseFile(fset, filepath.Join(dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
	}
	return files
}

func checked(t *testing.T, conf types.Config, fset *token.FileSet, path string, files []*ast.File) (*types.Package, *types.Info) {
	t.Helper()
	info := &types.Info{Types: map[ast.Expr]types.TypeAndValue{}, Defs: map[*ast.Ident]types.Object{}, Uses: map[*ast.Ident]types.Object{},
		Selections: map[*ast.SelectorExpr]*types.Selection{}}
	pkg, err := conf.Check(path, fset, files, info)
	if err != nil {
		t.Errorf("%s: %v", path, err)
		return pkg, nil
	}
	return pkg, info
}

func at(fset *token.FileSet, pos token.Pos) string {
	p := fset.Position(pos)
	return fmt.Sprintf("%s:%d", filepath.Base(p.Filename), p.Line)
}

// A fault is a product that is not rounded and a sum that it reaches.
type fault struct{ product, sum token.Pos }

// A productSearch follows products through variables, parameters, results and fields of
// one package, regardless of the order of statements.
type productSearch struct {
	info *types.Info
	// from says which product a variable, a field or the result of a function
	// may hold.
	from    map[types.Object]token.Pos
	changed bool
	faults  map[token.Pos]token.Pos
}

func products(files []*ast.File, info *types.Info) []fault {
	s := &productSearch{info: info, from: map[types.Object]token.Pos{}, faults: map[token.Pos]token.Pos{}}
	for s.changed = true; s.changed; {
		s.changed = false
		for _, f := range files {
			for _, d := range f.Decls {
				var results *ast.FuncDecl
				if fn, ok := d.(*ast.FuncDecl); ok {
					results = fn
				}
				ast.Inspect(d, func(n ast.Node) bool { return s.visit(n, results) })
			}
		}
	}
	var all []fault
	for product, sum := range s.faults {
		all = append(all, fault{product, sum})
	}
	slices.SortFunc(all, func(a, b fault) int { return cmp.Compare(a.product, b.product) })
	return all
}

func (s *productSearch) visit(n ast.Node, fn *ast.FuncDecl) bool {
	switch n := n.(type) {
	case *ast.FuncLit: // is not followed, its own returns are not fn's
		ast.Inspect(n.Body, func(n ast.Node) bool { return s.visit(n, nil) })
		return false
	case *ast.BinaryExpr:
		if (n.Op == token.ADD || n.Op == token.SUB) && s.float(n) {
			s.sum(n.X, n.OpPos)
			s.sum(n.Y, n.OpPos)
		}
	case *ast.AssignStmt:
		switch n.Tok {
		case token.ADD_ASSIGN, token.SUB_ASSIGN:
			if s.float(n.Lhs[0]) {
				s.sum(n.Lhs[0], n.TokPos)
				s.sum(n.Rhs[0], n.TokPos)
			}
		case token.MUL_ASSIGN:
			if s.float(n.Lhs[0]) {
				s.holds(s.object(n.Lhs[0]), n.TokPos)
			}
		case token.ASSIGN, token.DEFINE:
			if len(n.Lhs) == len(n.Rhs) {
				for i, x := range n.Rhs {
					s.holds(s.object(n.Lhs[i]), s.product(x))
				}
			}
		}
	case *ast.ValueSpec:
		if len(n.Names) == len(n.Values) {
			for i, x := range n.Values {
				s.holds(s.info.Defs[n.Names[i]], s.product(x))
			}
		}
	case *ast.CompositeLit:
		t, _ := s.info.TypeOf(n).Underlying().(*types.Struct)
		for i, x := range n.Elts {
			if kv, ok := x.(*ast.KeyValueExpr); ok {
				if id, ok := kv.Key.(*ast.Ident); ok && t != nil {
					s.holds(s.info.Uses[id], s.product(kv.Value))
				}
			} else if t != nil {
				s.holds(t.Field(i), s.product(x))
			}
		}
	case *ast.CallExpr:
		if f := s.callee(n); f != nil {
			params := f.Signature().Params()
			for i, x := range n.Args {
				if i < params.Len() {
					s.holds(params.At(i), s.product(x))
				}
			}
		}
	case *ast.ReturnStmt:
		if fn == nil {
			return true
		}
		f, _ := s.info.Defs[fn.Name].(*types.Func)
		if f != nil && len(n.Results) == 1 && f.Signature().Results().Len() == 1 {
			s.holds(f, s.product(n.Results[0]))
		}
	}
	return true
}

// sum notes that x is added to something.
func (s *productSearch) sum(x ast.Expr, pos token.Pos) {
	if p := s.product(x); p.IsValid() {
		if _, ok := s.faults[p]; !ok {
			s.faults[p] = pos
		}
	}
}

func (s *productSearch) holds(o types.Object, product token.Pos) {
	if o != nil && product.IsValid() && !s.from[o].IsValid() {
		s.from[o] = product
		s.changed = true
	}
}

// product is where the product is that x may be without a rounding in between.
func (s *productSearch) product(x ast.Expr) token.Pos {
	switch x := x.(type) {
	case *ast.ParenExpr:
		return s.product(x.X)
	case *ast.UnaryExpr:
		if x.Op == token.SUB || x.Op == token.ADD {
			return s.product(x.X)
		}
	case *ast.BinaryExpr:
		if x.Op == token.MUL && s.float(x) {
			return x.OpPos
		}
	case *ast.CallExpr:
		if f := s.callee(x); f != nil && f.Signature().Results().Len() == 1 {
			return s.from[f]
		}
	case *ast.CompositeLit: // the variable stands for all its elements
		if _, isStruct := s.info.TypeOf(x).Underlying().(*types.Struct); !isStruct {
			for _, e := range x.Elts {
				if kv, ok := e.(*ast.KeyValueExpr); ok {
					e = kv.Value
				}
				if p := s.product(e); p.IsValid() {
					return p
				}
			}
		}
	case *ast.Ident, *ast.SelectorExpr, *ast.IndexExpr, *ast.StarExpr:
		if o := s.object(x); o != nil {
			return s.from[o]
		}
	}
	return token.NoPos
}

// object is the variable or field that x names, or whose element it is.
func (s *productSearch) object(x ast.Expr) types.Object {
	switch x := x.(type) {
	case *ast.ParenExpr:
		return s.object(x.X)
	case *ast.IndexExpr:
		return s.object(x.X)
	case *ast.StarExpr:
		return s.object(x.X)
	case *ast.SelectorExpr:
		if sel := s.info.Selections[x]; sel != nil && sel.Kind() == types.FieldVal {
			return sel.Obj()
		}
	case *ast.Ident:
		if o := s.info.ObjectOf(x); o != nil {
			if v, ok := o.(*types.Var); ok {
				return v
			}
		}
	}
	return nil
}

// callee is the function of this package that a call is of.
func (s *productSearch) callee(call *ast.CallExpr) *types.Func {
	id, ok := call.Fun.(*ast.Ident)
	if !ok {
		return nil
	}
	f, _ := s.info.Uses[id].(*types.Func)
	return f
}

// float says whether x is of a floating-point type and not constant.
func (s *productSearch) float(x ast.Expr) bool {
	tv, ok := s.info.Types[x]
	if !ok || tv.Type == nil || tv.Value != nil {
		if id, isName := x.(*ast.Ident); isName && !ok {
			if o := s.info.ObjectOf(id); o != nil {
				return floating(o.Type())
			}
		}
		return false
	}
	return floating(tv.Type)
}

func floating(t types.Type) bool {
	b, ok := t.Underlying().(*types.Basic)
	return ok && b.Info()&types.IsFloat != 0
}
