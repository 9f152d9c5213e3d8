package main

import (
	"bytes"
	"fmt"
	"go/constant"
	"go/format"
	"go/token"
	"go/types"
	"math"
	"runtime"
	"sort"
	"strconv"
	"strings"

	"github.com/cosmos72/gomacro/base/untyped"
)

// gomacro's registry of importable packages.
const registry = "github.com/cosmos72/gomacro/imports"

// binder collects the text of one generated file.
type binder struct {
	pkg     *types.Package
	stem    string            // import path as an identifier
	alias   map[string]string // import path -> name in this file
	taken   map[string]bool   // names no import may have
	skipped []string

	binds, kinds, proxies, untypeds []string // map entries
	decls                           bytes.Buffer
}

// bind makes the file for one package. Whatever gomacro cannot hold is left out and listed.
func bind(clause string, pkg *types.Package) (file, error) {
	if pkg.Name() == "main" {
		return file{}, fmt.Errorf("a command cannot be imported")
	}
	if importable, why := canImport(pkg.Path()); !importable {
		return file{}, fmt.Errorf("%s", why)
	}
	b := &binder{pkg: pkg, stem: identifier(pkg.Path()), alias: map[string]string{}, taken: map[string]bool{}}
	for _, n := range types.Universe.Names() {
		b.taken[n] = true // an import called string or len would change what the file means
	}
	b.taken["init"] = true // the language forbids it
	b.use("reflect", "reflect")
	b.use(registry, "imports")
	b.use(pkg.Path(), pkg.Name())

	scope := pkg.Scope()
	for _, name := range scope.Names() {
		obj := scope.Lookup(name)
		if !obj.Exported() {
			continue
		}
		switch obj := obj.(type) {
		case *types.Const:
			if err := b.constant(obj); err != nil {
				return file{}, err
			}
		case *types.Var:
			b.binds = append(b.binds, fmt.Sprintf("%q: reflect.ValueOf(&%s).Elem(),", name, b.ref(name)))
		case *types.Func:
			if sig := obj.Type().(*types.Signature); sig.TypeParams().Len() > 0 {
				b.skip(name, "generic function: gomacro has no generics")
				continue
			}
			b.binds = append(b.binds, fmt.Sprintf("%q: reflect.ValueOf(%s),", name, b.ref(name)))
		case *types.TypeName:
			b.typeName(obj)
		}
	}
	text, err := b.text(clause)
	return file{path: pkg.Path(), name: b.stem + "_bindings.go", text: text, skipped: b.skipped}, err
}

func (b *binder) skip(name, why string) { b.skipped = append(b.skipped, name+": "+why) }

func (b *binder) ref(name string) string { return b.alias[b.pkg.Path()] + "." + name }

// use gives the package at path a name in the file that no other package and no builtin has.
func (b *binder) use(path, want string) string {
	if a, ok := b.alias[path]; ok {
		return a
	}
	a := want
	for i := 2; b.taken[a]; i++ {
		a = want + strconv.Itoa(i)
	}
	b.taken[a], b.alias[path] = true, a
	return a
}

func (b *binder) constant(c *types.Const) error {
	name := c.Name()
	basic, ok := c.Type().(*types.Basic)
	if !ok || basic.Info()&types.IsUntyped == 0 {
		b.binds = append(b.binds, fmt.Sprintf("%q: reflect.ValueOf(%s),", name, b.ref(name)))
		return nil
	}
	kind, val := untyped.GoUntypedToKind(basic.Kind()), c.Val()
	if (kind == untyped.Int || kind == untyped.Rune) && !fits64(val) {
		// gomacro converts a longer integer to float64 by dropping its upper bits, but a float correctly.
		kind = untyped.Float
	}
	s := untyped.Marshal(kind, val)
	if k, back := untyped.Unmarshal(s); k != kind || !same(val, back) {
		return fmt.Errorf("constant %s: gomacro would read %s back as another value", name, val)
	}
	b.untypeds = append(b.untypeds, fmt.Sprintf("%q: %q,", name, s))
	b.binds = append(b.binds, fmt.Sprintf("%q: %s,", name, b.untypedValue(c, kind)))
	return nil
}

// fits64 reports whether an integer is an int64 or a uint64.
func fits64(v constant.Value) bool {
	_, signed := constant.Int64Val(v)
	_, unsigned := constant.Uint64Val(v)
	return signed || unsigned
}

func same(a, b constant.Value) bool {
	number := func(v constant.Value) bool {
		return v.Kind() == constant.Int || v.Kind() == constant.Float || v.Kind() == constant.Complex
	}
	return (a.Kind() == b.Kind() || number(a) && number(b)) && constant.Compare(a, token.EQL, b)
}

