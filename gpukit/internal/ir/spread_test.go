package ir_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"gpunotes/gpukit/internal/frontend"
	"gpunotes/gpukit/internal/ir"
)

// compiled compiles the first function of a Go text and optimizes it.
func compiled(t testing.TB, text string) *ir.Func {
	t.Helper()
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, "nest.go", "package p\nimport \"math\"\n"+text, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	imports := map[string]string{"math": "math"}
	decls := map[string]frontend.Decl{}
	var first *ast.FuncDecl
	for _, d := range file.Decls {
		if d, ok := d.(*ast.FuncDecl); ok {
			decls[d.Name.Name] = frontend.Decl{Name: d.Name.Name, Func: d, Imports: imports, Where: fset.Position(d.Pos())}
			if first == nil {
				first = d
			}
		}
	}
	p, errs := frontend.Compile(frontend.Input{Decl: first, Fset: fset, Imports: imports,
		Lookup: func(name string) (frontend.Decl, bool) { d, ok := decls[name]; return d, ok }})
	if errs != nil {
		t.Fatal(errs)
	}
	return ir.Optimize(p.Func)
}

type words []ir.Bits

func (w words) Load(i int) ir.Bits     { return w[i] }
func (w words) Store(i int, b ir.Bits) { w[i] = b }

// spreadArgs makes up arguments for f: sizes from sizes, strides without gaps, small scalars, and its memories.
func spreadArgs(f *ir.Func, rnd *rand.Rand, sizes func() int64) (args []ir.Bits, mems []words) {
	args = make([]ir.Bits, len(f.Params))
	length := make([]int64, len(f.Mems))
	for m := range length {
		length[m] = 1
	}
	for i, p := range f.Params {
		switch p.Kind {
		case ir.Shape:
			args[i] = ir.Bits(sizes())
			length[p.Mem] *= int64(args[i])
		case ir.Offset:
			args[i] = 2
		default:
			if t := f.Types[p.Value]; t.IsFloat() {
				args[i] = ir.Convert(t, ir.I64, ir.Bits(rnd.IntN(9)))
			} else {
				args[i] = ir.Wrap(t, ir.Bits(rnd.IntN(8)-1))
			}
		}
	}
	step := map[ir.Mem]int64{}
	for i := len(f.Params) - 1; i >= 0; i-- {
		if p := f.Params[i]; p.Kind == ir.Stride {
			if step[p.Mem] == 0 {
				step[p.Mem] = 1
			}
			args[i] = ir.Bits(step[p.Mem])
			for j, q := range f.Params {
				if q.Kind == ir.Shape && q.Mem == p.Mem && q.Dim == p.Dim {
					step[p.Mem] *= max(1, int64(args[j]))
				}
			}
		}
	}
	for m, mem := range f.Mems {
		if mem.Space != ir.Global {
			continue
		}
		w := make(words, length[m]+4)
		for i := range w {
			w[i] = ir.Convert(mem.Elem, ir.I64, ir.Bits(rnd.IntN(7)))
		}
		mems = append(mems, w)
	}
	return args, mems
}

func storages(ws []words) (out []ir.Storage) {
	for _, w := range ws {
		out = append(out, w)
	}
	return out
}

func copied(ws []words) (out []words) {
	for _, w := range ws {
		out = append(out, slices.Clone(w))
	}
	return out
}

// runStages runs the stages of s, the workers of each in an order of order's, and reports whether one failed.
func runStages(t testing.TB, s *ir.Spread, mems []words, args []ir.Bits, checked bool, order func(n int) []int) bool {
	t.Helper()
	ev := ir.Evaluator{Steps: 100000}
	for _, st := range s.Stages {
		n := int64(1)
		counts := make([]int64, len(st.Counts))
		for i, c := range st.Counts {
			r, err := ev.Run(c, args...)
			if err != nil {
				t.Fatal(err)
			}
			counts[i] = int64(r[0])
			n *= counts[i]
		}
		f := st.Func
		for _, c := range st.Conditions {
			if checked || !c.Holds(args) {
				f = st.Checked()
			}
		}
		for _, w := range order(int(n)) {
			all := slices.Clone(args)
			its := make([]ir.Bits, len(counts))
			for i := len(counts) - 1; i >= 0; i-- {
				its[i] = ir.Bits(int64(w) % counts[i])
				w = int(int64(w) / counts[i])
			}
			if _, err := ev.RunWorker(f, storages(mems), append(all, its...)); err != nil {
				return true
			}
		}
	}
	return false
}

