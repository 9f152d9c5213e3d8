package xreflect

import (
	"fmt"
	r "reflect"
	"sort"
	"strconv"
	"strings"
	"sync"

	"github.com/cosmos72/gomacro/go/types"
)

// What compiled code gets of a type declared in a cell is its underlying type,
// because Go makes no named types at run time. This file keeps what is lost:
// which type a value was of, and the methods of that type.

// brandKey is the key of the tag by which the struct types of cells differ.
const brandKey = StrGensymPrivate

var (
	cells struct {
		sync.RWMutex
		named  map[*types.Named]*xtype
		byType map[r.Type]*types.Named // struct types only: the others have no types of their own
		selves map[*types.Named]bool   // those that refer to themselves
		old    map[*types.Named]r.Type // of those that are being declared again
		locals int
	}
	headerType = r.TypeOf(InterfaceHeader{})
)

// Brand makes the type behind a named struct type of a cell differ from all
// others, and notes whose it is. Types declared in functions may have the name
// of another one, and get a number.
func Brand(t Type, local bool) {
	xt := unwrap(t)
	named, ok := xt.gtype.(*types.Named)
	if !ok {
		return
	}
	cells.Lock()
	if cells.named == nil {
		cells.named, cells.byType = map[*types.Named]*xtype{}, map[r.Type]*types.Named{}
		cells.selves, cells.old = map[*types.Named]bool{}, map[*types.Named]r.Type{}
	}
	cells.named[named] = xt
	xt.rtype = bare(xt.rtype)
	name := t.String()
	if local {
		cells.locals++
		name += "#" + strconv.Itoa(cells.locals)
	}
	rt, ok := branded(xt.rtype, name)
	if ok {
		xt.rtype = rt
		cells.byType[rt] = named
	}
	cells.Unlock()
	if ok {
		// It is complete now: only its fields refer to it by another type.
		self := xt.option == OptRecursive
		xt.option = OptDefault
		p := unwrap(t.Universe().PtrTo(t))
		self = self || p.option == OptRecursive
		p.option = OptDefault
		cells.Lock()
		cells.selves[named] = self
		delete(cells.old, named)
		cells.Unlock()
	}
}

// declared is the place where the methods of a type of a cell are, nil for other types.
func declared(t *xtype) *xtype {
	named, ok := t.gtype.(*types.Named)
	if !ok || t.kind == r.Interface {
		return nil
	}
	cells.RLock()
	defer cells.RUnlock()
	return cells.named[named]
}

// settled reports whether a type is a declared one or a pointer to one: the type of
// a field that refers to it is the same.
func settled(g types.Type) bool {
	if p, ok := g.(*types.Pointer); ok {
		g = p.Elem()
	}
	named, ok := g.(*types.Named)
	if !ok {
		return false
	}
	cells.RLock()
	defer cells.RUnlock()
	xt := cells.named[named]
	return xt != nil && xt.rtype != rTypeOfForward
}

// branded puts the name into the tag of the first field.
func branded(rt r.Type, name string) (r.Type, bool) {
	if rt.Kind() != r.Struct || rt.Name() != "" {
		return nil, false
	}
	if rt.NumField() == 0 {
		return r.StructOf([]r.StructField{{Name: StrGensymPrivate + "_", Type: rt, Tag: r.StructTag(`json:"-" xml:"-" ` + brandKey + ":" + strconv.Quote(name))}}), true
	}
	fields := make([]r.StructField, rt.NumField())
	for i := range fields {
		fields[i] = rt.Field(i)
		if fields[i].PkgPath != "" || fields[i].Anonymous {
			return nil, false // of a compiled package
		}
		fields[i].Index, fields[i].Offset = nil, 0
	}
	tag := string(fields[0].Tag)
	if i := strings.Index(tag, brandKey+`:"`); i >= 0 {
		tag = tag[:i]
	}
	fields[0].Tag = r.StructTag(strings.TrimSpace(tag + " " + brandKey + ":" + strconv.Quote(name)))
	return r.StructOf(fields), true
}

