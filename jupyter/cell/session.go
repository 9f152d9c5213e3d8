package cell

import (
	"fmt"
	"go/ast"
	"go/build"
	"go/token"
	"io"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/cosmos72/gomacro/ast2"
	"github.com/cosmos72/gomacro/base"
	basereflect "github.com/cosmos72/gomacro/base/reflect"
	"github.com/cosmos72/gomacro/fast"
	"github.com/cosmos72/gomacro/go/etoken"
	"github.com/cosmos72/gomacro/xreflect"
)

// A Session is an interpreter with the state of one notebook. Run and the
// other methods that evaluate or look into the interpreter belong to one
// goroutine; Interrupt, Interrupted, Lookup, Describe and Completions may be called from any.
type Session struct {
	ir     *fast.Interp
	env    *fast.Env
	record func(cell, line int, text string) error
	warn   func(text string)

	compiled *compiled // packages as the check of a cell sees them

	compiling sync.RWMutex // Lookup from another goroutine must not meet a half-changed name table

	cells []*source // in the order they ran
	last  []Frame
	funcs []function
	again []*fast.Expr // what the last cell was compiled to

	// Unchecked turns the error rule off: errors that nobody took are values like others.
	Unchecked bool
	// Picture is told of every value that an expression in the middle of a cell gave,
	// or one in a loop or branch that may be a picture, to show it if it is one.
	Picture func(Result) *Error
	// Watch is told ten times a second of a statement that runs for longer than a
	// second or so, and once more when it has ended, if it has said that it wants to.
	Watch func(Activity) (interested bool)
	now   atomic.Pointer[watched]

	worker       atomic.Pointer[worker]
	hired        *fast.Run // the last that self was told of
	compilingNow atomic.Bool
	// Texts returns what the first argument of a function of a package may be, if that is
	// one of a few texts, for completion. It may be nil.
	Texts func(path, function string) []string
	// Busy reports whether a compiled call is at work that will notice Interrupted
	// by itself. It may be nil.
	Busy func() bool

	running     atomic.Bool
	interrupted atomic.Bool
	measuring   atomic.Bool // in Again, which shows nothing
	tooDeep     atomic.Bool // interrupted because of a recursion without end
	sleepers    sleepers
	loops       map[ast.Node]ast.Stmt         // those of the running cell, by what is run in their place
	rounds      atomic.Pointer[reflect.Value] // the variable of the running loop
	goroutines  goroutines
}

// function is the extent of a declared function, to name it in a traceback.
type function struct {
	start, end token.Pos
	cell       int
	name       string
}

// A Result holds what the last expression of a cell gave. It is empty if the
// cell ends in a statement, or in a call whose results are not worth showing.
type Result struct {
	Values []interface{}
	Types  []xreflect.Type
	List   bool // they were written as a list, x, y, and are not the results of one call
}

// NewSession starts an interpreter. record is told every piece of source that
// has just run, as the notebook seam of gpukit wants it; warn receives
// remarks for the user that are no errors. Either may be nil.
func NewSession(record func(cell, line int, text string) error, warn func(text string)) *Session {
	if record == nil {
		record = func(int, int, string) error { return nil }
	}
	if warn == nil {
		warn = func(string) {}
	}
	s := &Session{record: record, warn: warn}
	s.guardProcess()

	// gomacro would type-check go/ast with whatever toolchain it finds, and
	// panic on what today's standard library contains. Without a source
	// directory it falls back to reflection, which it needs anyway.
	isDir := build.Default.IsDir
	build.Default.IsDir = func(string) bool { return false }
	s.ir = fast.New()
	s.ir.Comp.Universe.Importer = &xreflect.Importer{}
	build.Default.IsDir = isDir

	g := &s.ir.Comp.Globals
	g.Stdout, g.Stderr = io.Discard, io.Discard
	g.Options &^= base.OptShowPrompt | base.OptTrapPanic
	s.ir.ImportPackage(guardName, guardPath)
	s.declareInterp()
	s.ir.DeclVar(roundName, nil, 0)
	s.declareSelf()
	s.env = s.ir.PrepareEnv()
	s.hire()
	return s
}