// checkSpread compares the stages with the function on made-up arguments.
func checkSpread(t testing.TB, f *ir.Func, s *ir.Spread, rnd *rand.Rand, trials int) {
	t.Helper()
	for _, st := range s.Stages {
		for _, g := range append([]*ir.Func{st.Func, st.Checked()}, st.Counts...) {
			if err := ir.Verify(g); err != nil {
				t.Fatalf("%v\n%v", err, g)
			}
		}
	}
	if len(s.Stages) == 0 {
		return
	}
	orders := []func(n int) []int{
		func(n int) []int { return rnd.Perm(n) },
		func(n int) (p []int) {
			for i := range n {
				p = append(p, n-1-i)
			}
			return p
		},
	}
	worked := 0
	for trial := range trials {
		same := int64(rnd.IntN(8))
		args, mems := spreadArgs(f, rnd, func() int64 {
			if trial%2 == 0 {
				return same
			}
			return int64(rnd.IntN(8))
		})
		want := copied(mems)
		ev := ir.Evaluator{Steps: 100000}
		_, err := ev.RunWorker(f, storages(want), args)
		if err == nil {
			worked++
		}
		for k, order := range orders {
			for _, checked := range []bool{false, true} {
				got := copied(mems)
				failed := runStages(t, s, got, args, checked, order)
				if failed != (err != nil) {
					t.Fatalf("order %d, checked %v, args %v: failed %v, the function: %v\n%v\n%v", k, checked, args, failed, err, f, stagesText(s))
				}
				for m := range got {
					if err == nil && !slices.Equal(got[m], want[m]) {
						t.Fatalf("order %d, checked %v, args %v: memory %d is\n%v, want\n%v\n%v\n%v", k, checked, args, m, got[m], want[m], f, stagesText(s))
					}
				}
			}
		}
	}
	if worked == 0 {
		t.Errorf("%v: no arguments on which it does not fail", f.Name)
	}
}

func stagesText(s *ir.Spread) string {
	var b strings.Builder
	for i, st := range s.Stages {
		fmt.Fprintf(&b, "stage %d, %d counts\n%v", i, len(st.Counts), st.Func)
		if st.Checked() != st.Func {
			fmt.Fprintf(&b, "checked\n%v", st.Checked())
		}
	}
	return b.String()
}

// apartOf are facts of a launch in which no two arrays overlap and all scalars are the same for every worker.
func apartOf(f *ir.Func) ir.Aliasing {
	a := ir.Aliasing{}
	for m := range f.Mems {
		a.Class, a.Distinct = append(a.Class, m), append(a.Distinct, true)
	}
	for range f.Params {
		a.Uniform = append(a.Uniform, true)
	}
	return a
}

