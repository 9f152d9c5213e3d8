package fast

import (
	"go/ast"
	"go/token"
	r "reflect"
	"strings"
	"sync"
	"time"

	"github.com/cosmos72/gomacro/base/reflect"
	"github.com/cosmos72/gomacro/imports"
	xr "github.com/cosmos72/gomacro/xreflect"
)

// What the interpreter lacked to treat types declared in cells as Go does.

// Largest is the size in bytes that no type may exceed, 0 for any.
var Largest float64

// mustFit refuses an array that the machine has not the memory for: Go ends a
// process that asks for it.
func (c *Comp) mustFit(count int, elem xr.Type) {
	size := float64(count) * float64(elem.ReflectType().Size())
	if Largest > 0 && size > Largest {
		c.Errorf("the array [%d]%v needs %.4g GiB; this machine has %.4g GiB", count, elem, size/(1<<30), Largest/(1<<30))
	}
}

// structMustFit does the same for all fields of a struct together.
func (c *Comp) structMustFit(fields []xr.StructField) {
	size := 0.0
	for _, f := range fields {
		size += float64(f.Type.ReflectType().Size())
	}
	if Largest > 0 && size > Largest {
		c.Errorf("the struct needs %.4g GiB; this machine has %.4g GiB", size/(1<<30), Largest/(1<<30))
	}
}

// selectForever is select {}: it waits for the interrupt.
func selectForever(env *Env) (Stmt, *Env) {
	const look = 2 * time.Millisecond
	time.Sleep(look)
	return env.Code[env.IP], env
}

// appendSlice is append(s, more...).
func appendSlice(s, more xr.Value) xr.Value {
	a, b := s.ReflectValue(), more.ReflectValue()
	if b.Kind() == r.String {
		b = r.ValueOf([]byte(b.String()))
	}
	if !b.IsValid() {
		return s
	}
	if b.Type() != a.Type() {
		b = b.Convert(a.Type())
	}
	return xr.MakeValue(r.AppendSlice(a, b))
}

// unaddressed is a copy of a value that may be a variable: an interface holds the
// value that the variable had.
func unaddressed(v xr.Value) xr.Value {
	if v.IsValid() && v.CanAddr() {
		w := xr.NewR(v.Type()).Elem()
		w.Set(v)
		return w
	}
	return v
}

// proxyOf finds the struct through which cells' types satisfy a compiled interface,
// also of a package that no cell has imported.
func (c *Comp) proxyOf(t xr.Type) r.Type {
	rt := t.ReflectType()
	if p := c.interf2proxy[rt]; p != nil {
		return p
	}
	for _, pkg := range imports.Packages {
		for name, proxy := range pkg.Proxies {
			if pkg.Types[name] == rt {
				c.interf2proxy[rt] = proxy
				c.proxy2interf[proxy] = t
				return proxy
			}
		}
	}
	c.Errorf("types declared in cells cannot be a %v: compiled code gives no way to it from here; use a type of a compiled package that is one", t)
	return nil
}

