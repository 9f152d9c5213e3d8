package cell

import (
	"errors"
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
	"reflect"

	"github.com/cosmos72/gomacro/base/untyped"
	"github.com/cosmos72/gomacro/fast"
	gtypes "github.com/cosmos72/gomacro/go/types"
	"github.com/cosmos72/gomacro/imports"
)

var invalid types.Type = types.Typ[types.Invalid]

// compiled makes what is compiled into the kernel known to go/types: packages by the
// tables from which cells import them, types by reflection. What is made is kept, and
// only what cells use is made.
type compiled struct {
	types    map[reflect.Type]types.Type
	packages map[string]*types.Package
	whole    map[string]bool // packages all of whose members were made
}

func newCompiled() *compiled {
	return &compiled{map[reflect.Type]types.Type{}, map[string]*types.Package{}, map[string]bool{}}
}

// Import gives a package to go/types; its members are made before they are asked for.
func (w *compiled) Import(path string) (*types.Package, error) {
	if _, ok := imports.Packages[path]; !ok {
		return nil, errors.New("not compiled in")
	}
	return w.pkg(path), nil
}

func (w *compiled) pkg(path string) *types.Package {
	p := w.packages[path]
	if p == nil {
		p = types.NewPackage(path, packageName(path))
		p.MarkComplete()
		w.packages[path] = p
	}
	return p
}

// all makes every member of a package.
func (w *compiled) all(path string) *types.Package {
	if p := imports.Packages[path]; !w.whole[path] {
		w.whole[path] = true
		for name := range p.Types {
			w.member(path, name)
		}
		for name := range p.Binds {
			w.member(path, name)
		}
		for name := range p.Untypeds {
			w.member(path, name)
		}
	}
	return w.pkg(path)
}

// member makes a member of a package that cells can import; nil if it has none of that name.
func (w *compiled) member(path, name string) types.Object {
	pkg := w.pkg(path)
	if obj := pkg.Scope().Lookup(name); obj != nil {
		return obj
	}
	p := imports.Packages[path]
	var obj types.Object
	value, bound := p.Binds[name]
	if rt, ok := p.Types[name]; ok {
		t := w.typ(rt)
		if n, ok := t.(*types.Named); ok && n.Obj().Pkg() == pkg && n.Obj().Name() == name {
			obj = n.Obj()
		} else {
			obj = types.NewTypeName(token.NoPos, pkg, name, t) // an alias
		}
	} else if text, ok := p.Untypeds[name]; ok {
		kind, v := untyped.Unmarshal(text)
		obj = constantOf(pkg, name, untypedOf(kind), v)
	} else if bound {
		obj = w.bound(pkg, name, value)
	}
	if obj != nil {
		pkg.Scope().Insert(obj)
	}
	return obj
}

// bound makes an object of a value as gomacro understands it: what can be set is a
// variable, other functions are functions, other basic values are constants.
func (w *compiled) bound(pkg *types.Package, name string, v reflect.Value) types.Object {
	if !v.IsValid() {
		return types.NewVar(token.NoPos, pkg, name, invalid)
	}
	t := w.typ(v.Type())
	switch {
	case v.CanAddr() && v.CanSet():
	case v.Kind() == reflect.Func:
		if sig, ok := t.(*types.Signature); ok {
			return types.NewFunc(token.NoPos, pkg, name, sig)
		}
	default:
		if c := valueOf(v); c != nil {
			return constantOf(pkg, name, t, c)
		}
	}
	return types.NewVar(token.NoPos, pkg, name, t)
}

// constantOf makes a constant, or a variable of no known type if the value is none.
func constantOf(pkg *types.Package, name string, t types.Type, v constant.Value) types.Object {
	if v == nil || v.Kind() == constant.Unknown || t == invalid {
		return types.NewVar(token.NoPos, pkg, name, invalid)
	}
	return types.NewConst(token.NoPos, pkg, name, t, v)
}

