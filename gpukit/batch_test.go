package gpukit

import (
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"gpunotes/gpukit/internal/frontend"
	"gpunotes/gpukit/internal/ir"
	"gpunotes/gpukit/internal/libm"
)

// batch is a file of Go functions that is compiled twice: by us, for the engines,
// and by the Go compiler, for what they should compute. Functions take and return
// numbers and bools; some also take two slices that they read and write.
type batch struct {
	text  strings.Builder // declarations, without package and imports
	funcs []*batched
}

type batched struct {
	name   string
	params []string // Go types
	result string
	rows   [][]ir.Bits // arguments
	want   []ir.Bits   // results of native Go, canonical
	fault  []byte      // what native Go panicked with, 0 for nothing
	fn     *function   // ours

	// If the first rows are a table, its height and width, and how each parameter
	// walks over it: 'r' differs between its rows, 'c' between its columns, 'b'
	// between both, '1' nowhere.
	height, width int
	walks         []byte

	// Of functions that take slices: the types of the elements of x, of 4, and of
	// m, of 2 by 4, which follow the numbers in every row; what is in them
	// afterwards; and the kernel and gufunc that call the function.
	elem         []string
	after        [][]ir.Bits
	kernel, gufn *function
}

const sliceElements = 4 + 2*4

// elemType is the type of element k of the slices.
func (f *batched) elemType(k int) string {
	if k < 4 {
		return f.elem[0]
	}
	return f.elem[1]
}

// irTypes are the types of parameters and results.
var irTypes = map[string]ir.Type{
	"bool": ir.Bool, "int8": ir.I8, "int16": ir.I16, "int32": ir.I32, "int64": ir.I64, "int": ir.I64,
	"uint8": ir.U8, "uint16": ir.U16, "uint32": ir.U32, "uint64": ir.U64, "uint": ir.U64, "float32": ir.F32, "float64": ir.F64,
}

var goTypes = []string{"bool", "int8", "int16", "int32", "int64", "int", "uint8", "uint16", "uint32", "uint64", "uint", "float32", "float64"}

// add declares a function with parameters x, y, z of the given types.
func (b *batch) add(name, result, body string, params ...string) *batched {
	var ps []string
	for i, p := range params {
		ps = append(ps, string(rune('x'+i))+" "+p)
	}
	fmt.Fprintf(&b.text, "func %s(%s) %s { %s }\n", name, strings.Join(ps, ", "), result, body)
	return b.declared(name, result, params...)
}

// declared notes a function whose text is there already.
func (b *batch) declared(name, result string, params ...string) *batched {
	f := &batched{name: name, params: params, result: result}
	b.funcs = append(b.funcs, f)
	return f
}

const batchImports = "import (\n\t\"math\"\n\t\"math/bits\"\n\n\t\"gpunotes/gpukit/simt\"\n)\n\nvar _, _, _ = math.Pi, bits.UintSize, simt.Grid1\n\n"

// wrappers declares the kernel and the gufunc of a function that takes slices.
func (b *batch) wrappers(f *batched) {
	var arrays, elements, numbers, names []string
	for i, p := range f.params {
		a := fmt.Sprintf("a%d", i)
		arrays = append(arrays, a+" []"+p)
		numbers = append(numbers, a+" "+p)
		elements = append(elements, a+"[i]")
		names = append(names, a)
	}
	fmt.Fprintf(&b.text, `func k%[1]s(out []%[2]s, %[3]s, x [][]%[4]s, m [][][]%[5]s) {
	if i := simt.Grid1(); i < len(out) {
		out[i] = %[1]s(%[6]s, x[i], m[i])
	}
}

func g%[1]s(%[7]s, x0 []%[4]s, m0 [][]%[5]s, out []%[2]s, x []%[4]s, m [][]%[5]s) {
	for i := range x0 {
		x[i] = x0[i]
	}
	for i, r := range m0 {
		for j, v := range r {
			m[i][j] = v
		}
	}
	out[0] = %[1]s(%[8]s, x, m)
}

`, f.name, f.result, strings.Join(arrays, ", "), f.elem[0], f.elem[1], strings.Join(elements, ", "), strings.Join(numbers, ", "), strings.Join(names, ", "))
}