// toProxy converts to a compiled interface what has its methods by declarations in cells.
func (c *Comp) toProxy(tin, tout xr.Type) func(xr.Value) xr.Value {
	rtout, rtproxy := tout.ReflectType(), c.proxyOf(tout)
	tsrc := tin
	if tin.Kind() == r.Ptr {
		tsrc = tin.Elem()
	}
	n := rtout.NumMethod()
	getters := make([]func(xr.Value) xr.Value, n)
	for i := 0; i < n; i++ {
		m := rtout.Method(i)
		mtd, count := tsrc.MethodByName(m.Name, m.PkgPath)
		if count != 1 {
			c.Errorf("cannot convert type <%v> to interface <%v>: missing method %s", tin, tout, m.Name)
		}
		if tin.Kind() != r.Ptr && tin.Kind() != r.Interface && len(mtd.FieldIndex) == 0 && mtd.Type.In(0).Kind() == r.Ptr {
			c.Errorf("cannot convert type <%v> to interface <%v>: method %s has a pointer receiver", tin, tout, m.Name)
		}
		getters[i] = c.compileObjGetMethod(tin, mtd)
	}
	method := func(i int, object func(args []r.Value) xr.Value) r.Value {
		ft := rtproxy.Field(i + 1).Type
		return r.MakeFunc(ft, func(args []r.Value) []r.Value {
			m := getters[i](object(args)).ReflectValue()
			args = args[1:]
			for k := range args {
				if want := m.Type().In(k); args[k].Type() != want {
					args[k] = args[k].Convert(want)
				}
			}
			var out []r.Value
			if ft.IsVariadic() {
				out = m.CallSlice(args)
			} else {
				out = m.Call(args)
			}
			for k := range out {
				if want := ft.Out(k); out[k].Type() != want {
					out[k] = out[k].Convert(want)
				}
			}
			return out
		})
	}
	extractor := c.extractor(tin)
	if extractor == nil {
		vtable := r.New(rtproxy).Elem()
		for i := range getters {
			vtable.Field(i + 1).Set(method(i, func(args []r.Value) xr.Value {
				return args[0].Interface().(xr.InterfaceHeader).Value()
			}))
		}
		return func(v xr.Value) xr.Value {
			p := r.New(rtproxy)
			p.Elem().Set(vtable)
			p.Elem().Field(0).Set(r.ValueOf(xr.MakeInterfaceHeader(unaddressed(v), tin)))
			return xr.MakeValue(p.Convert(rtout))
		}
	}
	// From another interface: its methods, and the value in it.
	return func(v xr.Value) xr.Value {
		if !v.IsValid() || reflect.IsNillableKind(v.Kind()) && v.IsNil() {
			return xr.ZeroR(rtout)
		}
		inner, t := extractor(v)
		if inner.IsValid() && inner.Type().Implements(rtout) {
			return convert(inner, rtout)
		}
		p := r.New(rtproxy)
		for i := range getters {
			p.Elem().Field(i + 1).Set(method(i, func([]r.Value) xr.Value { return v }))
		}
		p.Elem().Field(0).Set(r.ValueOf(xr.MakeInterfaceHeader(inner, t)))
		return xr.MakeValue(p.Convert(rtout))
	}
}

// atRun guards the compiler where it is needed while cells run.
var atRun sync.Mutex

// asInterface converts a value of the type t, or of its own type if that is nil, to
// an interface, if it has its methods.
func (c *Comp) asInterface(v xr.Value, t, tout xr.Type) (res xr.Value, ok bool) {
	if !v.IsValid() || v == None {
		return v, false
	}
	rtout := tout.ReflectType()
	emulated := xr.IsEmulatedInterface(tout)
	if t == nil {
		t = xr.CellType(v.Type())
	}
	if !emulated && v.Type().Implements(rtout) && (t == nil || v.Type().Name() != "") {
		return convert(v, rtout), true
	}
	if t == nil && !emulated {
		return v, false
	}
	atRun.Lock()
	defer atRun.Unlock()
	if t == nil {
		t = c.Universe.FromReflectType(v.Type())
	}
	if !t.Implements(tout) {
		return v, false
	}
	conv := c.Converter(t, tout)
	if conv == nil {
		return v, true
	}
	return conv(v), true
}

// within converts what is in an interface to another interface; ok is false if only the
// first one knows its methods.
func (c *Comp) within(obj xr.Value, extract func(xr.Value) (xr.Value, xr.Type), tout xr.Type) (res xr.Value, ok bool) {
	if !obj.IsValid() || reflect.IsNillableKind(obj.Kind()) && obj.IsNil() {
		return xr.ZeroR(tout.ReflectType()), true
	}
	v, t := extract(obj)
	return c.asInterface(v, t, tout)
}

// switchInterface is the comparison of a type switch with an interface.
func (c *Comp) switchInterface(idx int, t xr.Type, end *int) Stmt {
	return func(env *Env) (Stmt, *Env) {
		ip := *end
		if v, ok := c.asInterface(env.Vals[idx], typeIn(env.Vals[idx+1]), t); ok {
			env.Vals[idx] = v
			ip = env.IP + 1
		}
		env.IP = ip
		return env.Code[ip], env
	}
}

