package cell

import (
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/cosmos72/gomacro/base"
	"github.com/cosmos72/gomacro/go/scanner"
)

// An Error says why a cell stopped, and where.
type Error struct {
	Name    string // one word: SyntaxError, CompileError, Error, Panic, Interrupted, NoError, or the name of the Go type of the error
	Message string // the text of the error
	Frames  []Frame
	// Interrupted reports that the user stopped the cell.
	Interrupted bool
	// Also are further errors of a cell that was refused before it ran, in the order of its lines.
	Also []*Error
}

// A Frame is one place on the way to an error, the innermost first.
type Frame struct {
	Cell, Line int
	Func       string // name of the enclosing function, "" at top level
	Source     string // the text of the line
	Col        int    // 1-based byte column in it, 0 if unknown
}

// fault is an error at a place of the cell.
func (s *source) fault(name string, line, col int, msg string) *Error {
	return &Error{Name: name, Message: fmt.Sprintf("cell %d:%d:%d: %s", s.cell, line, col, msg), Frames: []Frame{s.frame(line, col)}}
}

func (s *source) frame(line, col int) Frame {
	return Frame{Cell: s.cell, Line: line, Source: s.line(line), Col: col}
}

// Error returns the place and the message.
func (e *Error) Error() string {
	if len(e.Frames) == 0 || e.Frames[0].Line == 0 {
		return e.Message
	}
	return fmt.Sprintf("cell %d, line %d: %s", e.Frames[0].Cell, e.Frames[0].Line, e.Message)
}

// Traceback returns the error as lines to show: the message, then each place
// with its source; then the same of the errors in Also.
func (e *Error) Traceback() []string {
	lines := []string{e.Name + ": " + e.Message}
	for _, f := range e.Frames {
		if f.Line == 0 {
			continue
		}
		where := fmt.Sprintf("cell %d, line %d", f.Cell, f.Line)
		if f.Func != "" {
			where += ", in " + f.Func
		}
		lines = append(lines, where)
		if f.Source != "" {
			lines = append(lines, fmt.Sprintf("%6d | %s", f.Line, f.Source))
			if mark, ok := f.caret(); ok {
				lines = append(lines, "       | "+mark)
			}
		}
	}
	for _, also := range e.Also {
		lines = append(lines, also.Traceback()...)
	}
	return lines
}

// caret returns the line that stands below Source and points at its column.
func (f Frame) caret() (string, bool) {
	if f.Col < 1 || f.Source == "" {
		return "", false
	}
	f.Col = min(f.Col, len(f.Source)+1) // what is missing at the end of a line
	blank := func(r rune) rune {
		if r == '\t' {
			return r // as wide as the one above it, whatever that is
		}
		return ' '
	}
	return strings.Map(blank, f.Source[:f.Col-1]) + "^", true
}

// Caught turns a recovered panic value into an Error without places. It is
// also for panics outside the evaluation, such as in a String or HTML method.
func Caught(r any) *Error {
	switch r := r.(type) {
	case *Error:
		return r
	case base.Signal:
		return interruptedError()
	case runtime.Error:
		return &Error{Name: "Panic", Message: runtimeText(r.Error())}
	case *reflect.ValueError:
		if r.Kind == reflect.Invalid {
			// The interpreter follows pointers by reflection.
			return &Error{Name: "Panic", Message: "nil pointer dereference, or use of a variable without value (" + r.Error() + ")"}
		}
		return &Error{Name: "Panic", Message: r.Error()}
	case error:
		return fromError(r)
	}
	return &Error{Name: "Panic", Message: runtimeText(panicText(r))}
}

