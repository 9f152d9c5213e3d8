package cell

import (
	"fmt"
	"go/ast"
	"go/token"
	"reflect"
	"strconv"
	"sync"
	"time"

	"github.com/cosmos72/gomacro/base"
	"github.com/cosmos72/gomacro/imports"
	"github.com/cosmos72/gomacro/xreflect"
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
		"Started":   reflect.ValueOf(s.started),
		"Recovered": reflect.ValueOf(recovered),
		"Self":      reflect.ValueOf(s.self),
		"Round":     reflect.ValueOf(s.round),
		"Room":      reflect.ValueOf(room),
		"Picture":   reflect.ValueOf(s.pictureInside),
		"Close":     reflect.ValueOf(func(ch interface{}) { reflect.ValueOf(ch).Close() }),
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

// pictureInside shows what a statement in a loop or branch gave.
func (s *Session) pictureInside(v interface{}) {
	if s.Picture == nil || v == nil || s.measuring.Load() {
		return
	}
	if failed := s.Picture(Result{Values: []interface{}{v}, Types: []xreflect.Type{nil}}); failed != nil {
		panic(failed)
	}
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
// Every make of a size that is not small asks room first: Go ends a process
// that has not the memory.
//
// gomacro cannot defer a close, so that calls a function.
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
			} else if ok && id.Name == "make" {
				for i := 1; i < len(call.Args); i++ {
					if !small(call.Args[i]) {
						pos, t := call.Args[i].Pos(), call.Args[0]
						sample := &ast.CallExpr{Fun: &ast.ParenExpr{Lparen: pos, X: t, Rparen: pos}, Lparen: pos, Args: []ast.Expr{&ast.Ident{NamePos: pos, Name: "nil"}}, Rparen: pos}
						call.Args[i] = &ast.CallExpr{Fun: ours(pos, "Room"), Lparen: pos, Args: []ast.Expr{sample, call.Args[i]}, Rparen: call.Args[i].End()}
					}
				}
			}
			return true
		}
		if d, ok := n.(*ast.DeferStmt); ok {
			if id, ok := d.Call.Fun.(*ast.Ident); ok && id.Name == "close" && len(d.Call.Args) == 1 {
				d.Call.Fun = ours(d.Pos(), "Close")
			}
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
		ident := func(name string) ast.Expr { return &ast.Ident{NamePos: call.Pos(), Name: name} }
		lit := func(kind token.Token, text string) ast.Expr {
			return &ast.BasicLit{ValuePos: call.Pos(), Kind: kind, Value: text}
		}
		called := func(f ast.Expr, args ...ast.Expr) *ast.CallExpr {
			return &ast.CallExpr{Fun: f, Lparen: call.Lparen, Args: args, Rparen: call.Rparen}
		}
		g.Call = called(ours(call.Pos(), "Go"), append([]ast.Expr{
			called(ours(call.Pos(), "Started"), called(ident(interpName))),
			lit(token.INT, strconv.Itoa(src.cell)), lit(token.INT, strconv.Itoa(line)), lit(token.STRING, strconv.Quote(src.line(line))),
			ident(spread), call.Fun,
		}, call.Args...)...)
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