// untypedValue is the stand-in for code that looks only at Binds; the interpreter itself reads Untypeds.
func (b *binder) untypedValue(c *types.Const, kind untyped.Kind) string {
	ref, val := b.ref(c.Name()), c.Val()
	switch kind {
	case untyped.Int, untyped.Rune:
		if i, ok := constant.Int64Val(val); !ok {
			return "reflect.ValueOf(uint64(" + ref + "))"
		} else if i != int64(int32(i)) { // int is 32 bits wide on some machines
			return "reflect.ValueOf(int64(" + ref + "))"
		}
	case untyped.Float, untyped.Complex:
		re, _ := constant.Float64Val(constant.ToFloat(constant.Real(val)))
		im, _ := constant.Float64Val(constant.ToFloat(constant.Imag(val)))
		if math.IsInf(re, 0) || math.IsInf(im, 0) {
			return "reflect.Value{}"
		}
		if kind == untyped.Float {
			return "reflect.ValueOf(float64(" + ref + "))"
		}
	}
	return "reflect.ValueOf(" + ref + ")"
}

func (b *binder) typeName(t *types.TypeName) {
	name := t.Name()
	if g, ok := t.Type().(interface{ TypeParams() *types.TypeParamList }); ok && g.TypeParams().Len() > 0 {
		b.skip(name, "generic type: gomacro has no generics")
		return
	}
	iface, isInterface := t.Type().Underlying().(*types.Interface)
	if isInterface && !iface.IsMethodSet() {
		b.skip(name, "constraint interface: not the type of any value")
		return
	}
	b.kinds = append(b.kinds, fmt.Sprintf("%q: reflect.TypeOf((*%s)(nil)).Elem(),", name, b.ref(name)))
	if isInterface {
		if iface.NumMethods() > 0 {
			b.proxy(name, iface)
		}
		return
	}
}

// proxy writes the struct through which an interpreted type satisfies a compiled interface. gomacro fills it by
// position: the object first, then one function per method in the order of their names.
func (b *binder) proxy(name string, iface *types.Interface) {
	var methods []*types.Func
	for m := range iface.Methods() {
		if !m.Exported() {
			b.skip(name, "interpreted types cannot implement it: unexported method "+m.Name())
			return
		}
		if why := b.unusable(m.Type(), map[types.Type]bool{}); why != "" {
			b.skip(name, fmt.Sprintf("interpreted types cannot implement it: method %s uses %s", m.Name(), why))
			return
		}
		methods = append(methods, m)
	}
	sort.Slice(methods, func(i, j int) bool { return methods[i].Name() < methods[j].Name() })

	used := map[string]bool{}
	for _, m := range methods {
		used[m.Name()] = true
	}
	field := func(want string) string {
		for used[want] {
			want += "_"
		}
		used[want] = true
		return want
	}
	proxy := "proxy_" + b.stem + "_" + name
	object := field("Object")
	var methodText bytes.Buffer
	fmt.Fprintf(&b.decls, "\n// %s lets interpreted types be a %s.%s.\ntype %s struct {\n\t%s any\n", proxy, b.pkg.Name(), name, proxy, object)
	for _, m := range methods {
		sig := m.Signature()
		f := field(m.Name() + "_")
		var params, args []string
		for i := range sig.Params().Len() {
			typ, dots := sig.Params().At(i).Type(), ""
			text := types.TypeString(typ, b.qualify)
			if sig.Variadic() && i == sig.Params().Len()-1 {
				text = "..." + types.TypeString(typ.(*types.Slice).Elem(), b.qualify)
				dots = "..."
			}
			params = append(params, fmt.Sprintf("a%d %s", i, text))
			args = append(args, fmt.Sprintf("a%d%s", i, dots))
		}
		var results []string
		for r := range sig.Results().Variables() {
			results = append(results, types.TypeString(r.Type(), b.qualify))
		}
		result, ret := strings.Join(results, ", "), ""
		if len(results) > 1 {
			result = "(" + result + ")"
		}
		if len(results) > 0 {
			ret = "return "
		}
		fmt.Fprintf(&b.decls, "\t%s func(%s) %s\n", f, strings.Join(append([]string{"obj any"}, params...), ", "), result)
		fmt.Fprintf(&methodText, "\nfunc (p *%s) %s(%s) %s { %sp.%s(%s) }\n", proxy, m.Name(), strings.Join(params, ", "), result,
			ret, f, strings.Join(append([]string{"p." + object}, args...), ", "))
	}
	b.decls.WriteString("}\n")
	b.decls.Write(methodText.Bytes())
	b.proxies = append(b.proxies, fmt.Sprintf("%q: reflect.TypeOf((*%s)(nil)).Elem(),", name, proxy))
}

func (b *binder) qualify(p *types.Package) string { return b.use(p.Path(), p.Name()) }

