package cell

import (
	"go/ast"
	"runtime"
	"sync"
	"time"

	"github.com/cosmos72/gomacro/ast2"
	"github.com/cosmos72/gomacro/base"
	"github.com/cosmos72/gomacro/fast"
	"github.com/cosmos72/gomacro/gls"
)

// A worker is the goroutine in which cells run. When a compiled call in it cannot
// be stopped, the worker is left to itself and another one takes its place: the
// user gets the notebook back, with all variables.
type worker struct {
	id   uintptr // of the goroutine
	jobs chan *job
	run  *fast.Run

	mu   sync.Mutex
	over bool // it has come to its end
}

// A job is what Guard has been given.
type job struct {
	f      func() *Error
	failed *Error
	done   chan struct{}
}

// selfName is an interpreted function that hands the state of the goroutine it is
// called in to Session.self; the interpreter makes one for every goroutine.
const selfName = "\u00b7self"

func (s *Session) declareSelf() {
	name := func(text string) *ast.Ident { return &ast.Ident{Name: text} }
	call := &ast.CallExpr{
		Fun:  &ast.SelectorExpr{X: name(guardName), Sel: name("Self")},
		Args: []ast.Expr{&ast.CallExpr{Fun: name(interpName)}},
	}
	s.ir.RunExpr(s.ir.CompileAst(ast2.ToAst(&ast.FuncDecl{
		Name: name(selfName), Type: &ast.FuncType{Params: &ast.FieldList{}}, Body: &ast.BlockStmt{List: []ast.Stmt{&ast.ExprStmt{X: call}}},
	})))
}

func (s *Session) self(ir interface{}) { s.hired = ir.(*fast.Interp).PrepareEnv().Run }

// hire starts a worker and makes it the one in which cells run.
func (s *Session) hire() {
	w := &worker{jobs: make(chan *job)}
	ready := make(chan struct{})
	go func() {
		defer w.end()
		w.id = gls.GoID()
		self, _ := s.Lookup(selfName)
		self.Call(nil)
		w.run = s.hired
		close(ready)
		for j := range w.jobs {
			w.do(j)
			if s.worker.Load() != w {
				return
			}
		}
	}()
	<-ready
	s.env.Run = w.run
	s.worker.Store(w)
}

// end leaves the state of the goroutine clean: the interpreter finds it by the
// address of the goroutine, which another one may have later.
func (w *worker) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.over = true
	w.run.Signals = base.Signals{}
}

// clean forgets what a panic outside an evaluation, in a String method say, has left.
func (w *worker) clean() {
	r := w.run
	r.ExecFlags = 0
	r.CurrEnv, r.Interrupt, r.InstallDefer = nil, nil, nil
	r.DeferOfFun, r.PanicFun, r.Panic = nil, nil, nil
	r.Signals = base.Signals{}
}

func (w *worker) do(j *job) {
	w.clean()
	defer close(j.done)
	defer func() {
		if r := recover(); r != nil {
			j.failed = Caught(r)
		}
	}()
	j.failed = j.f()
}

// leave ends the goroutine if it is that of a worker which was abandoned.
func (s *Session) leave() {
	if w := s.worker.Load(); w.id != gls.GoID() {
		runtime.Goexit()
	}
}

// Times of Guard.
const (
	pumpEvery = 10 * time.Millisecond
	// A call that has not ended so long after Stop is abandoned; one in which Busy
	// says that it will notice Stop gets more time.
	abandonAfter     = 140 * time.Millisecond
	abandonBusyAfter = 3 * time.Second
)

// wait lets a job run to its end. It repeats the interrupt until then: the
// interpreter forgets it whenever an expression begins.
func (s *Session) wait(j *job) *Error {
	tick := time.NewTicker(pumpEvery)
	defer tick.Stop()
	w := s.worker.Load()
	var since, deep, told time.Time
	for {
		select {
		case <-j.done:
			return j.failed
		case now := <-tick.C:
			if s.Watch != nil && now.Sub(told) >= watchEvery {
				told = now
				s.tell(now)
			}
			// The Go runtime ends a process whose stack grows too far.
			if env := w.run.CurrEnv; env != nil && env.CallDepth > maxDepth && now.Sub(deep) > time.Second {
				// Once is enough, and more than that makes the long way back longer.
				deep = now
				s.tooDeep.Store(true)
				w.stop()
			}
			crash := s.goroutines.crash()
			if crash != nil {
				s.sleepers.wake()
			}
			if crash == nil && !s.interrupted.Load() {
				continue
			}
			w.stop()
			if since.IsZero() {
				since = now
			}
			limit := abandonAfter
			if s.Busy != nil && s.Busy() {
				limit = abandonBusyAfter
			}
			if now.Sub(since) < limit || s.compilingNow.Load() {
				continue
			}
			select {
			case <-j.done:
				return j.failed
			default:
			}
			e := interruptedError()
			e.Message += "; the call here cannot be stopped and was left to itself: should it ever end, its result is lost"
			e.Frames = append(s.stack(w.run.CurrEnv), s.last...)
			s.abandon()
			return e
		}
	}
}

// stop interrupts what the worker runs. It reports whether it still runs.
func (w *worker) stop() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.over {
		w.run.Signals.Async = base.SigInterrupt
	}
	return !w.over
}

// abandon leaves the worker to itself. What it runs ends as soon as it is back in
// interpreted code.
func (s *Session) abandon() {
	old := s.worker.Load()
	s.now.Store(nil)
	s.hire()
	go func() {
		for old.stop() {
			time.Sleep(pumpEvery)
		}
	}()
}

// Ending reports whether what runs is being ended, by Stop or because functions call
// each other without end: compiled code on the way may have hidden that.
func (s *Session) Ending() bool { return s.interrupted.Load() || s.tooDeep.Load() }