// runtimeWords say in the words of Go what the interpreter does by reflection.
var runtimeWords = []struct {
	inner *regexp.Regexp
	plain string
}{
	{regexp.MustCompile(`^reflect: (slice|array|string) index out of range$`), "index out of range of the $1 (print the index and len to see by how much)"},
	{regexp.MustCompile(`^reflect\.Value\.Slice3?: (slice|array|string) index out of bounds$`), "bounds out of range of the $1 (print the bounds and cap to see by how much)"},
	{regexp.MustCompile(`^reflect: Method on nil interface value$`), "method call on a nil interface value"},
	{regexp.MustCompile(`^reflect\.MakeSlice: (negative len|negative cap|len > cap)$`), "make of a slice: $1"},
	{regexp.MustCompile(`^reflect: Call (?:with too (?:few|many) input arguments|using .* as type .*)$`), "a function that is called here was declared again with other parameters; run the cell of the caller again"},
	{regexp.MustCompile(`^interface conversion: interface \{\} is (.+), not (func\(.*)$`), "a name that stood for a $2 was declared again as $1; run the cell of the function that uses it again"},
}

func runtimeText(msg string) string {
	for _, w := range runtimeWords {
		if w.inner.MatchString(msg) {
			return w.inner.ReplaceAllString(msg, w.plain)
		}
	}
	return msg
}

func interruptedError() *Error {
	return &Error{Name: "Interrupted", Message: "interrupted", Interrupted: true}
}

// panicText formats what a program passed to panic; its methods may panic too.
func panicText(r any) (text string) {
	defer func() {
		if recover() != nil {
			text = fmt.Sprintf("a value of type %T whose own methods panic", r)
		}
	}()
	return fmt.Sprint(Shown(r))
}

// fromError names the error after its type, if that is exported and says more
// than the word error.
func fromError(err error) *Error {
	name := "Error"
	for e := err; e != nil; e = errors.Unwrap(e) {
		t := reflect.TypeOf(e)
		if t.Kind() == reflect.Pointer {
			t = t.Elem()
		}
		if n := t.Name(); strings.HasSuffix(n, "Error") && n[0] >= 'A' && n[0] <= 'Z' && n != "RuntimeError" {
			name = n
			break
		}
	}
	return &Error{Name: name, Message: errorText(err)}
}

func errorText(err error) (text string) {
	defer func() {
		if r := recover(); r != nil {
			text = fmt.Sprintf("an error of type %T whose Error method panics: %s", err, panicText(r))
		}
	}()
	return err.Error()
}

type syntaxError struct {
	msg       string
	offset    int
	line, col int
}

func firstSyntaxError(err error) syntaxError {
	var list scanner.ErrorList
	if errors.As(err, &list) && len(list) > 0 {
		e := list[0]
		return syntaxError{e.Msg, e.Pos.Offset, e.Pos.Line, e.Pos.Column}
	}
	var one *scanner.Error
	if errors.As(err, &one) {
		return syntaxError{one.Msg, one.Pos.Offset, one.Pos.Line, one.Pos.Column}
	}
	return syntaxError{msg: err.Error()}
}

// where finds the first "cell N:LINE:COL" at the start of a compiler message.
var where = regexp.MustCompile(`^cell (\d+):(\d+):(\d+): `)

func placeOf(msg string) (line, col int, ok bool) {
	m := where.FindStringSubmatch(msg)
	if m == nil {
		return 0, 0, false
	}
	line, err := strconv.Atoi(m[2])
	col, err2 := strconv.Atoi(m[3])
	return line, col, err == nil && err2 == nil
}

// pointed finds the places in cells that a message of compiled code names, as
// gpukit's do.
var pointed = regexp.MustCompile(`\bcell (\d+):(\d+):(\d+)\b`)

// maxPointed bounds how many of them are shown with their lines.
const maxPointed = 3

// point puts the places that the message names before the other places.
func (s *Session) point(e *Error) {
	var at []Frame
	for _, m := range pointed.FindAllStringSubmatch(e.Message, -1) {
		var f Frame
		f.Cell, _ = strconv.Atoi(m[1])
		f.Line, _ = strconv.Atoi(m[2])
		f.Col, _ = strconv.Atoi(m[3])
		for _, src := range slices.Backward(s.cells) {
			if src.cell == f.Cell {
				f.Source = src.line(f.Line)
				break
			}
		}
		known := func(g Frame) bool { return g.Cell == f.Cell && g.Line == f.Line }
		if f.Source != "" && len(at) < maxPointed && !slices.ContainsFunc(at, known) && !slices.ContainsFunc(e.Frames, known) {
			at = append(at, f)
		}
	}
	e.Frames = append(at, e.Frames...)
}