// run compiles the batch and has native Go compute every row.
func (b *batch) run(t *testing.T) {
	t.Helper()
	b.compile(t)
	var in []byte
	for _, f := range b.funcs {
		for _, row := range f.rows {
			in = binary.LittleEndian.AppendUint64(in, 1)
			for _, x := range row {
				in = binary.LittleEndian.AppendUint64(in, x)
			}
		}
		in = binary.LittleEndian.AppendUint64(in, 0)
	}
	out := nativeGo(t, map[string]string{"functions.go": b.native(), "main.go": b.main()}, in)
	for _, f := range b.funcs {
		for range f.rows {
			f.want = append(f.want, ir.Canonical(irTypes[f.result], binary.LittleEndian.Uint64(out)))
			f.fault = append(f.fault, out[8])
			out = out[9:]
			if f.elem == nil {
				continue
			}
			var after []ir.Bits
			for k := range sliceElements {
				after = append(after, ir.Canonical(irTypes[f.elemType(k)], binary.LittleEndian.Uint64(out)))
				out = out[8:]
			}
			f.after = append(f.after, after)
		}
	}
	if len(out) != 0 {
		t.Fatalf("native Go: %d bytes too many", len(out))
	}
}

// nativeGo compiles and runs a program of this module, so that it can use libm,
// with the Go compiler. GPUNOTES_NATIVE names a folder of answers: with
// GPUNOTES_NATIVE_RECORD=1 they are written there, else read, for a machine that
// has no Go.
func nativeGo(t *testing.T, files map[string]string, in []byte) []byte {
	t.Helper()
	answers, kept := os.Getenv("GPUNOTES_NATIVE"), ""
	if answers != "" {
		h := sha256.New()
		for _, name := range slices.Sorted(maps.Keys(files)) {
			fmt.Fprintf(h, "%s %d\n%s", name, len(files[name]), files[name])
		}
		h.Write(in)
		kept = filepath.Join(answers, fmt.Sprintf("%x.gz", h.Sum(nil)[:12]))
		if os.Getenv("GPUNOTES_NATIVE_RECORD") == "" {
			return readAnswer(t, kept)
		}
	}
	dir := t.TempDir()
	write := func(name, text string) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	virtual := filepath.Join(root, "gpukit", "internal", "nativebatch") // on no disk
	replace := map[string]string{}
	for name, text := range files {
		replace[filepath.Join(virtual, name)] = write(name, text)
	}
	overlay, err := json.Marshal(map[string]map[string]string{"Replace": replace})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "go", "run", "-overlay", write("overlay.json", string(overlay)), "./gpukit/internal/nativebatch")
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "GOWORK=off", "CGO_ENABLED=0")
	cmd.Stdin = strings.NewReader(string(in))
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("native Go: %v\n%.3000s", err, stderr.String())
	}
	if kept != "" {
		writeAnswer(t, kept, out)
	}
	return out
}