// TestSpreadLoops: which loops are taken, T, and which stay, with the reason.
func TestSpreadLoops(t *testing.T) {
	for _, k := range []struct {
		name, text string
		loops      string // T or - for each, in order of position
		why        string // a part of the reason of the first that stays
	}{
		{"asker", `func f(countRow int64, multBy [][]float64, discount [][][]float64, n, countCol int64, out [][][]float64) {
			for ii := int64(0); ii < countRow; ii++ {
				for jj := int64(0); jj < countCol; jj++ {
					for kk := int64(0); kk < n; kk++ {
						out[ii][jj][kk] = multBy[jj][kk] * discount[ii][jj][kk]
					}
				}
			}
		}`, "TTT", ""},
		{"range", `func f(a, out []float64) { for i := range a { out[i] = a[i] } }`, "T", ""},
		{"continue", `func f(a, out []float64) { for i := range a { if a[i] < 3 { continue }; out[i] = a[i] } }`, "T", ""},
		{"rows", `func f(a, out [][]float64) {
			for i, r := range a { s := 0.0; o := out[i]; for j, x := range r { s += x; o[j] = x + s }; o[0] = s }
		}`, "T-", "sum"},
		{"down by two", `func f(a, out []float64) { for i := len(a)-1; i >= 0; i -= 2 { out[i] = a[i] } }`, "T", ""},
		{"shift by division", `func f(a, out []float64) { for i := 0; i < len(a); i++ { out[i/2] = a[i] } }`, "-", "out"},
		{"int32", `func f(a, out []float64, k int32) { for i := int32(0); i < k; i++ { out[i] = a[i] } }`, "T", ""},
		{"slice", `func f(out []float64) { b := out[1:4]; for i := range b { b[i] = 1 } }`, "T", ""},
		{"return", `func f(a, out []float64) { for i := range a { if a[i] > 5 { return }; out[i] = 1 } }`, "-", "early"},
		{"break", `func f(a, out []float64) { for i := range a { if a[i] > 5 { break }; out[i] = 1 } }`, "-", "early"},
		{"private array", `func f(a, out []float64) { for i := range a { var w [3]float64; w[i%3] = a[i]; w[1] += 2; out[i] = w[0] + w[1] } }`, "T", ""},
		{"kept array", `func f(a, out []float64) { var w [3]float64; for i := range a { w[i%3] += a[i]; out[i] = w[0] + w[1] } }`, "-", "keeps"},
		{"read array", `func f(a, out []float64, x float64) { var w [3]float64; w[1] = x; for i := range a { out[i] = w[i%3] } }`, "T", ""},
		{"filled array", `func f(a, out []float64) { var w [3]float64; for k := range w { w[k] = float64(k)*2 }; for i := range a { out[i] = w[i%3] } }`, "-T", "short"},
		{"filled from memory", `func f(a, out []float64) { var w [2]float64; for k := range w { w[k] = a[k] }; for i := range a { out[i] = w[i%2] } }`, "-T", "short"},
		{"filled from what is written", `func f(out []float64) { var w [2]float64; for k := range w { w[k] = out[k] }; for i := range out { out[i] = w[i%2] } }`, "--", "short"},
		{"short sum", `func f(a, out []float64) { s := 0.0; for k := range 2 { s += a[k] }; for i := range a { out[i] = s } }`, "-T", "short"},
		{"while, two counters", `func f(a, out []float64) { i, j := 0, 0; for i < len(a)/3 { out[i] = a[j]; i++; j += 3 } }`, "T", ""},
		{"triangular", `func f(a, out []float64) { for i := range a { out[i] = 0; for k := range i { out[i] += a[k] } } }`, "T-", "how often"},
		{"before", `func f(a, out []float64) { for i := 1; i < len(out); i++ { out[i] = out[i-1] + a[i] } }`, "-", "element out[i-1], written in the iteration before, is read here"},
		{"after", `func f(out []float64) { for i := 0; i < len(out)-1; i++ { out[i] = out[i+1] * 2 } }`, "-", "out[i]"},
		{"in place", `func f(out []float64) { for i := range out { out[i] = out[i] * 2 } }`, "T", ""},
		{"even and odd", `func f(out []float64) { for i := 0; i < len(out)/2; i++ { out[2*i] = out[2*i+1] } }`, "T", ""},
		{"halves", `func f(out []float64) { n := len(out)/2; for i := 0; i < n; i++ { out[i] = out[i+n] } }`, "T", ""},
		{"far", `func f(out []float64) { for i := 0; i < 3; i++ { out[i] = out[i+3] } }`, "T", ""},
		{"near", `func f(out []float64) { for i := 0; i < 4; i++ { out[i] = out[i+3] } }`, "-", "out[i"},
		{"one element", `func f(a, out []float64) { for i := range a { out[0] += a[i] } }`, "-", "out[0]"},
		{"last wins", `func f(a, out []float64) { for i := range a { out[0] = a[i] } }`, "-", "every iteration writes element out[0]"},
		{"transposed", `func f(out [][]float64) { for i := range out { for j := range out { out[j][i] = out[i][j] } } }`, "--", "out["},
		{"transposing", `func f(a, out [][]float64) { for i := range a { for j := range a[0] { out[j][i] = a[i][j] } } }`, "TT", ""},
		{"triangle in place", `func f(out [][]float64) { for i := range out { for j := 0; j < i; j++ { out[i][j] = out[j][i] } } }`, "T-", "how often"},
		{"indirect read", `func f(idx []int64, a, out []float64) { for i := range idx { out[i] = a[idx[i]] } }`, "T", ""},
		{"indirect write", `func f(idx []int64, out []float64) { for i := range idx { out[idx[i]] = 1 } }`, "-", "out["},
		{"time outside", `func f(a, out []float64, steps int) { for s := 0; s < steps; s++ { for i := range out { out[i] = out[i]*0.5 + a[i] } } }`, "-T", "out["},
		{"time outside, changing", `func f(a, out []float64, steps int) { w := 1.0; for s := 0; s < steps; s++ { for i := range out { out[i] += w*a[i] }; w *= 0.5 } }`, "-T", ""},
		{"time outside, neighbours", `func f(out []float64, steps int) { for s := 0; s < steps; s++ { for i := 1; i < len(out); i++ { out[i] = out[i-1] } } }`, "--", ""},
		{"columns", `func f(out [][]float64) { for i := 1; i < len(out); i++ { for j := range out[0] { out[i][j] += out[i-1][j] } } }`, "-T", "written in the iteration before"},
		{"rows of sums", `func f(out [][]float64) { for i := range out { for j := 1; j < len(out[0]); j++ { out[i][j] += out[i][j-1] } } }`, "T-", "written in the iteration before"},
		{"two loops", `func f(a, out []float64) { for i := range a { out[i] = a[i] }; for i := range out { out[i] += 1 } }`, "TT", ""},
		{"two loops in one", `func f(a, out [][]float64) { for i := range a { for j := range a[0] { out[i][j] = a[i][j] }; for j := range a[0] { out[i][j] += 1 } } }`, "TTT", ""},
		{"first of each row", `func f(a, out [][]float64) { for i := range a { out[i][0] = 3; for j := 1; j < len(a[0]); j++ { out[i][j] = a[i][j] } } }`, "TT", ""},
		{"matrix product", `func f(a, b, out [][]float64) { for i := range a { for j := range b[0] { s := 0.0; for k := range b { s += a[i][k]*b[k][j] }; out[i][j] = s } } }`, "TT-", "sum"},
		{"matrix product, k outside", `func f(a, b, out [][]float64) { for k := range b { for i := range a { for j := range b[0] { out[i][j] += a[i][k]*b[k][j] } } } }`, "-TT", ""},
		{"matrix product, k between", `func f(a, b, out [][]float64) { for i := range a { for k := range b { x := a[i][k]; for j := range b[0] { out[i][j] += x*b[k][j] } } } }`, "T-T", ""},
		{"mean", `func f(a, out []float64) { s := 0.0; for i := range a { s += a[i] }; for i := range a { out[i] = a[i]/s } }`, "--", "sum"},
		{"mean of rows", `func f(a, out [][]float64) { for r := range a { s := 0.0; for i := range a[r] { s += a[r][i] }; for i := range a[r] { out[r][i] = a[r][i]/s } } }`, "T--", "sum"},
		{"code between", `func f(a, out []float64) { for i := range a { out[i] = a[i] }; out[0] = out[1]; for i := range a { out[i] *= 2 } }`, "TT", ""},
		{"early return", `func f(a, out []float64) { if len(a) > 4 { return }; for i := range a { out[i] = a[i] } }`, "T", ""},
		{"in a branch", `func f(a, out []float64, k int) { if k > 2 { for i := range a { out[i] = 1 } } else { for i := range a { out[i] = 2 } } }`, "TT", ""},
		{"a value read before", `func f(out []float64) { x := out[0]; for i := range out { out[i] = out[i] - x } }`, "-", "element out[0] as it was before"},
		{"a check before", `func f(a, out []float64, k int) { x := a[k]; for i := range out { out[i] = x } }`, "T", ""},
		{"a check of rows", `func f(a, out [][]float64, k int) { for i := range out { x := a[i][k]; for j := range out[0] { out[i][j] = x } } }`, "TT", ""},
		{"a division before", `func f(out []int64, k, n int64) { q := n / k; for i := range out { out[i] = q } }`, "T", ""},
		{"conditional store", `func f(a, out []float64) { for i := range a { if a[i] > 2 { out[i] = 1 } else { out[i+0] = 2 } } }`, "T", ""},
		{"counter used after", `func f(a, out []float64) { i := 0; for ; i < len(a); i++ { out[i] = 1 }; if i > 2 { out[0] = 5 } }`, "T", ""},
		{"remainder loop", `func f(a, out []float64) { i := 0; for ; i < len(a)-1; i += 2 { out[i] = 1; out[i+1] = 2 }; for ; i < len(a); i++ { out[i] = 3 } }`, "TT", ""},
		{"int32 and its neighbours", `func f(a, out []float64) { for i := int32(1); i < int32(len(a))-1; i++ { out[i] = a[i-1] + a[i+1] } }`, "T", ""},
		{"int32 in place", `func f(out []float64) { for i := int32(0); i < int32(len(out))/2; i++ { out[2*i] = out[2*i+1] } }`, "T", ""},
		{"int8 that wraps", `func f(out []float64, n int8) { for i := int8(0); i < n; i++ { out[(i*64)&1] = float64(i) } }`, "-", ""},
		{"not equal", `func f(a, out []float64) { for i := 0; i != len(a); i++ { out[i] = a[i] } }`, "T", ""},
		{"flat", `func f(n int, a [][]float64, out []float64) { for i := range a { for j := 0; j < n; j++ { out[i*n+j] = a[i][j] } } }`, "TT", ""},
		{"flat volume", `func f(h, w, d int, out []float64) { for i := 0; i < h; i++ { for j := 0; j < w; j++ { for k := 0; k < d; k++ { out[(i*w+j)*d+k] = 1 } } } }`, "TTT", ""},
		{"flat, too wide", `func f(n int, a [][]float64, out []float64) { for i := range a { for j := 0; j <= n; j++ { out[i*n+j] = float64(i) } } }`, "--", ""},
		{"maximum", `func f(a, out []float64) { m := a[0]; for i := range a { if a[i] > m { m = a[i] } }; out[0] = m }`, "-", "maximum"},
		{"println", `func f(a, out []float64) { for i := range a { out[i] = 1; println(i) } }`, "-", "prints"},
		{"result", `func f(a, out []float64) float64 { for i := range a { out[i] = 1 }; return 2 }`, "-", "returns"},
		{"stencil", `func f(a, out [][]float64) { for i := 1; i < len(a)-1; i++ { for j := 1; j < len(a[0])-1; j++ { out[i][j] = a[i-1][j]+a[i+1][j]+a[i][j-1]+a[i][j+1] } } }`, "TT", ""},
		{"reversed", `func f(out []float64) { n := len(out); for i := 0; i < n/2; i++ { out[i], out[n-1-i] = out[n-1-i], out[i] } }`, "T", ""},
		{"tiles", `func f(a, out []float64) { n := len(a); for b := 0; b < n; b += 2 { for i := b; i < min(b+2, n); i++ { out[i] = a[i] } } }`, "T-", "how often"},
		{"diagonal", `func f(out [][]float64) { for i := range out { out[i][i] = 1 } }`, "T", ""},
		{"same column", `func f(out [][]float64) { for i := range out { for j := range out { out[i][0] += float64(j) } } }`, "T-", ""},
		{"red and black", `func f(x []float64, sweeps int) { for k := 0; k < 2; k++ { for i := 1 + k%2; i < len(x)-1; i += 2 { x[i] = (x[i-1]+x[i+1])*0.5 } } }`, "--", ""},
		{"red", `func f(x []float64, k int) { for i := 1 + k%2; i < len(x)-1; i += 2 { x[i] = (x[i-1]+x[i+1])*0.5 } }`, "T", ""},
		{"convolution", `func f(a, w, out [][]float64) { for i := 0; i <= len(a)-len(w); i++ { for j := 0; j <= len(a[0])-len(w[0]); j++ {
			s := 0.0; for k := range w { for l := range w[0] { s += w[k][l]*a[i+k][j+l] } }; out[i][j] = s } } }`, "TT--", "sum"},
		{"life", `func f(a, out [][]int32) { n, m := len(a), len(a[0]); for i := range a { for j := range a[0] {
			c := int32(0); for k := -1; k <= 1; k++ { for l := -1; l <= 1; l++ { c += a[(i+k+n)%n][(j+l+m)%m] } }
			if c == 3 || c == 4 && a[i][j] == 1 { out[i][j] = 1 } else { out[i][j] = 0 } } } }`, "TT--", "short"},
		{"histogram", `func f(a []int32, out []int64) { for i := range a { out[a[i]&3]++ } }`, "-", "out[...]"},
		{"bodies", `func f(x, m, v []float64) { for i := range x { a := 0.0; for j := range x { if i != j { d := x[j]-x[i]; a += m[j]/(d*d+1) } }; v[i] += a } }`, "T-", "sum"},
		{"Jacobi", `func f(a, b []float64, steps int) { for t := 0; t < steps; t++ { for i := 1; i < len(a)-1; i++ { b[i] = a[i-1]+a[i+1] }; for i := 1; i < len(a)-1; i++ { a[i] = b[i] } } }`, "---", "element a[j"},
		{"Gauss elimination", `func f(a [][]float64) { n := len(a); for k := 0; k < n; k++ { for i := k+1; i < n; i++ { w := a[i][k]/(a[k][k]+9); for j := k+1; j < n; j++ { a[i][j] -= w*a[k][j] } } } }`, "---", ""},
		{"transposing in place", `func f(a [][]float64) { for i := range a { for j := i+1; j < len(a); j++ { a[i][j], a[j][i] = a[j][i], a[i][j] } } }`, "T-", "how often"},
		{"prefix sums of rows", `func f(a, out [][]float64) { for i := range a { s := 0.0; for j := range a[0] { s += a[i][j]; out[i][j] = s } } }`, "T-", "sum"},
		{"polynomial", `func f(c, x, out []float64) { for i := range x { y := 0.0; for k := len(c)-1; k >= 0; k-- { y = y*x[i] + c[k] }; out[i] = y } }`, "T-", ""},
		{"outer product in steps", `func f(x, y []float64, out [][]float64) { for i := range x { xi := x[i]; row := out[i]; for j := range y { row[j] = xi*y[j] } } }`, "TT", ""},
		{"by call", `func f(x, out []float64) { for i := range x { g(out, i, h(x[i])) } }
			func g(o []float64, i int, v float64) { o[i] = v }
			func h(v float64) float64 { if v > 3 { return 0 }; return v*v }`, "T", ""},
		{"slices of slices", `func f(a, out []float64) { h := len(a)/2; lo, hi := out[:h], out[h:]; for i := range lo { lo[i] = a[i]; hi[i] = -a[i] } }`, "T", ""},
		{"blocks", `func f(out []float64) { for b := 0; b < len(out)/2; b++ { o := out[2*b:2*b+2]; o[0] = 1; o[1] = 2 } }`, "T", ""},
		{"overlapping blocks", `func f(out []float64) { for b := 0; b < len(out)-2; b++ { o := out[b:b+2]; o[0] = float64(b); o[1] = 2 } }`, "-", "out["},
		{"moving slice", `func f(a, out []float64) { p := a[0:]; for i := 0; i < 5; i++ { out[i] = p[0]; p = p[1:] } }`, "-", "only iterations before"},
		{"moving slice and its length", `func f(a, out []float64, n int) { p := a[0:]; for i := 0; i < n; i++ { out[i] = p[2*(i%2)]; p = p[1:] } }`, "-", "only iterations before"},
		{"nothing but continue", `func f(out []float64) { L: for i := range out { continue L }; out[0] = 1 }`, "T", ""},
		{"continue from within", `func f(a, out [][]float64) { L: for i := range a { for j := range a[0] { if a[i][j] > 3 { continue L } }; out[i][0] = 1 } }`, "T-", "early"},
		{"return at once", `func f(n int, out []float64) { for i := 0; i < n; i++ { return }; for i := range out { out[i] = 1 } }`, "--", ""},
		{"mandelbrot", `func f(w, h int, out [][]int64) { for y := 0; y < h; y++ { for x := 0; x < w; x++ {
			cr, ci := float64(x)/float64(w)*3-2, float64(y)/float64(h)*2-1
			zr, zi, n := 0.0, 0.0, int64(0)
			for n < 20 && zr*zr+zi*zi < 4 { zr, zi = zr*zr-zi*zi+cr, 2*zr*zi+ci; n++ }
			out[y][x] = n } } }`, "TT-", ""},
	} {
		t.Run(k.name, func(t *testing.T) {
			f := compiled(t, k.text)
			s := ir.SpreadLoops(f, apartOf(f))
			got, why := "", ""
			for _, l := range s.Loops {
				if l.Taken {
					got += "T"
					if l.Why != "" {
						t.Errorf("taken, but %q", l.Why)
					}
				} else {
					got += "-"
					if l.Why == "" {
						t.Errorf("not taken without a reason at %v", l.Pos)
					}
					if why == "" {
						why = l.Why + l.Reduction
					}
				}
			}
			if got != k.loops || !strings.Contains(why, k.why) {
				t.Errorf("loops %s, want %s; why %q, want %q", got, k.loops, why, k.why)
				for _, l := range s.Loops {
					t.Logf("%v %+v", l.Pos, l)
				}
			}
			checkSpread(t, f, s, rand.New(rand.NewPCG(1, 2)), 60)
		})
	}
}