// bare is what is under a type of a compiled package: a type of a cell that is
// declared by it has none of its methods.
func bare(rt r.Type) (plain r.Type) {
	if rt.Name() == "" || rt.PkgPath() == "" || rt == rTypeOfForward {
		return rt
	}
	defer func() {
		if recover() != nil {
			plain = rt // a struct that reflection cannot make
		}
	}()
	switch rt.Kind() {
	case r.Array:
		return r.ArrayOf(rt.Len(), rt.Elem())
	case r.Chan:
		return r.ChanOf(rt.ChanDir(), rt.Elem())
	case r.Func:
		in, out := make([]r.Type, rt.NumIn()), make([]r.Type, rt.NumOut())
		for i := range in {
			in[i] = rt.In(i)
		}
		for i := range out {
			out[i] = rt.Out(i)
		}
		return r.FuncOf(in, out, rt.IsVariadic())
	case r.Map:
		return r.MapOf(rt.Key(), rt.Elem())
	case r.Slice:
		return r.SliceOf(rt.Elem())
	case r.Struct:
		fields := make([]r.StructField, rt.NumField())
		for i := range fields {
			fields[i] = rt.Field(i)
			fields[i].Index, fields[i].Offset = nil, 0
		}
		return r.StructOf(fields)
	}
	if t := plainTypes[rt.Kind()]; t != nil {
		return t
	}
	return rt
}

// sameEmpty reports whether a value of an empty struct is wanted as one of another type.
func sameEmpty(v r.Value, t r.Type) bool {
	return v.IsValid() && v.Type() != t && Empty(v.Type()) && Empty(t)
}

// Empty reports whether a type is a struct that has no fields but the one that brands it.
func Empty(t r.Type) bool {
	return t.Kind() == r.Struct && t.NumField() == 0 || t.Kind() == r.Struct && t.NumField() == 1 && t.Field(0).Name == StrGensymPrivate+"_" && strings.Contains(string(t.Field(0).Tag), brandKey)
}

// hideField adds to the tag of a field that programs must not see what keeps the
// encoders of the standard library from it: its name begins with a letter that
// counts as exported.
func hideField(name string, tag r.StructTag) r.StructTag {
	if !strings.HasPrefix(name, StrGensymPrivate) || tag.Get("json") == "-" && tag.Get("xml") == "-" {
		return tag
	}
	return `json:"-" xml:"-"`
}

// CellType returns the cell's type, or the pointer to it, that a value of a struct
// type has lost, nil if it is none.
func CellType(rt r.Type) Type {
	if rt == nil {
		return nil
	}
	pointer := rt.Kind() == r.Ptr && rt.Name() == ""
	if pointer {
		rt = rt.Elem()
	}
	if rt.Kind() != r.Struct {
		return nil
	}
	cells.RLock()
	named := cells.byType[rt]
	xt := cells.named[named]
	cells.RUnlock()
	if named == nil || xt == nil || xt.rtype != rt {
		return nil
	}
	if pointer {
		gptr := types.NewPointer(named)
		return wrap(&xtype{kind: r.Ptr, gtype: gptr, rtype: r.PtrTo(rt), universe: xt.universe})
	}
	return wrap(xt)
}

// Uncover takes off a value what carries it through the interpreter's interfaces.
// The type is nil where the value itself tells it.
func Uncover(v r.Value) (r.Value, Type) {
	for v.IsValid() && v.Kind() == r.Interface {
		v = v.Elem()
	}
	if h, ok := header(v); ok {
		inner, t := h.val.ReflectValue(), h.typ
		if t == nil || t.Kind() == r.Interface {
			return Uncover(inner)
		}
		return inner, t
	}
	if !v.IsValid() {
		return v, nil
	}
	return v, CellType(v.Type())
}

