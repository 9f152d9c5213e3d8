package source

import (
	"errors"
	"fmt"
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"regexp"
	"runtime"
	"runtime/debug"
	"slices"
	"sort"
	"strconv"
	"strings"
	"sync"
	"time"
)

// started tells edits made while the program runs from older ones.
var started = time.Now()

// executable is the file of the running program.
var executable = func() (e struct {
	name  string
	built time.Time // zero if it is not known
}) {
	var err error
	if e.name, err = os.Executable(); err != nil {
		return e
	}
	if st, err := os.Stat(e.name); err == nil {
		e.built = st.ModTime()
	}
	return e
}()

// byGo matches programs that go run and go test have just built, or found in
// their cache, where an executable can be older than the files it belongs to.
var byGo = regexp.MustCompile(`/go-build\d+/b\d+/|/[0-9a-f]{2}/[0-9a-f]{64}-d/[^/]+$`)

// changed says when a source file of this time was changed, if that was after
// the program was built from it; else "".
func changed(mod time.Time) string {
	switch {
	case mod.After(time.Now()):
		return "" // another clock
	case mod.After(started):
		return "since this program started"
	case !executable.built.IsZero() && newer(mod, executable.built) && !byGo.MatchString(filepath.ToSlash(executable.name)):
		return "since this program was built"
	}
	return ""
}

// newer reports whether a file was certainly written after the other. There are
// file systems that keep whole seconds, or every second one only, and those
// that take the time of the last tick.
func newer(mod, other time.Time) bool {
	if other.Nanosecond() == 0 {
		return mod.Sub(other) >= 2*time.Second
	}
	return mod.Sub(other) > 10*time.Millisecond
}

// changedFile is the error for a file of which changed says why; name is what
// is declared there.
func changedFile(file, why, name string) *refusal {
	return &refusal{fmt.Sprintf("%s has been changed %s, so it may not be the source of %s any more", file, why, name),
		"build and start the program again"}
}

var embedded struct {
	sync.Mutex
	roots []fs.FS
}