func readAnswer(t *testing.T, file string) []byte {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatalf("native Go did not answer this beforehand; run the test with GPUNOTES_NATIVE_RECORD=1 where Go is: %v", err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	out, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func writeAnswer(t *testing.T, file string, out []byte) {
	t.Helper()
	var packed strings.Builder
	z := gzip.NewWriter(&packed)
	z.Write(out)
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(packed.String()), 0o600); err != nil {
		t.Fatal(err)
	}
}

// compile compiles every function for the engines.
func (b *batch) compile(t *testing.T) {
	t.Helper()
	fset := token.NewFileSet()
	text := "package batch\n\n" + batchImports + b.text.String()
	file, err := parser.ParseFile(fset, "batch.go", text, parser.SkipObjectResolution)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	imports := map[string]string{"math": "math", "bits": "math/bits", "simt": "gpunotes/gpukit/simt"}
	decls := map[string]frontend.Decl{}
	for _, d := range file.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			decls[d.Name.Name] = frontend.Decl{Name: d.Name.Name, Func: d, Imports: imports, Where: fset.Position(d.Pos())}
		case *ast.GenDecl:
			for _, s := range d.Specs {
				switch s := s.(type) {
				case *ast.ValueSpec:
					for _, id := range s.Names {
						decls[id.Name] = frontend.Decl{Name: id.Name, Gen: d, Imports: imports, Where: fset.Position(d.Pos()), Constant: d.Tok == token.VAR}
					}
				case *ast.TypeSpec:
					decls[s.Name.Name] = frontend.Decl{Name: s.Name.Name, Gen: d, Imports: imports, Where: fset.Position(d.Pos())}
				}
			}
		}
	}
	lookup := func(name string) (frontend.Decl, bool) { d, ok := decls[name]; return d, ok }
	compile := func(name string) *function {
		p, err := frontend.Compile(frontend.Input{Decl: decls[name].Func, Fset: fset, Imports: imports, Lookup: lookup})
		if err != nil {
			t.Fatalf("%s: %v\n%s", name, err, text)
		}
		return &function{name: name, source: p}
	}
	for _, f := range b.funcs {
		if f.elem == nil {
			f.fn = compile(f.name)
		} else {
			f.kernel, f.gufn = compile("k"+f.name), compile("g"+f.name)
		}
	}
}

var (
	mathCall   = regexp.MustCompile(`\bmath\.([A-Z]\w*)\(`)
	saturation = regexp.MustCompile(`func to_(\w+)_(float\d\d)\(x float\d\d\) \w+ \{ return \w+/\*saturates (\S+), (\S+)\*/\(x\) \}`)
)

// native is the text for the Go compiler: the same but where Go is no oracle.
// Functions of the library are ours, the bits of a NaN are those of math.NaN, and
// numbers that do not fit into an integer saturate.
func (b *batch) native() string {
	natives := map[string]bool{}
	for _, n := range libm.Natives {
		natives[n] = true
	}
	text := mathCall.ReplaceAllStringFunc(b.text.String(), func(s string) string {
		switch name := s[len("math.") : len(s)-1]; {
		case name == "Float64bits" || name == "Float32bits" || name == "Signbit" || name == "Copysign":
			return "canonical" + name + "("
		case !natives[name]:
			return "libm." + name + "("
		}
		return s
	})
	text = saturation.ReplaceAllString(text, "func to_${1}_$2(x $2) $1 { return saturated[$1](float64(x), $3, $4) }")
	return "package main\n\nimport \"gpunotes/gpukit/internal/libm\"\n\n" + batchImports + "var _ = libm.Sin\n\n" + text + `
func canonicalFloat64bits(x float64) uint64 {
	if x != x {
		return 0x7FF8000000000001
	}
	return math.Float64bits(x)
}

func canonicalFloat32bits(x float32) uint32 {
	if x != x {
		return 0x7FC00000
	}
	return math.Float32bits(x)
}

func canonicalSignbit(x float64) bool { return x == x && math.Signbit(x) }

func canonicalCopysign(x, y float64) float64 {
	if y != y {
		y = 1
	}
	return math.Copysign(x, y)
}

func saturated[T int | int8 | int16 | int32 | int64 | uint | uint8 | uint16 | uint32 | uint64](x float64, lo, hi T) T {
	if x != x {
		return 0
	}
	x = math.Trunc(x)
	if x <= float64(lo) {
		return lo
	}
	if x >= float64(hi) {
		return hi
	}
	return T(x)
}
`
}

// conversions declares to_T_F for every integer type T and float type F: the
// conversion, for which Go is no oracle.
func (b *batch) conversions() {
	for _, to := range goTypes[1:11] {
		limit := "math.M%s" + strings.ToUpper(to[:1]) + to[1:]
		lo, hi := fmt.Sprintf(limit, "in"), fmt.Sprintf(limit, "ax")
		if to[0] == 'u' {
			lo = "0"
		}
		for _, from := range []string{"float32", "float64"} {
			fmt.Fprintf(&b.text, "func to_%[1]s_%[2]s(x %[2]s) %[1]s { return %[1]s/*saturates %[3]s, %[4]s*/(x) }\n", to, from, lo, hi)
		}
	}
}

