// Command gen writes the gomacro bindings of the packages that notebook cells can import.
//
// Usage, from anywhere in the module:
//
//	go run ./jupyter/bindings/gen           writes one file per package of the table below, deletes those of packages no longer in it
//	go run ./jupyter/bindings/gen -check    writes nothing; exits 1 naming the files that are out of date
//	go run ./jupyter/bindings/gen -dir D -package P path...   the same for other packages, into directory D of package P
//
// It reads the compiler's export data, so the packages must compile and the go command must be at hand.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
)

// bound lists the packages compiled into the notebook kernel. A path that names no package is an error.
var bound = []string{
	"gpunotes/gpukit",
	"gpunotes/gpukit/simt",
	"gpunotes/gpukit/trace",
	"gpunotes/plots",

	"gonum.org/v1/gonum/floats",
	"gonum.org/v1/gonum/mat",
	"gonum.org/v1/plot",
	"gonum.org/v1/plot/palette",
	"gonum.org/v1/plot/palette/moreland",
	"gonum.org/v1/plot/plotter",
	"gonum.org/v1/plot/vg",
	"gonum.org/v1/plot/vg/draw",

	// gomacro brings the standard library of Go 1.17. These are bound anew: what they have
	// gained since is what programs miss in a cell.
	"bufio", "bytes", "context", "errors", "fmt", "io", "io/fs", "math", "math/big", "math/bits", "math/cmplx", "math/rand",
	"math/rand/v2", "os", "path/filepath", "regexp", "sort", "strconv", "strings", "sync", "sync/atomic", "time",
	"unicode", "unicode/utf8",
}

// home is the package that holds the generated files.
const home = "gpunotes/jupyter/bindings"

// cure is the command that brings the generated files up to date.
const cure = "go generate ./jupyter/bindings"

//go:generate go run . -q -dir testdata/kindsbind -package kindsbind gpunotes/jupyter/bindings/gen/testdata/kinds gpunotes/jupyter/bindings/gen/testdata/reflect

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return
		}
		fmt.Fprintln(os.Stderr, "bindings:", err)
		os.Exit(1)
	}
}

func run(args []string, out io.Writer) error {
	fs := flag.NewFlagSet("gen", flag.ContinueOnError)
	check := fs.Bool("check", false, "write nothing, fail if a file is out of date")
	quiet := fs.Bool("q", false, "do not list what was skipped")
	dir := fs.String("dir", "", "output directory (default: that of "+home+")")
	name := fs.String("package", "bindings", "package clause of the written files")
	if err := fs.Parse(args); err != nil {
		return err
	}
	paths, remedy := bound, cure
	if fs.NArg() > 0 {
		if *dir == "" {
			return errors.New("packages on the command line need -dir, else they would replace the kernel's own bindings")
		}
		paths = fs.Args()
		remedy = fmt.Sprintf("go run ./jupyter/bindings/gen -dir %s -package %s %s", *dir, *name, strings.Join(paths, " "))
	}
	if *dir == "" {
		d, err := packageDir(home)
		if err != nil {
			return err
		}
		*dir = d
	}
	files, err := generate(*name, paths)
	if err != nil {
		return err
	}
	if *check {
		return checkFiles(*dir, files, remedy)
	}
	if !*quiet {
		for _, f := range files {
			for _, s := range f.skipped {
				fmt.Fprintf(out, "%s: skipped %s\n", f.path, s)
			}
		}
	}
	changed, err := writeFiles(*dir, files)
	for _, c := range changed {
		fmt.Fprintln(out, c)
	}
	return err
}