// TestSpreadFacts: what is taken depends on what the launch knows.
func TestSpreadFacts(t *testing.T) {
	const text = `func f(a, out []float64, n int) { for i := range n { out[i] = a[i] }; for i := range out { out[i] += 1 } }`
	f := compiled(t, text)
	for _, k := range []struct {
		name       string
		change     func(a *ir.Aliasing)
		first, why string // loops, and why the first is not taken
	}{
		{"nothing overlaps", func(a *ir.Aliasing) {}, "TT", ""},
		{"one class", func(a *ir.Aliasing) { a.Class = []int{5, 5} }, "-T", "out and a may share memory"},
		{"stride 0", func(a *ir.Aliasing) { a.Distinct[1] = false }, "--", "elements of out may share memory with each other"},
		{"stride 0 of what is read", func(a *ir.Aliasing) { a.Distinct[0] = false }, "TT", ""},
		{"n differs", func(a *ir.Aliasing) { a.Uniform = nil }, "-T", "not the same for all workers"},
		{"nothing known", func(a *ir.Aliasing) { *a = ir.Aliasing{} }, "--", "how often"},
	} {
		a := apartOf(f)
		k.change(&a)
		s := ir.SpreadLoops(f, a)
		got := ""
		for _, l := range s.Loops {
			got += map[bool]string{true: "T", false: "-"}[l.Taken]
		}
		if got != k.first || !strings.Contains(s.Loops[0].Why, k.why) {
			t.Errorf("%s: %s, want %s: %+v", k.name, got, k.first, s.Loops)
		}
	}
}