// unusable says which part of t cannot be written in another package, or "".
func (b *binder) unusable(t types.Type, seen map[types.Type]bool) string {
	if seen[t] {
		return ""
	}
	seen[t] = true
	named := func(o *types.TypeName, args *types.TypeList) string {
		if o.Pkg() != nil {
			if !o.Exported() {
				return "the unexported type " + o.Name()
			}
			if ok, why := canImport(o.Pkg().Path()); !ok {
				return o.Name() + " (" + why + ")"
			}
		}
		for a := range args.Types() {
			if why := b.unusable(a, seen); why != "" {
				return why
			}
		}
		return ""
	}
	each := func(ts ...types.Type) string {
		for _, t := range ts {
			if why := b.unusable(t, seen); why != "" {
				return why
			}
		}
		return ""
	}
	switch t := t.(type) {
	case *types.Alias:
		return named(t.Obj(), t.TypeArgs())
	case *types.Named:
		return named(t.Obj(), t.TypeArgs())
	case *types.Pointer:
		return each(t.Elem())
	case *types.Slice:
		return each(t.Elem())
	case *types.Array:
		return each(t.Elem())
	case *types.Chan:
		return each(t.Elem())
	case *types.Map:
		return each(t.Key(), t.Elem())
	case *types.Signature:
		return each(t.Params(), t.Results())
	case *types.Tuple:
		for v := range t.Variables() {
			if why := each(v.Type()); why != "" {
				return why
			}
		}
	case *types.Struct:
		for f := range t.Fields() {
			if !f.Exported() {
				return "a struct with the unexported field " + f.Name()
			}
			if why := each(f.Type()); why != "" {
				return why
			}
		}
	case *types.Interface:
		for m := range t.Methods() {
			if !m.Exported() {
				return "an interface with the unexported method " + m.Name()
			}
			if why := each(m.Type()); why != "" {
				return why
			}
		}
	}
	return ""
}

// releaseLine begins the line that says of which Go a package of the standard library is.
const releaseLine = "// As of "

// release is the Go release that runs this program, such as go1.26.
func release() string {
	v := strings.SplitN(runtime.Version(), ".", 3)
	return strings.Join(v[:min(len(v), 2)], ".")
}

// std reports whether a package belongs to the standard library.
func std(path string) bool {
	first, _, _ := strings.Cut(path, "/")
	return !strings.Contains(first, ".") && first != "gpunotes"
}

// canImport reports whether the bindings may import a package.
func canImport(path string) (bool, string) {
	for _, part := range strings.Split(path, "/") {
		if part == "internal" || part == "vendor" {
			return false, path + " is internal"
		}
	}
	return true, ""
}

func (b *binder) text(clause string) ([]byte, error) {
	var w bytes.Buffer
	w.WriteString(header)
	if std(b.pkg.Path()) {
		w.WriteString(releaseLine + release() + ".\n")
	}
	if len(b.skipped) > 0 {
		fmt.Fprintf(&w, "//\n// Not bound, or only in part:\n//\n")
		for _, s := range b.skipped {
			fmt.Fprintf(&w, "//   - %s\n", s)
		}
	}
	fmt.Fprintf(&w, "\npackage %s\n\nimport (\n", clause)
	var paths []string
	for p := range b.alias {
		if p != b.pkg.Path() || len(b.binds)+len(b.kinds) > 0 { // else nothing in the file would use it
			paths = append(paths, p)
		}
	}
	sort.Strings(paths)
	for _, p := range paths {
		fmt.Fprintf(&w, "\t%s %q\n", b.alias[p], p)
	}
	fmt.Fprintf(&w, ")\n\nfunc init() {\n\timports.Packages[%q] = imports.Package{\n\t\tName: %q,\n", b.pkg.Path(), b.pkg.Name())
	section := func(name, typ string, entries []string, always bool) {
		if len(entries) == 0 && !always {
			return
		}
		fmt.Fprintf(&w, "\t\t%s: %s{\n", name, typ)
		for _, e := range entries {
			fmt.Fprintf(&w, "\t\t\t%s\n", e)
		}
		w.WriteString("\t\t},\n")
	}
	section("Binds", "map[string]reflect.Value", b.binds, true) // always: it keeps reflect in use
	section("Types", "map[string]reflect.Type", b.kinds, false)
	section("Proxies", "map[string]reflect.Type", b.proxies, false)
	section("Untypeds", "map[string]string", b.untypeds, false)
	// No Wrappers: gomacro deletes the methods named there from its list of methods but not from the list of their
	// functions, so the remaining names call each other's code.
	w.WriteString("\t}\n}\n")
	w.Write(b.decls.Bytes())
	text, err := format.Source(w.Bytes())
	if err != nil {
		return nil, fmt.Errorf("the generated text is no Go: %w", err)
	}
	return text, nil
}

// identifier turns an import path into a name for files and types: a letter, digit or underscore for each byte.
func identifier(path string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return '_'
	}, path)
}
