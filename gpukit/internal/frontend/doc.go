// Package frontend turns the text of a Go function into a verified ir.Func: it
// is the kernel language's law and its diagnostics.
//
// The way of a function:
//
//	collect  the declarations that the function needs, by name (collect.go)
//	check    go/types on exactly these, package math being hand-built (check.go, gomath.go)
//	law      every statement, expression and type that is not of the kernel
//	         language is refused with its own Code (law.go, diag.go)
//	lower    typed syntax becomes structured SSA (lower.go, expr.go)
//
// All faults of the call tree are reported at once, before anything runs.
//
// The language is Go's own, within bool, the integer kinds, float32 and
// float64, types named after these, every form of assignment, if, for and
// switch, calls of other functions, and package math. Meaning is fixed by
// package ir. The package knows no device, no array and no notebook: where a
// declaration comes from is the business of Input.Lookup.
package frontend