func untypedOf(kind untyped.Kind) types.Type {
	switch kind {
	case untyped.Bool:
		return types.Typ[types.UntypedBool]
	case untyped.Int:
		return types.Typ[types.UntypedInt]
	case untyped.Rune:
		return types.Typ[types.UntypedRune]
	case untyped.Float:
		return types.Typ[types.UntypedFloat]
	case untyped.Complex:
		return types.Typ[types.UntypedComplex]
	case untyped.String:
		return types.Typ[types.UntypedString]
	}
	return invalid
}

// valueOf is the value of a typed constant, nil if v is of no basic type.
func valueOf(v reflect.Value) constant.Value {
	switch {
	case v.Kind() == reflect.Bool:
		return constant.MakeBool(v.Bool())
	case v.Kind() == reflect.String:
		return constant.MakeString(v.String())
	case v.CanInt():
		return constant.MakeInt64(v.Int())
	case v.CanUint():
		return constant.MakeUint64(v.Uint())
	case v.CanFloat():
		return constant.MakeFloat64(v.Float()) // of no known value if that is no number
	case v.CanComplex():
		z := v.Complex()
		return constant.BinaryOp(constant.MakeFloat64(real(z)), token.ADD, constant.MakeImag(constant.MakeFloat64(imag(z))))
	}
	return nil
}

// basic lists the basic types by their reflect.Kind.
var basic = map[reflect.Kind]types.BasicKind{
	reflect.Bool: types.Bool, reflect.String: types.String, reflect.UnsafePointer: types.UnsafePointer,
	reflect.Int: types.Int, reflect.Int8: types.Int8, reflect.Int16: types.Int16, reflect.Int32: types.Int32, reflect.Int64: types.Int64,
	reflect.Uint: types.Uint, reflect.Uint8: types.Uint8, reflect.Uint16: types.Uint16, reflect.Uint32: types.Uint32, reflect.Uint64: types.Uint64,
	reflect.Uintptr: types.Uintptr, reflect.Float32: types.Float32, reflect.Float64: types.Float64,
	reflect.Complex64: types.Complex64, reflect.Complex128: types.Complex128,
}

// typ makes a compiled type.
func (w *compiled) typ(rt reflect.Type) types.Type {
	if t := w.types[rt]; t != nil {
		return t
	}
	kind, isBasic := basic[rt.Kind()]
	switch {
	case rt == errorType:
		return types.Universe.Lookup("error").Type()
	case rt.Name() == "" || isBasic && (rt.PkgPath() == "" || rt.PkgPath() == "unsafe"):
		var t types.Type
		if isBasic {
			t = types.Typ[kind]
		} else {
			t = w.underlying(rt)
		}
		w.types[rt] = t
		return t
	}
	pkg := w.pkg(rt.PkgPath())
	obj := types.NewTypeName(token.NoPos, pkg, rt.Name(), nil)
	n := types.NewNamed(obj, nil, nil)
	w.types[rt] = n // before what it consists of, which may be itself
	n.SetUnderlying(w.underlying(rt))
	if rt.Kind() == reflect.Interface {
		return n
	}
	byValue := map[string]bool{}
	for i := range rt.NumMethod() {
		byValue[rt.Method(i).Name] = true
	}
	ptr := reflect.PointerTo(rt)
	for i := range ptr.NumMethod() {
		m := ptr.Method(i)
		var recv types.Type = n
		if !byValue[m.Name] {
			recv = types.NewPointer(n)
		}
		sig := w.signature(m.Type, 1, types.NewParam(token.NoPos, pkg, "", recv))
		n.AddMethod(types.NewFunc(token.NoPos, pkg, m.Name, sig))
	}
	return n
}

