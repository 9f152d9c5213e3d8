// Command jupyter builds the notebook kernel of gpunotes and installs it into
// Jupyter.
//
//	go run ./jupyter install   [--prefix DIR | --user] [--as NAME] [--cuda=auto|yes|no] [--with PKG...]
//	go run ./jupyter uninstall [--prefix DIR | --user] [--as NAME]
//	go run ./jupyter doctor    [--prefix DIR | --user] [--as NAME]
//	go run ./jupyter cuda      [--prefix DIR | --user]
//
// Without --prefix or --user the active virtual environment is used, if there
// is one, else the user's own Jupyter directory.
//
// The kernel is gophernotes with gpukit and its bindings compiled in. gophernotes
// is a main package, so it cannot be imported: install copies its source out
// of the module cache into a build folder, adds the files of jupyter/_kernel,
// and builds that in its place.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
)

const usage = `usage: go run ./jupyter COMMAND [--prefix DIR | --user] [--as NAME]

commands:
  install     build the kernel and install it into Jupyter
  uninstall   remove it
  doctor      say what is wrong with an installed kernel, and what cures it
  cuda        say whether install would build with CUDA, and what it found

options:
  --prefix DIR   install below DIR/share/jupyter (default: the active virtual environment, else .venv, as make lab made it)
  --user         install into your own Jupyter directory (default without either)
  --as NAME      name of the kernelspec (default gpunotes)
  --cuda=WAY     auto: with CUDA where cuda.h, a C compiler and a driver are found (default);
                 yes: with CUDA, driver or not, else fail; no: without
  --with PKG...  compile more packages in, so that cells can import them: import paths, with
                 @version if need be, or directories of a module (./mine); generics are left out.
                 Those that the kernel had are kept; --with none leaves them out
`

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

// run is the command without the process around it; it returns the exit status.
func run(args []string, stdout, stderr io.Writer) int {
	if len(args) == 0 {
		fmt.Fprint(stderr, usage)
		return 2
	}
	command := args[0]
	switch command {
	case "help", "-h", "-help", "--help":
		fmt.Fprint(stdout, usage)
		return 0
	}
	flags := flag.NewFlagSet(command, flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	prefix := flags.String("prefix", "", "")
	user := flags.Bool("user", false, "")
	name := flags.String("as", "gpunotes", "")
	way := flags.String("cuda", "auto", "")
	var with []string
	flags.Func("with", "", func(s string) error {
		with = append(with, strings.FieldsFunc(s, func(r rune) bool { return r == ',' || r == ' ' })...)
		return nil
	})
	if err := flags.Parse(args[1:]); err != nil {
		fmt.Fprint(stderr, usage)
		if errors.Is(err, flag.ErrHelp) {
			return 0
		}
		fmt.Fprintln(stderr, "\n"+err.Error())
		return 2
	}
	if len(with) > 0 && command == "install" {
		with = append(with, flags.Args()...)
	} else if flags.NArg() > 0 {
		fmt.Fprintf(stderr, "%s\nunexpected argument %q\n", usage, flags.Arg(0))
		return 2
	}
	if !slices.Contains(cudaWays, *way) {
		fmt.Fprintf(stderr, "%s\n--cuda=%s: it is one of %s\n", usage, *way, strings.Join(cudaWays, ", "))
		return 2
	}
	place, err := choosePlace(*prefix, *user, *name, labHere(), os.Getenv)
	if err != nil {
		fmt.Fprintln(stderr, err)
		return 2
	}
	switch command {
	case "install":
		err = install(place, kernelBuilder(thisMachine(place), *way, gather(place, with, stdout)), stdout)
	case "uninstall":
		err = uninstall(place, stdout)
	case "doctor":
		return doctor(place, thisMachine(place), stdout)
	case "cuda":
		sayCUDA(thisMachine(place), *way, stdout)
	default:
		fmt.Fprintf(stderr, "%s\nunknown command %q\n", usage, command)
		return 2
	}
	if err != nil {
		fmt.Fprintf(stderr, "%s failed: %v\n", command, err)
		return 1
	}
	return 0
}