// Interp returns the interpreter, to add names to it before the first cell.
func (s *Session) Interp() *fast.Interp { return s.ir }

// Interrupt stops the running cell, and the goroutines that it started, as soon
// as it can. Without a running cell it stops the goroutines that cells left behind.
func (s *Session) Interrupt() {
	if s.running.Load() {
		s.interrupted.Store(true)
		s.worker.Load().stop()
	}
	s.goroutines.stop()
	s.sleepers.wake()
}

// Interrupted reports whether the running cell has been told to stop.
func (s *Session) Interrupted() bool { return s.interrupted.Load() }

// maxDepth is how deep calls between interpreted functions may go. A call takes
// up to some kilobytes of a stack that may have a gigabyte.
const maxDepth = 50000

// Guard calls f, which may run code of the user, as part of the running cell:
// a panic comes back as an Error, and Interrupt stops it. If f cannot be stopped
// it goes on by itself, and what it then does to variables of its caller must not
// matter to it: hand results over in a variable made for this call.
func (s *Session) Guard(f func() *Error) (failed *Error) {
	s.interrupted.Store(false)
	s.tooDeep.Store(false)
	s.goroutines.begin()
	s.running.Store(true)
	j := &job{f: f, done: make(chan struct{})}
	s.worker.Load().jobs <- j
	failed = s.wait(j)
	s.running.Store(false)
	if e := s.goroutines.end(); e != nil && !s.interrupted.Load() && (failed == nil || failed.Interrupted) {
		failed = e
	}
	if failed != nil && failed.Interrupted && s.tooDeep.Load() {
		failed.Name, failed.Interrupted = "StackOverflow", false
		failed.Message = fmt.Sprintf("functions call each other more than %d deep: a recursion without end?", maxDepth)
	}
	return failed
}

// Run evaluates code as the given cell. Everything that goes wrong comes back
// as an Error; what ran before it stays.
func (s *Session) Run(cell int, code string) (res Result, failed *Error) {
	var got struct{ res Result }
	result := &got
	failed = s.Guard(func() (failed *Error) {
		result.res, failed = s.run(cell, code)
		return failed
	})
	if failed == nil {
		res = result.res
	}
	if failed != nil && len(failed.Frames) == 0 {
		failed.Frames = s.last
	}
	if failed != nil {
		s.point(failed)
	}
	return res, failed
}

func (s *Session) run(cell int, code string) (res Result, failed *Error) {
	src, nodes, failed := s.parse(cell, code)
	if failed != nil {
		return Result{}, failed
	}
	s.compiling.Lock()
	s.cells = append(s.cells, src)
	s.compiling.Unlock()
	s.again = nil
	chunks := src.chunks(nodes)
	s.remindOfMain(chunks)
	for i, c := range chunks {
		s.last = s.withTop(src, c, nil)
		res, failed = s.runChunk(src, c, i == len(chunks)-1)
		if failed == nil && (s.interrupted.Load() || s.tooDeep.Load()) {
			failed = interruptedError()
		}
		if e := s.goroutines.crash(); e != nil && failed == nil {
			failed = e
		}
		if failed != nil {
			if s.interrupted.Load() && !failed.Interrupted {
				// A call of compiled code noticed the Stop button and said so in its own words.
				e := interruptedError()
				e.Frames = failed.Frames
				failed = e
			}
			if len(failed.Frames) == 0 {
				failed.Frames = s.last
			}
			return Result{}, failed
		}
	}
	return res, nil
}

