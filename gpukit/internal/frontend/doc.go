// Package frontend turns the text of a Go function into a verified ir.Func: it
// is the kernel language's law and its diagnostics.
//
// The way of a function:
//
//	collect  the declarations that the function needs, by name (collect.go)
//	check    go/types on exactly these, the packages that kernels can use being
//	         hand-built (check.go, gomath.go, libs.go)
//	law      every statement, expression and type that is not of the kernel
//	         language is refused with its own Code (law.go, diag.go)
//	facts    which arrays live in memory, which array a slice is a view of (facts.go)
//	lower    typed syntax becomes structured SSA (lower.go, expr.go); arrays,
//	         slices and structs become scalars and memories (layout.go, place.go)
//
// All faults of the call tree are reported at once, before anything runs.
//
// The language is in LANGUAGE.md of package gpukit. Meaning is fixed by package
// ir. The package knows no device, no array and no notebook: where a declaration
// comes from is the business of Input.Lookup.
package frontend