// main is a program that computes the rows that it reads.
func (b *batch) main() string {
	var m strings.Builder
	m.WriteString(`package main

import (
	"bufio"
	"encoding/binary"
	"math"
	"os"
	"strings"
)

func pack[T bool | int | int8 | int16 | int32 | int64 | uint | uint8 | uint16 | uint32 | uint64 | float32 | float64](x T) uint64 {
	switch x := any(x).(type) {
	case bool:
		if x {
			return 1
		}
		return 0
	case int:
		return uint64(x)
	case int8:
		return uint64(x)
	case int16:
		return uint64(x)
	case int32:
		return uint64(x)
	case int64:
		return uint64(x)
	case uint:
		return uint64(x)
	case uint8:
		return uint64(x)
	case uint16:
		return uint64(x)
	case uint32:
		return uint64(x)
	case uint64:
		return x
	case float32:
		return uint64(math.Float32bits(x))
	case float64:
		return math.Float64bits(x)
	}
	panic("type")
}

var (
	in  = bufio.NewReader(os.Stdin)
	out = bufio.NewWriter(os.Stdout)
)

func word() uint64 {
	var b [8]byte
	for i := range b {
		c, err := in.ReadByte()
		if err != nil {
			panic(err)
		}
		b[i] = c
	}
	return binary.LittleEndian.Uint64(b[:])
}

// oneRow computes one row.
func oneRow(f func() uint64) {
	var r uint64
	var fault byte
	func() {
		defer func() {
			switch err := recover().(type) {
			case nil:
			case error:
				switch s := err.Error(); {
				case strings.Contains(s, "divide by zero"):
					fault = 1
				case strings.Contains(s, "negative shift"):
					fault = 2
				case strings.Contains(s, "index out of range"):
					fault = 3
				case strings.Contains(s, "slice bounds"):
					fault = 4
				default:
					panic(err)
				}
			default:
				panic(err)
			}
		}()
		r = f()
	}()
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], r)
	out.Write(b[:])
	out.WriteByte(fault)
}

func put(x uint64) {
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], x)
	out.Write(b[:])
}

func main() {
	defer out.Flush()
`)
	for _, f := range b.funcs {
		m.WriteString("\tfor word() == 1 {\n")
		unpack := func(t string) string {
			switch t {
			case "bool":
				return "word() != 0"
			case "float32":
				return "math.Float32frombits(uint32(word()))"
			case "float64":
				return "math.Float64frombits(word())"
			}
			return t + "(word())"
		}
		var args []string
		for i, p := range f.params {
			x := fmt.Sprintf("a%d", i)
			args = append(args, x)
			fmt.Fprintf(&m, "\t\t%s := %s\n", x, unpack(p))
		}
		if f.elem != nil {
			args = append(args, "x", "m")
			fmt.Fprintf(&m, "\t\tx, m := make([]%s, 4), [][]%s{make([]%[2]s, 4), make([]%[2]s, 4)}\n", f.elem[0], f.elem[1])
			fmt.Fprintf(&m, "\t\tfor i := range x {\n\t\t\tx[i] = %s\n\t\t}\n", unpack(f.elem[0]))
			fmt.Fprintf(&m, "\t\tfor i := range 8 {\n\t\t\tm[i/4][i%%4] = %s\n\t\t}\n", unpack(f.elem[1]))
		}
		fmt.Fprintf(&m, "\t\toneRow(func() uint64 { return pack(%s(%s)) })\n", f.name, strings.Join(args, ", "))
		if f.elem != nil {
			m.WriteString("\t\tfor i := range x {\n\t\t\tput(pack(x[i]))\n\t\t}\n\t\tfor i := range 8 {\n\t\t\tput(pack(m[i/4][i%4]))\n\t\t}\n")
		}
		m.WriteString("\t}\n")
	}
	m.WriteString("}\n")
	return m.String()
}

