//go:build go1.21

package main

import (
	"errors"
	"fmt"
	"log"
	"reflect"
	"strings"
	"unicode/utf8"

	"github.com/cosmos72/gomacro/fast"
	"github.com/cosmos72/gomacro/imports"
	"github.com/cosmos72/gomacro/xreflect"

	"gpunotes/jupyter/cell"
)

// What cells get in place of some functions of the standard library, which look at
// types: those of cells are not what they seem to compiled code.

func init() {
	fast.Largest = float64(cell.Memory())
	cell.Shown = func(v interface{}) interface{} { return xreflect.Show(v, nil) }
	cell.TypeName = xreflect.TypeName
	rebind("fmt", map[string]interface{}{
		"Sprintf": func(format string, a ...interface{}) string { return fmt.Sprintf(typeVerbs(format, a), a...) },
		"Errorf":  func(format string, a ...interface{}) error { return fmt.Errorf(typeVerbs(format, a), a...) },
		"Appendf": func(b []byte, format string, a ...interface{}) []byte {
			return fmt.Appendf(b, typeVerbs(format, a), a...)
		},
	})
	rebind("log", map[string]interface{}{
		"Printf": func(format string, a ...interface{}) { log.Printf(typeVerbs(format, a), a...) },
	})
	rebind("errors", map[string]interface{}{
		"As": errorAs,
		"Is": errorIs,
		"Unwrap": func(err error) error {
			if err == nil {
				return nil
			}
			one, _ := unwrapped(err)
			return one
		},
	})
	// The interpreter's values have other sizes than the compiler's.
	rebind("unsafe", map[string]interface{}{"Sizeof": func(interface{}) uintptr {
		panic(&cell.Error{Name: "CompileError", Message: "unsafe.Sizeof does not work in cells: the interpreter lays values out in another way than the compiler; " +
			"put the function into a .go file"})
	}})
}

// rebind replaces functions of a package that cells can import.
func rebind(path string, funcs map[string]interface{}) {
	p, ok := imports.Packages[path]
	if !ok {
		return
	}
	if p.Binds == nil {
		p.Binds = map[string]reflect.Value{}
		imports.Packages[path] = p
	}
	for name, f := range funcs {
		p.Binds[name] = reflect.ValueOf(f)
	}
}

// typeVerbs returns a format in which what stands for the type of a value from a
// cell is asked of the value: fmt itself would name what carries it.
func typeVerbs(format string, a []interface{}) string {
	if !strings.Contains(format, "T") {
		return format
	}
	var b strings.Builder
	arg := 0
	for i := 0; i < len(format); {
		if format[i] != '%' {
			b.WriteByte(format[i])
			i++
			continue
		}
		from := i
		for i++; i < len(format); i++ {
			switch c := format[i]; {
			case c == '[':
				end := strings.IndexByte(format[i:], ']')
				n := 0
				if _, err := fmt.Sscanf(format[i:], "[%d]", &n); err != nil || end < 0 {
					continue
				}
				arg = n - 1
				i += end
				continue
			case c == '*':
				arg++
				continue
			case strings.IndexByte("+-# 0123456789.", c) >= 0:
				continue
			}
			break
		}
		if i == len(format) {
			b.WriteString(format[from:])
			break
		}
		verb, size := utf8.DecodeRuneInString(format[i:])
		b.WriteString(format[from:i])
		if verb == 'T' && arg >= 0 && arg < len(a) {
			if _, ok := a[arg].(*xreflect.Shown); ok {
				verb = xreflect.TypeVerb
			}
		}
		b.WriteRune(verb)
		if verb != '%' {
			arg++
		}
		i += size
	}
	return b.String()
}

// unwrapped returns the error, or the errors, that one of them wraps.
func unwrapped(err error) (one error, more []error) {
	v, t := xreflect.Uncover(reflect.ValueOf(err))
	if m, ok := xreflect.CellMethod(v, t, "Unwrap"); ok {
		switch f := m.Interface().(type) {
		case func() error:
			return f(), nil
		case func() []error:
			return nil, f()
		}
		return nil, nil
	}
	switch x := err.(type) {
	case interface{ Unwrap() error }:
		return x.Unwrap(), nil
	case interface{ Unwrap() []error }:
		return nil, x.Unwrap()
	}
	return nil, nil
}

// visit calls f for err and all it wraps, until that is true.
func visit(err error, f func(error) bool) bool {
	if err == nil {
		return false
	}
	if f(err) {
		return true
	}
	one, more := unwrapped(err)
	if visit(one, f) {
		return true
	}
	for _, e := range more {
		if visit(e, f) {
			return true
		}
	}
	return false
}

// errorIs is errors.Is.
func errorIs(err, target error) bool {
	if err == nil || target == nil {
		return err == target
	}
	want, _ := xreflect.Uncover(reflect.ValueOf(target))
	return visit(err, func(e error) bool {
		v, t := xreflect.Uncover(reflect.ValueOf(e))
		if m, ok := xreflect.CellMethod(v, t, "Is"); ok {
			if f, ok := m.Interface().(func(error) bool); ok && f(target) {
				return true
			}
		} else if x, ok := e.(interface{ Is(error) bool }); ok && x.Is(target) {
			return true
		}
		return v.Type() == want.Type() && v.Comparable() && want.Comparable() && v.Interface() == want.Interface()
	})
}

// errorAs is errors.As, with errors of types declared in cells.
func errorAs(err error, target interface{}) bool {
	place := reflect.ValueOf(target)
	if place.Kind() != reflect.Ptr || place.IsNil() {
		return errors.As(err, target)
	}
	place = place.Elem()
	return visit(err, func(e error) bool {
		v, t := xreflect.Uncover(reflect.ValueOf(e))
		switch {
		case place.Kind() == reflect.Interface && reflect.TypeOf(e).AssignableTo(place.Type()):
			place.Set(reflect.ValueOf(e))
			return true
		case place.Kind() != reflect.Interface && v.Type() == place.Type():
			place.Set(v)
			return true
		}
		if m, ok := xreflect.CellMethod(v, t, "As"); ok {
			f, ok := m.Interface().(func(interface{}) bool)
			return ok && f(target)
		}
		x, ok := e.(interface{ As(interface{}) bool })
		return ok && x.As(target)
	})
}