// typeIn is the type that a type switch has found, nil if the value tells it.
func typeIn(v xr.Value) xr.Type {
	if !v.IsValid() || reflect.IsNillableKind(v.Kind()) && v.IsNil() || !v.CanInterface() {
		return nil
	}
	t, _ := v.Interface().(xr.Type)
	return t
}

// inCase is the comparison of a type switch with one of several types.
func (c *Comp) inCase(v, found xr.Value, t xr.Type) bool {
	if t == nil {
		return !v.IsValid()
	}
	if !v.IsValid() {
		return false
	}
	is := typeIn(found)
	if t.Kind() == r.Interface {
		if t.NumMethod() == 0 {
			return true
		}
		_, ok := c.asInterface(v, is, t)
		return ok
	}
	return v.Type() == t.ReflectType() && (is == nil || is.IdenticalTo(t))
}

// constTo converts a typed constant to an interface that its type satisfies by
// methods declared in cells.
func constTo(value I, from, to xr.Type) (I, bool) {
	if whole == nil || from == nil || to.Kind() != r.Interface || to.NumMethod() == 0 {
		return nil, false
	}
	if rt := from.ReflectType(); to.ReflectType().Kind() == r.Interface && rt.Implements(to.ReflectType()) {
		return nil, false
	}
	v := convert(xr.ValueOf(value), from.ReflectType())
	return whole.Converter(from, to)(v).Interface(), true
}

// whole compiles where no compiler is at hand.
var whole *Comp

// printers are the packages whose functions look at the methods of what they are given.
var printers = map[string]bool{"fmt": true, "log": true, "log/slog": true}

// encoders ask values how they are to be encoded.
var encoders = map[string][]string{
	"encoding/json": {"encoding/json.Marshaler", "encoding.TextMarshaler"},
	"encoding/xml":  {"encoding/xml.Marshaler", "encoding.TextMarshaler"},
}

// packageOf returns the package of the compiled function, or of the type of the
// compiled method, that is called.
func (c *Comp) packageOf(fun ast.Expr) (path, name string) {
	sel, ok := ast.Unparen(fun).(*ast.SelectorExpr)
	if !ok {
		return "", ""
	}
	if field, ok := sel.X.(*ast.SelectorExpr); ok {
		if t := c.typeOfField(field); t != nil {
			return t.PkgPath(), sel.Sel.Name
		}
	}
	if id, ok := sel.X.(*ast.Ident); ok {
		if sym := c.TryResolve(id.Name); sym != nil {
			if imp, ok := sym.Bind.Value.(*Import); ok {
				return imp.Path, sel.Sel.Name
			}
			t := sym.Type
			if t == nil {
				return "", ""
			}
			if t.Kind() == r.Ptr {
				t = t.Elem()
			}
			if !ofCell(t) {
				return t.PkgPath(), sel.Sel.Name
			}
		}
	}
	return "", ""
}

// ofCell reports whether a type is one of a cell's.
func ofCell(t xr.Type) bool { return t.Named() && t.ReflectType().Name() != t.Name() }

// shownTo returns what makes the arguments of a call fit for a compiled function that
// looks at their methods, nil for other functions. It reports whether it has.
func (c *Comp) shownTo(fun ast.Expr) func(e *Expr) bool {
	path, name := c.packageOf(fun)
	ways, encodes := encoders[path]
	if !encodes && (!printers[path] || strings.Contains(strings.ToLower(name), "scan")) {
		return nil
	}
	return func(e *Expr) bool {
		if e.Type == nil || e.Untyped() {
			return false
		}
		t := e.Type
		if path == "fmt" && name == "Errorf" && c.thrown(e) {
			return true
		}
		f := e.AsX1()
		if encodes {
			for _, way := range ways {
				if i := c.compiledInterface(way); i != nil && t.Kind() != r.Interface && !t.ReflectType().Implements(i.ReflectType()) && t.Implements(i) {
					conv := c.Converter(t, i)
					e.Lit, e.Type, e.Fun = Lit{Type: c.TypeOfInterface()}, c.TypeOfInterface(), func(env *Env) xr.Value { return conv(f(env)) }
					return true
				}
			}
			return false
		}
		if t.Kind() != r.Interface && t.ReflectType().Name() == t.Name() && t.Named() {
			return false // basic types, and those of compiled packages
		}
		e.Lit, e.Type = Lit{Type: c.TypeOfInterface()}, c.TypeOfInterface()
		show := shower(t)
		e.Fun = func(env *Env) xr.Value { return show(f(env)) }
		return true
	}
}