// remindOfMain warns of a cell that is a whole program: what Go runs at its start, a
// cell only declares.
func (s *Session) remindOfMain(chunks []Chunk) {
	for _, c := range chunks {
		if !c.Decl {
			return
		}
	}
	for _, c := range chunks {
		for _, node := range c.Nodes {
			if f, ok := node.(*ast.FuncDecl); ok && f.Recv == nil && (f.Name.Name == "main" || f.Name.Name == "init") {
				s.warn(fmt.Sprintf("%s is declared here, and runs when a cell calls it: %[1]s()", f.Name.Name))
			}
		}
	}
}

// Last returns the place of the top-level statement that ran last: the one to
// name when showing its value fails.
func (s *Session) Last() []Frame { return s.last }

// At returns the frame of a line of code, for errors outside the Go of a cell.
func At(cell, line int, code string) []Frame {
	src := &source{code: code}
	return []Frame{{Cell: cell, Line: line, Source: src.line(line)}}
}

func (s *Session) parse(cell int, code string) (src *source, nodes []ast.Node, failed *Error) {
	src = &source{cell: cell, code: code}
	g := &s.ir.Comp.Globals
	var start int
	parse := func(text string) (nodes []ast.Node, bad any) {
		defer func() { bad = recover() }()
		g.Line = 0
		g.Filepath = "cell " + strconv.Itoa(cell)
		start = g.Fileset.Base()
		return g.ParseBytes([]byte(text)), nil
	}
	nodes, bad := parse(code)
	if err, ok := bad.(error); ok {
		if e := firstSyntaxError(err); isList(e.msg) && e.line > 0 {
			if text, ok := severalValues(code, e.offset); ok {
				if list, bad2 := parse(text); bad2 == nil {
					nodes, bad, src.values = list, nil, e.offset+1
				}
			}
		}
	}
	if bad != nil {
		return src, nil, s.syntaxError(src, bad)
	}
	src.file = fileAt(g.Fileset, start)
	if failed := s.check(src, nodes); failed != nil {
		return src, nil, failed
	}
	s.loops = map[ast.Node]ast.Stmt{}
	for _, p := range src.pictures {
		p.X = &ast.CallExpr{Fun: &ast.SelectorExpr{X: at(p.Pos(), guardName), Sel: at(p.Pos(), "Picture")}, Lparen: p.Pos(), Args: []ast.Expr{p.X}, Rparen: p.End()}
	}
	for i, n := range nodes {
		s.guard(src, n)
		if run, loop := countRounds(n); loop != nil {
			nodes[i], s.loops[run] = run, loop
		}
		if f, ok := n.(*ast.FuncDecl); ok {
			name := f.Name.Name
			if f.Recv != nil && len(f.Recv.List) == 1 {
				name = receiver(f.Recv.List[0].Type) + "." + name
			}
			s.compiling.Lock()
			s.funcs = append(s.funcs, function{f.Pos(), endOf(f), cell, name})
			s.compiling.Unlock()
		}
	}
	return src, nodes, nil
}

func fileAt(set *etoken.FileSet, base int) *etoken.File { return set.File(token.Pos(base)) }

func receiver(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return receiver(e.X)
	case *ast.Ident:
		return e.Name
	}
	return "?"
}

func (s *Session) syntaxError(src *source, r any) *Error {
	err, ok := r.(error)
	if !ok {
		return Caught(r)
	}
	e := firstSyntaxError(err)
	if e.line == 0 {
		return &Error{Name: "SyntaxError", Message: e.msg}
	}
	if line, col := braceBelow(src.code); line > 0 && line <= e.line {
		e.line, e.col, e.msg = line, col, "expected '{' in this line"
	}
	failed := src.fault("SyntaxError", e.line, e.col, e.msg)
	failed.Message = withHint(failed.Message, src.line(e.line))
	return failed
}

