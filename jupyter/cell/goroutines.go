package cell

import (
	"fmt"
	"reflect"
	"strings"
	"sync"
	"time"

	"github.com/cosmos72/gomacro/fast"
	"github.com/cosmos72/gomacro/gls"
	"github.com/cosmos72/gomacro/xreflect"
)

// goroutines keeps the goroutines that cells have started and that still run.
type goroutines struct {
	mu      sync.Mutex
	owner   interface{}            // what Own said of the running cell
	byID    map[uintptr]*goroutine // by the number that the Go runtime gave it
	run     int                    // number of the running cell, 0 between cells
	runs    int
	alive   map[*goroutine]bool
	crashed *Error // the first panic in a goroutine of the running cell
}

// goroutine is one of them.
type goroutine struct {
	run    int          // of the cell that started it
	owner  interface{}  // of that cell
	ir     *fast.Interp // stands for its state in the interpreter
	killed bool
}

func (g *goroutines) begin() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.runs++
	g.run, g.crashed = g.runs, nil
}

// end closes the cell and returns what a goroutine of it did to it.
func (g *goroutines) end() *Error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.run = 0
	return g.crashed
}

// crash returns the panic of a goroutine of the running cell, nil if there was none.
func (g *goroutines) crash() *Error {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.crashed
}

// stop ends the goroutines of the running cell or, between cells, all of them,
// as soon as they run interpreted code.
func (g *goroutines) stop() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for x := range g.alive {
		if (g.run == 0 || x.run == g.run) && !x.killed {
			x.killed = true
			go g.kill(x)
		}
	}
}

// kill repeats the interrupt, which gomacro forgets whenever an expression begins.
func (g *goroutines) kill(x *goroutine) {
	for {
		g.mu.Lock()
		alive := g.alive[x]
		g.mu.Unlock()
		if !alive {
			return
		}
		x.ir.Interrupt(nil)
		time.Sleep(10 * time.Millisecond)
	}
}

// started is called in the cell, at the go statement. ir stands for the new goroutine.
func (s *Session) started(ir interface{}) *goroutine {
	g := &s.goroutines
	g.mu.Lock()
	defer g.mu.Unlock()
	x := &goroutine{run: g.run, owner: g.owner}
	if parent := g.byID[gls.GoID()]; parent != nil {
		x.run, x.owner = parent.run, parent.owner
	}
	x.ir, _ = ir.(*fast.Interp)
	return x
}

// Own says to whom the goroutines belong that are started from now on.
func (s *Session) Own(owner interface{}) {
	s.goroutines.mu.Lock()
	defer s.goroutines.mu.Unlock()
	s.goroutines.owner = owner
}

// Owner returns what Own said when the calling goroutine was started by a cell,
// nil if it was not.
func (s *Session) Owner() interface{} {
	g := &s.goroutines
	g.mu.Lock()
	defer g.mu.Unlock()
	if x := g.byID[gls.GoID()]; x != nil {
		return x.owner
	}
	return nil
}

// interpName is the function by which a go statement gets the state of its goroutine.
const interpName = "\u00b7interp"

func (s *Session) declareInterp() {
	s.ir.DeclEnvFunc(interpName, fast.Function{
		Fun:  func(v xreflect.Value) xreflect.Value { return v },
		Type: s.ir.Comp.TypeOf(func(interface{}) interface{} { return nil }),
	})
}

// goroutine calls f in the goroutine it is called in. A panic is an error of the
// cell that started it, or a remark if that has ended.
func (s *Session) goroutine(x *goroutine, cell, line int, source string, spread bool, f interface{}, args ...interface{}) {
	g := &s.goroutines
	g.mu.Lock()
	if g.alive == nil {
		g.alive = map[*goroutine]bool{}
	}
	if x.ir != nil {
		g.alive[x] = true
	}
	id := gls.GoID()
	if g.byID == nil {
		g.byID = map[uintptr]*goroutine{}
	}
	g.byID[id] = x
	g.mu.Unlock()
	defer func() {
		r := recover()
		g.mu.Lock()
		delete(g.alive, x)
		delete(g.byID, id)
		killed, own := x.killed, x.run != 0 && x.run == g.run
		var failed *Error
		if r != nil {
			failed = Caught(r)
			if failed.Interrupted && killed {
				failed = nil
			}
		}
		if failed != nil && own {
			if g.crashed == nil {
				e := *failed
				e.Message = "panic in a goroutine: " + strings.TrimPrefix(e.Message, "panic: ")
				e.Frames = append(e.Frames[:len(e.Frames):len(e.Frames)], Frame{Cell: cell, Line: line, Source: source})
				g.crashed = &e
			}
			failed = nil
		}
		g.mu.Unlock()
		if failed != nil {
			s.warn(fmt.Sprintf("cell %d, line %d: panic in a goroutine: %s", cell, line, failed.Message))
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

// Elsewhere is called where a cell hands over a function that compiled code will call
// in a goroutine of its own, and returns what makes the calls: a panic there is one
// in a goroutine that the cell has started.
func (s *Session) Elsewhere() func(call func()) {
	x := s.started(nil)
	at := Frame{Cell: len(s.cells), Line: 1}
	if w := s.worker.Load(); w != nil && w.id == gls.GoID() {
		if len(s.last) > 0 {
			at = s.last[0]
		}
	}
	return func(call func()) { s.goroutine(x, at.Cell, at.Line, at.Source, false, call) }
}
