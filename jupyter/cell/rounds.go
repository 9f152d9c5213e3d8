package cell

import (
	"go/ast"
	"go/token"
	"reflect"
	"strconv"
	"sync/atomic"
	"time"
)

// An Activity is a top-level statement that has been running for a while.
type Activity struct {
	Cell, Line int
	Source     string // the text of the line
	Start      time.Time
	// Loop reports that the statement is a loop, of which Done rounds are done. Of
	// Total 0 it is not known how many there will be.
	Loop        bool
	Done, Total int64
	Drawing     bool // the statement has ended, and its value is being drawn
	Over        bool // that has ended
}

// roundName is the variable in which the loop at the top of a cell says how far it is.
const roundName = "\u00b7round"

// watched is the statement that runs.
type watched struct {
	activity Activity
	loop     ast.Stmt
	told     atomic.Bool // Watch knows of it
}

// countRounds makes a loop say how far it is. One that counts with a variable hands
// over where that is, once, before it begins, which costs nothing in a round:
//
//	{ i := 0; Round(&i); for ; i < n; i++ { } }
//
// Any other loop counts its rounds. It returns the node to run, and the loop, nil if it is none.
func countRounds(node ast.Node) (run ast.Node, loop ast.Stmt) {
	var body *ast.BlockStmt
	switch n := unlabelled(node).(type) {
	case *ast.ForStmt:
		if id := counter(n); id != nil {
			return handOver(node, n, id), n
		}
		body, loop = n.Body, n
	case *ast.RangeStmt:
		body, loop = n.Body, n
	default:
		return node, nil
	}
	say := &ast.IncDecStmt{X: at(body.Pos(), roundName), TokPos: body.Pos(), Tok: token.INC}
	body.List = append([]ast.Stmt{say}, body.List...)
	return node, loop
}

func handOver(node ast.Node, n *ast.ForStmt, id *ast.Ident) ast.Node {
	pos := n.Pos()
	inner := *n
	inner.Init = nil
	var last ast.Stmt = &inner
	if l, ok := node.(*ast.LabeledStmt); ok {
		labelled := *l
		labelled.Stmt = last
		last = &labelled
	}
	call := &ast.CallExpr{
		Fun:    &ast.SelectorExpr{X: at(pos, guardName), Sel: at(pos, "Round")},
		Lparen: pos, Args: []ast.Expr{&ast.UnaryExpr{OpPos: pos, Op: token.AND, X: at(pos, id.Name)}}, Rparen: pos,
	}
	return &ast.BlockStmt{Lbrace: node.Pos(), List: []ast.Stmt{n.Init, &ast.ExprStmt{X: call}, last}, Rbrace: n.End() - 1}
}

// round is told where the variable of a loop is. It is read while the loop runs.
func (s *Session) round(p interface{}) {
	v := reflect.ValueOf(p).Elem()
	s.rounds.Store(&v)
}

func at(pos token.Pos, name string) *ast.Ident { return &ast.Ident{NamePos: pos, Name: name} }

func unlabelled(node ast.Node) ast.Node {
	if l, ok := node.(*ast.LabeledStmt); ok {
		return l.Stmt
	}
	return node
}

// counter is the variable of a loop that counts: for i := 0; i < n; i++. It must
// be an integer: nothing else has ++, or += with an integer beside it and a comparison.
func counter(n *ast.ForStmt) *ast.Ident {
	cond, ok := n.Cond.(*ast.BinaryExpr)
	if !ok || n.Init == nil {
		return nil
	}
	switch cond.Op {
	case token.LSS, token.LEQ, token.GTR, token.GEQ:
	default:
		return nil
	}
	id, ok := cond.X.(*ast.Ident)
	if !ok {
		return nil
	}
	var stepped ast.Expr
	switch post := n.Post.(type) {
	case *ast.IncDecStmt:
		stepped = post.X
	case *ast.AssignStmt:
		if len(post.Lhs) == 1 && (post.Tok == token.ADD_ASSIGN || post.Tok == token.SUB_ASSIGN) {
			if lit, ok := post.Rhs[0].(*ast.BasicLit); ok && lit.Kind == token.INT {
				stepped = post.Lhs[0]
			}
		}
	}
	init, ok := n.Init.(*ast.AssignStmt)
	if !ok || len(init.Lhs) != 1 {
		return nil
	}
	first, ok1 := init.Lhs[0].(*ast.Ident)
	step, ok2 := stepped.(*ast.Ident)
	if !ok1 || !ok2 || first.Name != id.Name || step.Name != id.Name {
		return nil
	}
	return id
}