// TestSpreadStage: counts, conditions and steps of a stage.
func TestSpreadStage(t *testing.T) {
	f := compiled(t, `func f(a, out [][]float64, n int) { for i := 2; i < n; i += 3 { for j := range out[0] { out[i][j] = a[2*i+1][0] + a[j][i] } } }`)
	s := ir.SpreadLoops(f, apartOf(f))
	if len(s.Stages) != 2 || len(s.Stages[1].Counts) != 2 {
		t.Fatalf("%d stages\n%s", len(s.Stages), stagesText(s))
	}
	st := s.Stages[1]
	args := make([]ir.Bits, len(f.Params))
	set := func(name string, x int64) {
		for i, p := range f.Params {
			if p.Name == name {
				args[i] = ir.Bits(x)
				return
			}
		}
		t.Fatal(name)
	}
	count := func(i int) int64 {
		var ev ir.Evaluator
		r, err := ev.Run(st.Counts[i], args...)
		if err != nil {
			t.Fatal(err)
		}
		return int64(r[0])
	}
	set("out.shape1", 7)
	never := compiled(t, `func f(out []float64, n int) { for i := range out { for j := 2; j != n; j++ { out[i] += 1 } } }`)
	for n, want := range map[int64]int64{1: math.MaxInt64, 2: 3, 7: 3} {
		var ev ir.Evaluator
		r, err := ev.Run(ir.SpreadLoops(never, apartOf(never)).Stages[0].Counts[0], 0, 3, 1, ir.Bits(n))
		if err != nil || int64(r[0]) != want {
			t.Errorf("until j is %d: count %v, %v, want %d", n, r, err, want)
		}
	}
	for _, k := range [][2]int64{{-5, 0}, {2, 0}, {3, 1}, {5, 1}, {6, 2}, {300, 100}, {1 << 50, math.MaxInt64}, {math.MaxInt64, math.MaxInt64}, {math.MinInt64, math.MaxInt64}} {
		if set("n", k[0]); count(0) != k[1] || count(1) != 7 {
			t.Errorf("n = %d: counts %d, %d, want %d, 7", k[0], count(0), count(1), k[1])
		}
	}
	a := apartOf(f)
	a.Uniform = nil
	g := compiled(t, `func f(a, out []float64, n int) { for i := range out { out[i] = a[n] } }`)
	if c := ir.SpreadLoops(g, a).Stages[0].Conditions; len(c) != 0 {
		t.Errorf("conditions on a scalar that differs: %v", c)
	}
	if c := ir.SpreadLoops(g, apartOf(g)).Stages[0].Conditions; len(c) != 2 {
		t.Errorf("conditions %v, want 0 <= n < a.shape0", c)
	}
	var conditions []string
	for _, c := range st.Conditions {
		conditions = append(conditions, c.String(f))
	}
	if got := strings.Join(conditions, ", "); !strings.Contains(got, "n <= out.shape0") {
		t.Errorf("conditions %s", got)
	}
	want := [][]ir.Step{
		{{Mem: 0, Dim: 0, Times: 6}, {Mem: 0, Dim: 1, Times: 3}, {Mem: 1, Dim: 0, Times: 3, Write: true}},
		{{Mem: 0, Dim: 0, Times: 1}, {Mem: 1, Dim: 1, Times: 1, Write: true}},
	}
	for i := range want {
		if !slices.Equal(st.Steps[i], want[i]) {
			t.Errorf("loop %d: steps %v, want %v", i, st.Steps[i], want[i])
		}
	}
}