func header(v r.Value) (h InterfaceHeader, ok bool) {
	if !v.IsValid() || v.Kind() != r.Ptr || v.IsNil() || v.Type().Elem().Kind() != r.Struct || v.Type().Elem().NumField() < 2 {
		return h, false
	}
	switch f := v.Elem().Field(0); {
	case f.Type() == headerType:
	case f.Kind() == r.Interface && !f.IsNil() && f.Elem().Type() == headerType:
		f = f.Elem()
		h, ok = f.Interface().(InterfaceHeader)
		return h, ok
	default:
		return h, false
	}
	h, ok = v.Elem().Field(0).Interface().(InterfaceHeader)
	return h, ok
}

// CellMethod returns a method of a value whose type is declared in a cell, bound to it.
func CellMethod(v r.Value, t Type, name string) (method r.Value, ok bool) {
	if t == nil || !v.IsValid() {
		return method, false
	}
	return cellMethod(v, t.GoType(), name)
}

func cellMethod(v r.Value, g types.Type, name string) (method r.Value, ok bool) {
	type place struct {
		v r.Value
		g types.Type
	}
	for level, seen := []place{{v, g}}, 0; len(level) > 0 && seen < 1000; {
		var next []place
		for _, p := range level {
			seen++
			v, g, pointer := p.v, p.g, false
			for v.IsValid() && v.Kind() == r.Interface {
				v = v.Elem()
			}
			if !v.IsValid() {
				continue
			}
			if ptr, isPtr := g.(*types.Pointer); isPtr {
				g, pointer = ptr.Elem(), true
			}
			named, _ := g.(*types.Named)
			cells.RLock()
			xt := cells.named[named]
			cells.RUnlock()
			if named != nil && xt == nil {
				if m := v.MethodByName(name); m.IsValid() {
					return m, true
				}
				continue
			}
			if named != nil {
				if m, ok := explicit(v, pointer, named, xt, name); ok {
					return m, true
				}
			}
			s, isStruct := g.Underlying().(*types.Struct)
			if pointer && v.Kind() == r.Ptr {
				v = v.Elem()
			}
			if !isStruct || v.Kind() != r.Struct {
				continue
			}
			for i := 0; i < s.NumFields() && i < v.NumField(); i++ {
				if s.Field(i).Anonymous() {
					next = append(next, place{v.Field(i), s.Field(i).Type()})
				}
			}
		}
		level = next
	}
	return method, false
}

func explicit(v r.Value, pointer bool, named *types.Named, xt *xtype, name string) (method r.Value, ok bool) {
	cells.RLock()
	defer cells.RUnlock()
	for i := 0; i < named.NumMethods() && i < len(xt.methodvalue); i++ {
		f := xt.methodvalue[i]
		if named.Method(i).Name() != name || f.Kind() != r.Func || f.IsNil() {
			continue
		}
		byPointer := f.Type().In(0).Kind() == r.Ptr
		switch {
		case byPointer && !pointer:
			if !v.CanAddr() {
				return method, false
			}
			v = v.Addr()
		case !byPointer && pointer:
			if v.Kind() != r.Ptr || v.IsNil() {
				return method, false
			}
			v = v.Elem()
		}
		if !v.Type().AssignableTo(f.Type().In(0)) {
			if !v.Type().ConvertibleTo(f.Type().In(0)) {
				return method, false
			}
			v = v.Convert(f.Type().In(0))
		}
		ft := f.Type()
		in, out := make([]r.Type, ft.NumIn()-1), make([]r.Type, ft.NumOut())
		for k := range in {
			in[k] = ft.In(k + 1)
		}
		for k := range out {
			out[k] = ft.Out(k)
		}
		return r.MakeFunc(r.FuncOf(in, out, ft.IsVariadic()), func(args []r.Value) []r.Value {
			args = append([]r.Value{v}, args...)
			if ft.IsVariadic() {
				return f.CallSlice(args)
			}
			return f.Call(args)
		}), true
	}
	return method, false
}

