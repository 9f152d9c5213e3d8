package gpukit

import (
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// policy says which of our own packages each of our packages may import. It is
// a statement of how the house is built, not a record of how it happens to
// stand: do not change it to fix a build. A package that is not listed may not
// exist. Tests may import more.
var policy = map[string][]string{
	"gpukit":      {"gpukit/host", "gpukit/simt", "gpukit/trace", "gpukit/internal/..."},
	"gpukit/host": {"gpukit/internal/source"},
	"gpukit/simt": {"gpukit/internal/libm"},

	"gpukit/internal/source":   {},
	"gpukit/internal/shape":    {},
	"gpukit/internal/ir":       {"gpukit/internal/libm"},
	"gpukit/internal/libm":     {},
	"gpukit/internal/frontend": {"gpukit/internal/ir", "gpukit/internal/libm"},
	"gpukit/internal/cpu":      {"gpukit/internal/ir", "gpukit/internal/codegen/amd64"},

	"gpukit/trace": {},

	"gpukit/internal/ptx":           {},
	"gpukit/internal/driver":        {},
	"gpukit/internal/driver/sim":    {"gpukit/internal/driver", "gpukit/internal/ptx"},
	"gpukit/internal/driver/cuda":   {"gpukit/internal/driver", "gpukit/internal/driver/cuda/shim"},
	"gpukit/internal/codegen/nvptx": {"gpukit/internal/ir", "gpukit/internal/ptx"},
	"gpukit/internal/codegen/amd64": {"gpukit/internal/ir"},

	// The entry points of libcuda, found when the program runs.
	"gpukit/internal/driver/cuda/shim": {},

	// For tests alone.
	"gpukit/internal/driver/cuda/mock": {"gpukit/internal/driver", "gpukit/internal/driver/sim"}, // a libcuda that simulates
	"gpukit/internal/ir/irtest":        {"gpukit/internal/ir"},
	"gpukit/internal/libm/accuracy":    {"gpukit/internal/libm"},

	"gpukit/internal/experiments": {"gpukit", "gpukit/trace", "gpukit/internal/driver", "gpukit/internal/driver/sim"},

	"gpukit/gpubench": {"gpukit", "gpukit/trace"}, // a program that a machine with a GPU gets

	// What make bench-peers measures.
	"gpukit/cpubench":        {"gpukit"},
	"gpukit/cpubench/t16a":   {"gpukit"},
	"gpukit/cpubench/t16ago": {},

	"plots": {"gpukit", "gpukit/trace"},

	"jupyter":                   {"jupyter/..."},
	"jupyter/_gomacro/fast":     {},
	"jupyter/_gomacro/xreflect": {},
	"jupyter/_kernel":           {"gpukit", "gpukit/host", "jupyter/..."},
	"jupyter/apidoc":            {},
	"jupyter/cell":              {},
	"jupyter/stream":            {},
	"jupyter/bindings":          {"gpukit", "gpukit/simt", "gpukit/trace", "plots"},
	"jupyter/bindings/gen":      {},
}

// outside says which packages from elsewhere only some of ours may import.
var outside = map[string][]string{
	"unsafe":               {"gpukit/internal/source/identity.go", "gpukit/internal/cpu/exec_amd64.go", "gpukit/internal/cpu/pages.go", "gpukit/gpu_pack.go", "gpukit/internal/driver/cuda/..."},
	"C":                    {"gpukit/internal/driver/cuda/..."},
	"gorgonia.org/cu":      {"gpukit/internal/driver/cuda"},
	"syscall":              {"gpukit/internal/cpu/exec_amd64.go", "gpukit/internal/cpu/pages_linux.go", "jupyter/..."},
	"go/ast":               {"gpukit", "gpukit/internal/source", "gpukit/internal/frontend", "jupyter/..."},
	"go/types":             {"gpukit/internal/frontend", "jupyter/..."},
	"github.com/cosmos72/": {"jupyter/..."},
	"gonum.org/v1/plot":    {"plots", "jupyter/..."},
}

func allowed(list []string, name string) bool {
	return slices.ContainsFunc(list, func(a string) bool {
		if dir, ok := strings.CutSuffix(a, "/..."); ok {
			return name == dir || strings.HasPrefix(name, dir+"/")
		}
		return name == a || strings.HasSuffix(a, ".go") && name == a
	})
}

func TestImportPolicy(t *testing.T) {
	seen := map[string]bool{}
	err := filepath.WalkDir("..", func(file string, d fs.DirEntry, err error) error {
		name := d.Name()
		if err != nil {
			return err
		}
		if d.IsDir() {
			if name == "testdata" || name == "node_modules" || len(name) > 2 && name[0] == '.' {
				return filepath.SkipDir
			}
			switch name {
			case "util", "utils", "common", "helper", "helpers", "misc", "base", "lib":
				t.Errorf("%s: a package is named after what it is for, not %q", file, name)
			}
			return nil
		}
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return nil
		}
		rel := strings.TrimPrefix(filepath.ToSlash(file), "../")
		pkg := path.Dir(rel)
		seen[pkg] = true
		may, known := policy[pkg]
		if !known {
			t.Errorf("%s: package %s is not in the policy", rel, pkg)
			return nil
		}
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		for _, i := range f.Imports {
			imported, _ := strconv.Unquote(i.Path.Value)
			if own, ok := strings.CutPrefix(imported, "gpunotes/"); ok && !allowed(may, own) {
				t.Errorf("%s imports %s, which %s must not know", rel, imported, pkg)
			}
			for p, who := range outside {
				if (imported == p || strings.HasSuffix(p, "/") && strings.HasPrefix(imported, p) || strings.HasPrefix(imported, p+"/")) && !allowed(who, pkg) && !allowed(who, rel) {
					t.Errorf("%s imports %s: only %v may", rel, imported, who)
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, pkg := range []string{"gpukit", "gpukit/internal/ir", "plots"} {
		if !seen[pkg] {
			t.Errorf("the walk did not find package %s", pkg)
		}
	}
}