// value evaluates what the bound of a loop usually is; ok is false for anything else.
func (s *Session) value(e ast.Expr) (n int64, ok bool) {
	switch e := e.(type) {
	case *ast.ParenExpr:
		return s.value(e.X)
	case *ast.BasicLit:
		n, err := strconv.ParseInt(e.Value, 0, 64)
		return n, err == nil && e.Kind == token.INT
	case *ast.Ident:
		v, ok := s.Lookup(e.Name)
		switch {
		case !ok:
		case v.CanInt():
			return v.Int(), true
		case v.CanUint():
			return int64(v.Uint()), true
		}
	case *ast.CallExpr:
		if id, ok := e.Fun.(*ast.Ident); ok && id.Name == "len" && len(e.Args) == 1 {
			return s.length(e.Args[0])
		}
	case *ast.BinaryExpr:
		x, ok1 := s.value(e.X)
		y, ok2 := s.value(e.Y)
		if !ok1 || !ok2 {
			return 0, false
		}
		switch {
		case e.Op == token.ADD:
			return x + y, true
		case e.Op == token.SUB:
			return x - y, true
		case e.Op == token.MUL:
			return x * y, true
		case e.Op == token.QUO && y != 0:
			return x / y, true
		}
	}
	return 0, false
}

func (s *Session) length(e ast.Expr) (int64, bool) {
	id, ok := e.(*ast.Ident)
	if !ok {
		return 0, false
	}
	v, ok := s.Lookup(id.Name)
	if !ok {
		return 0, false
	}
	switch v.Kind() {
	case reflect.Slice, reflect.Array, reflect.Map:
		return int64(v.Len()), true
	}
	return 0, false
}

// progress says how far a loop is.
func (s *Session) progress(loop ast.Stmt) (done, total int64) {
	if v := s.rounds.Load(); v == nil {
		round, ok := s.Lookup(roundName)
		if !ok {
			return 0, 0
		}
		done = round.Int()
	} else {
		switch {
		case v.CanInt():
			done = v.Int()
		case v.CanUint():
			done = int64(v.Uint())
		case v.CanFloat():
			done = int64(v.Float())
		}
	}
	switch n := loop.(type) {
	case *ast.RangeStmt:
		total, _ = s.length(n.X)
		done-- // it says when it begins
	case *ast.ForStmt:
		if counter(n) == nil {
			done--
			break
		}
		first, ok1 := s.value(n.Init.(*ast.AssignStmt).Rhs[0])
		end, ok2 := s.value(n.Cond.(*ast.BinaryExpr).Y)
		if !ok1 {
			first = 0
		}
		if op := n.Cond.(*ast.BinaryExpr).Op; ok2 && op == token.LEQ {
			end++
		} else if ok2 && op == token.GEQ {
			end--
		}
		done, total = done-first, end-first
		if total < 0 {
			done, total = -done, -total
		}
		if !ok2 {
			total = 0
		}
	}
	return max(done, 0), max(total, 0)
}

// Times of Watch: how long a statement runs before it is told of, and how often then.
const (
	watchAfter = 1500 * time.Millisecond
	watchEvery = 100 * time.Millisecond
)

// begin notes which statement runs now.
func (s *Session) begin(src *source, c Chunk) {
	if s.Watch == nil {
		return
	}
	line, _ := src.position(c.Nodes[0].Pos())
	w := &watched{activity: Activity{Cell: src.cell, Line: line, Source: src.line(line), Start: time.Now()}}
	s.rounds.Store(nil)
	if loop := s.loops[c.Nodes[0]]; loop != nil {
		w.activity.Loop, w.loop = true, loop
		if sym := s.ir.Comp.TryResolve(roundName); sym != nil {
			s.env.Ints[sym.Desc.Index()] = 0
		}
	}
	s.now.Store(w)
}

// end tells Watch that the statement is over, if it knows of it.
func (s *Session) end() {
	if w := s.now.Swap(nil); w != nil {
		s.over(w)
	}
}

// Drawing calls f, which draws the value of the statement that ran last. Watch is told of
// it as of a statement. In a loop that draws, the loop is what Watch is told of.
func (s *Session) Drawing(f func()) {
	w := &watched{activity: Activity{Start: time.Now(), Drawing: true}}
	if n := len(s.last); n > 0 {
		w.activity.Cell, w.activity.Line, w.activity.Source = s.last[n-1].Cell, s.last[n-1].Line, s.last[n-1].Source
	}
	if s.Watch == nil || !s.now.CompareAndSwap(nil, w) {
		f()
		return
	}
	defer func() {
		if s.now.CompareAndSwap(w, nil) { // else it was abandoned
			s.over(w)
		}
	}()
	f()
}

func (s *Session) over(w *watched) {
	if !w.told.Load() {
		return
	}
	a := w.activity
	if a.Loop {
		a.Done, a.Total = s.progress(w.loop)
	}
	a.Over = true
	s.Watch(a)
}

// tell is called by the pump.
func (s *Session) tell(now time.Time) {
	w := s.now.Load()
	if w == nil || now.Sub(w.activity.Start) < watchAfter {
		return
	}
	a := w.activity
	if a.Loop {
		a.Done, a.Total = s.progress(w.loop)
	}
	if s.Watch(a) {
		w.told.Store(true)
	}
}