// A Shown is a value on its way to package fmt, with the type it has in the cell.
type Shown struct {
	v r.Value
	g types.Type
	// Failed is what one of its methods has thrown, which fmt writes into the text.
	Failed interface{}
}

// Show returns what fmt is to be given for a value of the type t: the value itself
// where fmt knows all of it. Of t nil the value tells its type, if anything does.
func Show(value interface{}, t Type) interface{} {
	v := r.ValueOf(value)
	if t == nil || t.Kind() == r.Interface {
		v, t = Uncover(v)
	}
	if !v.IsValid() {
		return nil
	}
	var g types.Type
	if t != nil {
		g = t.GoType()
	}
	if !foreign(v.Type(), g) && !special(v.Type(), nil) {
		return v.Interface()
	}
	return &Shown{v: v, g: g}
}

// Value returns the value as compiled code sees it.
func (s *Shown) Value() interface{} { return s.v.Interface() }

// TypeName returns the name of the type as the cell has it.
func (s *Shown) TypeName() string { return typeName(s.v.Type(), s.g) }

// TypeName returns the name of the type of any value as cells have it.
func TypeName(value interface{}) string {
	v, t := Uncover(r.ValueOf(value))
	if !v.IsValid() {
		return "<nil>"
	}
	if t != nil {
		return typeName(v.Type(), t.GoType())
	}
	return typeName(v.Type(), nil)
}

func typeName(rt r.Type, g types.Type) string {
	if g != nil {
		return strings.Replace(types.TypeString(g, (*types.Package).Name), "interface{}", "interface {}", -1)
	}
	return rt.String()
}

// foreign reports whether a type is, or is made of, a type declared in a cell.
func foreign(rt r.Type, g types.Type) bool { return foreignIn(rt, g, map[types.Type]bool{}) }

func foreignIn(rt r.Type, g types.Type, seen map[types.Type]bool) bool {
	if g == nil || seen[g] {
		return false
	}
	seen[g] = true
	switch g := g.(type) {
	case *types.Named:
		cells.RLock()
		defer cells.RUnlock()
		return cells.named[g] != nil
	case *types.Pointer:
		return foreignIn(nil, g.Elem(), seen)
	case *types.Slice:
		return foreignIn(nil, g.Elem(), seen)
	case *types.Array:
		return foreignIn(nil, g.Elem(), seen)
	case *types.Map:
		return foreignIn(nil, g.Elem(), seen) || foreignIn(nil, g.Key(), seen)
	case *types.Chan:
		return foreignIn(nil, g.Elem(), seen)
	case *types.Struct:
		for i := 0; i < g.NumFields(); i++ {
			if !g.Field(i).Exported() || foreignIn(nil, g.Field(i).Type(), seen) {
				return true
			}
		}
	case *types.Interface:
		return g.NumMethods() > 0 // it may be one of the interpreter's own
	}
	return false
}

// special reports whether a compiled type holds what only the interpreter knows.
func special(rt r.Type, seen map[r.Type]bool) bool {
	if seen[rt] || rt.Name() != "" && rt.PkgPath() != "" && rt != rTypeOfForward {
		return false
	}
	next := map[r.Type]bool{rt: true}
	for t := range seen {
		next[t] = true
	}
	switch rt.Kind() {
	case r.Interface:
		return true
	case r.Ptr, r.Slice, r.Array:
		return special(rt.Elem(), next)
	case r.Map:
		return special(rt.Elem(), next) || special(rt.Key(), next)
	case r.Struct:
		for i := 0; i < rt.NumField(); i++ {
			f := rt.Field(i)
			if strings.HasPrefix(f.Name, StrGensymPrivate) || strings.HasPrefix(f.Name, StrGensymAnonymous) ||
				strings.Contains(string(f.Tag), brandKey) || special(f.Type, next) {
				return true
			}
		}
	}
	return false
}