// Embed registers sources that were built into the program, for a binary that
// runs where its source directory is not. The file names in fsys must be a
// trailing part of the real ones, as //go:embed gives them. It is an error if
// fsys holds no Go file.
func Embed(fsys fs.FS) error {
	if fsys == nil {
		return errors.New("the file system of embedded sources is nil: pass an embed.FS filled by a //go:embed *.go directive")
	}
	found := false
	err := fs.WalkDir(fsys, ".", func(p string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && strings.HasSuffix(p, ".go") {
			found = true
			return fs.SkipAll
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("the embedded sources cannot be read: %w", err)
	}
	if !found {
		return errors.New("the embedded sources hold no .go file: write //go:embed *.go above the embed.FS variable")
	}
	embedded.Lock()
	defer embedded.Unlock()
	embedded.roots = append(embedded.roots, fsys)
	return nil
}

// symbol is what a binary knows of a function.
type symbol struct {
	full  string   // as the runtime prints it
	pkg   string   // import path
	parts []string // the name after the package, cut at its dots
	file  string
	pc    uintptr
	entry int   // line of its first instruction
	lines []int // of all its code, sorted, without those of functions inlined into it
}

// symbolOf reads the binary's tables. The name of the entry point alone would be
// wrong where the first instruction belongs to an inlined callee, and its line
// where a function has no prologue; so all code addresses are looked at.
func symbolOf(v reflect.Value) symbol {
	entry := v.Pointer()
	if s, ok := symbols.Load(entry); ok {
		return s.(symbol)
	}
	s := readSymbol(entry)
	symbols.Store(entry, s)
	return s
}

// symbols are those that were read, by entry.
var symbols sync.Map

func readSymbol(entry uintptr) symbol {
	f := runtime.FuncForPC(entry)
	if f == nil {
		return symbol{}
	}
	const longest = 1 << 18
	end := sort.Search(longest, func(i int) bool {
		g := runtime.FuncForPC(entry + uintptr(i))
		return g == nil || g.Entry() != f.Entry()
	})
	pcs := make([]uintptr, end)
	for i := range pcs {
		pcs[i] = entry + uintptr(i) + 1 // CallersFrames takes return addresses
	}
	s := symbol{pc: entry}
	frames := runtime.CallersFrames(pcs)
	for more := true; more; {
		var fr runtime.Frame
		fr, more = frames.Next()
		if fr.Func == nil || fr.Entry != entry || fr.Line <= 0 {
			continue // an inlined callee
		}
		if s.full == "" {
			s.full, s.file, s.entry = fr.Function, fr.File, fr.Line
		}
		if fr.File == s.file {
			s.lines = append(s.lines, fr.Line)
		}
	}
	slices.Sort(s.lines)
	s.lines = slices.Compact(s.lines)
	s.pkg, s.parts = splitSymbol(s.full)
	return s
}

// splitSymbol cuts "a/b%2ec.F.func1" into "a/b.c" and F, func1.
func splitSymbol(full string) (pkg string, parts []string) {
	name := full
	if i := strings.IndexByte(name, '['); i >= 0 {
		name = name[:i] // the path of a type argument may hold slashes
	}
	slash := strings.LastIndexByte(name, '/') + 1
	dot := strings.IndexByte(name[slash:], '.')
	if dot < 0 {
		return "", []string{name}
	}
	pkg = name[:slash+dot]
	for {
		i := strings.IndexByte(pkg, '%')
		if i < 0 || i+3 > len(pkg) {
			break
		}
		c, err := strconv.ParseUint(pkg[i+1:i+3], 16, 8)
		if err != nil {
			break
		}
		pkg = pkg[:i] + string(rune(c)) + pkg[i+3:]
	}
	return pkg, strings.Split(name[slash+dot+1:], ".")
}

// simtPath is the package whose functions the front end knows itself.
const simtPath = "gpunotes/gpukit/simt"

// builtin returns "math.Sin" for a function of math, math/bits or simt.
func (s symbol) builtin() string {
	if (s.pkg == "math" || s.pkg == "math/bits" || s.pkg == simtPath) && len(s.parts) == 1 && ast.IsExported(s.parts[0]) {
		return s.pkg + "." + s.parts[0]
	}
	return ""
}

// interpreted reports whether the code belongs to an interpreter, not to the function.
func (s symbol) interpreted() bool {
	return s.full == "reflect.makeFuncStub" || strings.HasPrefix(s.full, "github.com/cosmos72/gomacro/")
}

// resolvesCompiled reports whether v is a function of compiled Go.
func resolvesCompiled(v reflect.Value) bool {
	name := ""
	// The last frame is the function itself, those before it are inlined into it.
	for frames, more := runtime.CallersFrames([]uintptr{v.Pointer() + 1}), true; more; {
		var fr runtime.Frame
		fr, more = frames.Next()
		name = fr.Function
	}
	return name != "" && !symbol{full: name}.interpreted()
}

var (
	closurePart = regexp.MustCompile(`^(func)?\d+(-range\d+)?$`)
	stdRoot     = filepath.ToSlash(filepath.Join(build.Default.GOROOT, "src")) + "/"
)

func resolveCompiled(v reflect.Value, nb *Notebook) (*Func, error) {
	if !resolvesCompiled(v) {
		if nb != nil {
			if err := nb.failure(Identity(v.Interface())); err != nil {
				return nil, err
			}
			nb.mu.Lock()
			defer nb.mu.Unlock()
		}
		return nil, nb.unknownFunction("", v)
	}
	s := symbolOf(v)
	if b := s.builtin(); b != "" {
		return &Func{Name: b, Builtin: b, Package: s.pkg, Fset: fset}, nil
	}
	last := s.parts[len(s.parts)-1]
	switch {
	case strings.Contains(s.full, "[...]"):
		return nil, fmt.Errorf("%s is an instance of a generic function, which cannot be compiled: write a function with concrete types, e.g. float64", s.full)
	case strings.HasSuffix(last, "-fm") || s.full == "reflect.methodValueCall":
		return nil, fmt.Errorf("%s is a method value, which cannot be compiled: write a function that takes the receiver as an argument", strings.TrimSuffix(s.full, "-fm"))
	case s.full == "" || s.file == "" || s.file == "<autogenerated>":
		return nil, fmt.Errorf("the function %s was made by the Go compiler and has no source: pass a function declared with func f(...)", s.full)
	}
	literal := len(s.parts) > 1 && closurePart.MatchString(last)
	if len(s.parts) > 1 && !literal {
		return nil, fmt.Errorf("%s is a method, which cannot be compiled: write a function that takes the receiver as an argument", s.full)
	}
	if s.standard() {
		return nil, fmt.Errorf("%s belongs to Go's standard library: of its functions only those of math and math/bits, but not the divisions of math/bits, can be compiled by themselves; write the function yourself", s.full)
	}

	var first error
	var found *Func
	length := 0
	for _, m := range s.embedded() {
		if found != nil && len(m.name) < length {
			break
		}
		fn, err := m.find(s, v.Type(), literal)
		switch {
		case err != nil:
			if first == nil {
				first = err
			}
		case found == nil:
			found, length = fn, len(m.name)
		case found.text != fn.text:
			return nil, fmt.Errorf("two embedded sources named %s both fit %s: embed them with their directories", m.name, s.full)
		}
	}
	if found != nil {
		return found, nil
	}
	p, err := s.onDisk()
	if err == nil {
		return p.find(s, v.Type(), literal)
	}
	if first != nil {
		err = first
	}
	return nil, err
}

// standard reports whether the function belongs to the standard library.
func (s symbol) standard() bool {
	return strings.HasPrefix(filepath.ToSlash(s.file), stdRoot) || s.file == s.pkg+"/"+path.Base(s.file) && stdPackage(s.pkg)
}

// stdPackage tells, for a binary without its source paths, by the first element
// of the import path: it has no dot, and is not that of a module in the program.
func stdPackage(pkg string) bool {
	first := func(p string) string { p, _, _ = strings.Cut(p, "/"); return p }
	bi, ok := debug.ReadBuildInfo()
	if !ok || pkg == "main" || pkg == programPath()+"_test" || strings.Contains(first(pkg), ".") || first(pkg) == first(bi.Path) || first(pkg) == first(bi.Main.Path) {
		return false
	}
	return !slices.ContainsFunc(bi.Deps, func(m *debug.Module) bool { return first(pkg) == first(m.Path) })
}

// programPath is the import path of the package that the program was built for.
// It stands in symbols if go test built it, also for a package main; else that
// is called main in them.
var programPath = sync.OnceValue(func() string {
	if bi, ok := debug.ReadBuildInfo(); ok {
		return bi.Path
	}
	return ""
})

// pkg is the parsed sources of one package, as one file of it sees them.
type pkg struct {
	path   string // import path
	file   *goFile
	byName map[string][]*object
	files  func() []*ast.File // all of them, tests included
	// strict asks for more than plausible lines: the source is newer than the program.
	strict bool
}

type goFile struct {
	name    string // path in its file system
	src     []byte
	file    *token.File
	ast     *ast.File
	imports map[string]string
	dots    []string
	spans   []span // of all functions and literals
	changed string // see the function changed; of embedded files ""
}

// span is the lines of a function.
type span struct{ from, to int }

func (f *goFile) text(from, to token.Pos) string {
	return string(f.src[f.file.Offset(from):f.file.Offset(to)])
}

// object is a package-level declaration.
type object struct {
	file *goFile
	fn   *ast.FuncDecl
	gen  *ast.GenDecl
	name *ast.Ident
}

// candidate is an embedded file that may be the source.
type candidate struct {
	fsys fs.FS
	name string
}

func (c candidate) find(s symbol, t reflect.Type, literal bool) (*Func, error) {
	p, err := load(c.fsys, "", c.name, s.pkg)
	if err != nil {
		return nil, err
	}
	return p.find(s, t, literal)
}

// embedded returns the embedded files whose names end that of the source, the
// longest first.
func (s symbol) embedded() []candidate {
	embedded.Lock()
	roots := slices.Clone(embedded.roots)
	embedded.Unlock()
	elems := strings.Split(strings.TrimLeft(filepath.ToSlash(s.file), "/"), "/")
	var cs []candidate
	for _, r := range roots {
		for i := range elems {
			name := strings.Join(elems[i:], "/")
			if !fs.ValidPath(name) {
				continue
			}
			if st, err := fs.Stat(r, name); err == nil && !st.IsDir() {
				cs = append(cs, candidate{r, name})
				break
			}
		}
	}
	slices.SortStableFunc(cs, func(a, b candidate) int { return len(b.name) - len(a.name) })
	return cs
}

// onDisk parses the directory that the binary was built from.
func (s symbol) onDisk() (*pkg, error) {
	dir, base := filepath.Split(s.file)
	st, err := os.Stat(s.file)
	if !filepath.IsAbs(s.file) || err != nil {
		if _, gone := os.Stat(dir); filepath.IsAbs(s.file) && gone == nil && errors.Is(err, fs.ErrNotExist) {
			return nil, missingFile(s.file, s.full)
		}
		return nil, fmt.Errorf("the source of %s is needed, but %s is not on this machine: put the package's sources into the program "+
			"with //go:embed *.go and register them with gpukit.EmbedSource", s.full, s.file)
	}
	if why := changed(st.ModTime()); why != "" && !moduleCache(dir) {
		return nil, changedFile(s.file, why, s.full)
	}
	p, err := load(os.DirFS(dir), dir, base, s.pkg)
	if err != nil {
		return nil, err
	}
	own := *p
	own.strict = !executable.built.IsZero() && st.ModTime().After(executable.built)
	return &own, nil
}

// moduleCache reports whether a directory is one of a downloaded module, whose
// files never change but may be downloaded again.
func moduleCache(dir string) bool {
	return strings.Contains(filepath.ToSlash(dir), "/pkg/mod/") && strings.Contains(dir, "@v")
}

// missingFile is the error for a source file that was there at build time; name
// is what is declared in it.
func missingFile(file, name string) *refusal {
	return &refusal{fmt.Sprintf("the source of %s is needed, but %s is missing", name, file),
		"restore the file, or build and start the program again"}
}

// buildContext selects files as the build of this program did.
var buildContext = sync.OnceValue(func() build.Context {
	c := build.Default
	c.GOOS, c.GOARCH, c.Compiler = runtime.GOOS, runtime.GOARCH, runtime.Compiler
	if bi, ok := debug.ReadBuildInfo(); ok {
		for _, set := range bi.Settings {
			switch {
			case set.Key == "-tags":
				c.BuildTags = append(c.BuildTags, strings.FieldsFunc(set.Value, func(r rune) bool { return r == ',' || r == ' ' })...)
			case set.Key == "CGO_ENABLED":
				c.CgoEnabled = set.Value == "1"
			case set.Value == "true" && (set.Key == "-race" || set.Key == "-msan" || set.Key == "-asan"):
				c.BuildTags = append(c.BuildTags, set.Key[1:])
			}
		}
	}
	return c
})

type stamp struct {
	name string
	size int64
	mod  time.Time
}

// parsed holds the packages read from disk, until a file changes.
var parsed struct {
	sync.Mutex
	byFile map[string]*pkg
	stamps map[string][]stamp
}

// load parses the package of the file name in fsys, which on disk lies in dir.
func load(fsys fs.FS, dir, name, importPath string) (*pkg, error) {
	folder := path.Dir(name)
	list, err := fs.ReadDir(fsys, folder)
	if err != nil {
		return nil, fmt.Errorf("the source directory of %s cannot be read: %w", name, err)
	}
	var files []string
	var stamps []stamp
	for _, d := range list {
		if d.IsDir() || !strings.HasSuffix(d.Name(), ".go") {
			continue
		}
		files = append(files, path.Join(folder, d.Name()))
		if st, err := d.Info(); err == nil {
			stamps = append(stamps, stamp{d.Name(), st.Size(), st.ModTime()})
		}
	}
	key := filepath.Join(dir, name)
	if dir != "" {
		parsed.Lock()
		defer parsed.Unlock()
		if p := parsed.byFile[key]; p != nil && slices.Equal(parsed.stamps[key], stamps) {
			return p, nil
		}
	}
	p := &pkg{path: importPath, byName: map[string][]*object{}}
	// read parses a file and notes whether it has changed.
	read := func(name string) (*goFile, error) {
		f, err := parseGo(fsys, name)
		if err == nil && dir != "" && !moduleCache(dir) {
			if i := slices.IndexFunc(stamps, func(s stamp) bool { return s.name == path.Base(name) }); i >= 0 {
				f.changed = changed(stamps[i].mod)
			}
		}
		return f, err
	}
	own, err := read(name)
	if err != nil {
		return nil, err
	}
	p.file = own
	p.files = sync.OnceValue(func() (all []*ast.File) {
		for _, name := range files {
			// A broken file is not part of this program.
			if f, err := parseGo(fsys, name); err == nil && f.ast.Name.Name == own.ast.Name.Name {
				all = append(all, f.ast)
			}
		}
		return all
	})
	p.add(own)
	ctx := buildContext()
	ctx.OpenFile = func(p string) (io.ReadCloser, error) { return fsys.Open(filepath.ToSlash(p)) }
	for _, other := range files {
		if other == name || strings.HasSuffix(other, "_test.go") && !strings.HasSuffix(name, "_test.go") {
			continue
		}
		if ok, err := ctx.MatchFile(folder, path.Base(other)); err != nil || !ok {
			continue
		}
		// A broken file of the directory need not belong to this program; what it declares is not found.
		if f, err := read(other); err == nil && f.ast.Name.Name == own.ast.Name.Name {
			p.add(f)
		}
	}
	if dir != "" {
		if parsed.byFile == nil {
			parsed.byFile, parsed.stamps = map[string]*pkg{}, map[string][]stamp{}
		}
		parsed.byFile[key], parsed.stamps[key] = p, stamps
	}
	return p, nil
}

func parseGo(fsys fs.FS, name string) (*goFile, error) {
	src, err := fs.ReadFile(fsys, name)
	if err != nil {
		return nil, fmt.Errorf("a source file cannot be read: %w", err)
	}
	f, err := parser.ParseFile(fset, path.Base(name), src, 0)
	if err != nil {
		return nil, fmt.Errorf("a source file does not parse, so it is not the one that was compiled: %w", err)
	}
	g := &goFile{name: name, src: src, file: fset.File(f.Pos()), ast: f, imports: map[string]string{}}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl, *ast.FuncLit:
			g.spans = append(g.spans, span{lineOf(n.Pos()), lineOf(n.End())})
		}
		return true
	})
	for _, s := range f.Imports {
		p, err := strconv.Unquote(s.Path.Value)
		if err != nil {
			continue
		}
		switch {
		case s.Name == nil:
			g.imports[importName(p)] = p
		case s.Name.Name == ".":
			g.dots = append(g.dots, p)
		case s.Name.Name != "_":
			g.imports[s.Name.Name] = p
		}
	}
	return g, nil
}

