// Package bindings makes compiled packages importable from gomacro cells: importing it for its side effects fills
// gomacro's registry, so that a cell's `import "gonum.org/v1/plot"` needs no Go toolchain.
//
// Every other file here is generated; the table of packages is in gen/main.go. After a change of a bound package's
// exported names run `go generate ./jupyter/bindings`; a test fails while that is due.
package bindings

import "github.com/cosmos72/gomacro/imports"

//go:generate go run ./gen -q

// gomacro's own bindings of the standard library list promoted methods as Wrappers. The interpreter then deletes those
// from a type's list of methods but not from the list of their functions, so that a method is not found, as Open of
// *zip.File, or runs the code of another. Without the list every method is found and is the right one.
func init() {
	for path, p := range imports.Packages {
		p.Wrappers = nil
		imports.Packages[path] = p
	}
}