// TestSpreadReasons: the words for what forbids a loop, and both ends of it.
func TestSpreadReasons(t *testing.T) {
	for _, k := range []struct{ body, why, source, sink string }{
		{"for i := 2; i < len(a); i++ {\na[i] =\na[i-2] }", "element a[i-2], written 2 iterations before, is read here", "nest.go:4:1", "nest.go:5:3"},
		{"for i := 2; i < len(a); i++ {\na[i-2] =\na[i] }", "element a[i-2], read 2 iterations before, is written here", "nest.go:5:3", "nest.go:4:1"},
		{"for i := range b {\na[0] = b[i] }", "every iteration writes element a[0]", "nest.go:4:1", "nest.go:4:1"},
		{"for i := range b {\na[i%3] = b[i] }", "element a[...], written in one iteration, may be element a[...], written in a later one", "nest.go:4:1", "nest.go:4:1"},
		{"s := 0.0\nfor i := range b {\ns += b[i]\n}\na[0] = s", "it accumulates a sum, in order", "-", "nest.go:5:3"},
		{"s := 0.0\nfor i := range b {\na[i] = s\ns = b[i]\n}", "a value of one iteration is used in the next", "-", "nest.go:5:1"},
		{"for i := range b {\nif b[i] > 3 {\nbreak }\na[i] = 1\n}", "an iteration may leave it early", "-", "nest.go:5:1"},
	} {
		f := compiled(t, "func f(a, b []float64) { "+k.body+" }")
		s := ir.SpreadLoops(f, apartOf(f))
		l := s.Loops[0]
		if l.Taken || l.Why != k.why || l.Source.String() != k.source && k.source != "-" || l.Sink.String() != k.sink {
			t.Errorf("%s\n%+v\nwant %+v", k.body, l, k)
		}
	}
}
