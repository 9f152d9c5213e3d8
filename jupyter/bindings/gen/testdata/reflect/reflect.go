// Package reflect has the name of a package that every generated file imports, and a type whose name shadows a builtin.
package reflect

import std "reflect"

// Kinder mixes the two packages of one name.
type Kinder interface {
	Kind(v std.Value) Kind
}

// Kind is not reflect.Kind.
type Kind string

// Of calls k.
func Of(k Kinder, x any) Kind { return k.Kind(std.ValueOf(x)) }