// check runs the functions on a device and compares: rows that native Go finds
// faultless, n of them at a time as arrays of all sorts, and then the lowest row
// that fails.
func (b *batch) check(t *testing.T, d *Device, r *rand.Rand, sizes ...int) {
	t.Helper()
	for _, f := range b.funcs {
		var good []int
		firstBad := -1
		for k, fault := range f.fault {
			switch {
			case fault == 0:
				good = append(good, k)
			case firstBad < 0:
				firstBad = k
			}
		}
		for _, n := range append(sizes, len(good)) {
			if n > len(good) {
				continue
			}
			rows := good[:n]
			if n < len(good) {
				from := r.IntN(len(good) - n + 1)
				rows = good[from : from+n]
			}
			if !f.agrees(t, d, r, rows) {
				break
			}
		}
		if f.height > 0 {
			f.tableAgrees(t, d, r)
		}
		if firstBad >= 0 {
			f.fails(t, d, firstBad)
		}
	}
}

// agrees compares the results for some rows.
func (f *batched) agrees(t *testing.T, d *Device, r *rand.Rand, rows []int) bool {
	if f.elem != nil {
		return f.launchAgrees(t, d, r, rows) && f.gufuncAgrees(t, d, r, rows)
	}
	dims := factors(r, len(rows))
	var args []any
	for i, p := range f.params {
		column := make([]ir.Bits, len(rows))
		for j, k := range rows {
			column[j] = f.rows[k][i]
		}
		args = append(args, disguised(r, DType(irTypes[p]), column, dims))
	}
	out, err := d.Vectorize(f.fn, args...)
	if err != nil {
		t.Errorf("%s: %v", f.name, err)
		return false
	}
	for j, k := range rows {
		got := ir.Canonical(out.DType().ir(), out.store.bits(j))
		if len(f.params) > 0 && got != f.want[k] {
			t.Errorf("%s(%s) = %s, native Go says %s (row %d of %d)", f.name, f.format(k), ir.FormatBits(out.DType().ir(), got), ir.FormatBits(out.DType().ir(), f.want[k]), j, len(rows))
			return false
		}
	}
	return true
}

// tableAgrees compares the results for the table of rows, of a part without faults:
// arguments are rows, columns and numbers, which are broadcast.
func (f *batched) tableAgrees(t *testing.T, d *Device, r *rand.Rand) {
	var heads, sides []int // columns and rows of the table that stay
	for c := range f.width {
		good := true
		for k := range f.height {
			good = good && f.fault[k*f.width+c] == 0
		}
		if good {
			heads = append(heads, c)
		}
	}
	for k := range f.height {
		sides = append(sides, k)
	}
	if len(heads) == 0 {
		return
	}
	switch r.IntN(4) { // a number in place of rows or columns
	case 0:
		k := r.IntN(len(sides))
		sides = sides[k : k+1]
	case 1, 2:
		k := r.IntN(len(heads))
		heads = heads[k : k+1]
	}
	var args []any
	for i, p := range f.params {
		ys, xs, dims := sides[:1], heads[:1], []int{}
		switch f.walks[i] {
		case 'r':
			ys, dims = sides, []int{len(sides), 1}
		case 'c':
			xs, dims = heads, []int{len(heads)}
		case 'b':
			ys, xs, dims = sides, heads, []int{len(sides), len(heads)}
		}
		var elements []ir.Bits
		for _, y := range ys {
			for _, x := range xs {
				elements = append(elements, f.rows[y*f.width+x][i])
			}
		}
		args = append(args, disguised(r, DType(irTypes[p]), elements, dims))
	}
	out, err := d.Vectorize(f.fn, args...)
	if err != nil {
		t.Errorf("%s: %v", f.name, err)
		return
	}
	out = out.BroadcastTo(len(sides), len(heads))
	for j, y := range sides {
		for i, x := range heads {
			k := y*f.width + x
			if got := out.bitsAt(j*len(heads) + i); got != f.want[k] {
				t.Errorf("%s(%s) = %s, native Go says %s (row %d, column %d of a table of %d by %d, walks %s)", f.name, f.format(k), ir.FormatBits(irTypes[f.result], got), ir.FormatBits(irTypes[f.result], f.want[k]), j, i, len(sides), len(heads), f.walks)
				return
			}
		}
	}
}