func (s *Session) runChunk(src *source, c Chunk, last bool) (Result, *Error) {
	if list := valuesOf(c.Nodes[0]); list != nil {
		return s.runValues(src, c, list)
	}
	before := s.names()
	expr, failed := s.compile(src, c)
	if failed != nil {
		s.restore(before, func(*fast.Bind) bool { return true })
		if c.Decl && len(c.Nodes) > 1 && !failed.Interrupted {
			failed.Message += "\nnone of the declarations beside this one is kept: run the cell again when it is mended"
		}
		return Result{}, failed
	}
	if expr != nil {
		s.again = append(s.again, expr)
	}
	s.begin(src, c)
	values, types, failed := s.eval(expr)
	s.end()
	if failed != nil {
		failed.Frames = s.withTop(src, c, failed.Frames)
		if c.Decl {
			// What was declared before the failure stays, so gpukit must know it.
			_ = s.record(src.cell, c.Line, c.Text)
		}
		s.restore(before, func(b *fast.Bind) bool { return s.unset(b, c.Decl) })
		return Result{}, failed
	}
	if err := s.record(src.cell, c.Line, c.Text); err != nil {
		s.warn(fmt.Sprintf("cell %d, line %d: gpukit cannot use this source: %v", src.cell, c.Line, err))
	}
	if node := c.Nodes[len(c.Nodes)-1]; len(values) == 2 && hasOK(node) {
		if ok := values[1].ReflectValue(); isAssertion(node) && ok.Kind() == reflect.Bool && !ok.Bool() {
			return Result{}, &Error{
				Name:    "Panic",
				Message: s.asserted(node, types[0]),
				Frames:  s.withTop(src, c, nil),
			}
		}
		values, types = values[:1], types[:1]
	}
	if failed := s.untaken(src, c, values, types); failed != nil {
		return Result{}, failed
	}
	if !last {
		if s.Picture == nil {
			return Result{}, nil
		}
		res := s.worthShowing(c, values, types)
		if len(res.Values) != 1 || !s.changed(c.Nodes[0], res.Values[0]) {
			return Result{}, nil
		}
		failed := s.Picture(res)
		if failed != nil {
			failed.Frames = s.withTop(src, c, failed.Frames)
		}
		return Result{}, failed
	}
	return s.worthShowing(c, values, types), nil
}

// names is the state of the name table that a failed chunk must not change.
type names struct {
	binds map[string]*fast.Bind
	types map[string]xreflect.Type
	// kinds are the Go types behind variables of types declared in cells: gomacro
	// changes such a type in place when it is declared again.
	kinds map[string]reflect.Type
}

func (s *Session) names() names {
	c := s.ir.Comp
	kinds := map[string]reflect.Type{}
	for name, b := range c.Binds {
		if isVar(b) && b.Type != nil && b.Type.Named() {
			kinds[name] = b.Type.ReflectType()
		}
	}
	return names{maps.Clone(c.Binds), maps.Clone(c.Types), kinds}
}

// restore takes back the new or changed names for which undo holds.
func (s *Session) restore(old names, undo func(*fast.Bind) bool) {
	s.compiling.Lock()
	defer s.compiling.Unlock()
	c := s.ir.Comp
	all := true
	for name, b := range c.Binds {
		was := old.binds[name]
		if was == b {
			continue
		}
		if !undo(b) {
			all = false
		} else if was == nil {
			delete(c.Binds, name)
		} else {
			c.Binds[name] = was
		}
	}
	if all && old.types != nil {
		maps.DeleteFunc(c.Types, func(name string, t xreflect.Type) bool { return old.types[name] == nil })
		maps.Copy(c.Types, old.types)
	}
}

// unset reports whether a name declared by a chunk that then panicked has no
// value of its type, so that using it would crash the interpreter.
func (s *Session) unset(b *fast.Bind, decl bool) bool {
	switch b.Desc.Class() {
	case fast.VarBind, fast.FuncBind:
		i := b.Desc.Index()
		if i == fast.NoIndex || i >= len(s.env.Vals) {
			return true
		}
		v := s.env.Vals[i].ReflectValue()
		return !v.IsValid() || v.Type() != b.Type.ReflectType()
	case fast.IntBind:
		return !decl
	}
	return false
}

