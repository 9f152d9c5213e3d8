package cell

import (
	"fmt"
	"go/ast"
	"go/token"
	"reflect"
	"sync"
	"time"

	"github.com/cosmos72/gomacro/base"
	"github.com/cosmos72/gomacro/imports"
)

// sleepers lets Interrupt end every time.Sleep that a cell is in.
type sleepers struct {
	mu sync.Mutex
	ch chan struct{}
}

func (s *sleepers) wait() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ch == nil {
		s.ch = make(chan struct{})
	}
	return s.ch
}

func (s *sleepers) wake() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ch != nil {
		close(s.ch)
		s.ch = nil
	}
}

// guardProcess replaces what a cell can import from the standard library but
// must not do to its kernel: end the process, or sleep through the Stop button.
func (s *Session) guardProcess() {
	replace("os", "Exit", func(code int) {
		panic(&Error{Name: "Exit", Message: fmt.Sprintf("os.Exit(%d): the cell stops here; the kernel goes on", code)})
	})
	replace("log", "Fatal", func(args ...interface{}) {
		panic(&Error{Name: "Fatal", Message: fmt.Sprint(args...)})
	})
	replace("log", "Fatalf", func(format string, args ...interface{}) {
		panic(&Error{Name: "Fatal", Message: fmt.Sprintf(format, args...)})
	})
	replace("log", "Fatalln", func(args ...interface{}) {
		text := fmt.Sprintln(args...)
		panic(&Error{Name: "Fatal", Message: text[:len(text)-1]})
	})
	imports.Packages[guardPath] = imports.Package{Name: guardName, Binds: map[string]reflect.Value{
		"Go":        reflect.ValueOf(s.goroutine),
		"Recovered": reflect.ValueOf(recovered),
	}}
	replace("time", "Sleep", func(d time.Duration) {
		t := time.NewTimer(d)
		defer t.Stop()
		select {
		case <-t.C:
		case <-s.sleepers.wait():
		}
	})
}

func replace(pkg, name string, f interface{}) {
	if p, ok := imports.Packages[pkg]; ok && p.Binds != nil {
		p.Binds[name] = reflect.ValueOf(f)
	}
}

// The functions that stand between a cell and what could take the kernel from
// the user. They live in a package under a name that no cell can write.
const (
	guardPath = "gpunotes/jupyter/guard"
	guardName = "\u00b7guard"
)

// guard changes a parsed node in place.
//
// Every go statement calls its function through goroutine: a panic in a
// goroutine would end the process, and with it everything in the notebook. A
// builtin is no value that could be handed over (and gomacro cannot start one),
// so it gets a function around it.
//
// Every recover passes its result through recovered: a program that recovers
// in a loop must not recover from the Stop button.
func (s *Session) guard(src *source, node ast.Node) {
	defer func() {
		_ = recover() // nodes that only gomacro has; ast.Inspect does not know them
	}()
	ours := func(pos token.Pos, name string) ast.Expr {
		return &ast.SelectorExpr{X: &ast.Ident{NamePos: pos, Name: guardName}, Sel: &ast.Ident{NamePos: pos, Name: name}}
	}
	done := map[ast.Node]bool{}
	ast.Inspect(node, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok && !done[n] {
			if id, ok := call.Fun.(*ast.Ident); ok && id.Name == "recover" && len(call.Args) == 0 {
				inner := *call
				done[&inner] = true
				call.Fun, call.Args = ours(call.Pos(), "Recovered"), []ast.Expr{&inner}
			}
			return true
		}
		g, ok := n.(*ast.GoStmt)
		if !ok {
			return true
		}
		call := g.Call
		if id, ok := call.Fun.(*ast.Ident); ok && builtin[id.Name] {
			call = &ast.CallExpr{Lparen: call.Lparen, Rparen: call.Rparen, Fun: &ast.FuncLit{
				Type: &ast.FuncType{Func: call.Pos(), Params: &ast.FieldList{}},
				Body: &ast.BlockStmt{Lbrace: call.Pos(), List: []ast.Stmt{&ast.ExprStmt{X: call}}, Rbrace: call.Rparen},
			}}
		}
		line, _ := src.position(g.Pos())
		spread := "false"
		if call.Ellipsis.IsValid() {
			spread = "true"
		}
		where := &ast.BasicLit{ValuePos: call.Pos(), Kind: token.STRING, Value: fmt.Sprintf("\"cell %d, line %d\"", src.cell, line)}
		g.Call = &ast.CallExpr{
			Fun:    ours(call.Pos(), "Go"),
			Lparen: call.Lparen,
			Args:   append([]ast.Expr{where, &ast.Ident{NamePos: call.Pos(), Name: spread}, call.Fun}, call.Args...),
			Rparen: call.Rparen,
		}
		return true
	})
}

// recovered gives a cell what recover has given it, but not an interrupt.
func recovered(v interface{}) interface{} {
	if sig, ok := v.(base.Signal); ok {
		panic(sig)
	}
	return v
}

var builtin = map[string]bool{"close": true, "copy": true, "delete": true, "panic": true, "print": true, "println": true, "recover": true}

// goroutine calls f in the goroutine it is called in, and reports a panic.
func (s *Session) goroutine(where string, spread bool, f interface{}, args ...interface{}) {
	defer func() {
		if r := recover(); r != nil {
			s.warn(where + ": panic in a goroutine: " + Caught(r).Message)
		}
	}()
	fv := reflect.ValueOf(f)
	t := fv.Type()
	in := make([]reflect.Value, len(args))
	for i, a := range args {
		var want reflect.Type
		switch {
		case t.IsVariadic() && i >= t.NumIn()-1 && !spread:
			want = t.In(t.NumIn() - 1).Elem()
		default:
			want = t.In(i)
		}
		switch v := reflect.ValueOf(a); {
		case !v.IsValid():
			in[i] = reflect.Zero(want)
		case v.Type().AssignableTo(want):
			in[i] = v
		default:
			in[i] = v.Convert(want) // a constant, or a type that the interpreter emulates
		}
	}
	if spread {
		fv.CallSlice(in)
	} else {
		fv.Call(in)
	}
}
