package kinds

import (
	"errors"
	"fmt"
	"reflect"
)

// The forms of call that a notebook-facing API has: a device whose methods take any function and any arguments.

// Array is opaque and chains.
type Array struct {
	data  []float64
	shape []int
}

// NewArray makes one.
func NewArray(xs ...float64) *Array { return &Array{xs, []int{len(xs)}} }

// Times returns the receiver's type, so it chains.
func (a *Array) Times(k float64) *Array {
	b := &Array{shape: a.shape}
	for _, x := range a.data {
		b.data = append(b.data, k*x)
	}
	return b
}

// As takes a typed constant.
func (a *Array) As(t DType) *Array { return a }

// Shape takes nothing and gives a slice.
func (a *Array) Shape() []int {
	if a == nil {
		return nil
	}
	return a.shape
}

// Reshape is variadic in int.
func (a *Array) Reshape(shape ...int) *Array { return &Array{a.data, shape} }

// At is variadic in int.
func (a *Array) At(index ...int) float64 { return a.data[index[0]] }

// Float64s copies the data out.
func (a *Array) Float64s() []float64 { return a.data }

// String prints it.
func (a *Array) String() string { return fmt.Sprint("Array", a.data) }

// DType is an enumeration with a method.
type DType uint8

// DTypes.
const (
	Float32 DType = iota + 1
	Float64
)

func (d DType) String() string { return [...]string{"?", "float32", "float64"}[d] }

// Option is an opaque struct.
type Option struct{ apply func(*Device) }

// FuncOption is a function.
type FuncOption func(*Device)

// Fast is an Option.
func Fast() Option { return Option{func(d *Device) { d.fast = true }} }

// Threads is an Option with a parameter.
func Threads(n int) Option { return Option{func(d *Device) { d.threads = n }} }

// Named is a FuncOption.
func Named(s string) FuncOption { return func(d *Device) { d.name = s } }

// Device is opaque.
type Device struct {
	name    string
	fast    bool
	threads int
}

// Open opens.
func Open(name string) (*Device, error) {
	if name == "" {
		return nil, errors.New("kinds: no name")
	}
	return &Device{name: name}, nil
}

// MustOpen opens or panics.
func MustOpen(name string) *Device { return &Device{name: name} }

// With has struct options.
func (d *Device) With(opts ...Option) *Device {
	e := *d
	for _, o := range opts {
		o.apply(&e)
	}
	return &e
}

// WithFunc has function options.
func (d *Device) WithFunc(opts ...FuncOption) *Device {
	e := *d
	for _, o := range opts {
		o(&e)
	}
	return &e
}

// Settings shows them.
func (d *Device) Settings() string {
	if d == nil {
		return "nil device"
	}
	return fmt.Sprint(d.name, d.fast, d.threads)
}

// Arg is the opaque trailing argument.
type Arg struct{ arrays []*Array }

// Out makes one.
func Out(a ...*Array) Arg { return Arg{a} }

// Vectorize calls fn elementwise; scalars are repeated.
func (d *Device) Vectorize(fn any, args ...any) (*Array, error) {
	f := reflect.ValueOf(fn)
	if f.Kind() != reflect.Func {
		return nil, fmt.Errorf("kinds: %T is no function", fn)
	}
	n := 1
	for _, a := range args {
		if a, ok := a.(*Array); ok {
			n = len(a.data)
		}
	}
	if len(args) != f.Type().NumIn() {
		return nil, fmt.Errorf("kinds: %d arguments for %v", len(args), f.Type())
	}
	out := &Array{shape: []int{n}}
	for i := range n {
		var in []reflect.Value
		for k, a := range args {
			v := reflect.ValueOf(a)
			if a, ok := a.(*Array); ok {
				v = reflect.ValueOf(a.data[i])
			}
			in = append(in, v.Convert(f.Type().In(k)))
		}
		out.data = append(out.data, f.Call(in)[0].Float())
	}
	return out, nil
}

// Vectorize2 has two array results and an error.
func (d *Device) Vectorize2(fn any, args ...any) (*Array, *Array, error) {
	return NewArray(1), NewArray(2), nil
}

// Types names the dynamic types of its arguments.
func (d *Device) Types(fn any, args ...any) string { return fmt.Sprintf("%T ", fn) + Sprint(args...) }

// Must unwraps.
func Must(a *Array, err error) *Array {
	if err != nil {
		panic(err)
	}
	return a
}

// Dim3 is a small value.
type Dim3 struct{ X, Y, Z int }

// Grid and Block are kinds of Dim3.
type (
	Grid  Dim3
	Block struct{ Dim3 }
)

// Blocks is variadic in int.
func Blocks(n ...int) Grid { return Grid{n[0], 1, 1} }

// ThreadsOf makes a Block.
func ThreadsOf(n ...int) Block { return Block{Dim3{n[0], 1, 1}} }

// Launch takes named structs.
func (d *Device) Launch(kernel any, grid Grid, block Block, args ...any) error {
	return fmt.Errorf("launch %T %v %v %d", kernel, grid, block.X, len(args))
}

// Integrate takes a typed function.
func Integrate(f func(float64) float64, a, b float64) float64 { return (b - a) * f((a+b)/2) }

// Reduce takes a function of two.
func Reduce(f func(a, b float64) float64, xs ...float64) float64 {
	t := xs[0]
	for _, x := range xs[1:] {
		t = f(t, x)
	}
	return t
}

// Kernel is a named function type.
type Kernel func(x []float64) float64

// Run calls it.
func (k Kernel) Run(x []float64) float64 { return k(x) }

// RunKernel takes a named function type.
func RunKernel(k Kernel, x ...float64) float64 { return k(x) }

// ShapeError is an error with a pointer receiver.
type ShapeError struct{ Want, Got []int }

func (e *ShapeError) Error() string { return fmt.Sprintf("shape %v, want %v", e.Got, e.Want) }

// Fail returns one.
func Fail() error { return &ShapeError{[]int{1}, []int{2}} }

// Panic panics with one.
func Panic() { panic(&ShapeError{[]int{1}, []int{2}}) }

// Float is the default type alias.
type Float = float64

// DeviceInfo has exported fields only.
type DeviceInfo struct {
	Name  string
	Cores int
}

// String has a value receiver.
func (i DeviceInfo) String() string { return fmt.Sprint(i.Name, "/", i.Cores) }

// DeviceList is a named slice of structs.
type DeviceList []DeviceInfo

// Names has a value receiver.
func (l DeviceList) Names() (s []string) {
	for _, d := range l {
		s = append(s, d.Name)
	}
	return s
}

// Devices lists.
func Devices() DeviceList { return DeviceList{{"a", 1}, {"b", 2}} }

// Infos lists as a plain slice.
func Infos() []DeviceInfo { return Devices() }