// fails checks that the first row that native Go panics on is what a call reports.
func (f *batched) fails(t *testing.T, d *Device, row int) {
	var args []any
	for i, p := range f.params {
		column := make([]ir.Bits, len(f.rows))
		for k := range f.rows {
			column[k] = f.rows[k][i]
		}
		a := newArray(makeStorage(DType(irTypes[p]), len(column)), []int{len(column)})
		for k, x := range column {
			a.store.setBits(k, x)
		}
		args = append(args, a)
	}
	var err error
	if f.elem == nil {
		_, err = d.Vectorize(f.fn, args...)
	} else {
		var rows []int
		for k := range f.rows {
			rows = append(rows, k)
		}
		_, _, _, err = f.gufunc(d, rand.New(rand.NewPCG(1, 2)), rows)
	}
	we, ok := err.(*WorkerError)
	want := []string{"divide by zero", "negative shift", "index out of range", "slice bounds"}[f.fault[row]-1]
	switch {
	case !ok:
		t.Errorf("%s: error %v, but native Go panics: %s, for %s", f.name, err, want, f.format(row))
	case we.Index[0] != row || !strings.Contains(we.Error(), want):
		t.Errorf("%s: error %v, but the first row that native Go panics on is %d (%s): %s", f.name, err, row, f.format(row), want)
	}
}

func (f *batched) format(k int) string {
	var s []string
	for i, x := range f.rows[k] {
		p := ""
		if i < len(f.params) {
			p = f.params[i]
		} else {
			p = f.elemType(i - len(f.params))
		}
		s = append(s, ir.FormatBits(irTypes[p], x))
	}
	return strings.Join(s, ", ")
}

// columns are the arguments of some rows as arrays of all sorts: one for each
// number, and one for each slice.
func (f *batched) columns(r *rand.Rand, rows []int) (numbers []*Array, x, m *Array) {
	for i, p := range f.params {
		column := make([]ir.Bits, len(rows))
		for j, k := range rows {
			column[j] = f.rows[k][i]
		}
		numbers = append(numbers, disguised(r, DType(irTypes[p]), column, []int{len(rows)}))
	}
	var xs, ms []ir.Bits
	for _, k := range rows {
		row := f.rows[k][len(f.params):]
		xs, ms = append(xs, row[:4]...), append(ms, row[4:]...)
	}
	return numbers, disguised(r, DType(irTypes[f.elem[0]]), xs, []int{len(rows), 4}), disguised(r, DType(irTypes[f.elem[1]]), ms, []int{len(rows), 2, 4})
}

// launchAgrees calls the function from a kernel that changes the arrays.
func (f *batched) launchAgrees(t *testing.T, d *Device, r *rand.Rand, rows []int) bool {
	numbers, x, m := f.columns(r, rows)
	out := disguised(r, DType(irTypes[f.result]), make([]ir.Bits, len(rows)), []int{len(rows)})
	args := []any{out}
	for _, a := range numbers {
		args = append(args, a)
	}
	threads := 1 + r.IntN(70)
	if err := d.Launch(f.kernel, Blocks(len(rows)/threads+1), Threads(threads), append(args, x, m)...); err != nil {
		t.Errorf("%s: %v", f.kernel.name, err)
		return false
	}
	return f.compare(t, f.kernel.name, rows, out, x, m)
}