func (w *compiled) underlying(rt reflect.Type) types.Type {
	switch rt.Kind() {
	case reflect.Pointer:
		return types.NewPointer(w.typ(rt.Elem()))
	case reflect.Slice:
		if rt.Elem() == reflect.TypeFor[byte]() {
			return types.NewSlice(types.Universe.Lookup("byte").Type()) // so messages call it
		}
		return types.NewSlice(w.typ(rt.Elem()))
	case reflect.Array:
		return types.NewArray(w.typ(rt.Elem()), int64(rt.Len()))
	case reflect.Map:
		return types.NewMap(w.typ(rt.Key()), w.typ(rt.Elem()))
	case reflect.Chan:
		return types.NewChan(chanDir(rt.ChanDir()), w.typ(rt.Elem()))
	case reflect.Func:
		return w.signature(rt, 0, nil)
	case reflect.Interface:
		var methods []*types.Func
		for i := range rt.NumMethod() {
			// Whether a type has a method that is not exported, reflection does not say.
			if m := rt.Method(i); m.IsExported() {
				methods = append(methods, types.NewFunc(token.NoPos, nil, m.Name, w.signature(m.Type, 0, nil)))
			}
		}
		return types.NewInterfaceType(methods, nil).Complete()
	case reflect.Struct:
		var fields []*types.Var
		var tags []string
		for i := range rt.NumField() {
			f := rt.Field(i)
			t := types.Type(types.Typ[types.Int])
			switch {
			case f.IsExported() || f.Anonymous:
				t = w.typ(f.Type)
			case !f.Type.Comparable():
				t = types.NewSignatureType(nil, nil, nil, nil, nil, false)
			}
			fields = append(fields, types.NewField(token.NoPos, w.pkg(f.PkgPath), f.Name, t, f.Anonymous))
			tags = append(tags, string(f.Tag))
		}
		return types.NewStruct(fields, tags)
	}
	if kind, ok := basic[rt.Kind()]; ok {
		return types.Typ[kind]
	}
	return invalid
}

// signature makes the type of a function without its first parameters.
func (w *compiled) signature(rt reflect.Type, skip int, recv *types.Var) *types.Signature {
	var in, out []*types.Var
	for i := skip; i < rt.NumIn(); i++ {
		in = append(in, types.NewParam(token.NoPos, nil, "", w.typ(rt.In(i))))
	}
	for i := range rt.NumOut() {
		out = append(out, types.NewParam(token.NoPos, nil, "", w.typ(rt.Out(i))))
	}
	return types.NewSignatureType(recv, nil, nil, types.NewTuple(in...), types.NewTuple(out...), rt.IsVariadic())
}

func chanDir(d reflect.ChanDir) types.ChanDir {
	switch d {
	case reflect.SendDir:
		return types.SendOnly
	case reflect.RecvDir:
		return types.RecvOnly
	}
	return types.SendRecv
}

// homePath is the package that declarations of cells belong to, as gomacro calls
// it. Its name, which no cell can write, is taken out of messages.
const (
	homePath = "main"
	homeName = "\u01c3cell"
)

// notebook makes the names of a session known to go/types: as the interpreter has them
// now, changed by what the cell under check declares. It lives as long as the check.
type notebook struct {
	*compiled
	c        *fast.Comp
	src      *source
	nodes    []ast.Node
	pkg      *types.Package
	named    map[*gtypes.Named]types.Type
	declared map[string]types.Object // by earlier chunks of the cell; nil: known to be something, but not what
	own      map[string]bool         // what the chunk under check declares
	// unsure is set when what follows cannot be judged.
	unsure bool
}

func newNotebook(w *compiled, c *fast.Comp) *notebook {
	return &notebook{compiled: w, c: c, pkg: home(), named: map[*gtypes.Named]types.Type{}, declared: map[string]types.Object{}}
}

func home() *types.Package { return types.NewPackage(homePath, homeName) }

// vague stands for a name of which is known only that there is one: go/types keeps
// silent about what it does not know the type of.
func (n *notebook) vague(name string) types.Object {
	return types.NewVar(token.NoPos, n.pkg, name, invalid)
}

// path returns the import path of the package that a name stands for, "" if for none.
func (n *notebook) path(name string) string {
	if obj, ok := n.declared[name]; ok {
		if p, ok := obj.(*types.PkgName); ok {
			return p.Imported().Path()
		}
		return ""
	}
	if b := n.c.Binds[name]; b != nil {
		if imp, ok := b.Value.(*fast.Import); ok {
			return imp.Path
		}
	}
	return ""
}

