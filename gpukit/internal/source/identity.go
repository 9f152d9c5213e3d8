package source

import (
	"reflect"
	"unsafe"
)

// ID is the identity of a function value: two func values with the same ID are
// the same closure. The zero ID belongs to no function.
//
// An ID is an address and keeps nothing alive. Whoever uses it as a key beyond
// the life of the value must hold the value as well, or the address may come to
// mean another closure. A Notebook holds every function that it recorded, and
// functions of compiled Go that capture nothing are never freed.
type ID uintptr

// Identity returns the identity of fn: the data word of the func value. It is 0
// if fn is not a function, or nil. The code pointer would not do: in an
// interpreter all functions of one signature share their code.
func Identity(fn any) ID {
	if t := reflect.TypeOf(fn); t == nil || t.Kind() != reflect.Func {
		return 0
	}
	// A func is one pointer, so an interface holds it directly in its second word.
	return ID((*[2]uintptr)(unsafe.Pointer(&fn))[1])
}