func (f *batched) gufunc(d *Device, r *rand.Rand, rows []int) (out, x, m *Array, err error) {
	numbers, x0, m0 := f.columns(r, rows)
	var args []any
	for _, a := range numbers {
		args = append(args, a)
	}
	n := len(rows)
	made := func(t string, dims ...int) *Array {
		return disguised(r, DType(irTypes[t]), make([]ir.Bits, sizeOf("test", dims)), dims)
	}
	out, x, m = made(f.result, n), made(f.elem[0], n, 4), made(f.elem[1], n, 2, 4)
	_, err = d.GUVectorize(f.gufn, strings.Repeat("(),", len(numbers))+"(i),(j,k)->(),(i),(j,k)", append(args, x0, m0, Out(out, x, m))...)
	return out, x, m, err
}

// gufuncAgrees calls the function from a gufunc that copies the arrays.
func (f *batched) gufuncAgrees(t *testing.T, d *Device, r *rand.Rand, rows []int) bool {
	out, x, m, err := f.gufunc(d, r, rows)
	if err != nil {
		t.Errorf("%s: %v", f.gufn.name, err)
		return false
	}
	return f.compare(t, f.gufn.name, rows, out, x, m)
}

// compare compares what is in arrays afterwards.
func (f *batched) compare(t *testing.T, name string, rows []int, out, x, m *Array) bool {
	for j, k := range rows {
		if got := out.bitsAt(j); got != f.want[k] {
			t.Errorf("%s(%s) = %s, native Go says %s (row %d of %d)", name, f.format(k), ir.FormatBits(irTypes[f.result], got), ir.FormatBits(irTypes[f.result], f.want[k]), j, len(rows))
			return false
		}
		for e, want := range f.after[k] {
			a, at := x, 4*j+e
			if e >= 4 {
				a, at = m, 8*j+e-4
			}
			if got := a.bitsAt(at); got != want {
				t.Errorf("%s(%s) leaves %s in element %d of its slices, native Go says %s (row %d of %d)", name, f.format(k), ir.FormatBits(a.DType().ir(), got), e, ir.FormatBits(a.DType().ir(), want), j, len(rows))
				return false
			}
		}
	}
	return true
}

// bitsAt is element k of a in C order, canonical.
func (a *Array) bitsAt(k int) ir.Bits {
	at := a.offset
	for d, i := range unravel(k, a.shape) {
		at += i * a.strides[d]
	}
	return ir.Canonical(a.DType().ir(), a.store.bits(at))
}

// factors is a shape of n elements.
func factors(r *rand.Rand, n int) []int {
	dims := []int{n}
	for _, p := range []int{2, 3, 5, 7} {
		if last := len(dims) - 1; n > 0 && dims[last]%p == 0 && r.IntN(2) == 0 && len(dims) < 4 {
			dims[last] /= p
			dims = append(dims, p)
			i, j := r.IntN(len(dims)), r.IntN(len(dims))
			dims[i], dims[j] = dims[j], dims[i]
		}
	}
	return dims
}

// disguised is an array of the given elements and shape: contiguous, transposed,
// reversed, or a slice of a larger one.
func disguised(r *rand.Rand, t DType, elements []ir.Bits, dims []int) *Array {
	nd := len(dims)
	perm := r.Perm(nd)
	wide := make([]int, nd)  // of the storage, in its order
	steps := make([]int, nd) // by dimension
	for i, d := range perm {
		steps[d] = 1
		if r.IntN(3) == 0 {
			steps[d] = 2
		}
		wide[i] = dims[d]*steps[d] + steps[d] - 1
	}
	a := newArray(makeStorage(t, sizeOf("test", wide)), wide)
	strides, offset := make([]int, nd), 0
	for i, d := range perm {
		strides[d] = a.strides[i] * steps[d]
		offset += a.strides[i] * (steps[d] - 1)
		if r.IntN(4) == 0 && dims[d] > 0 {
			offset += strides[d] * (dims[d] - 1)
			strides[d] = -strides[d]
		}
	}
	v := &Array{a.store, offset, dims, strides}
	for k, x := range elements {
		at := offset
		for d, i := range unravel(k, dims) {
			at += i * strides[d]
		}
		a.store.setBits(at, x)
	}
	return v
}