// Format writes the value as fmt would if the types of cells were compiled.
func (s *Shown) Format(f fmt.State, verb rune) {
	if verb == TypeVerb {
		fmt.Fprintf(f, fmt.FormatString(f, 's'), s.TypeName())
		return
	}
	p := printer{State: f, verb: verb, failed: &s.Failed}
	p.value(s.v, s.g, 0, true)
}

// TypeVerb stands for %T in what Shown is asked for.
const TypeVerb = '\U0001202B'

type printer struct {
	fmt.State
	verb   rune
	failed *interface{}
}

// call calls a method, and writes as fmt does that it has panicked.
func (p *printer) call(name string, f func()) {
	defer func() {
		if x := recover(); x != nil {
			if *p.failed == nil {
				*p.failed = x
			}
			fmt.Fprintf(p, "%%!%c(PANIC=%s method: %v)", p.verb, name, x)
		}
	}()
	f()
}

func (p *printer) sharpV() bool { return p.verb == 'v' && p.Flag('#') }

// text is fmt's printing of a string, which %+v and %#v do not change.
func (p *printer) text(s string) {
	if p.verb != 'v' {
		fmt.Fprintf(p, fmt.FormatString(p, p.verb), s)
		return
	}
	format := strings.Map(func(c rune) rune {
		if c == '+' || c == '#' {
			return -1
		}
		return c
	}, fmt.FormatString(p, 's'))
	fmt.Fprintf(p, format, s)
}

// leaf hands a value to fmt as it is.
func (p *printer) leaf(v r.Value, methods bool) {
	format := fmt.FormatString(p, p.verb)
	if !methods && v.CanInterface() {
		if t, ok := plainTypes[v.Kind()]; ok && v.Type().NumMethod() > 0 {
			v = v.Convert(t)
		}
	}
	if v.CanInterface() {
		fmt.Fprintf(p, format, v.Interface())
	} else {
		fmt.Fprintf(p, format, v)
	}
}

var plainTypes = map[r.Kind]r.Type{}

func init() {
	for _, x := range []interface{}{false, 0, int8(0), int16(0), int32(0), int64(0), uint(0), uint8(0), uint16(0), uint32(0), uint64(0), uintptr(0), float32(0), 0.0, complex64(0), complex128(0), ""} {
		plainTypes[r.TypeOf(x).Kind()] = r.TypeOf(x)
	}
}

// handled calls the method that says how a value looks, if there is one.
func (p *printer) handled(v r.Value, g types.Type) bool {
	if named, ok := g.(*types.Named); g == nil || ok && named.Obj().Pkg() == nil {
		return false
	}
	if v.Kind() == r.Ptr && v.IsNil() {
		return false
	}
	if m, ok := cellMethod(v, g, "Format"); ok {
		if f, ok := m.Interface().(func(fmt.State, rune)); ok {
			p.call("Format", func() { f(p.State, p.verb) })
			return true
		}
	}
	if p.sharpV() {
		if m, ok := cellMethod(v, g, "GoString"); ok {
			if f, ok := m.Interface().(func() string); ok {
				p.call("GoString", func() { p.write(f()) })
				return true
			}
		}
		return false
	}
	switch p.verb {
	case 'v', 's', 'x', 'X', 'q':
	default:
		return false
	}
	for _, name := range []string{"Error", "String"} {
		if m, ok := cellMethod(v, g, name); ok {
			if f, ok := m.Interface().(func() string); ok {
				p.call(name, func() { p.text(f()) })
				return true
			}
		}
	}
	return false
}

func (p *printer) write(s string) { p.Write([]byte(s)) }