// shower makes values of a type fit for a function that looks at their methods.
func shower(t xr.Type) func(v xr.Value) xr.Value {
	if t != nil && t.Kind() == r.Interface {
		t = nil
	}
	return func(v xr.Value) xr.Value {
		if !v.IsValid() || v == None {
			return nilInterface
		}
		x := xr.Show(v.ReflectValue().Interface(), t)
		return xr.ValueOf(&x).Elem()
	}
}

// showAll does the same for the elements of args in fmt.Println(args...).
func (c *Comp) showAll(e *Expr) {
	f := e.AsX1()
	e.Fun = func(env *Env) xr.Value {
		v := f(env)
		args, ok := v.Interface().([]interface{})
		if !ok {
			return v
		}
		shown := make([]interface{}, len(args))
		for i, a := range args {
			shown[i] = xr.Show(a, nil)
		}
		return xr.ValueOf(shown)
	}
	e.Lit = Lit{Type: e.Type}
}

func (c *Comp) compiledInterface(qualified string) xr.Type {
	dot := strings.LastIndexByte(qualified, '.')
	rt := imports.Packages[qualified[:dot]].Types[qualified[dot+1:]]
	if rt == nil {
		return nil
	}
	return c.Universe.FromReflectType(rt)
}

// thrown makes of an error, for panic and fmt.Errorf, an interface{} that is still
// the error. It reports whether it has.
func (c *Comp) thrown(e *Expr) bool {
	errorOf, t := c.TypeOfError(), e.Type
	if t == nil || e.Untyped() || !t.Implements(errorOf) || t.Kind() != r.Interface && t.ReflectType().Implements(errorOf.ReflectType()) {
		return false
	}
	if e.Const() {
		e.Fun, e.Lit = e.AsX1(), Lit{Type: t}
	}
	if t.Kind() != r.Interface || !t.IdenticalTo(errorOf) {
		f, conv := e.AsX1(), c.Converter(t, errorOf)
		e.Fun = func(env *Env) xr.Value {
			v := f(env)
			if conv != nil && v.IsValid() {
				v = conv(v)
			}
			return v
		}
	}
	e.Lit = Lit{Type: c.TypeOfInterface()}
	return true
}

// explain goes on with what went wrong with an expression that is no type either.
func explain(cause, r interface{}) {
	if err, ok := r.(error); ok && (strings.Contains(err.Error(), "invalid qualified type") || strings.Contains(err.Error(), "not a package")) {
		panic(cause)
	}
	if r != nil {
		panic(r)
	}
}

// typeOfField is the type of x in x.y.Method, less a pointer; nil if x.y is none.
func (c *Comp) typeOfField(node ast.Expr) (t xr.Type) {
	defer func() { _ = recover() }()
	if t = c.Expr1(node, nil).Type; t != nil && t.Kind() == r.Ptr {
		t = t.Elem()
	}
	if ofCell(t) || !t.Named() {
		t = nil
	}
	return t
}

// Elsewhere is called where a cell hands over a function that compiled code will call
// in a goroutine of its own. It returns what makes each of these calls.
var Elsewhere func() func(call func())

// elsewhere are such functions and methods. Servers of net/http look after their own.
var elsewhere = map[[2]string]bool{
	{"time", "AfterFunc"}: true, {"context", "AfterFunc"}: true, {"sync", "Go"}: true, {"runtime", "SetFinalizer"}: true, {"testing", "Benchmark"}: true,
}

func (c *Comp) runsElsewhere(fun ast.Expr) bool {
	if Elsewhere == nil {
		return false
	}
	path, name := c.packageOf(fun)
	return elsewhere[[2]string{path, name}]
}