// add enters the package-level declarations of a file.
func (p *pkg) add(f *goFile) {
	put := func(name *ast.Ident, fn *ast.FuncDecl, gen *ast.GenDecl) {
		p.byName[name.Name] = append(p.byName[name.Name], &object{file: f, fn: fn, gen: gen, name: name})
	}
	for _, d := range f.ast.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Recv == nil {
				put(d.Name, d, nil)
			}
		case *ast.GenDecl:
			for _, s := range d.Specs {
				switch s := s.(type) {
				case *ast.TypeSpec:
					put(s.Name, nil, d)
				case *ast.ValueSpec:
					for _, id := range s.Names {
						put(id, nil, d)
					}
				}
			}
		}
	}
}

// fileScope is the package scope as seen from one file: where two files of a
// directory declare a name, as two programs may, the file's own counts.
type fileScope struct {
	p    *pkg
	file *goFile
}

func (s fileScope) Lookup(name string) (Decl, bool) {
	all := s.p.byName[name]
	if len(all) == 0 || name == "_" {
		return Decl{}, false
	}
	o := all[0]
	if len(all) > 1 {
		own := slices.IndexFunc(all, func(o *object) bool { return o.file == s.file })
		if own < 0 {
			d := Decl{Name: name, Package: s.p.path, Where: fset.Position(o.name.Pos())}
			d.refuse(&refusal{fmt.Sprintf("%s is declared at %s and at %s, and which of them is in this program cannot be told",
				name, fset.Position(o.name.Pos()), fset.Position(all[1].name.Pos())), "rename one, or keep programs in directories of their own"})
			return d, true
		}
		o = all[own]
	}
	d := Decl{Name: name, Package: s.p.path, Func: o.fn, Gen: o.gen, Imports: o.file.imports, DotImports: o.file.dots,
		Files: s.p.files, Scope: fileScope{s.p, o.file}, Where: fset.Position(o.name.Pos())}
	if o.file.changed != "" {
		d.refuse(changedFile(o.file.name, o.file.changed, name))
	}
	if o.fn != nil {
		d.text = o.file.text(o.fn.Pos(), o.fn.End())
	} else {
		d.text = o.file.text(o.gen.Pos(), o.gen.End())
	}
	return d, true
}