func (s *Session) compile(src *source, c Chunk) (expr *fast.Expr, failed *Error) {
	s.compiling.Lock()
	defer s.compiling.Unlock()
	s.compilingNow.Store(true)
	defer s.compilingNow.Store(false)
	restore := s.keepMethods(c.Nodes)
	defer func() {
		if r := recover(); r != nil {
			s.ir.Comp.Code.Clear()
			restore()
			failed = s.compileError(src, c, r)
		}
	}()
	if failed := refuse(src, c); failed != nil {
		return nil, failed
	}
	expr = s.compileFresh(c)
	s.ir.PrepareEnv()
	return expr, nil
}

func (s *Session) compileNodes(c Chunk) *fast.Expr {
	switch {
	case len(c.Nodes) > 1:
		return s.compileDecls(c.Nodes)
	case unpacks(c.Nodes[0]):
		s.ir.Comp.Decl(c.Nodes[0].(ast.Decl))
		return s.ir.Comp.Code.AsExpr()
	}
	return s.ir.CompileAst(ast2.ToAst(c.Nodes[0]))
}

// refuse finds what gomacro accepts at the top of a cell but cannot mean.
func refuse(src *source, c Chunk) (failed *Error) {
	bad := func(n ast.Node, why string) {
		if failed == nil {
			line, col := src.position(n.Pos())
			failed = src.fault("CompileError", line, col, why)
		}
	}
	if len(c.Nodes) == 1 && isNil(c.Nodes[0]) {
		bad(c.Nodes[0], "nil alone has no type and no value; write a variable, or give it a type: error(nil)")
	}
	for _, n := range c.Nodes {
		inspect(n, func(n ast.Node) bool {
			switch n.(type) {
			case *ast.FuncDecl, *ast.FuncLit:
				return false
			case *ast.DeferStmt:
				bad(n, "no function ends here that defer could wait for; put the call at the end of the cell, or the statements into a function: (func() { ... })()")
			}
			return true
		})
	}
	return failed
}

func isNil(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.ParenExpr:
		return isNil(n.X)
	case *ast.ExprStmt:
		return isNil(n.X)
	case *ast.Ident:
		return n.Name == "nil"
	}
	return false
}

// inspect is ast.Inspect, which does not know the nodes that only gomacro has.
func inspect(n ast.Node, f func(ast.Node) bool) {
	defer func() { _ = recover() }()
	ast.Inspect(n, f)
}

// compileDecls compiles declarations that may refer to each other in any
// order. gomacro sorts them, but has no order for functions that call each
// other in a circle, and does not see what calls methods: there, all functions
// and methods are announced before the first body.
func (s *Session) compileDecls(nodes []ast.Node) (expr *fast.Expr) {
	c := s.ir.Comp
	funcs, others := splitFuncs(nodes)
	methods, others := splitMethods(others)
	if len(methods) > 0 {
		return s.compileAnnounced(funcs, methods, others)
	}
	before := s.names()
	defer func() {
		r := recover()
		if r == nil {
			return
		}
		if len(funcs) < 2 || !strings.Contains(Caught(r).Message, "undefined identifier") {
			panic(r)
		}
		c.Code.Clear()
		c.Binds, c.Types = before.binds, before.types
		expr = s.compileAnnounced(funcs, nil, others)
	}()
	return s.ir.CompileAst(ast2.NodeSlice{X: nodes})
}

// splitFuncs separates functions from methods, types, values and imports.
func splitFuncs(nodes []ast.Node) (funcs []*ast.FuncDecl, others []ast.Node) {
	for _, n := range nodes {
		if f, ok := n.(*ast.FuncDecl); ok && f.Recv == nil && f.Name.Name != "_" {
			funcs = append(funcs, f)
		} else {
			others = append(others, n)
		}
	}
	return funcs, others
}

func splitVars(nodes []ast.Node) (others, vars []ast.Node) {
	for _, n := range nodes {
		if g, ok := n.(*ast.GenDecl); ok && g.Tok == token.VAR {
			vars = append(vars, n)
		} else {
			others = append(others, n)
		}
	}
	return others, vars
}