func (p *printer) value(v r.Value, g types.Type, depth int, methods bool) {
	const deepest = 100 // a value that contains itself
	if depth > deepest {
		p.write("...")
		return
	}
	if v.IsValid() && v.Kind() == r.Interface {
		_, isInterface := under(g).(*types.Interface)
		if g == nil || isInterface {
			g = nil
		}
		v = v.Elem() // else it is a field of the type of its own struct
	}
	if g == nil || isInterfaceType(g) {
		var t Type
		if v, t = Uncover(v); t != nil {
			g = t.GoType()
		} else {
			g = nil
		}
	}
	if !v.IsValid() {
		switch {
		case p.sharpV() && g != nil:
			p.write(typeName(nil, g) + "(nil)")
		case p.sharpV():
			p.write("interface {}(nil)")
		default:
			p.write("<nil>")
		}
		return
	}
	if methods && p.handled(v, g) {
		return
	}
	if !foreign(v.Type(), g) && !special(v.Type(), nil) && (depth == 0 || v.Kind() != r.Ptr) {
		p.leaf(v, methods)
		return
	}
	switch v.Kind() {
	case r.Struct:
		p.fields(v, g, depth, methods)
	case r.Slice, r.Array:
		if v.Type().Elem().Kind() == r.Uint8 {
			p.leaf(v, false)
			return
		}
		if p.sharpV() {
			p.write(typeName(v.Type(), g))
			if v.Kind() == r.Slice && v.IsNil() {
				p.write("(nil)")
				return
			}
		}
		p.list(v.Len(), func(i int) { p.value(v.Index(i), elem(g), depth+1, methods) })
	case r.Map:
		if p.sharpV() {
			p.write(typeName(v.Type(), g))
			if v.IsNil() {
				p.write("(nil)")
				return
			}
		} else {
			p.write("map")
		}
		var key types.Type
		if m, ok := under(g).(*types.Map); ok {
			key = m.Key()
		}
		keys := sortedKeys(v)
		p.list(len(keys), func(i int) {
			p.value(keys[i], key, depth+1, methods)
			p.write(":")
			p.value(v.MapIndex(keys[i]), elem(g), depth+1, methods)
		})
	case r.Ptr:
		if v.IsNil() {
			if p.sharpV() {
				p.write("(" + typeName(v.Type(), g) + ")(nil)")
			} else {
				p.write("<nil>")
			}
			return
		}
		switch k := v.Elem().Kind(); {
		case depth == 0 && (k == r.Struct || k == r.Slice || k == r.Array || k == r.Map):
			p.write("&")
			p.value(v.Elem(), elem(g), depth+1, methods)
		case p.sharpV():
			p.write(fmt.Sprintf("(%s)(%#x)", typeName(v.Type(), g), v.Pointer()))
		case p.verb == 'v':
			p.write(fmt.Sprintf("%#x", v.Pointer()))
		default:
			fmt.Fprintf(p, fmt.FormatString(p, p.verb), v.Pointer())
		}
	default:
		p.leaf(v, false)
	}
}

func (p *printer) list(n int, item func(i int)) {
	open, sep, shut := "[", " ", "]"
	if p.sharpV() {
		open, sep, shut = "{", ", ", "}"
	}
	p.write(open)
	for i := 0; i < n; i++ {
		if i > 0 {
			p.write(sep)
		}
		item(i)
	}
	p.write(shut)
}

func (p *printer) fields(v r.Value, g types.Type, depth int, methods bool) {
	s, _ := under(g).(*types.Struct)
	if p.sharpV() {
		p.write(typeName(v.Type(), g))
	}
	p.write("{")
	for i := 0; i < v.NumField() && !Empty(v.Type()); i++ {
		if i > 0 && p.sharpV() {
			p.write(", ")
		} else if i > 0 {
			p.write(" ")
		}
		name, exported := FieldName(v.Type().Field(i).Name)
		var t types.Type
		if s != nil && i < s.NumFields() {
			name, exported, t = s.Field(i).Name(), s.Field(i).Exported(), s.Field(i).Type()
		}
		if p.Flag('+') || p.sharpV() {
			p.write(name + ":")
		}
		p.value(v.Field(i), t, depth+1, methods && exported)
	}
	p.write("}")
}