// object makes what a name stands for at the top of a cell: nil if for nothing, or for
// what Go itself declares.
func (n *notebook) object(name string) types.Object {
	if obj, ok := n.declared[name]; ok {
		if obj == nil {
			return n.vague(name)
		}
		return obj
	}
	b, t := n.c.Binds[name], n.c.Types[name]
	switch {
	case b != nil && t != nil:
		// The interpreter keeps types apart from values: either may be meant.
		n.unsure = true
		return n.vague(name)
	case t != nil:
		g := t.GoType()
		typ := n.conv(g, t.ReflectType())
		if x, ok := typ.(*types.Named); ok && x.Obj().Name() == name && x.Obj().Pkg().Path() == homePath {
			return x.Obj()
		}
		return types.NewTypeName(token.NoPos, n.pkg, name, typ)
	case b != nil:
		return n.bind(name, b)
	}
	if types.Universe.Lookup(name) != nil {
		return nil
	}
	if n.c.TryResolve(name) != nil || n.c.TryResolveType(name) != nil {
		return n.vague(name) // what the interpreter adds to Go
	}
	return nil
}

func (n *notebook) bind(name string, b *fast.Bind) types.Object {
	if imp, ok := b.Value.(*fast.Import); ok {
		return types.NewPkgName(token.NoPos, n.pkg, name, n.compiled.pkg(imp.Path))
	}
	if b.Type == nil {
		return n.vague(name)
	}
	switch b.Desc.Class() {
	case fast.ConstBind:
		if lit, ok := b.Value.(fast.UntypedLit); ok {
			return constantOf(n.pkg, name, untypedOf(lit.Kind), lit.Val)
		}
		if v := reflect.ValueOf(b.Value); v.IsValid() {
			return constantOf(n.pkg, name, n.conv(b.Type.GoType(), b.Type.ReflectType()), valueOf(v))
		}
	case fast.FuncBind, fast.VarBind, fast.IntBind:
		t := n.conv(b.Type.GoType(), b.Type.ReflectType())
		if sig, ok := t.(*types.Signature); ok && b.Desc.Class() == fast.FuncBind {
			return types.NewFunc(token.NoPos, n.pkg, name, sig)
		}
		return types.NewVar(token.NoPos, n.pkg, name, t)
	}
	return n.vague(name)
}

// conv turns a type of the interpreter into one of go/types. rt, if not nil, is the
// reflect.Type behind it, which for types declared in cells is only like it.
func (n *notebook) conv(g gtypes.Type, rt reflect.Type) types.Type {
	elem := func(kind reflect.Kind) reflect.Type {
		if rt != nil && rt.Kind() == kind {
			return rt.Elem()
		}
		return nil
	}
	switch g := g.(type) {
	case *gtypes.Basic:
		if g.Kind() > gtypes.Invalid && g.Kind() <= gtypes.UnsafePointer {
			return types.Typ[types.BasicKind(g.Kind())]
		}
	case *gtypes.Pointer:
		return types.NewPointer(n.conv(g.Elem(), elem(reflect.Pointer)))
	case *gtypes.Slice:
		return types.NewSlice(n.conv(g.Elem(), elem(reflect.Slice)))
	case *gtypes.Array:
		return types.NewArray(n.conv(g.Elem(), elem(reflect.Array)), g.Len())
	case *gtypes.Chan:
		return types.NewChan(types.ChanDir(g.Dir()), n.conv(g.Elem(), elem(reflect.Chan)))
	case *gtypes.Map:
		var key reflect.Type
		if rt != nil && rt.Kind() == reflect.Map {
			key = rt.Key()
		}
		return types.NewMap(n.conv(g.Key(), key), n.conv(g.Elem(), elem(reflect.Map)))
	case *gtypes.Signature:
		return n.signature(g, rt, 0, nil)
	case *gtypes.Struct:
		var fields []*types.Var
		var tags []string
		for i := range g.NumFields() {
			f := g.Field(i)
			var ft reflect.Type
			if rt != nil && rt.Kind() == reflect.Struct && rt.NumField() == g.NumFields() {
				ft = rt.Field(i).Type
			}
			fields = append(fields, types.NewField(token.NoPos, n.pkg, f.Name(), n.conv(f.Type(), ft), f.Embedded()))
			tags = append(tags, g.Tag(i))
		}
		return types.NewStruct(fields, tags)
	case *gtypes.Interface:
		var methods []*types.Func
		for i := range g.NumMethods() {
			m := g.Method(i)
			sig, ok := m.Type().(*gtypes.Signature)
			if !ok {
				return invalid
			}
			methods = append(methods, types.NewFunc(token.NoPos, n.pkg, m.Name(), n.signature(sig, nil, 0, nil)))
		}
		return types.NewInterfaceType(methods, nil).Complete()
	case *gtypes.Named:
		return n.convNamed(g, rt)
	}
	return invalid
}

