// Package hidden holds a type that no other tree may import.
package hidden

// Secret cannot be named by bindings.
type Secret struct{ N int }