// stale is the error for a source that does not belong to the binary.
func (s symbol) stale(f *goFile, why string) error {
	return fmt.Errorf("%s:%d is not the source that %s was compiled from (%s): build and start the program again, or register the sources it was built from with gpukit.EmbedSource",
		path.Base(f.name), s.entry, s.full, why)
}

// find takes a symbol to its declaration.
func (p *pkg) find(s symbol, t reflect.Type, literal bool) (*Func, error) {
	f := p.file
	if main := f.ast.Name.Name == "main"; main != (s.pkg == "main") && !(main && s.pkg == programPath()) {
		return nil, s.stale(f, "it is of package "+f.ast.Name.Name)
	}
	if literal {
		return p.findLiteral(s, t)
	}
	name := s.parts[0]
	for _, o := range p.byName[name] {
		if o.file != f || o.fn == nil {
			continue
		}
		d := o.fn
		if d.Body == nil {
			return nil, fmt.Errorf("%s: %s has no body, it is written in assembly, and cannot be compiled: write it in Go", fset.Position(d.Pos()), name)
		}
		if why := s.mismatch(f, d.Type, d.Body, t, p.strict); why != "" {
			return nil, s.stale(f, why)
		}
		return &Func{Name: name, Package: p.path, Decl: d, Fset: fset, Imports: f.imports, DotImports: f.dots,
			Scope: fileScope{p, f}, Where: fset.Position(d.Name.Pos()), text: f.text(d.Pos(), d.End())}, nil
	}
	return nil, s.stale(f, "it declares no function "+name)
}