// guardElsewhere keeps a panic in such a call from ending the process.
func guardElsewhere(e *Expr) {
	f := e.AsX1()
	e.Fun = func(env *Env) xr.Value {
		v := f(env).ReflectValue()
		if !v.IsValid() || v.Kind() != r.Func || v.IsNil() {
			return f(env)
		}
		run, t := Elsewhere(), v.Type()
		return xr.MakeValue(r.MakeFunc(t, func(args []r.Value) (out []r.Value) {
			run(func() {
				if t.IsVariadic() {
					out = v.CallSlice(args)
				} else {
					out = v.Call(args)
				}
			})
			if out == nil {
				for i := 0; i < t.NumOut(); i++ {
					out = append(out, r.Zero(t.Out(i)))
				}
			}
			return out
		}))
	}
	e.Lit = Lit{Type: e.Type}
}

// ofCopy makes a method value of a method with a value receiver, whose getter takes
// the receiver itself: it is found and copied when the method value is made.
func ofCopy(get func(xr.Value) xr.Value, fields []int, deref bool) func(xr.Value) xr.Value {
	return func(obj xr.Value) xr.Value {
		switch len(fields) {
		case 0:
		case 1:
			obj = field0(obj, fields[0])
		default:
			obj = fieldByIndex(obj, fields)
		}
		if deref {
			if obj.IsNil() {
				var none *int
				*none = 0 // as Go panics
			}
			obj = obj.Elem()
		}
		return get(unaddressed(obj))
	}
}

// pointerTo goes through a pointer to a named type that is no struct and no interface.
func pointerTo(t xr.Type) xr.Type {
	if t.Kind() == r.Ptr && !t.Named() && t.Elem().Named() && t.Elem().Kind() != r.Interface && t.Elem().Kind() != r.Ptr {
		return t.Elem()
	}
	return t
}

// addressed is &x where x.Method needs it and x lies where only & finds it:
// numbers, strings and bools.
func (c *Comp) addressed(node *ast.SelectorExpr, e *Expr, mtd xr.Method) *Expr {
	if len(mtd.FieldIndex) == 0 && mtd.Type != nil && mtd.Type.In(0).Kind() == r.Ptr && reflect.IsOptimizedKind(e.Type.Kind()) {
		return c.addressOf(node.X, nil)
	}
	return e
}

// methodExpr is T.Method and (*T).Method, methods of embedded fields included.
func (c *Comp) methodExpr(t xr.Type, mtd xr.Method) *Expr {
	if mtd.Type == nil || t.Kind() == r.Interface {
		return c.compileMethodAsFunc(t, mtd)
	}
	get := c.compileObjGetMethod(t, mtd)
	tfunc := c.changeFirstParam(t, mtd.Type)
	call := xr.Value.Call
	if tfunc.IsVariadic() {
		call = xr.Value.CallSlice
	}
	return exprX1(tfunc, func(*Env) xr.Value {
		return xr.MakeFunc(tfunc, func(args []xr.Value) []xr.Value {
			return call(get(args[0]), args[1:])
		})
	})
}

// intoItsOwn makes a loop that sets existing variables, for k, v = range x, one with
// variables of its own, which the body sets them to.
func intoItsOwn(node *ast.RangeStmt) *ast.RangeStmt {
	if node.Tok != token.ASSIGN || node.Key == nil {
		return node
	}
	own := *node
	own.Tok = token.DEFINE
	set := &ast.AssignStmt{TokPos: node.TokPos, Tok: token.ASSIGN}
	for i, to := range []*ast.Expr{&own.Key, &own.Value} {
		if *to == nil {
			continue
		}
		if id, ok := (*to).(*ast.Ident); ok && id.Name == "_" {
			continue
		}
		mine := &ast.Ident{NamePos: (*to).Pos(), Name: [...]string{"key", "element"}[i] + "\u00b7"} // no cell can write it
		set.Lhs, set.Rhs = append(set.Lhs, *to), append(set.Rhs, mine)
		*to = mine
	}
	if len(set.Lhs) == 0 {
		return node
	}
	body := *node.Body
	body.List = append([]ast.Stmt{set}, body.List...)
	own.Body = &body
	return &own
}
