package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"strings"

	"golang.org/x/tools/go/gcexportdata"
)

// listed is what `go list -json` tells about a package.
type listed struct {
	ImportPath, Name, Dir, Export string
	Module                        *struct{ Main bool }
	GoFiles                       []string
	Error                         *struct{ Pos, Err string }
	DepsErrors                    []*struct{ Pos, Err string }
}

func goList(args ...string) ([]listed, error) {
	cmd := exec.Command("go", append([]string{"list", "-e", "-json=ImportPath,Name,Dir,Export,Module,GoFiles,Error,DepsErrors"}, args...)...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("go list: %w\n%s", err, strings.TrimSpace(stderr.String()))
	}
	var all []listed
	for dec := json.NewDecoder(&stdout); ; {
		var l listed
		if err := dec.Decode(&l); err == io.EOF {
			break
		} else if err != nil {
			return nil, fmt.Errorf("go list: %w", err)
		}
		all = append(all, l)
	}
	// A package that does not compile has no Export; the compiler's own words are on stderr.
	for _, l := range all {
		switch {
		case l.Error != nil:
			return nil, fmt.Errorf("package %s: %s%s", l.ImportPath, at(l.Error.Pos), l.Error.Err)
		case len(l.DepsErrors) > 0:
			return nil, fmt.Errorf("package %s does not build: %s%s", l.ImportPath, at(l.DepsErrors[0].Pos), l.DepsErrors[0].Err)
		}
	}
	return all, nil
}

func at(pos string) string {
	if pos == "" {
		return ""
	}
	return pos + ": "
}

// packageDir is the directory that holds the source of a package.
func packageDir(path string) (string, error) {
	l, err := goList("-find", path)
	if err != nil {
		return "", err
	}
	return l[0].Dir, nil
}

// load type-checks nothing: it reads the export data that the compiler left in the build cache.
func load(paths []string) (map[string]*types.Package, error) {
	list, err := goList(append([]string{"-export", "--"}, paths...)...)
	if err != nil {
		return nil, err
	}
	fset, seen, loaded := token.NewFileSet(), map[string]*types.Package{}, map[string]*types.Package{}
	for _, l := range list {
		pkg, err := readExport(fset, seen, l)
		if err != nil {
			return nil, fmt.Errorf("package %s: %w", l.ImportPath, err)
		}
		loaded[l.ImportPath] = pkg
	}
	for _, p := range paths {
		if loaded[p] == nil {
			return nil, fmt.Errorf("package %s: not found", p)
		}
	}
	return loaded, nil
}

func readExport(fset *token.FileSet, seen map[string]*types.Package, l listed) (*types.Package, error) {
	if l.Export == "" {
		return nil, errors.New("no export data: does it compile?")
	}
	f, err := os.Open(l.Export)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	r, err := gcexportdata.NewReader(f)
	if err != nil {
		return nil, err
	}
	return gcexportdata.Read(r, fset, seen, l.ImportPath)
}