// mismatch says why a declaration cannot be the source of s, or "".
func (s symbol) mismatch(f *goFile, ft *ast.FuncType, body *ast.BlockStmt, t reflect.Type, strict bool) string {
	if !s.within(f, ft, body) {
		return fmt.Sprintf("the function is at lines %d to %d there", lineOf(ft.Pos()), lineOf(body.Rbrace))
	}
	if !fits(ft, t) {
		return fmt.Sprintf("the signature differs from %s", t)
	}
	if strict && len(body.List) > 0 && !s.plausible(ft, body) {
		return "the file is newer than the program and its lines differ"
	}
	return ""
}

// plausible looks closer where the file is newer than the program: a shift by a
// line may leave all code within the function, but then there is code on a line
// without any, such as that of the last brace, or a return or the body has none.
func (s symbol) plausible(ft *ast.FuncType, body *ast.BlockStmt) bool {
	top, end := lineOf(ft.Pos()), lineOf(body.Rbrace)
	returns, coded, deferred := false, false, false
	bears := map[int]bool{top: true}
	ast.Inspect(body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ReturnStmt:
			returns = true
			coded = coded || s.hasCode(lineOf(n.Pos()), lineOf(n.End()))
		case *ast.DeferStmt:
			deferred = true
		case *ast.FuncLit:
			for l := lineOf(n.Pos()); l <= lineOf(n.End()); l++ {
				bears[l] = true // it may be inlined
			}
			return false
		case nil, *ast.BlockStmt:
			return true
		}
		bears[lineOf(n.Pos())] = true
		return true
	})
	if ft.Results == nil || deferred {
		bears[end] = true
	}
	for _, l := range s.lines {
		if l >= top && l <= end && !bears[l] {
			return false
		}
	}
	return (coded || !returns) && (lineOf(body.List[0].Pos()) == top || s.hasCode(top+1, end))
}