func (n *notebook) convNamed(g *gtypes.Named, rt reflect.Type) types.Type {
	obj := g.Obj()
	if n.own[obj.Name()] && obj.Pkg() != nil && obj.Pkg().Path() == homePath {
		return invalid // it is being declared again
	}
	if t := n.named[g]; t != nil {
		return t
	}
	if obj.Pkg() == nil {
		if t, ok := types.Universe.Lookup(obj.Name()).(*types.TypeName); ok {
			return t.Type()
		}
		return invalid
	}
	path := obj.Pkg().Path()
	if rt != nil && rt.Name() == obj.Name() && rt.PkgPath() == path {
		return n.compiled.typ(rt)
	}
	if path != homePath {
		if rt := imports.Packages[path].Types[obj.Name()]; rt != nil {
			return n.compiled.typ(rt)
		}
		return invalid
	}
	if t := n.c.Types[obj.Name()]; t != nil && t.GoType() == gtypes.Type(g) {
		// A type declared again is the same type to the interpreter.
		if again, ok := n.declared[obj.Name()].(*types.TypeName); ok {
			n.named[g] = again.Type()
			return again.Type()
		}
		rt = t.ReflectType()
	}
	named := types.NewNamed(types.NewTypeName(token.NoPos, n.pkg, obj.Name(), nil), nil, nil)
	n.named[g] = named
	under := n.conv(g.Underlying(), rt)
	if under == invalid {
		n.named[g] = invalid
		n.unsure = true // what refers to it is half made
	}
	if x, ok := under.(*types.Named); ok {
		under = x.Underlying()
	}
	named.SetUnderlying(under)
	n.addMethods(named, g)
	return n.named[g]
}

// addMethods adds the methods that the interpreter knows of a type declared in a cell.
func (n *notebook) addMethods(named *types.Named, g *gtypes.Named) {
	if _, ok := g.Underlying().(*gtypes.Interface); ok {
		return
	}
	for i := range g.NumMethods() {
		m := g.Method(i)
		sig, ok := m.Type().(*gtypes.Signature)
		if !ok {
			continue
		}
		recv, skip := sig.Recv(), 0
		if recv == nil && sig.Params().Len() > 0 {
			recv, skip = sig.Params().At(0), 1
		}
		if recv == nil {
			continue
		}
		var t types.Type = named
		if _, ok := recv.Type().(*gtypes.Pointer); ok {
			t = types.NewPointer(named)
		}
		named.AddMethod(types.NewFunc(token.NoPos, n.pkg, m.Name(), n.signature(sig, nil, skip, types.NewParam(token.NoPos, n.pkg, "", t))))
	}
}

func (n *notebook) signature(g *gtypes.Signature, rt reflect.Type, skip int, recv *types.Var) *types.Signature {
	known := rt != nil && rt.Kind() == reflect.Func && skip == 0 && rt.NumIn() == g.Params().Len() && rt.NumOut() == g.Results().Len()
	var in, out []*types.Var
	for i := skip; i < g.Params().Len(); i++ {
		var pt reflect.Type
		if known {
			pt = rt.In(i)
		}
		in = append(in, types.NewParam(token.NoPos, nil, "", n.conv(g.Params().At(i).Type(), pt)))
	}
	for i := range g.Results().Len() {
		var pt reflect.Type
		if known {
			pt = rt.Out(i)
		}
		out = append(out, types.NewParam(token.NoPos, nil, "", n.conv(g.Results().At(i).Type(), pt)))
	}
	variadic := g.Variadic()
	if variadic {
		if _, ok := in[len(in)-1].Type().(*types.Slice); !ok {
			n.unsure, variadic = true, false
		}
	}
	return types.NewSignatureType(recv, nil, nil, types.NewTuple(in...), types.NewTuple(out...), variadic)
}
