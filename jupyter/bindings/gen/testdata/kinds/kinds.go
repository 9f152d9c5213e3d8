// Package kinds has one of every declaration that the generator must bind or refuse by name.
package kinds

import (
	"errors"
	"fmt"
	"io"
	"strings"

	reflect2 "reflect"

	"gpunotes/jupyter/bindings/gen/testdata/kinds/internal/hidden"
)

// Untyped constants of every kind.
const (
	UntypedBool     = true
	UntypedInt      = 42
	UntypedNegative = -7
	UntypedInt64    = 1 << 40
	UntypedUint64   = 1<<64 - 1
	UntypedMinInt64 = -1 << 63
	UntypedHuge     = 1 << 100
	UntypedRune     = 'é'
	UntypedFloat    = 0.1
	UntypedWhole    = 2.0
	UntypedTiny     = 1e-400
	UntypedVast     = 1e+2000
	UntypedPi       = 3.14159265358979323846264338327950288419716939937510582097494459
	UntypedNegFloat = -1.0 / 3
	UntypedComplex  = 1.5 - 2i
	UntypedString   = "a:b\n\"quoted\" \\ \xff é"
	UntypedEmpty    = ""
)

// Level is a named integer, its constants are typed.
type Level uint8

// Typed constants.
const (
	Low        Level   = 1
	High       Level   = 255
	TypedBig   uint64  = 1<<64 - 1
	TypedFloat float32 = 0.1
	TypedName  Name    = "n"
	TypedFlag  flag    = true
)

type flag bool

// Name is a named string.
type Name string

// Upper has a value receiver on a named string.
func (n Name) Upper() string { return strings.ToUpper(string(n)) }

// Variables.
var (
	Counter  = 3
	ErrFixed = errors.New("kinds: fixed")
	Table    = map[string][]int{"a": {1, 2}}
	Hidden   = point{1, 2} // of an unexported type
	Writer   io.Writer
	Hook     = func(x int) int { return x + 1 }
)

type point struct{ X, Y int }

// Sum has an exported method on an unexported type.
func (p point) Sum() int { return p.X + p.Y }

// Deprecated: still bound.
func Old() int { return 1 }

// Add is a plain function.
func Add(a, b int) int { return a + b }

// NewHidden returns an unexported type.
func NewHidden() *point { return &point{3, 4} }

// Secret returns a type of an internal package.
func Secret() hidden.Secret { return hidden.Secret{N: 5} }

// Sprint is variadic in any.
func Sprint(args ...any) string {
	var w strings.Builder
	for _, a := range args {
		fmt.Fprintf(&w, "%T:%v;", a, a)
	}
	return w.String()
}

// Generic functions and types cannot be bound.
func Generic[T any](x T) T { return x }

// Box is generic.
type Box[T any] struct{ V T }

// Get is its method.
func (b Box[T]) Get() T { return b.V }

// Number is a constraint.
type Number interface{ ~int | ~float64 }

// IntBox is an instance, which can be bound.
type IntBox = Box[int]

// PairOf is a generic alias.
type PairOf[T any] = [2]T

// Alias names another type.
type Alias = strings.Builder

// Shape is an interface that cells may implement.
type Shape interface {
	Area() float64
	Name() string
}

// Odd has names that fight with a proxy's own fields.
type Odd interface {
	Object() int
	Run_() int
	Run() int
}

// Wide has every form of signature.
type Wide interface {
	fmt.Stringer
	Variadic(prefix string, xs ...float64) (sum float64, err error)
	Nothing()
	Reflect(v reflect2.Value) reflect2.Kind
	Func(f func(int) int, m map[string]Level) <-chan int
}

// Sealed cannot be implemented outside.
type Sealed interface {
	Shape
	sealed()
}

// Unnameable uses a type of an internal package.
type Unnameable interface{ Get() hidden.Secret }

// UsesUnexported uses an unexported type.
type UsesUnexported interface{ Get() point }

// Empty needs no proxy.
type Empty interface{}

// Describe calls through the interface.
func Describe(s Shape) string { return fmt.Sprintf("%s %.2f", s.Name(), s.Area()) }

// CallOdd calls the odd one.
func CallOdd(o Odd) int { return 100*o.Object() + 10*o.Run_() + o.Run() }

// CallWide calls every method.
func CallWide(w Wide) string {
	s, err := w.Variadic("p", 1, 2, 3)
	w.Nothing()
	k := w.Reflect(reflect2.ValueOf(1.5))
	c := <-w.Func(func(i int) int { return i * 2 }, map[string]Level{"a": High})
	return fmt.Sprintf("%s %g %v %v %d", w, s, err, k, c)
}

// Base is embedded below.
type Base struct{ ID int }

// Ident has a pointer receiver.
func (b *Base) Ident() int { return b.ID }

// Tag has a value receiver.
func (b Base) Tag() string { return fmt.Sprint("tag", b.ID) }

// ByValue embeds a struct.
type ByValue struct {
	Base
	Extra int
}

// Own is its own method.
func (v ByValue) Own() int { return v.Extra }

// Zeta is its own and sorts after the promoted ones.
func (v ByValue) Zeta() string { return fmt.Sprint("zeta", v.Extra) }

// Height has a pointer receiver and sorts before the promoted ones.
func (v *ByValue) Height() string { return fmt.Sprint("height", v.Extra) }

// ByPointer embeds a pointer.
type ByPointer struct{ *Base }

// Zeta is its own.
func (v ByPointer) Zeta() string { return fmt.Sprint("zeta", v.ID) }

// Shadow has a method of its own under a promoted name.
type Shadow struct {
	Base
	private *Node
}

// Tag hides Base.Tag.
func (Shadow) Tag() string { return "shadow" }

// Deep embeds at two levels.
type Deep struct {
	*Shadow
	DType
}

// ByInterface embeds an interface.
type ByInterface struct{ Shape }

// Square is a Shape.
type Square struct{ Side float64 }

// Area is its area.
func (s Square) Area() float64 { return s.Side * s.Side }

// Name is its name.
func (s Square) Name() string { return "square" }

// Node refers to itself.
type Node struct {
	Next *Node
	V    int
	priv int
}

// Len walks the list.
func (n *Node) Len() int {
	if n == nil {
		return 0
	}
	return 1 + n.Next.Len()
}

// Floats is a named slice.
type Floats []float64

// Total has a value receiver on a slice.
func (f Floats) Total() float64 {
	t := 0.0
	for _, x := range f {
		t += x
	}
	return t
}