// hasCode reports whether any code of s is on the lines from..to.
func (s symbol) hasCode(from, to int) bool {
	i, _ := slices.BinarySearch(s.lines, from)
	return i < len(s.lines) && s.lines[i] <= to
}

func lineOf(p token.Pos) int { return fset.PositionFor(p, false).Line }

// within reports whether the code of s lies on lines of the function. The
// compiler files a little of what it inlines under the function itself, so lines
// of other functions of the file are let pass, except as the entry.
func (s symbol) within(f *goFile, ft *ast.FuncType, body *ast.BlockStmt) bool {
	from, to := lineOf(ft.Pos()), lineOf(body.Rbrace)
	if s.entry < from || s.entry > to {
		return false
	}
	for _, l := range s.lines {
		if (l < from || l > to) && !slices.ContainsFunc(f.spans, func(o span) bool {
			return l >= o.from && l <= o.to && (o.from > to || o.to < from)
		}) {
			return false
		}
	}
	return true
}

// literalAt is a function literal and what surrounds it.
type literalAt struct {
	lit   *ast.FuncLit
	name  *ast.Ident    // the variable it is assigned to, if any
	outer *ast.FuncDecl // the declaration it is in, if any
	depth int           // how many literals it is in, itself included
}

// literals lists all function literals of a file.
func literals(f *ast.File) []literalAt {
	var all []literalAt
	names := map[*ast.FuncLit]*ast.Ident{}
	pair := func(lhs []ast.Expr, rhs []ast.Expr) {
		if len(lhs) != len(rhs) {
			return
		}
		for i, x := range rhs {
			if id, ok := ast.Unparen(lhs[i]).(*ast.Ident); ok && id.Name != "_" {
				if lit := funcLit(x); lit != nil {
					names[lit] = id
				}
			}
		}
	}
	for _, d := range f.Decls {
		outer, _ := d.(*ast.FuncDecl)
		depth := 0
		var stack []ast.Node
		ast.Inspect(d, func(n ast.Node) bool {
			if n == nil {
				if _, ok := stack[len(stack)-1].(*ast.FuncLit); ok {
					depth--
				}
				stack = stack[:len(stack)-1]
				return true
			}
			stack = append(stack, n)
			switch n := n.(type) {
			case *ast.AssignStmt:
				pair(n.Lhs, n.Rhs)
			case *ast.ValueSpec:
				var lhs []ast.Expr
				for _, id := range n.Names {
					lhs = append(lhs, id)
				}
				pair(lhs, n.Values)
			case *ast.FuncLit:
				depth++
				all = append(all, literalAt{n, names[n], outer, depth})
			}
			return true
		})
	}
	return all
}