// FieldName returns the name of a field as the cell has it.
func FieldName(name string) (string, bool) {
	for _, mark := range []string{StrGensymPrivate, StrGensymAnonymous} {
		if strings.HasPrefix(name, mark) {
			return name[len(mark):], false
		}
	}
	return name, true
}

func under(g types.Type) types.Type {
	if g == nil {
		return nil
	}
	return g.Underlying()
}

func isInterfaceType(g types.Type) bool {
	_, ok := under(g).(*types.Interface)
	return ok
}

func elem(g types.Type) types.Type {
	if e, ok := under(g).(interface{ Elem() types.Type }); ok {
		return e.Elem()
	}
	return nil
}

// sortedKeys orders the keys of a map as fmt does.
func sortedKeys(m r.Value) []r.Value {
	keys := m.MapKeys()
	sort.SliceStable(keys, func(i, j int) bool { return order(keys[i], keys[j]) < 0 })
	return keys
}

// order is less than 0 where a stands before b, more than 0 where it stands behind.
func order(a, b r.Value) int {
	a, b = held(a), held(b)
	if !a.IsValid() || !b.IsValid() {
		return before(!a.IsValid() && b.IsValid(), a.IsValid() && !b.IsValid())
	}
	if a.Type() != b.Type() {
		return strings.Compare(a.Type().String(), b.Type().String()) // of interfaces only, where fmt takes any order
	}
	switch k := a.Kind(); {
	case a.CanInt():
		return before(a.Int() < b.Int(), a.Int() > b.Int())
	case a.CanUint():
		return before(a.Uint() < b.Uint(), a.Uint() > b.Uint())
	case a.CanFloat():
		return orderFloats(a.Float(), b.Float())
	case a.CanComplex():
		if c := orderFloats(real(a.Complex()), real(b.Complex())); c != 0 {
			return c
		}
		return orderFloats(imag(a.Complex()), imag(b.Complex()))
	case k == r.String:
		return strings.Compare(a.String(), b.String())
	case k == r.Bool:
		return before(!a.Bool() && b.Bool(), a.Bool() && !b.Bool())
	case k == r.Ptr || k == r.Chan || k == r.UnsafePointer:
		return before(a.Pointer() < b.Pointer(), a.Pointer() > b.Pointer())
	case k == r.Struct:
		for i := 0; i < a.NumField(); i++ {
			if c := order(a.Field(i), b.Field(i)); c != 0 {
				return c
			}
		}
	case k == r.Array:
		for i := 0; i < a.Len(); i++ {
			if c := order(a.Index(i), b.Index(i)); c != 0 {
				return c
			}
		}
	}
	return 0
}

// held is the value in an interface.
func held(v r.Value) r.Value {
	if v.Kind() == r.Interface || v.Kind() == r.Ptr {
		v, _ = Uncover(v)
	}
	return v
}

func before(less, more bool) int {
	switch {
	case less:
		return -1
	case more:
		return 1
	}
	return 0
}

// orderFloats takes NaN for the smallest.
func orderFloats(a, b float64) int {
	return before(a < b || a != a && b == b, a > b || a == a && b != b)
}

// boundsError is what Go says of an index, which reflection does not.
type boundsError string

func (e boundsError) Error() string { return "runtime error: " + string(e) }

// RuntimeError makes it a runtime.Error.
func (boundsError) RuntimeError() {}

func checkIndex(v r.Value, i int) {
	switch v.Kind() {
	case r.Slice, r.Array, r.String:
		if n := v.Len(); i < 0 {
			panic(boundsError(fmt.Sprintf("index out of range [%d]", i)))
		} else if i >= n {
			panic(boundsError(fmt.Sprintf("index out of range [%d] with length %d", i, n)))
		}
	}
}

