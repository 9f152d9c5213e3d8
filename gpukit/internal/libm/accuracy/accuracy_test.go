package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// notMath are functions of libm that package math does not have.
var notMath = map[string]bool{"UniformFloat64": true, "NormFloat64": true}

func TestEveryFunctionIsMeasured(t *testing.T) {
	measured := map[string]bool{}
	for _, r := range rows {
		name, _, _ := strings.Cut(r.name, ".")
		measured[name] = true
	}
	files, err := filepath.Glob("../*.go")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range f.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || !fn.Name.IsExported() || strings.HasSuffix(file, "_test.go") {
				continue
			}
			// Functions of float32 have a test of their own, those of integers alone are exact.
			name, of64 := fn.Name.Name, false
			ast.Inspect(fn.Type, func(n ast.Node) bool {
				if id, ok := n.(*ast.Ident); ok && id.Name == "float64" {
					of64 = true
				}
				return true
			})
			if of64 && !measured[name] && !notMath[name] {
				t.Errorf("table.go has no row for libm.%s", name)
			}
		}
	}
}

// TestTable: what ACCURACY.md says was claimed is what table.go claims, and
// nothing in it is worse.
func TestTable(t *testing.T) {
	text, err := os.ReadFile("../ACCURACY.md")
	if err != nil {
		t.Fatal(err)
	}
	lines := map[string][]string{}
	for line := range strings.Lines(string(text)) {
		if cells := strings.Split(strings.Trim(line, "| \n"), " | "); len(cells) == 6 {
			lines[cells[0]] = cells
		}
	}
	for _, r := range rows {
		cells := lines[r.name]
		if cells == nil {
			t.Errorf("ACCURACY.md has no row for %s: run make accuracy", r.name)
			continue
		}
		if cells[1] != r.claim() {
			t.Errorf("ACCURACY.md claims %s for %s, table.go %s: run make accuracy", cells[1], r.name, r.claim())
		}
		max := math.Inf(1)
		if cells[2] == "exact" {
			max = 0
		} else {
			fmt.Sscan(cells[2], &max)
		}
		if max > r.bound {
			t.Errorf("%s: measured %s, more than claimed: %s", r.name, cells[2], r.claim())
		}
	}
}

// TestSpecialValues compares with package math where an argument is zero,
// infinite or NaN, or the value of package math is, which for small x need not be
// right: its Erfcinv(1e-300) is +Inf, its J1(-5e-324) is +0, its Jn underflow
// early.
func TestSpecialValues(t *testing.T) {
	for _, r := range rows {
		xs, ys := r.points(0)
		for i, x := range xs[:specialPoints(r)] {
			y := ys[i]
			got, want := r.ours(x, y), r.theirs(x, y)
			if r.exactly(x, y) || special(want) && math.Abs(x) >= 0.5 && !r.orders {
				if !same(got, want) {
					t.Errorf("%s(%v, %v) = %v, not %v", r.name, x, y, got, want)
				}
			}
		}
	}
}

func specialPoints(r *row) int {
	if r.binary {
		return len(specials) * len(specials)
	}
	return len(specials)
}

func TestOff(t *testing.T) {
	inf, eps := math.Inf(1), 0x1p-52
	for _, c := range []struct {
		t        truth
		y, floor float64
		want     float64
	}{
		{truth{1, 0.25, -52}, 1, 0, 0.25},
		{truth{1, 0.25, -52}, 1 + eps, 0, 0.75},
		{truth{1, 0.25, -52}, 1 + eps + eps, 0, 1.75},
		{truth{1, -0.25, -53}, 1 - eps/2, 0, 0.75}, // just below a power of two
		{truth{eps, 0, -104}, 0, 1, 1},
		{truth{eps, 0, -104}, 0, 0, 0x1p52},
		{truth{0, 0.25, -1074}, 5e-324, 0, 0.75},
		{truth{0, 0.25, -1074}, 0, 0, 0.25},
		{truth{0, 0.25, -1074}, math.Copysign(0, -1), 0, inf},
		{truth{math.NaN(), 0, -1074}, math.NaN(), 0, 0},
		{truth{math.NaN(), 0, -1074}, 1, 0, inf},
		{truth{1, 0, -52}, math.NaN(), 0, inf},
		{truth{math.MaxFloat64, 0.75, 971}, inf, 0, 0.25},
		{truth{math.MaxFloat64, 0.75, 971}, math.MaxFloat64, 0, 0.75},
		{truth{math.MaxFloat64, 1e300, 971}, inf, 0, 0},
		{truth{math.MaxFloat64, 1e300, 971}, -inf, 0, inf},
		{truth{0x1p1023, 0, 971}, inf, 0, inf},
		{truth{0x1p1023, 0, 971}, -0x1p1023, 0, 0x1p53},
	} {
		if got := c.t.off(c.y, c.floor); got != c.want {
			t.Errorf("%+v.off(%v, %v) = %v, want %v", c.t, c.y, c.floor, got, c.want)
		}
	}
}

// The worst case known for angles: 6381956970095103 * 2**797 is 4e-19 off a
// multiple of pi/2.
func TestNearMultiples(t *testing.T) {
	found := false
	for _, x := range nearMultiples() {
		found = found || x == math.Ldexp(6381956970095103, 797)
	}
	if n := len(nearMultiples()); !found || n < 3000 {
		t.Errorf("%d points, the worst case among them: %v", n, found)
	}
}