func (p *pkg) findLiteral(s symbol, t reflect.Type) (*Func, error) {
	f := p.file
	var fit []literalAt
	why := "no function literal is at that line"
	for _, l := range literals(f.ast) {
		if w := s.mismatch(f, l.lit.Type, l.lit.Body, t, p.strict); w == "" {
			fit = append(fit, l)
		} else if s.within(f, l.lit.Type, l.lit.Body) {
			why = w
		}
	}
	if len(fit) > 1 {
		// The name tells the nesting and the function around it, unless that was inlined.
		n := len(s.parts)
		for n > 0 && closurePart.MatchString(s.parts[n-1]) {
			n--
		}
		depth := len(s.parts) - n
		var exact []literalAt
		for _, l := range fit {
			if l.depth == depth && n > 0 && l.outer != nil && l.outer.Name.Name == s.parts[n-1] {
				exact = append(exact, l)
			}
		}
		if len(exact) == 1 {
			fit = exact
		}
	}
	switch {
	case len(fit) == 0:
		return nil, s.stale(f, why)
	case len(fit) > 1:
		return nil, fmt.Errorf("%s: several function literals are on these lines, and which of them is meant cannot be told: give each a line and a name of its own, name := func(...)",
			fset.Position(fit[0].lit.Pos()))
	}
	l := fit[0]
	if l.name == nil {
		return nil, fmt.Errorf("%s: this function literal has no name: assign it first, name := func(...), and pass name", fset.Position(l.lit.Pos()))
	}
	fn := &Func{Name: l.name.Name, Package: p.path, Decl: namedLit(l.name, l.lit), Fset: fset, Imports: f.imports, DotImports: f.dots,
		Scope: fileScope{p, f}, Where: fset.Position(l.name.Pos()), text: f.text(l.lit.Pos(), l.lit.End())}
	if l.outer != nil {
		local := localScope{Scope: fn.Scope, locals: map[string]Decl{}}
		fn.Captured = captures(p, f, l, local.locals)
		fn.Scope = local
	}
	return fn, nil
}