func checkSlice(v r.Value, i, j int) {
	var most int
	what := "capacity"
	switch v.Kind() {
	case r.Slice:
		most = v.Cap()
	case r.Array, r.String:
		most, what = v.Len(), "length"
	default:
		return
	}
	switch {
	case j < 0:
		panic(boundsError(fmt.Sprintf("slice bounds out of range [:%d]", j)))
	case j > most:
		panic(boundsError(fmt.Sprintf("slice bounds out of range [:%d] with %s %d", j, what, most)))
	case i < 0:
		panic(boundsError(fmt.Sprintf("slice bounds out of range [%d:]", i)))
	case i > j:
		panic(boundsError(fmt.Sprintf("slice bounds out of range [%d:%d]", i, j)))
	}
}

// filled is the value as reflection takes it. Of a nil of a type that refers to
// itself, reflection does not know the type.
func (v Value) filled(t r.Type) r.Value {
	if v.isfwd() && v.rv.IsNil() {
		return r.Zero(t)
	}
	rv := v.fwd()
	if sameEmpty(rv, t) {
		return r.Zero(t)
	}
	return rv
}

// asKey is the key of a map as reflection takes it.
func (v Value) asKey(t r.Type) r.Value {
	if !v.IsValid() {
		return r.Zero(t)
	}
	return v.filled(t)
}

func filledArgs(f r.Type, in []Value, slice bool) []r.Value {
	args := make([]r.Value, len(in))
	for i, v := range in {
		last := f.NumIn() - 1
		switch {
		case !f.IsVariadic() || slice || i < last:
			if i > last {
				return ToReflectValues(in) // too many, which Call will say
			}
			args[i] = v.filled(f.In(i))
		default:
			args[i] = v.filled(f.In(last).Elem())
		}
	}
	return args
}

var forwards sync.Map // r.Type -> bool

// holdsForward reports whether values of a type have fields that refer to the type
// itself: they must begin as nil of the right type.
func holdsForward(rt r.Type) bool {
	switch rt.Kind() {
	case r.Interface:
		return rt == rTypeOfForward
	case r.Slice, r.Array:
		return holdsForward(rt.Elem())
	case r.Struct:
	default:
		return false
	}
	if known, ok := forwards.Load(rt); ok {
		return known.(bool)
	}
	holds := false
	for i := 0; i < rt.NumField() && !holds; i++ {
		f := rt.Field(i).Type
		holds = f.Kind() != r.Slice && holdsForward(f)
	}
	forwards.Store(rt, holds)
	return holds
}

// Undeclare makes a struct type that is declared again incomplete, as it was when it
// was declared first.
func Undeclare(t Type) {
	xt := unwrap(t)
	named, ok := xt.gtype.(*types.Named)
	if !ok || xt.kind != r.Struct || xt.rtype == rTypeOfForward {
		return
	}
	cells.Lock()
	defer cells.Unlock()
	if cells.named[named] == xt {
		cells.old[named] = xt.rtype
		xt.rtype, xt.option = rTypeOfForward, OptIncomplete
	}
}

// Redeclare takes Undeclare back: the new declaration was none.
func Redeclare(t Type) {
	xt := unwrap(t)
	named, ok := xt.gtype.(*types.Named)
	if !ok {
		return
	}
	cells.Lock()
	defer cells.Unlock()
	if old := cells.old[named]; old != nil {
		xt.rtype, xt.option = old, OptDefault
		delete(cells.old, named)
	}
}

// memberType is what maps and channels have a type as.
func (t *xtype) memberType() r.Type {
	g := t.gtype
	if p, ok := g.(*types.Pointer); ok {
		g = p.Elem()
	}
	if named, ok := g.(*types.Named); ok {
		cells.RLock()
		self := cells.selves[named]
		cells.RUnlock()
		if self {
			return rTypeOfForward
		}
	}
	return t.approxReflectType()
}