// inTurn joins compiled declarations, which have no results.
func inTurn(list []*fast.Expr) *fast.Expr {
	var steps []func(*fast.Env)
	for _, e := range list {
		if f := e.AsX(); f != nil {
			steps = append(steps, f)
		}
	}
	return &fast.Expr{Types: []xreflect.Type{}, Fun: func(env *fast.Env) {
		for _, f := range steps {
			f(env)
		}
	}}
}

func (s *Session) compileError(src *source, c Chunk, r any) *Error {
	e := Caught(r)
	if e.Interrupted {
		return e
	}
	e.Name = "CompileError"
	line, col, ok := placeOf(e.Message)
	if !ok {
		if line, col = src.position(s.ir.Comp.Pos); line == 0 {
			line, col = src.position(c.Nodes[0].Pos())
		}
		line, col = max(line, 1), max(col, 1)
		e.Message = fmt.Sprintf("cell %d:%d:%d: %s", src.cell, line, col, e.Message)
	} else if real := src.unshift(line, col); real != col {
		col = real
		e.Message = where.ReplaceAllString(e.Message, fmt.Sprintf("cell ${1}:${2}:%d: ", col))
	}
	e.Message = s.plain(withHint(e.Message, src.line(line)))
	e.Frames = []Frame{src.frame(line, col)}
	return e
}

// eval runs compiled code. It does by hand what Interp.RunExpr does, because
// it must see the call stack of the interpreter before that is unwound.
func (s *Session) eval(expr *fast.Expr) (values []xreflect.Value, types []xreflect.Type, failed *Error) {
	s.leave()
	defer s.leave()
	if expr == nil {
		return nil, nil, nil
	}
	env := s.ir.PrepareEnv()
	if expr.Untyped() {
		expr.ConstTo(expr.DefaultType())
	}
	run := env.Run
	outer := run.CurrEnv
	run.CurrEnv = env
	env.DebugPos = nil // of the previous chunk; an expression sets none
	defer func() {
		r := recover()
		if r != nil {
			failed = Caught(r)
			if len(failed.Frames) == 0 {
				failed.Frames = s.stack(run.CurrEnv)
			}
			run.ExecFlags = 0
			run.Interrupt, run.InstallDefer = nil, nil
			run.DeferOfFun, run.PanicFun, run.Panic = nil, nil, nil
			run.Signals = base.Signals{}
		}
		run.CurrEnv = outer
	}()
	v, vs := expr.AsXV(fast.COptKeepUntyped)(env)
	return basereflect.PackValues(v, vs), basereflect.PackTypes(expr.Type, expr.Types), nil
}

// withTop ends a call stack with the top-level statement that ran.
func (s *Session) withTop(src *source, c Chunk, frames []Frame) []Frame {
	if n := len(frames); n > 0 && frames[n-1].Func == "" {
		return frames
	}
	line, col := src.position(c.Nodes[0].Pos())
	if line == 0 {
		line = c.Line
	}
	return append(frames, src.frame(line, col))
}

// maxFrames bounds a traceback; the middle of a deep recursion tells nothing.
const maxFrames = 12

func (s *Session) stack(env *fast.Env) []Frame {
	var frames []Frame
	const plenty = 1000 // an endless recursion need not be told to the end
	for n := 0; env != nil && n < plenty; n++ {
		if env.IP >= 0 && env.IP < len(env.DebugPos) {
			if f, ok := s.frame(env.DebugPos[env.IP]); ok {
				frames = append(frames, f)
			}
		}
		for env != nil && env.Caller == nil {
			env = env.Outer
		}
		if env != nil {
			env = env.Caller
		}
	}
	if n := len(frames); n > maxFrames {
		frames = append(frames[:maxFrames/2], frames[n-maxFrames/2:]...)
	}
	return slices.Compact(frames)
}