// localScope is the scope of a literal inside a function.
type localScope struct {
	Scope
	locals map[string]Decl
}

func (s localScope) Lookup(name string) (Decl, bool) {
	if d, ok := s.locals[name]; ok {
		return d, true
	}
	return s.Scope.Lookup(name)
}

// captures finds the locals of the enclosing function that a literal uses,
// directly or through local constants and types, and enters them in locals.
func captures(p *pkg, f *goFile, l literalAt, locals map[string]Decl) []Capture {
	var caught []Capture
	seen := map[string]*ast.Object{}
	groups := map[ast.Spec]*ast.GenDecl{}
	ast.Inspect(l.outer, func(n ast.Node) bool {
		if g, ok := n.(*ast.GenDecl); ok {
			for _, s := range g.Specs {
				groups[s] = g
			}
		}
		return true
	})
	var visit func(ast.Node)
	visit = func(root ast.Node) {
		fields := map[ast.Node]bool{}
		ast.Inspect(root, func(n ast.Node) bool {
			if c, ok := n.(*ast.CompositeLit); ok {
				switch c.Type.(type) {
				case *ast.ArrayType, *ast.MapType:
				default:
					// Keys here are names of fields, which the parser takes for variables.
					for _, e := range c.Elts {
						if kv, ok := e.(*ast.KeyValueExpr); ok {
							fields[kv.Key] = true
						}
					}
				}
			}
			id, ok := n.(*ast.Ident)
			if !ok || id.Obj == nil || id.Obj.Kind == ast.Lbl || fields[id] {
				return true
			}
			at := id.Obj.Pos()
			if at < l.outer.Pos() || at >= l.outer.End() || at >= l.lit.Pos() && at < l.lit.End() || at >= root.Pos() && at < root.End() {
				return true
			}
			if old, ok := seen[id.Name]; ok {
				if old != id.Obj {
					d := Decl{Name: id.Name, Package: p.path, Local: true, Where: fset.Position(at)}
					d.refuse(&refusal{fmt.Sprintf("%s: %s means two different locals of the enclosing function here", fset.Position(id.Pos()), id.Name), "rename one"})
					locals[id.Name] = d
				}
				return true
			}
			seen[id.Name] = id.Obj
			d := Decl{Name: id.Name, Package: p.path, Local: true, Where: fset.Position(at)}
			spec, _ := id.Obj.Decl.(ast.Spec)
			if g := groups[spec]; g != nil && g.Tok != token.VAR {
				d.Gen, d.Imports, d.DotImports, d.text = g, f.imports, f.dots, f.text(g.Pos(), g.End())
				d.Scope = localScope{Scope: fileScope{p, f}, locals: locals}
				locals[id.Name] = d
				visit(g)
				return true
			}
			locals[id.Name] = d
			caught = append(caught, Capture{Name: id.Name, Declared: d.Where, Used: fset.Position(id.Pos())})
			return true
		})
	}
	visit(l.lit)
	return caught
}