func (s *Session) frame(pos token.Pos) (Frame, bool) {
	var found Frame
	for _, src := range slices.Backward(s.cells) {
		if line, col := src.position(pos); line > 0 {
			found = src.frame(line, col)
			break
		}
	}
	if found.Line == 0 {
		return found, false
	}
	for _, f := range s.funcs {
		if f.start <= pos && pos < f.end {
			found.Func = f.name
		}
	}
	return found, true
}

// untaken applies the error rule to a chunk that has just run.
func (s *Session) untaken(src *source, c Chunk, values []xreflect.Value, types []xreflect.Type) *Error {
	node := c.Nodes[len(c.Nodes)-1]
	var v any
	switch {
	case s.Unchecked:
		return nil
	case assignsErr(node):
		if value, ok := s.Lookup("err"); ok && value.CanInterface() {
			v = value.Interface()
		}
	case !c.Decl && isCall(node) && len(values) > 0 && s.isError(types[len(types)-1]):
		v = basereflect.ValueInterface(values[len(values)-1])
	}
	err, ok := v.(error)
	if !ok {
		return nil
	}
	e := fromError(err)
	e.Frames = []Frame{src.frame(src.position(node.Pos()))}
	return e
}

var errorType = reflect.TypeFor[error]()

func (s *Session) isError(t xreflect.Type) bool {
	return t != nil && t.ReflectType().Implements(errorType)
}

// worthShowing drops what nobody wants to read below a cell: the count and
// the nil error of a print, and the nil error beside a value.
func (s *Session) worthShowing(c Chunk, values []xreflect.Value, types []xreflect.Type) Result {
	node := c.Nodes[len(c.Nodes)-1]
	if _, ok := node.(ast.Expr); !ok || len(values) == 0 || s.isPrint(node) {
		return Result{}
	}
	if n := len(values); n > 1 && s.isError(types[n-1]) && basereflect.ValueInterface(values[n-1]) == nil {
		values, types = values[:n-1], types[:n-1]
	}
	var res Result
	some := false
	for i, v := range values {
		x := basereflect.ValueInterface(v)
		some = some || x != nil
		res.Values = append(res.Values, x)
		res.Types = append(res.Types, types[i])
	}
	if !some && (len(values) != 1 || isCall(node)) {
		return Result{}
	}
	return res
}

// isPrint reports whether node calls one of the functions of fmt that print.
func (s *Session) isPrint(node ast.Node) bool {
	call, ok := node.(*ast.CallExpr)
	if !ok {
		return false
	}
	sel, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	pkg, ok := sel.X.(*ast.Ident)
	if !ok {
		return false
	}
	sym := s.ir.Comp.TryResolve(pkg.Name)
	if sym == nil {
		return false
	}
	imp, ok := sym.Bind.Value.(*fast.Import)
	if !ok || imp.Path != "fmt" {
		return false
	}
	return strings.HasPrefix(sel.Sel.Name, "Print") || strings.HasPrefix(sel.Sel.Name, "Fprint")
}

// Eval evaluates one expression outside any cell. Its caller shows it.
func (s *Session) Eval(text string) (res Result, failed *Error) {
	src, nodes, failed := s.parse(0, text)
	if failed != nil {
		return Result{}, failed
	}
	if len(nodes) != 1 {
		return Result{}, &Error{Name: "SyntaxError", Message: fmt.Sprintf("%q is not one expression", text)}
	}
	if _, ok := nodes[0].(ast.Expr); !ok {
		return Result{}, &Error{Name: "SyntaxError", Message: fmt.Sprintf("%q is not an expression", text)}
	}
	c := Chunk{Nodes: nodes, Line: 1, Text: text}
	expr, failed := s.compile(src, c)
	if failed != nil {
		return Result{}, failed
	}
	values, types, failed := s.eval(expr)
	if failed != nil {
		return Result{}, failed
	}
	if failed := s.untaken(src, c, values, types); failed != nil {
		return Result{}, failed
	}
	return s.worthShowing(c, values, types), nil
}
